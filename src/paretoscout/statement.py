"""What is asked: arms, metrics, what is known of noise and means, the goal, delta and the budget.

One frozen value, `Statement`, that a simulated `Problem` and the settings of a live study both contain. What an
algorithm is told (`Setup`) is made of it in one place, `start.py`; so both drivers run the same thing.

Values are kept in the user's own units and directions. `Units` turns them into what algorithms compute in: every metric
on the scale on which it is compared, oriented (larger is better) and divided by what does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from . import checks
from .defaults import DELTA
from .errors import InvalidInput, UnknownName
from .kernels.arrays import BoolArray, FloatArray

#: What `eps` may be: one number for all metrics, one per metric, or by the metrics' names; "2%" for a share.
Eps = float | Sequence[float | str] | Mapping[str, float | str]

#: How a metric is compared: by differences, or by ratios (what is judged is the mean of its logarithm).
SCALES = ("linear", "log")

#: How means depend on contexts. "linear" and "logistic": exactly so; "none": nobody says that they do.
MODELS = ("none", "linear", "logistic")

#: Two blocks are for the pilots.
FEWEST_BLOCKS = 3
#: What an answer on blocks is about: the blocks of the list, or the population from which they were drawn.
TARGETS = ("list", "population")

#: What is said of the noise where sigma is given, and nothing more is known.
SUB_GAUSSIAN = "sub-Gaussian noise, sigma given"
#: What a sample is where measurements are replayed, for people to read.
DRAWN = "recorded rows, drawn with replacement"


@dataclass(frozen=True)
class Metric:
    """One objective.

    name: what people call it.
    direction: "max" if larger is better, "min" if smaller is; "maximize" and "minimize" mean the same.
    eps: the difference that does not matter: a number in the metric's own unit, or a percentage such as "2%".
    unit: shown behind numbers.
    bounds: the lowest and the highest value there can be. An outcome beyond them is an error.
    exact: whether a number that is the same in all measurements of an option is certain, such as a size or a price.
    scale: how options are compared. "linear": by the difference of their means. "log": by the ratio of their geometric
        means; values must be above 0, such as times. An eps in percent implies "log", and "log" takes no other eps.
        Estimates, intervals and limits are in the metric's own unit with both.
    ratio: where options are measured on the same blocks and compared by ratios: on no block is one option more than so
        many times another. The guarantee then rests on that, whatever the differences are like.

    >>> Metric("latency", "min", eps=5, unit="ms").tolerance
    5.0
    >>> Metric("latency", "min", eps="2%", unit="ms").scale
    'log'
    """

    name: str
    direction: str = "max"
    eps: float | str | None = None
    unit: str = ""
    bounds: tuple[float, float] | None = None
    exact: bool = False
    scale: str = "linear"
    ratio: float | None = None

    def __post_init__(self) -> None:
        checks.name("name of a metric", self.name)
        object.__setattr__(self, "direction", checks.direction(self.name, self.direction))
        if self.unit != "":
            checks.name(f"unit of metric {self.name!r}", self.unit)
        if self.scale not in SCALES:
            raise InvalidInput(f"scale of metric {self.name!r} must be 'linear' or 'log', got {checks.got(self.scale)}")
        self._settle_eps()
        if not isinstance(self.exact, bool):
            raise InvalidInput(f"exact of metric {self.name!r} must be True or False, got {self.exact!r}")
        if self.bounds is not None:
            what = f"bounds of metric {self.name!r}"
            if not isinstance(self.bounds, (tuple, list)) or len(self.bounds) != 2:
                raise InvalidInput(f"{what} must be two numbers, the lowest and the highest value, got {self.bounds!r}")
            above = 0.0 if self.relative else -np.inf
            low = checks.number(f"the lower one of the {what}", self.bounds[0], above=above)
            high = checks.number(f"the upper one of the {what}", self.bounds[1], above=low)
            object.__setattr__(self, "bounds", (low, high))

        if self.ratio is not None:
            if not self.relative:
                raise InvalidInput(
                    f"ratio of metric {self.name!r} must go with an eps in percent, or scale='log': it is compared by "
                    f"differences, got ratio={self.ratio!r}"
                )
            object.__setattr__(self, "ratio", checks.number(f"ratio of metric {self.name!r}", self.ratio, above=1.0))

    def _settle_eps(self) -> None:
        what = f"eps of metric {self.name!r}"
        if isinstance(self.eps, str):
            object.__setattr__(self, "eps", f"{100 * share(what, self.eps):.15g}%")
            object.__setattr__(self, "scale", "log")
        elif self.eps is not None:
            if self.relative:
                raise InvalidInput(
                    f"{what} must be a share such as '2%' where its scale is 'log', got {checks.got(self.eps)}"
                )
            checks.number(what, self.eps, least=0.0)

    @classmethod
    def stored(cls, name: str, unit: str = "", **more: Any) -> Metric:
        """Return a metric as an earlier version kept it, which took names and units that are refused today."""
        metric = cls("stored", **more)
        object.__setattr__(metric, "name", name)
        object.__setattr__(metric, "unit", unit)
        return metric

    def times_eps(self, factor: float) -> Metric:
        """Return it with an eps that is larger by a factor.

        >>> Metric("latency", "min", eps="2%").times_eps(1.5).eps
        '3%'
        """
        if self.eps is None:
            return self
        share = float(self.eps.rstrip("%")) if isinstance(self.eps, str) else self.eps
        larger = float(f"{factor * share:.3g}")
        return replace(self, eps=f"{larger:g}%" if isinstance(self.eps, str) else larger)

    @property
    def relative(self) -> bool:
        """Whether it is compared by ratios."""
        return self.scale == "log"

    @property
    def sign(self) -> float:
        """1 if larger is better, -1 if smaller is."""
        return checks.sign(self.direction)

    @property
    def tolerance(self) -> float:
        """The difference that does not matter, on the scale on which the metric is compared."""
        if isinstance(self.eps, str):
            return float(np.log1p(share("eps", self.eps)))
        return 0.0 if self.eps is None else float(self.eps)

    def compared(self, values: Any) -> Any:
        """Turn values in the metric's own unit into those that are compared."""
        return np.log(values) if self.relative else values

    def natural(self, values: Any) -> Any:
        """Turn compared values into the metric's own unit again."""
        return np.exp(values) if self.relative else values


