"""What is shown together is of one moment, while a worker tells outcomes meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import unwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from test_study import state_of

import paretoscout as ps
from paretoscout.cli.main import main
from paretoscout.cli.standing import _as_json
from paretoscout.page.view import view_of
from paretoscout.service import api
from paretoscout.study import Study
from paretoscout.study.log import StudyLog
from paretoscout.study.replica import Replica

MEANS = {"a": 0.0, "b": 1.0, "c": 3.0}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    study = Study(list(MEANS), [ps.Metric("score", eps=0.3)], storage=tmp_path / "x.db", budget=2000)
    rng = np.random.default_rng(0)
    for _ in range(9):
        trial = study.ask()
        study.tell(trial, {"score": MEANS[trial.arm] + float(rng.standard_normal())})
    return tmp_path / "x.db"


@pytest.fixture
def busy(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let a worker tell an outcome after each look at the study; return the numbers of the events that were seen."""
    worker, rng = Study.load("study", path), np.random.default_rng(1)
    working: list[bool] = []
    seen: list[int] = []
    reading = StudyLog.reading

    @contextmanager
    def interrupted(log: StudyLog) -> Iterator[Replica]:
        with reading(log) as replica:
            yield replica
            number = replica.number
        if not working:
            seen.append(number)
            working.append(True)
            trial = worker.ask(arm="abc"[len(seen) % 3])
            worker.tell(trial, {"score": MEANS[trial.arm] + float(rng.standard_normal())})
            working.pop()

    monkeypatch.setattr(StudyLog, "reading", interrupted)
    return seen


def test_a_page_and_its_history(path: Path, busy: list[int]) -> None:
    study = Study.load("study", path)
    first = view_of(study, seconds=0.01)
    assert first.history.last == first.event
    assert first.history.samples == first.standing.counts["told"]
    for _ in range(3):
        view = view_of(study, seconds=0.01)
        assert view.event > first.event, "the worker goes on"
        assert view.history.last == view.event
        assert view.history.samples == view.standing.counts["told"]
    later = study.history()
    assert later.last > view.event
    assert study.history(first.event) == first.history, "one who is late has the history of then"


def served(study: Study) -> Any:
    """A service that has this study."""
    return SimpleNamespace(studies=SimpleNamespace(read=lambda name, look: look(study)))


def test_the_answer_of_the_server(path: Path, busy: list[int]) -> None:
    """Whether it is finished is of the moment of its front: there is one look."""
    answer = unwrap(api.front)(served(Study.load("study", path)), None, "study")
    assert len(busy) == 1
    assert answer.finished == answer.done


def test_an_explanation_and_its_pair(path: Path, busy: list[int]) -> None:
    """The margins are those of the pair: there is one look."""
    answer = unwrap(api.explain)(served(Study.load("study", path)), None, "study", "a", None)
    assert len(busy) == 1
    assert answer.pair is not None
    assert answer.margins["score"] == answer.pair["differences"]["score"]["value"]


def test_status(path: Path, busy: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    known = Study.load("study", path).details()
    told = json.loads(_as_json(known, True, None))
    assert told["event"] == known.standing.event
    del busy[:]
    shown = CliRunner().invoke(main, ["status", "--storage", str(path), "--json", "--forecast"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output)["event"] == busy[0]
    assert len(busy) == 1
    del busy[:]
    shown = CliRunner().invoke(main, ["tell", "0", "--failed", "x", "--storage", str(path), "--json"])
    assert shown.exit_code == 2, "it was told"


def test_what_is_frozen_does_not_change() -> None:
    """Each attribute is as it was, whatever happens: verdicts and their events, parts, options, questions, blocks."""
    study = Study(
        ["a", "b", "c"],
        [ps.Metric("score", eps=0.3), ps.Metric("cost", "min", eps=0.3)],
        storage="memory",
        sigma=1.0,
        guards=["score >= -9"],
    )
    rng = np.random.default_rng(2)
    frozen: list[tuple[Replica, bytes, str]] = []
    for number in range(60):
        trial = study.ask(arm="abc"[number % 3]) if number % 4 else study.ask()
        if number % 7 == 3:
            study.tell(trial, {"score": 0.5})
        elif number % 7 == 5:
            study.fail(trial)
        elif number % 7 != 6:
            study.tell(trial, {"score": MEANS.get(trial.arm, 0.5) + rng.normal(), "cost": rng.normal()})
        if number == 30:
            study.add_arms(["late"], looked=True)
            study.annotate("a note", ["tag"])
        if number == 40:
            study.withdraw("late")
        replica = study.log.copy()
        frozen.append((replica, replica.dump(), str(vars(replica)["since"])))
    for replica, dumped, since in frozen:
        assert replica.dump() == dumped
        assert str(replica.since) == since
    assert study.log.copy().dump() == state_of(study)


def test_a_frozen_session_keeps_its_questions() -> None:
    study = Study(["a", "b"], [ps.Metric("score", eps=0.3)], storage="memory", sigma=1.0)
    trial = study.ask()
    replica: Any = study.log.copy()
    study.tell(trial, {"score": 1.0})
    study.ask(2)
    assert list(replica.session.open) == [0]
    assert replica.session.pending.sum() == 1
    assert list(replica.open) == [trial.number]
    assert replica.tally.n.sum() == 0
