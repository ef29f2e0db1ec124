"""The linear scout while its model is tested: verdicts by the contexts, until the arms' own means contradict them.

Every sample counts twice: for the plane (`linear.py`), and for its arm alone (`tabular.py`). While too little is known
of how well the plane fits, verdicts are held back. If it does not fit they are withdrawn, and every arm is judged by
its own samples from then on. `docs/scout.md` has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...kernels.arrays import BoolArray, FloatArray, IntArray
from ...kernels.compile import allocating_kernel, kernel
from ...kernels.decisions import PRESENT, is_there
from ...kernels.dispatch import NO_TICKET, Basis, Verdicts
from ...kernels.evidence import note_value
from ...kernels.lack_of_fit import Room, log_fit, log_misfit, log_misfit_unknown
from ...kernels.noise import count_in, unexplained
from ...laws import FEW_VALUES
from ..contract import Accepts, Kernels, Setup
from . import linear as scout_linear
from . import tabular as scout_tabular
from .linear import N_SAMPLED, N_UNDECIDED, ROUNDING, TOTAL, LinearScoutConstants, LinearScoutState
from .tabular import ScoutConstants, ScoutState

#: What of delta is for a test that rejects a model that fits. Half of it is for all arms together, a quarter for the
#: mean of any arm, a quarter for the plane at any arm.
FOR_FIT = 0.02
#: Misfits are drawn from N(0, sigma^2 / rho), with any of these.
FIT_RHOS = np.array([4.0**k for k in range(-1, 7)])
#: The same for the misfit of one arm.
ARM_RHOS = np.array([8.0**k for k in range(3)])
#: The fit is looked at again after this share more samples.
FIT_GROWTH = 0.03
#: Verdicts are held until misfits of this share of the signal, in standard deviations, are out of the question, ...
MISFIT_OF_SIGNAL = 0.5
#: ... or of this share of eps, if that is more: by odds of exp(3), about 20 to 1, or less where few arms are spare.
MISFIT_OF_EPS = 0.5
ODDS, ODDS_PER_ARM, FEW_SPARE = 4.0, 0.25, 2


class FitLimits(NamedTuple):
    """When the model is rejected, and when verdicts by it are given."""

    covariance: FloatArray  # (d, d) of the contexts of all arms
    rhos: FloatArray  # (R,)
    thresholds: FloatArray  # (L,) what the evidence of all arms together must reach
    plane_threshold: float  # what an interval of the plane at any arm is made with
    arm_thresholds: FloatArray  # (K,) ... and of the mean of each arm
    arm_rhos: FloatArray  # (3,)
    odds: float  # that lift the hold, ...
    odds_per_arm: float  # ... or so much for each arm that is spare, if that is less


class LackOfFit(NamedTuple):
    """How well the contexts explain the means."""

    rejected: IntArray  # (1,) 1: they do not, the model is no longer used
    failed: IntArray  # (L,) 1: not those of this metric
    misfits: FloatArray  # (L,) log evidence against the model, as of the last look
    first_counts: IntArray  # (K,) sigma unknown: the samples of each arm that only predict
    first_sums: FloatArray  # (K, L) their sums, as those of the linear scout
    first_squares: FloatArray  # (L,) their sum of squares within arms
    fit_counters: IntArray  # (2,) samples at the next look; whether the first samples are in
    lefts: FloatArray  # (2, K) what the plane leaves of the means of all samples, and of the first ones
    room: Room


NEXT_LOOK, FIRST_ARE_IN = range(2)


class TestedScoutConstants(NamedTuple):
    linear: LinearScoutConstants
    own: ScoutConstants
    limits: FitLimits
    no_ticket: FloatArray = NO_TICKET


class TestedScoutState(NamedTuple):
    presence: IntArray  # (K,) whether the arm is there
    linear: LinearScoutState  # its status is what holds in all
    own: ScoutState  # each arm by its own samples
    fit: LackOfFit


def init(regret_weight: float, setup: Setup) -> tuple[TestedScoutState, TestedScoutConstants]:
    """Start both scouts, with what the test leaves of delta."""
    K, L = setup.n_arms, setup.n_metrics
    rest = replace(setup, delta=(1.0 - FOR_FIT) * setup.delta)
    linear, linear_constants = scout_linear.init(regret_weight, rest)
    d = linear.gram.shape[0]
    own, own_constants = scout_tabular.init(regret_weight, by_half_ranges(rest), pilots=False)
    linear.held[0] = K - d > FEW_SPARE
    for_test, contexts = FOR_FIT * setup.delta / L, linear_constants.contexts
    centre, known = contexts.mean(axis=0), linear_constants.sigma_known
    n_first = 0 if known.all() else K
    limits = FitLimits(
        covariance=contexts.T @ contexts / K - np.outer(centre, centre),
        rhos=FIT_RHOS,
        # sigma unknown: arms that bring new dimensions let the test begin again
        thresholds=-math.log(for_test / 2.0) + np.where(known, 0.0, math.log(2.0) * (1 + setup.entered.max())),
        plane_threshold=-math.log(for_test / 4.0),
        arm_thresholds=-np.log(for_test / 4.0 * setup.shares),
        arm_rhos=ARM_RHOS,
        odds=ODDS,
        odds_per_arm=ODDS_PER_ARM,
    )
    fit = LackOfFit(
        rejected=np.zeros(1, np.int64),
        failed=np.zeros(L, np.int64),
        misfits=np.full(L, -np.inf),
        first_counts=np.zeros(n_first, np.int64),
        first_sums=np.zeros((n_first, L)),
        first_squares=np.zeros(L),
        fit_counters=np.zeros(2, np.int64),
        lefts=np.zeros((2, K)),
        room=Room(
            left=np.zeros(K),
            weights=np.zeros(K),
            matrix=np.zeros((d, d)),
            fit_reach=np.full(d, d - 1, np.int64),
            step=np.zeros((d, 1)),
        ),
    )
    state = TestedScoutState(np.full(K, PRESENT, np.int64), linear, own, fit)
    return state, TestedScoutConstants(linear_constants, own_constants, limits)


def by_half_ranges(setup: Setup) -> Setup:
    """Return the setup with half the range as sigma of metrics with bounds, as the linear scout takes them."""
    if setup.bounds is None:
        return setup
    half_range = (setup.bounds[:, 1] - setup.bounds[:, 0]) / 2.0
    told = np.full((setup.n_arms, setup.n_metrics), np.nan) if setup.sigma is None else setup.sigma
    return replace(setup, sigma=np.where(np.isnan(told) & np.isfinite(half_range), half_range, told), bounds=None)


@kernel
def choose(
    state: TestedScoutState, constants: TestedScoutConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """The choice of the linear scout; without its model, that of the tabular one."""
    if state.fit.rejected[0] == 1:
        return scout_tabular.choose(state.own, constants.own, pending, rng)
    return scout_linear.choose(state.linear, constants.linear, pending, rng)


@kernel
def update(
    state: TestedScoutState,
    constants: TestedScoutConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Take in the outcome; look at the fit and judge at growing intervals."""
    if state.fit.rejected[0] == 1:
        scout_tabular.update(state.own, constants.own, arm, ticket, outcome, observed)
        if state.linear.counters[N_UNDECIDED] != state.own.counters[scout_tabular.N_UNDECIDED]:
            adopt(state.linear, state.own)
        return
    state.own.counters[scout_tabular.TOTAL] += 1
    state.own.pulls[arm] += 1
    for metric in range(outcome.shape[0]):
        note_value(state.own.samples.seen, state.own.samples.n_seen, metric, outcome[metric])
        count_in(state.own.samples, constants.own.model, arm, metric, outcome[metric])
    linear = state.linear
    scout_linear.take_in(linear, constants.linear, arm, outcome)
    note_first(state.linear, state.fit)
    if not scout_linear.check_is_due(linear):
        return
    scout_linear.refresh(linear, constants.linear)
    if linear.counters[TOTAL] >= state.fit.fit_counters[NEXT_LOOK]:
        look_at_fit(state.linear, constants.linear, state.fit, constants.limits)
    if state.fit.rejected[0] == 1:
        judge_alone(state.presence, state.linear, state.own, constants.own)
    elif constants.linear.many:
        scout_linear.check_many(linear, constants.linear)
    else:
        scout_linear.judge_all(linear, constants.linear)


