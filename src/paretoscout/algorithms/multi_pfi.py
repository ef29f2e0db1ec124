"""MultiPFI: pull every undecided arm once a round, drop and accept by pairs of confidence boxes.

P. Auer, C.-K. Chiang, R. Ortner, M. Drugan: Pareto front identification from stochastic bandit feedback,
AISTATS 2016, algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import (
    DOMINATED,
    FRONT,
    UNDECIDED,
    dominator,
    may_be_covered,
    strongest,
    surely_escapes,
    verdicts_with_rivals,
)
from ..kernels.dispatch import NO_TICKET, Verdicts
from ..kernels.widths import auer_box
from .contract import Accepts, Algorithm, Kernels, Settings, Setup
from .registry import register


@dataclass(frozen=True)
class MultiPFI(Settings):
    """Settings of MultiPFI: it has none of its own, only `sigma`."""


class MultiPFIConstants(NamedTuple):
    eps: FloatArray  # (L,)
    sigma: FloatArray  # (L,)
    delta: float
    everyone: bool  # pull all arms in every round, also those with a verdict
    no_ticket: FloatArray = NO_TICKET


class MultiPFIState(NamedTuple):
    counts: IntArray  # (K,) samples of each arm
    sums: FloatArray  # (K, L) their sums
    means: FloatArray  # (K, L) as of the last test
    radii: FloatArray  # (K, L) as of the last test
    status: IntArray  # (K,) verdict on each arm
    beaten_by: IntArray  # (K,) who proved it dominated, or -1
    active: IntArray  # (K,) the set A, ascending; the first counters[N_ACTIVE] entries
    counters: IntArray  # (4,) see below
    scratch: IntArray  # (K,) working space of a test


ROUND = 0  # rounds completed: every arm being pulled has at least so many samples
N_ACTIVE = 1  # size of A
BEHIND = 2  # arms being pulled that still lack their sample of the running round
CURSOR = 3  # position of the first of them


def init(settings: MultiPFI, setup: Setup) -> tuple[MultiPFIState, MultiPFIConstants]:
    """Start with every arm in A."""
    return start(setup, everyone=False, name="multi-pfi")


def start(setup: Setup, everyone: bool, name: str) -> tuple[MultiPFIState, MultiPFIConstants]:
    """Return the first state, for MultiPFI and for the round-robin that is stopped by its tests."""
    K, L = setup.n_arms, setup.n_metrics
    state = MultiPFIState(
        counts=np.zeros(K, np.int64),
        sums=np.zeros((K, L)),
        means=np.zeros((K, L)),
        radii=np.full((K, L), np.inf),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        active=np.arange(K, dtype=np.int64),
        counters=np.array([0, K, K, 0], np.int64),
        scratch=np.zeros(K, np.int64),
    )
    return state, MultiPFIConstants(setup.eps.copy(), setup.known_sigma(name), float(setup.delta), everyone)


@kernel
def width(n: int, n_arms: int, n_metrics: int, delta: float) -> float:
    """Half the box of n samples at noise scale 1."""
    return auer_box(n, delta, 1.0, n_arms, n_metrics)


@kernel
def n_pulled(state: MultiPFIState, constants: MultiPFIConstants) -> int:
    """How many arms are pulled in a round."""
    return state.counts.shape[0] if constants.everyone else state.counters[N_ACTIVE]


@kernel
def pulled(state: MultiPFIState, constants: MultiPFIConstants, position: int) -> int:
    """The arm at a position of the round."""
    return position if constants.everyone else state.active[position]


@kernel
def choose(
    state: MultiPFIState, constants: MultiPFIConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Return the first arm whose sample of this round is neither in nor on its way.

    If all are on their way, begin the next rounds early: an arm that has the fewest, counting those.
    """
    n = n_pulled(state, constants)
    for position in range(state.counters[CURSOR], n):
        arm = pulled(state, constants, position)
        if state.counts[arm] + pending[arm] <= state.counters[ROUND]:
            return arm, constants.no_ticket
    fewest = pulled(state, constants, 0)
    for position in range(1, n):
        arm = pulled(state, constants, position)
        if state.counts[arm] + pending[arm] < state.counts[fewest] + pending[fewest]:
            fewest = arm
    return fewest, constants.no_ticket


