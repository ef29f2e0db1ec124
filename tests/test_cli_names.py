"""Names: what is taken, and what becomes of those that earlier versions took."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import paretoscout as ps
from paretoscout import shown
from paretoscout.bench import options_of, source_of
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput
from paretoscout.storage import storage_of
from paretoscout.study import Guard, Study

FORGED = "x\n99\tfake"
EVIL = [FORGED, "\x1b[2Jclear", "=1+1|*<b>$x^", "-O2"]
BAD_NAMES = [FORGED, "\x1b[2J", "", " ", " a", "a ", "a\0b", "a\u202eb", "\udc80", "x" * 501]


@pytest.fixture(autouse=True)
def folder(empty_folder: Path) -> Path:
    return empty_folder


def run(*arguments: str, given: str | None = None) -> Result:
    # color: what goes to a terminal, with nothing taken out on the way
    return CliRunner().invoke(main, list(arguments), input=given, catch_exceptions=False, color=True)


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_every_entrance_refuses_a_name_nobody_can_read(name: str) -> None:
    study = Study(["a"], {"q": "max"}, storage="memory")
    frame = {"arm": ["a", "a", name, name], "q": [1, 2, 3, 4]}
    entrances: list[Any] = [
        lambda: ps.Metric(name),
        lambda: Study(["a", name], {"q": "max"}, storage="memory"),
        lambda: Study({"arm": ["a", name]}, {"q": "max"}, storage="memory"),
        lambda: Study(["a"], {name: "max"}, storage="memory"),
        lambda: Study(["a"], {"q": "max"}, guards=[Guard(name, "<=", 1.0)], storage="memory"),
        lambda: study.add_arms([name]),
        lambda: ps.analyze(frame, "arm", {"q": "max"}),
        lambda: ps.problems.table(frame, "arm", {"q": "max"}),
        lambda: ps.problems.gaussian([[1.0], [2.0]], 1.0, names=["a", name]),
        lambda: options_of(["true", "false"], {}, ["a", name]),
    ]
    if name:
        entrances.append(lambda: ps.Metric("q", unit=name))
    for entrance in entrances:
        with pytest.raises(InvalidInput, match="must"):
            entrance()
    if "\0" not in name:
        refused = run("create", "--arm", "a", "--arm", name, "-m", "q")
        assert refused.exit_code == 2
        assert shown.lines(refused.output) == refused.output
    assert not Path("paretoscout.db").exists()


def test_names_that_people_use_are_taken() -> None:
    names = ["gzip -1", "naïve ★", "a|b", "<b>", "=1+1", "-O2", "$x^", "模型", "x" * 500]
    assert Study(names, {"q": "max"}, storage="memory").spec.arms == tuple(names)


def test_a_command_of_several_lines_gets_a_name_of_one() -> None:
    long, lines, plain = options_of(["echo " + "x" * 600, "echo a\n echo\tb ", "echo  a"], {}, shell=True)
    assert lines.name == "echo a echo b"
    assert len(long.name) == 500
    assert plain.name == "echo  a"  # a name that is good stays: runs made before are found by it


def old_study(name: str = "old") -> Study:
    """A study as an earlier version may have kept it: nothing was checked, and its text says so."""
    made = Study(["a0", "a1", "a2", "a3"], [ps.Metric("m0", "max", unit="u"), ps.Metric("m1", "min")], storage="memory")
    settings = json.loads(made.spec.text())
    settings["asked"]["arms"] = EVIL
    settings["asked"]["metrics"][0].update(name="q\x1b[2J\n|<i>", unit="$\\bad^\x1b")
    settings["asked"]["metrics"][1].update(name="=cost")
    storage_of("paretoscout.db").create(name, json.dumps(settings))
    study = Study.load(name, "paretoscout.db")
    for trial in study.ask(8):
        value = float(EVIL.index(trial.arm)) + trial.number / 100
        study.tell(trial, {"q\x1b[2J\n|<i>": value, "=cost": value})
    study.withdraw("-O2", "because\x1b[2J\n| of <b>")
    return study


def test_names_that_earlier_versions_took_do_no_harm(folder: Path) -> None:
    study = old_study()
    named = ("--name", "old")
    asked = run("ask", "-n", "6", *named)
    assert asked.exit_code == 0
    lines = asked.stdout.splitlines()
    assert len(lines) == len(study.open)
    assert {line.split("\t")[1] for line in lines} <= {r"x\n99\tfake", r"\x1b[2Jclear", "=1+1|*<b>$x^"}
    exact = json.loads(run("ask", "--json", *named).stdout)
    assert exact[0]["arm"] in EVIL
    for command in (
        ("status",),
        ("front",),
        ("explain", FORGED),
        ("explain", "nobody"),
        ("export", "--format", "markdown"),
        ("tell", "0", "nothing=1"),
        ("tell", "0", "=cost=7"),
        ("ask", "--arm", "nobody"),
        ("plot", "--out", "front.svg"),
        ("plot", "-x", "nothing"),
    ):
        done = run(*command, *named)
        assert done.exit_code in (0, 2, 3), done.output
        assert shown.lines(done.output) == done.output, command
    assert json.loads(run("status", "--json", *named).stdout)["options"][0]["option"] == FORGED

    rows = list(csv.reader(io.StringIO(run("export", *named).stdout)))
    assert rows[0][3] == "'=cost"
    assert {row[1] for row in rows[1:]} == {r"x\n99\tfake", r"\x1b[2Jclear", f"'{EVIL[2]}", "'-O2"}
    assert all(float(row[3]) >= 0 for row in rows[1:])

    text = run("export", "--format", "markdown", *named).stdout
    grid = [line for line in text.splitlines() if line.startswith("|")]
    assert len(grid) == 2 + 3
    assert {line.replace(r"\|", "").count("|") for line in grid} == {6}
    assert "<b>" not in text.replace(r"\<b\>", "")
    assert ElementTree.parse(folder / "front.svg").getroot().tag.endswith("svg")  # no character that XML forbids


def test_a_csv_file_can_be_read_back(folder: Path) -> None:
    run("create", "--arm=-O2", "--arm==x", "-m", "q")
    run("ask", "-n", "2")
    run("tell", "-", given="0 q=-1\n1 q=-2\n")
    run("export", "--out", "runs.csv")
    assert "'-O2,-1" in (folder / "runs.csv").read_text()
    run("create", "--arm=-O2", "--arm==x", "-m", "q", "--name", "again")
    taken = run("import", "runs.csv", "--name", "again")
    assert "2 rows, 2 of them new" in taken.output
    for text in ("=1", "'=1", "''=1", "'a'", "plain", "-", ""):
        assert shown.of_cell(shown.cell(text)) == text


@pytest.mark.parametrize("word", ["min", "minimize", "minimise", "max", "maximize", "maximise"])
def test_every_spelling_of_a_direction_is_stored_as_one(word: str, folder: Path) -> None:
    short = word[:3]
    assert ps.Metric("latency", word).direction == short
    assert Study(["a"], {"latency": word}, storage="memory").spec.metrics[0].direction == short
    assert ps.problems.gaussian([[1.0]], 1.0, directions=word).metrics[0].direction == short
    assert ps.geometry.pareto_front([[1], [2]], directions=word).tolist() == [short == "min", short == "max"]
    assert source_of(f"latency:{word}=json@x", {}).metric.direction == short
    better = {"min": "latency: smaller is better", "max": "latency: larger is better"}[short]
    assert better in run("create", "--arm", "a", "-m", f"latency:{word}").output
    (folder / "study.yaml").write_text(f"arms: [a]\nmetrics: {{latency: {word}}}\nname: yaml\n")
    assert better in run("create", "study.yaml").output


@pytest.mark.parametrize(
    "command", [("create", "--arm=a"), ("analyze", "x.csv", "--arm=a"), ("demo", "x.csv", "--arm=a")]
)
def test_other_directions_are_refused(command: tuple[str, ...], folder: Path) -> None:
    (folder / "x.csv").write_text("a,latency:foo\nb,1\nb,2\n")
    for text, message in {
        "latency:foo": "direction of metric 'latency' must be min or max, got 'foo'",
        "latency:": "direction of metric 'latency' must be min or max, got ''",
        "latency:Min": "direction of metric 'latency' must be min or max, got 'Min'",
        "p:99:min": "name of a metric must have no ':' in it",
    }.items():
        refused = run(*command, "-m", text)
        assert refused.exit_code == 2
        assert message in refused.output
    with pytest.raises(InvalidInput, match="direction of metric 'latency' must be min or max, got 'foo'"):
        source_of("latency:foo=json@x", {})
    with pytest.raises(InvalidInput, match="directions must be"):
        ps.geometry.pareto_front([[1], [2]], directions="foo")
