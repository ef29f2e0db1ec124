"""RAGE: phases of an optimal design for the arms that may still be best, each twice as accurate as the one before.

T. Fiez, L. Jain, K. Jamieson, L. Ratliff: Sequential experimental design for transductive linear bandits, NeurIPS 2019,
algorithm 1. A phase is judged by its own samples alone, so that the narrow intervals of a fixed design hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...kernels.arrays import BoolArray, FloatArray, IntArray
from ...kernels.compile import allocating_kernel, kernel
from ...kernels.decisions import DOMINATED, UNDECIDED, return_best
from ...kernels.design_for_differences import (
    Inverse,
    estimate,
    invert,
    new_inverse,
    optimal_shares,
    round_shares,
    variance,
)
from ...kernels.dispatch import NO_TICKET, Verdicts
from ...kernels.widths import repeated_design
from ..contract import Algorithm, Kernels, Settings, Setup
from ..ranges import setting
from ..registry import register
from .judging import best_arm_verdicts, keep_undecided, leader_of
from .linear_arms import BEST_ARM, contexts_of, spanning_arms

#: No phase has more samples than this: a number that is never reached, and that can still be counted.
MOST_SAMPLES = 1e15


@dataclass(frozen=True)
class RAGE(Settings):
    """Settings of RAGE.

    unit: about the largest gap there may be, in the metric's own unit; phase t finds gaps of unit / 2^t.
    rounding: how much of the accuracy may be lost where shares of samples become whole numbers.
    constants: "sound": phase t is wrong with probability at most 6 delta / (pi t)^2, which sums to delta; "published":
        delta / t^2, which sums to 1.64 delta.
    """

    unit: float = setting(1.0, above=0.0)
    rounding: float = setting(0.1, above=0.0)
    constants: str = setting("sound", choices=("sound", "published"))

    @property
    def sound(self) -> bool:
        """Whether the guarantee holds with these settings."""
        return self.constants == "sound"


class RAGEConstants(NamedTuple):
    contexts: FloatArray  # (K, d)
    spanning: IntArray  # (d,) arms whose contexts span all dimensions
    unit: float
    rounding: float
    eps: float
    sigma: float
    delta: float
    published: bool
    no_ticket: FloatArray = NO_TICKET


class RAGEState(NamedTuple):
    shares: FloatArray  # (K,) design of this phase
    best: FloatArray  # (K,) working space
    planned: IntArray  # (K,) samples of each arm in this phase
    left: IntArray  # (K,) how many of them are still to come
    inverse: Inverse
    right: FloatArray  # (d,) sum of x times outcome in this phase
    pulls: IntArray  # (K,) samples in all phases
    means: FloatArray  # (K,) estimates of the last phase
    radii: FloatArray  # (K,) of the last phase
    status: IntArray  # (K,)
    beaten_by: IntArray  # (K,)
    active: IntArray  # (K,) arms that may be best, ascending; the first counters[N_ACTIVE] entries
    counters: IntArray  # (3,) see below


PHASE, N_ACTIVE = 0, 1
CURSOR = 2  # the first arm with samples to come


def init(settings: RAGE, setup: Setup) -> tuple[RAGEState, RAGEConstants]:
    """Plan the first phase, with all arms: the same for all runs."""
    contexts = contexts_of(setup, "rage")
    K, d = contexts.shape
    constants = RAGEConstants(
        contexts=contexts,
        spanning=spanning_arms(contexts),
        unit=settings.unit / float(setup.divisors[0]),
        rounding=settings.rounding,
        eps=float(setup.eps[0]),
        sigma=float(setup.known_sigma("rage")[0]),
        delta=float(setup.delta),
        published=settings.constants == "published",
    )
    state = RAGEState(
        shares=np.zeros(K),
        best=np.zeros(K),
        planned=np.zeros(K, np.int64),
        left=np.zeros(K, np.int64),
        inverse=new_inverse(contexts),
        right=np.zeros(d),
        pulls=np.zeros(K, np.int64),
        means=np.zeros(K),
        radii=np.full(K, np.inf),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        active=np.arange(K, dtype=np.int64),
        counters=np.array([1, K, 0], np.int64),
    )
    plan(state, constants)
    return state, constants


@kernel
def accuracy(state: RAGEState, constants: RAGEConstants) -> float:
    """Up to what all differences of active arms are known at the end of this phase."""
    return constants.unit * 0.5 ** state.counters[PHASE]


@kernel
def width(state: RAGEState, constants: RAGEConstants, a: float) -> float:
    """Half the interval along a direction of variance a, in this phase."""
    t, K = float(state.counters[PHASE]), constants.contexts.shape[0]
    if constants.published:
        return constants.sigma * math.sqrt(2.0 * a * math.log(2.0 * K * K * t * t / constants.delta))
    return repeated_design(a, t, constants.delta, constants.sigma, K)


@kernel
def plan(state: RAGEState, constants: RAGEConstants) -> None:
    """Settle how often each arm is sampled in this phase."""
    contexts, n_active = constants.contexts, state.counters[N_ACTIVE]
    n = 1
    if n_active == 1:  # there is one arm in all
        state.shares[0] = 1.0
    else:
        worst = optimal_shares(
            state.shares, state.best, state.inverse, contexts, state.active[:n_active], constants.spanning
        )
        support = 0
        for share in state.shares:
            if share > 0.0:
                support += 1
        # rounding leaves each arm at least 1 - support / n of its share, and that is at least 1 / (1 + rounding)
        slack = 1.0 + constants.rounding
        ratio = width(state, constants, worst * slack) / accuracy(state, constants)
        needed = max(ratio * ratio, support * slack / constants.rounding)
        n = math.ceil(min(needed, MOST_SAMPLES))
    round_shares(state.shares, n, state.planned)
    for k in range(contexts.shape[0]):
        state.left[k] = state.planned[k]
    for i in range(contexts.shape[1]):
        state.right[i] = 0.0
    state.counters[CURSOR] = 0
    find_next(state)


@kernel
def find_next(state: RAGEState) -> None:
    """Move the cursor to an arm with samples to come, or beyond the last arm."""
    while state.counters[CURSOR] < state.left.shape[0] and state.left[state.counters[CURSOR]] == 0:
        state.counters[CURSOR] += 1


@kernel
def choose(
    state: RAGEState, constants: RAGEConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Return the first arm that lacks samples of this phase."""
    return state.counters[CURSOR], constants.no_ticket


