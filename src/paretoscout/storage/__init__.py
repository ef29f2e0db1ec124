"""Where studies are kept: `contract.py` says what a storage promises, the other files keep it."""

from __future__ import annotations

from pathlib import Path

from ..errors import InvalidInput
from .contract import Event, Storage, Writer
from .memory import MemoryStorage

__all__ = ["Event", "MemoryStorage", "Storage", "Writer", "storage_of"]


def storage_of(where: str | Path | Storage) -> Storage:
    """Return the storage that is meant: one that is there, "memory", a file name, or the address of a database.

    >>> storage_of("memory")
    <MemoryStorage>
    """
    if isinstance(where, Storage):
        return where
    if not isinstance(where, (str, Path)) or not str(where):
        raise InvalidInput(f"storage must be a text, a path or a storage, got {where!r}")
    if str(where) == "memory":
        return MemoryStorage()
    from .sql import SQLStorage, file_url  # SQLAlchemy takes a while to import

    return SQLStorage(str(where) if "://" in str(where) else file_url(str(where)))
