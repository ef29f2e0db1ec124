"""`paretoscout bench`: hyperfine for trade-offs."""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..defaults import DELTA
from ..errors import InvalidInput, MissingExtra
from ..shown import lines, rough_span
from .conventions import STORAGE, Exit, pairs, seconds

if TYPE_CHECKING:
    from ..algorithms.contract import Settings
    from ..bench import Campaign, Plan, Progress

FORMS = {".json": "json", ".csv": "csv", ".md": "markdown"}
SPAN = "a duration such as 30s, 5m or 1h"


@click.command(short_help="Run real commands and prove which are worth having.")
@click.argument("commands", nargs=-1, required=True, metavar="COMMAND...")
@click.option("-L", "variables", multiple=True, metavar="NAME=A,B,C", help="A variable: {NAME} in a command; repeat.")
@click.option("-n", "--name", "names", multiple=True, help="Name of an option, in their order; repeat.")
@click.option(
    "-m",
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME[:min|:max][<=LIMIT|>=LIMIT][=SOURCE]",
    help="time, user, system, rss, exit, size@PATH, NAME:max=stdout~REGEX or NAME:min=json@KEY; repeat for several.  "
    "[default: time, rss]",
)
@click.option(
    "--eps", multiple=True, metavar="METRIC=VALUE|PERCENT%", help="Difference that does not matter.  [time: 2%]"
)
@click.option(
    "--exact",
    multiple=True,
    metavar="METRIC",
    help="A number that is always the same for an option, such as a price; repeat.",
)
@click.option("--unit", multiple=True, metavar="METRIC=UNIT", help="Unit of a number that a command prints; repeat.")
@click.option("--delta", default=DELTA, show_default=True, help="Probability of error that is allowed.")
@click.option("--setup", metavar="COMMAND", help="Once for each option, before its first run.")
@click.option("--prepare", metavar="COMMAND", help="Before every run.")
@click.option("--cleanup", metavar="COMMAND", help="After every run.")
@click.option("--warmup", default=1, show_default=True, type=click.IntRange(min=0), help="Runs that do not count.")
@click.option("-S", "--shell", is_flag=True, help="Let a shell read the commands; its start-up is subtracted.")
@click.option("--cwd", type=click.Path(exists=True, file_okay=False), help="Folder to run in.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="Environment variable; repeat.")
@click.option("--input", "stdin", type=click.Path(exists=True, dir_okay=False), help="File for standard input.")
@click.option("--timeout", metavar="DURATION", help="Longest that a command may take: 30s, 5m.")
@click.option(
    "--budget",
    metavar="RUNS|DURATION",
    envvar="PARETOSCOUT_BUDGET",
    help="End undecided after so many runs, or 10m.",
)
@click.option(
    "--on-failure", type=click.Choice(["drop", "stop"]), default="drop", show_default=True, help="Of an option."
)
@click.option("--algorithm", default="scout", show_default=True, help="See: paretoscout algorithms")
@click.option("--features", is_flag=True, help="Let the algorithm learn from the variables.")
@click.option("--seed", default=0, show_default=True, help="Of the algorithm's choices.")
@click.option("--storage", envvar="PARETOSCOUT_STORAGE", help=f"Where runs are kept.  [default: {STORAGE}]")
@click.option("--fresh", is_flag=True, help="Forget earlier runs of the same bench.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw the front: .png or .svg.")
@click.option(
    "--html", "page", type=click.Path(path_type=Path, dir_okay=False), help="Write a report that works offline."
)
@click.option(
    "--export",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write FILE.json, FILE.csv or FILE.md; repeat.",
)
@click.option(
    "--fail-if-dominated", multiple=True, metavar="NAME", help="Exit code 4 if this option is dominated; repeat."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON instead.")
def bench(**given: Any) -> None:
    """Run COMMANDs, each an option, in turns, until it is proven which are worth having.

    Ctrl-C keeps all runs; the same command again goes on with them.

    Exit code 0: every option has its verdict; 3: undecided at --budget; 4: --fail-if-dominated.
    """
    try:
        with _ended_by_signals():
            sys.exit(_bench(given))
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)


def _bench(given: dict[str, Any]) -> int:
    """Check everything, then run; return the exit code."""
    from ..bench import Campaign, report
    from . import show

    plan, budget, storage = _plan(given), _budget(given["budget"]), given["storage"]
    _check_results(given, [option.name for option in plan.options])
    if given["fresh"]:
        plan.study("memory")  # what is wrong is said before anything is lost
        _forget(plan, storage)
    campaign = Campaign(plan, storage, stop_on_failure=given["on_failure"] == "stop")
    screen = show.console()
    interrupted = _work(campaign, budget, screen, quiet=given["as_json"])
    _report(campaign, screen, given)
    if interrupted:
        if storage != "memory":
            click.echo("interrupted: the same command goes on from here", err=True)
        return Exit.INTERRUPTED
    table = report.verdicts(campaign)
    verdicts = dict(zip(table.arms, table.verdicts, strict=True))
    if any(verdicts.get(name, "dominated") == "dominated" for name in given["fail_if_dominated"]):
        return Exit.DOMINATED
    return Exit.DONE if campaign.decided else Exit.UNDECIDED


def _plan(given: dict[str, Any]) -> Plan:
    from ..bench import Plan, options_of, source_of, variables_of

    stated = {
        what: pairs(f"--{what}", given[what], "NAME=VALUE", of=of, value_with_sign=True)
        for what, of in (("eps", "metric"), ("unit", "metric"), ("env", "variable"))
    }
    asked, exact = given["metrics"] or ("time", "rss"), given["exact"]
    sources = tuple(source_of(text, stated["eps"], stated["unit"], exact) for text in asked)
    metrics = [source.name for source in sources]
    for what, names in (("eps", stated["eps"]), ("unit", stated["unit"]), ("exact", exact)):
        for name in names:
            if name not in metrics:
                raise InvalidInput(f"--{what} must be of a metric ({', '.join(metrics)}), got {name!r}")
    options = options_of(
        given["commands"],
        variables_of(given["variables"]),
        given["names"],
        **{what: given[what] for what in ("setup", "prepare", "cleanup", "shell")},
    )
    return Plan(
        options=tuple(options),
        sources=sources,
        delta=given["delta"],
        algorithm=_algorithm(given["algorithm"], given["features"]),
        seed=given["seed"],
        warmup=given["warmup"],
        folder=given["cwd"],
        environment=tuple(stated["env"].items()),
        stdin=None if given["stdin"] is None else str(Path(given["stdin"]).absolute()),
        timeout=None if given["timeout"] is None else seconds("--timeout", given["timeout"], SPAN, with_unit=True),
        use_features=given["features"],
    )


def _check_results(given: dict[str, Any], names: list[str]) -> None:
    """Refuse what could not be written, or said, in the end."""
    for name in given["fail_if_dominated"]:
        if name not in names:
            raise InvalidInput(f"--fail-if-dominated must name an option, got {name!r}")
    for option, suffixes in (("export", tuple(FORMS)), ("picture", (".png", ".svg", ".pdf")), ("page", ())):
        for path in given[option] if option == "export" else filter(None, [given[option]]):
            if suffixes and path.suffix not in suffixes:
                raise InvalidInput(f"--{option} must end in {', '.join(suffixes)}, got {path.name!r}")
            if not path.absolute().parent.is_dir():
                raise InvalidInput(f"results must go into a folder that exists, got {path}")


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let a closed terminal or a pipeline's timeout end it as Ctrl-C does: nothing goes on running."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _algorithm(text: str, features: bool) -> Settings:
    """Return the settings of the algorithm, which must do without knowing the noise."""
    from .values import named

    record, settings = named(text)
    if "noise" not in record.settings.__dataclass_fields__:
        raise InvalidInput(f"--algorithm must work with noise that nobody knows, as scout does, got {text!r}")
    usual = {"noise": "unknown", **({"model": "robust"} if features else {})}
    return record.settings(**{**usual, **settings})


def _work(campaign: Campaign, budget: Callable[[Progress], bool], screen: Any, quiet: bool) -> bool:
    """Run to the end, with a live table on a terminal; return whether Ctrl-C cut it short."""
    from rich.live import Live

    if campaign.runs_before:
        what = "all was decided by" if campaign.decided else "going on with"
        click.echo(f"{what} {campaign.runs_before:,} runs made before {_age(campaign)}(--fresh forgets them)", err=True)
    for source in campaign.plan.sources:
        if source.metric.tolerance == 0:
            click.echo(f"note: metric {source.name} has no --eps: noise in it may keep options undecided", err=True)
    try:
        if quiet or not screen.is_terminal:
            for _ in campaign.steps(budget):
                pass
            return False
        with Live("first runs ...", console=screen, auto_refresh=False, transient=True) as live:
            draw = _Seldom(lambda: live.update(_screen(campaign, outlook), refresh=True), 0.25)
            outlook = _Seldom(lambda: campaign.study.remaining(replicates=3, seconds=0.2), 1.0)
            for _ in campaign.steps(budget):
                draw()
    except KeyboardInterrupt:
        return True
    return False


class _Seldom:
    """Calls a function, but only now and then: all calls together take a twentieth of the time."""

    def __init__(self, call: Callable[[], Any], least: float) -> None:
        self.call, self.least, self.due, self.value = call, least, 0.0, None

    def __call__(self) -> Any:
        """Return what the last call gave."""
        began = time.monotonic()
        if began >= self.due:
            self.value = self.call()
            self.due = began + max(self.least, 20 * (time.monotonic() - began))
        return self.value


def _age(campaign: Campaign) -> str:
    last = max((at for *_, at in campaign.study.observations()), default=time.time())
    seconds = time.time() - last
    return f"({rough_span(seconds)} ago) " if seconds > 60 else ""


def _screen(campaign: Campaign, outlook: Callable[[], Any]) -> Any:
    """What is shown while it runs."""
    from rich.console import Group
    from rich.text import Text

    from ..bench import report
    from . import show

    table, progress = report.verdicts(campaign), campaign.progress
    if table.counts.all():
        runs = (outlook().samples if not campaign.study.proven_done else 0.0) + campaign.runs_ahead()
        seconds = runs * progress.seconds / max(progress.runs, 1)
        ahead = f"about {runs:,.0f} more runs, {rough_span(seconds)}" if math.isfinite(runs) else "very many more runs"
        ahead = ahead if runs else "a few more runs, to know the values"
    else:
        ahead = f"{int((table.counts > 0).sum())} of {len(table.arms)} options measured for the first time"
    return Group(show.verdict_table(table), Text(ahead, style="dim"))


def _report(campaign: Campaign, screen: Any, given: dict[str, Any]) -> None:
    from ..bench import report
    from . import show

    table, sources = report.verdicts(campaign), campaign.plan.sources
    if given["as_json"]:
        click.echo(report.as_text(campaign, "json"), nl=False)
    else:
        screen.print(show.verdict_table(table))
        screen.print(report.sentence(table, sources), markup=False, soft_wrap=True)
        for each in campaign.study.standing().withdrawn:
            screen.print(lines(f"left out: {each.option}: {each.reason}"), style="yellow", markup=False, soft_wrap=True)
        for note in [*campaign.unknowable(), *campaign.drift()]:
            screen.print(f"note: {note}", style="yellow", markup=False, soft_wrap=True)
        done = campaign.progress
        if 10 * done.short > done.runs > 0:
            short = f"note: {done.short} of {done.runs} runs took no longer than their shell: times are uncertain"
            screen.print(short, style="yellow", soft_wrap=True)
        if done.busy:
            screen.print(f"the machine was busy before {done.busy} of {done.runs} runs", style="dim")
    for path in given["export"]:
        path.write_text(report.as_text(campaign, FORMS[path.suffix]), encoding="utf-8")
    if given["page"] is not None:
        given["page"].write_text(report.as_html(campaign), encoding="utf-8")
    if given["picture"] is not None:
        try:
            from .. import plots
            from ..plots.data import LEFT_EARLY

            drifted = [f"{note[0].upper()}{note[1:]}." for note in campaign.drift()]
            plots.front(table, path=given["picture"], notes=[*drifted, LEFT_EARLY] if drifted else ())
        except MissingExtra as missing:
            click.echo(f"no picture: {missing}", err=True)


def _budget(text: str | None) -> Callable[[Progress], bool]:
    if text is None:
        return lambda progress: False
    if text.isdecimal():
        return lambda progress: progress.runs >= int(text)
    most, began = seconds("--budget", text, f"a number of runs, or {SPAN}", with_unit=True), time.monotonic()
    return lambda progress: time.monotonic() - began + progress.ahead >= most


def _forget(plan: Any, storage: str | None) -> None:
    from ..errors import UnknownName
    from ..storage import storage_of

    try:
        storage_of(storage or STORAGE).delete(plan.name())
    except UnknownName:
        return
