"""A real PostgreSQL server, on a folder and a loopback port of its own: for tests and benchmarks."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

#: The shell waits for the end of whoever started it, however sudden, and then ends the server, at once.
WATCHED = '"$@" & server=$!; read _; kill -QUIT $server; wait $server'


class NoPostgres(Exception):
    """There is no PostgreSQL server on this machine, or it cannot be run; says why."""


class PostgresServer:
    """A server that runs until `close`, or until this process ends.

    fsync: whether commits wait for the disk, as they do for who uses PostgreSQL; tests need not.
    patience: seconds after which a server that does not start is stuck.
    """

    def __init__(self, fsync: bool = False, patience: float = 1200.0) -> None:
        self.binaries, self.user, self.patience, self.fsync = _binaries(), _user(), patience, fsync
        self.folder = Path(tempfile.mkdtemp(prefix="paretoscout-pg-"))
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.data = self.folder / "data"
        made = ["-D", self.data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        initdb = [str(self.binaries / "initdb"), *map(str, made)]
        subprocess.run(initdb, check=True, capture_output=True, user=self.user, cwd=self.folder)
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Start it, and wait until it answers."""
        how = ["-D", self.data, "-p", self.port, "-k", self.folder, "-c", "listen_addresses=127.0.0.1"]
        how += ["-c", f"fsync={'on' if self.fsync else 'off'}"]
        server = [str(self.binaries / "postgres"), *map(str, how)]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", WATCHED, "sh", *server],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                user=self.user,
                cwd=self.folder,
            )
        deadline = time.monotonic() + self.patience
        while not self._answers():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, f"waited {self.patience:g} s for PostgreSQL to start"
            time.sleep(0.02)

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(f"postgresql://tester@{self.address}/postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """End it at once ("immediate"): it recovers by its own log when it starts again."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(self.patience)

    def close(self) -> None:
        """End it, and remove all that there was."""
        if hasattr(self, "process"):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_place(self) -> str:
        """Return an address where there is nothing yet: a schema of its own, for a database of its own takes longer."""
        import psycopg

        name = f"test_{secrets.token_hex(6)}"
        address = f"postgresql://tester@{self.address}/postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{address}?options=-csearch_path%3D{name}"

    def __enter__(self) -> PostgresServer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _binaries() -> Path:
    """Return the folder with the programs of the server."""
    usual = sorted(glob.glob("/usr/lib/postgresql/*/bin") + glob.glob("/opt/homebrew/opt/postgresql*/bin"))
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    for folder in [*folders, *map(Path, reversed(usual))]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise NoPostgres("no PostgreSQL server on this machine (initdb not found)")


def _user() -> str | None:
    """Return as whom the server runs: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    if subprocess.run(["id", "postgres"], capture_output=True, check=False).returncode:
        raise NoPostgres("PostgreSQL does not run as root, and there is no user postgres")
    return "postgres"
