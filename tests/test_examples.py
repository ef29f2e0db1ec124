"""Three questions that people have, answered by the commands of their pages: the last line is the right answer.

A bench has little time here. On a machine that is too busy for it, it ends undecided and says so: such a test is skipped.
A wrong answer never is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE

PAGES = Path(__file__).parent.parent / "docs" / "examples"
#: Of one bench; the pages promise an answer within a minute, on a machine that is not as busy as one that runs tests.
BUDGET = "9s"
#: Exit code of what ends undecided.
UNDECIDED = 3


def blocks(page: str) -> list[tuple[str, str]]:
    """The commands of a page, and what it says that they print."""
    found = re.findall(
        r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```", (PAGES / f"{page}.md").read_text("utf-8"), re.M | re.S
    )
    assert found, f"{page}: no commands with their output"
    return found


def answer(commands: str, folder: Path) -> str:
    """Run commands as printed, in this folder; return the last line."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "paretoscout").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m paretoscout "$@"\n')
    (programs / "paretoscout").chmod(0o755)
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    (folder / "work").mkdir(exist_ok=True)
    done = subprocess.run(
        ["bash", "-euc", commands],
        cwd=folder / "work",
        env={**os.environ, "PATH": path, "PARETOSCOUT_BUDGET": BUDGET},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode in (0, UNDECIDED), done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert (done.returncode == UNDECIDED) == ("undecided" in last), last
    return last


def decided(text: str) -> str:
    if "undecided" in text:
        pytest.skip(f"the machine is too busy for {BUDGET}: {text}")
    return text


def last_lines(page: str) -> list[str]:
    return [shown.splitlines()[-1] for _, shown in blocks(page)]


def right_about_five_percent(text: str) -> bool:
    found = re.fullmatch(r"a is the front; b is dominated by a: slower by ([\d.]+)%\.", text)
    return found is not None and 3 < float(found[1]) < 7


SAME = re.compile(
    r"(a is the front; b is the same as a|b is the front; a is the same as b), within [\d.]+% of time, .*"
)
FASTER = "is-a-faster"


def test_is_a_faster_where_b_takes_5_percent_longer(tmp_path: Path) -> None:
    said = decided(answer(blocks(FASTER)[0][0], tmp_path))
    assert right_about_five_percent(said), said


def test_is_a_faster_where_both_take_the_same_up_to_5_percent(tmp_path: Path) -> None:
    said = decided(answer(blocks(FASTER)[1][0], tmp_path))
    assert SAME.fullmatch(said), said


#: zstd takes half the time of gzip and bzip2, and its file is far smaller; that of xz is the smallest by far.
COMPRESSORS = re.compile(
    r"tool=xz and tool=zstd are the front; tool=gzip is dominated by tool=zstd: slower by .* and larger by .*; "
    r"tool=bzip2 is dominated by tool=zstd: slower by .* and larger by .*\."
)


def test_which_compressor(tmp_path: Path) -> None:
    if missing := [program for program in ("gzip", "bzip2", "xz", "zstd") if shutil.which(program) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    ((commands, _),) = blocks("which-compressor")
    said = decided(answer(commands, tmp_path))
    assert COMPRESSORS.fullmatch(said), said


#: The noise of these models is that of random numbers, not of a machine: every answer is decided.
OLD = r"old is dominated by (small|copy): lower in accuracy by 0\.0[45678]\d* and higher in cost by 0\.3( ct)?"
MODELS = re.compile(
    rf"(small and large are the front; {OLD}; copy is the same as small|(large and copy|copy and large) are the front; {OLD}; "
    rf"small is the same as copy), within 0\.0([01]\d*|2) of accuracy, asked for 0\.02\."
)


def test_which_model(tmp_path: Path) -> None:
    """By a study, and by a table. Both are wrong with probability 0.05 at most, and in fact far more seldom."""
    for commands, _ in blocks("which-model"):
        said = answer(commands, tmp_path)
        assert MODELS.fullmatch(said), said


def test_the_pages_show_the_right_answers() -> None:
    five, same = last_lines(FASTER)
    assert right_about_five_percent(five)
    assert SAME.fullmatch(same)
    assert all(map(COMPRESSORS.fullmatch, last_lines("which-compressor")))
    assert all(map(MODELS.fullmatch, last_lines("which-model")))
