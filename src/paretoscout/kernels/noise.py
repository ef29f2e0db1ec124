"""What samples say of means, by what is known of the noise: its sigma, bounds of the outcomes, or that it is normal."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import laws
from ..laws import BOUNDS, NORMAL, SIGMA, SILENT
from .algebra import solve
from .arrays import BoolArray, FloatArray, IntArray, SmallInts
from .compile import kernel, short_kernel
from .evidence import (
    half_log,
    log_bernstein,
    log_bernstein_above,
    log_evidence_above,
    log_surprise,
    log_surprise_above,
    log_t_mixture,
    variance_at,
)
from .paired import log_paired
from .series import Series, differences
from .split import LOG_4, log_evidence_by_table, spread_of

law_of = kernel(laws.law_of)

#: Variances estimated from fewer samples are not relied on to rank pairs.
FEW = 20
#: Means that differ relatively by no more than this may be equal.
ROUNDING = 1e-14
#: What rounding may hide of a squared outcome.
HIDDEN = 1e-24


# Arms on their own: each is known by its samples alone.


class Samples(NamedTuple):
    """What is kept of the samples of K arms; of the pilots, nothing."""

    counts: FloatArray  # (K, L) observations
    centres: FloatArray  # (K, L) the first of them
    sums: FloatArray  # (K, L) the sums of their distances to the first
    means: FloatArray  # (K, L) their means
    squares: FloatArray  # (K or 0, L) sums of their squared distances to the mean; where the noise is NORMAL
    spreads: FloatArray  # (K or 0, L) the same, each to the mean before it, in units of the range; where it has BOUNDS
    seen: FloatArray  # (L, 6) distinct values, while there are few
    n_seen: IntArray  # (L,) how many


class NoiseModel(NamedTuple):
    """What is known of the noise, and what evidence is mixed over."""

    noise: IntArray  # (L,) SIGMA, NORMAL or BOUNDS
    sigma: FloatArray  # (K, L) where it is known
    exact: BoolArray  # (L,) whether a number that never varied is certain
    silent: SmallInts  # (K, L) whether a metric is a sum with a part that is no evidence, by its law
    lows: FloatArray  # (L,) the lowest outcome, where there are bounds
    ranges: FloatArray  # (L,) what lies between the bounds
    rates: FloatArray  # (10,) of the mixture for outcomes with bounds
    log_rate_weights: FloatArray  # (10,)
    rhos: FloatArray  # (L, R) scales of the mixture
    log_weights: FloatArray  # (R,)
    by_count: FloatArray  # (N, L, R, 3) see kernels/split.py
    split_table: FloatArray  # (241, 91)
    log_alone: float  # NORMAL: the share of evidence that looks at each arm by itself; 0: outcomes are not paired
    paired_rhos: FloatArray  # (S,) scales of the mixture for outcomes that are paired by their numbers
    log_paired_weights: FloatArray  # (S,) their weights: together the share that is left


@kernel
def count_in(samples: Samples, model: NoiseModel, arm: int, metric: int, value: float) -> None:
    """Add an observation to the evidence. Sums are of distances to the first one: large means cost no digits."""
    before, n = samples.means[arm, metric], samples.counts[arm, metric]
    if model.noise[metric] == BOUNDS:
        low = model.lows[metric]
        expected = (0.5 + n * (before - low) / model.ranges[metric]) / (n + 1.0)
        samples.spreads[arm, metric] += ((value - low) / model.ranges[metric] - expected) ** 2
    n += 1.0
    samples.counts[arm, metric] = n
    if n == 1.0:
        samples.centres[arm, metric] = value
    samples.sums[arm, metric] += value - samples.centres[arm, metric]
    samples.means[arm, metric] = samples.centres[arm, metric] + samples.sums[arm, metric] / n
    if n > 1.0 and model.noise[metric] == NORMAL:
        samples.squares[arm, metric] += (value - before) * (value - samples.means[arm, metric])


@short_kernel
def variance_of(samples: Samples, model: NoiseModel, arm: int, metric: int) -> float:
    """The variance of one observation: sigma^2 where it is known, else an estimate, by which pairs are ranked."""
    if model.noise[metric] == SIGMA:
        return model.sigma[arm, metric] ** 2
    n = samples.counts[arm, metric]
    if n == 0.0:
        return np.inf
    if model.noise[metric] == NORMAL:
        return samples.squares[arm, metric] / n
    return samples.spreads[arm, metric] * model.ranges[metric] ** 2 / n  # never zero, as the evidence is not


@kernel
def says_nothing(samples: Samples, model: NoiseModel, arm: int, metric: int) -> bool:
    """True if an arm's observations are no evidence, by the law of the metric."""
    if model.noise[metric] != NORMAL:
        return False
    if model.silent[arm, metric] > 0:
        return True
    still = samples.squares[arm, metric] == 0.0
    n, different = samples.counts[arm, metric], samples.n_seen[metric]
    return law_of(NORMAL, model.exact[metric], n, different, False, still) in SILENT


