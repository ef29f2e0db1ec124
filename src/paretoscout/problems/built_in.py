"""Problems by name: those that come with the library, and data sets."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InvalidInput, UnknownName
from ..frames import read_csv
from ..problem import Problem
from ..statement import Metric
from .catalogue import DATASETS
from .datasets import RAW, Dataset
from .make import compared_rows, gaussian, linear, logistic, noise_of_rows, table

_DATA = resources.files("paretoscout.problems") / "data"


def available() -> dict[str, str]:
    """Return the names of the built-in problems and of the data sets, each with one line on what it is.

    >>> "compressors" in available() and "noc" in available()
    True
    """
    built_in = {name: make.__doc__ or "" for name, make in _MAKERS.items()}
    return built_in | {name: dataset.about for name, dataset in DATASETS.items()}


def load(name: str, *, sigma: Any = None) -> Problem:
    """Return a built-in problem, or one made of a data set that is on this machine; nothing is downloaded.

    sigma: another noise scale. Where noise is simulated: one number, one per metric, or one per arm and metric (K, L).
    Where rows are replayed: what is assumed of them, "each", "largest" or "unknown", see `table`.

    >>> load("s5")
    <Problem 's5': 5 arms, 2 metrics, 3 features>
    """
    about = available()
    if name not in about:
        raise UnknownName("problem", name, about)
    problem = (_MAKERS[name]() if name in _MAKERS else DATASETS[name].problem()).replace(about=about[name])
    if sigma is None:
        return problem
    if problem.rows is not None:
        scale, noise = noise_of_rows(compared_rows(problem.rows, problem.metrics), sigma, name)
        return problem.replace(sigma=scale, noise=noise)
    if problem.statement.model == "logistic" or isinstance(sigma, str):
        wanted = (
            "left out, for its outcomes are 0 or 1"
            if problem.statement.model == "logistic"
            else "numbers: it has no rows"
        )
        raise InvalidInput(
            f"sigma of problem {name!r} must be {wanted}, got {sigma!r}; what an "
            f"algorithm assumes is a setting of the algorithm"
        )
    return problem.replace(sigma=sigma, noise="normal noise, sigma given")


def fetch(name: str, mirror: str = RAW) -> Path:
    """Download a data set from its public source, check it, and return where it is kept. Needs `paretoscout[data]`.

    mirror: another address with the files of the same repositories, as owner/name/commit/path.
    """
    return card(name).fetch(mirror.rstrip("/"))


def card(name: str) -> Dataset:
    """Return what is known of a data set: source, licence, checksums, metrics, noise.

    >>> card("noc").arms
    259
    """
    if name not in DATASETS:
        raise UnknownName("data set", name, DATASETS)
    return DATASETS[name]


def compressors() -> Problem:
    """Which compressor setting is worth using? Recorded runs: time per MB against size."""
    metrics = [Metric("time", "min", eps=2.0, unit="ms"), Metric("size", "min", eps=0.2, unit="%")]
    return table(read_csv(_DATA / "compressors.csv"), arm="option", metrics=metrics, name="compressors")


def llvm_passes() -> Problem:
    """What are ten optimiser passes of LLVM 19 worth? All 1024 settings, measured: optimiser time against run time."""
    return _llvm_passes("llvm-passes", None)


def llvm_passes_16() -> Problem:
    """Which of 16 settings of LLVM's optimiser are worth having? Measured: optimiser time against run time."""
    return _llvm_passes("llvm-passes-16", NAMED_PASSES)


#: Sixteen of the 1024 settings. Bit 0 of a number is the first pass of the table: inline, sroa, simplifycfg,
#: instcombine, loop-rotate, licm, gvn, loop-vectorize, slp-vectorizer, loop-unroll.
NAMED_PASSES = {
    "no passes": 0,
    "simplifycfg alone": 4,
    "instcombine alone": 8,
    "gvn alone": 64,
    "unroll alone": 512,
    "inline alone": 1,
    "inline, sroa": 3,
    "light": 7,
    "light, licm": 39,
    "loops": 231,
    "loops, rotate": 247,
    "all but slp": 767,
    "all": 1023,
    "all but inline": 1022,
    "all but vectorizers": 639,
    "all but unroll": 511,
}


