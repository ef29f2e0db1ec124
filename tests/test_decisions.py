"""Who is named as a rival: the same arm as the definition names, in any table and at any size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numba.core import config

from paretoscout.kernels.arrays import FloatArray, IntArray
from paretoscout.kernels.decisions import (
    DOMINATED,
    DOUBTFUL,
    FRONT,
    GONE,
    MISSED,
    PRESENT,
    UNDECIDED,
    name_rivals,
    name_rivals_there,
    verdicts_by_estimates,
)
from paretoscout.kernels.dominance import FEW

pytestmark = pytest.mark.kernels

COMPILED = not config.DISABLE_JIT  # type: ignore[attr-defined]


# Twins: the definitions, in plain loops


def naive_rival(k: int, candidates: list[int], values: FloatArray) -> int:
    """Of the other candidates the one whose least lead over k is the largest; of several, the first."""
    others = [j for j in candidates if j != k]
    return others[int((values[others] - values[k]).min(axis=1).argmax())] if others else -1


def naive_rivals(rival: IntArray, values: FloatArray, radii: FloatArray, status: IntArray) -> list[int]:
    standing = [j for j in range(len(rival)) if status[j] != DOMINATED and radii[j, 0] < np.inf]
    return [naive_rival(k, standing, values) if status[k] == UNDECIDED else rival[k] for k in range(len(rival))]


def naive_rivals_there(
    rival: IntArray, values: FloatArray, radii: FloatArray, status: IntArray, presence: IntArray
) -> list[int]:
    there = [j for j in range(len(rival)) if presence[j] in (PRESENT, DOUBTFUL)]
    standing = [j for j in there if status[j] != DOMINATED and radii[j, 0] < np.inf]
    return [
        -1
        if presence[k] == GONE
        else naive_rival(k, standing, values)
        if status[k] == UNDECIDED
        else rival[k]
        if rival[k] in there
        else -1
        for k in range(len(rival))
    ]


def tables(L: int) -> Iterator[FloatArray]:
    """Estimates with and without ties, in order and out of it, few and many; nearly equal ones, where leads round."""
    rng = np.random.default_rng(L)
    for K in (1, 2, 20, *((3 * FEW, 5 * FEW) if COMPILED else ())):
        yield rng.normal(size=(K, L))
        yield rng.integers(0, 4, (K, L)).astype(float)
        yield np.sort(rng.normal(size=(K, L)), axis=0)
        yield np.zeros((K, L))
        yield np.add(1.0 + 1e-16 * rng.integers(0, 9, (K, L)), rng.integers(0, 2, (K, 1)), dtype=np.float64)
        arc = np.abs(rng.normal(size=(K, L)))
        arc /= np.linalg.norm(arc, axis=1, keepdims=True)
        yield arc


@pytest.mark.parametrize("L", [1, 2, 3, 5])
def test_rivals_are_the_definition(L: int) -> None:
    rng = np.random.default_rng(10 + L)
    for values in tables(L):
        K = len(values)
        for most_undecided in (False, True):
            codes, shares = (UNDECIDED, FRONT, DOMINATED), (0.9, 0.05, 0.05) if most_undecided else (0.2, 0.3, 0.5)
            status = rng.choice(codes, K, p=shares)
            radii = np.where(rng.random((K, L)) < 0.2, np.inf, 0.5)
            presence = rng.choice((PRESENT, DOUBTFUL, GONE, MISSED), K, p=(0.7, 0.1, 0.1, 0.1))
            before = rng.integers(-1, K, K)
            named = before.copy()
            name_rivals(named, values, radii, status)
            assert named.tolist() == naive_rivals(before, values, radii, status)
            named = before.copy()
            name_rivals_there(named, values, radii, status, presence)
            assert named.tolist() == naive_rivals_there(before, values, radii, status, presence)


@pytest.mark.parametrize("L", [1, 2, 3, 5])
def test_verdicts_by_estimates_are_the_definition(L: int) -> None:
    for values in tables(L):
        K = len(values)
        counts = np.ones(K, np.int64)
        front = [not any((b >= a).all() and (b > a).any() for b in values) for a in values]
        said = verdicts_by_estimates(values, counts, True)
        assert said.status.tolist() == [FRONT if on else DOMINATED for on in front]
        kept = [j for j in range(K) if front[j]]
        assert said.rival.tolist() == [-1 if front[k] else naive_rival(k, kept, values) for k in range(K)]
        before = verdicts_by_estimates(values, counts, False)
        assert (before.status == UNDECIDED).all()
        assert (before.rival == -1).all()
