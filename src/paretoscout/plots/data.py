"""What the figures show, as plain numbers: everything is decided here, `figures.py` only draws it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidInput, UnknownName
from ..kernels.arrays import FloatArray, IntArray
from ..shown import heading
from ..simulation.results import Result
from ..statement import Metric
from ..tradeoffs import sums, undone

if TYPE_CHECKING:
    from ..verdicts import VerdictTable


#: A log axis suits estimates of which the largest is so many times the smallest: compared by ratios, by differences.
LOG_RELATIVE, LOG_LINEAR = 10.0, 20.0
#: An interval that reaches further than this share of the distance between all estimates may go beyond the picture.
WIDEST = 0.4
LEFT_EARLY = "Options that left early show values of an earlier time than the others."


#: Of the line around what the front dominates with trade-offs, each straight part is drawn as so many.
FINE = 24
#: Of more options, those that are dominated are dots without names and intervals.
CROWD = 400


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

    def share(self, low: float, high: float) -> float:
        """Return which share of the axis lies between two of its values."""
        if self.log:
            return float(np.log(high / low) / np.log(self.high / self.low))
        return (high - low) / (self.high - self.low)

    @property
    def worst(self) -> float:
        """The end where nobody wants to be."""
        return self.low if self.metric.direction == "max" else self.high


@dataclass(frozen=True)
class Box:
    """An arm that was measured: its estimates and its intervals as in the table, one number per axis."""

    arm: str
    verdict: str
    centre: tuple[float, ...]  # the estimates; where there is no interval yet, the means so far
    low: tuple[float, ...]  # infinite: that end is not known
    high: tuple[float, ...]
    known: bool = True  # False: of a shown metric, there is no interval yet
    count: int = 0  # samples

    @property
    def dot(self) -> Box:
        """The same without its intervals."""
        return replace(self, low=self.centre, high=self.centre)


@dataclass(frozen=True, eq=False)
class FrontData:
    """A table of verdicts as a picture of two metrics, or of one."""

    axes: tuple[Axis, ...]  # x and y; only x where the table has one metric
    boxes: tuple[Box, ...]  # in the table's order; best first where there is one axis
    stairs: FloatArray  # (n, 2) polyline around what the front dominates, from worst x to worst y
    behind: FloatArray  # (n, 2) polygon of what the front dominates
    sums: bool  # whether options are judged by sums of metrics
    unmeasured: tuple[str, ...]  # arms of which a shown metric is not known at all
    hidden: tuple[str, ...]  # metrics that are not shown
    title: str  # the answer
    counted: str  # how much was measured: "812 samples"
    guarantee: str
    notes: tuple[str, ...]  # what to know when looking at the values


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
    known = [table[arm].estimates for arm in table.arms]  # as the table shows it, so that both agree
    told = [[estimates[metric.name] for metric in metrics] for estimates in known]
    boxes = [
        box
        for arm, verdict, estimates, count in zip(table.arms, table.verdicts, told, table.counts.tolist(), strict=True)
        if (box := _box(arm, verdict, estimates, count)) is not None
    ]
    if len(shown) == 2 and len(boxes) > CROWD:
        boxes = [box.dot if box.verdict == "dominated" else box for box in boxes]
    axes = tuple(
        _axis(metric, *(np.array([getattr(box, end)[i] for box in boxes]) for end in ("centre", "low", "high")))
        for i, metric in enumerate(metrics)
    )
    if len(axes) == 1:
        boxes.sort(key=lambda box: box.centre[0], reverse=metrics[0].direction == "max")
    drawn = {box.arm for box in boxes}
    samples = int(table.counts.sum())
    front = [box.centre for box in boxes if box.verdict == "front"]
    stairs, behind = _stairs(front, axes) if table.weights is None else _slopes(front, axes, table, shown)
    return FrontData(
        axes=axes,
        boxes=tuple(boxes),
        stairs=stairs,
        behind=behind,
        sums=table.weights is not None,
        unmeasured=tuple(arm for arm in table.arms if arm not in drawn),
        hidden=tuple(metric.name for metric in table.metrics if metric not in metrics),
        title=answer(table.verdicts),
        counted=f"{samples:,} {table.counted if samples != 1 else table.counted.removesuffix('s')}",
        guarantee=str(table.guarantee),
        notes=(*_below(table.arms, metrics, told), *_earlier(table), *filter(None, [table.beside])),
    )


def answer(verdicts: Sequence[str]) -> str:
    """Say what came out, in a few words.

    >>> answer(["front", "front", "dominated"]), answer(["front", "undecided", "same"])
    ('2 of 3 options are worth having', '1 of 3 options is on the front, 1 is undecided, 1 is the same as another')
    >>> answer(["undecided", "undecided"]), answer(["dominated", "undecided"])
    ('2 options, none is decided yet', 'None of 2 options is on the front yet, 1 is undecided')
    """
    counted, n = Counter(verdicts), len(verdicts)
    options = f"{n:,} option{'s' if n > 1 else ''}"
    found, left, same = counted["front"], counted["undecided"], counted["same"]
    if left == n:
        return f"{options}, {'none is' if n > 1 else 'not'} decided yet"
    if found:
        said = [f"{found:,} of {options} {_are(found)} {'on the front' if left else 'worth having'}"]
    else:
        said = [f"None of {options} is {'on the front yet' if left else 'worth having'}"]
    said += [f"{left:,} {_are(left)} undecided"] if left else []
    said += [f"{same:,} {_are(same)} the same as another"] if same else []
    return ", ".join(said)


def listed(names: Sequence[str], most: int = 6) -> str:
    """Name some things; of many, only the first.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], most=1)
    ('a, b, c', 'a and 2 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


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


def _box(arm: str, verdict: str, estimates: Sequence[dict[str, Any]], count: int) -> Box | None:
    """Return what the table shows of an arm; None where a metric was not measured at all."""
    ends = [_ends(estimate) for estimate in estimates]
    if not np.isfinite([centre for centre, _, _ in ends]).all():
        return None
    known = all(estimate["high"] is not None for estimate in estimates)
    centre, low, high = zip(*ends, strict=True)
    return Box(arm, verdict, centre, low, high, known, count)


def _ends(estimate: dict[str, Any]) -> tuple[float, float, float]:
    """Return an estimate and the ends of its interval; a value too small to be measured stands at its upper end."""
    value, low, high = (estimate[key] for key in ("value", "low", "high"))
    if estimate["censored"]:
        return high, -np.inf, high
    if low is None:
        return np.nan if value is None else value, -np.inf, np.inf
    return value, low, high


def _below(arms: Sequence[str], metrics: Sequence[Metric], told: Sequence[Sequence[dict[str, Any]]]) -> list[str]:
    """Say which values are smaller than they look."""
    found = {
        metric.name: [arm for arm, estimates in zip(arms, told, strict=True) if estimates[i]["censored"]]
        for i, metric in enumerate(metrics)
    }
    return [
        f"Too small to be measured, so smaller than shown: {name} of {listed(low)}."
        for name, low in found.items()
        if low
    ]


def _earlier(table: VerdictTable) -> list[str]:
    """Say where values are not of one time, so that verdicts do not follow from what is shown."""
    said = []
    changing = dict.fromkeys(concern.metric for concern in table.concerns if concern.kind in ("drift", "spells"))
    if changing and not {"dominated", "same"}.isdisjoint(table.verdicts):
        said += [f"Values change as time goes on ({', '.join(changing)}).", LEFT_EARLY]
    if stale := table.contradicted:
        which = "verdict of {}, which rests" if len(stale) == 1 else "verdicts of {}, which rest"
        said.append(f"The values shown contradict the {which.format(listed(stale))} on earlier values.")
    return said


def _axis(metric: Metric, centre: FloatArray, low: FloatArray, high: FloatArray) -> Axis:
    """Choose scale and ends: all estimates are there, and all intervals but those much wider than others."""
    if not len(centre):
        return Axis(metric, 0.0, 1.0, log=False)
    # On a log axis an interval that reaches 0 goes on beyond the picture; not many may.
    reach = low[np.isfinite(low)] <= 0
    suits = metric.relative or (metric.bounds is None and (not reach.any() or 2 * int(reach.sum()) < len(reach)))
    log = suits and spans(centre, LOG_RELATIVE if metric.relative else LOG_LINEAR)
    if log:
        centre, high = np.log10(centre), np.log10(high)
        low = np.log10(low, where=low > 0, out=np.full(len(low), -np.inf))
    half = np.maximum(high - centre, centre - low)
    usual = float(np.median(half[np.isfinite(half)])) if np.isfinite(half).any() else 0.0
    fits = half <= max(WIDEST * np.ptp(centre), 2.0 * usual)
    start, end = np.append(low[fits], centre).min(), np.append(high[fits], centre).max()
    margin = 0.08 * (end - start) or (0.1 if log else 0.1 * abs(start)) or 1.0
    start, end = float(start - margin), float(end + margin)
    if log:
        return Axis(metric, 10.0**start, 10.0**end, log=True)
    if metric.bounds is not None:  # there is nothing beyond them; a marker on them is shown whole
        room = 0.03 * (end - start)
        start, end = max(start, metric.bounds[0] - room), min(end, metric.bounds[1] + room)
    return Axis(metric, start, end, log=False)


def _stairs(points: Sequence[tuple[float, ...]], axes: Sequence[Axis]) -> tuple[FloatArray, FloatArray]:
    """Return the line around what points dominate, and what lies behind it."""
    if len(axes) < 2 or not points:
        return np.empty((0, 2)), np.empty((0, 2))
    worst = [axis.worst for axis in axes]
    corners = _corners(points, [axis.metric.sign for axis in axes], worst)
    return corners, np.vstack([corners, worst])


def _corners(points: Sequence[Sequence[float]], signs: Sequence[float], worst: Sequence[float]) -> FloatArray:
    steps: list[Sequence[float]] = []
    # From the best x to the worst: a point is a step if its y is better than all before. Others (equal points,
    # or arms that are on the front for a metric that is not shown) lie on or below the stairs.
    for point in sorted(points, key=lambda point: (signs[0] * point[0], signs[1] * point[1]), reverse=True):
        if not steps or signs[1] * (point[1] - steps[-1][1]) > 0:
            steps.append(point)
    steps.reverse()
    corners = [(worst[0], steps[0][1])]
    for step, below in zip(steps, [*(step[1] for step in steps[1:]), worst[1]], strict=True):
        corners += [(step[0], step[1]), (step[0], below)]
    return np.array(corners)


def _slopes(
    points: Sequence[tuple[float, ...]], axes: Sequence[Axis], table: VerdictTable, shown: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """The same with trade-offs: stairs in the two sums of two metrics, as they look in the metrics; else nothing."""
    weights = table.weights
    if weights is None or weights.shape != (2, 2) or len(axes) < 2 or not points:
        return np.empty((0, 2)), np.empty((0, 2))
    low, high = (np.array([getattr(axis, end) for axis in axes]) for end in ("low", "high"))
    metrics = [axis.metric for axis in axes]

    def judged(values: Sequence[Sequence[float]]) -> FloatArray:
        compared = np.column_stack([metric.compared(np.array(values)[:, k]) for k, metric in enumerate(metrics)])
        return table.as_judged(compared[:, np.argsort(shown)])

    def drawn(corners: FloatArray) -> FloatArray:
        along = np.linspace(0.0, 1.0, FINE, endpoint=False)[:, None]
        fine = np.vstack([*(start + along * (end - start) for start, end in pairwise(corners)), corners[-1:]])
        compared = sums(undone(weights), fine)[:, list(shown)] * [metric.sign for metric in metrics]
        with np.errstate(over="ignore"):
            return np.column_stack([metric.natural(compared[:, k]) for k, metric in enumerate(metrics)])

    frame = judged([(a, b) for a in (low[0], high[0]) for b in (low[1], high[1])])
    worst = frame.min(axis=0) - np.ptp(frame, axis=0)  # beyond the picture
    corners = _corners(judged(points).tolist(), (1.0, 1.0), worst.tolist())
    line = drawn(corners)
    inside = np.flatnonzero(((line >= low) & (line <= high)).all(axis=1))
    if not len(inside):
        return np.empty((0, 2)), np.empty((0, 2))
    ends = [
        _crossing(line[a], line[b], low, high) for a, b in ((inside[0], inside[0] - 1), (inside[-1], inside[-1] + 1))
    ]
    there = np.vstack([ends[0], line[inside[0] : inside[-1] + 1].clip(low, high), ends[1]])
    behind = _within(drawn(np.vstack([corners, worst, corners[:1]])), low, high)
    return there, behind


def _crossing(inside: FloatArray, outside: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return where the way from a point in a frame to one outside crosses it."""
    step = outside - inside
    room = np.where(step > 0.0, high - inside, low - inside)
    share = np.divide(room, step, out=np.full(len(step), np.inf), where=step != 0.0).min()
    return inside + min(share, 1.0) * step


def _within(polygon: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return what of a polygon lies within a frame, side by side (Sutherland and Hodgman)."""
    for column, limit, sign in ((0, low[0], 1.0), (0, high[0], -1.0), (1, low[1], 1.0), (1, high[1], -1.0)):
        kept: list[FloatArray] = []
        for start, end in zip(np.roll(polygon, 1, axis=0), polygon, strict=True):
            off, away = sign * (start[column] - limit), sign * (end[column] - limit)
            if (off < 0.0) != (away < 0.0):
                kept.append(start + (end - start) * (off / (off - away)))
            if away >= 0.0:
                kept.append(end)
        polygon = np.array(kept).reshape(-1, 2)
    return polygon


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
