"""A server against callers who mean harm: who gets in, what one request may cost, what is taken for a value."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
from click.testing import CliRunner
from conftest import PATIENCE, wait_for
from test_service import MODELS, bearer, client_of, told

from paretoscout import checks, stopping
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput, Stopped
from paretoscout.service import problems
from paretoscout.service.access import Who
from paretoscout.service.live import Stream
from paretoscout.service.problems import Refused
from paretoscout.service.settings import Limits
from paretoscout.service.threads import Threads
from paretoscout.service.tokens import FREE_SECONDS, Tokens
from paretoscout.statement import Metric
from paretoscout.storage.sql import SQLStorage
from paretoscout.study import Study
from paretoscout.study.spec import Guard
from paretoscout.tradeoffs import read as read_tradeoffs
from paretoscout.tradeoffs import weights_of
from paretoscout.written import goal, seconds

TWO = (Metric("time", "min", unit="ms"), Metric("size", "min", unit="MB"))


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'service.db'}"


def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the storage, which stands still until it is set."""
    now = [1e9]
    monkeypatch.setattr(SQLStorage, "now", lambda self: now[0])
    return now


# Who gets in


@pytest.mark.parametrize("how", ["expired", "revoked"])
def test_a_server_whose_last_token_ended_stays_closed(place: str, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    now, tokens = clock(monkeypatch), Tokens(SQLStorage(place))
    token = tokens.create("admin", seconds=60)
    with client_of(place) as client:
        assert client.get("/v1/studies", headers=bearer(token)).status_code == 200
        if how == "expired":
            now[0] += 61
        else:
            tokens.revoke(token.split("_")[1])
        for headers in ({}, bearer(token), bearer(""), {"Host": "127.0.0.1"}):
            assert client.get("/v1/studies", headers=headers).status_code == 401
        assert client.post("/v1/studies", json=MODELS).status_code == 401
    with client_of(place) as started_later:
        assert started_later.get("/v1/studies").status_code == 401


@pytest.mark.parametrize("how", [{"https": True}, {"names": ("front.example",)}])
def test_a_server_with_a_proxy_in_front_needs_a_token_from_the_beginning(place: str, how: dict[str, Any]) -> None:
    with client_of(place, **how) as client:
        for host in ("localhost", "front.example"):
            assert client.get("/v1/studies", headers={"Host": host}).status_code == 401


@pytest.mark.parametrize("header", ["X-Forwarded-For", "forwarded", "Via", "X-Real-IP"])
def test_without_tokens_no_proxy_is_served(place: str, header: str) -> None:
    with client_of(place) as client:
        assert client.get("/v1/studies").status_code == 200
        assert client.get("/v1/studies", headers={header: "1.2.3.4"}).status_code == 403


def test_the_scheme_of_a_token_is_needed_in_any_case(place: str) -> None:
    token = Tokens(SQLStorage(place)).create("read")
    with client_of(place) as client:
        for scheme, status in (("Bearer ", 200), ("bearer ", 200), ("BEARER  ", 200), ("", 401), ("Basic ", 401)):
            answer = client.get("/v1/studies", headers={"Authorization": scheme + token})
            assert answer.status_code == status, scheme


@pytest.mark.parametrize("headers", [{"Origin": "http://["}, {"Host": "["}, {"Host": ""}])
def test_addresses_that_are_none_are_refused(place: str, headers: dict[str, str]) -> None:
    with client_of(place) as client:
        told(client.post("/v1/studies", json=MODELS, headers=headers))


def test_serve_says_that_no_token_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import paretoscout.service.start as start
    import paretoscout.service.telemetry as telemetry

    said: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(start, "serve", lambda settings, started: started("http://x"))
    monkeypatch.setattr(telemetry, "say", lambda text, warning=False: said.append(text))

    def says(*options: str) -> str:
        said.clear()
        return CliRunner().invoke(main, ["serve", *options]).output + "".join(said)

    assert "no token" not in says()
    assert "no token is valid" in says("--https")
    Tokens(SQLStorage("sqlite:///paretoscout.db")).create("admin", seconds=1e-6)
    assert "no token is valid" in says()
    assert "must stand without" in says("--demo", "--https")


@pytest.mark.parametrize(
    "url", ["postgresql://u:sesame@h/d", "postgresql://u@h/d?password=sesame", "postgresql://u:sesame@h:x/d"]
)
def test_the_password_of_a_database_is_never_shown(url: str) -> None:
    pytest.importorskip("psycopg")
    from paretoscout.storage.sql import _Address

    try:
        shown = _Address(url).shown
    except InvalidInput as problem:
        shown = str(problem)
    assert "sesame" not in shown
    assert "h" in shown


# Workers


def test_the_default_name_of_a_worker_is_its_own(place: str) -> None:
    tokens = Tokens(SQLStorage(place))
    admin, mine, theirs = (tokens.create(scope) for scope in ("admin", "tell", "tell"))
    name = mine.split("_")[1]
    with client_of(place) as client:
        client.post("/v1/studies", json=MODELS, headers=bearer(admin))
        asked = client.post("/v1/studies/models/ask", json={}, headers=bearer(theirs) | {"X-Worker": name})
        assert asked.status_code == 403
        assert client.post("/v1/studies/models/ask", json={}, headers=bearer(mine)).status_code == 200


def test_a_name_that_was_taken_before_is_given_back(place: str) -> None:
    """In a storage of earlier versions, which let another token have it."""
    storage = SQLStorage(place)
    tokens = Tokens(storage)
    admin, mine, theirs = (tokens.create(scope) for scope in ("admin", "tell", "tell"))
    with storage._transaction() as connection:
        connection.exec_driver_sql(
            "INSERT INTO workers VALUES (?, ?, ?)", (mine.split("_")[1], theirs.split("_")[1], storage.now())
        )
    with client_of(place) as client:
        client.post("/v1/studies", json=MODELS, headers=bearer(admin))
        assert client.post("/v1/studies/models/ask", json={}, headers=bearer(mine)).status_code == 200


def test_a_token_has_so_many_names_of_workers(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now, token = clock(monkeypatch), Tokens(SQLStorage(place)).create("admin")
    with client_of(place, limits=Limits(workers=2)) as client:
        client.post("/v1/studies", json=MODELS, headers=bearer(token))

        def ask(worker: str) -> int:
            return client.post(
                "/v1/studies/models/ask", json={}, headers=bearer(token) | {"X-Worker": worker}
            ).status_code

        assert [ask(worker) for worker in ("one", "two", "three", "one", "")] == [200, 200, 403, 200, 200]
        now[0] += FREE_SECONDS / 2
        assert ask("one") == 200
        now[0] += FREE_SECONDS / 2 + 1
        assert [ask(worker) for worker in ("three", "four", "one")] == [200, 403, 200]


# What one request may cost


@pytest.mark.parametrize(
    "read",
    [
        lambda n: seconds("--lease", "9" * n + "x"),
        lambda n: seconds("--lease", "." + "9" * n + "x"),
        lambda n: Guard.read("a" + " " * n + "b"),
        lambda n: Guard.read("a " + "<= " * n),
        lambda n: Guard.read("a <= " + "9" * n + "x"),
        lambda n: weights_of((f"1 ms{' ' * n}x",), TWO, "a study"),
        lambda n: weights_of(("1" * n + " ms <= x",), TWO, "a study"),
        lambda n: weights_of(read_tradeoffs(["1 ms" + "<= 1" * n], "a study") or (), TWO, "a study"),
        lambda n: Metric("time", "min", eps="1" * n + "x%"),
        lambda n: goal("9" * n) and checks.goal("9" * n),
    ],
)
def test_texts_are_read_in_linear_time(read: Callable[[int], object]) -> None:
    """A hundred thousand letters took minutes by the expressions of before; an answer repeats few of them."""
    with pytest.raises(InvalidInput) as refused:
        read(100_000)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("text", ["1_000", "\u0661\u0662", "nan", "inf", "1e101", "-1e101", "0x10", "", "1e", "+"])
def test_numbers_in_texts_are_plain_and_have_room(text: str) -> None:
    assert checks.numeral(text) is None
    for read in (Guard.read, lambda each: Metric("m", eps=each.partition(" ")[2][3:] + "%")):
        with pytest.raises(InvalidInput):
            read(f"m <= {text}")


def test_a_trade_off_between_two_of_many_metrics_costs_little() -> None:
    """Edges were looked for among all metrics: with 99 of them for minutes."""
    many = tuple(Metric(f"m{k}", "min", unit=f"u{k}") for k in range(99))
    weights = weights_of(("1 m0 <= 3 m1",), many, "a study")
    assert weights.shape == (99, 99)
    assert weights[0, :3].tolist() == [3.0, 1.0, 0.0]
    assert (weights[1:, 1:] == np.eye(98)).all()


def test_trade_offs_beyond_all_numbers_are_refused() -> None:
    texts = tuple(f"1e-99 m{k} <= 1e99 m{k + 1}" for k in range(3))
    with pytest.raises(InvalidInput, match="differ less"):
        weights_of(texts, tuple(Metric(f"m{k}", "min") for k in range(4)), "a study")


def study_of(**more: Any) -> dict[str, Any]:
    return {**MODELS, **more}


#: By limit: the body of a request to make a study, at the limit and one beyond it.
AT_A_LIMIT: dict[str, Callable[[int], dict[str, Any]]] = {
    "text": lambda n: study_of(title="t" * n),
    "text of a note": lambda n: study_of(note="n" * n),
    "text of a guard": lambda n: study_of(guards=["cost <= 1." + "0" * (n - 10)]),
    "times": lambda n: study_of(lease="0" * (n - 2) + "9s", give_up="lease"),
    "names": lambda n: study_of(arms=["a" * n, "b"]),
    "names of a metric": lambda n: study_of(metrics={"m" * n: "max"}),
    "names of a tag": lambda n: study_of(tags=["t" * n]),
    "metrics": lambda n: study_of(metrics={f"m{k}": "max" for k in range(n)}),
    "guards": lambda n: study_of(guards=[f"cost <= {k + 1}" for k in range(n)]),
    "tradeoffs": lambda n: study_of(tradeoffs=[f"1 quality <= {k + 1} cost" for k in range(n)]),
    "contexts": lambda n: study_of(
        arms=[{"arm": f"a{k}", **{f"x{j}": float(k == j) for j in range(n)}} for k in range(3)],
        contexts=[f"x{j}" for j in range(n)],
    ),
    "contexts of categories": lambda n: study_of(
        arms=[{"arm": f"a{k}", "kind": f"k{k}"} for k in range(n + 1)], contexts=["kind"]
    ),
    "tags": lambda n: study_of(tags=[f"t{k}" for k in range(n)]),
    "name": lambda n: study_of(name="n" * n),
}


@pytest.mark.parametrize("what", AT_A_LIMIT)
def test_a_study_may_be_as_large_as_its_limits_and_no_larger(place: str, what: str) -> None:
    most = getattr(Limits(), what.partition(" ")[0])
    with client_of(place) as client:
        beyond = client.post("/v1/studies", json=AT_A_LIMIT[what](most + 1))
        assert beyond.status_code in (422, 429), beyond.text
        told(beyond)
        assert client.get("/v1/studies").json()["studies"] == []
        at = client.post("/v1/studies", json=AT_A_LIMIT[what](most))
        assert at.status_code == 201, at.text


def test_json_is_as_deep_as_its_limit_and_no_deeper(place: str) -> None:
    with client_of(place) as client:
        for levels, words in ((Limits().depth, "name"), (Limits().depth + 1, "nested"), (100_000, "")):
            body = b'{"x": ' + b"[" * (levels - 2) + b"1" + b"]" * (levels - 2) + b"}"
            answer = client.post("/v1/studies", content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code in (400, 422)
            assert words in told(answer)["detail"]
            assert (levels == Limits().depth) == ("nested" not in told(answer)["detail"])


@pytest.mark.parametrize(
    "value",
    ["true", "false", '"1.5"', "1e101", "-1e101", "1e400", "NaN", "Infinity", "9" * 102, "[1]", '"\u0661"', "1.5e999"],
)
@pytest.mark.parametrize("kind", ["application/json", "application/vnd.api+json; charset=utf-8"])
def test_numbers_are_numbers(place: str, value: str, kind: str) -> None:
    with client_of(place) as client:
        client.post("/v1/studies", json=MODELS)
        (trial,) = client.post("/v1/studies/models/ask", json={}).json()["trials"]
        number = trial["trial"]
        for body in (
            f'{{"trial": {number}, "values": {{"quality": {value}, "cost": 1}}}}',
            f'{{"trial": {number}, "values": {{"quality": {{"below": {value}}}, "cost": 1}}}}',
            f'{{"option": "small", "values": {{"quality": {value}, "cost": 1}}}}',
        ):
            answer = client.post(
                "/v1/studies/models/observations", content=body.encode(), headers={"Content-Type": kind}
            )
            assert answer.status_code in (400, 422), answer.text
        for key in ("delta", "sigma", "seed", "budget", "theta_max"):
            body = json.dumps({**MODELS, "name": "n", key: 0}).replace(f'"{key}": 0', f'"{key}": {value}')
            answer = client.post("/v1/studies", content=body.encode(), headers={"Content-Type": kind})
            assert answer.status_code in (400, 422), (key, answer.text)
        for largest in ("1e100", "-1e100", "0", "1E-320"):
            body = f'{{"trial": {number}, "values": {{"quality": {largest}, "cost": {largest}}}}}'
            answer = client.post(
                "/v1/studies/models/observations", content=body.encode(), headers={"Content-Type": kind}
            )
            assert answer.status_code in (200, 409, 422), answer.text
            assert client.get("/v1/studies/models/standing").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        '{"trial": 0, "trial": 1, "values": {"quality": 1, "cost": 1}}',
        '{"trial": 0, "values": {"quality": 1, "cost": 1, "quality": 2}}',
        '{"trial": 0, "values": {"quality": 1, "cost": 1, "qu\\u0061lity": 2}}',
        '{"trial": true, "values": {"quality": 1, "cost": 1}}',
        '{"trial": 0.0, "values": {"quality": 1, "cost": 1}}',
        '{"trial": "0", "values": {"quality": 1, "cost": 1}}',
    ],
)
def test_keys_stand_once_and_trials_are_whole_numbers(place: str, body: str) -> None:
    with client_of(place) as client:
        client.post("/v1/studies", json=MODELS)
        client.post("/v1/studies/models/ask", json={"count": 2})
        json_ = {"Content-Type": "application/json"}
        answer = client.post("/v1/studies/models/observations", content=body.encode(), headers=json_)
        assert answer.status_code == 422, answer.text
        assert client.get("/v1/studies/models/standing").json()["told"] == 0


A = "A" * 100_000
#: Requests that are wrong, with much text in them.
LOUD: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/v1/studies", study_of(name=A)),
    ("POST", "/v1/studies", study_of(lease=A)),
    ("POST", "/v1/studies", study_of(guards=[A])),
    ("POST", "/v1/studies", {**MODELS, A: 1}),
    ("POST", "/v1/studies", study_of(metrics={A: "max"})),
    ("POST", "/v1/studies", study_of(metrics={"q": A})),
    ("POST", "/v1/studies", study_of(goal=A)),
    ("POST", "/v1/studies", study_of(algorithm=A)),
    ("POST", "/v1/studies", study_of(algorithm="scout:" + "A" * 400)),
    ("POST", "/v1/studies", study_of(guards=["A" * 450])),
    ("POST", "/v1/studies", study_of(tradeoffs=["1 " + "A" * 450 + " <= 1 cost"])),
    ("POST", "/v1/studies", study_of(sigma={"A" * 150: 1})),
    ("POST", "/v1/studies", study_of(sigma=[1.5] * 10_000)),
    ("POST", "/v1/studies", study_of(cost="A" * 199)),
    ("POST", "/v1/studies/models/ask", {"option": A}),
    ("POST", "/v1/studies/models/observations", {"trial": 0, "values": {A: 1}}),
    ("GET", "/v1/studies/" + "A" * 400 + "/front", None),
    ("GET", "/v1/studies/models/explain?option=" + "A" * 5000, None),
    ("GET", "/v1/studies/models/standing?at=" + "9" * 5000, None),
    ("GET", "/" + "A" * 5000, None),
    ("A" * 500, "/v1/studies", None),
)


