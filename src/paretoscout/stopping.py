"""Work that can be stopped: because its caller left, or because it used up its CPU time.

Python cannot end a thread from outside. So long work calls `check` between its steps, at moments when nothing is half
done. Outside of a server there is no limit, and `check` does nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .errors import Stopped


class Stop:
    """A limit of the work of one thread. seconds: of CPU; None: without end."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self.called = False  # by another thread
        self._began = time.thread_time()

    def begin(self) -> None:
        """Count the CPU time of this thread from now on."""
        self._began = time.thread_time()

    def excuse(self, seconds: float) -> None:
        """Leave CPU time of this thread out of account, such as that of compiling."""
        self._began += seconds

    def check(self) -> None:
        """Raise Stopped if the work is to end."""
        if self.called:
            raise Stopped("the caller left, or the server ends")
        if self.seconds is not None and time.thread_time() - self._began > self.seconds:
            raise Stopped(f"the answer takes more than {self.seconds:g} s of CPU")


_stop: ContextVar[Stop | None] = ContextVar("stop", default=None)


@contextmanager
def stoppable(stop: Stop) -> Iterator[None]:
    """Let `check` raise Stopped in what this thread does meanwhile, once its limit is reached."""
    stop.begin()
    before = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(before)


def current() -> Stop | None:
    """Return the limit of what this thread does; None if there is none."""
    return _stop.get()


def check() -> None:
    """Raise Stopped if the work of this thread is to end."""
    stop = _stop.get()
    if stop is not None:
        stop.check()
