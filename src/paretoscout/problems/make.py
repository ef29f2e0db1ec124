"""gaussian, linear, table: the three ways to state a problem."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InvalidInput, UnknownName
from ..kernels.arrays import FloatArray
from ..problem import Metric, Problem


def gaussian(
    means: Any,
    sigma: Any,
    contexts: Any = None,
    names: Sequence[str] | None = None,
    directions: str | Sequence[str] | None = None,
    *,
    metrics: Sequence[str | Metric] | None = None,
    name: str = "gaussian",
) -> Problem:
    """State a problem by the true means of its arms; samples are normal around them.

    means: (K, L), larger is better unless `directions` says otherwise.
    sigma: noise scale, one number or one per metric.
    contexts: (K, d) features; they need not explain the means.
    names: of the arms; directions: "min"/"max", one or one per metric; metrics: names, or `Metric` objects.

    >>> gaussian([[3.0, 20], [5.0, 90]], sigma=[0.5, 4], names=["small", "large"], directions=["max", "min"])
    <Problem 'gaussian': 2 arms, 2 metrics>
    """
    values = _matrix(means, f"means of problem {name!r}", "(arms, metrics)")
    K, L = values.shape
    return Problem(
        name=name,
        arms=_arm_names(names, K, name),
        metrics=_metrics(metrics, directions, L, name),
        means=values,
        sigma=_per_metric(sigma, L, name),
        contexts=None if contexts is None else _matrix(contexts, f"contexts of problem {name!r}", "(arms, features)"),
        noise="normal noise, sigma given",
    )


def linear(
    contexts: Any,
    theta: Any,
    sigma: Any,
    names: Sequence[str] | None = None,
    directions: str | Sequence[str] | None = None,
    *,
    metrics: Sequence[str | Metric] | None = None,
    name: str = "linear",
) -> Problem:
    """State a problem whose means are exactly linear in the arms' features: contexts (K, d) @ theta (d, L).

    >>> linear([[1, 0], [0, 1], [0.5, 0.5]], theta=[[1, 0], [0, 1]], sigma=0.1)
    <Problem 'linear': 3 arms, 2 metrics, 2 features>
    """
    X = _matrix(contexts, f"contexts of problem {name!r}", "(arms, features)")
    parameters = _matrix(theta, f"theta of problem {name!r}", "(features, metrics)")
    if parameters.shape[0] != X.shape[1]:
        raise InvalidInput(
            f"theta of problem {name!r} must have one row per feature ({X.shape[1]}), got {parameters.shape[0]}"
        )
    K, L = X.shape[0], parameters.shape[1]
    return Problem(
        name=name,
        arms=_arm_names(names, K, name),
        metrics=_metrics(metrics, directions, L, name),
        means=X @ parameters,
        sigma=_per_metric(sigma, L, name),
        contexts=X,
        theta=parameters,
        noise="normal noise, sigma given",
    )


def table(
    frame: Any,
    arm: str,
    metrics: Mapping[str, str] | Sequence[Metric],
    contexts: Sequence[str] | None = None,
    *,
    name: str = "table",
) -> Problem:
    """State a problem by recorded measurements: a sample of an arm is one of its rows, drawn at random.

    frame: a pandas, polars or pyarrow table, or a dict of columns. arm: the column that names the arm. metrics:
    the columns to optimise, as {column: "min" or "max"} or `Metric` objects. contexts: feature columns, the
    same in all rows of an arm. The noise scale is taken to be the largest standard deviation within an arm.

    >>> table({"model": ["a", "a", "b", "b"], "cost": [1, 2, 3, 4]}, arm="model", metrics={"cost": "min"})
    <Problem 'table': 2 arms, 1 metrics>
    """
    if isinstance(metrics, Mapping):
        metrics = [Metric(column, direction) for column, direction in metrics.items()]
    labels = [str(label) for label in _column(frame, arm, name)]
    values = np.column_stack([_numbers(frame, metric.name, name) for metric in metrics] or [np.empty((0, 0))])
    if not metrics or not labels:
        raise InvalidInput(f"problem {name!r} must have at least one row and one metric")
    if len(values) != len(labels):
        raise InvalidInput(f"columns of problem {name!r} must be equally long, got {len(labels)} and {len(values)}")
    arms = tuple(dict.fromkeys(labels))
    position = {label: k for k, label in enumerate(arms)}
    group = np.array([position[label] for label in labels])
    rows = tuple(np.ascontiguousarray(values[group == k]) for k in range(len(arms)))
    if max(map(len, rows)) < 2:
        raise InvalidInput(
            f"problem {name!r} must have an arm with two rows or more: one measurement says nothing about noise"
        )
    features = None
    if contexts:
        columns = np.column_stack([_numbers(frame, column, name) for column in contexts])
        features = np.array([columns[group == k][0] for k in range(len(arms))])
        for k, label in enumerate(arms):
            differs = (columns[group == k] != features[k]).any(axis=0)
            if differs.any():
                raise InvalidInput(
                    f"column {contexts[int(differs.argmax())]!r} of problem {name!r} must be the same in all rows "
                    f"of an arm to be a context, but differs within {label!r}"
                )
    return Problem(
        name=name,
        arms=arms,
        metrics=tuple(metrics),
        means=np.array([group_rows.mean(axis=0) for group_rows in rows]),
        sigma=np.max([group_rows.std(axis=0) for group_rows in rows], axis=0),
        contexts=features,
        rows=rows,
        noise="sigma assumed: the largest within an option",
    )


def read_csv(path: str | Path | Traversable) -> dict[str, list[str]]:
    """Read a CSV file with a header into a dict of columns, ready for `table`."""
    source = Path(path) if isinstance(path, str) else path
    try:
        header, *rows = csv.reader(source.read_text(encoding="utf-8").splitlines())
    except FileNotFoundError:
        raise InvalidInput(f"no such file: {path}") from None
    except ValueError:
        raise InvalidInput(
            f"{path} must be a CSV file with a header and rows, got an empty or unreadable one"
        ) from None
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise InvalidInput(f"line {number} of {path} must have {len(header)} fields, got {len(row)}")
    return {column: [row[position] for row in rows] for position, column in enumerate(header)}


def _column(frame: Any, column: str, problem: str) -> Any:
    # pyarrow tables spell it column_names; iterating a frame or a dict gives the names as well
    names = [str(known) for known in getattr(frame, "column_names", None) or getattr(frame, "columns", frame)]
    if column not in names:
        raise UnknownName(f"column of problem {problem!r}", column, names)
    return np.asarray(frame[column])


def _numbers(frame: Any, column: str, problem: str) -> FloatArray:
    values = _column(frame, column, problem)
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput(f"column {column!r} of problem {problem!r} must hold numbers, got {values[0]!r}") from None
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise InvalidInput(
            f"column {column!r} of problem {problem!r} must be finite in every row, got {numbers[row]} in row {row}"
        )
    return numbers


def _matrix(values: Any, what: str, layout: str) -> FloatArray:
    try:
        matrix = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} must be numbers of shape {layout}, got {type(values).__name__}") from None
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidInput(f"{what} must have shape {layout}, both at least 1, got {matrix.shape}")
    return matrix


def _per_metric(sigma: Any, n_metrics: int, problem: str) -> FloatArray:
    try:
        values = np.array(sigma, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput(f"sigma of problem {problem!r} must be a number or one per metric, got {sigma!r}") from None
    return np.full(n_metrics, float(values)) if values.ndim == 0 else values


def _arm_names(names: Sequence[str] | None, n_arms: int, problem: str) -> tuple[str, ...]:
    if names is None:
        return tuple(f"arm {k + 1}" for k in range(n_arms))
    if len(names) != n_arms:
        raise InvalidInput(f"names of problem {problem!r} must be one per arm ({n_arms}), got {len(names)}")
    return tuple(str(name) for name in names)


def _metrics(
    metrics: Sequence[str | Metric] | None,
    directions: str | Sequence[str] | None,
    n_metrics: int,
    problem: str,
) -> tuple[Metric, ...]:
    if metrics is None:
        metrics = [f"metric {metric + 1}" for metric in range(n_metrics)]
    if len(metrics) != n_metrics:
        raise InvalidInput(f"metrics of problem {problem!r} must be one per column ({n_metrics}), got {len(metrics)}")
    if directions is None or isinstance(directions, str):
        directions = [directions or "max"] * n_metrics
    elif any(isinstance(metric, Metric) for metric in metrics):
        raise InvalidInput(f"directions of problem {problem!r} must be left out where metrics are Metric objects")
    if len(directions) != n_metrics:
        raise InvalidInput(
            f"directions of problem {problem!r} must be one, or one per metric ({n_metrics}), got {len(directions)}"
        )
    return tuple(
        metric if isinstance(metric, Metric) else Metric(metric, direction)
        for metric, direction in zip(metrics, directions, strict=True)
    )
