"""What contexts may tell beside the pilots: where arms seem to be, and how sure that is. It is no evidence.

A least-squares fit of the pilots by the contexts tells more of an arm than its one pilot, if the contexts mean
anything. Leads, champions and shares may go by it (`pilots.py`): whatever is worked out from pilots and contexts is a
constant for the proof. Where it does not predict pilots that it has not seen, or promises little, it is not used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ...kernels.arrays import BoolArray, FloatArray, IntArray
from ...kernels.compile import kernel

#: At most so many columns, and no more than this share of the first arms, ...
MOST_COLUMNS = 200
COLUMNS_PER_ARM = 0.25
#: ... and so many that arms times columns squared, which is the work of a fit, stays below this.
MOST_WORK = 2e8
#: Products and levels are not even tried where looking through them takes more work than this.
MOST_SEARCH = 2e9
#: A context with at most so many values may have an effect for each.
MOST_LEVELS = 20
#: A column that is as good as a sum of others says nothing new: what is left of it is below this share.
NOTHING_NEW = 1e-6
#: Standardised contexts of arms that come later are cut off here: nothing is known so far out.
FAR = 100.0
#: How often misfit and fit are worked out in turn, and how often the range of the misfit is halved.
TURNS, HALVINGS = 3, 60
#: Residuals that are off what the noise explains by so many standard errors: noise and misfit cannot be told apart.
BAND = 3.0
#: Where residuals are smaller than the noise explains, its variance is taken to be smaller too, by no more than this.
LEAST_NOISE = 0.01
#: The fit is used if its error on pilots that were left out is below this share of that of the mean of all, ...
GATE = 0.9
#: ... and if it promises variances below this share of those of the pilots.
WORTH = 0.5
#: Errors on pilots that are left out, squared and in units of the noise, differ by rounding alone if by so little.
NEGLIGIBLE = 1e-9
#: Of an arm's own pilot at most so much predicts itself where it is left out.
MOST_LEVERAGE = 0.99


class Guide(NamedTuple):
    """What pilots may be fitted by. Without contexts there are no columns."""

    design: FloatArray  # (K, P) each column at right angles to those before it, over the first arms; mean square 1
    sizes: IntArray  # (D,) how many of the columns each model has, least first


class Fit(NamedTuple):
    """Room to work out a fit in; 0 in between. Without columns there is none."""

    gram: FloatArray  # (P, P)
    along: FloatArray  # (P,) how the pilots go along with the columns
    row: FloatArray  # (P,)
    values: FloatArray  # (K,) the pilots, less one of them
    squares: FloatArray  # (K,) squared sigma; infinite for those that came later, whose weight is 0
    residuals: FloatArray  # (K,)
    leverages: FloatArray  # (K,) how much each pilot has to say in its own fit


def no_guide(K: int) -> Guide:
    """Return what leaves the pilots as they are."""
    return Guide(np.zeros((K, 0)), np.zeros(0, np.int64))


def guide_by(contexts: FloatArray, entered: IntArray) -> Guide:
    """Return the columns that are made of contexts: these, then their products, then an effect for each level.

    They are chosen and scaled by the arms there were at the beginning: whoever comes later changes nothing for these.
    """
    first = entered == 0
    n = int(np.count_nonzero(first))
    most = int(min(MOST_COLUMNS, COLUMNS_PER_ARM * n, math.sqrt(MOST_WORK / n)))
    standard = standardised(contexts, first)
    levels = [np.unique(column[first]) for column in standard.T]
    kept, sizes = np.ones((len(contexts), 1)), []
    n_levels = sum(len(values) for values in levels if len(values) <= MOST_LEVELS)
    d = len(levels)
    for n_tried, columns in (
        (d, iter(standard.T)),
        (d * (d + 1) // 2, products(standard, levels)),
        (n_levels, indicators(standard, levels)),
    ):
        if n_tried * n * most > MOST_SEARCH:
            continue
        larger = with_columns(kept, columns, slice(None) if first.all() else first, most)
        if larger is not None and larger.shape[1] > kept.shape[1]:
            kept = larger
            sizes.append(kept.shape[1])
        if not sizes:  # not even the contexts themselves
            return no_guide(len(contexts))
    return Guide(np.ascontiguousarray(kept), np.array(sizes, np.int64))


def standardised(contexts: FloatArray, first: BoolArray) -> FloatArray:
    """Return contexts with mean 0 and variance 1 over the first arms, without those in which these do not differ."""
    largest = np.abs(contexts).max(axis=0)
    scaled = contexts / np.where(largest > 0.0, largest, 1.0)  # squares of any number are finite now
    mean, deviation = scaled[first].mean(axis=0), scaled[first].std(axis=0)
    differs = deviation > 1e-12
    standard = (scaled[:, differs] - mean[differs]) / deviation[differs]
    standard[~first] = np.clip(standard[~first], -FAR, FAR)
    return np.asarray(standard, float)


def products(standard: FloatArray, levels: list[FloatArray]) -> Iterator[FloatArray]:
    """Yield the products of any two contexts; squares only of those with more than two values."""
    for i, j in zip(*np.triu_indices(len(levels)), strict=True):
        if i != j or len(levels[i]) > 2:
            yield standard[:, i] * standard[:, j]


def indicators(standard: FloatArray, levels: list[FloatArray]) -> Iterator[FloatArray]:
    """Yield, for each value of contexts with few of them, whether an arm has it."""
    for column, values in zip(standard.T, levels, strict=True):
        for value in values if len(values) <= MOST_LEVELS else ():
            yield (column == value).astype(float)


def with_columns(
    kept: FloatArray, columns: Iterable[FloatArray], first: slice | BoolArray, most: int
) -> FloatArray | None:
    """Return the columns with others that say something new; None: these are too many.

    Of each is kept what is at right angles to those before it, over the first arms, with mean square 1.
    """
    n = kept.shape[1]
    parts = np.empty((len(kept), max(most, n)))
    parts[:, :n] = kept
    of_first = parts[first]  # a copy only where there are others
    for column in columns:
        rest = column
        for _ in range(2):  # the second time takes away what rounding left
            rest = rest - parts[:, :n] @ (of_first[:, :n].T @ rest[first] / len(of_first))
        left = math.sqrt(np.mean(rest[first] ** 2))
        if left > NOTHING_NEW * math.sqrt(np.mean(column[first] ** 2)):
            if n >= most:
                return None
            parts[:, n] = rest / left
            of_first[:, n] = parts[first, n]
            n += 1
    return parts[:, :n].copy()


def room_for(guide: Guide) -> Fit:
    """Return the room that fits take."""
    K, P = guide.design.shape
    rows = K if P > 0 else 0
    return Fit(np.zeros((P, P)), np.zeros(P), np.zeros(P), *(np.zeros(rows) for _ in range(4)))


@kernel
def expect(
    guide: Guide,
    fit: Fit,
    first: FloatArray,
    sigma: FloatArray,
    spread: float,
    entered: IntArray,
    addition: int,
    metric: int,
    expected: FloatArray,
    variances: FloatArray,
) -> None:
    """Overwrite what is expected of arms that came with an addition, and its variance, if the contexts help.

    first (K, L): the pilots. spread: that of the pilots where sigma is unknown; else 0, and no arm has sigma 0. All
    arms that came no later are fitted.
    """
    n = take_pilots(fit, first, sigma, spread, entered, addition, metric)
    size = best_size(guide, fit)
    freedom = n - least_squares(guide.design, fit, 0.0, size)
    chi = squared_residuals(fit, 0.0) / freedom
    misfit = 0.0
    for _ in range(TURNS):
        misfit = misfit_of(fit, freedom)
        least_squares(guide.design, fit, misfit, size)
        if misfit == 0.0:
            break
    error = left_out_error(fit, misfit)
    least_squares(guide.design, fit, misfit, 1)
    error_of_mean = left_out_error(fit, misfit)
    least_squares(guide.design, fit, misfit, size)
    unclear = spread > 0.0 or abs(chi - 1.0) > BAND * math.sqrt(2.0 / freedom)
    promised = 0.0
    for k in range(entered.shape[0]):
        if entered[k] <= addition:
            promised += variance_by(fit, misfit, chi, unclear, k) / fit.squares[k]
    if error <= GATE * error_of_mean and promised <= WORTH * n:  # never where these are no numbers
        for k in range(entered.shape[0]):
            if entered[k] == addition:
                taken_for_noise = 1.0 - own_share(fit.squares[k], misfit, unclear)
                expected[k, metric] = first[k, metric] - taken_for_noise * fit.residuals[k]
                variances[k, metric] = variance_by(fit, misfit, chi, unclear, k)
    clear(fit)


@kernel
def take_pilots(
    fit: Fit, first: FloatArray, sigma: FloatArray, spread: float, entered: IntArray, addition: int, metric: int
) -> int:
    """Take the pilots of those that came no later, less that of one of them: large means cost no digits."""
    n, centre = 0, 0.0
    for k in range(entered.shape[0]):
        fit.values[k], fit.squares[k] = 0.0, np.inf
        if entered[k] <= addition:
            if n == 0:
                centre = first[k, metric]
            fit.values[k] = first[k, metric] - centre
            fit.squares[k] = spread**2 if spread > 0.0 else sigma[k, metric] ** 2
            n += 1
    return n


@kernel
def own_share(square: float, misfit: float, unclear: bool) -> float:
    """How much of an arm's residual is taken to be its own, not noise.

    Where noise and misfit cannot be told apart, at least a half: that is never far off, whichever it is.
    """
    share = misfit / (misfit + square)
    return max(0.5, share) if unclear else share


@kernel
def variance_by(fit: Fit, misfit: float, chi: float, unclear: bool, k: int) -> float:
    """The variance of what is expected of an arm."""
    own, noise = own_share(fit.squares[k], misfit, unclear), min(1.0, max(LEAST_NOISE, chi)) * fit.squares[k]
    return own * own * noise + (1.0 - own) ** 2 * (misfit + fit.leverages[k] * (noise + misfit))


@kernel
def best_size(guide: Guide, fit: Fit) -> int:
    """How many columns the model has that best predicts pilots which it has not seen."""
    size, least = guide.sizes[0], np.inf
    for i in range(guide.sizes.shape[0]):
        least_squares(guide.design, fit, 0.0, guide.sizes[i])
        error = left_out_error(fit, 0.0)
        if error + NEGLIGIBLE < least:  # of two that are perfect but for rounding the smaller one
            size, least = guide.sizes[i], error
    return size


@kernel
def least_squares(design: FloatArray, fit: Fit, misfit: float, size: int) -> int:
    """Fit the pilots by the first columns, each arm weighted by 1 / (sigma^2 + misfit). Return the rank."""
    sum_up(design, fit, misfit, size)
    rank = eliminate_columns(fit.gram, fit.along, size)
    for k in range(fit.values.shape[0]):
        fitted, leverage = 0.0, 0.0
        for i in range(size):
            fit.row[i] = design[k, i]
        for i in range(size):
            if fit.gram[i, i] > 0.0:
                part = fit.row[i] / fit.gram[i, i]
                fitted += part * fit.along[i]
                leverage += part * fit.row[i]
                for j in range(i + 1, size):
                    fit.row[j] -= part * fit.gram[i, j]
        fit.residuals[k] = fit.values[k] - fitted
        fit.leverages[k] = leverage / (fit.squares[k] + misfit)
    return rank


@kernel
def sum_up(design: FloatArray, fit: Fit, misfit: float, size: int) -> None:
    """The weighted products of the columns with one another, above the diagonal, and with the pilots."""
    for i in range(size):
        fit.along[i] = 0.0
        for j in range(i, size):
            fit.gram[i, j] = 0.0
    for k in range(fit.values.shape[0]):
        weight = 1.0 / (fit.squares[k] + misfit)
        for i in range(size):
            weighted = weight * design[k, i]
            fit.along[i] += weighted * fit.values[k]
            for j in range(i, size):
                fit.gram[i, j] += weighted * design[k, j]


@kernel
def eliminate_columns(gram: FloatArray, along: FloatArray, size: int) -> int:
    """Turn A = U^T D U into D U, and `along` into (U^T)^-1 of it. Return how many columns say something new."""
    rank, weights = 0, gram[0, 0]  # of all arms, as the first column is 1
    for i in range(size):
        pivot = gram[i, i]
        if pivot > NOTHING_NEW**2 * weights:
            rank += 1
            for j in range(i + 1, size):
                part = gram[i, j] / pivot
                along[j] -= part * along[i]
                for c in range(j, size):
                    gram[j, c] -= part * gram[i, c]
        else:
            gram[i, i] = 0.0
    return rank


@kernel
def left_out_error(fit: Fit, misfit: float) -> float:
    """By how much pilots are off what is fitted without them: squared, in units of noise and misfit, in all."""
    total = 0.0
    for k in range(fit.residuals.shape[0]):
        off = fit.residuals[k] / (1.0 - min(fit.leverages[k], MOST_LEVERAGE))
        total += off * off / (fit.squares[k] + misfit)
    return total


@kernel
def squared_residuals(fit: Fit, misfit: float) -> float:
    """In units of noise and misfit, in all."""
    total = 0.0
    for k in range(fit.residuals.shape[0]):
        total += fit.residuals[k] ** 2 / (fit.squares[k] + misfit)
    return total


@kernel
def misfit_of(fit: Fit, freedom: int) -> float:
    """With which variance of arms about the model residuals are as large as expected; 0 where noise explains all."""
    if squared_residuals(fit, 0.0) <= freedom:
        return 0.0
    low, high = 0.0, 0.0
    for k in range(fit.residuals.shape[0]):
        if fit.squares[k] < np.inf:
            high += fit.residuals[k] ** 2 / freedom  # without noise it would have to be this
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if squared_residuals(fit, middle) > freedom:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@kernel
def clear(fit: Fit) -> None:
    """Leave nothing behind: states are copied, compared and kept."""
    for i in range(fit.row.shape[0]):
        fit.row[i], fit.along[i] = 0.0, 0.0
        for j in range(fit.row.shape[0]):
            fit.gram[i, j] = 0.0
    for k in range(fit.values.shape[0]):
        fit.values[k], fit.squares[k], fit.residuals[k], fit.leverages[k] = 0.0, 0.0, 0.0, 0.0
