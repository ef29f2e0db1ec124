"""Data sets: their cards, finding and fetching them, and what is made of them."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import paretoscout as ps
from paretoscout.audit import families
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput, MissingData, MissingExtra, UnknownName, UnreadableFile
from paretoscout.problems import DATASETS, Dataset, catalogue, datasets
from paretoscout.statement import Blocks

DATA = Path(os.environ.get("PARETOSCOUT_DATA") or datasets.DEFAULT_FOLDER)
NOC = b"width;complexity;fifo;multiplier;energy;inv_runtime\n3;1;4;1;7.5;4.25\n3;1;1;1;7;4\n4;0;2;20;8;4\n"
NOC_TABLE = NOC.replace(b";", b",")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def publish(root: Path, dataset: Dataset, contents: dict[str, bytes], table: bytes) -> Dataset:
    """The data set as it would be, had upstream these files; they are where a mirror has them."""
    everything = b"".join(contents.values())
    upstream = replace(
        dataset.upstream, paths=tuple(contents), bytes=len(everything), sha256=hashlib.sha256(everything).hexdigest()
    )
    for path, content in contents.items():
        file = root / upstream.repository / upstream.commit / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return replace(dataset, upstream=upstream, checksums=(sha256(table),))


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without data sets: `data` is its PARETOSCOUT_DATA, `cache` holds what is fetched."""
    monkeypatch.setenv("PARETOSCOUT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path


@pytest.fixture
def mirror(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of the files in `upstream`, on loopback."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (nowhere / "upstream").mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(nowhere / "upstream"))) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def small_noc(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """NoC with three designs, published in `upstream`."""
    small = publish(nowhere / "upstream", DATASETS["noc"], {"data/noc.csv": NOC}, NOC_TABLE)
    monkeypatch.setitem(DATASETS, "noc", small)
    return small


def test_cards_are_complete() -> None:
    for name, card in DATASETS.items():
        assert card.name == name
        assert card.about == ps.problems.available()[name]
        assert card.about.endswith(".")
        assert card.notes.endswith(".")
        assert all(metric.eps for metric in card.metrics)
        for digest in (card.upstream.sha256, *card.checksums):
            assert len(bytes.fromhex(digest)) == 32
        assert len(bytes.fromhex(card.upstream.commit)) == 20
        assert card.upstream.url().startswith(f"{datasets.RAW}/{card.upstream.repository}/{card.upstream.commit}/")
        assert len(set(card.upstream.paths)) == len(card.upstream.paths)
        assert json.dumps(card.as_dict(), allow_nan=False)
    with pytest.raises(UnknownName, match="unknown data set 'nok'; did you mean 'noc'"):
        ps.problems.card("nok")


# ---- finding and fetching


@pytest.mark.parametrize("name", DATASETS)
def test_what_is_missing_says_what_to_do(nowhere: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dataset, "_download", lambda *_: pytest.fail("nobody asked for a download"))
    with pytest.raises(MissingData) as caught:
        ps.problems.load(name)
    card = DATASETS[name]
    for part in (f"paretoscout datasets fetch {name} ", card.upstream.url(), "set PARETOSCOUT_DATA", card.table):
        assert part in str(caught.value)
    assert str(nowhere / "data" / card.table) in str(caught.value)
    assert str(nowhere / "cache" / card.table) in str(caught.value)
    done = run("demo", name)
    assert done.exit_code == 2
    assert f"paretoscout datasets fetch {name} " in done.output


def test_fetched_then_loaded(nowhere: Path, mirror: str, small_noc: Dataset) -> None:
    path = ps.problems.fetch("noc", mirror)
    assert path == nowhere / "cache" / "noc" / "noc.csv"
    assert path.read_bytes() == NOC_TABLE
    assert [file.name for file in path.parent.iterdir()] == ["noc.csv"]  # no downloads left behind
    problem = ps.problems.load("noc")
    np.testing.assert_array_equal(problem.means, [[7.5, 4.25], [7, 4], [8, 4]])
    np.testing.assert_array_equal(problem.contexts, [[3, 1, 4, 1], [3, 1, 1, 1], [4, 0, 2, 20]])
    np.testing.assert_allclose(problem.sigma[0], 0.1 * problem.means.std(axis=0))
    assert problem.about == small_noc.about
    assert ps.problems.fetch("noc", mirror + "/") == path  # again, over the old one


def test_the_data_folder_comes_first(nowhere: Path, mirror: str, small_noc: Dataset) -> None:
    ps.problems.fetch("noc", mirror)
    own = nowhere / "data" / "noc" / "noc.csv"
    assert small_noc.here() == nowhere / "cache" / "noc" / "noc.csv"
    own.parent.mkdir(parents=True)
    own.write_bytes(NOC_TABLE)
    assert small_noc.here() == own


def test_the_default_data_folder(nowhere: Path, monkeypatch: pytest.MonkeyPatch, small_noc: Dataset) -> None:
    monkeypatch.delenv("PARETOSCOUT_DATA")
    (nowhere / "work").mkdir()
    monkeypatch.chdir(nowhere / "work")
    (nowhere / "shared" / "data" / "noc").mkdir(parents=True)
    (nowhere / "shared" / "data" / "noc" / "noc.csv").write_bytes(NOC_TABLE)
    assert len(ps.problems.load("noc").arms) == 3


@pytest.mark.parametrize("content", [NOC[:-9], NOC.replace(b"7.5", b"7.6"), b""], ids=["cut short", "changed", "empty"])
def test_another_file_at_the_source_is_refused(nowhere: Path, mirror: str, small_noc: Dataset, content: bytes) -> None:
    up = small_noc.upstream
    (nowhere / "upstream" / up.repository / up.commit / "data" / "noc.csv").write_bytes(content)
    with pytest.raises(UnreadableFile, match="is not what was pinned") as caught:
        ps.problems.fetch("noc", mirror)
    assert up.sha256 in str(caught.value)
    assert sha256(content) in str(caught.value)
    assert small_noc.here() is None
    assert list((nowhere / "cache" / "noc").iterdir()) == []


def test_a_source_that_is_gone(nowhere: Path, mirror: str, small_noc: Dataset) -> None:
    up = small_noc.upstream
    (nowhere / "upstream" / up.repository / up.commit / "data" / "noc.csv").unlink()
    with pytest.raises(MissingData, match=r"could not fetch http://127.*data/noc.csv \(data set 'noc'\): 404"):
        ps.problems.fetch("noc", mirror)


@pytest.mark.parametrize("content", [NOC_TABLE[:-9], NOC_TABLE.replace(b"7.5", b"7.6"), b"a,b\n1,2\n", b"\xff"])
def test_another_table_is_refused(nowhere: Path, small_noc: Dataset, content: bytes) -> None:
    own = nowhere / "data" / "noc" / "noc.csv"
    own.parent.mkdir(parents=True)
    own.write_bytes(content)
    with pytest.raises(UnreadableFile) as caught:
        ps.problems.load("noc")
    for part in (str(own), "data set 'noc'", small_noc.checksums[0], sha256(content), "paretoscout datasets fetch noc"):
        assert part in str(caught.value)
    own.unlink()
    own.mkdir()
    with pytest.raises(UnreadableFile, match=r"noc.csv \(data set 'noc'\) must be a file"):
        ps.problems.load("noc")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"width;energy\n1;2;3\n", "row 1 of noc.csv must have 2 fields, got 3"),
        (NOC.replace(b"energy", b"power"), "unknown column 'energy'"),
        (NOC.replace(b"7.5", b"low"), "columns energy, inv_runtime must hold numbers"),
        (NOC.replace(b"7.5", b"nan"), "means of problem 'noc' must be finite"),
    ],
)
def test_wrong_columns(
    nowhere: Path, mirror: str, monkeypatch: pytest.MonkeyPatch, content: bytes, message: str
) -> None:
    """Even with the pinned checksum."""
    table = content.replace(b";", b",")
    card = publish(nowhere / "upstream", DATASETS["noc"], {"data/noc.csv": content}, table)
    monkeypatch.setitem(DATASETS, "noc", card)

    def fetched_and_read() -> None:  # either may notice
        card.fetch(mirror)
        card.problem()

    with pytest.raises((InvalidInput, UnknownName), match=message):
        fetched_and_read()


def test_many_files_have_one_checksum(nowhere: Path, mirror: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        f"data/xz/{name}.csv": f"configurationID,level,size,time\n0,-3,{size},2\n1,-9,{size // 2},8\n".encode()
        for name, size in (("a", 100), ("b.txt", 8000), ("c", 6))
    }
    table = b"input,configurationID,size,time\na,0,100,2\na,1,50,8\nb.txt,0,8000,2\nb.txt,1,4000,8\nc,0,6,2\nc,1,3,8\n"
    card = publish(nowhere / "upstream", DATASETS["xz"], files, table)
    monkeypatch.setitem(DATASETS, "xz", card)
    assert ps.problems.fetch("xz", mirror).read_bytes() == table
    problem = ps.problems.load("xz")
    # half the size, four times the time, on every input
    size = (100 * 8000 * 6) ** (1 / 3)
    np.testing.assert_allclose(problem.means, [[size, 2], [size / 2, 8]])
    np.testing.assert_allclose(problem.rows or (), [[[100, 2], [8000, 2], [6, 2]], [[50, 8], [4000, 8], [3, 8]]])
    assert problem.statement.blocks == Blocks(("a", "b.txt", "c"))
    columns = ps.problems.read_csv(card.here() or "")
    replayed = catalogue._over_inputs(DATASETS["xz-replayed"], columns, ("size", "time"), (1.0, 1.0))
    np.testing.assert_allclose(replayed.means, np.log(2) * np.array([[0.5, -1], [-0.5, 1]]))
    np.testing.assert_allclose(replayed.rows or (), np.repeat(replayed.means[:, None], 3, axis=1))
    (nowhere / "upstream" / card.upstream.repository / card.upstream.commit / "data/xz/a.csv").write_bytes(b"")
    with pytest.raises(UnreadableFile, match="sha256 of all 3 files, one after the other, must be"):
        ps.problems.fetch("xz", mirror)
    assert card.here() is not None  # the good one stays


def test_downloads_at_once_share_folders(nowhere: Path, mirror: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if another download had always been the first to make the folder that pooch wants to make."""

    def too_late(path: str, *_: Any, **__: Any) -> None:
        raise FileExistsError(17, "File exists", path)

    files = {f"data/xz/{name}.csv": b"configurationID,level,size,time\n0,-3,100,2\n1,-9,50,8\n" for name in "ab"}
    table = b"input,configurationID,size,time\na,0,100,2\na,1,50,8\nb,0,100,2\nb,1,50,8\n"
    card = publish(nowhere / "upstream", DATASETS["xz"], files, table)
    monkeypatch.setattr("os.makedirs", too_late)
    assert card.fetch(mirror).read_bytes() == table


def test_fetching_needs_an_extra(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("PARETOSCOUT_DATA", str(nowhere / "data"))
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtra, match=r"pip install 'paretoscout\[data\]'"):
        ps.problems.fetch("noc")
    with pytest.raises(MissingData, match="paretoscout datasets fetch noc"):
        ps.problems.load("noc")
    assert run("datasets").exit_code == 0


def test_fetched_sets_are_kept_for_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = datasets.cache_folder()
    assert folder is not None
    assert folder.is_absolute()
    assert "paretoscout" in folder.parts


# ---- reading


def test_constants_of_a_python_file(tmp_path: Path) -> None:
    """It is parsed, not run."""
    path = tmp_path / "utils.py"
    path.write_text(
        "raise SystemExit\nCOVBOOST_MEANS = np.array([[9.5, 6.75, 4.5],\n  [9.25, 6.5, 4.0]])\n"
        "COVBOOST_COV = np.diag(np.array([0.25, 1.0, 2.25]))\n"
    )
    problem = catalogue._cov_boost_arms(DATASETS["cov-boost"], catalogue._cov_boost_columns([path]))
    np.testing.assert_array_equal(problem.means, [[9.5, 6.75, 4.5], [9.25, 6.5, 4.0]])
    np.testing.assert_array_equal(problem.sigma[0], [0.5, 1.0, 1.5])
    assert problem.arms == ("0", "1")
    path.write_text("COVBOOST_MEANS = 1\n")
    with pytest.raises(InvalidInput, match="must define COVBOOST_MEANS and COVBOOST_COV"):
        catalogue._cov_boost_columns([path])


def test_runs_of_language_models(tmp_path: Path) -> None:
    path = tmp_path / "leaderboard.yml"
    runs = (
        "- dirname: x # misleading\n  model: a: b\n  pass_num_2: 90\n  total_cost: 4.50\n  seconds_per_case: 20\n\n"
        "- dirname: y\n  model: free\n  pass_num_2: 9\n  total_cost: 0 # incorrect: 6.3\n  seconds_per_case: 20\n"
        '- dirname: z\n  model: unknown\n  pass_num_2: 9\n  command: "c # d"\n  seconds_per_case: 20\n'
    )
    path.write_text(runs)
    columns = catalogue._aider_columns([path])
    problem = catalogue._aider_models(DATASETS["aider-replayed"], columns)
    assert problem.arms == ("a: b",)
    np.testing.assert_allclose(problem.means, [[0.4, 0.02, 20]])
    np.testing.assert_array_equal(problem.sigma[0], [0.5, 0, 0])
    assert problem.rows is not None
    assert problem.rows[0].shape == (225, 3)
    by_task = catalogue._aider_by_task(DATASETS["aider"], columns)
    assert by_task.rows is not None
    np.testing.assert_allclose(by_task.means, problem.means)
    assert by_task.rows[0][:90, 0].sum() < 90 == by_task.rows[0][:, 0].sum()  # not the first ones
    np.testing.assert_array_equal(by_task.rows[0], (catalogue._aider_by_task(DATASETS["aider"], columns).rows or ())[0])


def test_answers_of_language_models(tmp_path: Path) -> None:
    path = tmp_path / "results" / "a model" / "weighted" / "annotations.json"
    path.parent.mkdir(parents=True)
    told = [("who?", 1.25, "äb"), ("why?", None, "c"), ("where?", 1.5, ""), ("how?", 1.0, "so"), ("when?", 2.0, "now")]
    answers = [{"instruction": prompt, "preference": p, "output_2": text} for prompt, p, text in told]
    path.write_text(json.dumps(answers))
    columns = catalogue._alpaca_columns([path])
    assert columns == {
        "model": ["a model"] * 4,
        "instance": ["0", "2", "3", "4"],
        "preference": ["1.25", "1.5", "1.0", "2.0"],
        "len_chars": ["2", "0", "2", "3"],
    }
    problem = catalogue._alpaca_models(DATASETS["alpaca-eval-replayed"], columns)
    np.testing.assert_array_equal(problem.means, [[0.4375, 1.75]])
    # an empty answer has no logarithm: its prompt is left out
    by_prompt = catalogue._alpaca_by_prompt(DATASETS["alpaca-eval"], columns)
    assert by_prompt.statement.blocks == Blocks(("0", "3", "4"))
    np.testing.assert_allclose(by_prompt.means, [[1.25 / 3, 12 ** (1 / 3)]])


def test_prompts_have_the_same_number_for_all_models(tmp_path: Path) -> None:
    paths = [tmp_path / "results" / model / "weighted" / "annotations.json" for model in "ab"]
    for path, prompts in zip(paths, (["x", "y"], ["y", "z", "x"]), strict=True):
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps([{"instruction": text, "preference": 1.5, "output_2": "-"} for text in prompts]))
    assert catalogue._alpaca_columns(paths)["instance"] == ["0", "1", "1", "2", "0"]


def test_no_logs_of_nothing() -> None:
    columns = {"input": ["a", "a"], "configurationID": ["0", "1"], "size": ["1", "0"], "time": ["1", "1"]}
    with pytest.raises(InvalidInput, match="size, time of data set 'xz-replayed' must be above 0"):
        DATASETS["xz-replayed"].make(DATASETS["xz-replayed"], columns)
    for each in "bcd":
        for arm in "01":
            for name, cell in zip(columns, (each, arm, "3", "1"), strict=True):
                columns[name].append(cell)
    blocks = DATASETS["xz"].make(DATASETS["xz"], columns).statement.blocks
    assert blocks == Blocks(("b", "c", "d"))  # without the one on which a size is 0


def test_queries_of_a_database() -> None:
    queries = {f"q{number}": [str(number), "1", "2"] * 2 for number in range(1, 16)}
    columns = {"input": ["s", "m", "l"] * 2, "configurationID": ["0"] * 3 + ["1"] * 3, **queries}
    problem = DATASETS["sqlite"].make(DATASETS["sqlite"], columns)
    np.testing.assert_allclose(problem.rows or (), [[[120, 15], [15, 1], [30, 2]]] * 2)


def test_another_sigma() -> None:
    np.testing.assert_array_equal(ps.problems.load("s5", sigma=0.5).sigma[0], [0.5, 0.5])
    np.testing.assert_array_equal(ps.problems.load("s5", sigma=[1, 2]).sigma[0], [1, 2])
    with pytest.raises(InvalidInput, match="sigma of problem 's5' must be at least 0"):
        ps.problems.load("s5", sigma=-1)
    each = np.arange(1.0, 11.0).reshape(5, 2)
    np.testing.assert_array_equal(ps.problems.load("s5", sigma=each).sigma, each)
    with pytest.raises(InvalidInput, match="sigma of problem 's5' must be numbers: it has no rows, got 'unknown'"):
        ps.problems.load("s5", sigma="unknown")
    with pytest.raises(InvalidInput, match="sigma of problem 'logistic-12' must be left out"):
        ps.problems.load("logistic-12", sigma=1)
    with pytest.raises(
        InvalidInput, match="sigma of problem 'compressors' must be 'each', 'largest' or 'unknown', got 1"
    ):
        ps.problems.load("compressors", sigma=1)
    assert not ps.problems.load("compressors", sigma="unknown").statement.knows_sigma


def test_the_groups_of_sw_llvm_come_with_the_library() -> None:
    arms = ps.problems.read_csv(catalogue._DATA / "sw_llvm_arms.csv")
    assert arms["row"] == [str(row) for row in range(1024)]
    assert np.unique(arms["arm"], return_counts=True)[1].tolist() == [64] * 16


# ---- the real ones


def real(name: str) -> ps.Problem:
    if not (DATA / DATASETS[name].table).exists():
        pytest.skip(f"no {DATA / DATASETS[name].table}; PARETOSCOUT_DATA says where to look")
    return ps.problems.load(name)


def front_of(problem: ps.Problem) -> list[str]:
    on_front = ps.geometry.pareto_front(problem.means, directions=[metric.direction for metric in problem.metrics])
    return [arm for arm, optimal in zip(problem.arms, on_front, strict=True) if optimal]


@pytest.mark.parametrize("name", DATASETS)
def test_the_card_is_right(name: str) -> None:
    problem, card = real(name), DATASETS[name]
    assert problem.name == name
    assert problem.metrics == card.metrics
    assert len(problem.arms) == card.arms
    assert len(front_of(problem)) == card.front
    if problem.rows is None:
        assert card.rows == card.arms
        assert (problem.sigma > 0).all()
    elif name != "aider-replayed":  # each of its rows is a run, each run 225 tasks
        assert sum(map(len, problem.rows)) == card.rows
    blocks = problem.statement.blocks
    assert (None if blocks is None else len(blocks.names)) == card.blocks
    assert card.blocks is None or card.rows == card.arms * card.blocks


@pytest.mark.parametrize("name", ["sw-llvm", *(name for name in DATASETS if name.endswith("-replayed"))])
def test_sigma_holds_for_the_rows(name: str) -> None:
    problem = real(name)
    assert problem.rows is not None
    for metric, sigma in enumerate(problem.sigma[0]):
        # the function gives at most 2% too much; what is left of a constant column is rounding
        most = max(families.subgaussian_scale(rows[:, metric]) for rows in problem.rows)
        assert most / 1.02 <= sigma + 1e-9
        assert sigma <= 1.05 * most


def test_sw_llvm_is_the_published_instance() -> None:
    problem = real("sw-llvm")
    published = DATA / "sw_llvm" / "arms16.csv"
    if not published.exists():
        pytest.skip(f"no {published}")
    metrics = {"neg_performance_std": "max", "neg_memory_std": "max"}
    wanted = ps.problems.table(ps.problems.read_csv(published), arm="arm", metrics=metrics)
    assert problem.arms == wanted.arms
    for rows, wanted_rows in zip(problem.rows or (), wanted.rows or (), strict=True):
        np.testing.assert_array_equal(rows, wanted_rows)
    assert wanted.sigma.max() == pytest.approx(0.214736, abs=1e-6)
    assert front_of(problem) == ["0", "1", "14"]


def test_what_the_notes_say() -> None:
    llvm = real("sw-llvm-1024")
    for directions, n in ((["min", "min"], 7), (["max", "min"], 4), (["max", "max"], 4), (["min", "max"], 1)):
        assert ps.geometry.pareto_front(llvm.means, directions=directions).sum() == n
    assert llvm.contexts is not None
    assert len(np.unique(llvm.contexts, axis=0)) == 768
    noc = real("noc")
    assert ps.geometry.pareto_front(noc.means, directions="min").sum() == 19
    assert len(np.unique(noc.means, axis=0)) == 116
    cov_boost = real("cov-boost")
    assert front_of(cov_boost) == ["8", "18"]
    np.testing.assert_allclose(cov_boost.sigma[0] ** 2, [0.7044, 0.8285, 1.5374], atol=1e-4)
    alpaca = real("alpaca-eval-replayed")
    assert alpaca.rows is not None
    assert alpaca.rows[alpaca.arms.index("NullModel")][:, 1].std() == 0
    np.testing.assert_allclose(np.max([rows.std(axis=0) for rows in alpaca.rows], axis=0), [0.421, 1409], rtol=2e-3)


@pytest.mark.parametrize("name", [name for name, card in DATASETS.items() if card.blocks])
def test_cards_say_what_a_block_is(name: str) -> None:
    card, replayed = DATASETS[name], DATASETS.get(f"{name}-replayed")
    assert "Block: a " in card.notes
    assert str(card.blocks) in card.about
    assert card.as_dict()["blocks"] == card.blocks
    assert replayed is None or (replayed.blocks is None and replayed.table == card.table)
    assert all(metric.relative or metric.bounds or name == "aider" for metric in card.metrics)


@pytest.mark.parametrize("name", ["xz", "gcc"])
def test_options_are_compared_on_the_same_inputs(name: str) -> None:
    """Never more than the table. Each run may be wrong with probability 0.1: a false alarm has at most 0.0024."""
    problem = real(name)
    scout = ps.algorithms.Scout(noise="unknown")
    result = ps.simulate(problem, scout, replicates=20, delta=0.1, workers=1, progress=False)
    assert (result.samples <= DATASETS[name].rows).all()
    assert np.median(result.samples) < DATASETS[name].rows
    assert result.success.sum() >= 14


def test_the_audit_says_what_it_misses(nowhere: Path) -> None:
    missing = [case for case in families.cases(["replayed"]) if isinstance(case.problem, str)]
    assert [case.title for case in missing] == ["SW-LLVM", "xz over many inputs", "poppler over many inputs"]
    assert "paretoscout datasets fetch xz-replayed" in str(missing[1].problem)


# ---- the command line


def test_the_list(nowhere: Path, mirror: str, small_noc: Dataset) -> None:
    assert "not here" in run("datasets").output
    done = run("datasets", "fetch", "noc", "--mirror", mirror)
    assert done.exit_code == 0
    assert str(nowhere / "cache" / "noc" / "noc.csv") in done.output
    lines = {line.split()[0]: line for line in run("datasets").output.splitlines()}
    assert set(DATASETS) <= set(lines)
    for part in ("259", "energy min, inv_runtime max", "0 kB", "none stated", str(nowhere)[:20]):
        assert part in lines["noc"]
    assert "not here" in lines["snw"]
    cards = {card["name"]: card for card in json.loads(run("datasets", "--json").output)}
    assert set(cards) == set(DATASETS)
    assert cards["noc"]["here"] == str(nowhere / "cache" / "noc" / "noc.csv")
    assert cards["noc"]["sha256"] == small_noc.upstream.sha256
    assert cards["snw"]["here"] is None
    assert cards["aider"]["metrics"][1] == {"name": "cost", "direction": "min", "eps": 0.005, "unit": "$"}


@pytest.mark.parametrize("name", DATASETS)
def test_a_card_is_shown(nowhere: Path, name: str) -> None:
    done, card = run("datasets", "show", name), DATASETS[name]
    for part in (card.upstream.url(), card.upstream.sha256, card.licence, f"paretoscout datasets fetch {name}"):
        assert part in done.output
    assert json.loads(run("datasets", "show", name, "--json").output) == card.as_dict()


@pytest.mark.parametrize(
    "arguments", [["show", "nok"], ["fetch", "noc", "nok"]], ids=["show", "nothing is fetched where a name is wrong"]
)
def test_unknown_names(nowhere: Path, arguments: list[str]) -> None:
    done = run("datasets", *arguments)
    assert done.exit_code == 2
    assert "did you mean 'noc'" in done.output
    assert not (nowhere / "cache").exists()
