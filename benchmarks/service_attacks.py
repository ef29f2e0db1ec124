"""Attacks on a server, next to the kills: what callers from outside may send, and how often it got through.

Each attack is a function that takes a folder of its own and returns how often it tried, and how often it succeeded. It
starts a real server (`attacked`), or uses what it needs. `run_all` runs them all. A success is a fault.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.beside_servers import Served
from paretoscout.service.tokens import Tokens
from paretoscout.storage.sql import SQLStorage


@dataclass(frozen=True)
class Counts:
    """The result of an attack: the number of attempts, and of those that did what they must not."""

    tries: int
    succeeded: int
    note: str = ""


@dataclass(frozen=True)
class Attack:
    """An attack. what: a line for the table."""

    what: str
    run: Callable[[Path], Counts]


ATTACKS: list[Attack] = []


def attack(what: str) -> Callable[[Callable[[Path], Counts]], Callable[[Path], Counts]]:
    """Add a function to the attacks."""

    def added(run: Callable[[Path], Counts]) -> Callable[[Path], Counts]:
        ATTACKS.append(Attack(what, run))
        return run

    return added


@contextmanager
def attacked(folder: Path, *how: str, limits: dict[str, Any] | None = None) -> Iterator[Served]:
    """A server with a storage in the folder. how, limits: as those of `Served`."""
    server = Served(f"sqlite:///{folder / 'service.db'}", *how, limits=limits)
    try:
        yield server.ready()
    finally:
        if server.process.poll() is None:
            server.stop()


def tokens_of(folder: Path) -> Tokens:
    """Return the tokens of the storage in a folder."""
    return Tokens(SQLStorage(f"sqlite:///{folder / 'service.db'}"))


def run_all(screen: Console, only: str = "") -> list[dict[str, Any]]:
    """Run all attacks, or those whose line contains a text, and print a table of them."""
    rows: list[dict[str, Any]] = []
    table = Table("attack", "tries", "succeeded", "seconds", "", box=None)
    for each in ATTACKS:
        if only not in each.what:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="paretoscout-attack-") as folder:
            found = each.run(Path(folder))
        met = found.succeeded == 0 and found.tries > 0
        rows.append({"attack": each.what, **vars(found), "seconds": time.monotonic() - began, "met": met})
        said = "ok" if met else "FAILED"
        table.add_row(each.what, f"{found.tries:,}", f"{found.succeeded:,}", f"{rows[-1]['seconds']:.1f}", said)
        if found.note:
            table.add_row(f"  {found.note}")
    if rows:
        screen.print(table)
    return rows


# Who gets in

STUDY: dict[str, Any] = {
    "name": "study",
    "arms": ["a", "b"],
    "metrics": {"quality": "max", "cost": "min"},
    "sigma": 1.0,
}
#: Requests that need a token, and what they would do.
WITHOUT_TOKEN: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/v1/studies", None),
    ("HEAD", "/v1/studies", None),
    ("POST", "/v1/studies", STUDY),
    ("GET", "/v1/studies/there/export", None),
    ("POST", "/v1/studies/there/ask", {}),
    ("DELETE", "/v1/studies/there", None),
    ("GET", "/metrics", None),
    ("GET", "/", None),
)


def without_token(server: Served) -> Counts:
    """Send requests without a token, by all names of this machine, and count those that are let in."""
    tries = succeeded = 0
    for host in ("localhost", "127.0.0.1", "[::1]", "LOCALHOST:80", "127.9.9.9", "front.example"):
        for method, path, body in WITHOUT_TOKEN:
            for more in ({}, {"Authorization": ""}, {"Authorization": "Bearer "}, {"Cookie": "paretoscout_token="}):
                tries += 1
                succeeded += server.send(method, path, body, {"Host": host, **more})[0] not in (401, 403)
    return Counts(tries, succeeded)


@attack("no token is valid any more: the last one expired")
def all_expired(folder: Path) -> Counts:
    tokens_of(folder).create("admin", seconds=0.001)
    with attacked(folder) as server:
        return without_token(server)


@attack("no token is valid any more: the last one was revoked while the server ran")
def all_revoked(folder: Path) -> Counts:
    tokens = tokens_of(folder)
    text = tokens.create("admin")
    with attacked(folder) as server:
        tokens.revoke(text.split("_")[1])
        time.sleep(1.5)
        return without_token(server)


@attack("--https, and no token was ever made")
def https_without_token(folder: Path) -> Counts:
    with attacked(folder, "--https") as server:
        return without_token(server)


@attack("--name-of-server, and no token was ever made")
def named_without_token(folder: Path) -> Counts:
    with attacked(folder, "--name-of-server", "front.example") as server:
        return without_token(server)
