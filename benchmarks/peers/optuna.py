"""Drives Optuna: a study over one categorical parameter, with the sampler that it takes by itself."""

from __future__ import annotations

import numpy as np
import optuna

from benchmarks.peers.driver import Answer, Problem, drive


def once(problem: Problem, seed: int) -> Answer:
    """`best_trials`: the options of those. `means`: the same trials, and the front of the means of each option."""
    options, metrics = problem.means.shape
    rng = np.random.default_rng(seed)
    # What create_study takes by itself, with a seed.
    study = optuna.create_study(directions=["maximize"] * metrics, sampler=optuna.samplers.TPESampler(seed=seed))

    def measured(trial: optuna.Trial) -> list[float]:
        return list(map(float, problem.draw(rng, trial.suggest_categorical("option", range(options)))[0]))

    study.optimize(measured, n_trials=problem.budget)
    if problem.algorithm == "best_trials":
        return Answer(len(study.trials), sorted({trial.params["option"] for trial in study.best_trials}))
    told: dict[int, list[list[float]]] = {}
    for trial in study.trials:
        told.setdefault(trial.params["option"], []).append(trial.values)
    means = {option: np.mean(values, axis=0) for option, values in told.items()}
    front = [
        option
        for option, mine in means.items()
        if not any(np.all(other >= mine) and np.any(other > mine) for other in means.values())
    ]
    return Answer(len(study.trials), sorted(front))


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    drive(once)
