"""KernelUCB: measure the arm whose upper confidence bound, by kernel ridge regression, is the highest.

M. Valko, N. Korda, R. Munos, I. Flaounas, N. Cristianini: Finite-time analysis of kernelised contextual bandits,
UAI 2013. With one metric this is the paper's rule. With several, all metrics share the regression's inverse, and an arm
is drawn at random from the Pareto front of the vectors of bounds.

The paper inverts a matrix that grows with every sample. On finitely many arms the posterior covariance of all of them
(`kernels/posterior.py`) gives the same numbers in O(K^2) a sample, however many there were. GP-UCB is the case where
the regularisation is the variance of the noise.

It plays for low regret up to a horizon and never proves anything of a front. The paper's bound on the regret is for a
variant in stages, SupKernelUCB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import checks
from ..errors import InvalidInput
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import undominated_estimates, verdicts_by_estimates
from ..kernels.dispatch import NO_TICKET, Verdicts
from ..kernels.draws import draw_index
from ..kernels.posterior import condition, shift_means
from . import priors
from .contract import Algorithm, Kernels, Settings, Setup
from .ranges import setting
from .registry import register


@dataclass(frozen=True)
class KernelUCB(Settings):
    """Settings of KernelUCB.

    kernel: how the means of arms go together: "independent", "linear" in the contexts, or one of scikit-learn's, "rbf",
        "matern52", "matern32", "matern12"; None: linear if the problem was stated as linear, else independent.
    length_scale: at what distance of contexts the means differ, for scikit-learn's kernels; one number or one per
        feature.
    regularisation: gamma of the ridge regression.
    exploration: eta, a constant in the metrics' own units, one number or one per metric: a bound is
        mean + eta / sqrt(gamma) * deviation. None: sigma sqrt(2 log(L / delta) + log det(I + K_t / gamma))
        + sqrt(gamma) norm, with which all bounds hold at all times.
    norm: bound on the norm of the means in the space of the kernel, in the metrics' own units, one number or one per
        metric, for that; None: the true one of a linear problem or of arms without contexts, else what bounds on the
        outcomes allow.
    """

    kernel: str | None = setting(None, choices=priors.KERNELS)
    length_scale: float | tuple[float, ...] = setting(1.0, above=0.0, one_per="feature")
    regularisation: float = setting(1.0, above=0.0)
    exploration: float | tuple[float, ...] | None = setting(None, one_per="metric")
    norm: float | tuple[float, ...] | None = setting(None, one_per="metric")


class KernelUCBConstants(NamedTuple):
    arms: IntArray  # (K,) all of them
    regularisation: float
    constant: FloatArray  # (L,) eta, or the part of it that does not change
    growing: FloatArray  # (L,) sigma, or 0 where eta is constant
    log_price: float  # 2 log(L / delta)
    budget: int
    no_ticket: FloatArray = NO_TICKET


class KernelUCBState(NamedTuple):
    covariance: FloatArray  # (K, K) posterior
    log_det: FloatArray  # (1,) log det(I + K_t / gamma)
    means: FloatArray  # (K, L) posterior
    counts: IntArray  # (K,) samples of each arm
    samples: IntArray  # (1,) in all
    bounds: FloatArray  # (K, L) working space of a choice
    gains: FloatArray  # (K,) working space of an update
    scratch: IntArray  # (K,) working space of a choice


def init(settings: KernelUCB, setup: Setup) -> tuple[KernelUCBState, KernelUCBConstants]:
    """Start without data: the first arm is the one of the largest prior variance."""
    K, L = setup.n_arms, setup.n_metrics
    name = priors.named(setup, settings.kernel)
    if settings.exploration is None:
        constant = math.sqrt(settings.regularisation) * _norm(settings, setup, name)
        growing = setup.known_sigma("kernel-ucb")
    else:
        constant = checks.per_metric("exploration of KernelUCB", settings.exploration, L) / setup.divisors
        growing = np.zeros(L)
    constants = KernelUCBConstants(
        arms=np.arange(K, dtype=np.int64),
        regularisation=float(settings.regularisation),
        constant=constant,
        growing=growing,
        log_price=2.0 * math.log(L / setup.delta),
        budget=int(setup.budget or 0),
    )
    state = KernelUCBState(
        covariance=priors.prior_covariance("kernel-ucb", setup, name, settings.length_scale),
        log_det=np.zeros(1),
        means=np.zeros((K, L)),
        counts=np.zeros(K, np.int64),
        samples=np.zeros(1, np.int64),
        bounds=np.zeros((K, L)),
        gains=np.zeros(K),
        scratch=np.zeros(K, np.int64),
    )
    return state, constants


def _norm(settings: KernelUCB, setup: Setup, kernel: str) -> FloatArray:
    """The bound on the norm of the means, in scaled units."""
    L = setup.n_metrics
    if settings.norm is not None:
        return checks.per_metric("norm of KernelUCB", settings.norm, L) / setup.divisors
    known = kernel == priors.LINEAR or (kernel == priors.INDEPENDENT and setup.contexts is None)
    if known and setup.theta_max is not None:
        return np.full(L, setup.theta_max)
    if kernel == priors.INDEPENDENT and setup.bounds is not None and np.isfinite(setup.bounds).all():
        largest: FloatArray = np.abs(setup.bounds).max(axis=1)
        return math.sqrt(setup.n_arms) * largest
    raise InvalidInput(
        f"norm of KernelUCB must be given with kernel {kernel!r} where it is not known, or else exploration: "
        f"a bound on the norm of the means in the space of the kernel"
    )


@kernel
def choose(
    state: KernelUCBState, constants: KernelUCBConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Return the first arm with the highest bound; with several metrics, one of the front of all bounds at random."""
    K, L = state.means.shape
    for metric in range(L):
        eta = constants.constant[metric] + constants.growing[metric] * math.sqrt(constants.log_price + state.log_det[0])
        factor = eta / math.sqrt(constants.regularisation)
        for k in range(K):
            state.bounds[k, metric] = state.means[k, metric] + factor * math.sqrt(state.covariance[k, k])
    n = undominated_estimates(constants.arms, state.bounds, state.scratch)
    return state.scratch[0 if L == 1 else draw_index(n, rng)], constants.no_ticket


