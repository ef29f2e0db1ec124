"""Drives VOPy's Auer, PaVeBa and epsilon-PAL. "auer/32": its confidence regions are shrunk 32-fold (`conf_contraction`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from vopy.algorithms import PaVeBa
from vopy.order import ComponentwiseOrder
from vopy.utils import set_seed

from benchmarks import vopy_auer, vopy_epal
from benchmarks.peers.driver import Answer, Problem, drive


def algorithm(problem: Problem) -> Any:
    """The algorithm, ready to run."""
    name, _, contraction = problem.algorithm.partition("/")
    shrunk = float(contraction)
    if name == "auer":
        return vopy_auer.algorithm(problem.means, 1.0, problem.eps, problem.delta, shrunk)
    if name == "paveba":
        vopy_auer.register(problem.means)
        order = ComponentwiseOrder(problem.means.shape[1])
        return PaVeBa(problem.eps, problem.delta, vopy_auer.DATASET, order, 1.0, conf_contraction=shrunk)
    alike = np.eye(len(problem.means))  # nothing is known of the options: each is as far from each
    return vopy_epal.algorithm(alike, problem.means, 1.0, problem.eps, problem.delta, shrunk)


def once(problem: Problem, seed: int) -> Answer:
    set_seed(seed)
    running = algorithm(problem)
    measure, samples = running.problem.evaluate, 0

    def counted(points: Any, *args: Any, **keywords: Any) -> Any:
        nonlocal samples
        samples += len(points)
        return measure(points, *args, **keywords)

    running.problem.evaluate = counted
    while not running.run_one_step():
        pass
    return Answer(samples, sorted(int(k) for k in running.P))


if __name__ == "__main__":
    torch.set_num_threads(1)
    drive(once)
