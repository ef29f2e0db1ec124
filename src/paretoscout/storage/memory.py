"""Studies in memory: for notebooks and tests. They are gone when the process ends."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ..errors import Conflict, NameTaken, UnknownName
from .contract import HEARTBEATS_KEPT, Answer, Event, Head, Heartbeat, Listed, Storage, Writer, check_follows


@dataclass
class _Kept(Writer):
    name: str
    spec: str
    log_id: str = field(default_factory=lambda: secrets.token_hex(16))
    log: list[Event] = field(default_factory=list)
    snapshots: list[tuple[int, bytes]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    waiting: list[Event] = field(default_factory=list)  # appended, not yet kept
    waiting_snapshot: tuple[int, bytes] | None = None
    waiting_answers: list[Answer] = field(default_factory=list)
    answers: dict[tuple[str, str], Answer] = field(default_factory=dict)  # those of all studies
    beats: dict[tuple[str, str], Heartbeat] = field(default_factory=dict)
    waiting_beats: dict[tuple[str, str], Heartbeat] = field(default_factory=dict)
    by: str = ""  # who appends now
    maker: str = ""

    @property
    def appended(self) -> list[Event]:  # type: ignore[override]
        return self.waiting

    def events(self, after: int = -1, kinds: Sequence[str] | None = None) -> list[Event]:
        later = [*self.log[after + 1 :], *(event for event in self.waiting if event.number > after)]
        return [event for event in later if kinds is None or event.kind in kinds]

    def head(self, number: int | None = None) -> Head:
        return self.head_of(len(self.log) + len(self.waiting) - 1, number)

    def head_of(self, last: int, number: int | None) -> Head:
        """Nothing in memory is ever lost: the number of an event says which it is."""
        asked = last if number is None else number
        return Head(self.log_id, last, str(asked) if 0 <= asked <= last else "")

    def append(self, events: Sequence[Event]) -> None:
        check_follows(self.name, self.head().last, events)
        self.waiting += [event if event.by else replace(event, by=self.by) for event in events]

    def snapshot(self, number: int, data: bytes) -> None:
        self.waiting_snapshot = number, data

    def keep(self, answer: Answer) -> None:
        if (answer.owner, answer.key) in self.answers:
            raise Conflict(f"there is an answer to the key {answer.key!r} already")
        self.waiting_answers.append(answer)

    def heartbeats(self) -> list[Heartbeat]:
        return list(self.waiting_beats.values())

    def beat(self, heartbeat: Heartbeat) -> None:
        kept = {key: each for key, each in self.waiting_beats.items() if each.at > heartbeat.at - HEARTBEATS_KEPT}
        self.waiting_beats = kept | {(heartbeat.run, heartbeat.worker): heartbeat}

    def sign_off(self, run: str, worker: str) -> None:
        self.waiting_beats.pop((run, worker), None)


class MemoryStorage(Storage):
    """See `Storage`."""

    def __init__(self) -> None:
        self._studies: dict[str, _Kept] = {}
        self._answers: dict[tuple[str, str], Answer] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return "<MemoryStorage>"

    def create(self, name: str, spec: str, by: str = "") -> None:
        with self._lock:
            if name in self._studies:
                raise NameTaken(name)
            self._studies[name] = _Kept(name, spec, answers=self._answers, maker=by)

    def names(self) -> list[str]:
        return list(self._studies)

    def listed(self) -> list[Listed]:
        kept = list(self._studies.values())
        return [
            Listed(each.name, each.spec, len(each.log) - 1, each.log[-1].at if each.log else None, each.maker)
            for each in kept
        ]

    def lasts(self) -> dict[str, int]:
        return {name: len(kept.log) - 1 for name, kept in list(self._studies.items())}

    def spec(self, name: str) -> str:
        return self._of(name).spec

    def delete(self, name: str) -> None:
        with self._lock:
            end = f":{self._of(name).log_id}"
            for key in [key for key, each in self._answers.items() if each.digest.endswith(end)]:
                del self._answers[key]
            del self._studies[name]

    @contextmanager
    def writing(self, name: str, by: str = "") -> Iterator[Writer]:
        kept = self._of(name)
        with kept.lock:
            if self._studies.get(name) is not kept:
                raise UnknownName("study", name, self._studies)
            kept.waiting, kept.waiting_snapshot, kept.waiting_answers, kept.by = [], None, [], by
            kept.waiting_beats = dict(kept.beats)
            yield kept
            kept.log += kept.waiting
            kept.waiting = []
            kept.beats = kept.waiting_beats
            self._answers |= {(answer.owner, answer.key): answer for answer in kept.waiting_answers}
            if kept.waiting_snapshot is not None:
                kept.snapshots = [*kept.snapshots[-1:], kept.waiting_snapshot]

    def events(self, name: str, after: int = -1, kinds: Sequence[str] | None = None) -> Iterator[Event]:
        yield from (event for event in self._of(name).log[after + 1 :] if kinds is None or event.kind in kinds)

    def of_trial(self, name: str, trial: int) -> list[Event]:
        return [event for event in self._of(name).log if event.trial == trial]

    def head(self, name: str, number: int | None = None) -> Head:
        kept = self._of(name)
        return kept.head_of(len(kept.log) - 1, number)

    def heartbeats(self, name: str) -> list[Heartbeat]:
        return list(self._of(name).beats.values())

    def answer(self, owner: str, key: str) -> Answer | None:
        return self._answers.get((owner, key))

    def now(self) -> float:
        return time.time()

    def latest_snapshot(self, name: str) -> tuple[int, bytes] | None:
        snapshots = self._of(name).snapshots
        return snapshots[-1] if snapshots else None

    def _of(self, name: str) -> _Kept:
        if name not in self._studies:
            raise UnknownName("study", name, self._studies)
        return self._studies[name]
