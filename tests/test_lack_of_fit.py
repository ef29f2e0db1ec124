"""Linear means that are not linear: the test finds it, verdicts by the contexts are withdrawn, and the table says why."""

from __future__ import annotations

import json
import math
from typing import Any

import jsonschema
import numpy as np
import pytest
from naive_fit import NaiveFit
from scipy.stats import binom

import paretoscout as ps
from paretoscout.algorithms import Scout, Setup
from paretoscout.algorithms.registry import resolve
from paretoscout.algorithms.scout import linear as scout_linear
from paretoscout.algorithms.scout import tested as scout_tested
from paretoscout.audit import families, measure, on_contexts
from paretoscout.kernels.arrays import FloatArray
from paretoscout.kernels.decisions import DOMINATED, FRONT, GONE, PRESENT, UNDECIDED
from paretoscout.kernels.lack_of_fit import Room, log_fit, log_misfit, log_misfit_unknown
from paretoscout.problems.built_in import partly_linear
from paretoscout.session import Session
from paretoscout.simulation.replicates import Replicate, Simulation
from paretoscout.streams import environment_stream
from paretoscout.study.standing import schema
from paretoscout.verdicts import FIT_HOLDS, FIT_OPEN, FIT_REJECTED

RHOS = scout_tested.FIT_RHOS


def room_of(K: int, d: int) -> Room:
    return Room(np.zeros(K), np.zeros(K), np.zeros((d, d)), np.full(d, d - 1, np.int64), np.zeros((d, 1)))


@pytest.mark.parametrize("seed", range(3))
def test_the_evidence_is_that_of_dense_matrices(seed: int) -> None:
    """Sigma known and unknown, for and against: sums over arms, and a naive twin with a row for each trial."""
    rng = np.random.default_rng(seed)
    K, d, sigma = 7, 2, 0.7
    twin = NaiveFit(rng.normal(size=(K, d)))
    means = twin.x @ rng.normal(size=d) + 0.4 * rng.normal(size=K)
    for _ in range(30):
        arm = int(rng.integers(K - 1))  # one is never measured
        twin.trials.append((arm, means[arm] + sigma * rng.normal()))
    first = NaiveFit(twin.x, twin.trials[:8])
    plane = twin.x @ rng.normal(size=d)  # any will do
    left = np.where(twin.n > 0, twin.means - plane, 0.0)
    first_left = np.where(first.n > 0, first.means - plane, 0.0)
    arms, room = np.flatnonzero(twin.n), room_of(K, d)
    room.left[:] = left
    got = log_misfit(arms, twin.n, sigma, twin.x, RHOS, room)
    assert got == pytest.approx(twin.against(sigma, RHOS), abs=1e-6)
    for scatter in (-1.0, twin.scatter()):
        room.left[:] = left
        got = log_fit(arms, twin.n, sigma, scatter, 0.3, twin.x, room)
        assert got == pytest.approx(twin.in_favour(0.3, sigma, scatter < 0), abs=1e-9)
    got = log_misfit_unknown(
        arms, twin.n, first.n, left, first_left, twin.scatter(), first.scatter(), twin.x, RHOS, room
    )
    assert got == pytest.approx(twin.against_unknown(8, RHOS), abs=1e-8)


