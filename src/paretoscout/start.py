"""From what is asked to what an algorithm is started with: the one place where a `Setup` is made of a `Statement`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import checks
from .algorithms.contract import Settings, Setup
from .algorithms.registry import available, resolve
from .errors import InvalidInput, MissingExtra, NotSupported
from .kernels.arrays import FloatArray
from .practical import SHARE_OF_VERDICTS
from .problem import Problem
from .statement import Statement


def setup_of(
    asked: Statement,
    settings: Settings,
    *,
    share: float | None = None,
    entered: Sequence[int] | int = 0,
    looked: Sequence[int] | int = 0,
) -> Setup:
    """Return what an algorithm is told: values oriented and scaled, sigma as it is known or set.

    share: what of delta is for the algorithm's verdicts; None: all that the goal leaves. entered, looked: with which
    addition each arm came, see `Setup`.
    """
    if share is None:
        share = SHARE_OF_VERDICTS if asked.goal == "practical" else 1.0
    if asked.tradeoffs is not None and getattr(settings, "model", None) == "robust":
        raise NotSupported(
            "tradeoffs must be left out with an algorithm of model='robust': a misfit is stated of metrics, not of sums"
        )
    units = asked.units
    sigma = told_sigma(asked, settings)
    return Setup(
        n_arms=len(asked.arms),
        n_metrics=len(units.eps),
        eps=units.eps,
        delta=share * asked.delta,
        sigma=None if sigma is None else units.spread(sigma),
        contexts=asked.contexts,
        theta_max=asked.theta_max,
        explained=asked.model != "none",
        bounds=asked.bounds,
        cost=1.0 if asked.cost is None else asked.cost,  # type: ignore[arg-type]
        divisors=units.ones,
        link="logistic" if asked.model == "logistic" else "identity",
        goal=asked.goal,
        budget=asked.budget,
        exact=np.array([metric.exact for metric in asked.judged_by]),
        entered=np.asarray(entered, np.int64),
        looked=np.asarray(looked, np.int64),
        n_blocks=None if asked.blocks is None else len(asked.blocks.names),
        listed=asked.blocks is not None and asked.blocks.listed,
        passing=asked.blocks is not None and asked.blocks.passing,
        spans=asked.spans,
        weights=units.weights,
        parting=units.shares,
        exact_parts=None if units.weights is None else np.array([metric.exact for metric in asked.metrics]),
        metric_shares=asked.metric_shares,  # type: ignore[arg-type]
    )


def told_sigma(asked: Statement, settings: Settings) -> FloatArray | None:
    """Return what the algorithm is told of the noise scale: what its settings say, or what is known; None: nothing."""
    if settings.sigma is not None:
        return checks.per_metric(f"sigma of {type(settings).__name__}", settings.sigma, len(asked.metrics))
    return asked.sigma if settings.knows_noise or not asked.knows_sigma else None


def fitting(
    problem: Problem, names: Iterable[str] | None = None, **asked: Any
) -> tuple[list[Settings], dict[str, str]]:
    """Return the algorithms that can be run on a problem, and why each of the others cannot.

    names: which are looked at; None: all. asked: eps, delta, goal and budget, as for `Problem.asked`.

    >>> from paretoscout.problems import load
    >>> chosen, refused = fitting(load("s5"), eps=0.1, delta=0.1)
    >>> type(chosen[0]).__name__
    'Scout'
    """
    chosen, refused = [], {}
    stated = problem.asked(**asked)
    for name in available() if names is None else names:
        record, settings = resolve(name, noise_given=stated.knows_sigma)
        try:
            record.start(settings, setup_of(stated, settings))
        except (InvalidInput, NotSupported, MissingExtra) as reason:
            refused[name] = str(reason)
        else:
            chosen.append(settings)
    return chosen, refused
