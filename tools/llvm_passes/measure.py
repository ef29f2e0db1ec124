"""Measures what ten passes of LLVM's optimiser cost and bring: all 1024 ways to switch them on or off.

    python tools/llvm_passes/measure.py prepare --work DIR    # compiles and links the C programs: one module
    python tools/llvm_passes/measure.py build --work DIR      # one program for each configuration, each checked
    python tools/llvm_passes/measure.py run --work DIR        # 20 rounds; stop and start it as you like
    python tools/llvm_passes/measure.py export --work DIR     # writes the data set into the package

The data card, docs/llvm-passes.md, says what comes out. The standard library is enough.
"""

from __future__ import annotations

import argparse
import calendar
import csv
import fcntl
import gzip
import hashlib
import io
import itertools
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE_DATA = HERE.parents[1] / "src" / "paretoscout" / "problems" / "data"

# --- What is measured ---

# In the order of the pipeline. The bit of a pass in the number of a configuration is its place here.
PASSES = (
    "inline",
    "sroa",
    "simplifycfg",
    "instcombine",
    "loop-rotate",
    "licm",
    "gvn",
    "loop-vectorize",
    "slp-vectorizer",
    "loop-unroll",
)

_SIMPLIFY = "switch-range-to-icmp;switch-to-lookup;hoist-common-insts;sink-common-insts"

# (pass, kind, how `opt` spells it). As in -O2, instcombine and simplifycfg come once more at the end, to clean up.
PIPELINE = (
    ("inline", "cgscc", "inline"),
    ("sroa", "function", "sroa"),
    ("simplifycfg", "function", f"simplifycfg<{_SIMPLIFY};keep-loops>"),
    ("instcombine", "function", "instcombine<no-verify-fixpoint>"),
    ("loop-rotate", "function", "loop(loop-rotate)"),
    ("licm", "function", "loop-mssa(licm)"),
    ("gvn", "function", "gvn"),
    ("loop-vectorize", "function", "loop-vectorize"),
    ("slp-vectorizer", "function", "slp-vectorizer"),
    ("loop-unroll", "function", "loop-unroll<O2>"),
    ("instcombine", "function", "instcombine<no-verify-fixpoint>"),
    ("simplifycfg", "function", f"simplifycfg<{_SIMPLIFY}>"),
)

# (program, element type, size, how often it runs): 28 modules from 18 files. The last number evens out the run time.
VARIANTS = (
    ("align", "float", 160, 4),
    ("align", "int16_t", 160, 5),
    ("bigint", "uint16_t", 40, 6),
    ("bigint", "uint32_t", 40, 8),
    ("bodies", "double", 60, 7),
    ("compress", "int32_t", 6000, 4),
    ("compress", "uint16_t", 6000, 5),
    ("digest", "uint8_t", 3000, 8),
    ("filter", "float", 1000, 4),
    ("filter", "int32_t", 1000, 7),
    ("grid", "float", 40, 11),
    ("huffman", "uint16_t", 2000, 10),
    ("image", "float", 48, 4),
    ("image", "int32_t", 48, 4),
    ("machine", "uint64_t", 12, 3),
    ("matrix", "float", 40, 9),
    ("matrix", "uint32_t", 40, 8),
    ("parser", "uint32_t", 20, 10),
    ("paths", "float", 20, 9),
    ("paths", "int64_t", 20, 9),
    ("primes", "uint32_t", 12000, 13),
    ("search", "uint16_t", 3000, 3),
    ("search", "uint8_t", 3000, 4),
    ("sorting", "double", 900, 4),
    ("sorting", "int32_t", 900, 4),
    ("survey", "double", 800, 25),
    ("table", "uint32_t", 1500, 5),
    ("table", "uint64_t", 1500, 4),
)

