"""The linear scout with many arms: not every arm is looked at for everything. Here with few, and the limits lowered."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from naive_scout import NaiveLinearScout
from scipy.stats import binom

import paretoscout as ps
from paretoscout.algorithms import Scout, Setup
from paretoscout.algorithms.scout import contexts as scout_contexts
from paretoscout.algorithms.scout import linear as scout_linear
from paretoscout.algorithms.scout import tested as scout_tested
from paretoscout.kernels.decisions import DOMINATED, FRONT, GONE, MISSED, PRESENT, UNDECIDED
from paretoscout.session import Session

Array = npt.NDArray[np.float64]


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 10 arms on there are many; from 40 on they are held against leaders only."""
    monkeypatch.setattr(scout_linear, "MANY_ARMS", 10)
    monkeypatch.setattr(scout_linear, "FEW_ENOUGH", 40)


def instance(K: int, d: int, seed: int, L: int = 2) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x, theta = rng.normal(size=(K, d)), rng.normal(size=(d, L))
    return x / np.linalg.norm(x, axis=1, keepdims=True), theta / np.linalg.norm(theta, axis=0)


def session_on(x: Array, L: int, eps: float, sigma: float | None, regret_weight: float = 0.0) -> Session:
    noise = "unknown" if sigma is None else "given"
    given = None if sigma is None else np.full(L, sigma)
    setup = Setup(len(x), L, eps=np.full(L, eps), delta=0.1, sigma=given, contexts=x, explained=True)
    return Session(Scout(model="linear", regret_weight=regret_weight, noise=noise), setup)


def twin_of(session: Session, x: Array) -> NaiveLinearScout:
    setup, constants = session.setup, session.constants.linear
    return NaiveLinearScout(
        constants.contexts,
        setup.n_metrics,
        setup.eps,
        (1 - scout_tested.FOR_FIT) * setup.delta,  # the rest is for a test of the model
        None if setup.sigma is None else setup.known_sigma("scout"),
        same=[(k, j) for k in range(len(x)) for j in range(len(x)) if (x[k] == x[j]).all()],
        negligible=scout_linear.SAME,
        scales=constants.rhos,
        weights=np.exp(constants.log_weights),
        for_sigma=scout_linear.FOR_SIGMA,
        rates=np.array(scout_linear.RATES),
    )


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("case", ["sigma given", "sigma unknown", "three metrics", "equal contexts", "regret"])
def test_every_verdict_is_proven(case: str) -> None:
    """At each check the naive twin, which looks at all pairs, has proof of every verdict that was given."""
    L = 3 if case == "three metrics" else 2
    x, theta = instance(60, 3, 4, L)
    if case == "equal contexts":
        x[40:] = x[:20]
    sigma = None if case == "sigma unknown" else 0.3
    session = session_on(x, L, 0.3, sigma, 0.5 if case == "regret" else 0.0)
    state = session.state.linear
    assert session.constants.linear.many
    assert len(state.solved) == 40 < len(x)
    twin, noise = twin_of(session, x), np.random.default_rng(1)
    for _ in range(1500):
        if session.done:
            break
        question = session.ask()
        outcome = x[question.arm] @ theta + 0.3 * noise.standard_normal(L)
        before, checked = state.status.copy(), state.checked_pulls.sum()
        session.tell(question, outcome)
        twin.tell(question.arm, outcome)
        if state.checked_pulls.sum() == checked:
            assert (before == state.status).all()
            continue
        twin.look()
        gone = set(np.flatnonzero(state.status == DOMINATED).tolist())
        for k in np.flatnonzero(before != state.status).tolist():
            assert before[k] == UNDECIDED
            assert state.held[0] == 0
            if state.status[k] == DOMINATED:
                assert twin.may_eliminate(k, set(), twin.looks)
            else:
                assert twin.may_accept(k, gone, twin.looks)
    assert session.done
    assert session.verdicts().status.tolist() == state.status.tolist()
    np.testing.assert_allclose(session.verdicts().estimates, twin.means(twin.looks[-1]), atol=1e-9)
    for absence in (GONE, MISSED, PRESENT):
        front = int(np.flatnonzero(state.status == FRONT)[0])
        session.set_presence(front, absence)
        session.judge_again()
        absent = {front} if absence == GONE else set()
        dominated = set(np.flatnonzero(state.status == DOMINATED).tolist()) | absent
        for k in set(range(len(x))) - absent:
            if state.status[k] == DOMINATED:
                assert twin.may_eliminate(k, absent | ({front} if absence == MISSED else set()), [twin.t])
            elif state.status[k] == FRONT:
                assert twin.may_accept(k, dominated, [twin.t])
        assert Session.load(session.dump()).state.linear.status.tolist() == state.status.tolist()
        session.set_presence(front, PRESENT)
        session.judge_again()


