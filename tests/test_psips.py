"""PSIPS against its twin and the values of the specification."""

from __future__ import annotations

import itertools
import math
import os
from typing import Any

import numpy as np
import pytest

import paretoscout as ps
from paretoscout.algorithms import PSIPS
from paretoscout.algorithms.psips import choose, draw_means, inflation, n_agreeing
from paretoscout.algorithms.registry import resolve
from paretoscout.errors import InvalidInput
from paretoscout.kernels.decisions import DOMINATED, FRONT
from paretoscout.session import Session
from paretoscout.start import setup_of

pytestmark = pytest.mark.kernels

Floats = Any
SLOW = os.environ.get("NUMBA_DISABLE_JIT") == "1"
S5 = ps.problems.load("s5")


def dominates(a: Floats, b: Floats) -> bool:
    return bool((a >= b).all() and (a > b).any())


def front_of(y: Floats) -> list[int]:
    return [k for k in range(len(y)) if not any(dominates(y[j], y[k]) for j in range(len(y)))]


class NaiveAdaHedge:
    """Weights exp(-eta (L - min L)), eta = ln K / D; D grows by what mixing the losses costs."""

    def __init__(self, K: int) -> None:
        self.losses, self.D = np.zeros(K), 0.0

    @property
    def eta(self) -> float:
        return math.log(len(self.losses)) / self.D if self.D > 0 else math.inf

    @property
    def w(self) -> Floats:
        above = self.losses - self.losses.min()
        w = (above == 0).astype(float) if self.eta == math.inf else np.exp(-self.eta * above)
        return w / w.sum()

    def mix_loss(self, losses: Floats) -> float:
        if self.eta == math.inf:
            return float(losses.min())
        return float(losses.min() - np.log(np.exp(-self.eta * (losses - losses.min())).mean()) / self.eta)

    def tell(self, gains: Floats) -> None:
        after = self.losses - gains
        cost = float(self.w @ -gains) - (self.mix_loss(after) - self.mix_loss(self.losses))
        self.D += max(0.0, cost)
        self.losses = after


class NaivePSIPS:
    """In units of the noise. `X` (K, d) are contexts, unit vectors for arms on their own; RHO is 8.

    explore: the weights of exploration; first: arms that span all contexts, sampled first.
    """

    def __init__(
        self, X: Floats, tabular: bool, eps: Floats, delta: float, settings: PSIPS, explore: Floats, first: list[int]
    ) -> None:
        self.X, self.tabular, self.eps, self.delta, self.settings = X, tabular, eps, delta, settings
        self.explore = explore
        self.every = settings.every or math.ceil(len(X) / 16)
        self.L = len(eps)
        self.hedge = NaiveAdaHedge(len(X))
        self.V, self.B, self.n = np.zeros((X.shape[1],) * 2), np.zeros((X.shape[1], self.L)), np.zeros(len(X), int)
        self.next_draw = self.next_check = 0
        self.agreed: list[int] | None = None
        self.answer: list[int] | None = None
        self.first = first

    @property
    def ready(self) -> bool:
        return all(self.n[k] > 0 for k in self.first)

    def estimates(self) -> Floats:
        return self.X @ np.linalg.solve(self.V, self.B)

    def draw(self, rng: np.random.Generator, spread: float) -> Floats:
        """What a draw of the means adds to the estimates; its covariance is spread^2 X V^-1 X^T in each metric."""
        normal = rng.standard_normal((self.X.shape[1], self.L))
        return spread * self.X @ np.linalg.solve(np.linalg.cholesky(self.V).T, normal)

    def same_front(self, values: Floats, front: list[int]) -> bool:
        if any(dominates(values[j], values[i]) for i, j in itertools.permutations(front, 2)):
            return False
        others = set(range(len(values))) - set(front)
        return all(any(dominates(values[j], values[k]) for j in front) for k in others)

    def choose(self, rng: np.random.Generator) -> int:
        for k in self.first:
            if self.n[k] == 0:
                return k
        t = int(self.n.sum())
        explored = t**-self.settings.exploration
        weights = (1 - explored) * self.hedge.w + explored * self.explore
        arm = int(np.searchsorted(np.cumsum(weights), rng.random(), side="right"))
        if t >= self.next_draw:
            means = self.estimates()
            front = front_of(means)
            if not self.settings.sound and t >= self.next_check:
                M = math.log(t / self.delta) / math.log(1 / (1 - self.delta))
                c = 1 + math.log(max(math.log(t), 1)) / math.log(1 / self.delta)
                agree = all(self.same_front(means + self.draw(rng, math.sqrt(c)), front) for _ in range(math.ceil(M)))
                self.agreed = front if agree else None
                self.next_check = t + max(self.every, int(0.005 * t))
            for _ in range(self.settings.draws):
                drawn = self.draw(rng, 1 / math.sqrt(self.settings.widening))
                if not self.same_front(means + drawn, front):
                    self.hedge.tell((drawn**2).sum(axis=1))
                    break
            self.next_draw = t + self.every
        return arm

    def update(self, arm: int, outcome: Floats) -> None:
        self.n[arm] += 1
        self.V += np.outer(self.X[arm], self.X[arm])
        self.B += np.outer(self.X[arm], outcome)
        t = int(self.n.sum())
        if not self.ready:
            return
        if self.agreed is not None:
            self.answer = self.agreed
        elif self.settings.sound and t >= self.next_check:
            self.answer = self.proven()
            self.next_check = t + max(self.every, int(0.005 * t))

    def width(self, k: int, j: int) -> float:
        K, rho = len(self.X), 8.0
        if self.tabular:
            n = self.n[[k, j]]
            alpha = self.delta / (K * max(K - 1, self.L))
            return math.sqrt((2 * math.log(1 / alpha) + np.log(1 + n / rho).sum()) * ((n + rho) / n**2).sum())
        x = self.X[k] - self.X[j]
        half = np.linalg.solve(self.V, x)
        log_det = np.linalg.slogdet(np.eye(len(self.V)) + self.V / rho)[1]
        return math.sqrt((x @ half + rho * half @ half) * (2 * math.log(self.L / self.delta) + log_det))

    def proven(self) -> list[int] | None:
        y = self.estimates()
        front = front_of(y)
        left = [
            k for k in range(len(y)) if k in front or not any((y[j] - y[k]).min() > self.width(k, j) for j in front)
        ]
        for k, j in itertools.permutations(left, 2):
            most = (y[k] + self.eps - y[j]).max()
            if most <= 0 or most < self.width(k, j):
                return None
        return left


