"""Outcomes that are 0 or 1: each metric of a sample is a coin of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels.arrays import FloatArray
from ..kernels.compile import kernel
from ..kernels.dispatch import implement
from ..problem import Problem
from ..statement import Units


class BernoulliEnvironment(NamedTuple):
    rates: FloatArray  # (K, L) probability of a 1
    ones: FloatArray  # (L,) what a 1 is, oriented and scaled


@kernel
def draw(environment: BernoulliEnvironment, arm: int, rng: np.random.Generator, outcome: FloatArray) -> None:
    """Toss one coin for each metric."""
    for metric in range(outcome.shape[0]):
        outcome[metric] = environment.ones[metric] if rng.random() < environment.rates[arm, metric] else 0.0


implement(BernoulliEnvironment, draw=draw)


def of(problem: Problem, units: Units) -> BernoulliEnvironment:
    """Return the environment of a problem with outcomes 0 and 1."""
    return BernoulliEnvironment(problem.means.copy(), units.oriented(np.ones(len(problem.metrics))))
