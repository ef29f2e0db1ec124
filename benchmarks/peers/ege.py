"""Drives the code of EGE's authors, where somebody has built its Python binding in the checkout.

EGE-SR returns its options. EGE-SH says only whether they are exactly the front.
"""

from __future__ import annotations

import importlib

from benchmarks.peers.driver import Answer, Problem, drive


def once(problem: Problem, seed: int) -> Answer:
    options, metrics = problem.means.shape
    bandits, policies = importlib.import_module("lib.bandits"), importlib.import_module("lib.policies")
    bandit = bandits.Gaussian(problem.means, [1.0] * metrics)
    if problem.algorithm == "sh":
        return Answer(problem.budget, right=bool(policies.py_ege_sh(bandit).loop(seed, problem.budget)))
    _, (returned, (_, samples)) = policies.py_ege_srk(bandit).loop(seed, problem.budget, options)
    return Answer(samples, sorted(returned))


if __name__ == "__main__":
    drive(once)
