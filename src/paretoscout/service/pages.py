"""Pages for people: the list of studies, a study, signing in and out. What they look like is in `page/`."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from fastapi import FastAPI, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from ..errors import ParetoscoutError, Stopped
from ..page import (
    Choice,
    Download,
    Frame,
    Row,
    View,
    list_page,
    message_page,
    row_of,
    sign_in_page,
    static,
    study_page,
    unreadable,
    view_of,
)
from ..storage import Listed
from ..study import StudySpec
from . import problems
from .access import COOKIE, Who
from .live import Stream, total
from .problems import Refused, kind_of
from .service import Service

#: So many views of studies are kept.
KEPT_VIEWS = 50
#: A view is made anew at the earliest after so many times the time that it took: whoever measures has the rest.
PAUSES = 3.0
#: A view is made anew after so many seconds, even if nothing happened: leases run out.
OLD_SECONDS = 60.0
#: So many seconds a list may take to look at studies; the rest of them come with the next one.
LIST_SECONDS = 1.0
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}  # the address has the version in it


@dataclass
class _Seen:
    log: str = ""
    view: View | None = None
    made: float = 0.0  # when
    took: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def rests(self) -> float:
        """For how many seconds it may not be made anew: whoever measures has the rest of the time."""
        return max(0.0, self.made + PAUSES * self.took - time.monotonic())


class Views:
    """What pages show, made once for all who look, and no more often than whoever measures can bear."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._seen: OrderedDict[str, _Seen] = OrderedDict()
        self._rows: dict[str, tuple[Listed, Row]] = {}
        self._list = _Seen()

    async def of(self, name: str, who: Who, present: bool = False) -> View:
        """Return the view of a study after its last event or, for whoever need not wait, a moment before."""
        head = await run_in_threadpool(self.service.storage.head, name)
        seen = self._seen.setdefault(name, _Seen())
        if seen.log != head.log:  # it was deleted and made again
            seen = self._seen[name] = _Seen(head.log)
        self._seen.move_to_end(name)
        while len(self._seen) > KEPT_VIEWS:
            self._seen.popitem(last=False)
        if seen.view is not None and not present and (seen.lock.locked() or seen.rests > 0):
            return seen.view
        async with seen.lock:
            if seen.view is not None and seen.view.event >= head.last and time.monotonic() - seen.made < OLD_SECONDS:
                return seen.view
            await asyncio.sleep(seen.rests)
            began = time.monotonic()
            seen.view = await self.service.threads.long(
                who.token, who.gone, lambda: self.service.studies.read(name, view_of)
            )
            seen.made, seen.took = time.monotonic(), time.monotonic() - began
            return seen.view

    async def rows(self, who: Who) -> tuple[list[Row], int]:
        """Return the rows of the list, of studies that somebody may see, and the `total` of these.

        Which studies there are is looked up each time. Nobody waits for what others look up of them.
        """
        listed = await run_in_threadpool(self.service.storage.listed)
        if not self._list.lock.locked() and self._list.rests == 0:
            async with self._list.lock:
                began = time.monotonic()
                with suppress(Refused, Stopped):  # all threads are in use: what is known is shown
                    await self.service.threads.long(who.token, who.gone, lambda: self._look(listed))
                self._list.made, self._list.took = time.monotonic(), time.monotonic() - began
        seen = [each for each in listed if who.may_see(each.name)]
        return await run_in_threadpool(lambda: [self._row(each) for each in reversed(seen)]), total(
            each.last for each in seen
        )

    def _look(self, listed: Sequence[Listed]) -> None:
        """Make the rows of studies that changed, as far as time allows: the rest comes with the next list."""
        end = time.monotonic() + LIST_SECONDS
        self._rows = {each.name: self._rows[each.name] for each in listed if each.name in self._rows}
        for each in reversed(listed):
            known = self._rows.get(each.name)
            if time.monotonic() > end:
                return
            if isinstance(each.spec, str) and (known is None or known[0] != each):
                try:
                    self._rows[each.name] = each, self._looked_at(each)
                except Stopped:
                    return

    def _looked_at(self, each: Listed) -> Row:
        """Return the row of a study."""
        try:
            view = self.service.studies.read(each.name, lambda study: view_of(study, seconds=0.0))
        except Stopped:
            raise
        except ParetoscoutError as problem:
            return unreadable(each.name, str(problem))
        seen = self._seen.get(each.name)
        if seen is not None and seen.view is not None and time.monotonic() - seen.made < OLD_SECONDS:
            view = replace(view, remaining=seen.view.remaining)  # to find out what remains takes long
        return row_of(view, address(each.name))

    def _row(self, each: Listed) -> Row:
        """Return the row of a study as far as it is known."""
        known = self._rows.get(each.name)
        if known is not None and known[0].spec == each.spec and known[0].last <= each.last:
            return known[1]
        try:
            if not isinstance(each.spec, str):
                raise each.spec
            title = StudySpec.of_text(each.spec, each.name).title or each.name
        except ParetoscoutError as problem:
            return unreadable(each.name, str(problem))
        return Row(each.name, title, address(each.name), "running", says="not looked at yet", at=each.at)


def address(name: str) -> str:
    """Return where the page of a study is."""
    return f"/studies/{quote(name, safe='')}"


