"""The end that algorithms for one best arm share: from estimates to verdicts."""

from __future__ import annotations

from ...kernels.arrays import FloatArray, IntArray
from ...kernels.compile import allocating_kernel, kernel
from ...kernels.decisions import UNDECIDED, verdicts_with_rivals
from ...kernels.dispatch import Verdicts


@kernel
def leader_of(active: IntArray, means: FloatArray) -> int:
    """The active arm with the largest mean, the first of these."""
    leader = active[0]
    for k in active:
        if means[k] > means[leader]:
            leader = k
    return leader


@kernel
def keep_undecided(active: IntArray, status: IntArray) -> int:
    """Move the active arms without a verdict to the front, in their order; return how many there are."""
    n = 0
    for k in active:
        if status[k] == UNDECIDED:
            active[n] = k
            n += 1
    return n


@allocating_kernel
def best_arm_verdicts(
    status: IntArray, beaten_by: IntArray, means: FloatArray, radii: FloatArray, pulls: IntArray
) -> Verdicts:
    """What is said of each arm, from its mean (K,) and half the width of its interval (K,)."""
    K = means.shape[0]
    return verdicts_with_rivals(status, beaten_by, means.copy().reshape(K, 1), radii.copy().reshape(K, 1), pulls)
