"""Scout for arms that have nothing to do with one another: each arm is judged by its own samples."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import DOMINATED, FRONT, UNDECIDED, cost_of, margin, name_rivals
from ..kernels.dispatch import Verdicts
from ..kernels.evidence import (
    log_bernstein,
    log_bernstein_above,
    log_evidence_above,
    log_sum,
    log_surprise,
    log_surprise_above,
    log_t_mixture,
)
from .contract import Accepts, Kernels, Setup

#: Scales of the mixture: the largest is 16 sigma^2 / eps^2 samples (4096 where eps is 0, 1024 where sigma is unknown),
#: each next an eighth.
N_SCALES = 4
SCALE_WEIGHTS = (0.3, 0.3, 0.25, 0.15)
#: Rates of the mixture for outcomes with bounds, evenly weighted.
RATES = tuple(0.8 / 2.0**r for r in range(10))
#: How evidence against an arm is shared among those that might dominate it: so much by their pilots, the rest evenly.
BY_PILOT = 0.8
#: Beyond this regret_weight there is no pilot: one more sample of every arm costs more regret than it saves.
MOST_WEIGHT_WITH_PILOT = 0.95
#: An arm whose evidence falls short is tested again after this share of the samples it seems to lack.
PATIENCE = 0.1
#: Variances estimated from fewer samples are not relied on to rank pairs.
FEW = 20
#: Means that differ relatively by no more than this may be equal.
ROUNDING = 1e-12
#: Pairs of arms are kept in matrices.
MOST_ARMS = 5000

# What is known of the noise of a metric.
SIGMA, NORMAL, BOUNDS = 0, 1, 2


class ScoutOptions(NamedTuple):
    eps: FloatArray  # (L,)
    noise: IntArray  # (L,) what is known of it: SIGMA, NORMAL or BOUNDS
    sigma: FloatArray  # (L,) where it is known
    lows: FloatArray  # (L,) the lowest outcome, where there are bounds
    ranges: FloatArray  # (L,) what lies between the bounds
    rates: FloatArray  # (10,) of the mixture for outcomes with bounds
    log_rate_weights: FloatArray  # (10,)
    e_values: bool  # whether the evidence of all metrics may be added up; p-values may not
    by_pilot: float  # how much of the evidence is shared by the pilots; 0: there are none
    first_pulls: int  # samples of each arm before there is anything to compare
    cost: FloatArray  # (K,) of a sample, on average 1
    rhos: FloatArray  # (L, R) scales of the mixture
    log_weights: FloatArray  # (R,)
    threshold: float  # log(K / delta): what an arm's evidence must reach
    regret_weight: float
    no_ticket: FloatArray  # (0,)


class ScoutState(NamedTuple):
    pulls: IntArray  # (K,) samples taken of each arm
    pilot_scale: FloatArray  # (L,) by which pilots are compared, once all are in
    pilot: FloatArray  # (K, L) the first observation of each arm and metric: no evidence, but a hint who dominates
    piloted: IntArray  # (K, L) 1 where there is one
    counts: FloatArray  # (K, L) observations after the pilot
    sums: FloatArray  # (K, L) their sums
    means: FloatArray  # (K, L) their means
    squares: FloatArray  # (K, L) sums of their squared distances to the mean
    spreads: FloatArray  # (K, L) the same, each to the mean before it, in units of the range; where there are bounds
    half_logs: FloatArray  # (K, L, R) 1/2 log(1 + n / rho)
    variances: FloatArray  # (K, L, R) sigma^2 (n + rho) / n^2; an estimate where sigma is unknown
    beats: FloatArray  # (K, K) row k, column j: bound on the log evidence that j is better than k in every metric
    escapes: (
        FloatArray  # (K, K) row k, column j: bound on the log evidence that j is not better than k by eps everywhere
    )
    best: IntArray  # (K,) the j with the largest entry of `beats`
    worst: IntArray  # (K,) the j with the smallest entry of `escapes`
    gaps: FloatArray  # (K,) estimated gaps as of the last refresh
    test_at: IntArray  # (K,) total number of samples before which the arm is not tested again
    status: IntArray  # (K,)
    beaten_by: IntArray  # (K,)
    counters: IntArray  # (4,) samples in all, undecided arms, samples at the next refresh of gaps, pilots in
    mean_gap: FloatArray  # (1,)


TOTAL, N_UNDECIDED, REFRESH_AT, N_PILOTED = 0, 1, 2, 3


def init(regret_weight: float, setup: Setup, pilots: bool = True) -> tuple[ScoutState, ScoutOptions]:
    """Fix the scales before the data, and start with every arm undecided."""
    K, L, R = setup.n_arms, setup.n_metrics, N_SCALES
    if K > MOST_ARMS:
        raise InvalidInput(f"number of arms of algorithm 'scout' must be at most {MOST_ARMS}, got {K}")
    bounds = np.tile([-np.inf, np.inf], (L, 1)) if setup.bounds is None else setup.bounds
    with np.errstate(divide="ignore", invalid="ignore"):
        if setup.sigma is None:
            sigma, top = np.zeros(L), np.full(L, 1024.0)
            noise = np.where(np.isfinite(bounds).all(axis=1), BOUNDS, NORMAL)
        else:
            sigma, noise = setup.known_sigma("scout"), np.full(L, SIGMA)
            top = np.where((setup.eps > 0) & (sigma > 0), 16.0 * (sigma / setup.eps) ** 2, 4096.0)
    unknown = bool((noise == NORMAL).any())
    pilots = pilots and regret_weight <= MOST_WEIGHT_WITH_PILOT
    options = ScoutOptions(
        eps=setup.eps.copy(),
        noise=noise.astype(np.int64),
        sigma=sigma,
        lows=np.where(noise == BOUNDS, bounds[:, 0], 0.0),
        ranges=np.where(noise == BOUNDS, bounds[:, 1] - bounds[:, 0], 1.0),
        rates=np.array(RATES),
        log_rate_weights=np.full(len(RATES), -math.log(len(RATES))),
        e_values=not unknown,
        by_pilot=BY_PILOT if pilots else 0.0,
        first_pulls=1 + pilots + unknown,
        cost=setup.cost / setup.cost.mean(),
        rhos=top[:, None] / 8.0 ** np.arange(R),
        log_weights=np.log(SCALE_WEIGHTS),
        threshold=math.log(K / setup.delta),
        regret_weight=regret_weight,
        no_ticket=np.empty(0),
    )
    state = ScoutState(
        pulls=np.zeros(K, np.int64),
        pilot_scale=np.zeros(L),
        pilot=np.zeros((K, L)),
        piloted=np.zeros((K, L), np.int64),
        counts=np.zeros((K, L)),
        sums=np.zeros((K, L)),
        means=np.zeros((K, L)),
        squares=np.zeros((K, L)),
        spreads=np.zeros((K, L)),
        half_logs=np.zeros((K, L, R)),
        variances=np.full((K, L, R), np.inf),
        beats=np.full((K, K), -np.inf),
        escapes=np.full((K, K), -np.inf),
        best=np.full(K, -1, np.int64),
        worst=np.full(K, -1, np.int64),
        gaps=np.zeros(K),
        test_at=np.zeros(K, np.int64),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        counters=np.array([0, K, 0, 0], np.int64),
        mean_gap=np.zeros(1),
    )
    return state, options


@kernel
def choose(
    state: ScoutState, options: ScoutOptions, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Every arm a few times (pilots, and what it takes to compare); then the most ambiguous pair's more telling arm."""
    K = state.pulls.shape[0]
    for wanted in range(options.first_pulls):
        for k in range(K):
            if state.pulls[k] + pending[k] <= wanted:
                return k, options.no_ticket
    arm, rival, least = -1, -1, np.inf
    for k in range(K):
        if state.status[k] == UNDECIDED:
            j = state.best[k]
            progress = state.beats[k, j] if j >= 0 else -np.inf
            i = state.worst[k]
            if i >= 0 and state.escapes[k, i] > progress:
                j, progress = i, state.escapes[k, i]
            if j >= 0 and progress > 0.0:  # what is on its way counts as if it said what the rest said
                progress *= 1.0 + (pending[k] + pending[j]) / (state.pulls[k] + state.pulls[j])
            if progress < least or arm < 0:
                arm, rival, least = k, j, progress
    if rival >= 0 and gain(state, options, rival, pending) > gain(state, options, arm, pending):
        arm = rival
    return arm, options.no_ticket


