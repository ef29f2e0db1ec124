"""Bounds and the characteristic time: worked numbers, twins written like the formulas, laws, awkward input."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from conftest import MORE
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

import paretoscout as ps
from paretoscout import theory
from paretoscout.errors import InvalidInput
from paretoscout.theory import bounds, difficulty

Floats = NDArray[np.float64]
INF, NAN = float("inf"), float("nan")
BOUNDS = [
    ps.theory.sample_lower_bound,
    ps.theory.regret_lower_bound,
    ps.theory.sample_upper_bound,
    ps.theory.regret_upper_bound,
]

S5 = np.array([[0.8, 0.1], [0.2, 0.75], [0.4, 0.4], [0.7, 0.625], [0.59, 0.1975]])
S5_CONTEXTS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0.5], [0.6, 0.05, 0.25]])
T3 = np.array([[1.0, 0.6], [0.6, 1.0], [0.3, 0.3]])


def six_digits(value: float) -> Any:
    return pytest.approx(value, rel=5e-7)


# Twins of the printed bounds


def hardest(means: Floats, eps: float) -> list[float]:
    return [max(gap, eps) for gap in sorted(ps.geometry.gaps(means).required)]


def naive_sample_lower_bound(means: Floats, sigma: float, delta: float, eps: float, d: int) -> float:
    L = means.shape[1]
    return sigma**2 / 3 * sum(gap**-2 for gap in hardest(means, eps)[:d]) * math.log(3 * L / (4 * delta))


def naive_regret_lower_bound(means: Floats, sigma: float, delta: float, eps: float, d: int) -> float:
    found = ps.geometry.gaps(means)
    least = max(eps, min(found.star[~found.front], default=INF))
    return math.sqrt(3) * d * sigma / (8 * least) * math.log(1 / (4 * delta))


def naive_upper_terms(means: Floats, sigma: float, delta: float, eps: float, d: int, theta_max: float) -> list[float]:
    """The term of the gap d + 1, if there is one, and the d others."""
    L, e, gap = means.shape[1], math.e, hardest(means, eps)
    S, S3 = theta_max + sigma, theta_max + 3 * sigma
    terms = []
    if len(gap) > d:
        inside = 16 * 2 * 9 * d * S**2 / (e * gap[d] ** 2) * math.sqrt(7 * L / delta)
        terms.append(16 * 4 * 9 * d * S**2 / gap[d] ** 2 * (1 + math.log(inside)))
    for k in range(d):
        inside = 16 * 2 * 9 * S3**2 / (e * gap[k] ** 2) * math.sqrt(56 * L * d / delta)
        terms.append(16 * 4 * 9 * S**2 / gap[k] ** 2 * (1 + math.log(inside)))
    return terms


def naive_regret_upper_bound(
    means: Floats, sigma: float, delta: float, eps: float, d: int, theta_max: float, samples: float
) -> float:
    """What the docstring says, with the samples of the other bound."""
    found, L, e = ps.geometry.gaps(means), means.shape[1], math.e
    if found.front.all():
        return 0.0
    least = max(eps, min(found.star[~found.front]))
    S, S3, C = theta_max + sigma, theta_max + 3 * sigma, 33750
    a, b = 144 * S**2 / least**2, 144 * S3**2 / least**2
    many = 4 * d * a * (1 + math.log(2 * d * a / e * math.sqrt(7 * L / delta)))
    few = 4 * b * (1 + math.log(2 * b / e * math.sqrt(56 * L * d / delta)))
    n = 1 + max(many, few, 0.0)
    w = max(S * math.sqrt(d * math.log(7 * L * n / delta)), S3 * math.sqrt(math.log(56 * L * d * n**2 / delta)))
    gamma = C * d**3 * math.log(2 * d * samples**2 / delta)
    return 2 * theta_max * (naive_t_gamma(d, delta) + gamma) + 24 * math.sqrt(n) * w


def printed_regret_upper_bound(
    means: Floats, sigma: float, delta: float, eps: float, d: int, theta_max: float, samples: float
) -> float:
    """The last lines of the paper's proof as they stand."""
    found, L, e = ps.geometry.gaps(means), means.shape[1], math.e
    least = max(eps, min(found.star[~found.front]))
    a = 144 * (theta_max + sigma) ** 2 / least**2
    n = 1 + 4 * d * a * (1 + math.log(2 * d * a / e * math.sqrt(7 * L / delta)))
    gamma = 33750 * d**3 * math.log(2 * d * samples**2 / delta)
    return 2 * theta_max * gamma + 12 * (theta_max + sigma) * math.sqrt(n * math.log(7 * L * n**2 / delta))


def naive_estimation_bound(
    X: Floats, t: int, L: int, sigma: float, delta: float, theta_max: float, arms: int | None, C: float
) -> list[float]:
    """The two lemmas behind thm:self, one put into the other, before anything is simplified."""
    d, p = X.shape[1], delta / (7 * (arms or 1))
    gamma = C * d**3 * math.log(2 * d * t**2 / p)
    ell = math.log(3 * L * t / p)
    imputed = 12 * sigma * math.sqrt(3 * d * ell) + 24 * sigma * math.sqrt(3 * t * d / gamma * ell)
    noise = (
        8 * sigma * math.sqrt(2 * math.log(4 * L * t**2 / p))
        if arms
        else 2 * sigma * math.sqrt(d * math.log(L * t / p))
    )
    total = 3 * theta_max + noise + 3 * d * math.sqrt(2 / t * math.log(2 * d * t**2 / p)) * imputed
    F = sum(t * np.outer(x, x) for x in X) + np.eye(d)
    return [math.sqrt(x @ np.linalg.inv(F) @ x) * total for x in X]


def naive_t_gamma(d: int, delta: float, C: float = 33750) -> float:
    return 8 * C * d**3 * (1 + math.log(4 * C * d**3 * math.sqrt(2 * d) / (math.e * math.sqrt(delta))))


