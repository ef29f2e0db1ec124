"""Laws of columns: what is declared of a metric, what is seen of it, and what everything that judges makes of both."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import paretoscout as ps
from paretoscout.bench.metrics import NoValue, source_of
from paretoscout.bench.run import Run
from paretoscout.cli import values
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput
from paretoscout.kernels.noise import law_of as compiled_law_of
from paretoscout.kernels.widths import end_of_share, log_against_share
from paretoscout.laws import (
    BOUNDS,
    EXACT,
    FEW_DIFFERENT,
    NAMES,
    NEVER_VARIED,
    NORMAL,
    PASS_FAIL,
    SIGMA,
    law_of,
)
from paretoscout.statement import Blocks
from paretoscout.study.guards import ends_of
from paretoscout.study.replica import Replica
from paretoscout.study.spec import StudySpec
from paretoscout.study.tally import Tally

PASSED = ps.Metric("passed", "max", eps=0.02, kind="pass/fail")


@pytest.mark.parametrize(
    ("declared", "exact", "seen", "different", "of_both", "still", "law"),
    [
        (NORMAL, False, 0, 0, False, True, NEVER_VARIED),
        (NORMAL, False, 40, 1, False, True, NEVER_VARIED),
        (NORMAL, False, 2, 2, True, False, FEW_DIFFERENT),  # 0 and 1, but two outcomes alone
        (NORMAL, False, 3, 2, True, True, PASS_FAIL),  # an option that always passed, next to one that did not
        (NORMAL, False, 200, 2, False, False, FEW_DIFFERENT),
        (NORMAL, False, 200, 5, False, False, FEW_DIFFERENT),
        (NORMAL, False, 200, 6, False, True, NEVER_VARIED),
        (NORMAL, False, 6, 6, False, False, NORMAL),
        (NORMAL, True, 40, 2, False, True, EXACT),
        (NORMAL, True, 40, 2, False, False, FEW_DIFFERENT),  # it was no certain number
        (NORMAL, True, 40, 9, False, False, NORMAL),
        (BOUNDS, False, 40, 1, False, True, BOUNDS),
        (BOUNDS, True, 40, 1, False, True, EXACT),
        (PASS_FAIL, False, 0, 0, False, True, PASS_FAIL),
        (SIGMA, False, 40, 1, False, True, SIGMA),
    ],
)
def test_the_law_of_a_column(
    declared: int, exact: bool, seen: float, different: int, of_both: bool, still: bool, law: int
) -> None:
    assert NAMES[law_of(declared, exact, seen, different, of_both, still)] == NAMES[law]


def test_kernels_ask_the_same_function() -> None:
    yes = (False, True)
    for case in product((SIGMA, NORMAL, BOUNDS, PASS_FAIL), yes, (0.0, 2.0, 3.0), (0, 1, 2, 5, 6), yes, yes):
        assert compiled_law_of(*case) == law_of(*case)


# Declaring a metric as pass/fail


def test_a_pass_fail_metric_has_the_bounds_0_and_1() -> None:
    assert PASSED.bounds == (0.0, 1.0)
    assert PASSED.pass_fail
    assert not ps.Metric("quality", bounds=(0, 1)).pass_fail
    assert replace(PASSED, eps=0.05).pass_fail


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "passfail"}, "kind of metric 'p' must be 'number' or 'pass/fail', got 'passfail'"),
        ({"kind": "pass/fail", "eps": "2%"}, "must be 'number' if it is compared by ratios"),
        ({"kind": "pass/fail", "scale": "log"}, "got 'pass/fail' with scale='log'"),
        ({"kind": "pass/fail", "bounds": (0, 2)}, r"bounds of metric 'p' must be left out .* got \(0.0, 2.0\)"),
    ],
)
def test_what_a_pass_fail_metric_cannot_be(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ps.Metric("p", **given)


def test_other_outcomes_of_a_declared_pass_fail_metric_are_refused() -> None:
    study = ps.Study(["a", "b"], [PASSED, ps.Metric("ms", "min")], storage="memory")
    trial = study.ask()
    with pytest.raises(InvalidInput, match=r"'passed' in .* must be 0 or 1, because its kind is 'pass/fail', got 0.5"):
        study.tell(trial, {"passed": 0.5, "ms": 3.0})
    study.tell(trial, {"passed": 1, "ms": 3.0})  # nothing was lost
    with pytest.raises(InvalidInput, match=r"must be 0 or 1, because its kind is 'pass/fail', got 0.25"):
        study.tell_frame({"arm": ["a", "b", "a"], "passed": [1, 0, 0.25], "ms": [1.0, 2.0, 3.0]})
    assert study.counts()["imported"] == 0
    with pytest.raises(InvalidInput, match="'passed' in at_give_up of a study must be 0 or 1"):
        ps.Study(["a", "b"], [PASSED], storage="memory", at_give_up={"passed": 0.5})


def test_the_guarantee_names_it() -> None:
    study = ps.Study(["a", "b"], [PASSED], storage="memory")
    assert "outcomes of passed are 0 or 1" in str(study.verdicts().guarantee)
    on_blocks = ps.Study(["a", "b"], [PASSED, ps.Metric("ms", "min")], storage="memory", blocks=["x", "y", "z"])
    assert "outcomes of passed are 0 or 1; ms: differences between" in str(on_blocks.verdicts().guarantee)


def test_a_study_keeps_it(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    ps.Study(["a", "b"], [PASSED, ps.Metric("ms", "min")], name="kept", storage=storage)
    spec = ps.Study.load("kept", storage).spec
    assert [metric.kind for metric in spec.metrics] == ["pass/fail", "number"]
    assert StudySpec.of_text(spec.text(), "kept") == spec
    assert '"kind": "number"' not in spec.text()  # what earlier versions wrote is what is written
    told = ps.Study.load("kept", storage).verdicts().as_dict()["metrics"]
    assert [metric["kind"] for metric in told] == ["pass/fail", "number"]


def test_the_command_line_reads_it() -> None:
    [passed, ms] = values.metrics(["passed:max:pass-fail", "ms:min"], eps=["passed=0.02"])
    assert passed == PASSED
    assert ms == ps.Metric("ms", "min")
    assert values.metrics(["passed:pass-fail"]) == [ps.Metric("passed", kind="pass/fail")]
    with pytest.raises(InvalidInput, match="direction of metric 'passed'"):
        values.metrics(["passed:pass-fial"])
    with pytest.raises(InvalidInput, match="name of a metric must have no ':'"):
        values.metrics(["my:passed:max:pass-fail"])


def test_create_and_analyze_take_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = CliRunner().invoke(main, ["create", "--arm", "a", "--arm", "b", "-m", "passed:max:pass-fail"])
    assert made.exit_code == 0, made.output
    assert "passed: larger is better; up to 0 does not matter; 0 or 1" in made.output
    Path("study.yaml").write_text("name: other\narms: [a, b]\nmetrics: {passed: {direction: max, kind: pass/fail}}\n")
    assert "0 or 1" in CliRunner().invoke(main, ["create", "study.yaml"]).output
    Path("study.yaml").write_text("name: third\narms: [a, b]\nmetrics: {passed: {kind: pass-fail}}\n")
    wrong = CliRunner().invoke(main, ["create", "study.yaml"])
    assert wrong.exit_code == 2
    assert "kind of metric 'passed' must be 'number' or 'pass/fail', got 'pass-fail'" in wrong.output
    Path("table.csv").write_text("model,passed\n" + "a,1\nb,0.5\n" * 4)
    refused = CliRunner().invoke(main, ["analyze", "table.csv", "--arm", "model", "-m", "passed:max:pass-fail"])
    assert refused.exit_code == 2
    assert "'passed' in line 3 of table.csv must be 0 or 1" in refused.output


def test_a_bench_takes_it() -> None:
    source = source_of(r"ok:max:pass-fail>=0.9=stdout~ok=(\S+)", {"ok": "0.02"})
    assert source.metric == ps.Metric("ok", eps=0.02, kind="pass/fail")
    assert str(source.guard) == "ok >= 0.9"
    run = Run(code=0, seconds=1.0, user=1.0, system=0.0, rss=1, stdout="ok=1", stderr="", folder="")
    assert source.value(run, {}) == 1.0
    with pytest.raises(NoValue, match=r"ok must be 0 or 1, because it is pass-fail, got 0\.5"):
        source.value(replace(run, stdout="ok=0.5"), {})


# Every door asks for the law


@dataclass(frozen=True)
class Declared:
    """A column of 64 outcomes for each of two options, what is declared of it, and whether it is evidence."""

    values: tuple[Any, Any]  # of a and b
    evidence: bool
    how: dict[str, Any] = field(default_factory=dict)


def columns() -> dict[str, Declared]:
    """A column of each law; a is far ahead of b, unless nothing varies."""
    rng = np.random.default_rng(0)
    noise, mixed = rng.standard_normal((2, N)), rng.permuted(np.tile(np.arange(N) < 7, (2, 1)), axis=1).astype(float)
    cycle = np.arange(N) % 2
    return {
        "normal": Declared((20.0 + noise[0], 10.0 + noise[1]), True),
        "bounded": Declared((0.9 + 0.1 * mixed[0], 0.1 * mixed[1]), True, {"bounds": (0.0, 1.0), "eps": 0.1}),
        "pass/fail": Declared((1.0 - mixed[0], mixed[1]), True, {"eps": 0.1}),
        "pass/fail, declared": Declared((np.ones(N), np.zeros(N)), True, {"kind": "pass/fail", "eps": 0.1}),
        "few values": Declared((20.0 + cycle, 10.0 + np.roll(cycle, 1)), False),
        "never varied": Declared((np.full(N, 7.0), np.full(N, 7.0)), False),
        "exact": Declared((np.full(N, 20.0), np.full(N, 10.0)), True, {"exact": True}),
    }


N = 64


def metric_of(column: Declared) -> ps.Metric:
    return ps.Metric("x", "max", **{"eps": 1.0, **column.how})


def all_told(study: ps.Study, column: Declared, more: dict[str, Any] | None = None) -> ps.Study:
    """Tell all outcomes as answers: in rounds round by round, else many at a time."""
    turn = dict.fromkeys("ab", 0)

    def outcome(trial: ps.Trial) -> dict[str, float]:
        k = "ab".index(trial.arm)
        here = turn[trial.arm]
        turn[trial.arm] += 1
        return {name: float(values[k][here]) for name, values in {"x": column.values, **(more or {})}.items()}

    while min(turn.values()) < N and not study.done:
        trials = study.ask_round(["a", "b"]) if study.spec.asked.blocks == ROUNDS else _both(study)
        study.tell_many([(trial, outcome(trial)) for trial in trials])
    return study


def _both(study: ps.Study) -> list[ps.Trial]:
    return [study.ask(arm=arm) for arm in study.arms]


ROUNDS = Blocks(target="population", passing=True)
NAMES_OF_BLOCKS = [f"block {block}" for block in range(N)]
POPULATION: dict[str, Any] = {"blocks": NAMES_OF_BLOCKS, "target": "population"}
LIST: dict[str, Any] = {"blocks": [*NAMES_OF_BLOCKS, *(f"later {block}" for block in range(N))], "target": "list"}
PLACES: dict[str, dict[str, Any]] = {"rows": {}, "rounds": {"blocks": "rounds"}, "population": POPULATION, "list": LIST}


def decided_live(column: Declared, **how: Any) -> bool:
    return all_told(ps.Study(["a", "b"], [metric_of(column)], storage="memory", delta=0.1, **how), column).done


def table_of(column: Declared, **more: Any) -> dict[str, Any]:
    return {"arm": ["a"] * N + ["b"] * N, "x": np.concatenate(column.values), **more}


def decided_in_a_table(column: Declared, metrics: Any = None, **how: Any) -> bool:
    blocks = {"block": NAMES_OF_BLOCKS * 2} if "block" in how else {}
    try:
        table = ps.analyze(
            table_of(column, **blocks, **how.pop("more", {})), "arm", metrics or [metric_of(column)], **how
        )
    except InvalidInput as refused:
        if "bounds of metric 'x' must be given" not in str(refused):
            raise
        return False
    return "undecided" not in table.verdicts


def guard_known(column: Declared, **how: Any) -> bool:
    """True if an interval of the guarded column is finite."""
    metric = metric_of(column)
    score = ps.Metric("score", "max", eps=1e-6)
    limit = 0.5 if metric.bounds or max(column.values[0]) <= 1.0 else 15.0
    study = ps.Study(
        ["a", "b"], [score, metric], storage="memory", delta=0.1, guards=[f"x >= {limit}"], goal="front", **how
    )
    study = all_told(study, column, {"score": np.random.default_rng(1).standard_normal((2, N))})
    replica = study.log.copy()
    low, high = replica.guards.bounds(0, study.spec.guards[0])
    return bool(np.isfinite([low, high]).all())


TIME = {"time": 40.0 + np.random.default_rng(2).standard_normal((2, N))}
SUMMED: dict[str, Any] = {"tradeoffs": ["1 x <= 40 s", "10 s <= 1 x"]}


def summed_metrics(column: Declared) -> list[ps.Metric]:
    return [metric_of(column), ps.Metric("time", "min", eps=1.0, unit="s")]


def decided_by_sums(column: Declared, **how: Any) -> bool:
    study = ps.Study(["a", "b"], summed_metrics(column), storage="memory", delta=0.1, **SUMMED, **how)
    return all_told(study, column, TIME).done


DOORS: dict[str, Any] = {
    **{f"live, {place}": partial(decided_live, **how) for place, how in PLACES.items()},
    "table, rows": decided_in_a_table,
    "table, population": partial(decided_in_a_table, block="block", target="population"),
    **{f"guard, {place}": partial(guard_known, **how) for place, how in PLACES.items()},
    **{f"sums, {place}": partial(decided_by_sums, **how) for place, how in PLACES.items()},
    "sums, table": lambda column: decided_in_a_table(
        column, summed_metrics(column), more={"time": np.concatenate(TIME["time"])}, **SUMMED
    ),
}
#: Where the answer is another one than that of the column alone.
EXCEPT = {
    **{
        (door, law): False  # the other part of the sum has no bounds: the sum is taken for numbers, and this is none
        for door in DOORS
        for law in ("bounded", "pass/fail", "pass/fail, declared")
        if door.startswith("sums")
    },
    **{
        (door, "exact"): False  # blocks to come may differ: an equal number on each block so far proves nothing of them
        for door in ("live, population", "live, list", "table, population", "sums, population", "sums, list")
    },
}


@pytest.mark.parametrize("law", columns())
@pytest.mark.parametrize("door", DOORS)
def test_every_door_asks_for_the_law(door: str, law: str) -> None:
    column = columns()[law]
    assert DOORS[door](column) == EXCEPT.get((door, law), column.evidence)


# What was seen, and another value later


def wins(study: ps.Study, n: int, seed: int = 0) -> None:
    """Tell n outcomes that are 0 or 1; a is far ahead."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        for trial in study.ask_round(["a", "b"]) if study.spec.asked.blocks == ROUNDS else _both(study):
            study.tell(trial, {"x": float(rng.random() < (0.95 if trial.arm == "a" else 0.1))})


