"""Sweeps: the same rows on every engine, nothing run twice, nothing lost."""

from __future__ import annotations

import errno
import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import psutil
import pytest
from click.testing import CliRunner
from conftest import wait_for

import paretoscout as ps
from paretoscout.algorithms import Scout
from paretoscout.cli.main import main
from paretoscout.engines import Engine, Threads, opened
from paretoscout.errors import EngineUnavailable, InvalidInput, UnknownName
from paretoscout.simulation.progress import Progress
from paretoscout.sweeps import schedule, store
from paretoscout.sweeps.cells import Cell, Plan, Play, Report
from paretoscout.sweeps.grid import cells_of
from paretoscout.sweeps.runs import TIME, RunCell
from paretoscout.sweeps.schedule import play, work
from paretoscout.sweeps.sources import reachable
from paretoscout.sweeps.store import Folder, Memory

GRID = {"eps": [0.1, 0.2], "scout.regret_weight": [0.0, 0.5]}


def small(out: Path, **how: Any) -> ps.Sweep:
    asked = {"problems": "s5", "algorithms": ["scout", "uniform"], "grid": GRID, "replicates": 12, "out": out}
    return ps.sweep(**{**asked, **how})


def numbers_of(done: ps.Sweep) -> list[dict[str, Any]]:
    """All rows, but how long they took."""
    return [{k: v for k, v in row.items() if k != "seconds"} for cell in done.cells for row in done.rows(cell)]


@pytest.fixture(scope="module")
def on_threads(tmp_path_factory: pytest.TempPathFactory) -> ps.Sweep:
    return small(tmp_path_factory.mktemp("sweep") / "rows", keep=("front", "pulls", "curve"))


def test_replicates_are_those_of_simulate(on_threads: ps.Sweep) -> None:
    problem = ps.problems.load("s5")
    for cell in on_threads.cells:
        result = on_threads.result(cell)
        again = ps.simulate(problem, cell.settings, eps=cell.eps, replicates=12, seed=0)
        for name, value in vars(again).items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(getattr(result, name), value, err_msg=name)
            else:
                assert getattr(result, name) == value, name


def test_the_folder_is_what_pandas_reads(on_threads: ps.Sweep) -> None:
    import pandas as pd

    frame = pd.read_parquet(on_threads.folder.path)
    assert len(frame) == 6 * 12
    assert set(frame.groupby(["algorithm", "eps"]).size()) == {12, 24}
    assert frame.success.all()
    assert set(frame.code) == {on_threads.cells[0].code}
    assert set(frame.numpy) == {np.__version__}
    assert frame["scout.regret_weight"].isna().sum() == 24  # uniform has none
    assert on_threads.frame().shape == frame.shape


@pytest.mark.parametrize("engine", ["threads:1", "processes:2"])
def test_rows_do_not_depend_on_the_engine(on_threads: ps.Sweep, engine: str, tmp_path: Path) -> None:
    again = small(tmp_path / "again", engine=engine, keep=("front", "pulls", "curve"))
    assert numbers_of(again) == numbers_of(on_threads)


def test_what_is_there_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[int] = []
    real = schedule.work

    def seen(cell: Cell, numbers: Sequence[int], *rest: Any) -> Any:
        played.extend(numbers)
        return real(cell, numbers, *rest)

    monkeypatch.setattr(schedule, "work", seen)
    small(tmp_path / "rows", replicates=5)
    assert len(played) == 6 * 5
    played.clear()
    assert small(tmp_path / "rows", replicates=5).complete
    assert not played
    more = small(tmp_path / "rows", replicates=8, grid={**GRID, "eps": [0.1, 0.2, 0.3]})
    assert sorted(played) == sorted([*[5, 6, 7] * 6, *list(range(8)) * 3])
    assert more.complete
    assert numbers_of(more) == numbers_of(small(tmp_path / "new", replicates=8, grid={**GRID, "eps": [0.1, 0.2, 0.3]}))


KILLED = """
import sys
import paretoscout as ps
ps.sweep("s5", ["scout", "uniform"], grid={"eps": [0.1, 0.2]}, replicates=4000, out=sys.argv[1], engine=sys.argv[2])
"""


