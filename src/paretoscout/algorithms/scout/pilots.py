"""What the first sample of each arm (its pilot) settles: how delta and the evidence against an arm are shared out.

Pilots are no evidence. So whatever is worked out from them is a constant for the proof: which arms may dominate others
(the champions), how much evidence against an arm counts from each of them, and what of delta each arm may spend. It is
worked out once, when the pilots of all arms that came no later are in, and is kept. Until then only what every arm has
for certain counts: less than it will be.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...kernels.arrays import FloatArray
from ...kernels.compile import kernel
from ...kernels.decisions import is_there
from ...kernels.evidence import log_sum
from ...kernels.noise import SIGMA
from ..contract import RESERVE

#: How evidence against an arm is shared among those that might dominate it: so much goes to those there when it came,
#: by their pilots or evenly; RESERVE / 2^r to those of the r-th addition after it. Never renormalised.
THERE_WHEN_IT_CAME = 0.9
BY_PILOT = 0.8
#: How delta is shared among arms that came together: so much by their pilots, the rest evenly.
BUDGET_BY_PILOT = 0.5
#: The difference of two pilots has twice the variance of one: exp(-gap^2 / 4) is the likelihood that the gap is 0.
BREADTH = 4.0
#: Up to so many arms all are champions; of more, those that are least behind the leaders in so many directions.
N_CHAMPIONS = 64
N_DIRECTIONS = 64


def directions(L: int) -> FloatArray:
    """(D, L): weights of the metrics, spread evenly for two metrics, at random (but fixed) for more."""
    if L == 1:
        return np.ones((1, 1))
    if L == 2:
        along = (np.arange(N_DIRECTIONS) + 0.5) / N_DIRECTIONS
        return np.column_stack([along, 1.0 - along])
    return np.random.default_rng(0).dirichlet(np.ones(L), N_DIRECTIONS)


@kernel
def is_piloted(state: Any, arm: int) -> bool:
    """Whether the pilots of all metrics of an arm are in."""
    piloted = True
    for metric in range(state.pilot.shape[1]):
        piloted = piloted and not math.isnan(state.pilot[arm, metric])
    return piloted


@kernel
def count_unpiloted(state: Any, constants: Any) -> None:
    """Count arms without pilots, of each addition: those that are there, and all of them."""
    state.unpiloted[:] = 0
    if constants.by_pilot > 0.0:
        for k in range(state.pulls.shape[0]):
            if not is_piloted(state, k):
                state.unpiloted[constants.entered[k], 0] += is_there(state.presence[k])
                state.unpiloted[constants.entered[k], 1] += 1


@kernel
def pilots_are_in(state: Any, constants: Any, k: int) -> bool:
    """Whether all that are there, and came no later than k, have their pilots: before, nothing is said of k."""
    missing = 0
    for addition in range(constants.entered[k] + 1):
        missing += state.unpiloted[addition, 0]
    return missing == 0


@kernel
def note_pilot(state: Any, constants: Any, arm: int) -> None:
    """Note that the pilots of an arm are in; settle what hangs on them."""
    if not is_piloted(state, arm):
        return
    state.unpiloted[constants.entered[arm], 0] -= is_there(state.presence[arm])
    state.unpiloted[constants.entered[arm], 1] -= 1
    for addition in range(state.unpiloted.shape[0]):
        if state.unpiloted[addition, 1] > 0:
            break
        if state.champions[addition, 0] < 0:
            settle(state, constants, addition)


@kernel
def settle(state: Any, constants: Any, addition: int) -> None:
    """Find the champions of arms that came with an addition, and share delta out among these arms."""
    scale_pilots(state, constants, addition)
    find_champions(state, constants, addition)
    total = 0.0
    for k in range(state.pulls.shape[0]):
        if constants.entered[k] == addition:
            gap = gap_to_champions(state, constants, addition, state.champions.shape[1], k)
            state.norms[k] = math.exp(-gap * gap / BREADTH)  # put aside: how likely its pilot is if nobody beats it
            total += state.norms[k]
    for k in range(state.pulls.shape[0]):
        if constants.entered[k] == addition:
            by_pilot = BUDGET_BY_PILOT * constants.companions[addition] * state.norms[k] / total
            state.thresholds[k] = even_threshold(constants, addition) - math.log(1.0 - BUDGET_BY_PILOT + by_pilot)
            state.norms[k] = np.nan


@kernel
def even_threshold(constants: Any, addition: int) -> float:
    """log(1 / (share times delta)) where all that came with an addition have the same share."""
    return -math.log(constants.shares[addition] * constants.delta)


@kernel
def scale_pilots(state: Any, constants: Any, addition: int) -> None:
    """Work out how much the pilots differ of all that came no later: a scale to go by where sigma is unknown."""
    K, L = state.pilot.shape
    for metric in range(L):
        mean, square, n = 0.0, 0.0, 0
        for j in range(K):
            if constants.entered[j] <= addition:
                n += 1
                mean += state.pilot[j, metric]
        mean /= n
        for j in range(K):
            if constants.entered[j] <= addition:
                square += (state.pilot[j, metric] - mean) ** 2
        state.pilot_scale[addition, metric] = math.sqrt(square / n)


@kernel
def find_champions(state: Any, constants: Any, addition: int) -> None:
    """List those that came no later and lead: all if they are few, else those who are least behind the leaders.

    A leader has the largest weighted sum of all metrics, for some weights. `norms` is used to put gaps aside.
    """
    if list_if_few(state, constants, addition):
        return
    K, most = state.pulls.shape[0], state.champions.shape[1]
    champions, n_leaders = state.champions[addition], constants.directions.shape[0]
    for row in range(n_leaders):
        champions[row] = leader(state, constants, addition, row)
    for k in range(K):
        if constants.entered[k] <= addition:
            state.norms[k] = gap_to_champions(state, constants, addition, n_leaders, k)
    n, furthest = 0, -np.inf
    for k in range(K):
        if constants.entered[k] > addition or (n == most and state.norms[k] >= furthest):
            continue
        place = n if n < most else most - 1
        while place > 0 and state.norms[champions[place - 1]] > state.norms[k]:
            champions[place] = champions[place - 1]
            place -= 1
        champions[place] = k
        n = min(n + 1, most)
        furthest = state.norms[champions[n - 1]]


@kernel
def list_if_few(state: Any, constants: Any, addition: int) -> bool:
    """List all that came no later, if they are no more than there may be champions."""
    n, most = 0, state.champions.shape[1]
    for other in range(addition + 1):
        n += int(constants.companions[other])
    if n > most:
        return False
    n = 0
    for j in range(state.pulls.shape[0]):
        if constants.entered[j] <= addition:
            state.champions[addition, n] = j
            n += 1
    return True


@kernel
def leader(state: Any, constants: Any, addition: int, row: int) -> int:
    """The arm with the largest weighted sum of its pilots, in units of the noise, among all that came no later."""
    found, most = -1, -np.inf
    for j in range(state.pulls.shape[0]):
        if constants.entered[j] <= addition:
            value = 0.0
            for metric in range(state.pilot.shape[1]):
                scale = constants.usual[metric]
                if scale == 0.0:
                    scale = state.pilot_scale[addition, metric]
                if scale > 0.0:
                    value += constants.directions[row, metric] * state.pilot[j, metric] / scale
            if value > most:
                found, most = j, value
    return found


@kernel
def gap_to_champions(state: Any, constants: Any, addition: int, n: int, k: int) -> float:
    """By how much the pilot of k is behind the champion that leads it most in every metric; 0: behind nobody."""
    gap = 0.0
    for i in range(n):
        j = state.champions[addition, i]
        if j >= 0 and j != k:
            gap = max(gap, pilot_lead(state, constants, addition, j, k))
    return gap


@kernel
def pilot_lead(state: Any, constants: Any, addition: int, j: int, k: int) -> float:
    """By how much j led k in every metric in the pilots, in units of the noise; 0 where there is no scale to go by."""
    least = np.inf
    for metric in range(state.pilot.shape[1]):
        scale, lead = state.pilot_scale[addition, metric], 0.0
        if constants.model.noise[metric] == SIGMA:
            scale = math.sqrt(0.5 * (constants.model.sigma[j, metric] ** 2 + constants.model.sigma[k, metric] ** 2))
        if scale > 0.0:
            lead = (state.pilot[j, metric] - state.pilot[k, metric]) / scale
        least = min(least, lead)
    return least


@kernel
def share_against(state: Any, constants: Any, j: int, k: int, leads: bool) -> float:
    """Which share of the evidence against k is that of j: settled when k came, whoever comes or goes later.

    leads: whether j is among the champions of those with which k came.
    """
    of_j, of_k = constants.entered[j], constants.entered[k]
    if of_j > of_k:
        return RESERVE * 0.5 ** (of_j - of_k) / constants.companions[of_j]
    n_before = -1.0
    for addition in range(of_k + 1):
        n_before += constants.companions[addition]
    share = (1.0 - constants.by_pilot) / n_before
    if leads and constants.by_pilot > 0.0:
        if math.isnan(state.norms[k]):
            state.norms[k] = norm_of(state, constants, k)
        share += constants.by_pilot * math.exp(
            pilot_lead(state, constants, constants.entered[k], j, k) - state.norms[k]
        )
    return THERE_WHEN_IT_CAME * share


@kernel
def norm_of(state: Any, constants: Any, k: int) -> float:
    """The log of the sum over all champions but k of what each has by its pilot."""
    total = -np.inf
    for i in range(state.champions.shape[1]):
        j = state.champions[constants.entered[k], i]
        if j < 0:
            break
        if j != k:
            total = log_sum(total, pilot_lead(state, constants, constants.entered[k], j, k))
    return total
