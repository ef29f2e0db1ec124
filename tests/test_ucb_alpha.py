"""UCB_alpha against its twin, which reads like the paper, and the twin against known runs; why its width holds."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import paretoscout as ps
from paretoscout.algorithms import Setup, UCBAlpha
from paretoscout.algorithms.ucb_alpha import SIDE
from paretoscout.errors import InvalidInput
from paretoscout.kernels.decisions import DOMINATED, FRONT, UNDECIDED
from paretoscout.kernels.widths import ucb_alpha
from paretoscout.session import Session

pytestmark = pytest.mark.kernels
Array = npt.NDArray[np.float64]


class NaiveUCBAlpha:
    """Two samples of each arm, then the highest mean + alpha width; stops at disjoint intervals, without alpha.

    eps: by how much the returned arm may be worse than the best, which the paper does not have.
    """

    def __init__(self, K: int, alpha: float, level: float, sigma: float, eps: float = 0.0) -> None:
        self.K, self.alpha, self.level, self.sigma, self.eps = K, alpha, level, sigma, eps
        self.rows: list[list[float]] = [[] for _ in range(K)]
        self.best: int | None = None

    def width(self, k: int) -> float:
        n = len(self.rows[k])
        return self.sigma * math.sqrt(2 / n * math.log(3 * math.log(n) ** 2 / self.level))

    def mean(self, k: int) -> float:
        return sum(self.rows[k]) / len(self.rows[k])

    def choose(self) -> int:
        for k in range(self.K):
            if len(self.rows[k]) < math.ceil(math.exp(math.sqrt(self.level / 3))):
                return k
        return max(range(self.K), key=lambda k: (self.mean(k) + self.alpha * self.width(k), -k))

    def update(self, arm: int, outcome: float) -> None:
        self.rows[arm].append(outcome)
        if min(len(rows) for rows in self.rows) < 2:
            return
        b = max(range(self.K), key=lambda k: (self.mean(k), -k))
        others = [self.mean(k) + self.width(k) for k in range(self.K) if k != b]
        if self.mean(b) - self.width(b) + self.eps > max(others, default=-math.inf):
            self.best = b


@pytest.mark.parametrize(("n", "expected"), [(2, 1.633454), (10, 1.006902), (100, 0.359320), (1000, 0.120553)])
def test_width(n: int, expected: float) -> None:
    assert ucb_alpha(n, 0.1, 1.0) == pytest.approx(expected, abs=5e-7)
    twin = NaiveUCBAlpha(1, 1.0, 0.1, 1.0)
    twin.rows[0] = [0.0] * n
    assert twin.width(0) == pytest.approx(expected, abs=5e-7)


KNOWN_RUNS: list[tuple[list[float], float, list[int], float]] = [
    ([0.5, 0.0], 1.5, [2114, 73], 36.5),
    ([0.5, 0.0], 2.0, [921, 92], 46.0),
    ([0.5, 0.0], 3.0, [505, 118], 59.0),
    ([0.5, 0.0], 6.0, [318, 157], 78.5),
    ([0.5, 0.0], 1e9, [217, 217], 108.5),  # sampling all arms alike
    ([0.5, 0.3, 0.2, 0.0], 3.0, [3414, 811, 509, 251], 440.4),
]


@pytest.mark.parametrize(("means", "alpha", "pulls", "regret"), KNOWN_RUNS)
def test_noise_free_runs(means: list[float], alpha: float, pulls: list[int], regret: float) -> None:
    """With the published width, sigma 1 and delta 0.1."""
    exact = ps.problems.gaussian(np.array(means)[:, None], sigma=0.0)
    settings = UCBAlpha(alpha=alpha, radius="published", sigma=1.0)
    result = ps.simulate(exact, settings, delta=0.1, replicates=1)
    assert result.pulls.tolist() == [pulls]
    assert result.regret[0] == pytest.approx(regret, abs=1e-6)
    assert result.fronts.tolist() == [[True] + [False] * (len(means) - 1)]


def test_twin_on_a_known_run() -> None:
    """The quickest of the runs above; the others follow from the twin being equal to the kernels."""
    twin = NaiveUCBAlpha(2, 6.0, 0.1, 1.0)
    while twin.best is None:
        arm = twin.choose()
        twin.update(arm, [0.5, 0.0][arm])
    assert [len(rows) for rows in twin.rows] == [318, 157]


@pytest.mark.parametrize("radius", ["union", "published"])
@pytest.mark.parametrize("goal", ["front", "cover", 1, 2])
@pytest.mark.parametrize(
    ("means", "sigma", "eps", "alpha"),
    [
        ([0.5, 0.0], 0.3, 0.1, 1.5),
        ([1.0, 0.7, 0.2, 0.1, -0.5], 0.2, 0.2, 3.0),
        ([1.0, 1.0, 0.0], 0.1, 0.3, 3.0),
        ([0.0, 0.2, 0.1], 0.0, 0.0, 2.0),
        (np.random.default_rng(0).normal(size=16).tolist(), 0.1, 0.1, 6.0),
        ([0.3], 1.0, 0.0, 3.0),
    ],
)
def test_equals_its_twin(
    means: list[float], sigma: float, eps: float, alpha: float, goal: str | int, radius: str
) -> None:
    K = len(means)
    setup = Setup(K, 1, np.array([eps]), 0.1, np.array([sigma]), goal=goal)
    session = Session(UCBAlpha(alpha=alpha, radius=radius), setup)
    level = 0.1 / (1.5 * K) if radius == "union" else 0.1
    twin = NaiveUCBAlpha(K, alpha, level, sigma, eps if goal in ("cover", 1) else 0.0)
    noise = np.random.default_rng(3)
    for _ in range(400):
        assert session.done == (twin.best is not None)
        if session.done:
            break
        question = session.ask()
        assert question.arm == twin.choose()
        outcome = means[question.arm] + sigma * noise.standard_normal()
        session.tell(question, [outcome])
        twin.update(question.arm, outcome)
    status = session.verdicts().status
    assert np.flatnonzero(status == FRONT).tolist() == ([] if twin.best is None else [twin.best])


def test_only_who_is_surely_worse_is_called_dominated() -> None:
    """Where an arm within eps is enough, another one may be as good."""
    setup = Setup(3, 1, np.array([0.5]), 0.1, np.array([0.1]), goal=1)
    session = Session("ucb-alpha", setup)
    while not session.done:
        question = session.ask()
        session.tell(question, [[1.0, 0.99, 0.0][question.arm]])
    assert session.verdicts().status.tolist() == [FRONT, UNDECIDED, DOMINATED]
    assert session.verdicts().rival.tolist() == [-1, 0, 0]
    before = session.verdicts().status
    for _ in range(500):
        session.add(1, [0.0])
    np.testing.assert_array_equal(session.verdicts().status, before)


def crossed_at_most(level: float) -> float:
    """A bound on the probability that a sum of n >= 2 sub-Gaussian values ever exceeds n times its width, over `level`.

    From p to q samples, a line through n times the width at p and q lies below it (it is concave for levels up to 1/2)
    and is crossed with probability at most exp(-2 intercept slope). The cheapest way to cut the numbers up to 6e6 into
    such stretches is found step by step; beyond, stretches grow by a factor, and the logarithm is taken at their start.
    """

    def log(n: float) -> float:
        return math.log(3 * math.log(n) ** 2 / level)

    def boundary(n: float) -> float:
        return math.sqrt(2 * n * log(n))

    cuts = [*range(2, 30), *sorted({round(30 * 1.15**k) for k in range(90)} - {30})]
    least = [0.0] + [math.inf] * (len(cuts) - 1)  # price of all numbers below each cut
    for i, p in enumerate(cuts):
        for j in range(i + 1, min(len(cuts), i + 35)):
            q = cuts[j] - 1
            price = math.exp(-log(p))
            if q > p:
                slope = (boundary(q) - boundary(p)) / (q - p)
                price = math.exp(-2 * slope * (boundary(p) - slope * p))
            least[j] = min(least[j], least[i] + price)
    tail, stretches, start = math.inf, 20_000, math.log(cuts[-1])
    for ratio in (1.5, 2.0, 4.0):
        loss = 0.25 * (ratio**0.25 + ratio**-0.25) ** 2
        step, power = math.log(ratio), 2 / loss
        prices = sum((start + k * step) ** -power for k in range(stretches))
        rest = (start + (stretches - 1) * step) ** (1 - power) / ((power - 1) * step)  # an integral
        tail = min(tail, (level / 3) ** (1 / loss) * (prices + rest))
    return (least[-1] + tail) / level


@pytest.mark.parametrize("level", [0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-9, 1e-12])
def test_width_holds_for_all_numbers_of_samples(level: float) -> None:
    """What the levels rest on: one side of the width fails with probability at most 1.5 times its level."""
    assert crossed_at_most(level) < SIDE


def test_right_as_often_as_promised() -> None:
    """Many arms, where a union matters. False alarm: 48 of 200 or 12 of 20 failing has probability < 1e-6 at rate 0.1."""
    replicates = 20 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 200
    means = np.zeros((20, 1))
    means[0] = 0.5
    problem = ps.problems.gaussian(means, sigma=1.0)
    result = ps.simulate(problem, "ucb-alpha", delta=0.1, replicates=replicates)
    assert result.stopped.all()
    assert (~result.success).sum() < 0.2 * replicates + 8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.9}, "alpha of UCBAlpha must be a finite number at least 1, got 0.9"),
        ({"alpha": None}, "alpha of UCBAlpha must be a finite number at least 1, got None"),
        ({"radius": "wide"}, "radius of UCBAlpha must be 'union' or 'published', got 'wide'"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        UCBAlpha(**settings)


def test_published_width_is_not_sound() -> None:
    assert UCBAlpha().sound
    assert not UCBAlpha(radius="published").sound