@pytest.mark.parametrize("engine", ["threads", "processes:2"])
def test_a_sweep_that_is_killed_goes_on(engine: str, tmp_path: Path) -> None:
    """Killed at once, which its processes notice; what is in the folder is whole, and nothing of it is run again."""
    rows = tmp_path / "rows"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(rows), engine])
    try:
        wait_for("the first rows", lambda: process.poll() is not None or list(rows.glob("*.parquet")))
        children = psutil.Process(process.pid).children(recursive=True)
    finally:
        process.kill()
        process.wait()
    assert bool(children) == (engine == "processes:2")
    wait_for("the end of its processes", lambda: not any(child.is_running() for child in children))
    parts = {path: path.stat().st_mtime_ns for path in rows.glob("*.parquet")}
    assert parts
    done = ps.sweep("s5", ["scout", "uniform"], grid={"eps": [0.1, 0.2]}, replicates=40, out=rows)
    assert done.complete
    assert all(path.stat().st_mtime_ns == when for path, when in parts.items())
    seen = [(row["cell"], row["replicate"]) for cell in done.cells for row in done.rows(cell)]
    assert len(seen) == len(set(seen)) >= 160


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pressed = [False]

    def interrupted(*arguments: Any, **how: Any) -> Any:
        if not pressed[0] and any((tmp_path / "rows").glob("*.parquet")):
            pressed[0] = True
            raise KeyboardInterrupt
        return wait(*arguments, **how)

    monkeypatch.setattr("paretoscout.sweeps.schedule.wait", interrupted)
    done = small(tmp_path / "rows", replicates=3000)
    assert done.interrupted
    assert not done.complete
    assert "goes on" in done.notes[-1]
    kept = sum(len(done.folder.numbers(cell)) for cell in done.cells)
    assert 0 < kept < 6 * 3000
    monkeypatch.undo()
    assert small(tmp_path / "rows", replicates=2).complete


def test_a_broken_file_is_set_aside_and_run_again(tmp_path: Path) -> None:
    first = small(tmp_path / "rows", replicates=3)
    broken = first.folder.parts()[0]
    broken.write_bytes(b"cut short")
    (tmp_path / "rows" / ".x.parquet.unfinished").write_bytes(b"half")
    again = small(tmp_path / "rows", replicates=3)
    assert again.complete
    assert (tmp_path / "rows" / f"_set-aside-{broken.name}").read_bytes() == b"cut short"
    assert not list((tmp_path / "rows").glob(".*"))
    assert numbers_of(again) == numbers_of(small(tmp_path / "new", replicates=3))


def test_without_pyarrow_rows_are_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_threads: ps.Sweep) -> None:
    expected = numbers_of(on_threads)
    monkeypatch.setattr(store, "_pyarrow", lambda: None)
    rows = small(tmp_path / "rows", keep=("front", "pulls", "curve"))
    assert rows.folder.form == "csv"
    assert numbers_of(rows) == expected
    with pytest.raises(ps.errors.MissingExtra, match=r"paretoscout\[frames\]"):
        Folder(on_threads.folder.path)


def test_other_code_does_not_mix(tmp_path: Path) -> None:
    small(tmp_path / "rows", replicates=2)
    head = tmp_path / "rows" / store.HEAD
    said = json.loads(head.read_text())
    head.write_text(json.dumps({**said, "code": "00000000"}))
    with pytest.raises(InvalidInput, match=r"same code and versions.*choose another folder"):
        small(tmp_path / "rows", replicates=2)


def test_another_problem_of_the_same_name_is_another_one(tmp_path: Path) -> None:
    one = ps.problems.gaussian([[1, 0], [0, 1]], 0.5, name="p")
    other = ps.problems.gaussian([[1, 0], [0, 2]], 0.5, name="p")
    (a,), (b,) = (cells_of(problem, "scout", {}) for problem in (one, other))
    assert a.key != b.key
    assert a.key == replace(a, label="scout, called differently").key
    assert a.key != replace(a, eps=1.0).key == replace(a, eps=1).key
    asked: dict[str, Any] = {"algorithms": "scout", "replicates": 2, "out": tmp_path / "rows"}
    ps.sweep(one, **asked)
    with pytest.raises(InvalidInput, match=r"in which scout on p is the same as now.*another one of that name"):
        ps.sweep(other, **asked)
    assert ps.sweep([one, other.replace(name="q")], **asked).complete


