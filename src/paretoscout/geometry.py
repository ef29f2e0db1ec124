"""Pareto geometry of known means: front, distances, gaps, regret, success.

`b` dominates `a` when it is at least as good in every metric and better in one. Copies do not dominate
each other. Everything is compared as float64, exactly: there is no tolerance anywhere.

Where preferences are a cone, `weights` (R, L) are its rows: larger is better in every metric, and options are compared
by the R sums of their metrics. `statement.weights` has them for trade-offs such as "1 ms <= 3 MB"; eps stays that of
the metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import checks
from .errors import InvalidInput
from .kernels.dominance import nearest, undominated
from .practical import are_worth_having
from .tradeoffs import sums

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Directions = str | Sequence[str] | None


@dataclass(frozen=True, eq=False)
class Gaps:
    """How hard each of K arms is to place; see `gaps`."""

    star: Floats  # (K,) how far the best arm is ahead in every metric; 0 on the front
    plus: Floats  # (K,) distance to the rest of the front; NaN off the front
    minus: Floats  # (K,) distance to the arms off the front; NaN off the front
    required: Floats  # (K,) the accuracy at which the arm can be placed
    front: Mask  # (K,) the Pareto-optimal arms


def pareto_front(values: ArrayLike, directions: Directions = None, weights: ArrayLike | None = None) -> Mask:
    """Return the mask of the rows of `values` (K, L) that no other row dominates.

    `directions` is "max" (the default) or "min", or a sequence with one of them for each column.

    >>> pareto_front([[1, 3], [2, 2], [1, 2]])
    array([ True,  True, False])
    >>> pareto_front([[1, 3], [2, 2], [1, 2]], directions=["max", "min"])
    array([False,  True, False])
    >>> pareto_front([[10, 50], [20, 18], [9, 60]], "min", weights=[[3, 1], [0, 1]])
    array([False,  True, False])
    """
    return undominated(_oriented("values", values, directions, weights))


def m(values: ArrayLike) -> Floats:
    """Return by how much j beats k in every metric, max(0, min_l(y_j - y_k)), in row k, column j of (K, K).

    The matrix takes 8 K^2 bytes; `gaps` needs none.

    >>> m([[0, 0], [1, 3]])
    array([[0., 1.],
           [0., 0.]])
    """
    y = checks.table("values", values)
    least = np.full((len(y), len(y)), np.inf)
    for column in y.T:
        np.minimum(least, column[None, :] - column[:, None], out=least)
    np.maximum(least, 0.0, out=least)
    return least


def M(values: ArrayLike, margin: ArrayLike = 0.0) -> Floats:  # noqa: N802 the letter of the literature
    """Return what j lacks to match k, max(0, max_l(y_k - y_j + margin)), in row k, column j of (K, K).

    The margin, by which j is to be ahead of k, is one number or one for each metric.

    >>> M([[0, 0], [1, 3]])
    array([[0., 0.],
           [3., 0.]])
    """
    y = checks.table("values", values)
    most = np.zeros((len(y), len(y)))
    for column, extra in zip(y.T, checks.per_metric("margin", margin, y.shape[1]), strict=True):
        np.maximum(most, column[:, None] - column[None, :] + extra, out=most)
    return most


def gaps(means: ArrayLike, directions: Directions = None, weights: ArrayLike | None = None) -> Gaps:
    """Return the gaps of the arms with the given true `means` (K, L).

    With P the front:

    * star_k = max over j in P of m(k, j);
    * plus_k = min over j in P, j != k, of min{M(k, j), M(j, k)}, for k in P;
    * minus_k = min over j not in P of M(j, k) + star_j, for k in P;
    * required_k = min{plus_k, minus_k} for k in P, else star_k.

    The minimum of nothing is inf. An arm dominated only with a tie in some metric has star 0.

    No K x K matrix is built: a tree search takes about K log K steps where metrics are few or the front is small.

    >>> gaps([[1.0, 0.6], [0.6, 1.0], [0.3, 0.3]]).required
    array([0.3, 0.3, 0.3])
    """
    y = _oriented("means", means, directions, weights)
    front = undominated(y)
    on, off = np.flatnonzero(front), np.flatnonzero(~front)
    no_margin = np.zeros(y.shape[1])
    leads = _leads(y, np.arange(len(y)), on, no_margin)
    star = np.where(front, 0.0, np.maximum(leads, 0.0))
    plus, minus = np.full(len(y), np.nan), np.full(len(y), np.nan)
    plus[on] = np.minimum(np.maximum(0.0 - leads[on], 0.0), nearest(y, on, on, no_margin, 0.0, star)[0])
    minus[on] = nearest(y, on, off, no_margin, 0.0, star)[0]
    required = np.where(front, np.minimum(plus, minus), star)
    return Gaps(star, plus, minus, required, front)


def pareto_regret(
    means: ArrayLike, arms: ArrayLike, directions: Directions = None, weights: ArrayLike | None = None
) -> float:
    """Return the regret of pulling `arms`: the sum of their star gaps.

    >>> pareto_regret([[1.0, 1.0], [0.75, 0.5]], arms=[0, 1, 1])
    0.5
    """
    y = _oriented("means", means, directions, weights)
    pulled = np.asarray(arms)
    if pulled.size == 0:
        return 0.0
    if pulled.dtype.kind not in "iu":
        raise InvalidInput(f"arms of pareto_regret must be integers, got {pulled.dtype}")
    if pulled.min() < 0 or pulled.max() >= len(y):
        wrong = pulled[(pulled < 0) | (pulled >= len(y))].flat[0]
        raise InvalidInput(f"arms of pareto_regret must lie in 0..{len(y) - 1}, got {wrong}")
    distinct, counts = np.unique(pulled, return_counts=True)
    leads = _leads(y, distinct.astype(np.int64), np.flatnonzero(undominated(y)), np.zeros(y.shape[1]))
    return float(counts @ np.maximum(leads, 0.0))


def eps_optimal(
    means: ArrayLike, eps: ArrayLike = 0.0, directions: Directions = None, weights: ArrayLike | None = None
) -> Mask:
    """Return the mask of the arms that no arm beats by more than `eps` in every metric.

    For one number this is star <= eps; `eps` may also be one number for each metric. Many returned sets
    can be judged against one such mask.

    >>> eps_optimal([[1.0, 1.0], [0.75, 0.5]], eps=0.25)
    array([ True,  True])
    >>> eps_optimal([[1.0, 1.0], [0.75, 0.5]], eps=[0.2, 0.4])
    array([ True, False])
    """
    y = _oriented("means", means, directions, weights)
    return _eps_optimal(y, undominated(y), _margin(eps, weights))


def success(
    means: ArrayLike,
    returned: ArrayLike,
    eps: ArrayLike = 0.0,
    directions: Directions = None,
    goal: str | int = "front",
    weights: ArrayLike | None = None,
) -> bool:
    """Return whether the mask `returned` holds what was asked for, and only eps-optimal arms.

    goal: "front", every Pareto-optimal arm; "cover", for each of these one that is at most eps worse; a number, as many
    arms, or all Pareto-optimal ones if there are fewer; "practical", all that is worth having, see docs/verdicts.md,
    whether eps-optimal or not.

    >>> success([[1.0, 1.0], [0.75, 0.5]], [True, True])
    False
    >>> success([[1.0, 1.0], [0.75, 0.5]], [True, True], eps=0.25)
    True
    """
    y = _oriented("means", means, directions, weights)
    chosen = np.asarray(returned)
    if chosen.dtype != np.bool_ or chosen.shape != (len(y),):
        got = f"{chosen.dtype} of shape {chosen.shape}"
        raise InvalidInput(f"returned of success must be a mask of {len(y)} booleans, got {got}")
    margin = checks.per_metric("eps", _margin(eps, weights), y.shape[1], least=0.0)
    return bool(are_right(y, chosen[None], margin, checks.goal(goal))[0])


def are_right(y: Floats, returned: Mask, eps: Floats, goal: str | int) -> Mask:
    """Return which of many returned sets (R, K) are what was asked for, as in `success`; larger is better in y."""
    if goal == "practical":
        sets, which = np.unique(returned, axis=0, return_inverse=True)
        return np.array([are_worth_having(y, kept, eps) for kept in sets], np.bool_)[which.reshape(-1)]
    front = undominated(y)
    right: Mask = np.asarray(~returned[:, ~_eps_optimal(y, front, eps)].any(axis=1))
    if goal == "front":
        right &= returned[:, front].all(axis=1)
    elif goal == "cover":
        some = returned.any(axis=0)
        chosen, theirs = y[some] + eps, returned[:, some]
        for best in y[front]:
            right &= theirs[:, (chosen >= best).all(axis=1)].any(axis=1)
    else:
        right &= returned.sum(axis=1) >= min(int(goal), int(front.sum()))
    return right


def _eps_optimal(y: Floats, front: Mask, eps: ArrayLike) -> Mask:
    margin = checks.per_metric("eps", eps, y.shape[1], least=0.0)
    return _leads(y, np.arange(len(y)), np.flatnonzero(front), margin) <= 0


def _leads(y: Floats, arms: NDArray[np.int64], rows: NDArray[np.int64], margin: Floats) -> Floats:
    """Return max over j in `rows`, j != k, of min_l(y_j - y_k - margin), for each k of `arms`."""
    # 0 - x rather than -x, which would turn 0 into -0
    return 0.0 - nearest(-y, arms, rows, margin, -np.inf, np.zeros(len(y)))[0]


def _margin(eps: ArrayLike, weights: ArrayLike | None) -> ArrayLike:
    """Return what does not matter in each column that is compared."""
    if weights is None:
        return eps
    rows = checks.table("weights", weights, "(sums, metrics)")
    return sums(rows, checks.per_metric("eps", eps, rows.shape[1], least=0.0))


def _oriented(name: str, values: ArrayLike, directions: Directions, weights: ArrayLike | None = None) -> Floats:
    """Return `values` as a table in which larger is better in every column, or sums of these with weights."""
    y = checks.table(name, values, own=False)
    wanted = "max" if directions is None else directions
    each = [wanted] * y.shape[1] if isinstance(wanted, str) else list(wanted)
    if len(each) != y.shape[1] or not all(isinstance(way, str) and way in checks.DIRECTIONS for way in each):
        raise InvalidInput(
            f'directions must be "min" or "max", or a sequence of {y.shape[1]} of them, '
            f"one for each column of {name}, got {directions!r}"
        )
    ways = [checks.DIRECTIONS[way] for way in each]
    y = y * [checks.sign(way) for way in ways] if "min" in ways else y
    if weights is None:
        return y
    rows = checks.table("weights", weights, "(sums, metrics)")
    if rows.shape[1] != y.shape[1]:
        raise InvalidInput(f"weights must have {y.shape[1]} columns, one for each of {name}, got {rows.shape[1]}")
    return sums(rows, y)
