"""Front, distances, gaps, regret and success: worked numbers, plain-Python twins, awkward input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba.core import config
from numpy.typing import NDArray

from paretoscout import geometry
from paretoscout.errors import InvalidInput
from paretoscout.geometry import eps_optimal, gaps, pareto_front, pareto_regret, success

pytestmark = pytest.mark.kernels

Floats = NDArray[np.float64]
INF, NAN = float("inf"), float("nan")
COMPILED = not config.DISABLE_JIT  # type: ignore[attr-defined]

S5 = np.array([[0.8, 0.1], [0.2, 0.75], [0.4, 0.4], [0.7, 0.625], [0.59, 0.1975]])
T3 = np.array([[1.0, 0.6], [0.6, 1.0], [0.3, 0.3]])


# Twins: the definitions, in plain loops


def naive_dominates(b: Floats, a: Floats) -> bool:
    return all(x >= y for x, y in zip(b, a, strict=True)) and any(x > y for x, y in zip(b, a, strict=True))


def naive_front(values: Floats) -> list[bool]:
    return [not any(naive_dominates(b, a) for b in values) for a in values]


def naive_m(a: Floats, b: Floats) -> float:
    return max(0.0, min(float(y - x) for x, y in zip(a, b, strict=True)))


def naive_M(a: Floats, b: Floats, margin: float = 0.0) -> float:  # noqa: N802
    return max(0.0, max(float(x - y) + margin for x, y in zip(a, b, strict=True)))


def naive_gaps(y: Floats) -> dict[str, list[float]]:
    arms, front = range(len(y)), naive_front(y)
    star = [max(naive_m(y[k], y[j]) for j in arms if front[j]) for k in arms]
    plus, minus = [NAN] * len(y), [NAN] * len(y)
    for k in arms:
        if front[k]:
            others = [j for j in arms if front[j] and j != k]
            plus[k] = min([min(naive_M(y[k], y[j]), naive_M(y[j], y[k])) for j in others], default=INF)
            minus[k] = min([naive_M(y[j], y[k]) + star[j] for j in arms if not front[j]], default=INF)
    required = [min(plus[k], minus[k]) if front[k] else star[k] for k in arms]
    return {"star": star, "plus": plus, "minus": minus, "required": required}


def assert_gaps(means: Floats, expected: dict[str, list[float]], **settings: Any) -> None:
    found = gaps(means, **settings)
    for name, value in expected.items():
        np.testing.assert_array_equal(getattr(found, name), value, err_msg=name)


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 40) -> Floats:
    """Small integers, so that ties and copies are common."""
    shape = draw(st.integers(1, max_rows)), draw(st.integers(1, 8))
    top = draw(st.integers(1, 6))
    return draw(arrays(np.float64, shape, elements=st.integers(-top, top).map(float)))


@st.composite
def tables_of_reals(draw: st.DrawFn) -> Floats:
    shape = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    return draw(arrays(np.float64, shape, elements=st.floats(-1e6, 1e6)))


def law(*strategies: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`given` without a deadline: the first call may compile."""
    return lambda test: settings(deadline=None)(given(*strategies)(test))


# Worked instances


def test_distances_of_s5() -> None:
    expected = np.zeros((5, 5))
    expected[2, 3], expected[4, 3] = 0.225, 0.11
    np.testing.assert_allclose(geometry.m(S5), expected, atol=5e-7)
    expected = np.array(
        [
            [0, 0.6, 0.4, 0.1, 0.21],
            [0.65, 0, 0.35, 0.125, 0.5525],
            [0.3, 0.2, 0, 0, 0.2025],
            [0.525, 0.5, 0.3, 0, 0.4275],
            [0.0975, 0.39, 0.19, 0, 0],
        ]
    )
    np.testing.assert_allclose(geometry.M(S5), expected, atol=5e-7)