class NaiveTest:
    """What the test of the model says after each look, by naive twins of all metrics."""

    def __init__(self, session: Session) -> None:
        setup, self.limits = session.setup, session.constants.limits
        self.sigma = None if setup.sigma is None else setup.sigma.max(axis=0)
        self.x, self.eps = session.constants.linear.contexts, setup.eps
        self.metrics = [NaiveFit(self.x) for _ in range(setup.n_metrics)]
        self.first: int | None = None
        self.shares = setup.shares
        self.for_test = scout_tested.FOR_FIT * setup.delta / setup.n_metrics

    def tell(self, arm: int, outcome: FloatArray) -> None:
        for fit, value in zip(self.metrics, outcome.tolist(), strict=True):
            fit.trials.append((arm, value))
        d, t = self.x.shape[1], len(self.metrics[0].trials)
        if self.first is None and t >= 2 * d + 2 and np.linalg.matrix_rank(self.metrics[0].design()[0]) == d:
            self.first = t

    def evidence(self, metric: int) -> float:
        fit = self.metrics[metric]
        if (fit.n > 0).sum() <= self.x.shape[1]:
            return -math.inf
        if self.sigma is not None:
            return fit.against(self.sigma[metric], RHOS)
        return -math.inf if self.first is None else fit.against_unknown(self.first, RHOS)

    def one_is_off(self, metric: int, scales: FloatArray, weights: FloatArray) -> bool:
        """True if an arm's own mean and the plane there are further apart than two intervals allow."""
        if self.sigma is None:
            return False
        fit, sigma = self.metrics[metric], self.sigma[metric]
        X, y, _ = fit.design()
        inverse = np.linalg.inv(X.T @ X)
        left = fit.means - self.x @ (inverse @ X.T @ y)
        for k in np.flatnonzero(fit.n).tolist():
            n, rhos = fit.n[k], scout_tested.ARM_RHOS
            needed = math.log(len(rhos) * 4 / (self.for_test * self.shares[k])) + 0.5 * np.log1p(n / rhos)
            own = (np.sqrt(2 * needed * (n + rhos)) / n).min()
            a, b = self.x[k] @ inverse @ self.x[k], self.x[k] @ inverse @ inverse @ self.x[k]
            dets = np.array([np.linalg.slogdet(np.eye(len(inverse)) + X.T @ X / rho)[1] for rho in scales])
            needed = math.log(4 / self.for_test) - np.log(weights) + 0.5 * dets
            plane = np.sqrt(2 * needed * (a + scales * b)).min()
            if abs(left[k]) > sigma * (own + plane) * (1 + 1e-9):
                return True
        return False

    def agrees(self, metric: int) -> bool | None:
        """True if misfits of half the signal are out of the question; None if that is a matter of rounding."""
        fit = self.metrics[metric]
        d, measured = self.x.shape[1], int((fit.n > 0).sum())
        odds = min(scout_tested.ODDS, scout_tested.ODDS_PER_ARM * (len(self.x) - d - scout_tested.FEW_SPARE))
        t = len(fit.trials)
        if measured <= d or (self.sigma is None and t - measured <= 2):
            return False
        known = self.sigma is not None
        sigma = self.sigma[metric] if self.sigma is not None else math.sqrt(fit.scatter() / (t - measured))
        X, y, _ = fit.design()
        inverse = np.linalg.inv(X.T @ X)
        theta = inverse @ X.T @ y
        signal = (self.x @ theta).var() - sigma**2 * np.trace(np.cov(self.x.T, bias=True) @ inverse)
        misfit = max(0.5 * math.sqrt(max(0.0, signal)), 0.5 * self.eps[metric])
        found = fit.in_favour(misfit, sigma, known) - odds
        return None if abs(found) < 1e-7 else found >= 0


CASES = {
    "misfit": (0.5, True),
    "linear": (0.0, True),
    "misfit, sigma unknown": (1.0, False),
    "linear, sigma unknown": (0.0, False),
}


@pytest.mark.parametrize("case", CASES)
def test_decisions_are_those_of_a_naive_twin(case: str) -> None:
    """When the model is rejected, when the hold is lifted, what is asked while all is clear; dumps in between."""
    misfit, known = CASES[case]
    problem = partly_linear(10, 2, misfit, 0.4, "twin", seed=1)
    setup = Setup(
        10,
        2,
        eps=np.full(2, 0.3),
        delta=0.1,
        sigma=np.full(2, 0.4) if known else None,
        contexts=problem.contexts,
        explained=True,
    )
    session = Session(Scout(model="linear", regret_weight=0.0, noise="given" if known else "unknown"), setup)
    twin, noise = NaiveTest(session), np.random.default_rng(2)
    rejected, held, spread, next_look = False, True, 0, 0
    for t in range(150):
        state = session.state
        ready = bool(
            (state.linear.progress[state.linear.status == UNDECIDED] >= session.constants.linear.threshold).all()
        )
        question = session.ask()
        if held and not rejected and scout_linear.spans(state.linear) and (ready or t % scout_linear.SPREAD == 0):
            spread += 1
            n = state.linear.pulls
            assert n[question.arm] == n.min()
        outcome = problem.means[question.arm] + 0.4 * noise.standard_normal(2)
        session.tell(question, outcome)
        twin.tell(question.arm, outcome)
        state = session.state
        looked = state.fit.fit_counters[0] != next_look
        next_look = int(state.fit.fit_counters[0])
        if looked and not rejected:
            linear = session.constants.linear
            against = [twin.evidence(metric) for metric in range(2)]
            alone = [twin.one_is_off(metric, linear.rhos[metric], np.exp(linear.log_weights)) for metric in range(2)]
            np.testing.assert_allclose(state.fit.misfits, against, atol=1e-5)
            failed = np.array(against) >= session.constants.limits.thresholds - 1e-5
            assert state.fit.failed.tolist() == (failed | alone).tolist()
            rejected = bool(state.fit.rejected[0])
            assert rejected == (failed | alone).any()
            agreed = [twin.agrees(metric) for metric in range(2)]
            if held and not rejected and None not in agreed:
                held = not all(agreed)
            assert state.linear.held[0] == held or rejected
        if held and not rejected:
            assert (state.linear.status == UNDECIDED).all()
            assert np.isinf(session.verdicts().radii).all()
            assert np.isinf(session.compared(0, 1).high).all()
        if t % 29 == 0:
            session = Session.load(session.dump())
        if session.done:
            break
    assert rejected == (misfit > 0)
    if not rejected:
        assert session.done
        assert spread > 0
        return
    said = session.verdicts()  # each arm by its own samples
    for metric in range(2):
        np.testing.assert_allclose(said.estimates[:, metric], twin.metrics[metric].means, atol=1e-9)
    session.set_presence(0, GONE)
    session.judge_again()
    assert session.state.fit.rejected[0] == 1
    session.set_presence(0, PRESENT)
    session.judge_again()
    assert session.state.own.status.tolist() == session.status.tolist()
    assert session.nearest(1)


