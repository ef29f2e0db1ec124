"""`paretoscout`: demo, compare, algorithms, problems; the other commands are in files of their own."""

from __future__ import annotations

import io
import json
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import __version__
from ..defaults import DELTA
from ..errors import InvalidInput, MissingExtra, ParetoscoutError, UnknownName
from ..shown import brief, counted, heading, line, with_unit
from ..simulation.progress import at_work
from . import analyze, loop, manage, standing, study, values
from .audit import audit
from .bench import bench
from .conventions import Exit, check_folder, told_by_exit_codes
from .datasets import datasets
from .options import goal_option, some_metric_options
from .page import page
from .plan import plan
from .reproduce import reproduce
from .serve import serve, token
from .sweep import sweep

if TYPE_CHECKING:
    from ..problem import Problem
    from ..verdicts import VerdictTable

FRAME_SECONDS = 0.05  # people watch a run of a few milliseconds
WATCHED_SECONDS = 2.0  # for no longer than this
#: So many options are named in a command that is suggested.
NAMED_ARMS = 8
#: Lists are no wider than this.
LISTED_WIDTH = 100
#: What `compare` compares unless told.
USUAL = ("scout", "multi-pfi", "uniform")


#: Headings of the list of commands. What is not named here comes under the last one.
SECTIONS = {
    "Studies: measure your own options": (
        *("bench", "plan", "create", "run", "ask", "tell", "import", "status", "front", "explain", "plot", "page"),
        *("export", "studies", "add-arm", "withdraw", "delete", "db", "serve", "token"),
    ),
    "Tables of measurements": ("analyze", "demo", "compare", "problems", "datasets"),
    "Algorithms": (),
}


