"""Scout for many arms: the tree finds who matters, the heap the least, and what is skipped is proven."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import MORE
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr

import paretoscout as ps
from paretoscout.algorithms import Scout, Setup
from paretoscout.algorithms.scout import pilots, tabular, tree
from paretoscout.kernels import heap, noise, split
from paretoscout.kernels.compile import kernel
from paretoscout.kernels.decisions import DOMINATED
from paretoscout.session import Session

pytestmark = pytest.mark.kernels
UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
Array = npt.NDArray[np.float64]


def g(z: float) -> float:
    return 0.5 * z * z + np.log(2) + float(log_ndtr(z))


@given(st.floats(0, 30), st.floats(0, 12))
@settings(max_examples=60 * MORE)
def test_the_table_of_splits_is_below_the_least_split(z: float, x: float) -> None:
    """By no more than 0.003 where it is a table; beyond its edge, where psi only rises, it is the edge's."""
    s_i = 1 / np.sqrt(1 + np.exp(-2 * x))
    s_j = s_i * np.exp(-x)
    least = minimize_scalar(lambda u: g(u / s_i) + g((z - u) / s_j), bracket=(0, z + 0.1)).fun - z * z / 2
    got = least_excess(split.split_table(), z, x)
    assert got <= least + 1e-9
    if z <= split.LARGEST_Z:
        assert got >= least - 0.003


@given(st.lists(st.tuples(st.sampled_from(["push", "remove", "key"]), st.integers(0, 19), st.floats(-5, 5))))
@settings(max_examples=60 * MORE)
def test_the_heap_has_the_least_on_top(steps: list[tuple[str, int, float]]) -> None:
    arms, place, keys = np.zeros(20, np.int32), np.zeros(20, np.int32), np.zeros(20)
    inside: dict[int, float] = {}
    for what, arm, key in steps:
        if what == "push" and arm not in inside:
            keys[arm] = key
            heap.push(arms, place, keys, arm, len(inside))
            inside[arm] = key
        elif what == "remove" and arm in inside:
            del inside[arm]
            assert heap.remove(arms, place, keys, arm, len(inside) + 1) == len(inside)
        elif what == "key" and arm in inside:
            heap.set_key(arms, place, keys, arm, key, len(inside))
            inside[arm] = key
        if inside:
            assert inside[int(arms[0])] == min(inside.values())
        assert {int(arm) for arm in arms[: len(inside)]} == set(inside)
        assert all(arms[place[arm]] == arm for arm in inside)


def in_the_middle(K: int, L: int, seed: int, rounds: int, known: str = "sigma") -> Session:
    """Return a session of K arms of uneven noise after so many rounds, some of them on arms nobody asked for."""
    rng = np.random.default_rng(seed)
    means, sigma = rng.normal(size=(K, L)), rng.uniform(0.2, 0.6, size=(K, L))
    bounds = np.tile([-9.0, 9.0], (L, 1)) if known == "bounds" else None
    if known != "sigma":  # all on the front
        along = np.linspace(0.0, np.pi / 2, K)
        means, sigma = 3.0 * np.column_stack([np.cos(along), np.sin(along)]), sigma / 4.0
    setup = Setup(K, L, eps=np.full(L, 0.2), delta=0.3, sigma=sigma if known == "sigma" else None, bounds=bounds)
    session = Session(Scout(regret_weight=0.2, noise="given" if known == "sigma" else "unknown"), setup)
    for _ in range(rounds):
        if session.done:
            break
        question = session.ask()
        session.tell(question, means[question.arm] + sigma[question.arm] * rng.standard_normal(L))
        if rng.random() < 0.2:
            arm = int(rng.integers(K))
            session.add(arm, means[arm] + sigma[arm] * rng.standard_normal(L))
    return session


#: Arms, metrics, what is known of the noise.
MANY = [(60, 2, "sigma"), (90, 3, "sigma"), (400, 1, "sigma"), (60, 2, "normal"), (60, 2, "bounds")]


@kernel
def score(own_tree: Any, samples: Any, model: Any, eps: Array, k: int, j: int, route: int) -> float:
    return tree.score(own_tree, samples, model, eps, k, j, route, -np.inf)