@pytest.mark.parametrize("place", ["rows", "rounds", "population"])
def test_another_value_withdraws_what_rested_on_0_and_1(place: str, tmp_path: Path) -> None:
    metric, storage = ps.Metric("x", eps=0.2), f"sqlite:///{tmp_path / 'studies.db'}"
    study = ps.Study(["a", "b"], [metric], name=place, storage=storage, delta=0.1, **PLACES[place])
    assert "outcomes of x are 0 or 1" not in str(study.verdicts().guarantee)
    wins(study, 30)
    assert study.verdicts().verdicts == ("front", "dominated")
    assert "outcomes of x are 0 or 1" in str(study.verdicts().guarantee)
    assert study.verdicts().metrics[0].bounds == (0.0, 1.0)
    assert study.spec.metrics[0].bounds is None, "nobody declared that"
    before = study.standing()
    for trial in study.ask_round(["a", "b"]) if place == "rounds" else _both(study):
        study.tell(trial, {"x": 0.5})
    assert set(study.verdicts().verdicts) == {"undecided"}
    assert "outcomes of x are 0 or 1" not in str(study.verdicts().guarantee)
    [said] = [concern.text for concern in study.verdicts().concerns if concern.kind == "another value"]
    assert "while all values before were 0 or 1. The verdicts that rested on this are withdrawn" in said
    assert "--bounds x=LOW,HIGH" in said
    again = ps.Study.load(place, storage)  # from the log
    assert again.verdicts().as_dict() == study.verdicts().as_dict()
    assert Replica.load(again.spec, again.log.copy().dump()).dump() == again.log.copy().dump()
    assert again.standing(before.event).table.verdicts == ("front", "dominated")


