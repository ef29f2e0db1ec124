"""What a newcomer stumbled over: a storage that was put back, tokens for one study, and requests of the wrong form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
from fastapi.testclient import TestClient

from paretoscout.service.app import make_app
from paretoscout.service.settings import ServerSettings
from paretoscout.service.tokens import Tokens
from paretoscout.storage.sql import SQLStorage
from paretoscout.storage.upkeep import backup, restore

STUDY: dict[str, Any] = {"name": "models", "arms": ["a", "b"], "metrics": {"ms": "min"}, "sigma": 1}


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'service.db'}"


def client_of(place: str) -> TestClient:
    return TestClient(make_app(ServerSettings(place)), base_url="http://localhost", raise_server_exceptions=False)


def test_what_was_answered_before_a_backup_was_put_back_is_done_again(place: str, tmp_path: Path) -> None:
    """The answer belongs to what is gone: a worker that got it again would tell a trial that nobody asked for."""
    key = {"Idempotency-Key": "one"}
    with client_of(place) as client:
        client.post("/v1/studies", json=STUDY)
        backup(SQLStorage(place), tmp_path / "copy.db")
        client.post("/v1/studies/models/ask", json={"count": 2}, headers=key)
        token = Tokens(SQLStorage(place)).create("admin")
        restore(SQLStorage(place), tmp_path / "copy.db", lambda spec, name: None)
        mine = {"Authorization": f"Bearer {token}"}  # tokens stay as they are
        assert client.get("/v1/studies/models/standing", headers=mine).json()["asked"] == 0
        assert SQLStorage(place).answer("", "one") is None


def test_a_token_for_one_study_learns_no_names_of_others(place: str) -> None:
    tokens = Tokens(SQLStorage(place))
    admin, bound = ({"Authorization": f"Bearer {tokens.create('admin', study)}"} for study in (None, "gone"))
    with client_of(place) as client:
        client.post("/v1/studies", json={**STUDY, "name": "secret"}, headers=admin)
        assert "secret" in client.get("/v1/studies/nope/front", headers=admin).json()["detail"]
        for address in ("front", "standing", "events?follow=false"):
            refused = client.get(f"/v1/studies/gone/{address}", headers=bound)
            assert refused.status_code == 404
            assert "secret" not in refused.text
        assert "secret" not in client.delete("/v1/studies/gone", headers=bound).text


def test_a_body_that_is_no_object_is_refused_with_what_to_do(place: str) -> None:
    with client_of(place) as client:
        form = {"Content-Type": "application/x-www-form-urlencoded"}  # as curl -d sends it
        client.post("/v1/studies", json=STUDY)
        for address in ("/v1/studies", "/v1/studies/models/observations"):
            refused = client.post(address, content=b'{"name": "x"}', headers=form)
            assert refused.status_code == 422
            assert "Content-Type: application/json" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"trial": 0}, "values"),
        ({"trial": 0, "values": {"ms": "fast"}}, "values.ms"),
        ({"observations": [{"trial": 0}]}, "observations.0.values"),
        ({"observations": [{"trial": 0, "values": {"ms": "fast"}}]}, "observations.0.values.ms"),
        ({"observations": []}, "observations"),
    ],
)
def test_what_is_wrong_with_an_outcome_is_said_of_the_form_that_was_sent(
    place: str, body: dict[str, Any], field: str
) -> None:
    with client_of(place) as client:
        client.post("/v1/studies", json=STUDY)
        said = client.post("/v1/studies/models/observations", json=body).json()
        assert said["field"] == field
        assert "more)" not in said["detail"], "there is no more that is wrong"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metrics": {"ms": "least"}}, "metrics.ms"),
        ({"metrics": {"ms": {"eps": []}}}, "metrics.ms"),
        ({"arms": [1.5]}, "arms.0"),
    ],
)
def test_the_place_of_what_is_wrong_is_one_in_the_request(place: str, change: dict[str, Any], field: str) -> None:
    with client_of(place) as client:
        said = client.post("/v1/studies", json=STUDY | change).json()
        assert said["field"].startswith(field)
        assert not {"literal", "list[", "Body"} & {
            word for word in ("literal", "list[", "Body") if word in said["field"]
        }
