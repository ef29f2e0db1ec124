"""Workers that die, stop, come back or were never there: no study waits for them for longer than it must."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import PATIENCE, Workers, wait_for
from servers import Served
from study_worker import outcome_of

import paretoscout as ps
from paretoscout.cli.main import main
from paretoscout.client import connect
from paretoscout.errors import InvalidInput, NothingToAsk
from paretoscout.storage import Heartbeat
from paretoscout.study import loop, workers
from paretoscout.study.replica import Replica
from paretoscout.study.workers import DEAD_AFTER, Process, has_ended, living, this_process

MEANS = {"a": 1.0, "b": 0.0, "c": 0.5}
BLOCKS = [f"p{k}" for k in range(40)]


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def new(clock: Clock | None = None, storage: Any = "memory", **how: Any) -> ps.Study:
    sigma = 0.3 if how.get("blocks") is None else None
    return ps.Study(list(MEANS), {"x": "max"}, **{"sigma": sigma, "storage": storage, "clock": clock, **how})


def measured(arm: str, block: str = "") -> dict[str, float]:
    return {"x": MEANS[arm]}


def replayed(study: ps.Study) -> bytes:
    """The state after following the log from its beginning."""
    replica = Replica(study.spec)
    for event in study.storage.events(study.name):
        replica.apply(event, lambda number: (each for each in study.storage.events(study.name) if each.number < number))
    return replica.dump()


def kinds(study: ps.Study) -> list[str]:
    return [event.kind for event in study.storage.events(study.name)]


# Which workers are dead


def test_a_process_that_ended_is_dead_and_so_is_one_whose_number_was_used_again() -> None:
    here = this_process()
    assert here.pid == os.getpid()
    assert not has_ended(here, here)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert has_ended(here._replace(pid=ended.pid), here)
    if sys.platform == "linux":
        assert has_ended(here._replace(started="12"), here), "this number belongs to a later process"
        zombie = subprocess.Popen([sys.executable, "-c", ""])
        wait_for("it to end", lambda: has_ended(here._replace(pid=zombie.pid), here))
        zombie.wait()
    assert not has_ended(here._replace(host="another", pid=ended.pid), here), "nobody knows from here"
    assert not has_ended(Process("", ended.pid, ""), Process("", 1, "")), "two machines may lack a name"
    assert not has_ended(here._replace(pid=None), here)


@pytest.mark.parametrize("pid", [0, -1, -(2**31)])
def test_no_number_of_a_process_signals_a_group(pid: int) -> None:
    assert not has_ended(this_process()._replace(pid=pid), this_process())


def test_silence_of_a_minute_is_death() -> None:
    beats = [Heartbeat("1", "w", at=100.0), Heartbeat("2", "w", at=150.0), Heartbeat("", "hand", at=150.0)]
    assert living(beats, 100.0 + DEAD_AFTER) == {("1", "w"), ("2", "w"), ("", "hand")}
    assert living(beats, 100.1 + DEAD_AFTER) == {("2", "w"), ("", "hand")}
    assert living(beats, 151.0 + DEAD_AFTER) == set()
    assert len(living(beats, 151.0 + DEAD_AFTER, since=100.0)) == 0
    assert len(living(beats, 151.0 + DEAD_AFTER, since=152.0)) == 3, "they could not be heard meanwhile"


def test_heartbeats_are_no_events() -> None:
    """An hour of ten idle workers."""
    clock = Clock()
    study = new(clock)
    study.ask()
    before = study.log.copy().dump()
    for _ in range(240):
        clock.now += 15.0
        for worker in range(10):
            study.heartbeat(f"{worker}")
    assert kinds(study) == ["ask"]
    assert study.log.copy().dump() == before == replayed(study)
    assert len(study.storage.heartbeats("study")) == 10


# Voiding and asking again


@pytest.mark.parametrize("why", ["silent", "ended"])
@pytest.mark.parametrize("blocks", [None, BLOCKS, "rounds"])
def test_what_a_dead_worker_left_is_asked_again_first(why: str, blocks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    study = new(clock, blocks=blocks)
    study.heartbeat("dead")
    asked = study.ask_round(run="dead") if blocks == "rounds" else study.ask(3, run="dead")
    clock.now += 61.0 if why == "silent" else 1.0
    if why == "ended":
        monkeypatch.setattr(workers, "has_ended", lambda process, here: True)
    again = study.ask_round(run="new") if blocks == "rounds" else study.ask(3, run="new")
    assert kinds(study) == ["ask"] * 3 + ["void"] * 3 + ["ask"] * 3
    assert [(trial.arm, trial.block) for trial in again] == [(trial.arm, trial.block) for trial in asked]
    assert [trial.number for trial in again] == [6, 7, 8]
    for trial in again:
        study.tell(trial, measured(trial.arm))
    assert study.counts()["waiting"] == 0, "all of it counts"
    assert study.verdicts().counts.sum() == 3
    standing = study.standing()
    assert "a worker dies for reasons that have nothing to do with the outcome" in str(standing.guarantee)
    assert "that succeed" not in str(standing.guarantee)
    assert standing.counts["lapsed"] == 3
    assert replayed(study) == study.log.copy().dump()
    # what it tells when it comes back is kept, and is no evidence
    for trial in asked:
        study.tell(trial, {"x": -5.0})
    assert study.verdicts().counts.sum() == 3
    assert study.counts()["late"] == 3
    assert study.why_void(asked) == dict.fromkeys([0, 1, 2], "its worker was dead")
    assert study.late_trials() == {0, 1, 2}
    assert study.asked_and_told()[asked[0].arm].void == 1
    assert replayed(study) == study.log.copy().dump()


def test_nobody_else_is_dead() -> None:
    clock = Clock()
    study = new(clock)
    study.heartbeat("1f")
    study.heartbeat("")  # a loop of its own, known by its name
    by_run, by_name = study.ask(run="1f"), study.ask()
    clock.now += 59.0
    study.ask(run="other")
    assert kinds(study) == ["ask"] * 3
    study.heartbeat("1f")
    clock.now += 2.0
    study.log._looked = -1e9
    study.ask(run="another")
    assert [trial.number for trial in study.open] == [by_run.number, 2, 4], "the one that is silent, and only it"
    assert by_name.number not in [trial.number for trial in study.open]


def test_names_may_be_equal_and_identities_tell(tmp_path: Path) -> None:
    """Two containers with the same host name, and the same number of the process."""
    clock = Clock()
    first = new(clock, tmp_path / "s.db", worker="box:1")
    second = new(clock, tmp_path / "s.db", worker="box:1")
    first.heartbeat("1f")
    trial = first.ask(run="1f")
    clock.now += 61.0
    second.heartbeat("2e")
    own = second.ask(run="2e")
    assert kinds(second) == ["ask", "void", "ask"]
    assert own.arm == trial.arm
    second.tell(own, measured(own.arm))
    first.tell(trial, measured(trial.arm))
    assert second.counts() | {"told": 1, "late": 1} == second.counts()


def test_of_several_attempts_at_a_cell_the_first_one_that_is_not_void_counts() -> None:
    """And never the one that was told first: fast outcomes may be good ones."""
    for order in ([1, 2], [2, 1]):
        clock = Clock()
        study = new(clock, blocks=BLOCKS, give_up=None, lease=100.0)
        study.heartbeat("dead")
        void = study.ask(run="dead")
        clock.now += 61.0
        second = study.ask(run="new")
        study.heartbeat("new")
        clock.now += 101.0  # its lease ends: it is asked again, but is not void
        study.heartbeat("new")
        study.log._looked = time.monotonic()
        third = study.ask(run="third")
        assert len({(each.arm, each.block) for each in (void, second, third)}) == 1
        study.tell(void, {"x": 9.0})
        for which in order:
            study.tell((second, third)[which - 1], {"x": float(which)})
        assert study.verdicts()[void.arm].estimates["x"] is not None
        assert study.log.copy().tally.mean[study.spec.arms.index(void.arm), 0] == 1.0
        assert replayed(study) == study.log.copy().dump()


def test_a_round_waits_for_its_void_trials_and_is_compared_in_full() -> None:
    clock = Clock()
    study = new(clock, blocks="rounds")
    study.heartbeat("dead")
    first = study.ask_round(run="dead")
    for trial in first[:2]:
        study.tell(trial, measured(trial.arm))
    clock.now += 61.0
    (again,) = study.ask_round(run="new")
    assert (again.arm, again.block) == (first[2].arm, first[2].block)
    second = study.ask_round(run="new")
    for trial in second:
        study.tell(trial, measured(trial.arm))
    assert study.counts()["waiting"] == 5, "the first round is not closed"
    study.tell(again, measured(again.arm))
    assert study.counts()["waiting"] == 0
    assert not study.log.copy().cut
    assert replayed(study) == study.log.copy().dump()


def test_a_void_trial_of_an_option_that_leaves_holds_no_round_up() -> None:
    clock = Clock()
    study = new(clock, blocks="rounds")
    study.heartbeat("dead")
    first = study.ask_round(run="dead")
    for trial in first[:2]:
        study.tell(trial, measured(trial.arm))
    clock.now += 61.0
    study.resume("new")
    study.withdraw(first[2].arm)
    assert study.counts()["waiting"] == 0
    assert Replica.load(study.spec, study.log.copy().dump()).repeat == []


def test_snapshots_keep_void_trials() -> None:
    clock = Clock()
    for blocks in (None, BLOCKS, "rounds"):
        study = new(clock, blocks=blocks)
        study.heartbeat("dead")
        _ = study.ask_round(run="dead") if blocks == "rounds" else study.ask(3, run="dead")
        clock.now += 61.0
        assert len(study.resume("new")) == 3
        state = study.log.copy().dump()
        assert Replica.load(study.spec, state).dump() == state == replayed(study)


# By hand


def test_what_was_asked_by_hand_is_measured_again_by_a_run_that_is_alone() -> None:
    clock = Clock()
    study = new(clock)
    study.ask(3)
    told: list[Any] = []
    standing = study.run(measured, notice=told.append)
    assert standing.done
    assert [(each.trial.number, each.why) for each in told[0]] == [(0, "asked"), (1, "asked"), (2, "asked")]
    assert "what was asked by hand is left untold for reasons that have nothing to do" in str(standing.guarantee)
    study.tell(1, {"x": 7.0})
    assert study.why_void([1, 6]) == {1: "it was asked by hand, and a run measured it again"}


def test_it_is_left_to_others_who_are_alive_or_if_that_is_wanted() -> None:
    clock = Clock()
    study = new(clock)
    study.ask(2)
    study.heartbeat("other")
    assert study.resume("mine") == ()
    clock.now += 61.0
    assert study.resume("mine", leave_asked=True) == ()
    assert study.resume("mine", older=100.0) == ()
    assert len(study.resume("mine", older=60.0)) == 2


def test_of_two_runs_that_begin_at_the_same_time_one_takes_over(tmp_path: Path) -> None:
    new(storage=tmp_path / "s.db").ask(3)
    studies = [new(storage=tmp_path / "s.db") for _ in range(4)]
    barrier, taken = threading.Barrier(4), list[int]()

    def begin(number: int) -> None:
        barrier.wait()
        taken.append(len(studies[number].resume(f"run {number}")))

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [0, 0, 0, 3]


def test_a_run_that_is_held_up_waits_says_so_and_takes_over_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    study = new(clock)
    told: list[Any] = []
    open_ = [study.ask(), study.ask()]
    other = study.ask()
    study.tell(other, measured(other.arm))
    real = ps.Study.ask

    def ask(self: ps.Study, *args: Any, **how: Any) -> Any:
        if any(trial.number == open_[0].number for trial in study.open):
            raise NothingToAsk("all that is left waits for trial 0")
        return real(self, *args, **how)

    monkeypatch.setattr(ps.Study, "ask", ask)
    monkeypatch.setattr(loop, "PATIENCE", 0.0)
    study.heartbeat("other")

    def notice(what: Any) -> None:
        told.append(what)
        clock.now += DEAD_AFTER + 1.0  # the other worker is silent

    assert study.run(measured, notice=notice).done
    (waits,), voided = told
    assert (
        waits.said(1000.0) == f"1 outcome waits for trial 0 (option {open_[0].arm}, asked 0 s ago by {waits.trial.by})"
    )
    assert [each.trial.number for each in voided] == [0, 1]


# What waits


def test_what_outcomes_wait_for_is_a_value_and_then_a_sentence() -> None:
    clock = Clock()
    study = new(clock, worker="worker 3")
    first, *rest = study.ask(13)
    for trial in rest:
        study.tell(trial, measured(trial.arm))
    clock.now += 40.0
    (waits,) = study.standing().waits
    assert waits.said(clock()) == f"12 outcomes wait for trial 0 (option {first.arm}, asked 40 s ago by worker 3)"
    assert study.standing().as_dict()["waits_for"] == [
        {"outcomes": 12, "trial": 0, "option": first.arm, "asked_at": 1000.0, "by": "worker 3"}
    ]
    study.fail(first)
    assert study.standing().waits == ()
    told = new(clock, order="told")
    told.tell(told.ask(2)[1], measured("a"))
    assert told.standing().waits == ()


def test_on_blocks_outcomes_wait_for_their_own_option_and_in_rounds_for_the_round() -> None:
    study = new(blocks=BLOCKS, worker="w")
    trials = study.ask(9)
    first = {arm: next(trial for trial in trials if trial.arm == arm) for arm in MEANS}
    for trial in trials:
        if trial not in first.values():
            study.tell(trial, measured(trial.arm))
    assert {(each.outcomes, each.trial.number) for each in study.standing().waits} == {
        (2, trial.number) for trial in first.values()
    }
    assert all(each.as_dict()["block"] == first["a"].block for each in study.standing().waits)
    rounds = new(blocks="rounds", worker="w")
    for number in range(2):
        for trial in rounds.ask_round()[number == 0 :]:
            rounds.tell(trial, measured(trial.arm))
    (waits,) = rounds.standing().waits
    assert (waits.outcomes, waits.trial.number) == (5, 0)


# Runs that are killed, stopped or suspended


def calls(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


@pytest.mark.parametrize("blocks", [None, BLOCKS])
def test_a_run_that_is_killed_goes_on_when_it_is_started_again(workers: Workers, tmp_path: Path, blocks: Any) -> None:
    """The third door of README, killed by -9: before, the second run measured without end for an hour."""
    log, storage = tmp_path / "log", f"sqlite:///{tmp_path / 's.db'}"
    metrics = [ps.Metric("x", eps=0.2), ps.Metric("y", eps=0.2)]
    study = ps.Study(["a", "b", "c"], metrics, sigma=None if blocks else 0.3, storage=storage, blocks=blocks)
    study.ask(3)  # and somebody asked, and forgot it
    first = workers.start("run", storage=storage, log=str(log), pause=0.05, workers=2)
    wait_for("some outcomes", lambda: study.counts()["told"] >= 4)
    workers.kill(first)
    second = workers.start("run", storage=storage, log=str(log), workers=2)
    workers.wait(second)
    assert not (tmp_path / "log.error").exists()
    assert calls(log)[-1] == "done"
    assert study.done
    standing = study.standing()
    assert standing.counts["waiting"] == 0 or blocks is not None
    assert len(calls(log)) - 1 <= standing.counts["told"] + 2, "what was under way, and no more, is measured twice"
    assert len(study.storage.heartbeats("study")) == 1, "that of the dead one; the other signed off"


def test_a_run_that_is_suspended_and_comes_back_does_no_harm(workers: Workers, tmp_path: Path) -> None:
    log, storage = tmp_path / "log", f"sqlite:///{tmp_path / 's.db'}"
    metrics = [ps.Metric("x", eps=0.2), ps.Metric("y", eps=0.2)]
    ahead = [0.0]
    study = ps.Study(["a", "b", "c"], metrics, sigma=0.3, storage=storage, clock=lambda: time.time() + ahead[0])
    sleeper = workers.start("run", storage=storage, log=str(log), pause=1.0)
    wait_for("it to measure", lambda: len(study.open) == 1)
    os.kill(sleeper, signal.SIGSTOP)
    try:
        ahead[0] = DEAD_AFTER + 30.0  # as if it were suspended for so long
        numbers = iter(range(10**6))
        standing = study.run(lambda arm: outcome_of(next(numbers), arm))
        assert standing.done
        assert "void" in kinds(study)
    finally:
        os.kill(sleeper, signal.SIGCONT)
    workers.wait(sleeper)
    assert not (tmp_path / "log.error").exists()
    assert study.counts()["late"] == 1
    assert study.standing().front == standing.front


MEASURE = """#!/bin/sh
case "$1" in a) q=8;; *) q=3;; esac
echo "x=$q.$(date +%N | cut -c 1-3)"
"""
SLOW = """#!/bin/sh
echo $$ > running
exec sleep 600
"""


@pytest.fixture
def scripts(empty_folder: Path) -> Path:
    for name, text in (("measure", MEASURE), ("slow", SLOW)):
        (empty_folder / name).write_text(text)
        (empty_folder / name).chmod(0o755)
    return empty_folder


def invoke(*argv: str) -> Any:
    return CliRunner().invoke(main, list(argv), catch_exceptions=False)


@pytest.mark.parametrize("blocks", [False, True])
def test_the_second_door_as_printed(scripts: Path, blocks: bool) -> None:
    """`ask -n 3`, then `run`: before, all calls were made, and nothing was decided."""
    (scripts / "prompts.txt").write_text("".join(f"prompt {k}\n" for k in range(776)))
    on = ["--blocks", "prompts.txt"] if blocks else []
    assert invoke("create", "--arm", "a", "--arm", "b", *on, "-m", "x:max", "--eps", "x=0.5").exit_code == 0
    assert invoke("ask", "-n", "3").exit_code == 0
    ran = invoke("run", "./measure {arm}")
    assert ran.exit_code == 0, ran.stderr
    first = ran.stderr.splitlines()[0]
    assert first.startswith(
        "measures again 3 trials that were asked by hand, because no other worker is alive (--leave-asked waits for "
        "them): 0 ("
    )
    assert int(json.loads(invoke("status", "--json").stdout)["told"]) < 60
    late = invoke("tell", "1", "x=5.5")
    assert late.exit_code == 0
    assert late.stderr.splitlines()[0] == (
        "trial 1 was void before this outcome came (it was asked by hand, and a run measured it again): it is kept, "
        "but is no evidence"
    )
    assert "1 outcome came when the trial was void: kept, but no evidence" in invoke("status").stdout
    rows = invoke("export").stdout.splitlines()
    assert rows[0].endswith(",at,late")
    assert [row.split(",")[0] for row in rows if row.endswith(",late")][1:] == ["1"]
    assert [row["trial"] for row in json.loads(invoke("export", "--format", "json").stdout) if row.get("late")] == [1]


def test_leave_asked_waits(scripts: Path) -> None:
    invoke("create", "--arm", "a", "--arm", "b", "-m", "x:max", "--eps", "x=0.5")
    invoke("ask", "-n", "3")
    ran = invoke("run", "./measure {arm}", "--leave-asked", "--trials", "20")
    assert ran.exit_code == 3
    assert "measures again" not in ran.stderr
    assert len(json.loads(invoke("status", "--json").stdout)["open_trials"]) == 3
    assert "outcomes wait for trial 0 (option " in " ".join(invoke("status").stdout.split())


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGTERM, signal.SIGTERM]])
def test_sigterm_voids_what_is_under_way(scripts: Path, signals: list[signal.Signals]) -> None:
    invoke("create", "--arm", "a", "--arm", "b", "-m", "x:max", "--eps", "x=0.5")
    argv = [sys.executable, "-m", "paretoscout", "run", "./slow {arm}", "--workers", "2"]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    study = ps.Study.load()
    wait_for("two measurements", lambda: len(study.open) == 2 and (scripts / "running").exists())
    for each in signals:
        process.send_signal(each)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert said.endswith("ended by SIGTERM: what was under way is measured again by the next run\n")
    assert study.open == []
    assert kinds(study)[-2:] == ["void", "void"]
    assert study.storage.heartbeats("study") == []
    number = int((scripts / "running").read_text())
    wait_for("the command to end", lambda: not workers._started(number))  # it may be a zombie
    ran = invoke("run", "./measure {arm}")
    assert ran.exit_code == 0
    assert "a run is stopped for reasons that have nothing to do with the outcome" in " ".join(ran.stdout.split())


SCRIPT = """
import time
import paretoscout as ps

