"""One simulated run, looked at while it goes on."""

from __future__ import annotations

from collections.abc import Iterator

from ..algorithms.contract import Settings
from ..algorithms.registry import resolve
from ..problem import Eps, Problem
from ..streams import checked_seed
from ..verdicts import VerdictTable
from .replicates import DEFAULT_MAX_SAMPLES, Replicate, Run


def watch(
    problem: Problem,
    algorithm: str | Settings = "multi-pfi",
    *,
    eps: Eps | None = None,
    delta: float = 0.1,
    seed: int = 0,
    max_samples: int | None = None,
) -> Iterator[VerdictTable]:
    """Run an algorithm once and yield its verdicts after every quarter more samples; the last ones are final.

    >>> import paretoscout as ps
    >>> *_, last = watch(ps.problems.load("s5"), eps=0.05)
    >>> last.front
    ('arm 1', 'arm 2', 'arm 4')
    """
    record, settings = resolve(algorithm)
    run = Run(record, settings, problem, eps, delta, checked_seed(seed), max_samples or DEFAULT_MAX_SAMPLES)
    replicate = Replicate(run, 0)
    while not replicate.finished:
        replicate.advance(max(len(problem.arms), replicate.samples // 4))
        yield VerdictTable.of(
            replicate.verdicts(),
            arms=problem.arms,
            metrics=problem.metrics,
            units=run.units,
            algorithm=record,
            delta=delta,
            noise=problem.noise,
        )
