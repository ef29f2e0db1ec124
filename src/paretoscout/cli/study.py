"""`paretoscout create`, `ask`, `tell`, `import`: running a study. What is known of it is in `standing.py`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidInput, NotSupported, UnknownName
from ..shown import counted, line
from . import values
from .conventions import Exit, pairs, seconds
from .options import (
    JSON_HELP,
    alone,
    found,
    goal_option,
    load,
    measured,
    metric_options,
    study_options,
    target_option,
    time_option,
    waiting,
)

if TYPE_CHECKING:
    from ..study import Study, Trial

#: What is written for a metric that was not measured.
NOT_MEASURED = "none"


@click.command(short_help="Make a study: which options, which metrics.")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--arm", "arms", multiple=True, metavar="NAME", help="An option; repeat for several.")
@metric_options
@click.option("--seed", default=0, show_default=True, help="Same seed and same outcomes, same questions.")
@click.option(
    "--lease", default="1h", show_default=True, metavar="TIME", help="A trial not told by then is asked again."
)
@click.option(
    "--give-up",
    default="lease",
    show_default=True,
    metavar="TIME|lease|never",
    help="An outcome that comes later is kept, but is no evidence.",
)
@click.option(
    "--at-give-up",
    multiple=True,
    metavar="METRIC=VALUE",
    help="What it means if nothing was told by then, e.g. conversion=0. [default: nothing]",
)
@click.option(
    "--order",
    type=click.Choice(["asked", "told"]),
    default="asked",
    show_default=True,
    help="In which order outcomes count; told: how long it takes has nothing to do with the outcome.",
)
@click.option("--budget", type=click.IntRange(min=1), help="Measurements there are in all. [default: no limit]")
@goal_option(None, "practical")
@click.option(
    "--cost",
    multiple=True,
    metavar="ARM=NUMBER|COLUMN",
    help="What one measurement of an option costs, for each; or the column of the file that says it. "
    "[default: the same for all]",
)
@click.option(
    "--model",
    type=click.Choice(["none", "linear", "logistic"]),
    default="none",
    show_default=True,
    help="You state that the means are exactly linear in the contexts; or, of outcomes 0 or 1, their log odds.",
)
@click.option(
    "--theta-max",
    type=float,
    metavar="NUMBER",
    help="Largest norm of the model's parameters, in units of eps. [default: unknown]",
)
@click.option("--title", default="", metavar="QUESTION", help="The question that the study answers.")
@click.option(
    "--blocks",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="What every option is measured on, such as prompts: one in each line, or the first column of a CSV file.",
)
@target_option("list")
@click.option(
    "--sample",
    is_flag=True,
    help="The blocks of the list are a random sample of all there could be: status shows the reading for these, too.",
)
@study_options
@click.pass_context
def create(
    ctx: click.Context, /, file: Path | None, arms: tuple[str, ...], storage: str, name: str, **what: Any
) -> None:
    """Make a study, of options given by --arm, in a file, or all in YAML.

    A file of options is CSV with a header, or has a JSON object in each line (.jsonl): the column "arm", or the first
    one, names them; others may be contexts and cost. A hundred thousand options are no problem.

    \b
    paretoscout create --arm small --arm large -m quality:max -m cost:min --eps quality=0.02 --eps cost=0.1
    paretoscout create arms.csv -m quality -m latency:min --eps latency=2% --guard 'latency <= 200'
    paretoscout create --arm gpt-a --arm gpt-b --blocks prompts.txt -m win:max --bounds win=0,1 -m length:min
    paretoscout create study.yaml

    A YAML file has the keys arms, metrics, and if need be name, title, contexts, model, theta_max, cost, sigma, guards,
    delta, algorithm, seed, lease, give_up, at_give_up, order, goal, budget, blocks, target, sample, tradeoffs. Making
    the same study again changes nothing.
    """  # noqa: D301 - click wants the character itself
    from ..frames import names_in
    from ..study import Study
    from ..study.described import read

    if storage == "memory":
        found(storage)
    if file is not None and file.suffix.lower() in (".yaml", ".yml"):
        _only_the_file(ctx)
        settings = read(file)
        described = settings.pop("name", name)
        if ctx.get_parameter_source("name") is click.core.ParameterSource.DEFAULT:
            name = described
    else:
        if not what["metrics"]:
            raise InvalidInput("a study must have at least one metric: -m NAME[:min|:max]")
        stated = _arms(file, arms)
        settings = {
            "arms": stated,
            "cost": _cost(what["cost"], stated),
            **measured(what),
            "lease": seconds("--lease", what["lease"]),
            "give_up": values.give_up(what["give_up"]),
            "at_give_up": _silence(what["at_give_up"]),
            "goal": values.goal(what["goal"]),
            "blocks": None if what["blocks"] is None else names_in(what["blocks"]),
            "target": what["target"] or "list",
            "sample": what["sample"],
            **{key: what[key] for key in ("seed", "budget", "order", "model", "theta_max", "title")},
        }
    study = Study(**settings, storage=storage, name=name)
    for fact in _about(study):
        click.echo(line(fact))
    if (lonely := alone(study)) is not None:
        click.echo(line(f"  {lonely}"))
    named = "" if name == "study" else f" --name {shlex.quote(name)}"
    command = "'./measure {arm} {block}'" if study.spec.walk else "'./measure {arm}'"
    click.echo(f"next: paretoscout run{named} {command}; or ask{named}, and tell{named} TRIAL METRIC=VALUE ...")


def _silence(texts: Sequence[str]) -> dict[str, Any] | None:
    return outcome_of(texts, "--at-give-up") if texts else None


def _only_the_file(ctx: click.Context) -> None:
    for parameter in ctx.command.params:
        given = ctx.get_parameter_source(str(parameter.name)) is click.core.ParameterSource.COMMANDLINE
        if given and parameter.name not in ("file", "storage", "name"):
            raise InvalidInput(f"{parameter.opts[-1]} must be in the YAML file, not beside it")


def _arms(file: Path | None, arms: tuple[str, ...]) -> Any:
    if (file is None) == (not arms):
        raise InvalidInput(
            "a study must have options: either --arm NAME for each, or a CSV or YAML file of them (or .jsonl)"
        )
    if file is None:
        return list(arms)
    from ..frames import READERS, Columns

    if file.suffix.lower() not in READERS:
        endings = f"{', '.join(READERS)} or .yaml"
        raise InvalidInput(f"options must be in a {endings} file, got {file}; the name of a study is --name")
    columns = Columns(READERS[file.suffix.lower()](file), "")
    label = "arm" if "arm" in columns.names else columns.names[0]
    seen: dict[str, int] = {}
    for row, arm in enumerate(columns.labels(label)):
        if seen.setdefault(arm, row) != row:
            raise InvalidInput(
                f"column {label!r} of {file} must name each option once, got {arm!r} in {columns.at(seen[arm])} and "
                f"{columns.at(row)}; a table of measurements is for paretoscout analyze, or import"
            )
    return columns.frame


def _cost(texts: Sequence[str], arms: Any) -> Any:
    """Read ARM=NUMBER for each option, or the name of a column of their file."""
    if not texts:
        return None
    if len(texts) == 1 and isinstance(arms, dict) and (texts[0] in arms or "=" not in texts[0]):
        return texts[0]
    costs = values.numbers("--cost", texts, of="arm")
    if not isinstance(costs, dict):
        raise InvalidInput(f"--cost must be written ARM=NUMBER for each option, got {texts[0]!r}")
    return costs


def _about(study: Study) -> list[str]:
    """What was made, in words."""
    from ..guarantee import difference, judged
    from ..study.blocks import SHORT_LIST

    spec = study.spec
    blocks = spec.asked.blocks
    about = ""
    if blocks is not None and blocks.names:
        whole = "exactly these, as they are measured once" if blocks.listed else "all blocks there could be"
        about = f", target {blocks.target} (about {whole})"
    head = f"study {study.name!r} in {_where(study)}: {counted(len(spec.arms), 'option')}"
    lines = [f"{head}, delta {spec.delta:g}{about}"]
    if spec.title:
        lines.append(f"  question: {spec.title}")
    for position, metric in enumerate(spec.metrics):
        unit = f" {metric.unit}" if metric.unit else ""
        better = "larger" if metric.direction == "max" else "smaller"
        sigma = spec.sigma[position]
        known = (
            "noise unknown" if sigma is None else f"sigma {sigma:g}{' of its logarithm' if metric.relative else unit}"
        )
        if sigma is None and metric.bounds is not None:
            known = f"from {metric.bounds[0]:g} to {metric.bounds[1]:g}{unit}"
            if metric.pass_fail:
                known = f"0 or 1{unit}"
        if spec.asked.blocks is not None and metric.bounds is None:
            known = (
                "differences on a block taken as normal (a test that passes or fails? -m "
                f"{metric.name}:{metric.direction}:pass-fail; a score? --bounds {metric.name}=LOW,HIGH)"
            )
            if metric.ratio is not None:
                known = f"no option more than {metric.ratio:g} times another on a block"
        elif sigma is None and metric.bounds is None and not metric.exact:
            known += f", taken as normal (a rate, a score or a count? --bounds {metric.name}=LOW,HIGH)"
        small = difference(metric.tolerance, metric)
        ratios = "; geometric means are compared" if metric.relative else ""
        lines.append(f"  {metric.name}: {better} is better; up to {small} does not matter{ratios}; {known}")
    lines += [f"  {said}" for said in judged(spec.asked)]
    lines += [f"  guard: {spec.limit(guard)}" for guard in spec.guards]
    if spec.features:
        lines.append(f"  contexts: {', '.join(spec.features)}")
        if spec.asked.model != "none":
            lines.append(f"  model: {'means' if spec.asked.model == 'linear' else 'log odds'} linear in the contexts")
        elif not dict(spec.settings).get("model"):
            lines.append(
                "  contexts are kept but not used: for that, e.g. --algorithm scout:model=robust:misfit=0.1 (the "
                "misfit: how far from linear the means may be)"
            )
    if spec.asked.cost is not None:
        costs = spec.asked.cost
        lines.append(f"  cost of a measurement: from {costs.min():g} to {costs.max():g}")
    if blocks is not None:
        sample = ", a random sample" if blocks.sample else ""
        lines.append(f"  {len(blocks.names):,} blocks{sample}, in an order drawn at random")
        if blocks.listed and len(blocks.names) <= SHORT_LIST:
            lines.append("  so few blocks are soon measured: all options on all of them leave nothing to chance")
    if spec.budget is not None:
        lines.append(f"  budget: {counted(spec.budget, 'measurement')}")
    return lines


def _where(study: Study) -> str:
    url = getattr(study.storage, "url", None)
    return "memory" if url is None else str(url.database or url.render_as_string(hide_password=True))


@click.command(short_help="Which options to measure next.")
@click.option("-n", "count", default=1, show_default=True, type=click.IntRange(min=1), help="How many, at most.")
@click.option("--arm", help="Measure this option, whatever the algorithm would ask for, also when all is decided.")
@click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
@study_options
def ask(count: int, arm: str | None, as_json: bool, storage: str, name: str) -> None:
    """Print which options to measure next: the number of the trial, a tab, the option; a line for each.

    In a study with blocks another tab follows, and the block on which to measure it.

    A loop that measures until all is decided, in batches of 8, where ./measure prints METRIC=VALUE for each metric:

    \b
    while paretoscout ask -n 8 > trials; ended=$?; [ $ended -eq 0 ]; do
        while read -r trial arm; do echo "$trial $(./measure "$arm")"; done < trials | paretoscout tell - || break
    done
    [ $ended -eq 5 ] && paretoscout front

    Exit code 0: asked; 5: nothing left to ask, every option has its verdict; 3: the budget is spent, and some option
    has none; anything else: an error.
    """  # noqa: D301 - click wants the character itself
    study = load(storage, name)
    trials: list[Trial] = []
    known, spent = None, False
    try:
        trials = study.ask(count, arm)
    except NotSupported:
        known = study.details()  # one moment for all that is said of it
        spent = study.spec.budget is not None and known.standing.spent >= study.spec.budget
        if arm is not None or not (known.standing.done or spent or (known.stuck and study.spec.walk)):
            raise
    if (held := waiting(study)) is not None:
        click.echo(line(held), err=True)
    if as_json:
        asked: list[dict[str, Any]] = [
            {"trial": trial.number, "arm": trial.arm, **({} if trial.block is None else {"block": trial.block})}
            for trial in trials
        ]
        click.echo(json.dumps(asked, indent=2))
    else:
        for trial in trials:
            on = "" if trial.block is None else f"\t{line(trial.block)}"
            click.echo(f"{trial.number}\t{line(trial.arm)}{on}")
    if known is not None:
        done = known.standing.done
        why = "the budget is spent" if spent else "the list of blocks is too short to tell more"
        click.echo("every option has its verdict" if done else why, err=True)
        sys.exit(Exit.NOTHING_LEFT if done else Exit.UNDECIDED)


@click.command(short_help="Give the outcome of a trial, or of many.")
@click.argument("trial", metavar="TRIAL|-")
@click.argument("outcome", nargs=-1, metavar="[METRIC=VALUE|METRIC<VALUE]...")
@click.option("--failed", metavar="REASON", help="The measurement failed: it is asked again.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print how many trials were asked and told, and whether all is decided."
)
@study_options
def tell(trial: str, outcome: tuple[str, ...], failed: str | None, as_json: bool, storage: str, name: str) -> None:
    """Give the outcome of a trial. The same outcome twice counts once; another one for the same trial is an error.

    \b
    paretoscout tell 12 quality=0.86 cost=1.6
    paretoscout tell 12 time=31 'rss<6.9'          too small to be measured; in JSON {"rss": {"below": 6.9}}
    ./measure gpt-b | paretoscout tell 12 -        METRIC=VALUE ..., or one JSON object
    paretoscout tell 12 --failed 'out of memory'
    ./measure-all | paretoscout tell -             many: lines TRIAL METRIC=VALUE ..., TRIAL failed REASON, or JSON
                                                   objects with a "trial"; if one is wrong none is taken

    What is left out may be told later; cost=none says that it was not measured, and will not be.
    """  # noqa: D301 - click wants the character itself
    study = load(storage, name)
    if trial == "-":
        if outcome or failed is not None:
            raise InvalidInput("tell - reads everything from its input: nothing may follow")
        _tell_lines(study, sys.stdin.read().splitlines())
    elif failed is not None:
        if outcome:
            raise InvalidInput(f"trial {trial} must have an outcome or have failed, got both")
        study.fail(_trial(trial), failed)
    else:
        where = f"outcome of trial {trial}"
        given = sys.stdin.read() if outcome == ("-",) else outcome
        study.tell(_trial(trial), outcome_of(given, where))
        _say_late(study, [_trial(trial)])
    if as_json:
        standing = study.standing()
        click.echo(json.dumps({"done": standing.done, **standing.counts}))
    elif sys.stderr.isatty():
        click.echo(study.verdicts().tally(), err=True)


def _say_late(study: Study, trials: Sequence[int]) -> None:
    """Say of which trials outcomes are no evidence, because they were void."""
    for number, why in study.why_void(trials).items():
        said = f"trial {number} was void before this outcome came ({why}): it is kept, but is no evidence"
        click.echo(line(said), err=True)


def _trial(text: Any) -> int:
    try:
        return int(text)
    except (TypeError, ValueError):
        raise InvalidInput(f"TRIAL must be a number that was asked, got {text!r}") from None


def outcome_of(given: str | Sequence[str], where: str) -> dict[str, Any]:
    """Read METRIC=VALUE or METRIC<VALUE ..., in words or in one text, or a JSON object."""
    from ..study import Below

    if isinstance(given, str) and given.lstrip().startswith("{"):
        row: dict[str, Any] = values.json_of(given, where)
        for name, value in row.items():
            if isinstance(value, dict) and list(value) == ["below"]:
                row[name] = Below(value["below"])
        return row
    words, below = [], set()
    for word in given.split() if isinstance(given, str) else given:
        name, sign, value = word.rpartition("<")
        if sign and "=" not in value:  # names may have either in them: the last one counts
            below.add(name)
            words.append(f"{name}={value}")
        else:
            words.append(word)
    if not words:
        raise InvalidInput(f"{where} must be METRIC=VALUE for each metric, got nothing")
    numbers: dict[str, Any] = {}
    for name, text in pairs(where, words, "METRIC=VALUE").items():
        try:
            number = None if text == NOT_MEASURED and name not in below else float(text)
        except ValueError:
            raise InvalidInput(f"{name!r} in {where} must be a number, got {text!r}") from None
        numbers[name] = Below(number) if name in below and number is not None else number
    return numbers


def _tell_lines(study: Study, lines: Sequence[str]) -> None:
    """Take in all outcomes, or none if a line is wrong; then the failures."""
    told: list[tuple[int, dict[str, Any]]] = []
    failed: dict[int, str] = {}
    for number, text in enumerate(lines, 1):
        where = f"line {number}"
        if not text.strip():
            continue
        if text.lstrip().startswith("{"):
            row = outcome_of(text, where)
            trial = _trial(row.pop("trial", None))
            row.pop("arm", None)
            row.pop("block", None)
        else:
            first, *rest = text.split(maxsplit=1)
            trial, outcome = _trial(first), rest[0] if rest else ""
            if outcome.split(maxsplit=1)[:1] == ["failed"]:
                failed[trial] = outcome.removeprefix("failed").strip()
                continue
            row = outcome_of(outcome, f"{where}, outcome of trial {trial}")
        for name in row:
            if name not in study.spec.columns:
                raise UnknownName(f"metric in {where}:", name, study.spec.columns)
        told.append((trial, row))
    if not told and not failed:
        raise InvalidInput("tell - must get lines TRIAL METRIC=VALUE ..., got none")
    if told:
        study.tell_many(told)
        _say_late(study, [trial for trial, _ in told])
    for trial, reason in failed.items():
        study.fail(trial, reason)


@click.command(name="import", short_help="Take in many measurements from a CSV file.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option("--arm", default="arm", show_default=True, metavar="COLUMN", help="Which column names the option.")
@click.option("--trial", metavar="COLUMN", help="Which column has the number of the trial, where there was one.")
@time_option
@click.option(
    "--block", default="block", show_default=True, metavar="COLUMN", help="In a study with blocks, which names them."
)
@click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
@study_options
def import_(
    file: Path, arm: str, trial: str | None, time: str | None, block: str, as_json: bool, storage: str, name: str
) -> None:
    """Take in the measurements in FILE (- for standard input): a row for each, a column for each metric.

    Cells may be empty. Rows with a trial count once, however often they are imported; rows without one count each
    time. If a row is wrong, none is taken. The guarantee holds however the rows came about, except if some were left
    out because of their outcomes.
    """
    from ..simulation.progress import at_work

    study = load(storage, name)
    frame = _table(file)
    with at_work(lambda: f"import {file}"):
        new = study.tell_frame(frame, arm=arm, trial=trial, time=time, block=block)
    known = (arm, trial, time, block if study.has_blocks else None, *study.spec.columns)
    ignored = [column for column in frame if column not in known]
    rows = len(next(iter(frame.values())))
    if as_json:
        click.echo(json.dumps({"rows": rows, "new": new, "ignored": ignored, "done": study.done}))
        return
    table = study.verdicts()
    click.echo(f"{counted(rows, 'row')}, {new:,} of {'it' if rows == 1 else 'them'} new; {table.tally()}")
    for warning in table.warnings:
        click.echo(line(f"warning: {warning}"), err=True)
    if ignored:
        click.echo(f"columns that are no metric, left aside: {line(', '.join(ignored))}", err=True)


def _table(file: Path) -> dict[str, list[str]]:
    from ..frames import parse_csv, read_csv

    return parse_csv(sys.stdin.read(), "the input") if str(file) == "-" else read_csv(file)
