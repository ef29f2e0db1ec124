"""How hard an instance is: its characteristic time, the information-theoretic limit, which holds for the very instance.

Write n for the samples of each arm. An alternative says of one arm which others it catches up with in which metric;
the means nearest to the true ones for which this is so cost c(n), concave and homogeneous in n. The time is the
least sum of n with c(n) >= 1 for all alternatives. There are exponentially many, so `characteristic_time` keeps a
list, solves for it, looks for alternatives that the solution neglects, and adds them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import linprog, nnls

from .. import checks
from ..errors import InvalidInput
from ..geometry import gaps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CharacteristicTime:
    """How hard an instance is; see `characteristic_time`."""

    time: float  # samples per unit of kl(delta, 1 - delta), for small delta log(1 / delta)
    allocation: Floats  # (K,) the share of the samples that each arm gets; NaN where the time is infinite
    accuracy: float  # no allocation needs less than time / (1 + accuracy)

    def lower_bound(self, delta: float) -> float:
        """Return time * kl(delta, 1 - delta): no algorithm that is right on all instances expects to need less."""
        level = checks.number("delta of lower_bound", delta, above=0, below=0.5)
        return self.time * (1 - 2 * level) * math.log((1 - level) / level)


def characteristic_time(means: ArrayLike, *, sigma: ArrayLike, contexts: ArrayLike | None = None) -> CharacteristicTime:
    """Return the information-theoretic difficulty of finding exactly the front, and the best allocation.

    An algorithm that is right with probability 1 - delta on all instances takes, on this one, at least
    T* kl(delta, 1 - delta) samples in expectation (`.lower_bound(delta)`), where

        1 / T* = max over allocations w of the minimum over alternatives of
                 sum_k w_k ||y'_k - y_k||^2 / (2 sigma^2)

    and an alternative is a table of means y' with another front: a member of the front is dominated by another
    member, or an arm off it by none. The noise is normal and independent between metrics, with the scale `sigma`: one
    number, or one for each metric, the same for all arms. With `contexts` (K, d) the means are linear in them, and so
    are the alternatives.
    (A. Garivier, E. Kaufmann: Optimal best arm identification with fixed confidence, 2016, for the principle;
    E. Crepon, A. Garivier, W. Koolen: Sequential learning of the Pareto front for multi-objective bandits, 2024, for
    fronts.)

    It is for eps = 0. The time is infinite where two front arms have the same means or an arm is dominated only with
    a tie: alternatives are then arbitrarily near. One arm has none: 0.

    The result is proven to its `accuracy`, mostly better than 1e-8. 16 arms with two metrics take a fraction of a
    second, 100 arms some seconds, and time and memory (8 K^3 bytes) grow with the cube. With more metrics, an arm that
    a long front dominates has exponentially many ways to join it; of these a search tries, usually, few.

    >>> found = characteristic_time([[1.0, 0.6], [0.6, 1.0], [0.3, 0.3]], sigma=1.0)
    >>> round(found.time, 6), found.allocation.round(6)
    (70.0, array([0.357143, 0.357143, 0.285714]))
    """
    who = "of characteristic_time"
    y = checks.table(f"means {who}", means)
    each = checks.per_arm_and_metric(f"sigma {who}", sigma, *y.shape)
    scale = each[0]
    if (each != scale).any():
        raise InvalidInput(f"sigma {who} must be the same for all arms, got {sigma!r}")
    if (scale <= 0).any():
        raise InvalidInput(f"sigma {who} must be above 0, got {sigma!r}")
    basis = np.eye(len(y)) if contexts is None else _basis(y, contexts)
    found = gaps(y / scale)
    smallest = float(found.required.min())
    if len(y) == 1:
        return CharacteristicTime(0.0, np.ones(1), 0.0)
    if smallest == 0:
        return CharacteristicTime(np.inf, np.full(len(y), np.nan), 0.0)
    if contexts is None:
        y = y - y.mean(axis=0)
    y /= scale
    if smallest < 1e-7 * np.abs(y).max():
        raise InvalidInput(
            f"the smallest gap {who} must be at least 1e-7 of the means, or rounding decides; got {smallest:g} of "
            f"{np.abs(y).max():g}, in units of sigma"
        )
    # in units of the smallest gap, sample sizes are near 1
    instance = _Instance(basis, basis.T @ (y / smallest), np.flatnonzero(found.front), np.flatnonzero(~found.front))
    samples = np.ones(len(y))
    known = [alternative for _, alternative in _cheapest(instance, samples)]
    best, best_samples = np.inf, samples
    while True:
        samples = _fewest_samples(instance, known, samples)
        neglected = _cheapest(instance, samples, below=1 - 1e-9)
        needed = samples.sum() / min([cost for cost, _ in neglected], default=1.0)
        if needed < best:
            best, best_samples = needed, samples
        fresh = [alternative for _, alternative in neglected if alternative not in known]
        if not fresh:  # what is neglected although it is known is a matter of rounding
            break
        known += fresh
    shares = best_samples / best_samples.sum()
    proven = _least_time(_costs(instance, known, best_samples)[1])
    return CharacteristicTime(float(best) / smallest / smallest, shares, max(0.0, float(best / proven) - 1))


class _Instance(NamedTuple):
    """Means = contexts @ theta, in units of the smallest gap; contexts may be any basis of the same space."""

    contexts: Floats  # (K, d)
    theta: Floats  # (d, L)
    front: Ints
    others: Ints


class _Alternative(NamedTuple):
    """One arm catches up: with a front arm in every metric, which it then dominates, or with all of them in some."""

    arm: int
    caught: tuple[tuple[int, ...], ...]  # (L) the arms that it catches up with, for each metric


def _basis(y: Floats, contexts: ArrayLike) -> Floats:
    """Return an orthonormal basis (K, rank) of the columns of contexts, in which the means must lie."""
    x = checks.table("contexts of characteristic_time", contexts, "(K, d)")
    if len(x) != len(y):
        raise InvalidInput(f"contexts of characteristic_time must be one row for each of {len(y)} arms, got {len(x)}")
    left, values, _ = np.linalg.svd(x, full_matrices=False)
    basis: Floats = left[:, values > values[0] * max(x.shape) * np.finfo(float).eps]
    misfit = np.abs(y - basis @ (basis.T @ y)).max()
    if misfit > 1e-9 * np.abs(y).max():
        raise InvalidInput(f"means of characteristic_time must be linear in contexts, got means up to {misfit:g} off")
    return basis


def _seen(instance: _Instance, samples: Floats) -> tuple[Floats, Floats]:
    """Return contexts (K, d) and theta (d, L) in coordinates in which a change of theta costs half its squared length.

    They are those of the Cholesky factor of the information, sum_k n_k x_k x_k^T.
    """
    factor = np.linalg.cholesky(instance.contexts.T @ (samples[:, None] * instance.contexts))
    return solve_triangular(factor, instance.contexts.T, lower=True).T, factor.T @ instance.theta


def _shift(points: Floats, theta: Floats, arm: int, caught: Sequence[int]) -> tuple[Floats, Floats]:
    """Return the least change of one metric's theta after which `arm` has caught up, and the rows that bind.

    The change is to make (x_p - x_arm) theta <= 0 for every p caught: a projection on a cone, whose dual is nnls.
    """
    rows = points[list(caught)] - points[arm]
    if len(rows) == 0:
        return np.zeros_like(theta), rows
    weights = nnls(rows.T, theta)[0]
    return -(weights @ rows), rows[weights > 0]


def _costs(instance: _Instance, alternatives: Sequence[_Alternative], samples: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the costs (m,) of alternatives, their gradients (m, K) and their Hessians (m, K, K) in the samples.

    With the nearest means moved by e_kl, the gradient is sum_l e_kl^2 / 2, by the envelope theorem. When n changes,
    the moves change in the space orthogonal to the rows that bind.
    """
    points, theta = _seen(instance, samples)
    gram = points @ points.T
    gradients = np.zeros((len(alternatives), len(samples)))
    hessians = np.zeros((len(alternatives), len(samples), len(samples)))
    for gradient, hessian, (arm, caught) in zip(gradients, hessians, alternatives, strict=True):
        for metric, arms in enumerate(caught):
            shift, rows = _shift(points, theta[:, metric], arm, arms)
            if len(rows):
                moves = points @ shift
                gradient += moves * moves / 2
                bound = points @ np.linalg.qr(rows.T)[0]
                hessian -= np.outer(moves, moves) * (gram - bound @ bound.T)
    return gradients @ samples, gradients, hessians


