"""`paretoscout analyze`: what finished measurements prove, and whether a build passes by that."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidInput
from ..shown import line
from . import values
from .conventions import Exit
from .options import block_option, goal_option, measured, metric_options, target_option, time_option
from .standing import all_measured, all_option, limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..readers import Measurements, Reading
    from ..statement import Metric
    from ..study import Study
    from ..verdicts import VerdictTable

#: How many orders of a whole table are tried, to say how few of its measurements would have done.
ORDERS_TRIED = 10
_out = click.Path(path_type=Path, dir_okay=False, writable=True)


@click.command(short_help="What finished measurements prove: a CSV file, or results of other tools.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--arm", metavar="COLUMN", help="Which column names the option.")
@metric_options
@goal_option("practical")
@click.option(
    "--long",
    metavar="metric=COLUMN,value=COLUMN",
    help="The table has a row for each number: which column names the metric, which has the number.",
)
@time_option
@block_option
@target_option("population")
@click.option(
    "--rows",
    type=click.Choice(["sessions", "processes", "batches", "runs"]),
    help="Of tools that run one thing after the other: what counts as one measurement. [default: the mean of a "
    "session, if there are several files; else that of a process, or of a batch of runs]",
)
@click.option(
    "--with",
    "beside",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A CSV file with a column 'option' and numbers that are certain of each, such as sizes; name them with -m.",
)
@click.option(
    "--fail-if-dominated", multiple=True, metavar="NAME", help="Exit code 4 if this option is dominated; repeat."
)
@click.option(
    "--undecided",
    type=click.Choice(["pass", "fail"]),
    default="pass",
    show_default=True,
    help="What happens if it is undecided whether that option is dominated.",
)
@click.option("--out", type=_out, help="Draw a picture, too (.png or .svg).")
@click.option("--markdown", type=_out, help="Write what came out as Markdown, too, for a comment.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON instead.")
@all_option
def analyze(
    files: tuple[Path, ...],
    long: str | None,
    out: Path | None,
    markdown: Path | None,
    as_json: bool,
    everything: bool,
    fail_if_dominated: tuple[str, ...],
    undecided: str,
    **what: Any,
) -> None:
    """Say what the measurements in FILE prove: which options are on the front, which are dominated.

    FILE is a CSV file; or a result of promptfoo, Inspect, pytest-benchmark, hyperfine, Google Benchmark, MLflow,
    Optuna, JMH, lm-evaluation-harness or criterion.rs, which needs nothing else. Several files of a tool are several
    runs of it.

    The noise is unknown and normal, unless --sigma or --bounds say more. More rows may be added and the table analysed
    again: the guarantee holds, as long as which rows there are does not depend on their outcomes.

    Exit code 0: every option has its verdict; 3: some have none. With --fail-if-dominated NAME, 0: it is not
    dominated, or that is undecided; 4: it is; 3: that is undecided, and --undecided fail.
    """
    from .. import plots
    from ..answer import sentence
    from ..gate import Gate, comment
    from ..simulation.progress import at_work
    from ..study import study_of_table
    from . import show

    for path in filter(None, [out]):
        show.writable(path)
    if markdown is not None:
        show.in_a_folder(markdown, "--markdown")
    gate = Gate(fail_if_dominated, undecided) if fail_if_dominated else None
    how = {"goal": values.goal(what["goal"]), "target": what["target"]}
    called = str(files[0]) if len(files) == 1 else f"{len(files)} files"
    reading: Reading | None = None
    with at_work(lambda: f"analyze {called}"):
        frame, given = _table(files, what, long)
        study = study_of_table(frame, **given, **how)
        table = study.verdicts()
    if not isinstance(frame, dict):
        reading = frame
        table = reading.stated(table)
    if gate is not None:
        gate.check(table.arms)
    notes = [] if reading is None else reading.lines()
    if reading is None and (directions := values.unsaid(what["metrics"])):
        notes = [line(directions)]
    screen = show.console()
    if as_json:
        if reading is None:
            click.echo("\n".join(notes), err=True, nl=bool(notes))
        more = {} if reading is None else {"reading": reading.as_dict()}
        click.echo(json.dumps(table.as_dict() | more, indent=2, allow_nan=False))
    else:
        for text in notes:
            screen.print(text, style="yellow" if text.startswith("note") else "dim", markup=False, soft_wrap=True)
        screen.print(show.verdict_table(table, **limit(everything)))
    if out is not None:
        plots.front(table, path=out)
        click.echo(line(f"picture: {out}"), err=as_json)
    if markdown is not None:
        markdown.write_text(comment(table, gate, notes), encoding="utf-8")
        click.echo(line(f"written: {markdown}"), err=as_json)
    if not as_json:
        if reading is not None and reading.more and "undecided" in table.verdicts:
            screen.print(line(f"to know more: {reading.more}"), markup=False, soft_wrap=True)
        ahead = study.remaining() if reading is None and all_measured(table) else None
        if reading is not None and reading.withheld:  # the study knows nothing of that
            show.said(screen, sentence(table))
        else:
            show.answer(screen, table, study, ahead)
        if table.guarantee.probability == 1.0:
            rows, arm, block = (
                (frame, what["arm"], what["block"]) if reading is None else (reading.table, "option", reading.block)
            )
            screen.print(_would_have_done(rows, arm, block, study, table), highlight=False, soft_wrap=True)
    if gate is not None:
        for text in gate.said(table):
            click.echo(line(f"--fail-if-dominated {text}"), err=as_json)
        sys.exit(Exit.DOMINATED if gate.found(table, "dominated") else Exit.UNDECIDED if gate.fails(table) else 0)
    sys.exit(Exit.UNDECIDED if "undecided" in table.verdicts else 0)


def _table(files: Sequence[Path], what: dict[str, Any], long: str | None) -> tuple[Any, dict[str, Any]]:
    """Return what is to be judged, a reading or the columns of a CSV file, and how."""
    from ..frames import read_csv
    from ..readers import find

    found = find(files, what["arm"])
    if found is None:
        for option, name in (("--rows", "rows"), ("--with", "beside")):
            if what[name] is not None:
                raise InvalidInput(f"{option} must be left out with a CSV file, got {what[name]}")
        check_columns_named(files[0], what)
        columns = {name: what[name] for name in ("arm", "time", "block")}
        return read_csv(files[0]), {**columns, **measured(what), **_long(long)}
    for option, given in (("--long", long), ("--time", what["time"]), ("--context", what["contexts"])):
        if given:
            raise InvalidInput(f"{option} must be left out with results of {found.form.name}")
    reading = _reading(found, what)
    given = measured(what, list(reading.metrics))
    return reading, {name: value for name, value in given.items() if name != "metrics"}


def _reading(found: Measurements, what: dict[str, Any]) -> Reading:
    """Return what is taken of result files, with what the user says of metrics."""
    from ..readers import numbers_beside, stated

    beside = None if what["beside"] is None else numbers_beside(what["beside"])
    roles = found.roles(what["arm"], what["block"])
    usual, why = ([], []) if what["metrics"] else found.usual_metrics(roles)
    if not what["metrics"] and not usual:
        return found.reading(what["arm"], what["block"])  # says what is missing

    def known(text: str) -> Metric:
        name, sign, direction = text.rpartition(":")
        [metric] = stated(found, {name: direction} if sign else [text], beside) or []
        return metric

    metrics = measured(what, None, [metric.name for metric in usual], known)["metrics"]
    return found.reading(what["arm"], what["block"], metrics, what["rows"], beside, why)


def _would_have_done(frame: Any, arm: str, block: str | None, study: Study, table: VerdictTable) -> str:
    """Say how many measurements of a whole table would have done, if they had been asked for one by one."""
    from .. import problems
    from ..simulation.replicates import simulate

    problem = problems.table(
        frame, arm, study.spec.metrics, block=block, tradeoffs=study.spec.asked.tradeoffs, name="table"
    )
    result = simulate(
        problem,
        study.spec.algorithm_settings(),
        delta=study.spec.delta,
        goal=study.spec.asked.goal,
        replicates=ORDERS_TRIED,
    )
    n, whole = statistics.median(result.samples.tolist()), int(table.counts.sum())
    return (
        f"One by one, as paretoscout create --blocks and ask would have them, about {n:,.0f} of these {whole:,} "
        f"measurements ({n / whole:.0%}) would have done, with probability {1 - study.spec.delta:.10g} "
        f"(median of {ORDERS_TRIED} random orders)."
    )


def check_columns_named(file: str | Path, what: dict[str, Any]) -> None:
    """Refuse a CSV file of which nobody says what its columns are; say which there are."""
    from ..frames import read_csv

    if not what["arm"] or not what["metrics"]:
        raise InvalidInput(
            f"{file} must come with --arm COLUMN, which names the option, and -m COLUMN:min or -m COLUMN:max for each "
            f"metric; its columns: {', '.join(read_csv(file))}"
        )


def _long(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    parts: dict[str, Any] = dict(part.partition("=")[::2] for part in text.split(","))
    if set(parts) != {"metric", "value"} or not all(parts.values()):
        raise InvalidInput(f"--long must be written metric=COLUMN,value=COLUMN, got {text!r}")
    return parts
