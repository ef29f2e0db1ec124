"""Options measured on the same blocks: scout beside its twin, both drivers, and how often it is wrong."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from naive_blocks import NaiveBlocks
from scipy import stats

import paretoscout as ps
from paretoscout.algorithms import Scout, Setup
from paretoscout.algorithms.scout.blocks import needed_to_tell
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput, NothingToAsk, NotSupported, UnknownName
from paretoscout.kernels.arrays import FloatArray
from paretoscout.session import Session
from paretoscout.simulation.replicates import Replicate, Simulation
from paretoscout.study import study_of_table
from paretoscout.study.blocks import few_carry
from paretoscout.study.guards import _width_in_list

#: A right method has more failures than `allowed` says with this probability.
FALSE_ALARM = 1e-5
METRICS = [ps.Metric("quality", eps=0.2), ps.Metric("speed", eps=0.2)]


def allowed(runs: int, alpha: float) -> int:
    """So many failures of so many runs."""
    return int(stats.binom.ppf(1.0 - FALSE_ALARM, runs, alpha))


def outcomes(seed: int, K: int = 6, N: int = 40, noise: float = 0.5) -> FloatArray:
    """Options on blocks that differ by much more than the options do: (K, N, 2)."""
    rng = np.random.default_rng(seed)
    steps = np.linspace(0.0, 1.0, K)
    means = np.stack([steps, -((1.2 * steps) ** 2)], axis=1)
    values: FloatArray = means[:, None] + rng.normal(0.0, 3.0, (1, N, 2)) + rng.normal(0.0, noise, (K, N, 2))
    return values


def frame(values: FloatArray) -> dict[str, list[Any]]:
    """A table with a row for each option and block."""
    K, N, _ = values.shape
    return {
        "model": [f"m{k}" for k in range(K) for _ in range(N)],
        "prompt": [f"p{b}" for _ in range(K) for b in range(N)],
        "quality": values[:, :, 0].ravel().tolist(),
        "speed": values[:, :, 1].ravel().tolist(),
    }


def problem(values: FloatArray, metrics: list[ps.Metric] | None = None) -> Any:
    return ps.problems.table(frame(values), arm="model", block="prompt", metrics=metrics or METRICS)


# The twin


@pytest.mark.kernels
@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("spans", [None, [4.0, np.inf], [4.0, 4.0]])
@pytest.mark.parametrize("seed", range(3))
def test_scout_on_blocks_takes_the_decisions_of_its_twin(listed: bool, spans: list[float] | None, seed: int) -> None:
    """The same questions and verdicts, from the first block to the last."""
    K, N = 4, 60 if listed else 120
    rng = np.random.default_rng(seed)
    values = outcomes(seed, K, N, noise=0.3)
    if spans is not None:
        values = np.clip(values / 6.0 + 0.5, 0.0, 4.0)
    known = None if spans is None else np.array(spans)
    setup = Setup(K, 2, np.array([0.2, 0.1]), 0.1, None, n_blocks=N, listed=listed, spans=known)
    session = Session(Scout(noise="unknown"), setup, seed)
    constants = session.constants
    unbounded = np.full(2, np.inf) if known is None else known
    weights = np.exp(constants.log_rhos)
    twin = NaiveBlocks(setup.eps, 0.1, N, listed, unbounded, constants.rhos, weights, constants.rates, K)
    stream = Session(Scout(noise="unknown"), setup, seed).rng  # the same draws
    walk = rng.permutation(N)
    while not session.done:
        question = session.ask()
        assert question.arm == twin.next_arm(int(stream.random() * K))
        outcome = values[question.arm, walk[len(twin.outcomes[question.arm])]]
        twin.tell(question.arm, outcome)
        session.tell(question, outcome)
        assert session.status.tolist() == twin.status
    assert session.verdicts().counts.tolist() == [len(rows) for rows in twin.outcomes]
    dominated = session.verdicts().status == 2
    assert session.verdicts().rival[dominated].tolist() == np.array(twin.beaten_by)[dominated].tolist()


@pytest.mark.kernels
def test_judging_again_changes_nothing() -> None:
    """Verdicts are a function of what was measured, in whatever order options were looked at."""
    setup = Setup(5, 2, np.array([0.2, 0.2]), 0.1, None, n_blocks=30, listed=True)
    session = Session(Scout(noise="unknown"), setup, 0)
    values = outcomes(1, 5, 30)
    for _ in range(100):
        if session.done:
            break
        question = session.ask()
        session.tell(question, values[question.arm, int(question.ticket[0]) - 1])
    before = session.status.copy()
    session.judge_again()
    np.testing.assert_array_equal(session.status, before)


def test_who_comes_later_changes_nothing_for_those_who_were_there() -> None:
    """Of what all pairs may spend, those of later arms take their part of the reserve: 1 in all, however many come."""
    even = np.full(2, 0.5)
    first = needed_to_tell(np.array([0, 0, 0]), even, 0.1)
    later = needed_to_tell(np.array([0, 0, 0, 1, 1, 2]), even, 0.1)
    np.testing.assert_array_equal(first, later[:3, :3])
    spent = np.exp(-later)[~np.eye(6, dtype=bool)].sum()
    assert 0.09 < spent <= 0.1 * (1.0 + 1e-12)
    uneven = needed_to_tell(np.array([0, 0, 0, 1, 1, 2]), np.array([0.9, 0.1]), 0.1)
    assert np.exp(-uneven)[~np.eye(6, dtype=bool)].sum() == pytest.approx(spent)
    np.testing.assert_allclose(np.diff(uneven), np.log(9.0))


# How often it is wrong


@pytest.mark.parametrize("target", ["list", "population"])
@pytest.mark.parametrize("goal", ["front", "practical"])
def test_it_is_wrong_at_most_as_often_as_it_says(target: str, goal: str) -> None:
    """Two options, one worse by 1.02 eps in both metrics; delta 0.1."""
    runs, wrong = 30, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        N = 40
        values = rng.normal(0.0, 3.0, (1, N, 2)) + rng.normal(0.0, 0.6, (2, N, 2))
        values -= values.mean(axis=1, keepdims=True)
        values[1] -= 1.02 * 0.2
        result = ps.simulate(problem(values), delta=0.1, goal=goal, target=target, replicates=5, seed=seed)
        assert result.stopped.all()
        assert ("population of the blocks" if target == "population" else "40 blocks of the list") in result.guarantee
        wrong += int((~result.success).sum())
    assert wrong <= allowed(5 * runs, 0.1)


def test_ties_of_wins_and_losses_are_not_broken() -> None:
    """Exact ties, as many wins as losses: near the end of a list nothing is certain. False alarm: below 2e-5."""
    wins = np.array([1.0] * 12 + [0.0] * 28)
    metrics = [ps.Metric("quality", eps=0.0, bounds=(0, 1)), ps.Metric("speed", eps=0.0, bounds=(0, 1))]
    for seed in range(10):
        rng = np.random.default_rng(seed)
        values = np.stack([np.stack([rng.permutation(wins), rng.permutation(wins)], axis=1) for _ in range(2)])
        result = ps.simulate(problem(values, metrics), delta=1e-7, replicates=20, seed=seed)
        assert result.fronts.all()


def test_a_list_ends_when_all_is_measured_and_a_population_may_not() -> None:
    values = outcomes(3, K=3, N=12, noise=2.0)
    result = ps.simulate(problem(values), delta=0.01, replicates=5)
    assert result.stopped.all()
    assert result.samples.max() <= 3 * 12
    study = ps.Study(
        ["m0", "m1", "m2"], METRICS, blocks=[f"p{b}" for b in range(12)], target="population", storage="memory"
    )
    study.tell_frame(frame(values), arm="model", block="prompt")
    assert study.stuck
    assert "The list is too short" in study.verdicts().remark
    with pytest.raises(NotSupported, match="the list is too short"):
        study.ask()


# Live and simulated


@pytest.mark.parametrize("goal", ["front", "practical"])
def test_a_study_takes_the_decisions_of_a_simulation(goal: str) -> None:
    values = outcomes(5)
    stated = problem(values)
    run = Simulation(*_scout(), stated, None, 0.1, 7, None, goal=goal)
    simulated = Replicate(run, 0)
    walk = simulated.environment.order.tolist()
    study = ps.Study.of(stated.asked(None, 0.1, goal), storage="memory", seed=7, walk=walk)
    table = {(name, block): row for name, block, *row in zip(*frame(values).values(), strict=True)}
    while not study.done:
        trial = study.ask()
        study.tell(trial, dict(zip(("quality", "speed"), table[trial.arm, str(trial.block)], strict=True)))
    while not simulated.finished:
        simulated.advance(1)
    assert study.counts()["told"] == simulated.samples
    said = simulated.verdicts()
    assert study.verdicts().counts.tolist() == said.counts.tolist()
    names = {0: "undecided", 1: "front", 2: "dominated", 3: "same"}
    assert study.verdicts().verdicts == tuple(names[int(status)] for status in said.status)
    assert study.verdicts().guarantee == run.guarantee


def _scout() -> tuple[Any, Any]:
    from paretoscout.algorithms.registry import resolve

    return resolve("scout", noise_given=False)


@pytest.mark.parametrize("workers", [1, 7, 64])
def test_the_order_in_which_outcomes_come_does_not_matter(workers: int) -> None:
    """Outcomes of an option count in the order of the blocks; a failed one is asked again, on the same block."""
    values = outcomes(2)
    table = {(name, block): row for name, block, *row in zip(*frame(values).values(), strict=True)}
    study = ps.Study([f"m{k}" for k in range(6)], METRICS, blocks=[f"p{b}" for b in range(40)], storage="memory")
    rng = np.random.default_rng(workers)
    busy: list[Any] = []
    while not study.done:
        try:
            while len(busy) < workers:
                busy.append(study.ask())
        except NotSupported:
            assert busy
        trial = busy.pop(int(rng.integers(len(busy))))
        if rng.random() < 0.05:
            study.fail(trial)
        else:
            study.tell(trial, dict(zip(("quality", "speed"), table[trial.arm, trial.block], strict=True)))
    replica = study.log.copy()
    assert study.log.as_of(replica.number).dump() == replica.dump()
    with study.log.reading() as now:
        walk = [int(name[1:]) for name in now.blocks or ()]
        state = now.session.state
        for k in range(6):
            n = int(state.visited[k])
            expected = now.units.oriented(values[k, walk[:n]])
            np.testing.assert_allclose(state.outcomes[:n, k], expected)
            assert np.isnan(state.outcomes[n:, k]).all()


def test_a_cell_has_the_outcome_of_its_first_attempt_that_is_not_void() -> None:
    clock = [0.0]
    study = ps.Study(
        ["a", "b"],
        METRICS,
        blocks=["p", "q", "r", "s"],
        storage="memory",
        lease=10.0,
        give_up=100.0,
        clock=lambda: clock[0],
    )
    first = study.ask()
    clock[0] = 20.0
    again = study.ask()
    assert (again.arm, again.block) == (first.arm, first.block)
    study.tell(again, {"quality": 9.0, "speed": 9.0})
    assert study.verdicts().counts.sum() == 0  # the first may still come
    study.tell(first, {"quality": 1.0, "speed": 1.0})
    with study.log.reading() as replica:
        place = replica.index[first.arm]
        np.testing.assert_allclose(replica.session.state.outcomes[0, place] * replica.units.divisors, [1.0, 1.0])
        assert replica.counts()["late"] == 1


def test_options_that_leave_and_come_back_go_on_where_they_were() -> None:
    values = outcomes(4)
    table = {(name, block): row for name, block, *row in zip(*frame(values).values(), strict=True)}

    def tell(trial: Any) -> None:
        study.tell(trial, dict(zip(("quality", "speed"), table[trial.arm, trial.block], strict=True)))

    study = ps.Study([f"m{k}" for k in range(6)], METRICS, blocks=[f"p{b}" for b in range(40)], storage="memory")
    for trial in study.ask(30):
        tell(trial)
    ahead = study.ask(12)
    study.withdraw("m2")
    for trial in ahead:
        tell(trial)
    study.add_arms(["m2"], looked=False)
    with pytest.raises(NotSupported):
        study.add_arms(["new"])  # picked after looking
    study.add_arms(["m6"], looked=False)
    seen = {trial.block for trial in study.ask(40) if trial.arm == "m6"}
    assert len(seen) >= 5
    replica = study.log.copy()
    assert study.log.as_of(replica.number).dump() == replica.dump()


def test_nothing_is_left_to_ask_while_all_that_is_left_is_being_measured() -> None:
    study = ps.Study(["a", "b"], METRICS, blocks=["p", "q", "r", "s"], storage="memory")
    assert len(study.ask(100)) == 8
    with pytest.raises(NothingToAsk, match="being measured"):
        study.ask()


# Tables


def test_a_whole_table_is_judged_for_certain() -> None:
    values = outcomes(6, noise=2.0)
    said = ps.analyze(frame(values), arm="model", block="prompt", metrics=METRICS, goal="front", target="list")
    means = values.mean(axis=1)
    assert said.guarantee.probability == 1.0
    assert "no probability is involved" in str(said.guarantee)
    right = ps.geometry.are_right(
        means, np.array([[verdict == "front" for verdict in said.verdicts]]), np.array([0.2, 0.2]), "front"
    )
    assert right.all()
    np.testing.assert_allclose(said.centres, means)


def test_a_table_of_a_study_that_let_options_go_is_judged_in_its_order() -> None:
    values = outcomes(7)
    rows = frame(values)
    keep = {0: 40, 1: 40, 2: 25, 3: 25, 4: 40, 5: 12}
    chosen = [i for i, (model, prompt) in enumerate(zip(rows["model"], rows["prompt"], strict=True))
              if int(prompt[1:]) < keep[int(model[1:])]]  # fmt: skip
    nested = {name: [column[i] for i in chosen] for name, column in rows.items()}
    for target in ("list", "population", None):
        study = study_of_table(nested, "model", METRICS, block="prompt", target=target)
        assert study.spec.asked.blocks is not None
        assert study.spec.asked.blocks.target == (target or "population")  # who stopped it may have looked
        assert study.verdicts().counts.tolist() == list(keep.values())


def test_a_ragged_table_is_about_the_population() -> None:
    values = outcomes(8, N=200)
    rng = np.random.default_rng(0)
    chosen = np.flatnonzero(rng.random(6 * 200) < 0.8)
    ragged = {name: [column[i] for i in chosen] for name, column in frame(values).items()}
    said = ps.analyze(ragged, arm="model", block="prompt", metrics=METRICS, goal="front")
    assert "about the population of the blocks" in str(said.guarantee)
    assert "which option was measured on which block has nothing to do with the outcomes" in str(said.guarantee)
    assert "dominated" in said.verdicts or "front" in said.verdicts
    with pytest.raises(InvalidInput, match="target of analyze must be 'population'"):
        ps.analyze(ragged, arm="model", block="prompt", metrics=METRICS, target="list")


def test_what_is_wrong_with_a_table_is_said() -> None:
    rows = frame(outcomes(0, K=2, N=5))
    holes = {name: column[:-1] for name, column in rows.items()}
    with pytest.raises(InvalidInput, match=r"got none of 'm1' on 'p4' \(1 of 5 blocks have such holes"):
        ps.problems.table(holes, arm="model", block="prompt", metrics=METRICS)
    dropped = ps.problems.table(holes, arm="model", block="prompt", metrics=METRICS, holes="drop")
    assert dropped.statement.blocks is not None
    assert len(dropped.statement.blocks.names) == 4
    percent = [ps.Metric("quality", eps="2%"), ps.Metric("speed", eps=0.2)]
    rows["quality"] = [-1.0, *rows["quality"][1:]]
    with pytest.raises(InvalidInput, match=r"\(m0 on p0\) must be above 0 to be compared in percent, got -1"):
        ps.problems.table(rows, arm="model", block="prompt", metrics=percent)
    with pytest.raises(InvalidInput, match="sigma"):
        ps.problems.table(rows, arm="model", block="prompt", metrics=METRICS, sigma="each")


def test_what_is_wrong_with_the_settings_is_said() -> None:
    blocks = ["p", "q", "r", "s"]
    with pytest.raises(InvalidInput, match="names of blocks must differ, got 'p' twice"):
        ps.Study(["a", "b"], METRICS, blocks=[*blocks, "p"], storage="memory")
    with pytest.raises(InvalidInput, match="blocks must be at least 3, got 2"):
        ps.Study(["a", "b"], METRICS, blocks=["p", "q"], storage="memory")
    with pytest.raises(InvalidInput, match="sigma of a study must be left out"):
        ps.Study(["a", "b"], METRICS, blocks=blocks, sigma=1.0, storage="memory")
    with pytest.raises(InvalidInput, match="sigma of algorithm 'multi-pfi' must be given"):
        ps.simulate(problem(outcomes(0, N=5)), "multi-pfi")
    with pytest.raises(InvalidInput, match="target of a study must be left out where it has no blocks"):
        ps.Study(["a", "b"], METRICS, target="population", storage="memory")
    with pytest.raises(InvalidInput, match="ratio of metric 'quality' must go with an eps in percent"):
        ps.Metric("quality", eps=0.1, ratio=4)
    with pytest.raises(InvalidInput, match="ratio of metric 'quality' of a study must be left out"):
        ps.Study(["a", "b"], [ps.Metric("quality", eps="2%", ratio=4)], storage="memory")
    with pytest.raises(InvalidInput, match="blocks of a study must have names, or be 'rounds'"):
        ps.Study.of(problem(outcomes(0, N=5)).about_blocks("population").asked(), storage="memory")
    study = ps.Study(["a", "b"], METRICS, blocks=blocks, storage="memory")
    with pytest.raises(UnknownName, match="unknown block"):
        study.tell_frame({"arm": ["a"], "block": ["t"], "quality": [1.0], "speed": [1.0]})


def test_more_caution_takes_more_blocks() -> None:
    values = outcomes(9, N=400)
    samples = [
        np.median(ps.simulate(problem(values), Scout(noise="unknown", caution=caution), replicates=10).samples)
        for caution in (16.0, 64.0, 256.0)
    ]
    assert samples[0] < samples[1] < samples[2]


def test_a_bound_on_ratios_keeps_the_promise_where_few_blocks_carry_all() -> None:
    """5% of the blocks carry the whole difference: what normal differences promise fails, what a ratio bounds holds."""
    runs, wrong = 40, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        N = 60
        logs = rng.normal(0.0, 0.5, (1, N, 2)) + rng.normal(0.0, 0.01, (2, N, 2))
        logs[1, :3] -= 1.02 * np.log(1.05) * N / 3  # the second is worse by 1.02 eps, on three blocks
        metrics = [ps.Metric("quality", eps="5%", ratio=4), ps.Metric("speed", eps="5%", ratio=4)]
        result = ps.simulate(problem(np.exp(logs), metrics), delta=0.1, replicates=5, seed=seed)
        wrong += int((~result.success).sum())
    assert wrong <= allowed(5 * runs, 0.1)


def test_few_blocks_that_carry_the_difference_are_named() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0.0, 3.0, (1, 60, 2)) + rng.normal(0.0, 0.1, (2, 60, 2))
    values[1] += 1.0
    values[1, [3, 5, 8]] += 20.0
    study = ps.Study(["m0", "m1"], METRICS, blocks=[f"p{b}" for b in range(60)], storage="memory", goal="front")
    table = {(name, block): row for name, block, *row in zip(*frame(values).values(), strict=True)}
    while not study.done:
        trial = study.ask()
        study.tell(trial, dict(zip(("quality", "speed"), table[trial.arm, str(trial.block)], strict=True)))
    assert study.verdicts().verdicts == ("dominated", "front")
    with study.log.reading() as replica:
        assert not replica.certain
        few = few_carry(replica)
    assert {concern.metric for concern in few} == {"quality", "speed"}
    assert set(few[0].blocks) & {"p3", "p5", "p8"}
    assert "caution=256" in few[0].text


# On the command line


def run(*words: str, code: int = 0, text: str | None = None) -> str:
    result = CliRunner().invoke(main, words, input=text)
    assert result.exit_code == code, result.output
    return result.output


def test_a_csv_file_of_models_and_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which models are worth having, how sure that is, and how few calls would have done; and the calls to make next."""
    monkeypatch.chdir(tmp_path)
    values = outcomes(1)
    rows = frame(values)
    with open("evals.csv", "w", newline="") as file:
        csv.writer(file).writerows([list(rows), *zip(*rows.values(), strict=True)])
    measured = ("-m", "quality", "-m", "speed", "--eps", "0.2")
    said = run("analyze", "evals.csv", "--arm", "model", "--block", "prompt", "--target", "list", *measured)
    assert "for certain" in said
    assert "probability is involved" in " ".join(said.split())
    assert "would have done" in said
    Path("prompts.txt").write_text("\n".join(dict.fromkeys(rows["prompt"])))
    arms = [word for k in range(6) for word in ("--arm", f"m{k}")]
    made = run("create", *arms, "--blocks", "prompts.txt", *measured)
    assert made.startswith("study 'study' in ")
    assert "target list (about exactly these, as they are measured once)" in made.splitlines()[0]
    assert "40 blocks, in an order drawn at random" in made
    assert "so few blocks are soon measured" in made
    trial, arm, block = run("ask").split()
    assert arm in rows["model"]
    assert block in rows["prompt"]
    run("tell", trial, "quality=1", "speed=2")
    (asked,) = json.loads(run("ask", "--json"))
    assert asked["block"] == block
    run("tell", "-", text=json.dumps({**asked, "quality": 1, "speed": 2}))
    run("export", "--out", "out.csv")
    assert Path("out.csv").read_text().startswith("trial,arm,block,quality,speed,at\n")
    run("import", "evals.csv", "--arm", "model", "--block", "prompt")
    assert "for certain" in run("status", code=0)
    assert "on the 40 blocks of both" in run("explain", "m0")


