"""A server in operation: a database that is starting, a full disk, the log, numbers, the end, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import tempfile
import time
import urllib.request
from collections import namedtuple
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
from conftest import PATIENCE, wait_for
from fastapi.testclient import TestClient
from servers import Served, served

from paretoscout.service.app import make_app
from paretoscout.service.settings import ServerSettings
from paretoscout.service.tokens import Tokens
from paretoscout.storage.sql import SQLStorage

STUDY: dict[str, Any] = {"name": "models", "arms": ["a", "b"], "metrics": {"ms": "min"}, "sigma": 1}


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'service.db'}"


@pytest.fixture
def client(place: str) -> Iterator[TestClient]:
    app = make_app(ServerSettings(place, warm=False))
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def log_of(server: Served) -> list[dict[str, Any]]:
    """Read the log: each line of it must be JSON."""
    return [json.loads(text) for text in list(server.lines)]


# The storage


def test_it_waits_for_a_database_that_is_starting() -> None:
    psycopg = pytest.importorskip("psycopg")
    from postgres_server import NoPostgres, PostgresServer

    try:
        postgres = PostgresServer()
    except NoPostgres as problem:
        pytest.skip(str(problem))
    with postgres:
        storage = postgres.new_place()
        postgres.stop()
        server = Served(storage)
        try:
            wait_for("the server to answer", lambda: server.status("GET", "/healthz") == 200)
            status, _, body = server.send("GET", "/readyz")
            assert status == 503
            assert json.loads(body)["type"].endswith((":storage-unavailable", ":not-ready"))
            assert server.status("GET", "/v1/studies") == 503
            postgres.start()
            psycopg.connect(storage).close()
            server.ready()
            assert server.send("POST", "/v1/studies", STUDY)[0] == 201
            said = [each["message"] for each in log_of(server)]
            assert "the storage can be reached again" in said
        finally:
            assert server.stop() == 0


def test_it_is_not_ready_on_a_full_disk(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.get("/readyz").status_code == 200
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(10**9, 10**9, 4096))
    refused = client.get("/readyz")
    assert refused.status_code == 503
    assert "the disk is full, with 4,096 bytes free" in refused.json()["detail"]
    monkeypatch.undo()
    assert client.get("/readyz").status_code == 200


def test_it_is_not_ready_where_nothing_can_be_written(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What SQLite says where the disk is full, or has become one that can only be read."""
    app = make_app(ServerSettings(place, warm=False))
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        assert client.get("/readyz").status_code == 200
        storage, connect = app.state.service.storage, sqlite3.connect
        storage.close()

        def only_to_read(*args: Any, **how: Any) -> sqlite3.Connection:
            connection = connect(*args, **how)
            connection.execute("PRAGMA query_only = ON")
            return connection

        monkeypatch.setattr(sqlite3, "connect", only_to_read)
        refused = client.get("/readyz")
        assert refused.status_code == 503
        assert "attempt to write a readonly database" in refused.json()["detail"]
        assert client.get("/v1/studies").status_code == 200, "it can be read all the same"
        storage.close()


# Tokens in clear text


@pytest.mark.parametrize("https", [False, True])
def test_clear_text_is_said(place: str, https: bool) -> None:
    Tokens(SQLStorage(place)).create("admin")
    server = Served(place, "--host", "0.0.0.0", *(["--https"] if https else []))
    try:
        said = "".join(each["message"] for each in log_of(server))
    finally:
        server.stop()
    assert ("travel in clear text to and from 0.0.0.0" in said) == (not https)


# The log


def test_the_log_is_lines_of_json_with_all_that_changes_who_may_do_what(place: str) -> None:
    tokens = Tokens(SQLStorage(place))
    admin = bearer(tokens.create("admin"))
    with served(place, "--workers", "2") as server:
        server.send("POST", "/v1/studies", STUDY, admin)
        assert server.send("DELETE", "/v1/studies/models", None, {**admin, "X-Request-ID": "from-a-proxy.1"})[0] == 204
        wait_for("the first look at tokens", lambda: len(log_of(server)) > 2)
        time.sleep(2.5)
        made = tokens.create("tell", "models", 3600.0, "GPU", by="anna@desk")
        wait_for("the line of a token that was made", lambda: "token made" in "".join(server.lines))
        tokens.revoke(made.split("_")[1], by="ben@desk")
        wait_for("the line of a token that was revoked", lambda: "token revoked" in "".join(server.lines))
        urllib.request.urlopen(server.url + "/healthz").close()
        time.sleep(2.5)  # the other process has looked, too
        lines = log_of(server)
    id_ = made.split("_")[1]
    (line,) = [each for each in lines if each["message"] == "token made"]
    assert (line["token"], line["scope"], line["study"], line["who"]) == (id_, "tell", "models", "anna@desk")
    assert line["ends"] - line["when"] == pytest.approx(3600.0)
    (line,) = [each for each in lines if each["message"] == "token revoked"]
    assert (line["token"], line["who"]) == (id_, "ben@desk")
    (line,) = [each for each in lines if each["message"] == "study deleted"]
    assert (line["who"], line["study"]) == (admin["Authorization"].split("_")[1], "models")
    assert line["request"] == "from-a-proxy.1"
    assert not any(made in text for text in server.lines)