def add_pages(app: FastAPI, service: Service) -> None:
    """Add the pages. None of them is in the description of the API."""
    views = Views(service)
    hidden: dict[str, Any] = {"include_in_schema": False, "response_class": HTMLResponse}

    @app.get("/", **hidden)
    async def studies(request: Request, q: str = "") -> Response:
        who = service.access.who(request, "read")
        rows, number = await views.rows(who)
        frame = replace(_frame(service, who), events=f"/events?after={number}")
        return HTMLResponse(await run_in_threadpool(list_page, rows, frame, q[:200]))

    @app.get("/events", **{**hidden, "response_class": StreamingResponse})
    async def events(request: Request, after: int = 0) -> Response:
        who = service.access.who(request, "read")
        return Stream(service.live, service.live.anything(who, after))

    @app.get("/studies/{name}", **hidden)
    async def study(request: Request, name: str) -> Response:
        who = service.access.who(request, "read", name)
        view = await views.of(name, who)
        choice = Choice.of(request.query_params)
        host = str(request.base_url).rstrip("/").partition("://")[2]
        scheme = "https" if service.settings.https else "http"
        frame = _frame(service, who, name, f"{scheme}://{host}", view)
        return HTMLResponse(await run_in_threadpool(study_page, view, choice, frame))

    @app.get("/studies/{name}/page.html", **hidden)
    async def copy(request: Request, name: str) -> Response:
        who = service.access.who(request, "read", name)
        view = await views.of(name, who, present=True)
        frame = Frame(now=await run_in_threadpool(service.storage.now), alone=True)
        text = await run_in_threadpool(study_page, view, None, frame)
        return HTMLResponse(text, headers={"Content-Disposition": 'attachment; filename="page.html"'})

    @app.get("/static/{file}", **hidden)
    def files(file: str) -> Response:
        kind = TYPES.get(file.rpartition(".")[2])
        if kind is None or not file.replace(".", "").isalnum():
            raise Refused(problems.NOT_FOUND)
        try:
            return Response(static(file), media_type=kind, headers=FOREVER)
        except (FileNotFoundError, ParetoscoutError):
            raise Refused(problems.NOT_FOUND) from None

    @app.get("/sign-in", **hidden)
    def sign_in(then: str = "/") -> Response:
        return HTMLResponse(sign_in_page(_bare(), then=_inside(then)))

    @app.post("/sign-in", **hidden)
    def signed_in(request: Request, token: Annotated[str, Form()] = "", then: Annotated[str, Form()] = "/") -> Response:
        try:
            found = service.access.sign_in(request, token)
        except Refused as refused:
            page = sign_in_page(_bare(), refused.detail, then=_inside(then))
            return HTMLResponse(page, refused.kind.status)
        answer = RedirectResponse(_inside(then), 303)
        ends = None if found.ends_at is None else max(0, int(found.ends_at - service.storage.now()))
        answer.set_cookie(
            COOKIE,
            token.strip(),
            max_age=ends,
            path="/",
            httponly=True,
            samesite="strict",
            secure=service.settings.https,
        )
        return answer

    @app.post("/sign-out", **hidden)
    def sign_out(request: Request, csrf: Annotated[str, Form()] = "") -> Response:
        who: Who = request.state.who
        service.access.check_csrf(who, csrf)
        answer = RedirectResponse("/sign-in", 303)
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict", secure=service.settings.https)
        return answer


def for_people(request: Request) -> bool:
    """Whether somebody looks at it in a browser: then they get a page, whatever is wrong."""
    return not request.url.path.startswith("/v1/") and "text/html" in request.headers.get("accept", "")


def page_of_problem(request: Request, error: ParetoscoutError) -> Response:
    """Return the page that says what is wrong; where a token is needed, that to sign in."""
    kind = error.kind if isinstance(error, Refused) else kind_of(error)
    if kind is problems.NO_TOKEN:
        then = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/sign-in?then={quote(then)}", 303)
    detail = error.detail if isinstance(error, Refused) else str(error)
    page = message_page(kind.title, detail or kind.hint, _bare(), ("All studies", "/"))
    return HTMLResponse(page, kind.status)


def _inside(then: str) -> str:
    """Return where to go after signing in, if it is a page of ours."""
    parts = urlsplit(then)
    ours = then.startswith("/") and not then.startswith(("//", "/\\")) and not parts.scheme and not parts.netloc
    return then if ours and then.isprintable() and len(then) < 2000 else "/"


def _bare() -> Frame:
    return Frame(now=time.time(), static="/static/", home="/", sign_in="/sign-in")


def _frame(service: Service, who: Who, name: str = "", base: str = "", view: View | None = None) -> Frame:
    """Return what surrounds a page."""
    more: dict[str, Any] = {}
    if view is not None:
        api = f"/v1/studies/{quote(name, safe='')}"
        more = {
            "here": address(name),
            "events": f"{api}/events?brief=true&after={view.event}",
            "share": f"{base}{address(name)}",
            "downloads": (
                Download("Runs, CSV", f"{api}/export", f"{view.samples:,} rows"),
                Download("Runs, JSON", f"{api}/export?format=json"),
                Download("All that is known, JSON", f"{api}/standing"),
                Download("This page as one file", f"{address(name)}/page.html"),
            ),
        }
    return Frame(
        now=service.storage.now(),
        static="/static/",
        home="/",
        links=(("API", "/openapi.json"),),
        sign_out="/sign-out" if who.by_cookie else "",
        user=who.token,
        csrf=who.csrf,
        **more,
    )
