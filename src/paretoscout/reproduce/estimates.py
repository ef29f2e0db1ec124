"""Experiments of figures 1, 3 and 4: five estimators on three arms, of which two are soon no longer sampled."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..engines import Engine
from ..estimators import DRMix, DRRidge, ExplorationMixed, LeastSquares, Ridge
from ..kernels.arrays import FloatArray, IntArray
from ..streams import algorithm_stream, environment_stream
from ..sweeps.cells import Cell, Plan, Play, Report
from ..sweeps.schedule import finish
from ..sweeps.store import Store
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


@dataclass(frozen=True)
class EstimateCell(Cell):
    """An estimator in one experiment after the other."""

    kind: str
    seed: int

    OUTCOME: ClassVar[dict[str, str]] = {"estimates": "numbers"}

    @property
    def columns(self) -> dict[str, Any]:
        """The settings, as they stand in every row."""
        return {"estimator": self.kind, "seed": self.seed}

    def start(self) -> Play:
        """Nothing takes long."""
        kind = next(kind for kind in KINDS if kind.key == self.kind)

        def play(number: int, report: Report) -> dict[str, Any]:
            began = time.thread_time()
            values = experiment(kind, self.seed, number)
            report(FAR)
            return {"estimates": values.ravel().tolist(), "seconds": time.thread_time() - began}

        return play


def cells(sizes: Sizes) -> list[EstimateCell]:
    """Return what is played."""
    return [EstimateCell(kind.key, sizes.seed) for kind in KINDS]


def measure(sizes: Sizes, store: Store, engine: Engine, progress: bool | None = False) -> Estimates:
    """Run all estimators through all experiments, but for what is there."""
    n, asked = sizes.experiments, cells(sizes)
    with store.writing(asked):
        list(finish([(cell, Plan(n)) for cell in asked], store, engine, "figures 1, 3, 4", progress))
    values = {cell.kind: np.array([row["estimates"] for row in store.rows(cell)[:n]]) for cell in asked}
    return Estimates({kind: flat.reshape(n, len(GRID), len(THETA)) for kind, flat in values.items()})
