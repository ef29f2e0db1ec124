"""Evidence that one mean exceeds another, valid at all times and under any sampling rule: logs of e- and p-values.

An e-process for a hypothesis is a non-negative process that starts at 1 and, if the hypothesis is true, is on average
no larger at any time. It exceeds 1 / alpha at some time with probability at most alpha (Ville). There are three for
pairs of arms: sigma known, outcomes with bounds, and linear means; for normal noise of unknown scale there is a p-value
that holds at all times. `docs/scout.md` has the proofs.
"""

from __future__ import annotations

import math

import numpy as np

from ..laws import FEW_VALUES
from .arrays import FloatArray, IntArray
from .compile import kernel

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_LOG_4 = math.log(4.0)


@kernel
def log_sum(a: float, b: float) -> float:
    """log(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf or a == np.inf else a + math.log1p(math.exp(b - a))


@kernel
def half_normal_exponent(z: float) -> tuple[float, float, float]:
    """g(z) = z^2 / 2 + log(2 Phi(z)), its first and its second derivative.

    Mixing exp(s x - s^2 / 2) over s > 0 with a half-normal weight gives exp(g), up to a factor. g is convex.
    """
    if z < -37.0:  # Phi(z) underflows: asymptotic series
        t = 1.0 / (z * z)
        series = 1.0 - t * (1.0 - t * (3.0 - t * (15.0 - 105.0 * t)))
        derivative = -1.0 + t * (6.0 - t * (45.0 - 420.0 * t))
        slope = -(1.0 + 2.0 * t * derivative / series) / z
        return math.log(-_SQRT_2_OVER_PI / z * series), slope, t
    mass = math.erfc(-z * _SQRT_HALF)  # 2 Phi(z)
    hazard = _SQRT_2_OVER_PI * math.exp(-0.5 * z * z) / mass
    return 0.5 * z * z + math.log(mass), z + hazard, 1.0 - hazard * (z + hazard)


@kernel
def least_split(difference: float, deviation_i: float, deviation_j: float) -> float:
    """min over u of g(u / s_i) + g((difference - u) / s_j): the worst way to share the difference between two arms.

    Newton's method on a convex function, kept inside a bracket of its minimum.
    """
    low, high = -np.inf, np.inf
    variance_i, variance_j = deviation_i * deviation_i, deviation_j * deviation_j
    u = difference * variance_i / (variance_i + variance_j)
    value = 0.0
    for _ in range(100):
        value_i, slope_i, curve_i = half_normal_exponent(u / deviation_i)
        value_j, slope_j, curve_j = half_normal_exponent((difference - u) / deviation_j)
        value = value_i + value_j
        slope = slope_i / deviation_i - slope_j / deviation_j
        if slope > 0.0:
            high = u
        else:
            low = u
        step = -slope / (curve_i / variance_i + curve_j / variance_j)
        if abs(step) <= 1e-9 * (deviation_i + deviation_j):
            break  # at the minimum an error of the argument counts only squared
        u += step
        if not low < u < high:
            u = 0.5 * (low + high)
    return value


@kernel
def log_evidence_above(
    difference: float,
    n_i: float,
    n_j: float,
    sigma_i: float,
    sigma_j: float,
    rhos: FloatArray,
    log_weights: FloatArray,
) -> float:
    """Log e-value against "the mean of arm i is not above that of arm j", from means that differ by `difference`.

    With v_a = sigma_a^2 (n_a + rho) / n_a^2, summed over the scales rho with their weights:

        log w - 1/2 log((1 + n_i / rho)(1 + n_j / rho)) + min_u [g(u / sqrt(v_i)) + g((difference - u) / sqrt(v_j))]

    An arm without noise has no factor: all of the difference is the other's. `kernels/split.py` is thirty times faster.
    """
    if difference < 0.0 or n_i == 0.0 or n_j == 0.0:
        return -np.inf
    if sigma_i == 0.0 and sigma_j == 0.0:
        return np.inf if difference > 0.0 else -np.inf
    total = -np.inf
    for r in range(rhos.shape[0]):
        price = log_weights[r] - half_log(n_i, sigma_i, rhos[r]) - half_log(n_j, sigma_j, rhos[r])
        deviation_i = math.sqrt(variance_at(n_i, sigma_i, rhos[r]))
        deviation_j = math.sqrt(variance_at(n_j, sigma_j, rhos[r]))
        if deviation_i == 0.0 or deviation_j == 0.0:
            least = half_normal_exponent(difference / (deviation_i + deviation_j))[0]
        else:
            least = least_split(difference, deviation_i, deviation_j)
        total = log_sum(total, price + least)
    return total


@kernel
def variance_at(n: float, sigma: float, rho: float) -> float:
    """sigma^2 (n + rho) / n^2: what a squared deviation of a mean of n samples is measured by, at scale rho."""
    return sigma * sigma * (n + rho) / (n * n)


@kernel
def half_log(n: float, sigma: float, rho: float) -> float:
    """1/2 log(1 + n / rho): what an arm pays at scale rho; nothing where it has no noise."""
    return 0.5 * math.log(1.0 + n / rho) if sigma > 0.0 else 0.0


@kernel
def log_evidence_along(
    difference: float, a: float, b: float, sigma: float, rhos: FloatArray, log_prices: FloatArray
) -> float:
    """Log e-value of the linear model against "x_i^T theta is not above x_j^T theta", all pairs at once.

    With A = sum x x^T, z = x_i - x_j, a = z^T A^-1 z, b = z^T A^-2 z, and log_prices = log w - 1/2 log det(I + A/rho):
    the sum over the scales of exp(log_price + difference^2 / (2 sigma^2 (a + rho b))).
    """
    if difference <= 0.0:
        return -np.inf
    if sigma == 0.0:
        return np.inf
    half_square = 0.5 * difference * difference / (sigma * sigma)
    largest = -np.inf
    for r in range(rhos.shape[0]):
        largest = max(largest, log_prices[r] + half_square / (a + rhos[r] * b))
    if largest == np.inf:
        return np.inf
    total = 0.0
    for r in range(rhos.shape[0]):
        total += math.exp(log_prices[r] + half_square / (a + rhos[r] * b) - largest)
    return largest + math.log(total)


@kernel
def log_t_mixture(u: float, n: float, variance: float, rhos: FloatArray, log_weights: FloatArray) -> float:
    """Log e-value against "the mean is off by u", from n normal samples of unknown scale.

    With kappa = rho / (n + rho) and the variance about the sample mean (divided by n), summed over the scales:

        log w + 1/2 log kappa + n/2 log((variance + u^2) / (variance + kappa u^2))

    The likelihood ratio of a t-test with a normal prior on the effect size. It grows with |u|.
    """
    largest, total = -np.inf, 0.0
    for r in range(rhos.shape[0]):
        kappa = rhos[r] / (n + rhos[r])
        # where all samples are equal the ratio is 1 / kappa for any u but 0
        spread = variance + kappa * u * u
        ratio = (variance + u * u) / spread if spread > 0.0 else 1.0
        term = log_weights[r] + 0.5 * (math.log(kappa) + n * math.log(ratio))
        if term > largest:
            largest, total = term, total * math.exp(largest - term) + 1.0
        else:
            total += math.exp(term - largest)
    return largest + math.log(total)


@kernel
def note_value(seen: FloatArray, n_seen: IntArray, metric: int, value: float) -> bool:
    """Keep a value of a metric that is new; return whether by this one there are enough to look like normal noise."""
    n = n_seen[metric]
    if n > FEW_VALUES:
        return False
    for i in range(n):
        if seen[metric, i] == value:
            return False
    seen[metric, n] = value
    n_seen[metric] = n + 1
    return n == FEW_VALUES


@kernel
def log_surprise(log_product: float) -> float:
    """-log of the probability that the running maxima of two independent e-processes multiply to exp(log_product).

    Each maximum's log is at most a standard exponential variable; the sum of two exceeds c with (1 + c) exp(-c).
    """
    return log_product - math.log1p(log_product) if log_product > 0.0 else log_product


@kernel
def log_surprise_above(
    difference: float,
    n_i: float,
    variance_i: float,
    n_j: float,
    variance_j: float,
    rhos: FloatArray,
    log_weights: FloatArray,
) -> float:
    """-log p-value against "the mean of arm i is not above that of arm j", for normal noise of unknown scale.

    The worst way to share the difference between two t-mixtures. Their product has several minima: each cell
    [u, u + h] is bounded from below by E_i(u) E_j(difference - u - h), and cells that matter are cut once more. Not an
    e-value (the product is none under adaptive sampling): such values may not be added.
    """
    if difference <= 0.0 or n_i < 2.0 or n_j < 2.0:
        return -np.inf
    cells = 32
    h = difference / cells
    reached = np.inf  # the least value seen at a split, above the minimum
    for cell in range(cells + 1):
        at_i = log_t_mixture(cell * h, n_i, variance_i, rhos, log_weights)
        reached = min(reached, at_i + log_t_mixture(difference - cell * h, n_j, variance_j, rhos, log_weights))
    least = np.inf
    for cell in range(cells):
        at_i = log_t_mixture(cell * h, n_i, variance_i, rhos, log_weights)
        bound = at_i + log_t_mixture(difference - (cell + 1) * h, n_j, variance_j, rhos, log_weights)
        if bound >= reached:
            continue
        for part in range(cells):
            u = cell * h + part * h / cells
            at_i = log_t_mixture(u, n_i, variance_i, rhos, log_weights)
            bound = at_i + log_t_mixture(difference - u - h / cells, n_j, variance_j, rhos, log_weights)
            least = min(least, bound)
    return log_surprise(min(least, reached))


@kernel
def log_bernstein(
    u: float, n: float, spread: float, rates: FloatArray, log_weights: FloatArray
) -> tuple[float, float, float]:
    """Log e-value against "the mean is off by u", from n samples between 0 and 1; its first and second derivative.

    The sum over rates c of exp(log w + c n u - psi(c) spread), psi(c) = -log(1 - c) - c. u is what lies between the
    average of the samples and the mean in question, on one side (either will do); spread is the sum of their squared
    distances, each to the average before it. Convex in u.
    """
    largest = -np.inf
    for r in range(rates.shape[0]):
        largest = max(largest, log_weights[r] + rates[r] * n * u + (math.log1p(-rates[r]) + rates[r]) * spread)
    total, first, second = 0.0, 0.0, 0.0
    for r in range(rates.shape[0]):
        slope = rates[r] * n
        term = math.exp(log_weights[r] + slope * u + (math.log1p(-rates[r]) + rates[r]) * spread - largest)
        total += term
        first += term * slope
        second += term * slope * slope
    first /= total
    return largest + math.log(total), first, second / total - first * first


@kernel
def log_bernstein_above(
    difference: float,
    lowest_u: float,
    highest_u: float,
    n_i: float,
    spread_i: float,
    n_j: float,
    spread_j: float,
    rates: FloatArray,
    log_weights: FloatArray,
) -> float:
    """Log e-value against "the mean of arm i is not above that of arm j", for samples between 0 and 1 of any law.

    The least over u of log_bernstein(u) of arm i plus log_bernstein(difference - u) of arm j; the bounds on the mean of
    arm i leave u between `lowest_u` and `highest_u`. Newton's method on a convex function, kept inside a bracket.
    """
    if difference <= 0.0 or n_i == 0.0 or n_j == 0.0:
        return -np.inf
    low, high = lowest_u, highest_u
    u = min(max(0.5 * difference, low), high)
    value = 0.0
    for _ in range(100):
        value_i, slope_i, curve_i = log_bernstein(u, n_i, spread_i, rates, log_weights)
        value_j, slope_j, curve_j = log_bernstein(difference - u, n_j, spread_j, rates, log_weights)
        value = value_i + value_j
        slope = slope_i - slope_j
        if slope > 0.0:
            high = u
        else:
            low = u
        if abs(slope) * (high - low) <= 1e-7:
            break  # a convex function falls by no more than that before the end of the bracket
        u -= slope / max(curve_i + curve_j, 1e-300)
        if not low < u < high:
            u = 0.5 * (low + high)
    return value - abs(slope) * (high - low)
