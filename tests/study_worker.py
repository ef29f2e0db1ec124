"""What other processes do to a study in the tests: a process that loads everything once and forks one for each job.

Jobs come as lines of JSON; the answer to each is the number of the process that does it. Each outcome that a worker was
told is accepted goes to a file at once, which outlives the worker.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paretoscout as ps
from paretoscout.study import log as log_module

MEANS = {"a": (1.0, 0.0), "b": (0.0, 1.0), "c": (0.2, 0.2), "d": (-0.5, -0.5)}


def outcome_of(number: int, arm: str) -> dict[str, float]:
    """A made-up outcome that depends on the trial and its arm alone."""
    wobble = (number * 2654435761 % 1000) / 1000.0 - 0.5
    return {"x": MEANS[arm][0] + wobble, "y": MEANS[arm][1] - 0.7 * wobble}


def new_study(storage: Any, name: str = "study", **how: Any) -> ps.Study:
    """A study that takes more samples to finish than any test has."""
    metrics = [ps.Metric("x", eps=0.001), ps.Metric("y", eps=0.001)]
    return ps.Study(list(MEANS), metrics, sigma=1.0, storage=storage, name=name, **how)


def measure(storage: str, log: str, rounds: int = 10**9, batch: int = 1, snapshot_events: int = 1000, **_: Any) -> None:
    """Ask and tell; write down what was accepted."""
    log_module.SNAPSHOT_EVENTS = snapshot_events
    study = ps.Study.load(storage=storage)
    note = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for _round in range(rounds):
        for trial in study.ask(batch):
            study.tell(trial, outcome_of(trial.number, trial.arm))
            os.write(note, f"{trial.number}\n".encode())


def tell(storage: str, log: str, first: int, last: int, arms: list[str], **_: Any) -> None:
    """Tell trials that somebody else asked for."""
    study = ps.Study.load(storage=storage)
    for number in range(first, last):
        study.tell(number, outcome_of(number, arms[number]))
    Path(log).write_text("done")


def run(storage: str, log: str, pause: float = 0.0, workers: int = 1, name: str = "study", **how: Any) -> None:
    """Measure with `Study.run` until all is decided; write down what is measured."""
    study = ps.Study(name=name, storage=storage, worker=how.get("worker"))
    note = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    calls = itertools.count(how.get("seed", 0) * 100_003)

    def measured(arm: str, block: str = "") -> dict[str, float]:
        os.write(note, f"{arm}\n".encode())
        time.sleep(pause)
        return outcome_of(next(calls), arm)

    study.run(measured, workers=workers, leave_asked=how.get("leave_asked", False))
    os.write(note, b"done\n")


def create(storage: str, log: str, **_: Any) -> None:
    """Create the study, or find that somebody else did."""
    study = new_study(storage)
    study.ask()
    Path(log).write_text("done")


JOBS: dict[str, Callable[..., None]] = {"measure": measure, "tell": tell, "create": create, "run": run}


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the workers
    warm = new_study("memory")
    for _ in range(10):
        trial = warm.ask()
        warm.tell(trial, outcome_of(trial.number, trial.arm))
    warm.tell_frame({"arm": ["a"], "x": [0.0], "y": [0.0]})
    assert warm.verdicts().arms
    from paretoscout.storage import sql  # noqa: F401 - loaded before the fork

    for line in sys.stdin:
        how = json.loads(line)
        number = os.fork()
        if number:
            print(number, flush=True)
            continue
        sys.stdin.close()
        try:
            JOBS[how["job"]](**how)
        except BaseException as problem:
            Path(how["log"] + ".error").write_text(f"{type(problem).__name__}: {problem}")
        finally:
            os._exit(0)


if __name__ == "__main__":
    main()
