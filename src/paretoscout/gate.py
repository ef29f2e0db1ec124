"""Fail a build if the change is dominated: what a verdict means for a pipeline, and the comment it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .answer import reason, sentence
from .errors import InvalidInput, UnknownName
from .shown import markdown, markdown_table
from .verdicts import VerdictTable, cells, headings, rows_shown

#: What happens if it is undecided whether the change is dominated.
UNDECIDED = ("pass", "fail")


@dataclass(frozen=True)
class Gate:
    """The options that must not be dominated, and what happens if nobody can tell.

    names: of the options. undecided: "pass" or "fail".
    """

    names: tuple[str, ...]
    undecided: str = "pass"

    def check(self, options: Sequence[str]) -> None:
        """Refuse names that no option has."""
        if self.undecided not in UNDECIDED:
            raise InvalidInput(f"--undecided must be pass or fail, got {self.undecided!r}")
        for name in self.names:
            if name not in options:
                raise UnknownName("option in --fail-if-dominated:", name, options)

    def found(self, table: VerdictTable, verdict: str) -> list[str]:
        """Return the options of the gate that have a verdict."""
        return [name for name in self.names if table.verdicts[table.place[name]] == verdict]

    def fails(self, table: VerdictTable) -> bool:
        """Whether the build fails."""
        return bool(self.found(table, "dominated") or (self.undecided == "fail" and self.found(table, "undecided")))

    def said(self, table: VerdictTable) -> list[str]:
        """Say what the verdicts mean for the build, a line for each option."""
        lines = []
        for name in self.names:
            k = table.place[name]
            verdict, rival = table.verdicts[k], table.rivals[k]
            if verdict == "dominated":
                lines.append(f"fails: {name} is dominated by {rival}: {reason(table, k)}")
            elif verdict == "undecided":
                why = f"it is undecided whether {name} is dominated: that is no proof that it is not"
                lines.append(f"fails: {why} (--undecided fail)" if self.undecided == "fail" else f"passes, but {why}")
            elif verdict == "same":
                lines.append(f"passes: {name} is the same as {rival}")
            else:
                lines.append(f"passes: {name} is worth having")
        return lines


def comment(table: VerdictTable, gate: Gate | None = None, notes: Sequence[str] = ()) -> str:
    """Return verdicts as Markdown, for a comment or a summary: what they mean, the table, what they rest on."""
    said = [] if gate is None else gate.said(table)
    head = "undecided" if "undecided" in table.verdicts else "decided"
    if said:
        head = "the change fails" if gate is not None and gate.fails(table) else "the change passes"
    order, rest = rows_shown(table)
    header, *escaped = (
        [markdown(text) for text in row] for row in [headings(table), *(cells(table, k) for k in order)]
    )
    parts = [
        f"### paretoscout: {head}",
        *(["\n".join(f"- {markdown(each)}" for each in said)] if said else []),
        markdown(sentence(table)),
        markdown_table(header, escaped, rule=" --- "),
        *([markdown(rest)] if rest else []),
        f"Guarantee: {markdown(str(table.guarantee))}",
    ]
    more = [*table.remarks, *(f"warning: {warning}" for warning in table.warnings), *notes]
    if more:
        listed = "\n".join(f"- {markdown(each)}" for each in more)
        parts.append(f"<details><summary>What was taken, and what to know</summary>\n\n{listed}\n\n</details>")
    return "\n\n".join(parts) + "\n"
