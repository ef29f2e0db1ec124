"""Drawing, with matplotlib's object interface: nothing global is touched and no screen is needed."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.arrays import BoolArray, FloatArray
from ..shown import counted, line
from ..simulation.results import Result
from .data import Axis, BoxData, FrontData, RegretData, box_data, front_data, regret_data, spans
from .style import (
    BLUE,
    COLOURS,
    DASHES,
    GREY,
    INK,
    PALE,
    SHADE,
    VERMILION,
    bare,
    label,
    log_axis,
    new_figure,
    plain_numbers,
    saved,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    from ..verdicts import VerdictTable

#: How each verdict looks, in the order in which names get their places. Later ones are drawn below.
LOOKS: dict[str, dict[str, Any]] = {
    "front": {
        "box": {"facecolor": "#0072b226", "edgecolor": BLUE, "linewidth": 1.1},
        "marker": {"marker": "*", "facecolor": BLUE, "edgecolor": "white", "s": 140, "linewidths": 0.9},
        "name": {"color": "#00466e", "fontweight": "bold"},
    },
    "undecided": {
        "box": {"facecolor": "#d55e0014", "edgecolor": "#d55e0088", "linewidth": 0.9, "hatch": "////"},
        "marker": {"marker": "o", "facecolor": "white", "edgecolor": VERMILION, "s": 26, "linewidths": 1.3},
        "name": {"color": "#9c4400"},
    },
    "dominated": {
        "box": {"facecolor": "none", "edgecolor": "#cfcfcf", "linewidth": 0.8},
        "marker": {"marker": "x", "color": "#8a8a8a", "s": 18, "linewidths": 1.1},
        "name": {"color": GREY},
    },
}
NAME_SIZE = 8
MOST_NAMES = 40  # more would be a cloud


def front(
    table: VerdictTable,
    *,
    x: str | None = None,
    y: str | None = None,
    path: str | Path | None = None,
    title: str | None = None,
) -> Figure:
    """Draw each arm as a named confidence box, the front as a staircase, and undecided arms hatched.

    table: what is proven of each arm.
    x, y: names of the metrics to show. None: the first two. One metric alone gives a list of intervals.
    path: where to save the picture, ending in .png or .svg. None: nowhere.
    title: shown above the picture. None: how many verdicts there are of each kind.
    """
    data = front_data(table, x, y)
    draw = _plane if len(data.axes) == 2 else _intervals
    return saved(draw(data, title or data.title), path)


def compare(results: Result | Sequence[Result], *, path: str | Path | None = None) -> Figure:
    """Draw samples, regret, and regret round by round, side by side."""
    boxes, curves = box_data(results), regret_data(results)
    figure = new_figure(11.0, max(3.3, 1.6 + 0.5 * len(boxes)))
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1, 1.25])
    _boxes(left, boxes, "samples")
    _boxes(middle, boxes, "regret")
    middle.set_yticks([])
    _curves(right, curves)
    problems = line(", ".join(dict.fromkeys(box.problem for box in boxes)))
    figure.suptitle(problems, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK, parse_math=False)
    return saved(figure, path)


def samples(results: Result | Sequence[Result], *, path: str | Path | None = None) -> Figure:
    """Draw a box plot of the samples that each result's replicates used."""
    return _box_figure(box_data(results), "samples", path)


def regret(results: Result | Sequence[Result], *, path: str | Path | None = None) -> Figure:
    """Draw a box plot of the cumulative regret of each result's replicates."""
    return _box_figure(box_data(results), "regret", path)


def regret_curves(results: Result | Sequence[Result], *, path: str | Path | None = None) -> Figure:
    """Draw cumulative regret round by round: the mean, and where 80% of the replicates lie."""
    data = regret_data(results)
    figure = new_figure(8.0, 5.0)
    _curves(figure.subplots(), data)
    return saved(figure, path)


# The parts


def _plane(data: FrontData, title: str) -> Figure:
    figure = new_figure(8.0, 5.2)
    axes = figure.subplots()
    bare(axes)
    for which, axis in zip("xy", data.axes, strict=True):
        _scale(axes, which, axis)
    if len(data.stairs):
        corner = [axis.worst for axis in data.axes]
        axes.fill(*np.vstack([data.stairs, corner]).T, color=SHADE, linewidth=0, zorder=0)
        axes.plot(*data.stairs.T, color=BLUE, linewidth=1.3, zorder=4)
    for depth, verdict in zip((3, 2, 1), LOOKS, strict=True):
        boxes = [box for box in data.boxes if box.verdict == verdict]
        for box in boxes:
            (x0, y0), (x1, y1) = box.low, box.high
            style = LOOKS[verdict]["box"]
            if any(
                axis.low > low and high > axis.high
                for axis, low, high in zip(data.axes, box.low, box.high, strict=True)
            ):
                style = {**style, "hatch": None}  # it fills the picture: the hatches of the others must still be seen
            axes.fill([x0, x1, x1, x0], [y0, y0, y1, y1], zorder=depth, **style)
        _markers(axes, verdict, [box.centre for box in boxes], depth + 4)
    better = _better(axes, data.axes)
    _header(axes, title, data)
    figure.draw_without_rendering()  # settles where the axes are, on which the places of the names depend
    figure.set_layout_engine("none")
    unnamed = _name_arms(axes, data, np.array([better.get_window_extent().extents]))
    if unnamed:
        _above(axes, f"no room for {counted(unnamed, 'more name')}", 6, x=1, ha="right", fontsize=NAME_SIZE, color=GREY)
    return figure


