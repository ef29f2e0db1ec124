"""Why a study can be trusted: it decides as the simulation does, survives what happens to it, and does not slow down."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
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
from paretoscout.errors import Conflict, InvalidInput, NotSupported, ParetoscoutError, StorageUnavailable, UnknownName
from paretoscout.kernels.decisions import DOMINATED
from paretoscout.storage import MemoryStorage, schema, storage_of
from paretoscout.storage.sql import SQLStorage
from paretoscout.storage.upkeep import backup, restore
from paretoscout.streams import environment_stream
from paretoscout.study import Study, Trial
from paretoscout.study import log as log_module
from paretoscout.study.replica import Replica
from paretoscout.study.spec import StudySpec

# Live and simulated

#: Powers of two, so that values are scaled without rounding.
EPS, SIGMA = 0.25, 0.0625
ROUNDS = {"memory": 150}  # in databases fewer: the state is the same there, and each round takes longer
PLAIN = ps.problems.gaussian([[1.0, 0.0], [0.0, 1.0], [0.25, -0.5], [-0.5, -0.5]], sigma=SIGMA)
CONTEXTS = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 0.25, -0.5], [1.0, -0.5, -0.5]])
WITH_CONTEXTS = PLAIN.replace(contexts=CONTEXTS)
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
    with study.log.reading() as replica:
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
    counts = {name: count for name, count in study.counts().items() if count}
    assert counts == {"asked": 4 * each, "told": 4 * each}


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
        self.study.log._clock = self.clock
        self.scout = algorithm == "scout"
        self.arms = list(MEANS)
        self.withdrawn: set[str] = set()
        self.asked: dict[int, tuple[str, float]] = {}  # open trials: arm, when
        self.void: set[int] = set()
        self.told: dict[int, dict[str, float | None]] = {}
        self.late: set[int] = set()
        self.outcomes: list[tuple[int | None, str, list[float | None]]] = []
        self.evidence: list[tuple[int, str]] = []  # the number that gives its turn, and the arm

    def note(self, number: int | None, arm: str, values: dict[str, float | None]) -> None:
        self.outcomes.append((number, arm, [values.get("x"), values.get("y")]))

    def lapse(self) -> None:
        """Whoever writes lets trials lapse whose time is up."""
        over = {number for number, (_, at) in self.asked.items() if self.clock.now - at > 100.0}
        self.void |= over
        self.asked = {number: asked for number, asked in self.asked.items() if number not in over}

    @rule(target=trials, n=st.integers(1, 3))
    def ask(self, n: int) -> Any:
        if self.study.done:
            return multiple()
        try:
            asked = self.study.ask(n)
        except NotSupported:  # what lapsed decided everything
            asked = []
        self.lapse()
        for trial in asked:
            assert trial.arm in self.arms
            assert trial.arm not in self.withdrawn
            assert trial.number not in {*self.asked, *self.void, *self.told}
            self.asked[trial.number] = (trial.arm, self.clock.now)
        return multiple(*asked)

    @rule(trial=trials, x=st.floats(-3, 3), y=st.floats(-3, 3), both=st.booleans())
    def tell(self, trial: Trial, x: float, y: float, both: bool) -> None:
        """In time, late, again: all of it is kept, once; what is late is no evidence."""
        values = {"x": x, "y": y if both or not self.scout else None}
        if trial.number in self.told:
            before = self.told[trial.number]
            differ = any(value is not None and value != before[name] for name, value in values.items())
            with pytest.raises(Conflict) if differ else nothing():
                self.study.tell(trial, values)
            if not differ:
                self.lapse()
            return
        self.study.tell(trial, values)
        self.lapse()
        if self.asked.pop(trial.number, None) is None:
            self.late.add(trial.number)
        else:
            self.evidence.append((trial.number, trial.arm))
        self.told[trial.number] = values
        self.note(trial.number, trial.arm, values)

    @rule(trial=consumes(trials))
    def tell_again(self, trial: Trial) -> None:
        if trial.number in self.told:
            self.study.tell(trial, self.told[trial.number])
            self.lapse()

    @rule(trial=trials)
    def fail(self, trial: Trial) -> None:
        if trial.number in self.told:
            with pytest.raises(Conflict):
                self.study.fail(trial)
            return
        self.study.fail(trial)
        self.lapse()
        if self.asked.pop(trial.number, None) is not None:
            self.void.add(trial.number)

    @rule(seconds=st.sampled_from([1.0, 60.0, 1000.0, -500.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def reload(self) -> None:
        self.study = Study.load(storage=self.storage)
        self.study.log._clock = self.clock

    @rule(data=st.data())
    def bring_data(self, data: st.DataObject) -> None:
        arms = data.draw(st.lists(st.sampled_from(self.arms), min_size=1, max_size=3))
        self.study.tell_frame({"arm": arms, "x": [1.0] * len(arms), "y": [0.5] * len(arms)})
        self.lapse()
        turn = len(events(self.study)) - 1
        for arm in arms:
            self.note(None, arm, {"x": 1.0, "y": 0.5})
            self.evidence.append((turn, arm))

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
        if self.scout and len(self.arms) < 7:
            self.arms.append(f"new {len(self.arms)}")
            self.study.add_arms([self.arms[-1]], looked=False)

    @rule(data=st.data())
    def withdraw_or_bring_back(self, data: st.DataObject) -> None:
        arm = data.draw(st.sampled_from(self.arms))
        if not self.scout:
            with pytest.raises(NotSupported):
                self.study.withdraw(arm)
        elif arm in self.withdrawn:
            self.study.add_arms([arm], looked=False)
            self.withdrawn.discard(arm)
        elif len(self.withdrawn) + 1 < len(self.arms):
            self.study.withdraw(arm, looked=data.draw(st.booleans()))
            self.withdrawn.add(arm)

    @invariant()
    def remembers_everything(self) -> None:
        if not hasattr(self, "study"):
            return
        study = self.study
        assert [(number, arm, values) for number, arm, values, _ in study.observations()] == self.outcomes
        assert {trial.number: trial.arm for trial in study.open} == {n: arm for n, (arm, _) in self.asked.items()}
        counts = study.counts()
        assert counts["told"] == len(self.told) - len(self.late)
        assert counts["late"] == len(self.late)
        assert counts["lapsed"] == len(self.void)
        assert counts["imported"] == sum(number is None for number, _, _ in self.outcomes)
        present = [arm for arm in self.arms if arm not in self.withdrawn]
        table = study.verdicts()
        assert list(table.arms) == present
        heard = Counter(arm for turn, arm in self.evidence if turn < min(self.asked, default=math.inf))
        assert table.counts.tolist() == [heard[arm] for arm in present], "nothing is lost or doubled by the algorithm"
        with study.log.reading() as replica:
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
        log_module.SNAPSHOT_EVENTS = 5
        return storage_of(Path(self.folder) / "study.db")

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            log_module.SNAPSHOT_EVENTS = 1000
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
    assert sum(written) / 15_000 <= log_module.SNAPSHOT_BYTES_PER_EVENT * 1.5


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


# Logs that are not what a worker remembers


def measure_some(study: Study, n: int) -> None:
    for _ in range(n):
        trial = study.ask()
        study.tell(trial, outcome_of(trial.number, trial.arm))


def test_a_worker_that_is_ahead_of_a_restored_backup_loads_again(database: str, tmp_path: Path) -> None:
    storage = SQLStorage(database)
    study, reader = new_study(storage), Study.load(storage=SQLStorage(database))
    measure_some(study, 5)
    backup(storage, tmp_path / "copy.db")
    late = study.ask()
    measure_some(study, 5)
    assert reader.counts()["told"] == 10
    restore(storage, tmp_path / "copy.db", StudySpec.of_text)
    assert reader.counts()["told"] == 5
    with pytest.raises(InvalidInput, match=f"trial must be one that was asked, got {late.number}"):
        study.tell(late, outcome_of(late.number, late.arm))
    measure_some(study, 3)
    check(study, list(range(0, 16, 2)))
    assert reader.counts()["told"] == 8


@pytest.mark.parametrize("more", [0, 1, 20])
def test_a_server_that_lost_its_last_commits_leaves_no_hole(database: str, more: int) -> None:
    """Others may have gone on since, up to or beyond what the worker remembers."""
    storage = SQLStorage(database)
    study, other = new_study(storage), Study.load(storage=SQLStorage(database))
    measure_some(study, 5)
    with storage._transaction() as connection:
        for table in (schema.events, schema.snapshots):
            connection.execute(table.delete().where(table.c.number > 5))
        mark = connection.scalar(sa.select(schema.events.c.mark).where(schema.events.c.number == 5))
        connection.execute(schema.heads.update().values(last=5, mark=mark))
    for _ in range(more):
        assert other.ask().arm in MEANS
    assert len(study.open) == more
    assert study.counts() == Study.load(storage=SQLStorage(database)).counts()
    measure_some(study, 2)
    check(study, [0, 2, 4])
    assert state_of(study) == state_of(other)


@pytest.mark.parametrize("anew", ["the same", "another", "none"])
def test_a_study_that_was_deleted_under_a_worker_is_not_written_to(storage: str, anew: str) -> None:
    place = storage_of(storage)
    study = new_study(place)
    measure_some(study, 5)
    trial = study.ask()
    place.delete("study")
    if anew == "none":
        with pytest.raises(UnknownName):
            study.tell(trial, outcome_of(trial.number, trial.arm))
        return
    fresh = new_study(place, seed=0 if anew == "the same" else 1)
    measure_some(fresh, 8)
    before = events(fresh)
    for action in (
        lambda: study.tell(trial, outcome_of(trial.number, trial.arm)),
        lambda: study.ask(),
        lambda: study.counts(),
        lambda: study.withdraw("a"),
    ):
        with pytest.raises(Conflict, match="'study' was deleted and made again since it was loaded here"):
            action()
    assert events(fresh) == before
    measure_some(fresh, 2)
    check(fresh, [])
    assert Study.load(storage=place).counts()["told"] == 10


def test_a_file_that_was_replaced_under_a_worker_is_noticed(tmp_path: Path) -> None:
    study = new_study(tmp_path / "s.db")
    measure_some(study, 5)
    trial = study.ask()
    new_study(tmp_path / "t.db").storage.close()
    for path in tmp_path.glob("s.db*"):
        path.unlink()
    with pytest.raises(StorageUnavailable, match="is gone"):
        study.tell(trial, outcome_of(trial.number, trial.arm))
    (tmp_path / "t.db").rename(tmp_path / "s.db")
    with pytest.raises(Conflict, match="made again"):
        study.tell(trial, outcome_of(trial.number, trial.arm))
    assert Study.load(storage=tmp_path / "s.db").counts()["asked"] == 0


def test_a_snapshot_ahead_of_the_log_or_of_any_kind_leads_to_a_replay(tmp_path: Path) -> None:
    study = new_study(tmp_path / "s.db")
    measure_some(study, 5)
    ahead = state_of(study).replace(b'"number": 9', b'"number": 8')
    foreign = new_study("memory", seed=9)
    measure_some(foreign, 3)
    for number, data in ((99, state_of(study)), (4, state_of(study)), (9, ahead), (9, state_of(foreign)), (9, b"PK")):
        with study.storage.writing("study") as writer:
            writer.snapshot(number, data)
        fresh = Study.load(storage=tmp_path / "s.db")
        assert fresh.counts()["told"] == 5
        assert state_of(fresh) == replayed(study).dump()


def test_who_told_is_kept(storage: str) -> None:
    place = storage_of(storage)
    study = new_study(place, worker="machine 7")
    measure_some(study, 1)
    measure_some(Study.load(storage=place), 1)
    here = f"{socket.gethostname()}:{os.getpid()}"
    assert [event.by for event in events(study)] == ["machine 7", "machine 7", here, here]
    for wrong in ("two\nlines", "x" * 201, 7):
        with pytest.raises(InvalidInput, match="worker of a study must be a text in one line, at most 200"):
            Study(name="study", storage=place, worker=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [99, 2**31, 2**62])
def test_a_trial_that_was_never_asked_is_refused_however_large_its_number(storage: str, number: int) -> None:
    study = new_study(storage)
    with pytest.raises(InvalidInput, match=f"trial must be one that was asked, got {number}"):
        study.tell(number, {"x": 1.0, "y": 1.0})


# Forks while threads are at work

FORKS = """
import os, sys, threading
sys.path.insert(0, {tests!r})
from paretoscout import Study
from paretoscout.errors import ParetoscoutError
from study_worker import new_study, outcome_of

