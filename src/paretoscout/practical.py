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
from typing import Any

import numpy as np

from .kernels.arrays import BoolArray, FloatArray, IntArray
from .kernels.decisions import DOMINATED, FRONT, SAME, UNDECIDED
from .kernels.dispatch import Verdicts
from .kernels.practical import first_better, outlook, relations

#: Of delta: what the algorithm eliminates has this share, the intervals have the rest.
SHARE_OF_VERDICTS = 0.5
#: Means of equal numbers may differ by this share.
ROUNDING = 1e-12
#: After so many samples a number that never varied is taken for one that never will.
ENOUGH_TO_TELL = 20
#: Verdicts are looked at when there is so much more evidence: that costs at most 2% of the samples.
LOOK_AFTER = 1.02
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

    @property
    def decided(self) -> bool:
        """Whether every arm has its verdict."""
        return not (self.status == UNDECIDED).any()


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
) -> Judgement:
    """Return the verdicts that people act on, by what an algorithm says.

    certain: (L,) or (K, L) whether a number that never varied is. censored: (K, L) whether a value may be better than
    what was told. n: (K, L) how often each was measured; None: as often as its arm.
    """
    bounds = np.zeros(said.radii.shape, np.bool_) if censored is None else censored
    n = said.counts[:, None] if n is None else n
    still = never_varied(said.estimates, said.radii, n, certain) & ~bounds
    ends = _Ends.of(said.estimates, np.where(still, np.inf, said.radii), bounds, eps)
    # an algorithm takes a bound for a value: what may be better than that need not be beaten
    alive = np.flatnonzero((said.status != DOMINATED) | bounds.any(axis=1))
    settled = _settle(ends, alive, eps, said.counts)
    status, rival = said.status.copy(), said.rival.copy()
    status[alive] = settled.status
    rival[alive] = np.where(settled.rival >= 0, alive[settled.rival], -1)
    stands = alive[settled.stands]
    gone = np.flatnonzero(status == DOMINATED)
    gone = gone[~np.isin(rival[gone], stands)]
    better = first_better(ends.low, ends.high, ends.slack, eps, gone, stands)
    rival[gone] = np.where(better >= 0, better, rival[gone])  # rather one that is worth having
    open_ = np.flatnonzero(settled.status == UNDECIDED)
    unknown, often = still | bounds, said.counts[alive] >= ENOUGH_TO_TELL
    if unknown.any() and often[open_].any():  # where verdicts hang on what is unknown, more samples are of no use
        known = _Ends.of(said.estimates, np.where(unknown, 0.0, said.radii), np.zeros_like(bounds), eps)
        then = _settle(known, alive, eps, said.counts)
        open_ = open_[~often[open_] | (then.status[open_] == UNDECIDED)]
    times, hangs = np.ones(len(alive)), np.full(len(alive), -1)
    low, high, values = ends.low[alive], ends.high[alive], said.estimates[alive]
    outlook(low, high, values, eps, settled.escaped, open_, settled.stands, hangs, times)
    rival[alive[hangs >= 0]] = alive[hangs[hangs >= 0]]
    measured = np.maximum(said.counts[alive], 1)
    more = np.where(times > 1.0, np.ceil(measured * (times - 1.0)), 0.0)
    more[open_] = np.maximum(1.0, more[open_])
    needs = np.where(status == UNDECIDED, np.inf, 0.0)
    needs[alive[more > 0.0]] = more[more > 0.0]
    rings = tuple(tuple(alive[ring].tolist()) for ring in settled.rings)
    return Judgement(status, rival, needs, alive[more > 0.0], rings)


def are_worth_having(y: FloatArray, kept: BoolArray, eps: FloatArray) -> bool:
    """Whether a set of arms (K,) is a right answer, by the true means; larger is better.

    Whoever is left out has a kept one that is worse by at most eps in each metric. Of the kept ones nobody must go
    beside another, unless both are in a ring.
    """
    pointless, _, escaped, same = relations(y, y, _rounding(y, eps), eps)
    covered = (pointless | same)[np.ix_(~kept, kept)].any(axis=1)
    rings = _components(pointless[np.ix_(kept, kept)])
    fine = escaped[np.ix_(kept, kept)] | (rings[:, None] == rings)
    return bool(covered.all() and fine.all())


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


@dataclass(frozen=True, eq=False)
class _Ends:
    """Intervals by their ends (K, L), and what rounding may do to each."""

    low: FloatArray
    high: FloatArray
    slack: FloatArray

    @classmethod
    def of(cls, values: FloatArray, radii: FloatArray, bounds: BoolArray, eps: FloatArray) -> _Ends:
        return cls(values - radii, np.where(bounds, np.inf, values + radii), _rounding(values, eps))


