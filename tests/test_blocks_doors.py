"""Studies with blocks under attack: cells that are asked twice, tables that are sorted, statements that are false."""

from collections import OrderedDict
from functools import partial
from typing import Any

import numpy as np
import pytest

import paretoscout as ps
from paretoscout.audit import measure
from paretoscout.audit.doors import NOTHING, Clock, Crew, DoorCase, identical
from paretoscout.audit.families import Case, blocks
from paretoscout.audit.on_blocks import worked_on_blocks
from paretoscout.errors import Conflict, InvalidInput, NotSupported
from paretoscout.problems import table
from paretoscout.study.replica import Replica

BLOCKS = [f"b{number}" for number in range(10)]


def made(arms: Any = ("a", "b"), metrics: Any = None, **how: Any) -> Any:
    """A study in memory."""
    return ps.Study(list(arms), metrics or [ps.Metric("m", eps=0.1)], storage="memory", **{"blocks": BLOCKS, **how})


def cell(trial: Any) -> Any:
    """What a trial is about."""
    return trial.arm, trial.block


def walk(study: Any) -> Any:
    """The blocks as they are visited."""
    return study.log.copy().blocks


def counts_of(study: Any, arm: str) -> Any:
    """On how many blocks an arm counts."""
    replica = study.log.copy()
    return int(replica.session.state.visited[replica.place[replica.index[arm]]])


def replayed(study: Any) -> Any:
    """Whether the log gives the state, to the last bit."""
    now = study.log.copy()
    return study.log.as_of(now.number).dump() == now.dump()


def test_the_second_attempt_counts_as_soon_as_the_first_one_fails() -> None:
    clock = Clock()
    study = made(clock=clock, lease=1.0, give_up=None)
    first = study.ask(arm="a")
    clock.now = 2.0
    again = study.ask()
    assert cell(again) == cell(first)
    study.tell(again, {"m": 1.0})
    assert counts_of(study, "a") == 0
    study.fail(first)
    assert counts_of(study, "a") == 1
    assert replayed(study)


def test_what_is_told_after_its_lease_is_not_asked_again() -> None:
    clock = Clock()
    study = made(clock=clock, lease=1.0, give_up=None)
    _, second = study.ask(arm="a"), study.ask(arm="a")
    clock.now = 2.0
    study.tell(second, {"m": 1.0})  # it waits for the block before
    assert cell(second) not in [cell(trial) for trial in study.ask(6)]


@pytest.mark.parametrize("before", [True, False])
def test_nobody_is_asked_for_what_was_imported(before: Any) -> None:
    study = made()
    trials = [study.ask(arm="a"), study.ask(arm="a")]
    told = {"arm": ["a"], "block": [trials[1].block], "m": [1.0]}
    if before:
        study.tell_frame(told)
    study.fail(trials[1])
    if not before:
        study.tell_frame(told)
    assert study.counts()["waiting"] == 1
    assert cell(trials[1]) not in [cell(trial) for trial in study.ask(6)]
    study.tell(trials[0], {"m": 0.0})
    assert counts_of(study, "a") == 2
    assert replayed(study)


def test_nobody_is_asked_for_what_was_imported_when_an_option_leaves() -> None:
    study = made("abc")
    study.tell_frame({"arm": ["a"], "block": [walk(study)[1]], "m": [1.0]})
    first = study.ask(arm="a")
    assert study.ask(arm="a").block == walk(study)[2]
    study.withdraw("b")
    assert ("a", walk(study)[1]) not in [cell(trial) for trial in study.ask(8)]
    study.tell(first, {"m": 0.0})
    assert counts_of(study, "a") == 2


def test_an_option_that_comes_leaves_open_trials_as_they_are() -> None:
    study = made("ab")
    running = study.ask(6)
    study.tell(running[5], {"m": 1.0})  # it waits
    study.add_arms(["c"], looked=False)
    asked = study.ask(8)
    assert not {cell(trial) for trial in running} & {cell(trial) for trial in asked}
    for trial in running[:5]:
        study.tell(trial, {"m": 0.0})
    assert counts_of(study, "a") == counts_of(study, "b") == 3
    assert replayed(study)


def test_a_withdrawn_option_whose_lease_is_over_is_not_asked_again() -> None:
    clock = Clock()
    study = made("abc", clock=clock, lease=1.0, give_up=None)
    _, second = study.ask(arm="a"), study.ask(arm="a")
    clock.now = 2.0
    study.tell(second, {"m": 1.0})
    study.withdraw("a")
    assert "a" not in [trial.arm for trial in study.ask(8)]
    study.add_arms(["a"], looked=False)
    assert cell(second) not in [cell(trial) for trial in study.ask(12)]
    assert replayed(study)


def test_one_option_alone_is_measured_once() -> None:
    study = made("a", goal="practical")
    assert not study.stuck
    study.tell(study.ask(), {"m": 1.0})
    assert study.done
    assert study.front() == ["a"]


