"""Optimal designs: which arms to sample how often so that all means, linear in contexts, are known equally well.

With shares w of the samples and V the sum of w x x^T, the leverage of x is x^T V^-1 x: n samples make the variance of
an estimate at x its leverage / n. The shares that make the determinant of V largest are those that make the largest
leverage least, and that is then the dimension h that the contexts span (Kiefer, Wolfowitz 1960).
"""

from __future__ import annotations

import math

from .algebra import factorise, solve
from .arrays import FloatArray, IntArray
from .compile import kernel

#: A design is optimal when no leverage is above (1 + TOLERANCE) h, and none of an arm in use below (1 - TOLERANCE) h.
TOLERANCE = 1e-6
#: Steps after which it is taken as it is; the largest leverage is returned in any case. A few hundred are usual.
MOST_STEPS = 100_000
#: Shares below this are dropped.
LEAST_SHARE = 1e-6
#: Directions in which all contexts are relatively shorter than this count as none.
NO_LENGTH = 1e-9


@kernel
def span(
    arms: IntArray, contexts: FloatArray, left: FloatArray, direction: FloatArray, points: FloatArray, pivots: IntArray
) -> int:
    """Write coordinates of the contexts (K, d) of `arms` in a basis of their span to `points`; return its dimension h.

    Gram-Schmidt: again and again the arm with the longest part `left` (K, d) outside the directions found so far gives
    the next one. These arms are independent; they are the first h of `pivots` (d,). Coordinates from h on are 0.
    """
    d = contexts.shape[1]
    for k in arms:
        for i in range(d):
            left[k, i] = contexts[k, i]
            points[k, i] = 0.0
    longest = 0.0
    for h in range(d):
        pivot, square = -1, 0.0
        for k in arms:
            total = 0.0
            for i in range(d):
                total += left[k, i] * left[k, i]
            if total > square:
                pivot, square = k, total
        length = math.sqrt(square)
        if h == 0:
            longest = length
        if length <= NO_LENGTH * longest:
            return h
        pivots[h] = pivot
        for i in range(d):
            direction[i] = left[pivot, i] / length
        for k in arms:
            along = 0.0
            for i in range(d):
                along += left[k, i] * direction[i]
            points[k, h] = along
            for i in range(d):
                left[k, i] -= along * direction[i]
    return d


@kernel
def gram(arms: IntArray, points: FloatArray, weights: FloatArray, h: int, matrix: FloatArray) -> None:
    """Write the sum of weight x x^T over `arms` to `matrix`; ones on the diagonal from h on, where points are 0."""
    d = matrix.shape[0]
    for i in range(d):
        for j in range(d):
            matrix[i, j] = 1.0 if i == j and i >= h else 0.0
    for k in arms:
        if weights[k] > 0.0:
            for i in range(h):
                for j in range(h):
                    matrix[i, j] += weights[k] * points[k, i] * points[k, j]


@kernel
def measure_leverages(
    arms: IntArray,
    points: FloatArray,
    weights: FloatArray,
    h: int,
    leverages: FloatArray,
    factor: FloatArray,
    reach: IntArray,
    inverse: FloatArray,
) -> float:
    """Write V^-1 to `inverse` and the leverages of `arms` under these weights; return the largest."""
    d = inverse.shape[0]
    gram(arms, points, weights, h, factor)
    factorise(factor, reach)
    for i in range(d):
        for j in range(d):
            inverse[i, j] = 1.0 if i == j else 0.0
    solve(factor, reach, inverse)
    largest = 0.0
    for k in arms:
        total = 0.0
        for i in range(h):
            for j in range(h):
                total += points[k, i] * inverse[i, j] * points[k, j]
        leverages[k] = total
        largest = max(largest, total)
    return largest


