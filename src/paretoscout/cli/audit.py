"""`paretoscout audit`: is delta delta?"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..written import named
from .conventions import Exit
from .values import several

if TYPE_CHECKING:
    from rich.console import Group

    from ..audit.measure import Row


@click.command(short_help="Measure how often algorithms and doors fail, against what is promised.")
@click.option(
    "--algorithms",
    metavar="NAME[:SETTING=VALUE...],...",
    help="Which to audit, without the doors.  [default: all that stop by themselves]",
)
@click.option(
    "--doors/--no-doors",
    default=None,
    help="Only the doors, through which numbers come into a study; or only the algorithms.  [default: both]",
)
@click.option("--delta", "deltas", multiple=True, type=float, help="Repeat for several.  [default: 0.1]")
@click.option(
    "--family", "families", multiple=True, metavar="NAME", help="Only these cases, or this door; repeat for several."
)
@click.option("--short", is_flag=True, help="Only the cheapest of the dangerous cases.")
@click.option(
    "--replicates",
    type=click.IntRange(min=1),
    help="Runs per row; costly cases get 0.6 times as many.  [default: until it is clear, at most 1000, doors 300; "
    "with --short 600 and 40]",
)
@click.option("--seed", default=0, show_default=True, help="Same seed, same result.")
@click.option("--workers", type=click.IntRange(min=1), help="Threads, or processes for doors.  [default: one per core]")
@click.option("--engine", metavar="ENGINE", help="Where runs are played: as in 'paretoscout sweep'.")
@click.option(
    "--rows",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep every run in this folder, one row each; what is there is not run again.",
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the rows to this JSON file.")
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON instead.")
def audit(
    algorithms: str | None,
    doors: bool | None,
    deltas: tuple[float, ...],
    families: tuple[str, ...],
    short: bool,
    replicates: int | None,
    seed: int,
    workers: int | None,
    engine: str | None,
    folder: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run every algorithm on families of instances; show measured failure with an exact interval beside delta.

    And every door: tables, imports, workers, guards, options that come and go, bench. A run without an answer at its
    limit is a failure; at a door it is undecided. A row ends once it is clear whether it fails more often than delta,
    or after ten minutes of work (of a door: 40 s), unless you say how many runs it gets. Algorithms that claim no
    guarantee are run with less patience. The whole takes two hours. Ctrl-C shows what is finished.

    Exit code 0: every claimed guarantee was kept; 6: one was not, beyond doubt.
    """
    from .. import algorithms as known
    from ..audit import doors as ways_in
    from ..audit import families as instances
    from ..audit import measure
    from ..errors import UnknownName
    from . import show

    for name in families:
        if name not in instances.FAMILIES and name not in ways_in.DOORS:
            raise UnknownName("family", name, [*instances.FAMILIES, *ways_in.DOORS])
    if doors and algorithms is not None:
        raise click.UsageError("--doors and --algorithms must not be given together: doors are run with their own")
    confident = [name for name in known.available() if not known.get(name).needs_budget]
    chosen = [named(text) for text in (confident if algorithms is None else several(algorithms))]
    theirs = [name for name in families if name in instances.FAMILIES]
    ours = [name for name in families if name in ways_in.DOORS]
    cases = [] if doors or (ours and not theirs) else instances.cases(theirs, short)
    with_doors = doors is not False and algorithms is None and (ours or not theirs)
    door_cases = ways_in.door_cases(ours, short) if with_doors else []
    n = replicates or (measure.SHORT if short else measure.FULL)
    how: dict[str, Any] = {"deltas": deltas or (0.1,), "to_the_end": replicates is not None}
    how |= {"seed": seed, "workers": workers, "progress": True, "folder": folder}
    how |= {} if engine is None else {"engine": engine}
    total = (len(chosen) * len(cases) + len(door_cases)) * len(how["deltas"])
    rows: list[Row] = []
    interrupted = False
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
    quiet = not sys.stderr.isatty()  # no bar: a line for each row
    began = time.monotonic()
    try:
        for row in chain(
            measure.audit([measure.Contender(*each) for each in chosen], cases, replicates=n, **how),
            measure.audit_doors(
                door_cases,
                replicates=replicates or (measure.DOOR_SHORT if short else measure.DOOR_FULL),
                **how,
            ),
        ):
            rows.append(row)
            if quiet:
                click.echo(progress_line(row, len(rows), total, time.monotonic() - began), err=True)
    except KeyboardInterrupt:
        interrupted = True
        click.echo("interrupted: what is finished follows", err=True)
    plain = json.dumps([row.as_dict() for row in rows], indent=2, allow_nan=False)
    if out is not None:
        out.write_text(plain + "\n")
    if as_json:
        click.echo(plain)
    else:
        screen = show.console()
        for door, name in dict.fromkeys((row.door, row.algorithm) for row in rows):
            screen.print(audit_table(name, [row for row in rows if (row.door, row.algorithm) == (door, name)]))
        screen.print(
            f"intervals are exact; a right algorithm is called broken with probability at most "
            f"{measure.FALSE_ALARM:g} a row",
            style="dim",
        )
        if cases and n < measure.SHORT:
            screen.print(f"fewer than {measure.SHORT} replicates: twice delta may pass for delta", style="dim")
        screen.print(measure.summary(rows), soft_wrap=True, markup=False)
    if interrupted:
        sys.exit(Exit.INTERRUPTED)
    sys.exit(Exit.FAILED if measure.broken(rows) else 0)


def audit_table(name: str, rows: Sequence[Row]) -> Group:
    """One algorithm: what it was run on, how often it failed, and the verdict; red where a promise is broken."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from ..audit.measure import BROKEN, SKIPPED
    from .show import plain

    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    grid.add_column("case", overflow="fold")
    for heading in ("delta", "failures", "interval", "samples", "µs/sample"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    family = ""
    skipped: dict[str, list[str]] = {}
    for row in rows:
        if row.verdict == SKIPPED:
            skipped.setdefault(f"{row.family}: {row.reason}", []).append(row.case)
            continue
        if row.family != family:
            family = row.family
            grid.add_row(Text(family, style="bold"))
        low, high = row.interval
        grid.add_row(
            plain(row.case),
            f"{row.delta:g}",
            _failures(row),
            f"{low:.3f}–{high:.3f}",
            _number(row.samples, ",.0f"),
            _number(row.microseconds, ",.2f"),
            "; ".join(filter(None, [row.verdict, row.reason])),
            style="bold red" if row.verdict == BROKEN else "",
        )
    claim = "claims a guarantee" if rows[0].claims else "claims no guarantee"
    name = f"doors, {name}" if rows[0].door else name
    notes = [Text(f"skipped {len(cases)} of {why}", style="dim") for why, cases in skipped.items()]
    return Group(Text(f"{name}: {claim}", style="bold"), grid, *notes, Text())


def progress_line(row: Row, number: int, total: int, seconds: float) -> str:
    """One line for a row that is finished."""
    who = "door" if row.door else row.algorithm
    minutes, rest = divmod(int(seconds), 60)
    what = row.reason if not row.replicates else _failures(row)
    return f"{number} of {total}, {minutes}:{rest:02d} min: {who} {row.family}: {row.case}: {what}: {row.verdict}"


def _failures(row: Row) -> str:
    notes = [(row.capped, "capped"), (row.undecided, "undecided")]
    said = ", ".join(f"{count} {what}" for count, what in notes if count)
    return f"{row.failures} of {row.replicates}" + (f" ({said})" if said else "")


def _number(value: Any, form: str) -> str:
    return "–" if value != value else format(value, form)
