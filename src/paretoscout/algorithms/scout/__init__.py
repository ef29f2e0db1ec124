"""Scout: measure the most ambiguous pair, decide by e-values that hold at all times and under any sampling rule.

Our own algorithm. `docs/scout.md` says how it works, proves its guarantee, and shows what was tried. There are four
kinds of state: `tabular.py` judges each arm by its own samples, and may be guided by contexts (`guide.py`); `linear.py`
uses contexts that explain the means, and `tested.py` tests that they do; `robust.py` is for contexts that explain only
part; `blocks.py` compares arms that are measured on the same blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import checks
from ...errors import InvalidInput
from ..contract import Algorithm, Settings, Setup, WhileHeld
from ..ranges import setting
from ..registry import register
from . import ahead, blocks, pairs, robust, tabular, tested


@dataclass(frozen=True)
class Scout(Settings):
    """Settings of scout.

    regret_weight: 0 asks for the fewest samples, 1 for the least regret (samples of bad arms, weighted by how bad).
    model: what is made of the contexts. "tabular": nothing, they are ignored. "guide": nothing is assumed of them; they
        say where evidence is likely to be needed, verdicts rest on measurements alone. "linear": the means are exactly
        linear in the contexts, and the guarantee rests on that. "robust": they are linear up to a misfit, and each
        verdict says whether it was measured or rests on the model. None: "linear" if the means are stated to be linear,
        "guide" if there are contexts and nothing is stated, else "tabular".
    misfit: with model="robust", by how much the mean of an arm may differ from the model: one number or one per metric,
        in the metrics' own units (for a metric in percent, those of its logarithm). 0 trusts the contexts until a test
        of them objects.
    noise: "given": sigma is that of the problem, or `sigma`. "unknown": nobody knows sigma, at least of some metric.
        Such a metric may have noise of any kind if it has bounds; otherwise its noise must be normal, of any scale.
    caution: where options are compared by differences, on the same blocks or by the numbers of their samples: the
        larger, the more of them it takes to be sure. About 22 where it is 16, about 40 where it is 64, even where all
        differences are the same. More is safer where few blocks carry the difference, or noise is skewed. None: 64 on
        blocks; 16 in rounds and where noise is unknown (there, what is plain is seen without pairs).
    """

    regret_weight: float = setting(0.5, least=0.0, most=1.0)
    model: str | None = setting(None, choices=("tabular", "guide", "linear", "robust"))
    misfit: float | tuple[float, ...] = setting(0.0, one_per="metric")
    noise: str = setting("given", choices=("given", "unknown"))
    caution: float | None = setting(None, least=1.0, most=1024.0)

    def __post_init__(self) -> None:
        misfit = self.misfit
        super().__post_init__()
        if np.any(self.misfit) and self.model != "robust":
            raise InvalidInput(f"misfit of Scout must go with model='robust', got {misfit!r} with {self.model!r}")
        if self.noise == "unknown" and self.sigma is not None:
            raise InvalidInput(f"sigma of Scout must be left out where its noise is 'unknown', got {self.sigma!r}")

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
    if setup.n_blocks is not None:
        return blocks.init(setup, settings.caution)
    model = settings.model or ("linear" if setup.explained else "tabular" if setup.contexts is None else "guide")
    if model == "guide" and setup.contexts is None:
        raise InvalidInput("contexts of algorithm 'scout' must be given for model='guide', got none")
    by_number = model in ("tabular", "guide") and not settings.knows_noise
    if settings.caution is not None and not by_number:
        raise InvalidInput(
            f"caution of Scout must be left out where options are not compared by differences, got {settings.caution:g}"
        )
    if model in ("tabular", "guide"):
        return tabular.init(settings.regret_weight, setup, guided=model == "guide", caution=settings.caution)
    if model == "linear":
        return tested.init(settings.regret_weight, setup)
    misfit = checks.per_metric("misfit of Scout", settings.misfit, setup.n_metrics) / setup.divisors
    return robust.init(settings.regret_weight, setup, misfit)


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
        replace(
            tabular.KERNELS,
            compared=pairs.compared_tabular,
            nearest=pairs.nearest_tabular,
            while_held=WhileHeld(ahead.judge_ahead, ahead.verdicts_ahead, ahead.pair_ahead),
        ),
        replace(tested.KERNELS, compared=pairs.compared_tested, nearest=pairs.nearest_tested),
        blocks.KERNELS,
        replace(robust.KERNELS, compared=pairs.compared_robust, nearest=pairs.nearest_robust),
    ),
)

register(ALGORITHM)
