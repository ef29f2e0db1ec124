"""What comes in and goes out, as it stands in `/openapi.json`. What a value must be beyond its form, a study says."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from .settings import Limits

LIMITS = Limits()
#: Numbers are numbers: neither true nor "1.5".
Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-LIMITS.number, le=LIMITS.number)]
Whole = Annotated[int, Field(strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=LIMITS.names)]
Text = Annotated[str, Field(max_length=LIMITS.text)]
Time = Annotated[str, Field(max_length=LIMITS.times)]
Tags = Annotated[list[Name], Field(max_length=LIMITS.tags)]
Cell = Annotated[str, Field(max_length=LIMITS.names)] | StrictBool | Whole | Number | None


class Closed(BaseModel):
    """A body in which nothing else may stand."""

    model_config = ConfigDict(extra="forbid")


class MetricBody(Closed):
    """What is measured."""

    direction: Literal["min", "max"] = "max"
    eps: Annotated[Number | Time, Field(description='difference that does not matter; "2%": a share of the value')] = (
        0.0
    )
    unit: Annotated[str, Field(max_length=50)] = ""
    bounds: Annotated[tuple[Number, Number] | None, Field(description="lowest and highest value")] = None
    exact: Annotated[StrictBool, Field(description="a number that never varies is certain")] = False
    scale: Literal["linear", "log"] | None = None
    ratio: Annotated[Number | None, Field(description="with blocks: how many times another at most")] = None
    kind: Annotated[Literal["number", "pass/fail"], Field(description='"pass/fail": every outcome is 0 or 1')] = (
        "number"
    )


class StudyBody(Closed):
    """A study to be made. What is left out has its default, see `Study` in the Python library."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "name": "models",
                    "title": "Which model answers best for its price?",
                    "arms": ["small", "medium", "large"],
                    "metrics": {
                        "quality": {"direction": "max", "eps": 0.02, "bounds": [0, 1]},
                        "cost": {"direction": "min", "eps": "5%", "unit": "ct"},
                    },
                    "delta": 0.05,
                }
            ]
        },
    )

    name: Annotated[str, Field(min_length=1, max_length=100, description="of the study, without '/'")]
    title: Annotated[Text, Field(description="the question that the study answers")] = ""
    note: Text = ""
    tags: Tags = []
    arms: Annotated[
        list[Name] | list[dict[Name, Cell]],
        Field(min_length=1, description="names of the options, or a table of them: its first column names them"),
    ]
    metrics: Annotated[dict[Name, Literal["min", "max"] | MetricBody], Field(min_length=1, max_length=LIMITS.metrics)]
    sigma: Annotated[
        Number | list[Number] | dict[Name, Number | None] | None,
        Field(description="standard deviation of the noise; left out: it is unknown, and noise is normal"),
    ] = None
    guards: Annotated[
        list[Text], Field(max_length=LIMITS.guards, description='limits that options must keep: "latency <= 200"')
    ] = []
    contexts: Annotated[
        list[Name], Field(max_length=LIMITS.contexts, description="columns of arms that may explain the means")
    ] = []
    model: Literal["none", "linear", "logistic"] = "none"
    theta_max: Number | None = None
    cost: Annotated[
        list[Number] | dict[Name, Number] | Name | None,
        Field(description="what one sample of each option costs; or the column of arms that says it"),
    ] = None
    delta: Annotated[Number, Field(gt=0, lt=1, description="probability of error that is allowed")] = 0.05
    algorithm: Annotated[Text, Field(description="NAME[:SETTING=VALUE...]")] = "scout"
    seed: Annotated[Whole, Field(ge=0, lt=2**63)] = 0
    lease: Annotated[
        Number | Time, Field(description='a trial not told by then is asked again: seconds, or "30min"')
    ] = "1h"
    give_up: Annotated[
        Number | Time | None, Field(description='"lease", "never", or a time span: what comes later is no evidence')
    ] = "lease"
    at_give_up: Annotated[dict[Name, Number] | None, Field(description='what silence means: {"conversion": 0}')] = None
    order: Literal["asked", "told"] = "asked"
    goal: Annotated[Time | Whole | None, Field(description='"practical", "front", "cover" or a number of options')] = (
        None
    )
    budget: Annotated[Whole | None, Field(ge=1, lt=2**53)] = None
    blocks: Annotated[
        list[Name] | Literal["rounds"] | None, Field(description="what every option is measured on, such as prompts")
    ] = None
    target: Literal["list", "population"] = "list"
    sample: Annotated[bool, Field(description="the blocks of a list are a random sample of a population")] = False
    tradeoffs: Annotated[
        Annotated[list[Text], Field(max_length=LIMITS.tradeoffs)]
        | Annotated[list[list[Number]], Field(max_length=LIMITS.tradeoffs)]
        | None,
        Field(description='what metrics are worth in units of others: "1 ms <= 3 MB"; or rows of weights'),
    ] = None


