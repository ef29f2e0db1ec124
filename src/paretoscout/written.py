"""Values as people write them, on the command line, in YAML or JSON: time spans, goals, NAME[:SETTING=VALUE...]."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .errors import InvalidInput

if TYPE_CHECKING:
    from .algorithms import Algorithm, Settings

#: Possessive, because going back over a long row of digits would take quadratic time.
SPAN = re.compile(r"([0-9]++(?:\.[0-9]++)?|\.[0-9]++)\s*+(s|m|min|h|d|)")
SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(
    option: str, text: Any, form: str = "a time such as 90, 90s, 30m, 2h or 1d", *, with_unit: bool = False
) -> float:
    """Read a time span; a plain number is in seconds, unless `with_unit` is asked for.

    >>> seconds("--lease", "90"), seconds("--lease", "30m"), seconds("--lease", "2h")
    (90.0, 1800.0, 7200.0)
    """
    from . import checks  # numpy comes with it, which commands wait for

    found = SPAN.fullmatch(text.strip() if isinstance(text, str) else checks.got(text))
    number = None if found is None else checks.numeral(found[1])
    if found is None or number is None or (with_unit and not found[2]):
        raise InvalidInput(f"{option} must be {form}, got {checks.got(str(text) if number is None else text)}")
    return number * SECONDS[found[2]]


def give_up(text: Any) -> Any:
    """Read when to give up: "lease", "never", or a time span.

    >>> give_up("lease"), give_up("never"), give_up("2h")
    ('lease', None, 7200.0)
    """
    if text in ("lease", "never", None):
        return "lease" if text == "lease" else None
    return seconds("--give-up", text)


def goal(text: Any) -> Any:
    """Read front, cover, practical or a number of arms."""
    return int(text) if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 20 else text


def algorithm(text: str, noise_given: bool) -> Settings:
    """Read NAME[:SETTING=VALUE...]; where sigma is not given, an algorithm that can do without does."""
    record, values = named(text)
    if not noise_given and "noise" in record.settings.__dataclass_fields__:
        values.setdefault("noise", "unknown")
    return record.settings(**values)


def named(text: str) -> tuple[Algorithm, dict[str, Any]]:
    """Read NAME[:SETTING=VALUE...]: the algorithm, and the settings that were named."""
    from . import algorithms as known

    name, *written = text.strip().split(":")
    record = known.get(name)
    values: dict[str, Any] = {}
    for pair in written:
        key, _, value = pair.partition("=")
        if key not in record.settings.__dataclass_fields__ or not value:
            from . import checks

            fields = ", ".join(record.settings.__dataclass_fields__)
            raise InvalidInput(
                f"settings of {name} must be written SETTING=VALUE with one of {fields}, got {checks.got(pair)}"
            )
        try:
            values[key] = json.loads(value)
        except (ValueError, RecursionError):
            values[key] = value
    record.settings(**values)  # refused now, not in the middle of the work
    return record, values


def knows_all(sigma: Any, names: Sequence[str]) -> bool:
    """Whether sigma is given for every metric."""
    if isinstance(sigma, Mapping):
        return all(sigma.get(name) is not None for name in names)
    return sigma is not None
