"""Pareto UCB1: draw an arm at random from the Pareto front of upper bounds; plays for low regret.

M. Drugan, A. Nowé: Designing multi-objective multi-armed bandits algorithms: a study, IJCNN 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import undominated_estimates, verdicts_by_estimates
from ..kernels.dispatch import NO_TICKET, Verdicts
from ..kernels.draws import draw_index
from .contract import Algorithm, Kernels, Settings, Setup
from .registry import register


@dataclass(frozen=True)
class ParetoUCB1(Settings):
    """Settings of Pareto UCB1: it has none of its own, only `sigma`."""


class ParetoUCB1Constants(NamedTuple):
    sigma: FloatArray  # (L,)
    arms: IntArray  # (K,) all of them
    budget: int
    no_ticket: FloatArray = NO_TICKET


class ParetoUCB1State(NamedTuple):
    counts: IntArray  # (K,) samples of each arm
    sums: FloatArray  # (K, L) their sums
    samples: IntArray  # (1,) of all arms
    bounds: FloatArray  # (K, L) upper bounds at the last choice
    scratch: IntArray  # (K,) their front


def init(settings: ParetoUCB1, setup: Setup) -> tuple[ParetoUCB1State, ParetoUCB1Constants]:
    """Start with no samples; the first ones go to each arm in turn."""
    K, L = setup.n_arms, setup.n_metrics
    state = ParetoUCB1State(
        counts=np.zeros(K, np.int64),
        sums=np.zeros((K, L)),
        samples=np.zeros(1, np.int64),
        bounds=np.zeros((K, L)),
        scratch=np.zeros(K, np.int64),
    )
    budget = setup.enough_budget("pareto-ucb1", K)
    return state, ParetoUCB1Constants(setup.known_sigma("pareto-ucb1"), np.arange(K), budget)


@kernel
def width(n: int, samples: int, n_arms: int, n_metrics: int) -> float:
    """2 sqrt(2 log(N (L K)^(1/4)) / n) at noise scale 1, after N samples of all arms.

    The paper's is for rewards from 0 to 1, whose scale is at most 1/2; K stands for the unknown size of the front.
    """
    return 2.0 * math.sqrt(2.0 * (math.log(samples) + 0.25 * math.log(n_metrics * n_arms)) / n)


@kernel
def choose(
    state: ParetoUCB1State, constants: ParetoUCB1Constants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Each arm once, then one of those whose upper bounds no other one's dominate."""
    K, L = state.sums.shape
    samples = state.samples[0]
    if samples < K:
        return samples, constants.no_ticket
    unit = width(1, samples, K, L)
    for k in range(K):
        n = state.counts[k]
        narrower = unit / math.sqrt(n)
        for metric in range(L):
            state.bounds[k, metric] = state.sums[k, metric] / n + constants.sigma[metric] * narrower
    n_front = undominated_estimates(constants.arms, state.bounds, state.scratch)
    return state.scratch[draw_index(n_front, rng)], constants.no_ticket


@kernel
def update(
    state: ParetoUCB1State,
    constants: ParetoUCB1Constants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Add the sample."""
    state.counts[arm] += 1
    state.samples[0] += 1
    for metric in range(outcome.shape[0]):
        state.sums[arm, metric] += outcome[metric]


@allocating_kernel
def verdicts(state: ParetoUCB1State, constants: ParetoUCB1Constants) -> Verdicts:
    """At the horizon: the front of the means."""
    means = state.sums / np.maximum(state.counts, 1).reshape(-1, 1)
    return verdicts_by_estimates(means, state.counts, done(state, constants))


@kernel
def done(state: ParetoUCB1State, constants: ParetoUCB1Constants) -> bool:
    """Whether the horizon is reached."""
    return state.samples[0] >= constants.budget


ALGORITHM = Algorithm(
    name="pareto-ucb1",
    summary="draw from the Pareto front of upper bounds; for low regret",
    paper="Drugan, Nowé: Designing multi-objective multi-armed bandits algorithms: a study, 2013",
    guarantee="none for the front; the expected Pareto regret grows like the sum over the dominated arms of "
    "log(horizon) / gap, if the noise is sigma-sub-Gaussian",
    guarantees=False,
    settings=ParetoUCB1,
    init=init,
    kernels=(Kernels(state=ParetoUCB1State, choose=choose, update=update, verdicts=verdicts, done=done),),
    kind="regret only",
    uses_eps=False,
)

register(ALGORITHM)
