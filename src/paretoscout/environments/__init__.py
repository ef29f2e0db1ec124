"""What a simulation draws outcomes from: one file per kind of noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Problem
from ..statement import Units
from . import bernoulli, blocks, gaussian, recorded

__all__ = ["begun", "environment_of"]


def environment_of(problem: Problem, units: Units) -> Any:
    """Return the state that `draw` samples the problem from, oriented and scaled."""
    if problem.statement.blocks is not None:
        return blocks.of(problem, units)
    if problem.rows is not None:
        return recorded.of(problem, units)
    return bernoulli.of(problem, units) if problem.statement.model == "logistic" else gaussian.of(problem, units)


def begun(environment: Any, listed: bool, rng: np.random.Generator) -> Any:
    """Return an environment for one run. listed: of blocks, each comes once."""
    return blocks.begun(environment, listed, rng) if isinstance(environment, blocks.BlockEnvironment) else environment
