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
