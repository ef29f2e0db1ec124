"""Notebooks as pages: their text, their code, and what came out of it when they were run (`make notebooks`)."""

from __future__ import annotations

import json
import re
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx


def as_markdown(notebook: dict[str, Any]) -> str:
    """Return a notebook as Markdown, its drawings and tables as HTML within it."""
    parts: list[str] = []
    for number, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            shown = output.get("data", {})
            if "text/html" in shown:
                parts.append(raw(apart("".join(shown["text/html"]), f"c{number}-")))
            else:
                text = "".join(output.get("text") or shown.get("text/plain", ""))
                parts.append(f"````{{code-block}} text\n:class: output\n\n{text.rstrip()}\n````")
    return "\n\n".join(parts) + "\n"


def raw(html: str) -> str:
    return f"`````{{raw}} html\n<div class='cell-output'>{html}</div>\n`````"


def apart(html: str, before: str) -> str:
    """Several drawings stand on one page: their names must differ."""
    html = re.sub(r'\bid="', f'id="{before}', html)
    html = re.sub(r'href="#', f'href="#{before}', html)
    return re.sub(r"url\(#", f"url(#{before}", html)


class NotebookParser(MystParser):
    """Reads a notebook as the Markdown that it amounts to."""

    supported = ("ipynb",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        super().parse(as_markdown(json.loads(inputstring)), document)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_source_suffix(".ipynb", "ipynb")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