@kernel
def gain(state: ScoutState, options: ScoutOptions, arm: int, pending: IntArray) -> float:
    """By how much one more sample shrinks the variance of an arm's mean, per cost."""
    n = np.inf
    for metric in range(state.counts.shape[1]):
        n = min(n, state.counts[arm, metric])
    n += pending[arm]
    if n == 0.0:
        return np.inf
    cost = cost_of(options.cost[arm], state.gaps[arm], state.mean_gap[0], options.regret_weight)
    return 1.0 / (n * (n + 1.0) * cost)


@kernel
def update(
    state: ScoutState,
    options: ScoutOptions,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Take in the outcome, renew the evidence on the pairs of this arm, and decide what is proven."""
    state.counters[TOTAL] += 1
    state.pulls[arm] += 1
    changed = False
    for metric in range(outcome.shape[0]):
        if observed[metric]:
            if options.by_pilot > 0.0 and state.piloted[arm, metric] == 0:
                state.piloted[arm, metric] = 1
                state.pilot[arm, metric] = outcome[metric]
                state.counters[N_PILOTED] += 1
                if state.counters[N_PILOTED] == state.pilot.size:
                    scale_pilots(state, options)
            else:
                count_in(state, options, arm, metric, outcome[metric])
                changed = True
    if not changed or state.status[arm] == DOMINATED:
        return
    renew_pairs(state, options, arm)
    if state.counters[TOTAL] >= state.counters[REFRESH_AT]:
        refresh_gaps(state)
    for k in range(state.pulls.shape[0]):
        # evidence on k grows with samples of k; of its likely dominator, or of the arm it has yet to escape, only
        # while these are not far better known than k itself
        critical = state.best[k] == arm or state.worst[k] == arm
        concerned = k == arm or (critical and state.pulls[arm] <= 4 * state.pulls[k])
        if concerned and state.status[k] == UNDECIDED and state.counters[TOTAL] >= state.test_at[k]:
            decide(state, options, k)


@kernel
def count_in(state: ScoutState, options: ScoutOptions, arm: int, metric: int, value: float) -> None:
    """Add an observation to the evidence."""
    if options.noise[metric] == BOUNDS:
        low, n = options.lows[metric], state.counts[arm, metric]
        expected = (0.5 + (state.sums[arm, metric] - low * n) / options.ranges[metric]) / (n + 1.0)
        state.spreads[arm, metric] += ((value - low) / options.ranges[metric] - expected) ** 2
    before = state.means[arm, metric]
    state.counts[arm, metric] += 1.0
    state.sums[arm, metric] += value
    n = state.counts[arm, metric]
    state.means[arm, metric] = state.sums[arm, metric] / n
    if n > 1.0:
        state.squares[arm, metric] += (value - before) * (value - state.means[arm, metric])
    if options.noise[metric] == SIGMA:
        variance = options.sigma[metric] * options.sigma[metric]
    elif options.noise[metric] == NORMAL:
        variance = state.squares[arm, metric] / n
    else:  # never zero, as the evidence is not
        variance = state.spreads[arm, metric] * options.ranges[metric] ** 2 / n
    for r in range(options.log_weights.shape[0]):
        rho = options.rhos[metric, r]
        state.half_logs[arm, metric, r] = 0.5 * math.log(1.0 + n / rho)
        state.variances[arm, metric, r] = variance * (n + rho) / (n * n)


@kernel
def scale_pilots(state: ScoutState, options: ScoutOptions) -> None:
    """Settle what a large lead in the pilots is: sigma, or how much they differ among the arms."""
    K, L = state.pilot.shape
    for metric in range(L):
        if options.noise[metric] == SIGMA:
            state.pilot_scale[metric] = options.sigma[metric]
            continue
        mean, square = 0.0, 0.0
        for k in range(K):
            mean += state.pilot[k, metric] / K
        for k in range(K):
            square += (state.pilot[k, metric] - mean) ** 2 / K
        state.pilot_scale[metric] = math.sqrt(square)


@kernel
def evidence_bound(state: ScoutState, options: ScoutOptions, i: int, j: int, metric: int, difference: float) -> float:
    """A bound from above on `pair_evidence`, from what is kept per arm; below zero where i looks worse.

    Sigma known: the two-sided bound of `log_evidence_above`. Short, so that it is inlined: a call would hand over all
    arrays of the state.
    """
    if state.counts[i, metric] == 0.0 or state.counts[j, metric] == 0.0:
        return -np.inf
    if options.noise[metric] != SIGMA:
        return bound_by_splits(state, options, i, j, metric, difference)
    if difference <= 0.0:
        variance = state.variances[i, metric, 0] + state.variances[j, metric, 0]
        return -0.5 * difference * difference / variance if variance > 0.0 else -np.inf
    if options.sigma[metric] == 0.0:
        return np.inf
    total = -np.inf
    for r in range(options.log_weights.shape[0]):
        variance = state.variances[i, metric, r] + state.variances[j, metric, r]
        price = options.log_weights[r] - state.half_logs[i, metric, r] - state.half_logs[j, metric, r]
        total = log_sum(total, price + 0.5 * difference * difference / variance)
    return total + math.log(4.0)


@kernel
def bound_by_splits(state: ScoutState, options: ScoutOptions, i: int, j: int, metric: int, difference: float) -> float:
    """`evidence_bound` where sigma is unknown: the least over some ways to share the difference between the arms."""
    noise, size = options.noise[metric], abs(difference)
    n_i, n_j = state.counts[i, metric], state.counts[j, metric]
    if noise == NORMAL:
        unit, scales, weights = 1.0, options.rhos[metric], options.log_weights
        scatter_i, scatter_j = state.squares[i, metric], state.squares[j, metric]
    else:
        unit, scales, weights = options.ranges[metric], options.rates, options.log_rate_weights
        scatter_i, scatter_j = state.spreads[i, metric], state.spreads[j, metric]
    # the mean of i is not below its bound
    most = size if noise == NORMAL else min(size, state.means[i, metric] - options.lows[metric])
    variance = state.variances[i, metric, 0] + state.variances[j, metric, 0]
    u = min(most, size * state.variances[i, metric, 0] / variance if variance > 0.0 else 0.5 * size)
    value = value_of_split(noise, u, size - u, n_i, n_j, scatter_i, scatter_j, unit, scales, weights)
    if n_i < FEW:  # its variance may look small by chance: it may be all that is off
        rest = size - most
        value = min(value, value_of_split(noise, most, rest, n_i, n_j, scatter_i, scatter_j, unit, scales, weights))
    if n_j < FEW:
        value = min(value, value_of_split(noise, 0.0, size, n_i, n_j, scatter_i, scatter_j, unit, scales, weights))
    if difference > 0.0 or value == -np.inf:
        return value
    # below what a difference of 0 says, by as much as the reverse is above it: never nearer to a verdict
    nothing = value_of_split(noise, 0.0, 0.0, n_i, n_j, scatter_i, scatter_j, unit, scales, weights)
    return 2.0 * nothing - value


@kernel
def value_of_split(
    noise: int,
    u: float,
    rest: float,
    n_i: float,
    n_j: float,
    scatter_i: float,
    scatter_j: float,
    unit: float,
    scales: FloatArray,
    log_weights: FloatArray,
) -> float:
    """Log evidence, sigma unknown, if arm i is off by u and arm j by the rest."""
    if noise == NORMAL:
        if n_i < 2.0 or n_j < 2.0:
            return -np.inf
        at_i = log_t_mixture(u, n_i, scatter_i / n_i, scales, log_weights)
        return log_surprise(at_i + log_t_mixture(rest, n_j, scatter_j / n_j, scales, log_weights))
    at_i = log_bernstein(u / unit, n_i, scatter_i, scales, log_weights)[0]
    return at_i + log_bernstein(rest / unit, n_j, scatter_j, scales, log_weights)[0]


@kernel
def renew_pair(state: ScoutState, options: ScoutOptions, k: int, j: int) -> None:
    """Renew row k, column j of both matrices."""
    L = state.means.shape[1]
    beats, escapes = np.inf, -np.inf
    for metric in range(L):
        lead = state.means[j, metric] - state.means[k, metric]
        beats = min(beats, evidence_bound(state, options, j, k, metric, lead))
        escapes = max(escapes, evidence_bound(state, options, k, j, metric, options.eps[metric] - lead))
    state.beats[k, j] = beats
    state.escapes[k, j] = escapes


@kernel
def renew_pairs(state: ScoutState, options: ScoutOptions, arm: int) -> None:
    """Renew all pairs of an arm, and who matters most to each arm."""
    for k in range(state.pulls.shape[0]):
        if k == arm or state.status[k] == DOMINATED:
            continue
        beat, escaped = state.beats[k, arm], state.escapes[k, arm]
        renew_pair(state, options, arm, k)
        renew_pair(state, options, k, arm)
        if state.status[k] == UNDECIDED:
            weaker = state.best[k] == arm and state.beats[k, arm] < beat
            easier = state.worst[k] == arm and state.escapes[k, arm] > escaped
            if weaker or easier:
                find_critical(state, k)
                continue
            if state.best[k] < 0 or state.beats[k, arm] > state.beats[k, state.best[k]]:
                state.best[k] = arm
            if state.worst[k] < 0 or state.escapes[k, arm] < state.escapes[k, state.worst[k]]:
                state.worst[k] = arm
    if state.status[arm] == UNDECIDED:
        find_critical(state, arm)


@kernel
def find_critical(state: ScoutState, k: int) -> None:
    """Look through row k for the most likely dominator and the hardest arm to escape."""
    state.best[k] = -1
    state.worst[k] = -1
    for j in range(state.pulls.shape[0]):
        if j != k and state.status[j] != DOMINATED:
            if state.best[k] < 0 or state.beats[k, j] > state.beats[k, state.best[k]]:
                state.best[k] = j
            if state.worst[k] < 0 or state.escapes[k, j] < state.escapes[k, state.worst[k]]:
                state.worst[k] = j


@kernel
def decide(state: ScoutState, options: ScoutOptions, k: int) -> None:
    """Eliminate or accept arm k if the evidence suffices; else say when to look again."""
    lacking = np.inf
    best, worst = state.best[k], state.worst[k]
    # before all pilots are in, the shares of the evidence are not settled
    settled = options.by_pilot == 0.0 or state.counters[N_PILOTED] == state.pilot.size
    if settled and best >= 0 and state.beats[k, best] >= options.threshold:
        lacking = options.threshold - against(state, options, k)
        if lacking <= 0.0:
            state.status[k] = DOMINATED
            state.beaten_by[k] = best
    if state.status[k] == UNDECIDED and (worst < 0 or state.escapes[k, worst] >= options.threshold):
        short = options.threshold - in_favour(state, options, k)
        lacking = min(lacking, short)
        if short <= 0.0:
            state.status[k] = FRONT
    if state.status[k] != UNDECIDED:
        state.counters[N_UNDECIDED] -= 1
        if state.status[k] == DOMINATED:
            for other in range(state.pulls.shape[0]):
                if state.status[other] == UNDECIDED and (state.best[other] == k or state.worst[other] == k):
                    find_critical(state, other)
    elif lacking < np.inf:
        state.test_at[k] = state.counters[TOTAL] + int(PATIENCE * state.pulls[k] * lacking / options.threshold)


@kernel
def pair_evidence(
    state: ScoutState, options: ScoutOptions, i: int, j: int, metric: int, shift: float, at_least: float
) -> float:
    """Log evidence that the mean of i plus `shift` is above that of j; where below `at_least`, a bound on it."""
    difference = state.means[i, metric] + shift - state.means[j, metric]
    if difference <= ROUNDING * (abs(state.means[i, metric]) + abs(state.means[j, metric])):
        return -np.inf  # of equal means, rounding may leave one above the other
    n_i, n_j = state.counts[i, metric], state.counts[j, metric]
    rhos, log_weights = options.rhos[metric], options.log_weights
    if options.noise[metric] == SIGMA:
        return log_evidence_above(difference, n_i, n_j, options.sigma[metric], rhos, log_weights, at_least)
    bound = evidence_bound(state, options, i, j, metric, difference)
    if bound < at_least:
        return bound
    if options.noise[metric] == NORMAL:
        variance_i, variance_j = state.squares[i, metric] / n_i, state.squares[j, metric] / n_j
        return log_surprise_above(difference, n_i, variance_i, n_j, variance_j, rhos, log_weights)
    unit = options.ranges[metric]
    place = (state.means[i, metric] - options.lows[metric]) / unit  # of the mean of i between the bounds
    spread_i, spread_j = state.spreads[i, metric], state.spreads[j, metric]
    return log_bernstein_above(
        difference / unit, place - 1.0, place, n_i, spread_i, n_j, spread_j, options.rates, options.log_rate_weights
    )


@kernel
def joined(options: ScoutOptions, a: float, b: float) -> float:
    """Log evidence of two hypotheses together: e-values may be added, of p-values the better one counts."""
    return log_sum(a, b) if options.e_values else max(a, b)


@kernel
def against(state: ScoutState, options: ScoutOptions, k: int) -> float:
    """Log evidence that k is not Pareto-optimal: the sum over j of w_j times min_l e(y_j - y_k).

    If k is optimal every j has a metric in which it is not better, so each term, and the sum, is an e-process.
    """
    K, L = state.means.shape
    norm = -np.inf
    for j in range(K):
        if j != k:
            norm = log_sum(norm, pilot_lead(state, j, k))
    total = -np.inf
    for j in range(K):
        if j == k or state.status[j] == DOMINATED or state.beats[k, j] <= 0.0:
            continue
        evidence = np.inf
        for metric in range(L):
            evidence = min(evidence, pair_evidence(state, options, j, k, metric, 0.0, 0.0))
        share = (1.0 - options.by_pilot) / (K - 1) + options.by_pilot * math.exp(pilot_lead(state, j, k) - norm)
        total = joined(options, total, math.log(share) + evidence)
    return total


@kernel
def pilot_lead(state: ScoutState, j: int, k: int) -> float:
    """By how much j led k in every metric in the pilots; 0 where there is no scale to go by."""
    least = np.inf
    for metric in range(state.pilot.shape[1]):
        lead = 0.0
        if state.pilot_scale[metric] > 0.0:
            lead = (state.pilot[j, metric] - state.pilot[k, metric]) / state.pilot_scale[metric]
        least = min(least, lead)
    return least


@kernel
def escape(state: ScoutState, options: ScoutOptions, k: int, j: int) -> float:
    """Log evidence that j is not better than k by eps everywhere: the mean over l of e(y_k + eps - y_j)."""
    total = -np.inf
    for metric in range(state.means.shape[1]):
        evidence = pair_evidence(state, options, k, j, metric, options.eps[metric], 0.0)
        if evidence > 0.0:  # below, it may be a mere bound
            total = joined(options, total, evidence)
    return total - math.log(state.means.shape[1])


@kernel
def in_favour(state: ScoutState, options: ScoutOptions, k: int) -> float:
    """Log evidence that k is within eps of optimal: the least over j of the mean over l of e(y_k + eps - y_j).

    If some j is better by more than eps in every metric, its mean over l is an e-process. Stops at the first j for
    which the evidence does not suffice.
    """
    least = np.inf
    for step in range(-1, state.pulls.shape[0]):
        j = state.worst[k] if step < 0 else step  # the hardest first
        if j < 0 or j == k or state.status[j] == DOMINATED:
            continue
        least = min(least, escape(state, options, k, j))
        if least < options.threshold:
            break
    return least


@kernel
def refresh_gaps(state: ScoutState) -> None:
    """Estimate the gap of each arm that is not eliminated; again after 5% more samples."""
    K = state.pulls.shape[0]
    total, n = 0.0, 0
    for k in range(K):
        if state.status[k] == DOMINATED:
            continue
        state.gaps[k] = 0.0
        for j in range(K):
            if state.status[j] != DOMINATED:
                state.gaps[k] = max(state.gaps[k], margin(j, k, state.means))
    for k in range(K):
        total += state.gaps[k]
        n += 1
    state.mean_gap[0] = total / n
    state.counters[REFRESH_AT] = state.counters[TOTAL] + max(1, state.counters[TOTAL] // 20)


@kernel
def radius(state: ScoutState, options: ScoutOptions, k: int, metric: int) -> float:
    """Half of a two-sided interval at level delta / (K L): the narrowest that one term of the mixture gives."""
    n = state.counts[k, metric]
    needed = options.threshold + math.log(state.counts.shape[1])
    narrowest = np.inf
    if n == 0.0:
        return narrowest
    if options.noise[metric] == BOUNDS:
        for r in range(options.rates.shape[0]):
            rate = options.rates[r]
            price = -(math.log1p(-rate) + rate) * state.spreads[k, metric]
            exponent = needed + math.log(2.0) - options.log_rate_weights[r] + price
            narrowest = min(narrowest, options.ranges[metric] * min(1.0, exponent / (rate * n)))
        return narrowest
    for r in range(options.log_weights.shape[0]):
        exponent = needed - options.log_weights[r] + state.half_logs[k, metric, r]
        if options.noise[metric] == SIGMA:
            narrowest = min(narrowest, math.sqrt(2.0 * exponent * state.variances[k, metric, r]))
        elif n > 1.0:
            kappa = options.rhos[metric, r] / (n + options.rhos[metric, r])
            grown = math.exp(min(2.0 * exponent / n, 700.0))  # what (s^2 + u^2) / (s^2 + kappa u^2) must reach
            if kappa * grown < 1.0:
                square = state.squares[k, metric] / n * (grown - 1.0) / (1.0 - kappa * grown)
                narrowest = min(narrowest, math.sqrt(square))
    return narrowest


@allocating_kernel
def verdicts(state: ScoutState, options: ScoutOptions) -> Verdicts:
    """Means of what counts as evidence, with intervals that all hold at once with probability 1 - delta."""
    K, L = state.means.shape
    radii = np.full((K, L), np.inf)
    for k in range(K):
        for metric in range(L):
            radii[k, metric] = radius(state, options, k, metric)
    rival = state.beaten_by.copy()
    name_rivals(rival, state.means, radii, state.status)
    return Verdicts(state.status.copy(), rival, state.means.copy(), radii, state.pulls.copy())


@kernel
def done(state: ScoutState, options: ScoutOptions) -> bool:
    """Whether every arm has its verdict."""
    return state.counters[N_UNDECIDED] == 0


KERNELS = Kernels(
    state=ScoutState,
    choose=choose,
    update=update,
    verdicts=verdicts,
    done=done,
    ranges={"counters": ("count", "arms", "count", "count")},
    accepts=Accepts(pending=True, unasked=True, missing=True),
)
