"""The pages of a server: who sees them, how people sign in and out, and what a page of another site cannot do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
from conftest import PATIENCE, wait_for
from fastapi.testclient import TestClient

from paretoscout.service.access import COOKIE, Who
from paretoscout.service.app import make_app
from paretoscout.service.settings import ServerSettings
from paretoscout.service.tokens import Tokens
from paretoscout.storage.sql import SQLStorage
from paretoscout.study import Study

HTML = {"Accept": "text/html"}
NASTY = "<script>alert(1)</script> & 'x'"


#: In SQLite and in PostgreSQL.
BOTH = pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    in_file = getattr(request, "param", "sqlite") == "sqlite"
    place = f"sqlite:///{tmp_path / 'service.db'}" if in_file else str(request.getfixturevalue("postgres"))
    for name in ("models", "secret"):
        study = Study(["small", NASTY], {"quality": "max", "cost": "min"}, sigma=0.1, storage=place, name=name)
        study.tell(study.ask(), {"quality": 0.5, "cost": 1.0})
    return place


@pytest.fixture
def tokens(place: str) -> Tokens:
    return Tokens(SQLStorage(place))


def client_of(place: str, **how: Any) -> TestClient:
    app = make_app(ServerSettings(place, warm=False, **how))
    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False, follow_redirects=False)


@pytest.fixture
def client(place: str) -> Iterator[TestClient]:
    with client_of(place) as client:
        yield client


def sign_in(client: TestClient, token: str, then: str = "/") -> Any:
    return client.post("/sign-in", data={"token": token, "then": then})


@BOTH
def test_on_the_own_machine_pages_are_there_at_once(client: TestClient) -> None:
    assert "models" in client.get("/", headers=HTML).text
    page = client.get("/studies/models", headers=HTML)
    assert page.status_code == 200
    assert NASTY not in page.text
    assert "&lt;script&gt;alert(1)" in page.text
    assert "events?brief=true&amp;after=" in page.text
    assert client.get("/studies/models/page.html").headers["content-disposition"].startswith("attachment")


def test_what_is_wrong_is_a_page_for_people_and_a_problem_for_programs(client: TestClient) -> None:
    for address in ("/studies/nope", "/nope"):
        page = client.get(address, headers=HTML)
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert client.get(address).headers["content-type"] == "application/problem+json"


@BOTH
def test_pages_are_for_those_who_signed_in(client: TestClient, tokens: Tokens) -> None:
    token = tokens.create("read")
    for address in ("/", "/studies/models?option=small"):
        sent = client.get(address, headers=HTML)
        assert sent.status_code == 303
        assert sent.headers["location"].startswith("/sign-in?then=/")
    assert client.get("/sign-in").status_code == 200
    assert sign_in(client, "wrong").status_code == 401
    answer = sign_in(client, token, "/studies/models?option=small")
    assert (answer.status_code, answer.headers["location"]) == (303, "/studies/models?option=small")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie
    assert client.get("/studies/models", headers=HTML).status_code == 200
    assert client.get("/v1/studies/models/standing").status_code == 200  # the page reads what it shows


def test_behind_https_cookies_stay_there(place: str, tokens: Tokens) -> None:
    token = tokens.create("read")
    with client_of(place, https=True) as client:
        assert "Secure" in sign_in(client, token).headers["set-cookie"]
        page = client.get("/studies/models", headers={"Authorization": f"Bearer {token}", **HTML})
        assert 'value="https://localhost/studies/models"' in page.text


@pytest.mark.parametrize(
    "then", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "a\nb"]
)
def test_signing_in_leads_to_a_page_of_ours(client: TestClient, tokens: Tokens, then: str) -> None:
    assert sign_in(client, tokens.create("read"), then).headers["location"] == "/"


def test_a_call_by_cookie_needs_what_the_page_was_given(client: TestClient, tokens: Tokens) -> None:
    sign_in(client, tokens.create("admin"))
    refused = client.post("/v1/studies/models/ask", json={})
    assert refused.status_code == 403
    page = client.get("/", headers=HTML).text
    csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
    assert client.post("/v1/studies/models/ask", json={}, headers={"X-CSRF-Token": csrf}).status_code == 200
    assert client.post("/v1/studies/models/ask", json={}, headers={"X-CSRF-Token": "0" * 64}).status_code == 403


def test_signing_out_needs_the_page_too_and_takes_the_cookie_away(client: TestClient, tokens: Tokens) -> None:
    sign_in(client, tokens.create("read"))
    assert client.post("/sign-out", data={"csrf": "0"}).status_code == 403
    page = client.get("/", headers=HTML).text
    csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
    out = client.post("/sign-out", data={"csrf": csrf})
    assert out.status_code == 303
    assert COOKIE not in client.cookies
    assert client.get("/", headers=HTML).status_code == 303


def test_a_page_of_another_site_cannot_sign_anybody_in(client: TestClient, tokens: Tokens) -> None:
    headers = {"Origin": "http://evil.example"}
    answer = client.post("/sign-in", data={"token": tokens.create("read")}, headers=headers)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_who_is_for_one_study_sees_its_page_alone(client: TestClient, tokens: Tokens) -> None:
    sign_in(client, tokens.create("read", study="models"))
    listed = client.get("/", headers=HTML).text
    assert "models" in listed
    assert "secret" not in listed
    assert client.get("/studies/secret", headers=HTML).status_code == 403
    assert client.get("/studies/secret/page.html", headers=HTML).status_code == 403


@pytest.mark.parametrize("file", ["page.css", "page.js", "logo.svg"])
def test_files_of_pages_are_served_for_long(client: TestClient, file: str) -> None:
    answer = client.get(f"/static/{file}")
    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize("file", ["../render.py", "..%2frender.py", "%2e%2e/x.css", "nope.css", "render.py", ".css"])
def test_no_other_file_is(client: TestClient, file: str) -> None:
    assert client.get(f"/static/{file}").status_code == 404


@BOTH
def test_a_page_of_a_study_shows_what_happened_since(client: TestClient, place: str) -> None:
    assert "1 run" in client.get("/studies/models", headers=HTML).text
    study = Study.load("models", place)
    for _ in range(6):
        study.tell(study.ask(), {"quality": 0.5, "cost": 1.0})
    last = f"after={study.storage.last('models')}"
    assert "7 runs" in client.get("/studies/models/page.html").text
    wait_for("the page to follow", lambda: last in client.get("/studies/models", headers=HTML).text)


def test_a_study_that_was_deleted_and_made_again_is_shown_anew(client: TestClient) -> None:
    for _ in range(2):
        page = client.get("/studies/models", headers=HTML).text + client.get("/", headers=HTML).text
    assert "small" in page
    client.delete("/v1/studies/models")
    client.post("/v1/studies", json={"name": "models", "title": "Again?", "arms": ["x", "y"], "metrics": {"ms": "min"}})
    for address in ("/studies/models", "/"):
        page = client.get(address, headers=HTML).text
        assert "Again?" in page
        assert "2 options, 1 metric" in page or address == "/"


@BOTH
def test_the_list_tells_when_it_is_old(client: TestClient, place: str, tokens: Tokens) -> None:
    def number(**headers: str) -> str:
        text = client.get("/", headers={**HTML, **headers}).text
        assert 'data-part="live"><i></i><span>live' in text
        return text.partition("/events?after=")[2].partition('"')[0]

    async def first(after: str, study: str | None = None) -> str:
        stream = service.live.anything(Who("", "read", study, ""), int(after))
        try:
            return [await anext(stream), await asyncio.wait_for(anext(stream), PATIENCE)][1]
        finally:
            await stream.aclose()

    service, before = client.app.state.service, number()  # type: ignore[attr-defined]
    study = Study.load("models", place)
    study.tell(study.ask(), {"quality": 0.5, "cost": 1.0})
    assert asyncio.run(first(before)) == f'id: {int(before) + 2}\ndata: {{"number": {int(before) + 2}}}\n\n'
    assert number() == str(int(before) + 2)
    mine = {"Authorization": f"Bearer {tokens.create('read', 'secret')}"}
    assert int(number(**mine)) < int(before), "who may see one study hears of no other"
