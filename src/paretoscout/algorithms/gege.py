"""GEGE: rounds of an optimal design, each judged by its own samples alone; accept and reject by empirical gaps.

C. Kone, E. Kaufmann, L. Richert: Pareto set identification with linear models (GEGE: G-optimal empirical gap
elimination), 2025; the authors' code is public. `gege_budget.py` is its fixed-budget version; both share this file.

Round r wants every mean of the arms still active to eps_r / 4, eps_r = 1 / (2 * 2^r) of `scale`. The samples follow the
optimal design on these arms and are fixed before any is seen; then, with h the dimension their contexts span, an arm
is off by eps_r / 4 with probability at most 2 exp(-T_r eps_r^2 / (32 sigma^2 h)) in each metric. So all are right but
with probability delta_r = 6 delta / (pi^2 r^2), if T_r = 32 sigma^2 h / eps_r^2 log(2 n_r L / delta_r) for n_r arms.

An arm off the empirical front is rejected if its gap is at least eps_r / 2: someone beats it. One on it is accepted if
its gap is at least eps_r: nobody beats it, and whoever it beats is rejected in the same round, so that no arm that
stays loses the arm that shows it to be dominated. The run ends when one arm is left, or when eps_r is at most eps: an
arm that is left then is beaten by less than eps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import checks
from ..errors import InvalidInput
from ..kernels.algebra import factorise, solve
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import DOMINATED, FRONT, UNDECIDED, margin, scaled_verdicts
from ..kernels.design_for_means import apportion, gram, optimal_design, span
from ..kernels.dispatch import NO_TICKET, Verdicts
from ..kernels.empirical_gaps import empirical_gaps
from .contract import Algorithm, Kernels, Settings, Setup
from .ranges import setting
from .registry import register

#: Where no scale is set: so many sigma. The first round then takes about a dozen samples per dimension.
SCALE_IN_SIGMA = 16.0
#: eps_r never goes below this part of the scale, and is a hair less than 1 / (2 * 2^r): rounding is not to decide.
LEAST_EPS = 1e-9
HAIR = 1e-9
#: No round plans more samples than this.
MOST_SAMPLES = 2.0**52


@dataclass(frozen=True)
class LinearRounds(Settings):
    """What both versions of GEGE can be told.

    model: "linear": means are linear in the contexts, and what is promised rests on that; "tabular": arms on their own,
        as if every arm had its own unit vector; None: linear if the problem was stated as linear, else tabular.
    """

    model: str | None = setting(None, choices=("linear", "tabular"))


@dataclass(frozen=True)
class GEGE(LinearRounds):
    """Settings of GEGE.

    constants: "sound": those of the proof; "published": T_r = sigma^2 h log(1 / delta_r) / eps_r^2, with which the
        authors' code was run. It takes about a fiftieth of the samples and promises nothing.
    scale: the largest difference between two arms that is to be expected, in the metrics' own units, one number or one
        per metric. A wrong one costs samples, not correctness. None: 16 sigma; with the published constants 1.
    """

    constants: str = setting("sound", choices=("sound", "published"))
    scale: float | tuple[float, ...] | None = setting(None, above=0.0, one_per="metric")

    @property
    def sound(self) -> bool:
        """Whether the guarantee holds with these settings."""
        return self.constants == "sound"


class GEGEConstants(NamedTuple):
    contexts: FloatArray  # (K, d) whitened; (K, 0): arms on their own
    units: FloatArray  # (L,) values are measured in these
    eps: float  # the least of all metrics, in these units
    noise: float  # largest sigma, in these units
    delta: float
    proven: bool  # whether estimates are as accurate as planned, with the probability planned
    rounds: int  # with a budget: how many rounds there are; 0: as many as it takes
    per_round: int  # with a budget: samples of a round
    dimension: int  # that all contexts span
    no_ticket: FloatArray = NO_TICKET


class GEGEState(NamedTuple):
    pulls: IntArray  # (K,) samples of each arm
    active: IntArray  # (K,) arms without a verdict, ascending; the first counters[N_ACTIVE] entries
    status: IntArray  # (K,)
    beaten_by: IntArray  # (K,)
    weights: FloatArray  # (K,) the design of this round
    quota: IntArray  # (K,) samples of each arm in this round
    due: IntArray  # (K,) those still to be taken
    sums: FloatArray  # (K, L) of the outcomes of this round
    values: FloatArray  # (K, L) estimates of the last round that the arm took part in
    radii: FloatArray  # (K, L) how far they may be off
    gaps: FloatArray  # (K,)
    front: BoolArray  # (K,) whether the estimates of the last round put the arm on the front
    counters: IntArray  # (5,) see below
    points: FloatArray  # (K, d) contexts in a basis of the span of the active arms
    pivots: IntArray  # (d,) arms that span it
    leverages: FloatArray  # (K,) working space, from here on
    left: FloatArray  # (K, d)
    factor: FloatArray  # (d, d)
    reach: IntArray  # (d,) all d - 1
    inverse: FloatArray  # (d, d)
    direction: FloatArray  # (d,)
    theta: FloatArray  # (d, L)


ROUND = 0  # the round that is running, from 1
N_ACTIVE = 1  # active arms
N_DUE = 2  # samples that the round still lacks
CURSOR = 3  # position among the active arms of the first that lacks some
SPANNED = 4  # dimension that their contexts span


def init(settings: GEGE, setup: Setup) -> tuple[GEGEState, GEGEConstants]:
    """Fix units and scale before the data and plan the first round."""
    sigma = setup.known_sigma("gege")
    if settings.scale is not None:
        units = checks.per_metric("scale of GEGE", settings.scale, setup.n_metrics) / setup.divisors
    elif not settings.sound:
        units = 1.0 / setup.divisors
    else:
        units = np.where(sigma > 0.0, SCALE_IN_SIGMA * sigma, 1.0)
    return start(settings, setup, units, sigma, settings.sound, rounds=0, budget=0)


def start(
    settings: LinearRounds,
    setup: Setup,
    units: FloatArray,
    sigma: FloatArray,
    proven: bool,
    rounds: int | None,
    budget: int,
) -> tuple[GEGEState, GEGEConstants]:
    """Return the first state, for both versions; `rounds` None: as many as halving the dimension takes."""
    K, L = setup.n_arms, setup.n_metrics
    name = type(settings).__name__
    contexts = np.zeros((K, 0))
    model = settings.model or ("linear" if setup.explained else "tabular")
    if model == "linear":
        if setup.contexts is None:
            raise InvalidInput(f"contexts must be given for model='linear' of {name}, got none")
        U, s, _ = np.linalg.svd(setup.contexts, full_matrices=False)
        rank = int(np.count_nonzero(s > s.max(initial=0.0) * max(setup.contexts.shape) * np.finfo(float).eps))
        if rank == 0:
            raise InvalidInput(f"contexts must not all be zero for model='linear' of {name}")
        contexts = np.ascontiguousarray(U[:, :rank] * np.sqrt(K))
    d = contexts.shape[1]
    dimension = d or K
    if rounds is None:
        rounds = max(1, math.ceil(math.log2(dimension)))
        if budget < rounds * dimension and K > 1:
            raise InvalidInput(
                f"budget of {name} must be at least {rounds * dimension} here, {dimension} for each of {rounds} "
                f"rounds, got {budget}"
            )
    constants = GEGEConstants(
        contexts=contexts,
        units=units,
        eps=float((setup.eps / units).min()),
        noise=float((sigma / units).max()),
        delta=float(setup.delta),
        proven=proven,
        rounds=rounds,
        per_round=budget // max(1, rounds),
        dimension=dimension,
    )
    state = GEGEState(
        pulls=np.zeros(K, np.int64),
        active=np.arange(K, dtype=np.int64),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        weights=np.zeros(K),
        quota=np.zeros(K, np.int64),
        due=np.zeros(K, np.int64),
        sums=np.zeros((K, L)),
        values=np.zeros((K, L)),
        radii=np.full((K, L), np.inf),
        gaps=np.zeros(K),
        front=np.zeros(K, np.bool_),
        counters=np.array([0, K, 0, 0, 0], np.int64),
        points=np.zeros((K, d)),
        pivots=np.zeros(d, np.int64),
        leverages=np.zeros(K),
        left=np.zeros((K, d)),
        factor=np.zeros((d, d)),
        reach=np.full(d, d - 1, np.int64),
        inverse=np.zeros((d, d)),
        direction=np.zeros(d),
        theta=np.zeros((d, L)),
    )
    next_round(state, constants)
    return state, constants


@kernel
def accuracy(r: int) -> float:
    """eps_r."""
    return max(0.5**r / 2.0 * (1.0 - HAIR), LEAST_EPS)


@kernel
def n_samples(r: int, leverage: float, n_arms: int, n_metrics: int, constants: GEGEConstants) -> float:
    """T_r for a design with this largest leverage, h if it is optimal."""
    eps_r = accuracy(r)
    delta_r = 6.0 * constants.delta / (math.pi * math.pi * r * r)
    per_leverage = constants.noise * constants.noise / (eps_r * eps_r)
    if constants.proven:
        per_leverage *= 32.0 * math.log(2.0 * n_arms * n_metrics / delta_r)
    else:
        per_leverage *= math.log(1.0 / delta_r)
    return min(MOST_SAMPLES, math.ceil(per_leverage * leverage - 1e-9))


@kernel
def next_round(state: GEGEState, constants: GEGEConstants) -> None:
    """Settle a lone arm, or plan the samples of a round."""
    counters = state.counters
    arms = state.active[: counters[N_ACTIVE]]
    if arms.shape[0] <= 1:
        accept_all(state)
        return
    counters[ROUND] += 1
    leverage = design(state, constants, arms)
    if counters[SPANNED] == 0:  # all contexts are zero: so are the means, and no arm beats another
        accept_all(state)
        return
    if constants.rounds > 0:
        in_use = 0
        for k in arms:
            in_use += 1 if state.weights[k] > 0.0 else 0
        if in_use > constants.per_round:  # too few samples for all these arms: those that span the rest will do
            for k in arms:
                state.weights[k] = 0.0
            for i in range(counters[SPANNED]):
                state.weights[state.pivots[i]] = 1.0 / counters[SPANNED]
        apportion(arms, state.weights, constants.per_round, state.quota)
    else:
        total = n_samples(counters[ROUND], leverage, arms.shape[0], state.sums.shape[1], constants)
        for k in arms:
            share = state.weights[k]
            state.quota[k] = int(max(1.0, math.ceil(share * total - 1e-9))) if share > 0.0 else 0
    counters[N_DUE] = 0
    for k in arms:
        state.due[k] = state.quota[k]
        counters[N_DUE] += state.quota[k]
        for metric in range(state.sums.shape[1]):
            state.sums[k, metric] = 0.0
    counters[CURSOR] = 0
    find_due(state)


@kernel
def design(state: GEGEState, constants: GEGEConstants, arms: IntArray) -> float:
    """Write the optimal design on `arms` to the weights; return its largest leverage."""
    if constants.contexts.shape[1] == 0:
        for k in arms:
            state.weights[k] = 1.0 / arms.shape[0]
        state.counters[SPANNED] = arms.shape[0]
        return float(arms.shape[0])
    h = span(arms, constants.contexts, state.left, state.direction, state.points, state.pivots)
    state.counters[SPANNED] = h
    if h == 0:
        return 0.0
    return optimal_design(
        arms,
        state.points,
        state.pivots,
        h,
        state.weights,
        state.leverages,
        state.factor,
        state.reach,
        state.inverse,
        state.direction,
    )


@kernel
def find_due(state: GEGEState) -> None:
    """Move the cursor on to an arm that lacks samples."""
    counters = state.counters
    while counters[CURSOR] < counters[N_ACTIVE] and state.due[state.active[counters[CURSOR]]] == 0:
        counters[CURSOR] += 1


@kernel
def accept_all(state: GEGEState) -> None:
    """Accept the arms that are left."""
    for k in state.active[: state.counters[N_ACTIVE]]:
        state.status[k] = FRONT
    state.counters[N_ACTIVE] = 0


@kernel
def choose(
    state: GEGEState, constants: GEGEConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Return the first arm that lacks samples of this round; -1: none does, in a state that somebody made up."""
    cursor = state.counters[CURSOR]
    return state.active[cursor] if cursor < state.counters[N_ACTIVE] else -1, constants.no_ticket


