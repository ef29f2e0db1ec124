"""gaussian, linear, logistic, table: the ways to state a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import checks
from ..errors import InvalidInput
from ..frames import Columns
from ..kernels.arrays import BoolArray, FloatArray
from ..problem import Problem
from ..statement import Blocks, Metric, Statement


def gaussian(
    means: Any,
    sigma: Any,
    contexts: Any = None,
    names: Sequence[str] | None = None,
    directions: str | Sequence[str] | None = None,
    *,
    metrics: Sequence[str | Metric] | None = None,
    cost: Any = None,
    tradeoffs: Any = None,
    name: str = "gaussian",
) -> Problem:
    """Make a problem from the true means of its arms; samples are normal around them.

    means: (K, L), in the metrics' own units; geometric means where a metric is compared in percent.
    sigma: noise scale: one number, one per metric, or one per arm and metric (K, L). For a metric that is compared in
    percent it is the noise scale of the logarithm.
    contexts: (K, d) features. They need not explain the means.
    names: of the arms.
    directions: "max" (the default) or "min", one for all metrics or one per metric.
    metrics: names, or `Metric` objects.
    cost: what one sample of each arm costs, in any unit. None: all the same.
    tradeoffs: what metrics are worth in units of others, such as ["1 ms <= 3 MB"], see docs/tradeoffs.md. None: nothing
    is said.

    >>> gaussian([[3.0, 20], [5.0, 90]], sigma=[0.5, 4], names=["small", "large"], directions=["max", "min"])
    <Problem 'gaussian': 2 arms, 2 metrics>
    """
    values = checks.table(f"means of problem {name!r}", means, "(arms, metrics)")
    K, L = values.shape
    return _problem(
        name,
        values,
        sigma,
        arms=_arm_names(names, K, name),
        metrics=_metrics(metrics, directions, L, name),
        contexts=contexts,
        noise="normal noise, sigma given",
        cost=cost,
        tradeoffs=tradeoffs,
    )


def linear(
    contexts: Any,
    theta: Any,
    sigma: Any,
    names: Sequence[str] | None = None,
    directions: str | Sequence[str] | None = None,
    *,
    metrics: Sequence[str | Metric] | None = None,
    cost: Any = None,
    tradeoffs: Any = None,
    name: str = "linear",
) -> Problem:
    """Make a problem whose means are exactly linear in the arms' features: contexts (K, d) @ theta (d, L).

    For a metric that is compared in percent, the logarithms of its geometric means are linear.

    sigma: noise scale: one number, one per metric, or one per arm and metric (K, L). The rest is as in `gaussian`.

    >>> linear([[1, 0], [0, 1], [0.5, 0.5]], theta=[[1, 0], [0, 1]], sigma=0.1)
    <Problem 'linear': 3 arms, 2 metrics, 2 features>
    """
    X, parameters = _explained(contexts, theta, name)
    K, L = X.shape[0], parameters.shape[1]
    stated = _metrics(metrics, directions, L, name)
    means = X @ parameters
    for position, metric in enumerate(stated):
        means[:, position] = metric.natural(means[:, position])
    return _problem(
        name,
        means,
        sigma,
        parameters,
        arms=_arm_names(names, K, name),
        metrics=stated,
        contexts=X,
        model="linear",
        noise="normal noise, sigma given",
        cost=cost,
        tradeoffs=tradeoffs,
    )


def logistic(
    contexts: Any,
    theta: Any,
    names: Sequence[str] | None = None,
    directions: str | Sequence[str] | None = None,
    *,
    metrics: Sequence[str | Metric] | None = None,
    cost: Any = None,
    name: str = "logistic",
) -> Problem:
    """Make a problem whose outcomes are 0 or 1: a 1 has probability 1 / (1 + exp(-z)), with z = contexts @ theta.

    It is for things that happen or do not: bought, healed, crashed. contexts (K, d) are the arms' features, theta is
    (d, L). sigma is 0.5, which holds for all such outcomes. Every metric has the bounds 0 and 1. The rest is as in
    `gaussian`.

    >>> logistic([[1, 0], [0, 1], [1, 1]], theta=[[1, 0], [0, 1]], metrics=["opened", "bought"]).means.round(2)
    array([[0.73, 0.5 ],
           [0.5 , 0.73],
           [0.73, 0.73]])
    """
    X, parameters = _explained(contexts, theta, name)
    K, L = X.shape[0], parameters.shape[1]
    return _problem(
        name,
        0.5 + 0.5 * np.tanh(0.5 * (X @ parameters)),  # the logistic function, which overflows if written as is
        np.full(L, 0.5),
        parameters,
        arms=_arm_names(names, K, name),
        metrics=tuple(
            metric if metric.bounds else replace(metric, bounds=(0.0, 1.0))
            for metric in _metrics(metrics, directions, L, name)
        ),
        contexts=X,
        model="logistic",
        noise="outcomes 0 or 1, sigma 0.5",
        cost=cost,
    )


def table(
    frame: Any,
    arm: str,
    metrics: Mapping[str, str] | Sequence[Metric],
    contexts: Sequence[str] | None = None,
    *,
    block: str | None = None,
    target: str = "list",
    holes: str = "refuse",
    cost: str | None = None,
    sigma: str | None = None,
    tradeoffs: Any = None,
    name: str = "table",
) -> Problem:
    """Make a problem from recorded measurements: a sample of an arm is one of its rows, drawn at random.

    With blocks (prompts, files) the n-th sample of every arm is its row of the n-th block, in one random order.

    frame: a pandas, polars or pyarrow table, or a dict of columns.
    arm: the column that names the arm.
    metrics: the columns to optimise, as {column: "min" or "max"} or `Metric` objects.
    contexts: feature columns, the same in all rows of an arm.
    block: the column that says on what an arm was measured; rows of the same arm and block are averaged.
    target: with blocks, what the answer is about. "list": these blocks, each of which comes once. "population": all
    there could be, of which these are drawn at random, again and again.
    holes: what becomes of blocks on which an arm was not measured. "refuse": an error. "drop": they are left out.
    cost: the column that says what a sample of an arm costs.
    sigma: without blocks, which noise scale is assumed. "each": each arm's own, the standard deviation of its rows. (It
    is 0 where they never vary. An arm with one row says nothing about noise, and gets the largest of the others.)
    "largest": the largest for all arms. "unknown": none; algorithms that need one refuse. None: "each".
    tradeoffs: as in `gaussian`.

    >>> table({"model": ["a", "a", "b", "b"], "cost": [1, 2, 3, 4]}, arm="model", metrics={"cost": "min"})
    <Problem 'table': 2 arms, 1 metric>
    """
    if isinstance(metrics, Mapping):
        metrics = [Metric(column, direction) for column, direction in metrics.items()]
    if not metrics or not all(isinstance(metric, Metric) for metric in metrics):
        raise InvalidInput(
            f"metrics of problem {name!r} must be {{column: 'min' or 'max'}} or Metric objects, at least one, "
            f"got {metrics!r}"
        )
    columns = Columns(frame, f"problem {name!r}")
    labels = columns.labels(arm)
    if block is not None:
        if contexts or cost is not None or sigma is not None:
            raise InvalidInput(f"contexts, cost and sigma of problem {name!r} must be left out where it has blocks")
        return _with_blocks(columns, labels, columns.labels(block), metrics, target, holes, tradeoffs, name)
    values = np.column_stack([columns.numbers(metric.name) for metric in metrics])
    arms = tuple(dict.fromkeys(labels))
    position = {label: k for k, label in enumerate(arms)}
    group = np.array([position[label] for label in labels])
    by_arm = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[by_arm], prepend=-1))
    rows = tuple(np.split(values[by_arm], starts[1:]))
    if max(map(len, rows)) < 2:
        raise InvalidInput(
            f"problem {name!r} must have an arm with two rows or more: one measurement says nothing about noise"
        )

    for metric, given in zip(metrics, values.T, strict=True):
        if metric.relative and not (given > 0).all():
            raise InvalidInput(
                f"metric {metric.name!r} of problem {name!r} must be above 0 in all rows to be compared in percent, "
                f"got {given.min():g}"
            )
    scale, noise = noise_of_rows(compared_rows(rows, metrics), "each" if sigma is None else sigma, name)

    def of_arms(column: str, what: str) -> FloatArray:
        """A column with one number for each arm."""
        given = columns.numbers(column)
        numbers = given[by_arm[starts]]
        differs = given != numbers[group]
        if differs.any():
            raise InvalidInput(
                f"column {column!r} of problem {name!r} must be the same in all rows of an arm to be {what}, "
                f"but differs within {labels[int(differs.argmax())]!r}"
            )
        return numbers

    return _problem(
        name,
        means_of_rows(rows, metrics),
        scale,
        rows=rows,
        arms=arms,
        metrics=tuple(metrics),
        contexts=np.column_stack([of_arms(column, "a context") for column in contexts]) if contexts else None,
        cost=None if cost is None else of_arms(cost, "a cost"),
        noise=noise,
        drawn=True,
        tradeoffs=tradeoffs,
    )


def _with_blocks(
    columns: Columns,
    labels: Sequence[str],
    blocks: Sequence[str],
    metrics: Sequence[Metric],
    target: str,
    holes: str,
    tradeoffs: Any,
    name: str,
) -> Problem:
    """Return a problem in which every arm has one row for each block."""
    checks.one_of(f"holes of problem {name!r}", holes, ("refuse", "drop"))
    arms, named = tuple(dict.fromkeys(labels)), tuple(dict.fromkeys(blocks))
    values = columns.cells(labels, blocks, arms, named, {metric.name: metric.relative for metric in metrics})
    missing = np.isnan(values).any(axis=2)
    if missing.any() and holes == "refuse":
        k, b = (int(place) for place in np.argwhere(missing)[0])
        raise InvalidInput(
            f"problem {name!r} must have a measurement of every arm on every block, got none of {arms[k]!r} on "
            f"{named[b]!r} ({int(missing.any(axis=0).sum())} of {len(named)} blocks have such holes; holes='drop' "
            "leaves them out)"
        )
    whole: BoolArray = ~np.any(missing, axis=0)
    values = values[:, whole]
    named = tuple(block for block, kept in zip(named, whole.tolist(), strict=True) if kept)
    for position, metric in enumerate(metrics):
        low, high = values[:, :, position].min(axis=0), values[:, :, position].max(axis=0)
        beyond = np.zeros(0, np.bool_) if metric.ratio is None else high > low * metric.ratio * (1.0 + 1e-9)
        if beyond.any():
            b = int(beyond.argmax())
            raise InvalidInput(
                f"metric {metric.name!r} of problem {name!r} must be of an arm at most {metric.ratio:g} times that of "
                f"another on the same block, as its ratio says, got {high[b]:g} and {low[b]:g} on {named[b]!r}"
            )
    return _problem(
        name,
        means_of_rows(tuple(values), metrics),
        np.full(len(metrics), np.nan),
        rows=tuple(values),
        arms=arms,
        metrics=tuple(metrics),
        blocks=Blocks(named, target),
        tradeoffs=tradeoffs,
    )


def _problem(
    name: str,
    means: FloatArray,
    sigma: Any,
    theta: FloatArray | None = None,
    rows: tuple[FloatArray, ...] | None = None,
    **stated: Any,
) -> Problem:
    """Return a problem; `stated`: fields of its statement."""
    K, L = means.shape
    what = f"sigma of problem {name!r}"
    if rows is None or not np.isnan(sigma).all():
        sigma = checks.per_arm_and_metric(what, sigma, K, L, least=0.0)
    return Problem(name, Statement(sigma=sigma, of=f"problem {name!r}", **stated), means, theta, rows)


def means_of_rows(rows: Sequence[FloatArray], metrics: Sequence[Metric]) -> FloatArray:
    """Return the means (K, L) of recorded rows, geometric ones where ratios are compared."""
    compared = compared_rows(rows, metrics)
    means = np.array([own.mean(axis=0) for own in compared])
    for position, metric in enumerate(metrics):
        means[:, position] = metric.natural(means[:, position])
    return means


def compared_rows(rows: Sequence[FloatArray], metrics: Sequence[Metric]) -> Sequence[FloatArray]:
    """Return recorded rows on the scales on which the metrics are compared."""
    if not any(metric.relative for metric in metrics):
        return rows
    return [
        np.column_stack([metric.compared(own[:, position]) for position, metric in enumerate(metrics)]) for own in rows
    ]


def noise_of_rows(rows: Sequence[FloatArray], sigma: str, problem: str) -> tuple[FloatArray, str]:
    """Return the noise scale (K, L) that is assumed of recorded rows, and how people are told of it; see `table`."""
    checks.one_of(f"sigma of problem {problem!r}", sigma, ("each", "largest", "unknown"))
    if sigma == "unknown":
        return np.full((len(rows), rows[0].shape[1]), np.nan), "sigma unknown"
    # rows that never vary have none; computed, it might be a rounding error
    each = np.array([np.where(np.ptp(own, axis=0) > 0, own.std(axis=0), 0.0) for own in rows])
    largest = each.max(axis=0)
    if sigma == "each":
        varied = np.array([len(own) > 1 for own in rows])
        return np.where(varied[:, None], each, largest), "sigma assumed: each option's own, from its rows"
    return np.tile(largest, (len(rows), 1)), "sigma assumed: the largest within an option"


def _explained(contexts: Any, theta: Any, problem: str) -> tuple[FloatArray, FloatArray]:
    """Check features and parameters that go together."""
    X = checks.table(f"contexts of problem {problem!r}", contexts, "(arms, features)")
    parameters = checks.table(f"theta of problem {problem!r}", theta, "(features, metrics)")
    if parameters.shape[0] != X.shape[1]:
        raise InvalidInput(
            f"theta of problem {problem!r} must have one row per feature ({X.shape[1]}), got {parameters.shape[0]}"
        )
    return X, parameters


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
    if directions is not None and any(isinstance(metric, Metric) for metric in metrics):
        raise InvalidInput(f"directions of problem {problem!r} must be left out where metrics are Metric objects")
    if directions is None or isinstance(directions, str):
        directions = [directions or "max"] * n_metrics
    if len(directions) != n_metrics:
        raise InvalidInput(
            f"directions of problem {problem!r} must be one, or one per metric ({n_metrics}), got {len(directions)}"
        )
    return tuple(
        metric if isinstance(metric, Metric) else Metric(metric, direction)
        for metric, direction in zip(metrics, directions, strict=True)
    )