Run = Annotated[
    str,
    Field(max_length=100, pattern=r"^[!-~]*$", description="drawn by a worker that sends heartbeats with it; or none"),
]


class ProcessBody(Closed):
    """A process. It is seen to have ended where the server runs on the same machine."""

    host: Annotated[str, Field(max_length=200)] = ""
    pid: Annotated[int | None, Field(ge=1, lt=2**31)] = None
    started: Annotated[str, Field(max_length=100)] = ""


class ResumeBody(Closed):
    """Which trials a worker takes over: those of dead workers, and what was asked by hand if no other one is alive."""

    leave_asked: Annotated[bool, Field(description="leave alone what was asked by hand")] = False
    older: Annotated[Number, Field(ge=0, le=1e9, description="by hand: and more than this many seconds ago")] = 0.0


class HeartbeatBody(Closed):
    """A sign of life of a worker."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"run": "8f2c"}]})

    run: Run = ""
    process: ProcessBody | None = None
    over: Annotated[bool, Field(description="the worker stops: its pending trials are void")] = False
    resume: Annotated[ResumeBody | None, Field(description="void what nobody measures any more")] = None


class VoidedOut(Closed):
    """A trial that was voided: it is asked again."""

    trial: int
    option: str
    block: str | None = None
    asked_at: float
    overdue: bool
    by: str | None
    why: Annotated[str, Field(description='"dead": its worker died; "asked": it was asked by hand')]


class HeardOfOut(Closed):
    """What became of a heartbeat."""

    voided: list[VoidedOut]


class AskBody(Closed):
    """How many trials are wanted, and of what."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"count": 2}]})

    count: Annotated[
        Whole, Field(ge=1, le=LIMITS.batch, description="up to so many, to be measured at the same time")
    ] = 1
    option: Annotated[Name | None, Field(description="this one, whatever the algorithm would ask for")] = None
    round: Annotated[
        list[Name] | Literal["all"] | None,
        Field(description='in a study in rounds: a trial of each of these options, or of "all" that matter'),
    ] = None
    run: Run = ""


class TrialOut(Closed):
    """One measurement to make."""

    trial: Annotated[int, Field(description="its number: tell the outcome by it")]
    option: Annotated[str, Field(description="what to measure")]
    block: Annotated[str | None, Field(description="on what, in a study with blocks")] = None
    lease_ends: Annotated[float, Field(description="when it is asked again if it was not told, seconds since 1970")]


class TrialsOut(Closed):
    """Measurements to make."""

    trials: list[TrialOut]


class Below(Closed):
    """A value too small to be measured: at most so large."""

    below: Number


class ObservationBody(Closed):
    """The outcome of a trial; or, with `option` in place of `trial`, one that nobody asked for."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"trial": 0, "values": {"quality": 0.81, "cost": 1.2}, "note": "warm"}]},
    )

    trial: Annotated[Whole | None, Field(ge=0, lt=2**63)] = None
    option: Name | None = None
    block: Name | None = None
    values: Annotated[
        dict[Name, Number | Below | None],
        Field(description="a number for each metric; null: it was not measured; what is left out is told later"),
    ]
    note: Text = ""
    tags: Tags = []


class ObservationsBody(Closed):
    """Several outcomes: all of them are kept or, if one is wrong, none."""

    observations: Annotated[list[ObservationBody], Field(min_length=1, max_length=LIMITS.batch)]


class ToldOut(Closed):
    """What was taken in."""

    void: Annotated[int, Field(description="of these: outcomes of void trials, which are kept but are no evidence")] = 0
    new: Annotated[int, Field(description="outcomes that were not known before")]
    event: Annotated[int, Field(description="number of the last event of it; -1: nothing was new")]


class DoneOut(Closed):
    """What was changed."""

    event: Annotated[int, Field(description="number of the last event of it; -1: nothing was new")]


class ArmsBody(Closed):
    """Options to add."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"arms": ["huge"], "looked": True}]})

    arms: Annotated[list[Name] | list[dict[Name, Cell]], Field(min_length=1)]
    looked: Annotated[StrictBool, Field(description="outcomes so far may be why these were picked")] = True
    cost: list[Number] | dict[Name, Number] | None = None