@pytest.mark.parametrize(("method", "address", "body"), LOUD)
def test_answers_repeat_little(place: str, method: str, address: str, body: Any) -> None:
    with client_of(place) as client:
        client.post("/v1/studies", json=MODELS)
        answer = client.request(method, address, json=body)
        assert 400 <= answer.status_code < 500
        assert "A" * (Limits().repeated + 1) not in answer.text
        assert len(answer.content) < 3000


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer ps_" + "0" * 12 + "_" + "a" * 43}]
)
def test_the_token_is_checked_before_the_body(place: str, headers: dict[str, str]) -> None:
    """The application is asked by hand: it must answer before it takes any part of the body."""
    reader = Tokens(SQLStorage(place)).create("read")
    with client_of(place) as client:
        app = client.app

        async def call(sent: dict[str, str]) -> tuple[int, int]:
            taken, status = 0, 0

            async def receive() -> dict[str, Any]:
                nonlocal taken
                taken += 1
                return {"type": "http.request", "body": b" " * 1_000_000, "more_body": True}

            async def send(message: Any) -> None:
                nonlocal status
                status = message.get("status", status)

            given = {"host": "localhost", "content-type": "application/json", **{k.lower(): v for k, v in sent.items()}}
            scope = {
                "type": "http", "method": "POST", "path": "/v1/studies", "raw_path": b"/v1/studies", "query_string": b"",
                "headers": [(k.encode(), v.encode()) for k, v in given.items()], "client": ("127.0.0.1", 1), "scheme": "http",
                "server": ("127.0.0.1", 80), "http_version": "1.1", "root_path": "",
            }  # fmt: skip
            await app(scope, receive, send)
            return status, taken

        assert client.portal is not None
        assert client.portal.call(call, headers) == (401, 0)
        assert client.portal.call(call, bearer(reader)) == (413, 1)  # who may only read sends little


