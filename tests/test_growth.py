"""How cost grows: exponents, what counts as worse, what is refused, tables and picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks import growth
from benchmarks.growth import ANSWER, CALL, SAMPLE, Instance

ROOT = Path(__file__).resolve().parent.parent


def made(what: str, cost: str, axis: str, size: int, seconds: float, **more: Any) -> dict[str, Any]:
    """A row as it would have been measured."""
    instance = Instance(what, axis, **{"K": 100, "d": 8, "L": 2, axis: size})
    return growth.row(instance, cost, [seconds], [1e6 * seconds], memory=int(2e6 * size), total=1.0, **more)


def rows() -> list[dict[str, Any]]:
    """Rows of everything, one of them refused."""
    sizes = {"K": (10, 100, 1000, 10_000), "d": (2, 8, 32), "L": (1, 2, 4)}
    found = [
        made(what, cost, axis, size, 1e-6 * size**power)
        for axis, several in sizes.items()
        for size in several
        for what, cost, power in (("gaps", CALL, 1.0), ("scout", SAMPLE, 0.5), ("scout", ANSWER, 1.5))
    ]
    refused = Instance("scout", "K", 10**5, 8, 2)
    return [*found, {**refused._asdict(), "cost": SAMPLE, "skipped": "refused: too many"}]


def test_exponents_are_those_of_the_upper_half() -> None:
    lines = {(line.what, line.cost, line.axis): line for line in growth.lines_of(rows())}
    assert lines["gaps", CALL, "K"].power() == pytest.approx(1.0)
    assert lines["scout", SAMPLE, "K"].power() == pytest.approx(0.5), "what was refused does not count"
    assert lines["scout", ANSWER, "d"].power() == pytest.approx(1.5)
    assert growth.exponent([1, 10, 100, 1000], [9.0, 9.0, 1.0, 100.0]) == pytest.approx(2.0)
    assert math.isnan(growth.exponent([10], [1.0]))


def test_worse_is_what_got_worse_by_more_than_it_varies() -> None:
    before = rows()
    assert growth.worse(before, before, 10.0) == []
    slower = [dict(each) for each in before]
    slower[0]["ratio"] *= 1.6  # 1.3, and 0.2 of each: there was time for one run only
    assert growth.worse(slower, before, 10.0) == []
    slower[0]["ratio"] *= 1.2
    assert len(growth.worse(slower, before, 10.0)) == 1
    assert "1.92 times the committed ratio, 1.70 are allowed" in growth.worse(slower, before, 10.0)[0]
    slower[0]["spread"] = 0.6
    assert growth.worse(slower, before, 10.0) == []
    late = [{**before[0], "skipped": "no answer"}]
    assert "it was measured before" in growth.worse(late, before, 10.0)[0]
    assert growth.worse(late, before, 1.0) == [], "it had less time"
    assert growth.worse(before, before[1:], 10.0) == [], "what is new is no worse"


def test_a_long_one_is_left_out() -> None:
    assert growth.extrapolated([], 10) == 0.0
    assert growth.extrapolated([(10, 1.0), (100, 100.0)], 1000) == pytest.approx(10_000)
    assert growth.extrapolated([(10, 1.0), (100, 1.0)], 1000) == pytest.approx(10.0), "at least as the size"


def test_a_call_and_a_run_are_measured() -> None:
    [call] = growth.measure(Instance("pareto_front", "K", 50, 8, 2), 0.05)
    assert call["cost"] == CALL
    assert call["seconds"] > 0.0
    sample, answer = growth.measure(Instance("multi-pfi", "K", 10, 8, 2), 0.5)
    assert sample["ratio"] > 0.0
    assert answer["seconds"] > sample["seconds"]
    late = growth.measure(Instance("multi-pfi", "K", 10, 8, 2), 0.0)[1]
    assert late["skipped"].startswith("no answer after")


def test_tables_page_and_picture(tmp_path: Path) -> None:
    found = {heading: (cells, notes) for heading, cells, notes in growth.tables(rows())}
    cells, notes = found["How cost grows with the number of options"]
    assert cells[0] == ["CPU time by options", "10", "100", "1,000", "10,000", "100,000", "grows as"]
    assert cells[1] == ["gaps: a call", "10 µs", "100 µs", "1.0 ms", "10 ms", "", "K^1.00"]
    assert notes == ["options 100,000: scout, a sample: refused: too many"]
    text = growth.page((ROOT / "docs" / "growth.md").read_text(), rows(), "images/growth.png")
    assert "Not measured yet" not in text
    assert "| gaps: a call | 10 µs |" in text
    assert growth.page(text, rows(), "images/growth.png") == text
    growth.draw(rows(), tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 10_000
