"""How many runs it will take: plans from guesses and from pilots, what they print, draw and refuse."""

from __future__ import annotations

import functools
import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import paretoscout as ps
from paretoscout import planning
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput, UnknownName

#: No test may depend on how fast the machine is.
FOREVER = 1e6
QUALITY = [ps.Metric("quality", "max", eps=2.0)]


def plan(arms: Any = 3, metrics: Any = QUALITY, **more: Any) -> ps.StudyPlan:
    guesses = {"noise": 1.0, "spread": 0.0, "replicates": 10, "limit": FOREVER, "progress": False}
    return ps.plan(arms, metrics, **{**guesses, **more})


@functools.cache
def usual() -> ps.StudyPlan:
    """Three equal options."""
    return plan()


def runs_of_a_study(means: list[float], noise: float, eps: float, seed: int) -> int:
    """Measure options until all is decided, as a user would; return how many runs it took."""
    arms = {f"option {k}": mean for k, mean in enumerate(means)}
    study = ps.Study(list(arms), [ps.Metric("quality", eps=eps)], storage="memory", seed=seed)
    rng = np.random.default_rng(seed)
    told = 0
    while not study.done:
        trial = study.ask()
        study.tell(trial, {"quality": arms[trial.arm] + noise * rng.normal()})
        told += 1
    return told


@pytest.mark.parametrize("means", [[0.0, 0.0, 0.0], [0.0, 30.0, 60.0]], ids=["equal", "far apart"])
def test_real_studies_take_as_many_runs_as_planned(means: list[float]) -> None:
    """Three options, all equal or all far apart: then the number of runs varies little from study to study.

    The plan says 84 to 120 of equal ones, a standard deviation of 14% of the logarithm. That a real study is off by a
    factor of 1.8 or more is four of these: below 1 in 10,000 for each of six studies.
    """
    expected = (plan(spread=1000.0, replicates=5) if any(means) else usual()).rows[1]
    assert expected.runs.beyond is None
    assert expected.low <= expected.median <= expected.high < 2 * expected.low
    for seed in range(3):
        assert expected.low / 1.8 < runs_of_a_study(means, 1.0, 2.0, seed) < 1.8 * expected.high


def test_a_pilot_plans_what_its_options_will_take() -> None:
    """A pilot of equal options, with noise 1: as the plan from that guess says, 84 to 120 runs with eps 2.

    The noise of the pilot is off by 1 / sqrt(2 * 57) = 9%, its means by 0.22: together far below a factor of 1.8.
    """
    rng = np.random.default_rng(1)
    pilot = {"arm": ["a", "b", "c"] * 20, "quality": rng.normal(size=60)}
    guessed = usual().rows[1].median
    eps = [{"quality": 2.0}]
    expected = ps.plan_from_pilot(pilot, "arm", QUALITY, eps=eps, replicates=10, limit=FOREVER, progress=False)
    assert expected.arms == ("a", "b", "c")
    assert guessed / 1.8 < expected.rows[0].median < 1.8 * guessed
    assert "60 rows of 3 options" in expected.supposed


def test_less_noise_takes_fewer_runs_and_half_the_eps_takes_more() -> None:
    """Of equal options by about the square: 4 times as many; half of that is many standard deviations away."""
    expected = usual()
    assert [row.eps for row in expected.rows] == [{"quality": 1.0}, {"quality": 2.0}, {"quality": 4.0}]
    half, once, twice = (row.median for row in expected.rows)
    assert half > 2 * once > 2 * twice
    assert plan(noise=0.5, eps=[{"quality": 2.0}]).rows[0].median == pytest.approx(twice, rel=0.5)


def test_the_same_seed_gives_the_same_plan() -> None:
    how: dict[str, Any] = {"replicates": 3, "eps": [{"quality": 4.0}], "spread": 4.0}
    first, again, other = (plan(seed=seed, **how) for seed in (3, 3, 4))
    assert first == again
    assert first.rows != other.rows


