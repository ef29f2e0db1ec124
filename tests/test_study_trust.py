"""Why a study can be trusted: it decides as the simulation does, survives what happens to it, and does not slow down."""

from __future__ import annotations

import os
import random
import shutil
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import LONG, Workers, wait_for
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule
from study_worker import MEANS, new_study, outcome_of
from test_every_algorithm import CONTENDERS, plan, suited
from test_study import Clock, events, replayed, state_of

import paretoscout as ps
from paretoscout.algorithms import Scout, Settings
from paretoscout.algorithms.registry import resolve
from paretoscout.errors import Conflict, InvalidInput, ParetoscoutError
from paretoscout.kernels.decisions import DOMINATED
from paretoscout.storage import MemoryStorage, storage_of
from paretoscout.streams import environment_stream
from paretoscout.study import Study, Trial
from paretoscout.study import study as study_module
from paretoscout.study.replica import Replica

# Live and simulated

#: Powers of two, so that values are scaled without rounding.
EPS, SIGMA = 0.25, 0.0625
ROUNDS = {"memory": 150}  # in databases fewer: the state is the same there, and each round takes longer
PLAIN = ps.problems.gaussian([[1.0, 0.0], [0.0, 1.0], [0.25, -0.5], [-0.5, -0.5]], sigma=SIGMA)
CONTEXTS = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 0.25, -0.5], [1.0, -0.5, -0.5]])
WITH_CONTEXTS = replace(PLAIN, contexts=CONTEXTS)
LIVE: dict[str, Settings] = {
    **CONTENDERS,
    "scout, linear": Scout(model="linear"),
    "scout, linear, noise unknown": Scout(model="linear", noise="unknown"),
}


@pytest.mark.parametrize("problem", [PLAIN, WITH_CONTEXTS], ids=["plain", "contexts"])
@pytest.mark.parametrize("algorithm", LIVE.values(), ids=LIVE)
def test_decisions_of_a_live_study_equal_those_of_the_simulation(
    algorithm: Settings, problem: ps.Problem, storage: str
) -> None:
    if getattr(algorithm, "model", None) in ("linear", "robust") and problem.contexts is None:
        pytest.skip("needs contexts")
    # nobody tells a study the truth
    told = {field.name: 2.0 for field in fields(algorithm) if field.name in ("theta_max", "norm")}
    algorithm = replace(algorithm, **told)
    problem = suited(problem, algorithm)
    names = [metric.name for metric in problem.metrics]
    how, rounds = plan(algorithm), ROUNDS.get(storage, 40)
    result = ps.simulate(
        problem, algorithm, eps=dict.fromkeys(names, EPS), delta=0.1, replicates=1, seed=5, max_samples=rounds, **how
    )
    arms: Any = list(problem.arms)
    contexts: list[str] = []
    if problem.contexts is not None:
        contexts = ["u", "v"]
        arms = {"arm": arms, "u": problem.contexts[:, 1], "v": problem.contexts[:, 2]}
    study = Study(
        arms,
        [ps.Metric(name, eps=EPS) for name in names],
        delta=0.1,
        storage=storage,
        sigma=SIGMA if algorithm.knows_noise else None,
        contexts=contexts,
        algorithm=algorithm,
        seed=5,
        **how,
    )
    noise = environment_stream(5)
    for _ in range(rounds):
        if study.done:
            break
        trial = study.ask()
        means = problem.means[problem.arms.index(trial.arm)]
        study.tell(trial, dict(zip(names, means + SIGMA * noise.standard_normal(len(names)), strict=True)))
    with study._reading() as replica:
        verdicts = replica.session.verdicts()
    assert study.done == result.stopped[0]
    np.testing.assert_array_equal(verdicts.counts, result.pulls[0])
    np.testing.assert_array_equal(verdicts.status != DOMINATED, result.fronts[0])
    assert study.counts()["told"] == result.samples[0]
    assert replayed(study).dump() == state_of(study)


def test_no_algorithm_is_left_out() -> None:
    assert {resolve(algorithm)[0].name for algorithm in LIVE.values()} == set(ps.algorithms.available())


# Killed


def check(study: Study, acknowledged: list[int]) -> None:
    """What was acknowledged is there once; nothing else but what nobody heard of; replaying gives the snapshot."""
    log = events(study)
    assert [event.number for event in log] == list(range(len(log)))
    told = Counter(event.trial for event in log if event.kind == "tell")
    assert set(told.values()) <= {1}
    assert set(acknowledged) <= set(told)
    for number, arm, values, _ in study.observations():
        assert number is not None
        assert dict(zip(("x", "y"), values, strict=True)) == outcome_of(number, arm)
    snapshot = study.storage.latest_snapshot(study.name)
    if snapshot is not None:
        assert replayed(study, snapshot[0]).dump() == snapshot[1]
    assert state_of(Study.load(storage=study.storage)) == replayed(study).dump()