def first_time_above_gamma(d: int, delta: float, times: float = 1.0) -> float:
    """From which round on t >= times * gamma_t, gamma_t = C d^3 log(2 d t^2 / delta), by repeating it from above."""
    t = 1e20
    for _ in range(300):
        t = times * 33750 * d**3 * math.log(2 * d * t**2 / delta)
    return math.ceil(t)


# Twins of the costs of alternatives: every one is tried


def naive_removal(means: Floats, w: Floats, i: int, j: int) -> float:
    return float((np.maximum(means[i] - means[j], 0) ** 2).sum() / (2 * (1 / w[i] + 1 / w[j])))


def naive_newcomer(means: Floats, w: Floats, front: list[int], k: int) -> tuple[float, list[float]]:
    """The cost of k on the front, and the means z that it gets: in each metric it is drawn up to some front arms."""
    best = (INF, [NAN])
    for metric_of in itertools.product(range(means.shape[1]), repeat=len(front)):
        cost, z = 0.0, list[float]()
        for metric in range(means.shape[1]):
            caught = sorted(
                (p for p, own in zip(front, metric_of, strict=True) if own == metric), key=lambda p: -means[p, metric]
            )
            best_here = INF
            for size in range(len(caught) + 1):
                group = [k, *caught[:size]]
                at = float(w[group] @ means[group, metric] / w[group].sum())
                here = (
                    sum(w[p] * max(0.0, means[p, metric] - at) ** 2 for p in caught)
                    + w[k] * (at - means[k, metric]) ** 2
                )
                if here < best_here:
                    best_here, z_here = here, at
            cost, z = cost + best_here / 2, [*z, z_here]
        best = min(best, (cost, z))
    return best


def naive_rate(means: Floats, w: Floats) -> float:
    front, others = (
        np.flatnonzero(ps.geometry.pareto_front(means)).tolist(),
        np.flatnonzero(~ps.geometry.pareto_front(means)).tolist(),
    )
    removals = [naive_removal(means, w, i, j) for i in front for j in front if i != j]
    return min([*removals, *(naive_newcomer(means, w, front, k)[0] for k in others)])


def naive_projection(theta: Floats, V: Floats, A: Floats) -> float:
    """min ||t - theta||_V^2 / 2 with A t <= 0: the best of the points that some of the rows pin down."""
    best = INF
    for size in range(len(A) + 1):
        for rows in itertools.combinations(range(len(A)), size):
            B = A[list(rows)]
            moved = (
                theta - np.linalg.solve(V, B.T @ np.linalg.pinv(B @ np.linalg.solve(V, B.T)) @ (B @ theta))
                if size
                else theta
            )
            if (A @ moved <= 1e-9).all():
                best = min(best, float((moved - theta) @ V @ (moved - theta)) / 2)
    return best


def naive_linear_rate(means: Floats, w: Floats, X: Floats) -> float:
    theta, V = np.linalg.pinv(X) @ means, X.T @ np.diag(w) @ X
    front, others = np.flatnonzero(ps.geometry.pareto_front(means)), np.flatnonzero(~ps.geometry.pareto_front(means))
    costs: list[float] = []
    for i, j in itertools.permutations(front, 2):
        z = X[i] - X[j]
        costs.append((np.maximum(z @ theta, 0) ** 2).sum() / (2 * z @ np.linalg.solve(V, z)))
    for k in others:
        for metric_of in itertools.product(range(means.shape[1]), repeat=len(front)):
            caught = [(X[front] - X[k])[np.array(metric_of) == metric] for metric in range(means.shape[1])]
            costs.append(math.fsum(naive_projection(theta[:, metric], V, A) for metric, A in enumerate(caught)))
    return min(costs)


def spanning(X: Floats) -> Floats:
    """Contexts that span the same space as the given ones, without excess columns."""
    left, values, _ = np.linalg.svd(X, full_matrices=False)
    return left[:, values > 1e-9]


def rate(means: Floats, w: Floats, contexts: Floats | None = None) -> float:
    """The rate of an allocation, as the package computes it."""
    X = np.eye(len(means)) if contexts is None else spanning(contexts)
    front = ps.geometry.pareto_front(means)
    instance = difficulty._Instance(X, np.linalg.pinv(X) @ means, np.flatnonzero(front), np.flatnonzero(~front))
    return min(cost for cost, _ in difficulty._cheapest(instance, w))


# Worked numbers


def test_sums_of_gaps_of_s5() -> None:
    gap = np.sort(ps.geometry.gaps(S5).required)
    np.testing.assert_allclose(gap, [0.1, 0.1, 0.11, 0.125, 0.225], rtol=1e-12)
    assert sum(gap**-2) == six_digits(366.397715)
    assert max(np.arange(1, 6) * gap**-2) == six_digits(256)
    assert sum(gap[:3] ** -2) == six_digits(282.644628)
    assert max(np.arange(1, 4) * gap[:3] ** -2) == six_digits(247.933884)


@pytest.mark.parametrize(
    ("eps", "printed", "proven", "regret"),
    [
        (0.01, 255.138614, 124.529063, 5.410439),
        (0.05, 255.138614, 124.529063, 5.410439),
        (0.12, 188.059042, 91.788600, 4.959569),
    ],
)
def test_lower_bounds_of_s5(eps: float, printed: float, proven: float, regret: float) -> None:
    found = ps.theory.sample_lower_bound(S5, sigma=1, delta=0.1, eps=eps, d=3)
    assert found == six_digits(printed)
    # what the docstring says of the proof
    assert found * math.log(3 * 2 / (16 * 0.1)) / math.log(3 * 2 / (4 * 0.1)) == six_digits(proven)
    assert ps.theory.regret_lower_bound(S5, sigma=1, delta=0.1, eps=eps, d=3) == six_digits(regret)


