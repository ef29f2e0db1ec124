"""What every request goes through first: its size, its time, its number, its line in the log."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import problems
from .problems import Refused, of_error
from .settings import Limits
from .telemetry import Telemetry, logger

#: What every answer says to browsers: nothing from elsewhere, no frames, no guessing.
HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}


#: Numbers of requests that a proxy or a caller may give.
NUMBER = re.compile(rb"[A-Za-z0-9._-]{1,64}")


def _number_of(scope: Scope) -> str:
    """Return the number of a request: that in its X-Request-ID, or a new one."""
    given = [text for name, text in scope["headers"] if name == b"x-request-id"]
    return given[0].decode() if len(given) == 1 and NUMBER.fullmatch(given[0]) else secrets.token_hex(8)


class Doors:
    """The outermost part of the application: nothing gets past it unseen, too large or too slow."""

    def __init__(self, app: ASGIApp, limits: Limits, telemetry: Telemetry) -> None:
        self.app, self.limits, self.telemetry, self.log = app, limits, telemetry, logger()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        number, began = _number_of(scope), time.perf_counter()
        scope.setdefault("state", {})["request_id"] = number
        answered: dict[str, Any] = {"status": 0, "whole": False}
        head = scope["method"] == "HEAD"  # answered as GET is, without the body
        inner = {**scope, "method": "GET"} if head else scope
        begun = asyncio.Event()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered["status"] = message["status"]
                given = {name.lower() for name, _ in message.get("headers", [])}
                own = {**HEADERS, "x-request-id": number}
                if not scope["path"].startswith("/static/"):
                    own["cache-control"] = "no-store"
                message["headers"] = [
                    *message.get("headers", []),
                    *((name.encode(), text.encode()) for name, text in own.items() if name.encode() not in given),
                ]
                begun.set()
            elif head:
                message = {**message, "body": b""}
            answered["whole"] = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        async def receive_to_end() -> Message:
            if not head:
                return await receive()
            await begun.wait()
            return {"type": "http.disconnect"}  # what would go on for ever has no more to say

        error: BaseException | None = None
        try:
            await self.app(inner, await self._whole(scope, receive, receive_to_end), answer)
            if head and not answered["whole"]:
                await answer({"type": "http.response.body", "body": b""})
        except Refused as refused:
            if not answered["status"]:
                await of_error(refused, number)(scope, receive, answer)
        except Exception as unexpected:
            error = unexpected
            if not answered["status"]:
                await of_error(unexpected, number)(scope, receive, answer)
        finally:
            self._note(
                {**inner, "method": scope["method"]}, number, answered["status"], time.perf_counter() - began, error
            )

    async def _whole(self, scope: Scope, receive: Receive, then: Receive) -> Receive:
        """Wait for the body of a request, within its limits, and return what hands it on, and then what comes then."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        large = Refused(problems.TOO_LARGE, f"It may have {self.limits.body:,} bytes.", headers={"Connection": "close"})
        if not declared.isdigit() or int(declared) > self.limits.body:
            raise large
        parts: list[Message] = []
        received = 0
        try:
            async with asyncio.timeout(self.limits.seconds):
                while not parts or parts[-1].get("more_body", False):
                    parts.append(await receive())
                    received += len(parts[-1].get("body", b""))
                    if received > self.limits.body:
                        raise large
        except TimeoutError:
            close = {"Connection": "close"}
            raise Refused(problems.TOO_SLOW, f"It may take {self.limits.seconds:g} s.", headers=close) from None

        async def handed_on() -> Message:
            return parts.pop(0) if parts else await then()

        return handed_on

    def _note(self, scope: Scope, number: str, status: int, seconds: float, error: BaseException | None) -> None:
        route = getattr(scope.get("route"), "path", None) or "other"
        self.telemetry.requests.labels(route, str(status)).inc()
        if "text/event-stream" not in str(dict(scope["headers"]).get(b"accept", b"")):
            self.telemetry.latency.labels(route).observe(seconds)
        facts = {
            "request": number,
            "method": scope["method"],
            "route": route,
            "path": scope["path"][:200],
            "status": status,
            "ms": round(1000 * seconds, 2),
            **scope.get("state", {}).get("facts", {}),
        }
        if error is not None:
            self.log.error("unexpected error", extra={"facts": facts}, exc_info=error)
        else:
            self.log.info("request", extra={"facts": facts})
