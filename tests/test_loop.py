"""Loops that nobody has to write: Study.run, find_front, and paretoscout run."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import paretoscout as ps
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput, UnknownName

TRUTH = {"a": {"quality": 1.0, "cost": 1.0}, "b": {"quality": 0.5, "cost": 2.0}, "c": {"quality": 2.0, "cost": 3.0}}
METRICS = {"quality": "max", "cost": "min"}


def new(**how: Any) -> ps.Study:
    return ps.Study(list(TRUTH), METRICS, **{"sigma": 0.05, "storage": "memory", **how})


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("algorithm", ["scout", "multi-pfi", "ape"])
def test_a_study_is_run_to_its_end(workers: int, algorithm: str) -> None:
    told = []
    standing = new(algorithm=algorithm).run(
        TRUTH.__getitem__, workers=workers, callback=lambda study, trial, outcome: told.append((trial.arm, outcome))
    )
    assert standing.done
    assert standing.front == ("a", "c")
    assert len(told) == standing.counts["told"]
    assert all(outcome == TRUTH[arm] for arm, outcome in told)
    assert not standing.open


def test_it_takes_the_decisions_of_a_loop() -> None:
    by_hand, looped = new(), new()
    while not by_hand.done:
        trial = by_hand.ask()
        by_hand.tell(trial, TRUTH[trial.arm])
    looped.run(TRUTH.__getitem__)
    assert [row[:3] for row in looped.observations()] == [row[:3] for row in by_hand.observations()]


def test_so_many_measurements_at_a_time() -> None:
    """Each of the first four waits for the other three."""
    barrier = threading.Barrier(4, timeout=60)
    first = iter(range(4))

    def measure(arm: str) -> dict[str, float]:
        if next(first, None) is not None:
            barrier.wait()
        return TRUTH[arm]

    assert new().run(measure, workers=4).done


def test_limits_end_it() -> None:
    study = new(sigma=50.0)
    assert study.run(TRUTH.__getitem__, trials=5, workers=2).counts["told"] == 5
    assert study.run(TRUTH.__getitem__, timeout=1e-9).counts["told"] == 5
    budget = new(sigma=50.0, budget=7)
    assert budget.run(TRUTH.__getitem__).counts["told"] == 7
    for how, message in (
        ({"workers": 0}, "workers of run must be a whole number, at least 1"),
        ({"trials": 0}, "trials of run"),
        ({"timeout": -1}, "timeout of run must be a finite number above 0"),
    ):
        with pytest.raises(InvalidInput, match=message):
            study.run(TRUTH.__getitem__, **how)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="measure of run must be a function"):
        study.run(3)  # type: ignore[arg-type]
    asked = study.standing().counts["asked"]
    with pytest.raises(InvalidInput, match=r"must be something that other processes can load, .* got <function"):
        study.run(lambda arm: TRUTH[arm], engine="processes:1")
    assert study.standing().counts["asked"] == asked


def test_what_fails_ends_it_or_is_made_again() -> None:
    fails = iter([True, False, True])

    def measure(arm: str) -> dict[str, float]:
        if next(fails, False):
            raise OSError("no such device")
        return TRUTH[arm]

    study = new()
    with pytest.raises(OSError, match="no such device"):
        study.run(measure)
    assert study.counts() | {"told": 0} == study.counts()
    assert not study.open, "nothing is left open"
    standing = study.run(measure, catch=OSError)
    assert standing.front == ("a", "c")
    assert standing.counts["lapsed"] == 2


def test_an_outcome_that_is_refused_loses_nothing() -> None:
    study = new()
    study.run(TRUTH.__getitem__, trials=2)
    with pytest.raises(UnknownName, match="speed"):
        study.run(lambda arm: {"speed": 1.0})
    assert study.counts()["told"] == 2
    assert not study.open


def test_a_measurement_that_lacks_a_metric_ends_the_run() -> None:
    """Nobody is there to tell it later: the trial would stay open, and all others wait for it."""
    study = new()
    with pytest.raises(
        InvalidInput, match=r"the measurement of 'a' must give cost too: a number, or none .* got quality"
    ):
        study.run(lambda arm: {"quality": 1.0})
    assert not study.open


def test_a_study_that_another_process_finishes_meanwhile_is_finished() -> None:
    """Somebody else tells the last outcome after this one saw that there is something to ask, and before it asks."""
    study, other = new(), new()
    other.run(TRUTH.__getitem__)
    study.ask = other.ask  # type: ignore[method-assign]
    finished = iter([False])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ps.Study, "finished", property(lambda self: next(finished, True)))
        assert study.run(TRUTH.__getitem__).counts["told"] == 0


def test_find_front() -> None:
    standing = ps.find_front(list(TRUTH), TRUTH.__getitem__, METRICS, sigma=0.05, workers=2, delta=0.01)
    assert standing.front == ("a", "c")
    assert standing.guarantee.probability == 0.99


# Verdicts at hand


def test_a_table_prints_as_the_command_line_shows_it() -> None:
    study = new(title="which?")
    table = study.run(TRUTH.__getitem__).table
    lines = str(table).splitlines()
    assert lines[0].split() == ["option", "verdict", "quality", "↑", "cost", "↓", "n"]
    assert any(line.startswith("b        × dominated by a") for line in lines)
    assert lines[-2:] == [table.tally(), f"Guarantee: {table.guarantee}"]
    assert [each.option for each in table] == list(table.arms)
    assert str(table["b"]).startswith("b × dominated by a: quality 0")
    assert table["b"].verdict == "dominated"
    assert table["b"].rival == "a"
    assert table["a"]["quality"] == pytest.approx(1.0)
    with pytest.raises(UnknownName, match="option"):
        table["z"]
    with pytest.raises(UnknownName, match="metric"):
        table["a"]["z"]
    frame = table.to_frame("pandas")
    assert frame["option"].tolist() == ["a", "b", "c"]
    assert (frame["cost_low"] <= frame["cost"]).all()


def test_numbers_are_shown_from_the_first_sample() -> None:
    study = ps.Study(["a", "b"], [ps.Metric("t", "min", eps="2%", unit="ms")], storage="memory")
    study.tell(study.ask(arm="a"), {"t": 5.0})
    study.tell(study.ask(arm="a"), {"t": 20.0})
    table = study.verdicts()
    assert [table.value(k, 0) for k in (0, 1)] == ["≈ 10", "–"], "the geometric mean; nothing was measured of b"
    told = table.as_dict()["options"][0]["estimates"]["t"]
    assert told == {"value": pytest.approx(10.0), "low": None, "high": None, "radius": None, "censored": False}


def test_intervals_end_at_the_bounds() -> None:
    study = ps.Study(["a"], [ps.Metric("rate", bounds=(0, 1))], storage="memory")
    study.tell_frame({"arm": ["a"] * 60, "rate": [1.0] * 60})
    table = study.verdicts()
    assert table.high[0, 0] == 1.0
    assert 0.5 < table.low[0, 0] < 1.0
    assert "±" not in table.value(0, 0)


# From the shell


MEASURE = """
import sys, os
truth = {"a": (1.0, 1.0), "b": (0.5, 2.0), "c d": (2.0, 3.0)}
quality, cost = truth[sys.argv[1]]
assert os.environ["PARETOSCOUT_ARM"] == sys.argv[1]
if os.path.exists("broken"):
    sys.exit("it is broken")
