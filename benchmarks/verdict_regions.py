"""Draw where another option must be, seen from one, to make it pointless: docs/images/verdicts.png.

python -m benchmarks.verdict_regions docs/images/verdicts.png
"""

from __future__ import annotations

import sys

from paretoscout.plots.style import BLUE, GREY, INK, PALE, bare, label, new_figure, saved

REACH = 2.2


def draw(path: str) -> None:
    """Draw the regions for two metrics, in units of eps."""
    from matplotlib.patches import Polygon, Rectangle

    figure = new_figure(6.2, 5.7)
    axes = figure.add_subplot()
    bare(axes)
    axes.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH), aspect="equal")
    far = REACH
    may = Polygon([(-1, 0), (0, 0), (0, -1), (far, -1), (far, far), (-1, far)], color="#cfe3f1", zorder=1)
    must = Polygon([(-0.5, 1), (1, 1), (1, -0.5), (far, -0.5), (far, far), (-0.5, far)], color="#7fb5d9", zorder=2)
    axes.add_patch(may)
    axes.add_patch(must)
    axes.add_patch(Rectangle((-1, -1), 2, 2, fill=False, edgecolor=INK, linestyle=(0, (4, 2)), linewidth=1.4, zorder=4))
    axes.axhline(0, color=PALE, linewidth=0.8, zorder=3)
    axes.axvline(0, color=PALE, linewidth=0.8, zorder=3)
    axes.plot([0], [0], marker="o", color=BLUE, markersize=7, zorder=6)
    said = [
        (0.08, -0.2, "A", BLUE, "bold", "left"),
        (1.6, 1.7, "B here:\nA must go", INK, "bold", "center"),
        (1.6, -0.75, "A may go", INK, "normal", "center"),
        (-0.75, 1.6, "A may\ngo", INK, "normal", "center"),
        (-0.95, -0.92, "the same, up to eps", INK, "normal", "left"),
        (1.2, -1.7, "A stays: B is worse\nby more than eps", GREY, "normal", "center"),
        (-1.62, 1.0, "A stays", GREY, "normal", "center"),
        (-1.62, -1.7, "A stays", GREY, "normal", "center"),
    ]
    for x, y, text, colour, weight, align in said:
        axes.text(x, y, text, color=colour, weight=weight, ha=align, va="bottom", fontsize=9.5, zorder=7)
    ticks = [-2, -1, -0.5, 0, 1, 2]
    names = ["−2", "−1", "−½", "0", "1", "2"]
    axes.set_xticks(ticks, names)
    axes.set_yticks(ticks, names)
    label(axes, "x", "by how much B is better than A in the first metric, in eps")
    label(axes, "y", "... in the second metric, in eps")
    axes.set_title(
        "Where is B when A is not worth having beside it?", loc="left", fontsize=12, weight="bold", color=INK
    )
    saved(figure, path)


if __name__ == "__main__":
    draw(sys.argv[1])
