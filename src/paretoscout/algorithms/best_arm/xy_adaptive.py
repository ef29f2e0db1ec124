"""XY-adaptive: phases of XY-allocation, each for the arms that may still be best.

M. Soare, A. Lazaric, R. Munos: Best-arm identification in linear bandits, NeurIPS 2014, section 5. A phase ends when
the largest variance of a difference has fallen to a part alpha of what it was at the end of the phase before. It is
judged by its own samples alone, so that the narrow intervals of a fixed design hold; it begins with arms that span all
dimensions, so that least squares has a solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...kernels.arrays import BoolArray, FloatArray, IntArray
from ...kernels.compile import allocating_kernel, kernel
from ...kernels.decisions import DOMINATED, UNDECIDED, return_best
from ...kernels.design_for_differences import (
    GreedyDesign,
    estimate,
    extend_design,
    greedy_arm,
    invert,
    list_directions,
    new_design,
    variance,
    worst_variance,
)
from ...kernels.dispatch import NO_TICKET, Verdicts
from ...kernels.widths import repeated_design
from ..contract import Algorithm, Kernels, Settings, Setup
from ..ranges import setting
from ..registry import register
from .judging import best_arm_verdicts, keep_undecided, leader_of
from .linear_arms import BEST_ARM, contexts_of, spanning_arms
from .xy_static import PAPER


@dataclass(frozen=True)
class XYAdaptive(Settings):
    """Settings of XY-adaptive.

    alpha: to which part of its last value the largest variance falls in a phase.
    """

    alpha: float = setting(0.1, above=0.0, below=1.0)


class XYAdaptiveConstants(NamedTuple):
    contexts: FloatArray  # (K, d)
    spanning: IntArray  # (d,) arms whose contexts span all dimensions: every phase begins with them
    alpha: float
    eps: float
    sigma: float
    delta: float
    no_ticket: FloatArray = NO_TICKET


class XYAdaptiveState(NamedTuple):
    design: GreedyDesign  # of this phase
    right: FloatArray  # (d,) sum of x times outcome in this phase
    goal: FloatArray  # (1,) the largest variance at which this phase ends
    pulls: IntArray  # (K,) samples in all phases
    means: FloatArray  # (K,) estimates of the last phase
    radii: FloatArray  # (K,) of the last phase
    status: IntArray  # (K,)
    beaten_by: IntArray  # (K,)
    active: IntArray  # (K,) arms that may be best, ascending; the first counters[N_ACTIVE] entries
    counters: IntArray  # (3,) see below


PHASE, N_ACTIVE = 0, 1
N_SPANNING = 2  # how many of the spanning arms were sampled in this phase


def init(settings: XYAdaptive, setup: Setup) -> tuple[XYAdaptiveState, XYAdaptiveConstants]:
    """Start the first phase, with all arms."""
    contexts = contexts_of(setup, "xy-adaptive")
    K, d = contexts.shape
    constants = XYAdaptiveConstants(
        contexts=contexts,
        spanning=spanning_arms(contexts),
        alpha=settings.alpha,
        eps=float(setup.eps[0]),
        sigma=float(setup.known_sigma("xy-adaptive")[0]),
        delta=float(setup.delta),
    )
    state = XYAdaptiveState(
        design=new_design(contexts, alone=False),
        right=np.zeros(d),
        goal=np.array([settings.alpha / (d * (d + 1) + 1)]),  # the paper takes 1 / (d (d + 1) + 1) for the phase before
        pulls=np.zeros(K, np.int64),
        means=np.zeros(K),
        radii=np.full(K, np.inf),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        active=np.arange(K, dtype=np.int64),
        counters=np.array([1, K, 0], np.int64),
    )
    return state, constants


@kernel
def choose(
    state: XYAdaptiveState, constants: XYAdaptiveConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Return the spanning arms; then, of all arms, whoever makes the largest variance among active ones smallest."""
    spanned = state.counters[N_SPANNING]
    if spanned < constants.spanning.shape[0]:
        return constants.spanning[spanned], constants.no_ticket
    active = state.active[: state.counters[N_ACTIVE]]
    return greedy_arm(state.design, constants.contexts, 0.0, active, False), constants.no_ticket


