"""The compiled loop: choose, draw, update, keep the regret."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import kernel, per_state
from ..kernels.dispatch import choose, done, draw, update


class Log(NamedTuple):
    rounds: IntArray  # (G,) at which rounds the cumulative regret is kept
    regret: FloatArray  # (G,) cumulative regret there
    total: FloatArray  # (1,) cumulative regret now
    counters: IntArray  # (2,) rounds played, entries of the log filled


PLAYED, LOGGED = 0, 1


@kernel
def keep_regret(log: Log, gap: float) -> None:
    """Count a round."""
    log.total[0] += gap
    log.counters[PLAYED] += 1
    filled = log.counters[LOGGED]
    if filled < log.rounds.shape[0] and log.counters[PLAYED] == log.rounds[filled]:
        log.regret[filled] = log.total[0]
        log.counters[LOGGED] += 1


def _play(
    state: Any,
    constants: Any,
    environment: Any,
    gaps: FloatArray,
    log: Log,
    pending: IntArray,
    observed: BoolArray,
    outcome: FloatArray,
    algorithm_rng: np.random.Generator,
    environment_rng: np.random.Generator,
    n_rounds: int,
) -> bool:
    """Play up to `n_rounds` rounds; return whether the algorithm is done. Calling again goes on from there."""
    for _ in range(n_rounds):
        if done(state, constants):
            break
        arm, ticket = choose(state, constants, pending, algorithm_rng)
        draw(environment, arm, environment_rng, outcome)
        update(state, constants, arm, ticket, outcome, observed)
        keep_regret(log, gaps[arm])
    return done(state, constants)


player = per_state(_play)


def _measure(
    state: Any,
    constants: Any,
    environment: Any,
    gaps: FloatArray,
    log: Log,
    arms: IntArray,
    ticket: FloatArray,
    observed: BoolArray,
    outcome: FloatArray,
    environment_rng: np.random.Generator,
) -> None:
    """Play rounds on arms that the algorithm did not ask for."""
    for arm in arms:
        draw(environment, arm, environment_rng, outcome)
        update(state, constants, arm, ticket, outcome, observed)
        keep_regret(log, gaps[arm])


measurer = per_state(_measure)
