"""The journal of a SQLite file: whether the two belong together.

SQLite keeps the last commits in a journal (`-wal`) next to the file, and applies any journal that it finds there. It
does not notice that the file was replaced by another one, such as a backup: pages of both are mixed, and the database
is destroyed. So each transaction counts up a number in the header of the file (`user_version`), and each file has an
identity there (`application_id`). A journal fits a file of the same identity if its first transaction follows on what
the file holds, or on an earlier state that the file still shares with it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

#: The number of transactions is counted up to this, then from 0 on.
COUNTED = 2**31
HEADER = 100  # bytes of the header of a database
JOURNAL_HEADER, FRAME_HEADER = 32, 24  # bytes of the header of a journal, and of each page in it
MAGIC = (0x377F0682, 0x377F0683)
TRIES, PAUSE = 5, 0.02  # a file may be written while it is looked at


@dataclass(frozen=True)
class Header:
    """The fields of a database's first page that say where it comes from."""

    wal: bool  # whether it is in the mode that has this kind of journal
    counted: int
    identity: int
    schema: int  # the number of changes of its tables


def identity_of(path: str) -> tuple[int, int] | None:
    """Return what tells a file from another one of the same name, None if there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def index_of(journal: str) -> str:
    """Return the file through which processes share what they know of a journal."""
    return f"{journal.removesuffix('-wal')}-shm"


def header_of(page: bytes) -> Header | None:
    """Return the header on a database's first page, None if it is not one."""
    if len(page) < HEADER or not page.startswith(b"SQLite format 3\0"):
        return None
    schema, counted, identity = (struct.unpack_from(">I", page, place)[0] for place in (40, 60, 68))
    return Header(page[18] == page[19] == 2, counted % COUNTED, identity, schema)


def start_of(path: str) -> bytes:
    """Return the bytes of a database's header."""
    with _looking:
        file = _file(path)
        try:
            os.lseek(file, 0, os.SEEK_SET)
            return os.read(file, HEADER)
        finally:
            if CLOSES:
                os.close(file)


#: A process that closes a file loses all locks that it has on it, also those of SQLite: so files stay open. On Windows
#: locks belong to what is open, and a file that is open cannot be removed.
CLOSES = os.name == "nt"
_files: dict[tuple[int, int], int] = {}
_looking = threading.Lock()


def _file(path: str) -> int:
    found = os.stat(path)
    file = _files.get((found.st_dev, found.st_ino))
    if file is None or CLOSES:
        for place, each in list(_files.items()):
            if os.fstat(each).st_nlink == 0:  # it was deleted: its locks are of no use to anybody
                os.close(_files.pop(place))
        file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        opened = os.fstat(file)
        if not CLOSES:
            _files[opened.st_dev, opened.st_ino] = file
    return file


def fits(path: str, journal: str) -> bool:
    """Return True if a database file may be opened with the journal next to it, or has none."""
    for last in (False,) * TRIES + (True,):
        before = _stamp(journal)
        found = _fits(path, journal)
        if found or last:
            return found
        if before == _stamp(journal):
            time.sleep(PAUSE)  # a checkpoint may be half done
    return False


def indexed(journal: str) -> bool:
    """Return True if what processes share of a journal (`-shm`) is of this journal, not of one that was replaced."""
    index = index_of(journal)
    try:
        with _looking:
            file = _file(index)
            os.lseek(file, 0, os.SEEK_SET)
            head = os.read(file, 96)
            if CLOSES:
                os.close(file)
        with open(journal, "rb") as wal:
            salt = wal.read(24)[16:]
    except OSError:
        return True
    if len(head) < 96 or head[:48] != head[48:] or not head[12]:
        return True  # it is being written, or made
    frames = struct.unpack("=I", head[16:20])[0]
    return frames == 0 or head[32:40] == salt


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _fits(path: str, journal: str) -> bool:
    try:
        with open(journal, "rb") as wal:
            ends = _ends(wal)
    except FileNotFoundError:
        return True
    if ends is None:
        return True
    page = start_of(path)
    if not page:
        return False  # SQLite would drop the journal
    here = header_of(page)
    if here is None:
        return True  # SQLite says itself what is wrong with it
    first, last = ends
    if not here.wal or here.schema > last.schema or (here.identity and here.identity != last.identity):
        return False
    before = (first.counted - 1) % COUNTED
    return (here.counted - before) % COUNTED <= (last.counted - before) % COUNTED


def _ends(wal: BinaryIO) -> tuple[Header, Header] | None:
    """Return the first and the last header of a database that a journal holds, None if it holds none."""
    start = wal.read(JOURNAL_HEADER)
    if len(start) < JOURNAL_HEADER:
        return None
    magic, _, size, _, *salt = struct.unpack(">6I", start[:24])
    if magic not in MAGIC:
        return None
    size = 65536 if size == 1 else size
    if size < 512:
        return None

    def page_at(frame: int) -> int:
        """Return the number of the page in a frame, 0 if the frame is missing or left from an earlier journal."""
        wal.seek(JOURNAL_HEADER + frame * (FRAME_HEADER + size))
        head = wal.read(FRAME_HEADER)
        if len(head) < FRAME_HEADER:
            return 0
        page, _, *marks = struct.unpack(">4I", head[:16])
        return page if marks == salt else 0

    def header_at(frame: int) -> Header | None:
        wal.seek(JOURNAL_HEADER + frame * (FRAME_HEADER + size) + FRAME_HEADER)
        return header_of(wal.read(HEADER))

    low, high = 0, (os.fstat(wal.fileno()).st_size - JOURNAL_HEADER) // (FRAME_HEADER + size)
    while low < high:  # frames of this journal come first
        middle = (low + high) // 2
        low, high = (middle + 1, high) if page_at(middle) else (low, middle)
    first = next((frame for frame in range(low) if page_at(frame) == 1), None)
    if first is None:
        return None
    last = next(frame for frame in reversed(range(first, low)) if page_at(frame) == 1)
    ends = header_at(first), header_at(last)
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])


def count(driver: sqlite3.Connection) -> None:
    """Count a transaction that has begun, and give the file an identity if it has none."""
    (counted,) = driver.execute("PRAGMA user_version").fetchone()
    driver.execute(f"PRAGMA user_version = {(counted + 1) % COUNTED}")
    (identity,) = driver.execute("PRAGMA application_id").fetchone()
    if not identity:
        driver.execute(f"PRAGMA application_id = {new_identity()}")


def new_identity() -> int:
    """Return the identity of a new file."""
    return secrets.randbelow(2**31 - 1) + 1


def detach(path: str) -> None:
    """Put a copy of a file in its place: a process which has the file open applies no journal to it when it ends."""
    part = f"{path}.part{os.getpid()}"
    try:
        with _looking, open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as copy:
            file = _file(path)
            os.lseek(file, 0, os.SEEK_SET)
            while page := os.read(file, 2**20):
                copy.write(page)
            if CLOSES:
                os.close(file)
        shutil.copystat(path, part)
        with suppress(OSError, AttributeError):  # not on every system, nor by every user
            owner = os.stat(path)
            os.chown(part, owner.st_uid, owner.st_gid)
        os.replace(part, path)
    finally:
        Path(part).unlink(missing_ok=True)


def set_aside(path: str, journal: str, stamp: str) -> str:
    """Take a journal away from a file that it does not fit; return where it is."""
    aside = f"{journal}.{stamp}"
    detach(path)
    os.rename(journal, aside)
    Path(index_of(journal)).unlink(missing_ok=True)
    return aside
