"""Studies from the command line, as people and shell scripts run them."""

from __future__ import annotations

import csv
import inspect
import io
import json
import math
import os
import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from conftest import PATIENCE

import paretoscout as ps
from paretoscout.bench import Plan
from paretoscout.bench.made_up import made_up_bench
from paretoscout.cli.main import SECTIONS, main
from paretoscout.defaults import DELTA, STORAGE
from paretoscout.estimators import DRMix, DRRidge
from paretoscout.statement import Statement

TRUTH = {"small": (0.80, 1.0), "large": (0.90, 3.0), "old": (0.70, 2.0)}  # quality, cost: old is dominated by small
NEW = ("create", *(f"--arm={arm}" for arm in TRUTH), "-m", "quality", "-m", "cost:min", "--eps", "0.05")
KNOWN = (*NEW, "--sigma", "quality=0.01", "--sigma", "cost=0.05")


@pytest.fixture(autouse=True)
def folder(empty_folder: Path) -> Path:
    return empty_folder


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=given, catch_exceptions=False)


def ok(*arguments: str, given: str | None = None) -> str:
    done = run(*arguments, given=given)
    assert done.exit_code == 0, done.output
    return done.stdout


def read(*arguments: str, given: str | None = None) -> Any:
    return json.loads(ok(*arguments, given=given), parse_constant=lambda name: pytest.fail(name))


def measured(arm: str, rng: random.Random) -> str:
    quality, cost = TRUTH[arm]
    return f"quality={rng.gauss(quality, 0.01)} cost={rng.gauss(cost, 0.05)}"


def finish(*which: str) -> int:
    """Measure until there is nothing left to ask; return how often."""
    rng, total = random.Random(0), 0
    while True:
        asked = run("ask", "-n", "4", *which)
        if asked.exit_code:
            assert asked.exit_code == 5, asked.output
            assert asked.stdout == ""
            assert asked.stderr == "every option has its verdict\n"
            return total
        trials = [line.split("\t") for line in asked.stdout.splitlines()]
        total += len(trials)
        lines = "".join(f"{trial} {measured(arm, rng)}\n" for trial, arm in trials)
        assert ok("tell", "-", *which, given=lines) == ""


def test_a_whole_study(folder: Path) -> None:
    made = ok(*KNOWN, "--unit", "cost=ct")
    assert "study 'study' in paretoscout.db: 3 options, delta 0.05" in made
    assert "quality: larger is better; up to 0.05 does not matter; sigma 0.01" in made
    assert "cost: smaller is better; up to 0.05 ct does not matter; sigma 0.05 ct" in made
    early = run("front")
    assert early.exit_code == 3
    assert early.stdout == ""
    assert "not yet decided: 3 undecided" in early.stderr
    assert 6 <= finish() <= 60
    assert ok("front") == "small\nlarge\n"
    whole = read("front", "--json")
    assert whole["front"] == ["small", "large"]
    assert whole["done"] is True
    assert "probability 95%" in whole["guarantee"]["text"]
    assert json.loads(run("ask", "--json").stdout) == []
    assert read("ask", "--arm", "old", "--json")[0]["arm"] == "old"
    assert "unknown arm 'older'; did you mean 'old'" in run("ask", "--arm", "older").output
    shown = ok("status")
    assert "★ front" in shown
    assert "× dominated by small" in shown
    assert "2 front, 1 dominated; " in shown
    assert "cost (ct)" in shown
    assert "old is dominated by small" in " ".join(ok("explain", "old").split())
    assert read("explain", "old", "--json")["rival"] == "small"
    assert ok("plot", "--out", "front.svg") == "picture: front.svg\n"
    assert "<svg" in (folder / "front.svg").read_text()


def test_status_says_what_is_still_needed() -> None:
    ok(*NEW)
    trials = read("ask", "-n", "3", "--json")
    assert [trial["arm"] for trial in trials] == ["small", "large", "old"]
    ok("tell", str(trials[0]["trial"]), "quality=0.8", "cost=1")
    status = read("status", "--json")
    assert status["done"] is False
    assert (status["asked"], status["told"], status["open"], status["budget"]) == (3, 1, 2, None)
    assert [trial["option"] for trial in status["open_trials"]] == ["large", "old"]
    assert read("status", "--json", "--forecast")["remaining"] is None  # not every option was measured
    assert {option["verdict"] for option in status["options"]} == {"undecided"}
    shown = ok("status")
    assert "3 undecided; 1 sample\n" in shown
    assert f"open trials: {trials[1]['trial']} (large), {trials[2]['trial']} (old)" in shown
    assert "normal noise, variance unknown" in shown
    for trial in trials[1:]:
        ok("tell", str(trial["trial"]), "--failed", "interrupted")  # what is imported would wait for it
    ok("import", "-", given="arm,quality,cost\n" + "small,0.8,1\nlarge,0.9,3\nold,0.7,2\nsmall,0.81,1.1\n")
    assert set(read("status", "--json", "--forecast")["remaining"]) == {"samples", "low", "high", "uniform", "by_arm"}
    shown = ok("status")
    assert "3 undecided; 5 samples; about " in shown
    assert "more runs" in shown


