"""What the linear scout makes of contexts before the first sample: coordinates, arms that are equal, arms to probe."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ...kernels.arrays import FloatArray, IntArray

#: So many rows are worked on at a time where there are many: what is made of them stays small.
AT_A_TIME = 1 << 15
#: Arms that are extreme in so many random directions, and in twice as many as there are dimensions, are probes.
DIRECTIONS = 128


def blocks(rows: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """Yield the rows a few at a time, with the place of the first of them."""
    for start in range(0, len(rows), AT_A_TIME):
        yield start, rows[start : start + AT_A_TIME]


def whitened(contexts: FloatArray, entered: IntArray) -> tuple[FloatArray, int]:
    """Return contexts in coordinates in which the mean square of the first arms is 1, and how many these span.

    Dimensions that no arm uses are left out. Arms that come later leave all coordinates as they are, and the evidence
    with them. Where they reach out of what the arms before them span they bring new ones; in these their own mean
    square is 1.
    """
    rest, largest, parts = contexts, 0.0, []
    for generation in np.unique(entered):
        members, later = entered == generation, entered > generation
        own = contexts if members.all() else contexts[members]
        few = compressed(own)
        largest = max(largest, float(np.linalg.norm(few, 2)))
        if rest is not contexts:
            own = rest[members]
            few = compressed(own)
        U, s, V = np.linalg.svd(few, full_matrices=False)
        rank = int(np.count_nonzero(s > largest * max(contexts.shape) * np.finfo(float).eps))
        unit = np.sqrt(np.count_nonzero(members))
        part = U[:, :rank] * unit if few is own else own @ (V[:rank].T / s[:rank] * unit)
        if not members.all():
            all_parts = np.zeros((len(contexts), rank))
            all_parts[members] = part
            part = all_parts
        parts.append(part)
        if later.any():
            part[later] = rest[later] @ V[:rank].T / s[:rank] * unit
            rest = rest - rest @ V[:rank].T @ V[:rank]
    return np.ascontiguousarray(parts[0] if len(parts) == 1 else np.hstack(parts)), parts[0].shape[1]


def compressed(rows: FloatArray) -> FloatArray:
    """Return at most d rows with the same singular values and right vectors, where there are many; else the rows."""
    if len(rows) <= AT_A_TIME:
        return rows
    triangle = rows[:0]
    for _, block in blocks(rows):
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle, block]), mode="r"))
    return triangle


def first_equals(contexts: FloatArray) -> IntArray:
    """Return for each arm the first one with the same context."""
    mixed = np.concatenate([mix(block) for _, block in blocks(contexts)])
    order = np.argsort(mixed, kind="stable")
    begins = np.ones(len(order), np.bool_)  # whether another context begins here
    begins[1:] = mixed[order[1:]] != mixed[order[:-1]]
    first = order[begins][np.cumsum(begins) - 1]
    shared = np.flatnonzero(first != order)
    if (contexts[first[shared]] != contexts[order[shared]]).any():  # two contexts were mixed to the same number
        _, groups = np.unique(contexts, axis=0, return_inverse=True)
        return first_of_group(groups.ravel())
    equals = np.empty(len(order), np.int64)
    equals[order] = first
    return equals


def mix(rows: FloatArray) -> NDArray[np.uint64]:
    """Return a number for each row that is the same for equal rows, and hardly ever for others."""
    mixed = np.zeros(len(rows), np.uint64)
    for column in np.ascontiguousarray(rows.T + 0.0).view(np.uint64):  # 0 for -0
        mixed = (mixed ^ column ^ (column >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    return mixed


def first_of_group(groups: IntArray) -> IntArray:
    """Return for each place the first one with the same number."""
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(first[inverse.ravel()], np.int64)


def extreme(contexts: FloatArray, directions: FloatArray) -> IntArray:
    """Return, for each direction (columns), the arm that is furthest out along it, on either side."""
    found, furthest = np.zeros(directions.shape[1], np.int64), np.full(directions.shape[1], -1.0)
    for start, block in blocks(contexts):
        reached = np.abs(block @ directions)
        arms = reached.argmax(axis=0)
        reached = reached[arms, np.arange(len(arms))]
        further = reached > furthest
        found[further], furthest[further] = arms[further] + start, reached[further]
    return found


def probes_of(contexts: FloatArray) -> IntArray:
    """Return arms that are extreme in random directions, sorted. They span all dimensions.

    In whitened coordinates some arm reaches out by 1 in every direction. Directions in which none of those found does
    so much as half of that get an arm of their own.
    """
    d = contexts.shape[1]
    directions = np.random.default_rng(0).normal(size=(d, max(DIRECTIONS, 2 * d)))
    probes = np.unique(extreme(contexts, directions))
    while True:
        _, lengths, axes = np.linalg.svd(contexts[probes], full_matrices=True)
        short = np.append(lengths, np.zeros(d - len(lengths))) < 0.5
        if not short.any():
            return probes
        probes = np.union1d(probes, extreme(contexts, axes[short].T))


def spanning(contexts: FloatArray) -> IntArray:
    """Return as many arms as there are dimensions that span them all, sorted: each time what sticks out most."""
    pivots = scipy.linalg.qr(contexts.T, mode="r", pivoting=True)[1]
    return np.sort(pivots[: contexts.shape[1]]).astype(np.int64)
