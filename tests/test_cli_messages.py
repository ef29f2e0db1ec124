"""What people read after a typical mistake: which setting, of what, must be what, got what."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import paretoscout as ps
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput, UnknownName
from paretoscout.shown import counted

ROWS = "model,ms,mb\na,1.5,2\na,1.6,2\nb,2.5,3\nb,2.6,3\n"
COLUMNS = ("--arm", "model", "-m", "ms:min")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("PARETOSCOUT_STORAGE", "PARETOSCOUT_STUDY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
