"""What people read after a typical mistake: which setting, of what, must be what, got what."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from conftest import wait_for

import paretoscout as ps
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput, UnknownName
from paretoscout.shown import counted
from paretoscout.simulation.progress import Due, Progress, at_work

ROWS = "model,ms,mb\na,1.5,2\na,1.6,2\nb,2.5,3\nb,2.6,3\n"
COLUMNS = ("--arm", "model", "-m", "ms:min")


@pytest.fixture(autouse=True)
def folder(empty_folder: Path) -> Path:
    return empty_folder


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=given, catch_exceptions=False)


def refused(*arguments: str, given: str | None = None) -> str:
    """Return the one line that says what is wrong."""
    done = run(*arguments, given=given)
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.output
    return done.stderr.splitlines()[-1].removeprefix("Error: ")


# Tables


@pytest.mark.parametrize("command", ["analyze", "demo", "compare"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROWS + "\nb,fast,3\n", "column 'ms' of runs.csv must hold numbers, got 'fast' in line 7"),
        (ROWS + '"b\nand more",fast,3\n', "column 'ms' of runs.csv must hold numbers, got 'fast' in line 6"),
        ('model,ms,mb\n"a\n\nb",1,2\nb,fast,3\n', "got 'fast' in line 5"),
        (ROWS + "b,12 ms,3\n", "got '12 ms' in line 6: write the number without its unit"),
        (ROWS + "b,NA,3\n", "got 'NA' in line 6: leave a cell empty if there is no number"),
        (ROWS + "b,1e999,3\n", "finite"),
        (ROWS + ",1,3\n", "column 'model' of runs.csv must name an arm in every row, got an empty cell in line 6"),
        (ROWS + "b,3\n", "line 6 of runs.csv must have as many cells as the header (3), got 2"),
        (ROWS + 'b,"3\nb,4,4\n', "got 2 (it goes on to line 7: is a quotation mark not closed?)"),
        ("model;ms;mb\na;1,5;2\n", "got '1,5' in line 2: write decimals with a point, and nothing between thousands"),
        ("model ms mb\na 1 2\n", "It has but one column: cells must be separated by ',', ';' or tabs"),
        ("model,ms,ms\na,1,2\n", "columns of runs.csv must have different names, got 'ms' twice"),
        ("model,ms,mb\n", "runs.csv must have a header and at least one row, got only a header"),
        ("", "runs.csv must have a header and at least one row, got nothing"),
        ("model,MS,mb\na,1,2\n", "unknown column 'ms' of runs.csv; did you mean 'MS'? Known: model, MS, mb"),
        ("modell,ms\na,1\n", "unknown column 'model' of runs.csv; did you mean 'modell'? Known: modell, ms"),
    ],
)
def test_a_wrong_table(folder: Path, command: str, text: str, message: str) -> None:
    """Rows are called by the lines of the file, as an editor counts them."""
    (folder / "runs.csv").write_text(text)
    assert message in refused(command, "runs.csv", *COLUMNS)


def test_lines_of_imported_rows(folder: Path) -> None:
    """Also of rows that are taken in another order, by a column of times."""
    assert run("create", "--arm", "a", "--arm", "b", "-m", "ms:min", "--bounds", "ms=0,10").exit_code == 0
    (folder / "runs.csv").write_text("arm,ms,at\n\na,1,3\nb,99,2\na,1,1\n")
    for more in ((), ("--time", "at")):
        assert "'ms' in line 4 of runs.csv must be from 0 to 10, got 99" in refused("import", "runs.csv", *more)
    for text, message in (
        ("arm,ms\na,1\n\nx,1\n", "unknown arm in line 4 of the input: 'x'"),
        ("arm,ms\na,1\nb,\n", "line 3 of the input must have ms, got none"),
        ("trial,ms\n7,1\n", "line 2 of the input: trial must be one that was asked, got 7"),
        ("arm,mS\na,1\n", "the input must have a column for a metric (ms), got only arm, mS"),
    ):
        more = ("--trial", "trial") if text.startswith("trial") else ()
        assert message in refused("import", "-", *more, given=text)


def test_lines_in_analyze(folder: Path) -> None:
    (folder / "runs.csv").write_text(ROWS + "\nb,-1,3\n")
    assert "'ms' in line 7 of runs.csv must be from 0 to 9" in refused(
        "analyze", "runs.csv", *COLUMNS, "--bounds", "ms=0,9"
    )
    (folder / "long.csv").write_text("model,what,value\na,ms,1\n\na,mb,1\n")
    long = ("analyze", "long.csv", *COLUMNS, "--long", "metric=what,value=value")
    assert "unknown metric in line 4 of long.csv: 'mb'" in refused(*long)
    assert "must name metric 'size', got it in no row" in refused(*long, "-m", "mb", "-m", "size")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_what_separates_cells_is_seen_in_the_header(folder: Path, delimiter: str) -> None:
    text = ROWS.replace(",", delimiter)
    (folder / "runs.csv").write_text(text)
    table = ps.problems.read_csv("runs.csv")
    assert table == {"model": ["a", "a", "b", "b"], "ms": ["1.5", "1.6", "2.5", "2.6"], "mb": ["2", "2", "3", "3"]}
    assert run("analyze", "runs.csv", *COLUMNS).exit_code == 3


def test_commas_of_a_name_separate_nothing(folder: Path) -> None:
    (folder / "runs.csv").write_text('name;"time, s"\n"a, b";1\n')
    assert ps.problems.read_csv("runs.csv") == {"name": ["a, b"], "time, s": ["1"]}
    (folder / "runs.csv").write_text("name; or so,time\na; b,1\n")
    assert ps.problems.read_csv("runs.csv") == {"name; or so": ["a; b"], "time": ["1"]}
    (folder / "runs.csv").write_text("name\na; b\n")
    assert ps.problems.read_csv("runs.csv") == {"name": ["a; b"]}


def test_files_that_are_no_tables(folder: Path) -> None:
    (folder / "runs.csv").write_text(ROWS)
    (folder / "folder.csv").mkdir()
    (folder / "latin.csv").write_bytes(b"model,ms\na,1\nz\xe9ro,1\n")
    for file, message in (
        ("rnus.csv", "no such file: rnus.csv; did you mean 'runs.csv'?"),
        ("nothing-like-it.csv", "no such file: nothing-like-it.csv"),
        ("folder.csv", "folder.csv must be a CSV file, got a folder"),
        ("latin.csv", "latin.csv must be a CSV file in UTF-8, but line 3 has a byte 0xe9 that is no letter there"),
    ):
        assert message in refused("demo", file, *COLUMNS)
        assert message in refused("analyze", file, *COLUMNS) or file == "folder.csv"
    for command in ("analyze", "demo", "compare"):
        for some in ((), COLUMNS[:2], COLUMNS[2:]):
            assert "its columns: model, ms, mb" in refused(command, "runs.csv", *some)
    assert "There is a file runs.csv: name it with its ending" in refused("demo", "runs")


def test_a_table_in_python_is_called_what_it_was() -> None:
    with pytest.raises(UnknownName, match=r"column 'MS' of this table; did you mean 'ms'\? Known: model, ms"):
        ps.analyze({"model": ["a"], "ms": [1]}, "model", {"MS": "min"})
    with pytest.raises(InvalidInput, match="column 'ms' of problem 'table' must hold numbers, got 'x' in row 1"):
        ps.problems.table({"model": ["a", "a"], "ms": [1, "x"]}, arm="model", metrics={"ms": "min"})


def test_one_is_no_plural() -> None:
    assert [counted(n, "run") for n in (0, 1, 2, 1000)] == ["0 runs", "1 run", "2 runs", "1,000 runs"]
    assert counted(2, "study", "studies") == "2 studies"
    assert repr(ps.problems.gaussian([[1.0], [2.0]], 1.0)) == "<Problem 'gaussian': 2 arms, 1 metric>"


# Studies


NEW = ("create", "--arm", "a", "--arm", "b", "-m", "time:min")


def test_a_study_that_is_not_there(folder: Path) -> None:
    make = "paretoscout create --name mine --arm small --arm large -m quality:max -m cost:min"
    for command in (
        ("status",),
        ("ask",),
        ("tell", "1", "time=2"),
        ("run", "true"),
        ("import", "runs.csv"),
        ("front",),
    ):
        said = refused(*command, "--name", "mine")
        assert "there is no file paretoscout.db" in said
        assert make in said
    assert not list(folder.glob("*.db")), "looking makes no file"
    assert run(*NEW).exit_code == 0
    for command in (("status",), ("ask",), ("tell", "1", "time=2"), ("run", "true"), ("add-arm", "c")):
        said = refused(*command, "--name", "mine")
        assert said == f"unknown study 'mine' in paretoscout.db. Known: study. To make it: {make}"
    assert run(*make.split()[1:]).exit_code == 0, "the command can be pasted"
    assert run("status", "--name", "mine").exit_code == 0
    assert run(*NEW, "--storage", "b.db").exit_code == 0
    assert "create --storage b.db --name" not in refused("status", "--storage", "b.db", "--name", "x")
    assert "create --name x --storage b.db --arm" in refused("status", "--storage", "b.db", "--name", "x")


def test_delete_says_where_it_looked(folder: Path) -> None:
    assert "there is no file paretoscout.db" in refused("delete", "mine")
    assert run(*NEW).exit_code == 0
    for more in ((), ("--yes",)):
        said = refused("delete", "stdy", *more)
        assert said == "unknown study 'stdy' in paretoscout.db; did you mean 'study'? Known: study"
    unanswered = run("delete", "study", given="")
    assert unanswered.exit_code == 2
    assert "delete study 'study' with 0 measurements?" in unanswered.stderr
    assert unanswered.output.count("delete study") == 1, "it is asked once"
    assert run("delete", "study", given="y\n").exit_code == 0


def test_one_option_is_no_question(folder: Path) -> None:
    alone = "'a' is the only option, with nothing to be compared with: add others (paretoscout add-arm NAME)"
    assert alone in run("create", "--arm", "a", "-m", "time:min").stdout
    assert alone in run("status").stdout
    assert alone in refused("run", "echo time=1")
    assert run("add-arm", "b").exit_code == 0, "nothing was measured meanwhile"
    assert "the only option" not in run("status").stdout
    assert "the only option" not in run(*NEW[:3], "-m", "time:min", "--guard", "time <= 3", "--name", "guarded").stdout
    (folder / "runs.csv").write_text("model,ms\na,1\na,2\n")
    for command in ("analyze", "demo", "compare"):
        assert "column 'model' of runs.csv must name at least two options, got 'a'" in refused(
            command, "runs.csv", *COLUMNS
        )
    with pytest.raises(InvalidInput, match="arms of find_front must be at least two, got only 'a'"):
        ps.find_front(["a"], lambda arm: {"time": 1.0}, {"time": "min"})


def test_placeholders_of_run(folder: Path) -> None:
    assert run(*NEW).exit_code == 0
    said = refused("run", "./measure {arms}")
    assert "COMMAND must have no placeholder but {arm}, the name of the option, got {arms}" in said
    assert "for the braces themselves write {{arms}}" in said
    done = run("run", "sh -c 'x=${HOME}; echo time={{x}} >&2; echo time=1'", "--trials", "2")
    assert done.exit_code == 3, done.output
    failed = refused("run", "sh -c 'echo {{x}} {arm} >&2; exit 1'")
    assert failed.endswith(": {x} a") or failed.endswith(": {x} b")


# Lists


@pytest.mark.parametrize("command", ["problems", "algorithms"])
def test_lists_have_a_line_for_each(command: str) -> None:
    names = list(getattr(ps, command).available())
    *lines, more = run(command).stdout.splitlines()
    assert [line.split()[0] for line in lines] == names
    assert max(map(len, lines)) <= 100
    assert more == f"more: paretoscout {command} NAME, or --long"
    long = run(command, "--long").stdout
    assert long == run(command, "-v").stdout
    assert len(long) > len("\n".join(lines))
    one = run(command, names[0]).stdout
    assert one.splitlines()[0] == names[0]
    assert names[1] not in one.split()
    assert f"unknown {command[:-1]} 'nix'" in refused(command, "nix")


def test_a_problem_says_its_metrics() -> None:
    shown = run("problems", "llvm-passes-16").stdout
    assert "16 options: no passes, " in shown
    assert "run time (ms): smaller is better; 0.5 ms does not matter" in shown


# Progress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_when_a_line_is_due() -> None:
    """After two seconds, then after pauses that double, up to half a minute."""
    clock = Clock()
    due, said = Due(clock), []
    for tenth in range(1300):
        clock.now = tenth / 10
        if due():
            said.append(clock.now)
    assert said == [2.0, 6.0, 14.0, 30.0, 60.0, 90.0, 120.0]


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line is due at once, and is looked for after each replicate, however fast they are."""

    def count(progress: Progress) -> None:
        progress.finished += 1
        progress.refresh()

    monkeypatch.setattr("paretoscout.simulation.progress.PATIENCE", 0.0)
    monkeypatch.setattr(Progress, "replicate", count)


