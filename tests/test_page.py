"""Pages: what they say in each state, that nothing from outside becomes markup, that every link works."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import MORE, PATIENCE, wait_for
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoscout import Metric, Study
from paretoscout.cli.main import main
from paretoscout.errors import UnknownName
from paretoscout.page import (
    Choice,
    Column,
    Download,
    Frame,
    Report,
    View,
    list_page,
    message_page,
    row_of,
    sentences,
    sign_in_page,
    static,
    study_page,
    unreadable,
    view_of,
    words,
)
from paretoscout.page.charts import axes_of
from paretoscout.page.render import POLICY, STATIC
from paretoscout.page.svg import element, linear_ticks, log_ticks
from paretoscout.storage import Event
from paretoscout.study.history import Note

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> {{7*7}} &amp; \u202e --> ]]>"
#: Elements without an end.
VOID = {"meta", "link", "input", "br", "img", "hr"}
FRAME = Frame(
    now=2_000_000_000.0,
    static="/static/",
    home="/",
    here="/s/x",
    events="/s/x/events",
    share="https://example.org/s/x",
    downloads=(Download("Runs, CSV", "/s/x.csv", "3 rows"),),
    links=(("API", "/api"),),
    sign_out="/out",
    user="somebody",
    csrf="secret",
)


class Page(HTMLParser):
    """Reads a page: checks nesting, and keeps tags, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.feed(text)
        self.close()
        assert not self.stack, f"not closed: {self.stack}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice: {tag} {names}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.stack or self.stack[-1] not in ("script", "style"):
            self.said.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.said))

    @property
    def kinds(self) -> set[str]:
        return {tag for tag, _ in self.tags}

    @property
    def attributes(self) -> set[tuple[str, str]]:
        return {(tag, name) for tag, attributes in self.tags for name in attributes}

    @property
    def links(self) -> list[str]:
        return [str(attributes["href"]) for tag, attributes in self.tags if tag == "a" and "href" in attributes]


