"""BoBW-lil'UCB against its twin, which reads like the paper, and the twin against worked numbers and known runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import paretoscout as ps
from paretoscout.algorithms import BoBWLilUCB, Setup
from paretoscout.algorithms.bobw_lilucb import width
from paretoscout.errors import InvalidInput
from paretoscout.kernels.decisions import FRONT, UNDECIDED
from paretoscout.session import Session

pytestmark = pytest.mark.kernels


class NaiveBoBWLilUCB:
    """Each arm once, then the highest upper bound; the largest mean at the horizon."""

    def __init__(self, K: int, gamma: float, sigma: float) -> None:
        self.K, self.gamma, self.sigma = K, gamma, sigma
        self.rows: list[list[float]] = [[] for _ in range(K)]

    def width(self, n: int) -> float:
        eps, beta = 0.01, math.e
        log = math.log(math.log(beta + (1 + eps) * n) / self.gamma)
        return 5 * self.sigma * (1 + math.sqrt(eps)) * math.sqrt(2 * (1 + eps) / n * log)

    def mean(self, k: int) -> float:
        return sum(self.rows[k]) / len(self.rows[k])

    def choose(self) -> int:
        for k in range(self.K):
            if not self.rows[k]:
                return k
        return max(range(self.K), key=lambda k: (self.mean(k) + self.width(len(self.rows[k])), -k))

    def update(self, arm: int, outcome: float) -> None:
        self.rows[arm].append(outcome)


@pytest.mark.parametrize(
    ("gamma", "expected"),
    [
        (1e-7, [31.649219, 10.208414, 3.284352, 1.050287]),
        (1e-4, [24.074357, 7.874127, 2.562418, 0.825230]),
        (1e-1, [12.548955, 4.448824, 1.531340, 0.508827]),
    ],
)
def test_width(gamma: float, expected: list[float]) -> None:
    twin = NaiveBoBWLilUCB(1, gamma, 1.0)
    assert [twin.width(n) for n in (1, 10, 100, 1000)] == pytest.approx(expected, abs=5e-7)
    assert [width(n, gamma) for n in (1, 10, 100, 1000)] == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(
    ("gamma", "pulls", "regret"), [(1e-4, [1832, 97, 50, 21], 44.9), (0.1, [1934, 40, 19, 7], 17.2)]
)
def test_noise_free_runs(gamma: float, pulls: list[int], regret: float) -> None:
    exact = ps.problems.gaussian([[0.5], [0.3], [0.2], [0.0]], sigma=0.0)
    result = ps.simulate(exact, BoBWLilUCB(gamma=gamma, sigma=0.1), delta=0.1, budget=2000, replicates=1)
    assert result.pulls.tolist() == [pulls]
    assert result.regret[0] == pytest.approx(regret, abs=1e-6)
    assert result.success.all()


@pytest.mark.parametrize("gamma", [1e-7, 1e-4, 0.5])
@pytest.mark.parametrize(
    ("means", "sigma"),
    [
        ([0.5, 0.3, 0.2, 0.0], 0.1),
        ([0.5, 0.5, 0.0], 0.0),
        (np.random.default_rng(0).normal(size=16).tolist(), 0.02),
        ([0.3], 1.0),
    ],
)
def test_equals_its_twin(means: list[float], sigma: float, gamma: float) -> None:
    K = len(means)
    session = Session(BoBWLilUCB(gamma=gamma), Setup(K, 1, np.zeros(1), 0.1, np.array([sigma]), budget=300))
    twin = NaiveBoBWLilUCB(K, gamma, sigma)
    noise = np.random.default_rng(3)
    for _ in range(300):
        assert (session.verdicts().status == UNDECIDED).all()
        question = session.ask()
        assert question.arm == twin.choose()
        outcome = means[question.arm] + sigma * noise.standard_normal()
        session.tell(question, [outcome])
        twin.update(question.arm, outcome)
    assert session.done
    largest = max(twin.mean(k) for k in range(K))
    best = [k for k in range(K) if twin.mean(k) == largest]
    assert np.flatnonzero(session.verdicts().status == FRONT).tolist() == best


@pytest.mark.parametrize("gamma", [0.0, 1.0, -1.0, "small", None])
def test_settings_are_checked(gamma: Any) -> None:
    with pytest.raises(InvalidInput, match="gamma of BoBWLilUCB must be a finite number above 0 and below 1"):
        BoBWLilUCB(gamma=gamma)


def test_budget_must_be_enough() -> None:
    problem = ps.problems.gaussian([[0.5], [0.3], [0.2]], sigma=0.1)
    with pytest.raises(InvalidInput, match="budget of algorithm 'bobw-lilucb' must be at least 3 with 3 arms, got 2"):
        ps.simulate(problem, "bobw-lilucb", delta=0.1, budget=2, replicates=1)
