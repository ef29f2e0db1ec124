"""One slow measurement: how many others are asked for meanwhile, what a loop does, and what verdicts rest on."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_study import replayed, state_of

import paretoscout as ps
from benchmarks.slow_measurement import KINDS, compare
from paretoscout.errors import NothingToAsk
from paretoscout.study import Study, Trial
from paretoscout.study import log as log_module

MEANS = {"a": 0.0, "b": 1.0, "c": 2.5}


class Worker:
    """Tells outcomes that depend on the option and on nothing else that tests change."""

    def __init__(self, study: Study, seed: int = 0) -> None:
        self.study, self.rng = study, np.random.default_rng(seed)

    def tell(self, trial: Trial) -> None:
        self.study.tell(trial, {"score": MEANS[trial.arm] + float(self.rng.standard_normal())})

    def until_nothing_is_asked(self) -> str:
        """Measure until the study waits; return why."""
        for _ in range(2000):
            try:
                trial = self.study.ask()
            except NothingToAsk as problem:
                return str(problem)
            self.tell(trial)
        raise AssertionError("it asks without end")


def new(**how: Any) -> Study:
    metrics = [ps.Metric("score", eps=0.5)]
    return Study(list(MEANS), metrics, **{"storage": "memory", "lease": 1e9, "worker": "w1", **how})


BLOCKS = [f"block {n}" for n in range(300)]
DIFFERENT: dict[str, dict[str, Any]] = {
    "samples": {},
    "samples, goal front": {"goal": "front", "sigma": 1.0},
    "another algorithm": {"goal": "front", "sigma": 1.0, "algorithm": "ape"},
    "blocks of a list": {"blocks": BLOCKS},
    "blocks of a population": {"blocks": BLOCKS, "target": "population"},
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("workers", [4, 64])
def test_one_slow_measurement_multiplies_nothing(name: str, workers: int) -> None:
    """The short form of `python -m benchmarks.slow_measurement`, which has 100 runs each."""
    found = compare(name, workers, runs=2)
    assert found.undecided == 0
    assert found.ratios[0] <= 1.3
    assert found.ratios[1] <= 1.2


@pytest.mark.parametrize("how", DIFFERENT.values(), ids=DIFFERENT)
@pytest.mark.parametrize("nth", [0, 5, 12])
def test_a_study_waits_for_a_slow_trial_and_says_so(how: dict[str, Any], nth: int) -> None:
    """Whether it is a pilot or a later trial. Without it, a study takes fewer than 100 measurements."""
    study = new(**how)
    worker = Worker(study)
    for _ in range(nth):
        worker.tell(study.ask())
    slow = study.ask()
    why = worker.until_nothing_is_asked()
    asked = study.counts()["asked"]
    assert asked < 200
    waiting = study.counts()["waiting"]
    assert f"{waiting} outcomes wait for trial {slow.number} (option {slow.arm}, asked" in why
    assert "ago by w1)" in why
    with pytest.raises(NothingToAsk):
        study.ask(8)
    assert not study.finished
    assert study.counts()["asked"] == asked, "nothing was asked for"
    assert state_of(study) == replayed(study).dump()
    worker.tell(study.ask(arm="b"))  # a person may want more of it
    worker.tell(slow)
    for _ in range(50):
        if study.done:
            break
        worker.tell(study.ask())
    assert study.done
    assert study.front() == ["c"]
    assert state_of(study) == replayed(study).dump()


def test_of_many_trials_those_are_asked_that_may_count() -> None:
    """A pair that has nothing to do with the slow trial is measured on, and has its verdict."""
    study = new(goal="front", sigma=1.0)
    slow = study.ask(arm="b")
    Worker(study).until_nothing_is_asked()
    verdicts = dict(zip(study.verdicts().arms, study.verdicts().verdicts, strict=True))
    assert verdicts["b"] == "undecided"
    study.fail(slow, "lost")
    assert study.counts()["waiting"] == 0


def test_in_rounds_the_next_ones_wait() -> None:
    rng = np.random.default_rng(3)
    study = new(blocks="rounds")

    def play(trials: list[Trial]) -> None:
        common = 10.0 * rng.standard_normal()
        for trial in trials:
            study.tell(trial, {"score": common + MEANS[trial.arm] + float(rng.standard_normal())})

    slow, *rest = study.ask_round()
    play(rest)
    why = ""
    for _ in range(60):
        try:
            play(study.ask_round())
        except NothingToAsk as problem:
            why = str(problem)
            break
    assert "outcomes wait for trial 0 (option a" in why
    assert not study.done
    assert set(study.verdicts().verdicts) == {"undecided"}, "all rounds wait for the first one"
    assert len(study.ask_round(["a", "b"])) == 2, "who names the options is given them"
    assert state_of(study) == replayed(study).dump()
    study.tell(slow, {"score": 0.0})
    for trial in study.open:
        study.fail(trial)
    for _ in range(100):
        if study.done:
            break
        play(study.ask_round())
    assert study.done


@pytest.mark.parametrize("how", DIFFERENT.values(), ids=DIFFERENT)
def test_processes_with_and_without_a_snapshot_ask_alike(
    how: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Outcomes come in any order, trials fail, and a snapshot is taken at every tenth event."""
    monkeypatch.setattr(log_module, "SNAPSHOT_EVENTS", 10)
    rng = np.random.default_rng(5)
    study = new(**how, storage=tmp_path / "x.db")
    running: list[Trial] = []
    for step in range(80):
        if study.finished:
            break
        try:
            running += study.ask(int(rng.integers(1, 4)))
        except NothingToAsk:
            assert running
        if len(running) > 5 or rng.random() < 0.5:
            trial = running.pop(int(rng.integers(len(running))))
            if rng.random() < 0.1:
                study.fail(trial)
            else:
                Worker(study, seed=trial.number).tell(trial)
        if step % 8 == 0:
            assert state_of(Study.load("study", tmp_path / "x.db")) == state_of(study)
    assert state_of(study) == replayed(study).dump()