def test_part_of_an_outcome_was_looked_at() -> None:
    study = made(metrics=[ps.Metric("m"), ps.Metric("n")])
    study.tell(study.ask(), {"m": 1.0})
    with pytest.raises(NotSupported, match="same blocks"):
        study.add_arms(["c"])
    study = made()
    trial = study.ask()
    study.fail(trial)
    study.tell(trial, {"m": 1.0})
    with pytest.raises(NotSupported, match="same blocks"):
        study.add_arms(["c"])


def test_a_row_of_a_trial_names_its_block() -> None:
    study = made()
    trial = study.ask()
    other = next(block for block in BLOCKS if block != trial.block)
    with pytest.raises(InvalidInput, match=f"says block '{other}'"):
        study.tell_frame({"trial": [trial.number], "block": [other], "m": [1.0]}, trial="trial")
    assert study.tell_frame({"trial": [trial.number], "block": [trial.block], "m": [1.0]}, trial="trial") == 1


def test_two_rows_of_a_cell_are_refused_if_they_differ() -> None:
    study = made()
    with pytest.raises(Conflict, match="again, with other values"):
        study.tell_frame({"arm": ["a", "a"], "block": ["b1", "b1"], "m": [2.0, 1.0]})
    assert study.tell_frame({"arm": ["a", "a"], "block": ["b1", "b1"], "m": [2.0, 2.0]}) == 2


def test_a_ratio_that_is_not_kept_is_refused() -> None:
    size = ps.Metric("m", "min", eps="10%", ratio=2)
    study = made(metrics=[size])
    trial = study.ask(arm="a")
    study.tell(trial, {"m": 3.0})
    with pytest.raises(InvalidInput, match="at most 2 times that of another on the same block"):
        study.tell(study.ask(arm="b"), {"m": 1.0})
    with pytest.raises(InvalidInput, match="at most 2 times"):
        made(metrics=[size]).tell_frame({"arm": ["a", "b"], "block": ["b1", "b1"], "m": [1.0, 3.0]})
    frame = {"arm": ["a"] * 4 + ["b"] * 4, "block": BLOCKS[:4] * 2, "m": [1.0] * 7 + [3.0]}
    with pytest.raises(InvalidInput, match="at most 2 times"):
        table(frame, "arm", [size], block="block")
    wider = ps.Metric("m", "min", eps="10%", ratio=3)
    assert len(table(frame, "arm", [wider], block="block").arms) == 2


def test_numbers_too_small_for_their_squares_are_no_evidence() -> None:
    rng = np.random.default_rng(0)
    study = made(metrics=[ps.Metric("m")], goal="front", blocks=[f"b{number}" for number in range(40)])
    while not study.done:
        study.tell(study.ask(), {"m": 1e-160 * rng.normal()})
    assert study.counts()["told"] == 80


@pytest.mark.parametrize("turn", [1, -1])
def test_a_nested_table_may_be_sorted(turn: Any) -> None:
    wrong = 0
    for number in range(20):  # an exact tie; one option was measured on 90 of 100 blocks
        rng = np.random.default_rng(number)
        values = np.array([rng.permutation(np.arange(100) < 50) for _ in "ab"]) * 1.0
        order = np.argsort(turn * (values[1] - values[0]), kind="stable").tolist()
        seen = set(rng.permutation(100)[:90].tolist())
        rows = [(k, block) for block in order for k in range(2) if k == 0 or block in seen]
        frame = {
            "arm": ["ab"[k] for k, _ in rows],
            "block": [f"b{block}" for _, block in rows],
            "m": [values[k, block] for k, block in rows],
        }
        metrics = [ps.Metric("m", bounds=(0, 1))]
        wrong += "dominated" in ps.analyze(frame, "arm", metrics, block="block", goal="front", delta=0.1).verdicts
    assert wrong <= 3


def test_the_first_outcome_told_of_a_cell_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Replica._of_next_block

    def whatever_is_told(self: Any, arm: int) -> Any:
        """The outcome of a cell, though an attempt before it is open."""
        running, self.open = self.open, OrderedDict()
        try:
            return first(self, arm)
        finally:
            self.open = running

    play = partial(worked_on_blocks, identical(NOTHING, True), Crew(8, "good", lease=0.5), 150, "population")
    case = DoorCase("A/A", play, door="blocks")
    (row,) = measure.audit_doors([case], replicates=8, workers=1)
    assert (row.verdict, row.failures) == (measure.KEPT, 0)
    monkeypatch.setattr(Replica, "_of_next_block", whatever_is_told)
    (row,) = measure.audit_doors([case], replicates=20, workers=1)
    assert row.verdict == measure.BROKEN


def test_a_case_beyond_the_promise_shows_its_failures_and_is_no_alarm() -> None:
    case: Case = next(case for case in blocks() if case.title == "K=2 L=2, few carry all, list of 200")
    (row,) = measure.audit([measure.Contender(ps.algorithms.get("scout"))], [case], replicates=60, progress=False)
    assert row.verdict == measure.BEYOND
    assert row.failures > 12
    assert not measure.broken([row])
    assert "breaks what the promise rests on; failures there" in measure.summary([row])
