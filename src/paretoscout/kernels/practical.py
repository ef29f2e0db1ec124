"""What intervals prove of pairs of arms, for verdicts that people act on; see `practical.py` for the rule.

`low` and `high` are the ends of the intervals (K, L), larger is better, infinite where nothing is known; `slack` is
what rounding may do to each. On the event that every interval holds, of arm k beside arm j:

* `POINTLESS`: j is better than k in some metric, and worse by at most eps in each;
* escaped: k need not be called dominated beside j, which is worse by more than eps / 2 in some metric, or better by
  at most eps in each;
* `SAME_AS`: the two differ by at most eps in each metric.

And `OUTDONE`: k is pointless, and it is not proven that j is better by at most eps in each metric.

Nobody looks at all pairs. Whoever makes k pointless, or is the same, has lower ends above the upper ends of k, but for
eps. A `Tree` holds the largest ends of each 16 arms, 256 arms and so on, and passes over all whom these rule out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray
from .compile import allocating_kernel, kernel, short_kernel

#: An interval that is not there yet is there, and tells, after so many times the samples, about.
BEGINNING = 4.0

#: Relations of k to j. All of them ask that j is worse by at most eps in each metric.
POINTLESS, OUTDONE, SAME_AS, COVERED = 0, 1, 2, 3
#: What becomes of an arm.
LEFT, STANDS, OUT = 0, 1, 2
#: Arms in a leaf of a tree, and parts of each larger part of it: 2 to the power of these.
LEAF_BITS, FAN_BITS = 4, 4
#: So many arms are tried before a tree is: where many would do, one of these does.
TRIED_FIRST = 64


class Ends(NamedTuple):
    """The intervals of all arms."""

    low: FloatArray  # (K, L)
    high: FloatArray  # (K, L)
    slack: FloatArray  # (K, L)
    eps: FloatArray  # (L,)
    apart: FloatArray  # (K, K, L) how much better j is than k at least, [k, j], where pairs have intervals; else empty


class Tree(NamedTuple):
    """Some arms, near ones beside each other, and the largest ends in each part of them."""

    arms: IntArray  # (n,)
    low: FloatArray  # (parts, L) largest ends: of all leaves, then of all parts of the next level, up to one part
    high: FloatArray  # (parts, L)
    begins: IntArray  # (levels,) where each level begins
    slack: FloatArray  # (L,) the largest of them


@short_kernel
def lead_between(ends: Ends, k: int, j: int, metric: int) -> tuple[float, float]:
    """By how much j is better than k, at least and at most."""
    if ends.apart.shape[0] > 0:
        return ends.apart[k, j, metric], -ends.apart[j, k, metric]
    return ends.low[j, metric] - ends.high[k, metric], ends.high[j, metric] - ends.low[k, metric]


@kernel
def relation(ends: Ends, k: int, j: int) -> tuple[bool, bool, bool, bool]:
    """Whether j is better somewhere, worse by eps at most, somewhere worse by over eps / 2, better by eps at most."""
    better, covers, clearly_worse, hardly_better = False, True, False, True
    slack, eps = ends.slack, ends.eps
    for metric in range(eps.shape[0]):
        tiny = slack[k, metric] + slack[j, metric]
        least, most = lead_between(ends, k, j, metric)
        better = better or least > tiny
        covers = covers and least >= -eps[metric] - tiny
        clearly_worse = clearly_worse or most < -0.5 * eps[metric] - tiny
        hardly_better = hardly_better and most <= eps[metric] + tiny
    return better, covers, clearly_worse, hardly_better


@kernel
def holds(which: int, ends: Ends, k: int, j: int) -> bool:
    """Whether arm k is in a relation to arm j."""
    better, covers, _worse, hardly_better = relation(ends, k, j)
    if j == k or not covers:
        return False
    if which == POINTLESS:
        return better
    if which == OUTDONE:
        return better and not hardly_better
    if which == SAME_AS:
        return hardly_better
    return better or hardly_better


@kernel
def escapes(ends: Ends, k: int, j: int) -> bool:
    """Whether k need not be called dominated beside j."""
    _better, _covers, clearly_worse, hardly_better = relation(ends, k, j)
    return clearly_worse or hardly_better


@kernel
def beyond(which: int, tree: Tree, ends: Ends, k: int, place: int) -> int:
    """Return the next place in a tree at which there may be somebody to whom k is in a relation.

    That is `place` itself, or the end of the largest part of the tree which begins there and has nobody.
    """
    for level in range(tree.begins.shape[0] - 1, -1, -1):
        bits = LEAF_BITS + FAN_BITS * level
        if place & ((1 << bits) - 1) == 0:
            part = tree.begins[level] + (place >> bits)
            better, hardly_better = which > OUTDONE, which == OUTDONE
            for metric in range(ends.eps.shape[0]):
                tiny = ends.slack[k, metric] + tree.slack[metric]
                least = tree.low[part, metric] - ends.high[k, metric]
                if not least >= -ends.eps[metric] - tiny:
                    return place + (1 << bits)
                better = better or least > 0.0
                hardly_better = hardly_better and tree.high[part, metric] - ends.low[k, metric] <= ends.eps[metric]
            if hardly_better or not better:
                return place + (1 << bits)
    return place


@kernel
def beyond_escaped(tree: Tree, ends: Ends, k: int, place: int) -> int:
    """Return the next place in a tree at which there may be somebody whom k does not escape."""
    for level in range(tree.begins.shape[0] - 1, -1, -1):
        bits = LEAF_BITS + FAN_BITS * level
        if place & ((1 << bits) - 1) == 0:
            part = tree.begins[level] + (place >> bits)
            clearly_worse, hardly_better = False, True
            for metric in range(ends.eps.shape[0]):
                tiny = ends.slack[k, metric] + tree.slack[metric]
                most = tree.high[part, metric] - ends.low[k, metric]
                clearly_worse = clearly_worse or most < -0.5 * ends.eps[metric] - tiny
                hardly_better = hardly_better and most <= ends.eps[metric]
            if clearly_worse or hardly_better:
                return place + (1 << bits)
    return place


@kernel
def first_beside(which: int, ends: Ends, k: int, listed: IntArray, tree: Tree, stands: BoolArray, step: int) -> int:
    """Return the first arm (step 1) or the last one (step -1) that stands and to which k is in a relation; -1: none.

    listed: the arms of the tree in the order of their numbers; some may not stand any more.
    """
    n = listed.shape[0]
    for turn in range(min(n, TRIED_FIRST)):
        j = listed[turn] if step > 0 else listed[n - 1 - turn]
        if stands[j] and holds(which, ends, k, j):
            return j
    found, place = -1, 0
    while place < n:
        after = beyond(which, tree, ends, k, place)
        if after > place:
            place = after
            continue
        j = tree.arms[place]
        if stands[j] and (found < 0 or step * j < step * found) and holds(which, ends, k, j):
            found = j
        place += 1
    return found


@allocating_kernel
def firsts_beside(
    which: int, ends: Ends, arms: IntArray, listed: IntArray, tree: Tree, stands: BoolArray, step: int
) -> IntArray:
    """Return `first_beside` of each of `arms`."""
    found = np.empty(arms.shape[0], np.int64)
    for position in range(arms.shape[0]):
        found[position] = first_beside(which, ends, arms[position], listed, tree, stands, step)
    return found


# Who stands


@kernel
def settle_once(ends: Ends, turns: IntArray, tree: Tree, where: IntArray, waits_at: IntArray, first: IntArray) -> bool:
    """Go through the arms that are left, and return whether anything became known of any.

    An arm that is outdone by nobody who is left stands; one that is outdone by one that stands is out. waits_at: the
    place in the tree of somebody who is left and outdoes an arm. first: how many arms stood first, and which.
    """
    changed = False
    n = tree.arms.shape[0]
    for k in turns:
        if where[k] != LEFT:
            continue
        place = beyond(OUTDONE, tree, ends, k, 0) if waits_at[k] == 0 else waits_at[k]
        if place < n:
            for turn in range(first[0]):
                if holds(OUTDONE, ends, k, first[1 + turn]):
                    where[k] = OUT
                    break
        while place < n and where[k] == LEFT:
            after = beyond(OUTDONE, tree, ends, k, place)
            if after > place:
                place = after
                continue
            j = tree.arms[place]
            if where[j] != OUT and holds(OUTDONE, ends, k, j):
                if where[j] == LEFT:
                    break
                where[k] = OUT
            place += 1
        waits_at[k] = place
        if where[k] == LEFT and place >= n:
            where[k] = STANDS
            if first[0] < TRIED_FIRST:
                first[0] += 1
                first[first[0]] = k
        changed = changed or where[k] != LEFT
    return changed


@kernel
def leave_beside_standing(ends: Ends, left: IntArray, tree: Tree, where: IntArray) -> bool:
    """Send out whoever is outdone by one that stands; return whether anybody is."""
    changed = False
    for k in left:
        place = 0
        while place < tree.arms.shape[0] and where[k] == LEFT:
            after = beyond(OUTDONE, tree, ends, k, place)
            if after > place:
                place = after
                continue
            j = tree.arms[place]
            if where[j] == STANDS and holds(OUTDONE, ends, k, j):
                where[k], changed = OUT, True
            place += 1
    return changed


@allocating_kernel
def rings(which: int, ends: Ends, arms: IntArray, tree: Tree, label: IntArray) -> BoolArray:
    """Number the strongly connected components of a relation among the arms of a tree; return which lead nowhere else.

    Tarjan's algorithm, with a stack of its own: edges are found as they are needed, never kept. label (K,): written for
    `arms`; it must be -1 before.
    """
    n, K = arms.shape[0], label.shape[0]
    index, root = np.full(K, -1), np.zeros(K, np.int64)
    place = np.zeros(K, np.int64)
    path, stack = np.empty(n, np.int64), np.empty(n, np.int64)
    leads_out, last = np.zeros(K, np.bool_), np.ones(n, np.bool_)
    n_path = n_stack = n_seen = n_found = 0
    for start in arms:
        if index[start] >= 0:
            continue
        path[0], n_path = start, 1
        while n_path > 0:
            k = path[n_path - 1]
            if index[k] < 0:
                index[k] = root[k] = n_seen
                n_seen += 1
                stack[n_stack] = k
                n_stack += 1
            deeper = False
            while place[k] < n:
                after = beyond(which, tree, ends, k, place[k])
                if after > place[k]:
                    place[k] = after
                    continue
                j = tree.arms[place[k]]
                if holds(which, ends, k, j):
                    if index[j] < 0:
                        path[n_path] = j
                        n_path += 1
                        deeper = True
                        break  # the same place again, when j is known
                    if label[j] >= 0:
                        leads_out[k] = True
                    else:
                        root[k] = min(root[k], root[j])
                place[k] += 1
            if deeper:
                continue
            n_path -= 1
            if root[k] == index[k]:
                j = -1
                while j != k:
                    n_stack -= 1
                    j = stack[n_stack]
                    label[j] = n_found
                    last[n_found] = last[n_found] and not leads_out[j]
                n_found += 1
    return last[:n_found]


@kernel
def keep_first_of_same(
    ends: Ends,
    listed: IntArray,
    tree: Tree,
    ringed: BoolArray,
    out: IntArray,
    out_last: IntArray,
    stands: BoolArray,
    same_as: IntArray,
) -> None:
    """Of two that stand and are the same, let the one named later leave, if nobody who is out needs it.

    out: who is out, in the order of `out_last`, the last one that stands beside which each is pointless. Whoever is out
    may need that one alone: arms leave in their order, so of all beside which it is pointless the last one leaves last.
    """
    begin = 0
    for k in listed:
        while begin < out.shape[0] and out_last[begin] < k:
            begin += 1
        if ringed[k]:
            continue
        first = first_beside(SAME_AS, ends, k, listed, tree, stands, 1)
        if first < 0 or first > k:
            continue
        stands[k] = False
        position = begin
        while position < out.shape[0] and out_last[position] == k and not stands[k]:
            if first_beside(POINTLESS, ends, out[position], listed, tree, stands, 1) < 0:
                stands[k] = True
            position += 1
        if not stands[k]:
            same_as[k] = first


@kernel
def escape_all(ends: Ends, listed: IntArray, tree: Tree, stands: BoolArray, ring: IntArray, safe: BoolArray) -> None:
    """Write which of the arms that stand escape all others that do, but for those in the same ring."""
    hardest = -1
    for k in listed:
        if not stands[k]:
            continue
        safe[k] = (
            hardest < 0 or hardest == k or escapes(ends, k, hardest) or (ring[k] >= 0 and ring[k] == ring[hardest])
        )
        place = 0
        while safe[k] and place < tree.arms.shape[0]:
            after = beyond_escaped(tree, ends, k, place)
            if after > place:
                place = after
                continue
            j = tree.arms[place]
            if stands[j] and j != k and not escapes(ends, k, j) and (ring[k] < 0 or ring[k] != ring[j]):
                safe[k], hardest = False, j
            place += 1


# What is to be measured


@kernel
def outlook(
    ends: Ends, values: FloatArray, undecided: IntArray, standing: IntArray, rival: IntArray, times: FloatArray
) -> None:
    """Write who each undecided arm hangs on, and by which factor samples of each arm must grow to decide all; (K,).

    Intervals shrink by s = 1 / sqrt(factor) around the estimates. Then an arm is pointless beside one that stands, or
    it escapes all of these, whichever comes first. `times` is 1 where more samples of an arm tell nothing of use.
    """
    times[:] = 1.0
    for k in undecided:
        out, beside, least, hardest = 0.0, -1, np.inf, -1
        for j in standing:
            if j != k and not escapes(ends, k, j):
                s, t = shrinks_to(ends, values, k, j)
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
            if j != k and not escapes(ends, k, j):
                grow(times, k, j, shrinks_to(ends, values, k, j)[1])


@kernel
def grow(times: FloatArray, k: int, j: int, s: float) -> None:
    """Let samples of two arms grow until intervals are s times as wide."""
    factor = np.inf if s <= 0.0 else max(1.0 / (s * s), 1.0 + 1e-9)
    times[k], times[j] = max(times[k], factor), max(times[j], factor)


@kernel
def shrinks_to(ends: Ends, values: FloatArray, k: int, j: int) -> tuple[float, float]:
    """How narrow intervals must get, as shares of what they are, until k is pointless beside j, and until it escapes.

    0: they never do. The estimates are taken for the truth.
    """
    better, covers, worse, hardly = 0.0, np.inf, 0.0, np.inf
    eps = ends.eps
    for metric in range(eps.shape[0]):
        lead = values[j, metric] - values[k, metric]
        least, most = lead_between(ends, k, j, metric)
        down, up = lead - least, most - lead  # from the estimate to the lower end, and to the upper one
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