# Live events


def test_a_stream_ends_with_its_token(place: str) -> None:
    tokens = Tokens(SQLStorage(place))
    tokens.create("admin")
    reader = tokens.create("read")
    with client_of(place) as client:
        service = client.app.state.service  # type: ignore[attr-defined]

        async def read() -> list[str]:
            seen: list[str] = []
            async for text in service.live.anything(Who(reader.split("_")[1], "read", None, ""), 0):
                seen.append(text)
                if len(seen) == 1:
                    tokens.revoke(reader.split("_")[1])
            return seen

        service.live.readers += 1  # as the answer does
        assert client.get("/v1/studies", headers=bearer(reader)).status_code == 200
        assert client.portal is not None
        assert client.portal.call(asyncio.wait_for, read(), PATIENCE) == ["retry: 3000\n\n"]


def test_no_reader_more_than_there_may_be_is_let_in(place: str) -> None:
    """All of them asked before the first one was counted."""
    with client_of(place, limits=Limits(streams=3)) as client:
        client.post("/v1/studies", json=MODELS)
        live = client.app.state.service.live  # type: ignore[attr-defined]

        async def many() -> list[str]:
            answers = [Stream(live, live.anything(Who("", "read", None, ""), 0)) for _ in range(10)]
            over = asyncio.Event()

            async def one(answer: Stream) -> str:
                async def receive() -> Any:
                    await over.wait()
                    return {"type": "http.disconnect"}

                async def send(_: Any) -> None:
                    await asyncio.sleep(0)

                try:
                    await answer({"type": "http"}, receive, send)
                except Refused as refused:
                    return refused.kind.name
                return "read"

            tasks = [asyncio.create_task(one(answer)) for answer in answers]
            await asyncio.sleep(0.1)
            over.set()
            return sorted(await asyncio.gather(*tasks))

        assert client.portal is not None
        assert client.portal.call(many) == ["read"] * 3 + ["too-many"] * 7
        assert live.readers == 0


