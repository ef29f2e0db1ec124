"""Outcomes that are 0 or 1: how such a problem is stated, drawn from, and solved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paretoscout as ps
from paretoscout.environments import environment_of
from paretoscout.errors import InvalidInput
from paretoscout.kernels.dispatch import _implementations
from paretoscout.start import setup_of

CONTEXTS = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]]
THETA = [[2.0, -1.0], [-1.0, 3.0]]


def test_means_sigma_and_bounds() -> None:
    problem = ps.problems.logistic(CONTEXTS, THETA, names=["a", "b", "c"], metrics=["seen", "bought"])
    z = np.array(CONTEXTS) @ THETA
    np.testing.assert_allclose(problem.means, 1 / (1 + np.exp(-z)))
    np.testing.assert_array_equal(problem.sigma, np.full((3, 2), 0.5))
    assert [metric.bounds for metric in problem.metrics] == [(0.0, 1.0)] * 2
    assert problem.statement.model == "logistic"
    assert "0 or 1" in problem.statement.noise
    units = problem.units([0.1, 0.2])
    assert problem.theta_max(units) == pytest.approx(np.linalg.norm(THETA, axis=0).max()), "in no metric's unit"
    far = ps.problems.logistic([[1000.0]], [[1.0, -1.0]])
    np.testing.assert_array_equal(far.means, [[1.0, 0.0]])


@pytest.mark.kernels
def test_draws_are_zeros_and_ones_at_the_right_rates() -> None:
    problem = ps.problems.logistic(CONTEXTS, THETA, directions=["max", "min"])
    units = problem.units([0.1, 0.5])
    environment = environment_of(problem, units)
    draw = _implementations["draw"][type(environment)]
    rng, outcome, n = np.random.default_rng(0), np.empty(2), 4000
    for arm in range(3):
        seen = np.empty((n, 2))
        for i in range(n):
            draw(environment, arm, rng, outcome)
            seen[i] = units.undirected(outcome)
        assert set(np.unique(seen)) == {0.0, 1.0}
        error = np.abs(seen.mean(axis=0) - problem.means[arm])
        assert (error < 5.5 * 0.5 / n**0.5).all()  # Hoeffding: false alarm below 1e-6 for each of six rates
        assert abs(np.asarray(np.corrcoef(seen.T))[0, 1]) < 0.1, "metrics are drawn one by one"


@pytest.mark.kernels
@pytest.mark.parametrize("noise", ["given", "unknown"])
def test_scout_solves_it_arm_by_arm(noise: str) -> None:
    """Contexts explain the means through the link only: scout does not take them to be linear."""
    problem = ps.problems.logistic(CONTEXTS, THETA)
    settings = ps.algorithms.Scout(noise=noise)
    result = ps.simulate(problem, settings, eps=0.3, delta=0.1, replicates=3, max_samples=20_000)
    assert result.stopped.all()
    assert result.success.all()
    assert "linear" not in result.assumed
    assert ("within their bounds" if noise == "unknown" else "0 or 1") in result.assumed


def test_the_built_in_problem() -> None:
    problem = ps.problems.load("logistic-12")
    assert 2 <= ps.geometry.pareto_front(problem.means).sum() < 12
    result = ps.simulate(problem, delta=0.1, replicates=5)
    assert result.success.all()


def test_who_knows_no_link_is_told_no_parameters() -> None:
    problem = ps.problems.load("logistic-12")
    setup = setup_of(problem.asked(0.1, 0.1), ps.algorithms.PFIwR())
    assert setup.link == "logistic"
    with pytest.raises(InvalidInput, match="theta_max of PFIwR must be given"):
        ps.simulate(problem, "pfiwr", eps=0.1, delta=0.1, replicates=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ps.problems.logistic(CONTEXTS, [[1.0]]), "theta of problem 'logistic' must have one row per feature"),
        (
            lambda: ps.problems.logistic(CONTEXTS, THETA, metrics=[ps.Metric("a", bounds=(0, 2)), ps.Metric("b")]),
            "bounds of metric 'a' of problem 'logistic' must be 0 and 1",
        ),
        (lambda: ps.problems.load("logistic-12", sigma=1.0), "must be left out, for its outcomes are 0 or 1"),
        (
            lambda: ps.problems.load("s5").replace(model="probit"),
            "model of problem 's5' must be 'none', 'linear' or 'logistic'",
        ),
        (
            lambda: ps.problems.load("four-arms").replace(model="logistic"),
            "must be 'none' where contexts are not given",
        ),
    ],
)
def test_bad_input_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        call()
    assert message in str(caught.value)