def test_tell_takes_words_json_lines_and_failures() -> None:
    ok(*NEW)
    one, two, three, four = (str(trial["trial"]) for trial in read("ask", "-n", "4", "--json"))
    assert read("tell", one, "-", "--json", given='{"quality": 0.8, "cost": 1}')["told"] == 1
    ok("tell", one, "quality=0.8", "cost=1")  # once more: nothing happens
    again = run("tell", one, "quality=0.9", "cost=1")
    assert again.exit_code == 2
    assert f"trial {one} was told before, with other values" in again.output
    ok("tell", two, "-", given="quality=0.9\ncost=3\n")
    ok("tell", three, "--failed", "out of memory")
    ok("tell", three, "quality=0.7", "cost=none")  # late, and half of it
    assert read("tell", "-", "--json", given=f"{four} failed no luck\n")["told"] == 2
    assert read("status", "--json")["open"] == 0
    five, six = (str(trial["trial"]) for trial in read("ask", "-n", "2", "--json"))
    lines = f'\n{five} quality=0.8 cost=1\n{{"trial": {six}, "arm": "x", "quality": 0.8, "cost": null}}\n'
    assert read("tell", "-", "--json", given=lines)["told"] == 4


@pytest.mark.parametrize(
    ("arguments", "given", "message"),
    [
        (["1000", "quality=1"], None, "trial must be one that was asked, got 1000"),
        (["x", "quality=1"], None, "TRIAL must be a number that was asked, got 'x'"),
        (["0"], None, "outcome of trial 0 must be METRIC=VALUE for each metric, got nothing"),
        (["0", "-"], "", "outcome of trial 0 must be METRIC=VALUE for each metric, got nothing"),
        (["0", "-"], "{quality}", "outcome of trial 0 must be JSON"),
        (["0", "quality"], None, "outcome of trial 0 must be written METRIC=VALUE, got 'quality'"),
        (["0", "quality=good"], None, "'quality' in outcome of trial 0 must be a number, got 'good'"),
        (["0", "quality=nan"], None, "'quality' in outcome of trial 0 must be a finite number, got nan"),
        (["0", "qualty=1"], None, "'qualty'; did you mean 'quality'?"),
        (["0", "quality=1", "--failed", "no"], None, "must have an outcome or have failed, got both"),
        (["-", "quality=1"], "", "nothing may follow"),
        (["-"], "", "tell - must get lines TRIAL METRIC=VALUE ..., got none"),
        (
            ["-"],
            "0 quality=1 cost=1\n1\n",
            "line 2, outcome of trial 1 must be METRIC=VALUE for each metric, got nothing",
        ),
        (["-"], "0 quality=1 cost=1\n1 speed=1\n", "unknown metric in line 2: 'speed'"),
        (["-"], "0 quality=1 cost=1\n99 quality=1 cost=1\n", "trial must be one that was asked, got 99"),
    ],
)
def test_a_wrong_outcome_changes_nothing(arguments: list[str], given: str | None, message: str) -> None:
    ok(*NEW)
    ok("ask", "-n", "2")
    done = run("tell", *arguments, given=given)
    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output
    assert read("status", "--json")["told"] == 0


def test_a_budget_ends_the_loop_with_another_exit_code() -> None:
    ok(*NEW, "--budget", "3")
    assert len(read("ask", "-n", "2", "--json")) == 2
    last = ok("ask", "-n", "2")
    assert last.count("\n") == 1
    spent = run("ask")
    assert spent.exit_code == 3
    assert (spent.stdout, spent.stderr) == ("", "the budget is spent\n")
    assert run("status").exit_code == 0  # outcomes may still come in
    ok("tell", "-", given="".join(f"{trial} quality=1 cost=1\n" for trial in range(3)))
    status = run("status")
    assert status.exit_code == 3
    assert "the budget is spent" in status.output
    assert run("front").exit_code == 3