def test_what_others_say_is_json_too(place: str) -> None:
    with served(place) as server:
        import socket

        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.sendall(b"\x00\x01 no request at all\r\n\r\n")
            raw.recv(1000)
        lines = log_of(server)
    assert lines
    assert all({"at", "level", "message"} <= set(each) for each in lines)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("4bf92f3577b34da6", True),
        ("A.b-c_1", True),
        ("a" * 64, True),
        ("a" * 65, False),
        ("", False),
        ("two words", False),
        ('"quoted"', False),
        ("ü", False),
    ],
)
def test_the_number_of_a_request_is_taken_over(client: TestClient, given: str, taken: bool) -> None:
    answer = client.get("/v1/studies/nope/front", headers=[(b"x-request-id", given.encode("latin-1"))])
    assert (answer.headers["x-request-id"] == given) == taken
    assert answer.json()["instance"].endswith(answer.headers["x-request-id"])
    assert len(answer.headers["x-request-id"]) <= 64


# Numbers


def test_numbers_have_memory_processor_threads_and_wrong_tokens(place: str) -> None:
    tokens = Tokens(SQLStorage(place))
    right = bearer(tokens.create("metrics"))
    with served(place, "--workers", "2") as server:
        for _ in range(3):
            assert server.status("GET", "/v1/studies", None, **bearer("ps_wrong")) == 401

        def numbers() -> dict[str, float]:
            text = server.send("GET", "/metrics", None, right)[2].decode()
            rows = (row.rpartition(" ") for row in text.splitlines() if not row.startswith("#"))
            return {name: float(value) for name, _, value in rows}

        wait_for("both processes to look", lambda: numbers().get("paretoscout_memory_bytes", 0) > 2 * 50 * 2**20)
        found = numbers()
        assert found["paretoscout_wrong_tokens_total"] == 3
        assert found["paretoscout_cpu_seconds_total"] > 0
        assert "paretoscout_threads_in_use" in found
        os.kill(server.children()[0], signal.SIGKILL)
        before = found["paretoscout_memory_bytes"]
        wait_for(
            "the memory of what is gone to be forgotten", lambda: numbers()["paretoscout_memory_bytes"] < 1.9 * before
        )


def test_a_token_for_numbers_sees_nothing_else(client: TestClient, place: str) -> None:
    client.post("/v1/studies", json=STUDY)
    token = Tokens(SQLStorage(place)).create("metrics")
    time.sleep(1.1)  # the server notices within a second
    assert client.get("/metrics", headers=bearer(token)).status_code == 200
    client.cookies.set("paretoscout_token", token)
    seen = 0
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method in methods:
            if path in ("/metrics", "/healthz", "/readyz"):
                continue
            for headers in (bearer(token), {}):
                answer = client.request(
                    method, path.replace("{name}", "models").replace("{trial}", "0"), headers=headers
                )
                assert answer.status_code in (403, 422), (method, path, answer.status_code)
                seen += 1
    for path in ("/", "/studies/models", "/s/models"):
        assert client.get(path, headers={"Accept": "text/html", **bearer(token)}).status_code in (403, 404), path
    assert seen > 30


# The end

#: A server that has a route which computes for a minute.
SLOW = """
import sys, time, uvicorn
from paretoscout.service import app as service
from paretoscout.service.settings import ServerSettings
service.END_SECONDS = 3.0
app = service.make_app(ServerSettings(sys.argv[1], warm=False))
app.add_api_route("/slow", lambda: time.sleep(60.0))
print("here", flush=True)
uvicorn.run(app, port=int(sys.argv[2]), log_config=None, timeout_graceful_shutdown=2)
"""


def test_it_ends_in_time_also_during_slow_reads(place: str) -> None:
    import socket
    import subprocess
    import threading

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", SLOW, place, str(port)], stdout=subprocess.DEVNULL)

    def answers() -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz").close()
        except OSError:
            return False
        return True

    def read_slowly() -> None:
        with suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/slow").close()

    wait_for("the server to answer", answers)
    readers = [threading.Thread(target=read_slowly, daemon=True) for _ in range(3)]
    for reader in readers:
        reader.start()
    time.sleep(1.0)
    began = time.monotonic()
    process.terminate()
    process.wait(PATIENCE)
    assert time.monotonic() - began < 45.0, "it waited for what computes for a minute"
    for reader in readers:
        reader.join(PATIENCE)


def test_the_time_to_end_is_what_the_docs_say() -> None:
    from paretoscout.service.app import END_SECONDS
    from paretoscout.service.start import GRACE_SECONDS

    assert GRACE_SECONDS < END_SECONDS < 20.0


@pytest.mark.parametrize("how", [["--workers", "2"], ["--demo"]], ids=["workers", "demo"])
def test_no_folder_stays_after_a_kill(
    place: str, how: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    if how == ["--demo"]:
        import re
        import subprocess

        process = subprocess.Popen(
            [sys.executable, "-m", "paretoscout", "serve", "--demo", "--port", "0"], stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        with process.stderr:
            assert re.search(r" at (http://\S+)", process.stderr.readline())
            assert list(folder.iterdir())
            process.kill()
            process.wait(PATIENCE)
    else:
        server = Served(place, *how)
        wait_for("the folder", lambda: list(folder.iterdir()))
        server.kill()
    wait_for("the folder to be removed", lambda: not list(folder.iterdir()))
