"""Who calls, and what they may do."""

from __future__ import annotations

import asyncio
import hmac
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import urlsplit

from starlette.requests import Request

from ..errors import NotAllowed
from . import problems
from .problems import Refused
from .settings import ServerSettings, is_loopback
from .tokens import SCOPES, Token, Tokens, Workers

COOKIE = "paretoscout_token"
#: Methods that change nothing.
SAFE = ("GET", "HEAD", "OPTIONS")
#: Headers that proxies add: the caller may be anywhere.
BY_PROXY = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
#: Whether there are tokens is looked up at most so often.
LOOKED_SECONDS = 1.0
FAILURE_SECONDS = 60.0


@dataclass(frozen=True)
class Who:
    """Who calls. token: its name, "" on a server without tokens. csrf: what a page sends with its forms."""

    token: str
    scope: str
    study: str | None
    worker: str
    by_cookie: bool = False
    csrf: str = ""
    gone: asyncio.Event = field(default_factory=asyncio.Event, compare=False)  # set when they left

    def allows(self, scope: str) -> bool:
        """Whether they may do what a scope is for."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    def may_see(self, study: str) -> bool:
        """Whether a study is one of theirs."""
        return self.study in (None, study)


class Access:
    """Finds out who calls."""

    #: Is called for each wrong token.
    on_failure: Callable[[], object] = staticmethod(lambda: None)

    def __init__(self, settings: ServerSettings, tokens: Tokens) -> None:
        self.settings, self.tokens, self.workers = settings, tokens, Workers(tokens, settings.limits.workers)
        self._failures: dict[str, deque[float]] = {}
        self._lock = threading.Lock()
        self._looked, self._made = -LOOKED_SECONDS, False
        self._valid: set[str] = set()  # names of tokens

    @property
    def needed(self) -> bool:
        """True if every request needs a token: unless only this machine can call, and no token was ever made.

        A token that expired or was revoked still counts: the server stays closed when the last one ends.
        """
        if not self.settings.alone or self._made:
            return True
        if time.monotonic() - self._looked >= LOOKED_SECONDS:
            self._made, self._looked = self.tokens.any(), time.monotonic()
        return self._made

    def look_again(self) -> bool:
        """Look up which tokens can be used; return True if one cannot be used any more."""
        made, before = self._made, self._valid
        self._valid = self.tokens.valid_ids()
        return not before <= self._valid or (self.needed and not made)

    def still(self, who: Who) -> bool:
        """True if somebody who came in may stay, by what was last looked up."""
        return who.token in self._valid if who.token else not self._made

    def who(self, request: Request, scope: str, study: str | None = None) -> Who:
        """Return who calls, if they may do what the scope is for, to this study. Their token was looked up before."""
        who: Who = request.state.who
        if who.by_cookie and request.method not in SAFE:
            self.check_csrf(who, request.headers.get("x-csrf-token", ""))
        if not who.allows(scope):
            raise NotAllowed(f"this needs a token with the scope {scope!r}, got one with {who.scope!r}")
        if study is not None and not who.may_see(study):
            raise NotAllowed(f"the token is for study {who.study!r} only")
        return who

    def caller(self, request: Request) -> Who:
        """Return who calls."""
        self._check_site(request)
        sent = request.headers.get("authorization", "").strip()
        by_cookie = not sent
        text = request.cookies.get(COOKIE, "") if by_cookie else _of_header(sent)
        worker = self._worker(request)
        if not text and not self.needed:
            self._check_host(request)
            return Who("", SCOPES[-1], None, worker or "local", gone=request.state.gone)
        if not text:
            raise Refused(problems.NO_TOKEN, "No token was sent.")
        token = self.tokens.find(text)
        if token is None:
            self._note_failure(request)
            raise Refused(problems.NO_TOKEN, "The token is wrong, has ended, or was revoked.")
        self._valid.add(token.id)
        csrf, gone = csrf_of(text), request.state.gone
        return Who(token.id, token.scope, token.study, worker or token.id, by_cookie, csrf, gone)

    def sign_in(self, request: Request, text: str) -> Token:
        """Return the token that somebody typed into the page."""
        self._check_site(request)
        token = self.tokens.find(text.strip())
        if token is None:
            self._note_failure(request)
            raise Refused(problems.NO_TOKEN, "The token is wrong, has ended, or was revoked.")
        return token

    def check_csrf(self, who: Who, sent: str) -> None:
        """Refuse a form or a call by cookie that does not come from a page of ours."""
        if not hmac.compare_digest(who.csrf, sent):
            raise Refused(problems.OTHER_SITE, "The request must carry what the page was given (X-CSRF-Token).")

    def may_tell(self, who: Who, asked_by: str) -> bool:
        """Whether somebody may tell the outcome of a trial, by who asked for it."""
        return self.workers.token_of(asked_by) == who.token

    def _worker(self, request: Request) -> str:
        name = request.headers.get("x-worker", "")
        if len(name) > self.settings.limits.name or not name.isprintable():
            most = self.settings.limits.name
            raise Refused(
                problems.INVALID,
                f"X-Worker must be one line of at most {most} letters",
                "X-Worker",
            )
        return name.strip()

    def _check_site(self, request: Request) -> None:
        """Refuse what a page of another site sends in the name of whoever looks at it."""
        if request.method in SAFE:
            return
        origin = request.headers.get("origin")
        host = request.headers.get("host", "")
        try:
            elsewhere = origin is not None and urlsplit(origin).netloc != host
        except ValueError:  # such as http://[
            elsewhere = True
        if elsewhere or request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise Refused(problems.OTHER_SITE, "It was sent by a page of another site.")

    def _check_host(self, request: Request) -> None:
        """Refuse calls by another name than that of this machine (another site's name may lead here), or by a proxy."""
        try:
            host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        except ValueError:
            host = "?"
        by_proxy = [name for name in BY_PROXY if name in request.headers]
        if by_proxy or not is_loopback(host):
            got = f"the header {by_proxy[0]}" if by_proxy else f"{host[:100]!r}"
            raise Refused(
                problems.OTHER_SITE,
                f"Without tokens the server answers to programs on localhost only, got {got}: make a token "
                "(paretoscout token create)",
            )

    def _note_failure(self, request: Request) -> None:
        """Count a wrong token. Right ones always get in: nobody can lock others out."""
        self.on_failure()
        address, now = request.client.host if request.client else "", time.monotonic()
        with self._lock:
            times = self._failures.setdefault(address, deque())
            while times and now - times[0] > FAILURE_SECONDS:
                times.popleft()
            times.append(now)
            if len(self._failures) > 10_000:  # whoever has so many addresses is not held up by counting them
                self._failures.clear()
            many = len(times) > self.settings.limits.failures
            while len(times) > self.settings.limits.failures + 1:
                times.popleft()
        if many:
            raise Refused(problems.MANY_FAILURES, f"More than {self.settings.limits.failures} within a minute.")


def _of_header(sent: str) -> str:
    """Return the token of an Authorization header."""
    scheme, _, text = sent.partition(" ")
    if scheme.lower() != "bearer":
        raise Refused(problems.NO_TOKEN, "The header must be: Authorization: Bearer TOKEN.")
    return text.strip()


def csrf_of(token: str) -> str:
    """Return what a page sends with its forms: nobody else can know it, and it says nothing of the token."""
    return hmac.new(sha256(token.encode()).digest(), b"csrf", "sha256").hexdigest()
