"""APE against its twin, which reads like the paper, and the twin against worked numbers and known runs."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import zeta

import paretoscout as ps
from paretoscout.algorithms import APE, Setup
from paretoscout.errors import InvalidInput
from paretoscout.kernels.decisions import DOMINATED, FRONT, UNDECIDED
from paretoscout.session import Session
from paretoscout.start import setup_of

pytestmark = pytest.mark.kernels
Array = npt.NDArray[np.float64]

S5 = np.array([[0.8, 0.1], [0.2, 0.75], [0.4, 0.4], [0.7, 0.625], [0.59, 0.1975]])


def calibration(x: float) -> float:
    """The calibration function of Kaufmann and Koolen."""

    def g(r: float) -> float:
        return 2 * r - 2 * r * math.log(4 * r) + math.log(zeta(2 * r)) - 0.5 * math.log(1 - r)

    found = minimize_scalar(
        lambda r: (g(r) + x) / r, bounds=(0.5 + 1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-13}
    )
    return float(found.fun)


class NaiveAPE:
    """The algorithm as it is written: all pairs again after each sample.

    With more than one sigma or eps, each metric has its own in M+ and M-; with one of each these are the paper's.
    goal: "front" is eps1-PSI, "cover" is (eps1, eps2)-PSI, a number k is eps1-PSI-k.
    """

    def __init__(
        self, K: int, L: int, eps1: Any, eps2: Any, delta: float, sigma: Any, goal: str | int, rho: float | None
    ) -> None:
        self.K, self.L, self.goal, self.rho = K, L, goal, rho
        self.eps1, self.eps2, self.sigma = (np.broadcast_to(value, L).astype(float) for value in (eps1, eps2, sigma))
        self.alpha = delta / (max(1, K * (K - 1) / 2) * L)
        self.price = calibration(0.5 * math.log(1 / self.alpha))
        self.rows: list[list[Array]] = [[] for _ in range(K)]
        self.done = False
        self.dominated: dict[int, set[int]] = {}  # arm -> who dominated it for sure when that was first so
        self.returned: set[int] = set()

    def beta(self, i: int, j: int) -> Array:
        n_i, n_j = len(self.rows[i]), len(self.rows[j])
        if self.rho is None:
            loglog = math.log(4 + math.log(n_i)) + math.log(4 + math.log(n_j))
            return 2 * self.sigma * math.sqrt((self.price + loglog) * (1 / n_i + 1 / n_j))
        log = math.log(1 / self.alpha) + 0.5 * math.log((1 + n_i / self.rho) * (1 + n_j / self.rho))
        return self.sigma * math.sqrt(2 * log * ((n_i + self.rho) / n_i**2 + (n_j + self.rho) / n_j**2))

    def upper_lead(self, i: int, j: int) -> float:
        """M+."""
        return float(max(self.y[i] - self.y[j] + self.beta(i, j)))

    def lower_lead(self, i: int, j: int) -> float:
        """M-, with eps1, which the paper adds afterwards."""
        return float(max(self.y[i] - self.y[j] + self.eps1 - self.beta(i, j)))

    def lower_deficit(self, i: int, j: int, eps2: Array | float = 0.0) -> float:
        """m-, with eps2 where j is one of OPT."""
        return float(min(self.y[j] - self.y[i] + eps2 - self.beta(i, j)))

    def others(self, i: int) -> list[int]:
        return [j for j in range(self.K) if j != i]

    def h(self, i: int) -> float:
        return min((self.lower_lead(i, j) for j in self.others(i)), default=math.inf)

    def g(self, i: int, covering: set[int] | None = None) -> float:
        covering = covering or set()
        terms = (self.lower_deficit(i, j, self.eps2 if j in covering else 0.0) for j in self.others(i))
        return max(terms, default=-math.inf)

    def front_of_means(self) -> set[int]:
        y = self.y
        return {
            i for i in range(self.K) if not any((y[j] >= y[i]).all() and (y[j] > y[i]).any() for j in self.others(i))
        }

    def choose(self) -> int:
        counts = [len(rows) for rows in self.rows]
        if 0 in counts:
            return counts.index(0)
        b, c = self.pair()
        return c if counts[c] < counts[b] else b

    def pair(self) -> tuple[int, int]:
        """b and c."""
        room = {i: min(self.upper_lead(i, j) for j in self.others(i)) for i in range(self.K) if i not in self.OPT}
        b = max(room, key=lambda i: (room[i], -i))
        return b, min(self.others(b), key=lambda j: self.lower_lead(b, j))

    def update(self, arm: int, outcome: Array) -> None:
        self.rows[arm].append(np.array(outcome))
        if not all(self.rows):
            return
        self.y = [np.add.accumulate(rows)[-1] / len(rows) for rows in self.rows]
        self.OPT = {i for i in range(self.K) if self.h(i) > 0}
        for i in range(self.K):
            certain = {j for j in self.others(i) if self.lower_deficit(i, j) > 0}
            if certain:
                self.dominated.setdefault(i, certain)
        S = self.front_of_means()
        self.Z1 = min(self.h(i) for i in S)
        self.Z2 = min((max(self.g(i), self.h(i)) for i in range(self.K) if i not in S), default=math.inf)
        whole_front = self.Z1 > 0 and self.Z2 > 0
        if self.goal == "front":
            self.done = whole_front
            self.returned = set(range(self.K)) - set(self.dominated)
        elif self.goal == "cover":
            self.done = all(max(self.g(i, self.OPT), self.h(i)) > 0 for i in range(self.K))
            self.returned = self.OPT
        else:
            self.done = whole_front or len(self.OPT) >= int(self.goal)
            self.returned = self.OPT


def noise_free(eps1: float, eps2: float, goal: str | int, means: Array = S5) -> tuple[NaiveAPE, list[tuple[int, int]]]:
    """Run the twin on exact outcomes; also return b and c, counted from 1, of its choices after the first round."""
    K, L = means.shape
    twin = NaiveAPE(K, L, eps1, eps2, 0.1, 0.1, goal, None)
    pairs = []
    while not twin.done:
        arm = twin.choose()
        if all(twin.rows):
            b, c = twin.pair()
            pairs.append((b + 1, c + 1))
        twin.update(arm, means[arm])
    return twin, pairs


@pytest.mark.parametrize(
    ("n_i", "n_j", "expected"), [(1, 1, 7.509013), (10, 10, 2.523092), (100, 100, 0.828507), (100, 400, 0.660669)]
)
def test_published_width(n_i: int, n_j: int, expected: float) -> None:
    twin = NaiveAPE(5, 2, 0, 0, 0.1, 1.0, "front", None)
    assert twin.price == pytest.approx(4.275571, abs=5e-7)
    twin.rows[0], twin.rows[1] = [S5[0]] * n_i, [S5[1]] * n_j
    assert twin.beta(0, 1) == pytest.approx([expected] * 2, abs=5e-7)


def test_first_choices() -> None:
    twin = NaiveAPE(5, 2, 0, 0, 0.1, 0.1, "front", None)
    for arm in range(5):
        twin.update(arm, S5[arm])
    assert pytest.approx((-0.650901, -0.640901), abs=5e-7) == (twin.Z1, twin.Z2)
    seen = []
    for _ in range(7):
        b, c = twin.pair()
        arm = twin.choose()
        seen.append((b + 1, c + 1, arm + 1))
        twin.update(arm, S5[arm])
    assert seen == [(4, 3, 4), (4, 3, 3), (4, 3, 4), (4, 3, 3), (2, 4, 2), (4, 5, 5), (4, 3, 4)]


KNOWN_RUNS = [
    (0.0, 0.0, "front", [68, 43, 8, 68, 48], {1, 2, 4}),
    (0.05, 0.05, "front", [30, 22, 8, 56, 56], {1, 2, 4}),
    (0.15, 0.15, "front", [11, 9, 8, 56, 56], {1, 2, 4}),
    (0.3, 0.3, "front", [4, 4, 10, 18, 19], {1, 2, 4, 5}),
    (0.0, 0.15, "cover", [68, 43, 7, 68, 9], {1, 2, 4}),
    (0.0, 0.0, 1, [2, 2, 7, 7, 3], {4}),
    (0.0, 0.0, 2, [23, 43, 7, 43, 6], {2, 4}),
]


@pytest.mark.parametrize(("eps1", "eps2", "goal", "pulls", "returned"), KNOWN_RUNS)
def test_noise_free_s5(eps1: float, eps2: float, goal: str | int, pulls: list[int], returned: set[int]) -> None:
    twin, _ = noise_free(eps1, eps2, goal)
    assert [len(rows) for rows in twin.rows] == pulls
    assert {arm + 1 for arm in twin.returned} == returned
    exact = ps.problems.gaussian(S5, sigma=0.0)
    settings = APE(sigma=0.1, radius="kaufmann-koolen", eps1=eps1, eps2=eps2)
    result = ps.simulate(exact, settings, eps=max(eps1, eps2), delta=0.1, goal=goal, replicates=1)
    assert result.pulls.tolist() == [pulls]
    assert set(np.flatnonzero(result.fronts[0]) + 1) == returned
    assert result.success.all()


def instances() -> list[tuple[str, Array, Any, Any, float, Any]]:
    """Means, eps1, eps2, delta, sigma: few and many arms, one to four metrics, uneven noise, ties, duplicates."""
    rng = np.random.default_rng(12)
    return [
        ("S5", S5, 0.05, 0.1, 0.1, 0.1),
        ("S5, eps 0", S5, 0.0, 0.0, 0.1, 0.1),
        ("uneven", S5, [0.1, 0.02], [0.1, 0.05], 0.3, [0.1, 0.03]),
        ("one noise-free metric", S5, [0.05, 0.02], 0.05, 0.1, [0.1, 0.0]),
        ("one metric", rng.normal(size=(6, 1)), 0.2, 0.3, 0.1, 0.3),
        ("four metrics", rng.normal(size=(7, 4)), 0.3, 0.3, 0.1, 0.3),
        ("12 arms", rng.normal(size=(12, 2)), 0.5, 0.5, 0.1, 0.3),
        ("duplicates", np.repeat(S5, 2, axis=0), 0.2, 0.2, 0.1, 0.05),
        ("one arm", S5[:1], 0.1, 0.1, 0.1, 0.1),
    ]


@pytest.mark.parametrize("radius", ["mixture", "kaufmann-koolen"])
@pytest.mark.parametrize("goal", ["front", "cover", 1, 2])
@pytest.mark.parametrize("instance", instances(), ids=lambda instance: instance[0])
def test_equals_its_twin(instance: tuple[str, Array, Any, Any, float, Any], goal: str | int, radius: str) -> None:
    _, means, eps1, eps2, delta, sigma = instance
    K, L = means.shape
    eps1, eps2 = tuple(np.broadcast_to(eps1, L).tolist()), tuple(np.broadcast_to(eps2, L).tolist())
    setup = Setup(K, L, np.maximum(eps1, eps2), delta, np.array(sigma, float), goal=goal)
    session = Session(APE(radius=radius, eps1=eps1, eps2=eps2), setup)
    rho = session.constants.rho if radius == "mixture" else None
    twin = NaiveAPE(K, L, eps1, eps2, delta, sigma, goal, rho)
    noise = np.random.default_rng(3)
    for _ in range(150):
        assert session.done == twin.done
        if twin.done:
            break
        question = session.ask()
        assert question.arm == twin.choose()
        outcome = means[question.arm] + sigma * noise.standard_normal(L)
        session.tell(question, outcome)
        twin.update(question.arm, outcome)
        if all(twin.rows):
            assert set(np.flatnonzero(session.state.blocker < 0)) == twin.OPT
    verdicts = session.verdicts()
    if twin.done:
        assert set(np.flatnonzero(verdicts.status == FRONT)) == twin.returned
    if twin.done or goal == "front":
        assert set(np.flatnonzero(verdicts.status == DOMINATED)) == set(twin.dominated) - (
            set() if goal == "front" else twin.returned
        )
    for k, certain in twin.dominated.items():
        assert session.state.beaten_by[k] in certain
    if all(twin.rows):
        np.testing.assert_allclose(verdicts.estimates, twin.y, rtol=1e-12)


def test_mixture_is_sharpest_where_it_is_told() -> None:
    setup = Setup(5, 2, 0.1, 0.1, 1.0)  # type: ignore[arg-type]
    widths = {}
    for sharpest_at in (25.0, 50.0, 100.0, 200.0):
        rho = Session(APE(sharpest_at=sharpest_at), setup).constants.rho
        twin = NaiveAPE(5, 2, 0, 0, 0.1, 1.0, "front", rho)
        twin.rows[0] = twin.rows[1] = [S5[0]] * 50
        widths[sharpest_at] = twin.beta(0, 1)[0]
    assert min(widths, key=lambda at: widths[at]) == 50.0


def test_intervals_of_single_arms_hold_with_those_of_pairs() -> None:
    """One arm's interval is no wider than that of its difference to another one, as its error is part of theirs."""
    session = Session(APE(), setup_of(ps.problems.load("s5").asked(0.05, 0.1), APE()))
    noise = np.random.default_rng(0)
    for _ in range(60):
        question = session.ask()
        session.tell(question, S5[question.arm] + 0.1 * noise.standard_normal(2))
    twin = NaiveAPE(5, 2, 0, 0, 0.1, 0.1, "front", session.constants.rho)
    for k, n in enumerate(session.verdicts().counts):
        twin.rows[k] = [S5[k]] * int(n)
    for k, radius in enumerate(session.verdicts().radii):
        assert (radius > 0).all()
        assert (radius < min(twin.beta(k, j)[0] for j in range(5) if j != k)).all()


