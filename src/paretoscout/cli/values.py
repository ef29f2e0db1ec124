"""Values as they are written on the command line: metrics, [METRIC=]NUMBER, NAME[:SETTING=VALUE...]."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput, UnknownName
from ..written import algorithm as algorithm
from ..written import give_up as give_up
from ..written import goal as goal
from ..written import knows_all as knows_all
from .conventions import pairs

if TYPE_CHECKING:
    from ..statement import Metric


def kind_of(text: str) -> tuple[str, str]:
    """Read the end of NAME[:min|:max][:pass-fail]; return the rest and the kind of metric.

    >>> kind_of("passed:max:pass-fail"), kind_of("quality:max")
    (('passed:max', 'pass/fail'), ('quality:max', 'number'))
    """
    from ..statement import NUMBER, PASS_FAIL

    rest, _, kind = text.rpartition(":")
    return (rest, PASS_FAIL) if rest and kind == PASS_FAIL.replace("/", "-") else (text, NUMBER)


def direction_of(text: str) -> tuple[str, str]:
    """Read NAME[:min|:max]; what is not said is told by the name, see `checks.usual_direction`, else it is max.

    >>> direction_of("time:minimize"), direction_of("quality"), direction_of("latency_ms")
    (('time', 'min'), ('quality', 'max'), ('latency_ms', 'min'))
    """
    from .. import checks

    name, _, direction = text.rpartition(":") if ":" in text else (text, "", checks.usual_direction(text) or "max")
    if ":" in name:
        raise InvalidInput(
            f"name of a metric must have no ':' in it, because after that comes min or max, and then perhaps "
            f"pass-fail, got {text!r}: call it otherwise"
        )
    return name, checks.direction(name, direction)


def unsaid(texts: Sequence[str]) -> str:
    """Say which directions were taken of metrics that were written without one; empty if there is none.

    >>> unsaid(["latency_ms", "quality", "size:min"])
    'smaller latency_ms is better, larger quality is better: taken so; -m NAME:min or -m NAME:max says otherwise'
    """
    taken = [direction_of(rest) for rest, _ in map(kind_of, texts) if ":" not in rest]
    said = ", ".join(f"{'smaller' if direction == 'min' else 'larger'} {name} is better" for name, direction in taken)
    return f"{said}: taken so; -m NAME:min or -m NAME:max says otherwise" if said else ""


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
    known: Callable[[str], Metric] | None = None,
) -> list[Metric]:
    """Return the metrics that are written as -m, --eps, --unit, --bounds, --exact, --scale and --ratio.

    known: what is known of a metric that is written as -m, if it is more than its name and direction.
    """
    from ..statement import PASS_FAIL, Metric

    read = [kind_of(text) for text in texts]
    stated = [Metric(*direction_of(text)) if known is None else known(text) for text, _ in read]
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
    more["kind"] = {name: kind for name, (_, kind) in zip(names, read, strict=True) if kind == PASS_FAIL}
    return [
        _with(metric, {field: given[metric.name] for field, given in more.items() if metric.name in given})
        for metric in stated
    ]


def _with(metric: Metric, given: dict[str, Any]) -> Metric:
    """Return a metric with what is written of it; a plain eps in place of one in percent compares by differences."""
    if isinstance(metric.eps, str) and not isinstance(given.get("eps", ""), str):
        given = {"scale": "linear", **given}
    return replace(metric, **given)


def _two(name: str, text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InvalidInput(f"--bounds must be written METRIC=LOW,HIGH, got {f'{name}={text}'!r}") from None
    return low, high


def several(text: str) -> list[str]:
    """Split a list of algorithms; commas within brackets belong to a setting: sigma=[0.1,0.2]."""
    parts = [part for part in re.split(r",(?![^\[]*\])", text) if part.strip()]
    if not parts:
        raise InvalidInput("--algorithms must name at least one algorithm, got none")
    return parts
