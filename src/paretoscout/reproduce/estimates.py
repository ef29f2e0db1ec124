"""Experiments of figures 1, 3 and 4: five estimators on three arms, of which two are soon no longer sampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..estimators import DRMix, DRRidge, ExplorationMixed, LeastSquares, Ridge
from ..files import pack, unpack
from ..kernels.arrays import FloatArray, IntArray
from ..streams import algorithm_stream, environment_stream
from .parts import Parts
from .sizes import Sizes

THETA = (1.0, -1.0, -1.0)  # means of arms 1, 2, 3
SIGMA = 0.1
EXPLORING = 50  # rounds in which all arms are sampled; after that only arm 1
ROUNDS = 2000
FAR = 20_000  # beyond the paper's figures, to see where errors end
SHOWN = (50, 500, 2000)  # the paper's rounds in its figure 4
#: Where estimates are kept.
GRID: IntArray = np.unique([*np.geomspace(3, ROUNDS, 100).astype(np.int64), EXPLORING + 1, *SHOWN, FAR])


@dataclass(frozen=True)
class Kind:
    """One of the estimators that are compared."""

    key: str
    label: str
    constants: str
    make: Callable[[], Any]
    mixes: bool = False


_CONTEXTS = np.eye(len(THETA))
_DR = "delta 0.1 (a round is left out with probability delta / (t + 1)^2), all rounds imputed with the newest estimate"
KINDS: tuple[Kind, ...] = (
    Kind("ridge", "ridge", "ridge constant 1", lambda: Ridge(_CONTEXTS, ridge=1.0)),
    Kind(
        "mixed", "exploration-mixed", "ridge constant 1/2, as printed", lambda: ExplorationMixed(_CONTEXTS), mixes=True
    ),
    Kind(
        "dr-mix",
        "DR-mix",
        f"imputation exploration-mixed; ridge constant 1, as printed; {_DR}",
        lambda: DRMix(_CONTEXTS, delta=0.1),
        mixes=True,
    ),
    Kind(
        "dr-ridge",
        "DR, ridge imputation",
        f"imputation ridge with constant 1; ridge constant 1; {_DR}",
        lambda: DRRidge(_CONTEXTS, delta=0.1),
    ),
    Kind("least-squares", "least squares", "none", lambda: LeastSquares(_CONTEXTS)),
    Kind(
        "ridge-half",
        "ridge, constant 1/2",
        "ridge constant 1/2, that of exploration-mixed",
        lambda: Ridge(_CONTEXTS, ridge=0.5),
    ),
)
LABELS = {kind.key: kind.label for kind in KINDS}


@dataclass(frozen=True)
class Estimates:
    """What the estimators said, experiment by experiment: (n, len(GRID), 3) each."""

    values: dict[str, FloatArray]

    @property
    def n(self) -> int:
        """How many experiments."""
        return len(self.values["ridge"])

    def at(self, key: str, n: int) -> FloatArray:
        """Return all estimates (experiments, arms) after n rounds."""
        return self.values[key][:, int(np.flatnonzero(n == GRID)[0])]

    def error(self, key: str, arms: str) -> FloatArray:
        """Return the error (experiments, len(GRID)) on "1", the exploited arm, or on "2-3", in the Euclidean norm."""
        off = self.values[key] - THETA
        return np.abs(off[:, :, 0]) if arms == "1" else np.linalg.norm(off[:, :, 1:], axis=2)

    def error_at(self, key: str, arms: str, n: int) -> FloatArray:
        """Return the error of every experiment after n rounds."""
        return self.error(key, arms)[:, int(np.flatnonzero(n == GRID)[0])]


def rounds_of(seed: int, index: int) -> tuple[IntArray, FloatArray]:
    """Return arms and outcomes of one experiment; all estimators see the same."""
    rng = environment_stream(seed, index)
    arms = np.zeros(FAR, np.int64)
    # An arm that is not seen at all (probability below 1e-8) leaves least squares undefined and nothing to reuse.
    while len(np.unique(arms[:EXPLORING])) < len(THETA):
        arms[:EXPLORING] = rng.integers(0, len(THETA), EXPLORING)
    return arms, np.take(THETA, arms) + SIGMA * rng.standard_normal(FAR)


def experiment(kind: Kind, seed: int, index: int) -> FloatArray:
    """Run one estimator through one experiment: its estimates (len(GRID), 3) at the rounds of the grid."""
    arms, outcomes = rounds_of(seed, index)
    estimator = kind.make()
    estimator.rng = algorithm_stream(seed, index)
    explored = np.arange(FAR) < EXPLORING

    def known(part: slice) -> dict[str, Any]:
        return {"explored": explored[part]} if kind.mixes else {}

    near, far = slice(0, ROUNDS), slice(ROUNDS, FAR)
    path = estimator.path(arms[near], outcomes[near], **known(near))[:, :, 0]
    estimator.update(arms[far], outcomes[far], **known(far))
    return np.vstack([path[GRID[GRID <= ROUNDS] - 1], estimator.means[:, 0]])


def pieces(sizes: Sizes) -> dict[str, str]:
    """Return the name of the file of each estimator."""
    return {kind.key: f"estimates-{kind.key}-n{sizes.experiments}-seed{sizes.seed}" for kind in KINDS}


def measure(sizes: Sizes, parts: Parts) -> Estimates:
    """Run all estimators through all experiments, or read what is there."""

    def make(kind: Kind) -> FloatArray:
        values = np.empty((sizes.experiments, len(GRID), len(THETA)))
        for index in range(sizes.experiments):
            values[index] = experiment(kind, sizes.seed, index)
            parts.steps.replicate()
            if index % 10 == 0:
                parts.steps.refresh()
        return values

    def read(path: Path) -> FloatArray:
        return unpack("estimates", path.read_bytes(), str(path))[1]["values"]

    def write(values: FloatArray, path: Path) -> None:
        path.write_bytes(pack("estimates", {}, {"values": values}))

    names = pieces(sizes)
    return Estimates(
        {
            kind.key: parts.get(
                f"figures 1, 3, 4: {kind.label}",
                names[kind.key],
                sizes.experiments,
                read,
                lambda kind=kind: make(kind),  # type: ignore[misc]
                write,
            )
            for kind in KINDS
        }
    )
