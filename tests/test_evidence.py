"""E-values: against scipy and dense algebra, and against what they promise when sampling is adversarial."""

from __future__ import annotations

import os

import numpy as np
import pytest
from conftest import MORE
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import binom, norm

import paretoscout as ps
from paretoscout.algorithms import Scout
from paretoscout.algorithms.scout import linear as scout_linear
from paretoscout.algorithms.scout import tabular as scout_tabular
from paretoscout.errors import InvalidInput
from paretoscout.kernels import split
from paretoscout.kernels.evidence import (
    half_normal_exponent,
    least_split,
    log_bernstein,
    log_bernstein_above,
    log_evidence_above,
    log_evidence_along,
    log_sum,
    log_surprise,
    log_surprise_above,
    log_t_mixture,
)
from paretoscout.session import Session
from paretoscout.start import setup_of

pytestmark = pytest.mark.kernels
UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT") == "1"


def naive_exponent(z: float) -> float:
    return 0.5 * z * z + float(np.log(2.0) + norm.logcdf(z))


def naive_evidence(
    difference: float, n_i: int, n_j: int, sigma: float, rhos: list[float], weights: list[float]
) -> float:
    """The formula as it stands, with a general minimiser."""
    terms = []
    for rho, weight in zip(rhos, weights, strict=True):
        s_i = sigma * np.sqrt(n_i + rho) / n_i
        s_j = sigma * np.sqrt(n_j + rho) / n_j

        def split(u: float, s_i: float = s_i, s_j: float = s_j) -> float:
            return naive_exponent(u / s_i) + naive_exponent((difference - u) / s_j)

        reach = abs(difference) + 60 * (s_i + s_j)
        least = minimize_scalar(split, bounds=(-reach, difference + reach), method="bounded", options={"xatol": 1e-10})
        price = np.log(weight) - 0.5 * np.log((1 + n_i / rho) * (1 + n_j / rho))
        terms.append(price + least.fun)
    return float(logsumexp(terms))


@given(st.floats(-60, 12))
def test_half_normal_exponent(z: float) -> None:
    value, slope, curve = half_normal_exponent(z)
    h = 1e-5
    assert value == pytest.approx(naive_exponent(z), abs=1e-11)
    assert slope == pytest.approx((naive_exponent(z + h) - naive_exponent(z - h)) / (2 * h), abs=1e-5)
    assert 0 < curve <= 1


@given(st.floats(0.001, 5), st.integers(1, 5000), st.integers(1, 5000), st.floats(0.05, 3))
@settings(max_examples=60 * MORE)
def test_tabular_evidence_equals_its_formula(difference: float, n_i: int, n_j: int, sigma: float) -> None:
    rhos, weights = [400.0, 20.0, 1.0], [0.5, 0.3, 0.2]
    expected = naive_evidence(difference, n_i, n_j, sigma, rhos, weights)
    got = log_evidence_above(difference, float(n_i), float(n_j), sigma, sigma, np.array(rhos), np.log(weights))
    assert got == pytest.approx(expected, abs=1e-6 * (1 + abs(expected)))
    scales = np.array([rhos])
    table = split.log_evidence_by_table(
        difference,
        float(n_i),
        float(n_j),
        sigma,
        sigma,
        0,
        scales,
        np.log(weights),
        split.prices_by_count(scales),
        split.split_table(),
    )
    assert table <= got
    z = difference / sigma / np.sqrt(sum((n + rhos[-1]) / n**2 for n in (n_i, n_j)))  # the largest of all scales
    if z <= split.LARGEST_Z:  # beyond, psi is taken to be what it is at the edge of the table
        assert table >= got - 0.003


@pytest.mark.parametrize("n_metrics", [1, 3, 20, 100, 1_000])
def test_tables_of_many_metrics_are_small_and_say_the_same(n_metrics: int) -> None:
    """They took 0.4 MB for each metric, whatever the number of options."""
    scales = np.tile([4096.0, 64.0, 8.0], (n_metrics, 1)) * np.arange(1.0, n_metrics + 1)[:, None]
    table = split.prices_by_count(scales)
    assert table.nbytes <= 1.2e6
    for n in (1.0, 2.0, 100.0, 121.0, 122.0, 123.0, 4095.0, 4096.0, 5e5):
        metric = n_metrics - 1
        for r, rho in enumerate(scales[metric]):
            spread = (n + rho) / n**2
            assert split.price_of(table, scales, n, metric, r) == pytest.approx(0.5 * np.log(1 + n / rho), rel=1e-12)
            assert split.spread_of(table, scales, n, metric, r) == pytest.approx(spread, rel=1e-12)
            assert split.half_log_spread(table, scales, n, metric, r) == pytest.approx(0.5 * np.log(spread), abs=1e-12)


