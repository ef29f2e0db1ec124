"""Classical confidence widths: how far an estimate may lie from the truth, each with what it promises and why.

A width at a fixed n holds for one number of samples chosen beforehand; an anytime width holds for all n at once, and
so also where the data decide when to stop or whom to sample. Unless said otherwise a width is for the sample mean of
n >= 1 samples of one arm in one metric, two-sided, and wrong with probability at most alpha. Noise is sub-Gaussian at
scale sigma if E exp(u noise) <= exp(sigma^2 u^2 / 2) for all u, given the past: Gaussian with deviation sigma, or
values in an interval of length 2 sigma. Constants such as rho are fixed before the data are seen.
"""

from __future__ import annotations

import math

import numpy as np

from .arrays import FloatArray, IntArray
from .compile import kernel
from .evidence import half_normal_exponent

_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)

#: What `bernstein_update` keeps of one stream of values, in this order; a new stream is all zeros.
COUNT, SUM, SQUARES, BETS, WEIGHTED, COST = range(6)
BERNSTEIN_SIZE = 6


# One mean, noise of known scale


@kernel
def hoeffding(n: float, alpha: float, sigma: float) -> float:
    """sigma sqrt(2 log(2 / alpha) / n): holds at one fixed n.

    Assumes sub-Gaussian noise. Hoeffding 1963.
    """
    return sigma * math.sqrt(2.0 * math.log(2.0 / alpha) / n)


@kernel
def union_over_n(n: float, alpha: float, sigma: float) -> float:
    """sigma sqrt(2 log(pi^2 n^2 / (3 alpha)) / n): anytime.

    `hoeffding` with 6 alpha / (pi^2 n^2) spent on each n; these sum to alpha. Assumes sub-Gaussian noise.
    Even-Dar, Mannor, Mansour 2006, for the idea.
    """
    return sigma * math.sqrt(2.0 * math.log(math.pi * math.pi * n * n / (3.0 * alpha)) / n)


@kernel
def auer_box(n: float, delta: float, sigma: float, n_arms: int, n_metrics: int) -> float:
    """sigma sqrt(2 log(4 K L n^2 / delta) / n): anytime, for all K arms and L metrics together at level delta.

    The failures of all n sum to delta pi^2 / 12. Assumes sub-Gaussian noise. Auer, Chiang, Ortner, Drugan 2016.
    """
    return sigma * math.sqrt(2.0 * math.log(4.0 * n_arms * n_metrics * n * n / delta) / n)


@kernel
def normal_mixture(n: float, alpha: float, sigma: float, rho: float) -> float:
    """sigma / n sqrt((n + rho) (log(1 + n / rho) + 2 log(1 / alpha))): anytime.

    Narrowest, for its rho, around the n that `tuned_rho` takes. Assumes sub-Gaussian noise. Robbins 1970.
    """
    return sigma / n * math.sqrt((n + rho) * (math.log1p(n / rho) - 2.0 * math.log(alpha)))


@kernel
def tuned_rho(n: float, alpha: float) -> float:
    """The rho that makes `normal_mixture` all but narrowest at n samples: within 0.1 % of the best.

    Howard, Ramdas, McAuliffe, Sekhon 2021.
    """
    price = -2.0 * math.log(alpha)
    return n / (price + math.log1p(price))


@kernel
def one_sided_mixture(n: float, alpha: float, sigma: float, rho: float) -> float:
    """sigma sqrt(n + rho) z / n with g(z) = log(1 / alpha) + log(1 + n / rho) / 2: anytime, one-sided.

    The mean lies above its estimate by more than this with probability at most alpha, and so below it. g is that of
    `half_normal_exponent`. Assumes sub-Gaussian noise. Howard, Ramdas, McAuliffe, Sekhon 2021.
    """
    target = 0.5 * math.log1p(n / rho) - math.log(alpha)
    z = math.sqrt(2.0 * target)  # not below the root, since g(z) >= z^2 / 2; g is convex, so Newton stays above it
    for _ in range(50):
        value, slope, _curve = half_normal_exponent(z)
        step = (value - target) / slope
        z -= step
        if step <= 1e-14 * z:
            break
    return sigma * math.sqrt(n + rho) * z / n


