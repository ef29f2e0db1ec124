"""Drives Ax: an experiment over one unordered choice parameter, with its default strategy, and its Pareto frontier.

Ax suggests each option once. Then it says that the search space is exhausted.
"""

from __future__ import annotations

import logging
import math
import warnings

import numpy as np
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig
from ax.exceptions.core import SearchSpaceExhausted

from benchmarks.peers.driver import Answer, Problem, drive


def once(problem: Problem, seed: int) -> Answer:
    """`once`: a trial is one measurement. `evenly`: it is a share of the budget, told as mean and standard error."""
    options, metrics = problem.means.shape
    rng = np.random.default_rng(seed)
    n = 1 if problem.algorithm == "once" else math.ceil(problem.budget / options)
    client = Client(random_seed=seed)
    names = [f"option {k}" for k in range(options)]
    client.configure_experiment(
        parameters=[ChoiceParameterConfig(name="option", values=names, parameter_type="str", is_ordered=False)]
    )
    client.configure_optimization(objective=", ".join(f"m{metric}" for metric in range(metrics)))
    samples = 0
    while samples < options * n:
        try:
            trials = client.get_next_trials(max_trials=1)
        except SearchSpaceExhausted:
            break
        for index, parameters in trials.items():
            drawn = problem.draw(rng, names.index(str(parameters["option"])), n)
            samples += n
            told = drawn.mean(axis=0).tolist()
            if n > 1:
                told = list(zip(told, (drawn.std(axis=0, ddof=1) / math.sqrt(n)).tolist(), strict=True))
            client.complete_trial(trial_index=index, raw_data={f"m{metric}": each for metric, each in enumerate(told)})
    frontier = client.get_pareto_frontier()
    return Answer(samples, sorted({names.index(str(parameters["option"])) for parameters, *_ in frontier}))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore")
    drive(once)
