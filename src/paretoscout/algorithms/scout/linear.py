"""Scout for arms whose means are linear in their contexts: every sample tells something of every arm."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg

from ...errors import InvalidInput
from ...kernels.algebra import add_outer_product, copy_into, factorise, solve
from ...kernels.arrays import BoolArray, FloatArray, IntArray
from ...kernels.compile import allocating_kernel, kernel
from ...kernels.decisions import (
    DOMINATED,
    FRONT,
    GONE,
    PRESENT,
    UNDECIDED,
    cost_of,
    is_there,
    margin,
    strongest,
    verdicts_of_those_there,
)
from ...kernels.dispatch import NO_TICKET, Verdicts
from ...kernels.evidence import FEW_VALUES, log_evidence_along, note_value
from ...kernels.noise import bound_sigma, unexplained
from ..contract import Accepts, Kernels, Setup

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


class LinearScoutConstants(NamedTuple):
    contexts: FloatArray  # (K, d) whitened: the mean outer product of the first arms is the unit matrix
    twins: IntArray  # (K,) the first arm with the same context
    cost: FloatArray  # (K,) of a sample, on average 1
    eps: FloatArray  # (L,)
    misfit: FloatArray  # (L,) how far the mean of an arm may be from the model
    sigma_known: BoolArray  # (L,)
    exact: BoolArray  # (L,) whether numbers that hardly vary are certain
    rates: FloatArray  # (6,) for the bound on sigma
    log_sigma_price: float  # log of 1 / (probability that the bound fails), rate by rate and metric by metric
    rhos: FloatArray  # (L, R)
    log_weights: FloatArray  # (R,)
    threshold: float  # log(L / delta): the evidence holds for all pairs at once
    regret_weight: float
    no_ticket: FloatArray = NO_TICKET


class LinearScoutState(NamedTuple):
    presence: IntArray  # (K,) whether the arm is there
    first_arms: IntArray  # (d,) arms that span all dimensions, pulled first; -1: there is none for want of arms
    pulls: IntArray  # (K,)
    centres: FloatArray  # (K, L) the first outcome of each arm
    sums: FloatArray  # (K, L) the sums of the distances of all its outcomes to it
    seen: FloatArray  # (L, 6) distinct values, while there are few
    n_seen: IntArray  # (L,) how many
    gram: FloatArray  # (d, d) A = sum x x^T
    factor: FloatArray  # (d, d) its factor, once it is invertible
    reach: IntArray  # (d,) all d - 1: whitened contexts share every coordinate
    reference: FloatArray  # (d, L) least squares estimate as of the last check
    right: FloatArray  # (d, L) sum x (Y - x^T reference)
    theta: FloatArray  # (d, L) least squares estimate
    checked_pulls: IntArray  # (K,) samples of each arm as of the last check
    means: FloatArray  # (K, L) as of the last check
    solved: FloatArray  # (K, d) A^-1 x as of the last check
    leverages: FloatArray  # (K,) x^T A^-1 x as of the last check
    squares: FloatArray  # (L,) sum of the squared distances of Y to the mean of its arm
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
) -> tuple[LinearScoutState, LinearScoutConstants]:
    """Whiten the contexts, choose arms that span them, fix the scales before the data."""
    K, L, R = setup.n_arms, setup.n_metrics, N_SCALES
    if setup.contexts is None:
        model = "linear" if misfit is None else "robust"
        raise InvalidInput(f"contexts of algorithm 'scout' must be given for model={model!r}, got none")
    contexts, first_rank = whitened(setup.contexts, setup.entered)
    rank = contexts.shape[1]
    if rank == 0:
        raise InvalidInput("contexts of algorithm 'scout' must not all be zero")
    _, twins = np.unique(setup.contexts, axis=0, return_inverse=True)
    first = {int(group): k for k, group in reversed(list(enumerate(twins.ravel())))}
    pivots = scipy.linalg.qr(contexts.T, mode="r", pivoting=True)[1]
    delta, told = setup.delta, np.full((K, L), np.nan) if setup.sigma is None else setup.sigma
    if setup.bounds is not None:
        # whatever the noise of an outcome with bounds is, it is sub-Gaussian with half the range
        half_range = (setup.bounds[:, 1] - setup.bounds[:, 0]) / 2.0
        told = np.where(np.isnan(told) & np.isfinite(half_range), half_range, told)
    known = ~np.isnan(told[0])
    told = np.where(known, told, 0.0)
    sigma = told.max(axis=0)  # one for all arms
    if not known.all():
        delta *= 1.0 - FOR_SIGMA
    usual = told[setup.entered == setup.entered.min()].max(axis=0)  # the scales do not change when arms come
    with np.errstate(divide="ignore", invalid="ignore"):
        top = (16.0 + 2.0 * first_rank**3) * (usual / setup.eps) ** 2
    top = np.where((setup.eps > 0) & (usual > 0), top, 4096.0)
    constants = LinearScoutConstants(
        contexts=contexts,
        twins=np.array([first[int(group)] for group in twins.ravel()], np.int64),
        cost=setup.cost / setup.cost.mean(),
        eps=setup.eps.copy(),
        misfit=np.zeros(L) if misfit is None else misfit,
        sigma_known=known,
        exact=setup.exact.copy(),
        rates=np.array(RATES),
        log_sigma_price=math.log(len(RATES) * L / (FOR_SIGMA * setup.delta)),
        rhos=top[:, None] / 4.0 ** np.arange(R),
        log_weights=np.log(SCALE_WEIGHTS),
        threshold=math.log(L / delta),
        regret_weight=regret_weight,
    )
    state = LinearScoutState(
        presence=np.full(K, PRESENT, np.int64),
        first_arms=np.sort(pivots[:rank]).astype(np.int64),
        pulls=np.zeros(K, np.int64),
        centres=np.zeros((K, L)),
        sums=np.zeros((K, L)),
        seen=np.zeros((L, FEW_VALUES + 1)),
        n_seen=np.zeros(L, np.int64),
        gram=np.zeros((rank, rank)),
        factor=np.zeros((rank, rank)),
        reach=np.full(rank, rank - 1, np.int64),
        reference=np.zeros((rank, L)),
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
    return state, constants


def whitened(contexts: FloatArray, entered: IntArray) -> tuple[FloatArray, int]:
    """Return contexts in coordinates in which the mean square of the first arms is 1, and how many these span.

    Dimensions that no arm uses are left out. Arms that come later leave all coordinates as they are, and the evidence
    with them. Where they reach out of what the arms before them span they bring new ones; in these their own mean
    square is 1.
    """
    rest, largest, parts = contexts, 0.0, []
    for generation in np.unique(entered):
        members = entered == generation
        largest = max(largest, float(np.linalg.norm(contexts[members], 2)))
        U, s, V = np.linalg.svd(rest[members], full_matrices=False)
        rank = int(np.count_nonzero(s > largest * max(contexts.shape) * np.finfo(float).eps))
        unit = np.sqrt(np.count_nonzero(members))
        part = np.zeros((len(contexts), rank))
        later = entered > generation
        part[members] = U[:, :rank] * unit
        part[later] = rest[later] @ V[:rank].T / s[:rank] * unit
        parts.append(part)
        rest = rest - rest @ V[:rank].T @ V[:rank]
    return np.ascontiguousarray(np.hstack(parts)), parts[0].shape[1]


@kernel
def spans(state: LinearScoutState) -> bool:
    """Whether the arms that span all dimensions have been pulled, so that A is invertible."""
    pulled = 0
    for arm in state.first_arms:
        pulled += arm >= 0 and state.pulls[arm] > 0
    return pulled == state.first_arms.shape[0]


@kernel
def choose(
    state: LinearScoutState, constants: LinearScoutConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """The spanning arms first; then the arm that tells most, per cost, about the most ambiguous pair."""
    if not spans(state):
        fewest = -1
        for arm in state.first_arms:
            if arm >= 0 and is_there(state.presence[arm]) and state.pulls[arm] + pending[arm] == 0:
                return arm, constants.no_ticket
        for arm in range(state.pulls.shape[0]):  # all of them are on their way: something else until they are in
            asked = state.pulls[arm] + pending[arm]
            if is_there(state.presence[arm]) and (fewest < 0 or asked < state.pulls[fewest] + pending[fewest]):
                fewest = arm
        return fewest, constants.no_ticket
    k = most_ambiguous(state)
    for _ in range(8):  # others may have become more ambiguous since they were last looked at
        look_again(state, constants, k)
        other = most_ambiguous(state)
        if other == k:
            break
        k = other
    return most_telling(state, constants, k, pending), constants.no_ticket


@kernel
def most_ambiguous(state: LinearScoutState) -> int:
    """The undecided arm with the least evidence on the pair that decides it."""
    found, least = -1, np.inf
    for k in range(state.pulls.shape[0]):
        waits = state.status[k] == UNDECIDED and is_there(state.presence[k])
        if waits and (found < 0 or state.progress[k] < least):
            found, least = k, state.progress[k]
    return found


@kernel
def look_again(state: LinearScoutState, constants: LinearScoutConstants, k: int) -> None:
    """Renew the evidence of the pair that decides k."""
    j = state.rival[k]
    if j < 0:
        return
    d = constants.contexts.shape[1]
    for i in range(d):
        state.column[i, 0] = constants.contexts[k, i] - constants.contexts[j, i]
    solve(state.factor, state.reach, state.column)
    a, b = 0.0, 0.0
    for i in range(d):
        a += (constants.contexts[k, i] - constants.contexts[j, i]) * state.column[i, 0]
        b += state.column[i, 0] * state.column[i, 0]
    bias = bias_along(state, constants, k, j) if allows_misfit(constants) else 0.0
    evidence = np.inf if state.route[k] == BEATEN else -np.inf
    for metric in range(state.means.shape[1]):
        difference = 0.0
        for i in range(d):
            difference += (constants.contexts[k, i] - constants.contexts[j, i]) * state.theta[i, metric]
        hidden = constants.misfit[metric] * bias
        if state.route[k] == BEATEN:
            evidence = min(evidence, pair_evidence(state, constants, metric, -difference - hidden, a, b))
        else:
            difference += constants.eps[metric] - hidden
            evidence = max(evidence, pair_evidence(state, constants, metric, difference, a, b))
    state.progress[k] = evidence


@kernel
def pair_evidence(
    state: LinearScoutState, constants: LinearScoutConstants, metric: int, difference: float, a: float, b: float
) -> float:
    """Log e-value along a direction; below zero, for the order among arms, where the difference is negative."""
    sigma = state.sigma[metric]
    if difference <= 0.0 or (sigma == 0.0 and difference < ROUNDING):
        return -0.5 * difference * difference / max(sigma * sigma * a, 1e-300)
    return log_evidence_along(difference, a, b, sigma, constants.rhos[metric], state.log_prices[metric])


@kernel
def most_telling(state: LinearScoutState, constants: LinearScoutConstants, k: int, pending: IntArray) -> int:
    """The arm whose sample most reduces the variance along x_k - x_j, per cost; leverages as of the last check."""
    K, d = constants.contexts.shape
    j = state.rival[k]
    if j < 0:
        return k
    for i in range(d):
        state.column[i, 0] = constants.contexts[k, i] - constants.contexts[j, i]
    solve(state.factor, state.reach, state.column)
    found, most = k, -1.0
    for arm in range(K):
        if not is_there(state.presence[arm]):
            continue
        along = 0.0
        for i in range(d):
            along += state.column[i, 0] * constants.contexts[arm, i]
        leverage = state.leverages[arm]
        crowd = 1.0 + pending[arm] * leverage  # what is on its way tells the same
        gain = along * along / ((1.0 + leverage) * crowd * crowd)
        gain /= cost_of(constants.cost[arm], state.gaps[arm], state.mean_gap[0], constants.regret_weight)
        if gain > most:
            found, most = arm, gain
    return found


@kernel
def update(
    state: LinearScoutState,
    constants: LinearScoutConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Add the sample to A and to the estimate; test all arms at growing intervals."""
    take_in(state, constants, arm, outcome)
    if check_is_due(state):
        leaders = refresh(state, constants)
        for k in range(state.pulls.shape[0]):
            if state.status[k] == UNDECIDED and state.presence[k] != GONE:
                judge(state, constants, k, leaders)


