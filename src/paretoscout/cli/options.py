"""Options that several commands about studies share, and finding the study that is meant."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..defaults import DELTA
from ..errors import InvalidInput, UnknownName
from . import values
from .conventions import STORAGE

if TYPE_CHECKING:
    from ..client import RemoteStanding
    from ..statement import Metric
    from ..study import Standing, Study

#: What a study is called unless told.
NAME = "study"
#: So many outcomes, and so many for each open trial, wait where workers are at work; more where one was forgotten.
MANY_WAIT, MANY_WAIT_FOR_EACH = 10, 3
#: Trials that outcomes wait for are named up to this number.
MOST_SHOWN = 3
F = TypeVar("F", bound=Callable[..., Any])
JSON_HELP = "Print as JSON instead."


def study_options(command: Any) -> Any:
    """Options that say which study is meant; the same for every command about one."""
    command = click.option(
        "--name", default=NAME, show_default=True, envvar="PARETOSCOUT_STUDY", help="Name of the study."
    )(command)
    return storage_option(command)


def storage_option(command: Any) -> Any:
    """Where studies are kept."""
    return click.option(
        "--storage",
        default=STORAGE,
        show_default=True,
        envvar="PARETOSCOUT_STORAGE",
        show_envvar=True,
        metavar="FILE|URL",
        help="A file, or postgresql://USER@HOST/DATABASE.",
    )(command)


def time_option(command: Any) -> Any:
    """When rows were measured."""
    return click.option(
        "--time",
        metavar="COLUMN",
        help="Which column says, by a number, when a row was measured. [default: rows count in a random order]",
    )(command)


#: Options that say what is measured, and how well it is known, by the name of their parameter.
_OF_METRICS = {
    "delta": click.option("--delta", default=DELTA, show_default=True, help="Probability of error that is allowed."),
    "algorithm": click.option(
        "--algorithm",
        default="scout",
        show_default=True,
        metavar="NAME[:SETTING=VALUE...]",
        help="See: paretoscout algorithms",
    ),
    "contexts": click.option(
        "--context",
        "contexts",
        multiple=True,
        metavar="COLUMN",
        help="Column of the CSV file that may explain the metrics; repeat for several.",
    ),
    "guards": click.option(
        "--guard", "guards", multiple=True, metavar="LIMIT", help="What options must keep, e.g. 'latency <= 200'."
    ),
    "bounds": click.option(
        "--bounds", multiple=True, metavar="METRIC=LOW,HIGH", help="Lowest and highest value there can be."
    ),
    "exact": click.option(
        "--exact",
        multiple=True,
        metavar="METRIC",
        help="A number that is the same in all measurements of an option is certain: sizes, prices.",
    ),
    "sigma": click.option(
        "--sigma",
        multiple=True,
        metavar="[METRIC=]VALUE",
        help="Standard deviation of the noise, if you know it (with --scale log: that of the logarithm). "
        "[default: unknown, and the noise is normal]",
    ),
    "units": click.option("--unit", "units", multiple=True, metavar="METRIC=UNIT", help="Shown behind numbers."),
    "eps": click.option(
        "--eps",
        multiple=True,
        metavar="[METRIC=]VALUE",
        help="Difference that does not matter, for all metrics or by name; a share such as time=2% compares "
        "geometric means. [default: 0]",
    ),
    "scales": click.option(
        "--scale",
        "scales",
        multiple=True,
        metavar="METRIC=log",
        help="Compare a metric above 0 by ratios of geometric means, not by differences of means.",
    ),
    "ratios": click.option(
        "--ratio",
        "ratios",
        multiple=True,
        metavar="METRIC=NUMBER",
        help="On no block is an option more than so many times another; for metrics in percent. [default: unknown, and "
        "differences are normal]",
    ),
    "tradeoffs": click.option(
        "--tradeoff",
        "tradeoffs",
        multiple=True,
        metavar="'1 ms <= 3 MB'",
        help="What one metric is worth in another, at most: saving 1 ms, saving 3 MB. By unit or name; in percent "
        "where metrics are compared so. Repeat for several.",
    ),
    "metrics": click.option(
        "-m",
        "--metric",
        "metrics",
        multiple=True,
        metavar="NAME[:min|:max][:pass-fail]",
        help="What is measured (repeat for several). Unless told min for names of times, costs, sizes, errors and the "
        "like, else max. pass-fail: each outcome is 0 or 1.",
    ),
}


def metric_options(command: Any) -> Any:
    """Options that say what is measured, and how well it is known; the same for every command that takes metrics."""
    return some_metric_options(*_OF_METRICS)(command)


def some_metric_options(*names: str) -> Callable[[F], F]:
    """Return those of `metric_options` that a command takes, if it does not take them all."""

    def add(command: Any) -> Any:
        for name in names:
            command = _OF_METRICS[name](command)
        return command

    return add


def block_option(command: Any) -> Any:
    """On what rows were measured."""
    return click.option(
        "--block",
        metavar="COLUMN",
        help="Which column says on what an option was measured (a prompt, a file): options are compared on the same.",
    )(command)


def target_option(default: str) -> Callable[[F], F]:
    """Add what an answer on blocks is about."""
    return click.option(
        "--target",
        type=click.Choice(["population", "list"]),
        help="With blocks, what the answer is about: all blocks there could be, of which these were drawn; or exactly "
        f"these, as they were measured once. [default: {default}]",
    )


def goal_option(default: str | None, shown: str | bool = True) -> Callable[[F], F]:
    """What is asked for."""
    return click.option(
        "--goal",
        default=default,
        show_default=shown,
        metavar="practical|front|cover|NUMBER",
        help="Options that are worth having; all that nobody beats in every metric; some that come within eps of "
        "these; or so many of them.",
    )


def measured(
    what: dict[str, Any],
    metrics: list[Metric] | None = None,
    usual: Sequence[str] = (),
    known: Callable[[str], Metric] | None = None,
) -> dict[str, Any]:
    """Return what `metric_options` were given, as `Study` and `analyze` take it.

    metrics: if they are known already. usual: those that are taken if none is named. known: what is known of one.
    """
    if metrics is None:
        stated = {name: what[name] for name in ("eps", "units", "bounds", "exact", "scales", "ratios")}
        metrics = values.metrics(what["metrics"] or usual, known=known, **stated)
    sigma = values.numbers("--sigma", what["sigma"])
    return {
        "metrics": metrics,
        "sigma": sigma,
        "algorithm": values.algorithm(what["algorithm"], values.knows_all(sigma, [metric.name for metric in metrics])),
        **{name: what[name] for name in ("guards", "contexts", "delta", "tradeoffs")},
    }


def load(storage: str, name: str) -> Study:
    """Return a study that is there. A file that is not there is not made."""
    from ..study import Study

    try:
        return Study.load(name, found(storage, name))
    except UnknownName as unknown:
        raise (unknown_study(storage, name, unknown.known) if unknown.kind == "study" else unknown) from None


def unknown_study(storage: str, name: str, known: Sequence[str], *, make: bool = True) -> UnknownName:
    """Return the error about a study that is not there: where was looked, what there is, and how to make it."""
    from ..storage import storage_of

    where = getattr(storage_of(storage), "shown", storage) if "://" in storage else storage  # without its password
    hint = f". To make it: {create_command(storage, name)}" if make else ""
    return UnknownName("study", name, known, f"in {where}", hint)


def create_command(storage: str, name: str) -> str:
    """Return a command that makes a study, for a message."""
    kept = "" if storage == STORAGE or "://" in storage else f" --storage {shlex.quote(storage)}"
    return f"paretoscout create{_named(name)}{kept} --arm small --arm large -m quality:max -m cost:min"


def _named(name: str) -> str:
    return "" if name == NAME else f" --name {shlex.quote(name)}"


def alone(study: Study, standing: Standing | None = None) -> str | None:
    """Say that a study has but one option, which is no question, and what to do about it."""
    standing = standing or study.standing()
    arms = standing.options
    if len(arms) != 1 or standing.withdrawn or study.spec.guards:
        return None
    more = "paretoscout add-arm NAME" + _named(study.name)
    return f"{arms[0]!r} is the only option, with nothing to be compared with: add others ({more})"


def found(storage: str, name: str | None = None) -> str:
    """Return where studies are kept, if there is something; name: of the study that is looked for."""
    if storage == "memory":
        raise InvalidInput("--storage must be a file or a database: what is in memory is gone when the command ends")
    from ..storage import check_is_there

    try:
        check_is_there(storage)
    except InvalidInput as missing:
        if name is None or "there is no file" not in str(missing):
            raise
        raise InvalidInput(f"{missing}: {create_command(storage, name)}") from None
    return storage


def held_up(standing: Standing | RemoteStanding, now: float) -> str:
    """Say which trials outcomes wait for; an empty string if none wait. now: by the clock of the storage."""
    said = [each.said(now) for each in standing.waits]
    return "; ".join([*said[:MOST_SHOWN], *(["..."] if len(said) > MOST_SHOWN else [])])


def waiting(study: Study, standing: Standing | None = None) -> str | None:
    """Say which trials outcomes wait for, and what to do about one that was perhaps forgotten."""
    standing = standing or study.standing()
    if not standing.waits:
        return None
    said = held_up(standing, study.log.clock())
    first, total = standing.waits[0].trial.number, sum(each.outcomes for each in standing.waits)
    if total < MANY_WAIT or total <= MANY_WAIT_FOR_EACH * len(standing.open):
        return said
    return (
        f"{said}. If nobody measures it, paretoscout run measures it again; or tell it, or say that it failed "
        f"(paretoscout tell {first} --failed interrupted)"
    )
