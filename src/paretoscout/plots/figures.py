"""Figures of simulations, with matplotlib's object interface: nothing global is touched and no screen is needed."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..shown import line
from ..simulation.results import Result
from .data import BoxData, RegretData, box_data, regret_data, spans
from .style import COLOURS, DASHES, INK, bare, label, log_axis, new_figure, plain_numbers, saved

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