def test_gaps_of_s5() -> None:
    found = gaps(S5)
    assert found.front.tolist() == [True, True, False, True, False]
    np.testing.assert_allclose(found.star, [0, 0, 0.225, 0, 0.11], atol=5e-7)
    np.testing.assert_allclose(found.plus, [0.1, 0.125, NAN, 0.1, NAN], atol=5e-7)
    np.testing.assert_allclose(found.minus, [0.2075, 0.425, NAN, 0.11, NAN], atol=5e-7)
    np.testing.assert_allclose(found.required, [0.1, 0.125, 0.225, 0.1, 0.11], atol=5e-7)


def test_t3() -> None:
    found = gaps(T3)
    assert found.front.tolist() == [True, True, False]
    np.testing.assert_allclose(found.star, [0, 0, 0.3], atol=5e-7)
    np.testing.assert_allclose(found.plus, [0.4, 0.4, NAN], atol=5e-7)
    np.testing.assert_allclose(found.minus, [0.3, 0.3, NAN], atol=5e-7)
    np.testing.assert_allclose(found.required, [0.3, 0.3, 0.3], atol=5e-7)
    m, M = (
        np.array([[0, 0, 0], [0, 0, 0], [0.3, 0.3, 0]]),
        np.array([[0, 0.4, 0.7], [0.4, 0, 0.7], [0, 0, 0]]),
    )
    np.testing.assert_allclose(geometry.m(T3), m, atol=5e-7)
    np.testing.assert_allclose(geometry.M(T3), M, atol=5e-7)


def test_margin_for_all_metrics_or_for_each() -> None:
    y = [[0.0, 0.0], [1.0, 3.0]]
    assert geometry.M(y, 0.5).tolist() == [[0.5, 0.0], [3.5, 0.5]]
    assert geometry.M(y, [2.0, 0.0]).tolist() == [[2.0, 1.0], [3.0, 2.0]]


def test_one_arm_and_one_front_arm() -> None:
    only = gaps([[1.0, 2.0]])
    assert (only.star[0], only.plus[0], only.minus[0], only.required[0]) == (0.0, INF, INF, INF)
    assert gaps([[1.0], [0.25]]).plus[0] == INF
    assert gaps([[1.0], [0.25]]).required.tolist() == [1.5 * 0.5, 0.75]


def test_copies_on_the_front_cannot_be_told_apart() -> None:
    assert gaps([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]]).plus[:2].tolist() == [0.0, 0.0]