def _cheapest(instance: _Instance, samples: Floats, below: float = np.inf) -> list[tuple[float, _Alternative]]:
    """Return, for each arm, the cheapest alternative that takes it off the front or puts it on, if it costs less."""
    points, theta = _seen(instance, samples)
    n_metrics = theta.shape[1]
    found = []
    for arm in instance.front:
        rivals = instance.front[instance.front != arm]
        rows = points[arm] - points[rivals]
        costs = (np.maximum(rows @ theta, 0.0) ** 2).sum(axis=1) / (2 * (rows**2).sum(axis=1))
        if costs.min(initial=np.inf) < below:
            j = costs.argmin()
            found.append((float(costs[j]), _Alternative(int(rivals[j]), ((int(arm),),) * n_metrics)))
    for arm in instance.others:
        newcomer = _cheapest_newcomer(instance.front, points, theta, int(arm), below)
        if newcomer is not None:
            found.append(newcomer)
    return found


def _cheapest_newcomer(
    front: Ints, points: Floats, theta: Floats, arm: int, below: float
) -> tuple[float, _Alternative] | None:
    """Return the cheapest way in which `arm` catches up with every front arm in some metric.

    Best first: a node says with whom to catch up in which metric, and costs no more than what follows from it. Of the
    front arms that still dominate, the one furthest ahead is branched on; when there is none, the node is the answer.
    """
    every = range(theta.shape[1])
    rows = points[front] - points[arm]
    nodes = [(0.0, 0, np.full(len(front), -1), np.zeros_like(theta))]  # cost, tie-breaker, metric of each, change
    made = 0
    while nodes[0][0] < below:
        cost, _, metric_of, change = heapq.heappop(nodes)
        leads = rows @ (theta + change)
        ahead = np.where(metric_of < 0, leads.min(axis=1), -np.inf)
        worst = ahead.argmax()
        if ahead[worst] <= 1e-9:  # of the smallest gap
            metric_of = np.where(metric_of < 0, leads.argmin(axis=1), metric_of)
            return cost, _Alternative(arm, tuple(tuple(front[metric_of == metric].tolist()) for metric in every))
        for metric in every:
            made += 1
            metrics, changes = metric_of.copy(), change.copy()
            metrics[worst] = metric
            changes[:, metric] = _shift(points, theta[:, metric], arm, front[metrics == metric].tolist())[0]
            heapq.heappush(nodes, (float((changes**2).sum()) / 2, made, metrics, changes))
    return None


