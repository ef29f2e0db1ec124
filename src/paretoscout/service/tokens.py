"""Tokens and workers, as they are kept: who may do what, and whose a worker is.

A token is `ps_ID_SECRET`. Only a digest of the secret is kept: whoever reads the database cannot use it. The secret has
256 random bits, so a plain digest is as good as a slow one.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import sqlalchemy as sa

from .. import checks
from ..errors import InvalidInput, NotAllowed, UnknownName
from ..storage.schema import tokens, workers
from ..storage.sql import SQLStorage

#: What a token allows; each allows what those before it do.
SCOPES = ("metrics", "read", "tell", "write", "admin")
FORM = re.compile(r"ps_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
LONGEST_NOTE = 200
#: When a worker was last seen is written down at most so often. One that was not seen for longer is forgotten.
SEEN_SECONDS, FORGOTTEN_SECONDS = 15.0, 90 * 86400.0
#: A name that was not seen for so long makes room for another one, if its token has as many as it may have. By default
#: each process has a name of its own, and a script that runs every minute must not be locked out.
FREE_SECONDS = 600.0
#: So many workers are remembered without looking them up.
MOST_KNOWN = 10_000


@dataclass(frozen=True)
class Token:
    """What is known of a token."""

    id: str
    scope: str
    study: str | None  # the only one it is for; None: all
    note: str
    made_at: float
    ends_at: float | None  # None: never
    revoked_at: float | None
    made_by: str = ""  # the user who made it, if known
    revoked_by: str = ""

    def valid(self, now: float) -> bool:
        """Whether it can be used."""
        return self.revoked_at is None and (self.ends_at is None or now < self.ends_at)

    def allows(self, scope: str) -> bool:
        """Whether it allows what a scope is for."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


_shown = [column for column in tokens.c if column.name != "digest"]


class Tokens:
    """The tokens in a storage."""

    def __init__(self, storage: SQLStorage) -> None:
        self.storage = storage

    def create(
        self, scope: str, study: str | None = None, seconds: float | None = None, note: str = "", by: str = ""
    ) -> str:
        """Make a token and return it: it is shown this once. seconds: it ends after so many; None: never."""
        if scope not in SCOPES:
            raise InvalidInput(f"scope of a token must be one of {', '.join(SCOPES)}, got {scope!r}", "scope")
        if study is not None:
            checks.name("study of a token", study)
        if seconds is not None:
            checks.number("time until a token ends", seconds, above=0.0)
        if len(note) > LONGEST_NOTE or not note.isprintable():
            raise InvalidInput(f"note of a token must be one line of at most {LONGEST_NOTE} letters, got {note!r}")
        id_, secret, now = secrets.token_hex(6), secrets.token_urlsafe(32), self.storage.now()
        row = {
            "id": id_,
            "digest": _digest(secret),
            "scope": scope,
            "study": study,
            "note": note,
            "made_at": now,
            "ends_at": None if seconds is None else now + seconds,
            "revoked_at": None,
            "made_by": by,
            "revoked_by": "",
        }
        with self.storage._errors(), self.storage._transaction() as connection:
            connection.execute(tokens.insert(), row)
        return f"ps_{id_}_{secret}"

    def all(self) -> list[Token]:
        """Return all tokens, oldest first."""
        with self.storage._errors(), self.storage._reading() as connection:
            return [Token(**row._mapping) for row in connection.execute(sa.select(*_shown).order_by(tokens.c.made_at))]

    def any(self) -> bool:
        """True if a token was ever made, also if it expired or was revoked: then every request needs one."""
        with self.storage._errors(), self.storage._reading() as connection:
            return connection.execute(sa.select(tokens.c.id).limit(1)).first() is not None

    def valid_ids(self) -> set[str]:
        """Return the names of tokens that can be used."""
        now = self.storage.now()
        return {token.id for token in self.all() if token.valid(now)}

    def find(self, text: str) -> Token | None:
        """Return the token, if it is one that can be used. It takes the same time whichever part of it is wrong."""
        form = FORM.fullmatch(text)
        id_, secret = (form[1], form[2]) if form else ("", "")
        with self.storage._errors(), self.storage._reading() as connection:
            row = connection.execute(sa.select(tokens).where(tokens.c.id == id_)).first()
        same = hmac.compare_digest(_digest("") if row is None else row.digest, _digest(secret))
        if row is None or not same:
            return None
        token = Token(**{name: value for name, value in row._mapping.items() if name != "digest"})
        return token if token.valid(self.storage.now()) else None

    def of_id(self, id_: str) -> Token | None:
        """Return a token by its name."""
        with self.storage._errors(), self.storage._reading() as connection:
            return _of_id(connection, id_)

    def revoke(self, id_: str, by: str = "") -> None:
        """Let a token be of no use from now on."""
        now = self.storage.now()
        with self.storage._errors(), self.storage._transaction() as connection:
            found = connection.execute(tokens.update().where(tokens.c.id == id_).values(revoked_at=now, revoked_by=by))
        if found.rowcount == 0:
            raise UnknownName("token", id_, [token.id for token in self.all()])


