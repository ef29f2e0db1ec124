"""Arms that were picked after looking at outcomes: what was seen before says nothing of pairs with them."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom
from test_doors import row_of
from test_scout_twin import Case, tabular_twin

import paretoscout as ps
from paretoscout.algorithms.contract import RESERVE, Setup
from paretoscout.algorithms.scout import Scout
from paretoscout.algorithms.scout.pairs import rows_of
from paretoscout.algorithms.scout.pilots import THERE_WHEN_IT_CAME
from paretoscout.algorithms.scout.tabular import IF_DOUBTFUL, IF_LATER, TO_ESCAPE, escape, proven_pair
from paretoscout.audit import doors
from paretoscout.audit.measure import KEPT
from paretoscout.errors import InvalidInput, NotSupported
from paretoscout.session import Session
from paretoscout.study.replica import Replica

RNG = np.random.default_rng(11)
#: With which addition each arm comes; the second and the third are after looking.
ENTERED, LOOKED = [0, 0, 1, 2, 2, 3], [0, 0, 0, 1, 1, 2]
CASES = [
    Case("sigma known", RNG.normal(size=(6, 2)), 0.4, 0.5, 150, delta=0.3, entered=ENTERED),
    Case("normal", 3 * RNG.normal(size=(6, 2)), 0.5, 0.3, 150, delta=0.3, entered=ENTERED, known=False),
    Case("bounds", RNG.random((6, 1)), 0.3, 0.1, 200, delta=0.3, entered=ENTERED, known=False, bounds=[[0, 1]]),
]


def era_of(i: int, j: int) -> int:
    """By its definition: the addition after looking with which the later one of the two came; 0: it was none."""
    later = i if ENTERED[i] > ENTERED[j] else j
    return LOOKED[later]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_pairs_with_later_arms_count_what_was_asked_since(case: Case) -> None:
    setup = case.setup()
    setup = Setup(**{**vars(setup), "looked": np.array(LOOKED)})
    session = Session(Scout(noise="given" if case.known is True else "unknown"), setup)
    rng, K = np.random.default_rng(5), len(LOOKED)
    history = []  # arm, outcome, after how many additions after looking it was asked for
    for number in range(case.rounds):
        addition = min(3, 4 * number // case.rounds)
        arm = int(rng.choice([k for k in range(K) if ENTERED[k] <= addition]))
        era = max(0, addition - 1)
        history.append((arm, case.outcome(arm, rng), era))
        session.set_era(era)
        session.add(*history[-1][:2])
    state, constants = session.state, session.constants
    pilots = {arm: number for number, (arm, _, _) in reversed(list(enumerate(history)))}
    for i in range(K):
        for j in set(range(K)) - {i}:
            twin = tabular_twin(case, constants)
            for number, (arm, outcome, era) in enumerate(history):
                if era >= era_of(i, j) or pilots[arm] == number:
                    twin.tell(arm, outcome)
            twin.summarise()
            twin.values_seen = [len(history)] * twin.L
            samples, of_i, _ = rows_of(state, constants, i, j)
            for metric in range(twin.L):
                assert samples.counts[of_i, metric] == twin.known[i][metric].n
                expected = twin.evidence(i, j, metric, twin.eps[metric])
                got = proven_pair(state, constants, i, j, metric, float(twin.eps[metric]), np.inf)
                close = 0.05 * (1 + abs(expected)) if twin.noise(metric) == "normal" else 0.004
                assert (got <= 0 and expected <= 0.004) or expected - close <= got <= expected + 1e-6
            said = [twin.evidence(i, j, metric, twin.eps[metric]) for metric in range(twin.L)]
            share = 0.025 / 2 ** (ENTERED[j] - ENTERED[i]) if LOOKED[j] and ENTERED[j] > ENTERED[i] else 0.95
            expected = twin.joined([each for each in said if each > 0]) - math.log(twin.L) + math.log(share)
            got = escape(state, constants, i, j, math.inf)
            assert got <= expected + 1e-6 or expected <= 0.0
            assert got >= expected - 0.06 * (1 + abs(expected))


def test_all_that_is_spent_on_an_arm_is_at_most_its_share() -> None:
    """If it is optimal: by all that may eliminate it. If not: by the one it must not escape. And, for both, by arms that
    came after looking or are doubtful, which it may have to escape."""
    additions = [0.5**r for r in range(1, 60)]
    others = IF_LATER * sum(additions) + IF_DOUBTFUL
    assert THERE_WHEN_IT_CAME + RESERVE * sum(additions) + others <= 1.0 + 1e-12
    assert TO_ESCAPE + others <= 1.0 + 1e-12


def made() -> ps.Study:
    return ps.Study(
        ["a", "b"], [ps.Metric("score", eps=0.5)], sigma=1.0, storage="memory", goal="front", seed=1, lease=1e9
    )


def test_a_study_takes_options_after_looking() -> None:
    study, rng = made(), np.random.default_rng(2)
    for number in range(40):
        trial = study.ask(arm="ab"[number % 2])
        study.tell(trial, {"score": rng.normal({"a": 0.0, "b": 3.0}[trial.arm], 1.0)})
    assert study.done
    late = study.ask(arm="b")
    study.add_arms(["new"])
    assert not study.done
    assert dict(zip(study.arms, study.verdicts().verdicts, strict=True))["a"] == "dominated", "of those two all counts"
    assert "options added after looking: new" in str(study.verdicts().guarantee)
    assert "without looking" not in str(study.verdicts().guarantee)
    study.tell(late, {"score": 100.0})  # asked for before: no evidence on pairs with the new one
    for _ in range(8):
        study.tell(study.ask(arm="new"), {"score": rng.normal(3.0, 1.0)})
    pair = study.standing().pair("new", "b").differences[0]
    assert (pair.value, pair.low, pair.high) == (None, None, None), "b was not measured since"
    while not study.done:
        trial = study.ask()
        study.tell(trial, {"score": rng.normal({"a": 0.0, "b": 3.0, "new": 3.0}[trial.arm], 1.0)})
    assert study.front() == ["b", "new"]
    log = study.log.copy()
    assert Replica.load(study.spec, log.dump()).dump() == log.dump()
    events = list(study.storage.events(study.name))
    again = Replica(study.spec)
    for event in events:
        again.apply(event, lambda number: events[:number])
    assert again.dump() == log.dump()
    study.withdraw("a")
    with pytest.raises(NotSupported, match="withdrawn cannot be added after looking at outcomes"):
        study.add_arms(["a"])
    with pytest.raises(InvalidInput, match="looked of a setup"):
        Setup(2, 1, eps=np.ones(1), delta=0.1, sigma=np.ones(1), looked=np.array([0, 1]))


@pytest.mark.parametrize("told", [doors.SIGMA, doors.NOTHING])
def test_an_option_added_when_another_looks_bad(told: str) -> None:
    """All are the same. 15 runs at delta 0.1: a valid study is called broken with probability below 1e-4."""
    options = doors.identical(told, uneven=False, K=4, L=2, eps=1.5)
    row = row_of(partial(doors.added_after_looking, options, 2, most=400), replicates=15)
    assert row.verdict == KEPT


def test_why_what_was_seen_before_does_not_count() -> None:
    """Somebody looks in which of 20 metrics an option had bad luck, and adds one that is equal there and better elsewhere.

    Products of likelihoods, which are tight, at alpha 0.1, 1000 runs. With all samples they exceed 1 / alpha far more
    often than that; with those after the addition they do not. False alarm of the latter: below 1e-5.
    """
    rng, rate, runs, alpha = np.random.default_rng(4), 0.15, 1000, 0.1
    seen = (rate * rng.standard_normal((runs, 100, 20)) - rate**2 / 2).sum(axis=1).max(axis=1)
    since = (rate * rng.standard_normal((runs, 2000)) - rate**2 / 2).cumsum(axis=1).max(axis=1).clip(0)
    most = binom.ppf(1 - 1e-5, runs, alpha)
    assert (since >= -math.log(alpha)).sum() <= most
    assert (seen + since >= -math.log(alpha)).sum() > 3 * most
