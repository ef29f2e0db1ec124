"""Problems: names, directions, units, tables, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import paretoscout as ps
from paretoscout.errors import InvalidInput, UnknownName

ROWS = {
    "model": ["a", "b", "a", "b", "c"],
    "quality": [1.0, 4.0, 3.0, 4.0, 2.0],
    "cost": [1, 2, 3, 4, 5],
    "size": [7, 8, 7, 8, 9],
}
METRICS = {"quality": "max", "cost": "min"}


@pytest.mark.parametrize(
    "frame", [ROWS, pd.DataFrame(ROWS), pl.DataFrame(ROWS), pa.table(ROWS)], ids=["dict", "pandas", "polars", "pyarrow"]
)
def test_table_from_any_frame(frame: Any) -> None:
    problem = ps.problems.table(frame, arm="model", metrics=METRICS, contexts=["size"])
    assert problem.arms == ("a", "b", "c")
    np.testing.assert_array_equal(problem.means, [[2, 2], [4, 3], [2, 5]])
    # c has one row, which says nothing about noise: it gets the largest of the others
    np.testing.assert_array_equal(problem.sigma, [[1, 1], [0, 1], [1, 1]])
    np.testing.assert_array_equal(problem.contexts, [[7], [8], [9]])
    assert [metric.direction for metric in problem.metrics] == ["max", "min"]
    assert "assumed" in problem.statement.noise
    result = ps.simulate(problem, delta=0.1, replicates=20, max_samples=400, eps=2.0)
    assert result.fronts.shape == (20, 3)


def test_the_sign_of_a_metric() -> None:
    assert [ps.Metric("x", way).sign for way in ("max", "maximize", "min", "minimize")] == [1.0, 1.0, -1.0, -1.0]


def test_what_is_assumed_of_the_noise_of_a_table() -> None:
    def stated(sigma: str) -> ps.Problem:
        return ps.problems.table(ROWS, arm="model", metrics=METRICS, sigma=sigma)

    np.testing.assert_array_equal(stated("largest").sigma, np.ones((3, 2)))
    assert stated("largest").statement.noise == "sigma assumed: the largest within an option"
    assert stated("each").statement.noise == "sigma assumed: each option's own, from its rows"
    np.testing.assert_array_equal(stated("unknown").sigma, np.full((3, 2), np.nan))
    assert not stated("unknown").statement.knows_sigma
    constant = ps.problems.table({"a": ["x"] * 3 + ["y"] * 2, "m": [0.1] * 3 + [1, 2]}, arm="a", metrics={"m": "max"})
    assert constant.sigma[0, 0] == 0.0, "not a rounding error"


def test_noise_that_nobody_knows() -> None:
    """Algorithms called by their names do without sigma where they can, and refuse in words where they cannot."""
    problem = ps.problems.load("compressors", sigma="unknown")
    result = ps.simulate(problem, delta=0.1, replicates=1, max_samples=50)
    assert result.settings["noise"] == "unknown"
    assert np.isnan(result.sigma).all()
    assert "noise assumed to be normal, variance unknown; recorded rows, drawn with replacement" in result.assumed
    with pytest.raises(InvalidInput, match="sigma of algorithm 'uniform' must be given"):
        ps.simulate(problem, "uniform", delta=0.1, replicates=1)
    with pytest.raises(InvalidInput, match="noise of Scout must fit what it is told"):
        ps.simulate(problem, ps.algorithms.Scout(), delta=0.1, replicates=1)
    told = ps.simulate(problem, ps.algorithms.Uniform(sigma=1.0), delta=0.1, replicates=1, max_samples=50)
    assert (told.sigma == 1.0).all()


def test_a_table_is_replayed_row_by_row() -> None:
    """Every sample is a recorded row of the arm that was pulled; all rows turn up equally often."""
    from paretoscout.environments import environment_of
    from paretoscout.kernels.dispatch import _implementations

    problem = ps.problems.table(ROWS, arm="model", metrics=METRICS)
    environment = environment_of(problem, problem.units())
    draw = _implementations["draw"][type(environment)]
    rng, outcome = np.random.default_rng(0), np.empty(2)
    seen: dict[tuple[float, ...], int] = {}
    for _ in range(4000):
        draw(environment, 0, rng, outcome)
        seen[tuple(outcome)] = seen.get(tuple(outcome), 0) + 1
    assert set(seen) == {(1.0, -1.0), (3.0, -3.0)}
    assert abs(seen[1.0, -1.0] - 2000) < 5 * 1000**0.5  # five standard deviations: false alarm below 1e-6


def test_linear_means_are_exact() -> None:
    problem = ps.problems.load("s5")
    np.testing.assert_allclose(problem.means[3], [0.7, 0.625])
    assert problem.theta_max(problem.units()) == pytest.approx(0.916515, abs=1e-6)
    tabular = ps.problems.gaussian(problem.means, sigma=1)
    assert tabular.theta_max(tabular.units()) == pytest.approx(np.linalg.norm(problem.means, axis=0).max())
    explained = ps.problems.gaussian(problem.means, sigma=1, contexts=problem.contexts)
    assert explained.theta_max(explained.units()) == pytest.approx(0.916515, abs=1e-6)


@given(
    st.lists(st.sampled_from(["min", "max"]), min_size=3, max_size=3),
    st.lists(st.just(0.0) | st.floats(1e-6, 1e6), min_size=3, max_size=3),
    st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3),
)
def test_units_go_there_and_back(directions: list[str], eps: list[float], values: list[float]) -> None:
    metrics = [ps.Metric(f"m{i}", direction, eps[i]) for i, direction in enumerate(directions)]
    units = ps.problems.gaussian([values], sigma=1, metrics=metrics).units()
    oriented = units.oriented(np.array([values]))
    np.testing.assert_allclose(units.natural(units.undirected(oriented)), [values], rtol=1e-12, atol=1e-300)
    for i, metric in enumerate(metrics):
        scale = eps[i] or 1.0
        assert units.divisors[i] == scale
        assert units.eps[i] == (1.0 if eps[i] else 0.0)
        assert oriented[0, i] == pytest.approx(values[i] / scale * (1 if metric.direction == "max" else -1))


def test_one_eps_for_all_keeps_the_units() -> None:
    problem = ps.problems.gaussian([[1, 2]], sigma=1, metrics=[ps.Metric("a", eps=3), ps.Metric("b")])
    np.testing.assert_array_equal(problem.units(0.5).divisors, [1, 1])
    np.testing.assert_array_equal(problem.units(0.5).eps, [0.5, 0.5])
    np.testing.assert_array_equal(problem.units().divisors, [3, 1])
    np.testing.assert_array_equal(problem.units({"b": 2}).divisors, [3, 2])  # the others keep their own
    np.testing.assert_array_equal(problem.units({"a": 0, "b": 2}).eps, [0, 1])


def test_built_in_problems_load() -> None:
    for name, about in ps.problems.available().items():
        if name in ps.problems.DATASETS:
            continue  # these are not shipped; tests/test_datasets.py has them
        problem = ps.problems.load(name)
        assert problem.name == name
        assert problem.about == about
        assert about.endswith(".")
    with pytest.raises(UnknownName, match="did you mean 'compressors'"):
        ps.problems.load("compressor")


def test_compressors_holds_what_was_recorded() -> None:
    problem = ps.problems.load("compressors")
    assert len(problem.arms) == 12
    assert problem.rows is not None
    assert {len(rows) for rows in problem.rows} == {200}
    front = ps.geometry.pareto_front(problem.means, directions="min")
    assert {arm for arm, on_front in zip(problem.arms, front, strict=True) if on_front} == {
        "zlib -1",
        "zlib -4",
        "zlib -6",
        "xz -0",
        "xz -1",
        "bzip2 -9",
        "xz -6",
    }


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ps.problems.gaussian([1, 2], 1), "means of problem 'gaussian' must have shape (arms, metrics)"),
        (
            lambda: ps.problems.gaussian([[1, float("nan")]], 1),
            "means of problem 'gaussian' must be finite, got nan in row 0, column 1",
        ),
        (lambda: ps.problems.gaussian([["x", 1]], 1), "must be real numbers"),
        (lambda: ps.problems.gaussian(np.empty((0, 2)), 1), "both at least 1"),
        (lambda: ps.problems.gaussian([[1, 2]], -1), "sigma of problem 'gaussian' must be at least 0, got -1"),
        (
            lambda: ps.problems.gaussian([[1, 2]], [1, 1, 1]),
            "sigma of problem 'gaussian' must be one number, 2 of them (one per metric) or 1 x 2 (one per arm and metric)",
        ),
        (lambda: ps.problems.gaussian([[1, 2]], float("inf")), "sigma"),
        (lambda: ps.problems.gaussian([[1, 2], [3, 4]], [[1, 1], [-1, 1]]), "must be at least 0"),
        (lambda: ps.problems.gaussian([[1, 2]], None), "sigma of problem 'gaussian' must be finite, got nan"),
        (
            lambda: ps.problems.table(ROWS, arm="model", metrics=METRICS, sigma="own"),
            "sigma of problem 'table' must be 'each', 'largest' or 'unknown', got 'own'",
        ),
        (lambda: ps.problems.gaussian([[1], [2]], 1, names=["x", "x"]), "must differ, got 'x' twice"),
        (lambda: ps.problems.gaussian([[1], [2]], 1, names=["x"]), "one per arm (2), got 1"),
        (lambda: ps.problems.gaussian([[1, 2]], 1, metrics=["x", "x"]), "metrics of problem 'gaussian' must differ"),
        (lambda: ps.problems.gaussian([[1, 2]], 1, metrics=["x"]), "one per column (2), got 1"),
        (lambda: ps.problems.gaussian([[1, 2]], 1, directions=["max"]), "one per metric (2), got 1"),
        (lambda: ps.problems.gaussian([[1, 2]], 1, directions="up"), "direction of metric 'metric 1' must be"),
        (
            lambda: ps.problems.gaussian([[1, 2]], 1, contexts=[[1], [2]]),
            "contexts of problem 'gaussian' must have shape (1, -1) (-1: any), got (2, 1)",
        ),
        (
            lambda: ps.problems.linear([[1, 2]], [[1, 2, 3]], 1),
            "theta of problem 'linear' must have one row per feature (2), got 1",
        ),
        (lambda: ps.problems.table(ROWS, arm="name", metrics=METRICS), "unknown column 'name' of problem 'table'"),
        (
            lambda: ps.problems.table(ROWS, arm="model", metrics={"model": "max"}),
            "column 'model' of problem 'table' must hold numbers",
        ),
        (
            lambda: ps.problems.table({**ROWS, "cost": [1, 2, 3, None, 5]}, arm="model", metrics=METRICS),
            "must hold a finite number in every row, got None in row 3",
        ),
        (lambda: ps.problems.table(ROWS, arm="model", metrics={}), "metrics of problem 'table' must be"),
        (
            lambda: ps.problems.table({"a": ["x", "y"], "m": [1, 2]}, arm="a", metrics={"m": "max"}),
            "one measurement says nothing about noise",
        ),
        (lambda: ps.problems.table(ROWS, arm="model", metrics=METRICS, contexts=["cost"]), "differs within 'a'"),
        (
            lambda: ps.problems.table({**ROWS, "model": ["a", None, "b", "b", "a"]}, arm="model", metrics=METRICS),
            "must name an arm in every row, got None in row 1",
        ),
        (lambda: ps.problems.table({**ROWS, "cost": [1, 2]}, arm="model", metrics=METRICS), "must be equally long"),
        (
            lambda: ps.problems.table(ROWS, arm="model", metrics=["cost"]),  # type: ignore[list-item]
            "must be {column: 'min' or 'max'} or Metric objects",
        ),
        (
            lambda: ps.problems.table(None, arm="model", metrics=METRICS),
            "must be a table or a dict of columns, got None",
        ),
        (
            lambda: ps.problems.table(
                pd.DataFrame([["x", 1, 2]], columns=["a", "m", "m"]), arm="a", metrics={"m": "max"}
            ),
            "got it twice",
        ),
        (
            lambda: ps.problems.gaussian([[1]], 1, metrics=[ps.Metric("x")], directions="min"),
            "must be left out where metrics are Metric objects",
        ),
        (lambda: ps.problems.gaussian([["1", "2"]], 1), "must be real numbers"),
        (lambda: ps.problems.gaussian([[1j, 2]], 1), "must be real numbers"),
        (lambda: ps.Metric("", "max"), "name of a metric"),
        (lambda: ps.Metric("x", "max", eps=-1), "eps of metric 'x' must be"),
    ],
)
def test_bad_input_is_refused(call: Any, message: str) -> None:
    with pytest.raises((InvalidInput, UnknownName)) as caught:
        call()
    assert message in str(caught.value)


def test_read_csv(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text('arm,value\n"a, b",1\nc,2\n')
    assert ps.problems.read_csv(path) == {"arm": ["a, b", "c"], "value": ["1", "2"]}
    path.write_text("arm,value\na\n")
    with pytest.raises(InvalidInput, match=r"line 2 of .* must have as many cells as the header \(2\), got 1"):
        ps.problems.read_csv(path)
    path.write_text("")
    with pytest.raises(InvalidInput, match="a header and at least one row, got nothing"):
        ps.problems.read_csv(path)
    path.write_bytes('\ufeffarm,value\n"a\nb",1\n\nc,2\n\n'.encode())  # as spreadsheets write it
    assert ps.problems.read_csv(path) == {"arm": ["a\nb", "c"], "value": ["1", "2"]}
    path.write_text("arm,arm\na,b\n")
    with pytest.raises(InvalidInput, match="got 'arm' twice"):
        ps.problems.read_csv(path)
    path.write_bytes(b"arm,value\n\xff,1\n")
    with pytest.raises(InvalidInput, match="must be a CSV file in UTF-8"):
        ps.problems.read_csv(path)
    with pytest.raises(InvalidInput, match="must be a CSV file"):
        ps.problems.read_csv(tmp_path)
    with pytest.raises(InvalidInput, match="no such file"):
        ps.problems.read_csv(str(tmp_path / "none.csv"))


def test_input_is_not_kept_by_reference() -> None:
    means = np.array([[1.0, 2.0]])
    problem = ps.problems.gaussian(means, sigma=1)
    means[0, 0] = 99
    assert problem.means[0, 0] == 1.0
