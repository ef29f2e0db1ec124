"""The program that measures the llvm-passes data set: restarting, covering, exporting; and a real run where LLVM is."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[1] / "tools" / "llvm_passes"
LLVM = Path("/usr/lib/llvm-19/bin")

if not (TOOLS / "measure.py").exists():
    pytest.skip("the measuring program is not part of a source distribution", allow_module_level=True)


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"llvm_passes_{name}", TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


measure = load("measure")

# opt "optimises" by writing its pipeline down; the linked program is a script that prints what it always prints.
FAKE = {
    "clang": 'case "$*" in *-static*) printf "#!/bin/sh\\necho sum\\n" > "$out"; chmod +x "$out";; *) echo bitcode > "$out";; esac',
    "llvm-link": 'echo module > "$out"',
    "opt": 'case "$*" in *--version*) echo "LLVM version 1.2.3";; *-disable-output*) ;; *) echo "$*" > "$out";; esac',
    "llc": 'echo code > "$out"',
    "llvm-size": 'echo "section size addr"; echo ".text 321 0"',
}
FIND_OUT = 'out=/dev/null; last=; for word in "$@"; do [ "$last" = -o ] && out=$word; last=$word; done\n'


@pytest.fixture
def fake_llvm(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in FAKE.items():
        (folder / name).write_text("#!/bin/sh\n" + FIND_OUT + script + "\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def step(tmp_path: Path, fake_llvm: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs a step on three configurations and two rounds; noise of this machine is not the point here."""
    for name, value in {"TOLERANCE": 1e9, "CALIBRATION": 3, "EMPTY_RUNS": 3}.items():
        monkeypatch.setattr(measure, name, value)
    common = [
        "--work",
        str(tmp_path / "work"),
        "--llvm",
        str(fake_llvm),
        "--configurations",
        "0,3,1023",
        "--rounds",
        "2",
    ]
    return lambda name, *more: measure.main([name, *common, *more])


def lines(path: Path) -> list[list[int]]:
    return [[int(cell) for cell in line.split(",")] for line in path.read_text().splitlines()]


def samples(configurations: list[int], rounds: int) -> list[Any]:
    return [
        measure.Sample(r, c, 1000 * c + r, 500 + r, 60000 + r, 1, 290, 1) for r in range(rounds) for c in configurations
    ]


def test_the_pipeline_of_a_configuration() -> None:
    assert measure.pipeline(0) == ""
    assert measure.pipeline(1) == "cgscc(inline)"
    assert measure.pipeline(1 << measure.PASSES.index("gvn")) == "function(gvn)"
    everything = measure.pipeline(1023)
    assert [everything.count(name) for name in ("cgscc(", "function(")] == [1, 1]
    assert all(name in everything for name in measure.PASSES)
    assert len({measure.pipeline(c) for c in range(1024)}) == 1024


def test_every_round_is_a_permutation_of_its_own() -> None:
    rounds = [measure.order(range(1024), r, seed=1) for r in range(20)]
    assert all(sorted(mine) == list(range(1024)) for mine in rounds)
    assert len({tuple(mine) for mine in rounds}) == 20
    assert rounds[3] == measure.order(range(1024), 3, seed=1)
    assert rounds[3] != measure.order(range(1024), 3, seed=2)


def test_all_steps_with_a_fake_llvm(step: Callable[..., int], tmp_path: Path) -> None:
    assert [step(name) for name in ("prepare", "build", "run")] == [0, 0, 0]
    out = tmp_path / "out"
    out.mkdir()
    assert step("export", "--out", str(out)) == 0
    rows = list(csv.DictReader(io.StringIO(gzip.decompress((out / "llvm_passes.csv.gz").read_bytes()).decode())))
    assert [[row[name] for name in measure.PASSES] for row in rows] == [["0"] * 10, ["1", "1"] + ["0"] * 8, ["1"] * 10]
    assert {row["text_bytes"] for row in rows} == {"321"}
    facts = json.loads((out / "llvm_passes.json").read_text())
    assert facts["llvm"] == "1.2.3"
    assert facts["quietness"]["samples"] == 6
    assert len(facts["rounds"]) == 2
    assert str(tmp_path) not in json.dumps(facts)


