"""Files from anywhere: what is no plain file, too large, cut off, encrypted or damaged ends in a sentence."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import paretoscout as ps
from paretoscout import checks, readers
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput, UnreadableFile
from paretoscout.frames import names_in, read_csv, read_json_lines, read_yaml
from paretoscout.storage.sql import SQLStorage
from paretoscout.storage.upkeep import backup, restore
from paretoscout.study import described

DATA = Path(__file__).parent / "data" / "readers"
DOCS = Path(__file__).parents[1] / "docs"


def said(*arguments: object) -> str:
    """The sentence of `paretoscout analyze`: exit code 2, one line and no traceback."""
    done = CliRunner().invoke(main, ["analyze", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 2, done.output
    assert len(done.output.splitlines()) == 1, done.output
    return done.output


def hyperfine(path: Path, runs: dict[str, list[float]]) -> Path:
    results = [{"command": name, "mean": 1.0, "times": times} for name, times in runs.items()]
    path.write_text(json.dumps({"results": results}))
    return path


# What is no plain file


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize(
    "read", [ps.read, read_csv, read_json_lines, names_in, described.read], ids=lambda f: f.__name__
)
def test_pipes_and_devices_are_refused(read: Callable[[Path], Any], tmp_path: Path) -> None:
    """A pipe that nobody writes to blocks for ever, and /dev/zero has no end."""
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(InvalidInput, match="got a pipe or a device: write what it gives into a file"):
            read(path)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")
def test_files_of_unknown_size_are_refused() -> None:
    assert "of known size, but it says that it is empty: copy it" in said("/proc/self/status")


# Limits: at the limit, and one above


def test_the_limits_are_those_of_the_docs() -> None:
    text = (DOCS / "readers.md").read_text()
    for limit in ("MOST_BYTES", "MOST_YAML_BYTES", "MOST_JSON_VALUES", "MOST_COLUMNS", "MOST_RUNS", "MOST_OPTIONS"):
        assert f" {getattr(checks, limit):,} |" in text, limit
    for limit in ("MOST_VALUES", "MOST_TIMES", "MOST_FILES", "DEEPEST"):
        assert f" {getattr(checks, limit):,} " in text, limit
    assert (checks.MOST_COLUMNS, checks.MOST_OPTIONS, checks.MOST_RUNS) == (10_000, 100_000, 1_000_000)


def test_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv"
    path.write_text("arm,x\na,1\nb,2\n")
    monkeypatch.setattr(checks, "MOST_BYTES", path.stat().st_size)
    assert len(read_csv(path)["x"]) == 2
    path.write_text("arm,x\na,1\nb,22\n")
    with pytest.raises(InvalidInput, match="must be at most 14 bytes, because it is read as a whole, got 15"):
        read_csv(path)
    assert "must be at most 14 bytes" in said(path)


@pytest.mark.parametrize(("n", "fits"), [(10_000, True), (10_001, False)])
def test_columns(n: int, fits: bool, tmp_path: Path) -> None:
    header = [f"c{k}" for k in range(n)]
    (tmp_path / "x.csv").write_text(",".join(header) + "\n" + ",".join("1" * n) + "\n")
    (tmp_path / "x.jsonl").write_text(json.dumps(dict.fromkeys(header, 1)) + "\n")
    for read, name in ((read_csv, "x.csv"), (read_json_lines, "x.jsonl")):
        if fits:
            assert len(read(tmp_path / name)) == n
        else:
            with pytest.raises(InvalidInput, match=r"columns of .* must be at most 10,000, got 10,001"):
                read(tmp_path / name)


def test_rows_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MOST_RUNS", 12)
    csv, lines, tool = tmp_path / "x.csv", tmp_path / "x.jsonl", tmp_path / "x.json"
    for n, fits in ((6, True), (7, False)):
        csv.write_text("arm,x\n" + "a,1\n" * 6 + "b,1\n" * n)
        lines.write_text('{"arm": "a"}\n' * (6 + n))
        hyperfine(tool, {"a": [1.0] * 6, "b": [2.0] * n})
        for read, path in ((read_csv, csv), (read_json_lines, lines), (ps.read, tool)):
            if fits:
                assert read(path)
            else:
                with pytest.raises(InvalidInput, match="must be at most 12, got 13"):
                    read(path)
    hyperfine(tool, {"a": [1.0] * 6, "b": [2.0] * 6})
    with pytest.raises(InvalidInput, match="runs of these 2 files must be at most 12, got 24"):
        ps.read(tool, tool)


@pytest.mark.parametrize(
    "name", ["google-benchmark.json", "jmh.json", "promptfoo.json", "inspect-large.json", "pytest-benchmark.json"]
)
@pytest.mark.parametrize("most", [5, 6])
def test_runs_of_each_tool(name: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reader stops at the limit, wherever its runs are in the file."""
    whole = len(readers.find([DATA / name]).records)  # type: ignore[union-attr]
    monkeypatch.setattr(checks, "MOST_RUNS", whole)
    assert readers.find([DATA / name]) is not None
    monkeypatch.setattr(checks, "MOST_RUNS", whole - 1)
    with pytest.raises(InvalidInput, match=f"must be at most {whole - 1}, got {whole}"):
        readers.find([DATA / name])


