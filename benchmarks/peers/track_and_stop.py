"""Drives the code of Track-and-Stop's authors, with its defaults; where there are two metrics, also with its speed-up."""

from __future__ import annotations

import importlib
import math

import numpy as np

from benchmarks.peers.driver import Answer, Problem, drive


def once(problem: Problem, seed: int) -> Answer:
    running = importlib.import_module("track_and_stop").track_and_stop
    np.random.seed(seed)
    log = math.log(1.0 / problem.delta)
    # T is what it prints beside its progress; given, it is not computed.
    returned, _, samples = running(problem.means, log, T=1, silent=True, speedup=problem.algorithm == "fast")
    return Answer(int(samples), sorted(int(k) for k in np.ravel(returned)))


if __name__ == "__main__":
    drive(once)