@pytest.mark.parametrize(("eps", "mean", "sd"), [(0.0, 251.3, 40.1), (0.05, 173.3, 40.7), (0.15, 142.8, 37.5)])
def test_samples_with_noise(eps: float, mean: float, sd: float) -> None:
    """Means and deviations of 200 runs of a reference implementation.

    At 5 combined standard errors (theirs sd / sqrt(200)) a right implementation fails with probability below 1e-6.
    """
    replicates = 40 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 2000
    settings = APE(radius="kaufmann-koolen")
    result = ps.simulate(ps.problems.load("s5"), settings, eps=eps, delta=0.1, replicates=replicates, seed=7)
    error = np.hypot(result.samples.std() / replicates**0.5, sd / 200**0.5)
    assert abs(result.samples.mean() - mean) < 5 * error
    assert result.success.all()


@pytest.mark.parametrize("goal", ["front", "cover", 2, 9])
def test_finds_what_is_asked_for(goal: str | int) -> None:
    """False alarms: it fails with probability at most 0.1 each; 30 of 60 failing has probability below 1e-13."""
    rng = np.random.default_rng(4)
    problem = ps.problems.gaussian(rng.normal(size=(10, 2)), sigma=0.3)
    result = ps.simulate(problem, "ape", eps=0.3, delta=0.1, goal=goal, replicates=60, max_samples=100_000)
    assert result.stopped.all()
    assert result.success.sum() > 30


