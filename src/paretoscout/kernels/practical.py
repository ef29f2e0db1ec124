"""What intervals prove of pairs of arms, for verdicts that people act on; see `practical.py` for the rule.

`low` and `high` are the ends of the intervals (A, L), larger is better, infinite where nothing is known; `slack` is
what rounding may do to each. On the event that every interval holds, in row k and column j:

* `pointless`: j is better than k in some metric, and worse by at most eps in each;
* `escaped`: k need not be called dominated beside j, which is worse by more than eps / 2 in some metric, or better by
  at most eps in each;
* `same`: the two differ by at most eps in each metric.

And `outdone`: k is pointless, and it is not proven that j is better by at most eps in each metric.
"""

from __future__ import annotations

import math

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray
from .compile import allocating_kernel, kernel

#: An interval that is not there yet is there, and tells, after so many times the samples, about.
BEGINNING = 4.0


@allocating_kernel
def relations(
    low: FloatArray, high: FloatArray, slack: FloatArray, eps: FloatArray
) -> tuple[BoolArray, BoolArray, BoolArray, BoolArray]:
    """Return `pointless`, `outdone`, `escaped` and `same`, each (A, A)."""
    A = low.shape[0]
    pointless, outdone = np.zeros((A, A), np.bool_), np.zeros((A, A), np.bool_)
    escaped, same = np.zeros((A, A), np.bool_), np.zeros((A, A), np.bool_)
    for k in range(A):
        for j in range(A):
            if j != k:
                better, covers, clearly_worse, hardly_better = relation(low, high, slack, eps, k, j)
                pointless[k, j] = better and covers
                outdone[k, j] = better and covers and not hardly_better
                escaped[k, j] = clearly_worse or hardly_better
                same[k, j] = covers and hardly_better
    return pointless, outdone, escaped, same


@kernel
def relation(
    low: FloatArray, high: FloatArray, slack: FloatArray, eps: FloatArray, k: int, j: int
) -> tuple[bool, bool, bool, bool]:
    """Whether j is better somewhere, worse by eps at most, somewhere worse by over eps / 2, better by eps at most."""
    better, covers, clearly_worse, hardly_better = False, True, False, True
    for metric in range(eps.shape[0]):
        tiny = slack[k, metric] + slack[j, metric]
        least, most = low[j, metric] - high[k, metric], high[j, metric] - low[k, metric]
        better = better or least > tiny
        covers = covers and least >= -eps[metric] - tiny
        clearly_worse = clearly_worse or most < -0.5 * eps[metric] - tiny
        hardly_better = hardly_better and most <= eps[metric] + tiny
    return better, covers, clearly_worse, hardly_better


@allocating_kernel
def first_better(
    low: FloatArray, high: FloatArray, slack: FloatArray, eps: FloatArray, arms: IntArray, rivals: IntArray
) -> IntArray:
    """Return for each of `arms` the first of `rivals` beside which it is pointless; -1: none."""
    found = np.full(arms.shape[0], -1)
    for position in range(arms.shape[0]):
        for j in rivals:
            better, covers, _worse, _better = relation(low, high, slack, eps, arms[position], j)
            if better and covers:
                found[position] = j
                break
    return found


@kernel
def outlook(
    low: FloatArray,
    high: FloatArray,
    values: FloatArray,
    eps: FloatArray,
    escaped: BoolArray,
    undecided: IntArray,
    standing: IntArray,
    rival: IntArray,
    times: FloatArray,
) -> None:
    """Write who each undecided arm hangs on, and by which factor samples of each arm must grow to decide all; (A,).

    Intervals shrink by s = 1 / sqrt(factor) around the estimates. Then an arm is pointless beside one that stands, or
    it escapes all of these, whichever comes first. `times` is 1 where more samples of an arm tell nothing of use.
    """
    times[:] = 1.0
    for k in undecided:
        out, beside, least, hardest = 0.0, -1, np.inf, -1
        for j in standing:
            if j != k and not escaped[k, j]:
                s, t = shrinks_to(low, high, values, eps, k, j)
                if s > out:
                    out, beside = s, j
                if t < least:
                    least, hardest = t, j
        if hardest < 0:  # it escaped all of them
            continue
        if beside >= 0 and out >= least:
            rival[k] = beside
            grow(times, k, beside, out)
            continue
        rival[k] = hardest
        for j in standing:
            if j != k and not escaped[k, j]:
                grow(times, k, j, shrinks_to(low, high, values, eps, k, j)[1])


@kernel
def grow(times: FloatArray, k: int, j: int, s: float) -> None:
    """Let samples of two arms grow until intervals are s times as wide."""
    factor = np.inf if s <= 0.0 else max(1.0 / (s * s), 1.0 + 1e-9)
    times[k], times[j] = max(times[k], factor), max(times[j], factor)


@kernel
def shrinks_to(
    low: FloatArray, high: FloatArray, values: FloatArray, eps: FloatArray, k: int, j: int
) -> tuple[float, float]:
    """How narrow intervals must get, as shares of what they are, until k is pointless beside j, and until it escapes.

    0: they never do. The estimates are taken for the truth.
    """
    better, covers, worse, hardly = 0.0, np.inf, 0.0, np.inf
    for metric in range(eps.shape[0]):
        lead = values[j, metric] - values[k, metric]
        down = lead - (low[j, metric] - high[k, metric])  # from the estimate to the lower end
        up = (high[j, metric] - low[k, metric]) - lead
        better = max(better, reach(lead, down, True))
        covers = min(covers, reach(lead + eps[metric], down, False))
        worse = max(worse, reach(-0.5 * eps[metric] - lead, up, True))
        hardly = min(hardly, reach(eps[metric] - lead, up, False))
    return min(better, covers), max(worse, hardly)


@kernel
def reach(room: float, width: float, strictly: bool) -> float:
    """Which share of a width has room."""
    if room < 0.0 or (strictly and room == 0.0):
        return 0.0
    if width <= 0.0:
        return np.inf
    return 1.0 / math.sqrt(BEGINNING) if width == np.inf else room / width
