"""Looking after the storage from the shell: `paretoscout db ...`, `studies`, `delete`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from test_cli_study import NEW, ok, read, run

from paretoscout import Study


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("PARETOSCOUT_STORAGE", "PARETOSCOUT_STUDY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def told() -> int:
    return Study.load().counts()["told"]


def damage(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "paretoscout.db", isolation_level=None)) as connection:
        connection.execute(statement)


def test_damage_is_found_and_repaired(folder: Path) -> None:
    ok(*NEW)
    for trial in range(4):
        ok("ask")
        ok("tell", str(trial * 2), "quality=0.5", "cost=1")
    assert ok("db", "check") == "paretoscout.db: 1 study, all sound\n"
    assert ok("db", "repair") == "paretoscout.db: all sound, nothing to repair\n"
    ok("db", "backup", "copy.db")
    assert run("db", "backup", "copy.db").exit_code == 2
    damage(folder, "UPDATE events SET body = replace(body, '0.5', '0.6') WHERE number = 5")
    done = run("status")
    assert done.exit_code == 2
    assert "event 5 of study 'study' was damaged since it was written. Run: paretoscout db check" in done.output
    done = run("db", "check")
    assert done.exit_code == 6
    assert "study 'study': event 5 is damaged: its checksum does not fit" in done.output
    assert run("db", "repair", given="n\n").exit_code != 0
    repaired = ok("db", "repair", "--dropped", "dropped.jsonl", "--yes")
    assert "study 'study': dropped 3 events, from number 5 on (event 5 is damaged" in repaired
    assert "dropped events are kept in dropped.jsonl" in repaired
    assert len((folder / "dropped.jsonl").read_text().splitlines()) == 3
    ok("db", "check")
    assert told() == 2
    assert "1 study restored from copy.db" in ok("db", "restore", "copy.db", "--yes")
    assert told() == 4
    assert run("db", "restore", "copy.db", given="n\n").exit_code != 0


def test_a_study_that_cannot_be_read_is_listed_and_can_be_deleted(folder: Path) -> None:
    ok(*NEW)
    ok(*NEW, "--name", "other")
    damage(folder, "UPDATE studies SET spec = replace(spec, '0.05', '0.06') WHERE name = 'study'")
    listed = read("studies", "--json")
    assert [each["name"] for each in listed] == ["study", "other"]
    assert "were damaged since they were written" in listed[0]["unreadable"]
    assert listed[1]["metrics"]
    assert "study  unreadable: settings of study 'study' were damaged" in ok("studies")
    assert run("db", "check").exit_code == 6
    assert "delete study 'study' which cannot be read?" in run("delete", "study", given="y\n").output
    assert [each["name"] for each in read("studies", "--json")] == ["other"]
    ok("db", "check")


@pytest.mark.parametrize("name", ["a?b.db", "a%20b.db", "a#b.db"])
def test_files_may_have_any_name(folder: Path, name: str) -> None:
    ok(*NEW, "--storage", name)
    ok("ask", "--storage", name)
    ok("db", "upgrade", "--storage", name)
    ok("db", "check", "--storage", name)
    assert name in [path.name for path in folder.iterdir()]
    assert Study.load(storage=name).counts()["asked"] == 1


@pytest.mark.parametrize("address", ["postgresql://u@h:bad/x", "a\0b.db"])
def test_a_bad_address_is_a_sentence(folder: Path, address: str) -> None:
    done = run("ask", "--storage", address)
    assert done.exit_code == 2
    assert "storage must be" in done.output
