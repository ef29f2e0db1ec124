"""A sweep described in a YAML file: `paretoscout sweep sweep.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from .. import problems
from ..errors import InvalidInput, UnknownName
from ..frames import read_yaml
from ..problem import Problem
from ..statement import Metric

KEYS = ("problems", "algorithms", "grid", "replicates", "seed", "out", "engine", "workers", "keep")
#: Of a problem: a built-in one or a data set by its name, or a table of measurements.
PROBLEM_KEYS = ("name", "load", "sigma", "csv", "arm", "metrics", "block")


def read(path: Path) -> dict[str, Any]:
    """Return what `sweep` takes, as a YAML file describes it; files that it names lie beside it."""
    given = read_yaml(path, "a sweep")
    described = _keys(given, f"{path}", KEYS)
    for key in ("problems", "algorithms"):
        if not described.get(key):
            raise InvalidInput(f"{path} must have {key}, got none", field=key)
    described = {key: value for key, value in described.items() if value is not None}
    each = described["problems"] if isinstance(described["problems"], list) else [described["problems"]]
    described["problems"] = [_problem(one, f"a problem of {path}", path.parent) for one in each]
    return described


def _keys(given: Any, what: str, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{what} must have keys ({', '.join(known)}), got {given!r}")
    for key in given:
        if key not in known:
            raise UnknownName(f"key in {what}:", key, known)
    return dict(given)


def _problem(given: Any, what: str, folder: Path) -> Problem:
    if isinstance(given, str):
        return problems.load(given)
    described = _keys(given, what, PROBLEM_KEYS)
    for key in ("name", "load", "csv", "arm", "block"):
        if not isinstance(described.get(key, ""), str):
            raise InvalidInput(f"{key} of {what} must be text, got {described[key]!r}")
    if ("load" in described) == ("csv" in described):
        raise InvalidInput(f"{what} must have load (the name of one that is known) or csv (a file), got {given!r}")
    if "load" in described:
        found = problems.load(described["load"], sigma=described.get("sigma"))
        return found.replace(name=described["name"]) if "name" in described else found
    metrics = described.get("metrics")
    if not isinstance(metrics, Mapping) or not described.get("arm"):
        raise InvalidInput(f"{what} must have arm, a column, and metrics, such as {{time: min}}, got {given!r}")
    file = folder / described["csv"]
    return problems.table(
        problems.read_csv(file),
        arm=described["arm"],
        metrics=[_metric(name, how) for name, how in metrics.items()],
        sigma=described.get("sigma", "each"),
        name=described.get("name", file.stem),
        **({"block": described["block"]} if "block" in described else {}),
    )


def _metric(name: str, how: Any) -> Metric:
    known = tuple(each.name for each in fields(Metric) if each.name != "name")
    return Metric(name, **_keys(how, f"metric {name!r}", known)) if isinstance(how, Mapping) else Metric(name, how)
