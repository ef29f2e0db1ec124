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
from ..kernels.evidence import log_evidence_above, log_sum
from .contract import Accepts, Kernels, Setup

#: Scales of the mixture: the largest is 16 sigma^2 / eps^2 samples (4096 where eps is 0), each next an eighth.
N_SCALES = 4
SCALE_WEIGHTS = (0.3, 0.3, 0.25, 0.15)
#: How evidence against an arm is shared among those that might dominate it: so much by their pilots, the rest evenly.
BY_PILOT = 0.8
#: Beyond this regret_weight there is no pilot: one more sample of every arm costs more regret than it saves.
MOST_WEIGHT_WITH_PILOT = 0.95
#: An arm whose evidence falls short is tested again after this share of the samples it seems to lack.
PATIENCE = 0.1
#: Pairs of arms are kept in matrices.
MOST_ARMS = 5000


class ScoutOptions(NamedTuple):
    eps: FloatArray  # (L,)
    sigma: FloatArray  # (L,)
    rhos: FloatArray  # (L, R) scales of the mixture
    log_weights: FloatArray  # (R,)
    threshold: float  # log(K / delta): what an arm's evidence must reach
    regret_weight: float
    first_pulls: int  # of every arm: the pilot, if there is one, and one that counts
    no_ticket: FloatArray  # (0,)


class ScoutState(NamedTuple):
    pulls: IntArray  # (K,) samples taken of each arm
    pilot: FloatArray  # (K, L) the first observation of each arm and metric: no evidence, but a hint who dominates
    piloted: IntArray  # (K, L) 1 where there is one
    counts: FloatArray  # (K, L) observations after the pilot
    sums: FloatArray  # (K, L) their sums
    means: FloatArray  # (K, L) their means
    half_logs: FloatArray  # (K, L, R) 1/2 log(1 + n / rho)
    variances: FloatArray  # (K, L, R) sigma^2 (n + rho) / n^2
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
    mean_gap: FloatArray  # (1,) of the arms not eliminated


TOTAL, N_UNDECIDED, REFRESH_AT, N_PILOTED = 0, 1, 2, 3


def init(regret_weight: float, setup: Setup) -> tuple[ScoutState, ScoutOptions]:
    """Fix the scales before the data, and start with every arm undecided."""
    K, L, R = setup.n_arms, setup.n_metrics, N_SCALES
    if K > MOST_ARMS:
        raise InvalidInput(f"number of arms of algorithm 'scout' must be at most {MOST_ARMS}, got {K}")
    with np.errstate(divide="ignore", invalid="ignore"):
        top = np.where((setup.eps > 0) & (setup.sigma > 0), 16.0 * (setup.sigma / setup.eps) ** 2, 4096.0)
    has_pilot = int(regret_weight <= MOST_WEIGHT_WITH_PILOT)
    options = ScoutOptions(
        eps=setup.eps.copy(),
        sigma=setup.sigma.copy(),
        rhos=top[:, None] / 8.0 ** np.arange(R),
        log_weights=np.log(SCALE_WEIGHTS),
        threshold=math.log(K / setup.delta),
        regret_weight=regret_weight,
        first_pulls=1 + has_pilot,
        no_ticket=np.empty(0),
    )
    state = ScoutState(
        pulls=np.zeros(K, np.int64),
        pilot=np.zeros((K, L)),
        piloted=np.full((K, L), 1 - has_pilot, np.int64),  # without one all count as in, and as equal
        counts=np.zeros((K, L)),
        sums=np.zeros((K, L)),
        means=np.zeros((K, L)),
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
        counters=np.array([0, K, 0, 0 if has_pilot else K * L], np.int64),
        mean_gap=np.zeros(1),
    )
    return state, options


