"""History follows the log: in pieces or at once, it says the same, and what it says is what the log says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from conftest import MORE
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoscout import Metric, Study
from paretoscout.storage import Event
from paretoscout.study import history as module
from paretoscout.study.history import MOST_MOMENTS, RECENT, Dots, History, undecided_over_samples

ARMS = ("a", "b", "c")


def made(kinds: list[tuple[str, int]]) -> list[Event]:
    """Events as a study would append them, from a list of kinds and numbers that vary them."""
    events: list[Event] = []
    for number, (kind, some) in enumerate(kinds):
        arm = ARMS[some % 3]
        bodies: dict[str, dict[str, Any]] = {
            "ask": {"arm": arm},
            "tell": {"arm": arm, "values": [float(some), None if some % 5 == 0 else 1.0]},
            "part": {"arm": arm, "values": [float(some), None], "more": True},
            "fail": {"reason": "x"},
            "data": {"arms": [ARMS[k % 3] for k in range(some % 7)], "values": [[1.0, 2.0]] * (some % 7)},
            "add": {"add": [[f"new {some}", None]]},
            "withdraw": {"withdraw": {arm: "broken"}},
            "note": {"note": f"note {some}", "tags": ["t"]},
        }
        name = {"part": "tell", "add": "arms", "withdraw": "arms"}.get(kind, kind)
        trial = None if name in ("data", "arms") or (kind == "note" and some % 2) else some
        events.append(Event(number, name, trial, bodies[kind], 100.0 + number, f"worker {some % 2}"))
    return events


KINDS = st.sampled_from(["ask", "tell", "tell", "tell", "part", "fail", "data", "add", "withdraw", "note"])
LOGS = st.lists(st.tuples(KINDS, st.integers(0, 30)), max_size=60).map(made)


@given(events=LOGS, cuts=st.lists(st.integers(0, 60), max_size=5))
@settings(max_examples=60 * MORE)
def test_pieces_make_no_difference(events: list[Event], cuts: list[int]) -> None:
    at_once, in_pieces = History(ARMS), History(ARMS)
    at_once.follow(events)
    ends = [*sorted(cuts), len(events)]
    start = 0
    for end in ends:
        in_pieces.follow(events[start:end])
        in_pieces = in_pieces.copy()
        in_pieces.follow(events[:end])  # what is known already changes nothing
        start = max(start, end)
    assert in_pieces == at_once
    assert vars(in_pieces) == vars(at_once)


@given(events=LOGS)
@settings(max_examples=40 * MORE)
def test_counts_are_those_of_the_log(events: list[Event]) -> None:
    history = History(ARMS)
    history.follow(events)
    counted = Counter(arm for event in events if event.kind == "data" for arm in event.body["arms"])
    counted.update(event.body["arm"] for event in events if event.kind == "tell" and not event.body.get("more"))
    assert history.samples == counted.total()
    assert {name: history.counts_of(name) for name in counted} == counted
    assert history.samples_at(-1) == 0
    assert history.samples_at(len(events)) == history.samples
    assert len(history.recent) <= RECENT
    moments = history.shared_out()
    assert [samples for samples, _ in moments] == [sum(of_each) for _, of_each in moments]


def test_what_is_kept_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DOTS", 60)
    history = History(ARMS)
    n = 40 * MOST_MOMENTS
    history.follow(
        Event(k, "tell", k, {"arm": ARMS[0 if k % 100 else 1], "values": [float(k)]}, float(k), "w") for k in range(n)
    )
    assert history.samples == n
    assert MOST_MOMENTS / 2 <= len(history.moments) <= MOST_MOMENTS
    assert 10 <= len(history.dots_of("a")) <= 20
    assert len(history.dots_of("b")) > 8, "one that was run seldom keeps its dots"
    assert len(history.dots_of("a", 5)) <= 5
    assert history.dots_of("a")[-1][0] is not None
    assert history.dots_of("nobody") == []
    assert [seen.trial for seen in history.recent] == list(range(n - RECENT, n))
    assert history.workers["w"].told == n


def test_dots_are_spread_evenly() -> None:
    dots = Dots(10)
    for k in range(1000):
        dots.add((float(k),))
    gaps = {
        b[0] - a[0] for a, b in zip(dots.kept, dots.kept[1:], strict=False) if a[0] is not None and b[0] is not None
    }
    assert gaps == {float(dots.stride)}


def test_a_copy_does_not_change() -> None:
    history = History(ARMS)
    history.follow(made([("tell", k) for k in range(9)]))
    copied, before = history.copy(), vars(history.copy())
    history.follow([Event(9, "tell", 9, {"arm": "a", "values": [1.0, 2.0]})])
    assert vars(copied) == before


def test_undecided_over_samples() -> None:
    history = History(ARMS)
    history.follow(
        [
            Event(0, "tell", 0, {"arm": "a", "values": [1.0]}),
            Event(1, "tell", 1, {"arm": "b", "values": [1.0]}),
            Event(2, "arms", None, {"withdraw": {"c": "gone"}}),
            Event(3, "arms", None, {"add": [["d", None]]}),
            Event(4, "tell", 2, {"arm": "d", "values": [1.0]}),
        ]
    )
    assert undecided_over_samples(history, (1, None, 4)) == [(0, 3), (2, 2), (3, 1)]


def test_a_study_reads_only_what_is_new() -> None:
    study = Study(["a", "b"], [Metric("x", eps=0.5), Metric("y", "min", eps=0.5)], sigma=0.1, storage="memory")
    read: list[int] = []
    events = study.storage.events

    def counting(name: str, after: int = -1, kinds: Any = None) -> Any:
        read.append(after)
        return events(name, after, kinds)

    study.storage.events = counting  # type: ignore[method-assign]
    study.tell(study.ask(), {"x": 1.0, "y": 2.0})
    first = study.history()
    study.tell(study.ask(), {"x": 1.0, "y": 2.0})
    read.clear()
    second = study.history()
    assert read == [first.last]
    assert (first.samples, second.samples) == (1, 2)
    fresh = Study.load(study.name, study.storage).history()
    assert fresh == second


def test_details_say_what_the_standing_says() -> None:
    study = Study(
        ["a", "b", "c"], [Metric("x", eps=0.5)], guards=["m <= 5"], sigma={"x": 0.1, "m": 0.1}, storage="memory"
    )
    for _ in range(30):
        if study.done:
            break
        trial = study.ask()
        study.tell(
            trial, {"x": {"a": 1.0, "b": 3.0, "c": 2.0}[trial.arm], "m": {"a": 1.0, "b": 9.0, "c": 4.0}[trial.arm]}
        )
    details = study.details()
    assert details.standing.as_dict() == study.standing().as_dict()
    broken = details.measured("b")
    assert broken.limits[0].kept is False
    assert broken.means == (3.0, 9.0)
    assert [each.option for each in details.standing.withdrawn] == ["b"]
    kept = details.measured("c").limits[0]
    assert kept.kept
    assert kept.low is not None
    assert kept.high is not None
    assert kept.low < 4.0 < kept.high <= 5.0
    assert details.on_blocks("a", "c") is None
