"""Files as they come: opened by what is in them, refused in a sentence where they are broken."""

from __future__ import annotations

import csv
import json
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from ..frames import DELIMITERS, text_of
from .contract import Source

#: Larger files are refused: they are read as a whole.
MOST_BYTES = 500_000_000
SQLITE = b"SQLite format 3\0"
ZIP = b"PK\x03\x04"


def opened(path: str | Path) -> Source:
    """Return what is in a file, as far as that says whose it is."""
    path = Path(path)
    if path.is_dir():
        return Source(path, "folder")
    try:
        size = path.stat().st_size
        with open(path, "rb") as file:
            first = file.read(16)
    except (OSError, ValueError):
        text_of(path, "CSV")  # says what is wrong
        raise
    if size > MOST_BYTES:
        raise InvalidInput(
            f"{path} must be at most {MOST_BYTES:,} bytes, because it is read as a whole, got {size:,}: write the "
            "numbers into a CSV file, a row for each measurement"
        )
    if first.startswith(SQLITE):
        return Source(path, "sqlite", _tables(path))
    if first.startswith(ZIP):
        try:
            with zipfile.ZipFile(path) as archive:
                return Source(path, "zip", archive.namelist())
        except zipfile.BadZipFile as problem:
            raise InvalidInput(f"{path} begins like a zip file, but is not a whole one: {problem}") from None
    text = text_of(path, "JSON" if first.lstrip()[:1] in (b"{", b"[") else "CSV")
    if text.lstrip()[:1] in ("{", "["):
        return _of_json(path, text)
    return Source(path, "csv", _header(text))


def _of_json(path: Path, text: str) -> Source:
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
    return Source(path, "lines", [json_of(line, f"line {number} of {path}") for number, line in rows])


def json_of(text: str | bytes, where: str) -> Any:
    """Return the JSON that a part of a file holds."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(f"{where} must be JSON, but: {problem}") from None


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
    try:
        return max((next(csv.reader([first], delimiter=mark)) for mark in DELIMITERS), key=len)
    except (csv.Error, StopIteration):
        return []


def _tables(path: Path) -> list[str]:
    return [name for (name,) in rows_of(path, "select name from sqlite_master where type = 'table'")]


def rows_of(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Return what an SQLite file answers; it is opened for reading only."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()
    except sqlite3.Error as problem:
        raise InvalidInput(f"{path} must be an SQLite file that can be read, but: {problem}") from None
