"""Values as they are written on the command line: NAME[:min|:max], [METRIC=]NUMBER, NAME[:SETTING=VALUE...]."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput, UnknownName
from .conventions import pairs, seconds

if TYPE_CHECKING:
    from ..algorithms import Algorithm, Settings
    from ..statement import Metric


def direction_of(text: str) -> tuple[str, str]:
    """Read NAME[:min|:max].

    >>> direction_of("time:minimize"), direction_of("quality")
    (('time', 'min'), ('quality', 'max'))
    """
    from .. import checks

    name, _, direction = text.rpartition(":") if ":" in text else (text, "", "max")
    if ":" in name:
        raise InvalidInput(
            f"name of a metric must have no ':' in it, for after that comes min or max, got {text!r}: call it otherwise"
        )
    return name, checks.direction(name, direction)


def json_of(text: str, where: str) -> Any:
    """Read JSON from outside."""
    from .. import checks

    try:
        return checks.not_nested(where, json.loads(text))
    except RecursionError:
        raise InvalidInput(f"{where} must be nested at most {checks.DEEPEST} deep, got more") from None
    except json.JSONDecodeError as problem:
        raise InvalidInput(f"{where} must be JSON, but: {problem}") from None
    except ValueError as problem:  # a whole number of thousands of digits, which Python does not read
        raise InvalidInput(f"{where} must be JSON with finite numbers, but: {problem}") from None


def numbers(option: str, texts: Sequence[str], *, of: str = "metric", shares: bool = False) -> Any:
    """Read [METRIC=]NUMBER: one number for all metrics, or {metric: number}; None where nothing is written.

    of: what is named, if not a metric. shares: a percentage will do as well, and stays a text.

    >>> numbers("--eps", ["time=2%", "quality=0.1"], shares=True)
    {'time': '2%', 'quality': 0.1}
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            values[name] = number if shares and number.endswith("%") else float(number)
        except ValueError:
            raise InvalidInput(f"{option} must be a number or {of.upper()}=NUMBER, got {text!r}") from None
    if "" in values and len(values) > 1:
        raise InvalidInput(f"{option} must be one number for all {of}s or {of.upper()}=NUMBER for each, not both")
    return values.get("", values) if values else None


def metrics(
    texts: Sequence[str],
    *,
    eps: Sequence[str] = (),
    units: Sequence[str] = (),
    bounds: Sequence[str] = (),
    exact: Sequence[str] = (),
    scales: Sequence[str] = (),
    ratios: Sequence[str] = (),
) -> list[Metric]:
    """Return the metrics that are written as -m, --eps, --unit, --bounds, --exact, --scale and --ratio."""
    from ..statement import Metric

    stated = [Metric(*direction_of(text)) for text in texts]
    eps_of = numbers("--eps", eps, shares=True)
    if eps_of is not None and not isinstance(eps_of, Mapping):
        eps_of = dict.fromkeys([metric.name for metric in stated], eps_of)
    more: dict[str, dict[str, Any]] = {
        "eps": eps_of or {},
        "unit": pairs("--unit", units, "METRIC=UNIT"),
        "bounds": {name: _two(name, text) for name, text in pairs("--bounds", bounds, "METRIC=LOW,HIGH").items()},
        "exact": dict.fromkeys(exact, True),
        "scale": pairs("--scale", scales, "METRIC=log"),
        "ratio": numbers("--ratio", ratios) or {},
    }
    if not isinstance(more["ratio"], Mapping):
        raise InvalidInput(f"--ratio must be written METRIC=NUMBER, got {ratios[0]!r}")
    names = [metric.name for metric in stated]
    for field, given in more.items():
        for name in given:
            if name not in names:
                raise UnknownName("metric", name, names, f"in --{field}")
    return [
        replace(metric, **{field: given[metric.name] for field, given in more.items() if metric.name in given})
        for metric in stated
    ]


def names_in(path: Path) -> Any:
    """Read the names of blocks: a text file has one in each line, a CSV or .jsonl file a column of them."""
    from ..frames import READERS

    if path.suffix.lower() in READERS:
        return READERS[path.suffix.lower()](path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as problem:
        raise InvalidInput(f"blocks must be in a file that can be read, got {path}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} must be text in UTF-8, a block in each line") from None
    return [text.strip() for text in lines if text.strip()]


def _two(name: str, text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InvalidInput(f"--bounds must be written METRIC=LOW,HIGH, got {f'{name}={text}'!r}") from None
    return low, high


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
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 20 else text


def algorithm(text: str, noise_given: bool) -> Settings:
    """Read NAME[:SETTING=VALUE...]; where sigma is not given, an algorithm that can do without does."""
    record, values = named(text)
    if not noise_given and "noise" in record.settings.__dataclass_fields__:
        values.setdefault("noise", "unknown")
    return record.settings(**values)


def named(text: str) -> tuple[Algorithm, dict[str, Any]]:
    """Read NAME[:SETTING=VALUE...]: the algorithm, and the settings that were named."""
    from .. import algorithms as known

    name, *written = text.strip().split(":")
    record = known.get(name)
    values: dict[str, Any] = {}
    for pair in written:
        key, _, value = pair.partition("=")
        if key not in record.settings.__dataclass_fields__ or not value:
            fields = ", ".join(record.settings.__dataclass_fields__)
            raise InvalidInput(f"settings of {name} must be written SETTING=VALUE with one of {fields}, got {pair!r}")
        try:
            values[key] = json.loads(value)
        except (ValueError, RecursionError):
            values[key] = value
    record.settings(**values)  # refused now, not in the middle of the work
    return record, values


def several(text: str) -> list[str]:
    """Split a list of algorithms; commas within brackets belong to a setting: sigma=[0.1,0.2]."""
    parts = [part for part in re.split(r",(?![^\[]*\])", text) if part.strip()]
    if not parts:
        raise InvalidInput("--algorithms must name at least one algorithm, got none")
    return parts


def knows_all(sigma: Any, names: Sequence[str]) -> bool:
    """Whether sigma is given for every metric."""
    if isinstance(sigma, Mapping):
        return all(sigma.get(name) is not None for name in names)
    return sigma is not None