@kernel
def log_against_share(share: float, ones: float, n: float, n_list: float) -> float:
    """Log evidence, from n outcomes of which some are 1, that the share of ones is another one.

    How much likelier the outcomes are under a mixture (Jeffreys' prior on the share) than under the share: an
    e-process, whatever the mixture. n_list: the outcomes are drawn from a list of this length without replacement, and
    their probability is hypergeometric. Infinite: they are independent. Krichevsky, Trofimov 1981; Waudby-Smith, Ramdas
    2020.
    """
    zeros = n - ones
    mixture = math.lgamma(ones + 0.5) + math.lgamma(zeros + 0.5) - math.lgamma(n + 1.0) - math.log(math.pi)
    if n_list == np.inf:
        if (ones > 0.0 and share <= 0.0) or (zeros > 0.0 and share >= 1.0):
            return np.inf
        of_ones = ones * math.log(share) if ones > 0.0 else 0.0
        return mixture - of_ones - (zeros * math.log1p(-share) if zeros > 0.0 else 0.0)
    in_list = round(share * n_list)
    out = n_list - in_list
    if in_list < ones or out < zeros:
        return np.inf
    stated = math.lgamma(in_list + 1.0) - math.lgamma(in_list - ones + 1.0)
    stated += math.lgamma(out + 1.0) - math.lgamma(out - zeros + 1.0)
    return mixture - stated + math.lgamma(n_list + 1.0) - math.lgamma(n_list - n + 1.0)


@kernel
def end_of_share(ones: float, n: float, n_list: float, alpha: float, upper: bool) -> float:
    """The end of an interval for the share of ones: anytime, wrong with probability at most alpha on both sides.

    Assumes outcomes that are 0 or 1, independent or drawn from a list, see `log_against_share`. Evidence against a
    share grows with its distance from the likeliest one, so bisection finds the end.
    """
    needed = -math.log(alpha)
    if n_list == np.inf:
        inside, outside = ones / n, 1.0 if upper else 0.0
        for _ in range(60):
            middle = 0.5 * (inside + outside)
            if log_against_share(middle, ones, n, n_list) < needed:
                inside = middle
            else:
                outside = middle
        return outside
    zeros = n - ones  # whole numbers of ones in the list: there are those that were seen, at least
    inside = min(max(float(round(ones / n * n_list)), ones), n_list - zeros)
    outside = n_list - zeros + 1.0 if upper else ones - 1.0
    while abs(outside - inside) > 1.0:
        middle = math.floor(0.5 * (inside + outside))
        if log_against_share(middle / n_list, ones, n, n_list) < needed:
            inside = middle
        else:
            outside = middle
    return inside / n_list


@kernel
def stitched(n: float, alpha: float, sigma: float, eta: float = 2.0, power: float = 1.4, first: float = 1.0) -> float:
    """Polynomial stitching: anytime, one-sided, of the order sqrt(log log n / n).

    sigma k sqrt(v l) / n with v = max(n, first), k = (eta^(1/4) + eta^(-1/4)) / sqrt(2) and
    l = power log log(eta v / first) + log(zeta(power) / (alpha log(eta)^power)); eta, power > 1. Assumes sub-Gaussian
    noise. Howard, Ramdas, McAuliffe, Sekhon 2021.
    """
    v = max(float(n), first)
    k = (eta**0.25 + eta**-0.25) * math.sqrt(0.5)
    log_eta = math.log(eta)
    level = power * math.log(math.log(eta * v / first) / log_eta) + math.log(zeta(power) / alpha)
    return sigma * k * math.sqrt(v * level) / n


