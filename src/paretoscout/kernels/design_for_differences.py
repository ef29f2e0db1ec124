"""Linear models by their designs: how well differences of means are known, and whom to sample to know them better.

The mean of arm k is x_k . theta; `contexts` (K, d) holds the x_k. How well theta is known is said by
A = shift I + sum of n_k x_k x_k^T: the variance along y is y^T A^-1 y, at noise scale 1. A direction y is a difference
x_i - x_j of two arms, or one arm x_i alone, written j = -1. Loops over a context go from its first entry that is not
zero to its last, so that arms without contexts (each its own unit vector) cost little.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .algebra import factorise, solve
from .arrays import FloatArray, IntArray
from .compile import kernel

#: Values this near to each other, relatively, are a tie: rounding must not decide whom to sample.
TIE = 1e-9
#: Values this near to each other, relatively, may be equal but for rounding.
CLOSE = 1e-6
#: A pivot below this part of its diagonal entry is rounding: the matrix has no inverse.
SINGULAR = 1e-13
#: The list of directions that can be the worst one goes down to this part of what the worst one can fall to.
LISTED_SHARE = 0.9
#: The Frank-Wolfe method stops when a step changes the design by less than this part, or after so many steps.
DESIGN_TOLERANCE = 0.01
DESIGN_STEPS = 5000
#: Weights below this are dropped from a design.
LEAST_WEIGHT = 1e-5
#: The part of a design that goes to arms that span all dimensions: without it least squares may have no solution.
SPANNING_SHARE = 0.01


# The inverse of A, by what it does to the contexts


class Inverse(NamedTuple):
    """A^-1 as far as it is needed."""

    solved: FloatArray  # (K, d) A^-1 x_k
    leverages: FloatArray  # (K,) x_k^T A^-1 x_k
    along: FloatArray  # (K,) x_k^T A^-1 x of the arm sampled last, as it was before that
    start: IntArray  # (K,) where the entries of a context that are not zero begin
    stop: IntArray  # (K,) and end
    factor: FloatArray  # (d, d) working space from here on
    reach: IntArray  # (d,)
    column: FloatArray  # (d, 1)
    row: FloatArray  # (d,)


def new_inverse(contexts: FloatArray) -> Inverse:
    """Return the arrays, to be filled by `invert`."""
    n_arms, d = contexts.shape
    used = contexts != 0.0
    return Inverse(
        solved=np.zeros((n_arms, d)),
        leverages=np.zeros(n_arms),
        along=np.zeros(n_arms),
        start=np.where(used.any(axis=1), used.argmax(axis=1), d).astype(np.int64),
        stop=np.where(used.any(axis=1), d - used[:, ::-1].argmax(axis=1), d).astype(np.int64),
        factor=np.zeros((d, d)),
        reach=np.zeros(d, np.int64),
        column=np.zeros((d, 1)),
        row=np.zeros(d),
    )


@kernel
def invert(inverse: Inverse, contexts: FloatArray, weights: FloatArray | IntArray, shift: float) -> bool:
    """Compute the inverse again, with `weights` for the n_k; return False if there is none. O(K d^2 + d^3)."""
    K, d = contexts.shape
    factor, reach = inverse.factor, inverse.reach
    for i in range(d):
        for j in range(i, d):
            factor[i, j] = shift if i == j else 0.0
    for k in range(K):
        if weights[k] != 0:
            for i in range(inverse.start[k], inverse.stop[k]):
                for j in range(i, inverse.stop[k]):
                    factor[i, j] += weights[k] * contexts[k, i] * contexts[k, j]
    for i in range(d):
        reach[i] = i
        for j in range(i + 1, d):
            if factor[i, j] != 0.0:
                reach[i] = j
        inverse.row[i] = factor[i, i]
    if not factorise(factor, reach):
        return False
    for i in range(d):
        if not factor[i, i] > SINGULAR * inverse.row[i]:
            return False
    for k in range(K):
        for i in range(d):
            inverse.column[i, 0] = contexts[k, i]
        solve(factor, reach, inverse.column)
        leverage = 0.0
        for i in range(d):
            inverse.solved[k, i] = inverse.column[i, 0]
            leverage += contexts[k, i] * inverse.column[i, 0]
        inverse.leverages[k] = leverage
    return True


@kernel
def add_sample(inverse: Inverse, contexts: FloatArray, arm: int) -> None:
    """A becomes A + x x^T. O(K d); rounding adds up, so `invert` now and then."""
    K, d = contexts.shape
    solved, along, row = inverse.solved, inverse.along, inverse.row
    for i in range(d):
        row[i] = solved[arm, i]
    for k in range(K):
        total = 0.0
        for i in range(inverse.start[k], inverse.stop[k]):
            total += contexts[k, i] * row[i]
        along[k] = total
    share = 1.0 / (1.0 + along[arm])
    for k in range(K):
        if along[k] != 0.0:
            weight = share * along[k]
            for i in range(d):
                solved[k, i] -= weight * row[i]
            inverse.leverages[k] -= weight * along[k]


@kernel
def variance(inverse: Inverse, contexts: FloatArray, i: int, j: int) -> float:
    """y^T A^-1 y along a direction."""
    if j < 0:
        return inverse.leverages[i]
    start, stop, solved = inverse.start, inverse.stop, inverse.solved
    if start[i] > start[j]:
        i, j = j, i
    total = 0.0
    if stop[i] <= start[j]:  # they share no dimension
        for c in range(start[i], stop[i]):
            total += contexts[i, c] * (solved[i, c] - solved[j, c])
        for c in range(start[j], stop[j]):
            total -= contexts[j, c] * (solved[i, c] - solved[j, c])
    else:
        for c in range(start[i], max(stop[i], stop[j])):
            total += (contexts[i, c] - contexts[j, c]) * (solved[i, c] - solved[j, c])
    return max(0.0, total)


@kernel
def projection(inverse: Inverse, contexts: FloatArray, i: int, j: int, arm: int) -> float:
    """y^T A^-1 x of an arm; its square over 1 + leverage is what a sample of the arm takes off the variance."""
    total = 0.0
    if j < 0:
        for c in range(inverse.start[arm], inverse.stop[arm]):
            total += contexts[arm, c] * inverse.solved[i, c]
        return total
    for c in range(inverse.start[arm], inverse.stop[arm]):
        total += contexts[arm, c] * (inverse.solved[i, c] - inverse.solved[j, c])
    return total


@kernel
def estimate(inverse: Inverse, right: FloatArray, means: FloatArray) -> int:
    """Write the means x_k^T A^-1 right, `right` (d,) the sum of x times outcome; return the arm with the largest."""
    best = 0
    for k in range(means.shape[0]):
        total = 0.0
        for i in range(right.shape[0]):
            total += inverse.solved[k, i] * right[i]
        means[k] = total
        if means[k] > means[best]:
            best = k
    return best


# Greedy designs: sample the arm that makes the largest variance smallest


class GreedyDesign(NamedTuple):
    """The samples of a greedy design, and the directions that can have the largest variance.

    Variances only fall. So a direction below what the largest one can be after the next sample does not matter for a
    while: only the others are listed, and all are looked at again when the largest has fallen far enough.
    """

    inverse: Inverse
    pulls: IntArray  # (K,) samples of each arm
    first: IntArray  # (D,) listed directions: x_first - x_second, or x_first alone
    second: IntArray  # (D,)
    variances: FloatArray  # (D,) along each of them; the largest comes first
    n_listed: IntArray  # (1,)
    cutoff: FloatArray  # (1,) variances of the others are not above this


def new_design(contexts: FloatArray, alone: bool) -> GreedyDesign:
    """Return the arrays, to be filled by `list_directions`. alone: directions are arms, not pairs of arms."""
    n_arms = len(contexts)
    n_directions = n_arms if alone else n_arms * (n_arms - 1) // 2
    return GreedyDesign(
        inverse=new_inverse(contexts),
        pulls=np.zeros(n_arms, np.int64),
        first=np.zeros(n_directions, np.int64),
        second=np.zeros(n_directions, np.int64),
        variances=np.zeros(n_directions),
        n_listed=np.zeros(1, np.int64),
        cutoff=np.zeros(1),
    )


@kernel
def list_directions(design: GreedyDesign, contexts: FloatArray, shift: float, arms: IntArray, alone: bool) -> None:
    """Look at all directions among `arms` and list those that can be the worst one soon. O(D d)."""
    invert(design.inverse, contexts, design.pulls, shift)
    n = 0
    for position in range(arms.shape[0]):
        i = arms[position]
        if alone:
            n = add_to_list(design, contexts, n, i, -1)
        else:
            for other in range(position + 1, arms.shape[0]):
                n = add_to_list(design, contexts, n, i, arms[other])
    design.n_listed[0] = n
    put_worst_first(design)
    cutoff = LISTED_SHARE * lowest_worst(design)
    kept = 0
    for p in range(n):
        if design.variances[p] >= cutoff:
            design.first[kept] = design.first[p]
            design.second[kept] = design.second[p]
            design.variances[kept] = design.variances[p]
            kept += 1
    design.n_listed[0] = kept
    design.cutoff[0] = cutoff


@kernel
def add_to_list(design: GreedyDesign, contexts: FloatArray, n: int, i: int, j: int) -> int:
    """List one more direction; return how many there are now."""
    design.first[n] = i
    design.second[n] = j
    design.variances[n] = variance(design.inverse, contexts, i, j)
    return n + 1


@kernel
def worst_variance(design: GreedyDesign) -> float:
    """The largest variance there is."""
    return design.variances[0] if design.n_listed[0] > 0 else 0.0


@kernel
def lowest_worst(design: GreedyDesign) -> float:
    """A lower bound on the largest variance after one more sample, which leaves at least 1 / (1 + leverage) of it."""
    largest = 0.0
    for leverage in design.inverse.leverages:
        largest = max(largest, leverage)
    return worst_variance(design) / (1.0 + largest)


@kernel
def put_worst_first(design: GreedyDesign) -> None:
    """Move the direction with the largest variance to the head of the list."""
    worst = 0
    for p in range(design.n_listed[0]):
        if design.variances[p] > design.variances[worst]:
            worst = p
    if worst > 0:
        i, j, value = design.first[worst], design.second[worst], design.variances[worst]
        design.first[worst] = design.first[0]
        design.second[worst] = design.second[0]
        design.variances[worst] = design.variances[0]
        design.first[0] = i
        design.second[0] = j
        design.variances[0] = value


@kernel
def greedy_arm(design: GreedyDesign, contexts: FloatArray, shift: float, arms: IntArray, alone: bool) -> int:
    """The arm whose next sample leaves the smallest largest variance among directions of `arms`.

    Ties go to the arm with the fewest samples (where several directions are equally bad no single sample helps, and
    the same arm would be sampled for ever), then to the lowest index.
    """
    if lowest_worst(design) < design.cutoff[0]:
        list_directions(design, contexts, shift, arms, alone)
    before = worst_variance(design)
    found, least = 0, np.inf
    for arm in range(contexts.shape[0]):
        worst = worst_after(design, contexts, arm, before, least)
        if worst < least * (1.0 - TIE) or (worst <= least * (1.0 + TIE) and design.pulls[arm] < design.pulls[found]):
            found = arm
            least = min(least, worst)
    return found


@kernel
def worst_after(design: GreedyDesign, contexts: FloatArray, arm: int, before: float, enough: float) -> float:
    """The largest variance after a sample of an arm: `before` if it does not fall; if above `enough`, a lower bound."""
    worst = 0.0
    share = 1.0 / (1.0 + design.inverse.leverages[arm])
    for p in range(design.n_listed[0]):
        if design.variances[p] > worst:
            step = projection(design.inverse, contexts, design.first[p], design.second[p], arm)
            worst = max(worst, design.variances[p] - share * step * step)
            if worst >= before * (1.0 - TIE):
                return before
            if worst > enough * (1.0 + TIE):
                break
    return worst


@kernel
def extend_design(design: GreedyDesign, contexts: FloatArray, arm: int) -> None:
    """Take in that an arm was sampled."""
    design.pulls[arm] += 1
    add_sample(design.inverse, contexts, arm)
    along = design.inverse.along
    share = 1.0 / (1.0 + along[arm])
    for p in range(design.n_listed[0]):
        step = along[design.first[p]]
        if design.second[p] >= 0:
            step -= along[design.second[p]]
        design.variances[p] -= share * step * step
    put_worst_first(design)


# Optimal designs: shares of samples


@kernel
def optimal_shares(
    shares: FloatArray, best: FloatArray, inverse: Inverse, contexts: FloatArray, arms: IntArray, spanning: IntArray
) -> float:
    """Write the shares (K,) of samples for which the largest variance along pairs of `arms` is smallest; return it.

    Variances are those at one sample in all. Frank-Wolfe from equal shares: the arm that takes most off the worst
    direction gets 2 / (step + 2) of the design. The best design met is kept, without tiny shares, and a little of it
    goes to `spanning` arms. `best` and `inverse.along` are working space.
    """
    K = shares.shape[0]
    least = np.inf
    i, j, bounds = arms[0], arms[1], inverse.along
    for k in range(K):
        shares[k] = 1.0 / K
        bounds[k] = np.inf
    for step in range(1, DESIGN_STEPS):
        invert(inverse, contexts, shares, 0.0)
        i, j, worst = worst_pair_again(inverse, contexts, arms, i, j, bounds)
        if worst < least * (1.0 - TIE):
            least = worst
            for k in range(K):
                best[k] = shares[k]
        found, most = 0, -1.0
        for k in range(K):
            length = projection(inverse, contexts, i, j, k)
            gain = length * length
            if gain > most * (1.0 + TIE):
                found, most = k, gain
        part = 2.0 / (step + 2.0)
        moved, size = 0.0, 0.0
        for k in range(K):
            change = part * ((1.0 if k == found else 0.0) - shares[k])
            moved += change * change
            size += shares[k] * shares[k]
            shares[k] += change
            bounds[k] *= (1.0 + CLOSE) / (1.0 - part)  # that much of the samples before is left
        if math.sqrt(moved) < DESIGN_TOLERANCE * math.sqrt(size):
            break
    total = 0.0
    for k in range(K):
        shares[k] = best[k] if best[k] >= LEAST_WEIGHT else 0.0
        total += shares[k]
    for k in range(K):
        shares[k] *= (1.0 - SPANNING_SHARE) / total
    for k in spanning:
        shares[k] += SPANNING_SHARE / spanning.shape[0]
    invert(inverse, contexts, shares, 0.0)
    return worst_pair(inverse, contexts, arms)[2]


@kernel
def worst_pair(inverse: Inverse, contexts: FloatArray, arms: IntArray) -> tuple[int, int, float]:
    """The pair of `arms`, two at least, with the largest variance, and that variance."""
    i, j, worst = arms[0], arms[1], -1.0
    for position in range(arms.shape[0] - 1):
        i, j, worst, _, _ = worst_partner(inverse, contexts, arms, position, i, j, worst, np.inf)
    return i, j, worst


@kernel
def worst_pair_again(
    inverse: Inverse, contexts: FloatArray, arms: IntArray, i: int, j: int, bounds: FloatArray
) -> tuple[int, int, float]:
    """`worst_pair`, from a pair that was the worst one before and bounds (K,) on the variances of an arm and those
    after it in `arms`, which are made narrower.

    Arms whose bound is below `enough` are left out. That changes nothing, unless a pair is so near to it that rounding
    decides (see TIE): then all pairs are looked at.
    """
    enough = (1.0 - CLOSE) * variance(inverse, contexts, i, j)
    widest = 0.0
    for k in arms:
        widest = max(widest, inverse.leverages[k])
    i, j, worst = arms[0], arms[1], -1.0
    for position in range(arms.shape[0] - 1):
        k = arms[position]
        # of two vectors, the norm of the difference is at most the sum of the norms
        both = math.sqrt(widest) + math.sqrt(max(0.0, inverse.leverages[k]))
        bounds[k] = min(bounds[k], (1.0 + CLOSE) * both * both)
        if bounds[k] < enough:
            continue
        i, j, worst, most, near = worst_partner(inverse, contexts, arms, position, i, j, worst, enough)
        bounds[k] = (1.0 + CLOSE) * most
        if near:
            return worst_pair(inverse, contexts, arms)
    return i, j, worst


@kernel
def worst_partner(
    inverse: Inverse,
    contexts: FloatArray,
    arms: IntArray,
    position: int,
    i: int,
    j: int,
    worst: float,
    enough: float,
) -> tuple[int, int, float, float, bool]:
    """Pair an arm with all after it.

    Returns the worst pair so far and its variance, the largest of this arm, and whether one is just above `enough`.
    """
    k, most, near = arms[position], -1.0, False
    other = position + 1
    while other < arms.shape[0]:
        if other + 4 <= arms.shape[0] and are_dense(inverse, contexts, k, arms[other : other + 4]):
            a, b, c, d = four_variances(inverse, contexts, k, arms[other : other + 4])
            largest = max(max(a, b), max(c, d))
            most = max(most, largest)
            if largest >= enough:
                for value in (a, b, c, d):
                    near = near or enough <= value <= enough * (1.0 + 2.0 * TIE)
            if largest > worst * (1.0 + TIE):
                for step, value in enumerate((a, b, c, d)):
                    if value > worst * (1.0 + TIE):
                        i, j, worst = k, arms[other + step], value
            other += 4
            continue
        value = variance(inverse, contexts, k, arms[other])
        most = max(most, value)
        near = near or enough <= value <= enough * (1.0 + 2.0 * TIE)
        if value > worst * (1.0 + TIE):
            i, j, worst = k, arms[other], value
        other += 1
    return i, j, worst, most, near


@kernel
def are_dense(inverse: Inverse, contexts: FloatArray, k: int, others: IntArray) -> bool:
    """Whether neither k nor any of the others has a zero at the ends of its context."""
    d = contexts.shape[1]
    if inverse.start[k] != 0 or inverse.stop[k] != d:
        return False
    for j in others:  # noqa: SIM110 numba has no all()
        if inverse.start[j] != 0 or inverse.stop[j] != d:
            return False
    return True


@kernel
def four_variances(
    inverse: Inverse, contexts: FloatArray, k: int, others: IntArray
) -> tuple[float, float, float, float]:
    """`variance` of k and each of four others, all dense: four sums at a time take a processor as long as one."""
    solved = inverse.solved
    a, b, c, d = others[0], others[1], others[2], others[3]
    to_a, to_b, to_c, to_d = 0.0, 0.0, 0.0, 0.0
    for i in range(contexts.shape[1]):
        x, y = contexts[k, i], solved[k, i]
        to_a += (x - contexts[a, i]) * (y - solved[a, i])
        to_b += (x - contexts[b, i]) * (y - solved[b, i])
        to_c += (x - contexts[c, i]) * (y - solved[c, i])
        to_d += (x - contexts[d, i]) * (y - solved[d, i])
    return max(0.0, to_a), max(0.0, to_b), max(0.0, to_c), max(0.0, to_d)


@kernel
def round_shares(shares: FloatArray, n: int, pulls: IntArray) -> None:
    """Write whole numbers that sum to n, near n times the shares: for each arm at least a part 1 - s / n of it.

    s is the number of arms with a share; n is at least s. Pukelsheim, Rieder 1992.
    """
    support = 0
    for share in shares:
        if share > 0.0:
            support += 1
    total = 0
    for k in range(shares.shape[0]):
        # what is whole but for rounding stays so
        pulls[k] = math.ceil((n - 0.5 * support) * shares[k] * (1.0 - TIE)) if shares[k] > 0.0 else 0
        total += pulls[k]
    while total != n:
        found, extreme = -1, np.inf
        for k in range(shares.shape[0]):
            if shares[k] > 0.0:
                ratio = pulls[k] / shares[k] if total < n else -(pulls[k] - 1) / shares[k]
                if found < 0 or ratio < extreme - TIE * abs(extreme):
                    found, extreme = k, ratio
        step = 1 if total < n else -1
        pulls[found] += step
        total += step
