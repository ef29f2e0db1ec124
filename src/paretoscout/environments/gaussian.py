"""Independent normal noise around each arm's means."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels.arrays import FloatArray
from ..kernels.compile import kernel
from ..kernels.dispatch import implement
from ..problem import Problem
from ..statement import Units
from .summed import SummedEnvironment


class GaussianEnvironment(NamedTuple):
    means: FloatArray  # (K, L)
    sigma: FloatArray  # (K, L)


@kernel
def draw(environment: GaussianEnvironment, arm: int, rng: np.random.Generator, outcome: FloatArray) -> None:
    """Mean plus sigma times a standard normal number, metric by metric."""
    for metric in range(outcome.shape[0]):
        outcome[metric] = environment.means[arm, metric] + environment.sigma[arm, metric] * rng.standard_normal()


implement(GaussianEnvironment, draw=draw)


def of(problem: Problem, units: Units) -> GaussianEnvironment | SummedEnvironment:
    """Return the environment of a problem with normal noise."""
    return around(units.divided(units.compared(problem.means)), problem.sigma / units.divisors, units)


def around(means: FloatArray, sigma: FloatArray, units: Units) -> GaussianEnvironment | SummedEnvironment:
    """Return what draws metrics (K, L) around means, both oriented and divided; with trade-offs, sums of these."""
    if units.weights is None:
        return GaussianEnvironment(means, sigma)
    return SummedEnvironment(means, sigma, units.weights)
