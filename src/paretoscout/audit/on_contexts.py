"""The door of contexts: options are said to be linear in them, and are not; or they are, and a test may say otherwise.

Truth is known. A replicate fails if a verdict was wrong at any time, before the model was rejected or after. If means
are linear it fails if the model was rejected, and the test has all of delta to do that.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..algorithms.registry import get, resolve
from ..kernels.arrays import FloatArray
from ..practical import wrong_ones
from ..problem import Problem
from ..problems import linear
from ..problems.built_in import partly_linear
from ..simulation.replicates import Replicate, Simulation
from ..statement import Metric
from ..study import Study
from ..verdicts import FIT_REJECTED
from .doors import USUAL, DoorCase, Played, stream

SIGMA, EPS = 0.5, 0.2
#: A study goes on for so many samples after its model was rejected.
AFTERWARDS = 100
#: A study looks at its verdicts after so many samples, and ends after so many.
LOOK_EVERY, MOST_SAMPLES = 5, 1500
#: What of delta is for the test of the model.
SHARE = 0.02
#: Samples of a run whose means are linear.
RUN_SAMPLES = 600


def studied(misfit: float, goal: str, told: bool, number: int, delta: float) -> Played:
    """A study of options whose means are linear in the contexts but for misfits of that share of the signal."""
    problem, rng = partly_linear(60, 4, misfit, SIGMA, "door", seed=number), stream(number)
    assert problem.contexts is not None
    features = [f"x{i}" for i in range(problem.contexts.shape[1])]
    study = Study(
        {"arm": list(problem.arms), **dict(zip(features, problem.contexts.T.tolist(), strict=True))},
        [Metric("a", eps=EPS), Metric("b", eps=EPS)],
        contexts=features,
        model="linear",
        sigma=SIGMA if told else None,
        delta=delta,
        goal=goal,
        seed=number,
        storage="memory",
    )
    means, wrong = dict(zip(problem.arms, problem.means, strict=True)), dict[str, None]()
    samples, last = 0, MOST_SAMPLES
    while not study.done and samples < last:
        trial = study.ask()
        a, b = (means[trial.arm] + SIGMA * rng.standard_normal(2)).tolist()
        study.tell(trial, {"a": a, "b": b})
        samples += 1
        if samples % LOOK_EVERY == 0 or study.done:
            table = study.verdicts()
            wrong |= dict.fromkeys(_wrong(table.arms, table.verdicts, table.rivals, means, goal))
            if table.fit == FIT_REJECTED and last == MOST_SAMPLES:
                last = min(last, samples + AFTERWARDS)
    return Played(tuple(wrong), study.done, samples)


def _wrong(arms: Any, verdicts: Any, rivals: Any, means: dict[str, FloatArray], goal: str) -> list[str]:
    """The options whose verdicts are wrong, by the true means."""
    if goal == "practical":
        return wrong_ones(arms, verdicts, rivals, means, np.array([EPS, EPS]))
    y = np.array([means[arm] for arm in arms])
    wrong = []
    for arm, verdict in zip(arms, verdicts, strict=True):
        leads = (y - means[arm]).min(axis=1)
        if (verdict == "front" and leads.max() > EPS) or (verdict == "dominated" and not (leads > 0).any()):
            wrong.append(arm)
    return wrong


def rejected(problem: Problem, told: bool, number: int, delta: float) -> Played:
    """A run on linear means, whose test may reject the model with probability delta: wrong if it does."""
    how: dict[str, Any] = {"model": "linear", "noise": "given" if told else "unknown"}
    record, settings = resolve(get(USUAL).settings(**how))
    run = Simulation(record, settings, problem, EPS, delta, number, RUN_SAMPLES)
    limits = run.constants.limits
    shift = -np.log(SHARE)
    run.constants = run.constants._replace(
        limits=limits._replace(
            thresholds=limits.thresholds - shift,
            plane_threshold=limits.plane_threshold - shift,
            arm_thresholds=limits.arm_thresholds - shift,
        )
    )
    replicate = Replicate(run, 0)
    while not replicate.finished and not _was_rejected(replicate):
        replicate.advance(RUN_SAMPLES)
    return Played(("the model",) if _was_rejected(replicate) else (), bool(replicate.stopped), replicate.samples)


def _was_rejected(replicate: Replicate) -> bool:
    basis = replicate.basis()
    return basis is not None and basis.model_rejected


def cases() -> Iterator[DoorCase]:
    """Studies of options whose means are not linear, and runs on some whose means are."""
    for misfit in (1.0, 0.5):
        for goal in ("front", "practical"):
            play = partial(studied, misfit, goal, True)
            short = (misfit, goal) == (1.0, "practical")
            yield DoorCase(f"misfits of {misfit:g} of the signal, sigma told, {goal}", play, short=short)
    yield DoorCase("misfits of 0.5 of the signal, sigma unknown, practical", partial(studied, 0.5, "practical", False))
    exact, rng = partly_linear(60, 4, 0.0, SIGMA, "door"), np.random.default_rng(1)
    ties = linear(rng.normal(size=(20, 3)), np.zeros((3, 2)), SIGMA)
    for problem, what in ((exact, "linear means"), (ties, "linear means, all equal")):
        for told, noise in ((True, "sigma told"), (False, "sigma unknown")):
            play = partial(rejected, problem, told)
            yield DoorCase(f"{what}, {noise}: false alarms, with all of delta", play, short=told and problem is exact)