@kernel
def update(
    state: MultiPFIState,
    constants: MultiPFIConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Add the sample; when it completes a round, test."""
    counters = state.counters
    completes = state.counts[arm] == counters[ROUND] and (constants.everyone or state.status[arm] == UNDECIDED)
    state.counts[arm] += 1
    for metric in range(outcome.shape[0]):
        state.sums[arm, metric] += outcome[metric]
    if completes:
        counters[BEHIND] -= 1
        while counters[BEHIND] == 0 and counters[N_ACTIVE] > 0:
            counters[ROUND] += 1
            judge(state, constants)
            counters[CURSOR] = 0
            for position in range(n_pulled(state, constants)):
                if state.counts[pulled(state, constants, position)] <= counters[ROUND]:
                    counters[BEHIND] += 1
    n = n_pulled(state, constants)
    while counters[CURSOR] < n and state.counts[pulled(state, constants, counters[CURSOR])] > counters[ROUND]:
        counters[CURSOR] += 1


@kernel
def judge(state: MultiPFIState, constants: MultiPFIConstants) -> None:
    """Steps 2 to 5 of the algorithm: drop, accept, and keep pulling whom undecided arms depend on."""
    counters = state.counters
    K, L = state.sums.shape
    active = state.active[: counters[N_ACTIVE]]
    last_n, unit = -1, 0.0
    for k in active:
        n = state.counts[k]
        if n != last_n:
            last_n, unit = n, width(n, K, L, constants.delta)
        for metric in range(L):
            state.means[k, metric] = state.sums[k, metric] / n
            state.radii[k, metric] = constants.sigma[metric] * unit

    # A1 = arms of A that no arm of A surely dominates
    rivals = state.scratch[: strongest(active, state.means, state.radii, state.scratch)]
    n_kept = 0
    for position in range(active.shape[0]):
        k = active[position]
        j = dominator(k, rivals, state.means, state.radii)
        if j >= 0:
            state.status[k] = DOMINATED
            state.beaten_by[k] = j
        else:
            active[n_kept] = k
            n_kept += 1
    kept = active[:n_kept]

    # P1 = arms of A1 that are surely eps-optimal
    optimal = state.scratch
    for position in range(n_kept):
        k = kept[position]
        optimal[position] = 1
        for j in kept:
            if j != k and not surely_escapes(k, j, state.means, state.radii, constants.eps):
                optimal[position] = 0
                break

    # P2 = arms of P1 that no undecided arm may turn out to be eps-dominated by
    for position in range(n_kept):
        if optimal[position] == 0:
            continue
        needed = False
        for other in range(n_kept):
            if optimal[other] == 0 and may_be_covered(
                kept[other], kept[position], state.means, state.radii, constants.eps
            ):
                needed = True
                break
        if not needed:
            state.status[kept[position]] = FRONT
    n_active = 0
    for k in kept:
        if state.status[k] == UNDECIDED:
            active[n_active] = k
            n_active += 1
    counters[N_ACTIVE] = n_active


@allocating_kernel
def verdicts(state: MultiPFIState, constants: MultiPFIConstants) -> Verdicts:
    """Means and boxes by the samples in so far; verdicts as of the last complete round."""
    K, L = state.sums.shape
    means = np.zeros((K, L))
    radii = np.full((K, L), np.inf)
    for k in range(K):
        n = state.counts[k]
        if n > 0:
            unit = width(n, K, L, constants.delta)
            for metric in range(L):
                means[k, metric] = state.sums[k, metric] / n
                radii[k, metric] = constants.sigma[metric] * unit
    return verdicts_with_rivals(state.status, state.beaten_by, means, radii, state.counts)


@kernel
def done(state: MultiPFIState, constants: MultiPFIConstants) -> bool:
    """Whether A is empty."""
    return state.counters[N_ACTIVE] == 0


ALGORITHM = Algorithm(
    name="multi-pfi",
    summary="pull all undecided arms in turn; drop and accept by confidence boxes",
    paper="Auer, Chiang, Ortner, Drugan: Pareto front identification from stochastic bandit feedback, 2016",
    guarantee="fixed confidence: every Pareto-optimal arm is returned and every returned arm is within eps of "
    "optimal, with probability at least 1 - delta, if the noise is sigma-sub-Gaussian",
    guarantees=True,
    settings=MultiPFI,
    init=init,
    kernels=(
        Kernels(
            state=MultiPFIState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            ranges={"active": "undecided arms", "counters": ("count", "undecided", "arms", "place")},
            intervals=True,
            accepts=Accepts(pending=True, unasked=True),
        ),
    ),
)

register(ALGORITHM)