@kernel
def judge_again(state: LinearScoutState, constants: LinearScoutConstants) -> None:
    """Forget all verdicts and judge every arm by the statistics as they are."""
    if not forget(state, constants):
        return
    leaders = refresh(state, constants)
    eliminated = 1
    while eliminated > 0:  # who need not be escaped any more may have been all that stood in the way of others
        eliminated = 0
        for k in range(state.pulls.shape[0]):
            if state.status[k] == UNDECIDED and state.presence[k] != GONE:
                judge(state, constants, k, leaders)
                eliminated += state.status[k] == DOMINATED


@kernel
def forget(state: LinearScoutState, constants: LinearScoutConstants) -> bool:
    """Forget all verdicts and bounds on sigma; return whether there are enough data to judge by."""
    state.counters[N_UNDECIDED] = 0
    for k in range(state.pulls.shape[0]):
        state.status[k], state.beaten_by[k] = UNDECIDED, -1
        state.progress[k], state.rival[k], state.route[k] = -np.inf, -1, ESCAPES
        state.counters[N_UNDECIDED] += is_there(state.presence[k])
    for metric in range(state.sigma.shape[0]):
        if not constants.sigma_known[metric]:
            state.sigma_bounded[metric] = 0
    state.counters[CHECK_AT] = 0
    if not spans(state):
        find_first_arms(state, constants)
        if not spans(state):
            return False
        begin_fit(state)
    return True


