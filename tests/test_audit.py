"""The audit: algorithms that promise keep it in its short form, and it can tell when one does not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy.stats import binom

import paretoscout as ps
from paretoscout.algorithms import available, get, register, registry
from paretoscout.audit import families, measure
from paretoscout.audit.measure import BROKEN, FAILS, KEPT, SKIPPED, Contender, Row
from paretoscout.cli.main import main
from paretoscout.simulation.results import rate_interval


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["audit", *arguments], catch_exceptions=False)


def rows_of(done: Result) -> list[dict[str, Any]]:
    return list(json.loads(done.stdout))


@pytest.fixture
def cheat() -> Iterator[str]:
    """A registered algorithm whose tests believe in noise five times too small."""

    def init(settings: Any, setup: Any) -> tuple[Any, Any]:
        return honest.init(settings, replace(setup, sigma=setup.sigma / 5))

    honest = get("uniform")
    register(replace(honest, name="cheat", init=init))
    yield "cheat"
    registry._algorithms.pop("cheat")


OURS = ("scout", "multi-pfi", "uniform")


@pytest.mark.parametrize("name", OURS)
def test_short_audit(name: str) -> None:
    """The probability of a false alarm is at most 1e-4 a row."""
    rows = list(measure.audit([Contender(get(name))], families.cases(short=True), replicates=measure.SHORT))
    assert {row.verdict for row in rows} <= {KEPT, SKIPPED}, [row for row in rows if row.verdict == BROKEN]
    assert sum(row.verdict == KEPT and row.interval[1] < row.delta for row in rows) >= 5, "beyond doubt"


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in available() if get(name).guarantees and name not in OURS])
def test_rivals_in_a_very_short_audit(name: str) -> None:
    """40 runs a row find out who fails half the time; `make audit` looks closer. False alarm: at most 1e-4 a row."""
    rows = list(measure.audit([Contender(get(name))], families.cases(["near-ties"], short=True), replicates=40))
    assert {row.verdict for row in rows} <= {KEPT, SKIPPED}, [row for row in rows if row.verdict == BROKEN]
    assert any(row.verdict == KEPT for row in rows)


def test_a_cheat_is_found_out(cheat: str, tmp_path: Path) -> None:
    out = tmp_path / "new" / "audit.json"
    done = run("--algorithms", f"{cheat},multi-pfi", "--short", "--family", "near-ties", "--out", str(out))
    assert done.exit_code == 6
    assert "BROKEN" in done.output
    assert "What is claimed does not hold" in done.output
    rows = json.loads(out.read_text())
    assert {row["algorithm"] for row in rows if row["verdict"] == BROKEN} == {cheat}
    caught = next(row for row in rows if row["verdict"] == BROKEN)
    assert caught["interval"][0] > caught["delta"] == 0.1
    assert caught["replicates"] < measure.SHORT, "a row ends when it is clear"


def test_who_claims_nothing_breaks_nothing(cheat: str) -> None:
    registry._algorithms[cheat] = replace(get(cheat), guarantees=False)
    done = run("--algorithms", cheat, "--short", "--family", "near-ties", "--json")
    assert done.exit_code == 0
    assert FAILS in {row["verdict"] for row in rows_of(done)}


def test_the_printed_algorithm_is_named_as_failing() -> None:
    done = run("--algorithms", "pfiwr", "--short", "--family", "near-ties")
    assert done.exit_code == 0
    assert "pfiwr: claims no guarantee" in done.output
    assert "fails (claims none)" in done.output
    assert re.search(r"pfiwr claims none, and fails in [1-9] of \d rows", done.output)


def test_a_run_at_its_limit_is_a_failure() -> None:
    case = families.Case("endless", ps.problems.gaussian(np.zeros((3, 2)), 1.0), eps=0.0, max_samples=50)
    (row,) = measure.audit([Contender(get("multi-pfi"))], [case], replicates=40)
    assert (row.verdict, row.failures, row.capped, row.replicates) == (BROKEN, 20, 20, 20)


def test_who_claims_nothing_gets_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "UNCLAIMED_SECONDS", 0.3)
    case = families.Case("endless", ps.problems.gaussian(np.zeros((3, 2)), 1.0), eps=0.0, max_samples=10**12)
    (row,) = measure.audit([Contender(replace(get("multi-pfi"), guarantees=False))], [case], replicates=40, workers=1)
    assert (row.failures, row.capped, row.replicates) == (1, 1, 1)
    assert row.reason == "stopped after 0.3 s"
    assert json.loads(json.dumps(row.as_dict(), allow_nan=False))["samples"] is None


def test_who_claims_something_gets_more_and_what_is_cut_off_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "CLAIMED_SECONDS", 0.3)
    endless = families.Case("endless", ps.problems.gaussian(np.zeros((3, 2)), 1.0), eps=0.0, max_samples=10**12)
    (row,) = measure.audit([Contender(get("multi-pfi"))], [endless], replicates=40, workers=1)
    assert (row.verdict, row.replicates, row.reason) == (SKIPPED, 0, "no run ended within 0.3 s")
    monkeypatch.setattr(measure, "CLAIMED_SECONDS", -1.0)  # over before it began
    quick = families.Case("quick", ps.problems.gaussian(np.eye(2), 0.1), eps=0.1)
    (row,) = measure.audit([Contender(get("multi-pfi"))], [quick], replicates=40, to_the_end=True, workers=1)
    assert (row.verdict, row.replicates, row.reason) == (KEPT, 40, "")


def chances(replicates: int, true: float, delta: float = 0.1) -> float:
    """The probability that a row is called broken, exactly: look by look, over all numbers of failures."""
    alive = np.array([1.0])  # of each number of failures so far, rows that are still going
    called, before = 0.0, 0
    for n, tail in measure.looks(replicates):
        alive = np.convolve(alive, binom.pmf(np.arange(n - before + 1), n - before, true))
        before = n
        for failures in range(n + 1):
            low, high = rate_interval(failures, n, 1.0 - 2.0 * tail)
            if low > delta:
                called += alive[failures]
            if low > delta or high < delta:  # the second makes it harder to be found out
                alive[failures] = 0.0
    return float(called)


@pytest.mark.parametrize("share", [1.0, measure.COSTLY_SHARE])
def test_enough_replicates(share: float) -> None:
    n = int(measure.FULL * share)
    assert n >= 600
    assert chances(n, true=0.1) <= measure.FALSE_ALARM
    assert chances(n, true=0.2) >= 0.999


def test_settings_that_an_algorithm_lacks_are_a_reason_to_skip() -> None:
    case = families.Case("secret", ps.problems.load("s5"), eps=0.1, tells={"moon": "full"})
    gone = families.Case("gone", "no such file")
    rows = list(measure.audit([Contender(get("uniform"))], [case, gone]))
    assert [(row.verdict, row.reason) for row in rows] == [
        (SKIPPED, "cannot be told: moon"),
        (SKIPPED, "no such file"),
    ]


def test_asked_settings_go_before_what_a_case_tells() -> None:
    case = families.Case("told", ps.problems.load("s5"), tells={"sigma": 1.0})
    assert Contender(get("uniform"), {"sigma": 0.2}).settings(case).sigma == 0.2
    assert Contender(get("uniform"), {"sigma": 0.2}).label == "uniform sigma=0.2"
    assert run("--algorithms", "uniform:sigma=-1").exit_code == 2
    assert "unknown family 'moon'" in run("--family", "moon").output


def test_nothing_in_the_audit_names_an_algorithm() -> None:
    for path in Path(measure.__file__).parent.glob("*.py"):
        words = set(re.findall(r"[\w-]+", path.read_text(encoding="utf-8").lower()))
        for name in available():
            assert not words & {name, name.replace("-", "_"), get(name).settings.__name__.lower()}, path.name


def test_the_families_cover_what_they_should() -> None:
    problems = [case.problem for case in families.cases() if isinstance(case.problem, ps.Problem)]
    arms = {len(problem.arms) for problem in problems}
    features = {problem.contexts.shape[1] for problem in problems if problem.contexts is not None}
    assert {1, 4, 2000} <= arms
    assert {1, 20} <= features
    assert {len(problem.metrics) for problem in problems} == {1, 2, 3, 4}
    assert {case.family for case in families.cases(short=True)} <= set(families.FAMILIES)


@pytest.mark.parametrize("pool", [[0.0, 1.0], [0.0] * 49 + [7.0], [3.0, 3.0], [-4.0, 0.0, 0.1, 0.2]])
def test_the_scale_told_for_rows_is_a_valid_one(pool: list[float]) -> None:
    values = np.array(pool)
    sigma = families.subgaussian_scale(values)
    assert sigma <= 1.02 * (values.max() - values.min()) / 2
    for s in [*np.geomspace(1e-3, 40, 400), *-np.geomspace(1e-3, 40, 400)]:
        assert np.log(np.mean(np.exp(s * (values - values.mean())))) <= s * s * sigma * sigma / 2 + 1e-12


def test_the_scale_of_a_rare_event_is_the_known_one() -> None:
    """Kearns and Saul: sigma^2 = (1 - 2p) / (2 log((1 - p) / p)) for a 0-1 variable."""
    known = ((1 - 0.04) / (2 * np.log(0.98 / 0.02))) ** 0.5
    assert known <= families.subgaussian_scale(np.array([1.0] + [0.0] * 49)) <= 1.02 * known


def test_summary_of_nothing() -> None:
    assert measure.summary([]) == "Nothing was run."
    skipped = Row("x", True, "f", "c", {}, 0.1, SKIPPED, "no file")
    assert measure.summary([skipped]) == "1 row was skipped."
