"""`/v1`: each route is one method of a study."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response, Security
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPBearer

from ..answer import sentence
from ..errors import InvalidInput, ParetoscoutError, UnknownName
from ..storage import Event
from ..study import Below, Study, StudySpec, Voided
from ..study.described import settings_of
from ..study.exported import csv_lines, json_lines
from ..study.study import remark
from ..study.workers import UNKNOWN, Process
from . import bodies, problems
from .access import Who
from .bodies import LIMITS
from .problems import Refused
from .service import Service
from .studies import Key
from .telemetry import logger
from .threads import long_read

#: Every route may answer by a problem.
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": description,
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status, description in (("4XX", "The request is refused; nothing was changed"), ("5XX", "The server failed"))
}
STANDING: dict[str, Any] = {
    "description": "All that is known of the study",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Standing"}}},
}
router = APIRouter(prefix="/v1", responses=PROBLEMS, dependencies=[Security(HTTPBearer(auto_error=False))])
JSON = "application/json"


async def service_of(request: Request) -> Service:
    """Return what the server works with."""
    service: Service = request.app.state.service
    return service


def needs(scope: str) -> Callable[..., Awaitable[Who]]:
    """Return what finds out who calls, and refuses them if they may not do what the scope is for."""

    async def who(request: Request) -> Who:
        service: Service = request.app.state.service
        found = service.access.who(request, scope, request.path_params.get("name"))
        request.state.facts = {"token": found.token, "worker": found.worker}
        request.state.one_study = found.study is not None
        return found

    return who


async def key_of(
    request: Request,
    idempotency_key: Annotated[
        str | None, Header(max_length=LIMITS.name, description="drawn by the caller: the same again is done once")
    ] = None,
) -> Key:
    """Return what makes a request the same as another one."""
    body = await request.body()
    said = "\n".join([request.method, request.url.path, request.url.query]).encode() + b"\n" + body
    return Key(idempotency_key or None, hashlib.sha256(said).hexdigest())


StudyName = Annotated[
    str, Path(max_length=LIMITS.names, pattern=r"^[^\x00-\x1f]+$", description="name of the study", examples=["models"])
]
Called = Annotated[Service, Depends(service_of)]
Watcher = Annotated[Who, Depends(needs("metrics"))]
Reader = Annotated[Who, Depends(needs("read"))]
Teller = Annotated[Who, Depends(needs("tell"))]
Writer = Annotated[Who, Depends(needs("write"))]
Admin = Annotated[Who, Depends(needs("admin"))]
Keyed = Annotated[Key, Depends(key_of)]
Option = Annotated[str, Query(max_length=LIMITS.names, description="name of the option")]


def answered(text: str, again: bool) -> Response:
    """Return an answer that is kept as text; one that was given before says so."""
    return Response(text, media_type=JSON, headers={"Idempotency-Replayed": "true"} if again else {})


def standing_of(study: Study, at: int | None = None) -> Response:
    """Return all that is known of a study."""
    return Response(study.standing(at).as_json(indent=None), media_type=JSON)


# Studies


@router.get("/studies", summary="List the studies")
def list_studies(service: Called, who: Reader) -> bodies.StudiesOut:
    """All studies that you may see, oldest first, without loading them."""
    found = [_listed(each) for each in service.storage.listed() if who.may_see(each.name)]
    return bodies.StudiesOut(studies=found)


def _listed(each: Any) -> bodies.StudyOut:
    about: dict[str, Any] = {"name": each.name, "event": each.last, "at": each.at, "by": each.by or None}
    try:
        if not isinstance(each.spec, str):
            raise each.spec
        spec = StudySpec.of_text(each.spec, each.name)
    except ParetoscoutError as problem:
        return bodies.StudyOut(title=None, options=None, metrics=None, unreadable=str(problem), **about)
    metrics = {metric.name: metric.direction for metric in spec.metrics}
    return bodies.StudyOut(title=spec.title or None, options=len(spec.arms), metrics=metrics, **about)


@router.post("/studies", status_code=201, responses={201: STANDING}, summary="Make a study")
def create_study(service: Called, who: Writer, key: Keyed, body: bodies.StudyBody) -> Response:
    """Make a study. The same settings again change nothing."""
    if not who.may_see(body.name):
        raise Refused(problems.NOT_ALLOWED, f"the token is for study {who.study!r} only", "name")
    if (known := service.studies.answered(who, key)) is not None:
        return Response(known, 201, {"Idempotency-Replayed": "true"}, JSON)
    limits = service.settings.limits
    if "/" in body.name:
        raise InvalidInput(f"name of a study must have no '/' in it, got {body.name!r}", "name")
    features = _features(body)
    for what, n, most in (
        ("arms", len(body.arms), limits.arms),
        ("blocks", 0 if body.blocks is None else len(body.blocks), limits.blocks),
        ("contexts", features, limits.contexts),
    ):
        if n > most:
            raise Refused(problems.TOO_MANY, f"a study may have {most:,} {what}, got {n:,}", what)
    for what, n in (("metrics", len(body.metrics)), ("contexts", features)):
        if n * len(body.arms) > limits.cells:
            raise Refused(
                problems.TOO_MANY, f"arms times {what} may be {limits.cells:,}, got {n * len(body.arms):,}", what
            )
    made = {each.name: each.by for each in service.storage.listed()}
    there = body.name in made
    if not there and list(made.values()).count(who.token) >= limits.studies:
        raise Refused(problems.TOO_MANY, f"a token may make {limits.studies:,} studies: delete some")
    described = body.model_dump(exclude_unset=True, exclude={"name", "note", "tags"})
    noted = remark("a study", body.note, body.tags)
    described["metrics"] = {
        name: {"direction": about} if isinstance(about, str) else about for name, about in described["metrics"].items()
    }
    settings = settings_of(described, "the study")
    study = Study(name=body.name, storage=service.storage, worker=who.token, **settings)
    if noted and not there:
        with service.studies.acting(study, who):
            study.annotate(body.note, body.tags)
    text = study.standing().as_json(indent=None)
    service.keep(study.name, who, key, text)
    return Response(text, 201, media_type=JSON)


def _features(body: bodies.StudyBody) -> int:
    """Return how many features the contexts of a study are, once categories are encoded."""
    rows = [row for row in body.arms if isinstance(row, dict)]
    kinds = [{row.get(name) for row in rows} for name in body.contexts]
    return sum(max(1, len(each) - 1) if any(isinstance(value, str) for value in each) else 1 for each in kinds)


@router.get("/studies/{name}", summary="What a study was made with")
@long_read
def settings(service: Called, who: Reader, name: StudyName) -> bodies.SettingsOut:
    """What a study was made with, as far as whoever measures must know it."""
    spec = service.studies.read(name, lambda study: study.spec)
    blocks = spec.asked.blocks
    return bodies.SettingsOut(
        name=name,
        title=spec.title or None,
        arms=list(spec.arms),
        columns=list(spec.columns),
        metrics={metric.name: metric.direction for metric in spec.metrics},
        guards=[spec.limit(guard) for guard in spec.guards],
        blocks=None if blocks is None else len(blocks.names),
        budget=spec.budget,
        lease=spec.lease,
        give_up=spec.give_up,
        delta=spec.asked.delta,
        algorithm=spec.algorithm,
    )


@router.delete("/studies/{name}", status_code=204, summary="Delete a study and all its measurements")
def delete_study(request: Request, service: Called, who: Admin, name: StudyName) -> Response:
    """Delete a study. Its measurements are gone then: export them first."""
    service.storage.delete(name)
    service.studies.forget(name)
    facts = {"request": request.state.request_id, "who": who.token or "local", "worker": who.worker, "study": name}
    logger().info("study deleted", extra={"facts": facts})
    return Response(status_code=204)


@router.get("/studies/{name}/standing", responses={200: STANDING}, summary="All that is known")
@long_read
def standing(
    service: Called, who: Reader, name: StudyName, at: Annotated[int | None, Query(ge=-1, lt=2**63)] = None
) -> Response:
    """All that is known of a study after its last event, or after an earlier one, by its number."""
    return service.studies.read(name, lambda study: standing_of(study, at))


@router.get("/studies/{name}/front", summary="The answer")
@long_read
def front(service: Called, who: Reader, name: StudyName) -> bodies.FrontOut:
    """The options that are proven to be on the front, and the answer as a sentence."""

    def look(study: Study) -> bodies.FrontOut:
        known = study.standing()
        says = sentence(known.table)
        return bodies.FrontOut(front=list(known.front), done=known.done, finished=known.finished, says=says)

    return service.studies.read(name, look)


@router.get("/studies/{name}/explain", summary="Why an option has its verdict")
@long_read
def explain(
    service: Called,
    who: Reader,
    name: StudyName,
    option: Option,
    rival: Annotated[str | None, Query(max_length=LIMITS.names)] = None,
) -> bodies.ExplanationOut:
    """Why an option has its verdict, by how much, and what is still missing; compared with its nearest rival."""

    def look(study: Study) -> bodies.ExplanationOut:
        details = study.details()  # one moment for all of it
        said = details.explain(option)
        against = rival or said.rival
        known = details.standing
        pair = None
        if said.verdict != "withdrawn" and against is not None and against != option:
            pair = known.pair(option, against).as_dict()
        facts = {name: value for name, value in vars(said).items() if name != "arm"}
        facts["expected"] = _known(said.expected)
        facts["margins"] = {name: value for name, value in said.margins.items() if math.isfinite(value)}
        return bodies.ExplanationOut(option=option, pair=pair, **facts)

    return service.studies.read(name, look)


@router.get("/studies/{name}/against", summary="Differences from one option")
@long_read
def against(service: Called, who: Reader, name: StudyName, option: Option) -> bodies.AgainstOut:
    """How all other options differ from this one, such as the present one: in the metric's unit, and as a share."""

    def look(study: Study) -> bodies.AgainstOut:
        changes = [
            bodies.ChangesOut(
                option=other,
                metrics={
                    each.metric: bodies.ChangeOut(**{key: vars(each)[key] for key in bodies.ChangeOut.model_fields})
                    for each in found
                },
            )
            for other, found in study.standing().against(option).items()
        ]
        return bodies.AgainstOut(reference=option, options=changes)

    return service.studies.read(name, look)


