"""The standing of a study: one value, the same JSON from every command, as its schema says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from conftest import MORE
from hypothesis import given, settings
from hypothesis import strategies as st

import paretoscout as ps
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput, NotSupported, UnknownName
from paretoscout.study import schema

TRUTH = {"a": (1.0, 10.0), "b": (0.5, 12.0), "c": (2.0, 30.0), "d": (2.5, 90.0)}
MEMORY: dict[str, Any] = {"storage": "memory", "delta": 0.1}
PRACTICAL: dict[str, Any] = {**MEMORY, "goal": "practical"}
METRICS = [ps.Metric("quality", eps=0.1), ps.Metric("time", "min", eps="2%", unit="ms")]


def play(study: ps.Study, rounds: int = 10_000, seed: int = 0) -> ps.Study:
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        if study.done:
            break
        trial = study.ask()
        quality, time = TRUTH[trial.arm]
        study.tell(trial, {"quality": quality + 0.1 * rng.normal(), "time": time * math.exp(0.05 * rng.normal())})
    return study


def new(**how: Any) -> ps.Study:
    return ps.Study(list(TRUTH), METRICS, **{"storage": "memory", "title": "which one?", **how})


def run(*arguments: str) -> str:
    done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code in (0, 3), done.output
    return done.stdout


CASES: dict[str, Any] = {
    "empty": lambda: new(),
    "some": lambda: play(new(), 9),
    "done": lambda: play(new()),
    "guards": lambda: play(new(guards=["time <= 60"])),
    "practical": lambda: play(new(goal="practical")),
    "other algorithm": lambda: play(new(algorithm="multi-pfi", sigma=[0.1, 0.05])),
    "heuristic": lambda: play(new(algorithm="pfiwr", sigma=[0.1, 0.05], theta_max=100.0, goal="front"), 50),
    "sigma of each": lambda: ps.Study.of(ps.problems.load("compressors").asked([1, 1]), storage="memory"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_json_is_as_its_schema_says(case: str) -> None:
    standing = CASES[case]().standing()
    said = json.loads(standing.as_json())
    jsonschema.validate(said, schema())
    assert said["title"] in ("which one?", None)
    assert said["front"] == [each["option"] for each in said["options"] if each["verdict"] == "front"]
    assert said["guarantee"]["text"] == str(standing.guarantee)
    assert str(standing.guarantee).count(";") >= len(standing.guarantee.assumptions) - 1


def test_every_command_prints_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    play(new(storage="paretoscout.db", guards=["time <= 60"]), 30)
    printed = [run("status", "--json"), run("front", "--json"), run("export", "--json")]
    assert printed[0] == printed[1] == printed[2]
    assert json.loads(printed[0]) == ps.Study.load().standing().as_dict()


def test_a_bench_and_its_study_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same guarantee, limits and numbers, in milliseconds, from bench and from status."""
    monkeypatch.chdir(tmp_path)
    shown = run(
        "bench",
        "sleep 0.001",
        "sleep 0.02",
        "sleep 0.3",
        "-m",
        "time<=150",
        "-m",
        "rss",
        "--budget",
        "45",
        "--export",
        "x.json",
    )
    bench = json.loads(Path("x.json").read_text())
    jsonschema.validate(bench, schema())
    del bench["bench"]
    assert bench == json.loads(run("status", "--json", "--name", bench["name"]))
    assert "with probability 95%, up to 2% of every metric" in bench["guarantee"]["text"]
    assert "among options that keep time <= 150 ms" in bench["guarantee"]["assumptions"]
    assert 1 < bench["options"][0]["estimates"]["time"]["value"] < 100
    assert [(each["kind"], each["reason"]) for each in bench["withdrawn"]] == [("guard", "breaks time <= 150 ms")]
    status = run("status", "--name", bench["name"])
    rows = [line for line in shown.splitlines() if line.startswith("Guarantee") or any(mark in line for mark in "★◌×")]
    assert len(rows) == 3
    assert all(line in status for line in rows)