def _intervals(data: FrontData, title: str) -> Figure:
    figure = new_figure(8.0, min(1.6 + 0.27 * max(len(data.boxes), 2), 100.0))
    axes = figure.subplots()
    bare(axes)
    _scale(axes, "x", data.axes[0])
    axes.set_ylim(len(data.boxes) - 0.4, -0.6)  # the best on top
    names = [_short(box.arm) for box in data.boxes]
    axes.set_yticks(range(len(names)), names, fontsize=9, parse_math=False)
    axes.tick_params("y", length=0)
    axes.spines["left"].set_visible(False)
    for row, (box, name) in enumerate(zip(data.boxes, axes.get_yticklabels(), strict=True)):
        look = LOOKS[box.verdict]
        name.update(look["name"])
        axes.plot([box.low[0], box.high[0]], [row, row], color=look["name"]["color"], alpha=0.6, linewidth=1.4)
    for verdict in LOOKS:
        dots = [(box.centre[0], row) for row, box in enumerate(data.boxes) if box.verdict == verdict]
        _markers(axes, verdict, dots, 3)
    best = next((box.centre[0] for box in data.boxes if box.verdict == "front"), None)
    if best is not None:
        axes.axvline(best, color=BLUE, linewidth=1.0, zorder=0)
        axes.axvspan(best, data.axes[0].worst, color=SHADE, linewidth=0, zorder=-1)
    _header(axes, title, data)
    return figure


def _scale(axes: Axes, which: str, axis: Axis) -> None:
    if axis.log:
        log_axis(axes, which, axis.low, axis.high)
    axes.set(**{f"{which}lim": (axis.low, axis.high)})
    # On the y axis the text is turned, so that the same arrows point down and up.
    arrow = "{} →" if axis.metric.direction == "max" else "← {}"
    label(axes, which, arrow.format(axis.label))


def _markers(axes: Axes, verdict: str, points: Sequence[tuple[float, ...]], depth: int) -> None:
    if points:
        axes.scatter(*zip(*points, strict=True), label=verdict, zorder=depth, **LOOKS[verdict]["marker"])


def _better(axes: Axes, shown: Sequence[Axis]) -> Text:
    right, up = (axis.metric.direction == "max" for axis in shown)
    arrow = {(False, False): "↙", (True, False): "↘", (False, True): "↖", (True, True): "↗"}[right, up]
    return axes.annotate(
        f"better {arrow}" if right else f"{arrow} better",
        (right, up),
        xytext=(-6 if right else 6, -6 if up else 6),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="right" if right else "left",
        va="top" if up else "bottom",
        color=PALE,
        fontsize=11,
    )


def _header(axes: Axes, title: str, data: FrontData) -> None:
    """Stack over the axes, from below: the legend, the guarantee and what is not shown, the title."""
    notes = [f"Guarantee: {data.guarantee}"]
    if data.hidden:
        notes.append(
            f"Not shown: {', '.join(data.hidden)}, in which an arm of the front may be better than it looks here"
        )
    if data.unmeasured:
        notes.append(f"Not measured enough to be shown: {textwrap.shorten(', '.join(data.unmeasured), 150)}")
    text = "\n".join(textwrap.fill(line(note), 130) for note in notes)
    if data.boxes:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(-0.01, 1.0),
            ncols=3,
            frameon=False,
            fontsize=8.5,
            labelcolor=INK,
            borderpad=0.2,
            handletextpad=0.2,
            columnspacing=1.2,
        )
    _above(axes, text, 24, fontsize=7.5, color=GREY, linespacing=1.3)
    height = 24 + 7.5 * 1.5 * (text.count("\n") + 1)
    _above(axes, textwrap.fill(line(title), 80), height, fontsize=11, fontweight="bold", color=INK)


def _above(axes: Axes, text: str, points: float, x: float = 0.0, **style: Any) -> None:
    axes.annotate(text, (x, 1), (0, points), "axes fraction", "offset points", va="bottom", parse_math=False, **style)


