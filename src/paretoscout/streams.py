"""Random streams. An algorithm and the world it samples from never share one."""

from __future__ import annotations

import threading

import numpy as np

_ALGORITHM, _ENVIRONMENT = 0, 1


def algorithm_stream(seed: int, replicate: int = 0) -> np.random.Generator:
    """The generator an algorithm draws from: the same in a simulated and in a live run."""
    return _stream(seed, replicate, _ALGORITHM)


def environment_stream(seed: int, replicate: int = 0) -> np.random.Generator:
    """The generator that noise is drawn from: the same for all algorithms that are compared."""
    return _stream(seed, replicate, _ENVIRONMENT)


class Reused:
    """The two generators of a thread, for one replicate after the other.

    Compiled code never lets go of a generator that it was given (numba counts a reference too many): new ones for each
    of a million replicates would take 5 GB.
    """

    def __init__(self) -> None:
        self.kept = threading.local()

    def __call__(self, seed: int, replicate: int) -> tuple[np.random.Generator, np.random.Generator]:
        """Return the streams of a replicate, algorithm and environment; those of the last one are over."""
        new = algorithm_stream(seed, replicate), environment_stream(seed, replicate)
        if not hasattr(self.kept, "streams"):
            self.kept.streams = new
        for mine, one in zip(self.kept.streams, new, strict=True):
            mine.bit_generator.state = one.bit_generator.state
        return self.kept.streams


def _stream(seed: int, replicate: int, purpose: int) -> np.random.Generator:
    # The spawn key alone sets the stream: no order of creation, no shared state between threads.
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(replicate, purpose)))
