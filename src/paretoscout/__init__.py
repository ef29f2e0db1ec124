"""paretoscout: which options are Pareto-optimal, from noisy measurements, with a stated probability.

Names are imported when first used, so that `paretoscout --help` does not wait for a compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .version import __version__ as __version__

if TYPE_CHECKING:
    from . import algorithms as algorithms
    from . import errors as errors
    from . import estimators as estimators
    from . import geometry as geometry
    from . import plots as plots
    from . import problems as problems
    from . import theory as theory
    from .client import connect
    from .planning import StudyPlan, plan, plan_from_pilot
    from .problem import Problem
    from .readers import Reading, read
    from .session import Session
    from .simulation.replicates import simulate
    from .simulation.results import Result, load_result
    from .simulation.watch import watch
    from .statement import Metric
    from .study import Below, Guard, Standing, Study, Trial, analyze, find_front
    from .sweeps.grid import Sweep, sweep
    from .verdicts import VerdictTable

_homes = {
    "algorithms": "algorithms",
    "errors": "errors",
    "estimators": "estimators",
    "geometry": "geometry",
    "plots": "plots",
    "problems": "problems",
    "theory": "theory",
    "Below": "study",
    "Guard": "study",
    "Metric": "statement",
    "Problem": "problem",
    "Reading": "readers",
    "Result": "simulation.results",
    "Session": "session",
    "Standing": "study",
    "Study": "study",
    "StudyPlan": "planning",
    "Sweep": "sweeps.grid",
    "Trial": "study",
    "VerdictTable": "verdicts",
    "analyze": "study",
    "connect": "client",
    "find_front": "study",
    "load_result": "simulation.results",
    "plan": "planning",
    "plan_from_pilot": "planning",
    "read": "readers",
    "simulate": "simulation.replicates",
    "sweep": "sweeps.grid",
    "watch": "simulation.watch",
}

#: Formulas that were at the top level; these names go in the next version.
_moved = {
    "M": "geometry",
    "characteristic_time": "theory",
    "eps_optimal": "geometry",
    "gaps": "geometry",
    "m": "geometry",
    "pareto_front": "geometry",
    "pareto_regret": "geometry",
    "regret_lower_bound": "theory",
    "sample_lower_bound": "theory",
    "sample_upper_bound": "theory",
    "success": "geometry",
    "t_gamma": "theory",
}

__all__ = [
    "Below",
    "Guard",
    "Metric",
    "Problem",
    "Reading",
    "Result",
    "Session",
    "Standing",
    "Study",
    "StudyPlan",
    "Sweep",
    "Trial",
    "VerdictTable",
    "algorithms",
    "analyze",
    "connect",
    "errors",
    "estimators",
    "find_front",
    "geometry",
    "load_result",
    "plan",
    "plan_from_pilot",
    "plots",
    "problems",
    "read",
    "simulate",
    "sweep",
    "theory",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name in _moved:
        import warnings

        new = f"{__name__}.{_moved[name]}.{name}"
        note = f"{__name__}.{name} is now {new}; the old name works in this version only"
        warnings.warn(note, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(f"{__name__}.{_moved[name]}"), name)
    if name not in _homes:
        raise AttributeError(f"module 'paretoscout' has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_homes[name]}")
    return module if name == _homes[name] else getattr(module, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
