"""Outcomes as they come in: a number for each column, checked before anything is changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..algorithms.contract import Accepts
from ..errors import InvalidInput, NotSupported, UnknownName
from ..kernels.arrays import FloatArray, IntArray
from ..statement import VOID
from .spec import StudySpec

#: What was told of a trial: a number for each column, None where it was not measured.
Row = list[float | None]

#: Outcomes beyond this are refused: their squares must be numbers too.
LARGEST = 1e100
#: Outcomes beyond this, in units of eps, are refused: their rounding alone would exceed it.
LARGEST_IN_EPS = 2.0**52


@dataclass(frozen=True)
class Below:
    """A value that is too small to be measured: at most so large."""

    value: float


class Rows:
    """What a study takes for an outcome."""

    def __init__(self, spec: StudySpec) -> None:
        self.spec, self.columns = spec, spec.columns
        self.metrics = spec.measured()
        # on the scale on which it is compared
        eps = [metric.tolerance or np.inf for metric in self.metrics]
        divisors = np.ones(len(eps))
        divisors[: len(spec.metrics)] = spec.asked.units.divisors
        self.most = np.minimum(LARGEST * divisors, LARGEST_IN_EPS * np.array(eps))
        self.relative = np.array([metric.relative for metric in self.metrics])
        self.success = None if spec.asked.on_failure == VOID else len(spec.metrics) - 1

    def read(self, values: Any, where: str) -> tuple[Row, list[str]]:
        """Return the numbers of an outcome, and the columns of which only an upper bound is known."""
        if not isinstance(values, Mapping):
            raise InvalidInput(f"{where} must be {{metric: number}}, got {checks.got(values)}")
        for name in values:
            if name not in self.columns:
                raise UnknownName(f"metric in {where}:", name, self.columns)
        plain = {name: value.value if isinstance(value, Below) else value for name, value in values.items()}
        below = [name for name in self.columns if isinstance(values.get(name), Below)]
        if below and self.spec.asked.tradeoffs is not None:
            raise InvalidInput(f"{below[0]!r} in {where} must be a number where there are tradeoffs, got Below")
        for metric in self.spec.metrics:  # an algorithm takes a bound for a value; practical verdicts see to that
            if metric.name in below and (metric.direction == "max" or not self.spec.practical):
                raise InvalidInput(
                    f"{metric.name!r} in {where} must be a number, got Below: that is for metrics where smaller is "
                    "better, in a study with goal='practical'"
                )
        row = [
            None if plain.get(name) is None else checks.number(f"{name!r} in {where}", plain[name])
            for name in self.columns
        ]
        if self.success is not None and row[self.success] is None:
            row[self.success] = 1.0  # what has an outcome did not fail
        return row, below

    def check(
        self, row: Sequence[float | None], where: str, accepts: Accepts, whole: Row | None = None, more: bool = False
    ) -> None:
        """Refuse what the algorithm cannot take. whole: the row with what was told before; more: is to come."""
        L = len(self.spec.metrics)
        missing = [name for name, value in zip(self.columns, whole or row, strict=True) if value is None]
        if len(missing) == len(row):
            least = "" if len(missing) == 1 else "at least one of "
            raise InvalidInput(f"{where} must have {least}{', '.join(missing)}, got none")
        lacks = [name for name in missing if name in self.columns[:L]]
        if lacks and not more and not accepts.missing:
            raise NotSupported(
                f"{where} lacks {', '.join(lacks)}: algorithm {self.spec.algorithm!r} needs every metric of a sample"
            )
        for metric, most, value in zip(self.metrics, self.most.tolist(), row, strict=True):
            if value is None:
                continue
            if metric.relative and value <= 0:
                raise InvalidInput(
                    f"{metric.name!r} in {where} must be above 0 to be compared in percent, got {value:g}"
                )
            if not abs(value if not metric.relative else float(np.log(value))) <= most:
                why = " (its rounding alone exceeds eps: subtract what all have in common)" if most < LARGEST else ""
                raise InvalidInput(f"{metric.name!r} in {where} must be at most {most:g} in size, got {value:g}{why}")
        for metric, value in zip(self.metrics, row, strict=True):
            if value is not None and metric.bounds is not None and not metric.bounds[0] <= value <= metric.bounds[1]:
                low, high = metric.bounds
                raise InvalidInput(f"{metric.name!r} in {where} must be from {low:g} to {high:g}, got {value:g}")
            if value is not None and metric.pass_fail and value not in (0.0, 1.0):
                raise InvalidInput(
                    f"{metric.name!r} in {where} must be 0 or 1, because its kind is 'pass/fail', got {value:g}: a "
                    "score between needs no kind, but bounds=(0, 1)"
                )

    def check_table(
        self, rows: Sequence[Sequence[float | None]], accepts: Accepts, called: Callable[[int], str]
    ) -> None:
        """Refuse a table in which a row is wrong; only rows that are out of the ordinary are looked at one by one.

        called: what to call a row.
        """
        values = as_array(rows)
        low, high = -self.most, self.most.copy()
        for position, metric in enumerate(self.metrics):
            if metric.relative:
                low[position], high[position] = 1e-100, LARGEST
            if metric.bounds is not None:
                low[position], high[position] = metric.bounds
        ordinary = ((values >= low) & (values <= high)).all(axis=1)
        binary = [metric.pass_fail for metric in self.metrics]
        ordinary &= np.isin(values[:, binary], (0.0, 1.0)).all(axis=1)
        for k in np.flatnonzero(~ordinary).tolist():
            self.check(rows[k], called(k), accepts)


def completed(told: Sequence[float | None] | None, values: Sequence[float | None]) -> Row:
    """Return what was told of a trial, with what was missing in it."""
    return [new if old is None else old for old, new in zip(told or [None] * len(values), values, strict=True)]


def as_array(rows: Sequence[Sequence[float | None]]) -> FloatArray:
    """Return rows of outcomes as an array; None becomes NaN."""
    return np.array(rows, float)


def drawn_order(names: Sequence[str], values: FloatArray) -> IntArray:
    """Return a random order of the rows of a table (n, C), drawn from a digest of the sorted rows.

    A table may be sorted by outcome, so rows may not count in the order of the file. The order depends on what is in
    the table alone: no seed and no other order of the same rows changes a verdict.

    >>> names, values = ["b", "a", "a"], np.array([[1.0], [3.0], [2.0]])
    >>> one, other = drawn_order(names, values), drawn_order(names[::-1], values[::-1])
    >>> values[one].tolist() == values[::-1][other].tolist()
    True
    """
    known = sorted(set(names))
    place = {name: k for k, name in enumerate(known)}
    which = np.array([place[name] for name in names], np.int64)
    plain = np.where(np.isnan(values), np.nan, values + 0.0)  # one way to write NaN, and one to write 0
    rows = np.lexsort([*plain.T[::-1], which])
    digest = hashlib.sha256("\n".join(known).encode("utf-8", "surrogatepass"))
    digest.update(which[rows].astype("<i8").tobytes())
    digest.update(np.ascontiguousarray(plain[rows], "<f8").tobytes())
    seed = int.from_bytes(digest.digest(), "little")
    return np.asarray(rows[np.random.default_rng(seed).permutation(len(rows))])
