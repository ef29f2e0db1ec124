"""Rows of the kind that may be judged: runs that follow each other in a process may depend on each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from ..kernels.arrays import FloatArray

#: A series of at least twice this many runs is cut into batches: at least this many, and fewer than twice as many.
BATCHES = 40
#: With fewer rows of an option in a row dependence cannot be seen.
FEWEST_TESTED = 16
#: Dependence is found at this level, one-sided: 0.8416 is that quantile of a normal variable.
LEVEL, QUANTILE = 0.2, 0.8416212335729143
#: How far above its estimate the correlation may be, in standard errors; from MOST on the variance cannot be told.
ABOVE, MOST = 1.64, 0.5
#: What a row may be made of, where runs follow each other: see `Timed`.
ROWS = ("sessions", "processes", "batches", "runs")


class Run(NamedTuple):
    """One run: of which option, on which input, in which session and process, and what came out."""

    option: str
    on: str
    session: int
    process: str
    values: dict[str, float]


class Timed(NamedTuple):
    """Rows made of runs."""

    option: list[str]
    session: list[int]
    values: dict[str, list[float]]  # by metric; NaN: missing
    size: int  # how many runs are in a row, about
    alike: dict[str, float]  # by metric: upper bound of the correlation of rows in a row; 0: none was found


def usual_rows(runs: Sequence[Run]) -> str:
    """What a row is unless told: a session, if there are several; else a process; else a batch of one."""
    if len({run.session for run in runs}) > 1:
        return "sessions"
    processes: dict[tuple[str, str], set[str]] = {}
    for run in runs:
        processes.setdefault((run.option, run.on), set()).add(run.process)
    return "processes" if min(map(len, processes.values())) > 1 else "batches"


def rows_of(runs: Sequence[Run], rows: str, logs: Mapping[str, bool]) -> Timed:
    """Turn runs into rows.

    rows: one of ROWS. "sessions": the mean of all that an option did in a session. "processes": the mean of a process.
    "batches": means of runs in a row, stretched by what dependence takes away (`stretch`). "runs": each run.
    logs: the metrics; whether each is compared by ratios, so that its mean is the geometric one. On several inputs,
    the n-th row of an option is the mean of the n-th rows on all of them.
    """
    series: dict[tuple[str, int], dict[str, list[Run]]] = {}
    for run in runs:
        series.setdefault((run.option, run.session), {}).setdefault(run.on, []).append(run)
    said = Timed([], [], {name: [] for name in logs}, 1, {})
    size, means = 1, list[FloatArray]()
    for (option, session), on in series.items():
        tables = []
        for own in on.values():
            values = _compared(own, logs)
            if rows == "sessions":
                parts = [np.arange(len(own))]
            elif rows == "processes":
                process = np.array([run.process for run in own])
                parts = [np.flatnonzero(process == name) for name in dict.fromkeys(process.tolist())]
            elif rows == "batches":
                parts = list(np.array_split(np.arange(len(own)), batches(len(own))))
            else:
                parts = [np.array([place]) for place in range(len(own))]
            size = max(size, *map(len, parts))
            tables.append(np.array([_mean(values[part]) for part in parts]))
        n = min(map(len, tables))
        means.append(np.mean([table[:n] for table in tables], axis=0))
        said.option.extend([option] * n)
        said.session.extend([session] * n)
    for column, (name, by_ratios) in enumerate(logs.items()):
        theirs = [mean[:, column] for mean in means]
        if rows == "batches" and (found := dependence(theirs)) is not None:
            said.alike[name] = found
            theirs = [stretch(each, found) for each in theirs]
        for values_of in theirs:
            said.values[name].extend((np.exp(values_of) if by_ratios else values_of).tolist())
    return said._replace(size=size)


def batches(n: int) -> int:
    """Return into how many batches this many runs are cut.

    >>> batches(12), batches(79), batches(80), batches(15880)
    (12, 79, 40, 40)
    """
    return n // (n // BATCHES) if n >= 2 * BATCHES else n


def dependence(series: Sequence[FloatArray]) -> float | None:
    """Return an upper bound of the correlation of neighbours in series of one metric; 0.0 if none is found.

    None if every series is too short, or never varies. The correlation at lag 1 within series is pooled over all of
    them. It is found if it exceeds the quantile that independent normal values have at LEVEL.

    >>> rng = np.random.default_rng(0)
    >>> dependence([rng.normal(size=200), rng.normal(size=200)]), dependence([rng.normal(size=200).cumsum()]) > MOST
    (0.0, True)
    """
    correlations, weights, variances = [], list[int](), list[float]()
    for values in series:
        off = values[~np.isnan(values)]
        n = len(off)
        if n < FEWEST_TESTED or off.min() == off.max():
            continue
        off = off - off.mean()
        correlations.append(float(off[:-1] @ off[1:]) / float(off @ off))
        weights.append(n)
        variances.append(_variance(n))
    if not weights:
        return None
    total = sum(weights)
    expected = -len(weights) / total  # -1 / n for each series of independent values
    spread = math.sqrt(sum(n * n * variance for n, variance in zip(weights, variances, strict=True))) / total
    pooled = sum(n * each for n, each in zip(weights, correlations, strict=True)) / total
    if pooled <= expected + QUANTILE * spread:
        return 0.0
    return pooled - expected + ABOVE / math.sqrt(total)


def _variance(n: int) -> float:
    """Return the variance of the correlation at lag 1 of n independent normal values, about their mean."""
    trace, square = -(n - 1) / n, (n - 1) / 2 - (2 * n - 3) / n + (n - 1) ** 2 / n**2
    return (trace**2 + 2.0 * square) / ((n - 1) * (n + 1)) - 1.0 / n**2


def stretch(values: FloatArray, correlation: float) -> FloatArray:
    """Return values about the same mean with (1 + r) / (1 - r) times the variance, as neighbours that correlate need.

    >>> stretch(np.array([1.0, 3.0]), 0.6).tolist()
    [0.0, 4.0]
    """
    if correlation <= 0.0 or np.isnan(values).all():
        return values
    r = min(correlation, 0.99)
    mean = float(np.nanmean(values))
    return np.asarray(mean + math.sqrt((1.0 + r) / (1.0 - r)) * (values - mean))


def _compared(runs: Sequence[Run], logs: Mapping[str, bool]) -> FloatArray:
    """Return what runs gave, (runs, metrics), on the scales on which it is compared."""
    table = np.full((len(runs), len(logs)), np.nan)
    for row, run in enumerate(runs):
        for column, (name, by_ratios) in enumerate(logs.items()):
            value = run.values.get(name, math.nan)
            if by_ratios and value <= 0.0:
                raise InvalidInput(
                    f"{name} of {run.option} must be above 0 to be compared in percent, got {value:g}: give its eps as "
                    f"a number (--eps {name}=NUMBER)"
                )
            table[row, column] = math.log(value) if by_ratios else value
    return table


def _mean(values: FloatArray) -> FloatArray:
    """Return the mean of what is there, by column; a column that never varies keeps its number, to the last digit."""
    there = ~np.isnan(values)
    n = there.sum(axis=0)
    mean = np.where(there, values, 0.0).sum(axis=0) / np.maximum(n, 1)
    same = np.array([len(set(column[kept].tolist())) == 1 for column, kept in zip(values.T, there.T, strict=True)])
    first = np.array(
        [column[kept][0] if kept.any() else np.nan for column, kept in zip(values.T, there.T, strict=True)]
    )
    return np.where(n == 0, np.nan, np.where(same, first, mean))