@pytest.mark.parametrize(
    ("eps", "terms", "total"),
    [
        (0.05, [6537124.715952, 3939970.755420, 3939970.755420, 3219877.540964], 17636943.767755),
        (0.12, [6537124.715952, 2677747.904201, 2677747.904201, 2677747.904201], 14570368.428554),
    ],
)
def test_upper_bound_of_s5(eps: float, terms: list[float], total: float, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {"sigma": 1, "delta": 0.1, "eps": eps, "d": 3, "theta_max": 1}
    assert naive_upper_terms(S5, **asked) == [six_digits(term) for term in terms]
    assert ps.theory.sample_upper_bound(S5, **asked) == six_digits(125067525.801067)  # T_gamma, the larger one
    monkeypatch.setattr(bounds, "t_gamma", lambda d, delta: 0.0)
    assert ps.theory.sample_upper_bound(S5, **asked) == six_digits(total)


@pytest.mark.parametrize(
    ("d", "first", "lemma", "printed", "first_144"),
    [
        (1, 1.036044e6, 1.703396e6, 3.593942e6, 2.003634e8),
        (2, 9.682339e6, 1.624727e7, 3.399173e7, 1.800597e9),
        (3, 3.541062e7, 6.000724e7, 1.250675e8, 6.465725e9),
        (5, 1.798028e8, 3.079819e8, 6.393576e8, 3.219466e10),
        (8, 7.960108e8, 1.375197e9, 2.846215e9, 1.403667e11),
        (11, 2.173883e9, 3.775251e9, 7.799597e9, 3.798376e11),
        (16, 7.067647e9, 1.234307e10, 2.545270e10, 1.222917e12),
    ],
)
def test_t_gamma(d: int, first: float, lemma: float, printed: float, first_144: float) -> None:
    found = ps.theory.t_gamma(d, delta=0.1)
    assert found == six_digits(printed)
    assert found == pytest.approx(naive_t_gamma(d, 0.1), rel=1e-12)
    # what the docstring says: enough for t >= gamma_t, sharper by the lemma, not enough for 144 gamma_t
    assert first_time_above_gamma(d, 0.1) == six_digits(first)
    assert ps.theory.t_gamma(d, delta=0.1, exploration=33750 / 2) == six_digits(lemma)
    assert first_time_above_gamma(d, 0.1, times=144) == six_digits(first_144)
    assert first < found < first_144


def test_regret_upper_bound_by_hand() -> None:
    """Two arms, one metric, means 1 and 0, sigma 1, delta 0.1: theta_max is 1, Delta* is 1, d is 2, L is 1.

    Widths of at most d arms: b = 144 * 16 = 2304, n = 1 + 4 * 2304 * log(4608 * sqrt(1120)) = 1 + 9216 * 11.946091,
    w = 4 sqrt(log(1120 n^2)); tau = T_gamma = 33991728 and gamma_tau = 270000 log(40 tau^2).
    """
    found = ps.theory.regret_upper_bound([[1.0], [0.0]], sigma=1, delta=0.1, eps=0.1)
    n, tau = 1 + 9216 * 11.946091, 33991728
    expected = 2 * (tau + 270000 * math.log(40 * tau**2)) + 96 * math.sqrt(n * math.log(1120 * n**2))
    assert found == pytest.approx(expected, rel=1e-6)


def test_regret_upper_bound_of_s5_against_the_printed_lines() -> None:
    asked: dict[str, Any] = {"sigma": 1, "delta": 0.1, "eps": 0.05, "d": 3, "theta_max": 1}
    samples = ps.theory.sample_upper_bound(S5, **asked)
    found = ps.theory.regret_upper_bound(S5, **asked)
    assert found == pytest.approx(327758024.024, rel=1e-9)
    assert found > 2 * printed_regret_upper_bound(S5, **asked, samples=samples)


def test_accepted_arms_cost_up_to_four_widths() -> None:
    """What the docstring says of 2 max beta, on estimates that are off by at most beta = 1 each.

    Arm 0 was accepted. Arm 1 stays in A, since its estimate is dominated by 2 beta, and it is all that A has. Its
    regret is 4 beta.
    """
    truth, estimates = np.array([[4.0, 9.0], [0.0, 0.0]]), np.array([[3.0, 8.0], [1.0, 1.0]])
    assert np.abs(truth - estimates).max() == 1
    assert ps.geometry.m(estimates)[1, 0] == 2  # not above beta + beta: it stays
    assert ps.geometry.gaps(truth).star[1] == 4


@pytest.mark.parametrize("arms", [None, 1, 3])
@pytest.mark.parametrize("C", [33750.0, 1.0])
def test_estimation_bound_is_the_two_lemmas(arms: int | None, C: float) -> None:
    for t in (10**9, 10**11):
        found = ps.theory.estimation_bound(
            S5_CONTEXTS, rounds=t, n_metrics=2, sigma=0.5, delta=0.1, theta_max=1, arms=arms, exploration=C
        )
        assert found == pytest.approx(naive_estimation_bound(S5_CONTEXTS, t, 2, 0.5, 0.1, 1.0, arms, C), rel=1e-9)


def test_estimation_bound_by_hand() -> None:
    """One arm, d = 1, t = 10^9, p = 0.01: norm 1 / sqrt(10^9 + 1), noise 2 sqrt(log(10^11)) = 10.065473,
    gamma_t = 33750 log(2 * 10^20) = 1577639, c = (24 + 12 * 0.039719) / 25 = 0.979065, sqrt(log(3 * 10^11)) = 5.140724.
    """
    found = ps.theory.estimation_bound([[1.0]], rounds=10**9, n_metrics=1, sigma=1, delta=0.07, theta_max=2)
    assert found == pytest.approx([(6 + 10.065473 + 0.979065 * 5.140724) / 31622.7766], rel=1e-6)


@pytest.mark.parametrize("d", [2, 3, 16])
def test_what_the_docstring_says_of_the_printed_widths(d: int) -> None:
    """As printed: all arms, wider than what the proof gives; one arm, narrower. From T_gamma on."""
    p, L, X = 0.01, 2, np.eye(d)
    for t in (math.ceil(ps.theory.t_gamma(d, delta=p)), 10**15):
        norm = 1 / math.sqrt(t + 1)
        asked: dict[str, Any] = {"rounds": t, "n_metrics": L, "sigma": 1, "delta": 7 * p, "theta_max": 1}
        assert ps.theory.estimation_bound(X, **asked)[0] < 3 * norm * (1 + math.sqrt(d * math.log(L * t / p)))
        one = ps.theory.estimation_bound(X, **asked, arms=1)[0]
        assert one > 3 * norm * (1 + 3 * math.sqrt(math.log(4 * L * t**2 / p)))


def test_no_estimator_keeps_the_estimation_bound_for_ever() -> None:
    """By Le Cam's two points an arm of N samples is missed by sigma / (2 sqrt(N)) with probability 1/4 or more."""

    def impossible(t: int) -> bool:
        asked: dict[str, Any] = {"n_metrics": 2, "sigma": 1, "delta": 0.07, "theta_max": 0}
        samples = 33750 * 2**2 * math.log(2 * 2 * t**2 / 0.01)  # gamma_t / d
        return bool(ps.theory.estimation_bound(np.eye(2), rounds=t, **asked)[0] < 1 / (2 * math.sqrt(samples)))

    assert not impossible(10**10)
    assert impossible(int(1.5e10))


def test_the_printed_exploration_is_that_of_the_algorithm() -> None:
    assert ps.algorithms.PFIwR().exploration == theory.PRINTED_EXPLORATION == 6 * 75**2


def test_kl() -> None:
    one = theory.CharacteristicTime(1.0, np.ones(1), 0.0)
    assert [one.lower_bound(delta) for delta in (0.1, 0.05, 0.01)] == [
        six_digits(value) for value in (1.757780, 2.649995, 4.503217)
    ]


def assert_time(found: theory.CharacteristicTime, time: float, allocation: list[float], bounds: list[float]) -> None:
    assert found.time == six_digits(time)
    np.testing.assert_allclose(found.allocation, allocation, rtol=0, atol=6e-7)
    assert [found.lower_bound(delta) for delta in (0.1, 0.05, 0.01)] == [six_digits(bound) for bound in bounds]
    assert 0 <= found.accuracy < 1e-8


def test_characteristic_time_of_s5() -> None:
    found = ps.theory.characteristic_time(S5, sigma=1)
    assert ps.theory.characteristic_time(S5, sigma=np.ones(S5.shape)).time == found.time
    assert_time(
        found,
        1292.130719,
        [0.269966, 0.136272, 0.033388, 0.362780, 0.197593],
        [2271.281098, 3424.140050, 5818.745606],
    )
    assert 1 / found.time == pytest.approx(0.000773915507, rel=5e-9)


def test_characteristic_time_of_linear_s5() -> None:
    found = ps.theory.characteristic_time(S5, sigma=1, contexts=S5_CONTEXTS)
    assert_time(found, 450, [1 / 3, 1 / 3, 1 / 3, 0, 0], [791.000848, 1192.497787, 2026.447854])


def test_characteristic_time_of_t3() -> None:
    found = ps.theory.characteristic_time(T3, sigma=1)
    assert found.time == six_digits(70)
    np.testing.assert_allclose(found.allocation, [5 / 14, 5 / 14, 2 / 7], atol=5e-7)


def test_costs_of_s5_at_equal_shares() -> None:
    w, front = np.full(5, 0.2), [0, 1, 3]
    removals = {
        (0, 1): 0.018,
        (0, 3): 0.0005,
        (1, 0): 0.021125,
        (1, 3): 0.00078125,
        (3, 0): 0.01378125,
        (3, 1): 0.0125,
    }
    instance = difficulty._Instance(np.eye(5), S5, np.array(front), np.array([2, 4]))
    for (i, j), cost in removals.items():
        assert naive_removal(S5, w, i, j) == six_digits(cost)
        assert difficulty._costs(instance, [difficulty._Alternative(j, ((i,), (i,)))], w)[0] == six_digits(cost)
    newcomers = {2: (0.00253125, [0.4, 0.5125]), 4: (0.000605, [0.645, 0.1975])}
    points, theta = difficulty._seen(instance, w)
    for k, (cost, z) in newcomers.items():
        assert naive_newcomer(S5, w, front, k) == (six_digits(cost), [six_digits(value) for value in z])
        found = difficulty._cheapest_newcomer(instance.front, points, theta, k, INF)
        assert found is not None
        assert found[0] == six_digits(cost)
    assert rate(S5, w) == six_digits(0.0005)
    assert naive_rate(S5, w) == six_digits(0.0005)
    assert rate(S5, w, S5_CONTEXTS) == six_digits(0.001472289)
    assert 1 / naive_linear_rate(S5, w, S5_CONTEXTS) == six_digits(679.214403)


@pytest.mark.parametrize(
    ("w", "least", "newcomer", "z"),
    [
        ([1 / 3, 1 / 3, 1 / 3], 0.013333333, 0.015, [0.45, 0.45]),
        ([0.6, 0.2, 0.2], 0.01125, 0.01125, [0.45, 0.525]),
        ([0.2, 0.3, 0.5], 0.0096, 0.0148660714, None),
    ],
)
def test_costs_of_t3(w: list[float], least: float, newcomer: float, z: list[float] | None) -> None:
    shares = np.array(w)
    assert naive_rate(T3, shares) == six_digits(least)
    assert rate(T3, shares) == six_digits(least)
    cost, means = naive_newcomer(T3, shares, [0, 1], 2)
    assert cost == six_digits(newcomer)
    if z is not None:
        assert means == [six_digits(value) for value in z]


# Closed forms


@pytest.mark.parametrize(("n_others", "gap", "sigma"), [(1, 1.0, 1.0), (1, 0.25, 3.0), (4, 0.5, 1.0), (15, 2.0, 0.1)])
def test_the_best_of_one_metric(n_others: int, gap: float, sigma: float) -> None:
    """One best arm and n equal others: T* = 2 (1 + sqrt(n))^2 sigma^2 / gap^2."""
    means = np.array([[gap]] + [[0.0]] * n_others)
    found = ps.theory.characteristic_time(means, sigma=sigma)
    assert found.time == pytest.approx(2 * (1 + math.sqrt(n_others)) ** 2 * sigma**2 / gap**2, rel=1e-8)
    assert found.allocation[0] == pytest.approx(1 / (1 + math.sqrt(n_others)), rel=1e-6)


def test_nothing_to_learn_and_nothing_to_tell_apart() -> None:
    alone = ps.theory.characteristic_time([[1.0, 2.0]], sigma=1)
    assert (alone.time, alone.allocation.tolist(), alone.lower_bound(0.1)) == (0.0, [1.0], 0.0)
    one: dict[str, Any] = {"means": [[1.0, 2.0]], "sigma": 1, "delta": 0.1, "eps": 0}
    assert ps.theory.sample_lower_bound(**one) == ps.theory.regret_lower_bound(**one) == 0
    assert ps.theory.sample_upper_bound(**one) == ps.theory.t_gamma(1, delta=0.1)
    copies, tie = [[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]], [[1.0, 2.0], [1.0, 1.0], [2.0, 0.0]]
    for means in (copies, tie):
        found = ps.theory.characteristic_time(means, sigma=1)
        assert found.time == found.lower_bound(0.1) == INF
        assert np.isnan(found.allocation).all()
        assert ps.theory.sample_lower_bound(means, sigma=1, delta=0.1, eps=0) == INF
        assert ps.theory.sample_upper_bound(means, sigma=1, delta=0.1, eps=0) == INF
        assert ps.theory.sample_lower_bound(means, sigma=1, delta=0.1, eps=0.5) < INF
    assert ps.theory.regret_lower_bound(tie, sigma=1, delta=0.1, eps=0) == INF
    assert ps.theory.regret_lower_bound(copies, sigma=1, delta=0.1, eps=0) < INF
    assert ps.theory.regret_upper_bound(tie, sigma=1, delta=0.1, eps=0) == INF
    for bound in (ps.theory.regret_lower_bound, ps.theory.regret_upper_bound):
        assert bound([[1.0, 0.0], [0.0, 1.0]], sigma=1, delta=0.1, eps=0) == 0


def test_an_easy_instance_needs_t_gamma() -> None:
    """Gaps so wide that terms of the sum are negative."""
    asked: dict[str, Any] = {"sigma": 1e-6, "delta": 0.5, "eps": 0, "d": 1, "theta_max": 0}
    means = [[1.0, 0.0], [0.0, 1.0]]
    assert min(naive_upper_terms(np.array(means), **asked)) < 0
    assert ps.theory.sample_upper_bound(means, **asked) == ps.theory.t_gamma(1, delta=0.5)


# Laws of the printed bounds


def reals(n_arms: int = 8, n_metrics: int = 4) -> st.SearchStrategy[Floats]:
    shapes = st.tuples(st.integers(1, n_arms), st.integers(1, n_metrics))
    return shapes.flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.integers(-1000, 1000).map(lambda v: v / 64))
    )


