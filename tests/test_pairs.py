"""What is said of a pair of arms: it agrees with the verdicts, holds as often as it says, and names who matters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from paretoscout.algorithms import Scout, Setup
from paretoscout.algorithms.scout import tabular as scout_tabular
from paretoscout.algorithms.scout.pairs import shares_against
from paretoscout.algorithms.scout.tree import prepare
from paretoscout.algorithms.states import copy_state
from paretoscout.errors import InvalidInput
from paretoscout.kernels.decisions import DOMINATED, DOUBTFUL, FRONT, GONE, UNDECIDED
from paretoscout.session import Session

Array = npt.NDArray[np.float64]

MEANS = np.array([[0.9, 0.1], [0.6, 0.65], [0.3, 0.25], [0.55, 0.05]])
CONTEXTS = np.array(
    [[1.0, 0.9, 0.1], [1.0, 0.6, 0.6], [1.0, 0.3, 0.2], [1.0, 0.1, 0.8], [1.0, 0.2, 0.5], [1.0, 0.5, 0.1]]
)
LINEAR = CONTEXTS @ np.array([[0.1, 0.0], [1.0, 0.1], [0.1, 0.9]])
#: Of evidence that is found by Newton's method and that ends short of the minimum.
ROUNDING = 1e-7


class Case(NamedTuple):
    scout: Scout = Scout()
    means: Array = MEANS
    sigma: float | None = 0.3
    eps: float = 0.1
    delta: float = 0.1
    bounds: tuple[float, float] | None = None  # each outcome is 0 or 1
    contexts: Array | None = None
    most: int = 4000

    @property
    def setup(self) -> Setup:
        K, L = self.means.shape
        return Setup(
            K,
            L,
            eps=np.full(L, self.eps),
            delta=self.delta,
            sigma=None if self.sigma is None else np.full((K, L), self.sigma),
            bounds=None if self.bounds is None else np.tile(self.bounds, (L, 1)),
            contexts=self.contexts,
            explained=self.contexts is not None,
        )

    def outcome(self, arm: int, noise: np.random.Generator) -> Array:
        if self.bounds is not None:
            return (noise.random(self.means.shape[1]) < self.means[arm]).astype(float)
        return np.asarray(self.means[arm] + (self.sigma or 0.3) * noise.standard_normal(self.means.shape[1]))

    def rounds(self, seed: int) -> Iterator[Session]:
        """Run, and yield the session after every round."""
        session, noise = Session(self.scout, self.setup, seed), np.random.default_rng(seed)
        while not session.done and session.asked < self.most:
            question = session.ask()
            session.tell(question, self.outcome(question.arm, noise))
            yield session


UNKNOWN = Scout(noise="unknown")
CASES = {
    "sigma": Case(),
    "one metric": Case(means=MEANS[:, :1]),
    "three metrics": Case(means=np.column_stack([MEANS, MEANS.sum(axis=1)])),
    "without a pilot": Case(Scout(regret_weight=0.96)),
    "unknown noise": Case(UNKNOWN, sigma=None),
    "bounds": Case(UNKNOWN, sigma=None, bounds=(0.0, 1.0)),
    "linear": Case(Scout(model="linear"), LINEAR, contexts=CONTEXTS),
    "linear, unknown noise": Case(Scout(model="linear", noise="unknown"), LINEAR, sigma=None, contexts=CONTEXTS),
    "robust": Case(Scout(model="robust", misfit=0.02), LINEAR, contexts=CONTEXTS),
    "robust, no misfit": Case(Scout(model="robust"), LINEAR, contexts=CONTEXTS),
}


def status_of(session: Session) -> npt.NDArray[np.int64]:
    return session.verdicts().status


def beats(session: Session, k: int, j: int, rounding: float) -> bool:
    return bool((session.compared(k, j).low > rounding).all())


def escapes(session: Session, k: int, j: int, rounding: float) -> bool:
    return bool((session.compared(k, j).high <= session.setup.eps + rounding).any())


def rivals(session: Session, k: int) -> list[int]:
    """The arms that k has to escape."""
    status = status_of(session)
    return [j for j in range(len(status)) if j != k and status[j] != DOMINATED]


def says_what_is_decided(session: Session, k: int) -> None:
    status = status_of(session)[k]
    if status == DOMINATED:
        named = session.nearest(k)
        assert sum(share for _, share in named) == pytest.approx(1.0)
        assert [share for _, share in named] == sorted((share for _, share in named), reverse=True)
        alone = [j for j, _ in named if beats(session, k, j, -ROUNDING)]
        assert len(named) > 1 or alone == [named[0][0]]
    elif status == FRONT:
        assert all(escapes(session, k, j, ROUNDING) for j in rivals(session, k))


def says_what_is_open(session: Session, k: int) -> None:
    means = session.verdicts().estimates
    # with contexts, elimination is left to the arms that nobody beats by the estimates
    leaders = [j for j in range(len(means)) if not (means > means[j]).all(axis=1).any() and j != k]
    assert not any(beats(session, k, j, ROUNDING) for j in leaders)
    assert not all(escapes(session, k, j, -ROUNDING) for j in rivals(session, k))


@pytest.mark.parametrize("name", CASES)
def test_the_interval_says_what_a_verdict_says(name: str) -> None:
    """In the round in which an arm gets its verdict the pairs that it rests on show it."""
    decided = set()
    for seed in range(2):
        before = np.full(len(CASES[name].means), UNDECIDED)
        for session in CASES[name].rounds(seed):
            status = status_of(session)
            for k in np.flatnonzero((status != before) & (status != UNDECIDED)):
                says_what_is_decided(session, int(k))
                decided.add(int(status[k]))
            before = status
    assert decided == {FRONT, DOMINATED}


@pytest.mark.parametrize("name", CASES)
def test_the_interval_says_no_more_than_a_verdict(name: str) -> None:
    """Judged after every round, without waiting: what pairs show right before a verdict, and right after it."""
    session = earlier = None
    for session in CASES[name].rounds(seed=3):
        session.judge_again()
        status = status_of(session)
        if earlier is not None and (status != status_of(earlier)).any():
            for moment in (earlier, session):
                for k in np.flatnonzero(status_of(moment) != status_of(session if moment is earlier else earlier)):
                    if status_of(moment)[k] == UNDECIDED:
                        says_what_is_open(moment, int(k))
                    else:
                        says_what_is_decided(moment, int(k))
        earlier = Session(CASES[name].scout, CASES[name].setup)
        earlier.state = copy_state(session.state)
    assert session is not None
    assert (status_of(session) != UNDECIDED).any()


@pytest.mark.parametrize("name", ["sigma", "unknown noise", "bounds"])
def test_it_is_narrower_than_the_sum_of_two_radii(name: str) -> None:
    case = CASES[name]
    session, noise = Session(case.scout, case.setup), np.random.default_rng(5)
    for _ in range(100):
        for arm in range(len(case.means)):
            session.add(arm, case.outcome(arm, noise))
    verdicts = session.verdicts()
    for k in range(len(case.means)):
        for j in set(range(len(case.means))) - {k}:
            lead, low, high, own = session.compared(k, j)
            radii = verdicts.radii[k] + verdicts.radii[j]
            assert own
            assert np.allclose(lead, verdicts.estimates[j] - verdicts.estimates[k])
            assert (lead - radii < low).all()
            assert (low < lead).all()
            assert (lead < high).all()
            assert (high < lead + radii).all()


@pytest.mark.parametrize("name", ["sigma", "unknown noise", "bounds", "linear", "robust"])
def test_the_interval_holds_as_often_as_it_says(name: str) -> None:
    """All metrics of one pair, ten looks a run, at delta 0.1; with linear means all pairs. It fails in at most delta of runs.

    40 runs: more failures than the limit (15) have probability below 1e-6 if that is so.
    """
    case, n_runs, missed = CASES[name], 40, 0
    K = len(case.means)
    pairs = [(k, j) for k in range(K) for j in range(K) if j != k] if name == "linear" else [(0, 1)]
    for seed in range(n_runs):
        session, noise, right = Session(case.scout, case.setup), np.random.default_rng((seed, 7)), True
        for n in range(1, 41):
            for arm in range(K):
                session.add(arm, case.outcome(arm, noise))
            for k, j in pairs if n % 4 == 0 else []:
                _, low, high, _ = session.compared(k, j)
                difference = case.means[j] - case.means[k]
                right = right and bool(((low <= difference) & (difference <= high)).all())
        missed += not right
    assert missed <= binom.ppf(1 - 1e-6, n_runs, case.delta)


def test_rivals_that_suffice_together_are_named_with_their_shares() -> None:
    """Two arms that are alike, and both ahead of a third: together they prove it first."""
    session = Session(Scout(regret_weight=1.0), Case(means=np.zeros((3, 2)), sigma=1.0).setup)
    for _ in range(1000):
        for arm, value in enumerate([0.0, 0.8, 0.8]):
            session.add(arm, [value, value])
        session.judge_again()
        if session.verdicts().status[0] == DOMINATED:
            break
    assert np.allclose(session.nearest(0), [(1, 0.5), (2, 0.5)])
    assert not beats(session, 0, 1, ROUNDING)  # neither does so alone
    for _ in range(20):
        for arm, value in enumerate([0.0, 0.8, 0.8]):
            session.add(arm, [value, value])
    assert session.nearest(0) == [(session.verdicts().rival[0], 1.0)]
    assert beats(session, 0, session.nearest(0)[0][0], 0.0)


def test_the_shares_are_those_of_the_sum_that_eliminates() -> None:
    """Arms that came at three times, with and without pilots."""
    noise = np.random.default_rng(2)
    for weight in (0.5, 1.0):
        setup = Setup(
            5, 2, eps=np.array([0.1, 0.1]), delta=0.1, sigma=np.full((5, 2), 0.3), entered=np.array([0, 0, 0, 1, 2])
        )
        session = Session(Scout(regret_weight=weight), setup)
        means = np.array([[0.0, 0.0], [0.5, 0.5], [0.6, 0.4], [0.4, 0.6], [0.5, 0.4]])
        for _ in range(15):
            for arm in range(5):
                session.add(arm, means[arm] + 0.3 * noise.standard_normal(2))
        state, constants = session.state, session.constants
        state.status[:] = UNDECIDED
        prepare(state.tree, state.samples, constants.model, 0)
        terms = [
            np.log(share) + min(scout_tabular.proven_pair(state, constants, j, 0, i, 0.0, np.inf) for i in (0, 1))
            for j, share in enumerate(shares_against(state, constants, 0))
            if j > 0
        ]
        assert scout_tabular.against(state, constants, 0) == pytest.approx(np.logaddexp.reduce(terms), abs=0.01)


@pytest.mark.parametrize("name", CASES)
def test_the_nearest_rival_is_the_one_that_stands_in_the_way(name: str) -> None:
    """Where k escapes all rivals but one, that is the nearest; and it changes nothing to ask for it."""
    hangs_on_one, look_at = 0, 10.0
    for session in chain(CASES[name].rounds(seed=1), CASES[name].rounds(seed=2), CASES[name].rounds(seed=3)):
        look_at = 10.0 if session.asked == 1 else look_at
        if session.asked == 1:
            assert session.nearest(0) == []
        if session.asked < look_at:
            continue
        look_at *= 1.2
        written = session.dump()
        for k in np.flatnonzero(status_of(session) != DOMINATED).tolist():
            in_the_way = [j for j in rivals(session, k) if not escapes(session, k, j, 0.0)]
            named = session.nearest(k)
            if len(in_the_way) == 1:
                assert named == [(in_the_way[0], 1.0)]
                hangs_on_one += 1
        assert session.dump() == written
    assert hangs_on_one > 0


def test_who_left_is_no_rival_and_who_is_doubtful_is_harder_to_escape() -> None:
    session = list(CASES["sigma"].rounds(seed=0))[-1]
    assert session.nearest(3)[0][0] in (0, 1)
    sure = session.compared(0, 1)
    session.set_presence(1, DOUBTFUL)
    session.judge_again()
    doubtful = session.compared(0, 1)
    assert (doubtful.high > sure.high).all()
    assert (doubtful.low == sure.low).all()
    session.set_presence(1, GONE)
    session.judge_again()
    assert all(j != 1 for k in (0, 2, 3) for j, _ in session.nearest(k))
    assert session.nearest(1) == []


def test_what_is_not_measured_is_not_compared() -> None:
    session = Session("scout", Case().setup)
    lead, low, high, _ = session.compared(0, 1)
    assert np.isnan(lead).all()
    assert (low == -np.inf).all()
    assert (high == np.inf).all()
    assert session.nearest(0) == []
    session = Session(UNKNOWN, CASES["unknown noise"].setup)
    for arm in range(4):
        for _ in range(50):
            session.add(arm, [float(arm), float(arm)])
    lead, low, high, _ = session.compared(0, 1)  # numbers that never vary do not look like noise
    assert lead.tolist() == [1.0, 1.0]
    assert (low == -np.inf).all()
    assert (high == np.inf).all()


def test_without_noise_there_is_nothing_between() -> None:
    session = Session(Scout(), Case(sigma=0.0).setup)
    for arm, means in enumerate(MEANS):
        for _ in range(2):
            session.add(arm, means)
    lead, low, high, _ = session.compared(3, 0)
    assert np.allclose(lead, MEANS[0] - MEANS[3])
    assert np.allclose(low, lead)
    assert np.allclose(high, lead)


def test_arms_with_equal_contexts_differ_by_their_misfits_only() -> None:
    contexts = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    case = Case(Scout(model="linear"), contexts @ np.ones((2, 2)), contexts=contexts)
    session = list(case.rounds(seed=0))[-1]
    assert np.array(session.compared(0, 1)[:3]).tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize("algorithm", ["multi-pfi", "uniform"])
def test_others_are_compared_by_their_radii(algorithm: str) -> None:
    case = Case()
    setup = Setup(4, 2, eps=np.full(2, 0.1), delta=0.1, sigma=np.full((4, 2), 0.1), budget=400)
    session, noise = Session(algorithm, setup), np.random.default_rng(0)
    assert np.isnan(session.compared(0, 1).lead).all()
    while not session.done and session.asked < 400:
        question = session.ask()
        session.tell(question, case.outcome(question.arm, noise))
    verdicts = session.verdicts()
    lead, low, high, own = session.compared(0, 1)
    assert not own
    assert np.allclose(lead, verdicts.estimates[1] - verdicts.estimates[0])
    assert np.allclose(high, lead + verdicts.radii[0] + verdicts.radii[1])
    assert np.allclose(low, lead - verdicts.radii[0] - verdicts.radii[1])
    assert session.nearest(0) == [(1, 1.0)]
    assert session.nearest(2) == [(1, 1.0)]


def test_one_arm_has_no_rival() -> None:
    for algorithm in ("scout", "multi-pfi"):
        session = Session(algorithm, Case(means=MEANS[:1]).setup)
        assert session.nearest(0) == []


@pytest.mark.parametrize("pair", [(0, 0), (0, 4), (-1, 0), (0, 1.5)])
def test_a_pair_is_two_arms(pair: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidInput, match="arm"):
        Session("scout", Case().setup).compared(*pair)
