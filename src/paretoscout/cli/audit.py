"""`paretoscout audit`: is delta delta?"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .exits import Exit
from .named import named, several

if TYPE_CHECKING:
    from rich.console import Group

    from ..audit.measure import Row


@click.command(short_help="Measure how often each algorithm fails, against what it promises.")
@click.option(
    "--algorithms",
    metavar="NAME[:SETTING=VALUE...],...",
    help="Which to audit.  [default: all that stop by themselves]",
)
@click.option("--delta", "deltas", multiple=True, type=float, help="Repeat for several.  [default: 0.1]")
@click.option("--family", "families", multiple=True, metavar="NAME", help="Only these cases; repeat for several.")
@click.option("--short", is_flag=True, help="Only the cheapest of the dangerous cases.")
@click.option(
    "--replicates",
    type=click.IntRange(min=1),
    help="Runs per row; costly cases get 0.6 times as many.  [default: 1000; with --short 600]",
)
@click.option("--seed", default=0, show_default=True, help="Same seed, same result.")
@click.option("--workers", type=click.IntRange(min=1), help="Threads.  [default: one per core]")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the rows to this JSON file.")
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON instead.")
def audit(
    algorithms: str | None,
    deltas: tuple[float, ...],
    families: tuple[str, ...],
    short: bool,
    replicates: int | None,
    seed: int,
    workers: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run every algorithm on families of instances; show measured failure with an exact interval beside delta.

    A run without an answer at its limit is a failure. Algorithms that claim no guarantee are run with less patience.
    The whole takes up to an hour. Ctrl-C shows what is finished.

    Exit code 0: every claimed guarantee was kept; 6: one was not, beyond doubt.
    """
    from .. import algorithms as known
    from ..audit import families as instances
    from ..audit import measure
    from . import show

    confident = [name for name in known.available() if not known.get(name).needs_budget]
    chosen = [named(text) for text in (confident if algorithms is None else several(algorithms))]
    cases = instances.cases(families, short)
    n = replicates or (measure.SHORT if short else measure.FULL)
    rows: list[Row] = []
    interrupted = False
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
    try:
        for row in measure.audit(
            [measure.Contender(record, asked) for record, asked in chosen],
            cases,
            deltas=deltas or (0.1,),
            replicates=n,
            seed=seed,
            workers=workers,
        ):
            rows.append(row)
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
        for name in dict.fromkeys(row.algorithm for row in rows):
            screen.print(audit_table(name, [row for row in rows if row.algorithm == name]))
        screen.print(
            f"intervals are exact; a right algorithm is called broken with probability at most "
            f"{measure.FALSE_ALARM:g} a row",
            style="dim",
        )
        if n < measure.SHORT:
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
            f"{row.failures} of {row.replicates}" + (f" ({row.capped} capped)" if row.capped else ""),
            f"{low:.3f}–{high:.3f}",
            _number(row.samples, ",.0f"),
            _number(row.microseconds, ",.2f"),
            "; ".join(filter(None, [row.verdict, row.reason])),
            style="bold red" if row.verdict == BROKEN else "",
        )
    claim = "claims a guarantee" if rows[0].claims else "claims no guarantee"
    notes = [Text(f"skipped {len(cases)} of {why}", style="dim") for why, cases in skipped.items()]
    return Group(Text(f"{name}: {claim}", style="bold"), grid, *notes, Text())


def _number(value: Any, form: str) -> str:
    return "–" if value != value else format(value, form)
