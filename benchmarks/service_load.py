"""`make service`: how many measurements a second a server takes, and how long a client waits.

PostgreSQL and `paretoscout serve --workers 2` run on this machine, and 4 client processes ask and tell: single pairs and
batches of 8, of one study and of 50. Then the same with somebody who looks at results all the time. Beside it, on the
same PostgreSQL, Optuna's RDB storage with 4 processes. After each case all that clients were told is compared with what
is kept: nothing may be lost, and nothing doubled.

Prints a table and writes JSON; exits with 1 if a target is missed or anything is lost or doubled. Without Optuna its row
is skipped. If the target is missed, and py-spy is installed, a profile says where the time of a server process goes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.beside_servers import (
    Client,
    Cpu,
    Load,
    NoPostgres,
    PostgresServer,
    Served,
    check,
    make_studies,
    quantile,
)
from paretoscout.client import connect

CLIENTS, BATCH, STUDIES = 4, 8, 50
#: Pairs of ask and tell a second, in batches over many studies, on two cores that do nothing else.
TARGET = 300.0
#: What a case is: how many studies, trials in one request, whether sigma is known (None: of every other study), reader.
CASES: dict[str, tuple[int, int, bool | None, bool]] = {
    "a: single pairs, one study": (1, 1, False, False),
    "b: batches of 8, one study": (1, BATCH, False, False),
    "b: the same, sigma known": (1, BATCH, True, False),
    "c: single pairs, 50 studies": (STUDIES, 1, None, False),
    "d: batches of 8, 50 studies": (STUDIES, BATCH, None, False),
    "e: as d, and a reader": (STUDIES, BATCH, None, True),
}
GOAL_CASE, READER_CASE = "d: batches of 8, 50 studies", "e: as d, and a reader"


def run_case(server: Served, storage: str, case: str, seconds: float) -> dict[str, Any]:
    """Measure a case and check what is kept."""
    n_studies, batch, known, reader = CASES[case]
    names = [f"{case[0]}{time.time_ns()}-{k}" for k in range(n_studies)]
    admin = connect(server.url)
    make_studies(admin, names, lambda k: 1.0 if (k % 2 == 0 if known is None else known) else None)
    load = Load(server.url, names, batch, CLIENTS)
    reading = Reader(server.url, names) if reader else None
    load.start()
    before, used = waits(server), Cpu.now(server)
    time.sleep(seconds)
    after, cores = waits(server), Cpu.now(server).since(used)
    seen = load.end()
    admin.close()
    row = summary(seen) | {"what": case, "lock wait": (after - before).as_dict(), "cores": cores}
    if reading is not None:
        row["reader"] = reading.end()
    found = check(server, storage, names, seen)
    problems = [client.problem for client in seen if client.problem]
    return row | {"faults": vars(found), "problems": problems, "met": found.total == 0 and not problems}


def summary(seen: list[Client]) -> dict[str, Any]:
    """Pairs a second, and how long clients waited, in seconds."""
    row: dict[str, Any] = {"pairs/s": sum(client.pairs / max(client.seconds, 1e-9) for client in seen)}
    row["pairs"] = sum(client.pairs for client in seen)
    for what in ("asks", "tells"):
        took = [seconds for client in seen for _, seconds in getattr(client, what)]
        row[what] = {"n": len(took), "p50": quantile(took, 0.5), "p99": quantile(took, 0.99)}
    return row


# Somebody who looks


def look(url: str, names: list[str], over: Any, out: Any) -> None:
    """Ask for the standing and the front of one study after the other, on one connection."""
    server, chance, took = connect(url), random.Random(0), []
    while not over.is_set():
        for what in ("standing", "front"):
            before = time.perf_counter()
            server.call("GET", f"/v1/studies/{chance.choice(names)}/{what}")
            took.append(time.perf_counter() - before)
    out.send(took)
    server.close()


class Reader:
    """Somebody who looks at results all the time, in a process of its own."""

    def __init__(self, url: str, names: list[str]) -> None:
        context = mp.get_context("spawn")
        self.over, (self.here, there) = context.Event(), context.Pipe(duplex=False)
        self.process = context.Process(target=look, args=(url, names, self.over, there), daemon=True)
        self.process.start()

    def end(self) -> dict[str, float]:
        self.over.set()
        took = self.here.recv()
        self.process.join()
        return {"reads": len(took), "p50": quantile(took, 0.5), "p99": quantile(took, 0.99)}


# How long writers waited for their turn, by /metrics


class Waits:
    """How often writers waited at most so long for their turn; and how long in all."""

    def __init__(self, buckets: dict[float, float], total: float) -> None:
        self.buckets, self.total = buckets, total

    def __sub__(self, other: Waits) -> Waits:
        return Waits({le: n - other.buckets.get(le, 0.0) for le, n in self.buckets.items()}, self.total - other.total)

    def at_most(self, share: float) -> float:
        """The bound of the bucket below which so large a share of all waits is."""
        most = max(self.buckets.values(), default=0.0)
        return min((le for le, n in self.buckets.items() if n >= share * most), default=float("nan"))

    def as_dict(self) -> dict[str, Any]:
        n = max(self.buckets.values(), default=0.0)
        mean = self.total / n if n else float("nan")
        return {"n": n, "mean": mean, "p50 at most": self.at_most(0.5), "p99 at most": self.at_most(0.99)}


def waits(server: Served) -> Waits:
    """Return what the server has counted so far."""
    text = server.send("GET", "/metrics")[2].decode()
    buckets = {
        float(le.replace("+Inf", "inf")): float(n)
        for le, n in re.findall(r'paretoscout_lock_wait_seconds_bucket\{le="([^"]+)"\} (\S+)', text)
    }
    total = re.search(r"paretoscout_lock_wait_seconds_sum (\S+)", text)
    return Waits(buckets, float(total[1]) if total else 0.0)


# Optuna


def optuna_work(url: str, number: int, begin: Any, seconds: float, out: Any) -> None:
    """Ask and tell for a while."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seen, chance = Client(), random.Random(number)
    try:
        study = optuna.load_study(study_name="load", storage=url)
        begin.wait()
        began = time.perf_counter()
        while time.perf_counter() < began + seconds:
            before = time.perf_counter()
            trial = study.ask()
            trial.suggest_categorical("option", [f"option {k}" for k in range(8)])
            asked = time.perf_counter()
            study.tell(trial, [chance.random(), chance.random()])
            seen.asks.append((before, asked - before))
            seen.tells.append((asked, time.perf_counter() - asked))
            seen.pairs += 1
        seen.seconds = time.perf_counter() - began
    except BaseException as problem:
        seen.problem = f"{type(problem).__name__}: {problem}"
    out.send(seen)


