"""`analyze` judges the rows of a table, `demo` draws from them: on one table they must not contradict each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paretoscout as ps
from paretoscout.simulation.watch import watch

METRICS = {"x": "max", "y": "min"}
DELTA = 0.001
TABLES = 12


def made_up(seed: int) -> dict[str, Any]:
    """Six options, two of them alike, in any order of rows; their noise differs by a factor of up to 300."""
    rng = np.random.default_rng(seed)
    means, sd = rng.normal(size=(6, 2)), 10.0 ** rng.uniform(-2.0, 0.5, size=(6, 2))
    means[5] = means[4]
    sd[0, 0] = 0.0
    arms = rng.permutation(np.repeat(np.arange(6), rng.integers(5, 60, size=6)))
    values = means[arms] + sd[arms] * rng.normal(size=(len(arms), 2))
    return {"option": [f"option {arm}" for arm in arms], "x": values[:, 0], "y": values[:, 1]}


@pytest.mark.parametrize("sigma", ["each", "largest", "unknown"])
def test_nobody_is_on_the_front_of_one_and_dominated_by_the_other(sigma: str) -> None:
    """Each is wrong with probability at most delta on each table: false alarm at most 12 * 2 * 0.001 = 2.4%."""
    decided = 0
    for seed in range(TABLES):
        table = made_up(seed)
        rows = ps.analyze(table, "option", METRICS, delta=DELTA)
        problem = ps.problems.table(table, "option", METRICS, sigma=sigma)
        *_, drawn = watch(problem, delta=DELTA, seed=seed, max_samples=6_000)
        verdicts = dict(zip(drawn.arms, drawn.verdicts, strict=True))
        assert sorted(verdicts) == list(rows.arms)
        for pair in zip(rows.verdicts, (verdicts[arm] for arm in rows.arms), strict=True):
            assert set(pair) != {"front", "dominated"}
            decided += "undecided" not in pair
    assert decided > 0, "where nothing is decided nothing can be contradicted"
