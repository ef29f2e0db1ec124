"""What is shown beside the verdicts where somebody asks for it: options as multiples of one of them, and raw runs.

A `Column` has what people read and what programs read, so every form of the report takes it as it is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..shown import heading, shortened
from ..statement import Metric
from ..study import Standing
from ..study.standing import Difference
from ..verdicts import ABOUT, VerdictTable, with_interval
from .campaign import Campaign

UNKNOWN = "–"
ROUNDING = 1e-9
#: Ratios beyond e to the power of this are no numbers.
MOST_LOG_RATIO = 700.0
#: Digits of a number in a CSV file; and of one that is exact, of which only the last digits are rounding.
DIGITS, EXACT_DIGITS = 7, 12
#: A name above a column is cut to so many letters.
LONGEST_HEADING = 24

#: What a run gave, by metric; None: too small to be measured.
Raw = dict[str, float | None]
#: A difference, and between what it is.
Ends = tuple[float, float, float]
UNMEASURED: Ends = (math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Extra:
    """What is to be shown beside the verdicts."""

    reference: str | None = None  # the option that others are compared with
    stats: bool = False  # least, median and largest value of the runs


@dataclass(frozen=True)
class Column:
    """A column beside the verdicts."""

    heading: str
    names: list[str]  # of its numbers
    texts: dict[str, str] = field(default_factory=dict)  # of each option, for people
    numbers: dict[str, list[float | None]] = field(default_factory=dict)  # of each option, for programs

    def add(self, option: str, text: str, numbers: Sequence[float | None]) -> None:
        """Say what there is of one option."""
        self.texts[option], self.numbers[option] = text, list(numbers)


@dataclass(frozen=True)
class Beside:
    """One metric of an option beside that of the reference: a ratio, or a difference in the metric's own unit."""

    value: float | None  # None: not known
    low: float | None  # None: no limit is known
    high: float | None
    relative: bool

    def text(self) -> str:
        """For people to read; differences have a sign."""
        if self.value is None:
            return UNKNOWN
        if self.low is None or self.high is None:
            return f"{ABOUT} {self.value:{'' if self.relative else '+'}.3g}"
        exact = self.relative and self.high - self.low <= ROUNDING * self.value
        shown = f"{self.value:.4g}" if exact else with_interval(self.value, self.low, self.high)
        return shown if self.relative or self.value <= 0 else f"+{shown}"

    def as_dict(self) -> dict[str, float | bool | None]:
        """Return plain values, ready for JSON."""
        return vars(self)


def rounded(numbers: Sequence[float | None], digits: int) -> list[float | None]:
    """Return numbers without the dust that computing leaves behind.

    >>> rounded([654.7529999999997, None, 1e-9], 7)
    [654.753, None, 1e-09]
    """
    return [None if number is None else float(f"{number:.{digits}g}") for number in numbers]


def raw_runs(campaign: Campaign) -> dict[str, list[Raw]]:
    """Return what every run of every option gave that did not fail, exactly, in the order of running."""
    study = campaign.study
    runs: dict[str, list[Raw]] = {option.name: [] for option in campaign.plan.options}
    names = [source.name for source in campaign.plan.sources]
    for event in study.storage.events(study.name, kinds=("tell",)):
        hidden = event.body.get("below", ())
        told = dict(zip(study.spec.columns, event.body["values"], strict=True))
        runs[event.body["arm"]].append({name: None if name in hidden else told[name] for name in names})
    return runs


def stats_of(runs: Sequence[Raw], metric: str) -> dict[str, float | None]:
    """Return the least, the median and the largest value of a metric; None where a run was too small to be measured.

    >>> stats_of([{"time": 3.0}, {"time": 1.0}, {"time": 2.5}], "time")
    {'min': 1.0, 'median': 2.5, 'max': 3.0}
    """
    values = [run[metric] for run in runs]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return {"min": None, "median": None, "max": None}
    return {"min": min(known), "median": statistics.median(known), "max": max(known)}


