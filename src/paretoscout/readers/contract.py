"""What the reader of a format returns, and what it is given: one file in this folder for each format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .. import checks
from ..errors import InvalidInput
from ..frames import check_rows

#: What the rows of a format are, which says how they may be judged. "answers": each option has done the same tasks, in
#: no order; "timed": runs one after the other in a process; "runs": each row is an experiment of its own.
NATURES = ("answers", "timed", "runs")
#: How people call the kinds of values in JSON; all others are numbers.
KINDS: dict[type, str] = {list: "a list", dict: "an object", str: "a text"}
#: How many seconds a unit of time has.
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Source:
    """A file, opened: what is in it decides whose it is, never its name."""

    path: Path
    kind: str  # "json", "lines" (JSON, a value in each line), "csv", "sqlite", "zip", "folder"
    value: Any = None  # JSON: the value; lines: a list of them; csv: the header

    def __str__(self) -> str:
        return str(self.path)

    def has(self, *keys: str) -> bool:
        """Whether it is a JSON object with these keys."""
        return self.kind == "json" and isinstance(self.value, dict) and all(key in self.value for key in keys)

    def items_have(self, *keys: str) -> bool:
        """Whether it is JSON lines, or a JSON list, whose first item is an object with these keys."""
        items = self.value if self.kind == "lines" else [self.value]
        return self.kind in ("lines", "json") and isinstance(items[0], dict) and all(key in items[0] for key in keys)

    def starts(self, *columns: str) -> bool:
        """Whether it is CSV, and begins with these columns."""
        return self.kind == "csv" and tuple(self.value[: len(columns)]) == columns


class Record(NamedTuple):
    """One measurement."""

    labels: dict[str, str]  # of what, and on what: parameters, names, inputs
    values: dict[str, float]  # by metric; those that are not there are missing
    process: str = ""  # rows of one process share it
    failed: bool = False  # it gave no values, or only those that count failures


@dataclass(frozen=True)
class Measure:
    """What is known of a metric of a format."""

    direction: str | None  # None: nobody knows, the user has to say
    unit: str = ""
    eps: float | str | None = None
    usual: bool = True  # whether it is taken unless the user chooses metrics
    bounds: tuple[float, float] | None = None  # between which its values usually lie


@dataclass
class Found:
    """What is in one file."""

    records: list[Record]
    measures: dict[str, Measure]
    left_out: list[str] = field(default_factory=list)  # what is in the file and was not taken, and why
    assumed: list[str] = field(default_factory=list)  # what a guarantee rests on because of where the rows come from
    notes: list[str] = field(default_factory=list)  # what to know before acting on verdicts
    interleaved: bool | None = None  # whether options were measured in turns; None: the file does not say


def check_found(found: Found, where: str) -> None:
    """Refuse labels that are no strings, numbers that are not finite, and too many runs, names or metrics."""
    check_rows(len(found.records), where, "runs")
    names = dict.fromkeys(found.measures)
    known: dict[int, dict[str, str]] = {}  # many runs share their labels
    for record in found.records:
        if id(record.labels) not in known:
            known[id(record.labels)] = record.labels
            for name, value in record.labels.items():
                if not isinstance(name, str) or not isinstance(value, str):
                    raise InvalidInput(
                        f"{where} must have strings as labels, got {checks.got(value)} of {checks.got(name)}"
                    )
                names[name] = None
        for name, number in record.values.items():
            if not isinstance(name, str) or not math.isfinite(number):
                raise InvalidInput(f"{checks.got(name)} in {where} must be a finite number, got {checks.got(number)}")
    checks.at_most(f"parameters and metrics of {where}", checks.MOST_COLUMNS, len(names), "leave out some of them")


class Roles(NamedTuple):
    """Which labels name the option, and which say on what it was measured."""

    option: tuple[str, ...]
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """A format that is known: how to tell it, and how to read it, or why not."""

    name: str
    is_it: Callable[[Source], bool]
    nature: str = "timed"
    read: Callable[[Source], Found] | None = None
    roles: Callable[[Sequence[Record]], Roles] | None = None
    refused: str = ""  # why it cannot be read, and what to do instead
    called: str = "runs"  # what its rows are, for people to read
    more: str = ""  # how to get more of them


def member(item: Any, key: str, kind: type | tuple[type, ...], where: str) -> Any:
    """Return what an object in a file has under a key; say which key is missing, or is something else.

    >>> member({"times": [1.0]}, "times", list, "results[0] of a.json")
    [1.0]
    """
    if not isinstance(item, dict) or key not in item:
        has = f"it has {', '.join(map(repr, list(item)[:12]))}" if isinstance(item, dict) else f"got {checks.got(item)}"
        raise InvalidInput(f"{where} must be an object with {key!r}, but {has}")
    if not isinstance(item[key], kind) or (isinstance(item[key], bool) and kind is not bool):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        said = " or ".join(KINDS.get(each, "a number") for each in kinds)
        raise InvalidInput(f"{key!r} of {where} must be {said}, got {checks.got(item[key])}")
    return item[key]


def finite(value: Any) -> float | None:
    """Return a number, or None where a file has none: null, a text, NaN, an infinite one."""
    if isinstance(value, (bool, int, float)):
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None
    return None


def numbers(values: Any, where: str) -> list[float]:
    """Return a list of finite numbers, or say which one is none."""
    if not isinstance(values, list):
        raise InvalidInput(f"{where} must be a list of numbers, got {checks.got(values)}")
    check_rows(len(values), where, "runs")
    found = [finite(value) for value in values]
    if None in found:
        place = found.index(None)
        raise InvalidInput(f"{where} must hold finite numbers, got {checks.got(values[place])} at place {place}")
    return [number for number in found if number is not None]


def varying(records: Iterable[Record], names: Iterable[str]) -> tuple[str, ...]:
    """Return the labels that are not the same in all records; a label that is missing differs from any other."""
    rows = [record.labels for record in records]
    return tuple(name for name in names if len({row.get(name) for row in rows}) > 1)


def labels_of(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the names of all labels, in the order in which they come."""
    return tuple(dict.fromkeys(name for record in records for name in record.labels))


def text(value: Any) -> str:
    """Return a parameter as people write it."""
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def counted_failures(failed: Mapping[str, int], total: Mapping[str, int]) -> str:
    """Say how many measurements of which option failed.

    >>> counted_failures({"a": 2}, {"a": 40, "b": 40})
    '2 of 40 of a'
    """
    return ", ".join(f"{n:,} of {total[name]:,} of {name}" for name, n in failed.items())