def _short(name: str) -> str:
    shown = line(name)
    return shown if len(shown) <= 32 else shown[:31] + "…"


# Places for names. All in pixels; a rectangle is (left, bottom, right, top).


def _name_arms(axes: Axes, data: FrontData, taken: FloatArray) -> int:
    """Write the arms' names where there is room, those of the front first; return how many found none."""
    from matplotlib.patheffects import withStroke

    sheet = _Sheet(axes, data, taken)
    order = sorted(range(len(data.boxes)), key=lambda k: list(LOOKS).index(data.boxes[k].verdict))
    unnamed = max(len(order) - MOST_NAMES, 0)
    for k in order[:MOST_NAMES]:
        text = axes.annotate(
            _short(data.boxes[k].arm),
            (data.boxes[k].centre[0], data.boxes[k].centre[1]),
            (0, 0),
            textcoords="offset points",
            arrowprops={"arrowstyle": "-", "color": PALE, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 3},
            fontsize=NAME_SIZE,
            parse_math=False,
            zorder=9,
            path_effects=[withStroke(linewidth=2.0, foreground="white")],
            **LOOKS[data.boxes[k].verdict]["name"],
        )
        extent = text.get_window_extent()
        place = sheet.place(k, np.array([extent.width, extent.height]))
        if place is None:
            text.remove()
            unnamed += 1
        else:
            text.set_position(place[0])
            if text.arrow_patch is not None:
                text.arrow_patch.set_visible(place[1])
    return unnamed


class _Sheet:
    """What is where. A name never touches another or a marker; it avoids boxes and staircase as well as it can."""

    def __init__(self, axes: Axes, data: FrontData, taken: FloatArray) -> None:
        def pixels(points: Any) -> FloatArray:
            return np.asarray(axes.transData.transform(np.reshape(points, (-1, 2))), dtype=float)

        self.point = axes.figure.dpi / 72.0
        self.frame = np.asarray(axes.get_window_extent().extents)
        low, high = pixels([box.low for box in data.boxes]), pixels([box.high for box in data.boxes])
        self.boxes = np.clip(np.hstack([low, high]), self.frame[[0, 1, 0, 1]], self.frame[[2, 3, 2, 3]])
        self.centres = pixels([box.centre for box in data.boxes])
        reach = self.point * np.array([6.0 if box.verdict == "front" else 4.0 for box in data.boxes])[:, None]
        self.markers = np.hstack([self.centres - reach, self.centres + reach])
        self.taken = np.vstack([self.markers, taken])
        start, end = pixels(data.stairs[:-1]), pixels(data.stairs[1:])
        self.steps = np.hstack([np.minimum(start, end) - 1, np.maximum(start, end) + 1])

    def place(self, k: int, size: FloatArray) -> tuple[tuple[float, float], bool] | None:
        """Return a place for the name of arm k, in points from its centre, and whether it needs a line to there."""
        centre, box, area = self.centres[k], self.boxes[k : k + 1], float(size.prod())
        rings = [_around(self.markers[k], gap * self.point, size) for gap in (1, 9, 18, 30, 45, 62)]
        places = np.vstack([*rings, _around(box[0], 3 * self.point, size)])
        nearest = np.clip(centre, places[:, :2], places[:, 2:])
        distance = np.linalg.norm(nearest - centre, axis=1) / self.point
        # A name beside the box of its arm needs no line, unless other boxes are there too.
        beside = _shared(_grown(places, 5 * self.point), self.boxes) > 0  # (places, boxes)
        alone = (_shared(box, self.boxes) > 0).sum() == 1
        lined = (distance > 9) & ~(beside[:, k] & alone)
        dots = np.where(lined[:, None, None], np.linspace(nearest, centre, 10, axis=1)[:, :-1], nearest[:, None])
        dots = dots[:, :, [0, 1, 0, 1]]  # the lines, as rectangles without size
        met = (_shared(dots.reshape(-1, 4), np.delete(self.taken, k, axis=0)) > 0).reshape(len(dots), -1)
        cost = (
            0.03 * distance
            + 0.002 * np.linalg.norm(places[:, :2] + size / 2 - centre, axis=1) / self.point
            + 2.0 * met.any(axis=1)
            + 0.2 * np.delete(beside, k, axis=1).sum(axis=1)  # whose name would it be?
            + 0.8 * (_shared(places, self.steps) > 0).sum(axis=1)
            + (_shared(places, self.boxes) / area + 0.5 * _crosses(places, self.boxes)).sum(axis=1)
        )
        outside = (places[:, :2] < self.frame[:2]) | (places[:, 2:] > self.frame[2:])
        cost[outside.any(axis=1) | (_shared(places, self.taken) > 0).any(axis=1)] = np.inf
        best = int(cost.argmin())
        if not np.isfinite(cost[best]):
            return None
        self.taken = np.vstack([self.taken, _grown(places[best : best + 1], 2 * self.point), _grown(dots[best], 1)])
        x, y = (places[best, :2] - centre) / self.point
        return (float(x), float(y)), bool(lined[best])


