"""Where studies are kept: `contract.py` says what a storage promises, the other files keep it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from ..errors import InvalidInput
from .contract import Answer, Event, Head, Heartbeat, Listed, Storage, Writer
from .memory import MemoryStorage

__all__ = [
    "Answer",
    "Event",
    "Head",
    "Heartbeat",
    "Listed",
    "MemoryStorage",
    "Storage",
    "Writer",
    "check_is_there",
    "storage_of",
]


def storage_of(where: str | Path | Storage, make: bool = True, later: bool = False) -> Storage:
    """Return the storage that is meant: one that is there, "memory", a file name, or the address of a database.

    Without `make`, a file that is not there is refused instead of made. All who name the same database
    share one storage. With `later`, a database on a server need not be reachable yet.

    >>> storage_of("memory")
    <MemoryStorage>
    """
    if isinstance(where, Storage):
        return where
    if not isinstance(where, (str, Path)) or not str(where):
        raise InvalidInput(f"storage must be a text, a path or a storage, got {where!r}")
    if "\0" in str(where):
        raise InvalidInput(f"storage must be a name without NUL characters, got {str(where)!r}")
    if str(where) == "memory":
        return MemoryStorage()
    if "://" not in str(where) and Path(where).is_dir():
        raise InvalidInput(f"storage must be a file or the address of a database, got the folder {str(where)!r}")
    if not make:
        check_is_there(str(where))
    from .sql import shared, url_of  # SQLAlchemy takes a while to import

    return shared(url_of(str(where)), later)


def check_is_there(where: str) -> None:
    """Refuse a file that is not there: opening would make it."""
    if "\0" in where:
        raise InvalidInput(f"storage must be a name without NUL characters, got {where!r}")
    if "://" not in where or where.startswith("sqlite:///"):
        address = where.startswith("sqlite:///")
        path = Path(unquote(where.removeprefix("sqlite:///").partition("?")[0]) if address else where)
        if not path.exists():
            raise InvalidInput(f"no studies here: there is no file {path}. Name the one they are in, or create a study")