def test_create_from_a_csv_file(folder: Path) -> None:
    (folder / "arms.csv").write_text("arm,threads,codec\na,1,zstd\nb,2,gzip\nc,3,zstd\n")
    made = ok("create", "arms.csv", "-m", "speed", "--context", "threads", "--context", "codec")
    assert "contexts: 1, threads, codec = zstd" in made
    assert "contexts are kept but not used" in made
    named = ["--name", "robust", "--algorithm", "scout:model=robust:misfit=0.1", "--sigma", "0.1"]
    made = ok("create", "arms.csv", "-m", "speed", "--context", "threads", *named)
    assert "not used" not in made
    assert "next: paretoscout run --name robust './measure {arm}'; or ask --name robust" in made
    assert "up to a misfit of 0.1" in ok("status", "--name", "robust")
    ok("add-arm", "d", "--context", "threads=4", "--name", "robust")
    assert [row["option"] for row in read("status", "--name", "robust", "--json")["options"]] == ["a", "b", "c", "d"]


YAML = """
name: models
arms: [small, large, 3]
metrics:
  quality: max
  cost: {direction: min, eps: 0.1, unit: ct, bounds: [0, 10]}
guards: ["latency <= 200"]
delta: 0.1
algorithm: scout:regret_weight=0.9
lease: 30m
budget: 500
"""


def test_create_from_yaml(folder: Path) -> None:
    (folder / "study.yaml").write_text(YAML)
    made = ok("create", "study.yaml")
    assert "study 'models'" in made
    assert "delta 0.1" in made
    assert "guard: latency <= 200" in made
    assert "cost: smaller is better; up to 0.1 ct does not matter; from 0 to 10 ct" in made
    assert ok("create", "study.yaml") == made  # the same again changes nothing
    ok("create", "study.yaml", "--name", "second")
    listed = read("studies", "--json")
    assert [row["name"] for row in listed] == ["models", "second"]
    assert listed[0]["arms"] == ["small", "large", "3"]
    assert listed[0]["metrics"] == {"quality": "max", "cost": "min"}
    assert "models  3 options; quality max, cost min" in ok("studies")
    (folder / "arms.csv").write_text("model,size\nsmall,1\nlarge,70\n")
    (folder / "other.yml").write_text("arms: arms.csv\nmetrics: {quality: max}\ncontexts: size\nsigma: 0.1\n")
    assert "contexts: 1, size" in ok("create", "other.yml", "--name", "third")
    (folder / "table.yml").write_text("arms:\n- {arm: a, size: 1}\n- {arm: b, size: 2}\nmetrics: {q: max}\n")
    assert "2 options" in ok("create", "table.yml", "--name", "fourth")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arms: [a]\nmetrcs: {q: max}", "unknown key in study.yaml: 'metrcs'; did you mean 'metrics'?"),
        ("arms: [a]\nmetrics: {q: {dir: max}}", "unknown key in metric 'q' of study.yaml: 'dir'"),
        ("arms: [a]\nmetrics: {q: best}", "direction of metric 'q' must be min or max, got 'best'"),
        ("arms: [a]", "study.yaml must have metrics, got none"),
        ("metrics: {q: max}", "study.yaml must have arms, got none"),
        ("arms: [yes, no]\nmetrics: {q: max}", "put it in quotes"),
        ("arms: 3\nmetrics: {q: max}", "arms of study.yaml must be a list, got 3"),
        ("arms: [{a: 1}, {b: 1}]\nmetrics: {q: max}", "must all have the same keys (a)"),
        ("arms: [a]\nmetrics: [q]", "metrics of study.yaml must be written 'name: min'"),
        ("arms: [a]\nmetrics: {q: max}\nalgorithm: {name: scout}", "must be written NAME[:SETTING=VALUE...]"),
        ("arms: [a]\nmetrics: {q: max}\nlease: soon", "lease must be a time such as"),
        ("arms: none.csv\nmetrics: {q: max}", "no such file: none.csv"),
        ("arms: [a", "study.yaml must be a YAML file, but: "),
        ("[1]", "study.yaml must have keys (name, title, arms"),
    ],
)
def test_a_wrong_description(text: str, message: str, folder: Path) -> None:
    (folder / "study.yaml").write_text(text)
    done = run("create", "study.yaml")
    assert done.exit_code == 2
    assert message in done.output
    assert not (folder / "paretoscout.db").exists()


def test_yaml_is_an_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "study.yaml").write_text(YAML)
    monkeypatch.setitem(sys.modules, "yaml", None)
    done = run("create", "study.yaml")
    assert done.exit_code == 2
    assert "pip install 'paretoscout[yaml]'" in done.output


STATED = """
title: "Which one?"
arms: [{arm: a, x: 1, price: 2}, {arm: b, x: 2, price: 3}]
metrics:
  time: {direction: min, eps: 2%, unit: ms}
  rate: {direction: max, scale: log}
contexts: x
model: linear
theta_max: 3
cost: price
sigma: 0.1
goal: practical
"""


