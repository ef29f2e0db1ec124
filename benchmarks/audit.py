"""`make audit`: is delta delta? Many runs of every algorithm that promises, where wrong answers are easiest.

A row fails if the failures prove, at level 1e-4, that the promised probability is not kept (exact binomial test):
so a right algorithm fails a row with probability at most 1e-4. Prints a table and writes JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest

import paretoscout as ps
from paretoscout.simulation.results import rate_interval

LEVEL = 1e-4


def instances() -> list[tuple[str, ps.Problem, float | None]]:
    """Problems on which a width that is too narrow shows: gaps just above eps, arms just on the front, ties."""
    rng = np.random.default_rng(1)
    return [
        ("gap 1.02 eps, K=2", ps.problems.gaussian([[0.0, 0.0], [0.204, 0.204]], sigma=1.0), 0.2),
        ("barely Pareto, K=2", ps.problems.gaussian([[0.0, 0.0], [0.3, -0.001]], sigma=1.0), 0.2),
        ("12 identical arms, L=1", ps.problems.gaussian(np.zeros((12, 1)), sigma=1.0), 0.3),
        ("20 arms near the front", ps.problems.gaussian(rng.normal(0, 0.1, (20, 2)), sigma=1.0), 0.3),
        ("S5 (linear where used)", ps.problems.load("s5"), 0.05),
        (
            "6 equal arms, linear d=5, L=1",
            ps.problems.linear(np.vstack([np.eye(5), np.full(5, 0.2)]), np.zeros((5, 1)), 1.0),
            0.4,
        ),
        ("linear K=50 d=5", random_linear(50, 5, 0.5), 0.1),
        (
            "correlated, different scales",
            ps.problems.table(
                correlated_rows(), arm="arm", metrics=[ps.Metric("a", "max", eps=0.5), ps.Metric("b", "min", eps=0.002)]
            ),
            None,
        ),
        ("16 random arms", ps.problems.load("random-16"), 0.2),
    ]


def random_linear(n_arms: int, d: int, sigma: float) -> ps.Problem:
    rng = np.random.default_rng(2)
    contexts = rng.normal(size=(n_arms, d))
    return ps.problems.linear(
        contexts / np.linalg.norm(contexts, axis=1, keepdims=True), rng.normal(size=(d, 2)), sigma
    )


def correlated_rows() -> dict[str, list[Any]]:
    """Bounded, skewed, correlated noise, in units that differ a thousandfold; two arms just beyond eps."""
    rng = np.random.default_rng(3)
    frame: dict[str, list[Any]] = {"arm": [], "a": [], "b": []}
    for arm, (a, b) in enumerate([(0.0, 0.0), (0.52, -0.0021), (0.3, 0.001), (-1.0, -0.004)]):
        shared = rng.exponential(size=400).clip(max=4.0)
        own = rng.exponential(size=400).clip(max=4.0)
        frame["arm"] += [f"arm {arm}"] * 400
        frame["a"] += list(a + shared - shared.mean())
        frame["b"] += list(b + 0.003 * (shared + own - (shared + own).mean()))
    return frame


def audit(replicates: int) -> list[dict[str, Any]]:
    rows = []
    for name in ps.algorithms.available():
        if not ps.algorithms.get(name).guarantees:
            continue
        for title, problem, eps in instances():
            for delta in (0.1, 0.3):
                result = ps.simulate(problem, name, eps=eps, delta=delta, replicates=replicates, seed=11)
                wrong, n = int((~result.success).sum()), len(result.success)  # a capped run is a failure
                low, high = rate_interval(wrong, n)
                rows.append(
                    {
                        "algorithm": name,
                        "instance": title,
                        "delta": delta,
                        "replicates": n,
                        "not_stopped": int((~result.stopped).sum()),
                        "failures": wrong,
                        "interval": (low, high),
                        "samples": float(result.samples.mean()),
                        "kept": bool(binomtest(wrong, n, delta, alternative="greater").pvalue > LEVEL),
                    }
                )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("out/audit.json"))
    parser.add_argument("--replicates", type=int, default=2000)
    arguments = parser.parse_args()
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    rows = audit(arguments.replicates)
    arguments.json.write_text(json.dumps(rows, indent=2))
    table = Table("algorithm", "instance", "delta", "failures", "95% interval", "mean samples", "promise", box=None)
    for row in rows:
        table.add_row(
            row["algorithm"],
            row["instance"],
            f"{row['delta']:g}",
            f"{row['failures']} of {row['replicates']}",
            f"{row['interval'][0]:.4f}–{row['interval'][1]:.4f}",
            f"{row['samples']:,.0f}",
            "kept" if row["kept"] else "BROKEN",
        )
    Console(width=120).print(table)
    return 0 if all(row["kept"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
