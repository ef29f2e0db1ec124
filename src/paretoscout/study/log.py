"""The log of a study in its storage, and the replica that follows it: read, append, expire, take snapshots."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from .. import checks
from ..errors import Conflict, InvalidInput, ParetoscoutError, Stopped
from ..storage import Answer, Event, Head, Heartbeat, Storage, Writer
from ..storage.forks import inside
from .replica import OUTCOMES, History, Replica
from .spec import StudySpec
from .standing import OpenTrial, Voided
from .workers import ASKED, DEAD, STOPPED, UNKNOWN, Process, living, this_process

#: A snapshot is taken after so many events, or more where it is large: at most so many bytes an event on average, which
#: is about what a database writes to keep an event.
SNAPSHOT_EVENTS = 1000
SNAPSHOT_BYTES_PER_EVENT = 4000
#: Whether workers are alive is looked up at most this often, in seconds.
LOOKED_SECONDS = 1.0


@dataclass(frozen=True)
class Receipt:
    """What is answered to a request, and kept together with what the request did, if it came with a key.

    owner, key, digest: as in `Answer`; key None: nothing is kept. answer: makes the answer of the events that were
    appended; None: what was asked for was not done, and nothing is kept.
    """

    owner: str
    key: str | None
    digest: str
    answer: Callable[[list[Event]], str | None]


@dataclass(frozen=True)
class Caller:
    """On whose behalf something is done, where it is not whoever opened the study: by a server.

    may_tell: whether the outcome of a trial may be told, by who asked for it; None: of every trial. check_open: raises
    an error if so many trials may not be open. process: of the worker, as far as it is known. since: when heartbeats
    could be heard again after a time when they could not.
    """

    worker: str
    may_tell: Callable[[str], bool] | None = None
    receipt: Receipt | None = None
    check_open: Callable[[int], object] | None = None
    process: Process = UNKNOWN
    since: float = float("-inf")


class StudyLog:
    """The events of a study, and its state after the last of them that was seen here."""

    def __init__(
        self, storage: Storage, name: str, clock: Callable[[], float] | None = None, worker: str | None = None
    ) -> None:
        self.storage, self.name, self._worker = storage, name, worker
        self._clock = clock or storage.now
        self.spec = StudySpec.of_text(storage.spec(name), name)
        self.identity = storage.head(name).log
        self._lock = threading.RLock()
        self._calls = threading.local()  # who calls, in this thread
        self._replica: Replica | None = None
        self._mark = ""  # of the last event that the replica has seen
        self._snapshot_size = 0  # of the last one that was seen
        self.since = float("-inf")  # see `Caller`
        self._greeted: set[tuple[str, str]] = set()  # runs and names of workers that have a heartbeat
        self._looked = float("-inf")  # when it was last looked up whether workers are alive

    def clock(self) -> float:
        """Return what time it is, in seconds since 1970."""
        return checks.number("clock of a study", self._clock())

    @property
    def seen(self) -> int:
        """How many events the state here is of; 0 while there is none."""
        replica = self._replica
        return 0 if replica is None else replica.number + 1

    @property
    def open_seen(self) -> int:
        """How many trials were open after these events."""
        replica = self._replica
        return 0 if replica is None else len(replica.open)

    @contextmanager
    def acting(self, caller: Caller) -> Iterator[None]:
        """Do what follows on behalf of somebody."""
        before = self.caller
        self._calls.caller = caller
        try:
            yield
        finally:
            self._calls.caller = before

    @property
    def caller(self) -> Caller | None:
        """On whose behalf this thread acts; None: its own."""
        return getattr(self._calls, "caller", None)

    @property
    def worker(self) -> str:
        """Who asks and tells here, as it is kept with each event."""
        if self.caller is not None:
            return self.caller.worker
        return f"{socket.gethostname()}:{os.getpid()}"[-200:] if self._worker is None else self._worker

    @contextmanager
    def reading(self) -> Iterator[Replica]:
        """Hold the state after the last event there is; other threads wait, lest it change while it is read."""
        with inside(), self._lock:
            head = partial(self.storage.head, self.name)
            events = partial(self.storage.events, self.name)
            yield self._up_to_date(head, events)

    @contextmanager
    def writing(self) -> Iterator[tuple[Writer, Replica]]:
        """Hold the right to append, with a replica that has seen everything."""
        with inside(), self._lock:
            replica: Replica | None = None
            before = -1
            if self._replica is None:
                with self.reading():
                    pass  # loaded before anybody has to wait for it
            try:
                with self.storage.writing(self.name, self.worker) as writer:
                    replica = self._up_to_date(writer.head, writer.events)
                    before = replica.number
                    yield writer, replica
                    self._mark = writer.head().mark
                    self._keep_answer(writer)
            except BaseException as problem:
                # what is refused is refused before anything changes; after anything else (Ctrl-C, a full disk) the
                # replica may be ahead of what was kept, or torn
                if not isinstance(problem, ParetoscoutError) or (replica is not None and replica.number != before):
                    self._replica = None
                raise

    def _keep_answer(self, writer: Writer) -> None:
        """Keep the answer to what was done, if whoever asked for it sent a key."""
        receipt = None if self.caller is None else self.caller.receipt
        answer = None if receipt is None else receipt.answer(writer.appended)
        if receipt is not None and receipt.key is not None and answer is not None:
            writer.keep(Answer(receipt.owner, receipt.key, receipt.digest, answer, self.clock()))

    def check_open(self, replica: Replica, more: int) -> None:
        """Raise an error if so many more trials may not be open, on behalf of who acts here."""
        if self.caller is not None and self.caller.check_open is not None:
            self.caller.check_open(len(replica.open) + more)

    def copy(self) -> Replica:
        """Return the state after the last event there is, for what takes a while."""
        with self.reading() as replica:
            return replica.frozen()

    def as_of(self, number: int) -> Replica:
        """Return the state after an earlier event: the log is followed from its beginning."""
        replica = Replica(self.spec)
        events = partial(self.storage.events, self.name)
        for event in events():
            if event.number > number:
                break
            replica.apply(event, partial(_before, events))
        if replica.number != number:
            raise InvalidInput(f"event of study {self.name!r} must be at most {replica.number}, got {number}")
        return replica

    def append(self, writer: Writer, replica: Replica, *events: Event) -> None:
        """Append events and apply them."""
        before = weight(replica)
        writer.append(events)
        for event in events:
            replica.apply(event, _history_of(writer))
        self.settle(writer, replica, before)

    def settle(self, writer: Writer, replica: Replica, before: int) -> None:
        """Do what follows from what was appended: options that break a guard for sure by now are withdrawn.

        And a snapshot is taken at every so many events; of all who append, the one who gets there does it.
        """
        interval = max(SNAPSHOT_EVENTS, self._snapshot_size // SNAPSHOT_BYTES_PER_EVENT)
        if weight(replica) // interval > before // interval and not replica.table:
            data = replica.dump()
            writer.snapshot(replica.number, data)
            self._snapshot_size = len(data)
        concerned, replica.counted = sorted(replica.counted), set()
        if not self.spec.guards or not replica.keeps_shares:
            return
        broken = {arm: replica.guards.broken(arm) for arm in concerned if arm not in replica.withdrawn}
        why = {
            replica.arms[arm]: f"breaks {self.spec.limit(guard)}" for arm, guard in broken.items() if guard is not None
        }
        if len(why) == len(replica.present):
            why.popitem()  # one is kept, whatever it breaks: see Replica.proven
        if why:
            self.append(writer, replica, self.event(replica, "arms", None, {"withdraw": why, "guard": True}))

    def event(self, replica: Replica, kind: str, trial: int | None, body: dict[str, Any]) -> Event:
        """Return the next event."""
        return Event(replica.number + 1, kind, trial, body, self.clock())

    def expire(self, writer: Writer, replica: Replica) -> float:
        """Let trials lapse whose time is up, and return what time it is."""
        now, before = self.clock(), weight(replica)
        events: list[Event] = []
        while (due := replica.overdue(now)) is not None:
            number, kind = due
            body = {"arm": replica.arms[replica.open[number].arm]}
            events.append(Event(replica.number + 1, kind, number, body, now))
            writer.append(events[-1:])
            replica.apply(events[-1], _history_of(writer))
        if events:
            self.settle(writer, replica, before)
        return now

    def beat(self, writer: Writer, run: str) -> None:
        """Keep a heartbeat of who acts here."""
        process = this_process() if self.caller is None else self.caller.process
        writer.beat(Heartbeat(run, self.worker, *process, at=self.clock()))

    def greet(self, writer: Writer, run: str) -> None:
        """Keep a first heartbeat of who acts here, if it asks as a worker that sends heartbeats."""
        me = (run, self.worker)
        if not run or me in self._greeted:
            return
        if me not in {(each.run, each.worker) for each in writer.heartbeats()}:
            self.beat(writer, run)
        self._greeted.add(me)

    def sign_off(self, writer: Writer, replica: Replica, run: str) -> None:
        """Drop the heartbeat of who acts here, and void what it asked for and did not tell."""
        me = (run, self.worker)
        if me in {(each.run, each.worker) for each in writer.heartbeats()}:
            mine = [number for number, lease in replica.open.items() if (lease.run, lease.by) == me]
            self.void(writer, replica, mine, STOPPED)
        writer.sign_off(*me)
        self._greeted.discard(me)

    def void_dead(self, writer: Writer, replica: Replica, run: str, at_once: bool = False) -> list[Voided]:
        """Void the trials of dead workers. run: of who acts here. at_once: even if it was looked up a moment ago."""
        others = [lease for lease in replica.open.values() if (lease.run, lease.by) != (run, self.worker)]
        if not others or (not at_once and time.monotonic() - self._looked < LOOKED_SECONDS):
            return []
        self._looked = time.monotonic()
        known = writer.heartbeats()
        names, alive = {(each.run, each.worker) for each in known}, self._living(known)
        asked = {number: (lease.run, lease.by) for number, lease in replica.open.items()}
        dead = [
            number
            for number, worker in asked.items()
            if worker not in alive and worker != (run, self.worker) and (worker[0] or worker in names)
        ]
        return self.void(writer, replica, dead, DEAD)

    def void_asked(self, writer: Writer, replica: Replica, run: str, older: float) -> list[Voided]:
        """Void trials that were asked by hand, and more than `older` seconds ago, if no other worker is alive."""
        alive, now = self._living(writer.heartbeats()) - {(run, self.worker)}, self.clock()
        if alive:
            return []
        may = None if self.caller is None else self.caller.may_tell
        by_hand = [
            number
            for number, lease in replica.open.items()
            if not lease.run and now - lease.at >= older and (may is None or may(lease.by))
        ]
        return self.void(writer, replica, by_hand, ASKED)

    def void(
        self, writer: Writer, replica: Replica, numbers: Sequence[int], why: str, reason: str = ""
    ) -> list[Voided]:
        """Void open trials, and return them."""
        voided = []
        for number in numbers:
            lease = replica.open[number]
            arm, block = replica.arms[lease.arm], replica.block_called(lease.position)
            voided.append(Voided(OpenTrial(number, arm, lease.at, lease.over, lease.by, block=block), why))
            body = {"arm": arm, "why": why, **({"reason": reason} if reason else {})}
            self.append(writer, replica, self.event(replica, "void", number, body))
        return voided

    def _living(self, known: Iterable[Heartbeat]) -> set[tuple[str, str]]:
        return living(known, self.clock(), self.since if self.caller is None else self.caller.since)

    def of_trial(self, number: int, where: str = "") -> list[Event]:
        """Return the events of a trial."""
        events = self.storage.of_trial(self.name, number)
        if not events:
            raise InvalidInput(f"{where}trial must be one that was asked, got {number}", "trial")
        return events

    def _up_to_date(self, head: Callable[[int], Head], events: Callable[..., Iterable[Event]]) -> Replica:
        """Return the replica after the last event. One that knows what is not in the log is thrown away."""
        if self._replica is not None:
            self._check_same(head(self._replica.number))
        if self._replica is None:
            self._load(head)
        replica = self._replica
        assert replica is not None
        end = head(replica.number)
        if end.last > replica.number:
            try:
                self._catch_up(replica, events(replica.number), partial(_before, events))
            except Stopped:
                self._mark = head(replica.number).mark  # the next caller goes on from here
                raise
            end = head(replica.number)
        self._mark = end.mark
        return replica

    def _check_same(self, head: Head) -> None:
        """Forget the replica if the log was cut since (by a backup that was put back, or a server that lost it)."""
        if head.log != self.identity:
            raise Conflict(
                f"study {self.name!r} was deleted and made again since it was loaded here: nothing was changed. "
                "Load it again; what was asked before belongs to the one that is gone"
            )
        if self._replica is not None and head.mark != self._mark:
            self._replica = None

    def _load(self, head: Callable[[int], Head]) -> None:
        snapshot = self.storage.latest_snapshot(self.name)
        log = head(-1)  # after the snapshot, which is not ahead of it then
        self._check_same(log)
        replica = None
        if snapshot is not None and snapshot[0] <= log.last:
            with suppress(Exception):  # of another version, or damaged in whatever way: the log says the same
                replica = Replica.load(self.spec, snapshot[1])
        if replica is None or snapshot is None or replica.number != snapshot[0]:
            replica = Replica(self.spec)
        self._replica = replica
        self._snapshot_size = len(snapshot[1]) if snapshot else 0

    def _catch_up(self, replica: Replica, events: Iterable[Event], history: History) -> None:
        for event in events:
            try:
                replica.apply(event, history)
            except BaseException:
                self._replica = None  # half applied: to be loaded again
                raise


def weight(replica: Replica) -> int:
    """How much there is to replay: events, and rows of imported data."""
    return replica.number + 1 + replica.imported


def _before(events: Callable[..., Iterable[Event]], number: int) -> Iterator[Event]:
    """Yield what was measured before an event."""
    return (event for event in events(kinds=OUTCOMES) if event.number < number)


def _history_of(writer: Writer) -> History:
    return partial(_before, writer.events)
