"""Optuna: `study.trials_dataframe().to_csv`, the SQLite file (schema 12), or the journal. Written for 5.0."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..errors import InvalidInput
from .contract import Format, Found, Measure, Record, Roles, Source, labels_of, text, varying
from .files import csv_rows, json_of, rows_of
from .mlflow import SEEDS, number_in

TABLES = {"studies", "trials", "trial_values", "version_info"}
COMPLETE = "COMPLETE"
#: Numbers of the journal: what happened, states, directions.
CREATE, SYSTEM_ATTR, NEW_TRIAL, PARAM, STATE = 0, 3, 4, 5, 6
STATES = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")
WAYS = {1: "min", 2: "max", "MINIMIZE": "min", "MAXIMIZE": "max"}


def is_it(source: Source) -> bool:
    """Whether it is a table of trials, the database of them, or the journal."""
    if source.kind == "sqlite":
        return set(source.value) >= TABLES
    if source.kind == "csv":
        valued = any(column == "value" or column.startswith("values_") for column in source.value)
        return bool(source.value) and source.value[0] in ("number", "") and valued and "state" in source.value
    return source.items_have("op_code", "worker_id")


def read(source: Source) -> Found:
    """Take every trial that was completed, in their order."""
    kinds = {"sqlite": _of_sqlite, "csv": _of_csv}
    trials, names, ways = kinds.get(source.kind, _of_journal)(source)
    records = []
    for state, params, values in trials:
        known = {name: number for name, value in values.items() if (number := number_in(value)) is not None}
        records.append(Record({"trial": "", **params}, known, failed=state != COMPLETE or not known))
    measures = {name: Measure(ways.get(name)) for name in names}
    assumed = ["the sampler may choose what to repeat by what came out: trials count in their order"]
    return Found(records, measures, [], assumed)


Trials = tuple[list[tuple[str, dict[str, str], dict[str, Any]]], list[str], dict[str, str]]


def _of_csv(source: Source) -> Trials:
    rows = [row for _, row in csv_rows(source)]
    names = {
        name: name.removeprefix("values_") for name in source.value if name == "value" or name.startswith("values_")
    }
    trials = [
        (
            row.get("state") or "",
            {name.removeprefix("params_"): value for name, value in row.items() if name and name.startswith("params_")},
            {shown: row[name] for name, shown in names.items()},
        )
        for row in rows
    ]
    return trials, list(names.values()), {}


def _of_sqlite(source: Source) -> Trials:
    studies = rows_of(source.path, "select study_id, study_name from studies")
    if len(studies) != 1:
        there = ", ".join(str(name) for _, name in studies) or "none"
        raise InvalidInput(
            f"{source} must have one study, got {there}: write its trials with trials_dataframe().to_csv"
        )
    of_study = rows_of(source.path, "select key, value_json from study_system_attributes")
    labels = dict(of_study).get("study:metric_names")
    ways = rows_of(source.path, "select objective, direction from study_directions order by objective")
    names: list[str] = json.loads(labels) if labels else _numbered(len(ways))
    params: dict[int, dict[str, str]] = {}
    query = "select trial_id, param_name, param_value, distribution_json from trial_params"
    for trial, name, value, law in rows_of(source.path, query):
        params.setdefault(trial, {})[name] = _parameter(value, json_of(law, f"a parameter of {source}"))
    values: dict[int, dict[str, Any]] = {}
    query = "select trial_id, objective, value from trial_values where value_type = 'FINITE'"
    for trial, objective, value in rows_of(source.path, query):
        values.setdefault(trial, {})[names[objective]] = value
    trials = [
        (str(state), params.get(trial, {}), values.get(trial, {}))
        for trial, state in rows_of(source.path, "select trial_id, state from trials order by number")
    ]
    return trials, names, {name: WAYS[way] for name, (_, way) in zip(names, ways, strict=True) if way in WAYS}


def _of_journal(source: Source) -> Trials:
    names: list[str] = []
    ways: list[int] = []
    trials: list[list[Any]] = []
    studies = 0
    try:
        for event in source.value if source.kind == "lines" else [source.value]:
            code = event["op_code"]
            if code == CREATE:
                ways, studies = event["directions"], studies + 1
            elif code == SYSTEM_ATTR:
                names = event["system_attr"].get("study:metric_names", names)
            elif code == NEW_TRIAL:
                trials.append(["RUNNING", {}, []])
            elif code == PARAM:
                law = json.loads(event["distribution"])
                trials[event["trial_id"]][1][event["param_name"]] = _parameter(event["param_value_internal"], law)
            elif code == STATE:
                trial = trials[event["trial_id"]]
                trial[0], trial[2] = STATES[event["state"]], event.get("values") or []
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as problem:
        raise InvalidInput(
            f"{source} must be a whole journal of Optuna, but: {type(problem).__name__} {problem}"
        ) from None
    if studies != 1:
        raise InvalidInput(
            f"{source} must have one study, got {studies}: write its trials with trials_dataframe().to_csv"
        )
    names = names or _numbered(len(ways))
    told = [(state, params, dict(zip(names, values, strict=False))) for state, params, values in trials]
    return told, names, {name: WAYS[way] for name, way in zip(names, ways, strict=True) if way in WAYS}


def _numbered(n: int) -> list[str]:
    return ["value"] if n == 1 else [str(number) for number in range(n)]


def _parameter(value: Any, law: Any) -> str:
    """Return a parameter as it was suggested; of a choice, what is kept is its number."""
    attributes = law.get("attributes", {}) if isinstance(law, dict) else {}
    if "choices" in attributes:
        return text(attributes["choices"][int(value)])
    return text(float(value))


def roles(records: Sequence[Record]) -> Roles:
    """An option is all parameters that differ, but for seeds and folds."""
    differ = varying(records, [name for name in labels_of(records) if name not in ("trial", "file")])
    seeds = tuple(name for name in differ if name.lower() in SEEDS)
    return Roles(tuple(name for name in differ if name not in seeds) or ("trial",), seeds)


FORMAT = Format("Optuna", is_it, "runs", read, roles, more="more trials of the settings that matter (enqueue_trial)")