# Values of the specification.


@pytest.mark.parametrize(
    ("t", "delta", "M", "c"), [(100, 0.1, 65.563036, 1.663246), (1000, 0.05, 193.075677, 1.645133)]
)
def test_constants_of_the_published_rule(t: int, delta: float, M: float, c: float) -> None:
    assert n_agreeing(t, delta) == pytest.approx(M, abs=5e-7)
    assert inflation(t, delta) == pytest.approx(c, abs=5e-7)


def session_on(problem: ps.Problem, settings: PSIPS, eps: Any = 0.0) -> Session:
    return Session(settings, setup_of(problem.asked(eps, 0.1), settings))


@pytest.mark.parametrize("model", ["linear", "tabular"])
def test_draws_have_the_covariance_of_the_posterior(model: str) -> None:
    """Each entry within 6 standard errors of what it should be: a right one is off with probability below 1e-7."""
    session = session_on(S5, PSIPS(model=model))
    for k in [0, 1, 2, 3, 4, 0, 3, 3]:
        session.add(k, S5.means[k])
    n = 300 if SLOW else 20_000
    rng = np.random.default_rng(0)
    drawn = np.empty((n, 10))
    for i in range(n):
        draw_means(session.state, session.constants, 2.0, rng)
        drawn[i] = session.state.drawn.ravel()
    X: Floats = S5.contexts if model == "linear" else np.eye(5)
    V = X.T @ np.diag([2, 1, 1, 3, 1]) @ X
    expected = 4 * np.kron(X @ np.linalg.inv(V) @ X.T, np.eye(2))
    error = np.sqrt((expected**2 + np.outer(np.diag(expected), np.diag(expected))) / n)
    assert (np.abs(drawn.T @ drawn / n - expected) < 6 * error).all()


@pytest.mark.skipif(SLOW, reason="needs many samples")
def test_allocation_on_s5() -> None:
    """Samples go to arms 1, 2 and 3, a third each in the limit.

    Over 40 runs of 12,000 samples their shares were within 0.02 of that on average. At 5 standard errors beyond 0.02 a
    right implementation fails with probability below 1e-5.
    """
    problem = ps.problems.linear(S5.contexts, S5.theta, 1.0)
    result = ps.simulate(problem, "psips", eps=0.0, delta=1e-6, replicates=20)
    shares = result.pulls / result.samples[:, None]
    error = 0.02 + 5 * shares.std(axis=0) / 20**0.5
    assert (np.abs(shares.mean(axis=0) - [1 / 3, 1 / 3, 1 / 3, 0, 0]) < error).all()


# Decision by decision.