def test_arms_that_are_not_asked_for_stay_open() -> None:
    """Whoever is neither returned nor proven dominated when k arms are found has no verdict."""
    setup = Setup(5, 2, 0.0, 0.1, 0.1, goal=1)  # type: ignore[arg-type]
    session = Session("ape", setup)
    while not session.done:
        question = session.ask()
        session.tell(question, S5[question.arm])
    status = session.verdicts().status
    assert status[3] == FRONT
    assert status[0] == UNDECIDED


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"radius": "auer"}, "radius of APE must be 'mixture' or 'kaufmann-koolen', got 'auer'"),
        ({"sharpest_at": 0}, "sharpest_at of APE must be a finite number above 0, got 0"),
        ({"eps1": -0.1}, "eps1 of APE must be a finite number at least 0, got -0.1"),
        ({"eps2": "much"}, "eps2 of APE must be a finite number at least 0, got 'much'"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        APE(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (APE(eps2=0.2), "eps2 of APE must be at most eps"),
        (APE(eps1=(0.0, 0.2)), "eps1 of APE must be at most eps"),
        (APE(eps1=(0.0, 0.0, 0.0)), "eps1 of APE must be one number or 2 of them"),
    ],
)
def test_relaxations_stay_within_what_is_promised(settings: APE, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ps.simulate(ps.problems.load("s5"), settings, eps=0.1, delta=0.1, goal="cover", replicates=1)
