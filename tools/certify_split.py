"""Prove that the table of `kernels/split.py` is below psi: run by hand when its grid or MARGIN change (a minute).

psi is concave in z, so interpolation in z is below it once it is on the two grid lines. It falls with x. So on a grid
line, in a part [x', x''] of a cell, the chord between two grid points is at most its value at x', and psi is at least
psi(x''). The largest excess of the one over the other, over all lines and parts, must stay below MARGIN.
"""

from __future__ import annotations

import sys

import numpy as np

from paretoscout.kernels import split
from paretoscout.kernels.arrays import FloatArray
from paretoscout.kernels.compile import kernel


@kernel
def largest_excess(table: FloatArray, parts: int) -> float:
    """By how much chords along x may be above psi."""
    most = -np.inf
    for row in range(table.shape[0]):
        for column in range(table.shape[1] - 1):
            left, right = table[row, column], table[row, column + 1]
            for part in range(parts):
                chord = left + (right - left) * part / parts
                least = split.excess(row / split.PER_UNIT, (column + (part + 1.0) / parts) / split.PER_UNIT)
                most = max(most, chord - least)
    return most


if __name__ == "__main__":
    excess = largest_excess(split.split_table(), 4000)
    print(f"chords are above psi by at most {excess:.2g}; MARGIN is {split.MARGIN:g}")
    sys.exit(excess >= split.MARGIN)
