"""Studies in SQLite or PostgreSQL, by SQLAlchemy.

SQLite: one file, in WAL mode, so that readers and the writer do not wait for each other. A commit is handed to the
operating system at once: it survives the end of the process, however sudden. By default it is written through to the
disk a little later: a power cut may take the last moments with it, but leaves the file sound. With
`sqlite:///study.db?synchronous=full` every commit waits for the disk. A file that this process may not write, or that
is opened by `?mode=ro`, is read as it is. The file must stay where it is: one that was removed or replaced is noticed
(`journal.py`).

PostgreSQL: `postgresql://user:password@host/database`; the server's own settings say what survives a power cut (by
default, every commit).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, IntegrityError

from .. import stopping
from ..errors import Conflict, InvalidInput, MissingExtra, NameTaken, StorageUnavailable, UnknownName, UnreadableFile
from . import journal, schema
from .contract import (
    ANSWERS_KEPT,
    HEARTBEATS_KEPT,
    Answer,
    Event,
    Head,
    Heartbeat,
    Listed,
    Storage,
    Writer,
    check_follows,
)
from .forks import before_fork, inside
from .schema import PAGE, answers, events, heads, heartbeats, mark_of_event, mark_of_study, snapshots, studies

BUSY_SECONDS = 300.0  # how long a writer waits for another before it gives up
WRITERS = 4  # at most so many threads of a process write at the same time, at a server: it has 15 connections
CLOCK_SECONDS = 5.0  # the clock of a server is looked at so often; in between, that of this machine goes on from there
CLOCK_JUMP = 0.1  # seconds by which the clock of this machine was set, or slept, and is not gone on from
FORGET_SECONDS = 60.0  # old answers are forgotten so often, while somebody writes
IDLE_SECONDS = 600.0  # after which a server takes the lock from a writer that does nothing
CONNECT_SECONDS = 10  # after which a server that does not answer cannot be reached
RETRY_SECONDS = 1.0  # a server that could not be reached is not tried again before
FREE_BYTES = 8 * 2**20  # a disk with less is full
SYNCHRONOUS = ("off", "normal", "full", "extra")
MODES = ("rw", "ro")
PRIVATE = 0o600  # mode of a file that is made: outcomes, and digests of tokens
CLOSED_SECONDS = 5.0  # how long a file is not opened again because threads still use it as it was
KEPT_SNAPSHOTS = 2
SECRET = ("password", "sslpassword")  # what an address of PostgreSQL may also have after its "?"
LARGEST_NUMBER = 2**63 - 1  # that a database can hold

_open_storages: weakref.WeakSet[SQLStorage] = weakref.WeakSet()
_shared: weakref.WeakValueDictionary[str, SQLStorage] = weakref.WeakValueDictionary()
_sharing = threading.Lock()

_study: sa.BindParameter[int] = sa.bindparam("study")
_number: sa.BindParameter[int] = sa.bindparam("number")
_columns = [column for column in events.c if column.name != "study"]
_of_study = sa.select(*_columns).where(events.c.study == _study)
_newer = _of_study.where(events.c.number > _number).order_by(events.c.number)
_of_trial = _of_study.where(events.c.trial == sa.bindparam("trial")).order_by(events.c.number)
_named = sa.select(studies.c.id, studies.c.log).where(studies.c.name == sa.bindparam("name"))
_last = sa.select(heads.c.last, heads.c.mark).where(heads.c.study == _study)
_set_head = (
    heads.update()
    .where(heads.c.study == sa.bindparam("of"))
    .values(last=sa.bindparam("last"), mark=sa.bindparam("mark"))
)
_mark = sa.select(events.c.mark).where(events.c.study == _study, events.c.number == _number)
_insert = events.insert()
_ends = studies.outerjoin(heads, heads.c.study == studies.c.id)
_lasts = sa.select(studies.c.name, heads.c.last).select_from(_ends).where(heads.c.last.is_not(None))
_listed = (
    sa.select(studies, heads.c.last, events.c.at)
    .select_from(_ends.outerjoin(events, sa.and_(events.c.study == studies.c.id, events.c.number == heads.c.last)))
    .order_by(studies.c.id)
)
_beats = sa.select(*[column for column in heartbeats.c if column.name != "study"]).where(heartbeats.c.study == _study)
_latest = (
    sa.select(snapshots.c.number, snapshots.c.data)
    .where(snapshots.c.study == _study)
    .order_by(snapshots.c.number.desc())
    .limit(1)
)


def shared(url: str | sa.URL, later: bool = False) -> SQLStorage:
    """Return the storage at an address, the same for all in this process who have it open: files are not opened twice.

    >>> shared("sqlite:///shared.db") is shared("sqlite:///shared.db")  # doctest: +SKIP
    True
    """
    address = _Address(url)
    with inside(), _sharing:
        storage = _shared.get(address.key)
        if storage is None:
            storage = _shared[address.key] = SQLStorage(address, later=later)
        elif storage.sqlite or not later:
            storage._open(make=True)  # it may have been closed, or gone since
        return storage


class _Address:
    """Where a database is: read and checked once."""

    def __init__(self, url: str | sa.URL) -> None:
        self.url = _checked_url(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self.path = ""
        self.options = {name: str(value) for name, value in self.url.query.items()} if self.sqlite else {}
        if self.sqlite:
            for name, value in self.options.items():
                known = {"synchronous": SYNCHRONOUS, "mode": MODES}.get(name)
                if known is None:
                    raise InvalidInput(f"a SQLite storage has no option but synchronous and mode, got {name}")
                if value.lower() not in known:
                    raise InvalidInput(f"{name} of a SQLite storage must be one of {', '.join(known)}, got {value!r}")
            self.path = str(_folder_of(self.url.database or "") / Path(self.url.database or "").name)

    @property
    def key(self) -> str:
        if self.sqlite:
            return f"{self.path}?{sorted(self.options.items())}"
        return self.url.render_as_string(hide_password=False)

    @property
    def shown(self) -> str:
        """For people to read, and to be used as an address again."""
        if self.sqlite:
            return f"sqlite:///{quote(self.url.database or '', safe='/ :+,=@~()')}"
        hidden = {name: "***" if name in SECRET else value for name, value in self.url.query.items()}
        return self.url.set(query=hidden).render_as_string(hide_password=True)


class SQLStorage(Storage):
    """See `Storage`. The tables are made where there are none; an older schema must be upgraded first."""

    #: Is told how many seconds each writer waited for its turn.
    on_wait: Callable[[float], object] = staticmethod(lambda seconds: None)

    def __init__(self, url: str | sa.URL | _Address, upgrade: bool = False, later: bool = False) -> None:
        self.address = url if isinstance(url, _Address) else _Address(url)
        self.url, self.sqlite, self.shown = self.address.url, self.address.sqlite, self.address.shown
        self._engine: sa.Engine | None = None
        self._watch: sqlite3.Connection | None = None  # is open as long as the engine, and not lent to anybody
        self._file: tuple[object, ...] = ()  # which file is open
        self._wal = ""  # its journal
        self._journal: tuple[object, ...] = ()  # which journal is open
        self._stamp: tuple[int, int] = (0, 0)  # of the file when it was last compared with its journal
        self._use = _Use()
        self._here = threading.local()  # whether this thread is in the middle of a transaction
        self.read_only = False
        self._upgrade = upgrade
        self._lock = threading.RLock()
        # threads of one process queue here, fairly, not at the database; at a server, writers of several studies may be
        # at work, but never so many that none of the connections is left for what they read meanwhile
        self._writer_lock = threading.Lock() if self.sqlite else threading.BoundedSemaphore(WRITERS)
        self._clock = _Clock()
        self._forgot = -FORGET_SECONDS  # when old answers were last forgotten
        self._away: tuple[float, StorageUnavailable] | None = None  # when the server could not be reached, and why
        _open_storages.add(self)
        if self.sqlite or not later:
            self._open(make=True)

    def __repr__(self) -> str:
        return f"<SQLStorage {self.shown}>"

    def _open(self, make: bool) -> None:
        """Say now what is wrong with the database. Only who opens it first makes a file."""
        if make and self.sqlite and self.address.options.get("mode") != "ro":
            try:
                os.close(os.open(self.address.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))
            except FileExistsError:
                pass
            except OSError as problem:
                raise StorageUnavailable(f"storage {self.shown} cannot be made: {problem.strerror}") from problem
        with self._errors():
            self.engine  # noqa: B018

    @property
    def engine(self) -> sa.Engine:
        """Connections of this process."""
        with inside(), self._lock:
            if self.sqlite and self._engine is not None and not getattr(self._here, "busy", False):
                self._check_place()
            if self._engine is None and self._away is not None and time.monotonic() - self._away[0] < RETRY_SECONDS:
                raise StorageUnavailable(str(self._away[1]))  # others wait for the same
            if self._engine is None:
                self._file = self._file_now()
                if self.sqlite:
                    self._check_pair()
                engine = self._connected()
                try:
                    with self._errors():
                        schema.prepare(engine, self.shown, self._upgrade, self.read_only)
                    if self.sqlite and not self.read_only:
                        self._watch = self._connector()()
                        self._watch.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the journal
                except BaseException as problem:
                    engine.dispose()
                    if is_away(problem):
                        self._away = time.monotonic(), StorageUnavailable(str(problem))
                    raise
                self._away = None
                self._engine = engine
                self._journal = self._journal_now()
            return self._engine

    # A SQLite file that is replaced while it is open

    def _check_place(self) -> None:
        """Close the file if it is not the one that was opened, or its journal is not; nothing in it is lost by that."""
        now = self._file_now()
        if now[:2] != self._file[:2]:
            self._keep_aside()
            self.close()
        elif now != self._file:
            self.close()
        elif self.read_only or self._as_opened():
            return
        elif self._journal_now() == self._journal:
            self.close()  # it was overwritten: `_check_pair` says so
        else:
            lost = self._journal_now()[:1] != self._journal[:1] and self._is_ours() and not self._save_journal()
            kept = self._keep_aside() if lost else ""
            use = self._use
            self.close()
            use.wait()
            if kept:
                raise StorageUnavailable(
                    f"storage {self.shown} lost its journal ({self._wal}) while it was in use, and another process has "
                    f"gone on without it. All that was kept until then is in {kept}. Do it again"
                )

    def _check_pair(self) -> None:
        """Refuse a file with a journal that belongs to another one, or with a second name."""
        path = self.address.path
        self._wal = f"{os.path.realpath(path)}-wal"
        found = os.stat(path)
        if self._file[2] == "rw" and found.st_nlink > 1:
            raise StorageUnavailable(
                f"storage {self.shown} has another name (a hard link): each name would have a journal of its own, and "
                "the database would be destroyed. Remove the other name, or make a copy: paretoscout db backup"
            )
        self._stamp = found.st_mtime_ns, found.st_size
        if self._file[2] != "immutable" and not journal.fits(path, self._wal):
            raise StorageUnavailable(f"storage {self.shown} {STALE}")
        if self._file[2] == "rw" and not journal.indexed(self._wal):
            Path(journal.index_of(self._wal)).unlink(missing_ok=True)  # it is made again

    def _as_opened(self) -> bool:
        """Return True if file and journal are those that were opened, and still belong together."""
        if self._journal_now() != self._journal or self._file_now() != self._file:
            return False
        found = os.stat(self.address.path)
        stamp = found.st_mtime_ns, found.st_size
        if stamp != self._stamp:
            if not (journal.fits(self.address.path, self._wal) and journal.indexed(self._wal)):
                return False
            self._stamp = stamp
        return True

    def _journal_now(self) -> tuple[object, ...]:
        if self.read_only:
            return ()
        return journal.identity_of(self._wal), journal.identity_of(journal.index_of(self._wal))

    def _is_ours(self) -> bool:
        """Return True if the open journal may be written into the file: it holds nothing newer or foreign."""
        assert self._watch is not None
        with suppress(OSError, sqlite3.Error):
            there = journal.header_of(journal.start_of(self.address.path))
            (ours,) = self._watch.execute("PRAGMA user_version").fetchone()
            (identity,) = self._watch.execute("PRAGMA application_id").fetchone()
            (tables,) = self._watch.execute("PRAGMA schema_version").fetchone()
            if there is not None and there.wal and there.identity in (0, identity) and there.schema <= tables:
                return (ours - there.counted) % journal.COUNTED < journal.COUNTED // 2
        return False

    def _save_journal(self) -> bool:
        """Write a journal that somebody removed into its file: connections still have it."""
        if self._watch is None or os.path.exists(self._wal) or not self._is_ours():
            return False
        with suppress(sqlite3.Error):
            busy, *_ = self._watch.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy
        return False

    def _keep_aside(self) -> str:
        """Copy what the open file holds to a new one; return its name, or "" if that cannot be done."""
        file = f"{self.address.path}.replaced-{self._file[1]}"
        if self._watch is None:
            return ""
        try:
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))
        except FileExistsError:
            return file  # another process has done it
        except OSError:
            return ""
        try:
            with closing(sqlite3.connect(file)) as target:
                self._watch.backup(target)
                target.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error:
            os.unlink(file)
            return ""
        return file

    def _file_now(self) -> tuple[object, ...]:
        """Which file is there, and how it can be used."""
        if not self.sqlite:
            return ()
        path = self.address.path
        try:
            found = os.stat(path)
        except FileNotFoundError:
            raise StorageUnavailable(
                f"storage {self.shown} is gone: there is no file {path} any more. Nothing was written; "
                "put it back, or create the study again"
            ) from None
        place = (found.st_dev, found.st_ino)
        if (
            self.address.options.get("mode") != "ro"
            and os.access(path, os.W_OK)
            and os.access(Path(path).parent, os.W_OK)
        ):
            return (*place, "rw")
        if Path(f"{path}-wal").exists():
            return (*place, "ro")
        return (*place, "immutable", found.st_mtime_ns, found.st_size)  # nobody is at work on it

    def close(self) -> None:
        with self._lock:
            engine, self._engine = self._engine, None
            self._use.over = True
            watch, self._watch = self._watch, None
            if watch is not None:
                self._watch = watch
                with suppress(OSError):
                    self._protect()
                self._watch = None
            if engine is not None:
                engine.dispose()
            if watch is not None:
                watch.close()

    def _protect(self) -> None:
        """Keep a journal away from a file that was overwritten: the last connection that is closed would apply it."""
        if journal.identity_of(self.address.path) != self._file[:2]:
            return  # SQLite notices that
        now = self._journal_now()
        same = now == self._journal
        ours = same and journal.fits(self.address.path, self._wal) and journal.indexed(self._wal)
        if not ours and (same or (now[0] is None and not self._is_ours())):
            journal.detach(self.address.path)

    def __del__(self) -> None:
        with suppress(Exception):  # it may be half made, or half taken down
            self.close()

    def create(self, name: str, spec: str, by: str = "") -> None:
        log = schema.new_identity()
        row = {"name": name, "spec": spec, "log": log, "mark": mark_of_study(log, name, spec), "maker": by}
        try:
            with self._errors(), self._transaction() as connection:
                (study,) = connection.execute(studies.insert(), row).inserted_primary_key or (None,)
                connection.execute(heads.insert(), {"study": study, "last": -1, "mark": ""})
        except IntegrityError:
            raise NameTaken(name) from None

    def names(self) -> list[str]:
        with self._errors(), self._reading() as connection:
            return list(connection.scalars(sa.select(studies.c.name).order_by(studies.c.id)))

    def listed(self) -> list[Listed]:
        with self._errors(), self._reading() as connection:
            rows = connection.execute(_listed).all()
        return [
            Listed(
                row.name,
                row.spec if _is_sound(row) else _damaged(row.name),
                -1 if row.last is None else row.last,
                row.at,
                row.maker,
            )
            for row in rows
        ]

    def lasts(self) -> dict[str, int]:
        with self._errors(), self._reading() as connection:
            return {row.name: row.last for row in connection.execute(_lasts)}

    def spec(self, name: str) -> str:
        with self._errors(), self._reading() as connection:
            row = connection.execute(sa.select(studies).where(studies.c.name == name)).first()
        if row is None:
            raise UnknownName("study", name, self.names())
        if not _is_sound(row):
            raise _damaged(name)
        return str(row.spec)

    def delete(self, name: str) -> None:
        with self._errors(), self._transaction() as connection:
            study = self._claim(connection, name)
            for table in (heads, events, snapshots, heartbeats):
                connection.execute(table.delete().where(table.c.study == study.id))
            connection.execute(studies.delete().where(studies.c.id == study.id))
            connection.execute(answers.delete().where(answers.c.digest.endswith(f":{study.log}", autoescape=True)))

    @contextmanager
    def writing(self, name: str, by: str = "") -> Iterator[Writer]:
        began = time.perf_counter()
        with self._errors(), self._transaction() as connection:
            study = self._claim(connection, name)
            self.on_wait(time.perf_counter() - began)
            self._forget_answers(connection)
            writer = _SQLWriter(connection, name, study.id, study.log, by)
            yield writer
            writer.send()

    def _forget_answers(self, connection: sa.Connection) -> None:
        """Forget old answers, now and then."""
        if time.monotonic() - self._forgot < FORGET_SECONDS:
            return
        connection.execute(answers.delete().where(answers.c.at < self.now() - ANSWERS_KEPT))
        self._forgot = time.monotonic()

    def _claim(self, connection: sa.Connection, name: str) -> Any:
        """Keep all others from writing to a study (in SQLite the transaction does)."""
        return self._found(connection, name, _named if self.sqlite else _named.with_for_update())

    def _found(self, connection: sa.Connection, name: str, query: sa.Select[Any] = _named) -> Any:
        found = connection.execute(query, {"name": name}).first()
        if found is None:
            names = connection.scalars(sa.select(studies.c.name).order_by(studies.c.id))
            raise UnknownName("study", name, list(names))
        return found

    def events(self, name: str, after: int = -1, kinds: Sequence[str] | None = None) -> Iterator[Event]:
        log = None
        while True:  # short reads: a long one would keep SQLite from tidying its journal
            with self._errors(), self._reading() as connection:
                study = self._found(connection, name)
                last = _head(connection, study.id, study.log, None).last
                found = connection.execute(_newer.limit(PAGE), {"study": study.id, "number": after}).all()
            if log not in (None, study.log):
                raise StorageUnavailable(f"study {name!r} was deleted and made again while it was read")
            log = study.log
            yield from _picked(_sound(name, log, found, after, last), kinds)
            if len(found) < PAGE:
                return
            after = found[-1].number

    def of_trial(self, name: str, trial: int) -> list[Event]:
        with self._errors(), self._reading() as connection:
            study = self._found(connection, name)
            if not 0 <= trial <= LARGEST_NUMBER:
                return []
            rows = connection.execute(_of_trial, {"study": study.id, "trial": trial}).all()
        return [_event(name, study.log, row) for row in rows]

    def head(self, name: str, number: int | None = None) -> Head:
        with self._errors(), self._reading() as connection:
            study = self._found(connection, name)
            return _head(connection, study.id, study.log, number)

    def latest_snapshot(self, name: str) -> tuple[int, bytes] | None:
        with self._errors(), self._reading() as connection:
            row = connection.execute(_latest, {"study": self._found(connection, name).id}).first()
        return None if row is None else (int(row.number), bytes(row.data))

    def heartbeats(self, name: str) -> list[Heartbeat]:
        with self._errors(), self._reading() as connection:
            return _heartbeats(connection, self._found(connection, name).id)

    def answer(self, owner: str, key: str) -> Answer | None:
        query = sa.select(answers).where(answers.c.owner == owner, answers.c.key == key)
        with self._errors(), self._reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else Answer(**row._mapping)

    def probe(self) -> None:
        """Write something that changes nothing: on a full disk it fails."""
        if self.sqlite and self.read_only:
            self.names()
            return
        if self.sqlite and (free := shutil.disk_usage(Path(self.address.path).parent).free) < FREE_BYTES:
            raise StorageUnavailable(f"storage {self.shown} cannot be used: the disk is full, with {free:,} bytes free")
        with self._errors(), self._transaction() as connection:
            connection.execute(schema.about.update().values(schema_version=schema.about.c.schema_version))

    def now(self) -> float:
        if self.sqlite:
            return time.time()
        return self._clock.now(self._now_there)

    def _now_there(self) -> float:
        with self._errors(), self._reading() as connection:
            return float(connection.scalar(sa.text("SELECT extract(epoch FROM clock_timestamp())")) or 0.0)

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with inside(), self.engine.connect() as connection:
            if self.sqlite:
                yield connection  # each statement sees one moment
            else:
                with connection.begin():
                    yield connection

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        with inside(), self._writer_lock, self.engine.connect() as connection:
            if not self.sqlite:
                with connection.begin():
                    yield connection
                return
            if self.read_only:
                raise StorageUnavailable(f"storage {self.shown} can only be read: nothing was written")
            opened = self._file
            # the driver's own transactions would begin as readers, and fail where another writer was faster
            driver = _driver(connection)
            driver.execute("BEGIN IMMEDIATE")
            self._here.busy = True
            try:
                if not self._as_opened():
                    raise StorageUnavailable(f"storage {self.shown} was replaced at this moment. Do it again")
                journal.count(driver)
                yield connection
                driver.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    driver.execute("ROLLBACK")
                raise
            finally:
                self._here.busy = False
            if self._file_now() != opened or not (self._as_opened() or self._save_journal()):
                raise StorageUnavailable(
                    f"storage {self.shown} was replaced by another file at this moment: what was written is not in it. "
                    "Do it again"
                )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say in plain words what is wrong with the database."""
        try:
            yield
        except IntegrityError:
            raise
        except UnicodeDecodeError as problem:  # SQLite quotes what is damaged, and Python cannot read the quotation
            raise StorageUnavailable(f"storage {self.shown} is malformed. Run: paretoscout db check") from problem
        except (DatabaseError, sa.exc.TimeoutError, sqlite3.DatabaseError) as problem:
            why = str(getattr(problem, "orig", None) or problem).strip()
            hint = ". Run: paretoscout db check" if "malformed" in why else ""
            raise StorageUnavailable(f"storage {self.shown} cannot be used: {why}{hint}") from problem

    def _connected(self) -> sa.Engine:
        if not self.sqlite:
            # a writer whose machine is gone must not keep the others waiting for ever
            query = dict(self.url.query)
            query.setdefault("connect_timeout", f"{CONNECT_SECONDS}")
            limits = {"lock_timeout": BUSY_SECONDS, "idle_in_transaction_session_timeout": IDLE_SECONDS}
            options = " ".join(f"-c {name}={seconds * 1000:.0f}" for name, seconds in limits.items())
            return sa.create_engine(
                self.url.set(query={**query, "options": f"{options} {query.get('options', '')}"}),
                pool_pre_ping=True,
                pool_timeout=BUSY_SECONDS,
                isolation_level="READ COMMITTED",
            )
        engine = sa.create_engine(
            self.url.set(query={}),
            creator=self._connector(),
            poolclass=sa.pool.QueuePool,
            pool_timeout=BUSY_SECONDS,
            isolation_level="AUTOCOMMIT",
        )
        self._use = use = _Use()
        sa.event.listen(engine, "checkout", use.lend)
        sa.event.listen(engine, "checkin", use.take_back)
        return engine

    def _connector(self) -> Callable[[], sqlite3.Connection]:
        """Return what opens the file; it keeps no storage alive that is not used any more."""
        how = {"rw": "mode=rw", "ro": "mode=ro", "immutable": "mode=ro&immutable=1"}[str(self._file[2])]
        file = f"{Path(self.address.path).as_uri()}?{how}"  # never makes a file
        self.read_only = read_only = how != "mode=rw"
        synchronous = self.address.options.get("synchronous", "normal")

        def connect() -> sqlite3.Connection:
            connection = sqlite3.connect(
                file, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            # a bit that flipped in a text shows in its checksum
            connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            if not read_only:
                _patiently(lambda: connection.execute("PRAGMA journal_mode = WAL"))
                connection.execute(f"PRAGMA synchronous = {synchronous}")
            return connection

        return connect


class _Use:
    """The connections of an engine that threads use at this moment."""

    def __init__(self) -> None:
        self.lent = 0
        self.over = False  # whether the engine was closed

    def lend(self, *_: object) -> None:
        self.lent += 1

    def take_back(self, _: object, record: Any) -> None:
        if self.over:
            record.invalidate()  # it would stay open otherwise
        self.lent -= 1

    def wait(self) -> None:
        """Wait for the threads: connections of one process share what they know of a journal."""
        deadline = time.monotonic() + CLOSED_SECONDS
        while self.lent > 0 and time.monotonic() < deadline:
            time.sleep(0.005)


def is_away(problem: BaseException) -> bool:
    """Return True if an error says that a database server cannot be reached, or that it is starting."""
    why: BaseException | None = problem
    while why is not None:
        orig = getattr(why, "orig", why)
        if type(orig).__module__.startswith("psycopg") and isinstance(why, sa.exc.OperationalError):
            return getattr(orig, "sqlstate", None) in (None, *STARTING)
        why = why.__cause__
    return False


#: What PostgreSQL says while it starts, ends or recovers, or has no connection left.
STARTING = ("57P01", "57P02", "57P03", "53300")


def _driver(connection: sa.Connection) -> sqlite3.Connection:
    """SQLite itself, for the beginning and the end of every transaction."""
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


def _close_all() -> None:
    # SQLite's locks do not survive a fork, though it believes so: a child that inherits an open file may write where
    # nobody looks any more. And two processes must not speak on one connection to a server.
    for storage in list(_open_storages):
        storage.close()


before_fork(_close_all)


class _Clock:
    """The clock of a server, without asking it each time."""

    def __init__(self) -> None:
        self._seen: tuple[float, float, float] | None = None  # its time, and by the two clocks of this machine

    def now(self, ask: Callable[[], float]) -> float:
        """Return what time it is there."""
        if self._seen is not None:
            there, here, steady = self._seen
            passed, went = time.monotonic() - steady, time.time() - here
            if passed < CLOCK_SECONDS and abs(went - passed) < CLOCK_JUMP:
                return there + passed
        there = ask()
        self._seen = there, time.time(), time.monotonic()
        return there


class _SQLWriter(Writer):
    def __init__(self, connection: sa.Connection, name: str, study: int, log: str, by: str) -> None:
        self.connection, self.name, self.study, self.log, self.by = connection, name, study, log, by
        self.appended: list[Event] = []
        self._waiting: list[dict[str, Any]] = []  # rows of events that are to be sent, together
        self._end = _head(connection, study, log, None)

    def events(self, after: int = -1, kinds: Sequence[str] | None = None) -> list[Event]:
        if after >= self._end.last:
            return []
        self.send()
        rows = self.connection.execute(_newer, {"study": self.study, "number": after}).all()
        return list(_picked(_sound(self.name, self.log, rows, after, self._end.last), kinds))

    def head(self, number: int | None = None) -> Head:
        if number is None or number == self._end.last:
            return self._end
        self.send()
        return self._end._replace(mark=_mark_of(self.connection, self.study, number))

    def append(self, events_: Sequence[Event]) -> None:
        check_follows(self.name, self._end.last, events_)
        rows: list[dict[str, Any]] = []
        for event in events_:
            body = json.dumps(event.body, separators=(",", ":"), allow_nan=False)
            said = (event.number, event.kind, event.trial, body, float(event.at), event.by or self.by)
            row = dict(zip(("number", "kind", "trial", "body", "at", "worker"), said, strict=True))
            rows.append({"study": self.study, **row, "mark": mark_of_event(self.log, *said)})
        if rows:
            self._waiting += rows
            self.appended += events_
            self._end = Head(self.log, rows[-1]["number"], rows[-1]["mark"])

    def send(self) -> None:
        """Hand to the database what was appended: all of it at once, before anybody reads it or it is committed."""
        if not self._waiting:
            return
        self.connection.execute(_insert, self._waiting)
        self.connection.execute(_set_head, {"of": self.study, "last": self._end.last, "mark": self._end.mark})
        self._waiting = []

    def snapshot(self, number: int, data: bytes) -> None:
        self.connection.execute(snapshots.delete().where(snapshots.c.study == self.study, snapshots.c.number >= number))
        self.connection.execute(snapshots.insert(), {"study": self.study, "number": number, "data": data})
        kept = (
            sa.select(snapshots.c.number)
            .where(snapshots.c.study == self.study)
            .order_by(snapshots.c.number.desc())
            .limit(KEPT_SNAPSHOTS)
        )
        oldest = min(self.connection.scalars(kept))
        self.connection.execute(snapshots.delete().where(snapshots.c.study == self.study, snapshots.c.number < oldest))

    def keep(self, answer: Answer) -> None:
        try:
            self.connection.execute(answers.insert(), vars(answer))
        except IntegrityError:
            raise Conflict(f"there is an answer to the key {answer.key!r} already") from None

    def heartbeats(self) -> list[Heartbeat]:
        return _heartbeats(self.connection, self.study)

    def beat(self, heartbeat: Heartbeat) -> None:
        old = sa.and_(heartbeats.c.study == self.study, heartbeats.c.at < heartbeat.at - HEARTBEATS_KEPT)
        self.connection.execute(heartbeats.delete().where(old))
        self.sign_off(heartbeat.run, heartbeat.worker)
        self.connection.execute(heartbeats.insert(), {"study": self.study, **heartbeat._asdict()})

    def sign_off(self, run: str, worker: str) -> None:
        mine = (heartbeats.c.study == self.study, heartbeats.c.run == run, heartbeats.c.worker == worker)
        self.connection.execute(heartbeats.delete().where(*mine))


def _head(connection: sa.Connection, study: int, log: str, number: int | None) -> Head:
    row = connection.execute(_last, {"study": study}).first()
    if row is None:
        return Head(log, -1, "")
    if number is None or number == row.last:
        return Head(log, row.last, row.mark)
    return Head(log, row.last, _mark_of(connection, study, number))


def _mark_of(connection: sa.Connection, study: int, number: int) -> str:
    return connection.scalar(_mark, {"study": study, "number": number}) or ""


def _heartbeats(connection: sa.Connection, study: int) -> list[Heartbeat]:
    return [Heartbeat(**row._mapping) for row in connection.execute(_beats, {"study": study})]


def _event(name: str, log: str, row: Any) -> Event:
    if mark_of_event(log, row.number, row.kind, row.trial, row.body, row.at, row.worker) != row.mark:
        raise UnreadableFile(f"event {row.number} of study {name!r} was damaged since it was written{ADVICE}")
    return Event(row.number, row.kind, row.trial, json.loads(row.body), row.at, row.worker)


def _sound(name: str, log: str, rows: Sequence[Any], after: int, last: int) -> Iterator[Event]:
    """Yield the events of a page that follow on one another, as they were written, at least up to the last one."""
    for row in rows:
        if row.number != after + 1:
            raise UnreadableFile(
                f"event {after + 1} of study {name!r} is missing: the next one is {row.number}{ADVICE}"
            )
        stopping.check()
        yield _event(name, log, row)
        after = row.number
    if after < last and len(rows) < PAGE:
        raise UnreadableFile(f"event {after + 1} of study {name!r} is missing, and all up to event {last}{ADVICE}")


def _picked(all_of_them: Iterable[Event], kinds: Sequence[str] | None) -> Iterator[Event]:
    return (event for event in all_of_them if kinds is None or event.kind in kinds)


def _is_sound(study: Any) -> bool:
    return mark_of_study(study.log, study.name, study.spec) == str(study.mark)


def _damaged(name: str) -> UnreadableFile:
    return UnreadableFile(f"settings of study {name!r} were damaged since they were written{ADVICE}")


STALE = (
    "was replaced while it was in use, such as by a backup: the journal next to it (-wal) belongs to the file that was "
    "there before. Nothing was written. Put that file back, or run: paretoscout db repair. It sets the journal aside"
)
ADVICE = ". Run: paretoscout db check; then restore a backup (db restore), or keep what is sound (db repair)"


def file_url(name: str) -> sa.URL:
    """Return the address of a SQLite file, whatever characters its name is made of."""
    return sa.URL.create("sqlite", database=name)


def url_of(where: str) -> str | sa.URL:
    """Return the address of a database that is named by an address, or a file by its name."""
    return where if "://" in where else file_url(where)


def _checked_url(url: str | sa.URL) -> sa.URL:
    try:
        parsed = sa.make_url(url)
        if isinstance(url, str) and (file := re.match(r"sqlite:///([^?]*)", url)):
            parsed = parsed.set(database=unquote(file[1]))  # %-codes as in every address
    except (sa.exc.ArgumentError, ValueError):
        shown = re.sub(r"(?<=:)(?!//).*(?=@)|(?<=password=)[^&]*", "***", str(url))  # the password
        raise InvalidInput(
            f"storage must be 'memory', a file name, 'sqlite:///FILE' or 'postgresql://USER@HOST:PORT/DATABASE', "
            f"got {shown!r}"
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
    return parsed


def _folder_of(file: str) -> Path:
    try:
        folder = Path(file).absolute().parent
    except FileNotFoundError:
        raise InvalidInput(
            f"storage must be in a folder that exists, and the working folder is gone: {file!r}"
        ) from None
    if not folder.is_dir():
        raise InvalidInput(f"storage must be in a folder that exists, got {file!r}")
    return folder
