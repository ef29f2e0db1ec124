"""Scout for arms whose means are linear in their contexts: every sample tells something of every arm."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg

from ..errors import InvalidInput
from ..kernels.algebra import add_outer_product, copy_into, factorise, solve
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import DOMINATED, FRONT, UNDECIDED, cost_of, margin, name_rivals, strongest
from ..kernels.dispatch import Verdicts
from ..kernels.evidence import log_evidence_along
from .contract import Accepts, Kernels, Setup

#: Scales of the mixture: the largest is (16 + 2 d^3) sigma^2 / eps^2 (4096 where eps is 0 or sigma unknown), each next
#: a quarter.
SCALE_WEIGHTS = (0.2, 0.5, 0.2, 0.07, 0.03)
N_SCALES = len(SCALE_WEIGHTS)
#: Contexts whose difference is relatively smaller than the root of this count as equal.
SAME = 1e-16
#: Differences of estimates below this are rounding, where the noise is said to be none.
ROUNDING = 1e-9
#: Where sigma is unknown: how much of delta goes into an upper bound on it, and the rates at which that is tried.
FOR_SIGMA = 0.1
RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
#: All arms are tested again after this share more samples, and one more per so many arms: early tests cost K^2 d and
#: decide little.
CHECK_GROWTH = 0.005
ARMS_PER_SAMPLE = 50


class LinearScoutOptions(NamedTuple):
    contexts: FloatArray  # (K, d) whitened: their mean outer product is the unit matrix
    twins: IntArray  # (K,) the first arm with the same context
    first_arms: IntArray  # (d,) arms that span all dimensions, pulled first
    cost: FloatArray  # (K,) of a sample, on average 1
    eps: FloatArray  # (L,)
    misfit: FloatArray  # (L,) how far the mean of an arm may be from the model
    sigma_known: BoolArray  # (L,)
    rates: FloatArray  # (6,) for the bound on sigma
    log_sigma_price: float  # log of 1 / (probability that the bound fails), rate by rate and metric by metric
    rhos: FloatArray  # (L, R)
    log_weights: FloatArray  # (R,)
    threshold: float  # log(L / delta): the evidence holds for all pairs at once
    regret_weight: float
    no_ticket: FloatArray  # (0,)


class LinearScoutState(NamedTuple):
    pulls: IntArray  # (K,)
    gram: FloatArray  # (d, d) A = sum x x^T
    factor: FloatArray  # (d, d) its factor, once it is invertible
    reach: IntArray  # (d,) all d - 1: whitened contexts share every coordinate
    right: FloatArray  # (d, L) sum x Y
    theta: FloatArray  # (d, L) least squares estimate
    checked_pulls: IntArray  # (K,) samples of each arm as of the last check
    means: FloatArray  # (K, L) as of the last check
    solved: FloatArray  # (K, d) A^-1 x as of the last check
    leverages: FloatArray  # (K,) x^T A^-1 x as of the last check
    squares: FloatArray  # (L,) sum of Y^2
    sigma: FloatArray  # (L,) noise scale, or an upper bound on it as of the last check; an estimate before there is one
    sigma_bounded: IntArray  # (L,) whether it is more than an estimate
    log_prices: FloatArray  # (L, R) log w - 1/2 log det(I + A / rho) as of the last check
    progress: FloatArray  # (K,) evidence of the pair that decides the arm, as of when it was last looked at
    rival: IntArray  # (K,) the other arm of that pair
    route: IntArray  # (K,) what that pair is to show: BEATEN or ESCAPES
    gaps: FloatArray  # (K,)
    mean_gap: FloatArray  # (1,)
    status: IntArray  # (K,)
    beaten_by: IntArray  # (K,)
    counters: IntArray  # (3,) samples in all, undecided arms, samples at the next check
    scratch: FloatArray  # (d,)
    column: FloatArray  # (d, 1)
    shifted: FloatArray  # (d, d)
    standing: IntArray  # (K,) arms not eliminated, as of the last check
    leaders: IntArray  # (K,) those of them that no other one beats by the estimates
    no_radii: FloatArray  # (K, L) zeros
    excused: IntArray  # (K,) 1: that the arm in question escapes this one is known from elsewhere


TOTAL, N_UNDECIDED, CHECK_AT = 0, 1, 2
ESCAPES, BEATEN = 0, 1


def init(
    regret_weight: float, setup: Setup, misfit: FloatArray | None = None
) -> tuple[LinearScoutState, LinearScoutOptions]:
    """Whiten the contexts, choose arms that span them, fix the scales before the data."""
    K, L, R = setup.n_arms, setup.n_metrics, N_SCALES
    if setup.contexts is None:
        model = "linear" if misfit is None else "robust"
        raise InvalidInput(f"contexts of algorithm 'scout' must be given for model={model!r}, got none")
    U, s, _ = np.linalg.svd(setup.contexts, full_matrices=False)
    rank = int(np.count_nonzero(s > s.max(initial=0.0) * max(setup.contexts.shape) * np.finfo(float).eps))
    if rank == 0:
        raise InvalidInput("contexts of algorithm 'scout' must not all be zero")
    # dimensions that no arm uses are left out: coordinates in the span, scaled so that their mean square is 1
    contexts = np.ascontiguousarray(U[:, :rank] * np.sqrt(K))
    _, twins = np.unique(setup.contexts, axis=0, return_inverse=True)
    first = {int(group): k for k, group in reversed(list(enumerate(twins.ravel())))}
    pivots = scipy.linalg.qr(contexts.T, mode="r", pivoting=True)[1]
    delta, sigma, known = setup.delta, np.zeros(L), np.full(L, setup.sigma is not None)
    if setup.sigma is not None:
        sigma = setup.known_sigma("scout")
    elif setup.bounds is not None:
        # whatever the noise of an outcome with bounds is, it is sub-Gaussian with half the range
        known = np.array([np.isfinite(pair).all() for pair in setup.bounds])
        sigma[known] = (setup.bounds[known, 1] - setup.bounds[known, 0]) / 2.0
    if not known.all():
        delta *= 1.0 - FOR_SIGMA
    with np.errstate(divide="ignore", invalid="ignore"):
        top = (16.0 + 2.0 * rank**3) * (sigma / setup.eps) ** 2
    top = np.where((setup.eps > 0) & (sigma > 0), top, 4096.0)
    options = LinearScoutOptions(
        contexts=contexts,
        twins=np.array([first[int(group)] for group in twins.ravel()], np.int64),
        first_arms=np.sort(pivots[:rank]).astype(np.int64),
        cost=setup.cost / setup.cost.mean(),
        eps=setup.eps.copy(),
        misfit=np.zeros(L) if misfit is None else misfit,
        sigma_known=known,
        rates=np.array(RATES),
        log_sigma_price=math.log(len(RATES) * L / (FOR_SIGMA * setup.delta)),
        rhos=top[:, None] / 4.0 ** np.arange(R),
        log_weights=np.log(SCALE_WEIGHTS),
        threshold=math.log(L / delta),
        regret_weight=regret_weight,
        no_ticket=np.empty(0),
    )
    state = LinearScoutState(
        pulls=np.zeros(K, np.int64),
        gram=np.zeros((rank, rank)),
        factor=np.zeros((rank, rank)),
        reach=np.full(rank, rank - 1, np.int64),
        right=np.zeros((rank, L)),
        theta=np.zeros((rank, L)),
        checked_pulls=np.zeros(K, np.int64),
        means=np.zeros((K, L)),
        solved=np.zeros((K, rank)),
        leverages=np.zeros(K),
        squares=np.zeros(L),
        sigma=sigma,
        sigma_bounded=known.astype(np.int64),
        log_prices=np.zeros((L, R)),
        progress=np.full(K, -np.inf),
        rival=np.full(K, -1, np.int64),
        route=np.zeros(K, np.int64),
        gaps=np.zeros(K),
        mean_gap=np.zeros(1),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        counters=np.array([0, K, 0], np.int64),
        scratch=np.zeros(rank),
        column=np.zeros((rank, 1)),
        shifted=np.zeros((rank, rank)),
        standing=np.zeros(K, np.int64),
        leaders=np.zeros(K, np.int64),
        no_radii=np.zeros((K, L)),
        excused=np.zeros(K, np.int64),
    )
    return state, options


@kernel
def spans(state: LinearScoutState, options: LinearScoutOptions) -> bool:
    """Whether the arms that span all dimensions have been pulled, so that A is invertible."""
    pulled = 0
    for arm in options.first_arms:
        pulled += min(1, state.pulls[arm])
    return pulled == options.first_arms.shape[0]


@kernel
def choose(
    state: LinearScoutState, options: LinearScoutOptions, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """The spanning arms first; then the arm that tells most, per cost, about the most ambiguous pair."""
    for arm in options.first_arms:
        if state.pulls[arm] + pending[arm] == 0:
            return arm, options.no_ticket
    if not spans(state, options):  # all of them are on their way: more of the same until they are in
        return options.first_arms[0], options.no_ticket
    k = most_ambiguous(state)
    for _ in range(8):  # others may have become more ambiguous since they were last looked at
        look_again(state, options, k)
        other = most_ambiguous(state)
        if other == k:
            break
        k = other
    return most_telling(state, options, k, pending), options.no_ticket


@kernel
def most_ambiguous(state: LinearScoutState) -> int:
    """The undecided arm with the least evidence on the pair that decides it."""
    found, least = -1, np.inf
    for k in range(state.pulls.shape[0]):
        if state.status[k] == UNDECIDED and (found < 0 or state.progress[k] < least):
            found, least = k, state.progress[k]
    return found


@kernel
def look_again(state: LinearScoutState, options: LinearScoutOptions, k: int) -> None:
    """Renew the evidence of the pair that decides k."""
    j = state.rival[k]
    if j < 0:
        return
    d = options.contexts.shape[1]
    for i in range(d):
        state.column[i, 0] = options.contexts[k, i] - options.contexts[j, i]
    solve(state.factor, state.reach, state.column)
    a, b = 0.0, 0.0
    for i in range(d):
        a += (options.contexts[k, i] - options.contexts[j, i]) * state.column[i, 0]
        b += state.column[i, 0] * state.column[i, 0]
    bias = bias_along(state, options, k, j) if allows_misfit(options) else 0.0
    evidence = np.inf if state.route[k] == BEATEN else -np.inf
    for metric in range(state.means.shape[1]):
        difference = 0.0
        for i in range(d):
            difference += (options.contexts[k, i] - options.contexts[j, i]) * state.theta[i, metric]
        hidden = options.misfit[metric] * bias
        if state.route[k] == BEATEN:
            evidence = min(evidence, pair_evidence(state, options, metric, -difference - hidden, a, b))
        else:
            difference += options.eps[metric] - hidden
            evidence = max(evidence, pair_evidence(state, options, metric, difference, a, b))
    state.progress[k] = evidence


@kernel
def pair_evidence(
    state: LinearScoutState, options: LinearScoutOptions, metric: int, difference: float, a: float, b: float
) -> float:
    """Log e-value along a direction; below zero, for the order among arms, where the difference is negative."""
    sigma = state.sigma[metric]
    if difference <= 0.0 or (sigma == 0.0 and difference < ROUNDING):
        return -0.5 * difference * difference / max(sigma * sigma * a, 1e-300)
    return log_evidence_along(difference, a, b, sigma, options.rhos[metric], state.log_prices[metric])


@kernel
def most_telling(state: LinearScoutState, options: LinearScoutOptions, k: int, pending: IntArray) -> int:
    """The arm whose sample most reduces the variance along x_k - x_j, per cost; leverages as of the last check."""
    K, d = options.contexts.shape
    j = state.rival[k]
    if j < 0:
        return k
    for i in range(d):
        state.column[i, 0] = options.contexts[k, i] - options.contexts[j, i]
    solve(state.factor, state.reach, state.column)
    found, most = k, -1.0
    for arm in range(K):
        along = 0.0
        for i in range(d):
            along += state.column[i, 0] * options.contexts[arm, i]
        leverage = state.leverages[arm]
        crowd = 1.0 + pending[arm] * leverage  # what is on its way tells the same
        gain = along * along / ((1.0 + leverage) * crowd * crowd)
        gain /= cost_of(options.cost[arm], state.gaps[arm], state.mean_gap[0], options.regret_weight)
        if gain > most:
            found, most = arm, gain
    return found


@kernel
def update(
    state: LinearScoutState,
    options: LinearScoutOptions,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Add the sample to A and to the estimate; test all arms at growing intervals."""
    take_in(state, options, arm, outcome)
    if check_is_due(state, options):
        leaders = refresh(state, options)
        for k in range(state.pulls.shape[0]):
            if state.status[k] == UNDECIDED:
                judge(state, options, k, leaders)