def test_the_standing_of_an_earlier_event() -> None:
    study = new()
    seen = []
    rng = np.random.default_rng(3)
    while not study.done:
        trial = study.ask()
        quality, time = TRUTH[trial.arm]
        study.tell(trial, {"quality": quality + 0.1 * rng.normal(), "time": time * math.exp(0.05 * rng.normal())})
        seen.append(study.standing())
    last = seen[-1]
    for then in seen[:: max(1, len(seen) // 5)]:
        assert study.standing(at=then.event).as_dict() == {**then.as_dict(), **study_concerns(study, then.event)}
    for k, option in enumerate(last.options):
        came = last.since[k]
        assert came is not None
        assert study.standing(at=came).table.verdicts[k] == last.table.verdicts[k]
        assert study.standing(at=came - 1).table.verdicts[k] == "undecided", option
    with pytest.raises(InvalidInput, match=f"event of study 'study' must be at most {last.event}, got 100000"):
        study.standing(at=100_000)


def study_concerns(study: ps.Study, event: int) -> dict[str, Any]:
    """An earlier standing names no concerns."""
    said = study.standing(at=event).as_dict()
    return {key: said[key] for key in ("concerns", "warnings")}


def test_since_survives_loading_and_snapshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from paretoscout.study import log

    monkeypatch.setattr(log, "SNAPSHOT_EVENTS", 7)
    study = play(new(storage=tmp_path / "x.db"))
    assert ps.Study.load(storage=tmp_path / "x.db").standing().since == study.standing().since


@pytest.mark.parametrize("how", [{}, {"sigma": [0.1, 0.05]}, {"algorithm": "multi-pfi", "sigma": [0.1, 0.05]}])
def test_a_pair_shows_why(how: dict[str, Any]) -> None:
    standing = play(new(**how)).standing()
    for k, option in enumerate(standing.options):
        if standing.table.verdicts[k] != "dominated":
            continue
        ((rival, share), *_) = standing.rivals_of(option)
        pair = standing.pair(option, rival)
        assert share == 1.0
        assert pair.own == (standing.table.guarantee is not None and "algorithm" not in how)
        for difference, metric, (mine, theirs) in zip(
            pair.differences, METRICS, zip(TRUTH[option], TRUTH[rival], strict=True), strict=True
        ):
            truth = theirs / mine - 1 if metric.relative else theirs - mine
            truth = mine / theirs - 1 if metric.relative and metric.direction == "min" else truth
            assert difference.low is not None
            assert difference.high is not None
            assert difference.low <= truth <= difference.high, "false alarm: below 0.05, the delta"
            if pair.own:
                assert difference.low > 0, "it is proven"
    with pytest.raises(UnknownName, match="option"):
        standing.pair("a", "z")


def test_a_pair_is_of_its_moment() -> None:
    study = play(new(), 12)
    standing = study.standing()
    before = standing.pair("a", "b")
    play(study)
    assert standing.pair("a", "b") == before
    assert study.standing().pair("a", "b") != before


# Metrics that are compared in percent


@given(st.floats(0.1, 50.0), st.floats(1e-3, 1e3), st.integers(0, 5))
@settings(max_examples=25 * MORE)
def test_percent_does_not_depend_on_the_unit(percent: float, unit: float, seed: int) -> None:
    """Seconds or milliseconds: the same questions, verdicts and shares; numbers in the unit."""
    rng = np.random.default_rng(seed)
    draws = np.exp(rng.normal(0, 0.3, (300,)))
    studies = []
    for factor in (1.0, unit):
        study = ps.Study(list("abc"), [ps.Metric("t", "min", eps=f"{percent}%")], storage="memory", seed=seed)
        for draw in draws:
            if study.done:
                break
            trial = study.ask()
            study.tell(trial, {"t": factor * draw * {"a": 1.0, "b": 1.5, "c": 4.0}[trial.arm]})
        studies.append(study)
    ours, theirs = (study.standing() for study in studies)
    assert ours.table.verdicts == theirs.table.verdicts
    assert ours.table.counts.tolist() == theirs.table.counts.tolist()
    np.testing.assert_allclose(unit * ours.table.estimates, theirs.table.estimates, rtol=1e-9)
    np.testing.assert_allclose(unit * ours.table.high, theirs.table.high, rtol=1e-6)


def test_a_log_scale_is_the_linear_one_of_logarithms() -> None:
    """A study in percent takes the same decisions as one of logarithms with eps = log(1 + p)."""
    percent = ps.Study(list(TRUTH), [ps.Metric("t", eps="3%")], storage="memory", guards=["t <= 80"])
    logs = ps.Study(
        list(TRUTH), [ps.Metric("t", eps=math.log1p(0.03))], storage="memory", guards=[f"t <= {math.log(80)!r}"]
    )
    rng = np.random.default_rng(0)
    while not percent.done:
        mine, theirs = percent.ask(), logs.ask()
        assert mine == theirs
        value = TRUTH[mine.arm][1] * math.exp(0.1 * rng.normal())
        percent.tell(mine, {"t": value})
        logs.tell(theirs, {"t": math.log(value)})
    assert logs.done
    assert percent.verdicts().verdicts == logs.verdicts().verdicts
    np.testing.assert_allclose(np.log(percent.verdicts().low), logs.verdicts().low, rtol=1e-9)
    assert [each.reason for each in percent.standing().withdrawn] == ["breaks t <= 80"]
    assert "d" not in percent.verdicts().arms


def test_simulations_compare_in_percent_too() -> None:
    """Log-normal times: geometric means are found, and the front is right; false alarm below 1e-9 at delta 1e-9."""
    metrics = [ps.Metric("quality", eps=0.1), ps.Metric("time", "min", eps="2%", unit="ms")]
    problem = ps.problems.gaussian(list(TRUTH.values()), [0.1, 0.05], names=list(TRUTH), metrics=metrics)
    result = ps.simulate(problem, delta=1e-9, replicates=4)
    assert result.success.all()
    *_, table = ps.watch(problem, delta=1e-9)
    assert (table.low <= problem.means).all()
    assert (problem.means <= table.high).all()
    assert "2% of time" in str(table.guarantee)
    rows = {"arm": [], "quality": [], "time": []}  # type: ignore[var-annotated]
    rng = np.random.default_rng(1)
    for name, (quality, time) in TRUTH.items():
        rows["arm"] += [name] * 40
        rows["quality"] += (quality + 0.1 * rng.normal(size=40)).tolist()
        rows["time"] += (time * np.exp(0.05 * rng.normal(size=40))).tolist()
    recorded = ps.problems.table(rows, arm="arm", metrics=metrics)
    np.testing.assert_allclose(recorded.means[:, 1], [time for _, time in TRUTH.values()], rtol=0.05)
    assert ps.simulate(recorded, replicates=2, max_samples=5_000).success.all()
    judged = ps.analyze(rows, arm="arm", metrics=metrics)
    np.testing.assert_allclose(judged.estimates, recorded.means, rtol=0.02)  # pilots are left out


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"scale": "log", "eps": 0.02},
            "eps of metric 'x' must be a share such as '2%' where its scale is 'log', got 0.02",
        ),
        ({"scale": "ln"}, "scale of metric 'x' must be 'linear' or 'log', got 'ln'"),
        ({"eps": "two"}, "eps of metric 'x' must be a number or a percentage such as '2%', got 'two'"),
        ({"eps": "-2%"}, "eps of metric 'x' must be a number or a percentage such as '2%', got '-2%'"),
        (
            {"eps": "2%", "bounds": (0, 5)},
            "the lower one of the bounds of metric 'x' must be a finite number above 0, got 0",
        ),
    ],
)
def test_bad_scales_are_refused(how: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ps.Metric("x", **how)
    assert str(refused.value) == message


def test_what_is_not_above_zero_cannot_be_compared_in_percent() -> None:
    study = new()
    trial = study.ask()
    for value in (0.0, -1.0):
        with pytest.raises(
            InvalidInput, match=r"'time' in outcome of trial 0 must be above 0 to be compared in percent"
        ):
            study.tell(trial, {"quality": 1.0, "time": value})
    with pytest.raises(InvalidInput, match="row 1 of this table must be above 0"):
        study.tell_frame({"arm": ["a", "a"], "quality": [1.0, 1.0], "time": [1.0, 0.0]})
    with pytest.raises(InvalidInput, match="limit of metric 'time' must be above 0 on a log scale"):
        new(guards=["time <= 0"])
    with pytest.raises(InvalidInput, match="must be a number, for it is compared by differences"):
        ps.simulate(ps.problems.load("s5"), eps=["2%", "2%"])
    with pytest.raises(InvalidInput, match="must be a share such as '2%'"):
        ps.simulate(ps.problems.gaussian([[1.0]], 0.1, metrics=[ps.Metric("x", eps="2%")]), eps=0.1)


def test_what_is_below_what_can_be_measured_is_told_as_such() -> None:
    rss = ps.Metric("rss", "min", eps="2%", unit="MB")
    study = ps.Study(["a", "b"], [rss], goal="practical", storage="memory")
    study.tell(study.ask(arm="a"), {"rss": ps.Below(6.9)})
    study.tell(study.ask(arm="b"), {"rss": 20.0})
    first, second = study.standing().as_dict()["options"]
    assert first["estimates"]["rss"] == {"value": None, "low": None, "high": 6.9, "radius": None, "censored": True}
    assert not second["estimates"]["rss"]["censored"]


def test_a_bound_breaks_no_limit() -> None:
    """What is at most 6.9 may be at most 5, too."""
    study = ps.Study(
        ["a", "b"],
        [ps.Metric("rss", "min", eps="2%")],
        storage="memory",
        goal="practical",
        guards=["rss <= 5"],
        sigma=0.1,
    )
    for _ in range(60):
        study.tell(study.ask(arm="a"), {"rss": ps.Below(6.9)})
        if not study.withdrawn:
            study.tell(study.ask(arm="b"), {"rss": 6.8})
    assert [each.option for each in study.standing().withdrawn] == ["b"]


def test_twice_as_long_is_worse_by_a_hundred_percent() -> None:
    study = ps.Study(["a", "b"], [ps.Metric("t", "min", eps="2%"), ps.Metric("q")], sigma=0.01, storage="memory")
    while not study.done:
        trial = study.ask()
        study.tell(trial, {"t": 100.0, "q": 1.0} if trial.arm == "a" else {"t": 200.0, "q": 2.0})
    assert "t worse by 100%" in study.explain("a").text
    assert "t better by 100%" in study.explain("b").text


@pytest.mark.parametrize(("goal", "direction"), [("front", "min"), ("front", "max"), ("practical", "max")])
def test_bounds_are_refused_where_they_would_be_taken_for_values(goal: str, direction: str) -> None:
    study = ps.Study(["a", "b"], {"x": direction}, sigma=0.1, goal=goal, storage="memory")
    with pytest.raises(InvalidInput, match="must be a number, got Below"):
        study.tell(study.ask(), {"x": ps.Below(6.9)})


def test_a_bound_proves_nothing_of_what_is_below_it() -> None:
    """One option is at most 6.9, another one 5: nobody knows which is the smaller one."""
    study = ps.Study(["a", "b"], [ps.Metric("x", "min", eps=0.1)], sigma=0.1, goal="practical", storage="memory")
    for _ in range(30):
        study.tell(study.ask(arm="a"), {"x": ps.Below(6.9)})
        study.tell(study.ask(arm="b"), {"x": 5.0})
    assert study.verdicts().verdicts == ("undecided", "undecided")
    assert not study.done


@pytest.mark.parametrize("guard", ["g >= 5", "g <= 5"])
def test_a_bound_does_not_settle_a_guard_from_below(guard: str) -> None:
    study = ps.Study(["a", "b"], {"x": "min"}, sigma={"x": 0.1, "g": 0.1}, guards=[guard], storage="memory")
    for _ in range(30):
        for arm in study.standing().options:
            study.tell(study.ask(arm=arm), {"x": 1.0 if arm == "a" else 2.0, "g": ps.Below(6.9)})
    assert study.standing().unguarded == ("a", "b")
    assert not study.standing().withdrawn


def algorithm_is_done(study: ps.Study) -> bool:
    with study.log.reading() as replica:
        return replica.session.done


def test_a_study_that_is_done_asks_for_nothing_more() -> None:
    """Also where only the algorithm has no verdict yet: whoever follows the log finds that it is done."""
    for seed in range(20):
        study = ps.Study(["a", "b"], [ps.Metric("x", eps=0.3), ps.Metric("y", eps=0.3)], sigma=0.2, **PRACTICAL)
        rng = np.random.default_rng(seed)
        while not study.done:
            trial = study.ask()
            x, y = (1.0 if trial.arm == "a" else 1.25) + 0.2 * rng.standard_normal(2)
            study.tell(trial, {"x": x, "y": y})
        if not algorithm_is_done(study):
            break
    assert not algorithm_is_done(study)
    with pytest.raises(NotSupported, match="the study is done"):
        study.ask()
    assert str(study.remaining()) == "nothing more to measure"


def test_what_people_wait_for_is_forecast() -> None:
    """The algorithm has its verdicts; whether one of two options that tie in x is pointless takes more runs."""
    metrics = [ps.Metric("x", eps=0.3), ps.Metric("y", "min", eps=0.3)]
    study = ps.Study(["a", "b"], metrics, sigma=0.3, **PRACTICAL)
    while not algorithm_is_done(study):
        trial = study.ask()
        study.tell(trial, {"x": 1.0, "y": 1.0 if trial.arm == "a" else 1.4})
    assert not study.done
    assert study.remaining().samples > 0


def test_without_noise_numbers_that_never_vary_are_certain() -> None:
    metrics = [ps.Metric("x", eps=0.1), ps.Metric("y", "min", eps=0.1)]
    study = ps.Study(["a", "b"], metrics, sigma=0.0, **PRACTICAL)
    for _ in range(10):
        if not study.done:
            trial = study.ask()
            study.tell(trial, {"x": 1.0, "y": 1.0 if trial.arm == "a" else 0.5})
    assert study.done
    assert study.verdicts().verdicts == ("dominated", "front")


def test_ratios_beyond_all_numbers_are_not_known() -> None:
    study = ps.Study(["a", "b"], [ps.Metric("time", "min", eps="2%")], sigma=400.0, **MEMORY)
    for arm in "abab":
        study.tell(study.ask(arm=arm), {"time": 100.0})
    assert study.standing().pair("a", "b").differences[0].high is None


def test_concerns_are_in_the_unit_of_the_metric_and_of_options_that_are_there() -> None:
    study = ps.Study(["a", "b"], [ps.Metric("time", "min", eps="2%", unit="ms")], **MEMORY)
    rng = np.random.default_rng(0)
    for _ in range(20):
        study.tell(study.ask(arm="a"), {"time": 100.0})
        study.tell(study.ask(arm="b"), {"time": 120.0 * math.exp(0.01 * rng.normal())})
    (concern,) = study.verdicts().concerns
    assert "always 100," in concern.text
    assert concern.figures["value"] == pytest.approx(100.0)
    study.withdraw("a")
    assert not study.verdicts().concerns


def test_few_values_on_a_log_scale_are_not_taken_for_shares() -> None:
    runs = {"option": ["a", "b"] * 20, "time": [1.0] * 40}
    with pytest.raises(InvalidInput, match="bounds of metric 'time' must be given"):
        ps.analyze(runs, "option", [ps.Metric("time", "min", eps="2%")])


def test_settings_are_the_same_however_they_are_written(tmp_path: Path) -> None:
    how: dict[str, Any] = {"metrics": {"x": "max", "y": "min"}, "sigma": 1.0, "storage": tmp_path / "s.db"}
    ps.Study(["a", "b"], at_give_up={"x": 0, "y": 1}, **how)
    ps.Study(["a", "b"], at_give_up={"y": 1, "x": 0}, **how)
    asked = ps.problems.load("s5").asked(eps=np.array([1, 1]))  # type: ignore[arg-type]
    assert ps.Study.of(asked, storage="memory").spec.metrics[0].eps == 1.0


@pytest.mark.parametrize("goal", ["front", "practical"])
def test_what_was_withdrawn_after_looking_must_still_be_escaped(goal: str) -> None:
    """Not by practical verdicts: they rest on intervals that all hold, whoever is there."""
    means = {"a": (2.0, 2.0), "b": (1.0, 1.0), "c": (0.5, 1.5)}
    study = ps.Study(list(means), [ps.Metric("x", eps=0.1), ps.Metric("y", eps=0.1)], sigma=0.1, goal=goal, **MEMORY)
    for arm in [*means] * 10:
        study.tell(study.ask(arm=arm), dict(zip("xy", means[arm], strict=True)))
    study.withdraw("a", looked=True)
    word = "front" if goal == "practical" else "undecided"
    assert study.verdicts().verdicts == (word, word)
    assert study.done == (goal == "practical")


@pytest.mark.long
def test_practical_verdicts_in_percent_with_guards_are_right() -> None:
    """100 studies at delta 0.1: identical options, one that is pointless, one exactly at its limit, one beyond it.

    Noise differs between options. More than 22 of 100 wrong by chance, if each is with probability 0.1: below 0.0002.
    """
    truth = {"a": (10.0, 1.0), "twin": (10.0, 1.0), "b": (10.3, 1.6), "c": (12.0, 0.5), "d": (20.0, 0.1)}
    metrics = [ps.Metric("t", "min", eps="5%"), ps.Metric("s", "min", eps="5%")]
    wrong = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)

        def measure(arm: str, rng: np.random.Generator = rng) -> dict[str, float]:
            t, s = truth[arm]
            return {
                "t": t * math.exp(0.08 * rng.normal()),
                "s": s * math.exp((0.3 if arm in "ac" else 0.03) * rng.normal()),
            }

        how: dict[str, Any] = {"goal": "practical", "guards": ["t <= 12"], "delta": 0.1, "seed": seed}
        standing = ps.find_front(list(truth), measure, metrics, trials=1500, **how)
        wrong += is_wrong(standing, {arm: np.log(values) for arm, values in truth.items()}, math.log1p(0.05))
    assert wrong <= 22


def is_wrong(standing: ps.Standing, truth: dict[str, Any], eps: float) -> bool:
    """Whether anything that is said is wrong; smaller is better."""
    for option, verdict, rival in zip(standing.options, standing.table.verdicts, standing.table.rivals, strict=True):
        leads = {other: truth[option] - truth[other] for other in standing.options if other != option}
        if verdict == "front" and any((lead > eps).all() for lead in leads.values()):
            return True
        if verdict == "dominated" and (
            rival is None or (leads[rival] < -eps - 1e-12).any() or (leads[rival] <= 0).all()
        ):
            return True
    return any(each.kind == "guard" and each.option != "d" for each in standing.withdrawn)
