"""What `python -m benchmarks.fuzz_files` begins with, and what it found: a result or a sentence."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from benchmarks.fuzz_files import DOORS, changed, databases, json_files, tried

#: Inputs that once ended in a traceback, by what they are read as.
FOUND = [
    ("results-csv", "cnVuX2lkLG1ldHJpY3MuCg1z"),  # csv.Error: a stray newline
    (
        "results-zip",  # NotImplementedError: a zip file of version 9.1
        "UEsDBFBLAQIUA1sAAAAIADKrc13jDkwjIQMAAEsIAAALAAAAAAAAAAAAAACAAQAAAABoZWFkZXIuanNvblBLAQIUAxQAAAAIADKrc11v81+3AAEAALoDAAAO"
        "AAAAAAAAAAAAAACAAUoDAABzdW1tYXJpZXMuanNvblBLBQYAAAAAAgACAHUAAAB2BAAAAAA=",
    ),
    (
        "results-json",  # IndexError: one benchmark of JMH
        "W3siIjoiIiwiYmVuY2htYXJrIjoiIiwibW9kZSI6IiIsIiI6MSwiIjowLCIiOjEsIiI6eyIiOiIifSwicHJpbWFyeU1ldHJpYyI6eyIiOjAsIiI6IiIsInJh"
        "d0RhdGEiOltbNl1dfSwiIjp7IiI6eyIiOiIiLCIiOltbXSxbXV19fX1d",
    ),
]


@pytest.mark.parametrize("door", DOORS)
def test_sound_files_are_read(door: str, tmp_path: Path) -> None:
    """Each kind of file that is fuzzed has a sound one, from which the search begins."""
    said = [tried(door, data, tmp_path / "x") for data in DOORS[door][1]()]
    if door.endswith("yaml"):
        return  # they name files that are not there
    assert None in said or any("at least two options" in (text or "") for text in said), said


@pytest.mark.parametrize(("door", "data"), FOUND)
def test_what_was_found_ends_in_a_sentence_now(door: str, data: str, tmp_path: Path) -> None:
    assert tried(door, base64.b64decode(data), tmp_path / "x")


def test_a_schema_that_is_no_text(tmp_path: Path) -> None:
    """Found as well, where a byte of a database was another one: the error of SQLite itself was no text."""
    [sound] = databases()
    said = tried("results-sqlite", sound.replace(b"NULL, \n\tstep", b"NULL\xaa \n\tstep"), tmp_path / "x")
    assert "must be an SQLite file that can be read" in (said or "")


@pytest.mark.parametrize("number", range(len(json_files())))
def test_values_of_json_that_are_others(number: int, tmp_path: Path) -> None:
    """The changes of the search, without its guide: the same ones every time."""
    sound = json_files()[number]
    for seed in range(150):
        data = changed(sound, seed)
        if data is None:
            return  # lines of JSON
        tried("results-json", changed(data, seed + 1) or data, tmp_path / "x")
