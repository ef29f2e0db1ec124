"""pytest: the verdict on tests that pytest-benchmark has timed, at the end of the run; loaded by pytest, and light.

`pytest --paretoscout` says which options are worth having; `--fail-if-dominated NAME` lets the run fail if that one is
dominated. What tests compare is marked: `@pytest.mark.paretoscout(arm="level")`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

MARK = (
    "paretoscout(arm=None, metrics=None): its timings are judged. arm: the parameter that names the option; metrics: "
    "{name: 'min' or 'max'}, of numbers in extra_info that are certain"
)
KEPT = "_paretoscout"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("paretoscout", "which of the benchmarked options are worth having")
    group.addoption("--paretoscout", action="store_true", help="Judge all tests that pytest-benchmark times.")
    group.addoption(
        "--fail-if-dominated",
        action="append",
        default=[],
        metavar="NAME",
        help="Fail if this option, such as which=new, is dominated; repeat. Judges, as --paretoscout does.",
    )
    group.addoption(
        "--undecided",
        choices=("pass", "fail"),
        default="pass",
        help="What happens if it is undecided whether that option is dominated.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Say what the mark is."""
    config.addinivalue_line("markers", MARK)
    setattr(config, KEPT, _Judge(config))


class _Judge:
    """What was timed, and what came out."""

    def __init__(self, config: pytest.Config) -> None:
        self.always = bool(config.getoption("paretoscout") or config.getoption("fail_if_dominated"))
        self.names = tuple(config.getoption("fail_if_dominated"))
        self.undecided = str(config.getoption("undecided"))
        self.groups: dict[tuple[str | None, tuple[tuple[str, str], ...]], list[dict[str, Any]]] = {}
        self.lines: list[str] = []
        self.failed = False


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Keep what a test has timed, as pytest-benchmark writes it."""
    judge: _Judge = getattr(item.config, KEPT)
    mark = item.get_closest_marker("paretoscout")
    fixture = getattr(item, "funcargs", {}).get("benchmark")
    timed = getattr(fixture, "stats", None)
    data = getattr(getattr(timed, "stats", None), "data", None)
    if (mark is None and not judge.always) or not data or getattr(timed, "has_error", False):
        return
    told = {} if mark is None else mark.kwargs
    group = (told.get("arm"), tuple(sorted((told.get("metrics") or {}).items())))
    callspec = getattr(item, "callspec", None)
    judge.groups.setdefault(group, []).append(
        {
            "fullname": item.nodeid,
            "params": {name: _plain(value) for name, value in callspec.params.items()} if callspec else None,
            "extra_info": dict(getattr(fixture, "extra_info", {})),
            "stats": {"data": [float(seconds) for seconds in data]},
        }
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool)) else getattr(value, "__name__", str(value))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Judge, before pytest says how it ended."""
    judge: _Judge = getattr(session.config, KEPT)
    if not judge.groups or session.exitstatus not in (0,):
        return
    from .errors import ParetoscoutError

    found: set[str] = set()
    for (arm, metrics), tests in judge.groups.items():
        try:
            found |= _judge(judge, arm, dict(metrics), tests)
        except ParetoscoutError as problem:
            judge.lines.append(f"not judged: {problem}")
            judge.failed |= bool(judge.names)
    for name in judge.names:
        if name not in found:
            judge.lines.append(f"fails: --fail-if-dominated names {name!r}, but no option that was judged is called so")
            judge.failed = True
    if judge.failed:
        session.exitstatus = 1


def _judge(judge: _Judge, arm: str | None, metrics: dict[str, str], tests: list[dict[str, Any]]) -> set[str]:
    """Judge tests that are compared with each other; return the names of the options."""
    from . import analyze, read
    from .answer import sentence
    from .gate import Gate
    from .statement import Metric
    from .verdicts import cells, headings, rows_shown

    taken: list[str | Metric] | None = (
        None if not metrics else ["time", *(Metric(name, way, exact=True) for name, way in metrics.items())]
    )
    with _as_file(tests) as path:
        reading = read(path, option=arm, metrics=taken)
    table = analyze(reading)
    rows = [headings(table), *(cells(table, k) for k in rows_shown(table)[0])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    judge.lines += ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    judge.lines += [f"note: {note}" for note in [*reading.notes, *table.remarks]] + [
        f"warning: {text}" for text in table.warnings
    ]
    judge.lines += [f"Guarantee: {table.guarantee}", sentence(table)]
    gate = Gate(tuple(name for name in judge.names if name in table.arms), judge.undecided)
    judge.lines += gate.said(table)
    judge.failed |= gate.fails(table)
    return set(table.arms)


def _as_file(tests: list[dict[str, Any]]) -> Any:
    """Write what was timed as pytest-benchmark would: readers take files."""
    import json
    import tempfile
    from contextlib import contextmanager
    from pathlib import Path

    @contextmanager
    def written() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pytest-benchmark.json"
            path.write_text(json.dumps({"benchmarks": tests, "machine_info": {}}), encoding="utf-8")
            yield path

    return written()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what came out."""
    from .shown import line

    judge: _Judge = getattr(config, KEPT)
    if judge.lines:
        terminalreporter.section("paretoscout")
        for text in judge.lines:
            red = text.startswith("fails")
            terminalreporter.write_line(line(text), red=red, yellow=text.startswith(("note", "warning", "passes, but")))
