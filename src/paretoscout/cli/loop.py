"""`paretoscout run`: measure by a command until every option has its verdict."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidInput
from ..shown import counted, line, rough_span
from .conventions import Exit, seconds
from .options import alone, held_up, load, study_options
from .progress import LONGEST_PAUSE, ProgressLines
from .study import outcome_of

if TYPE_CHECKING:
    from ..study import Voided, Waits

#: What may stand in a command: the name of the option, and of the block.
PLACE, BLOCK = "{arm}", "{block}"
#: After SIGTERM a server that does not answer is waited for this long.
HURRY_SECONDS = 5.0
#: What looks like a placeholder; braces that are doubled are braces.
PLACES = re.compile(r"(?<![{$])\{(\w+)\}(?!\})")
FILLED = re.compile(r"\{(\{\w+\})\}|\{(arm|block)\}")


class MeasurementFailed(InvalidInput):
    """The command did not give an outcome."""


@click.command(short_help="Measure by a command until every option has its verdict.")
@click.argument("command")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(min=1), help="Measurements at a time.")
@click.option("--trials", type=click.IntRange(min=1), help="Begin no more after so many. [default: no limit]")
@click.option("--timeout", metavar="TIME", help="Begin no more after that time, e.g. 10min. [default: no limit]")
@click.option(
    "--keep-going", is_flag=True, help="A measurement that fails is made again later. [default: it ends the run]"
)
@click.option(
    "--leave-asked",
    is_flag=True,
    help="Wait for trials that were asked by hand. [default: measure them again, if no other worker is alive]",
)
@click.option(
    "--server",
    metavar="URL",
    envvar="PARETOSCOUT_SERVER_URL",
    show_envvar=True,
    help="Measure for a study on a server (paretoscout serve); the token is in PARETOSCOUT_TOKEN.",
)
@study_options
def run(
    command: str,
    workers: int,
    trials: int | None,
    timeout: str | None,
    keep_going: bool,
    leave_asked: bool,
    server: str | None,
    storage: str,
    name: str,
) -> None:
    """Run COMMAND for each measurement that the study asks for; {arm} in it is the name of the option.

    In a study with blocks {block} is the name of the block, which is also in the variable PARETOSCOUT_BLOCK.

    \b
    paretoscout create --arm small --arm large -m quality:max -m cost:min --eps quality=0.02 --eps cost=0.1
    paretoscout run './measure {arm}' --workers 4

    The last line that COMMAND prints is the outcome: METRIC=VALUE for each metric, or a JSON object. No shell reads the
    command; the name of the option is also in the variable PARETOSCOUT_ARM; {{x}} stands for {x}. Ctrl-C loses nothing:
    what was told is kept, and the same command goes on. What a run that died left is measured again first, and so are
    trials that somebody asked for by hand, if no other worker is alive; the first line names them.

    Exit code 0: every option has its verdict; 3: some have none; 2: a measurement failed; 143: ended by SIGTERM, which
    loses nothing either.
    """  # noqa: D301 - click wants the character itself
    from . import show

    how: dict[str, Any] = {
        "workers": workers,
        "trials": trials,
        "timeout": None if timeout is None else seconds("--timeout", timeout),
        "catch": MeasurementFailed if keep_going else (),
        "leave_asked": leave_asked,
    }
    commands = Commands()
    if server is not None:
        _run_for(server, name, command, commands, how)
        return
    study = load(storage, name)
    words = _words(command, (PLACE, BLOCK) if study.spec.walk else (PLACE,))
    if (lonely := alone(study)) is not None:
        raise InvalidInput(lonely)
    with commands.until_sigterm():
        standing = study.run(
            lambda arm, block=None: measured(words, arm, block, commands),
            callback=ProgressLines(study.verdicts, ahead=lambda: held_up(study.standing(), study.log.clock())),
            notice=lambda what: _say(what, study.log.clock()),
            **how,
        )
    screen = show.console()
    screen.print(show.verdict_table(standing.table, hint="paretoscout status --all shows them"))
    ahead = study.remaining() if not standing.done and standing.table.counts.all() else None
    show.answer(screen, standing.table, study, ahead)
    sys.exit(0 if standing.done else Exit.UNDECIDED)


def _run_for(server: str, name: str, command: str, commands: Commands, how: dict[str, Any]) -> None:
    """Measure for a study on a server."""
    from ..client import connect
    from ..simulation.progress import Due, say

    there = connect(server)
    study = there.study(name)
    words = _words(command, (PLACE, BLOCK) if study.spec.walk else (PLACE,))
    due, told = Due(time.monotonic, LONGEST_PAUSE), 0

    def callback(*_: Any) -> None:
        nonlocal told
        told += 1
        if due():
            waits = held_up(study.standing(), time.time())
            said = f"{counted(told, 'measurement')} told to {server}{', ' if waits else ''}{waits}"
            say(f"{rough_span(due.clock() - due.began)}: {said}")

    def hurry() -> None:
        there.patience = min(there.patience, HURRY_SECONDS)

    with commands.until_sigterm(hurry):
        standing = study.run(
            lambda arm, block=None: measured(words, arm, block, commands),
            callback=callback,
            notice=lambda what: _say(what, time.time()),
            **how,
        )
    click.echo(line(f"{counted(told, 'measurement')} told to {server}"), err=True)
    click.echo(line(study.says()))
    sys.exit(0 if standing.done else Exit.UNDECIDED)


#: Why trials are measured again.
AGAIN = {
    "dead": "{n}, because {their} worker is dead",
    "asked": "{n} that {were} asked by hand, because no other worker is alive (--leave-asked waits for {them})",
}
#: Trials that are named in a line.
MOST_NAMED = 5


def _say(what: Sequence[Voided | Waits], now: float) -> None:
    """Say which trials are measured again, or what holds the run up."""
    from ..simulation.progress import say
    from ..study import Voided, Waits

    for why, text in AGAIN.items():
        found = [each.trial for each in what if isinstance(each, Voided) and each.why == why]
        if not found:
            continue
        one = len(found) == 1
        which = ", ".join(
            f"{trial.number} ({trial.arm}, asked {rough_span(max(0.0, now - trial.asked_at))} ago"
            f"{f' by {trial.by}' if trial.by else ''})"
            for trial in found[:MOST_NAMED]
        )
        words = {
            "n": counted(len(found), "trial"),
            "were": "was" if one else "were",
            "them": "it" if one else "them",
            "their": "its" if one else "their",
        }
        more = ", ..." if len(found) > MOST_NAMED else ""
        say(f"measures again {text.format(**words)}: {which}{more}")
    for each in what:
        if isinstance(each, Waits):
            say(each.said(now))


class Commands:
    """The commands that are running: they end when SIGTERM ends this process."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._starting = threading.Lock()  # held while a command is started, but is not in the set yet
        self._ended = False

    def run(self, argv: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        pipe = subprocess.PIPE
        with self._starting:
            if self._ended:
                raise MeasurementFailed("ended by SIGTERM")
            process = subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True, env=environment)
            self._running.add(process)
        with process:
            try:
                out, err = process.communicate()
            except BaseException:
                process.kill()
                raise
            finally:
                self._running.discard(process)
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    @contextmanager
    def until_sigterm(self, hurry: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Let SIGTERM end what is running, and then this process, when its trials are void. hurry: is called first."""
        from ..study.loop import Terminated

        def end() -> None:
            click.echo("ended by SIGTERM: what was under way is measured again by the next run", err=True)
            sys.stdout.flush()
            os._exit(Exit.TERMINATED)  # without waiting for commands that do not end

        def terminated(*_: object) -> None:
            signal.signal(signal.SIGTERM, lambda *_: None)  # SIG_IGN would be inherited by commands
            hurry()
            with self._starting:
                self._ended = True
                for process in tuple(self._running):
                    process.terminate()
            raise Terminated(end)

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGTERM, terminated)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)


def _words(command: str, places: Sequence[str]) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise InvalidInput(f"COMMAND must be words as a shell reads them, but: {problem}: {command!r}") from None
    if not words:
        raise InvalidInput("COMMAND must not be empty")
    for name in PLACES.findall(command):
        if f"{{{name}}}" not in places:
            also = f", and {BLOCK}, that of the block" if BLOCK in places else ""
            raise InvalidInput(
                f"COMMAND must have no placeholder but {PLACE}, the name of the option{also}, got {{{name}}} in "
                f"{command!r}; for the braces themselves write {{{{{name}}}}}"
            )
    return words


def measured(words: list[str], arm: str, block: str | None, commands: Commands) -> dict[str, Any]:
    """Return the outcome of one measurement."""
    argv = [_filled(word, arm, block) for word in words]
    about = {"PARETOSCOUT_ARM": arm, **({} if block is None else {"PARETOSCOUT_BLOCK": block})}
    try:
        done = commands.run(argv, {**os.environ, **about})
    except OSError as problem:
        raise MeasurementFailed(f"{argv[0]!r} cannot be run: {problem.strerror}") from None
    said = done.stderr.strip()[-300:]
    if done.returncode != 0:
        raise MeasurementFailed(
            f"{shlex.join(argv)} ended with exit code {done.returncode}{': ' if said else ''}{said}"
        )
    lines = [text for text in done.stdout.splitlines() if text.strip()]
    if not lines:
        raise MeasurementFailed(f"{shlex.join(argv)} must print METRIC=VALUE for each metric, got nothing")
    return outcome_of(lines[-1], f"what {shlex.join(argv)} printed")


def _filled(word: str, arm: str, block: str | None = None) -> str:
    """Return a word of the command with the name of the option in it, and of the block.

    >>> _filled("{arm}.json", "a"), _filled("{{print}}", "a"), _filled("${HOME}", "a")
    ('a.json', '{print}', '${HOME}')
    >>> _filled("{arm}/{block}", "a", "b")
    'a/b'
    """
    named = {"arm": arm, "block": block or ""}
    return FILLED.sub(lambda found: found[1] or named[found[2]], word)
