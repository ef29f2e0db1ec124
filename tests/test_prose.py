"""Pages are written in one English, with one word for one thing: `tools/prose.py` finds what is not, and finds nothing."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

TOOL = runpy.run_path(str(Path(__file__).parent.parent / "tools" / "prose.py"))


def test_our_pages_keep_to_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = TOOL["main"]([])
    assert not wrong, capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("We utilize it.\n", "'utilize': say use"),
        ("Do it in order\nto win.\n", "'in order to': say to"),
        ("Its behavior is odd.\n", "'behavior' is American: behaviour"),
        ("It is is.\n", "'is is': twice"),
        ("Pull an arm.\n", "'arm': people read option"),
        ("Some words " * 21 + "end.\n", "a sentence of 43 words"),
        ("- " + "some words " * 15 + "\n- " + "some words " * 15 + "\n", ""),  # items are sentences of their own
        ("`utilize(arm)` and <https://utilize.org>.\n", ""),
        ("```sh\nutilize --arm a\n```\n", ""),
        ("| `x` | A. Author: Optimization of a behavior, 2019 |\n", ""),
    ],
)
def test_what_is_found(text: str, what: str) -> None:
    found = [said for _, said in TOOL["complaints"]("docs/how-to/x.md", text)]
    assert found == [] if not what else found[0].startswith(what)


def test_a_complaint_names_the_line() -> None:
    page = "# Title\n\n```sh\nls\n```\n\nFirst line,\nthen we leverage it.\n"
    assert list(TOOL["complaints"]("docs/x.md", page)) == [(8, "'leverage': say use")]


def test_those_who_write_algorithms_may_say_arm() -> None:
    assert list(TOOL["complaints"]("docs/scout.md", "An arm has a mean.\n")) == []