@pytest.mark.usefixtures("hurried")
def test_progress_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    problem = ps.problems.load("four-arms")
    for unasked in (None, False):
        ps.simulate(problem, replicates=3, progress=unasked)
        assert capsys.readouterr().err == "", "a library says nothing unasked"
    ps.simulate(problem, replicates=3, progress=True)
    assert re.search(r"scout on four-arms: \d of 3 replicates", capsys.readouterr().err)
    compared = run("compare", "four-arms", "--replicates", "3", "--algorithms", "scout")
    assert re.search(r"scout on four-arms: \d of 3 replicates", compared.stderr)


def test_what_does_not_report_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("paretoscout.simulation.progress.PATIENCE", 0.0)
    monkeypatch.setattr("paretoscout.simulation.progress.say", said.append)
    with at_work(lambda: "analyze runs.csv"):
        wait_for("a line", lambda: said)
    assert said[0] == "analyze runs.csv, 0 s so far"
    with pytest.raises(InvalidInput), at_work(lambda: "nothing"):
        raise InvalidInput("it is at an end")


def test_commands_say_what_they_are_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    @contextmanager
    def noted(told: Callable[[], str]) -> Iterator[None]:
        yield
        said.append(told())

    monkeypatch.setattr("paretoscout.cli.main.at_work", noted)
    monkeypatch.setattr("paretoscout.simulation.progress.at_work", noted)
    (folder / "runs.csv").write_text(ROWS.replace("model", "arm"))
    run("analyze", "runs.csv", "--arm", "arm", "-m", "ms:min")
    run(*NEW, "-m", "ms:min")
    run("import", "runs.csv")
    assert said == ["analyze runs.csv", "import runs.csv"]
    run("demo", "s5", "--eps", "0.1", "--out", "x.svg")
    assert said[2].startswith("s5: 3 front, 2 dominated; ")
    assert said[3].startswith("s5, measured equally often: 3 front, 2 dominated; ")


