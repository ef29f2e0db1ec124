"""Metric and Problem: named arms, named metrics with directions, eps and units, and the noise.

Values are kept in the user's own units and directions. `Units` turns them into what algorithms compute in:
every metric oriented (larger is better) and divided by its scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import checks
from .errors import InvalidInput, UnknownName
from .kernels.arrays import FloatArray

#: What `eps` may be: one number for all metrics, one per metric, or by the metrics' names.
Eps = float | Sequence[float] | Mapping[str, float]

#: What a sample is where measurements are replayed, for people to read.
DRAWN = "recorded rows, drawn with replacement"


@dataclass(frozen=True)
class Metric:
    """One objective.

    name: what people call it.
    direction: "max" if larger is better, "min" if smaller is; "maximize" and "minimize" mean the same.
    eps: the difference that does not matter, in the metric's own unit.
    unit: shown behind numbers.
    bounds: the lowest and the highest value there can be; an outcome beyond them is an error.
    exact: a number that is the same in all measurements of an option is certain: sizes, prices.

    >>> Metric("latency", "min", eps=5, unit="ms")
    Metric(name='latency', direction='min', eps=5, unit='ms', bounds=None, exact=False)
    """

    name: str
    direction: str = "max"
    eps: float | None = None
    unit: str = ""
    bounds: tuple[float, float] | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        checks.name("name of a metric", self.name)
        object.__setattr__(self, "direction", checks.direction(self.name, self.direction))
        if self.unit != "":
            checks.name(f"unit of metric {self.name!r}", self.unit)
        if self.eps is not None:
            checks.number(f"eps of metric {self.name!r}", self.eps, least=0.0)
        if not isinstance(self.exact, bool):
            raise InvalidInput(f"exact of metric {self.name!r} must be True or False, got {self.exact!r}")
        if self.bounds is not None:
            what = f"bounds of metric {self.name!r}"
            if not isinstance(self.bounds, (tuple, list)) or len(self.bounds) != 2:
                raise InvalidInput(f"{what} must be two numbers, the lowest and the highest value, got {self.bounds!r}")
            low = checks.number(f"the lower one of the {what}", self.bounds[0])
            high = checks.number(f"the upper one of the {what}", self.bounds[1], above=low)
            object.__setattr__(self, "bounds", (low, high))

    @property
    def sign(self) -> float:
        """1.0 where larger is better, -1.0 where smaller is: what is multiplied by it is better where it is larger."""
        return checks.sign(self.direction)

    @classmethod
    def stored(cls, name: str, unit: str = "", **more: Any) -> Metric:
        """Return a metric as an earlier version kept it, which took names and units that are refused today."""
        metric = cls("stored", **more)
        object.__setattr__(metric, "name", name)
        object.__setattr__(metric, "unit", unit)
        return metric


@dataclass(frozen=True)
class Units:
    """How values are oriented and scaled before an algorithm sees them."""

    signs: FloatArray  # (L,) 1 for max, -1 for min
    scales: FloatArray  # (L,) in the metrics' own units
    eps: FloatArray  # (L,) in scaled units

    def oriented(self, values: FloatArray) -> FloatArray:
        """Turn values in the user's units into oriented, scaled ones."""
        return np.ascontiguousarray(values * (self.signs / self.scales))

    def original(self, values: FloatArray) -> FloatArray:
        """Turn oriented, scaled values back into the user's units."""
        return values * self.signs * self.scales


