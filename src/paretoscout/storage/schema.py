"""The tables, their version, and how older versions become newer ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from ..errors import StorageUnavailable

#: Raise it with every change of the tables, and add the step to MIGRATIONS.
VERSION = 1

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
    sqlite_autoincrement=True,  # the number of a study that was deleted is never given to another one
)
events = sa.Table(
    "events",
    tables,
    sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("trial", sa.Integer),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Index("events_of_trial", "study", "trial"),
    sqlite_with_rowid=False,
)
snapshots = sa.Table(
    "snapshots",
    tables,
    sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

#: From version n to n + 1, for each n that was ever released.
MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {}


def prepare(engine: sa.Engine, upgrade: bool) -> None:
    """Make the tables in an empty database; refuse one that is not ours, newer, or (unless `upgrade`) older."""
    shown = engine.url.render_as_string(hide_password=True)
    with engine.connect() as connection:
        there = set(sa.inspect(connection).get_table_names())
        if not connection.in_transaction():
            connection.begin()
        if about.name in there:
            version = connection.scalar(sa.select(about.c.schema_version))
        elif there:
            raise StorageUnavailable(
                f"storage {shown} belongs to something else: it has tables ({', '.join(sorted(there)[:5])}), "
                "but none of paretoscout. Name another file or database"
            )
        else:
            version = None
        connection.rollback()
    if version is None and about.name not in there:
        _make(engine)
    elif version is None:
        raise StorageUnavailable(f"storage {shown} is damaged: it does not say its version")
    elif version > VERSION:
        raise StorageUnavailable(
            f"storage {shown} was made by a newer paretoscout (schema {version}, this one reads {VERSION}): "
            "install a newer one"
        )
    elif version < VERSION:
        if not upgrade:
            raise StorageUnavailable(
                f"storage {shown} was made by an older paretoscout (schema {version}, now {VERSION}). "
                f"Make a copy, then run: paretoscout db upgrade --storage {shown}"
            )
        _migrate(engine)


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
            _end(connection, "ROLLBACK")
            raise


def _make(engine: sa.Engine) -> None:
    with _alone(engine) as connection:
        if about.name not in sa.inspect(connection).get_table_names():
            tables.create_all(connection)
            connection.execute(about.insert(), {"schema_version": VERSION})


def _migrate(engine: sa.Engine) -> None:
    with _alone(engine) as connection:
        for step in range(connection.scalar(sa.select(about.c.schema_version)) or 0, VERSION):
            MIGRATIONS[step](connection)
        connection.execute(about.update().values(schema_version=VERSION))


def _end(connection: sa.Connection, how: str) -> None:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(how)
    elif how == "COMMIT":
        connection.commit()
    else:
        connection.rollback()
