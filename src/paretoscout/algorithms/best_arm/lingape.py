"""LinGapE: sample whoever tells most about the leader and the arm most likely to beat it.

L. Xu, J. Honda, M. Sugiyama: A fully adaptive algorithm for pure exploration in linear bandits, AISTATS 2018. Whom to
sample depends on the outcomes, so the means are bounded by the self-normalised ellipsoid of ridge regression, which
holds under any sampling rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...errors import InvalidInput
from ...kernels.arrays import BoolArray, FloatArray, IntArray
from ...kernels.compile import allocating_kernel, kernel
from ...kernels.decisions import UNDECIDED, return_best
from ...kernels.design_for_differences import (
    TIE,
    Inverse,
    add_sample,
    estimate,
    invert,
    new_inverse,
    projection,
    variance,
)
from ...kernels.dispatch import NO_TICKET, Verdicts
from ...kernels.widths import ridge_radius
from ..contract import Algorithm, Kernels, Settings, Setup
from ..ranges import setting
from ..registry import register
from .judging import best_arm_verdicts
from .linear_arms import BEST_ARM, contexts_of, shift_of

#: Weights of a combination of arms below this are rounding.
NO_WEIGHT = 1e-9


@dataclass(frozen=True)
class LinGapE(Settings):
    """Settings of LinGapE.

    rule: whom to sample for a pair: "greedy", who takes most off the variance of its difference; "ratio", who lags
        behind most in the combination of arms that gives the difference with the smallest weights. The latter solves
        a linear program for each pair beforehand, which takes seconds for 50 arms.
    ridge: of the regression, in units of the largest squared length of a context.
    theta_max: bound on the norm of the parameters (in scaled units); None: the true one, where it is known.
    constants: "sound": the ellipsoid holds with probability 1 - delta, for all pairs at once; "published": with
        1 - delta / K^2, which is wider than need be.
    """

    rule: str = setting("greedy", choices=("greedy", "ratio"))
    ridge: float = setting(1.0, above=0.0)
    theta_max: float | None = setting(None, least=0.0)
    constants: str = setting("sound", choices=("sound", "published"))


class LinGapEConstants(NamedTuple):
    contexts: FloatArray  # (K, d)
    shift: float
    theta_max: float
    eps: float
    sigma: float
    delta: float
    ratios: FloatArray  # (K, K, K) how often each arm is to be sampled for each pair, as shares; empty: greedy
    no_ticket: FloatArray = NO_TICKET


class LinGapEState(NamedTuple):
    inverse: Inverse  # of shift I + sum of x x^T
    log_det: FloatArray  # (1,) log det of that, less that of shift I
    right: FloatArray  # (d,) sum of x times outcome
    pulls: IntArray  # (K,)
    means: FloatArray  # (K,) estimates
    status: IntArray  # (K,)
    beaten_by: IntArray  # (K,)
    counters: IntArray  # (4,) see below


TOTAL = 0  # samples
REFRESH_AT = 1  # samples at which the inverse is computed again
LEADER, RIVAL = 2, 3  # the pair to learn about


def init(settings: LinGapE, setup: Setup) -> tuple[LinGapEState, LinGapEConstants]:
    """Start from nothing; all arms are sampled once first."""
    contexts = contexts_of(setup, "lingape")
    K, d = contexts.shape
    # where contexts do not explain the means, what is known of their parameters says nothing of the means themselves
    known = setup.theta_max if setup.contexts is None or setup.explained else None
    theta_max = known if settings.theta_max is None else settings.theta_max
    if theta_max is None:
        raise InvalidInput("theta_max of LinGapE must be given where the true parameters are not known")
    constants = LinGapEConstants(
        contexts=contexts,
        shift=shift_of(settings.ridge, contexts),
        theta_max=float(theta_max),
        eps=float(setup.eps[0]),
        sigma=float(setup.known_sigma("lingape")[0]),
        delta=float(setup.delta) / (K * K if settings.constants == "published" else 1),
        ratios=ratios_of(contexts) if settings.rule == "ratio" else np.empty((0, 0, 0)),
    )
    state = LinGapEState(
        inverse=new_inverse(contexts),
        log_det=np.zeros(1),
        right=np.zeros(d),
        pulls=np.zeros(K, np.int64),
        means=np.zeros(K),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        counters=np.array([0, 2, 0, 0], np.int64),
    )
    invert(state.inverse, contexts, state.pulls, constants.shift)
    return state, constants


def ratios_of(contexts: FloatArray) -> FloatArray:
    """Return, for each pair, the shares |w| / sum |w| of the combination w x = x_i - x_j with the least sum |w|."""
    K = len(contexts)
    ratios = np.zeros((K, K, K))
    for i in range(K):
        for j in range(i + 1, K):
            weights = np.abs(least_combination(contexts, contexts[i] - contexts[j]))
            if not weights.any():  # equal contexts: nothing to learn, any arm will do
                weights[[i, j]] = 1.0
            ratios[i, j] = ratios[j, i] = weights / weights.sum()
    return ratios


def least_combination(contexts: FloatArray, y: FloatArray) -> FloatArray:
    """Return the weights w (K,) with the least sum |w| and w x = y."""
    from scipy.optimize import linprog  # slow to import

    K = len(contexts)
    equations = np.concatenate([contexts, -contexts]).T  # w is a difference of two parts, none of them negative
    solution = linprog(np.ones(2 * K), A_eq=equations, b_eq=y, method="highs-ds")
    if solution.x is None:
        raise InvalidInput(f"contexts of algorithm 'lingape' must suit rule='ratio': {solution.message}")
    weights: FloatArray = solution.x[:K] - solution.x[K:]
    weights[np.abs(weights) < NO_WEIGHT * np.abs(weights).max()] = 0.0
    return weights


@kernel
def radius(state: LinGapEState, constants: LinGapEConstants) -> float:
    """How far a mean may be from its estimate, in units of the root of its leverage."""
    return ridge_radius(state.log_det[0], constants.delta, constants.sigma, 1, constants.shift, constants.theta_max)


@kernel
def choose(
    state: LinGapEState, constants: LinGapEConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Return each arm once; then the arm that tells most about the pair."""
    if state.counters[TOTAL] < state.pulls.shape[0]:
        return state.counters[TOTAL], constants.no_ticket
    i, j = state.counters[LEADER], state.counters[RIVAL]
    arm = (
        most_telling(state, constants, i, j) if constants.ratios.shape[0] == 0 else most_behind(state, constants, i, j)
    )
    return arm, constants.no_ticket