@kernel
def find_first_arms(state: LinearScoutState, constants: LinearScoutConstants) -> None:
    """Find arms that span all dimensions, among those pulled or there: each time the one that sticks out most."""
    K, d = constants.contexts.shape
    rest = state.solved  # of no use yet
    copy_into(rest, constants.contexts)
    for step in range(d):
        found, longest = -1, 1e-18 * K
        for k in range(K):
            square = 0.0
            for i in range(d):
                square += rest[k, i] * rest[k, i]
            if square > longest and (state.pulls[k] > 0 or is_there(state.presence[k])):
                found, longest = k, square
        state.first_arms[step] = found
        if found < 0:
            continue
        for i in range(d):
            state.scratch[i] = rest[found, i]
        for k in range(K):
            along = 0.0
            for i in range(d):
                along += rest[k, i] * state.scratch[i]
            for i in range(d):
                rest[k, i] -= along / longest * state.scratch[i]


@kernel
def take_in(state: LinearScoutState, constants: LinearScoutConstants, arm: int, outcome: FloatArray) -> None:
    """Add the sample to A and to the estimate."""
    d = constants.contexts.shape[1]
    was_spanned = spans(state)
    state.counters[TOTAL] += 1
    state.pulls[arm] += 1
    n = float(state.pulls[arm])
    for metric in range(outcome.shape[0]):
        value = outcome[metric]
        note_value(state.seen, state.n_seen, metric, value)
        if n == 1.0:
            state.centres[arm, metric] = value
        off = value - state.centres[arm, metric]  # sums are of distances: large means cost no digits
        before = state.sums[arm, metric]
        state.sums[arm, metric] += off
        if n > 1.0:
            state.squares[metric] += (off - before / (n - 1.0)) * (off - state.sums[arm, metric] / n)
        left = value
        for i in range(d):
            left -= constants.contexts[arm, i] * state.reference[i, metric]
        for i in range(d):
            state.right[i, metric] += constants.contexts[arm, i] * left
    for i in range(d):
        for j in range(i, d):
            state.gram[i, j] += constants.contexts[arm, i] * constants.contexts[arm, j]
    if was_spanned:
        for i in range(d):
            state.scratch[i] = constants.contexts[arm, i]
        add_outer_product(state.factor, state.reach, state.scratch)
        fit(state)
    elif spans(state):
        begin_fit(state)


