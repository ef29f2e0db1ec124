"""Scout: measure the most ambiguous pair, decide by e-values that hold at all times and under any sampling rule.

Our own algorithm. `docs/scout.md` says how it works, proves its guarantee, and shows what was tried. There are three
kinds of state: `scout_tabular.py` judges each arm by its own samples, `scout_linear.py` uses contexts that explain the
means, `scout_robust.py` both, for contexts that explain only part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import checks
from ..errors import InvalidInput
from . import scout_linear, scout_pairs, scout_robust, scout_tabular
from .contract import Algorithm, Settings, Setup


@dataclass(frozen=True)
class Scout(Settings):
    """Settings of scout.

    regret_weight: 0 asks for the fewest samples, 1 for the least regret (samples of bad arms, weighted by how bad).
    model: "tabular": contexts are ignored, and so is nothing assumed of them; "linear": the means are exactly linear in
        the contexts, and the guarantee rests on that; "robust": linear up to a misfit, and each verdict says whether it
        was measured or rests on the model; None: linear if the problem was stated as linear, else tabular.
    misfit: by how much the mean of an arm may differ from what is linear in the contexts, for model="robust"; in the
        metrics' own units, one number or one per metric; 0 trusts the contexts, unless a test of them objects.
    noise: "given": sigma is that of the problem, or `sigma`; "unknown": nobody knows it, at least of some metric. Then
        of these, metrics with bounds may have noise of any kind, and the others must have normal noise, of whatever
        scale.
    """

    regret_weight: float = 0.5
    model: str | None = None
    misfit: float | tuple[float, ...] = 0.0
    noise: str = "given"

    def __post_init__(self) -> None:
        super().__post_init__()
        weight = checks.number("regret_weight of Scout", self.regret_weight, least=0.0)
        if weight > 1.0:
            raise InvalidInput(f"regret_weight of Scout must be from 0 to 1, got {self.regret_weight!r}")
        if self.model not in (None, "tabular", "linear", "robust"):
            raise InvalidInput(f"model of Scout must be 'tabular', 'linear', 'robust' or None, got {self.model!r}")
        misfit = self._per_metric("misfit", self.misfit)
        if np.any(misfit) and self.model != "robust":
            raise InvalidInput(f"misfit of Scout must go with model='robust', got {self.misfit!r} with {self.model!r}")
        if not isinstance(self.noise, str) or self.noise not in ("given", "unknown"):
            raise InvalidInput(f"noise of Scout must be 'given' or 'unknown', got {self.noise!r}")
        if self.noise == "unknown" and self.sigma is not None:
            raise InvalidInput(f"sigma of Scout must be left out where its noise is 'unknown', got {self.sigma!r}")
        self._set(regret_weight=weight, misfit=misfit)

    @property
    def knows_noise(self) -> bool:
        """Whether it is told sigma."""
        return self.noise == "given"


def init(settings: Scout, setup: Setup) -> tuple[Any, Any]:
    """Start with the model that was asked for, or that the problem states."""
    unknown = np.full(setup.n_metrics, True) if setup.sigma is None else np.isnan(setup.sigma[0])
    if unknown.any() if settings.knows_noise else not unknown.any():
        told = "not told" if unknown.all() else "told of some metrics only" if unknown.any() else "told"
        raise InvalidInput(f"noise of Scout must fit what it is told: it is {settings.noise!r}, and sigma is {told}")
    model = settings.model or ("linear" if setup.explained else "tabular")
    if model == "tabular":
        return scout_tabular.init(settings.regret_weight, setup)
    if model == "linear":
        return scout_linear.init(settings.regret_weight, setup)
    misfit = checks.per_metric("misfit of Scout", settings.misfit, setup.n_metrics) / setup.scales
    return scout_robust.init(settings.regret_weight, setup, misfit)


ALGORITHM = Algorithm(
    name="scout",
    summary="measure the most ambiguous pair; decide by e-values; with linear contexts, by the model",
    paper="our own: docs/scout.md",
    guarantee="fixed confidence: every Pareto-optimal arm is returned and every returned arm is within eps of "
    "optimal, with probability at least 1 - delta, if the noise is sigma-sub-Gaussian (noise='unknown': normal, or of "
    "any kind where a metric has bounds) and, with model='linear' or 'robust', the means are linear in the contexts "
    "(robust: up to the misfit)",
    guarantees=True,
    setting="arms with or without contexts, linear or not",
    settings=Scout,
    init=init,
    kernels=(
        replace(scout_tabular.KERNELS, compared=scout_pairs.compared_tabular, nearest=scout_pairs.nearest_tabular),
        replace(scout_linear.KERNELS, compared=scout_pairs.compared_linear, nearest=scout_pairs.nearest_linear),
        replace(scout_robust.KERNELS, compared=scout_pairs.compared_robust, nearest=scout_pairs.nearest_robust),
    ),
)
