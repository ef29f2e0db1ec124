"""paretoscout: which options are Pareto-optimal, from noisy measurements, with a stated probability.

Names are imported when first used, so that `paretoscout --help` does not wait for a compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import algorithms as algorithms
    from . import estimators as estimators
    from . import plots as plots
    from . import problems as problems
    from .geometry import M, eps_optimal, gaps, m, pareto_front, pareto_regret, success
    from .problem import Problem
    from .session import Session
    from .simulation.replicates import simulate
    from .simulation.results import Result, load_result
    from .statement import Metric
    from .study import Study, analyze
    from .theory import characteristic_time, regret_lower_bound, sample_lower_bound, sample_upper_bound, t_gamma

__version__ = "0.1.0"

_homes = {
    "algorithms": "algorithms",
    "estimators": "estimators",
    "plots": "plots",
    "problems": "problems",
    "M": "geometry",
    "Metric": "problem",
    "Problem": "problem",
    "Result": "simulation.results",
    "Session": "session",
    "Study": "study",
    "analyze": "study",
    "characteristic_time": "theory",
    "eps_optimal": "geometry",
    "gaps": "geometry",
    "load_result": "simulation.results",
    "m": "geometry",
    "pareto_front": "geometry",
    "pareto_regret": "geometry",
    "regret_lower_bound": "theory",
    "sample_lower_bound": "theory",
    "sample_upper_bound": "theory",
    "simulate": "simulation.replicates",
    "success": "geometry",
    "t_gamma": "theory",
}

__all__ = [
    "M",
    "Metric",
    "Problem",
    "Result",
    "Session",
    "Study",
    "algorithms",
    "analyze",
    "characteristic_time",
    "eps_optimal",
    "estimators",
    "gaps",
    "load_result",
    "m",
    "pareto_front",
    "pareto_regret",
    "plots",
    "problems",
    "regret_lower_bound",
    "sample_lower_bound",
    "sample_upper_bound",
    "simulate",
    "success",
    "t_gamma",
]


def __getattr__(name: str) -> Any:
    if name not in _homes:
        raise AttributeError(f"module 'paretoscout' has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_homes[name]}")
    return module if name == _homes[name] else getattr(module, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
