"""The client of a server has the face of a study, raises the same errors, and does nothing twice when answers are lost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
from flaky import Flaky
from ledger import METRICS as ALIKE_METRICS
from ledger import OPTIONS, Faults, Ledger, faults, outcome_of
from servers import Clients, Served, served

from paretoscout import Below, Metric
from paretoscout.client import RemoteStudy
from paretoscout.errors import (
    Conflict,
    InvalidInput,
    NotSupported,
    ParetoscoutError,
    SettingsDiffer,
    StorageUnavailable,
    UnknownName,
)
from paretoscout.storage.sql import SQLStorage
from paretoscout.study import Study

ARMS = ["small", "large", "huge"]
METRICS = [Metric("quality", "max", eps=0.02), Metric("cost", "min", eps=0.1)]
TRUTH = {
    "small": {"quality": 0.6, "cost": 1.0},
    "large": {"quality": 0.9, "cost": 4.0},
    "huge": {"quality": 0.5, "cost": 9.0},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    file = tmp_path_factory.mktemp("server") / "service.db"
    with served(f"sqlite:///{file}", limits={"arms": 10}) as server:
        yield server


@pytest.fixture
def clients() -> Iterator[Clients]:
    found = Clients()
    yield found
    found.close()


@pytest.fixture
def study(server: Served, clients: Clients, request: pytest.FixtureRequest) -> RemoteStudy:
    """A study of its own for each test."""
    return clients.connect(server.url).create(name_of(request), ARMS, METRICS, sigma=0.05)


def name_of(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)[-90:].replace("/", " ")


def local(server: Served, study: RemoteStudy) -> Study:
    """The same study, without the server."""
    return Study.load(study.name, SQLStorage(server.storage))


# The face of a study


def test_a_study_is_run_to_its_end(server: Served, study: RemoteStudy) -> None:
    told: list[str] = []
    standing = study.run(TRUTH.__getitem__, workers=2, callback=lambda _, trial, outcome: told.append(trial.arm))
    same = local(server, study)
    assert standing.done
    assert study.done
    assert study.finished
    assert standing.as_dict() == same.standing().as_dict()
    assert study.front() == list(standing.front) == same.front() == ["small", "large"]
    assert len(told) == same.counts()["told"]
    assert study.explain("huge") == str(same.explain("huge"))
    assert study.says().startswith("small and large are the front")
    assert standing.verdicts == {"small": "front", "large": "front", "huge": "dominated"}
    assert standing.guarantee == str(same.standing().guarantee)
    assert standing.options == tuple(ARMS)


def test_trials_are_asked_told_failed_and_seen(server: Served, study: RemoteStudy) -> None:
    first, second, third = study.ask(3)
    assert [trial.number for trial in study.open] == [first.number, second.number, third.number]
    study.tell(first, TRUTH[first.arm], note="cold", tags=["pilot"])
    assert study.tell_many([(second, TRUTH[second.arm]), (first.number, TRUTH[first.arm])]) == 1
    study.fail(third, "crashed")
    assert study.open == []
    assert study.ask().arm == third.arm, "it is asked again"
    assert study.ask(arm="huge").arm == "huge"
    log = list(local(server, study).storage.events(study.name))
    assert [event.kind for event in log] == ["ask"] * 3 + ["tell", "tell", "fail", "ask", "ask"]
    assert (log[3].body["note"], log[3].body["tags"], log[5].body["reason"]) == ("cold", ["pilot"], "crashed")
    assert {event.by for event in log} == {study.server.worker}


def test_options_come_and_go_and_notes_are_kept(server: Served, study: RemoteStudy) -> None:
    study.add_arms(["tiny"], looked=False)
    study.withdraw("huge", "too slow")
    study.annotate("second pilot", ["llm"])
    trial = study.ask()
    study.annotate("warm", trial=trial)
    same = local(server, study)
    assert same.arms == ["small", "large", "tiny"]
    assert same.withdrawn == {"huge": "too slow"}
    assert (same.standing().note, same.standing().tags) == ("second pilot", ("llm",))
    assert study.standing().as_dict() == same.standing().as_dict()
    assert study.standing(at=0).event == 0
    assert study.standing(at=0).options == (*ARMS, "tiny")


def test_values_that_are_missing_or_too_small_arrive_as_such(server: Served, study: RemoteStudy) -> None:
    trial = study.ask()
    study.tell(trial, {"quality": None, "cost": Below(0.1)})
    (event,) = local(server, study).storage.of_trial(study.name, trial.number)[1:]
    assert (event.body["values"], event.body["below"]) == ([None, 0.1], ["cost"])


def test_a_study_on_blocks_is_run_on_them(server: Served, clients: Clients) -> None:
    made = clients.connect(server.url).create("blocks", ARMS, METRICS, blocks=["p1", "p2", "p3", "p4"])
    on: set[str] = set()

    def measure(arm: str, block: str) -> dict[str, float]:
        on.add(block)
        return TRUTH[arm]

    made.run(measure, trials=6)
    assert on <= {"p1", "p2", "p3", "p4"}
    assert len(list(local(server, made).observations())) == 6


def test_all_studies_are_listed(server: Served, study: RemoteStudy) -> None:
    assert study.name in [each["name"] for each in study.server.studies()]


# Errors


def told(study: Any) -> Any:
    """A trial that was told."""
    trial = study.ask()
    study.tell(trial, TRUTH[trial.arm])
    return trial


#: What is wrong, and what it is; each is tried on a study in memory and on one on a server.
WRONG: dict[str, tuple[Callable[[Any], Any], type[ParetoscoutError]]] = {
    "ask for an unknown option": (lambda study: study.ask(arm="nobody"), UnknownName),
    "ask for none": (lambda study: study.ask(0), InvalidInput),
    "tell an unknown metric": (lambda study: study.tell(study.ask(), {"speed": 1.0}), UnknownName),
    "tell what is no number": (lambda study: study.tell(study.ask(), {"quality": math.nan, "cost": 1}), InvalidInput),
    "tell a text": (lambda study: study.tell(study.ask(), {"quality": "much", "cost": 1}), InvalidInput),
    "tell a list": (lambda study: study.tell(study.ask(), [1.0, 2.0]), InvalidInput),
    "tell a trial of nobody": (lambda study: study.tell(99, TRUTH["small"]), InvalidInput),
    "tell a trial below 0": (lambda study: study.tell(-1, TRUTH["small"]), InvalidInput),
    "tell something else": (lambda study: study.tell(told(study), {"quality": 7.0, "cost": 7.0}), Conflict),
    "fail what was told": (lambda study: study.fail(told(study)), Conflict),
    "explain an unknown option": (lambda study: study.explain("nobody"), UnknownName),
    "withdraw an unknown option": (lambda study: study.withdraw("nobody"), UnknownName),
    "add an option twice": (lambda study: study.add_arms(["small"]), InvalidInput),
    "note on a trial of nobody": (lambda study: study.annotate("x", trial=99), InvalidInput),
    "look at what is to come": (lambda study: study.standing(at=10**6), InvalidInput),
    "ask when all is decided": (lambda study: (study.run(TRUTH.__getitem__), study.ask()), NotSupported),
}


@pytest.mark.parametrize("what", WRONG)
def test_errors_are_those_of_a_study(study: RemoteStudy, what: str) -> None:
    action, error = WRONG[what]
    with pytest.raises(error) as here:
        action(Study(ARMS, METRICS, sigma=0.05, storage="memory"))
    with pytest.raises(error) as there:
        action(study)
    assert here.type in there.type.__mro__


def test_studies_that_are_not_there_or_are_others_are_refused(study: RemoteStudy) -> None:
    server = study.server
    with pytest.raises(UnknownName, match="unknown study 'nope'"):
        server.study("nope")
    assert server.create(study.name, ARMS, METRICS, sigma=0.05).name == study.name
    with pytest.raises(SettingsDiffer, match="with other settings of sigma"):
        server.create(study.name, ARMS, METRICS, sigma=0.06)


def test_what_waiting_does_not_help_is_said_at_once(study: RemoteStudy) -> None:
    """A limit that is reached does not go away: the client has patience for an hour here, and does not use it."""
    began = time.monotonic()
    study.server.patience = 3600.0
    with pytest.raises(NotSupported, match="a study may have 10 arms"):
        study.server.create("many", [f"option {k}" for k in range(11)], METRICS, sigma=0.05)
    assert time.monotonic() - began < 1800.0


def test_a_server_that_is_not_there_is_said_when_patience_is_over(clients: Clients) -> None:
    with pytest.raises(StorageUnavailable, match="does not answer"):
        clients.connect("http://127.0.0.1:9", patience=0.0).study()
    with pytest.raises(InvalidInput, match="must begin with http"):
        clients.connect("127.0.0.1:9")


# Lost answers


def test_nothing_is_doubled_where_answers_are_lost(server: Served, clients: Clients) -> None:
    """Every third answer is lost, to whatever it is; the server has done then what it was asked to."""
    seen = 0

    def every_third(answer: bytes) -> bool:
        nonlocal seen
        seen += answer.startswith(b"HTTP/1.1 ")
        return answer.startswith(b"HTTP/1.1 ") and seen % 3 == 0

    with Flaky(server.port, every_third) as network:
        study = clients.connect(network.url).create("lossy", OPTIONS, ALIKE_METRICS, sigma=1.0)
        ledger = Ledger()
        for batch in (1, 3, 2, 4, 1):
            trials = study.ask(batch)
            ledger.asked += [(trial.number, trial.arm) for trial in trials]
            assert study.tell_many((trial, outcome_of(trial.number, trial.arm)) for trial in trials) == batch
            ledger.told += [trial.number for trial in trials]
        trial = study.ask()
        ledger.asked.append((trial.number, trial.arm))
        study.fail(trial)
        study.add_arms(["late"], looked=False)
        study.withdraw("late")
        study.annotate("lossy")
        assert network.lost >= 5
    same = local(server, study)
    assert faults(same, server.json("GET", "/v1/studies/lossy/export?format=json"), [ledger]) == Faults()
    others = [event.kind for event in same.storage.events("lossy") if event.kind not in ("ask", "tell")]
    assert others == ["fail", "arms", "arms", "note"]
