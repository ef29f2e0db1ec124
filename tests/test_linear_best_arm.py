"""Best arms by linear contexts (G- and XY-allocation, XY-adaptive, RAGE, LinGapE): naive twins, worked numbers, settings.

The twins read like the papers: they invert matrices where the kernels update them, and look at all directions.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any, Protocol

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

import paretoscout as ps
from paretoscout.algorithms import RAGE, GAllocation, LinGapE, Settings, Setup, XYAdaptive, XYAllocation, get
from paretoscout.algorithms.best_arm.linear_arms import contexts_of, spanning_arms
from paretoscout.algorithms.best_arm.lingape import least_combination, ratios_of
from paretoscout.errors import InvalidInput
from paretoscout.kernels.decisions import DOMINATED, FRONT
from paretoscout.kernels.design_for_differences import (
    add_sample,
    extend_design,
    greedy_arm,
    invert,
    list_directions,
    new_design,
    new_inverse,
    optimal_shares,
    round_shares,
    variance,
    worst_pair_again,
    worst_variance,
)
from paretoscout.kernels.widths import repeated_design, soare_design
from paretoscout.session import Session

pytestmark = pytest.mark.kernels

Array = NDArray[np.float64]
TIE = 1e-9

S5 = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0.5], [0.6, 0.05, 0.25]])
S5_THETA = np.array([[0.8, 0.1], [0.2, 0.75], [0.4, 0.4]])


# The twins


def differences(X: Array, arms: list[int]) -> list[Array]:
    return [X[i] - X[j] for i, j in itertools.combinations(arms, 2)]


def worst(A: Array, directions: list[Array]) -> float:
    inverse = np.linalg.inv(A)
    return max((float(y @ inverse @ y) for y in directions), default=0.0)


def greedy(X: Array, A: Array, directions: list[Array], pulls: list[int]) -> tuple[int, float]:
    """argmin over x of max over y of y^T (A + x x^T)^-1 y, and the value; ties by samples, then by index."""
    values = [worst(A + np.outer(x, x), directions) for x in X]
    least = min(values)
    tied = [k for k, value in enumerate(values) if value <= least * (1 + TIE)]
    return min(tied, key=lambda k: (pulls[k], k)), least


def gram(X: Array, weights: Any) -> Array:
    total: Array = sum((w * np.outer(x, x) for w, x in zip(weights, X, strict=True)), np.zeros((X.shape[1],) * 2))
    return total


def spanning(X: Array) -> list[int]:
    """d independent arms: the one that sticks out most of the span of those before, again and again."""
    chosen: list[int] = []
    left = X.copy()
    for _ in range(X.shape[1]):
        lengths = np.linalg.norm(left, axis=1)
        k = int(np.argmax(lengths > lengths.max() * (1 - TIE)))
        chosen.append(k)
        unit = left[k] / lengths[k]
        left = left - np.outer(left @ unit, unit)
    return sorted(chosen)


class Twin(Protocol):
    best: int | None
    dropped: dict[int, int]

    def choose(self) -> int: ...
    def update(self, arm: int, outcome: float) -> None: ...


class NaiveStatic:
    """G-allocation (alone) or XY-allocation from A_0 = I, times the largest squared length of a context."""

    def __init__(self, X: Array, alone: bool, eps: float, delta: float, sigma: float, published: bool = False) -> None:
        self.X, self.K = X, len(X)
        self.directions = list(X) if alone else differences(X, list(range(self.K)))
        self.eps, self.delta, self.sigma, self.published = eps, delta, sigma, published
        self.pulls = [0] * self.K
        self.b = np.zeros(X.shape[1])
        self.ridge = float(max(x @ x for x in X)) * np.eye(X.shape[1])
        self.values: list[float] = []  # of the objective
        self.best: int | None = None
        self.dropped: dict[int, int] = {}

    def choose(self) -> int:
        arm, value = greedy(self.X, self.ridge + gram(self.X, self.pulls), self.directions, self.pulls)
        self.values.append(value)
        return arm

    def update(self, arm: int, outcome: float) -> None:
        self.pulls[arm] += 1
        self.b += self.X[arm] * outcome
        A = gram(self.X, self.pulls)
        if np.linalg.matrix_rank(A) < len(A):
            return
        inverse = np.linalg.inv(A)
        theta = inverse @ self.b
        best = int(np.argmax(self.X @ theta))
        gaps = [self.X[best] - x for k, x in enumerate(self.X) if k != best]
        if all(y @ theta + self.eps >= self.width(y, inverse) for y in gaps):
            self.best = best
            self.dropped = {k: best for k in range(self.K) if k != best}

    def width(self, y: Array, inverse: Any) -> float:
        n, K, norm = sum(self.pulls), self.K, math.sqrt(max(0.0, float(y @ inverse @ y)))
        if self.published:
            return 2 * math.sqrt(2) * self.sigma * norm * math.sqrt(math.log(6 / math.pi**2 * n**2 * K**2 / self.delta))
        return self.sigma * norm * math.sqrt(2 * math.log(math.pi**2 * n**2 * K**2 / (3 * self.delta)))


class NaiveXYAdaptive:
    """Phases of XY-allocation among the active arms, each from d independent arms."""

    def __init__(self, X: Array, alpha: float, eps: float, delta: float, sigma: float) -> None:
        self.X, self.K, self.d = X, len(X), X.shape[1]
        self.alpha, self.eps, self.delta, self.sigma = alpha, eps, delta, sigma
        self.active = list(range(self.K))
        self.phase = 0
        self.rho = 1.0 / (self.d * (self.d + 1) + 1)
        self.phases: list[int] = []  # samples of each
        self.best: int | None = None
        self.dropped: dict[int, int] = {}
        self.begin()

    def begin(self) -> None:
        self.phase += 1
        self.pulls = [0] * self.K
        self.b = np.zeros(self.d)

    def choose(self) -> int:
        n = sum(self.pulls)
        if n < self.d:
            return spanning(self.X)[n]
        return greedy(self.X, gram(self.X, self.pulls), differences(self.X, self.active), self.pulls)[0]

    def update(self, arm: int, outcome: float) -> None:
        self.pulls[arm] += 1
        self.b += self.X[arm] * outcome
        if sum(self.pulls) < self.d:
            return
        A = gram(self.X, self.pulls)
        rho = worst(A, differences(self.X, self.active))
        if rho >= self.alpha * self.rho:
            return
        self.rho = rho
        self.phases.append(sum(self.pulls))
        self.judge(np.linalg.inv(A))
        if self.best is None:
            self.begin()

    def judge(self, inverse: Any) -> None:
        means = self.X @ inverse @ self.b

        def width(i: int, j: int) -> float:
            y, delta_j = self.X[i] - self.X[j], 6 * self.delta / (math.pi**2 * self.phase**2)
            return self.sigma * math.sqrt(max(0.0, y @ inverse @ y)) * math.sqrt(2 * math.log(2 * self.K**2 / delta_j))

        leader = max(self.active, key=lambda k: (means[k], -k))
        for k in self.active:
            for j in self.active:
                if means[j] > means[k] and means[j] - means[k] >= width(j, k):
                    self.dropped[k] = j
                    break
        self.active = [k for k in self.active if k not in self.dropped]
        if all(means[k] - means[leader] + width(k, leader) <= self.eps for k in self.active if k != leader):
            self.best = leader
            self.dropped |= {k: leader for k in self.active if k != leader}


def frank_wolfe(X: Array, arms: list[int]) -> tuple[Array, float]:
    """The design that makes the largest variance of a difference of `arms` smallest, and that variance."""
    K = len(X)
    directions = differences(X, arms)

    def worst_of(design: Array) -> tuple[Array, float, Any]:
        inverse = np.linalg.inv(gram(X, design))
        values = [float(y @ inverse @ y) for y in directions]
        top = first_largest(values)
        return directions[top], values[top], inverse

    design = np.full(K, 1 / K)
    best, least = design, np.inf
    for count in range(1, 5000):
        y, rho, inverse = worst_of(design)
        if rho < least * (1 - TIE):
            best, least = design, rho
        towards = np.eye(K)[first_largest([float(x @ inverse @ y) ** 2 for x in X])]
        change = 2 / (count + 2) * (towards - design)
        relative = np.linalg.norm(change) / np.linalg.norm(design)
        design = design + change
        if relative < 0.01:
            break
    best = np.where(best < 1e-5, 0.0, best)
    span = np.isin(np.arange(K), spanning(X)) / X.shape[1]
    best = 0.99 * best / best.sum() + 0.01 * span
    return best, worst_of(best)[1]


def first_largest(values: list[float]) -> int:
    found = 0
    for k, value in enumerate(values):
        if value > values[found] * (1 + TIE):
            found = k
    return found


def rounded(design: Array, n: int) -> list[int]:
    support = [k for k, share in enumerate(design) if share > 0]
    numbers = {k: math.ceil((n - len(support) / 2) * design[k] - TIE * n * design[k]) for k in support}
    while sum(numbers.values()) < n:
        ratios = {k: numbers[k] / design[k] for k in support}
        numbers[min(k for k in support if ratios[k] <= min(ratios.values()) * (1 + TIE))] += 1
    while sum(numbers.values()) > n:
        ratios = {k: (numbers[k] - 1) / design[k] for k in support}
        numbers[min(k for k in support if ratios[k] >= max(ratios.values()) * (1 - TIE))] -= 1
    return [numbers.get(k, 0) for k in range(len(design))]


class NaiveRAGE:
    """Phases of an optimal design among the active arms."""

    def __init__(self, X: Array, eps: float, delta: float, sigma: float, published: bool = False) -> None:
        self.X, self.K = X, len(X)
        self.eps, self.delta, self.sigma, self.published = eps, delta, sigma, published
        self.active = list(range(self.K))
        self.phase = 0
        self.phases: list[int] = []  # samples of each
        self.best: int | None = None
        self.dropped: dict[int, int] = {}
        self.begin()

    def begin(self) -> None:
        self.phase += 1
        t = self.phase
        self.log = math.log(
            2 * self.K**2 / (self.delta / t**2 if self.published else 6 * self.delta / (math.pi * t) ** 2)
        )
        design, rho = frank_wolfe(self.X, self.active)
        needed = 2 * 4**t * rho * 1.1 * self.sigma**2 * self.log
        n = max(math.ceil(needed), math.ceil((design > 0).sum() * 1.1 / 0.1))
        self.allocation = rounded(design, n)
        self.phases.append(n)
        self.queue = [k for k in range(self.K) for _ in range(self.allocation[k])]
        self.b = np.zeros(self.X.shape[1])

    def choose(self) -> int:
        return self.queue.pop(0)

    def update(self, arm: int, outcome: float) -> None:
        self.b += self.X[arm] * outcome
        if self.queue:
            return
        inverse = np.linalg.inv(gram(self.X, self.allocation))
        means = self.X @ inverse @ self.b
        leader = max(self.active, key=lambda k: (means[k], -k))
        for k in self.active:
            if k != leader and means[leader] - means[k] >= 2.0**-self.phase:
                self.dropped[k] = leader
        self.active = [k for k in self.active if k not in self.dropped]
        others = [self.X[k] - self.X[leader] for k in self.active if k != leader]
        width = [self.sigma * math.sqrt(2 * max(0.0, y @ inverse @ y) * self.log) for y in others]
        if all(y @ inverse @ self.b + w <= self.eps for y, w in zip(others, width, strict=True)):
            self.best = leader
            self.dropped |= {k: leader for k in self.active if k != leader}
        else:
            self.begin()


class NaiveLinGapE:
    """Ridge regression with lambda = 1, times the largest squared length of a context; |theta| <= S."""

    def __init__(
        self, X: Array, S: float, eps: float, delta: float, sigma: float, rule: str = "greedy", published: bool = False
    ) -> None:
        self.X, self.K, self.d = X, len(X), X.shape[1]
        self.S, self.eps, self.sigma, self.rule = S, eps, sigma, rule
        self.delta = delta / self.K**2 if published else delta
        self.ridge = float(max(x @ x for x in X))
        self.V = self.ridge * np.eye(self.d)
        self.b = np.zeros(self.d)
        self.pulls = [0] * self.K
        self.pair = (0, 0)
        self.best: int | None = None
        self.dropped: dict[int, int] = {}

    def choose(self) -> int:
        if sum(self.pulls) < self.K:
            return sum(self.pulls)
        i, j = self.pair
        y, inverse = self.X[i] - self.X[j], np.linalg.inv(self.V)
        if self.rule == "greedy":
            return first_largest([float(y @ inverse @ x) ** 2 / (1 + x @ inverse @ x) for x in self.X])
        p = np.abs(least_weights(self.X, y))
        lags = {k: self.pulls[k] / p[k] for k in range(self.K) if p[k] > 1e-9}
        return min(k for k in lags if lags[k] <= min(lags.values()) * (1 + TIE))

    def update(self, arm: int, outcome: float) -> None:
        x = self.X[arm]
        self.V += np.outer(x, x)
        self.b += x * outcome
        self.pulls[arm] += 1
        if sum(self.pulls) < self.K:
            return
        inverse = np.linalg.inv(self.V)
        means = self.X @ inverse @ self.b
        ratio = math.sqrt(np.linalg.det(self.V)) * self.ridge ** (-self.d / 2)
        C = self.sigma * math.sqrt(2 * math.log(ratio / self.delta)) + math.sqrt(self.ridge) * self.S
        i = int(np.argmax(means))
        above = {}
        for k in range(self.K):
            if k != i:
                y = self.X[k] - self.X[i]
                above[k] = means[k] - means[i] + C * math.sqrt(max(0.0, y @ inverse @ y))
        j = max(above, key=lambda k: above[k])
        self.pair = (i, j)
        if above[j] <= self.eps:
            self.best = i
            self.dropped = {k: i for k in range(self.K) if k != i}


def least_weights(X: Array, y: Array) -> Array:
    """The w with the least sum |w| and w X = y: it is zero but for d arms, so try all of these."""
    K, d = X.shape
    best = np.full(K, np.inf)
    for arms in itertools.combinations(range(K), d):
        part = X[list(arms)]
        if abs(np.linalg.det(part)) > 1e-9:
            w = np.zeros(K)
            w[list(arms)] = np.linalg.solve(part.T, y)
            if np.abs(w).sum() < np.abs(best).sum() * (1 - TIE):
                best = w
    return best


# Worked numbers


G_ARMS = [4, 4, 4, 1, 2, 3, 4, 4, 1, 2, 3, 4]
G_VALUES = [0.857143, 0.8, 0.769231, 0.739130, 0.7, 0.411765, 0.4, 0.391304, 0.382812, 0.372881, 0.271605, 0.266667]
XY_ARMS = [5, 3, 2, 1, 3, 2, 1, 3, 2, 1, 3, 2]
XY_VALUES = [
    1.971930, 1.782960, 1.337971, 0.991753, 0.937088, 0.794267, 0.662774, 0.637091, 0.566694, 0.497740, 0.482861, 0.440934,
]  # fmt: skip


@pytest.mark.parametrize(
    ("alone", "arms", "values"), [(True, G_ARMS, G_VALUES), (False, XY_ARMS, XY_VALUES)], ids=["g", "xy"]
)
def test_greedy_allocations_on_s5(alone: bool, arms: list[int], values: list[float]) -> None:
    """Arms are counted from 1, as in the notes this is taken from."""
    twin = NaiveStatic(S5, alone, 0.0, 0.1, 1.0)
    design = new_design(S5, alone)
    everyone = np.arange(5)
    list_directions(design, S5, 1.0, everyone, alone)
    for arm, value in zip(arms, values, strict=True):
        assert twin.choose() == arm - 1
        assert greedy_arm(design, S5, 1.0, everyone, alone) == arm - 1
        twin.update(arm - 1, 0.0)
        extend_design(design, S5, arm - 1)
        assert twin.values[-1] == pytest.approx(value, abs=5.1e-7)  # 49/128 is printed as 0.382812
        assert worst_variance(design) == pytest.approx(value, abs=5.1e-7)


def test_optimal_designs_of_s5() -> None:
    thirds = np.array([1, 1, 1, 0, 0]) / 3
    A = gram(S5, thirds)
    assert worst(A, list(S5)) == pytest.approx(3)  # the number of dimensions: no design does better
    assert worst(A, differences(S5, list(range(5)))) == pytest.approx(6)
    shares, best = np.zeros(5), np.zeros(5)
    rho = optimal_shares(shares, best, new_inverse(S5), S5, np.arange(5), spanning_arms(S5))
    assert 6 <= rho < 6.1
    np.testing.assert_allclose(shares, thirds, atol=0.01)
    design = new_design(S5, False)
    list_directions(design, S5, 1.0, np.arange(5), False)
    for _ in range(600):
        extend_design(design, S5, greedy_arm(design, S5, 1.0, np.arange(5), False))
    assert 5.9 < 600 * worst_variance(design) < 6.1, "XY-allocation tends to the optimal design"


def test_ratios_of_s5() -> None:
    np.testing.assert_allclose(least_combination(S5, S5[0] - S5[3]), [0.5, -0.5, -0.5, 0, 0], atol=1e-12)
    np.testing.assert_allclose(least_combination(S5, S5[0] - S5[4]), [0.4, -0.05, -0.25, 0, 0], atol=1e-12)
    np.testing.assert_allclose(least_weights(S5, S5[0] - S5[4]), [0.4, -0.05, -0.25, 0, 0], atol=1e-12)
    ratios = ratios_of(S5)
    np.testing.assert_allclose(ratios[0, 3], [1 / 3, 1 / 3, 1 / 3, 0, 0], atol=1e-12)
    np.testing.assert_allclose(ratios[4, 0], [0.571429, 0.071429, 0.357143, 0, 0], atol=5e-7)
    np.testing.assert_array_equal(ratios_of(np.array([[1.0], [1.0]]))[0, 1], [0.5, 0.5])


@given(a=st.floats(0, 1e3), n=st.integers(1, 10**6), delta=st.floats(1e-6, 0.5), K=st.integers(2, 1000))
def test_widths(a: float, n: int, delta: float, K: int) -> None:
    sound = 0.3 * math.sqrt(a) * math.sqrt(2 * math.log(math.pi**2 * n**2 * K**2 / (3 * delta)))
    published = 2 * math.sqrt(2) * 0.3 * math.sqrt(a) * math.sqrt(math.log(6 / math.pi**2 * n**2 * K**2 / delta))
    assert repeated_design(a, float(n), delta, 0.3, K) == pytest.approx(sound, rel=1e-12)
    assert soare_design(a, float(n), delta, 0.3, K) == pytest.approx(published, rel=1e-12)
    assert 1.25 * sound <= published <= 2 * sound


# Kernels against twins


def unit_sphere(K: int, d: int, seed: int) -> Array:
    X = np.random.default_rng(seed).normal(size=(K, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


FLAT = np.column_stack([unit_sphere(6, 2, 5), unit_sphere(6, 2, 5) @ [0.3, -2.0]])  # three features of rank two
#: contexts, theta, sigma
INSTANCES: dict[str, tuple[Array, Array, float]] = {
    "s5, metric 1": (S5, S5_THETA[:, 0], 0.1),
    "s5, metric 2": (S5, S5_THETA[:, 1], 0.1),
    "arms on their own": (np.eye(4), np.array([1.0, 0.0, 0.3, -0.5]), 0.2),
    "more arms": (unit_sphere(9, 3, 0), np.array([1.0, -0.5, 0.2]), 0.15),
    "one dimension": (unit_sphere(1, 4, 3).T * 3, np.array([0.4]), 0.3),
    "long and short": (unit_sphere(6, 2, 4) * np.array([[5], [1], [0.2], [3], [1], [0.5]]), np.array([0.2, 0.1]), 0.1),
    "equal contexts": (np.array([[1.0, 0], [1, 0], [0, 1], [0, 1], [0.4, 0.4]]), np.array([0.8, 0.3]), 0.1),
    "no noise": (S5, S5_THETA[:, 0], 0.0),
}
instances = pytest.mark.parametrize("name", INSTANCES)


def session_of(X: Array, theta: Array, settings: Settings, eps: float, sigma: float) -> Session:
    setup = Setup(
        n_arms=len(X),
        n_metrics=1,
        eps=np.array([eps]),
        delta=0.1,
        sigma=np.array([sigma]),
        contexts=X,
        explained=True,
        theta_max=float(np.linalg.norm(theta)),
    )
    return Session(settings, setup)


def assert_same_run(twin: Twin, session: Session, means: Array, sigma: float, limit: int, seed: int = 0) -> int:
    """Ask and tell both, until they are done; return how many samples that took."""
    noise = np.random.default_rng(seed)
    for n in range(limit):
        if session.done:
            break
        question = session.ask()
        assert question.arm == twin.choose(), f"sample {n}"
        outcome = means[question.arm] + sigma * noise.standard_normal()
        session.tell(question, [outcome])
        twin.update(question.arm, outcome)
    assert session.done == (twin.best is not None)
    verdicts = session.verdicts()
    assert np.flatnonzero(verdicts.status == FRONT).tolist() == ([] if twin.best is None else [twin.best])
    dropped = {int(k): int(verdicts.rival[k]) for k in np.flatnonzero(verdicts.status == DOMINATED)}
    assert dropped == twin.dropped
    return int(verdicts.counts.sum())


@instances
@pytest.mark.parametrize("eps", [0.0, 0.1])
@pytest.mark.parametrize("settings", [GAllocation(), XYAllocation(), XYAllocation(constants="published")], ids=str)
def test_static_allocations_equal_their_twin(name: str, eps: float, settings: GAllocation) -> None:
    X, theta, sigma = INSTANCES[name]
    published = settings.constants == "published"
    twin = NaiveStatic(X, type(settings) is GAllocation, eps, 0.1, sigma, published)
    assert_same_run(twin, session_of(X, theta, settings, eps, sigma), X @ theta, sigma, limit=150)


@pytest.mark.parametrize("alone", [True, False], ids=["g", "xy"])
def test_a_short_list_of_directions_is_enough(alone: bool) -> None:
    """Only directions that can be the worst are looked at: the choices are those of looking at all of them."""
    X = unit_sphere(20, 4, 1)
    design, everyone = new_design(X, alone), np.arange(20)
    list_directions(design, X, 1.0, everyone, alone)
    directions = list(X) if alone else differences(X, list(range(20)))
    A, pulls = np.eye(4), [0] * 20
    for n in range(400):
        arm = greedy_arm(design, X, 1.0, everyone, alone)
        if n % 8 == 0:
            assert arm == greedy(X, A, directions, pulls)[0]
        extend_design(design, X, arm)
        A += np.outer(X[arm], X[arm])
        pulls[arm] += 1
        assert worst_variance(design) == pytest.approx(worst(A, directions))
    assert design.n_listed[0] < (20 if alone else 40), "the list is not short"


def contexts_with_ties(kind: str) -> Array:
    """Contexts of 14 arms: in general position, each with its opposite, or mostly zero."""
    X = unit_sphere(14, 4, 3)
    if kind == "opposites":
        X = np.concatenate([X[:7], -X[:7]])
    if kind == "sparse":
        X = np.where(np.arange(4) == np.arange(14)[:, None] % 4, X, 0.0)
    return np.ascontiguousarray(X)


@pytest.mark.parametrize("kind", ["general", "opposites", "sparse"])
@pytest.mark.parametrize("arms", [list(range(14)), [13, 2, 7, 0, 9], [3, 4]], ids=["all", "some", "two"])
def test_the_worst_pair_is_that_of_looking_at_all_pairs(kind: str, arms: list[int]) -> None:
    """As shares move, from the worst pair before and from bounds: to the last bit."""
    X = contexts_with_ties(kind)
    inverse, bounds, shares = new_inverse(X), np.full(14, np.inf), np.full(14, 1 / 14)
    found = (arms[0], arms[1], 0.0)
    for step in range(1, 60):
        assert invert(inverse, X, shares, 0.0)
        naive = (arms[0], arms[1], -1.0)
        for i, j in itertools.combinations(arms, 2):
            value = variance(inverse, X, i, j)
            if value > naive[2] * (1.0 + TIE):
                naive = (i, j, value)
        found = worst_pair_again(inverse, X, np.array(arms), found[0], found[1], bounds)
        assert found == naive
        part = 2.0 / (step + 2.0)
        shares *= 1.0 - part
        shares[(found[0], found[1])[step % 2]] += part
        bounds *= (1.0 + 1e-6) / (1.0 - part)


@instances
@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_xy_adaptive_equals_its_twin(name: str, eps: float) -> None:
    X, theta, sigma = INSTANCES[name]
    twin = NaiveXYAdaptive(X, 0.3, eps, 0.1, sigma)
    assert_same_run(twin, session_of(X, theta, XYAdaptive(alpha=0.3), eps, sigma), X @ theta, sigma, limit=400)


def test_phases_of_xy_adaptive() -> None:
    """A phase ends when the variance itself has fallen, not the variance per sample once more."""
    theta = S5_THETA[:, 0]
    twin = NaiveXYAdaptive(S5, 0.3, 0.0, 0.1, 0.4)
    assert_same_run(twin, session_of(S5, theta, XYAdaptive(alpha=0.3), 0.0, 0.4), S5 @ theta, 0.4, limit=2000)
    # the largest variance is about 6 / n: from 1 / 13 it goes to 0.3 / 13, and to 0.3 of that among arms 1 and 4
    assert twin.phases[0] == pytest.approx(6 * 13 / 0.3, rel=0.05)
    assert len(twin.phases) > 1


@instances
@pytest.mark.parametrize("eps", [0.0, 0.1])
@pytest.mark.parametrize("constants", ["sound", "published"])
def test_rage_equals_its_twin(name: str, eps: float, constants: str) -> None:
    X, theta, sigma = INSTANCES[name]
    twin = NaiveRAGE(X, eps, 0.1, sigma, constants == "published")
    session = session_of(X, theta, RAGE(constants=constants), eps, sigma)
    n = assert_same_run(twin, session, X @ theta, sigma, limit=2000)
    assert n == 2000 or n == sum(twin.phases)


@given(seed=st.integers(0, 10**6), K=st.integers(1, 30), extra=st.integers(0, 1000))
def test_rounding_keeps_its_promise(seed: int, K: int, extra: int) -> None:
    rng = np.random.default_rng(seed)
    design = rng.dirichlet(np.full(K, 0.5)) * (rng.random(K) < 0.8)
    design[0] += 0.01
    design /= design.sum()
    support = int((design > 0).sum())
    n = support + extra
    pulls = np.zeros(K, np.int64)
    round_shares(design, n, pulls)
    assert pulls.tolist() == rounded(design, n)
    assert pulls.sum() == n
    assert (pulls >= (1 - support / n) * n * design - 1e-6).all()
    assert (pulls[design == 0] == 0).all()


def test_accuracy_of_a_phase() -> None:
    """In phase t every difference of active arms is known up to 2^-t, whatever the shares became by rounding."""
    X = unit_sphere(12, 4, 2)
    session = session_of(X, np.ones(4), RAGE(), 0.0, 1.0)
    A = gram(X, session.state.planned)
    width = math.sqrt(2 * worst(A, differences(X, list(range(12)))) * math.log(math.pi**2 * 144 / 0.3))
    assert 0.47 < width <= 0.5


@instances
@pytest.mark.parametrize("eps", [0.0, 0.1])
@pytest.mark.parametrize(
    "settings", [LinGapE(), LinGapE(constants="published"), LinGapE(rule="ratio")], ids=["greedy", "published", "ratio"]
)
def test_lingape_equals_its_twin(name: str, eps: float, settings: LinGapE) -> None:
    X, theta, sigma = INSTANCES[name]
    if name == "equal contexts" and settings.rule == "ratio":
        pytest.skip("the least combination is not unique")
    norm = float(np.linalg.norm(theta))
    twin = NaiveLinGapE(X, norm, eps, 0.1, sigma, settings.rule, settings.constants == "published")
    assert_same_run(twin, session_of(X, theta, settings, eps, sigma), X @ theta, sigma, limit=400)


@given(seed=st.integers(0, 10**6), K=st.integers(1, 8), d=st.integers(1, 5), shift=st.floats(0.01, 10))
@example(seed=201, K=4, d=4, shift=1.0)
def test_inverses_that_are_updated(seed: int, K: int, d: int, shift: float) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(K, d)) * (rng.random((K, d)) < rng.choice([0.3, 1.0]))  # with and without zeros
    inverse = new_inverse(X)
    pulls = np.zeros(K, np.int64)
    assert invert(inverse, X, pulls, shift)
    for arm in rng.integers(K, size=20):
        add_sample(inverse, X, int(arm))
        pulls[arm] += 1
    exact = np.linalg.inv(shift * np.eye(d) + gram(X, pulls))
    np.testing.assert_allclose(inverse.solved, X @ exact, atol=1e-9)
    np.testing.assert_allclose(inverse.leverages, np.einsum("ki,ij,kj->k", X, exact, X), atol=1e-9)
    for i in range(K):
        assert variance(inverse, X, i, -1) == inverse.leverages[i]
        for j in range(K):
            y = X[i] - X[j]
            assert variance(inverse, X, i, j) == pytest.approx(max(0.0, float(y @ exact @ y)), abs=1e-9)
    parts = independent_parts(X)
    if (parts > 0.1).all():
        assert invert(inverse, X, np.full(K, 1e9), 0.0)
    elif parts[np.argmax(parts <= 0.1)] < 1e-25:
        assert not invert(inverse, X, np.full(K, 1e9), 0.0)
    # else the answer hangs on the tolerance: the pivots are small, but not zero


def independent_parts(X: Array) -> Array:
    """Return how much of each column, squared, the columns before it do not explain; 0 for a column of zeros."""
    K, d = X.shape
    norms = np.linalg.norm(X, axis=0)
    parts = np.zeros(d)
    parts[: min(K, d)] = np.diag(np.linalg.qr(X / np.where(norms > 0.0, norms, 1.0))[1]) ** 2
    return parts


def test_most_matrices_are_judged_by_their_inverse() -> None:
    """The test above skips few of the matrices that it draws, and has both answers often."""
    judged = Counter[str]()
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        K, d = int(rng.integers(1, 9)), int(rng.integers(1, 6))
        parts = independent_parts(rng.normal(size=(K, d)) * (rng.random((K, d)) < rng.choice([0.3, 1.0])))
        small = parts[parts <= 0.1]
        judged["regular" if not small.size else "singular" if small[0] < 1e-25 else "near"] += 1
    assert judged["regular"] > 400
    assert judged["singular"] > 300
    assert judged["near"] < 150


# What they are told


@pytest.mark.parametrize("settings", [GAllocation(), XYAllocation(), XYAdaptive(), RAGE(), LinGapE()], ids=str)
def test_features_without_use_change_nothing(settings: Settings) -> None:
    """Dimensions that no arm uses are left out: a feature that follows from others does no harm."""
    theta = np.array([0.5, -0.2, 0.0])
    session = session_of(FLAT, theta, settings, 0.05, 0.1)
    assert session.constants.contexts.shape == (6, 2)
    noise = np.random.default_rng(0)
    while not session.done:
        question = session.ask()
        session.tell(question, [FLAT[question.arm] @ theta + 0.1 * noise.standard_normal()])
    best = int(np.flatnonzero(session.verdicts().status == FRONT)[0])
    assert (
        FLAT[best] @ theta >= (FLAT @ theta).max() - 0.05
    )  # it may fail with probability 0.1, but does not at this seed


@pytest.mark.parametrize("settings", [GAllocation(), XYAllocation(), XYAdaptive(), RAGE(), LinGapE()], ids=str)
def test_contexts_that_explain_nothing_are_not_used(settings: Settings) -> None:
    setup = Setup(n_arms=5, n_metrics=1, eps=0.1, delta=0.1, sigma=0.1, contexts=S5)  # type: ignore[arg-type]
    if isinstance(settings, LinGapE):
        with pytest.raises(InvalidInput, match="theta_max of LinGapE must be given"):
            Session(settings, setup)
        settings = LinGapE(theta_max=2.0)
    np.testing.assert_array_equal(Session(settings, setup).constants.contexts, np.eye(5))


@pytest.mark.parametrize("settings", [GAllocation(), XYAllocation(), XYAdaptive(), RAGE(), LinGapE()], ids=str)
def test_equal_arms_within_eps(settings: Settings) -> None:
    """One of them is returned, once they are known to be within eps."""
    tied = ps.problems.linear(np.vstack([np.eye(3), np.full(3, 1 / 3)]), np.ones((3, 1)), sigma=0.2)
    result = ps.simulate(tied, settings, eps=0.2, delta=0.1, goal=1, replicates=5, max_samples=20_000)
    assert result.stopped.all()
    assert (result.fronts.sum(axis=1) == 1).all()
    assert result.success.all()


def test_contexts_must_not_be_zero() -> None:
    nothing: Any = {"eps": 0.1, "sigma": 0.1, "contexts": np.zeros((2, 2)), "explained": True}
    with pytest.raises(InvalidInput, match="contexts of algorithm 'rage' must not all be zero"):
        contexts_of(Setup(n_arms=2, n_metrics=1, delta=0.1, **nothing), "rage")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GAllocation(ridge=0.0), "ridge of GAllocation must be a finite number above 0, got 0.0"),
        (lambda: XYAllocation(ridge=-1.0), "ridge of XYAllocation must be a finite number above 0, got -1.0"),
        (
            lambda: XYAllocation(constants="old"),
            "constants of XYAllocation must be 'sound' or 'published', got 'old'",
        ),
        (lambda: XYAdaptive(alpha=1.0), "alpha of XYAdaptive must be a finite number above 0 and below 1, got 1.0"),
        (lambda: RAGE(unit=0.0), "unit of RAGE must be a finite number above 0, got 0.0"),
        (lambda: RAGE(rounding=float("nan")), "rounding of RAGE must be a finite number above 0, got nan"),
        (lambda: RAGE(constants=1), "constants of RAGE must be 'sound' or 'published', got 1"),  # type: ignore[arg-type]
        (lambda: LinGapE(rule="best"), "rule of LinGapE must be 'greedy' or 'ratio', got 'best'"),
        (lambda: LinGapE(ridge=0.0), "ridge of LinGapE must be a finite number above 0, got 0.0"),
        (lambda: LinGapE(theta_max=-1.0), "theta_max of LinGapE must be a finite number at least 0, got -1.0"),
        (lambda: LinGapE(constants=""), "constants of LinGapE must be 'sound' or 'published', got ''"),
    ],
)
def test_settings_say_what_is_wrong(make: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        make()
    assert str(error.value) == message


@pytest.mark.parametrize("name", ["g-allocation", "xy-allocation", "xy-adaptive", "rage", "lingape"])
def test_records(name: str) -> None:
    record = get(name)
    assert record.one_metric
    assert record.guarantees
    assert record.kind == "fixed confidence"
    assert record.setting == "linear contexts"