@router.get("/studies/{name}/asked-and-told", summary="Whether what is lost depends on the option")
@long_read
def asked_and_told(service: Called, who: Reader, name: StudyName) -> bodies.AskedAndToldOut:
    """What became of the trials of each option: how many were asked, told, given up, failed, are open."""

    def look(study: Study) -> bodies.AskedAndToldOut:
        found = study.asked_and_told().items()
        rows = [bodies.HeardOut(option=option, share=heard.share, **vars(heard)) for option, heard in found]
        return bodies.AskedAndToldOut(options=rows)

    return service.studies.read(name, look)


@router.get("/studies/{name}/remaining", summary="What it will cost to know more")
@long_read
def remaining(service: Called, who: Reader, name: StudyName) -> bodies.RemainingOut:
    """How many more measurements until every option has its verdict, about."""

    def look(study: Study) -> bodies.RemainingOut:
        ahead = study.remaining(seconds=0.5)
        facts = {name: _known(getattr(ahead, name)) for name in ("samples", "low", "high", "uniform")}
        return bodies.RemainingOut(says=str(ahead), **facts)

    return service.studies.read(name, look)


def _known(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


@router.get(
    "/studies/{name}/export",
    summary="All measurements",
    response_class=StreamingResponse,
    responses={200: {"description": "CSV or JSON", "content": {"text/csv": {}, JSON: {}}}},
)
def export(
    service: Called,
    who: Reader,
    name: StudyName,
    form: Annotated[Literal["csv", "json"], Query(alias="format")] = "csv",
) -> StreamingResponse:
    """All measurements: trial (empty: imported), option, block, metrics, time."""
    study = service.studies.read(name, lambda study: study)  # refused now, if there is no such study
    lines: Iterator[str] = csv_lines(study) if form == "csv" else json_lines(study)
    media = "text/csv; charset=utf-8" if form == "csv" else JSON
    safe = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)[:60]
    headers = {"Content-Disposition": f'attachment; filename="{safe}.{form}"'}
    chunks = service.threads.each(who.token, who.gone, _chunks(lines))
    return StreamingResponse(chunks, media_type=media, headers=headers)


