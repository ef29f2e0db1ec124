"""A table of options and blocks, walked in one random order: the n-th sample of every arm is its row of the n-th block.

Of a list each block comes once. Of a population, whose blocks these are, they are drawn with replacement.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..kernels.arrays import FloatArray, IntArray, SmallInts
from ..kernels.compile import kernel
from ..kernels.dispatch import implement
from ..problem import Problem
from ..statement import Units


class BlockEnvironment(NamedTuple):
    rows: FloatArray  # (K, N, L)
    order: IntArray  # (N,) the blocks of a walk; empty: they are drawn with replacement
    key: SmallInts  # (1,) which draws these are
    visits: IntArray  # (K,) samples of each arm so far


@kernel
def drawn(key: Any, n: int, n_blocks: int) -> int:
    """The n-th of blocks that are drawn with replacement: the same for whoever asks, however long ago it was drawn."""
    mixed = key + np.uint64(n) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return int((mixed >> np.uint64(11)) * (1.0 / 9007199254740992.0) * n_blocks)


@kernel
def draw(environment: BlockEnvironment, arm: int, rng: np.random.Generator, outcome: FloatArray) -> None:
    """Copy the row of the arm on its next block."""
    n = environment.visits[arm]
    listed = environment.order.shape[0] > 0
    block = (
        environment.order[min(n, environment.order.shape[0] - 1)]
        if listed
        else drawn(environment.key[0], n, environment.rows.shape[1])
    )
    environment.visits[arm] += 1
    for metric in range(outcome.shape[0]):
        outcome[metric] = environment.rows[arm, block, metric]


implement(BlockEnvironment, draw=draw)


def of(problem: Problem, units: Units) -> BlockEnvironment:
    """Return the environment of a table with blocks, in the order of the table."""
    rows = units.oriented(np.stack(problem.rows or ()))
    return BlockEnvironment(rows, np.arange(rows.shape[1]), np.zeros(1, np.uint64), np.zeros(len(rows), np.int64))


def begun(environment: BlockEnvironment, listed: bool, rng: np.random.Generator) -> BlockEnvironment:
    """Return it with an order of its own, before the first sample."""
    n_arms, n_blocks, _ = environment.rows.shape
    order = rng.permutation(n_blocks) if listed else np.empty(0, np.int64)
    key = rng.integers(0, 2**63, 1, np.uint64)
    return BlockEnvironment(environment.rows, order, key, np.zeros(n_arms, np.int64))