def test_a_sweep_that_keeps_more_gets_it(tmp_path: Path) -> None:
    """The worker has the same combination ready, which kept less."""
    ps.sweep("s5", "scout", replicates=2, out=tmp_path / "less")
    more = ps.sweep("s5", "scout", replicates=2, out=tmp_path / "more", keep=("front", "pulls", "curve"))
    assert all(sum(row["pulls"]) == row["samples"] for row in more.rows(more.cells[0]))


def test_fewer_replicates_are_the_first_ones(tmp_path: Path) -> None:
    small(tmp_path / "rows", replicates=4)
    fewer = small(tmp_path / "rows", replicates=2)
    assert numbers_of(fewer) == numbers_of(small(tmp_path / "new", replicates=2))
    assert {line.replicates for line in fewer.lines} == {2}


@pytest.mark.parametrize("damage", ["copied", "bent", "foreign"])
def test_files_that_are_not_what_was_written_are_set_aside(damage: str, tmp_path: Path) -> None:
    import pandas as pd
    import pyarrow.parquet

    part = small(tmp_path / "rows", replicates=3).folder.parts()[0]
    if damage == "copied":
        part.with_name(f"{part.stem} (copy).parquet").write_bytes(part.read_bytes())
    elif damage == "bent":
        columns = pyarrow.parquet.read_metadata(part).row_group(0).to_dict()["columns"]
        regret = next(column for column in columns if column["path_in_schema"] == "regret")
        content = bytearray(part.read_bytes())
        content[regret["dictionary_page_offset"] + regret["total_compressed_size"] - 1] ^= 16
        part.write_bytes(content)
    else:
        pd.DataFrame({"x": [1]}).to_parquet(part.with_name("x.parquet"))
    again = small(tmp_path / "rows", replicates=3)
    assert again.complete
    assert len(again.folder.set_aside) == 1
    assert "1 file in" in again.notes[0]
    assert numbers_of(again) == numbers_of(small(tmp_path / "new", replicates=3))
    assert len(pd.read_parquet(tmp_path / "rows")) == 6 * 3