def test_one_sided_gains_on_two_sided() -> None:
    """Between 0.9 and 1.4 nats, as the theory says, at the level where decisions fall."""
    n, rho = 400.0, 100.0
    variance = 2 * (n + rho) / n**2
    difference = np.sqrt(2 * 10.0 * variance)
    two_sided = -np.log1p(n / rho) + 0.5 * difference**2 / variance
    one_sided = log_evidence_above(difference, n, n, 1.0, 1.0, np.array([rho]), np.zeros(1))
    assert 0.9 < one_sided - two_sided < 1.4


def test_no_evidence_where_there_is_none() -> None:
    rhos, weights = np.array([1.0]), np.zeros(1)
    assert log_evidence_above(-0.1, 5.0, 5.0, 1.0, 1.0, rhos, weights) == -np.inf
    assert log_evidence_above(0.1, 0.0, 5.0, 1.0, 1.0, rhos, weights) == -np.inf
    assert log_evidence_above(0.1, 5.0, 5.0, 0.0, 0.0, rhos, weights) == np.inf
    assert log_evidence_along(0.0, 1.0, 1.0, 1.0, rhos, weights) == -np.inf
    assert log_sum(-np.inf, -np.inf) == -np.inf
    assert log_sum(np.inf, np.inf) == np.inf
    assert log_sum(1.0, 2.0) == pytest.approx(np.logaddexp(1.0, 2.0))
    assert least_split(1.0, 0.3, 0.3) == pytest.approx(2 * naive_exponent(0.5 / 0.3))


def test_linear_widths() -> None:
    """Worked numbers of the pair widths of S5 with 20 pulls of each arm (rho 1, sigma 1, delta 0.1, L 2)."""
    X = ps.problems.load("s5").contexts
    assert X is not None
    A = 20 * X.T @ X
    price = -0.5 * np.linalg.slogdet(np.eye(3) + A)[1]
    for i, j, width in [(0, 3, 0.751945), (1, 3, 0.722739), (4, 3, 0.428721), (2, 3, 0.764490)]:
        z = X[i] - X[j]
        w = np.linalg.solve(A, z)
        e = log_evidence_along(width, float(z @ w), float(w @ w), 1.0, np.ones(1), np.array([price]))
        assert e == pytest.approx(np.log(2 / 0.1), abs=2e-4)


@pytest.mark.skipif(UNCOMPILED, reason="too slow uncompiled")
@pytest.mark.parametrize("sigma", [(1.0, 1.0), (0.1, 1.0), (1.0, 0.0)], ids=str)
def test_evidence_keeps_its_promise_under_adversarial_sampling(sigma: tuple[float, float]) -> None:
    """Two equal arms, always sampling the one that looks worse: 1 / alpha is exceeded at most with probability alpha.

    2000 runs, alpha 0.2. A valid process exceeds in more than 475 runs with probability below 1e-5 (binomial tail), and
    a fixed-n interval used at every step would exceed in most.
    """
    alpha, runs, exceeded, naive_exceeded = 0.2, 2000, 0, 0
    rhos, weights = np.array([100.0, 10.0, 1.0]), np.log([0.4, 0.3, 0.3])
    needed, fixed_n = np.log(1 / alpha), norm.ppf(1 - alpha)
    rng = np.random.default_rng(0)
    for _ in range(runs):
        sums, n = rng.standard_normal(2) * sigma, np.ones(2)
        seen = naive_seen = False
        noise = rng.standard_normal(300)
        for value in noise:
            # what has no noise never changes
            arm = int(np.argmax(sigma)) if min(sigma) == 0 else int(sums[1] / n[1] < sums[0] / n[0])
            sums[arm] += value * sigma[arm]
            n[arm] += 1
            lead = sums[0] / n[0] - sums[1] / n[1]
            if lead > 0:
                seen |= log_evidence_above(lead, n[0], n[1], *sigma, rhos, weights) >= needed
                deviation = np.sqrt(sigma[0] ** 2 / n[0] + sigma[1] ** 2 / n[1])
                naive_seen |= lead / deviation > fixed_n
        exceeded += seen
        naive_exceeded += naive_seen
    limit = int(binom.ppf(1 - 1e-5, runs, alpha))
    assert exceeded <= limit
    assert naive_exceeded > limit


RHOS, WEIGHTS = np.array([512.0, 64.0, 8.0, 1.0]), np.array([0.3, 0.3, 0.25, 0.15])
RATES = np.array([0.8 / 2.0**r for r in range(10)])