@kernel
def update(
    state: XYAdaptiveState,
    constants: XYAdaptiveConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Add the sample; at the end of a phase, judge and begin the next one."""
    contexts, design, counters = constants.contexts, state.design, state.counters
    d = contexts.shape[1]
    state.pulls[arm] += 1
    for i in range(d):
        state.right[i] += contexts[arm, i] * outcome[0]
    if counters[N_SPANNING] < d:
        counters[N_SPANNING] += 1
        design.pulls[arm] += 1
        if counters[N_SPANNING] < d:
            return
        list_directions(design, contexts, 0.0, state.active[: counters[N_ACTIVE]], False)
    else:
        extend_design(design, contexts, arm)
    worst = worst_variance(design)
    if worst >= state.goal[0]:
        return
    judge(state, constants)
    if not done(state, constants):
        counters[PHASE] += 1
        counters[N_SPANNING] = 0
        state.goal[0] = constants.alpha * worst
        for i in range(d):
            state.right[i] = 0.0
        for k in range(contexts.shape[0]):
            design.pulls[k] = 0


@kernel
def width(state: XYAdaptiveState, constants: XYAdaptiveConstants, a: float) -> float:
    """Half the interval along a direction of variance a, in this phase."""
    return repeated_design(
        a, float(state.counters[PHASE]), constants.delta, constants.sigma, constants.contexts.shape[0]
    )


@kernel
def judge(state: XYAdaptiveState, constants: XYAdaptiveConstants) -> None:
    """Drop arms that are surely worse than another one; return the leader if it is surely within eps of the best."""
    contexts, counters, means, inverse = constants.contexts, state.counters, state.means, state.design.inverse
    invert(inverse, contexts, state.design.pulls, 0.0)  # without what rounding has added up to
    estimate(inverse, state.right, means)
    for k in range(contexts.shape[0]):
        state.radii[k] = width(state, constants, max(0.0, inverse.leverages[k]))
    active = state.active[: counters[N_ACTIVE]]
    leader = leader_of(active, means)
    for k in active:
        for j in active:
            lead = means[j] - means[k]
            if lead > 0.0 and lead >= width(state, constants, variance(inverse, contexts, j, k)):
                state.status[k] = DOMINATED
                state.beaten_by[k] = j
                break
    counters[N_ACTIVE] = keep_undecided(active, state.status)
    good_enough = True
    for k in active[: counters[N_ACTIVE]]:
        if k != leader:
            ahead = means[k] - means[leader] + width(state, constants, variance(inverse, contexts, k, leader))
            good_enough = good_enough and ahead <= constants.eps
    if good_enough:
        return_best(leader, state.status, state.beaten_by)


@kernel
def done(state: XYAdaptiveState, constants: XYAdaptiveConstants) -> bool:
    """Whether one arm was returned: then none is undecided."""
    return state.status[state.active[0]] != UNDECIDED


@allocating_kernel
def verdicts(state: XYAdaptiveState, constants: XYAdaptiveConstants) -> Verdicts:
    """Means and intervals of the last phase."""
    return best_arm_verdicts(state.status, state.beaten_by, state.means, state.radii, state.pulls)


ALGORITHM = Algorithm(
    name="xy-adaptive",
    summary="best arm by linear contexts: phases of xy-allocation, for the arms that may still be best",
    paper=PAPER,
    guarantee=BEST_ARM,
    guarantees=True,
    setting="linear contexts",
    one_metric=True,
    settings=XYAdaptive,
    init=init,
    kernels=(
        Kernels(
            state=XYAdaptiveState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            takes_linear=True,
            ranges={"counters": ("count", "some arms", "features")},
        ),
    ),
)

register(ALGORITHM)
