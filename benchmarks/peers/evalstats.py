"""Drives evalstats: `tradeoff` on a finished table, with its defaults; each option has the same share of the budget."""

from __future__ import annotations

import math

import evalstats
import numpy as np
import pandas as pd

from benchmarks.peers.driver import Answer, Problem, drive


def once(problem: Problem, seed: int) -> Answer:
    options = len(problem.means)
    rng = np.random.default_rng(seed)
    n = max(evalstats.MIN_ITEMS, math.ceil(problem.budget / options))
    measured = np.concatenate([problem.draw(rng, option, n) for option in range(options)])
    frame = pd.DataFrame(measured, columns=["m0", "m1"])
    frame["option"] = [str(row // n) for row in range(len(frame))]
    frame["item"] = [row % n for row in range(len(frame))]
    told = evalstats.tradeoff(
        frame, factor="option", item_col="item", primary_metric="m0", secondary_metric={"m1": "max"}, rng=seed
    )

    def those(status: str) -> list[int]:
        return sorted(int(option) for option, said in told.status.items() if said == status)

    return Answer(len(frame), those("frontier"), those("ambiguous"))


if __name__ == "__main__":
    drive(once)
