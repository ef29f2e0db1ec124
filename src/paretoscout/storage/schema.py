"""The tables, their version, and how older versions become newer ones."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b

import sqlalchemy as sa

from ..errors import StorageUnavailable

#: Raise it with every change of the tables, and add the step to MIGRATIONS.
VERSION = 4

tables = sa.MetaData()
about = sa.Table(
    "paretoscout",
    tables,
    sa.Column("schema_version", sa.Integer, nullable=False),
)
studies = sa.Table(
    "studies",
    tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("log", sa.Text, nullable=False),  # identity of the log
    sa.Column("mark", sa.Text, nullable=False),
    sa.Column("maker", sa.Text, nullable=False, server_default=""),  # who made it
    sqlite_autoincrement=True,  # the number of a study that was deleted is never given to another one
)
#: Where each log ends: pages of a damaged file may be lost, and the last events with them, without a trace.
heads = sa.Table(
    "heads",
    tables,
    sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True, autoincrement=False),
    sa.Column("last", sa.BigInteger, nullable=False),
    sa.Column("mark", sa.Text, nullable=False),  # of the last event
)
events = sa.Table(
    "events",
    tables,
    sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("trial", sa.BigInteger),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("worker", sa.Text, nullable=False),
    sa.Column("mark", sa.Text, nullable=False),
    sa.Index("events_of_trial", "study", "trial"),
    sqlite_with_rowid=False,
)
snapshots = sa.Table(
    "snapshots",
    tables,
    sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
#: Who may do what, by a server. Only what a token is checked against is kept, not the token.
tokens = sa.Table(
    "tokens",
    tables,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("study", sa.Text),  # the only one it is for; NULL: all
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("made_at", sa.Double, nullable=False),
    sa.Column("ends_at", sa.Double),  # NULL: never
    sa.Column("revoked_at", sa.Double),
    sa.Column("made_by", sa.Text, nullable=False, server_default=""),  # the user, if known
    sa.Column("revoked_by", sa.Text, nullable=False, server_default=""),
)
#: What was answered to requests that had a key.
answers = sa.Table(
    "answers",
    tables,
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Index("answers_by_age", "at"),
    sqlite_with_rowid=False,
)
#: Who asks and tells by a server: a name belongs to the token that used it first, while that is valid.
workers = sa.Table(
    "workers",
    tables,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("seen_at", sa.Double, nullable=False),
    sqlite_with_rowid=False,
)

#: When each worker of a study last said that it is at work: no events, and no replay reads them.
heartbeats = sa.Table(
    "heartbeats",
    tables,
    sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("run", sa.Text, primary_key=True),
    sa.Column("worker", sa.Text, primary_key=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("pid", sa.BigInteger),
    sa.Column("started", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sqlite_with_rowid=False,
)

PAGE = 20_000  # rows at once


def new_identity() -> str:
    """Return the identity of a new log."""
    return secrets.token_hex(16)


def mark_of(*parts: object) -> str:
    """Return the checksum of a row: what it says, together with the identity of its log.

    It stands for itself, not for the rows before it: whoever reads one event can check it without the others. With the
    identity in it, a row of another study, or of one that had the same name before, does not pass for one of this.
    """
    return blake2b("\n".join(map(str, parts)).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def mark_of_study(log: str, name: str, spec: str) -> str:
    """Return the checksum of a study's name and settings."""
    return mark_of(log, name, spec)


def mark_of_event(log: str, number: int, kind: str, trial: int | None, body: str, at: float | None, worker: str) -> str:
    """Return the checksum of an event; the body is the text that is stored."""
    return mark_of(log, number, kind, trial, at, worker, body)


