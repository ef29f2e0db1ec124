"""Memory, SQLite and PostgreSQL keep the contract; and what is particular to databases."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from conftest import Workers
from storage_contract import StorageContract, append, numbers

from paretoscout.errors import InvalidInput, StorageUnavailable
from paretoscout.storage import MemoryStorage, Storage, schema, storage_of
from paretoscout.storage.sql import SQLStorage


def handles_on(address: str) -> Iterator[Callable[[], Storage]]:
    opened: list[Storage] = []

    def handle() -> Storage:
        opened.append(storage_of(address))
        return opened[-1]

    yield handle
    for storage in opened:
        storage.close()


class TestMemory(StorageContract):
    @pytest.fixture
    def handles(self) -> Callable[[], Storage]:
        storage = MemoryStorage()
        return lambda: storage


class TestSQLite(StorageContract):
    @pytest.fixture
    def handles(self, tmp_path: Path) -> Iterator[Callable[[], Storage]]:
        yield from handles_on(str(tmp_path / "study.db"))


class TestPostgreSQL(StorageContract):
    @pytest.fixture
    def handles(self, postgres: str) -> Iterator[Callable[[], Storage]]:
        yield from handles_on(postgres)


# Addresses


def test_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("plain.db", "odd ?name=%41#.db", "ünï.db"):
        storage = storage_of(name)
        storage.create("study", "")
        storage.close()
        assert Path(name).exists()
    assert storage_of(tmp_path / "plain.db").names() == ["study"]
    assert storage_of(f"sqlite:///{tmp_path}/plain.db?synchronous=full").names() == ["study"]
    known = storage_of("memory")
    assert storage_of(known) is known


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("", "storage must be a text"),
        (7, "storage must be a text"),
        ("mysql://host/name", "must be SQLite or PostgreSQL, got 'mysql'"),
        ("://", "storage must be 'memory', a file name"),
        ("sqlite://", "must be a file"),
        ("sqlite:///:memory:", "must be a file"),
        ("no/such/folder/study.db", "a folder that exists"),
        ("sqlite:///study.db?synchronous=perhaps", "synchronous of a SQLite storage must be one of off, normal"),
        ("sqlite:///study.db?cache=shared", "no option but synchronous, got cache"),
    ],
)
def test_bad_addresses_are_refused(address: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=message):
        storage_of(address)
    assert not list(tmp_path.iterdir())


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StorageUnavailable) as caught:
        storage_of("postgresql://someone:secret@127.0.0.1:1/nothing")
    assert "postgresql+psycopg://someone:***@127.0.0.1:1/nothing cannot be used" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database at all, but long enough to look like one" * 20)
    with pytest.raises(StorageUnavailable, match="file is not a database"):
        storage_of(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text().startswith("not a database")


def test_sqlite_is_in_wal_mode_and_needs_no_full_sync(tmp_path: Path) -> None:
    storage = SQLStorage(f"sqlite:///{tmp_path}/s.db")
    with storage.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 1
    storage.close()


# Versions


def set_version(address: str, version: int) -> None:
    engine = SQLStorage(address).engine
    with engine.connect() as connection, connection.begin():
        connection.execute(schema.about.update().values(schema_version=version))
    engine.dispose()


def test_a_newer_schema_is_refused(database: str) -> None:
    storage_of(database).create("study", "")
    set_version(database, schema.VERSION + 1)
    with pytest.raises(StorageUnavailable, match=r"made by a newer paretoscout \(schema 2, this one reads 1\)"):
        storage_of(database)


def test_an_older_schema_is_upgraded_when_asked_for(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = storage_of(database)
    storage.create("study", "")
    append(storage, 3)
    storage.close()
    monkeypatch.setattr(schema, "VERSION", 3)
    steps: list[int] = []

    def step(number: int) -> Callable[[sa.Connection], None]:
        def migrate(connection: sa.Connection) -> None:
            steps.append(number)
            connection.execute(sa.text(f"ALTER TABLE studies ADD COLUMN extra{number} INTEGER"))

        return migrate

    monkeypatch.setattr(schema, "MIGRATIONS", {1: step(1), 2: step(2)})
    with pytest.raises(StorageUnavailable, match=r"older paretoscout \(schema 1, now 3\).*paretoscout db upgrade"):
        storage_of(database)
    assert steps == []
    upgraded = SQLStorage(database, upgrade=True)
    assert steps == [1, 2]
    assert numbers(upgraded) == [0, 1, 2]
    upgraded.close()
    assert numbers(storage_of(database)) == [0, 1, 2]
    assert steps == [1, 2]


def test_an_upgrade_that_fails_changes_nothing(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    storage_of(database).create("study", "")
    monkeypatch.setattr(schema, "VERSION", 2)

    def migrate(connection: sa.Connection) -> None:
        connection.execute(sa.text("DROP TABLE snapshots"))
        raise RuntimeError("the power is gone")

    monkeypatch.setattr(schema, "MIGRATIONS", {1: migrate})
    with pytest.raises(RuntimeError):
        SQLStorage(database, upgrade=True)
    monkeypatch.undo()
    assert storage_of(database).latest_snapshot("study") is None


def test_a_database_of_another_tool_is_refused(database: str) -> None:
    engine = sa.create_engine(database.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection, connection.begin():
        connection.execute(sa.text("CREATE TABLE trials (id INTEGER)"))
    engine.dispose()
    with pytest.raises(StorageUnavailable, match=r"belongs to something else: it has tables \(trials\)"):
        storage_of(database)


def test_a_database_that_does_not_say_its_version_is_refused(database: str) -> None:
    engine = SQLStorage(database).engine
    with engine.connect() as connection, connection.begin():
        connection.execute(schema.about.delete())
    engine.dispose()
    with pytest.raises(StorageUnavailable, match="damaged"):
        storage_of(database)


# Processes


def test_many_processes_open_a_new_database_at_once(database: str, workers: Workers, tmp_path: Path) -> None:
    logs = [tmp_path / f"log{k}" for k in range(6)]
    for number in [workers.start("create", storage=database, log=str(log)) for log in logs]:
        workers.wait(number)
    for log in logs:
        assert not Path(f"{log}.error").exists(), Path(f"{log}.error").read_text()
        assert log.read_text() == "done"
    storage = storage_of(database)
    assert storage.names() == ["study"]
    assert [event.kind for event in storage.events("study")] == ["ask"] * 6


FORK = """
import os, sys
from paretoscout.storage import Event, storage_of

