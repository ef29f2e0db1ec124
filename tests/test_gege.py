"""GEGE against its twin, the worked runs of the specification, and the authors' figure."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pytest

import paretoscout as ps
from paretoscout.algorithms import GEGE, GEGEBudget
from paretoscout.algorithms.registry import resolve
from paretoscout.errors import InvalidInput
from paretoscout.kernels.decisions import DOMINATED, FRONT, UNDECIDED
from paretoscout.kernels.design_for_means import apportion, optimal_design, span
from paretoscout.kernels.empirical_gaps import empirical_gaps
from paretoscout.session import Session
from paretoscout.start import setup_of

pytestmark = pytest.mark.kernels

Floats = Any
SLOW = os.environ.get("NUMBA_DISABLE_JIT") == "1"
S5 = ps.problems.load("s5")


def naive_gaps(y: Floats) -> tuple[list[float], list[bool]]:
    """The gaps of EGE as printed: m and M signed, for arms off and on the empirical front."""
    n = len(y)
    m = [[float(min(y[j] - y[i])) for j in range(n)] for i in range(n)]
    M = [[float(max(y[i] - y[j])) for j in range(n)] for i in range(n)]
    front = [not any((y[j] >= y[i]).all() and (y[j] > y[i]).any() for j in range(n)) for i in range(n)]
    beaten = [max([m[i][j] for j in range(n) if j != i], default=-math.inf) for i in range(n)]
    gaps = list(beaten)
    for i in range(n):
        if front[i]:
            terms = [min(M[i][j], max(0.0, M[j][i]) + max(0.0, beaten[j])) for j in range(n) if j != i]
            gaps[i] = min(terms, default=math.inf)
    return gaps, front


def whiten(X: Floats) -> Floats:
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    return U[:, s > 1e-12 * s[0]] * math.sqrt(len(X))


def basis(x: Floats) -> tuple[list[int], Floats]:
    """Rows that span all, the longest remainder first, and coordinates of all rows in what they span."""
    left, pivots, directions = x.copy(), list[int](), []
    while len(pivots) < x.shape[1]:
        lengths = np.sqrt((left**2).sum(axis=1))
        if lengths.max() <= 1e-9 * np.sqrt((x**2).sum(axis=1)).max():
            break
        pivots.append(int(lengths.argmax()))
        directions.append(left[pivots[-1]] / lengths.max())
        left = left - np.outer(left @ directions[-1], directions[-1])
    return pivots, x @ np.array(directions).T


def naive_design(pivots: list[int], z: Floats) -> tuple[Floats, float]:
    """Atwood's exchange: raise the determinant most by changing one weight, until all leverages in use are h."""
    n, h = z.shape
    w = np.zeros(n)
    w[pivots] = 1 / h
    while True:
        leverages = np.einsum("ki,ij,kj->k", z, np.linalg.inv(z.T @ (w[:, None] * z)), z)
        top = int(leverages.argmax())
        used = np.flatnonzero(w)
        bottom = int(used[leverages[used].argmin()])
        if leverages[top] <= h * (1 + 1e-6) and leverages[bottom] >= h * (1 - 1e-6):
            break
        k = top if leverages[top] - h >= h - leverages[bottom] else bottom
        step = (leverages[k] / h - 1) / (leverages[k] - 1)
        if k == bottom:
            gone = -w[k] / (1 - w[k])
            step = max(step, gone) if leverages[k] > 1 else gone
            if step == gone:
                w[k] = 0.0
                w /= w.sum()
                continue
        w *= 1 - step
        w[k] += step
    w[w < 1e-6] = 0.0
    w /= w.sum()
    return w, float(np.einsum("ki,ij,kj->k", z, np.linalg.inv(z.T @ (w[:, None] * z)), z).max())