def test_time_is_that_of_the_runs_shared_by_workers() -> None:
    expected = plan(seconds=2.0, workers=4, replicates=3)
    for row in expected.rows:
        assert row.seconds == row.median * 2.0 / 4
        assert row.time is not None
        assert row.time.high == row.high * 2.0 / 4
    assert "with 4 workers; " in expected.sentence
    assert usual().rows[0].seconds is None


def test_a_pilot_knows_how_long_each_option_takes() -> None:
    rng = np.random.default_rng(2)
    pilot = {"arm": ["fast", "slow"] * 5, "quality": rng.normal(size=10), "took": [1.0, 9.0] * 5}
    how: dict[str, Any] = {"replicates": 3, "eps": [{"quality": 2.0}], "limit": FOREVER, "progress": False}
    expected = ps.plan_from_pilot(pilot, "arm", QUALITY, duration="took", **how).rows[0]
    assert expected.seconds is not None
    assert expected.median < expected.seconds < 9 * expected.median


def test_what_did_not_end_is_more_than_it_was_followed_for() -> None:
    expected = plan(max_samples=60, seconds=60.0)
    first = expected.rows[0]
    assert (first.low, first.median, first.runs.beyond) == (np.inf, np.inf, 60.0)
    assert first.as_dict()["runs"] == {"low": None, "median": None, "high": None, "beyond": 60.0}
    assert "with 1 more than 60 (more than 60 min)" in expected.sentence
    assert '"More than": some simulated studies had not ended after 60 runs.' in str(expected)
    json.dumps(expected.as_dict(), allow_nan=False)


def test_a_limit_that_is_over_at_once_leaves_something_to_say_of_every_eps() -> None:
    expected = plan(noise=100.0, limit=1e-9)
    assert [(row.studies, row.runs.beyond) for row in expected.rows] == [(1, planning.SLICE)] * 3


def test_long_studies_are_not_forgotten_where_the_limit_cuts_them() -> None:
    """Of four that were followed for 1,000 runs at least, only the one that ended by then is known to be shorter."""
    ends = [(300, True), (3_500, True), (1_000, False), (2_000, False)]
    futures: Any = [SimpleNamespace(runs=runs, ended=ended, over=ended, seconds=0.0) for runs, ended in ends]
    row = planning._row(tuple(QUALITY), futures, 1_000, 1, False)
    assert (row.low, row.median, row.runs.beyond) == (300.0, np.inf, 1_000.0)


def test_percentages_exact_metrics_bounds_and_sigma() -> None:
    metrics = [
        ps.Metric("time", "min", eps="20%"),
        ps.Metric("size", "min", exact=True),
        ps.Metric("rate", bounds=(0.0, 1.0), eps=0.5),
    ]
    noise, spread = {"time": "10%", "rate": 0.1}, {"time": "50%", "size": 3.0, "rate": 0.1}
    expected = plan(2, metrics, noise=noise, spread=spread, replicates=2)
    assert [row.eps["time"] for row in expected.rows] == ["10%", "20%", "40%"]
    assert "vary by 50% of time and 3 of size and 0.1 of rate" in expected.supposed
    assert "off by 10% of time and 0.1 of rate" in expected.supposed
    assert expected.sentence.startswith("With eps 20% of time and 0.5 of rate it takes about ")
    known = plan(sigma=1.0, noise=None, replicates=3, eps=[{"quality": 2.0}]).rows[0].median
    assert known < usual().rows[1].low  # whoever knows the noise needs fewer runs