def append(storage, number):
    with storage.writing("study") as writer:
        writer.append([Event(number, "tell", number)])

storage = storage_of(sys.argv[1])
storage.create("study", "")
append(storage, 0)
to_child, to_parent = os.pipe(), os.pipe()
if os.fork() == 0:
    append(storage, 1)
    os.write(to_parent[1], b"x")
    os.read(to_child[0], 1)  # the parent has closed its connections by now
    append(storage, 2)
    os.write(to_parent[1], b"x")
    os._exit(0)
os.read(to_parent[0], 1)
assert storage.last("study") == 1
storage.close()
os.write(to_child[1], b"x")
os.read(to_parent[0], 1)
append(storage, 3)
print([event.number for event in storage.events("study")])
"""


def test_a_storage_can_be_used_after_a_fork(database: str) -> None:
    done = subprocess.run([sys.executable, "-c", FORK, database], capture_output=True, text=True, check=False)
    assert done.stdout == "[0, 1, 2, 3]\n", done.stderr
    assert numbers(storage_of(database)) == [0, 1, 2, 3]


def test_a_writer_that_waits_too_long_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paretoscout.storage.sql.BUSY_SECONDS", 0.2)
    storage = storage_of(tmp_path / "s.db")
    storage.create("study", "")
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageUnavailable, match="cannot be used: database is locked"):
        append(storage)
    other.execute("ROLLBACK")
    other.close()
    append(storage)
    assert numbers(storage) == [0]