def studies(misfit: float, L: int, sigma: float, runs: int, noise: str = "given", seed: int = 0) -> list[str]:
    """Say of each study on 60 options whether the misfit was found before a wrong verdict."""
    found = []
    for index in range(runs):
        whole = partly_linear(60, 4, misfit, sigma, "half", seed=seed + index)
        problem = ps.problems.gaussian(whole.means[:, :L], sigma, whole.contexts)
        record, settings = resolve(Scout(model="linear", noise=noise))
        run = Simulation(record, settings, problem, 0.2, 0.1, index, 20_000)
        replicate = Replicate(run, 0)
        gaps, eps, said = run.gaps, float(run.units.eps.max()), ""
        while not replicate.finished and not said:
            replicate.advance(1)
            status = replicate.state.linear.status
            if replicate.state.fit.rejected[0]:
                said = "found"
            elif ((status == DOMINATED) & (gaps <= 0)).any() or ((status == FRONT) & (gaps > eps)).any():
                said = "wrong"
        found.append(said or "right")
    return found


def test_misfits_are_found_before_a_wrong_verdict() -> None:
    """Half of the signal, 60 options: at least 95%. Fewer than 16 of 20 have probability 0.0003 then."""
    assert studies(0.5, 2, 0.5, 20).count("found") >= 16


@pytest.mark.long
@pytest.mark.parametrize(("L", "sigma"), [(1, 1.0), (1, 0.5), (2, 1.0), (2, 0.5), (2, 0.25)])
def test_misfits_are_found_in_95_percent_of_200_studies(L: int, sigma: float) -> None:
    found = studies(0.5, L, sigma, 200, seed=1000)
    print(f"{L} metrics, sigma {sigma:g}: " + ", ".join(f"{what} {found.count(what)}" for what in set(found)))
    assert found.count("found") >= 190


@pytest.mark.long
@pytest.mark.parametrize("noise", ["given", "unknown"])
def test_a_model_that_fits_is_rejected_with_the_probability_of_the_test(noise: str) -> None:
    """The test has all of delta = 0.2: more than 85 of 300 rejections have probability 1e-4 if it keeps that."""
    from paretoscout.audit.on_contexts import rejected

    problem = partly_linear(20, 3, 0.0, 0.5, "fits")
    alarms = sum(bool(rejected(problem, noise == "given", number, 0.2).wrong) for number in range(300))
    print(f"noise {noise}: {alarms} rejections of 300, at delta 0.2")
    assert alarms <= binom.isf(1e-4, 300, 0.2)


