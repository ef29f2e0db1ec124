"""Scout for arms that have nothing to do with one another: each arm is judged by its own samples."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...errors import InvalidInput
from ...kernels.arrays import BoolArray, FloatArray, IntArray
from ...kernels.compile import allocating_kernel, kernel
from ...kernels.decisions import (
    DOMINATED,
    DOUBTFUL,
    FRONT,
    GONE,
    PRESENT,
    UNDECIDED,
    cost_of,
    is_there,
    margin,
    verdicts_of_those_there,
)
from ...kernels.dispatch import NO_TICKET, Verdicts
from ...kernels.evidence import (
    FEW_VALUES,
    log_sum,
    note_value,
)
from ...kernels.noise import BOUNDS, NORMAL, SIGMA, count_in, evidence_bound, pair_evidence, radius
from ..contract import RESERVE, Accepts, Kernels, Setup

#: Scales of the mixture: the largest is 16 sigma^2 / eps^2 samples, with the median of the arms' sigmas that are not 0
#: (4096 where eps is 0, 1024 where sigma is unknown), each next an eighth.
N_SCALES = 4
SCALE_WEIGHTS = (0.3, 0.3, 0.25, 0.15)
#: Rates of the mixture for outcomes with bounds, evenly weighted.
RATES = tuple(0.8 / 2.0**r for r in range(10))
#: How evidence against an arm is shared among those that might dominate it: so much goes to those there when it came,
#: by their pilots or evenly; RESERVE / 2^r to those of the r-th addition after it. Never renormalised.
THERE_WHEN_IT_CAME = 0.9
BY_PILOT = 0.8
#: An arm has to be escaped with this share of what its rival may spend; doubtful ones share RESERVE.
TO_ESCAPE = 0.95
#: Beyond this regret_weight there is no pilot: one more sample of every arm costs more regret than it saves.
MOST_WEIGHT_WITH_PILOT = 0.95
#: An arm whose evidence falls short is tested again after this share of the samples it seems to lack.
PATIENCE = 0.1
#: Pairs of arms are kept in matrices.
MOST_ARMS = 5000


class ScoutConstants(NamedTuple):
    eps: FloatArray  # (L,)
    noise: IntArray  # (L,) what is known of it: SIGMA, NORMAL or BOUNDS
    sigma: FloatArray  # (K, L) where it is known
    exact: BoolArray  # (L,) whether a number that never varied is certain
    lows: FloatArray  # (L,) the lowest outcome, where there are bounds
    ranges: FloatArray  # (L,) what lies between the bounds
    rates: FloatArray  # (10,) of the mixture for outcomes with bounds
    log_rate_weights: FloatArray  # (10,)
    e_values: bool  # whether the evidence of all metrics may be added up; p-values may not
    by_pilot: float  # how much of the evidence is shared by the pilots; 0: there are none
    first_pulls: int  # samples of each arm before there is anything to compare
    cost: FloatArray  # (K,) of a sample, on average 1
    noisiness: FloatArray  # (K,) squared sigma over that of the noisiest arm
    rhos: FloatArray  # (L, R) scales of the mixture
    log_weights: FloatArray  # (R,)
    thresholds: FloatArray  # (K,) log(1 / (share of the arm times delta)): what an arm's evidence must reach
    log_doubtful: FloatArray  # (K,) log of the share with which an arm is escaped while it is doubtful
    entered: IntArray  # (K,) with which addition the arm came
    companions: FloatArray  # (K,) how many arms came with it, itself among them
    regret_weight: float
    no_ticket: FloatArray = NO_TICKET


class ScoutState(NamedTuple):
    presence: IntArray  # (K,) whether the arm is there
    pulls: IntArray  # (K,) samples taken of each arm
    pilot_scale: FloatArray  # (L,) by which pilots are compared; scratch
    pilot: FloatArray  # (K, L) the first observation of each arm and metric: no evidence, but a hint who dominates
    piloted: IntArray  # (K, L) 1 where there is one
    counts: FloatArray  # (K, L) observations after the pilot
    centres: FloatArray  # (K, L) the first of them
    sums: FloatArray  # (K, L) the sums of their distances to the first
    means: FloatArray  # (K, L) their means
    squares: FloatArray  # (K, L) sums of their squared distances to the mean
    spreads: FloatArray  # (K, L) the same, each to the mean before it, in units of the range; where there are bounds
    seen: FloatArray  # (L, 6) distinct values, while there are few
    n_seen: IntArray  # (L,) how many
    half_logs: FloatArray  # (K, L, R) 1/2 log(1 + n / rho)
    variances: FloatArray  # (K, L, R) sigma^2 (n + rho) / n^2; an estimate where sigma is unknown
    beats: FloatArray  # (K, K) row k, column j: bound on the log evidence that j is better than k in every metric
    escapes: FloatArray  # (K, K) row k, column j: bound on `escape`, that j is not better than k by eps everywhere
    best: IntArray  # (K,) the j with the largest entry of `beats`
    worst: IntArray  # (K,) the j with the smallest entry of `escapes`
    gaps: FloatArray  # (K,) estimated gaps as of the last refresh
    test_at: IntArray  # (K,) total number of samples before which the arm is not tested again
    status: IntArray  # (K,)
    beaten_by: IntArray  # (K,)
    counters: IntArray  # (3,) samples in all, undecided arms, samples at the next refresh of gaps
    mean_gap: FloatArray  # (1,)


TOTAL, N_UNDECIDED, REFRESH_AT = 0, 1, 2


def init(regret_weight: float, setup: Setup, pilots: bool = True) -> tuple[ScoutState, ScoutConstants]:
    """Fix the scales before the data, and start with every arm undecided."""
    K, L, R = setup.n_arms, setup.n_metrics, N_SCALES
    if K > MOST_ARMS:
        raise InvalidInput(f"number of arms of algorithm 'scout' must be at most {MOST_ARMS}, got {K}")
    bounds = np.tile([-np.inf, np.inf], (L, 1)) if setup.bounds is None else setup.bounds
    sigma = np.full((K, L), np.nan) if setup.sigma is None else setup.sigma
    told = ~np.isnan(sigma[0])
    noise = np.where(told, SIGMA, np.where(np.isfinite(bounds).all(axis=1), BOUNDS, NORMAL))
    sigma = np.where(told, sigma, 0.0)
    # of the arms there at the beginning: evidence on a pair must not change its scales when others come
    usual = np.array(
        [np.median(of_metric[of_metric > 0]) if of_metric.any() else 0.0 for of_metric in sigma[setup.entered == 0].T]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        top = np.where((setup.eps > 0) & (usual > 0), 16.0 * (usual / setup.eps) ** 2, np.where(told, 4096.0, 1024.0))
        noisiness = np.where(sigma.max(axis=0) > 0.0, (sigma / sigma.max(axis=0)) ** 2, 1.0).mean(axis=1)
        thresholds = -np.log(setup.shares * setup.delta)
        log_doubtful = np.log(RESERVE * setup.shares)
    unknown = bool((noise == NORMAL).any())
    pilots = pilots and regret_weight <= MOST_WEIGHT_WITH_PILOT
    constants = ScoutConstants(
        eps=setup.eps.copy(),
        noise=noise.astype(np.int64),
        sigma=sigma,
        exact=setup.exact.copy(),
        lows=np.where(noise == BOUNDS, bounds[:, 0], 0.0),
        ranges=np.where(noise == BOUNDS, bounds[:, 1] - bounds[:, 0], 1.0),
        rates=np.array(RATES),
        log_rate_weights=np.full(len(RATES), -math.log(len(RATES))),
        e_values=not unknown,
        by_pilot=BY_PILOT if pilots else 0.0,
        first_pulls=1 + pilots + unknown,
        cost=setup.cost / setup.cost.mean(),
        noisiness=noisiness,
        rhos=top[:, None] / 8.0 ** np.arange(R),
        log_weights=np.log(SCALE_WEIGHTS),
        thresholds=thresholds,
        log_doubtful=log_doubtful,
        entered=setup.entered.copy(),
        companions=np.bincount(setup.entered)[setup.entered].astype(float),
        regret_weight=regret_weight,
    )
    state = ScoutState(
        presence=np.full(K, PRESENT, np.int64),
        pulls=np.zeros(K, np.int64),
        pilot_scale=np.zeros(L),
        pilot=np.zeros((K, L)),
        piloted=np.zeros((K, L), np.int64),
        counts=np.zeros((K, L)),
        centres=np.zeros((K, L)),
        sums=np.zeros((K, L)),
        means=np.zeros((K, L)),
        squares=np.zeros((K, L)),
        spreads=np.zeros((K, L)),
        seen=np.zeros((L, FEW_VALUES + 1)),
        n_seen=np.zeros(L, np.int64),
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
        counters=np.array([0, K, 0], np.int64),
        mean_gap=np.zeros(1),
    )
    return state, constants


@kernel
def choose(
    state: ScoutState, constants: ScoutConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Every arm a few times (pilots, and what it takes to compare); then the most ambiguous pair's more telling arm."""
    K = state.pulls.shape[0]
    for wanted in range(constants.first_pulls):
        for k in range(K):
            if is_there(state.presence[k]) and state.pulls[k] + pending[k] <= wanted:
                return k, constants.no_ticket
    arm, rival, least = -1, -1, np.inf
    silent, its_rival, n_there, total = -1, -1, 0, 0
    for k in range(K):
        if not is_there(state.presence[k]):
            continue
        n_there += 1
        total += state.pulls[k] + pending[k]
        if state.status[k] == UNDECIDED:
            j = state.best[k]
            progress = beaten = state.beats[k, j] if j >= 0 else -np.inf
            i = state.worst[k]
            if i >= 0 and state.escapes[k, i] > progress:
                j, progress = i, state.escapes[k, i]
            left = j >= 0 and not is_there(state.presence[j])
            # nothing can be said of it yet, nor that it is dominated if it is; or its rival cannot be measured
            if left or (beaten == -np.inf and progress <= 0.0):
                if silent < 0 or state.pulls[k] + pending[k] < state.pulls[silent] + pending[silent]:
                    silent, its_rival = k, j
                continue
            if j >= 0 and progress > 0.0:  # what is on its way counts as if it said what the rest said
                progress *= 1.0 + (pending[k] + pending[j]) / (state.pulls[k] + state.pulls[j])
            progress -= constants.thresholds[k]
            if progress < least or arm < 0:
                arm, rival, least = k, j, progress
    # these come first, but if that is of no avail they have no claim to more than an equal part of the samples
    if arm < 0 or (silent >= 0 and (state.pulls[silent] + pending[silent]) * n_there <= total):
        arm, rival = silent, its_rival
    if rival >= 0 and not is_there(state.presence[rival]):
        rival = -1
    if rival >= 0 and gain(state, constants, rival, pending) > gain(state, constants, arm, pending):
        arm = rival
    return arm, constants.no_ticket