def _around(target: FloatArray, gap: float, size: FloatArray) -> FloatArray:
    """Return 16 rectangles of that size all around another one."""
    ring = [(i, j) for i in range(5) for j in range(5) if i in (0, 4) or j in (0, 4)]
    start, end = target[:2] - gap - size, target[2:] + gap
    corner = start + np.array(ring) / 4.0 * (end - start)
    return np.hstack([corner, corner + size])


def _grown(rectangles: FloatArray, by: float) -> FloatArray:
    return np.hstack([rectangles[:, :2] - by, rectangles[:, 2:] + by])


def _shared(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the areas that rectangles of the one kind share with those of the other, at least 1 where they touch."""
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    size = high - low
    return np.where((size >= 0).all(axis=2), np.maximum(size.prod(axis=2), 1.0), 0.0)


def _crosses(first: FloatArray, second: FloatArray) -> BoolArray:
    """Tell which rectangles of the one kind lie across the border of those of the other, or nearly so."""
    inside = (first[:, None, :2] > second[None, :, :2]) & (first[:, None, 2:] < second[None, :, 2:])
    return (_shared(_grown(first, 3), second) > 0) & ~inside.all(axis=2)


# Simulations


def _box_figure(data: Sequence[BoxData], what: str, path: str | Path | None) -> Figure:
    figure = new_figure(8.0, 1.2 + 0.55 * len(data))
    _boxes(figure.subplots(), data, what)
    return saved(figure, path)


def _boxes(axes: Axes, data: Sequence[BoxData], what: str) -> None:
    values = [np.asarray(getattr(box, what), dtype=float) for box in data]
    bare(axes)
    everything = np.concatenate(values)
    if spans(everything):
        log_axis(axes, "x", everything.min(), everything.max())
    else:
        plain_numbers(axes, "x")
    drawn = axes.boxplot(
        values,
        orientation="horizontal",
        widths=0.4,
        patch_artist=True,
        flierprops={"marker": ".", "markersize": 3, "markeredgewidth": 0},
    )
    for i in range(len(data)):
        colour = COLOURS[i % len(COLOURS)]
        drawn["boxes"][i].set(facecolor=colour + "30", edgecolor=colour)
        drawn["medians"][i].set(color=colour, linewidth=2)
        drawn["fliers"][i].set(markerfacecolor=colour)
        for stroke in drawn["whiskers"][2 * i : 2 * i + 2] + drawn["caps"][2 * i : 2 * i + 2]:
            stroke.set_color(colour)
    axes.set_yticks(range(1, len(data) + 1), [_rates(box) for box in data], parse_math=False)
    axes.tick_params("y", length=0)
    axes.spines["left"].set_visible(False)
    axes.invert_yaxis()
    axes.grid(axis="x", color="#ececec", linewidth=0.7)
    label(axes, "x", {"samples": "samples used", "regret": "cumulative regret"}[what])


def _rates(box: BoxData) -> str:
    stopped = "" if box.stopped_rate == 1 else f", stopped {box.stopped_rate:.0%}"
    return f"{textwrap.fill(line(box.label), 34)}\nsuccess {box.success_rate:.0%}{stopped} (n={box.replicates})"


def _curves(axes: Axes, data: Sequence[RegretData]) -> None:
    bare(axes)
    ends = np.array([(curve.rounds[-1], curve.mean[-1]) for curve in data], dtype=float)
    # Where results end within a decade of each other, plain axes show best when each stops paying.
    log = bool((ends > 0).all()) and (spans(ends[:, 0]) or spans(ends[:, 1]))
    for which, end in zip("xy", ends.T, strict=True):
        if log:
            log_axis(axes, which, 1.0, 1e3)
            axes.set(**{f"{which}lim": (end.min() / 1e3, 2.0 * end.max())})  # the first few rounds tell nothing
        else:
            plain_numbers(axes, which)
    for i, curve in enumerate(data):
        colour = COLOURS[i % len(COLOURS)]
        axes.fill_between(curve.rounds, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(curve.rounds, curve.mean, color=colour, linestyle=DASHES[i % len(DASHES)], label=line(curve.label))
        axes.plot(curve.rounds[-1], curve.mean[-1], ".", color=colour)
    axes.grid(color="#ececec", linewidth=0.7)
    label(axes, "x", "round")
    label(axes, "y", "cumulative regret")
    legend = axes.legend(
        loc="best",
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        alignment="left",
        title="mean, and 10% to 90% of replicates",
        title_fontproperties={"size": 8},
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