@dataclass(frozen=True, eq=False)
class Problem:
    """Arms, metrics, and a way to get samples. Made by the functions of `paretoscout.problems`."""

    name: str
    arms: tuple[str, ...]
    metrics: tuple[Metric, ...]
    means: FloatArray  # (K, L) in the metrics' own units and directions
    sigma: FloatArray  # (K, L) noise scale in the metrics' own units, or (L,) for all arms; NaN: nobody knows it
    contexts: FloatArray | None = None  # (K, d)
    theta: FloatArray | None = None  # (d, L) where the means are contexts @ theta, or `link` of that
    link: str = "identity"  # or "logistic": outcomes are 0 or 1, their means 1 / (1 + exp(-contexts @ theta))
    rows: tuple[FloatArray, ...] | None = None  # per arm (n, L), where samples are replayed
    noise: str = "sigma given"  # what is assumed of the noise, for people to read
    cost: FloatArray | None = None  # (K,) what one sample of each arm costs; None: all the same
    about: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        _unique(self.arms, "arm", self.name)
        _unique([metric.name for metric in self.metrics], "metric", self.name)
        K, L = len(self.arms), len(self.metrics)
        shapes = {"means": (K, L), "contexts": (K, -1), "theta": (-1, L), "cost": (K,)}
        for name, shape in shapes.items():
            values = getattr(self, name)
            if values is None:
                continue
            what = f"{name} of problem {self.name!r}"
            wanted = tuple(got if n < 0 else n for n, got in zip(shape, values.shape, strict=False))
            if values.ndim != len(shape) or values.shape != wanted:
                raise InvalidInput(f"{what} must have shape {shape} (-1: any), got {values.shape}")
            checks.finite(what, values)
        object.__setattr__(self, "sigma", self._checked_sigma())
        if self.cost is not None and (self.cost <= 0).any():
            raise InvalidInput(f"cost of problem {self.name!r} must be above 0, got {self.cost.min():g}")
        if self.link not in ("identity", "logistic"):
            raise InvalidInput(f"link of problem {self.name!r} must be 'identity' or 'logistic', got {self.link!r}")
        if self.link == "logistic" and (self.theta is None or self.contexts is None):
            raise InvalidInput(
                f"link of problem {self.name!r} must be 'identity' where contexts or theta are not given"
            )
        self._check_bounds()

    def _checked_sigma(self) -> FloatArray:
        """Return sigma for each arm and metric; only where rows are replayed nobody has to know it."""
        what, (K, L) = f"sigma of problem {self.name!r}", self.means.shape
        if self.rows is not None and np.isnan(checks.floats(what, self.sigma)).all():
            return np.full((K, L), np.nan)
        return checks.per_arm_and_metric(what, self.sigma, K, L, least=0.0)

    def _check_bounds(self) -> None:
        for position, metric in enumerate(self.metrics):
            if metric.bounds is None:
                continue
            what = f"metric {metric.name!r} of problem {self.name!r}"
            if self.link == "logistic":
                if metric.bounds != (0.0, 1.0):
                    raise InvalidInput(f"bounds of {what} must be 0 and 1, its only outcomes, got {metric.bounds}")
                continue
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
        shape = f"{len(self.arms)} arms, {len(self.metrics)} metrics"
        if self.contexts is not None:
            shape += f", {self.contexts.shape[1]} features"
        return f"<Problem {self.name!r}: {shape}>"

    @property
    def knows_sigma(self) -> bool:
        """Whether a noise scale is known, or assumed."""
        return not np.isnan(self.sigma).any()

    def units(self, eps: Eps | None = None) -> Units:
        """Settle eps and the scales, see `units_of`."""
        return units_of(self.metrics, eps, f"problem {self.name!r}")

    def bounds(self, units: Units) -> FloatArray | None:
        """Return each metric's lowest and highest value (L, 2), see `bounds_of`."""
        return bounds_of(self.metrics, units)

    def theta_max(self, units: Units) -> float:
        """Return the largest norm of a column of the parameters (without contexts: of the means).

        In scaled units; with the logistic link in those of its argument, which have no scale.
        """
        if self.link == "logistic" and self.theta is not None:
            return float(np.linalg.norm(self.theta, axis=0).max())
        theta = self.means if self.contexts is None else self.theta
        if theta is None:
            theta = np.linalg.lstsq(self.contexts, self.means, rcond=None)[0]  # type: ignore[arg-type]
        return float(np.linalg.norm(units.oriented(theta), axis=0).max())


def units_of(metrics: Sequence[Metric], eps: Eps | None, where: str) -> Units:
    """Settle eps and the scales: one number keeps the metrics' units, eps per metric becomes the scale.

    None means the metrics' own eps; a metric without one counts as 0, in its own unit.
    """
    names = [metric.name for metric in metrics]
    signs = np.array([metric.sign for metric in metrics])
    if eps is not None and np.ndim(eps) == 0 and not isinstance(eps, Mapping):  # type: ignore[arg-type]
        value = checks.number(f"eps on {where}", eps, least=0.0)
        return Units(signs, np.ones(len(names)), np.full(len(names), value))
    if eps is None:
        given: list[Any] = [metric.eps or 0.0 for metric in metrics]
    elif isinstance(eps, Mapping):
        for name in eps:
            if name not in names:
                raise UnknownName("metric", name, names)
        given = [eps.get(metric.name, metric.eps or 0.0) for metric in metrics]
    else:
        given = list(eps)  # type: ignore[arg-type]
        if len(given) != len(names):
            raise InvalidInput(
                f"eps on {where} must be one number or {len(names)} of them (one per metric: "
                f"{', '.join(names)}), got {len(given)}"
            )
    values = np.array(
        [checks.number(f"eps of metric {name!r}", value, least=0.0) for name, value in zip(names, given, strict=True)]
    )
    scales = np.where(values > 0, values, 1.0)
    return Units(signs, scales, values / scales)


def bounds_of(metrics: Sequence[Metric], units: Units) -> FloatArray | None:
    """Return each metric's lowest and highest value (L, 2), oriented and scaled; infinite where unknown."""
    if all(metric.bounds is None for metric in metrics):
        return None
    given = np.array([metric.bounds or (-np.inf, np.inf) for metric in metrics])
    return np.sort(given * (units.signs / units.scales)[:, None], axis=1) + 0.0  # no negative zero


def _unique(names: Sequence[str], kind: str, problem: str) -> None:
    if not names:
        raise InvalidInput(f"problem {problem!r} must have at least one {kind}, got none")
    seen: set[str] = set()
    for name in names:
        checks.name(f"name of {'an arm' if kind == 'arm' else 'a metric'} of problem {problem!r}", name)
        if name in seen:
            raise InvalidInput(f"names of {kind}s of problem {problem!r} must differ, got {name!r} twice")
        seen.add(name)