class NaiveGEGE:
    """One round after the other; `arms` is what it wants sampled next, `tell` takes all outcomes of the round."""

    def __init__(self, X: Floats, sigma: Floats, units: Floats, eps: Floats, delta: float, published: bool) -> None:
        self.X, self.units, self.delta, self.published = X, units, delta, published
        self.noise, self.eps = float((sigma / units).max()), float((eps / units).min())
        self.active = list(range(len(X)))
        self.accepted, self.rejected = list[int](), list[int]()
        self.r = 0
        self.log: list[dict[str, Any]] = []
        self.n_metrics = len(units)
        self.plan()

    def plan(self) -> None:
        if len(self.active) <= 1:
            self.accepted += self.active
            self.active = []
            return
        self.r += 1
        pivots, self.z = basis(self.X[self.active])
        weights, leverage = naive_design(pivots, self.z)
        self.quota = self.pulls(weights, leverage)
        self.arms = [k for k, n in zip(self.active, self.quota, strict=True) for _ in range(n)]

    def pulls(self, weights: Floats, leverage: float) -> list[int]:
        self.eps_r = 1 / (2 * 2**self.r) * (1 - 1e-9)
        delta_r = 6 * self.delta / (math.pi**2 * self.r**2)
        log = math.log(1 / delta_r)
        if not self.published:
            log = 32 * math.log(2 * len(self.active) * self.n_metrics / delta_r)
        self.T = math.ceil(self.noise**2 * leverage * log / self.eps_r**2 - 1e-9)
        return [max(1, math.ceil(w * self.T - 1e-9)) if w > 0 else 0 for w in weights]

    def tell(self, outcomes: Floats) -> None:
        rows = np.repeat(self.z, self.quota, axis=0)
        theta = np.linalg.lstsq(rows, np.array(outcomes) / self.units, rcond=None)[0]
        self.judge(*naive_gaps(self.z @ theta))
        self.plan()

    def judge(self, gaps: list[float], front: list[bool]) -> None:
        accept = [k for k, g, f in zip(self.active, gaps, front, strict=True) if f and g >= self.eps_r]
        reject = [k for k, g, f in zip(self.active, gaps, front, strict=True) if not f and g >= self.eps_r / 2]
        self.leave(accept, reject)
        if self.eps_r <= self.eps:
            self.leave(list(self.active), [])

    def leave(self, accept: list[int], reject: list[int]) -> None:
        self.log.append({"r": self.r, "quota": self.quota, "accept": accept, "reject": reject})
        self.accepted += accept
        self.rejected += reject
        self.active = [k for k in self.active if k not in accept + reject]


class NaiveGEGEBudget(NaiveGEGE):
    """log2 d rounds of equal length; each keeps the d / 2^r smallest gaps."""

    def __init__(self, X: Floats, units: Floats, budget: int) -> None:
        self.d = int(np.linalg.matrix_rank(X))
        self.R = max(1, math.ceil(math.log2(self.d)))
        self.N = budget // self.R
        super().__init__(X, units, units, np.zeros(len(units)), 0.5, False)

    def pulls(self, weights: Floats, leverage: float) -> list[int]:
        assert np.count_nonzero(weights) <= self.N
        return naive_apportion(weights, self.N)

    def judge(self, gaps: list[float], front: list[bool]) -> None:
        order = sorted(range(len(gaps)), key=lambda i: (gaps[i], not front[i], self.active[i]))
        gone = order[math.ceil(self.d / 2**self.r) :]
        self.leave([self.active[i] for i in gone if front[i]], [self.active[i] for i in gone if not front[i]])


def naive_apportion(weights: Floats, N: int) -> list[int]:
    used = [i for i, w in enumerate(weights) if w > 0]
    n = {i: max(1, math.ceil((N - len(used) / 2) * weights[i] - 1e-9)) for i in used}
    while sum(n.values()) < N:
        n[min(used, key=lambda i: n[i] / weights[i])] += 1
    while sum(n.values()) > N:
        n[max((i for i in used if n[i] > 1), key=lambda i: (n[i] - 1) / weights[i])] -= 1
    return [n.get(i, 0) for i in range(len(weights))]


# The twins against the specification. Arms are counted from 1 there.


def test_twin_noise_free_s5() -> None:
    twin = NaiveGEGE(S5.contexts, np.full(2, 0.1), np.ones(2), np.zeros(2), 0.1, False)
    totals = []
    while twin.active:
        totals.append(twin.T)
        twin.tell([S5.means[k] for k in twin.arms])
    assert totals == [90, 428, 1160]
    assert [entry["quota"] for entry in twin.log] == [[30, 30, 30, 0, 0], [143, 143, 143, 0], [580, 580]]
    assert [entry["accept"] for entry in twin.log] == [[], [1], [0, 3]]
    assert [entry["reject"] for entry in twin.log] == [[2], [4], []]


