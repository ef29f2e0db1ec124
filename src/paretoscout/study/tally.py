"""What was measured of each arm, in numbers that are renewed one outcome at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..kernels.arrays import FloatArray, IntArray
from ..laws import FEW_VALUES


@dataclass
class Tally:
    """How often each arm was measured in each column, with mean and squared deviations, of what counts by now.

    And of all that was told, also of what does not count yet: how many numbers there were, and which, while they are
    few. On the scales on which the columns are compared.
    """

    n: np.ndarray  # (A, C)
    mean: FloatArray  # (A, C)
    squares: FloatArray  # (A, C)
    paced: FloatArray  # (A, C) of a list: what each value, with what those before leave to be expected, sums up to
    told: IntArray  # (C,) how many numbers were told
    seen: FloatArray  # (C, FEW_VALUES + 1) the first different numbers of each column; NaN: so many there were not

    @classmethod
    def empty(cls, n_arms: int, n_columns: int) -> Tally:
        """Nothing measured."""
        seen = np.full((n_columns, FEW_VALUES + 1), np.nan)
        mean, squares, paced = np.zeros((3, n_arms, n_columns))
        n, told = np.zeros((n_arms, n_columns), np.int64), np.zeros(n_columns, np.int64)
        return cls(n, mean, squares, paced, told, seen)

    def see(self, values: FloatArray) -> None:
        """Take note of outcomes (n, C) that were told; NaN is not measured."""
        for column, given in enumerate(values.T):
            measured = given[~np.isnan(given)]
            self.told[column] += len(measured)
            if not self.varied(column):
                self._see(column, measured)

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

    def different(self, column: int) -> int:
        """How many different numbers a column had; one more than a few stands for all that are more."""
        return int((~np.isnan(self.seen[column])).sum())

    def of_both(self, column: int) -> bool:
        """Whether all numbers of a column were 0 and 1, and there were both."""
        first, second, third = self.seen[column, :3].tolist()
        return {first, second} == {0.0, 1.0} and third != third

    def add(self, arm: int, values: Sequence[float], n_list: float = np.inf) -> None:
        """Take in an outcome; NaN is not measured. n_list: of how many blocks of a list it is one."""
        for column, value in enumerate(values):
            if value == value:
                before = self.n[arm, column]
                self.paced[arm, column] += value + before * self.mean[arm, column] / (n_list - before)
                self.n[arm, column] += 1
                off = value - self.mean[arm, column]
                self.mean[arm, column] += off / self.n[arm, column]
                self.squares[arm, column] += off * (value - self.mean[arm, column])

    def add_many(self, arms: IntArray, values: FloatArray) -> None:
        """Take in many outcomes (n, C) at once; NaN is not measured."""
        A = len(self.n)
        for column, given in enumerate(values.T):
            measured = ~np.isnan(given)
            arm, value = arms[measured], given[measured]
            more = np.bincount(arm, minlength=A)
            least = np.maximum(more, 1)
            mean = np.bincount(arm, value, A) / least
            low, high = np.full(A, np.inf), np.full(A, -np.inf)
            np.minimum.at(low, arm, value)
            np.maximum.at(high, arm, value)
            mean = np.where(low == high, low, mean)  # of equal numbers, whatever rounding does to their sum
            squares = np.bincount(arm, (value - mean[arm]) ** 2, A)
            n = self.n[:, column]
            share = more / np.maximum(n + more, 1)
            off = np.where(more > 0, mean - self.mean[:, column], 0.0)
            self.squares[:, column] += squares + off * off * n * share
            self.mean[:, column] += off * share
            self.n[:, column] += more

    def copy(self) -> Tally:
        """Return it as it is now."""
        return Tally(*(array.copy() for array in vars(self).values()))

    def grow(self, n_arms: int) -> None:
        """Make room for more arms."""
        more = n_arms - len(self.n)
        self.n, self.mean, self.squares, self.paced = (
            np.concatenate([array, np.zeros((more, array.shape[1]), array.dtype)])
            for array in (self.n, self.mean, self.squares, self.paced)
        )
