"""Studies with many options: what they take grows with the options, and what is shown of them is short."""

from __future__ import annotations

import cProfile
import json
import pstats
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import paretoscout as ps
from paretoscout.algorithms import MultiPFI
from paretoscout.algorithms.registry import get
from paretoscout.cli.main import main
from paretoscout.environments import environment_of
from paretoscout.kernels.dispatch import draw
from paretoscout.practical import LOOK_AFTER, LOOK_ARMS
from paretoscout.simulation.replicates import Replicate, Simulation
from paretoscout.streams import environment_stream
from paretoscout.study.log import SNAPSHOT_BYTES_PER_EVENT, SNAPSHOT_EVENTS
from paretoscout.verdicts import MOST_ROWS, front_first

METRICS = [ps.Metric("quality", eps=0.1), ps.Metric("cost", "min", eps=0.1)]


def study_of(n_options: int, **how: Any) -> ps.Study:
    names = [f"option {k}" for k in range(n_options)]
    return ps.Study(names, METRICS, sigma=0.3, **{"algorithm": "multi-pfi", "storage": "memory", **how})


def measured(arm: str, rng: np.random.Generator) -> dict[str, float]:
    """Options get better from the first to the last."""
    better = 0.01 * int(arm.split()[1])
    return {"quality": better + 0.3 * rng.normal(), "cost": -better + 0.3 * rng.normal()}


def measure_all(study: ps.Study, times: int = 2) -> None:
    rng = np.random.default_rng(0)
    names = study.arms * times
    rows = [measured(name, rng) for name in names]
    study.tell_frame({"arm": names, **{metric.name: [row[metric.name] for row in rows] for metric in METRICS}})


def snapshot(study: ps.Study) -> bytes:
    with study.log.reading() as replica:
        return replica.dump()


@pytest.mark.parametrize("goal", ["practical", "front"])
def test_a_snapshot_grows_with_the_options(goal: str) -> None:
    sizes = {}
    for n in (500, 5_000):
        study = study_of(n, goal=goal)
        measure_all(study)
        sizes[n] = len(snapshot(study)) / n
    assert sizes[5_000] < 1.05 * sizes[500]
    assert sizes[5_000] < 400