def optuna_case(postgres: PostgresServer, seconds: float) -> dict[str, Any]:
    """The same with Optuna's RDB storage, on one study."""
    row: dict[str, Any] = {"what": "Optuna, single pairs, one study"}
    try:
        import optuna
    except ImportError:
        return row | {"skipped": "Optuna is not installed"}
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    url = postgres.new_place().replace("postgresql://", "postgresql+psycopg://")
    optuna.create_study(study_name="load", storage=url, directions=["maximize", "minimize"])
    context = mp.get_context("spawn")
    begin, pipes, processes = context.Barrier(CLIENTS), [], []
    for number in range(CLIENTS):
        here, there = context.Pipe(duplex=False)
        processes.append(context.Process(target=optuna_work, args=(url, number, begin, seconds, there), daemon=True))
        processes[-1].start()
        pipes.append(here)
    seen = [pipe.recv() for pipe in pipes]
    for process in processes:
        process.join()
    problems = [client.problem for client in seen if client.problem]
    return row | summary(seen) | {"problems": problems}


# Where the time goes


def profile(server: Served, storage: str, seconds: float) -> list[dict[str, Any]]:
    """Return in which functions a server process spends its time under load, those with the largest share first.

    own: in the function itself; with: and in what it calls.
    """
    if shutil.which("py-spy", path=str(Path(sys.executable).parent)) is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        names = [f"p{time.time_ns()}-{k}" for k in range(STUDIES)]
        admin = connect(server.url)
        make_studies(admin, names, lambda k: 1.0 if k % 2 else None)
        admin.close()
        load = Load(server.url, names, BATCH, CLIENTS)
        load.start()
        raw = Path(folder) / "raw"
        spy = [str(Path(sys.executable).parent / "py-spy"), "record", "--gil", "-f", "raw", "-r", "200", "-o", str(raw)]
        child = next(number for number in server.children() if "spawn_main" in command_of(number))
        subprocess.run([*spy, "-d", str(int(seconds)), "-p", str(child)], capture_output=True, check=False)
        load.end()
        return of_stacks(raw.read_text() if raw.exists() else "")


