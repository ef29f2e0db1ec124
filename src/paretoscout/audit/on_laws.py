"""The doors again, with outcomes that are not normal: pass/fail, partial credit, few values, numbers that hardly vary.

Option b fails on a few of the cases on which option a succeeds. Until the first failure was seen the two look the same,
and a method that takes their differences for normal noise of scale 0 is sure of it. Nothing is told of the columns
here, unless a title says so: no bounds, no kind. Each case plays one such column through one way into a study.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..errors import InvalidInput, NotSupported
from ..kernels.arrays import FloatArray
from ..practical import wrong_ones
from ..statement import Metric
from ..study import Study, Trial, analyze
from ..verdicts import VerdictTable
from .doors import DoorCase, Played, stream

#: Option b fails on this share of the cases, and this much does not matter, of a column from 0 to 1.
FAILS, EPS = 0.03, 0.02
OPTIONS = ("a", "b")
#: A run ends undecided after this many samples, if blocks have no end.
MOST = 600
#: Verdicts are read after this many outcomes, and in the end.
READ_EVERY = 8
#: Seconds that a case takes, and how many of them a success is worth, at least and at most.
TIME, JITTER, WORTH = 40.0, 0.05, (10.0, 40.0)

#: Outcomes (2, n) of a and b in n cases, given where b fails.
Column = Callable[[FloatArray, np.random.Generator], FloatArray]


def pass_fail(fails: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Option a always succeeds."""
    return np.array([np.ones(len(fails)), 1.0 - fails])


