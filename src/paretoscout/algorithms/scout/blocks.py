"""Scout for arms that are measured on the same blocks: prompts, files, rounds. A pair is judged by its differences.

All arms walk the blocks in one order, drawn before anything was measured. The n-th outcome of every arm is that of the
n-th block. Those that are still in question are measured block by block, so a pair has seen the same blocks, and what
these have in common cancels out. `kernels/paired.py` has the evidence, `docs/blocks.md` the proof.

The first two blocks are pilots: they settle who may spend how much, and are no evidence of a population. Of a list they
are known: the rest is a list of its own, of which they say what the mean must be.

Blocks may pass: the rounds of a bench. An arm that was not there when a round was run never will be, so a pair is
judged by the rounds in which both were. Which arms a round has is settled before it begins. Rounds have no pilots.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...kernels.arrays import BoolArray, FloatArray, IntArray, SmallInts
from ...kernels.compile import allocating_kernel, kernel
from ...kernels.decisions import DOMINATED, DOUBTFUL, FRONT, GONE, PRESENT, UNDECIDED, is_there
from ...kernels.dispatch import Verdicts
from ...kernels.noise import law_of
from ...kernels.paired import (
    bets_bound,
    expected_next,
    log_paired,
    log_wealth,
    paired_radius,
    place_bets,
    scales_of,
    worth_of,
)
from ...laws import FEW_VALUES, NORMAL, SILENT
from ..contract import RESERVE, Accepts, Kernels, Setup

#: Rates of the bets for outcomes with bounds, evenly weighted: of a population, without end, as many as this; of a list
#: from the largest down to the square root of FAINTEST / N, each less than RATE_STEP times the next.
LARGEST_RATE, N_RATES, RATE_STEP, FAINTEST = 0.8, 8, 1.7, 100.0
#: Of the scales of the mixture the first has N / (N + SHORT) of the weight in a list of N blocks: in a short one small
#: effects tell.
SHORT = 50.0
#: So many blocks are for the pilots.
PILOTS = 2
#: Unless told otherwise: blocks that last, such as prompts, of which few may carry all; and rounds, which are alike.
CAUTION, CAUTION_IN_ROUNDS = 64.0, 16.0
#: So much of what an arm may spend is shared out evenly among its rivals; the rest by the pilots.
EVEN = 0.2
#: An arm has to be escaped with this share of what its rival may spend; a doubtful one with what is left.
TO_ESCAPE = 1.0 - RESERVE

#: Differences of two arms that are tested: nothing, eps behind, half of eps ahead; each in both directions.
LEVEL, BEHIND, AHEAD = 0, 1, 2
N_SHIFTS = 3
#: Why an arm is wanted.
AS_A_RIVAL, UNDECIDED_ITSELF = 1, 2
#: Sums over a whole list are equal up to this share of them.
ROUNDING = 1e-12
#: Where there is no evidence, how far off it is goes up to this; squares below TINY count as that.
FAR, TINY = 1e6, 1e-300


class BlockConstants(NamedTuple):
    eps: FloatArray  # (L,)
    n_list: float  # blocks of the list that the answer is about; infinite: it is about a population
    n_blocks: int  # blocks that there are
    n_pilots: int
    passing: bool  # a block that an arm has missed is gone
    exact: BoolArray  # (L,) of blocks that pass: whether a number that never varied is certain
    exact_parts: BoolArray  # (P,) the same, of the parts that metrics are sums of
    parts: BoolArray  # (L, P) whether a part has a weight in a metric
    parting: FloatArray  # (P, L) what makes parts of metrics
    spans: FloatArray  # (L,) the largest difference of two arms on a block; infinite: unknown
    betting: IntArray  # (L,) where the bets on a metric are kept; -1: its differences are taken to be normal
    rhos: FloatArray  # (R,)
    log_rhos: FloatArray  # (R,) their weights
    rates: FloatArray  # (G,)
    log_rates: FloatArray  # (G,)
    delta: float
    entered: IntArray  # (K,) with which addition each arm came
    shares: FloatArray  # (K,) what of delta is for each arm
    to_tell: FloatArray  # (K, K, L) what evidence on a difference must reach to be told, of all pairs at once
    cost: FloatArray  # (K,)


class BlockState(NamedTuple):
    presence: SmallInts  # (K,) whether the arm is there
    outcomes: FloatArray  # (N, K, L) NaN: not measured
    fixed: FloatArray  # (K, L) the only value there was so far; NaN: there was none, infinite: there were several
    pulls: IntArray  # (K,) outcomes of each arm
    visited: IntArray  # (K,) one more than the last block that the arm has visited
    compared_to: IntArray  # (K, K) up to which block a pair i < j is compared
    counts: IntArray  # (K, K, L) on how many blocks, without pilots
    means: FloatArray  # (K, K, L) of the differences i - j
    squares: FloatArray  # (K, K, L) of their distances to the mean, summed
    origins: FloatArray  # (K, K, P) the first difference of a pair in each part; NaN: there was none
    varied: SmallInts  # (K, K, P) whether there was another one
    firsts: FloatArray  # (K, P) the first value of an arm after its pilots in each part
    moved: SmallInts  # (K, P) whether there was another one
    seen: FloatArray  # (P, 6) distinct values of each part, while there are few
    n_seen: IntArray  # (P,) how many
    wealth: FloatArray  # (K, K, B, 2 N_SHIFTS, G) logs, of the bets on them
    beats: FloatArray  # (K, K) evidence that j beats k, of which all shares are taken off
    escapes: FloatArray  # (K, K) evidence that j does not beat k by eps, in the same way
    shown: SmallInts  # (K, K, L) what is proven of j over k: 1 at least -eps, 2 above 0, 3 above eps / 2
    best: SmallInts  # (K,) who beats the arm most clearly; -1: nobody
    worst: SmallInts  # (K,) whom it escapes least clearly
    status: SmallInts  # (K,)
    beaten_by: SmallInts  # (K,)
    log_against: FloatArray  # (K, K) what of the share of k is to be beaten by j
    log_metrics: FloatArray  # (K, K, L) what of that to escape j is for each metric
    thresholds: FloatArray  # (K,) log(1 / (share of the arm times delta))
    wanted: SmallInts  # (K,) whether anything hangs on the arm, at the last choice
    limit: IntArray  # (1,) how many blocks there are
    ready: SmallInts  # (1,) whether the pilots are in and the shares settled
    ticket: FloatArray  # (1,) one more than the block that is asked for; 0: the next of the arm


def init(setup: Setup, caution: float | None) -> tuple[BlockState, BlockConstants]:
    """Fix the scales before the data, and start with every arm undecided."""
    K, L, n_blocks = setup.n_arms, setup.n_metrics, int(setup.n_blocks or 0)
    caution = caution or (CAUTION_IN_ROUNDS if setup.passing else CAUTION)
    rhos = scales_of(caution)
    spans = np.full(L, np.inf) if setup.spans is None else setup.spans
    bounded = np.isfinite(spans)
    n_list = float(n_blocks) if setup.listed else np.inf
    rates = rates_of(n_list)
    parts = np.eye(L) if setup.weights is None else setup.weights
    parting = np.eye(L) if setup.parting is None else setup.parting
    exact_parts = setup.exact if setup.exact_parts is None else setup.exact_parts
    P = len(parting)
    constants = BlockConstants(
        eps=setup.eps.copy(),
        n_list=n_list,
        n_blocks=n_blocks or 2**53,
        n_pilots=0 if setup.passing else PILOTS,
        passing=setup.passing,
        exact=setup.exact & setup.passing,
        exact_parts=exact_parts & setup.passing,
        parts=parts != 0.0,
        parting=parting,
        spans=np.where(bounded, spans, 1.0),
        betting=np.where(bounded, np.cumsum(bounded) - 1, -1),
        rhos=rhos,
        log_rhos=np.log(weights_of(len(rhos), n_list)),
        rates=rates,
        log_rates=np.full(len(rates), -math.log(len(rates))),
        delta=setup.delta,
        entered=setup.entered.copy(),
        shares=setup.shares,
        to_tell=needed_to_tell(setup.entered, setup.metric_shares, setup.delta),
        cost=setup.cost.copy(),
    )
    state = BlockState(
        presence=np.full(K, PRESENT, np.int8),
        outcomes=np.full((n_blocks, K, L), np.nan),
        fixed=np.full((K, L), np.nan),
        pulls=np.zeros(K, np.int64),
        visited=np.zeros(K, np.int64),
        compared_to=np.zeros((K, K), np.int64),
        counts=np.zeros((K, K, L), np.int64),
        means=np.zeros((K, K, L)),
        squares=np.zeros((K, K, L)),
        origins=np.full((K, K, P), np.nan),
        varied=np.zeros((K, K, P), np.int8),
        firsts=np.full((K, P), np.nan),
        moved=np.zeros((K, P), np.int8),
        seen=np.zeros((P, FEW_VALUES + 1)),
        n_seen=np.zeros(P, np.int64),
        wealth=np.zeros((K, K, int(bounded.sum()), 2 * N_SHIFTS, len(rates))),
        beats=np.full((K, K), -np.inf),
        escapes=np.full((K, K), -np.inf),
        shown=np.zeros((K, K, L), np.int8),
        best=np.full(K, -1, np.int32),
        worst=np.full(K, -1, np.int32),
        status=np.full(K, FRONT if K == 1 else UNDECIDED, np.int8),
        beaten_by=np.full(K, -1, np.int32),
        log_against=np.full((K, K), -np.inf),
        log_metrics=np.tile(np.log(setup.metric_shares), (K, K, 1)),
        thresholds=-np.log(setup.shares * setup.delta),
        wanted=np.zeros(K, np.int8),
        limit=np.array([constants.n_blocks]),
        ready=np.zeros(1, np.int8),
        ticket=np.zeros(1),
    )
    return state, constants


def needed_to_tell(entered: IntArray, metric_shares: FloatArray, delta: float) -> FloatArray:
    """Return what evidence on a difference must reach to be told, of all pairs and metrics at once: (K, K, L).

    Pairs of arms that were there at the beginning share all but the reserve, so whoever comes later changes nothing for
    them. Those with an arm of the r-th addition share its part of the reserve.
    """
    came = np.maximum(entered[:, None], entered[None, :])
    additions, group = np.unique(came, return_inverse=True)
    pairs = np.bincount(group.ravel(), ~np.eye(len(entered), dtype=bool).ravel())  # each in both directions
    of_all = np.where(additions == 0, 1.0 - RESERVE, RESERVE / 2.0**additions)
    of_pairs = np.log(np.maximum(pairs, 1.0) / (of_all * delta))[group].reshape(came.shape)
    needed: FloatArray = of_pairs[:, :, None] - np.log(metric_shares)
    return needed


def rates_of(n_list: float) -> FloatArray:
    """Return the rates of bets: small differences need small ones, and a list is too short for the smallest."""
    if n_list == np.inf:
        return np.array([LARGEST_RATE / 2.0**r for r in range(N_RATES)])
    least = min(math.sqrt(FAINTEST / n_list), 0.5 * LARGEST_RATE)
    n = max(2, math.ceil(math.log(LARGEST_RATE / least) / math.log(RATE_STEP)) + 1)
    return np.geomspace(LARGEST_RATE, least, n)


def weights_of(n_scales: int, n_list: float) -> FloatArray:
    """Return the weights of the scales of the mixture; those of a population are even."""
    first = 1.0 / n_scales if n_list == np.inf or n_scales == 1 else n_list / (n_list + SHORT)
    return np.array([first, *((1.0 - first) / (n_scales - 1) for _ in range(n_scales - 1))])


def reserve(state: BlockState, rounds: int) -> BlockState:
    """Return the state with room for `rounds` more outcomes, where blocks have no end."""
    rows = len(state.outcomes)
    needed = min(int(state.visited.max()) + rounds, int(state.limit[0]))
    if needed <= rows:
        return state
    longer = np.full((max(needed, 2 * rows), *state.outcomes.shape[1:]), np.nan)
    longer[:rows] = state.outcomes
    return state._replace(outcomes=longer)


# What is known of a pair


@kernel
def shift_of(which: int, eps: float) -> float:
    """The difference that a test asks about."""
    return 0.0 if which == LEVEL else -eps if which == BEHIND else 0.5 * eps


@kernel
def of_the_rest(state: BlockState, constants: BlockConstants, i: int, j: int, metric: int, mean: float) -> float:
    """What the mean difference i - j on the blocks after the pilots is, if it is so large on all of them."""
    if constants.n_list == np.inf or constants.n_pilots == 0:
        return mean
    known = 0.0
    for block in range(constants.n_pilots):
        known += state.outcomes[block, i, metric] - state.outcomes[block, j, metric]
    return (constants.n_list * mean - known) / (constants.n_list - constants.n_pilots)


@kernel
def left_in_list(constants: BlockConstants) -> float:
    """How many blocks the list has after the pilots; infinite for a population."""
    return constants.n_list - constants.n_pilots


@kernel
def compare(state: BlockState, constants: BlockConstants, i: int, j: int) -> bool:
    """Take in the differences of a pair i < j on the blocks that both have visited since; return True if any is new."""
    end = min(state.visited[i], state.visited[j])
    block, new = max(state.compared_to[i, j], constants.n_pilots), False
    while block < end:
        note_parts(state, constants, i, j, block)
        for metric in range(constants.eps.shape[0]):
            difference = state.outcomes[block, i, metric] - state.outcomes[block, j, metric]
            if difference == difference:  # both were measured
                count_difference(state, constants, i, j, metric, difference)
                new = True
        block += 1
    state.compared_to[i, j] = max(end, state.compared_to[i, j])
    return new


@kernel
def count_difference(
    state: BlockState, constants: BlockConstants, i: int, j: int, metric: int, difference: float
) -> None:
    """Take in the difference of a pair i < j in one metric on one block."""
    before, mean = float(state.counts[i, j, metric]), state.means[i, j, metric]
    state.counts[i, j, metric] += 1
    bets = constants.betting[metric]
    if bets >= 0:
        for which in range(N_SHIFTS):
            shift = shift_of(which, constants.eps[metric])
            ahead = of_the_rest(state, constants, i, j, metric, shift)
            behind = of_the_rest(state, constants, j, i, metric, shift)
            n_list, most = left_in_list(constants), constants.spans[metric]
            place_bets(
                state.wealth[i, j, bets, which],
                difference,
                expected_next(ahead, before, mean * before, n_list),
                most,
                constants.rates,
            )
            place_bets(
                state.wealth[i, j, bets, N_SHIFTS + which],
                -difference,
                expected_next(behind, before, -mean * before, n_list),
                most,
                constants.rates,
            )
    state.means[i, j, metric] = mean + (difference - mean) / (before + 1.0)
    state.squares[i, j, metric] += (difference - mean) * (difference - state.means[i, j, metric])


@kernel
def part_of(state: BlockState, constants: BlockConstants, part: int, arm: int, block: int) -> tuple[float, float]:
    """Return a part of the outcome of an arm on a block, and what rounding may have done to it."""
    value, size = 0.0, 0.0
    for metric in range(constants.eps.shape[0]):
        term = constants.parting[part, metric]
        if term != 0.0:
            term *= state.outcomes[block, arm, metric]
            value += term
            size += abs(term)
    return value, ROUNDING * size


@kernel
def note_parts(state: BlockState, constants: BlockConstants, i: int, j: int, block: int) -> None:
    """Note in which parts the difference of a pair i < j on a block is another one than on its first block."""
    for part in range(constants.parting.shape[0]):
        (x, tiny_x), (y, tiny_y) = (
            part_of(state, constants, part, i, block),
            part_of(state, constants, part, j, block),
        )
        if state.origins[i, j, part] != state.origins[i, j, part]:
            state.origins[i, j, part] = x - y
        elif abs(x - y - state.origins[i, j, part]) > 2.0 * (tiny_x + tiny_y):
            state.varied[i, j, part] = 1


@kernel
def note_values(state: BlockState, constants: BlockConstants, arm: int, block: int) -> bool:
    """Keep values of parts that are new; return whether a part has enough of them by this outcome."""
    enough = False
    for part in range(constants.parting.shape[0]):
        value, tiny = part_of(state, constants, part, arm, block)
        if block >= constants.n_pilots:
            if math.isnan(state.firsts[arm, part]):
                state.firsts[arm, part] = value
            elif abs(value - state.firsts[arm, part]) > 2.0 * tiny:
                state.moved[arm, part] = 1
        n = state.n_seen[part]
        new = n <= FEW_VALUES and value == value
        for s in range(min(n, FEW_VALUES)):
            new = new and abs(state.seen[part, s] - value) > 2.0 * tiny
        if new:
            state.seen[part, n] = value
            state.n_seen[part] = n + 1
            enough = enough or n == FEW_VALUES
    return enough


@kernel
def is_evidence(state: BlockState, constants: BlockConstants, i: int, j: int, metric: int) -> bool:
    """Whether the differences of two arms may be taken for normal noise: those of each part that has a weight.

    They vary if one of the two does, so each has to, unless a number that never varies is certain.
    """
    first, second = min(i, j), max(i, j)
    for part in range(constants.parting.shape[0]):
        if constants.parts[metric, part]:
            still = state.varied[first, second, part] == 0
            if not constants.exact_parts[part]:
                still = still or state.moved[i, part] == 0 or state.moved[j, part] == 0
            m, different = float(state.counts[first, second, metric]), state.n_seen[part]
            if law_of(NORMAL, constants.exact_parts[part], m, different, False, still) in SILENT:
                return False
    return True


@kernel
def is_certain(state: BlockState, constants: BlockConstants, i: int, j: int, metric: int) -> bool:
    """Whether the difference of two arms is known for certain: of exact numbers that never varied."""
    return constants.exact[metric] and math.isfinite(state.fixed[i, metric]) and math.isfinite(state.fixed[j, metric])


@kernel
def evidence_above(state: BlockState, constants: BlockConstants, a: int, b: int, metric: int, which: int) -> float:
    """Log evidence that arm a is better than arm b by more than a shift. Below 0 it only says who is nearer to it."""
    if is_certain(state, constants, a, b, metric):
        lead = state.fixed[a, metric] - state.fixed[b, metric] - shift_of(which, constants.eps[metric])
        tiny = ROUNDING * (abs(state.fixed[a, metric]) + abs(state.fixed[b, metric]))
        return np.inf if lead > tiny or (which == BEHIND and lead >= -tiny) else -FAR
    i, j, sign = (a, b, 1.0) if a < b else (b, a, -1.0)
    m = float(state.counts[i, j, metric])
    if m == 0.0:
        return -np.inf
    bets = constants.betting[metric]
    if bets >= 0:
        return log_wealth(state.wealth[i, j, bets, which if a < b else N_SHIFTS + which], constants.log_rates)
    if not is_evidence(state, constants, i, j, metric):
        return -np.inf
    asked = of_the_rest(state, constants, a, b, metric, shift_of(which, constants.eps[metric]))
    lead, squares = sign * state.means[i, j, metric] - asked, state.squares[i, j, metric]
    worth = worth_of(m, left_in_list(constants))
    if lead > 0.0:
        return log_paired(lead, m, squares, worth, constants.rhos, constants.log_rhos)
    return -min(FAR, 0.5 * worth * lead * lead * m / max(squares, TINY))


@kernel
def sum_of(state: BlockState, constants: BlockConstants, arm: int, metric: int) -> float:
    """The sum of an arm over the whole list, nearly free of rounding."""
    total, lost = 0.0, 0.0
    for block in range(constants.n_blocks):
        value = state.outcomes[block, arm, metric]
        new = total + value
        lost += (total - new) + value if abs(total) >= abs(value) else (value - new) + total
        total = new
    return total + lost


@kernel
def judge_pair(state: BlockState, constants: BlockConstants, i: int, j: int) -> None:
    """Work out what the differences of a pair prove, in both directions."""
    L = constants.eps.shape[0]
    state.beats[i, j], state.beats[j, i], state.escapes[i, j], state.escapes[j, i] = np.inf, np.inf, -np.inf, -np.inf
    if constants.n_list < np.inf and min(state.pulls[i], state.pulls[j]) == constants.n_blocks:
        judge_whole(state, constants, i, j)
        return
    for metric in range(L):
        for turn in range(2):
            a, b = (i, j) if turn == 0 else (j, i)
            level = evidence_above(state, constants, a, b, metric, LEVEL)
            behind = evidence_above(state, constants, a, b, metric, BEHIND)
            state.beats[b, a] = min(state.beats[b, a], level)
            state.escapes[a, b] = max(state.escapes[a, b], behind + state.log_metrics[a, b, metric])
            known, needed = state.shown[b, a, metric], constants.to_tell[i, j, metric]
            if behind >= needed and known < 1:
                known = 1
            if level >= needed and known < 3:
                known = 3 if evidence_above(state, constants, a, b, metric, AHEAD) >= needed else 2
            state.shown[b, a, metric] = known
    state.beats[i, j] += state.log_against[i, j]
    state.beats[j, i] += state.log_against[j, i]


@kernel
def judge_whole(state: BlockState, constants: BlockConstants, i: int, j: int) -> None:
    """The same where both have visited the whole list: their sums are known, and nothing is left to chance."""
    for metric in range(constants.eps.shape[0]):
        of_i, of_j = sum_of(state, constants, i, metric), sum_of(state, constants, j, metric)
        tiny, eps = ROUNDING * (abs(of_i) + abs(of_j)), constants.n_list * constants.eps[metric]
        for turn in range(2):
            a, b = (i, j) if turn == 0 else (j, i)
            lead = of_i - of_j if turn == 0 else of_j - of_i
            if lead <= tiny:
                state.beats[b, a] = -np.inf
            if lead >= -eps - tiny:
                state.escapes[a, b] = np.inf
            state.shown[b, a, metric] = (
                3 if lead > 0.5 * eps + tiny else 2 if lead > tiny else 1 if lead >= -eps - tiny else 0
            )


# Shares


@kernel
def pilots_are_in(state: BlockState, constants: BlockConstants) -> bool:
    """Whether every arm that is there has visited the first blocks."""
    for k in range(state.pulls.shape[0]):
        if is_there(state.presence[k]) and state.pulls[k] < constants.n_pilots:
            return False
    return True


@kernel
def pilot_of(state: BlockState, constants: BlockConstants, arm: int, metric: int) -> float:
    """The mean of an arm over the first blocks; NaN: it has left before."""
    total = 0.0
    for block in range(constants.n_pilots):
        total += state.outcomes[block, arm, metric]
    return total / constants.n_pilots


@kernel
def settle_shares(state: BlockState, constants: BlockConstants) -> None:
    """Share out, once and for all, what each arm may spend: to be beaten, by each rival.

    Those who were there at the beginning share all but the reserve, in part by the pilots: an arm that was ahead of k
    in every metric is likely to be ahead. Those who came later take their part of the reserve.
    """
    K, L = state.means.shape[0], state.means.shape[2]
    n_first = 0
    for k in range(K):
        n_first += constants.entered[k] == 0
    for k in range(K):
        for j in range(K):
            if j != k:
                state.log_against[k, j] = math.log(constants.shares[j])
                state.beats[k, j] = np.inf if constants.n_pilots > 0 else 0.0  # by how much j leads
    for metric in range(L if constants.n_pilots > 0 else 0):
        mean, n, square = 0.0, 0.0, 0.0
        for k in range(K):
            value = pilot_of(state, constants, k, metric)
            if constants.entered[k] == 0 and value == value:
                n += 1.0
                square += (value - mean) * (value - mean) * (n - 1.0) / n
                mean += (value - mean) / n
        spread = math.sqrt(square / max(n, 1.0))
        for k in range(K):
            for j in range(K):
                lead = pilot_of(state, constants, j, metric) - pilot_of(state, constants, k, metric)
                known = lead == lead and spread > 0.0
                state.beats[k, j] = min(state.beats[k, j], lead / spread if known else 0.0)
    for k in range(K):
        if constants.entered[k] == 0 and n_first > 1:
            rank_rivals(state, constants, k)
            for rank in range(1, n_first):
                by_pilot = n_first / (n_first - 1.0) / (rank * (rank + 1.0))
                share = EVEN / (n_first - 1.0) + (1.0 - EVEN) * by_pilot
                state.log_against[k, state.best[rank - 1]] = math.log((1.0 - RESERVE) * share)


@kernel
def rank_rivals(state: BlockState, constants: BlockConstants, k: int) -> None:
    """Write the rivals of an arm that were there at the beginning into `best`, by their leads: the largest first."""
    n = 0
    for j in range(state.pulls.shape[0]):
        if j != k and constants.entered[j] == 0:
            state.best[n] = j
            n += 1
    step = n // 2
    while step > 0:  # Shell's sort
        for i in range(step, n):
            moved, place = state.best[i], i
            while place >= step and comes_before(state, k, moved, state.best[place - step]):
                state.best[place] = state.best[place - step]
                place -= step
            state.best[place] = moved
        step //= 2


@kernel
def comes_before(state: BlockState, k: int, i: int, j: int) -> bool:
    """Whether rival i beats arm k more clearly than rival j; the first named, if they do alike."""
    return state.beats[k, i] > state.beats[k, j] or (state.beats[k, i] == state.beats[k, j] and i < j)


# Verdicts


@kernel
def must_be_escaped(state: BlockState, k: int, j: int) -> bool:
    """Whether k is of the front only if it escapes j."""
    return j != k and state.presence[j] != GONE and state.status[j] != DOMINATED


@kernel
def needed_to_escape(state: BlockState, k: int, j: int) -> float:
    """What evidence must reach that j does not beat k by eps."""
    return state.thresholds[k] - math.log(RESERVE if state.presence[j] == DOUBTFUL else TO_ESCAPE)


@kernel
def look(state: BlockState, k: int) -> None:
    """Find who beats an arm most clearly, and whom it escapes least clearly."""
    best, worst = -1, -1
    for j in range(state.pulls.shape[0]):
        if j != k and is_there(state.presence[j]) and (best < 0 or state.beats[k, j] > state.beats[k, best]):
            best = j
        if must_be_escaped(state, k, j):
            lacks = state.escapes[k, j] - needed_to_escape(state, k, j)
            if worst < 0 or lacks < state.escapes[k, worst] - needed_to_escape(state, k, worst):
                worst = j
    state.best[k], state.worst[k] = best, worst


@kernel
def note_change(state: BlockState, k: int, j: int) -> None:
    """Keep up who beats an arm most clearly, and whom it escapes least clearly, after its pair with j was judged."""
    best, worst = state.best[k], state.worst[k]
    if best < 0 or worst < 0 or best == j or worst == j:
        look(state, k)
        return
    if is_there(state.presence[j]) and comes_before(state, k, j, best):
        state.best[k] = j
    if must_be_escaped(state, k, j):
        lacks = state.escapes[k, j] - needed_to_escape(state, k, j)
        least = state.escapes[k, worst] - needed_to_escape(state, k, worst)
        if lacks < least or (lacks == least and j < worst):
            state.worst[k] = j


@kernel
def decide(state: BlockState) -> None:
    """Give their verdicts to all arms of which enough is known."""
    changed = True
    while changed:
        changed = False
        for k in range(state.pulls.shape[0]):
            if state.status[k] != UNDECIDED or not is_there(state.presence[k]):
                continue
            best, worst = state.best[k], state.worst[k]
            if best >= 0 and state.beats[k, best] >= state.thresholds[k]:
                state.status[k], state.beaten_by[k], changed = DOMINATED, best, True
                for other in range(state.pulls.shape[0]):
                    if state.worst[other] == k:
                        look(state, other)
            elif worst < 0 or state.escapes[k, worst] >= needed_to_escape(state, k, worst):
                state.status[k], changed = FRONT, True


@kernel
def update(
    state: BlockState, constants: BlockConstants, arm: int, ticket: FloatArray, outcome: FloatArray, observed: BoolArray
) -> None:
    """Take in the outcome of an arm on its next block, and judge its pairs."""
    block = state.visited[arm]
    if constants.passing and ticket[0] > 0.0:
        block = int(ticket[0]) - 1
    if block >= state.outcomes.shape[0]:
        return  # only a state that somebody made up leads here
    varies = False  # an exact number, for the first time
    for metric in range(outcome.shape[0]):
        if not observed[metric]:
            continue
        state.outcomes[block, arm, metric] = outcome[metric]
        if state.fixed[arm, metric] != state.fixed[arm, metric]:
            state.fixed[arm, metric] = outcome[metric]
        elif state.fixed[arm, metric] != outcome[metric]:
            varies = varies or (constants.exact[metric] and math.isfinite(state.fixed[arm, metric]))
            state.fixed[arm, metric] = np.inf
    state.pulls[arm] += 1
    state.visited[arm] = max(state.visited[arm], block + 1)
    enough = note_values(state, constants, arm, block)
    if state.ready[0] == 0:
        if pilots_are_in(state, constants):
            state.ready[0] = 1
            settle_shares(state, constants)
            judge_again(state, constants)
        return
    if varies or enough:  # what rested on its being certain does not hold any more; or there is evidence at last
        judge_again(state, constants)
        return
    for j in range(state.pulls.shape[0]):
        if j == arm or not in_question(state, j) or not in_question(state, arm):
            continue
        i, other = (arm, j) if arm < j else (j, arm)
        if compare(state, constants, i, other) or state.pulls[arm] == constants.n_blocks:
            judge_pair(state, constants, i, other)
            note_change(state, j, arm)
    look(state, arm)
    decide(state)


@kernel
def in_question(state: BlockState, k: int) -> bool:
    """Whether anything hangs on the differences of an arm to others."""
    return state.presence[k] != GONE and state.status[k] != DOMINATED


@kernel
def judge_again(state: BlockState, constants: BlockConstants) -> None:
    """Forget all verdicts and judge every arm by the differences as they are."""
    K = state.pulls.shape[0]
    for k in range(K):
        state.status[k], state.beaten_by[k], state.best[k], state.worst[k] = UNDECIDED, -1, -1, -1
    state.shown[:] = 0
    if state.ready[0] == 0:
        return
    for i in range(K):
        for j in range(i + 1, K):
            compare(state, constants, i, j)
            judge_pair(state, constants, i, j)
    for k in range(K):
        look(state, k)
    for k in range(K):
        best = state.best[k]
        if state.presence[k] != GONE and best >= 0 and state.beats[k, best] >= state.thresholds[k]:
            state.beaten_by[k] = best
    for k in range(K):  # who is eliminated may have eliminated others all the same
        if state.beaten_by[k] >= 0:
            state.status[k] = DOMINATED
    for k in range(K):
        look(state, k)
    decide(state)


# What is measured


@kernel
def mark_wanted(state: BlockState) -> None:
    """Mark the undecided arms, and of each the rival on whom the nearer verdict hangs."""
    state.wanted[:] = 0
    for k in range(state.pulls.shape[0]):
        if state.status[k] == UNDECIDED and is_there(state.presence[k]):
            state.wanted[k] = UNDECIDED_ITSELF
            best, worst = state.best[k], state.worst[k]
            rival = worst
            if best >= 0 and worst >= 0:
                lacks_to_escape = state.escapes[k, worst] - needed_to_escape(state, k, worst)
                rival = best if state.beats[k, best] - state.thresholds[k] >= lacks_to_escape else worst
            if rival >= 0:
                state.wanted[rival] = max(state.wanted[rival], AS_A_RIVAL)


@kernel
def choose(
    state: BlockState, constants: BlockConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Ask for the arm that has visited the fewest blocks, of those on which anything hangs: all in step.

    Of these an undecided one, then the cheapest, and then any. Where all they need is being measured: any that stands.
    """
    K = state.pulls.shape[0]
    mark_wanted(state)
    chosen, first = -1, int(rng.random() * K)
    for turn in range(K):
        k = (first + turn) % K
        left = state.visited[k] + pending[k] < constants.n_blocks
        stands = is_there(state.presence[k]) and state.status[k] != DOMINATED
        if left and stands and (chosen < 0 or is_rather(state, constants, pending, k, chosen)):
            chosen = k
    state.ticket[0] = 0.0 if chosen < 0 else state.visited[chosen] + pending[chosen] + 1
    return chosen, state.ticket


