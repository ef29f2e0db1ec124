"""The four figures: about 7 inches wide, as PNG (300 dpi) and SVG, told apart by colour and by line style or hatch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.arrays import FloatArray
from ..plots.style import DASHES, GREY, INK, bare, label, log_axis, new_figure, plain_numbers, saved
from ..shown import counted
from .claims import scaled_error
from .comparison import Comparison, Contender
from .estimates import EXPLORING, GRID, LABELS, ROUNDS, SHOWN, Estimates
from .tables import density, density_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 300
FIRST_SHOWN = 30  # round; before, some experiments have not seen all arms
BLUE, VERMILION, PURPLE, ORANGE, SKY, GREEN = "#0072b2", "#d55e00", "#cc79a7", "#e69f00", "#56b4e9", "#009e73"
GRID_LINES: dict[str, Any] = {"color": "#ececec", "linewidth": 0.6}

#: The same look for an estimator in all figures. One that lies on DR-mix is thin and dark, to be seen on top of it.
LINES: dict[str, dict[str, Any]] = {
    "ridge": {"color": VERMILION, "linestyle": DASHES[1], "linewidth": 1.6},
    "mixed": {"color": "#00694d", "linestyle": DASHES[3], "linewidth": 1.2},
    "dr-mix": {"color": SKY, "linestyle": "-", "linewidth": 2.4},
    "dr-ridge": {"color": PURPLE, "linestyle": DASHES[1], "linewidth": 1.6},
    "least-squares": {"color": "black", "linestyle": DASHES[2], "linewidth": 1.4},
}

#: Lines that lie on others have marks too, in figures by round.
MARKS: dict[str, dict[str, Any]] = {
    "mixed": {
        "marker": "^",
        "markersize": 4.5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
        "markevery": (4, 9),
    },
}

#: And for an algorithm.
ALGORITHMS: dict[str, dict[str, Any]] = {
    "pfiwr": {"color": VERMILION, "hatch": "", "linestyle": "-"},
    "pfiwr-arms": {"color": GREEN, "hatch": "\\\\\\\\", "linestyle": DASHES[2]},
    "pfiwr-width": {"color": ORANGE, "hatch": "/////", "linestyle": DASHES[1]},
    "pfiwr-both": {"color": PURPLE, "hatch": "|||||", "linestyle": DASHES[3]},
    "multi-pfi": {"color": "#444444", "hatch": "xxx", "linestyle": DASHES[1]},
    "ape": {"color": SKY, "hatch": "-----", "linestyle": DASHES[3]},
    "scout": {"color": BLUE, "hatch": "", "linestyle": "-"},
}


def errors(data: Estimates, path: Path) -> None:
    """Figure 1: error on the exploited arm and on the others, by round."""
    figure = new_figure(7.1, 3.2, DPI)
    left, right = figure.subplots(1, 2)
    keys = ("ridge", "dr-mix", "mixed", "least-squares")  # what lies on another line is drawn after it, in dashes
    _error_lines(left, data, keys, "1")
    _error_lines(right, data, keys, "2-3")
    _title(left, "(a) exploited arm 1")
    _title(right, "(b) arms 2 and 3")
    log_axis(left, "y", 0.0003, 0.2)
    left.set_ylim(0.0003, 0.2)
    label(left, "y", "|error| (reward units)")
    label(right, "y", "Euclidean error (reward units)")
    _legend(figure, left, len(keys), _EXPERIMENTS.format(n=data.n))
    _print(figure, path)


def imputation(data: Estimates, path: Path) -> None:
    """Figure 3: what the imputation does on the unexploited arms."""
    figure = new_figure(7.1, 3.3, DPI)
    axes = figure.subplots()
    keys = ("dr-ridge", "dr-mix", "least-squares")
    _error_lines(axes, data, keys, "2-3")
    label(axes, "y", "Euclidean error\non arms 2 and 3 (reward units)")
    _legend(figure, axes, len(keys), _EXPERIMENTS.format(n=data.n))
    _print(figure, path)


_EXPERIMENTS = "mean over {n:,} experiments; shaded: ± one standard deviation"


def _error_lines(axes: Axes, data: Estimates, keys: Sequence[str], arms: str) -> None:
    bare(axes)
    log_axis(axes, "x", FIRST_SHOWN, ROUNDS)
    shown = (GRID >= FIRST_SHOWN) & (GRID <= ROUNDS)
    for key in keys:
        curve = data.error(key, arms)[:, shown]
        defined = np.isfinite(curve).all(axis=0)  # least squares: from where every experiment has seen all arms
        mean, sd, n = curve[:, defined].mean(axis=0), curve[:, defined].std(axis=0), GRID[shown][defined]
        if key != "least-squares":  # the floor is a line, its spread that of DR-mix
            axes.fill_between(n, mean - sd, mean + sd, color=LINES[key]["color"], alpha=0.1, linewidth=0)
        axes.plot(n, mean, label=LABELS[key], **LINES[key], **MARKS.get(key, {}))
    axes.set_ylim(0, 0.2)
    axes.set_yticks([0, 0.05, 0.1, 0.15, 0.2])
    plain_numbers(axes, "y")
    axes.set_xlim(FIRST_SHOWN, ROUNDS)
    axes.set_xticks([30, 50, 100, 200, 500, 1000, 2000])
    axes.axvline(EXPLORING, color=GREY, linewidth=0.8, zorder=0)
    place: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "fontsize": 8, "color": GREY, "va": "top"}
    axes.text(EXPLORING * 1.08, 0.985, "only arm 1 is sampled →", **place)
    axes.grid(**GRID_LINES)
    label(axes, "x", "round n")


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=9.5, fontweight="bold", color=INK)


def _print(figure: Figure, path: Path) -> None:
    """Write the figure as vectors, and as pixels with a palette: much smaller, and nothing to be seen of it."""
    from PIL import Image

    saved(figure, path.with_suffix(".svg"))
    saved(figure, path)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True, dpi=(DPI, DPI))


def _legend(figure: Figure, axes: Axes, columns: int, title: str) -> None:
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside upper center",
        ncols=columns,
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        handlelength=2.8,
        columnspacing=1.6,
        title=title,
        title_fontproperties={"size": 8},
    )


def densities(data: Estimates, path: Path) -> None:
    """Figure 4: densities of the scaled errors of arms 1 and 2, with their means."""
    figure = new_figure(7.1, 4.8, DPI)
    keys = ("ridge", "dr-mix", "mixed")
    rows: Any = figure.subplots(2, len(SHOWN), sharex="row")
    for row, arm, about in zip(rows, (1, 2), ("(a) arm 1", "(b) arm 2"), strict=True):
        points = density_range(data, keys, arm)
        for axes, n in zip(row, SHOWN, strict=True):
            bare(axes)
            axes.axvline(0, color="#bbbbbb", linewidth=0.8, zorder=0)
            for key in keys:
                values = scaled_error(data, key, arm, n)
                curve = density(values, points)
                style = LINES[key]
                axes.fill_between(points, curve, color=style["color"], alpha=0.08, linewidth=0)
                axes.plot(points, curve, label=LABELS[key], **style)
                axes.axvline(values.mean(), **{**style, "linewidth": 0.6 * style["linewidth"]})
            axes.set_xlim(points[0], points[-1])
            axes.set_ylim(0, None)
            axes.tick_params(labelsize=8)
            axes.set_title(f"n = {n:,}", loc="right", fontsize=9, color=INK)
            if n == SHOWN[0]:
                _title(axes, about)
            plain_numbers(axes, "x")
            plain_numbers(axes, "y")
        label(row[0], "y", "density (1 / reward units)")
        label(row[1], "x", "√n (estimate − truth)   (reward units)")
    about = (
        f"densities over {data.n:,} experiments, arm 1 is the exploited one; vertical lines in the same style: means"
    )
    _legend(figure, rows[0, 0], len(keys), about)
    _print(figure, path)


def comparison(data: Comparison, path: Path) -> None:
    """Figure 2: samples, regret at termination, and regret round by round."""
    from matplotlib.patches import Patch

    figure = new_figure(7.1, 8.4, DPI)
    top, middle, bottom = figure.subplots(3, 1, height_ratios=[1, 1, 1.1])
    drawn = [contender for contender in data.contenders if contender.drawn]
    _grouped_boxes(top, data, drawn, "samples")
    _grouped_boxes(middle, data, drawn, "regret")
    _regret_curves(bottom, data, drawn)
    _title(top, "(a) samples until termination")
    _title(middle, "(b) cumulative regret at termination")
    _title(bottom, f"(c) cumulative regret by round, eps {data.eps[0]:g}; none after stopping")
    label(top, "y", "samples")
    for axes in (top, middle):
        label(axes, "x", "eps (standardised units)")
    for axes in (middle, bottom):
        label(axes, "y", "regret (standardised units)")
    n = len(data.of("multi-pfi")[0].samples)
    handles = [_look(Patch(label=contender.label), contender.key) for contender in drawn]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=2,
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        title=f"{counted(n, 'run')} each; boxes: quartiles, whiskers: 5% to 95% of runs, line: median",
        title_fontproperties={"size": 8.5},
    )
    _print(figure, path)


def _look(patch: Any, key: str) -> Any:
    style = ALGORITHMS[key]
    patch.set(facecolor=style["color"] + "40", edgecolor=style["color"], hatch=style["hatch"], linewidth=0.9)
    return patch


def _grouped_boxes(axes: Axes, data: Comparison, drawn: Sequence[Contender], what: str) -> None:
    bare(axes)
    width = 0.84 / len(drawn)
    everything: list[FloatArray] = []
    for i, contender in enumerate(drawn):
        colour = ALGORITHMS[contender.key]["color"]
        for place, eps in enumerate(data.eps):
            x = place + (i - (len(drawn) - 1) / 2) * width
            if not data.found(contender.key, eps):
                words: dict[str, Any] = {
                    "rotation": 90,
                    "fontsize": 6.5,
                    "color": colour,
                    "ha": "center",
                    "va": "bottom",
                }
                axes.text(x, 0.02, "no scale found", transform=axes.get_xaxis_transform(), **words)
                continue
            values = np.asarray(getattr(data.results[contender.key, eps], what), float)
            everything.append(values)
            shape: dict[str, Any] = {"whis": (5, 95), "showfliers": False, "manage_ticks": False}
            box = axes.boxplot([values], positions=[x], widths=0.85 * width, patch_artist=True, **shape)
            _look(box["boxes"][0], contender.key)
            for line in [*box["whiskers"], *box["caps"]]:
                line.set(color=colour, linewidth=0.8)
            box["medians"][0].set(color=INK, linewidth=1.1)
    joined = np.concatenate(everything)
    low, high = max(float(np.quantile(joined, 0.001)), 1e-3), float(joined.max())
    log_axis(axes, "y", low, high)
    axes.set_ylim(low / 1.6, high * 1.6)
    axes.set_xticks(range(len(data.eps)), [f"{eps:.2f}" for eps in data.eps])
    axes.set_xlim(-0.5, len(data.eps) - 0.5)
    for border in np.arange(len(data.eps) - 1) + 0.5:
        axes.axvline(border, color="#dddddd", linewidth=0.7, zorder=0)
    axes.tick_params("x", length=0)
    axes.grid(axis="y", **GRID_LINES)


def _regret_curves(axes: Axes, data: Comparison, drawn: Sequence[Contender]) -> None:
    from matplotlib.patheffects import withStroke

    bare(axes)
    shown = [contender for contender in drawn if data.found(contender.key, data.eps[0])]
    last = 1.6 * max(int(data.results[contender.key, data.eps[0]].samples.max()) for contender in shown)
    lowest, highest = np.inf, 0.0
    ends = [float(data.results[contender.key, data.eps[0]].regret.mean()) for contender in shown]
    for contender, end in zip(shown, ends, strict=True):
        result, style = data.results[contender.key, data.eps[0]], ALGORITHMS[contender.key]
        kept = (result.regret_rounds >= 10) & (result.regret_rounds <= last)
        rounds, curves = result.regret_rounds[kept], result.regret_curves[:, kept]
        mean, sd = curves.mean(axis=0), curves.std(axis=0)
        low = np.maximum(mean - sd, mean / 10)  # nothing below zero on a log axis
        axes.fill_between(rounds, low, mean + sd, color=style["color"], alpha=0.14, linewidth=0)
        axes.plot(rounds, mean, color=style["color"], linestyle=style["linestyle"], linewidth=1.5)
        stop = float(np.median(result.samples))
        edge: dict[str, Any] = {"markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.7, "zorder": 5}
        axes.plot(stop, np.interp(stop, rounds, mean), "o", color=style["color"], **edge)
        below = any(end < other < 2 * end for other in ends)  # names stand above their lines, where there is room
        words: dict[str, Any] = {"fontsize": 7.5, "color": INK, "ha": "right", "va": "top" if below else "bottom"}
        place = (-2, -3 if below else 2)
        halo = [withStroke(linewidth=2, foreground="white")]  # where a name meets a line
        axes.annotate(contender.label, (last, mean[-1]), place, textcoords="offset points", path_effects=halo, **words)
        lowest, highest = min(lowest, float(mean[0])), max(highest, float(mean[-1]))
    log_axis(axes, "x", 10, last)
    log_axis(axes, "y", lowest, highest)
    axes.set_xlim(10, last)
    axes.set_ylim(lowest / 1.5, 4.0 * highest)
    axes.grid(**GRID_LINES)
    about = "mean; shaded: ± one standard deviation; dots: median stopping time"
    axes.text(0.01, 0.97, about, transform=axes.transAxes, fontsize=8, color=GREY, va="top")
    label(axes, "x", "round")
