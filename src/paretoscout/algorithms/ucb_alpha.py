"""UCB_alpha: pull the arm with the highest inflated upper bound until one is surely the best; for a single metric.

R. Degenne, T. Nedelec, C. Calauzènes, V. Perchet: Bridging the gap between regret minimization and best arm
identification, with application to A/B tests, AISTATS 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..kernels import widths
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import DOMINATED, FRONT, UNDECIDED, verdicts_with_rivals
from ..kernels.dispatch import NO_TICKET, Verdicts
from .contract import Accepts, Algorithm, Kernels, Settings, Setup
from .ranges import setting
from .registry import register


@dataclass(frozen=True)
class UCBAlpha(Settings):
    """Settings of UCB_alpha.

    alpha: how much wider than for the test the intervals are when choosing an arm. 1 is plain UCB, which has little
        regret and decides late; large values sample all arms alike and decide early.
    radius: "union": widths that hold for all arms together; "published": those of the paper, for one arm. With them
        delta is not the probability of error where there are many arms.
    """

    alpha: float = setting(3.0, least=1.0)
    radius: str = setting("union", choices=("union", "published"))

    @property
    def sound(self) -> bool:
        """Whether delta means delta."""
        return self.radius == "union"


class UCBAlphaConstants(NamedTuple):
    alpha: float
    sigma: float
    level: float  # of the width of one arm
    eps: float  # the best arm may be missed by this
    no_ticket: FloatArray = NO_TICKET


class UCBAlphaState(NamedTuple):
    counts: IntArray  # (K,) samples of each arm
    sums: FloatArray  # (K, 1) their sums
    means: FloatArray  # (K, 1)
    widths: FloatArray  # (K,) infinite before the second sample
    bounds: FloatArray  # (K,) inflated upper bounds; infinite before the second sample
    status: IntArray  # (K,) verdict on each arm
    counters: IntArray  # (2,) see below


FEW = 2  # the width is for at least so many samples
#: A side of the width fails with at most so many times its level, see `widths.ucb_alpha`.
SIDE = 1.5

UNSEEN = 0  # arms with fewer than FEW samples
BEST = 1  # the arm that is returned, or -1


def init(settings: UCBAlpha, setup: Setup) -> tuple[UCBAlphaState, UCBAlphaConstants]:
    """Start with no samples; each arm gets two before anything is compared."""
    K = setup.n_arms
    state = UCBAlphaState(
        counts=np.zeros(K, np.int64),
        sums=np.zeros((K, 1)),
        means=np.zeros((K, 1)),
        widths=np.full(K, np.inf),
        bounds=np.full(K, np.inf),
        status=np.full(K, UNDECIDED, np.int64),
        counters=np.array([K, -1], np.int64),
    )
    # One side of each arm's width is needed: that the best is not too low, and each other one not too high.
    level = setup.delta / (SIDE * K) if settings.radius == "union" else setup.delta
    # The whole front means the best arm itself; where one arm within eps is enough, it may be any.
    eps = float(setup.eps[0]) if setup.goal in (1, "cover") else 0.0
    sigma = float(setup.known_sigma("ucb-alpha")[0])
    return state, UCBAlphaConstants(settings.alpha, sigma, level, eps)


@kernel
def choose(
    state: UCBAlphaState, constants: UCBAlphaConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Return the arm with the highest inflated upper bound."""
    best = 0
    for k in range(1, state.bounds.shape[0]):
        if state.bounds[k] > state.bounds[best]:
            best = k
    return best, constants.no_ticket


@kernel
def update(
    state: UCBAlphaState,
    constants: UCBAlphaConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Add the sample, and see whether the arm with the largest mean is surely the best."""
    state.counts[arm] += 1
    state.sums[arm, 0] += outcome[0]
    n = state.counts[arm]
    state.means[arm, 0] = state.sums[arm, 0] / n
    if n == FEW:
        state.counters[UNSEEN] -= 1
    if n >= FEW:
        state.widths[arm] = widths.ucb_alpha(n, constants.level, constants.sigma)
        state.bounds[arm] = state.means[arm, 0] + constants.alpha * state.widths[arm]
    if state.counters[UNSEEN] == 0 and state.counters[BEST] < 0:
        judge(state, constants)


@kernel
def judge(state: UCBAlphaState, constants: UCBAlphaConstants) -> None:
    """Return the arm with the largest mean, if it is better than all others for sure, up to eps."""
    K = state.counts.shape[0]
    best = 0
    for k in range(1, K):
        if state.means[k, 0] > state.means[best, 0]:
            best = k
    least = state.means[best, 0] - state.widths[best]
    for k in range(K):
        if k != best and state.means[k, 0] + state.widths[k] >= least + constants.eps:
            return
    state.counters[BEST] = best
    for k in range(K):
        if k != best and state.means[k, 0] + state.widths[k] < least:  # with eps another one may be as good, or better
            state.status[k] = DOMINATED
    state.status[best] = FRONT


@allocating_kernel
def verdicts(state: UCBAlphaState, constants: UCBAlphaConstants) -> Verdicts:
    """At the end: the best arm, and who is surely worse."""
    K = state.counts.shape[0]
    radii = np.full((K, 1), np.inf)
    for k in range(K):
        if state.counts[k] >= FEW:
            radii[k, 0] = widths.ucb_alpha(state.counts[k], 0.5 * constants.level, constants.sigma)  # both sides
    beaten_by = np.full(K, state.counters[BEST])
    for k in range(K):
        if state.status[k] == FRONT:
            beaten_by[k] = -1
    return verdicts_with_rivals(state.status, beaten_by, state.means.copy(), radii, state.counts)


@kernel
def done(state: UCBAlphaState, constants: UCBAlphaConstants) -> bool:
    """Whether the best arm is known."""
    return state.counters[BEST] >= 0


ALGORITHM = Algorithm(
    name="ucb-alpha",
    summary="pull the highest upper bound until one arm is surely the best by one metric; regret against delay",
    paper="Degenne, Nedelec, Calauzènes, Perchet: Bridging the gap between regret minimization and best arm "
    "identification, with application to A/B tests, 2019",
    guarantee="fixed confidence: the best arm is returned (goal 1 or 'cover': one within eps of it), with probability "
    "at least 1 - delta, if the noise is sigma-sub-Gaussian; not with radius='published'",
    guarantees=True,
    settings=UCBAlpha,
    init=init,
    kernels=(
        Kernels(
            state=UCBAlphaState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            ranges={"counters": ("arms", "arm")},
            intervals=True,
            accepts=Accepts(unasked=True),
        ),
    ),
    one_metric=True,
    uses_eps=False,
)

register(ALGORITHM)