# Guards


def test_options_that_break_a_limit_over_the_list_leave() -> None:
    """The mean over the list counts: it is known in the end, and before that by how values vary over the blocks."""
    values = outcomes(11, K=4, N=60)
    rng = np.random.default_rng(0)
    price = {f"m{k}": rng.normal(100.0 + 20.0 * k, 5.0, 60) for k in range(4)}
    table = {(name, block): row for name, block, *row in zip(*frame(values).values(), strict=True)}
    study = ps.Study(
        [f"m{k}" for k in range(4)],
        METRICS,
        blocks=[f"p{b}" for b in range(60)],
        guards=["price <= 150"],
        storage="memory",
    )
    while not study.done:
        trial = study.ask()
        assert trial.block is not None
        row = dict(zip(("quality", "speed"), table[trial.arm, trial.block], strict=True))
        study.tell(trial, {**row, "price": price[trial.arm][int(trial.block[1:])]})
    assert list(study.withdrawn) == ["m3"]
    assert "price of an option over the blocks as from a normal law" in str(study.verdicts().guarantee)
    replica = study.log.copy()
    assert study.log.as_of(replica.number).dump() == replica.dump()


@pytest.mark.parametrize("n_list", [20, 200])
def test_limits_over_a_list_are_right_as_often_as_they_say(n_list: int) -> None:
    """P(the mean of the list is outside, ever) is at most alpha for both sides together."""
    runs, wrong, alpha = 400, 0, 0.1
    for seed in range(runs):
        values = np.random.default_rng(seed).normal(size=n_list)
        off = [
            abs(values[:n].mean() - values.mean()) > _width_in_list(float(values[:n].var()), n, n_list, alpha / 2)
            for n in range(2, n_list)
        ]
        wrong += any(off)
    assert wrong <= allowed(runs, alpha)
