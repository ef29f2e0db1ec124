"""From a problem, eps and delta to what an algorithm is started with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import checks
from .algorithms.contract import Settings, Setup
from .algorithms.registry import available, resolve
from .errors import InvalidInput, MissingExtra, NotSupported
from .kernels.arrays import FloatArray
from .problem import DRAWN, Eps, Problem, Units


def setup_of(
    problem: Problem,
    settings: Settings,
    eps: Eps | None,
    delta: float,
    goal: str | int = "front",
    budget: int | None = None,
) -> tuple[Setup, Units]:
    """Orient and scale the problem; the algorithm is told the problem's sigma unless its settings say otherwise."""
    units = problem.units(eps)
    sigma, noise = _noise(problem, settings)
    setup = Setup(
        n_arms=len(problem.arms),
        n_metrics=len(problem.metrics),
        eps=units.eps,
        delta=checks.number(f"delta of a run on problem {problem.name!r}", delta, above=0.0, below=1.0),
        sigma=None if sigma is None else sigma / units.scales,
        contexts=problem.contexts,
        theta_max=problem.theta_max(units),
        explained=problem.theta is not None,
        noise=noise,
        bounds=problem.bounds(units),
        cost=1.0 if problem.cost is None else problem.cost,  # type: ignore[arg-type]
        scales=units.scales,
        link=problem.link,
        goal=goal,
        budget=budget,
    )
    return setup, units


def fitting(
    problem: Problem, names: Iterable[str] | None = None, **asked: Any
) -> tuple[list[Settings], dict[str, str]]:
    """Return the algorithms that can be run on a problem, and why each of the others cannot.

    names: which are looked at; None: all. asked: eps, delta, goal and budget, as for `setup_of`.

    >>> from paretoscout.problems import load
    >>> chosen, refused = fitting(load("s5"), eps=0.1, delta=0.1)
    >>> type(chosen[0]).__name__
    'Scout'
    """
    chosen, refused = [], {}
    for name in available() if names is None else names:
        record, settings = resolve(name, noise_given=problem.knows_sigma)
        try:
            record.start(settings, setup_of(problem, settings, **asked)[0])
        except (InvalidInput, NotSupported, MissingExtra) as reason:
            refused[name] = str(reason)
        else:
            chosen.append(settings)
    return chosen, refused


def _noise(problem: Problem, settings: Settings) -> tuple[FloatArray | None, str]:
    """What the algorithm is told of the noise, and how people are told what that rests on."""
    if not settings.knows_noise:
        bounded = [metric.name for metric in problem.metrics if metric.bounds is not None]
        if len(bounded) == len(problem.metrics):
            return None, "outcomes within their bounds, noise of any kind"
        within = f"; {', '.join(bounded)}: within bounds, noise of any kind" if bounded else ""
        normal = "normal noise" if problem.rows is None else "noise assumed to be normal"
        drawn = "" if problem.rows is None else f"; {DRAWN}"
        return None, f"{normal}, variance unknown{within}{drawn}"
    if settings.sigma is None:
        return problem.sigma, problem.noise
    sigma = checks.per_metric(f"sigma of {type(settings).__name__}", settings.sigma, len(problem.metrics))
    return sigma, "sigma set to " + ", ".join(f"{value:g}" for value in dict.fromkeys(sigma.tolist()))
