"""Verdicts that people act on.

A study proves which options are not beaten by another one in *every* metric. That is little where options tie in one of
them: of two flags that give the same file none is beaten in every metric, however slow it is. People call an option
pointless beside another that is better in some metric, and in none worse by more than eps. The intervals of the study
prove that as well, so the bench goes on with options of the front that seem pointless until it is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..kernels.arrays import FloatArray, IntArray
from ..verdicts import VerdictTable
from .metrics import Source

#: How many times the runs it takes, about, where there are too few for an interval.
BEGINNING = 4.0


@dataclass(frozen=True)
class Doubt:
    """An option of the front that seems to be pointless beside another one."""

    arm: int
    rival: int
    metric: int  # the one whose intervals are too wide
    times: float  # by which factor the number of their runs must grow, about


def judged(table: VerdictTable, sources: Sequence[Source], doubting: bool = True) -> tuple[VerdictTable, list[Doubt]]:
    """Return the verdicts that people act on, and what is in doubt: the verdicts on these are undecided.

    Without `doubting`, where nobody can go on with them, they are left on the front.
    """
    signs = np.array([1.0 if source.direction == "max" else -1.0 for source in sources])
    eps = np.array([source.eps for source in sources])
    verdicts, rivals = list(table.verdicts), list(table.rivals)
    front = [k for k, verdict in enumerate(verdicts) if verdict == "front"]
    # [k, j]: by how much j is better than k, by metric, and by how much that may be off
    lead = signs * (table.estimates[None, front] - table.estimates[front, None])
    width = table.radii[None, front] + table.radii[front, None]
    # for sure, j is better than k in some metric, and in none worse by more than eps
    pointless = (lead - width >= -eps).all(axis=2) & (lead - width > 0.0).any(axis=2)
    for k, j in np.argwhere(pointless):
        if verdicts[front[k]] == "front" == verdicts[front[j]]:
            verdicts[front[k]], rivals[front[k]] = "dominated", table.arms[front[j]]
    times, metric = _times_the_runs(lead, width, eps)
    left = [k for k in range(len(front)) if doubting and verdicts[front[k]] == "front"]
    doubts = []
    for k in left:
        j = min(left, key=lambda j: times[k, j])
        if np.isfinite(times[k, j]):
            doubts.append(Doubt(front[k], front[j], int(metric[k, j]), float(times[k, j])))
            verdicts[front[k]], rivals[front[k]] = "undecided", table.arms[front[j]]
    return replace(table, verdicts=tuple(verdicts), rivals=tuple(rivals)), doubts


def next_arm(table: VerdictTable, doubts: Sequence[Doubt]) -> str | None:
    """Return which option to run next: of the doubt that is nearest to its end, the one that is less known."""
    if not doubts:
        return None
    doubt = min(doubts, key=lambda doubt: doubt.times)
    width = table.radii[:, doubt.metric]
    return table.arms[max((doubt.arm, doubt.rival), key=lambda k: (width[k], -table.counts[k]))]


def runs_for(table: VerdictTable, doubts: Sequence[Doubt]) -> float:
    """Estimate how many runs it takes to end all doubts."""
    times = np.ones(len(table.arms))
    for doubt in doubts:
        for k in (doubt.arm, doubt.rival):
            times[k] = max(times[k], doubt.times)
    return float((table.counts * (times - 1.0)).sum())


def _times_the_runs(lead: FloatArray, width: FloatArray, eps: FloatArray) -> tuple[FloatArray, IntArray]:
    """By which factor the runs must grow to prove that k is pointless beside j, and the metric that asks for most.

    Infinite where it does not seem so by the estimates: j should be better by more than eps in some metric, and in none
    worse by more than half of it, for then it can be proven. Where eps is 0 and the interval does not say so already,
    it may take for ever.
    """
    certain_better, certain_equal = lead - width > 0.0, lead - width >= -eps
    seems_better = (lead > eps) & (eps > 0.0)
    seems_equal = (lead >= -0.5 * eps) & (eps > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        grown = np.where(np.isinf(width), BEGINNING, (width / lead) ** 2)
        better = np.where(certain_better, 1.0, np.where(seems_better, np.maximum(grown, 1.0), np.inf))
        grown = np.where(np.isinf(width), BEGINNING, (width / (lead + eps)) ** 2)
        equal = np.where(certain_equal, 1.0, np.where(seems_equal, np.maximum(grown, 1.0), np.inf))
    best, most = better.min(axis=2), equal.max(axis=2)
    times = np.maximum(best, most)
    np.fill_diagonal(times, np.inf)
    return times, np.where(best >= most, better.argmin(axis=2), equal.argmax(axis=2))
