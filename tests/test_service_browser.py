"""The pages of a server in a real browser: what people do there, from making a study to its last verdict."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, wait_for
from servers import Served, served

pytest.importorskip("fastapi", reason="the extra serve is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

import paretoscout as ps  # noqa: E402
from paretoscout.service.tokens import Tokens  # noqa: E402
from paretoscout.storage.sql import SQLStorage  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
#: Pictures of what was seen, for people to look at.
PICTURES = Path(__file__).parent.parent / "out" / "screenshots"
MILLISECONDS = 1000 * PATIENCE
NASTY = '<img src=x onerror="document.title=1"> & "b"'
METRICS = {
    "quality": {"direction": "max", "eps": 0.05},
    "cost": {"direction": "min", "eps": 0.1, "unit": "ct"},
    "speed": "max",
}
TRUTH = {"small": (0.6, 1.0, 9.0), "large": (0.9, 4.0, 3.0), NASTY: (0.5, 5.0, 2.0)}


@pytest.fixture
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Looker:
    """Somebody with a browser; what the browser complains about is kept."""

    def __init__(self, browser: Any, **how: Any) -> None:
        self.context = browser.new_context(**how)
        self.context.set_default_timeout(MILLISECONDS)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.outside: list[str] = []
        self.page.on("request", lambda request: self.outside.append(request.url))

    def picture(self, name: str) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def measure(study: Any, n: int) -> None:
    chance = random.Random(5)
    for _ in range(n):
        if study.finished:
            return
        trial = study.ask()
        quality, cost, speed = (value + chance.gauss(0, 0.02) for value in TRUTH[trial.arm])
        study.tell(trial, {"quality": quality, "cost": cost, "speed": speed}, note=NASTY)


def serious(page: Any) -> list[str]:
    """What keeps somebody from using the page."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found if each["impact"] in ("serious", "critical")
    ]


def test_a_team_watches_a_study(browser: Any, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'team.db'}"
    tokens = Tokens(SQLStorage(place))
    write, read = tokens.create("write"), tokens.create("read", note="the team")
    with served(place) as server:
        with ps.connect(server.url, write) as connected:
            study = connected.create(
                "models", list(TRUTH), METRICS, title=f"Which one? {NASTY}", sigma=0.02, tags=["llm"]
            )
            _walk(Looker(browser, viewport={"width": 1440, "height": 900}), server, study, read)
        _narrow_and_dark(browser, server, read)


def _sign_in(looker: Looker, token: str) -> None:
    looker.page.fill("input[name=token]", token)
    looker.page.click("button[type=submit]")


def _walk(looker: Looker, server: Served, study: Any, token: str) -> None:
    page = looker.page
    page.goto(f"{server.url}/studies/models")
    assert "/sign-in" in page.url
    _sign_in(looker, "ps_wrong")
    assert "wrong" in page.inner_text("[role=alert]")
    looker.complaints.clear()  # the browser says that the answer was 401
    _sign_in(looker, token)
    page.wait_for_url(f"{server.url}/studies/models")
    cookie = next(each for each in looker.context.cookies() if each["name"] == "paretoscout_token")
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert page.inner_text("h1") == f"Which one? {NASTY}"

    measure(study, 2)
    wait_for("the page to show the first outcomes", lambda: "decided" in page.title())
    before = page.title()
    measure(study, 2000)
    assert study.done
    wait_for("the page to show that all is decided", lambda: "all 3 decided" in page.title().lower())
    assert before != page.title()
    rows = study.standing().as_dict()["told"]
    wait_for("all parts to be of that moment", lambda: f"{rows:,} rows" in page.inner_text("#share"))
    assert "undecided" not in page.inner_text("ul.key >> nth=0")
    looker.picture("study-light-1440")
    assert serious(page) == []

    page.goto(f"{server.url}/studies/models?x=speed&y=quality&sort=cost")
    rows = page.locator("table.opts tbody tr, table tbody tr").first
    assert rows.count() == 1
    header = page.locator("th[aria-sort]")
    assert header.count() >= 1
    page.goto(f"{server.url}/studies/models?option={'large'}")
    assert "large" in page.inner_text("#why, .why >> nth=0")
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    looker.picture("study-evidence")

    page.goto(f"{server.url}/")
    assert "Which one?" in page.inner_text("main")
    study.server.create("second", ["x", "y"], {"quality": "max"})
    page.reload()
    page.fill("#find", "which")
    study.server.create("third", ["x", "y"], {"quality": "max"})
    wait_for("the list to show what is new", lambda: page.locator(".study").count() == 3)
    assert page.locator(".study:not([hidden])").count() == 1, "what is typed is kept"
    page.fill("#find", "")
    assert serious(page) == []
    looker.picture("list-light-1440")
    page.click("text=Sign out")
    page.wait_for_url(f"{server.url}/sign-in**")
    page.goto(f"{server.url}/studies/models")
    assert "/sign-in" in page.url
    assert looker.complaints == []
    assert all(url.startswith((server.url, "data:")) for url in looker.outside)


def _narrow_and_dark(browser: Any, server: Served, token: str) -> None:
    looker = Looker(browser, viewport={"width": 390, "height": 844}, color_scheme="dark")
    looker.page.goto(f"{server.url}/sign-in")
    _sign_in(looker, token)
    looker.page.goto(f"{server.url}/studies/models")
    wide = looker.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 391, "the page is wider than the phone"
    assert serious(looker.page) == []
    looker.picture("study-dark-390")
    assert looker.complaints == []
