"""Gaps of estimates as the EGE family uses them: how far an arm is from being judged otherwise."""

from __future__ import annotations

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray
from .compile import kernel
from .decisions import margin


@kernel
def empirical_gaps(arms: IntArray, values: FloatArray, gaps: FloatArray, front: BoolArray) -> None:
    """Write for each of `arms` (n,) whether no other one of them dominates it (`front`), and its gap.

    With lead(j, i) the least by which j beats i over the metrics, negative where it does not: an arm i off the front
    has the gap max_j lead(j, i); one on the front has min_j min{-lead(j, i), max(0, -lead(i, j)) + max(0, gap of j off
    the front)}. An arm alone is on the front, with an infinite gap. Kone, Kaufmann, Richert 2024.
    """
    for i in arms:
        front[i] = True
        gaps[i] = -np.inf
        for j in arms:
            if j == i:
                continue
            lead = margin(j, i, values)
            gaps[i] = max(gaps[i], lead)
            if lead >= 0.0 and front[i]:
                for metric in range(values.shape[1]):
                    if values[j, metric] > values[i, metric]:
                        front[i] = False
                        break
    for i in arms:
        if not front[i]:
            continue
        gap = np.inf
        for j in arms:
            if j == i:
                continue
            own = 0.0 if front[j] else gaps[j]
            gap = min(gap, -margin(j, i, values), max(0.0, -margin(i, j, values)) + own)
        gaps[i] = gap
