"""What `python -m benchmarks.fuzz_files` begins with, and what it found: a result or a sentence."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from benchmarks.fuzz_files import DOORS, changed, json_files, tried

#: Inputs that once ended in a traceback, by what they are read as.
FOUND: list[tuple[str, str]] = []


@pytest.mark.parametrize("door", DOORS)
def test_sound_files_are_read(door: str, tmp_path: Path) -> None:
    """Each kind of file that is fuzzed has a sound one, from which the search begins."""
    said = [tried(door, data, tmp_path / "x") for data in DOORS[door][1]()]
    if door.endswith("yaml"):
        return  # they name files that are not there
    assert None in said or any("at least two options" in (text or "") for text in said), said


@pytest.mark.parametrize(("door", "data"), FOUND)
def test_what_was_found_ends_in_a_sentence_now(door: str, data: str, tmp_path: Path) -> None:
    tried(door, base64.b64decode(data), tmp_path / "x")


@pytest.mark.parametrize("number", range(len(json_files())))
def test_values_of_json_that_are_others(number: int, tmp_path: Path) -> None:
    """The changes of the search, without its guide: the same ones every time."""
    sound = json_files()[number]
    for seed in range(150):
        data = changed(sound, seed)
        if data is None:
            return  # lines of JSON
        tried("results-json", changed(data, seed + 1) or data, tmp_path / "x")