@kernel
def begin_fit(state: LinearScoutState) -> None:
    """Fit for the first time, once A is invertible."""
    copy_into(state.factor, state.gram)
    factorise(state.factor, state.reach)
    fit(state)


@kernel
def fit(state: LinearScoutState) -> None:
    """Least squares: what was found at the last check, and what has come since."""
    copy_into(state.theta, state.right)
    solve(state.factor, state.reach, state.theta)
    for i in range(state.theta.shape[0]):
        for metric in range(state.theta.shape[1]):
            state.theta[i, metric] += state.reference[i, metric]


@kernel
def fit_again(state: LinearScoutState, constants: LinearScoutConstants) -> None:
    """Fit once more what the fit leaves of the arms' means, so that rounding does not add up; count on from there."""
    d, L = state.right.shape
    for metric in range(L):
        for i in range(d):
            state.right[i, metric] = 0.0
        for k in range(state.pulls.shape[0]):
            if state.pulls[k] > 0:
                left = state.pulls[k] * unexplained(state, constants, k, metric)
                for i in range(d):
                    state.right[i, metric] += constants.contexts[k, i] * left
    copy_into(state.reference, state.theta)
    fit(state)
    copy_into(state.reference, state.theta)
    for i in range(d):
        for metric in range(L):
            state.right[i, metric] = 0.0


