"""What is read of a request: its body, within limits, and JSON in which everything is what it seems to be."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from starlette.types import Message, Receive, Scope

from .. import checks
from . import problems
from .problems import Refused
from .settings import Limits

CLOSE = {"Connection": "close"}


class Bodies:
    """The bodies that are in memory at the same time."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held = 0  # bytes

    async def read(self, scope: Scope, receive: Receive, most: int) -> bytes:
        """Return the body of a request, which may have at most so many bytes; let go of it with `release`."""
        large = Refused(problems.TOO_LARGE, f"It may have {most:,} bytes.", headers=CLOSE)
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or len(declared) > 15 or int(declared) > most:
            raise large
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.limits.seconds):
                more = True
                while more:
                    message: Message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(problems.TOO_SLOW, "The connection ended in the middle of it.", headers=CLOSE)
                    part = message.get("body", b"")
                    size += len(part)
                    if size > most:
                        raise large
                    if self.held + len(part) > self.limits.bodies:
                        raise Refused(problems.BUSY, "Too many large requests at the same time.", headers=CLOSE)
                    self.held += len(part)
                    parts.append(part)
                    more = message.get("more_body", False)
        except TimeoutError:
            self.held -= sum(map(len, parts))
            raise Refused(problems.TOO_SLOW, f"It may take {self.limits.seconds:g} s.", headers=CLOSE) from None
        except BaseException:
            self.held -= sum(map(len, parts))
            raise
        return b"".join(parts)

    def release(self, body: bytes) -> None:
        """Let go of a body."""
        self.held -= len(body)


def is_json(scope: Scope) -> bool:
    """True if a request says that its body is JSON."""
    kind = dict(scope["headers"]).get(b"content-type", b"").partition(b";")[0].strip().lower()
    return kind.startswith(b"application/") and (kind.endswith((b"/json", b"+json")))


def check_json(body: bytes, limits: Limits) -> None:
    """Refuse JSON that is too deep or too large, or has a key twice, or numbers or texts beyond their limits.

    What is no JSON at all is left to whoever reads it next, who knows better what to say.
    """
    wrong: list[str] = []  # the first one counts

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            wrong[1:] = [f"keys of an object must differ, got {checks.got(twice)} twice"]
        return found

    def whole(text: str) -> float:
        return fraction(text) if len(text) > 20 else int(text)

    def fraction(text: str) -> float:
        number = float(text)
        if not abs(number) <= checks.LARGEST:
            wrong[1:] = [f"numbers must be finite and at most {checks.LARGEST:g} in size, got {checks.got(text)}"]
        return number

    try:
        value = json.loads(body, object_pairs_hook=once, parse_int=whole, parse_float=fraction, parse_constant=fraction)
    except RecursionError:
        wrong[1:] = [f"it must be nested at most {checks.DEEPEST} deep, got more"]
    except ValueError:
        return
    else:
        checks.not_nested("body", value)
        _check_texts(value, limits, wrong)
    if wrong:
        raise Refused(problems.INVALID, f"body: {wrong[0]}", "body")


def _check_texts(value: Any, limits: Limits, wrong: list[str]) -> None:
    if isinstance(value, str):
        if len(value) > limits.text:
            wrong[1:] = [f"texts must have at most {limits.text} letters, got {len(value):,}: {checks.got(value)}"]
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if len(name) > limits.names:
                wrong[1:] = [f"names must have at most {limits.names} letters, got {len(name):,}: {checks.got(name)}"]
            _check_texts(inner, limits, wrong)
    elif isinstance(value, list):
        for inner in value:
            _check_texts(inner, limits, wrong)
