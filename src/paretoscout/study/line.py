"""What is open and what waits for its turn, in the order of asking: kept as arrays, from event to event.

An algorithm is shown this after each event. To put it together anew from so many trials would take most of the time of
a study in which many outcomes wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels.arrays import BoolArray, FloatArray, IntArray

TABLE = -1  # in place of an arm: a table, which waits as a whole


class Line:
    """Trials and tables, by their numbers."""

    def __init__(self, n_columns: int) -> None:
        kind = [("number", np.int64), ("arm", np.int64), ("told", np.bool_), ("values", float, (n_columns,))]
        self._rows: Any = np.empty(64, kind)
        self._begin = self._end = 0

    def put(self, number: int, arm: int, values: Sequence[float | None] | None = None) -> None:
        """Let a trial or a table stand at its place, instead of what was there. values: None: it is open."""
        if self._end == len(self._rows):
            self._make_room()
        place = self._place(number)
        if place == self._end or self._rows["number"][place] != number:
            self._rows[place + 1 : self._end + 1] = self._rows[place : self._end]
            self._end += 1
        self._rows[place] = number, arm, values is not None, np.nan
        if values is not None:
            self._rows["values"][place] = values  # None becomes NaN

    def drop(self, number: int) -> None:
        """Let a trial or a table go."""
        place = self._place(number)
        if place == self._begin:
            self._begin += 1
        else:
            self._rows[place : self._end - 1] = self._rows[place + 1 : self._end]
            self._end -= 1

    def first(self, most: int) -> tuple[IntArray, IntArray, BoolArray, FloatArray]:
        """Return numbers, arms, whether each is told, and values (n, C) of the first trials, as far as a table."""
        rows = self._rows[self._begin : min(self._end, self._begin + most)]
        tables = np.flatnonzero(rows["arm"] == TABLE)
        rows = rows[: tables[0]] if len(tables) else rows
        return rows["number"].copy(), rows["arm"].copy(), rows["told"].copy(), rows["values"].copy()

    def _place(self, number: int) -> int:
        return self._begin + int(np.searchsorted(self._rows["number"][self._begin : self._end], number))

    def _make_room(self) -> None:
        rows = self._rows[self._begin : self._end]
        self._rows = np.empty(2 * len(rows) + 64, rows.dtype)
        self._rows[: len(rows)] = rows
        self._begin, self._end = 0, len(rows)
