"""pytest says which of the options that pytest-benchmark timed are worth having, and fails if the change is dominated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import PATIENCE

import paretoscout as ps
from paretoscout.cli.main import main

pytest.importorskip("pytest_benchmark", reason="there is nothing to judge without pytest-benchmark")

#: `new` takes a twentieth of the time of `old`, by a clock of its own: on a busy machine rounds depend on each other.
TESTS = """
import random
import pytest

now, noise = [0.0], random.Random(1)

def old():
    now[0] += 0.004 * noise.gauss(1.0, 0.05)

def new():
    now[0] += 0.0002 * noise.gauss(1.0, 0.05)

@pytest.mark.benchmark(timer=lambda: now[0])
@pytest.mark.paretoscout(arm="which", metrics={"size": "min"})
@pytest.mark.parametrize("which", [old, new])
def test_work(benchmark, which):
    benchmark.pedantic(which, rounds=40, iterations=1)
    benchmark.extra_info["size"] = 3

def test_plain():
    pass
"""


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    (folder / "test_it.py").write_text(TESTS)
    plugin = [] if _installed() else ["-p", "paretoscout.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *arguments]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}  # pytest-xdist's too
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout + done.stderr


def _installed() -> bool:
    """Whether pytest finds the plugin by itself, as it does once the package was installed with its entry points."""
    from importlib.metadata import entry_points

    return any(point.value == "paretoscout.pytest_plugin" for point in entry_points(group="pytest11"))


def test_the_plugin_judges_and_fails(tmp_path: Path) -> None:
    code, shown = run(tmp_path)
    assert code == 0, shown
    assert "which=old   × dominated by which=new" in shown
    assert "within this session" in shown
    code, shown = run(tmp_path, "--fail-if-dominated", "which=old")
    assert code == 1
    assert "fails: which=old is dominated by which=new: slower" in shown
    code, shown = run(tmp_path, "--fail-if-dominated", "which=new")
    assert code == 0, shown
    assert "passes: which=new is worth having" in shown
    code, shown = run(tmp_path, "--fail-if-dominated", "which=none")
    assert code == 1
    assert "no option that was judged is called so" in shown


def test_it_is_light(tmp_path: Path) -> None:
    """It is loaded in every run of pytest, so it imports nothing heavy."""
    code = "import sys, paretoscout.pytest_plugin; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {name.split(".")[0] for name in done.stdout.split()} & {"numpy", "numba", "scipy", "pytest"}


def test_the_times_of_a_bench_as_hyperfine_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    study = ps.Study(["a", "b"], [ps.Metric("time", "min", unit="ms")], storage="paretoscout.db")
    for n in range(20):
        study.tell_frame({"arm": ["a", "b"], "time": [20.0 + n, 30.0 + n]})
    done = CliRunner().invoke(main, ["export", "--to", "hyperfine-json", "--out", "times.json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    first, second = json.loads(Path("times.json").read_text())["results"]
    assert first["times"] == pytest.approx([(20 + n) / 1000 for n in range(20)])
    assert second["mean"] == pytest.approx(0.0395)
    assert ps.read("times.json").options == ("a", "b")
    wrong = CliRunner().invoke(main, ["export", "--to", "hyperfine-json", "--format", "csv"])
    assert wrong.exit_code == 2