def test_several_eps_are_planned_for() -> None:
    metrics = [ps.Metric("quality", eps=2.0), ps.Metric("cost", "min", eps=3.0)]
    expected = plan(2, metrics, eps=[{"quality": 3.0}, {"quality": 4.0}], replicates=2)
    assert [row.eps for row in expected.rows] == [{"quality": 3.0, "cost": 3.0}, {"quality": 4.0, "cost": 3.0}]
    assert expected.sentence.startswith("With eps 3 of every metric it takes about ")
    assert "; with 4 about " in expected.sentence
    header = str(expected).splitlines()[1]
    assert header.split("   ")[:3] == ["eps of quality", "eps of cost", "runs"]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_picture_asks_the_question_and_shows_all_names_as_they_are(tmp_path: Path, ending: str) -> None:
    expected = plan(2, [ps.Metric("$x^ <b>", eps=3.0)], seconds=1.0, max_samples=40, replicates=3)
    figure = expected.plot(tmp_path / f"plan.{ending}")
    assert (tmp_path / f"plan.{ending}").stat().st_size > 5_000
    assert figure.get_suptitle() == "How many runs will it take?"
    (axes,) = figure.axes
    assert axes.get_yscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == [f"{eps} of $x^ <b>" for eps in ("1.5", "3", "6")]
    assert axes.texts[0].get_text() == "more than 40 runs\nmore than 40 s"
    assert "&lt;b&gt;" in expected._repr_html_()


# The command


@pytest.fixture
def pilot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"{name},{mean + off},7,{took}" for name, mean, took in (("a", 10, 1), ("b", 90, 3)) for off in (0, 1, 2.5)]
    (tmp_path / "pilot.csv").write_text("\n".join(["variant,ms,mb,took", *rows]))
    (tmp_path / "once.csv").write_text("variant,ms\na,1\nb,2\n")
    (tmp_path / "alone.csv").write_text("variant,ms\na,1\na,2\n")
    return tmp_path


def run(arguments: str) -> Any:
    return CliRunner().invoke(main, ["plan", *shlex.split(arguments)], catch_exceptions=False)


def test_the_command_prints_a_table_a_sentence_and_that_it_is_an_estimate(pilot: Path) -> None:
    guesses = "--options 3 -m quality --unit quality=kB --eps 2 --noise 1 --spread 0 --seconds 2m"
    done = run(f"{guesses} --replicates 3 --limit 1d --out plan.png")
    assert done.exit_code == 0
    question, header, *rows, sentence, estimate, picture = done.output.splitlines()
    assert question == "How many runs will it take? 3 options, 1 metric, delta 0.05"
    assert " ".join(header.split()) == "eps of quality runs likely (10% to 90%) how long likely"
    assert [row.split("   ")[0] for row in rows] == ["1 kB", "2 kB", "4 kB"]
    assert sentence.startswith("With eps 2 kB of quality it takes about ")
    assert " h on one worker; with 1 kB about " in sentence
    assert estimate.startswith("An estimate, not a guarantee: 3 simulated studies for each eps. Supposed: ")
    assert picture == "picture: plan.png"
    assert (pilot / "plan.png").exists()


def test_the_command_plans_from_a_pilot_and_prints_json(pilot: Path) -> None:
    done = run(
        "pilot.csv --arm variant -m ms:min -m mb:min --eps ms=5%,10% --exact mb --duration took --replicates 3 --json"
    )
    said = json.loads(done.output)
    assert set(said) == {"text", "options", "delta", "workers", "rows", "notes"}
    assert [row["eps"] for row in said["rows"]] == [{"ms": "5%", "mb": None}, {"ms": "10%", "mb": None}]
    assert all(row["runs"]["low"] <= row["runs"]["median"] <= row["runs"]["high"] for row in said["rows"])
    assert all(row["runs"]["median"] < row["seconds"]["median"] < 3 * row["runs"]["median"] for row in said["rows"])


