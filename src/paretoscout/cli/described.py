"""A study described in a YAML file: what `paretoscout create study.yaml` reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import checks
from ..errors import InvalidInput, MissingExtra, UnknownName
from . import values
from .conventions import seconds

if TYPE_CHECKING:
    from ..statement import Metric

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
)
METRIC_KEYS = ("direction", "eps", "unit", "bounds", "exact", "scale", "ratio")


def read(path: Path) -> dict[str, Any]:
    """Return the settings of `Study` that a YAML file holds, and perhaps its name."""
    given = _mapping(_loaded(path), f"{path}", KEYS)
    for key in ("arms", "metrics"):
        if not given.get(key):
            raise InvalidInput(f"{path} must have {key}, got none")
    metrics = _metrics(given.pop("metrics"), path)
    noise_given = values.knows_all(given.get("sigma"), [metric.name for metric in metrics])
    settings: dict[str, Any] = {
        "arms": _arms(given.pop("arms"), path),
        "metrics": metrics,
        "algorithm": _algorithm(given.pop("algorithm", "scout"), noise_given, path),
    }
    if isinstance(given.get("blocks"), str):
        given["blocks"] = values.names_in(path.parent / given["blocks"])
    for key in ("contexts", "guards"):
        settings[key] = _list(given.pop(key, []), f"{key} of {path}")
    if "lease" in given:
        given["lease"] = seconds("--lease", given["lease"])
    if "give_up" in given:
        given["give_up"] = values.give_up(given["give_up"])
    return {**settings, **given}


def _loaded(path: Path) -> Any:
    try:
        import yaml
    except ImportError:
        raise MissingExtra("a study in a YAML file", "yaml") from None
    try:
        return checks.not_nested(f"{path}", yaml.safe_load(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise InvalidInput(f"no such file: {path}") from None
    except RecursionError:
        raise InvalidInput(f"{path} must be nested at most {checks.DEEPEST} deep, got more") from None
    except InvalidInput:
        raise
    except (OSError, ValueError, yaml.YAMLError) as problem:
        raise InvalidInput(f"{path} must be a YAML file, but: {' '.join(str(problem).split())}") from None


def _mapping(given: Any, what: str, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{what} must have keys ({', '.join(known)}), got {given!r}")
    for key in given:
        if key not in known:
            raise UnknownName(f"key in {what}:", key, known)
    return dict(given)


def _list(given: Any, what: str) -> list[Any]:
    if not isinstance(given, (str, list)):
        raise InvalidInput(f"{what} must be a list, got {given!r}")
    return [given] if isinstance(given, str) else given


def _arms(given: Any, path: Path) -> Any:
    """Names; or mappings with the columns of a table; or the name of a file of options, beside this one."""
    if isinstance(given, str):
        from ..frames import READERS, read_csv

        file = path.parent / given
        return READERS.get(file.suffix.lower(), read_csv)(file)
    rows = _list(given, f"arms of {path}")
    if all(isinstance(row, Mapping) for row in rows):
        columns = list(rows[0])
        for row in rows:
            if list(row) != columns:
                raise InvalidInput(f"arms of {path} must all have the same keys ({', '.join(columns)}), got {row!r}")
        return {column: [row[column] for row in rows] for column in columns}
    return [_text(row, path) for row in rows]


def _text(name: Any, path: Path) -> str:
    # yes, no, on, off and the like are not texts in YAML
    if isinstance(name, bool) or not isinstance(name, (str, int, float)):
        raise InvalidInput(f"arms of {path} must be texts, got {name!r}: put it in quotes")
    return str(name)


def _metrics(given: Any, path: Path) -> list[Metric]:
    """Read `name: direction`, or `name:` with further keys."""
    from ..statement import Metric

    if not isinstance(given, Mapping):
        raise InvalidInput(f"metrics of {path} must be written 'name: min' or 'name: max', got {given!r}")
    metrics = []
    for name, about in given.items():
        how = {"direction": about} if isinstance(about, str) else about
        metrics.append(Metric(str(name), **_mapping(how, f"metric {name!r} of {path}", METRIC_KEYS)))
    return metrics


def _algorithm(given: Any, noise_given: bool, path: Path) -> Any:
    if isinstance(given, str):
        return values.algorithm(given, noise_given)
    raise InvalidInput(f"algorithm of {path} must be written NAME[:SETTING=VALUE...], got {given!r}")