def naive_t_mixture(u: float | np.ndarray, n: int, variance: float) -> np.ndarray:
    """The formula as it stands, of one or many u; equal samples that meet the mean say nothing against it."""
    kappa, square = RHOS / (n + RHOS), np.square(u)[..., None]
    ratio = np.ones(np.broadcast_shapes(square.shape, RHOS.shape))
    np.divide(variance + square, variance + kappa * square, out=ratio, where=variance + square > 0)
    return np.asarray(logsumexp(np.log(WEIGHTS) + 0.5 * np.log(kappa) + n / 2 * np.log(ratio), axis=-1))


def likelihood_ratio(values: np.ndarray, rho: float) -> float:
    """The t-mixture from first principles: mean and scale integrated out, against mean 0 with the scale integrated out.

    Under mean 0 and scale s the density is prod N(x; 0, s^2); mixing the effect mean / s over N(0, 1 / rho) and the scale
    over ds / s gives both marginals; their ratio does not depend on the scale of the data.
    """
    n, mean, square = len(values), values.mean(), (values**2).mean()
    kappa = rho / (n + rho)
    return float(0.5 * np.log(kappa) + 0.5 * n * np.log(square / (square - (1 - kappa) * mean**2)))


@given(st.floats(0, 4), st.integers(2, 200), st.floats(0.01, 5))
def test_t_mixture_equals_its_formula(u: float, n: int, variance: float) -> None:
    got = log_t_mixture(u, float(n), variance, RHOS, np.log(WEIGHTS))
    assert got == pytest.approx(float(naive_t_mixture(u, n, variance)), abs=1e-9 * (1 + abs(got)))


def test_t_mixture_is_a_ratio_of_marginal_likelihoods() -> None:
    rng = np.random.default_rng(0)
    for n in (2, 5, 40):
        values = rng.normal(0.3, 2.0, n)
        for rho in (1.0, 20.0):
            got = log_t_mixture(values.mean(), float(n), values.var(), np.array([rho]), np.zeros(1))
            assert got == pytest.approx(likelihood_ratio(values, rho), abs=1e-10)


def test_equal_samples_prove_little_at_first() -> None:
    """Where all samples are equal nothing divides by zero, and the evidence is bounded by their number."""
    assert log_t_mixture(0.0, 3.0, 0.0, RHOS, np.log(WEIGHTS)) < 0
    for n in (2.0, 5.0, 30.0):
        expected = np.log(np.sum(WEIGHTS * (RHOS / (n + RHOS)) ** ((1 - n) / 2)))
        assert log_t_mixture(0.7, n, 0.0, RHOS, np.log(WEIGHTS)) == pytest.approx(expected)


@given(st.floats(0.01, 3), st.integers(2, 400), st.floats(0.0, 3), st.integers(2, 400), st.floats(0.0, 3))
@settings(max_examples=60 * MORE)
def test_surprise_never_exceeds_the_worst_split(d: float, n_i: int, v_i: float, n_j: int, v_j: float) -> None:
    """A bound from below on the minimum over all splits, and a close one."""
    splits = np.linspace(0, d, 1001)
    worst = log_surprise(float((naive_t_mixture(splits, n_i, v_i) + naive_t_mixture(d - splits, n_j, v_j)).min()))
    got = log_surprise_above(d, float(n_i), v_i, float(n_j), v_j, RHOS, np.log(WEIGHTS))
    assert got <= worst + 1e-9
    assert got >= worst - 0.05 * (1 + abs(worst))


def test_log_surprise() -> None:
    """P(X + Y > c) of two standard exponential variables is (1 + c) exp(-c)."""
    for c in (0.5, 3.0, 12.0):
        assert np.exp(-log_surprise(c)) == pytest.approx((1 + c) * np.exp(-c))
    assert log_surprise(-2.0) == -2.0


def naive_bernstein(u: float | np.ndarray, n: int, spread: float) -> np.ndarray:
    terms = -np.log(len(RATES)) + RATES * n * np.asarray(u)[..., None] + (np.log1p(-RATES) + RATES) * spread
    return np.asarray(logsumexp(terms, axis=-1))


