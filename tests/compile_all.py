"""Compile what most tests need before they start, each kernel once: workers that start cold all compile the same ones."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
from test_every_algorithm import CONTENDERS, EASY, LINEAR, plan, suited

from paretoscout.algorithms import Settings
from paretoscout.algorithms.registry import resolve
from paretoscout.errors import InvalidInput, NotSupported
from paretoscout.session import Session
from paretoscout.simulation.replicates import Simulation


def states_of(settings: Settings) -> tuple[str, ...]:
    """The classes of state of an algorithm: those that share them share their kernels."""
    return tuple(kernels.state.__name__ for kernels in resolve(settings)[0].kernels)


def compile_kernels(states: tuple[str, ...]) -> None:
    """Compile simulation and session of all algorithms with these states, with and without contexts."""
    for settings in CONTENDERS.values():
        for problem in (EASY, LINEAR) if states_of(settings) == states else ():
            asked: dict[str, Any] = {"eps": 0.1, "delta": 0.1, "seed": 0, "max_samples": None, **plan(settings)}
            with suppress(InvalidInput, NotSupported):  # it is not made for this problem
                run = Simulation(resolve(settings)[0], settings, suited(problem, settings), **asked)
                run.compile()
                session = Session(settings, run.setup)
                session.tell(session.ask(), np.zeros(run.setup.n_metrics))
                session.verdicts()


if __name__ == "__main__":
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(compile_kernels, dict.fromkeys(map(states_of, CONTENDERS.values()))))
