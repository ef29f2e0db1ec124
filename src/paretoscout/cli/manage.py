"""`paretoscout studies`, `add-arm`, `withdraw`, `delete`, `db upgrade`: looking after studies."""

from __future__ import annotations

import json

import click

from . import values
from .options import JSON_HELP, found, load, storage_option, study_options


@click.command(name="add-arm", short_help="Add options to a study.")
@click.argument("arms", nargs=-1, required=True, metavar="ARM...")
@click.option("--context", "contexts", multiple=True, metavar="NAME=VALUE", help="What is known of the option.")
@study_options
def add_arm(arms: tuple[str, ...], contexts: tuple[str, ...], storage: str, name: str) -> None:
    """Add options, new ones or such as were withdrawn. What was measured so far stays.

    The guarantee holds for the options there are then, if the outcomes so far were no reason to add them.
    """
    study = load(storage, name)
    known = values.pairs("--context", contexts, "NAME=VALUE")
    study.add_arms({"arm": list(arms), **{key: [value] * len(arms) for key, value in known.items()}} if known else arms)
    click.echo(study.verdicts().tally())


@click.command(short_help="Take an option out of a study.")
@click.argument("arm")
@click.option("--reason", default="withdrawn", metavar="TEXT", help="Shown with the option.")
@study_options
def withdraw(arm: str, reason: str, storage: str, name: str) -> None:
    """Take an option out: it is not measured any more, and verdicts that rested on it are judged anew."""
    study = load(storage, name)
    study.withdraw(arm, reason)
    click.echo(study.verdicts().tally())


@click.command(short_help="List the studies there are.")
@click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
@storage_option
def studies(as_json: bool, storage: str) -> None:
    """List the studies in a storage: name, options, metrics."""
    from ..storage import storage_of
    from ..study import Study

    place = storage_of(found(storage))
    rows = [Study.load(name, place).spec for name in place.names()]
    if as_json:
        listed = [
            {
                "name": name,
                "arms": list(spec.arms),
                "metrics": {metric.name: metric.direction for metric in spec.metrics},
            }
            for name, spec in zip(place.names(), rows, strict=True)
        ]
        click.echo(json.dumps(listed, indent=2))
        return
    for name, spec in zip(place.names(), rows, strict=True):
        metrics = ", ".join(f"{metric.name} {metric.direction}" for metric in spec.metrics)
        click.echo(f"{click.style(name, bold=True)}  {len(spec.arms)} options; {metrics}")


@click.command(short_help="Delete a study and all its measurements.")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask whether that is meant.")
@storage_option
def delete(name: str, yes: bool, storage: str) -> None:
    """Delete a study and all its measurements. They are gone then: export them first."""
    study = load(storage, name)
    if not yes:
        counts = study.counts()
        click.confirm(f"delete study {name!r} with {counts['told'] + counts['imported']:,} measurements?", abort=True)
    study.storage.delete(name)
    click.echo(f"deleted: {name}")


@click.group(short_help="Look after the storage of studies.")
def db() -> None:
    """Look after the storage of studies."""


@db.command()
@storage_option
def upgrade(storage: str) -> None:
    """Bring a storage that an older version made up to date. Make a copy before."""
    from ..storage.schema import VERSION
    from ..storage.sql import SQLStorage

    place = found(storage)
    SQLStorage(place if "://" in place else f"sqlite:///{place}", upgrade=True).close()
    click.echo(f"{place}: schema {VERSION}, up to date")