# What is taken for a value


@pytest.mark.parametrize("cell", [True, np.True_, "1_000", "\u0661", "1e", b"1_0"])
def test_a_table_of_outcomes_takes_numbers_only(cell: object) -> None:
    study = Study(["a", "b"], {"m": "max"}, sigma=1.0, storage="memory")
    trial = study.ask()
    for frame, how in (
        ({"arm": ["a"], "m": [cell]}, {}),
        ({"arm": [trial.arm], "m": [1.0], "trial": [cell]}, {"trial": "trial"}),
        ({"arm": ["a", "b"], "m": [cell, 1.0]}, {}),
    ):
        with pytest.raises(InvalidInput):
            study.tell_frame(frame, **how)
    assert study.counts()["told"] == 0
    assert study.tell_frame({"arm": ["a"], "m": [" 1.5 "]}) == 1


@pytest.mark.parametrize("time", [float("nan"), float("inf"), True, "now", None])
def test_a_clock_that_says_no_time_is_named(time: object) -> None:
    study = Study(["a", "b"], {"m": "max"}, sigma=1.0, storage="memory", clock=lambda: time)  # type: ignore[arg-type,return-value]
    with pytest.raises(InvalidInput, match="clock of a study"):
        study.ask()


def test_keys_end_with_their_study(place: str) -> None:
    """A study that was made again must not hand out trials of the one that is gone."""
    key = {"Idempotency-Key": "one"}
    with client_of(place) as client:
        for _ in range(2):
            made = client.post("/v1/studies", json=MODELS, headers={"Idempotency-Key": "made"})
            assert (made.status_code, made.headers.get("Idempotency-Replayed")) == (201, None)
            again = client.post("/v1/studies", json=MODELS, headers={"Idempotency-Key": "made"})
            assert again.headers["Idempotency-Replayed"] == "true"
            asked = client.post("/v1/studies/models/ask", json={"count": 2}, headers=key)
            assert "Idempotency-Replayed" not in asked.headers
            replayed = client.post("/v1/studies/models/ask", json={"count": 2}, headers=key)
            assert replayed.headers["Idempotency-Replayed"] == "true"
            assert len(client.get("/v1/studies/models/leases").json()["leases"]) == 2
            assert client.delete("/v1/studies/models").status_code == 204


