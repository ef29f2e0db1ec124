"""`paretoscout serve` and `token`: a server of studies, and who may use it."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..errors import InvalidInput, MissingExtra, StorageUnavailable
from ..shown import line
from .conventions import seconds
from .options import JSON_HELP, storage_option

if TYPE_CHECKING:
    from ..service.settings import ServerSettings
    from ..service.tokens import Token, Tokens

SIZE = re.compile(r"([0-9]+)\s*(MB|GB)")
MEGABYTE = 2**20


@click.command(short_help="Serve studies to a team: an API, and a page to watch.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(0, 65535), help="0: any that is free.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes.")
@click.option("--memory", default="512MB", show_default=True, metavar="SIZE", help="For open studies, each process.")
@click.option("--https", is_flag=True, help="A proxy in front speaks HTTPS: every request needs a token.")
@click.option(
    "--name-of-server", "names", multiple=True, metavar="NAME", help="Its name outside: every request needs a token."
)
@click.option("--demo", is_flag=True, help="Three example studies that move, in a storage that is deleted at the end.")
@storage_option
@click.pass_context
def serve(
    context: click.Context,
    host: str,
    port: int,
    workers: int,
    memory: str,
    https: bool,
    names: tuple[str, ...],
    demo: bool,
    storage: str,
) -> None:
    """Serve the studies of a storage: an API under /v1, and pages for people.

    \b
    paretoscout serve --demo
    paretoscout serve
    paretoscout token create --scope admin
    paretoscout serve --host 0.0.0.0 --storage postgresql://USER@HOST/DATABASE --workers 2

    Without tokens it serves this machine only. docs/service.md is the guide.
    """  # noqa: D301 - click wants the character itself
    try:
        from ..service.settings import ServerSettings
        from ..service.start import serve as run
    except ImportError:
        raise MissingExtra("a server", "serve") from None
    settings = ServerSettings(storage, host, port, workers, _bytes(memory), https=https, names=names)
    if demo:
        if https or names:
            raise InvalidInput("--demo must stand without --https and --name-of-server: it has no tokens")
        _serve_demo(settings, context.get_parameter_source("storage") is ParameterSource.COMMANDLINE)
        return
    from ..service.telemetry import say
    from ..storage.sql import is_away

    tokens = _tokens(storage, later=True)
    try:
        any_token, valid = tokens.any(), tokens.valid_ids()  # refused now, if nothing can be kept there
    except StorageUnavailable as problem:
        if not is_away(problem):
            raise
        say(f"{problem}. Until it can be reached, which is tried every 2 s, /readyz answers with 503", warning=True)
        any_token, valid = True, None
    if not settings.loopback and valid is not None and not valid:
        raise InvalidInput(
            f"--host must be 127.0.0.1 while no token is valid, got {host}. Make one: "
            "paretoscout token create --scope admin"
        )
    if valid is not None and not valid and (any_token or not settings.alone):
        say("no token is valid, and every request needs one. Make one: paretoscout token create --scope admin", True)
    if not settings.loopback and not https:
        say(
            f"tokens and outcomes travel in clear text to and from {host}: put a proxy that speaks HTTPS in front, "
            "and say --https",
            warning=True,
        )
    shown = tokens.storage.shown  # without the password
    run(settings, lambda address: say(f"serving {line(shown)} at {address}  (Ctrl-C ends it)"))


def _serve_demo(settings: ServerSettings, storage_named: bool) -> None:
    """Serve example studies, in a storage of their own: a demo never writes into somebody's studies."""
    from ..service.demo import demo
    from ..service.start import serve as run
    from ..service.telemetry import say

    if storage_named:
        raise InvalidInput("--demo must stand without --storage: a demo has its own, which is deleted at the end")
    if not settings.loopback:
        raise InvalidInput(f"--host must be 127.0.0.1 with --demo, which has no tokens, got {settings.host}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))  # what is temporary is deleted then, too
    with demo() as place:
        run(
            replace(settings, storage=place),
            lambda address: say(
                f"serving three example studies at {address}  (open it in a browser; Ctrl-C ends it, nothing is kept)"
            ),
        )


def _bytes(text: str) -> int:
    found = SIZE.fullmatch(text.strip())
    if found is None:
        raise InvalidInput(f"--memory must be a size such as 512MB or 2GB, got {text!r}")
    return int(found[1]) * MEGABYTE * (1024 if found[2] == "GB" else 1)


@click.group(short_help="Make, list and revoke tokens of a server.")
def token() -> None:
    """Make, list and revoke tokens: who may do what on a server. They are kept with the studies."""


@token.command()
@click.option(
    "--scope",
    type=click.Choice(["metrics", "read", "tell", "write", "admin"]),
    required=True,
    help="metrics: only /metrics; read: look; "
    "tell: also ask and tell own trials; write: also make studies, tell all; admin: also delete.",
)
@click.option("--study", metavar="NAME", help="Only for this one. [default: for all]")
@click.option("--expires", metavar="TIME", help="Ends after that time, e.g. 30d. [default: never]")
@click.option("--note", default="", metavar="TEXT", help="For whom it is.")
@storage_option
def create(scope: str, study: str | None, expires: str | None, note: str, storage: str) -> None:
    """Make a token. It is shown this once: only what it is checked against is kept."""
    ends = None if expires is None else seconds("--expires", expires)
    text = _tokens(storage).create(scope, study, ends, note, _user())
    click.echo(text)


@token.command(name="list")
@click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
@storage_option
def list_(as_json: bool, storage: str) -> None:
    """List the tokens: their names, not what they are made of."""
    tokens = _tokens(storage)
    now, found = tokens.storage.now(), tokens.all()
    if as_json:
        click.echo(json.dumps([vars(each) | {"valid": each.valid(now)} for each in found], indent=2))
        return
    for each in found:
        click.echo(line(_described(each, now)))


def _described(token: Token, now: float) -> str:
    parts: list[Any] = [token.id, token.scope, f"study {token.study}" if token.study else "all studies"]
    if token.revoked_at is not None:
        parts.append(f"revoked {_day(token.revoked_at)}")
    elif token.ends_at is not None:
        parts.append(f"{'ended' if token.ends_at <= now else 'until'} {_day(token.ends_at)}")
    return "  ".join([*parts, *filter(None, [token.note])])


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))


@token.command()
@click.argument("name")
@storage_option
def revoke(name: str, storage: str) -> None:
    """Let a token be of no use from now on; NAME is what `token list` shows first."""
    _tokens(storage).revoke(name, _user())
    click.echo(line(f"revoked: {name}"))


def _user() -> str:
    """Return who calls, for the log of the server."""
    import getpass
    import platform

    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # the system has no name for them
        name = f"user {os.getuid()}"
    return line(f"{name}@{platform.node()}")


def _tokens(storage: str, later: bool = False) -> Tokens:
    from ..service.tokens import Tokens
    from ..storage import storage_of
    from ..storage.sql import SQLStorage

    place = storage_of(storage, later=later)
    if not isinstance(place, SQLStorage):
        raise InvalidInput("--storage must be a file or a database: what is in memory is gone when the command ends")
    return Tokens(place)