class Workers:
    """Who asks and tells. A name belongs to the token that used it first, while that can be used.

    So what is kept with an event is who really did it, and a trial is told by who asked for it.
    """

    def __init__(self, tokens_: Tokens, most: int) -> None:
        self.tokens, self.storage, self.most = tokens_, tokens_.storage, most
        self._known: dict[str, tuple[str, float]] = {}  # name: token, when it was seen

    def claim(self, name: str, token: str) -> None:
        """Take a name, or refuse it: it is that of a worker with another token."""
        now = self.storage.now()
        owner, seen = self._known.get(name, ("", 0.0))
        if owner == token and name in self._known and now - seen < SEEN_SECONDS:
            return
        other = NotAllowed(f"worker {name!r} belongs to another token: choose another name")
        with self.storage._errors(), self.storage._transaction() as connection:
            if name != token and _of_id(connection, name) is not None:
                raise other  # the default name of workers with that token
            named = sa.select(workers).where(workers.c.name == name)
            before = connection.execute(named).first()
            connection.execute(_insert(connection), {"name": name, "token": token, "seen_at": now})
            row = connection.execute(named).one()  # another process may have been faster
            if name != token and row.token != token and self._in_use(connection, row.token, now):
                raise other
            if name != token and (before is None or before.token != token):
                self._make_room(connection, name, token, now)
            new = {"token": token, "seen_at": now}
            connection.execute(workers.update().where(workers.c.name == name).values(**new))
            connection.execute(workers.delete().where(workers.c.seen_at < now - FORGOTTEN_SECONDS))
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[name] = token, now

    def token_of(self, name: str) -> str:
        """Return the token that a name belongs to; "" if to none."""
        if name not in self._known:
            with self.storage._errors(), self.storage._reading() as connection:
                row = connection.execute(sa.select(workers).where(workers.c.name == name)).first()
            if row is None:
                return ""
            return str(row.token)
        return self._known[name][0]

    def seen(self) -> dict[str, float]:
        """Return when each worker was last seen, in seconds since 1970."""
        with self.storage._errors(), self.storage._reading() as connection:
            return {row.name: row.seen_at for row in connection.execute(sa.select(workers))}

    def _in_use(self, connection: sa.Connection, id_: str, now: float) -> bool:
        token = _of_id(connection, id_)
        return token is not None and token.valid(now)

    def _make_room(self, connection: sa.Connection, name: str, token: str, now: float) -> None:
        """Refuse one more name of a token, if it has too many. The one that was not seen for longest makes room."""
        others = sa.select(workers).where(workers.c.token == token, workers.c.name.not_in([name, token]))
        rows = connection.execute(others.order_by(workers.c.seen_at)).all()
        if len(rows) < self.most:
            return
        if now - rows[0].seen_at < FREE_SECONDS:
            raise NotAllowed(
                f"a token may have {self.most:,} worker names within {FREE_SECONDS / 60:g} minutes: use a name again"
            )
        connection.execute(workers.delete().where(workers.c.name == rows[0].name))


def _of_id(connection: sa.Connection, id_: str) -> Token | None:
    row = connection.execute(sa.select(*_shown).where(tokens.c.id == id_)).first()
    return None if row is None else Token(**row._mapping)


def _insert(connection: sa.Connection) -> Any:
    """Return an insert that leaves alone what another process was faster to insert."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        return sqlite_insert(workers).on_conflict_do_nothing()
    from sqlalchemy.dialects.postgresql import insert

    return insert(workers).on_conflict_do_nothing()


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