@pytest.mark.parametrize("address", ["/v1/studies/", "/studies/models/", "/v1/studies/models/front/"])
def test_nothing_is_redirected_to_another_host(place: str, address: str) -> None:
    with client_of(place) as client:
        for host in ("localhost", "localhost:99", "evil.example"):
            answer = client.get(address, headers={"Host": host}, follow_redirects=False)
            assert answer.status_code in (403, 404)
            assert "location" not in answer.headers


# Reads that take long


def slow(stopped: list[str]) -> str:
    """Work until somebody stops it; a minute is a failure."""
    end = time.monotonic() + 60.0
    try:
        while time.monotonic() < end:
            stopping.check()
    except Stopped as why:
        stopped.append(str(why))
        raise
    return "not stopped"


def test_a_read_ends_with_its_cpu_time_or_when_its_caller_leaves() -> None:
    async def both() -> list[str]:
        stopped: list[str] = []
        threads = Threads(Limits(read_seconds=0.05))
        gone = asyncio.Event()
        with pytest.raises(Stopped):
            await threads.long("me", gone, lambda: slow(stopped))
        threads = Threads(Limits(read_seconds=30.0))
        reading = asyncio.create_task(threads.long("me", gone, lambda: slow(stopped)))
        await asyncio.sleep(0.05)
        gone.set()
        with pytest.raises(Stopped):
            await reading
        assert threads.in_use == 0
        return stopped

    stopped = asyncio.run(both())
    assert "more than 0.05 s of CPU" in stopped[0]
    assert "caller left" in stopped[1]


