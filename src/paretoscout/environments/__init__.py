"""What a simulation draws outcomes from: one file per kind of noise."""

from __future__ import annotations

from typing import Any

from ..problem import Problem
from ..statement import Units
from . import bernoulli, gaussian, recorded

__all__ = ["environment_of"]


def environment_of(problem: Problem, units: Units) -> Any:
    """Return the state that `draw` samples the problem from, oriented and scaled."""
    if problem.rows is not None:
        return recorded.of(problem, units)
    return bernoulli.of(problem, units) if problem.statement.model == "logistic" else gaussian.of(problem, units)
