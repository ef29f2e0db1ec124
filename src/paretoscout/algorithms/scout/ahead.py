"""Verdicts while outcomes are held back: trials that were asked for before them are still open.

Evidence must come in the order in which it was asked for, but not all of it concerns every pair. A statement on two
arms may rest on their trials below the first one of either that is open; a sum over rivals on all trials below one and
the same place, without the rivals that have an open trial there; what is said of one arm alone, and evidence on normal
noise of unknown scale, on each arm's trials below its own first open one. `docs/scout.md` has the proof.

The samples of a state are the settled ones, below the first open trial of all. Here outcomes that are held back are
counted in for a moment, up to some place; the rivals of an arm are looked for by all that was told. What is asked for
next goes by what is settled.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...kernels.arrays import IntArray, SmallInts, arm_at
from ...kernels.compile import allocating_kernel, kernel
from ...kernels.decisions import GONE
from ...kernels.dispatch import Held, Verdicts
from ...kernels.evidence import note_value
from ...kernels.heap import set_key
from ...kernels.noise import Samples
from ...laws import NORMAL
from ..states import copy_state
from .tabular import (
    MANY,
    N_UNDECIDED,
    REFRESH_AFTER,
    REFRESH_MANY_AFTER,
    TOTAL,
    ScoutConstants,
    ScoutState,
    accept,
    count_sample,
    eliminate,
    escape,
    find,
    lacks_against,
    lacks_in_favour,
    look,
    off,
    renew_tree,
    reserve,
    verdicts,
    waits,
)
from .tree import BEATEN, must_be_escaped, prepare

#: No arm is tested before there are so many samples.
NEVER = 1 << 62


class Ahead(NamedTuple):
    """The arms that have trials from the first open one on, as they are settled; and up to where each is counted."""

    arms: IntArray  # (m,)
    place: IntArray  # (K,) of each arm among them; -1: it is none
    first_open: IntArray  # (m,) the place of its first open trial among all that are held; n: it has none
    limits: IntArray  # (m,) its trials below this place are counted in
    presence: SmallInts  # (m,) whether it is there
    rows: Samples  # (m, L)
    later: Samples  # (E m, L)


@allocating_kernel
def ahead_of(state: ScoutState, held: Held) -> Ahead:
    """List the arms of the trials that are held back, with what is settled of them."""
    n, K = held.arms.shape[0], state.pulls.shape[0]
    place, arms = np.full(K, -1, np.int64), np.empty(n, np.int64)
    m = 0
    for i in range(n):
        if place[held.arms[i]] < 0:
            place[held.arms[i]], arms[m] = m, held.arms[i]
            m += 1
    arms = arms[:m].copy()
    first_open = np.full(m, n, np.int64)
    for i in range(n - 1, -1, -1):
        if not held.told[i]:
            first_open[place[held.arms[i]]] = i
    n_eras = n_eras_of(state)
    of_eras = np.empty(m * n_eras, np.int64)
    for era in range(n_eras):
        of_eras[era * m : (era + 1) * m] = arms + (era + 1) * K
    rows, later = rows_at(state.samples, arms), rows_at(state.later, of_eras)
    return Ahead(arms, place, first_open, np.zeros(m, np.int64), state.presence[arms], rows, later)


@kernel
def n_eras_of(state: ScoutState) -> int:
    """How many additions after looking there were."""
    return max(0, state.later.counts.shape[0] // state.pulls.shape[0] - 1)


@allocating_kernel
def rows_at(samples: Samples, places: IntArray) -> Samples:
    """Return copies of some rows."""
    none = places[:0]
    return Samples(
        counts=samples.counts[places],
        centres=samples.centres[places],
        sums=samples.sums[places],
        means=samples.means[places],
        squares=samples.squares[places if samples.squares.shape[0] > 0 else none],
        spreads=samples.spreads[places if samples.spreads.shape[0] > 0 else none],
        seen=samples.seen,
        n_seen=samples.n_seen,
    )


@kernel
def put_back(state: ScoutState, ahead: Ahead) -> None:
    """Let all arms be there that are, with what is settled of them."""
    m, K = ahead.arms.shape[0], state.pulls.shape[0]
    for slot in range(m):
        arm = ahead.arms[slot]
        state.presence[arm] = ahead.presence[slot]
        put_row_back(state.samples, ahead.rows, arm, slot)
        for era in range(n_eras_of(state)):
            put_row_back(state.later, ahead.later, (era + 1) * K + arm, era * m + slot)


@kernel
def put_row_back(samples: Samples, rows: Samples, place: int, slot: int) -> None:
    """Let one row be what it was."""
    for metric in range(samples.counts.shape[1]):
        samples.counts[place, metric] = rows.counts[slot, metric]
        samples.centres[place, metric] = rows.centres[slot, metric]
        samples.sums[place, metric] = rows.sums[slot, metric]
        samples.means[place, metric] = rows.means[slot, metric]
        if samples.squares.shape[0] > 0:
            samples.squares[place, metric] = rows.squares[slot, metric]
        if samples.spreads.shape[0] > 0:
            samples.spreads[place, metric] = rows.spreads[slot, metric]


@kernel
def count_up_to_limits(state: ScoutState, constants: ScoutConstants, held: Held, ahead: Ahead) -> None:
    """Count in what was told of each arm below its limit; where noise is normal of unknown scale, its first open trial.

    What will be a pilot is no evidence: as long as an arm has none, nothing of it is counted.
    """
    model, first = constants.model, state.pilots.first
    for i in range(held.arms.shape[0]):
        arm = held.arms[i]
        slot = ahead.place[arm]
        for metric in range(held.outcomes.shape[1]):
            limit = ahead.limits[slot]
            if model.noise[metric] == NORMAL:
                limit = max(limit, ahead.first_open[slot])
            piloted = constants.sharing.by_pilot == 0.0 or not math.isnan(first[arm, metric])
            if i < limit and held.told[i] and held.observed[i, metric] and piloted:
                state.era[0] = held.eras[i]
                count_sample(state, constants, arm, metric, held.outcomes[i, metric])


@kernel
def first_open_of(held: Held, ahead: Ahead, arm: int) -> int:
    """The place of the first open trial of an arm."""
    slot = ahead.place[arm]
    return ahead.first_open[slot] if slot >= 0 else held.arms.shape[0]


# Judging


@allocating_kernel
def judge_ahead(state: ScoutState, constants: ScoutConstants, held: Held, arm: int) -> None:
    """Look at the arms that a told outcome of an arm concerns (-1: at all), and decide what is proven by now."""
    K, counters = state.pulls.shape[0], state.counters
    n_told = 0
    for i in range(held.arms.shape[0]):
        if held.told[i]:
            n_told += 1
            for metric in range(held.outcomes.shape[1]):
                if held.observed[i, metric]:
                    note_value(state.samples.seen, state.samples.n_seen, metric, held.outcomes[i, metric])
    if counters[N_UNDECIDED] == 0:
        return
    total = counters[TOTAL] + n_told
    after = REFRESH_AFTER if K <= MANY else REFRESH_MANY_AFTER
    everyone = arm < 0 or n_told % max(1, counters[N_UNDECIDED], int(after * total)) == 0
    if state.tree.size[0] == 0:  # so far there was nothing to compare; who accepts an arm must know all that stand
        renew_tree(state, constants)
    best, worst, suspects = state.best.copy(), state.worst.copy(), np.zeros(K, np.bool_)
    ahead = ahead_of(state, held)
    ahead.limits[:] = held.arms.shape[0]
    count_up_to_limits(state, constants, held, ahead)
    for k in range(K):
        if waits(state, k) and (everyone or k == arm or state.best[k] == arm or state.worst[k] == arm):
            suspects[k] = seems_decided(state, constants, k)
    put_back(state, ahead)
    for k in range(K):
        if suspects[k]:
            decide_ahead(state, constants, held, ahead, k)
        if waits(state, k):
            state.best[k], state.worst[k] = best[k], worst[k]


@kernel
def seems_decided(state: ScoutState, constants: ScoutConstants, k: int) -> bool:
    """Look for the rivals of k; return whether the evidence would suffice. Nothing is decided, and its turn stays."""
    test_at, key, mark, gap, route = state.test_at[k], state.keys[k], state.marks[k], state.gaps[k], state.route[k]
    state.test_at[k] = NEVER
    look(state, constants, k)
    suffices = state.keys[k] >= -off(constants)
    state.test_at[k], state.marks[k], state.gaps[k], state.route[k] = test_at, mark, gap, route
    set_key(state.heap, state.position, state.keys, k, key, state.counters[N_UNDECIDED])
    return suffices


@kernel
def decide_ahead(state: ScoutState, constants: ScoutConstants, held: Held, ahead: Ahead, k: int) -> None:
    """Eliminate or accept k if the evidence suffices, each at its own place."""
    if lacks_against_ahead(state, constants, held, ahead, k) <= 0.0:
        eliminate(state, k)
    elif lacks_in_favour_ahead(state, constants, held, ahead, k) <= 0.0:
        accept(state, k)


@kernel
def lacks_against_ahead(state: ScoutState, constants: ScoutConstants, held: Held, ahead: Ahead, k: int) -> float:
    """What evidence lacks for eliminating k: below the first open trial of k or its best rival, or that of k alone."""
    if state.best[k] < 0:
        return np.inf
    best = arm_at(state.best, k)
    of_k, of_best = first_open_of(held, ahead, k), first_open_of(held, ahead, best)
    lacks = lacks_against_below(state, constants, held, ahead, k, min(of_k, of_best))
    if lacks > 0.0 and of_best < of_k:
        of_others = lacks_against_below(state, constants, held, ahead, k, of_k)
        if of_others > lacks:
            state.best[k] = best
        lacks = min(lacks, of_others)
    return lacks


@kernel
def lacks_against_below(
    state: ScoutState, constants: ScoutConstants, held: Held, ahead: Ahead, k: int, until: int
) -> float:
    """What evidence lacks for eliminating k, all of it below one place.

    Who has an open trial below that is left out. Each p-value stands for itself: where there are no others, nobody is.
    """
    only_p_values = True
    for metric in range(constants.model.noise.shape[0]):
        only_p_values = only_p_values and constants.model.noise[metric] == NORMAL
    for slot in range(ahead.arms.shape[0]):
        in_time = ahead.first_open[slot] >= until
        ahead.limits[slot] = until if in_time else 0
        if not (in_time or only_p_values):
            state.presence[ahead.arms[slot]] = GONE
    count_up_to_limits(state, constants, held, ahead)
    prepare(state.tree, state.samples, constants.model, k)
    state.best[k] = find(state, constants, k, BEATEN)
    lacks = lacks_against(state, constants, k)
    put_back(state, ahead)
    return lacks


@kernel
def lacks_in_favour_ahead(state: ScoutState, constants: ScoutConstants, held: Held, ahead: Ahead, k: int) -> float:
    """What evidence lacks for accepting k: of each pair below the first open trial of the two.

    First those whose trials are held back, one by one; then all others, which end where k does.
    """
    for slot in range(ahead.arms.shape[0]):
        j = ahead.arms[slot]
        if must_be_escaped(state.status, state.presence, k, j):
            lacks = state.thresholds[k] - escape_ahead(state, constants, held, ahead, k, j)
            if lacks > 0.0:
                state.worst[k] = j
                return lacks
    for slot in range(ahead.arms.shape[0]):
        ahead.limits[slot] = ahead.first_open[slot] if ahead.arms[slot] == k else 0
        if ahead.arms[slot] != k:
            state.presence[ahead.arms[slot]] = GONE  # it is escaped
    count_up_to_limits(state, constants, held, ahead)
    prepare(state.tree, state.samples, constants.model, k)
    lacks = lacks_in_favour(state, constants, k)
    put_back(state, ahead)
    return lacks


@kernel
def escape_ahead(state: ScoutState, constants: ScoutConstants, held: Held, ahead: Ahead, k: int, j: int) -> float:
    """Log evidence that j is not better than k by eps everywhere: what is settled, or what was told of both."""
    settled = escape(state, constants, k, j, state.thresholds[k])
    until = min(first_open_of(held, ahead, k), first_open_of(held, ahead, j))
    for slot in range(ahead.arms.shape[0]):
        ahead.limits[slot] = until if ahead.arms[slot] == k or ahead.arms[slot] == j else 0
    count_up_to_limits(state, constants, held, ahead)
    told = escape(state, constants, k, j, state.thresholds[k])
    put_back(state, ahead)
    return max(settled, told)


# What is shown


def verdicts_ahead(state: ScoutState, constants: ScoutConstants, held: Held) -> Verdicts:
    """Return the verdicts, with intervals that use each arm's trials below its own first open one."""
    ahead = ahead_of(state, held)
    return verdicts(seen_with(state, constants, held, ahead, ahead.first_open), constants)


def pair_ahead(state: ScoutState, constants: ScoutConstants, held: Held, k: int, j: int) -> ScoutState:
    """Return the state as statements on a pair see it: with what was told of both."""
    ahead = ahead_of(state, held)
    until = min(first_open_of(held, ahead, k), first_open_of(held, ahead, j))
    return seen_with(state, constants, held, ahead, np.where(np.isin(ahead.arms, (k, j)), until, 0))


def seen_with(state: ScoutState, constants: ScoutConstants, held: Held, ahead: Ahead, limits: IntArray) -> ScoutState:
    """Return the state with what was told below some places."""
    ahead.limits[:] = limits
    kept = {name: copy_state(getattr(state, name)) for name in ("samples", "series", "later")}
    seen = reserve(state._replace(**kept, era=state.era.copy()), len(held.arms))
    count_up_to_limits(seen, constants, held, ahead)
    return seen