def scales() -> st.SearchStrategy[float]:
    return st.floats(0.01, 100)


@given(reals(), scales(), st.floats(1e-6, 0.24), st.floats(1e-3, 10), st.data())
def test_bounds_are_the_formulas(means: Floats, sigma: float, delta: float, eps: float, data: st.DataObject) -> None:
    d = data.draw(st.integers(1, len(means)))
    theta_max = data.draw(st.floats(0, 10))
    asked: dict[str, Any] = {"sigma": sigma, "delta": delta, "eps": eps, "d": d}
    assert ps.theory.sample_lower_bound(means, **asked) == pytest.approx(
        naive_sample_lower_bound(means, **asked), rel=1e-12
    )
    assert ps.theory.regret_lower_bound(means, **asked) == pytest.approx(
        naive_regret_lower_bound(means, **asked), rel=1e-12
    )
    if len(means) == 1:
        return  # the twin has no logarithm of 0
    total = sum(max(0.0, term) for term in naive_upper_terms(means, **asked, theta_max=theta_max))
    upper = ps.theory.sample_upper_bound(means, **asked, theta_max=theta_max)
    assert upper == pytest.approx(max(naive_t_gamma(d, delta), total), rel=1e-12)
    assert ps.theory.regret_upper_bound(means, **asked, theta_max=theta_max) == pytest.approx(
        naive_regret_upper_bound(means, **asked, theta_max=theta_max, samples=upper), rel=1e-12
    )


