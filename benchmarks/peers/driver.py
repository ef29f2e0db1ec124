"""What drivers share: a problem comes in as JSON, and each run goes out as a line of JSON when it has finished."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

#: Rows go here; what a peer prints goes to standard error, see `drive`.
OUT = sys.stdout
#: A run may end so many times later than the last one may begin; then it is cut off, and not counted.
PATIENCE = 2


@dataclass(frozen=True)
class Problem:
    """Options with normal noise of standard deviation 1 in each metric; larger is better."""

    algorithm: str
    means: NDArray[np.float64]  # (options, metrics)
    eps: float
    delta: float
    budget: int
    replicates: int
    seconds: int
    code: str = ""

    @classmethod
    def read(cls, stream: TextIO) -> Problem:
        """Return the problem that is asked."""
        asked: dict[str, Any] = json.load(stream)
        return cls(**{**asked, "means": np.array(asked["means"])})

    def draw(self, rng: np.random.Generator, option: int, n: int = 1) -> NDArray[np.float64]:
        """Measure an option n times."""
        drawn: NDArray[np.float64] = self.means[option] + rng.normal(size=(n, self.means.shape[1]))
        return drawn


@dataclass(frozen=True)
class Answer:
    """What a run returned, as numbers of options; right: only where a peer's code says no more than that."""

    samples: int
    returned: Sequence[int] = ()
    undecided: Sequence[int] = ()
    right: bool | None = None


def tell(answer: Answer, seconds: float, algorithm: str = "") -> None:
    """Print a run that has finished."""
    row = {**dataclasses.asdict(answer), "algorithm": algorithm, "seconds": seconds, "peak_mb": peak_mb()}
    print(json.dumps(row), file=OUT, flush=True)


def drive(once: Callable[[Problem, int], Answer]) -> None:
    """Run `once` with seeds 0, 1, ... for as long as was asked; seconds are those of the processor."""
    problem = Problem.read(sys.stdin)
    end_after(problem.seconds)
    began = time.perf_counter()
    for seed in range(problem.replicates):
        started = time.process_time()
        with contextlib.redirect_stdout(sys.stderr):
            answer = once(problem, seed)
        tell(answer, time.process_time() - started)
        if time.perf_counter() - began > problem.seconds:
            break


def end_after(seconds: int) -> None:
    """End this process, whatever it is doing, when its time is long over."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(PATIENCE * seconds)


def peak_mb() -> float:
    """The largest memory that this process had so far. Unlike `getrusage`, without that of whoever started it."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1e3
