"""Pareto UCB1 against its twin, which reads like the paper, and the twin against worked numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import paretoscout as ps
from paretoscout.algorithms import Setup
from paretoscout.algorithms.pareto_ucb1 import width
from paretoscout.errors import InvalidInput
from paretoscout.kernels.decisions import FRONT, UNDECIDED, undominated_estimates
from paretoscout.session import Session
from paretoscout.streams import algorithm_stream

pytestmark = pytest.mark.kernels
Array = npt.NDArray[np.float64]

S5 = np.array([[0.8, 0.1], [0.2, 0.75], [0.4, 0.4], [0.7, 0.625], [0.59, 0.1975]])


def front_of(values: list[Array]) -> list[int]:
    return [i for i, v in enumerate(values) if not any((w >= v).all() and (w > v).any() for w in values)]


class NaiveParetoUCB1:
    """The paper's for rewards in [0, 1]; with noise of another scale sigma, its widths times 2 sigma."""

    def __init__(self, K: int, L: int, sigma: Any, rng: np.random.Generator) -> None:
        self.K, self.L, self.rng = K, L, rng
        self.sigma = np.broadcast_to(sigma, L).astype(float)
        self.rows: list[list[Array]] = [[] for _ in range(K)]

    def bounds(self) -> list[Array]:
        n = sum(len(rows) for rows in self.rows)
        log = math.log(n * (self.L * self.K) ** 0.25)
        means = [np.sum(rows, axis=0) / len(rows) for rows in self.rows]
        widths = [math.sqrt(2 * log / len(rows)) for rows in self.rows]
        return [mean + 2 * self.sigma * w for mean, w in zip(means, widths, strict=True)]

    def choose(self) -> int:
        for k in range(self.K):
            if not self.rows[k]:
                return k
        front = front_of(self.bounds())
        return front[int(self.rng.random() * len(front))]

    def update(self, arm: int, outcome: Array) -> None:
        self.rows[arm].append(np.array(outcome))


def test_worked_numbers() -> None:
    """Rewards from 0 to 1, that is sigma 1/2, five arms with 3, 2, 2, 2 and 1 samples."""
    counts = [3, 2, 2, 2, 1]
    twin = NaiveParetoUCB1(5, 2, 0.5, algorithm_stream(0))
    twin.rows = [[mean] * n for mean, n in zip(S5, counts, strict=True)]
    expected = [1.385215, 1.696535, 1.696535, 1.696535, 2.399263]
    for bound, mean, n, w in zip(twin.bounds(), S5, counts, expected, strict=True):
        np.testing.assert_allclose(bound - mean, w, atol=5e-7)
        assert 0.5 * width(n, 10, 5, 2) == pytest.approx(w, abs=5e-7)
    assert front_of(twin.bounds()) == [4]


@pytest.mark.parametrize("seed", range(40))
def test_front_of_values_with_ties(seed: int) -> None:
    """All copies stay, in the order the arms were given in."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, size=(int(rng.integers(1, 12)), int(rng.integers(1, 4)))).astype(float)
    arms = rng.permutation(len(values))
    kept = np.full(len(values), -1)
    n = undominated_estimates(arms, values, kept)
    front = front_of(list(values))
    assert kept[:n].tolist() == [k for k in arms.tolist() if k in front]


def instances() -> list[tuple[str, Array, Any]]:
    rng = np.random.default_rng(12)
    return [
        ("S5", S5, 0.1),
        ("uneven", S5, [0.3, 0.01]),
        ("noise-free", S5, 0.0),
        ("duplicates", np.repeat(S5, 2, axis=0), 0.05),
        ("one metric", rng.normal(size=(6, 1)), 0.3),
        ("four metrics", rng.normal(size=(7, 4)), 0.3),
        ("16 arms", rng.normal(size=(16, 2)), 0.3),
        ("one arm", S5[:1], 0.1),
    ]


@pytest.mark.parametrize("instance", instances(), ids=lambda instance: instance[0])
def test_equals_its_twin(instance: tuple[str, Array, Any]) -> None:
    _, means, sigma = instance
    K, L = means.shape
    session = Session("pareto-ucb1", Setup(K, L, np.zeros(L), 0.1, np.array(sigma, float), budget=300), seed=5)
    twin = NaiveParetoUCB1(K, L, sigma, algorithm_stream(5))
    noise = np.random.default_rng(3)
    for _ in range(300):
        assert not session.done
        assert (session.verdicts().status == UNDECIDED).all()
        question = session.ask()
        assert question.arm == twin.choose()
        outcome = means[question.arm] + sigma * noise.standard_normal(L)
        session.tell(question, outcome)
        twin.update(question.arm, outcome)
    assert session.done
    verdicts = session.verdicts()
    assert np.flatnonzero(verdicts.status == FRONT).tolist() == front_of(list(verdicts.estimates))
    assert np.isinf(verdicts.radii).all()


def test_plays_for_regret_and_promises_nothing() -> None:
    """Most samples go to the front: far more than 3/5, which is the share of the front among the arms."""
    problem = ps.problems.load("s5")
    result = ps.simulate(problem, "pareto-ucb1", delta=0.1, budget=5000, replicates=5)
    assert (result.samples == 5000).all()
    assert (result.pulls[:, [0, 1, 3]].sum(axis=1) > 4500).all()
    assert result.guarantee.startswith("none: pareto-ucb1 plays for low regret")


def test_budget_must_be_enough() -> None:
    with pytest.raises(InvalidInput, match="budget of algorithm 'pareto-ucb1' must be at least 5 with 5 arms, got 4"):
        ps.simulate(ps.problems.load("s5"), "pareto-ucb1", delta=0.1, budget=4, replicates=1)
