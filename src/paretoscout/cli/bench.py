"""`paretoscout bench`: hyperfine for trade-offs."""

from __future__ import annotations

import contextlib
import math
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..defaults import DELTA
from ..errors import InvalidInput, MissingExtra, UnknownName
from ..shown import counted, exact_span, line, lines, rough_span
from .conventions import STORAGE, Exit, pairs, seconds
from .options import some_metric_options
from .progress import ProgressLines, undecided

if TYPE_CHECKING:
    from ..algorithms.contract import Settings
    from ..bench import Campaign, Extra, Plan, Progress
    from ..verdicts import VerdictTable

FORMS = {".json": "json", ".csv": "csv", ".md": "markdown"}
SPAN = "a duration such as 30s, 5m or 1h"
#: How long a bench goes on unless told.
USUAL_BUDGET, NO_BUDGET = "5m", "none"
#: Seconds for which a live table may stay as it is.
LONGEST_WAIT = 3.0
#: Where the words of the command line are kept.
WRITTEN = "paretoscout.bench.written"


class _Remembered(click.Command):
    """Keeps the command line, for the report to say how it was made."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words before they are parsed, and read `-L NAME VALUES`, as hyperfine has it."""
        ctx.meta[WRITTEN] = ["paretoscout", "bench", *map(_without_password, args)]
        return super().parse_args(ctx, _joined(args))


def _joined(args: list[str]) -> list[str]:
    """Write `-L NAME VALUES` as `-L NAME=VALUES`.

    >>> _joined(["-L", "n", "0.01,0.02", "sleep {n}"])
    ['-L', 'n=0.01,0.02', 'sleep {n}']
    """
    joined: list[str] = []
    left = list(args)
    while left:
        word = left.pop(0)
        joined.append(word)
        if word == "--":
            return joined + left
        if word == "-L" and len(left) > 1 and left[0].isidentifier():
            joined.append(f"{left.pop(0)}={left.pop(0)}")
    return joined


def _without_password(word: str) -> str:
    return re.sub(r"(://[^:@/\s]*:)[^@/\s]*@", r"\1***@", word)


