"""A server against callers who mean harm: who gets in, what one request may cost, what is taken for a value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
from click.testing import CliRunner
from test_service import MODELS, bearer, client_of, told

from paretoscout import checks
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput
from paretoscout.service.tokens import FREE_SECONDS, Tokens
from paretoscout.statement import Metric
from paretoscout.storage.sql import SQLStorage
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


def test_serve_says_that_no_token_is_valid_and_hides_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import paretoscout.service.start as start

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(start, "serve", lambda settings, started: started("http://x"))
    assert "no token" not in CliRunner().invoke(main, ["serve"]).output
    assert "no token is valid" in CliRunner().invoke(main, ["serve", "--https"]).output
    Tokens(SQLStorage("sqlite:///paretoscout.db")).create("admin", seconds=1e-6)
    assert "no token is valid" in CliRunner().invoke(main, ["serve"]).output
    assert "must stand without" in CliRunner().invoke(main, ["serve", "--demo", "--https"]).output


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
    from paretoscout.service.settings import Limits

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
        lambda n: weights_of(read_tradeoffs(["1 ms" + "<= 1" * n], "a study") or (), TWO, "a study"),  # type: ignore[arg-type]
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
