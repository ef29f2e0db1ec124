"""Gaps of estimates: how far each arm is from being taken for what it does not look like."""

from __future__ import annotations

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray
from .compile import kernel
from .decisions import margin


@kernel
def empirical_gaps(arms: IntArray, values: FloatArray, gaps: FloatArray, front: BoolArray) -> None:
    """Write for each of `arms` (n,) whether no other of them dominates it (`front`, (K,)), and its gap (`gaps`, (K,)).

    With m(i, j) = min over the metrics of values[j] - values[i] and M(i, j) = -m(i, j), both signed: off the front the
    gap is max_j m(i, j); on the front it is min_j min{M(i, j), max(0, M(j, i)) + max(0, max_k m(j, k))}; for an arm
    alone it is infinite. Kone, Kaufmann, Richert 2024 (EGE).
    """
    for i in arms:
        gaps[i] = -np.inf
        front[i] = True
        for j in arms:
            if j == i:
                continue
            lead = margin(j, i, values)
            gaps[i] = max(gaps[i], lead)
            if front[i] and lead >= 0.0:
                for metric in range(values.shape[1]):
                    if values[j, metric] > values[i, metric]:
                        front[i] = False
                        break
    # the gaps off the front stand, and are zero or more; those on the front are computed from them
    for i in arms:
        if not front[i]:
            continue
        gaps[i] = np.inf
        for j in arms:
            if j != i:
                other = 0.0 if front[j] else gaps[j]
                gaps[i] = min(gaps[i], -margin(j, i, values), max(0.0, -margin(i, j, values)) + other)