address = sys.argv[1]
study = new_study(address)
over = threading.Event()

def measure(study):
    trial = study.ask()
    study.tell(trial, outcome_of(trial.number, trial.arm))

def work(study):
    while not over.is_set():
        measure(study)
        study.counts()

measure(study)
threads = [threading.Thread(target=work, args=(each,)) for each in (study, study, Study.load(storage=address))]
for thread in threads:
    thread.start()
children = []
for k in range(10):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            measure(study if k % 2 else Study.load(storage=address))
            status = 0
        except ParetoscoutError as problem:
            print(problem, flush=True)
            status = 2
        finally:
            os._exit(status)
    children.append(child)
ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
over.set()
for thread in threads:
    thread.join()
print(ends, study.counts()["told"] >= 11)
"""


def test_children_forked_while_threads_are_in_a_study_work(database: str) -> None:
    """The time limit is for a hang: all of it takes a second or two."""
    code = FORKS.format(tests=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-c", code, database], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.stdout == f"{[0] * 10} True\n", done.stderr
    check(Study.load(storage=database), [])


TORN = """
import os, sys, threading
sys.path.insert(0, {tests!r})
from paretoscout import Study
from paretoscout.errors import ParetoscoutError
from paretoscout.storage import forks
from study_worker import new_study

study = new_study(sys.argv[1])
study.ask()
forks.WAIT_SECONDS = 0.1
entered, leave = threading.Event(), threading.Event()

