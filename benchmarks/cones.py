"""Ordering cones beside VOPy: the same exact Pareto sets, and the same returned ones.

python -m benchmarks.cones --vopy-python .venv-vopy/bin/python

Two of VOPy's cones are taken for `tradeoffs`. (1) The Pareto sets of exact means, 200 clouds of 30 options. (2) Five runs of VOPy's PaVeBa, ours,
and scout on eight options with normal noise, whose lead or lag is clear in every row of the cones: each must return the exact set. VOPy's
radii are those of its theorem (no contraction). Ends with an error if any set differs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import paretoscout as ps

SIGMA, EPS, DELTA, SEEDS = 0.1, 0.3, 0.1, 5
MEANS = [[1.05, 0.15], [1.8, -0.6], [3.75, 0.6], [-1.35, 1.2], [0.0, -1.65], [-2.1, 0.3], [1.05, 3.9], [-1.5, 4.2]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vopy-python", required=True, help="of an environment with VOPy 0.2.0")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    clouds = np.random.default_rng(1).normal(size=(200, 30, 2))
    given = {"clouds": clouds.tolist(), "means": MEANS, "sigma": SIGMA, "eps": EPS, "delta": DELTA}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(json.dumps({**given, "seeds": list(range(SEEDS))}))
        file.flush()
        command = [arguments.vopy_python, str(Path(__file__).with_name("vopy_cones.py")), file.name]
        theirs = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    report = []
    for cone in theirs:
        W = np.array(cone["W"])
        ours = [np.flatnonzero(ps.geometry.pareto_front(cloud, weights=W)).tolist() for cloud in clouds]
        right = np.flatnonzero(ps.geometry.pareto_front(MEANS, weights=W)).tolist()
        # VOPy's slack in the rows of its cone is alpha eps: ours is W eps
        eps = np.linalg.solve(W, EPS * np.array(cone["alpha"]))
        metrics = [ps.Metric("x", eps=float(eps[0])), ps.Metric("y", eps=float(eps[1]))]
        problem = ps.problems.gaussian(MEANS, SIGMA, metrics=metrics, tradeoffs=W)
        said = {
            "angle": cone["angle"],
            "exact sets alike": sum(a == b for a, b in zip(ours, cone["sets"], strict=True)),
        }
        said["of"], said["right"] = len(clouds), right
        for name in ("paveba", "scout"):
            result = ps.simulate(problem, name, delta=DELTA, replicates=SEEDS, progress=False)
            same = sum(np.flatnonzero(front).tolist() == right for front in result.fronts)
            said[name] = {"right": same, "samples": float(result.samples.mean())}
        said["VOPy's paveba"] = {
            "right": sum(run["returned"] == right for run in cone["runs"]),
            "samples": float(np.mean([run["samples"] for run in cone["runs"]])),
        }
        report.append(said)
        print(json.dumps(said))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(report, indent=2))
    runs = [said[name]["right"] for said in report for name in ("paveba", "scout", "VOPy's paveba")]
    if any(said["exact sets alike"] != said["of"] for said in report) or any(right != SEEDS for right in runs):
        sys.exit("some sets differ")


if __name__ == "__main__":
    main()