@kernel
def ucb_alpha(n: float, delta: float, sigma: float) -> float:
    """sigma sqrt(2 log(3 log(n)^2 / delta) / n), n >= 2: anytime, one-sided, wrong with probability at most 1.5 delta.

    That is so for delta from 1e-12 to 1/2: a line below n times the width, from one n to another, is crossed with
    probability at most exp(-2 intercept slope), and a test adds these up over all n. With Gaussian noise and n up to
    2000, simulation finds 0.2 delta. A union over arms is not in it. Assumes sub-Gaussian noise. Degenne, Nedelec,
    Calauzènes, Perchet 2019.
    """
    log_n = math.log(n)
    return sigma * math.sqrt(2.0 * math.log(3.0 * log_n * log_n / delta) / n)


# Differences of two arms' means: their widths have one form, of which each arm's terms can be kept


@kernel
def pair_width(price: float, spent_i: float, spread_i: float, spent_j: float, spread_j: float) -> float:
    """sqrt((price + spent_i + spent_j) (spread_i + spread_j)), at noise scale 1.

    Where a sum over two means of n (estimate - mean)^2 is bounded, Cauchy-Schwarz bounds their difference so.
    """
    return math.sqrt((price + spent_i + spent_j) * (spread_i + spread_j))


# The mixture of Kaufmann and Koolen. Its price needs a minimisation but depends on the level alone: compute it once.


@kernel
def zeta(s: float) -> float:
    """Riemann's zeta function for s > 1, by the Euler-Maclaurin formula: exact but for rounding."""
    total = 0.0
    for k in range(1, 12):
        total += k**-s
    tail = 12.0**-s
    total += tail * (12.0 / (s - 1.0) + 0.5)
    # Bernoulli numbers B_2j / (2j)! times s (s + 1) ... (s + 2j - 2) / 12^(s + 2j - 1)
    term = tail * s / 12.0
    total += term / 12.0
    term *= (s + 1.0) * (s + 2.0) / 144.0
    total -= term / 720.0
    term *= (s + 3.0) * (s + 4.0) / 144.0
    total += term / 30240.0
    term *= (s + 5.0) * (s + 6.0) / 144.0
    total -= term / 1209600.0
    term *= (s + 7.0) * (s + 8.0) / 144.0
    total += term / 47900160.0
    return total


@kernel
def calibration_at(rate: float, x: float) -> float:
    """(g(rate) + x) / rate with g(r) = 2 r - 2 r log(4 r) + log zeta(2 r) - log(1 - r) / 2."""
    g = 2.0 * rate * (1.0 - math.log(4.0 * rate)) + math.log(zeta(2.0 * rate)) - 0.5 * math.log(1.0 - rate)
    return (g + x) / rate


@kernel
def calibration(x: float) -> float:
    """C_g(x), the least `calibration_at` for a rate between 1/2 and 1.

    Near x + log x, which is often put in its place, but larger than that for x below about 8. Kaufmann, Koolen 2021.
    """
    # golden section: g is convex, so (g + x) / rate falls and then rises
    low, high = 0.5, 1.0
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = calibration_at(left, x), calibration_at(right, x)
    for _ in range(50):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = calibration_at(left, x)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = calibration_at(right, x)
    return min(at_left, at_right)


@kernel
def kaufmann_koolen_price(alpha: float, n_means: int) -> float:
    """n_means C_g(log(1 / alpha) / n_means): what a joint statement on so many independent means costs.

    For all numbers of samples, with probability at least 1 - alpha: the sum over the means of
    n (estimate - mean)^2 / (2 sigma^2) - 2 log(4 + log n) is at most the price. Assumes Gaussian noise of deviation
    sigma, independent between the means. Kaufmann, Koolen 2021.
    """
    return n_means * calibration(-math.log(alpha) / n_means)


