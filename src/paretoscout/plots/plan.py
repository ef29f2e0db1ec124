"""The picture of a plan: how many runs it will take, by eps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..shown import line, shortened
from .style import BLUE, GREY, INK, bare, label, log_axis, new_figure, saved, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "How many runs will it take?"
CAPTION = "Dot: half of the simulated studies take fewer runs. Bar: 80% of them."
ARROW = "Arrow: some were not followed to their end."
ESTIMATE = "An estimate, not a guarantee."
#: Inches: of the figure without its columns, of a column, and the least of the whole.
MARGIN, COLUMN, LEAST, HEIGHT = 1.0, 1.75, 6.2, 4.3
LEAST_RATIO = 10.0  # of the ends of the axis of runs
PALE_BLUE = "#b3d5e8"
EDGE = 0.1  # inches from the edges of the figure to its texts
LONGEST_EPS = 22


@dataclass(frozen=True)
class Expected:
    """What is expected with one eps; infinite: not followed so far."""

    eps: tuple[str, ...]  # of each metric, in words
    low: float
    median: float
    high: float
    beyond: float | None  # runs that those that did not end were followed for
    runs: str  # in words
    time: str


@dataclass(frozen=True)
class PlanData:
    """The numbers of the picture of a plan."""

    expected: tuple[Expected, ...]
    about: str  # what is planned
    supposed: str  # on what the numbers rest


def plan(data: PlanData, *, path: str | Path | None = None) -> Figure:
    """Draw how many runs a study will take, by eps: the median, and where 80% of the simulated studies lie."""
    width = max(LEAST, MARGIN + COLUMN * len(data.expected))
    figure = new_figure(width, HEIGHT)
    axes = figure.subplots()
    bare(axes)
    lowest, highest = _limits(data.expected)
    log_axis(axes, "y", lowest, highest)
    axes.set_ylim(lowest, highest)
    axes.set_xlim(-0.4, len(data.expected) - 0.25)
    for place, each in enumerate(data.expected):
        _bar(axes, place, each, highest)
    labels = ["\n".join(shortened(line(eps), LONGEST_EPS) for eps in each.eps) for each in data.expected]
    axes.set_xticks(range(len(labels)), labels, parse_math=False)
    axes.tick_params("x", length=0)
    axes.grid(axis="y", color="#ececec", linewidth=0.7)
    label(axes, "x", "eps: the difference that does not matter")
    label(axes, "y", "runs in all")
    _write_around(figure, width, data)
    return saved(figure, path)


def _limits(expected: Sequence[Expected]) -> tuple[float, float]:
    """From where to where the axis of runs goes."""
    numbers = [number for each in expected for number in (each.low, each.high, each.beyond or np.inf)]
    there = [number for number in numbers if np.isfinite(number)]
    open_ = any(each.beyond is not None for each in expected)
    low, high = 0.6 * min(there), (3.0 if open_ else 1.7) * max(there)
    wider = max(1.0, (LEAST_RATIO * low / high) ** 0.5)  # a small difference does not fill the picture
    return max(0.5, low / wider), high * wider


def _bar(axes: Axes, place: int, each: Expected, top: float) -> None:
    beyond = each.beyond or 0.0
    low = min(each.low, beyond) if np.isinf(each.low) else each.low
    high = each.high if np.isfinite(each.high) else np.sqrt(beyond * top)
    middle = each.median if np.isfinite(each.median) else beyond
    axes.plot([place, place], [low, high], color=PALE_BLUE, linewidth=9, solid_capstyle="butt", zorder=2)
    if np.isinf(each.high):
        axes.plot(place, high, "^", color=PALE_BLUE, markersize=14, markeredgewidth=0, zorder=2)
    if np.isfinite(each.median):
        axes.plot(place, middle, "o", color=BLUE, markersize=8, markeredgecolor="white", zorder=3)
    said = {"xytext": (11, 0), "textcoords": "offset points", "va": "center", "parse_math": False}
    text = each.runs if not each.time else f"{each.runs}\n{each.time}"
    halo = {"boxstyle": "square,pad=0.1", "facecolor": "white", "linewidth": 0}  # no line runs through the words
    axes.annotate(text, (place, middle), fontsize=9, color=INK, linespacing=1.35, bbox=halo, **said)  # type: ignore[arg-type]


def _write_around(figure: Figure, width: float, data: PlanData) -> None:
    """Put the title and what is planned above, and what the picture means below, all from the left edge."""
    edge = EDGE / width
    figure.suptitle(TITLE, x=edge, ha="left", fontsize=12, fontweight="bold", color=INK)
    arrows = any(np.isinf(each.high) for each in data.expected)
    caption = " ".join([CAPTION, *([ARROW] if arrows else []), ESTIMATE])
    room = (width - 2.0 * EDGE) * figure.dpi
    text = "\n".join(wrapped(figure, part, room, fontsize=8) for part in (caption, data.supposed) if part)
    figure.supxlabel(text, x=edge, ha="left", fontsize=8, color=GREY, parse_math=False)
    axes = figure.axes[0]
    title = axes.set_title(line(data.about), loc="left", fontsize=9, color=GREY, parse_math=False)
    figure.draw_without_rendering()
    at = axes.get_position()
    title.set_x((edge - at.x0) / at.width)
