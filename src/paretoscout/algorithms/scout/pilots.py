"""What the first sample of each arm (its pilot) settles: how delta and the evidence against an arm are shared out.

Pilots are no evidence. So whatever is worked out from them is a constant for the proof: which arms may dominate others
(the champions), how much evidence against an arm counts from each of them, and what of delta each arm may spend. It is
worked out once, when the pilots of all arms that came no later are in, and is kept. Until then only what every arm has
for certain counts: less than it will be. Where there are contexts, what they tell of the pilots takes their place
(`guide.py`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...kernels.arrays import FloatArray, IntArray, SmallInts, arm_at
from ...kernels.compile import kernel
from ...kernels.decisions import is_there
from ...kernels.evidence import log_sum
from ...laws import SIGMA
from ..contract import RESERVE
from .guide import Fit, Guide, expect

#: How evidence against an arm is shared among those that might dominate it: so much goes to those there when it came,
#: by their pilots or evenly; RESERVE / 2^r to those of the r-th addition after it. Never renormalised.
THERE_WHEN_IT_CAME = 0.9
BY_PILOT = 0.8
#: How delta is shared among arms that came together: so much by their pilots, the rest evenly.
BUDGET_BY_PILOT = 0.5
#: Where sigma is unknown, pilots are taken to have this share of their differences from noise.
ASSUMED_NOISE = 0.25
#: The difference of two pilots has twice the variance of one: exp(-gap^2 / 4) is the likelihood that the gap is 0.
BREADTH = 4.0
#: Up to so many arms all are champions; of more, those that are least behind the leaders in so many directions.
N_CHAMPIONS = 64
N_DIRECTIONS = 64


class Pilots(NamedTuple):
    first: FloatArray  # (K, L) the first observation of each arm and metric: no evidence; NaN: there is none
    unpiloted: IntArray  # (A, 2) arms of each addition without pilots: those that are there, and all
    scale: FloatArray  # (A, L) how much the pilots differ of all that came no later: to go by where sigma is unknown
    champions: SmallInts  # (A, C) those who lead in the pilots among all that came no later; -1: no more
    norms: FloatArray  # (K,) by which shares by pilots are divided; NaN: not worked out yet
    expected: FloatArray  # (K, L) where arms seem to be, once settled: their pilots, or what contexts make of these
    variances: FloatArray  # (K, L) of these


class Sharing(NamedTuple):
    delta: float
    by_pilot: float  # how much of the evidence is shared by the pilots; 0: there are none
    usual: FloatArray  # (L,) the median sigma
    directions: FloatArray  # (D, L) in which champions lead
    entered: IntArray  # (K,) with which addition the arm came
    companions: FloatArray  # (A,) how many arms came with each addition
    even: FloatArray  # (A,) what of delta each of these has, if all have the same


def directions(L: int) -> FloatArray:
    """(D, L): weights of the metrics, spread evenly for two metrics, at random (but fixed) for more."""
    if L == 1:
        return np.ones((1, 1))
    if L == 2:
        along = (np.arange(N_DIRECTIONS) + 0.5) / N_DIRECTIONS
        return np.column_stack([along, 1.0 - along])
    return np.random.default_rng(0).dirichlet(np.ones(L), N_DIRECTIONS)


def no_pilots(K: int, L: int, n_additions: int) -> Pilots:
    """Return what is known before the first sample."""
    return Pilots(
        first=np.full((K, L), np.nan),
        unpiloted=np.zeros((n_additions, 2), np.int64),
        scale=np.zeros((n_additions, L)),
        champions=np.full((n_additions, min(K, N_CHAMPIONS)), -1, np.int32),
        norms=np.full(K, np.nan),
        expected=np.zeros((K, L)),
        variances=np.zeros((K, L)),
    )


@kernel
def is_piloted(pilots: Pilots, arm: int) -> bool:
    """Whether the pilots of all metrics of an arm are in."""
    piloted = True
    for metric in range(pilots.first.shape[1]):
        piloted = piloted and not math.isnan(pilots.first[arm, metric])
    return piloted


@kernel
def count_unpiloted(pilots: Pilots, sharing: Sharing, presence: SmallInts) -> None:
    """Count arms without pilots, of each addition: those that are there, and all of them."""
    pilots.unpiloted[:] = 0
    if sharing.by_pilot > 0.0:
        for k in range(pilots.norms.shape[0]):
            if not is_piloted(pilots, k):
                pilots.unpiloted[sharing.entered[k], 0] += is_there(presence[k])
                pilots.unpiloted[sharing.entered[k], 1] += 1


@kernel
def pilots_are_in(pilots: Pilots, sharing: Sharing, k: int) -> bool:
    """Whether all that are there, and came no later than k, have their pilots: before, nothing is said of k."""
    missing = 0
    for addition in range(sharing.entered[k] + 1):
        missing += pilots.unpiloted[addition, 0]
    return missing == 0


@kernel
def note_pilot(
    pilots: Pilots,
    sharing: Sharing,
    guide: Guide,
    fit: Fit,
    noise: IntArray,
    sigma: FloatArray,
    presence: SmallInts,
    thresholds: FloatArray,
    arm: int,
) -> None:
    """Note that the pilots of an arm are in; settle what hangs on them."""
    if not is_piloted(pilots, arm):
        return
    pilots.unpiloted[sharing.entered[arm], 0] -= is_there(presence[arm])
    pilots.unpiloted[sharing.entered[arm], 1] -= 1
    for addition in range(pilots.unpiloted.shape[0]):
        if pilots.unpiloted[addition, 1] > 0:
            break
        if pilots.champions[addition, 0] < 0:
            settle(pilots, sharing, guide, fit, noise, sigma, thresholds, addition)


@kernel
def settle(
    pilots: Pilots,
    sharing: Sharing,
    guide: Guide,
    fit: Fit,
    noise: IntArray,
    sigma: FloatArray,
    thresholds: FloatArray,
    addition: int,
) -> None:
    """Settle all that hangs on the pilots of arms that came with an addition."""
    scale_pilots(pilots, sharing, addition)
    place_arms(pilots, sharing, guide, fit, noise, sigma, addition)
    share_out(pilots, sharing, thresholds, addition)


@kernel
def share_out(pilots: Pilots, sharing: Sharing, thresholds: FloatArray, addition: int) -> None:
    """Find the champions of arms that came with an addition, and share delta out among these arms."""
    find_champions(pilots, sharing, addition)
    nearest, total = np.inf, 0.0
    for k in range(pilots.norms.shape[0]):
        if sharing.entered[k] == addition:
            pilots.norms[k] = gap_to_champions(pilots, addition, pilots.champions.shape[1], k)  # put aside
            nearest = min(nearest, pilots.norms[k])
    for k in range(pilots.norms.shape[0]):
        if sharing.entered[k] == addition:
            total += likelihood_of_no_gap(pilots.norms[k], nearest)
    for k in range(pilots.norms.shape[0]):
        if sharing.entered[k] == addition:
            likely = likelihood_of_no_gap(pilots.norms[k], nearest) / total
            by_pilot = BUDGET_BY_PILOT * sharing.companions[addition] * likely
            thresholds[k] = even_threshold(sharing, addition) - math.log(1.0 - BUDGET_BY_PILOT + by_pilot)
        pilots.norms[k] = np.nan  # those of others were overwritten too


@kernel
def likelihood_of_no_gap(gap: float, nearest: float) -> float:
    """How likely the pilots are if nobody beats the arm, over how likely for the one nearest to that.

    All that came later may be so far behind that either is 0.
    """
    return math.exp((nearest - gap) * (nearest + gap) / BREADTH)


@kernel
def even_threshold(sharing: Sharing, addition: int) -> float:
    """log(1 / (share times delta)) where all that came with an addition have the same share."""
    return -math.log(sharing.even[addition] * sharing.delta)


@kernel
def scale_pilots(pilots: Pilots, sharing: Sharing, addition: int) -> None:
    """Work out how much the pilots differ of all that came no later: a scale to go by where sigma is unknown."""
    K, L = pilots.first.shape
    for metric in range(L):
        mean, square, n = 0.0, 0.0, 0
        for j in range(K):
            if sharing.entered[j] <= addition:
                n += 1
                mean += pilots.first[j, metric]
        mean /= n
        for j in range(K):
            if sharing.entered[j] <= addition:
                square += (pilots.first[j, metric] - mean) ** 2
        pilots.scale[addition, metric] = math.sqrt(square / n)


@kernel
def place_arms(
    pilots: Pilots, sharing: Sharing, guide: Guide, fit: Fit, noise: IntArray, sigma: FloatArray, addition: int
) -> None:
    """Settle where those that came with an addition seem to be. A guide asks for noise: it weighs by that."""
    K, L = pilots.first.shape
    for metric in range(L):
        spread = 0.0 if noise[metric] == SIGMA else pilots.scale[addition, metric]
        noisy = True
        for k in range(K):
            scale = sigma[k, metric] if noise[metric] == SIGMA else spread
            if sharing.entered[k] <= addition:
                noisy = noisy and scale > 0.0
            if sharing.entered[k] == addition:
                assumed = scale if noise[metric] == SIGMA else ASSUMED_NOISE * scale
                pilots.expected[k, metric], pilots.variances[k, metric] = pilots.first[k, metric], assumed * assumed
        if noisy and guide.sizes.shape[0] > 0:
            expect(
                guide,
                fit,
                pilots.first,
                sigma,
                spread,
                sharing.entered,
                addition,
                metric,
                pilots.expected,
                pilots.variances,
            )


@kernel
def find_champions(pilots: Pilots, sharing: Sharing, addition: int) -> None:
    """List those that came no later and lead: all if they are few, else those who are least behind the leaders.

    A leader has the largest weighted sum of all metrics, for some weights. `norms` is used to put gaps aside.
    """
    if list_if_few(pilots, sharing, addition):
        return
    K, most = pilots.norms.shape[0], pilots.champions.shape[1]
    champions, n_leaders = pilots.champions[addition], sharing.directions.shape[0]
    for row in range(n_leaders):
        champions[row] = leader(pilots, sharing, addition, row)
    for k in range(K):
        if sharing.entered[k] <= addition:
            pilots.norms[k] = gap_to_champions(pilots, addition, n_leaders, k)
    n, furthest = 0, -np.inf
    for k in range(K):
        if sharing.entered[k] > addition or (n == most and pilots.norms[k] >= furthest):
            continue
        place = n if n < most else most - 1
        while place > 0 and pilots.norms[champions[place - 1]] > pilots.norms[k]:
            champions[place] = champions[place - 1]
            place -= 1
        champions[place] = k
        n = min(n + 1, most)
        furthest = pilots.norms[champions[n - 1]]


@kernel
def list_if_few(pilots: Pilots, sharing: Sharing, addition: int) -> bool:
    """List all that came no later, if they are no more than there may be champions."""
    n, most = 0, pilots.champions.shape[1]
    for other in range(addition + 1):
        n += int(sharing.companions[other])
    if n > most:
        return False
    n = 0
    for j in range(pilots.norms.shape[0]):
        if sharing.entered[j] <= addition:
            pilots.champions[addition, n] = j
            n += 1
    return True


@kernel
def leader(pilots: Pilots, sharing: Sharing, addition: int, row: int) -> int:
    """The arm with the largest weighted sum of its metrics, in units of the noise, among all that came no later."""
    found, most = -1, -np.inf
    for j in range(pilots.norms.shape[0]):
        if sharing.entered[j] <= addition:
            value = 0.0
            for metric in range(pilots.first.shape[1]):
                scale = sharing.usual[metric]
                if scale == 0.0:
                    scale = pilots.scale[addition, metric]
                if scale > 0.0:
                    value += sharing.directions[row, metric] * pilots.expected[j, metric] / scale
            if value > most:
                found, most = j, value
    return found


@kernel
def gap_to_champions(pilots: Pilots, addition: int, n: int, k: int) -> float:
    """By how much k seems behind the champion that leads it most in every metric; 0: behind nobody."""
    gap = 0.0
    for i in range(n):
        j = arm_at(pilots.champions[addition], i)
        if j >= 0 and j != k:
            gap = max(gap, pilot_lead(pilots, j, k))
    return gap


@kernel
def pilot_lead(pilots: Pilots, j: int, k: int) -> float:
    """By how much j seems to lead k in every metric, in units of the noise; 0 where there is no scale to go by."""
    least = np.inf
    for metric in range(pilots.first.shape[1]):
        square, lead = 0.5 * (pilots.variances[j, metric] + pilots.variances[k, metric]), 0.0
        if square > 0.0:
            lead = (pilots.expected[j, metric] - pilots.expected[k, metric]) / math.sqrt(square)
        least = min(least, lead)
    return least


@kernel
def share_against(pilots: Pilots, sharing: Sharing, j: int, k: int, leads: bool) -> float:
    """Which share of the evidence against k is that of j: settled when k came, whoever comes or goes later.

    leads: whether j is among the champions of those with which k came.
    """
    of_j, of_k = sharing.entered[j], sharing.entered[k]
    if of_j > of_k:
        return RESERVE * 0.5 ** (of_j - of_k) / sharing.companions[of_j]
    n_before = -1.0
    for addition in range(of_k + 1):
        n_before += sharing.companions[addition]
    share = (1.0 - sharing.by_pilot) / n_before
    if leads and sharing.by_pilot > 0.0:
        if math.isnan(pilots.norms[k]):
            pilots.norms[k] = norm_of(pilots, sharing, k)
        share += sharing.by_pilot * math.exp(pilot_lead(pilots, j, k) - pilots.norms[k])
    return THERE_WHEN_IT_CAME * share


@kernel
def norm_of(pilots: Pilots, sharing: Sharing, k: int) -> float:
    """The log of the sum over all champions but k of what each has by its pilot."""
    total = -np.inf
    for i in range(pilots.champions.shape[1]):
        j = arm_at(pilots.champions[sharing.entered[k]], i)
        if j < 0:
            break
        if j != k:
            total = log_sum(total, pilot_lead(pilots, j, k))
    return total
