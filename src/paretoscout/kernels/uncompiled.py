"""Kernels run as plain Python at first: the first minute with paretoscout is not spent with compiling.

A kernel of which the cache has no code is compiled once it has run uncompiled for as long as compiling takes, all
processes counted. Most studies end before that. Decisions are the same bit for bit, whenever that happens. Whoever will
call kernels often says so (`compiled`), and where there are many arms everything is compiled (`expect`): one call could
take for ever.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from .internals import missing

PACKAGE = __name__.partition(".")[0]

#: So long a kernel runs uncompiled: scout's loop takes 15 seconds to compile, most others less than one.
UNCOMPILED_SECONDS = 5.0
#: Of that, after how much other processes are told.
NOTED_SECONDS = 0.1
#: With more arms than this kernels are compiled at once, or where an array is longer than that.
MANY_ARMS = 200
MANY_NUMBERS = 20_000


class _Here(threading.local):
    """How kernels run in this thread."""

    compiled = False


_here = _Here()
_everywhere = {"compiled": os.environ.get("PARETOSCOUT_COMPILE") == "first"}


@contextmanager
def compiled() -> Iterator[None]:
    """Compile kernels before they run, in this thread."""
    before, _here.compiled = _here.compiled, True
    try:
        yield
    finally:
        _here.compiled = before


def expect(n_arms: int) -> None:
    """Say of how many arms kernels will be told; from many on this process compiles before it runs."""
    if n_arms > MANY_ARMS:
        _everywhere["compiled"] = True


Dispatcher: Any = object
if not missing():
    from numba.core.registry import CPUDispatcher as Dispatcher


class Kernel(Dispatcher):  # type: ignore[misc]
    """A kernel as Python calls it."""

    known: dict[Any, bool]  # by the types of arguments: whether the cache had code for them
    spent: float  # seconds in which it ran uncompiled
    noted: float  # of these, what other processes know of

    def begin(self) -> None:
        """Let it run uncompiled at first. Not for an algorithm of somebody's own: who knows what it does there?"""
        self.known, self.spent, self.noted = {}, 0.0, 0.0

    def _compile_for_args(self, *arguments: Any) -> Any:
        """Return what is called with arguments of which no code is loaded."""
        if _here.compiled or _everywhere["compiled"] or not hasattr(self, "known") or not self._may_wait(arguments):
            return super()._compile_for_args(*arguments)
        return self._uncompiled

    @property
    def _index(self) -> Any:
        """What says which code the cache has; None: no folder can be written."""
        return getattr(self._cache, "_cache_file", None)

    def _may_wait(self, arguments: tuple[Any, ...]) -> bool:
        """Whether it is to run uncompiled once more."""
        if any(isinstance(each, np.ndarray) and each.size > MANY_NUMBERS for each in arguments):
            return False
        signature = tuple(map(self.typeof_pyval, arguments))
        self._types_active_call.clear()
        if signature not in self.known:
            self.known[signature] = False
            if self._index is not None:
                self.known[signature] = self._index.has(self._cache._index_key(signature, self.targetctx.codegen()))
                self.spent = self.noted = max(self.spent, self._index.spent())
        return not self.known[signature] and self.spent < UNCOMPILED_SECONDS

    def _uncompiled(self, *arguments: Any) -> Any:
        """Run as compiled code would: dividing by zero is no error, and Ctrl-C is heard at the end."""
        began = time.thread_time()
        try:
            with np.errstate(all="ignore"), _undisturbed():
                return plain(self)(*arguments)
        finally:
            self.spent += time.thread_time() - began
            if self.spent > self.noted + NOTED_SECONDS and self._index is not None:
                self.noted = self.spent
                self._index.note_spent(self.spent)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Handle signals at the end: an exception in between would leave a state that is torn."""
    waiting: list[tuple[Any, ...]] = []
    before: dict[Any, Any] = {}
    if threading.current_thread() is threading.main_thread():  # no other handles signals
        for number in (signal.SIGINT, signal.SIGTERM):
            if callable(handler := signal.getsignal(number)):
                before[number] = handler
                signal.signal(number, lambda *what: waiting.append(what))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for what in waiting:
            before[what[0]](*what)


def plain(kernel: Any) -> Any:
    """Return what a kernel does as plain Python, all that it calls too; who is plain Python already stays as it is.

    Nothing in it looks for compiled code at each call: that would take five times as long as the call.
    """
    twin = _twins.get(kernel)
    if twin is None:
        with _building:
            twin = _twins[kernel] = _twin(kernel) if isinstance(kernel, Kernel) else kernel
    return twin


_twins: dict[Any, Any] = {}
_worlds: dict[int, dict[str, Any]] = {}
_building = threading.RLock()


class _Module:
    """Stands for a module, among the names of a twin."""


def _twin(thing: Any) -> Any:
    """Return the twin of a kernel, function or module of ours; anything else as it is."""
    function = thing.py_func if isinstance(thing, Kernel) else thing
    name = function.__name__ if isinstance(function, ModuleType) else getattr(function, "__module__", None)
    if not isinstance(function, FunctionType | ModuleType) or str(name).partition(".")[0] != PACKAGE:
        return thing
    if isinstance(function, ModuleType):
        module = _Module()
        module.__dict__ = _world(vars(function))
        return module
    world = _world(function.__globals__)
    return FunctionType(function.__code__, world, function.__name__, function.__defaults__, function.__closure__)


def _world(names: dict[str, Any]) -> dict[str, Any]:
    """Return the names of a module, with twins of what has one."""
    if id(names) not in _worlds:
        world = _worlds[id(names)] = {}  # modules import each other
        world.update({name: _twin(value) for name, value in list(names.items())})
    return _worlds[id(names)]
