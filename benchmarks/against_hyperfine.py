"""Do `paretoscout bench` and hyperfine measure the same, and what does a run cost besides the command itself?

Both time the same commands, in turns. The overhead is the time from one run to the next, less that of the command: ours by the
times at which outcomes were stored, that of hyperfine from what the whole takes. Prints a table, writes JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from paretoscout.storage import storage_of

COMMANDS = ("true", "sleep 0.02", "gzip -kf numbers.txt", "python3 -I -S -c pass")
RUNS = 150
MOST_EXTRA_MS = 5.0
UNDECIDED = 3  # exit code at the budget


def of_hyperfine(command: str, folder: Path) -> tuple[float, float]:
    """Mean time of a run and what it costs besides, in milliseconds."""
    asked = ["hyperfine", "-N", "--runs", str(RUNS), command, "--export-json", "out.json"]
    began = time.perf_counter()
    subprocess.run(asked, cwd=folder, capture_output=True, check=True)
    whole = time.perf_counter() - began
    times = json.loads((folder / "out.json").read_text())["results"][0]["times"]
    return 1e3 * float(np.mean(times)), 1e3 * (whole - sum(times)) / RUNS


def of_ours(command: str, folder: Path) -> tuple[float, float]:
    """The same; two options that are the same command are never told apart."""
    (folder / "paretoscout.db").unlink(missing_ok=True)
    asked = [
        sys.executable, "-m", "paretoscout", "bench", command, command, "-n", "one", "-n", "two", "-m", "time",
        "--eps", "time=0.00001", "--warmup", "0", "--budget", str(RUNS),
    ]  # fmt: skip
    done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != UNDECIDED:
        sys.exit(done.stderr)
    storage = storage_of(folder / "paretoscout.db")
    (name,) = storage.names()
    events = list(storage.events(name, kinds=("tell",)))
    times = [event.body["values"][0] for event in events]
    return float(np.mean(times)), 1e3 * (events[-1].at - events[0].at) / (RUNS - 1) - float(np.mean(times[1:]))


def compared(command: str, rounds: int, folder: Path) -> dict[str, Any]:
    """Both tools on one command, in turns."""
    means: dict[str, list[float]] = {"hyperfine": [], "ours": []}
    extra: dict[str, list[float]] = {"hyperfine": [], "ours": []}
    for _ in range(rounds):
        for name, measure in (("hyperfine", of_hyperfine), ("ours", of_ours)):
            mean, overhead = measure(command, folder)
            means[name].append(mean)
            extra[name].append(overhead)
    low, high = (np.array(means[name]) for name in ("hyperfine", "ours"))
    noise = math.sqrt((low.var(ddof=1) + high.var(ddof=1)) / rounds)
    return {
        "command": command,
        "hyperfine_ms": float(low.mean()),
        "ours_ms": float(high.mean()),
        "difference_ms": float(high.mean() - low.mean()),
        "standard_error_ms": noise,
        "hyperfine_overhead_ms": float(np.median(extra["hyperfine"])),
        "ours_overhead_ms": float(np.median(extra["ours"])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if shutil.which("hyperfine") is None:
        print("skipped: hyperfine is not installed")
        return
    rows = []
    print(
        "command                  hyperfine    ours     difference ± noise   overhead a run: hyperfine   ours   extra (ms)"
    )
    with TemporaryDirectory() as name:
        (Path(name) / "numbers.txt").write_text("\n".join(map(str, range(100_000))))
        for command in COMMANDS:
            row = compared(command, given.rounds, Path(name))
            rows.append(row)
            extra = row["ours_overhead_ms"] - row["hyperfine_overhead_ms"]
            print(
                f"{command:<24} {row['hyperfine_ms']:9.2f} {row['ours_ms']:8.2f} {row['difference_ms']:+10.2f} ± "
                f"{row['standard_error_ms']:<10.2f} {row['hyperfine_overhead_ms']:18.2f} {row['ours_overhead_ms']:10.2f} "
                f"{extra:7.2f} {'' if extra <= MOST_EXTRA_MS else 'too much'}",
                flush=True,
            )
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
