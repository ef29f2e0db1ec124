"""Options on the same inputs: how much of each real table scout measures, and how often it is wrong.

Every order is a run: the list is walked in another random order. Prints the table of docs/blocks.md, with exact
intervals. `--picture` draws how many prompts each model has to answer.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import paretoscout as ps
from paretoscout.algorithms import Scout
from paretoscout.algorithms.registry import resolve
from paretoscout.errors import MissingData
from paretoscout.kernels.decisions import FRONT
from paretoscout.simulation.replicates import Replicate, Simulation
from paretoscout.study.blocks import CARRY, FEWEST, OnBlocks

DELTA = 0.1
#: Data set, by which factor eps is larger (of ratios: to that power), what is to be reached, and orders.
POOLS: dict[str, tuple[str, float, float | None, int]] = {
    "alpaca-eval": ("alpaca-eval", 1.0, 26_000, 100),
    "alpaca-eval, 5 eps": ("alpaca-eval", 5.0, 14_500, 100),
    "poppler": ("poppler", 1.0, 3_500, 500),
    "poppler, 3 eps": ("poppler", 3.0, None, 500),
    "x264": ("x264", 1.0, 14_000, 100),
    "imagemagick": ("imagemagick", 1.0, 4_600, 100),
    "gcc": ("gcc", 1.0, 1_935, 500),
    "xz": ("xz", 1.0, 1_277, 500),
    "sqlite": ("sqlite", 1.0, None, 100),
    "aider": ("aider", 1.0, None, 100),
}


def larger(metric: ps.Metric, factor: float) -> float | str:
    """The eps of a metric, larger by a factor; of a ratio, to that power."""
    if metric.relative:
        return f"{100 * np.expm1(factor * metric.tolerance):.10g}%"
    return factor * metric.tolerance


def measure(pool: str, orders: int, goal: str, caution: float | None, seed: int) -> dict[str, Any]:
    """Run scout on a pool, in so many orders."""
    name, factor, reach, _ = POOLS[pool]
    problem = ps.problems.load(name)
    eps = [larger(metric, factor) for metric in problem.metrics]
    settings = Scout(noise="unknown", caution=caution)
    began = time.process_time()
    result = ps.simulate(problem, settings, eps=eps, delta=DELTA, goal=goal, replicates=orders, seed=seed)
    blocks = problem.statement.blocks
    assert blocks is not None
    whole = len(problem.arms) * len(blocks.names)
    wrong = int((~result.success).sum())
    interval = stats.binomtest(wrong, orders).proportion_ci(method="exact")
    return {
        "pool": pool,
        "arms": len(problem.arms),
        "blocks": len(blocks.names),
        "whole": whole,
        "goal": goal,
        "caution": caution or 64.0,
        "median": float(np.median(result.samples)),
        "share": float(np.median(result.samples)) / whole,
        "wrong": wrong,
        "orders": orders,
        "low": float(interval.low),
        "high": float(interval.high),
        "reach": reach,
        "seconds": (time.process_time() - began) / orders,
    }


def warned(pool: str, orders: int, seed: int) -> str:
    """Say in how many orders a warning names few blocks that carry a difference, and whether those were wrong."""
    problem = ps.problems.load(POOLS[pool][0])
    run = Simulation(*resolve("scout", noise_given=False), problem, None, DELTA, seed, None)
    blocks = problem.statement.blocks
    assert blocks is not None
    shown = wrong = caught = 0
    for order in range(orders):
        replicate = Replicate(run, order)
        while not replicate.finished:
            replicate.advance(10_000)
        state = replicate.state
        named = np.zeros(len(problem.arms), bool)
        for k in range(len(problem.arms)):
            rival = state.worst[k] if state.status[k] == FRONT else state.beaten_by[k]
            leads = state.outcomes[:, rival] - state.outcomes[:, k]
            both = OnBlocks(blocks.names, leads[~np.isnan(leads).any(axis=1)], len(blocks.names))
            if rival >= 0 and FEWEST <= len(both.leads) < len(blocks.names):
                named[k] = any(both.carried(metric)[0] > CARRY for metric in range(leads.shape[1]))
        ahead = np.any(np.all(run.means[None] - run.means[:, None] > run.units.eps, axis=2), axis=1)
        accepted = (np.asarray(state.status) == FRONT) & ahead  # though another one is better by more than eps
        shown += bool(named.any())
        wrong += bool(accepted.any())
        caught += bool((accepted & named).any())
    return f"{pool}: warned in {shown} of {orders} orders; of {wrong} with a wrong verdict it named {caught}"


def by_kinds(pool: str, orders: int, n_kinds: int, seed: int) -> str:
    """Say what comes out where each few blocks of a walk are of all kinds of size, in place of any that come."""
    problem = ps.problems.load(POOLS[pool][0])
    rows = np.stack(problem.rows or ())
    kinds = np.array_split(np.argsort(np.median(rows[:, :, 0], axis=0)), n_kinds)
    run = Simulation(*resolve("scout", noise_given=False), problem, None, DELTA, seed, None)
    finished = []
    for order in range(orders):
        replicate = Replicate(run, order)
        if n_kinds > 1:
            rng = np.random.default_rng((seed, order))
            left = [list(rng.permutation(kind)) for kind in kinds]
            walk: list[int] = []
            while any(left):
                walk += rng.permutation([blocks.pop() for blocks in left if blocks]).tolist()
            replicate.environment = replicate.environment._replace(order=np.array(walk))
        while not replicate.finished:
            replicate.advance(10_000)
        finished.append(replicate.outcome())
    result = run.result(finished, orders)
    wrong = int((~result.success).sum())
    return f"{pool}, {n_kinds} kinds: {np.median(result.samples):,.0f} measured, wrong {wrong} of {orders}"


def picture(path: Path) -> None:
    """Draw how many prompts each model has to answer."""
    from matplotlib import pyplot as plt

    problem = ps.problems.load("alpaca-eval")
    assert problem.statement.blocks is not None
    n = len(problem.statement.blocks.names)
    result = ps.simulate(problem, delta=DELTA, goal="practical", replicates=1, seed=0)
    pulls, front = result.pulls[0], result.fronts[0]
    order = np.lexsort((-pulls, ~front))
    figure, axes = plt.subplots(figsize=(9, 10), layout="constrained")
    places = np.arange(len(order))
    colours = np.where(front[order], "#1b7f5c", "#b9c0c8")
    axes.barh(places, pulls[order], color=colours, height=0.72)
    axes.set_yticks(places, [problem.arms[k] for k in order], fontsize=7.5)
    axes.invert_yaxis()
    axes.set_xlim(0, n)
    axes.set_xlabel(f"prompts answered, of {n}")
    axes.set_title(f"How many of {n} prompts does each model have to answer?", loc="left", fontsize=13, weight="bold")
    share = pulls.sum() / (n * len(pulls))
    axes.text(
        0.985,
        0.015,
        f"{pulls.sum():,} of {n * len(pulls):,} answers ({share:.0%}) prove which models are worth having\n"
        "(green: front, up to 0.02 of win rate and 5% of length; probability 90%)",
        transform=axes.transAxes,
        ha="right",
        va="bottom",
        fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85},
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.01)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=float, default=1.0, help="times as many orders as usual")
    parser.add_argument("--pool", action="append", choices=POOLS, help="only these")
    parser.add_argument("--goal", default="front", choices=["front", "practical"])
    parser.add_argument("--caution", type=float, help="the smallest scale of the mixture; 64 unless told")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--warnings", action="store_true", help="how often few blocks that carry all are named")
    parser.add_argument("--kinds", action="store_true", help="what walks do that keep kinds of size in balance")
    asked = parser.parse_args()
    if asked.kinds:
        for pool in asked.pool or ("xz", "gcc"):
            for n_kinds in (1, 4, 8):
                orders = max(2, round(asked.orders * POOLS[pool][3]))
                print(by_kinds(pool, orders, n_kinds, asked.seed), flush=True)
        return
    if asked.picture is not None:
        picture(asked.picture)
    if asked.warnings:
        for pool in asked.pool or ("xz", "gcc", "poppler", "imagemagick"):
            print(warned(pool, max(2, round(asked.orders * POOLS[pool][3])), asked.seed), flush=True)
        return
    rows = []
    print("| table | whole | measured, median | share | wrong (95% interval) | goal of samples |", flush=True)
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    for pool in asked.pool or POOLS:
        orders = max(2, round(asked.orders * POOLS[pool][3]))
        try:
            row = measure(pool, orders, asked.goal, asked.caution, asked.seed)
        except MissingData as missing:
            print(f"| {pool} | {missing} | | | | |", flush=True)
            continue
        rows.append(row)
        reach = "-" if row["reach"] is None else f"{row['reach']:,.0f}"
        print(
            f"| {pool}, {row['arms']} x {row['blocks']} | {row['whole']:,} | {row['median']:,.0f} | {row['share']:.0%} "
            f"| {row['wrong']} of {orders} ({row['low']:.1%} to {row['high']:.1%}) | {reach} |",
            flush=True,
        )
    if asked.json is not None:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
