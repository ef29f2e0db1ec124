"""Why a server can be trusted: killed, restarted, ended and held up, it loses nothing and does nothing twice."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
from conftest import PATIENCE, wait_for
from flaky import Flaky
from ledger import METRICS, OPTIONS, Faults, Ledger, faults, outcome_of
from servers import Clients, Served, served

from paretoscout.client import RemoteStudy
from paretoscout.errors import StorageUnavailable
from paretoscout.service.settings import ServerSettings
from paretoscout.service.start import _bound
from paretoscout.storage.sql import SQLStorage
from paretoscout.study import Study

#: A request must have arrived within so many seconds, in these tests.
SECONDS = 2.0


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'service.db'}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for those tests that do it no harm."""
    file = tmp_path_factory.mktemp("server") / "service.db"
    with served(f"sqlite:///{file}", limits={"seconds": SECONDS}) as server:
        yield server


@pytest.fixture
def clients() -> Iterator[Clients]:
    found = Clients()
    yield found
    found.close()


def new_study(clients: Clients, url: str, name: str = "study") -> RemoteStudy:
    """A study that does not finish: its options are alike."""
    return clients.connect(url).create(name, OPTIONS, METRICS, sigma=1.0)


class Load:
    """Clients that ask and tell, each in a thread of its own, until they are told to stop or the server is gone."""

    def __init__(self, clients: Clients, url: str, n_clients: int = 2, patience: float = PATIENCE) -> None:
        self.ledgers = [Ledger() for _ in range(n_clients)]
        self.over = threading.Event()
        self.problems: list[Exception] = []
        studies = [clients.connect(url, patience=patience).study() for _ in self.ledgers]
        self.threads = [
            threading.Thread(target=self._work, args=each) for each in zip(studies, self.ledgers, strict=True)
        ]
        for thread in self.threads:
            thread.start()

    def _work(self, study: RemoteStudy, ledger: Ledger) -> None:
        try:
            while not self.over.is_set():
                trials = study.ask(3)
                ledger.asked += [(trial.number, trial.arm) for trial in trials]
                study.tell_many((trial, outcome_of(trial.number, trial.arm)) for trial in trials)
                ledger.told += [trial.number for trial in trials]
        except Exception as problem:
            self.problems.append(problem)

    @property
    def told(self) -> int:
        return sum(len(ledger.told) for ledger in self.ledgers)

    def wait_for(self, more: int) -> None:
        """Wait until so many more outcomes were taken."""
        enough = self.told + more
        wait_for(f"{more} outcomes to be taken", lambda: self.told >= enough or self.problems)

    def end(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(PATIENCE)


@contextmanager
def killed_at_last(server: Served) -> Iterator[Served]:
    """Whatever happens in a test, its server ends."""
    try:
        yield server.ready()
    finally:
        if server.process.poll() is None:
            server.kill()


def check(server: Served, ledgers: list[Ledger], answered: bool = True) -> None:
    """All that clients were told is there, once."""
    exported = server.json("GET", "/v1/studies/study/export?format=json")
    study = Study.load("study", SQLStorage(server.storage))
    assert faults(study, exported, ledgers, answered) == Faults()


# Killed


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.long)])
def test_a_server_that_is_killed_loses_nothing_and_does_nothing_twice(clients: Clients, place: str, kills: int) -> None:
    with killed_at_last(Served(place)) as server:
        new_study(clients, server.url)
        load = Load(clients, server.url)
        try:
            for _ in range(kills):
                load.wait_for(30)
                server.kill()
                server.start()
            load.wait_for(30)
        finally:
            load.end()
        assert load.problems == []
        check(server, load.ledgers)


@pytest.mark.long
def test_a_server_killed_between_request_and_answer_does_it_once(clients: Clients, place: str) -> None:
    """What was asked for is done, the answer is lost with the server, and the client asks again by the same key."""
    with killed_at_last(Served(place)) as server:
        armed = threading.Event()

        def lose(answer: bytes) -> bool:
            if not armed.is_set():
                return False
            armed.clear()
            server.kill()
            threading.Thread(target=server.start).start()
            return True

        with Flaky(server.port, lose) as network:
            study = new_study(clients, network.url)
            armed.set()
            ledger = Ledger([(trial.number, trial.arm) for trial in study.ask(4)])
            armed.set()
            study.tell_many((trial, outcome_of(trial, option)) for trial, option in ledger.asked)
            ledger.told = [trial for trial, _ in ledger.asked]
            assert network.lost == 2
        check(server, [ledger])


