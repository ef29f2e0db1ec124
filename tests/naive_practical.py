"""Practical verdicts by looking at all pairs: what `paretoscout.practical` says, slowly."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from paretoscout.kernels.decisions import DOMINATED, FRONT, SAME, UNDECIDED
from paretoscout.kernels.dispatch import Verdicts
from paretoscout.practical import ENOUGH_TO_TELL, Judgement, never_varied


def rounding(values: Any, eps: Any) -> Any:
    return np.minimum(1e-12 * np.abs(values), np.where(eps > 0.0, 1e-3 * eps, np.inf))


def relations(low: Any, high: Any, slack: Any, eps: Any) -> tuple[Any, Any, Any, Any]:
    """Pointless, outdone, escaped and same, each (A, A): of the arm in the row beside that in the column."""
    tiny = slack[:, None] + slack
    least, most = low - high[:, None], high - low[:, None]
    covers, hardly_better = (least >= -eps - tiny).all(axis=2), (most <= eps + tiny).all(axis=2)
    pointless = (least > tiny).any(axis=2) & covers
    escaped = (most < -0.5 * eps - tiny).any(axis=2) | hardly_better
    others = ~np.eye(len(low), dtype=bool)
    return pointless & others, pointless & ~hardly_better & others, escaped & others, covers & hardly_better & others


def components(edges: Any) -> Any:
    """(A,): the number of the strongly connected component of each."""
    return connected_components(edges.astype(float), directed=True, connection="strong")[1]


def last_components(edges: Any) -> list[Any]:
    """Return the strongly connected components from which no edge leads out, each (A,)."""
    labels = components(edges)
    goes_out = (edges & (labels[:, None] != labels)).any(axis=1)
    return [labels == label for label in np.setdiff1d(labels, labels[goes_out])]


class Settled:
    """What intervals prove of A arms."""

    def __init__(self, low: Any, high: Any, slack: Any, eps: Any, counts: Any) -> None:
        A = len(low)
        pointless, outdone, self.escaped, same = relations(low, high, slack, eps)
        stands = np.zeros(A, bool)
        left, self.rings = np.arange(A), list[Any]()
        while len(left):
            new = left[~outdone[np.ix_(left, left)].any(axis=1)]
            if not len(new):
                found = [left[members] for members in last_components(outdone[np.ix_(left, left)])]
                self.rings += found
                new = np.concatenate(found)
            stands[new] = True
            left = left[~stands[left] & ~outdone[np.ix_(left, new)].any(axis=1)]
        self.status, self.rival = np.full(A, UNDECIDED), np.full(A, -1)
        out = np.flatnonzero(~stands)
        for k in range(A):
            first = np.flatnonzero(stands[:k] & same[k, :k])
            if stands[k] and len(first) and not any(k in ring for ring in self.rings):
                stands[k] = False
                if pointless[np.ix_(out, stands)].any(axis=1).all():
                    self.status[k], self.rival[k] = SAME, first[0]
                else:
                    stands[k] = True  # somebody who is out needs it
        self.stands = np.flatnonzero(stands)
        for k in out.tolist():
            self.status[k], self.rival[k] = DOMINATED, np.flatnonzero(stands & pointless[k])[0]
        for k in self.stands.tolist():
            others = [
                j for j in self.stands.tolist() if j != k and not any(k in ring and j in ring for ring in self.rings)
            ]
            if counts[k] > 0 and self.escaped[k, others].all():
                self.status[k] = FRONT


def reach(room: float, width: float, strictly: bool) -> float:
    if room < 0 or (strictly and room == 0):
        return 0.0
    if width <= 0:
        return np.inf
    return 0.5 if width == np.inf else room / width


def shrinks_to(low: Any, high: Any, values: Any, eps: Any, k: int, j: int) -> tuple[float, float]:
    """Which share of their widths intervals may have, until k is pointless beside j, and until it escapes."""
    lead = values[j] - values[k]
    down, up = lead - (low[j] - high[k]), (high[j] - low[k]) - lead
    L = range(len(eps))
    better, covers = [reach(lead[m], down[m], True) for m in L], [reach(lead[m] + eps[m], down[m], False) for m in L]
    worse = [reach(-0.5 * eps[m] - lead[m], up[m], True) for m in L]
    hardly = [reach(eps[m] - lead[m], up[m], False) for m in L]
    return min(max(better), min(covers)), max(max(worse), min(hardly))


def judge(said: Verdicts, eps: Any, certain: Any, censored: Any = None, n: Any = None) -> Judgement:
    """The same as `practical.judge`, where it looks ahead."""
    K = len(said.status)
    bounds = np.zeros(said.radii.shape, bool) if censored is None else censored
    still = never_varied(said.estimates, said.radii, said.counts[:, None] if n is None else n, certain) & ~bounds
    radii = np.where(still, np.inf, said.radii)
    low, high = said.estimates - radii, np.where(bounds, np.inf, said.estimates + radii)
    slack = rounding(said.estimates, eps)
    alive = np.flatnonzero((said.status != DOMINATED) | bounds.any(axis=1))
    settled = Settled(low[alive], high[alive], slack[alive], eps, said.counts[alive])
    status, rival = said.status.copy(), said.rival.copy()
    status[alive] = settled.status
    rival[alive] = np.where(settled.rival >= 0, alive[settled.rival], -1)
    stands = alive[settled.stands].tolist()
    pointless = relations(low, high, slack, eps)[0]
    for k in np.flatnonzero(status == DOMINATED).tolist():
        if rival[k] not in stands:
            rival[k] = next((j for j in stands if pointless[k, j]), rival[k])
    open_ = [k for k in alive.tolist() if status[k] == UNDECIDED]
    if (still | bounds).any():
        sure = np.where(still | bounds, 0.0, said.radii)
        least, most = (said.estimates - sure)[alive], (said.estimates + sure)[alive]
        then = dict(zip(alive, Settled(least, most, slack[alive], eps, said.counts[alive]).status, strict=True))
        open_ = [k for k in open_ if said.counts[k] < ENOUGH_TO_TELL or then[k] == UNDECIDED]
    times = np.ones(K)
    escaped = relations(low, high, slack, eps)[2]
    for k in open_:
        shares = {j: shrinks_to(low, high, said.estimates, eps, k, j) for j in stands if j != k and not escaped[k, j]}
        if all(t == np.inf for _, t in shares.values()):
            continue
        beside = max(shares, key=lambda j: shares[j][0])  # the first of them
        hardest = min(shares, key=lambda j: shares[j][1])
        if 0 < shares[beside][0] >= shares[hardest][1]:
            rival[k], grown = beside, {beside: shares[beside][0]}
        else:
            rival[k], grown = hardest, {j: t for j, (_, t) in shares.items()}
        for j, s in grown.items():
            factor = np.inf if s <= 0 else max(1.0 / (s * s), 1.0 + 1e-9)
            times[k], times[j] = max(times[k], factor), max(times[j], factor)
    more = np.where(times > 1.0, np.ceil(np.maximum(said.counts, 1) * (times - 1.0)), 0.0)
    more[open_] = np.maximum(1.0, more[open_])
    needs = np.where(status == UNDECIDED, np.inf, 0.0)
    needs[more > 0] = more[more > 0]
    found = sorted(tuple(alive[ring].tolist()) for ring in settled.rings)
    return Judgement(status, rival, needs, np.flatnonzero(more > 0), tuple(found))


def are_worth_having(y: Any, kept: Any, eps: Any) -> bool:
    pointless, _, escaped, same = relations(y, y, rounding(y, eps), eps)
    covered = (pointless | same)[np.ix_(~kept, kept)].any(axis=1)
    ring = components(pointless[np.ix_(kept, kept)])
    fine = escaped[np.ix_(kept, kept)] | (ring[:, None] == ring)
    return bool(covered.all() and fine.all())
