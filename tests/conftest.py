"""Property tests measure no time: the first call of a kernel may compile it. And servers and workers for studies."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from postgres_server import NoPostgres, PostgresServer

#: What is tested is the compiled kernels, and not those that happen to be compiled by then.
os.environ.setdefault("PARETOSCOUT_COMPILE", "first")

LONG = os.environ.get("PARETOSCOUT_LONG") == "1"

#: How many times as many examples each property test draws in make audit.
MORE = 10 if LONG else 1

#: make test gives the same result every time. make audit draws new examples, and more; a failing one becomes an @example.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("new", deadline=None, max_examples=100 * MORE, print_blob=True)
settings.load_profile("new" if LONG else "same")

#: How a program that a test starts again and again draws the same numbers each time the test runs: by the number of its run.
SEEDED = """import random, sys
with open(sys.argv[0] + ".runs", "ab") as runs:
    runs.write(b"x")
    random.seed(runs.tell())
"""

#: Seconds that nothing takes which is not stuck, however busy the machine is; no test has a shorter limit.
PATIENCE = 3600.0 if LONG else 1200.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test that hangs for all the patience of its own limits ends its process and shows where every thread stood."""
    faulthandler.dump_traceback_later(1.5 * PATIENCE, exit=True, file=item.config.stash[STDERR])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


STDERR = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STDERR] = os.dup(2)  # before it is captured


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "long" in item.keywords and not LONG:
            item.add_marker(pytest.mark.skip(reason="takes minutes: make audit runs it (PARETOSCOUT_LONG=1)"))


def wait_for(what: str, check: Callable[[], Any]) -> Any:
    """Return the first true answer."""
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = check()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"waited {PATIENCE:g} s for {what}"
        time.sleep(0.01)


# PostgreSQL


@pytest.fixture(scope="session")
def postgres_running() -> Iterator[PostgresServer]:
    """A real server, on a folder and a loopback port of its own; it ends with the tests."""
    pytest.importorskip("psycopg")
    try:
        server = PostgresServer(patience=PATIENCE)
    except NoPostgres as problem:
        pytest.skip(str(problem))
    with server:
        yield server


@pytest.fixture(scope="session")
def postgres_server(postgres_running: PostgresServer) -> str:
    """The address of that server."""
    return postgres_running.address


@pytest.fixture
def postgres(postgres_running: PostgresServer) -> str:
    """An address where there is nothing yet."""
    return postgres_running.new_place()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address of each back end."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres"))
    return "memory" if request.param == "memory" else f"sqlite:///{tmp_path / 'study.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address of each back end that several processes can use."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres"))
    return f"sqlite:///{tmp_path / 'study.db'}"


# Workers: processes of their own, forked from one that has loaded everything


class Workers:
    """Starts what `study_worker.py` can do, each in a process of its own."""

    def __init__(self) -> None:
        script = Path(__file__).parent / "study_worker.py"
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, job: str, **how: Any) -> int:
        """Return the number of a new process that does a job."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"job": job, **how}) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def kill(self, number: int) -> None:
        os.kill(number, signal.SIGKILL)
        self.wait(number)

    def wait(self, number: int) -> None:
        wait_for(f"worker {number} to end", lambda: not _lives(number))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        if self.process.stdout is not None:
            self.process.stdout.close()


def _lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    if not hasattr(os, "fork"):
        pytest.skip("workers are forked")
    started = Workers()
    yield started
    started.close()


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a command: empty, and no variable says which study is meant."""
    for variable in ("PARETOSCOUT_STORAGE", "PARETOSCOUT_STUDY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path