def test_what_a_users_algorithm_can_run_is_known_and_the_rest_of_his_script_is_not(tmp_path: Path) -> None:
    """Another number of replicates goes on; another kernel, be it in a file that the script imports, is refused."""
    own = re.findall(
        r"^```python\n(.*?)^```", (Path(__file__).parent.parent / "docs" / "algorithms.md").read_text(), re.M | re.S
    )
    algorithm = next(block for block in own if "class FixedRounds(" in block)
    before, kernel, after = re.split(r"(@kernel\ndef done\(.*?\n\n\n)", algorithm, flags=re.S)
    script, kernels = tmp_path / "own.py", tmp_path / "mykernels.py"

    def run(replicates: int, rounds: str) -> str:
        kernels.write_text("from paretoscout.extend import kernel\n\n\n" + kernel.replace("constants.rounds", rounds))
        sweep = f'ps.sweep("s5", "fixed-rounds", replicates={replicates}, out="rows")'
        script.write_text(
            f"import paretoscout as ps\nfrom mykernels import done\n{before}{after}\nprint({sweep}.table)\n"
        )
        done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert "'500'" in run(2, "constants.rounds")
    assert "'3'" in run(3, "constants.rounds")
    assert "the code of the algorithm, was another one" in run(3, "2 * constants.rounds")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"grid": {"eps": 0.1}}, "eps in the grid of a sweep must be a list of values, got 0.1"),
        ({"grid": {"moon": [1]}}, "unknown setting in the grid of a sweep 'moon'"),
        ({"grid": {"scout.moon": [1]}}, "unknown setting of scout in the grid of a sweep 'moon'"),
        ({"grid": {"delta": [2.0]}}, "delta of .* must be"),
        ({"replicates": 0}, "replicates of a sweep must be"),
        ({"engine": "gpu"}, "engine must be 'threads', 'processes'"),
        ({"engine": "threads://here"}, "engine must be"),
        ({"engine": "dask://127.0.0.1:1", "workers": 2}, "the cluster has its own"),
        ({"keep": ["moon"]}, "unknown part of a replicate to keep"),
        ({"keep": "front"}, "keep of a sweep must be a list of names, got 'front'"),
        ({"grid": ["eps"]}, "grid of a sweep must have lists of values by name"),
        ({"grid": {1: [2]}}, "grid of a sweep must have lists of values by name"),
        ({"grid": {"eps": np.array([[0.1]])}}, "eps in the grid of a sweep must be a list of values"),
        ({"workers": "two"}, "workers of engine 'threads' must be"),
        ({"algorithms": {"scout": {"regret_weight": 0.5}}}, "settings are written like 'scout:regret_weight=0.5'"),
        ({"algorithms": 5}, "algorithms of a sweep must be one or a list"),
        ({"problems": 3}, "problems of a sweep must be one or a list"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(wrong: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises((InvalidInput, UnknownName), match=message):
        small(tmp_path / "rows", **wrong)
    assert not (tmp_path / "rows").exists()


def test_problems_and_algorithms_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="algorithms of a sweep must differ, got 'scout' twice"):
        ps.sweep("s5", ["scout", Scout()], out=tmp_path / "rows")
    with pytest.raises(InvalidInput, match="names of the problems of a sweep must differ"):
        ps.sweep(["s5", "s5"], "scout", out=tmp_path / "rows")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="must be a new folder"):
        ps.sweep("s5", "scout", out=tmp_path / "full")
    with pytest.raises(InvalidInput, match="out of a sweep must be a folder, got the file"):
        ps.sweep("s5", "scout", out=tmp_path / "full" / "thesis.txt")
    with pytest.raises(InvalidInput, match="out of a sweep must be a folder, got 5"):
        ps.sweep("s5", "scout", out=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="an algorithm that can be run, but:"):
        ps.sweep("s5", "ege-sr", replicates=1, out=tmp_path / "rows")


def test_one_sweep_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    cells = cells_of("s5", "scout", {})
    with (
        Folder(tmp_path / "rows").writing(cells),
        pytest.raises(InvalidInput, match="no other sweep writes to"),
        Folder(tmp_path / "rows").writing(cells),
    ):
        pass


def test_a_sweep_that_was_killed_before_its_first_row_goes_on(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / store.LOCK).write_bytes(b"")
    (tmp_path / "rows" / f".{store.HEAD}{store.UNFINISHED}").write_bytes(b"{")
    assert small(tmp_path / "rows", replicates=1).complete


def test_a_folder_that_another_sweep_took_meanwhile(tmp_path: Path) -> None:
    """Both found it empty; what the first one wrote is seen by the second."""
    first, second = Folder(tmp_path / "rows"), Folder(tmp_path / "rows")
    cells = cells_of("s5", "scout", {})
    with first.writing(cells):
        first.append(cells[0], [{"replicate": 3, "seconds": 0.0}])
    with second.writing(cells):
        assert second.numbers(cells[0]) == {3}
    with pytest.raises(InvalidInput, match="choose another folder"), second.writing([Counted()]):
        pass


def test_a_disk_that_is_full_is_said_and_leaves_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    small(tmp_path / "rows", replicates=1)
    before = sorted(path.name for path in (tmp_path / "rows").iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"No space left on device: '.*parquet'"):
            small(tmp_path / "rows", replicates=2)
    assert sorted(path.name for path in (tmp_path / "rows").iterdir()) == before
    assert small(tmp_path / "rows", replicates=2).complete


