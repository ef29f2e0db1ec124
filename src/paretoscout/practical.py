"""Verdicts that people act on: `goal="practical"`.

An algorithm proves which arms are not beaten by another one in *every* metric. That is little where arms tie in one of
them: of two flags that give the same file none is beaten in every metric, however slow it is.

* j makes k *pointless* if j is better in some metric and worse by at most eps in each.
* k *must go* beside j if j is better by more than eps in some metric and worse by at most eps / 2 in each.
* Two arms are the *same* if they differ by at most eps in each metric.

"Dominated" is said of an arm that is pointless beside another, and is said of each that must go beside one that is
kept. Between the two either verdict is right, so that everything ends: once differences are known to eps / 4, each pair
is one or the other. Whoever is left out has a kept one that is worse by at most eps in each metric. "Pointless" is not
transitive: three arms may be pointless each beside the next, in a *ring*, which stays whole. `docs/verdicts.md` has the
proof.

All of it follows from intervals that hold together, and from what the algorithm eliminated. Not every interval tells. A
number that was the same in all samples has an interval of no width, which proves something only if the number is
exact, such as the size of a file. A value below what can be measured is known from one side only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heapreplace
from typing import Any

import numpy as np

from .kernels.arrays import BoolArray, FloatArray, IntArray
from .kernels.decisions import DOMINATED, FRONT, SAME, UNDECIDED
from .kernels.dispatch import Verdicts
from .kernels.practical import (
    COVERED,
    FAN_BITS,
    LEAF_BITS,
    LEFT,
    OUT,
    OUTDONE,
    POINTLESS,
    STANDS,
    TRIED_FIRST,
    Ends,
    Tree,
    escape_all,
    firsts_beside,
    keep_first_of_same,
    leave_beside_standing,
    outlook,
    rings,
    settle_once,
)

#: Of delta: what the algorithm eliminates has this share, the intervals have the rest.
SHARE_OF_VERDICTS = 0.5
#: Means of equal numbers may differ by this share.
ROUNDING = 1e-12
#: After so many samples a number that never varied is taken for one that never will.
ENOUGH_TO_TELL = 20
#: Verdicts are looked at when there is so much more evidence: that costs at most 2% of the samples.
LOOK_AFTER = 1.02
#: Where many arms are undecided, a look waits for one more sample for each so many of them: it costs what they are.
LOOK_ARMS = 32
#: Beside so many pairs of undecided arms and arms that stand nobody looks ahead: all that stand are measured in turn.
MOST_PAIRS = 2**22
#: There are no intervals of pairs.
NOT_OF_PAIRS = np.empty((0, 0, 0))
#: The arrays of a judgement, in their order.
KEPT = ("status", "rival", "needs", "bearing")


@dataclass(frozen=True, eq=False)
class Judgement:
    """The verdicts on K arms, and what is to be measured to end them."""

    status: IntArray  # (K,) UNDECIDED, FRONT, DOMINATED or SAME
    rival: IntArray  # (K,) beside whom it is pointless, as whom it is the same, or on whom it hangs; -1: nobody
    needs: FloatArray  # (K,) how many more samples of each it takes, about; infinite: nobody can tell
    bearing: IntArray  # the arms to measure next, in turn
    rings: tuple[tuple[int, ...], ...] = ()  # arms that are pointless each beside another of them, and stay

    @cached_property
    def undecided(self) -> int:
        """How many arms have no verdict yet."""
        return int((self.status == UNDECIDED).sum())

    @property
    def decided(self) -> bool:
        """Whether every arm has its verdict."""
        return not self.undecided


def never_varied(values: FloatArray, radii: FloatArray, n: Any, certain: BoolArray) -> Any:
    """(K, L): whether a number that is not certain was the same in all of its n samples, or had too few values."""
    still = (radii <= ROUNDING * np.abs(values)) & (n > 1)
    hidden = np.isinf(radii) & (n >= ENOUGH_TO_TELL)  # its noise cannot be estimated
    return (still | hidden) & ~certain


def among(said: Verdicts, places: Sequence[int] | IntArray) -> Verdicts:
    """Return what an algorithm says of some of its arms, by their places; who is a rival of these is one of them."""
    where = np.full(len(said.status), -1)
    where[places] = np.arange(len(places))
    rival = np.where(said.rival >= 0, where[said.rival], -1)
    return Verdicts(said.status[places], rival[places], said.estimates[places], said.radii[places], said.counts[places])


def judge(
    said: Verdicts,
    eps: FloatArray,
    certain: BoolArray,
    censored: BoolArray | None = None,
    n: IntArray | None = None,
    apart: FloatArray | None = None,
    still: BoolArray | None = None,
) -> Judgement:
    """Return the verdicts that people act on, by what an algorithm says.

    certain: (L,) or (K, L) whether a number that never varied is. censored: (K, L) whether a value may be better than
    what was told. n: (K, L) how often each was measured; None: as often as its arm. apart: (K, K, L) how much better
    j is than k at least, [k, j], where the algorithm knows that of pairs; what it knows of each arm is not used then.
    still: (K, L) of which numbers more samples tell nothing, because they never vary; None: as their intervals say.
    """
    bounds = np.zeros(said.radii.shape, np.bool_) if censored is None else censored
    n = said.counts[:, None] if n is None else n
    if still is None:
        still = never_varied(said.estimates, said.radii, n, certain) & (apart is None)
    still = still & ~bounds
    ends = _ends(said.estimates, np.where(still, np.inf, said.radii), bounds, eps, apart)
    # an algorithm takes a bound for a value: what may be better than that need not be beaten
    alive = np.flatnonzero((said.status != DOMINATED) | bounds.any(axis=1))
    settled = _settle(ends, alive, said.counts)
    status, rival = said.status.copy(), said.rival.copy()
    status[alive], rival[alive] = settled.status[alive], settled.rival[alive]
    stands = settled.stands
    standing = _mask(stands, len(status))
    gone = np.flatnonzero((status == DOMINATED) & ~standing[rival])
    better = firsts_beside(POINTLESS, ends, gone, stands, tree_of(ends, stands), standing, 1)
    rival[gone] = np.where(better >= 0, better, rival[gone])  # rather one that is worth having
    if apart is not None:
        for k in np.flatnonzero((status == DOMINATED) & standing[rival]).tolist():
            if np.all(np.minimum(apart[k, rival[k]], apart[rival[k], k]) >= -eps):
                status[k] = SAME  # it is beaten, by what does not matter
    open_ = alive[status[alive] == UNDECIDED]
    unknown, often = still | bounds, said.counts >= ENOUGH_TO_TELL
    if unknown.any() and often[open_].any():  # where verdicts hang on what is unknown, more samples are of no use
        known = _ends(said.estimates, np.where(unknown, 0.0, said.radii), np.zeros_like(bounds), eps)
        then = _settle(known, alive, said.counts)
        open_ = open_[~often[open_] | (then.status[open_] == UNDECIDED)]
    needs = np.where(status == UNDECIDED, np.inf, 0.0)
    more = np.zeros(len(status))
    if len(open_) * len(stands) > MOST_PAIRS:
        more[stands] = 1.0
        rival[open_] = np.where(standing[said.rival[open_]], said.rival[open_], -1)
    else:
        times, hangs = np.ones(len(status)), np.full(len(status), -1)
        outlook(ends, said.estimates, open_, stands, hangs, times)
        rival[hangs >= 0] = hangs[hangs >= 0]
        more = np.where(times > 1.0, np.ceil(np.maximum(said.counts, 1) * (times - 1.0)), 0.0)
        more[open_] = np.maximum(1.0, more[open_])
    needs[more > 0.0] = more[more > 0.0]
    found = tuple(tuple(ring.tolist()) for ring in settled.rings)
    return Judgement(status, rival, needs, np.flatnonzero(more > 0.0), found)


def are_worth_having(y: FloatArray, kept: BoolArray, eps: FloatArray) -> bool:
    """Whether a set of arms (K,) is a right answer, by the true means; larger is better.

    Whoever is left out has a kept one that is worse by at most eps in each metric. Of the kept ones nobody must go
    beside another, unless both are in a ring.
    """
    ends = Ends(y, y, _rounding(y, eps), eps, NOT_OF_PAIRS)
    there, left_out = np.flatnonzero(kept), np.flatnonzero(~kept)
    tree, safe, ring = tree_of(ends, there), np.zeros(len(y), np.bool_), np.full(len(y), -1)
    if (firsts_beside(COVERED, ends, left_out, there, tree, kept, 1) < 0).any():
        return False
    escape_all(ends, there, tree, kept, ring, safe)
    if not safe[there].all():
        rings(POINTLESS, ends, there, tree, ring)
        escape_all(ends, there, tree, kept, ring, safe)
    return bool(safe[there].all())


def wrong_ones(
    arms: Sequence[str],
    verdicts: Sequence[str],
    rivals: Sequence[str | None],
    means: Mapping[str, Any],
    eps: FloatArray,
) -> list[str]:
    """Return the arms whose verdicts are wrong, by the true means (larger is better); a ring counts as wrong.

    On the front, though it must go beside another one there; dominated, though it is not pointless beside its rival;
    the same as its rival, though they differ by more than eps.
    """
    front = [arm for arm, verdict in zip(arms, verdicts, strict=True) if verdict == "front"]
    wrong = []
    for arm, verdict, rival in zip(arms, verdicts, rivals, strict=True):
        leads = [means[other] - means[arm] for other in front]
        lead = np.full(len(eps), np.nan) if rival is None else means[rival] - means[arm]
        right = {
            "undecided": True,
            "front": not any((lead > eps).any() and (lead >= -0.5 * eps).all() for lead in leads),
            "dominated": bool((lead >= -eps).all() and (lead > 0).any()),
            "same": bool((np.abs(lead) <= eps).all()),
        }
        if not right[verdict]:
            wrong.append(arm)
    return wrong


def _ends(
    values: FloatArray, radii: FloatArray, bounds: BoolArray, eps: FloatArray, apart: FloatArray | None = None
) -> Ends:
    """Return intervals by their ends (K, L), and what rounding may do to each."""
    high = np.where(bounds, np.inf, values + radii)
    return Ends(values - radii, high, _rounding(values, eps), eps, NOT_OF_PAIRS if apart is None else apart)


def _rounding(values: FloatArray, eps: FloatArray) -> FloatArray:
    """What rounding may do to values; nothing that matters beside eps."""
    slack: FloatArray = np.minimum(ROUNDING * np.abs(values), np.where(eps > 0.0, 1e-3 * eps, np.inf))
    return slack


def _mask(arms: IntArray, n_arms: int) -> BoolArray:
    """(n_arms + 1,): whether an arm is one of these; nobody (-1) is none."""
    mask = np.zeros(n_arms + 1, np.bool_)
    mask[arms] = True
    return mask


def tree_of(ends: Ends, arms: IntArray) -> Tree:
    """Return some arms as a tree: sorted by their lower ends in one metric, then in another one; few, as a list."""
    n, L = len(arms), len(ends.eps)
    if n <= 1 << LEAF_BITS or len(ends.apart):
        return Tree(arms, ends.low[:0], ends.high[:0], np.empty(0, np.int64), np.zeros(L))
    order = np.argsort(-ends.low[arms, 0], kind="stable")
    if L > 1:
        strip = np.empty(n, np.int64)
        strip[order] = np.arange(n) // max(1, int(np.sqrt(n << LEAF_BITS)))
        order = np.lexsort((-ends.low[arms, 1], strip))
    arms = arms[order]
    parts = np.stack([ends.low[arms], ends.high[arms]])
    levels, size = [parts[:, :0]], 1 << LEAF_BITS
    while parts.shape[1] > 1:
        parts = np.maximum.reduceat(parts, np.arange(0, parts.shape[1], size), axis=1)
        levels.append(parts)
        size = 1 << FAN_BITS
    low, high = np.concatenate(levels, axis=1)
    begins = np.cumsum([level.shape[1] for level in levels])[:-1]
    return Tree(arms, low, high, begins, ends.slack[arms].max(axis=0))


@dataclass(frozen=True, eq=False)
class _Settled:
    """What intervals prove of some of K arms; of others it says nothing."""

    status: IntArray  # (K,)
    rival: IntArray  # (K,)
    stands: IntArray  # those who are kept, or may be
    rings: list[IntArray]


def _settle(ends: Ends, alive: IntArray, counts: IntArray) -> _Settled:
    """Return who is kept and who is left out.

    Who is outdone by nobody that is left stands, and who is outdone by one that stands is out. Where everybody is
    outdone, a ring stands that nobody outside of it outdoes. Then, of two that stand and are the same, the one named
    later leaves, if nobody who is out needs it.
    """
    K = len(counts)
    ring, found = np.full(K, -1), list[IntArray]()
    where = _who_stands(ends, alive, ring, found)
    stands, listed, out = where == STANDS, np.flatnonzero(where == STANDS), np.flatnonzero(where == OUT)
    tree = tree_of(ends, listed)
    last = firsts_beside(POINTLESS, ends, out, listed, tree, stands, -1)
    by_last = np.argsort(last, kind="stable")
    same_as = np.full(K, -1)
    keep_first_of_same(ends, listed, tree, ring >= 0, out[by_last], last[by_last], stands, same_as)
    status, rival = np.where(same_as >= 0, SAME, UNDECIDED), same_as
    status[out] = DOMINATED
    rival[out] = firsts_beside(POINTLESS, ends, out, listed, tree, stands, 1)
    safe = np.zeros(K, np.bool_)
    escape_all(ends, listed, tree, stands, ring, safe)
    status[safe & (counts > 0)] = FRONT
    return _Settled(status, rival, np.flatnonzero(stands), found)


def _who_stands(ends: Ends, alive: IntArray, ring: IntArray, found: list[IntArray]) -> IntArray:
    """Return what becomes of each arm (K,); of those that are not alive, -1. Rings that are found are numbered."""
    where, waits_at = np.full(len(ring), -1), np.zeros(len(ring), np.int64)
    where[alive] = LEFT
    first = np.zeros(1 + TRIED_FIRST, np.int64)
    tree = tree_of(ends, alive)
    left = alive[np.argsort(-ends.low[alive].sum(axis=1), kind="stable")]  # who outdoes others comes early
    while len(left):
        changed = settle_once(ends, left, tree, where, waits_at, first) or leave_beside_standing(
            ends, left, tree, where
        )
        if not changed:
            label = np.full(len(ring), -1)
            last = rings(OUTDONE, ends, left, tree_of(ends, left), label)
            for number in np.flatnonzero(last):
                members = np.flatnonzero(label == number)
                ring[members], where[members] = len(found), STANDS
                found.append(members)
        left = left[where[left] == LEFT]
    found.sort(key=lambda members: int(members[0]))
    return where


@dataclass(eq=False)
class Judge:
    """Practical verdicts while evidence comes in: looked at now and then, the same in a simulation and in a study."""

    judgement: Judgement | None = None
    next_look: int = 1  # number of samples
    was_done: bool = False  # the algorithm was, at the last look

    def header(self) -> dict[str, Any]:
        """Return what a snapshot keeps of it besides its arrays."""
        rings = None if self.judgement is None else self.judgement.rings
        return {"next_look": self.next_look, "was_done": self.was_done, "rings": rings}

    def arrays(self) -> dict[str, Any]:
        """Return its arrays for a snapshot, by name."""
        return {} if self.judgement is None else {f"judged.{name}": getattr(self.judgement, name) for name in KEPT}

    @classmethod
    def of(cls, header: dict[str, Any], arrays: dict[str, Any]) -> Judge:
        """Return the one that was kept, and take its arrays away."""
        judgement = None
        if header["rings"] is not None:
            kept = {name: arrays.pop(f"judged.{name}") for name in KEPT}
            judgement = Judgement(**kept, rings=tuple(map(tuple, header["rings"])))
        return cls(judgement, header["next_look"], header["was_done"])

    def due(self, samples: int, done: bool) -> bool:
        """Whether it is time to look: there is more evidence, or the algorithm has come to its end."""
        return samples >= self.next_look or (done and not self.was_done)

    def look(
        self,
        samples: int,
        done: bool,
        said: Verdicts,
        eps: FloatArray,
        certain: BoolArray,
        censored: BoolArray | None = None,
        n: IntArray | None = None,
        apart: FloatArray | None = None,
        still: BoolArray | None = None,
    ) -> None:
        """Judge by what the algorithm says now; the rest is as in `judge`."""
        self.judgement = judge(said, eps, certain, censored, n, apart, still)
        self.next_look = int(LOOK_AFTER * samples) + 1 + self.judgement.undecided // LOOK_ARMS
        self.was_done = done

    @property
    def decided(self) -> bool:
        """Whether every arm had its verdict at the last look."""
        return self.judgement is not None and self.judgement.decided

    def turns(self, counts: Sequence[int] | IntArray, n: int, most: int | None = None) -> list[int]:
        """Return the next n arms to measure, once the algorithm has come to its end: the least measured first.

        Nobody is measured more than `most` times, if that is given. None: nothing is of use.
        """
        bearing = np.empty(0, np.int64) if self.judgement is None else self.judgement.bearing
        measured = np.asarray(counts)[bearing]
        if most is not None:
            left = measured < most
            bearing, measured, n = bearing[left], measured[left], min(n, int((most - measured[left]).sum()))
        if n == 1 and len(bearing):
            return [int(bearing[measured.argmin()])]
        turns = list(zip(measured.tolist(), bearing.tolist(), strict=True))
        heapify(turns)
        chosen = []
        for _ in range(n if turns else 0):
            count, arm = turns[0]
            heapreplace(turns, (count + 1, arm))
            chosen.append(arm)  # with `most` they are enough, because the least measured comes first
        return chosen
