"""Outcomes of arms one by one, and what those of two arms say when they are paired by their numbers.

Where the scale of normal noise is unknown, the t-th outcome of one arm less the t-th of another is normal too, of one
scale, and all these differences are independent: one t-test (`paired.py`) in place of one for each arm. Outcomes are
numbered for each metric, in the order in which they were asked for. So how many of them count may be chosen by whoever
knows anything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .arrays import FloatArray, IntArray, SmallInts
from .compile import kernel, short_kernel

#: Outcomes of an arm in a metric lie in chunks: the first is for so many, each next one for twice as many.
FIRST_CHUNK, N_CHUNKS = 8, 24


class Series(NamedTuple):
    """The outcomes of K arms that count as evidence."""

    values: FloatArray  # (P,) all chunks
    chunks: SmallInts  # (K or 0, L, N_CHUNKS) where each of them begins; -1: there is none
    used: IntArray  # (1,) where the next one will begin
    mixed: SmallInts  # (K or 0,) 1: what was asked for before an addition came after what was asked for since


def no_series(n_arms: int, n_metrics: int) -> Series:
    """Return a series of so many arms, without any outcome or room for one."""
    chunks = np.full((n_arms, n_metrics, N_CHUNKS), -1, np.int32)
    return Series(np.zeros(0), chunks, np.zeros(1, np.int64), np.zeros(n_arms, np.int8))


def with_room(series: Series, n: int) -> Series:
    """Return a series with room for n more outcomes, whichever arms they are of."""
    K, L, _ = series.chunks.shape
    # the next chunk of an arm is as long as all it has so far and a first one; what comes in fills half of it at least
    needed = 2 * int(series.used[0]) + L * (2 * n + FIRST_CHUNK * min(K, n))
    if needed <= len(series.values):
        return series
    values = np.zeros(max(needed, 2 * len(series.values)))
    values[: len(series.values)] = series.values
    return series._replace(values=values)


@short_kernel
def locate(number: int) -> tuple[int, int, int]:
    """In which chunk an outcome is, by its number 0, 1, ...; where in it, and how many are there from it on."""
    chunk, size = 0, FIRST_CHUNK
    while number >= size and chunk < N_CHUNKS:
        number -= size
        size *= 2
        chunk += 1
    return chunk, number, size - number


@kernel
def keep(series: Series, arm: int, metric: int, number: int, value: float) -> None:
    """Keep an outcome by its number."""
    chunk, place, left = locate(number)
    if number < 0 or chunk >= N_CHUNKS:
        return
    if place == 0 and series.chunks[arm, metric, chunk] < 0 and series.used[0] + left <= series.values.shape[0]:
        series.chunks[arm, metric, chunk] = series.used[0]
        series.used[0] += left
    start = series.chunks[arm, metric, chunk]
    if start >= 0 and start + place < series.values.shape[0]:  # else somebody made up this state
        series.values[start + place] = value


@kernel
def differences(
    series: Series, metric: int, i: int, first_i: int, j: int, first_j: int, most: int
) -> tuple[float, float, float]:
    """How many outcomes of arms i and j can be paired, their mean difference, and its squared distances summed.

    From the outcomes with the numbers `first_i` and `first_j` on, up to so many.
    """
    chunk_i, place_i, left_i = locate(first_i)
    chunk_j, place_j, left_j = locate(first_j)
    n, mean, squares = 0.0, 0.0, 0.0
    if min(first_i, first_j) < 0:
        return n, mean, squares  # somebody made up this state
    while n < most and max(chunk_i, chunk_j) < N_CHUNKS:
        at_i, at_j = series.chunks[i, metric, chunk_i], series.chunks[j, metric, chunk_j]
        run = min(left_i, left_j, most - int(n))
        if min(at_i, at_j) < 0 or max(at_i + place_i, at_j + place_j) + run > series.values.shape[0]:
            break  # somebody made up this state
        for t in range(run):
            difference = series.values[at_i + place_i + t] - series.values[at_j + place_j + t]
            off = difference - mean
            n += 1.0
            mean += off / n
            squares += off * (difference - mean)
        place_i, left_i, place_j, left_j = place_i + run, left_i - run, place_j + run, left_j - run
        if left_i == 0:
            chunk_i, place_i, left_i = chunk_i + 1, 0, FIRST_CHUNK << (chunk_i + 1)
        if left_j == 0:
            chunk_j, place_j, left_j = chunk_j + 1, 0, FIRST_CHUNK << (chunk_j + 1)
    return n, mean, squares
