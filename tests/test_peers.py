"""The comparison with other programs: answers are judged like our own, and the page says what was measured. Nothing is installed."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

from benchmarks.peers import __main__ as command
from benchmarks.peers import page
from benchmarks.peers.driver import Problem
from paretoscout.geometry import are_right, eps_optimal, pareto_front
from paretoscout.shown import markdown_table

MEANS = np.array([[2.0, 0.0], [0.0, 2.0], [-1.0, -1.0], [1.8, -0.2]])


def run(returned: tuple[int, ...] = (), undecided: tuple[int, ...] = (), right: bool | None = None) -> dict[str, Any]:
    told = {"samples": 40, "seconds": 0.5, "peak_mb": 30.0}
    return {**told, "returned": list(returned), "undecided": list(undecided), "right": right}


@pytest.mark.parametrize("eps", [0.0, 0.3])
def test_answers_are_judged_like_those_of_a_simulation(eps: float) -> None:
    rng = np.random.default_rng(0)
    means = rng.normal(size=(6, 2))
    for returned in rng.random((200, 6)) < 0.6:
        (right,) = are_right(means, returned[None], np.full(2, eps), "front")
        judged = page.judged(means, eps, run(tuple(np.flatnonzero(returned))))
        assert judged["wrong"] == (not right)
        assert judged["wrong"] == (judged["extra"] + judged["lacking"] > 0)


def test_who_is_undecided_or_off_by_eps_is_not_wrong() -> None:
    def wrong(*args: Any, eps: float = 0.1) -> bool:
        return bool(page.judged(MEANS, eps, run(*args))["wrong"])

    assert not wrong((0, 1))
    assert not wrong((0,), (1,))
    assert wrong((0,))
    assert wrong((0, 1, 3))
    assert not wrong((0, 1, 3), eps=0.3)
    assert page.judged(MEANS, 0.1, run((0, 2), (3,))) == {"wrong": True, "extra": 1, "lacking": 1, "undecided": 1}
    assert page.judged(MEANS, 0.1, run(right=False)) == {"wrong": True}


def test_a_row_sums_up_its_runs() -> None:
    problem = {"means": MEANS.tolist(), "eps": 0.1}
    row = page.row_of(problem, [run((0, 1)), run((0, 1)), run((0, 2))])
    assert (row["runs"], row["wrong"], row["samples"], row["rate"]) == (3, 1, 40, 80.0)
    assert row["off"] == pytest.approx({"extra": 1 / 3, "lacking": 1 / 3, "undecided": 0})
    assert row["interval"] == pytest.approx((0.0084, 0.9058), abs=1e-4), "Clopper-Pearson, 1 of 3"
    assert page.row_of(problem, [run(right=True)])["off"] is None


def test_the_page_says_all_that_was_measured_and_why_the_rest_is_missing() -> None:
    means = MEANS.tolist()
    problem = {"name": "p", "title": "A problem", "says": "4 options.", "means": means, "eps": 0.1}

    def cell(label: str, promises: bool, *runs: dict[str, Any]) -> dict[str, Any]:
        return {"problem": "p", "label": label, "promises": promises, "row": page.row_of(problem, runs)}

    cells = [
        cell("luck", False, *[run((0,))] * 9),
        cell("slow", True, run((0, 1))),
        {"problem": "p", "label": "too slow", "promises": True, "why": "no answer in 240 s"},
    ]
    peers = [
        {"name": "Tool", "version": "1.2", "size_mb": 1234.5, "import_seconds": 0.5, "settings": "defaults"},
        {"name": "Other", "settings": "none", "why": "it is not here"},
    ]
    head = {"date": "2026-01-02", "machine": "a machine", "delta": 0.1}
    head |= {"replicates": 200, "seconds": 120, "patience": 240, "at_once": 2, "disk": "4 GB"}
    missing = {"name": "q", "title": "Another problem", "why": "it is not on this machine"}
    text = page.page({"head": head, "problems": [problem, missing], "cells": cells, "peers": peers, "commands": ""})
    header = ["who", "promises delta", "samples", "failures", "off", "samples per second", "memory (MB)"]
    rows = [
        ["slow", "yes", "40", "0 of 1 (0.00–0.97)", "0", "80", "30"],
        ["luck", "no", "40", "**9 of 9 (0.66–1.00)**", "−1", "80", "30"],
    ]
    assert markdown_table(header, rows) in text
    assert "too slow: no answer in 240 s." in text
    assert "Skipped: Other: it is not here." in text
    assert "| Tool | 1.2 | 1,234 | 0.50 | defaults |" in text
    assert "2026-01-02" in text
    assert "it is not on this machine" in text


def test_problems_have_one_right_answer() -> None:
    """So programs with and without eps, and those that only say whether they found the front, are judged alike."""
    there = [problem for problem in command.problems() if "means" in problem]
    assert {"s5", "four-arms"} <= {problem["name"] for problem in there}
    for problem in there:
        means = np.array(problem["means"])
        eps = np.full(means.shape[1], problem["eps"])
        np.testing.assert_array_equal(eps_optimal(means, eps), pareto_front(means))
        assert problem["eps"] > 0


def test_a_driver_reads_what_the_command_asks() -> None:
    asked = {"algorithm": "a", "means": [[1, 2], [3, 4]], "eps": 0.1, "delta": 0.1, "budget": 5}
    asked |= {"replicates": 3, "seconds": 9, "code": ""}
    problem = Problem.read(io.StringIO(json.dumps(asked)))
    drawn = problem.draw(np.random.default_rng(0), 1, 10_000)
    np.testing.assert_allclose(drawn.mean(axis=0), [3, 4], atol=0.06)  # 6 sigma
    np.testing.assert_allclose(drawn.std(axis=0), 1, atol=0.05)
