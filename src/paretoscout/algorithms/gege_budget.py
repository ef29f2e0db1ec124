"""GEGE with a fixed budget: equal rounds of an optimal design, each keeps half as many arms as the one before.

C. Kone, E. Kaufmann, L. Richert: Pareto set identification with linear models, 2025. With contexts of dimension d there
are log2 d rounds (rounded up); round r ends with the d / 2^r arms of the smallest gaps. The machinery is that of
`gege.py`; samples are rounded so that the budget is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from . import gege
from .contract import Setup
from .registry import register


@dataclass(frozen=True)
class GEGEBudget(gege.LinearRounds):
    """Settings of GEGE with a fixed budget: `model`, see `GEGE`; metrics are compared in units of their `sigma`."""


def init(settings: GEGEBudget, setup: Setup) -> tuple[gege.GEGEState, gege.GEGEConstants]:
    """Share the budget among the rounds."""
    sigma = setup.known_sigma("gege-budget")
    units = np.where(sigma > 0.0, sigma, 1.0)
    assert setup.budget is not None  # it is not started without
    return gege.start(settings, setup, units, sigma, proven=False, rounds=None, budget=setup.budget)


ALGORITHM = replace(
    gege.ALGORITHM,
    name="gege-budget",
    summary="a budget in rounds of an optimal design; half the arms are settled in each",
    kind="fixed budget",
    guarantee="none: it returns what looks best when its budget is spent; the probability of an error falls "
    "exponentially with the budget",
    guarantees=False,
    settings=GEGEBudget,
    init=init,
)

register(ALGORITHM)