def acknowledged_in(log: Path) -> list[int]:
    lines = log.read_text().split("\n") if log.exists() else []
    return [int(line) for line in lines[:-1]]


@pytest.mark.parametrize("times", [10, pytest.param(100, marks=pytest.mark.long)])
def test_a_worker_killed_at_any_moment_loses_nothing(
    database: str, workers: Workers, tmp_path: Path, times: int
) -> None:
    study = new_study(database)
    log = tmp_path / "acknowledged"
    chance = random.Random(7)
    for _ in range(times):
        enough = len(acknowledged_in(log)) + chance.randrange(4)
        number = workers.start("measure", storage=database, log=str(log), snapshot_events=8)
        wait_for("the worker to get going", lambda: len(acknowledged_in(log)) >= enough)  # noqa: B023 - called now
        time.sleep(chance.random() * 0.02)
        workers.kill(number)
        assert not Path(f"{log}.error").exists(), Path(f"{log}.error").read_text()
        told = {event.trial for event in study.storage.events("study", kinds=("tell",))}
        assert set(acknowledged_in(log)) <= told
    check(study, acknowledged_in(log))
    trial = study.ask()  # it goes on
    study.tell(trial, outcome_of(trial.number, trial.arm))
    check(study, [*acknowledged_in(log), trial.number])
    assert len(study.open) <= times, "what the dead had asked for is still open, until it expires"


# Many at once