def test_an_arm_dominated_with_a_tie_may_be_returned() -> None:
    means = [[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]
    assert pareto_front(means).tolist() == [True, False, False]
    assert gaps(means).star.tolist() == [0.0, 0.0, 1.0]
    assert success(means, [True, True, False])
    assert not success(means, [True, True, True])


def test_a_rounded_sum_does_not_hide_a_dominator() -> None:
    big = np.array([[1e20, 1e-3, 0.0, 0.0], [1e20, 2e-3, 0.0, 0.0]])
    assert pareto_front(big).tolist() == [False, True]
    assert pareto_front(big[::-1]).tolist() == [True, False]


# Properties


@law(tables())
def test_front_is_the_definition(values: Floats) -> None:
    assert pareto_front(values).tolist() == naive_front(values)


@law(tables_of_reals())
def test_front_of_reals_is_the_definition(values: Floats) -> None:
    assert pareto_front(values).tolist() == naive_front(values)


@law(tables(max_rows=12))
def test_distances_are_the_definition(values: Floats) -> None:
    assert geometry.m(values).tolist() == [[naive_m(a, b) for b in values] for a in values]
    assert geometry.M(values, 0.5).tolist() == [[naive_M(a, b, 0.5) for b in values] for a in values]


@law(tables(max_rows=25))
def test_gaps_are_the_definition(values: Floats) -> None:
    assert_gaps(values, naive_gaps(values))


@law(tables_of_reals())
def test_gaps_of_reals_are_the_definition_to_the_last_bit(values: Floats) -> None:
    assert_gaps(values, naive_gaps(values))


@law(tables(max_rows=12))
def test_facts_about_distances(values: Floats) -> None:
    m, M = geometry.m(values), geometry.M(values)
    rows, columns = values[:, None, :], values[None, :, :]
    np.testing.assert_array_equal(m > 0, (rows < columns).all(axis=2))
    np.testing.assert_array_equal(M == 0, (rows <= columns).all(axis=2))
    assert not (m * M).any()
    assert not (m * m.T).any()
    np.testing.assert_array_equal(gaps(values).star, m.max(axis=1))  # over all j, not only the front


@law(tables(max_rows=12), st.data())
def test_distances_move_by_at_most_twice_the_error(values: Floats, data: st.DataObject) -> None:
    error = data.draw(arrays(np.float64, values.shape, elements=st.sampled_from([-0.25, 0.0, 0.125, 0.25])))
    assert np.abs(geometry.m(values + error) - geometry.m(values)).max() <= 0.5
    assert np.abs(geometry.M(values + error, 0.5) - geometry.M(values, 0.5)).max() <= 0.5


@law(tables(), st.randoms(use_true_random=False))
def test_order_of_arms_and_metrics_is_irrelevant(values: Floats, random: Any) -> None:
    arms, metrics = list(range(values.shape[0])), list(range(values.shape[1]))
    random.shuffle(arms)
    random.shuffle(metrics)
    whole, shuffled = gaps(values), gaps(values[arms][:, metrics])
    for name in ("star", "plus", "minus", "required", "front"):
        np.testing.assert_array_equal(getattr(shuffled, name), getattr(whole, name)[arms])


@law(tables(), st.sampled_from([0.25, 2.0, 1024.0]), st.integers(-50, 50))
def test_scale_and_shift(values: Floats, scale: float, shift: int) -> None:
    before, after = gaps(values), gaps(values * scale + shift)
    np.testing.assert_array_equal(after.front, before.front)
    for name in ("star", "plus", "minus", "required"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name) * scale)


@law(tables(max_rows=15), st.data())
def test_directions_are_signs(values: Floats, data: st.DataObject) -> None:
    n_metrics = values.shape[1]
    directions = data.draw(st.lists(st.sampled_from(["min", "max"]), min_size=n_metrics, max_size=n_metrics))
    turned = values * [1 if direction == "max" else -1 for direction in directions]
    assert pareto_front(turned, directions).tolist() == naive_front(values)
    assert pareto_front(-values, "min").tolist() == naive_front(values)
    assert_gaps(turned, naive_gaps(values), directions=directions)


@law(tables(max_rows=15), st.integers(0, 4), st.data())
def test_success_is_the_definition(values: Floats, eps: int, data: st.DataObject) -> None:
    n_arms, n_metrics = values.shape
    front = naive_front(values)
    extra = data.draw(st.lists(st.booleans(), min_size=n_arms, max_size=n_arms))
    each = data.draw(st.lists(st.integers(0, 4), min_size=n_metrics, max_size=n_metrics))
    for allowed in ([eps] * n_metrics, each):
        optimal = [not any((b - a > allowed).all() for b in values) for a in values]
        assert eps_optimal(values, allowed).tolist() == optimal
        returned = np.array(front) | np.array(extra)
        assert success(values, returned, allowed) == all(np.array(optimal)[returned])
        assert success(values, front, allowed)
        assert not success(values, np.zeros(n_arms, bool), allowed)
    np.testing.assert_array_equal(eps_optimal(values, eps), gaps(values).star <= eps)


@law(tables(max_rows=15), st.data())
def test_regret_is_a_sum(values: Floats, data: st.DataObject) -> None:
    arms = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20))
    assert pareto_regret(values, arms) == sum(gaps(values).star[k] for k in arms)


# Sizes at which the fast paths are taken