def test_settings_of_any_kind_stand_in_the_grid(tmp_path: Path) -> None:
    problem = ps.problems.linear(np.eye(3), [[1, 0], [0, 1], [0, 0]], 0.1).replace(name="linear")
    grid = {"scout.misfit": [0.1, (0.1, 0.2)], "eps": [0.1, (0.1, 0.2)]}
    done = ps.sweep(problem, "scout:model=robust", grid=grid, replicates=1, out=tmp_path / "rows")
    assert done.complete
    assert {line.point["scout.misfit"] for line in done.lines} == {0.1, "[0.1, 0.2]"}


def test_an_algorithm_that_breaks_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(number: int, _: Report) -> Any:
        return {"value": 1 // (number - 5), "ended": "answer", "seconds": 0.0}

    monkeypatch.setattr(Counted, "start", lambda _: broken)
    schedule._ready.clear()
    kept = Memory()
    with opened("threads:1") as engine, pytest.raises(ZeroDivisionError) as caught:
        list(play([(Counted(), Plan(40))], kept, engine, Progress(False, 1, "")))
    schedule._ready.clear()
    assert caught.value.__notes__ == ["in replicate 5 of {'what': 'counted'}"]


# Cells of one's own


@dataclass(frozen=True)
class Counted(Cell):
    """Replicate number n gives n; those of `slow` take long, those of `deadly` end their process, once."""

    slow: tuple[int, ...] = ()
    deadly: str = ""

    OUTCOME: ClassVar[dict[str, str]] = {"value": "whole", "ended": "text"}

    @property
    def columns(self) -> dict[str, Any]:
        return {"what": "counted"}

    def start(self) -> Play:
        def played(number: int, report: Report) -> dict[str, Any] | None:
            began = time.thread_time()
            if self.deadly and number == 7 and not Path(self.deadly).exists():
                Path(self.deadly).write_text("died")
                os.kill(os.getpid(), signal.SIGKILL)
            ended = "answer"
            while number in self.slow and ended != TIME:
                np.sort(np.arange(10_000.0)[::-1])
                ended = ended if report(1) else TIME
            return {"value": number, "ended": ended, "seconds": time.thread_time() - began}

        return played


def played(cell: Cell, plan: Plan, engine: str = "threads") -> list[dict[str, Any]]:
    kept = Memory()
    with opened(engine, None) as where:
        assert [(cell, "")] == list(play([(cell, plan)], kept, where, Progress(False, 1, "")))
    return kept.rows(cell)


def test_a_chunk_whose_worker_died_is_run_again(tmp_path: Path) -> None:
    rows = played(Counted(deadly=str(tmp_path / "died")), Plan(20), "processes:2")
    assert (tmp_path / "died").exists()
    assert [row["value"] for row in rows] == list(range(20))


class Deadly(Threads):
    """An engine whose workers always die."""

    def lost(self, problem: BaseException) -> bool:
        return True


def test_workers_that_always_die_end_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: Any) -> Any:
        raise OSError

    monkeypatch.setattr(schedule, "work", dies)
    engine: Engine = Deadly(1)
    with pytest.raises(EngineUnavailable, match="workers died 3 times while they played replicates 0 to 1 of"):
        list(play([(Counted(), Plan(4))], Memory(), engine, Progress(False, 1, "")))
    engine.close()


def test_nobody_waits_for_ever_for_one_who_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(schedule, "COMPILING_SECONDS", 0.2)
    cell = Counted(slow=(99,))
    with schedule._first_to_compile(cell.code):
        assert [row["value"] for row in work(cell, [0, 1], 9.0, 9.0).rows] == [0, 1]


def test_threads_find_out_at_the_same_time_which_code_they_run() -> None:
    """Python 3.11 breaks where a thread goes on while another one parses: here whenever garbage is collected."""

    def let_others_go_on(*_: Any) -> None:
        time.sleep(0)

    gc.callbacks.append(let_others_go_on)
    try:
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda _: reachable("checks"), range(8)))
    finally:
        gc.callbacks.remove(let_others_go_on)
    assert all(each == found[0] for each in found)


def test_workers_with_other_code_are_refused() -> None:
    with pytest.raises(EngineUnavailable, match="same code and versions"):
        work(Counted(), [0], 1.0, 1.0, "00000000")