@short_kernel
def ranked_evidence(samples: Samples, model: NoiseModel, i: int, j: int, metric: int, difference: float) -> float:
    """Log evidence that the mean of i is above that of j if they differ by that, to rank pairs by.

    Below zero where i looks worse. Sigma known: the evidence itself. Else a bound from above on what each arm says by
    itself; where outcomes are paired, about what they say, if that is more.
    """
    n_i, n_j = samples.counts[i, metric], samples.counts[j, metric]
    if n_i == 0.0 or n_j == 0.0:
        return -np.inf
    if model.noise[metric] != SIGMA:
        alone = bound_by_splits(samples, model, i, j, metric, difference)
        if alone == -np.inf or not is_paired(model, metric):
            return alone
        return max(alone, ranked_by_number(samples, model, i, j, metric, difference))
    if difference > 0.0:
        return known_evidence(samples, model, i, j, metric, difference)
    spread = model.sigma[i, metric] ** 2 * spread_of(model.by_count, model.rhos, n_i, metric, 0)
    spread += model.sigma[j, metric] ** 2 * spread_of(model.by_count, model.rhos, n_j, metric, 0)
    if spread == 0.0:
        return -np.inf
    # below what no difference says by as much as a difference is above it
    return known_evidence(samples, model, i, j, metric, 0.0) - 0.5 * difference * difference / spread


@short_kernel
def known_evidence(samples: Samples, model: NoiseModel, i: int, j: int, metric: int, difference: float) -> float:
    """Log e-value, sigma known, of two means that differ by so much."""
    n_i, n_j = samples.counts[i, metric], samples.counts[j, metric]
    sigma_i, sigma_j = model.sigma[i, metric], model.sigma[j, metric]
    rhos, log_weights = model.rhos, model.log_weights
    if n_i == 0.0 or n_j == 0.0:
        return -np.inf
    if sigma_i == 0.0 or sigma_j == 0.0:
        return log_evidence_above(difference, n_i, n_j, sigma_i, sigma_j, rhos[metric], log_weights)
    by_count, table = model.by_count, model.split_table
    return log_evidence_by_table(difference, n_i, n_j, sigma_i, sigma_j, metric, rhos, log_weights, by_count, table)


@short_kernel
def is_paired(model: NoiseModel, metric: int) -> bool:
    """Whether outcomes are paired by their numbers."""
    return model.noise[metric] == NORMAL and model.log_alone < 0.0


@kernel
def ranked_by_number(samples: Samples, model: NoiseModel, i: int, j: int, metric: int, difference: float) -> float:
    """About what outcomes say that are paired by their numbers, if the means of those differ by that."""
    m = min(samples.counts[i, metric], samples.counts[j, metric])
    squares = m * (variance_of(samples, model, i, metric) + variance_of(samples, model, j, metric))
    value = log_paired(abs(difference), m, squares, m, model.paired_rhos, model.log_paired_weights)
    if difference > 0.0 or value == -np.inf:
        return value
    # below what a difference of 0 says, about, by as much as the reverse is above it
    return -value - math.log1p(m / model.paired_rhos[0])