@kernel
def take_in(state: LinearScoutState, options: LinearScoutOptions, arm: int, outcome: FloatArray) -> None:
    """Add the sample to A and to the estimate."""
    d = options.contexts.shape[1]
    was_spanned = spans(state, options)
    state.counters[TOTAL] += 1
    state.pulls[arm] += 1
    for metric in range(outcome.shape[0]):
        state.squares[metric] += outcome[metric] * outcome[metric]
    for i in range(d):
        for j in range(i, d):
            state.gram[i, j] += options.contexts[arm, i] * options.contexts[arm, j]
        for metric in range(outcome.shape[0]):
            state.right[i, metric] += options.contexts[arm, i] * outcome[metric]
    if was_spanned:
        for i in range(d):
            state.scratch[i] = options.contexts[arm, i]
        add_outer_product(state.factor, state.reach, state.scratch)
    elif spans(state, options):
        copy_into(state.factor, state.gram)
        factorise(state.factor, state.reach)
    else:
        return
    copy_into(state.theta, state.right)
    solve(state.factor, state.reach, state.theta)


@kernel
def check_is_due(state: LinearScoutState, options: LinearScoutOptions) -> bool:
    """Whether all arms are to be tested now; if so, say when to do so again."""
    if state.counters[TOTAL] < state.counters[CHECK_AT] or not spans(state, options):
        return False
    wait = 1 + state.pulls.shape[0] // ARMS_PER_SAMPLE + int(CHECK_GROWTH * state.counters[TOTAL])
    state.counters[CHECK_AT] = state.counters[TOTAL] + wait
    return True