@kernel
def kaufmann_koolen(n: float, price: float, sigma: float) -> float:
    """sigma sqrt(2 (price + 2 log(4 + log n)) / n): anytime, with price = kaufmann_koolen_price(alpha, 1).

    Assumes Gaussian noise. Kaufmann, Koolen 2021.
    """
    return sigma * math.sqrt(2.0 * (price + 2.0 * math.log(4.0 + math.log(n))) / n)


@kernel
def kaufmann_koolen_terms(n: float) -> tuple[float, float]:
    """What `pair_width` takes of one arm, with twice the price, for `kaufmann_koolen_pair`."""
    return 4.0 * math.log(4.0 + math.log(n)), 1.0 / n


@kernel
def kaufmann_koolen_pair(n_i: float, n_j: float, price: float, sigma: float) -> float:
    """Width for the difference of two arms' means: anytime, with price = kaufmann_koolen_price(alpha, 2).

    sigma sqrt(2 (price + 2 log(4 + log n_i) + 2 log(4 + log n_j)) (1 / n_i + 1 / n_j)), for any rule of sampling.
    Assumes Gaussian noise, independent between the arms. Kaufmann, Koolen 2021; Kone, Kaufmann, Richert 2023 use it.
    """
    spent_i, spread_i = kaufmann_koolen_terms(n_i)
    spent_j, spread_j = kaufmann_koolen_terms(n_j)
    return sigma * pair_width(2.0 * price, spent_i, spread_i, spent_j, spread_j)


# Several means together


@kernel
def mixture_terms(n: float, rho: float) -> tuple[float, float]:
    """What `pair_width` takes of one arm, with price = -2 log(alpha), for `pair_mixture`."""
    return math.log1p(n / rho), (n + rho) / n / n


@kernel
def pair_mixture(n_i: float, n_j: float, alpha: float, sigma: float, rho: float) -> float:
    """Width for the difference of two arms' means in one metric: anytime, for any rule of sampling.

    sigma sqrt((2 log(1 / alpha) + log((1 + n_i / rho)(1 + n_j / rho))) ((n_i + rho) / n_i^2 + (n_j + rho) / n_j^2)).
    The product of the arms' mixtures is a supermartingale, since a sample changes one factor; Cauchy-Schwarz does the
    rest. Narrowest, where both have n samples, for rho = tuned_rho(n, sqrt(alpha)). Assumes sub-Gaussian noise.
    After Robbins 1970.
    """
    spent_i, spread_i = mixture_terms(n_i, rho)
    spent_j, spread_j = mixture_terms(n_j, rho)
    return sigma * pair_width(-2.0 * math.log(alpha), spent_i, spread_i, spent_j, spread_j)


@kernel
def ellipsoid(n: float, alpha: float, sigma: float, rho: float, n_metrics: int) -> float:
    """Radius for all metrics of one arm together, in the Euclidean norm: anytime.

    sigma / n sqrt((n + rho) (L log(1 + n / rho) + 2 log(1 / alpha))). Assumes a noise vector that is jointly
    sub-Gaussian with a matrix of at most sigma^2 I; with a known matrix, whiten and take sigma = 1. After Robbins 1970.
    """
    return sigma / n * math.sqrt((n + rho) * (n_metrics * math.log1p(n / rho) - 2.0 * math.log(alpha)))


@kernel
def karagozlu_ball(n: float, delta: float, n_arms: int, n_metrics: int) -> float:
    """sqrt(8 log(pi^2 (L + 1) K n^2 / (6 delta)) / n): radius for all metrics of an arm in the Euclidean norm, sigma 1.

    Meant as anytime, for all K arms together at level delta. It holds for up to three metrics, where the box of
    `auer_box` lies within the ball; with many metrics it is too small. Assumes sub-Gaussian noise.
    Karagözlü, Yıldırım, Ararat, Tekin 2024.
    """
    return math.sqrt(8.0 / n * math.log(math.pi * math.pi * (n_metrics + 1) * n_arms * n * n / (6.0 * delta)))


