"""MOGLB-UCB: optimism for generalised linear rewards; draw from the Pareto front of the upper confidence bounds.

S. Lu, G. Wang, Y. Hu, L. Zhang: Multi-objective generalized linear bandits, IJCAI 2019. The mean of each metric is a
known increasing function of something linear in the contexts; its parameters are followed by an online Newton step, so
that a sample costs the same however many there were.

The radius. gamma_t as printed has 16 (R + U)^2 / kappa in front of its logarithm, where R bounds the outcomes, U the
means and kappa the slope of the function. 4 is enough: with a_s = x_s^T (theta_s - theta), strong monotonicity and the
Newton step give, for noise eta_s and gradients g_s,

    ||theta_t+1 - theta||^2_Z <= lambda D^2 + sum ||g_s||^2_{Z^-1} + 2 sum eta_s a_s - (3 kappa / 2) sum a_s^2;

the second term is at most (2 (R + U)^2 / kappa) log det ratio, and the martingale is bounded by the self-normalised
inequality for one dimension and 2 sqrt(x y) <= (kappa / 2) x + (2 / kappa) y. Outcomes without bounds exceed
R = U + sigma sqrt(2 log(4 L T / delta)) within T samples with probability at most delta / 2 only; the other half of
delta is left for the martingale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import checks
from ..errors import InvalidInput
from ..kernels.algebra import add_outer_product, factorise, solve
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import undominated_estimates, verdicts_by_estimates
from ..kernels.dispatch import NO_TICKET, Verdicts
from ..kernels.draws import draw_index
from .contract import Algorithm, Kernels, Settings, Setup
from .ranges import setting
from .registry import register

#: The factor in front of the logarithm of gamma: what the proof needs, and what is printed.
FACTORS = {"sound": 4.0, "published": 16.0}
#: A projection ends once the norm is this close to its limit, relatively.
CLOSE = 1e-12


@dataclass(frozen=True)
class MoglbUCB(Settings):
    """Settings of MOGLB-UCB.

    radius: "sound": the factor 4 that the proof needs; "published": 16, as printed.
    theta_max: bound D on the norm of the parameters (of the argument of the logistic function, or in scaled units);
        None: the true one, where it is known.
    reward_bound: R, which no outcome exceeds in size, in the metrics' own units, one number or one per metric; None:
        from the bounds of the metrics, else from sigma and the budget. With the logistic link it is 1.
    regularisation: lambda, at least 1.
    width_scale: factor on the radius. The radius is wide; below 1 the bound on the regret is void.
    """

    radius: str = setting("sound", choices=tuple(FACTORS))
    theta_max: float | None = setting(None, least=0.0)
    reward_bound: float | tuple[float, ...] | None = setting(None, one_per="metric")
    regularisation: float = setting(1.0, least=1.0)
    width_scale: float = setting(1.0, above=0.0)


class MoglbUCBConstants(NamedTuple):
    arms: IntArray  # (K,) all of them
    contexts: FloatArray  # (K, d) none longer than 1
    support: IntArray  # (K, 2) first and last non-zero coordinate of each context
    logistic: bool  # the link, else it is the identity
    offset: FloatArray  # (L,) what is taken off an outcome, then
    unit: FloatArray  # (L,) what it is divided by: with the logistic link it is 0 or 1 after that
    theta_max: float  # D
    kappa: float  # the least slope of the link
    first: float  # lambda D^2 + kappa / 2, the part of gamma that stays
    log_factor: FloatArray  # (L,) 4 (R + U)^2 / kappa
    det_factor: FloatArray  # (L,) 2 (R + U)^2 / kappa
    level: float  # L / delta
    width_scale: float
    budget: int
    no_ticket: FloatArray = NO_TICKET


class MoglbUCBState(NamedTuple):
    gram: FloatArray  # (d, d) Z, upper triangle
    factor: FloatArray  # (d, d) its factor
    reach: IntArray  # (d,)
    log_det: FloatArray  # (1,) log(det Z / det Z_1)
    leverages: FloatArray  # (K,) x^T Z^-1 x
    theta: FloatArray  # (d, L)
    counts: IntArray  # (K,) samples of each arm
    samples: IntArray  # (1,) in all
    bounds: FloatArray  # (K, L) working space of a choice
    scratch: IntArray  # (K,) likewise
    x: FloatArray  # (d,) working space of an update
    solved: FloatArray  # (d, 1) likewise
    shifted: FloatArray  # (d, d) working space of a projection
    shifted_reach: IntArray  # (d,) likewise
    target: FloatArray  # (d,) likewise
    column: FloatArray  # (d, 1) likewise


def init(settings: MoglbUCB, setup: Setup) -> tuple[MoglbUCBState, MoglbUCBConstants]:
    """Start with theta = 0; contexts (unit vectors if there are none) are shrunk to length 1 at most."""
    K, L = setup.n_arms, setup.n_metrics
    raw = np.eye(K) if setup.contexts is None else setup.contexts
    longest = float(np.linalg.norm(raw, axis=1).max()) or 1.0
    contexts = np.ascontiguousarray(raw / longest)
    d = contexts.shape[1]
    theta_max = setup.theta_max if settings.theta_max is None else settings.theta_max
    if theta_max is None:
        raise InvalidInput(
            "theta_max of MoglbUCB must be given where the true parameters are not known: a bound on their norm"
        )
    D = float(theta_max) * longest
    logistic = setup.link == "logistic"
    offset, unit, kappa, level = np.zeros(L), np.ones(L), 1.0, L / setup.delta
    if logistic:
        if setup.bounds is None or not np.isfinite(setup.bounds).all():
            raise InvalidInput("bounds of a setup with the logistic link must be given for algorithm 'moglb-ucb'")
        offset, unit = setup.bounds[:, 0].copy(), setup.bounds[:, 1] - setup.bounds[:, 0]
        kappa = math.exp(-D) / (1.0 + math.exp(-D)) ** 2
        reach = np.full(L, 2.0)  # R + U: both are 1
    elif settings.reward_bound is not None:
        reach = D + checks.per_metric("reward_bound of MoglbUCB", settings.reward_bound, L) / setup.divisors
    elif setup.bounds is not None and np.isfinite(setup.bounds).all():
        reach = D + np.abs(setup.bounds).max(axis=1)
    else:
        longest_run = 4.0 * L * (setup.budget or 1) / setup.delta
        reach = 2.0 * D + setup.known_sigma("moglb-ucb") * math.sqrt(2.0 * math.log(longest_run))
        level *= 2.0
    nonzero = contexts != 0.0
    last = d - 1 - nonzero[:, ::-1].argmax(axis=1)
    support = np.column_stack([nonzero.argmax(axis=1), np.where(nonzero.any(axis=1), last, -1)])
    constants = MoglbUCBConstants(
        arms=np.arange(K, dtype=np.int64),
        contexts=contexts,
        support=np.ascontiguousarray(support, np.int64),
        logistic=logistic,
        offset=offset,
        unit=unit,
        theta_max=D,
        kappa=kappa,
        first=settings.regularisation * D * D + 0.5 * kappa,
        log_factor=FACTORS[settings.radius] * reach * reach / kappa,
        det_factor=2.0 * reach * reach / kappa,
        level=float(level),
        width_scale=float(settings.width_scale),
        budget=int(setup.budget or 0),
    )
    state = MoglbUCBState(
        gram=settings.regularisation * np.eye(d),
        factor=settings.regularisation * np.eye(d),
        reach=np.arange(d, dtype=np.int64),
        log_det=np.zeros(1),
        leverages=(contexts * contexts).sum(axis=1) / settings.regularisation,
        theta=np.zeros((d, L)),
        counts=np.zeros(K, np.int64),
        samples=np.zeros(1, np.int64),
        bounds=np.zeros((K, L)),
        scratch=np.zeros(K, np.int64),
        x=np.zeros(d),
        solved=np.zeros((d, 1)),
        shifted=np.zeros((d, d)),
        shifted_reach=np.zeros(d, np.int64),
        target=np.zeros(d),
        column=np.zeros((d, 1)),
    )
    return state, constants


@kernel
def link(z: float, logistic: bool) -> float:
    """The mean that belongs to a linear predictor."""
    return 0.5 + 0.5 * math.tanh(0.5 * z) if logistic else z


@kernel
def gamma(state: MoglbUCBState, constants: MoglbUCBConstants, metric: int) -> float:
    """Squared radius around theta, in the norm of Z."""
    spread = 1.0 + 4.0 * constants.theta_max * constants.theta_max * state.samples[0]
    logarithm = math.log(constants.level) + 0.5 * math.log(spread)
    return constants.first + constants.log_factor[metric] * logarithm + constants.det_factor[metric] * state.log_det[0]


@kernel
def predictor(state: MoglbUCBState, constants: MoglbUCBConstants, k: int, metric: int) -> float:
    """x^T theta."""
    total = 0.0
    for i in range(constants.support[k, 0], constants.support[k, 1] + 1):
        total += constants.contexts[k, i] * state.theta[i, metric]
    return total


@kernel
def choose(
    state: MoglbUCBState, constants: MoglbUCBConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Draw an arm from the Pareto front of the upper bounds on the linear predictors: the link keeps their order."""
    K, L = state.bounds.shape
    for metric in range(L):
        radius = constants.width_scale * math.sqrt(gamma(state, constants, metric))
        for k in range(K):
            state.bounds[k, metric] = predictor(state, constants, k, metric) + radius * math.sqrt(state.leverages[k])
    n = undominated_estimates(constants.arms, state.bounds, state.scratch)
    return state.scratch[draw_index(n, rng)], constants.no_ticket


