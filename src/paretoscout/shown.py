"""How things are shown, wherever that is: texts of others, marks of verdicts, units, time spans, Markdown.

Texts of others, names above all, are made harmless for where they are shown: new names are checked (`checks.name`), but
those in files of earlier versions may hold anything. JSON needs none of this: it is exact.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Sequence

#: The mark of each verdict, in the order in which options are listed.
MARKS = {"front": "★", "undecided": "◌", "same": "≡", "dominated": "×"}
#: What makes a spreadsheet take a cell for a formula.
FORMULA = ("=", "+", "-", "@")
#: All of a text but its last sentence, or what comes after its last semicolon.
CLAUSE = re.compile(r"(.+[?.;])\s\S")
MARKDOWN = re.compile(r"[\\`*\[\]<>|~&]|(?<!\w)_|_(?!\w)")


def line(text: str) -> str:
    r"""Return a text as one line: what cannot be printed is spelled out, so that it moves no cursor and ends no line.

    >>> print(line("x\n99\tnaïve"))
    x\n99\tnaïve
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


def lines(text: str) -> str:
    """Return a text whose lines are ours, each as `line` does."""
    return "\n".join(map(line, text.split("\n")))


def cell(text: str) -> str:
    """Return a text as a cell of a CSV file that no spreadsheet takes for a formula.

    >>> cell("=1+1"), cell("gzip -1")
    ("'=1+1", 'gzip -1')
    """
    shown = line(text)
    return f"'{shown}" if shown.lstrip("'").startswith(FORMULA) else shown


def of_cell(text: str) -> str:
    """Return the text that `cell` made a cell of, if it was printable.

    >>> of_cell("'=1+1"), of_cell("'quoted'")
    ('=1+1', "'quoted'")
    """
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(FORMULA) else text


def markdown(text: str) -> str:
    r"""Return a text that Markdown shows as it is, also within a table.

    >>> print(markdown("a|b <b>*x* per_core"))
    a\|b \<b\>\*x\* per_core
    """
    return MARKDOWN.sub(r"\\\g<0>", line(text))


def markup(text: str) -> str:
    """Return a text that HTML shows as it is."""
    return html.escape(line(text))


def markdown_table(header: Sequence[object], rows: Sequence[Sequence[object]], rule: str = "---") -> str:
    """Return a table in Markdown; cells are taken as they are, so that they may be bold.

    >>> print(markdown_table(["name", "n"], [["a", 1]]))
    | name | n |
    |---|---|
    | a | 1 |
    """
    first, *others = (f"| {' | '.join(map(str, row))} |" for row in (header, *rows))
    return "\n".join([first, "|" + f"{rule}|" * len(header), *others])


def counted(n: float, what: str, many: str | None = None) -> str:
    """Return how many there are of something; many: what several are called, if not by an s at the end.

    >>> counted(1, "run"), counted(2000, "run"), counted(0, "study", "studies")
    ('1 run', '2,000 runs', '0 studies')
    """
    return f"{n:,} {what if n == 1 else many or f'{what}s'}"


def brief(text: str, width: int) -> str:
    """Return a text that fits: without its last sentences, or cut at a word.

    >>> brief("What is it worth? All of it, measured: time against size.", 40)
    'What is it worth?'
    >>> brief("one; two", 4), brief("one two three", 11)
    ('one', 'one two ...')
    """
    while len(text) > width:
        kept = CLAUSE.match(text)
        if kept is None:
            return textwrap.shorten(text, width, placeholder=" ...")
        text = kept[1].rstrip(";")
    return text


def with_unit(number: str, unit: str) -> str:
    """Return a number with its unit, if it has one.

    >>> with_unit("3.2", "ms"), with_unit("3.2", "")
    ('3.2 ms', '3.2')
    """
    return f"{number} {unit}".rstrip()


def heading(name: str, unit: str) -> str:
    """Return what stands above a column of numbers, or beside an axis.

    >>> heading("time", "ms"), heading("quality", "")
    ('time (ms)', 'quality')
    """
    return f"{name} ({unit})" if unit else name


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many letters.

    >>> shortened("gzip -9 -kf numbers.txt", 8)
    'gzip -9…'
    """
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def exact_span(seconds: float) -> str:
    """Return a time span that somebody has set, in words.

    >>> exact_span(3600.0), exact_span(90.0), exact_span(0.5)
    ('1 h', '90 s', '0.5 s')
    """
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def rough_span(seconds: float) -> str:
    """Return about how long something takes, in words.

    >>> rough_span(8.2), rough_span(200), rough_span(7000), rough_span(1e6)
    ('8 s', '3 min', '1.9 h', '12 d')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 360000 else f"{seconds / 86400:.0f} d"