@kernel
def refresh(state: LinearScoutState, options: LinearScoutOptions) -> int:
    """Bring means, inverses, prices and gaps up to date; return how many leaders there are."""
    K, d = options.contexts.shape
    L, R = state.log_prices.shape
    for k in range(K):
        for i in range(d):
            state.column[i, 0] = options.contexts[k, i]
        solve(state.factor, state.reach, state.column)
        state.checked_pulls[k] = state.pulls[k]
        state.leverages[k] = 0.0
        for i in range(d):
            state.solved[k, i] = state.column[i, 0]
            state.leverages[k] += options.contexts[k, i] * state.column[i, 0]
        for metric in range(L):
            mean = 0.0
            for i in range(d):
                mean += options.contexts[k, i] * state.theta[i, metric]
            state.means[k, metric] = mean
    for metric in range(L):
        for r in range(R):
            rho = options.rhos[metric, r]
            for i in range(d):
                for j in range(i, d):
                    state.shifted[i, j] = state.gram[i, j] / rho
                state.shifted[i, i] += 1.0
            factorise(state.shifted, state.reach)
            half_log_det = 0.0
            for i in range(d):
                half_log_det += 0.5 * math.log(state.shifted[i, i])
            state.log_prices[metric, r] = options.log_weights[r] - half_log_det
    bound_sigma(state, options)
    n_standing = 0
    for k in range(K):
        if state.status[k] != DOMINATED:
            state.standing[n_standing] = k
            n_standing += 1
    n_leaders = strongest(state.standing[:n_standing], state.means, state.no_radii, state.leaders)
    total = 0.0
    for k in range(K):
        state.gaps[k] = 0.0
        for j in state.leaders[:n_leaders]:
            state.gaps[k] = max(state.gaps[k], margin(j, k, state.means))
        total += state.gaps[k]
    state.mean_gap[0] = total / K
    return n_leaders


