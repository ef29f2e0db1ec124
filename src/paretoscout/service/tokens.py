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
SCOPES = ("read", "tell", "write", "admin")
FORM = re.compile(r"ps_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
LONGEST_NOTE = 200
#: When a worker was last seen is written down at most so often. One that was not seen for longer is forgotten.
SEEN_SECONDS, FORGOTTEN_SECONDS = 15.0, 90 * 86400.0
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

    def create(self, scope: str, study: str | None = None, seconds: float | None = None, note: str = "") -> str:
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
        }
        with self.storage._errors(), self.storage._transaction() as connection:
            connection.execute(tokens.insert(), row)
        return f"ps_{id_}_{secret}"

    def all(self) -> list[Token]:
        """Return all tokens, oldest first."""
        with self.storage._errors(), self.storage._reading() as connection:
            return [Token(**row._mapping) for row in connection.execute(sa.select(*_shown).order_by(tokens.c.made_at))]

    def any_valid(self) -> bool:
        """Whether there is a token that can be used: then nobody gets in without one."""
        now = self.storage.now()
        return any(token.valid(now) for token in self.all())

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
            row = connection.execute(sa.select(*_shown).where(tokens.c.id == id_)).first()
        return None if row is None else Token(**row._mapping)

    def revoke(self, id_: str) -> None:
        """Let a token be of no use from now on."""
        now = self.storage.now()
        with self.storage._errors(), self.storage._transaction() as connection:
            found = connection.execute(tokens.update().where(tokens.c.id == id_).values(revoked_at=now))
        if found.rowcount == 0:
            raise UnknownName("token", id_, [token.id for token in self.all()])


class Workers:
    """Who asks and tells. A name belongs to the token that used it first, while that can be used.

    So what is kept with an event is who really did it, and a trial is told by who asked for it.
    """

    def __init__(self, tokens_: Tokens) -> None:
        self.tokens, self.storage = tokens_, tokens_.storage
        self._known: dict[str, tuple[str, float]] = {}  # name: token, when it was seen

    def claim(self, name: str, token: str) -> None:
        """Take a name, or refuse it: it is that of a worker with another token."""
        now = self.storage.now()
        owner, seen = self._known.get(name, ("", 0.0))
        if owner == token and name in self._known and now - seen < SEEN_SECONDS:
            return
        with self.storage._errors(), self.storage._transaction() as connection:
            connection.execute(_insert(connection), {"name": name, "token": token, "seen_at": now})
            row = connection.execute(sa.select(workers).where(workers.c.name == name)).one()
            if row.token != token and self._in_use(connection, row.token, now):
                raise NotAllowed(f"worker {name!r} belongs to another token: choose another name")
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
        row = connection.execute(sa.select(*_shown).where(tokens.c.id == id_)).first()
        return row is not None and Token(**row._mapping).valid(now)


def _insert(connection: sa.Connection) -> Any:
    """Return an insert that leaves alone what another process was faster to insert."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        return sqlite_insert(workers).on_conflict_do_nothing()
    from sqlalchemy.dialects.postgresql import insert

    return insert(workers).on_conflict_do_nothing()


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