@pytest.mark.long
def test_the_processes_of_a_server_end_with_it_and_make_room_for_the_next(clients: Clients, place: str) -> None:
    """Only the first process is killed, by a system that is out of memory: the port must become free."""
    with killed_at_last(Served(place, "--workers", "2")) as server:
        new_study(clients, server.url).ask()
        children = wait_for("its processes", lambda: len(found := server.children()) >= 2 and found)
        server.kill_parent()
        wait_for("them to end", lambda: not any(Path(f"/proc/{number}").exists() for number in children))
        server.start()
        assert clients.connect(server.url).study().ask().number == 1


# Ended


def test_a_server_that_is_told_to_end_finishes_what_it_began(clients: Clients, place: str) -> None:
    """What was acknowledged is there, the exit code is 0, and readers of live events are let go."""
    with killed_at_last(Served(place)) as server:
        new_study(clients, server.url)
        reader = connected(server)
        reader.request("GET", "/v1/studies/study/events?brief=true")
        stream = reader.getresponse()
        assert stream.readline() == b"retry: 3000\n"
        load = Load(clients, server.url, patience=0.0)
        load.wait_for(30)
        server.process.send_signal(signal.SIGTERM)
        while stream.readline():
            pass  # it ends
        reader.close()
        assert server.process.wait(PATIENCE) == 0
        load.end()
        assert [type(problem) for problem in load.problems] == [StorageUnavailable] * 2
        server.start()
        check(server.ready(), load.ledgers, answered=False)
        assert server.stop() == 0


# Held up


def connected(server: Served) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)


def test_a_client_that_sends_half_a_request_is_cut_off_and_holds_up_nobody(clients: Clients, server: Served) -> None:
    study = new_study(clients, server.url, "patient")
    half = b'POST /v1/studies/patient/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"count": '
    slow = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(5)]
    began = time.monotonic()
    for each in slow:
        each.sendall(half)
    for _ in range(5):
        trial = study.ask()
        study.tell(trial, outcome_of(trial.number, trial.arm))
    for each in slow:
        answer = b"".join(iter(lambda: each.recv(4096), b""))  # noqa: B023 - until it is closed
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"urn:paretoscout:problem:too-slow" in answer
        each.close()
    assert time.monotonic() - began >= SECONDS - 0.5
    assert server.json("GET", "/v1/studies/patient/standing")["asked"] == 5


def test_answers_are_sent_at_once() -> None:
    """Without it every answer takes 40 ms more: its end waits until the client confirms its beginning."""
    with _bound(ServerSettings("nowhere.db", port=0)) as bound:
        assert bound.proto == socket.IPPROTO_TCP, "asyncio looks at it"
        with socket.create_connection(bound.getsockname()), bound.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# Watched


def test_what_another_process_does_to_a_study_is_seen_live(clients: Clients, server: Served) -> None:
    """This process changes the study in its storage; the server sees it there, and tells who watches."""
    new_study(clients, server.url, "watched")
    reader = connected(server)
    reader.request("GET", "/v1/studies/watched/events")
    stream = reader.getresponse()
    assert stream.getheader("content-type") == "text/event-stream; charset=utf-8"
    assert stream.readline() == b"retry: 3000\n"
    study = Study.load("watched", SQLStorage(server.storage))
    for number in range(2):
        trial = study.ask()
        seen = wait_for("the event", lambda: (line := stream.readline()).startswith(b"id: ") and line)
        assert int(seen[4:]) == trial.number == number
    reader.close()


# Measured from several machines

#: Waits until two workers have begun; then prints what was measured of an option.
MEASURE = """#!/bin/sh
touch "began.$PPID"
while [ "$(ls began.* | wc -l)" -lt 2 ]; do sleep 0.05; done
cat "$1.txt"
"""
TRUTH = {"small": "quality=0.6 cost=1", "large": "quality=0.9 cost=4", "huge": "quality=0.5 cost=9"}


def test_a_second_worker_joins_by_one_command(clients: Clients, server: Served, tmp_path: Path) -> None:
    clients.connect(server.url).create("shared", list(TRUTH), METRICS, sigma=0.05)
    (tmp_path / "measure").write_text(MEASURE)
    for name, outcome in TRUTH.items():
        (tmp_path / f"{name}.txt").write_text(outcome)
    argv = [sys.executable, "-m", "paretoscout", "run", "sh measure {arm}", "--server", server.url, "--name", "shared"]
    there = os.environ | {"PARETOSCOUT_TOKEN": ""}
    how: dict[str, Any] = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen(argv, env=there, **how) for _ in range(2)]
    said = [worker.communicate(timeout=PATIENCE) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], said
    assert all("huge is dominated" in out for out, _ in said), said
    study = Study.load("shared", SQLStorage(server.storage))
    assert study.done
    assert study.front() == ["small", "large"]
    tells = [event for event in study.storage.events("shared") if event.kind == "tell"]
    assert len({event.by for event in tells}) == 2
