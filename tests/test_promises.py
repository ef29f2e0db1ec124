"""The promises to users, each with a test named after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Workers, wait_for
from study_worker import new_study
from test_study import TRUTH, Clock, events, new, outcome, play, replayed, state_of

import paretoscout as ps
from paretoscout.algorithms import Scout
from paretoscout.errors import Conflict, ParetoscoutError
from paretoscout.storage import Event, MemoryStorage, storage_of
from paretoscout.study import Study


def eventful(storage: Any = "memory", clock: Clock | None = None, **how: Any) -> Study:
    """A study in which everything has happened."""
    clock = clock or Clock()
    study = new(storage, clock=clock, lease=60.0, guards=["quality >= 0.7"], **how)
    rng = np.random.default_rng(3)

    def tell(trial: Any) -> None:
        quality, cost = np.array(TRUTH.get(trial.arm, (1.5, 0.5))) + 0.05 * rng.standard_normal(2)
        study.tell(trial, {"quality": quality, "cost": cost})

    first, second, third = study.ask(3)
    tell(second)
    study.fail(third, "no power")
    clock.now += 61
    tell(study.ask())
    tell(first)
    study.tell_frame({"arm": ["a", "b"], "quality": [1.0, 2.0], "cost": [1.0, None]})
    study.add_arms(["d"], looked=False)
    for _ in range(10):
        clock.now += 1
        tell(study.ask())
    if "a" in study.verdicts().arms:
        study.withdraw("a", "too old")
    for _ in range(3):
        study.ask()
    return study


def test_a_study_is_a_pure_function_of_its_settings_its_seed_and_its_log(storage: str) -> None:
    study = eventful(storage)
    assert {event.kind for event in events(study)} == {"ask", "tell", "fail", "expire", "data", "arms"}
    replica = replayed(study)
    assert replica.dump() == state_of(study)
    assert [replica.ask(0.0).body["arm"] for _ in range(5)] == [trial.arm for trial in study.ask(5)]


def test_times_are_recorded_and_never_read_again() -> None:
    """The same log with other times gives the same state, but for the times themselves."""
    study = eventful()
    other = MemoryStorage()
    other.create("study", study.spec.text())
    with other.writing("study") as writer:
        writer.append([Event(e.number, e.kind, e.trial, e.body, -1e12 * e.number) for e in events(study)])
    shifted = Study.load(storage=other)
    assert shifted.verdicts().as_dict() == study.verdicts().as_dict()
    assert shifted.open == study.open
    with shifted.log.reading() as theirs, study.log.reading() as ours:
        assert theirs.session.dump() == ours.session.dump()


def test_the_same_seed_gives_the_same_study_and_another_one_may_not() -> None:
    """Whoever asks, in one process or after every reload."""

    def arms(seed: int, reload: bool) -> list[str]:
        place = MemoryStorage()
        study = new(place, seed=seed, algorithm=ps.algorithms.PFIwR(theta_max=3.0), goal="front")
        asked = []
        for _ in range(40):
            study = Study.load(storage=place) if reload else study
            trial = study.ask()
            study.tell(trial, outcome(trial.arm))
            asked.append(trial.arm)
        return asked

    assert arms(1, reload=False) == arms(1, reload=True)
    assert arms(1, reload=False) != arms(2, reload=False)


def test_an_accepted_observation_is_never_lost_and_never_counted_twice_whatever_crashes(
    database: str, workers: Workers, tmp_path: Path
) -> None:
    """See test_study_trust.py for many crashes; here for one that comes while a second worker goes on."""
    study = new_study(database)
    logs = [tmp_path / "first", tmp_path / "second"]

    def heard(log: Path) -> list[str]:
        return log.read_text().splitlines() if log.exists() else []

    first = workers.start("measure", storage=database, log=str(logs[0]))
    second = workers.start("measure", storage=database, log=str(logs[1]), rounds=40)
    wait_for("both to work", lambda: heard(logs[0]) and heard(logs[1]))
    workers.kill(first)
    workers.wait(second)
    acknowledged = [int(line) for log in logs for line in heard(log)]
    told = [number for number, *_ in study.observations()]
    counts = study.counts()
    assert len(told) == len(set(told)) == counts["told"] == study.verdicts().counts.sum() + counts["waiting"]
    assert set(acknowledged) <= set(told)
    assert len(told) - len(acknowledged) <= 1, "at most one was accepted and not yet acknowledged"


def test_telling_the_same_trial_again_with_the_same_values_is_a_no_op_with_others_an_error(storage: str) -> None:
    study = new(storage)
    trial = study.ask()
    study.tell(trial, outcome(trial.arm))
    before = state_of(study)
    for _ in range(3):
        study.tell(trial, outcome(trial.arm))
    with pytest.raises(Conflict):
        study.tell(trial, outcome(trial.arm, noise=1e-9))
    assert state_of(study) == before


def test_a_trial_that_is_never_told_expires_and_a_late_tell_is_still_accepted(storage: str) -> None:
    clock = Clock()
    study = new(storage, lease=60.0, clock=clock)
    late = study.ask()
    clock.now += 61.0
    again = study.ask()
    assert again.arm == late.arm
    assert late not in study.open
    study.tell(late, outcome(late.arm))
    study.tell(again, outcome(again.arm))
    assert [number for number, *_ in study.observations()] == [late.number, again.number]


@pytest.mark.parametrize("algorithm", [Scout(), ps.algorithms.PFIwR(theta_max=3.0), "uniform", "multi-pfi"])
def test_a_late_tell_is_accepted_by_every_algorithm(algorithm: Any) -> None:
    clock = Clock()
    study = new(lease=60.0, clock=clock, algorithm=algorithm, goal="front")
    late = study.ask()
    clock.now += 61.0
    again = study.ask()
    study.tell(again, outcome(again.arm))
    study.tell(late, outcome(late.arm))
    assert study.counts()["told"] == 1
    assert study.counts()["late"] == 1, "kept, but no evidence"
    play(study, 20)


def test_every_error_names_what_was_wrong_where_and_what_to_do_and_bad_input_changes_nothing(storage: str) -> None:
    study = eventful(storage)
    trial = study.open[0]
    bad: list[tuple[Any, list[str]]] = [
        (lambda: study.tell(trial, {"quality": float("nan")}), ["'quality'", f"trial {trial.number}", "finite", "nan"]),
        (lambda: study.tell(trial, {"qualty": 1.0}), ["'qualty'", "did you mean 'quality'", f"trial {trial.number}"]),
        (lambda: study.tell(10**9, {"quality": 1.0}), ["must be one that was asked", str(10**9)]),
        (lambda: study.tell_frame({"arm": ["b", "bb"], "quality": [1, 2]}), ["row 1", "'bb'", "did you mean 'b'"]),
        (lambda: study.tell_frame({"arm": ["b"], "quality": ["good"]}), ["'quality'", "row 0", "'good'", "numbers"]),
        (lambda: study.withdraw("zzz"), ["'zzz'", "Known: "]),
        (lambda: study.add_arms(["b"]), ["'b'", "already", "must differ"]),
        (lambda: study.ask(0), ["n of ask", "at least 1", "0"]),
        (lambda: study.explain("zzz"), ["'zzz'", "Known: "]),
        (lambda: Study.load("studie", study.storage), ["'studie'", "did you mean 'study'"]),
    ]
    before, log = state_of(study), events(study)
    for action, words in bad:
        with pytest.raises(ParetoscoutError) as caught:
            action()
        for word in words:
            assert word in str(caught.value)
    assert state_of(study) == before
    assert events(study) == log


@pytest.mark.parametrize(
    ("how", "assumed"),
    [
        ({"sigma": 0.1}, "sub-Gaussian noise, sigma given"),
        ({"sigma": None}, "normal noise, variance unknown"),
        ({"sigma": 0.1, "algorithm": Scout(model="linear"), "contexts": ["size"]}, "linear"),
        ({"sigma": 0.1, "algorithm": Scout(model="robust", misfit=0.5), "contexts": ["size"]}, "misfit"),
        ({"sigma": 0.1, "guards": ["quality >= 0"]}, "among options that keep quality >= 0"),
    ],
)
def test_every_number_shown_as_a_guarantee_comes_with_the_assumption_it_rests_on(
    how: dict[str, Any], assumed: str
) -> None:
    study = new(arms={"arm": list(TRUTH), "size": [1.0, 2.0, 4.0]}, delta=0.05, **how)
    shown = str(study.verdicts().guarantee)
    assert "with probability 95%" in shown
    assert assumed in shown
    assert assumed in study.verdicts().as_dict()["guarantee"]["text"]


def test_what_weakens_a_guarantee_is_flagged() -> None:
    shown = str(eventful().verdicts().guarantee)
    for flag in (
        "2 imported rows, chosen without looking ahead at their outcomes",
        "options added without looking at outcomes",
        "options withdrawn without looking at outcomes",
        "what is missing is missing whatever its value",
    ):
        assert flag in shown
    assert not new(algorithm=ps.algorithms.PFIwR(theta_max=3.0), goal="front").verdicts().guarantee.holds


def test_the_front_is_made_of_arms(tmp_path: Path) -> None:
    study = new(storage_of(tmp_path / "study.db"))
    play(study)
    assert study.front() == ["a", "b"]
