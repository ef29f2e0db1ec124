"""Problem: a statement, and a way to get samples whose truth is known."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from . import checks
from .defaults import DELTA
from .errors import InvalidInput
from .kernels.arrays import FloatArray
from .shown import counted
from .statement import Blocks, Eps, Metric, Statement, Units


@dataclass(frozen=True, eq=False)
class Problem:
    """What is asked, and a way to get samples. Made by the functions of `paretoscout.problems`."""

    name: str
    statement: Statement
    means: FloatArray  # (K, L) in the metrics' own units and directions; geometric means where ratios are compared
    theta: FloatArray | None = None  # (d, L) where contexts @ theta are the means as they are compared, or the link's z
    rows: tuple[FloatArray, ...] | None = None  # per arm (n, L), where samples are replayed; a row for each block
    about: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        stated = self.statement
        K, L = len(stated.arms), len(stated.metrics)
        for kind, names in (("an arm", stated.arms), ("a metric", [metric.name for metric in stated.metrics])):
            for name in names:
                checks.name(f"name of {kind} of {stated.of}", name)
        for what, values, shape in (("means", self.means, (K, L)), ("theta", self.theta, (-1, L))):
            if values is None:
                continue
            wanted = tuple(got if n < 0 else n for n, got in zip(shape, values.shape, strict=False))
            if values.ndim != len(shape) or values.shape != wanted:
                raise InvalidInput(f"{what} of {stated.of} must have shape {shape} (-1: any), got {values.shape}")
            checks.finite(f"{what} of {stated.of}", values)
        if (self.theta is None) != (stated.model == "none"):
            raise InvalidInput(f"model of {stated.of} must be 'none' where contexts or theta are not given")
        for position, metric in enumerate(stated.metrics):
            if metric.relative and not (self.means[:, position] > 0).all():
                raise InvalidInput(f"means of metric {metric.name!r} of {stated.of} must be above 0 on a log scale")
        self._check_bounds()

    def _check_bounds(self) -> None:
        for position, metric in enumerate(self.metrics):
            if metric.bounds is None or self.statement.model == "logistic":
                continue
            what = f"metric {metric.name!r} of {self.statement.of}"
            if self.rows is None:
                raise InvalidInput(f"bounds of {what} must be left out: its noise is normal, which knows no bounds")
            for arm, rows in zip(self.arms, self.rows, strict=True):
                low, high = rows[:, position].min(), rows[:, position].max()
                if low < metric.bounds[0] or high > metric.bounds[1]:
                    raise InvalidInput(
                        f"{what} must be within its bounds {metric.bounds[0]:g} and {metric.bounds[1]:g}, "
                        f"but {arm!r} has rows from {low:g} to {high:g}"
                    )

    def __repr__(self) -> str:
        shape = f"{counted(len(self.arms), 'arm')}, {counted(len(self.metrics), 'metric')}"
        if self.statement.blocks is not None:
            shape += f", {counted(len(self.statement.blocks.names), 'block')}"
        if self.contexts is not None:
            shape += f", {counted(self.contexts.shape[1], 'feature')}"
        return f"<Problem {self.name!r}: {shape}>"

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms."""
        return self.statement.arms

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics."""
        return self.statement.metrics

    @property
    def sigma(self) -> FloatArray:
        """The noise scale (K, L), on the scale on which metrics are compared; NaN: nobody knows it."""
        return self.statement.sigma

    @property
    def contexts(self) -> FloatArray | None:
        """Features of the arms (K, d)."""
        return self.statement.contexts

    @property
    def cost(self) -> FloatArray | None:
        """What one sample of each arm costs (K,); None: all the same."""
        return self.statement.cost

    def replace(self, **changed: Any) -> Problem:
        """Return it with other values of some fields, of its own or of its statement."""
        own = {each.name for each in fields(self)}
        stated = {name: value for name, value in changed.items() if name not in own}
        if "sigma" in stated and not (self.rows is not None and np.isnan(stated["sigma"]).all()):
            K, L = len(stated.get("arms", self.arms)), len(stated.get("metrics", self.metrics))
            stated["sigma"] = checks.per_arm_and_metric(f"sigma of {self.statement.of}", stated["sigma"], K, L, least=0)
        mine = {name: value for name, value in changed.items() if name in own}
        if stated:
            mine["statement"] = dataclasses.replace(self.statement, **stated)
        return dataclasses.replace(self, **mine)

    def about_blocks(self, target: str) -> Problem:
        """Return it with an answer about its list of blocks, or about the population they come from."""
        if self.statement.blocks is None:
            raise InvalidInput(f"target of {self.statement.of} must be left out: it has no blocks, got {target!r}")
        return self.replace(blocks=dataclasses.replace(self.statement.blocks, target=target))

    def asked(
        self,
        eps: Eps | None = None,
        delta: float = DELTA,
        goal: str | int = "front",
        budget: int | None = None,
    ) -> Statement:
        """Return the statement of a run on this problem."""
        stated = dataclasses.replace(self.statement.with_eps(eps), delta=delta, goal=goal, budget=budget)
        if stated.blocks is not None and not stated.blocks.listed:  # its rows are the population: drawn without end
            stated = dataclasses.replace(stated, blocks=Blocks(target="population"))
        return dataclasses.replace(stated, theta_max=self.theta_max(stated.units))

    def units(self, eps: Eps | None = None) -> Units:
        """Return how values are turned into what algorithms compute in."""
        return self.statement.with_eps(eps).units

    def theta_max(self, units: Units) -> float:
        """Return the largest norm of a column of the parameters (without contexts: of the means).

        As algorithms compute; with the logistic link in the units of its argument, which has no scale.
        """
        if self.statement.model == "logistic" and self.theta is not None:
            return float(np.linalg.norm(self.theta, axis=0).max())
        if self.contexts is None:
            return float(np.linalg.norm(units.oriented(self.means), axis=0).max())
        known = units.compared(self.means)
        theta: Any = np.linalg.lstsq(self.contexts, known, rcond=None)[0] if self.theta is None else self.theta
        return float(np.linalg.norm(units.directed(theta), axis=0).max())
