"""Scout for arms whose means are linear in their contexts: every sample tells something of every arm."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...errors import InvalidInput
from ...kernels.algebra import add_outer_product, copy_into, factorise, solve
from ...kernels.arrays import BoolArray, FloatArray, IntArray, SmallInts
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
    name_rivals_there,
)
from ...kernels.dispatch import NO_TICKET, Verdicts
from ...kernels.evidence import log_evidence_along, note_value
from ...kernels.noise import bound_sigma, unexplained
from ...laws import FEW_VALUES
from ..contract import Setup
from ..states import declare
from .contexts import first_equals, probes_of, spanning, whitened

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
#: What rounding may take from a variance along a direction, relative to the variances of the two arms, and from a
#: difference, relative to the two means.
ROUNDING_OF_VARIANCES = 1e-13
ROUNDING_OF_MEANS = 1e-12
#: All arms are tested again after this share more samples, and one more per so many arms: early tests cost K^2 d and
#: decide little.
CHECK_GROWTH = 0.005
ARMS_PER_SAMPLE = 50
#: Arms that have to be escaped are kept in blocks of at most this many with similar means: most are passed at once.
BLOCK = 32

#: So many more arms than it takes to span all dimensions tell enough of how well contexts explain means.
ENOUGH_MEASURED = 32
#: While verdicts are held, every so many samples one goes to the arm on which least was spent; if all is clear, each.
SPREAD = 5

# From so many arms on not every one is looked at for everything.
MANY_ARMS = 20_000
#: While more stand, arms are held against the leaders only.
FEW_ENOUGH = 1 << 13
#: Of those that stand about so many are looked at, to see whether it pays to go over all.
SAMPLE = 4096
#: It does if this share of them would have a verdict.
WORTHWHILE = 0.1
#: If going over all decided less than half of that, it waits until there are so many times the samples.
PAUSE = 1.25
#: Checks are no further apart than this, relatively.
MOST_GROWTH = 0.1
#: The most ambiguous arms, which are looked at between checks.
N_WAITING = 64
#: For so many of them the most telling of all arms become probes, each time there are this share more samples.
N_ADDED = 8
PROBE_GROWTH = 0.1
#: So many probes may be added; then later ones take the place of others.
MORE_PROBES = 1024


class LinearScoutConstants(NamedTuple):
    contexts: FloatArray  # (K, d) whitened: the mean outer product of the first arms is the unit matrix
    twins: IntArray  # (K,) the first arm with the same context
    cost: FloatArray  # (K,) of a sample, on average 1
    eps: FloatArray  # (L,)
    misfit: FloatArray  # (L,) how far the mean of an arm may be from the model
    sigma_known: BoolArray  # (L,)
    exact: BoolArray  # (L,) whether numbers that hardly vary are certain
    silent: SmallInts  # (L,) whether a metric is a sum with a part that is no evidence, by its law
    rates: FloatArray  # (6,) for the bound on sigma
    log_sigma_price: float  # log of 1 / (probability that the bound fails), rate by rate and metric by metric
    rhos: FloatArray  # (L, R)
    log_weights: FloatArray  # (R,)
    threshold: float  # log(L / delta): the evidence holds for all pairs at once
    regret_weight: float
    ones: FloatArray  # (L,)
    many: bool  # whether not every arm is looked at for everything
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
    sampled: IntArray  # (K,) arms with samples, as of the last check
    checked_pulls: IntArray  # (K,) samples of each arm as of the last check
    inverse: FloatArray  # (d, d) A^-1 as of the last check
    means: FloatArray  # (K, L) as of when the arm was last looked at
    leverages: FloatArray  # (K,) x^T A^-1 x, likewise
    lengths: FloatArray  # (K,) x^T A^-2 x, likewise
    rows: IntArray  # (K,) where A^-1 x stands
    solved: FloatArray  # (K, d) A^-1 x as of the last check; many arms: of those that stand, once they are few enough
    squares: FloatArray  # (L,) sum of the squared distances of Y to the mean of its arm
    sigma: FloatArray  # (L,) noise scale, or an upper bound on it as of the last check; an estimate before there is one
    sigma_bounded: IntArray  # (L,) whether it is more than an estimate
    held: IntArray  # (1,) 1: no verdicts yet, because too little is known of how well the contexts explain the means
    log_prices: FloatArray  # (L, R) log w - 1/2 log det(I + A / rho) as of the last check
    progress: FloatArray  # (K,) evidence of the pair that decides the arm, as of when it was last looked at
    rival: IntArray  # (K,) the other arm of that pair
    route: IntArray  # (K,) what that pair is to show: BEATEN or ESCAPES
    gaps: FloatArray  # (K,)
    mean_gap: FloatArray  # (1,)
    status: IntArray  # (K,)
    beaten_by: IntArray  # (K,)
    counters: IntArray  # (12,) see below
    scratch: FloatArray  # (d,)
    column: FloatArray  # (d, 1)
    shifted: FloatArray  # (d, d)
    standing: IntArray  # (K,) arms that have to be escaped: neither eliminated nor gone, as of the last check
    leaders: IntArray  # (K,) those there that no other one beats by the estimates; two metrics: by the first, falling
    units: FloatArray  # (L,) by which metrics are divided to find the leader that most clearly beats an arm
    waiting: (
        IntArray  # (K,) undecided arms as of the last check; many arms: the 64 with the least evidence; -1: no more
    )
    probes: IntArray  # (P,) the arms that are looked at to find the most telling one; few arms: all
    columns: FloatArray  # (d, P) their contexts
    along: FloatArray  # (P,)
    directions: FloatArray  # (d, 8) along which the most telling of all arms are looked for
    reached: FloatArray  # (8,)
    gains: FloatArray  # (8,)
    telling: IntArray  # (8,)
    order: IntArray  # (K,) arms that stand, block by block
    block_starts: IntArray  # (B,) where each block starts
    block_stops: IntArray  # (B,) and ends
    block_tops: FloatArray  # (B, L) the largest mean in a block
    tasks: IntArray  # (64, 3) parts that are yet to be cut: from, to, and how often they were cut
    largest: FloatArray  # (L + 2,) of all that stand: absolute means, leverage, length
    needed: FloatArray  # (L,)
    excused: IntArray  # (K,) 1: that the arm in question escapes this one is known from elsewhere


# Samples in all, undecided arms, samples at the next check; arms that stand, leaders, probes; arms with samples, and
# how many of them are listed; blocks; samples when probes are added, when all arms are gone over, and not before.
TOTAL, N_UNDECIDED, CHECK_AT, N_STANDING, N_LEADERS, N_PROBES, N_PULLED, N_SAMPLED, N_BLOCKS = range(9)
PROBE_AT, PASS_AT, PAUSE_UNTIL = 9, 10, 11
THOROUGH = -1  # all arms are gone over now, and each is held against all others, however many there are
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
    many = K > MANY_ARMS and misfit is None
    probes = probes_of(contexts) if many else np.arange(K)
    room = min(K, len(probes) + MORE_PROBES) - len(probes)  # for probes that are yet to be found
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
        twins=first_equals(setup.contexts),
        cost=setup.cost / setup.cost.mean(),
        eps=setup.eps.copy(),
        misfit=np.zeros(L) if misfit is None else misfit,
        sigma_known=known,
        exact=setup.exact.copy(),
        silent=np.zeros(L, np.int8),
        rates=np.array(RATES),
        log_sigma_price=math.log(len(RATES) * L / (FOR_SIGMA * setup.delta)),
        rhos=top[:, None] / 4.0 ** np.arange(R),
        log_weights=np.log(SCALE_WEIGHTS),
        threshold=math.log(L / delta),
        regret_weight=regret_weight,
        ones=np.ones(L),
        many=many,
    )
    state = LinearScoutState(
        presence=np.full(K, PRESENT, np.int64),
        first_arms=np.sort(probes[spanning(contexts[probes])]),
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
        sampled=np.zeros(K, np.int64),
        checked_pulls=np.zeros(K, np.int64),
        inverse=np.zeros((rank, rank)),
        means=np.zeros((K, L)),
        leverages=np.zeros(K),
        lengths=np.zeros(K),
        rows=np.zeros(K, np.int64),
        solved=np.zeros((min(K, FEW_ENOUGH) if many else K, rank)),
        squares=np.zeros(L),
        sigma=sigma,
        sigma_bounded=known.astype(np.int64),
        held=np.zeros(1, np.int64),
        log_prices=np.zeros((L, R)),
        progress=np.full(K, -np.inf),
        rival=np.full(K, -1, np.int64),
        route=np.zeros(K, np.int64),
        gaps=np.zeros(K),
        mean_gap=np.zeros(1),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        counters=np.array([0, K, 0, K, 0, len(probes), 0, 0, 0, 0, 0, 0], np.int64),
        scratch=np.zeros(rank),
        column=np.zeros((rank, 1)),
        shifted=np.zeros((rank, rank)),
        standing=np.arange(K),
        leaders=np.zeros(K, np.int64),
        units=np.ones(L),
        waiting=np.full(min(K, N_WAITING) if many else K, -1, np.int64),
        probes=np.append(probes, np.full(room, -1)).astype(np.int64),
        columns=np.hstack([contexts[probes].T, np.zeros((rank, room))]),
        along=np.zeros(len(probes) + room),
        directions=np.zeros((rank, N_ADDED)),
        reached=np.zeros(N_ADDED),
        gains=np.zeros(N_ADDED),
        telling=np.zeros(N_ADDED, np.int64),
        order=np.zeros(K, np.int64),
        block_starts=np.zeros(2 * K // BLOCK + 1, np.int64),
        block_stops=np.zeros(2 * K // BLOCK + 1, np.int64),
        block_tops=np.zeros((2 * K // BLOCK + 1, L)),
        tasks=np.zeros((64, 3), np.int64),
        largest=np.zeros(L + 2),
        needed=np.zeros(L),
        excused=np.zeros(K, np.int64),
    )
    return state, constants


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
    all_clear = k < 0 or state.progress[k] >= constants.threshold
    if state.held[0] == 1 and (all_clear or state.counters[TOTAL] % SPREAD == 0):
        return least_measured(state, constants, pending), constants.no_ticket
    return most_telling(state, constants, k, pending), constants.no_ticket


@kernel
def least_measured(state: LinearScoutState, constants: LinearScoutConstants, pending: IntArray) -> int:
    """The probe on which least was spent; once ENOUGH_MEASURED more than it takes to span were seen, one of these."""
    found, least = -1, np.inf
    enough = state.counters[N_PULLED] >= state.gram.shape[0] + ENOUGH_MEASURED
    for arm in state.probes[: min(state.counters[N_PROBES], state.probes.shape[0])]:
        if arm < 0 or not is_there(state.presence[arm]) or (enough and state.pulls[arm] == 0):
            continue
        spent = (1 + state.pulls[arm] + pending[arm]) * constants.cost[arm]
        if spent < least:
            found, least = arm, spent
    if found >= 0:
        return found
    return most_ambiguous(state)


@kernel
def most_ambiguous(state: LinearScoutState) -> int:
    """The undecided arm with the least evidence on the pair that decides it, of those that wait."""
    found, least = -1, np.inf
    for k in state.waiting:
        if k < 0:
            break
        if is_open(state.status, state.presence, k) and (found < 0 or state.progress[k] < least):
            found, least = k, state.progress[k]
    if found >= 0:
        return found
    for k in range(state.pulls.shape[0]):  # all of them have left
        if is_open(state.status, state.presence, k) and (found < 0 or state.progress[k] < least):
            found, least = k, state.progress[k]
    return found


@kernel
def is_open(status: IntArray, presence: IntArray, k: int) -> bool:
    """Whether the arm is there and has no verdict."""
    return status[k] == UNDECIDED and is_there(presence[k])


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
        sigma, rhos, prices = state.sigma[metric], constants.rhos[metric], state.log_prices[metric]
        if state.route[k] == BEATEN:
            shown = log_evidence(-difference - hidden, a, b, sigma, rhos, prices)
            evidence = min(evidence, shown)
        else:
            difference += constants.eps[metric] - hidden
            evidence = max(evidence, log_evidence(difference, a, b, sigma, rhos, prices))
    state.progress[k] = evidence


@kernel
def pair_evidence(
    state: LinearScoutState, constants: LinearScoutConstants, metric: int, difference: float, a: float, b: float
) -> float:
    """Log e-value along a direction; below zero, for the order among arms, where the difference is negative."""
    return log_evidence(difference, a, b, state.sigma[metric], constants.rhos[metric], state.log_prices[metric])


@kernel
def log_evidence(
    difference: float, a: float, b: float, sigma: float, rhos: FloatArray, log_prices: FloatArray
) -> float:
    """`pair_evidence` of one metric. What is called for many pairs gets no state: handing that over would cost more."""
    if difference <= 0.0 or (sigma == 0.0 and difference < ROUNDING):
        return -0.5 * difference * difference / max(sigma * sigma * a, 1e-300)
    return log_evidence_along(difference, a, b, sigma, rhos, log_prices)


@kernel
def most_telling(state: LinearScoutState, constants: LinearScoutConstants, k: int, pending: IntArray) -> int:
    """The probe whose sample most reduces the variance along x_k - x_j, per cost; leverages as of the last check."""
    d = constants.contexts.shape[1]
    j = state.rival[k]
    if j < 0:
        return k
    for i in range(d):
        state.column[i, 0] = constants.contexts[k, i] - constants.contexts[j, i]
    solve(state.factor, state.reach, state.column)
    n = min(state.counters[N_PROBES], state.probes.shape[0])
    for p in range(n):
        state.along[p] = 0.0
    for i in range(d):  # dimension by dimension: so many probes at once
        weight = state.column[i, 0]
        for p in range(n):
            state.along[p] += weight * state.columns[i, p]
    found, most = k, -1.0
    for p in range(n):
        arm = state.probes[p]
        if arm < 0 or not is_there(state.presence[arm]):
            continue
        leverage = state.leverages[arm]
        crowd = 1.0 + pending[arm] * leverage  # what is on its way tells the same
        gain = state.along[p] * state.along[p] / ((1.0 + leverage) * crowd * crowd)
        gain /= cost_of(constants.cost[arm], state.gaps[arm], state.mean_gap[0], constants.regret_weight)
        if gain > most:
            found, most = arm, gain
    return found


@kernel
def judge_again(state: LinearScoutState, constants: LinearScoutConstants) -> None:
    """Forget all verdicts and judge every arm by the statistics as they are."""
    if not forget(state, constants):
        return
    refresh(state, constants)
    eliminated = 1
    while eliminated > 0:  # who need not be escaped any more may have been all that stood in the way of others
        if constants.many:
            state.counters[PASS_AT] = THOROUGH
            eliminated = check_many(state, constants)
        else:
            eliminated = judge_all(state, constants)


@kernel
def judge_all(state: LinearScoutState, constants: LinearScoutConstants) -> int:
    """Judge every arm that has no verdict; return how many are eliminated."""
    eliminated = 0
    for k in state.standing[: state.counters[N_STANDING]]:
        if state.status[k] == UNDECIDED:
            judge(state, constants, k, state.counters[N_LEADERS])
            eliminated += state.status[k] == DOMINATED
    return eliminated


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
    for counter in (CHECK_AT, N_LEADERS, PROBE_AT, PASS_AT, PAUSE_UNTIL):
        state.counters[counter] = 0
    state.counters[N_STANDING] = list_standing(state.status, state.presence, state.standing)
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
    basis = state.shifted  # of no use yet: row by row the directions found so far, each at right angles to the others
    n_found = 0
    for step in range(d):
        found, longest = -1, 1e-18 * K
        for k in range(K):
            if state.pulls[k] > 0 or is_there(state.presence[k]):
                square = stick_out(constants.contexts, k, basis, n_found, state.scratch)
                if square > longest:
                    found, longest = k, square
        state.first_arms[step] = found
        if found < 0:
            continue
        stick_out(constants.contexts, found, basis, n_found, state.scratch)
        for i in range(d):
            basis[n_found, i] = state.scratch[i] / math.sqrt(longest)
        n_found += 1


@kernel
def stick_out(contexts: FloatArray, k: int, basis: FloatArray, n_found: int, rest: FloatArray) -> float:
    """Write what of a context is at right angles to the basis to `rest`; return the square of its length."""
    d = contexts.shape[1]
    for i in range(d):
        rest[i] = contexts[k, i]
    for row in range(n_found):
        along = 0.0
        for i in range(d):
            along += rest[i] * basis[row, i]
        for i in range(d):
            rest[i] -= along * basis[row, i]
    square = 0.0
    for i in range(d):
        square += rest[i] * rest[i]
    return square


@kernel
def take_in(state: LinearScoutState, constants: LinearScoutConstants, arm: int, outcome: FloatArray) -> None:
    """Add the sample to A and to the estimate."""
    d = constants.contexts.shape[1]
    was_spanned = spans(state)
    state.counters[TOTAL] += 1
    state.pulls[arm] += 1
    state.counters[N_PULLED] += state.pulls[arm] == 1
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


def silence(constants: LinearScoutConstants, silent: BoolArray) -> LinearScoutConstants:
    """Say of which arms which metrics (K, L) are sums with a part that is no evidence; one arm may hardly vary."""
    return constants._replace(silent=np.asarray(silent.all(axis=0), np.int8))


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
        for k in state.sampled[: state.counters[N_SAMPLED]]:
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
    total = state.counters[TOTAL]
    if total < state.counters[CHECK_AT] or not spans(state):
        return False
    if state.waiting.shape[0] < state.pulls.shape[0]:  # many arms
        wait = min(MOST_GROWTH * total, state.counters[N_UNDECIDED] / ARMS_PER_SAMPLE)
        wait = max(float(state.gram.shape[0]), wait + CHECK_GROWTH * total)
    else:
        wait = 1.0 + state.pulls.shape[0] // ARMS_PER_SAMPLE + int(CHECK_GROWTH * total)
    state.counters[CHECK_AT] = total + int(wait)
    return True


@kernel
def refresh(state: LinearScoutState, constants: LinearScoutConstants) -> int:
    """Bring the fit up to date, and where there are few arms, all that is known of them; return how many lead."""
    refresh_fit(state, constants)
    if constants.many:
        return 0
    n = list_standing(state.status, state.presence, state.standing)
    state.counters[N_STANDING] = n
    look_at(
        constants.contexts,
        state.inverse,
        state.theta,
        state.probes[0 : state.counters[N_PROBES] : 1],  # all there are
        True,
        state.means,
        state.leverages,
        state.lengths,
        state.rows,
        state.solved,
        state.scratch,
    )
    n_leaders = find_leaders(state.leaders, 0, state.means, state.presence, state.standing[0:n:1])
    state.counters[N_LEADERS] = n_leaders
    n_waiting = 0
    for k in state.standing[:n]:
        if is_open(state.status, state.presence, k):
            state.waiting[n_waiting] = k
            n_waiting += 1
    if n_waiting < state.waiting.shape[0]:
        state.waiting[n_waiting] = -1
    note_gaps(
        state.leaders,
        n_leaders,
        state.means,
        constants.ones,
        constants.twins,
        state.probes[0 : state.counters[N_PROBES] : 1],
        state.gaps,
        state.mean_gap,
    )
    state.counters[N_BLOCKS] = cut_into_blocks(
        state.standing[:n],
        state.means,
        state.leverages,
        state.lengths,
        state.order,
        state.block_starts,
        state.block_stops,
        state.block_tops,
        state.tasks,
        state.largest,
    )
    return n_leaders


@kernel
def refresh_fit(state: LinearScoutState, constants: LinearScoutConstants) -> None:
    """Bring the fit, its inverse, the prices and the bound on sigma up to date."""
    d = constants.contexts.shape[1]
    L, R = state.log_prices.shape
    if state.counters[N_SAMPLED] != state.counters[N_PULLED]:
        n_sampled = 0
        for k in range(state.pulls.shape[0]):
            if state.pulls[k] > 0:
                state.sampled[n_sampled] = k
                n_sampled += 1
        state.counters[N_SAMPLED] = n_sampled
    fit_again(state, constants)
    for k in state.sampled[: state.counters[N_SAMPLED]]:
        state.checked_pulls[k] = state.pulls[k]
    for i in range(d):
        for j in range(d):
            state.column[j, 0] = 1.0 if i == j else 0.0
        solve(state.factor, state.reach, state.column)
        for j in range(d):
            state.inverse[i, j] = state.column[j, 0]
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
    bound_sigma(state, constants, float(state.counters[TOTAL]), state.sampled[: state.counters[N_SAMPLED]])


@kernel
def list_standing(status: IntArray, presence: IntArray, standing: IntArray) -> int:
    """List the arms that have to be escaped; return how many there are."""
    n = 0
    for k in range(status.shape[0]):
        if status[k] != DOMINATED and presence[k] != GONE:
            standing[n] = k
            n += 1
    return n


@kernel
def look_at(
    contexts: FloatArray,
    inverse: FloatArray,
    theta: FloatArray,
    arms: IntArray,
    keep: bool,
    means: FloatArray,
    leverages: FloatArray,
    lengths: FloatArray,
    rows: IntArray,
    solved: FloatArray,
    scratch: FloatArray,
) -> None:
    """Bring means and leverages of arms up to date, and A^-1 x, if that is to be kept: in the order of the arms."""
    d = contexts.shape[1]
    for row in range(arms.shape[0]):
        k = arms[row]
        estimate(contexts, theta, k, means)
        multiply(inverse, contexts, k, -1, scratch)
        leverage, length = 0.0, 0.0
        for i in range(d):
            leverage += contexts[k, i] * scratch[i]
            length += scratch[i] * scratch[i]
        leverages[k], lengths[k], rows[k] = leverage, length, row if keep else -1
        if keep:
            for i in range(d):
                solved[row, i] = scratch[i]


@kernel
def estimate(contexts: FloatArray, theta: FloatArray, k: int, means: FloatArray) -> None:
    """Bring the mean of an arm up to date."""
    for metric in range(means.shape[1]):
        mean = 0.0
        for i in range(contexts.shape[1]):
            mean += contexts[k, i] * theta[i, metric]
        means[k, metric] = mean


@kernel
def multiply(inverse: FloatArray, contexts: FloatArray, k: int, j: int, product: FloatArray) -> None:
    """Write A^-1 (x_k - x_j) to `product`; j = -1: A^-1 x_k. Row by row: so many entries at once."""
    d = contexts.shape[1]
    for i in range(d):
        product[i] = 0.0
    for c in range(d):
        weight = contexts[k, c] - contexts[j, c] if j >= 0 else contexts[k, c]
        for i in range(d):
            product[i] += weight * inverse[c, i]


# Leaders: arms that no other one beats by the estimates. With two metrics they are kept in order: the first metric
# falls from one to the next, the second rises.


@kernel
def find_leaders(leaders: IntArray, n: int, means: FloatArray, presence: IntArray, arms: IntArray) -> int:
    """Find the leaders among those arms that are there and n leaders there are already; return how many there are."""
    for k in arms:
        if is_there(presence[k]):
            n = offer(leaders, n, means, k)
    return n


@kernel
def offer(leaders: IntArray, n: int, means: FloatArray, k: int) -> int:
    """Make an arm a leader, unless one of the n is as good in every metric; return how many there are then.

    Those that it covers are leaders no more.
    """
    if means.shape[1] == 2:
        place = n_ahead(leaders, n, means, k, 0)
        if place > 0 and means[leaders[place - 1], 1] >= means[k, 1]:
            return n
        if place < n and margin(leaders[place], k, means) >= 0.0:
            return n
        last = place
        while last < n and means[leaders[last], 1] <= means[k, 1]:
            last += 1
        if last == place:
            for position in range(n, place, -1):
                leaders[position] = leaders[position - 1]
        else:
            for position in range(last, n):
                leaders[position - last + place + 1] = leaders[position]
        leaders[place] = k
        return n + 1 - (last - place)
    position = 0
    while position < n:
        j = leaders[position]
        if margin(j, k, means) >= 0.0:  # it is likely to cover others too: further ahead it is found sooner
            leaders[position], leaders[position // 2] = leaders[position // 2], j
            return n
        if margin(k, j, means) >= 0.0:
            n -= 1
            leaders[position] = leaders[n]
        else:
            position += 1
    leaders[n] = k
    return n + 1


@kernel
def n_ahead(leaders: IntArray, n: int, means: FloatArray, k: int, metric: int) -> int:
    """Two metrics: how many leaders are ahead of k in the first one; or not ahead of it in the second."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if (means[leaders[middle], metric] > means[k, metric]) == (metric == 0):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def clearest_leader(
    leaders: IntArray, n: int, means: FloatArray, units: FloatArray, twins: IntArray, but_for: int, k: int
) -> int:
    """The leader that beats k by most, or is beaten by least, in the metric where that is least; -1: there is none.

    but_for: those with the same context as this arm do not count.
    """
    first, last = 0, n
    if means.shape[1] == 2:  # what it leads by falls in one metric and rises in the other
        low, high = first, last
        while low < high:
            middle = (low + high) // 2
            j = leaders[middle]
            if (means[j, 1] - means[k, 1]) / units[1] < (means[j, 0] - means[k, 0]) / units[0]:
                low = middle + 1
            else:
                high = middle
        first, last = max(0, low - 2), min(last, low + 2)  # one or two of them may be k, or equal to it
    found, most = -1, -np.inf
    for position in range(first, last):
        j = leaders[position]
        least = np.inf
        for metric in range(means.shape[1]):
            least = min(least, (means[j, metric] - means[k, metric]) / units[metric])
            if least <= most:
                break
        if least > most and twins[j] != but_for:
            found, most = j, least
    return found


