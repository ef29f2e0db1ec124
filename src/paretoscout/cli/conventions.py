"""What is the same in all commands: exit codes, time spans, NAME=VALUE, and where studies are kept.

docs/exit-codes.md prints the table of exit codes.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum

import click

from ..defaults import STORAGE as STORAGE
from ..errors import InvalidInput, ParetoscoutError
from ..shown import line, lines
from ..written import seconds as seconds


class Exit(IntEnum):
    """What a script is told by the end of a command."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Exit:
        """Make a code with its meaning."""
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member

    DONE = 0, "done"
    UNEXPECTED = 1, "unexpected error: please report it"
    USAGE = 2, "wrong usage or bad input"
    UNDECIDED = 3, "some option has no verdict"
    DOMINATED = 4, "an option that must not be dominated is"
    NOTHING_LEFT = 5, "nothing left to ask: every option has its verdict"
    FAILED = 6, "a promise was broken, or a reproduction failed"
    INTERRUPTED = 130, "interrupted, by Ctrl-C or because you said no"
    TERMINATED = 143, "ended by SIGTERM"


def agreed(question: str) -> None:
    """Ask before something is lost; a script that cannot answer must say --yes."""
    try:
        yes = click.confirm(question, err=True)
    except click.Abort:  # Ctrl-C, or the end of the input
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise InvalidInput("nobody is there to answer: say --yes. Nothing was changed") from None
    if not yes:
        raise click.Abort


@contextmanager
def told_by_exit_codes() -> Iterator[None]:
    """Turn every error into a sentence and an exit code; only what nobody expected has a traceback."""
    try:
        yield
        sys.stdout.flush()  # a reader that went away is noticed here, not when Python ends
    except click.ClickException as problem:
        problem.message = lines(problem.message)  # type: ignore[misc]
        raise
    except (click.exceptions.Exit, SystemExit):
        raise
    except ParetoscoutError as problem:
        raise click.UsageError(lines(str(problem))) from problem
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it once more
        sys.exit(Exit.INTERRUPTED)
    except OSError as problem:
        where = "" if problem.filename is None else f": {problem.filename}"
        raise click.UsageError(line(f"{problem.strerror or problem}{where}")) from problem
    except Exception as problem:
        if isinstance(problem, ValueError) and "embedded null" in str(problem):
            raise click.UsageError("a path must not have a NUL in it") from problem
        if isinstance(problem, UnicodeEncodeError) and "surrogates" in problem.reason:
            raise click.UsageError(f"what is given must be UTF-8, got {problem.object!r}") from problem
        what = f"{type(problem).__name__}: {problem}"
        click.echo(f"unexpected error: {line(what)}; please report it, with what follows", err=True)
        click.echo(lines(traceback.format_exc()), err=True, nl=False)
        sys.exit(Exit.UNEXPECTED)


def check_folder() -> None:
    """Refuse to work in a folder that is gone: no path could be found from there."""
    try:
        os.getcwd()
    except OSError:
        raise click.UsageError("the working folder was deleted: change to one that exists") from None


def pairs(
    option: str, texts: Sequence[str], form: str, *, of: str = "metric", value_with_sign: bool = False
) -> dict[str, str]:
    """Read NAME=VALUE, each name once.

    Names of metrics may have a "=" in them, so the last one counts; in an environment it is the first, and what comes
    after it may be anything, or nothing: `value_with_sign`.

    >>> pairs("--unit", ["a=b=ms"], "METRIC=UNIT"), pairs("--env", ["a=b=ms"], "NAME=VALUE", value_with_sign=True)
    ({'a=b': 'ms'}, {'a': 'b=ms'})
    """
    values: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=") if value_with_sign else text.rpartition("=")
        if not sign or not name or not (value or value_with_sign):
            raise InvalidInput(f"{option} must be written {form}, got {text!r}")
        if name in values:
            raise InvalidInput(f"{option} must name each {of} once, got {name!r} twice")
        values[name] = value
    return values
