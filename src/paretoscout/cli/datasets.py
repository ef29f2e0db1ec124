"""`paretoscout datasets`: which there are, what is known of each, and fetching them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

    from ..problems import Dataset


@click.group(invoke_without_command=True, short_help="List the data sets; show one; fetch some.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON instead.")
@click.pass_context
def datasets(ctx: click.Context, as_json: bool) -> None:
    """List the data sets: what they hold, under which licence, and where they are on this machine.

    A data set is looked for in the folder PARETOSCOUT_DATA (default: ../shared/data), then among those fetched.
    """
    if ctx.invoked_subcommand is not None:
        return
    from ..problems import DATASETS

    if as_json:
        click.echo(json.dumps([dataset.as_dict() for dataset in DATASETS.values()], indent=2, allow_nan=False))
        return
    from . import show

    screen = show.console()
    screen.print(listing(list(DATASETS.values())))
    screen.print(
        "details: paretoscout datasets show NAME; to get one: paretoscout datasets fetch NAME; "
        "to use one: paretoscout demo NAME",
        style="dim",
        soft_wrap=True,
    )


@datasets.command(name="show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON instead.")
def show_card(name: str, as_json: bool) -> None:
    """Show all that is known of one data set."""
    from ..problems import card

    dataset = card(name)
    if as_json:
        click.echo(json.dumps(dataset.as_dict(), indent=2, allow_nan=False))
        return
    for heading, text in _facts(dataset):
        long = heading in ("noise", "notes")  # addresses and paths stay whole
        click.echo(click.wrap_text(text, 100, f"{heading:<10}", " " * 10) if long else f"{heading:<10}{text}")


@datasets.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--mirror", help="Fetch from this address instead; files are at MIRROR/OWNER/REPOSITORY/COMMIT/PATH.")
def fetch(names: tuple[str, ...], mirror: str | None) -> None:
    """Download data sets from their public sources, and check that they are what they should be."""
    from .. import problems
    from ..problems.datasets import RAW, in_bytes

    for dataset in [problems.card(name) for name in names]:  # all names are right before anything is downloaded
        n = len(dataset.upstream.paths)
        files = f"{n:,} files, " if n > 1 else ""
        click.echo(f"{dataset.name}: {files}{in_bytes(dataset.upstream.bytes)} from {dataset.source}", err=True)
        click.echo(f"{dataset.name}: {problems.fetch(dataset.name, mirror or RAW)}")


def listing(rows: list[Dataset]) -> Table:
    """One line for each data set."""
    from rich.table import Table

    from ..problems.datasets import in_bytes

    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    grid.add_column("name", no_wrap=True)
    grid.add_column("arms", justify="right")
    grid.add_column("metrics", overflow="fold")
    grid.add_column("size", justify="right", no_wrap=True)
    grid.add_column("licence", no_wrap=True)
    grid.add_column("where", overflow="fold")
    for dataset in rows:
        here = dataset.here()
        grid.add_row(
            dataset.name,
            f"{dataset.arms:,}",
            _metrics(dataset),
            in_bytes(dataset.upstream.bytes),
            dataset.licence,
            "not here" if here is None else str(here.parents[1]),
            style="dim" if here is None else "",
        )
    return grid


def _metrics(dataset: Dataset) -> str:
    return ", ".join(f"{metric.name} {metric.direction}" for metric in dataset.metrics)


def _facts(dataset: Dataset) -> list[tuple[str, str]]:
    from ..guarantee import difference
    from ..problems.datasets import in_bytes

    up, here = dataset.upstream, dataset.here()
    many = f"{len(up.paths):,} files, " if len(up.paths) > 1 else ""
    eps = ", ".join(f"{metric.name} {difference(metric.tolerance, metric)}" for metric in dataset.metrics)
    return [
        ("name", dataset.name),
        ("", dataset.about),
        ("source", up.url()),
        ("size", f"{many}{in_bytes(up.bytes)}"),
        ("sha256", up.sha256),
        ("licence", dataset.licence),
        ("arms", f"{dataset.arms:,}, {dataset.front} of them optimal; {dataset.rows:,} rows"),
        ("metrics", _metrics(dataset)),
        ("eps", f"{eps} (unless told)"),
        ("noise", dataset.noise),
        ("notes", dataset.notes),
        ("where", str(here) if here else f"not here: paretoscout datasets fetch {dataset.name}"),
    ]
