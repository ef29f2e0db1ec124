"""One simulated run, looked at while it goes on."""

from __future__ import annotations

from collections.abc import Iterator

from ..algorithms.contract import Settings
from ..algorithms.registry import resolve
from ..defaults import DELTA
from ..problem import Problem
from ..statement import Eps
from ..verdicts import VerdictTable
from .replicates import Replicate, Simulation


def watch(
    problem: Problem,
    algorithm: str | Settings = "scout",
    *,
    eps: Eps | None = None,
    delta: float = DELTA,
    seed: int = 0,
    max_samples: int | None = None,
    budget: int | None = None,
    goal: str | int = "front",
) -> Iterator[VerdictTable]:
    """Run an algorithm once and yield its verdicts whenever there are a quarter more samples; the last ones are final.

    The parameters are as in `simulate`.

    >>> import paretoscout as ps
    >>> *_, last = watch(ps.problems.load("s5"), eps=0.05)
    >>> last.front
    ('arm 1', 'arm 2', 'arm 4')
    """
    record, settings = resolve(algorithm, noise_given=problem.statement.knows_sigma)
    run = Simulation(record, settings, problem, eps, delta, seed, max_samples, budget, goal)
    replicate = Replicate(run, 0)
    while not replicate.finished:
        target = replicate.samples + max(len(problem.arms), replicate.samples // 4)
        while replicate.samples < target and not replicate.finished:
            run.advance(replicate, target - replicate.samples)
        basis = replicate.basis()
        yield VerdictTable.of(replicate.verdicts(), run.asked, run.guarantee_by(basis), basis)