class NoteBody(Closed):
    """What somebody writes about a study, or about a trial of it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"note": "pilot", "tags": ["llm"]}]})

    note: Text = ""
    tags: Tags = []
    trial: Annotated[Whole | None, Field(ge=0, lt=2**63)] = None


class StudyOut(Closed):
    """A study in a list."""

    name: str
    title: str | None
    options: int | None
    metrics: dict[str, str] | None
    event: Annotated[int, Field(description="number of its last event; -1: there is none")]
    at: Annotated[float | None, Field(description="when that was, seconds since 1970")]
    by: Annotated[str | None, Field(description="the token it was made with")]
    unreadable: Annotated[str | None, Field(description="what is wrong with it")] = None


class SettingsOut(Closed):
    """What a study was made with, as far as whoever measures must know it."""

    name: str
    title: str | None
    arms: Annotated[list[str], Field(description="those of the beginning")]
    columns: Annotated[list[str], Field(description="what an outcome has numbers of: metrics, and what guards limit")]
    metrics: dict[str, str]
    guards: list[str]
    blocks: Annotated[int | None, Field(description="how many there are; 0: rounds without end; null: none")]
    budget: int | None
    lease: float
    give_up: float | None
    delta: float
    algorithm: str


class StudiesOut(Closed):
    """All studies that the caller may see, oldest first."""

    studies: list[StudyOut]


class FrontOut(Closed):
    """The answer."""

    front: list[str]
    done: Annotated[bool, Field(description="every option has its verdict")]
    finished: Annotated[bool, Field(description="nothing is left to ask: done, budget spent, or more is of no use")]
    says: Annotated[str, Field(description="the answer as a sentence")]


class ExplanationOut(Closed):
    """Why an option has its verdict."""

    option: str
    verdict: Literal["front", "same", "dominated", "undecided", "withdrawn"]
    rival: str | None
    margins: Annotated[dict[str, float], Field(description="by how much the rival is better, by metric")]
    rests_on: Annotated[str | None, Field(description="the metric on which the verdict hangs")]
    samples: int
    expected: float | None
    text: str
    pair: Annotated[dict[str, Any] | None, Field(description="the two compared, metric by metric, with intervals")]


class RemainingOut(Closed):
    """What it will cost to know more, by simulating the future from what is known now."""

    samples: Annotated[float | None, Field(description="median; null: very many")]
    low: float | None
    high: float | None
    uniform: Annotated[float | None, Field(description="if all options were measured equally often")]
    says: str


class LeaseOut(TrialOut):
    """A trial that is open."""

    asked_at: float
    overdue: bool
    by: str | None


class LeasesOut(Closed):
    """Trials that were asked and are neither told nor void, oldest first."""

    leases: list[LeaseOut]


class HeardOut(Closed):
    """What became of the trials of an option: asked = told + partly + unheard + failed + void + open."""

    option: str
    asked: int
    told: Annotated[int, Field(description="whole, and in time")]
    partly: Annotated[int, Field(description="given up, and only a part of the outcome was told")]
    unheard: Annotated[int, Field(description="given up, and nothing was told")]
    failed: Annotated[int, Field(description="somebody said so")]
    void: Annotated[int, Field(description="its worker died, or its run was stopped, or a run took it over")]
    open: Annotated[int, Field(description="neither told nor void yet")]
    late: Annotated[int, Field(description="of those that are void: told afterwards, which is no evidence")]
    share: Annotated[float | None, Field(description="of which something was heard, of those that are not open")]


class AskedAndToldOut(Closed):
    """Asked against told, by option; options that were withdrawn are there too."""

    options: list[HeardOut]


class ChangeOut(Closed):
    """How a metric of an option differs from that of the reference."""

    difference: Annotated[float | None, Field(description="option less reference, in the metric's own unit")]
    lift: Annotated[float | None, Field(description="the same as a share of the reference's value: an estimate")]
    low: Annotated[float | None, Field(description="of the difference; of the lift where `relative`")]
    high: float | None
    relative: bool


class ChangesOut(Closed):
    """How an option differs from the reference, by metric."""

    option: str
    metrics: dict[str, ChangeOut]


class AgainstOut(Closed):
    """How all other options differ from one of them."""

    reference: str
    options: list[ChangesOut]


class Problem(BaseModel):
    """What is wrong with a request (RFC 9457)."""

    type: Annotated[str, Field(description="for programs: urn:paretoscout:problem:KIND")]
    title: str
    status: int
    detail: Annotated[str, Field(description="which value, of what, must be what, and was what")]
    field: Annotated[str | None, Field(description="the value that is wrong, if it is known")]
    hint: Annotated[str, Field(description="what to do about it")]
    instance: Annotated[str, Field(description="the number of the request, which is in the log of the server")]


class HealthOut(Closed):
    """Whether the server works."""

    status: Literal["ok"]
    version: str
