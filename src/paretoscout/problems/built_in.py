"""Problems that come with the library, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import resources

import numpy as np

from ..errors import UnknownName
from ..problem import Metric, Problem
from .make import gaussian, linear, read_csv, table


def available() -> dict[str, str]:
    """Return the names of the built-in problems, each with one line on what it is.

    >>> "compressors" in available()
    True
    """
    return {name: make.__doc__ or "" for name, make in _MAKERS.items()}


def load(name: str) -> Problem:
    """Return a built-in problem.

    >>> load("s5")
    <Problem 's5': 5 arms, 2 metrics, 3 features>
    """
    if name not in _MAKERS:
        raise UnknownName("problem", name, _MAKERS)
    return replace(_MAKERS[name](), about=available()[name])


def compressors() -> Problem:
    """Which compressor setting is worth using? Recorded runs: time per MB against size."""
    source = resources.files("paretoscout.problems") / "data" / "compressors.csv"
    metrics = [Metric("time", "min", eps=2.0, unit="ms"), Metric("size", "min", eps=0.2, unit="%")]
    return table(read_csv(source), arm="option", metrics=metrics, name="compressors")


def s5() -> Problem:
    """The worked example of the documentation: 5 arms in 3 dimensions, front {1, 2, 4}, sigma 0.1."""
    contexts = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0.5], [0.6, 0.05, 0.25]]
    return linear(contexts, theta=[[0.8, 0.1], [0.2, 0.75], [0.4, 0.4]], sigma=0.1, name="s5")


def four_arms() -> Problem:
    """Two good arms, two that are worse by 0.3 in both metrics; sigma 1."""
    return gaussian([[1.0, 0.0], [0.0, 1.0], [0.7, -0.3], [-0.3, 0.7]], sigma=1.0, name="four-arms")


def random_16() -> Problem:
    """16 arms with normal means, sigma 0.5."""
    return gaussian(np.random.default_rng(5).normal(size=(16, 2)), sigma=0.5, name="random-16")


def linear_16() -> Problem:
    """16 arms with random unit contexts in 4 dimensions, unit parameters, sigma 1."""
    return _random_linear(16, 4, sigma=1.0, name="linear-16")


def linear_1000() -> Problem:
    """1000 arms with random unit contexts in 8 dimensions, unit parameters, sigma 0.5."""
    return _random_linear(1000, 8, sigma=0.5, name="linear-1000")


def _random_linear(n_arms: int, d: int, sigma: float, name: str) -> Problem:
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(n_arms, d))
    contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
    theta = rng.normal(size=(d, 2))
    return linear(contexts, theta / np.linalg.norm(theta, axis=0), sigma=sigma, name=name)


_MAKERS: dict[str, Callable[[], Problem]] = {
    "compressors": compressors,
    "s5": s5,
    "four-arms": four_arms,
    "random-16": random_16,
    "linear-16": linear_16,
    "linear-1000": linear_1000,
}