def test_looks_are_at_the_first_so_many_by_number() -> None:
    """Slow replicates come last, but no look happens without them: what is fast is not taken for what is first."""
    seen: list[list[int]] = []

    def enough(rows: Sequence[Mapping[str, Any]]) -> bool:
        seen.append([row["replicate"] for row in rows])
        return len(rows) >= 8

    rows = played(Counted(), Plan(20, looks=(4, 8, 16), enough=enough), "threads:4")
    assert seen == [[0, 1, 2, 3], [0, 1, 2, 3, 4, 5, 6, 7]]
    assert len(rows) == 8


def test_a_cell_whose_time_is_over_ends() -> None:
    rows = played(Counted(slow=(3,)), Plan(20, seconds=0.2), "threads:2")
    assert [row["ended"] for row in rows] == ["answer", "answer", "answer", TIME]
    # the first three however long they take, but not for ever
    rows = played(Counted(slow=(0,)), Plan(20, seconds=0.0, least=1, patience=0.3), "threads:2")
    assert [row["ended"] for row in rows] == [TIME]


def test_first_numbers_change_no_row() -> None:
    assert [row["value"] for row in played(Counted(), Plan(6, first=(4, 2)))] == list(range(6))
    assert Plan(6, first=(4, 2)).numbers() == [4, 2, 0, 1, 3, 5]


def test_rows_of_runs_that_had_no_time() -> None:
    endless = ps.problems.gaussian(np.zeros((3, 2)), 1.0)
    cell = RunCell(endless, "multi-pfi", ps.algorithms.get("multi-pfi").settings(), eps=0.0, max_samples=10**12)
    (row,) = played(cell, Plan(5, seconds=0.2))
    assert (row["ended"], row["success"], row["stopped"]) == (TIME, False, False)
    assert row["samples"] > 0


def test_many_replicates_do_not_live_in_memory(tmp_path: Path) -> None:
    """Where nobody needs them, rows are kept in the folder alone."""
    most = 0

    class Watched(Folder):
        def append(self, cell: Cell, rows: Sequence[dict[str, Any]]) -> None:
            nonlocal most
            most = max(most, len(rows))
            super().append(cell, rows)

    folder = Watched(tmp_path / "rows")
    cells: list[Cell] = [Counted()]
    with opened("threads:2") as engine, folder.writing(cells):
        assert list(play([(cells[0], Plan(20_000))], folder, engine, Progress(False, 1, "")))
    assert most <= schedule.MOST_IN_CHUNK
    assert len(folder.numbers(cells[0])) == 20_000


GROWS = """
import sys
from pathlib import Path
import psutil
import paretoscout as ps
for name, n in (("warm", 3_000), ("many", 20_000)):
    before = psutil.Process().memory_info().rss
    ps.sweep("s5", "scout", grid={"eps": [0.2]}, replicates=n, out=Path(sys.argv[1]) / name, progress=False)
print((psutil.Process().memory_info().rss - before) / n)
"""


def test_no_replicate_leaves_anything_in_memory(tmp_path: Path) -> None:
    """A replicate with random generators of its own left 5.4 kB: compiled code never lets go of one."""
    told = subprocess.run([sys.executable, "-c", GROWS, str(tmp_path)], capture_output=True, text=True, check=True)
    assert float(told.stdout) < 1000.0


# The command


SWEEP = """
problems: [s5, {csv: runs.csv, arm: variant, metrics: {ms: min, mb: {direction: min, eps: 1}}}]
algorithms: [scout, "uniform:sigma=0.3"]
grid: {delta: [0.1, 0.05]}
replicates: 3
out: rows
"""


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"small,{40 + n * 7 % 17},5\nlarge,{20 + n * 5 % 17},9\n" for n in range(30))
    (tmp_path / "runs.csv").write_text(f"variant,ms,mb\n{rows}")
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    return tmp_path / "sweep.yaml"


