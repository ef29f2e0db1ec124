"""Attacks on what a server stands on: its files, its database, its folders and its end. Rows of `service_attacks`."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from benchmarks.beside_servers import NoPostgres, PostgresServer, Served
from benchmarks.service_attacks import Counts, attack, attacked, tokens_of
from paretoscout.errors import StorageUnavailable
from paretoscout.storage import Event
from paretoscout.storage.sql import SQLStorage
from paretoscout.storage.upkeep import backup, salvage, set_journal_aside, stale_journal

SEEDS = 10
LARGE = "x" * 20_000  # so that the journal is begun again after some dozens of events


def tell(storage: SQLStorage, times: int) -> list[int]:
    """Append events, each in a transaction of its own; return the numbers of those that were acknowledged."""
    told = []
    for _ in range(times):
        with suppress(StorageUnavailable):
            with storage.writing("study") as writer:
                number = writer.head().last + 1
                writer.append([Event(number, "tell", 0, {"values": [1.0], "note": LARGE}, 1.0)])
            told.append(number)
    return told


def kept(file: Path) -> set[int]:
    """Return the numbers of all events of a file, after `db repair` if it is refused; none if it cannot be read."""
    url = f"sqlite:///{file}"
    if stale_journal(url):
        set_journal_aside(url, "aside")
    storage = SQLStorage(url)
    try:
        return {event.number for event in storage.events("study")} if "study" in storage.names() else set()
    finally:
        storage.close()


def replaced(folder: Path, how: Callable[[Path, Path, Path], object]) -> Counts:
    """Replace a file that is in use, go on telling, and count files that were destroyed or lost what was acknowledged."""
    tries = succeeded = 0
    for seed in range(SEEDS):
        chance, place = random.Random(seed), folder / str(seed)
        place.mkdir()
        file, copy, plain = place / "s.db", place / "copy.db", place / "plain.db"
        storage = SQLStorage(f"sqlite:///{file}")
        storage.create("study", "{}")
        tell(storage, chance.randint(3, 60))
        backup(storage, copy)
        shutil.copyfile(file, plain)
        tell(storage, chance.randint(100, 300))
        how(file, copy, plain)
        before = _numbers_of(file)
        told = tell(storage, 30)
        storage.close()
        tries += 1
        try:
            succeeded += not (before | set(told)) <= kept(file)
        except StorageUnavailable:
            succeeded += 1  # destroyed
    return Counts(tries, succeeded)


def _numbers_of(file: Path) -> set[int]:
    """Return the numbers of events in a file alone, without the journal next to it."""
    alone = file.with_name("alone.db")
    shutil.copyfile(file, alone)
    try:
        return kept(alone)
    finally:
        for end in ("", "-wal", "-shm"):
            Path(f"{alone}{end}").unlink(missing_ok=True)


@attack("a backup is moved over a SQLite file in use")
def moved(folder: Path) -> Counts:
    return replaced(folder, lambda file, copy, plain: copy.replace(file))


@attack("a backup is copied over a SQLite file in use")
def copied(folder: Path) -> Counts:
    return replaced(folder, lambda file, copy, plain: shutil.copyfile(copy, file))


@attack("an older state is copied over a SQLite file in use")
def older(folder: Path) -> Counts:
    return replaced(folder, lambda file, copy, plain: shutil.copyfile(plain, file))


@attack("the journal of a SQLite file in use is removed")
def without_journal(folder: Path) -> Counts:
    tries = succeeded = 0
    for seed in range(SEEDS):
        chance, file = random.Random(seed), folder / f"{seed}.db"
        storage = SQLStorage(f"sqlite:///{file}")
        storage.create("study", "{}")
        told = tell(storage, chance.randint(3, 100))
        for _ in range(3):
            for end in chance.choice((("-wal",), ("-wal", "-shm"), ("-shm",))):
                Path(f"{file}{end}").unlink(missing_ok=True)
            told += tell(storage, chance.randint(1, 30))
        storage.close()
        tries += 1
        succeeded += not set(told) <= kept(file) or len(set(told)) < len(told)
    return Counts(tries, succeeded)


@attack("pages of a SQLite file are overwritten: db repair opens it, and invents nothing")
def overwritten(folder: Path) -> Counts:
    tries = succeeded = opened = 0
    for seed in range(SEEDS):
        chance, file = random.Random(seed), folder / f"{seed}.db"
        storage = SQLStorage(f"sqlite:///{file}")
        storage.create("study", "{}")
        told = set(tell(storage, 100))
        storage.close()
        with file.open("r+b") as damaged:
            for _ in range(1 + seed % 5):
                damaged.seek(4096 * chance.randrange(20, file.stat().st_size // 4096))
                damaged.write(chance.randbytes(4096))
        tries += 1
        try:
            salvage(f"sqlite:///{file}", "damaged")
            again = SQLStorage(f"sqlite:///{file}")
            with again.engine.connect() as connection:
                rows = connection.exec_driver_sql("SELECT number FROM events").scalars().all()
            opened += 1
            succeeded += not set(rows) <= told
            again.close()
        except StorageUnavailable:
            succeeded += 1
    return Counts(tries, succeeded, f"{opened} of {tries} were opened again")


@attack("SQLite files that others can read")
def readable(folder: Path) -> Counts:
    before = os.umask(0o022)
    try:
        storage = SQLStorage(f"sqlite:///{folder / 's.db'}")
        storage.create("study", "{}")
        backup(storage, folder / "copy.db")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()]
    storage.close()
    return Counts(len(modes), sum(mode != 0o600 for mode in modes))


@attack("PostgreSQL is not there yet when the server starts")
def database_starts(folder: Path) -> Counts:
    try:
        postgres = PostgresServer()
    except NoPostgres as problem:
        return Counts(1, 0, f"not tried: {problem}")
    with postgres:
        storage = postgres.new_place()
        postgres.stop()
        server = Served(storage)
        try:
            deadline = time.monotonic() + 120.0
            while (found := server.status("GET", "/readyz")) == 0 and time.monotonic() < deadline:
                time.sleep(0.1)
            waiting = found == 503
            postgres.start()
            server.ready()
        finally:
            ended = server.process.poll() is not None
            if not ended:
                server.stop()
    return Counts(2, (not waiting) + ended)


@attack("a token for numbers reads something else")
def only_numbers(folder: Path) -> Counts:
    with attacked(folder) as server:
        headers = {"Authorization": f"Bearer {tokens_of(folder).create('metrics')}"}
        paths = server.json("GET", "/openapi.json")["paths"]
        tries = succeeded = 0
        for path, methods in paths.items():
            for method in methods:
                if path not in ("/metrics", "/healthz", "/readyz"):
                    filled = re.sub(r"\{\w+\}", "0", path)
                    tries += 1
                    succeeded += server.send(method.upper(), filled, {}, headers)[0] < 400
        succeeded += server.send("GET", "/metrics", None, headers)[0] != 200
    return Counts(tries + 1, succeeded)


@attack("lines of the log that are no JSON, after garbage was sent")
def log_lines(folder: Path) -> Counts:
    import socket

    with attacked(folder, "--workers", "2") as server:
        for seed in range(20):
            with socket.create_connection(("127.0.0.1", server.port)) as raw, suppress(OSError):
                raw.sendall(random.Random(seed).randbytes(200) + b"\r\n\r\n")
                raw.settimeout(5.0)
                raw.recv(1000)
        server.status("GET", "/v1/studies/%0anot-json/front")
        lines = list(server.lines)
    wrong = 0
    for text in lines:
        try:
            json.loads(text)
        except ValueError:
            wrong += 1
    return Counts(len(lines), wrong)


@attack("folders that stay in the temporary folder after kill -9")
def folders_stay(folder: Path) -> Counts:
    temporary = folder / "temporary"
    temporary.mkdir()
    tries = 0
    for how in (["--storage", str(folder / "s.db"), "--workers", "2"], ["--demo"]):
        process = subprocess.Popen(
            [sys.executable, "-m", "paretoscout", "serve", "--port", "0", *how],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(temporary)},
            start_new_session=True,
        )
        assert process.stderr is not None
        with process.stderr:
            process.stderr.readline()
            deadline = time.monotonic() + 60.0
            while not list(temporary.iterdir()) and time.monotonic() < deadline:
                time.sleep(0.05)
            tries += len(list(temporary.iterdir()))
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        deadline = time.monotonic() + 30.0
        while list(temporary.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
    return Counts(tries, len(list(temporary.iterdir())))