@kernel
def bound_sigma(state: LinearScoutState, options: LinearScoutOptions) -> None:
    """Where sigma is unknown, an upper bound on it that holds at all times, from what the model leaves unexplained.

    The sum of squared noise is at least sigma^2 q but for a small probability, q the best over the rates c of
    ((t / 2) log(1 + 2 c) - price) / c. The fit takes away at most (1 + rho / least eigenvalue of A) times what the
    evidence allows it. Samples that are off the model by the misfit can hide so much of the noise.
    """
    d, L = state.right.shape
    t = float(state.counters[TOTAL])
    trace = 0.0  # of A^-1: one over it is no more than the least eigenvalue
    for i in range(d):
        for j in range(d):
            state.column[j, 0] = 1.0 if i == j else 0.0
        solve(state.factor, state.reach, state.column)
        trace += state.column[i, 0]
    for metric in range(L):
        if options.sigma_known[metric]:
            continue
        left = state.squares[metric]
        for i in range(d):
            left -= state.theta[i, metric] * state.right[i, metric]
        left = max(left, 0.0) + 1e-12 * state.squares[metric]  # what rounding may hide
        q = -np.inf
        for rate in options.rates:
            q = max(q, (0.5 * t * math.log1p(2.0 * rate) - options.log_sigma_price) / rate)
        taken = np.inf
        for r in range(options.rhos.shape[1]):
            allowed = 2.0 * (options.threshold - state.log_prices[metric, r])
            taken = min(taken, (1.0 + options.rhos[metric, r] * trace) * allowed)
        if q > taken:
            bound = (math.sqrt(left) + options.misfit[metric] * math.sqrt(t)) / math.sqrt(q - taken)
            if state.sigma_bounded[metric] == 0 or bound < state.sigma[metric]:
                state.sigma[metric] = bound
            state.sigma_bounded[metric] = 1
        elif state.sigma_bounded[metric] == 0:
            state.sigma[metric] = math.sqrt(left / max(1.0, t - d))


