"""`make engines`: one sweep on every engine: are the rows the same, and how long did each take?

Threads, processes, Dask and Ray, all on this machine. On Dask and Ray the sweep runs once more, and one worker is killed
in the middle of it. Every engine gets a folder of its own; then all rows are compared, but for how long they took.

Prints a table, writes JSON, and renews the table in docs/sweeps.md. Exits with 1 if rows differ. An engine that is not
installed is skipped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

import paretoscout as ps
from paretoscout.engines import cores
from paretoscout.errors import MissingExtra
from paretoscout.shown import markdown_table

WORKERS, REPLICATES = 2, 300
PROBLEMS = ["s5", "four-arms"]
ALGORITHMS = ["scout", "multi-pfi", "ape"]
GRID = {"eps": [0.05, 0.1], "scout.regret_weight": [0.0, 0.5]}
#: How each is started; whether a worker is killed in the middle.
ENGINES = (
    ("threads", False),
    ("processes", False),
    ("dask", False),
    ("dask", True),
    ("ray", False),
    ("ray", True),
)
HEAD = ("engine", "seconds", "of work", "rows", "digest of the rows")


def swept(engine: str, kill: bool, replicates: int) -> dict[str, Any]:
    """Run the sweep on an engine; where wanted, kill a worker as soon as there are rows."""
    with tempfile.TemporaryDirectory() as folder:
        rows, killed, over = Path(folder) / "rows", list[int](), threading.Event()
        killer = threading.Thread(target=kill_one, args=(engine, rows, killed, over))
        if kill:
            killer.start()
        began = time.perf_counter()
        try:
            done = ps.sweep(
                PROBLEMS,
                ALGORITHMS,
                grid=GRID,
                replicates=replicates,
                out=rows,
                engine=f"{engine}:{WORKERS}",
                keep=("front", "pulls", "curve"),
                progress=False,
            )
        finally:
            over.set()
        took = time.perf_counter() - began
        if kill:
            killer.join()
        all_rows = [row for cell in done.cells for row in done.rows(cell)]
    told = [{name: value for name, value in row.items() if name != "seconds"} for row in all_rows]
    return {
        "engine": engine,
        "killed": len(killed),
        "seconds": took,
        "work": sum(row["seconds"] for row in all_rows),
        "rows": len(all_rows),
        "code": done.cells[0].code,
        "digest": hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12],
        "table": done.table,
    }


def kill_one(engine: str, rows: Path, killed: list[int], over: threading.Event) -> None:
    """Kill one of the workers that this process has, once there are rows."""
    while not over.wait(0.02):
        if any(rows.glob("*.parquet")):
            for process in psutil.Process().children(recursive=True):
                if is_worker(engine, process):
                    process.kill()
                    killed.append(process.pid)
                    return


def is_worker(engine: str, process: psutil.Process) -> bool:
    """Whether a process works on chunks: Ray calls it by what it does, Dask spawns it."""
    try:
        line = " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return False
    return line.startswith("ray::work") if engine == "ray" else "spawn_main" in line


def title(row: dict[str, Any]) -> str:
    return f"`{row['engine']}`" + (", one worker killed" if row["killed"] else "")


def lines(rows: list[dict[str, Any]]) -> list[list[str]]:
    return [
        [title(row), f"{row['seconds']:.0f}", f"{row['work']:.0f}", f"{row['rows']:,}", f"`{row['digest']}`"]
        for row in rows
    ]


def page(text: str, rows: list[dict[str, Any]]) -> str:
    """Return the page with its table renewed: it begins with its head, and ends before an empty line."""
    table = markdown_table(HEAD, lines(rows))
    head = table.partition("\n")[0]
    before, found, rest = text.partition(head)
    if not found:
        raise SystemExit(f"the page must have a line {head!r}, where the table begins")
    return before + table.rstrip("\n") + rest[rest.index("\n\n") :]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("out/engines.json"))
    parser.add_argument("--page", type=Path, help="the page whose table is written again")
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    options = parser.parse_args()
    screen, rows = Console(width=140), list[dict[str, Any]]()
    swept("threads", False, 1)  # compiles
    for engine, kill in ENGINES:
        try:
            rows.append(swept(engine, kill, options.replicates))
        except MissingExtra as missing:
            screen.print(f"skipped: {missing}")
            continue
        if kill and not rows[-1]["killed"]:
            screen.print(f"{engine}: the sweep was over before a worker could be killed: ask for more --replicates")
            return 1
        screen.print(f"{title(rows[-1])}: {rows[-1]['seconds']:.0f} s")
    table = Table(*HEAD, box=None)
    for line in lines(rows):
        table.add_row(*line)
    screen.print(table)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"cores": cores(), "rows": rows}, indent=1) + "\n")
    same = len({row["digest"] for row in rows}) == 1
    screen.print("the same rows on every engine" if same else "ROWS DIFFER")
    if same and options.page is not None:
        options.page.write_text(page(options.page.read_text(encoding="utf-8"), rows), encoding="utf-8")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
