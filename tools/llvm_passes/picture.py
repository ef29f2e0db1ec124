"""Draws docs/images/llvm-passes.png: all configurations by their two times, the front marked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import MultipleLocator, NullLocator

sys.path.insert(0, str(Path(__file__).resolve().parent))
from report import Table, front, read

from paretoscout.plots.style import BLUE, GREY, INK, bare, label, new_figure, plain_numbers, saved

OUT = Path(__file__).resolve().parents[2] / "docs" / "images" / "llvm-passes.png"
ORANGE, SKY = "#e69f00", "#56b4e9"
# (passes, text, offset in points, side)
LABELS: tuple[tuple[tuple[str, ...], str, tuple[float, float], str], ...] = (
    ((), "no pass", (2, -12), "center"),
    (("inline", "sroa"), "inline + sroa", (-9, 0), "right"),
    (("inline", "sroa", "simplifycfg", "licm"), "+ simplifycfg + licm", (-6, -9), "right"),
)


def draw(table: Table, path: Path) -> None:
    """Draws and saves."""
    optimise, run = table.optimise.mean(axis=1), table.run.mean(axis=1)
    inlined = table.on[:, table.passes.index("inline")] == 1
    kept = front(optimise, run)
    figure = new_figure(8, 5)
    axes = figure.add_subplot()
    bare(axes)
    for mask, marker, colour, name in ((~inlined, "o", ORANGE, "without inline"), (inlined, "s", SKY, "with inline")):
        rest = mask.copy()
        rest[kept] = False
        look: dict[str, Any] = {"s": 12, "marker": marker, "facecolor": colour, "edgecolor": "white", "linewidths": 0.3}
        axes.scatter(optimise[rest], run[rest], label=f"{name} ({mask.sum()} configurations)", **look)
    axes.step(optimise[kept], run[kept], where="post", color=BLUE, linewidth=1, zorder=3)
    star: dict[str, Any] = {
        "s": 90,
        "marker": "*",
        "facecolor": BLUE,
        "edgecolor": "white",
        "linewidths": 0.6,
        "zorder": 4,
    }
    axes.scatter(optimise[kept], run[kept], label=f"front of the means ({len(kept)})", **star)
    note: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8.5, "color": INK, "va": "center"}
    for passes, text, offset, side in LABELS:
        row = sum(1 << table.passes.index(name) for name in passes)
        axes.annotate(text, (optimise[row], run[row]), xytext=offset, ha=side, **note)
    everything = (optimise[-1], run[-1])
    line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.7}
    axes.annotate("all ten", everything, xytext=(14, -16), ha="center", arrowprops=line, **note)
    axes.set_xscale("log")
    axes.set_xticks([30, 50, 100, 200, 300])
    axes.xaxis.set_minor_locator(NullLocator())
    plain_numbers(axes, "x")
    axes.yaxis.set_major_locator(MultipleLocator(2))
    axes.set_xlim(optimise.min() / 1.12, optimise.max() * 1.12)
    axes.set_ylim(bottom=np.floor(run.min() - 0.5))
    label(axes, "x", "time of the optimiser (ms of CPU, logarithmic)")
    label(axes, "y", "run time of the programs (ms of CPU)")
    axes.grid(color="#eeeeee", linewidth=0.6)
    axes.legend(frameon=False, fontsize=8.5, labelcolor=INK, loc="upper right", handletextpad=0.2)
    title = f"1024 ways to optimise the same programs: means of {table.run.shape[1]} repeats"
    axes.set_title(title, fontsize=10.5, color=GREY, loc="left")
    saved(figure, path)


if __name__ == "__main__":
    draw(read(), OUT)
