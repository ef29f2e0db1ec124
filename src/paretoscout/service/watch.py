"""A thread of each process that looks at the storage, the use of the machine and the tokens every two seconds."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ..errors import ParetoscoutError
from .service import Service
from .telemetry import logger
from .tokens import Token

SECONDS = 2.0


def begin(service: Service, threads_in_use: Callable[[], int]) -> threading.Event:
    """Start the thread, and return what ends it."""
    over = threading.Event()
    watch = Watch(service, threads_in_use)

    def run() -> None:
        while not over.is_set():
            try:
                watch.look()
            except Exception:
                logger().exception("looking around failed, trying again")
            over.wait(SECONDS)

    threading.Thread(target=run, daemon=True, name="watch").start()
    return over


class Watch:
    """What one process has seen so far."""

    def __init__(self, service: Service, threads_in_use: Callable[[], int]) -> None:
        self.service, self.threads_in_use = service, threads_in_use
        self._why = ""  # the storage cannot be reached
        self._cpu = 0.0
        self._tokens: dict[str, Token] | None = None

    def look(self) -> None:
        """Look at everything once. A storage that cannot be reached is tried again the next time."""
        self._count()
        try:
            found = {token.id: token for token in self.service.tokens.all()}
        except ParetoscoutError as problem:
            if str(problem) != self._why:
                logger().warning("the storage cannot be reached, trying again", extra={"facts": {"why": str(problem)}})
            self._why = str(problem)
            return
        if self._why:
            logger().info("the storage can be reached again")
        self._why = ""
        self._note_tokens(found)

    def _count(self) -> None:
        numbers, cpu = self.service.telemetry, time.process_time()
        numbers.cpu.inc(cpu - self._cpu)
        self._cpu = cpu
        numbers.memory.set(memory())
        numbers.threads.set(self.threads_in_use())

    def _note_tokens(self, found: dict[str, Token]) -> None:
        """Write into the log which tokens were made and revoked, by whatever process, and by whom."""
        known, self._tokens = self._tokens, found
        if known is None:
            return
        for token in found.values():
            if token.id not in known:
                facts = {"token": token.id, "scope": token.scope, "study": token.study, "who": token.made_by}
                self._note("token made", {**facts, "when": token.made_at, "ends": token.ends_at})
            if token.revoked_at is not None and (token.id not in known or known[token.id].revoked_at is None):
                facts = {"token": token.id, "who": token.revoked_by}
                self._note("token revoked", {**facts, "when": token.revoked_at})

    def _note(self, what: str, facts: dict[str, object]) -> None:
        """Write a line, if no other process of this server has done it."""
        folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
        if folder is not None:
            try:
                Path(folder, f"{what} {facts['token']}").touch(exist_ok=False)
            except FileExistsError:
                return
        logger().info(what, extra={"facts": facts})


def memory() -> int:
    """Return the bytes of memory that this process has."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # the most so far, where there is no better number