def _chunks(lines: Iterator[str], size: int = 65_536) -> Iterator[str]:
    """Join lines, so that each is not sent by itself."""
    waiting: list[str] = []
    length = 0
    for text in lines:
        waiting.append(text)
        length += len(text)
        if length >= size:
            yield "".join(waiting)
            waiting, length = [], 0
    yield "".join(waiting)


# Asking and telling


@router.post("/studies/{name}/ask", response_model=bodies.TrialsOut, summary="What to measure next")
def ask(service: Called, who: Teller, key: Keyed, name: StudyName, body: bodies.AskBody) -> Response:
    """Up to `count` trials, to be measured at the same time. Each is yours until its lease ends."""

    def act(study: Study) -> None:
        if body.round is not None:
            study.ask_round(None if body.round == "all" else body.round, body.run)
        else:
            study.ask(body.count, body.option, body.run)

    return answered(*service.studies.do(name, who, key, act, _trials))


@router.post("/studies/{name}/heartbeat", summary="Say that a worker is alive")
def heartbeat(service: Called, who: Teller, name: StudyName, body: bodies.HeartbeatBody) -> bodies.HeardOfOut:
    """Say that the worker (`X-Worker`) is alive. It is no event of the study.

    A worker that said so and then says nothing for 60 seconds is dead: its pending trials are void as soon as somebody
    asks, and are asked again. With `resume` they are void at once.
    """
    process = Process(**body.process.model_dump()) if body.process is not None else UNKNOWN

    def act(study: Study) -> tuple[Voided, ...]:
        if body.over:
            study.sign_off(body.run)
        elif body.resume is not None:
            return study.resume(body.run, body.resume.leave_asked, body.resume.older)
        else:
            study.heartbeat(body.run)
        return ()

    return bodies.HeardOfOut(
        voided=[
            bodies.VoidedOut(
                trial=each.trial.number,
                option=each.trial.arm,
                block=each.trial.block,
                asked_at=each.trial.asked_at,
                overdue=each.trial.overdue,
                by=each.trial.by or None,
                why=each.why,
            )
            for each in service.studies.hear(name, who, process, act)
        ]
    )