@kernel
def note_first(linear: LinearScoutState, fit: LackOfFit) -> None:
    """Sigma unknown: keep the first samples apart, once they span all dimensions and there are two for each."""
    if fit.first_counts.shape[0] == 0 or fit.fit_counters[FIRST_ARE_IN] == 1:
        return
    if linear.counters[TOTAL] < 2 * linear.gram.shape[0] + 2 or not scout_linear.spans(linear):
        return
    fit.fit_counters[FIRST_ARE_IN] = 1
    for metric in range(linear.squares.shape[0]):
        fit.first_squares[metric] = linear.squares[metric]
        for k in range(linear.pulls.shape[0]):
            fit.first_counts[k] = linear.pulls[k]
            fit.first_sums[k, metric] = linear.sums[k, metric]


@kernel
def judge_again(state: TestedScoutState, constants: TestedScoutConstants) -> None:
    """Forget all verdicts and judge every arm by the statistics as they are; a model that was rejected remains so."""
    linear = state.linear
    for k in range(state.presence.shape[0]):
        linear.presence[k] = state.presence[k]
    can_judge = scout_linear.forget(linear, constants.linear)
    if state.fit.rejected[0] == 0 and can_judge:
        scout_linear.refresh(linear, constants.linear)
        look_at_fit(state.linear, constants.linear, state.fit, constants.limits)
    if state.fit.rejected[0] == 1:
        judge_alone(state.presence, state.linear, state.own, constants.own)
    elif can_judge:
        scout_linear.judge_again(linear, constants.linear)


