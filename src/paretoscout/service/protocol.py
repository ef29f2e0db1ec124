"""Connections: how long one may be silent, and which one ends if there are too many.

uvicorn waits for ever for the end of the first headers of a connection, and for a caller who does not take the answer.
With its `limit_concurrency`, idle connections keep others out. This is what it lacks.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from . import problems
from .problems import Refused, of_error
from .settings import Limits

#: No option of a server sets them, so they are not handed down to here.
LIMITS = Limits()


class Connection(H11Protocol):
    """A connection of a caller."""

    limits = LIMITS

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for headers. If there are too many connections, the oldest that nobody works for ends."""
        super().connection_made(transport)
        self.made = time.monotonic()
        self._headers: asyncio.TimerHandle | None = None
        self._taken: asyncio.TimerHandle | None = None
        self._wait_for_headers()
        if len(self.connections) > self.limits.connections:
            idle = [each for each in self.connections if isinstance(each, Connection) and not each.busy]
            oldest = min((each for each in idle if each is not self), key=lambda each: each.made, default=None)
            if oldest is not None:
                oldest.transport.abort()
            else:
                self.app = _full

    @property
    def busy(self) -> bool:
        """True if it has a request of a caller who may send one, and the answer is not whole."""
        at_work = self.cycle is not None and not self.cycle.response_complete
        return at_work and self.scope.get("state", {}).get("who") is not None

    def data_received(self, data: bytes) -> None:
        """Take in what the caller sent: headers must be whole within their time, whatever comes meanwhile."""
        before = self.cycle
        if before is None or before.response_complete:
            self._wait_for_headers()
        super().data_received(data)
        if self.cycle is not before:
            self._stop_waiting()
        elif before is not None and self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            # the rest of a body that was not read is in: what comes next is a new request
            self._stop_waiting()
            self._unset_keepalive_if_required()
            wait, end = self.timeout_keep_alive, self.timeout_keep_alive_handler
            self.timeout_keep_alive_task = self.loop.call_later(wait, end)

    def handle_events(self) -> None:
        """Take in what was received, if it is HTTP at all."""
        try:
            super().handle_events()
        except UnicodeDecodeError:  # in the address
            self.send_400_response("Invalid HTTP request received.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of the timers."""
        self._stop_waiting()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for the caller to take a part of the answer, but not for ever."""
        super().pause_writing()
        if self._taken is None:
            self._taken = self.loop.call_later(self.limits.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the caller took a part of the answer."""
        if self._taken is not None:
            self._taken.cancel()
            self._taken = None
        super().resume_writing()

    def _wait_for_headers(self) -> None:
        if self._headers is None:
            self._headers = self.loop.call_later(self.limits.header_seconds, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._headers is not None:
            self._headers.cancel()
            self._headers = None

    def _too_slow(self) -> None:
        self._headers = None
        if not self.transport.is_closing():
            if self.conn.trailing_data[0]:
                self.transport.write(b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            self.transport.close()


async def _full(scope: Any, receive: Any, send: Any) -> None:
    """Answer when there are too many connections, and all of them are at work."""
    refused = Refused(problems.BUSY, "There are too many connections.", headers={"Connection": "close"})
    await of_error(refused, "0")(scope, receive, send)
