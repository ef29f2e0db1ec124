"""The common suite: what every algorithm in the registry must do. A new one earns it with its registry line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paretoscout as ps
from paretoscout.algorithms import Accepts, Algorithm, Setup, available, get
from paretoscout.errors import InvalidInput, NotSupported, UnreadableFile
from paretoscout.files import pack, unpack
from paretoscout.kernels.decisions import DOMINATED, FRONT, UNDECIDED
from paretoscout.session import Question, Session
from paretoscout.start import setup_of
from paretoscout.streams import environment_stream

pytestmark = pytest.mark.kernels

MEANS = [[1.0, 0.0], [0.0, 1.0], [0.3, -0.5], [-0.5, -0.5]]
EASY = ps.problems.gaussian(MEANS, sigma=0.05, name="easy")
LINEAR = ps.problems.linear([[1, 0], [0, 1], [0.3, -0.5], [-0.5, -0.5]], np.eye(2), sigma=0.05, name="easy")


@pytest.fixture(autouse=True, params=["tabular", "linear"])
def easy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the suite twice: the same means with and without contexts that explain them."""
    if request.param == "linear":
        monkeypatch.setitem(globals(), "EASY", LINEAR)


algorithms = pytest.mark.parametrize("algorithm", [get(name) for name in available()], ids=lambda a: a.name)


def session_on(algorithm: Algorithm, eps: float = 0.3, seed: int = 0) -> Session:
    setup, _ = setup_of(EASY, algorithm.settings(), eps, 0.1)
    return Session(algorithm.settings(), setup, seed)


def accepts_of(algorithm: Algorithm) -> Accepts:
    return session_on(algorithm).kernels.accepts


def play_on(session: Session, problem: ps.Problem, rounds: int, noise: np.random.Generator) -> list[int]:
    arms = []
    for _ in range(rounds):
        if session.done:
            break
        question = session.ask()
        session.tell(question, problem.means[question.arm] + problem.sigma * noise.standard_normal(2))
        arms.append(question.arm)
    return arms


@algorithms
def test_solves_an_easy_problem(algorithm: Algorithm) -> None:
    result = ps.simulate(EASY, algorithm.name, eps=0.3, delta=0.1, replicates=3, max_samples=30_000)
    assert result.stopped.all()
    assert result.success.all()
    np.testing.assert_array_equal(result.fronts, [[True, True, False, False]] * 3)
    np.testing.assert_array_equal(result.pulls.sum(axis=1), result.samples)


@algorithms
def test_says_who_it_is(algorithm: Algorithm) -> None:
    assert algorithm.summary
    assert algorithm.paper
    assert algorithm.guarantee
    assert algorithm.guarantees == (not algorithm.guarantee.startswith("none"))
    assert get(algorithm.name) is algorithm


@algorithms
def test_live_equals_simulation(algorithm: Algorithm) -> None:
    """One kernel, two drivers: asked and told one by one it takes the same decisions as in the compiled loop."""
    result = ps.simulate(EASY, algorithm.name, eps=0.3, delta=0.1, replicates=1, seed=5, max_samples=2_000)
    session = session_on(algorithm, seed=5)
    play_on(session, EASY, 2_000, environment_stream(5))
    verdicts = session.verdicts()
    assert session.done == result.stopped[0]
    np.testing.assert_array_equal(verdicts.counts, result.pulls[0])
    np.testing.assert_array_equal(verdicts.status != DOMINATED, result.fronts[0])


@algorithms
def test_saved_and_restored_in_mid_run_changes_nothing(algorithm: Algorithm) -> None:
    whole, parts = session_on(algorithm, seed=2), session_on(algorithm, seed=2)
    noise, same_noise = np.random.default_rng(1), np.random.default_rng(1)
    for rounds in (1, 7, 50, 90):
        arms = play_on(whole, EASY, rounds, noise)
        parts = Session.load(parts.dump())
        assert play_on(parts, EASY, rounds, same_noise) == arms
        for name, value in whole.state._asdict().items():
            np.testing.assert_array_equal(getattr(parts.state, name), value, err_msg=name)
        assert parts.rng.bit_generator.state == whole.rng.bit_generator.state


