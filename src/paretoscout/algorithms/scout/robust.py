"""Scout for arms whose contexts explain only part: the model up to a declared misfit, and each arm's own samples.

Both kinds of scout run side by side, each with half of delta, and an arm has its verdict as soon as one of them is
sure: measured, if the samples of the arms themselves prove it, or by the model, if the contexts do. A test of the model
reopens what rests on it when it does not fit.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...kernels.algebra import factorise, solve
from ...kernels.arrays import BoolArray, FloatArray, IntArray, arm_at
from ...kernels.compile import allocating_kernel, kernel
from ...kernels.decisions import DOMINATED, GONE, PRESENT, UNDECIDED, is_there, verdicts_of_those_there
from ...kernels.dispatch import NO_TICKET, Basis, Verdicts
from ...kernels.evidence import log_evidence_along
from ...kernels.noise import may_reach
from ..contract import Accepts, Kernels, Setup
from . import linear as scout_linear
from . import tabular as scout_tabular
from .linear import (
    BEATEN,
    CHECK_AT,
    CHECK_GROWTH,
    MOST_GROWTH,
    N_UNDECIDED,
    TOTAL,
    LinearScoutConstants,
    LinearScoutState,
)
from .tabular import ScoutConstants, ScoutState

#: Scale of the mixture that tests the model, in samples of an arm.
FIT_SCALE = 10.0
#: With a misfit the model judges all arms after one more sample for each so many of them, and CHECK_GROWTH more of all
#: samples: more than that, in proportion, beyond so many arms, for it looks at pairs.
ARMS_PER_SAMPLE = 4
ARMS_PER_CHECK = 64
#: The pair that decides an arm is to be measured itself (beside ESCAPES and BEATEN of the linear scout).
MEASURE = 2


class RobustScoutConstants(NamedTuple):
    tabular: ScoutConstants
    linear: LinearScoutConstants
    fit_threshold: float  # log(L / delta): what the evidence against the model must reach
    no_ticket: FloatArray = NO_TICKET


class RobustScoutState(NamedTuple):
    presence: IntArray  # (K,) whether the arm is there
    tabular: ScoutState  # its verdicts are measured
    linear: LinearScoutState  # its status is what holds in all, measured or by the model
    survives: FloatArray  # (K,) the largest misfit that the verdict survives; infinite: it was measured
    escaped: BoolArray  # (K, K) row k, column j: it was measured that j is not better than k by eps everywhere
    rejected: IntArray  # (1,) 1: the contexts do not explain the means, the model is no longer used
    parameters: FloatArray  # (d, 1) at which the model fits the arms' means best, up to the misfit
    fit_reach: IntArray  # (d,) all d - 1
    fit_step: FloatArray  # (d, 1)


def init(regret_weight: float, setup: Setup, misfit: FloatArray) -> tuple[RobustScoutState, RobustScoutConstants]:
    """Start both, each with half of delta. The first samples of an arm count: many arms may never be sampled."""
    half = replace(setup, delta=setup.delta / 2.0)
    linear, linear_constants = scout_linear.init(regret_weight, half, misfit)
    tabular, tabular_constants = scout_tabular.init(regret_weight, half, pilots=False)
    d = linear.gram.shape[0]
    state = RobustScoutState(
        presence=np.full(setup.n_arms, PRESENT, np.int64),
        tabular=tabular,
        linear=linear,
        survives=np.zeros(setup.n_arms),
        escaped=np.zeros((setup.n_arms, setup.n_arms), np.bool_),
        rejected=np.zeros(1, np.int64),
        parameters=np.zeros((d, 1)),
        fit_reach=np.full(d, d - 1, np.int64),
        fit_step=np.zeros((d, 1)),
    )
    constants = RobustScoutConstants(
        tabular=tabular_constants,
        linear=linear_constants,
        fit_threshold=math.log(setup.n_metrics / setup.delta),
    )
    return state, constants


@kernel
def choose(
    state: RobustScoutState, constants: RobustScoutConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """The arm that tells most about the most ambiguous pair: by the model while it helps, else one of the two."""
    linear = state.linear
    if state.rejected[0] == 1:
        return scout_tabular.choose(state.tabular, constants.tabular, pending, rng)
    if not scout_linear.spans(linear):
        return scout_linear.choose(linear, constants.linear, pending, rng)
    k = scout_linear.most_ambiguous(linear)
    for _ in range(8):  # others may have become more ambiguous since they were last looked at
        look_again(state, constants, k)
        other = scout_linear.most_ambiguous(linear)
        if other == k:
            break
        k = other
    if linear.route[k] != MEASURE:
        return scout_linear.most_telling(linear, constants.linear, k, pending), constants.no_ticket
    arm, rival = k, linear.rival[k]
    if rival >= 0 and is_there(state.presence[rival]):
        gain_of_rival = scout_tabular.gain(state.tabular, constants.tabular, rival, pending, 0)
        if gain_of_rival > scout_tabular.gain(state.tabular, constants.tabular, arm, pending, 0):
            arm = rival
    return arm, constants.no_ticket


@kernel
def look_again(state: RobustScoutState, constants: RobustScoutConstants, k: int) -> None:
    """Renew the evidence of the pair that decides k."""
    linear, tabular = state.linear, state.tabular
    if linear.route[k] != MEASURE:
        scout_linear.look_again(linear, constants.linear, k)
    elif linear.rival[k] >= 0:
        j = linear.rival[k]
        beaten = scout_tabular.beats(tabular.samples, constants.tabular.model, k, j)
        progress = max(beaten, scout_tabular.held_by(tabular, constants.tabular, k, j))
        linear.progress[k] = progress + constants.linear.threshold - tabular.thresholds[k]


@kernel
def update(
    state: RobustScoutState,
    constants: RobustScoutConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Take in the outcome; judge by measurements at once, by the model at growing intervals."""
    scout_tabular.update(state.tabular, constants.tabular, arm, ticket, outcome, observed)
    scout_linear.take_in(state.linear, constants.linear, arm, outcome)
    adopt_measured(state)
    if state.rejected[0] == 0 and check_is_due(state.linear, constants.linear):
        judge_by_model(state, constants, scout_linear.refresh(state.linear, constants.linear))