def test_reads_beyond_the_threads_are_refused_and_one_caller_does_not_have_all() -> None:
    async def many() -> tuple[int, int, str]:
        stopped: list[str] = []
        threads = Threads(Limits(read_seconds=30.0, wait_seconds=0.2))
        gone = asyncio.Event()
        reads = [asyncio.create_task(threads.long("greedy", gone, lambda: slow(stopped))) for _ in range(45)]
        await asyncio.sleep(0.05)
        used = threads.in_use
        other = await threads.long("other", asyncio.Event(), lambda: "read")
        await asyncio.sleep(0.5)
        refused = [read.exception() for read in reads if read.done()]
        assert all(isinstance(each, Refused) and each.kind is problems.BUSY for each in refused)
        gone.set()
        await asyncio.gather(*reads, return_exceptions=True)
        assert threads.in_use == 0
        return used, len(refused), other

    used, refused, other = asyncio.run(many())
    assert used < Limits().long_threads
    assert used + refused == 45
    assert other == "read"


def test_an_answer_to_a_read_that_was_stopped_says_when_to_try_again(place: str) -> None:
    with client_of(place, limits=Limits(read_seconds=0.0)) as client:
        client.post("/v1/studies", json=MODELS)
        client.post("/v1/studies/models/ask", json={})
        for address in ("standing", "front", "remaining", "asked-and-told", "leases", "explain?option=small"):
            answer = client.get(f"/v1/studies/models/{address}")
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5"), address
        assert client.post("/v1/studies/models/ask", json={}).status_code == 200