@kernel
def update(
    state: GEGEState, constants: GEGEConstants, arm: int, ticket: FloatArray, outcome: FloatArray, observed: BoolArray
) -> None:
    """Add the sample; when it completes a round, judge and plan the next."""
    state.pulls[arm] += 1
    state.due[arm] -= 1
    for metric in range(outcome.shape[0]):
        state.sums[arm, metric] += outcome[metric] / constants.units[metric]
    state.counters[N_DUE] -= 1
    if state.counters[N_DUE] > 0:
        find_due(state)
        return
    arms = state.active[: state.counters[N_ACTIVE]]
    estimate(state, constants, arms)
    empirical_gaps(arms, state.values, state.gaps, state.front)
    if constants.rounds > 0:
        keep_smallest(state, constants)
    else:
        eliminate(state, constants)
    next_round(state, constants)


@kernel
def estimate(state: GEGEState, constants: GEGEConstants, arms: IntArray) -> None:
    """Estimate the means of `arms` by least squares, from the samples of this round alone."""
    L = state.sums.shape[1]
    if constants.contexts.shape[1] == 0:
        for k in arms:
            for metric in range(L):
                state.values[k, metric] = state.sums[k, metric] / state.quota[k]
        return
    d, h = state.points.shape[1], state.counters[SPANNED]
    for k in arms:
        state.weights[k] = float(state.quota[k])
    gram(arms, state.points, state.weights, h, state.factor)
    factorise(state.factor, state.reach)
    for i in range(d):
        for metric in range(L):
            state.theta[i, metric] = 0.0
    for k in arms:
        if state.quota[k] > 0:
            for i in range(h):
                for metric in range(L):
                    state.theta[i, metric] += state.points[k, i] * state.sums[k, metric]
    solve(state.factor, state.reach, state.theta)
    for k in arms:
        for metric in range(L):
            total = 0.0
            for i in range(h):
                total += state.points[k, i] * state.theta[i, metric]
            state.values[k, metric] = total


