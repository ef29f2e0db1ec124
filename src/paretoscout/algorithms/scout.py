"""Scout: measure the most ambiguous pair, decide by e-values that hold at all times and under any sampling rule.

Our own algorithm. `docs/scout.md` says how it works, proves its guarantee, and shows what was tried. There are two
kinds of state: `scout_tabular.py` judges each arm by its own samples, `scout_linear.py` uses contexts that explain the
means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import checks
from ..errors import InvalidInput
from . import scout_linear, scout_tabular
from .contract import Algorithm, Settings, Setup


@dataclass(frozen=True)
class Scout(Settings):
    """Settings of scout.

    regret_weight: 0 asks for the fewest samples, 1 for the least regret (samples of bad arms, weighted by how bad).
    model: "tabular": contexts are ignored, and so is nothing assumed of them; "linear": the means are exactly linear in
        the contexts, and the guarantee rests on that; None: linear if the problem was stated as linear, else tabular.
    """

    regret_weight: float = 0.5
    model: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        weight = checks.number("regret_weight of Scout", self.regret_weight, least=0.0)
        if weight > 1.0:
            raise InvalidInput(f"regret_weight of Scout must be from 0 to 1, got {self.regret_weight!r}")
        if self.model not in (None, "tabular", "linear"):
            raise InvalidInput(f"model of Scout must be 'tabular', 'linear' or None, got {self.model!r}")
        self._set(regret_weight=weight)


def init(settings: Scout, setup: Setup) -> tuple[Any, Any]:
    """Start with the model that was asked for, or that the problem states."""
    linear = setup.explained if settings.model is None else settings.model == "linear"
    return (scout_linear if linear else scout_tabular).init(settings.regret_weight, setup)


ALGORITHM = Algorithm(
    name="scout",
    summary="measure the most ambiguous pair; decide by e-values; with linear contexts, by the model",
    paper="our own: docs/scout.md",
    guarantee="fixed confidence: every Pareto-optimal arm is returned and every returned arm is within eps of "
    "optimal, with probability at least 1 - delta, if the noise is sigma-sub-Gaussian (and, with model='linear', the "
    "means are linear in the contexts)",
    guarantees=True,
    settings=Scout,
    init=init,
    kernels=(scout_tabular.KERNELS, scout_linear.KERNELS),
)