def share(what: str, text: Any) -> float:
    """Read a share.

    >>> share("eps", "2%")
    0.02
    """
    number = text.strip() if isinstance(text, str) else ""
    try:
        if not number.endswith("%"):
            raise ValueError
        return checks.number(what, float(number[:-1]), least=0.0) / 100.0
    except ValueError:
        raise InvalidInput(f"{what} must be a number or a percentage such as '2%', got {checks.got(text)}") from None


@dataclass(frozen=True)
class Units:
    """How values are turned into what algorithms compute in."""

    logs: BoolArray | None  # (L,) whether a metric is compared by its logarithm; None: none is
    signs: FloatArray  # (L,) 1 for max, -1 for min
    divisors: FloatArray  # (L,) what is 1 for the algorithm, on the scale on which the metric is compared
    eps: FloatArray  # (L,) for the algorithm

    def compared(self, values: FloatArray) -> FloatArray:
        """Turn values in the user's units (..., L) into those that are compared; NaN stays NaN."""
        if self.logs is None:
            return values
        return np.where(self.logs, np.log(np.where(self.logs, values, 1.0)), values)

    def natural(self, values: FloatArray) -> FloatArray:
        """Turn compared values into the user's units."""
        if self.logs is None:
            return values
        with np.errstate(over="ignore"):  # of an interval that says nothing yet
            return np.where(self.logs, np.exp(np.where(self.logs, values, 0.0)), values)

    def oriented(self, values: FloatArray) -> FloatArray:
        """Turn values in the user's units into what algorithms compute in."""
        return self.directed(self.compared(values))

    def directed(self, compared: FloatArray) -> FloatArray:
        """Turn compared values, or parameters of these, into what algorithms compute in."""
        return np.ascontiguousarray(compared * (self.signs / self.divisors))

    def undirected(self, values: FloatArray) -> FloatArray:
        """Turn what algorithms compute in into compared values."""
        return values * self.signs * self.divisors


