"""Evidence on differences: the formulas against integrals, and how often it is wrong."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from paretoscout.kernels.arrays import FloatArray
from paretoscout.kernels.paired import (
    bets_bound,
    expected_next,
    log_bets,
    log_paired,
    log_twice_below,
    paired_radius,
    place_bets,
    worth_of,
)

pytestmark = pytest.mark.kernels

RHOS = np.array([64.0, 512.0])
EVEN = np.log(np.full(2, 0.5))
RATES = np.array([0.8 / 2.0**r for r in range(8)])
RATE_WEIGHTS = np.log(np.full(8, 1 / 8))
#: A right method has more failures than `allowed` says with this probability.
FALSE_ALARM = 1e-5


def allowed(runs: int, alpha: float) -> int:
    """So many failures of so many runs."""
    return int(stats.binom.ppf(1.0 - FALSE_ALARM, runs, alpha))


# Twins


def naive_paired(lead: float, m: int, squares: float, worth: float, rho: float) -> float:
    """The likelihood ratio itself: effects are half-normal with variance 1 / rho, log scales are anywhere, evenly."""

    def likelihood(effect: float) -> float:
        def at(log_scale: float) -> float:
            s = math.exp(log_scale)
            return float(s**-m * np.exp(-0.5 * (squares + worth * (lead - effect * s) ** 2) / s**2))

        middle = 0.5 * math.log((squares + worth * lead * lead) / m)
        ends = (middle - 16.0, middle - 2.0, middle, middle + 2.0, middle + 16.0)
        return sum(integrate.quad(at, *part, limit=400, epsabs=0.0)[0] for part in pairwise(ends))

    without = likelihood(0.0)

    def weighed(z: float) -> float:
        return 2.0 * stats.norm.pdf(z) * likelihood(z / math.sqrt(rho)) / without

    return math.log(integrate.quad(weighed, 0.0, 12.0, limit=400, epsrel=1e-9)[0])


def naive_bets(differences: FloatArray, mean: float, n_list: float, most: float) -> float:
    wealth = np.ones(len(RATES))
    for t, difference in enumerate(differences):
        rest = mean if n_list == math.inf else (n_list * mean - differences[:t].sum()) / (n_list - t)
        if most + rest < -1e-9 * most:
            return math.inf
        if most + rest > 1e-9 * most:
            wealth *= 1.0 + RATES * (difference - rest) / (most + rest)
    return math.log(wealth.mean())


def bets_of(differences: FloatArray, mean: float, n_list: float = math.inf, most: float = 1.0) -> float:
    return log_bets(differences, len(differences), mean, n_list, most, RATES, RATE_WEIGHTS, np.empty(len(RATES)))


# The formulas


@pytest.mark.parametrize("rho", [1.0, 64.0])
@pytest.mark.parametrize(("m", "worth"), [(1, 1.0), (2, 2.0), (4, 4.0), (4, 20.0)])
def test_it_is_the_likelihood_ratio(m: int, worth: float, rho: float) -> None:
    """Where the bound on the distribution is exact: 1, 2 and 4 degrees of freedom."""
    for lead, squares in ((0.5, 1.0), (2.0, 3.0), (0.1, 0.2)):
        squares = squares if m > 1 else 0.0
        exact = naive_paired(lead, m, squares, worth, rho)
        assert log_paired(lead, float(m), squares, worth, np.array([rho]), np.zeros(1)) == pytest.approx(
            exact, abs=1e-6
        )


@given(st.integers(1, 2000), st.floats(1e-6, 1e4))
def test_the_bound_is_below_the_distribution(m: int, x: float) -> None:
    assert log_twice_below(x, float(m)) <= math.log(2.0 * stats.t.cdf(x, m)) + 1e-12


@given(st.floats(0.0, 5.0), st.floats(0.001, 5.0), st.integers(2, 500), st.floats(0.0, 100.0))
def test_it_grows_with_the_lead(lead: float, more: float, m: int, squares: float) -> None:
    less = log_paired(lead, float(m), squares, float(m), RHOS, EVEN)
    assert log_paired(lead + more, float(m), squares, float(m), RHOS, EVEN) >= less - 1e-12


def test_a_list_tells_more_than_a_population_and_at_last_everything() -> None:
    told = [log_paired(0.3, float(m), float(m), worth_of(float(m), 100.0), RHOS, EVEN) for m in (50, 90, 99)]
    of_population = [log_paired(0.3, float(m), float(m), float(m), RHOS, EVEN) for m in (50, 90, 99)]
    assert told[0] > of_population[0]
    assert told[2] - of_population[2] > told[1] - of_population[1] > told[0] - of_population[0]
    assert worth_of(5.0, np.inf) == 5.0


@given(st.floats(1.0, 12.0), st.integers(60, 500), st.floats(0.1, 100.0))
def test_beyond_the_interval_there_is_evidence(threshold: float, m: int, squares: float) -> None:
    """Without the side that the lead is on: evidence with it is at most log 2 more."""
    radius = paired_radius(threshold, float(m), squares, float(m), RHOS, EVEN)
    if radius < np.inf:
        at_end = log_paired(radius, float(m), squares, float(m), RHOS, EVEN)
        assert threshold - 1e-9 <= at_end
        alone = [log_paired(radius, float(m), squares, float(m), RHOS[r : r + 1], EVEN[r : r + 1]) for r in range(2)]
        assert max(alone) <= threshold + math.log(2.0) + 1e-9


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=30), st.floats(-0.9, 0.9), st.integers(0, 20))
def test_bets_are_what_they_say(values: list[float], mean: float, more: int) -> None:
    differences = np.array(values)
    for n_list in (math.inf, float(len(values) + more)):
        expected = naive_bets(differences, mean, n_list, 1.0)
        assert bets_of(differences, mean, n_list) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=30), st.integers(0, 20), st.floats(0.5, 6.0))
def test_the_bound_of_bets_is_where_evidence_reaches_the_threshold(
    values: list[float], more: int, threshold: float
) -> None:
    differences, n_list, logs = np.array(values), float(len(values) + more), np.empty(len(RATES))
    for size in (math.inf, n_list):
        bound = bets_bound(threshold, differences, len(values), size, 1.0, RATES, RATE_WEIGHTS, logs)
        assert -1.0 <= bound <= max(-1.0, differences.mean() + 1e-12)
        if bound > -1.0 + 1e-9:
            assert bets_of(differences, bound - 1e-9, size) >= threshold - 1e-6


def test_nobody_bets_on_a_tie() -> None:
    """All that is left is the lowest there is, if the mean is what it is; it may be just that."""
    logs = np.zeros(len(RATES))
    place_bets(logs, 1.0, expected_next(0.0, 3.0, 1.0, 4.0), 1.0, RATES)
    assert (logs == 0.0).all()
    place_bets(logs, 1.0, expected_next(-0.1, 3.0, 1.0, 4.0), 1.0, RATES)
    assert (logs == np.inf).all()


# How often it is wrong


def crossings(rows: FloatArray, mean: float, n_list: float, rhos: FloatArray) -> FloatArray:
    """(runs,): the largest evidence over all prefixes of each row against "the mean is no larger than `mean`"."""
    weights = np.log(np.full(len(rhos), 1.0 / len(rhos)))
    worst = np.full(len(rows), -np.inf)
    for run, row in enumerate(rows):
        average, squares = 0.0, 0.0
        for t, value in enumerate(row):
            before = average
            average += (value - average) / (t + 1)
            squares += (value - before) * (value - average)
            if t + 1 < n_list:
                evidence = log_paired(average - mean, t + 1.0, squares, worth_of(t + 1.0, n_list), rhos, weights)
                worst[run] = max(worst[run], evidence)
    return worst


@pytest.mark.parametrize("rhos", [(1.0, 8.0, 64.0, 512.0), (64.0, 512.0)], ids=["1 and more", "64 and more"])
@pytest.mark.parametrize("n_list", [40, math.inf])
def test_it_is_wrong_as_rarely_as_it_says(n_list: float, rhos: tuple[float, ...]) -> None:
    """Normal differences, the mean exactly at its limit; a list's own mean for a list."""
    runs, alpha = 400, 0.1
    rows = np.random.default_rng(5).normal(size=(runs, 40 if n_list == 40 else 200))
    means = rows.mean(axis=1) if n_list == 40 else np.zeros(runs)
    wrong = crossings(rows - means[:, None], 0.0, n_list, np.array(rhos)) >= math.log(1.0 / alpha)
    assert wrong.sum() <= allowed(runs, alpha)


def test_bets_on_ties_are_wrong_as_rarely_as_they_say() -> None:
    """A list of wins and losses that is exactly even, in random orders, read after each block but the last."""
    runs, alpha, n = 400, 0.1, 100
    pool = np.repeat([1.0, -1.0, 0.0], [30, 30, 40])
    rng, logs, wrong = np.random.default_rng(7), np.empty(len(RATES)), 0
    for _ in range(runs):
        row, total, most = rng.permutation(pool), 0.0, -np.inf
        logs[:] = 0.0
        for t in range(n - 1):
            place_bets(logs, row[t], expected_next(0.0, float(t), total, float(n)), 1.0, RATES)
            total += row[t]
            most = max(most, math.log(np.exp(logs).mean()))
        wrong += most >= math.log(1.0 / alpha)
    assert wrong <= allowed(runs, alpha)
