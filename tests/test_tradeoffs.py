"""Trade-offs: what they say against a twin that tries all worths, and the same at every door."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import assume, given
from hypothesis import strategies as st
from matplotlib.path import Path as MplPath
from scipy.optimize import linprog

import paretoscout as ps
from paretoscout.algorithms.registry import resolve
from paretoscout.bench import Plan, source_of
from paretoscout.bench.options import Option
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput, NotSupported
from paretoscout.guarantee import Guarantee
from paretoscout.kernels.arrays import FloatArray
from paretoscout.page import study_page, view_of
from paretoscout.plots.data import front_data
from paretoscout.service import bodies
from paretoscout.session import Session
from paretoscout.start import setup_of
from paretoscout.statement import Statement
from paretoscout.study.described import read
from paretoscout.study.standing import schema
from paretoscout.verdicts import VerdictTable

TIME, SIZE = ps.Metric("time", "min", eps=1, unit="ms"), ps.Metric("size", "min", eps=2, unit="MB")
#: One millisecond is worth at most three megabytes: the second beats all others, the last of them by 9 ms and -42 MB.
MEANS = [[10.0, 50.0], [20.0, 10.0], [30.0, 40.0], [9.0, 60.0]]


def stated(metrics: Any = (TIME, SIZE), tradeoffs: Any = "1 ms <= 3 MB", **more: Any) -> Statement:
    return Statement(("a", "b"), tuple(metrics), np.full(len(metrics), np.nan), tradeoffs=tradeoffs, **more)


# What a trade-off means


def least_worth(lead: FloatArray, bounds: list[tuple[int, float, int, float]]) -> float:
    """The least that a lead (larger is better) is worth, whatever the metrics are worth: worths add up to 1.

    bounds: x of one metric are worth at most y of another.
    """
    rows = np.zeros((len(bounds), len(lead)))
    for row, (one, x, other, y) in zip(rows, bounds, strict=True):
        row[one], row[other] = x, -y
    found = linprog(lead, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=np.ones((1, len(lead))), b_eq=[1.0])
    return np.nan if found.fun is None else float(found.fun)


@st.composite
def cones(draw: st.DrawFn) -> tuple[tuple[ps.Metric, ...], list[tuple[int, float, int, float]]]:
    metrics = tuple(
        ps.Metric(f"m{k}", draw(st.sampled_from(["min", "max"])), eps=draw(st.sampled_from([None, 1.0, 2.5])))
        for k in range(draw(st.integers(2, 3)))
    )
    amount = st.sampled_from([0.5, 1.0, 2.0, 4.0])
    pairs = st.permutations(range(len(metrics))).map(lambda order: order[:2])
    bounds = draw(st.lists(st.tuples(pairs, amount, amount), min_size=1, max_size=3))
    return metrics, [(one, x, other, y) for (one, other), x, y in bounds]


@given(cones(), st.integers(0, 2**32))
def test_an_option_beats_another_whatever_the_metrics_are_worth(
    cone: tuple[tuple[ps.Metric, ...], list[tuple[int, float, int, float]]], seed: int
) -> None:
    """Ahead by more than eps in every sum is: worth more than eps is, at any worths that keep the trade-offs."""
    metrics, bounds = cone
    texts = [f"{x} {metrics[one].name} <= {y} {metrics[other].name}" for one, x, other, y in bounds]
    try:
        asked = stated(metrics, texts)
    except InvalidInput as refused:
        assume("contradict" not in str(refused))
        raise
    rng = np.random.default_rng(seed)
    y = rng.integers(-24, 25, (3, len(metrics))) / 4
    eps, signs = np.array([metric.tolerance for metric in metrics]), np.array([metric.sign for metric in metrics])
    computed = asked.units.oriented(y.astype(np.float64))
    leads = computed[None] - computed[:, None]
    for k in range(3):
        for j in range(k):
            least = least_worth((y[j] - y[k]) * signs - eps, bounds)
            if abs(least) > 1e-6:
                assert (leads[k, j] - asked.units.eps).min() > 0 or least < 0
                assert (leads[k, j] - asked.units.eps).min() < 0 or least > 0
    assert asked.weights is not None
    ahead = [[(y[j] - y[k]) * signs @ asked.weights.T for j in range(3)] for k in range(3)]  # without rounding
    front = [not any((lead >= 0).all() and (lead > 0).any() for lead in row) for row in ahead]
    directions = [metric.direction for metric in metrics]
    assert ps.geometry.pareto_front(y, directions, asked.weights).tolist() == front
    back = asked.units.undirected(computed)
    np.testing.assert_allclose(back, y, atol=1e-9)


@given(cones(), st.integers(0, 2**32))
def test_bounds_noise_and_intervals_of_sums_hold(cone: Any, seed: int) -> None:
    """Outcomes within bounds stay within those of sums, to the last bit; and intervals go there and back."""
    metrics, bounds = cone
    texts = [f"{x} {metrics[one].name} <= {y} {metrics[other].name}" for one, x, other, y in bounds]
    bounded = tuple(ps.Metric(each.name, each.direction, eps=each.eps, bounds=(-0.3, 0.7)) for each in metrics)
    try:
        asked = stated(bounded, texts)
    except InvalidInput:
        assume(False)
    rng = np.random.default_rng(seed)
    outcomes = rng.choice([-0.3, 0.7, 0.1], (20, len(metrics)))
    computed, ends = asked.units.oriented(outcomes), asked.bounds
    assert ends is not None
    assert (computed >= ends[:, 0]).all()
    assert (computed <= ends[:, 1]).all()
    radii = np.abs(rng.normal(size=computed.shape))
    moved = asked.units.undirected(computed + radii * rng.uniform(-1, 1, computed.shape))
    assert (np.abs(moved - outcomes) <= asked.units.reach(radii) + 1e-9).all()
    low, high = (
        asked.units.leads(*ends)
        for ends in ((computed - radii, computed + radii), (computed + radii, computed - radii))
    )
    signs = np.array([metric.sign for metric in metrics])
    assert (low <= outcomes * signs + 1e-9).all()
    assert (outcomes * signs <= high + 1e-9).all()
    noise = rng.uniform(0, 1, len(metrics))
    shaken = np.abs(asked.units.directed(noise * rng.choice([-1.0, 1.0], (50, len(metrics)))))
    assert (shaken <= asked.units.spread(noise) * (1 + 1e-12)).all()


def test_what_options_are_judged_by_has_names() -> None:
    assert [each.name for each in stated().judged_by] == ["3 time + size", "size"]
    assert [each.unit for each in stated().judged_by] == ["MB", "MB"]
    assert stated().units.ones.tolist() == [5.0, 2.0]
    both = stated(tradeoffs=["1 ms <= 3 MB", "1 ms >= 0.5 MB"])
    assert [each.name for each in both.judged_by] == ["3 time + size", "time + 2 size"]
    # no more of quality than of cost: directions differ, and larger is better in the sum
    mixed = stated((ps.Metric("quality", eps=0.1), ps.Metric("cost", "min", unit="ct")), "1 ct <= 0.1 quality")
    assert [(each.name, each.direction) for each in mixed.judged_by] == [
        ("10 quality - cost", "max"),
        ("quality", "max"),
    ]
    ratios = stated((ps.Metric("time", "min", eps="2%"), ps.Metric("size", "min", eps="1%")), ["1% time <= 3% size"])
    assert ratios.judged_by[0].name == f"time^{np.log1p(0.03) / np.log1p(0.01):.4g} * size"
    assert ratios.judged_by[0].relative


@pytest.mark.parametrize(
    ("metrics", "tradeoffs", "says"),
    [
        ((TIME, SIZE), "1 ms = 3 MB", "must be written like"),
        ((TIME, SIZE), "1 s <= 3 MB", "none is called so"),
        ((TIME, ps.Metric("wait", unit="ms")), "1 ms <= 3 wait", "several have that unit"),
        ((TIME, SIZE), "0 ms <= 3 MB", "above 0"),
        ((TIME, SIZE), "1 ms <= 3 ms", "two metrics"),
        ((TIME, SIZE), "1% time <= 3 MB", "by differences"),
        ((TIME, ps.Metric("size", eps="1%")), "1 ms <= 3% size", "compared alike"),
        ((TIME, ps.Metric("size", eps="1%")), [[1, 1], [0, 1]], "compared alike"),
        ((TIME, ps.Metric("size", eps="1%")), "1 ms <= 3 size", "by ratios"),
        ((TIME, SIZE), ["1 ms <= 3 MB", "1 ms >= 4 MB"], "contradict"),
        ((TIME, SIZE), ["1 ms <= 3 MB", "1 ms >= 3 MB"], "exactly"),
        ((TIME,), "1 ms <= 3 MB", "but one metric"),
        ((TIME, SIZE), "1e9000000 ms <= 3 MB", "numbers above 0, from 1e-100 to 1e"),
        ((TIME, SIZE), "1e400 ms <= 3 MB", "numbers above 0"),
        ((TIME, SIZE), "1e-400 ms <= 3 MB", "numbers above 0"),
        ((TIME, SIZE), [[1, 2, 3]], "a column for each of 2"),
        ((TIME, SIZE), [[1, 2]], "contradict"),
        ((TIME, SIZE), [[0, 0], [1, 0]], "a weight in every row"),
        ((TIME, SIZE), [[1, -2], [-2, 1]], "by being better in metrics"),
        ((TIME, SIZE), [[3, -2], [0, 1]], "more than all of it is better"),
        ((TIME, SIZE), 3, "must be texts"),
    ],
)
def test_what_makes_no_sense_is_refused(metrics: Any, tradeoffs: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        stated(metrics, tradeoffs)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInput, match="logistic"):
        ps.problems.logistic([[1, 0], [0, 1]], np.eye(2)).replace(tradeoffs=np.eye(2))
    robust = ps.algorithms.Scout(model="robust", misfit=0.1)
    with pytest.raises(NotSupported, match="misfit is stated of metrics"):
        ps.simulate(ps.problems.linear(np.eye(2), np.eye(2), 0.1, tradeoffs=[[2, 1], [1, 2]]), robust)
    study = ps.Study(["a", "b"], [TIME, SIZE], tradeoffs="1 ms <= 3 MB", storage="memory")
    with pytest.raises(InvalidInput, match="where there are tradeoffs, got Below"):
        study.tell(study.ask(), {"time": ps.Below(1.0), "size": 3.0})


# The same at every door


def rows(n: int, seed: int = 0, means: Any = MEANS, together: bool = True) -> dict[str, list[Any]]:
    """Recorded rows whose noise in all metrics goes together: the noise of a sum is as large as it can be."""
    rng = np.random.default_rng(seed)
    frame: dict[str, list[Any]] = {"arm": [], "time": [], "size": []}
    for k, (time, size) in enumerate(means):
        noise = rng.permutation(np.repeat([-1.0, 1.0], n // 2))
        frame["arm"] += [f"option {k}"] * n
        frame["time"] += (time + noise).tolist()
        frame["size"] += (size + 2.0 * noise).tolist()
    return frame


def test_the_identity_is_no_trade_off_to_the_last_bit() -> None:
    problem = ps.problems.gaussian(MEANS, sigma=[2.0, 3.0], metrics=[TIME, SIZE])
    sums = problem.replace(tradeoffs=np.eye(2))
    for goal in ("front", "practical"):
        plain, same = (ps.simulate(each, goal=goal, replicates=10, seed=3) for each in (problem, sums))
        np.testing.assert_array_equal(plain.pulls, same.pulls)
        np.testing.assert_array_equal(plain.regret, same.regret)
        (*_, one), (*_, other) = (ps.watch(each, goal=goal) for each in (problem, sums))
        np.testing.assert_array_equal(one.centres, other.centres)
        np.testing.assert_array_equal(one.widths, other.widths)
        assert one.verdicts == other.verdicts
    one, other = (ps.analyze(rows(30), "arm", [TIME, SIZE], tradeoffs=each) for each in (None, np.eye(2)))
    said, same_said = one.as_dict(), other.as_dict()
    assert [each["weights"] for each in same_said.pop("judged_by")] == [{"time": 1, "size": 0}, {"time": 0, "size": 1}]
    said.pop("guarantee"), same_said.pop("guarantee")
    assert said == same_said


def test_a_study_does_what_a_session_does_that_is_told_sums() -> None:
    asked = stated(goal="front", tradeoffs=["1 ms <= 4 MB"]).with_eps({"time": 1.0, "size": 4.0})
    study = ps.Study.of(asked, storage="memory")
    settings = resolve("scout", noise_given=False)[1]
    session = Session(settings, setup_of(asked, settings), study.spec.seed)
    with study.log.reading() as replica:
        session.rng.bit_generator.state = replica.session.rng.bit_generator.state
    rng, means = np.random.default_rng(0), {"a": [8.0, 30.0], "b": [11.0, 4.0]}
    for _ in range(2_000):
        if study.done:
            break
        trial, question = study.ask(), session.ask()
        assert trial.arm == asked.arms[question.arm]
        outcome = np.round((np.array(means[trial.arm]) + rng.normal(size=2) * [1, 4]) * 64) / 64
        study.tell(trial, dict(zip(("time", "size"), outcome.tolist(), strict=True)))
        session.tell(question, asked.units.oriented(outcome))
    assert study.done
    with study.log.reading() as replica:
        for one, other in zip(replica.session.verdicts(), session.verdicts(), strict=True):
            np.testing.assert_array_equal(one, other)
    assert study.front() == ["b"]  # 3 ms slower, which is worth at most 12 MB; it is 26 MB smaller
    assert study.verdicts()["a"].rival == "b"
    pair = study.standing().pair("a", "b")
    assert [each.metric for each in pair.differences] == ["4 time + size", "size"]


def test_a_study_is_kept_and_shown_with_its_trade_offs(tmp_path: Path) -> None:
    def run(*words: str) -> Any:
        done = CliRunner().invoke(main, [*words, "--storage", str(tmp_path / "x.db")])
        assert done.exit_code in (0, 3, 5), (words, done.output)
        return done

    run("create", "--arm", "a", "--arm", "b", "-m", "time:min", "-m", "size:min", "--unit", "time=ms", "--unit",
        "size=MB", "--eps", "time=1", "--eps", "size=2", "--exact", "size", "--tradeoff", "1 ms <= 3 MB")  # fmt: skip
    study = ps.Study.load(storage=tmp_path / "x.db")
    rng = np.random.default_rng(0)
    while not study.finished:
        trial = study.ask()
        study.tell(
            trial, {"time": rng.normal({"a": 10, "b": 20}[trial.arm]), "size": {"a": 60.0, "b": 10.0}[trial.arm]}
        )
    # 10 ms are worth at most 30 MB, and it is 50 MB larger
    assert study.front() == ["b"]
    said = json.loads(run("status", "--json").output)
    assert set(said) <= set(schema()["properties"])
    assert [each["name"] for each in said["judged_by"]] == ["3 time + size", "size"]
    assert said["judged_by"][0]["weights"] == {"time": 3.0, "size": 1.0}
    assert "1 ms <= 3 MB: judged by 3 time + size and by size" in said["guarantee"]["text"]
    told = run("explain", "a").output
    assert "3 time + size better by" in told
    sizes = [option["estimates"]["size"] for option in said["options"]]
    assert [(each["low"], each["high"]) for each in sizes] == [(60.0, 60.0), (10.0, 10.0)]
    assert study.standing().against("b")["a"][0].metric == "time"
    page = study_page(view_of(study, seconds=0))
    assert "judged by 3 time + size and by size" in page
    again = ps.Study(
        ["a", "b"],
        [TIME, ps.Metric("size", "min", eps=2, unit="MB", exact=True)],
        tradeoffs=["1 ms  <= 3 MB"],
        storage=tmp_path / "x.db",
    )
    assert again.spec.asked == study.spec.asked
    text = again.spec.text()
    assert ps.study.StudySpec.of_text(text, "study").asked.tradeoffs == ("1 ms <= 3 MB",)
    by_matrix = ps.Study.of(stated(tradeoffs=[[3, 1], [0, 1]]), storage="memory").spec
    assert by_matrix.asked.judged_by == stated().judged_by
    assert ps.study.StudySpec.of_text(by_matrix.text(), "study").asked == by_matrix.asked
    assert "tradeoffs" not in ps.Study.of(stated(tradeoffs=None), storage="memory").spec.text()


def test_missing_metrics_count_for_no_sum() -> None:
    study = ps.Study(["a", "b"], [TIME, SIZE], tradeoffs="1 ms <= 3 MB", storage="memory")
    rng = np.random.default_rng(0)
    times = [*rng.normal(5, 1, 20).tolist(), *[None] * 20]
    study.tell_frame({"arm": ["a"] * 20 + ["b"] * 20, "time": times, "size": rng.normal(3, 1, 40).tolist()}, arm="arm")
    with study.log.reading() as replica:
        radii = replica.session.verdicts().radii
    assert np.isfinite(radii).tolist() == [[True, True], [False, True]]
    assert study.verdicts()["b"].estimates["time"]["low"] is None
    assert study.verdicts()["b"].estimates["size"]["low"] is not None


def test_tables_and_blocks_are_judged_by_sums() -> None:
    table = ps.analyze(rows(60), "arm", [TIME, SIZE], tradeoffs="1 ms <= 3 MB")
    plain = ps.analyze(rows(60), "arm", [TIME, SIZE])
    assert table.front == ("option 1",)
    assert plain.front == ("option 0", "option 1")
    assert "judged by 3 time + size" in table.text()
    frame = rows(80) | {"block": [str(k % 80) for k in range(320)]}
    on_blocks = ps.analyze(frame, "arm", [TIME, SIZE], block="block", tradeoffs="1 ms <= 3 MB")
    assert on_blocks.front == ("option 1",)
    assert "judged by 3 time + size" in str(on_blocks.guarantee)
    partly = {name: values[:315] for name, values in frame.items()}
    said = ps.analyze(partly, "arm", [TIME, SIZE], block="block", target="population", tradeoffs="1 ms <= 3 MB")
    assert said.front == ("option 1",)


def test_failures_stay_below_delta_where_noise_goes_together() -> None:
    """Rows whose noise adds up in a sum as much as it can. With a fifth of its sigma a quarter of the runs fail.

    Were failures as likely as delta allows, more than 34 of 200 would be seen with probability 0.0011.
    """
    metrics = [ps.Metric("time", "min", eps=0.2, unit="ms"), ps.Metric("size", "min", eps=0.4, unit="MB")]
    frame = rows(40, means=[[10.0, 20.0], [12.5, 7.4]])
    problem = ps.problems.table(frame, "arm", metrics, tradeoffs=["1 ms <= 3 MB"])
    result = ps.simulate(problem, delta=0.1, replicates=200, seed=1)
    assert (~result.success).sum() <= 34
    np.testing.assert_allclose(result.sigma, [[5.0, 2.0]] * 2)


def test_a_server_takes_trade_offs(tmp_path: Path) -> None:
    described = {
        "arms": ["a", "b"],
        "metrics": {"time": {"direction": "min", "eps": 1, "unit": "ms"}, "size": {"direction": "min", "eps": 2}},
        "tradeoffs": ["1 ms <= 3 size"],
    }
    body = bodies.StudyBody.model_validate({"name": "x", **described}).model_dump(exclude_unset=True)
    assert body["tradeoffs"] == described["tradeoffs"]
    file = tmp_path / "x.yaml"
    file.write_text(json.dumps(described))  # which is YAML, too
    study = ps.Study(**read(file), storage="memory")
    assert study.spec.asked.tradeoffs == ("1 ms <= 3 size",)


def test_a_bench_takes_trade_offs() -> None:
    option, sources = Option("a", "true"), [source_of(text, {"time": "2%"}) for text in ("time", "size@x")]
    plan = Plan((option, Option("b", "false")), tuple(sources), tradeoffs=("1% time <= 3% size",))
    assert plan.name() != replace(plan, tradeoffs=()).name()
    assert len(plan.study("memory").spec.asked.judged_by) == 2
    with pytest.raises(InvalidInput, match="without rss"):
        Plan((option,), (source_of("rss", {}),), tradeoffs=("1% time <= 3% rss",))


@pytest.mark.parametrize("linear", [False, True])
def test_a_picture_shows_what_is_behind_the_front(linear: bool) -> None:
    """An option is behind the front as drawn if one of the front is ahead of it in every sum."""
    eps = (1, 2) if linear else ("1%", "1%")
    metrics = [ps.Metric("time", "min", eps=eps[0]), ps.Metric("size", "max", eps=eps[1])]
    tradeoffs = ["1 time <= 3 size", "1 time >= 0.5 size"] if linear else ["1% time <= 3% size"]
    means = np.array([[10.0, 50.0], [20.0, 80.0], [16.0, 52.0], [30.0, 81.0], [9.0, 30.0]])
    asked = stated(metrics, tradeoffs)
    front = ps.geometry.pareto_front(asked.units.oriented(means))
    table = VerdictTable(
        arms=tuple("abcde"),
        metrics=tuple(metrics),
        verdicts=tuple("front" if each else "dominated" for each in front),
        rivals=(None,) * 5,
        centres=asked.units.compared(means),
        widths=np.full((5, 2), 0.01),
        counts=np.ones(5, np.int64),
        guarantee=Guarantee("front", 0.95, (), ()),
        weights=asked.weights,
    )
    for x, y in (("time", "size"), ("size", "time")):
        data = front_data(table, x, y)
        behind = MplPath(data.behind)
        ends = np.array([[axis.low, axis.high] for axis in data.axes])
        assert (data.stairs >= ends[:, 0] - 1e-9).all()
        assert (data.stairs <= ends[:, 1] + 1e-9).all()
        rng = np.random.default_rng(0)
        for point in rng.uniform(ends[:, 0], ends[:, 1], (200, 2)):
            mean = point if x == "time" else point[::-1]
            leads = asked.units.oriented(means[front]) - asked.units.oriented(mean)
            if np.abs(leads).min() > 0.05:
                assert behind.contains_point((point[0], point[1])) == (leads > 0).all(axis=1).any()
