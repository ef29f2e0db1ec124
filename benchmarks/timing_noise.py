"""How normal are real timings, and what does it do to verdicts that take them to be normal? The figures of docs/bench.md.

The 20 repeats of each configuration of llvm-passes: their skewness and how much the noise differs between configurations,
plain and as logarithms; then scout, told nothing of the noise, on the 16 named ones.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.stats import skew

import paretoscout as ps
from paretoscout.algorithms import Scout

REPLICATES, DELTA = 60, 0.05


def logarithms(problem: ps.Problem) -> ps.Problem:
    """The same measurements, compared by ratios: eps is 2%."""
    assert problem.rows is not None
    rows = tuple(np.log(arm) for arm in problem.rows)
    return problem.replace(
        rows=rows,
        means=np.array([arm.mean(axis=0) for arm in rows]),
        metrics=tuple(replace(metric, eps=math.log1p(0.02)) for metric in problem.metrics),
    )


def main() -> None:
    every, named = ps.problems.load("llvm-passes"), ps.problems.load("llvm-passes-16")
    for scale, problem in (("plain", every), ("logarithms", logarithms(every))):
        rows = np.array(problem.rows)
        sd = rows.std(axis=1, ddof=1)
        shape = skew(((rows - rows.mean(axis=1, keepdims=True)) / sd[:, None]).reshape(-1, 2))
        spread = np.quantile(sd, 0.95, axis=0) / np.quantile(sd, 0.05, axis=0)
        print(
            f"{scale}: skewness {shape.round(2).tolist()}, largest noise over least (95% over 5%) {spread.round(1).tolist()}"
        )
    for scale, problem in (("plain", named), ("logarithms", logarithms(named))):
        result = ps.simulate(problem, Scout(noise="unknown"), delta=DELTA, replicates=REPLICATES)
        failures = int((~result.success).sum())
        print(
            f"{scale}: {failures} of {REPLICATES} wrong at delta {DELTA:g}, median {np.median(result.samples):,.0f} samples"
        )


if __name__ == "__main__":
    main()
