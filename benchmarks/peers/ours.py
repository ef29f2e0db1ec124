"""Drives paretoscout: every algorithm of a problem, one after the other, by sweeps in one process."""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import paretoscout as ps
from benchmarks.peers.driver import Answer, Problem, tell


def main() -> None:
    asked = Problem.read(sys.stdin)
    problem = ps.problems.gaussian(asked.means, sigma=1.0)
    number = {name: k for k, name in enumerate(problem.arms)}
    grid: dict[str, Any] = {"eps": [asked.eps], "delta": [asked.delta]}
    if asked.budget:
        grid["budget"] = [asked.budget]
    for algorithm in asked.algorithm.split():
        for replicates in (1, asked.replicates):  # the first one compiles, if that has not been done
            with tempfile.TemporaryDirectory() as folder:
                done = ps.sweep(
                    problem, algorithm, grid=grid, replicates=replicates, out=folder, workers=1, progress=False
                )
                rows = [row for cell in done.cells for row in done.rows(cell)]
        for row in rows:
            tell(Answer(row["samples"], [number[arm] for arm in row["front"]]), row["seconds"], algorithm)


if __name__ == "__main__":
    main()