@kernel
def note_gaps(
    leaders: IntArray,
    n: int,
    means: FloatArray,
    ones: FloatArray,
    twins: IntArray,
    arms: IntArray,
    gaps: FloatArray,
    mean_gap: FloatArray,
) -> None:
    """Renew by how much arms seem to be beaten in every metric, and the mean gap of all."""
    change = 0.0
    for k in arms:
        j = clearest_leader(leaders, n, means, ones, twins, -1, k)
        gap = max(0.0, margin(j, k, means)) if j >= 0 else 0.0
        change += gap - gaps[k]
        gaps[k] = gap
    mean_gap[0] += change / gaps.shape[0]


# Blocks: arms that have to be escaped, with similar means.


@kernel
def cut_into_blocks(
    standing: IntArray,
    means: FloatArray,
    leverages: FloatArray,
    lengths: FloatArray,
    order: IntArray,
    starts: IntArray,
    stops: IntArray,
    tops: FloatArray,
    tasks: IntArray,
    largest: FloatArray,
) -> int:
    """Cut arms in halves, by one metric after the other, until there are few in each part; return how many parts."""
    L, n = means.shape[1], standing.shape[0]
    for position in range(n):
        order[position] = standing[position]
    for entry in range(L + 2):
        largest[entry] = 0.0
    n_tasks, n_blocks = 1, 0
    tasks[0, 0], tasks[0, 1], tasks[0, 2] = 0, n, 0
    while n_tasks > 0:
        n_tasks -= 1
        start, stop, cuts = tasks[n_tasks, 0], tasks[n_tasks, 1], tasks[n_tasks, 2]
        if stop - start > BLOCK:
            middle = (start + stop) // 2
            halve(order, start, stop, middle, means, cuts % L)
            for part in range(2):
                tasks[n_tasks, 0] = start if part == 0 else middle  # the better half comes first
                tasks[n_tasks, 1] = middle if part == 0 else stop
                tasks[n_tasks, 2] = cuts + 1
                n_tasks += 1
            continue
        for metric in range(L):
            tops[n_blocks, metric] = -np.inf
        for k in order[start:stop]:
            for metric in range(L):
                tops[n_blocks, metric] = max(tops[n_blocks, metric], means[k, metric])
                largest[metric] = max(largest[metric], abs(means[k, metric]))
            largest[L] = max(largest[L], leverages[k])
            largest[L + 1] = max(largest[L + 1], lengths[k])
        starts[n_blocks], stops[n_blocks] = start, stop
        n_blocks += 1
    return n_blocks