@kernel
def ball_around_box(n: float, delta: float, n_arms: int, n_metrics: int) -> float:
    """`karagozlu_ball`, or sqrt(L) times `auer_box` where that is larger: anytime, for all arms and metrics together.

    Assumes sub-Gaussian noise in each metric; metrics may be correlated in any way.
    """
    box = auer_box(n, delta, 1.0, n_arms, n_metrics)
    return max(karagozlu_ball(n, delta, n_arms, n_metrics), math.sqrt(n_metrics) * box)


# Linear model: outcome = x . theta + noise. Widths are for x . (estimate - theta); for a pair of arms take x_i - x_j.


@kernel
def fixed_design(a: float, alpha: float, sigma: float) -> float:
    """sigma sqrt(2 a log(2 / alpha)) with a = x^T A^-1 x, A the sum of x x^T: least squares at one x.

    Holds only if the samples behind A were all chosen before any of their outcomes was seen, as within a phase that
    starts its estimate afresh; where later samples depend on earlier outcomes it may fail at every alpha. For N
    directions take alpha / N. Assumes sub-Gaussian noise. Soare, Lazaric, Munos 2014.
    """
    return sigma * math.sqrt(2.0 * a * math.log(2.0 / alpha))


@kernel
def log_det_bound(n: float, dimension: int, ridge: float, longest: float) -> float:
    """d log(1 + n longest^2 / (d ridge)): at least log det(V / ridge) after n contexts of at most that length.

    For where the determinant is not tracked; holds always. Abbasi-Yadkori, Pál, Szepesvári 2011.
    """
    return dimension * math.log1p(n * longest * longest / (dimension * ridge))


@kernel
def ridge_radius(log_det: float, delta: float, sigma: float, n_metrics: int, ridge: float, norm_bound: float) -> float:
    """Radius of ridge regression: anytime, for all x and L metrics together at level delta, for any rule of sampling.

    |x . (estimate - theta)| <= sqrt(x^T V^-1 x) radius, with V = ridge I + sum of x x^T, log_det = log det(V / ridge),
    radius = sigma sqrt(2 log(L / delta) + log_det) + sqrt(ridge) norm_bound. Assumes sub-Gaussian noise and
    |theta| <= norm_bound in each metric. Abbasi-Yadkori, Pál, Szepesvári 2011.
    """
    return sigma * math.sqrt(2.0 * math.log(n_metrics / delta) + log_det) + math.sqrt(ridge) * norm_bound


@kernel
def joint_ridge_radius(
    log_det: float, delta: float, sigma: float, n_metrics: int, ridge: float, norm_bound: float
) -> float:
    """Radius of ridge regression for all metrics in one ellipsoid: anytime, for any rule of sampling.

    sqrt(trace(E^T V E)) <= radius for the errors E (d, L) of the estimate, V and log_det as in `ridge_radius`,
    radius = sigma sqrt(2 log(1 / delta) + L log_det) + sqrt(L ridge) norm_bound. Assumes a noise vector that is jointly
    sub-Gaussian with a matrix of at most sigma^2 I, and |theta| <= norm_bound in each metric.
    After Abbasi-Yadkori, Pál, Szepesvári 2011.
    """
    noise = sigma * math.sqrt(n_metrics * log_det - 2.0 * math.log(delta))
    return noise + math.sqrt(n_metrics * ridge) * norm_bound


@kernel
def least_squares(a: float, b: float, log_det: float, delta: float, sigma: float, rho: float, n_metrics: int) -> float:
    """Width of least squares at x without a bound on theta: anytime, for all x and L metrics together at level delta.

    sigma sqrt((a + rho b)(2 log(L / delta) + log_det)) with A the sum of x x^T, invertible, a = x^T A^-1 x,
    b = x^T A^-2 x, log_det = log det(I + A / rho). In one dimension it is `normal_mixture`. Assumes sub-Gaussian noise;
    any rule of sampling. After Abbasi-Yadkori, Pál, Szepesvári 2011.
    """
    return sigma * math.sqrt((a + rho * b) * (2.0 * math.log(n_metrics / delta) + log_det))


