"""The public estimators: equal to the formulas, to pfiwr, unbiased where they are said to be; bad input is refused."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import MORE
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoscout.algorithms import PFIwR, Setup
from paretoscout.errors import InvalidInput
from paretoscout.estimators import DRMix, DRRidge, Estimator, ExplorationMixed, LeastSquares, Ridge, estimate, update
from paretoscout.kernels import dr_mix, estimator_state
from paretoscout.kernels.compile import kernel
from paretoscout.kernels.decisions import DOMINATED
from paretoscout.session import Session
from paretoscout.streams import algorithm_stream

Array = npt.NDArray[np.float64]

TOLERANCE = 1e-9


def contexts_of(kind: str) -> Array:
    rng = np.random.default_rng(8)
    contexts: Array
    if kind == "unit vectors":
        contexts = np.eye(4)
    elif kind == "scaled unit vectors, repeated":
        contexts = np.vstack([np.diag([1.0, 0.5, 2.0]), np.diag([0.3, 0.9, 0.7])])
    elif kind == "block structure":  # sparse and not orthogonal: exercises the reach of the factors
        contexts = np.zeros((8, 4))
        contexts[:4, :2], contexts[4:, 2:] = rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    elif kind == "zero context":
        contexts = np.vstack([np.eye(3), np.zeros((1, 3)), [[0.5, 0.5, 0.0]]])
    elif kind == "one arm":
        contexts = np.array([[0.7]])
    else:
        contexts = rng.normal(size=(40, 3))
    return contexts


KINDS = ["unit vectors", "scaled unit vectors, repeated", "block structure", "zero context", "one arm", "many arms"]


# ---------------------------------------------------------------------- twins: the equations, over the whole history


@dataclass
class Round:
    arm: int
    outcome: Array  # (L,)
    explored: bool
    matched: bool = True
    i: int = -1  # what was drawn to mix it
    c: int = -1
    w: float = 0.0
    w_check: float = 0.0


class Twin:
    """All estimates of the rounds so far, summed again whenever they are asked for."""

    def __init__(self, contexts: Array, L: int) -> None:
        s, U, V = dr_mix.linear_basis(contexts)  # whose singular vectors are meant; test_twins.py checks that they are
        self.x, self.L, self.d = contexts, L, contexts.shape[1]
        self.b, self.v = [s[i] * U[:, i] for i in range(self.d)], V.T
        self.rounds: list[Round] = []

    def regression(self, data: list[tuple[Array, Array]], ridge: float) -> Array:
        gram, moment = ridge * np.eye(self.d), np.zeros((self.d, self.L))
        for x, y in data:
            gram += np.outer(x, x)
            moment += np.outer(x, y)
        return np.asarray(np.linalg.solve(gram, moment))

    def sampled(self, rounds: list[Round]) -> list[tuple[Array, Array]]:
        return [(self.x[r.arm], r.outcome) for r in rounds]

    def mixed(self, rounds: list[Round]) -> list[tuple[Array, Array]]:
        """Eqs. (mix_number) and (mixup_data)."""
        data, uses = [], [0] * len(rounds)
        for t, r in enumerate(rounds):
            if r.explored:
                data.append((self.x[r.arm], r.outcome))
                continue
            pool = [n for n in range(t) if rounds[n].explored and rounds[n].arm == r.c]
            n = min(pool, key=lambda n: (uses[n], n))
            uses[n] += 1
            scale = np.abs(self.v[r.i]).sum() * np.sign(self.v[r.i][r.c])
            x = r.w * self.x[r.arm] + r.w_check * self.b[r.i]
            data.append((x, r.w * r.outcome + r.w_check * scale * rounds[n].outcome))
        return data

    def least_squares(self) -> Array:
        if np.linalg.matrix_rank(self.x[[r.arm for r in self.rounds]]) < self.d:
            return np.full((self.d, self.L), np.nan)
        return self.regression(self.sampled(self.rounds), 0.0)

    def ridge(self, rounds: list[Round] | None = None) -> Array:
        return self.regression(self.sampled(self.rounds if rounds is None else rounds), 1.5)

    def exploration_mixed(self, rounds: list[Round] | None = None) -> Array:
        """Eq. (mixup)."""
        return self.regression(self.mixed(self.rounds if rounds is None else rounds), 0.5)

    def doubly_robust(self, impute: Callable[[list[Round]], Array], frozen: bool) -> Array:
        """Eqs. (pseudoY) and (estimator): all d + 1 rewards of each matched round up to the last one that matched."""
        last = max((t for t, r in enumerate(self.rounds) if r.matched), default=-1)
        data = []
        for t, r in enumerate(self.rounds[: last + 1]):
            if r.matched:
                theta = impute(self.rounds[: (t if frozen else last) + 1])
                observed = self.x[r.arm] @ theta
                data += [(b, b @ theta) for b in self.b]
                data.append((self.x[r.arm], observed + (r.outcome - observed) / 0.5))
        return self.regression(data, 1.0)


ESTIMATORS: dict[str, tuple[Callable[..., Any], Callable[[Twin], Array]]] = {
    "least squares": (lambda x, seed: LeastSquares(x, 2), Twin.least_squares),
    "ridge": (lambda x, seed: Ridge(x, 2, ridge=1.5), Twin.ridge),
    "exploration-mixed": (lambda x, seed: ExplorationMixed(x, 2, seed=seed), Twin.exploration_mixed),
    "DR-ridge": (
        lambda x, seed: DRRidge(x, 2, ridge=1.5, delta=0.99, seed=seed),
        lambda twin: twin.doubly_robust(twin.ridge, frozen=False),
    ),
    "DR-ridge, frozen": (
        lambda x, seed: DRRidge(x, 2, ridge=1.5, delta=0.99, seed=seed, imputation="frozen"),
        lambda twin: twin.doubly_robust(twin.ridge, frozen=True),
    ),
    "DR-mix": (
        lambda x, seed: DRMix(x, 2, delta=0.99, seed=seed),
        lambda twin: twin.doubly_robust(twin.exploration_mixed, frozen=False),
    ),
    "DR-mix, frozen": (
        lambda x, seed: DRMix(x, 2, delta=0.99, seed=seed, imputation="frozen"),
        lambda twin: twin.doubly_robust(twin.exploration_mixed, frozen=True),
    ),
}


def drawn(twin: Twin, rng: np.random.Generator, arm: int, outcome: Array, explored: bool, dr: bool) -> Round:
    """A round with what is random about it, drawn in the agreed order."""
    r = Round(arm, outcome, explored)
    if not explored:
        r.i = min(int(rng.random() * twin.d), twin.d - 1)
        pi = np.abs(twin.v[r.i]) / np.abs(twin.v[r.i]).sum()
        r.c = int(np.argmax(np.cumsum(pi) > rng.random()))
        r.w = math.sqrt(3) * (2 * rng.random() - 1)
        r.w_check = math.sqrt(3) * (2 * rng.random() - 1)
    if dr:
        t = len(twin.rounds) + 1
        r.matched = rng.random() >= 0.99 / (t + 1) ** 2
    return r


@pytest.mark.kernels
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_equal_the_formulas(name: str, kind: str) -> None:
    contexts = contexts_of(kind)
    K, d = contexts.shape
    theta = np.random.default_rng(2).normal(size=(d, 2))
    make, formula = ESTIMATORS[name]
    unmatched = 0
    for seed in (5, 10):
        estimator, twin = make(contexts, seed), Twin(contexts, 2)
        rng, noise = algorithm_stream(seed), np.random.default_rng(seed)
        mixes = estimator.constants.mixes
        for t in range(K + 40):
            arm = t if t < K else int(noise.integers(K))
            explored = not mixes or t < K or t % 5 == 0
            outcome = contexts[arm] @ theta + 0.1 * noise.standard_normal(2)
            estimator.update(arm, outcome, **({"explored": explored} if mixes else {}))
            twin.rounds.append(drawn(twin, rng, arm, outcome, explored, estimator.constants.doubly_robust))
            if t < 3 or t % 9 == 0 or not twin.rounds[-1].matched:
                np.testing.assert_allclose(estimator.theta, formula(twin), atol=TOLERANCE, rtol=0)
        means = contexts @ formula(twin)
        np.testing.assert_allclose(estimator.means, means, atol=TOLERANCE, rtol=0)
        if mixes or estimator.constants.doubly_robust:
            assert estimator.rng.bit_generator.state == rng.bit_generator.state
        assert estimator.rounds == K + 40
        unmatched += sum(not r.matched for r in twin.rounds)
    if estimator.constants.doubly_robust:
        assert unmatched  # the comparison has seen rounds that were left out


@pytest.mark.kernels
@pytest.mark.parametrize("imputation", ["latest", "frozen"])
@pytest.mark.parametrize("kind", ["unit vectors", "many arms"])
def test_the_estimates_are_those_that_pfiwr_decides_by(kind: str, imputation: str) -> None:
    """Fed with the rounds of a run of pfiwr, and with what it drew: bit for bit."""
    contexts = contexts_of(kind)
    theta = np.random.default_rng(1).normal(size=(contexts.shape[1], 2))
    setup = Setup(
        *(len(contexts), 2), eps=np.zeros(2), delta=0.1, sigma=np.full(2, 0.1), contexts=contexts, theta_max=1.0
    )
    session = Session(PFIwR(exploration=0.002, imputation=imputation, width_scale=2.0), setup, seed=3)
    estimator = DRMix(contexts, 2, imputation=imputation, delta=0.1)
    mixed = ExplorationMixed(contexts, 2)
    estimator.reserve(300)
    mixed.reserve(300)
    noise = np.random.default_rng(5)
    kinds = set()
    for t in range(300):
        question = session.ask()
        if t % 17 == 5:
            question.ticket[dr_mix.MATCHES] = 0.0
        outcome = contexts[question.arm] @ theta + 0.1 * noise.standard_normal(2)
        session.tell(question, outcome)
        for one in (estimator, mixed):
            estimator_state.take_in(one.state, one.constants, question.arm, outcome, question.ticket)
        kinds.add((question.ticket[dr_mix.EXPLORES], question.ticket[dr_mix.MATCHES]))
        if t % 10 == 0:
            verdicts = session.verdicts()
            standing = verdicts.status != DOMINATED
            np.testing.assert_array_equal(estimator.means[standing], verdicts.estimates[standing])
            np.testing.assert_array_equal(estimator.state.theta_hat, session.state.theta_hat)
            if imputation == "frozen" and question.ticket[dr_mix.MATCHES]:
                estimate(mixed.state, mixed.constants)
                np.testing.assert_array_equal(mixed.state.theta_hat, session.state.theta_check)
    assert len(kinds) == 4


def rounds_of(contexts: Array, n: int, seed: int = 0) -> tuple[npt.NDArray[np.int64], Array, npt.NDArray[np.bool_]]:
    """All arms explored in turn, then random rounds, a fifth of which explore."""
    rng = np.random.default_rng(seed)
    K, d = contexts.shape
    arms = np.concatenate([np.arange(K), rng.integers(K, size=n - K)])
    outcomes = contexts[arms] @ rng.normal(size=(d, 2)) + 0.1 * rng.standard_normal((n, 2))
    explored = (np.arange(n) < K) | (rng.random(n) < 0.2)
    return arms, outcomes, explored


@pytest.mark.parametrize("name", ESTIMATORS)
def test_many_rounds_at_once_are_the_same_rounds(name: str) -> None:
    contexts = contexts_of("many arms")
    arms, outcomes, explored = rounds_of(contexts, 100)
    together, followed, apart = (ESTIMATORS[name][0](contexts, 7) for _ in range(3))

    def extra(part: Any) -> dict[str, Any]:
        return {"explored": explored[part]} if together.constants.mixes else {}

    together.update(arms, outcomes, **extra(slice(None)))
    path = followed.path(arms, outcomes, **extra(slice(None)))
    assert path.shape == (100, 40, 2)
    for t in range(100):
        if t % 2:
            one_path = apart.path(int(arms[t]), outcomes[t], **extra(t))
            np.testing.assert_array_equal(one_path, path[t])
        else:
            apart.update([arms[t]], outcomes[t : t + 1], **extra(slice(t, t + 1)))
            np.testing.assert_array_equal(apart.means, path[t])
    for other in (followed, apart, copy.deepcopy(apart)):
        np.testing.assert_array_equal(together.theta, other.theta)
    np.testing.assert_array_equal(together.means, path[-1])


@pytest.mark.kernels
def test_the_functions_work_inside_compiled_loops() -> None:
    @kernel
    def follow(state: Any, constants: Any, rng: Any, arms: Any, outcomes: Any, explored: Any, path: Any) -> None:
        for t in range(arms.shape[0]):
            update(state, constants, arms[t], outcomes[t], explored[t], rng)
            estimate(state, constants)
            for k in range(path.shape[1]):
                path[t, k] = state.estimates[k, 0]

    contexts = contexts_of("block structure")
    arms, outcomes, explored = rounds_of(contexts, 60)
    looped, called = DRMix(contexts, 2, seed=1, delta=0.1), DRMix(contexts, 2, seed=1, delta=0.1)
    looped.reserve(60)
    path = np.empty((60, len(contexts)))
    follow(looped.state, looped.constants, looped.rng, arms, outcomes, explored, path)
    np.testing.assert_array_equal(path, called.path(arms, outcomes, explored=explored)[:, :, 0])
    np.testing.assert_array_equal(looped.theta, called.theta)

    never_explored = DRMix(np.eye(1), 2, delta=0.1)
    never_explored.reserve(1)
    with pytest.raises(IndexError, match="never explored"):
        update(never_explored.state, never_explored.constants, 0, np.zeros(2), False, never_explored.rng)


# ---------------------------------------------------------------------- what is unbiased, and what is not

SHAPES = [(1, 1), (3, 3), (7, 3), (50, 5), (2000, 3), (3000, 8)]


def random_contexts(shape: tuple[int, int], seed: int) -> tuple[Array, Array]:
    """Contexts of uneven lengths and directions, and one column of parameters."""
    rng = np.random.default_rng(seed)
    K, d = shape
    contexts = rng.normal(size=(K, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)
    return contexts * rng.exponential(size=(K, 1)), rng.normal(size=(d, 1))


@settings(max_examples=40 * MORE)
@given(st.sampled_from(SHAPES), st.integers(0, 2**32 - 1))
def test_basis_rewards_have_the_means_of_the_context_basis(shape: tuple[int, int], seed: int) -> None:
    """Eq. (linear_basis), without chance: the probabilities and weights that are drawn with give X v_i = s_i u_i."""
    contexts, _ = random_contexts(shape, seed)
    constants = ExplorationMixed(contexts).constants
    s, U, _ = dr_mix.linear_basis(contexts)
    pi = np.diff(constants.cumulative, axis=1, prepend=0.0)
    assert (pi >= 0).all()
    basis = (pi * constants.signed_norms) @ contexts
    np.testing.assert_allclose(basis, (s * U).T, atol=1e-9 * s.max(), rtol=0)


@kernel
def draw_mixed(
    state: Any, constants: Any, arm: int, theta: Any, rng: Any, outcome: Any, rewards: Any, x: Any, y: Any
) -> None:
    """Basis rewards less their means, mixed contexts and mixed rewards, each from samples of its own."""
    ticket = state.ticket
    for n in range(x.shape[0]):
        c = dr_mix.draw_from_basis(constants.cumulative, rng, ticket)
        dr_mix.draw_weights(rng, ticket)
        i = int(ticket[dr_mix.BASIS])
        outcome[0] = 2.0 * rng.random() - 1.0
        for j in range(theta.shape[0]):
            outcome[0] += constants.contexts[c, j] * theta[j, 0]
        dr_mix.add_to_pool(state, c, outcome)  # the least reused sample of arm c
        rewards[n, i] = constants.signed_norms[i, c] * outcome[0] - math.sqrt(constants.lambdas[i]) * theta[i, 0]
        outcome[0] = 2.0 * rng.random() - 1.0
        for j in range(theta.shape[0]):
            outcome[0] += constants.contexts[arm, j] * theta[j, 0]
        w, w_check = ticket[dr_mix.WEIGHT], ticket[dr_mix.WEIGHT_CHECK]
        dr_mix.mixup_data(state, constants, arm, outcome, i, c, w, w_check, x[n], y[n])


def surely_not_zero(columns: Array, span: Array | float, alpha: float = 1e-10) -> npt.NDArray[np.bool_]:
    """Columns whose mean is not 0, wrongly with probability alpha at most: the bound of Maurer and Pontil (2009).

    Rows are independent; each column lies in an interval of length `span`.
    """
    n = len(columns)
    log = math.log(4 / alpha)
    width = np.sqrt(2 * columns.var(axis=0, ddof=1) * log / n) + 7 * span * log / (3 * (n - 1))
    return np.asarray(np.abs(columns.mean(axis=0)) > width)


def biased(contexts: Array, theta: Array, seed: int, constants: Any = None, n: int = 40_000) -> dict[str, bool]:
    """Which statements on basis rewards and mixed rounds are refuted by drawing them."""
    estimator = ExplorationMixed(contexts, 1, seed=seed)
    estimator.reserve(n)
    constants = estimator.constants if constants is None else constants
    K, d = contexts.shape
    arm = seed % K
    rotated = np.linalg.lstsq(constants.contexts, contexts @ theta, rcond=None)[0]
    rewards, x, y = np.zeros((n, d)), np.empty((n, d)), np.empty((n, 1))
    draw_mixed(estimator.state, constants, arm, rotated, estimator.rng, np.empty(1), rewards, x, y)
    residual = y - x @ rotated
    gram = np.outer(constants.contexts[arm], constants.contexts[arm]) + np.diag(constants.lambdas) / d

    # how far each of these can be from its mean
    largest = np.abs(contexts @ theta).max() + 1
    reward = np.abs(constants.signed_norms).max(axis=1) * largest + np.sqrt(constants.lambdas) * np.abs(rotated[:, 0])
    error = math.sqrt(3) * (1 + reward.max())
    length = math.sqrt(3) * (np.abs(constants.contexts[arm]) + np.sqrt(constants.lambdas))
    products = (x[:, :, None] * x[:, None, :] - gram).reshape(n, d * d)
    return {
        "basis rewards": bool(surely_not_zero(rewards, 2 * reward).any()),
        "mixed rewards": bool(surely_not_zero(residual, 2 * error).any()),
        "normal equations": bool(surely_not_zero(x * residual, 2 * length * error).any()),
        "gram": bool(surely_not_zero(products, 2 * np.outer(length, length).ravel()).any()),
    }


@settings(max_examples=20 * MORE)
@given(st.sampled_from(SHAPES), st.integers(0, 2**32 - 1))
def test_mixed_rewards_are_unbiased(shape: tuple[int, int], seed: int) -> None:
    """Lemma 1: E[y - x' theta] = 0, E[x x'] = x_a x_a' + X X' / d; and E[x (y - x' theta)] = 0, which regression needs.

    At most 81 means in each of 20 examples, each falsely refuted with probability 1e-10: a false alarm in 2e-7.
    """
    assert not any(biased(*random_contexts(shape, seed), seed).values())


@pytest.mark.parametrize("shape", SHAPES[3:5])
def test_a_wrong_norm_or_sign_would_be_noticed(shape: tuple[int, int]) -> None:
    """||v||_2 in place of ||v||_1, as eq. (mixup_data) may be read, and signs left out. Lemma 1 alone does not tell."""
    contexts, theta = random_contexts(shape, 5)
    constants = ExplorationMixed(contexts).constants
    shorter = constants.signed_norms / np.abs(constants.signed_norms).max(axis=1, keepdims=True)
    for wrong in (shorter, np.abs(constants.signed_norms)):
        found = biased(contexts, theta, 5, constants._replace(signed_norms=wrong), n=200_000)
        assert found == {"basis rewards": True, "mixed rewards": False, "normal equations": True, "gram": False}


def test_what_is_said_of_bias_without_noise() -> None:
    """Exact outcomes leave the bias alone: none, that of the ridge, one that fades."""
    contexts = contexts_of("block structure")
    arms, _, explored = rounds_of(contexts, 80)
    theta = np.array([[1.0], [-2.0], [0.5], [1.0]])
    outcomes = contexts[arms] @ theta
    least_squares, ridge = LeastSquares(contexts), Ridge(contexts, ridge=3.0)
    half, dr_half = Ridge(contexts, ridge=0.5), DRRidge(contexts, ridge=0.5, delta=0.0)
    for one in (least_squares, ridge, half, dr_half):
        one.update(arms, outcomes)
    np.testing.assert_allclose(least_squares.theta, theta, atol=TOLERANCE)
    gram = contexts[arms].T @ contexts[arms]
    np.testing.assert_allclose(ridge.theta, theta - 3 * np.linalg.solve(gram + 3 * np.eye(4), theta), atol=TOLERANCE)
    np.testing.assert_allclose(dr_half.theta, half.theta, atol=TOLERANCE)

    theta = np.array([1.0, -1.0, -1.0])
    arms = np.concatenate([np.arange(48) % 3, np.zeros(4952, int)])
    explored = np.arange(5000) < 48
    error = {}
    for name, (make, _) in ESTIMATORS.items():
        estimator = make(np.eye(3), 0)
        extra = {"explored": explored} if estimator.constants.mixes else {}
        path = estimator.path(arms, np.column_stack([theta[arms], theta[arms]]), **extra)
        error[name] = np.abs(path[:, :, 0] - theta).max(axis=1)  # of the worst arm, after each round
    assert error["least squares"][-1] < TOLERANCE
    for name in ("ridge", "DR-ridge", "DR-ridge, frozen"):
        assert error[name][-1] > 0.95 * error["ridge"][47] > 0.05
    for name in ("exploration-mixed", "DR-mix", "DR-mix, frozen"):
        assert error[name][-1] < 0.1 * error[name][47]


def test_exploring_what_is_drawn_needs_few_of_many_arms() -> None:
    """K much larger than d: no need to explore all arms, if draw() says which are needed."""
    contexts, theta = random_contexts((3000, 2), 1)
    estimator = DRMix(contexts, delta=0.0, seed=2)
    for _ in range(300):
        needed = estimator.draw()
        assert estimator.draw() == needed
        explore = bool(estimator.explored[needed] == 0)
        arm = needed if explore else 17
        estimator.update(arm, contexts[arm] @ theta, explored=explore)
    assert 0 < (estimator.explored > 0).sum() < 300
    assert np.isfinite(estimator.theta).all()


# ---------------------------------------------------------------------- least squares before it is defined


@pytest.mark.kernels
def test_least_squares_is_not_a_number_until_the_sampled_contexts_span() -> None:
    rng = np.random.default_rng(0)
    for d in (1, 2, 3, 5):
        low = rng.normal(size=(30, d)) @ np.diag([*[1.0] * (d - 1), 0.0]) @ rng.normal(size=(d, d))
        contexts = np.vstack([low, rng.normal(size=d)])
        estimator = LeastSquares(contexts)
        assert np.isnan(estimator.theta).all()
        for arm in rng.integers(30, size=300):
            estimator.update(int(arm), rng.normal())
            assert np.isnan(estimator.theta).all()
        estimator.update(30, 1.0)
        assert np.isfinite(estimator.means).all()


# ---------------------------------------------------------------------- bad input

BAD_CONTEXTS = [
    ([1.0, 2.0], r"contexts of {} must have shape \(K, d\)"),
    ([[1.0, np.nan]], "contexts of {} must be finite, got nan in row 0, column 1"),
    ([["a"]], "contexts of {} must be real numbers"),
    ([[1, 0], [1]], "contexts of {} must be real numbers"),
    (np.zeros((0, 2)), r"contexts of {} must have shape \(K, d\), both at least 1"),
    ([[1.0, 2.0], [2.0, 4.0]], "contexts of {} must span all 2 dimensions, got rank 1"),
    ([[1.0, 2.0, 3.0]], "contexts of {} must span all 3 dimensions, got rank 1"),
    (np.zeros((4, 2)), "contexts of {} must span all 2 dimensions, got rank 0"),
]


@pytest.mark.parametrize("kind", [LeastSquares, Ridge, DRRidge, ExplorationMixed, DRMix])
def test_bad_settings_are_refused(kind: Callable[..., Estimator]) -> None:
    name = kind.__name__
    for contexts, message in BAD_CONTEXTS:
        with pytest.raises(InvalidInput, match=message.format(name)):
            kind(contexts)
    for n_metrics in (0, 1.5, True, "2"):
        with pytest.raises(ValueError, match=f"n_metrics of {name} must be a whole number, at least 1"):
            kind(np.eye(2), n_metrics)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ridge(np.eye(2), ridge=0), "ridge of Ridge must be a finite number above 0, got 0"),
        (lambda: DRRidge(np.eye(2), ridge=np.nan), "ridge of DRRidge must be a finite number above 0"),
        (lambda: DRRidge(np.eye(2), imputation="last"), "imputation of DRRidge must be 'latest' or 'frozen'"),
        (lambda: DRMix(np.eye(2), imputation="last"), "imputation of DRMix must be 'latest' or 'frozen', got 'last'"),
        (lambda: DRMix(np.eye(2), delta=1), "delta of DRMix must be a finite number at least 0 and below 1, got 1"),
        (lambda: ExplorationMixed(np.eye(2), seed=-1), "seed of ExplorationMixed must be a whole number"),
        (lambda: DRMix(np.eye(2), delta=0.1).reserve(-1), "rounds to reserve must be a whole number, at least 0"),
    ],
)
def test_bad_options_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("arm", "outcome", "explored", "message"),
    [
        (3, [0, 0], True, "arm of DRMix must be a whole number from 0 to 2, or a sequence of them, got 3"),
        (-1, [0, 0], True, "arm of DRMix must be"),
        (1.0, [0, 0], True, "arm of DRMix must be"),
        (True, [0, 0], True, "arm of DRMix must be"),
        ("a", [0, 0], True, "arm of DRMix must be"),
        ([[0]], [[[0, 0]]], True, "arm of DRMix must be"),
        ([0, [1]], [[0, 0]] * 2, True, "arm of DRMix must be"),
        ([0, 7], [[0, 0]] * 2, True, r"arm of DRMix must be .*, got \[0, 7\]"),
        (0, 1.0, True, r"outcome of DRMix must have shape \(2,\), a number for each metric, got shape \(\)"),
        (0, [1, 2, 3], True, r"outcome of DRMix must have shape \(2,\)"),
        ([0, 1], [1, 2], True, r"must have shape \(2, 2\), a number for each metric of each round, got shape \(2,\)"),
        (0, [1, np.nan], True, "outcome of DRMix must be finite, got nan at 1"),
        ([0, 1], [[1, 2], [np.inf, 1]], True, "outcome of DRMix must be finite, got inf in row 1, column 0"),
        (0, ["a", "b"], True, "outcome of DRMix must be real numbers"),
        (0, None, True, "outcome of DRMix must have shape"),
        (0, [1, 2], 1, "explored of DRMix must be True or False, or one of them for each round, got 1"),
        ([0, 1], [[1, 2]] * 2, [True], "explored of DRMix must be"),
        (0, [1, 2], False, "explored of DRMix must be True once for each arm .* got False while arm 1 has none"),
        ([1, 0, 2], [[1, 2]] * 3, [True, False, True], "got False while arm 2 has none"),
    ],
)
def test_bad_rounds_are_refused_and_change_nothing(arm: Any, outcome: Any, explored: Any, message: str) -> None:
    estimator = DRMix(np.eye(3), n_metrics=2, delta=0.1)
    estimator.update(0, [1.0, 2.0], explored=True)
    before = copy.deepcopy(estimator.state), estimator.rng.bit_generator.state
    for method in (estimator.update, estimator.path):
        with pytest.raises(InvalidInput, match=message):
            method(arm, outcome, explored=explored)
    for then, now in zip(before[0], estimator.state, strict=True):
        np.testing.assert_array_equal(then, now)
    assert before[1] == estimator.rng.bit_generator.state


def test_an_arm_that_was_drawn_must_be_explored() -> None:
    estimator = ExplorationMixed(np.eye(3), seed=4)
    needed = estimator.draw()
    with pytest.raises(ValueError, match=f"got False while arm {needed} has none"):
        estimator.update(0, 1.0, explored=False)
    estimator.update(needed, 1.0, explored=True)
    with pytest.raises(ValueError, match="has none"):  # nothing is drawn: any arm may be needed
        estimator.update(0, 1.0, explored=False)


def test_one_metric_needs_no_axis_of_its_own() -> None:
    flat, deep = DRMix(np.eye(2), delta=0.1), DRMix(np.eye(2), delta=0.1)
    flat.update(0, 1.0, explored=True)
    deep.update(0, [1.0], explored=True)
    flat.update([1, 0], [2.0, 3.0], explored=[True, False])
    deep.update([1, 0], [[2.0], [3.0]], explored=[True, False])
    np.testing.assert_array_equal(flat.means, deep.means)
    assert repr(flat) == "<DRMix: arms 2, metrics 1, rounds 3>"
