"""Every kernel against its naive twin: the same arms, the same sets, numbers to 1e-9, compiled and not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import NaiveMultiPFI, NaivePFIwR

from paretoscout.algorithms import MultiPFI, PFIwR, Setup, Uniform
from paretoscout.algorithms.pfiwr import MATCHES, init, linear_basis, reserve
from paretoscout.kernels import dr_mix
from paretoscout.kernels.decisions import DOMINATED, FRONT, UNDECIDED
from paretoscout.session import Session
from paretoscout.streams import algorithm_stream

pytestmark = pytest.mark.kernels
Array = npt.NDArray[np.float64]

S5 = np.array([[0.8, 0.1], [0.2, 0.75], [0.4, 0.4], [0.7, 0.625], [0.59, 0.1975]])
TOLERANCE = 1e-9


def setup_for(
    means: Array, eps: float | Array, sigma: float | Array, delta: float, contexts: Array | None = None
) -> Setup:
    K, L = means.shape
    return Setup(
        K,
        L,
        eps=np.broadcast_to(eps, L).astype(float),
        delta=delta,
        sigma=np.broadcast_to(sigma, L).astype(float),
        contexts=contexts,
        theta_max=1.5,
    )


def instances() -> list[tuple[str, Array, Array, float, Array]]:
    """Means, eps, delta, sigma: few and many arms, one to four metrics, uneven noise, ties, duplicates."""
    rng = np.random.default_rng(12)
    return [
        ("S5", S5, np.array([0.05, 0.05]), 0.1, np.array([0.1, 0.1])),
        ("uneven", S5, np.array([0.1, 0.02]), 0.3, np.array([0.1, 0.03])),
        ("one metric", rng.normal(size=(6, 1)), np.array([0.2]), 0.1, np.array([0.3])),
        ("four metrics", rng.normal(size=(7, 4)), np.full(4, 0.3), 0.1, np.full(4, 0.3)),
        ("16 arms", rng.normal(size=(16, 2)), np.array([0.3, 0.3]), 0.1, np.array([0.3, 0.3])),
        ("duplicates", np.repeat(S5, 2, axis=0), np.array([0.1, 0.1]), 0.1, np.array([0.05, 0.05])),
        ("one arm", S5[:1], np.array([0.1, 0.1]), 0.1, np.array([0.1, 0.1])),
    ]


@pytest.mark.parametrize("everyone", [False, True], ids=["multi-pfi", "uniform"])
@pytest.mark.parametrize(
    ("name", "means", "eps", "delta", "sigma"), instances(), ids=lambda v: v if isinstance(v, str) else ""
)
def test_multi_pfi_equals_its_twin(
    name: str, means: Array, eps: Array, delta: float, sigma: Array, everyone: bool
) -> None:
    twin = NaiveMultiPFI(means.shape[0], means.shape[1], eps, delta, sigma, everyone=everyone)
    session = Session(Uniform() if everyone else MultiPFI(), setup_for(means, eps, sigma, delta))
    noise = np.random.default_rng(3)
    for _ in range(4000):
        assert session.done == twin.done
        if twin.done:
            break
        question = session.ask()
        assert question.arm == twin.choose()
        outcome = means[question.arm] + sigma * noise.standard_normal(means.shape[1])
        session.tell(question, outcome)
        twin.update(question.arm, outcome)
        verdicts = session.verdicts()
        status = verdicts.status
        assert set(np.flatnonzero(status == UNDECIDED)) == twin.active
        assert set(np.flatnonzero(status == FRONT)) == set(twin.front)
        assert set(np.flatnonzero(status == DOMINATED)) == set(twin.dropped)
    for k in range(len(means)):
        if twin.pulls[k]:
            np.testing.assert_allclose(verdicts.estimates[k], twin.mean(k), atol=TOLERANCE, rtol=0)
            np.testing.assert_allclose(verdicts.radii[k], twin.beta(k), atol=TOLERANCE, rtol=0)
    assert verdicts.counts.tolist() == twin.pulls


def contexts_and_means(kind: str) -> tuple[Array, Array]:
    rng = np.random.default_rng(8)
    contexts: Array
    if kind == "unit vectors":
        return np.eye(5), S5
    if kind == "S5":
        contexts = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0.5], [0.6, 0.05, 0.25]])
        return contexts, S5
    if kind == "scaled unit vectors, repeated":
        contexts = np.vstack([np.diag([1.0, 0.5, 2.0]), np.diag([0.3, 0.9, 0.7])])
    elif kind == "block structure":  # sparse and not orthogonal: exercises the reach of the factors
        contexts = np.zeros((8, 4))
        contexts[:4, :2], contexts[4:, 2:] = rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    elif kind == "zero context":
        contexts = np.vstack([np.eye(3), np.zeros((1, 3)), [[0.5, 0.5, 0.0]]])
    else:
        contexts = rng.normal(size=(12, 3))
        contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
    return contexts, contexts @ rng.normal(size=(contexts.shape[1], 2))


KINDS = [
    "unit vectors",
    "S5",
    "scaled unit vectors, repeated",
    "block structure",
    "zero context",
    "random",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "settings",
    [
        PFIwR(),
        PFIwR(exploration=0.005, width_scale=0.1),
        PFIwR(exploration=0.01, width_scale=0.15, imputation="frozen"),
        PFIwR(exploration=0.002, width_scale=0.1, check_every=7, theta_max=2.0),
    ],
    ids=["as printed", "C=0.005", "frozen", "lazy"],
)
def test_pfiwr_equals_the_papers_formulas(kind: str, settings: PFIwR) -> None:
    contexts, means = contexts_and_means(kind)
    delta, sigma, eps = 0.1, np.array([0.1, 0.05]), np.array([0.05, 0.1])
    basis = linear_basis(contexts)
    twin = NaivePFIwR(
        contexts,
        2,
        eps,
        delta,
        sigma,
        theta_max=settings.theta_max or 1.5,
        C=settings.exploration,
        width_scale=settings.width_scale,
        imputation=settings.imputation,  # type: ignore[arg-type]
        check_every=settings.check_every,
        basis=basis,
    )
    session = Session(settings, setup_for(means, eps, sigma, delta, contexts), seed=4)
    twin_rng = algorithm_stream(4)
    noise = np.random.default_rng(6)
    U = basis[1]
    for t in range(1, 221):
        assert session.done == twin.done
        if twin.done:
            break
        question = session.ask()
        assert question.arm == twin.choose(twin_rng)
        if t % 17 in (0, 1):  # the resampling all but never fails: make it fail
            session.open[question.number].ticket[MATCHES] = 0.0
            assert twin.drawn is not None
            twin.drawn.matched = False
        outcome = means[question.arm] + sigma * noise.standard_normal(2)
        session.tell(question, outcome)
        twin.update(outcome)
        verdicts = session.verdicts()
        assert np.flatnonzero(verdicts.status == UNDECIDED).tolist() == twin.active
        assert set(np.flatnonzero(verdicts.status == FRONT)) == twin.front
        assert set(np.flatnonzero(verdicts.status == DOMINATED)) == twin.dropped
        state = session.state
        np.testing.assert_allclose(U @ state.theta_hat, twin.theta_hat, atol=TOLERANCE, rtol=0)
        standing = verdicts.status != DOMINATED
        np.testing.assert_allclose(verdicts.radii[standing], twin.widths[standing], atol=TOLERANCE, rtol=0)
    assert session.rng.bit_generator.state == twin_rng.bit_generator.state
    assert not all(twin.matched)
    if settings.exploration < 1 and kind == "unit vectors":  # the comparison must have seen all there is
        assert not all(twin.explored)
        assert twin.dropped
        assert twin.front
    if settings.imputation == "frozen":
        np.testing.assert_allclose(U @ session.state.theta_check, twin.theta_check, atol=TOLERANCE, rtol=0)


def test_linear_basis_is_a_singular_value_decomposition() -> None:
    for kind in KINDS:
        contexts, _ = contexts_and_means(kind)
        s, U, V = linear_basis(contexts)
        np.testing.assert_allclose(U @ np.diag(s) @ V.T, contexts.T, atol=1e-12)
        np.testing.assert_allclose(U.T @ U, np.eye(len(s)), atol=1e-12)
        np.testing.assert_allclose(V.T @ V, np.eye(len(s)), atol=1e-12)
    s, U, V = linear_basis(np.eye(4))
    np.testing.assert_array_equal(U, np.eye(4))
    np.testing.assert_array_equal(V, np.eye(4))


@given(st.lists(st.tuples(st.integers(0, 1), st.booleans()), max_size=80))
def test_reuse_is_balanced_like_the_literal_argmin(steps: list[tuple[int, bool]]) -> None:
    """eq. (mix_number): the least reused sample of the arm, the earliest of these, however samples arrive."""
    state, _ = init(PFIwR(), setup_for(S5[:2], 0.1, 0.1, 0.1))
    state = reserve(state, len(steps))
    samples: list[int] = []  # the arm of each sample
    uses: list[int] = []
    for arm, arrives in steps:
        mine = [n for n, owner in enumerate(samples) if owner == arm]
        if arrives or not mine:
            dr_mix.add_to_pool(state, arm, np.zeros(2))
            samples.append(arm)
            uses.append(0)
        else:
            expected = min(mine, key=lambda n: uses[n])
            assert dr_mix.mix_number(state, arm) == expected
            uses[expected] += 1