print("some noise")
print(f"quality={quality} cost={cost}")
"""


def test_run_from_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PARETOSCOUT_STORAGE", raising=False)
    Path("measure.py").write_text(MEASURE)

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(main, list(arguments))

    options = [word for arm in ("a", "b", "c d") for word in ("--arm", arm)]
    made = run("create", *options, "-m", "quality", "-m", "cost:min", "--sigma", "0.05")
    assert "next: paretoscout run './measure {arm}'" in made.output
    command = f"{sys.executable} measure.py {{arm}}"
    some = run("run", command, "--trials", "2")
    assert some.exit_code == 3, some.output
    assert "2 samples" in some.output
    Path("broken").touch()
    broken = run("run", command)
    assert broken.exit_code == 2
    assert "ended with exit code 1: it is broken" in broken.output
    os.remove("broken")
    done = run("run", command, "--workers", "3")
    assert done.exit_code == 0, done.output
    assert "b        × dominated by a" in done.output
    assert json.loads(run("front", "--json").output)["front"] == ["a", "c d"]
    for wrong, message in (("'", "words as a shell reads them"), ("", "must not be empty")):
        refused = run("run", wrong)
        assert refused.exit_code == 2
        assert message in refused.output
    run("create", "--name", "two", *options, "-m", "quality", "-m", "cost:min", "--sigma", "0.05")
    silent = run("run", "true", "--name", "two")
    assert "must print METRIC=VALUE for each metric, got nothing" in silent.output
    assert "cannot be run: No such file or directory" in run("run", "./nothing", "--name", "two").output
