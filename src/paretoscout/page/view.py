"""View: all that the page of a study shows, as a value. It is made once for an event, and serves every choice."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ..geometry import gaps
from ..kernels.arrays import FloatArray
from ..shown import MARKS
from ..statement import Metric
from ..study import Pair, Remaining, Standing, Study
from ..study.details import Details, Measured
from ..study.history import History, undecided_over_samples
from ..verdicts import VerdictTable, front_first

#: A forecast is followed for so many seconds, with so many futures.
FORECAST_SECONDS, FUTURES = 0.5, 12
#: Of more options the tally is one bar, the table shows the first ones, and the chart has boxes for some.
MANY = 40
#: In which order verdicts are listed; "withdrawn" comes last.
VERDICTS = (*MARKS, "withdrawn")
#: The mark of what was withdrawn.
WITHDRAWN = "–"

#: So many drawings are kept with a view.
MOST_MADE = 100
Made = TypeVar("Made")

STATES = ("empty", "running", "done", "spent", "stuck")


@dataclass(frozen=True)
class Estimate:
    """A value in the unit of its metric, and between what it is for sure; None: not known."""

    value: float | None
    low: float | None
    high: float | None
    censored: bool = False  # too small to be measured: at most `high`


@dataclass(frozen=True)
class Option:
    """What is known of an option."""

    k: int  # its place in the table of verdicts; those that were withdrawn come after these
    name: str
    verdict: str  # one of VERDICTS
    rival: str | None
    n: int
    estimates: tuple[Estimate, ...]
    reason: str = ""  # why it was withdrawn
    kind: str = ""  # how it was: "failed", "guard" or "by hand"


@dataclass(frozen=True)
class Column:
    """What somebody shows beside the verdicts: a text for each option."""

    heading: str
    texts: Mapping[str, str]


@dataclass(frozen=True)
class Report:
    """What a report says besides, such as that of a bench."""

    said: tuple[str, ...] = ()  # paragraphs below the answer
    notes: tuple[str, ...] = ()
    made: tuple[tuple[str, str], ...] = ()  # when, where and by what it was made; the last one is a command
    commands: tuple[tuple[str, str], ...] = ()  # of each option
    columns: tuple[Column, ...] = ()  # beside the verdicts


@dataclass(frozen=True, eq=False)
class View:
    """All that the page of a study shows."""

    title: str  # the question, or the name
    details: Details
    history: History
    remaining: Remaining | None  # None: nobody can tell, or nothing remains
    guards: tuple[str, ...]  # limits, in words
    in_rounds: bool = False  # whether options are compared within rounds
    kinds: Mapping[str, str] = field(default_factory=dict)  # what metrics are, for words such as "slower"
    counted: str = "runs"  # what is counted
    report: Report = Report()
    # found when they are asked for
    _measured: dict[str, Measured] = field(default_factory=dict, init=False, repr=False)
    _rivals: dict[str, str | None] = field(default_factory=dict, init=False, repr=False)
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)
    _pairs: dict[tuple[str, str], Pair] = field(default_factory=dict, init=False, repr=False)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what was made for a key before, or make it: drawings that many choices have in common."""
        if key not in self._made:
            if len(self._made) >= MOST_MADE:
                self._made.clear()
            self._made[key] = make()
        made: Made = self._made[key]
        return made

    @property
    def standing(self) -> Standing:
        """The standing."""
        return self.details.standing

    @property
    def name(self) -> str:
        """The name of the study."""
        return self.standing.name

    @property
    def note(self) -> str:
        """What somebody wrote about the study last."""
        return self.standing.note

    @property
    def tags(self) -> tuple[str, ...]:
        """What somebody filed it under."""
        return self.standing.tags

    @property
    def shell_name(self) -> str:
        """The name as it is written in a command."""
        return shlex.quote(self.name)

    @property
    def event(self) -> int:
        """The number of the last event that is shown."""
        return self.standing.event

    @property
    def table(self) -> VerdictTable:
        """The verdicts."""
        return self.standing.table

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics."""
        return self.table.metrics

    @property
    def judged_by(self) -> tuple[Metric, ...]:
        """What options are judged by: the metrics, or where there are trade-offs sums of them."""
        return self.table.judged_by

    @property
    def samples(self) -> int:
        """How many outcomes there are, told or imported."""
        return self.standing.counts["told"] + self.standing.counts["imported"]

    @property
    def at(self) -> float | None:
        """When something was heard of the study last."""
        return self.history.heard

    @cached_property
    def state(self) -> str:
        """One of STATES."""
        if not self.samples:
            return "empty"
        if self.standing.done:
            return "done"
        if self.standing.exhausted:
            return "spent"
        return "stuck" if self.details.stuck else "running"

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """The options that are there, in the order of the table of verdicts."""
        told = self.table.as_dict()["options"]
        return tuple(_option(k, each, self.metrics) for k, each in enumerate(told))

    @cached_property
    def withdrawn(self) -> tuple[Option, ...]:
        """The options that are not there any more, with what was measured of them."""
        n, L = len(self.options), len(self.metrics)
        return tuple(
            Option(
                k,
                each.option,
                "withdrawn",
                None,
                known.n,
                tuple(Estimate(mean, None, None) for mean in known.means[:L]),
                each.reason,
                each.kind,
            )
            for k, each in enumerate(self.standing.withdrawn, n)
            if (known := self.measured(each.option)) is not None
        )

    @cached_property
    def place(self) -> dict[str, Option]:
        """All options, by their names."""
        return {option.name: option for option in (*self.options, *self.withdrawn)}

    @cached_property
    def order(self) -> tuple[Option, ...]:
        """The options that are there: the front first, then what is undecided."""
        return tuple(self.options[k] for k in front_first(self.table))

    @cached_property
    def tally(self) -> dict[str, int]:
        """How many options have each verdict."""
        counted = Counter(self.table.verdicts)
        return {**{verdict: counted[verdict] for verdict in MARKS}, "withdrawn": len(self.standing.withdrawn)}

    @property
    def undecided(self) -> int:
        """How many options are undecided."""
        return self.tally["undecided"]

    @property
    def many(self) -> bool:
        """Whether there are too many options to show each."""
        return len(self.options) + len(self.standing.withdrawn) > MANY

    def named(self, verdict: str) -> list[str]:
        """Return the options of a verdict, in their order."""
        return [option.name for option in self.order if option.verdict == verdict]

    def measured(self, option: str) -> Measured:
        """Return what was measured of an option, and how it keeps its limits."""
        if option not in self._measured:
            self._measured[option] = self.details.measured(option)
        return self._measured[option]

    def rival_of(self, option: Option) -> str | None:
        """Return the rival that the verdict on an option rests or hangs on."""
        if option.verdict == "withdrawn":
            return None
        if option.name not in self._rivals:
            self._rivals[option.name] = self._rival_of(option)
        return self._rivals[option.name]

    def _rival_of(self, option: Option) -> str | None:
        found = [name for name, _ in self.standing.rivals_of(option.name) if name in self.table.place]
        if option.verdict in ("dominated", "same") and option.rival in self.table.place:
            return option.rival
        rival = found[0] if found else option.rival if option.rival in self.table.place else None
        return rival if rival != option.name else None

    def pair(self, option: str, rival: str) -> Pair:
        """Return by how much a rival is better than an option."""
        if (option, rival) not in self._pairs:
            self._pairs[option, rival] = self.standing.pair(option, rival)
        return self._pairs[option, rival]

    @cached_property
    def steps(self) -> list[tuple[int, int]]:
        """How many options were undecided after so many samples."""
        return undecided_over_samples(self.history, self.standing.since)

    @cached_property
    def turns(self) -> list[tuple[int, str, str]]:
        """When verdicts were reached: samples there were, the option, the verdict."""
        reached = [
            (self.history.samples_at(event), option.name, option.verdict)
            for option, event in zip(self.options, self.standing.since, strict=True)
            if event is not None
        ]
        reached += [(change.samples, change.option, "withdrawn") for change in self.history.changes if not change.added]
        return sorted(reached)

    @cached_property
    def shortfalls(self) -> FloatArray | None:
        """(K,) by how much each option falls short of the front, by the estimates of now; in eps where there is one."""
        told = self.table.centres if self.table.seen is None else self.table.seen
        means = np.where(np.isfinite(self.table.widths), self.table.centres, told)
        known = np.isfinite(means).all(axis=1)
        if not known.any():
            return None
        scale = np.array([metric.tolerance or 1.0 for metric in self.judged_by])
        short = np.zeros(len(means))
        short[known] = gaps(self.table.as_judged(means[known]) / scale).star
        return short

    @property
    def falls_short(self) -> bool:
        """Whether any option falls short of the front, by the estimates of now."""
        return self.shortfalls is not None and bool((self.shortfalls > 0).any())

    @cached_property
    def in_eps(self) -> bool:
        """Whether regret is counted in what does not matter: every metric has an eps."""
        return all(metric.tolerance > 0 for metric in self.judged_by)

    @cached_property
    def regret(self) -> list[tuple[int, float]]:
        """Regret after so many samples: by how much they fell short of the front, summed, by the estimates of now."""
        if self.shortfalls is None:
            return []
        short = dict(zip(self.table.arms, self.shortfalls.tolist(), strict=True))
        by_place = [(place, short[name]) for name, place in self.history.index.items() if short.get(name)]
        return [
            (samples, sum(gap * counts[place] for place, gap in by_place if place < len(counts)))
            for samples, counts in self.history.shared_out()
        ]


def view_of(
    study: Study,
    *,
    seconds: float = FORECAST_SECONDS,
    kinds: Mapping[str, str] | None = None,
    counted: str = "runs",
    report: Report | None = None,
    title: str = "",
    previous: View | None = None,
) -> View:
    """Return all that the page of a study shows, after its last event.

    seconds: how long the future is looked at. kinds: what metrics are ("time", "size"), for words. previous: a view
    that is returned as it is if nothing happened since.
    """
    if previous is not None and study.storage.last(study.name) == previous.event:
        return previous
    details = study.details()
    standing = details.standing
    measured = bool(standing.table.counts.all())
    ahead = None
    if measured and not standing.done and not details.stuck and seconds > 0:
        ahead = details.remaining(FUTURES, seconds)
    return View(
        title=title or standing.title or standing.name,
        details=details,
        history=study.history(standing.event),
        remaining=ahead,
        guards=tuple(study.spec.limit(guard) for guard in study.spec.guards),
        in_rounds=study.in_rounds,
        kinds=kinds or {},
        counted=counted,
        report=report or Report(),
    )


def _option(k: int, told: dict[str, Any], metrics: Sequence[Metric]) -> Option:
    estimates = tuple(
        Estimate(each["value"], each["low"], each["high"], each["censored"])
        for each in (told["estimates"][metric.name] for metric in metrics)
    )
    return Option(k, told["option"], told["verdict"], told["rival"], told["n"], estimates)


def half(estimate: Estimate) -> float:
    """Return the wider side of an interval; not a number where there is none."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return math.nan
    return max(estimate.high - estimate.value, estimate.value - estimate.low)
