"""Outcomes that are held back: which of them count for whom, and what that saves while a trial is late."""

from __future__ import annotations

import math

import numpy as np
import pytest
from naive_scout import Array, NaiveScout
from numpy.typing import NDArray
from scipy.stats import binom
from test_scout_twin import Case, tabular_twin

import paretoscout as ps
from paretoscout.algorithms.scout import Scout
from paretoscout.algorithms.scout.ahead import (
    ahead_of,
    escape_ahead,
    judge_ahead,
    lacks_against_below,
    verdicts_ahead,
)
from paretoscout.algorithms.states import arrays_of
from paretoscout.errors import NotSupported
from paretoscout.kernels.decisions import DOMINATED, FRONT
from paretoscout.kernels.dispatch import Held
from paretoscout.session import Session
from paretoscout.study.replica import Replica

RNG = np.random.default_rng(7)
#: Evidence on a pair is a little below that of the twin, where it is from a table or a grid.
SLACK = 0.01
CASES = [
    Case("sigma known", RNG.normal(size=(5, 2)), 0.4, 0.5, 90, delta=0.3),
    Case("one metric", RNG.normal(size=(4, 1)), 0.4, 0.3, 80, delta=0.3),
    Case("no pilots", RNG.normal(size=(4, 2)), 0.4, 0.4, 60, delta=0.3, regret_weight=1.0),
    Case("normal", 3 * RNG.normal(size=(4, 2)), 0.5, 0.3, 80, delta=0.3, known=False),
    Case("sigma told of one", RNG.normal(size=(4, 2)), 0.4, [0.2, 0.3], 80, delta=0.3, known=[True, False]),
    Case(
        "bounds",
        np.array([[0.1, 0], [0.9, 0.7], [0.5, 0.8], [0.2, 0]]),
        0.3,
        0.05,
        300,
        delta=0.3,
        known=False,
        bounds=[[0, 1], [-0.5, 1]],
    ),
    Case("metrics missing", 2 * RNG.normal(size=(4, 2)), 0.4, 0.4, 90, delta=0.3, missing=0.2),
]