def test_twin_noise_free_s5_with_a_budget() -> None:
    twin = NaiveGEGEBudget(S5.contexts, np.ones(2), 120)
    while twin.active:
        twin.tell([S5.means[k] for k in twin.arms])
    assert [entry["quota"] for entry in twin.log] == [[20, 20, 20, 0, 0], [30, 30]]
    assert [entry["accept"] for entry in twin.log] == [[1], [3]]
    assert [sorted(entry["reject"]) for entry in twin.log] == [[2, 4], []]
    assert sorted(twin.accepted) == [0, 1, 3]


# The kernels against the twins.


def run_both(problem: ps.Problem, settings: Any, twin: NaiveGEGE, eps: Any, budget: int | None, seed: int) -> Session:
    """Ask both, tell both the same, compare arm by arm and round by round."""
    asked = problem.asked(eps, 0.1, budget=budget)
    setup, units = setup_of(asked, settings), asked.units
    session = Session(settings, setup, seed)
    noise = np.random.default_rng(seed)
    means, sigma = units.oriented(problem.means), problem.sigma[0] / units.divisors
    while twin.active:
        outcomes = means[twin.arms] + sigma * noise.standard_normal((len(twin.arms), len(sigma)))
        arms = []
        for outcome in outcomes:
            question = session.ask()
            arms.append(question.arm)
            session.tell(question, outcome)
        assert arms == twin.arms
        twin.tell(outcomes)
        status = session.verdicts().status
        for arms, code in ((twin.accepted, FRONT), (twin.rejected, DOMINATED), (twin.active, UNDECIDED)):
            assert sorted(arms) == np.flatnonzero(status == code).tolist()
    assert session.done
    return session


def sphere(K: int, d: int, L: int, sigma: Any, seed: int) -> ps.Problem:
    rng = np.random.default_rng(seed)
    return ps.problems.linear(rng.normal(size=(K, d)), rng.normal(size=(d, L)), sigma)


CASES = [
    # problem, eps, settings of the kernel
    (S5, 0.05, {"scale": 1.0}),
    (S5, 0.0, {"scale": 1.0, "constants": "published"}),
    (sphere(8, 3, 2, 0.3, 1), 0.2, {}),
    (sphere(12, 4, 3, 0.3, 2), 0.5, {"scale": (2.0, 1.0, 3.0)}),
    (sphere(12, 4, 3, (0.3, 0.1, 0.2), 2), (0.5, 0.4, 0.0), {"constants": "published", "scale": 4.0}),
    (sphere(6, 3, 1, 0.2, 3), 0.3, {}),
    (ps.problems.gaussian([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [-0.5, 0.3]], 0.2), 0.2, {}),
    (ps.problems.linear(np.vstack([np.eye(3), np.eye(3)]), [[1, 0], [0, 1], [0.2, 0.2]], 0.1), 0.2, {}),
    (ps.problems.linear(np.eye(3)[:, :2], [[1.0, 0.0], [0.0, 1.0]], 0.1), 0.2, {}),  # one context is zero
]


@pytest.mark.parametrize(("problem", "eps", "how"), CASES)
def test_same_decisions_as_the_twin(problem: ps.Problem, eps: Any, how: dict[str, Any]) -> None:
    settings = GEGE(**how)
    units = problem.asked(eps, 0.1).units
    sigma = problem.sigma[0] / units.divisors
    scale = np.full(len(sigma), 1.0 if "constants" in how else 16.0) * (1.0 if "constants" in how else problem.sigma[0])
    scale = np.full(len(sigma), how["scale"]) if "scale" in how else scale
    X = np.eye(len(problem.arms)) if problem.contexts is None else whiten(problem.contexts)
    twin = NaiveGEGE(X, sigma, scale / units.divisors, units.eps, 0.1, "constants" in how)
    session = run_both(problem, settings, twin, eps, None, seed=4)
    if settings.sound:
        verdicts = session.verdicts()
        assert (np.abs(verdicts.estimates - units.oriented(problem.means)) <= verdicts.radii).all()


