"""What notebooks show: names are escaped, pictures need matplotlib, and the HTML is whole."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import paretoscout as ps
from paretoscout.guarantee import Guarantee
from paretoscout.simulation.results import Result
from paretoscout.verdicts import VerdictTable

NASTY = "<script>alert(1)</script>"
EMPTY = {"meta", "br"}  # elements that are not closed


class Outline(HTMLParser):
    """Reads HTML, and refuses elements that are not closed in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def table() -> VerdictTable:
    return VerdictTable(
        arms=("a", NASTY, "c"),
        metrics=(ps.Metric("time", "min", eps="2%", unit="<ms>"), ps.Metric("quality")),
        verdicts=("front", "front", "dominated"),
        rivals=(None, None, NASTY),
        centres=np.array([[4.6, 0.7], [5.3, 0.9], [5.0, 0.6]]),
        widths=np.full((3, 2), 0.01),
        counts=np.array([9, 9, 9]),
        guarantee=Guarantee("front", 0.95, (("time", "2%"),), ("sigma <given>",)),
    )


def result() -> Result:
    rounds = np.array([1, 10, 50])
    shapes: dict[str, Any] = {
        "sigma": np.ones((2, 1)),
        "divisors": np.ones(1),
        "eps": np.zeros(1),
        "replicates": np.arange(3),
        "samples": np.array([30, 40, 50]),
        "regret": np.array([3.0, 4.0, 5.0]),
        "success": np.ones(3, bool),
        "stopped": np.array([True, True, False]),
        "fronts": np.ones((3, 2), bool),
        "pulls": np.full((3, 2), 20),
        "cost": np.array([30.0, 40.0, 50.0]),
        "regret_rounds": rounds,
        "regret_curves": np.tile(0.1 * rounds, (3, 1)),
    }
    return Result(
        algorithm="scout",
        label="scout",
        settings={},
        problem=NASTY,
        arms=("a", "b"),
        metrics=("q",),
        assumed="",
        guarantee="",
        delta=0.05,
        seed=0,
        max_samples=50,
        budget=None,
        goal="front",
        asked=3,
        **shapes,
    )


def study() -> ps.Study:
    made = ps.Study(
        ["a", NASTY], {"quality": "max"}, sigma=0.1, storage="memory", title="Which <b>one</b>?", name=NASTY, budget=9
    )
    made.tell_frame({"arm": ["a", NASTY] * 2, "quality": [1.0, 0.0, 1.1, 0.1]})
    return made


def html_of(shown: Any, tables: int = 1, pictures: int = 1) -> str:
    text: str = shown._repr_html_()
    outline = Outline(text)
    assert outline.seen.count("table") == tables
    assert outline.seen.count("svg") == pictures
    assert "script" not in outline.seen
    assert NASTY in "".join(outline.texts)
    return text


def test_verdicts() -> None:
    text = html_of(table())
    assert "time (&lt;ms&gt;)" in text
    assert text.index("★ front") < text.index("× dominated by &lt;script&gt;")


def test_a_study_and_its_standing() -> None:
    made = study()
    text = html_of(made)
    html_of(made.standing())
    assert "<strong>Which &lt;b&gt;one&lt;/b&gt;?</strong>" in text
    assert "Budget: 0 of 9 measurements" in text


def test_a_study_without_outcomes() -> None:
    made = ps.Study(["a", NASTY], {"quality": "max"}, sigma=0.1, storage="memory")
    assert "2 undecided; 0 samples" in html_of(made, pictures=0)


def test_results() -> None:
    text = html_of(result())
    assert "40 (15.2–64.8)" in text
    assert "* some replicates ran into max_samples" in text
    html_of(result().summary(), pictures=0)


def test_without_matplotlib_there_is_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    text = html_of(table(), pictures=0)
    assert "Guarantee: all verdicts right with probability 95%, up to 2% of time (sigma &lt;given&gt;)" in text
    html_of(result(), pictures=0)
