"""The comparison with hyperfine: what its times and our JSON are taken to say. hyperfine need not be there."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import beside_hyperfine as beside
from benchmarks.beside_hyperfine import CASES, OPEN, SAME, A, B

#: Six runs of `sleep 0.020` and of `sleep 0.021`, as hyperfine 1.15 exports them.
STORED = json.loads((Path(__file__).parent / "data" / "hyperfine.json").read_text("utf-8"))


def with_times(first: Any, second: Any) -> dict[str, Any]:
    told = copy.deepcopy(STORED)
    told["results"][0]["times"], told["results"][1]["times"] = list(first), list(second)
    return told


def test_what_users_conclude_from_the_times_of_hyperfine() -> None:
    assert beside.of_hyperfine(STORED) == {"ranges": OPEN, "t_test": OPEN}, "six runs do not tell 5% from nothing"
    times = np.array([result["times"] for result in STORED["results"]])
    assert beside.of_hyperfine(with_times(times[0], times[0] + 1)) == {"ranges": A, "t_test": A}
    assert beside.of_hyperfine(with_times(times[0] + 1, times[0])) == {"ranges": B, "t_test": B}
    assert beside.of_hyperfine(with_times(times[0], times[0])) == {"ranges": OPEN, "t_test": OPEN}
    noise = np.random.default_rng(0).normal(0.1, 0.02, 200)
    many = with_times(noise, noise[::-1] + 0.01)
    assert beside.of_hyperfine(many) == {"ranges": OPEN, "t_test": A}, "half a sigma apart, two hundred times"


@pytest.mark.parametrize(
    ("verdicts", "answer"),
    [
        (("front", "dominated"), A),
        (("dominated", "front"), B),
        (("front", "same"), SAME),
        (("same", "front"), SAME),
        (("undecided", "undecided"), OPEN),
        (("front", "undecided"), OPEN),
    ],
)
def test_what_a_bench_answers(verdicts: tuple[str, str], answer: str) -> None:
    options = [{"option": name, "verdict": verdict} for name, verdict in zip("ab", verdicts, strict=True)]
    assert beside.of_ours({"options": options}) == answer


def test_who_is_undecided_is_not_wrong() -> None:
    assert [beside.judged(answer, (SAME, B)) for answer in (A, B, SAME, OPEN)] == ["wrong", "right", "right", "open"]


def test_the_table_has_our_half_where_hyperfine_is_missing() -> None:
    ours = {"seconds": 4.2, "runs": 20, "answer": A, "is": "right"}
    theirs = {
        "seconds": 6.9,
        "runs": 52,
        "ranges": {"answer": OPEN, "is": "open"},
        "t_test": {"answer": B, "is": "wrong"},
    }
    alone: dict[str, Any] = {"name": "pair", "eps": "2%", "ours": ours, "hyperfine": None}
    assert beside.table([alone]).splitlines()[-1] == "| pair (2%) | a is faster | 4 s, 20 runs | – | – | – |"
    assert beside.summary([alone]) == "bench: 1 right, 0 wrong, 0 open. In all: bench 4 s"
    both = alone | {"hyperfine": theirs}
    assert beside.table([both]).endswith("| undecided | **b is faster: wrong** | 7 s, 52 runs |")
    assert "hyperfine by t-test: 0 right, 1 wrong, 0 open. In all: bench 4 s, hyperfine 7 s" in beside.summary([both])


def test_ten_cases_with_their_truth() -> None:
    assert len({case.name for case in CASES}) == len(CASES) == 10
    assert all(case.right and set(case.right) <= {A, B, SAME} for case in CASES)


def test_a_bench_is_read_as_it_is(tmp_path: Path) -> None:
    """A case of our own, through the command line and back; a busy machine may leave it open."""
    said = beside.by_ours(beside.Case("factor of 20", ("true", "sleep 0.05"), (A,)), tmp_path)
    assert said["is"] in ("right", "open")
    assert said["runs"] >= 2
