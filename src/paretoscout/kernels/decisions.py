"""What pairs of confidence intervals prove: the decision layer shared by all algorithms.

Estimates `values` and interval half-widths `radii` are (K, L), larger is better. On the event that every
interval holds,

* `surely_dominates(j, k)`: j is better than k in every metric;
* `surely_escapes(k, j, slack)`: in some metric k is worse than j by no more than `slack`;
* `surely_covers(j, k, slack)`: in every metric j is worse than k by no more than `slack`.
"""

from __future__ import annotations

import numpy as np

from .arrays import FloatArray, IntArray
from .compile import allocating_kernel, kernel
from .dispatch import Verdicts
from .dominance import nearest, undominated

# Verdict on an arm.
UNDECIDED = 0
FRONT = 1
DOMINATED = 2
SAME = 3  # as another arm, up to eps; only of practical verdicts

# Whether an arm is there.
PRESENT = 0
DOUBTFUL = 1  # it keeps a guard only up to eps: more evidence is needed to escape it
GONE = 2  # it was withdrawn: it eliminates nobody, and nobody has to escape it
MISSED = 3  # it was withdrawn by somebody who had looked at outcomes: it eliminates nobody, but has to be escaped


#: What a sample of a faultless arm costs at regret_weight = 1, in units of the mean gap.
LEAST_COST = 0.005


@kernel
def is_there(presence: int) -> bool:
    """Whether an arm can be measured, and can eliminate others."""
    return presence <= DOUBTFUL


@kernel
def surely_dominates(j: int, k: int, values: FloatArray, radii: FloatArray) -> bool:
    """Whether m(k, j) exceeds the sum of the widths: y_j - y_k > r_k + r_j in every metric."""
    for metric in range(values.shape[1]):
        if values[j, metric] - values[k, metric] <= radii[k, metric] + radii[j, metric]:
            return False
    return True


@kernel
def surely_escapes(k: int, j: int, values: FloatArray, radii: FloatArray, slack: FloatArray) -> bool:
    """Whether M^slack(k, j) reaches the sum of the widths: y_k + slack - y_j >= r_k + r_j in some metric."""
    for metric in range(values.shape[1]):
        if values[k, metric] + slack[metric] - values[j, metric] >= radii[k, metric] + radii[j, metric]:
            return True
    return False


@kernel
def surely_covers(j: int, k: int, values: FloatArray, radii: FloatArray, slack: FloatArray) -> bool:
    """Whether j is as good as k but for `slack`: y_j + slack - y_k >= r_k + r_j in every metric."""
    for metric in range(values.shape[1]):
        if values[j, metric] + slack[metric] - values[k, metric] < radii[k, metric] + radii[j, metric]:
            return False
    return True


@kernel
def may_be_covered(k: int, j: int, values: FloatArray, radii: FloatArray, slack: FloatArray) -> bool:
    """Whether M^slack(k, j) is at most the sum of the widths: j may still beat k by `slack` everywhere."""
    for metric in range(values.shape[1]):
        if values[k, metric] + slack[metric] - values[j, metric] > radii[k, metric] + radii[j, metric]:
            return False
    return True


@kernel
def cost_of(cost: float, gap: float, mean_gap: float, regret_weight: float) -> float:
    """What a sample of an arm counts: what it costs at regret_weight 0; its estimated gap, with a small floor, at 1."""
    if regret_weight == 0.0 or mean_gap == 0.0:
        return cost
    return max(LEAST_COST, (1.0 - regret_weight) / regret_weight) * cost + gap / mean_gap


@kernel
def margin(j: int, k: int, values: FloatArray) -> float:
    """By how much j beats k in the metric where it beats it least (negative if it does not)."""
    least = np.inf
    for metric in range(values.shape[1]):
        least = min(least, values[j, metric] - values[k, metric])
    return least


@kernel
def strongest(arms: IntArray, values: FloatArray, radii: FloatArray, kept: IntArray) -> int:
    """Write those of `arms` whose lower corners (value - radius) no other one covers to `kept`, return how many.

    If anyone surely dominates an arm, one of these does: comparing with them alone saves a factor of
    K / (size of the front).
    """
    n = 0
    for j in arms:
        covered = False
        position = 0
        while position < n:
            i = kept[position]
            i_covers_j, j_covers_i = True, True
            for metric in range(values.shape[1]):
                corner_i = values[i, metric] - radii[i, metric]
                corner_j = values[j, metric] - radii[j, metric]
                i_covers_j = i_covers_j and corner_i >= corner_j
                j_covers_i = j_covers_i and corner_j >= corner_i
            if i_covers_j:
                covered = True
                break
            if j_covers_i:
                n -= 1
                kept[position] = kept[n]
            else:
                position += 1
        if not covered:
            kept[n] = j
            n += 1
    return n


@kernel
def dominator(k: int, rivals: IntArray, values: FloatArray, radii: FloatArray) -> int:
    """The rival that surely dominates k by the largest margin, or -1."""
    found = -1
    best = 0.0
    for j in rivals:
        if surely_dominates(j, k, values, radii):
            lead = margin(j, k, values)
            if found < 0 or lead > best:
                found, best = j, lead
    return found