def _rounding(values: FloatArray, eps: FloatArray) -> FloatArray:
    """What rounding may do to values; nothing that matters beside eps."""
    slack: FloatArray = np.minimum(ROUNDING * np.abs(values), np.where(eps > 0.0, 1e-3 * eps, np.inf))
    return slack


@dataclass(frozen=True, eq=False)
class _Settled:
    """What intervals prove of A arms, by their places among these."""

    status: IntArray  # (A,)
    rival: IntArray  # (A,)
    stands: IntArray  # those who are kept, or may be
    escaped: BoolArray  # (A, A)
    rings: list[IntArray]


def _settle(ends: _Ends, alive: IntArray, eps: FloatArray, counts: IntArray) -> _Settled:
    """Return who is kept and who is left out.

    Who can leave beside nobody that is left stands, and who can leave beside one that stands is out. Where everybody
    can leave beside somebody, the first whom nobody outdoes stands; where everybody is outdone, a ring that nobody
    outside of it outdoes. Then, of two that stand and are the same, the one named later leaves, if nobody who is out
    needs it.
    """
    A = len(alive)
    pointless, outdone, escaped, same = relations(ends.low[alive], ends.high[alive], ends.slack[alive], eps)
    leaves = pointless & ~same
    left, stands = np.arange(A), np.zeros(A, np.bool_)
    rings = list[IntArray]()
    while len(left):
        new = left[~leaves[np.ix_(left, left)].any(axis=1)]
        if not len(new):
            among = outdone[np.ix_(left, left)]
            new = left[~among.any(axis=1)][:1]
            if not len(new):
                found = [left[members] for members in _last_components(among)]
                rings += found
                new = np.concatenate(found)
        stands[new] = True
        left = left[~stands[left]]
        left = left[~leaves[np.ix_(left, new)].any(axis=1)]
    status, rival = np.full(A, UNDECIDED), np.full(A, -1)
    out = np.flatnonzero(~stands)
    ways = pointless[np.ix_(out, stands)].sum(axis=1)  # beside how many of the kept ones each is pointless
    ringed = np.isin(np.arange(A), np.concatenate(rings)) if rings else np.zeros(A, np.bool_)
    for k in np.flatnonzero(stands & ~ringed & np.tril(same, -1).any(axis=1)):
        first = np.flatnonzero(stands[:k] & same[k, :k])
        needed = pointless[out, k]
        if len(first) and (ways[needed] > 1).all():
            stands[k], status[k], rival[k] = False, SAME, first[0]
            ways -= needed
    kept = np.flatnonzero(stands)
    status[out] = DOMINATED
    if len(out):
        rival[out] = kept[pointless[np.ix_(out, kept)].argmax(axis=1)]
    safe = escaped[np.ix_(kept, kept)] | np.eye(len(kept), dtype=np.bool_)
    for ring in rings:
        inside = np.isin(kept, ring)
        safe |= inside[:, None] & inside
    status[kept[safe.all(axis=1) & (counts[alive[kept]] > 0)]] = FRONT
    return _Settled(status, rival, kept, escaped, rings)


def _last_components(edges: BoolArray) -> list[BoolArray]:
    """Return the strongly connected components of a graph (A, A) from which no edge leads out, each (A,)."""
    labels = _components(edges)
    goes_out = (edges & (labels[:, None] != labels)).any(axis=1)
    return [labels == label for label in np.setdiff1d(labels, labels[goes_out])]


def _components(edges: BoolArray) -> Any:
    """(A,): the number of the strongly connected component of each."""
    from scipy.sparse.csgraph import connected_components  # takes a while to import, and rings are rare

    return connected_components(edges.astype(float), directed=True, connection="strong")[1]


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
    ) -> None:
        """Judge by what the algorithm says now; the rest is as in `judge`."""
        self.judgement = judge(said, eps, certain, censored, n)
        self.next_look, self.was_done = int(LOOK_AFTER * samples) + 1, done

    @property
    def decided(self) -> bool:
        """Whether every arm had its verdict at the last look."""
        return self.judgement is not None and self.judgement.decided

    def turns(self, counts: Sequence[int] | IntArray, n: int) -> list[int]:
        """Return the next n arms to measure, once the algorithm has come to its end: the least measured first.

        None: nothing is of use.
        """
        measured = {int(arm): counts[arm] for arm in (() if self.judgement is None else self.judgement.bearing)}
        chosen = []
        for _ in range(n if measured else 0):
            arm = min(measured, key=lambda arm: (measured[arm], arm))
            measured[arm] += 1
            chosen.append(arm)
        return chosen
