"""Files as they come: opened by what is in them, refused in a sentence where they are broken."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import checks
from ..errors import InvalidInput
from ..frames import DELIMITERS, MOST_LETTERS, check_regular, check_rows, read_csv, text_of
from .contract import Source

SQLITE = b"SQLite format 3\0"
ZIP = b"PK\x03\x04"
ENCRYPTED = 1
#: What `zipfile` raises for damaged files, next to BadZipFile. RuntimeError is for features that it does not know.
DAMAGED = (OSError, RuntimeError, ValueError, KeyError, EOFError, struct.error, zlib.error)


def opened(path: str | Path) -> Source:
    """Return what is in a file, as far as that says whose it is."""
    path = Path(path)
    if path.is_dir():
        return Source(path, "folder")
    try:
        check_regular(path, "CSV or JSON", checks.MOST_BYTES)
        with path.open("rb") as file:
            first = file.read(16)
    except InvalidInput:
        raise
    except (OSError, ValueError) as problem:
        text_of(path, "CSV")  # says what is wrong
        raise InvalidInput(f"{path} must be a file that can be read, but: {problem}") from None
    if first.startswith(SQLITE):
        return Source(path, "sqlite", _tables(path))
    if first.startswith(ZIP):
        return Source(path, "zip", _members(path))
    text = text_of(path, "JSON" if first.lstrip()[:1] in (b"{", b"[") else "CSV")
    if text.lstrip()[:1] in ("{", "["):
        return _of_json(path, text)
    return Source(path, "csv", _header(text))


def below(folder: Path, name: str) -> list[Path]:
    """Return the files of a name below a folder, in order. A folder with too much in it is refused."""
    found, seen = list[Path](), 0
    for here, folders, names in os.walk(folder):
        seen += len(folders) + len(names)
        checks.at_most(f"files below {folder}", checks.MOST_FILES, seen, "name the folder of the results")
        found += [Path(here, name)] if name in names else []
    return sorted(found)


def _of_json(path: Path, text: str) -> Source:
    _check_values(text, str(path))
    try:
        return Source(path, "json", json.loads(text))
    except RecursionError:
        raise InvalidInput(f"{path} must be JSON of a sensible depth, but it is nested too deeply") from None
    except json.JSONDecodeError as problem:
        if problem.msg != "Extra data":
            raise InvalidInput(_broken(path, text, problem)) from None
    except ValueError as problem:  # a whole number of thousands of digits
        raise InvalidInput(f"{path} must be JSON with finite numbers, but: {problem}") from None
    rows = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    check_rows(len(rows), str(path), "lines")
    return Source(path, "lines", [json_of(line, f"line {number} of {path}") for number, line in rows])


def json_of(text: str | bytes, where: str) -> Any:
    """Return the JSON that a part of a file holds."""
    _check_values(text, where)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(f"{where} must be JSON, but: {problem}") from None


def _check_values(text: str | bytes, where: str) -> None:
    """Refuse JSON of too many values before it is parsed: a value takes up to 70 times the memory of its text.

    Marks within texts count, too, so this is an upper bound.
    """
    n = sum(map(text.count, (b",", b"[", b"{"))) if isinstance(text, bytes) else sum(map(text.count, ",[{"))
    checks.at_most(f"values in {where}", checks.MOST_JSON_VALUES, n, "write the numbers into a CSV file")


def _broken(path: Path, text: str, problem: json.JSONDecodeError) -> str:
    """Say how a file of JSON is broken: most often it ends too early."""
    if problem.pos >= len(text.rstrip()) or problem.msg.startswith("Unterminated"):
        return (
            f"{path} must be whole JSON, but it ends in the middle, in line {text.count(chr(10)) + 1}: was it cut off?"
        )
    return f"{path} must be JSON, but line {problem.lineno}, column {problem.colno} is not: {problem.msg}"


def _header(text: str) -> list[str]:
    """Return the header of a CSV file, cut at whatever splits it most."""
    first = text.lstrip().split("\n", 1)[0].rstrip("\r")
    if len(first) > MOST_LETTERS:
        return []  # refused once it is read
    try:
        return max((next(csv.reader([first], delimiter=mark)) for mark in DELIMITERS), key=len)
    except (csv.Error, StopIteration):
        return []


def csv_rows(source: Source) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a CSV file by column, each with its line; each has as many cells as the header."""
    table = read_csv(source.path)
    return [
        (line, dict(zip(table, row, strict=True)))
        for line, row in zip(table.lines, zip(*table.values(), strict=True), strict=True)
    ]


def _tables(path: Path) -> list[str]:
    return [name for (name,) in rows_of(path, "select name from sqlite_master where type = 'table'")]


def rows_of(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query to an SQLite file, opened read-only. Only tables are read: a view may have no end."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            connection.set_authorizer(_only_tables)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_LETTERS)
            rows = connection.execute(query).fetchmany(checks.MOST_RUNS + 1)
        finally:
            connection.close()
    except (sqlite3.Error, OverflowError, ValueError) as problem:
        raise InvalidInput(f"{path} must be an SQLite file that can be read, but: {problem}") from None
    check_rows(len(rows), str(path))
    return rows


def _only_tables(action: int, table: str | None, column: str | None, base: str | None, within: str | None) -> int:
    """Allow what reads tables themselves. within: the view or trigger that asks."""
    allowed = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ) and within is None
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


# Zip files


def _members(path: Path) -> list[str]:
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, *DAMAGED) as problem:
        raise InvalidInput(f"{path} begins like a zip file, but is not a whole one: {problem}") from None


def unpacked(path: Path, name: str, other_packing: Callable[[bytes, zipfile.ZipInfo], bytes]) -> bytes:
    """Return a member of a zip file. other_packing unpacks all but deflate: `zipfile` has no limit there."""
    where = f"{name} of {path}"
    try:
        with zipfile.ZipFile(path) as archive:
            member = archive.getinfo(name)
            if member.flag_bits & ENCRYPTED:
                raise InvalidInput(f"{where} must not be encrypted: unpack it, and pack it again without a password")
            most = min(checks.MOST_BYTES, checks.MOST_TIMES * path.stat().st_size)
            checks.at_most(f"bytes of {where}", most, member.file_size, "it is no log of this size")
            if member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                with archive.open(member) as file:
                    data = file.read(member.file_size + 1)
            else:
                data = other_packing(_packed(path, member), member)
    except InvalidInput:
        raise
    except (zipfile.BadZipFile, *DAMAGED) as problem:
        raise InvalidInput(f"{path} must be a whole file, but {name} cannot be unpacked: {problem}") from None
    if len(data) != member.file_size:
        raise InvalidInput(f"{path} must be a whole file, but {name} has not the size that it says")
    return data


def _packed(path: Path, member: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a member as they are in the file."""
    with path.open("rb") as file:
        file.seek(member.header_offset)
        *_, name, extra = struct.unpack("<4s5H3L2H", file.read(30))
        file.seek(name + extra, 1)
        return file.read(member.compress_size)