def test_a_sweep_in_a_file(described: Path) -> None:
    done = CliRunner().invoke(main, ["sweep", "sweep.yaml"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "uniform sigma=0.3" in done.output
    assert "failures (95% interval)" in done.output
    again = CliRunner().invoke(main, ["sweep", "sweep.yaml", "--json", "--replicates", "2"], catch_exceptions=False)
    lines = json.loads(again.stdout)
    assert len(lines) == 8
    assert {(line["problem"], line["point"]["delta"]) for line in lines} == {
        (problem, delta) for problem in ("s5", "runs") for delta in (0.1, 0.05)
    }


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("replicates: 3", "replicatse: 3"), "did you mean 'replicates'"),
        (('algorithms: [scout, "uniform:sigma=0.3"]', ""), "must have algorithms, got none"),
        (("out: rows", ""), "must have out"),
        (("csv: runs.csv", "csv: runs.csv, load: s5"), "must have load"),
        (("[s5,", "[s6,"), "unknown problem 's6'"),
        (("problems:", "problems: ]"), "must be a YAML file"),
    ],
)
def test_a_file_that_is_wrong(described: Path, edit: tuple[str, str], message: str) -> None:
    described.write_text(SWEEP.replace(*edit))
    done = CliRunner().invoke(main, ["sweep", "sweep.yaml"])
    assert done.exit_code == 2, done.output
    assert message in done.output
    assert not Path("rows").exists()


# Clusters


def test_a_dask_cluster_gives_the_same_rows_also_when_a_worker_is_killed(on_threads: ps.Sweep, tmp_path: Path) -> None:
    """Two worker processes; one is killed as soon as rows are there, and another takes over."""
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    with cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        rows = tmp_path / "rows"

        def kill() -> None:
            wait_for("the first rows", lambda: list(rows.glob("*.parquet")))
            os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        done = small(rows, engine=address, keep=("front", "pulls", "curve"))
        killer.join()
        assert numbers_of(done) == numbers_of(on_threads)

        lost = Lost(str(tmp_path / "lost"))
        study = ps.Study(["a", "b", "c"], {"x": "max"}, sigma=0.1, storage="memory")
        assert study.run(lost, engine=address).front == ("c",)
        assert Path(lost.file).exists()
        assert study.standing().counts["lapsed"] == 0, "the scheduler had it made again"


def measured(arm: str) -> dict[str, float]:
    return {"x": {"a": 0.0, "b": 0.5, "c": 1.0}[arm]}


@dataclass(frozen=True)
class Lost:
    """Measures noise, slowly where it is bad; the first measurement of one option ends its process."""

    file: str

    def __call__(self, arm: str) -> dict[str, float]:
        if arm == "b" and not Path(self.file).exists():
            Path(self.file).write_text("died")
            os.kill(os.getpid(), signal.SIGKILL)
        with open(f"{self.file}.calls", "ab") as calls:
            calls.write(b"x")
            noise = float(np.random.default_rng(calls.tell()).normal(0.0, 0.1))
        time.sleep(0.0 if noise > 0.0 else 0.02)
        return {"x": measured(arm)["x"] + noise}


def run_on_processes(study: Any, folder: Path) -> None:
    """Run it; outcomes come in any order, and measurements are lost."""
    told: list[int] = []
    lost = Lost(str(folder / "lost"))
    standing = study.run(lost, engine="processes:2", callback=lambda _, trial, __: told.append(trial.number))
    assert Path(lost.file).exists()
    assert standing.done
    assert standing.front == ("c",)
    heard = study.asked_and_told().values()
    lost_trials = sum(each.void for each in heard)
    assert 1 <= lost_trials <= 2, "the one that died, and another one that was under way in the same pool"
    assert len(told) == len(set(told)) == sum(each.told for each in heard)
    assert sum(each.asked for each in heard) == len(told) + lost_trials
    assert not any(each.open for each in heard)


def test_measurements_in_processes_of_which_one_dies(postgres: str, tmp_path: Path) -> None:
    """Whoever follows the log afterwards, event by event, takes the same decisions: outcomes count in the order of asking."""
    study = ps.Study(["a", "b", "c"], {"x": "max"}, sigma=0.1, storage=postgres, name="lost")
    run_on_processes(study, tmp_path)
    assert ps.Study.load("lost", postgres).standing().as_dict() == study.standing().as_dict()


