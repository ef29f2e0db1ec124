"""The twins of naive.py against the golden traces of the literature notes and against algebra."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from naive import Array, Event, NaiveMultiPFI, NaivePFIwR, context_basis

S5_X = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0.5], [0.6, 0.05, 0.25]])
S5_THETA = np.array([[0.8, 0.1], [0.2, 0.75], [0.4, 0.4]])
S5 = S5_X @ S5_THETA


def run_multipfi(algorithm: NaiveMultiPFI, means: Array, limit: int = 5000) -> NaiveMultiPFI:
    while not algorithm.done and algorithm.samples < limit:
        arm = algorithm.choose()
        algorithm.update(arm, means[arm])
    return algorithm


def decisions(events: list[Event]) -> list[Event]:
    return [event for event in events if event[1] != "P1"]


# Arms count from 0 here: arm k of the notes is k - 1.
S5_TRACES: list[tuple[float, list[Event], list[int]]] = [
    (
        0.0,
        [(19, "drop", 2), (75, "accept", 1), (101, "drop", 4), (126, "accept", 0), (126, "accept", 3)],
        [126, 75, 19, 126, 101],
    ),
    (
        0.05,
        [(19, "drop", 2), (35, "accept", 1), (51, "accept", 0), (101, "drop", 4), (101, "accept", 3)],
        [51, 35, 19, 101, 101],
    ),
    (
        0.15,
        [(12, "accept", 1), (15, "accept", 0), (19, "drop", 2), (101, "drop", 4), (101, "accept", 3)],
        [15, 12, 19, 101, 101],
    ),
    (
        0.3,
        [(4, "accept", 1), (5, "accept", 0), (19, "drop", 2), (29, "accept", 3), (29, "accept", 4)],
        [5, 4, 19, 29, 29],
    ),
]


@pytest.mark.parametrize(("eps", "events", "pulls"), S5_TRACES)
def test_multipfi_on_noise_free_s5(eps: float, events: list[Event], pulls: list[int]) -> None:
    algorithm = run_multipfi(NaiveMultiPFI(5, 2, eps, 0.1, 0.1), S5)
    assert decisions(algorithm.events) == events
    assert algorithm.pulls == pulls
    assert algorithm.samples == sum(pulls) == {0.0: 447, 0.05: 307, 0.15: 248, 0.3: 86}[eps]
    assert algorithm.front == [arm for _, kind, arm in events if kind == "accept"]
    assert algorithm.dropped == {arm: 3 for _, kind, arm in events if kind == "drop"}
    if eps == 0:
        assert (10, "P1", 3) in algorithm.events


@pytest.mark.parametrize(("eps", "events", "pulls"), S5_TRACES)
def test_pulling_everyone_decides_the_same_in_the_same_rounds(
    eps: float, events: list[Event], pulls: list[int]
) -> None:
    algorithm = run_multipfi(NaiveMultiPFI(5, 2, eps, 0.1, 0.1, everyone=True), S5)
    assert decisions(algorithm.events) == events
    assert algorithm.pulls == [max(pulls)] * 5


def test_multipfi_with_two_arms() -> None:
    algorithm = run_multipfi(NaiveMultiPFI(2, 2, 0.1, 0.1, 1.0), np.array([[1.0, 1.0], [0.0, 0.0]]))
    assert algorithm.events == [(94, "P1", 0), (117, "drop", 1), (117, "accept", 0)]
    assert algorithm.samples == 234
    assert algorithm.dropped == {1: 0}
    with pytest.raises(RuntimeError):
        algorithm.choose()


@pytest.mark.parametrize(("n", "beta"), [(1, 3.461637), (10, 1.455791), (100, 0.551395), (1000, 0.199033)])
def test_multipfi_width(n: int, beta: float) -> None:
    algorithm = NaiveMultiPFI(5, 2, 0.0, 0.1, [1.0, 2.0])
    algorithm.outcomes[3] = [np.zeros(2)] * n
    np.testing.assert_allclose(algorithm.beta(3), [beta, 2 * beta], rtol=0, atol=1.1e-6)


def test_metrics_may_have_units_of_their_own() -> None:
    plain = run_multipfi(NaiveMultiPFI(5, 2, 0.05, 0.1, 0.1), S5)
    scaled = run_multipfi(NaiveMultiPFI(5, 2, [0.05, 50.0], 0.1, [0.1, 100.0]), S5 * [1.0, 1000.0])
    assert scaled.events == plain.events


def test_multipfi_uses_the_count_of_each_arm() -> None:
    def width(n: int) -> float:
        return math.sqrt(2 * math.log(4 * 2 * 1 * n**2 / 0.1) / n)

    gap = 1.01 * (width(1) + width(400))
    assert gap < 2 * width(1)
    algorithm = NaiveMultiPFI(2, 1, 0.0, 0.1, 1.0)
    for _ in range(400):
        algorithm.update(1, [gap])
    assert algorithm.choose() == 0
    assert not algorithm.events
    algorithm.update(0, [0.0])  # ends round 1
    assert algorithm.events == [(1, "drop", 0), (1, "P1", 1), (1, "accept", 1)]


# ---------------------------------------------------------------------- PFIwR


def run_pfiwr(
    algorithm: NaivePFIwR,
    theta: Array,
    rounds: int,
    seed: int = 0,
    noise: float = 0.0,
    unmatched: tuple[int, ...] | None = None,
) -> NaivePFIwR:
    """Play rounds; `unmatched`, if given, says which of them have no match in place of the draw."""
    rng = np.random.default_rng(seed)
    world = np.random.default_rng(seed + 1000)
    for _ in range(rounds):
        if algorithm.done:
            break
        arm = algorithm.choose(rng)
        assert algorithm.drawn is not None
        if unmatched is not None:
            algorithm.drawn.matched = algorithm.drawn.t not in unmatched
        algorithm.update(algorithm.x[arm] @ theta + noise * world.standard_normal(algorithm.L))
    return algorithm


def pfiwr_s5(**constants: Any) -> NaivePFIwR:
    return NaivePFIwR(S5_X, 2, 0.05, 0.1, 0.1, 1.0, **constants)


def test_unit_contexts_have_the_unit_basis() -> None:
    s, U, V = context_basis(np.eye(4))
    for part, expected in ((s, np.ones(4)), (U, np.eye(4)), (V, np.eye(4))):
        np.testing.assert_array_equal(part, expected)
    s, U, V = context_basis(np.array([[2.0, 0.0], [0.0, 3.0], [0.0, 4.0]]))
    np.testing.assert_array_equal(s, [2.0, 5.0])
    np.testing.assert_array_equal(U, np.eye(2))
    np.testing.assert_allclose(V, [[1.0, 0.0], [0.0, 0.6], [0.0, 0.8]], rtol=1e-15)
    with pytest.raises(ValueError, match="span"):
        context_basis(np.array([[1.0, 1.0], [2.0, 2.0]]))


def test_basis_of_s5() -> None:
    s, U, V = context_basis(S5_X)
    np.testing.assert_allclose(s, [1.437338, 1.053118, 1.0], atol=1e-6)
    np.testing.assert_allclose(np.abs(V).sum(axis=0), [2.176380, 1.968924, 1.613118], atol=1e-6)
    np.testing.assert_allclose(U @ np.diag(s) @ V.T, S5_X.T, atol=1e-12)


def test_linear_basis_is_unbiased() -> None:
    algorithm = pfiwr_s5()
    np.testing.assert_allclose(sum(np.outer(b, b) for b in algorithm.b), S5_X.T @ S5_X, atol=1e-12)
    for i in range(3):
        v = algorithm.v[i]
        expected = sum(algorithm.pi(i)[k] * np.abs(v).sum() * np.sign(v[k]) * S5[k] for k in range(5))
        np.testing.assert_allclose(expected, algorithm.b[i] @ S5_THETA, atol=1e-12)


def test_drawing_from_the_basis() -> None:
    algorithm = NaivePFIwR([[0.0, 1.0], [3.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 1, 0.1, 0.1, 1.0, 1.0)
    assert [algorithm.draw_from_basis(0, u) for u in (0.0, 0.7499, 0.75, 0.9999, 1.0)] == [1, 1, 2, 2, 2]
    assert [algorithm.draw_from_basis(1, u) for u in (0.0, 0.49, 0.51, 1.0)] == [0, 0, 3, 3]


def test_widths_of_unit_contexts() -> None:
    algorithm = NaivePFIwR(np.eye(3), 2, 0.1, 0.1, [1.0, 2.0], 0.5, width_scale=0.7)
    for t in (1, 7, 100):
        few = [0.5 + 3 * sigma * math.sqrt(math.log(28 * 2 * 3 * t**2 / 0.1)) for sigma in (1, 2)]
        expected = 0.7 * 3 / math.sqrt(t + 1) * np.array(few)
        np.testing.assert_allclose(algorithm.confidence(t), [expected] * 3, rtol=1e-12)


def test_widths_of_more_arms_than_dimensions() -> None:
    algorithm = pfiwr_s5()
    t = 20
    norms = np.sqrt(np.diag(S5_X @ np.linalg.inv(t * S5_X.T @ S5_X + np.eye(3)) @ S5_X.T))
    many = 3 * norms * (1.0 + 0.1 * math.sqrt(3 * math.log(7 * 2 * t / 0.1)))
    few = 3 * norms * (1.0 + 0.3 * math.sqrt(math.log(28 * 2 * 3 * t**2 / 0.1)))
    np.testing.assert_allclose(algorithm.confidence(t)[:, 1], many, rtol=1e-12)
    algorithm.active = [0, 1, 3]  # |A| = d is already "few"
    np.testing.assert_allclose(algorithm.confidence(t)[:, 1], few, rtol=1e-12)


def test_with_the_printed_constant_every_round_explores() -> None:
    algorithm = run_pfiwr(pfiwr_s5(), S5_THETA, 100, noise=0.1)
    assert all(algorithm.explored)
    assert algorithm.arms == [r.a_check for r in algorithm.rounds]


def test_exploration_only_and_always_matched_makes_both_estimates_equal() -> None:
    algorithm = run_pfiwr(pfiwr_s5(check_every=10**9), S5_THETA, 80, noise=0.1, unmatched=())
    assert all(algorithm.explored)
    np.testing.assert_allclose(algorithm.theta_hat, algorithm.theta_check, rtol=0, atol=1e-9)


@pytest.mark.parametrize("imputation", ["latest", "frozen"])
def test_closed_form_of_the_dr_mix_estimate(imputation: str) -> None:
    algorithm = pfiwr_s5(C=0.01, imputation=imputation, check_every=10**9)
    run_pfiwr(algorithm, S5_THETA, 120, noise=0.1, unmatched=(1, 4, 50, 51))
    assert algorithm.matched.count(False) == 4
    assert 5 < sum(algorithm.explored) < 115
    used = [r for r in algorithm.rounds if r.matched]
    S = S5_X.T @ S5_X
    G = sum(np.outer(S5_X[r.arm], S5_X[r.arm]) for r in used)
    moment = sum(np.outer(S5_X[r.arm], r.outcome) for r in used)
    if imputation == "latest":
        imputed = (len(used) * S - G) @ algorithm.theta_check
    else:
        imputed = sum((S - np.outer(S5_X[r.arm], S5_X[r.arm])) @ r.theta_check for r in used)
    expected = np.linalg.solve(len(used) * S + G + np.eye(3), imputed + 2 * moment)
    np.testing.assert_allclose(algorithm.theta_hat, expected, rtol=0, atol=1e-9)


def test_imputations_differ_on_the_same_rounds() -> None:
    algorithm = run_pfiwr(pfiwr_s5(C=0.01, check_every=10**9), S5_THETA, 100, noise=0.1)
    assert not all(algorithm.explored)
    latest = algorithm.dr_mix()
    algorithm.imputation = "frozen"
    assert np.abs(latest - algorithm.dr_mix()).max() > 1e-3


def test_small_constant_exploits_and_reuses_evenly() -> None:
    algorithm = run_pfiwr(pfiwr_s5(C=0.001, check_every=10**9), S5_THETA, 200, noise=0.1)
    assert 5 <= sum(algorithm.explored) < 100
    checked = 0
    counts: dict[int, dict[int, int]] = {k: {} for k in range(5)}
    joined = dict.fromkeys(range(5), 0)  # the reuse count of the pool when its last sample joined
    for r in algorithm.rounds:
        pool = counts[r.a_check]
        if r.explored:
            joined[r.a_check] = max(pool.values(), default=0)
            pool[r.t] = 0
            continue
        lowest = min(pool.values())
        assert pool[r.n_check] == lowest  # the least used,
        assert r.n_check == min(n for n, count in pool.items() if count == lowest)  # the earliest of these
        pool[r.n_check] += 1
        if min(pool.values()) >= joined[r.a_check]:  # the new sample has caught up
            checked += 1
            assert max(pool.values()) - min(pool.values()) <= 1
    assert checked > 20


def test_exploration_rule_by_hand() -> None:
    algorithm = run_pfiwr(pfiwr_s5(C=0.001, check_every=10**9), S5_THETA, 150)
    pulled, drawn = [0] * 5, [0] * 5
    for r in algorithm.rounds:
        drawn[r.a_check] += 1
        gamma = 0.001 * 27 * math.log(6 * r.t**2 / 0.1)
        assert r.explored == (pulled[r.a_check] <= gamma / r.t * drawn[r.a_check])
        pulled[r.a_check] += r.explored
    assert min(pulled) > 0  # the first draw of an arm always explores


def test_mixing_of_unit_contexts_without_noise_is_exact() -> None:
    theta = np.array([[1.0, 0.2], [0.1, 0.9], [0.5, 0.5]])
    algorithm = NaivePFIwR(np.eye(3), 2, 0.1, 0.1, 0.1, 1.0, C=0.001, check_every=10**9)
    run_pfiwr(algorithm, theta, 150)
    mixed = [r for r in algorithm.rounds if not r.explored]
    assert len(mixed) > 50
    for r in mixed:
        assert r.mixed_x is not None
        assert r.mixed_y is not None
        np.testing.assert_allclose(r.mixed_y, r.mixed_x @ theta, atol=1e-12)
        assert abs(r.w) <= math.sqrt(3)
    np.testing.assert_allclose(algorithm.theta_check, theta, atol=0.05)


def test_draws_come_in_the_agreed_order() -> None:
    algorithm = pfiwr_s5(C=0.001, check_every=10**9)
    rng, copy = np.random.default_rng(5), np.random.default_rng(5)
    kinds = set()
    for t in range(1, 80):
        front = algorithm.estimated_front()
        arm = algorithm.choose(rng)
        now = algorithm.drawn
        assert now is not None
        kinds.add(now.explored)
        assert now.i == int(copy.random() * 3)
        assert now.a_check == algorithm.draw_from_basis(now.i, copy.random())
        if not now.explored:
            assert arm == front[int(copy.random() * len(front))]
            assert now.w == math.sqrt(3) * (2 * copy.random() - 1)
            assert now.w_check == math.sqrt(3) * (2 * copy.random() - 1)
        assert now.matched == (copy.random() >= 0.1 / (t + 1) ** 2)
        algorithm.update(S5[arm])
    assert kinds == {True, False}
    assert rng.random() == copy.random()


def test_without_a_match_nothing_is_decided() -> None:
    algorithm = pfiwr_s5(width_scale=1e-6)
    algorithm.choose(np.random.default_rng(0))
    assert algorithm.drawn is not None
    algorithm.drawn.matched = False
    algorithm.update([3.0, 4.0])
    assert not algorithm.theta_hat.any()
    assert algorithm.theta_check.any()
    assert algorithm.active == [0, 1, 2, 3, 4]
    assert np.isinf(algorithm.widths).all()


def test_checks_keep_their_distance() -> None:
    algorithm = pfiwr_s5(check_every=7)
    rng = np.random.default_rng(0)
    tested: list[int] = []
    for t in range(1, 60):
        arm = algorithm.choose(rng)
        assert algorithm.drawn is not None
        algorithm.drawn.matched = t not in (7, 8, 30)
        algorithm.update(S5[arm])
        if algorithm.last_test == t:
            tested.append(t)
    assert tested == [9, 16, 23, 31, 38, 45, 52, 59]


def test_pfiwr_finds_the_front_without_noise() -> None:
    algorithm = run_pfiwr(pfiwr_s5(width_scale=0.05, check_every=20), S5_THETA, 1000)
    assert algorithm.done
    assert algorithm.front == {0, 1, 3}
    assert algorithm.dropped == {2, 4}
    assert sorted(arm for _, _, arm in algorithm.events) == [0, 1, 2, 3, 4]
    with pytest.raises(RuntimeError):
        algorithm.choose(np.random.default_rng(0))


def test_a_given_basis_is_used() -> None:
    s, U, V = context_basis(S5_X)
    flipped = run_pfiwr(pfiwr_s5(C=0.01, basis=(s, -U, -V)), S5_THETA, 60, noise=0.1)
    plain = run_pfiwr(pfiwr_s5(C=0.01, basis=(s, U, V)), S5_THETA, 60, noise=0.1)
    default = run_pfiwr(pfiwr_s5(C=0.01), S5_THETA, 60, noise=0.1)
    np.testing.assert_array_equal(default.theta_hat, plain.theta_hat)
    assert [r.a_check for r in flipped.rounds] == [r.a_check for r in plain.rounds]
    with pytest.raises(ValueError, match="contexts"):
        pfiwr_s5(basis=(s, U, -V))
