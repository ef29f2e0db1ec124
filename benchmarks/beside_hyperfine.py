"""Ten pairs of commands whose truth is known, by `paretoscout bench` and by hyperfine: how long until which answer?

Each tool does what it does by default. A bench ends when the answer is proven, or at its budget. hyperfine times each command
for about three seconds and draws no conclusion, so two are drawn from its times: that of somebody who looks whether the ranges
mean ± sigma overlap, and that of somebody who makes a t-test (Welch, 5%). Neither of them can show that two commands are the same:
where nothing differs they say "undecided". Prints a table in Markdown, writes JSON. Takes about four minutes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.stats import ttest_ind

from paretoscout.shown import markdown_table

from .against_hyperfine import UNDECIDED

BUDGET = "45s"  # of one bench
SIGNIFICANT = 0.05
A, B, SAME, OPEN = "a is faster", "b is faster", "same", "undecided"
#: Sleeps for a random time, from one number of seconds to another.
NOISY = "import random, sys, time; time.sleep(random.uniform(float(sys.argv[1]), float(sys.argv[2])))"


@dataclass(frozen=True)
class Case:
    """Two commands, the difference that does not matter, and which answers are right."""

    name: str
    commands: tuple[str, str]
    right: tuple[str, ...]
    eps: str = "2%"


def _noisy(low: float, high: float) -> str:
    return f"python3 -I -S -c '{NOISY}' {low} {high}"


def _loop(times: int) -> str:
    return f"awk 'BEGIN {{ for (i = 0; i < {times}; i++) x += i }}'"


CASES = (
    Case("b takes 5% longer", ("sleep 0.200", "sleep 0.210"), (A,)),
    Case("b takes 20% longer", ("sleep 0.100", "sleep 0.120"), (A,)),
    Case("b takes 2% longer", ("sleep 0.200", "sleep 0.204"), (A,), "1%"),
    Case("identical", ("sleep 0.100", "sleep 0.100"), (SAME,)),
    Case("a takes 1% longer", ("sleep 0.202", "sleep 0.200"), (SAME, B), "5%"),
    Case("noisy, a takes about 25% longer", (_noisy(0.08, 0.16), _noisy(0.05, 0.13)), (B,)),
    Case("noisy, identical", (_noisy(0.05, 0.10), _noisy(0.05, 0.10)), (SAME,), "10%"),
    Case("short, b takes over 50% longer", ("sleep 0.002", "sleep 0.004"), (A,)),
    Case("short, identical", ("true", "true"), (SAME,), "10%"),
    Case("busy processor, a takes 25% longer", (_loop(2_500_000), _loop(2_000_000)), (B,)),
)


def of_hyperfine(told: dict[str, Any]) -> dict[str, str]:
    """What two people conclude from the times that hyperfine exported."""
    first, second = (np.array(result["times"]) for result in told["results"])
    faster = A if first.mean() < second.mean() else B
    apart = abs(first.mean() - second.mean()) > first.std(ddof=1) + second.std(ddof=1)
    differ = ttest_ind(first, second, equal_var=False).pvalue < SIGNIFICANT
    return {"ranges": faster if apart else OPEN, "t_test": faster if differ else OPEN}


def of_ours(told: dict[str, Any]) -> str:
    """What a bench of the options a and b answered, from its JSON."""
    verdicts = {option["option"]: option["verdict"] for option in told["options"]}
    if OPEN in verdicts.values():
        return OPEN
    if SAME in verdicts.values():
        return SAME
    return B if verdicts["a"] == "dominated" else A


def judged(answer: str, right: Sequence[str]) -> str:
    """Say whether an answer is right; who says that it is undecided says nothing wrong."""
    return "right" if answer in right else "open" if answer == OPEN else "wrong"


def by_hyperfine(case: Case, folder: Path) -> dict[str, Any]:
    """Answers of hyperfine's users, the seconds it took, and how often it ran the commands."""
    began = time.perf_counter()
    asked = ["hyperfine", *case.commands, "--export-json", "hyperfine.json"]
    subprocess.run(asked, cwd=folder, capture_output=True, check=True)
    seconds = time.perf_counter() - began
    told = json.loads((folder / "hyperfine.json").read_text())
    answers = {who: {"answer": answer, "is": judged(answer, case.right)} for who, answer in of_hyperfine(told).items()}
    return {"seconds": seconds, "runs": sum(len(result["times"]) for result in told["results"]), **answers}


def by_ours(case: Case, folder: Path) -> dict[str, Any]:
    """The same of a bench."""
    began = time.perf_counter()
    asked = [
        *(sys.executable, "-m", "paretoscout", "bench", *case.commands, "-n", "a", "-n", "b", "-m", "time"),
        *("--eps", f"time={case.eps}", "--budget", BUDGET, "--fresh", "--json"),
    ]
    done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode not in (0, UNDECIDED):
        sys.exit(done.stderr)
    told = json.loads(done.stdout)
    answer = of_ours(told)
    return {"seconds": seconds, "runs": told["samples"], "answer": answer, "is": judged(answer, case.right)}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return all cases in Markdown; what is wrong is bold."""

    def cell(said: dict[str, Any]) -> str:
        return f"**{said['answer']}: wrong**" if said["is"] == "wrong" else said["answer"]

    def cost(said: dict[str, Any]) -> str:
        return f"{said['seconds']:.0f} s, {said['runs']} runs"

    header = ["case (eps)", "bench answers", "after", "hyperfine's ranges", "t-test", "after"]
    body = []
    for row in rows:
        ours, theirs = row["ours"], row["hyperfine"]
        rest = ["–"] * 3 if theirs is None else [cell(theirs["ranges"]), cell(theirs["t_test"]), cost(theirs)]
        body.append([f"{row['name']} ({row['eps']})", cell(ours), cost(ours), *rest])
    return markdown_table(header, body)


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """Say how often each was right, and how long all took."""
    theirs = [row["hyperfine"] for row in rows if row["hyperfine"] is not None]
    said = [f"bench: {_counts([row['ours'] for row in rows])}"]
    if theirs:
        said.append(f"hyperfine by ranges: {_counts([each['ranges'] for each in theirs])}")
        said.append(f"hyperfine by t-test: {_counts([each['t_test'] for each in theirs])}")
    took = [("bench", sum(row["ours"]["seconds"] for row in rows)), ("hyperfine", sum(t["seconds"] for t in theirs))]
    return "; ".join(said) + ". In all: " + ", ".join(f"{who} {seconds:.0f} s" for who, seconds in took if seconds)


def _counts(answers: Sequence[dict[str, Any]]) -> str:
    counted = Counter(each["is"] for each in answers)
    return ", ".join(f"{counted[how]} {how}" for how in ("right", "wrong", "open"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    there = shutil.which("hyperfine") is not None
    if not there:
        print("hyperfine is not installed: its half of the table is left out")
    rows = []
    with TemporaryDirectory() as name:
        by_ours(Case("warm-up: first use compiles", ("true", "sleep 0.01"), (A,)), Path(name))
        for case in CASES:
            print(f"{case.name} ...", file=sys.stderr, flush=True)
            theirs = by_hyperfine(case, Path(name)) if there else None
            rows.append({**asdict(case), "ours": by_ours(case, Path(name)), "hyperfine": theirs})
    print(table(rows))
    print(summary(rows))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
