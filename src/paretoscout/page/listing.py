"""The list of studies: one row for each, made of what its caller has at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from ..shown import MARKS
from . import sentences, words
from .progress import spark
from .view import MANY, WITHDRAWN, View

#: So many options of the front are named in a row.
MOST_NAMED = 5
#: Groups of the list, by the states of studies.
GROUPS = (
    ("Running", ("running", "empty")),
    ("Waiting for somebody", ("spent", "stuck", "unreadable")),
    ("Decided", ("done",)),
)


@dataclass(frozen=True)
class Row:
    """A study in the list."""

    name: str
    title: str
    link: str
    state: str  # one of STATES of `view`, or "unreadable"
    front: tuple[str, ...] = ()
    marks: tuple[tuple[str, str], ...] = ()  # of each option its verdict and its mark; empty: they are too many
    tally: tuple[tuple[str, int], ...] = ()  # how many options have each verdict
    says: str = ""  # "7 of 12 decided"
    more: str = ""  # "about 300 more runs"
    problem: str = ""  # why it cannot be read
    at: float | None = None
    by: str = ""
    first: int = 0  # how many were undecided at first
    left: int = 0
    spark: Markup = field(default_factory=Markup)
    tags: tuple[str, ...] = ()


def row_of(view: View, link: str) -> Row:
    """Return the row of a study, from its view."""
    standing, steps, samples = view.standing, view.steps, view.history.samples
    verdicts = standing.table.verdicts
    tally = {verdict: verdicts.count(verdict) for verdict in MARKS} | {"withdrawn": len(standing.withdrawn)}
    more = "no runs yet" if not samples else f"{samples:,} runs"
    if view.state == "done":
        more = f"in {samples:,} runs" + (f"; {len(standing.withdrawn):,} out" if standing.withdrawn else "")
    elif view.state in ("running", "spent", "stuck"):
        more = (sentences.outlook(view).removeprefix("; ") or more).removesuffix(" will tell")
    marks = tuple(
        (verdict, {**MARKS, "withdrawn": WITHDRAWN}[verdict]) for verdict, count in tally.items() for _ in range(count)
    )
    n, left = len(verdicts), tally["undecided"]
    return Row(
        name=standing.name,
        title=standing.title or standing.name,
        link=link,
        state=view.state,
        front=tuple(standing.front),
        marks=marks if len(marks) <= MANY else (),
        tally=tuple(tally.items()),
        says=f"{n - left:,} of {n:,} decided" if left else f"all {n:,} decided",
        more=more,
        at=view.at,
        by=next(reversed(view.history.workers), "") if view.history.workers else view.history.began_by,
        first=steps[0][1],
        left=left,
        spark=spark(steps, samples, view.state == "done"),
        tags=tuple(standing.tags),
    )


def unreadable(name: str, problem: str, link: str = "") -> Row:
    """Return the row of a study that cannot be read, and why."""
    return Row(name=name, title=name, link=link, state="unreadable", problem=problem)


def found(rows: Sequence[Row], query: str) -> list[Row]:
    """Return the rows whose question, name, tags or options of the front have a text in them."""
    wanted = query.strip().casefold()
    if not wanted:
        return list(rows)
    return [row for row in rows if wanted in " ".join([row.name, row.title, *row.front, *row.tags]).casefold()]


def grouped(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Return rows in groups, what happened last first."""
    ranked = sorted(rows, key=lambda row: -(row.at or 0.0))
    groups = [(title, [row for row in ranked if row.state in states]) for title, states in GROUPS]
    return [(title, rows) for title, rows in groups if rows]


def summary(rows: Sequence[Row]) -> str:
    """Say how many there are of each kind."""
    said = [f"{len(of_group):,} {title[0].lower()}{title[1:]}" for title, of_group in grouped(rows)]
    return words.capital(f"{', '.join(said)}.") if said else "There are no studies yet."