@kernel
def check_is_due(state: LinearScoutState, constants: LinearScoutConstants) -> bool:
    """Whether the model is to judge all arms now; if so, say when to do so again. With a misfit that takes long."""
    total, K = state.counters[TOTAL], state.pulls.shape[0]
    if not scout_linear.check_is_due(state):
        return False
    if scout_linear.allows_misfit(constants):
        growth = min(MOST_GROWTH, CHECK_GROWTH * max(1.0, K / ARMS_PER_CHECK))
        state.counters[CHECK_AT] = total + 1 + K // ARMS_PER_SAMPLE + int(growth * total)
    return True


@kernel
def judge_by_model(state: RobustScoutState, constants: RobustScoutConstants, n_leaders: int) -> int:
    """Judge all arms that have no verdict by the model, unless it proves not to fit; return how many it eliminates."""
    linear = state.linear
    if misfit_is_proven(state, constants):
        reopen(state)
        return 0
    eliminated = 0
    for k in range(linear.pulls.shape[0]):
        if linear.status[k] == UNDECIDED and state.presence[k] != GONE:
            excuse(state, constants, k)
            scout_linear.judge(linear, constants.linear, k, n_leaders)
            if linear.status[k] == UNDECIDED:
                prefer_measuring(state, constants, k)
            else:
                state.survives[k] = largest_misfit(state, constants, k)
                eliminated += linear.status[k] == DOMINATED
    return eliminated


