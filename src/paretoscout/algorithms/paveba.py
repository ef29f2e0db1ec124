"""PaVeBa: pull every arm that matters once a round, drop and accept by pairs of confidence balls.

Ç. Karagözlü, Y. C. Yıldırım, Ç. Ararat, C. Tekin: Learning the Pareto set under incomplete preferences: pure
exploration in vector bandits, AISTATS 2024; for the componentwise order, where all tests have closed forms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import DOMINATED, FRONT, UNDECIDED, dominator, strongest, verdicts_with_rivals
from ..kernels.dispatch import NO_TICKET, Verdicts
from ..kernels.widths import ball_around_box, karagozlu_ball
from .contract import Accepts, Algorithm, Kernels, Settings, Setup
from .ranges import setting
from .registry import register


@dataclass(frozen=True)
class PaVeBa(Settings):
    """Settings of PaVeBa.

    radius: "box": that of the paper, widened from four metrics on so that it holds for noise that is sub-Gaussian in
        each metric, correlated or not; "published": that of the paper, whatever the number of metrics.
    """

    radius: str = setting("box", choices=("box", "published"))

    @property
    def sound(self) -> bool:
        """Whether delta means delta."""
        return self.radius == "box"


class PaVeBaConstants(NamedTuple):
    eps: FloatArray  # (L,)
    sigma: FloatArray  # (L,)
    delta: float
    published: bool
    no_ticket: FloatArray = NO_TICKET


class PaVeBaState(NamedTuple):
    counts: IntArray  # (K,) samples of each arm
    sums: FloatArray  # (K, L) their sums
    means: FloatArray  # (K, L) as of the last test that the arm took part in
    balls: FloatArray  # (K,) radii at noise scale 1, likewise
    radii: FloatArray  # (K, L) radii along the metrics, likewise
    status: IntArray  # (K,) verdict on each arm: UNDECIDED is the set S, FRONT is P
    beaten_by: IntArray  # (K,) who proved it dominated, or -1
    active: IntArray  # (K,) the set A = S and U, ascending; the first counters[N_ACTIVE] entries
    due: IntArray  # (K,) 1: the arm lacks its sample of the running round
    counters: IntArray  # (3,) see below
    scratch: IntArray  # (K,) working space of a test


N_ACTIVE = 0  # size of A
BEHIND = 1  # arms that lack their sample of the running round
CURSOR = 2  # position of the first of them


def init(settings: PaVeBa, setup: Setup) -> tuple[PaVeBaState, PaVeBaConstants]:
    """Start with every arm in S."""
    K, L = setup.n_arms, setup.n_metrics
    state = PaVeBaState(
        counts=np.zeros(K, np.int64),
        sums=np.zeros((K, L)),
        means=np.zeros((K, L)),
        balls=np.full(K, np.inf),
        radii=np.full((K, L), np.inf),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        active=np.arange(K, dtype=np.int64),
        due=np.ones(K, np.int64),
        counters=np.array([K, K, 0], np.int64),
        scratch=np.zeros(K, np.int64),
    )
    sigma = setup.known_sigma("paveba")
    published = settings.radius == "published"
    return state, PaVeBaConstants(setup.eps.copy(), sigma, float(setup.delta), published)


@kernel
def radius(n: int, n_arms: int, n_metrics: int, constants: PaVeBaConstants) -> float:
    """Radius of the ball of n samples at noise scale 1."""
    if constants.published:
        return karagozlu_ball(n, constants.delta, n_arms, n_metrics)
    return ball_around_box(n, constants.delta, n_arms, n_metrics)


@kernel
def choose(
    state: PaVeBaState, constants: PaVeBaConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Return the first arm whose sample of this round is neither in nor on its way; if all are, one with the fewest."""
    n = state.counters[N_ACTIVE]
    for position in range(state.counters[CURSOR], n):
        arm = state.active[position]
        if state.due[arm] > pending[arm]:
            return arm, constants.no_ticket
    fewest = state.active[0]
    for arm in state.active[1:n]:
        if state.counts[arm] + pending[arm] < state.counts[fewest] + pending[fewest]:
            fewest = arm
    return fewest, constants.no_ticket


