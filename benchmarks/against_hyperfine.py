"""Do `paretoscout bench`, hyperfine and a plain spawn-and-wait measure the same, and what does a run cost besides the command?

First the times of blocks as the bench runs them against those of a loop that does nothing but start a command and wait for it,
in turns of random order, on the machine as it is and, with --load N, beside N processes that never rest. Then bench and
hyperfine time the same commands, in turns. The overhead is the time from one run to the next, less that of the command: ours by the
times at which outcomes were stored, that of hyperfine from what the whole takes. Prints a table, writes JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from paretoscout.bench.run import Command, Job, Runner
from paretoscout.storage import storage_of

COMMANDS = ("true", "sleep 0.02", "gzip -kf numbers.txt", "python3 -I -S -c pass")
RUNS = 150
MOST_EXTRA_MS = 5.0
BLOCK = 10  # runs in a turn, against the plain loop
MOST_OFF_MS = 0.3
UNDECIDED = 3  # exit code at the budget


@contextlib.contextmanager
def load(processes: int) -> Iterator[None]:
    """Processes that never rest."""
    busy = [subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


#: In a process and a session of its own, as the one that starts our commands has.
PLAIN = """
import os, sys, time
actions = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
for line in sys.stdin:
    argv, times = line.split(), []
    for _ in range(BLOCK):
        began = time.perf_counter()
        os.wait4(os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions), 0)
        times.append(1e3 * (time.perf_counter() - began))
    print(*times, flush=True)
"""


@contextlib.contextmanager
def plain_loop() -> Iterator[subprocess.Popen[str]]:
    """A process that starts each command it is told BLOCK times, waits for it, and says how long that took."""
    asked = [sys.executable, "-I", "-S", "-c", PLAIN.replace("BLOCK", str(BLOCK))]
    with subprocess.Popen(
        asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        yield process


def against_plain(command: str, turns: int) -> dict[str, Any]:
    """Medians of turns of both, and the mean difference with its standard error."""
    means: dict[str, list[float]] = {"plain": [], "ours": []}
    with Runner() as runner, plain_loop() as loop:
        assert loop.stdin is not None
        assert loop.stdout is not None
        for _ in range(turns + 1):
            for name in random.sample(list(means), 2):
                if name == "plain":
                    loop.stdin.write(command + "\n")
                    loop.stdin.flush()
                    times = [float(text) for text in loop.stdout.readline().split()]
                else:
                    done = runner.block([Job(Command(command, capture=False))] * BLOCK)
                    times = [1e3 * job.steps[0][1].seconds for job in done]
                means[name].append(float(np.median(times)))
    off = np.array(means["ours"][1:]) - np.array(means["plain"][1:])  # the first turn warms up
    return {
        "command": command,
        "plain_ms": float(np.median(means["plain"][1:])),
        "ours_ms": float(np.median(means["ours"][1:])),
        "difference_ms": float(np.median(off)),
        "standard_error_ms": float(1.25 * off.std(ddof=1) / math.sqrt(turns)),
    }


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
    parser.add_argument("--turns", type=int, default=40, help="against the plain loop")
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    print("command                  spawn and wait    ours     difference ± noise (ms)")
    for busy in sorted({0, given.load}):
        with load(busy):
            for command in COMMANDS[:2]:
                row = {"load": busy, **against_plain(command, given.turns)}
                rows.append(row)
                print(
                    f"{command:<24} {row['plain_ms']:14.2f} {row['ours_ms']:7.2f} {row['difference_ms']:+10.2f} ± "
                    f"{row['standard_error_ms']:<8.2f} {f'beside {busy} busy processes' if busy else ''} "
                    f"{'' if row['difference_ms'] <= MOST_OFF_MS + 2 * row['standard_error_ms'] else 'too much'}",
                    flush=True,
                )
    if shutil.which("hyperfine") is None:
        print("skipped: hyperfine is not installed")
        return
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