class Commands(click.Group):
    """Ends every command by the table of exit codes."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by what they are for, in the order people need them."""
        placed = [name for names in SECTIONS.values() for name in names]
        for title, names in SECTIONS.items():
            listed = names or [name for name in self.list_commands(ctx) if name not in placed]
            with formatter.section(title):
                shown = [(name, self.commands[name].get_short_help_str(80)) for name in listed if name in self.commands]
                formatter.write_dl(shown)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with told_by_exit_codes():
            return super().invoke(ctx)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def main() -> None:
    """Find the Pareto-optimal options among noisy ones, with a stated probability of being right.

    Start with: paretoscout demo. Then, for commands: paretoscout bench; for options of your own: paretoscout create
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ★ shows a question mark
    check_folder()


for _command in (
    *(study.create, loop.run, study.ask, study.tell, study.import_),
    *(standing.status, standing.front, standing.explain, standing.plot, standing.export, analyze.analyze),
    *(manage.studies, manage.add_arm, manage.withdraw, manage.delete, manage.db),
    *(bench, page, plan, audit, datasets, reproduce, serve, sweep, token),
):
    main.add_command(_command)


def _problem_options(command: Any) -> Any:
    """Options that say what is to be solved; the same for every command that solves something."""
    for option in (
        click.option("--seed", default=0, show_default=True, help="Same seed, same result."),
        click.option("--delta", default=DELTA, show_default=True, help="Probability of error that is allowed."),
        click.option(
            "--eps",
            multiple=True,
            metavar="[METRIC=]VALUE",
            help="Difference that does not matter, for all metrics or by name; a share such as time=2% where geometric "
            "means are compared. Default: the problem's own.",
        ),
        click.option(
            "-m",
            "--metric",
            "metrics",
            multiple=True,
            metavar="NAME[:min|:max]",
            help="Metric column of a CSV file (repeat for several). Unless told min for names of times, costs, sizes, "
            "errors and the like, else max.",
        ),
        some_metric_options("tradeoffs"),
        click.option("--arm", metavar="COLUMN", help="Column of a CSV file that names the option."),
        click.option(
            "--sigma",
            type=click.Choice(["each", "largest", "unknown"]),
            help="What is assumed of the noise of recorded rows: each option's own standard deviation, the largest for "
            "all, or nothing. [default: each; some built-in problems know better]",
        ),
        click.option("--max-samples", type=click.IntRange(min=1), help="Give up after so many. [default: 10 million]"),
        click.option(
            "--budget", type=click.IntRange(min=1), help="Samples there are in all, for algorithms that plan for it."
        ),
    ):
        command = option(command)
    return command


def _long_option(command: Any) -> Any:
    return click.option("-v", "--long", is_flag=True, help="All that is known of each, not a line.")(command)


@main.command(short_help="Watch the front of a problem being proven.")
@click.argument("problem", default="llvm-passes-16")
@click.option("--algorithm", default="scout", show_default=True, help="See: paretoscout algorithms")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("paretoscout-demo.png"),
    show_default=True,
    help="Where the picture goes (.png or .svg).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON instead.")
@_problem_options
@goal_option("practical")
def demo(problem: str, algorithm: str, out: Path, as_json: bool, **what: Any) -> None:
    """Watch the front of PROBLEM (a built-in one, or a CSV file of measurements) being proven.

    Exit code 0: every option has its verdict; 3: undecided at --max-samples.
    """
    from ..algorithms import Uniform
    from ..answer import sentence
    from ..simulation.watch import watch
    from . import show

    stated = _problem(problem, what)
    settings = values.algorithm(algorithm, stated.statement.knows_sigma)
    if not as_json:
        show.writable(out)
    run = _run(what)
    screen = show.console()
    if not as_json:
        about = stated.about or "which options are Pareto-optimal?"
        screen.print(f"{line(stated.name)}: {about}\n", markup=False)
    frames = watch(stated, settings, **run)
    if screen.is_terminal and not as_json:
        from rich.live import Live

        with Live(console=screen, auto_refresh=False, transient=True) as live:
            began = time.monotonic()
            for table in frames:
                live.update(show.verdict_table(table), refresh=True)
                time.sleep(FRAME_SECONDS if time.monotonic() - began < WATCHED_SECONDS else 0)
    else:
        table = _last(frames, stated.name)
    of_rows = _of_the_rows(problem, what, table) if what["arm"] and run["goal"] in ("front", "practical") else None
    if as_json:
        more = {} if of_rows is None else {"rows": of_rows}
        click.echo(json.dumps(table.as_dict() | more, indent=2, allow_nan=False))
    else:
        screen.print(show.verdict_table(table))
        if of_rows is not None:
            screen.print(f"{of_rows['says']}.", markup=False, soft_wrap=True)
        _draw(lambda plots: plots.front(table, path=out), f"picture: {out}", screen)
        if algorithm != "uniform" and (stated.statement.knows_sigma or settings.sigma is not None):
            uniform = _last(
                watch(stated, Uniform(sigma=settings.sigma), **run), f"{stated.name}, measured equally often"
            )
            least = "" if "undecided" not in uniform.verdicts else "more than "
            n = int(uniform.counts.sum())
            one = (
                ", with one sigma for all,"
                if settings.sigma is None and (stated.sigma != stated.sigma[0]).any()
                else ""
            )
            screen.print(f"Measuring all options equally often{one} would have taken {least}{counted(n, 'sample')}.")
        for step in _next_steps(problem, stated, what):
            screen.print(line(step), style="dim", soft_wrap=True, markup=False)
        spent = f"{counted(int(table.counts.sum()), 'sample')} did not decide it (--max-samples)"
        show.said(screen, sentence(table, ahead=spent))
    sys.exit(Exit.UNDECIDED if "undecided" in table.verdicts else 0)


@main.command(short_help="Run several algorithms on a problem many times.")
@click.argument("problem", default="llvm-passes-16")
@click.option(
    "--algorithms",
    default=None,
    show_default="scout,multi-pfi,uniform, as far as they fit the problem",
    metavar="NAME[:SETTING=VALUE...],...",
    help="Which to compare, e.g. multi-pfi,pfiwr:exploration=0.01:width_scale=0.1, or all that fit the problem: all",
)
@click.option("--replicates", default=100, show_default=True, type=click.IntRange(min=1), help="Runs of each.")
@click.option("--workers", type=click.IntRange(min=1), help="Threads. [default: one per core]")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the plots (compare.png) and the results (one .npz for each algorithm).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summaries as JSON instead.")
@_problem_options
@goal_option("front")
def compare(
    problem: str,
    algorithms: str | None,
    replicates: int,
    workers: int | None,
    out: Path | None,
    as_json: bool,
    **what: Any,
) -> None:
    """Run several algorithms on PROBLEM many times: samples, regret, and how often they were right."""
    from ..simulation.replicates import simulate
    from ..start import fitting
    from . import show

    stated, run = _problem(problem, what), _run(what)
    if algorithms in (None, "all"):
        asked = {name: run[name] for name in ("eps", "delta", "goal", "budget")}
        chosen, refused = fitting(stated, None if algorithms else USUAL, **asked)
        if not chosen:
            raise InvalidInput(next(iter(refused.values())))
    else:
        known = stated.statement.knows_sigma
        chosen, refused = [values.algorithm(text, known) for text in values.several(algorithms)], {}
    results, interrupted = [], False
    try:
        for settings in chosen:
            results.append(simulate(stated, settings, **run, replicates=replicates, workers=workers, progress=True))
            if len(results[-1].samples) < replicates:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        interrupted = True
        click.echo("interrupted: what is finished follows", err=True)
        if not results:
            sys.exit(Exit.INTERRUPTED)
    summaries = [result.summary() for result in results]
    screen = show.console()
    if as_json:
        click.echo(json.dumps([summary.as_dict() for summary in summaries], indent=2, allow_nan=False))
    else:
        finished = min(len(result.samples) for result in results)
        screen.print(
            f"{line(stated.name)}: {counted(len(stated.arms), 'option')}, "
            f"{counted(finished, 'replicate')}, delta {what['delta']:g}\n",
            markup=False,
        )
        screen.print(show.comparison_table(summaries))
        screen.print("means over the replicates, with 95% intervals", style="dim")
        for assumed in dict.fromkeys(result.assumed for result in results):
            who = ", ".join(result.label for result in results if result.assumed == assumed)
            screen.print(f"{who}: {assumed}", style="dim", markup=False)
        if any(summary.stopped_rate < 1 for summary in summaries):
            screen.print("* some runs reached --max-samples; these count as failures")
        for name, reason in refused.items():
            screen.print(f"not run: {name}: {reason}", style="dim", markup=False, soft_wrap=True)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for number, result in enumerate(results):
            result.save(out / f"{number + 1}-{result.algorithm}.npz")
        written = screen if not as_json else None
        _draw(lambda plots: plots.compare(results, path=out / "compare.png"), f"plots and results: {out}", written)
    if interrupted:
        sys.exit(Exit.INTERRUPTED)


@main.command(short_help="List the algorithms; say all of one.")
@click.argument("name", required=False)
@_long_option
@click.option("--json", "as_json", is_flag=True, help="Print as JSON instead.")
def algorithms(name: str | None, long: bool, as_json: bool) -> None:
    """List the algorithms, a line for each; --long: for which problems, what each promises, and where it comes from.

    With NAME, that one alone, and its settings: what each is if it is left out, and what it may be.
    """
    from .. import algorithms as known
    from ..algorithms.ranges import described, settings_of

    rows = [known.get(each) for each in ([name] if name else known.available())]
    if as_json:
        fields = ("name", "summary", "kind", "setting", "guarantees", "guarantee", "paper")
        told = [{field: getattr(row, field) for field in fields} for row in rows]
        shown: Any = told[0] | {"settings": described(rows[0].settings)} if name else told
        click.echo(json.dumps(shown, indent=2))
        return
    if not name and not long:
        _list({row.name: row.summary for row in rows}, "algorithms")
        return
    for row in rows:
        lines = [row.summary, f"{row.kind}; {row.setting}", f"guarantee: {row.guarantee}", row.paper]
        if name:
            lines += [f"{field}={default!r}: {allowed}" for field, default, allowed in settings_of(row.settings)]
        click.echo("\n  ".join([click.style(row.name, bold=True), *lines]))


@main.command(short_help="List the problems; say all of one.")
@click.argument("name", required=False)
@_long_option
@click.option("--json", "as_json", is_flag=True, help="Print as JSON instead.")
def problems(name: str | None, long: bool, as_json: bool) -> None:
    """List the problems there are, a line for each: built-in ones, and data sets (see: paretoscout datasets).

    With NAME, that one alone: its options and its metrics.
    """
    from .. import problems as known

    about = known.available()
    if name:
        if name not in about:
            raise UnknownName("problem", name, about)
        about = {name: about[name]}
    if as_json:
        click.echo(json.dumps(about, indent=2))
    elif name:
        _describe(name, about[name])
    elif long:
        width = max(map(len, about))
        for each, text in about.items():
            click.echo(f"{click.style(each.ljust(width), bold=True)}  {text}")
    else:
        _list(about, "problems")


def _list(about: dict[str, str], command: str) -> None:
    """Print a line for each name, short enough for a terminal, and how to see more."""
    width = max(map(len, about))
    for name, text in about.items():
        click.echo(f"{click.style(name.ljust(width), bold=True)}  {brief(text, LISTED_WIDTH - width - 2)}")
    click.echo(f"more: paretoscout {command} NAME, or --long")


def _describe(name: str, about: str) -> None:
    """Print what a problem is; of a data set that is not on this machine, how to get it."""
    from .. import problems as known
    from ..errors import MissingData

    click.echo(f"{click.style(name, bold=True)}\n  {about}")
    try:
        stated = known.load(name)
    except MissingData as missing:
        click.echo(f"  {missing}")
        return
    arms = ", ".join(stated.arms[:NAMED_ARMS]) + (", ..." if len(stated.arms) > NAMED_ARMS else "")
    click.echo(line(f"  {counted(len(stated.arms), 'option')}: {arms}"))
    for metric in stated.metrics:
        eps = "" if metric.eps is None else f"; {with_unit(f'{metric.eps:g}', metric.unit)} does not matter"
        better = "larger" if metric.direction == "max" else "smaller"
        click.echo(line(f"  {heading(metric.name, metric.unit)}: {better} is better{eps}"))
    if stated.contexts is not None:
        click.echo(f"  {counted(stated.contexts.shape[1], 'feature')} of each option")
    click.echo(f"  {stated.statement.noise}")


def _problem(name: str, what: dict[str, Any]) -> Problem:
    stated = _found(name, what)
    return stated.replace(tradeoffs=what["tradeoffs"]) if what["tradeoffs"] else stated


def _found(name: str, what: dict[str, Any]) -> Problem:
    from .. import problems as known

    if name in known.available():
        if what["arm"] or what["metrics"]:
            raise InvalidInput(f"--arm and --metric go with a CSV file; the built-in problem {name!r} has its own")
        return known.load(name, sigma=what["sigma"])
    if not what["arm"] and not what["metrics"] and not Path(name).suffix:
        file = Path(f"{name}.csv")
        hint = f". There is a file {file}: name it with its ending" if file.exists() else ""
        raise UnknownName("problem", name, known.available(), hint=hint)
    analyze.check_columns_named(name, what)
    # a share says how a metric is compared; other differences that do not matter belong to the run
    metrics = values.metrics(what["metrics"], eps=[text for text in what["eps"] if text.endswith("%")])
    sigma = what["sigma"] or "each"
    stated = known.table(known.read_csv(name), arm=what["arm"], metrics=metrics, sigma=sigma, name=Path(name).stem)
    if len(stated.arms) == 1:
        raise InvalidInput(
            f"column {what['arm']!r} of {name} must name at least two options, got {stated.arms[0]!r} in all rows: "
            "one option has nothing to be compared with"
        )
    return stated


def _last(frames: Iterator[VerdictTable], title: str) -> VerdictTable:
    """Return the last table of a run; say now and then how far it is."""
    seen: list[VerdictTable] = []
    with at_work(lambda: f"{title}: {seen[-1].tally()}" if seen else f"{title}: getting ready"):
        for table in frames:
            seen[:] = [table]
    return seen[-1]


def _next_steps(file: str, stated: Problem, what: dict[str, Any]) -> list[str]:
    """What to do after a demo, as commands: of a built-in problem, or of a CSV file."""
    if not what["arm"]:
        return ["next, your own measurements: paretoscout demo runs.csv --arm COLUMN -m time:min -m quality:max"]
    eps = [part for text in what["eps"] for part in ("--eps", text)]
    metrics = [part for text in what["metrics"] for part in ("-m", text)]
    eps += [part for name in _never_vary(stated) for part in ("--exact", name)]
    eps += [part for text in what["tradeoffs"] for part in ("--tradeoff", text)]
    analyzed = ["paretoscout", "analyze", file, "--arm", what["arm"], *metrics, *eps]
    named = stated.arms if len(stated.arms) <= NAMED_ARMS else [*stated.arms[:2], "..."]
    created = ["paretoscout", "create", *(part for arm in named for part in ("--arm", arm)), *metrics, *eps]
    return [
        f"next, the rows by themselves: {shlex.join(analyzed)}",
        f"or measure again, as often as needed: {shlex.join(created)}; paretoscout run './measure {{arm}}'",
    ]


def _never_vary(stated: Problem) -> list[str]:
    """The metrics that are the same in all rows of an option: sizes, prices."""
    rows = [own for own in stated.rows or () if len(own) > 1]
    return [
        metric.name
        for position, metric in enumerate(stated.metrics)
        if rows and all((own[:, position] == own[0, position]).all() for own in rows)
    ]


def _of_the_rows(file: str, what: dict[str, Any], drawn: VerdictTable) -> dict[str, Any]:
    """What the rows of a CSV file prove by themselves, as `analyze` says it, beside verdicts on draws from them."""
    from ..frames import read_csv
    from ..study import analyze as analyzed

    metrics = values.metrics(what["metrics"], eps=what["eps"])
    try:
        goal = values.goal(what.get("goal", "practical"))
        how = {"delta": what["delta"], "goal": goal, "tradeoffs": what.get("tradeoffs")}
        table = analyzed(read_csv(file), what["arm"], metrics, **how)
    except ParetoscoutError as refused:
        return {"says": f"By themselves (paretoscout analyze) the rows prove nothing: {refused}"}
    verdicts = dict(zip(table.arms, table.verdicts, strict=True))
    says = f"By themselves (paretoscout analyze) the rows prove: {table.tally()}"
    for arm, verdict in zip(drawn.arms, drawn.verdicts, strict=True):
        if {verdict, verdicts[arm]} == {"front", "dominated"}:
            says += f"; they contradict the above on {arm}: {verdicts[arm]}"
    return {"says": says, "guarantee": table.guarantee.as_dict(), "verdicts": verdicts}


def _run(what: dict[str, Any]) -> dict[str, Any]:
    """What is asked for, as `simulate` and `watch` take it."""
    return {
        "eps": values.numbers("--eps", what["eps"], shares=True),
        **{name: what[name] for name in ("delta", "seed", "max_samples", "budget")},
        "goal": values.goal(what["goal"]),
    }


def _draw(draw: Any, message: str, screen: Any) -> None:
    """Draw, or say how to get the packages for it; a missing picture fails no command."""
    try:
        from .. import plots

        draw(plots)
    except MissingExtra as missing:
        message = f"no picture: {missing}"
    if screen is not None:
        screen.print(line(message), markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
