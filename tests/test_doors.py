"""The doors of the audit keep their promise in a very small form, and a door that does not is found out."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import paretoscout as ps
from paretoscout.audit import doors, measure, on_files
from paretoscout.audit.doors import BOUNDS, DOORS, NOTHING, SIGMA, Crew, DoorCase, Guarded, Options, Played
from paretoscout.audit.measure import BROKEN, KEPT, Row
from paretoscout.cli.main import main
from paretoscout.errors import NotSupported
from paretoscout.guarantee import Guarantee
from paretoscout.verdicts import VerdictTable


def row_of(play: doors.Play, replicates: int = 20) -> Row:
    (row,) = measure.audit_doors([DoorCase("", play, door="some")], replicates=replicates, workers=1)
    return row


#: Doors that are attacked by the law of outcomes, or of means, and not by their order.
OF_LAWS = {"laws", "contexts"}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_in_a_very_short_audit(door: str) -> None:
    """10 runs a row find out who fails nearly always; `make audit` looks closer. False alarm: at most 1e-4 a row."""
    rows = list(measure.audit_doors(doors.door_cases([door], short=True), replicates=10, workers=1))
    assert rows, "every door is in the short audit"
    assert {row.verdict for row in rows} == {KEPT}, rows
    assert door in OF_LAWS or any("A/A" in row.case for row in rows)


def test_outcomes_in_order_of_finish_are_found_out() -> None:
    """A declaration that is not true: how long they take has all to do with outcomes."""
    for told, workers in ((NOTHING, 64), (BOUNDS, 64)):
        options = doors.identical(told, uneven=True)
        assert row_of(partial(doors.worked, options, Crew(workers, how={"order": "told"}))).verdict == BROKEN
        row = row_of(partial(doors.worked, options, Crew(workers)), replicates=5)
        assert (row.verdict, row.failures) == (KEPT, 0)


def row_by_row(options: Options, order: str, number: int, delta: float) -> Played:
    """A sorted table through a door that takes rows for a course of events: each is judged when it comes."""
    frame = doors.table_of(options, 60, order, doors.stream(number))
    study = options.study(number, delta)
    for arm, value in zip(frame["arm"], frame["metric 0"], strict=True):
        if study.done:
            break
        study.tell(study.ask(arm=arm), {"metric 0": value})
    return Played(options.wrong(study.verdicts()), study.done, len(frame["arm"]))


def test_sorted_rows_that_nobody_shuffles_are_found_out() -> None:
    options = doors.identical(NOTHING, uneven=True)
    assert row_of(partial(row_by_row, options, "sorted by value within options")).verdict == BROKEN
    row = row_of(partial(doors.analyzed, options, "sorted by value within options", 60))
    assert (row.verdict, row.failures) == (KEPT, 0)


def test_runs_in_a_row_that_are_called_independent_are_found_out() -> None:
    assert row_of(partial(on_files.read_from, 0.0, 0.001, 1, True, "runs", "front")).verdict == BROKEN


@pytest.mark.parametrize(
    ("told", "crew"),
    [
        (SIGMA, Crew(1, fails=True)),
        (SIGMA, Crew(1, "good", give_up=doors.SLOW + 0.5)),
        (SIGMA, Crew(1, "bad", give_up=doors.SLOW + 0.5)),
        (BOUNDS, Crew(1, fails=True)),
        (BOUNDS, Crew(1, give_up=1.0, silent=True)),
    ],
)
def test_the_truth_is_about_what_is_heard(told: str, crew: Crew) -> None:
    """5 standard errors: a false alarm has probability below 1e-6."""
    options, rng, heard = doors.identical(told, uneven=False), np.random.default_rng(1), []
    for _ in range(4000):
        values, seconds, is_told = crew.course(options, 0, rng)
        in_time = is_told and (crew.give_up is None or seconds <= crew.give_up)
        if crew.silent or (values is not None and in_time):
            heard.append(values["metric 0"] if values is not None and in_time else 0.0)
    assert 1000 < len(heard) < 4000 or crew.silent
    assert abs(np.mean(heard) - options.means[0, 0]) < 5.0 * np.std(heard) / len(heard) ** 0.5


def table(options: Options, *verdicts: str) -> VerdictTable:
    n = len(verdicts)
    return VerdictTable(
        arms=tuple(options.arms[:n]),
        metrics=(),
        verdicts=verdicts,
        rivals=(None,) * n,
        centres=np.zeros((n, 1)),
        widths=np.zeros((n, 1)),
        counts=np.ones(n, np.int64),
        guarantee=Guarantee("front", None, (), ()),
    )


def test_what_is_wrong() -> None:
    options = Options(np.array([[0.0], [0.5], [2.0]]), np.ones(3), 1.0, SIGMA)
    assert options.wrong(table(options, "front", "front", "front")) == ("option 0", "option 1")
    assert options.wrong(table(options, "dominated", "undecided", "front")) == ()
    assert options.wrong(table(options, "front", "front")) == (), "the best one is not there"
    assert options.wrong(table(options, "front", "dominated")) == ("option 1",)
    assert options.wrong(table(options, "front", "front"), missed=["option 2"]) == ("option 0", "option 1")
    same = doors.identical(SIGMA, uneven=False)
    assert same.wrong(table(same, "front", "dominated")) == ("option 1",)


def test_what_is_wrong_with_a_guard() -> None:
    options = Options(np.array([[0.0], [0.5], [2.0]]), np.ones(3), 1.0, SIGMA)

    def wrong(costs: tuple[float, ...], *verdicts: str, done: bool = True, left: str = "") -> tuple[str, ...]:
        guard = Guarded(costs)
        return doors._wrong_with_guard(options, guard, table(options, *verdicts), {left: ""} if left else {}, done)

    assert wrong((-1.0, -1.0, 1.0), "dominated", "front", left="option 2") == ()
    assert wrong((-1.0, -1.0, 0.0), "front", "front", left="option 2") == ("option 2", "option 0", "option 1")
    assert wrong((-1.0, -1.0, 1.0), "dominated", "dominated", "front") == ("option 1", "option 2")
    assert wrong((-1.0, -1.0, 1.0), "dominated", "dominated", "front", done=False) == (), "its guard is open"


def test_half_of_the_cases_have_noise_that_differs_and_every_door_an_a_a_case() -> None:
    for door in DOORS.keys() - OF_LAWS:
        titles = [case.title for case in doors.door_cases([door])]
        uneven = sum("noise differs" in title for title in titles)
        assert 0.4 <= uneven / len(titles) <= 0.7, door
        assert any("A/A" in title for title in titles)
        assert len(set(zip(titles, [case.algorithm for case in doors.door_cases([door])], strict=True))) == len(titles)
    workers = " ".join(case.title for case in doors.door_cases(["workers"]))
    assert {int(n) for n in re.findall(r"(\d+) worker", workers)} == {1, 4, 8, 16, 64, 256}
    assert len({case.algorithm for case in doors.door_cases(["workers"])}) >= 4


def test_the_same_in_processes() -> None:
    case = doors.door_cases(["analyze"], short=True)[0]
    one, two = (next(measure.audit_doors([case], replicates=3, workers=workers)) for workers in (1, 2))
    assert replace(one, microseconds=0.0) == replace(two, microseconds=0.0)


def test_the_command_audits_doors(tmp_path: Path) -> None:
    out = tmp_path / "doors.json"
    how = ["--doors", "--short", "--family", "analyze", "--replicates", "5", "--workers", "1", "--out", str(out)]
    done = CliRunner().invoke(main, ["audit", *how], catch_exceptions=False)
    assert done.exit_code == 0
    rows = json.loads(out.read_text())
    assert {(row["door"], row["family"], row["verdict"]) for row in rows} == {(True, "analyze", KEPT)}
    assert f"1 of {len(rows)}, 0:" in done.stderr, "progress, though there is no terminal"
    assert "Every claimed guarantee was kept" in done.stdout
    both = CliRunner().invoke(main, ["audit", "--doors", "--algorithms", "uniform"])
    assert both.exit_code == 2


def test_a_broken_door_is_told_by_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def made_up() -> list[DoorCase]:
        return [DoorCase("A/A", lambda number, delta: Played(("option 0",), True, 1), short=True)]

    monkeypatch.setitem(DOORS, "analyze", made_up)
    how = ["--doors", "--short", "--family", "analyze", "--workers", "1"]
    done = CliRunner().invoke(main, ["audit", *how], catch_exceptions=False)
    assert done.exit_code == 6
    assert "BROKEN in 1 of 1 row: door 'analyze' with" in done.stdout


def test_an_ask_that_finds_all_decided_keeps_what_lapsed() -> None:
    """Silence is an outcome here, and nobody tells anything: the last ask took back that the trials before it lapsed."""
    clock = doors.Clock()
    rate = ps.Metric("rate", eps=0.3, bounds=(0.0, 1.0))
    study = ps.Study(["a", "b"], [rate], storage="memory", lease=1.0, clock=clock, at_give_up={"rate": 0.0})
    asked = 0
    while not study.done and asked < 200:
        with suppress(NotSupported):  # nothing left to ask
            study.ask()
        asked, clock.now = asked + 1, clock.now + 1.5
    assert asked < 200
    assert study.open == []


def test_practical_verdicts_are_asked_of_algorithms_that_have_them() -> None:
    twins = {case.algorithm for case in doors.door_cases() if "practical verdicts" in case.title}
    assert "scout" in twins
    for name in twins:
        ps.Study(["a", "b"], {"x": "max", "y": "min"}, sigma=1.0, algorithm=name, goal="practical", storage="memory")
