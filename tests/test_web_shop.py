"""The web shop of the examples, against a real server: the right checkout comes out, and few visitors see others."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
pytest.importorskip("httpx2", reason="the extra client is not installed")
import uvicorn
from conftest import PATIENCE, wait_for

from paretoscout.service.app import make_app
from paretoscout.service.settings import ServerSettings
from paretoscout.service.tokens import Tokens
from paretoscout.storage import storage_of
from paretoscout.storage.sql import SQLStorage

FOLDER = Path(__file__).parent.parent / "docs" / "examples"
PAGE = (FOLDER / "web-shop.md").read_text("utf-8")


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("web_shop")


class Time:
    """The time by which a server gives up: it passes when the shop lets it, however busy the machine is."""

    now = 1_000_000.0

    def pass_(self, seconds: float) -> None:
        """Let a tenth of the time pass after which a trial is given up."""
        self.now += 3 * seconds


@dataclass(frozen=True)
class Running:
    url: str
    token: str
    time: Time


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A server that answers over HTTP, in a thread, with a clock of its own, and a token of one who may make studies."""
    place, clock = str(tmp_path / "shop.db"), Time()
    monkeypatch.setattr(SQLStorage, "now", lambda self: clock.now)
    storage = storage_of(place)
    assert isinstance(storage, SQLStorage)
    token = Tokens(storage).create("write")
    server = uvicorn.Server(uvicorn.Config(make_app(ServerSettings(place)), port=0, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_for("the server to start", lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Running(f"http://127.0.0.1:{port}", token, clock)
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


def test_the_right_checkout_comes_out_and_regret_is_below_that_of_an_even_split(
    running: Running, shop: ModuleType
) -> None:
    with shop.ps.connect(running.url, running.token) as client:
        study = shop.create(client, "first")
        saw = shop.run(study, seed=1, rest=running.time.pass_)
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


def test_the_page_shows_what_the_script_prints_and_its_command_works(running: Running, tmp_path: Path) -> None:
    """Cut short: the first visitors are enough to see that it runs."""
    (command,) = re.findall(r"^(python web_shop\.py) http://\S+$", PAGE, re.M)
    script = (FOLDER / "web_shop.py").read_text("utf-8").replace("most: int = 20_000", "most: int = 100")
    (tmp_path / "web_shop.py").write_text(script)
    done = subprocess.run(
        [sys.executable, *command.split()[1:], running.url],
        cwd=tmp_path,
        env=os.environ | {"PARETOSCOUT_TOKEN": running.token},
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
