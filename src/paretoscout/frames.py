"""Tables from outside: pandas, polars and pyarrow frames, dicts of columns, CSV files; and tables for outside."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np

from . import checks
from .errors import InvalidInput, MissingExtra, UnknownName
from .kernels.arrays import FloatArray
from .shown import of_cell


def read_csv(path: str | Path | Traversable) -> dict[str, list[str]]:
    """Read a CSV file with a header into a dict of columns, ready for `table`. Blank lines are skipped."""
    source = Path(path) if isinstance(path, str) else path
    try:
        text = source.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InvalidInput(f"no such file: {path}") from None
    except (OSError, ValueError) as problem:  # ValueError: not UTF-8, or a NUL in the path
        raise InvalidInput(f"{path} must be a CSV file in UTF-8, but: {problem}") from None
    return parse_csv(text, str(path))


def parse_csv(text: str, path: str) -> dict[str, list[str]]:
    """Do the same with a text; `path` is what to call it."""
    try:
        lines = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
        rows = [[of_cell(cell) for cell in row] for row in lines if row]
    except csv.Error as problem:
        raise InvalidInput(f"{path} must be a CSV file, but: {problem}") from None
    if len(rows) < 2:
        raise InvalidInput(f"{path} must have a header and at least one row, got {len(rows)} lines")
    header = rows[0]
    for column in header:
        if header.count(column) > 1:
            raise InvalidInput(f"columns of {path} must have different names, got {column!r} twice")
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(header):
            raise InvalidInput(f"row {number} of {path} must have {len(header)} fields, got {len(row)}")
    return {column: [row[position] for row in rows[1:]] for position, column in enumerate(header)}


class Columns:
    """The columns of a pandas, polars or pyarrow table, or of a dict."""

    def __init__(self, frame: Any, where: str) -> None:
        # pyarrow tables spell it column_names; iterating a dict gives its keys
        names = getattr(frame, "column_names", None) or getattr(frame, "columns", frame)
        if isinstance(frame, str) or not hasattr(names, "__iter__") or not hasattr(frame, "__getitem__"):
            raise InvalidInput(f"frame of {where} must be a table or a dict of columns, got {frame!r}")
        self.frame, self.where = frame, where
        self.names = list(names)
        self.n_rows = 0

    def _column(self, name: str) -> Any:
        if self.names.count(name) != 1:
            if name in self.names:
                raise InvalidInput(f"column {name!r} of {self.where} must be there once, got it twice")
            raise UnknownName(f"column of {self.where}", name, map(str, self.names))
        values = np.asarray(self.frame[name])
        if values.ndim != 1:
            raise InvalidInput(f"column {name!r} of {self.where} must be a list of values, got {self.frame[name]!r}")
        self.n_rows = self.n_rows or len(values)
        if len(values) != self.n_rows or not self.n_rows:
            raise InvalidInput(
                f"columns of {self.where} must be equally long and not empty, "
                f"but {name!r} has {len(values)} rows and another {self.n_rows}"
            )
        return values

    def labels(self, name: str) -> list[str]:
        """The names of the arms, row by row."""
        values = self._column(name)
        for row, value in enumerate(values):
            if _is_missing(value):
                raise InvalidInput(
                    f"column {name!r} of {self.where} must name an arm in every row, got {value!r} in row {row}"
                )
        try:
            return [str(value) for value in values]
        except ValueError as problem:  # Python does not write out whole numbers of more than 4300 digits
            raise InvalidInput(f"column {name!r} of {self.where} must hold names, but: {problem}") from None

    def numbers(self, name: str) -> FloatArray:
        """A column of finite numbers; texts that spell numbers will do."""
        values = self._column(name)
        what = f"column {name!r} of {self.where}"
        if values.dtype.kind in "US" or (values.dtype == object and isinstance(values[0], str)):
            try:
                values = values.astype(float)
            except ValueError as problem:
                raise InvalidInput(f"{what} must hold numbers, but: {problem}") from None
        return checks.finite(what, checks.floats(what, values))

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers, or texts that all spell one."""
        values = self._column(name)
        if values.dtype.kind in "biuf":
            return True
        try:
            [float(value) for value in values]
        except (TypeError, ValueError, OverflowError):
            return False
        return True

    def numbers_or_none(self, name: str) -> list[float | None]:
        """A column of finite numbers in which some may be missing: empty, None or NaN."""
        values, what = self._column(name), f"column {name!r} of {self.where}"
        if values.dtype.kind in "biuf":
            numbers = values.astype(float)
        else:
            numbers = np.full(len(values), np.nan)
            for row, value in enumerate(values):
                try:
                    numbers[row] = np.nan if _is_missing(value) else float(value)
                except OverflowError:  # a whole number that is larger than any float
                    raise InvalidInput(f"{what} must be finite, got {checks.got(value)} in row {row}") from None
                except (TypeError, ValueError):
                    raise InvalidInput(f"{what} must hold numbers, got {checks.got(str(value))} in row {row}") from None
        infinite = np.isinf(numbers)
        if infinite.any():
            row = int(infinite.argmax())
            raise InvalidInput(f"{what} must be finite, got {values[row]} in row {row}")
        return [None if number != number else number for number in numbers.tolist()]


def _is_missing(value: Any) -> bool:
    """Whether a cell is empty: None, NaN, a blank text, or pandas' NA, which cannot be compared with anything."""
    if isinstance(value, (float, np.floating)):
        return bool(value != value)
    return value is None or (not isinstance(value, int) and str(value).strip() in ("", "<NA>", "NaT"))


#: How to make a frame of a dict of columns, by the package it comes from.
MAKERS = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


def frame_of(columns: Mapping[str, Sequence[Any]], package: str | None = None) -> Any:
    """Return columns as a frame of a package; None: of the first that is installed of pandas, polars, pyarrow."""
    if package is not None and package not in MAKERS:
        raise InvalidInput(f"package of a frame must be one of {', '.join(MAKERS)}, got {package!r}")
    for name in [package] if package else MAKERS:
        try:
            return getattr(import_module(name), MAKERS[name])(dict(columns))
        except ImportError:
            continue
    raise MissingExtra("a frame", "frames")