@kernel
def judge_again(state: RobustScoutState, constants: RobustScoutConstants) -> None:
    """Forget all verdicts and judge every arm by the statistics as they are; a model that was given up remains so."""
    K = state.presence.shape[0]
    for k in range(K):
        state.tabular.presence[k] = state.presence[k]
        state.linear.presence[k] = state.presence[k]
        state.survives[k] = 0.0
        for j in range(K):
            state.escaped[k, j] = False
    scout_tabular.judge_again(state.tabular, constants.tabular)
    can_judge = scout_linear.forget(state.linear, constants.linear)
    if state.rejected[0] == 1:
        reopen(state)
        return
    adopt_measured(state)
    if can_judge:
        n_leaders = scout_linear.refresh(state.linear, constants.linear)
        while judge_by_model(state, constants, n_leaders) > 0:
            pass  # who need not be escaped any more may have been all that stood in the way of others


@kernel
def adopt_measured(state: RobustScoutState) -> None:
    """Take over the verdicts that are measured."""
    linear, tabular = state.linear, state.tabular
    for k in range(linear.pulls.shape[0]):
        if tabular.status[k] == UNDECIDED or state.survives[k] == np.inf:
            continue
        if linear.status[k] == UNDECIDED:
            linear.status[k] = tabular.status[k]
            linear.beaten_by[k] = tabular.beaten_by[k]
            linear.counters[N_UNDECIDED] -= is_there(state.presence[k])
        if linear.status[k] == tabular.status[k]:
            linear.beaten_by[k] = tabular.beaten_by[k]
            state.survives[k] = np.inf


@kernel
def excuse(state: RobustScoutState, constants: RobustScoutConstants, k: int) -> None:
    """Mark the arms that k is known to escape by measurements: the model need not show it once more."""
    samples, model, eps = state.tabular.samples, constants.tabular.model, constants.tabular.eps
    threshold = state.tabular.thresholds[k]
    for j in range(state.linear.pulls.shape[0]):
        if j != k and not state.escaped[k, j] and may_reach(samples, model, eps, k, j, threshold):
            evidence = scout_tabular.escape(state.tabular, constants.tabular, k, j, threshold)
            state.escaped[k, j] = evidence >= threshold
        # an arm that measurements eliminate may be forgotten, even if the model accepted it before
        state.linear.excused[j] = state.escaped[k, j] or state.tabular.status[j] == DOMINATED


@kernel
def prefer_measuring(state: RobustScoutState, constants: RobustScoutConstants, k: int) -> None:
    """Turn to measuring the pair that decides k itself, where that is closer to a verdict or the model gives none."""
    linear, tabular = state.linear, state.tabular
    j = linear.rival[k]
    lead = constants.linear.threshold - tabular.thresholds[k]
    best, beaten, escaped = arm_at(tabular.best, k), -np.inf, -np.inf
    if best >= 0 and linear.status[best] != DOMINATED:
        beaten = scout_tabular.beats(tabular.samples, constants.tabular.model, k, best)
    hardest = arm_at(tabular.worst, k)
    if hardest >= 0 and scout_linear.allows_misfit(constants.linear) and linear.status[hardest] != DOMINATED:
        j = hardest  # by measurements; the model may have named any one that it does not tell from k
    if j >= 0:
        escaped = scout_tabular.held_by(tabular, constants.tabular, k, j)
    if best >= 0 and linear.status[best] != DOMINATED and (j < 0 or beaten > escaped):
        measured, rival = beaten + lead, best
    elif j >= 0:
        measured, rival = escaped + lead, j
    else:
        return
    if measured > linear.progress[k] or (linear.progress[k] <= 0.0 and scout_linear.allows_misfit(constants.linear)):
        linear.progress[k], linear.rival[k], linear.route[k] = measured, rival, MEASURE


@kernel
def largest_misfit(state: RobustScoutState, constants: RobustScoutConstants, k: int) -> float:
    """The largest misfit, the same in every metric, with which the verdict on k would have been reached."""
    linear = state.linear
    if linear.status[k] == DOMINATED:
        return misfit_of_pair(state, constants, k, linear.beaten_by[k], BEATEN)
    least = np.inf
    for j in range(linear.pulls.shape[0]):
        if state.presence[j] == GONE:
            continue
        if j != k and linear.status[j] == DOMINATED:  # the verdict on k rests on that on j
            least = min(least, state.survives[j])
        elif j != k and linear.excused[j] == 0:
            least = min(least, misfit_of_pair(state, constants, k, j, scout_linear.ESCAPES))
    return least


