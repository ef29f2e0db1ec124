"""Memory, SQLite and PostgreSQL keep the contract; and what is particular to databases."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from conftest import Workers
from storage_contract import StorageContract, append, events_from, numbers

from paretoscout.errors import InvalidInput, ParetoscoutError, StorageUnavailable, UnreadableFile
from paretoscout.storage import Event, Heartbeat, MemoryStorage, Storage, schema, storage_of
from paretoscout.storage.sql import SQLStorage
from paretoscout.storage.upkeep import backup, damages, repair, restore


def handles_on(address: str) -> Iterator[Callable[[], Storage]]:
    opened: list[Storage] = []

    def handle() -> Storage:
        opened.append(SQLStorage(address))  # of its own, as another process has it
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
        yield from handles_on(f"sqlite:///{tmp_path / 'study.db'}")


class TestPostgreSQL(StorageContract):
    @pytest.fixture
    def handles(self, postgres: str) -> Iterator[Callable[[], Storage]]:
        yield from handles_on(postgres)


# Addresses


def test_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("plain.db", "odd ?name=%41#.db", "ünï.db", "a?b.db", "a%20b.db", "a#b.db"):
        storage = storage_of(name)
        assert isinstance(storage, SQLStorage)
        storage.create("study", "")
        storage.close()
        assert Path(name).exists()
        in_address = name.replace("%", "%25").replace("?", "%3F")  # as in every address
        assert storage_of(f"sqlite:///{in_address}", make=False).names() == ["study"]
        assert storage_of(storage.shown) is storage_of(name), "what is shown can be used"
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
        ("sqlite:///study.db?cache=shared", "no option but synchronous and mode, got cache"),
        ("sqlite:///study.db?mode=memory", "mode of a SQLite storage must be one of rw, ro, got 'memory'"),
        ("postgresql://u:secret@h:bad/x", r"USER@HOST:PORT/DATABASE', got 'postgresql://u:\*\*\*@h:bad/x'"),
        ("a\0b.db", "must be a name without NUL characters"),
        ("sqlite:///a\0b.db", "must be a name without NUL characters"),
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
    with pytest.raises(StorageUnavailable, match=r"made by a newer paretoscout \(schema 5, this one reads 4\)"):
        storage_of(database)


def test_an_older_schema_is_upgraded_when_asked_for(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = storage_of(database)
    storage.create("study", "")
    append(storage, 3)
    storage.close()
    monkeypatch.setattr(schema, "VERSION", 6)
    steps: list[int] = []

    def step(number: int) -> Callable[[sa.Connection], None]:
        def migrate(connection: sa.Connection) -> None:
            steps.append(number)
            connection.execute(sa.text(f"ALTER TABLE studies ADD COLUMN extra{number} INTEGER"))

        return migrate

    monkeypatch.setattr(schema, "MIGRATIONS", {4: step(4), 5: step(5)})
    with pytest.raises(StorageUnavailable, match=r"older paretoscout \(schema 4, now 6\).*paretoscout db upgrade"):
        storage_of(database)
    assert steps == []
    upgraded = SQLStorage(database, upgrade=True)
    assert steps == [4, 5]
    assert numbers(upgraded) == [0, 1, 2]
    upgraded.close()
    assert numbers(storage_of(database)) == [0, 1, 2]
    assert steps == [4, 5]


def test_an_upgrade_that_fails_changes_nothing(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    storage_of(database).create("study", "")
    monkeypatch.setattr(schema, "VERSION", 5)

    def migrate(connection: sa.Connection) -> None:
        connection.execute(sa.text("DROP TABLE snapshots"))
        raise RuntimeError("the power is gone")

    monkeypatch.setattr(schema, "MIGRATIONS", {4: migrate})
    with pytest.raises(RuntimeError):
        SQLStorage(database, upgrade=True)
    monkeypatch.undo()
    assert storage_of(database).latest_snapshot("study") is None


def test_a_storage_without_heartbeats_gets_them_by_an_upgrade(database: str) -> None:
    storage = storage_of(database)
    storage.create("study", "")
    append(storage, 3)
    storage.close()
    flip(database, "DROP TABLE heartbeats")
    flip(database, "UPDATE paretoscout SET schema_version = 3")
    with pytest.raises(StorageUnavailable, match=r"schema 3, now 4\).*paretoscout db upgrade"):
        SQLStorage(database)
    upgraded = SQLStorage(database, upgrade=True)
    assert numbers(upgraded) == [0, 1, 2]
    assert upgraded.heartbeats("study") == []
    with upgraded.writing("study") as writer:
        writer.beat(Heartbeat("1f", "me", at=1.0))
    assert upgraded.heartbeats("study") == [Heartbeat("1f", "me", at=1.0)]
    upgraded.close()


def test_a_backup_holds_no_workers(tmp_path: Path) -> None:
    """A worker that was at work when the copy was made is not at work when it is put back."""
    storage = SQLStorage(f"sqlite:///{tmp_path / 'study.db'}")
    storage.create("study", "")
    with storage.writing("study") as writer:
        writer.append(events_from(0))
        writer.beat(Heartbeat("1f", "me", at=1.0))
    backup(storage, tmp_path / "copy.db")
    restore(storage, tmp_path / "copy.db", lambda spec, name: None)
    assert numbers(storage) == [0]
    assert storage.heartbeats("study") == []
    storage.close()


OLD = Path(__file__).parent / "data" / "studies-schema-1.db.gz"
OLD_EVENTS = "SELECT study, number, kind, trial, body, at FROM events ORDER BY study, number"


def old_file(folder: Path) -> Path:
    """A file that version 1 made."""
    (folder / "old.db").write_bytes(gzip.decompress(OLD.read_bytes()))
    return folder / "old.db"


def rows_of(file: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def test_a_file_of_schema_1_is_upgraded_and_every_event_is_kept_bit_for_bit(tmp_path: Path) -> None:
    file = old_file(tmp_path)
    before = [rows_of(file, query) for query in (OLD_EVENTS, "SELECT id, name, spec FROM studies", SNAPSHOTS)]
    assert len(before[0]) > 1000
    with pytest.raises(StorageUnavailable, match=r"schema 1, now 4\). Make a copy, then run: paretoscout db upgrade"):
        storage_of(file)
    SQLStorage(f"sqlite:///{file}", upgrade=True).close()
    assert [rows_of(file, query) for query in (OLD_EVENTS, "SELECT id, name, spec FROM studies", SNAPSHOTS)] == before
    storage = SQLStorage(f"sqlite:///{file}")
    assert damages(storage, lambda spec, name: None) == []
    logs = [storage.head(name).log for name in storage.names()]
    assert len(set(logs)) == len(logs) == len(before[1])
    kept = [
        (event.number, event.kind, event.trial, event.body, event.at, event.by)
        for name in storage.names()
        for event in storage.events(name)
    ]
    assert kept == [(n, kind, trial, json.loads(body), at, "") for _, n, kind, trial, body, at in before[0]]
    storage.close()
    with closing(sqlite3.connect(file)) as late, pytest.raises(sqlite3.IntegrityError):
        late.execute(  # a worker of the older version
            "INSERT INTO events (study, number, kind, trial, body, at) VALUES (1, 100000, 'tell', 0, '{}', 0.0)"
        )


SNAPSHOTS = "SELECT study, number, data FROM snapshots"


def test_postgresql_of_schema_1_is_upgraded(postgres: str, tmp_path: Path) -> None:
    file = old_file(tmp_path)
    engine = sa.create_engine(postgres.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection, connection.begin():
        for statement in OLD_TABLES:
            connection.execute(sa.text(statement))
        for table, columns in (("studies", "id, name, spec"), ("events", "study, number, kind, trial, body, at")):
            values = ", ".join(f":{name}" for name in columns.split(", "))
            rows = [
                dict(zip(columns.split(", "), row, strict=True))
                for row in rows_of(file, f"SELECT {columns} FROM {table}")
            ]
            connection.execute(sa.text(f"INSERT INTO {table} ({columns}) VALUES ({values})"), rows)
    engine.dispose()
    SQLStorage(postgres, upgrade=True).close()
    storage = SQLStorage(postgres)
    assert damages(storage, lambda spec, name: None) == []
    with storage.engine.connect() as connection:
        assert connection.execute(sa.text(OLD_EVENTS)).all() == rows_of(file, OLD_EVENTS)
    append(storage, 1, storage.names()[0])
    storage.close()


OLD_TABLES = (
    "CREATE TABLE paretoscout (schema_version INTEGER NOT NULL)",
    "INSERT INTO paretoscout VALUES (1)",
    "CREATE TABLE studies (id SERIAL PRIMARY KEY, name TEXT NOT NULL UNIQUE, spec TEXT NOT NULL)",
    "CREATE TABLE events (study INTEGER NOT NULL REFERENCES studies (id), number INTEGER NOT NULL, kind TEXT NOT NULL, "
    "trial INTEGER, body TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, PRIMARY KEY (study, number))",
    "CREATE INDEX events_of_trial ON events (study, trial)",
    "CREATE TABLE snapshots (study INTEGER NOT NULL REFERENCES studies (id), number INTEGER NOT NULL, "
    "data BYTEA NOT NULL, PRIMARY KEY (study, number))",
)


def test_who_opens_a_file_while_it_is_upgraded_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = old_file(tmp_path)
    began, go_on = threading.Event(), threading.Event()
    step = schema.MIGRATIONS[1]

    def slowly(connection: sa.Connection) -> None:
        step(connection)
        began.set()
        assert go_on.wait(60)

    monkeypatch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS | {1: slowly})
    with ThreadPoolExecutor(2) as pool:
        upgrade = pool.submit(lambda: SQLStorage(f"sqlite:///{file}", upgrade=True).close())
        assert began.wait(60)
        worker = pool.submit(lambda: len(SQLStorage(f"sqlite:///{file}").names()))
        with pytest.raises(TimeoutError):
            worker.result(0.3)
        go_on.set()
        upgrade.result(60)
        assert worker.result(60) == 33


# Damage


def flip(address: str, statement: str) -> None:
    """Change rows as no version of ours would."""
    engine = sa.create_engine(address.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection, connection.begin():
        connection.execute(sa.text(statement))
    engine.dispose()


@pytest.mark.parametrize(
    "change",
    [
        "body = '{\"values\":[4.5]}'",
        "kind = 'tall'",
        "trial = 5",
        "trial = NULL",
        "at = 1.0000000000000002",
        "worker = 'x'",
        "mark = '0000000000000000'",
    ],
)
def test_a_changed_event_is_noticed_and_named(database: str, change: str) -> None:
    storage = storage_of(database)
    storage.create("study", "")
    append(storage, 9)
    flip(database, f"UPDATE events SET {change} WHERE number = 4")
    with pytest.raises(UnreadableFile, match=r"event 4 of study 'study' was damaged since it was written.*db check"):
        list(storage.events("study"))
    with pytest.raises(UnreadableFile, match="event 4"):
        list(storage.events("study", kinds=("tell",)))
    assert numbers(storage, after=4) == [5, 6, 7, 8]
    with pytest.raises(UnreadableFile, match="event 4"), storage.writing("study") as writer:
        writer.events(2)


def test_a_hole_is_noticed(database: str) -> None:
    storage = storage_of(database)
    storage.create("study", "")
    append(storage, 9)
    flip(database, "DELETE FROM events WHERE number = 4")
    with pytest.raises(UnreadableFile, match=r"event 4 of study 'study' is missing: the next one is 5.*db check"):
        list(storage.events("study", kinds=("data",)))


def test_damage_is_found_and_what_is_sound_is_kept(database: str, tmp_path: Path) -> None:
    storage = storage_of(database)
    assert isinstance(storage, SQLStorage)
    for name in ("sound", "hole", "flipped", "ahead", "settings"):
        storage.create(name, f"spec of {name}")
        append(storage, 9, name)
        with storage.writing(name) as writer:
            writer.snapshot(8, b"")
    which = "(SELECT id FROM studies WHERE name = '{}')"
    for statement in (
        f"DELETE FROM events WHERE number = 4 AND study = {which.format('hole')}",
        f"UPDATE events SET body = '7' WHERE number = 6 AND study = {which.format('flipped')}",
        f"UPDATE snapshots SET number = 20 WHERE study = {which.format('ahead')}",
        "UPDATE studies SET spec = 'spec of nobody' WHERE name = 'settings'",
    ):
        flip(database, statement)
    specs = storage.specs()
    assert specs["sound"] == "spec of sound"
    assert isinstance(specs["settings"], UnreadableFile)
    with pytest.raises(UnreadableFile, match="settings of study 'settings' were damaged"):
        storage.spec("settings")

    def check_spec(spec: str, name: str) -> None:
        if name == "ahead":
            raise InvalidInput("nobody can read this")

    found = [str(damage) for damage in damages(storage, check_spec)]
    assert found == [
        "study 'hole': event 4 is missing: the next one is 5",
        "study 'flipped': event 6 is damaged: its checksum does not fit",
        "study 'ahead': its settings cannot be read: nobody can read this",
        "study 'ahead': a snapshot of event 20 is ahead of the log",
        "study 'settings': its settings are damaged: restore a backup, or delete it",
    ]
    done, left = repair(storage, tmp_path / "dropped.jsonl", lambda spec, name: None)
    assert done == [
        "study 'hole': dropped 4 events, from number 4 on (event 4 is missing: the next one is 5), and 1 snapshot of them",
        "study 'flipped': dropped 3 events, from number 6 on (event 6 is damaged: its checksum does not fit), "
        "and 1 snapshot of them",
        "study 'ahead': dropped 0 events, from number 9 on (a snapshot of event 20 is ahead of the log), "
        "and 1 snapshot of them",
    ]
    assert [damage.study for damage in left] == ["settings"]
    dropped = [json.loads(line) for line in (tmp_path / "dropped.jsonl").read_text().splitlines()]
    assert [(row["study"], row["number"]) for row in dropped] == [
        *(("hole", n) for n in (5, 6, 7, 8)),
        *(("flipped", n) for n in (6, 7, 8)),
    ]
    assert dropped[0]["body"] == '{"values":[5.0]}'
    assert {name: storage.last(name) for name in storage.names()} == {
        "sound": 8,
        "hole": 3,
        "flipped": 5,
        "ahead": 8,
        "settings": 8,
    }
    storage.delete("settings")
    assert damages(storage, lambda spec, name: None) == []
    assert repair(storage, tmp_path / "nothing", lambda spec, name: None) == ([], [])
    assert not (tmp_path / "nothing").exists()


def test_flipped_bits_of_a_file_are_noticed_or_change_nothing(tmp_path: Path) -> None:
    """Bytes at random places of a file, changed one at a time: what is read is right, or there is a sentence."""
    file = tmp_path / "s.db"
    storage = SQLStorage(f"sqlite:///{file}")
    storage.create("study", '{"delta": 0.05}')
    append(storage, 60)
    right = list(storage.events("study"))
    storage.close()
    sound, chance = file.read_bytes(), random.Random(3)
    noticed = 0
    for _ in range(200):
        place = chance.randrange(100, len(sound))
        file.write_bytes(sound[:place] + bytes([sound[place] ^ 1 << chance.randrange(8)]) + sound[place + 1 :])
        try:
            other = SQLStorage(f"sqlite:///{file}")
            assert other.spec("study") == '{"delta": 0.05}'
            assert list(other.events("study")) == right
        except ParetoscoutError:
            noticed += 1
        other.close()
    assert noticed > 10


# Copies


@pytest.fixture
def other_place(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'elsewhere.db'}"


def contents(storage: Storage) -> dict[str, Any]:
    return {
        name: (storage.spec(name), storage.head(name), list(storage.events(name)), storage.latest_snapshot(name))
        for name in storage.names()
    }


def test_a_backup_is_restored_here_and_elsewhere(database: str, other_place: str, tmp_path: Path) -> None:
    storage = SQLStorage(database)
    for name in ("one", "two"):
        storage.create(name, f"spec of {name}")
        append(storage, 5, name)
        with storage.writing(name, by="me") as writer:
            writer.append([Event(5, "tell", 2**40, {"values": [0.1, None]}, 1 / 3)])
            writer.snapshot(5, bytes(range(256)))
    before = contents(storage)
    backup(storage, tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.db"]
    with pytest.raises(InvalidInput, match="must be a new one"):
        backup(storage, tmp_path / "copy.db")
    with pytest.raises(InvalidInput, match="a folder that exists"):
        backup(storage, tmp_path / "no" / "copy.db")
    append(storage, 3, "one")
    storage.delete("two")
    storage.create("three", "")
    for place in (storage, SQLStorage(other_place)):
        restore(place, tmp_path / "copy.db", lambda spec, name: None)
        assert contents(place) == before
        append(place, 1, "two")  # it goes on
        place.create("three", "")
        assert place.names() == ["one", "two", "three"]
        place.close()


def test_a_damaged_backup_is_not_restored(tmp_path: Path) -> None:
    storage = SQLStorage(f"sqlite:///{tmp_path}/s.db")
    storage.create("study", "")
    append(storage, 5)
    backup(storage, tmp_path / "copy.db")
    flip(f"sqlite:///{tmp_path}/copy.db", "UPDATE events SET body = '{}' WHERE number = 2")
    append(storage, 2)
    with pytest.raises(UnreadableFile, match=r"copy\.db is damaged, and was not restored: study 'study': event 2"):
        restore(storage, tmp_path / "copy.db", lambda spec, name: None)
    with pytest.raises(InvalidInput, match="must be there"):
        restore(storage, tmp_path / "none.db", lambda spec, name: None)
    assert numbers(storage) == list(range(7))


def test_backups_and_checks_of_a_storage_in_use_are_consistent(database: str, tmp_path: Path) -> None:
    storage, writer, over = SQLStorage(database), SQLStorage(database), threading.Event()
    storage.create("study", "")

    def write() -> None:
        while not over.is_set():
            append(writer, 3)
            with writer.writing("study") as to:
                to.snapshot(to.head().last, b"x")

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            for k in range(5):
                assert damages(storage, lambda spec, name: None) == []
                backup(storage, tmp_path / f"copy{k}.db")
        finally:
            over.set()
        writing.result(60)
    for k in range(5):
        copy = SQLStorage(f"sqlite:///{tmp_path}/copy{k}.db")
        assert damages(copy, lambda spec, name: None) == []
        assert len(numbers(copy)) % 3 == 0
        copy.close()


# Files that come and go


def test_a_file_that_was_removed_is_noticed(tmp_path: Path) -> None:
    storage = storage_of(tmp_path / "s.db")
    storage.create("study", "")
    append(storage, 3)
    for path in tmp_path.glob("s.db*"):
        path.unlink()
    for action in (lambda: append(storage), lambda: numbers(storage), storage.names):
        with pytest.raises(StorageUnavailable, match=r"is gone: there is no file .*s.db any more. Nothing was written"):
            action()
    assert not list(tmp_path.iterdir())
    again = storage_of(tmp_path / "s.db")  # who names it again gets a new one
    again.create("study", "anew")
    assert again.spec("study") == storage.spec("study") == "anew"


def test_a_file_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    storage, other = storage_of(tmp_path / "s.db"), storage_of(tmp_path / "t.db")
    for each, n in ((storage, 5), (other, 2)):
        each.create("study", "")
        append(each, n)
    log = other.head("study").log
    storage.head("study")
    other.close()
    (tmp_path / "t.db").replace(tmp_path / "s.db")
    for path in tmp_path.glob("s.db-*"):
        path.unlink()
    assert storage.head("study")[:2] == (log, 1)
    append(storage)
    assert numbers(SQLStorage(f"sqlite:///{tmp_path}/s.db")) == [0, 1, 2]


def test_what_went_into_a_file_that_was_removed_meanwhile_is_not_acknowledged(tmp_path: Path) -> None:
    storage = storage_of(tmp_path / "s.db")
    storage.create("study", "")

    def write() -> None:
        with storage.writing("study") as writer:
            writer.append(events_from(0))
            (tmp_path / "s.db").rename(tmp_path / "moved.db")

    with pytest.raises(StorageUnavailable, match="is gone"):
        write()


def test_a_read_only_archive_can_be_read() -> None:
    """In a folder where nothing can be written, there can be no journal either."""
    folder = Path(tempfile.mkdtemp(prefix="paretoscout-archive-"))
    try:
        made = SQLStorage(f"sqlite:///{folder}/s.db")
        made.create("study", "a spec")
        append(made, 5)
        made.close()
        (folder / "s.db").chmod(0o444)
        folder.chmod(0o555)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                if os.getuid() == 0:  # may write everywhere
                    os.setgid(65534)
                    os.setuid(65534)
                storage = SQLStorage(f"sqlite:///{folder}/s.db")
                assert storage.read_only
                assert storage.spec("study") == "a spec"
                assert numbers(storage) == [0, 1, 2, 3, 4]
                with pytest.raises(StorageUnavailable, match="can only be read: nothing was written"):
                    append(storage)
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_file_can_be_opened_for_reading_only(tmp_path: Path) -> None:
    writer = SQLStorage(f"sqlite:///{tmp_path}/s.db")
    writer.create("study", "")
    append(writer, 3)
    writer.close()
    assert [path.name for path in tmp_path.iterdir()] == ["s.db"]
    reader = SQLStorage(f"sqlite:///{tmp_path}/s.db?mode=ro")
    assert numbers(reader) == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["s.db"], "nothing is written"
    append(writer, 2)
    assert numbers(reader) == [0, 1, 2, 3, 4], "also of a file in use"
    writer.close()
    assert numbers(reader) == [0, 1, 2, 3, 4]
    with pytest.raises(StorageUnavailable, match="there is no file"):
        SQLStorage(f"sqlite:///{tmp_path}/none.db?mode=ro")
    assert not (tmp_path / "none.db").exists()


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite ends the transaction by itself there; that this was so must not hide why."""
    original = sqlite3.connect

    def small(*args: Any, **how: Any) -> sqlite3.Connection:
        connection = original(*args, **how)
        connection.execute("PRAGMA max_page_count = 2")
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(StorageUnavailable, match="cannot be used: database or disk is full"):
        storage_of(tmp_path / "s.db")


def test_handles_on_one_database_share_their_connections(database: str) -> None:
    storages = [storage_of(database) for _ in range(50)]
    assert len({id(storage) for storage in storages}) == 1
    storages[0].create("study", "")
    open_files = Path("/proc/self/fd")
    before = len(list(open_files.iterdir())) if open_files.exists() else 0
    more = [storage_of(database) for _ in range(50)]
    assert [each.spec("study") for each in more] == [""] * 50
    if before:
        assert len(list(open_files.iterdir())) <= before + 5


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
