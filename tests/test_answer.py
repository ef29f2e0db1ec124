"""The answer in one sentence, and that it is the last line which commands print."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from conftest import SEEDED

from paretoscout import Metric
from paretoscout.answer import larger_eps, listed, sentence
from paretoscout.cli.main import main
from paretoscout.guarantee import Guarantee
from paretoscout.verdicts import VerdictTable

METRICS = (Metric("quality", "max", 0.02), Metric("cost", "min", 0.1, "ct"))
MEASURE = f"{SEEDED}print('ms=%g' % random.gauss(float(sys.argv[1]), 0.1))\n"


def table(
    centres: Any, verdicts: tuple[str, ...], rivals: tuple[str | None, ...], goal: Any = "practical", names: Any = None
) -> VerdictTable:
    arms = tuple(names or "abcdefghijklmnopqrstuvwxyz"[: len(verdicts)])
    values, right = np.array(centres), Guarantee(goal, 0.95, (), ("normal noise",))
    return VerdictTable(
        arms, METRICS, verdicts, rivals, values, np.full(values.shape, 0.001), np.full(len(arms), 9), right
    )


MODELS = [[0.86, 1.6], [0.91, 2.9], [0.80, 1.9], [0.86, 1.61]]


def test_metrics_are_called_by_name_and_direction() -> None:
    said = sentence(table(MODELS, ("front", "front", "dominated", "same"), (None, None, "a", "a")))
    assert said == (
        "a and b are the front; c is dominated by a: lower in quality by 0.06 and higher in cost by 0.3 ct; "
        "d is the same as a, within 0.002 of quality and 0.012 ct of cost, asked for 0.02 and 0.1 ct."
    )
    tied = sentence(table([[0.86, 1.6], [0.86, 2.0]], ("front", "dominated"), (None, "a")))
    assert tied == "a is the front; b is dominated by a: no higher in quality and higher in cost by 0.4 ct."
    tied = sentence(table([[0.86, 1.6], [0.70, 1.6]], ("front", "dominated"), (None, "a")))
    assert tied == "a is the front; b is dominated by a: lower in quality by 0.16 and no lower in cost."


def test_what_a_metric_is_may_have_a_word_of_its_own() -> None:
    slower = table([[0.86, 1.6], [0.86, 2.0]], ("front", "dominated"), (None, "a"))
    assert "slower by 0.4 ct" in sentence(slower, {"cost": "time"})
    assert "lower in quality" in sentence(table(MODELS[::2], ("front", "dominated"), (None, "a")), {"quality": "time"})


def test_what_is_undecided_comes_last_with_what_it_takes() -> None:
    said = sentence(
        table(MODELS[:3], ("front", "undecided", "undecided"), (None, "a", "a")), ahead="9 more runs would decide it"
    )
    assert said == "a is the front so far; b and c are undecided: 9 more runs would decide it."
    said = larger_eps(table(MODELS[:2], ("front", "front"), (None, None)))
    assert said.startswith("with --eps quality=0.02 --eps cost=0.1 all is decided now")
    assert said.endswith(": a and b are the front.")


def test_goals_are_kept_apart() -> None:
    both = ("front", "front"), (None, None)
    assert sentence(table(MODELS[:2], *both, goal="cover")) == "a and b are a cover of the front."
    assert sentence(table(MODELS[:2], *both, goal=2)) == "a and b are on the front."


def test_names_that_read_like_lists_are_quoted_and_long_lists_cut() -> None:
    odd = table(MODELS[:2], ("front", "front"), (None, None), names=["light", "light, licm"])
    assert sentence(odd) == "light and 'light, licm' are the front."
    assert listed([str(k) for k in range(100)]).endswith("10, 11 and 88 more")


# Commands


def last(*arguments: str, code: int = 0) -> str:
    done: Result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout.splitlines()[-1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "measure.py").write_text(MEASURE)
    rows = [f"{arm},{mean + 0.1 * k % 0.3}" for k in range(10) for arm, mean in (("10", 10.0), ("14", 14.0))]
    (tmp_path / "runs.csv").write_text("\n".join(["arm,ms", *rows]))
    return tmp_path


def test_commands_end_with_the_answer(folder: Path) -> None:
    answer = "10 is the front; 14 is dominated by 10: higher in ms by "
    rows = ["runs.csv", "--arm", "arm", "-m", "ms:min", "--eps", "ms=0.5"]
    assert last("analyze", *rows, "--sigma", "ms=0.1", "--out", "front.png").startswith(answer)
    assert last("demo", *rows).startswith(answer)
    last("create", "--arm", "10", "--arm", "14", "-m", "ms:min", "--eps", "ms=0.5", "--sigma", "ms=0.1")
    assert last("status") == "10 and 14 are undecided."
    run = shlex.join([sys.executable, "-I", "-S", "measure.py", "{arm}"])
    assert last("run", run).startswith(answer)
    assert last("status").startswith(answer)
    assert last("status", "--watch").startswith(answer)


def test_what_is_undecided_says_what_it_takes(folder: Path) -> None:
    few = ["runs.csv", "--arm", "arm", "-m", "ms:min", "--eps", "ms=0.5"]
    said = last("analyze", *few, "--sigma", "ms=9", code=3)
    assert said.startswith("10 and 14 are undecided: about ")
    assert "more runs would decide it" in said
    assert last("demo", *few, "--sigma", "unknown", "--max-samples", "3", code=3) == (
        "10 and 14 are undecided: 3 samples did not decide it (--max-samples)."
    )


def test_a_bench_ends_with_the_answer(folder: Path) -> None:
    how = ["-m", "x:min=stdout~(.*)", "--eps", "x=1", "--exact", "x", "--warmup", "0", "-n", "a", "-n", "b", "-n", "c"]
    said = last("bench", "echo 5", "echo 9", "false", *how, "--reference", "a", "--stats")
    assert said == "a is the front; b is dominated by a: higher in x by 4; c failed and is left out."
    noisy = ["-m", "x:min=stdout~ms=(.*)", "--eps", "x=0.001", "--budget", "10"]
    said = last("bench", *(f"{sys.executable} -I -S measure.py {mean}" for mean in ("10", "10.0")), *noisy, code=3)
    assert " are undecided" in said
