"""Exit codes: one table for all commands, and nothing but a sentence for whatever people type."""

from __future__ import annotations

import itertools
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import paretoscout as ps
from paretoscout import shown
from paretoscout.cli.conventions import Exit
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput

ROOT = Path(__file__).parent.parent
NEW = ("create", "--arm", "a", "--arm", "b", "-m", "q", "--sigma", "0.1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("PARETOSCOUT_STORAGE", "PARETOSCOUT_STUDY", "PARETOSCOUT_BUDGET"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, given: str | None = None) -> Result:
    # color: what goes to a terminal, with nothing taken out on the way
    return CliRunner().invoke(main, list(arguments), input=given, color=True)


def commands(group: click.Group = main, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """All commands, and those within groups of them."""
    for name, command in group.commands.items():
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield (*above, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*above, name))


def test_the_document_has_the_table_of_the_program() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8"), re.M)
    assert [(int(code), meaning) for code, meaning in rows] == [(code.value, code.meaning) for code in Exit]
    assert [code.value for code in Exit] == [0, 1, 2, 3, 4, 5, 6, 130, 143]


def test_what_the_help_of_a_command_says_is_in_the_table() -> None:
    known = {str(code.value) for code in Exit}
    for name in commands():
        text = " ".join(run(*name, "--help").output.split())
        for codes in re.findall(r"Exit code (.*?)\.(?: |$)", text):
            assert set(re.findall(r"(?:^|; )(\d+):", codes)) <= known, name


@pytest.mark.parametrize("name", list(commands()), ids=" ".join)
def test_every_command_ends_by_the_table(name: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """An option that does not exist: 2. Ctrl-C, wherever it comes: 130. What nobody expected: 1, with a traceback."""
    assert run(*name, "--help").exit_code == Exit.DONE
    assert run(*name, "--no-such-option").exit_code == Exit.USAGE
    command: Any = main
    for word in name:
        command = command.commands[word]

    def ends_with(problem: BaseException) -> Result:
        def fails(*_: Any, **__: Any) -> None:
            raise problem

        monkeypatch.setattr(command, "callback", fails)
        monkeypatch.setattr(command, "params", [])
        return run(*name)

    assert ends_with(KeyboardInterrupt()).exit_code == Exit.INTERRUPTED
    assert ends_with(click.Abort()).exit_code == Exit.INTERRUPTED
    refused = ends_with(InvalidInput("eps must be a number\x1b[2J"))
    assert refused.exit_code == Exit.USAGE
    assert refused.stderr.endswith("Error: eps must be a number\\x1b[2J\n")
    full = ends_with(OSError(28, "No space left on device", "study.db"))
    assert full.exit_code == Exit.USAGE
    assert full.stderr.endswith("Error: No space left on device: study.db\n")
    crashed = ends_with(ZeroDivisionError("oh"))
    assert crashed.exit_code == Exit.UNEXPECTED
    assert crashed.stderr.startswith("unexpected error: ZeroDivisionError: oh; please report it")
    assert "Traceback" in crashed.stderr


def test_ask_tells_the_end_from_an_error() -> None:
    assert run(*NEW).exit_code == Exit.DONE
    assert run("ask", "-n", "2").exit_code == Exit.DONE
    assert run("tell", "-", given="0 q=1\n1 q=0\n").exit_code == Exit.DONE
    for storage in ("postgresql://u@h:bad/x", "none.db", "sqlite:///", "nothing://x"):
        failed = run("ask", "--storage", storage)
        assert failed.exit_code == Exit.USAGE, failed.output
        assert "Traceback" not in failed.output
    while (asked := run("ask")).exit_code == Exit.DONE:
        trial, arm = asked.stdout.split()
        run("tell", trial, f"q={int(arm == 'a')}")
    assert asked.exit_code == Exit.NOTHING_LEFT
    run(*NEW, "--name", "short", "--budget", "1")
    run("ask", "--name", "short")
    assert run("ask", "--name", "short").exit_code == Exit.UNDECIDED


@pytest.mark.parametrize("document", ["docs/how-to/your-own.md", "docs/studies.md"])
def test_the_loop_in_the_documents_ends_well_only_when_all_is_decided(document: str, folder: Path) -> None:
    """A shell runs the loop with a `paretoscout` that ends as it is told to."""
    text = (ROOT / document).read_text(encoding="utf-8")
    loop = re.search(r"^while paretoscout ask -n 8.*?^\[ \$ended.*?$", text, re.M | re.S)
    assert loop is not None
    (folder / "paretoscout").write_text('#!/bin/sh\n[ "$1" = front ] && echo the front\nexit ${ENDS:-0}\n')
    (folder / "paretoscout").chmod(0o755)
    for code in Exit:
        if code is Exit.DONE:
            continue
        ends = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "ENDS": str(code.value)}
        done = subprocess.run(["sh", "-c", loop[0]], env=ends, capture_output=True, text=True, check=False)
        assert ("the front" in done.stdout) == (code is Exit.NOTHING_LEFT)
        assert done.returncode != 0


def test_a_broken_promise_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    from paretoscout.audit import measure

    monkeypatch.setattr(measure, "audit", lambda *_, **__: iter(()))
    monkeypatch.setattr(measure, "broken", lambda rows: True)
    assert run("audit", "--algorithms", "scout", "--json").exit_code == Exit.FAILED


def test_a_reader_that_goes_away_sees_no_traceback(folder: Path) -> None:
    line = f"'{sys.executable}' -m paretoscout algorithms --json | head -c 1"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.skipif(os.name == "nt", reason="a folder in use cannot be deleted there")
def test_a_working_folder_that_was_deleted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        for name in commands():
            needed = [f"{parameter.name}" for parameter in _needed(name)]
            done = CliRunner().invoke(main, [*name, *needed])
            assert done.exit_code == Exit.USAGE, (name, done.output)
            assert "the working folder was deleted" in done.output
        assert run("--help").exit_code == Exit.DONE
    finally:
        os.chdir(folder)


def _needed(name: tuple[str, ...]) -> list[click.Parameter]:
    command: Any = main
    for word in name:
        command = command.commands[word]
    return [parameter for parameter in command.params if isinstance(parameter, click.Argument)]


HUGE = "9" * 5000
DEEP = "[" * 100_000
#: What people and machines put where a text is expected.
NASTY = [
    *(
        "",
        " ",
        "-",
        "--",
        "\0",
        "a\0b",
        "\n",
        "\x1b[2J",
        "x\n99\tfake",
        "ü\u202e",
        "\udc80",
        "$x^",
        "{",
        "}",
        "%s",
        "%",
    ),
    *("=", "a=", "=1", "q=", "q=1e400", "q=nan", f"q={HUGE}", "q=1=2", ":", ":min", "q:", "q:foo", "q:min:max"),
    *(HUGE, f"-{HUGE}", "1e400", "-1", "0", "nan", "inf", "1_0", "٣", "0x10", "true", "null"),
    *(DEEP, '{"q":' * 100_000, f'{{"q": {HUGE}}}', '{"q": 1' + "0" * 400 + "}", "{}", '{"q": {}}', '{"q": [1]}'),
    *("/", ".", "..", "~", "/dev/null", "no/such/file.csv", "x.csv", "x.yaml", "x.png", "a" * 5000),
    *("sqlite:///", "sqlite:////", "postgresql://u@h:bad/x", "mysql://x", "http://x", "memory", "scout:", "scout:x=1"),
    *(f"scout:model={DEEP}", f"scout:misfit={HUGE}", "scout:misfit=1e400", "q <= 1e400", "q <= ", "<=", "q=1,2,3"),
]


def _fuzzed() -> Iterator[tuple[str, ...]]:
    """Every option and argument of the commands about studies and tables, each with every nasty text."""
    for name in (
        "create",
        "ask",
        "tell",
        "import",
        "status",
        "front",
        "explain",
        "plot",
        "export",
        "analyze",
        "withdraw",
    ):
        command = main.commands[name]
        required: list[str] = {
            "create": ["--arm=a", "--arm=b", "-mq"],
            "tell": ["0", "q=1"],
            "import": ["x.csv"],
            "explain": ["a"],
            "analyze": ["x.csv", "--arm=arm", "-mq"],
            "withdraw": ["a"],
        }.get(name, [])
        for parameter, text in itertools.product(command.params, NASTY):
            if parameter.name == "watch":
                continue  # has no end
            if isinstance(parameter, click.Option) and not parameter.is_flag:
                yield (name, *required, f"--{parameter.opts[-1].lstrip('-')}={text}")
            elif isinstance(parameter, click.Argument):
                yield (name, *required[1:], "--", text)


def test_nothing_that_is_typed_gives_a_traceback(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence, or a result, never a traceback; and no byte that moves a cursor. 200 calls, or all (PARETOSCOUT_LONG)."""
    calls = list(_fuzzed())
    if os.environ.get("PARETOSCOUT_LONG") != "1":
        calls = random.Random(0).sample(calls, 200)
    assert run(*NEW).exit_code == Exit.DONE
    assert run("ask").exit_code == Exit.DONE
    kept = (folder / "paretoscout.db").read_bytes()
    (folder / "x.csv").write_text("arm,q\na,1\na,2\na,3\nb,1\nb,2\nb,4\n")
    for number, arguments in enumerate(calls):
        if number % 100 == 0:
            (folder / "paretoscout.db").write_bytes(kept)
        done = run(*arguments)
        told = [text[:60] for text in arguments]
        assert done.exit_code in (Exit.DONE, Exit.USAGE, Exit.UNDECIDED, Exit.NOTHING_LEFT), (told, done.output[-2000:])
        assert "Traceback" not in done.output, told
        assert shown.lines(done.stdout.replace("\t", " ")) == done.stdout.replace("\t", " "), told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arms: " + "[" * 5000, "must be nested at most 20 deep"),
        ("arms: &a [*a]\nmetrics: {q: max}", "must be nested at most 20 deep"),
        ("arms: " + "[" * 30 + "]" * 30 + "\nmetrics: {q: max}", "must be nested at most 20 deep"),
        (
            "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in itertools.pairwise("abcdefgh"))
            + "arms: *h\nmetrics: {q: max}",
            "must hold at most 1,000,000 values",
        ),
        ("arms: [a]\nmetrics: {q: max}\nsigma: 1" + "0" * 400, "must be"),
        ("arms: [a]\nmetrics: {q: max}\nseed: " + "9" * 5000, "must be"),
        ('arms: "a\\0b.csv"\nmetrics: {q: max}', "must be a CSV file"),
        (
            'arms: [a, "b\\e[2J"]\nmetrics: {q: max}',
            "name of an arm must be one line of printable letters, got '\\x1b'",
        ),
        ('arms: [a]\nmetrics: {q: {direction: max, unit: "s\\n"}}', "unit of metric 'q' must be one line"),
    ],
)
def test_yaml_from_others(text: str, message: str, folder: Path) -> None:
    (folder / "study.yaml").write_text(text)
    done = run("create", "study.yaml")
    assert done.exit_code == Exit.USAGE, done.output
    assert message in done.output
    assert len(done.output) < 3000


@pytest.mark.parametrize(
    "text",
    [
        '{"q":' * 100_000,
        '{"q": ' + "[" * 50 + "]" * 50 + "}",
        '{"q": 1' + "0" * 400 + "}",
        '{"q": 1' + "0" * 5000 + "}",
        '{"q": 1e400}',
        "q=1e400",
        "q=1" + "0" * 5000,
    ],
)
def test_outcomes_from_others(text: str) -> None:
    run(*NEW)
    run("ask")
    for arguments, given in ((("0", "-"), text), (("-",), f"0 {text}" if text[0] == "q" else text)):
        done = run("tell", *arguments, given=given)
        assert done.exit_code == Exit.USAGE, done.output
        assert len(done.output) < 3000


@pytest.mark.parametrize("huge", [10**400, -(10**400), 10**5000], ids=["large", "small", "huge"])
def test_whole_numbers_larger_than_any_float(huge: int) -> None:
    study = ps.Study(["a"], {"q": "max"}, storage="memory")
    trial = study.ask()
    calls: list[Any] = [
        lambda: study.tell(trial, {"q": huge}),
        lambda: study.tell(huge, {"q": 1}),
        lambda: study.ask(huge),
        lambda: study.tell_frame({"arm": ["a"], "q": [huge]}),
        lambda: ps.Study(["a"], {"q": "max"}, storage="memory", delta=huge),
        lambda: ps.Study(["a"], {"q": "max"}, storage="memory", seed=-abs(huge)),
        lambda: ps.Study(["a"], {"q": "max"}, storage="memory", sigma={"q": huge}),
        lambda: ps.Metric("q", eps=huge),
        lambda: ps.Metric("q", bounds=(0, abs(huge))),
        lambda: ps.analyze({"arm": ["a", "a"], "q": [1, huge]}, "arm", {"q": "max"}),
        lambda: ps.problems.table({"arm": ["a", "a"], "q": [1, huge]}, "arm", {"q": "max"}),
        lambda: ps.geometry.pareto_front([[huge], [1]]),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match="must"):
            call()
    assert study.counts()["told"] == 0


def test_a_path_that_is_not_utf_8() -> None:
    done = run(*NEW, "--storage", "\udc80.db")
    assert done.exit_code == Exit.USAGE
    assert "what is given must be UTF-8" in done.output


def test_a_nul_in_a_path(folder: Path) -> None:
    calls: list[Any] = [
        lambda: ps.Study(["a"], {"q": "max"}, storage="a\0b"),
        lambda: ps.Study.load("x", "a\0b"),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match="storage must be a name without NUL"):
            call()
    with pytest.raises(InvalidInput, match="must be a CSV file"):
        ps.problems.read_csv("a\0b.csv")
    assert not list(folder.iterdir())
