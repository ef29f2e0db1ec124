"""`paretoscout status`, `front`, `explain`, `plot`, `export`: what is known."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidInput
from ..shown import counted, line, markdown, markdown_table
from . import values
from .conventions import Exit
from .options import (
    JSON_HELP,
    alone,
    load,
    study_options,
    waiting,
)

if TYPE_CHECKING:
    from rich.console import Group

    from ..study import Details, Remaining, Standing, Study
    from ..verdicts import VerdictTable

WATCH_SECONDS = 2.0
#: Of more options than this the first that were withdrawn are shown.
MOST_WITHDRAWN = 10
FORMATS = {".csv": "csv", ".json": "json", ".parquet": "parquet", ".md": "markdown"}
all_option = click.option("--all", "everything", is_flag=True, help="Show every option, however many there are.")
_out = click.Path(path_type=Path, dir_okay=False, writable=True)


@click.command(short_help="Show the verdicts so far, and what is still needed.")
@click.option(
    "--watch",
    is_flag=False,
    flag_value=WATCH_SECONDS,
    type=click.FloatRange(min=0.05, max=86400.0),
    metavar="[SECONDS]",
    help="Show it again and again, every 2 seconds unless told, until there is nothing left to measure.",
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON instead; with --watch a line for each change.")
@click.option("--forecast", is_flag=True, help="With --json: also what is still needed, as `remaining`.")
@click.option(
    "--eps",
    multiple=True,
    metavar="METRIC=VALUE|PERCENT%",
    help="Show what is proven with another eps: it may be chosen after looking.",
)
@all_option
@study_options
def status(
    watch: float | None,
    as_json: bool,
    forecast: bool,
    eps: tuple[str, ...],
    everything: bool,
    storage: str,
    name: str,
) -> None:
    """Show the verdict on each option with what it rests on, and about how many more measurements it takes.

    Of many options the front comes first, then those that are undecided, the likeliest first; --all shows every one.
    Exit code 0: decided, or still going on; 3: the budget is spent, and some option has no verdict.
    """
    study = load(storage, name)
    if eps:
        _with_eps(study, eps, as_json, everything)
        return
    if watch is None:
        known = study.details()
        _show(study, known, as_json, forecast, everything)
    else:
        known = _watch(study, watch, as_json, forecast, everything)
    sys.exit(Exit.UNDECIDED if known.standing.exhausted else 0)


def _with_eps(study: Study, eps: tuple[str, ...], as_json: bool, everything: bool) -> None:
    """Show the verdicts with another eps."""
    from ..answer import sentence
    from . import show

    table = study.with_eps(values.numbers("--eps", eps, shares=True))
    if as_json:
        click.echo(json.dumps(table.as_dict(), indent=2, allow_nan=False))
        return
    screen = show.console()
    screen.print(show.verdict_table(table, **limit(everything)))
    show.said(screen, sentence(table))


def limit(everything: bool) -> dict[str, Any]:
    """How many rows a table has, as `verdict_table` takes it."""
    return {"most": None} if everything else {"hint": "--all shows them"}


def _show(study: Study, known: Details, as_json: bool, forecast: bool, everything: bool) -> None:
    from . import show

    if as_json:
        click.echo(_as_json(known, forecast, 2))
    else:
        ahead, screen = _remaining(known), show.console()
        screen.print(_picture(study, known.standing, ahead, everything))
        if (population := known.for_population()) is not None:
            show.said(screen, "for all blocks there could be, of which those of the list are a random sample:")
            screen.print(show.verdict_table(population, **limit(everything)))
        show.answer(screen, known.standing.table, known, ahead)


def _watch(study: Study, seconds: float, as_json: bool, forecast: bool, everything: bool) -> Details:
    from . import show

    screen = show.console()
    known = study.details()
    if as_json or not screen.is_terminal:
        for known in _changes(study, seconds):
            click.echo(_as_json(known, forecast, None) if as_json else known.standing.table.tally())
            sys.stdout.flush()
        if not as_json:
            show.answer(screen, known.standing.table, known)
        return known
    from rich.live import Live

    with Live(console=screen, auto_refresh=False) as live:
        for known in _changes(study, seconds):
            live.update(_picture(study, known.standing, _remaining(known), everything), refresh=True)
    show.answer(screen, known.standing.table, known)
    return known


def _changes(study: Study, seconds: float) -> Iterator[Details]:
    """Yield what is known at once, and whenever something happened, until there is nothing left to measure."""
    seen: Any = None
    while True:
        now = study.storage.last(study.name)
        if now != seen:
            seen = now
            known = study.details()
            yield known
            if known.standing.done or known.standing.exhausted:
                return
        time.sleep(seconds)


def _picture(study: Study, standing: Standing, ahead: Remaining | None, everything: bool) -> Group:
    from rich.console import Group
    from rich.text import Text

    from . import show

    notes = []
    if standing.open:
        shown = ", ".join(f"{trial.number} ({trial.arm})" for trial in standing.open[:8])
        more = f" and {len(standing.open) - 8} more" if len(standing.open) > 8 else ""
        notes.append(show.plain(f"open trials: {shown}{more}"))
    counts = standing.counts
    if counts["waiting"]:
        usual = f"{counted(counts['waiting'], 'outcome waits', 'outcomes wait')} for trials that were asked before"
        notes.append(show.plain(waiting(study, standing) or usual))
    if counts["late"]:
        notes.append(
            show.plain(f"{counted(counts['late'], 'outcome')} came when the trial was void: kept, but no evidence")
        )
    gone = standing.withdrawn if everything else standing.withdrawn[:MOST_WITHDRAWN]
    notes += [show.plain(f"withdrawn: {each.option} ({each.reason})") for each in gone]
    if len(gone) < len(standing.withdrawn):
        notes.append(show.plain(f"withdrawn: {len(standing.withdrawn) - len(gone):,} more (--all shows them)"))
    if (lonely := alone(study, standing)) is not None:
        notes.append(show.plain(lonely))
    if standing.exhausted:
        notes.append(Text("the budget is spent", style="yellow"))
    outlook = "" if standing.done or ahead is None else str(ahead)
    head = [Text(line(standing.title), style="bold")] if standing.title else []
    return Group(*head, show.verdict_table(standing.table, outlook, **limit(everything)), *notes)


def _remaining(known: Details) -> Remaining | None:
    """What is still needed; nobody can tell before each option was measured."""
    return known.remaining() if known.standing.done or all_measured(known.standing.table) else None


def all_measured(table: VerdictTable) -> bool:
    return bool(table.counts.all())


def _as_json(known: Details, forecast: bool, indent: int | None) -> str:
    population = known.for_population()
    if not forecast and population is None:
        return known.standing.as_json(indent)
    said = known.standing.as_dict()
    if population is not None:
        said["population"] = population.as_dict()
    if forecast:
        ahead = _remaining(known)
        said["remaining"] = None if ahead is None else _plain(asdict(ahead))
    return json.dumps(said, indent=indent, allow_nan=False)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Infinite numbers are None: JSON has none of them."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()
    }


@click.command(short_help="Print the options that are proven to be on the front.")
@click.option("--json", "as_json", is_flag=True, help="Print all that is known as JSON instead, as status does.")
@study_options
def front(as_json: bool, storage: str, name: str) -> None:
    """Print the options that are proven to be on the front, a line for each.

    Exit code 0: the study is decided; 3: not yet, there may be more of them.
    """
    standing = load(storage, name).standing()
    if as_json:
        click.echo(standing.as_json())
    else:
        for arm in standing.front:
            click.echo(line(arm))
    for warning in standing.table.warnings:
        click.echo(line(f"warning: {warning}"), err=True)
    if not standing.done:
        click.echo(f"not yet decided: {standing.table.tally()}", err=True)
    sys.exit(0 if standing.done else Exit.UNDECIDED)


@click.command(short_help="Say why an option has its verdict.")
@click.argument("arm")
@click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
@study_options
def explain(arm: str, as_json: bool, storage: str, name: str) -> None:
    """Say why ARM has its verdict: against whom, by how much, and what it hangs on."""
    why = load(storage, name).explain(arm)
    click.echo(json.dumps(_plain(asdict(why)), indent=2) if as_json else click.wrap_text(line(str(why)), 100))


@click.command(short_help="Draw the verdicts.")
@click.option(
    "--out", type=_out, default=Path("paretoscout.png"), show_default=True, help="Where it goes (.png or .svg)."
)
@click.option("-x", metavar="METRIC", help="Metric on the x axis. [default: the first]")
@click.option("-y", metavar="METRIC", help="Metric on the y axis. [default: the second]")
@study_options
def plot(out: Path, x: str | None, y: str | None, storage: str, name: str) -> None:
    """Draw each option with its intervals as `status` shows them, and the front as a staircase.

    A picture has two metrics: of more, choose with -x and -y. With one metric, it is a list.
    """
    from . import show

    show.writable(out)
    load(storage, name).plot_front(out, x=x, y=y)
    click.echo(line(f"picture: {out}"))


@click.command(short_help="Write all measurements, or the verdicts, to a file.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS.values())),
    help="[default: by the ending of --out, else csv]",
)
@click.option(
    "--to",
    "tool",
    type=click.Choice(["hyperfine-json"]),
    help="Write the times of a bench as another tool does, for what shows its files.",
)
@click.option("--out", type=_out, help="Where it goes. [default: the terminal]")
@click.option("--json", "as_json", is_flag=True, help="Write all that is known instead, as status --json does.")
@study_options
def export(form: str | None, tool: str | None, out: Path | None, as_json: bool, storage: str, name: str) -> None:
    """Write all measurements as csv, json or parquet: trial (empty: imported), option, metrics, time.

    Or, as markdown, the verdicts, ready for a report; or, with --json, all that is known.
    """
    from . import show

    if as_json:
        if form is not None:
            raise InvalidInput(f"--json must come without --format, got {form}")
        form = "standing"
    if tool is not None:
        if form is not None:
            raise InvalidInput(f"--to must come without --format and --json, got {form}")
        form = tool
    if form is None:
        ending = ".csv" if out is None else out.suffix.lower()
        if ending not in FORMATS:
            raise InvalidInput(f"--out must end in {', '.join(FORMATS)}, or come with --format, got {ending!r}")
        form = FORMATS[ending]
    if out is not None:
        show.in_a_folder(out)
    study = load(storage, name)
    if form == "parquet":
        if out is None:
            raise InvalidInput("--format parquet must come with --out FILE")
        _parquet(study, out)
    else:
        from ..study.exported import csv_lines, json_lines

        made = {"csv": csv_lines, "json": json_lines, "markdown": _markdown, "standing": _standing, tool: _hyperfine}
        text = "".join(made[form](study))
        if out is None:
            click.echo(text, nl=False)
            return
        out.write_text(text, encoding="utf-8", newline="")
    click.echo(line(f"written: {out}"))


def _hyperfine(study: Study) -> str:
    from ..readers.contract import SECONDS
    from ..readers.hyperfine import as_json

    times: dict[str, list[float]] = {name: [] for name in study.arms}
    units = {metric.name: metric.unit for metric in study.spec.metrics}
    if units.get("time") not in SECONDS:
        raise InvalidInput(
            f"--to hyperfine-json must be of a study with a metric 'time' in {', '.join(SECONDS)}, as paretoscout "
            f"bench makes them, got {', '.join(study.spec.columns)}"
        )
    column = study.spec.columns.index("time")
    for _, option, row, _ in study.observations():
        if option in times and (value := row[column]) is not None:
            times[option].append(value * SECONDS[units["time"]])
    return json.dumps(as_json(times), indent=2) + "\n"


def _standing(study: Study) -> str:
    return study.standing().as_json() + "\n"


def _parquet(study: Study, out: Path) -> None:
    table = study.to_frame("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, out)


def _markdown(study: Study) -> str:
    from ..verdicts import cells, front_first, headings

    standing = study.standing()
    table = standing.table
    rows = [headings(table), *(cells(table, k) for k in front_first(table))]
    header, *escaped = ([markdown(text) for text in row] for row in rows)
    grid = markdown_table(header, escaped, rule=" --- ") + "\n"
    more = [f"Withdrawn: {markdown(f'{each.option} ({each.reason})')}\n" for each in standing.withdrawn]
    return "\n".join([f"Guarantee: {markdown(str(table.guarantee))}\n", grid, f"{table.tally()}\n", *more])
