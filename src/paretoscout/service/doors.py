"""What every request goes through first: its caller, its size, its time, its number, its line in the log.

The token is checked on the headers. The body is read only then: a caller without a token costs no memory.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import ParetoscoutError
from .problems import of_error
from .reading import Bodies, check_json, is_json
from .service import Service
from .telemetry import logger

#: What anybody may look at: addresses, and beginnings of addresses.
PUBLIC = ("/healthz", "/readyz", "/openapi.json", "/sign-in", "/static/")
#: A body that is larger is looked at in a thread: everybody else would wait.
LOOKED_AT_AT_ONCE = 65_536

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

    def __init__(self, app: ASGIApp, service: Service, refuse: Callable[[Request, Exception], Response]) -> None:
        self.app, self.service, self.refuse, self.log = app, service, refuse, logger()
        self.limits = service.settings.limits
        self.bodies = Bodies(self.limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        number, began = _number_of(scope), time.perf_counter()
        gone = asyncio.Event()  # set when the caller left
        scope.setdefault("state", {}).update(request_id=number, gone=gone)
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

        error: BaseException | None = None
        body, watching = b"", None
        try:
            most = await self._most(inner)
            body = await self.bodies.read(scope, receive, most)
            if body and is_json(scope):
                if len(body) > LOOKED_AT_AT_ONCE:
                    await run_in_threadpool(check_json, body, self.limits)
                else:
                    check_json(body, self.limits)
            watching = asyncio.create_task(_watch(receive, gone))
            parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

            async def handed_on() -> Message:
                if parts:
                    return parts.pop()
                # of HEAD, what would go on for ever has no more to say
                await (begun if head else gone).wait()
                return {"type": "http.disconnect"}

            await self.app(inner, handed_on, answer)
            if head and not answered["whole"]:
                await answer({"type": "http.response.body", "body": b""})
        except ParetoscoutError as refused:
            if not answered["status"]:
                answer_ = self.refuse(Request(inner), refused)
                if watching is None and not _is_small(scope):
                    answer_.headers["Connection"] = "close"  # its body is not read
                await answer_(scope, receive, answer)
        except Exception as unexpected:
            error = unexpected
            if not answered["status"]:
                await of_error(unexpected, number)(scope, receive, answer)
        finally:
            if watching is not None:
                watching.cancel()
            self.bodies.release(body)
            self._note(
                {**inner, "method": scope["method"]}, number, answered["status"], time.perf_counter() - began, error
            )

    async def _most(self, scope: Scope) -> int:
        """Return how many bytes a request may have, by its headers; refuse it if its token is not valid."""
        path = scope["path"]
        if any(path.startswith(public) if public.endswith("/") else path == public for public in PUBLIC):
            return self.limits.small_body
        self.service.threads.check_room()
        who = await run_in_threadpool(self.service.access.caller, Request(scope))
        scope["state"]["who"] = who
        return self.limits.body if who.allows("tell") else self.limits.small_body

    def _note(self, scope: Scope, number: str, status: int, seconds: float, error: BaseException | None) -> None:
        route = getattr(scope.get("route"), "path", None) or "other"
        self.service.telemetry.requests.labels(route, str(status)).inc()
        if "text/event-stream" not in str(dict(scope["headers"]).get(b"accept", b"")):
            self.service.telemetry.latency.labels(route).observe(seconds)
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


def _is_small(scope: Scope) -> bool:
    """True if the body of a request is so small that the server may as well let it come in, and throw it away."""
    headers = dict(scope["headers"])
    declared = headers.get(b"content-length", b"0")
    return (
        b"transfer-encoding" not in headers
        and declared.isdigit()
        and len(declared) < 6
        and int(declared) <= LOOKED_AT_AT_ONCE
    )


async def _watch(receive: Receive, gone: asyncio.Event) -> None:
    """Notice that the caller left."""
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()