def test_four_processes_telling_500_results_each_lose_and_double_none(
    database: str, workers: Workers, tmp_path: Path
) -> None:
    study, each = new_study(database), 500
    logs = [tmp_path / f"acknowledged{k}" for k in range(4)]
    how: dict[str, Any] = {"storage": database, "batch": 10, "rounds": each // 10}
    numbers = [workers.start("measure", log=str(log), **how) for log in logs]
    # all the while somebody reads, and does not hold up the others
    reader = Study.load(storage=database)
    reads = 0
    while sum(len(acknowledged_in(log)) for log in logs) < 4 * each:
        assert reader.counts()["told"] <= 4 * each
        slow = reader.storage.events("study")
        next(slow, None)
        reads += 1
        for log in logs:
            assert not Path(f"{log}.error").exists(), Path(f"{log}.error").read_text()
        time.sleep(0.05)
        del slow
    for number in numbers:
        workers.wait(number)
    assert reads > 1
    acknowledged = [number for log in logs for number in acknowledged_in(log)]
    assert len(acknowledged) == len(set(acknowledged)) == 4 * each
    check(study, acknowledged)
    assert study.counts() == {"asked": 4 * each, "told": 4 * each, "open": 0, "lapsed": 0, "imported": 0}


def test_processes_that_tell_the_same_results_count_them_once(database: str, workers: Workers, tmp_path: Path) -> None:
    study = new_study(database)
    arms = [trial.arm for trial in study.ask(40)]
    logs = [tmp_path / f"log{k}" for k in range(3)]
    for number in [workers.start("tell", storage=database, log=str(log), first=0, last=40, arms=arms) for log in logs]:
        workers.wait(number)
    for log in logs:
        assert not Path(f"{log}.error").exists(), Path(f"{log}.error").read_text()
    check(study, list(range(40)))
    assert study.counts()["told"] == 40


# Whatever happens


class Life(RuleBasedStateMachine):
    """A study, and what it should remember, in plain words."""

    trials = Bundle("trials")

    def open_storage(self) -> Any:
        return MemoryStorage()

    @initialize(seed=st.integers(0, 3), algorithm=st.sampled_from(["scout", "multi-pfi"]))
    def begin(self, seed: int, algorithm: str) -> None:
        self.clock = Clock()
        self.storage = self.open_storage()
        metrics = [ps.Metric("x", eps=0.01), ps.Metric("y", eps=0.01)]
        self.study = Study(
            list(MEANS), metrics, sigma=1.0, storage=self.storage, lease=100.0, seed=seed, algorithm=algorithm
        )
        self.study._clock = self.clock
        self.partial = algorithm == "scout"
        self.arms = list(MEANS)
        self.withdrawn: set[str] = set()
        self.asked: dict[int, tuple[str, float]] = {}  # open trials: arm, when
        self.lapsed: dict[int, str] = {}
        self.told: dict[int, dict[str, float]] = {}
        self.outcomes: list[tuple[int | None, str, list[float | None]]] = []

    def note(self, number: int | None, arm: str, values: dict[str, float]) -> None:
        self.outcomes.append((number, arm, [values.get("x"), values.get("y")]))

    @rule(target=trials, n=st.integers(1, 3))
    def ask(self, n: int) -> Any:
        if self.study.done:
            return multiple()
        asked = self.study.ask(n)
        for number, (arm, at) in list(self.asked.items()):
            if self.clock.now - at > 100.0:
                self.lapsed[number] = arm
                del self.asked[number]
        for trial in asked:
            assert trial.arm in self.arms
            assert trial.arm not in self.withdrawn
            assert trial.number not in {*self.asked, *self.lapsed, *self.told}
            self.asked[trial.number] = (trial.arm, self.clock.now)
        return multiple(*asked)

    @rule(trial=trials, x=st.floats(-3, 3), y=st.floats(-3, 3), both=st.booleans())
    def tell(self, trial: Trial, x: float, y: float, both: bool) -> None:
        """In time, late, again: all of it is welcome, once."""
        values = {"x": x, "y": y} if both or not self.partial else {"x": x}
        if trial.number in self.told:
            with pytest.raises(Conflict) if values != self.told[trial.number] else nothing():
                self.study.tell(trial, values)
            return
        self.study.tell(trial, values)
        self.asked.pop(trial.number, None)
        self.lapsed.pop(trial.number, None)
        self.told[trial.number] = values
        self.note(trial.number, trial.arm, values)

    @rule(trial=consumes(trials))
    def tell_again(self, trial: Trial) -> None:
        if trial.number in self.told:
            self.study.tell(trial, self.told[trial.number])

    @rule(trial=trials)
    def fail(self, trial: Trial) -> None:
        if trial.number in self.told:
            with pytest.raises(Conflict):
                self.study.fail(trial)
            return
        self.study.fail(trial)
        if trial.number in self.asked:
            self.lapsed[trial.number] = self.asked.pop(trial.number)[0]

    @rule(seconds=st.sampled_from([1.0, 60.0, 1000.0, -500.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def reload(self) -> None:
        self.study = Study.load(storage=self.storage)
        self.study._clock = self.clock

    @rule(data=st.data())
    def bring_data(self, data: st.DataObject) -> None:
        arms = data.draw(st.lists(st.sampled_from(self.arms), min_size=1, max_size=3))
        self.study.tell_frame({"arm": arms, "x": [1.0] * len(arms), "y": [0.5] * len(arms)})
        for arm in arms:
            self.note(None, arm, {"x": 1.0, "y": 0.5})

    @rule(trial=trials)
    def bring_nonsense(self, trial: Trial) -> None:
        before = len(events(self.study))
        for action in (
            lambda: self.study.tell(trial, {"x": float("nan")}),
            lambda: self.study.tell(10**6, {"x": 1.0, "y": 1.0}),
            lambda: self.study.tell_frame({"arm": ["a", "nobody"], "x": [1.0, 1.0], "y": [1.0, 1.0]}),
            lambda: self.study.tell_frame({"arm": ["a", "b"], "x": [1.0, None], "y": [1.0, None]}),
            lambda: self.study.add_arms(["new", self.arms[0]] if not self.withdrawn else ["a", "a"]),
            lambda: self.study.withdraw("nobody"),
        ):
            with pytest.raises(ParetoscoutError):
                action()
        assert len(events(self.study)) == before

    @rule()
    def add_arm(self) -> None:
        if len(self.arms) < 7:
            self.arms.append(f"new {len(self.arms)}")
            self.study.add_arms([self.arms[-1]])

    @rule(data=st.data())
    def withdraw_or_bring_back(self, data: st.DataObject) -> None:
        arm = data.draw(st.sampled_from(self.arms))
        if arm in self.withdrawn:
            self.study.add_arms([arm])
            self.withdrawn.discard(arm)
        elif len(self.withdrawn) + 1 < len(self.arms):
            self.study.withdraw(arm)
            self.withdrawn.add(arm)

    @invariant()
    def remembers_everything(self) -> None:
        if not hasattr(self, "study"):
            return
        study = self.study
        assert [(number, arm, values) for number, arm, values, _ in study.observations()] == self.outcomes
        assert {trial.number: trial.arm for trial in study.open} == {n: arm for n, (arm, _) in self.asked.items()}
        counts = study.counts()
        assert counts["told"] == len(self.told)
        assert counts["lapsed"] == len(self.lapsed)
        assert counts["imported"] == sum(number is None for number, _, _ in self.outcomes)
        present = [arm for arm in self.arms if arm not in self.withdrawn]
        table = study.verdicts()
        assert list(table.arms) == present
        heard = Counter(arm for _, arm, _ in self.outcomes)
        assert table.counts.tolist() == [heard[arm] for arm in present], "nothing is lost or doubled by the algorithm"
        with study._reading() as replica:
            assert set(replica.again) <= set(replica.session.open)
            assert replica.session.pending.sum() == len(replica.session.open)

    def teardown(self) -> None:
        if hasattr(self, "study"):
            assert replayed(self.study).dump() == state_of(self.study)
            assert state_of(Study.load(storage=self.storage)) == state_of(self.study)
            self.storage.close()


class nothing:  # noqa: N801 - reads like a context manager of the standard library
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class LifeOnDisk(Life):
    """The same in SQLite, with snapshots all the time."""

    def open_storage(self) -> Any:
        self.folder = tempfile.mkdtemp()
        study_module.SNAPSHOT_EVENTS = 5
        return storage_of(Path(self.folder) / "study.db")

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            study_module.SNAPSHOT_EVENTS = 1000
            if hasattr(self, "folder"):
                shutil.rmtree(self.folder)


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=400 if LONG else 25, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow]
)
TestLifeOnDisk = LifeOnDisk.TestCase
TestLifeOnDisk.settings = settings(
    max_examples=200 if LONG else 8, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow]
)


# Growth


@pytest.mark.parametrize("tells", [5_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_asking_and_telling_do_not_slow_down(tmp_path: Path, tells: int) -> None:
    study = new_study(tmp_path / "study.db")
    asks, answers = [], []
    for _ in range(tells):
        began = time.process_time()  # of the processor: others may be busy with the disk and the machine
        trial = study.ask()
        asked = time.process_time()
        study.tell(trial, outcome_of(trial.number, "c"))  # all arms alike: it never finishes
        answers.append(time.process_time() - asked)
        asks.append(asked - began)
    window = tells // 10
    for times in (asks, answers):
        print(f"{tells:,}: {statistics.median(times[-window:]) / statistics.median(times[:window]):.2f} times as long")
        assert statistics.median(times[-window:]) < 10 * statistics.median(times[:window])
        assert sum(times[-window:]) < 10 * sum(times[:window])
    began = time.process_time()
    assert Study.load(storage=study.storage).counts()["told"] == tells
    assert time.process_time() - began < 10.0


@pytest.mark.parametrize("arms", [8, 60])
def test_the_cost_of_a_tell_does_not_grow_with_the_number_of_arms_by_its_snapshots(tmp_path: Path, arms: int) -> None:
    """A snapshot of many arms is large: the more, the rarer it is."""
    study = Study([f"arm {k}" for k in range(arms)], {"x": "max"}, sigma=1.0, storage=tmp_path / "study.db")
    written: list[int] = []
    original = Replica.dump

    def dump(self: Any) -> bytes:
        data = original(self)
        written.append(len(data))
        return data

    study.tell_frame({"arm": [f"arm {k % arms}" for k in range(5_000)], "x": [0.0] * 5_000})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Replica, "dump", dump)
        for _ in range(3):
            study.tell_frame({"arm": [f"arm {k % arms}" for k in range(5_000)], "x": [0.0] * 5_000})
    assert sum(written) / 15_000 <= study_module.SNAPSHOT_BYTES_PER_EVENT * 1.5


@pytest.mark.long
def test_a_study_of_a_million_observations_loads_in_10_seconds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arms = rng.choice(list(MEANS), 1_000_000).tolist()
    study = new_study(tmp_path / "study.db")
    study.tell_frame({"arm": arms, "x": rng.normal(size=1_000_000), "y": rng.normal(size=1_000_000)})
    study.storage.close()
    began = time.process_time()
    loaded = Study.load(storage=tmp_path / "study.db")
    assert loaded.counts()["imported"] == 1_000_000
    assert loaded.verdicts().counts.sum() == 1_000_000
    loaded.ask()
    assert time.process_time() - began < 10.0


def test_forked_children_share_a_study(database: str) -> None:
    """A study that was used before a fork can be used by both sides after it."""
    study = new_study(database)
    first = study.ask()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            mine = study.ask()
            study.tell(mine, outcome_of(mine.number, mine.arm))
            os.write(write, b"told")
        finally:
            os._exit(0)
    study.tell(first, outcome_of(first.number, first.arm))
    assert os.read(read, 9) == b"told"
    os.waitpid(child, 0)
    check(study, [0])
    assert study.counts()["told"] == 2
    with pytest.raises(InvalidInput):
        study.tell(99, {"x": 1.0})