def test_an_exact_number_that_varies_withdraws_what_rested_on_it() -> None:
    study = ps.Study(["a", "b"], [ps.Metric("x", eps=1.0, exact=True)], storage="memory", delta=0.1)
    for _ in range(12):
        study.tell_many([(trial, {"x": 20.0 if trial.arm == "a" else 10.0}) for trial in _both(study)])
    assert study.verdicts().verdicts == ("front", "dominated")
    study.tell_many([(trial, {"x": 20.0 if trial.arm == "a" else 12.0}) for trial in _both(study)])
    assert set(study.verdicts().verdicts) == {"undecided"}
    said = [concern.text for concern in study.verdicts().concerns if concern.kind == "another value"]
    assert len(said) == 1
    assert "while all values before were the same for each option" in said[0]
    assert "x is not exact" in said[0]


def test_exact_numbers_may_differ_from_block_to_block() -> None:
    study = ps.Study(["a", "b"], [ps.Metric("x", eps=1.0, exact=True)], storage="memory", delta=0.1, **POPULATION)
    study.tell_frame({"arm": ["a"] * N + ["b"] * N, "block": NAMES_OF_BLOCKS * 2, "x": np.arange(2.0 * N)})
    assert [concern.kind for concern in study.verdicts().concerns] == []


def test_an_option_that_never_varied_is_no_evidence_next_to_one_that_does() -> None:
    """The differences vary because a does; that b is always 1 proves nothing. False alarm: none, whatever the noise."""
    rng = np.random.default_rng(0)
    study = ps.Study(["a", "b"], [ps.Metric("x", eps=0.02)], storage="memory", delta=0.1, **POPULATION)
    table = {"arm": ["a"] * N + ["b"] * N, "block": NAMES_OF_BLOCKS * 2}
    study.tell_frame({**table, "x": np.concatenate([1.0 - 1e-3 * rng.random(N), np.ones(N)])})
    assert set(study.verdicts().verdicts) == {"undecided"}


