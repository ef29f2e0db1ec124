"""The web shop of the examples, against a real server: the right checkout comes out, and few visitors see others."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
pytest.importorskip("httpx2", reason="the extra client is not installed")
from conftest import PATIENCE
from servers import Served, served

from paretoscout.service.tokens import Tokens
from paretoscout.storage.sql import SQLStorage

FOLDER = Path(__file__).parent.parent / "docs" / "examples"
PAGE = (FOLDER / "web-shop.md").read_text("utf-8")


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("web_shop")


@pytest.fixture(scope="module")
def with_token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A server, and a token of one who may make studies."""
    place = f"sqlite:///{tmp_path_factory.mktemp('shop') / 'shop.db'}"
    token = Tokens(SQLStorage(place)).create("write")
    with served(place) as server:
        yield server, token


def test_the_right_checkout_comes_out_and_regret_is_below_that_of_an_even_split(
    with_token: tuple[Served, str], shop: ModuleType
) -> None:
    server, token = with_token
    with shop.ps.connect(server.url, token) as client:
        study = shop.create(client, "first")
        saw = shop.run(study, seed=1)
        standing = study.standing()
        assert standing.done
        assert standing.front == (shop.BEST,)
        assert [each["option"] for each in standing.as_dict()["withdrawn"]] == ["with a video"]
        even = dict.fromkeys(saw, sum(saw.values()) / len(saw))
        assert shop.lost(saw) < 0.8 * shop.lost(even)
        # who stayed silent counts
        heard = study.asked_and_told()
        assert {option: each.asked for option, each in heard.items()} == saw
        assert heard[shop.BEST].partly > 0
        assert standing.as_dict()["options"][1]["n"] > heard[shop.BEST].told
        # what is lost depends on the option, and that is seen
        assert (
            heard["with a video"].unheard / heard["with a video"].asked > 2 * heard[shop.BEST].unheard / saw[shop.BEST]
        )
        lift = study.against(shop.PRESENT)[shop.BEST]["conversion"]
        assert lift["difference"] == pytest.approx(0.32, abs=0.15)
        assert lift["lift"] > lift["difference"]
        assert lift["low"] > 0
        said = shop.report(study, saw)
        assert "one page is the front" in said
        assert "with a video: breaks latency <= 400" in said


def test_the_page_shows_what_the_script_prints_and_its_command_works(
    with_token: tuple[Served, str], tmp_path: Path
) -> None:
    """Cut short: the first visitors are enough to see that it runs."""
    server, token = with_token
    (command,) = re.findall(r"^(python web_shop\.py) http://\S+$", PAGE, re.M)
    script = (FOLDER / "web_shop.py").read_text("utf-8").replace("most: int = 20_000", "most: int = 100")
    (tmp_path / "web_shop.py").write_text(script)
    done = subprocess.run(
        [sys.executable, *command.split()[1:], server.url],
        cwd=tmp_path,
        env=os.environ | {"PARETOSCOUT_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"^```text\n(.*?)^```", PAGE, re.M | re.S)[0]
    headings = [line for line in shown.splitlines() if line.startswith(("against ", "option "))]
    assert len(headings) == 2
    for line in headings:
        assert line in done.stdout, done.stdout
    assert re.search(r"visitors; \d+ sales lost, an even split would have lost \d+", shown)