@kernel
def find_rival(
    own_tree: Any, samples: Any, model: Any, eps: Array, status: Any, presence: Any, k: int, route: int, guess: int
) -> int:
    return tree.find_rival(own_tree, samples, model, eps, status, presence, k, route, guess)


@kernel
def least_excess(table: Array, z: float, x: float) -> float:
    return split.least_excess(table, z, x)


@pytest.mark.parametrize(("K", "L", "known"), MANY, ids=str)
def test_the_tree_finds_who_matters(K: int, L: int, known: str) -> None:
    """The same as looking at all arms: who beats an arm most clearly, whom it escapes least, whatever changed since."""
    often = 2 if L == 1 else 3 if UNCOMPILED else {"sigma": 8, "normal": 18, "bounds": 100}[known]
    session = in_the_middle(K, L, 1, often * K + 1, known)
    state, constants = session.state, session.constants
    if session.done:
        session.judge_again()
    assert state.tree.size[0] > tree.SMALL
    rng = np.random.default_rng(0)
    for arm in rng.integers(K, size=12).tolist():  # the tree is not built again for these
        session.add(arm, state.samples.means[arm] + rng.normal(size=L))
    standing = [k for k in range(K) if state.status[k] != DOMINATED]
    searched = (state.tree, state.samples, constants.model, constants.eps, state.status, state.presence)
    skipped = 0
    for k in standing[:: 3 if UNCOMPILED else 1]:
        tree.prepare(state.tree, state.samples, constants.model, k)
        others = [j for j in standing if j != k]
        for route in (tree.BEATEN, tree.ESCAPES):
            scores = {j: score(*searched[:4], k, j, route) for j in others}
            most = max(scores.values())
            for guess in (-1, others[0]):
                found = find_rival(*searched, k, route, guess)
                assert found == -1 if most == -np.inf and route == tree.BEATEN else scores[found] == most
        # where outcomes are paired, what proves this has a small share
        needed = max(0.1, 2.0 + constants.model.log_alone)
        listed = state.tree.arms[: state.tree.size[0]].tolist()
        leaves = {tree.leaf_of(state.tree, arm) for arm in listed}
        for node in range(1, 2 * len(leaves)):
            inside = [arm for arm in listed if leads_to(node, tree.leaf_of(state.tree, arm)) and arm in others]
            assert state.tree.standing[node] == len(inside) + leads_to(node, tree.leaf_of(state.tree, k))
            if tree.surely_escaped(state.tree, state.samples, constants.model, constants.eps, k, node, needed):
                skipped += len(inside)
                for j in inside:
                    evidence = [
                        noise.pair_evidence(state.samples, constants.model, k, j, metric, constants.eps[metric])
                        for metric in range(L)
                    ]
                    assert max(evidence) >= needed
    assert skipped > 0 or UNCOMPILED


def leads_to(node: int, leaf: int) -> bool:
    while leaf > node:
        leaf >>= 1
    return leaf == node


def test_nobody_is_accepted_against_arms_that_the_search_misses() -> None:
    """Whoever the tree lists is escaped, or the arm is not accepted: also where no rival was found before."""
    session = in_the_middle(60, 2, 2, 200)
    state, constants = session.state, session.constants
    behind = max(
        (k for k in range(60) if state.status[k] != DOMINATED),
        key=lambda k: (state.samples.means - state.samples.means[k]).min(axis=1).max(),
    )
    state.worst[behind], state.best[behind], state.test_at[behind] = -1, -1, 0
    tree.prepare(state.tree, state.samples, constants.model, behind)
    assert tabular.in_favour(state, constants, behind) < state.thresholds[behind]
    assert state.worst[behind] >= 0


