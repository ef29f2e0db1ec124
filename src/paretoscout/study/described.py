"""A study described as a mapping: in a YAML file (`paretoscout create study.yaml`), or in JSON that a server gets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import checks
from ..errors import InvalidInput, UnknownName
from ..frames import READERS, names_in, read_csv, read_yaml
from ..statement import Metric
from ..written import algorithm, give_up, goal, knows_all, seconds

KEYS = (
    "name",
    "title",
    "arms",
    "contexts",
    "model",
    "theta_max",
    "cost",
    "metrics",
    "sigma",
    "guards",
    "delta",
    "algorithm",
    "seed",
    "lease",
    "give_up",
    "at_give_up",
    "order",
    "goal",
    "budget",
    "blocks",
    "target",
    "sample",
    "tradeoffs",
)
METRIC_KEYS = ("direction", "eps", "unit", "bounds", "exact", "scale", "ratio", "kind")


def read(path: Path) -> dict[str, Any]:
    """Return the settings of `Study` that a YAML file holds, and perhaps its name."""
    return settings_of(read_yaml(path, "a study"), f"{path}", path.parent)


def settings_of(described: Any, where: str, folder: Path | None = None) -> dict[str, Any]:
    """Return the settings of `Study` that a mapping describes, and perhaps its name.

    where: what to call it. folder: arms and blocks may be in files there; None: they must be lists.
    """
    given = _mapping(described, where, KEYS)
    for key in ("arms", "metrics"):
        if not given.get(key):
            raise InvalidInput(f"{where} must have {key}, got none", field=key)
    metrics = _metrics(given.pop("metrics"), where)
    noise_given = knows_all(given.get("sigma"), [metric.name for metric in metrics])
    settings: dict[str, Any] = {
        "arms": _arms(given.pop("arms"), where, folder),
        "metrics": metrics,
        "algorithm": _algorithm(given.pop("algorithm", "scout"), noise_given, where),
    }
    if isinstance(given.get("blocks"), str) and given["blocks"] != "rounds":
        given["blocks"] = names_in(_file(given["blocks"], f"blocks of {where}", folder))
    for key in ("contexts", "guards"):
        settings[key] = _list(given.pop(key, []), f"{key} of {where}")
    if "lease" in given:
        given["lease"] = seconds("lease", given["lease"])
    if "give_up" in given:
        given["give_up"] = give_up(given["give_up"])
    if "goal" in given:
        given["goal"] = goal(given["goal"])
    return {**settings, **given}


def _file(name: str, what: str, folder: Path | None) -> Path:
    """Return a file that is named; a server reads none for its callers."""
    if folder is None:
        raise InvalidInput(f"{what} must be a list, got {checks.got(name)}")
    return folder / name


def _mapping(given: Any, what: str, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{what} must have keys ({', '.join(known)}), got {checks.got(given)}")
    for key in given:
        if key not in known:
            raise UnknownName(f"key in {what}:", key, known)
    return dict(given)


def _list(given: Any, what: str) -> list[Any]:
    if not isinstance(given, (str, list)):
        raise InvalidInput(f"{what} must be a list, got {checks.got(given)}")
    return [given] if isinstance(given, str) else given


def _arms(given: Any, where: str, folder: Path | None) -> Any:
    """Names; or mappings with the columns of a table; or the name of a file of options, beside this one."""
    if isinstance(given, str):
        file = _file(given, f"arms of {where}", folder)
        return READERS.get(file.suffix.lower(), read_csv)(file)
    rows = _list(given, f"arms of {where}")
    if all(isinstance(row, Mapping) for row in rows):
        columns = list(rows[0])
        for row in rows:
            if list(row) != columns:
                raise InvalidInput(
                    f"arms of {where} must all have the same keys ({', '.join(columns)}), got {checks.got(row)}"
                )
        return {column: [row[column] for row in rows] for column in columns}
    return [_text(row, where) for row in rows]


def _text(name: Any, where: str) -> str:
    # yes, no, on, off and the like are not texts in YAML
    if isinstance(name, bool) or not isinstance(name, (str, int, float)):
        raise InvalidInput(f"arms of {where} must be texts, got {checks.got(name)}: put it in quotes")
    return str(name)


def _metrics(given: Any, where: str) -> list[Metric]:
    """Read `name: direction`, or `name:` with further keys."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"metrics of {where} must be written 'name: min' or 'name: max', got {checks.got(given)}")
    metrics = []
    for name, about in given.items():
        how = {"direction": about} if isinstance(about, str) else about
        metrics.append(Metric(str(name), **_mapping(how, f"metric {name!r} of {where}", METRIC_KEYS)))
    return metrics


def _algorithm(given: Any, noise_given: bool, where: str) -> Any:
    if isinstance(given, str):
        return algorithm(given, noise_given)
    raise InvalidInput(f"algorithm of {where} must be written NAME[:SETTING=VALUE...], got {checks.got(given)}")