class Course:
    """Trials in the order of asking, by their definition: arm, outcome (nan: not measured), whether it is told."""

    def __init__(self, case: Case, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.case, K = case, len(case.means)
        self.arms = np.concatenate([np.repeat(np.arange(K), 3), rng.integers(0, K, case.rounds)])
        self.outcomes = np.array([case.outcome(int(arm), rng) for arm in self.arms])
        if case.missing:
            gone = rng.random(self.outcomes.shape) < case.missing
            gone[: 3 * K] = gone[gone.all(axis=1)] = False
            self.outcomes[gone] = np.nan
        n = len(self.arms)
        self.told = np.ones(n, bool)
        self.first = int(rng.integers(3 * K, 3 * K + case.rounds // 3))  # the first open trial of all
        self.told[self.first] = False
        self.told[self.first + 1 :][rng.random(n - self.first - 1) < 0.02] = False

    def session(self) -> Session:
        known = np.ravel(self.case.known).all()
        settings = Scout(regret_weight=self.case.regret_weight, noise="given" if known else "unknown")
        session = Session(settings, self.case.setup())
        values = np.nan_to_num(self.outcomes[: self.first])
        session.add_many(self.arms[: self.first], values, ~np.isnan(self.outcomes[: self.first]))
        return session

    def held(self) -> Held:
        outcomes = self.outcomes[self.first :]
        told = self.told[self.first :]
        observed = ~np.isnan(outcomes) & told[:, None]
        eras = np.zeros(len(told), np.int64)
        return Held(self.arms[self.first :], told, np.where(observed, outcomes, 0.0), observed, eras)

    def first_open(self, arm: int) -> int:
        """The number of the first open trial of an arm."""
        return int(min(np.flatnonzero(~self.told & (self.arms == arm)), default=len(self.arms)))

    def twin(self, session: Session, until: dict[int, int]) -> NaiveScout:
        """One that knows each arm's trials below a number; where noise is normal, below its first open one.

        What will be a pilot is no evidence: an arm that has none in what is settled says nothing.
        """
        twin = tabular_twin(self.case, session.constants)
        told = self.outcomes[self.told]
        for number, (arm, outcome) in enumerate(zip(self.arms, self.outcomes, strict=True)):
            first_open = self.first_open(int(arm))
            kinds = [twin.noise(metric) for metric in range(twin.L)]
            limits = [first_open if kind == "normal" else until.get(int(arm), 0) for kind in kinds]
            seen = np.where(number < np.maximum(limits, self.first), outcome, np.nan)
            if self.told[number] and not np.isnan(seen).all():
                twin.tell(int(arm), seen)
        twin.summarise()
        twin.values_seen = [len(set(column[~np.isnan(column)])) for column in told.T]
        return twin

    def escapes(self, session: Session, k: int, j: int, until: int) -> float:
        twin = self.twin(session, {k: until, j: until})
        evidence = [twin.evidence(k, j, metric, twin.eps[metric]) for metric in range(twin.L)]
        said = [each for each in evidence if each > 0]  # what is below is ranked by only
        return twin.joined(said) - math.log(twin.L) + twin.log_share(j)

    def against(self, session: Session, k: int, until: int, gone: NDArray[np.int64]) -> float:
        """The sum over all that have no open trial below a number."""
        in_time = {arm: until for arm in range(len(self.case.means)) if self.first_open(arm) >= until}
        twin = self.twin(session, in_time)
        alone = all(twin.noise(metric) == "normal" for metric in range(twin.L))
        rivals = [j for j in range(twin.K) if j != k and j not in gone and (alone or j in in_time)]
        terms = {j: min(twin.evidence(j, k, metric) for metric in range(twin.L)) for j in rivals}
        shares = twin.shares(k)
        return twin.joined([math.log(shares[j]) + term for j, term in terms.items() if term > 0])


def close_to(got: float, expected: float, exact: bool) -> bool:
    """Below 0 nothing is said, only ranked; of normal noise the least is found on a grid."""
    slack = SLACK if exact else 0.05 * (1 + abs(expected))
    return (got <= 0 and expected <= SLACK) or expected - slack <= got <= expected + 1e-6


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_evidence_is_that_of_the_trials_that_may_count(case: Case) -> None:
    decided = 0
    for seed in range(8):
        if seed > 1 and decided:
            break
        course = Course(case, seed)
        session, held = course.session(), course.held()
        state, constants = session.kernels.reserve(session.state, len(held.arms)), session.constants
        for metric in range(held.outcomes.shape[1]):  # which values there are everybody may know
            state.samples.n_seen[metric] = 6
        before = {name: array.copy() for name, array in arrays_of(state).items()}
        K, n = len(case.means), len(course.arms)
        ahead = ahead_of(state, held)
        open_at = [course.first_open(arm) for arm in range(K)]
        for k in range(K):
            for j in set(range(K)) - {k}:
                got = escape_ahead(state, constants, held, ahead, k, j)
                until = min(open_at[k], open_at[j])
                expected = max(course.escapes(session, k, j, limit) for limit in (course.first, until))
                enough = np.inf if constants.e_values else state.thresholds[k]  # no more need be worked out
                assert close_to(got, expected, constants.e_values) or min(got, expected) >= enough
            until = open_at[k]
            gone = np.flatnonzero(state.status == DOMINATED)
            lacks = lacks_against_below(state, constants, held, ahead, k, until - course.first)
            expected = course.against(session, k, until, gone)
            needed = state.thresholds[k]
            assert lacks <= 0 or expected < needed + SLACK or not constants.e_values
            assert lacks > 0 or expected >= needed - 1e-6
            if expected >= needed - 2.0 and constants.e_values:  # what makes no difference is left out
                assert abs(lacks - (needed - expected)) < 2 * SLACK
        shown = verdicts_ahead(state, constants, held)
        own = course.twin(session, dict(enumerate(open_at)))
        means = np.array([[own.known[k][metric].mean for metric in range(own.L)] for k in range(K)])
        np.testing.assert_allclose(shown.estimates, means, atol=1e-9)
        for name, array in arrays_of(state).items():
            if not name.startswith(("tree", "pilots.norms", "best", "series")):  # of which only what is counted counts
                np.testing.assert_array_equal(array, before[name], err_msg=name)
        judge_ahead(state, constants, held, -1)
        for k in np.flatnonzero((state.status != before["status"]) & (state.status == DOMINATED)).tolist():
            limits = {min(open_at[k], limit) for limit in [*open_at, n]}
            earlier = np.flatnonzero(before["status"] == DOMINATED)
            assert max(course.against(session, k, limit, earlier) for limit in limits) >= state.thresholds[k] - 1e-6
            decided += 1
        for k in np.flatnonzero((state.status != before["status"]) & (state.status == FRONT)).tolist():
            for j in np.flatnonzero((state.status != DOMINATED) & (np.arange(K) != k)).tolist():
                both = min(open_at[k], open_at[j])
                evidence = max(course.escapes(session, k, j, limit) for limit in (course.first, both))
                assert evidence >= state.thresholds[k] - 1e-6
            decided += 1
    assert decided, "something is decided by what is held back"


def likelihoods(runs: int, trials: int, rivals: int, seed: int) -> Array:
    """(1 + rivals, runs, trials): logs of products up to each trial, of an arm and its rivals, which are all the same.

    Such a process is tight: it exceeds 1 / alpha with a probability just below alpha.
    """
    rng, rate = np.random.default_rng(seed), 0.15
    arm = rng.integers(0, rivals + 1, (runs, trials))
    of_trial = rate * rng.standard_normal((runs, trials)) - rate**2 / 2
    return np.array([np.where(arm == k, of_trial, 0.0).cumsum(axis=1) for k in range(rivals + 1)])


def test_one_place_for_both_arms_keeps_the_promise_and_a_place_for_each_does_not() -> None:
    """Somebody who knows all outcomes decides which trials are late. False alarm: below 1e-5 for each of the first two.

    Each arm up to its own first open trial gives the product of two largest values: 0.1 (1 + log 10) = 0.33 for 0.1.
    """
    runs, alpha = 1000, 0.1
    cumulated = likelihoods(runs, 2000, 4, seed=1)
    most = binom.ppf(1 - 1e-5, runs, alpha)
    pair = cumulated[0] + cumulated[1]
    assert (pair.max(axis=1) >= -math.log(alpha)).sum() <= most
    one_place = np.logaddexp.reduce(cumulated[0] + cumulated[1:] - math.log(4))
    assert (one_place.max(axis=1) >= -math.log(alpha)).sum() <= most
    own_place = cumulated[0].max(axis=1).clip(0) + cumulated[1].max(axis=1).clip(0)
    assert (own_place >= -math.log(alpha)).sum() > 1.5 * most


def late_study(**how: object) -> tuple[ps.Study, ps.Trial]:
    """Of four options the first is late with one trial, and two others are far apart."""
    study = ps.Study(
        ["late", "good", "bad", "middling"],
        [ps.Metric("score", eps=0.3)],
        sigma=1.0,
        storage="memory",
        goal="front",
        lease=1e6,
        **how,  # type: ignore[arg-type]
    )
    means = {"late": 0.0, "good": 3.0, "bad": -3.0, "middling": 0.0}
    rng = np.random.default_rng(3)
    late = None
    for number in range(60):
        trial = study.ask(arm=study.arms[number % 4])
        if number == 8:
            late = trial
        else:
            study.tell(trial, {"score": rng.normal(means[trial.arm], 1.0)})
    assert late is not None
    return study, late


def test_a_late_trial_holds_back_only_what_hangs_on_its_option() -> None:
    study, late = late_study()
    assert study.counts()["waiting"] == 51
    verdicts = dict(zip(study.verdicts().arms, study.verdicts().verdicts, strict=True))
    assert verdicts == {"late": "undecided", "good": "undecided", "bad": "dominated", "middling": "dominated"}
    pair = study.standing().pair("bad", "good")
    assert pair.differences[0].low is not None
    assert pair.differences[0].low > 0, "what proves it is shown"
    assert study.verdicts().counts.sum() == 8, "the rest does not count yet"
    again = Replica.load(study.spec, study.log.copy().dump())
    assert again.dump() == study.log.copy().dump()
    assert again.verdicts().verdicts == study.verdicts().verdicts
    np.testing.assert_array_equal(again.verdicts().estimates, study.verdicts().estimates)
    study.tell(late, {"score": 0.0})
    assert study.counts()["waiting"] == 0
    assert study.verdicts().counts.sum() == 60
    assert study.done


@pytest.mark.parametrize("regret_weight", [0.5, 1.0])
def test_nobody_is_accepted_before_there_is_anything_to_compare(regret_weight: float) -> None:
    """Only one option has trials that wait, and the algorithm has not looked at the others yet."""
    study = ps.Study(
        ["a", "b", "c"],
        [ps.Metric("score", eps=0.3)],
        sigma=1.0,
        storage="memory",
        goal="front",
        algorithm=Scout(regret_weight=regret_weight),
    )
    for arm in "abc":
        study.tell(study.ask(arm=arm), {"score": 0.0})
    study.ask(arm="a")
    for _ in range(3):
        study.tell(study.ask(arm="a"), {"score": 9.0})
    assert study.verdicts().verdicts == ("undecided",) * 3


def test_a_table_that_waits_holds_back_what_comes_after_it() -> None:
    study, _ = late_study()
    before = study.verdicts().estimates
    study.tell_frame({"arm": ["middling"] * 3, "score": [9.0, 9.0, 9.0]})
    study.tell(study.ask(arm="good"), {"score": 9.0})
    np.testing.assert_array_equal(study.verdicts().estimates, before)


def naive_held(replica: Replica) -> Held | None:
    """What is held back, put together anew: of each trial from the first open one on, as far as a table."""
    rows = []
    for number in sorted({*replica.open, *replica.waiting}):
        waits = replica.waiting.get(number)
        if waits is not None and waits.table:
            break
        arm = replica.open[number].arm if waits is None else waits.arms[0]
        era = sum(event < number for _, event in replica.looks)
        rows.append((replica.place[arm], waits is not None, [np.nan] if waits is None else waits.values[0], era))
    if not any(told for _, told, _, _ in rows):
        return None
    arms, told, values, eras = (np.array(column) for column in zip(*rows, strict=True))
    outcomes, observed = replica._for_session(values.astype(float))
    return Held(arms, told, outcomes, observed, eras)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_held_back_is_kept_up_event_by_event(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens: told, in parts, failed, lapsed, given up, a table, options that come and go."""
    seen = []
    hold = Replica._hold

    def compared(replica: Replica, arm: int | None = None) -> None:
        kept, anew = replica._held(), naive_held(replica)
        for one, other in zip(kept or (), anew or (), strict=True):
            np.testing.assert_array_equal(one, other)
        seen.append(0 if kept is None else len(kept.arms))
        hold(replica, arm)

    monkeypatch.setattr(Replica, "_hold", compared)
    rng, now = np.random.default_rng(seed), [0.0]
    study = ps.Study(
        ["a", "b", "c", "d"],
        {"score": "max"},
        storage="memory",
        sigma=1.0,
        lease=50.0,
        give_up=80.0,
        clock=lambda: now[0],
    )
    asked: list[ps.study.Trial] = []
    for step in range(250):
        now[0] += 1.0
        kind = rng.random()
        if kind < 0.4:
            asked += study.ask(int(rng.integers(1, 5)))
        elif kind < 0.85 and asked:
            trial = asked.pop(int(rng.integers(len(asked))))
            study.tell(trial, {"score": float(rng.normal())})
        elif kind < 0.92 and study.open:
            study.fail(study.open[int(rng.integers(len(study.open)))])
        elif kind < 0.95:
            study.tell_frame({"arm": ["a", "b"], "score": rng.normal(size=2)})
        elif step % 5 == 0:
            study.add_arms([f"new {step}"], looked=bool(step % 2))
        elif len(study.arms) > 2:
            study.withdraw(study.arms[-1], looked=False)
    assert max(seen) > 20


def test_only_scout_judges_by_what_is_held_back() -> None:
    session = Session("multi-pfi", CASES[0].setup())
    held = Course(CASES[0], 0).held()
    with pytest.raises(NotSupported, match="'multi-pfi' cannot judge by outcomes that are held back"):
        session.hold(held)
    session.hold(None)