@kernel
def update(
    state: PaVeBaState,
    constants: PaVeBaConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Add the sample; when it completes a round, test."""
    counters = state.counters
    state.counts[arm] += 1
    for metric in range(outcome.shape[0]):
        state.sums[arm, metric] += outcome[metric]
    if state.due[arm] == 1:
        state.due[arm] = 0
        counters[BEHIND] -= 1
        if counters[BEHIND] == 0:
            judge(state, constants)
    while counters[CURSOR] < counters[N_ACTIVE] and state.due[state.active[counters[CURSOR]]] == 0:
        counters[CURSOR] += 1


@kernel
def may_be_covered(state: PaVeBaState, constants: PaVeBaConstants, k: int, j: int) -> bool:
    """Whether the balls of k and j have points such that j's is better than k's by eps everywhere.

    The distance of the balls' centres to such points, in units of sigma, is |max(0, y_k + eps - y_j)|.
    """
    squares = 0.0
    for metric in range(constants.sigma.shape[0]):
        excess = state.means[k, metric] + constants.eps[metric] - state.means[j, metric]
        if excess > 0.0:
            if constants.sigma[metric] == 0.0:
                return False
            excess /= constants.sigma[metric]
            squares += excess * excess
    return math.sqrt(squares) <= state.balls[k] + state.balls[j]


@kernel
def judge(state: PaVeBaState, constants: PaVeBaConstants) -> None:
    """Discard, accept, and keep pulling whom undecided arms depend on; then begin the next round."""
    counters = state.counters
    K, L = state.sums.shape
    active = state.active[: counters[N_ACTIVE]]
    for k in active:
        state.balls[k] = radius(state.counts[k], K, L, constants)
        for metric in range(L):
            state.means[k, metric] = state.sums[k, metric] / state.counts[k]
            state.radii[k, metric] = constants.sigma[metric] * state.balls[k]

    # discard: an arm of A has its whole ball above
    rivals = state.scratch[: strongest(active, state.means, state.radii, state.scratch)]
    n_left = 0
    for position in range(active.shape[0]):
        k = active[position]
        j = dominator(k, rivals, state.means, state.radii) if state.status[k] == UNDECIDED else -1
        if j >= 0:
            state.status[k] = DOMINATED
            state.beaten_by[k] = j
        else:
            active[n_left] = k
            n_left += 1

    # accept: no arm that is left may cover it
    n_accepted = 0
    for k in active[:n_left]:
        if state.status[k] != UNDECIDED:
            continue
        free = True
        for j in active[:n_left]:
            if j != k and may_be_covered(state, constants, k, j):
                free = False
                break
        if free:
            state.scratch[n_accepted] = k
            n_accepted += 1
    for k in state.scratch[:n_accepted]:
        state.status[k] = FRONT

    # U: accepted arms that may cover an undecided one; balls of those that are not pulled stay as they were
    n_active = 0
    n_undecided = 0
    for k in active[:n_left]:
        if state.status[k] == UNDECIDED:
            state.scratch[n_undecided] = k
            n_undecided += 1
    for k in range(K):
        wanted = state.status[k] == UNDECIDED
        if state.status[k] == FRONT:
            for i in state.scratch[:n_undecided]:
                if may_be_covered(state, constants, i, k):
                    wanted = True
                    break
        if wanted:
            state.active[n_active] = k
            state.due[k] = 1
            n_active += 1
    counters[N_ACTIVE] = n_active
    counters[BEHIND] = n_active
    counters[CURSOR] = 0


@allocating_kernel
def verdicts(state: PaVeBaState, constants: PaVeBaConstants) -> Verdicts:
    """Means and balls by the samples in so far; verdicts as of the last complete round."""
    K, L = state.sums.shape
    means = np.zeros((K, L))
    radii = np.full((K, L), np.inf)
    for k in range(K):
        n = state.counts[k]
        if n > 0:
            unit = radius(n, K, L, constants)
            for metric in range(L):
                means[k, metric] = state.sums[k, metric] / n
                radii[k, metric] = constants.sigma[metric] * unit
    return verdicts_with_rivals(state.status, state.beaten_by, means, radii, state.counts)


@kernel
def done(state: PaVeBaState, constants: PaVeBaConstants) -> bool:
    """Whether no arm is undecided."""
    return state.counters[N_ACTIVE] == 0


ALGORITHM = Algorithm(
    name="paveba",
    summary="pull all undecided arms in turn; drop and accept by confidence balls",
    paper="Karagözlü, Yıldırım, Ararat, Tekin: Learning the Pareto set under incomplete preferences: pure exploration "
    "in vector bandits, 2024",
    guarantee="fixed confidence: every Pareto-optimal arm is returned and every returned arm is within eps of "
    "optimal, with probability at least 1 - delta, if the noise is sigma-sub-Gaussian; with radius='published' only "
    "for up to three metrics",
    guarantees=True,
    settings=PaVeBa,
    init=init,
    kernels=(
        Kernels(
            state=PaVeBaState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            ranges={"counters": ("arms", "arms", "place")},
            accepts=Accepts(pending=True, unasked=True),
        ),
    ),
)

register(ALGORITHM)