@kernel
def halve(arms: IntArray, start: int, stop: int, middle: int, values: FloatArray, metric: int) -> None:
    """Sort the arms so far that none before the middle is larger in a metric than any from there on."""
    low, high = start, stop - 1
    while low < high:
        pivot = values[arms[(low + high) // 2], metric]
        i, j = low, high
        while i <= j:
            while values[arms[i], metric] < pivot:
                i += 1
            while values[arms[j], metric] > pivot:
                j -= 1
            if i <= j:
                arms[i], arms[j] = arms[j], arms[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


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
    d = constants.contexts.shape[1]
    bias = (state.checked_pulls[k] == 0) + 1.0 * (j >= 0 and state.checked_pulls[j] == 0)
    for i in state.sampled[: state.counters[N_SAMPLED]]:
        weight = 0.0
        for c in range(d):
            other = state.solved[j, c] if j >= 0 else 0.0
            weight += (state.solved[k, c] - other) * constants.contexts[i, c]
        own = 1.0 if i == k else (-1.0 if i == j else 0.0)
        bias += abs(own - state.checked_pulls[i] * weight)
    return bias


@kernel
def least_bias(state: LinearScoutState, constants: LinearScoutConstants, k: int, j: int) -> float:
    """What k and j alone add to `bias_along`: no more than that, without a look at every arm."""
    of_k, of_j = 1.0, -1.0
    for c in range(constants.contexts.shape[1]):
        along = state.solved[k, c] - state.solved[j, c]
        of_k -= state.checked_pulls[k] * along * constants.contexts[k, c]
        of_j -= state.checked_pulls[j] * along * constants.contexts[j, c]
    return abs(of_k) + abs(of_j)


@kernel
def evidence_against(
    state: LinearScoutState,
    constants: LinearScoutConstants,
    k: int,
    j: int,
    a: float,
    b: float,
    bias: float,
    reached: float,
) -> float:
    """Log evidence that j is better than k in every metric; no more is worked out once it is below what was reached."""
    evidence = np.inf
    for metric in range(state.means.shape[1]):
        if evidence > reached:
            difference = lead(state.means, j, k, metric) - constants.misfit[metric] * bias
            sigma, rhos, prices = state.sigma[metric], constants.rhos[metric], state.log_prices[metric]
            evidence = min(evidence, log_evidence(difference, a, b, sigma, rhos, prices))
    return evidence


@kernel
def judge(state: LinearScoutState, constants: LinearScoutConstants, k: int, n_leaders: int) -> None:
    """Look for the arm that most clearly dominates k, and for the one that k least clearly escapes."""
    L = state.means.shape[1]
    misfit = allows_misfit(constants)
    best, against = -1, -np.inf
    worst, in_favour = -1, np.inf
    first, last = 0, n_leaders
    if L == 2:
        first = n_ahead(state.leaders, n_leaders, state.means, k, 1)
        last = n_ahead(state.leaders, n_leaders, state.means, k, 0)
    for position in range(first, last):  # whoever dominates k by the estimates, one of these does so more clearly
        j = state.leaders[position]
        if constants.twins[j] != constants.twins[k] and margin(j, k, state.means) > 0.0:
            a, b = variances_of_rows(
                state.rows, state.solved, state.inverse, constants.contexts, state.leverages, state.lengths, k, j
            )
            if a < 0.0:
                continue
            bias = least_bias(state, constants, k, j) if misfit else 0.0
            evidence = evidence_against(state, constants, k, j, a, b, bias, against)
            if misfit and evidence > against:  # else another one is clearer already
                evidence = evidence_against(state, constants, k, j, a, b, bias_along(state, constants, k, j), against)
            ahead = True  # whether j leads by eps everywhere, so that there is no evidence that k escapes it
            for metric in range(L):
                ahead = ahead and state.means[j, metric] - state.means[k, metric] >= constants.eps[metric]
            if evidence > against:
                best, against = j, evidence
            if ahead and state.excused[j] == 0:
                worst, in_favour = j, -np.inf
    certain = is_certain(state.sigma_bounded, state.held)
    if in_favour == np.inf and (against < constants.threshold or not certain):
        worst, in_favour = hardest_to_escape(state, constants, k, against, certain)
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
def is_certain(sigma_bounded: IntArray, held: IntArray) -> bool:
    """Whether verdicts can be given: an estimate of sigma ranks pairs, but proves nothing."""
    certain = held[0] == 0
    for bounded in sigma_bounded:
        certain = certain and bounded == 1
    return certain


@kernel
def hardest_to_escape(
    state: LinearScoutState, constants: LinearScoutConstants, k: int, against: float, certain: bool
) -> tuple[int, float]:
    """The arm that k least clearly escapes, and the evidence that it does.

    Where that is less than `against`, any one with less will do. Where k escapes all, any evidence that suffices. With
    a misfit, one that the model does not tell from k is enough: such pairs have to be measured.
    """
    L = state.means.shape[1]
    misfit = allows_misfit(constants)
    worst, in_favour = -1, np.inf
    known = state.rival[k]  # is likely to be the one, or near: so others are passed sooner
    if known >= 0 and known != k and has_to_be_escaped(state.status, state.presence, state.excused, known):
        worst, in_favour = known, escape(state, constants, k, known, in_favour)
    enough = constants.threshold if certain else np.inf
    find_needed(state, constants, k, np.inf if misfit else min(in_favour, enough))
    for block in range(state.counters[N_BLOCKS]):
        passed = False
        for metric in range(L):
            passed = passed or state.block_tops[block, metric] < state.needed[metric]
        if passed:
            continue
        for j in state.order[state.block_starts[block] : state.block_stops[block]]:
            if in_favour < against or (misfit and in_favour <= 0.0):
                return worst, in_favour  # elimination is nearer, or measuring, whatever the others say
            for metric in range(L):
                passed = passed or state.means[j, metric] < state.needed[metric]
            if passed or j == k or not has_to_be_escaped(state.status, state.presence, state.excused, j):
                passed = False
                continue
            if misfit:
                evidence = escape(state, constants, k, j, in_favour)
            elif constants.twins[j] == constants.twins[k]:
                continue
            else:
                a, b = variances_of_rows(
                    state.rows, state.solved, state.inverse, constants.contexts, state.leverages, state.lengths, k, j
                )
                evidence = log_evidence_of_escape(
                    state.means, constants.eps, state.sigma, constants.rhos, state.log_prices, k, j, a, b, in_favour
                )
            if evidence < in_favour:
                worst, in_favour = j, evidence
                find_needed(state, constants, k, np.inf if misfit else min(in_favour, enough))
    return worst, in_favour


@kernel
def has_to_be_escaped(status: IntArray, presence: IntArray, excused: IntArray, j: int) -> bool:
    """Whether others are accepted only if they escape j."""
    return status[j] != DOMINATED and presence[j] != GONE and excused[j] == 0


@kernel
def escape(state: LinearScoutState, constants: LinearScoutConstants, k: int, j: int, least: float) -> float:
    """Log evidence that k is not beaten by j by eps everywhere; infinite where it is above `least`."""
    L = state.means.shape[1]
    a, b = -1.0, 0.0
    if constants.twins[j] != constants.twins[k]:
        a, b = variances_of_rows(
            state.rows, state.solved, state.inverse, constants.contexts, state.leverages, state.lengths, k, j
        )
    evidence = -np.inf
    if a < 0.0:
        for metric in range(L):  # by the model the two are equal: neither can be better by two misfits
            if constants.eps[metric] >= 2.0 * constants.misfit[metric]:
                evidence = np.inf
        return evidence
    bias = bias_along(state, constants, k, j) if allows_misfit(constants) else 0.0
    for metric in range(L):
        sigma, rhos, prices = state.sigma[metric], constants.rhos[metric], state.log_prices[metric]
        difference = lead(state.means, k, j, metric) + constants.eps[metric] - constants.misfit[metric] * bias
        if clearer(difference, a, b, sigma, rhos, prices, least):
            return np.inf
        evidence = max(evidence, log_evidence(difference, a, b, sigma, rhos, prices))
    return evidence


@kernel
def log_evidence_of_escape(
    means: FloatArray,
    eps: FloatArray,
    sigma: FloatArray,
    rhos: FloatArray,
    log_prices: FloatArray,
    k: int,
    j: int,
    a: float,
    b: float,
    least: float,
) -> float:
    """`escape` where there is no misfit, of arms with different contexts; infinite where it is no less than `least`."""
    if a < 0.0:
        return np.inf
    evidence = -np.inf
    for metric in range(means.shape[1]):
        difference = lead(means, k, j, metric) + eps[metric]
        if clearer(difference, a, b, sigma[metric], rhos[metric], log_prices[metric], least):
            return np.inf
        evidence = max(evidence, log_evidence(difference, a, b, sigma[metric], rhos[metric], log_prices[metric]))
        if evidence >= least:
            return np.inf
    return evidence


@kernel
def find_needed(state: LinearScoutState, constants: LinearScoutConstants, k: int, evidence: float) -> None:
    """Find the means below which an arm is escaped by k with more than `evidence`, by one metric and scale alone.

    |u - v|^2 is at most (|u| + |v|)^2: that bounds a and b of any pair by what is known of its arms alone.
    """
    L = state.means.shape[1]
    a = (math.sqrt(state.leverages[k]) + math.sqrt(state.largest[L])) ** 2
    b = (math.sqrt(state.lengths[k]) + math.sqrt(state.largest[L + 1])) ** 2
    for metric in range(L):
        least = np.inf
        for r in range(constants.rhos.shape[1]):
            lacking = max(0.0, evidence - state.log_prices[metric, r])
            least = min(least, 2.0 * lacking * (a + constants.rhos[metric, r] * b))
        difference = (1.0 + 1e-9) * math.sqrt(least) * state.sigma[metric] if state.sigma[metric] > 0.0 else ROUNDING
        rounding = ROUNDING_OF_MEANS * (abs(state.means[k, metric]) + state.largest[metric])
        state.needed[metric] = state.means[k, metric] + constants.eps[metric] - difference - 2.0 * rounding


@kernel
def lead(means: FloatArray, j: int, k: int, metric: int) -> float:
    """By how much j leads k at least, whatever rounding did."""
    rounding = ROUNDING_OF_MEANS * (abs(means[j, metric]) + abs(means[k, metric]))
    return means[j, metric] - means[k, metric] - rounding


@kernel
def clearer(
    difference: float, a: float, b: float, sigma: float, rhos: FloatArray, log_prices: FloatArray, evidence: float
) -> bool:
    """Whether one scale alone shows more than `evidence`: most pairs need no more than this."""
    if difference <= 0.0 or sigma == 0.0:
        return False
    half_square = 0.5 * difference * difference / (sigma * sigma)
    shown = -np.inf
    for r in range(rhos.shape[0]):
        shown = max(shown, log_prices[r] + half_square / (a + rhos[r] * b))
    return shown > evidence


@kernel
def pair_variances(state: LinearScoutState, constants: LinearScoutConstants, k: int, j: int) -> tuple[float, float]:
    """a = z^T A^-1 z and b = z^T A^-2 z for z = x_k - x_j, as of the last check, and no less for rounding.

    a is -1 where the contexts are all but equal: what rounding leaves of the difference says nothing.
    """
    return variances_of_rows(
        state.rows, state.solved, state.inverse, constants.contexts, state.leverages, state.lengths, k, j
    )


@kernel
def variances_of_rows(
    rows: IntArray,
    solved: FloatArray,
    inverse: FloatArray,
    contexts: FloatArray,
    leverages: FloatArray,
    lengths: FloatArray,
    k: int,
    j: int,
) -> tuple[float, float]:
    """`pair_variances` of arms that were looked at: by what was kept of them, if it was."""
    a, b = 0.0, 0.0
    row_k, row_j = rows[k], rows[j]
    if row_k >= 0 and row_j >= 0:
        for i in range(contexts.shape[1]):
            step = solved[row_k, i] - solved[row_j, i]
            a += (contexts[k, i] - contexts[j, i]) * step
            b += step * step
    else:
        a, b = variances_along(inverse, contexts, k, j)
    leverage = leverages[k] + leverages[j]
    if not a > SAME * leverage:
        return -1.0, b
    return a + ROUNDING_OF_VARIANCES * leverage, b + ROUNDING_OF_VARIANCES * (lengths[k] + lengths[j])


@kernel
def variances_along(inverse: FloatArray, contexts: FloatArray, k: int, j: int) -> tuple[float, float]:
    """a and b of any two arms (j = -1: of one), whether or not they were looked at."""
    d = contexts.shape[1]
    a, b = 0.0, 0.0
    for c in range(d):
        step = 0.0
        for i in range(d):
            step += inverse[c, i] * (contexts[k, i] - contexts[j, i] if j >= 0 else contexts[k, i])
        a += (contexts[k, c] - contexts[j, c] if j >= 0 else contexts[k, c]) * step
        b += step * step
    return a, b


# Many arms: few are looked at between checks, and at most checks.


@kernel
def check_many(state: LinearScoutState, constants: LinearScoutConstants) -> int:
    """Test some of the arms; go over all that stand where this promises verdicts; return how many are eliminated.

    Once few enough stand, each is held against all others. One after the other: what is handed a state takes long to
    compile.
    """
    total, means, leaders = state.counters[TOTAL], state.means, state.leaders
    thorough = state.counters[PASS_AT] == THOROUGH
    largest = 0.0
    for sigma in state.sigma:
        largest = max(largest, sigma)
    for metric in range(state.units.shape[0]):  # what a lead shows depends on sigma
        state.units[metric] = max(state.sigma[metric], 1e-3 * largest) if largest > 0.0 else 1.0
    before = drop_eliminated(state.status, state.presence, state.standing, state.counters[N_STANDING])
    n, n_leaders = before, state.counters[N_LEADERS]
    for step in range(3):  # some; all; closely
        stride, first = 1, 0
        if step == 0:
            if n <= state.solved.shape[0]:
                continue
            stride = max(1, n // SAMPLE)
            first = total % stride  # others each time
            n_before, n_leaders = n_leaders, 0
            for position in range(n_before):
                state.order[position] = leaders[position]
            for k in state.order[:n_before]:
                if state.status[k] != DOMINATED and is_there(state.presence[k]):
                    estimate(constants.contexts, state.theta, k, means)
                    n_leaders = offer(leaders, n_leaders, means, k)
        elif step == 1:
            if n <= state.solved.shape[0] or total < state.counters[PASS_AT]:
                continue
            n_leaders = 0
        else:
            if n > state.solved.shape[0]:
                continue
            n_leaders = 0
        arms = state.standing[first:n:stride]
        if step == 2:
            look_at(
                constants.contexts,
                state.inverse,
                state.theta,
                arms,
                True,
                means,
                state.leverages,
                state.lengths,
                state.rows,
                state.solved,
                state.scratch,
            )
        else:
            for k in arms:
                estimate(constants.contexts, state.theta, k, means)
        n_leaders = find_leaders(leaders, n_leaders, means, state.presence, arms)
        state.counters[N_LEADERS] = n_leaders
        if constants.regret_weight > 0.0:
            note_gaps(leaders, n_leaders, means, constants.ones, constants.twins, arms, state.gaps, state.mean_gap)
        n_open, accepting = state.counters[N_UNDECIDED], step == 2
        if step < 2:
            looked_at = 0
            for k in arms:
                looked_at += state.status[k] == UNDECIDED
            settled = hold_against_leaders(state, constants, arms, step == 0)
            if step == 0 and settled > WORTHWHILE * looked_at and total >= state.counters[PAUSE_UNTIL]:
                state.counters[PASS_AT] = min(state.counters[PASS_AT], total)
            if step == 1:  # if many go, there are soon fewer to be escaped
                stood, n = n, drop_eliminated(state.status, state.presence, state.standing, n)
                accepting = thorough or (settled > stood - n and stood - n <= 0.5 * WORTHWHILE * stood)
            if accepting:
                look_at(
                    constants.contexts,
                    state.inverse,
                    state.theta,
                    state.standing[0:n:1],
                    False,
                    means,
                    state.leverages,
                    state.lengths,
                    state.rows,
                    state.solved,
                    state.scratch,
                )
        if accepting:
            state.counters[N_BLOCKS] = cut_into_blocks(
                state.standing[:n],
                means,
                state.leverages,
                state.lengths,
                state.order,
                state.block_starts,
                state.block_stops,
                state.block_tops,
                state.tasks,
                state.largest,
            )
            for k in state.standing[:n]:
                promising = state.route[k] == ESCAPES and state.progress[k] >= constants.threshold
                if state.status[k] == UNDECIDED and (step == 2 or thorough or promising):
                    judge(state, constants, k, n_leaders)
        if step == 1:
            state.counters[PASS_AT] = 2 * total
            if n_open - state.counters[N_UNDECIDED] < 0.5 * WORTHWHILE * n_open:
                state.counters[PAUSE_UNTIL] = int(PAUSE * total)
        else:
            for place in range(state.waiting.shape[0]):
                state.waiting[place] = -1
            wait_for(state.waiting, arms, state.progress, state.status, state.presence)
            if step == 0:
                hold_against_leaders(state, constants, leaders[0:n_leaders:1], True)
                wait_for(state.waiting, leaders[0:n_leaders:1], state.progress, state.status, state.presence)
        n = drop_eliminated(state.status, state.presence, state.standing, n)
    state.counters[N_STANDING] = n
    if total >= state.counters[PROBE_AT]:
        add_probes(state, constants)
        state.counters[PROBE_AT] = int((1.0 + PROBE_GROWTH) * total)
    probes = state.probes[0 : state.counters[N_PROBES] : 1]
    look_at(
        constants.contexts,
        state.inverse,
        state.theta,
        probes,
        False,
        means,
        state.leverages,
        state.lengths,
        state.rows,
        state.solved,
        state.scratch,
    )
    if constants.regret_weight > 0.0:
        note_gaps(leaders, n_leaders, means, constants.ones, constants.twins, probes, state.gaps, state.mean_gap)
    return before - n


@kernel
def drop_eliminated(status: IntArray, presence: IntArray, standing: IntArray, n: int) -> int:
    """Take those eliminated or gone off the list of arms that stand; return how many do."""
    n_left = 0
    for k in standing[:n]:
        if status[k] != DOMINATED and presence[k] != GONE:
            standing[n_left] = k
            n_left += 1
    return n_left


@kernel
def hold_against_leaders(state: LinearScoutState, constants: LinearScoutConstants, arms: IntArray, noting: bool) -> int:
    """Hold undecided arms each against the leader that most clearly beats it, and eliminate those where this is proven.

    Returns how many these are, and those that escape that leader. noting: the evidence is kept in any case; else only
    if it suffices.
    """
    L, n_leaders = state.means.shape[1], state.counters[N_LEADERS]
    certain = is_certain(state.sigma_bounded, state.held)
    n_settled = 0
    for k in arms:
        if state.status[k] != UNDECIDED:
            continue
        j = clearest_leader(state.leaders, n_leaders, state.means, state.units, constants.twins, constants.twins[k], k)
        if j < 0 or all_but_equal(constants.contexts, k, j):
            state.progress[k], state.rival[k], state.route[k] = np.inf, -1, ESCAPES
            continue
        a, b = variances_along(state.inverse, constants.contexts, k, j)
        against, in_favour = np.inf, -np.inf
        for metric in range(L):
            sigma, rhos, prices = state.sigma[metric], constants.rhos[metric], state.log_prices[metric]
            ahead = lead(state.means, j, k, metric)
            if ahead <= 0.0:
                against = -np.inf
            elif against > -np.inf and (noting or may_reach(ahead, a, b, sigma, rhos, prices, constants.threshold)):
                against = min(against, log_evidence(ahead, a, b, sigma, rhos, prices))
            else:
                against = -np.inf
            behind = lead(state.means, k, j, metric) + constants.eps[metric]
            if noting or may_reach(behind, a, b, sigma, rhos, prices, constants.threshold):
                in_favour = max(in_favour, log_evidence(behind, a, b, sigma, rhos, prices))
        if certain and against >= constants.threshold:
            state.status[k] = DOMINATED
            state.beaten_by[k] = j
            state.counters[N_UNDECIDED] -= is_there(state.presence[k])
            n_settled += 1
            continue
        settled = certain and in_favour >= constants.threshold
        n_settled += settled
        if noting or settled:
            state.rival[k] = j
            state.route[k] = BEATEN if against > in_favour else ESCAPES
            state.progress[k] = max(against, in_favour)
        elif state.progress[k] >= constants.threshold:
            state.progress[k] = 0.0  # it was so once
    return n_settled


@kernel
def all_but_equal(contexts: FloatArray, k: int, j: int) -> bool:
    """Whether two contexts differ by rounding only."""
    apart, size = 0.0, 0.0
    for i in range(contexts.shape[1]):
        apart += (contexts[k, i] - contexts[j, i]) ** 2
        size += contexts[k, i] ** 2 + contexts[j, i] ** 2
    return apart <= SAME * size


@kernel
def may_reach(
    difference: float, a: float, b: float, sigma: float, rhos: FloatArray, log_prices: FloatArray, evidence: float
) -> bool:
    """Whether the scales may show so much together: their sum is at most so many times the largest."""
    if difference <= 0.0:
        return False
    return sigma == 0.0 or clearer(difference, a, b, sigma, rhos, log_prices, evidence - math.log(rhos.shape[0]) - 1e-9)


@kernel
def wait_for(waiting: IntArray, arms: IntArray, progress: FloatArray, status: IntArray, presence: IntArray) -> None:
    """List arms that have no verdict as waiting, if their evidence is among the least."""
    for k in arms:
        if not is_open(status, presence, k):
            continue
        place, last, most = 0, -1, -np.inf
        while place < waiting.shape[0] and waiting[place] >= 0 and waiting[place] != k:
            if progress[waiting[place]] > most:
                last, most = place, progress[waiting[place]]
            place += 1
        if place < waiting.shape[0]:
            waiting[place] = k
        elif progress[k] < most:
            waiting[last] = k


@kernel
def add_probes(state: LinearScoutState, constants: LinearScoutConstants) -> None:
    """Make probes of the arms that tell most, of all there are, about the most ambiguous pairs."""
    K, d = constants.contexts.shape
    n = 0
    least = -np.inf
    while n < state.telling.shape[0]:
        found = next_waiting(state.waiting, state.rival, state.progress, least)
        if found < 0:
            break
        least = state.progress[found]
        multiply(state.inverse, constants.contexts, found, state.rival[found], state.scratch)
        for i in range(d):
            state.directions[i, n] = state.scratch[i]
        state.gains[n], state.telling[n] = -1.0, -1
        n += 1
    for arm in range(K):
        if not is_there(state.presence[arm]):
            continue
        for q in range(n):
            state.reached[q] = 0.0
        for i in range(d):
            x = constants.contexts[arm, i]
            for q in range(n):
                state.reached[q] += x * state.directions[i, q]
        cost = cost_of(constants.cost[arm], state.gaps[arm], state.mean_gap[0], constants.regret_weight)
        for q in range(n):
            gain = state.reached[q] * state.reached[q] / cost
            if gain > state.gains[q]:
                state.gains[q], state.telling[q] = gain, arm
    for arm in state.telling[:n]:
        if arm >= 0:
            state.counters[N_PROBES] = add_probe(
                state.probes, state.counters[N_PROBES], state.columns, constants.contexts, arm, state.counters[TOTAL]
            )


@kernel
def next_waiting(waiting: IntArray, rival: IntArray, progress: FloatArray, least: float) -> int:
    """The waiting arm with the least evidence above `least`; -1: there is none."""
    found = -1
    for k in waiting:
        if k < 0:
            break
        if rival[k] >= 0 and progress[k] > least and (found < 0 or progress[k] < progress[found]):
            found = k
    return found


@kernel
def add_probe(probes: IntArray, n: int, columns: FloatArray, contexts: FloatArray, arm: int, total: int) -> int:
    """Make an arm a probe, unless it is one; return how many there are. If there is no room it takes any place."""
    for p in range(n):
        if probes[p] == arm:
            return n
    full = n == probes.shape[0]
    place = (7919 * total + arm) % n if full else n
    probes[place] = arm
    for i in range(columns.shape[0]):
        columns[i, place] = contexts[arm, i]
    return n if full else n + 1


@allocating_kernel
def verdicts(state: LinearScoutState, constants: LinearScoutConstants) -> Verdicts:
    """Estimates by the model as of the last check, with their intervals."""
    K, L = state.means.shape
    estimates, radii = np.zeros((K, L)), np.full((K, L), np.inf)
    for k in range(K):
        for metric in range(L):
            for i in range(constants.contexts.shape[1]):
                estimates[k, metric] += constants.contexts[k, i] * state.reference[i, metric]
    if spans(state):
        for k in range(K):
            a, b = variances_along(state.inverse, constants.contexts, k, -1)
            bias = bias_along(state, constants, k, -1) if allows_misfit(constants) else 0.0
            for metric in range(L):
                for r in range(constants.rhos.shape[1]):
                    exponent = constants.threshold - state.log_prices[metric, r]
                    radius = state.sigma[metric] * math.sqrt(2.0 * exponent * (a + constants.rhos[metric, r] * b))
                    if state.sigma_bounded[metric] == 1:
                        radii[k, metric] = min(radii[k, metric], radius + constants.misfit[metric] * bias)
    rival = state.beaten_by.copy()
    if not constants.many:
        name_rivals_there(rival, estimates, radii, state.status, state.presence)
        return Verdicts(state.status.copy(), rival, estimates, radii, state.pulls.copy())
    n, units, twins = state.counters[N_LEADERS], state.units, constants.twins
    for k in range(K):  # the leaders that come nearest to dominating those undecided; nobody who left
        if state.status[k] == UNDECIDED and state.presence[k] != GONE:
            rival[k] = clearest_leader(state.leaders, n, state.means, units, twins, twins[k], k)
        if state.presence[k] == GONE or (rival[k] >= 0 and not is_there(state.presence[rival[k]])):
            rival[k] = -1
    return Verdicts(state.status.copy(), rival, estimates, radii, state.pulls.copy())


declare(
    LinearScoutState,
    {
        "counters": ("count", "arms", "count", *("arms",) * 6, "count", "count", "count"),
        "block_starts": "count",
        "block_stops": "count",
        "order": "arm",
        "probes": "arm",
        "rows": "arm",
        "sampled": "arm",
        "tasks": "count",
        "telling": "arm",
        "waiting": "arm",
    },
)