@kernel
def is_rather(state: BlockState, constants: BlockConstants, pending: IntArray, k: int, j: int) -> bool:
    """Whether arm k is to be measured rather than arm j."""
    if (state.wanted[k] > 0) != (state.wanted[j] > 0):
        return state.wanted[k] > 0
    of_k, of_j = state.visited[k] + pending[k], state.visited[j] + pending[j]
    if of_k != of_j:
        return of_k < of_j
    if state.wanted[k] != state.wanted[j]:
        return state.wanted[k] > state.wanted[j]
    return constants.cost[k] < constants.cost[j]


@kernel
def done(state: BlockState, constants: BlockConstants) -> bool:
    """Whether every arm that is there has its verdict, or no block is left that could tell."""
    open_, left = False, False
    for k in range(state.pulls.shape[0]):
        if is_there(state.presence[k]):
            open_ = open_ or state.status[k] == UNDECIDED
            left = left or (state.status[k] != DOMINATED and state.visited[k] < constants.n_blocks)
    return not (open_ and left)


# What is shown


@allocating_kernel
def verdicts(state: BlockState, constants: BlockConstants) -> Verdicts:
    """Estimates that can be compared: those of the arm with most blocks, and what each other one is ahead of it.

    On the blocks that both have visited. The radii are those of the differences to it; where bets decide, see
    `radii_of_bets`, which takes longer.
    """
    K, L = state.means.shape[0], state.means.shape[2]
    estimates, radii = np.zeros((K, L)), np.full((K, L), np.inf)
    status, rival = np.empty(K, np.int64), np.full(K, -1, np.int64)
    reference = reference_of(state)
    for k in range(K):
        status[k] = state.status[k]
        j = state.beaten_by[k]
        if state.status[k] == UNDECIDED:
            j = state.best[k] if state.best[k] >= 0 else state.worst[k]
        if j >= 0 and is_there(state.presence[j]):
            rival[k] = j
        for metric in range(L):
            estimates[k, metric], radii[k, metric] = beside(state, constants, k, reference, metric)
    return Verdicts(status, rival, estimates, radii, state.pulls.copy())