@click.command(cls=_Remembered, short_help="Run real commands and prove which are worth having.")
@click.argument("commands", nargs=-1, required=True, metavar="COMMAND...")
@click.option(
    "-L",
    "variables",
    multiple=True,
    metavar="NAME=A,B,C|NAME=FIRST..LAST[:STEP]",
    help="A variable: {NAME} in a command; repeat.",
)
@click.option(
    "-B",
    "--inputs",
    "inputs",
    metavar="NAME=A,B,C|NAME=PATTERN",
    help="What every option is run on, such as files: {NAME} in a command. Options are compared over all of them.",
)
@click.option("-n", "--name", "names", multiple=True, help="Name of an option, in their order; repeat.")
@click.option(
    "-m",
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME[:min|:max][:pass-fail][<=LIMIT|>=LIMIT][=SOURCE]",
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
@some_metric_options("tradeoffs")
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
    metavar="RUNS|DURATION|none",
    envvar="PARETOSCOUT_BUDGET",
    help=f"End undecided after so many runs, or 10m; none: no limit.  [default: {USUAL_BUDGET}; with --runs: none]",
)
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run each option until it has N runs, not until all is decided; then say what these prove.",
)
@click.option(
    "--on-failure",
    type=click.Choice(["measure", "drop", "stop"]),
    default="measure",
    show_default=True,
    help="When a run fails: judge the share of successes, too; leave the option out; or end the bench.",
)
@click.option("-i", "--ignore-failure", is_flag=True, help="A run that fails is dropped, and its option stays.")
@click.option("--algorithm", default="scout", show_default=True, help="See: paretoscout algorithms")
@click.option("--features", is_flag=True, help="Let the algorithm learn from the variables.")
@click.option("--seed", default=0, show_default=True, help="Of the algorithm's choices.")
@click.option("--storage", envvar="PARETOSCOUT_STORAGE", help=f"Where runs are kept.  [default: {STORAGE}]")
@click.option("--fresh", is_flag=True, help="Forget earlier runs of the same bench.")
@click.option("--title", default="", metavar="QUESTION", help="Shown above table, picture and report.")
@click.option("--reference", metavar="NAME", help="Also show each option as a multiple of this one.")
@click.option("--stats", is_flag=True, help="Also show the least, median and largest value of the runs.")
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

    \b
    Examples:
      Is one command faster than another?
        paretoscout bench 'python3 -c pass' 'python3 -S -c pass' -m time
      Which compressor?
        paretoscout bench -S -L tool=gzip,bzip2,xz '{tool} -c data > packed' -m time -m size@packed
      Which value of a variable?
        paretoscout bench -L level=1..9 'gzip -{level} -kf data' -m time -m size@data.gz
      Over many files?
        paretoscout bench -L level=1..9 -B file=a.txt,b.txt,c.txt 'gzip -{level} -kf {file}' -m time -m 'size@{file}.gz'

    Exit code 0: every option has its verdict; 3: undecided at --budget or after --runs; 4: --fail-if-dominated.
    """  # noqa: D301 - click wants the character itself
    try:
        with _ended_by_signals():
            sys.exit(_bench(given))
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)


def _bench(given: dict[str, Any]) -> int:
    """Check everything, then run; return the exit code."""
    from ..bench import Campaign, report
    from . import show

    plan, storage = _plan(given), given["storage"]
    budget = Budget.of(given["budget"], of_runs=given["runs"] is not None)
    _check_results(given, [option.name for option in plan.options])
    if given["fresh"]:
        plan.study("memory")  # what is wrong is said before anything is lost
        _forget(plan, storage)
    campaign = Campaign(plan, storage, runs=given["runs"])
    screen = show.console()
    interrupted = _work(campaign, budget, screen, live=screen.is_terminal and not given["as_json"])
    _report(campaign, screen, given)
    _say_what_is_next(campaign, budget, storage, interrupted)
    if not given["as_json"]:
        if larger := report.larger_eps(campaign):
            show.said(screen, larger)
        show.said(screen, report.summary(campaign, report.verdicts(campaign), report.outlook(campaign)))
    if interrupted:
        return Exit.INTERRUPTED
    table = report.verdicts(campaign)
    if len(table.arms) == 1 < len(plan.options) and campaign.progress.dropped:
        raise InvalidInput("two options at least must run without failing to be compared")
    verdicts = dict(zip(table.arms, table.verdicts, strict=True))
    if any(verdicts.get(name, "dominated") == "dominated" for name in given["fail_if_dominated"]):
        return Exit.DOMINATED
    return Exit.DONE if campaign.decided else Exit.UNDECIDED


def _say_what_is_next(campaign: Campaign, budget: Budget, storage: str | None, interrupted: bool) -> None:
    """Say how to go on, and where what was measured is kept."""
    if storage == "memory":
        return
    if interrupted:
        click.echo("interrupted: the same command goes on from here", err=True)
    elif not campaign.decided and budget(campaign.progress):
        click.echo(f"{budget} is spent: the same command goes on from here (--budget none: no limit)", err=True)
    elif not campaign.decided and campaign.runs is not None:
        click.echo("undecided after --runs: without it the same command goes on until all is decided", err=True)
    named = click.get_current_context().get_parameter_source("storage") == ParameterSource.COMMANDLINE
    words = ["paretoscout", "status", "--name", campaign.study.name]
    words += ["--storage", _without_password(str(storage))] if named else []
    where = _without_password(storage or STORAGE)
    click.echo(line(f"study {campaign.study.name} in {where}; to see it again: {shlex.join(words)}"), err=True)


def _plan(given: dict[str, Any]) -> Plan:
    from ..bench import Plan, inputs_of, options_of, source_of, variables_of
    from ..bench.campaign import IGNORE
    from ..bench.metrics import eps_of_rate
    from ..statement import SUCCESS

    stated = {
        what: pairs(f"--{what}", given[what], "NAME=VALUE", of=of, value_with_sign=True)
        for what, of in (("eps", "metric"), ("unit", "metric"), ("env", "variable"))
    }
    asked, exact = given["metrics"] or ("time", "rss"), given["exact"]
    sources = tuple(source_of(text, stated["eps"], stated["unit"], exact) for text in asked)
    metrics = [source.name for source in sources]
    if given["ignore_failure"]:
        if click.get_current_context().get_parameter_source("on_failure") == ParameterSource.COMMANDLINE:
            raise InvalidInput("--ignore-failure must be left out with --on-failure")
        given["on_failure"] = IGNORE
    success = {} if SUCCESS in metrics else {"success_eps": stated["eps"].pop(SUCCESS, None)}
    for what, names in (("eps", stated["eps"]), ("unit", stated["unit"]), ("exact", exact)):
        for name in names:
            if name not in metrics:
                raise InvalidInput(f"--{what} must be of a metric ({', '.join(metrics)}), got {name!r}")
    how = {what: given[what] for what in ("setup", "prepare", "cleanup", "shell")}
    compared = given["commands"], variables_of(given["variables"]), given["names"]
    place, inputs = ("", []) if given["inputs"] is None else inputs_of(given["inputs"], given["cwd"])
    for other in ("runs", "features"):
        if place and given[other]:
            raise InvalidInput(f"--{other} must be left out with -B: each option is run once on each input")
    on = [(name, tuple(options_of(*compared, **how, given={place: name}))) for name in inputs]
    return Plan(
        options=tuple(options_of(*compared, **how, given={place: f"{{{place}}}"} if place else None)),
        inputs=tuple(on),
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
        tradeoffs=tuple(given["tradeoffs"]),
        on_failure=given["on_failure"],
        title=given["title"],
        **{name: eps_of_rate(SUCCESS, text) for name, text in success.items() if text is not None},
    )


def _check_results(given: dict[str, Any], names: list[str]) -> None:
    """Refuse what could not be written, or said, in the end."""
    for name in given["fail_if_dominated"]:
        if name not in names:
            raise InvalidInput(f"--fail-if-dominated must name an option, got {name!r}")
    if given["reference"] is not None and given["reference"] not in names:
        raise UnknownName("option in --reference:", given["reference"], names)
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
    from ..written import named

    record, settings = named(text)
    if "noise" not in record.settings.__dataclass_fields__:
        raise InvalidInput(f"--algorithm must work with noise that nobody knows, as scout does, got {text!r}")
    usual = {"noise": "unknown", **({"model": "robust"} if features else {})}
    return record.settings(**{**usual, **settings})


def _work(campaign: Campaign, budget: Budget, screen: Any, live: bool) -> bool:
    """Run to the end, with a live table or with lines on how far it is; return whether Ctrl-C cut it short."""
    from ..bench import report

    if before := campaign.runs_before:
        ended = campaign.decided if campaign.runs is None else not campaign.lacking()
        what = "all was decided by" if campaign.decided and ended else "going on with" if not ended else "there are"
        click.echo(f"{what} {counted(before, 'run')} made before {_age(campaign)}(--fresh forgets them)", err=True)
    for source in campaign.plan.sources:
        if source.metric.tolerance == 0:
            click.echo(f"note: metric {source.name} has no --eps: noise in it may keep options undecided", err=True)
    try:
        if live:
            _work_live(campaign, budget, screen)
            return False
        say = ProgressLines(lambda: report.verdicts(campaign), lambda: _to_go(campaign))
        for _ in campaign.steps(budget):
            say()
    except KeyboardInterrupt:
        return True
    return False


def _work_live(campaign: Campaign, budget: Budget, screen: Any) -> None:
    from rich.live import Live

    with Live("first runs ...", console=screen, auto_refresh=False, transient=True) as live:
        draw = _Seldom(lambda: live.update(_screen(campaign), refresh=True), 0.25)
        for _ in campaign.steps(budget):
            draw()


def _to_go(campaign: Campaign) -> str:
    """How many runs are left of those that were asked for, if somebody said how many."""
    return "" if campaign.runs is None else f"{sum(campaign.lacking().values()):,} to go"


class _Seldom:
    """Calls a function, but only now and then: all calls together take a twentieth of the time.

    A call that took long is no reason to keep somebody waiting for more than LONGEST_WAIT.
    """

    def __init__(self, call: Callable[[], Any], least: float) -> None:
        self.call, self.least, self.due, self.value = call, least, 0.0, None

    def __call__(self) -> Any:
        """Return what the last call gave."""
        began = time.monotonic()
        if began >= self.due:
            self.value = self.call()
            took = time.monotonic() - began
            self.due = began + took + min(max(self.least, 20 * took), LONGEST_WAIT)
        return self.value


def _age(campaign: Campaign) -> str:
    last = max((at for *_, at in campaign.study.observations()), default=time.time())
    seconds = time.time() - last
    return f"({rough_span(seconds)} ago) " if seconds > 60 else ""


def _screen(campaign: Campaign) -> Any:
    """What is shown while it runs."""
    from rich.console import Group
    from rich.text import Text

    from ..bench import report
    from . import show

    table = report.verdicts(campaign)
    head = [Text(line(report.title(campaign)), style="bold")] if report.title(campaign) else []
    return Group(*head, show.verdict_table(table), Text(_ahead(campaign, table), style="dim"))


def _ahead(campaign: Campaign, table: VerdictTable) -> str:
    """Say what is left to do, and about how long it takes."""
    if not table.counts.all():
        return f"first runs: {int((table.counts == 0).sum())} of {len(table.arms)} options left"
    if campaign.runs is not None:
        return f"{undecided(table)}; {_in_time(campaign, sum(campaign.lacking().values()))}"
    runs = campaign.runs_ahead()
    if not math.isfinite(runs):
        many = (
            "very many more runs"
            if all(map(math.isfinite, table.widths.flat))
            else "too early to say how many more runs"
        )
        return f"{undecided(table)}; {many}"
    return f"{undecided(table)}; " + (
        f"about {_in_time(campaign, round(runs))}" if runs else "a few more runs, to know the values"
    )


def _in_time(campaign: Campaign, runs: int) -> str:
    """So many more runs, and how long they take at the pace of those so far."""
    seconds = runs * campaign.progress.seconds / max(campaign.progress.runs, 1)
    return f"{counted(runs, 'more run')}, {rough_span(seconds)}"


def _report(campaign: Campaign, screen: Any, given: dict[str, Any]) -> None:
    """Print what came out, and write it where it was asked for."""
    from ..bench import Extra, page, report

    extra = Extra(given["reference"], given["stats"])
    if given["as_json"]:
        click.echo(report.as_text(campaign, "json", extra), nl=False)
    else:
        _print(campaign, screen, extra)
    for path in given["export"]:
        path.write_text(report.as_text(campaign, FORMS[path.suffix], extra), encoding="utf-8")
    if given["page"] is not None:
        command = shlex.join(click.get_current_context().meta[WRITTEN])
        given["page"].write_text(page.as_html(campaign, extra, command), encoding="utf-8")
    if given["picture"] is not None:
        try:
            from .. import plots
            from ..plots.data import LEFT_EARLY

            drifted = [f"{note[0].upper()}{note[1:]}." for note in campaign.drift()]
            plots.front(
                report.verdicts(campaign),
                path=given["picture"],
                title=report.title(campaign) or None,
                notes=[*drifted, LEFT_EARLY] if drifted else (),
            )
        except MissingExtra as missing:
            click.echo(f"no picture: {missing}", err=True)


def _print(campaign: Campaign, screen: Any, extra: Extra) -> None:
    """Print the verdicts, what goes beside them, and what to know of them; the answer comes last, after all else."""
    from ..bench import columns_of, report
    from ..verdicts import rows_shown
    from . import show

    table, standing = report.verdicts(campaign), campaign.study.standing()
    if title := report.title(campaign):
        screen.print(line(title), style="bold", markup=False, soft_wrap=True)
    screen.print(show.verdict_table(table))
    if more := columns_of(campaign, standing, extra):
        options = [table.arms[k] for k in rows_shown(table)[0]]
        screen.print("", show.more_table(options, [(column.heading, column.texts) for column in more]), sep="\n")
    if said := report.against(campaign, standing, extra):
        show.said(screen, said)
    for each in standing.withdrawn:
        screen.print(lines(f"left out: {each.option}: {each.reason}"), style="yellow", markup=False, soft_wrap=True)
    for note in [*campaign.unknowable(), *campaign.drift()]:
        screen.print(f"note: {note}", style="yellow", markup=False, soft_wrap=True)
    done = campaign.progress
    if 10 * done.short > done.runs > 0:
        short = f"{done.short:,} of {counted(done.runs, 'run')} took no longer than their shell: times are uncertain"
        screen.print(f"note: {short}", style="yellow", soft_wrap=True)
    if done.busy:
        screen.print(f"the machine was busy before {done.busy:,} of {counted(done.runs, 'run')}", style="dim")


@dataclass(frozen=True)
class Budget:
    """When a bench ends, whatever is known by then; called with what has happened, it says whether that is so."""

    runs: float = math.inf
    seconds: float = math.inf
    began: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, text: str | None, of_runs: bool = False) -> Budget:
        """Read a number of runs, a duration, or none; who asks for so many runs of each gets them, unless told."""
        text = (NO_BUDGET if of_runs else USUAL_BUDGET) if text is None else text.strip()
        if text == NO_BUDGET:
            return cls()
        form = f"a number of runs, {SPAN}, or {NO_BUDGET}"
        found = (
            cls(runs=int(text)) if text.isdecimal() else cls(seconds=seconds("--budget", text, form, with_unit=True))
        )
        if found.runs == 0 or found.seconds == 0:
            raise InvalidInput(f"--budget must be {form}, got {text!r}")
        return found

    def __call__(self, progress: Progress) -> bool:
        return progress.runs >= self.runs or time.monotonic() - self.began + progress.ahead >= self.seconds

    def __str__(self) -> str:
        size = counted(int(self.runs), "run") if math.isfinite(self.runs) else exact_span(self.seconds)
        return f"the budget of {size}"


def _forget(plan: Any, storage: str | None) -> None:
    from ..storage import storage_of

    for name in plan.names():
        with contextlib.suppress(UnknownName):
            storage_of(storage or STORAGE).delete(name)
