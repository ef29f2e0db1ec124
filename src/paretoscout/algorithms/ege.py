"""EGE, empirical gap elimination: rounds that each settle the arms whose estimates leave least doubt; a fixed budget.

C. Kone, E. Kaufmann, L. Richert: Bandit Pareto set identification: the fixed budget setting, AISTATS 2024. EGE-SR
settles one arm a round (successive rejects), EGE-SH half of those left (sequential halving).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import DOMINATED, FRONT, UNDECIDED, margin
from ..kernels.dispatch import NO_TICKET, Verdicts
from ..kernels.empirical_gaps import empirical_gaps
from .contract import Algorithm, Kernels, Settings, Setup
from .registry import register


@dataclass(frozen=True)
class EGESR(Settings):
    """Settings of EGE-SR: it has none of its own; of `sigma` only the ratios between metrics matter."""


@dataclass(frozen=True)
class EGESH(Settings):
    """Settings of EGE-SH: it has none of its own; of `sigma` only the ratios between metrics matter."""


class EGEConstants(NamedTuple):
    targets: IntArray  # (R,) samples that each arm still in has at the end of each round
    keeps: IntArray  # (R,) how many arms stay in after it
    unit: FloatArray  # (L,) what differences in each metric are measured in
    no_ticket: FloatArray = NO_TICKET


class EGEState(NamedTuple):
    counts: IntArray  # (K,) samples of each arm
    sums: FloatArray  # (K, L) their sums
    values: FloatArray  # (K, L) means in `unit`, as of the last round
    gaps: FloatArray  # (K,) as of the last round
    front: BoolArray  # (K,) whether the arm was on the front of the means then
    status: IntArray  # (K,) verdict on each arm
    beaten_by: IntArray  # (K,) who dominates it by the means, or -1
    active: IntArray  # (K,) the arms still in, ascending; the first counters[N_ACTIVE] entries
    counters: IntArray  # (3,) see below


ROUND = 0  # rounds completed
N_ACTIVE = 1  # how many arms are still in
CURSOR = 2  # position of the first of them that lacks samples in this round


def plan_sr(n_arms: int, budget: int) -> tuple[Sequence[int], Sequence[int]]:
    """Samples of each arm by the end of each round, and how many arms stay in: K - 1 rounds, one arm leaves in each."""
    log_bar = 0.5 + sum(1.0 / i for i in range(2, n_arms + 1))
    rounds = range(1, n_arms)
    targets = [math.ceil((budget - n_arms) / (log_bar * (n_arms + 1 - r))) for r in rounds]
    return targets, [n_arms - r for r in rounds]


def plan_sh(n_arms: int, budget: int) -> tuple[Sequence[int], Sequence[int]]:
    """The same for halving: about log2(K) rounds with equal shares of the budget, half of the arms leave in each."""
    rounds = math.ceil(math.log2(n_arms))
    targets, keeps = [], []
    left, target = n_arms, 0
    for _ in range(rounds):
        target += budget // (left * rounds)
        left = math.ceil(left / 2)
        targets.append(target)
        keeps.append(left)
    return targets, keeps


def init_sr(settings: EGESR, setup: Setup) -> tuple[EGEState, EGEConstants]:
    """Plan K - 1 rounds."""
    budget = setup.enough_budget("ege-sr", setup.n_arms + 1 if setup.n_arms > 1 else 1)
    return start(setup, plan_sr(setup.n_arms, budget))


def init_sh(settings: EGESH, setup: Setup) -> tuple[EGEState, EGEConstants]:
    """Plan rounds of halving."""
    least = max(1, setup.n_arms * math.ceil(math.log2(setup.n_arms)))  # one sample each in the first round
    return start(setup, plan_sh(setup.n_arms, setup.enough_budget("ege-sh", least)))


def start(setup: Setup, plan: tuple[Sequence[int], Sequence[int]]) -> tuple[EGEState, EGEConstants]:
    """Return the first state; an arm that is alone is on the front without a sample."""
    K, L = setup.n_arms, setup.n_metrics
    state = EGEState(
        counts=np.zeros(K, np.int64),
        sums=np.zeros((K, L)),
        values=np.zeros((K, L)),
        gaps=np.full(K, np.inf),
        front=np.ones(K, np.bool_),
        status=np.full(K, UNDECIDED if K > 1 else FRONT, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        active=np.arange(K, dtype=np.int64),
        counters=np.array([0, K if K > 1 else 0, 0], np.int64),
    )
    unit = np.ones(L)
    if setup.sigma is not None and (largest := setup.known_sigma("ege")).min() > 0.0:
        unit = largest / largest.max()  # differences count by how many deviations they are
    targets, keeps = (np.array(part, np.int64) for part in plan)
    return state, EGEConstants(targets, keeps, unit)


@kernel
def choose(
    state: EGEState, constants: EGEConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Return the first arm still in that lacks samples in this round."""
    return state.active[state.counters[CURSOR]], constants.no_ticket