@kernel
def repeated_design(a: float, look: float, delta: float, sigma: float, n_arms: int) -> float:
    """sigma sqrt(2 a log(pi^2 n^2 K^2 / (3 delta))) along x - x' of two of K arms, or along one, at the n-th look.

    `fixed_design` with 6 delta / (pi^2 n^2 K^2) spent on each look n = 1, 2, ... and each of the K (K + 1) / 2
    directions: holds for all of them together at level delta. Whom to sample for a look is settled before any of its
    samples is seen. After Soare, Lazaric, Munos 2014.
    """
    return fixed_design(a, 6.0 * delta / (math.pi * math.pi * look * look * n_arms * n_arms), sigma)


@kernel
def soare_design(a: float, look: float, delta: float, sigma: float, n_arms: int) -> float:
    """2 sigma sqrt(2 a log(6 n^2 K^2 / (pi^2 delta))): as `repeated_design`, as published, about twice as wide.

    Soare, Lazaric, Munos 2014.
    """
    return sigma * math.sqrt(8.0 * a * math.log(6.0 * look * look * n_arms * n_arms / (math.pi**2 * delta)))


# Noise of unknown scale


@kernel
def t_mixture(n: float, alpha: float, deviation: float, rho: float) -> float:
    """Width from the sample deviation (squares divided by n): anytime, infinite while n is too small.

    deviation sqrt((n + rho) h / (n - (n + rho) h)) with h = 1 - (alpha^2 rho / (n + rho))^(1 / n). Assumes Gaussian
    noise of any scale, equal for all samples of the arm. (The deviation put into `normal_mixture` in place of sigma
    would promise nothing.) Lai 1976; Wang, Ramdas 2023.
    """
    h = -math.expm1((2.0 * math.log(alpha) - math.log1p(n / rho)) / n)
    left = n - (n + rho) * h
    return deviation * math.sqrt((n + rho) * h / left) if left > 0.0 else np.inf


@kernel
def bernstein_update(stream: FloatArray, x: float, alpha: float) -> None:
    """Take a value from [0, 1] into a stream (BERNSTEIN_SIZE,), for `bernstein_interval` at the same alpha.

    How much a value counts, its bet, is settled before it is seen. Waudby-Smith, Ramdas 2024.
    """
    i = stream[COUNT] + 1.0
    mean_before = (0.5 + stream[SUM]) / i
    variance_before = (0.25 + stream[SQUARES]) / i
    bet = min(0.5, math.sqrt(2.0 * math.log(2.0 / alpha) / (variance_before * i * math.log1p(i))))
    stream[COUNT] = i
    stream[SUM] += x
    miss = x - (0.5 + stream[SUM]) / (i + 1.0)
    stream[SQUARES] += miss * miss
    surprise = x - mean_before
    stream[BETS] += bet
    stream[WEIGHTED] += bet * x
    stream[COST] += surprise * surprise * (-math.log1p(-bet) - bet)


@kernel
def bernstein_interval(stream: FloatArray, alpha: float) -> tuple[float, float]:
    """Centre and radius for the mean of a stream: anytime, by predictable empirical Bernstein.

    The centre weighs the values by their bets: in general it is not the sample mean. Assumes values in [0, 1] with one
    mean given the past; nothing else. Waudby-Smith, Ramdas 2024.
    """
    if stream[COUNT] == 0.0:
        return 0.5, np.inf
    return stream[WEIGHTED] / stream[BETS], (math.log(2.0 / alpha) + stream[COST]) / stream[BETS]


