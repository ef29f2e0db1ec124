"""Finished tables: what may change a verdict, and what may not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import paretoscout as ps
from paretoscout import checks
from paretoscout.bench.metrics import source_of
from paretoscout.cli.main import main

FLAT: dict[str, Any] = {
    "practical": [ps.Metric("m0", eps=0.3), ps.Metric("m1", eps=0.3)],
    "front": {"m0": "max", "m1": "max"},
}


def rows(seed: int) -> dict[str, list[Any]]:
    """Three options, 30 rows each, so far apart that about half of the verdicts are borderline."""
    rng = np.random.default_rng(seed)
    values = 0.8 * np.repeat(np.arange(3.0), 30)[:, None] + rng.standard_normal((90, 2))
    return {
        "arm": [f"o{k}" for k in range(3) for _ in range(30)],
        "m0": values[:, 0].tolist(),
        "m1": values[:, 1].tolist(),
    }


def cells(seed: int, ragged: bool) -> dict[str, list[Any]]:
    """Three options on 60 blocks, with holes; numbers from 0 to 1, and two rows of some cells."""
    rng = np.random.default_rng(seed)
    values = (rng.random((3, 60)) + 0.28 * np.arange(3)[:, None]) / 2
    there = rng.random((3, 60)) < 0.8 if ragged else np.ones((3, 60), bool)
    if not ragged:
        there[0, 30:] = False
    at = np.argwhere(there)
    at = np.concatenate([at, at[::5]])
    numbers = values[at[:, 0], at[:, 1]] + 0.1 * rng.random(len(at))
    return {"arm": [f"o{k}" for k, _ in at], "on": [f"b{b}" for _, b in at], "m0": (numbers / 1.2).tolist()}


def shuffled(table: dict[str, list[Any]], seed: int) -> dict[str, list[Any]]:
    order = np.random.default_rng(seed).permutation(len(next(iter(table.values()))))
    return {name: [column[k] for k in order] for name, column in table.items()}


def said(table: ps.VerdictTable) -> tuple[Any, ...]:
    return table.arms, table.verdicts, table.rivals, table.estimates.tolist()


@pytest.mark.parametrize("goal", ["practical", "front"])
def test_neither_the_order_of_a_file_nor_a_seed_changes_a_verdict(goal: str) -> None:
    """With an order drawn from a seed, 3 to 4 of 10 of these tables changed a verdict between 12 orders."""
    decided = 0
    for seed in range(6):
        table = rows(seed)
        first = ps.analyze(table, "arm", FLAT[goal], goal=goal)
        decided += 3 - first.verdicts.count("undecided")
        orders = 20 if seed == 3 else 4
        assert {str(said(ps.analyze(shuffled(table, n), "arm", FLAT[goal], goal=goal))) for n in range(orders)} == {
            str(said(first))
        }
        for number in range(12 if seed == 3 else 2):
            study = ps.Study(["o0", "o1", "o2"], FLAT[goal], goal=goal, seed=number, storage="memory")
            study.tell_frame(table)
            assert study.verdicts().verdicts == first.verdicts
    assert decided > 0


@pytest.mark.parametrize("ragged", [True, False])
def test_the_order_of_a_file_of_blocks_changes_nothing(ragged: bool) -> None:
    metrics = [ps.Metric("m0", eps=0.05, bounds=(0, 1))]
    for seed in (2, 7):
        table = cells(seed, ragged)
        seen = {str(said(ps.analyze(shuffled(table, n), "arm", metrics, block="on"))) for n in range(20)}
        assert len(seen) == 1


def test_of_two_that_are_the_same_one_stays_whatever_the_order() -> None:
    values = (0.1 * np.random.default_rng(0).standard_normal(4000)).tolist()
    table = {"arm": ["a"] * 2000 + ["b"] * 2000, "m": values}
    for columns in (table, {name: column[::-1] for name, column in table.items()}):
        table_of = ps.analyze(columns, "arm", [ps.Metric("m", "min", eps=0.1)])
        assert dict(zip(table_of.arms, table_of.verdicts, strict=True)) == {"a": "front", "b": "same"}


def test_rows_of_one_moment_do_not_count_in_the_order_of_the_file() -> None:
    table = {**rows(1), "day": [k % 3 for k in range(90)]}
    first = ps.analyze(table, "arm", FLAT["practical"], time="day")
    for number in range(5):
        assert said(ps.analyze(shuffled(table, number), "arm", FLAT["practical"], time="day")) == said(first)


# What a name says, and copies


def lines_of(times: int = 1) -> list[str]:
    rng = np.random.default_rng(1)
    return [
        f"{arm},{m + rng.standard_normal():.3f}" for arm, m in (("fast", 10), ("slow", 20)) for _ in range(40)
    ] * times


def test_a_direction_that_is_not_stated_is_told_by_the_name_and_said_first(tmp_path: Path) -> None:
    path = tmp_path / "lat.csv"
    path.write_text("\n".join(["arm,latency_ms", *lines_of()]))
    done = CliRunner().invoke(main, ["analyze", str(path), "--arm", "arm", "-m", "latency_ms"])
    assert done.output.startswith("smaller latency_ms is better: taken so; -m NAME:min or -m NAME:max says otherwise")
    assert "fast is the front; slow is dominated by fast" in done.output
    told = CliRunner().invoke(main, ["analyze", str(path), "--arm", "arm", "-m", "latency_ms:max"])
    assert "taken so" not in told.output
    assert "slow is the front" in told.output
    assert source_of("wall_seconds=stdout~(.*)", {}).metric.direction == "min", "bench asks the same place"


@pytest.mark.parametrize(
    ("names", "direction"),
    [
        ("latency_ms p95Latency cost(usd) val-loss RMSE file.size Errors time_per_token", "min"),
        ("tokens_per_second requests/s neg_mean_squared_error time-saved quality sometimes timely accuracy", None),
    ],
)
def test_what_the_name_of_a_metric_says(names: str, direction: str | None) -> None:
    assert {checks.usual_direction(name) for name in names.split()} == {direction}


def test_a_file_that_was_pasted_twice_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "twice.csv"
    path.write_text("\n".join(["arm,latency_ms", *lines_of(2)]))
    done = CliRunner().invoke(main, ["analyze", str(path), "--arm", "arm", "-m", "latency_ms"])
    assert "of 160 rows are exact copies of others" in " ".join(done.output.split())
    table = {"arm": [k % 2 for k in range(60)], "x": np.random.default_rng(0).standard_normal(60).tolist()}
    part = {name: column + column[:30] for name, column in table.items()}
    assert [concern.kind for concern in ps.analyze(part, "arm", {"x": "max"}).concerns if concern.kind == "copies"]


@pytest.mark.parametrize("digits", [0, 1, 2, 3])
def test_rounded_numbers_are_no_copies(digits: int) -> None:
    """Equal numbers come by chance: none of 40 tables of 200 rows is suspected, at any number of digits."""
    rng = np.random.default_rng(digits)
    for _ in range(10):
        values = np.round(5.0 * rng.standard_normal(200), digits).tolist()
        table = ps.analyze({"arm": ["a", "b"] * 100, "x": values}, "arm", {"x": "max"})
        assert "copies" not in [concern.kind for concern in table.concerns]


# What an answer on blocks is about


def answers(seed: int, prompts: int = 60, repeats: int = 1, lead: float = 0.0) -> dict[str, list[Any]]:
    """Two models that pass each prompt with its own probability, the second one more often by `lead`."""
    rng = np.random.default_rng(seed)
    passes = 0.1 + (0.8 - lead) * rng.random(prompts)
    rows = [(f"m{k}", f"p{b}", rng.random() < p + lead * k) for k in range(2) for b, p in enumerate(passes)]
    rows += [(m, p, rng.random() < passes[int(p[1:])] + lead * int(m[1:])) for m, p, _ in rows * (repeats - 1)]
    return {"model": [m for m, *_ in rows], "prompt": [p for _, p, _ in rows], "ok": [float(x) for *_, x in rows]}


def judged(table: dict[str, list[Any]], **how: Any) -> ps.VerdictTable:
    return ps.analyze(table, "model", [ps.Metric("ok", eps=0.001, bounds=(0, 1))], block="prompt", **how)


def test_one_of_two_identical_models_is_not_dominated_unless_the_list_is_asked_about() -> None:
    """At most 2 of 8 tables: more has probability 0.006 at delta 0.05. As they were answered once, about all are."""
    wrong = dict.fromkeys((None, "population", "list"), 0)
    for seed in range(8):
        for target in wrong:
            wrong[target] += "dominated" in judged(answers(seed), target=target).verdicts
    assert wrong[None] == wrong["population"] <= 2
    assert wrong["list"] >= 5
    said = str(judged(answers(0), target="list").guarantee)
    assert "on exactly these 60 blocks, as they were measured once, so no probability is involved" in said
    assert "about the population of the blocks" in str(judged(answers(0)).guarantee)


def test_repeats_of_a_cell_are_used_where_the_list_is_asked_about() -> None:
    """With three answers of each model to each prompt noise counts: at most 2 of 5, more has probability 0.001."""
    wrong = 0
    for seed in range(5):
        table = judged(answers(seed, repeats=3), target="list")
        wrong += "dominated" in table.verdicts
        assert table.guarantee.probability == 0.95
        assert "each of which was measured at least 3 times: 180 answers of each option" in str(table.guarantee)
    assert wrong <= 2
    assert judged(answers(1, prompts=40, repeats=6, lead=0.4), target="list").verdicts == ("dominated", "front")
    for number in range(2):
        assert said(judged(shuffled(answers(3, repeats=2), number), target="list")) == said(
            judged(answers(3, repeats=2), target="list")
        )


def test_every_command_calls_the_target_by_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    Path("prompts.txt").write_text("\n".join(f"p{b}" for b in range(60)))
    make = ["create", "--arm", "m0", "--arm", "m1", "-m", "ok", "--bounds", "ok=0,1", "--blocks", "prompts.txt"]
    first = run(main, [*make, "--target", "population", "--name", "x"]).output.splitlines()[0]
    assert first.endswith("target population (about all blocks there could be)")
    for command in (make, ["analyze", "prompts.txt"]):
        assert "No such option '--population'" in run(main, [*command, "--population"]).output
    refused = run(main, [*make, "--target", "population", "--sample", "--name", "y"])
    assert "sample of blocks must be True or False, and left out where target is 'population'" in refused.output


def test_a_list_that_is_a_sample_has_two_readings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table, run = answers(2), CliRunner().invoke
    prompts = [f"p{b}" for b in range(60)]
    metrics = [ps.Metric("ok", bounds=(0, 1))]
    study = ps.Study(["m0", "m1"], metrics, blocks=prompts, sample=True, storage="paretoscout.db")
    study.tell_frame(table, arm="model", block="prompt")
    assert "undecided" not in study.verdicts().verdicts
    population = study.for_population()
    assert population is not None
    alone = ps.Study(["m0", "m1"], metrics, blocks=prompts, target="population", storage="memory")
    alone.tell_frame(table, arm="model", block="prompt")
    assert population.verdicts == alone.verdicts().verdicts == ("undecided", "undecided")
    np.testing.assert_array_equal(population.widths, alone.verdicts().widths)
    assert "both readings together may fail with probability 0.1" in str(population.guarantee)
    assert "on exactly these 60 blocks" in str(study.verdicts().guarantee), "the reading of the list is what it was"
    shown = " ".join(run(main, ["status"]).output.split())
    assert "for all blocks there could be, of which those of the list are a random sample:" in shown
    assert "about the population of the blocks" in shown
    plain = json.loads(run(main, ["status", "--json"]).output)
    assert {option["verdict"] for option in plain["population"]["options"]} == {"undecided"}
    assert ps.Study.load(storage="paretoscout.db").for_population() is not None, "the study remembers it"
    assert ps.Study(["m0", "m1"], metrics, blocks=prompts, storage="memory").for_population() is None
    with pytest.raises(ps.errors.InvalidInput, match="sample of a study must be left out where it has no blocks"):
        ps.Study(["m0", "m1"], metrics, sample=True, storage="memory")
