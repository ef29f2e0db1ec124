"""The common suite: what every algorithm in the registry must do. A new one earns it with its registry line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import paretoscout as ps
from paretoscout.algorithms import (
    Accepts,
    EpsilonPAL,
    Scout,
    Settings,
    Setup,
    available,
    get,
    states,
)
from paretoscout.algorithms.registry import resolve
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


#: Samples for those that plan for a number of them.
BUDGET = 400

#: Every algorithm as it comes, and those of its settings that change what runs.
CONTENDERS: dict[str, Settings] = {
    **{name: get(name).settings() for name in available()},
    "scout, noise unknown": Scout(noise="unknown"),
    "scout, robust": Scout(model="robust"),
    "scout, robust, misfit": Scout(model="robust", misfit=0.02),
    "scout, robust, noise unknown": Scout(model="robust", noise="unknown"),
    "epsilon-pal, rkhs": EpsilonPAL(width="rkhs", prior_deviation=5.0),
}
contenders = pytest.mark.parametrize("settings", CONTENDERS.values(), ids=CONTENDERS)


def name_of(settings: Settings) -> str:
    return resolve(settings)[0].name


def suited(problem: ps.Problem, settings: Settings) -> ps.Problem:
    """Give arms contexts of their own where an algorithm wants some, and the first metric where it wants just one."""
    if problem.contexts is None and getattr(settings, "model", None) == "robust":
        problem = problem.replace(contexts=np.eye(len(problem.arms)))
    if resolve(settings)[0].one_metric:
        theta = None if problem.theta is None else problem.theta[:, :1]
        problem = problem.replace(
            metrics=problem.metrics[:1],
            means=problem.means[:, :1],
            sigma=problem.sigma[:, :1],
            theta=theta,
            tradeoffs=None,
        )
    return problem


def plan(settings: Settings) -> dict[str, Any]:
    """What is asked of an algorithm besides eps and delta."""
    record = resolve(settings)[0]
    return {"budget": BUDGET if record.needs_budget else None, "goal": 1 if record.one_metric else "front"}


def simulate(problem: ps.Problem, settings: Settings, **how: Any) -> ps.Result:
    return ps.simulate(suited(problem, settings), settings, **plan(settings), **{"delta": 0.1, **how})


def session_on(settings: Settings, eps: float = 0.3, seed: int = 0) -> Session:
    setup = setup_of(suited(EASY, settings).asked(eps, 0.1, **plan(settings)), settings)
    return Session(settings, setup, seed)


def zeros(session: Session) -> list[float]:
    return [0.0] * session.setup.n_metrics


def right_answer(problem: ps.Problem, settings: Settings) -> list[bool]:
    return [bool(optimal) for optimal in ps.geometry.pareto_front(suited(problem, settings).means)]


def accepts_of(settings: Settings) -> Accepts:
    return session_on(settings).kernels.accepts


def play_on(session: Session, problem: ps.Problem, rounds: int, noise: np.random.Generator) -> list[int]:
    arms = []
    for _ in range(rounds):
        if session.done:
            break
        question = session.ask()
        L = session.setup.n_metrics
        session.tell(
            question, problem.means[question.arm, :L] + problem.sigma[question.arm, :L] * noise.standard_normal(L)
        )
        arms.append(question.arm)
    return arms


@contenders
def test_solves_an_easy_problem(settings: Settings) -> None:
    result = simulate(EASY, settings, eps=0.3, delta=0.1, replicates=3, max_samples=30_000)
    assert result.stopped.all()
    assert result.success.all()
    np.testing.assert_array_equal(result.fronts, [right_answer(EASY, settings)] * 3)
    np.testing.assert_array_equal(result.pulls.sum(axis=1), result.samples)


@contenders
def test_one_sigma_for_all_arms_is_the_same_for_each(settings: Settings) -> None:
    one = simulate(EASY, settings, eps=0.3, replicates=1, max_samples=30)
    each = simulate(EASY.replace(sigma=np.full((4, 2), 0.05)), settings, eps=0.3, replicates=1, max_samples=30)
    for name in ("samples", "regret", "fronts", "pulls", "regret_curves", "sigma"):
        np.testing.assert_array_equal(getattr(one, name), getattr(each, name))
    assert one.guarantee == each.guarantee


@contenders
def test_who_knows_one_sigma_takes_the_largest(settings: Settings) -> None:
    problem = suited(EASY, settings)
    setup = setup_of(problem.asked(0.3, 0.1, **plan(settings)), settings)
    if setup.sigma is None or session_on(settings).kernels.each_sigma:
        return
    spread = np.linspace(0.0, 1.0, setup.n_arms)[:, None]  # noise of the first arm: none
    each = Session(settings, replace(setup, sigma=spread * setup.sigma), 3)
    largest = Session(settings, setup, 3)
    one, other = (play_on(session, EASY, 30, environment_stream(3, 0)) for session in (each, largest))
    assert one == other
    np.testing.assert_array_equal(each.verdicts().radii, largest.verdicts().radii)


@contenders
def test_says_who_it_is(settings: Settings) -> None:
    algorithm = resolve(settings)[0]
    assert algorithm.summary
    assert algorithm.paper
    assert algorithm.guarantee
    assert algorithm.setting
    assert not (algorithm.guarantees and algorithm.needs_budget), "what is cut off by a budget has no delta"
    assert algorithm.guarantees == (not algorithm.guarantee.startswith("none"))
    assert get(algorithm.name) is algorithm


@contenders
def test_live_equals_simulation(settings: Settings) -> None:
    """One kernel, two drivers: asked and told one by one it takes the same decisions as in the compiled loop."""
    result = simulate(EASY, settings, eps=0.3, delta=0.1, replicates=1, seed=5, max_samples=2_000)
    session = session_on(settings, seed=5)
    play_on(session, EASY, 2_000, environment_stream(5))
    verdicts = session.verdicts()
    assert session.done == result.stopped[0]
    np.testing.assert_array_equal(verdicts.counts, result.pulls[0])
    np.testing.assert_array_equal(verdicts.status != DOMINATED, result.fronts[0])


@contenders
def test_saved_and_restored_in_mid_run_changes_nothing(settings: Settings) -> None:
    whole, parts = session_on(settings, seed=2), session_on(settings, seed=2)
    noise, same_noise = np.random.default_rng(1), np.random.default_rng(1)
    for rounds in (1, 7, 50, 90):
        arms = play_on(whole, EASY, rounds, noise)
        parts = Session.load(parts.dump())
        assert play_on(parts, EASY, rounds, same_noise) == arms
        kept = states.arrays_of(parts.state)
        for name, value in states.arrays_of(whole.state).items():
            np.testing.assert_array_equal(kept[name], value, err_msg=name)
        assert parts.rng.bit_generator.state == whole.rng.bit_generator.state


@contenders
def test_a_damaged_session_is_refused(settings: Settings) -> None:
    header, arrays = unpack("session", session_on(settings).dump())
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


@contenders
def test_restored_while_a_question_is_open(settings: Settings) -> None:
    session = session_on(settings, seed=2)
    question = session.ask()
    restored = Session.load(session.dump())
    for one in (session, restored):
        one.tell(question, zeros(session))
    assert session.ask().arm == restored.ask().arm


@contenders
def test_state_keeps_its_shapes_and_dtypes(settings: Settings) -> None:
    session = session_on(settings)
    before = {name: (value.dtype, value.shape[1:]) for name, value in states.arrays_of(session.state).items()}
    play_on(session, EASY, 100, np.random.default_rng(0))
    assert {name: (value.dtype, value.shape[1:]) for name, value in states.arrays_of(session.state).items()} == before


@contenders
def test_verdicts_are_final(settings: Settings) -> None:
    session = session_on(settings)
    noise = np.random.default_rng(3)
    earlier = session.verdicts().status
    for _ in range(200):
        play_on(session, EASY, 3, noise)
        status = session.verdicts().status
        np.testing.assert_array_equal(session.status, status)
        decided = earlier != UNDECIDED
        np.testing.assert_array_equal(status[decided], earlier[decided])
        earlier = status


@contenders
def test_verdicts_name_a_rival(settings: Settings) -> None:
    session = session_on(settings)
    play_on(session, EASY, 20_000, np.random.default_rng(3))
    verdicts = session.verdicts()
    means, front = suited(EASY, settings).means, right_answer(EASY, settings)
    assert verdicts.status.tolist() == [FRONT if optimal else DOMINATED for optimal in front]
    for k in np.flatnonzero(~np.array(front)):
        j = int(verdicts.rival[k])
        assert (means[j] > means[k]).all(), "the named dominator does not dominate"


@contenders
@pytest.mark.parametrize("outcome", [[np.nan, 0.0], [0.0, np.inf], [], [0.0, 0.0, 0.0], "no", None, [[0.0, 0.0]]])
def test_bad_outcomes_never_reach_a_kernel(settings: Settings, outcome: Any) -> None:
    session = session_on(settings)
    question = session.ask()
    before = session.dump()
    with pytest.raises(InvalidInput, match="outcome"):
        session.tell(question, outcome)
    assert session.dump() == before
    session.tell(question, zeros(session))


@contenders
@pytest.mark.parametrize("arm", [-1, 4, 1.0, "0", True, None])
def test_bad_arms_never_reach_a_kernel(settings: Settings, arm: Any) -> None:
    session = session_on(settings)
    if accepts_of(settings).unasked:
        with pytest.raises(InvalidInput, match="arm must be a whole number, at least 0 and at most 3"):
            session.add(arm, zeros(session))
    question = session.ask()
    forged = Question(question.number, arm, np.full(99, np.nan))
    session.tell(forged, zeros(session))  # what was asked counts, not what was handed back
    assert session.verdicts().counts[question.arm] == 1
    for told in (question, 7, None):
        with pytest.raises(InvalidInput, match="asked and not yet told"):
            session.tell(told, zeros(session))  # type: ignore[arg-type]


@contenders
def test_refuses_by_name_what_it_cannot_take(settings: Settings) -> None:
    session = session_on(settings)
    question = session.ask()
    if accepts_of(settings).pending:
        assert session.ask().arm != question.arm
    else:
        with pytest.raises(NotSupported, match=name_of(settings)):
            session.ask()
    if accepts_of(settings).unasked:
        before = session.verdicts().counts[0]
        session.add(0, zeros(session))
        assert session.verdicts().counts[0] == before + 1
    else:
        with pytest.raises(NotSupported, match=name_of(settings)):
            session.add(0, zeros(session))
    if session.setup.n_metrics == 1:
        return  # no metric can be missing
    partial = np.array([True, False])
    if accepts_of(settings).missing:
        session.tell(question, [0.0, np.nan], partial)
    else:
        with pytest.raises(NotSupported, match=name_of(settings)):
            session.tell(question, [0.0, np.nan], partial)


@contenders
def test_answers_out_of_order_reach_the_same_verdicts(settings: Settings) -> None:
    if not accepts_of(settings).pending:
        pytest.skip("takes one question at a time")
    session = session_on(settings)
    noise = np.random.default_rng(9)
    for _ in range(5_000):
        if session.done:
            break
        questions = [session.ask() for _ in range(7)]
        for question in reversed(questions):
            L = session.setup.n_metrics
            session.tell(question, EASY.means[question.arm, :L] + 0.05 * noise.standard_normal(L))
    np.testing.assert_array_equal(session.verdicts().status == FRONT, right_answer(EASY, settings))


@contenders
def test_has_nothing_to_ask_when_done(settings: Settings) -> None:
    session = session_on(settings)
    play_on(session, EASY, 20_000, np.random.default_rng(0))
    assert session.done
    with pytest.raises(NotSupported, match="nothing left to ask"):
        session.ask()


@contenders
def test_refuses_problems_it_is_not_made_for(settings: Settings) -> None:
    record = resolve(settings)[0]
    if record.one_metric:
        with pytest.raises(NotSupported, match=f"'{record.name}' takes problems with one metric only, got 2"):
            ps.simulate(EASY, settings, delta=0.1, budget=BUDGET, replicates=1)
    if record.needs_budget:
        with pytest.raises(NotSupported, match=f"'{record.name}' must be told a budget"):
            ps.simulate(suited(EASY, settings), settings, delta=0.1, replicates=1)


@contenders
def test_a_budget_is_never_exceeded(settings: Settings) -> None:
    result = ps.simulate(
        suited(EASY, settings), settings, **{**plan(settings), "budget": 61}, eps=0.3, delta=0.1, replicates=2
    )
    assert (result.samples <= 61).all()
    if resolve(settings)[0].needs_budget:
        assert result.stopped.all()


@contenders
def test_one_arm_and_one_metric(settings: Settings) -> None:
    one_arm = ps.problems.gaussian([[0.5, 0.5]], sigma=0.1)
    assert simulate(one_arm, settings, eps=0.1, replicates=2, max_samples=BUDGET).success.all()
    one_metric = ps.problems.gaussian([[1.0], [0.0], [-1.0]], sigma=0.05)
    result = simulate(one_metric, settings, eps=0.2, replicates=2, max_samples=30_000)
    np.testing.assert_array_equal(result.fronts, [[True, False, False]] * 2)


@contenders
def test_identical_arms_are_all_returned(settings: Settings) -> None:
    record = resolve(settings)[0]
    if record.one_metric or record.needs_budget or not record.uses_eps:
        pytest.skip("returns one best arm, or does not know what eps is")
    twins = ps.problems.gaussian([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]], sigma=0.05)
    result = simulate(twins, settings, eps=0.4, replicates=2, max_samples=30_000)
    np.testing.assert_array_equal(result.fronts, [[True, True, False]] * 2)


@contenders
def test_noise_free_problem(settings: Settings) -> None:
    exact = ps.problems.gaussian(EASY.means, sigma=0.0)
    if settings.knows_noise:
        assert simulate(exact, settings, eps=0.3, replicates=1, max_samples=30_000).success.all()
    else:  # nobody said that what never varies is certain
        assert not simulate(exact, settings, eps=0.3, replicates=1, max_samples=300).stopped.any()


@contenders
def test_ten_metrics_and_directions(settings: Settings) -> None:
    values = np.vstack([np.full(10, 1.0), np.full(10, 3.0)])
    problem = ps.problems.gaussian(values, sigma=0.01, directions="min")
    result = simulate(problem, settings, eps=0.5, replicates=1, max_samples=30_000)
    np.testing.assert_array_equal(result.fronts, [[True, False]])


@contenders
@pytest.mark.parametrize("sigma", [-1.0, np.nan, np.inf, "much", (0.1, -0.1), True])
def test_settings_refuse_a_bad_sigma(settings: Settings, sigma: Any) -> None:
    with pytest.raises(InvalidInput, match=f"sigma of {type(settings).__name__} must be"):
        replace(settings, sigma=sigma)


@contenders
def test_sigma_per_metric_must_fit(settings: Settings) -> None:
    if not settings.knows_noise:
        pytest.skip("is told no sigma")
    with pytest.raises(InvalidInput, match=r"one number or [12] of them"):
        simulate(EASY, replace(settings, sigma=(0.1, 0.1, 0.1)), replicates=1)


def test_state_classes_have_unique_names() -> None:
    classes = {kernels.state for name in available() for kernels in get(name).kernels}
    assert len({cls.__name__ for cls in classes}) == len(classes)


@pytest.mark.parametrize(
    "change",
    [
        {"eps": np.full(1, 0.1)},
        {"sigma": np.full(3, 0.1)},
        {"sigma": np.array([[0.1, np.nan]] * 3 + [[0.1, 0.1]])},
        {"sigma": [-0.1, 0.1]},
        {"exact": [1, 0]},
        {"entered": [0, 1]},
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