@given(st.floats(0.001, 0.9), st.integers(1, 3000), st.floats(0.01, 0.25), st.integers(1, 3000), st.floats(0.01, 0.25))
@settings(max_examples=60 * MORE)
def test_bernstein_evidence_equals_its_formula(d: float, n_i: int, v_i: float, n_j: int, v_j: float) -> None:
    spread_i, spread_j = n_i * v_i, n_j * v_j
    value, slope, curve = log_bernstein(d, float(n_i), spread_i, RATES, np.full(10, -np.log(10)))
    assert value == pytest.approx(float(naive_bernstein(d, n_i, spread_i)), abs=1e-9 * (1 + abs(value)))
    assert 0 <= slope <= 0.8 * n_i + 1e-9
    assert curve >= -1e-6 * slope**2
    place = 0.05 + 0.9 * d  # where the mean of arm i lies between 0 and 1
    splits = np.linspace(place - 1, place, 2001)
    worst = (naive_bernstein(splits, n_i, spread_i) + naive_bernstein(d - splits, n_j, spread_j)).min()
    got = log_bernstein_above(
        d, place - 1, place, float(n_i), spread_i, float(n_j), spread_j, RATES, np.full(10, -np.log(10))
    )
    assert got <= worst + 1e-6
    assert got >= worst - 5e-3 * (n_i + n_j) - 1e-6  # the grid's own error


@pytest.mark.skipif(UNCOMPILED, reason="too slow uncompiled")
@pytest.mark.parametrize("law", ["normal", "two points"])
def test_evidence_of_unknown_noise_keeps_its_promise_under_adversarial_sampling(law: str) -> None:
    """As above, sigma not told: alpha is exceeded in more than 475 of 2000 runs with probability below 1e-5.

    Plugging in the sample deviation where sigma is asked for exceeds it, so the test can tell.
    """
    alpha, runs, exceeded, plugged_in = 0.2, 2000, 0, 0
    needed = np.log(1 / alpha)
    rng = np.random.default_rng(0)
    weights, rate_weights = np.log(WEIGHTS), np.full(10, -np.log(10))
    for _ in range(runs):
        n, sums, spread = np.zeros(2), np.zeros(2), np.zeros(2)
        means, squares = np.zeros(2), np.zeros(2)
        seen = naive_seen = False
        noise = rng.normal(5.0, 3.0, 200) if law == "normal" else (rng.random(200) < 0.1).astype(float)
        for t, value in enumerate(noise):
            arm = t % 2 if t < 4 else int(means[1] < means[0])
            spread[arm] += (value - (0.5 + sums[arm]) / (n[arm] + 1)) ** 2
            n[arm] += 1
            sums[arm] += value
            before, means[arm] = means[arm], sums[arm] / n[arm]
            squares[arm] += (value - before) * (value - means[arm])
            lead = means[0] - means[1]
            if lead <= 0 or t < 4:
                continue
            variances = squares / n
            if law == "normal":
                evidence = log_surprise_above(lead, n[0], variances[0], n[1], variances[1], RHOS, weights)
            else:
                evidence = log_bernstein_above(
                    lead, means[0] - 1, means[0], n[0], spread[0], n[1], spread[1], RATES, rate_weights
                )
            seen |= bool(evidence >= needed)
            pooled = np.sqrt(squares.sum() / (n.sum() - 2))
            naive = log_evidence_above(lead, n[0], n[1], pooled, pooled, RHOS, weights)
            naive_seen |= bool(naive >= needed)
        exceeded += seen
        plugged_in += naive_seen
    assert exceeded <= int(binom.ppf(1 - 1e-5, runs, alpha))
    assert plugged_in > exceeded


def test_the_linear_state_is_least_squares() -> None:
    problem = ps.problems.load("s5")
    setup = setup_of(problem.asked(0.0, 0.001), Scout())
    session = Session(Scout(), setup)
    state, constants = session.state.linear, session.constants.linear
    assert isinstance(state, scout_linear.LinearScoutState)
    rng = np.random.default_rng(0)
    arms, values = [], []
    for _ in range(40):
        question = session.ask()
        outcome = problem.means[question.arm] + 0.1 * rng.standard_normal(2)
        session.tell(question, outcome)
        arms.append(question.arm)
        values.append(outcome)
    assert problem.contexts is not None
    X, Y = problem.contexts[arms], np.array(values)
    theta = np.linalg.lstsq(X, Y, rcond=None)[0]
    np.testing.assert_allclose(constants.contexts @ state.theta, problem.contexts @ theta, atol=1e-9)
    gram = constants.contexts[arms].T @ constants.contexts[arms]
    np.testing.assert_allclose(np.triu(state.gram), np.triu(gram), atol=1e-9)
    np.testing.assert_allclose(constants.contexts.T @ constants.contexts / 5, np.eye(3), atol=1e-12)


