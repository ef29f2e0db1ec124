"""Threads for requests: many for short ones, few for long reads, so that reading never keeps others from telling."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import Any, ParamSpec, TypeVar

import anyio.to_thread

from ..errors import Stopped
from ..stopping import Stop, current, stoppable
from . import problems
from .problems import Refused
from .settings import Limits

P = ParamSpec("P")
T = TypeVar("T")

#: Of the threads for long reads one caller may use so many at the same time, if there are others.
OF_ONE = 2


class Threads:
    """The threads of one process. Short requests use those of starlette; this class only says how many there may be."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._short: anyio.CapacityLimiter | None = None
        self._executor = ThreadPoolExecutor(limits.long_threads, "long-read")
        self._running: set[Stop] = set()
        self._callers: Counter[str] = Counter()  # running reads of each
        self._waiting = 0
        self._free = asyncio.Event()
        self.closed = False

    def begin(self) -> None:
        """Set the number of threads for short requests, in the loop of the server."""
        self._short = anyio.to_thread.current_default_thread_limiter()
        self._short.total_tokens = self.limits.threads
        _leave_out_compiling()

    def close(self) -> None:
        """Stop long reads: the server ends."""
        self.closed = True
        for stop in list(self._running):
            stop.called = True
        self._free.set()

    @property
    def in_use(self) -> int:
        """The number of threads that work on requests."""
        return (self._short.borrowed_tokens if self._short else 0) + len(self._running)

    def check_room(self) -> None:
        """Raise an error if too many short requests wait for a thread."""
        if self._short and self._short.statistics().tasks_waiting >= self.limits.waiting:
            raise Refused(problems.BUSY, f"{self.limits.waiting} requests wait for a thread.")

    async def long(self, caller: str, gone: asyncio.Event, work: Callable[[], T], patient: bool = False) -> T:
        """Run a read in a thread, within its CPU time, until its caller leaves.

        gone: is set when the caller left. patient: wait for a thread as long as it takes.
        """
        await self._turn(caller, gone, patient)
        stop = Stop(self.limits.read_seconds)
        self._running.add(stop)
        self._callers[caller] += 1

        def limited() -> T:
            with stoppable(stop):
                stop.check()
                return work()

        context = contextvars.copy_context()
        future = asyncio.get_running_loop().run_in_executor(self._executor, lambda: context.run(limited))

        def ended(_: Any) -> None:
            self._running.discard(stop)
            self._callers[caller] -= 1
            if not self._callers[caller]:
                del self._callers[caller]
            self._free.set()

        future.add_done_callback(ended)
        leaving = asyncio.ensure_future(gone.wait())
        either: list[asyncio.Future[Any]] = [future, leaving]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return await asyncio.shield(future) if future.done() else await self._left(stop, future)
        except asyncio.CancelledError:
            stop.called = True
            raise
        finally:
            leaving.cancel()

    async def _left(self, stop: Stop, future: Awaitable[T]) -> T:
        stop.called = True
        return await asyncio.shield(future)

    async def _turn(self, caller: str, gone: asyncio.Event, patient: bool) -> None:
        """Wait until a thread is free for a caller."""
        if self._may(caller):
            return
        if self._waiting >= self.limits.waiting and not patient:
            raise self._busy()
        self._waiting += 1
        leaving = asyncio.ensure_future(gone.wait())
        try:
            async with asyncio.timeout(None if patient else self.limits.wait_seconds):
                while not self._may(caller):
                    self._free.clear()
                    freed = asyncio.ensure_future(self._free.wait())
                    try:
                        await asyncio.wait([freed, leaving], return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        freed.cancel()
                    if gone.is_set() or self.closed:
                        raise Stopped("the caller left, or the server ends")
        except TimeoutError:
            raise self._busy() from None
        finally:
            leaving.cancel()
            self._waiting -= 1

    def _may(self, caller: str) -> bool:
        free = self.limits.long_threads - len(self._running)
        return free > 0 and (self._callers[caller] < OF_ONE or (free > 1 and not self._waiting))

    def _busy(self) -> Refused:
        return Refused(problems.BUSY, f"All {self.limits.long_threads} threads for reading are in use.")

    async def each(self, caller: str, gone: asyncio.Event, parts: Iterator[T]) -> AsyncIterator[T]:
        """Yield what an iterator yields, each part made in a thread for long reads."""

        def next_parts() -> list[T]:
            return list(islice(parts, 1))

        while found := await self.long(caller, gone, next_parts, patient=True):
            yield found[0]


@cache
def _leave_out_compiling() -> None:
    """See to it that a read does not pay for what is compiled on its way: it is compiled once, for all."""
    try:
        from numba.core import event
    except ImportError:  # an inside name of numba: reads pay for compiling then
        return

    class Compiling(event.Listener):
        def __init__(self) -> None:
            self.here = threading.local()

        def on_start(self, _: Any) -> None:
            depth = getattr(self.here, "depth", 0)
            if not depth:
                self.here.began = time.thread_time()
            self.here.depth = depth + 1

        def on_end(self, _: Any) -> None:
            self.here.depth -= 1
            stop = current()
            if not self.here.depth and stop is not None:
                stop.excuse(time.thread_time() - self.here.began)

    event.register("numba:compile", Compiling())  # type: ignore[no-untyped-call]


def long_read(route: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """Make a route that reads a study one that runs in a thread for long reads. Its parameters are service, who, ..."""

    @functools.wraps(route)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        service: Any = kwargs["service"]
        who: Any = kwargs["who"]
        return await service.threads.long(who.token, who.gone, lambda: route(*args, **kwargs))

    return run