@given(reals(), scales(), st.floats(1e-6, 0.24), st.floats(1e-3, 10), st.sampled_from([0.25, 3.0, 1024.0]))
def test_units(means: Floats, sigma: float, delta: float, eps: float, c: float) -> None:
    """Samples do not depend on the unit; nor does the lower bound on regret, as it stands. The upper one does."""
    for bound in BOUNDS:
        plain = bound(means, sigma=sigma, delta=delta, eps=eps)
        unit = c if bound is ps.theory.regret_upper_bound else 1
        assert bound(c * means, sigma=c * sigma, delta=delta, eps=c * eps) == pytest.approx(unit * plain, rel=1e-9)


def test_in_small_units_the_bounds_on_regret_cross() -> None:
    """So the printed lower bound is none."""
    asked: dict[str, Any] = {"delta": 0.1}
    for c, crossed in ((1, False), (1e-12, True)):
        lower = ps.theory.regret_lower_bound(c * T3, sigma=c, eps=0.1 * c, **asked)
        assert (lower > ps.theory.regret_upper_bound(c * T3, sigma=c, eps=0.1 * c, **asked)) is crossed


@given(reals(), scales(), st.floats(1e-9, 0.24), st.floats(1e-3, 10))
def test_no_bound_crosses_the_other(means: Floats, sigma: float, delta: float, eps: float) -> None:
    for d in (None, 1):
        asked: dict[str, Any] = {"sigma": sigma, "delta": delta, "eps": eps, "d": d, "theta_max": 0.0}
        assert ps.theory.sample_lower_bound(means, **asked) <= ps.theory.sample_upper_bound(means, **asked)