@kernel
def most_telling(state: LinGapEState, constants: LinGapEConstants, i: int, j: int) -> int:
    """The arm whose sample takes most off the variance of the difference."""
    found, most = 0, -1.0
    for arm in range(state.pulls.shape[0]):
        along = projection(state.inverse, constants.contexts, i, j, arm)
        gain = along * along / (1.0 + state.inverse.leverages[arm])
        if gain > most * (1.0 + TIE):
            found, most = arm, gain
    return found


@kernel
def most_behind(state: LinGapEState, constants: LinGapEConstants, i: int, j: int) -> int:
    """The arm with the fewest samples for its share in the difference."""
    found, fewest = -1, 0.0
    for arm in range(state.pulls.shape[0]):
        share = constants.ratios[i, j, arm]
        if share > 0.0:
            lag = state.pulls[arm] / share
            if found < 0 or lag < fewest * (1.0 - TIE):
                found, fewest = arm, lag
    return found


@kernel
def update(
    state: LinGapEState,
    constants: LinGapEConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Add the sample; find the pair to learn about, or that there is none."""
    counters, contexts = state.counters, constants.contexts
    K = contexts.shape[0]
    state.log_det[0] += math.log1p(state.inverse.leverages[arm])
    state.pulls[arm] += 1
    counters[TOTAL] += 1
    for i in range(contexts.shape[1]):
        state.right[i] += contexts[arm, i] * outcome[0]
    if counters[TOTAL] >= counters[REFRESH_AT]:
        invert(state.inverse, contexts, state.pulls, constants.shift)
        counters[REFRESH_AT] = 2 * counters[TOTAL]
    else:
        add_sample(state.inverse, contexts, arm)
    if counters[TOTAL] < K:
        return
    leader = estimate(state.inverse, state.right, state.means)
    reach = radius(state, constants)
    rival, most = -1, -np.inf
    for k in range(K):
        if k != leader:
            ahead = state.means[k] - state.means[leader]
            ahead += reach * math.sqrt(variance(state.inverse, contexts, k, leader))
            if ahead > most:
                rival, most = k, ahead
    counters[LEADER], counters[RIVAL] = leader, rival
    if most <= constants.eps:
        return_best(leader, state.status, state.beaten_by)


@kernel
def done(state: LinGapEState, constants: LinGapEConstants) -> bool:
    """Whether no arm can be better than the leader by more than eps."""
    return state.status[0] != UNDECIDED


@allocating_kernel
def verdicts(state: LinGapEState, constants: LinGapEConstants) -> Verdicts:
    """Means by ridge regression, with intervals that hold at all times."""
    K = constants.contexts.shape[0]
    radii = np.full(K, np.inf)
    if state.counters[TOTAL] >= K:
        for k in range(K):
            radii[k] = radius(state, constants) * math.sqrt(max(0.0, state.inverse.leverages[k]))
    return best_arm_verdicts(state.status, state.beaten_by, state.means, radii, state.pulls)


ALGORITHM = Algorithm(
    name="lingape",
    summary="best arm by linear contexts: learn about the leader and who may beat it",
    paper="Xu, Honda, Sugiyama: A fully adaptive algorithm for pure exploration in linear bandits, 2018",
    guarantee=BEST_ARM + ", with parameters of norm at most theta_max",
    guarantees=True,
    setting="linear contexts",
    one_metric=True,
    settings=LinGapE,
    init=init,
    kernels=(
        Kernels(
            state=LinGapEState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            ranges={"counters": ("count", "count", "arm", "arm")},
            assumes="parameters of a known largest norm",
            takes_linear=True,
        ),
    ),
)

register(ALGORITHM)
