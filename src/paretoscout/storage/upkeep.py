"""Looking after a database: what is damaged in it, keeping what is sound, files that cannot be opened, and copies.

A copy is a SQLite file like any other, whatever it was made from. It shows one moment, and others may go on working.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ..errors import InvalidInput, ParetoscoutError, UnreadableFile
from ..shown import counted
from . import journal
from .schema import (
    PAGE,
    VERSION,
    answers,
    events,
    heads,
    heartbeats,
    mark_of_event,
    mark_of_study,
    snapshots,
    studies,
    tokens,
    workers,
)
from .sql import PRIVATE, SQLStorage, _Address, _driver, file_url

_page = (
    sa.select(events)
    .where(events.c.study == sa.bindparam("of"), events.c.number > sa.bindparam("after"))
    .order_by(events.c.number)
    .limit(PAGE)
)


@dataclass(frozen=True)
class Damage:
    """Something that is not as it was written. first: the event of a study from which on it is not sound."""

    study: str | None
    what: str
    first: int | None = None
    of_file: bool = False  # SQLite finds fault with the file itself

    def __str__(self) -> str:
        return self.what if self.study is None else f"study {self.study!r}: {self.what}"


def damages(storage: SQLStorage, check_spec: Callable[[str, str], object]) -> list[Damage]:
    """Return all that is damaged. check_spec(text, name) raises a `ParetoscoutError` if it cannot read a spec."""
    with storage._errors(), _one_moment(storage) as connection:
        return _damages(connection, check_spec)


def repair(
    storage: SQLStorage, dropped: Path, check_spec: Callable[[str, str], object]
) -> tuple[list[str], list[Damage]]:
    """Cut logs before the first event that is not sound; return what was done, and what is still damaged.

    What is dropped goes to a file, a line of JSON for each row.
    """
    done: list[str] = []
    with storage._errors(), _alone(storage) as connection:
        cut = [damage for damage in _damages(connection, check_spec) if damage.first is not None]
        lines: list[str] = []
        for damage in cut:
            study = connection.scalar(sa.select(studies.c.id).where(studies.c.name == damage.study))
            rows = sa.and_(events.c.study == study, sa.or_(events.c.number >= damage.first, events.c.number < 0))
            ahead = sa.and_(snapshots.c.study == study, snapshots.c.number >= damage.first)
            count = 0
            for row in connection.execute(sa.select(events).where(rows).order_by(events.c.number)):
                lines.append(json.dumps({**row._mapping, "study": damage.study}, default=repr))
                count += 1
            connection.execute(events.delete().where(rows))
            _end_log(connection, study)
            n_snapshots = connection.execute(snapshots.delete().where(ahead)).rowcount
            done.append(
                f"study {damage.study!r}: dropped {counted(count, 'event')}, from number {damage.first} on "
                f"({damage.what})" + (f", and {counted(n_snapshots, 'snapshot')} of them" if n_snapshots else "")
            )
        if lines:
            _write_new(dropped, lines)
        left = _damages(connection, check_spec)
    return done, left


#: What SQLite says of a file that is damaged: malformed, not a database, shorter than it should be.
DAMAGED_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR_SHORT_READ)


def is_damage(problem: BaseException) -> bool:
    """Return True if an error was raised because a file is damaged."""
    why: BaseException | None = problem
    while why is not None:
        if isinstance(why, UnicodeDecodeError):
            return True
        code = getattr(getattr(why, "orig", why), "sqlite_errorcode", None)
        if code in DAMAGED_CODES or (code is not None and code & 0xFF == sqlite3.SQLITE_CORRUPT):
            return True
        why = why.__cause__
    return False


def stale_journal(url: str | sa.URL) -> bool:
    """Return True if the journal next to a SQLite file belongs to another file."""
    address = _Address(url)
    return address.sqlite and not journal.fits(address.path, f"{os.path.realpath(address.path)}-wal")


def set_journal_aside(url: str | sa.URL, stamp: str) -> str:
    """Take a journal away that belongs to another file; return the name under which it is kept."""
    path = _Address(url).path
    return journal.set_aside(path, f"{os.path.realpath(path)}-wal", stamp)


def salvage(url: str | sa.URL, stamp: str) -> tuple[str, list[str]]:
    """Put all rows that can be read of a damaged SQLite file into a new one, in its place.

    Return the name under which the damaged file is kept, and the tables which could not be read to the end.
    """
    path = Path(os.path.realpath(_Address(url).path))
    part, kept = path.with_name(f"{path.name}.part{os.getpid()}"), f"{path}.damaged-{stamp}"
    try:
        fresh = SQLStorage(file_url(str(part)))
        with (
            closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None)) as source,
            fresh._transaction() as target,
        ):
            source.row_factory = sqlite3.Row
            row = None
            with suppress(sqlite3.Error):
                row = source.execute("SELECT schema_version FROM paretoscout").fetchone()
            if row is not None and row[0] < VERSION:
                raise UnreadableFile(f"{path} is damaged, and of schema {row[0]}: restore a backup (db restore)")
            source.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            with suppress(sqlite3.Error):
                source.execute("PRAGMA writable_schema = ON")  # a file that was cut off is read as far as it goes
                source.execute("BEGIN IMMEDIATE")  # nobody writes meanwhile
            partly = [
                table.name
                for table in (studies, heads, tokens, answers, workers, snapshots, events)
                if not _salvaged(source, target, table)
            ]
            for end in ("", "-wal"):  # a pair, under another name; the index is made again
                with suppress(FileNotFoundError):
                    os.rename(f"{path}{end}", f"{kept}{end}")
        fresh.close()
        with closing(sqlite3.connect(part)) as made:
            made.execute("PRAGMA journal_mode = DELETE")
        Path(journal.index_of(f"{path}-wal")).unlink(missing_ok=True)
        part.rename(path)
    finally:
        for each in (part, Path(f"{part}-wal"), Path(f"{part}-shm")):
            each.unlink(missing_ok=True)
    return kept, partly


def _salvaged(source: sqlite3.Connection, target: sa.Connection, table: sa.Table) -> bool:
    """Copy the rows of a table from both ends up to where it is damaged; return False if it is."""
    keys = ", ".join(column.name for column in table.primary_key)
    whole = True
    for order in ("ASC", "DESC"):
        by = ", ".join(f"{key} {order}" for key in keys.split(", "))
        try:
            for row in source.execute(f"SELECT * FROM {table.name} ORDER BY {by}"):
                known = {name: row[name] for name in row.keys() if name in table.c}  # noqa: SIM118 - not a dict
                # what was damaged may be nothing that such a table can hold, or no text
                with suppress(sa.exc.SQLAlchemyError, ValueError, OverflowError):
                    target.execute(table.insert().prefix_with("OR IGNORE"), known)
        except (sqlite3.Error, UnicodeDecodeError):
            whole = False
        if whole:
            break
    return whole


def backup(storage: SQLStorage, file: Path) -> None:
    """Make a copy of all studies as they are at this moment, in a new SQLite file."""
    if file.exists():
        raise InvalidInput(f"file of a backup must be a new one, got {str(file)!r}, which is there already")
    if not file.absolute().parent.is_dir():
        raise InvalidInput(f"file of a backup must be in a folder that exists, got {str(file)!r}")
    part = file.with_name(f"{file.name}.part{os.getpid()}")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))
        if storage.sqlite:
            with storage._errors(), storage._reading() as source, closing(sqlite3.connect(part)) as target:
                _driver(source).backup(target)
        else:
            copy = SQLStorage(file_url(str(part)))
            with storage._errors(), _one_moment(storage) as source, copy._transaction() as target_:
                _copy(source, target_)
            copy.close()
        with storage._errors(), closing(sqlite3.connect(part)) as target:
            target.execute("PRAGMA journal_mode = DELETE")  # one file, to be read where nothing can be written
            target.execute(f"PRAGMA application_id = {journal.new_identity()}")  # a file of its own from now on
        part.rename(file)
    finally:
        for path in (part, Path(f"{part}-wal"), Path(f"{part}-shm")):
            path.unlink(missing_ok=True)


def restore(storage: SQLStorage, file: Path, check_spec: Callable[[str, str], object]) -> None:
    """Put back what a copy holds: all studies of the storage are replaced, in one moment, by those of the copy."""
    if not file.exists():
        raise InvalidInput(f"file of a backup must be there, got {str(file)!r}")
    _check_tables(file)
    copy = SQLStorage(file_url(str(file)).set(query={"mode": "ro"}))
    try:
        damaged = damages(copy, check_spec)
        if damaged:
            raise UnreadableFile(f"{file} is damaged, and was not restored: {damaged[0]}")
        with storage._errors(), _one_moment(copy) as source, _alone(storage) as target:
            # what was answered is of the studies that go, and so are their workers
            for table in (heads, events, snapshots, heartbeats, studies, answers):
                target.execute(table.delete())
            _copy(source, target)
    finally:
        copy.close()


def _check_tables(file: Path) -> None:
    """Refuse a file whose tables compute what they hold: a view, or a column, may have no end."""
    if not file.is_file():
        raise InvalidInput(f"file of a backup must be a regular file, got {str(file)!r}")
    ours = [table.name for table in studies.metadata.sorted_tables]
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            for name, kind, sql in connection.execute("SELECT lower(name), type, sql FROM sqlite_master").fetchall():
                if name not in ours:
                    continue
                plain = kind == "table" and not str(sql).upper().startswith("CREATE VIRTUAL")
                columns = connection.execute("SELECT hidden FROM pragma_table_xinfo(?)", (name,)) if plain else []
                if not plain or any(hidden for (hidden,) in columns):
                    raise UnreadableFile(f"{file} is no backup, and was not restored: {name} must be a plain table")
    except sqlite3.Error:
        pass  # the storage says what is wrong


@contextmanager
def _one_moment(storage: SQLStorage) -> Iterator[sa.Connection]:
    """Read many things as they are at one moment."""
    with storage._reading() as connection:
        if not storage.sqlite:
            connection.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
            yield connection
            return
        connection.exec_driver_sql("BEGIN")
        try:
            yield connection
        finally:
            connection.exec_driver_sql("ROLLBACK")


@contextmanager
def _alone(storage: SQLStorage) -> Iterator[sa.Connection]:
    """Change what is there while all who want to write to any study wait."""
    with storage._transaction() as connection:
        if not storage.sqlite:
            connection.execute(sa.text("LOCK TABLE studies IN EXCLUSIVE MODE"))
        yield connection


def _write_new(file: Path, lines: list[str]) -> None:
    try:
        with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE), "w", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in lines)
            out.flush()
            os.fsync(out.fileno())
    except OSError as problem:
        raise InvalidInput(f"file for what is dropped must be a new one, got {str(file)!r}: {problem}") from None


def _copy(source: sa.Connection, target: sa.Connection) -> None:
    """Copy all rows as they are; only studies get new numbers."""
    for study in source.execute(sa.select(studies).order_by(studies.c.id)).all():
        row = {name: value for name, value in study._mapping.items() if name != "id"}
        (number,) = target.execute(studies.insert(), row).inserted_primary_key or (None,)
        for rows in _pages(source, study.id):
            target.execute(events.insert(), [{**row._mapping, "study": number} for row in rows])
        _end_log(target, number)
        for snapshot in source.execute(sa.select(snapshots).where(snapshots.c.study == study.id)).all():
            target.execute(snapshots.insert(), {**snapshot._mapping, "study": number})


def _end_log(connection: sa.Connection, study: int | None) -> None:
    """Write down where a log ends now."""
    of_study = sa.select(events.c.number, events.c.mark).where(events.c.study == study)
    row = connection.execute(of_study.order_by(events.c.number.desc()).limit(1)).first()
    end = {"last": -1, "mark": ""} if row is None else {"last": row.number, "mark": row.mark}
    connection.execute(heads.delete().where(heads.c.study == study))
    connection.execute(heads.insert(), {"study": study, **end})


def _pages(connection: sa.Connection, study: int) -> Iterator[list[Any]]:
    after = -1
    while rows := list(connection.execute(_page, {"of": study, "after": after})):
        yield rows
        after = rows[-1].number


def _damages(connection: sa.Connection, check_spec: Callable[[str, str], object]) -> list[Damage]:
    found: list[Damage] = []
    if connection.dialect.name == "sqlite":
        lines = connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars().all()
        found += [Damage(None, f"the file is damaged: {line}", of_file=True) for line in lines if line != "ok"]
    for study in connection.execute(sa.select(studies).order_by(studies.c.id)).all():
        if mark_of_study(study.log, study.name, study.spec) != study.mark:
            found.append(Damage(study.name, "its settings are damaged: restore a backup, or delete it"))
            continue  # the identity of its log may be what is damaged: its events cannot be judged
        try:
            check_spec(study.spec, study.name)
        except ParetoscoutError as problem:
            found.append(Damage(study.name, f"its settings cannot be read: {problem}"))
        found += _damage_of_log(connection, study)
    orphans = sa.select(sa.func.count()).select_from(events).where(events.c.study.not_in(sa.select(studies.c.id)))
    if lost := connection.scalar(orphans):
        found.append(Damage(None, f"{counted(lost, 'event')} {'belongs' if lost == 1 else 'belong'} to no study"))
    return found


def _damage_of_log(connection: sa.Connection, study: Any) -> list[Damage]:
    expected, mark = 0, ""
    for rows in _pages(connection, study.id):
        for row in rows:
            if row.number != expected:
                return [Damage(study.name, f"event {expected} is missing: the next one is {row.number}", expected)]
            mark = mark_of_event(study.log, row.number, row.kind, row.trial, row.body, row.at, row.worker)
            if mark != row.mark:
                return [Damage(study.name, f"event {row.number} is damaged: its checksum does not fit", expected)]
            expected += 1
    end = connection.execute(sa.select(heads).where(heads.c.study == study.id)).first()
    if end is None or end.last != expected - 1 or end.mark != mark:
        last = None if end is None else end.last
        return [Damage(study.name, f"the log should end with event {last}, but ends with {expected - 1}", expected)]
    ahead = sa.select(sa.func.max(snapshots.c.number)).where(snapshots.c.study == study.id)
    newest = connection.scalar(ahead)
    if newest is not None and newest >= expected:
        return [Damage(study.name, f"a snapshot of event {newest} is ahead of the log", expected)]
    strays = sa.select(sa.func.min(events.c.number)).where(events.c.study == study.id)
    lowest = connection.scalar(strays)
    if lowest is not None and lowest < 0:
        return [Damage(study.name, f"there is an event with the number {lowest}", expected)]
    return []
