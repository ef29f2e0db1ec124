"""Studies in SQLite or PostgreSQL, by SQLAlchemy.

SQLite: one file, in WAL mode, so that readers and the writer do not wait for each other. A commit is handed to the
operating system at once: it survives the end of the process, however sudden. By default it is written through to the
disk a little later: a power cut may take the last moments with it, but leaves the file sound. With
`sqlite:///study.db?synchronous=full` every commit waits for the disk.

PostgreSQL: `postgresql://user:password@host/database`; the server's own settings say what survives a power cut (by
default, every commit).
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, IntegrityError

from ..errors import InvalidInput, MissingExtra, NameTaken, StorageUnavailable, UnknownName
from . import schema
from .contract import Event, Storage, Writer
from .schema import events, snapshots, studies

BUSY_SECONDS = 300.0  # how long a writer waits for another before it gives up
IDLE_SECONDS = 600.0  # after which a server takes the lock from a writer that does nothing
SYNCHRONOUS = ("off", "normal", "full", "extra")
KEPT_SNAPSHOTS = 2

_open_storages: weakref.WeakSet[SQLStorage] = weakref.WeakSet()

_columns = (events.c.number, events.c.kind, events.c.trial, events.c.body, events.c.at)
_study: sa.BindParameter[int] = sa.bindparam("study")
_after: sa.BindParameter[int] = sa.bindparam("after")
_newer = sa.select(*_columns).where(events.c.study == _study, events.c.number > _after).order_by(events.c.number)
_of_trial = (
    sa.select(*_columns)
    .where(events.c.study == _study, events.c.trial == sa.bindparam("trial"))
    .order_by(events.c.number)
)
_lock = sa.select(studies.c.id).where(studies.c.id == _study).with_for_update()
_insert = events.insert()
_last = sa.select(sa.func.max(events.c.number)).where(events.c.study == _study)
_latest = (
    sa.select(snapshots.c.number, snapshots.c.data)
    .where(snapshots.c.study == _study)
    .order_by(snapshots.c.number.desc())
    .limit(1)
)


class SQLStorage(Storage):
    """See `Storage`. The tables are made where there are none; an older schema must be upgraded first."""

    def __init__(self, url: str | sa.URL, upgrade: bool = False) -> None:
        self.url = _checked_url(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self._engine: sa.Engine | None = None
        self._ids: dict[str, int] = {}
        self._upgrade = upgrade
        self._renew_locks()
        _open_storages.add(self)
        with self._errors():
            self.engine  # noqa: B018 - says now what is wrong with the database

    def __repr__(self) -> str:
        return f"<SQLStorage {self.url.render_as_string(hide_password=True)}>"

    def _renew_locks(self) -> None:
        self._lock = threading.RLock()
        self._writer_lock = threading.Lock()  # threads of one process queue here, fairly, not at the database

    @property
    def engine(self) -> sa.Engine:
        """Connections of this process."""
        with self._lock:
            if self._engine is None:
                engine = self._connected()
                try:
                    schema.prepare(engine, self._upgrade)
                except BaseException:
                    engine.dispose()
                    raise
                self._engine = engine
            return self._engine

    def close(self) -> None:
        with self._lock:
            if self._engine is not None:
                self._engine.dispose()
            self._engine = None

    def __del__(self) -> None:
        with suppress(Exception):  # it may be half made, or half taken down
            self.close()

    def create(self, name: str, spec: str) -> None:
        try:
            with self._errors(), self._transaction() as connection:
                connection.execute(studies.insert(), {"name": name, "spec": spec})
        except IntegrityError:
            raise NameTaken(name) from None

    def names(self) -> list[str]:
        with self._errors(), self._reading() as connection:
            return list(connection.scalars(sa.select(studies.c.name).order_by(studies.c.id)))

    def spec(self, name: str) -> str:
        with self._errors(), self._reading() as connection:
            found = connection.execute(sa.select(studies.c.id, studies.c.spec).where(studies.c.name == name)).first()
        if found is None:
            raise UnknownName("study", name, self.names())
        self._ids[name] = found.id
        return str(found.spec)

    def delete(self, name: str) -> None:
        study = self._id(name)
        with self._errors(), self._transaction() as connection:
            self._claim(connection, name, study)
            for table in (events, snapshots):
                connection.execute(table.delete().where(table.c.study == study))
            connection.execute(studies.delete().where(studies.c.id == study))
        self._ids.pop(name, None)

    @contextmanager
    def writing(self, name: str) -> Iterator[Writer]:
        study = self._id(name)
        engine = self.engine
        with self._writer_lock, self._errors(), self._transaction(engine) as connection:
            self._claim(connection, name, study)
            yield _SQLWriter(connection, study)

    def _claim(self, connection: sa.Connection, name: str, study: int) -> None:
        """Keep all others from writing to a study (in SQLite the transaction does), if it is still there."""
        if self.sqlite:
            found = _driver(connection).execute("SELECT id FROM studies WHERE id = ?", (study,)).fetchone()
        else:
            found = connection.scalar(_lock, {"study": study})
        if found is None:
            self._ids.pop(name, None)
            raise UnknownName("study", name, [])

    def events(self, name: str, after: int = -1, kinds: Sequence[str] | None = None) -> Iterator[Event]:
        study = self._id(name)
        query = _newer if kinds is None else _newer.where(events.c.kind.in_(kinds))
        page = 20_000  # short reads: a long one would keep SQLite from tidying its journal
        while True:
            with self._errors(), self._reading() as connection:
                found = connection.execute(query.limit(page), {"study": study, "after": after}).all()
            yield from map(_event, found)
            if len(found) < page:
                return
            after = found[-1].number

    def of_trial(self, name: str, trial: int) -> list[Event]:
        study = self._id(name)
        with self._errors(), self._reading() as connection:
            return [_event(row) for row in connection.execute(_of_trial, {"study": study, "trial": trial})]

    def last(self, name: str) -> int:
        study = self._id(name)
        with self._errors(), self._reading() as connection:
            number = connection.scalar(_last, {"study": study})
        return -1 if number is None else int(number)

    def latest_snapshot(self, name: str) -> tuple[int, bytes] | None:
        study = self._id(name)
        with self._errors(), self._reading() as connection:
            row = connection.execute(_latest, {"study": study}).first()
        return None if row is None else (int(row.number), bytes(row.data))

    def _id(self, name: str) -> int:
        if name not in self._ids:
            self.spec(name)
        return self._ids[name]

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self.engine.connect() as connection:
            if self.sqlite:
                yield connection  # each statement sees one moment
            else:
                with connection.begin():
                    yield connection

    @contextmanager
    def _transaction(self, engine: sa.Engine | None = None) -> Iterator[sa.Connection]:
        with (engine or self.engine).connect() as connection:
            if not self.sqlite:
                with connection.begin():
                    yield connection
                return
            # the driver's own transactions would begin as readers, and fail where another writer was faster
            driver = _driver(connection)
            driver.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                driver.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    driver.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say in plain words what is wrong with the database."""
        try:
            yield
        except IntegrityError:
            raise
        except (DatabaseError, sqlite3.DatabaseError) as problem:
            shown = self.url.render_as_string(hide_password=True)
            why = str(getattr(problem, "orig", problem)).strip()
            raise StorageUnavailable(f"storage {shown} cannot be used: {why}") from problem

    def _connected(self) -> sa.Engine:
        query = dict(self.url.query)
        if not self.sqlite:
            # a writer whose machine is gone must not keep the others waiting for ever
            limits = {"lock_timeout": BUSY_SECONDS, "idle_in_transaction_session_timeout": IDLE_SECONDS}
            options = " ".join(f"-c {name}={seconds * 1000:.0f}" for name, seconds in limits.items())
            return sa.create_engine(
                self.url.set(query={**query, "options": f"{options} {query.get('options', '')}"}),
                pool_pre_ping=True,
                isolation_level="READ COMMITTED",
            )
        synchronous = str(query.pop("synchronous", "normal")).lower()
        if synchronous not in SYNCHRONOUS:
            raise InvalidInput(f"synchronous of a SQLite storage must be one of {', '.join(SYNCHRONOUS)}")
        if query:
            raise InvalidInput(f"a SQLite storage has no option but synchronous, got {', '.join(query)}")
        engine = sa.create_engine(
            self.url.set(query=query), isolation_level="AUTOCOMMIT", connect_args={"timeout": BUSY_SECONDS}
        )

        @sa.event.listens_for(engine, "connect")
        def configure(connection: Any, _: Any) -> None:
            cursor = connection.cursor()
            _patiently(lambda: cursor.execute("PRAGMA journal_mode = WAL"))
            cursor.execute(f"PRAGMA synchronous = {synchronous}")
            cursor.close()

        return engine


