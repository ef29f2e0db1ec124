"""The site as people use it: built without a network, searched from the file system, read on a phone, in light and dark."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import LONG, PATIENCE

ROOT = Path(__file__).parent.parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

#: What people type, and the page that answers it: one for each question of docs/faq.md.
SEARCHES = {
    "How many measurements do I need?": ("how many measurements", "how-to/plan"),
    "How do I choose eps?": ("choose eps", "concepts/eps"),
    "Two intervals overlap, so how can one option be dominated?": ("boxes overlap", "concepts/boxes"),
    "May I peek and stop early?": ("peek early", "concepts/delta"),
    "What is assumed of the noise?": ("assumed noise", "concepts/guarantee"),
    "Why is everything undecided, and how do I make it stop?": ("undecided larger eps", "concepts/eps"),
    "What do I do with measurements that failed or timed out?": ("failed timed out", "how-to/failures"),
    "Can several machines measure at once?": ("cluster machines", "how-to/cluster"),
    "How do I fail a pipeline when a change is worse?": ("pipeline fails", "how-to/commands"),
    "When should I not use it?": ("when not to use", "concepts/when-not"),
}


def test_there_is_a_search_for_each_question() -> None:
    asked = re.findall(r"^## (.*)$", (ROOT / "docs" / "faq.md").read_text(encoding="utf-8"), re.M)
    assert asked == list(SEARCHES)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` does it: a warning is an error."""
    if not LONG:
        pytest.skip("takes a minute: part of make audit (PARETOSCOUT_LONG=1)")
    pytest.importorskip("pydata_sphinx_theme", reason="the extra docs is not installed")
    out = tmp_path_factory.mktemp("site")
    how = ["-q", "-W", "--keep-going", "-n", "-E", str(ROOT / "docs"), str(out)]
    builder = [sys.executable, "-m", "sphinx", *how]
    done = subprocess.run(builder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.mark.long
def test_the_search_box_answers_the_ten_questions(site: Path, browser: Any) -> None:
    """The page is among the first three, beside the questions themselves."""
    page = browser.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    for question, (typed, wanted) in SEARCHES.items():
        page.goto((site / "index.html").as_uri())
        page.locator(".search-button__button:visible, .search-button:visible").first.click()
        page.locator("dialog input[type=search], .search-button__search-container input").first.fill(typed)
        page.keyboard.press("Enter")
        page.wait_for_selector("#search-results p.search-summary >> text=/matching|not match/")
        links = page.eval_on_selector_all("#search-results li a", "all => all.map(a => a.getAttribute('href'))")
        pages = list(dict.fromkeys(re.split(r"\.html|[?#]", link)[0] for link in links))
        assert wanted in [found for found in pages if found != "faq"][:3], f"{question} {typed!r} leads to {pages[:6]}"


@pytest.mark.long
def test_pages_need_no_other_host_and_fit_on_a_phone(site: Path, browser: Any) -> None:
    for width in (390, 1280):
        for scheme in ("light", "dark"):
            page = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme).new_page()
            elsewhere: list[str] = []
            page.on("request", lambda asked, kept=elsewhere: kept.append(asked.url))
            for file in sorted(site.rglob("*.html")):
                page.goto(file.as_uri())
                assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{file.name} is wider"
                assert not page.evaluate(
                    "[...document.images].some(i => i.offsetParent && i.complete && !i.naturalWidth)"
                ), file
            assert [url for url in elsewhere if not url.startswith(("file:", "data:"))] == []