@algorithms
def test_a_damaged_session_is_refused(algorithm: Algorithm) -> None:
    header, arrays = unpack("session", session_on(algorithm).dump())
    for name, array in arrays.items():
        for damaged in (array.astype(np.float32), array[:-1], np.zeros((*array.shape, 2), array.dtype)):
            if damaged.shape == array.shape and damaged.dtype == array.dtype:
                continue
            if name.startswith("setup.") and damaged.dtype == np.float32:
                continue  # numbers all the same
            with pytest.raises((UnreadableFile, InvalidInput)):
                Session.load(pack("session", header, {**arrays, name: damaged}))
    for missing in ("algorithm", "rng", "open"):
        with pytest.raises(UnreadableFile):
            Session.load(pack("session", {k: v for k, v in header.items() if k != missing}, arrays))


@algorithms
def test_restored_while_a_question_is_open(algorithm: Algorithm) -> None:
    session = session_on(algorithm, seed=2)
    question = session.ask()
    restored = Session.load(session.dump())
    for one in (session, restored):
        one.tell(question, [0.5, 0.5])
    assert session.ask().arm == restored.ask().arm


@algorithms
def test_state_keeps_its_shapes_and_dtypes(algorithm: Algorithm) -> None:
    session = session_on(algorithm)
    before = {name: (value.dtype, value.shape[1:]) for name, value in session.state._asdict().items()}
    play_on(session, EASY, 100, np.random.default_rng(0))
    assert {name: (value.dtype, value.shape[1:]) for name, value in session.state._asdict().items()} == before


@algorithms
def test_verdicts_are_final(algorithm: Algorithm) -> None:
    session = session_on(algorithm)
    noise = np.random.default_rng(3)
    earlier = session.verdicts().status
    for _ in range(200):
        play_on(session, EASY, 3, noise)
        status = session.verdicts().status
        decided = earlier != UNDECIDED
        np.testing.assert_array_equal(status[decided], earlier[decided])
        earlier = status


@algorithms
def test_verdicts_name_a_rival(algorithm: Algorithm) -> None:
    session = session_on(algorithm)
    play_on(session, EASY, 20_000, np.random.default_rng(3))
    verdicts = session.verdicts()
    assert verdicts.status.tolist() == [FRONT, FRONT, DOMINATED, DOMINATED]
    for k in (2, 3):
        j = int(verdicts.rival[k])
        assert (EASY.means[j] > EASY.means[k]).all(), "the named dominator does not dominate"


@algorithms
@pytest.mark.parametrize("outcome", [[np.nan, 0.0], [0.0, np.inf], [0.0], [0.0, 0.0, 0.0], "no", None, [[0.0, 0.0]]])
def test_bad_outcomes_never_reach_a_kernel(algorithm: Algorithm, outcome: Any) -> None:
    session = session_on(algorithm)
    question = session.ask()
    before = session.dump()
    with pytest.raises(InvalidInput, match="outcome"):
        session.tell(question, outcome)
    assert session.dump() == before
    session.tell(question, [0.0, 0.0])


@algorithms
@pytest.mark.parametrize("arm", [-1, 4, 1.0, "0", True, None])
def test_bad_arms_never_reach_a_kernel(algorithm: Algorithm, arm: Any) -> None:
    session = session_on(algorithm)
    if accepts_of(algorithm).unasked:
        with pytest.raises(InvalidInput, match="arm must be a whole number, at least 0 and at most 3"):
            session.add(arm, [0.0, 0.0])
    question = session.ask()
    forged = Question(question.number, arm, np.full(99, np.nan))
    session.tell(forged, [0.0, 0.0])  # what was asked counts, not what was handed back
    assert session.verdicts().counts[question.arm] == 1
    for told in (question, 7, None):
        with pytest.raises(InvalidInput, match="asked and not yet told"):
            session.tell(told, [0.0, 0.0])  # type: ignore[arg-type]


@algorithms
def test_refuses_by_name_what_it_cannot_take(algorithm: Algorithm) -> None:
    session = session_on(algorithm)
    question = session.ask()
    if accepts_of(algorithm).pending:
        assert session.ask().arm != question.arm
    else:
        with pytest.raises(NotSupported, match=algorithm.name):
            session.ask()
    if accepts_of(algorithm).unasked:
        session.add(0, [0.0, 0.0])
        assert session.verdicts().counts[0] == 1
    else:
        with pytest.raises(NotSupported, match=algorithm.name):
            session.add(0, [0.0, 0.0])
    partial = np.array([True, False])
    if accepts_of(algorithm).missing:
        session.tell(question, [0.0, np.nan], partial)
    else:
        with pytest.raises(NotSupported, match=algorithm.name):
            session.tell(question, [0.0, np.nan], partial)