@kernel
def check_is_due(state: LinearScoutState) -> bool:
    """Whether all arms are to be tested now; if so, say when to do so again."""
    if state.counters[TOTAL] < state.counters[CHECK_AT] or not spans(state):
        return False
    wait = 1 + state.pulls.shape[0] // ARMS_PER_SAMPLE + int(CHECK_GROWTH * state.counters[TOTAL])
    state.counters[CHECK_AT] = state.counters[TOTAL] + wait
    return True


@kernel
def refresh(state: LinearScoutState, constants: LinearScoutConstants) -> int:
    """Bring means, inverses, prices and gaps up to date; return how many leaders there are."""
    K, d = constants.contexts.shape
    L, R = state.log_prices.shape
    fit_again(state, constants)
    for k in range(K):
        for i in range(d):
            state.column[i, 0] = constants.contexts[k, i]
        solve(state.factor, state.reach, state.column)
        state.checked_pulls[k] = state.pulls[k]
        state.leverages[k] = 0.0
        for i in range(d):
            state.solved[k, i] = state.column[i, 0]
            state.leverages[k] += constants.contexts[k, i] * state.column[i, 0]
        for metric in range(L):
            mean = 0.0
            for i in range(d):
                mean += constants.contexts[k, i] * state.theta[i, metric]
            state.means[k, metric] = mean
    for metric in range(L):
        for r in range(R):
            rho = constants.rhos[metric, r]
            for i in range(d):
                for j in range(i, d):
                    state.shifted[i, j] = state.gram[i, j] / rho
                state.shifted[i, i] += 1.0
            factorise(state.shifted, state.reach)
            half_log_det = 0.0
            for i in range(d):
                half_log_det += 0.5 * math.log(state.shifted[i, i])
            state.log_prices[metric, r] = constants.log_weights[r] - half_log_det
    bound_sigma(state, constants, float(state.counters[TOTAL]))
    n_standing = 0
    for k in range(K):
        if state.status[k] != DOMINATED and is_there(state.presence[k]):
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
def allows_misfit(constants: LinearScoutConstants) -> bool:
    """Whether means may be off the model."""
    largest = 0.0
    for misfit in constants.misfit:
        largest = max(largest, misfit)
    return largest > 0.0


