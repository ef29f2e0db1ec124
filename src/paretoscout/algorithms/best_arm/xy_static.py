"""G- and XY-allocation: a design that ignores the outcomes, until one arm is surely best.

M. Soare, A. Lazaric, R. Munos: Best-arm identification in linear bandits, NeurIPS 2014, section 4. The next arm is the
one that makes the largest variance of a mean (G), or of a difference of two means (XY), smallest. Since outcomes do not
decide whom to sample, least squares has the narrow intervals of a fixed design.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...kernels.arrays import BoolArray, FloatArray, IntArray
from ...kernels.compile import allocating_kernel, kernel
from ...kernels.decisions import UNDECIDED, return_best
from ...kernels.design_for_differences import (
    GreedyDesign,
    Inverse,
    add_sample,
    estimate,
    extend_design,
    greedy_arm,
    invert,
    list_directions,
    new_design,
    new_inverse,
    variance,
)
from ...kernels.dispatch import NO_TICKET, Verdicts
from ...kernels.widths import repeated_design, soare_design
from ..contract import Algorithm, Kernels, Settings, Setup
from ..ranges import setting
from ..registry import register
from .judging import best_arm_verdicts
from .linear_arms import BEST_ARM, contexts_of, shift_of


@dataclass(frozen=True)
class GAllocation(Settings):
    """Settings of G-allocation.

    ridge: the design starts from this times the unit matrix, in units of the largest squared length of a context. It
        only settles whom to sample first: the means are estimated by least squares.
    constants: "sound", derived by a union over samples and pairs; or "published", valid too but about twice as wide.
    """

    ridge: float = setting(1.0, above=0.0)
    constants: str = setting("sound", choices=("sound", "published"))


@dataclass(frozen=True)
class XYAllocation(GAllocation):
    """Settings of XY-allocation: those of G-allocation."""


class StaticConstants(NamedTuple):
    contexts: FloatArray  # (K, d)
    everyone: IntArray  # (K,) all arms
    alone: bool  # directions are the arms (G), not pairs of them (XY)
    shift: float
    eps: float
    sigma: float
    delta: float
    published: bool
    no_ticket: FloatArray = NO_TICKET


class StaticState(NamedTuple):
    design: GreedyDesign
    fit: Inverse  # of the sum of x x^T, once there is one
    right: FloatArray  # (d,) sum of x times outcome
    means: FloatArray  # (K,) estimates
    status: IntArray  # (K,)
    beaten_by: IntArray  # (K,)
    counters: IntArray  # (3,) see below


TOTAL = 0  # samples
REFRESH_AT = 1  # samples at which the inverse is computed again; 0: it does not exist yet
DOUBTFUL = 2  # the arm that the leader was last found not to beat


def init_g(settings: GAllocation, setup: Setup) -> tuple[StaticState, StaticConstants]:
    """Start with the directions of all arms."""
    return start(settings, setup, alone=True, name="g-allocation")


def init_xy(settings: XYAllocation, setup: Setup) -> tuple[StaticState, StaticConstants]:
    """Start with the directions of all pairs of arms."""
    return start(settings, setup, alone=False, name="xy-allocation")


def start(settings: GAllocation, setup: Setup, alone: bool, name: str) -> tuple[StaticState, StaticConstants]:
    """Return the first state."""
    contexts = contexts_of(setup, name)
    K, d = contexts.shape
    constants = StaticConstants(
        contexts=contexts,
        everyone=np.arange(K, dtype=np.int64),
        alone=alone,
        shift=shift_of(settings.ridge, contexts),
        eps=float(setup.eps[0]),
        sigma=float(setup.known_sigma(name)[0]),
        delta=float(setup.delta),
        published=settings.constants == "published",
    )
    state = StaticState(
        design=new_design(contexts, alone),
        fit=new_inverse(contexts),
        right=np.zeros(d),
        means=np.zeros(K),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        counters=np.zeros(3, np.int64),
    )
    list_directions(state.design, contexts, constants.shift, constants.everyone, alone)
    return state, constants


@kernel
def width(state: StaticState, constants: StaticConstants, a: float) -> float:
    """Half the interval along a direction of variance a."""
    n, K = float(state.counters[TOTAL]), constants.contexts.shape[0]
    if constants.published:
        return soare_design(a, n, constants.delta, constants.sigma, K)
    return repeated_design(a, n, constants.delta, constants.sigma, K)


@kernel
def choose(
    state: StaticState, constants: StaticConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Return the arm that makes the largest variance smallest."""
    arm = greedy_arm(state.design, constants.contexts, constants.shift, constants.everyone, constants.alone)
    return arm, constants.no_ticket


@kernel
def update(
    state: StaticState,
    constants: StaticConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Add the sample to the design and to the estimate; see whether one arm is surely best."""
    counters, contexts = state.counters, constants.contexts
    extend_design(state.design, contexts, arm)
    for i in range(contexts.shape[1]):
        state.right[i] += contexts[arm, i] * outcome[0]
    counters[TOTAL] += 1
    if counters[TOTAL] >= counters[REFRESH_AT]:
        if not invert(state.fit, contexts, state.design.pulls, 0.0):
            return  # the samples do not span all dimensions yet
        counters[REFRESH_AT] = 2 * counters[TOTAL]
    else:
        add_sample(state.fit, contexts, arm)
    best = estimate(state.fit, state.right, state.means)
    if not surely_best(state, constants, best, counters[DOUBTFUL]):
        return  # most often the same arm stands in the way as before
    for k in range(contexts.shape[0]):
        if not surely_best(state, constants, best, k):
            counters[DOUBTFUL] = k
            return
    return_best(best, state.status, state.beaten_by)


@kernel
def surely_best(state: StaticState, constants: StaticConstants, best: int, k: int) -> bool:
    """Whether `best` is surely not worse than k by more than eps."""
    if k == best:
        return True
    lead = state.means[best] - state.means[k] + constants.eps
    return lead >= width(state, constants, variance(state.fit, constants.contexts, best, k))


@kernel
def done(state: StaticState, constants: StaticConstants) -> bool:
    """Whether one arm was found to be surely best."""
    return state.status[0] != UNDECIDED


@allocating_kernel
def verdicts(state: StaticState, constants: StaticConstants) -> Verdicts:
    """Means by least squares, with intervals that hold at all times."""
    K = constants.contexts.shape[0]
    radii = np.full(K, np.inf)
    if state.counters[REFRESH_AT] > 0:
        for k in range(K):
            radii[k] = width(state, constants, max(0.0, state.fit.leverages[k]))
    return best_arm_verdicts(state.status, state.beaten_by, state.means, radii, state.design.pulls)


PAPER = "Soare, Lazaric, Munos: Best-arm identification in linear bandits, 2014"

G_ALLOCATION = Algorithm(
    name="g-allocation",
    summary="best arm by linear contexts: a design fixed beforehand, for all means",
    paper=PAPER,
    guarantee=BEST_ARM,
    guarantees=True,
    setting="linear contexts",
    one_metric=True,
    settings=GAllocation,
    init=init_g,
    kernels=(
        Kernels(
            state=StaticState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            takes_linear=True,
            ranges={"counters": ("count", "count", "place")},
        ),
    ),
)

XY_ALLOCATION = replace(
    G_ALLOCATION,
    name="xy-allocation",
    summary="best arm by linear contexts: a design fixed beforehand, for all differences",
    settings=XYAllocation,
    init=init_xy,
)

register(G_ALLOCATION)
register(XY_ALLOCATION)