@dataclass(frozen=True)
class Blocks:
    """What all options are measured on: prompts, files, rounds. On the same block they are compared."""

    names: tuple[str, ...] = ()  # none: there is no end of them
    target: str = "list"  # one of TARGETS
    passing: bool = False  # a block that an option has missed is gone, as a stretch of time is

    def __post_init__(self) -> None:
        checks.one_of("target of blocks", self.target, TARGETS)
        for name in self.names:
            checks.name("name of a block", name)
        if self.names and len(self.names) < FEWEST_BLOCKS:
            raise InvalidInput(f"blocks must be at least {FEWEST_BLOCKS}, got {len(self.names)}")
        if not self.names and self.target == "list":
            raise InvalidInput("target of blocks must be 'population' where there is no list of them, got 'list'")
        seen: set[str] = set()
        for name in self.names:
            if name in seen:
                raise InvalidInput(f"names of blocks must differ, got {name!r} twice")
            seen.add(name)

    @property
    def listed(self) -> bool:
        """Whether the answer is about these blocks alone."""
        return self.target == "list"

    @property
    def rounds(self) -> bool:
        """Whether they are rounds: each passes, and there is no end of them."""
        return self.passing and not self.names


@dataclass(frozen=True, eq=False)
class Statement:
    """What is asked, and what is known. See the names of the fields in `Study` and `problems`."""

    arms: tuple[str, ...]
    metrics: tuple[Metric, ...]
    sigma: FloatArray  # (K, L), or (L,) for all arms, on the scale on which metrics are compared; NaN: nobody knows it
    contexts: FloatArray | None = None  # (K, d)
    model: str = "none"  # one of MODELS
    theta_max: float | None = None  # largest norm of a metric's parameters, as algorithms compute; None: nobody knows
    cost: FloatArray | None = None  # (K,) what one sample of each arm costs; None: all the same
    noise: str = SUB_GAUSSIAN  # what is known of the noise where sigma is given, for people to read
    drawn: bool = False  # whether a sample is a recorded row
    goal: str | int = "front"  # see `checks.goal`
    delta: float = DELTA
    budget: int | None = None  # how many samples there are in all; None: no limit
    blocks: Blocks | None = None  # what all arms are measured on; None: each sample is on its own
    own_units: bool = False  # metrics share their unit, which is kept; else what does not matter is the unit of each
    of: str = "a study"  # whose statement it is, for messages

    def __post_init__(self) -> None:
        _unique(self.arms, "arm", self.of)
        _unique([metric.name for metric in self.metrics], "metric", self.of)
        K, L = len(self.arms), len(self.metrics)
        if self.model not in MODELS:
            raise InvalidInput(f"model of {self.of} must be 'none', 'linear' or 'logistic', got {self.model!r}")
        if self.model != "none" and self.contexts is None:
            raise InvalidInput(f"model of {self.of} must be 'none' where contexts are not given, got {self.model!r}")
        if self.contexts is not None:
            contexts = checks.table(f"contexts of {self.of}", self.contexts, "(arms, features)")
            if len(contexts) != K:
                raise InvalidInput(f"contexts of {self.of} must have shape {(K, -1)} (-1: any), got {contexts.shape}")
            self._set(contexts=contexts)
        if self.cost is not None:
            cost = checks.finite(f"cost of {self.of}", checks.floats(f"cost of {self.of}", self.cost))
            if cost.shape != (K,):
                raise InvalidInput(f"cost of {self.of} must have shape {(K,)} (-1: any), got {cost.shape}")
            if (cost <= 0).any():
                raise InvalidInput(f"cost of {self.of} must be above 0, got {cost.min():g}")
            self._set(cost=cost)
        if self.theta_max is not None:
            self._set(theta_max=checks.number(f"theta_max of {self.of}", self.theta_max, least=0.0))
        if self.sigma.shape not in ((L,), (K, L)):
            raise InvalidInput(f"sigma of {self.of} must be one per metric or one per arm and metric")
        self._check_blocks()
        if self.model == "logistic":
            for metric in self.metrics:
                if metric.bounds != (0.0, 1.0) or metric.relative:
                    raise InvalidInput(
                        f"bounds of metric {metric.name!r} of {self.of} must be 0 and 1, its only outcomes, got "
                        f"{metric.bounds}"
                    )
        self._set(
            goal=checks.goal(self.goal),
            delta=checks.number(f"delta of {self.of}", self.delta, above=0.0, below=1.0),
            budget=None if self.budget is None else checks.whole(f"budget of {self.of}", self.budget, least=1),
        )

    def _check_blocks(self) -> None:
        if self.blocks is None:
            for metric in self.metrics:
                if metric.ratio is not None:
                    raise InvalidInput(
                        f"ratio of metric {metric.name!r} of {self.of} must be left out where options are not measured "
                        f"on the same blocks, got {metric.ratio:g}"
                    )
            return
        if not np.isnan(self.sigma).all():
            raise InvalidInput(
                f"sigma of {self.of} must be left out where options are measured on the same blocks: it is the noise "
                "of differences that counts, and that is estimated"
            )
        if self.model != "none":
            raise InvalidInput(f"model of {self.of} must be 'none' where there are blocks, got {self.model!r}")

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Statement) and not self.differs(other)

    __hash__ = None  # type: ignore[assignment]

    def differs(self, other: Statement) -> list[str]:
        """Return the names of the fields in which another one differs."""
        return [
            each.name
            for each in fields(self)
            if each.name != "of" and not _same(getattr(self, each.name), getattr(other, each.name))
        ]

    @property
    def knows_sigma(self) -> bool:
        """Whether a noise scale is known, or assumed, for every metric."""
        return not np.isnan(self.sigma).any()

    @property
    def units(self) -> Units:
        """How values are turned into what algorithms compute in: what does not matter is 1, or `own_units`."""
        tolerated = np.array([metric.tolerance for metric in self.metrics])
        divisors = np.where((tolerated > 0) & (not self.own_units), tolerated, 1.0)
        logs = np.array([metric.relative for metric in self.metrics])
        return Units(
            logs if logs.any() else None,
            np.array([metric.sign for metric in self.metrics]),
            divisors,
            tolerated / divisors,
        )

    @property
    def bounds(self) -> FloatArray | None:
        """Each metric's lowest and highest value (L, 2), as algorithms compute; infinite where unknown."""
        if all(metric.bounds is None for metric in self.metrics):
            return None
        given = np.array(
            [
                (-np.inf, np.inf) if metric.bounds is None else metric.compared(np.array(metric.bounds))
                for metric in self.metrics
            ]
        )
        units = self.units
        return np.sort(given * (units.signs / units.divisors)[:, None], axis=1) + 0.0  # no negative zero

    @property
    def spans(self) -> FloatArray | None:
        """The largest difference of two arms on a block (L,), as algorithms compute; infinite where unknown."""
        if self.blocks is None:
            return None
        known = [
            np.log(metric.ratio)
            if metric.ratio is not None
            else np.inf
            if metric.bounds is None
            else np.ptp(metric.compared(np.array(metric.bounds)))
            for metric in self.metrics
        ]
        spans: FloatArray = np.array(known) / self.units.divisors
        return spans

    def with_eps(self, eps: Eps | None) -> Statement:
        """Return it with another eps: one number keeps the metrics' units, eps per metric becomes the unit of each.

        None means the metrics' own eps; a metric without one counts as 0, in its own unit.
        """
        if eps is None:
            return self
        names = [metric.name for metric in self.metrics]
        alone = np.ndim(eps) == 0 and not isinstance(eps, Mapping)  # type: ignore[arg-type]
        if alone:
            if not isinstance(eps, str):
                checks.number(f"eps on {self.of}", eps, least=0.0)
            given: list[Any] = [eps] * len(names)
        elif isinstance(eps, Mapping):
            for name in eps:
                if name not in names:
                    raise UnknownName("metric", name, names)
            given = [eps.get(metric.name, metric.eps) for metric in self.metrics]
        else:
            given = list(eps)  # type: ignore[arg-type]
            if len(given) != len(names):
                raise InvalidInput(
                    f"eps on {self.of} must be one number or {len(names)} of them (one per metric: "
                    f"{', '.join(names)}), got {len(given)}"
                )
        metrics = tuple(with_eps(metric, each) for metric, each in zip(self.metrics, given, strict=True))
        return replace(self, metrics=metrics, own_units=alone)


def with_eps(metric: Metric, eps: Any) -> Metric:
    """Return a metric with another eps, which is compared as before."""
    changed = replace(metric, eps=eps)
    if changed.scale != metric.scale:
        raise InvalidInput(
            f"eps of metric {metric.name!r} must be a number, for it is compared by differences (scale='linear'), "
            f"got {eps!r}"
        )
    return changed


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return one is not None and other is not None and np.array_equal(one, other, equal_nan=True)
    return bool(one == other)


def _unique(names: Sequence[str], kind: str, of: str) -> None:
    if not names:
        raise InvalidInput(f"{of} must have at least one {kind}, got none")
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(f"names of {kind}s of {of} must differ, got {name!r} twice")
        seen.add(name)
