"""Texts of others, names above all, made harmless for where they are shown. JSON needs none of this: it is exact.

New names are checked (`checks.name`); those in files of earlier versions may hold anything.
"""

from __future__ import annotations

import html
import re

#: What makes a spreadsheet take a cell for a formula.
FORMULA = ("=", "+", "-", "@")
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