def test_champions_are_those_least_behind_the_leaders() -> None:
    rng = np.random.default_rng(3)
    K, L = 150, 2
    means = rng.normal(size=(K, L))
    session = Session(Scout(), Setup(K, L, eps=np.full(L, 0.1), delta=0.1, sigma=np.full((K, L), 0.5)))
    for arm in range(K):
        session.add(arm, means[arm])
    state, constants = session.state, session.constants
    weights = pilots.directions(L)
    leaders = sorted({int((means @ w).argmax()) for w in weights})
    leads = (means[leaders][:, None] - means[None]).min(axis=2) / 0.5
    gaps = np.maximum(0, leads.max(axis=0))
    expected = np.sort(np.sort(gaps)[: pilots.N_CHAMPIONS])
    champions = state.pilots.champions[0].tolist()
    assert len(set(champions)) == pilots.N_CHAMPIONS
    np.testing.assert_allclose(np.sort(gaps[champions]), expected, atol=1e-12)
    behind = np.maximum(0, ((means[champions][:, None] - means[None]).min(axis=2) / 0.5).max(axis=0))
    h = np.exp(-(behind**2) / 4)
    shares = 0.95 / K * 0.5 + 0.95 * 0.5 * h / h.sum()
    np.testing.assert_allclose(state.thresholds, -np.log(shares * 0.1), rtol=1e-9)
    settled = (state.pilots, constants.sharing)
    for k in (0, champions[0], 77):
        given = [pilots.share_against(*settled, j, k, j in champions) for j in range(K) if j != k]
        assert sum(given) == pytest.approx(0.9)


def test_shares_of_many_arms_stay_what_they_were_when_others_come() -> None:
    """What arms may spend, and what counts against them, is settled when they come: by those there then, and once."""
    rng = np.random.default_rng(4)
    K, L = 110, 2
    values, entered = rng.normal(size=(K, L)), np.repeat([0, 1, 2], [70, 25, 15])
    setups = [
        Setup(n, L, eps=np.full(L, 0.1), delta=0.1, sigma=np.full((n, L), 0.5), entered=entered[:n]) for n in (70, K)
    ]
    before, after = (Session(Scout(), setup) for setup in setups)
    for arm in range(K):
        for session in (before, after) if arm < 70 else (after,):
            session.add(arm, values[arm])
            state, constants = session.state, session.constants
            settled = (state.pilots, constants.sharing)
            if arm >= 69:  # whatever is worked out in between is not to change
                pilots.share_against(*settled, 1, 0, 1 in state.pilots.champions[0])
    np.testing.assert_allclose(after.state.thresholds[:70], before.state.thresholds, rtol=1e-12)
    assert np.exp(-after.state.thresholds).sum() <= 0.1
    for k in (0, 33, 69, 80, 109):
        shares = [
            pilots.share_against(*settled, j, k, j in state.pilots.champions[entered[k]]) for j in range(K) if j != k
        ]
        assert 0.9 - 1e-9 <= sum(shares) <= 0.95
        if k < 70:
            of_before = (before.state.pilots, before.constants.sharing)
            champions = before.state.pilots.champions[0]
            expected = [pilots.share_against(*of_before, j, k, j in champions) for j in range(70) if j != k]
            np.testing.assert_allclose(shares[:69], expected, rtol=1e-12)


@pytest.mark.skipif(UNCOMPILED, reason="too slow uncompiled")
def test_two_arms_that_nearly_tie_do_not_absorb_all_samples() -> None:
    """An arm's nearer verdict is the one that lacks fewer samples, not the one with more evidence.

    Arms 15 and 16 tie in one metric. Noise far below the sigma that is told keeps them tied. With TELLING = -1e6, which is by
    evidence, 24 runs take 19,050 samples on average, 51% of them on two arms; as it is, 12,573 and 26%.
    """
    rng = np.random.default_rng(38)
    angle, radius = rng.uniform(0, np.pi / 2, 24), np.sqrt(rng.uniform(0.3, 1, 24))
    means = 6 * np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    problem = ps.problems.gaussian(means, sigma=0.03)
    result = ps.simulate(problem, Scout(regret_weight=0.0, sigma=1.0), eps=0.25, max_samples=50_000, replicates=8)
    assert result.success.all()
    assert result.samples.max() < 14_000
    assert np.sort(result.pulls, axis=1)[:, -2:].sum() < 0.4 * result.pulls.sum()


@pytest.mark.skipif(UNCOMPILED, reason="too slow uncompiled")
@pytest.mark.parametrize("K", [500, 2000])
def test_a_front_of_all_arms(K: int) -> None:
    """All of them are accepted, also where groups of them are escaped at once."""
    angle = (np.arange(K) + 0.5) / K * np.pi / 2
    problem = ps.problems.gaussian(np.column_stack([np.cos(angle), np.sin(angle)]), sigma=0.2)
    result = ps.simulate(problem, Scout(regret_weight=0.0), eps=0.2, replicates=1)
    assert result.success.all()
    assert result.fronts.all()
