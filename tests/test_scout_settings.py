"""What scout can be told: noise of unknown scale, bounds, costs, the dial, a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import paretoscout as ps
from paretoscout.algorithms import MultiPFI, Scout, Setup, Uniform, scout_linear
from paretoscout.algorithms.registry import resolve
from paretoscout.errors import InvalidInput
from paretoscout.kernels.decisions import DOMINATED, FRONT
from paretoscout.session import Session
from paretoscout.simulation.replicates import Replicate, Run
from paretoscout.start import setup_of


def rates(n: int = 200) -> dict[str, Any]:
    """Recorded scores between 0 and 1, most of them close to one end."""
    rng = np.random.default_rng(0)
    frame: dict[str, Any] = {"arm": [], "a": [], "b": []}
    for arm, (a, b) in enumerate([(0.95, 0.6), (0.6, 0.95), (0.5, 0.5)]):
        frame["arm"] += [f"option {arm}"] * n
        frame["a"] += list(rng.beta(8 * a, 8 * (1 - a), n))
        frame["b"] += list(rng.beta(8 * b, 8 * (1 - b), n))
    return frame


BOUNDED = [ps.Metric("a", "max", bounds=(0, 1)), ps.Metric("b", "max", bounds=(0, 1))]


def test_unknown_noise_is_right_and_says_what_it_assumed() -> None:
    problem = ps.problems.load("four-arms")
    told = ps.simulate(problem, Scout(), eps=0.2, replicates=20)
    untold = ps.simulate(problem, Scout(noise="unknown"), eps=0.2, replicates=20)
    assert untold.success.all()
    assert np.median(told.samples) < np.median(untold.samples) < 2.5 * np.median(told.samples)
    assert np.isnan(untold.sigma).all()
    assert untold.guarantee == (
        "all verdicts right with probability 90%, up to 0.2 of every metric (normal noise, variance unknown)"
    )


def test_unknown_noise_does_not_see_the_scale() -> None:
    """Sigma is not told: the same outcomes in a unit a thousand times smaller get the same verdicts."""
    runs = []
    for unit in (1.0, 1000.0):
        problem = ps.problems.gaussian(unit * ps.problems.load("four-arms").means, sigma=unit)
        runs.append(ps.simulate(problem, Scout(noise="unknown"), eps=0.3 * unit, replicates=5))
    np.testing.assert_array_equal(runs[0].samples, runs[1].samples)
    np.testing.assert_array_equal(runs[0].pulls, runs[1].pulls)


def test_bounds_are_worth_telling() -> None:
    """Empirical Bernstein sees that the variance is small; half the range as sigma does not."""
    problem = ps.problems.table(rates(), arm="arm", metrics=BOUNDED)
    by_variance = ps.simulate(problem, Scout(noise="unknown"), eps=0.05, replicates=10)
    by_range = ps.simulate(problem, Scout(sigma=0.5), eps=0.05, replicates=10)
    assert by_variance.success.all()
    assert 2 * np.median(by_variance.samples) < np.median(by_range.samples)
    assert by_variance.assumed == "outcomes within their bounds, noise of any kind"
    mixed = ps.problems.table(rates(), arm="arm", metrics=[BOUNDED[0], ps.Metric("b")])
    result = ps.simulate(mixed, Scout(noise="unknown"), eps=0.05, replicates=2)
    assert result.assumed == "noise assumed to be normal, variance unknown; a: within bounds, noise of any kind"


def test_options_that_never_vary_get_their_verdicts() -> None:
    """Metrics such as the size of a file are exact: with bounds or without, nothing is divided by zero or goes on forever."""
    frame = {"arm": ["a"] * 5 + ["b"] * 5 + ["c"] * 5, "size": [10.0] * 5 + [20.0] * 5 + [30.0] * 5}
    frame["time"] = [3.0, 3.1, 2.9, 3.0, 3.2, 1.0, 1.1, 0.9, 1.0, 1.05, 3.3, 3.4, 3.5, 3.6, 3.4]
    for bounds in (None, (0, 50)):
        metrics = [ps.Metric("size", "min", bounds=bounds), ps.Metric("time", "min", bounds=bounds)]
        problem = ps.problems.table(frame, arm="arm", metrics=metrics)
        result = ps.simulate(problem, Scout(noise="unknown"), eps=0.2, replicates=5, max_samples=20_000)
        assert result.success.all()


@pytest.mark.parametrize("model", ["linear", "robust"])
def test_bounds_on_one_metric_are_used_with_contexts_too(model: str) -> None:
    """Rare events: 0 as often as one likes is no proof that their noise is 0. 20 runs that must not all be wrong."""
    rng = np.random.default_rng(1)
    x = np.array([1.0, 2.0, 3.0, 4.0])
    frame: dict[str, Any] = {"arm": np.repeat(["a", "b", "c", "d"], 500), "x": np.repeat(x, 500)}
    frame["events"] = np.concatenate([(np.arange(500) < 2 * k) * 1.0 for k in x])
    frame["score"] = np.concatenate([k + rng.normal(0, 1, 500) for k in x])
    metrics = [ps.Metric("events", "max", bounds=(0, 1)), ps.Metric("score", "max")]
    problem = ps.problems.table(frame, arm="arm", metrics=metrics, contexts=["x"])
    scout = Scout(model=model, noise="unknown", misfit=0.2 if model == "robust" else 0.0)
    run = Run(*resolve(scout), problem, (0.001, 0.1), 0.1, 0, 3_000)
    replicate = Replicate(run, 0)
    while not replicate.finished:
        replicate.advance(3_000)
    linear = replicate.state.linear if model == "robust" else replicate.state
    assert linear.sigma[0] * run.units.scales[0] == 0.5
    assert linear.sigma_bounded.all()
    status = replicate.verdicts().status
    assert status[3] != DOMINATED
    assert "events: within bounds, noise of any kind; noise the same for all options" in run.assumed


def test_rounding_proves_nothing() -> None:
    """Equal outcomes, eps 0: sums over different numbers of samples may round differently."""
    for value in (0.1, 0.3, 0.7):
        for settings, sigma in ((Scout(), np.zeros(1)), (Scout(noise="unknown"), None)):
            setup = Setup(n_arms=3, n_metrics=1, eps=np.zeros(1), delta=0.1, sigma=sigma)
            session = Session(settings, setup)
            for _ in range(300):
                session.tell(session.ask(), [value])
            assert not (session.verdicts().status == DOMINATED).any()


def test_a_setup_must_fit_what_scout_is_told() -> None:
    for settings, sigma in ((Scout(), None), (Scout(noise="unknown"), np.ones(1))):
        with pytest.raises(InvalidInput, match="noise of Scout must fit what it is told"):
            Session(settings, Setup(n_arms=2, n_metrics=1, eps=np.zeros(1), delta=0.1, sigma=sigma))


def test_bounds_are_checked() -> None:
    for bounds in [(0,), (1, 0), (0, np.inf), "01", (0, 0), ([1], 2)]:
        with pytest.raises(InvalidInput, match="bounds of metric 'a' must be"):
            ps.Metric("a", bounds=bounds)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"must be within its bounds 0 and 0.5, but 'option 0' has rows from"):
        ps.problems.table(rates(), arm="arm", metrics=[ps.Metric("a", bounds=(0, 0.5))])
    with pytest.raises(InvalidInput, match="its noise is normal, which knows no bounds"):
        ps.problems.gaussian([[0.0]], 1.0, metrics=[ps.Metric("a", bounds=(0, 1))])
    problem = ps.problems.table(rates(), arm="arm", metrics=[ps.Metric("a", "min", eps=0.1, bounds=(0, 1))])
    setup, _ = setup_of(problem, Scout(noise="unknown"), None, 0.1)
    assert setup.bounds is not None
    np.testing.assert_allclose(setup.bounds, [[-10, 0]])  # smaller is better, in units of eps
    session = Session(Scout(noise="unknown"), setup)
    question = session.ask()
    with pytest.raises(InvalidInput, match=r"outcome of metric 0 must be from -10 to 0, got 0\.5"):
        session.tell(question, [0.5])
    session.tell(question, [-0.5])


@pytest.mark.parametrize("rival", [MultiPFI(), Uniform()])
def test_who_cannot_do_without_sigma_says_so(rival: Any) -> None:
    setup = Setup(n_arms=2, n_metrics=1, eps=np.zeros(1), delta=0.1, sigma=None)
    name = resolve(rival)[0].name
    with pytest.raises(
        InvalidInput, match=f"sigma of algorithm '{name}' must be given: it cannot work with unknown noise"
    ):
        Session(rival, setup)


def test_the_bound_on_sigma_holds_and_tightens() -> None:
    """Linear model, sigma 1: an upper bound at all times in all but delta / 10 = 0.01 of the runs.

    More than 8 of 200 runs have probability below 1e-4 if the promise is kept. After a thousand samples the bound on
    sigma^2 is a third too large at most.
    """
    problem = ps.problems.linear(np.random.default_rng(0).normal(size=(6, 3)), np.zeros((3, 1)), sigma=1.0)
    record, settings = resolve(Scout(noise="unknown"))
    run = Run(record, settings, problem, 1e-3, 0.1, 3, 1_000)
    too_small, last = 0, []
    for index in range(200):
        replicate = Replicate(run, index)
        while not replicate.finished:
            replicate.advance(1_000)
        assert isinstance(replicate.state, scout_linear.LinearScoutState)
        assert replicate.state.sigma_bounded[0] == 1
        last.append(replicate.state.sigma[0] * run.units.scales[0])  # a running minimum
        too_small += last[-1] < 1.0
    assert too_small <= int(binom.ppf(1 - 1e-4, 200, 0.01))
    assert np.median(last) ** 2 < 4 / 3


@pytest.mark.parametrize("linear", [False, True])
def test_costs_are_taken_into_account(linear: bool, tmp_path: Path) -> None:
    """Where one arm of each pair is dear, knowing so makes the whole cheaper."""
    cost = np.array([1.0, 1.0, 40.0, 40.0])
    means = ps.problems.load("four-arms").means
    if linear:
        problems = [ps.problems.linear(np.eye(4), means, 1.0, cost=c) for c in (cost, None)]
    else:
        problems = [ps.problems.gaussian(means, 1.0, cost=c) for c in (cost, None)]
    known, unknown = (ps.simulate(p, Scout(regret_weight=0.0), eps=0.2, replicates=20) for p in problems)
    assert known.success.all()
    assert known.cost.mean() < 0.9 * (unknown.pulls @ cost).mean()
    np.testing.assert_allclose(known.cost, known.pulls @ cost)
    np.testing.assert_array_equal(unknown.cost, unknown.samples)
    known.save(tmp_path / "known.npz")
    again = ps.load_result(tmp_path / "known.npz")
    np.testing.assert_array_equal(again.cost, known.cost)
    assert again.guarantee == known.guarantee
    assert "cost     mean" in str(known.summary())
    assert "cost     mean" not in str(unknown.summary())


def test_costs_are_checked() -> None:
    for cost in ([1.0, 0.0], [1.0, -1.0], [1.0], [1.0, np.nan]):
        with pytest.raises(InvalidInput, match="cost of problem 'gaussian' must"):
            ps.problems.gaussian([[0.0], [1.0]], 1.0, cost=cost)
    frame: dict[str, Any] = {"arm": ["a", "a", "b"], "y": [1.0, 2.0, 3.0], "price": [2.0, 2.0, 5.0]}
    problem = ps.problems.table(frame, arm="arm", metrics={"y": "max"}, cost="price")
    np.testing.assert_array_equal(problem.cost, [2.0, 5.0])
    frame["price"][1] = 3.0
    with pytest.raises(
        InvalidInput, match="must be the same in all rows of an arm to be a cost, but differs within 'a'"
    ):
        ps.problems.table(frame, arm="arm", metrics={"y": "max"}, cost="price")


@pytest.mark.parametrize(
    "problem", [ps.problems.load("four-arms"), ps.problems.load("linear-16")], ids=["tabular", "linear"]
)
def test_both_ends_of_the_dial(problem: ps.Problem) -> None:
    """0 asks for few samples, 1 for little regret, and each gets it."""
    few, low = (ps.simulate(problem, Scout(regret_weight=dial), eps=0.3, replicates=40, seed=1) for dial in (0.0, 1.0))
    assert few.samples.mean() < low.samples.mean()
    assert low.regret.mean() < few.regret.mean()


def test_a_budget_ends_a_run_with_verdicts_that_hold() -> None:
    """100 runs cut off halfway at delta 0.1: wrong verdicts in more than 22 have probability below 1e-4."""
    problem = ps.problems.load("random-16")
    truth = ps.pareto_front(problem.means)
    record, settings = resolve(Scout())
    run = Run(record, settings, problem, 0.1, 0.1, 5, 1_500)
    wrong = decided = 0
    tolerated = ps.gaps(problem.means).star <= 0.1
    for index in range(100):
        replicate = Replicate(run, index)
        while not replicate.finished:
            replicate.advance(1_500)
        status = replicate.verdicts().status
        decided += int(np.count_nonzero(status))
        wrong += bool((status[truth] == DOMINATED).any() or (status[~tolerated] == FRONT).any())
    assert wrong <= int(binom.ppf(1 - 1e-4, 100, 0.1))
    assert 0 < decided < 1600