@kernel
def gain(state: ScoutState, constants: ScoutConstants, arm: int, pending: IntArray) -> float:
    """By how much one more sample shrinks the variance of an arm's mean, per cost."""
    n = np.inf
    for metric in range(state.counts.shape[1]):
        n = min(n, state.counts[arm, metric])
    n += pending[arm]
    if n == 0.0:
        return np.inf
    cost = cost_of(constants.cost[arm], state.gaps[arm], state.mean_gap[0], constants.regret_weight)
    return constants.noisiness[arm] / (n * (n + 1.0) * cost)


@kernel
def update(
    state: ScoutState,
    constants: ScoutConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Take in the outcome, renew the evidence on the pairs of this arm, and decide what is proven."""
    state.counters[TOTAL] += 1
    state.pulls[arm] += 1
    changed, enough = False, False
    for metric in range(outcome.shape[0]):
        if observed[metric]:
            enough = note_value(state.seen, state.n_seen, metric, outcome[metric]) or enough
            if constants.by_pilot > 0.0 and state.piloted[arm, metric] == 0:
                state.piloted[arm, metric] = 1
                state.pilot[arm, metric] = outcome[metric]
            else:
                count_in(state, constants, arm, metric, outcome[metric])
                changed = True
    if enough:  # what was not relied on so far, of any arm, says something now
        renew_all(state, constants)
    if not changed or state.status[arm] == DOMINATED or state.presence[arm] == GONE:
        return
    if not enough:
        renew_pairs(state, constants, arm)
    if state.counters[TOTAL] >= state.counters[REFRESH_AT]:
        refresh_gaps(state)
    for k in range(state.pulls.shape[0]):
        # evidence on k grows with samples of k; of its likely dominator, or of the arm it has yet to escape, only
        # while these are not far better known than k itself
        critical = state.best[k] == arm or state.worst[k] == arm
        concerned = k == arm or (critical and state.pulls[arm] <= 4 * state.pulls[k])
        waits = state.status[k] == UNDECIDED and state.presence[k] != GONE
        if concerned and waits and state.counters[TOTAL] >= state.test_at[k]:
            decide(state, constants, k)


@kernel
def pilots_are_in(state: ScoutState, constants: ScoutConstants, k: int) -> bool:
    """Whether all that are there, and came no later than k, have their pilots."""
    if constants.by_pilot > 0.0:
        for j in range(state.pulls.shape[0]):
            if constants.entered[j] <= constants.entered[k] and is_there(state.presence[j]):
                for metric in range(state.pilot.shape[1]):
                    if state.piloted[j, metric] == 0:
                        return False
    return True


@kernel
def scale_pilots(state: ScoutState, constants: ScoutConstants, k: int) -> bool:
    """Work out how much the pilots of those that came no later than k differ; False: some, or all, are not in.

    Who left before its pilot leaves no hint to go by: then only what is shared evenly counts.
    """
    K, L = state.pilot.shape
    if constants.by_pilot == 0.0:
        return False
    for metric in range(L):
        mean, square, n = 0.0, 0.0, 0
        for j in range(K):
            if constants.entered[j] <= constants.entered[k]:
                if state.piloted[j, metric] == 0:
                    return False
                n += 1
                mean += state.pilot[j, metric]
        mean /= n
        for j in range(K):
            if constants.entered[j] <= constants.entered[k]:
                square += (state.pilot[j, metric] - mean) ** 2
        state.pilot_scale[metric] = math.sqrt(square / n)
    return True


@kernel
def renew_pair(state: ScoutState, constants: ScoutConstants, k: int, j: int) -> None:
    """Renew row k, column j of both matrices."""
    L = state.means.shape[1]
    beats, escapes = np.inf, -np.inf
    for metric in range(L):
        lead = state.means[j, metric] - state.means[k, metric]
        beats = min(beats, evidence_bound(state, constants, j, k, metric, lead))
        escapes = max(escapes, evidence_bound(state, constants, k, j, metric, constants.eps[metric] - lead))
    state.beats[k, j] = beats
    state.escapes[k, j] = escapes + log_share_to_escape(state, constants, j)


@kernel
def log_share_to_escape(state: ScoutState, constants: ScoutConstants, j: int) -> float:
    """What it takes off the evidence that j is the one to be escaped."""
    return constants.log_doubtful[j] if state.presence[j] == DOUBTFUL else math.log(TO_ESCAPE)


@kernel
def renew_pairs(state: ScoutState, constants: ScoutConstants, arm: int) -> None:
    """Renew all pairs of an arm, and who matters most to each arm."""
    for k in range(state.pulls.shape[0]):
        if k == arm or state.status[k] == DOMINATED or state.presence[k] == GONE:
            continue
        beat, escaped = state.beats[k, arm], state.escapes[k, arm]
        renew_pair(state, constants, arm, k)
        renew_pair(state, constants, k, arm)
        if state.status[k] == UNDECIDED:
            weaker = state.best[k] == arm and state.beats[k, arm] < beat
            easier = state.worst[k] == arm and state.escapes[k, arm] > escaped
            if weaker or easier:
                find_critical(state, k)
            else:
                make_critical(state, k, arm)
    if state.status[arm] == UNDECIDED:
        find_critical(state, arm)


@kernel
def renew_all(state: ScoutState, constants: ScoutConstants) -> None:
    """Renew all pairs, and who matters most to each arm."""
    K = state.pulls.shape[0]
    for k in range(K):
        for j in range(K):
            if j != k:
                renew_pair(state, constants, k, j)
        find_critical(state, k)


@kernel
def find_critical(state: ScoutState, k: int) -> None:
    """Look through row k for the most likely dominator and the hardest arm to escape."""
    state.best[k] = -1
    state.worst[k] = -1
    for j in range(state.pulls.shape[0]):
        if j != k and state.status[j] != DOMINATED:
            make_critical(state, k, j)


@kernel
def make_critical(state: ScoutState, k: int, j: int) -> None:
    """Note that j matters most to k, if it does."""
    best, worst = state.best[k], state.worst[k]
    if is_there(state.presence[j]) and (best < 0 or state.beats[k, j] > state.beats[k, best]):
        state.best[k] = j
    if state.presence[j] != GONE and (worst < 0 or state.escapes[k, j] < state.escapes[k, worst]):
        state.worst[k] = j


@kernel
def decide(state: ScoutState, constants: ScoutConstants, k: int) -> None:
    """Eliminate or accept arm k if the evidence suffices; else say when to look again."""
    against_it = lacks_against(state, constants, k)
    if against_it <= 0.0:
        eliminate(state, k, state.best[k])
        return
    for_it = lacks_in_favour(state, constants, k)
    if for_it <= 0.0:
        accept(state, k)
        return
    lacking = min(against_it, for_it)
    if lacking < np.inf:
        state.test_at[k] = state.counters[TOTAL] + int(PATIENCE * state.pulls[k] * lacking / constants.thresholds[k])


@kernel
def lacks_against(state: ScoutState, constants: ScoutConstants, k: int) -> float:
    """What evidence lacks for eliminating k; infinite where the bounds show that it is far from it."""
    best, threshold = state.best[k], constants.thresholds[k]
    if best < 0 or state.beats[k, best] < threshold or not pilots_are_in(state, constants, k):
        return np.inf
    return threshold - against(state, constants, k)


@kernel
def lacks_in_favour(state: ScoutState, constants: ScoutConstants, k: int) -> float:
    """What evidence lacks for accepting k; infinite where the bounds show that it is far from it."""
    worst, threshold = state.worst[k], constants.thresholds[k]
    far = worst >= 0 and state.escapes[k, worst] < threshold
    if far or not is_there(state.presence[k]) or not pilots_are_in(state, constants, k):
        return np.inf
    return threshold - in_favour(state, constants, k)


@kernel
def eliminate(state: ScoutState, k: int, by: int) -> None:
    """Say that k is dominated; who watched it looks for another one."""
    state.status[k] = DOMINATED
    state.beaten_by[k] = by
    state.counters[N_UNDECIDED] -= is_there(state.presence[k])
    for other in range(state.pulls.shape[0]):
        if state.status[other] == UNDECIDED and (state.best[other] == k or state.worst[other] == k):
            find_critical(state, other)


@kernel
def accept(state: ScoutState, k: int) -> None:
    """Say that k belongs to the front."""
    state.status[k] = FRONT
    state.counters[N_UNDECIDED] -= 1


@kernel
def judge_again(state: ScoutState, constants: ScoutConstants) -> None:
    """Forget all verdicts and judge every arm by the statistics as they are, in whichever order the arms stand."""
    K = state.pulls.shape[0]
    state.counters[N_UNDECIDED] = 0
    for k in range(K):
        state.status[k], state.beaten_by[k], state.test_at[k] = UNDECIDED, -1, 0
        state.counters[N_UNDECIDED] += is_there(state.presence[k])
    renew_all(state, constants)
    refresh_gaps(state)
    for k in range(K):
        if state.presence[k] != GONE and lacks_against(state, constants, k) <= 0.0:
            state.beaten_by[k] = state.best[k]
    for k in range(K):  # who is eliminated may have eliminated others all the same
        if state.beaten_by[k] >= 0:
            eliminate(state, k, state.beaten_by[k])
    for k in range(K):
        if state.status[k] == UNDECIDED and lacks_in_favour(state, constants, k) <= 0.0:
            accept(state, k)


@kernel
def joined(constants: ScoutConstants, a: float, b: float) -> float:
    """Log evidence of two hypotheses together: e-values may be added, of p-values the better one counts."""
    return log_sum(a, b) if constants.e_values else max(a, b)


@kernel
def against(state: ScoutState, constants: ScoutConstants, k: int) -> float:
    """Log evidence that k is not Pareto-optimal: the sum over j of w_j times min_l e(y_j - y_k).

    If k is optimal every j has a metric in which it is not better, so each term, and the sum, is an e-process. The
    weights were settled when k came, and by pilots: who comes or goes later changes none of them.
    """
    K, L = state.means.shape
    by_pilots = scale_pilots(state, constants, k)
    norm, n_before = -np.inf, 0
    for j in range(K):
        if j != k and constants.entered[j] <= constants.entered[k]:
            n_before += 1
            if by_pilots:
                norm = log_sum(norm, pilot_lead(state, constants, j, k))
    total = -np.inf
    for j in range(K):
        if j == k or not is_there(state.presence[j]) or state.status[j] == DOMINATED or state.beats[k, j] <= 0.0:
            continue
        evidence = np.inf
        for metric in range(L):
            evidence = min(evidence, pair_evidence(state, constants, j, k, metric, 0.0, 0.0))
        later = constants.entered[j] - constants.entered[k]
        if later > 0:
            share = RESERVE * 0.5**later / constants.companions[j]
        else:
            share = (1.0 - constants.by_pilot) / n_before
            if by_pilots:
                share += constants.by_pilot * math.exp(pilot_lead(state, constants, j, k) - norm)
            share *= THERE_WHEN_IT_CAME
        if share > 0.0:
            total = joined(constants, total, math.log(share) + evidence)
    return total


@kernel
def pilot_lead(state: ScoutState, constants: ScoutConstants, j: int, k: int) -> float:
    """By how much j led k in every metric in the pilots, in units of the noise; 0 where there is no scale to go by."""
    least = np.inf
    for metric in range(state.pilot.shape[1]):
        scale, lead = state.pilot_scale[metric], 0.0
        if constants.noise[metric] == SIGMA:
            scale = math.sqrt(0.5 * (constants.sigma[j, metric] ** 2 + constants.sigma[k, metric] ** 2))
        if scale > 0.0:
            lead = (state.pilot[j, metric] - state.pilot[k, metric]) / scale
        least = min(least, lead)
    return least


@kernel
def escape(state: ScoutState, constants: ScoutConstants, k: int, j: int) -> float:
    """Log evidence that j is not better than k by eps everywhere: the mean over l of e(y_k + eps - y_j).

    Times the share with which j has to be escaped.
    """
    total = -np.inf
    for metric in range(state.means.shape[1]):
        evidence = pair_evidence(state, constants, k, j, metric, constants.eps[metric], 0.0)
        if evidence > 0.0:  # below, it may be a mere bound
            total = joined(constants, total, evidence)
    return total - math.log(state.means.shape[1]) + log_share_to_escape(state, constants, j)


@kernel
def in_favour(state: ScoutState, constants: ScoutConstants, k: int) -> float:
    """Log evidence that k is within eps of optimal: the least over j of the mean over l of e(y_k + eps - y_j).

    If some j is better by more than eps in every metric, its mean over l is an e-process. Stops at the first j for
    which the evidence does not suffice.
    """
    least = np.inf
    for step in range(-1, state.pulls.shape[0]):
        j = state.worst[k] if step < 0 else step  # the hardest first
        if j < 0 or j == k or state.status[j] == DOMINATED or state.presence[j] == GONE:
            continue
        least = min(least, escape(state, constants, k, j))
        if least < constants.thresholds[k]:
            break
    return least


@kernel
def refresh_gaps(state: ScoutState) -> None:
    """Estimate the gap of each arm that is not eliminated; again after 5% more samples."""
    K = state.pulls.shape[0]
    total, n = 0.0, 0
    for k in range(K):
        if state.status[k] == DOMINATED or not is_there(state.presence[k]):
            continue
        state.gaps[k] = 0.0
        for j in range(K):
            if state.status[j] != DOMINATED and is_there(state.presence[j]):
                state.gaps[k] = max(state.gaps[k], margin(j, k, state.means))
    for k in range(K):
        total += state.gaps[k]
        n += 1
    state.mean_gap[0] = total / n
    state.counters[REFRESH_AT] = state.counters[TOTAL] + max(1, state.counters[TOTAL] // 20)


@allocating_kernel
def verdicts(state: ScoutState, constants: ScoutConstants) -> Verdicts:
    """Means of what counts as evidence, with intervals that all hold at once with probability 1 - delta."""
    K, L = state.means.shape
    radii = np.full((K, L), np.inf)
    for k in range(K):
        for metric in range(L):
            radii[k, metric] = radius(state, constants, k, metric)
    means = state.means.copy()
    return verdicts_of_those_there(state.status, state.beaten_by, means, radii, state.pulls, state.presence)


@kernel
def done(state: ScoutState, constants: ScoutConstants) -> bool:
    """Whether every arm that is there has its verdict."""
    return state.counters[N_UNDECIDED] == 0


KERNELS = Kernels(
    state=ScoutState,
    choose=choose,
    update=update,
    verdicts=verdicts,
    done=done,
    judge_again=judge_again,
    ranges={"counters": ("count", "arms", "count")},
    intervals=True,
    accepts=Accepts(pending=True, unasked=True, missing=True),
    each_sigma=True,
)