@pytest.mark.parametrize(("problem", "budget"), [(S5, 120), (S5, 61), *((case[0], 90) for case in CASES[2:8])])
def test_same_decisions_as_the_twin_with_a_budget(problem: ps.Problem, budget: int) -> None:
    X = np.eye(len(problem.arms)) if problem.contexts is None else whiten(problem.contexts)
    twin = NaiveGEGEBudget(X, problem.sigma[0], budget)
    session = run_both(problem, GEGEBudget(), twin, 0.0, budget, seed=5)
    assert session.verdicts().counts.sum() <= budget


def test_noise_free_s5() -> None:
    exact = ps.problems.linear(S5.contexts, S5.theta, sigma=0.0)
    result = ps.simulate(exact, GEGE(sigma=0.1, scale=1.0), eps=0.0, delta=0.1, replicates=1)
    assert result.pulls.tolist() == [[30 + 143 + 580, 30 + 143, 30, 143 + 580, 0]]
    assert result.fronts.tolist() == [[True, True, False, True, False]]
    result = ps.simulate(exact, GEGEBudget(sigma=0.1), delta=0.1, replicates=1, budget=120)
    assert result.pulls.tolist() == [[50, 20, 20, 30, 0]]
    assert result.fronts.tolist() == [[True, True, False, True, False]]


@pytest.mark.skipif(SLOW, reason="a million samples; the twin covers the constants")
def test_the_authors_figure() -> None:
    """The authors' code takes 3811 samples here in the median run: rounds of 180, 1072 and 2559 (it counts T_r).

    Ours takes 3817, as every arm's share is rounded up. In 1000 runs 35% took less than 80% of 3811 samples, and 30% more
    than 120%; so the median of 400 is further off than 20% with probability below 1e-8.
    """
    problem = ps.problems.load("linear-16")
    result = ps.simulate(problem, GEGE(constants="published"), eps=0.0, delta=0.1, replicates=400)
    assert abs(np.median(result.samples) / 3811 - 1) < 0.2
    assert {180 + 1072 + 2559 + rounded_up for rounded_up in range(10)} & set(result.samples.tolist())
    assert result.guarantee.startswith("none")


# The parts.


def design_of(X: Floats) -> tuple[Floats, float, int]:
    K, d = X.shape
    arms, points, pivots = np.arange(K), np.zeros((K, d)), np.zeros(d, np.int64)
    h = span(arms, X, np.zeros((K, d)), np.zeros(d), points, pivots)
    weights = np.zeros(K)
    reach = np.full(d, d - 1)
    work = (np.zeros(K), np.zeros((d, d)), reach, np.zeros((d, d)), np.zeros(d))
    return weights, optimal_design(arms, points, pivots, h, weights, *work), h


def test_design_of_s5() -> None:
    weights, largest, h = design_of(S5.contexts)
    np.testing.assert_allclose(weights, [1 / 3, 1 / 3, 1 / 3, 0, 0], atol=1e-12)
    assert largest == pytest.approx(3.0, abs=1e-12)
    assert h == 3


@pytest.mark.parametrize(("K", "d", "rank"), [(6, 3, 3), (30, 4, 4), (30, 6, 2), (4, 6, 4), (200, 5, 5)])
def test_designs_are_optimal(K: int, d: int, rank: int) -> None:
    """The theorem of Kiefer and Wolfowitz is the certificate; multiplicative updates, much slower, come to the same."""
    rng = np.random.default_rng(K)
    X = rng.normal(size=(K, rank)) @ rng.normal(size=(rank, d))
    weights, largest, h = design_of(X)
    assert h == rank
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    Z = whiten(X)
    inverse = np.linalg.inv(Z.T @ (weights[:, None] * Z))
    leverages = np.einsum("ki,ij,kj->k", Z, inverse, Z)
    assert leverages.max() == pytest.approx(largest, rel=1e-9)
    assert largest <= rank * (1 + 3e-6)
    assert np.count_nonzero(weights) <= rank * (rank + 1) // 2 + 1
    slow = np.full(K, 1 / K)
    for _ in range(3000):
        slow *= np.einsum("ki,ij,kj->k", Z, np.linalg.inv(Z.T @ (slow[:, None] * Z)), Z) / rank
    gain = np.linalg.slogdet(Z.T @ (weights[:, None] * Z))[1] - np.linalg.slogdet(Z.T @ (slow[:, None] * Z))[1]
    assert -1e-5 < gain < 0.01