def test_all_settings_of_a_study_can_be_stated(folder: Path) -> None:
    """In YAML and by options: the same study."""
    (folder / "study.yaml").write_text(STATED)
    made = ok("create", "study.yaml")
    assert "question: Which one?" in made
    assert (
        "time: smaller is better; up to 2% does not matter; geometric means are compared; sigma 0.1 of its log" in made
    )
    assert "model: means linear in the contexts" in made
    assert "not used" not in made
    assert "cost of a measurement: from 2 to 3" in made
    (folder / "arms.csv").write_text("arm,x,price\na,1,2\nb,2,3\n")
    what = ["arms.csv", "-m", "time:min", "-m", "rate", "--eps", "time=2%", "--unit", "time=ms", "--scale", "rate=log"]
    how = ["--context", "x", "--model", "linear", "--theta-max", "3", "--sigma", "0.1", "--goal", "practical"]
    assert ok("create", *what, *how, "--cost", "price", "--title", "Which one?") == made
    assert ok("create", *what, *how, "--cost", "a=2", "--cost", "b=3", "--title", "Which one?") == made
    assert ok("status").startswith("Which one?\n")


def test_options_are_added_with_their_costs() -> None:
    costs = [f"--cost={arm}={cost}" for cost, arm in enumerate(TRUTH, 1)]
    ok(*KNOWN, *costs)
    lacks = run("add-arm", "new")
    assert lacks.exit_code == 2
    assert "cost of arms must be given as in the study" in lacks.output
    ok("add-arm", "new", "newer", "--cost", "7")
    ok("add-arm", "newest", "--cost", "newest=9")
    with ps.Study.load(storage=STORAGE).log.reading() as replica:
        assert replica.session.setup.cost.tolist() == [1, 2, 3, 7, 7, 9]


def test_a_value_too_small_to_be_measured() -> None:
    ok(*KNOWN, "--goal", "practical")
    one, two, three = (str(trial["trial"]) for trial in read("ask", "-n", "3", "--json"))
    ok("tell", one, "quality=0.8", "cost<1")
    ok("tell", two, "-", given='{"quality": 0.9, "cost": {"below": 3}}')
    ok("tell", "-", given=f"{three} quality=0.7 cost<2\n")
    rows = read("status", "--json")["options"]
    assert [row["estimates"]["cost"]["censored"] for row in rows] == [True, True, True]
    assert [row["estimates"]["quality"]["censored"] for row in rows] == [False, False, False]


TIMES = {"a": (100.0, 0.7), "b": (200.0, 0.9), "c": (150.0, 0.6)}  # ms, quality: c is dominated by a


def test_a_metric_in_percent_is_shown_in_its_own_unit_everywhere(folder: Path) -> None:
    rng = random.Random(0)
    rows = [
        (arm, time * math.exp(rng.gauss(0, 0.01)), rng.gauss(quality, 0.01))
        for _ in range(20)
        for arm, (time, quality) in TIMES.items()
    ]
    (folder / "runs.csv").write_text("\n".join(["arm,time,quality", *(f"{a},{t},{q}" for a, t, q in rows)]))
    metrics = ["-m", "time:min", "-m", "quality", "--eps", "time=2%", "--eps", "quality=0.05", "--unit", "time=ms"]
    ok("create", *(f"--arm={arm}" for arm in TIMES), *metrics, "--guard", "time <= 500")
    ok("import", "runs.csv")
    shown = ok("status")
    assert "up to 2% of time and 0.05 of quality" in shown
    assert re.search(r"a +★ front +(99|100)\.\d* ±", shown)
    for known in (
        read("status", "--json"),
        read("export", "--json"),
        read("analyze", "runs.csv", "--arm", "arm", *metrics, "--json"),
        read("analyze", "runs.csv", "--arm", "arm", *metrics, "--goal", "practical", "--json"),
    ):
        assert known["guarantee"]["tolerated"] == {"time": "2%", "quality": "0.05"}
        assert known["metrics"][0]["eps"] == "2%"
        assert [option["verdict"] for option in known["options"]] == ["front", "front", "dominated"]
        for option in known["options"]:
            time = option["estimates"]["time"]
            assert time["value"] == pytest.approx(TIMES[option["option"]][0], rel=0.01)
            assert time["low"] < TIMES[option["option"]][0] < time["high"]
    assert "time better by 5" in ok("explain", "c")
    assert 0.4 < read("explain", "c", "--json")["margins"]["time"] < 0.6
    exported = list(csv.DictReader(io.StringIO(ok("export"))))
    assert [float(row["time"]) for row in exported] == [time for _, time, _ in rows]
    assert [row["values"]["time"] for row in read("export", "--format", "json")] == [time for _, time, _ in rows]
    ok("plot", "--out", "front.svg")
    assert "time (ms)" in (folder / "front.svg").read_text()


