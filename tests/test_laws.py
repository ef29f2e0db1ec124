"""Laws of columns: what is declared of a metric, what is seen of it, and what everything that judges makes of both."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import paretoscout as ps
from paretoscout.bench.metrics import NoValue, source_of
from paretoscout.bench.run import Run
from paretoscout.cli import values
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput
from paretoscout.kernels.noise import law_of as compiled_law_of
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
from paretoscout.study.spec import StudySpec

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
