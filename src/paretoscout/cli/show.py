"""Tables and sentences for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ..simulation.results import Summary
from ..verdicts import VerdictTable

_MARKS = {"front": ("★", "bold green"), "undecided": ("◌", "yellow"), "dominated": ("×", "dim")}
_ORDER = list(_MARKS)


def console() -> Console:
    """A console that does not squeeze tables when its output goes to a file."""
    screen = Console(highlight=False)
    return screen if screen.is_terminal else Console(highlight=False, width=max(140, screen.width))


def verdict_table(table: VerdictTable) -> Group:
    """The verdicts, front first: who, by or against whom, estimates with their intervals, samples."""
    L = len(table.metrics)
    head = Text(f"{len(table.arms)} options, {L} metric{'s' if L > 1 else ''}\nGuarantee: {table.guarantee}")
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    grid.add_column("option", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    for metric in table.metrics:
        grid.add_column(Text(f"{metric.name} ({metric.unit})" if metric.unit else metric.name), no_wrap=True)
    grid.add_column("n", justify="right", no_wrap=True)
    if table.survives is not None:
        grid.add_column("rests on", no_wrap=True)
    best_first = [1 if metric.direction == "min" else -1 for metric in table.metrics]
    for k in sorted(
        range(len(table.arms)),
        key=lambda k: (_ORDER.index(table.verdicts[k]), best_first[0] * table.estimates[k, 0]),
    ):
        mark, style = _MARKS[table.verdicts[k]]
        words = {"front": "front", "undecided": "undecided vs", "dominated": "dominated by"}[table.verdicts[k]]
        rival = table.rivals[k] if table.verdicts[k] != "front" else None
        grid.add_row(
            plain(table.arms[k]),
            plain(f"{mark} {words} {rival}" if rival else f"{mark} {table.verdicts[k]}"),
            *(with_radius(table.estimates[k, metric], table.radii[k, metric]) for metric in range(L)),
            f"{int(table.counts[k]):,}",
            *([] if table.survives is None else [table.rests_on(k)]),
            style=style,
        )
    remark = [Text(table.remark, style="yellow")] if table.remark else []
    return Group(head, grid, *remark, Text(table.tally()))


def plain(name: str) -> Text:
    """A name as it is: neither markup ("[red]") nor control characters do anything."""
    return Text("".join(letter if letter.isprintable() else "�" for letter in name))


def with_radius(value: float, radius: float) -> str:
    """Show an estimate to the digits its radius supports.

    >>> with_radius(0.86123, 0.0114)
    '0.861 ±0.011'
    >>> with_radius(1234.5, 60.0)
    '1234 ±60'
    >>> with_radius(0.0, float("inf"))
    '–'
    """
    if not math.isfinite(radius):
        return "–"
    digits = 3 if radius == 0 else max(0, 1 - math.floor(math.log10(radius)))
    return f"{value:.{digits}f} ±{radius:.{digits}f}"


def comparison_table(summaries: Sequence[Summary]) -> Table:
    """Algorithms side by side: samples, regret, how often they were right; red where that is too seldom."""
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    grid.add_column("algorithm", overflow="fold")
    for title in ("samples", "regret", "success"):
        grid.add_column(title, justify="right", no_wrap=True)
    for summary in summaries:
        low, high = summary.success_interval
        grid.add_row(
            plain(summary.label),
            f"{summary.samples_mean:,.0f} {_interval(summary.samples_interval)}",
            f"{summary.regret_mean:,.1f} {_interval(summary.regret_interval)}",
            f"{summary.success_rate:.3f} ({low:.3f}–{high:.3f})" + ("" if summary.stopped_rate == 1 else " *"),
            style="red" if high < summary.promised else "",
        )
    return grid


def _interval(interval: tuple[float, float]) -> str:
    low, high = interval
    digits = 0 if high >= 100 else 1
    return f"({low:,.{digits}f}–{high:,.{digits}f})" if math.isfinite(low) else "(–)"
