"""From a problem, eps and delta to what an algorithm is started with."""

from __future__ import annotations

from . import checks
from .algorithms.contract import Settings, Setup
from .problem import Eps, Problem, Units


def setup_of(problem: Problem, settings: Settings, eps: Eps | None, delta: float) -> tuple[Setup, Units]:
    """Orient and scale the problem; the algorithm is told the problem's sigma unless its settings name one."""
    units = problem.units(eps)
    sigma, noise = problem.sigma, problem.noise
    if settings.sigma is not None:
        sigma = checks.per_metric(f"sigma of {type(settings).__name__}", settings.sigma, len(sigma))
        noise = "sigma set to " + ", ".join(f"{value:g}" for value in dict.fromkeys(sigma.tolist()))
    setup = Setup(
        n_arms=len(problem.arms),
        n_metrics=len(problem.metrics),
        eps=units.eps,
        delta=checks.number(f"delta of a run on problem {problem.name!r}", delta, above=0.0, below=1.0),
        sigma=sigma / units.scales,
        contexts=problem.contexts,
        theta_max=problem.theta_max(units),
        explained=problem.theta is not None,
        noise=noise,
    )
    return setup, units