@kernel
def log_by_number(
    series: Series,
    model: NoiseModel,
    metric: int,
    i: int,
    first_i: int,
    j: int,
    first_j: int,
    most: int,
    shift: float,
) -> float:
    """Log evidence that the mean of i plus `shift` is above that of j, of outcomes paired by their numbers.

    From the numbers `first_i` and `first_j` on, up to so many.
    """
    m, mean, squares = differences(series, metric, i, first_i, j, first_j, most)
    return log_paired(mean + shift, m, squares, m, model.paired_rhos, model.log_paired_weights)


@kernel
def bound_by_splits(samples: Samples, model: NoiseModel, i: int, j: int, metric: int, difference: float) -> float:
    """A bound from above on the evidence where sigma is unknown: the least over some ways to share the difference."""
    if says_nothing(samples, model, i, metric) or says_nothing(samples, model, j, metric):
        return -np.inf
    noise, size = model.noise[metric], abs(difference)
    share = model.log_alone if noise == NORMAL else 0.0
    n_i, n_j = samples.counts[i, metric], samples.counts[j, metric]
    if noise == NORMAL:
        unit, scales, weights = 1.0, model.rhos[metric], model.log_weights
        scatter_i, scatter_j = samples.squares[i, metric], samples.squares[j, metric]
    else:
        unit, scales, weights = model.ranges[metric], model.rates, model.log_rate_weights
        scatter_i, scatter_j = samples.spreads[i, metric], samples.spreads[j, metric]
    # the mean of i is not below its bound
    most = size if noise == NORMAL else min(size, samples.means[i, metric] - model.lows[metric])
    rho = model.rhos[metric, 0]
    spread_i = variance_of(samples, model, i, metric) * (n_i + rho) / (n_i * n_i)
    spread = spread_i + variance_of(samples, model, j, metric) * (n_j + rho) / (n_j * n_j)
    u = min(most, size * spread_i / spread if spread > 0.0 else 0.5 * size)
    value = value_of_split(noise, u, size - u, n_i, n_j, scatter_i, scatter_j, unit, scales, weights)
    if n_i < FEW:  # its variance may look small by chance: it may be all that is off
        rest = size - most
        value = min(value, value_of_split(noise, most, rest, n_i, n_j, scatter_i, scatter_j, unit, scales, weights))
    if n_j < FEW:
        value = min(value, value_of_split(noise, 0.0, size, n_i, n_j, scatter_i, scatter_j, unit, scales, weights))
    if difference > 0.0 or value == -np.inf:
        return share + value
    # below what a difference of 0 says, by as much as the reverse is above it: never nearer to a verdict
    nothing = value_of_split(noise, 0.0, 0.0, n_i, n_j, scatter_i, scatter_j, unit, scales, weights)
    return share + 2.0 * nothing - value


@kernel
def value_of_split(
    noise: int,
    u: float,
    rest: float,
    n_i: float,
    n_j: float,
    scatter_i: float,
    scatter_j: float,
    unit: float,
    scales: FloatArray,
    log_weights: FloatArray,
) -> float:
    """Log evidence, sigma unknown, if arm i is off by u and arm j by the rest."""
    if noise == NORMAL:
        if n_i < 2.0 or n_j < 2.0:
            return -np.inf
        at_i = log_t_mixture(u, n_i, scatter_i / n_i, scales, log_weights)
        return log_surprise(at_i + log_t_mixture(rest, n_j, scatter_j / n_j, scales, log_weights))
    at_i = log_bernstein(u / unit, n_i, scatter_i, scales, log_weights)[0]
    return at_i + log_bernstein(rest / unit, n_j, scatter_j, scales, log_weights)[0]


