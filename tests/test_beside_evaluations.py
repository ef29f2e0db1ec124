"""The comparison with other ways to evaluate: each does what it is said to do, and all are judged alike."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import paretoscout as ps
from benchmarks import beside_evaluations as beside
from paretoscout.geometry import are_right, pareto_front
from paretoscout.kernels.arrays import FloatArray
from paretoscout.problems import DATASETS


def pool_of(values: FloatArray, *, eps: float = 0.1) -> beside.Pool:
    """Options (K, N, L) on blocks, larger is better."""
    K, N, L = values.shape
    frame = {"arm": np.repeat([f"o{k}" for k in range(K)], N), "block": [f"b{b}" for b in range(N)] * K}
    metrics = [ps.Metric(f"m{metric}", eps=eps) for metric in range(L)]
    frame |= {metric.name: values[:, :, position].ravel() for position, metric in enumerate(metrics)}
    return beside.Pool(ps.problems.table(frame, arm="arm", block="block", metrics=metrics))


def test_answers_are_judged_like_those_of_a_simulation() -> None:
    rng = np.random.default_rng(0)
    pool = pool_of(rng.normal(size=(12, 5, 2)), eps=0.4)
    returned = rng.random((300, 12)) < 0.7
    returned[:200] &= pool.acceptable
    returned[:100] |= pool.optimal
    told = pool.judged(returned, returned)
    for goal, counted in (("front", told), ("cover", told["by_more_than_eps"])):
        assert counted["wrong"] == (~are_right(pool.means, returned, pool.eps, goal)).sum()
    assert 0 < told["by_more_than_eps"]["wrong"] < told["wrong"] < 300
    kept = np.ones((1, 12), np.bool_)
    assert pool.judged(~kept, kept)["wrong"] == 0, "who says nothing says nothing wrong"
    assert pool.judged(~kept, ~kept)["by_more_than_eps"]["wrong"] == 1


def test_fronts_are_counted() -> None:
    means = np.round(np.random.default_rng(1).normal(size=(40, 9, 2)), 1)  # with ties
    counts = np.zeros(9)
    beside.count_fronts(means, counts)
    np.testing.assert_array_equal(counts, sum(pareto_front(each).astype(float) for each in means))


def test_a_bootstrap_is_sure_of_what_is_the_same_on_every_block() -> None:
    values = np.repeat(np.array([[1.0, 0], [0, 1], [-1, -1]])[:, None], 6, axis=1)
    np.testing.assert_array_equal(beside.bootstrapped(values, np.random.default_rng(0), 50), [1, 1, 0])
    told = beside.on_a_part(pool_of(values), 3, 4, seed=0)
    assert told["measurements"] == 9
    for rule in ("means", "bootstrap", "bootstrap_with_undecided"):
        assert told[rule]["wrong"] == 0
    assert told["bootstrap_with_undecided"]["undecided"] == 0


@pytest.mark.parametrize("again", [False, True])
def test_the_best_option_is_found(again: bool) -> None:
    rng = np.random.default_rng(2)
    scores = np.clip(rng.normal([[0.2], [0.8], [0.5]], 0.05, size=(3, 400)), 0, 1)
    for shared in (False, True):
        assert beside.ucb_e(scores, 300, again, shared, 1.0, rng) == 1
    best, measured, finished = beside.successive_elimination(scores, 0.0, again, 0.1, 10**6, rng)
    assert (best, finished) == (1, True)
    assert measured < scores.size


def test_without_replacement_all_is_known_at_the_end() -> None:
    rng = np.random.default_rng(3)
    scores = rng.random((4, 20))
    best = int(scores.mean(axis=1).argmax())
    assert beside.ucb_e(scores, 10**6, False, False, 1.0, rng) == best
    assert beside.successive_elimination(scores, 0.0, False, 0.1, 80, rng) == (best, 80, True)
    assert beside.successive_elimination(scores, 0.0, True, 0.1, 80, rng)[1:] == (80, False)


@pytest.mark.parametrize("again", [False, True])
def test_radii_hold(again: bool) -> None:
    """For all n at once, of one option; they fail with probability 0.1 at most: 30 of 100 times with less than 1e-7."""
    rng = np.random.default_rng(4)
    values = (rng.random(60) < 0.15).astype(float)
    failed = 0
    for _ in range(100):
        drawn = rng.choice(values, 60, replace=again)
        for n in range(1, 61):
            off = abs(drawn[:n].mean() - values.mean())
            if off > beside.radius(n, n * drawn[:n].var(), 1, 60, again, 0.1) + 1e-12:
                failed += 1
                break
    assert failed < 30


def test_scores_lie_within_0_and_1() -> None:
    pool = pool_of(np.array([[[-3.0], [1], [0]], [[2], [2], [5]]]), eps=0.4)
    scores, eps = pool.scored()
    np.testing.assert_allclose(scores, [[0, 0.5, 0.375], [0.625, 0.625, 1]])
    assert eps == pytest.approx(0.05)


def test_what_is_not_here_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(beside.POOLS) == {name for name, card in DATASETS.items() if card.blocks}
    monkeypatch.setenv("PARETOSCOUT_DATA", str(tmp_path))
    monkeypatch.setattr(ps.problems.datasets, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(sys, "argv", ["beside_evaluations", "xz"])
    with pytest.raises(SystemExit, match="no data set is on this machine"):
        beside.main()
    assert "xz: skipped, data set 'xz' is not on this machine" in capsys.readouterr().err


def test_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if DATASETS["xz"].here() is None:
        pytest.skip("data set 'xz' is not here")
    path = tmp_path / "out" / "told.json"
    monkeypatch.setattr(sys, "argv", ["beside_evaluations", "xz", "--orders", "2", "--json", str(path)])
    beside.main()
    (row,) = json.loads(path.read_text())
    assert (row["pool"], row["table"], row["scout"]["orders"]) == ("xz", 1440, 2)
    assert len(row["one_metric"]["ucb_e"]["smaller_a"]) == 3
    assert row["one_metric"]["successive_elimination"]["without_replacement"]["share"] <= 1
    assert "| xz 30 x 48 | 1,440 |" in capsys.readouterr().out