def command_of(number: int) -> str:
    return Path(f"/proc/{number}/cmdline").read_text()


def of_stacks(text: str) -> list[dict[str, Any]]:
    own: Counter[str] = Counter()
    inclusive: Counter[str] = Counter()
    total = 0
    for line in text.splitlines():
        stack, _, n = line.rpartition(" ")
        frames = [re.sub(r":\d+\)$", ")", frame) for frame in stack.split(";")]
        total += int(n)
        own[frames[-1]] += int(n)
        for frame in set(frames):
            inclusive[frame] += int(n)
    top = sorted(inclusive, key=lambda frame: -inclusive[frame])
    return [{"function": each, "own": own[each] / total, "with": inclusive[each] / total} for each in top[:150]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("out/service.json"))
    parser.add_argument("--seconds", type=float, default=60.0, help="of each case")
    parser.add_argument("--short", action="store_true", help="5 seconds of each case")
    parser.add_argument("--cases", nargs="*", default=list("abcdeo"), help="which of a b c d e; o: Optuna")
    parser.add_argument("--profile", action="store_true", help="say where the time goes, whatever comes out")
    arguments = parser.parse_args()
    seconds = 5.0 if arguments.short else arguments.seconds
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what it started ends with it
    screen = Console(width=150)
    rows, where = [], []
    try:
        postgres = PostgresServer(fsync=True)
    except NoPostgres as problem:
        screen.print(f"skipped: {problem}")
        return 0
    with postgres:
        storage = postgres.new_place()
        server = Served(storage, "--workers", "2").ready()
        try:
            for case in CASES:
                if case[0] in arguments.cases:
                    rows.append(run_case(server, storage, case, seconds))
                    screen.print(f"{case}: {rows[-1]['pairs/s']:,.0f} pairs/s", rows[-1]["problems"] or "")
            for row in rows:
                if row["what"] == GOAL_CASE:
                    row |= {"least": TARGET, "met": row["met"] and row["pairs/s"] >= TARGET}
            if arguments.profile or not all(row["met"] for row in rows):
                where = profile(server, storage, min(20.0, seconds))
        finally:
            server.stop()
        if "o" in arguments.cases:
            rows.append(optuna_case(postgres, seconds))
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({"seconds": seconds, "rows": rows, "profile": where}, indent=2))
    show(screen, rows, where)
    return 0 if all(row.get("met", True) for row in rows) else 1


def show(screen: Console, rows: list[dict[str, Any]], where: list[dict[str, Any]]) -> None:
    """Print what was measured."""
    heads = (
        "case",
        "pairs/s",
        "target",
        "ask p50",
        "p99",
        "tell p50",
        "p99",
        "lock wait",
        "p99 ≤",
        "wrong",
        "others' cores",
    )
    table = Table(*heads, box=None)
    for row in rows:
        if "skipped" in row:
            table.add_row(row["what"], "skipped", row["skipped"])
            continue
        times = [f"{1e3 * row[what][share]:,.1f} ms" for what in ("asks", "tells") for share in ("p50", "p99")]
        wait = row.get("lock wait")
        waited = [f"{1e3 * wait[key]:,.1f} ms" for key in ("mean", "p99 at most")] if wait else ["", ""]
        found = str(sum(row["faults"].values())) if "faults" in row else ""
        target = f"≥ {row['least']:g} {'ok' if row['met'] else 'MISSED'}" if "least" in row else ""
        busy = f"{row['cores']['others']:.2f}" if "cores" in row else ""
        table.add_row(row["what"], f"{row['pairs/s']:,.1f}", target, *times, *waited, found, busy)
    screen.print(table)
    screen.print("wrong: outcomes or trials that were lost, doubled or changed. others' cores: what ran beside it.")
    by_name = {row["what"]: row for row in rows}
    if READER_CASE in by_name:
        reader = by_name[READER_CASE]["reader"]
        screen.print(
            f"the reader: {reader['reads']:,} reads, p50 {1e3 * reader['p50']:.1f} ms, p99 {1e3 * reader['p99']:.1f} ms"
        )
    for row in rows:
        for problem in row.get("problems", ()):
            screen.print(f"{row['what']}: {problem}")
    if where:
        profiled = Table("where a server process spends its time", "with what it calls", "itself", box=None)
        for each in where[:60]:
            profiled.add_row(each["function"], f"{each['with']:.1%}", f"{each['own']:.1%}")
        screen.print(profiled)


if __name__ == "__main__":
    sys.exit(main())