def test_import_takes_all_rows_or_none(folder: Path) -> None:
    ok(*NEW)
    (folder / "runs.csv").write_text("model,quality,cost,note\nsmall,0.8,1,x\nlarge,,3,y\n")
    done = run("import", "runs.csv", "--arm", "model")
    assert done.exit_code == 0
    assert done.stdout == "2 rows, 2 of them new; 3 undecided; 2 samples\n"
    assert "left aside: note" in done.stderr
    trial = read("ask", "--json")[0]
    rows = f"trial,arm,quality,cost\n{trial['trial']},{trial['arm']},0.8,1\n"
    assert read("import", "-", "--trial", "trial", "--json", given=rows) == {
        "rows": 1,
        "new": 1,
        "ignored": [],
        "done": False,
    }
    assert read("import", "-", "--trial", "trial", "--json", given=rows)["new"] == 0
    for text, message in (
        ("arm,quality\nsmall,1\nsmol,1\n", "'smol'; did you mean 'small'?"),
        ("arm,quality\nsmall,1\nlarge,good\n", "must hold numbers, got 'good' in line 3"),
        ("arm,speed\nsmall,1\n", "must have a column for a metric (quality, cost)"),
        ("arm,quality\n", "the input must have a header and at least one row"),
    ):
        refused = run("import", "-", given=text)
        assert refused.exit_code == 2
        assert message in refused.output
    assert read("status", "--json")["imported"] == 2
    assert "2 imported rows" in ok("status")


def test_export(folder: Path) -> None:
    ok(*NEW)
    (folder / "runs.csv").write_text("arm,quality,cost\nsmall,0.8,1\nlarge,,3\n")
    ok("import", "runs.csv")
    trial = read("ask", "--json")[0]
    ok("tell", str(trial["trial"]), "quality=0.5", "cost=2")
    rows = list(csv.DictReader(io.StringIO(ok("export"))))
    assert [(row["trial"], row["arm"], row["quality"], row["cost"]) for row in rows] == [
        ("", "small", "0.8", "1.0"),
        ("", "large", "", "3.0"),
        (str(trial["trial"]), trial["arm"], "0.5", "2.0"),
    ]
    assert rows[0]["at"].endswith("+00:00")
    assert ok("export", "--out", "all.json") == "written: all.json\n"
    listed = json.loads((folder / "all.json").read_text())
    assert listed[1]["values"] == {"quality": None, "cost": 3.0}
    ok("export", "--out", "all.parquet")
    import pyarrow.parquet

    assert pyarrow.parquet.read_table(folder / "all.parquet").column("cost").to_pylist() == [1.0, 3.0, 2.0]
    report = ok("export", "--format", "markdown")
    assert report.startswith("Guarantee: all verdicts right with probability 95%")
    assert "| option | verdict | quality ↑ | cost ↓ | n |\n| --- | --- | --- | --- | --- |\n" in report
    for arguments, message in (
        (["--format", "parquet"], "--format parquet must come with --out FILE"),
        (["--out", "all.xlsx"], "--out must end in .csv, .json, .parquet, .md, or come with --format"),
    ):
        refused = run("export", *arguments)
        assert refused.exit_code == 2
        assert message in refused.output
    # what was exported can be imported elsewhere
    ok(*NEW, "--name", "copy")
    (folder / "all.csv").write_text(ok("export"))
    assert read("import", "all.csv", "--name", "copy", "--json")["new"] == 3


def test_arms_come_and_go() -> None:
    ok(*NEW)
    assert ok("withdraw", "old", "--reason", "no longer sold").startswith("2 undecided")
    assert "withdrawn: old (no longer sold)" in ok("status")
    assert read("status", "--json")["withdrawn"] == [{"option": "old", "kind": "by hand", "reason": "no longer sold"}]
    assert "no longer sold" in ok("explain", "old")
    assert ok("add-arm", "new", "old").startswith("4 undecided")
    assert "Withdrawn" not in ok("export", "--format", "markdown")
    assert run("add-arm", "new").exit_code == 2


