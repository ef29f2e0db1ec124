"""Events as they happen: server-sent events, from a number on.

One task for each process looks at the storage, however many readers there are; a reader that is too slow only makes
itself wait.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress

from starlette.concurrency import run_in_threadpool

from ..errors import ParetoscoutError
from ..storage import Event
from ..storage.sql import SQLStorage
from . import problems
from .problems import Refused

#: The storage is looked at so often, in seconds.
LOOK_SECONDS = 0.5
#: So often a line is sent, whether anything happened or not: who went away is noticed, and proxies stay patient.
BEAT_SECONDS = 15.0
#: So many events are read at once.
PAGE = 500
MEDIA_TYPE = "text/event-stream"


class Live:
    """Tells readers that something happened."""

    def __init__(self, storage: SQLStorage, most: int) -> None:
        self.storage, self.most = storage, most
        self.readers = 0
        self.closing = asyncio.Event()
        self._lasts: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Let all readers go: the server ends."""
        self.closing.set()
        self._changed.set()

    async def stream(self, name: str, after: int, follow: bool, brief: bool) -> AsyncIterator[str]:
        """Yield events with numbers above `after`, as text; with `follow`, those to come too.

        brief: only the number of the last one, whenever there are new ones: for a page, which then looks again.
        """
        self._check_room()
        await run_in_threadpool(self.storage.last, name)  # refused now, if there is no such study
        return self._events(name, after, follow, brief)

    def anything(self, after: int, seen: Callable[[str], bool]) -> AsyncIterator[str]:
        """Yield the `total` of the studies that somebody may see, whenever it is not `after` any more."""
        self._check_room()
        return self._totals(after, seen)

    def _check_room(self) -> None:
        if self.readers >= self.most:
            raise Refused(problems.TOO_MANY, f"there may be {self.most} readers of live events")

    async def _events(self, name: str, after: int, follow: bool, brief: bool) -> AsyncIterator[str]:
        self.readers += 1
        try:
            if follow:
                yield "retry: 3000\n\n"
                self._start()
            while not self.closing.is_set():
                changed = self._changed
                if brief:
                    last = await run_in_threadpool(self.storage.last, name)
                    if last > after:
                        after = last
                        yield f'id: {last}\ndata: {{"number": {last}}}\n\n'
                        continue
                page = [] if brief else await run_in_threadpool(self._page, name, after)
                for event in page:
                    after = event.number
                    yield _text(event)
                if page:
                    continue
                if not follow:
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._until(changed, name, after), BEAT_SECONDS)
                    continue
                yield ": still here\n\n"
        except ParetoscoutError as problem:
            yield f"event: end\ndata: {json.dumps({'detail': str(problem)})}\n\n"
        finally:
            self.readers -= 1

    async def _totals(self, after: int, seen: Callable[[str], bool]) -> AsyncIterator[str]:
        self.readers += 1
        try:
            yield "retry: 3000\n\n"
            self._start()
            while not self.closing.is_set():
                changed = self._changed
                with suppress(ParetoscoutError):  # the storage is away
                    lasts = await run_in_threadpool(self.storage.lasts)
                    now = total(last for name, last in lasts.items() if seen(name))
                    if now != after:
                        after = now
                        yield f'id: {now}\ndata: {{"number": {now}}}\n\n'
                        continue
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), BEAT_SECONDS)
                    continue
                yield ": still here\n\n"
        finally:
            self.readers -= 1

    async def _until(self, changed: asyncio.Event, name: str, after: int) -> None:
        """Wait until there is something new in a study, or the server ends."""
        while self._lasts.get(name, -1) <= after and name in self._lasts and not self.closing.is_set():
            await changed.wait()
            changed = self._changed
        if name not in self._lasts and not self.closing.is_set():
            await asyncio.sleep(LOOK_SECONDS)

    def _page(self, name: str, after: int) -> list[Event]:
        found: list[Event] = []
        for event in self.storage.events(name, after):
            found.append(event)
            if len(found) == PAGE:
                break
        return found

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        """Look at the storage while there are readers."""
        while self.readers and not self.closing.is_set():
            with suppress(ParetoscoutError):  # it is away: readers see nothing new meanwhile
                lasts = await run_in_threadpool(self.storage.lasts)
                if lasts != self._lasts:
                    self._lasts, before = lasts, self._changed
                    self._changed = asyncio.Event()
                    before.set()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.closing.wait(), LOOK_SECONDS)


def total(lasts: Iterable[int]) -> int:
    """Return how many studies and events there are, by the last events of studies: another number, if any came."""
    return sum(last + 2 for last in lasts)


def _text(event: Event) -> str:
    facts = {
        "number": event.number,
        "kind": event.kind,
        "trial": event.trial,
        "body": event.body,
        "at": event.at,
        "by": event.by,
    }
    return f"id: {event.number}\nevent: {event.kind}\ndata: {json.dumps(facts)}\n\n"
