"""What the benchmarks of the server share: a server on a database of its own, and clients in processes of their own."""

from __future__ import annotations

import multiprocessing as mp
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from ledger import METRICS, OPTIONS, Faults, Ledger, faults, outcome_of
from postgres_server import NoPostgres, PostgresServer
from servers import Served

from paretoscout.client import Server, connect
from paretoscout.storage.sql import SQLStorage
from paretoscout.study import Study

__all__ = ["Client", "Cpu", "Load", "NoPostgres", "PostgresServer", "Served", "check", "make_studies", "quantile"]

#: So long a client tries again: a server that is gone for longer is a fault.
PATIENCE = 300.0


@dataclass
class Client:
    """What one client saw: by study, what it was told; of each request, when it began and how long it took."""

    ledgers: dict[str, Ledger] = field(default_factory=dict)
    asks: list[tuple[float, float]] = field(default_factory=list)
    tells: list[tuple[float, float]] = field(default_factory=list)
    pairs: int = 0
    seconds: float = 0.0
    problem: str = ""


def make_studies(server: Server, names: list[str], sigma: Callable[[int], float | None]) -> None:
    """Make studies that do not finish: their options are alike, and no difference is too small to matter."""
    for k, name in enumerate(names):
        server.create(name, OPTIONS, METRICS, sigma=sigma(k), lease="1d")


def work(url: str, names: list[str], batch: int, number: int, begin: Any, over: Any, most: int, out: Any) -> None:
    """Ask and tell until it is over, or so many outcomes were told; hand back what was seen."""
    seen, server = Client({name: Ledger() for name in names}), connect(url, patience=PATIENCE)
    chance = random.Random(number)
    try:
        studies = {name: server.study(name) for name in names}
        for study in studies.values() if most > 1 else ():  # each is loaded before anything is timed
            study.standing()
        begin.wait()
        began = time.perf_counter()
        while not over.is_set() and seen.pairs < most:
            name = chance.choice(names)
            study, ledger = studies[name], seen.ledgers[name]
            before, at = time.perf_counter(), time.time()
            trials = study.ask(batch)
            asked = time.perf_counter()
            ledger.asked += [(trial.number, trial.arm) for trial in trials]
            study.tell_many((trial, outcome_of(trial.number, trial.arm)) for trial in trials)
            told = time.perf_counter()
            ledger.told += [trial.number for trial in trials]
            seen.asks.append((at, asked - before))
            seen.tells.append((at, told - asked))
            seen.pairs += len(trials)
        seen.seconds = time.perf_counter() - began
    except BaseException as problem:
        seen.problem = f"{type(problem).__name__}: {problem}"
    out.send(seen)
    server.close()


class Load:
    """Clients that ask and tell, each in a process of its own."""

    def __init__(self, url: str, names: list[str], batch: int, clients: int = 4, most: int = 10**12) -> None:
        context = mp.get_context("spawn")
        self.begin, self.over = context.Barrier(clients + 1), context.Event()
        self.ends, self.processes = [], []
        for number in range(clients):
            here, there = context.Pipe(duplex=False)
            how = (url, names, batch, number, self.begin, self.over, most, there)
            self.processes.append(context.Process(target=work, args=how, daemon=True))
            self.processes[-1].start()
            there.close()
            self.ends.append(here)

    def start(self) -> None:
        """Let all of them begin at once."""
        self.begin.wait(PATIENCE)

    def end(self) -> list[Client]:
        """Let them finish what they are at, and return what they saw."""
        self.over.set()
        return self.wait()

    def wait(self) -> list[Client]:
        """Wait for them to finish by themselves, and return what they saw."""
        seen: list[Client] = [end.recv() for end in self.ends]
        for process in self.processes:
            process.join()
        return seen


def check(server: Served, storage: str, names: list[str], seen: list[Client]) -> Faults:
    """Compare all that clients were told with what is kept."""
    found, place = Faults(), SQLStorage(storage)
    try:
        for name in names:
            exported = server.json("GET", f"/v1/studies/{name}/export?format=json")
            found += faults(Study.load(name, place), exported, [client.ledgers[name] for client in seen])
    finally:
        place.close()
    return found


def quantile(values: list[float], share: float) -> float:
    """Return the value that a share of all is at most."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


@dataclass(frozen=True)
class Cpu:
    """Seconds of CPU so far: of the whole machine, of all that this process started, and of some of that."""

    at: float
    machine: float
    ours: float
    server: float

    @classmethod
    def now(cls, server: Served) -> Cpu:
        """Return what was used until now, by processes that are there."""
        tick = os.sysconf("SC_CLK_TCK")
        busy = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
        machine = sum(int(busy[k]) for k in (0, 1, 2, 5, 6)) / tick  # user, nice, system, interrupts
        parents, used = {}, {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                said = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it is gone
            number = int(stat.parent.name)
            parents[number], used[number] = int(said[1]), (int(said[11]) + int(said[12])) / tick

        def under(root: int) -> float:
            return sum(seconds for number, seconds in used.items() if root in _line(number, parents))

        return cls(time.monotonic(), machine, under(os.getpid()), under(server.process.pid))

    def since(self, before: Cpu) -> dict[str, float]:
        """Return how many cores were in use meanwhile: by the server, by all of this, by others."""
        passed = self.at - before.at
        ours, machine = self.ours - before.ours, self.machine - before.machine
        return {
            "server": (self.server - before.server) / passed,
            "all of this": ours / passed,
            "others": max(0.0, machine - ours) / passed,
        }


def _line(number: int, parents: dict[int, int]) -> list[int]:
    """Return a process, the one that started it, and so on."""
    found = [number]
    while parents.get(found[-1], 0) > 0:
        found.append(parents[found[-1]])
    return found