@kernel
def allows_misfit(options: LinearScoutOptions) -> bool:
    """Whether means may be off the model."""
    largest = 0.0
    for misfit in options.misfit:
        largest = max(largest, misfit)
    return largest > 0.0


@kernel
def bias_along(state: LinearScoutState, options: LinearScoutOptions, k: int, j: int) -> float:
    """How much of a misfit of 1 in every arm can hide in the estimated difference of k and j, as of the last check.

    b = sum_i |1{i=k} - 1{i=j} - n_i z^T A^-1 x_i|: what each arm's misfit adds to the difference, less what it adds to
    its estimate. j = -1: in the estimate of k alone.
    """
    K, d = options.contexts.shape
    bias = 0.0
    for i in range(K):
        weight = 0.0
        if state.checked_pulls[i] > 0:
            for c in range(d):
                other = state.solved[j, c] if j >= 0 else 0.0
                weight += (state.solved[k, c] - other) * options.contexts[i, c]
        own = 1.0 if i == k else (-1.0 if i == j else 0.0)
        bias += abs(own - state.checked_pulls[i] * weight)
    return bias


@kernel
def judge(state: LinearScoutState, options: LinearScoutOptions, k: int, n_leaders: int) -> None:
    """Look for the arm that most clearly dominates k, and for the one that k least clearly escapes."""
    L = state.means.shape[1]
    misfit = allows_misfit(options)
    best, against = -1, -np.inf
    worst, in_favour = -1, np.inf
    for j in state.leaders[:n_leaders]:  # whoever dominates k by the estimates, one of these does so more clearly
        if options.twins[j] != options.twins[k] and margin(j, k, state.means) > 0.0:
            a, b = pair_variances(state, options, k, j)
            if a < 0.0:
                continue
            bias = bias_along(state, options, k, j) if misfit else 0.0
            evidence = np.inf
            ahead = True  # whether j leads by eps everywhere, so that there is no evidence that k escapes it
            for metric in range(L):
                difference = state.means[j, metric] - state.means[k, metric]
                if evidence > against:  # else another one is clearer already
                    hidden = options.misfit[metric] * bias
                    evidence = min(evidence, pair_evidence(state, options, metric, difference - hidden, a, b))
                ahead = ahead and difference >= options.eps[metric]
            if evidence > against:
                best, against = j, evidence
            if ahead and state.excused[j] == 0:
                worst, in_favour = j, -np.inf
    certain = True  # an estimate of sigma ranks pairs, but proves nothing
    for metric in range(L):
        certain = certain and state.sigma_bounded[metric] == 1
    if in_favour == np.inf and (against < options.threshold or not certain):
        for j in range(state.pulls.shape[0]):
            if in_favour < against:
                break  # elimination is nearer, whatever the others say
            if state.status[j] == DOMINATED or state.excused[j] == 1 or j == k:
                continue
            a, b = (-1.0, 0.0) if options.twins[j] == options.twins[k] else pair_variances(state, options, k, j)
            evidence = -np.inf
            if a < 0.0:
                for metric in range(L):  # by the model the two are equal: neither can be better by two misfits
                    if options.eps[metric] >= 2.0 * options.misfit[metric]:
                        evidence = np.inf
            else:
                bias = bias_along(state, options, k, j) if misfit else 0.0
                if clearer(state, options, k, j, a, b, bias, in_favour):
                    continue
                for metric in range(L):
                    difference = lead_with_slack(state, options, k, j, metric, bias)
                    evidence = max(evidence, pair_evidence(state, options, metric, difference, a, b))
            if evidence < in_favour:
                worst, in_favour = j, evidence
    if certain and against >= options.threshold:
        state.status[k] = DOMINATED
        state.beaten_by[k] = best
        state.counters[N_UNDECIDED] -= 1
    elif certain and in_favour >= options.threshold:
        state.status[k] = FRONT
        state.counters[N_UNDECIDED] -= 1
    elif against > in_favour:
        state.progress[k], state.rival[k], state.route[k] = against, best, BEATEN
    else:
        state.progress[k], state.rival[k], state.route[k] = in_favour, worst, ESCAPES