def _trials(study: Study, events: list[Event]) -> str | None:
    asked = [event for event in events if event.kind == "ask"]
    if not asked:
        return None
    trials = [
        {
            "trial": event.number,
            "option": event.body["arm"],
            "block": event.body.get("block"),
            "lease_ends": event.at + study.spec.lease,
        }
        for event in asked
    ]
    return json.dumps({"trials": trials})


@router.post("/studies/{name}/observations", response_model=bodies.ToldOut, summary="Tell outcomes")
def observations(
    service: Called,
    who: Teller,
    key: Keyed,
    name: StudyName,
    body: bodies.ObservationBody | bodies.ObservationsBody,
) -> Response:
    """Tell one outcome, or several: all of them are kept or, if one is wrong, none.

    The same outcome again changes nothing. Another one for the same trial is a conflict, and the first one stays.
    Outcomes that nobody asked for name an option in place of a trial; they need the scope `write`, and all of a request
    must be such.
    """
    told = [body] if isinstance(body, bodies.ObservationBody) else body.observations
    asked = [each for each in told if each.trial is not None]
    for each in told:
        if (each.trial is None) == (each.option is None):
            raise InvalidInput("an observation must have either a trial or an option", "trial")
    if asked and len(asked) < len(told):
        raise InvalidInput("observations must all be of trials, or all name options", "observations")
    if not asked and not who.allows("write"):
        raise Refused(problems.NOT_ALLOWED, "outcomes that nobody asked for need the scope 'write'")

    def act(study: Study) -> None:
        if asked:
            study.tell_many(
                (each.trial or 0, _values(each), remark(f"trial {each.trial}", each.note, each.tags)) for each in asked
            )
        else:
            study.tell_frame(_table(study, told))

    return answered(*service.studies.do(name, who, key, act, _told))


def _values(each: bodies.ObservationBody) -> dict[str, Any]:
    return {
        name: Below(value.below) if isinstance(value, bodies.Below) else value for name, value in each.values.items()
    }


def _table(study: Study, rows: list[bodies.ObservationBody]) -> dict[str, list[Any]]:
    """Return outcomes that nobody asked for as a table."""
    for each in rows:
        for metric, value in each.values.items():
            if metric not in study.spec.columns:
                raise UnknownName("metric", metric, study.spec.columns)
            if isinstance(value, bodies.Below):
                raise InvalidInput(f"{metric} of an outcome that nobody asked for must be a number", "values")
    table: dict[str, list[Any]] = {"arm": [each.option for each in rows]}
    if study.has_blocks:
        table["block"] = [each.block or "" for each in rows]
    for metric in study.spec.columns:
        table[metric] = [each.values.get(metric) for each in rows]
    return table