def test_as_good_as_looking_at_all_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answers with about as many samples: on average over six instances, 20 runs of each, within 6%."""
    ratios = []
    for seed in range(6):
        x, theta = instance(300, 4, seed)
        problem = ps.problems.linear(x, theta, 0.5)
        samples = []
        for limit in (20_000, 10):
            monkeypatch.setattr(scout_linear, "MANY_ARMS", limit)
            monkeypatch.setattr(scout_linear, "FEW_ENOUGH", 100)
            scout = Scout(model="linear", regret_weight=0.0)
            result = ps.simulate(problem, scout, eps=0.2, delta=0.1, replicates=20, seed=seed)
            assert result.success.mean() >= 0.9
            samples.append(result.samples.mean())
        ratios.append(samples[1] / samples[0])
    assert abs(np.mean(ratios) - 1.0) < 0.06


@pytest.mark.usefixtures("many")
def test_failures_where_they_are_most_likely() -> None:
    """Gaps just beyond eps and ties: failures no more likely than delta (false alarm: 1e-4)."""
    rng = np.random.default_rng(0)
    contexts = np.column_stack([np.ones(50), np.repeat([0.0, 1.0], 25) + 1e-3 * rng.random(50), rng.random(50) * 1e-3])
    for theta in ([[0.0, 0.0], [0.102, 0.102], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]):
        problem = ps.problems.linear(contexts, theta, 0.1)
        result = ps.simulate(problem, Scout(model="linear"), eps=0.1, delta=0.1, replicates=100, seed=3)
        assert (~result.success).sum() <= binom.isf(1e-4, 100, 0.1)


def test_first_equals() -> None:
    x = np.array([[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0], [0.0, -1.0], [1.0, 0.0]])
    assert scout_contexts.first_equals(x).tolist() == [0, 1, 0, 3, 1]


def test_when_two_contexts_are_mixed_to_one_number_all_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    monkeypatch.setattr(scout_contexts, "mix", lambda rows: np.zeros(len(rows), np.uint64))
    assert scout_contexts.first_equals(x).tolist() == [0, 1, 0, 3]


def test_probes_span_all_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that only a single arm uses; and coordinates are the same whether rows are taken all at once or not."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=(500, 3)), np.arange(500) == 77])
    whole, rank = scout_contexts.whitened(x, np.zeros(500, np.int64))
    monkeypatch.setattr(scout_contexts, "AT_A_TIME", 64)
    white, same_rank = scout_contexts.whitened(x, np.zeros(500, np.int64))
    assert rank == same_rank == 4
    np.testing.assert_allclose(white @ white.T, whole @ whole.T, atol=1e-9)
    probes = scout_contexts.probes_of(white)
    assert 77 in probes
    assert np.linalg.matrix_rank(white[probes]) == 4
    assert np.linalg.matrix_rank(white[probes[scout_contexts.spanning(white[probes])]]) == 4
    directions = rng.normal(size=(4, 9))
    assert scout_contexts.extreme(white, directions).tolist() == np.abs(white @ directions).argmax(axis=0).tolist()


@pytest.mark.parametrize("L", [1, 2, 3])
def test_leaders_and_blocks(L: int) -> None:
    """Leaders are those that no other one covers; a block's top is above all in it, and blocks hold each arm once."""
    rng = np.random.default_rng(L)
    means: Any = rng.integers(0, 12, size=(200, L)) / 4.0
    leaders, n = np.zeros(200, np.int64), 0
    for k in range(200):
        n = scout_linear.offer(leaders, n, means, k)
    front = {tuple(row) for row in means[ps.geometry.pareto_front(means)]}
    assert sorted(tuple(row) for row in means[leaders[:n]]) == sorted(front)
    twins = np.arange(200)
    for k in range(200):
        leads = (means[leaders[:n]] - means[k]).min(axis=1)
        j = scout_linear.clearest_leader(leaders, n, means, np.ones(L), twins, -1, k)
        assert (means[j] - means[k]).min() == leads.max()
    order, starts, stops = (np.zeros(200, np.int64) for _ in range(3))
    tops, largest, leverages = np.zeros((200, L)), np.zeros(L + 2), rng.random(200)
    tasks = np.zeros((64, 3), np.int64)
    n_blocks = scout_linear.cut_into_blocks(
        np.arange(200), means, leverages, 2 * leverages, order, starts, stops, tops, tasks, largest
    )
    blocks = [order[starts[b] : stops[b]] for b in range(n_blocks)]
    assert sorted(np.concatenate(blocks).tolist()) == list(range(200))
    for block, top in zip(blocks, tops, strict=False):
        assert 0 < len(block) <= scout_linear.BLOCK
        assert (means[block].max(axis=0) == top).all()
    np.testing.assert_array_equal(largest, [*np.abs(means).max(axis=0), leverages.max(), 2 * leverages.max()])
