"""`paretoscout bench -B`: options that are compared over many inputs."""

from __future__ import annotations

import json
import math
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_bench import bench

from paretoscout.bench import inputs_of, options_of
from paretoscout.errors import InvalidInput
from paretoscout.storage import storage_of
from paretoscout.study import Study

PYTHON = f"{shlex.quote(sys.executable)} -I -S"
#: Prints a number that grows with the size of a file and with the level; at level 3 it is better on large files only.
COST = """
import os, sys
level, size = sys.argv[1], os.path.getsize(sys.argv[2])
print(size * {"1": 1.0, "2": 1.5, "3": 3.0 if size < 40 else 0.9}[level])
"""
HOW = ["-L", "level=1,2,3", f"{PYTHON} cost.py {{level}} {{file}}", "-m", "cost:min=stdout~(.*)", "--eps", "cost=1%"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cost.py").write_text(COST)
    for number in range(12):
        (tmp_path / f"in {number:02}.txt").write_text("x" * (10 + 5 * number))
    return tmp_path


def told(*arguments: str) -> Any:
    done = bench(*arguments, "--json", "--warmup", "0")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def the_study() -> Study:
    storage = storage_of("paretoscout.db")
    (name,) = storage.names()
    return Study.load(name, storage)


def test_the_answer_is_about_all_inputs(folder: Path) -> None:
    """Few enough inputs are all measured: the answer is that of the geometric means, and nothing is left to chance."""
    answer = told(*HOW, "-B", "file=in *.txt", "--reference", "level=1")
    sizes = np.array([10 + 5 * number for number in range(12)])
    truth = {1: np.ones(12), 2: np.full(12, 1.5), 3: np.where(sizes < 40, 3.0, 0.9)}
    ratio = {f"level={level}": math.exp(np.log(times).mean()) for level, times in truth.items()}
    assert ratio["level=3"] > 1
    verdicts = {option["option"]: option["verdict"] for option in answer["options"]}
    assert verdicts == {"level=1": "front", "level=2": "dominated", "level=3": "dominated"}
    if answer["samples"] == 36:
        assert answer["guarantee"]["probability"] == 1.0
    found = answer["bench"]["reference"]["options"]["level=3"]["cost"]["value"]
    rows = [(arm, block, values[0]) for _, arm, block, values, _ in the_study().measurements()]
    cells = {(arm, block): value for arm, block, value in rows}
    assert len(cells) == len(rows), "one run of each option on each input"
    both = [block for arm, block in cells if arm == "level=3" and ("level=1", block) in cells]
    shared = np.log([cells["level=3", block] / cells["level=1", block] for block in both])  # type: ignore[operator]
    assert found == pytest.approx(math.exp(shared.mean()))
    assert "all was decided by" in bench(*HOW, "-B", "file=in *.txt", "--warmup", "0").output


def test_options_are_run_on_one_input_after_the_other(folder: Path) -> None:
    told(*HOW, "-B", "file=in *.txt")
    order = [str(block) for _, _, block, _, _ in the_study().measurements()]
    first = list(dict.fromkeys(order))
    assert first != sorted(first), "in an order drawn at random"
    assert order[:9] == [block for block in first[:3] for _ in range(3)], "all options on the same input"


def test_a_budget_leaves_the_rest_for_the_next_time(folder: Path) -> None:
    cut = bench(*HOW, "-B", "file=in *.txt", "--warmup", "0", "--budget", "7")
    assert cut.exit_code == 3, cut.output
    assert the_study().counts()["told"] == 7
    assert told(*HOW, "-B", "file=in *.txt")["done"]


def test_few_inputs_are_gone_through_again(folder: Path) -> None:
    answer = told(*HOW, "-B", "file=in 00.txt,in 05.txt,in 11.txt")
    assert set(answer["front"]) <= {"level=1", "level=3"}
    blocks = {block for _, _, block, _, _ in the_study().measurements()}
    assert blocks <= {f"in {number}.txt{again}" for number in ("00", "05", "11") for again in ("", " (2)")}


def test_an_option_that_fails_on_an_input_is_left_out_and_tried_again(folder: Path) -> None:
    (folder / "cost.py").write_text(COST.replace("3.0 if", '1 / (level != "3") if'))
    failed = bench(*HOW, "-B", "file=in *.txt", "--warmup", "0")
    assert "left out: level=3: failed: exit code 1" in failed.output
    (folder / "cost.py").write_text(COST)
    assert len(told(*HOW, "-B", "file=in *.txt")["options"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-B", "file=no*.txt"], "inputs 'file' must match a file, got 'no*.txt'"),
        (["-B", "fiel=a,b,c,d"], "'fiel' must be used"),
        (["-B", "level=a,b,c,d"], "must be given once"),
        (["-B", "file=a,b", "--runs", "3"], "--runs must be left out with -B"),
        (["-B", "file=a,b", "--features"], "--features must be left out with -B"),
    ],
)
def test_what_inputs_do_not_go_with(arguments: list[str], message: str, folder: Path) -> None:
    refused = bench(*HOW, *arguments)
    assert refused.exit_code == 2
    assert message in " ".join(refused.output.split())
    assert not (folder / "paretoscout.db").exists()


def test_inputs(folder: Path) -> None:
    assert inputs_of("file=b,a,in 0[01].txt") == ("file", ["b", "a", "in 00.txt", "in 01.txt"])
    (folder / "sub").mkdir()
    (folder / "sub" / "x").touch()
    assert inputs_of("file=*", "sub") == ("file", ["x"]), "from where commands are run"
    with pytest.raises(InvalidInput, match="must not be empty"):
        inputs_of("file=,a")
    (option,) = options_of(["gzip {file}"], {}, given={"file": "a b"})
    assert (option.name, option.command, option.variables) == ("gzip {file}", "gzip 'a b'", {"file": "a b"})