@kernel
def pair_evidence(samples: Samples, model: NoiseModel, i: int, j: int, metric: int, shift: float) -> float:
    """Log evidence that the mean of i plus `shift` is above that of j; where below 0, it may be a mere bound."""
    difference = samples.means[i, metric] + shift - samples.means[j, metric]
    if difference <= ROUNDING * (abs(samples.means[i, metric]) + abs(samples.means[j, metric])):
        return -np.inf  # of equal means, rounding may leave one above the other
    if model.noise[metric] == SIGMA:
        return known_evidence(samples, model, i, j, metric, difference)
    if says_nothing(samples, model, i, metric) or says_nothing(samples, model, j, metric):
        return -np.inf
    n_i, n_j = samples.counts[i, metric], samples.counts[j, metric]
    if n_i == 0.0 or n_j == 0.0:
        return -np.inf
    bound = bound_by_splits(samples, model, i, j, metric, difference)
    if bound < 0.0:
        return bound
    if model.noise[metric] == NORMAL:
        variance_i, variance_j = samples.squares[i, metric] / n_i, samples.squares[j, metric] / n_j
        rhos = model.rhos[metric]
        value = log_surprise_above(difference, n_i, variance_i, n_j, variance_j, rhos, model.log_weights)
        return model.log_alone + value
    unit = model.ranges[metric]
    place = (samples.means[i, metric] - model.lows[metric]) / unit  # of the mean of i between the bounds
    spread_i, spread_j = samples.spreads[i, metric], samples.spreads[j, metric]
    return log_bernstein_above(
        difference / unit, place - 1.0, place, n_i, spread_i, n_j, spread_j, model.rates, model.log_rate_weights
    )


@short_kernel
def may_reach(samples: Samples, model: NoiseModel, eps: FloatArray, k: int, j: int, needed: float) -> bool:
    """Whether k may escape j with so much evidence, in some metric: a quick look, which proves nothing.

    Of each scale the evidence is at most z^2 / 2 + log 4, z the lead over its standard deviation.
    """
    for metric in range(samples.means.shape[1]):
        n_k, n_j = samples.counts[k, metric], samples.counts[j, metric]
        lead = samples.means[k, metric] + eps[metric] - samples.means[j, metric]
        if n_k > 0.0 and n_j > 0.0 and lead > 0.0:
            square = model.sigma[k, metric] ** 2 / n_k + model.sigma[j, metric] ** 2 / n_j
            if model.noise[metric] != SIGMA or 0.5 * lead * lead >= (needed - LOG_4) * square:
                return True
    return False


@kernel
def least_evidence(
    samples: Samples,
    model: NoiseModel,
    k: int,
    metric: int,
    lead: float,
    fewest: float,
    most: float,
    noisiest: float,
    needed: float,
) -> float:
    """Where sigma is unknown, a bound from below on the evidence that k is above each of some arms.

    Their means are below that of k by `lead` or more, they have `fewest` to `most` samples and variances of up to
    `noisiest`. Evidence grows with the lead and falls with the variance; samples are paid for, and tell. Where it is
    clear that what is needed is not reached, no more is worked out.
    """
    n, noise = samples.counts[k, metric], model.noise[metric]
    if says_nothing(samples, model, k, metric):
        return -np.inf
    if noise == NORMAL:
        rhos, weights, own = model.rhos[metric], model.log_weights, samples.squares[k, metric]
        rho = rhos[rhos.shape[0] - 1]  # the least: there, more samples cost most
        paid = 0.5 * math.log((most + rho) / (fewest + rho)) - model.log_alone
        halves = value_of_split(noise, 0.5 * lead, 0.5 * lead, n, fewest, own, fewest * noisiest, 1.0, rhos, weights)
        if halves - paid < needed:
            return -np.inf
        return log_surprise_above(lead, n, own / n, fewest, noisiest, rhos, weights) - paid
    unit, rates, weights = model.ranges[metric], model.rates, model.log_rate_weights
    own, spread = samples.spreads[k, metric], noisiest * most / (unit * unit)
    halves = value_of_split(noise, 0.5 * lead, 0.5 * lead, n, fewest, own, spread, unit, rates, weights)
    if halves < needed:
        return -np.inf
    place, lead = (samples.means[k, metric] - model.lows[metric]) / unit, lead / unit
    least = log_bernstein_above(lead, place - 1.0, min(place, lead), n, own, fewest, spread, rates, weights)
    if place > lead:  # where the others are off to the other side, more samples tell less
        least = min(least, log_bernstein_above(lead, lead, place, n, own, most, spread, rates, weights))
    return least