@kernel
def reference_of(state: BlockState) -> int:
    """The arm with the most blocks, of those that are there."""
    reference = -1
    for k in range(state.pulls.shape[0]):
        if state.presence[k] != GONE and (reference < 0 or state.pulls[k] > state.pulls[reference]):
            reference = k
    return reference


@kernel
def beside(state: BlockState, constants: BlockConstants, k: int, j: int, metric: int) -> tuple[float, float]:
    """Return the mean of arm j and what arm k is ahead of it on the blocks of both, and how far off that may be.

    Of an arm that has no block in common with it: the mean of its own.
    """
    if j < 0 or state.pulls[k] == 0:
        return 0.0, np.inf
    of_j, n_j, difference, m = 0.0, 0.0, 0.0, 0.0
    of_k, n_k, squares = 0.0, 0.0, 0.0
    for block in range(max(state.visited[k], state.visited[j])):
        x, y = state.outcomes[block, k, metric], state.outcomes[block, j, metric]
        if x == x:
            n_k += 1.0
            of_k += (x - of_k) / n_k
        if y == y:
            n_j += 1.0
            of_j += (y - of_j) / n_j
        if x == x and y == y and k != j:
            m += 1.0
            off = x - y - difference
            difference += off / m
            squares += off * (x - y - difference)
    if k == j:
        return of_j, 0.0
    if m == 0.0:
        return of_k, np.inf
    if m == constants.n_list:
        return of_j + difference, 0.0
    if constants.betting[metric] >= 0 or not is_evidence(state, constants, k, j, metric):
        return of_j + difference, np.inf
    worth = worth_of(m, constants.n_list)
    needed = constants.to_tell[k, j, metric]
    return of_j + difference, paired_radius(needed, m, squares, worth, constants.rhos, constants.log_rhos)