def test_a_snapshot_comes_when_the_log_is_worth_as_much(tmp_path: Path) -> None:
    study = study_of(30_000, storage=tmp_path / "study.db", goal="front")
    size, rng = len(snapshot(study)), np.random.default_rng(0)
    interval = max(SNAPSHOT_EVENTS, size // SNAPSHOT_BYTES_PER_EVENT)
    assert SNAPSHOT_EVENTS < interval < 30_000
    study.log._snapshot_size = size  # as after the first one
    for n in (SNAPSHOT_EVENTS, interval - SNAPSHOT_EVENTS):
        assert study.storage.latest_snapshot(study.name) is None
        study.tell_frame({"arm": ["option 0"] * n, **dict.fromkeys(("quality", "cost"), rng.normal(size=n).tolist())})
    found = study.storage.latest_snapshot(study.name)
    assert found is not None
    assert ps.Study.load(storage=tmp_path / "study.db").verdicts().counts[0] == interval


def calls(study: ps.Study, pairs: int) -> int:
    """How many functions are called to ask and tell so often."""
    rng = np.random.default_rng(0)
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(pairs):
        trial = study.ask()
        study.tell(trial, measured(trial.arm, rng))
    profile.disable()
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize("goal", ["practical", "front"])
def test_to_ask_and_tell_takes_as_much_whatever_the_number_of_options(goal: str) -> None:
    work = {}
    for n in (100, 4_000):
        study = study_of(n, goal=goal)
        calls(study, 2)
        work[n] = calls(study, 60)
    assert work[4_000] < 1.1 * work[100]


def test_looks_are_as_rare_as_undecided_options_are_many() -> None:
    study = study_of(3_200)
    seen = list[tuple[int, int]]()
    rng = np.random.default_rng(0)
    for n in range(1, 400):
        trial = study.ask()
        study.tell(trial, measured(trial.arm, rng))
        with study.log.reading() as replica:
            assert replica.judge is not None
            if not seen or replica.judge.next_look != seen[-1][1]:
                assert replica.judgement is not None
                undecided = replica.judgement.undecided
                assert replica.judge.next_look == int(LOOK_AFTER * n) + 1 + undecided // LOOK_ARMS
                seen.append((n, replica.judge.next_look))
    assert len(seen) == 4


def test_a_study_of_many_options_and_a_simulation_take_the_same_decisions() -> None:
    """120 options: more than a look waits for, and fewer than are looked ahead for."""
    means = np.random.default_rng(0).normal(size=(120, 2))
    problem = ps.problems.gaussian(means, sigma=0.2, name="many")
    simulation = Simulation(get("multi-pfi"), MultiPFI(), problem, 0.3, 0.1, 7, None, None, "practical")
    replicate = Replicate(simulation, 0)
    asked = problem.asked(0.3, 0.1, goal="practical")
    study = ps.Study.of(asked, algorithm="multi-pfi", seed=7, storage="memory")
    environment, stream = environment_of(problem, asked.units), environment_stream(7, 0)
    outcome = np.empty(2)
    names = [metric.name for metric in problem.metrics]
    for turn in range(1200):
        trial = study.ask()
        replicate.advance(1)
        draw(environment, problem.arms.index(trial.arm), stream, outcome)
        study.tell(trial, dict(zip(names, asked.units.natural(asked.units.undirected(outcome)), strict=True)))
        if turn % 60 == 59:
            with study.log.reading() as replica:
                assert replica.judge is not None
                assert replicate.judge is not None
                assert replica.judge.next_look == replicate.judge.next_look
                assert replica.judgement is not None
                np.testing.assert_array_equal(replica.judgement.status, replicate.verdicts().status)
                np.testing.assert_array_equal(replica.session.verdicts().counts, replicate.verdicts().counts)
    assert len(set(study.verdicts().verdicts)) > 1


# What is shown


def test_a_table_shows_the_front_and_what_is_undecided_first() -> None:
    study = study_of(300)
    measure_all(study, 8)
    table = study.verdicts()
    assert table.verdicts.count("undecided") > MOST_ROWS
    text = str(table).splitlines()
    assert len([line for line in text if line.startswith("option ")]) == MOST_ROWS + 1  # and the header
    counted = {word: table.verdicts.count(word) for word in ("undecided", "dominated")}
    rest = f"{counted['undecided'] - MOST_ROWS} undecided, {counted['dominated']} dominated"
    assert f"… and {300 - MOST_ROWS} more options: {rest}" in text
    assert len(table.text(None).splitlines()) == len(text) - 1 + 300 - MOST_ROWS
    assert len(table.as_dict()["options"]) == 300
    assert table._repr_html_().count("<tr") == MOST_ROWS + 1
    order = front_first(table)
    likely = [int(table.arms[k].split()[1]) for k in order if table.verdicts[k] == "undecided"]
    assert np.mean(likely[:20]) > np.mean(likely[-20:]), "those of high quality come first"


@pytest.fixture
def folder(empty_folder: Path) -> Path:
    return empty_folder


def run(*arguments: str) -> str:
    done = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


STATED = ("-m", "quality", "-m", "cost:min", "--eps", "0.1", "--sigma", "0.3", "--algorithm", "multi-pfi")


def test_many_options_from_a_file_are_asked_told_and_shown(folder: Path) -> None:
    rows = [json.dumps({"arm": f"option {k}", "price": 1 + k % 3}) for k in range(20_000)]
    Path("options.jsonl").write_text("\n".join(rows))
    assert "20,000 options" in run("create", "options.jsonl", "--cost", "price", *STATED)
    assert run("ask") == "0\toption 0\n"
    run("tell", "0", "quality=1", "cost=2")
    shown = run("status")
    assert shown.count("\n") < MOST_ROWS + 15
    assert "… and 19,960 more options: 19,960 undecided (--all shows them)" in shown
    study = ps.Study.load()
    assert study.spec.asked.cost is not None
    assert study.spec.asked.cost[:4].tolist() == [1, 2, 3, 1]


def test_all_options_are_shown_to_who_asks_for_them(folder: Path) -> None:
    Path("options.csv").write_text("arm\n" + "".join(f"option {k}\n" for k in range(60)))
    run("create", "options.csv", *STATED)
    assert "… and 20 more options: 20 undecided (--all shows them)" in run("status")
    everything = run("status", "--all")
    assert all(f"option {k} " in everything for k in range(60))
    assert len(json.loads(run("status", "--json"))["options"]) == 60


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"a"\n\n{"arm": 3\n', "line 3 of options.jsonl must be a JSON value, but: "),
        ('{"arm": "a"}\n{"name": "b"}', "line 2 of options.jsonl must have the keys of the first (arm), got name"),
        ('"a"\n3', "line 2 of options.jsonl must be a name, or an object of texts and numbers, got 3"),
        ('{"arm": ["a"]}', "line 1 of options.jsonl must be a name, or an object of texts and numbers, got {'arm'"),
        ('"a"\n"b"\n\n"a"', "must name each option once, got 'a' in line 1 and line 4"),
        ('{"arm": "a", "price": 1}\n{"arm": "b", "price": "x"}', "must hold numbers, got 'x' in line 2"),
        ("\n\n", "options.jsonl must have at least one line, got none"),
        ("[" * 100_000, "line 1 of options.jsonl must be a JSON value"),
    ],
)
def test_a_file_of_options_that_is_wrong_is_refused_by_its_line(folder: Path, text: str, said: str) -> None:
    Path("options.jsonl").write_text(text)
    cost = ("--cost", "price") if "price" in text else ()
    done = CliRunner().invoke(main, ["create", "options.jsonl", *cost, *STATED])
    assert done.exit_code == 2
    assert said in done.output
    assert not list(folder.glob("*.db"))


def test_a_picture_of_many_options_has_few_names_and_boxes() -> None:
    study = study_of(2_000)
    measure_all(study, 3)
    figure = study.plot_front()
    (axes,) = figure.axes
    assert len(axes.texts) <= 45
    assert len(axes.patches) + len(axes.lines) < 2_000


def test_what_remains_is_estimated_in_the_time_there_is() -> None:
    """A future that is not followed to its end is a long one; nobody waits for it."""
    study = study_of(5_000)
    measure_all(study)
    ahead = study.remaining(replicates=5, seconds=0.001)
    assert ahead.samples == np.inf
    assert len(ahead.by_arm) == 5_000
