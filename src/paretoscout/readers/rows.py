"""Rows of the kind that may be judged: what came from one process in a row is not independent, so batches are taken."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from ..kernels.arrays import FloatArray

#: A long series is cut into so many batches, at least; one that is half as long again stays as it is.
BATCHES = 20
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
    factor: float | None  # how much more batch means vary than those of independent runs would, at most
    of: str  # of which option that is


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
    "batches": means of runs in a row. "runs": each run.
    logs: the metrics; whether each is compared by ratios, so that its mean is the geometric one. On several inputs,
    the n-th row of an option is the mean of the n-th rows on all of them.
    """
    series: dict[tuple[str, int], dict[str, list[Run]]] = {}
    for run in runs:
        series.setdefault((run.option, run.session), {}).setdefault(run.on, []).append(run)
    said = Timed([], [], {name: [] for name in logs}, 1, None, "")
    size, factor, of = 1, None, ""
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
                more = max([excess(values[:, column]) or 0.0 for column in range(len(logs))], default=0.0)
                if more > (factor or 0.0):
                    factor, of = more, option
            else:
                parts = [np.array([place]) for place in range(len(own))]
            size = max(size, *map(len, parts))
            tables.append(np.array([_mean(values[part]) for part in parts]))
        n = min(map(len, tables))
        mean = np.mean([table[:n] for table in tables], axis=0)
        said.option.extend([option] * n)
        said.session.extend([session] * n)
        for column, (name, by_ratios) in enumerate(logs.items()):
            said.values[name].extend((np.exp(mean[:, column]) if by_ratios else mean[:, column]).tolist())
    return said._replace(size=size, factor=factor, of=of)


def batches(n: int) -> int:
    """Return into how many batches so many runs are cut.

    >>> batches(12), batches(39), batches(40), batches(15880)
    (12, 39, 20, 20)
    """
    return n // (n // BATCHES) if n >= 2 * BATCHES else n


def excess(values: FloatArray) -> float | None:
    """Return by which factor means of batches vary more than they would if runs were independent; None: too few runs.

    >>> 0.3 < excess(np.random.default_rng(0).normal(size=20000)) < 3.0
    True
    >>> round(excess(np.random.default_rng(0).normal(size=2000).cumsum())) > 50
    True
    """
    known = values[~np.isnan(values)]
    if len(known) < 2 * BATCHES or (spread := float(known.var(ddof=1))) <= 0.0:
        return None
    size = len(known) // BATCHES
    means = known[: size * BATCHES].reshape(BATCHES, size).mean(axis=1)
    return size * float(means.var(ddof=1)) / spread


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
