"""Standing: all that is known of a study at one moment, as a value. What shows something renders it.

`Standing.as_dict` is the JSON of `status`, `front`, `export --json` and `bench --export`; `standing.schema.json`
describes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from typing import Any

from .. import stopping
from ..diagnostics import Concern
from ..errors import UnknownName
from ..guarantee import Guarantee
from ..kernels.arrays import FloatArray
from ..session import Session
from ..shown import counted, rough_span
from ..statement import Metric, Units
from ..verdicts import VerdictTable
from .replica import Replica

#: Of the JSON. A key that is there stays; a new meaning is a new version.
VERSION = 1
#: Of more options than this nobody looks at all pairs.
MOST_COMPARED = 100
#: The JSON of more options than this is in one line.
MOST_INDENTED = 1000
#: A logarithm of a ratio beyond this is that of no number.
MOST_LOG = 700.0


@dataclass(frozen=True)
class Trial:
    """One measurement to make: its number, to tell the outcome by, the arm to measure, and on which block."""

    number: int
    arm: str
    block: str | None = field(default=None, kw_only=True)  # None: the study has no blocks


@dataclass(frozen=True)
class OpenTrial(Trial):
    """A trial that was asked and is neither told nor void."""

    asked_at: float  # seconds since 1970, by the clock of the storage
    overdue: bool  # its lease is over: its question may be asked again, but an outcome still counts
    by: str = ""  # who asked


@dataclass(frozen=True)
class Voided:
    """A trial that a run voided, because otherwise nobody would have measured it."""

    trial: OpenTrial  # as it was before
    why: str  # "dead": its worker died; "asked": it was asked by hand; "stopped": its run was stopped


@dataclass(frozen=True)
class Waits:
    """Outcomes that are told, and count when a pending trial is told or void."""

    outcomes: int
    trial: OpenTrial

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        trial = self.trial
        return {
            "outcomes": self.outcomes,
            "trial": trial.number,
            "option": trial.arm,
            **({} if trial.block is None else {"block": trial.block}),
            "asked_at": trial.asked_at,
            "by": trial.by or None,
        }

    def said(self, now: float) -> str:
        """Return it as a sentence. now: the time by the clock of the storage.

        >>> Waits(12, OpenTrial(62, "a", 1000.0, False, "worker 3")).said(1040.0)
        '12 outcomes wait for trial 62 (option a, asked 40 s ago by worker 3)'
        """
        trial = self.trial
        on = "" if trial.block is None else f" on {trial.block}"
        by = f" by {trial.by}" if trial.by else ""
        ago = rough_span(max(0.0, now - trial.asked_at))
        waiting = counted(self.outcomes, "outcome waits", "outcomes wait")
        return f"{waiting} for trial {trial.number} (option {trial.arm}{on}, asked {ago} ago{by})"


@dataclass(frozen=True)
class Withdrawn:
    """An option that is not there any more."""

    option: str
    kind: str  # "failed", "guard" or "by hand"
    reason: str


@dataclass(frozen=True)
class Difference:
    """By how much one option is better than another in a metric: an estimate, and an interval."""

    metric: str
    value: float | None  # None: not measured; a share of the value where ratios are compared
    low: float | None  # None: no limit is known
    high: float | None
    relative: bool  # shares, not differences in the metric's own unit


@dataclass(frozen=True)
class Pair:
    """Two options compared: by how much `rival` is better than `option` in each metric, or sum of trade-offs."""

    option: str
    rival: str
    differences: tuple[Difference, ...]
    own: bool  # the evidence that the verdict rests on; False: the sum of two intervals, which is wider

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "option": self.option,
            "rival": self.rival,
            "own": self.own,
            "differences": {
                each.metric: {"value": each.value, "low": each.low, "high": each.high, "relative": each.relative}
                for each in self.differences
            },
        }


@dataclass(frozen=True)
class Change:
    """How a metric of an option differs from that of a reference: option less reference, in the metric's own unit.

    lift: the same as a share of the reference's value. Where differences are compared, low and high are about the
    difference, and the lift is an estimate without an interval; where ratios are compared, they are about the lift.
    """

    metric: str
    difference: float | None  # None: not measured
    lift: float | None  # None: not measured, or the reference's value is not above 0
    low: float | None  # None: no limit is known
    high: float | None
    relative: bool  # low and high are shares


@dataclass(frozen=True, eq=False)
class Standing:
    """All that is known of a study after one event."""

    name: str
    title: str  # the question that the study answers
    note: str  # what somebody wrote about it
    tags: tuple[str, ...]
    event: int  # number of the last event; -1: there is none yet
    done: bool  # whether every option has its verdict, and keeps its limits if it is on the front
    table: VerdictTable  # the verdicts
    since: tuple[int | None, ...]  # the event at which each verdict was reached; None: there is none yet
    counts: dict[str, int]  # see `Study.counts`
    budget: int | None
    spent: int  # of the budget: taken, or on their way
    open: tuple[OpenTrial, ...]
    waits: tuple[Waits, ...]  # which of them outcomes wait for, the one that holds back most of them first
    withdrawn: tuple[Withdrawn, ...]
    unguarded: tuple[str, ...]  # options of which it is not known yet whether they keep all guards
    finished: bool  # whether there is nothing left to ask for, see `Study.finished`
    _session: Session = field(repr=False)  # of this moment
    _place: dict[str, int] = field(repr=False)  # of the options in it
    _units: Units = field(repr=False)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised of the verdicts."""
        return self.table.guarantee

    @property
    def practical(self) -> bool:
        """Whether verdicts are those that people act on."""
        return self.guarantee.goal == "practical"

    @property
    def options(self) -> tuple[str, ...]:
        """The options that are there."""
        return self.table.arms

    @property
    def front(self) -> tuple[str, ...]:
        """The options of the front."""
        return self.table.front

    @property
    def exhausted(self) -> bool:
        """Whether the budget is spent, nothing is open, and something is undecided."""
        return self.budget is not None and self.counts["told"] >= self.budget and not self.open and not self.done

    def rivals_of(self, option: str) -> tuple[tuple[str, float], ...]:
        """Return the rivals that the verdict on an option rests or hangs on, the largest first, with their shares."""
        stopping.check()
        self._check(option)
        k = self.table.place[option]
        names = {place: name for name, place in self._place.items()}
        found = tuple((names[j], share) for j, share in self._session.nearest(self._place[option]))
        rival = self.table.rivals[k]
        # a verdict that people act on may rest on another one than that of the algorithm
        if self.table.verdicts[k] != "front" and self.practical and rival is not None and rival not in dict(found):
            return ((rival, 1.0),)
        return found

    @cached_property
    def nearest(self) -> tuple[tuple[tuple[str, float], ...], ...]:
        """What `rivals_of` gives for each option; of very many options, the rival that each verdict names."""
        if len(self.options) <= MOST_COMPARED:
            return tuple(self.rivals_of(option) for option in self.options)
        return tuple(() if rival is None else ((rival, 1.0),) for rival in self.table.rivals)

    def _check(self, *options: str) -> None:
        for name in options:
            if name not in self.table.place:
                raise UnknownName("option", name, self.table.arms)

    def pair(self, option: str, rival: str) -> Pair:
        """Return by how much `rival` is better than `option`, at the threshold that verdicts on them use."""
        self._check(option, rival)
        compared = self._session.compared(self._place[option], self._place[rival])
        ends = (end * self._units.ones for end in (compared.lead, compared.low, compared.high))
        return Pair(option, rival, _differences(self.table.judged_by, *ends), compared.own)

    def by_metric(self, option: str, rival: str) -> tuple[Difference, ...]:
        """Return by how much `rival` is better than `option` in each metric, whatever options are judged by."""
        stopping.check()
        self._check(option, rival)
        compared, leads = self._session.compared(self._place[option], self._place[rival]), self._units.leads
        low, high = leads(compared.low, compared.high), leads(compared.high, compared.low)
        return _differences(self.table.metrics, leads(compared.lead, compared.lead), low, high)

    def against(self, reference: str) -> dict[str, tuple[Change, ...]]:
        """Return how every other option differs from one of them, such as the present one, in each metric."""
        self._check(reference)
        present = self.table[reference]
        return {
            option: tuple(
                _change(metric, each, present[metric.name])
                for metric, each in zip(self.table.metrics, self.by_metric(reference, option), strict=True)
            )
            for option in self.options
            if option != reference
        }

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON: what is not known is None."""
        said = self.table.as_dict()
        for k, option in enumerate(said["options"]):
            option["since"] = self.since[k]
            option["nearest"] = [{"option": name, "share": share} for name, share in self.nearest[k]]
        return {
            "version": VERSION,
            "name": self.name,
            "title": self.title or None,
            "note": self.note or None,
            "tags": list(self.tags),
            "event": self.event,
            "done": self.done,
            **self.counts,
            "budget": self.budget,
            "spent": self.spent,
            **said,
            "open_trials": [
                {
                    "trial": trial.number,
                    "option": trial.arm,
                    **({} if trial.block is None else {"block": trial.block}),
                    "asked_at": trial.asked_at,
                    "overdue": trial.overdue,
                    "by": trial.by or None,
                }
                for trial in self.open
            ],
            "waits_for": [each.as_dict() for each in self.waits],
            "withdrawn": [vars(each) for each in self.withdrawn],
            "unguarded": list(self.unguarded),
        }

    def _repr_html_(self) -> str:
        notes = [f"Withdrawn: {each.option} ({each.reason})" for each in self.withdrawn]
        if self.budget is not None:
            notes.append(f"Budget: {self.spent:,} of {self.budget:,} measurements")
        return self.table.html(self.title or self.name, notes)

    def __str__(self) -> str:
        return "\n".join([*filter(None, [self.title]), str(self.table)])

    def as_json(self, indent: int | None = 2) -> str:
        """Return it as JSON, a text; of very many options in one line."""
        many = len(self.options) > MOST_INDENTED
        return json.dumps(self.as_dict(), indent=None if many else indent, allow_nan=False)


def standing_of(replica: Replica, name: str, concerns: Sequence[Concern] = ()) -> Standing:
    """Return the standing of a study, by its state."""
    session = replica.session.frozen()
    table = replace(replica.verdicts(), concerns=tuple(concerns))
    present = replica.present
    pending = {
        number: OpenTrial(
            number,
            replica.arms[lease.arm],
            lease.at,
            lease.over,
            lease.by,
            block=replica.block_called(lease.position),
        )
        for number, lease in replica.open.items()
    }
    return Standing(
        name=name,
        title=replica.spec.title,
        note=replica.note,
        tags=tuple(replica.tags),
        event=replica.number,
        done=replica.done,
        table=table,
        since=tuple(
            None if verdict == "undecided" else replica.number if since < 0 else since
            for since, verdict in zip(replica.since[replica.there].tolist(), table.verdicts, strict=True)
        ),
        counts=replica.counts(),
        budget=replica.spec.budget,
        spent=replica.spent,
        open=tuple(pending.values()),
        waits=tuple(
            Waits(n, pending[number]) for number, n in sorted(replica.held_back().items(), key=lambda each: -each[1])
        ),
        withdrawn=tuple(
            Withdrawn(replica.arms[arm], each.kind, each.reason) for arm, each in replica.withdrawn.items()
        ),
        unguarded=tuple(
            replica.arms[arm]
            for arm in (present if replica.spec.guards else ())
            if not replica.guards.kept(arm) and replica.guards.broken(arm) is None
        ),
        finished=replica.finished,
        _session=session,
        _place={replica.arms[arm]: place for place, arm in enumerate(replica.seated.tolist())},
        _units=replica.units,
    )


def _differences(
    metrics: Sequence[Metric], lead: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[Difference, ...]:
    judged = [end[: len(metrics)].tolist() for end in (lead, low, high)]
    return tuple(
        Difference(metric.name, _known(at, metric), _known(least, metric), _known(most, metric), metric.relative)
        for metric, at, least, most in zip(metrics, *judged, strict=True)
    )


def _change(metric: Metric, better: Difference, value: float | None) -> Change:
    """Return the change of a metric from a value, by how much better it is."""
    low, by, high = better.low, better.value, better.high
    if metric.direction == "min":
        low, by, high = (_turned(end, better.relative) for end in (high, by, low))
    if better.relative:
        difference = None if by is None or value is None else value * by
        return Change(metric.name, difference, by, low, high, True)
    lift = None if by is None or value is None or value <= 0 else by / value
    return Change(metric.name, by, lift, low, high, False)


def _turned(better: float | None, relative: bool) -> float | None:
    """Return by how much a value is larger, by how much it is better where smaller is better."""
    if better is None:
        return None
    return -better / (1 + better) if relative else -better


def _known(difference: float, metric: Metric) -> float | None:
    if not math.isfinite(difference) or (metric.relative and difference > MOST_LOG):
        return None
    return math.expm1(difference) if metric.relative else difference


def schema() -> dict[str, Any]:
    """Return the JSON Schema of `Standing.as_dict`.

    >>> schema()["title"]
    'Standing of a paretoscout study'
    """
    text = resources.files(__package__).joinpath("standing.schema.json").read_text()
    read: dict[str, Any] = json.loads(text)
    return read
