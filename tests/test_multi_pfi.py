"""MultiPFI against worked numbers: widths, and noise-free runs whose every event is known."""

from __future__ import annotations

import os

import numpy as np
import pytest

import paretoscout as ps
from paretoscout.algorithms import MultiPFI
from paretoscout.algorithms.multi_pfi import width
from paretoscout.kernels.decisions import DOMINATED, FRONT
from paretoscout.session import Session
from paretoscout.start import setup_of

pytestmark = pytest.mark.kernels

S5 = ps.problems.load("s5").means


@pytest.mark.parametrize(("n", "expected"), [(1, 3.461637), (10, 1.455791), (100, 0.551395), (1000, 0.199033)])
def test_width(n: int, expected: float) -> None:
    assert width(n, 5, 2, 0.1) == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(
    ("eps", "front", "drops", "accepts", "pulls"),
    [
        (0.0, [1, 2, 4], {3: 19, 5: 101}, {2: 75, 1: 126, 4: 126}, [126, 75, 19, 126, 101]),
        (0.05, [1, 2, 4], {3: 19, 5: 101}, {2: 35, 1: 51, 4: 101}, [51, 35, 19, 101, 101]),
        (0.15, [1, 2, 4], {3: 19, 5: 101}, {2: 12, 1: 15, 4: 101}, [15, 12, 19, 101, 101]),
        (0.3, [1, 2, 4, 5], {3: 19}, {2: 4, 1: 5, 4: 29, 5: 29}, [5, 4, 19, 29, 29]),
    ],
)
def test_noise_free_s5(
    eps: float, front: list[int], drops: dict[int, int], accepts: dict[int, int], pulls: list[int]
) -> None:
    """Arms are counted from 1, as in the table this is taken from; an event's round is the arm's last pull."""
    exact = ps.problems.gaussian(S5, sigma=0.0)
    setup = setup_of(exact.asked(eps, 0.1), MultiPFI(sigma=0.1))
    session = Session(MultiPFI(sigma=0.1), setup)
    seen: dict[int, dict[int, int]] = {DOMINATED: {}, FRONT: {}}
    while not session.done:
        question = session.ask()
        session.tell(question, S5[question.arm])
        for arm, status in enumerate(session.verdicts().status):
            if status in seen:
                seen[status].setdefault(arm + 1, int(session.state.counters[0]))
    assert seen[DOMINATED] == drops
    assert seen[FRONT] == accepts
    assert session.verdicts().counts.tolist() == pulls
    result = ps.simulate(exact, MultiPFI(sigma=0.1), eps=eps, delta=0.1, replicates=1)
    assert np.flatnonzero(result.fronts[0]).tolist() == [arm - 1 for arm in front]
    assert result.samples[0] == sum(pulls)


def test_noise_free_two_arms() -> None:
    exact = ps.problems.gaussian([[1.0, 1.0], [0.0, 0.0]], sigma=0.0)
    result = ps.simulate(exact, MultiPFI(sigma=1.0), eps=0.1, delta=0.1, replicates=1)
    assert result.samples.tolist() == [234]
    assert result.fronts.tolist() == [[True, False]]


@pytest.mark.parametrize(("eps", "mean"), [(0.0, 464.9), (0.05, 314.7), (0.15, 250.4)])
def test_samples_with_noise(eps: float, mean: float) -> None:
    """Means over 4000 runs of an independent numpy implementation (standard error about 1).

    With 1000 runs here (100 uncompiled) our own standard error is about 2 (6); at 5 combined standard errors a right
    implementation fails with probability below 1e-5.
    """
    replicates = 100 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 1000
    result = ps.simulate(ps.problems.load("s5"), "multi-pfi", eps=eps, delta=0.1, replicates=replicates, seed=7)
    error = np.hypot(result.samples.std() / replicates**0.5, 1.1)
    assert abs(result.samples.mean() - mean) < 5 * error
    assert result.success.mean() > 0.9


def test_results_known_beforehand_count() -> None:
    """Imported data is used: no arm is asked for again before the others have caught up."""
    setup = setup_of(ps.problems.load("s5").asked(0.05, 0.1), MultiPFI())
    session = Session(MultiPFI(), setup)
    for _ in range(10):
        session.add(2, S5[2])
    arms = []
    for _ in range(40):
        question = session.ask()
        arms.append(question.arm)
        session.tell(question, S5[question.arm])
    assert 2 not in arms
    assert session.verdicts().counts.tolist() == [10, 10, 10, 10, 10]
    assert session.state.counters[0] == 10, "the tests follow the arm with the fewest samples"
