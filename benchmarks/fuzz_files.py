"""Coverage-guided fuzzing of everything that reads files: a result or a sentence, never a traceback.

    python -m benchmarks.fuzz_files --seconds 600

atheris changes the bytes of sound files and keeps those that reach new code. Each kind of file has its share of the
seconds, in a process of its own. An input that ends in anything but a `ParetoscoutError`, takes longer than 60 s or more
than 2 GB is written to `out/fuzz`; put it into tests/test_fuzzed_files.py once it is mended. Exits with 1 if there is one.

atheris comes with the extra `fuzz`; it has wheels for Linux and few Pythons only. Without it nothing is tried, and this
says so.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data" / "readers"
SECONDS, LONGEST_SECONDS, MOST_MEGABYTES, MOST_BYTES = 600.0, 60, 2048, 8_000
#: Modules whose branches guide the search.
GUIDES = ("paretoscout.readers", "paretoscout.frames", "paretoscout.checks", "paretoscout.files")

STUDY = b"""arms: [a, b]
metrics: {q: max, t: {direction: min, eps: 2%, unit: s, bounds: [0, 9]}}
sigma: {q: 0.1, t: 1}
contexts: []
guards: [t <= 3]
lease: 2h
goal: practical
base: &base {k: 1}
more: {<<: *base, x: [*base, 0x1f, 1:30, 2001-01-01, ~, yes]}
"""
SWEEP = b"""problems: [{load: sw-llvm}, {csv: x.csv, arm: a, metrics: {q: max}}]
algorithms: [scout, "ape:c=1"]
grid: {delta: [0.1, 0.05]}
replicates: 3
"""
PLAIN = (
    b"arm,ms,ok\na,1.5,1\na,1.7,0\nb,2.5,1\nb,2.25,\n",
    b'arm;ms;ok\n"a;b";1,5;1\nb;2;0\n',
    b'\xef\xbb\xbfarm\tms\tok\r\na\t1e3\t1\r\n\r\n"b"\t"2"\t0\r\n',
)
LINES = (b'{"arm": "a", "x": 1}\n{"arm": "b", "x": 2.5}\n', b'"a"\n"b"\n')


# What is tried


def read_result(path: Path) -> None:
    """Read a result file of any tool, choose metrics where it does not say them, and make a table of it."""
    from paretoscout.readers import find

    found = find([path])
    if found is None:
        return
    metrics, _ = found.usual_metrics()
    roles = found.roles(None, None)
    found.usual_metrics(roles)
    more = [found.metric(name, "min") for name in list(found.measures)[:3]]
    reading = found.reading(metrics=metrics or more)
    reading.as_dict()
    str(reading)


def read_table(path: Path) -> None:
    """Read a CSV file, and its columns as names and as numbers."""
    from paretoscout.errors import ParetoscoutError
    from paretoscout.frames import Columns, read_csv

    columns = Columns(read_csv(path), str(path))
    for name in list(columns.names)[:4]:
        columns.is_numeric(name)
        for read in (columns.labels, columns.numbers_or_none, columns.numbers):
            with contextlib.suppress(ParetoscoutError):
                read(name)


def analyze(path: Path) -> None:
    """Judge a CSV file by its first columns."""
    import paretoscout as ps
    from paretoscout.frames import read_csv

    table = read_csv(path)
    arm, *others = table
    ps.analyze(table, arm, dict.fromkeys(others[:2], "max"), goal="front").as_dict()


def read_lines(path: Path) -> None:
    """Read JSON lines of options, and names of blocks."""
    from paretoscout.frames import names_in, read_json_lines

    names_in(path)
    read_json_lines(path)


def read_study(path: Path) -> None:
    """Read a study in YAML."""
    from paretoscout.study import described

    described.read(path)


def read_sweep(path: Path) -> None:
    """Read a sweep in YAML."""
    from paretoscout.sweeps import described

    described.read(path)


def load_result(path: Path) -> None:
    """Load a result of `simulate`."""
    from paretoscout.simulation.results import load_result

    load_result(path)


@cache
def _storage() -> Any:
    """Return the storage that backups are restored to, one for all."""
    from paretoscout.storage.sql import SQLStorage

    return SQLStorage(f"sqlite:///{tempfile.mkdtemp()}/s.db")


def restore_backup(path: Path) -> None:
    """Restore a backup."""
    from paretoscout.storage.upkeep import restore
    from paretoscout.study.spec import StudySpec

    restore(_storage(), path, StudySpec.of_text)


def _texts(*names: str) -> list[bytes]:
    return [next(DATA.glob(name)).read_bytes()[:MOST_BYTES] for name in names]


def _small(name: str, *keys: str | int) -> bytes:
    """A JSON file of which a list, found by its keys, is cut to its first three items."""
    value = json.loads((DATA / name).read_text())
    place = value
    for key in keys:
        place = place[key]
    del place[3:]
    return json.dumps(value).encode()


def json_files() -> list[bytes]:
    """Files of each tool that writes JSON."""
    hyperfine = {"command": "b", "mean": 1, "times": [1, 2.5], "exit_codes": [0, 1], "parameters": {"k": "1"}}
    return [
        json.dumps({"results": [hyperfine, {**hyperfine, "command": "a", "parameters": {"k": "2"}}]}).encode(),
        _small("pytest-benchmark.json", "benchmarks"),
        _small("promptfoo.json", "results", "results"),
        _small("google-benchmark.json", "benchmarks"),
        _small("jmh.json"),
        _small("inspect-large.json", "samples"),
        b"\n".join((DATA / "optuna.log").read_bytes().split(b"\n")[:12]),
        b"\n".join((DATA / "promptfoo.jsonl").read_bytes().split(b"\n")[:2]),
        *_texts("lm-eval/samples*", "criterion/**/sample.json"),
    ]


def csv_files() -> list[bytes]:
    """Tables of tools."""
    criterion = b"group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count\n"
    return [
        *(b"\n".join((DATA / name).read_bytes().split(b"\n")[:5]) for name in ("optuna.csv", "mlflow.csv")),
        *_texts("hyperfine.csv", "promptfoo.csv"),
        criterion + b"g,f,1,,,15.5,ns,10\ng,h,1,,,11,ns,10\n",
        *PLAIN,
    ]


def zip_files() -> list[bytes]:
    """Logs of Inspect, packed in several ways."""
    log = json.loads((DATA / "inspect-large.json").read_text())
    samples = log.pop("samples")[:3]
    made = [(DATA / "inspect-large.eval").read_bytes()]
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            archive.writestr("header.json", json.dumps(log))
            archive.writestr("summaries.json", json.dumps(samples))
        made.append(buffer.getvalue())
    return made


def databases() -> list[bytes]:
    """A database of Optuna."""
    return [gzip.decompress((DATA / "optuna.db.gz").read_bytes())]


def results() -> list[bytes]:
    """A result of two replicates."""
    import paretoscout as ps

    problem = ps.problems.gaussian([[0.0, 1.0], [1.0, 0.0]], 0.1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        ps.simulate(problem, "uniform", replicates=2).save(path)
        return [path.read_bytes()]


def backups() -> list[bytes]:
    """A backup of a study with a few outcomes."""
    import paretoscout as ps
    from paretoscout.storage.sql import SQLStorage
    from paretoscout.storage.upkeep import backup

    with tempfile.TemporaryDirectory() as folder:
        study = ps.Study(["a", "b"], {"q": "max"}, sigma=1.0, name="s", storage=Path(folder) / "s.db")
        for value in (1.0, 2.0):
            study.tell(study.ask(), {"q": value})
        backup(SQLStorage(f"sqlite:///{folder}/s.db"), Path(folder) / "copy.db")
        return [(Path(folder) / "copy.db").read_bytes()]


#: What is tried, the sound files it begins with, and how long its files may become.
DOORS: dict[str, tuple[Callable[[Path], None], Callable[[], list[bytes]], int]] = {
    "results-json": (read_result, json_files, MOST_BYTES),
    "results-csv": (read_result, csv_files, MOST_BYTES),
    "results-zip": (read_result, zip_files, MOST_BYTES),
    "results-sqlite": (read_result, databases, 200_000),
    "table": (read_table, lambda: list(PLAIN), 2_000),
    "analyze": (analyze, lambda: list(PLAIN), 400),
    "lines": (read_lines, lambda: list(LINES), 2_000),
    "study-yaml": (read_study, lambda: [STUDY], 2_000),
    "sweep-yaml": (read_sweep, lambda: [SWEEP], 2_000),
    "result": (load_result, results, 20_000),
    "backup": (restore_backup, backups, 200_000),
}


def tried(door: str, data: bytes, path: Path) -> str | None:
    """Return the sentence of an error, or None for a result. All other exceptions are faults."""
    from paretoscout.errors import ParetoscoutError

    path.write_bytes(data)
    try:
        DOORS[door][0](path)
    except ParetoscoutError as problem:
        return str(problem)
    return None


# The search


def _no_guides() -> list[str]:
    """Return the modules that are left alone: numba cannot compile instrumented functions."""
    source = ROOT / "src"
    names = (".".join(path.relative_to(source).with_suffix("").parts) for path in source.rglob("*.py"))
    modules = [name.removesuffix(".__init__") for name in names]
    return [name for name in modules if not name.startswith(GUIDES)]


#: What stands in for a value of a JSON file.
OTHERS: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1e308,
    10**400,
    float("nan"),
    "",
    "text",
    "1",
    [],
    {},
    [[1, 2]],
    {"a": 1},
    [None],
    {"": ""},
)


def changed(data: bytes, seed: int) -> bytes | None:
    """Return JSON in which a value is another one, comes from elsewhere in it, or is gone; None: it is no JSON."""
    chance = random.Random(seed)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    places: list[tuple[Any, Any]] = []
    level = [value]
    while level:
        here = level.pop()
        pairs = (
            list(here.items()) if isinstance(here, dict) else list(enumerate(here)) if isinstance(here, list) else []
        )
        places += [(here, key) for key, _ in pairs]
        level += [inner for _, inner in pairs]
    if not places:
        return None
    outer, key = chance.choice(places)
    what = chance.random()
    if what < 0.2:
        del outer[key]
    elif what < 0.5:
        other, place = chance.choice(places)
        outer[key] = json.loads(json.dumps(other[place]))
    else:
        outer[key] = chance.choice(OTHERS)
    return json.dumps(value).encode()


def search(door: str, seconds: int, out: Path) -> None:
    """Fuzz a door in this process; it ends the process."""
    atheris = import_module("atheris")
    with atheris.instrument_imports(include=["paretoscout", "csv", "json", "yaml"], exclude=_no_guides()):
        import_module("paretoscout.readers")
        import_module("yaml")
    _, sound, longest = DOORS[door]
    corpus = Path(tempfile.mkdtemp(prefix="corpus-"))
    words: set[bytes] = set()
    for number, data in enumerate(sound()):
        (corpus / str(number)).write_bytes(data)
        words |= set(re.findall(rb"[A-Za-z_.]{3,30}", data[:MOST_BYTES]))
    tokens = corpus.with_suffix(".dict")
    tokens.write_text("".join(f'"{word.decode()}"\n' for word in sorted(words)[:400]))
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = Path(tempfile.mkdtemp(dir=fast)) / "x"

    def one(data: bytes) -> None:
        tried(door, data, path)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        mutated = changed(data, seed) if seed % 2 else None
        return bytes(atheris.Mutate(data, most) if mutated is None or len(mutated) > most else mutated)

    how = [f"-max_total_time={seconds}", f"-timeout={LONGEST_SECONDS}", f"-rss_limit_mb={MOST_MEGABYTES}"]
    how += [f"-max_len={longest}", f"-dict={tokens}", f"-artifact_prefix={out / door}-", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *how, str(corpus)], one, custom_mutator=mutate)
    atheris.Fuzz()


def _doors(seconds: float, out: Path, chosen: list[str]) -> Iterator[tuple[str, int, int, str]]:
    """Yield each door with how many inputs were tried, whether one failed, and what was said of it."""
    for door in chosen:
        share = str(max(1, round(seconds / len(chosen))))
        command = [sys.executable, "-m", "benchmarks.fuzz_files", "--door", door, "--seconds", share, "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=ROOT)
        said = done.stdout + done.stderr
        runs = re.search(r"stat::number_of_executed_units: (\d+)", said)
        yield door, int(runs[1]) if runs else 0, done.returncode, said


def main() -> int:
    """Run it; see above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--door", choices=DOORS)
    parser.add_argument("--only", nargs="*", choices=DOORS, default=list(DOORS))
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "fuzz")
    given: Any = parser.parse_args()
    try:
        import_module("atheris")
    except ImportError as problem:
        print(
            f"files were not fuzzed: {problem}. pip install 'paretoscout[fuzz]' (Linux; it has wheels for few Pythons)"
        )
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    if given.door:
        search(given.door, round(given.seconds), given.out)
        return 0
    failed = 0
    for door, runs, code, said in _doors(given.seconds, given.out, given.only):
        print(f"{door}: {runs:,} inputs, {'a failure' if code else 'each a result or a sentence'}", flush=True)
        if code:
            failed += 1
            print(said[-4000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
