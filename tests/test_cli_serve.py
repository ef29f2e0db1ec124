"""`paretoscout serve` and `token` on the command line: what they refuse, and tokens from making to revoking."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from paretoscout.cli.main import main
from paretoscout.service.tokens import Tokens
from paretoscout.storage.sql import SQLStorage


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def ok(*words: str) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.output


def refused(*words: str) -> str:
    result = run(*words)
    assert result.exit_code == 2, result.output
    return result.output


def test_a_token_is_shown_once_listed_by_its_name_and_revoked() -> None:
    token = ok(
        "token", "create", "--scope", "tell", "--study", "models", "--expires", "30d", "--note", "gpu farm"
    ).strip()
    name = token.split("_")[1]
    listed = ok("token", "list")
    assert listed.startswith(f"{name}  tell  study models  until ")
    assert "gpu farm" in listed
    assert token.split("_", 2)[2] not in listed + ok("token", "list", "--json")
    (said,) = json.loads(ok("token", "list", "--json"))
    assert (said["valid"], said["scope"], said["study"]) == (True, "tell", "models")
    assert 29.9 * 86400 < said["ends_at"] - said["made_at"] < 30.1 * 86400
    tokens = Tokens(SQLStorage("sqlite:///paretoscout.db"))
    assert tokens.find(token) is not None
    assert ok("token", "revoke", name) == f"revoked: {name}\n"
    assert tokens.find(token) is None
    assert "revoked" in ok("token", "list")
    assert "unknown token 'nope'" in refused("token", "revoke", "nope")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["token", "create"], "--scope"),
        (["token", "create", "--scope", "all"], "'all' is not one of"),
        (["token", "create", "--scope", "read", "--expires", "soon"], "--expires must be a time"),
        (["token", "create", "--scope", "read", "--expires", "0"], "time until a token ends"),
        (["token", "create", "--scope", "read", "--study", " x"], "study of a token"),
        (["token", "create", "--scope", "read", "--note", "a\nb"], "one line"),
        (["token", "list", "--storage", "memory"], "gone when the command ends"),
        (["serve", "--memory", "much"], "--memory must be a size such as 512MB"),
        (["serve", "--host", "0.0.0.0"], "no token is valid"),
        (["serve", "--port", "99999"], "--port"),
        (["serve", "--storage", "memory"], "must be a file or a database"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], said: str) -> None:
    assert said in refused(*words)


def test_a_port_that_is_taken_is_said() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "--port must be one that is free" in refused("serve", "--port", str(taken.getsockname()[1]))
