"""Random draws from a numpy Generator, the same numbers compiled or not."""

from __future__ import annotations

import numpy as np

from .arrays import FloatArray
from .compile import kernel


@kernel
def draw_index(n: int, rng: np.random.Generator) -> int:
    """Return one of 0, ..., n - 1, each equally likely."""
    return min(int(rng.random() * n), n - 1)


@kernel
def draw_category(cumulative: FloatArray, rng: np.random.Generator) -> int:
    """Return the first index whose cumulative probability exceeds a uniform draw.

    `cumulative` ends with entries of exactly 1, so that an index with no probability is never drawn.
    """
    u = rng.random()
    low, high = 0, cumulative.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low
