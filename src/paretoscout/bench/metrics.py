"""What is measured of a run: -m NAME[:min|:max][:pass-fail][>=GUARD|<=GUARD][=SOURCE].

SOURCE is `time`, `user`, `system`, `rss`, `size@PATH`, `stdout~REGEX`, `json@KEY` or `exit`; a built-in name needs no
source and knows its direction and unit.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from .. import checks
from ..errors import InvalidInput
from ..statement import NUMBER, PASS_FAIL, Metric
from ..study import Below, Guard
from .options import PLACE
from .run import Run

GRAMMAR = re.compile(
    r"(?P<name>[^:<>=~@]+)(:(?P<direction>[^:<>=~@]*))?(?P<kind>:pass-fail)?((?P<sense><=|>=)(?P<limit>[^=<>]+))?(=(?P<source>.+))?",
    re.DOTALL,
)
#: Direction, unit, and the difference that does not matter unless told otherwise.
BUILT_IN = {
    "time": ("min", "ms", "2%"),
    "user": ("min", "ms", "2%"),
    "system": ("min", "ms", "5%"),
    "rss": ("min", "MB", "2%"),
    "size": ("min", "kB", "1%"),
    "exit": ("max", "", "0.05"),
}
#: CPU time in milliseconds below which commands look alike: what is 0 cannot be compared in percent.
LEAST_CPU_MS = 1.0


class NoValue(Exception):
    """A run did not give the number that a metric needs."""


@dataclass(frozen=True)
class Source:
    """A metric of a run, and where its number comes from."""

    metric: Metric
    kind: str  # time, user, system, rss, size, stdout, json or exit
    argument: str = ""  # path, pattern or key
    guard: Guard | None = None  # a limit, in the metric's unit

    @property
    def name(self) -> str:
        """Of the metric."""
        return self.metric.name

    def value(self, run: Run, variables: Mapping[str, str]) -> float | Below:
        """Return the number that a run gave, in the metric's unit."""
        number = self._measured(run, variables)
        if isinstance(number, Below):
            return number
        if not math.isfinite(number):
            raise NoValue(f"{self.name} must be a finite number, got {number}")
        if self.metric.pass_fail and number not in (0.0, 1.0):
            raise NoValue(f"{self.name} must be 0 or 1, because it is pass-fail, got {number:g}")
        if self.metric.relative and number <= 0:
            raise NoValue(
                f"{self.name} must be above 0 to be compared in percent, got {number:g}: give --eps in its unit"
            )
        return number

    def _measured(self, run: Run, variables: Mapping[str, str]) -> float | Below:
        if self.kind == "time":
            return 1e3 * run.seconds
        if self.kind == "user":
            return max(1e3 * run.user, LEAST_CPU_MS)
        if self.kind == "system":
            return max(1e3 * run.system, LEAST_CPU_MS)
        if self.kind == "rss":
            return run.rss / 1e6 if run.rss > run.least_rss else Below(run.least_rss / 1e6)
        if self.kind == "exit":
            return float(run.code == 0)
        if self.kind == "size":
            return self._size(run, variables)
        return self._json(run) if self.kind == "json" else self._stdout(run)

    def path(self, variables: Mapping[str, str]) -> str:
        """Return the file or folder whose size it is."""
        return PLACE.sub(lambda place: variables.get(place[1], place[0]), self.argument)

    def _size(self, run: Run, variables: Mapping[str, str]) -> float:
        size = run.sizes[self.path(variables)]
        if isinstance(size, str):
            raise NoValue(f"{self.name}: {size}")
        return size / 1e3

    def _stdout(self, run: Run) -> float:
        found = re.search(self.argument, run.stdout)
        if found is None:
            raise NoValue(f"{self.name}: nothing on stdout matches {self.argument!r}")
        text = found[1] if found.re.groups else found[0]
        return _number(self.name, text)

    def _json(self, run: Run) -> float:
        lines = run.stdout.strip().splitlines()
        try:
            value: Any = json.loads(lines[-1])
            for key in self.argument.split("."):
                value = value[key]
        except (IndexError, KeyError, TypeError, ValueError, RecursionError):
            raise NoValue(f"{self.name}: the last line on stdout is no JSON object with {self.argument!r}") from None
        return _number(self.name, value)


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise NoValue(f"{name} must be a number, got {str(value)[:100]!r}") from None