def _to_2(connection: sa.Connection) -> None:
    """Logs get an identity, rows a checksum, and events say who appended them.

    The table of events is made again, without defaults: a worker of the older version that is still at work is refused,
    instead of appending what has no checksum.
    """
    connection.execute(sa.text("ALTER TABLE studies ADD COLUMN log TEXT NOT NULL DEFAULT ''"))
    connection.execute(sa.text("ALTER TABLE studies ADD COLUMN mark TEXT NOT NULL DEFAULT ''"))
    connection.execute(sa.text("DROP INDEX events_of_trial"))
    connection.execute(sa.text("ALTER TABLE events RENAME TO events_1"))
    events.create(connection)
    heads.create(connection)
    page = sa.text(
        "SELECT study, number, kind, trial, body, at FROM events_1 WHERE study = :study AND number > :after "
        f"ORDER BY number LIMIT {PAGE}"
    ).columns(at=sa.Double)
    for study in connection.execute(sa.select(studies.c.id, studies.c.name, studies.c.spec)).all():
        log = new_identity()
        mark = mark_of_study(log, study.name, study.spec)
        connection.execute(studies.update().where(studies.c.id == study.id).values(log=log, mark=mark))
        after, end = -1, ""
        while rows := connection.execute(page, {"study": study.id, "after": after}).all():
            marks = [mark_of_event(log, row.number, row.kind, row.trial, row.body, row.at, "") for row in rows]
            new = [{**row._mapping, "worker": "", "mark": mark} for row, mark in zip(rows, marks, strict=True)]
            connection.execute(events.insert(), new)
            after, end = rows[-1].number, marks[-1]
        connection.execute(heads.insert(), {"study": study.id, "last": after, "mark": end})
    connection.execute(sa.text("DROP TABLE events_1"))


def _to_3(connection: sa.Connection) -> None:
    """A server keeps who may do what, and what it answered; studies say who made them."""
    connection.execute(sa.text("ALTER TABLE studies ADD COLUMN maker TEXT NOT NULL DEFAULT ''"))
    for table in (tokens, answers, workers):
        table.create(connection)


def _to_4(connection: sa.Connection) -> None:
    """Workers send heartbeats; tokens say who made and revoked them."""
    heartbeats.create(connection)
    there = {column["name"] for column in sa.inspect(connection).get_columns(tokens.name)}
    for name in {"made_by", "revoked_by"} - there:
        connection.execute(sa.text(f"ALTER TABLE tokens ADD COLUMN {name} TEXT NOT NULL DEFAULT ''"))


#: From version n to n + 1, for each n that was ever released.
MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {1: _to_2, 2: _to_3, 3: _to_4}


def prepare(engine: sa.Engine, shown: str, upgrade: bool, read_only: bool = False) -> None:
    """Make the tables in an empty database; refuse one that is not ours, newer, or (unless `upgrade`) older."""
    with engine.connect() as connection:
        version = _version(connection, shown)
    if version is None:
        if read_only:
            raise StorageUnavailable(f"storage {shown} is empty, and nothing can be written there")
        with _alone(engine) as connection:
            if _version(connection, shown) is None:
                tables.create_all(connection)
                connection.execute(about.insert(), {"schema_version": VERSION})
    elif version < VERSION:
        if not read_only:
            # who upgrades it at this moment is waited for
            with _alone(engine) as connection:
                version = _version(connection, shown) or 0
                if upgrade:
                    while version < VERSION:
                        MIGRATIONS[version](connection)
                        version += 1
                    connection.execute(about.update().values(schema_version=VERSION))
        if version < VERSION:
            raise StorageUnavailable(
                f"storage {shown} was made by an older paretoscout (schema {version}, now {VERSION}). "
                f"Make a copy, then run: paretoscout db upgrade --storage {shown}"
            )


def _version(connection: sa.Connection, shown: str) -> int | None:
    """Return the version of the tables, None where there are none; or say why this is no storage of ours."""
    there = set(sa.inspect(connection).get_table_names())
    if not there:
        return None
    if about.name not in there:
        raise StorageUnavailable(
            f"storage {shown} belongs to something else: it has tables ({', '.join(sorted(there)[:5])}), "
            "but none of paretoscout. Name another file or database"
        )
    version = connection.scalar(sa.select(about.c.schema_version))
    if version is None:
        raise StorageUnavailable(f"storage {shown} is damaged: it does not say its version")
    if version > VERSION:
        raise StorageUnavailable(
            f"storage {shown} was made by a newer paretoscout (schema {version}, this one reads {VERSION}): "
            "install a newer one"
        )
    return int(version)


@contextmanager
def _alone(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Change the tables, all or nothing. Another process may want to do the same: it waits."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(7402561)"))
        try:
            yield connection
            _end(connection, "COMMIT")
        except BaseException:
            with suppress(sa.exc.DatabaseError):  # where the disk is full, SQLite has done it already
                _end(connection, "ROLLBACK")
            raise


def _end(connection: sa.Connection, how: str) -> None:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(how)
    elif how == "COMMIT":
        connection.commit()
    else:
        connection.rollback()
