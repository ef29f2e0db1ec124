"""Contexts as a guide: what they make of pilots, that they cannot do harm, and that nothing else depends on them."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_guide import expectations, models
from scipy.stats import binom

import paretoscout as ps
from paretoscout.algorithms import Scout, Setup
from paretoscout.algorithms.scout import guide, pilots
from paretoscout.algorithms.states import arrays_of
from paretoscout.errors import InvalidInput
from paretoscout.kernels.arrays import FloatArray, IntArray
from paretoscout.session import Session
from paretoscout.start import setup_of
from paretoscout.streams import environment_stream
from paretoscout.study.spec import StudySpec

pytestmark = pytest.mark.kernels

UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT") == "1"


def piloted(
    first: FloatArray,
    sigma: FloatArray | float | None,
    contexts: FloatArray | None,
    entered: IntArray | int = 0,
    model: str | None = "guide",
) -> Session:
    """Return a session that knows the pilots and nothing else."""
    K, L = first.shape
    setup = Setup(
        K,
        L,
        eps=np.full(L, 0.1),
        delta=0.1,
        sigma=None if sigma is None else np.broadcast_to(sigma, (K, L)),
        contexts=contexts,
        entered=np.broadcast_to(entered, K),
    )
    noise = "unknown" if sigma is None else "given"
    session = Session(Scout(model=model, regret_weight=0.0, noise=noise), setup)
    for arm in range(K):
        session.add(arm, first[arm])
    return session


def check_by_twin(session: Session) -> int:
    """Compare with the twin; return for how many metrics and additions the contexts were used."""
    setup, known, used = session.setup, session.state.pilots, 0
    assert setup.contexts is not None
    designs = models(setup.contexts, setup.entered == 0)
    for addition in range(setup.entered.max() + 1):
        there, came = setup.entered <= addition, setup.entered == addition
        for metric in range(setup.n_metrics):
            y = known.first[there, metric]
            sigma = None if setup.sigma is None else setup.sigma[there, metric]
            expected, variances = expectations([of[there] for of in designs], y, sigma, pilots.ASSUMED_NOISE)
            tolerance = 1e-9 * np.abs(y).max() + 1e-6 * np.ptp(y)
            np.testing.assert_allclose(known.expected[came, metric], expected[came[there]], rtol=0, atol=tolerance)
            np.testing.assert_allclose(known.variances[came, metric], variances[came[there]], rtol=1e-5)
            used += not np.array_equal(expected, y)
    return used


def check_shares(session: Session) -> None:
    """All that arms may spend is delta at most; all that counts against one of them adds up to at most 1."""
    state, sharing = session.state, session.constants.sharing
    assert np.exp(-state.thresholds).sum() <= sharing.delta * (1 + 1e-9)
    even = 0.5 * sharing.even[sharing.entered] * sharing.delta
    assert (np.exp(-state.thresholds) >= even * (1 - 1e-9)).all()
    K = len(state.pulls)
    for k in range(0, K, 7):
        champions = set(state.pilots.champions[sharing.entered[k]].tolist())
        shares = [pilots.share_against(state.pilots, sharing, j, k, j in champions) for j in range(K) if j != k]
        assert sum(shares) <= 1.0
        assert min(shares, default=1.0) > 0.0


def linear_case(K: int, d: int, L: int, seed: int, off: float = 0.1) -> tuple[FloatArray, FloatArray]:
    """Contexts, and means that are nearly linear in them."""
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(K, d))
    return contexts, contexts @ rng.normal(size=(d, L)) + off * rng.normal(size=(K, L))


@pytest.mark.parametrize(
    ("case", "used"),
    [
        ("one sigma", 2),
        ("uneven sigma", 2),
        ("one metric", 1),
        ("three metrics", 3),
        ("levels", 2),
        ("products", 2),
        ("duplicated and constant columns", 2),
        ("large means", 2),
        ("noise far below sigma", 2),
        ("no noise at all", 2),
        ("contexts of any size", 2),
        ("many contexts", 0),
        ("meaningless", 0),
        ("sigma 0 somewhere", 1),
        ("sigma unknown", 2),
        ("sigma unknown, meaningless", 0),
        ("arms that come later", 6),
        ("far out", 4),
    ],
)
def test_what_contexts_make_of_pilots(case: str, used: int) -> None:
    """As in the naive twin; and the contexts are used where they should be."""
    rng = np.random.default_rng(1)
    L = {"one metric": 1, "three metrics": 3}.get(case, 2)
    contexts, means = linear_case(48, 3, L, 2)
    sigma: FloatArray = np.ones((48, L))
    noise, entered = rng.normal(size=(48, L)), np.zeros(48, np.int64)
    if case == "uneven sigma":
        sigma = rng.uniform(0.4, 1.6, size=(48, L))
    if case == "levels":
        contexts = rng.integers(0, 5, size=(48, 2)).astype(float)
        means = rng.normal(size=(5, L))[contexts[:, 0].astype(int)] * 3
    if case == "products":
        means = 2 * contexts[:, [0]] * contexts[:, 1:]
    if case == "duplicated and constant columns":
        contexts = np.column_stack([np.ones(48), contexts, contexts[:, 0] + contexts[:, 1], contexts[:, 2]])
    if case == "large means":
        means = means + 1e6
    if case == "noise far below sigma":
        noise = 0.3 * noise
    if case == "no noise at all":
        noise, means = 0.0 * noise, contexts @ np.ones((3, L))
    if case == "contexts of any size":
        contexts = contexts * [1e-300, 1.0, 1e300]
    if case == "many contexts":
        contexts = np.column_stack([contexts, rng.normal(size=(48, 9))])
    if "meaningless" in case:
        contexts = rng.normal(size=(48, 3))
    if case == "sigma 0 somewhere":
        sigma[5, 0] = 0.0
    if case == "arms that come later":
        entered = np.repeat([0, 1, 2], [30, 10, 8])
    if case == "far out":
        entered = np.repeat([0, 1], [40, 8])
        contexts[44] *= 1e5
    session = piloted(means + sigma * noise, None if "unknown" in case else sigma, contexts, entered)
    if case == "contexts of any size":  # the twin squares them as they are
        assert (session.state.pilots.variances < sigma**2).all()
    else:
        assert check_by_twin(session) == used
    check_shares(session)
    assert not any(array.any() for array in session.state.fit)


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([0.0, 0.3, 3.0]), st.booleans())
def test_any_pilots_and_contexts(seed: int, K: int, noise: float, later: bool) -> None:
    """Few arms, few levels, equal rows: nothing fails, and shares stay shares."""
    rng = np.random.default_rng(seed)
    contexts: FloatArray = rng.integers(-1, 3, size=(K, int(rng.integers(1, 4)))) * rng.choice([1e-3, 1.0, 1e9])
    first = contexts[:, :1] / np.abs(contexts).max(initial=1e-3) * 5 + noise * rng.normal(size=(K, 2))
    entered = np.sort(rng.integers(0, 3, size=K)) if later else np.zeros(K, np.int64)
    entered = np.unique(entered, return_inverse=True)[1]
    session = piloted(first, rng.choice([0.1, 1.0], size=(K, 2)), contexts, entered)
    check_by_twin(session)
    check_shares(session)


@given(st.integers(0, 10**6), st.floats(-300, 3))
def test_shares_add_up_whatever_the_contexts_said(seed: int, exponent: float) -> None:
    """A model that is wrong by any amount, and sure of itself, leaves every arm its even part, and all at most delta."""
    rng = np.random.default_rng(seed)
    session = piloted(rng.normal(size=(12, 2)), 1.0, None, np.repeat([0, 1], [8, 4]), "tabular")
    state, constants = session.state, session.constants
    state.pilots.expected[:] = rng.normal(size=(12, 2))
    state.pilots.variances[:] = 10.0**exponent
    for addition in (0, 1):
        pilots.share_out(state.pilots, constants.sharing, state.thresholds, addition)
    check_shares(session)


def test_arms_that_come_far_behind_have_their_share() -> None:
    """Not even the nearest of them is likely to be of the front; they share what is theirs all the same."""
    first = np.array([[100.0, 100.0], [99.0, 99.0], [0.0, 0.0], [1.0, 0.0]])
    session = piloted(first, 1.0, None, np.array([0, 0, 1, 1]), "tabular")
    check_shares(session)
    assert np.exp(-session.state.thresholds[2:]).sum() == pytest.approx(0.1 * 0.025)


def test_contexts_guide_unless_something_else_is_stated() -> None:
    contexts, means = linear_case(48, 3, 2, 2)

    def columns(model: str | None, **stated: object) -> int:
        setup = Setup(48, 2, eps=np.full(2, 0.1), delta=0.1, sigma=np.ones(2), **stated)  # type: ignore[arg-type]
        _, constants = ps.algorithms.get("scout").start(Scout(model=model), setup)
        return int(constants.guide.design.shape[1])

    assert columns(None, contexts=contexts) == columns("guide", contexts=contexts) == 10
    assert columns("tabular", contexts=contexts) == columns(None) == 0
    setup = Setup(48, 2, eps=np.full(2, 0.1), delta=0.1, sigma=np.ones(2), contexts=contexts, explained=True)
    state, _ = ps.algorithms.get("scout").start(Scout(), setup)
    assert type(state).__name__ == "TestedScoutState"
    with pytest.raises(InvalidInput, match="contexts of algorithm 'scout' must be given for model='guide'"):
        columns("guide")
    problem = ps.problems.gaussian(means, 1.0, contexts=contexts)
    study = ps.Study.of(problem.asked(0.3), storage="memory")
    with study.log.reading() as replica:
        assert replica.session.constants.guide.design.shape == (48, 10)
    assert "contexts" not in str(study.verdicts().guarantee)


def test_columns_are_limited() -> None:
    """Never more than a quarter of the arms, 200, or what can be fitted quickly."""
    rng = np.random.default_rng(0)
    none = np.zeros(2000, np.int64)
    assert guide.guide_by(rng.normal(size=(2000, 18)), none).sizes.tolist() == [19, 190]
    assert guide.guide_by(rng.normal(size=(2000, 30)), none).sizes.tolist() == [31]
    assert guide.guide_by(rng.normal(size=(12, 3)), none[:12]).sizes.tolist() == []
    assert guide.guide_by(rng.normal(size=(16, 3)), none[:16]).sizes.tolist() == [4]
    assert guide.guide_by(np.ones((50, 2)), none[:50]).design.shape == (50, 0)
    many = guide.guide_by(rng.normal(size=(200_000, 6)), np.zeros(200_000, np.int64)).design
    assert many.shape == (200_000, 28)
    assert many.shape[0] * many.shape[1] ** 2 <= guide.MOST_WORK
    np.testing.assert_allclose(many.T @ many / len(many), np.eye(28), atol=1e-9)


def test_nothing_changes_for_arms_when_others_come() -> None:
    """Columns are those of the first arms, and what was settled by them stays."""
    contexts, means = linear_case(60, 3, 2, 3)
    first = means + np.random.default_rng(0).normal(size=(60, 2))
    before = piloted(first[:40], 1.0, contexts[:40])
    after = piloted(first, 1.0, contexts, np.repeat([0, 1], [40, 20]))
    assert check_by_twin(before) == 2
    for name in ("expected", "variances"):
        mine, theirs = getattr(after.state.pilots, name), getattr(before.state.pilots, name)
        np.testing.assert_allclose(mine[:40], theirs, rtol=1e-9)
    np.testing.assert_allclose(after.state.thresholds[:40], before.state.thresholds, rtol=1e-9)


def test_meaningless_contexts_change_nothing() -> None:
    """Where they do not predict pilots, every decision is that of scout without contexts, to the last bit."""
    _, means = linear_case(48, 3, 2, 4)
    contexts = np.random.default_rng(5).normal(size=(48, 3))
    rng = np.random.default_rng(6)
    outcomes = means + 0.5 * rng.normal(size=(150 if UNCOMPILED else 1500, 48, 2))
    told, untold = (
        Session(
            Scout(model=model),
            Setup(48, 2, eps=np.full(2, 0.2), delta=0.1, sigma=np.full(2, 0.5), contexts=contexts),
        )
        for model in ("guide", "tabular")
    )
    for row in outcomes:
        if told.done:
            break
        question = told.ask()
        assert untold.ask().arm == question.arm
        for session in (told, untold):
            session.tell(question.number, row[question.arm])
    kept = arrays_of(told.state)
    for name, array in arrays_of(untold.state).items():
        if not name.startswith("fit."):
            np.testing.assert_array_equal(kept[name], array, err_msg=name)


def test_live_equals_simulation_and_snapshots_go_on() -> None:
    """A session, one that is saved and read again and again, and the compiled loop take the same decisions."""
    contexts, means = linear_case(32, 2, 2, 7)
    problem = ps.problems.gaussian(means, 0.4, contexts=contexts)
    most = 120 if UNCOMPILED else 3000
    result = ps.simulate(problem, eps=0.4, delta=0.1, replicates=1, seed=3, max_samples=most)
    session = Session("scout", setup_of(problem.asked(0.4, 0.1), Scout()), seed=3)
    noise = environment_stream(3)
    for turn in range(most):
        if session.done:
            break
        arm = session.ask().arm
        session.tell(turn, means[arm] + 0.4 * noise.standard_normal(2))
        if turn in (5, 31, 32, 60):
            session = Session.load(session.dump())
    assert check_by_twin(session) == 2
    np.testing.assert_array_equal(session.verdicts().counts, result.pulls[0])


def test_a_study_that_ignored_its_contexts_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was begun before contexts guided scout is judged from its log, with them, and says so."""
    x = np.linspace(0, 4, 20)
    means, rng = np.column_stack([x, (x - 2) ** 2]), np.random.default_rng(0)
    asked = ps.problems.gaussian(means, 1.0, contexts=x[:, None], names=[f"{k}" for k in range(20)]).asked(0.1)
    study = ps.Study.of(asked, algorithm=Scout(model="tabular"), storage=tmp_path / "studies.db", name="old")

    def go_on(trials: int) -> None:
        for _ in range(trials):
            trial = study.ask()
            outcome = means[int(trial.arm)] + rng.normal(size=2)
            study.tell(trial, dict(zip(study.spec.columns, outcome.tolist(), strict=True)))

    go_on(30)
    read = StudySpec.of_text
    monkeypatch.setattr(
        StudySpec, "of_text", lambda text, name: dataclasses.replace(read(text, name), settings=(), rules=3)
    )
    study = ps.Study.load("old", tmp_path / "studies.db")
    with study.log.reading() as replica:
        assert replica.session.constants.guide.design.shape == (20, 3)
        check_by_twin(replica.session)
    assert "begun under the rules of version 3, judged by those of version 6" in str(study.verdicts().guarantee)
    go_on(5)
    assert study.counts()["told"] == 35


@pytest.mark.skipif(UNCOMPILED, reason="too slow uncompiled")
def test_contexts_that_mislead_do_no_harm() -> None:
    """They explain most options, and say of the best that they are the worst. Wrong no more often than delta allows.

    Were it wrong with probability delta = 0.2, more than `most` of 100 runs would be with probability below 1e-4.
    """
    runs, delta, eps = 100, 0.2, 0.6
    x = np.append(np.linspace(-2.5, 1.5, 60), [-2.4, -2.3])
    means = np.column_stack([x, x])
    means[60:] = [[2.0, 2.0], [2.0 + 1.02 * eps, 2.0 + 1.02 * eps]]
    problem = ps.problems.gaussian(means, 1.0, contexts=x[:, None])
    session = piloted(means + np.random.default_rng(0).normal(size=means.shape), 1.0, x[:, None])
    assert (session.state.pilots.expected[60:] < 0.5).all()
    assert (session.state.pilots.variances < 0.5).all()
    most = int(binom.isf(1e-4, runs, delta))
    result = ps.simulate(problem, eps=eps, delta=delta, replicates=runs, seed=1)
    assert np.count_nonzero(~result.success) <= most
