"""A Gaussian process on finitely many arms: a multivariate normal belief, kept by rank-one updates.

With prior covariance k(x_i, x_j), after samples at x_1, ..., x_t, all with noise of variance v,

    mean(x) = k_x^T (K_t + v I)^-1 y,    variance(x) = k(x, x) - k_x^T (K_t + v I)^-1 k_x.

The inverse grows with t. The covariance of all K arms does not: a sample of one arm changes it by an outer product,
O(K^2) whatever t is; O(K) where the arms are independent of each other. Metrics whose noise is the same multiple of
their prior deviation share it.
"""

from __future__ import annotations

import math

from .arrays import FloatArray
from .compile import kernel


@kernel
def condition(covariance: FloatArray, arm: int, noise: float, gains: FloatArray) -> float:
    """Take a sample of an arm into the covariance (K, K); noise is its variance, in the same unit.

    Writes to `gains` (K,) how far the mean of each arm moves per unit of surprise, outcome - mean[arm], and returns
    log(1 + variance / noise), by which log det(I + K_t / noise) grows; without noise that is infinite, and 0 returned.
    """
    variance = covariance[arm, arm]
    if variance + noise <= 0.0:  # known exactly: nothing to learn
        for k in range(gains.shape[0]):
            gains[k] = 0.0
        return 0.0
    root = math.sqrt(variance + noise)
    for k in range(gains.shape[0]):  # its row is its column, and lies in one piece
        gains[k] = covariance[arm, k] / root
    for i in range(gains.shape[0]):
        # the product of two gains, so that the matrix stays exactly symmetric
        gain = gains[i]
        if gain != 0.0:
            for j in range(gains.shape[0]):
                covariance[i, j] -= gain * gains[j]
            covariance[i, i] = max(covariance[i, i], 0.0)
    if noise == 0.0:  # but for rounding
        for k in range(gains.shape[0]):
            covariance[arm, k] = covariance[k, arm] = 0.0
    for k in range(gains.shape[0]):
        gains[k] /= root
    return math.log1p(variance / noise) if noise > 0.0 else 0.0


@kernel
def shift_means(means: FloatArray, metric: int, gains: FloatArray, surprise: float) -> None:
    """Move the means (K, L) of one metric by the gains of `condition`."""
    for k in range(gains.shape[0]):
        means[k, metric] += gains[k] * surprise
