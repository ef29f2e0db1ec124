"""From a problem, eps and delta to what an algorithm is started with."""

from __future__ import annotations

import numpy as np

from .algorithms.contract import Settings, Setup, checked_number
from .errors import InvalidInput
from .problem import Eps, Problem, Units


def setup_of(problem: Problem, settings: Settings, eps: Eps | None, delta: float) -> tuple[Setup, Units]:
    """Orient and scale the problem; the algorithm is told the problem's sigma unless its settings name one."""
    checked_number(f"a run on problem {problem.name!r}", "delta", delta, above=0.0, below=1.0)
    units = problem.units(eps)
    sigma = problem.sigma
    if settings.sigma is not None:
        told = np.asarray(settings.sigma, float)
        if told.size not in (1, len(sigma)):
            raise InvalidInput(
                f"sigma of {type(settings).__name__} must be one number or one per metric ({len(sigma)}), "
                f"got {told.size}"
            )
        sigma = np.broadcast_to(told, sigma.shape)
    setup = Setup(
        n_arms=len(problem.arms),
        n_metrics=len(problem.metrics),
        eps=units.eps,
        delta=float(delta),
        sigma=sigma / units.scales,
        contexts=problem.contexts,
        theta_max=problem.theta_max(units),
    )
    return setup, units
