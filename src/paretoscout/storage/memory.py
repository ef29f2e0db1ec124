"""Studies in memory: for notebooks and tests. They are gone when the process ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..errors import NameTaken, UnknownName
from .contract import Event, Storage, Writer


@dataclass
class _Kept(Writer):
    spec: str
    log: list[Event] = field(default_factory=list)
    snapshots: list[tuple[int, bytes]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    waiting: list[Event] = field(default_factory=list)  # appended, not yet kept
    waiting_snapshot: tuple[int, bytes] | None = None

    def events(self, after: int = -1, kinds: Sequence[str] | None = None) -> list[Event]:
        later = [*self.log[after + 1 :], *(event for event in self.waiting if event.number > after)]
        return [event for event in later if kinds is None or event.kind in kinds]

    def append(self, events: Sequence[Event]) -> None:
        self.waiting += events

    def snapshot(self, number: int, data: bytes) -> None:
        self.waiting_snapshot = number, data


class MemoryStorage(Storage):
    """See `Storage`."""

    def __init__(self) -> None:
        self._studies: dict[str, _Kept] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return "<MemoryStorage>"

    def create(self, name: str, spec: str) -> None:
        with self._lock:
            if name in self._studies:
                raise NameTaken(name)
            self._studies[name] = _Kept(spec)

    def names(self) -> list[str]:
        return list(self._studies)

    def spec(self, name: str) -> str:
        return self._of(name).spec

    def delete(self, name: str) -> None:
        with self._lock:
            self._of(name)
            del self._studies[name]

    @contextmanager
    def writing(self, name: str) -> Iterator[Writer]:
        kept = self._of(name)
        with kept.lock:
            kept.waiting, kept.waiting_snapshot = [], None
            yield kept
            kept.log += kept.waiting
            if kept.waiting_snapshot is not None:
                kept.snapshots = [*kept.snapshots[-1:], kept.waiting_snapshot]

    def events(self, name: str, after: int = -1, kinds: Sequence[str] | None = None) -> Iterator[Event]:
        yield from (event for event in self._of(name).log[after + 1 :] if kinds is None or event.kind in kinds)

    def of_trial(self, name: str, trial: int) -> list[Event]:
        return [event for event in self._of(name).log if event.trial == trial]

    def last(self, name: str) -> int:
        return len(self._of(name).log) - 1

    def latest_snapshot(self, name: str) -> tuple[int, bytes] | None:
        snapshots = self._of(name).snapshots
        return snapshots[-1] if snapshots else None

    def _of(self, name: str) -> _Kept:
        if name not in self._studies:
            raise UnknownName("study", name, self._studies)
        return self._studies[name]