REFUSED = {
    "": "a plan must have at least one metric: -m NAME[:min|:max]",
    "-m q --eps 1": "a plan must know the options: --options NUMBER, or a pilot (a CSV file) with --arm COLUMN",
    "--options 1 -m q --eps 1": "number of options of a plan must be a whole number, at least 2 and at most 1000, got 1",
    "--options 3 -m q": "eps of a plan must be above 0 for at least one metric, got none",
    "--options 3 -m t:min --eps t=5%": "noise of metric 't' of a plan must be given: how much one run is off, as a standard "
    "deviation, e.g. --noise t=10%",
    "--options 3 -m q --eps 1 --noise 1": "spread of metric 'q' of a plan must be given: how far options lie apart",
    "--options 3 -m t:min --eps 5% --noise 1": "noise of metric 't' of a plan must be a percentage such as '10%', for it is "
    "compared by ratios, got 1.0",
    "--options 3 -m q --eps 1 --noise 10%": "noise of metric 'q' of a plan must be a number in its own unit, for it is "
    "compared by differences, got '10%'",
    "--options 3 -m q --eps 1 --noise 1 --spread r=1": "unknown metric in spread of a plan: 'r'. Known: q",
    "--options 3 -m q --eps 1 --noise 0 --spread 1": "noise of metric 'q' of a plan must be above 0, got 0.0. If it never "
    "varies, say that it is exact",
    "--options 3 -m q --eps 1 --noise 1 --spread -1": "spread of metric 'q' of a plan must be a finite number at least 0",
    "--options 3 -m q --eps 1 --noise 1 --bounds q=0,1": "noise of metric 'q' of a plan must be at most half the distance of "
    "its bounds, 0.5, got 1.0",
    "--options 3 -m q --eps 1 --noise q=1 --sigma 1": "noise of metric 'q' of a plan must be left out where its sigma is given",
    "--options 3 -m q --eps q=1 --eps q=2": "--eps must name each metric once, with all values: --eps q=1,2",
    "--options 3 -m q -m r --eps q=1,2 --eps r=1,2,3": "--eps must have equally many values for each metric that has several, "
    "got q=1,2 and r=1,2,3",
    "--options 3 -m q --eps 1 --arm variant": "--arm goes with a pilot",
    "--options 3 -m q --eps 1 --noise 1 --spread 1 --seconds soon": "--seconds must be a time such as 90",
    "--options 3 -m q --eps 1 --noise 1 --spread 1 --limit 0": "limit of a plan must be a finite number above 0, got 0.0",
    "--options 3 -m q --eps 1 --noise 1 --spread 1 --out plan.pdf": "--out must end in .png or .svg, got 'plan.pdf'",
    "pilot.csv -m ms --eps 1": "the pilot pilot.csv must come with --arm COLUMN, the column that names the option",
    "pilot.csv --arm variant -m ms --eps 1 --noise 1": "--noise must be left out with a pilot",
    "pilot.csv --arm variant -m ms --eps 1 --duration time": "unknown column 'time' of pilot.csv. Known: variant, ms, mb, took",
    "pilot.csv --arm variant -m ms --eps 1 --duration took --seconds 1": "duration and seconds of a plan must not both be given",
    "pilot.csv --arm variant -m ms --eps 1 --duration variant": "column 'variant' of pilot.csv must hold numbers",
    "pilot.csv --arm variant -m mb --eps 1": "metric 'mb' of a pilot must vary, got the same number in all rows of 'a'",
    "once.csv --arm variant -m ms --eps 1": "rows of a pilot must be two or more of some option, got one of each with 'ms'",
    "alone.csv --arm variant -m ms --eps 1": "column 'variant' of alone.csv must name at least two options",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_what_is_wrong_is_said(arguments: str, pilot: Path) -> None:
    done = run(arguments)
    assert done.exit_code == 2
    assert REFUSED[arguments] in " ".join(done.output.split())


def test_python_refuses_what_the_command_cannot_be_told() -> None:
    for arms in ("three", 2.5, None, ["a"]):
        with pytest.raises(InvalidInput, match="of a plan must be"):
            plan(arms)
    for eps in ({"quality": 1.0}, [], [1.0], "1"):
        with pytest.raises(InvalidInput, match="eps of a plan must be a list of"):
            plan(eps=eps)
    with pytest.raises(UnknownName, match="unknown metric in eps of a plan: 'cost'"):
        plan(eps=[{"cost": 1.0}])
    for name, value in (("workers", 0), ("replicates", 0), ("max_samples", 0), ("seed", -1), ("delta", 1.0)):
        with pytest.raises(InvalidInput, match=f"{name} of a plan must be"):
            plan(**{name: value})