@kernel
def judge_alone(presence: IntArray, linear: LinearScoutState, own: ScoutState, constants: ScoutConstants) -> None:
    """Judge every arm by its own samples."""
    for k in range(presence.shape[0]):
        own.presence[k] = presence[k]
    scout_tabular.judge_again(own, constants)
    adopt(linear, own)


@kernel
def adopt(linear: LinearScoutState, own: ScoutState) -> None:
    """Take over the verdicts by the arms' own samples."""
    linear.counters[N_UNDECIDED] = own.counters[scout_tabular.N_UNDECIDED]
    for k in range(linear.status.shape[0]):
        linear.status[k] = own.status[k]
        linear.beaten_by[k] = own.beaten_by[k]


@kernel
def look_at_fit(linear: LinearScoutState, constants: LinearScoutConstants, fit: LackOfFit, limits: FitLimits) -> None:
    """Reject the model if the means contradict it; lift the hold once they agree with it."""
    total, clear = linear.counters[TOTAL], True
    fit.fit_counters[NEXT_LOOK] = total + 1 + int(FIT_GROWTH * total)
    for metric in range(linear.sigma.shape[0]):
        note_left(linear, constants, fit, metric)
        fit.misfits[metric] = evidence_of_misfit(linear, constants, fit, limits, metric)
        if fit.misfits[metric] >= limits.thresholds[metric] or one_is_off(linear, constants, fit, limits, metric):
            fit.failed[metric] = 1
            fit.rejected[0] = 1
        elif linear.held[0] == 1 and clear:
            clear = agrees(linear, constants, fit, limits, metric)
    if clear:
        linear.held[0] = 0


@kernel
def note_left(linear: LinearScoutState, constants: LinearScoutConstants, fit: LackOfFit, metric: int) -> None:
    """Note what the plane leaves of the arms' own means."""
    for k in linear.sampled[: linear.counters[N_SAMPLED]]:
        left = unexplained(linear, constants, k, metric)
        fit.lefts[0, k], fit.room.left[k] = left, left
        if fit.first_counts.shape[0] > 0:
            n = fit.first_counts[k]
            before = fit.first_sums[k, metric] / n if n > 0 else 0.0
            fit.lefts[1, k] = left + before - linear.sums[k, metric] / linear.pulls[k] if n > 0 else 0.0


@kernel
def evidence_of_misfit(
    linear: LinearScoutState, constants: LinearScoutConstants, fit: LackOfFit, limits: FitLimits, metric: int
) -> float:
    """Log evidence that the means of all arms together are not linear."""
    sigma = linear.sigma[metric]
    arms = linear.sampled[: linear.counters[N_SAMPLED]]
    if arms.shape[0] <= linear.gram.shape[0]:
        return -np.inf
    contexts = constants.contexts
    if not constants.sigma_known[metric]:
        enough = constants.exact[metric] or linear.n_seen[metric] > FEW_VALUES
        if fit.fit_counters[FIRST_ARE_IN] == 0 or not enough:
            return -np.inf
        return log_misfit_unknown(
            arms,
            linear.pulls,
            fit.first_counts,
            fit.lefts[0],
            fit.lefts[1],
            linear.squares[metric],
            fit.first_squares[metric],
            contexts,
            limits.rhos,
            fit.room,
        )
    if sigma > 0.0:
        return log_misfit(arms, linear.pulls, sigma, contexts, limits.rhos, fit.room)
    for k in arms:
        mean = linear.centres[k, metric] + linear.sums[k, metric] / linear.pulls[k]
        if abs(fit.lefts[0, k]) > ROUNDING * (1.0 + abs(mean)):
            return np.inf
    return -np.inf