@kernel
def done(state: EGEState, constants: EGEConstants) -> bool:
    """Whether every arm has been settled, as it is after the last round."""
    return state.counters[N_ACTIVE] == 0 or state.counters[ROUND] >= constants.targets.shape[0]


@kernel
def update(
    state: EGEState,
    constants: EGEConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Add the sample; when it completes a round, settle arms."""
    counters = state.counters
    state.counts[arm] += 1
    for metric in range(outcome.shape[0]):
        state.sums[arm, metric] += outcome[metric]
    while not done(state, constants) and (
        state.counts[state.active[counters[CURSOR]]] >= constants.targets[counters[ROUND]]
    ):
        counters[CURSOR] += 1
        if counters[CURSOR] >= counters[N_ACTIVE]:
            end_round(state, constants)


@kernel
def end_round(state: EGEState, constants: EGEConstants) -> None:
    """Settle the arms with the largest gaps by what they look like; the last one left is on the front."""
    counters = state.counters
    active = state.active[: counters[N_ACTIVE]]
    for k in active:
        for metric in range(state.sums.shape[1]):
            state.values[k, metric] = state.sums[k, metric] / state.counts[k] / constants.unit[metric]
    empirical_gaps(active, state.values, state.gaps, state.front)
    n_left = active.shape[0]
    keep = constants.keeps[counters[ROUND]]
    while n_left > keep:
        settle(state, active, first_to_go(state, active))
        n_left -= 1
    n = 0
    for k in active:
        if state.status[k] == UNDECIDED:
            active[n] = k
            n += 1
    if n == 1:
        state.status[active[0]] = FRONT
        n = 0
    counters[ROUND] += 1
    counters[N_ACTIVE] = n
    counters[CURSOR] = 0


@kernel
def first_to_go(state: EGEState, active: IntArray) -> int:
    """Of the undecided, the arm with the largest gap; among equals one off the front, then the largest index."""
    found = -1
    for k in active:
        if state.status[k] == UNDECIDED and (
            found < 0
            or state.gaps[k] > state.gaps[found]
            or (state.gaps[k] == state.gaps[found] and (state.front[found] or not state.front[k]))
        ):
            found = k
    return found


@kernel
def settle(state: EGEState, active: IntArray, arm: int) -> None:
    """Give an arm the verdict that its mean suggests."""
    if state.front[arm]:
        state.status[arm] = FRONT
        return
    state.status[arm] = DOMINATED
    best = -np.inf
    for j in active:
        if j != arm and margin(j, arm, state.values) > best:
            state.beaten_by[arm], best = j, margin(j, arm, state.values)


@allocating_kernel
def verdicts(state: EGEState, constants: EGEConstants) -> Verdicts:
    """Means by the samples in so far; verdicts as of the last complete round, none of them proven."""
    means = state.sums / np.maximum(state.counts, 1).reshape(-1, 1)
    return Verdicts(
        state.status.copy(), state.beaten_by.copy(), means, np.full(means.shape, np.inf), state.counts.copy()
    )


SR = Algorithm(
    name="ege-sr",
    summary="spend a budget in rounds; settle in each the arm whose estimates leave least doubt",
    paper="Kone, Kaufmann, Richert: Bandit Pareto set identification: the fixed budget setting, 2024",
    guarantee="none at a stated delta: the probability of a wrong front falls exponentially with budget / (H2 log K), "
    "with H2 by the gaps, if the noise is sub-Gaussian",
    guarantees=False,
    settings=EGESR,
    init=init_sr,
    kernels=(
        Kernels(
            state=EGEState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            ranges={"active": "undecided arms", "counters": ("place", "undecided", "place")},
        ),
    ),
    kind="fixed budget",
    uses_eps=False,
)

SH = replace(
    SR,
    name="ege-sh",
    summary="spend a budget in rounds; settle in each the half of the arms whose estimates leave least doubt",
    settings=EGESH,
    init=init_sh,
)

register(SR)
register(SH)
