"""`make scale`: what scout needs as the options get many, beside the scout of before, measured in the same run.

The scout of before kept matrices of all pairs. Its sources are taken from the history of this repository; where that is
not at hand, only the present one is measured. Each row runs in a process of its own, so that memory is its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import paretoscout as ps
from benchmarks.reach import linear
from paretoscout.algorithms import Scout
from paretoscout.errors import MissingData

#: The last commit with the scout of before.
BEFORE = "ec3d7b5"
ROOT = Path(__file__).resolve().parent.parent
DELTA = 0.1


class Row(NamedTuple):
    problem: Callable[[], ps.Problem]
    eps: float | None
    runs: int
    runs_before: int  # 0: it cannot, or would take an hour
    sigma: float | None = None  # what scout is told; None: that of the problem
    model: str | None = "tabular"
    goals: str = ""


def normal(n_arms: int) -> ps.Problem:
    """Normal means, two metrics, sigma 0.5."""
    return ps.problems.gaussian(np.random.default_rng(n_arms).standard_normal((n_arms, 2)), 0.5)


def recorded(name: str, sigma: str) -> Callable[[], ps.Problem]:
    """A recorded problem, with one sigma for all options or each its own."""
    given = sigma if name.startswith("llvm") else None  # data sets without rows have one for all
    return lambda: ps.problems.load(name, sigma=given)


ROWS = {
    "random-16": Row(lambda: ps.problems.load("random-16"), 0.1, 600, 200, goals="97%, 1/15"),
    "SW-LLVM": Row(lambda: ps.problems.load("sw-llvm"), 0.06, 600, 400, sigma=0.226, goals="98%, 1/5"),
    "four-arms": Row(lambda: ps.problems.load("four-arms"), 0.1, 600, 400, goals="101%, 1/5"),
    "SNW": Row(recorded("snw", "largest"), None, 40, 12, goals="101%, 1/17"),
    "NoC": Row(recorded("noc", "largest"), None, 40, 10, goals="102%, 1/24"),
    "llvm-passes": Row(recorded("llvm-passes", "largest"), None, 10, 0, goals="below 500,000 samples, 5 s"),
    "llvm-passes, each its sigma": Row(recorded("llvm-passes", "each"), None, 10, 1),
    "llvm-passes, with the guide": Row(recorded("llvm-passes", "largest"), None, 10, 0, model=None),
    "100,000 normal": Row(lambda: normal(100_000), 0.1, 1, 0, goals="7 s, 250 MB"),
    "1,000,000 normal": Row(lambda: normal(1_000_000), 0.1, 1, 0, goals="75 s, 400 MB"),
    "linear, 1,000,000 x 8": Row(lambda: linear(1_000_000, 8, 0.5, 1), 0.1, 1, 0, model="linear", goals="20 s, 1.5 GB"),
    "linear, 1,000,000 x 32": Row(
        lambda: linear(1_000_000, 32, 0.5, 1), 0.1, 1, 0, model="linear", goals="45 s, 1.5 GB"
    ),
}


def measure(name: str, before: bool) -> dict[str, Any]:
    """Run one row here."""
    row = ROWS[name]
    problem, settings = row.problem(), Scout(regret_weight=0.0, model=row.model, sigma=row.sigma)
    asked: dict[str, Any] = {"eps": row.eps, "delta": DELTA, "workers": 1, "progress": False}
    ps.simulate(problem, settings, replicates=1, max_samples=1, **asked)  # compiled before the clock starts
    began = time.process_time()
    n = row.runs_before if before else row.runs
    result = ps.simulate(problem, settings, replicates=n, seed=7, **asked)
    spent = time.process_time() - began
    return {
        "runs": n,
        "samples": float(result.samples.mean()),
        "error": float(result.samples.std(ddof=1) / math.sqrt(n)) if n > 1 else None,
        "wrong": int((~result.success).sum()),
        "seconds": spent / n,
        "microseconds": 1e6 * spent / float(result.samples.sum()),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measured_by(sources: Path, name: str, before: bool) -> dict[str, Any] | str:
    """Run one row in a process of its own, with these sources; a text says why there is none."""
    command = [sys.executable, "-m", "benchmarks.scale", "--row", name, *(["--before"] if before else [])]
    place = {**os.environ, "PYTHONPATH": os.pathsep.join([str(sources), str(ROOT)])}
    done = subprocess.run(command, env=place, cwd=ROOT, capture_output=True, text=True)
    said = done.stdout.strip() or done.stderr.strip() or "it was ended"
    return json.loads(said) if done.returncode == 0 else said.splitlines()[-1]


def sources_before(folder: Path) -> Path | None:
    """Take the sources of before from the history."""
    packed = subprocess.run(["git", "archive", BEFORE, "src"], cwd=ROOT, capture_output=True)
    if packed.returncode != 0:
        return None
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def line(name: str, now: dict[str, Any] | str, before: dict[str, Any] | str | None) -> str:
    """One line of the table."""
    cells = [name]
    for one in (before, now):
        if isinstance(one, dict):
            error = f" ± {one['error']:,.0f}" if one["error"] else ""
            cells += [f"{one['samples']:,.0f}{error}", f"{one['microseconds']:.2f}"]
        else:
            cells += [one or "-", "-"]
    if isinstance(now, dict) and isinstance(before, dict):
        cells.append(f"{now['samples'] / before['samples']:.1%}, 1/{before['microseconds'] / now['microseconds']:.0f}")
    else:
        cells.append("-")
    cells.append(ROWS[name].goals or "-")
    if isinstance(now, dict):
        cells += [f"{now['seconds']:.3g}", f"{now['megabytes']:,.0f}", f"{now['wrong']} of {now['runs']}"]
    else:
        cells += ["-"] * 3
    return "| " + " | ".join(cells) + " |"


HEAD = """| | before: samples | µs a sample | now: samples | µs a sample | ratios | goal | s a run | MB | wrong |
|---|---|---|---|---|---|---|---|---|---|"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="*", choices=ROWS, help="rows to measure")
    parser.add_argument("--alone", action="store_true", help="leave the scout of before out")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    parser.add_argument("--before", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.row:
        try:
            print(json.dumps(measure(asked.row, asked.before)))
        except MissingData as missing:
            print(missing)
            return 1
        return 0
    print("CPU time of one thread; delta 0.1, dial 0; mean and standard error.\n" + HEAD, flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        old = None if asked.alone else sources_before(Path(folder))
        for name in asked.only or ROWS:
            now = measured_by(ROOT / "src", name, False)
            before = measured_by(old, name, True) if old and ROWS[name].runs_before else None
            rows.append({"row": name, "now": now, "before": before})
            print(line(name, now, before), flush=True)
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