def awkward_tables(n_rows: int, n_columns: int) -> dict[str, Floats]:
    rng = np.random.default_rng(n_rows + n_columns)
    shape = (n_rows, n_columns)
    sphere = np.abs(rng.normal(size=shape))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    uniform = rng.random(shape)
    return {
        "uniform": uniform,
        "sorted": uniform[np.argsort(uniform[:, 0])],
        "correlated": rng.normal(size=(n_rows, 1)) + 0.3 * rng.normal(size=shape),
        "sphere": sphere,
        "rounded sphere": np.round(sphere, 1),
        "two shells": sphere * rng.choice([0.97, 1.0], size=(n_rows, 1)),
        "integers": rng.integers(0, 3, shape).astype(float),
        "equal sum": rng.multinomial(2 * n_columns, [1 / n_columns] * n_columns, n_rows).astype(float),
        "copies": sphere[rng.integers(0, 20, n_rows)],
        "identical": np.ones(shape),
        "chain": np.repeat(np.arange(float(n_rows))[:, None], n_columns, axis=1),
    }


@pytest.mark.parametrize("n_columns", [1, 2, 3, 4, 5, 8])
def test_larger_tables(n_columns: int) -> None:
    for case, values in awkward_tables(2000 if COMPILED else 200, n_columns).items():
        m, M = geometry.m(values), geometry.M(values)
        front = ~((M == 0) & (M.T > 0)).any(axis=1)  # no j that k is below and that is not below k
        found = gaps(values)
        np.testing.assert_array_equal(pareto_front(values), front, err_msg=case)
        np.testing.assert_array_equal(found.star, m.max(axis=1), err_msg=case)
        np.fill_diagonal(M, INF)
        plus = np.minimum(M, M.T)[:, front].min(axis=1)
        minus = (M.T + found.star)[:, ~front].min(axis=1, initial=INF)
        np.testing.assert_array_equal(found.plus, np.where(front, plus, NAN), err_msg=case)
        np.testing.assert_array_equal(found.minus, np.where(front, minus, NAN), err_msg=case)
        required = np.where(front, np.minimum(plus, minus), found.star)
        np.testing.assert_array_equal(found.required, required, err_msg=case)


@pytest.mark.skipif(not COMPILED, reason="too slow without the compiler")
@pytest.mark.parametrize("n_columns", [2, 3, 4, 8])
def test_the_front_of_many_rows_covers_all_rows(n_columns: int) -> None:
    values = np.random.default_rng(n_columns).random((20_000, n_columns))
    mask = pareto_front(values)
    front = values[mask]
    assert pareto_front(front).all()
    for row in values[~mask][:200]:
        assert (front >= row).all(axis=1).any()


@law(tables(max_rows=10))
def test_input_is_not_changed(values: Floats) -> None:
    before = values.copy()
    values.setflags(write=False)
    directions = ["min"] * values.shape[1]
    pareto_front(values, directions)
    geometry.m(values), geometry.M(values, 1.0)
    gaps(values, directions)
    pareto_regret(values, [0], directions)
    success(values, np.ones(len(values), bool), 0.5, directions)
    np.testing.assert_array_equal(values, before)


def test_any_layout_and_type_is_accepted() -> None:
    values = np.random.default_rng(0).integers(0, 9, (30, 4))
    expected = naive_front(values.astype(float))
    for same in (
        values,
        values.tolist(),
        values.astype(np.float32),
        np.asfortranarray(values),
        np.repeat(values, 2, axis=1)[:, ::2],
        values.astype(object),
    ):
        assert pareto_front(same).tolist() == expected


