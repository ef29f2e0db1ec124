"""Drives the code of GEGE's authors, without features; it says only whether what it returns is exactly the front.

Sigma is 0.5 in their own experiments, and their code does not ask for it: so means are halved here, and sigma is 0.5.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from benchmarks.peers.driver import Answer, Problem, drive


def once(problem: Problem, seed: int) -> Answer:
    options, metrics = problem.means.shape
    bandits, policies = importlib.import_module("lib.bandits"), importlib.import_module("lib.policies")
    bandit = bandits.Gaussian(problem.means / 2.0, np.full(metrics, 0.5))
    measure, samples = bandit.sample, 0

    def counted(arms: Any) -> Any:
        nonlocal samples
        samples += len(arms)
        return measure(arms)

    bandit.sample = counted
    running = policies.GEGE(bandit, np.eye(options))
    if problem.algorithm == "confidence":
        right, _ = running.loop_fc(seed, problem.delta)
    else:
        right = running.loop_fb(seed, problem.budget)
    return Answer(samples, right=bool(right))


if __name__ == "__main__":
    drive(once)
