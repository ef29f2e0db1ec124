"""What a finished table of measurements already proves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..algorithms.contract import Settings
from ..defaults import DELTA
from ..diagnostics import copies
from ..errors import InvalidInput, UnknownName
from ..frames import Columns
from ..kernels.arrays import BoolArray, FloatArray
from ..laws import FEW_VALUES, NORMAL, PASS_FAIL, SILENT, law_of
from ..readers import Reading
from ..readers.reading import ENOUGH_ROWS
from ..shown import counted
from ..statement import NUMBER, Blocks, Metric, Statement
from ..verdicts import VerdictTable
from .rows import drawn_order
from .spec import Guard, arm_names, guards_of, metrics_of, sigma_of
from .study import Study


def analyze(
    frame: Any,
    arm: str | None = None,
    metrics: Mapping[str, str] | Sequence[Metric] | None = None,
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
    block: str | None = None,
    target: str | None = None,
    tradeoffs: Any = None,
) -> VerdictTable:
    """Return which options are proven to be on the front, which to be dominated, and by whom.

    Options come in the order of their names. No order of the rows of a file changes a verdict.

    frame: what `read` returned, which says arm, metrics, block and time by itself; or pandas, polars, pyarrow or a dict
    of columns. Wide form: one row per measurement and one column per metric;
    cells may be empty. Long form: one row per number; `metric` names the column with the metric, `value` the column
    with the number.
    arm: the column that names the option.
    time: a column of numbers that gives the order of the rows. None: the order is drawn at random, from a digest of the
    sorted rows.
    block: the column that says on what an option was measured: a prompt, a file. Options are then compared on the
    blocks that both were measured on, and the mean of the rows of an option on a block is its outcome there.
    target: with blocks, what the answer is about. "population", the default: all blocks there could be, of which these
    were drawn at random. "list": exactly these. If each option has all of them once, that is certain: of the outcomes
    as they are, whatever another run would give. If each was measured several times on each, the noise counts, and the
    answer is about the mean of many runs. Else say "list" where each option was measured on the first blocks of one
    order, and the list was settled before anything was measured.

    The rest is as in `Study`.

    The guarantee holds however the rows were chosen, if nobody looked ahead at their outcomes. So you may add more rows
    and analyse the table again. Verdicts are read after the last row. A metric with few different values is not
    normal. If these are 0 and 1, they are taken as its bounds; otherwise give bounds (or `exact`, if a number that
    never varies is certain).

    >>> runs = {"model": ["a", "a", "a", "b", "b", "b"], "quality": [0.91, 0.9, 0.92, 0.5, 0.52, 0.51]}
    >>> analyze(runs, arm="model", metrics={"quality": "max"}, sigma=0.02).verdicts
    ('front', 'dominated')
    """
    how: dict[str, Any] = {"delta": delta, "guards": guards, "algorithm": algorithm, "goal": goal}
    told = study_of_table(
        frame,
        arm,
        metrics,
        sigma=sigma,
        contexts=contexts,
        metric=metric,
        value=value,
        time=time,
        block=block,
        target=target,
        tradeoffs=tradeoffs,
        **how,
    )
    table = told.verdicts()
    return frame.stated(table) if isinstance(frame, Reading) else table


def study_of_table(
    frame: Any,
    arm: str | None = None,
    metrics: Mapping[str, str] | Sequence[Metric] | None = None,
    *,
    sigma: Any = None,
    guards: Sequence[str | Guard] = (),
    contexts: Sequence[str] = (),
    metric: str | None = None,
    value: str | None = None,
    time: str | None = None,
    block: str | None = None,
    target: str | None = None,
    **how: Any,
) -> Study:
    """Return a study, in memory, that was told all rows of a table; see `analyze`. how: more for `Study`."""
    passing = False
    if isinstance(frame, Reading):
        for what, told in {"arm": arm, "metrics": metrics, "block": block, "time": time}.items():
            if told is not None:
                raise InvalidInput(f"{what} of analyze must be left out with what read returned: it says that itself")
        arm, metrics, block, time, passing = "option", frame.metrics, frame.block, frame.time, frame.passing
        frame, target = frame.table, target or frame.target
    if arm is None or metrics is None:
        raise InvalidInput("arm and metrics of analyze must be given, unless the table is what read returned")
    if (metric is None) != (value is None):
        raise InvalidInput("metric and value of analyze must be given together, for a table in long form")
    columns = Columns(frame, "this table")
    labels = columns.labels(arm)
    first = {label: row for row, label in reversed(list(enumerate(labels)))}
    arms: dict[str, Any] = {"arm": sorted(first)}  # of two that are the same one stays: not by the order of the file
    for name in contexts:
        values = columns.numbers(name).tolist() if columns.is_numeric(name) else columns.labels(name, "something")
        for label, given in zip(labels, values, strict=True):
            if given != values[first[label]]:
                raise InvalidInput(f"context {name!r} must be the same in all rows of an arm, but differs in {label!r}")
        arms[name] = [values[first[label]] for label in arms["arm"]]
    stated = metrics_of(metrics)
    names = list(dict.fromkeys([*(each.name for each in stated), *(guard.metric for guard in guards_of(guards))]))
    if metric is None or value is None:
        cells = {name: columns.numbers_or_none(name) for name in names}
    else:
        cells = _wide(columns, names, metric, value)
    if len(arms["arm"]) == 1 and not guards:
        raise InvalidInput(
            f"column {arm!r} of {columns.where} must name at least two options, got {labels[0]!r} in all rows: one "
            "option has nothing to be compared with"
        )
    known = sigma_of(sigma, names, len(stated))
    on = [()] * len(labels) if block is None or passing else [(name,) for name in columns.labels(block)]
    seen = copies(list(zip(labels, on, *cells.values(), strict=True)), len(first))
    noticed = () if seen is None else (seen,)
    if block is not None:
        for what, given in (("sigma", sigma), ("guards", guards), ("contexts", contexts), ("time", time)):
            if given is not None and len(given if isinstance(given, (tuple, list, dict)) else [given]):
                raise InvalidInput(f"{what} of analyze must be left out where the table has blocks, got {given!r}")
        wide = Columns(columns.with_columns({arm: labels, block: columns.labels(block), **cells}), columns.where)
        study = _study_of_blocks(wide, labels, wide.labels(block), stated, target, passing, **how)
        study.noticed = noticed
        return study
    if target is not None:
        raise InvalidInput(f"target of analyze must go with block: the column that names it, got {target!r}")
    study = Study(
        arms,
        [_bounded(each, cells.get(each.name, [])) if known[k] is None else each for k, each in enumerate(stated)],
        storage="memory",
        sigma=sigma,
        guards=guards,
        contexts=contexts,
        **how,
    )
    when = {} if time is None else {" ": columns.numbers(time).tolist()}  # names that no metric has
    rows = columns.with_columns({"": labels, **cells, **when})
    study.tell_frame(rows, arm="", time=None if time is None else " ")
    study.noticed = noticed
    return study


def _study_of_blocks(
    columns: Columns,
    labels: Sequence[str],
    blocks: Sequence[str],
    metrics: tuple[Metric, ...],
    target: str | None,
    passing: bool = False,
    *,
    delta: float = DELTA,
    goal: str | int = "practical",
    tradeoffs: Any = None,
    **how: Any,
) -> Study:
    """Return a study that was told a table of options and blocks.

    If each option has all blocks of a list once, nothing is left to chance. If the blocks of each are the first ones of
    one order (those of a study that let options go early), that is the order; where it leaves a choice it is drawn at
    random, because a table may be sorted by outcome. Else a pair is judged by the blocks of both. passing: blocks are
    sessions.
    """
    how.pop("guards", None)
    arms, named = tuple(sorted(set(labels))), tuple(sorted(set(blocks)))
    values = columns.cells(labels, blocks, arms, named, {metric.name: metric.relative for metric in metrics})
    there: BoolArray = ~np.any(np.isnan(values), axis=2)
    for metric in metrics:
        _check_pass_fail(columns, metric)
    if target == "list" and there.all() and (answers := _answers(columns, labels, blocks, metrics)) is not None:
        blocks, repeats = answers
        named, target = tuple(sorted(set(blocks))), "population"
        values = columns.cells(labels, blocks, arms, named, {metric.name: metric.relative for metric in metrics})
        there = ~np.any(np.isnan(values), axis=2)
    else:
        repeats = 1
    if target != "list" or not there.all():  # else nothing is left to chance, whatever the numbers are like
        metrics = tuple(_bounded(metric, columns.numbers_or_none(metric.name)) for metric in metrics)
    metrics = tuple(_of_cells(metric, values[:, :, position]) for position, metric in enumerate(metrics))
    by_size = there[np.argsort(there.sum(axis=1), kind="stable")]
    nested = not (by_size[:-1] & ~by_size[1:]).any()
    if target == "list" and not nested:
        raise InvalidInput(
            f"target of analyze must be 'population' for {columns.where}: the blocks of its options differ, and none "
            "has those of all others, got 'list'"
        )
    asked = Statement(
        arms=arm_names(arms),
        metrics=metrics,
        sigma=np.full(len(metrics), np.nan),
        goal=goal,
        delta=delta,
        blocks=Blocks(named, target or "population", passing=passing or not nested, repeats=repeats),
        tradeoffs=tradeoffs,
    )
    if not there.all() and np.isinf(asked.spans).any():  # type: ignore[arg-type]
        _check_repeats(columns, labels, blocks)
    drawn = drawn_order(named, values.transpose(1, 0, 2).reshape(len(named), -1))
    walk = drawn[np.argsort(-there.sum(axis=0)[drawn], kind="stable")].tolist()
    study = Study.of(asked, storage="memory", walk=walk, **how)
    rows = np.argwhere(there)
    table = {
        "arm": [arms[k] for k, _ in rows],
        "block": [named[b] for _, b in rows],
        **{metric.name: values[there][:, position].tolist() for position, metric in enumerate(metrics)},
    }
    study.tell_frame(table)
    return study


def _check_pass_fail(columns: Columns, metric: Metric) -> None:
    """Refuse a row of a metric that was declared pass/fail in which it is neither 0 nor 1."""
    for row, value in enumerate(columns.numbers_or_none(metric.name) if metric.pass_fail else ()):
        if value not in (None, 0.0, 1.0):
            raise InvalidInput(
                f"{metric.name!r} in {columns.row(row)} must be 0 or 1, because its kind is 'pass/fail', got {value:g}"
            )


def _answers(
    columns: Columns, labels: Sequence[str], blocks: Sequence[str], metrics: Sequence[Metric]
) -> tuple[list[str], int] | None:
    """Return which answer to which block each row is, and how many there are of each at least; None if some has one.

    Answers of different options are compared in pairs, so which is the first one of a block is drawn at random. Those
    beyond the fewest of a block are averaged with the last one.
    """
    cells = list(zip(labels, blocks, strict=True))
    fewest: dict[str, int] = {}
    for (_, block), n in Counter(cells).items():
        fewest[block] = min(n, fewest.get(block, n))
    if min(fewest.values()) < 2:
        return None
    values = np.array([columns.numbers_or_none(metric.name) for metric in metrics], float).T
    seen: Counter[tuple[str, str]] = Counter()
    named = [""] * len(cells)
    for row in drawn_order([f"{block}\n{label}" for label, block in cells], values).tolist():
        block = cells[row][1]
        named[row] = f"{block} #{min(seen[cells[row]], fewest[block] - 1) + 1}"
        seen[cells[row]] += 1
    return named, min(fewest.values())


def _check_repeats(columns: Columns, labels: Sequence[str], blocks: Sequence[str]) -> None:
    """Refuse a table whose cells were measured more or less often: differences of their means are not alike."""
    repeats = Counter(zip(labels, blocks, strict=True))
    (most, often), (least, seldom) = repeats.most_common(1)[0], repeats.most_common()[-1]
    if often != seldom:
        raise InvalidInput(
            f"{columns.where} must have every option equally often on each of its blocks, unless each has all blocks "
            f"or its metrics have bounds; got {often} rows of {' on '.join(most)}, {seldom} of {' on '.join(least)}"
        )


def _wide(columns: Columns, names: Sequence[str], metric: str, value: str) -> dict[str, list[float | None]]:
    """Return a table in long form as columns, a number in each row."""
    cells: dict[str, list[float | None]] = {name: [None] * columns.n_rows for name in names}
    for row, (name, number) in enumerate(zip(columns.labels(metric), columns.numbers_or_none(value), strict=True)):
        if name not in cells:
            raise UnknownName(f"metric in {columns.row(row)}:", name, cells)
        cells[name][row] = number
    for name, numbers in cells.items():
        if all(number is None for number in numbers):
            raise InvalidInput(f"column {metric!r} of {columns.where} must name metric {name!r}, got it in no row")
    return cells


def _bounded(metric: Metric, values: Sequence[float | None]) -> Metric:
    """Return a metric whose noise is unknown, as pass/fail if its values show that; refuse few others."""
    there = [value for value in values if value is not None]
    different = set(there)
    if metric.bounds is not None or metric.exact:
        return metric
    of_both = different == {0.0, 1.0} and not metric.relative
    law = law_of(NORMAL, False, float(len(there)), min(len(different), FEW_VALUES + 1), of_both, len(different) == 1)
    if law == PASS_FAIL:
        return metric.seen_as_pass_fail()
    if law not in SILENT or len(there) < ENOUGH_ROWS:
        return metric
    kind = f"that it is 0 or 1 (kind='pass/fail'; -m {metric.name}:{metric.direction}:pass-fail), "
    raise InvalidInput(
        f"bounds of metric {metric.name!r} must be given, because its noise is not normal: it has only "
        f"{counted(len(different), 'different value')} in {counted(len(there), 'row')}, from {min(different):g} to "
        f"{max(different):g}. Say between which values it lies (bounds=(LOW, HIGH); --bounds {metric.name}=LOW,HIGH), "
        f"{kind if different <= {0.0, 1.0} else ''}or that a number that never varies is certain (exact=True; --exact "
        f"{metric.name})"
    )


def _of_cells(metric: Metric, values: FloatArray) -> Metric:
    """Return a pass/fail metric with bounds alone, if the outcome on a block is the mean of several rows."""
    if metric.pass_fail and not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
        return replace(metric, kind=NUMBER)
    return metric
