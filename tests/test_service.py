"""The API of a server: what it answers, what it refuses, and to whom."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
from fastapi.testclient import TestClient

from paretoscout.service import problems
from paretoscout.service.app import make_app
from paretoscout.service.settings import Limits, ServerSettings
from paretoscout.service.tokens import SCOPES, Tokens
from paretoscout.storage.sql import SQLStorage
from paretoscout.study import Study, schema
from paretoscout.study.log import StudyLog

MODELS: dict[str, Any] = {
    "name": "models",
    "arms": ["small", "large", "huge"],
    "metrics": {"quality": {"direction": "max", "eps": 0.02}, "cost": "min"},
    "sigma": 0.05,
}
TRUTH = {
    "small": {"quality": 0.6, "cost": 1.0},
    "large": {"quality": 0.9, "cost": 4.0},
    "huge": {"quality": 0.5, "cost": 9.0},
}


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'service.db'}"


def client_of(place: str, **how: Any) -> TestClient:
    settings = ServerSettings(place, warm=False, **how)
    return TestClient(make_app(settings), base_url="http://localhost", raise_server_exceptions=False)


@pytest.fixture
def client(place: str) -> Iterator[TestClient]:
    with client_of(place) as client:
        yield client


@pytest.fixture
def models(client: TestClient) -> TestClient:
    assert client.post("/v1/studies", json=MODELS).status_code == 201
    return client


def told(answer: Any) -> dict[str, Any]:
    """Return the problem that an answer is, if it is one as it should be."""
    assert answer.headers["content-type"] == problems.MEDIA_TYPE
    said: dict[str, Any] = answer.json()
    assert set(said) == {"type", "title", "status", "detail", "field", "hint", "instance"}
    assert said["status"] == answer.status_code
    assert said["instance"].endswith(answer.headers["x-request-id"])
    assert said["type"] in {kind.type for kind in problems.ALL}
    return said


# One study, from the beginning to the end


def test_a_study_is_made_measured_and_answered(client: TestClient, place: str) -> None:
    made = client.post("/v1/studies", json=MODELS)
    assert made.status_code == 201
    jsonschema.validate(made.json(), schema())
    while not client.get("/v1/studies/models/front").json()["done"]:
        asked = client.post("/v1/studies/models/ask", json={"count": 2}).json()["trials"]
        rows = [{"trial": each["trial"], "values": TRUTH[each["option"]]} for each in asked]
        answer = client.post("/v1/studies/models/observations", json={"observations": rows})
        assert answer.json()["new"] == len(rows)
    front = client.get("/v1/studies/models/front").json()
    assert front["front"] == ["small", "large"]
    assert front["finished"] is True
    standing = client.get("/v1/studies/models/standing").json()
    jsonschema.validate(standing, schema())
    study = Study.load("models", place)
    assert standing == json.loads(study.standing().as_json())
    assert "dominated" in client.get("/v1/studies/models/explain", params={"option": "huge"}).json()["text"]
    assert client.get("/v1/studies/models/remaining").json()["says"] == "nothing more to measure"
    assert len(client.get("/v1/studies/models/export").text.splitlines()) == 1 + study.counts()["told"]
    assert len(client.get("/v1/studies/models/export?format=json").json()) == study.counts()["told"]
    refused = client.post("/v1/studies/models/ask", json={})
    assert refused.status_code == 409
    assert told(refused)["type"] == "urn:paretoscout:problem:not-supported"


def test_a_metric_that_passes_or_fails_is_told_so(client: TestClient) -> None:
    body = {**MODELS, "metrics": {"passed": {"eps": 0.02, "kind": "pass/fail"}, "cost": "min"}, "sigma": None}
    assert client.post("/v1/studies", json=body).status_code == 201
    assert client.get("/v1/studies/models/standing").json()["metrics"][0]["kind"] == "pass/fail"
    trial = client.post("/v1/studies/models/ask", json={"count": 1}).json()["trials"][0]["trial"]
    wrong = client.post(
        "/v1/studies/models/observations",
        json={"observations": [{"trial": trial, "values": {"passed": 0.5, "cost": 1.0}}]},
    )
    assert wrong.status_code == 422
    assert "must be 0 or 1, because its kind is 'pass/fail', got 0.5" in wrong.text
    body = {**body, "name": "other", "metrics": {"passed": {"kind": "pass-fail"}}}
    assert client.post("/v1/studies", json=body).status_code == 422


def test_an_earlier_standing_is_shown_by_its_event(models: TestClient) -> None:
    models.post("/v1/studies/models/ask", json={"count": 3})
    assert models.get("/v1/studies/models/standing?at=0").json()["open"] == 1
    assert models.get("/v1/studies/models/standing").json()["open"] == 3


def test_studies_are_listed_without_loading_them(models: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Study, "load", None)
    (listed,) = models.get("/v1/studies").json()["studies"]
    assert (listed["name"], listed["options"], listed["metrics"]) == ("models", 3, {"quality": "max", "cost": "min"})


def test_the_same_study_again_is_found_another_one_of_its_name_refused(models: TestClient) -> None:
    assert models.post("/v1/studies", json=MODELS).status_code == 201
    other = models.post("/v1/studies", json={**MODELS, "delta": 0.2})
    assert other.status_code == 409
    assert told(other)["type"].endswith("name-taken")


def test_options_come_and_go_and_notes_are_kept(models: TestClient, place: str) -> None:
    assert models.post("/v1/studies/models/arms", json={"arms": ["tiny"], "looked": False}).status_code == 200
    gone = models.delete("/v1/studies/models/arms", params={"option": "huge", "reason": "too slow"})
    assert gone.status_code == 200
    models.post("/v1/studies/models/note", json={"note": "pilot", "tags": ["llm"]})
    trial = models.post("/v1/studies/models/ask", json={"option": "tiny"}, headers={"X-Worker": "gpu-1"}).json()
    number = trial["trials"][0]["trial"]
    body = {"trial": number, "values": {"quality": 0.4, "cost": 0.5}, "note": "cold", "tags": ["a"]}
    models.post("/v1/studies/models/observations", json=body, headers={"X-Worker": "gpu-1"})
    standing = models.get("/v1/studies/models/standing").json()
    assert (standing["note"], standing["tags"]) == ("pilot", ["llm"])
    assert standing["withdrawn"] == [{"option": "huge", "kind": "by hand", "reason": "too slow"}]
    last = list(Study.load("models", place).storage.events("models"))[-1]
    assert (last.kind, last.by, last.body["note"], last.body["tags"]) == ("tell", "gpu-1", "cold", ["a"])


def test_a_trial_is_given_back_and_asked_again(models: TestClient) -> None:
    (trial,) = models.post("/v1/studies/models/ask", json={}).json()["trials"]
    assert models.get("/v1/studies/models/leases").json()["leases"][0]["trial"] == trial["trial"]
    models.delete(f"/v1/studies/models/leases/{trial['trial']}", params={"reason": "crashed"})
    assert models.get("/v1/studies/models/leases").json()["leases"] == []
    (again,) = models.post("/v1/studies/models/ask", json={}).json()["trials"]
    assert again["option"] == trial["option"]


def test_outcomes_that_nobody_asked_for_are_taken(models: TestClient) -> None:
    rows = [{"option": arm, "values": values} for arm, values in TRUTH.items()]
    answer = models.post("/v1/studies/models/observations", json={"observations": rows})
    assert answer.json()["new"] == 3
    assert models.get("/v1/studies/models/standing").json()["imported"] == 3


def test_a_study_on_blocks_says_on_which_block(client: TestClient) -> None:
    body = {**MODELS, "blocks": ["p1", "p2", "p3", "p4"], "sigma": None}
    assert client.post("/v1/studies", json=body).status_code == 201
    trials = client.post("/v1/studies/models/ask", json={"count": 3}).json()["trials"]
    assert {each["block"] for each in trials} <= {"p1", "p2", "p3", "p4"}


def test_events_are_sent_from_a_number_on(models: TestClient) -> None:
    models.post("/v1/studies/models/ask", json={"count": 3})
    text = models.get("/v1/studies/models/events?follow=false&after=0").text
    assert [line for line in text.splitlines() if line.startswith("id:")] == ["id: 1", "id: 2"]
    again = models.get("/v1/studies/models/events?follow=false", headers={"Last-Event-ID": "1"}).text
    assert [line for line in again.splitlines() if line.startswith("id:")] == ["id: 2"]


# Keys


def test_the_same_key_is_answered_as_before_and_nothing_is_done_twice(models: TestClient, place: str) -> None:
    key = {"Idempotency-Key": "one"}
    first = models.post("/v1/studies/models/ask", json={"count": 2}, headers=key)
    again = models.post("/v1/studies/models/ask", json={"count": 2}, headers=key)
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    other = models.post("/v1/studies/models/ask", json={"count": 3}, headers=key)
    assert other.status_code == 409
    assert told(other)["type"].endswith("key-reused")
    assert Study.load("models", place).counts()["asked"] == 2
    with client_of(place) as restarted:  # another process
        later = restarted.post("/v1/studies/models/ask", json={"count": 2}, headers=key)
        assert later.json() == first.json()


def test_a_key_is_that_of_a_token(place: str) -> None:
    tokens = Tokens(SQLStorage(place))
    mine, theirs = (tokens.create("admin") for _ in range(2))
    with client_of(place) as client:
        client.post("/v1/studies", json=MODELS, headers=bearer(mine))
        key = {"Idempotency-Key": "one"}
        first = client.post("/v1/studies/models/ask", json={}, headers=bearer(mine) | key).json()
        other = client.post("/v1/studies/models/ask", json={}, headers=bearer(theirs) | key).json()
        assert first != other


def test_many_at_once_with_one_key_get_one_answer(models: TestClient, place: str) -> None:
    answers: list[Any] = []

    def ask() -> None:
        answer = models.post("/v1/studies/models/ask", json={"count": 1}, headers={"Idempotency-Key": "same"})
        answers.append((answer.status_code, answer.json()))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({json.dumps(answer) for answer in answers}) == 1
    assert answers[0][0] == 200
    assert Study.load("models", place).counts()["asked"] == 1


def test_what_is_refused_leaves_its_key_free(models: TestClient) -> None:
    key = {"Idempotency-Key": "one"}
    wrong = models.post("/v1/studies/models/observations", json={"trial": 99, "values": {}}, headers=key)
    assert wrong.status_code == 422
    (trial,) = models.post("/v1/studies/models/ask", json={}).json()["trials"]
    right = {"trial": trial["trial"], "values": TRUTH["small"]}
    assert models.post("/v1/studies/models/observations", json=right, headers=key).status_code == 200


# Access


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


#: What each scope may do, at least: method, address, body.
DOES: dict[str, list[tuple[str, str, Any]]] = {
    "metrics": [("GET", "/metrics", None)],
    "read": [("GET", "/v1/studies/models/standing", None), ("GET", "/v1/studies", None)],
    "tell": [("POST", "/v1/studies/models/ask", {})],
    "write": [
        ("POST", "/v1/studies", {**MODELS, "name": "other"}),
        ("POST", "/v1/studies/models/note", {"note": "x"}),
        ("POST", "/v1/studies/models/observations", {"option": "small", "values": TRUTH["small"]}),
    ],
    "admin": [("DELETE", "/v1/studies/models", None)],
}


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_allows_what_it_says_and_no_more(place: str, scope: str) -> None:
    Study(
        name="models",
        storage=place,
        **{k: v for k, v in MODELS.items() if k not in ("name", "metrics")},
        metrics={"quality": "max", "cost": "min"},
    )
    token = Tokens(SQLStorage(place)).create(scope)
    with client_of(place) as client:
        for other in SCOPES:
            for method, address, body in DOES[other]:
                answer = client.request(method, address, json=body, headers=bearer(token))
                if SCOPES.index(other) <= SCOPES.index(scope):
                    assert answer.status_code < 300, answer.text
                else:
                    assert answer.status_code == 403
                    assert told(answer)["type"].endswith("not-allowed")


@pytest.mark.parametrize(
    "text", ["", "ps_x_y", "Bearer", "ps_" + "0" * 12 + "_" + "a" * 43, "\u00e9".encode().decode("latin-1")]
)
def test_wrong_tokens_are_refused(place: str, text: str) -> None:
    Tokens(SQLStorage(place)).create("admin")
    with client_of(place) as client:
        answer = client.get("/v1/studies", headers={b"Authorization": f"Bearer {text}".encode("latin-1")})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert client.get("/v1/studies").status_code == 401


def test_a_token_ends_and_is_revoked(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = SQLStorage(place)
    tokens = Tokens(storage)
    keeper, short, long = tokens.create("admin"), tokens.create("read", seconds=60), tokens.create("read")
    with client_of(place) as client:
        assert client.get("/v1/studies", headers=bearer(short)).status_code == 200
        tokens.revoke(long.split("_")[1])
        assert client.get("/v1/studies", headers=bearer(long)).status_code == 401
        now = storage.now()
        monkeypatch.setattr(SQLStorage, "now", lambda self: now + 61)
        assert client.get("/v1/studies", headers=bearer(short)).status_code == 401
        assert client.get("/v1/studies", headers=bearer(keeper)).status_code == 200


def test_only_a_digest_of_a_token_is_kept(place: str, tmp_path: Path) -> None:
    storage = SQLStorage(place)
    token = Tokens(storage).create("admin")
    storage.close()
    secret = token.split("_", 2)[2].encode()
    assert all(secret not in file.read_bytes() for file in tmp_path.iterdir())


def test_a_token_for_one_study_sees_no_other(place: str) -> None:
    tokens = Tokens(SQLStorage(place))
    admin, bound = tokens.create("admin"), tokens.create("write", study="models")
    with client_of(place) as client:
        for name in ("models", "secret"):
            client.post("/v1/studies", json={**MODELS, "name": name}, headers=bearer(admin))
        assert [each["name"] for each in client.get("/v1/studies", headers=bearer(bound)).json()["studies"]] == [
            "models"
        ]
        assert client.get("/v1/studies/models/front", headers=bearer(bound)).status_code == 200
        assert client.get("/v1/studies/secret/front", headers=bearer(bound)).status_code == 403
        assert client.post("/v1/studies", json={**MODELS, "name": "new"}, headers=bearer(bound)).status_code == 403


def test_a_trial_is_told_by_who_asked_it_or_by_a_wider_scope(place: str) -> None:
    tokens = Tokens(SQLStorage(place))
    admin, mine, theirs = tokens.create("admin"), tokens.create("tell"), tokens.create("tell")
    with client_of(place) as client:
        client.post("/v1/studies", json=MODELS, headers=bearer(admin))
        numbers = [
            client.post("/v1/studies/models/ask", json={}, headers=bearer(mine) | worker).json()["trials"][0]["trial"]
            for worker in ({"X-Worker": "mine-1"}, {}, {"X-Worker": "mine-1"})
        ]
        for number in numbers[:2]:
            body = {"trial": number, "values": TRUTH["small"]}
            for address, method in (("observations", "POST"), (f"leases/{number}", "DELETE")):
                refused = client.request(method, f"/v1/studies/models/{address}", json=body, headers=bearer(theirs))
                assert refused.status_code == 403, refused.text
            named = bearer(theirs) | {"X-Worker": "mine-1"}  # somebody else's name does not help
            assert client.post("/v1/studies/models/observations", json=body, headers=named).status_code == 403
            other = bearer(mine) | {"X-Worker": "mine-2"}  # another worker with the same token may
            assert client.post("/v1/studies/models/observations", json=body, headers=other).status_code == 200
        last = {"trial": numbers[2], "values": TRUTH["small"]}
        assert client.post("/v1/studies/models/observations", json=last, headers=bearer(admin)).status_code == 200


def test_failures_are_limited_and_lock_nobody_out(place: str) -> None:
    token = Tokens(SQLStorage(place)).create("admin")
    with client_of(place, limits=Limits(failures=3)) as client:
        statuses = [client.get("/v1/studies", headers=bearer("wrong")).status_code for _ in range(6)]
        assert statuses == [401, 401, 401, 429, 429, 429]
        assert client.get("/v1/studies", headers=bearer(token)).status_code == 200


def test_without_tokens_only_this_machine_is_served_under_its_own_name(client: TestClient) -> None:
    assert client.get("/v1/studies").status_code == 200
    assert client.get("/v1/studies", headers={"Host": "evil.example"}).status_code == 403
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert told(client.post("/v1/studies", json=MODELS, headers=headers))["type"].endswith("other-site")
    assert client.post("/v1/studies", json=MODELS, headers={"Origin": "http://localhost"}).status_code == 201


def test_off_the_loopback_address_nobody_gets_in_without_a_token(place: str) -> None:
    with client_of(place, host="0.0.0.0") as client:
        assert client.get("/v1/studies").status_code == 401
        assert client.get("/metrics").status_code == 401
        assert client.get("/healthz").status_code == 200


# What is refused


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"delta": 2}, 422, "delta"),
        ({"metrics": {}}, 422, "metrics"),
        ({"arms": "options.csv"}, 422, "arms"),
        ({"blocks": "/etc/passwd"}, 422, "blocks"),
        ({"name": "a/b"}, 422, "no '/'"),
        ({"name": "x" * 101}, 422, "name"),
        ({"algorithm": "nope"}, 404, "unknown algorithm"),
        ({"algorithm": "scout:nope=1"}, 422, "settings of scout"),
        ({"unknown": 1}, 422, "unknown"),
        ({"arms": ["a", "a"]}, 422, "differ"),
        ({"arms": [{"arm": "a", "x": 1}, {"arm": "b"}]}, 422, "same keys"),
        ({"sigma": -1}, 422, "sigma"),
        ({"guards": ["latency < <"]}, 422, "guard"),
        ({"lease": "soon"}, 422, "lease"),
        ({"tags": ["a\nb"]}, 422, "tag"),
    ],
)
def test_a_study_that_is_wrong_is_refused_and_nothing_is_made(
    client: TestClient, change: dict[str, Any], status: int, words: str
) -> None:
    answer = client.post("/v1/studies", json=MODELS | change)
    assert answer.status_code == status, answer.text
    assert words in json.dumps(told(answer))
    assert client.get("/v1/studies").json()["studies"] == []


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"trial": 0}', b'{"trial": 0, "values": {"quality": NaN}}', b"\xff\xfe", b"[" * 5000,
     b'{"trial": 1e400, "values": {}}', b'{"trial": 99999999999999999999999, "values": {}}', b'{"trial": 0, "values": {"quality": "\\ud800"}}'],
)  # fmt: skip
def test_malformed_bodies_are_refused(models: TestClient, body: bytes) -> None:
    answer = models.post("/v1/studies/models/observations", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    told(answer)


def test_a_batch_is_kept_whole_or_not_at_all(models: TestClient) -> None:
    trials = models.post("/v1/studies/models/ask", json={"count": 2}).json()["trials"]
    rows = [
        {"trial": trials[0]["trial"], "values": TRUTH["small"]},
        {"trial": trials[1]["trial"], "values": {"cots": 1}},
    ]
    assert models.post("/v1/studies/models/observations", json={"observations": rows}).status_code == 404
    assert models.get("/v1/studies/models/standing").json()["told"] == 0


def test_limits_are_kept(place: str) -> None:
    limits = Limits(body=2000, arms=3, studies=1, open_trials=2)
    with client_of(place, limits=limits) as client:
        large = client.post("/v1/studies", content=b" " * 3000)
        assert large.status_code == 413
        assert told(large)["type"].endswith("too-large")

        def chunks() -> Iterator[bytes]:
            for _ in range(30):
                yield b" " * 100

        assert client.post("/v1/studies", content=chunks()).status_code == 413  # of unknown length
        assert client.post("/v1/studies", json={**MODELS, "arms": ["a", "b", "c", "d"]}).status_code == 429
        assert client.post("/v1/studies", json=MODELS).status_code == 201
        assert client.post("/v1/studies", json={**MODELS, "name": "two"}).status_code == 429
        assert client.post("/v1/studies/models/ask", json={"count": 3}).status_code == 429
        assert client.post("/v1/studies/models/ask", json={"count": 2}).status_code == 200
        assert client.get("/v1/studies", headers={"X-Worker": "w" * 101}).status_code == 422


def test_open_trials_are_limited_whoever_asked_for_them(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now, limits = [1e9], Limits(open_trials=2)
    monkeypatch.setattr(SQLStorage, "now", lambda self: now[0])
    with client_of(place, limits=limits) as client, client_of(place, limits=limits) as other:
        client.post("/v1/studies", json={**MODELS, "lease": 60, "give_up": 60})
        assert other.post("/v1/studies/models/ask", json={"count": 1}).status_code == 200
        refused = client.post("/v1/studies/models/ask", json={"count": 2})
        assert refused.status_code == 429
        assert "may have 2 open trials" in told(refused)["detail"]
        now[0] += 61  # nobody told it: whoever asks next finds that it is void
        assert client.post("/v1/studies/models/ask", json={"count": 3}).status_code == 429
        assert client.get("/v1/studies/models/standing").json()["open"] == 0
        assert client.post("/v1/studies/models/ask", json={"count": 2}).status_code == 200


def test_what_is_not_there_is_said_in_one_form(models: TestClient) -> None:
    for method, address in (("GET", "/nope"), ("GET", "/v1/studies/nope/front"), ("PUT", "/v1/studies"), ("GET", "/v1/studies/%00/front"), ("GET", "/v1/studies/models/explain?option=nope")):  # fmt: skip
        assert models.request(method, address).status_code in (404, 405, 422)
        told(models.request(method, address))


@pytest.mark.parametrize(
    "address",
    ["/healthz", "/v1/studies", "/v1/studies/models/export", "/v1/studies/models/events", "/v1/studies/no", "/"],
)
def test_head_is_answered_as_get_is_without_a_body(models: TestClient, address: str) -> None:
    """What watches a server asks so; that of live events ends."""
    head, get = models.head(address), models.get(f"{address}?follow=false")
    assert head.content == b""
    assert head.status_code == get.status_code
    for name in ("content-type", "content-length", "content-security-policy"):
        assert head.headers.get(name) == get.headers.get(name)
    assert models.head("/v1/studies/models/ask").status_code == 405


def test_every_answer_is_safe_for_browsers_and_has_a_number(models: TestClient) -> None:
    for address in ("/v1/studies", "/nope", "/healthz"):
        headers = models.get(address).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert len(headers["x-request-id"]) == 16


def test_a_study_that_was_deleted_and_made_again_is_the_new_one(models: TestClient) -> None:
    models.post("/v1/studies/models/ask", json={"count": 3})
    assert models.delete("/v1/studies/models").status_code == 204
    assert models.get("/v1/studies/models/front").status_code == 404
    models.post("/v1/studies", json={**MODELS, "arms": ["x", "y"]})
    assert models.post("/v1/studies/models/ask", json={}).json()["trials"][0]["option"] in ("x", "y")


def test_studies_are_let_go_within_the_memory_limit(place: str) -> None:
    with client_of(place, memory=1) as client:
        for k in range(4):
            client.post("/v1/studies", json={**MODELS, "name": f"s{k}"})
            client.post(f"/v1/studies/s{k}/ask", json={})
        assert len(client.app.state.service.studies) == 1  # type: ignore[attr-defined]
        assert all(client.get(f"/v1/studies/s{k}/standing").json()["open"] == 1 for k in range(4))


def test_the_numbers_of_prometheus_are_there(models: TestClient) -> None:
    models.post("/v1/studies/models/ask", json={"count": 2})
    text = models.get("/metrics").text
    assert 'paretoscout_requests_total{route="/v1/studies/{name}/ask",status="200"} 1.0' in text
    assert "paretoscout_studies 1.0" in text
    assert "paretoscout_open_trials 2.0" in text
    assert "paretoscout_lock_wait_seconds_count" in text
    assert "paretoscout_request_seconds_bucket" in text


def test_whoever_reads_the_numbers_follows_no_log(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With many studies that many measure, to follow them all takes longer than Prometheus waits."""
    with client_of(place) as client:
        client.post("/v1/studies", json=MODELS)
        client.post("/v1/studies/models/ask", json={"count": 2})
        monkeypatch.setattr(StudyLog, "reading", None)
        assert "paretoscout_open_trials 2.0" in client.get("/metrics").text


def test_the_description_is_complete(client: TestClient) -> None:
    said = client.get("/openapi.json").json()
    assert said["openapi"].startswith("3.1")
    for address, routes in said["paths"].items():
        for method, route in routes.items():
            assert route.get("summary"), (address, method)
            if address.startswith("/v1"):
                assert {"4XX", "5XX"} <= set(route["responses"])
    assert said["components"]["schemas"]["Standing"]["properties"]["front"]
    assert said["components"]["schemas"]["StudyBody"]["examples"]
