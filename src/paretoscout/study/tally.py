"""What was measured of each arm, in numbers that are renewed one outcome at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..kernels.arrays import FloatArray, IntArray
from ..kernels.evidence import FEW_VALUES


@dataclass
class Tally:
    """How often each arm was measured in each column, with mean and squared deviations, of what counts by now.

    On the scales on which the columns are compared.
    """

    n: np.ndarray  # (A, C)
    mean: FloatArray  # (A, C)
    squares: FloatArray  # (A, C)
    seen: FloatArray  # (C, FEW_VALUES + 1) the first different numbers of each column; NaN: so many there were not

    @classmethod
    def empty(cls, n_arms: int, n_columns: int) -> Tally:
        """Nothing measured."""
        seen = np.full((n_columns, FEW_VALUES + 1), np.nan)
        mean, squares = np.zeros((2, n_arms, n_columns))
        return cls(np.zeros((n_arms, n_columns), np.int64), mean, squares, seen)

    def _see(self, column: int, values: FloatArray) -> None:
        seen = self.seen[column]
        for place in range(int((~np.isnan(seen)).sum()), len(seen)):
            values = values[~np.isin(values, seen[:place])]
            if not len(values):
                return
            seen[place] = values[0]

    def varied(self, column: int) -> bool:
        """Whether a column had more than a few different numbers."""
        return not np.isnan(self.seen[column, -1])

    def add(self, arm: int, values: Sequence[float]) -> None:
        """Take in an outcome; NaN is not measured."""
        for column, value in enumerate(values):
            if value == value:
                self.n[arm, column] += 1
                off = value - self.mean[arm, column]
                self.mean[arm, column] += off / self.n[arm, column]
                self.squares[arm, column] += off * (value - self.mean[arm, column])
                if not self.varied(column):
                    self._see(column, np.array([value]))

    def add_many(self, arms: IntArray, values: FloatArray) -> None:
        """Take in many outcomes (n, C) at once; NaN is not measured."""
        A = len(self.n)
        for column, given in enumerate(values.T):
            measured = ~np.isnan(given)
            arm, value = arms[measured], given[measured]
            self._see(column, value)
            more = np.bincount(arm, minlength=A)
            least = np.maximum(more, 1)
            mean = np.bincount(arm, value, A) / least
            squares = np.bincount(arm, (value - mean[arm]) ** 2, A)
            n = self.n[:, column]
            share = more / np.maximum(n + more, 1)
            off = np.where(more > 0, mean - self.mean[:, column], 0.0)
            self.squares[:, column] += squares + off * off * n * share
            self.mean[:, column] += off * share
            self.n[:, column] += more

    def copy(self) -> Tally:
        """Return it as it is now."""
        return Tally(self.n.copy(), self.mean.copy(), self.squares.copy(), self.seen.copy())

    def grow(self, n_arms: int) -> None:
        """Make room for more arms."""
        more = n_arms - len(self.n)
        self.n, self.mean, self.squares = (
            np.concatenate([array, np.zeros((more, array.shape[1]), array.dtype)])
            for array in (self.n, self.mean, self.squares)
        )