def _driver(connection: sa.Connection) -> sqlite3.Connection:
    """SQLite itself, for the statements of every transaction: what lies between would take longer than they do."""
    return connection.connection.driver_connection  # type: ignore[return-value]


def _patiently(action: Callable[[], object]) -> None:
    """Try again while another process is at the same: SQLite does not wait by itself when it changes to WAL."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            action()
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _before_fork() -> None:
    # SQLite's locks do not survive a fork, though it believes so: a child that inherits an open file may write where
    # nobody looks any more. And two processes must not speak on one connection to a server.
    for storage in list(_open_storages):
        storage.close()


def _after_fork_in_child() -> None:
    for storage in list(_open_storages):
        storage._renew_locks()  # another thread of the parent may have held them


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)


class _SQLWriter(Writer):
    def __init__(self, connection: sa.Connection, study: int) -> None:
        self.connection, self.study = connection, study

    def events(self, after: int = -1, kinds: Sequence[str] | None = None) -> list[Event]:
        query = _newer if kinds is None else _newer.where(events.c.kind.in_(kinds))
        return [_event(row) for row in self.connection.execute(query, {"study": self.study, "after": after})]

    def append(self, events_: Sequence[Event]) -> None:
        rows = [
            {
                "study": self.study,
                "number": event.number,
                "kind": event.kind,
                "trial": event.trial,
                "body": json.dumps(event.body, separators=(",", ":"), allow_nan=False),
                "at": event.at,
            }
            for event in events_
        ]
        if rows:
            self.connection.execute(_insert, rows)

    def snapshot(self, number: int, data: bytes) -> None:
        self.connection.execute(snapshots.insert(), {"study": self.study, "number": number, "data": data})
        kept = (
            sa.select(snapshots.c.number)
            .where(snapshots.c.study == self.study)
            .order_by(snapshots.c.number.desc())
            .limit(KEPT_SNAPSHOTS)
        )
        oldest = min(self.connection.scalars(kept))
        self.connection.execute(snapshots.delete().where(snapshots.c.study == self.study, snapshots.c.number < oldest))


def _event(row: Any) -> Event:
    return Event(row.number, row.kind, row.trial, json.loads(row.body), row.at)


def file_url(name: str) -> sa.URL:
    """Return the address of a SQLite file, whatever characters its name is made of."""
    return sa.URL.create("sqlite", database=name)


def _checked_url(url: str | sa.URL) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):  # ValueError: a port that is no number
        raise InvalidInput(
            f"storage must be 'memory', a file name, 'sqlite:///FILE' or 'postgresql://USER@HOST/DATABASE', got {url!r}"
        ) from None
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise MissingExtra("PostgreSQL storage", "postgres") from None
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise InvalidInput(f"storage must be SQLite or PostgreSQL, got {backend!r}")
    if not parsed.database or re.fullmatch(r":memory:|file:.*", parsed.database):
        raise InvalidInput("storage in SQLite must be a file; for a study in memory use storage='memory'")
    folder = Path(parsed.database).absolute().parent
    if not folder.is_dir():
        raise InvalidInput(f"storage must be in a folder that exists, got {parsed.database!r}")
    return parsed