# Awkward input


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0, 3.0], r"shape \(3,\); for one metric pass shape \(3, 1\)"),
        (5.0, r"shape \(K, L\), .* got shape \(\)"),
        (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\)"),
        (np.zeros((0, 2)), r"at least 1, got shape \(0, 2\)"),
        (np.zeros((2, 0)), r"at least 1, got shape \(2, 0\)"),
        ([[1.0, 2.0], [3.0, NAN]], "finite, got nan in row 1, column 1"),
        ([[1.0, 2.0], [-INF, 1.0]], "finite, got -inf in row 1, column 0"),
        ([[1.0, 2.0], [3.0]], "real numbers, got"),
        ([["a", "b"]], "real numbers, got <U1"),
        ([[1j, 2.0]], "real numbers, got complex128"),
        ([[object(), 1.0]], "real numbers, got"),
        (np.ma.masked_array([[1.0, 2.0]], mask=[[True, False]]), "got a masked array"),
    ],
)
def test_bad_values(values: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^values must .*{message}"):
        pareto_front(values)
    with pytest.raises(InvalidInput, match=f"^values must .*{message}"):
        geometry.m(values)
    with pytest.raises(InvalidInput, match=f"^means must .*{message}"):
        gaps(values)


@pytest.mark.parametrize("directions", ["up", ["max"], ["max", "min", "max"], ["max", "up"], ["max", 1], []])
def test_bad_directions(directions: Any) -> None:
    with pytest.raises(InvalidInput, match='directions must be "min" or "max", or a sequence of 2 of them'):
        pareto_front(S5, directions)


@pytest.mark.parametrize("arms", [[5], [-1], [0, 7, 1]])
def test_arms_out_of_range(arms: list[int]) -> None:
    with pytest.raises(InvalidInput, match=r"arms of pareto_regret must lie in 0\.\.4, got (5|-1|7)"):
        pareto_regret(S5, arms)


def test_arms_of_the_wrong_type() -> None:
    with pytest.raises(InvalidInput, match="arms of pareto_regret must be integers, got float64"):
        pareto_regret(S5, [0.5])
    with pytest.raises(InvalidInput, match="arms of pareto_regret must be integers, got bool"):
        pareto_regret(S5, [True, False, False, False, False])
    assert pareto_regret(S5, []) == 0.0


@pytest.mark.parametrize("returned", [[True], [0, 1, 2], [1, 1, 0, 1, 0], np.ones((1, 5), bool)])
def test_bad_returned(returned: Any) -> None:
    with pytest.raises(InvalidInput, match="returned of success must be a mask of 5 booleans, got"):
        success(S5, returned)


@pytest.mark.parametrize("eps", [-0.1, [0.1, -0.1], [0.1], INF, NAN, "a"])
def test_bad_eps(eps: Any) -> None:
    with pytest.raises(InvalidInput, match="eps must be"):
        eps_optimal(S5, eps)


def test_bad_margin() -> None:
    with pytest.raises(InvalidInput, match="margin must be one number or 2 of them"):
        geometry.M(S5, [1.0, 2.0, 3.0])


def test_a_cover_may_leave_out_arms_that_are_little_better() -> None:
    means = [[1.0, 0.0], [0.95, 0.05], [0.0, 1.0], [0.5, -0.5]]
    assert not success(means, [False, True, True, False], eps=0.1)
    assert success(means, [False, True, True, False], eps=0.1, goal="cover")
    assert not success(means, [False, True, True, False], eps=0.04, goal="cover"), "the first arm is not covered"
    assert not success(means, [True, False, True, True], eps=0.1, goal="cover"), "the last arm is dominated"


def test_a_number_of_arms_of_the_front() -> None:
    means = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]
    assert success(means, [True, False, False], goal=1)
    assert not success(means, [True, False, False], goal=2)
    assert success(means, [True, True, False], goal=5), "there are no more"
    assert not success(means, [True, False, True], goal=2)


@pytest.mark.parametrize("goal", ["all", 0, 1.5, None, True])
def test_a_goal_must_be_one(goal: Any) -> None:
    with pytest.raises(InvalidInput, match="goal"):
        success([[1.0]], [True], goal=goal)


@law(tables(), st.integers(min_value=0), st.floats(0, 2))
def test_the_whole_front_is_also_a_cover_and_any_number(means: Floats, chosen: int, eps: float) -> None:
    returned = np.array([chosen >> k & 1 for k in range(len(means))], bool)
    if success(means, returned, eps=eps):
        assert success(means, returned, eps=eps, goal="cover")
        assert success(means, returned, eps=eps, goal=len(means))