def source_of(
    text: str, eps: Mapping[str, str], units: Mapping[str, str] | None = None, exact: Collection[str] = ()
) -> Source:
    """Read a metric as it is written on the command line; exact: names of those that are the same in all runs.

    >>> source_of("time", {}).metric.unit
    'ms'
    >>> source_of("score:max>=0.5=stdout~score: (.*)", {"score": "0.1"}).guard
    Guard(metric='score', sense='>=', limit=0.5)
    """
    # size@PATH alone is short for size=size@PATH
    found = GRAMMAR.fullmatch(f"size={text.strip()}" if text.strip().startswith("size@") else text.strip())
    if found is None:
        raise InvalidInput(
            f"a metric must be written NAME[:min|:max][:pass-fail][>=GUARD|<=GUARD][=SOURCE], got {text!r}"
        )
    name = checks.name("name of a metric", found["name"].strip())
    given = None if found["direction"] is None else checks.direction(name, found["direction"])
    kind, argument = _kind(name, found["source"])
    direction, unit, usual = BUILT_IN.get(kind, (checks.usual_direction(name), "", "0"))
    if given is None and direction is None:
        raise InvalidInput(f"metric {name!r} must say what is better: write {name}:min or {name}:max")
    if kind == "exit" and given == "min":
        raise InvalidInput("metric exit is the rate of success: more is better")
    if kind in BUILT_IN and name in (units or {}):
        raise InvalidInput(f"unit of metric {name!r} must be left as it is ({unit or 'a rate'})")
    size = _eps(name, eps.get(name, usual))
    relative = isinstance(size, str)
    if kind == "exit":
        eps_of_rate(name, eps.get(name, usual))
    if kind == "size" and re.search(r"[<>]=[\d.]+$", argument):
        raise InvalidInput(f"a limit must be written before the source, such as size<=100=size@PATH, got {text!r}")
    guard = None
    if found["sense"]:
        try:
            limit = checks.number(f"limit of metric {name!r}", float(found["limit"]))
        except ValueError:
            raise InvalidInput(f"limit of metric {name!r} must be a number, got {found['limit']!r}") from None
        guard = Guard(name, found["sense"], limit)
        if relative and limit <= 0:
            raise InvalidInput(f"limit of metric {name!r} must be above 0 where eps is in percent, got {limit:g}")
    if name in (units or {}):
        unit = checks.name(f"unit of metric {name!r}", (units or {})[name])
    metric = Metric(
        name,
        given or direction or "min",
        size or None,
        unit,
        bounds=(0.0, 1.0) if kind == "exit" else None,
        exact=kind == "size" or name in exact,
        kind=PASS_FAIL if found["kind"] else NUMBER,
    )
    return Source(metric, kind, argument, guard)


def _kind(name: str, source: str | None) -> tuple[str, str]:
    """Where the number comes from, and the path, pattern or key that goes with it."""
    text = source if source is not None else name
    for mark, kind in (("@", "size"), ("~", "stdout"), ("@", "json")):
        head, found, argument = text.partition(mark)
        if found and head.strip() == kind:
            if not argument:
                raise InvalidInput(f"source of metric {name!r} must name what comes after {kind}{mark}, got nothing")
            if kind == "stdout":
                _compiled(name, argument)
            return kind, argument
    if text in ("time", "user", "system", "rss", "exit"):
        return text, ""
    raise InvalidInput(
        f"source of metric {name!r} must be time, user, system, rss, exit, size@PATH, stdout~REGEX or json@KEY, "
        f"got {text!r}"
    )


def _compiled(name: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as problem:
        raise InvalidInput(f"pattern of metric {name!r} must be a regular expression, but: {problem}") from None


def _eps(name: str, text: str) -> float | str:
    """Read an eps: a share of the value, or a number in the metric's unit."""
    number = checks.number(f"eps of metric {name!r}", _eps_number(name, text.rstrip("%")), least=0.0)
    return text if text.endswith("%") else number


def eps_of_rate(name: str, text: str) -> float:
    """Read the eps of a share of successes."""
    size = _eps(name, text)
    if isinstance(size, str):
        raise InvalidInput(f"eps of metric {name!r} must be a number such as 0.05, for a rate may be 0, got {text!r}")
    return size


def _eps_number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(
            f"eps of metric {name!r} must be a number or a percentage such as 2%, got {text!r}"
        ) from None
