"""`paretoscout studies`, `add-arm`, `withdraw`, `delete`, `db ...`: looking after studies."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..shown import counted, line
from . import values
from .conventions import Exit, agreed, pairs
from .options import JSON_HELP, found, load, storage_option, study_options, unknown_study

if TYPE_CHECKING:
    from ..storage.sql import SQLStorage
    from ..storage.upkeep import Damage


@click.command(name="add-arm", short_help="Add options to a study.")
@click.argument("arms", nargs=-1, required=True, metavar="ARM...")
@click.option("--context", "contexts", multiple=True, metavar="NAME=VALUE", help="What is known of the option.")
@click.option(
    "--cost",
    "costs",
    multiple=True,
    metavar="[ARM=]NUMBER",
    help="What one measurement costs, for all that are added or by name, where the study has costs.",
)
@click.option(
    "--without-looking",
    is_flag=True,
    help="Declare that the outcomes so far were no reason to add these: they count.",
)
@study_options
def add_arm(
    arms: tuple[str, ...],
    contexts: tuple[str, ...],
    costs: tuple[str, ...],
    without_looking: bool,
    storage: str,
    name: str,
) -> None:
    """Add options, new ones or such as were withdrawn. What was measured so far stays.

    Options that were designed or picked after looking at outcomes are compared by what is asked from now on: what was
    measured so far would speak for them. Declare that it was no reason to add these, and all of it counts.
    """
    study = load(storage, name)
    known = pairs("--context", contexts, "NAME=VALUE")
    stated = {"arm": list(arms), **{key: [value] * len(arms) for key, value in known.items()}} if known else arms
    cost = values.numbers("--cost", costs, of="arm")
    seen = study.counts()
    study.add_arms(stated, looked=not without_looking, cost=[cost] * len(arms) if isinstance(cost, float) else cost)
    if not without_looking and seen["told"] + seen["imported"] > 0:
        click.echo(
            "what was measured so far says nothing of pairs with what was added: the others are measured again "
            "(--without-looking would let it count)",
            err=True,
        )
    click.echo(study.verdicts().tally())


@click.command(short_help="Take an option out of a study.")
@click.argument("arm")
@click.option("--reason", default="withdrawn", metavar="TEXT", help="Shown with the option.")
@click.option(
    "--after-looking", is_flag=True, help="The outcomes so far were a reason: those of the front must escape it too."
)
@study_options
def withdraw(arm: str, reason: str, after_looking: bool, storage: str, name: str) -> None:
    """Take an option out: it is not measured any more, and verdicts that rested on it are judged again."""
    study = load(storage, name)
    study.withdraw(arm, reason, looked=after_looking)
    click.echo(study.verdicts().tally())


@click.command(short_help="List the studies there are.")
@click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
@storage_option
def studies(as_json: bool, storage: str) -> None:
    """List the studies in a storage: name, options, metrics. One that cannot be read is listed with the reason."""
    from ..errors import ParetoscoutError
    from ..storage import storage_of
    from ..study.spec import StudySpec

    listed: list[dict[str, Any]] = []
    for name, text in storage_of(found(storage)).specs().items():
        try:
            if not isinstance(text, str):
                raise text
            spec = StudySpec.of_text(text, name)
        except ParetoscoutError as problem:
            listed.append({"name": name, "unreadable": str(problem)})
            continue
        metrics = {metric.name: metric.direction for metric in spec.metrics}
        listed.append({"name": name, "arms": list(spec.arms), "metrics": metrics})
    if as_json:
        click.echo(json.dumps(listed, indent=2))
        return
    for each in listed:
        if "unreadable" in each:
            shown = f"unreadable: {each['unreadable']}"
        else:
            metrics_shown = ", ".join(f"{name} {direction}" for name, direction in each["metrics"].items())
            shown = f"{counted(len(each['arms']), 'option')}; {metrics_shown}"
        click.echo(f"{click.style(line(each['name']), bold=True)}  {line(shown)}")


@click.command(short_help="Delete a study and all its measurements.")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask whether that is meant.")
@storage_option
def delete(name: str, yes: bool, storage: str) -> None:
    """Delete a study and all its measurements. They are gone then: export them first."""
    from ..errors import ParetoscoutError
    from ..storage import storage_of

    place = storage_of(found(storage))
    if name not in place.names():
        raise unknown_study(storage, name, place.names(), make=False)
    if not yes:
        try:
            counts = load(storage, name).counts()
            shown = f"with {counted(counts['told'] + counts['imported'], 'measurement')}"
        except ParetoscoutError:
            shown = "which cannot be read"
        agreed(f"delete study {name!r} {shown}?")
    place.delete(name)
    click.echo(line(f"deleted: {name}"))


@click.group(short_help="Look after the storage of studies.")
def db() -> None:
    """Look after the storage of studies."""


@db.command()
@storage_option
def upgrade(storage: str) -> None:
    """Bring a storage that an older version made up to date. Workers of this version wait meanwhile; end older ones.

    Make a copy before.
    """
    from ..storage.schema import VERSION

    _opened(found(storage), upgrade=True).close()
    click.echo(f"{storage}: schema {VERSION}, up to date")


@db.command()
@storage_option
def check(storage: str) -> None:
    """Look for what is damaged: bits that flipped, events that are missing, settings that cannot be read.

    Exit code 6 if there is something.
    """
    from ..storage.upkeep import damages
    from ..study.spec import StudySpec

    place = _opened(found(storage))
    damaged = damages(place, StudySpec.of_text)
    _show_damaged(storage, damaged)
    if not damaged:
        click.echo(f"{storage}: {counted(len(place.names()), 'study', 'studies')}, all sound")


@db.command()
@click.option("--dropped", metavar="FILE", help="Where to keep what is dropped. [default: beside the storage]")
@click.option("--yes", is_flag=True, help="Do not ask whether that is meant.")
@storage_option
def repair(dropped: str | None, yes: bool, storage: str) -> None:
    """Keep what is sound: cut each damaged study before its first damaged event, and say what is dropped.

    What is dropped is kept in a file, a line of JSON for each event. If there is a backup, restore that instead.
    A SQLite file that cannot be opened is made one that can: a journal of another file is set aside, and of a damaged
    file all rows that can be read go into a new one.
    """
    from ..errors import StorageUnavailable
    from ..storage.upkeep import damages, is_damage
    from ..storage.upkeep import repair as repaired
    from ..study.spec import StudySpec

    stamp = time.strftime("%Y%m%dT%H%M%S")
    _without_stale_journal(found(storage), stamp, yes)
    try:
        place = _opened(storage)
        damaged = damages(place, StudySpec.of_text)
    except StorageUnavailable as problem:
        if not is_damage(problem):
            raise
        damaged = []
        place = _salvaged(storage, stamp, yes)
    if any(damage.of_file for damage in damaged):
        place.close()
        place = _salvaged(storage, stamp, yes)
    damaged = damages(place, StudySpec.of_text)
    cut = [damage for damage in damaged if damage.first is not None]
    if cut and not yes:
        for damage in cut:
            click.echo(f"{damage}")
        agreed("drop these events and all that came after them in their studies?")
    beside = f"{place.address.path or 'paretoscout'}.dropped-{stamp}.jsonl"
    file = Path(dropped or beside)
    done, left = repaired(place, file, StudySpec.of_text) if cut else ([], damaged)
    for said in done:
        click.echo(line(said))
    if file.exists() and done:
        click.echo(f"dropped events are kept in {file}")
    _show_damaged(storage, left)
    if not left:
        click.echo(f"{storage}: all sound" + ("" if done else ", nothing to repair"))


@db.command()
@click.argument("file")
@storage_option
def backup(file: str, storage: str) -> None:
    """Copy all studies, as they are at this moment, to a new FILE (SQLite). Others may go on working meanwhile."""
    from ..storage.upkeep import backup as copied

    copied(_opened(found(storage)), Path(file))
    click.echo(f"{storage}: copied to {file}")


@db.command()
@click.argument("file")
@click.option("--yes", is_flag=True, help="Do not ask whether that is meant.")
@storage_option
def restore(file: str, yes: bool, storage: str) -> None:
    """Put back what `db backup` copied to FILE: all studies of the storage are replaced by those of the copy.

    Workers need not stop: they notice, and go on from there.
    """
    from ..storage import check_is_there
    from ..storage.upkeep import restore as put_back
    from ..study.spec import StudySpec

    check_is_there(file)
    place = _opened(storage)
    names = place.names()
    if names and not yes:
        agreed(f"replace the {counted(len(names), 'study', 'studies')} in {storage}?")
    put_back(place, Path(file), StudySpec.of_text)
    click.echo(f"{storage}: {counted(len(place.names()), 'study', 'studies')} restored from {file}")


def _without_stale_journal(storage: str, stamp: str, yes: bool) -> None:
    from ..storage.sql import url_of
    from ..storage.upkeep import set_journal_aside, stale_journal

    if storage != "memory" and stale_journal(url_of(storage)):
        if not yes:
            agreed("the journal next to the file belongs to another file: set it aside?")
        kept = set_journal_aside(url_of(storage), stamp)
        click.echo(line(f"the journal, which belongs to another file, is kept in {kept}"))


def _salvaged(storage: str, stamp: str, yes: bool) -> SQLStorage:
    from ..storage.sql import url_of
    from ..storage.upkeep import salvage

    if not yes:
        agreed("the file is damaged: put all rows that can be read into a new one?")
    kept, partly = salvage(url_of(storage), stamp)
    click.echo(line(f"the damaged file is kept in {kept}; all rows that could be read are in a new one"))
    if partly:
        click.echo(line(f"not read to the end: {', '.join(partly)}"))
    return _opened(storage)


def _opened(storage: str, upgrade: bool = False) -> SQLStorage:
    from ..errors import InvalidInput
    from ..storage.sql import SQLStorage, url_of

    if storage == "memory":
        raise InvalidInput("--storage must be a file or a database: what is in memory is gone when the command ends")
    return SQLStorage(url_of(storage), upgrade=upgrade)


def _show_damaged(storage: str, damaged: list[Damage]) -> None:
    for damage in damaged:
        click.echo(f"{damage}", err=True)
    if damaged:
        click.echo(f"{storage}: damaged. Restore a backup (db restore), or keep what is sound (db repair)", err=True)
        raise SystemExit(Exit.FAILED)