def test_a_guard_takes_options_out() -> None:
    ok(
        "create",
        "--arm",
        "a",
        "--arm",
        "b",
        "-m",
        "quality",
        "--guard",
        "latency <= 200",
        "--sigma",
        "latency=1",
        "--sigma",
        "quality=0.1",
    )
    rows = "arm,quality,latency\n" + "a,1,100\nb,2,300\n" * 20
    ok("import", "-", given=rows)
    assert read("status", "--json")["withdrawn"] == [
        {"option": "b", "kind": "guard", "reason": "breaks latency <= 200"}
    ]
    assert ok("front") == "a\n"


def test_deleting_asks_first() -> None:
    ok(*NEW)
    assert run("delete", "study", given="n\n").exit_code == 130
    unanswered = run("delete", "study", given="")
    assert unanswered.exit_code == 2
    assert "nobody is there to answer: say --yes. Nothing was changed" in unanswered.output
    assert "study" in ok("studies")
    ok("delete", "study", "--yes")
    assert ok("studies") == ""
    assert run("status").exit_code == 2


def test_names_and_storage_from_the_environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("PARETOSCOUT_STORAGE", "other.db")
    monkeypatch.setenv("PARETOSCOUT_STUDY", "models")
    ok(*NEW)
    assert sorted(path.name for path in folder.glob("*.db")) == ["other.db"]
    assert read("studies", "--json", "--storage", "sqlite:///other.db")[0]["name"] == "models"


def test_the_command_line_and_the_library_have_the_same_defaults() -> None:
    """Delta is 0.05 in everything that a user calls; `audit` measures at deltas of its own."""
    called: list[Callable[..., Any]]
    called = [ps.simulate, ps.watch, ps.Study, ps.analyze, ps.plan, ps.plan_from_pilot]
    called += [Statement, Plan, made_up_bench, DRMix, DRRidge]
    assert {inspect.signature(function).parameters["delta"].default for function in called} == {DELTA} == {0.05}
    options = {
        (name, option.name): option.default
        for name, command in main.commands.items()
        for option in command.params
        if option.name in ("delta", "storage")
    }
    assert {name for name, option in options if option == "delta"} == {
        *("analyze", "bench", "compare", "create", "demo", "plan"),
    }
    assert {default for (_, option), default in options.items() if option == "delta"} == {DELTA}
    assert {options[name, "storage"] for name in ("create", "ask", "tell", "status", "studies")} == {STORAGE}


def test_analyze(folder: Path) -> None:
    rng = random.Random(0)
    rows = [(arm, *(text.partition("=")[2] for text in measured(arm, rng).split())) for arm in list(TRUTH) * 20]
    wide = "\n".join(["model,quality,cost", *(",".join(row) for row in rows)])
    (folder / "wide.csv").write_text(wide)
    arguments = ("analyze", "wide.csv", "--arm", "model", "-m", "quality", "-m", "cost:min", "--eps", "0.05")
    shown = ok(*arguments, "--out", "x.png")
    assert "2 front, 1 dominated; 60 samples" in shown
    assert (folder / "x.png").read_bytes().startswith(b"\x89PNG")
    assert [row["verdict"] for row in read(*arguments, "--json")["options"]] == ["front", "dominated", "front"]
    lines = [
        f"{arm},{name},{value}" for arm, *pair in rows for name, value in zip(("quality", "cost"), pair, strict=True)
    ]
    (folder / "long.csv").write_text("\n".join(["model,what,number", *lines]))
    long = ("analyze", "long.csv", *arguments[2:], "--long", "metric=what,value=number")
    assert [row["verdict"] for row in read(*long, "--json")["options"]] == ["front", "dominated", "front"]
    (folder / "few.csv").write_text("\n".join(wide.splitlines()[:7]))
    few = run("analyze", "few.csv", *arguments[2:])
    assert few.exit_code == 3
    assert "3 undecided" in few.output
    assert not list(folder.glob("*.db"))


