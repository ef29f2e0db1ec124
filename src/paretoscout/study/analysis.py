"""What a finished table of measurements already proves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..algorithms.contract import Settings
from ..defaults import DELTA
from ..errors import InvalidInput, UnknownName
from ..frames import Columns
from ..kernels.evidence import FEW_VALUES
from ..statement import Metric
from ..verdicts import VerdictTable
from .spec import Guard, guards_of, metrics_of, sigma_of
from .study import Study

#: In a table of fewer rows than this nobody can tell that a metric has few values.
ENOUGH_ROWS = 20


def analyze(
    frame: Any,
    arm: str,
    metrics: Mapping[str, str] | Sequence[Metric],
    *,
    delta: float = DELTA,
    sigma: Any = None,
    guards: Sequence[str | Guard] = (),
    contexts: Sequence[str] = (),
    algorithm: str | Settings = "scout",
    goal: str | int = "practical",
    metric: str | None = None,
    value: str | None = None,
    time: str | None = None,
    seed: int = 0,
) -> VerdictTable:
    """Return which options are proven to be on the front, which to be dominated, and by whom.

    frame: pandas, polars, pyarrow or a dict of columns. Wide form: one row per measurement and one column per metric;
    cells may be empty. Long form: one row per number; `metric` names the column with the metric, `value` the column
    with the number.
    arm: the column that names the option.
    time: a column of numbers that gives the order of the rows. None: the order is drawn from the seed.
    The rest is as in `Study`.

    The guarantee holds however the rows were chosen, if nobody looked ahead at their outcomes. So you may add more rows
    and analyse the table again. Verdicts are read after the last row. A metric with few different values is not
    normal. If these are 0 and 1, they are taken as its bounds; otherwise give bounds (or `exact`, if a number that
    never varies is certain).

    >>> runs = {"model": ["a", "a", "a", "b", "b", "b"], "quality": [0.91, 0.9, 0.92, 0.5, 0.52, 0.51]}
    >>> analyze(runs, arm="model", metrics={"quality": "max"}, sigma=0.02).verdicts
    ('front', 'dominated')
    """
    asked = {"delta": delta, "sigma": sigma, "guards": guards, "contexts": contexts, "goal": goal, "seed": seed}
    return study_of(frame, arm, metrics, algorithm=algorithm, metric=metric, value=value, time=time, **asked).verdicts()


def study_of(
    frame: Any,
    arm: str,
    metrics: Mapping[str, str] | Sequence[Metric],
    *,
    sigma: Any = None,
    guards: Sequence[str | Guard] = (),
    contexts: Sequence[str] = (),
    metric: str | None = None,
    value: str | None = None,
    time: str | None = None,
    **settings: Any,
) -> Study:
    """Return a study in memory that was told a table; the parameters are those of `analyze`."""
    if (metric is None) != (value is None):
        raise InvalidInput("metric and value of analyze must be given together, for a table in long form")
    columns = Columns(frame, "this table")
    labels = columns.labels(arm)
    first = {label: row for row, label in reversed(list(enumerate(labels)))}
    arms: dict[str, Any] = {"arm": list(dict.fromkeys(labels))}
    for name in contexts:
        values = columns.numbers(name).tolist() if columns.is_numeric(name) else columns.labels(name)
        for label, given in zip(labels, values, strict=True):
            if given != values[first[label]]:
                raise InvalidInput(f"context {name!r} must be the same in all rows of an arm, but differs in {label!r}")
        arms[name] = [values[first[label]] for label in arms["arm"]]
    stated = metrics_of(metrics)
    names = list(dict.fromkeys([*(each.name for each in stated), *(guard.metric for guard in guards_of(guards))]))
    if metric is None or value is None:
        cells = {name: columns.numbers_or_none(name) for name in names if name in columns.names}
    else:
        cells = _wide(columns, names, metric, value)
    known = sigma_of(sigma, names, len(stated))
    study = Study(
        arms,
        [_bounded(each, cells.get(each.name, [])) if known[k] is None else each for k, each in enumerate(stated)],
        storage="memory",
        sigma=sigma,
        guards=guards,
        contexts=contexts,
        **settings,
    )
    when = {} if time is None else {" ": columns.numbers(time)}  # names that no metric has
    study.tell_frame({"": labels, **cells, **when}, arm="", time=None if time is None else " ")
    return study


def _wide(columns: Columns, names: Sequence[str], metric: str, value: str) -> dict[str, list[float | None]]:
    """Return a table in long form as columns, a number in each row."""
    cells: dict[str, list[float | None]] = {name: [None] * columns.n_rows for name in names}
    for row, (name, number) in enumerate(zip(columns.labels(metric), columns.numbers_or_none(value), strict=True)):
        if name not in cells:
            raise UnknownName(f"metric in row {row} of this table:", name, cells)
        cells[name][row] = number
    return cells


def _bounded(metric: Metric, values: Sequence[float | None]) -> Metric:
    """Return a metric whose noise is unknown, with bounds if its values tell them; refuse few others."""
    there = [value for value in values if value is not None]
    different = set(there)
    if metric.bounds is not None or metric.exact or len(there) < ENOUGH_ROWS or len(different) > FEW_VALUES:
        return metric
    if different <= {0.0, 1.0} and not metric.relative:
        return replace(metric, bounds=(0.0, 1.0))
    raise InvalidInput(
        f"bounds of metric {metric.name!r} must be given, for its noise is not normal: it has only {len(different)} "
        f"different values in {len(there)} rows, from {min(different):g} to {max(different):g}. Say between which "
        f"values it lies (bounds=(LOW, HIGH); --bounds {metric.name}=LOW,HIGH), or that a number that never varies is "
        f"certain (exact=True; --exact {metric.name})"
    )
