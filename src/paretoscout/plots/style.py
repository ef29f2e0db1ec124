"""How all figures look: colours, axes and files. Nothing global is touched and no screen is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidInput, MissingExtra
from ..shown import line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GREY, PALE, SHADE = "#222222", "#6b6b6b", "#b0b0b0", "#f5f6f7"
BLUE, VERMILION = "#0072b2", "#d55e00"
#: Okabe and Ito's colours, told apart by all; the line styles tell curves apart in black and white.
COLOURS = (BLUE, VERMILION, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))


def new_figure(width: float, height: float, dpi: float = 150) -> Figure:
    """Return an empty figure, sizes in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("plots", "plots") from error
    return Figure(figsize=(width, height), dpi=dpi, layout="constrained", facecolor="white")


def saved(figure: Figure, path: str | Path | None) -> Figure:
    """Write the figure where a path is given; return it."""
    if path is not None:
        suffix = Path(path).suffix.lower()
        if suffix not in (".png", ".svg"):
            raise InvalidInput(f"path of a figure must end in .png or .svg, got {str(path)!r}")
        from matplotlib import rc_context

        # No date and no random ids: the same figure gives the same file.
        with rc_context({"svg.hashsalt": "paretoscout"}):
            figure.savefig(path, dpi="figure", metadata={"Date": None} if suffix == ".svg" else None)
    return figure


def bare(axes: Axes) -> None:
    """Leave two pale axes and nothing else."""
    axes.set_facecolor("white")  # whatever style is in force
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(PALE)
    axes.tick_params(which="both", color=PALE, labelcolor=INK, labelsize=9)
    axes.set_axisbelow(True)


def label(axes: Axes, which: str, text: str) -> None:
    """Name the "x" or the "y" axis."""
    getattr(axes, f"set_{which}label")(line(text), fontsize=9.5, color=INK, parse_math=False)


def log_axis(axes: Axes, which: str, low: float, high: float) -> None:
    """Make an axis logarithmic, with few and plain numbers on it."""
    from matplotlib.ticker import LogLocator, NullLocator

    decades = np.log10(high / low)
    axes.set(**{f"{which}scale": "log"})
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2 else (1.0, 3.0) if decades < 3 else (1.0,)))
    axis.set_minor_locator(NullLocator())
    plain_numbers(axes, which)


def plain_numbers(axes: Axes, which: str) -> None:
    """Write the numbers of an axis short, or all of them in full."""
    axis = getattr(axes, f"{which}axis")

    def written(value: float, _: Any) -> str:
        short = all(float(f"{tick:.4g}") == float(f"{tick:.12g}") for tick in axis.get_majorticklocs())
        return (short_number(value) if short else f"{value:,.12g}").replace("-", "−")

    axis.set_major_formatter(written)


def short_number(value: float) -> str:
    """Write a number short: 0.5, 200, 20k, 1.5M.

    >>> [short_number(value) for value in (0.02, 5000, 20000, 1500000, 0.00003)]
    ['0.02', '5k', '20k', '1.5M', '0.00003']
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.10g}{letter}"
    return f"{value:.10g}" if value == 0 or not 1e-7 < abs(value) < 1e-4 else f"{value:.10f}".rstrip("0")


def wrapped(figure: Figure, text: str, width: float, **style: Any) -> str:
    """Return a text as lines that are at most so wide, in pixels; a word that is wider is broken."""
    ruler = figure.text(0, 0, "", parse_math=False, **style)

    def fits(piece: str) -> bool:
        ruler.set_text(piece)
        return bool(ruler.get_window_extent().width <= width)

    lines = [""]
    for word in line(text).split():
        if fits(longer := f"{lines[-1]} {word}".strip()):
            lines[-1] = longer
            continue
        lines.append("")
        for letter in word:
            if fits(lines[-1] + letter):
                lines[-1] += letter
            else:
                lines.append(letter)
    ruler.remove()
    return "\n".join(filter(None, lines))