@algorithms
def test_answers_out_of_order_reach_the_same_verdicts(algorithm: Algorithm) -> None:
    if not accepts_of(algorithm).pending:
        pytest.skip("takes one question at a time")
    session = session_on(algorithm)
    noise = np.random.default_rng(9)
    for _ in range(5_000):
        if session.done:
            break
        questions = [session.ask() for _ in range(7)]
        for question in reversed(questions):
            session.tell(question, EASY.means[question.arm] + 0.05 * noise.standard_normal(2))
    assert session.verdicts().status.tolist() == [FRONT, FRONT, DOMINATED, DOMINATED]


@algorithms
def test_has_nothing_to_ask_when_done(algorithm: Algorithm) -> None:
    session = session_on(algorithm)
    play_on(session, EASY, 20_000, np.random.default_rng(0))
    assert session.done
    with pytest.raises(NotSupported, match="nothing left to ask"):
        session.ask()


@algorithms
def test_one_arm_and_one_metric(algorithm: Algorithm) -> None:
    one_arm = ps.problems.gaussian([[0.5, 0.5]], sigma=0.1)
    assert ps.simulate(one_arm, algorithm.name, eps=0.1, replicates=2, max_samples=100).success.all()
    one_metric = ps.problems.gaussian([[1.0], [0.0], [-1.0]], sigma=0.05)
    result = ps.simulate(one_metric, algorithm.name, eps=0.2, replicates=2, max_samples=30_000)
    np.testing.assert_array_equal(result.fronts, [[True, False, False]] * 2)


@algorithms
def test_identical_arms_are_all_returned(algorithm: Algorithm) -> None:
    twins = ps.problems.gaussian([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]], sigma=0.05)
    result = ps.simulate(twins, algorithm.name, eps=0.4, replicates=2, max_samples=30_000)
    np.testing.assert_array_equal(result.fronts, [[True, True, False]] * 2)


@algorithms
def test_noise_free_problem(algorithm: Algorithm) -> None:
    exact = ps.problems.gaussian(EASY.means, sigma=0.0)
    assert ps.simulate(exact, algorithm.name, eps=0.3, replicates=1, max_samples=30_000).success.all()


@algorithms
def test_ten_metrics_and_directions(algorithm: Algorithm) -> None:
    values = np.vstack([np.full(10, 1.0), np.full(10, 3.0)])
    problem = ps.problems.gaussian(values, sigma=0.01, directions="min")
    result = ps.simulate(problem, algorithm.name, eps=0.5, replicates=1, max_samples=30_000)
    np.testing.assert_array_equal(result.fronts, [[True, False]])


@algorithms
@pytest.mark.parametrize("sigma", [-1.0, np.nan, np.inf, "much", (0.1, -0.1), True])
def test_settings_refuse_a_bad_sigma(algorithm: Algorithm, sigma: Any) -> None:
    with pytest.raises(InvalidInput, match=f"sigma of {algorithm.settings.__name__} must be"):
        algorithm.settings(sigma=sigma)


@algorithms
def test_sigma_per_metric_must_fit(algorithm: Algorithm) -> None:
    settings = algorithm.settings(sigma=(0.1, 0.1, 0.1))
    with pytest.raises(InvalidInput, match=r"one number or 2 of them"):
        ps.simulate(EASY, settings, replicates=1)


def test_state_classes_have_unique_names() -> None:
    classes = {kernels.state for name in available() for kernels in get(name).kernels}
    assert len({cls.__name__ for cls in classes}) == len(classes)


@pytest.mark.parametrize(
    "change",
    [
        {"eps": np.full(1, 0.1)},
        {"sigma": np.full(3, 0.1)},
        {"sigma": np.array([0.1, np.nan])},
        {"eps": -0.1},
        {"delta": -3.0},
        {"delta": 1.0},
        {"contexts": np.eye(3)},
        {"n_arms": 0},
        {"n_metrics": 2.0},
        {"theta_max": np.inf},
    ],
)
def test_a_setup_checks_itself(change: dict[str, Any]) -> None:
    good: dict[str, Any] = {"n_arms": 4, "n_metrics": 2, "eps": 0.1, "delta": 0.1, "sigma": 0.1}
    Setup(**good)
    with pytest.raises(InvalidInput, match=f"{next(iter(change))} of a setup must"):
        Setup(**{**good, **change})
