"""Independent normal noise around each arm's means, and of such outcomes the sums by which options are judged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels.arrays import FloatArray
from ..kernels.compile import kernel
from ..kernels.dispatch import implement


class SummedEnvironment(NamedTuple):
    means: FloatArray  # (K, L)
    sigma: FloatArray  # (K, L)
    weights: FloatArray  # (R, L) of metrics in the sums


@kernel
def draw(environment: SummedEnvironment, arm: int, rng: np.random.Generator, outcome: FloatArray) -> None:
    """Draw metric by metric, and sum: the noise of sums that have metrics in common goes together."""
    outcome[:] = 0.0
    for metric in range(environment.means.shape[1]):
        value = environment.means[arm, metric] + environment.sigma[arm, metric] * rng.standard_normal()
        for row in range(outcome.shape[0]):
            outcome[row] += environment.weights[row, metric] * value


implement(SummedEnvironment, draw=draw)