# No pass of the optimiser, but functions ready for all of them: hence -O2 with the passes switched off.
COMPILE = (
    *("-std=c17", "-O2", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", "-march=x86-64-v3"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-pie", "-Wall", "-Wno-unused-function"),
)
# Only main is seen from outside, as in a whole program; local variables are values, as every front end leaves them.
NORMALISE = ("-passes=internalize,globaldce,function(mem2reg)", "-internalize-public-api-list=main")
# What is timed has neither checks of the module nor writing in it.
OPTIMISE_TIMED = ("-disable-verify", "-disable-output")
GENERATE = ("-O1", "-filetype=obj", "-relocation-model=static")
LINK = ("-static", "-s")

# --- How it is measured ---

ROUNDS = 20
SEED = 1
TOLERANCE = 1.08  # a take is quiet if each reference spin took at most this times the best one
MOST_TAKES = 4
PAUSE = 0.02  # seconds before a take is repeated
EMPTY_RUNS = 41  # of the optimiser on an empty module, at each start
CALIBRATION = 300  # spins, of which the best one is the measure of quiet
SPIN = 8_000  # steps of the reference: about 0.3 ms, three times

# Children get this and nothing else: the size of an environment moves the stack, and with it the run time.
ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}


class Failed(Exception):
    """A step cannot go on; the text says why."""


def pipeline(configuration: int) -> str:
    """What `opt -passes=` gets for a configuration, a number of one bit for each of PASSES."""
    on = {name for bit, name in enumerate(PASSES) if configuration >> bit & 1}
    groups: list[tuple[str, list[str]]] = []
    for name, kind, text in PIPELINE:
        if name in on:
            if not groups or groups[-1][0] != kind:
                groups.append((kind, []))
            groups[-1][1].append(text)
    return ",".join(f"{kind}({','.join(texts)})" for kind, texts in groups)


def order(configurations: Sequence[int], round_number: int, seed: int) -> list[int]:
    """The order of a round: a fresh random permutation, the same whenever it is asked for."""
    shuffled = list(configurations)
    random.Random(f"{seed} {round_number}").shuffle(shuffled)
    return shuffled


# --- Running things ---


def call(command: Sequence[str | Path]) -> str:
    """Runs a command that is not timed; returns what it printed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stderr.strip()[-2000:]}")
    return done.stdout


@dataclass(frozen=True)
class Usage:
    """What a process used, as the kernel counts it."""

    cpu_us: int
    peak_kb: int
    output: str


def timed(command: Sequence[str | Path]) -> Usage:
    """Runs a command; returns the CPU time of its process, user and system, and its peak memory."""
    words = [str(part) for part in command]
    reading, writing = os.pipe()
    try:
        # The pipe holds 64 KB; neither program writes more than a line.
        to_pipe = [(os.POSIX_SPAWN_DUP2, writing, 1), (os.POSIX_SPAWN_DUP2, writing, 2)]
        process = os.posix_spawn(words[0], words, ENVIRONMENT, file_actions=to_pipe)
        _, status, usage = os.wait4(process, 0)
        os.close(writing)
        writing = -1
        output = os.read(reading, 65536).decode(errors="replace")
    except OSError as error:
        raise Failed(f"{words[0]}: {error.strerror}") from error
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)
    if status != 0:
        raise Failed(f"{' '.join(words)}\nended with {os.waitstatus_to_exitcode(status)}:\n{output[-2000:]}")
    return Usage(round((usage.ru_utime + usage.ru_stime) * 1e6), usage.ru_maxrss, output.strip())


def spin() -> int:
    """The reference: the same small work three times; nanoseconds of the fastest, by the clock on the wall.

    The fastest of three, because a tick of the kernel's timer alone makes one 5% slower.
    """
    fastest = sys.maxsize
    for _ in range(3):
        start = time.perf_counter_ns()
        value = 0
        for i in range(SPIN):
            value ^= i * i
        fastest = min(fastest, time.perf_counter_ns() - start)
    return fastest


def best_spin() -> int:
    """The reference on a quiet core."""
    return min(spin() for _ in range(CALIBRATION))


# --- The journal ---


@dataclass(frozen=True)
class Sample:
    """One measurement of one configuration, a line of the journal."""

    round: int
    configuration: int
    optimise_us: int
    run_us: int
    peak_kb: int
    takes: int  # 1: the first was kept
    spin_us: int  # the slowest reference around the kept take
    quiet: int  # 1: within TOLERANCE

    def line(self) -> str:
        """As it is written."""
        return ",".join(map(str, astuple(self))) + "\n"


class Journal:
    """Samples in a file, one line each, written at once: a killed run loses at most the sample under way."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("a+b")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.file.close()
            raise Failed(f"{path.name}: another run is writing to it") from error
        self.file.seek(0)
        content = self.file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):  # torn by a crash: as if never taken
            self.file.truncate(whole)
        self.samples = [_parse(line, path) for line in content[:whole].decode().splitlines()]
        self.done = {(sample.round, sample.configuration) for sample in self.samples}
        if len(self.done) < len(self.samples):
            raise Failed(f"{path.name}: a sample is in it twice")

    def add(self, sample: Sample) -> None:
        """Writes a sample."""
        os.write(self.file.fileno(), sample.line().encode())
        self.samples.append(sample)
        self.done.add((sample.round, sample.configuration))

    def close(self) -> None:
        """Lets others write."""
        self.file.close()


