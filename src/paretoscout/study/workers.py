"""Workers of a study: which process asked for a trial, and whether it is alive.

A process that measures draws a random identity for its run, keeps it with each trial that it asks for, and sends
heartbeats. Names of workers may be equal, identities are not. A worker is dead if its process has ended, which shows on
its own machine only, or if it sent no heartbeat for DEAD_AFTER seconds. Trials that were asked without an identity and
by a worker that sends no heartbeats were asked by hand.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from ..errors import ParetoscoutError
from ..storage import Heartbeat

#: A worker that sent no heartbeat for this many seconds is dead; it sends one every BEAT_SECONDS.
DEAD_AFTER, BEAT_SECONDS = 60.0, 15.0
#: Why an attempt was voided: its worker died, or it was asked by hand and nobody was measuring, or its run was stopped.
DEAD, ASKED, STOPPED = "dead", "asked", "stopped"
WHY = (DEAD, ASKED, STOPPED)


class Process(NamedTuple):
    """A process. host: the machine and its process namespace since its last start, "" if unknown. started: when the
    process was started, by the clock of the machine, so that a number that was used again is noticed.
    """

    host: str = ""
    pid: int | None = None
    started: str = ""


UNKNOWN = Process()


def new_run() -> str:
    """Return an identity for a run."""
    return secrets.token_hex(8)


def this_process() -> Process:
    """Return the present process."""
    return Process(_host(), os.getpid(), _started(os.getpid()) or "")


def _host() -> str:
    """Return what only processes that see the same process numbers have in common; "" if that is unknown.

    Containers may have equal names, and each of them counts its processes from 1.
    """
    try:
        if sys.platform == "linux":
            if os.readlink("/proc/self") != str(os.getpid()):  # /proc of another namespace
                return ""
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                return f"{socket.gethostname()}/{file.read().strip()}/{os.readlink('/proc/self/ns/pid')}"
        if sys.platform == "darwin" and not (node := uuid.getnode()) >> 40 & 1:  # a drawn number, not that of a device
            return f"{socket.gethostname()}/{node:x}"
    except OSError:
        pass
    return ""  # other systems: heartbeats alone tell


def _started(pid: int) -> str | None:
    """Return when a process of this machine was started, None if that cannot be read, "" if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")


def has_ended(process: Process, here: Process) -> bool:
    """Return True if a process is known to have ended. here: the present process."""
    if not process.host or process.host != here.host or process.pid is None or process.pid <= 0:
        return False
    if sys.platform == "linux" and (started := _started(process.pid)) is not None:
        return started != process.started
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is there, and belongs to another user
        return False
    return False


def living(heartbeats: Iterable[Heartbeat], now: float, since: float = float("-inf")) -> set[tuple[str, str]]:
    """Return run and name of the workers that are alive.

    since: when heartbeats could be heard again after a time when they could not.
    """
    here = this_process()
    return {
        (each.run, each.worker)
        for each in heartbeats
        if now - max(each.at, since) <= DEAD_AFTER and not has_ended(Process(each.host, each.pid, each.started), here)
    }


class Pulse:
    """Calls a function every BEAT_SECONDS in a thread of its own; `with Pulse(beat):` stops it at its end."""

    def __init__(self, beat: Callable[[], object], seconds: float = BEAT_SECONDS) -> None:
        self.beat, self.seconds = beat, seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="heartbeat", daemon=True)

    def __enter__(self) -> Pulse:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(self.seconds)

    def _go_on(self) -> None:
        while not self._over.wait(self.seconds):
            with suppress(ParetoscoutError):  # the storage is away: the next one may come through
                self.beat()