@allocating_kernel
def radii_of_bets(state: BlockState, constants: BlockConstants, radii: FloatArray, estimates: FloatArray) -> None:
    """Write the radii of the differences to the arm with most blocks, of metrics on which bets decide."""
    j = reference_of(state)
    for metric in range(constants.eps.shape[0]):
        for k in range(state.pulls.shape[0]):
            if constants.betting[metric] >= 0 and k != j and radii[k, metric] == np.inf and state.pulls[k] > 0:
                lead = estimates[k, metric] - estimates[j, metric]
                low = least_lead(state, constants, k, j, metric, constants.to_tell[k, j, metric])
                high = -least_lead(state, constants, j, k, metric, constants.to_tell[k, j, metric])
                radii[k, metric] = max(lead - low, high - lead, 0.0)


@allocating_kernel
def told_apart(state: BlockState, constants: BlockConstants) -> FloatArray:
    """What was told of all pairs at once: (K, K, L) at [k, j], by a number that stands for "j is better by so much".

    -eps: at least so much; eps / 4: above 0; 3/4 eps: above eps / 2.
    """
    K, L = state.means.shape[0], state.means.shape[2]
    apart = np.full((K, K, L), -np.inf)
    for k in range(K):
        for j in range(K):
            for metric in range(L):
                eps = constants.eps[metric]
                told = state.shown[k, j, metric]
                if told > 0:
                    apart[k, j, metric] = -eps if told == 1 else 1.0 if eps == 0.0 else (0.5 * told - 0.75) * eps
    return apart


