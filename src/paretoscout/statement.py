"""What is asked: arms, metrics, what is known of noise and means, the goal, delta and the budget.

One frozen value, `Statement`, that a simulated `Problem` and the settings of a live study both contain. What an
algorithm is told (`Setup`) is made of it in one place, `start.py`; so both drivers run the same thing.

Values are kept in the user's own units and directions. `Units` turns them into what algorithms compute in: every metric
on the scale on which it is compared, oriented (larger is better) and divided by what does not matter. Where trade-offs
are stated, these are summed with weights, and such a sum is what an algorithm takes for a metric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from . import checks, tradeoffs
from .defaults import DELTA
from .errors import InvalidInput, UnknownName
from .kernels.arrays import BoolArray, FloatArray, IntArray

#: What `eps` may be: one number for all metrics, one per metric, or by the metrics' names; "2%" for a share.
Eps = float | Sequence[float | str] | Mapping[str, float | str]

#: How a metric is compared: by differences, or by ratios (what is judged is the mean of its logarithm).
SCALES = ("linear", "log")

#: What the outcomes of a metric are: numbers, or 0 and 1.
NUMBER, PASS_FAIL = "number", "pass/fail"
KINDS = (NUMBER, PASS_FAIL)

#: How means depend on contexts. "linear" and "logistic": exactly so; "none": nobody says that they do.
MODELS = ("none", "linear", "logistic")

#: Two blocks are for the pilots.
FEWEST_BLOCKS = 3
#: What an answer on blocks is about: the blocks of the list, or the population from which they were drawn.
TARGETS = ("list", "population")

#: What a trial that fails is: no outcome, or one that counts in the last metric, the share of successes.
ON_FAILURE = VOID, MEASURE = ("void", "measure")
#: That metric, and its share of delta.
SUCCESS, SHARE_OF_SUCCESS = "success", 0.1

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
    >>> Metric("passed", kind="pass/fail").bounds
    (0.0, 1.0)
    """

    name: str
    direction: str = "max"
    eps: float | str | None = None
    unit: str = ""
    bounds: tuple[float, float] | None = None
    exact: bool = False
    scale: str = "linear"
    ratio: float | None = None
    kind: str = NUMBER

    def __post_init__(self) -> None:
        checks.name("name of a metric", self.name)
        object.__setattr__(self, "direction", checks.direction(self.name, self.direction))
        if self.unit != "":
            checks.name(f"unit of metric {self.name!r}", self.unit)
        if self.scale not in SCALES:
            raise InvalidInput(f"scale of metric {self.name!r} must be 'linear' or 'log', got {checks.got(self.scale)}")
        self._settle_eps()
        if not isinstance(self.exact, bool):
            raise InvalidInput(f"exact of metric {self.name!r} must be True or False, got {checks.got(self.exact)}")
        if self.bounds is not None:
            what = f"bounds of metric {self.name!r}"
            if not isinstance(self.bounds, (tuple, list)) or len(self.bounds) != 2:
                raise InvalidInput(
                    f"{what} must be two numbers, the lowest and the highest value, got {checks.got(self.bounds)}"
                )
            above = 0.0 if self.relative else -np.inf
            low = checks.number(f"the lower one of the {what}", self.bounds[0], above=above)
            high = checks.number(f"the upper one of the {what}", self.bounds[1], above=low)
            object.__setattr__(self, "bounds", (low, high))
        self._settle_kind()
        if self.ratio is not None:
            if not self.relative:
                raise InvalidInput(
                    f"ratio of metric {self.name!r} must go with an eps in percent, or scale='log': it is compared by "
                    f"differences, got ratio={self.ratio!r}"
                )
            object.__setattr__(self, "ratio", checks.number(f"ratio of metric {self.name!r}", self.ratio, above=1.0))

    def _settle_kind(self) -> None:
        checks.one_of(f"kind of metric {self.name!r}", self.kind, KINDS)
        if self.kind != PASS_FAIL:
            return
        if self.relative:
            stated = f"eps={self.eps!r}" if isinstance(self.eps, str) else "scale='log'"
            raise InvalidInput(
                f"kind of metric {self.name!r} must be 'number' if it is compared by ratios, because a failure is 0, "
                f"got 'pass/fail' with {stated}: write a number such as eps=0.02, which is 2 percentage points"
            )
        if self.bounds not in (None, (0.0, 1.0)):
            raise InvalidInput(
                f"bounds of metric {self.name!r} must be left out with kind='pass/fail', whose outcomes are 0 and 1, "
                f"got {self.bounds}"
            )
        object.__setattr__(self, "bounds", (0.0, 1.0))

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

    def seen_as_pass_fail(self) -> Metric:
        """Return it as a metric of which every outcome so far is 0 or 1, though nobody declared that."""
        metric = copy(self)
        object.__setattr__(metric, "kind", PASS_FAIL)
        object.__setattr__(metric, "bounds", (0.0, 1.0))
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
    def pass_fail(self) -> bool:
        """True if every outcome is 0 or 1."""
        return self.kind == PASS_FAIL

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
    written = text.strip() if isinstance(text, str) else ""
    number = checks.numeral(written[:-1].strip()) if written.endswith("%") else None
    if number is None or number < 0:
        raise InvalidInput(f"{what} must be a number or a percentage such as '2%', got {checks.got(text)}")
    return checks.number(what, number, least=0.0) / 100.0