@allocating_kernel
def name_rivals(rival: IntArray, values: FloatArray, radii: FloatArray, status: IntArray) -> None:
    """Name for each undecided arm the one that comes nearest to dominating it, among those measured and standing."""
    asking = np.flatnonzero(status == UNDECIDED)
    rival[asking] = closest_rivals(values, asking, np.flatnonzero((status != DOMINATED) & (radii[:, 0] < np.inf)))


@allocating_kernel
def name_rivals_there(
    rival: IntArray, values: FloatArray, radii: FloatArray, status: IntArray, presence: IntArray
) -> None:
    """Name rivals where arms may have left: nobody who left is one, and who was withdrawn has none."""
    there = presence <= DOUBTFUL
    for k in range(rival.shape[0]):
        if presence[k] == GONE or (rival[k] >= 0 and not there[rival[k]]):
            rival[k] = -1
    asking = np.flatnonzero((status == UNDECIDED) & (presence != GONE))
    standing = np.flatnonzero(there & (status != DOMINATED) & (radii[:, 0] < np.inf))
    rival[asking] = closest_rivals(values, asking, standing)


@allocating_kernel
def closest_rivals(values: FloatArray, arms: IntArray, rivals: IntArray) -> IntArray:
    """Return for each of `arms` the other one of `rivals` with the largest `margin`, the first of them; -1: none."""
    return nearest(-values, arms, rivals, np.zeros(values.shape[1]), -np.inf, np.zeros(values.shape[0]))[1]


@allocating_kernel
def verdicts_with_rivals(
    status: IntArray, beaten_by: IntArray, estimates: FloatArray, radii: FloatArray, counts: IntArray
) -> Verdicts:
    """What is proven of each arm, and the rivals of those that are undecided. Estimates and radii are given away."""
    return scaled_verdicts(status, beaten_by, estimates, radii, estimates, radii, counts)


@allocating_kernel
def scaled_verdicts(
    status: IntArray,
    beaten_by: IntArray,
    values: FloatArray,
    known: FloatArray,
    estimates: FloatArray,
    radii: FloatArray,
    counts: IntArray,
) -> Verdicts:
    """`verdicts_with_rivals` of an algorithm that divides by its units: rivals are found by `values`, divided so.

    Where `known` is infinite the arm has no value yet.
    """
    rival = beaten_by.copy()
    name_rivals(rival, values, known, status)
    return Verdicts(status.copy(), rival, estimates, radii, counts.copy())


@allocating_kernel
def verdicts_of_those_there(
    status: IntArray,
    beaten_by: IntArray,
    estimates: FloatArray,
    radii: FloatArray,
    counts: IntArray,
    presence: IntArray,
) -> Verdicts:
    """`verdicts_with_rivals` where arms may have left."""
    rival = beaten_by.copy()
    name_rivals_there(rival, estimates, radii, status, presence)
    return Verdicts(status.copy(), rival, estimates, radii, counts.copy())


@kernel
def return_best(best: int, status: IntArray, beaten_by: IntArray) -> None:
    """Where one best arm is looked for: return this one. All others are behind it, up to eps."""
    for k in range(status.shape[0]):
        if status[k] == UNDECIDED:
            status[k] = DOMINATED
            beaten_by[k] = best
    status[best] = FRONT
    beaten_by[best] = -1


@kernel
def undominated_estimates(arms: IntArray, values: FloatArray, kept: IntArray) -> int:
    """Write those of `arms` whose values no other one dominates to `kept`, in their order; return how many.

    Each is compared with those kept so far only: who dominates a dominated arm dominates whom that one dominates.
    """
    n = 0
    for k in arms:
        dominated = False
        n_left = 0
        for position in range(n):
            j = kept[position]
            j_covers_k, k_covers_j = True, True
            for metric in range(values.shape[1]):
                j_covers_k = j_covers_k and values[j, metric] >= values[k, metric]
                k_covers_j = k_covers_j and values[k, metric] >= values[j, metric]
            if j_covers_k and not k_covers_j:
                dominated = True  # and k dominates none of the others, or they would not both have been kept
                break
            if j_covers_k or not k_covers_j:  # equal, or neither is better
                kept[n_left] = j
                n_left += 1
        if not dominated:
            kept[n_left] = k
            n = n_left + 1
    return n


@allocating_kernel
def verdicts_by_estimates(estimates: FloatArray, counts: IntArray, finished: bool) -> Verdicts:
    """What an algorithm says that proves nothing: once it is finished, the front of its estimates; before, nothing."""
    K = estimates.shape[0]
    status = np.full(K, UNDECIDED)
    rival = np.full(K, -1)
    if finished:
        front = undominated(estimates)
        status[:] = np.where(front, FRONT, DOMINATED)
        behind = np.flatnonzero(~front)
        rival[behind] = closest_rivals(estimates, behind, np.flatnonzero(front))
    return Verdicts(status, rival, estimates.copy(), np.full(estimates.shape, np.inf), counts.copy())
