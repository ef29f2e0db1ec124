"""The guide to the server: every command in it is run against a real one, and its tables say what the program says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
pytest.importorskip("httpx2", reason="the extra client is not installed")
from conftest import PATIENCE
from servers import Served, served
from test_docs import SERVER, blocks

from paretoscout.cli.main import main
from paretoscout.service import problems
from paretoscout.service.app import make_app
from paretoscout.service.settings import Limits, ServerSettings
from paretoscout.service.telemetry import Telemetry
from paretoscout.service.tokens import SCOPES
from paretoscout.storage.schema import VERSION

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "service.md"
SHORT = ROOT / "docs" / "how-to" / "team.md"
PAGE = GUIDE.read_text("utf-8")
#: Comes between the outputs of blocks.
MARK = "--- next block ---"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(str(tmp_path / "paretoscout.db")) as server:
        yield server


def serves(line: str) -> bool:
    return line.startswith("paretoscout serve")


def outputs(commands: list[str], server: Served, folder: Path) -> list[str]:
    """Run blocks of commands one after the other in one shell, against a server; return what each of them printed.

    An answer that is an error ends the script, but for the one that the guide shows as an error.
    """
    programs = folder / "bin"
    programs.mkdir()
    (programs / "paretoscout").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m paretoscout "$@"\n')
    (programs / "paretoscout").chmod(0o755)
    (folder / ".curlrc").write_text("fail-with-body\n")
    script = ["set -eu"]
    for block in commands:
        wrong = "/nope/" in block
        lines = "\n".join(line for line in block.splitlines() if not serves(line)).replace(SERVER, server.url)
        script += ["set +e"] * wrong + [lines] + ["set -e"] * wrong + [f"echo; echo '{MARK}'"]
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    around = os.environ | {"PATH": path, "CURL_HOME": str(folder), "PARETOSCOUT_STORAGE": server.storage}
    around.pop("PARETOSCOUT_TOKEN", None)
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env=around,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split(MARK)[:-1]


def shape(value: Any) -> Any:
    """What a JSON text is made of, without its numbers."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    return [shape(each) for each in value] if isinstance(value, list) else type(value).__name__


def test_every_command_of_the_guide_works_and_answers_are_as_shown(server: Served, tmp_path: Path) -> None:
    commands = blocks(GUIDE, "sh")
    printed = dict(zip(commands, outputs(commands, server, tmp_path), strict=True))
    shown = re.findall(r"^```sh\n((?:(?!```).*\n)*)```\n\n```json\n((?:(?!```).*\n)*)```", PAGE, re.M)
    assert len(shown) == 2
    for command, answer in shown:
        said, expected = json.loads(printed[command]), json.loads(answer)
        assert shape(said) == shape(expected)
        if "type" in expected:
            kept = ("type", "title", "status", "detail", "field", "hint")
            assert {key: said[key] for key in kept} == {key: expected[key] for key in kept}
    everything = "".join(printed.values())
    assert "small and large are the front" in everything  # by the Python client
    assert "small is the front; old is dominated by small" in everything  # by a worker
    assert "Authorization" not in "".join(server.lines)
    assert (tmp_path / "token.txt").read_text().strip() not in "".join(server.lines)


def test_the_commands_of_the_short_page_work(server: Served, tmp_path: Path) -> None:
    (block,) = (block for block in blocks(SHORT, "sh") if SERVER in block)
    assert '"says":"old and new are undecided' in outputs([block], server, tmp_path)[0]


@pytest.mark.parametrize("page", [GUIDE, SHORT], ids=lambda page: page.name)
def test_what_starts_a_server_is_spelled_right(page: Path) -> None:
    lines = [line for kind in ("sh", "text") for block in blocks(page, kind) for line in block.splitlines()]
    starts = [shlex.split(line, comments=True)[2:] for line in lines if serves(line)]
    assert starts
    serve = main.get_command(None, "serve")  # type: ignore[arg-type]
    assert serve is not None
    for options in starts:
        serve.make_context("serve", options)


def rows(heading: str) -> list[list[str]]:
    """The cells of a table of the guide, by the first line of it."""
    lines = PAGE.split(f"{heading}\n")[1].splitlines()[1:]
    table = lines[: next(k for k, line in enumerate([*lines, ""]) if not line.startswith("|"))]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table]


def test_the_table_of_errors_is_that_of_the_program() -> None:
    found = rows("| type | status | what it means | what to do |")
    assert found == [[f"`{kind.name}`", str(kind.status), kind.title, kind.hint] for kind in problems.ALL]


def test_the_table_of_limits_is_that_of_the_program() -> None:
    found = {row[0].strip("`"): row[1] for row in rows("| limit | value | of what |")}
    assert found == {each.name: f"{each.default:,}".removesuffix(".0") for each in fields(Limits)}


def test_the_table_of_scopes_is_that_of_the_program() -> None:
    assert [row[0].strip("`") for row in rows("| scope | what it allows |")] == list(SCOPES)


def test_the_table_of_numbers_is_that_of_the_program() -> None:
    registered = {
        f"{family.name}_total" if family.type == "counter" else family.name for family in Telemetry().registry.collect()
    }
    assert {row[0].strip("`") for row in rows("| name | what it is |")} == registered


def test_the_table_of_addresses_is_that_of_the_program(tmp_path: Path) -> None:
    app = make_app(ServerSettings(str(tmp_path / "paretoscout.db")))
    there = {f"{method.upper()} {address}" for address, routes in app.openapi()["paths"].items() for method in routes}
    told = {
        address.partition("?")[0]
        for row in rows("| address | scope | what it does |")
        for address in re.findall(r"`([A-Z]+ [^`]+)`", row[0])
    }
    assert told == {address for address in there if "/v1" in address or address.count("/") == 1}


def test_the_version_of_the_storage_is_the_present_one() -> None:
    assert f"this one wants version {VERSION}." in PAGE