def test_a_run_that_was_killed_goes_on(step: Callable[..., int], tmp_path: Path) -> None:
    assert [step(name) for name in ("prepare", "build", "run")] == [0, 0, 0]
    journal = tmp_path / "work" / "journal.csv"
    whole = journal.read_bytes()
    before = lines(journal)
    for length in (0, 5, whole.index(b"\n") + 1, len(whole) // 2, len(whole) - 1):
        journal.write_bytes(whole[:length])  # the last line may be torn
        kept = whole[:length].count(b"\n")
        assert step("run") == 0
        after = lines(journal)
        assert after[:kept] == before[:kept]
        assert [line[:2] for line in after] == [line[:2] for line in before]  # none lost, none twice, same order
    assert step("run") == 0
    assert len(lines(journal)) == 6


def test_an_interrupted_campaign_measures_each_sample_once(tmp_path: Path) -> None:
    taken: Counter[int] = Counter()
    calls: list[int] = []
    said: list[str] = []

    def take(configuration: int) -> tuple[int, ...]:
        calls.append(configuration)
        if len(calls) == 8:
            raise KeyboardInterrupt
        taken[configuration] += 1
        return 1, 2, 3, 1, 290, 1

    journal = measure.Journal(tmp_path / "journal.csv")
    with pytest.raises(KeyboardInterrupt):
        measure.campaign(journal, range(5), 4, 1, take, said.append)
    with pytest.raises(measure.Failed, match="another run"):
        measure.Journal(tmp_path / "journal.csv")
    journal.close()
    journal = measure.Journal(tmp_path / "journal.csv")
    assert len(journal.samples) == 7
    measure.campaign(journal, range(5), 4, 1, take, said.append)
    journal.close()
    assert [taken[c] for c in range(5)] == [4] * 5
    assert "0 samples" in said[-1]


def test_export_is_the_same_each_time_and_wants_every_round(tmp_path: Path) -> None:
    sizes = {0: 10, 5: 20}
    text = measure.table(samples([0, 5], 3), sizes, 3)
    assert text == measure.table(samples([5, 0], 3)[::-1], sizes, 3)
    header, first, second = list(csv.reader(io.StringIO(text)))
    assert header[-6:] == [f"{kind}_us_{i:02d}" for kind in ("optimise", "run") for i in (1, 2, 3)]
    assert first[10:] == ["10", "60001", "0", "0", "1", "2", "500", "501", "502"]
    assert second[:3] == ["1", "0", "1"]
    loud = [replace(sample, quiet=int(sample.round == 1)) for sample in samples([0, 5], 3)]
    assert [row[12] for row in csv.reader(io.StringIO(measure.table(loud, sizes, 3)))] == ["not_quiet", "5", "5"]
    with pytest.raises(measure.Failed, match="1 configurations have not all 3 rounds"):
        measure.table(samples([0, 5], 3)[:-1], sizes, 3)
    assert gzip.compress(text.encode(), 9, mtime=0) == gzip.compress(text.encode(), 9, mtime=0)


def test_the_time_of_a_killed_run_counts_too() -> None:
    starts = [{"start": f"2026-01-01T{clock}Z"} for clock in ("23:00", "23:40")]
    assert measure.minutes([starts[0], {"minutes": 30.5}]) == 30.5
    assert measure.minutes([*starts, {"minutes": 5}]) == 45  # the first was killed


def test_loud_takes_are_repeated_and_the_quietest_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "PAUSE", 0)

    def play(spins: list[int], most_takes: int = measure.MOST_TAKES) -> tuple[int, ...]:
        left = iter(spins)
        count = iter(range(10))
        monkeypatch.setattr(measure, "spin", lambda: next(left) * 1000)

        def take(between: Callable[[], None]) -> tuple[int, int, int]:
            between()
            return next(count), 0, 0

        kept: tuple[int, ...] = measure.take_quietly(100_000, take, most_takes)
        assert next(left, None) is None
        return kept

    assert play([100, 101, 107]) == (0, 0, 0, 1, 107, 1)
    assert play([100, 100, 109, 100, 100, 100]) == (1, 0, 0, 2, 100, 1)
    assert play([100, 130, 100, 120, 100, 100, 140, 100, 100, 100, 100, 125]) == (1, 0, 0, 4, 120, 0)
    assert play([100, 130, 100], 1) == (0, 0, 0, 1, 130, 0)  # taken once, and marked