def _fewest_samples(instance: _Instance, alternatives: Sequence[_Alternative], start: Floats) -> Floats:
    """Return the n with the least sum for which all these alternatives cost at least 1, by a barrier method.

    Newton steps minimise weight * sum(n) - sum_i log(c_i(n) - 1) - sum_k log(n_k), and the weight grows until the
    logarithms cost 1e-9 of the sum. Arms that need next to nothing do no harm: steps are relative to n.
    """
    n = start * (2 / _costs(instance, alternatives, start)[0].min())
    here = _costs(instance, alternatives, n)
    n_terms = len(alternatives) + len(n)
    weight = n_terms / n.sum()
    for _ in range(300):  # about 60 are needed, unless rounding has won; `accuracy` will say by how much
        try:
            step, decrease = _newton_step(n, here, weight)
        except np.linalg.LinAlgError:
            break
        objective = _objective(n, here[0], weight)
        size = 1.0
        while size > 1e-4:
            moved = n * (1 + size * step)
            if moved.min() > 0:
                there = _costs(instance, alternatives, moved)
                # near the minimum whole steps are right, and the objective is too rounded to tell
                good = decrease < 0.2 or _objective(moved, there[0], weight) <= objective - 0.1 * size * decrease
                if there[0].min() > 1 and good:
                    break
            size /= 2
        else:
            break
        n, here = moved, there
        if decrease < 0.01:
            if weight * n.sum() > 0.99e9 * n_terms:
                break
            weight = min(30 * weight, 1e9 * n_terms / n.sum())
    return n / here[0].min()


def _objective(n: Floats, costs: Floats, weight: float) -> float:
    if costs.min() <= 1:
        return np.inf
    return float(weight * n.sum() - np.log(costs - 1).sum() - np.log(n).sum())


def _newton_step(n: Floats, here: tuple[Floats, Floats, Floats], weight: float) -> tuple[Floats, float]:
    """Return the step in units of n, in which the problem is well scaled, and twice the decrease it promises."""
    costs, gradients, hessians = here
    slack = costs - 1
    pulls = gradients * (n / slack[:, None])
    curvature = pulls.T @ pulls - np.tensordot(1 / slack, hessians, 1) * np.outer(n, n) + np.eye(len(n))
    slope = weight * n - pulls.sum(axis=0) - 1
    step = -cho_solve(cho_factor(curvature), slope)
    return step, -float(slope @ step)


def _least_time(gradients: Floats) -> float:
    """Return a proven lower bound on the sum of n, from gradients (m, K) of costs at some point.

    Costs are concave and homogeneous, so c_i(n) <= g_i n. With any u >= 0 for which sum_i u_i g_i <= 1 in every arm,
    sum(n) >= sum_i u_i g_i n >= sum_i u_i. A linear program finds the best u.
    """
    solved = linprog(
        -np.ones(len(gradients)),
        A_ub=gradients.T,
        b_ub=np.ones(gradients.shape[1]),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    u = np.ones(len(gradients)) if solved.x is None else solved.x
    return float(u.sum() / (u @ gradients).max())  # the solver may overstep by a rounding