@kernel
def bias_along(state: LinearScoutState, constants: LinearScoutConstants, k: int, j: int) -> float:
    """How much of a misfit of 1 in every arm can hide in the estimated difference of k and j, as of the last check.

    b = sum_i |1{i=k} - 1{i=j} - n_i z^T A^-1 x_i|: what each arm's misfit adds to the difference, less what it adds to
    its estimate. j = -1: in the estimate of k alone.
    """
    K, d = constants.contexts.shape
    bias = 0.0
    for i in range(K):
        weight = 0.0
        if state.checked_pulls[i] > 0:
            for c in range(d):
                other = state.solved[j, c] if j >= 0 else 0.0
                weight += (state.solved[k, c] - other) * constants.contexts[i, c]
        own = 1.0 if i == k else (-1.0 if i == j else 0.0)
        bias += abs(own - state.checked_pulls[i] * weight)
    return bias


@kernel
def judge(state: LinearScoutState, constants: LinearScoutConstants, k: int, n_leaders: int) -> None:
    """Look for the arm that most clearly dominates k, and for the one that k least clearly escapes."""
    L = state.means.shape[1]
    misfit = allows_misfit(constants)
    best, against = -1, -np.inf
    worst, in_favour = -1, np.inf
    for j in state.leaders[:n_leaders]:  # whoever dominates k by the estimates, one of these does so more clearly
        if constants.twins[j] != constants.twins[k] and margin(j, k, state.means) > 0.0:
            a, b = pair_variances(state, constants, k, j)
            if a < 0.0:
                continue
            bias = bias_along(state, constants, k, j) if misfit else 0.0
            evidence = np.inf
            ahead = True  # whether j leads by eps everywhere, so that there is no evidence that k escapes it
            for metric in range(L):
                difference = state.means[j, metric] - state.means[k, metric]
                if evidence > against:  # else another one is clearer already
                    hidden = constants.misfit[metric] * bias
                    evidence = min(evidence, pair_evidence(state, constants, metric, difference - hidden, a, b))
                ahead = ahead and difference >= constants.eps[metric]
            if evidence > against:
                best, against = j, evidence
            if ahead and state.excused[j] == 0:
                worst, in_favour = j, -np.inf
    certain = True  # an estimate of sigma ranks pairs, but proves nothing
    for metric in range(L):
        certain = certain and state.sigma_bounded[metric] == 1
    if in_favour == np.inf and (against < constants.threshold or not certain):
        for j in range(state.pulls.shape[0]):
            if in_favour < against:
                break  # elimination is nearer, whatever the others say
            if state.status[j] == DOMINATED or state.presence[j] == GONE or state.excused[j] == 1 or j == k:
                continue
            a, b = (-1.0, 0.0) if constants.twins[j] == constants.twins[k] else pair_variances(state, constants, k, j)
            evidence = -np.inf
            if a < 0.0:
                for metric in range(L):  # by the model the two are equal: neither can be better by two misfits
                    if constants.eps[metric] >= 2.0 * constants.misfit[metric]:
                        evidence = np.inf
            else:
                bias = bias_along(state, constants, k, j) if misfit else 0.0
                if clearer(state, constants, k, j, a, b, bias, in_favour):
                    continue
                for metric in range(L):
                    difference = lead_with_slack(state, constants, k, j, metric, bias)
                    evidence = max(evidence, pair_evidence(state, constants, metric, difference, a, b))
            if evidence < in_favour:
                worst, in_favour = j, evidence
    if certain and against >= constants.threshold:
        state.status[k] = DOMINATED
        state.beaten_by[k] = best
        state.counters[N_UNDECIDED] -= is_there(state.presence[k])
    elif certain and in_favour >= constants.threshold and is_there(state.presence[k]):
        state.status[k] = FRONT
        state.counters[N_UNDECIDED] -= 1
    elif against > in_favour:
        state.progress[k], state.rival[k], state.route[k] = against, best, BEATEN
    else:
        state.progress[k], state.rival[k], state.route[k] = in_favour, worst, ESCAPES


