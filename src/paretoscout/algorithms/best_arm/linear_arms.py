"""What algorithms for linear contexts have in common before they start."""

from __future__ import annotations

import numpy as np

from ...errors import InvalidInput
from ...kernels.arrays import FloatArray, IntArray
from ...kernels.design_for_differences import TIE
from ..contract import Setup

#: What is guaranteed where one best arm is looked for.
BEST_ARM = (
    "fixed confidence: the returned arm is within eps of the best, with probability at least 1 - delta, if the noise "
    "is sigma-sub-Gaussian and the means are linear in the contexts"
)
#: Features that are linear combinations of others but for this part count as such.
DEPENDENT = 1e-5


def contexts_of(setup: Setup, algorithm: str) -> FloatArray:
    """Return the contexts (K, d), without dimensions that no arm uses; unit vectors where none explain the means.

    Where d is less than the number of features, coordinates are orthogonal: parameters have no larger norm in them.
    """
    if setup.contexts is None or not setup.explained:
        return np.eye(setup.n_arms)
    contexts = setup.contexts.copy()
    lengths = np.linalg.norm(contexts, axis=0)
    if not lengths.any():
        raise InvalidInput(f"contexts of algorithm {algorithm!r} must not all be zero")
    sizes = np.linalg.svd(contexts / np.where(lengths > 0, lengths, 1.0), compute_uv=False)
    rank = int(np.count_nonzero(sizes > DEPENDENT * sizes[0]))
    if rank == contexts.shape[1]:
        return contexts
    basis = np.linalg.svd(contexts, full_matrices=False)[2][:rank]
    return np.ascontiguousarray(contexts @ basis.T)


def spanning_arms(contexts: FloatArray) -> IntArray:
    """Return d arms whose contexts span all dimensions, in ascending order: each sticks out most of those before."""
    chosen = []
    left = contexts.copy()
    for _ in range(contexts.shape[1]):
        lengths = np.linalg.norm(left, axis=1)
        longest = int(np.argmax(lengths >= (1.0 - TIE) * lengths.max()))
        chosen.append(longest)
        left -= np.outer(left @ left[longest], left[longest]) / lengths[longest] ** 2
    return np.sort(np.array(chosen, np.int64))


def shift_of(ridge: float, contexts: FloatArray) -> float:
    """Return how much of the unit matrix A starts from: `ridge` samples of an arm with the longest context."""
    return ridge * float((contexts * contexts).sum(axis=1).max())