def partial_credit(fails: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Both options get the same share of the points, unless b fails."""
    credit = 0.6 + 0.4 * rng.random(len(fails))
    return np.array([credit, credit * (1.0 - fails)])


def three_values(fails: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Wins count 1 and draws 0.5, for both alike, unless b fails."""
    points = rng.choice([0.5, 1.0], len(fails), p=[0.1, 0.9])
    return np.array([points, points * (1.0 - fails)])


def one_of_both(fails: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The outcomes of b are 0 and 1, those of a are close to 1."""
    return np.array([1.0 - 1e-3 * rng.random(len(fails)), 1.0 - fails])


def ahead_until_it_fails(fails: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Option b is ahead by the same number each time, until it fails."""
    credit = 0.6 + 0.35 * rng.random(len(fails))
    return np.array([credit, np.where(fails > 0.0, 0.0, credit + 0.001)])


def hardly_varies(fails: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Both numbers are 7.25, unless b fails."""
    return np.array([np.full(len(fails), 7.25), 7.25 - fails])


COLUMNS: dict[str, Column] = {
    "pass/fail": pass_fail,
    "partial credit": partial_credit,
    "three values": three_values,
    "0 and 1 in one option": one_of_both,
    "constant differences": ahead_until_it_fails,
    "a number that hardly varies": hardly_varies,
}


def outcomes(column: Column, n: int, listed: bool, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return outcomes (2, n), and the true means (2,): those of a list of cases, or of the law they come from."""
    fails = (rng.random(n) < FAILS).astype(float)
    if listed:
        fails = rng.permutation((np.arange(n) < round(FAILS * n)).astype(float))
    values = column(fails, rng)
    if listed:
        return values, values.mean(axis=1)
    long = np.random.default_rng(0)  # the means of the law, to 4 digits
    return values, column((long.random(400_000) < FAILS).astype(float), long).mean(axis=1)


def wrong_in(table: VerdictTable, means: Mapping[str, FloatArray]) -> tuple[str, ...]:
    """Return the options with a wrong practical verdict, by what the table judges options by."""
    eps = np.array([metric.tolerance for metric in table.judged_by])
    return tuple(wrong_ones(table.arms, table.verdicts, table.rivals, means, eps))


def _until_decided(study: Study, tell: Callable[[Trial], dict[str, float]], wrong: Callable[[], Any]) -> set[str]:
    """Ask and tell; return what was wrong at some time."""
    found: set[str] = set()
    told = 0
    while not (study.done or study.stuck) and told < MOST:
        try:
            trial = study.ask()
        except NotSupported:
            break
        study.tell(trial, tell(trial))
        told += 1
        if told % READ_EVERY == 0:
            found.update(wrong())
    found.update(wrong())
    return found


def _study(metrics: Sequence[Metric], number: int, delta: float, **how: Any) -> Study:
    return Study(OPTIONS, metrics, storage="memory", seed=number, delta=delta, **how)


def _alone(means: FloatArray) -> dict[str, FloatArray]:
    """The means of options with one metric, by their names."""
    return {arm: means[k : k + 1] for k, arm in enumerate(OPTIONS)}


def _blocks(n: int) -> list[str]:
    return [f"block {block}" for block in range(n)]


def one_by_one(column: Column, number: int, delta: float) -> Played:
    """Samples on their own."""
    values, means = outcomes(column, MOST, False, stream(number))
    study = _study([Metric("ok", "max", eps=EPS)], number, delta)
    turn = Counter[str]()

    def tell(trial: Trial) -> dict[str, float]:
        turn[trial.arm] += 1
        return {"ok": float(values[OPTIONS.index(trial.arm), turn[trial.arm] - 1])}

    found = _until_decided(study, tell, lambda: wrong_in(study.verdicts(), _alone(means)))
    return Played(tuple(sorted(found)), study.done, study.counts()["told"])


def on_blocks(column: Column, n: int, target: str, number: int, delta: float) -> Played:
    """A study on n blocks, block by block."""
    values, means = outcomes(column, n, target == "list", stream(number))
    names = _blocks(n)
    study = _study([Metric("ok", "max", eps=EPS)], number, delta, blocks=names, target=target)

    def tell(trial: Trial) -> dict[str, float]:
        return {"ok": float(values[OPTIONS.index(trial.arm), names.index(str(trial.block))])}

    found = _until_decided(study, tell, lambda: wrong_in(study.verdicts(), _alone(means)))
    return Played(tuple(sorted(found)), study.done, study.counts()["told"])


def in_rounds(column: Column, number: int, delta: float) -> Played:
    """A study in rounds."""
    values, means = outcomes(column, MOST // 2, False, stream(number))
    study = _study([Metric("ok", "max", eps=EPS)], number, delta, blocks="rounds")
    found: set[str] = set()
    for turn in range(MOST // 2):
        if study.done or study.stuck:
            break
        for trial in study.ask_round():
            study.tell(trial, {"ok": float(values[OPTIONS.index(trial.arm), turn])})
        if turn % READ_EVERY == 0:
            found.update(wrong_in(study.verdicts(), _alone(means)))
    found.update(wrong_in(study.verdicts(), _alone(means)))
    return Played(tuple(sorted(found)), study.done, study.counts()["told"])


def in_a_table(column: Column, n: int, target: str | None, number: int, delta: float) -> Played:
    """A finished table: on blocks, all of which every option has, or without (target is None)."""
    values, means = outcomes(column, n, False, stream(number))
    if target is None:
        values[1] = outcomes(column, n, False, stream(number + 10**6))[0][1]
    table: dict[str, Any] = {"arm": [*("a",) * n, *("b",) * n], "ok": values.ravel()}
    how: dict[str, Any] = {} if target is None else {"block": "block", "target": target}
    if target is not None:
        table["block"] = _blocks(n) * 2
    return _judged(table, [Metric("ok", "max", eps=EPS)], _alone(means), delta, **how)


def _judged(table: Any, metrics: Sequence[Metric], means: Mapping[str, FloatArray], delta: float, **how: Any) -> Played:
    n = len(table["arm"])
    try:
        judged = analyze(table, "arm", metrics, delta=delta, **how)
    except InvalidInput:  # few values: bounds are asked for
        return Played((), False, n)
    return Played(wrong_in(judged, means), "undecided" not in judged.verdicts, n)


# Trade-offs


def _traded(
    values: FloatArray, means: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return outcomes (2, n, 2) with a time for each, which is the same on average, and the true sums."""
    weights = np.array([[max(WORTH), 1.0], [min(WORTH), 1.0]])
    both = np.stack([values, TIME + JITTER * rng.standard_normal(values.shape)], axis=2)
    truth = np.column_stack([means, np.full(2, TIME)]) * [1.0, -1.0]
    return both, {arm: weights @ truth[k] / weights.min(axis=1) for k, arm in enumerate(OPTIONS)}


TRADED = (Metric("ok", "max", eps=EPS, unit="ok"), Metric("time", "min", eps=0.05, unit="s"))
TRADEOFFS = (f"1 ok <= {max(WORTH):g} s", f"{min(WORTH):g} s <= 1 ok")


def traded_one_by_one(column: Column, number: int, delta: float, n_blocks: int = 0) -> Played:
    """Samples on their own, or on blocks, of a column and a time, judged by sums."""
    rng = stream(number)
    values, means = outcomes(column, n_blocks or MOST, False, rng)
    both, truth = _traded(values, means, rng)
    names = _blocks(n_blocks)
    how: dict[str, Any] = {"blocks": names, "target": "population"} if n_blocks else {}
    study = _study(TRADED, number, delta, tradeoffs=TRADEOFFS, **how)
    turn = Counter[str]()

    def tell(trial: Trial) -> dict[str, float]:
        turn[trial.arm] += 1
        case = names.index(str(trial.block)) if n_blocks else turn[trial.arm] - 1
        return dict(zip(("ok", "time"), both[OPTIONS.index(trial.arm), case].tolist(), strict=True))

    found = _until_decided(study, tell, lambda: wrong_in(study.verdicts(), truth))
    return Played(tuple(sorted(found)), study.done, study.counts()["told"])


def traded_in_a_table(column: Column, n: int, number: int, delta: float) -> Played:
    """A finished table of a column and a time, judged by sums."""
    rng = stream(number)
    values, means = outcomes(column, n, False, rng)
    both, truth = _traded(values, means, rng)
    table = {"arm": [*("a",) * n, *("b",) * n], "ok": both[:, :, 0].ravel(), "time": both[:, :, 1].ravel()}
    return _judged(table, TRADED, truth, delta, tradeoffs=TRADEOFFS)


# Guards


def guarded(column: Column, n: int, where: str, number: int, delta: float) -> Played:
    """A limit on failures that b breaks, and a score in which b is better: b on the front is wrong."""
    rng = stream(number)
    values, means = outcomes(column, n, where == "list", rng)
    limit = float(means[0] - EPS)
    names = _blocks(n)
    how: dict[str, Any] = {"list": {"blocks": names}, "population": {"blocks": names, "target": "population"}}
    blocks: dict[str, Any] = {**how, "rows": {}, "rounds": {"blocks": "rounds"}}[where]
    study = _study([Metric("score", "max", eps=0.5)], number, delta, guards=[f"ok >= {limit!r}"], **blocks)
    turn = Counter[str]()

    def wrong() -> Sequence[str]:
        table = study.verdicts()
        settled = study.done and "b" in table.arms
        return [
            arm
            for arm, said in zip(table.arms, table.verdicts, strict=True)
            if arm == "b" and said == "front" and settled
        ]

    def tell(trial: Trial) -> dict[str, float]:
        turn[trial.arm] += 1
        k = OPTIONS.index(trial.arm)
        case = names.index(str(trial.block)) if where in ("list", "population") else turn[trial.arm] - 1
        return {"score": float(5.0 * k + rng.standard_normal()), "ok": float(values[k, case % n])}

    if where == "rounds":
        found: set[str] = set()
        while not (study.done or study.stuck) and sum(turn.values()) < MOST:
            for trial in study.ask_round(list(study.arms)):
                study.tell(trial, tell(trial))
        found.update(wrong())
    else:
        found = _until_decided(study, tell, wrong)
    return Played(tuple(sorted(found)), study.done, study.counts()["told"])


def cases() -> Iterator[DoorCase]:
    """Columns that are not normal, through every door; the doors that were open are tried with all of them."""
    for what, column in COLUMNS.items():
        attacked = what in ("pass/fail", "partial credit")
        for door, play in (
            ("list of 200 blocks", partial(on_blocks, column, 200, "list")),
            ("population, 200 blocks", partial(on_blocks, column, 200, "population")),
            ("rounds", partial(in_rounds, column)),
            ("table of 40 blocks", partial(in_a_table, column, 40, "population")),
        ):
            short = (what, door) == ("pass/fail", "table of 40 blocks")
            yield DoorCase(f"{what}, {door}", play, short=short)
        for door, play in (
            ("samples", partial(one_by_one, column)),
            ("table of 40 rows", partial(in_a_table, column, 40, None)),
            ("sums, samples", partial(traded_one_by_one, column)),
            ("sums, 200 blocks", partial(traded_one_by_one, column, n_blocks=200)),
            ("sums, table of 30 rows", partial(traded_in_a_table, column, 30)),
            ("limit, list of 200 blocks", partial(guarded, column, 200, "list")),
            ("limit, population, 200 blocks", partial(guarded, column, 200, "population")),
            ("limit, samples", partial(guarded, column, 200, "rows")),
            ("limit, rounds", partial(guarded, column, 200, "rounds")),
        ):
            if attacked or door.startswith(("sums", "limit, list")):
                yield DoorCase(f"{what}, {door}", play, short=(what, door) == ("pass/fail", "sums, table of 30 rows"))