def _parse(line: str, path: Path) -> Sample:
    try:
        sample = Sample(*map(int, line.split(",")))
    except (TypeError, ValueError) as error:
        raise Failed(f"{path.name}: not a sample: {line!r}") from error
    return sample


def take_quietly(
    best_ns: int, take: Callable[[Callable[[], None]], tuple[int, int, int]], most_takes: int = MOST_TAKES
) -> tuple[int, ...]:
    """Takes until the machine was quiet, `most_takes` times at most: the three numbers, takes, spin in us, quiet.

    `take` calls its argument between its parts, so that the reference runs before, between and after. If no take was
    quiet, the one with the fastest reference is kept: what is kept never depends on the numbers measured.
    """
    kept: tuple[int, tuple[int, int, int]] | None = None
    takes = 0
    while takes < most_takes:
        if takes > 0:
            time.sleep(PAUSE)
        takes += 1
        spins = [spin()]
        numbers = take(lambda: spins.append(spin()))  # noqa: B023 - it is called in this turn only
        spins.append(spin())
        if kept is None or max(spins) < kept[0]:
            kept = max(spins), numbers
        if max(spins) <= TOLERANCE * best_ns:
            break
    assert kept is not None
    return (*kept[1], takes, kept[0] // 1000, int(kept[0] <= TOLERANCE * best_ns))


def campaign(
    journal: Journal,
    configurations: Sequence[int],
    rounds: int,
    seed: int,
    measure: Callable[[int], tuple[int, ...]],
    say: Callable[[str], None],
) -> None:
    """Measures what is not in the journal yet: in each round every configuration once, in a random order."""
    todo = [(r, c) for r in range(rounds) for c in order(configurations, r, seed) if (r, c) not in journal.done]
    start = said = time.monotonic()
    for count, (round_number, configuration) in enumerate(todo, 1):
        journal.add(Sample(round_number, configuration, *measure(configuration)))
        now = time.monotonic()
        if now - said > 30 or count == len(todo):
            said = now
            left = (now - start) / count * (len(todo) - count) / 60
            retaken = sum(sample.takes - 1 for sample in journal.samples)
            loud = sum(1 - sample.quiet for sample in journal.samples)
            text = f"round {round_number + 1} of {rounds}, {len(todo) - count:,} samples and {left:.1f} minutes to go"
            say(f"{text}; {retaken:,} retakes, {loud:,} not quiet")


# --- The steps ---


@dataclass(frozen=True)
class Place:
    """Where a campaign keeps its files, and where LLVM is."""

    work: Path
    llvm: Path

    def tool(self, name: str) -> Path:
        """The path of a program of LLVM."""
        path = self.llvm / name
        if not path.exists():
            raise Failed(f"{name} is not in {self.llvm}: install LLVM, or say where it is with --llvm")
        return path

    @property
    def module(self) -> Path:
        """The module that is optimised."""
        return self.work / "module.bc"

    @property
    def builds(self) -> Path:
        """What `build` made: one line for each configuration."""
        return self.work / "builds.json"

    @property
    def sessions(self) -> Path:
        """One line for each start of `run`."""
        return self.work / "sessions.jsonl"

    @property
    def journal(self) -> Path:
        """The samples."""
        return self.work / "journal.csv"


def digest(*parts: str | bytes) -> str:
    """Sixteen hexadecimal digits that change with any of the parts."""
    made = hashlib.sha256()
    for part in parts:
        made.update(part if isinstance(part, bytes) else part.encode())
        made.update(b"\0")
    return made.hexdigest()[:16]


def fingerprint(module: bytes) -> str:
    """What all samples of one journal must share."""
    return digest(module, repr((PASSES, PIPELINE, OPTIMISE_TIMED, GENERATE, LINK)))


def main_source(names: Iterable[str], times: Iterable[int]) -> str:
    """The C program that runs all others and prints one checksum."""
    pairs = list(zip(names, times, strict=True))
    lines = ["#include <stdint.h>", "#include <stdio.h>"]
    lines += [f"uint64_t {name}(uint64_t);" for name, _ in pairs]
    lines += ["int main(void) {", "    uint64_t sum = 88172645463325252u;"]
    lines += [f"    for (int i = 0; i < {count}; i++) sum = {name}(sum | 1);" for name, count in pairs]
    lines += ['    printf("%016llx\\n", (unsigned long long)sum);', "    return 0;", "}", ""]
    return "\n".join(lines)


def prepare(place: Place) -> None:
    """Compiles every program with every type and links all into one module."""
    parts = place.work / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    clang = place.tool("clang")
    names = [f"{program}_{kind}" for program, kind, _, _ in VARIANTS]
    for name, (program, kind, size, _) in zip(names, VARIANTS, strict=True):
        source = HERE / "programs" / f"{program}.c"
        settings = [f"-DRUN={name}", f"-DT={kind}", f"-DN={size}"]
        call([clang, *COMPILE, *settings, source, "-o", parts / f"{name}.bc"])
    (parts / "main.c").write_text(main_source(names, (times for _, _, _, times in VARIANTS)))
    call([clang, *COMPILE, parts / "main.c", "-o", parts / "main.bc"])
    linked = [parts / f"{name}.bc" for name in (*names, "main")]
    call([place.tool("llvm-link"), *linked, "-o", parts / "linked.bc"])
    call([place.tool("opt"), *NORMALISE, parts / "linked.bc", "-o", place.module])


def build_one(place: Place, configuration: int) -> dict[str, str | int]:
    """Builds the program of a configuration, or finds the one that another of the same code has built."""
    programs = place.work / "programs"
    bitcode = programs / f"{configuration}.bc"
    call([place.tool("opt"), f"-passes={pipeline(configuration)}", place.module, "-o", bitcode])
    name = digest(bitcode.read_bytes())
    ready, code = programs / name, programs / f"{configuration}.o"
    call([place.tool("llc"), *GENERATE, bitcode, "-o", code])
    if not ready.exists():
        linked = programs / f"{configuration}.out"
        call([place.tool("clang"), *LINK, code, "-o", linked])
        linked.rename(ready)
    sections = call([place.tool("llvm-size"), "-A", code])
    found = re.search(r"^\.text\s+(\d+)", sections, re.MULTILINE)
    if found is None:
        raise Failed(f"llvm-size says nothing of .text for configuration {configuration}:\n{sections}")
    bitcode.unlink()
    code.unlink()
    return {"program": name, "text_bytes": int(found[1]), "checksum": timed([ready]).output}


def build(place: Place, configurations: Sequence[int], jobs: int, say: Callable[[str], None]) -> None:
    """Builds the program of each configuration; all must print the same."""
    (place.work / "programs").mkdir(exist_ok=True)
    mark = fingerprint(place.module.read_bytes())
    kept = json.loads(place.builds.read_text()) if place.builds.exists() else {}
    made: dict[str, dict[str, str | int]] = kept.get("builds", {}) if kept.get("fingerprint") == mark else {}

    def save() -> None:
        spare = place.builds.with_suffix(".new")
        spare.write_text(json.dumps({"fingerprint": mark, "builds": made}))
        spare.replace(place.builds)

    todo = [c for c in configurations if str(c) not in made]
    with ThreadPoolExecutor(jobs) as pool:
        for count, (configuration, built) in enumerate(
            zip(todo, pool.map(lambda c: build_one(place, c), todo), strict=True), 1
        ):
            made[str(configuration)] = built
            if count % 50 == 0:
                save()
                say(f"{count} of {len(todo)} built")
    save()
    sums = {built["checksum"] for built in made.values()}
    if len(sums) > 1:
        usual = statistics.mode(built["checksum"] for built in made.values())
        odd = [c for c, built in made.items() if built["checksum"] != usual]
        raise Failed(f"the programs of these configurations print something else than the others: {', '.join(odd)}")
    say(f"{len(made)} configurations, {len({built['program'] for built in made.values()})} different programs")


def machine() -> dict[str, str | int | bool]:
    """What the times depend on; nothing that names the machine or its owner."""
    cpu = Path("/proc/cpuinfo").read_text()
    memory = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    model = re.search(r"model name\s*:\s*(.+)", cpu)
    kernel = re.match(r"[\d.]+", platform.release())
    return {
        "cpu": model[1].strip() if model else platform.machine(),
        "cores": os.cpu_count() or 0,
        "virtual": " hypervisor" in cpu,
        "memory_gib": round(int(memory[1]) / 2**20) if memory else 0,
        "kernel": f"{platform.system()} {kernel[0] if kernel else ''}".strip(),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
    }


def llvm_version(place: Place) -> str:
    """As `opt` gives it."""
    found = re.search(r"LLVM version ([\w.+~-]+)", call([place.tool("opt"), "--version"]))
    return found[1] if found else "unknown"


def start_up(place: Place) -> int:
    """CPU time of the optimiser on an empty module, in us."""
    empty = place.work / "empty.ll"
    empty.write_text("")
    command: list[str | Path] = [place.tool("opt"), "-passes=", *OPTIMISE_TIMED, empty]
    return round(statistics.median(timed(command).cpu_us for _ in range(EMPTY_RUNS)))


def run(
    place: Place,
    configurations: Sequence[int],
    rounds: int,
    core: int | None,
    say: Callable[[str], None],
    most_takes: int = MOST_TAKES,
) -> None:
    """Measures every configuration once in each round; goes on where the last run stopped."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    known = json.loads(place.builds.read_text())
    mark = fingerprint(place.module.read_bytes())
    if known["fingerprint"] != mark:
        raise Failed("the programs were built from another module or pipeline: run build again")
    builds = known["builds"]
    missing = [c for c in configurations if str(c) not in builds]
    if missing:
        raise Failed(f"{len(missing)} configurations are not built: run build first")
    earlier = _sessions(place)
    if any(session["fingerprint"] != mark for session in earlier):
        raise Failed("the journal holds samples of another module or pipeline: start with an empty work directory")
    opt = place.tool("opt")
    commands: dict[int, list[str | Path]] = {
        c: [opt, f"-passes={pipeline(c)}", *OPTIMISE_TIMED, place.module] for c in configurations
    }
    programs = {c: place.work / "programs" / builds[str(c)]["program"] for c in configurations}
    expected = next(iter(builds.values()))["checksum"]
    best = best_spin()
    session: dict[str, object] = {
        "fingerprint": mark,
        "start": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
        "machine": machine(),
        "llvm": llvm_version(place),
        "best_spin_us": best // 1000,
        "start_us": start_up(place),
        "most_takes": most_takes,
    }

    def measure(configuration: int) -> tuple[int, ...]:
        def take(between: Callable[[], None]) -> tuple[int, int, int]:
            optimised = timed(commands[configuration])
            between()
            ran = timed([programs[configuration]])
            if ran.output != expected:
                raise Failed(f"configuration {configuration} printed {ran.output!r} instead of {expected!r}")
            return optimised.cpu_us, ran.cpu_us, optimised.peak_kb

        return take_quietly(best, take, most_takes)

    journal = Journal(place.journal)
    _append(place.sessions, {**session, "first_sample": len(journal.samples)})
    start = time.monotonic()
    try:
        campaign(journal, configurations, rounds, SEED, measure, say)
    finally:
        journal.close()
        _append(place.sessions, {"fingerprint": mark, "minutes": round((time.monotonic() - start) / 60, 2)})


def _append(path: Path, record: dict[str, object]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def _sessions(place: Place) -> list[dict[str, object]]:
    return [json.loads(line) for line in place.sessions.read_text().splitlines()] if place.sessions.exists() else []


# --- The data set ---


def table(samples: Sequence[Sample], text_bytes: dict[int, int], rounds: int) -> str:
    """The data set as CSV: a row for each configuration, times in microseconds in the order of the rounds.

    Bit i of not_quiet says that the machine was not quiet in round i.
    """
    rows: dict[int, dict[int, Sample]] = {}
    for sample in samples:
        rows.setdefault(sample.configuration, {})[sample.round] = sample
    short = [c for c in text_bytes if set(rows.get(c, ())) != set(range(rounds))]
    if short:
        raise Failed(f"{len(short)} configurations have not all {rounds} rounds: let run come to its end first")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    numbers = [f"{i:02d}" for i in range(1, rounds + 1)]
    times = [f"{kind}_us_{i}" for kind in ("optimise", "run") for i in numbers]
    writer.writerow([*PASSES, "text_bytes", "peak_kb", "not_quiet", *times])
    for configuration in sorted(text_bytes):
        mine = [rows[configuration][i] for i in range(rounds)]
        bits = [configuration >> bit & 1 for bit in range(len(PASSES))]
        peak = round(statistics.median(sample.peak_kb for sample in mine))
        loud = sum(1 << sample.round for sample in mine if not sample.quiet)
        optimise, ran = [sample.optimise_us for sample in mine], [sample.run_us for sample in mine]
        writer.writerow([*bits, text_bytes[configuration], peak, loud, *optimise, *ran])
    return out.getvalue()


def shares(samples: Sequence[Sample]) -> dict[str, float]:
    """How much of the optimiser's time the passes take: all but the time of configuration 0, which has none."""
    times: dict[int, list[int]] = {}
    for sample in samples:
        times.setdefault(sample.configuration, []).append(sample.optimise_us)
    means = [statistics.mean(mine) for mine in times.values()]
    without = statistics.mean(times[0])
    mine = sorted(1 - without / mean for mean in means)
    numbers = {
        "of_all_time": 1 - without / statistics.mean(means),
        "median_configuration": statistics.median(mine),
        "least": mine[0],
        "most": mine[-1],
        "configurations_over_80_percent": sum(share > 0.8 for share in mine) / len(mine),
    }
    return {name: round(value, 4) for name, value in numbers.items()}


def minutes(lines: Sequence[dict[str, object]]) -> float:
    """How long all runs took. One that was killed left no duration: it is taken to have lasted until the next start."""
    total = 0.0
    for line, following in itertools.pairwise([*lines, {}]):
        if "minutes" in line:
            total += float(str(line["minutes"]))
        elif "start" in following:
            begin, end = (calendar.timegm(time.strptime(str(x["start"]), "%Y-%m-%dT%H:%MZ")) for x in (line, following))
            total += (end - begin) / 60
    return total


def about(
    place: Place, samples: Sequence[Sample], builds: dict[str, dict[str, str | int]], rounds: int
) -> dict[str, object]:
    """What goes with the table."""
    lines = _sessions(place)
    starts = [line for line in lines if "start" in line]
    by_round = [[s for s in samples if s.round == i] for i in range(rounds)]
    return {
        "name": "llvm-passes",
        "passes": list(PASSES),
        "pipeline": pipeline((1 << len(PASSES)) - 1),
        "llvm": starts[-1]["llvm"],
        "machine": starts[-1]["machine"],
        "module_digest": digest(place.module.read_bytes()),
        "date": str(starts[0]["start"])[:10],
        "starts": len(starts),
        "minutes": round(minutes(lines), 1),
        "protocol": {
            "rounds": rounds,
            "seed": SEED,
            "tolerance": TOLERANCE,
            "most_takes": [[line.get("first_sample", 0), line.get("most_takes", MOST_TAKES)] for line in starts],
            "pause_s": PAUSE,
            "compile": " ".join(COMPILE),
            "optimise": " ".join(OPTIMISE_TIMED),
            "generate": " ".join(GENERATE),
            "programs": [list(variant) for variant in VARIANTS],
        },
        "different_programs": len({built["program"] for built in builds.values()}),
        "optimiser_on_empty_module_us": [line["start_us"] for line in starts],
        "share_of_passes": shares(samples),
        "quietness": {
            "samples": len(samples),
            "taken_again": sum(sample.takes > 1 for sample in samples),
            "retakes": sum(sample.takes - 1 for sample in samples),
            "kept_though_not_quiet": sum(1 - sample.quiet for sample in samples),
            "best_spin_us": [line["best_spin_us"] for line in starts],
        },
        "rounds": [
            {
                "spin_us": statistics.median(s.spin_us for s in mine),
                "optimise_us": round(statistics.mean(s.optimise_us for s in mine)),
                "run_us": round(statistics.mean(s.run_us for s in mine)),
                "retakes": sum(s.takes - 1 for s in mine),
                "not_quiet": sum(1 - s.quiet for s in mine),
            }
            for mine in by_round
        ],
    }


def export(place: Place, configurations: Sequence[int], rounds: int, out: Path) -> None:
    """Writes llvm_passes.csv.gz and llvm_passes.json."""
    builds = json.loads(place.builds.read_text())["builds"]
    journal = Journal(place.journal)
    journal.close()
    wanted = set(configurations)
    samples = [s for s in journal.samples if s.round < rounds and s.configuration in wanted]
    text = table(samples, {c: int(builds[str(c)]["text_bytes"]) for c in configurations}, rounds)
    (out / "llvm_passes.csv.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    facts = about(place, samples, builds, rounds)
    (out / "llvm_passes.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("step", choices=("prepare", "build", "run", "export"))
    parser.add_argument("--work", type=Path, required=True, help="a directory for everything in between")
    parser.add_argument("--llvm", type=Path, default=Path("/usr/lib/llvm-19/bin"), help="where opt, llc and clang are")
    parser.add_argument("--configurations", help="some only: numbers with commas between (default: all 1024)")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--core", type=int, help="the core to stay on (run)")
    parser.add_argument("--takes", type=int, default=MOST_TAKES, help="how often at most a loud sample is taken (run)")
    parser.add_argument("--jobs", type=int, default=1, help="how many to build at a time")
    parser.add_argument("--out", type=Path, default=PACKAGE_DATA, help="where export writes (default: the package)")
    chosen = parser.parse_args(arguments)
    place = Place(chosen.work, chosen.llvm)
    every = range(1 << len(PASSES))
    configurations = [int(c) for c in chosen.configurations.split(",")] if chosen.configurations else list(every)

    def say(text: str) -> None:
        print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)

    try:
        if not set(configurations) <= set(every):
            raise Failed(f"--configurations must be numbers from 0 to {every[-1]}")
        if chosen.step == "prepare":
            prepare(place)
        elif chosen.step == "build":
            build(place, configurations, chosen.jobs, say)
        elif chosen.step == "run":
            run(place, configurations, chosen.rounds, chosen.core, say, chosen.takes)
        else:
            export(place, configurations, chosen.rounds, chosen.out)
    except (Failed, FileNotFoundError) as error:
        print(f"{chosen.step}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
