"""Evidence on two arms that were measured on the same blocks: on the differences of their outcomes, one for each block.

What the blocks have in common cancels out. Blocks are in one order for all arms, drawn before anything was measured,
and a pair is judged by the first m of them that both have visited. The evidence below exceeds 1 / alpha for some m with
probability at most alpha, if the mean difference is no larger than stated. So m may be chosen by whoever knows
anything, and evidence on several pairs shares alpha; it may not be added up.

The mean is that of a population from which blocks are drawn, or of a list of N blocks. Of a list it is known in the
end: evidence grows without bound as m nears N. N is infinite for a population.
"""

from __future__ import annotations

import math

import numpy as np

from .arrays import FloatArray
from .compile import kernel

#: The scales of the mixture are `caution` and each next eight times that, up to this.
LARGEST_SCALE = 1024.0
#: What is left for bets between a bound and a mean is nothing, as a share of the range.
NO_ROOM = 1e-9
#: Squares below this have lost their digits, and are no evidence.
LOST = 1e-300


def scales_of(caution: float) -> FloatArray:
    """Return the scales of the mixture: the least says how many differences it takes to be sure, at least."""
    n_scales = 1 + max(0, int(math.log(LARGEST_SCALE / caution, 8)))
    return np.array([caution * 8.0**r for r in range(n_scales)])


@kernel
def worth_of(m: float, n_list: float) -> float:
    """How many blocks of a population m blocks of a list are worth: the fewer are left, the more."""
    return m if n_list == np.inf else m * n_list / (n_list - m)


@kernel
def log_twice_below(x: float, m: float) -> float:
    """A bound from below on log(2 F(x)), x > 0, F the distribution of Student's t with m degrees of freedom.

    |t| shrinks as m grows: the closed forms of 1, 2 and 4 degrees serve all that are between them, and above.
    """
    if m < 2.0:
        return math.log1p(2.0 / math.pi * math.atan(x))
    if m < 4.0:
        return math.log1p(x / math.sqrt(2.0 + x * x))
    v = 1.0 + 0.25 * x * x
    return math.log1p(0.75 * x / math.sqrt(v) * (1.0 - x * x / (12.0 * v)))


@kernel
def log_paired(lead: float, m: float, squares: float, worth: float, rhos: FloatArray, log_weights: FloatArray) -> float:
    """Log evidence that a mean difference is above some number, for normal differences of unknown scale.

    lead: what their average has above it. squares: the sum of their squared distances to the average. worth: `worth_of`
    the m blocks. With kappa = rho / (worth + rho) and A = squares + kappa worth lead^2, summed over the scales rho:

        log w + 1/2 log kappa + m/2 log((squares + worth lead^2) / A) + log(2 F(lead sqrt((1 - kappa) worth m / A)))

    A t-test whose effect, in units of the scale, is half-normal with variance 1 / rho. It grows with the lead.
    """
    largest, total, square = -np.inf, 0.0, lead * lead
    if lead <= 0.0 or square < LOST or m < 1.0:
        return -np.inf
    for r in range(rhos.shape[0]):
        kappa = rhos[r] / (worth + rhos[r])
        spread = squares + kappa * worth * square
        x = lead * math.sqrt((1.0 - kappa) * worth * m / spread)
        ratio = (squares + worth * square) / spread
        term = log_weights[r] + 0.5 * (math.log(kappa) + m * math.log(ratio)) + log_twice_below(x, m)
        if term > largest:
            largest, total = term, total * math.exp(largest - term) + 1.0
        else:
            total += math.exp(term - largest)
    return largest + math.log(total)


@kernel
def paired_radius(
    threshold: float, m: float, squares: float, worth: float, rhos: FloatArray, log_weights: FloatArray
) -> float:
    """How far the mean difference may be from the average, at evidence below a threshold: the narrowest of all scales.

    Both sides at once: without the factor 2 F of `log_paired`, which knows on which side the lead is.
    """
    narrowest = np.inf
    for r in range(rhos.shape[0]):
        kappa = rhos[r] / (worth + rhos[r])
        growth = 2.0 * (threshold - log_weights[r] - 0.5 * math.log(kappa)) / m if m >= 1.0 else np.inf
        if growth < -math.log(kappa):
            ratio = math.exp(growth)
            narrowest = min(narrowest, math.sqrt(squares / worth * (ratio - 1.0) / (1.0 - kappa * ratio)))
    return narrowest


# Bets: for outcomes with bounds, whatever their law


@kernel
def expected_next(mean: float, t: float, total: float, n_list: float) -> float:
    """What the t-th difference is on average, t = 0, 1, ..., if the mean is so large and those before it sum up so."""
    return mean if n_list == np.inf else (n_list * mean - total) / (n_list - t)


@kernel
def place_bets(logs: FloatArray, difference: float, expected: float, most: float, rates: FloatArray) -> None:
    """Let the next difference decide bets that it is above its expectation: one for each rate. logs: (G,) of wealth.

    most: differences lie between -most and most. An expectation below -most is impossible: the mean is larger, for
    certain. Where it is -most nobody bets, because that may be a tie.
    """
    room = most + expected
    for r in range(rates.shape[0]):
        if room < -NO_ROOM * most:
            logs[r] = np.inf
        elif room > NO_ROOM * most:
            logs[r] += math.log1p(rates[r] * (difference - expected) / room)


@kernel
def log_wealth(logs: FloatArray, log_weights: FloatArray) -> float:
    """The log of the weighted sum of all wealth."""
    largest = -np.inf
    for r in range(logs.shape[0]):
        largest = max(largest, log_weights[r] + logs[r])
    if largest == np.inf:
        return largest
    total = 0.0
    for r in range(logs.shape[0]):
        total += math.exp(log_weights[r] + logs[r] - largest)
    return largest + math.log(total)


@kernel
def log_bets(
    differences: FloatArray,
    m: int,
    mean: float,
    n_list: float,
    most: float,
    rates: FloatArray,
    log_weights: FloatArray,
    logs: FloatArray,
) -> float:
    """Log evidence that the mean is above some number, by bets on the first m differences in their order.

    logs: (G,) scratch.
    """
    total = 0.0
    for r in range(rates.shape[0]):
        logs[r] = 0.0
    for t in range(m):
        place_bets(logs, differences[t], expected_next(mean, float(t), total, n_list), most, rates)
        total += differences[t]
    return log_wealth(logs, log_weights)


@kernel
def bets_bound(
    threshold: float,
    differences: FloatArray,
    m: int,
    n_list: float,
    most: float,
    rates: FloatArray,
    log_weights: FloatArray,
    logs: FloatArray,
) -> float:
    """The mean is above this, at evidence of a threshold; -most: nothing is known."""
    low, high, average = -most, -most, 0.0
    for t in range(m):
        average += differences[t] / m
    if m > 0:
        high = average  # there is no evidence that the mean is above the average
    for _ in range(60):
        middle = 0.5 * (low + high)
        if log_bets(differences, m, middle, n_list, most, rates, log_weights, logs) >= threshold:
            low = middle
        else:
            high = middle
    return low
