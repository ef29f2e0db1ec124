"""Trade-offs: "1 ms <= 3 MB" bounds what a unit of one metric is worth in units of another.

Options are then judged by weighted sums of the metrics. The worths of the metrics that keep all trade-offs are a cone.
Each of its edges is a row of weights: larger is better in every metric, and the smallest weight of a row is 1. One
option beats another if it is ahead in every sum, which is to say: whatever the metrics are worth, within the bounds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from . import checks
from .errors import InvalidInput
from .kernels.arrays import FloatArray


class Part(Protocol):
    """What of a metric matters here."""

    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def sign(self) -> float: ...
    @property
    def relative(self) -> bool: ...


#: What trade-offs may be: texts such as "1 ms <= 3 MB", or a matrix of weights (sums, metrics).
Tradeoffs = str | Sequence[str] | Sequence[Sequence[float]] | FloatArray

#: Numbers in trade-offs are above its inverse, and below it: sums of values must have room.
LARGEST = checks.LARGEST
_SENSE = re.compile("<=|>=")
_SIDE = re.compile(r"([0-9.]++(?:[eE][+-]?[0-9]++)?)\s*+(%?)\s*+(.*)")
FORM = "'1 ms <= 3 MB' (saving a millisecond is worth at most saving three megabytes)"
#: Edges are looked for among so many choices of bounds, at most; and of fewer if there are many metrics in them.
MOST_CHOICES, MOST_WORK = 5_000, 50_000
#: Letters of a number: they are computed with exactly.
LONGEST_NUMBER = 50


def read(given: Any, of: str) -> tuple[str, ...] | FloatArray | None:
    """Return trade-offs as they are kept: texts, or a matrix; None: there are none."""
    if given is None or isinstance(given, np.ndarray):
        return None if given is None else checks.table(f"tradeoffs of {of}", given, "(sums, metrics)")
    given = [given] if isinstance(given, str) else given
    if not isinstance(given, Sequence):
        raise InvalidInput(f"tradeoffs of {of} must be texts such as {FORM}, or a matrix, got {checks.got(given)}")
    if all(isinstance(each, str) for each in given):
        for each in given:
            if len(each) > checks.LONGEST_TEXT:
                raise InvalidInput(
                    f"tradeoffs of {of} must have at most {checks.LONGEST_TEXT:,} letters each, got {checks.got(each)}"
                )
        return tuple(" ".join(each.split()) for each in given) or None
    return checks.table(f"tradeoffs of {of}", given, "(sums, metrics)")


def weights_of(tradeoffs: tuple[str, ...] | FloatArray, metrics: tuple[Part, ...], of: str) -> FloatArray:
    """Return the weights (R, L) of the sums by which options are judged; larger is better in every metric.

    >>> from paretoscout.statement import Metric
    >>> weights_of(("1 ms <= 3 MB",), (Metric("time", "min", unit="ms"), Metric("size", "min", unit="MB")), "a study")
    array([[3., 1.],
           [0., 1.]])
    """
    what = f"tradeoffs of {of}"
    if len(metrics) < 2:
        raise InvalidInput(f"{what} must be left out where there is but one metric")
    if isinstance(tradeoffs, tuple):
        weights = _edges(tradeoffs, metrics, what)
    else:
        weights = _of_matrix(tuple(map(tuple, tradeoffs.tolist())), len(metrics), what)
    largest = np.abs(weights).max(axis=0, initial=0.0)
    if not len(weights) or not largest.all() or np.linalg.matrix_rank(weights / largest) < len(metrics):
        raise InvalidInput(
            f"{what} must leave every metric some worth, and the worth of each in units of another some room: these "
            "contradict each other, or say exactly what a unit is worth (if so, let one metric be the sum)"
        )
    relative = np.array([metric.relative for metric in metrics])
    for row in weights:
        if len(set(relative[row != 0.0].tolist())) > 1:
            names = ", ".join(metric.name for metric, weight in zip(metrics, row, strict=True) if weight)
            raise InvalidInput(
                f"{what} must be between metrics that are compared alike: all by differences, or all by ratios (eps "
                f"in percent, scale='log'), got some of each among {names}"
            )
    return weights


def sums(weights: FloatArray, low: FloatArray, high: FloatArray | None = None) -> FloatArray:
    """Return weighted sums (..., R) of values (..., L); of intervals from low to high, their lower ends.

    What has no weight does not matter, known or not. Rounding is the same for one value and for many, and it keeps the
    order: sums of values within their bounds are within the bounds that this gives.
    """
    high = low if high is None else high
    total = np.zeros((*low.shape[:-1], len(weights)))
    for column in range(weights.shape[1]):
        weight = weights[:, column]
        ends = np.where(weight > 0.0, low[..., column, None], high[..., column, None])
        total += np.where(weight == 0.0, 0.0, weight) * np.where(weight == 0.0, 0.0, ends)
    return total


def undone(weights: FloatArray) -> FloatArray:
    """Return what makes metrics of sums (L, R): the inverse; where there are more sums, the least one."""
    rows, columns = weights.shape
    found = np.asarray(np.linalg.inv(weights) if rows == columns else np.linalg.pinv(weights), np.float64)
    return np.where(np.abs(found) <= 1e-14 * np.abs(found).max(axis=1, keepdims=True), 0.0, found)


def named(weights: FloatArray, metrics: Sequence[Part]) -> str:
    """Return a name of a sum by its weights: of ratios it is a product of powers.

    >>> from paretoscout.statement import Metric
    >>> named(np.array([3.0, 1.0]), [Metric("time", "min"), Metric("size", "min")])
    '3 time + size'
    >>> named(np.array([10.0, 1.0]), [Metric("quality"), Metric("cost", "min")])
    '10 quality - cost'
    >>> named(np.array([2.5, 1.0]), [Metric("time", "min", eps="1%"), Metric("size", "min", eps="1%")])
    'time^2.5 * size'
    """
    signed = (sign_of(weights, metrics) * weights * [metric.sign for metric in metrics]).tolist()
    terms: list[str] = []
    for metric, weight in zip(metrics, signed, strict=True):
        if weight == 0.0:
            continue
        size = f"{abs(weight):.4g}"
        if metric.relative:
            power = metric.name if size == "1" else f"{metric.name}^{size}"
            terms += [f"{' * ' if weight > 0 else ' / '}{power}" if terms else power if weight > 0 else f"1 / {power}"]
        else:
            part = metric.name if size == "1" else f"{size} {metric.name}"
            terms += [f"{' + ' if weight > 0 else ' - '}{part}" if terms else part if weight > 0 else f"-{part}"]
    return "".join(terms)


def judged_by(names: Sequence[str]) -> str:
    """Say by which sums options are judged.

    >>> judged_by(["3 time + size", "size"]), judged_by(["a", "b", "c"])
    ('judged by 3 time + size and by size', 'judged by a, by b and by c')
    """
    return f"judged by {', by '.join(names[:-1])} and by {names[-1]}"


def sign_of(weights: FloatArray, metrics: Sequence[Part]) -> float:
    """Return -1 if smaller is better in a sum as people read it: where that is so in all of its metrics; else 1."""
    signs = [
        metric.sign * math.copysign(1.0, weight) for metric, weight in zip(metrics, weights, strict=True) if weight
    ]
    return -1.0 if all(sign < 0 for sign in signs) else 1.0


@lru_cache(maxsize=64)
def _edges(texts: tuple[str, ...], metrics: tuple[Part, ...], what: str) -> FloatArray:
    """Return the edges of the cone of worths, exactly: each lies on as many bounds as it takes."""
    stated = [_bound(text, metrics, what) for text in texts]
    # what no trade-off names is an edge by itself
    inside = [column for column in range(len(metrics)) if any(bound[column] for bound in stated)]
    weights = np.eye(len(metrics))
    rows = [tuple(weights[column]) for column in range(len(metrics)) if column not in inside]
    for edge in _edges_of([[bound[column] for column in inside] for bound in stated], what):
        row = np.zeros(len(metrics))
        try:
            row[inside] = [float(each) for each in edge]
        except OverflowError:
            raise InvalidInput(f"{what} must differ less in size: their weights are beyond all numbers") from None
        rows.append(tuple(row))
    weights = np.array(sorted(rows, reverse=True)).reshape(-1, len(metrics))
    weights.flags.writeable = False
    return weights


def _edges_of(stated: list[list[Fraction]], what: str) -> list[tuple[Fraction, ...]]:
    """Return the edges of a cone of worths, each of which is also at least 0."""
    L = len(stated[0])
    bounds = [[Fraction(int(row == column)) for column in range(L)] for row in range(L)] + stated
    choices = math.comb(len(bounds), L - 1)
    if choices > MOST_CHOICES or choices * L * L > MOST_WORK:
        raise InvalidInput(f"{what} must be fewer, or a matrix of weights, got {len(stated)} between {L} metrics")
    found: dict[tuple[Fraction, ...], None] = {}
    for chosen in combinations(bounds, L - 1):
        edge = _null(chosen, L)
        for turned in () if edge is None else (edge, [-each for each in edge]):
            if all(sum(a * b for a, b in zip(bound, turned, strict=True)) >= 0 for bound in bounds):
                least = min(each for each in turned if each)
                found[tuple(each / least for each in turned)] = None
    return list(found)


def _bound(text: str, metrics: tuple[Part, ...], what: str) -> list[Fraction]:
    """Return what a trade-off says of worths: so many of each metric are worth 0 or more together."""
    for found in _SENSE.finditer(text):  # the name of a metric may hold one, too
        left, right = _SIDE.fullmatch(text[: found.start()].strip()), _SIDE.fullmatch(text[found.end() :].strip())
        if left and right:
            break
    else:
        raise InvalidInput(f"{what} must be written like {FORM}, got {checks.got(text)}")
    (number, percent, name), sense, (other, other_percent, other_name) = left.groups(), found[0], right.groups()
    small, much = (
        _amount(number, percent, name, metrics, what),
        _amount(other, other_percent, other_name, metrics, what),
    )
    if small[0] == much[0]:
        raise InvalidInput(
            f"{what} must be between two metrics, got {metrics[small[0]].name!r} twice in {checks.got(text)}"
        )
    if metrics[small[0]].relative != metrics[much[0]].relative:
        raise InvalidInput(
            f"{what} must be between metrics that are compared alike: both by differences, or both by ratios (eps in "
            f"percent, scale='log'), got one of each in {checks.got(text)}"
        )
    bound = [Fraction(0)] * len(metrics)
    side = 1 if sense == "<=" else -1
    bound[small[0]], bound[much[0]] = -side * small[1], side * much[1]
    return bound


def _amount(number: str, percent: str, name: str, metrics: tuple[Part, ...], what: str) -> tuple[int, Fraction]:
    """Return which metric is meant, and how much of it, on the scale on which it is compared."""
    if percent and not name:  # the unit of a metric, perhaps
        percent, name = "", "%"
    places = [k for k, metric in enumerate(metrics) if metric.name == name]
    places = places or [k for k, metric in enumerate(metrics) if metric.unit == name and name]
    if len(places) != 1:
        known = ", ".join(f"{metric.name} ({metric.unit})" if metric.unit else metric.name for metric in metrics)
        which = "none is called so" if not places else "several have that unit: write their names"
        raise InvalidInput(
            f"{what} must name metrics, by name or unit, got {checks.got(name)}: {which} (there are {known})"
        )
    metric = metrics[places[0]]
    try:
        # first: Fraction writes out every zero
        size = float(number) if len(number) <= LONGEST_NUMBER else 0.0
    except ValueError:
        size = 0.0
    if not 1 / LARGEST <= size <= LARGEST:
        raise InvalidInput(
            f"{what} must have numbers above 0, from {1 / LARGEST:g} to {LARGEST:g} and of at most {LONGEST_NUMBER} "
            f"letters, got {checks.got(number)} of {metric.name}"
        )
    amount = Fraction(number)
    if metric.relative != bool(percent):
        how = f"by ratios: write '1% {metric.name}'" if metric.relative else "by differences: write no percentage of it"
        raise InvalidInput(f"{what} must fit how {metric.name} is compared, {how}")
    return places[0], Fraction(math.log1p(float(amount) / 100.0)) if percent else amount


def _null(rows: Sequence[Sequence[Fraction]], n: int) -> list[Fraction] | None:
    """Return what is orthogonal to n - 1 rows; None: they are not independent."""
    matrix, pivots = [list(row) for row in rows], list[int]()
    for column in range(n):
        at = len(pivots)
        pivot = next((k for k in range(at, len(matrix)) if matrix[k][column]), None)
        if pivot is None:
            continue
        matrix[at], matrix[pivot] = matrix[pivot], matrix[at]
        matrix[at] = [each / matrix[at][column] for each in matrix[at]]
        for k in range(len(matrix)):
            if k != at and matrix[k][column]:
                matrix[k] = [each - matrix[k][column] * ours for each, ours in zip(matrix[k], matrix[at], strict=True)]
        pivots.append(column)
    if len(pivots) < n - 1:
        return None
    free = next(column for column in range(n) if column not in pivots)
    found = [Fraction(int(column == free)) for column in range(n)]
    for row, column in zip(matrix, pivots, strict=True):
        found[column] = -row[free]
    return found


@lru_cache(maxsize=64)
def _of_matrix(rows_given: tuple[tuple[float, ...], ...], n_metrics: int, what: str) -> FloatArray:
    """Return a matrix of weights, each row in units of its smallest weight, once."""
    matrix = np.array(rows_given)
    if matrix.shape[1] != n_metrics:
        raise InvalidInput(f"{what} must have a column for each of {n_metrics} metrics, got {matrix.shape[1]}")
    if not (matrix != 0.0).any(axis=1).all():
        raise InvalidInput(f"{what} must have a weight in every row, got a row of zeros")
    rows = [row / np.abs(row[row != 0.0]).min() for row in matrix]
    weights = np.array(list({tuple(row.tolist()): row for row in rows}.values())) + 0.0
    if (weights < 0.0).any():
        from scipy.optimize import linprog

        # as far ahead in every sum as can be, by being better in metrics, each by at most 1
        scaled = weights / np.abs(weights).max(axis=1, keepdims=True)
        best = linprog(
            [*([0.0] * n_metrics), -1.0],
            A_ub=np.column_stack([-scaled, np.ones(len(scaled))]),
            b_ub=np.zeros(len(scaled)),
            bounds=[(0.0, 1.0)] * n_metrics + [(None, None)],
        )
        if best.fun is None or -best.fun <= 1e-9:
            raise InvalidInput(
                f"{what} must let an option be ahead in every row by being better in metrics, got {matrix}"
            )
    return weights
