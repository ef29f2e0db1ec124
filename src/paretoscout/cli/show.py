"""Tables and sentences for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ..answer import larger_eps, sentence
from ..errors import InvalidInput
from ..shown import counted, line
from ..simulation.results import HEADINGS, Summary
from ..verdicts import ABOUT, MOST_ROWS, VerdictTable, cells, headings, rows_shown

if TYPE_CHECKING:
    from ..study import Details, Remaining, Study

_STYLES = {"front": "bold green", "same": "green", "undecided": "yellow", "dominated": "dim"}


def console() -> Console:
    """A console that does not squeeze tables when its output goes to a file."""
    screen = Console(highlight=False)
    return screen if screen.is_terminal else Console(highlight=False, width=max(140, screen.width))


def verdict_table(table: VerdictTable, outlook: str = "", most: int | None = MOST_ROWS, hint: str = "") -> Group:
    """The verdicts, front first: who, by or against whom, estimates with their intervals, samples; what is to come.

    most: so many rows; None: all. hint: what shows all of them.
    """
    sizes = f"{counted(len(table.arms), 'option')}, {counted(len(table.metrics), 'metric')}"
    head = Text(f"{sizes}\nGuarantee: {line(str(table.guarantee))}")
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for title in headings(table):
        named = title in ("option", "verdict")  # names may be long, numbers are never cut
        grid.add_column(plain(title), justify="right" if title == "n" else "left", no_wrap=not named, overflow="fold")
    order, rest = rows_shown(table, most, hint)
    for k in order:
        grid.add_row(*map(_cell, cells(table, k)), style=_STYLES[table.verdicts[k]])
    remark = [Text(line(remark), style="yellow") for remark in table.remarks]
    remark += [Text(line(f"warning: {warning}"), style="yellow") for warning in table.warnings]
    more = [Text(rest, style="dim")] if rest else []
    return Group(head, grid, *more, *remark, Text("; ".join(filter(None, [table.tally(), outlook]))))


def answer(screen: Console, table: VerdictTable, study: Study | Details, ahead: Remaining | None = None) -> None:
    """Say in one line what came out, and what it takes to decide what is undecided: the last line that is printed.

    study: what the table is of, at its moment: while others measure, `Details`.
    """
    wants = ""
    if "undecided" in table.verdicts:
        wants = f"{ahead.more} would decide it" if ahead is not None and ahead.high and not study.stuck else ""
        if (larger := study.with_larger_eps()) is not None:
            said(screen, larger_eps(larger))
    said(screen, sentence(table, ahead=wants))


def said(screen: Console, text: str) -> None:
    """Print a text in one line, however wide the screen is."""
    screen.print(line(text), markup=False, soft_wrap=True)


def more_table(options: Sequence[str], columns: Sequence[tuple[str, dict[str, str]]]) -> Table:
    """What else there is of each option, below the verdicts: headings, and texts by option."""
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    grid.add_column("option", overflow="fold")
    for title, _ in columns:
        grid.add_column(plain(title), overflow="fold")
    for option in options:
        grid.add_row(plain(option), *(_cell(texts[option]) for _, texts in columns))
    return grid


def _cell(text: str) -> Text:
    """A cell of a table; a number of which no interval is known is grey."""
    shown = plain(text)
    if text.startswith(ABOUT):
        shown.stylize("dim")
    return shown


def plain(name: str) -> Text:
    """A name as it is: neither markup ("[red]") nor control characters do anything."""
    return Text(line(name))


def comparison_table(summaries: Sequence[Summary]) -> Table:
    """Algorithms side by side: samples, regret, how often they were right; red where that is too seldom."""
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    grid.add_column(HEADINGS[0], overflow="fold")
    for title in HEADINGS[1:]:
        grid.add_column(title, justify="right", no_wrap=True)
    for summary in summaries:
        seldom = summary.success_interval[1] < summary.promised
        grid.add_row(*map(plain, summary.cells()), style="red" if seldom else "")
    return grid


def writable(picture: Path) -> None:
    """Refuse a path for the picture before the work, not after it."""
    if picture.suffix.lower() not in (".png", ".svg"):
        raise InvalidInput(f"--out must end in .png or .svg, got {picture.name!r}")
    in_a_folder(picture)


def in_a_folder(path: Path, option: str = "--out") -> None:
    """Refuse a path in a folder that is not there."""
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"{option} must be in a folder that exists, got {path}")