def test_what_goes_wrong_is_said(
    step: Callable[..., int], tmp_path: Path, fake_llvm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "work"
    assert [step(name) for name in ("prepare", "build")] == [0, 0]
    assert step("export", "--out", str(tmp_path)) == 1
    assert "3 configurations have not all 2 rounds" in capsys.readouterr().err
    assert not list(tmp_path.glob("llvm_passes.*"))

    (work / "module.bc").write_text("another")
    assert step("run") == 1
    assert "run build again" in capsys.readouterr().err

    assert [step(name) for name in ("prepare", "build")] == [0, 0]
    program = next((work / "programs").iterdir())
    program.write_text("#!/bin/sh\necho other\n")
    assert step("run") == 1
    assert "printed 'other' instead of 'sum'" in capsys.readouterr().err

    (fake_llvm / "llc").write_text("#!/bin/sh\necho no such target >&2\nexit 3\n")
    (work / "builds.json").unlink()
    assert step("build") == 1
    assert "ended with 3:\nno such target" in capsys.readouterr().err

    (fake_llvm / "llc").unlink()
    assert step("build") == 1
    assert "llc is not in" in capsys.readouterr().err
    assert measure.main(["build", "--work", str(work), "--configurations", "1024"]) == 1
    assert "from 0 to 1023" in capsys.readouterr().err


def test_programs_that_differ_are_named(
    step: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert step("prepare") == 0
    odd = {0: "sum", 3: "sum", 1023: "other"}
    monkeypatch.setattr(measure, "build_one", lambda place, c: {"program": "p", "text_bytes": 1, "checksum": odd[c]})
    assert step("build") == 1
    assert "something else than the others: 1023" in capsys.readouterr().err


@pytest.mark.skipif(not (LLVM / "opt").exists(), reason="LLVM 19 is not installed")
def test_two_configurations_with_the_real_llvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Two programs are enough to see that the pipeline is one, and that the passes help.
    monkeypatch.setattr(measure, "VARIANTS", (("matrix", "float", 40, 30), ("image", "int32_t", 48, 30)))
    for name, value in {"TOLERANCE": 1e9, "CALIBRATION": 3, "EMPTY_RUNS": 3}.items():
        monkeypatch.setattr(measure, name, value)
    common = ["--work", str(tmp_path / "work"), "--configurations", "0,1023", "--rounds", "3"]
    out = tmp_path / "out"
    out.mkdir()
    for name in ("prepare", "build", "run", "export"):
        assert measure.main([name, *common, "--out", str(out)]) == 0
    none, everything = csv.DictReader(io.StringIO(gzip.decompress((out / "llvm_passes.csv.gz").read_bytes()).decode()))
    fastest = {
        kind: [min(int(row[f"{kind}_us_{i:02d}"]) for i in (1, 2, 3)) for row in (none, everything)]
        for kind in ("optimise", "run")
    }
    assert fastest["optimise"][0] < fastest["optimise"][1]
    assert fastest["run"][0] > fastest["run"][1]
    assert int(none["text_bytes"]) > 0
    assert json.loads((out / "llvm_passes.json").read_text())["llvm"].startswith("19.")
