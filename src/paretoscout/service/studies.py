"""Open studies, within a memory limit, and requests that are done once however often they are sent."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import Conflict, UnknownName
from ..storage import Event
from ..storage.sql import SQLStorage
from ..study import Study
from ..study.log import Caller, Receipt
from ..study.workers import UNKNOWN, Process
from . import problems
from .access import Access, Who
from .problems import Refused

T = TypeVar("T")


@dataclass(frozen=True)
class Key:
    """What makes a request the same as another one: its key, if it has one, and a digest of what it says."""

    key: str | None
    digest: str


@dataclass
class _Open:
    """A study that is open. Who reads has a replica of their own: a page never makes a writer wait."""

    writer: Study
    reader: Study
    size: int = 0
    events: int = 0

    @property
    def ahead(self) -> Study:
        """The one of the two that has seen more."""
        return max(self.writer, self.reader, key=lambda study: study.events_seen)


class OpenStudies:
    """Studies of one storage, loaded when they are needed; those not used for longest are let go."""

    def __init__(self, storage: SQLStorage, access: Access, memory: int, open_trials: int) -> None:
        self.storage, self.access, self.memory, self.most_open = storage, access, memory, open_trials
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._lock = threading.Lock()
        self._loading: dict[str, threading.Lock] = {}
        self._began = time.monotonic()

    def __len__(self) -> int:
        return len(self._open)

    def open_trials(self) -> int:
        """Return how many trials are open, in the studies that are loaded here, by what was last seen of them."""
        with self._lock:
            loaded = list(self._open.values())
        return sum(each.ahead.open_seen for each in loaded)  # to see what is new would take as long as all of it took

    def read(self, name: str, look: Callable[[Study], T]) -> T:
        """Return what somebody looks up in a study."""
        return self._with(name, lambda each: look(each.reader))

    def do(
        self,
        name: str,
        who: Who,
        key: Key,
        act: Callable[[Study], Any],
        answer: Callable[[Study, list[Event]], str | None],
    ) -> tuple[str, bool]:
        """Do something to a study, once for each key, and return the answer, and whether it is that of before."""
        if (known := self.answered(who, key)) is not None:
            return known, True
        said: list[str] = []

        def once(each: _Open) -> None:
            def told(events: list[Event]) -> str | None:
                text = answer(each.writer, events)
                said[:] = [] if text is None else [text]
                return text

            digest = f"{key.digest}:{each.writer.log.identity}"
            with self.acting(each.writer, who, Receipt(who.token, key.key, digest, told)):
                act(each.writer)

        try:
            self._with(name, once)
        except Conflict:
            if (known := self.answered(who, key)) is not None:  # the same request was faster, elsewhere
                return known, True
            raise
        return said[0], False

    @property
    def _since(self) -> float:
        """When this server was started: before that, workers could not be heard."""
        return self.storage.now() - (time.monotonic() - self._began)

    def hear(self, name: str, who: Who, process: Process, act: Callable[[Study], T]) -> T:
        """Take in a heartbeat, and return what became of it."""

        def once(each: _Open) -> T:
            with self.acting(each.writer, who, process=process):
                return act(each.writer)

        return self._with(name, once)

    @contextmanager
    def acting(
        self, study: Study, who: Who, receipt: Receipt | None = None, process: Process = UNKNOWN
    ) -> Iterator[None]:
        """Do something to a study on behalf of who calls."""
        self.access.workers.claim(who.worker, who.token)
        own = None if who.allows("write") else lambda by: self.access.may_tell(who, by)
        with study.acting(Caller(who.worker, own, receipt, self._check_open, process, self._since)):
            yield

    def _check_open(self, n: int) -> None:
        if n > self.most_open:
            raise Refused(problems.TOO_MANY, f"a study may have {self.most_open:,} open trials: tell some first")

    def answered(self, who: Who, key: Key) -> str | None:
        """Return what was answered to a request before, if it is the same; refuse another one with its key."""
        if key.key is None:
            return None
        answer = self.storage.answer(who.token, key.key)
        if answer is None:
            return None
        if answer.digest.partition(":")[0] != key.digest:
            raise Refused(problems.KEY_REUSED, f"Idempotency-Key {key.key!r} came with another request.")
        return answer.text

    def forget(self, name: str) -> None:
        """Let a study go: it was deleted."""
        with self._lock:
            self._open.pop(name, None)

    def _with(self, name: str, look: Callable[[_Open], T]) -> T:
        each = self._get(name)
        try:
            result = look(each)
        except UnknownName as unknown:
            if unknown.kind == "study":
                self.forget(name)
            raise
        except Conflict:
            # it may have been deleted and made again: what is kept here is of the one that is gone
            if self.storage.head(name).log == each.writer.log.identity:
                raise
            self.forget(name)
            each = self._get(name)
            result = look(each)
        self._weigh(name, each)
        return result

    def _get(self, name: str) -> _Open:
        with self._lock:
            if name in self._open:
                self._open.move_to_end(name)
                return self._open[name]
            loading = self._loading.setdefault(name, threading.Lock())
        with loading:
            with self._lock:
                if name in self._open:
                    return self._open[name]
            try:
                found = _Open(Study.load(name, self.storage), Study.load(name, self.storage))
                with self._lock:
                    self._open[name] = found
                return found
            finally:
                with self._lock:
                    self._loading.pop(name, None)

    def _weigh(self, name: str, each: _Open) -> None:
        """Find out how large a study is, when it has grown much, and let others go if there is too much."""
        seen = each.ahead
        loaded = (each.writer.events_seen > 0) + (each.reader.events_seen > 0)
        events = loaded * seen.events_seen
        if events <= 2 * each.events + 100 and each.size:
            return
        # of the two, only the one that is ahead is looked at: the other would have to catch up for it
        each.size, each.events = max(1, loaded) * seen.nbytes, events
        with self._lock:
            while sum(other.size for other in self._open.values()) > self.memory and len(self._open) > 1:
                oldest = next(iter(self._open))
                if oldest == name:
                    self._open.move_to_end(name)
                    continue
                del self._open[oldest]