@allocating_kernel
def least_lead(state: BlockState, constants: BlockConstants, a: int, b: int, metric: int, threshold: float) -> float:
    """Arm a is better than arm b by more than this, on average over the list or the population; -inf: nobody knows."""
    if is_certain(state, constants, a, b, metric):
        return state.fixed[a, metric] - state.fixed[b, metric]
    n, pilots = min(state.visited[a], state.visited[b]), constants.n_pilots
    differences, m, total, known = np.empty(n), 0, 0.0, 0.0
    for block in range(n):
        difference = state.outcomes[block, a, metric] - state.outcomes[block, b, metric]
        if block < pilots:
            known += difference
        elif difference == difference:
            differences[m] = difference
            total += difference
            m += 1
    if m == 0:
        return -np.inf
    n_list, whole = left_in_list(constants), constants.n_list
    if m == n_list:
        return (known + total) / whole
    if constants.betting[metric] >= 0:
        logs = np.empty(constants.rates.shape[0])
        least = bets_bound(
            threshold, differences, m, n_list, constants.spans[metric], constants.rates, constants.log_rates, logs
        )
    elif not is_evidence(state, constants, a, b, metric):
        return -np.inf
    else:
        squares = 0.0
        for t in range(m):
            squares += (differences[t] - total / m) ** 2
        worth = worth_of(float(m), n_list)
        least = total / m - paired_radius(threshold, float(m), squares, worth, constants.rhos, constants.log_rhos)
    return least if whole == np.inf else (known + n_list * least) / whole


