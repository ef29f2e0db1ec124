"""`make service`: a server that is killed again and again, and one that is used for long.

Killed: 4 client processes ask and tell, in batches of 8 over 50 studies, on PostgreSQL. All processes of the server
(`paretoscout serve --workers 2`) are killed, 50 times, each time when it is at work, and it is started again at the same
port. Twice PostgreSQL itself is ended at once and started again. Clients send what was not answered again, with the same
key. At the end every outcome that was acknowledged must be there once, every trial that was handed out must be in the
log once, nobody may have got the trial of somebody else, and every log must replay to the same state.

Attacked: see service_attacks.py; no attack may succeed.

Soak: 200,000 outcomes of one study, in batches, on SQLite and on PostgreSQL. How long an answer takes must not grow (the
median of the last quarter is at most 1.5 times that of the first), nor the memory of the server.

Prints tables and writes JSON; exits with 1 if anything is lost or doubled, or grows, or an attack succeeds.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import service_attacks, service_operations  # noqa: F401 - its attacks are added to the table
from benchmarks.beside_servers import (
    Client,
    Load,
    NoPostgres,
    PostgresServer,
    Served,
    check,
    make_studies,
    quantile,
)
from paretoscout.client import connect
from paretoscout.storage.sql import SQLStorage
from paretoscout.study import Study

CLIENTS, BATCH, STUDIES = 4, 8, 50
KILLS, POSTGRES_RESTARTS = 50, 2
SOAK, SOAK_BATCH, SOAK_CLIENTS = 200_000, 50, 2
#: The last quarter may take so many times as long as the first.
FLAT = 1.5
#: Bytes of memory that a server may take more at the end than after the first quarter.
GROWTH = 150 * 2**20


# Killed


def killed(postgres: PostgresServer, kills: int, screen: Console) -> dict[str, Any]:
    """Kill a server so many times while it is at work, and compare what is kept with what clients were told."""
    storage, chance = postgres.new_place(), random.Random(0)
    server = Served(storage, "--workers", "2").ready()
    try:
        names = [f"study-{k}" for k in range(STUDIES)]
        admin = connect(server.url)
        make_studies(admin, names, lambda k: 1.0 if k % 2 else None)
        admin.close()
        load = Load(server.url, names, BATCH, CLIENTS)
        load.start()
        began, downs = time.monotonic(), []
        restarts = {kills * (k + 1) // (POSTGRES_RESTARTS + 1) for k in range(POSTGRES_RESTARTS)}
        for kill in range(kills):
            under_way(storage)
            time.sleep(chance.random())
            if kill in restarts:
                postgres.stop()
                time.sleep(1.0)
                postgres.start()
                under_way(storage)
            server.kill()
            down = time.monotonic()
            server.start()
            under_way(storage)
            downs.append(time.monotonic() - down)
            if (kill + 1) % 5 == 0:
                screen.print(f"killed {kill + 1} times, {time.monotonic() - began:.0f} s")
        seen = load.end()
        found = check(server.ready(), storage, names, seen)
    finally:
        if server.process.poll() is None:
            server.stop()
    problems = [client.problem for client in seen if client.problem]
    asked = sum(len(ledger.asked) for client in seen for ledger in client.ledgers.values())
    told = sum(len(ledger.told) for client in seen for ledger in client.ledgers.values())
    return {
        "kills": kills,
        "PostgreSQL ended": len(restarts),
        "seconds": time.monotonic() - began,
        "trials handed out": asked,
        "outcomes acknowledged": told,
        "seconds until outcomes come in again": quantile(downs, 0.5),
        "faults": vars(found),
        "problems": problems,
        "met": found.total == 0 and not problems and told > 0,
    }


def under_way(storage: str, events: int = 32) -> None:
    """Wait until clients have got something done, so many events of it."""
    place = SQLStorage(storage)
    try:
        enough, deadline = sum(place.lasts().values()) + events, time.monotonic() + 600.0
        while sum(place.lasts().values()) < enough:
            if time.monotonic() > deadline:
                raise TimeoutError("clients get nothing done any more")
            time.sleep(0.02)
    finally:
        place.close()


# Used for long


def memory_of(server: Served) -> int:
    """Bytes of memory that all processes of a server have."""
    total = 0
    for number in (server.process.pid, *server.children()):
        for line in Path(f"/proc/{number}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1]) * 1024
    return total


def soaked(storage: str, where: str, outcomes: int) -> dict[str, Any]:
    """Tell a study so many outcomes, and look at latency and memory over time."""
    server = Served(storage).ready()
    try:
        admin = connect(server.url)
        make_studies(admin, ["soak"], lambda _: 1.0)
        admin.close()
        load = Load(server.url, ["soak"], SOAK_BATCH, SOAK_CLIENTS, most=outcomes // SOAK_CLIENTS)
        sampled: list[tuple[float, int]] = []
        over = threading.Event()

        def sample() -> None:
            while not over.wait(1.0):
                sampled.append((time.time(), memory_of(server)))

        load.start()
        began = time.time()
        sampler = threading.Thread(target=sample)
        sampler.start()
        seen = load.wait()
        took = time.time() - began
        over.set()
        sampler.join()
        found = check(server, storage, ["soak"], seen)
    finally:
        server.stop()
    place = SQLStorage(storage)
    state = Study.load("soak", place).nbytes
    place.close()
    row = quarters(seen, sampled) | {"where": where, "outcomes": sum(client.pairs for client in seen), "seconds": took}
    problems = [client.problem for client in seen if client.problem]
    flat = all(row[what]["ratio"] <= FLAT for what in ("asks", "tells")) and row["memory"]["growth"] <= GROWTH
    met = flat and found.total == 0 and not problems
    return row | {"state of the study": state, "faults": vars(found), "problems": problems, "met": met}


def quarters(seen: list[Client], sampled: list[tuple[float, int]]) -> dict[str, Any]:
    """Compare the first quarter of all requests with the last: medians, and memory at the end of each."""
    row: dict[str, Any] = {}
    for what in ("asks", "tells"):
        took = [seconds for _, seconds in sorted(each for client in seen for each in getattr(client, what))]
        fourth = max(1, len(took) // 4)
        first, last = quantile(took[:fourth], 0.5), quantile(took[-fourth:], 0.5)
        row[what] = {"n": len(took), "first": first, "last": last, "ratio": last / first}
    after_first = sampled[len(sampled) // 4][1] if sampled else 0
    at_end = sampled[-1][1] if sampled else 0
    few = [bytes_ for _, bytes_ in sampled[:: max(1, len(sampled) // 20)]]
    row["memory"] = {"first": after_first, "last": at_end, "growth": at_end - after_first, "over time": few}
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("out/service-trust.json"))
    parser.add_argument("--kills", type=int, default=KILLS, help="0: none")
    parser.add_argument("--soak", type=int, default=SOAK, help="outcomes; 0: none")
    parser.add_argument("--attacks", default="", help="those whose line contains this text; 'none': none")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what it started ends with it
    screen = Console(width=150)
    rows: dict[str, Any] = {"soak": []}
    rows["attacked"] = service_attacks.run_all(screen, arguments.attacks)
    held = all(row["met"] for row in rows["attacked"])
    try:
        postgres = PostgresServer(fsync=True)
    except NoPostgres as problem:
        screen.print(f"skipped: {problem}")
        return 0 if held else 1
    with postgres, tempfile.TemporaryDirectory() as folder:
        if arguments.kills:
            rows["killed"] = killed(postgres, arguments.kills, screen)
            show_killed(screen, rows["killed"])
        for where in ("SQLite", "PostgreSQL") if arguments.soak else ():
            storage = f"sqlite:///{folder}/soak.db" if where == "SQLite" else postgres.new_place()
            rows["soak"].append(soaked(storage, where, arguments.soak))
        show_soak(screen, rows["soak"])
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(rows, indent=2))
    results = [*rows["attacked"], *rows["soak"], *([rows["killed"]] if "killed" in rows else [])]
    return 0 if all(row["met"] for row in results) else 1


def show_killed(screen: Console, row: dict[str, Any]) -> None:
    table = Table("killed", "", box=None)
    for name, value in row.items():
        if name not in ("faults", "problems", "met"):
            table.add_row(name, f"{value:,.4g}" if isinstance(value, float) else f"{value:,}")
    for name, count in row["faults"].items():
        table.add_row(name.replace("_", " "), f"{count:,}")
    screen.print(table, *row["problems"], "ok" if row["met"] else "FAILED")


def show_soak(screen: Console, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    table = Table("soak", *(row["where"] for row in rows), box=None)
    table.add_row("outcomes", *(f"{row['outcomes']:,} in {row['seconds']:,.0f} s" for row in rows))
    for what in ("asks", "tells"):
        quarter = [(1e3 * row[what]["first"], 1e3 * row[what]["last"], row[what]["ratio"]) for row in rows]
        table.add_row(
            f"{what} of {SOAK_BATCH}: median, first and last quarter",
            *(f"{first:.1f} and {last:.1f} ms: {ratio:.2f} times (≤ {FLAT:g})" for first, last, ratio in quarter),
        )
    mega = 2**20
    table.add_row(
        "memory after the first quarter, and at the end",
        *(f"{row['memory']['first'] / mega:,.0f} and {row['memory']['last'] / mega:,.0f} MB" for row in rows),
    )
    table.add_row("state of the study", *(f"{row['state of the study'] / mega:.2f} MB" for row in rows))
    table.add_row("lost or doubled", *(f"{sum(row['faults'].values())}" for row in rows))
    table.add_row("", *("ok" if row["met"] else "FAILED" for row in rows))
    screen.print(table, *(problem for row in rows for problem in row["problems"]))


if __name__ == "__main__":
    sys.exit(main())