def test_two_million_runs_are_refused_before_anything_is_made_of_them(tmp_path: Path) -> None:
    """They ended in no 90 s before; a sentence takes the time of parsing."""
    path = tmp_path / "x.json"
    series = ", ".join(["1.5"] * 1_000_000)
    results = ", ".join(f'{{"command": "{name}", "mean": 1.5, "times": [{series}]}}' for name in "ab")
    path.write_text(f'{{"results": [{results}]}}')
    with pytest.raises(InvalidInput, match="must be at most 1,000,000, got 2,000,000"):
        ps.read(path)


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = hyperfine(tmp_path / "x.json", {f"c{k}": [1.0, 2.0] for k in range(5)})
    monkeypatch.setattr(checks, "MOST_OPTIONS", 5)
    assert len(ps.read(path).options) == 5
    monkeypatch.setattr(checks, "MOST_OPTIONS", 4)
    assert f"commands of {path} must be at most 4, got 5" in said(path)


def test_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MOST_OPTIONS", 3)
    assert len(ps.read(hyperfine(tmp_path / "x.json", {name: [1.0, 2.0] for name in "abc"})).options) == 3
    monkeypatch.setattr(checks, "MOST_OPTIONS", 4)
    assert ps.read(DATA / "google-benchmark.json", option="benchmark,arguments")
    monkeypatch.setattr(checks, "MOST_OPTIONS", 3)
    assert "must be at most 3, got 4" in said(DATA / "google-benchmark.json", "--arm", "benchmark,arguments")


def test_values_of_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by marks, before anything is parsed: 500 MB of [] would take 12 GB."""
    path = hyperfine(tmp_path / "x.json", {"a": [1.0, 2.0], "b": [1.0, 3.0]})
    n = sum(path.read_text().count(mark) for mark in ",[{")
    monkeypatch.setattr(checks, "MOST_JSON_VALUES", n)
    assert len(ps.read(path)) == 4
    monkeypatch.setattr(checks, "MOST_JSON_VALUES", n - 1)
    assert f"must be at most {n - 1}, got {n}" in said(path)


def test_names_of_parameters_and_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, n = DATA / "promptfoo.json", len(_names_in_promptfoo())
    monkeypatch.setattr(checks, "MOST_COLUMNS", n)
    assert len(ps.read(path)) == 12
    monkeypatch.setattr(checks, "MOST_COLUMNS", n - 1)
    assert f"parameters and metrics of {path} must be at most {n - 1}, got {n}" in said(path)


def _names_in_promptfoo() -> set[str]:
    found = readers.find([DATA / "promptfoo.json"])
    assert found is not None
    labels = {name for record in found.records for name in record.labels}
    return labels | {name for each in found.found for name in each.measures}


def test_files_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`analyze /` would look at the whole disk."""
    n = sum(len(folders) + len(files) for _, folders, files in os.walk(DATA / "criterion"))
    monkeypatch.setattr(checks, "MOST_FILES", n)
    assert len(readers.find([DATA / "criterion"]).records) == 88  # type: ignore[union-attr]
    monkeypatch.setattr(checks, "MOST_FILES", n - 1)
    assert "name the folder of the results" in said(DATA / "criterion")


# YAML


def test_merge_keys_are_counted_before_they_are_merged(tmp_path: Path) -> None:
    """Nine anchors, each merged nine times by the next: 9^9 pairs from 600 letters. It ran without an end."""
    path = tmp_path / "x.yaml"
    levels = ["a0: &a0 {k: v}"]
    levels += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 10)]
    path.write_text("\n".join(levels))
    with pytest.raises(InvalidInput, match=r"x\.yaml must hold at most 1,000,000 values, got"):
        described.read(path)
    done = CliRunner().invoke(main, ["create", str(path)], catch_exceptions=False)
    assert done.exit_code == 2
    assert "put long lists into CSV files" in done.output