def test_watching_ends_when_all_is_decided() -> None:
    ok(*KNOWN)
    with subprocess.Popen(
        [sys.executable, "-m", "paretoscout", "status", "--watch", "0.1", "--json"], stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        assert first["done"] is False
        finish()
        rest, _ = watching.communicate(timeout=PATIENCE)
    assert watching.returncode == 0
    assert json.loads(rest.splitlines()[-1])["done"] is True


def test_watching_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    from paretoscout.cli import show

    ok(*KNOWN)
    finish()
    assert "2 front, 1 dominated" in ok("status", "--watch")  # not a terminal: a line for each change
    screen = Console(force_terminal=True, width=140, file=io.StringIO())
    monkeypatch.setattr(show, "console", lambda: screen)
    assert run("status", "--watch", "1").exit_code == 0
    assert "× dominated by small" in screen.file.getvalue()  # type: ignore[attr-defined]


MEASURE = """#!/bin/sh
case "$1" in
    small) echo "quality=0.8 cost=1" ;;
    large) echo "quality=0.9 cost=3" ;;
    old) echo "quality=0.7 cost=2" ;;
    *) exit 1 ;;
esac
"""

ONE_BY_ONE = """
while paretoscout ask > trial; do
    read -r number arm < trial; ./measure "$arm" | paretoscout tell "$number" - || break
done
echo "ended with $?"
paretoscout front
"""


def in_bash(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script where `paretoscout` is the one that is tested."""
    (folder / "measure").write_text(MEASURE)
    (folder / "measure").chmod(0o755)
    (folder / "paretoscout").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m paretoscout "$@"\n')
    (folder / "paretoscout").chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_a_shell_loop_runs_a_whole_study(folder: Path) -> None:
    ok(
        "create",
        "--arm",
        "small",
        "--arm",
        "old",
        "-m",
        "quality",
        "-m",
        "cost:min",
        "--eps",
        "0.05",
        "--sigma",
        "0.01",
    )
    done = in_bash(ONE_BY_ONE, folder)
    assert done.stdout == "ended with 0\nsmall\n", done.stderr
    assert done.stderr == "every option has its verdict\n"
    assert read("status", "--json")["open"] == 0


def test_a_loop_whose_measurements_fail_ends(folder: Path) -> None:
    ok("create", "--arm", "unknown", "--arm", "old", "-m", "quality", "-m", "cost:min", "--sigma", "0.1")
    loop = ONE_BY_ONE.replace("paretoscout front", "")
    done = in_bash(loop, folder)
    assert "outcome of trial 0 must be METRIC=VALUE for each metric, got nothing" in done.stderr


def test_the_loop_in_the_help_is_the_one_in_the_documents() -> None:
    loop = [line.strip() for line in ok("ask", "--help").splitlines() if "while" in line]
    page = (Path(__file__).parent.parent / "docs" / "how-to" / "your-own.md").read_text(encoding="utf-8")
    assert len(loop) == 2
    for line in loop:
        assert line in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["status"], "no studies here: there is no file paretoscout.db"),
        (["status", "--storage", "sqlite:///none.db"], "there is no file none.db"),
        (["status", "--storage", "memory"], "what is in memory is gone when the command ends"),
        (["status", "--name", "mine", "--storage", "there.db"], "unknown study 'mine'"),
        (["explain", "smal", "--storage", "there.db"], "unknown arm 'smal'; did you mean 'small'?"),
        (["withdraw", "smal", "--storage", "there.db"], "unknown arm 'smal'; did you mean 'small'?"),
        (["ask", "-n", "0", "--storage", "there.db"], "0 is not in the range"),
        (["plot", "--out", "x.gif", "--storage", "there.db"], "--out must end in .png or .svg"),
        (["export", "--out", "no/x.csv", "--storage", "there.db"], "--out must be in a folder that exists"),
        (["plot", "-x", "speed", "--storage", "there.db"], "unknown metric 'speed'"),
        (["import", "none.csv", "--storage", "there.db"], "no such file: none.csv"),
        ([*NEW, "--delta", "0.2", "--storage", "there.db"], "is there already, with other settings of delta"),
        (["create"], "a study must have at least one metric"),
        (["create", "-m", "q"], "a study must have options: either --arm NAME for each, or a CSV or YAML file"),
        (["create", "models", "-m", "q"], "the name of a study is --name"),
        (["create", "none.csv", "-m", "q"], "no such file: none.csv"),
        (["create", "none.yaml"], "no such file: none.yaml"),
        (["create", "none.yaml", "--delta", "0.1"], "--delta must be in the YAML file, not beside it"),
        ([*NEW, "--storage", "memory"], "what is in memory is gone"),
        ([*NEW, "--eps", "speed=1"], "not both"),
        ([*NEW, "--unit", "speed=m/s"], "unknown metric 'speed'"),
        ([*NEW, "--unit", "ms"], "--unit must be written METRIC=UNIT, got 'ms'"),
        ([*NEW, "--bounds", "quality=1"], "--bounds must be written METRIC=LOW,HIGH"),
        ([*NEW, "--sigma", "much"], "--sigma must be a number or METRIC=NUMBER, got 'much'"),
        ([*NEW, "--guard", "latency < 3"], "a guard must read like 'latency <= 200', got 'latency < 3'"),
        ([*NEW, "--lease", "soon"], "--lease must be a time such as 90, 90s, 30m, 2h or 1d, got 'soon'"),
        ([*NEW, "--goal", "all"], "goal must be 'front', 'cover', 'practical' or a number"),
        ([*NEW[:-2], "--eps", "x%"], "eps of metric 'quality' must be a number or a percentage such as '2%', got 'x%'"),
        ([*NEW, "--scale", "cost=log"], "eps of metric 'cost' must be a share such as '2%' where its scale is 'log'"),
        ([*NEW, "--scale", "cost=cubic"], "scale of metric 'cost' must be 'linear' or 'log', got 'cubic'"),
        ([*NEW, "--scale", "log"], "--scale must be written METRIC=log, got 'log'"),
        ([*NEW, "--sigma", "2%"], "--sigma must be a number or METRIC=NUMBER, got '2%'"),
        ([*NEW, "--cost", "price"], "--cost must be a number or ARM=NUMBER, got 'price'"),
        ([*NEW, "--cost", "3"], "--cost must be written ARM=NUMBER for each option, got '3'"),
        ([*NEW, "--cost", "small=3"], "cost of a study must be given for every arm, got none of 'large'"),
        ([*NEW, "--model", "linear"], "model of a study must be 'none' where contexts are not given"),
        (
            ["tell", "0", "cost<none", "--storage", "there.db"],
            "'cost' in outcome of trial 0 must be a number, got 'none'",
        ),
        ([*NEW, "--arm", "small"], "names of arms must differ, got 'small' twice"),
        ([*NEW, "--algorithm", "multi-pfi"], "sigma of a study"),
        ([*NEW, "--context", "size"], "contexts of a study must be columns of a frame"),
        (["analyze", "none.csv", "--arm", "a", "-m", "q"], "no such file: none.csv"),
        (["analyze", "none.csv", "--arm", "a"], "no such file: none.csv"),
        (["analyze", "none.csv", "--arm", "a", "-m", "q", "--long", "x"], "no such file"),
        (["studies", "--storage", "text.db"], "text.db"),
        (["db", "upgrade"], "there is no file paretoscout.db"),
    ],
)
def test_usage_errors_are_one_clear_line(arguments: list[str], message: str, folder: Path) -> None:
    ok(*NEW, "--storage", "there.db")
    (folder / "text.db").write_text("this is no database, " * 100)
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output
    assert not (folder / "paretoscout.db").exists()


def test_a_newer_database(folder: Path) -> None:
    ok(*NEW)
    assert ok("db", "upgrade") == "paretoscout.db: schema 4, up to date\n"
    with sqlite3.connect(folder / "paretoscout.db") as connection:
        connection.execute("UPDATE paretoscout SET schema_version = 99")
    connection.close()
    for command in (["status"], ["ask"], ["db", "upgrade"]):
        done = run(*command)
        assert done.exit_code == 2
        assert "was made by a newer paretoscout" in done.output


def test_every_command_is_listed_and_helps() -> None:
    listed = ok("--help")
    for name, command in main.commands.items():
        assert f"\n  {name} " in listed
        assert command.get_short_help_str(80) in " ".join(listed.split())
        assert "Usage:" in ok(name, "--help")
    assert set(main.commands) >= {name for names in SECTIONS.values() for name in names}


def test_a_trial_that_was_forgotten_is_pointed_out(tmp_path: Path) -> None:
    """An interrupted loop leaves a trial open, and what is told after it waits: people are told what to do."""
    where = ["--storage", str(tmp_path / "s.db")]
    run("create", "--arm", "a", "--arm", "b", "-m", "ms:min", *where)
    first, *others = [line.split("\t")[0] for line in run("ask", "-n", "12", *where).stdout.splitlines()]
    lines = "".join(f"{trial} ms=1.{trial}\n" for trial in others)
    run("tell", "-", *where, given=lines)
    said = run("ask", *where)
    assert f"11 outcomes wait for trial {first} (option a, asked " in said.stderr
    assert f"paretoscout tell {first} --failed interrupted" in said.stderr
    assert "11 outcomes wait for trial" in run("status", *where).stdout
    run("tell", first, "--failed", "interrupted", *where)
    assert "wait for trial" not in run("ask", *where).stderr


def test_status_with_another_eps() -> None:
    ok(*KNOWN)
    assert run("run", "echo quality=0.7 cost=1", "--trials", "30").exit_code == 3
    table = json.loads(ok("status", "--eps", "quality=0.5", "--eps", "cost=2", "--json"))
    assert table["guarantee"]["tolerated"] == {"quality": "0.5", "cost": "2"}
    assert {option["verdict"] for option in table["options"]} == {"front", "same"}
    assert ok("status", "--eps", "quality=0.5", "--eps", "cost=2").rstrip().endswith("asked for 0.5 and 2.")
    assert "unknown metric 'speed'" in run("status", "--eps", "speed=1").output
