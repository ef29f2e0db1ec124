"""Evidence that means are not linear in contexts, from each arm's own mean; and evidence that they are.

`left` (K,) holds what a plane leaves of the arms' own means, `pulls` how often each was measured, `arms` those that
were. Any plane will do, because all of this is the least over planes, or the same for each. `docs/scout.md` has the
proofs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .algebra import factorise, solve
from .arrays import FloatArray, IntArray
from .compile import kernel
from .evidence import log_sum


class Room(NamedTuple):
    """Arrays that are overwritten each time."""

    left: FloatArray  # (K,) what a plane leaves of the arms' own means
    weights: FloatArray  # (K,)
    matrix: FloatArray  # (d, d)
    fit_reach: IntArray  # (d,) all d - 1
    step: FloatArray  # (d, 1)


@kernel
def least_square(arms: IntArray, contexts: FloatArray, room: Room) -> float:
    """Return the least of sum_k w_k (left_k - x_k . step)^2; NaN if the arms do not span all dimensions.

    The diagonal of `matrix` holds the pivots of sum_k w_k x_k x_k^T afterwards.
    """
    d = contexts.shape[1]
    for i in range(d):
        room.step[i, 0] = 0.0
        for j in range(i, d):
            room.matrix[i, j] = 0.0
    for k in arms:
        weight = room.weights[k]
        for i in range(d):
            x = weight * contexts[k, i]
            room.step[i, 0] += x * room.left[k]
            for j in range(i, d):
                room.matrix[i, j] += x * contexts[k, j]
    largest = 0.0
    for i in range(d):
        largest = max(largest, room.matrix[i, i])
    factorise(room.matrix, room.fit_reach)
    for i in range(d):
        if not room.matrix[i, i] > 1e-12 * largest:
            return math.nan
    solve(room.matrix, room.fit_reach, room.step)
    total = 0.0
    for k in arms:
        rest = room.left[k]
        for i in range(d):
            rest -= contexts[k, i] * room.step[i, 0]
        total += room.weights[k] * rest * rest
    return total


@kernel
def half_log_det(room: Room) -> float:
    """Return half the log of the determinant of the matrix of `least_square`."""
    total = 0.0
    for i in range(room.matrix.shape[0]):
        total += 0.5 * math.log(room.matrix[i, i])
    return total


@kernel
def log_misfit(
    arms: IntArray, pulls: IntArray, sigma: float, contexts: FloatArray, rhos: FloatArray, room: Room
) -> float:
    """Log e-value against linear means, sigma known: for each scale, the least over planes.

    A misfit of each arm is drawn from N(0, sigma^2 / rho): with S_k = n_k (mean_k - x_k . theta) that makes
    sum_k [S_k^2 / (2 sigma^2 (n_k + rho)) - 1/2 log(1 + n_k / rho)]. The scales have equal weights.
    """
    total = -np.inf
    for rho in rhos:
        price = math.log(rhos.shape[0])
        for k in arms:
            n = float(pulls[k])
            room.weights[k] = n * n / (n + rho)
            price += 0.5 * math.log1p(n / rho)
        square = least_square(arms, contexts, room)
        if square >= 0.0:
            total = log_sum(total, 0.5 * square / (sigma * sigma) - price)
    return total


@kernel
def log_marginal(
    arms: IntArray,
    pulls: IntArray,
    scatter: float,
    square_of_misfit: float,
    contexts: FloatArray,
    room: Room,
) -> float:
    """Log marginal likelihood, sigma unknown, if misfits are drawn from N(0, that times sigma^2).

    theta is flat, sigma has the density 1 / sigma. scatter: the sum of squares within arms.
    """
    d, total, value = contexts.shape[1], 0.0, 0.0
    for k in arms:
        n = float(pulls[k])
        total += n
        room.weights[k] = n / (1.0 + n * square_of_misfit)
        value -= 0.5 * math.log1p(n * square_of_misfit)
    square = least_square(arms, contexts, room) + scatter
    free = 0.5 * (total - d)
    if not square > 0.0 or free <= 0.0:
        return math.nan
    value -= half_log_det(room)
    return value + math.lgamma(free) - free * (math.log(square) + math.log(math.pi))


@kernel
def log_misfit_unknown(
    arms: IntArray,
    pulls: IntArray,
    first_pulls: IntArray,
    left: FloatArray,
    first_left: FloatArray,
    scatter: float,
    first_scatter: float,
    contexts: FloatArray,
    rhos: FloatArray,
    room: Room,
) -> float:
    """Log e-value against linear means, sigma unknown: what the first trials say of the later ones, over the best fit.

    Given the first trials, the ratio of two marginal likelihoods is a density of the later ones, and the largest
    likelihood of a linear model is no less than the true density. left, first_left: what a plane leaves of the means of
    all trials of an arm, and of the first ones. scatter, first_scatter: the sums of squares within arms.
    """
    later, later_scatter = 0.0, scatter - first_scatter
    for k in arms:
        n, n_first = float(pulls[k]), float(first_pulls[k])
        rest = n - n_first
        later += rest
        room.weights[k] = rest
        room.left[k] = (n * left[k] - n_first * first_left[k]) / rest if rest > 0.0 else 0.0
        if rest > 0.0 and n_first > 0.0:
            later_scatter -= n_first * rest / n * (room.left[k] - first_left[k]) ** 2
    square = least_square(arms, contexts, room) + max(0.0, later_scatter)
    if later <= contexts.shape[1] or not square > 0.0:  # some plane fits them exactly
        return -np.inf
    best = -0.5 * later * (math.log(2.0 * math.pi * square / later) + 1.0)
    total = -np.inf
    for rho in rhos:
        for k in arms:
            room.left[k] = first_left[k]
        before = log_marginal(arms, first_pulls, first_scatter, 1.0 / rho, contexts, room)
        for k in arms:
            room.left[k] = left[k]
        after = log_marginal(arms, pulls, scatter, 1.0 / rho, contexts, room)
        ratio = after - before
        if math.isfinite(ratio):
            total = log_sum(total, ratio - math.log(rhos.shape[0]))
    return total - best


@kernel
def log_fit(
    arms: IntArray,
    pulls: IntArray,
    sigma: float,
    scatter: float,
    misfit: float,
    contexts: FloatArray,
    room: Room,
) -> float:
    """Log likelihood ratio of no misfit to misfits of that standard deviation, theta flat.

    scatter: below 0 if sigma is known; else the sum of squares within arms, and sigma is an estimate that only says how
    large the misfit is in units of the noise.
    """
    square_of_misfit, total, value = misfit * misfit / (sigma * sigma), 0.0, 0.0
    for k in arms:
        n = float(pulls[k])
        total += n
        room.weights[k] = n
    without = least_square(arms, contexts, room)
    value -= half_log_det(room)
    for k in arms:
        n = float(pulls[k])
        room.weights[k] = n / (1.0 + n * square_of_misfit)
        value += 0.5 * math.log1p(n * square_of_misfit)
    along = least_square(arms, contexts, room)
    value += half_log_det(room)
    if scatter < 0.0:
        return value + 0.5 * (along - without) / (sigma * sigma)
    if not (along + scatter > 0.0 and without + scatter > 0.0):
        return -np.inf
    return value + 0.5 * (total - contexts.shape[1]) * math.log((along + scatter) / (without + scatter))
