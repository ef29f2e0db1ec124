"""Verdicts that people act on.

A study proves which options are not beaten by another one in *every* metric. That is little where options tie in one of
them: of two flags that give the same file none is beaten in every metric, however slow it is. People call an option
pointless beside another that is better in some metric, and in none worse by more than eps. The intervals of the study
prove that as well, so the bench goes on with options of the front that seem pointless until it is known.

Not every interval tells. A number that was the same in all runs has an interval of no width, which proves something
only if the number is exact, such as the size of a file. A value below what can be measured is known from above only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..kernels.arrays import FloatArray
from ..verdicts import VerdictTable

#: How many times the runs it takes, about, where there are too few for an interval.
BEGINNING = 4.0
#: Means of equal numbers may differ by this share.
ROUNDING = 1e-12
#: An option whose intervals are wider than this share of its values is run so many times at least.
SHARP_ENOUGH, RUNS_TO_SHOW = 0.1, 20


@dataclass(frozen=True)
class Doubt:
    """An option of the front that seems to be pointless beside another one."""

    arm: int
    rival: int
    times: float  # by which factor the number of their runs must grow to be sure, about


def judged(table: VerdictTable, doubting: bool = True, whole: bool = True) -> tuple[VerdictTable, list[Doubt]]:
    """Return the verdicts that people act on, and what is in doubt: the verdicts on these are undecided.

    Without `doubting`, where nobody can go on with them, options in doubt are left on the front. Unless the table is
    `whole`, some that left are to be escaped as well: only the study tells who is on the front.
    """
    eps = np.array([metric.tolerance for metric in table.metrics])
    bounds = below(table)  # of metrics where smaller is better
    unsure = bounds.any(axis=1)
    # the study took bounds for values: what is below one may be better than that, and need not be beaten
    verdicts = [
        "undecided" if so and verdict == "dominated" else verdict
        for verdict, so in zip(table.verdicts, unsure, strict=True)
    ]
    rivals = list(table.rivals)
    lead, least, most, rounding = _compared(table)
    # [k, j]: for sure, j is better than k in some metric, and in none worse by more than eps
    pointless = np.asarray((least >= -eps - rounding).all(axis=2) & (least > rounding).any(axis=2))
    alive = [k for k, verdict in enumerate(verdicts) if verdict != "dominated"]
    for k, j in _settled(alive, pointless):
        verdicts[k], rivals[k] = "dominated", table.arms[j]
    # what is the same up to eps in some metric is not beaten in it, as little as may be known of the others
    safe = np.asarray((most <= eps + rounding).any(axis=2))
    # [k, j]: k may have escaped j by a bound on j alone
    loose = (bounds[None] & (lead < 0.0)).any(axis=2) | (unsure[:, None] & unsure)
    for k in alive:
        if verdicts[k] == "dominated":
            continue
        # safe from all that the study has not eliminated: what is pointless beside another may beat this one
        if table.counts[k] == 0:
            verdicts[k] = "undecided"
        elif all(safe[k, j] for j in alive if j != k):
            verdicts[k] = "front" if whole else verdicts[k]
        elif near := [j for j in alive if j != k and loose[k, j] and not safe[k, j]]:
            verdicts[k], rivals[k] = "undecided", table.arms[near[0]]
    front = [k for k, verdict in enumerate(verdicts) if verdict == "front"]
    times = _times_the_runs(lead, least, eps, rounding)
    doubts = [
        Doubt(k, j, float(times[k, j])) for k in front for j in front if doubting and np.isfinite(times[k, j])
    ]  # fmt: skip
    for doubt in sorted(doubts, key=lambda doubt: -doubt.times):  # the nearest to its end is named
        verdicts[doubt.arm], rivals[doubt.arm] = "undecided", table.arms[doubt.rival]
    for k, verdict in enumerate(verdicts):
        better = [j for j in front if pointless[k, j]]
        if verdict == "dominated" and better and rivals[k] not in [table.arms[j] for j in front]:
            rivals[k] = table.arms[better[0]]  # rather one that is worth having
    return replace(table, verdicts=tuple(verdicts), rivals=tuple(rivals)), doubts


def below(table: VerdictTable) -> Any:
    """(K, L): whether a value is only known to be at most what it is said to be."""
    return np.zeros(table.centres.shape, bool) if table.censored is None else np.asarray(table.censored)


def never_varied(table: VerdictTable) -> Any:
    """(K, L): whether a number that need not be exact was the same in all of some runs."""
    inexact = np.array([not metric.exact for metric in table.metrics])
    still = (table.widths <= ROUNDING * np.abs(table.centres)) & (table.counts > 1)[:, None]
    hidden = np.isinf(table.widths) & (table.counts >= RUNS_TO_SHOW)[:, None]  # its noise cannot be estimated
    return (still | hidden) & inexact


def stuck(table: VerdictTable, practical: VerdictTable) -> list[int]:
    """Return undecided options for which more runs are of no use, as it seems.

    They have run often, and would have their verdict if numbers that never varied were exact and bounds were values.
    """
    often = practical.counts >= RUNS_TO_SHOW
    undecided = [k for k, verdict in enumerate(practical.verdicts) if verdict == "undecided" and often[k]]
    unknown = never_varied(table) | below(table)
    if not undecided or not unknown.any():
        return []
    exact = tuple(replace(metric, exact=True) for metric in table.metrics)
    looks, _ = judged(replace(table, widths=np.where(unknown, 0.0, table.widths), metrics=exact, censored=None))
    return [k for k in undecided if looks.verdicts[k] != "undecided"]


def runs_for(table: VerdictTable, doubts: Sequence[Doubt]) -> float:
    """Estimate how many runs it takes to end all doubts."""
    return float(runs_of(table, doubts).sum())


def runs_of(table: VerdictTable, doubts: Sequence[Doubt]) -> FloatArray:
    """Estimate how many runs of each option it takes to end all doubts (K,)."""
    nearest: dict[int, Doubt] = {}
    for doubt in sorted(doubts, key=lambda doubt: -doubt.times):
        nearest[doubt.arm] = doubt
    times = np.ones(len(table.arms))
    for doubt in nearest.values():
        for k in (doubt.arm, doubt.rival):
            times[k] = max(times[k], doubt.times)
    return np.asarray(table.counts * (times - 1.0))


def block(
    table: VerdictTable,
    doubts: Sequence[Doubt],
    alive: Sequence[str] | None = None,
    without: Sequence[int] = (),
) -> list[str]:
    """Return the options to run next, each once: those that are undecided, and those that bear on them.

    That is, those that the undecided ones have not escaped for sure, and those that may make them pointless. So what is
    compared was run equally often in every hour: if all gets slower for a while, it does so for all of them.

    alive: those that the study has not eliminated; without: numbers of those that need no more runs.
    """
    eps = np.array([metric.tolerance for metric in table.metrics])
    undecided = [k for k, verdict in enumerate(table.verdicts) if verdict == "undecided" and k not in without]
    if alive is None:
        alive = [arm for arm, verdict in zip(table.arms, table.verdicts, strict=True) if verdict != "dominated"]
    standing = [k for k, arm in enumerate(table.arms) if arm in set(alive)]
    _, _, most, _ = _compared(table)
    near = np.asarray((most >= eps).all(axis=2))[np.ix_(undecided, standing)]  # may be better in every metric
    chosen = {*undecided, *np.array(standing, int)[near.any(axis=0)].tolist(), *(doubt.rival for doubt in doubts)}
    return [table.arms[k] for k in sorted(chosen)]


def bearing(proven: VerdictTable, table: VerdictTable, doubts: Sequence[Doubt]) -> list[str]:
    """Return the options to run next, each once, by what the study proves and what people act on; none: all is known.

    That is, those that bear on what is undecided, but for those for which more runs are of no use.
    """
    alive = [arm for arm, verdict in zip(proven.arms, proven.verdicts, strict=True) if verdict != "dominated"]
    return block(table, doubts, alive, stuck(proven, table))


def hardly_known(table: VerdictTable) -> list[str]:
    """Return options of the front whose values people want to see more of, up to RUNS_TO_SHOW runs."""
    eps = np.array([metric.tolerance for metric in table.metrics])
    sizes = np.where([metric.relative for metric in table.metrics], 1.0, np.abs(table.centres))
    hazy = (table.widths > np.maximum(SHARP_ENOUGH * sizes, eps)).any(axis=1) & (table.counts < RUNS_TO_SHOW)
    return [arm for arm, verdict, so in zip(table.arms, table.verdicts, hazy, strict=True) if so and verdict == "front"]


def _compared(table: VerdictTable) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """[k, j, metric]: by how much j seems to be better than k, at least and at most is, and what rounding may do."""
    signs = np.array([metric.sign for metric in table.metrics])
    values, sizes = signs * table.centres, ROUNDING * np.abs(table.centres)
    bounds = below(table)
    radii = np.where(never_varied(table), np.where(bounds, 0.0, np.inf), table.widths)
    low, high = values - radii, values + radii
    # the value of a bound may be lower than that
    low, high = np.where(bounds & (signs > 0), -np.inf, low), np.where(bounds & (signs < 0), np.inf, high)
    least, most = low[None] - high[:, None], high[None] - low[:, None]
    return values[None] - values[:, None], least, most, sizes[None] + sizes[:, None]


def _settled(standing: Sequence[int], pointless: Any) -> list[tuple[int, int]]:
    """Return who is pointless beside whom, such that the latter stands.

    "Pointless" allows eps, so it makes chains and even rings. What is pointless beside nobody stands; what is pointless
    beside that is out; and so on with the rest, whatever the order of the options. A ring stands.
    """
    left = list(standing)
    out: dict[int, int] = {}
    while left:
        stands = [k for k in left if not any(pointless[k, j] for j in left)] or left
        left = [k for k in left if k not in stands]
        out |= {k: next(j for j in stands if pointless[k, j]) for k in left if pointless[k, stands].any()}
        left = [k for k in left if k not in out]
    return list(out.items())


def _times_the_runs(lead: FloatArray, least: FloatArray, eps: FloatArray, rounding: FloatArray) -> FloatArray:
    """By which factor the runs must grow to prove that k is pointless beside j.

    Infinite where it does not seem so by the estimates: j should be better by more than eps in some metric, and in none
    worse by more than half of it, for then it can be proven. Where eps is 0 and the interval does not say so already,
    it may take for ever.
    """
    certain_better, certain_equal, width = least > rounding, least >= -eps - rounding, lead - least
    seems_better = (lead > eps) & (eps > 0.0)
    seems_equal = (lead >= -0.5 * eps) & (eps > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        grown = np.where(np.isinf(width), BEGINNING, (width / lead) ** 2)
        better = np.where(certain_better, 1.0, np.where(seems_better, np.maximum(grown, 1.0), np.inf))
        grown = np.where(np.isinf(width), BEGINNING, (width / (lead + eps)) ** 2)
        equal = np.where(certain_equal, 1.0, np.where(seems_equal, np.maximum(grown, 1.0), np.inf))
    times: FloatArray = np.maximum(better.min(axis=2), equal.max(axis=2))
    np.fill_diagonal(times, np.inf)
    return times