@pytest.mark.long
def test_measurements_in_processes_for_a_study_on_a_server(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    from servers import Clients, served

    clients = Clients()
    with served(f"sqlite:///{tmp_path / 'service.db'}") as server:
        study = clients.connect(server.url).create("lost", ["a", "b", "c"], {"x": "max"}, sigma=0.1)
        run_on_processes(study, tmp_path)
        clients.close()


@pytest.mark.long
def test_a_ray_cluster_gives_the_same_rows_also_when_a_worker_is_killed(
    on_threads: ps.Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real Ray on this machine; one of its two workers is killed as soon as rows are there."""
    pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)  # workers import `measured`
    from benchmarks.engines import kill_one

    rows, killed, over = tmp_path / "rows", list[int](), threading.Event()
    killer = threading.Thread(target=kill_one, args=("ray", rows, killed, over))
    killer.start()
    done = small(rows, engine="ray:2", keep=("front", "pulls", "curve"))
    over.set()
    killer.join()
    assert killed
    assert numbers_of(done) == numbers_of(on_threads)
    study = ps.Study(["a", "b", "c"], {"x": "max"}, sigma=0.1, storage="memory")
    assert study.run(measured, engine="ray:2").front == ("c",)


def test_the_estimate_goes_by_what_cells_take_not_by_how_many_replicates_are_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schedule, "time", SimpleNamespace(monotonic=lambda: 26.0))
    cell = Cell()
    slow = schedule.Playing(cell, Plan(100), 0, spent=50.0, timed=50, finished=50)
    quick = schedule.Playing(cell, Plan(1000), 1, spent=2.0, timed=20, finished=20)
    limited = schedule.Playing(cell, Plan(100, seconds=60.0), 2, spent=50.0, timed=50, finished=50)
    pace = schedule.Pace(4)
    assert pace.seconds_left() is None
    pace.began, pace.work, pace.open, pace.unopened = 0.0, 51.0, [slow, quick], 1  # two workers
    pace.add(quick, [{"seconds": 1.0}])
    pace.end(quick)  # it ended early
    assert pace.seconds_left() == 50.75  # 50 of the slow one, 51.5 of the one that is not open yet, by two
    assert limited.ahead == 10.0


@pytest.mark.long
def test_a_ray_cluster_that_is_there_gives_the_same_rows(
    on_threads: ps.Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its address: it has processes of its own, which this one did not start, and goes on afterwards."""
    pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    port, client = free_port(), free_port()
    start = ["start", "--head", "--block", "--node-ip-address=127.0.0.1", f"--port={port}", "--include-dashboard=false"]
    ray = Path(sys.executable).with_name("ray")
    # not in tmp_path, whose name is too long for Ray's sockets
    with (
        tempfile.TemporaryDirectory(prefix="ray") as home,
        subprocess.Popen(
            [ray, *start, f"--ray-client-server-port={client}", "--num-cpus=2", f"--temp-dir={home}"],
            start_new_session=True,
            env=os.environ | {"RAY_AUTH_MODE": "disabled"},  # takes clients with a token and without
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as head,
    ):
        try:
            wait_for("the server of clients, or the end", lambda: answers(client) or head.poll() is not None)
            assert head.poll() is None
            address = f"ray://127.0.0.1:{client}"
            done = small(tmp_path / "rows", engine=address, keep=("front", "pulls", "curve"))
            assert numbers_of(done) == numbers_of(on_threads)
            for _ in range(2):
                study = ps.Study(["a", "b", "c"], {"x": "max"}, sigma=0.1, storage="memory")
                assert study.run(measured, engine=address).front == ("c",)
            assert head.poll() is None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(head.pid, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
    return port


def answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def dies(arm: str) -> dict[str, float]:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def test_measurements_whose_workers_always_die_end_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from paretoscout.study import loop

    monkeypatch.setattr(loop, "MOST_LOST", 2)
    study = ps.Study(["a", "b"], {"x": "max"}, sigma=0.1, storage="memory")
    with pytest.raises(EngineUnavailable, match="nothing but lost measurements"):
        study.run(dies, engine="processes:1")
    assert not study.standing().open
