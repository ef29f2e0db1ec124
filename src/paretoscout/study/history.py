"""How a study came to where it is: a value that follows the log, so that what is new costs only what is new.

A page of a study with 200,000 events cannot read all of them each time somebody looks. `History` keeps what such a page
shows: how many samples there were after each event, how they were shared out, the latest outcomes, and some of all.
What it keeps is small and does not depend on the pieces in which the log was followed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..storage.contract import Event
from .rows import completed

#: At most so many moments are kept of how samples were shared out.
MOST_MOMENTS = 200
#: The latest outcomes and notes that are kept.
RECENT, NOTES = 12, 10
#: Of all outcomes about so many are kept, and of each option at least, and at most, so many.
MOST_DOTS, LEAST_OF_ONE, MOST_OF_ONE = 2000, 4, 200
#: Of more workers those that were heard of last are kept.
MOST_WORKERS = 40


@dataclass(frozen=True)
class Observation:
    """An outcome as it came in."""

    trial: int | None  # None: imported
    option: str
    block: str | None
    values: tuple[float | None, ...]  # one for each column; None: not measured
    at: float
    by: str
    note: str = ""


@dataclass(frozen=True)
class Worker:
    """Somebody who told outcomes."""

    name: str
    told: int
    at: float  # when something was heard of it last


@dataclass(frozen=True)
class Change:
    """Options that came, or left."""

    event: int
    samples: int  # how many there were at that moment
    option: str
    added: bool  # False: withdrawn
    at: float


@dataclass(frozen=True)
class Note:
    """What somebody wrote about the study."""

    text: str
    tags: tuple[str, ...]
    at: float
    by: str


@dataclass
class Dots:
    """Some of the outcomes of an option, evenly spread over all of them."""

    most: int
    seen: int = 0
    stride: int = 1
    kept: list[tuple[float | None, ...]] = field(default_factory=list)

    def add(self, values: tuple[float | None, ...]) -> None:
        """Keep an outcome if it is its turn; if there are too many then, every second one goes."""
        if self.seen % self.stride == 0:
            self.kept.append(values)
            if len(self.kept) > self.most:
                self.kept, self.stride = self.kept[::2], 2 * self.stride
        self.seen += 1


@dataclass
class History:
    """What the log says up to the event `last`.

    >>> history = History(("a", "b"))
    >>> history.follow([Event(0, "ask", 0, {"arm": "a"}), Event(1, "tell", 0, {"arm": "a", "values": [2.0]})])
    >>> history.samples, history.counts_of("a"), history.samples_at(0)
    (1, 1, 0)
    """

    options: tuple[str, ...]  # the first ones
    last: int = -1
    samples: int = 0  # outcomes that were told or imported
    imported: int = 0
    began: float | None = None  # when the first event was appended, and by whom
    began_by: str = ""
    heard: float | None = None  # when the last one was
    measured: float | None = None  # when the last outcome came in
    index: dict[str, int] = field(default_factory=dict)  # of all options there ever were
    counts: array[int] = field(default_factory=lambda: array("q"))  # samples of each
    moments: list[tuple[int, array[int]]] = field(default_factory=list)  # samples in all, and of each option
    stride: int = 1  # of the moments
    changes: list[Change] = field(default_factory=list)
    recent: list[Observation] = field(default_factory=list)  # the latest last
    dots: list[Dots] = field(default_factory=list)
    workers: dict[str, Worker] = field(default_factory=dict)  # who was heard of last comes last
    notes: list[Note] = field(default_factory=list)  # about the study; the latest last
    _numbers: array[int] = field(default_factory=lambda: array("q"))  # events with outcomes
    _samples: array[int] = field(default_factory=lambda: array("q"))  # how many there were after each
    _parts: dict[int, list[float | None]] = field(default_factory=dict)  # of trials of which more is to come
    _noted: dict[int, str] = field(default_factory=dict)  # notes about trials that are not told yet
    _most_of_one: int = 0  # dots of each option

    def __post_init__(self) -> None:
        if not self.index:
            self._most_of_one = min(max(MOST_DOTS // max(len(self.options), 1), LEAST_OF_ONE), MOST_OF_ONE)
            for option in self.options:
                self._place(option)

    def follow(self, events: Iterable[Event]) -> None:
        """Take in the next events; those that are known already change nothing."""
        for event in events:
            if event.number > self.last:
                self._take(event)
                self.last = event.number

    def copy(self) -> History:
        """Return it as it is now: what is followed later does not change it."""
        return replace(
            self,
            index=dict(self.index),
            counts=self.counts[:],
            moments=list(self.moments),
            changes=list(self.changes),
            recent=list(self.recent),
            dots=[replace(dots, kept=list(dots.kept)) for dots in self.dots],
            workers=dict(self.workers),
            notes=list(self.notes),
            _numbers=self._numbers[:],
            _samples=self._samples[:],
            _parts=dict(self._parts),
            _noted=dict(self._noted),
        )

    def samples_at(self, event: int) -> int:
        """Return how many samples there were after an event."""
        place = bisect_right(self._numbers, event)
        return self._samples[place - 1] if place else 0

    def counts_of(self, option: str) -> int:
        """Return how many samples of an option there are."""
        return self.counts[self.index[option]] if option in self.index else 0

    def shared_out(self) -> list[tuple[int, array[int]]]:
        """Return at most about 200 moments, the last one now: samples in all, and of each option."""
        start = (0, array("q", bytes(8 * len(self.options))))
        return [start, *self.moments, (self.samples, self.counts[:])]

    def dots_of(self, option: str, most: int | None = None) -> list[tuple[float | None, ...]]:
        """Return some outcomes of an option, evenly spread over all; most: at most so many."""
        kept = self.dots[self.index[option]].kept if option in self.index else []
        stride = 1 if most is None or most <= 0 else -(-len(kept) // most)
        return kept[:: max(stride, 1)]

    # Events

    def _take(self, event: Event) -> None:
        if self.began is None:
            self.began, self.began_by = event.at, event.by
        self.heard = event.at
        if event.kind == "tell":
            self._told(event)
        elif event.kind == "data":
            rows = zip(event.body["arms"], event.body["values"], strict=True)
            for place, (option, values) in enumerate(rows):
                block = event.body["blocks"][place] if "blocks" in event.body else None
                self._sample(Observation(None, option, block, tuple(values), event.at, event.by))
                self.imported += 1
            self._outcomes(event)
        elif event.kind == "arms":
            self._changed(event)
        elif event.kind == "note":
            self._note(event)

    def _told(self, event: Event) -> None:
        trial = -1 if event.trial is None else event.trial
        values = completed(self._parts.pop(trial, None), event.body["values"])
        if event.body.get("more"):
            self._parts[trial] = values
            return
        note = str(event.body.get("note") or self._noted.pop(trial, ""))
        option, block = event.body["arm"], event.body.get("block")
        self._sample(Observation(event.trial, option, block, tuple(values), event.at, event.by, note))
        known = self.workers.pop(event.by, None)
        self.workers[event.by] = Worker(event.by, 1 if known is None else known.told + 1, event.at)
        if len(self.workers) > MOST_WORKERS:
            del self.workers[next(iter(self.workers))]
        self._outcomes(event)

    def _outcomes(self, event: Event) -> None:
        self.measured = event.at
        self._numbers.append(event.number)
        self._samples.append(self.samples)

    def _sample(self, seen: Observation) -> None:
        place = self._place(seen.option)
        self.samples += 1
        self.counts[place] += 1
        self.dots[place].add(seen.values)
        self.recent.append(seen)
        del self.recent[:-RECENT]
        if self.samples % self.stride == 0:
            self.moments.append((self.samples, self.counts[:]))
            if len(self.moments) > MOST_MOMENTS:
                self.stride *= 2
                self.moments = [moment for moment in self.moments if moment[0] % self.stride == 0]

    def _place(self, option: str) -> int:
        if option not in self.index:
            self.index[option] = len(self.counts)
            self.counts.append(0)
            self.dots.append(Dots(self._most_of_one))
        return self.index[option]

    def _changed(self, event: Event) -> None:
        for name, *_ in event.body.get("add", ()):
            self._place(name)
            self.changes.append(Change(event.number, self.samples, name, True, event.at))
        for name in event.body.get("withdraw", ()):
            self.changes.append(Change(event.number, self.samples, name, False, event.at))

    def _note(self, event: Event) -> None:
        text = str(event.body.get("note") or "")
        if event.trial is None:
            tags = tuple(map(str, event.body.get("tags") or ()))
            self.notes.append(Note(text, tags, event.at, event.by))
            del self.notes[:-NOTES]
            return
        for place, seen in enumerate(self.recent):
            if seen.trial == event.trial:
                self.recent[place] = replace(seen, note=text)
                return
        self._noted[event.trial] = text
        for old in list(self._noted)[:-MOST_WORKERS]:
            del self._noted[old]  # of a trial that was told long ago, or never will be


def undecided_over_samples(history: History, since: Sequence[int | None]) -> list[tuple[int, int]]:
    """Return how many options were undecided after so many samples: a point for each change, the first at 0 samples.

    since: of the options that are there, the event with which each verdict came (`Standing.since`).
    An option that was withdrawn counts as undecided until it was.

    >>> history = History(("a", "b"))
    >>> history.follow([Event(0, "tell", 0, {"arm": "a", "values": [2.0]})])
    >>> undecided_over_samples(history, (0, None))
    [(0, 2), (1, 1)]
    """
    steps: dict[int, int] = {}

    def step(samples: int, by: int) -> None:
        steps[samples] = steps.get(samples, 0) + by

    for change in history.changes:
        step(change.samples, 1 if change.added else -1)
    for event in since:
        if event is not None:
            step(history.samples_at(event), -1)
    left = len(history.options)
    points = [(0, left)]
    for samples in sorted(steps):
        left += steps[samples]
        points.append((samples, max(left, 0)))
    return points
