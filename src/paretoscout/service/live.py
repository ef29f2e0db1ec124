"""Events as they happen: server-sent events, from a number on.

One task for each process looks at the storage, however many readers there are; a reader that is too slow only makes
itself wait.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ..errors import ParetoscoutError
from ..storage import Event
from ..storage.sql import SQLStorage
from . import problems
from .access import Access, Who
from .problems import Refused
from .threads import Threads

#: The storage is looked at so often, in seconds.
LOOK_SECONDS = 0.5
#: So often a line is sent, whether anything happened or not: who went away is noticed, and proxies stay patient.
BEAT_SECONDS = 15.0
#: So many events are read at once.
PAGE = 500
MEDIA_TYPE = "text/event-stream"


class Live:
    """Tells readers that something happened."""

    def __init__(self, storage: SQLStorage, access: Access, threads: Threads, most: int) -> None:
        self.storage, self.access, self.threads, self.most = storage, access, threads, most
        self.readers = 0
        self.closing = asyncio.Event()
        self._lasts: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Let all readers go: the server ends."""
        self.closing.set()
        self._changed.set()

    async def stream(self, who: Who, name: str, after: int, follow: bool, brief: bool) -> AsyncIterator[str]:
        """Yield events with numbers above `after`, as text; with `follow`, those to come too.

        brief: only the number of the last one, whenever there are new ones: for a page, which then looks again.
        """
        await run_in_threadpool(self.storage.last, name)  # refused now, if there is no such study
        return self._events(who, name, after, follow, brief)

    def anything(self, who: Who, after: int) -> AsyncIterator[str]:
        """Yield the `total` of the studies that somebody may see, whenever it is not `after` any more."""
        return self._totals(who, after)

    @contextmanager
    def room(self) -> Iterator[None]:
        """Hold a place for a reader, or refuse one too many. It is taken at the moment in which it is looked for."""
        if self.readers >= self.most:
            raise Refused(problems.TOO_MANY, f"there may be {self.most} readers of live events")
        self.readers += 1
        try:
            yield
        finally:
            self.readers -= 1

    def _goes_on(self, who: Who) -> bool:
        """True until the server ends, or the token of a reader does."""
        return not self.closing.is_set() and self.access.still(who)

    async def _events(self, who: Who, name: str, after: int, follow: bool, brief: bool) -> AsyncIterator[str]:
        try:
            if follow:
                yield "retry: 3000\n\n"
            self._start()
            while self._goes_on(who):
                changed = self._changed
                if brief:
                    last = await run_in_threadpool(self.storage.last, name)
                    if last > after:
                        after = last
                        yield f'id: {last}\ndata: {{"number": {last}}}\n\n'
                        continue
                page = [] if brief else await self._page(who, name, after)
                for event in page:
                    after = event.number
                    yield _text(event)
                if page:
                    continue
                if not follow:
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._until(who, changed, name, after), BEAT_SECONDS)
                    continue
                yield ": still here\n\n"
        except ParetoscoutError as problem:
            yield f"event: end\ndata: {json.dumps({'detail': str(problem)})}\n\n"

    async def _totals(self, who: Who, after: int) -> AsyncIterator[str]:
        yield "retry: 3000\n\n"
        self._start()
        while self._goes_on(who):
            changed = self._changed
            with suppress(ParetoscoutError):  # the storage is away
                lasts = await run_in_threadpool(self.storage.lasts)
                now = total(last for name, last in lasts.items() if who.may_see(name))
                if now != after:
                    after = now
                    yield f'id: {now}\ndata: {{"number": {now}}}\n\n'
                    continue
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), BEAT_SECONDS)
                continue
            yield ": still here\n\n"

    async def _until(self, who: Who, changed: asyncio.Event, name: str, after: int) -> None:
        """Wait until there is something new in a study, or the reader is to go."""
        while self._lasts.get(name, -1) <= after and name in self._lasts and self._goes_on(who):
            await changed.wait()
            changed = self._changed
        if name not in self._lasts and not self.closing.is_set():
            await asyncio.sleep(LOOK_SECONDS)

    async def _page(self, who: Who, name: str, after: int) -> list[Event]:
        def page() -> list[Event]:
            return list(islice(self.storage.events(name, after), PAGE))

        return await self.threads.long(who.token, who.gone, page, patient=True)

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        """Look at the storage while there are readers."""
        while self.readers and not self.closing.is_set():
            with suppress(ParetoscoutError):  # it is away: readers see nothing new meanwhile
                lasts = await run_in_threadpool(self.storage.lasts)
                ended = await run_in_threadpool(self.access.look_again)
                if lasts != self._lasts or ended:
                    self._lasts, before = lasts, self._changed
                    self._changed = asyncio.Event()
                    before.set()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.closing.wait(), LOOK_SECONDS)


class Stream(StreamingResponse):
    """Live events as an answer: it has one of the places for readers while it lasts."""

    def __init__(self, live: Live, events: AsyncIterator[str]) -> None:
        super().__init__(events, media_type=MEDIA_TYPE, headers={"X-Accel-Buffering": "no"})
        self.live = live

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        with self.live.room():
            await super().__call__(scope, receive, send)


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
