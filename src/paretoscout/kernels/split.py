"""The worst way to share a difference between two arms, from a table: what scout asks most often.

With V = v_i + v_j, z = D / sqrt(V) and x = |log(s_i / s_j)| (s the roots of v) the minimum that the e-value of a pair
asks for is

    min_u [g(u / s_i) + g((D - u) / s_j)] = z^2 / 2 + psi(z, x),

and psi depends on nothing else. It rises with z, is concave in z, and falls with x. So bilinear interpolation in a
table is below psi, but for the curvature in x between two columns, for which MARGIN is taken off.
`tools/certify_split.py` proves that MARGIN is enough. A table that is too low makes evidence too small: later, never
wrong.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from .arrays import FloatArray
from .compile import kernel, short_kernel
from .evidence import least_split

#: The grid of the table.
PER_UNIT = 10.0
LARGEST_Z, LARGEST_X = 24.0, 9.0
N_Z, N_X = round(LARGEST_Z * PER_UNIT) + 1, round(LARGEST_X * PER_UNIT) + 1
#: What interpolation may be above psi, and more: 2.5e-5 is proven.
MARGIN = 3e-5
#: For so many samples of an arm prices and variances are kept, for all metrics together; of more they are worked out.
#: One metric has as many as are of use, and a hundred of them take 1 MB, too.
N_COUNTS, ALL_COUNTS = 4096, 3 * 4096
#: Terms that are smaller than the largest by this factor's log are left out: a smaller sum is valid.
NEGLIGIBLE = 12.0
LOG_4 = math.log(4.0)


@kernel
def excess(z: float, x: float) -> float:
    """psi: what the least split is worth above z^2 / 2."""
    s_i = 1.0 / math.sqrt(1.0 + math.exp(-2.0 * x))
    return least_split(z, s_i, s_i * math.exp(-x)) - 0.5 * z * z


@kernel
def fill_table(table: FloatArray) -> None:
    """Write psi at all points of the grid."""
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            table[row, column] = excess(row / PER_UNIT, column / PER_UNIT)


@cache
def split_table() -> FloatArray:
    """Return psi on its grid (N_Z, N_X)."""
    table = np.empty((N_Z, N_X))
    fill_table(table)
    return table


@short_kernel
def least_excess(table: FloatArray, z: float, x: float) -> float:
    """A lower bound on psi, less than 0.003 below it; beyond the largest z, which psi rises with, that of the edge."""
    if x >= LARGEST_X:
        return excess(min(z, LARGEST_Z), x) - MARGIN
    place = min(z, LARGEST_Z) * PER_UNIT
    row = min(int(place), N_Z - 2)
    along = place - row
    place = x * PER_UNIT
    column = int(place)
    across = place - column
    low = table[row, column] + across * (table[row, column + 1] - table[row, column])
    high = table[row + 1, column] + across * (table[row + 1, column + 1] - table[row + 1, column])
    return low + along * (high - low) - MARGIN


def prices_by_count(rhos: FloatArray) -> FloatArray:
    """(N, L, R, 3): of n samples, for each scale rho, what `price_of`, `spread_of` and its log, halved, are."""
    n = np.arange(max(1, min(N_COUNTS, ALL_COUNTS // len(rhos))), dtype=float)[:, None, None]
    with np.errstate(divide="ignore"):
        spread = (n + rhos) / (n * n)
        return np.ascontiguousarray(np.stack([0.5 * np.log1p(n / rhos), spread, 0.5 * np.log(spread)], axis=-1))


@short_kernel
def price_of(by_count: FloatArray, rhos: FloatArray, n: float, metric: int, r: int) -> float:
    """1/2 log(1 + n / rho): what an arm with n samples pays at scale r."""
    if n < by_count.shape[0]:
        return by_count[int(n), metric, r, 0]
    return 0.5 * math.log1p(n / rhos[metric, r])


@short_kernel
def spread_of(by_count: FloatArray, rhos: FloatArray, n: float, metric: int, r: int) -> float:
    """(n + rho) / n^2: what a squared deviation of a mean of n samples is measured by, in units of sigma^2."""
    if n < by_count.shape[0]:
        return by_count[int(n), metric, r, 1]
    return (n + rhos[metric, r]) / (n * n)


@short_kernel
def half_log_spread(by_count: FloatArray, rhos: FloatArray, n: float, metric: int, r: int) -> float:
    """1/2 log of `spread_of`."""
    if n < by_count.shape[0]:
        return by_count[int(n), metric, r, 2]
    return 0.5 * math.log((n + rhos[metric, r]) / (n * n))


@kernel
def log_evidence_by_table(
    difference: float,
    n_i: float,
    n_j: float,
    sigma_i: float,
    sigma_j: float,
    metric: int,
    rhos: FloatArray,
    log_weights: FloatArray,
    by_count: FloatArray,
    table: FloatArray,
) -> float:
    """`log_evidence_above` of two arms with noise, or a little less: at most 0.003, at a thirtieth of the time."""
    variance_i, variance_j = sigma_i * sigma_i, sigma_j * sigma_j
    apart = math.log(sigma_i / sigma_j) if sigma_i != sigma_j else 0.0
    largest, total = -np.inf, 0.0
    for r in range(rhos.shape[1]):
        price = price_of(by_count, rhos, n_i, metric, r) + price_of(by_count, rhos, n_j, metric, r)
        spread_i, spread_j = spread_of(by_count, rhos, n_i, metric, r), spread_of(by_count, rhos, n_j, metric, r)
        square = difference * difference / (variance_i * spread_i + variance_j * spread_j)
        term = log_weights[r] - price + 0.5 * square
        if term + LOG_4 <= largest - NEGLIGIBLE:
            continue  # whatever psi is: it is below log 4
        x = half_log_spread(by_count, rhos, n_i, metric, r) - half_log_spread(by_count, rhos, n_j, metric, r) + apart
        term += least_excess(table, math.sqrt(square), abs(x))
        if term > largest:
            total = 1.0 + (total * math.exp(largest - term) if largest > term - NEGLIGIBLE else 0.0)
            largest = term
        elif term > largest - NEGLIGIBLE:
            total += math.exp(term - largest)
    return largest + math.log(total) if total > 1.0 else largest