def _llvm_passes(name: str, named: dict[str, int] | None) -> Problem:
    """Our own measurements: docs/llvm-passes.md. A sample is one of the repeats of a configuration."""
    text = gzip.decompress((_DATA / "llvm_passes.csv.gz").read_bytes()).decode()
    header, *rows = csv.reader(io.StringIO(text))
    cells = np.array(rows, dtype=float)
    times = [
        cells[:, [i for i, column in enumerate(header) if column.startswith(f"{kind}_us_")]] / 1e3
        for kind in ("optimise", "run")
    ]
    switches = [column for column in header if "_" not in column]
    on = cells[:, : len(switches)]
    numbers = on.astype(int) @ (1 << np.arange(len(switches)))
    chosen = {_switched_on(switches, row): k for k, row in enumerate(on)}
    if named is not None:
        chosen = {arm: int(np.flatnonzero(numbers == number)[0]) for arm, number in named.items()}
    kept = list(chosen.values())
    columns: dict[str, Any] = {
        "configuration": [arm for arm in chosen for _ in range(times[0].shape[1])],
        "optimiser time": times[0][kept].ravel(),
        "run time": times[1][kept].ravel(),
    }
    for column, switch in enumerate(switches):
        columns[switch] = np.repeat(on[kept, column], times[0].shape[1])
    metrics = [Metric("optimiser time", "min", eps=10.0, unit="ms"), Metric("run time", "min", eps=0.5, unit="ms")]
    return table(columns, arm="configuration", metrics=metrics, contexts=switches, name=name)


def _switched_on(switches: list[str], row: Any) -> str:
    """Name a configuration by its passes."""
    return "+".join(switch for switch, on in zip(switches, row, strict=True) if on) or "none"


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


def normal_10k() -> Problem:
    """Ten thousand arms with normal means, sigma 0.5."""
    return _normal(10_000, "normal-10k")


def normal_1m() -> Problem:
    """A million arms with normal means, sigma 0.5."""
    return _normal(1_000_000, "normal-1m")


def _normal(n_arms: int, name: str) -> Problem:
    metrics = [Metric("metric 1", eps=0.1), Metric("metric 2", eps=0.1)]
    return gaussian(np.random.default_rng(n_arms).normal(size=(n_arms, 2)), sigma=0.5, metrics=metrics, name=name)


def linear_16() -> Problem:
    """16 arms with random unit contexts in 4 dimensions, unit parameters, sigma 1."""
    return _random_linear(16, 4, sigma=1.0, name="linear-16")


def linear_1000() -> Problem:
    """1000 arms with random unit contexts in 8 dimensions, unit parameters, sigma 0.5."""
    return _random_linear(1000, 8, sigma=0.5, name="linear-1000")


def misfit_60() -> Problem:
    """60 arms whose contexts, in 4 dimensions, explain means but for misfits half as large as the signal; sigma 0.5."""
    return partly_linear(60, 4, misfit=0.5, sigma=0.5, name="misfit-60")


def partly_linear(n_arms: int, d: int, misfit: float, sigma: float, name: str, seed: int = 0) -> Problem:
    """Return a problem whose means are linear in random contexts, up to normal misfits; the signal is of scale 1."""
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(n_arms, d)) / np.sqrt(d)
    signal = contexts @ rng.normal(size=(d, 2))
    off = rng.normal(size=(n_arms, 2))
    means = signal / signal.std(axis=0) + misfit * off / off.std(axis=0)
    return gaussian(means, sigma, contexts, name=name)


def logistic_12() -> Problem:
    """12 variants of a page in 3 dimensions; a sample is one visitor, who reads it or not and buys or not."""
    rng = np.random.default_rng(3)
    contexts = rng.normal(size=(12, 3))
    contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
    metrics = [Metric("reads", eps=0.05), Metric("buys", eps=0.05)]
    return logistic(contexts, [[1.5, -0.5], [0.5, 1.0], [-0.5, 1.0]], metrics=metrics, name="logistic-12")


def _random_linear(n_arms: int, d: int, sigma: float, name: str) -> Problem:
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(n_arms, d))
    contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
    theta = rng.normal(size=(d, 2))
    return linear(contexts, theta / np.linalg.norm(theta, axis=0), sigma=sigma, name=name)


_MAKERS: dict[str, Callable[[], Problem]] = {
    "llvm-passes-16": llvm_passes_16,
    "llvm-passes": llvm_passes,
    "compressors": compressors,
    "s5": s5,
    "four-arms": four_arms,
    "random-16": random_16,
    "normal-10k": normal_10k,
    "normal-1m": normal_1m,
    "linear-16": linear_16,
    "linear-1000": linear_1000,
    "misfit-60": misfit_60,
    "logistic-12": logistic_12,
}
