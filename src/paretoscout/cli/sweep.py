"""`paretoscout sweep`: many runs of many algorithms, described in a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from ..shown import line
from .conventions import Exit


@click.command(short_help="Run algorithms on problems over a grid of settings; keep every run.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for the rows.  [default: the file's]"
)
@click.option(
    "--engine", help="threads, processes, dask, ray, dask://HOST:8786 or ray://HOST:10001.  [default: the file's]"
)
@click.option("--workers", type=click.IntRange(min=1), help="How many, on this machine.  [default: one per core]")
@click.option("--replicates", type=click.IntRange(min=1), help="Of each combination.  [default: the file's, or 100]")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON instead.")
def sweep(
    file: Path, out: Path | None, engine: str | None, workers: int | None, replicates: int | None, as_json: bool
) -> None:
    """Run the sweep that the YAML file FILE describes, and print what came out.

    The folder gets Parquet files with one row for each run (CSV files where pyarrow is not installed). What is in it
    already is not run again: after a crash or Ctrl-C the same command goes on.

    Exit code 0: all runs are there; 130: interrupted.
    """
    from ..errors import InvalidInput
    from ..sweeps.described import read
    from ..sweeps.grid import sweep as run
    from . import show

    described = read(file)
    given = {"out": out, "engine": engine, "workers": workers, "replicates": replicates}
    described |= {name: value for name, value in given.items() if value is not None}
    if "out" not in described:
        raise InvalidInput(f"{file} must have out, a folder, or --out must be given")
    done = run(**described, progress=True)
    if as_json:
        click.echo(json.dumps([each.as_dict() for each in done.lines], indent=2, allow_nan=False))
    else:
        from rich.table import Table

        head, *rows = done.table
        grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
        for place, heading in enumerate(head):
            grid.add_column(heading, justify="left" if place < 2 else "right", overflow="fold")
        for row in rows:
            grid.add_row(*map(show.plain, row))
        screen = show.console()
        screen.print(grid)
        for note in done.notes:
            screen.print(line(note), markup=False, soft_wrap=True)
        screen.print(f"every run: {done.folder.path} (pandas.read_{done.folder.form})", markup=False, soft_wrap=True)
    if done.interrupted:
        click.echo("interrupted: the same command goes on from there", err=True)
        sys.exit(Exit.INTERRUPTED)
