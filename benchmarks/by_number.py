"""Noise of unknown scale: outcomes paired by their numbers, against evidence that looks at each arm by itself.

Four tables: samples and regret by the dial; what it costs where samples cost differently; how often scout is wrong where noise is skewed, which its promise does not
cover; and what it takes where there are far more outcomes of one option than of the other. `docs/scout.md` has them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import paretoscout as ps
from paretoscout.algorithms import Scout, Setup
from paretoscout.algorithms.scout import tabular
from paretoscout.errors import MissingData
from paretoscout.kernels.arrays import FloatArray
from paretoscout.session import Session

DELTA = 0.1
#: Problem, eps (None: that of its metrics), and runs.
PROBLEMS = {
    "random-16": (0.1, 400),
    "four-arms": (0.1, 400),
    "llvm-passes-16": (None, 400),
    "compressors": (None, 200),
    "snw": (None, 20),
    "noc": (None, 20),
    "llvm-passes": (None, 2),
}
DIALS = (0.0, 0.5, 0.9, 0.95)
#: Noise of mean 0 and deviation 1, with rare outcomes that are far worse than the rest.
LAWS: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "exponential": lambda rng, n: 1.0 - rng.exponential(size=n),
    "lognormal": lambda rng, n: (np.exp(0.5) - rng.lognormal(size=n)) / np.sqrt((np.e - 1.0) * np.e),
    "5% of the outcomes carry all": lambda rng, n: (
        (0.05 - (rng.random(n) < 0.05)) / 0.22 + 0.1 * rng.standard_normal(n)
    ),
}
ROWS = 40_000
LEADS = (0.5, 1.0, 2.0)


def each_by_itself(run: Callable[[], Any]) -> Any:
    """Run without pairing."""
    most, tabular.MOST_PAIRED = tabular.MOST_PAIRED, 0
    try:
        return run()
    finally:
        tabular.MOST_PAIRED = most


def both(problem: ps.Problem, eps: Any, replicates: int, seed: int, **settings: Any) -> dict[str, Any]:
    """Run both kinds of evidence on the same seeds."""

    def run() -> Any:
        scout = Scout(noise="unknown", **settings)
        return ps.simulate(problem, scout, eps=eps, delta=DELTA, replicates=replicates, seed=seed, progress=False)

    found = {"itself": each_by_itself(run), "paired": run()}
    return {
        "runs": replicates,
        **{f"samples, {kind}": float(result.samples.mean()) for kind, result in found.items()},
        **{f"error, {kind}": float(stats.sem(result.samples)) for kind, result in found.items()},
        **{f"cost, {kind}": float(result.cost.mean()) for kind, result in found.items()},
        **{f"regret, {kind}": float(result.regret.mean()) for kind, result in found.items()},
        **{f"wrong, {kind}": int((~result.success).sum()) for kind, result in found.items()},
    }


def by_dial(names: list[str], times: float, seed: int) -> list[dict[str, Any]]:
    """Samples and regret."""
    rows = []
    print("| problem | dial | samples, each by itself | paired | | regret, each by itself | paired | wrong |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in names:
        eps, replicates = PROBLEMS[name]
        try:
            problem = ps.problems.load(name)
        except MissingData as missing:
            print(f"| {name}: skipped, {missing} |")
            continue
        for dial in DIALS if replicates >= 100 else DIALS[:2]:
            row: dict[str, Any] = {"problem": name, "dial": dial}
            row |= both(problem, eps, max(2, round(times * replicates)), seed, regret_weight=dial)
            rows.append(row)
            share = row["samples, paired"] / row["samples, itself"] - 1.0
            samples = [
                f"{row[f'samples, {kind}']:,.0f} ± {row[f'error, {kind}']:,.0f}" for kind in ("itself", "paired")
            ]
            regret = [f"{row[f'regret, {kind}']:,.0f}" for kind in ("itself", "paired")]
            wrong = f"{row['wrong, itself']} and {row['wrong, paired']} of {row['runs']}"
            print(
                f"| {name} | {dial:g} | {' | '.join(samples)} | {share:+.0%} | {' | '.join(regret)} | {wrong} |",
                flush=True,
            )
    return rows


def by_cost(times: float, seed: int) -> list[dict[str, Any]]:
    """What all samples cost together, where those of some arms cost many times those of others."""
    rows, replicates = [], max(2, round(60 * times))
    print("\n| problem | dearest of cheapest | cost, each by itself | paired | |\n|---|---:|---:|---:|---:|")
    for name in ("four-arms", "random-16"):
        problem = ps.problems.load(name)
        for ratio in (3, 10, 100):
            order = np.random.default_rng(1).permutation(len(problem.arms))
            cost = np.geomspace(1.0, ratio, len(order))[order]
            priced = ps.problems.gaussian(problem.means, float(np.max(problem.sigma)), cost=cost)
            row = {"problem": name, "ratio": ratio, **both(priced, 0.1, replicates, seed, regret_weight=0.0)}
            rows.append(row)
            change = row["cost, paired"] / row["cost, itself"] - 1.0
            print(
                f"| {name} | {ratio} | {row['cost, itself']:,.0f} | {row['cost, paired']:,.0f} | {change:+.0%} |",
                flush=True,
            )
    return rows


def skewed(law: str, both_arms: bool, deviation: float) -> ps.Problem:
    """Two options, the second worse by 1.02 eps (of 1) in both metrics, with rare bad outcomes of one or of both."""
    rng = np.random.default_rng(7)
    arms = {"good": LAWS[law if both_arms else "normal"], "bad": LAWS[law]}
    frame: dict[str, Any] = {"arm": np.repeat(list(arms), ROWS)}
    for metric in ("a", "b"):
        noise = [deviation * draw(rng, ROWS) for draw in arms.values()]
        frame[metric] = np.concatenate([rows - rows.mean() - 1.02 * k for k, rows in enumerate(noise)])
    return ps.problems.table(frame, arm="arm", metrics=[ps.Metric("a", eps=1.0), ps.Metric("b", eps=1.0)])


def by_skew(times: float, seed: int) -> list[dict[str, Any]]:
    """How often the worse of two options is accepted."""
    rows, replicates = [], max(2, round(1000 * times))
    print("\n| noise | of | deviation | wrong, each by itself | paired | paired, caution 64 | samples |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for law in LAWS:
        for both_arms in (False, True) if law != "normal" else (True,):
            for deviation in (1.0, 5.0):
                problem = skewed(law, both_arms, deviation)
                row: dict[str, Any] = {"law": law, "both": both_arms, "deviation": deviation}
                row |= both(problem, None, replicates, seed, regret_weight=0.0)
                careful = both(problem, None, replicates, seed, regret_weight=0.0, caution=64.0)
                row |= {f"{name}, caution 64": careful[name] for name in ("wrong, paired", "samples, paired")}
                rows.append(row)
                wrong = [
                    f"{row[name] / replicates:.1%}"
                    for name in ("wrong, itself", "wrong, paired", "wrong, paired, caution 64")
                ]
                taken = [
                    f"{row[name]:,.0f}"
                    for name in ("samples, itself", "samples, paired", "samples, paired, caution 64")
                ]
                whose = "both" if both_arms else "the worse"
                print(f"| {law} | {whose} | {deviation:g} eps | {' | '.join(wrong)} | {', '.join(taken)} |", flush=True)
    return rows


def rows_needed(lead: float, seed: int) -> int:
    """How many outcomes of an option it takes to see that it is worse by so many deviations than one with 1,000."""
    session = Session(Scout(noise="unknown"), Setup(2, 1, eps=np.array([0.1]), delta=DELTA, sigma=None))
    rng = np.random.default_rng(seed)
    for _ in range(1000):
        session.add(0, [rng.standard_normal()])
    n = 0
    while not session.done:
        session.add(1, [rng.standard_normal() - lead])
        n += 1
    return n


def by_balance(times: float, seed: int) -> list[dict[str, Any]]:
    """What it takes where one option has far more outcomes."""
    rows, replicates = [], max(2, round(200 * times))
    print("\n| worse by | outcomes needed, each by itself | paired |\n|---:|---:|---:|")
    for lead in LEADS:
        seeds = range(seed, seed + replicates)
        found = {"itself": each_by_itself(lambda: [rows_needed(lead, each) for each in seeds])}  # noqa: B023
        found["paired"] = [rows_needed(lead, each) for each in seeds]
        row = {"lead": lead, **{kind: float(np.mean(numbers)) for kind, numbers in found.items()}}
        rows.append(row)
        print(f"| {lead:g} deviations | {row['itself']:.0f} | {row['paired']:.0f} |", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", action="append", choices=PROBLEMS, help="only these; repeat for several")
    parser.add_argument("--replicates", type=float, default=1.0, help="times the usual number of runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    written = {
        "by dial": by_dial(asked.problem or list(PROBLEMS), asked.replicates, asked.seed),
        "by cost": by_cost(asked.replicates, asked.seed),
        "by skew": by_skew(asked.replicates, asked.seed),
        "by balance": by_balance(asked.replicates, asked.seed),
    }
    if asked.json is not None:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(written, indent=2) + "\n")


if __name__ == "__main__":
    main()