@kernel
def optimal_design(
    arms: IntArray,
    points: FloatArray,
    pivots: IntArray,
    h: int,
    weights: FloatArray,
    leverages: FloatArray,
    factor: FloatArray,
    reach: IntArray,
    inverse: FloatArray,
    direction: FloatArray,
) -> float:
    """Write the optimal shares of `arms` to `weights`, given their `span`; return their largest leverage.

    Starts with equal shares of the pivots. A step moves the share that raises the determinant most in one arm: more for
    the arm of the largest leverage, or less for the one in use with the smallest. Few arms are in use at the end, and
    the leverages converge geometrically, which multiplying shares by leverages does not. Atwood 1973; Todd, Yıldırım
    2007. `reach` is all d - 1; the last four arrays are working space.
    """
    for k in arms:
        weights[k] = 0.0
    for i in range(h):
        weights[pivots[i]] = 1.0 / h
    measure_leverages(arms, points, weights, h, leverages, factor, reach, inverse)
    for _ in range(MOST_STEPS):
        top, bottom = -1, -1
        for k in arms:
            if top < 0 or leverages[k] > leverages[top]:
                top = k
            if weights[k] > 0.0 and (bottom < 0 or leverages[k] < leverages[bottom]):
                bottom = k
        excess, lack = leverages[top] / h - 1.0, 1.0 - leverages[bottom] / h
        if excess <= TOLERANCE and lack <= TOLERANCE:
            break
        arm = top if excess >= lack else bottom
        leverage = leverages[arm]
        if arm == top:
            step = excess / (leverage - 1.0)
        else:
            step = -weights[arm] / (1.0 - weights[arm])
            if leverage > 1.0:
                step = max(step, -lack / (leverage - 1.0))
        move_share(arms, points, arm, step, h, weights, leverages, inverse, direction)

    total = 0.0
    for k in arms:
        if weights[k] < LEAST_SHARE:
            weights[k] = 0.0
        total += weights[k]
    for k in arms:
        weights[k] /= total
    return measure_leverages(arms, points, weights, h, leverages, factor, reach, inverse)


@kernel
def move_share(
    arms: IntArray,
    points: FloatArray,
    arm: int,
    step: float,
    h: int,
    weights: FloatArray,
    leverages: FloatArray,
    inverse: FloatArray,
    direction: FloatArray,
) -> None:
    """Multiply all weights by 1 - step, add step to that of `arm`; keep V^-1 and the leverages up with that."""
    gone = step < 0.0 and weights[arm] * (1.0 - step) + step <= 1e-12  # rounding must not leave a share behind
    rest = 1.0 - step
    shrink = step / (rest + step * leverages[arm])
    for i in range(h):
        direction[i] = 0.0
        for j in range(h):
            direction[i] += inverse[i, j] * points[arm, j]
    for i in range(h):
        for j in range(h):
            inverse[i, j] = (inverse[i, j] - shrink * direction[i] * direction[j]) / rest
    for k in arms:
        along = 0.0
        for i in range(h):
            along += points[k, i] * direction[i]
        leverages[k] = (leverages[k] - shrink * along * along) / rest
        weights[k] *= rest
    weights[arm] = 0.0 if gone else weights[arm] + step


@kernel
def apportion(arms: IntArray, weights: FloatArray, n: int, quota: IntArray) -> None:
    """Share n samples among `arms` by their weights, at least one for each that has a weight; no more such than n.

    The rounding of Pukelsheim and Rieder 1992: first ceil((n - s/2) w), s the number of arms with a weight; then more
    for the arm that has least for its weight, or less for the one that could spare most, until the sum is n.
    """
    in_use, given = 0, 0
    for k in arms:
        quota[k] = 0
        if weights[k] > 0.0:
            in_use += 1
    for k in arms:
        if weights[k] > 0.0:
            quota[k] = int(max(1.0, math.ceil((n - 0.5 * in_use) * weights[k] - 1e-9)))
            given += quota[k]
    while given != n:
        spare = 1 if given > n else 0
        found, found_ratio = -1, 0.0
        for k in arms:
            if weights[k] > 0.0 and quota[k] > spare:
                ratio = (quota[k] - spare) / weights[k]
                if found < 0 or (ratio > found_ratio if spare == 1 else ratio < found_ratio):
                    found, found_ratio = k, ratio
        change = 1 - 2 * spare
        quota[found] += change
        given += change