@given(
    reals(),
    scales(),
    st.tuples(st.floats(1e-9, 0.24), st.floats(1e-9, 0.24)),
    st.tuples(st.floats(0, 9), st.floats(0, 9)),
)
def test_less_is_asked_with_more_delta_or_eps(
    means: Floats, sigma: float, deltas: tuple[float, float], allowed: tuple[float, float]
) -> None:
    (small, large), (strict, lax) = sorted(deltas), sorted(allowed)
    for bound in BOUNDS:
        hard = bound(means, sigma=sigma, delta=small, eps=strict)
        assert bound(means, sigma=sigma, delta=large, eps=strict) <= hard
        assert bound(means, sigma=sigma, delta=small, eps=lax) <= hard
        assert bound(means, sigma=2 * sigma, delta=small, eps=strict) >= hard


@given(reals(), st.randoms(use_true_random=False))
def test_order_is_irrelevant_to_bounds(means: Floats, random: Any) -> None:
    arms, metrics = list(range(means.shape[0])), list(range(means.shape[1]))
    random.shuffle(arms)
    random.shuffle(metrics)
    for bound in BOUNDS:
        plain = bound(means, sigma=1, delta=0.1, eps=0.1)
        assert bound(means[arms][:, metrics], sigma=1, delta=0.1, eps=0.1) == pytest.approx(plain, rel=1e-12)


def test_tiny_gaps_are_no_gaps() -> None:
    for bound in BOUNDS:
        assert bound([[0.0, 0.0], [1e-300, 1e-300]], sigma=1e200, delta=0.1, eps=0) == INF


def test_theta_max_is_the_norm_of_the_means_where_there_are_no_contexts() -> None:
    means = np.array([[3.0, 0.0], [4.0, 0.001], [0.0, 0.0]])
    asked: dict[str, Any] = {"sigma": 100, "delta": 0.1, "eps": 0.001}
    assert ps.theory.sample_upper_bound(means, **asked) > ps.theory.t_gamma(3, delta=0.1)
    assert ps.theory.sample_upper_bound(means, **asked) == ps.theory.sample_upper_bound(
        means, **asked, d=3, theta_max=5
    )
    assert ps.theory.sample_upper_bound(means, **asked) < ps.theory.sample_upper_bound(means, **asked, theta_max=6)


# Laws of the characteristic time


@st.composite
def separate_means(draw: st.DrawFn, n_arms: int = 4, n_metrics: int = 3) -> Floats:
    """Means without ties: each metric is a permutation of distinct numbers."""
    K, L = draw(st.integers(2, n_arms)), draw(st.integers(1, n_metrics))
    levels = draw(st.lists(st.integers(0, 40), min_size=K, max_size=K, unique=True))
    return np.array([draw(st.permutations(levels)) for _ in range(L)], dtype=float).T / 8


