"""Contexts as a guide: how many samples they save where they mean something, and cost where they mean nothing.

Scout with contexts ignored against scout guided by them, on the same seeds: on real features, on the same with more
noise, and on features that were shuffled among the options. Prints a table with standard errors.
`docs/scout.md` says what came out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import paretoscout as ps
from paretoscout.algorithms import Scout
from paretoscout.errors import MissingData

DELTA = 0.1


def noisier(name: str, times: float) -> ps.Problem:
    """The means and features of a data set, and normal noise that is so many times its largest sigma."""
    problem = ps.problems.load(name)
    return ps.problems.gaussian(
        problem.means,
        times * np.max(np.atleast_2d(problem.sigma), axis=0),
        metrics=problem.metrics,
        contexts=problem.contexts,
        name=f"{name}, noise x{times:g}",
    )


def shuffled(problem: ps.Problem) -> ps.Problem:
    """The same options, with features of other ones."""
    assert problem.contexts is not None
    order = np.random.default_rng(0).permutation(len(problem.contexts))
    return problem.replace(contexts=problem.contexts[order])


def meaningless(name: str) -> ps.Problem:
    """A problem without features, with some that have nothing to do with it."""
    problem = ps.problems.load(name)
    return problem.replace(contexts=np.random.default_rng(0).normal(size=(len(problem.arms), 3)))


#: What is run, with which eps (None: that of the metrics; "x3": three times that), and how often.
CASES: dict[str, tuple[Callable[[], ps.Problem], Any, int]] = {
    "llvm-passes, one sigma": (lambda: ps.problems.load("llvm-passes", sigma="largest"), None, 20),
    "llvm-passes, one sigma, shuffled": (lambda: shuffled(ps.problems.load("llvm-passes", sigma="largest")), None, 4),
    "llvm-passes, each sigma": (lambda: ps.problems.load("llvm-passes"), None, 20),
    "llvm-passes, noise x3, eps x3": (lambda: noisier("llvm-passes", 3.0), "x3", 4),
    "snw": (lambda: ps.problems.load("snw"), None, 80),
    "snw, noise x3": (lambda: noisier("snw", 3.0), None, 40),
    "snw, shuffled": (lambda: shuffled(ps.problems.load("snw")), None, 40),
    "noc": (lambda: ps.problems.load("noc"), None, 80),
    "noc, noise x3": (lambda: noisier("noc", 3.0), None, 20),
    "noc, shuffled": (lambda: shuffled(ps.problems.load("noc")), None, 40),
    "snw, sigma unknown": (lambda: ps.problems.load("snw"), None, 40),
    "noc, sigma unknown": (lambda: ps.problems.load("noc"), None, 20),
    "snw, noise x3, sigma unknown": (lambda: noisier("snw", 3.0), None, 10),
    "snw, shuffled, sigma unknown": (lambda: shuffled(ps.problems.load("snw")), None, 20),
    "llvm-passes-16, sigma unknown": (lambda: ps.problems.load("llvm-passes-16"), None, 100),
    "llvm-passes, sigma unknown": (lambda: ps.problems.load("llvm-passes"), None, 6),
    "sw-llvm, meaningless features": (lambda: meaningless("sw-llvm"), 0.06, 400),
    "random-16, meaningless features": (lambda: meaningless("random-16"), 0.1, 200),
}


def compare(name: str, dial: float, times: float, seed: int) -> dict[str, Any]:
    """Run both on the same seeds."""
    make, eps, replicates = CASES[name]
    problem = make()
    if eps == "x3":
        eps = [3.0 * metric.tolerance for metric in problem.metrics]
    replicates = max(2, round(times * replicates))
    row: dict[str, Any] = {"case": name, "runs": replicates}
    samples = {}
    for model in ("tabular", "guide"):
        began = time.process_time()
        result = ps.simulate(
            problem,
            Scout(model=model, regret_weight=dial, noise="unknown" if "unknown" in name else "given"),
            eps=eps,
            delta=DELTA,
            replicates=replicates,
            seed=seed,
            workers=1,
        )
        samples[model] = result.samples.astype(float)
        row[model] = float(result.samples.mean())
        row[f"{model} failures"] = int(np.count_nonzero(~result.success))
        row[f"{model} seconds"] = (time.process_time() - began) / replicates
    difference = samples["guide"] - samples["tabular"]
    row["tabular error"] = float(samples["tabular"].std(ddof=1) / np.sqrt(replicates))
    row["change"] = float(difference.mean() / row["tabular"])
    row["error"] = float(difference.std(ddof=1) / np.sqrt(replicates) / row["tabular"])
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose names begin so")
    parser.add_argument("--dial", type=float, default=0.0)
    parser.add_argument("--times", type=float, default=1.0, help="so many times as many runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    rows = []
    print("| case | runs | ignored | guided | change | failures | seconds a run |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in CASES:
        if not name.startswith(chosen.only):
            continue
        try:
            row = compare(name, chosen.dial, chosen.times, chosen.seed)
        except MissingData as missing:
            print(f"| {name} | {missing} |")
            continue
        rows.append(row)
        print(
            f"| {name} | {row['runs']} | {row['tabular']:,.0f} ± {row['tabular error']:,.0f} | {row['guide']:,.0f} | "
            f"{row['change']:+.1%} ± {row['error']:.1%} | {row['tabular failures']} and {row['guide failures']} | "
            f"{row['tabular seconds']:.2f} and {row['guide seconds']:.2f} |",
            flush=True,
        )
    if chosen.json:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
