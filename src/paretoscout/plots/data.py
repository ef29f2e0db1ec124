"""What the figures show, as plain numbers: everything is decided here, `figures.py` only draws it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidInput, UnknownName
from ..kernels.arrays import FloatArray, IntArray
from ..shown import heading
from ..simulation.results import Result
from ..statement import Metric

if TYPE_CHECKING:
    from ..verdicts import VerdictTable


@dataclass(frozen=True)
class Axis:
    """One metric as an axis of the figure. `low` and `high` are its ends."""

    metric: Metric
    low: float
    high: float
    log: bool

    @property
    def label(self) -> str:
        """What is measured, and which way is better: "time (ms), lower is better"."""
        named = heading(self.metric.name, self.metric.unit)
        return f"{named}, {'higher' if self.metric.direction == 'max' else 'lower'} is better"

    @property
    def worst(self) -> float:
        """The end where nobody wants to be."""
        return self.low if self.metric.direction == "max" else self.high


@dataclass(frozen=True)
class Box:
    """An arm that was measured: its estimates and its confidence box, one number per axis."""

    arm: str
    verdict: str
    centre: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class FrontData:
    """A table of verdicts as a picture of two metrics, or of one."""

    axes: tuple[Axis, ...]  # x and y; only x where the table has one metric
    boxes: tuple[Box, ...]  # in the table's order; best first where there is one axis
    stairs: FloatArray  # (n, 2) polyline around what the front dominates, from worst x to worst y
    unmeasured: tuple[str, ...]  # arms of which a shown metric is not known at all
    hidden: tuple[str, ...]  # metrics that are not shown
    title: str
    guarantee: str


@dataclass(frozen=True, eq=False)
class BoxData:
    """The replicates of one result, for a box plot."""

    label: str
    problem: str
    samples: IntArray
    regret: FloatArray
    success_rate: float
    stopped_rate: float
    replicates: int


@dataclass(frozen=True, eq=False)
class RegretData:
    """Cumulative regret of one result by round, until its last replicate stopped."""

    label: str
    rounds: IntArray
    mean: FloatArray
    low: FloatArray  # 10% quantile of the replicates
    high: FloatArray  # 90% quantile


def front_data(table: VerdictTable, x: str | None = None, y: str | None = None) -> FrontData:
    """Return boxes, staircase and axes of two metrics of a table: the first two unless told otherwise.

    >>> import numpy as np
    >>> from paretoscout.guarantee import Guarantee
    >>> from paretoscout.statement import Metric
    >>> from paretoscout.verdicts import VerdictTable
    >>> table = VerdictTable(
    ...     arms=("a", "b"), metrics=(Metric("quality"), Metric("cost", "min")), verdicts=("front", "front"),
    ...     rivals=(None, None), centres=np.array([[1.0, 3.0], [2.0, 4.0]]), widths=np.full((2, 2), 0.5),
    ...     counts=np.array([9, 9]), guarantee=Guarantee("front", 0.95, (), ("sigma given",)),
    ... )
    >>> data = front_data(table)
    >>> data.axes[1].label
    'cost, lower is better'
    >>> data.stairs[1:-1].tolist()
    [[1.0, 3.0], [1.0, 4.0], [2.0, 4.0]]
    """
    shown = _columns(table.metrics, x, y)
    metrics = [table.metrics[column] for column in shown]
    centre, low, high = (ends[:, shown] for ends in (table.estimates, table.low, table.high))
    measured = np.asarray(np.isfinite(high).all(axis=1))
    axes = tuple(
        _axis(metric, *(ends[measured, i] for ends in (centre, low, high))) for i, metric in enumerate(metrics)
    )
    boxes = [
        Box(table.arms[k], table.verdicts[k], *(tuple(map(float, ends[k])) for ends in (centre, low, high)))
        for k in np.flatnonzero(measured)
    ]
    if len(axes) == 1:
        boxes.sort(key=lambda box: box.centre[0], reverse=metrics[0].direction == "max")
    title = table.tally()
    if len(table.metrics) > 2:
        title = f"{metrics[0].name} and {metrics[1].name} (2 of {len(table.metrics)} metrics): {title}"
    return FrontData(
        axes=axes,
        boxes=tuple(boxes),
        stairs=_stairs([box.centre for box in boxes if box.verdict == "front"], axes),
        unmeasured=tuple(arm for arm, known in zip(table.arms, measured, strict=True) if not known),
        hidden=tuple(metric.name for metric in table.metrics if metric not in metrics),
        title=title,
        guarantee=str(table.guarantee),
    )


def box_data(results: Result | Sequence[Result]) -> list[BoxData]:
    """Return what each replicate of each result needed, under labels that tell the results apart."""
    results = _listed(results)
    return [
        BoxData(
            label=label,
            problem=result.problem,
            samples=result.samples,
            regret=result.regret,
            success_rate=float(result.success.mean()),
            stopped_rate=float(result.stopped.mean()),
            replicates=len(result.samples),
        )
        for label, result in zip(_labels(results), results, strict=True)
    ]


def regret_data(results: Result | Sequence[Result]) -> list[RegretData]:
    """Return mean and 10% to 90% quantiles of the cumulative regret of each result, round by round."""
    results = _listed(results)
    curves = []
    for label, result in zip(_labels(results), results, strict=True):
        # Curves are constant after stopping: the first stored round from the end on holds the values of the end.
        last = int(result.samples.max())
        cut = min(int(np.searchsorted(result.regret_rounds, last)), len(result.regret_rounds) - 1)
        values = result.regret_curves[:, : cut + 1]
        low, high = np.quantile(values, [0.1, 0.9], axis=0)
        rounds = np.append(result.regret_rounds[:cut], last)
        curves.append(RegretData(label, rounds, values.mean(axis=0), low, high))
    return curves


def spans(values: Sequence[float] | FloatArray | IntArray, factor: float = 10.0) -> bool:
    """Tell whether a log axis suits the values: all positive, and the largest `factor` times the smallest.

    >>> spans([7, 234]), spans([7, 50]), spans([0, 100])
    (True, False, False)
    """
    array = np.asarray(values, dtype=float)
    return bool(array.size > 0 and array.min() > 0 and array.max() > factor * array.min())


def _columns(metrics: Sequence[Metric], x: str | None, y: str | None) -> list[int]:
    names = [metric.name for metric in metrics]
    for name in (x, y):
        if name is not None and name not in names:
            raise UnknownName("metric", name, names)
    if x is not None and x == y:
        raise InvalidInput(f"x and y of a figure must be two metrics, got {x!r} twice")
    free = [name for name in names if name not in (x, y)]
    if x is None and (free or y is None):
        x = free.pop(0)
    if y is None and free:
        y = free.pop(0)
    return [names.index(name) for name in (x, y) if name is not None]


def _axis(metric: Metric, centre: FloatArray, low: FloatArray, high: FloatArray) -> Axis:
    """Choose scale and ends. An arm that is hardly known must not squeeze the others: its box is cut off."""
    if not len(centre):
        return Axis(metric, 0.0, 1.0, log=False)
    log = bool(low.min() > 0) and spans(centre, 20.0)
    if log:
        centre, low, high = np.log10(centre), np.log10(low), np.log10(high)
    half = np.maximum(high - centre, centre - low)
    fits = half <= max(np.ptp(centre), 2.0 * float(np.median(half)))
    start = min(centre.min(), low[fits].min())
    end = max(centre.max(), high[fits].max())
    margin = 0.08 * (end - start) or 0.1 * abs(start) or 1.0
    start, end = float(start - margin), float(end + margin)
    return Axis(metric, 10.0**start, 10.0**end, log=True) if log else Axis(metric, start, end, log=False)


def _stairs(points: Sequence[tuple[float, ...]], axes: Sequence[Axis]) -> FloatArray:
    if len(axes) < 2 or not points:
        return np.empty((0, 2))
    signs = [axis.metric.sign for axis in axes]
    steps: list[tuple[float, ...]] = []
    # From the best x to the worst: a point is a step if its y is better than all before. Others (equal points,
    # or arms that are on the front for a metric that is not shown) lie on or below the stairs.
    for point in sorted(points, key=lambda point: (signs[0] * point[0], signs[1] * point[1]), reverse=True):
        if not steps or signs[1] * (point[1] - steps[-1][1]) > 0:
            steps.append(point)
    steps.reverse()
    corners = [(axes[0].worst, steps[0][1])]
    for step, below in zip(steps, [*(step[1] for step in steps[1:]), axes[1].worst], strict=True):
        corners += [(step[0], step[1]), (step[0], below)]
    return np.array(corners)


def _listed(results: Result | Sequence[Result]) -> list[Result]:
    results = [results] if isinstance(results, Result) else list(results)
    if not results:
        raise InvalidInput("results of a figure must be at least one, got none")
    for result in results:
        if not len(result.samples):
            raise InvalidInput(f"results of a figure must have replicates, got {result!r}")
    return results


def _labels(results: Sequence[Result]) -> list[str]:
    """Name each result by its own label, and by what sets it apart from its namesakes."""
    labels = []
    for result in results:
        namesakes = [_facts(other) for other in results if other.label == result.label]
        differing = [
            f"{key}={_text(value)}"
            for key, value in _facts(result).items()
            if any(facts.get(key) != value for facts in namesakes)
        ]
        labels.append(" ".join([result.label, *differing]))
        if len({other.problem for other in results}) > 1:
            labels[-1] += f" on {result.problem}"
    counted = Counter(labels)
    return [
        f"{label} #{labels[: i + 1].count(label)}" if counted[label] > 1 else label for i, label in enumerate(labels)
    ]


def _facts(result: Result) -> dict[str, Any]:
    return {"eps": result.eps.tolist(), "delta": result.delta, "seed": result.seed}


def _text(value: Any) -> str:
    if isinstance(value, list):
        return _text(value[0]) if len(set(value)) == 1 else ",".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