def test_what_a_stopped_read_has_seen_is_kept() -> None:
    study = Study(["a", "b"], {"m": "max"}, sigma=100.0, storage="memory")
    for k in range(20):
        study.tell(study.ask(), {"m": float(k % 2)})
    looks: list[Callable[[Study], int]] = [lambda each: 2 * each.counts()["told"] - 1, lambda each: each.history().last]
    for look in looks:
        reader = Study.load(storage=study.storage)
        events, seen = study.storage.events, []

        def few(name: str, after: int = -1, kinds: Any = None, most: int = 5) -> Iterator[Any]:
            for event in islice(events(name, after, kinds), most):  # noqa: B023
                seen.append(event.number)  # noqa: B023
                yield event
            if event.number < 39:
                raise Stopped("it takes too long")

        reader.storage.events = few  # type: ignore[method-assign]
        for _ in range(7):
            with pytest.raises(Stopped):
                look(reader)
        assert look(reader) == 39
        assert seen == list(range(40))
        study.storage.events = events  # type: ignore[method-assign]


def test_the_future_is_not_looked_at_for_longer_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice of 2,000 samples took a minute in a large study; the clock is looked at after few."""
    from paretoscout.study import forecast

    slices: list[int] = []

    class Future:
        samples, stuck, stopped = 0, False, False

    def advance(n: int) -> None:
        slices.append(n)
        Future.samples += n
        now[0] += 0.05 * n  # seconds

    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    assert forecast._play(Future(), advance, deadline=1.0) == np.inf  # type: ignore[arg-type]
    assert slices == [4] * 5
    assert now[0] <= 1.0 + 0.2


def test_a_list_of_studies_is_made_once_for_all_who_look(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from paretoscout.service import pages

    looked: list[float] = []
    from paretoscout.page import view_of

    def view(study: Any, seconds: float) -> Any:
        looked.append(time.monotonic())
        time.sleep(0.05)
        return view_of(study, seconds=seconds)

    monkeypatch.setattr(pages, "view_of", view)
    with client_of(place) as client:
        for k in range(4):
            client.post("/v1/studies", json={**MODELS, "name": f"s{k}"})
        assert "s3" in client.get("/").text
        assert len(looked) == 4
        with monkeypatch.context() as busy:
            busy.setattr(pages._Seen, "rests", 1.0)
            client.post("/v1/studies/s0/ask", json={})
            client.post("/v1/studies", json={**MODELS, "name": "new"})
            for _ in range(5):
                page = client.get("/").text  # of a moment before: nobody waits, and nothing is looked at
                assert "s0" in page
                assert "not looked at yet" in page
            assert len(looked) == 4
        page = wait_for(
            "the others to be looked at", lambda: "not looked at" not in (text := client.get("/").text) and text
        )
        assert "new" in page
        assert len(looked) == 6