def test_what_is_said_of_the_progress() -> None:
    progress = Progress(True, 100, "scout on s5")
    assert progress.told() == "scout on s5: 0 of 100 replicates"
    progress.samples(1234)
    assert progress.told() == "scout on s5: 0 of 100 replicates, 1,234 samples so far"
    progress.finished, progress.began = 34, progress.began - 10.0
    assert re.fullmatch(r"scout on s5: 34 of 100 replicates, about (19|2\d) s left", progress.told())


# Demo


def test_a_demo_of_a_file_ends_with_the_next_step(folder: Path) -> None:
    rows = "".join(
        f"{name},{mean + k / 100},{size}\n" for name, mean, size in (("a x", 1, 2), ("b", 2, 3)) for k in range(20)
    )
    (folder / "my runs.csv").write_text("model,ms,mb\n" + rows)
    shown = run("demo", "my runs.csv", *COLUMNS, "-m", "mb:min", "--eps", "ms=0.1", "--eps", "mb=1").stdout
    analyzed = "paretoscout analyze 'my runs.csv' --arm model -m ms:min -m mb:min --eps ms=0.1 --eps mb=1 --exact mb"
    created = "paretoscout create --arm 'a x' --arm b -m ms:min -m mb:min --eps ms=0.1 --eps mb=1 --exact mb"
    assert f"next, the rows by themselves: {analyzed}" in shown
    assert f"or measure again, as often as needed: {created}; paretoscout run './measure {{arm}}'" in shown
    assert run(*shlex.split(created)[1:]).exit_code == 0
    assert run(*shlex.split(analyzed)[1:]).exit_code == 0


# Settings


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "runs.csv", "-m", "ms"], "must name each option once, got 'a' in line 2 and line 3; a table of"),
        ([*NEW, "--storage", "."], "storage must be a file or the address of a database, got the folder '.'"),
        (["status", "--storage", "."], "storage must be a file or the address of a database, got the folder '.'"),
        (["analyze", "runs.csv", *COLUMNS, "--bounds", "ms=3"], "--bounds must be written METRIC=LOW,HIGH, got 'ms=3'"),
        (["analyze", "runs.csv", *COLUMNS, "--eps", "MS=3"], "unknown metric 'MS' in --eps; did you mean 'ms'?"),
        (
            ["analyze", "runs.csv", *COLUMNS, "--algorithm", "uniform"],
            "sigma of a study with algorithm 'uniform' must be given for every metric",
        ),
    ],
)
def test_wrong_settings(folder: Path, arguments: list[str], message: str) -> None:
    (folder / "runs.csv").write_text(ROWS)
    assert message in refused(*arguments)