def chased(known: bool, runs: int, alpha: float) -> int:
    """Count rejections at level alpha if each sample goes to the arm whose mean looks furthest off the plane."""
    alarms = 0
    for index in range(runs):
        rng = np.random.default_rng(index)
        x, room = rng.normal(size=(8, 2)), room_of(8, 2)
        arms, values = list(range(8)), rng.normal(size=8).tolist()
        first, n_first = np.zeros(8), np.zeros(8, np.int64)
        first_scatter = 0.0
        for t in range(8, 60):
            n = np.bincount(arms, minlength=8)
            means = np.bincount(arms, values, minlength=8) / n
            scatter = float(((np.array(values) - means[arms]) ** 2).sum())
            theta = np.linalg.lstsq(x[arms], values, rcond=None)[0]
            left = means - x @ theta
            if t == 8:
                first, n_first, first_scatter = means.copy(), n.copy(), scatter
            room.left[:] = left
            if known:
                evidence = log_misfit(np.arange(8), n, 1.0, x, RHOS, room)
            else:
                where = first - x @ theta
                evidence = log_misfit_unknown(
                    np.arange(8), n, n_first, left, where, scatter, first_scatter, x, RHOS, room
                )
            if evidence >= math.log(1 / alpha):
                alarms += 1
                break
            arm = int(np.abs(left * np.sqrt(n)).argmax()) if rng.random() < 0.8 else int(rng.integers(8))
            arms.append(arm)
            values.append(float(rng.normal()))
    return alarms


@pytest.mark.parametrize("known", [True, False])
def test_chasing_residuals_does_not_make_false_alarms(known: bool) -> None:
    """Adaptive samples, linear means, level 0.3: more than 50 of 100 have probability 1e-5 if the level is kept."""
    assert chased(known, 100, 0.3) <= binom.isf(1e-5, 100, 0.3)


def study_of(problem: ps.Problem, known: bool = True, goal: str = "front") -> ps.Study:
    asked = problem.asked(0.3, 0.1, goal)
    scout = Scout(model="linear", noise="given" if known else "unknown")
    return ps.Study.of(asked, algorithm=scout, seed=5, storage="memory")


def play(study: ps.Study, problem: ps.Problem, noise: np.random.Generator, most: int) -> None:
    place = {arm: k for k, arm in enumerate(problem.arms)}
    for _ in range(most):
        if study.done:
            break
        trial = study.ask()
        values = problem.means[place[trial.arm]] + 0.4 * noise.standard_normal(2)
        study.tell(trial, dict(zip(["metric 1", "metric 2"], values.tolist(), strict=True)))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("misfit", [0.0, 1.0])
def test_a_live_study_decides_as_the_simulation_does(misfit: float, known: bool) -> None:
    """Sample by sample, before and after the model is rejected."""
    problem = partly_linear(12, 2, misfit, 0.4, "live", seed=3)
    scout, most = Scout(model="linear", noise="given" if known else "unknown"), 120
    result = ps.simulate(problem, scout, eps=0.3, delta=0.1, replicates=1, seed=5, max_samples=most)
    study = study_of(problem, known)
    play(study, problem, environment_stream(5), most)
    with study.log.reading() as replica:
        verdicts, basis = replica.session.verdicts(), replica.session.basis()
    np.testing.assert_array_equal(verdicts.counts, result.pulls[0])
    assert study.done == result.stopped[0]
    assert basis is not None
    assert basis.model_rejected == (misfit > 0)


def test_verdicts_are_withdrawn_and_the_table_says_why() -> None:
    problem = partly_linear(12, 2, 0.5, 0.4, "told", seed=3)
    study, noise = study_of(problem), np.random.default_rng(0)
    play(study, problem, noise, 5)
    table = study.verdicts()
    assert table.fit == FIT_OPEN
    assert "Verdicts wait until the measurements show that the contexts explain the means" in str(table)
    assert "means linear in the contexts, tested all the time" in str(table.guarantee)
    while study.verdicts().fit == FIT_OPEN:
        play(study, problem, noise, 1)
    table = study.verdicts()
    assert table.fit == FIT_REJECTED
    assert table.unexplained
    assert set(table.unexplained) <= {"metric 1", "metric 2"}
    why = f"The contexts do not explain the means of {' and '.join(table.unexplained)}: verdicts that rested on them"
    standing = study.standing()
    said = json.loads(standing.as_json())
    jsonschema.validate(said, schema())
    assert said["fit"] == {"state": "rejected", "unexplained": list(table.unexplained)}
    for text in (str(table), said["remark"], study.explain(problem.arms[0])):
        assert why in str(text)
    assert f"each option by its own measurements: {', '.join(table.unexplained)} not linear in the contexts" in str(
        table.guarantee
    )
    assert "means linear in the contexts" not in str(table.guarantee).replace("not linear in the contexts", "")
    before = [option["verdict"] for option in said["options"]]
    play(study, problem, noise, 1500)  # it goes on without the model
    assert study.done
    assert study.verdicts().fit == FIT_REJECTED
    assert before.count("undecided") > 0
    gaps = Simulation(*resolve("scout"), problem, 0.3, 0.1, 0, None).gaps
    for verdict, gap in zip(study.verdicts().verdicts, gaps.tolist(), strict=True):
        assert verdict == "dominated" if gap > 0.3 / 0.3 else verdict == "front" if gap == 0 else True