@kernel
def lead_with_slack(
    state: LinearScoutState, constants: LinearScoutConstants, k: int, j: int, metric: int, bias: float
) -> float:
    """By how much k leads j at least, given a lead of eps, whatever the misfits are."""
    lead = state.means[k, metric] + constants.eps[metric] - state.means[j, metric]
    return lead - constants.misfit[metric] * bias


@kernel
def clearer(
    state: LinearScoutState,
    constants: LinearScoutConstants,
    k: int,
    j: int,
    a: float,
    b: float,
    bias: float,
    evidence: float,
) -> bool:
    """Whether one scale alone shows more than `evidence` that k escapes j: most pairs need no more than this."""
    for metric in range(state.means.shape[1]):
        difference = lead_with_slack(state, constants, k, j, metric, bias)
        sigma = state.sigma[metric]
        if difference > 0.0 and sigma > 0.0:
            half_square = 0.5 * difference * difference / (sigma * sigma)
            for r in range(constants.rhos.shape[1]):
                if state.log_prices[metric, r] + half_square / (a + constants.rhos[metric, r] * b) > evidence:
                    return True
    return False


@kernel
def pair_variances(state: LinearScoutState, constants: LinearScoutConstants, k: int, j: int) -> tuple[float, float]:
    """a = z^T A^-1 z and b = z^T A^-2 z for z = x_k - x_j, as of the last check.

    a is -1 where the contexts are all but equal: what rounding leaves of the difference says nothing.
    """
    a, b = 0.0, 0.0
    for i in range(constants.contexts.shape[1]):
        step = state.solved[k, i] - state.solved[j, i]
        a += (constants.contexts[k, i] - constants.contexts[j, i]) * step
        b += step * step
    return (a if a > SAME * (state.leverages[k] + state.leverages[j]) else -1.0), b


@allocating_kernel
def verdicts(state: LinearScoutState, constants: LinearScoutConstants) -> Verdicts:
    """Estimates by the model as of the last check, with their intervals."""
    K, L = state.means.shape
    radii = np.full((K, L), np.inf)
    if spans(state):
        for k in range(K):
            a, b = 0.0, 0.0
            for i in range(constants.contexts.shape[1]):
                a += constants.contexts[k, i] * state.solved[k, i]
                b += state.solved[k, i] * state.solved[k, i]
            bias = bias_along(state, constants, k, -1) if allows_misfit(constants) else 0.0
            for metric in range(L):
                for r in range(constants.rhos.shape[1]):
                    exponent = constants.threshold - state.log_prices[metric, r]
                    radius = state.sigma[metric] * math.sqrt(2.0 * exponent * (a + constants.rhos[metric, r] * b))
                    if state.sigma_bounded[metric] == 1:
                        radii[k, metric] = min(radii[k, metric], radius + constants.misfit[metric] * bias)
    means = state.means.copy()
    return verdicts_of_those_there(state.status, state.beaten_by, means, radii, state.pulls, state.presence)


@kernel
def done(state: LinearScoutState, constants: LinearScoutConstants) -> bool:
    """Whether every arm that is there has its verdict."""
    return state.counters[N_UNDECIDED] == 0


KERNELS = Kernels(
    state=LinearScoutState,
    choose=choose,
    update=update,
    verdicts=verdicts,
    done=done,
    judge_again=judge_again,
    ranges={"counters": ("count", "arms", "count")},
    intervals=True,
    accepts=Accepts(pending=True, unasked=True),
    assumes="means linear in the contexts",
    pools_noise=True,
)
