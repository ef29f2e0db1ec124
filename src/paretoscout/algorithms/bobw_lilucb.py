"""BoBW-lil'UCB: pull the arm with the highest upper bound up to a horizon, then name the best; for a single metric.

Z. Zhong, W. C. Cheung, V. Tan: Achieving the Pareto frontier of regret minimization and best arm identification in
multi-armed bandits, TMLR 2023. Best of both worlds: `gamma` trades regret for the probability of naming the best arm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import verdicts_by_estimates
from ..kernels.dispatch import NO_TICKET, Verdicts
from .contract import Algorithm, Kernels, Settings, Setup
from .ranges import setting
from .registry import register


@dataclass(frozen=True)
class BoBWLilUCB(Settings):
    """Settings of BoBW-lil'UCB.

    gamma: smaller explores more: the best arm is named more surely, at more regret. The paper tries 1e-7 to 0.1.
    """

    gamma: float = setting(1e-4, above=0.0, below=1.0)


class BoBWLilUCBConstants(NamedTuple):
    sigma: float
    gamma: float
    budget: int
    no_ticket: FloatArray = NO_TICKET


class BoBWLilUCBState(NamedTuple):
    counts: IntArray  # (K,) samples of each arm
    sums: FloatArray  # (K, 1) their sums
    bounds: FloatArray  # (K,) upper bounds; infinite before the first sample
    samples: IntArray  # (1,) of all arms


EPSILON, BETA = 0.01, math.e  # as the authors set them


def init(settings: BoBWLilUCB, setup: Setup) -> tuple[BoBWLilUCBState, BoBWLilUCBConstants]:
    """Start with no samples; the first ones go to each arm in turn."""
    K = setup.n_arms
    state = BoBWLilUCBState(
        counts=np.zeros(K, np.int64),
        sums=np.zeros((K, 1)),
        bounds=np.full(K, np.inf),
        samples=np.zeros(1, np.int64),
    )
    sigma = float(setup.known_sigma("bobw-lilucb")[0])
    budget = setup.enough_budget("bobw-lilucb", K)
    return state, BoBWLilUCBConstants(sigma, settings.gamma, budget)


@kernel
def width(n: int, gamma: float) -> float:
    """5 (1 + sqrt(eps)) sqrt(2 (1 + eps) log(log(beta + (1 + eps) n) / gamma) / n) at noise scale 1."""
    log = math.log(math.log(BETA + (1.0 + EPSILON) * n) / gamma)
    return 5.0 * (1.0 + math.sqrt(EPSILON)) * math.sqrt(2.0 * (1.0 + EPSILON) * log / n)


@kernel
def choose(
    state: BoBWLilUCBState, constants: BoBWLilUCBConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Return the arm with the highest upper bound."""
    best = 0
    for k in range(1, state.bounds.shape[0]):
        if state.bounds[k] > state.bounds[best]:
            best = k
    return best, constants.no_ticket


@kernel
def update(
    state: BoBWLilUCBState,
    constants: BoBWLilUCBConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Add the sample; only this arm's bound changes."""
    state.counts[arm] += 1
    state.samples[0] += 1
    state.sums[arm, 0] += outcome[0]
    n = state.counts[arm]
    state.bounds[arm] = state.sums[arm, 0] / n + constants.sigma * width(n, constants.gamma)


@allocating_kernel
def verdicts(state: BoBWLilUCBState, constants: BoBWLilUCBConstants) -> Verdicts:
    """At the horizon: the arm with the largest mean."""
    means = state.sums / np.maximum(state.counts, 1).reshape(-1, 1)
    return verdicts_by_estimates(means, state.counts, done(state, constants))


@kernel
def done(state: BoBWLilUCBState, constants: BoBWLilUCBConstants) -> bool:
    """Whether the horizon is reached."""
    return state.samples[0] >= constants.budget


ALGORITHM = Algorithm(
    name="bobw-lilucb",
    summary="pull the highest upper bound up to a horizon, then name the best arm by one metric",
    paper="Zhong, Cheung, Tan: Achieving the Pareto frontier of regret minimization and best arm identification in "
    "multi-armed bandits, 2023",
    guarantee="none at a stated delta: the regret grows like log(1 / gamma) / gap, and the probability of naming a "
    "wrong arm falls with gamma as long as the horizon is long enough, if the noise is sigma-sub-Gaussian",
    guarantees=False,
    settings=BoBWLilUCB,
    init=init,
    kernels=(Kernels(state=BoBWLilUCBState, choose=choose, update=update, verdicts=verdicts, done=done),),
    kind="fixed budget",
    one_metric=True,
    uses_eps=False,
)

register(ALGORITHM)
