"""MLflow: `search_runs(...).to_csv`, `mlflow experiments csv`, or the SQLite file. Written for 3.18."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .contract import Format, Found, Measure, Record, Roles, Source, labels_of, varying
from .files import csv_rows, rows_of

TABLES = {"runs", "latest_metrics", "params", "experiments"}
#: Parameters that say on which draw a setting was tried; they are no part of it.
SEEDS = ("seed", "random_state", "random_seed", "fold", "cv_fold", "split")
FINISHED = "FINISHED"


def is_it(source: Source) -> bool:
    """Whether it is a table of runs, or the database of them."""
    if source.kind == "sqlite":
        return set(source.value) >= TABLES
    return source.starts("run_id") and any(column.startswith("metrics.") for column in source.value)


def read(source: Source) -> Found:
    """Take the last value of every metric of every finished run, the earliest run first."""
    runs = _of_sqlite(source) if source.kind == "sqlite" else _of_csv(source)
    records, names = [], dict[str, None]()
    for status, params, metrics in runs:
        known = {name: number for name, value in metrics.items() if (number := number_in(value)) is not None}
        names |= dict.fromkeys(known)
        records.append(Record({"run": "", **params}, known, failed=status != FINISHED))
    left_out = ["values before the last one: a history is one run"]
    return Found(records, {name: Measure(None) for name in names}, left_out)


def number_in(value: Any) -> float | None:
    """Return the number that a cell holds, if it is finite."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if abs(number) < float("inf") else None


def _of_csv(source: Source) -> list[tuple[str, dict[str, str], dict[str, Any]]]:
    rows = [row for _, row in csv_rows(source)]
    rows.sort(key=lambda row: row.get("start_time") or "")
    return [(row.get("status") or FINISHED, _under(row, "params."), _under(row, "metrics.")) for row in rows]


def _under(row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): value for name, value in row.items() if name and name.startswith(prefix) and value
    }


def _of_sqlite(source: Source) -> list[tuple[str, dict[str, str], dict[str, Any]]]:
    params: dict[str, dict[str, str]] = {}
    for key, value, run in rows_of(source.path, "select key, value, run_uuid from params"):
        params.setdefault(run, {})[key] = str(value)
    metrics: dict[str, dict[str, Any]] = {}
    for key, value, is_nan, run in rows_of(source.path, "select key, value, is_nan, run_uuid from latest_metrics"):
        metrics.setdefault(run, {})[key] = None if is_nan else value
    runs = rows_of(
        source.path,
        "select run_uuid, status from runs where lifecycle_stage != 'deleted' order by start_time, run_uuid",
    )
    return [(status, params.get(run, {}), metrics.get(run, {})) for run, status in runs]


def roles(records: Sequence[Record]) -> Roles:
    """An option is all parameters that differ, but for seeds and folds: those are what it was tried on."""
    differ = varying(records, [name for name in labels_of(records) if name not in ("run", "file")])
    seeds = tuple(name for name in differ if name.lower() in SEEDS)
    return Roles(tuple(name for name in differ if name not in seeds) or ("run",), seeds)


FORMAT = Format("MLflow", is_it, "runs", read, roles, more="more seeds of each setting")
