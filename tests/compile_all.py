"""Compile what most tests need before they start, each kernel once: workers that start cold all compile the same ones."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from typing import Any

import conftest  # noqa: F401  as in all tests
import numpy as np
from test_every_algorithm import CONTENDERS, EASY, LINEAR, plan, suited

import paretoscout as ps
from paretoscout.algorithms import Settings
from paretoscout.algorithms.registry import resolve
from paretoscout.errors import InvalidInput, NotSupported
from paretoscout.kernels.dispatch import Held
from paretoscout.session import Session
from paretoscout.simulation.replicates import Simulation

#: The classes of state of algorithms that share them, the model they are told, and whether there are contexts.
Group = tuple[tuple[str, ...], str | None, bool]


def group_of(settings: Settings, contexts: bool) -> Group:
    """What an algorithm shares its kernels by."""
    states = tuple(kernels.state.__name__ for kernels in resolve(settings)[0].kernels)
    return states, getattr(settings, "model", None), contexts


def turn(group: Group) -> int:
    """When to compile a group: what takes longest first, what is made of others last."""
    states, model, _ = group
    return 2 if model == "robust" else 0 if "ScoutState" in states else 1


def compile_kernels(group: Group) -> None:
    """Compile simulation and session of all algorithms of a group."""
    for settings in CONTENDERS.values():
        for problem in (LINEAR if group[-1] else EASY,) if group_of(settings, group[-1]) == group else ():
            asked: dict[str, Any] = {"eps": 0.1, "delta": 0.1, "seed": 0, "max_samples": None, **plan(settings)}
            with suppress(InvalidInput, NotSupported):  # it is not made for this problem
                run = Simulation(resolve(settings)[0], settings, suited(problem, settings), **asked)
                run.compile()
                session = Session(settings, run.setup)
                session.tell(session.ask(), np.zeros(run.setup.n_metrics))
                session.verdicts()
                # what studies need besides; who cannot take it says so
                no_rows = np.zeros((0, run.setup.n_metrics))
                session.add_many(np.zeros(0, np.int64), no_rows, no_rows > 0.0)
                session.judge_again()
                if session.kernels.while_held is not None:
                    outcomes, told = np.zeros((2, run.setup.n_metrics)), np.array([False, True])
                    arms, eras = np.zeros((2, 2), np.int64)
                    session.hold(Held(arms, told, outcomes, outcomes == 0.0, eras))
                    session.verdicts()


def compile_blocks() -> None:
    """Compile scout on blocks, simulated and live, and simulated where there are trade-offs."""
    rows = {"arm": ["a", "b"] * 4, "block": [str(b // 2) for b in range(8)], "x": [0.0, 1.0] * 4, "y": [1.0, 0.5] * 4}
    metrics = [ps.Metric("x", eps=0.1), ps.Metric("y", eps=0.1, bounds=(0, 1))]
    problem = ps.problems.table(rows, arm="arm", block="block", metrics=metrics)
    for goal in ("front", "practical"):
        ps.simulate(problem, goal=goal, replicates=1)
    ps.analyze(rows, arm="arm", block="block", metrics=metrics)
    sums = ps.problems.gaussian([[0, 1], [1, 0]], sigma=0.1, tradeoffs=["1 metric 1 <= 2 metric 2"])
    for goal in ("front", "practical"):
        ps.simulate(sums, eps=0.1, goal=goal, replicates=1)


def compile_one_by_one(groups: list[Group]) -> None:
    """Compile groups in an order in which later ones find what they share with earlier ones."""
    for group in groups:
        compile_kernels(group)


if __name__ == "__main__":
    groups = sorted(
        {group_of(settings, contexts) for settings in CONTENDERS.values() for contexts in (False, True)}, key=str
    )
    # scout with both models takes as long as all the rest, and is made of the tabular and the linear one
    tabular = [group for group in groups if turn(group) == 0 and not group[-1]]
    both = [group for group in groups if turn(group) == 2]
    rest = [group for group in groups if group not in (*tabular, *both)]
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        others = pool.map(compile_one_by_one, [tabular + both, sorted(rest, key=turn)])
        pool.submit(compile_blocks).result()
        list(others)
