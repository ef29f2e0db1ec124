"""Random streams. An algorithm and the world it samples from never share one."""

from __future__ import annotations

import numpy as np

_ALGORITHM, _ENVIRONMENT = 0, 1


def algorithm_stream(seed: int, replicate: int = 0) -> np.random.Generator:
    """The generator an algorithm draws from: the same in a simulated and in a live run."""
    return _stream(seed, replicate, _ALGORITHM)


def environment_stream(seed: int, replicate: int = 0) -> np.random.Generator:
    """The generator that noise is drawn from: the same for all algorithms that are compared."""
    return _stream(seed, replicate, _ENVIRONMENT)


def _stream(seed: int, replicate: int, purpose: int) -> np.random.Generator:
    # The spawn key alone sets the stream: no order of creation, no shared state between threads.
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(replicate, purpose)))