def test_verdicts_that_stood_are_withdrawn() -> None:
    """Data that contradict the model after all was decided by it: nothing that rested on it is left."""
    problem = partly_linear(12, 2, 0.0, 0.4, "fits", seed=3)
    study, noise = study_of(problem), np.random.default_rng(0)
    play(study, problem, noise, 1500)
    table = study.verdicts()
    assert study.done
    assert table.fit == FIT_HOLDS
    assert table.as_dict()["fit"] == {"state": "holds", "unexplained": []}
    k = table.verdicts.index("dominated")
    far = (10.0 + noise.standard_normal(30)).tolist()
    study.tell_frame({"arm": [problem.arms[k]] * 30, "metric 1": far, "metric 2": far})
    table = study.verdicts()
    assert table.fit == FIT_REJECTED
    assert table.verdicts[k] != "dominated"
    assert not study.done


@pytest.mark.parametrize("known", [True, False])
def test_practical_verdicts_wait_too(known: bool) -> None:
    """Many samples of an option without an interval are no sign that its numbers never vary."""
    problem = partly_linear(12, 2, 0.0, 0.4, "fits", seed=4)
    study = study_of(problem, known, "practical")
    play(study, problem, np.random.default_rng(0), 3000)
    assert study.done
    assert study.verdicts().fit == FIT_HOLDS


def test_without_spare_arms_nothing_waits() -> None:
    """As many contexts as dimensions, or two more: no test is possible, or next to none."""
    for K, d in ((3, 3), (5, 3)):
        x = np.random.default_rng(0).normal(size=(K, d))
        setup = Setup(K, 1, eps=np.ones(1), delta=0.1, sigma=np.ones(1), contexts=x, explained=True)
        assert Session(Scout(), setup).state.linear.held[0] == 0


def test_without_noise_one_arm_off_the_plane_is_enough() -> None:
    x = np.column_stack([np.ones(8), np.arange(8.0)])
    for off in (0.0, 1.0):
        means = x @ np.array([[1.0], [0.5]]) + off * np.where(np.arange(8) == 7, 1.0, 0.0)[:, None]
        problem = ps.problems.gaussian(means, 0.0, contexts=x)
        run = Simulation(*resolve(Scout(model="linear")), problem, 0.1, 0.1, 0, 200)
        replicate = Replicate(run, 0)
        replicate.advance(200)
        basis = replicate.basis()
        assert basis is not None
        assert replicate.stopped
        assert basis.model_rejected == (off > 0)
        assert replicate.verdicts().status.tolist() == [DOMINATED] * 7 + [FRONT]


def test_it_is_in_the_catalogue_and_in_the_audit() -> None:
    """False alarm of the row: at most 1e-4."""
    problem = ps.problems.load("misfit-60")
    assert len(problem.arms) == 60
    assert "misfit" in ps.problems.available()["misfit-60"]
    assert problem.contexts is not None
    plane = np.linalg.lstsq(problem.contexts, problem.means, rcond=None)[0]
    left = problem.means - problem.contexts @ plane
    assert 0.3 < left.std() / problem.means.std() < 0.5
    assert on_contexts.SHARE == scout_tested.FOR_FIT
    cases = families.cases(["misfit"], short=True)
    rows = list(measure.audit([measure.Contender(resolve("scout")[0])], cases, replicates=20))
    assert [row.verdict for row in rows] == [measure.KEPT]


def test_costly_arms_are_not_the_ones_that_are_measured_for_the_test() -> None:
    cost = np.array([1.0] * 6 + [50.0] * 2)
    state: Any
    x = np.random.default_rng(0).normal(size=(8, 2))
    setup = Setup(8, 1, eps=np.ones(1), delta=0.1, sigma=np.ones(1), contexts=x, explained=True, cost=cost)
    state, constants = Session(Scout(), setup).state.linear, Session(Scout(), setup).constants.linear
    state.pulls[:6] = 5
    assert scout_linear.least_measured(state, constants, np.zeros(8, np.int64)) < 6
