"""PaVeBa against its twin, which reads like the paper, and the twin against worked numbers and known runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import paretoscout as ps
from paretoscout.algorithms import PaVeBa, Setup
from paretoscout.algorithms.paveba import radius
from paretoscout.errors import InvalidInput
from paretoscout.kernels.decisions import DOMINATED, FRONT, UNDECIDED
from paretoscout.kernels.widths import auer_box, ball_around_box, karagozlu_ball
from paretoscout.session import Session

pytestmark = pytest.mark.kernels
Array = npt.NDArray[np.float64]

S5 = np.array([[0.8, 0.1], [0.2, 0.75], [0.4, 0.4], [0.7, 0.625], [0.59, 0.1975]])


class NaivePaVeBa:
    """The algorithm for the componentwise order, with the published radius.

    Metrics with their own sigma are divided by it, eps too; then the balls are round. An arm is discarded where another
    ball is strictly above: at equality both of two equal noise-free arms would go.
    """

    def __init__(self, K: int, L: int, eps: Any, delta: float, sigma: Any) -> None:
        self.K, self.L, self.delta = K, L, delta
        self.sigma = np.broadcast_to(sigma, L).astype(float)
        self.eps = np.broadcast_to(eps, L) / self.sigma
        self.rows: list[list[Array]] = [[] for _ in range(K)]
        self.S, self.P, self.U = set(range(K)), set[int](), set[int]()
        self.regions: dict[int, tuple[Array, float]] = {}  # centre and radius, as of the last round an arm was in
        self.events: dict[tuple[str, int], int] = {}
        self.round = 1
        self.queue = list(range(K))

    @property
    def done(self) -> bool:
        return not self.S

    def choose(self) -> int:
        return self.queue[0]

    def radius(self, n: int) -> float:
        return math.sqrt(8 / n * math.log(math.pi**2 * (self.L + 1) * self.K * n**2 / (6 * self.delta)))

    def update(self, arm: int, outcome: Array) -> None:
        self.rows[arm].append(np.array(outcome) / self.sigma)
        self.queue.remove(arm)
        if not self.queue:
            self.end_round()

    def covered(self, i: int, j: int) -> bool:
        (y_i, r_i), (y_j, r_j) = self.regions[i], self.regions[j]
        return float(np.linalg.norm(np.maximum(0, y_i + self.eps - y_j))) <= r_i + r_j

    def end_round(self) -> None:
        for k in self.S | self.U:
            self.regions[k] = sum(self.rows[k]) / len(self.rows[k]), self.radius(len(self.rows[k]))  # type: ignore[assignment]
        A = self.S | self.U
        for i in sorted(self.S):
            y_i, r_i = self.regions[i]
            if any((self.regions[j][0] - y_i > r_i + self.regions[j][1]).all() for j in A if j != i):
                self.events["drop", i + 1] = self.round
        self.S -= {i - 1 for kind, i in self.events if kind == "drop"}
        A = self.S | self.U
        accepted = {i for i in self.S if not any(self.covered(i, j) for j in A if j != i)}
        for i in accepted:
            self.events["accept", i + 1] = self.round
        self.S -= accepted
        self.P |= accepted
        self.U = {i for i in self.P if any(self.covered(j, i) for j in self.S)}
        self.round += 1
        self.queue = sorted(self.S | self.U)


@pytest.mark.parametrize(("n", "expected"), [(1, 6.638274), (10, 2.844434), (100, 1.085124)])
def test_radius(n: int, expected: float) -> None:
    assert NaivePaVeBa(5, 2, 0, 0.1, 1).radius(n) == pytest.approx(expected, abs=5e-7)
    assert karagozlu_ball(n, 0.1, 5, 2) == pytest.approx(expected, abs=5e-7)
    constants = Session("paveba", Setup(5, 2, 0.1, 0.1, 1.0)).constants  # type: ignore[arg-type]
    assert radius(n, 5, 2, constants) == karagozlu_ball(n, 0.1, 5, 2)


def test_ball_holds_the_box() -> None:
    """Up to three metrics the published ball holds the box that is known to hold all means; beyond it may not."""
    for L in range(1, 12):
        for K in (1, 2, 50):
            for delta in (1e-6, 0.1, 0.999):
                for n in (1, 2, 10, 10**6):
                    corner = math.sqrt(L) * auer_box(n, delta, 1.0, K, L)
                    assert ball_around_box(n, delta, K, L) >= corner
                    if L <= 3:
                        assert karagozlu_ball(n, delta, K, L) >= corner
                    if L >= 5:
                        assert karagozlu_ball(n, delta, K, L) < corner


KNOWN_RUNS: list[tuple[float, dict[tuple[str, int], int], list[int] | None, int, list[int]]] = [
    (
        0.05,
        {("accept", 4): 19, ("drop", 3): 92, ("accept", 2): 165, ("accept", 1): 234, ("drop", 5): 472},
        [243, 165, 92, 472, 472],
        1444,
        [1, 2, 4],
    ),
    (0.15, {}, [74, 58, 92, 472, 472], 1168, [1, 2, 4]),
    (0.3, {}, None, 409, [1, 2, 4, 5]),
]


@pytest.mark.parametrize(("eps", "events", "pulls", "total", "returned"), KNOWN_RUNS)
def test_noise_free_s5(
    eps: float, events: dict[tuple[str, int], int], pulls: list[int] | None, total: int, returned: list[int]
) -> None:
    twin = NaivePaVeBa(5, 2, eps, 0.1, 0.1)
    while not twin.done:
        arm = twin.choose()
        twin.update(arm, S5[arm])
    counts = [len(rows) for rows in twin.rows]
    if events:
        assert twin.events == events
    assert pulls is None or counts == pulls
    assert sum(counts) == total
    assert sorted(arm + 1 for arm in twin.P) == returned
    exact = ps.problems.gaussian(S5, sigma=0.0)
    result = ps.simulate(exact, PaVeBa(sigma=0.1), eps=eps, delta=0.1, replicates=1)
    assert result.pulls.tolist() == [counts]
    assert (np.flatnonzero(result.fronts[0]) + 1).tolist() == returned


def instances() -> list[tuple[str, Array, Any, float, Any]]:
    rng = np.random.default_rng(12)
    return [
        ("S5", S5, 0.3, 0.1, 0.1),
        ("uneven", S5, [0.3, 0.1], 0.3, [0.1, 0.03]),
        ("one metric", rng.normal(size=(6, 1)), 0.5, 0.1, 0.1),
        ("three metrics", rng.normal(size=(7, 3)), 0.3, 0.1, 0.1),
        ("16 arms", rng.normal(size=(16, 2)), 0.5, 0.1, 0.1),
        ("duplicates", np.repeat(S5, 2, axis=0), 0.3, 0.1, 0.05),
        ("much noise", S5, 0.5, 0.9, 0.3),
        ("one arm", S5[:1], 0.1, 0.1, 0.1),
    ]


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("instance", instances(), ids=lambda instance: instance[0])
def test_equals_its_twin(instance: tuple[str, Array, Any, float, Any], published: bool) -> None:
    _, means, eps, delta, sigma = instance
    K, L = means.shape
    settings = PaVeBa(radius="published" if published else "box")  # the same up to three metrics
    session = Session(settings, Setup(K, L, np.array(eps, float), delta, np.array(sigma, float)))
    twin = NaivePaVeBa(K, L, eps, delta, sigma)
    noise = np.random.default_rng(3)
    for _ in range(700):
        assert session.done == twin.done
        if twin.done:
            break
        question = session.ask()
        assert question.arm == twin.choose()
        outcome = means[question.arm] + sigma * noise.standard_normal(L)
        session.tell(question, outcome)
        twin.update(question.arm, outcome)
        status = session.state.status
        assert set(np.flatnonzero(status == UNDECIDED)) == twin.S
        assert set(np.flatnonzero(status == FRONT)) == twin.P
    else:
        assert len(twin.S) < K, "nothing was tested"
    beaten = np.flatnonzero(session.state.status == DOMINATED)
    assert (session.state.beaten_by[beaten] >= 0).all()


def test_noise_free_ties() -> None:
    """Two equal arms do not discard one another, and a metric without noise divides by nothing."""
    problem = ps.problems.gaussian([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]], sigma=0.0)
    result = ps.simulate(problem, "paveba", eps=0.1, delta=0.1, replicates=1, max_samples=100)
    assert result.fronts.tolist() == [[True, True, False]]
    half = ps.problems.gaussian(S5, sigma=[0.1, 0.0])
    assert ps.simulate(half, "paveba", eps=0.05, delta=0.1, replicates=3, max_samples=20_000).success.all()


def test_many_metrics_get_a_larger_ball() -> None:
    wide = Session("paveba", Setup(3, 12, 0.1, 0.1, 1.0)).constants  # type: ignore[arg-type]
    published = Session(PaVeBa(radius="published"), Setup(3, 12, 0.1, 0.1, 1.0)).constants  # type: ignore[arg-type]
    assert radius(10, 3, 12, wide) > radius(10, 3, 12, published)


def test_settings_are_checked() -> None:
    with pytest.raises(InvalidInput, match="radius of PaVeBa must be 'box' or 'published', got 'vopy'"):
        PaVeBa(radius="vopy")
    assert PaVeBa().sound
    assert not PaVeBa(radius="published").sound
