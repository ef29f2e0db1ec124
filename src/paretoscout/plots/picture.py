"""The picture of verdicts: what stands where is decided in `data.py` and `names.py`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..shown import MARKS
from .data import CROWD, Axis, Box, FrontData, front_data, listed
from .names import Sheet, broken
from .style import (
    BLUE,
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
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text

    from ..verdicts import VerdictTable

#: How each verdict looks, and what the legend calls it, in the order in which names get their places.
LOOKS: dict[str, dict[str, Any]] = {
    "front": {
        "legend": "front",
        "depth": 3.0,
        "box": {"facecolor": "#0072b226", "edgecolor": BLUE, "linewidth": 1.1},
        "line": {"color": "#0072b299", "linewidth": 1.0},
        "marker": {"marker": "*", "facecolor": BLUE, "edgecolor": "white", "s": 140, "linewidths": 0.9},
        "name": {"color": "#00466e", "fontweight": "bold"},
    },
    "same": {
        "legend": "same as another, within eps",
        "depth": 2.5,
        "box": {"facecolor": "none", "edgecolor": "#56a0cc", "linewidth": 0.9, "linestyle": (0, (4, 2))},
        "line": {"color": "#56a0cc", "linewidth": 0.9},
        "marker": {"marker": "D", "facecolor": "white", "edgecolor": BLUE, "s": 26, "linewidths": 1.3},
        "name": {"color": "#2f6d96"},
    },
    "undecided": {
        "legend": "undecided",
        "depth": 2.0,
        "box": {"facecolor": "#d55e0014", "edgecolor": "#d55e0088", "linewidth": 0.9, "hatch": "////"},
        "line": {"color": "#d55e0088", "linewidth": 0.9},
        "marker": {"marker": "o", "facecolor": "white", "edgecolor": VERMILION, "s": 26, "linewidths": 1.3},
        "name": {"color": "#9c4400"},
    },
    "dominated": {
        "legend": "dominated",
        "depth": 1.0,
        "box": {"facecolor": "none", "edgecolor": "#cfcfcf", "linewidth": 0.8},
        "line": {"color": "#cfcfcf", "linewidth": 0.8},
        "marker": {"marker": "x", "color": "#8a8a8a", "s": 18, "linewidths": 1.1},
        "name": {"color": GREY},
    },
}
#: Whose names come first, by verdict.
NAMED = list(MARKS)
SO_FAR = "grey: mean so far, no interval yet"
NAME_SIZE, NOTE_SIZE = 8, 7.5
MOST_NAMES = 40  # more would be a cloud
MOST_BOXES = 400  # of more arms, those have intervals that are named first, and others are only markers
#: In a crowd, dots of dominated arms by their samples: the fewest, what the legend says, and the colour.
DOTS = (
    (0, "dominated: below 10 samples", "#d9d9d9"),
    (10, "10 to 99", "#a9a9a9"),
    (100, "100 to 999", "#6e6e6e"),
    (1000, "1,000 or more", "#1a1a1a"),
)
LARGEST = 0.2  # a box that covers more of the picture is drawn as two lines
EDGE, HEAD_GAP, FOOT_GAP = 0.06, 0.07, 0.035  # inches around all; after each text above and below the axes
#: At the ends of lines that go on beyond the picture: matplotlib's numbers of carets, by axis, at its low and high end.
CARETS = ((4, 5), (7, 6))

Corners = tuple[tuple[float, ...], tuple[float, ...]]  # the low ends, the high ends


def front(
    table: VerdictTable,
    *,
    x: str | None = None,
    y: str | None = None,
    path: str | Path | None = None,
    title: str | None = None,
    notes: Sequence[str] = (),
) -> Figure:
    """Draw each arm as a named marker with its intervals, and the front as a staircase.

    table: what is proven of each arm. Markers and intervals stand where the table says.
    x, y: names of the metrics to show. None: the first two. One metric alone gives a list of intervals.
    path: where to save the picture, ending in .png or .svg. None: nowhere.
    title: shown above the picture, such as the question. None: the answer, in a few words.
    notes: sentences to show below the picture.
    """
    data = front_data(table, x, y)
    draw = _plane if len(data.axes) == 2 else _intervals
    return saved(draw(data, title or "", tuple(notes)), path)


def _plane(data: FrontData, title: str, notes: tuple[str, ...], unnamed: int | None = None) -> Figure:
    """Draw two metrics; `unnamed` arms, if that is known already, find no room for their names."""
    crowd = len(data.boxes) > CROWD
    to_name = sum(box.verdict != "dominated" for box in data.boxes) if crowd else len(data.boxes)
    expected = max(to_name - MOST_NAMES, 0) if unnamed is None else unnamed
    figure = new_figure(8.0, 4.5)
    axes = figure.subplots()
    bare(axes)
    for which, axis in zip("xy", data.axes, strict=True):
        _scale(axes, which, axis)
    if len(data.stairs):
        axes.fill(*data.behind.T, color=SHADE, linewidth=0, zorder=0)
        axes.plot(*data.stairs.T, color=BLUE, linewidth=1.3, zorder=4)
    first = data.boxes
    if crowd:
        first = tuple(box for box in data.boxes if box.verdict != "dominated")
        _dots(axes, [box for box in data.boxes if box.verdict == "dominated"])
    outlined = first
    if len(first) > MOST_BOXES:
        first = tuple(sorted(first, key=lambda box: NAMED.index(box.verdict))[:MOST_BOXES])
    fit = [_fits(data.axes, box) for box in first]
    most = 2 * sum(fit) >= sum(box.known for box in first)
    boxed = [fits and most for fits in fit]  # where most are too large, all look alike
    for box, whole in zip(first, boxed, strict=True):
        (_draw_box if whole else _draw_lines)(axes, data.axes, box)
    _markers(axes, outlined, [box.centre for box in outlined])
    better = _better(axes, data.axes)
    caption = _caption(replace(data, boxes=first), boxed)
    _surround(figure, axes, data, title, caption, [*notes, *_names_left(expected)])
    arrow = better.get_window_extent()
    reach = arrow.padded(6 * figure.dpi / 72)
    if any(reach.contains(*at) for at in axes.transData.transform([box.centre for box in data.boxes] or [(0.0, 0.0)])):
        better.set_visible(False)  # a marker is there; the labels of the axes say it, too
    left = _name_arms(axes, replace(data, boxes=first), boxed, np.array([arrow.extents]))
    left += len(outlined) - len(first)
    # The note makes the picture taller and leaves the axes as they are: the names find the same places again.
    return _plane(data, title, notes, left) if unnamed is None and left != expected else figure


def _intervals(data: FrontData, title: str, notes: tuple[str, ...]) -> Figure:
    if len(data.boxes) > MOST_BOXES:
        notes = (*notes, f"The best {MOST_BOXES} of {len(data.boxes):,} options are shown.")
        data = replace(data, boxes=data.boxes[:MOST_BOXES])
    names = [broken(box.arm, 34) for box in data.boxes]
    tall = max([1, *(name.count("\n") + 1 for name in names)])
    figure = new_figure(8.0, min(0.75 + (0.12 + 0.15 * tall) * max(len(names), 2), 100.0))
    axes = figure.subplots()
    bare(axes)
    _scale(axes, "x", data.axes[0])
    axes.set_ylim(len(data.boxes) - 0.4, -0.6)  # the best on top
    axes.set_yticks(range(len(names)), names, fontsize=9, parse_math=False)
    axes.tick_params("y", length=0)
    axes.spines["left"].set_visible(False)
    for row, (box, name) in enumerate(zip(data.boxes, axes.get_yticklabels(), strict=True)):
        name.update(LOOKS[box.verdict]["name"])
        _line(axes, data.axes, box, 0, row, color=LOOKS[box.verdict]["name"]["color"], alpha=0.6, linewidth=1.4)
    _markers(axes, data.boxes, [(box.centre[0], row) for row, box in enumerate(data.boxes)])
    best = next((box.centre[0] for box in data.boxes if box.verdict == "front"), None)
    if best is not None:
        axes.axvline(best, color=BLUE, linewidth=1.0, zorder=0)
        axes.axvspan(best, data.axes[0].worst, color=SHADE, linewidth=0, zorder=-1)
    _surround(figure, axes, data, title, _caption(data, [False] * len(names)), notes, left=EDGE)
    return figure


def _scale(axes: Axes, which: str, axis: Axis) -> None:
    if axis.log:
        log_axis(axes, which, axis.low, axis.high)
    else:
        plain_numbers(axes, which)
    axes.set(**{f"{which}lim": (axis.low, axis.high)})
    # On the y axis the text is turned, so that the same arrows point down and up.
    arrow = "{} →" if axis.metric.direction == "max" else "← {}"
    label(axes, which, arrow.format(axis.label))


# Intervals and markers


def _fits(shown: Sequence[Axis], box: Box) -> bool:
    """Whether the intervals of an arm are a box that leaves room for others."""
    if not box.known or _cut(shown, box):
        return False
    shares = [axis.share(low, high) for axis, low, high in zip(shown, box.low, box.high, strict=True)]
    return float(np.prod(shares)) <= LARGEST


def _draw_box(axes: Axes, shown: Sequence[Axis], box: Box) -> None:
    (x0, y0), (x1, y1), look = box.low, box.high, LOOKS[box.verdict]
    axes.fill([x0, x1, x1, x0], [y0, y0, y1, y1], zorder=look["depth"], **look["box"])


def _draw_lines(axes: Axes, shown: Sequence[Axis], box: Box) -> None:
    look = LOOKS[box.verdict]
    for i in (0, 1):
        _line(axes, shown, box, i, box.centre[1 - i], zorder=look["depth"], **look["line"])


def _line(axes: Axes, shown: Sequence[Axis], box: Box, i: int, across: float, **style: Any) -> None:
    """Draw the interval of one metric, low to high, with an arrow where it goes on beyond the picture."""
    low, high = (end[i] for end in _visible(shown, box))
    if np.isinf(box.low[i]) and np.isinf(box.high[i]):
        return
    axes.plot(*_turned(i, [low, high], [across, across]), **style)
    for end, beyond, caret in zip((low, high), (box.low[i] < low, box.high[i] > high), CARETS[i], strict=True):
        if beyond:
            axes.plot(
                *_turned(i, [end], [across]), marker=caret, markersize=5, linestyle="none", clip_on=False, **style
            )


def _turned(i: int, along: list[float], across: list[float]) -> tuple[list[float], list[float]]:
    return (along, across) if i == 0 else (across, along)


def _visible(shown: Sequence[Axis], box: Box) -> Corners:
    """Return the ends of the intervals, as far as they are in the picture."""
    return (
        tuple(max(low, axis.low) for axis, low in zip(shown, box.low, strict=True)),
        tuple(min(high, axis.high) for axis, high in zip(shown, box.high, strict=True)),
    )


def _cut(shown: Sequence[Axis], box: Box) -> bool:
    """Whether an interval goes on beyond the picture."""
    return any(
        (low < axis.low or high > axis.high) and not (np.isinf(low) and np.isinf(high))
        for axis, low, high in zip(shown, box.low, box.high, strict=True)
    )


def _bars(shown: Sequence[Axis], box: Box) -> list[list[tuple[float, float]]]:
    """Return the ends of the lines that `_draw_lines` draws."""
    (x0, y0), (x1, y1) = _visible(shown, box)
    x, y = box.centre
    known = [np.isfinite(low) or np.isfinite(high) for low, high in zip(box.low, box.high, strict=True)]
    return [bar for bar, there in zip(([(x0, y), (x1, y)], [(x, y0), (x, y1)]), known, strict=True) if there]


def _markers(axes: Axes, boxes: Sequence[Box], points: Sequence[tuple[float, ...]]) -> None:
    """Draw a marker for each arm by its verdict, grey where there is no interval yet, with an entry of the legend."""
    for verdict, look in LOOKS.items():
        if any(box.verdict == verdict for box in boxes):
            for known in (True, False):
                at = [p for p, box in zip(points, boxes, strict=True) if (box.verdict, box.known) == (verdict, known)]
                style = look["marker"] if known else _greyed(look["marker"])
                entry = look["legend"] if known else f"_{verdict}"  # no entry
                axes.scatter(*np.reshape(at, (-1, 2)).T, label=entry, zorder=look["depth"] + 4, **style)
    if not all(box.known for box in boxes):
        axes.scatter([], [], label=SO_FAR, marker="o", color=PALE, s=22)


def _dots(axes: Axes, boxes: Sequence[Box]) -> None:
    """Draw dominated arms of a crowd, those with the most samples on top."""
    points = np.array([box.centre for box in boxes]).reshape(-1, 2)
    counts = np.array([box.count for box in boxes])
    for i, (least, entry, colour) in enumerate(DOTS):
        most = DOTS[i + 1][0] if i + 1 < len(DOTS) else np.inf
        some = (counts >= least) & (counts < most)
        if some.any():
            size = 3.0 if len(boxes) > 20_000 else 8.0
            x, y = points[some].T
            axes.scatter(x, y, color=colour, s=size, linewidths=0, rasterized=True, zorder=1.0 + 0.1 * i)
            axes.scatter([], [], color=colour, label=entry, s=16.0, linewidths=0)  # large enough for the legend


def _greyed(marker: dict[str, Any]) -> dict[str, Any]:
    colours = {"color": PALE, "facecolor": PALE, "edgecolor": "white"}
    return {**marker, **{key: colour for key, colour in colours.items() if key in marker}, "s": 1.4 * marker["s"]}


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


def _name_arms(axes: Axes, data: FrontData, boxed: Sequence[bool], taken: Any) -> int:
    """Write the arms' names where there is room, those of the front first; return how many found none."""
    from matplotlib.patheffects import withStroke

    centres = [box.centre for box in data.boxes]
    corners = [
        (box.low, box.high) if whole else (box.centre, box.centre) for box, whole in zip(data.boxes, boxed, strict=True)
    ]
    reach = [6.0 if box.verdict == "front" else 4.0 for box in data.boxes]
    steps = np.stack([data.stairs[:-1], data.stairs[1:]], axis=1)
    bars = [bar for box, whole in zip(data.boxes, boxed, strict=True) if not whole for bar in _bars(data.axes, box)]
    sheet = Sheet.of_axes(axes, centres, corners, reach, np.vstack([steps, np.reshape(bars, (-1, 2, 2))]), taken)
    order = sorted(range(len(data.boxes)), key=lambda k: NAMED.index(data.boxes[k].verdict))
    unnamed = max(len(order) - MOST_NAMES, 0)
    for k in order[:MOST_NAMES]:
        text = axes.annotate(
            broken(data.boxes[k].arm),
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


# Texts around the axes


def _caption(data: FrontData, boxed: Sequence[bool]) -> str:
    """Say in plain words what is drawn."""
    said = []
    seen = {
        "boxes" if whole and all(map(operator.lt, box.low, box.high)) else "lines"
        for box, whole in zip(data.boxes, boxed, strict=True)
        if any(map(operator.lt, box.low, box.high)) and np.isfinite(box.high).any()
    }
    if seen:
        said.append(
            f"{' and '.join(sorted(seen)).capitalize()} around markers: where the true values are likely to be."
        )
    if any(_cut(data.axes, box) for box in data.boxes):
        said.append("Arrows: intervals that go on beyond the picture.")
    if any(box.verdict == "front" for box in data.boxes) and (len(data.behind) or len(data.axes) == 1):
        both = "in both metrics" + (" shown" if data.hidden else "")
        both = "by the trade-offs" if data.sums else both
        worse = f"worse {both} than an option of the front" if len(data.axes) == 2 else "worse than the best option"
        said.append(f"Grey area: {worse}.")
    return " ".join(said)


def _names_left(n: int) -> list[str]:
    return [f"No room for {n:,} more {'name' if n == 1 else 'names'}."] if n else []


def _surround(
    figure: Figure,
    axes: Axes,
    data: FrontData,
    title: str,
    caption: str,
    notes: Sequence[str],
    left: float | None = None,
) -> None:
    """Put title and guarantee above the axes, caption and notes below; the axes keep their size.

    left: where the texts begin, in inches; None: where the axes do.
    """
    below = [caption, " ".join(dict.fromkeys([*data.notes, *notes]))]
    if data.hidden:
        n = len(data.hidden) + len(data.axes)
        some = "options of the front" if any(box.verdict == "front" for box in data.boxes) else "options"
        missing = f"In {', '.join(data.hidden)}, {some} may be better than they look here."
        below.append(f"Shown: {len(data.axes)} of {n} metrics. {missing}")
    if data.unmeasured:
        below.append(f"Not measured enough to be shown: {listed(data.unmeasured, 12)}.")
    counted = f"{data.title}; {data.counted}" if title else data.counted
    above = f"{counted}. Guarantee: {data.guarantee}"
    legend = _legend(axes) if data.boxes else None
    if not data.boxes:
        axes.set(xticks=[], yticks=[])
        axes.text(0.5, 0.5, "nothing to show yet", transform=axes.transAxes, ha="center", color=GREY)
    _fit_labels(figure, axes)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    width, height = figure.get_size_inches()
    at = axes.get_position()
    start = at.x0 * width if left is None else left
    note = {"fontsize": NOTE_SIZE, "color": GREY, "linespacing": 1.3}
    head = {"fontsize": 11, "fontweight": "bold", "color": INK, "linespacing": 1.2}

    def put(text: str, **style: Any) -> Text:
        lines = wrapped(figure, text, (width - start - EDGE) * figure.dpi, **style)
        return figure.text(start / width, 0, lines, va="top", parse_math=False, **style)

    def tall(text: Artist) -> float:
        return text.get_window_extent().height / figure.dpi

    heads, feet = [put(title or data.title, **head), put(above, **note)], [put(text, **note) for text in below if text]
    over = EDGE + sum(tall(text) + HEAD_GAP for text in heads) + (0.0 if legend is None else tall(legend))
    under = EDGE + sum(tall(text) + FOOT_GAP for text in feet)
    total = over + height + under
    figure.set_size_inches(width, total)
    axes.set_position((at.x0, (at.y0 * height + under) / total, at.width, at.height * height / total))
    if legend is not None:
        legend.set_bbox_to_anchor(((start / width - at.x0) / at.width - 0.01, 1.0), transform=axes.transAxes)
    for texts, top, gap in ((heads, total - EDGE, HEAD_GAP), (feet, under - FOOT_GAP, FOOT_GAP)):
        for text in texts:
            text.set_y(top / total)
            top -= tall(text) + gap


def _legend(axes: Axes) -> Legend:
    legend = axes.legend(
        loc="lower left",
        ncols=len(LOOKS) + len(DOTS),
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        borderpad=0.2,
        handletextpad=0.2,
        columnspacing=1.2,
    )
    legend.set_in_layout(False)  # its place is found afterwards
    return legend


def _fit_labels(figure: Figure, axes: Axes) -> None:
    """Break labels that are longer than their axes."""
    figure.draw_without_rendering()
    extent = axes.get_window_extent()
    for text, length in ((axes.xaxis.label, extent.width), (axes.yaxis.label, extent.height)):
        if text.get_text():
            text.set_text(wrapped(figure, text.get_text(), length, fontsize=text.get_fontsize()))
