"""The nearest means with another front: what a likelihood-ratio test of the front has to rule out.

Means y (K, L) are in units of the noise, weights w (K,) say how many samples an arm has. Moving the means to y' costs
sum_k w_k |y'_k - y_k|^2 / 2. The front changes when a member falls behind another in every metric, or when an arm off
it catches up with each member in some metric. The cost of the nearest such y' is concave in w, and the gradient is
|y'_k - y_k|^2 / 2. Crepon, Garivier, Koolen 2024.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .arrays import FloatArray, IntArray
from .compile import kernel
from .decisions import margin

#: With other than two metrics, a search for the best way to catch up gives up after so many steps, and says so.
MOST_STEPS = 10_000
#: What rounding may do to a cost, relatively.
ROUNDING = 1e-9


class Search(NamedTuple):
    """Working space of the searches below."""

    z: FloatArray  # (L,) where an arm moves to when it catches up
    heights: FloatArray  # (2, K + 1) two metrics: how high it must rise to catch up with the first members
    costs: FloatArray  # (2, K + 1) and what that costs
    metric_of: IntArray  # (K,) other numbers of metrics: in which one to catch up with a member, or -1
    members: IntArray  # (K,) on each level of the search, the member it decides on
    tried: IntArray  # (K,) and the metric it is trying
    level_z: FloatArray  # (K + 1, L)
    level_costs: FloatArray  # (K + 1, L)


def search_space(n_arms: int, n_metrics: int) -> Search:
    """Return working space for so many arms and metrics."""
    K, L = n_arms, n_metrics
    return Search(
        z=np.zeros(L),
        heights=np.zeros((2, K + 1)),
        costs=np.zeros((2, K + 1)),
        metric_of=np.zeros(K, np.int64),
        members=np.zeros(K, np.int64),
        tried=np.zeros(K, np.int64),
        level_z=np.zeros((K + 1, L)),
        level_costs=np.zeros((K + 1, L)),
    )


@kernel
def sort_front(front: IntArray, y: FloatArray) -> None:
    """Sort the front by the first metric, the largest first; with two metrics the second one then rises."""
    for i in range(1, front.shape[0]):
        arm, position = front[i], i
        while position > 0 and y[front[position - 1], 0] < y[arm, 0]:
            front[position] = front[position - 1]
            position -= 1
        front[position] = arm


@kernel
def joined(w_i: float, w_j: float) -> float:
    """1 / (1 / w_i + 1 / w_j): what a difference of two arms weighs."""
    return w_i * (w_j / (w_i + w_j)) if w_i > 0.0 and w_j > 0.0 else 0.0


@kernel
def cost_to_fall(i: int, j: int, y: FloatArray, slack: FloatArray) -> float:
    """What it costs that j beats i by `slack` in every metric, if a difference of the two weighs 1."""
    total = 0.0
    for metric in range(y.shape[1]):
        ahead = y[i, metric] + slack[metric] - y[j, metric]
        if ahead > 0.0:
            total += ahead * ahead
    return 0.5 * total


@kernel
def cost_to_catch_up(
    k: int, y: FloatArray, w: FloatArray, front: IntArray, search: Search, limit: float
) -> tuple[float, bool]:
    """What it costs that k catches up with every member of the (sorted) front, and whether nothing less will do.

    `search.z` is then where k moves to. A member p moves down to it in the metric in which it is least above it.
    Infinite if it costs more than the limit.
    """
    exact, found = True, True
    if y.shape[1] == 2:
        split_front(k, y, w, front, search)
    else:
        found, exact = branch(k, y, w, front, search, limit, False)
    if not found:
        return np.inf, exact
    total = 0.0
    for metric in range(y.shape[1]):
        rise = search.z[metric] - y[k, metric]
        total += w[k] * rise * rise
    for p in front:
        total += w[p] * fall_to(p, y, search.z) ** 2
    return 0.5 * total, exact


@kernel
def clearly_above(k: int, y: FloatArray, w: FloatArray, front: IntArray, limit: float) -> bool:
    """Whether it costs more than the limit that k catches up with one member alone: then so do all, which take longer.

    Rounding does not matter: what is above the limit by so little is not told.
    """
    for p in front:
        gap = margin(p, k, y)
        if gap > 0.0 and 0.5 * joined(w[k], w[p]) * gap * gap > limit * (1.0 + ROUNDING):
            return True
    return False


@kernel
def out_of_reach(k: int, y: FloatArray, w: FloatArray, front: IntArray, search: Search, limit: float) -> bool:
    """Whether it surely costs more than the limit that k catches up with every member of the (sorted) front."""
    if y.shape[1] == 2:
        return clearly_above(k, y, w, front, limit) or cost_to_catch_up(k, y, w, front, search, limit)[0] > limit
    found, exact = branch(k, y, w, front, search, limit, True)
    return exact and not found


@kernel
def fall_to(p: int, y: FloatArray, z: FloatArray) -> float:
    """How far p must fall in one metric for z to have caught up with it."""
    least = np.inf
    for metric in range(y.shape[1]):
        least = min(least, max(0.0, y[p, metric] - z[metric]))
    return least


# Two metrics: some of the first members of the sorted front are caught up with in the second metric, the rest in the
# first. All costs of both kinds come from two sweeps.


@kernel
def split_front(k: int, y: FloatArray, w: FloatArray, front: IntArray, search: Search) -> None:
    """Find the best place to split the front."""
    n = front.shape[0]
    sweep(k, y, w, front, 0, search)
    sweep(k, y, w, front, 1, search)
    best, best_cost = 0, np.inf
    for first in range(n + 1):
        cost = search.costs[1, first] + search.costs[0, n - first]
        if cost < best_cost:
            best, best_cost = first, cost
    search.z[0], search.z[1] = search.heights[0, n - best], search.heights[1, best]


@kernel
def sweep(k: int, y: FloatArray, w: FloatArray, front: IntArray, metric: int, search: Search) -> None:
    """For every n: how high k must rise in the metric to catch up with the n lowest members there, and what it costs.

    All meet at the weighted mean of k and those above it. When a higher member joins, this rises, and some of the
    lowest are no longer above it.
    """
    n = front.shape[0]
    start = y[k, metric]
    weight, first, second = w[k], 0.0, 0.0  # sums of weights, values and squares of k and those above, from k's value
    lowest = 0
    height = 0.0
    search.heights[metric, 0], search.costs[metric, 0] = start, 0.0
    for i in range(n):
        arm = front[i] if metric == 1 else front[n - 1 - i]
        value = y[arm, metric] - start
        if value > height:
            weight += w[arm]
            first += w[arm] * value
            second += w[arm] * value * value
            height = first / weight
            while lowest < i:
                below = front[lowest] if metric == 1 else front[n - 1 - lowest]
                low = y[below, metric] - start
                if low > height:
                    break
                weight -= w[below]
                first -= w[below] * low
                second -= w[below] * low * low
                height = first / weight
                lowest += 1
        else:  # k is as high from the beginning
            lowest = i + 1
        search.heights[metric, i + 1] = start + height
        search.costs[metric, i + 1] = max(0.0, second - weight * height * height)


# Any number of metrics: branch on the member that is furthest ahead.


@kernel
def branch(
    k: int, y: FloatArray, w: FloatArray, front: IntArray, search: Search, limit: float, any_way: bool
) -> tuple[bool, bool]:
    """Find in which metric to catch up with whom; return whether that can be had below the limit, and is surely best.

    A level of the search settles one member: the one that is furthest ahead of where k has to rise to for those settled
    so far. What that costs is never more than what follows from it, so that a level that costs more than the best known
    way is left. any_way: the first way below the limit will do.
    """
    L = y.shape[1]
    for metric in range(L):
        search.level_z[0, metric] = y[k, metric]
        search.level_costs[0, metric] = 0.0
        search.z[metric] = y[k, metric]
    for p in front:
        search.metric_of[p] = -1
    search.members[0], search.tried[0] = furthest_ahead(y, front, search, 0), -1
    if search.members[0] < 0:
        return True, True  # nobody beats k
    best, found = 2.0 * limit, False
    for metric in range(L):  # to begin with, catch up with all members in one metric
        for p in front:
            search.metric_of[p] = metric
        best, found = keep_cheaper(search, 0, settle(k, y, w, front, search, 0, metric), best, found)
    for p in front:
        search.metric_of[p] = -1
    if found and any_way:
        return found, False
    level, steps = 0, 0
    while level >= 0:
        p = search.members[level]
        search.tried[level] += 1
        metric = search.tried[level]
        if metric == L:
            search.metric_of[p] = -1
            level -= 1
            continue
        steps += 1
        if steps > MOST_STEPS:
            return found, False
        search.metric_of[p] = metric
        cost = settle(k, y, w, front, search, level, metric)
        if cost >= best:
            continue
        following = furthest_ahead(y, front, search, level + 1)
        if following < 0:
            best, found = keep_cheaper(search, level, cost, best, found)
            if any_way:
                return found, False
        else:
            level += 1
            search.members[level], search.tried[level] = following, -1
    return found, True


@kernel
def keep_cheaper(search: Search, level: int, cost: float, best: float, found: bool) -> tuple[float, bool]:
    """Keep where k moves to on the next level, if that is cheaper than the best way so far."""
    if cost >= best:
        return best, found
    for metric in range(search.z.shape[0]):
        search.z[metric] = search.level_z[level + 1, metric]
    return cost, True


@kernel
def furthest_ahead(y: FloatArray, front: IntArray, search: Search, level: int) -> int:
    """The member that beats k by most, where k has risen to on this level; -1: none does."""
    found, most = -1, 0.0
    for p in front:
        if search.metric_of[p] < 0:
            least = np.inf
            for metric in range(y.shape[1]):
                least = min(least, y[p, metric] - search.level_z[level, metric])
            if least > most:
                found, most = p, least
    return found


@kernel
def settle(k: int, y: FloatArray, w: FloatArray, front: IntArray, search: Search, level: int, metric: int) -> float:
    """Write to the next level where k must rise to in a metric for all that are settled there; return the whole cost.

    The slope of the cost in that height is concave, so that Newton's method from k's own value climbs to its root in at
    most as many steps as there are members.
    """
    total = 0.0
    for m in range(y.shape[1]):
        search.level_z[level + 1, m] = search.level_z[level, m]
        search.level_costs[level + 1, m] = search.level_costs[level, m]
    height = y[k, metric]
    while True:
        weight, value = w[k], w[k] * y[k, metric]
        for p in front:
            if search.metric_of[p] == metric and y[p, metric] > height:
                weight += w[p]
                value += w[p] * y[p, metric]
        higher = value / weight
        if not higher > height:
            break
        height = higher
    cost = w[k] * (height - y[k, metric]) ** 2
    for p in front:
        if search.metric_of[p] == metric and y[p, metric] > height:
            cost += w[p] * (y[p, metric] - height) ** 2
    search.level_z[level + 1, metric] = height
    search.level_costs[level + 1, metric] = cost
    for m in range(y.shape[1]):
        total += search.level_costs[level + 1, m]
    return total


# The whole function


@kernel
def nearest_alternative(
    y: FloatArray,
    w: FloatArray,
    front: IntArray,
    on_front: IntArray,
    no_slack: FloatArray,
    search: Search,
    gradient: FloatArray,
) -> float:
    """What the nearest means with another front cost, and the gradient (K,) of that in the weights.

    front: the (sorted) front of y; on_front (K,): 1 for its members. Without alternatives the cost is infinite.
    """
    K = y.shape[0]
    best, fallen, winner, newcomer = np.inf, -1, -1, -1
    for i in front:
        for j in front:
            if i != j:
                cost = joined(w[i], w[j]) * cost_to_fall(i, j, y, no_slack)
                if cost < best:
                    best, fallen, winner = cost, i, j
    for k in range(K):
        if on_front[k] == 0 and not clearly_above(k, y, w, front, best):
            cost, _ = cost_to_catch_up(k, y, w, front, search, best)
            if cost < best:
                best, newcomer = cost, k
    for k in range(K):
        gradient[k] = 0.0
    if newcomer >= 0:
        cost_to_catch_up(newcomer, y, w, front, search, np.inf)
        for metric in range(y.shape[1]):
            gradient[newcomer] += 0.5 * (search.z[metric] - y[newcomer, metric]) ** 2
        for p in front:
            gradient[p] = 0.5 * fall_to(p, y, search.z) ** 2
    elif fallen >= 0:
        whole = cost_to_fall(fallen, winner, y, no_slack)
        both = w[fallen] + w[winner]
        if both > 0.0:
            gradient[fallen] = whole * (w[winner] / both) ** 2
            gradient[winner] = whole * (w[fallen] / both) ** 2
    return best