@kernel
def misfit_of_pair(state: RobustScoutState, constants: RobustScoutConstants, k: int, j: int, route: int) -> float:
    """The largest misfit with which the evidence of a pair reaches the threshold."""
    linear = state.linear
    L = linear.means.shape[1]
    a, b = scout_linear.pair_variances(linear, constants.linear, k, j)
    found = np.inf if route == BEATEN else 0.0
    if a < 0.0:  # equal by the model
        for metric in range(L):
            found = max(found, 0.5 * constants.linear.eps[metric])
        return found
    bias = scout_linear.bias_along(linear, constants.linear, k, j)
    for metric in range(L):
        sigma, rhos, prices = linear.sigma[metric], constants.linear.rhos[metric], linear.log_prices[metric]
        lead = linear.means[k, metric] - linear.means[j, metric]
        difference = -lead if route == BEATEN else lead + constants.linear.eps[metric]
        low, high = 0.0, max(difference, 0.0)  # the least difference that suffices lies between
        for _ in range(60):
            middle = 0.5 * (low + high)
            if log_evidence_along(middle, a, b, sigma, rhos, prices) >= constants.linear.threshold:
                high = middle
            else:
                low = middle
        room = (difference - high) / bias if bias > 0.0 else np.inf
        found = min(found, room) if route == BEATEN else max(found, room)
    for metric in range(L):
        if not constants.linear.sigma_known[metric]:  # with a larger misfit the bound on sigma would be larger too
            found = min(found, constants.linear.misfit[metric])
    return found


@kernel
def misfit_is_proven(state: RobustScoutState, constants: RobustScoutConstants) -> bool:
    """Whether the arms' means are further from the model than the declared misfit allows, in some metric."""
    for metric in range(state.linear.means.shape[1]):
        usable = state.linear.sigma_bounded[metric] == 1 and state.linear.sigma[metric] > 0.0
        if usable and evidence_of_misfit(state, constants, metric) >= constants.fit_threshold:
            return True
    return False


@kernel
def evidence_of_misfit(state: RobustScoutState, constants: RobustScoutConstants, metric: int) -> float:
    """Log e-value against "some parameters explain every arm's mean up to the misfit".

    The least over the parameters of sum_k n_k^2 (|mean_k - x_k^T theta| - misfit)_+^2 / (2 sigma^2 (n_k + rho)), less
    1/2 sum_k log(1 + n_k / rho). Convex: Newton's method; where that does not get to the minimum nothing is claimed.
    """
    linear = state.linear
    K, d = constants.linear.contexts.shape
    price = 0.0
    for k in range(K):
        price += 0.5 * math.log1p(linear.pulls[k] / FIT_SCALE)
    for i in range(d):
        state.parameters[i, 0] = linear.theta[i, metric]
    value = cost_of_fit(state, constants, metric, 0.0)
    for _ in range(50):
        if value - price < constants.fit_threshold:
            return value - price  # the minimum is lower still
        for i in range(d):
            state.fit_step[i, 0] = 0.0
            for j in range(i, d):
                linear.shifted[i, j] = 0.0
        for k in range(K):
            excess = residual(state, constants, k, metric, 0.0)
            n = float(linear.pulls[k])
            if excess == 0.0 or n == 0.0:
                continue
            weight = n * n / (n + FIT_SCALE)
            for i in range(d):
                x = constants.linear.contexts[k, i]
                state.fit_step[i, 0] += weight * excess * x
                for j in range(i, d):
                    linear.shifted[i, j] += weight * x * constants.linear.contexts[k, j]
        for i in range(d):
            linear.shifted[i, i] += 1e-9 * linear.gram[i, i]
        gradient = 0.0
        for i in range(d):
            gradient = max(gradient, abs(state.fit_step[i, 0]) / math.sqrt(linear.gram[i, i]))
        factorise(linear.shifted, state.fit_reach)
        solve(linear.shifted, state.fit_reach, state.fit_step)
        if gradient <= 1e-7 * linear.sigma[metric]:
            return value - price
        length = 1.0
        while length > 1e-6 and cost_of_fit(state, constants, metric, length) > value:
            length *= 0.5
        for i in range(d):
            state.parameters[i, 0] += length * state.fit_step[i, 0]
        value = cost_of_fit(state, constants, metric, 0.0)
    return -np.inf