@kernel
def radius(samples: Samples, model: NoiseModel, k: int, metric: int, threshold: float) -> float:
    """Half of a two-sided interval at the arm's share of delta, over L: the narrowest that one term gives."""
    n = samples.counts[k, metric]
    needed = threshold + math.log(samples.counts.shape[1])
    narrowest = np.inf
    if n == 0.0 or says_nothing(samples, model, k, metric):
        return narrowest
    if model.noise[metric] == BOUNDS:
        for r in range(model.rates.shape[0]):
            rate = model.rates[r]
            price = -(math.log1p(-rate) + rate) * samples.spreads[k, metric]
            exponent = needed + math.log(2.0) - model.log_rate_weights[r] + price
            narrowest = min(narrowest, model.ranges[metric] * min(1.0, exponent / (rate * n)))
        return narrowest
    for r in range(model.log_weights.shape[0]):
        rho = model.rhos[metric, r]
        if model.noise[metric] == SIGMA:
            sigma = model.sigma[k, metric]
            exponent = needed - model.log_weights[r] + half_log(n, sigma, rho)
            narrowest = min(narrowest, math.sqrt(2.0 * exponent * variance_at(n, sigma, rho)))
        elif n > 1.0:
            exponent = needed - model.log_weights[r] + 0.5 * math.log(1.0 + n / rho)
            kappa = rho / (n + rho)
            grown = math.exp(min(2.0 * exponent / n, 700.0))  # what (s^2 + u^2) / (s^2 + kappa u^2) must reach
            if kappa * grown < 1.0:
                square = samples.squares[k, metric] / n * (grown - 1.0) / (1.0 - kappa * grown)
                narrowest = min(narrowest, math.sqrt(square))
    return narrowest


# Arms whose means are linear in their contexts: what the fit leaves unexplained is noise.


@kernel
def bound_sigma(state: Any, constants: Any, t: float, sampled: IntArray) -> None:
    """Where sigma is unknown, an upper bound on it that holds at all times, from what the model leaves of t samples.

    The sum of squared noise is at least sigma^2 q but for a small probability, q the best over the rates c of
    ((t / 2) log(1 + 2 c) - price) / c. The fit takes away at most (1 + rho / least eigenvalue of A) times what the
    evidence allows it. Samples that are off the model by the misfit can hide so much of the noise. Few values do not
    look like normal noise: then there is no bound.
    """
    d, L = state.right.shape
    trace = 0.0  # of A^-1: one over it is no more than the least eigenvalue
    for i in range(d):
        for j in range(d):
            state.column[j, 0] = 1.0 if i == j else 0.0
        solve(state.factor, state.reach, state.column)
        trace += state.column[i, 0]
    for metric in range(L):
        if constants.sigma_known[metric]:
            continue
        left = state.squares[metric]
        for k in sampled:
            mean = state.centres[k, metric] + state.sums[k, metric] / state.pulls[k]
            hidden = HIDDEN * mean * mean  # by rounding
            left += state.pulls[k] * (unexplained(state, constants, k, metric) ** 2 + hidden)
        q = -np.inf
        for rate in constants.rates:
            q = max(q, (0.5 * t * math.log1p(2.0 * rate) - constants.log_sigma_price) / rate)
        taken = np.inf
        for r in range(constants.rhos.shape[1]):
            allowed = 2.0 * (constants.threshold - state.log_prices[metric, r])
            taken = min(taken, (1.0 + constants.rhos[metric, r] * trace) * allowed)
        exact = constants.exact[metric]
        # without exact numbers the scatter about the fit tells, also where each arm was sampled once
        law = law_of(NORMAL, exact, t, state.n_seen[metric], False, exact and state.squares[metric] == 0.0)
        if q > taken and law not in SILENT and constants.silent[metric] == 0:
            bound = (math.sqrt(left) + constants.misfit[metric] * math.sqrt(t)) / math.sqrt(q - taken)
            if state.sigma_bounded[metric] == 0 or bound < state.sigma[metric]:
                state.sigma[metric] = bound
            state.sigma_bounded[metric] = 1
        elif state.sigma_bounded[metric] == 0:
            state.sigma[metric] = math.sqrt(left / max(1.0, t - d))


@kernel
def unexplained(state: Any, constants: Any, arm: int, metric: int) -> float:
    """What the fit leaves of the mean of an arm's own samples."""
    left = state.centres[arm, metric] + state.sums[arm, metric] / state.pulls[arm]
    for i in range(constants.contexts.shape[1]):
        left -= constants.contexts[arm, i] * state.theta[i, metric]
    return left