@kernel
def choose(
    state: ScoutState, options: ScoutOptions, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Every arm once or twice (pilot, one that counts); then the most ambiguous pair's arm that tells more per cost."""
    K = state.pulls.shape[0]
    for wanted in range(1, options.first_pulls + 1):
        for k in range(K):
            if state.pulls[k] + pending[k] < wanted:
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
    return 1.0 / (n * (n + 1.0) * cost_of(state.gaps[arm], state.mean_gap[0], options.regret_weight))


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
            if state.piloted[arm, metric] == 0:
                state.piloted[arm, metric] = 1
                state.counters[N_PILOTED] += 1
                state.pilot[arm, metric] = outcome[metric]
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
    state.counts[arm, metric] += 1.0
    state.sums[arm, metric] += value
    n = state.counts[arm, metric]
    state.means[arm, metric] = state.sums[arm, metric] / n
    for r in range(options.log_weights.shape[0]):
        rho = options.rhos[metric, r]
        state.half_logs[arm, metric, r] = 0.5 * math.log(1.0 + n / rho)
        state.variances[arm, metric, r] = options.sigma[metric] * options.sigma[metric] * (n + rho) / (n * n)


@kernel
def evidence_bound(state: ScoutState, options: ScoutOptions, i: int, j: int, metric: int, difference: float) -> float:
    """The two-sided bound of `log_evidence_above`, from what is kept per arm; below zero where i looks worse."""
    if state.counts[i, metric] == 0.0 or state.counts[j, metric] == 0.0:
        return -np.inf
    if options.sigma[metric] == 0.0:
        return np.inf if difference > 0.0 else -np.inf
    if difference <= 0.0:
        return -0.5 * difference * difference / (state.variances[i, metric, 0] + state.variances[j, metric, 0])
    total = -np.inf
    for r in range(options.log_weights.shape[0]):
        variance = state.variances[i, metric, r] + state.variances[j, metric, r]
        price = options.log_weights[r] - state.half_logs[i, metric, r] - state.half_logs[j, metric, r]
        total = log_sum(total, price + 0.5 * difference * difference / variance)
    return total + math.log(4.0)


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
        renew_pair(state, options, arm, k)
        renew_pair(state, options, k, arm)
        if state.status[k] == UNDECIDED:
            renew_critical(state, k, arm)
    if state.status[arm] == UNDECIDED:
        find_critical(state, arm)


@kernel
def renew_critical(state: ScoutState, k: int, arm: int) -> None:
    """Keep `best` and `worst` of row k right after its entry for `arm` changed (or `arm` was eliminated)."""
    if state.best[k] == arm or state.worst[k] == arm or state.status[arm] == DOMINATED:
        find_critical(state, k)
    else:
        if state.best[k] < 0 or state.beats[k, arm] > state.beats[k, state.best[k]]:
            state.best[k] = arm
        if state.worst[k] < 0 or state.escapes[k, arm] < state.escapes[k, state.worst[k]]:
            state.worst[k] = arm


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
    settled = state.counters[N_PILOTED] == state.pilot.size
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
                if state.status[other] == UNDECIDED:
                    renew_critical(state, other, k)
    elif lacking < np.inf:
        state.test_at[k] = state.counters[TOTAL] + int(PATIENCE * state.pulls[k] * lacking / options.threshold)


@kernel
def against(state: ScoutState, options: ScoutOptions, k: int) -> float:
    """Log evidence that k is not Pareto-optimal: the sum over j of w_j times min_l e(y_j - y_k).

    If k is optimal every j has a metric in which it is not better, so each term, and the sum, is an e-process.
    """
    K, L = state.means.shape
    norm = -np.inf
    for j in range(K):
        if j != k:
            norm = log_sum(norm, pilot_lead(state, options, j, k))
    total = -np.inf
    for j in range(K):
        if j == k or state.status[j] == DOMINATED or state.beats[k, j] <= 0.0:
            continue
        evidence = np.inf
        for metric in range(L):
            difference = state.means[j, metric] - state.means[k, metric]
            n_j, n_k = state.counts[j, metric], state.counts[k, metric]
            evidence = min(
                evidence,
                log_evidence_above(
                    difference, n_j, n_k, options.sigma[metric], options.rhos[metric], options.log_weights, 0.0
                ),
            )
        share = (1.0 - BY_PILOT) / (K - 1) + BY_PILOT * math.exp(pilot_lead(state, options, j, k) - norm)
        total = log_sum(total, math.log(share) + evidence)
    return total


@kernel
def pilot_lead(state: ScoutState, options: ScoutOptions, j: int, k: int) -> float:
    """By how much j led k in every metric in the pilots, in units of sigma; 0 where one is missing or exact."""
    least = np.inf
    for metric in range(state.pilot.shape[1]):
        lead = 0.0
        if state.piloted[j, metric] and state.piloted[k, metric] and options.sigma[metric] > 0.0:
            lead = (state.pilot[j, metric] - state.pilot[k, metric]) / options.sigma[metric]
        least = min(least, lead)
    return least


@kernel
def in_favour(state: ScoutState, options: ScoutOptions, k: int) -> float:
    """Log evidence that k is within eps of optimal: the least over j of the mean over l of e(y_k + eps - y_j).

    If some j is better by more than eps in every metric, its mean over l is an e-process. Stops at the first j for
    which the evidence does not suffice.
    """
    L = state.means.shape[1]
    least = np.inf
    for step in range(-1, state.pulls.shape[0]):
        j = state.worst[k] if step < 0 else step  # the hardest first
        if j < 0 or j == k or state.status[j] == DOMINATED:
            continue
        total = -np.inf
        for metric in range(L):
            difference = state.means[k, metric] + options.eps[metric] - state.means[j, metric]
            n_k, n_j = state.counts[k, metric], state.counts[j, metric]
            total = log_sum(
                total,
                log_evidence_above(
                    difference, n_k, n_j, options.sigma[metric], options.rhos[metric], options.log_weights, 0.0
                ),
            )
        least = min(least, total - math.log(L))
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


@allocating_kernel
def verdicts(state: ScoutState, options: ScoutOptions) -> Verdicts:
    """Means of what counts as evidence, with intervals that all hold at once with probability 1 - delta."""
    K, L = state.means.shape
    radii = np.full((K, L), np.inf)
    for k in range(K):
        for metric in range(L):
            for r in range(options.log_weights.shape[0]):
                # two-sided normal mixture at level delta / (K L)
                exponent = options.threshold + math.log(L) - options.log_weights[r] + state.half_logs[k, metric, r]
                radius = math.sqrt(2.0 * exponent * state.variances[k, metric, r])
                radii[k, metric] = min(radii[k, metric], radius)
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
    accepts=Accepts(pending=True, unasked=True, missing=True),
)