@st.composite
def linear_instances(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """Means (K, L) and contexts (K, d) of small whole numbers, without ties."""
    K, d, L = draw(st.integers(2, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    X = draw(arrays(np.float64, (K, d), elements=st.integers(-3, 3).map(float)))
    means = X @ draw(arrays(np.float64, (d, L), elements=st.integers(-3, 3).map(float)))
    assume(ps.geometry.gaps(means).required.min() > 0)
    return means, X


def shares(n_arms: int) -> st.SearchStrategy[Floats]:
    return st.lists(st.integers(1, 20), min_size=n_arms, max_size=n_arms).map(lambda n: np.array(n) / sum(n))


@given(separate_means(), st.data())
def test_rates_are_the_least_over_all_alternatives(means: Floats, data: st.DataObject) -> None:
    w = data.draw(shares(len(means)))
    assert rate(means, w) == pytest.approx(naive_rate(means, w), rel=1e-9)


@settings(max_examples=60 * MORE)
@given(linear_instances(), st.data())
def test_linear_rates_are_the_least_over_all_alternatives(instance: tuple[Floats, Floats], data: st.DataObject) -> None:
    means, X = instance
    w = data.draw(shares(len(means)))
    assert rate(means, w, X) == pytest.approx(naive_linear_rate(means, w, spanning(X)), rel=1e-6)


def simplex_grid(n_arms: int, steps: int) -> list[Floats]:
    cuts = itertools.combinations(range(1, steps), n_arms - 1)
    return [np.diff([0, *cut, steps]) / steps for cut in cuts]


@settings(max_examples=25 * MORE)
@given(separate_means(n_arms=3))
def test_no_allocation_on_a_grid_is_better(means: Floats) -> None:
    found = ps.theory.characteristic_time(means, sigma=1)
    assert found.accuracy < 1e-8
    assert found.allocation.sum() == pytest.approx(1)
    assert naive_rate(means, found.allocation) == pytest.approx(1 / found.time, rel=1e-7)
    best = max(naive_rate(means, w) for w in simplex_grid(len(means), 30))
    assert best <= 1 / found.time * (1 + 1e-7)
    # rates grow with shares and are homogeneous: rounding to the grid costs at most the relative loss of a share
    assert best >= 1 / found.time * (1 - len(means) / 30 / found.allocation.min())


@settings(max_examples=25 * MORE)
@given(linear_instances())
def test_no_allocation_on_a_grid_is_better_for_linear_means(instance: tuple[Floats, Floats]) -> None:
    means, X = instance
    found = ps.theory.characteristic_time(means, sigma=1, contexts=X)
    assert found.accuracy < 1e-7
    for w in simplex_grid(len(means), 8):
        assert rate(means, w, X) <= 1 / found.time * (1 + 1e-7)


@settings(max_examples=25 * MORE)
@given(separate_means(n_arms=6), st.sampled_from([0.25, 3.0]), st.randoms(use_true_random=False))
def test_units_shift_and_order(means: Floats, c: float, random: Any) -> None:
    plain = ps.theory.characteristic_time(means, sigma=1)
    assert ps.theory.characteristic_time(means, sigma=c).time == pytest.approx(plain.time * c**2, rel=1e-7)
    assert ps.theory.characteristic_time(c * means, sigma=c).time == pytest.approx(plain.time, rel=1e-7)
    per_metric = np.linspace(1, c, means.shape[1])
    assert ps.theory.characteristic_time(per_metric * means + 7, sigma=per_metric).time == pytest.approx(
        plain.time, rel=1e-7
    )
    arms, metrics = list(range(means.shape[0])), list(range(means.shape[1]))
    random.shuffle(arms)
    random.shuffle(metrics)
    shuffled = ps.theory.characteristic_time(means[arms][:, metrics], sigma=1)
    assert shuffled.time == pytest.approx(plain.time, rel=1e-7)
    # where several allocations are best, the order may pick another
    assert 1 / rate(means[arms], plain.allocation[arms]) == pytest.approx(plain.time, rel=1e-7)


@settings(max_examples=25 * MORE)
@given(linear_instances())
def test_contexts(instance: tuple[Floats, Floats]) -> None:
    """What counts is the space that contexts span, and the smaller it is, the fewer the alternatives."""
    means, X = instance
    linear = ps.theory.characteristic_time(means, sigma=1, contexts=X).time
    mixed = np.hstack([X @ np.triu(np.ones((X.shape[1], X.shape[1]))), X[:, :1]])
    assert ps.theory.characteristic_time(means, sigma=1, contexts=mixed).time == pytest.approx(linear, rel=1e-6)
    tabular = ps.theory.characteristic_time(means, sigma=1).time
    assert ps.theory.characteristic_time(means, sigma=1, contexts=np.eye(len(means))).time == pytest.approx(
        tabular, rel=1e-6
    )
    assert linear <= tabular * (1 + 1e-6)


@pytest.mark.parametrize(("n_arms", "n_metrics", "d"), [(16, 2, None), (16, 3, None), (12, 6, None), (30, 2, 4)])
def test_larger_instances_are_solved_with_proof(n_arms: int, n_metrics: int, d: int | None) -> None:
    rng = np.random.default_rng(n_arms + n_metrics)
    contexts = None if d is None else rng.normal(size=(n_arms, d))
    means = (
        rng.normal(size=(n_arms, n_metrics)) if contexts is None else contexts @ rng.normal(size=(d or 0, n_metrics))
    )
    found = ps.theory.characteristic_time(means, sigma=1, contexts=contexts)
    assert found.accuracy < 1e-8
    assert found.time <= 1 / rate(means, np.full(n_arms, 1 / n_arms), contexts)
    assert 1 / rate(means, found.allocation, contexts) == pytest.approx(found.time, rel=1e-7)


def test_gaps_of_very_different_sizes() -> None:
    means = np.array([[1.0, 0.0], [0.0, 1.0], [1e-5, 1.0 - 1e-5], [-100.0, -100.0]])
    found = ps.theory.characteristic_time(means, sigma=1)
    assert found.accuracy < 1e-7
    assert found.time == pytest.approx(8e10, rel=1e-3)  # the two that are 1e-5 apart


# Awkward input


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.__name__)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"means": [1.0, 2.0]}, r"means of \w+ must have shape \(K, L\)"),
        ({"means": [[1.0, NAN]]}, r"means of \w+ must be finite, got nan in row 0, column 1"),
        ({"means": np.zeros((0, 2))}, r"means of \w+ must have shape"),
        ({"sigma": 0}, r"sigma of \w+ must be a finite number above 0, got 0"),
        ({"sigma": NAN}, r"sigma of \w+ must be"),
        ({"sigma": [1.0, 1.0]}, r"sigma of \w+ must be"),
        ({"delta": 0}, r"delta of \w+ must be a finite number above 0 and below"),
        ({"delta": 1}, r"delta of \w+ must be"),
        ({"delta": -0.1}, r"delta of \w+ must be"),
        ({"delta": "0.1"}, r"delta of \w+ must be"),
        ({"eps": -0.1}, r"eps of \w+ must be a finite number at least 0, got -0.1"),
        ({"eps": INF}, r"eps of \w+ must be"),
        ({"d": 0}, r"d of \w+ must be a whole number, at least 1 and at most 5, got 0"),
        ({"d": 6}, r"d of \w+ must be"),
        ({"d": 2.0}, r"d of \w+ must be"),
        ({"theta_max": -1}, r"theta_max of \w+ must be a finite number at least 0"),
        ({"theta_max": INF}, r"theta_max of \w+ must be"),
    ],
)
def test_bad_arguments_of_bounds(bound: Any, wrong: dict[str, Any], message: str) -> None:
    asked = {"means": S5, "sigma": 1.0, "delta": 0.1, "eps": 0.1, "d": 3, "theta_max": 1.0, **wrong}
    with pytest.raises(InvalidInput, match=f"^{message}") as raised:
        bound(**asked)
    assert bound.__name__ in str(raised.value)


def test_lower_bounds_say_nothing_from_a_quarter_on() -> None:
    for bound in BOUNDS[:2]:
        with pytest.raises(
            InvalidInput, match=r"delta of \w+ must be a finite number above 0 and below 0.25, got 0.25"
        ):
            bound(S5, sigma=1, delta=0.25, eps=0.1)
    assert ps.theory.sample_upper_bound(S5, sigma=1, delta=0.25, eps=0.1) > 0


def test_theta_max_is_asked_for() -> None:
    for bound in BOUNDS[2:]:
        with pytest.raises(InvalidInput, match=r"theta_max of \w+_upper_bound must be given where d is: .*, got None"):
            bound(S5, sigma=1, delta=0.1, eps=0.1, d=3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"contexts": [1.0]}, r"contexts of estimation_bound must have shape \(K, d\)"),
        ({"contexts": [[1.0, 0.0], [1.0, 1.0]]}, r"contexts of estimation_bound must be no longer than 1, got 1.41421"),
        ({"rounds": 1000}, r"rounds of estimation_bound must be a whole number, at least \d+, got 1000"),
        ({"arms": 3}, "arms of estimation_bound must be a whole number, at least 1 and at most 2, got 3"),
        ({"delta": 1}, "delta of estimation_bound must be a finite number above 0 and below 1, got 1"),
        ({"sigma": 0}, "sigma of estimation_bound must be a finite number above 0, got 0"),
        ({"theta_max": -1}, "theta_max of estimation_bound must be a finite number at least 0, got -1"),
        ({"n_metrics": 0}, "n_metrics of estimation_bound must be a whole number, at least 1, got 0"),
        ({"exploration": 0}, "exploration of estimation_bound must be a finite number above 0, got 0"),
    ],
)
def test_bad_arguments_of_estimation_bound(wrong: dict[str, Any], message: str) -> None:
    asked = {"contexts": np.eye(2), "rounds": 10**9, "n_metrics": 2, "sigma": 1.0, "delta": 0.1, "theta_max": 1.0}
    with pytest.raises(InvalidInput, match=message):
        ps.theory.estimation_bound(**{**asked, **wrong})