@kernel
def residual(state: RobustScoutState, constants: RobustScoutConstants, k: int, metric: int, length: float) -> float:
    """What the parameters, a step further, leave unexplained of the mean of an arm beyond the misfit."""
    left = state.tabular.samples.means[k, metric]
    for i in range(constants.linear.contexts.shape[1]):
        left -= constants.linear.contexts[k, i] * (state.parameters[i, 0] + length * state.fit_step[i, 0])
    excess = abs(left) - constants.linear.misfit[metric]
    return math.copysign(excess, left) if excess > 0.0 else 0.0


@kernel
def cost_of_fit(state: RobustScoutState, constants: RobustScoutConstants, metric: int, length: float) -> float:
    """The sum that the parameters are to minimise, a step further."""
    total = 0.0
    for k in range(state.linear.pulls.shape[0]):
        n = float(state.linear.pulls[k])
        if n > 0.0:
            total += n * n / (n + FIT_SCALE) * residual(state, constants, k, metric, length) ** 2
    return 0.5 * total / state.linear.sigma[metric] ** 2


@kernel
def reopen(state: RobustScoutState) -> None:
    """The model does not fit: only what was measured remains."""
    linear, tabular = state.linear, state.tabular
    state.rejected[0] = 1
    linear.counters[N_UNDECIDED] = tabular.counters[scout_tabular.N_UNDECIDED]
    for k in range(linear.pulls.shape[0]):
        linear.status[k] = tabular.status[k]
        linear.beaten_by[k] = tabular.beaten_by[k]
        state.survives[k] = 0.0 if tabular.status[k] == UNDECIDED else np.inf


@allocating_kernel
def verdicts(state: RobustScoutState, constants: RobustScoutConstants) -> Verdicts:
    """Estimates by measurement or by the model, whichever is narrower; the intervals all hold at once."""
    measured = scout_tabular.verdicts(state.tabular, constants.tabular)
    linear = state.linear
    if state.rejected[0] == 1:
        return measured
    modelled = scout_linear.verdicts(linear, constants.linear)
    estimates, radii = measured.estimates, measured.radii
    for k in range(radii.shape[0]):
        for metric in range(radii.shape[1]):
            if modelled.radii[k, metric] < radii[k, metric]:
                radii[k, metric] = modelled.radii[k, metric]
                estimates[k, metric] = modelled.estimates[k, metric]
    return verdicts_of_those_there(linear.status, linear.beaten_by, estimates, radii, linear.pulls, state.presence)


@kernel
def done(state: RobustScoutState, constants: RobustScoutConstants) -> bool:
    """Whether every arm that is there has its verdict."""
    return state.linear.counters[N_UNDECIDED] == 0


def basis(state: RobustScoutState) -> Basis:
    """What each verdict rests on."""
    return Basis(np.where(state.linear.status == UNDECIDED, np.nan, state.survives), bool(state.rejected[0]))


KERNELS = Kernels(
    state=RobustScoutState,
    choose=choose,
    update=update,
    verdicts=verdicts,
    done=done,
    judge_again=judge_again,
    intervals=True,
    accepts=Accepts(pending=True, unasked=True),
    each_sigma=True,
    assumes="means linear in the contexts up to a misfit of {misfit}",
    pools_noise=True,
    basis=basis,
)