@kernel
def eliminate(state: GEGEState, constants: GEGEConstants) -> None:
    """Fixed confidence: decide arms with large gaps; all of them, once eps is resolved."""
    eps_r = accuracy(state.counters[ROUND])
    arms = state.active[: state.counters[N_ACTIVE]]
    for k in arms:
        for metric in range(state.radii.shape[1]):
            state.radii[k, metric] = 0.25 * eps_r
    for k in arms:
        if state.front[k] and state.gaps[k] >= eps_r:
            state.status[k] = FRONT
        elif not state.front[k] and state.gaps[k] >= 0.5 * eps_r:
            reject(state, k)
    forget_decided(state)
    if (
        eps_r <= constants.eps
    ):  # whoever is left is beaten by less than eps_r / 2 by the estimates, so by less than eps_r
        accept_all(state)


@kernel
def keep_smallest(state: GEGEState, constants: GEGEConstants) -> None:
    """Fixed budget: keep the d / 2^r arms with the smallest gaps.

    Of equal gaps those off the front go first, then those with a larger number.
    """
    keep = math.ceil(constants.dimension * 0.5 ** state.counters[ROUND] - 1e-9)
    for _ in range(state.counters[N_ACTIVE] - keep):
        worst = -1
        for k in state.active[: state.counters[N_ACTIVE]]:
            if state.status[k] != UNDECIDED:
                continue
            tie = worst >= 0 and state.gaps[k] == state.gaps[worst]
            if worst < 0 or state.gaps[k] > state.gaps[worst] or (tie and (state.front[worst] or not state.front[k])):
                worst = k
        if state.front[worst]:
            state.status[worst] = FRONT
        else:
            reject(state, worst)
    forget_decided(state)