def test_values_of_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Aliases count in full. Here: the mapping, 3 keys, 2 lists of 4 values, 1 merged mapping of 2 values, `<<` in full."""
    path = tmp_path / "x.yaml"
    path.write_text("a: &a [1, 2, 3, 4]\nb: *a\nc: {<<: {d: 5}}\n")
    n = 1 + 3 + 2 * 5 + 1 + 1 + 1 + 2
    monkeypatch.setattr(checks, "MOST_VALUES", n)
    assert read_yaml(path, "a study") == {"a": [1, 2, 3, 4], "b": [1, 2, 3, 4], "c": {"d": 5}}
    monkeypatch.setattr(checks, "MOST_VALUES", n - 1)
    with pytest.raises(InvalidInput, match=f"must hold at most {n - 1} values, got {n}"):
        read_yaml(path, "a study")


def test_bytes_of_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: 1\n")
    monkeypatch.setattr(checks, "MOST_YAML_BYTES", 5)
    assert read_yaml(path, "a study") == {"a": 1}
    monkeypatch.setattr(checks, "MOST_YAML_BYTES", 4)
    with pytest.raises(InvalidInput, match="put long lists into CSV files"):
        read_yaml(path, "a study")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: " + "9:" * 250 + "9", "must be at most 500 letters long"),  # a number to the base 60
        ("&a [*a]", "nested at most 20 deep"),
        ("a: " + "[" * 40 + "]" * 40, "nested at most 20 deep"),
        ("[" * 1000, "nested at most 20 deep"),
        ("a: !!binary [1]", "must be a YAML file, but"),
        ("a: !!timestamp x", "must be a YAML file, but"),
        ("a: !!int x", "must be a YAML file, but"),
        ("a: 2001-99-99", "must be a YAML file, but"),
        ("a: \x07", "must be a YAML file, but"),
    ],
)
def test_yaml_that_is_none(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        read_yaml(tmp_path / "x.yaml", "a study")


# Cut off, encrypted and damaged


def test_a_cut_off_table_of_optuna(tmp_path: Path) -> None:
    """Wherever it is cut in a line, but in the last cell: what is there of it then may be all."""
    whole = (DATA / "optuna.csv").read_text().splitlines()
    path = tmp_path / "x.csv"
    for end in range(1, whole[30].rindex(",") + 1):
        path.write_text("\n".join(whole[:30]) + "\n" + whole[30][:end])
        assert "line 31 of" in said(path, "-m", "accuracy:max"), end


def test_stray_newlines(tmp_path: Path) -> None:
    header, first, *rest = (DATA / "optuna.csv").read_text().splitlines()
    path = tmp_path / "x.csv"
    path.write_bytes("\n".join([header, first.replace(",", ",\r", 1), *rest]).encode())
    assert "line 2 of" in said(path, "-m", "accuracy:max")
    path.write_bytes("\n".join([header, first.replace(",", ',"\r\n', 1), *rest]).encode())
    assert "x.csv must" in said(path, "-m", "accuracy:max")


def test_one_benchmark_of_jmh(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(json.loads((DATA / "jmh.json").read_text())[:1]))
    assert "must have at least two options, but nothing in it differs" in said(tmp_path / "x.json")


def log_of_inspect(path: Path, summaries: bytes | str, method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("header.json", '{"version": 2, "status": "success", "eval": {"model": "m"}, "plan": {}}')
        archive.writestr("summaries.json", summaries)
    return path


def test_encrypted_members(tmp_path: Path) -> None:
    data = bytearray(log_of_inspect(tmp_path / "x.eval", "[]").read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.find(mark)
        while place >= 0:
            data[place + flags] |= 1
            place = data.find(mark, place + 1)
    (tmp_path / "x.eval").write_bytes(data)
    assert "header.json of" in (text := said(tmp_path / "x.eval"))
    assert "must not be encrypted" in text


def test_a_bomb_of_deflate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a member says of its size is checked first."""
    text = "[" + " " * 1_000_000 + "]"
    path = log_of_inspect(tmp_path / "x.eval", text)
    monkeypatch.setattr(checks, "MOST_TIMES", len(text) // path.stat().st_size)
    assert "bytes of summaries.json of" in said(path)
    monkeypatch.setattr(checks, "MOST_TIMES", len(text) // path.stat().st_size + 1)
    assert "has no samples" in said(path)
    monkeypatch.setattr(checks, "MOST_BYTES", len(text))
    assert "has no samples" in said(path)
    monkeypatch.setattr(checks, "MOST_BYTES", len(text) - 1)
    assert f"must be at most {len(text) - 1:,}, got {len(text):,}" in said(path)


def bomb_of_zstandard(path: Path, size: int, claimed: int) -> Path:
    """A log whose member is a frame of Zstandard that says a size of its own; the zip file claims another."""
    zstandard = pytest.importorskip("zstandard", reason="the extra inspect is not installed")
    raw = b"[" + b" " * (size - 2) + b"]"
    packed = zstandard.ZstdCompressor(level=1).compress(raw)
    log_of_inspect(path, packed, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    local = data.rfind(b"PK\x03\x04")
    central = data.rfind(b"PK\x01\x02")
    struct.pack_into("<H", data, local + 8, 93)
    struct.pack_into("<H", data, central + 10, 93)
    struct.pack_into("<L", data, local + 22, claimed)
    struct.pack_into("<L", data, central + 24, claimed)
    path.write_bytes(data)
    return path


def test_a_bomb_of_zstandard(tmp_path: Path) -> None:
    """92 kB unpacked to 5.9 GB: the frame says how much it holds, and what the zip file says was no limit then."""
    tracemalloc = pytest.importorskip("tracemalloc")
    path = bomb_of_zstandard(tmp_path / "x.eval", 30_000_000, 20_000)
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    try:
        text = said(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "must be a whole file, but summaries.json" in text
    assert peak < 10_000_000
    honest = bomb_of_zstandard(tmp_path / "y.eval", 10_000, 10_000)
    assert "has no samples" in said(honest)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_logs_of_inspect(method: int, tmp_path: Path) -> None:
    """Each byte of a packed log, one at a time, is another one: a sentence, or what was there."""
    whole = log_of_inspect(tmp_path / "whole.eval", json.dumps([{"id": k} for k in range(9)]), method).read_bytes()
    path = tmp_path / "x.eval"
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        _sentence_or_result(path)


def test_damaged_databases_of_optuna(tmp_path: Path) -> None:
    """Bytes of an SQLite file that hold something, one at a time, are others: a sentence, or a table."""
    with gzip.open(DATA / "optuna.db.gz") as file:
        whole = file.read()
    places = [place for place, byte in enumerate(whole) if byte]
    path = tmp_path / "x.db"
    for step, place in enumerate(places[:: max(1, len(places) // 150)]):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << step % 8)]) + whole[place + 1 :])
        _sentence_or_result(path)


def _sentence_or_result(path: Path) -> None:
    try:
        ps.read(path)
    except ps.errors.ParetoscoutError as problem:
        assert "\n" not in str(problem)  # noqa: PT017


# Views without an end

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"


def test_views_of_a_database_of_optuna_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with gzip.open(DATA / "optuna.db.gz") as file:
        path.write_bytes(file.read())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE trial_params")
        columns = "i AS trial_id, 'p' AS param_name, 1.0 AS param_value, '{}' AS distribution_json"
        connection.execute(f"CREATE VIEW trial_params AS {ENDLESS.format(columns)}")
        connection.commit()
    assert "must be an SQLite file that can be read, but" in said(path)


@pytest.mark.parametrize("name", ["events", "studies"])
def test_a_backup_with_a_view_without_an_end_is_not_restored(name: str, tmp_path: Path) -> None:
    storage = SQLStorage(f"sqlite:///{tmp_path}/s.db")
    storage.create("study", "")
    backup(storage, tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        connection.execute(f"DROP TABLE {name}")
        columns = ", ".join(f"i AS {column}" for column in names)
        connection.execute(f"CREATE VIEW {name} AS {ENDLESS.format(columns)}")
        connection.commit()
    with pytest.raises(UnreadableFile, match=f"is no backup, and was not restored: {name} must be a plain table"):
        restore(storage, tmp_path / "copy.db", lambda spec, name: None)
    assert storage.names() == ["study"]


def test_a_backup_whose_column_is_computed_is_not_restored(tmp_path: Path) -> None:
    storage = SQLStorage(f"sqlite:///{tmp_path}/s.db")
    backup(storage, tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        connection.execute("ALTER TABLE events ADD COLUMN more AS (printf('%.*c', 1000000000, 'x'))")
        connection.commit()
    with pytest.raises(UnreadableFile, match="events must be a plain table"):
        restore(storage, tmp_path / "copy.db", lambda spec, name: None)


def test_numbers_beyond_all_bounds_are_refused(tmp_path: Path) -> None:
    """In milliseconds 1e308 s is infinite."""
    path = hyperfine(tmp_path / "x.json", {"a": [1e308] * 3, "b": [1.0] * 3})
    assert "must be a finite number" in said(path)