def stay():
    with study.log.writing():
        entered.set()
        leave.wait()

thread = threading.Thread(target=stay)
thread.start()
entered.wait()
child = os.fork()
if child == 0:
    for action in (study.ask, lambda: Study.load(storage=sys.argv[1])):
        try:
            action()
        except ParetoscoutError as problem:
            print(problem, flush=True)
    os._exit(0)
os.waitpid(child, 0)
leave.set()
thread.join()
print(study.ask().number)
"""


def test_a_child_forked_in_the_middle_of_a_study_is_told_at_once(database: str) -> None:
    code = TORN.format(tests=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-c", code, database], capture_output=True, text=True, check=False, timeout=600
    )
    *said, last = done.stdout.splitlines()
    assert len(said) == 2, done.stderr
    for line in said:
        assert line.startswith("studies cannot be used in this process: it was forked while another thread")
    assert last == "1"


def test_studies_of_schema_1_go_on(tmp_path: Path) -> None:
    """What the version before showed of each study is what is counted now."""
    data = Path(__file__).parent / "data"
    file = tmp_path / "old.db"
    file.write_bytes(gzip.decompress((data / "studies-schema-1.db.gz").read_bytes()))
    SQLStorage(f"sqlite:///{file}", upgrade=True).close()
    shown = json.loads((data / "studies-schema-1.json").read_text())
    storage = storage_of(file)
    assert set(shown) <= set(storage.names())
    for name, was in shown.items():
        assert len(list(Study.load(name, storage).observations())) == was["observations"], name
