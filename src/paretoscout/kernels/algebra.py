"""Small dense algebra: factors of positive definite matrices that are kept, updated and solved with.

A = U^T D U, U upper triangular with ones on its diagonal, D diagonal: `factor` holds D on the diagonal and U
above it. `reach[i]` is the last column of row i that may be non-zero. Loops stop there, so that a matrix that
happens to be diagonal (every arm its own unit vector) costs O(d), without a special case anywhere.
"""

from __future__ import annotations

from .arrays import FloatArray, IntArray
from .compile import kernel


@kernel
def factorise(matrix: FloatArray, reach: IntArray) -> bool:
    """Replace the upper triangle of `matrix` by its factor; `reach` grows by the fill-in.

    False: there is none, for want of a pivot. (A matrix that is all but singular may pass by rounding.)
    """
    for i in range(matrix.shape[0]):
        pivot = matrix[i, i]
        for j in range(i + 1, reach[i] + 1):
            element = matrix[i, j]
            if element != 0.0:
                if not pivot > 0.0:
                    return False
                matrix[i, j] = element / pivot
                reach[j] = max(reach[j], reach[i])
                # row i is divided up to j only: beyond it still holds the matrix
                matrix[j, j] -= matrix[i, j] * element
                for k in range(j + 1, reach[i] + 1):
                    matrix[j, k] -= matrix[i, j] * matrix[i, k]
    return True


@kernel
def add_outer_product(factor: FloatArray, reach: IntArray, x: FloatArray) -> None:
    """Turn the factor of A into that of A + x x^T. `x` is overwritten."""
    last = x.shape[0] - 1
    while last >= 0 and x[last] == 0.0:
        last -= 1
    weight = 1.0  # of what is left of x x^T after the rows done so far
    i = 0
    while i <= last:
        element = x[i]
        if element != 0.0:
            last = max(last, reach[i])
            reach[i] = last
            old = factor[i, i]
            factor[i, i] = old + weight * element * element
            share = weight * element / factor[i, i]
            weight *= old / factor[i, i]
            for j in range(i + 1, last + 1):
                x[j] -= element * factor[i, j]
                factor[i, j] += share * x[j]
        i += 1


@kernel
def solve(factor: FloatArray, reach: IntArray, right: FloatArray) -> None:
    """Replace each column of `right` (d, L) by A^-1 times it."""
    d, n_columns = right.shape
    for i in range(d):
        for j in range(i + 1, reach[i] + 1):
            for c in range(n_columns):
                right[j, c] -= factor[i, j] * right[i, c]
    for i in range(d - 1, -1, -1):
        inverse = 1.0 / factor[i, i]
        for c in range(n_columns):
            right[i, c] *= inverse
        for j in range(i + 1, reach[i] + 1):
            for c in range(n_columns):
                right[i, c] -= factor[i, j] * right[j, c]


@kernel
def copy_into(target: FloatArray, source: FloatArray) -> None:
    """Copy a matrix onto another. (An assignment to a slice brings in code to word shape errors with.)"""
    for i in range(target.shape[0]):
        for c in range(target.shape[1]):
            target[i, c] = source[i, c]