@kernel
def one_is_off(
    linear: LinearScoutState, constants: LinearScoutConstants, fit: LackOfFit, limits: FitLimits, metric: int
) -> bool:
    """True if the interval of an arm's own mean and that of the plane there do not meet. Sigma must be known."""
    sigma = linear.sigma[metric]
    if not constants.sigma_known[metric] or sigma == 0.0:
        return False
    for k in linear.sampled[: linear.counters[N_SAMPLED]]:
        n, own = float(linear.pulls[k]), np.inf
        for rho in limits.arm_rhos:
            exponent = limits.arm_thresholds[k] + math.log(limits.arm_rhos.shape[0]) + 0.5 * math.log1p(n / rho)
            own = min(own, math.sqrt(2.0 * exponent * (n + rho)) / n)
        if abs(fit.lefts[0, k]) <= sigma * own:
            continue
        a, b = scout_linear.variances_along(linear.inverse, constants.contexts, k, -1)
        plane = np.inf
        for r in range(constants.rhos.shape[1]):
            exponent = limits.plane_threshold - linear.log_prices[metric, r]
            plane = min(plane, math.sqrt(2.0 * exponent * (a + constants.rhos[metric, r] * b)))
        if abs(fit.lefts[0, k]) > sigma * (own + plane):
            return True
    return False


@kernel
def agrees(
    linear: LinearScoutState, constants: LinearScoutConstants, fit: LackOfFit, limits: FitLimits, metric: int
) -> bool:
    """True if the means speak against misfits of half the signal."""
    d = linear.gram.shape[0]
    arms = linear.sampled[: linear.counters[N_SAMPLED]]
    spare = float(arms.shape[0] - d)
    for k in range(linear.presence.shape[0]):
        spare += linear.pulls[k] == 0 and is_there(linear.presence[k])
    odds = min(limits.odds, limits.odds_per_arm * (spare - FEW_SPARE))
    if odds <= 0.0:
        return True
    if arms.shape[0] <= d:
        return False
    sigma, scatter = linear.sigma[metric], -1.0
    if not constants.sigma_known[metric]:
        free = linear.counters[TOTAL] - arms.shape[0]
        if free <= 2:
            return False
        scatter = linear.squares[metric]
        sigma = math.sqrt(scatter / free)
    if sigma == 0.0:
        return True
    signal = 0.0
    for i in range(d):
        for j in range(d):
            noise = sigma * sigma * linear.inverse[i, j]
            signal += limits.covariance[i, j] * (linear.theta[i, metric] * linear.theta[j, metric] - noise)
    misfit = max(MISFIT_OF_SIGNAL * math.sqrt(max(0.0, signal)), MISFIT_OF_EPS * constants.eps[metric])
    if misfit == 0.0:
        return False
    note_left(linear, constants, fit, metric)
    return log_fit(arms, linear.pulls, sigma, scatter, misfit, constants.contexts, fit.room) >= odds


@allocating_kernel
def verdicts(state: TestedScoutState, constants: TestedScoutConstants) -> Verdicts:
    """Estimates by the model, without intervals while verdicts are held; once it is rejected, by each arm's samples."""
    if state.fit.rejected[0] == 1:
        return scout_tabular.verdicts(state.own, constants.own)
    said = scout_linear.verdicts(state.linear, constants.linear)
    if state.linear.held[0] == 1:
        said.radii[:] = np.inf
    return said


@kernel
def done(state: TestedScoutState, constants: TestedScoutConstants) -> bool:
    """True if every arm that is there has its verdict."""
    return state.linear.counters[N_UNDECIDED] == 0


def basis(state: TestedScoutState) -> Basis:
    """Return what the verdicts rest on."""
    return Basis(None, bool(state.fit.rejected[0]), bool(state.linear.held[0]), state.fit.failed == 1)


def silence(constants: TestedScoutConstants, silent: BoolArray) -> TestedScoutConstants:
    """Say of which arms which metrics (K, L) are sums with a part that is no evidence, with the model and without."""
    linear, own = scout_linear.silence(constants.linear, silent), scout_tabular.silence(constants.own, silent)
    return constants._replace(linear=linear, own=own)


KERNELS = Kernels(
    state=TestedScoutState,
    choose=choose,
    update=update,
    verdicts=verdicts,
    done=done,
    judge_again=judge_again,
    intervals=True,
    accepts=Accepts(pending=True, unasked=True),
    assumes="means linear in the contexts, tested all the time",
    pools_noise=True,
    basis=basis,
    silence=silence,
)