@kernel
def reject(state: GEGEState, k: int) -> None:
    """Call an arm dominated, by the active arm that beats it most."""
    best = -np.inf
    for j in state.active[: state.counters[N_ACTIVE]]:
        if j != k:
            lead = margin(j, k, state.values)
            if lead > best:
                state.beaten_by[k], best = j, lead
    state.status[k] = DOMINATED


@kernel
def forget_decided(state: GEGEState) -> None:
    """Keep only undecided arms active."""
    n = 0
    for k in state.active[: state.counters[N_ACTIVE]]:
        if state.status[k] == UNDECIDED:
            state.active[n] = k
            n += 1
    state.counters[N_ACTIVE] = n


@allocating_kernel
def verdicts(state: GEGEState, constants: GEGEConstants) -> Verdicts:
    """Estimates as of the last round that an arm took part in."""
    K, L = state.sums.shape
    values = np.empty((K, L))
    radii = np.empty((K, L))
    for k in range(K):
        for metric in range(L):
            values[k, metric] = state.values[k, metric] * constants.units[metric]
            radii[k, metric] = state.radii[k, metric] * constants.units[metric] if constants.proven else np.inf
    return scaled_verdicts(state.status, state.beaten_by, state.values, state.radii, values, radii, state.pulls)


@kernel
def done(state: GEGEState, constants: GEGEConstants) -> bool:
    """Whether no arm is active."""
    return state.counters[N_ACTIVE] == 0


ALGORITHM = Algorithm(
    name="gege",
    summary="rounds of an optimal design; drop and accept by empirical gaps",
    paper="Kone, Kaufmann, Richert: Pareto set identification with linear models (GEGE), 2025",
    guarantee="fixed confidence: every Pareto-optimal arm is returned and every returned arm is within eps of "
    "optimal, with probability at least 1 - delta, if the noise is sigma-sub-Gaussian and, with model='linear', the "
    "means are linear in the contexts; not with constants='published'",
    guarantees=True,
    setting="linear contexts, or arms without",
    settings=GEGE,
    init=init,
    kernels=(
        Kernels(
            state=GEGEState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            ranges={"active": "undecided arms", "counters": ("count", "undecided", "count", "place", "arms")},
            takes_linear=True,
        ),
    ),
)

register(ALGORITHM)