@kernel
def lead_with_slack(
    state: LinearScoutState, options: LinearScoutOptions, k: int, j: int, metric: int, bias: float
) -> float:
    """By how much k leads j at least, given a lead of eps, whatever the misfits are."""
    lead = state.means[k, metric] + options.eps[metric] - state.means[j, metric]
    return lead - options.misfit[metric] * bias


@kernel
def clearer(
    state: LinearScoutState,
    options: LinearScoutOptions,
    k: int,
    j: int,
    a: float,
    b: float,
    bias: float,
    evidence: float,
) -> bool:
    """Whether one scale alone shows more than `evidence` that k escapes j: most pairs need no more than this."""
    for metric in range(state.means.shape[1]):
        difference = lead_with_slack(state, options, k, j, metric, bias)
        sigma = state.sigma[metric]
        if difference > 0.0 and sigma > 0.0:
            half_square = 0.5 * difference * difference / (sigma * sigma)
            for r in range(options.rhos.shape[1]):
                if state.log_prices[metric, r] + half_square / (a + options.rhos[metric, r] * b) > evidence:
                    return True
    return False


@kernel
def pair_variances(state: LinearScoutState, options: LinearScoutOptions, k: int, j: int) -> tuple[float, float]:
    """a = z^T A^-1 z and b = z^T A^-2 z for z = x_k - x_j, as of the last check.

    a is -1 where the contexts are all but equal: what rounding leaves of the difference says nothing.
    """
    a, b = 0.0, 0.0
    for i in range(options.contexts.shape[1]):
        step = state.solved[k, i] - state.solved[j, i]
        a += (options.contexts[k, i] - options.contexts[j, i]) * step
        b += step * step
    return (a if a > SAME * (state.leverages[k] + state.leverages[j]) else -1.0), b


@allocating_kernel
def verdicts(state: LinearScoutState, options: LinearScoutOptions) -> Verdicts:
    """Estimates by the model as of the last check, with their intervals."""
    K, L = state.means.shape
    radii = np.full((K, L), np.inf)
    if spans(state, options):
        for k in range(K):
            a, b = 0.0, 0.0
            for i in range(options.contexts.shape[1]):
                a += options.contexts[k, i] * state.solved[k, i]
                b += state.solved[k, i] * state.solved[k, i]
            bias = bias_along(state, options, k, -1) if allows_misfit(options) else 0.0
            for metric in range(L):
                for r in range(options.rhos.shape[1]):
                    exponent = options.threshold - state.log_prices[metric, r]
                    radius = state.sigma[metric] * math.sqrt(2.0 * exponent * (a + options.rhos[metric, r] * b))
                    if state.sigma_bounded[metric] == 1:
                        radii[k, metric] = min(radii[k, metric], radius + options.misfit[metric] * bias)
    rival = state.beaten_by.copy()
    name_rivals(rival, state.means, radii, state.status)
    return Verdicts(state.status.copy(), rival, state.means.copy(), radii, state.pulls.copy())


@kernel
def done(state: LinearScoutState, options: LinearScoutOptions) -> bool:
    """Whether every arm has its verdict."""
    return state.counters[N_UNDECIDED] == 0


KERNELS = Kernels(
    state=LinearScoutState,
    choose=choose,
    update=update,
    verdicts=verdicts,
    done=done,
    ranges={"counters": ("count", "arms", "count")},
    accepts=Accepts(pending=True, unasked=True),
    assumes="means linear in the contexts",
    pools_noise=True,
)
