"""Parts of pages that are made from the code: every command, from click; every data set, from the catalogue."""

from __future__ import annotations

import inspect
import re
from typing import Any, ClassVar

import click
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from paretoscout.cli.main import main


def cell(text: str) -> str:
    """A text in a cell of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def literal(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def command_page(command: click.Command, context: click.Context, level: int) -> list[str]:
    """Return the Markdown of one command, and of those below it."""
    lines = ["#" * level + f" `{context.command_path}`", ""]
    lines += ["```text", context.get_usage().removeprefix("Usage: "), "```", ""]
    lines += [paragraph(text) for text in inspect.cleandoc(command.help or "").split("\n\n")]
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if not isinstance(parameter, click.Argument) else None
        if record is not None:
            rows.append(f"| {literal(record[0])} | {cell(escaped(record[1]))} |")
    if rows:
        lines += ["| option | what it does |", "|---|---|", *rows, ""]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                lines += command_page(inner, context_of(inner, name, context), level + 1)
    return lines


def context_of(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    return click.Context(command, info_name=name, parent=parent, max_content_width=100)


def paragraph(text: str) -> str:
    """A paragraph of a help text; click's mark says that its lines are kept."""
    if text.startswith("\b"):
        return "```text\n" + text.removeprefix("\b").strip("\n") + "\n```\n"
    return escaped(re.sub(r"\s*\n\s*", " ", text)) + "\n"


def escaped(text: str) -> str:
    """Plain text as Markdown that shows just that."""
    return re.sub(r"([\\*_<>\[\]{}$`#~])", r"\\\1", text)


def sections() -> dict[str, list[str]]:
    """Names of commands under the headings of `paretoscout --help`."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in main.get_help(context_of(main, "paretoscout", None)).splitlines():
        if re.match(r"^\w.*:$", line):
            heading = line.rstrip(":")
        elif found_command := re.match(r"^  ([a-z][\w-]*)(  |$)", line):
            found.setdefault(heading, []).append(found_command[1])
    found.pop("Options", None)
    return found


class Commands(SphinxDirective):
    """`{commands} HEADING`: all commands under a heading of `paretoscout --help`."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        context = context_of(main, "paretoscout", None)
        lines: list[str] = []
        for name in sections()[self.arguments[0]]:
            command = main.get_command(context, name)
            assert command is not None
            lines += command_page(command, context_of(command, name, context), 2)
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


class DataSets(SphinxDirective):
    """`{data-sets}`: a table of the data sets, and of the built-in problems."""

    option_spec: ClassVar[dict[str, Any]] = {"built-in": directives.flag}

    def run(self) -> list[nodes.Node]:
        from paretoscout import problems

        names = sorted(problems.available().items())
        sets = (
            {name.name for name in problems.DATASETS} if not isinstance(problems.DATASETS, dict) else problems.DATASETS
        )
        chosen = [(name, about) for name, about in names if (name in sets) != ("built-in" in self.options)]
        lines = ["| name | what it is |", "|---|---|"]
        lines += [f"| {literal(name)} | {cell(escaped(about))} |" for name, about in chosen]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("commands", Commands)
    app.add_directive("data-sets", DataSets)
    return {"parallel_read_safe": True}