@kernel
def update(
    state: KernelUCBState,
    constants: KernelUCBConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Take the outcome into the regression."""
    state.counts[arm] += 1
    state.samples[0] += 1
    state.log_det[0] += condition(state.covariance, arm, constants.regularisation, state.gains)
    for metric in range(outcome.shape[0]):
        shift_means(state.means, metric, state.gains, outcome[metric] - state.means[arm, metric])


@allocating_kernel
def verdicts(state: KernelUCBState, constants: KernelUCBConstants) -> Verdicts:
    """At the horizon: the front of the posterior means."""
    return verdicts_by_estimates(state.means, state.counts, done(state, constants))


@kernel
def done(state: KernelUCBState, constants: KernelUCBConstants) -> bool:
    """Whether the horizon is reached."""
    return state.samples[0] >= constants.budget


ALGORITHM = Algorithm(
    name="kernel-ucb",
    summary="measure the arm with the highest upper bound by kernel regression; for low regret",
    paper="Valko, Korda, Munos, Flaounas, Cristianini: Finite-time analysis of kernelised contextual bandits, 2013",
    guarantee="none for the front; for a variant in stages and one metric, regret of the order of the root of the "
    "horizon and of the effective dimension, with probability at least 1 - delta",
    guarantees=False,
    settings=KernelUCB,
    init=init,
    kernels=(
        Kernels(
            state=KernelUCBState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            assumes="means smooth in the contexts, as its kernel says",
        ),
    ),
    kind="regret only",
    setting="arms with features, a kernel",
)

register(ALGORITHM)