@dataclass(frozen=True)
class Units:
    """How values are turned into what algorithms compute in: R sums of L metrics, or without trade-offs the metrics."""

    logs: BoolArray | None  # (L,) whether a metric is compared by its logarithm; None: none is
    signs: FloatArray  # (L,) 1 for max, -1 for min
    divisors: FloatArray  # (L,) by what metrics are divided, on the scale on which they are compared
    ones: FloatArray  # (R,) what is 1 for the algorithm, on the same scale
    eps: FloatArray  # (R,) for the algorithm
    weights: FloatArray | None = None  # (R, L) of metrics, oriented and divided, in the sums; None: no trade-offs
    shares: FloatArray | None = None  # (L, R) of sums in the metrics: what undoes the weights

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
        """Turn values in the user's units (..., L) into what algorithms compute in (..., R)."""
        return self.directed(self.compared(values))

    def directed(self, compared: FloatArray) -> FloatArray:
        """Turn compared values, or parameters of these, into what algorithms compute in."""
        return self.summed(self.divided(compared))

    def divided(self, compared: FloatArray) -> FloatArray:
        """Turn compared values into what is summed: oriented, and divided by what does not matter."""
        return np.ascontiguousarray(compared * (self.signs / self.divisors))

    def summed(self, divided: FloatArray, high: FloatArray | None = None) -> FloatArray:
        """Return the sums of metrics, or the lower ends of what they may be from `divided` to `high`."""
        return divided if self.weights is None else tradeoffs.sums(self.weights, divided, high)

    def undirected(self, values: FloatArray) -> FloatArray:
        """Turn what algorithms compute in into compared values."""
        return self.leads(values, values) * self.signs

    def leads(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Turn leads (..., R) from `low` to `high` into the lower ends of those in metrics, as these are compared."""
        return (low if self.shares is None else tradeoffs.sums(self.shares, low, high)) * self.divisors

    def reach(self, radii: FloatArray) -> FloatArray:
        """Turn half-widths of intervals (..., R) into those of the metrics, as they are compared."""
        return radii * self.divisors if self.shares is None else -self.leads(-radii, radii)

    def spread(self, known: FloatArray) -> FloatArray:
        """Turn noise scales of compared values, or how far these may be apart, into those that algorithms compute in.

        The noise of a sum is at most that of its parts together, however these depend on each other.
        """
        divided = known / self.divisors
        return divided if self.weights is None else tradeoffs.sums(np.abs(self.weights), divided)

    def whole(self, there: BoolArray) -> BoolArray:
        """Return which sums have all they are made of, by which metrics are there (..., L)."""
        return there if self.weights is None else ~(~there[..., None, :] & (self.weights != 0.0)).any(axis=-1)

    def fewest(self, counts: IntArray) -> IntArray:
        """Return how often there was all that a sum is made of, at most, by how often metrics were there (..., L)."""
        if self.weights is None:
            return counts
        fewest: IntArray = np.where(self.weights != 0.0, counts[..., None, :], counts.max()).min(axis=-1)
        return fewest


@dataclass(frozen=True)
class Blocks:
    """What all options are measured on: prompts, files, rounds. On the same block they are compared."""

    names: tuple[str, ...] = ()  # none: there is no end of them
    target: str = "list"  # one of TARGETS
    passing: bool = False  # a block that an option has missed is gone, as a stretch of time is
    sample: bool = False  # the list is a random sample of a population, which a second reading is about
    repeats: int = (
        1  # if above 1, names are those of answers, so many of each block, and the answer is about the blocks
    )

    def __post_init__(self) -> None:
        checks.one_of("target of blocks", self.target, TARGETS)
        if not isinstance(self.sample, bool) or (self.sample and not self.listed):
            raise InvalidInput(
                f"sample of blocks must be True or False, and left out where target is 'population', which says that "
                f"they are a sample: got {checks.got(self.sample)} and {self.target!r}"
            )
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
    tradeoffs: tuple[str, ...] | FloatArray | None = None  # "1 ms <= 3 MB", or weights (R, L); see tradeoffs.py
    on_failure: str = VOID  # one of ON_FAILURE
    own_units: bool = False  # metrics share their unit, which is kept; else what does not matter is the unit of each
    of: str = "a study"  # whose statement it is, for messages

    def __post_init__(self) -> None:
        _unique(self.arms, "arm", self.of)
        _unique([metric.name for metric in self.metrics], "metric", self.of)
        K, L = len(self.arms), len(self.metrics)
        if self.model not in MODELS:
            raise InvalidInput(
                f"model of {self.of} must be 'none', 'linear' or 'logistic', got {checks.got(self.model)}"
            )
        if self.model != "none" and self.contexts is None:
            raise InvalidInput(
                f"model of {self.of} must be 'none' where contexts are not given, got {checks.got(self.model)}"
            )
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
        self._set(tradeoffs=tradeoffs.read(self.tradeoffs, self.of))
        self._check_tradeoffs()
        self._check_success()
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
            raise InvalidInput(
                f"model of {self.of} must be 'none' where there are blocks, got {checks.got(self.model)}"
            )

    def _check_success(self) -> None:
        checks.one_of(f"on_failure of {self.of}", self.on_failure, ON_FAILURE)
        if self.on_failure == VOID:
            return
        last = self.metrics[-1]
        if (last.name, last.direction, last.bounds) != (SUCCESS, "max", (0.0, 1.0)) or len(self.metrics) < 2:
            raise InvalidInput(
                f"metrics of {self.of} with on_failure='measure' must end with {SUCCESS!r}, after at least one other"
            )
        if self.blocks is None or not self.blocks.rounds or self.goal != "practical" or self.tradeoffs is not None:
            raise InvalidInput(
                f"on_failure of {self.of} must be 'void' unless options are measured in rounds, with goal 'practical' "
                "and without tradeoffs, got 'measure'"
            )

    @property
    def metric_shares(self) -> FloatArray | None:
        """What of delta is for each metric (L,); None: even."""
        if self.on_failure == VOID:
            return None
        others = len(self.metrics) - 1
        return np.array([(1.0 - SHARE_OF_SUCCESS) / others] * others + [SHARE_OF_SUCCESS])

    def without_success(self) -> Statement:
        """Return it as long as no trial has failed: without the share of successes."""
        return replace(self, metrics=self.metrics[:-1], sigma=self.sigma[..., :-1], on_failure=VOID)

    def _check_tradeoffs(self) -> None:
        weights = self.weights
        if weights is None:
            return
        if self.model == "logistic":
            raise InvalidInput(f"tradeoffs of {self.of} must be left out with model='logistic': a sum is not 0 or 1")
        for row, margin in zip(weights, margins(weights, self._tolerated).tolist(), strict=True):
            if margin < 0.0:
                raise InvalidInput(
                    f"eps of {self.of} must be such that more than all of it is better in every sum of its tradeoffs, "
                    f"got {margin:.3g} in {tradeoffs.named(row, self.metrics)}"
                )

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
    def weights(self) -> FloatArray | None:
        """Weights (R, L) of the metrics, larger is better, in what options are judged by; None: no trade-offs."""
        return None if self.tradeoffs is None else tradeoffs.weights_of(self.tradeoffs, self.metrics, self.of)

    @property
    def judged_by(self) -> tuple[Metric, ...]:
        """What options are judged by: the metrics, or where there are trade-offs sums of them."""
        return judged_by(self.metrics, self.weights)

    @property
    def _tolerated(self) -> FloatArray:
        """What does not matter in each metric (L,), as it is compared."""
        return np.array([metric.tolerance for metric in self.metrics])

    @property
    def units(self) -> Units:
        """How values are turned into what algorithms compute in: what does not matter is 1, or `own_units`."""
        weights, tolerated = self.weights, self._tolerated
        logs = np.array([metric.relative for metric in self.metrics])
        divisors = np.where((tolerated > 0) & (not self.own_units), tolerated, 1.0)
        ones, eps = divisors, tolerated / divisors
        shares = None
        if weights is not None:
            summed = margins(weights, tolerated)
            ones = np.where((summed > 0) & (not self.own_units), summed, 1.0)
            eps = summed / ones
            weights = weights * divisors / ones[:, None]
            shares = tradeoffs.undone(weights)
        signs = np.array([metric.sign for metric in self.metrics])
        return Units(logs if logs.any() else None, signs, divisors, ones, eps, weights, shares)

    @property
    def bounds(self) -> FloatArray | None:
        """The lowest and highest value (R, 2) of what algorithms compute in; infinite where unknown."""
        if all(metric.bounds is None for metric in self.metrics):
            return None
        units = self.units
        low, high = np.sort([units.divided(end) for end in _bounds(self.metrics).T], axis=0)
        return np.column_stack([units.summed(low, high), units.summed(high, low)]) + 0.0  # no negative zero

    @property
    def n_list(self) -> float:
        """How many blocks the list has that the answer is about; infinite if it is about no list."""
        return float(len(self.blocks.names)) if self.blocks is not None and self.blocks.listed else math.inf

    @property
    def spans(self) -> FloatArray | None:
        """The largest difference of two arms on a block (R,), as algorithms compute; infinite where unknown."""
        return None if self.blocks is None else self.units.spread(_spans(self.metrics))

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


def judged_by(metrics: tuple[Metric, ...], weights: FloatArray | None) -> tuple[Metric, ...]:
    """Return what options are judged by: metrics, or sums of them (R, L), with what is known of these.

    >>> time, size = Metric("time", "min", eps=1, unit="ms"), Metric("size", "min", eps=2, unit="MB", exact=True)
    >>> [(each.name, each.unit, each.eps) for each in judged_by((time, size), np.array([[3.0, 1.0], [0.0, 1.0]]))]
    [('3 time + size', 'MB', 5.0), ('size', 'MB', 2)]
    """
    return metrics if weights is None else tuple(_summed(metrics, row) for row in weights)


def _summed(metrics: tuple[Metric, ...], weights: FloatArray) -> Metric:
    """Return a sum of metrics as people see it, in the unit of the one whose weight is 1."""
    parts = [metric for metric, weight in zip(metrics, weights, strict=True) if weight]
    if len(parts) == 1 and weights.max() > 0.0:
        return parts[0]
    sign, relative = tradeoffs.sign_of(weights, metrics), parts[0].relative
    signed = sign * weights * [metric.sign for metric in metrics]
    low, high = _bounds(metrics).T
    ends = [float(tradeoffs.sums(signed[None], *each)[0]) for each in ((low, high), (high, low))]
    span = float(tradeoffs.sums(np.abs(weights)[None], _spans(metrics))[0])
    by_ratio = math.isfinite(span) and any(metric.ratio is not None for metric in parts)
    eps = float(margins(weights[None], np.array([metric.tolerance for metric in metrics]))[0])
    return Metric.stored(
        tradeoffs.named(weights, metrics),
        ""
        if relative
        else next(metric.unit for metric, weight in zip(metrics, weights, strict=True) if abs(weight) == 1.0),
        direction="max" if sign > 0 else "min",
        eps=None if eps == 0.0 else f"{100 * math.expm1(eps):.15g}%" if relative else eps,
        bounds=None if not np.isfinite(ends).all() else tuple(map(_power, ends)) if relative else tuple(ends),
        exact=all(metric.exact for metric in parts),
        scale="log" if relative else "linear",
        ratio=_power(span) if by_ratio else None,
    )


def _power(logarithm: float) -> float:
    """Return a number by its logarithm, or the largest or least there is, about."""
    return math.exp(min(max(logarithm, -700.0), 700.0))


def margins(weights: FloatArray | None, tolerated: FloatArray) -> FloatArray:
    """Return what does not matter in each sum, by what does not in each metric (..., L); rounding is no margin."""
    if weights is None:
        return tolerated
    summed = tradeoffs.sums(weights, tolerated)
    return np.where(np.abs(summed) <= 1e-12 * tradeoffs.sums(np.abs(weights), tolerated), 0.0, summed)


def _bounds(metrics: Sequence[Metric]) -> FloatArray:
    """The lowest and highest value of each metric (L, 2), as it is compared; infinite where unknown."""
    return np.array(
        [(-np.inf, np.inf) if metric.bounds is None else metric.compared(np.array(metric.bounds)) for metric in metrics]
    )


def _spans(metrics: Sequence[Metric]) -> FloatArray:
    """The largest difference of two arms on a block in each metric (L,), as it is compared; infinite where unknown."""
    bounds = _bounds(metrics)
    ranges = np.where(np.isfinite(bounds).all(axis=1), bounds[:, 1] - bounds[:, 0], np.inf)
    ratios = [np.inf if metric.ratio is None else np.log(metric.ratio) for metric in metrics]
    return np.where(np.isfinite(ratios), ratios, ranges)


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
        both = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
        return both and np.array_equal(one, other, equal_nan=True)
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