def sphere(K: int, d: int, L: int, sigma: Any, seed: int) -> ps.Problem:
    rng = np.random.default_rng(seed)
    return ps.problems.linear(rng.normal(size=(K, d)), rng.normal(size=(d, L)), sigma)


CASES = [
    (ps.problems.gaussian(S5.means, 0.1), 0.05, {}),
    (ps.problems.gaussian(S5.means, 0.1), 0.0, {"stopping": "published"}),
    (ps.problems.gaussian([[1.0], [0.3], [0.0], [-0.2]], 0.3), 0.1, {"every": 3, "widening": 1.0}),
    (ps.problems.gaussian([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]], 0.2), 0.4, {"draws": 2}),
    (ps.problems.gaussian(np.vstack([np.eye(3), np.zeros((1, 3))]), (0.1, 0.2, 0.3)), (0.2, 0.3, 0.2), {}),
    (sphere(6, 3, 2, 0.2, 1), 0.3, {}),
    (sphere(8, 3, 2, 0.2, 2), 0.0, {"stopping": "published", "exploration": 0.3}),
    (sphere(6, 2, 3, 0.2, 3), 0.3, {"every": 2}),
    (sphere(20, 3, 2, 0.2, 3), 0.3, {}),
]


@pytest.mark.parametrize(("problem", "eps", "how"), CASES)
def test_same_decisions_as_the_twin(problem: ps.Problem, eps: Any, how: dict[str, Any]) -> None:
    settings = PSIPS(**how)
    asked = problem.asked(eps, 0.1)
    setup, units = setup_of(asked, settings), asked.units
    session = Session(settings, setup)
    sigma = problem.sigma[0] / units.divisors
    means = units.oriented(problem.means)
    tabular = problem.contexts is None
    # the kernel's coordinates: in others the same normal numbers would give other draws
    X = np.eye(len(means)) if tabular else session.constants.contexts
    first = session.constants.first_arms.tolist()
    twin = NaivePSIPS(X, tabular, units.eps / sigma, 0.1, settings, session.constants.explore, first)
    noise, rng, pending = np.random.default_rng(1), np.random.default_rng(2), np.zeros(len(means), np.int64)
    same_rng = np.random.default_rng(2)
    for _ in range(400):
        if twin.answer is not None:
            break
        arm = twin.choose(rng)
        assert choose(session.state, session.constants, pending, same_rng)[0] == arm
        outcome = means[arm] + sigma * noise.standard_normal(len(sigma))
        session.add(arm, outcome)
        twin.update(arm, outcome / sigma)
        np.testing.assert_allclose(session.state.weights, twin.hedge.w, rtol=1e-6, atol=1e-12)
        assert session.done == (twin.answer is not None)
    if twin.answer is None:
        pytest.fail("the case is too hard for this test")
    assert rng.bit_generator.state == same_rng.bit_generator.state
    status = session.verdicts().status
    assert status.tolist() == [FRONT if k in twin.answer else DOMINATED for k in range(len(means))]


def test_first_arms_span() -> None:
    session = session_on(sphere(9, 4, 2, 1.0, 5), PSIPS())
    assert np.linalg.matrix_rank(session.constants.contexts[session.constants.first_arms]) == 4


def test_published_stopping_promises_nothing() -> None:
    problem = ps.problems.gaussian(S5.means, 0.1)
    valid = ps.simulate(problem, "psips", eps=0.0, delta=0.1, replicates=3)
    published = ps.simulate(problem, PSIPS(stopping="published"), eps=0.0, delta=0.1, replicates=3)
    assert valid.success.all()
    assert published.samples.mean() < valid.samples.mean()
    assert published.guarantee.startswith("none")
    assert resolve(PSIPS())[0].guarantees


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"stopping": "soon"}, "stopping of PSIPS must be 'valid' or 'published', got 'soon'"),
        ({"model": "robust"}, "model of PSIPS must be 'linear', 'tabular' or None"),
        ({"widening": 0.0}, "widening of PSIPS must be"),
        ({"exploration": 0.0}, "exploration of PSIPS must be"),
        ({"exploration": 1.1}, "exploration of PSIPS must be at most 1, got 1.1"),
        ({"draws": 0}, "draws of PSIPS must be"),
        ({"every": 0}, "every of PSIPS must be"),
    ],
)
def test_settings_say_what_is_wrong(how: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        PSIPS(**how)


def test_contexts_must_be_there() -> None:
    with pytest.raises(InvalidInput, match="contexts must be given for model='linear' of PSIPS"):
        ps.simulate(ps.problems.load("four-arms"), PSIPS(model="linear"), delta=0.1, replicates=1)