@kernel
def audibert_bernstein(n: float, alpha: float, variance: float) -> float:
    """sqrt(2 variance log(3 / alpha) / n) + 3 log(3 / alpha) / n: holds at one fixed n.

    The variance is that of the sample, squares divided by n. Assumes independent values in [0, 1]. Anytime with
    6 alpha / (pi^2 n^2) for alpha. Audibert, Munos, Szepesvári 2009.
    """
    price = math.log(3.0 / alpha)
    return math.sqrt(2.0 * variance * price / n) + 3.0 * price / n


@kernel
def maurer_pontil(n: float, alpha: float, variance: float) -> float:
    """sqrt(2 variance log(4 / alpha) / n) + 7 log(4 / alpha) / (3 (n - 1)), n >= 2: holds at one fixed n.

    The variance is that of the sample, squares divided by n - 1. Assumes independent values in [0, 1]. Anytime with
    6 alpha / (pi^2 n^2) for alpha. Maurer, Pontil 2009, both sides at alpha / 2.
    """
    price = math.log(4.0 / alpha)
    return math.sqrt(2.0 * variance * price / n) + 7.0 * price / (3.0 * (n - 1.0))


# Thresholds of likelihood-ratio tests: return the empirical front once the statistic exceeds them


@kernel
def effective_count(n: float, rho: float) -> float:
    """n^2 / (n + rho): the number of samples that the statistics tested by the thresholds below count for n."""
    return n * (n / (n + rho))


@kernel
def glr_threshold(counts: IntArray, delta: float, rho: float, n_metrics: int) -> float:
    """log(1 / delta) + L / 2 sum over the arms of log(1 + n / rho): anytime, one event for everything.

    Its statistic: the least sum over the arms of effective count * |estimate - alternative|^2 / (2 sigma^2), among all
    alternatives with another front. Assumes noise that is jointly sub-Gaussian over the metrics with a matrix of at
    most sigma^2 I; any rule of sampling. The mixture of Robbins 1970 on all means.
    """
    total = 0.0
    for n in counts:
        total += math.log1p(n / rho)
    return 0.5 * n_metrics * total - math.log(delta)


@kernel
def glr_pair_threshold(n_i: float, n_j: float, delta: float, rho: float, n_arms: int, n_metrics: int) -> float:
    """log(K (K - 1) / delta) + L / 2 (log(1 + n_i / rho) + log(1 + n_j / rho)): anytime, all ordered pairs together.

    Its statistic: the sum over the metrics of max(0, estimate_i - estimate_j)^2 / (2 sigma^2), divided by the sum of
    1 / effective count of both. Assumptions as for `glr_threshold`.
    """
    pairs = n_arms * (n_arms - 1.0)
    return math.log(pairs / delta) + 0.5 * n_metrics * (math.log1p(n_i / rho) + math.log1p(n_j / rho))


@kernel
def kaufmann_koolen_threshold(counts: IntArray, price: float, n_metrics: int) -> float:
    """price + 2 L sum over the arms of log(4 + log n): anytime, with price = kaufmann_koolen_price(delta, K L).

    Its statistic is that of `glr_threshold` with the plain counts. Assumes Gaussian noise, independent between arms and
    metrics. Kaufmann, Koolen 2021.
    """
    total = 0.0
    for n in counts:
        total += math.log(4.0 + math.log(n))
    return price + 2.0 * n_metrics * total


@kernel
def garivier_kaufmann_threshold(t: float, delta: float) -> float:
    """log((1 + log t) / delta) after t samples in all: used in published experiments, promises nothing.

    Garivier, Kaufmann 2016.
    """
    return math.log((1.0 + math.log(t)) / delta)


@kernel
def crepon_threshold(t: float, delta: float) -> float:
    """log(1 / delta) + log log(1 + t) after t samples in all: used in published experiments, promises nothing.

    Crepon, Garivier, Koolen 2024.
    """
    return math.log(math.log1p(t)) - math.log(delta)