def test_contexts_that_do_not_span_and_equal_contexts() -> None:
    """Features that depend on each other are no obstacle; arms with equal contexts are equal, also at eps 0."""
    contexts = [[1, 0, 1], [1, 0, 1], [0, 1, 1], [0.5, 0.0, 0.5]]
    theta = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    problem = ps.problems.linear(contexts, theta, sigma=0.1)
    result = ps.simulate(problem, "scout", eps=0.0, delta=0.1, replicates=3, max_samples=20_000)
    assert result.fronts[:, :3].all()


def test_tabular_evidence_leaves_the_pilot_out() -> None:
    setup = setup_of(ps.problems.load("four-arms").asked(0.1, 0.1), Scout())
    session = Session(Scout(), setup)
    assert isinstance(session.state, scout_tabular.ScoutState)
    for value in (7.0, 1.0, 3.0):
        session.add(2, [value, value])
    assert session.state.pilots.first[2].tolist() == [7.0, 7.0]
    assert session.state.samples.counts[2].tolist() == [2.0, 2.0]
    assert session.state.samples.means[2].tolist() == [2.0, 2.0]


def test_nothing_is_eliminated_before_all_pilots_are_in() -> None:
    setup = setup_of(ps.problems.gaussian([[9.0], [0.0], [5.0]], sigma=0.1).asked(0.1, 0.1), Scout())
    session = Session(Scout(), setup)
    for _ in range(50):
        session.add(0, [9.0])
        session.add(1, [0.0])
    assert session.verdicts().status.tolist() == [0, 0, 0]
    session.add(2, [5.0])
    session.add(1, [0.0])
    assert session.verdicts().status[1] == 2


def test_all_but_equal_contexts_are_equal() -> None:
    """Rounding must not decide between arms that differ in the last digits only."""
    contexts = np.array([[1.0, 0.0], [1.0, 1e-15], [0.0, 1.0]])
    problem = ps.problems.linear(contexts, [[1.0, 0.3], [0.3, 1.0]], sigma=0.3)
    result = ps.simulate(problem, "scout", eps=0.0, delta=0.1, replicates=20, max_samples=20_000)
    assert result.fronts.all()


def test_missing_metrics_count_for_what_they_say() -> None:
    setup = setup_of(ps.problems.load("four-arms").asked(0.1, 0.1), Scout())
    session = Session(Scout(), setup)
    for _ in range(3):
        session.add(0, [1.0, np.nan], np.array([True, False]))
    assert session.state.samples.counts[0].tolist() == [2.0, 0.0]
    assert np.isinf(session.verdicts().radii[0, 1])


def test_dial_trades_samples_for_regret() -> None:
    if UNCOMPILED:
        pytest.skip("too slow uncompiled")
    problem = ps.problems.load("four-arms")
    few = ps.simulate(problem, Scout(regret_weight=0.0), eps=0.1, delta=0.1, replicates=60)
    low = ps.simulate(problem, Scout(regret_weight=0.9), eps=0.1, delta=0.1, replicates=60)
    rival = ps.simulate(problem, "multi-pfi", eps=0.1, delta=0.1, replicates=60)
    assert few.success.mean() > 0.8
    assert low.success.mean() > 0.8
    assert np.median(few.samples) < 0.8 * np.median(low.samples)
    assert low.regret.mean() < 0.8 * few.regret.mean()
    default = ps.simulate(problem, "scout", eps=0.1, delta=0.1, replicates=60)
    assert np.median(default.samples) < 0.3 * np.median(rival.samples)
    assert default.regret.mean() < 0.3 * rival.regret.mean()


def test_settings_are_checked() -> None:
    for bad, message in [
        ({"regret_weight": 1.5}, "regret_weight of Scout must be from 0 to 1, got 1.5"),
        ({"regret_weight": -0.1}, "regret_weight of Scout must be"),
        (
            {"model": "quadratic"},
            "model of Scout must be one of tabular, guide, linear, robust or None, got 'quadratic'",
        ),
        ({"noise": "loud"}, "noise of Scout must be 'given' or 'unknown', got 'loud'"),
        ({"noise": "unknown", "sigma": 1.0}, "sigma of Scout must be left out where its noise is 'unknown', got 1.0"),
        ({"misfit": 0.1}, "misfit of Scout must go with model='robust', got 0.1 with None"),
        ({"model": "robust", "misfit": -0.1}, "misfit of Scout must be a finite number at least 0, got -0.1"),
    ]:
        with pytest.raises(InvalidInput) as caught:
            Scout(**bad)  # type: ignore[arg-type]
        assert message in str(caught.value)
    with pytest.raises(InvalidInput, match="contexts of algorithm 'scout' must be given"):
        ps.simulate(ps.problems.load("four-arms"), Scout(model="linear"), delta=0.1, replicates=1)