@pytest.mark.parametrize("seed", range(5))
def test_gaps_equal_the_naive_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, size=(9, 1 + seed % 3)).astype(float) if seed % 2 else rng.normal(size=(9, 2))
    arms = np.array([0, 2, 3, 5, 8])
    gaps, front = np.full(9, 7.0), np.zeros(9, np.bool_)
    empirical_gaps(arms, y, gaps, front)
    expected = naive_gaps(y[arms])
    assert gaps[arms].tolist() == expected[0]
    assert front[arms].tolist() == expected[1]
    assert gaps[1] == 7.0


def test_gaps_of_s5() -> None:
    gaps, front = np.zeros(5), np.zeros(5, np.bool_)
    empirical_gaps(np.arange(5), S5.means, gaps, front)
    np.testing.assert_allclose(gaps, [0.1, 0.125, 0.225, 0.1, 0.11], atol=1e-12)
    empirical_gaps(np.array([3]), S5.means, gaps, front)
    assert gaps[3] == np.inf


@pytest.mark.parametrize(("weights", "n"), [([0.5, 0.3, 0.2], 10), ([0.5, 0.3, 0.2], 3), ([1 / 3] * 3, 61), ([1.0], 4)])
def test_apportioned_samples_are_what_there_is(weights: list[float], n: int) -> None:
    quota = np.zeros(len(weights), np.int64)
    apportion(np.arange(len(weights)), np.array(weights), n, quota)
    assert quota.sum() == n
    assert quota.min() >= 1
    assert quota.tolist() == naive_apportion(np.array(weights), n)
    assert np.abs(quota - n * np.array(weights)).max() <= 2


# Settings.


@pytest.mark.parametrize(
    ("settings", "how", "said"),
    [
        (GEGE, {"constants": "best"}, "constants of GEGE must be 'sound' or 'published', got 'best'"),
        (GEGE, {"model": "robust"}, "model of GEGE must be 'linear', 'tabular' or None"),
        (GEGE, {"scale": 0.0}, "scale of GEGE must be above 0"),
        (GEGE, {"scale": -1.0}, "scale of GEGE must be"),
        (GEGEBudget, {"model": 3}, "model of GEGEBudget must be"),
    ],
)
def test_settings_say_what_is_wrong(settings: Any, how: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        settings(**how)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInput, match="contexts must be given for model='linear' of GEGE"):
        ps.simulate(ps.problems.load("four-arms"), GEGE(model="linear"), delta=0.1, replicates=1)
    with pytest.raises(InvalidInput, match="scale of GEGE must be one number or 2 of them"):
        ps.simulate(S5, GEGE(scale=(1.0, 1.0, 1.0)), delta=0.1, replicates=1)
    with pytest.raises(
        InvalidInput, match="budget of GEGEBudget must be at least 6 here, 3 for each of 2 rounds, got 5"
    ):
        ps.simulate(S5, GEGEBudget(), delta=0.1, budget=5, replicates=1)


def test_published_constants_promise_nothing() -> None:
    assert resolve(GEGE())[0].guarantees
    assert not resolve(GEGE(constants="published"))[0].guarantees


def test_contexts_that_explain_nothing_are_left_alone() -> None:
    rng = np.random.default_rng(3)
    problem = ps.problems.gaussian(rng.normal(size=(6, 2)), 0.1, rng.normal(size=(6, 2)))
    assert ps.simulate(problem, "gege", eps=0.1, delta=0.1, replicates=3).success.all()


def test_many_arms() -> None:
    """K=1000, d=8: designs are found in the rounds, and the front is right."""
    problem = ps.problems.load("linear-1000")
    if SLOW:
        pytest.skip("takes minutes uncompiled")
    assert ps.simulate(problem, "gege", eps=0.2, delta=0.1, replicates=1).success.all()
