"""What a finished table of measurements already proves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..algorithms.contract import Settings
from ..errors import InvalidInput, UnknownName
from ..frames import Columns
from ..problem import Metric
from ..verdicts import VerdictTable
from .spec import Guard
from .study import Study


def analyze(
    frame: Any,
    arm: str,
    metrics: Mapping[str, str] | Sequence[Metric],
    *,
    delta: float = 0.05,
    sigma: Any = None,
    guards: Sequence[str | Guard] = (),
    contexts: Sequence[str] = (),
    algorithm: str | Settings = "scout",
    metric: str | None = None,
    value: str | None = None,
) -> VerdictTable:
    """Return which options are proven to be on the front, which to be dominated, and by whom.

    frame: pandas, polars, pyarrow or a dict of columns. Wide form: a row for each measurement, a column for each
    metric, in which cells may be empty. Long form: a row for each number; name the columns with the metric (`metric`)
    and the number (`value`). The rest is as in `Study`. The guarantee holds however the rows were chosen, as long as
    nobody looked ahead at their outcomes; so it also holds if more rows are added and the table is analysed again.

    >>> runs = {"model": ["a", "a", "a", "b", "b", "b"], "quality": [0.91, 0.9, 0.92, 0.5, 0.52, 0.51]}
    >>> analyze(runs, arm="model", metrics={"quality": "max"}, sigma=0.02).verdicts
    ('front', 'dominated')
    """
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
    study = Study(
        arms,
        metrics,
        delta=delta,
        storage="memory",
        sigma=sigma,
        guards=guards,
        contexts=contexts,
        algorithm=algorithm,
    )
    if metric is None or value is None:
        study.tell_frame(frame, arm=arm)
        return study.verdicts()
    cells: dict[str, list[float | None]] = {name: [None] * len(labels) for name in study.spec.columns}
    for row, (name, number) in enumerate(zip(columns.labels(metric), columns.numbers_or_none(value), strict=True)):
        if name not in cells:
            raise UnknownName(f"metric in row {row} of this table:", name, cells)
        cells[name][row] = number
    study.tell_frame({"arm": labels, **cells})
    return study.verdicts()