# Against simulation


def test_pfiwr_stays_below_its_regret_bound() -> None:
    """Each run may exceed it with probability 0.1, if the theorem is right; more than 15 of 40 have probability 6e-7."""
    problem = ps.problems.gaussian(T3, sigma=0.5)
    result = ps.simulate(problem, ps.algorithms.PFIwR(), eps=0.1, delta=0.1, replicates=40, seed=0, max_samples=10**6)
    bound = ps.theory.regret_upper_bound(T3, sigma=0.5, delta=0.1, eps=0.1)
    assert result.regret.min() > 0
    assert int((result.regret > bound).sum()) <= 15


def test_dr_mix_stays_below_its_estimation_bound_where_it_says_something() -> None:
    """d = 2, C = 1: the pool is that of gamma_t, then one arm is pulled on and on. By lem:self_mix from 220,000 rounds on.

    Each of 20 runs may miss with probability 0.1, if the theorem is right; more than 10 have probability 7e-7.
    """
    d, delta = 2, 0.1
    first = math.ceil(4 * 1152 * d**2 * math.log(2 * 1152 * d**2 * math.sqrt(2 * d / (delta / 7))))
    t, pool = first, math.ceil(d**3 * math.log(2 * d * first**2 / (delta / 7)))
    bound = ps.theory.estimation_bound(
        np.eye(d), rounds=t, n_metrics=1, sigma=1, delta=delta, theta_max=1, exploration=1
    )
    missed = sum(bool((dr_mix_errors(t, pool, seed) > bound).any()) for seed in range(20))
    assert missed <= 10


def dr_mix_errors(t: int, pool: int, seed: int) -> Floats:
    """Errors of DR-mix on two arms, means 0, after t rounds of which only the first `pool` sample arm 1."""
    rng = np.random.default_rng(seed)
    arms = np.where(np.arange(t) < pool, np.arange(t) % 2, 0)
    estimator = ps.estimators.DRMix(np.eye(2), delta=0.1, seed=seed)
    estimator.update(arms, rng.standard_normal(t), explored=np.arange(t) < pool)
    return np.abs(estimator.means[:, 0])


def test_the_printed_width_is_too_narrow_where_exploring_is_rare() -> None:
    """50 samples of arm 1 and 10^5 rounds: 9 sqrt(log(4 t^2 / p) / t) = 0.15, its mean is off by 1 / sqrt(50) = 0.14.

    A normal error exceeds it with probability 0.28, delta is 0.1. Fewer than 5 of 60 have probability 4e-5.
    """
    t = 10**5
    width = 9 * math.sqrt(math.log(4 * t**2 / (0.1 / 7)) / t)
    assert sum(bool(dr_mix_errors(t, 100, seed)[1] > width) for seed in range(60)) >= 5


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"d": 0}, "d of t_gamma must be a whole number, at least 1, got 0"),
        ({"delta": 1.5}, "delta of t_gamma must be a finite number above 0 and below 1, got 1.5"),
        ({"exploration": 0}, "exploration of t_gamma must be a finite number above 0, got 0"),
    ],
)
def test_bad_arguments_of_t_gamma(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ps.theory.t_gamma(**{"d": 2, "delta": 0.1, **wrong})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"means": [1.0, 2.0]}, "means of characteristic_time must have shape"),
        ({"means": [[1.0, NAN]]}, "means of characteristic_time must be finite"),
        ({"sigma": 0.0}, "sigma of characteristic_time must be above 0, got 0.0"),
        ({"sigma": [1.0, -1.0]}, "sigma of characteristic_time must be above 0"),
        ({"sigma": [1.0, 1.0, 1.0]}, "sigma of characteristic_time must be one number, 2 of them"),
        ({"sigma": [[1.0, 1.0]] * 4 + [[2.0, 1.0]]}, "sigma of characteristic_time must be the same for all arms"),
        ({"sigma": INF}, "sigma of characteristic_time must be finite"),
        ({"contexts": np.eye(4)}, "contexts of characteristic_time must be one row for each of 5 arms, got 4"),
        ({"contexts": np.ones(5)}, r"contexts of characteristic_time must have shape \(K, d\)"),
        ({"contexts": np.ones((5, 1))}, "means of characteristic_time must be linear in contexts, got means up to"),
        ({"means": [*S5.tolist(), [1e9, -1e9]]}, "the smallest gap of characteristic_time must"),
    ],
)
def test_bad_arguments_of_characteristic_time(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{message}"):
        ps.theory.characteristic_time(**{"means": S5, "sigma": 1.0, **wrong})


@pytest.mark.parametrize("delta", [0, 0.5, 1, NAN])
def test_bad_delta_of_lower_bound(delta: float) -> None:
    with pytest.raises(InvalidInput, match=r"delta of lower_bound must be a finite number above 0 and below 0.5"):
        ps.theory.characteristic_time([[1.0]], sigma=1).lower_bound(delta)


def test_input_is_not_changed() -> None:
    means, contexts = S5.copy(), S5_CONTEXTS.copy()
    means.setflags(write=False)
    contexts.setflags(write=False)
    ps.theory.characteristic_time(means, sigma=2.0, contexts=contexts)
    ps.theory.characteristic_time(means, sigma=[2.0, 3.0])
    for bound in BOUNDS:
        bound(means, sigma=1, delta=0.1, eps=0)
    np.testing.assert_array_equal(means, S5)