def test_a_warning_on_blocks_says_what_to_declare() -> None:
    study = ps.Study(["a", "b"], [ps.Metric("x", eps=0.02)], storage="memory", delta=0.1, **POPULATION)
    study.tell_frame({"arm": ["a"] * N + ["b"] * N, "block": NAMES_OF_BLOCKS * 2, "x": np.ones(2 * N)})
    [concern] = study.verdicts().concerns
    assert concern.kind == "never varied"
    assert "x of a: always 1, in 128 values" in concern.text
    assert "that it is pass/fail (-m x:...:pass-fail)" in concern.text


# Shares of ones


@pytest.mark.parametrize("n_list", [np.inf, 30.0])
def test_the_ends_of_a_share_against_all_shares(n_list: float) -> None:
    """What bisection finds is what looking at every share finds."""
    shares = np.arange(31) / 30.0 if np.isfinite(n_list) else np.linspace(0.0, 1.0, 2001)
    for n in (1, 2, 7, 30):
        for ones in {0, 1, n // 2, n}:
            kept = [p for p in shares if log_against_share(p, float(ones), float(n), n_list) < -np.log(0.1)]
            low, high = (end_of_share(float(ones), float(n), n_list, 0.1, upper) for upper in (False, True))
            assert low == pytest.approx(min(kept), abs=6e-4)
            assert high == pytest.approx(max(kept), abs=6e-4)
    if np.isfinite(n_list):
        assert [end_of_share(7.0, 30.0, n_list, 0.1, upper) for upper in (False, True)] == [7.0 / 30.0] * 2


@pytest.mark.parametrize("n_list", [np.inf, 60.0])
def test_the_ends_of_a_share_hold_at_all_times(n_list: float) -> None:
    """300 walks of 60 outcomes, read after each; false alarm: 1e-9, by the binomial law at 0.1."""
    rng, missed = np.random.default_rng(0), 0
    share = 0.9
    for _ in range(300):
        listed = rng.permutation(np.arange(60) < 54).astype(float)
        walk = listed if np.isfinite(n_list) else (rng.random(60) < share).astype(float)
        ones = walk.cumsum()
        missed += any(log_against_share(share, ones[n - 1], float(n), n_list) >= -np.log(0.1) for n in range(1, 60))
    assert missed <= 62  # of 300, with probability 0.1 at most


def test_the_mean_over_a_list_within_bounds_holds_at_all_times() -> None:
    """300 lists of 40 scores in [0, 1], read after each block; false alarm: 1e-9, by the binomial law at 0.2."""
    rng, missed = np.random.default_rng(1), 0
    names = [f"block {block}" for block in range(40)]
    metrics = [ps.Metric("x", bounds=(0, 1))]
    spec = ps.Study(["a"], metrics, storage="memory", blocks=names, guards=["x >= 0.5"]).spec
    for _ in range(300):
        values = rng.permutation(rng.random(40) ** 3)
        tally = Tally.empty(1, 1)
        for value in values[:-1]:
            tally.add(0, [value], 40.0)
            low, high = ends_of(spec, tally, BOUNDS, 0, 0, 0.1)
            if not low <= values.mean() <= high:
                missed += 1
                break
    assert missed <= 105