def measure(study: Study, truth: Mapping[str, tuple[float, ...]], n: int, noise: float = 0.05, seed: int = 0) -> Study:
    """Ask and tell so many times."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        if study.done or study.exhausted:
            break
        trial = study.ask()
        means = zip(study.spec.columns, truth[trial.arm], strict=True)
        study.tell(trial, {name: float(mean + noise * rng.standard_normal()) for name, mean in means})
    return study


TRUTH = {"small": (1.0, 1.0), "middle": (2.0, 2.0), "large": (3.0, 3.0), "bad": (1.0, 3.5)}
METRICS = [Metric("quality", "max", eps=0.2, unit="pt"), Metric("cost", "min", eps=0.2, unit="ct")]


def a_study(n: int, **more: Any) -> Study:
    """A study of four options, measured so many times."""
    settings = {"sigma": 0.5, "storage": "memory", "title": "Which size?", **more}
    return measure(Study(list(TRUTH), METRICS, **settings), TRUTH, n)


def guarded() -> Study:
    """A study with a limit that one option breaks, and one that was withdrawn by hand."""
    study = Study(
        [*TRUTH, "heavy"],
        METRICS,
        guards=["memory <= 16"],
        sigma={"quality": 0.1, "cost": 0.1, "memory": 0.1},
        storage="memory",
    )
    study.withdraw("bad", "no longer made")
    truth = {name: (*values, 9.0) for name, values in TRUTH.items()} | {"heavy": (4.0, 4.0, 30.0)}
    return measure(study, truth, 400)


def three_metrics(n: int = 60) -> Study:
    """A study with three metrics, one of them compared by ratios."""
    metrics = [*METRICS, Metric("time", "min", eps="10%", unit="s")]
    study = Study(list(TRUTH), metrics, sigma=[0.4, 0.4, 0.1], storage="memory")
    return measure(study, {name: (*values, values[1]) for name, values in TRUTH.items()}, n)


@pytest.fixture(scope="module")
def running() -> View:
    study = a_study(40)
    study.ask(2)
    return view_of(study, seconds=0.2)


@pytest.fixture(scope="module")
def broken() -> View:
    return view_of(guarded(), seconds=0.2)


@pytest.fixture(scope="module")
def three() -> View:
    return view_of(three_metrics(), seconds=0.2)


# What a page says


def test_a_running_study(running: View) -> None:
    assert running.state == "running"
    text = study_page(running, Choice(), FRAME)
    page = Page(text)
    assert "Which size?" in page.text
    assert sentences.text_of(sentences.answer(running)) in page.text
    left = running.undecided
    assert 0 < left < 4
    assert f"{4 - left} of 4 decided – Which size?" in page.text
    assert "Still to run" in page.text
    assert "live, last run" in page.text
    assert page.text.count("min left") + page.text.count("overdue") == 2, "the open trials"
    assert 'data-events="/s/x/events"' in text
    assert "https://example.org/s/x" in text
    assert "Runs, CSV" in page.text
    assert "Sign out" in page.text
    for each in running.standing.guarantee.assumptions:
        assert words.capital(each) in page.text


def test_the_table_says_all_that_the_charts_say(running: View) -> None:
    page = Page(study_page(running, Choice(), FRAME))
    for option in running.options:
        for metric, known in zip(running.metrics, option.estimates, strict=True):
            assert sentences.estimate(known) in page.text
            assert sentences.interval(known) in page.text
            label = sentences.described(running, option)
            assert f"{metric.name} {sentences.estimate(known)}" in label
            assert label in [attributes.get("aria-label") for _, attributes in page.tags], "a mark says it all"
        if option.rival and option.verdict != "front":
            assert sentences.link_word(option) in page.text


def test_a_finished_study() -> None:
    view = view_of(a_study(400, sigma=0.05))
    page = Page(study_page(view, Choice(), FRAME))
    assert view.state == "done"
    assert "Three of four options are worth having: large, middle and small. One is dominated: bad." in page.text
    assert "All 4 decided – Which size?" in page.text
    assert "Every option has its verdict; nothing is left to ask." in page.text
    assert "Still to run" not in page.text
    assert row_of(view, "/s").state == "done"


def test_a_limit_that_is_broken_and_one_who_left(broken: View) -> None:
    page = Page(study_page(broken, Choice(option="heavy"), FRAME))
    assert "heavy is out: it breaks memory ≤ 16." in page.text
    assert "bad was withdrawn (no longer made)." in page.text
    assert "Why is heavy out?" in page.text
    assert "limit: at most 16" in page.text
    assert "✓ keeps the limit" in page.text
    assert "✗ breaks it for sure" in page.text
    assert "1 breaks a limit, 1 withdrawn" in page.text
    assert ("line", "class") in page.attributes
    assert any(attributes.get("class") == "lim" for _, attributes in page.tags), "the limit is drawn"


def test_nothing_measured_yet() -> None:
    study = a_study(0)
    page = Page(study_page(view_of(study), Choice(), FRAME))
    assert "No runs yet" in page.text
    assert "paretoscout tell 0 quality=VALUE cost=VALUE" in page.text
    assert Page(study_page(view_of(study))).text.count("No runs yet") == 2, "in the title, too"
    assert row_of(view_of(study), "").state == "empty"


def test_few_outcomes_have_no_intervals_yet() -> None:
    study = Study(list(TRUTH), METRICS, storage="memory")
    measure(study, TRUTH, 2)
    page = Page(study_page(view_of(study), Choice(), FRAME))
    assert "no bounds yet" in page.text
    assert "not measured" in page.text


def test_a_budget_that_is_spent() -> None:
    view = view_of(a_study(40, budget=30), seconds=0.2)
    assert view.state == "spent"
    page = Page(study_page(view, Choice(), FRAME))
    assert "the budget of 30 runs is spent" in page.text
    assert "30 of 30 runs" in page.text
    listed = Page(list_page([row_of(view, "/s/x")], FRAME))
    assert "Waiting for somebody" in listed.text
    assert "budget spent" in listed.text


def test_a_study_that_is_stuck() -> None:
    study = Study(["a", "b"], [Metric("x", "max", eps=0.1)], storage="memory")
    for _ in range(60):
        if study.stuck:
            break
        study.tell(study.ask(), {"x": 1.0})
    view = view_of(study)
    assert view.state == "stuck"
    assert "more runs are of no use" in Page(study_page(view, Choice(), FRAME)).text


def test_blocks_that_matter_most() -> None:
    blocks = [f"prompt {k}" for k in range(30)]
    study = Study(["a", "b", "c"], [Metric("quality", "max", eps=0.02)], blocks=blocks, storage="memory")
    rng = np.random.default_rng(0)
    for _ in range(60):
        if study.done:
            break
        trial = study.ask()
        study.tell(trial, {"quality": {"a": 0.5, "b": 0.6, "c": 0.58}[trial.arm] + 0.1 * rng.standard_normal()})
    page = Page(study_page(view_of(study, seconds=0.2), Choice(), FRAME))
    assert re.search(r"Both were measured on \d+ blocks of 30\.", page.text)
    assert re.search(r"quality differs most on prompt \d+, prompt \d+ and prompt \d+\.", page.text)


def test_notes_and_workers(running: View) -> None:
    history = running.history.copy()
    history.notes.append(Note("looks odd", ("gpu",), 5.0, "me"))
    history.recent[-1] = replace(history.recent[-1], note="slow machine")
    page = Page(study_page(replace(running, history=history), Choice(), FRAME))
    assert "looks odd gpu" in page.text
    assert "slow machine" in page.text
    assert next(iter(history.workers)) in page.text


def test_a_report_says_more(running: View) -> None:
    report = Report(
        said=("Beside one, two is slower.",),
        notes=("the machine drifts",),
        made=(("Date", "today"), ("Made by", "paretoscout bench x")),
        commands=(("small", "run --small"),),
        columns=(Column("cost ÷ small", {"large": "3.0"}),),
    )
    page = Page(study_page(replace(running, report=report)))
    for text in ("Beside one, two is slower.", "the machine drifts", "today", "run --small", "cost ÷ small", "3.0"):
        assert text in page.text


# Interaction


def test_every_pair_of_metrics_and_every_view(three: View) -> None:
    assert axes_of(three, Choice()) == ("cost", "quality"), "what is to be small goes across"
    for choice in (Choice(x="time"), Choice(y="time"), Choice(x="cost", y="time"), Choice(view="pairs")):
        assert Page(study_page(three, choice, FRAME)).kinds >= {"svg", "table"}
    assert axes_of(three, Choice(y="time")) == ("quality", "time")
    parallel = study_page(three, Choice(view="parallel"), FRAME)
    assert parallel.count('class="across"') == 4
    assert study_page(three, Choice(view="pairs"), FRAME).count('class="plane"') == 3


def test_the_table_is_sorted(running: View) -> None:
    def first(sort: str) -> str:
        text = study_page(running, Choice(sort=sort), FRAME)
        return re.findall(r'<a class="name"[^>]*>([^<]*)</a>', text)[0]

    assert first("quality") == "large"
    assert first("-quality") in ("small", "bad")
    assert first("cost") == "small"
    assert first("option") == "bad"
    assert first("-option") == "small"
    text = study_page(running, Choice(sort="quality"), FRAME)
    assert re.search(r'aria-sort="descending"><a href="[^"]*sort=-quality', text)
    assert study_page(running, Choice(sort="nonsense"), FRAME) == study_page(running, Choice(), FRAME)


def test_evidence_beside_any_rival(running: View) -> None:
    for rival in ("small", "large", "bad"):
        page = Page(study_page(running, Choice(option="middle", rival=rival), FRAME))
        assert "Why is middle" in page.text
        assert f"{rival} ahead →" in page.text
    pair = running.pair("middle", "large")
    assert pair.differences[0].value == pytest.approx(1.0, abs=0.6)
    page = Page(study_page(running, Choice(option="middle", rival="middle"), FRAME))
    assert "Why is middle" in page.text


NAMES = st.text(max_size=12) | st.sampled_from(["quality", "cost", "small", "large", "-quality", "verdict", "a&b=c#d"])


@given(
    query=st.dictionaries(
        st.sampled_from(["x", "y", "option", "rival", "sort", "view", "wall", "all", "w", "other"]), NAMES
    )
)
@settings(max_examples=200 * MORE)
def test_a_choice_comes_back_from_its_link(query: dict[str, str]) -> None:
    choice = Choice.of(query)
    again = Choice.of(dict(parse_qsl(choice.query()[1:], keep_blank_values=True)))
    assert again == choice
    known = choice.known(["quality", "cost", "time"], ["small", "large"])
    assert known.x in (None, "quality", "cost", "time")
    assert known.option in (None, "small", "large")
    assert known.known(["quality", "cost", "time"], ["small", "large"]) == known


@given(query=st.dictionaries(st.sampled_from(["x", "y", "option", "rival", "sort", "view", "w"]), NAMES))
@settings(max_examples=15 * MORE)
def test_no_query_is_an_error(running: View, query: dict[str, str]) -> None:
    assert "Which size?" in study_page(running, Choice.of(query), FRAME)


def test_every_link_of_a_page_leads_to_a_page(three: View) -> None:
    page = Page(study_page(three, Choice(), FRAME))
    own = {link for link in page.links if link.startswith("/s/x?")}
    assert len(own) > 12
    for link in sorted(own):
        choice = Choice.of(dict(parse_qsl(urlsplit(link).query)))
        assert choice == choice.known([metric.name for metric in three.metrics], three.place), link
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    for link in page.links:
        assert urlsplit(link).fragment in {"", *ids}, link


def test_forms_carry_what_was_chosen(three: View) -> None:
    text = study_page(three, Choice(x="time", sort="cost", option="small"), FRAME)
    assert '<input type="hidden" name="sort" value="cost">' in text
    assert '<input type="hidden" name="x" value="time">' in text


def test_the_same_parts_are_always_there(running: View, three: View, broken: View) -> None:
    """The script replaces parts in place: a part that comes or goes would mean to load the page again."""
    finished = view_of(a_study(400, sigma=0.05))
    warned = replace(finished, report=Report(notes=("a remark",)))
    pages = [Page(study_page(view, Choice(), FRAME)) for view in (running, three, broken, finished, warned)]
    pages += [Page(study_page(three, Choice(view=view), FRAME)) for view in ("pairs", "parallel")]
    parts = [[attributes["data-part"] for _, attributes in page.tags if "data-part" in attributes] for page in pages]
    assert all(names == parts[0] for names in parts)
    assert len(set(parts[0])) == len(parts[0])


def test_a_view_is_made_once_for_an_event() -> None:
    study = a_study(8)
    view = view_of(study, seconds=0)
    assert view_of(study, seconds=0, previous=view) is view
    study.tell(study.ask(), {"quality": 1.0, "cost": 1.0})
    assert view_of(study, seconds=0, previous=view) is not view


# Many options, one metric


def test_many_options() -> None:
    K = 120
    truth = {f"option {k}": (float(k % 30), float(k)) for k in range(K)}
    study = Study(list(truth), METRICS, sigma=0.05, storage="memory")
    rng = np.random.default_rng(0)
    study.tell_many(
        [
            (trial, {"quality": truth[trial.arm][0] + 0.05 * rng.standard_normal(), "cost": truth[trial.arm][1]})
            for trial in study.ask(3 * K)
        ]
    )
    view = view_of(study, seconds=0.1)
    text = study_page(view, Choice(), FRAME)
    page = Page(text)
    assert text.count("<tr class=") <= 41
    assert re.search(r"\d+ more options are not shown\. Show all options", page.text)
    assert 'class="tally"' not in text
    assert 'class="parts"' in text
    assert study_page(view, Choice(all=True), FRAME).count('class="name"') == K
    assert len(text) < 400_000
    assert len(study_page(view)) < 1_500_000
    assert row_of(view, "").marks == ()
    assert Page(list_page([row_of(view, "")], FRAME)).kinds >= {"svg"}


def test_one_metric() -> None:
    study = Study(["a", "b"], [Metric("x", eps=0.1)], sigma=0.1, storage="memory")
    measure(study, {"a": (1.0,), "b": (2.0,)}, 10)
    page = Page(study_page(view_of(study, seconds=0.1), Choice(y="x"), FRAME))
    assert any("x of each option" in (attributes.get("aria-label") or "") for _, attributes in page.tags)


# The list


def test_the_list(running: View, broken: View) -> None:
    rows = [
        row_of(running, "/s/one"),
        row_of(broken, "/s/two"),
        row_of(view_of(a_study(0)), "/s/three"),
        unreadable("four", "the settings of study 'four' cannot be read"),
    ]
    page = Page(list_page(rows, FRAME))
    assert "2 running, 1 waiting for somebody, 1 decided." in page.text
    assert "cannot be read" in page.text
    assert "Waits for its first outcome." in page.text
    assert {"/s/one", "/s/two", "/s/three"} <= set(page.links)
    found = Page(list_page(rows, FRAME, query="which SIZE"))
    assert "/s/one" in found.links
    assert "/s/two" not in found.links
    assert "Nothing found" in Page(list_page(rows, FRAME, query="nowhere")).text
    assert "No studies yet" in Page(list_page([], FRAME)).text


def test_other_pages() -> None:
    page = Page(message_page("There is no such study", "'x' is not here.", FRAME))
    assert "'x' is not here." in page.text
    text = sign_in_page(replace(FRAME, sign_in="/in"), "The token is not known.", "abc", then="/s/x")
    assert Page(text).text.count("The token is not known.") == 1
    assert 'name="csrf" value="abc"' in text
    assert 'name="then" value="/s/x"' in text
    assert set(STATIC) == {"page.css", "page.js", "logo.svg"}
    for name in STATIC:
        assert static(name)
    with pytest.raises(UnknownName):
        static("../render.py")


# Nothing from outside becomes markup


def with_names(name: Callable[[str], str]) -> list[str]:
    """All pages, of studies whose names are all made by a function; names of old versions could be anything."""
    arms = [name(arm) for arm in TRUTH]
    metrics = [
        Metric.stored(name("quality"), name("pt"), direction="max", eps=0.2),
        Metric.stored(name("cost"), name("ct"), direction="min", eps=0.2),
        Metric.stored(name("time"), name("s"), direction="min", eps="10%"),
    ]
    study = Study(["a", "b", "c", "d"], METRICS, sigma=0.5, storage="memory", title="title")
    measure(study, dict(zip("abcd", TRUTH.values(), strict=True)), 30)
    study.withdraw("d", name("reason"))
    study.ask()
    view = view_of(study, seconds=0.1)
    table = replace(
        view.table,
        arms=tuple(arms[: len(view.table.arms)]),
        metrics=tuple(metrics[:2]),
        rivals=tuple(None if rival is None else arms["abcd".index(rival)] for rival in view.table.rivals),
        remark=name("remark"),
    )
    standing = replace(
        view.standing,
        name=name("name"),
        title=name("title"),
        table=table,
        withdrawn=tuple(replace(each, option=arms[3], reason=name("reason")) for each in view.standing.withdrawn),
        open=tuple(replace(each, arm=arms[0]) for each in view.standing.open),
        _place={arms["abcd".index(old)]: place for old, place in view.standing._place.items()},
    )
    details = replace(view.details, standing=standing)
    details._replica.index = {arms["abcd".index(old)]: place for old, place in details._replica.index.items()}
    history = view.history.copy()
    history.index = {arms["abcd".index(old)]: place for old, place in history.index.items()}
    history.recent = [
        replace(each, option=arms[0], by=name("by"), note=name("note"), block=name("block")) for each in history.recent
    ]
    history.follow([Event(10**6, "note", None, {"note": name("note"), "tags": [name("tag")]}, 1.0, name("by"))])
    history.workers = {name("worker"): replace(worker, name=name("worker")) for worker in history.workers.values()}
    report = Report(
        said=(name("said"),),
        notes=(name("note"),),
        made=((name("what"), name("made")),),
        commands=((name("option"), name("command")),),
        columns=(Column(name("heading"), {arms[0]: name("text")}),),
    )
    evil = replace(view, title=name("title"), details=details, history=history, guards=(name("guard"),), report=report)
    frame = replace(FRAME, user=name("user"), csrf=name("csrf"), downloads=(Download(name("label"), "/d", name("n")),))
    row = row_of(evil, "/s/x")
    return [
        study_page(evil, Choice(option=arms[1]), frame),
        study_page(evil, Choice(option=arms[3]), frame),
        study_page(evil),
        list_page([row, unreadable(name("name"), name("problem"))], frame, query=name("query")[:0]),
        list_page([row], frame, query=name("query")),
        message_page(name("title"), name("text"), frame),
        sign_in_page(frame, name("error"), name("csrf"), name("then")),
    ]


def test_nothing_from_outside_becomes_markup() -> None:
    plain, evil = with_names(lambda text: f"{text} x"), with_names(lambda text: f"{text} {EVIL}")
    for before, after in zip(plain, evil, strict=True):
        was, now = Page(before), Page(after)
        assert now.kinds <= was.kinds | {"line"}
        assert {each for each in now.attributes - was.attributes if each[0] != "text"} <= {
            ("line", name) for name in ("class", "x1", "x2", "y1", "y2", "data-k")
        }, "names that are cut may need lines to their marks"
        assert re.sub(r"\s+", " ", words.harmless(EVIL)) in now.text, (
            "it is shown as it is, and templates are not run twice"
        )
        for tag, attributes in now.tags:
            for name in ("id", "class", "for", "type"):
                assert "script" not in (attributes.get(name) or "").replace("text/javascript", ""), (tag, attributes)


@pytest.mark.parametrize("kind", ["running", "three", "broken"])
def test_a_strict_policy_is_kept(kind: str, request: pytest.FixtureRequest) -> None:
    view: View = request.getfixturevalue(kind)
    served = [
        study_page(view, Choice(), FRAME),
        study_page(view, Choice(wall=True), FRAME),
        list_page([row_of(view, "/")], FRAME),
    ]
    for text in [*served, study_page(view)]:
        page = Page(text)
        for tag, attributes in page.tags:
            assert "style" not in attributes, tag
            assert not [name for name in attributes if name.startswith("on")], tag
            for name in ("href", "src", "action"):
                assert not (attributes.get(name) or "").startswith(("javascript:", "data:")), tag
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        assert len(ids) == len(set(ids)), "ids are unique"
        assert (
            "nan" not in " ".join(value or "" for _, attributes in page.tags for value in attributes.values()).split()
        )
    for text in served:
        assert "<style" not in text
        assert re.findall(r"<script[^>]*>([^<]*)</script>", text) == [""], "no script in the page"


def test_in_one_file_all_is_there(three: View) -> None:
    text = study_page(three)
    page = Page(text)
    assert not [tag for tag, attributes in page.tags if tag in ("link", "img") or "src" in attributes]
    assert "Content-Security-Policy" in text
    for option in three.options:
        assert f'id="why-{option.k}"' in text
        assert f"#why-{option.k}" in page.links
    assert text.count('class="plane"') == 1 + 3 + 1, "the first pair, all pairs, side by side"


# Words


def test_small_parts() -> None:
    assert str(element("text", EVIL, x=1.0)).count("<") == 2
    assert linear_ticks(3.0, 3.0) == [3.0]
    assert log_ticks(1e-9, 1e9)[0] >= 1e-9
    assert len(log_ticks(1e-9, 1e9)) <= 6
    assert words.day(1e30) == ""
    assert words.ago(None, 1.0) == ""


# The command, and the browser


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    storage = str(tmp_path / "s.db")
    a_study(12, storage=storage, name="sizes")
    out = tmp_path / "page.html"
    done = CliRunner().invoke(main, ["page", "sizes", "--storage", storage, "--out", str(out)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "Which size?" in Page(out.read_text(encoding="utf-8")).text
    named = CliRunner().invoke(main, ["page", "--name", "sizes", "--storage", storage, "--out", str(out)])
    assert named.exit_code == 0
    both = CliRunner().invoke(main, ["page", "sizes", "--name", "other", "--storage", storage, "--out", str(out)])
    assert both.exit_code == 2
    nowhere = CliRunner().invoke(
        main, ["page", "sizes", "--storage", storage, "--out", str(tmp_path / "no" / "p.html")]
    )
    assert nowhere.exit_code == 2


@pytest.fixture(scope="module")
def browser() -> Any:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs chromium")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield opened
        opened.close()


def test_one_file_works_in_a_browser(browser: Any, three: View, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(study_page(three), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    page.goto(file.as_uri())
    shown = "[...document.querySelectorAll('.why')].filter(e => e.offsetParent).map(e => Number(e.dataset.k))"
    (first,) = page.evaluate(shown)
    other = next(option.k for option in three.options if option.k != first)
    page.click(f".opts tr[data-k='{other}'] .name")
    assert page.evaluate(shown) == [other]
    page.hover(f".plane .pt[data-k='{other}'] .hit")
    assert page.evaluate("document.querySelectorAll('.tip').length") == 1
    page.keyboard.press("Escape")
    assert page.evaluate("document.querySelectorAll('.tip').length") == 0
    page.click("button[data-sort='2']")
    assert page.evaluate("document.querySelector('th[aria-sort=ascending] button').textContent").startswith("quality")
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()
    plain = browser.new_page(java_script_enabled=False)
    plain.goto(f"{file.as_uri()}#why-{other}")
    assert plain.is_visible(f"#why-{other}")
    assert not plain.is_visible(f"#why-{first}")
    plain.close()
    assert problems == []


class Served(BaseHTTPRequestHandler):
    """Serves the page of a study, under the policy, with a stream of events."""

    study: Study
    ended: Any
    seconds = 0.0  # that a page takes

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if asked.path == "/events":
            self.reply(b"", "text/event-stream")
            last = self.study.storage.last(self.study.name)
            while not self.ended.wait(0.05):
                if (now := self.study.storage.last(self.study.name)) != last:
                    last = now
                    self.wfile.write(f"data: {now}\n\n".encode())
                    self.wfile.flush()
        elif asked.path.startswith("/static/"):
            name = asked.path.removeprefix("/static/")
            self.reply(static(name), STATIC[name])
        else:
            frame = Frame(now=0.0, static="/static/", here="/s", events="/events")
            choice = Choice.of(dict(parse_qsl(asked.query)))
            time.sleep(self.seconds)
            self.reply(study_page(view_of(self.study, seconds=0), choice, frame).encode(), "text/html; charset=utf-8")

    def reply(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()


def test_a_page_that_is_served_changes_in_place(browser: Any) -> None:
    study, ended = three_metrics(), threading.Event()
    here: Any = type("Here", (Served,), {"study": study, "ended": ended})
    server = ThreadingHTTPServer(("127.0.0.1", 0), here)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.set_default_timeout(1000 * PATIENCE)
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    try:
        page.goto(f"http://127.0.0.1:{server.server_port}/s")
        page.evaluate("document.body.dataset.mine = '1'")
        page.click(".tally a[data-k='2']")
        page.wait_for_url("**/s?option=large")
        wait_for("the page to change", lambda: "large" in page.inner_text(".why h2"))
        page.click(".seg a:last-child")
        page.wait_for_selector(".across")
        page.go_back()
        page.wait_for_selector(".box")
        before = page.inner_text(".facts")
        page.evaluate("scrollTo(0, 300)")
        page.focus("select[name=rival]")
        trial = study.ask(arm="small")
        study.tell(trial, {"quality": 1.0, "cost": 1.0, "time": 1.0})
        wait_for("the page to change", lambda: page.inner_text(".facts") != before)
        assert page.evaluate("[scrollY, document.activeElement.name]") == [300, "rival"]
        assert page.evaluate("document.body.dataset.mine") == "1", "it is the same page"
        page.set_viewport_size({"width": 390, "height": 800})
        wait_for(
            "the page to change",
            lambda: page.evaluate("document.querySelector('svg.plane').viewBox.baseVal.width") < 400,
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= 390

        def go_on() -> None:
            while not ended.wait(0.2):
                study.tell(study.ask(arm="small"), {"quality": 1.0, "cost": 1.0, "time": 1.0})

        here.seconds = 1.5  # longer than from one look to the next: no answer may be given up for the sake of the next
        before = page.inner_text(".facts")
        threading.Thread(target=go_on, daemon=True).start()
        wait_for("a slow page to change", lambda: page.inner_text(".facts") != before)
        page.click(".tally a[data-k='0']")
        page.wait_for_url("**option=small**")
        wait_for("the choice to be shown", lambda: "small" in page.inner_text(".why h2"))
    finally:
        page.close()
        ended.set()
        server.shutdown()
        server.server_close()
    assert problems == []
