"""How studies, verdicts and results look in a notebook: a picture, if matplotlib is installed, and a table; as HTML."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from .errors import MissingExtra
from .shown import markup

#: How the rows of a table look, by verdict; colours are those of the notebook, light or dark.
LOOKS = {"front": "font-weight: 600", "same": "opacity: 0.85", "dominated": "opacity: 0.65"}
#: Texts are on the left and may be broken, numbers are on the right and may not.
TEXT, NUMBER = (
    f"vertical-align: top; padding: 0.25em 1.5em 0.25em 0; {how}"
    for how in ("text-align: left; overflow-wrap: break-word", "text-align: right; white-space: nowrap")
)


def page(
    head: str,
    rows: Sequence[Sequence[str]],
    notes: Iterable[str],
    *,
    texts: int,
    looks: Sequence[str] = (),
    drawing: str = "",
) -> str:
    """Return a heading, a drawing, a table whose first row is its header, and notes; all but the drawing plain texts.

    texts: so many columns are texts, the others are numbers. looks: the verdict of each row. drawing: see `picture`.

    >>> page("", [["name"], ["<b>"]], [], texts=1).count("&lt;b&gt;")
    1
    """

    def line_of(row: Sequence[str], tag: str, look: str = "") -> str:
        cells = (
            f'<{tag} style="{TEXT if column < texts else NUMBER}">{markup(text)}</{tag}>'
            for column, text in enumerate(row)
        )
        return f'<tr style="{LOOKS.get(look, "")}">{"".join(cells)}</tr>'

    header, *body = rows
    looks = looks or [""] * len(body)
    return "".join(
        [
            f"<p><strong>{markup(head)}</strong></p>" if head else "",
            drawing,
            '<div style="overflow-x: auto"><table style="margin: 0">',
            f"<thead>{line_of(header, 'th')}</thead>",
            f"<tbody>{''.join(line_of(row, 'td', look) for row, look in zip(body, looks, strict=True))}</tbody>",
            "</table></div>",
            *(f'<p style="font-size: 0.9em; max-width: 60em; margin: 0.5em 0">{markup(note)}</p>' for note in notes),
        ]
    )


def picture(kind: str, shown: Any) -> str:
    """Return a figure of `plots`, by its name, as a drawing within a page; nothing where matplotlib is missing."""
    # looked up, not imported: plots are drawn of the very things that are shown here, and only when somebody looks
    plots = import_module(f"{__package__}.plots")
    try:
        figure = getattr(plots, kind)(shown)
    except MissingExtra:
        return ""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    drawing = out.getvalue()
    return drawing[drawing.index("<svg") :].replace("<svg", '<svg style="max-width: 100%; height: auto"', 1)