def _told(study: Study, events: list[Event]) -> str:
    new = sum(
        1 if event.kind == "tell" else len(event.body["arms"]) for event in events if event.kind in ("tell", "data")
    )
    void = study.why_void(event.trial or 0 for event in events if event.kind == "tell")
    return json.dumps({"new": new, "event": events[-1].number if events else -1, "void": len(void)})


def _done(study: Study, events: list[Event]) -> str:
    return json.dumps({"event": events[-1].number if events else -1})


@router.get("/studies/{name}/leases", summary="Open trials")
@long_read
def leases(service: Called, who: Reader, name: StudyName) -> bodies.LeasesOut:
    """Trials that were asked and are neither told nor void, oldest first."""

    def look(study: Study) -> bodies.LeasesOut:
        found = [
            bodies.LeaseOut(
                trial=trial.number,
                option=trial.arm,
                block=trial.block,
                lease_ends=trial.asked_at + study.spec.lease,
                asked_at=trial.asked_at,
                overdue=trial.overdue,
                by=trial.by or None,
            )
            for trial in study.standing().open
        ]
        return bodies.LeasesOut(leases=found)

    return service.studies.read(name, look)


@router.delete("/studies/{name}/leases/{trial}", response_model=bodies.DoneOut, summary="Say that a measurement failed")
def give_back(
    service: Called,
    who: Teller,
    key: Keyed,
    name: StudyName,
    trial: Annotated[int, Path(ge=0, lt=2**63)],
    reason: Annotated[str, Query(max_length=LIMITS.text)] = "",
    cut: Annotated[bool, Query(description="in rounds: it was the round that was cut short")] = False,
    why: Annotated[
        Literal["failed", "stopped", "dead"],
        Query(description="whether the measurement failed; or its run was stopped, or its worker died, by chance"),
    ] = "failed",
) -> Response:
    """Give a trial back: it costs no data, and is asked again."""

    def act(study: Study) -> None:
        if why == "failed":
            study.fail(trial, reason, cut)
        else:
            study.void(trial, why, reason)

    return answered(*service.studies.do(name, who, key, act, _done))


# Options and notes


@router.post("/studies/{name}/arms", response_model=bodies.DoneOut, summary="Add options")
def add_arms(service: Called, who: Writer, key: Keyed, name: StudyName, body: bodies.ArmsBody) -> Response:
    """Add options: new ones, or some that were withdrawn. Those that are there keep their share of delta."""
    described = body.model_dump()
    arms = described["arms"]
    if isinstance(arms[0], dict):
        if any(list(row) != list(arms[0]) for row in arms):
            raise InvalidInput("arms must all have the same keys", "arms")
        arms = {column: [row[column] for row in arms] for column in arms[0]}

    def act(study: Study) -> None:
        most = service.settings.limits.arms
        if len(study.spec.arms) + len(body.arms) > most:
            raise Refused(problems.TOO_MANY, f"a study may have {most:,} arms", "arms")
        study.add_arms(arms, looked=body.looked, cost=body.cost)

    return answered(*service.studies.do(name, who, key, act, _done))


@router.delete("/studies/{name}/arms", response_model=bodies.DoneOut, summary="Withdraw an option")
def withdraw(
    service: Called,
    who: Writer,
    key: Keyed,
    name: StudyName,
    option: Option,
    reason: Annotated[str, Query(max_length=LIMITS.text)] = "withdrawn",
    looked: Annotated[bool, Query(description="the outcomes so far were a reason")] = False,
) -> Response:
    """Take an option out. Its outcomes are kept; verdicts that rested on it are judged again."""
    act: Callable[[Study], None] = lambda study: study.withdraw(option, reason, looked)  # noqa: E731
    return answered(*service.studies.do(name, who, key, act, _done))


@router.post("/studies/{name}/note", response_model=bodies.DoneOut, summary="Write a note")
def note(service: Called, who: Writer, key: Keyed, name: StudyName, body: bodies.NoteBody) -> Response:
    """Write a note and tags about the study, or about a trial, in place of those there were."""
    act: Callable[[Study], None] = lambda study: study.annotate(body.note, body.tags, body.trial)  # noqa: E731
    return answered(*service.studies.do(name, who, key, act, _done))
