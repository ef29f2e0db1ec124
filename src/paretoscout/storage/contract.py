"""What a storage keeps, and what it promises.

A study is a specification (text, fixed at its creation) and a log of events. The log is the truth: everything else can
be computed from it. Events are numbered 0, 1, 2, ... without holes, are never changed and never removed (unless the
whole study is deleted, or a person restores a backup or repairs what is damaged). A snapshot is a shortcut: bytes that
stand for all events up to a number. Every log has an identity, drawn at random when it is begun: who remembers it
notices that the study was deleted and made again under the same name.

Every back end keeps these promises, and `tests/storage_contract.py` holds each of them to it:

* What was appended when `writing` was left without an error is there for all readers, in all processes, and stays there
  if this process is killed. What was appended when it was left by an error is not there at all.
* Of all who want to write to one study, one is inside `writing` at a time; the others wait. Writers of different
  studies may wait for one another too.
* Inside `writing`, `events` shows everything up to this moment: nobody can append in between.
* Events go on from the last one: what would leave a hole, or come twice, is refused, and nothing of it is kept.
* `head` tells whether a log is still the one that somebody remembers: its identity and the mark of an event are the
  same only if all events up to it are. A server that lost its last commits, or a backup that was put back, shows there.
* What was damaged since it was written is not read as if it were sound: `UnreadableFile` names the study and the event.
* A place that is gone, or is another one now (a file that was removed or replaced), is noticed before anything is
  acknowledged: `StorageUnavailable`.
* `now` is one clock for all who use the storage, as far as there is one: that of the server, else of this machine.
* Readers never make a writer wait, and never see half of what was appended together.
* A name is taken by one study at a time, whoever creates it first.
* Values come back as they went in, floats to the last bit.
* An answer that is kept inside `writing` is there if and only if what was appended with it is: whoever sends the same
  request again can be given the same answer, and nothing happens twice.
* The heartbeats of workers are rows next to the log, not events: no replay reads them, and they never make it longer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import Conflict, UnreadableFile

#: Kinds of events. See `study/replica.py` for what each does.
KINDS = ("ask", "tell", "fail", "void", "expire", "give-up", "data", "arms", "note")


#: For so many seconds an answer is kept, at least: a client that tries again for longer is out of luck.
ANSWERS_KEPT = 7 * 86400.0
#: A heartbeat that is older by this many seconds than the latest one may be dropped.
HEARTBEATS_KEPT = 86400.0


@dataclass(frozen=True)
class Event:
    """Something that happened to a study.

    number: its place in the log. kind: one of KINDS. trial: the trial it is about, if it is about one. body: what is to
    be known about it, plain values only. at: when, in seconds since 1970 (UTC), for people to read. by: who appended
    it, for people to read; two events that differ in nothing else are the same.
    """

    number: int
    kind: str
    trial: int | None = None
    body: dict[str, Any] = field(default_factory=dict)
    at: float = 0.0
    by: str = field(default="", compare=False)


class Head(NamedTuple):
    """Where a log stands. log: its identity. last: the number of its last event, or -1. mark: of the event that was
    asked about, "" if it is not there: no two events that were ever appended to a log have the same.
    """

    log: str
    last: int
    mark: str


class Listed(NamedTuple):
    """A study in a list. spec: its specification, or what is wrong with it. last: the number of its last event, or -1.
    at: when that was, None if there is none. by: who made it, "" if that is not known.
    """

    name: str
    spec: str | UnreadableFile
    last: int
    at: float | None
    by: str


@dataclass(frozen=True)
class Answer:
    """What was answered to a request that had a key, so that the same request again gets the same answer.

    owner: whose key it is. key: drawn by whoever sends the request. digest: of the request and, after a colon, the
    identity of the log that it changed: the answer goes when that study is deleted. text: the answer. at: when it was
    kept, in seconds since 1970 (UTC).
    """

    owner: str
    key: str
    digest: str
    text: str
    at: float = 0.0


class Heartbeat(NamedTuple):
    """The latest sign of life of a worker of a study. Each pair of run and worker has one.

    run: drawn at random by a process that measures, "" if the worker has none. worker: its name, which another one may
    have too. host, pid, started: its process, see `study/workers.py`. host is "" and pid None if they are unknown.
    at: when it was sent, in seconds since 1970 (UTC).
    """

    run: str
    worker: str
    host: str = ""
    pid: int | None = None
    started: str = ""
    at: float = 0.0


class Writer(ABC):
    """What the one who writes may do; handed out by `Storage.writing`.

    appended: all that was appended here so far.
    """

    appended: list[Event]

    @abstractmethod
    def events(self, after: int = -1, kinds: Sequence[str] | None = None) -> list[Event]:
        """Return the events with numbers above `after`, in order, those just appended too."""

    @abstractmethod
    def head(self, number: int | None = None) -> Head:
        """Return where the log stands, with the mark of an event; None: of the last one, those just appended too."""

    @abstractmethod
    def append(self, events: Sequence[Event]) -> None:
        """Add events at the end of the log; if their numbers do not go on from the last one, raise `Conflict`."""

    @abstractmethod
    def snapshot(self, number: int, data: bytes) -> None:
        """Keep a snapshot that stands for all events up to `number`; older ones may be dropped."""

    @abstractmethod
    def keep(self, answer: Answer) -> None:
        """Keep an answer together with what is appended; if there is one to that key, raise `Conflict`.

        Answers that are older than ANSWERS_KEPT may be dropped.
        """

    @abstractmethod
    def heartbeats(self) -> list[Heartbeat]:
        """Return the heartbeats of all workers of the study."""

    @abstractmethod
    def beat(self, heartbeat: Heartbeat) -> None:
        """Keep a heartbeat in place of the previous one of the same run and worker."""

    @abstractmethod
    def sign_off(self, run: str, worker: str) -> None:
        """Drop the heartbeat of a run and worker, if there is one."""


class Storage(ABC):
    """A place for studies. Safe to use from several threads and, unless in memory, from several processes."""

    @abstractmethod
    def create(self, name: str, spec: str, by: str = "") -> None:
        """Begin a study with an empty log, or raise `NameTaken`. by: who makes it, for people to read."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all studies, oldest first."""

    @abstractmethod
    def listed(self) -> list[Listed]:
        """Return what there is to know of all studies without loading them, oldest first."""

    def specs(self) -> dict[str, str | UnreadableFile]:
        """Return the specifications of all studies, oldest first; of one that is damaged, what is wrong with it."""
        return {each.name: each.spec for each in self.listed()}

    @abstractmethod
    def lasts(self) -> dict[str, int]:
        """Return the number of the last event of each study, -1 if there is none."""

    @abstractmethod
    def spec(self, name: str) -> str:
        """Return the specification of a study, or raise `UnknownName`."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a study and all that belongs to it, readable or not, or raise `UnknownName`."""

    @abstractmethod
    def writing(self, name: str, by: str = "") -> AbstractContextManager[Writer]:
        """Give the right to append to a study; what was appended is kept when the block ends without an error.

        by: who appends, kept with each event that does not say it itself.
        """

    @abstractmethod
    def events(self, name: str, after: int = -1, kinds: Sequence[str] | None = None) -> Iterator[Event]:
        """Yield the events with numbers above `after`, in order, all of them or those of some kinds."""

    @abstractmethod
    def of_trial(self, name: str, trial: int) -> list[Event]:
        """Return the events that are about a trial, in order."""

    @abstractmethod
    def head(self, name: str, number: int | None = None) -> Head:
        """Return where a log stands, with the mark of an event; None: of the last one."""

    def last(self, name: str) -> int:
        """Return the number of the last event; -1 if there is none."""
        return self.head(name).last

    @abstractmethod
    def latest_snapshot(self, name: str) -> tuple[int, bytes] | None:
        """Return the newest snapshot and its number, if there is one."""

    @abstractmethod
    def heartbeats(self, name: str) -> list[Heartbeat]:
        """Return the heartbeats of all workers of a study."""

    @abstractmethod
    def answer(self, owner: str, key: str) -> Answer | None:
        """Return the answer that was kept under a key, if there is one."""

    @abstractmethod
    def now(self) -> float:
        """Return the time in seconds since 1970 (UTC), by the clock that all who use the storage have in common."""

    def close(self) -> None:  # noqa: B027 - nothing to let go of, unless a back end says so
        """Let go of files and connections. The storage can be used again all the same."""


def check_follows(name: str, last: int, events: Sequence[Event]) -> None:
    """Refuse events that would leave a hole in a log, or come twice."""
    for number, event in enumerate(events, last + 1):
        if event.number != number:
            raise Conflict(
                f"events of study {name!r} must go on from number {last + 1}, got {event.number} in place of {number}: "
                "nothing was appended"
            )