def beside(standing: Standing, reference: str) -> dict[str, dict[str, Beside]]:
    """Return each option beside the reference, in each metric; nothing where the reference was left out."""
    table = standing.table
    if reference not in table.arms:
        return {}
    return {option: _compared(standing, option, reference) for option in table.arms}


def _compared(standing: Standing, option: str, reference: str) -> dict[str, Beside]:
    """Return all metrics of one option beside those of the reference."""
    table = standing.table
    if option == reference:
        return {metric.name: _beside(metric, (0.0, 0.0, 0.0)) for metric in table.metrics}
    leads = standing.by_metric(option, reference)
    hidden = table.below[[table.arms.index(option), table.arms.index(reference)]].any(axis=0)
    found = {}
    for column, metric in enumerate(table.metrics):
        ends = _by_evidence(metric, leads[column]) or _by_intervals(table, option, reference, column)
        found[metric.name] = _beside(metric, UNMEASURED if hidden[column] else ends)
    return found


def _beside(metric: Metric, ends: Ends) -> Beside:
    """Make a ratio, or a difference, of a difference on the scale on which the metric is compared."""
    most = MOST_LOG_RATIO if metric.relative else math.inf
    known = [end if abs(end) < most else None for end in ends]
    value, low, high = [None if end is None else math.exp(end) for end in known] if metric.relative else known
    return Beside(value, low, high, metric.relative)


def _by_evidence(metric: Metric, lead: Difference) -> Ends | None:
    """The option less the reference, as it is compared, by the evidence that verdicts rest on; None: there is none."""
    if lead.value is None or lead.low is None or lead.high is None:
        return None
    leads = [lead.value, lead.low, lead.high]
    if metric.relative:
        if min(leads) <= -1.0:
            return None
        leads = [math.log1p(share) for share in leads]
    better, least, most = leads
    return (better, least, most) if metric.sign < 0 else (-better, -most, -least)


def _by_intervals(table: VerdictTable, option: str, reference: str, column: int) -> Ends:
    """The same by the intervals of both: of exact numbers, and of those with too few runs for evidence."""
    k, j = table.arms.index(option), table.arms.index(reference)
    radii = np.where(table.never_varied, np.inf, table.widths)  # what never varied is certain only if it is exact
    centres = table.centres if table.seen is None else np.where(np.isfinite(table.widths), table.centres, table.seen)
    between, together = float(centres[k, column] - centres[j, column]), float(radii[k, column] + radii[j, column])
    return between, between - together, between + together


def columns_of(campaign: Campaign, standing: Standing, extra: Extra) -> list[Column]:
    """Return what is to be shown beside the verdicts, column by column."""
    found = []
    if extra.reference is not None:
        found += _reference_columns(standing, extra.reference)
    if extra.stats:
        found += _stats_columns(campaign, standing)
    return found


def _reference_columns(standing: Standing, reference: str) -> list[Column]:
    by_option = beside(standing, reference)
    name = shortened(reference, LONGEST_HEADING)
    columns = []
    for metric in standing.table.metrics if by_option else ():
        what = "ratio" if metric.relative else "difference"
        title = f"{metric.name} ÷ {name}" if metric.relative else heading(f"{metric.name} − {name}", metric.unit)
        column = Column(title, [f"{metric.name}_{what}{end}" for end in ("", "_low", "_high")])
        for option, metrics in by_option.items():
            each = metrics[metric.name]
            column.add(option, each.text(), rounded([each.value, each.low, each.high], DIGITS))
        columns.append(column)
    return columns


def _stats_columns(campaign: Campaign, standing: Standing) -> list[Column]:
    columns, runs = [], raw_runs(campaign)
    for metric in (source.metric for source in campaign.plan.sources):
        title = heading(f"{metric.name}: min / median / max", metric.unit)
        column = Column(title, [f"{metric.name}_{what}" for what in ("min", "median", "max")])
        for option in standing.options:
            numbers = list(stats_of(runs[option], metric.name).values())
            text = " / ".join(UNKNOWN if number is None else f"{number:.4g}" for number in numbers)
            column.add(option, text, rounded(numbers, EXACT_DIGITS if metric.exact else DIGITS))
        columns.append(column)
    return columns
