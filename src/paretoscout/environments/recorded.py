"""Measured rows, replayed: a sample of an arm is one of its recorded rows, drawn at random."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels.arrays import FloatArray, IntArray
from ..kernels.compile import kernel
from ..kernels.dispatch import implement
from ..kernels.draws import draw_index
from ..problem import Problem
from ..statement import Units


class RecordedEnvironment(NamedTuple):
    rows: FloatArray  # (N, L) all arms' rows, one arm after the other
    starts: IntArray  # (K + 1,) where each arm's rows begin, and the end


@kernel
def draw(environment: RecordedEnvironment, arm: int, rng: np.random.Generator, outcome: FloatArray) -> None:
    """Copy a random row of the arm."""
    start = environment.starts[arm]
    row = start + draw_index(environment.starts[arm + 1] - start, rng)
    for metric in range(outcome.shape[0]):
        outcome[metric] = environment.rows[row, metric]


implement(RecordedEnvironment, draw=draw)


def of(problem: Problem, units: Units) -> RecordedEnvironment:
    """Return the environment of a problem that was made from a table."""
    rows = problem.rows or ()
    starts = np.cumsum([0, *(len(group) for group in rows)])
    return RecordedEnvironment(units.oriented(np.concatenate(rows)), starts.astype(np.int64))