@kernel
def update(
    state: MoglbUCBState,
    constants: MoglbUCBConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Z grows by kappa / 2 x x^T; then an online Newton step for each metric."""
    d, L = state.theta.shape
    first, last = constants.support[arm, 0], constants.support[arm, 1]
    state.counts[arm] += 1
    state.samples[0] += 1
    share = 0.5 * constants.kappa
    growth = 1.0 + share * state.leverages[arm]
    state.log_det[0] += math.log(growth)
    for i in range(d):
        inside = first <= i <= last
        state.x[i] = math.sqrt(share) * constants.contexts[arm, i] if inside else 0.0
        state.solved[i, 0] = constants.contexts[arm, i] if inside else 0.0
    for i in range(first, last + 1):
        for j in range(i, last + 1):
            state.gram[i, j] += share * constants.contexts[arm, i] * constants.contexts[arm, j]
    add_outer_product(state.factor, state.reach, state.x)
    solve(state.factor, state.reach, state.solved)
    for k in range(constants.support.shape[0]):
        product = 0.0
        for i in range(constants.support[k, 0], constants.support[k, 1] + 1):
            product += constants.contexts[k, i] * state.solved[i, 0]
        # `solved` is of the new Z, hence times `growth` where the rank-one formula has it of the old one
        state.leverages[k] = max(state.leverages[k] - share * growth * product * product, 0.0)
    for metric in range(L):
        reward = (outcome[metric] - constants.offset[metric]) / constants.unit[metric]
        slope = link(predictor(state, constants, arm, metric), constants.logistic) - reward
        for i in range(d):
            state.theta[i, metric] -= slope * state.solved[i, 0]
        project(state, constants, metric)


@kernel
def project(state: MoglbUCBState, constants: MoglbUCBConstants, metric: int) -> None:
    """Move theta, if it is longer than D, to the nearest one of length D in the norm of Z: (Z + xi I)^-1 Z theta.

    xi is found by Newton's method on 1 / length, which comes from below and converges in a few steps.
    """
    d, D = state.theta.shape[0], constants.theta_max
    squares = 0.0
    for i in range(d):
        squares += state.theta[i, metric] * state.theta[i, metric]
    if squares <= D * D:
        return
    if D == 0.0:
        for i in range(d):
            state.theta[i, metric] = 0.0
        return
    for i in range(d):
        state.target[i] = 0.0
    for i in range(d):
        state.target[i] += state.gram[i, i] * state.theta[i, metric]
        for j in range(i + 1, state.reach[i] + 1):
            state.target[i] += state.gram[i, j] * state.theta[j, metric]
            state.target[j] += state.gram[i, j] * state.theta[i, metric]
    xi = 0.0
    for _ in range(100):
        for i in range(d):
            state.shifted_reach[i] = state.reach[i]
            state.shifted[i, i] = state.gram[i, i] + xi
            for j in range(i + 1, state.reach[i] + 1):
                state.shifted[i, j] = state.gram[i, j]
            state.column[i, 0] = state.target[i]
        factorise(state.shifted, state.shifted_reach)
        solve(state.shifted, state.shifted_reach, state.column)
        squares = 0.0
        for i in range(d):
            state.theta[i, metric] = state.column[i, 0]
            squares += state.column[i, 0] * state.column[i, 0]
        excess = math.sqrt(squares) - D
        if excess <= CLOSE * D:
            break
        solve(state.shifted, state.shifted_reach, state.column)
        slope = 0.0
        for i in range(d):
            slope += state.theta[i, metric] * state.column[i, 0]
        xi += squares / slope * excess / D
    # what is left is rounding
    for i in range(d):
        state.theta[i, metric] *= D / math.sqrt(squares)


@allocating_kernel
def verdicts(state: MoglbUCBState, constants: MoglbUCBConstants) -> Verdicts:
    """At the horizon: the front of the estimated means."""
    K, L = state.bounds.shape
    estimates = np.empty((K, L))
    for k in range(K):
        for metric in range(L):
            mean = link(predictor(state, constants, k, metric), constants.logistic)
            estimates[k, metric] = constants.offset[metric] + constants.unit[metric] * mean
    return verdicts_by_estimates(estimates, state.counts, done(state, constants))


@kernel
def done(state: MoglbUCBState, constants: MoglbUCBConstants) -> bool:
    """Whether the horizon is reached."""
    return state.samples[0] >= constants.budget


ALGORITHM = Algorithm(
    name="moglb-ucb",
    summary="draw from the Pareto front of upper bounds, linear or logistic in the contexts; for low regret",
    paper="Lu, Wang, Hu, Zhang: Multi-objective generalized linear bandits, 2019",
    guarantee="none for the front; with probability at least 1 - delta the Pareto regret grows like d times the root "
    "of the horizon, up to logarithms, if the means are linear in the contexts, or logistic",
    guarantees=False,
    settings=MoglbUCB,
    init=init,
    kernels=(
        Kernels(
            state=MoglbUCBState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            assumes="means linear in the contexts, or as the link says",
        ),
    ),
    kind="regret only",
    setting="linear or logistic contexts",
    links=("identity", "logistic"),
)

register(ALGORITHM)
