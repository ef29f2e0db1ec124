"""`paretoscout plan`: how many runs a study will take, before anything is measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..errors import InvalidInput
from ..shown import line
from . import values
from .conventions import seconds as span
from .options import JSON_HELP, some_metric_options


@click.command(short_help="How many runs it will take, before you measure anything.")
@click.argument("pilot", required=False, type=click.Path(path_type=Path, dir_okay=False), metavar="[PILOT.csv]")
@click.option("--options", type=int, metavar="NUMBER", help="How many options there will be.")
@some_metric_options("metrics")
@click.option(
    "--eps",
    multiple=True,
    metavar="[METRIC=]VALUE[,VALUE...]",
    help="Difference that does not matter, for all metrics or by name; a share such as time=5% compares geometric "
    "means. With several, time=2%,5%,10%, the plan is for these; with one, also for half and twice of it.",
)
@click.option(
    "--noise",
    multiple=True,
    metavar="[METRIC=]VALUE",
    help="A guess of how much one run is off, as a standard deviation: quality=0.05; in percent (time=10%) where eps "
    "is in percent.",
)
@click.option(
    "--spread",
    multiple=True,
    metavar="[METRIC=]VALUE",
    help="How far options lie apart: the standard deviation of their means, written like --noise.",
)
@click.option("--arm", metavar="COLUMN", help="With a pilot: which column names the option.")
@click.option("--duration", metavar="COLUMN", help="With a pilot: which column says how many seconds a run took.")
@click.option("--seconds", metavar="TIME", help="How long one run takes: 2.5, 90s, 3m, 1h. [default: unknown]")
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(min=1), help="How many runs are made at once."
)
@some_metric_options("delta", "bounds", "exact", "sigma", "units", "scales")
@click.option("--replicates", default=30, show_default=True, help="Studies that are simulated for each eps.")
@click.option("--max-samples", default=100_000, show_default=True, help="Follow a simulated study for so many runs.")
@click.option("--limit", default="20s", show_default=True, metavar="TIME", help="End the simulation after this time.")
@click.option("--seed", default=0, show_default=True, help="Of what is drawn.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Draw a picture, too (.png or .svg).")
@click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
def plan(pilot: Path | None, out: Path | None, as_json: bool, **what: Any) -> None:
    """Estimate how many runs a study will take, and how long: for your eps, for half of it, and for twice that.

    Say how many options there are, how noisy one run is, and how far the options lie apart; rough guesses will do. Or
    give a pilot: a CSV file with a few measurements of each option.

    \b
    paretoscout plan --options 8 -m time:min --eps time=5% --noise time=10% --spread time=30% --seconds 2.5
    paretoscout plan --options 8 -m time:min -m quality:max --eps time=5% --eps quality=0.02 \\
        --noise time=10% --noise quality=0.03 --spread time=30% --spread quality=0.1 --out plan.png
    paretoscout plan pilot.csv --arm variant -m time:min --eps time=2%,5%,10% --duration seconds

    Studies are simulated, with practical verdicts, on options that are drawn from your guesses. The result is an
    estimate, not a guarantee.
    """  # noqa: D301 - click wants the character itself
    from . import show

    if not what["metrics"]:
        raise InvalidInput("a plan must have at least one metric: -m NAME[:min|:max]")
    if out is not None:
        show.writable(out)
    planned = _from_guesses(what) if pilot is None else _from_pilot(pilot, what)
    if as_json:
        click.echo(json.dumps(planned.as_dict(), indent=2, allow_nan=False))
    else:
        click.echo(str(planned))
    if out is not None:
        planned.plot(out)
        click.echo(line(f"picture: {out}"), err=as_json)


def _from_guesses(what: dict[str, Any]) -> Any:
    from ..planning import plan as planned

    for name in ("arm", "duration"):
        if what[name] is not None:
            raise InvalidInput(f"--{name} goes with a pilot: paretoscout plan PILOT.csv --{name} COLUMN")
    if what["options"] is None:
        raise InvalidInput("a plan must know the options: --options NUMBER, or a pilot (a CSV file) with --arm COLUMN")
    guesses = {name: values.numbers(f"--{name}", what[name], shares=True) for name in ("noise", "spread")}
    return planned(what["options"], **guesses, **_asked(what))


def _from_pilot(pilot: Path, what: dict[str, Any]) -> Any:
    from ..frames import read_csv
    from ..planning import plan_from_pilot

    if what["arm"] is None:
        raise InvalidInput(f"the pilot {pilot} must come with --arm COLUMN, the column that names the option")
    for name in ("options", "noise", "spread"):
        if what[name] not in (None, ()):
            raise InvalidInput(f"--{name} must be left out with a pilot, which says it: got both")
    return plan_from_pilot(read_csv(pilot), what["arm"], duration=what["duration"], **_asked(what))


def _asked(what: dict[str, Any]) -> dict[str, Any]:
    """What both ways to plan take."""
    stated = {name: what[name] for name in ("units", "bounds", "exact", "scales")}
    several = [values.metrics(what["metrics"], eps=texts, **stated) for texts in eps_of_rows(what["eps"])]
    eps = [{metric.name: metric.eps for metric in metrics} for metrics in several]
    return {
        "metrics": several[0],
        "eps": eps if len(eps) > 1 else None,
        "sigma": values.numbers("--sigma", what["sigma"]),
        "seconds": None if what["seconds"] is None else span("--seconds", what["seconds"]),
        "limit": span("--limit", what["limit"]),
        **{name: what[name] for name in ("delta", "workers", "replicates", "max_samples", "seed")},
    }


def eps_of_rows(texts: Sequence[str]) -> list[list[str]]:
    """Split [METRIC=]VALUE,VALUE,...: the eps of each row of a plan; a metric with one value has it in all rows.

    >>> eps_of_rows(["time=2%,5%", "size=1"])
    [['time=2%', 'size=1'], ['time=5%', 'size=1']]
    """
    lists = [text.rpartition("=")[2].split(",") for text in texts]
    several = {len(each) for each in lists if len(each) > 1}
    if len(several) > 1:
        raise InvalidInput(
            f"--eps must have equally many values for each metric that has several, got {' and '.join(texts)}"
        )
    names = ["".join(text.rpartition("=")[:2]) for text in texts]
    for name in names:
        if names.count(name) > 1:
            written = f"{name}{','.join(each[0] for own, each in zip(names, lists, strict=True) if own == name)}"
            raise InvalidInput(f"--eps must name each metric once, with all values: --eps {written}")
    return [
        [f"{name}{each[row % len(each)]}" for name, each in zip(names, lists, strict=True)]
        for row in range(max(several, default=1))
    ]