@allocating_kernel
def bounds_apart(state: BlockState, constants: BlockConstants) -> FloatArray:
    """By how much j is better than k at least, of all pairs at once: (K, K, L) at [k, j]."""
    K, L = state.means.shape[0], state.means.shape[2]
    apart = np.full((K, K, L), -np.inf)
    for k in range(K):
        for j in range(K):
            if j != k and in_question(state, k) and in_question(state, j):
                for metric in range(L):
                    apart[k, j, metric] = least_lead(state, constants, j, k, metric, constants.to_tell[k, j, metric])
    return apart


def compared(state: BlockState, constants: BlockConstants, k: int, j: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the lead of j over k on the blocks of both, with the interval at the thresholds of the verdict on k."""
    L = len(constants.eps)
    lead, low, high = np.full(L, np.nan), np.full(L, -np.inf), np.full(L, np.inf)
    both: FloatArray = state.outcomes[:, j] - state.outcomes[:, k]
    there = ~np.isnan(both)
    for metric in np.flatnonzero(there.any(axis=0) & bool(state.ready[0])).tolist():
        lead[metric] = both[there[:, metric], metric].mean()
        to_beat = float(state.thresholds[k] - state.log_against[k, j])
        to_escape = float(needed_to_escape(state, k, j) - state.log_metrics[k, j, metric])
        low[metric] = least_lead(state, constants, j, k, metric, to_beat)
        high[metric] = -least_lead(state, constants, k, j, metric, to_escape)
    return lead, low, high


def apart(state: BlockState, constants: BlockConstants, eps: FloatArray) -> FloatArray:
    """Return by how much j is better than k at least, of all pairs at once, as `Kernels` has it."""
    if np.array_equal(eps, constants.eps):
        return told_apart(state, constants)
    return bounds_apart(state, constants)


KERNELS = Kernels(
    state=BlockState,
    choose=choose,
    update=update,
    verdicts=verdicts,
    done=done,
    judge_again=judge_again,
    apart=apart,
    compared=compared,
    reserve=reserve,
    ticket_size=1,
    ranges={
        "compared_to": "block",
        "visited": "block",
        "pulls": "block",
        "counts": "block",
        "shown": "code",
        "moved": "code",
        "varied": "code",
        "wanted": "code",
        "ready": "code",
        "limit": "count",
    },
    intervals=True,
    accepts=Accepts(pending=True, unasked=True, missing=True),
    blocks=True,
)