study = ps.Study(["a", "b"], {"x": "max"}, storage="s.db")
study.run(lambda arm: time.sleep(600), workers=2)
"""


def test_sigterm_of_a_program_voids_what_is_under_way_and_ends_it_as_ever(empty_folder: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", SCRIPT])
    study = ps.Study(["a", "b"], {"x": "max"}, storage="s.db")
    wait_for("two measurements", lambda: len(study.open) == 2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == -signal.SIGTERM
    assert study.open == []
    assert kinds(study)[-2:] == ["void", "void"]


def dies(arm: str) -> dict[str, float]:
    """A measurement that ends its process the first time."""
    if not Path("died").exists():
        Path("died").touch()
        os._exit(1)
    return measured(arm)


def test_a_child_that_dies_is_a_worker_that_dies(empty_folder: Path) -> None:
    study = new()
    assert study.run(dies, engine="processes:1").done
    assert kinds(study).count("void") == 1
    assert "fail" not in kinds(study)
    assert "a worker dies for reasons" in str(study.standing().guarantee)


def test_what_stops_a_run_voids_its_trials_and_failures_stay_failures() -> None:
    study = new()

    def stopped(arm: str) -> dict[str, float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.run(stopped)
    assert kinds(study) == ["ask", "void"]
    fails = iter([True])

    def failing(arm: str) -> dict[str, float]:
        if next(fails, False):
            raise OSError("no such device")
        return measured(arm)

    assert study.run(failing, catch=OSError).done
    assert kinds(study).count("fail") == 1
    assert "about measurements that succeed" in str(study.standing().guarantee)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_run_measures_rounds(workers: int) -> None:
    study = new(blocks="rounds", goal="practical")
    asked = study.ask_round()  # and left
    study.tell(asked[0], measured(asked[0].arm))
    numbers = iter(range(10**6))
    standing = study.run(lambda arm: {"x": MEANS[arm] + next(numbers) * 37 % 11 / 30}, workers=workers)
    assert standing.done
    assert standing.counts["waiting"] == 0
    rounds: dict[str, list[str]] = {}
    for event in study.storage.events("study"):
        if event.kind == "ask":
            rounds.setdefault(event.body["block"], []).append(event.body["arm"])
    assert sorted(rounds["1"]) == sorted([*MEANS, asked[1].arm, asked[2].arm])


def test_bad_values_of_workers_are_refused() -> None:
    study = new()
    for run in ("x" * 101, "two\nlines", 3):
        with pytest.raises(InvalidInput, match="run of a worker must be a line of at most 100 letters"):
            study.heartbeat(run)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="why of void must be 'dead' or 'stopped', got 'asked'"):
        study.void(study.ask(), "asked")


# On a server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    served = Served(str(tmp_path_factory.mktemp("server") / "studies.db"))
    yield served
    served.stop()


KILLED = """
import sys, time
import paretoscout as ps

