"""Forks: a child must not inherit what another thread of its parent was in the middle of.

Locks that such a thread held are never released in the child, and SQLite believes that the child holds what its parent
held. So whoever is about to fork waits until all threads are out of studies and storages, and lets nobody in meanwhile.
If that takes too long (kernels are being compiled, another process holds the database), it forks all the same, and the
child is told at its first step that it cannot use studies.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import StorageUnavailable

WAIT_SECONDS = 10.0  # how long a fork waits for other threads

_gate = threading.Condition(threading.Lock())
_inside: dict[int, int] = {}  # thread -> how many times it has entered
_forking = False
_torn = False  # whether this process was forked while somebody was inside
_prepare: list[Callable[[], None]] = []  # what to let go of before a fork, once nobody is inside


@contextmanager
def inside() -> Iterator[None]:
    """Hold off forks by other threads. May be entered again by the thread that is inside."""
    me = threading.get_ident()
    with _gate:
        if _torn:
            raise StorageUnavailable(
                "studies cannot be used in this process: it was forked while another thread of its parent was in the "
                "middle of one. Fork before threads are at work, or start processes by 'spawn'"
            )
        while _forking and me not in _inside:
            _gate.wait()
        _inside[me] = _inside.get(me, 0) + 1
    try:
        yield
    finally:
        with _gate:
            left = _inside.pop(me, 1) - 1
            if left > 0:
                _inside[me] = left
            else:
                _gate.notify_all()


def before_fork(action: Callable[[], None]) -> None:
    """Have something done before each fork."""
    _prepare.append(action)


def _before() -> None:
    global _forking
    me = threading.get_ident()
    _gate.acquire()
    while _forking:  # another thread forks too
        _gate.wait()
    _forking = True
    _gate.wait_for(lambda: not set(_inside) - {me}, WAIT_SECONDS)
    if not _inside:
        for action in _prepare:
            action()


def _after_in_parent() -> None:
    global _forking
    _forking = False
    _gate.notify_all()
    _gate.release()


def _after_in_child() -> None:
    global _gate, _inside, _forking, _torn
    _torn = _torn or bool(_inside)
    _gate, _inside, _forking = threading.Condition(threading.Lock()), {}, False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
