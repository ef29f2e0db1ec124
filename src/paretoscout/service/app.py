"""The application: its parts put together, from the first byte of a request to the last of the answer."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response, StreamingResponse
from starlette.exceptions import HTTPException

from .. import __version__
from ..errors import ParetoscoutError, UnknownName
from ..study import schema
from . import api, bodies, live, problems, telemetry, watch
from .doors import Doors
from .pages import add_pages, for_people, page_of_problem
from .problems import Refused, of_error, of_validation, problem
from .service import Service
from .settings import ServerSettings
from .warm import warm_up

#: Where the processes of a server find what it was told.
VARIABLE = "PARETOSCOUT_SERVER"
#: A process that was told to end is gone after so many seconds.
END_SECONDS = 18.0
ABOUT = """Studies of a team: ask which option to measure next, tell outcomes, and see which options are proven to be
Pareto-optimal, with a stated probability of being right.

Send a token as `Authorization: Bearer TOKEN`; on the machine of the server none is needed until there is one. Send an
`Idempotency-Key` of your own drawing with everything that changes something: the same request again, with the same
key, is done once and gets the same answer. Errors are `application/problem+json`; their types are stable."""


def make_app(settings: ServerSettings | None = None) -> FastAPI:
    """Return the application; without settings, by those in the environment."""
    if settings is None:
        telemetry.log_all()
    told = settings or ServerSettings.of_text(os.environ[VARIABLE])
    service = Service(told)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        service.live.closing = asyncio.Event()
        service.threads.begin()
        _let_readers_go(service, asyncio.get_running_loop())
        _end_with_parent()
        if told.warm:
            threading.Thread(target=warm_up, args=(service.ready,), daemon=True, name="warm-up").start()
        else:
            service.ready.set()
        over = watch.begin(service, lambda: service.threads.in_use)
        yield
        over.set()
        service.close()
        service.storage.close()

    app = FastAPI(
        title="paretoscout",
        version=__version__,
        description=ABOUT,
        lifespan=life,
        redirect_slashes=False,  # it would send to http://, and to any host
        docs_url=None,
        redoc_url=None,
        responses={},
    )
    app.state.service = service
    app.include_router(api.router)
    _add_events(app, service)
    _add_health(app, service)
    add_pages(app, service)
    _add_errors(app)
    app.add_middleware(Doors, service=service, refuse=_refuse)
    app.openapi = lambda: _description(app)  # type: ignore[method-assign]
    return app


def _let_readers_go(service: Service, loop: asyncio.AbstractEventLoop) -> None:
    """Let readers of live events go as soon as the server is told to end: it would wait for them."""
    if threading.current_thread() is not threading.main_thread():
        return  # a test, which gets no signals
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)

        def end(signum: int, frame: Any, before: Any = before) -> None:
            _end_at_last()
            loop.call_soon_threadsafe(service.close)
            if callable(before):
                before(signum, frame)

        signal.signal(number, end)


def _end_at_last() -> None:
    """End this process in time, whatever its threads compute: what was acknowledged is kept."""
    last = threading.Timer(END_SECONDS, os._exit, (0,))
    last.daemon = True
    last.start()


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, however that ended: it would keep the port."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return  # it is the only one

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="parent").start()


def _add_events(app: FastAPI, service: Service) -> None:
    """Add the route of live events: the only one that does not end by itself."""

    @app.get(
        "/v1/studies/{name}/events",
        summary="Events as they happen",
        response_class=StreamingResponse,
        responses={200: {"description": "Server-sent events", "content": {live.MEDIA_TYPE: {}}}, **api.PROBLEMS},
    )
    async def events(
        who: api.Reader,
        name: api.StudyName,
        after: Annotated[int, Query(ge=-1, lt=2**63, description="only events with larger numbers")] = -1,
        follow: Annotated[bool, Query(description="wait for those to come")] = True,
        brief: Annotated[bool, Query(description="only the number of the last one")] = False,
        last_event_id: Annotated[str | None, Header(max_length=30)] = None,
    ) -> StreamingResponse:
        """All events with numbers above `after`, and those to come. After a break, go on by Last-Event-ID."""
        if last_event_id is not None and last_event_id.isdecimal() and len(last_event_id) < 19:
            after = max(after, int(last_event_id))
        return live.Stream(service.live, await service.live.stream(who, name, after, follow, brief))


def _add_health(app: FastAPI, service: Service) -> None:
    """Add what watches a server asks for."""

    @app.get("/healthz", summary="Whether the server lives")
    async def healthz() -> bodies.HealthOut:
        """It lives as soon as it answers, and says which version it is."""
        return bodies.HealthOut(status="ok", version=__version__)

    @app.get("/readyz", summary="Whether the server is ready", responses=api.PROBLEMS)
    def readyz() -> bodies.HealthOut:
        """Ready: everything is compiled, and the storage can be written."""
        if not service.ready.is_set():
            raise Refused(problems.NOT_READY, "Everything is being compiled.")
        service.storage.probe()
        return bodies.HealthOut(status="ok", version=__version__)

    @app.get(
        "/metrics",
        summary="Numbers for Prometheus",
        response_class=Response,
        responses={200: {"description": "Prometheus text", "content": {"text/plain": {}}}, **api.PROBLEMS},
    )
    def metrics(who: api.Watcher) -> Response:
        """Requests, latency, waiting for locks, studies, open trials, memory, CPU, threads, wrong tokens."""
        return Response(service.metrics(), media_type=telemetry.MEDIA_TYPE)


def _add_errors(app: FastAPI) -> None:
    def number(request: Request) -> str:
        return str(request.state.request_id)

    @app.exception_handler(ParetoscoutError)
    async def _(request: Request, error: ParetoscoutError) -> Response:
        return _refuse(request, error)

    @app.exception_handler(RequestValidationError)
    async def _(request: Request, error: RequestValidationError) -> Response:
        return of_validation(error.errors(), number(request))

    @app.exception_handler(HTTPException)
    async def _(request: Request, error: HTTPException) -> Response:
        kinds = {404: problems.NOT_FOUND, 405: problems.NO_METHOD}
        kind = kinds.get(error.status_code, problems.INVALID)
        if for_people(request):
            return page_of_problem(request, Refused(kind))
        return problem(kind, str(error.detail)[:500], number(request), headers=error.headers)


def _refuse(request: Request, error: Exception) -> Response:
    """Return the answer to a request that is refused: a page for people, or else a problem."""
    if isinstance(error, UnknownName) and error.kind == "study" and getattr(request.state, "one_study", False):
        error = UnknownName("study", error.name, [])  # whoever has a token for one study learns no names of others
    if isinstance(error, ParetoscoutError) and for_people(request):
        return page_of_problem(request, error)
    return of_error(error, str(request.state.request_id))


def _description(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with the schema of standings and of problems, made once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
        )
        parts = made["components"]["schemas"]
        parts["Problem"] = bodies.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        standing = schema()
        for name, part in standing.pop("$defs").items():
            parts[f"Standing-{name}"] = _renamed(part)
        for key in ("$schema", "$id"):
            standing.pop(key, None)
        parts["Standing"] = _renamed(standing)
        for unused in ("HTTPValidationError", "ValidationError"):
            parts.pop(unused, None)
        for routes in made["paths"].values():
            for route in routes.values():
                route["responses"].pop("422", None)  # among 4XX
        made["x-problems"] = [
            {"type": kind.type, "status": kind.status, "title": kind.title, "hint": kind.hint} for kind in problems.ALL
        ]
        app.openapi_schema = made
    return app.openapi_schema


def _renamed(part: Any) -> Any:
    """Return a part of the schema of standings whose references lead to where its parts are now."""
    if isinstance(part, dict):
        return {
            key: value.replace("#/$defs/", "#/components/schemas/Standing-") if key == "$ref" else _renamed(value)
            for key, value in part.items()
        }
    return [_renamed(each) for each in part] if isinstance(part, list) else part