ps.connect(sys.argv[1]).study("killed").run(lambda arm: time.sleep(600), workers=2)
"""


def test_a_worker_of_a_server_that_ends_is_noticed_at_once(server: Served) -> None:
    with connect(server.url) as client:
        made = client.create("killed", list(MEANS), {"x": "max"}, sigma=0.3)
        process = subprocess.Popen([sys.executable, "-c", KILLED, server.url])
        wait_for("two measurements", lambda: len(made.open) == 2)
        process.kill()
        process.wait()
        told: list[Any] = []
        assert made.run(measured, notice=told.append).done
        assert [each.why for each in told[0]] == ["dead", "dead"]
        assert "a worker dies for reasons" in made.standing().guarantee
        late = {"trial": 0, "values": {"x": 3.0}}
        assert made._call("POST", "observations", late)["void"] == 1


def test_what_was_asked_by_hand_over_http(server: Served) -> None:
    with connect(server.url) as client:
        made = client.create("by-hand", list(MEANS), {"x": "max"}, sigma=0.3)
        made.ask(2)
        told: list[Any] = []
        assert made.resume("mine", leave_asked=True) == ()
        made.sign_off("mine")
        assert made.run(measured, notice=told.append).done
        assert [each.why for each in told[0]] == ["asked", "asked"]


def test_a_run_on_a_server_measures_rounds(server: Served) -> None:
    with connect(server.url) as client:
        made = client.create("rounds", list(MEANS), {"x": "max"}, blocks="rounds")
        numbers = iter(range(10**6))
        assert made.run(lambda arm: {"x": MEANS[arm] + next(numbers) * 37 % 11 / 30}).done


def test_after_a_restart_every_worker_has_a_minute_to_speak(tmp_path: Path) -> None:
    served = Served(str(tmp_path / "studies.db"))
    try:
        with connect(served.url) as client:
            client.create("s", list(MEANS), {"x": "max"}, sigma=0.3)
        there = ps.Study.load("s", tmp_path / "studies.db")
        there.log._worker = "far away"
        there.ask(run="1f")
        with there.storage.writing("s") as writer:  # heard long ago, before the server stopped
            writer.beat(Heartbeat("1f", "far away", "another machine", 7, "1", time.time() - 600.0))
        served.kill()
        served.start()
        with connect(served.url, worker="new") as client:
            client.study("s").ask(run="2e")
        assert "void" not in kinds(there)
    finally:
        served.stop()
    assert [each.trial.number for each in ps.Study.load("s", tmp_path / "studies.db").resume("mine")] == [0]