def test_a_loop_waits_for_a_trial_of_another_worker_and_goes_on() -> None:
    """It asks now and then and does not spin; the outcome of the other one ends it."""
    study = new()
    slow = study.ask()
    other = Worker(study)
    asks: list[float] = []
    ask = study.ask

    def asked(*args: Any, **more: Any) -> Any:
        asks.append(time.monotonic())
        return ask(*args, **more)

    study.ask = asked  # type: ignore[method-assign]
    rng = np.random.default_rng(1)
    measured: list[str] = []

    def measure(arm: str) -> dict[str, float]:
        measured.append(arm)
        return {"score": MEANS[arm] + float(rng.standard_normal())}

    ended: list[Any] = []
    loop = threading.Thread(target=lambda: ended.append(study.run(measure, workers=4, leave_asked=True)), daemon=True)
    loop.start()
    deadline = time.monotonic() + 600
    while (n := len(measured)) < 5 or study.counts()["waiting"] < n or len(asks) < n + 4:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not ended
    before = study.counts()["asked"]
    other.tell(slow)
    loop.join(600)
    assert ended[0].done
    assert before < 200
    assert len(asks) < 3 * len(measured) + 100


def test_a_loop_that_waits_keeps_to_its_time() -> None:
    study = new()
    study.ask()
    standing = study.run(lambda arm: {"score": MEANS[arm]}, timeout=0.5, leave_asked=True)
    assert not standing.done
    assert len(standing.open) == 1


# Guards that the blocks cannot settle


@pytest.mark.parametrize("goal", ["practical", "front"])
@pytest.mark.parametrize("workers", [1, 4])
def test_a_guard_that_the_list_cannot_settle_ends_the_study(goal: str, workers: int) -> None:
    """The mean is at the limit: no list tells of the population. False alarm: below 0.05, the delta."""
    rng = np.random.default_rng(1)
    study = Study(
        ["a", "b"],
        [ps.Metric("score", eps=0.5)],
        guards=["latency <= 200"],
        blocks=BLOCKS[:40],
        target="population",
        storage="memory",
        goal=goal,
    )

    def measure(arm: str, block: str) -> dict[str, float]:
        score = {"a": 0.0, "b": 2.0}[arm] + 0.3 * float(rng.standard_normal())
        return {"score": score, "latency": 199.9 + 30.0 * float(rng.standard_normal())}

    standing = study.run(measure, workers=workers, trials=1000)
    assert study.finished
    assert not standing.done
    assert standing.front == ("b",)
    assert "b" in standing.unguarded
    says = "The list is too short: its 40 blocks do not tell whether b keeps latency <= 200"
    assert says in standing.table.remark
    with pytest.raises(ps.errors.NotSupported, match=says):
        study.ask()
    assert study.remaining().low == np.inf


def test_in_rounds_what_has_open_guards_is_measured_on() -> None:
    """All is decided but a limit: the next rounds are of that option. False alarm: below 0.05, the delta."""
    rng = np.random.default_rng(2)
    study = Study(
        ["a", "b"], [ps.Metric("cost", "min", eps=1.0)], blocks="rounds", guards=["cost <= 9.5"], storage="memory"
    )
    rounds = 0
    while not study.finished and rounds < 500:
        rounds += 1
        for trial in study.ask_round():
            study.tell(trial, {"cost": {"a": 9.0, "b": 19.0}[trial.arm] + float(rng.standard_normal())})
    assert study.done
    assert study.front() == ["a"]