@kernel
def update(
    state: RAGEState, constants: RAGEConstants, arm: int, ticket: FloatArray, outcome: FloatArray, observed: BoolArray
) -> None:
    """Add the sample; at the end of a phase, judge and plan the next one."""
    state.pulls[arm] += 1
    state.left[arm] -= 1
    for i in range(constants.contexts.shape[1]):
        state.right[i] += constants.contexts[arm, i] * outcome[0]
    find_next(state)
    if state.counters[CURSOR] == state.left.shape[0]:
        judge(state, constants)
        if not done(state, constants):
            state.counters[PHASE] += 1
            plan(state, constants)


@kernel
def judge(state: RAGEState, constants: RAGEConstants) -> None:
    """Drop arms that are surely worse than the leader; return it if it is surely within eps of the best."""
    contexts, counters, means = constants.contexts, state.counters, state.means
    invert(state.inverse, contexts, state.planned, 0.0)
    estimate(state.inverse, state.right, means)
    for k in range(contexts.shape[0]):
        state.radii[k] = width(state, constants, max(0.0, state.inverse.leverages[k]))
    active = state.active[: counters[N_ACTIVE]]
    leader = leader_of(active, means)
    for k in active:
        if k != leader and means[leader] - means[k] >= accuracy(state, constants):
            state.status[k] = DOMINATED
            state.beaten_by[k] = leader
    counters[N_ACTIVE] = keep_undecided(active, state.status)
    good_enough = True
    for k in active[: counters[N_ACTIVE]]:
        if k != leader:
            ahead = means[k] - means[leader] + width(state, constants, variance(state.inverse, contexts, k, leader))
            good_enough = good_enough and ahead <= constants.eps
    if good_enough:
        return_best(leader, state.status, state.beaten_by)


@kernel
def done(state: RAGEState, constants: RAGEConstants) -> bool:
    """Whether one arm was returned: then none is undecided."""
    return state.status[state.active[0]] != UNDECIDED


@allocating_kernel
def verdicts(state: RAGEState, constants: RAGEConstants) -> Verdicts:
    """Means and intervals of the last phase."""
    return best_arm_verdicts(state.status, state.beaten_by, state.means, state.radii, state.pulls)


ALGORITHM = Algorithm(
    name="rage",
    summary="best arm by linear contexts: phases of an optimal design, for the arms that may still be best",
    paper="Fiez, Jain, Jamieson, Ratliff: Sequential experimental design for transductive linear bandits, 2019",
    guarantee=BEST_ARM,
    guarantees=True,
    setting="linear contexts",
    one_metric=True,
    settings=RAGE,
    init=init,
    kernels=(
        Kernels(
            state=RAGEState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            takes_linear=True,
            ranges={"counters": ("count", "some arms", "arms")},
        ),
    ),
)

register(ALGORITHM)
