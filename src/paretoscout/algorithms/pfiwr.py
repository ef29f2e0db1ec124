"""PFIwR: Pareto front identification with regret minimisation, exactly as the paper prints it.

W. Kim, G. Iyengar, A. Zeevi: Learning the Pareto front using bootstrapped observation samples. The estimators
(its equations linear_basis to estimator) are in `kernels/dr_mix.py`; here are the sampling rule, the widths
(eq. confidence_bound) and the elimination (eq. gap_estimate).

As printed it does not keep its promise: the widths shrink as if every round informed every arm, and arms are
accepted with 2 eps. It is here for research.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import (
    DOMINATED,
    FRONT,
    UNDECIDED,
    dominator,
    strongest,
    surely_escapes,
    undominated_estimates,
    verdicts_with_rivals,
)
from ..kernels.dispatch import Verdicts
from ..kernels.dr_mix import (
    DRAWN_ARM,
    EXPLORES,
    ROUND,
    STALE,
    WEIGHT,
    WEIGHT_CHECK,
    add_round,
    context_constants,
    draw_from_basis,
    draw_weights,
    empty_sums,
    estimate_arms,
    estimator,
    exploration_set,
    rank,
    tilde_distribution,
)
from ..kernels.dr_mix import MATCHES as MATCHES
from ..kernels.dr_mix import linear_basis as linear_basis
from ..kernels.dr_mix import reserve as reserve
from ..kernels.draws import draw_index
from .contract import Algorithm, Kernels, Settings, Setup
from .ranges import setting
from .registry import register

#: C = 6 * 75^2 of the appendix.
PRINTED_EXPLORATION = 33750.0


@dataclass(frozen=True)
class PFIwR(Settings):
    """Settings of PFIwR. The defaults are the paper's.

    exploration: C in gamma_t = C d^3 log(2 d t^2 / delta), the rate of exploration rounds. With the printed
        33750 every round explores for the first millions of rounds.
    theta_max: bound on the norm of the parameters (in scaled units); None: the true one, where it is known.
    width_scale: factor on the widths; below 1 it is a heuristic.
    imputation: "latest": all past rounds are imputed with the newest estimate (as in the proof), or "frozen":
        each round keeps the imputation it had.
    check_every: rounds between two elimination tests. More than 1 saves time; it does not change which
        verdicts are possible, only when they are noticed.
    """

    exploration: float = setting(PRINTED_EXPLORATION, above=0.0)
    theta_max: float | None = setting(None, least=0.0)
    width_scale: float = setting(1.0, above=0.0)
    imputation: str = setting("latest", choices=("latest", "frozen"))
    check_every: int = setting(1, least=1, whole=True)


class PFIwRConstants(NamedTuple):
    contexts: FloatArray  # (K, d) contexts in the coordinates of u_1, ..., u_d
    support: IntArray  # (K, 2) first and last non-zero coordinate of each context
    reach: IntArray  # (d,) last coordinate that shares a context with each coordinate
    lambdas: FloatArray  # (d,) squared singular values of X
    signed_norms: FloatArray  # (d, K) ||v_i||_1 sign(v_ik)
    cumulative: FloatArray  # (d, K) cumulative probabilities of pi^(i)
    twice_eps: FloatArray  # (L,) the slack of eq. (gap_estimate)
    sigma: FloatArray  # (L,)
    delta: float
    exploration: float
    theta_max: float
    width_scale: float
    frozen: bool
    check_every: int


class PFIwRState(NamedTuple):
    drawn: IntArray  # (K,) rounds that drew the arm from the context basis
    explored: IntArray  # (K,) exploration rounds of the arm
    counts: IntArray  # (K,) samples of the arm
    pool_outcomes: FloatArray  # (capacity, L) outcomes of exploration rounds; see dr_mix.mix_number
    pool_next: IntArray  # (capacity,) next sample of the same arm
    pool_before: IntArray  # (capacity,) start of the block before the one that begins here
    pool_uses: IntArray  # (capacity,) how often it was reused
    pool_start: IntArray  # (K,) start of the block of least use
    pool_cursor: IntArray  # (K,) next sample to reuse
    pool_last: IntArray  # (K,) newest sample
    mix_factor: FloatArray  # (d, d) Cholesky factor of the Gram matrix of eq. (mixup)
    mix_reach: IntArray  # (d,)
    mix_right: FloatArray  # (d, L) right-hand side of eq. (mixup)
    gram: FloatArray  # (d, d) G, upper triangle
    right: FloatArray  # (d, L) r
    frozen_right: FloatArray  # (d, L) summed pseudo-rewards, imputation frozen
    factor: FloatArray  # (d, d) working space of eq. (estimator)
    reach: IntArray  # (d,)
    theta_check: FloatArray  # (d, L) exploration-mixed estimate
    theta_hat: FloatArray  # (d, L) DR-mix estimate
    estimates: FloatArray  # (K, L) X^T theta_hat, of arms not dominated
    radii: FloatArray  # (K, L) widths of the last test
    status: IntArray  # (K,) verdict on each arm
    beaten_by: IntArray  # (K,) who proved it dominated, or -1
    standing: IntArray  # (K,) A, then P: the first N_ACTIVE and the next N_FRONT entries, A ascending
    counters: IntArray  # (7,) see here and in dr_mix
    ticket: FloatArray  # (6,) of the last choice
    scratch: IntArray  # (K,) working space of a choice or a test
    x_mixed: FloatArray  # (d,) working space of eq. (mixup_data)
    y_mixed: FloatArray  # (L,)
    shrink: FloatArray  # (d,) working space of eq. (confidence_bound)


N_ACTIVE = 4  # size of A
N_FRONT = 5  # size of P
CHECKED = 6  # round of the last test


def init(settings: PFIwR, setup: Setup) -> tuple[PFIwRState, PFIwRConstants]:
    """Decompose the contexts (unit vectors if there are none) and start with every arm in A."""
    K, L = setup.n_arms, setup.n_metrics
    raw = np.eye(K) if setup.contexts is None else np.asarray(setup.contexts, float)
    d = raw.shape[1]
    s, U, V = linear_basis(raw)
    if rank(raw, s) < d:
        raise InvalidInput(
            f"contexts of algorithm 'pfiwr' must span all {d} dimensions, got rank {rank(raw, s)}: "
            "drop or merge feature columns that depend on others"
        )
    theta_max = setup.theta_max if settings.theta_max is None else settings.theta_max
    if theta_max is None:
        raise InvalidInput(
            "theta_max of PFIwR must be given where the true parameters are not known: a bound on their norm"
        )
    constants = PFIwRConstants(
        **context_constants(raw, s, U, V),
        twice_eps=2.0 * setup.eps,
        sigma=setup.known_sigma("pfiwr"),
        delta=float(setup.delta),
        exploration=float(settings.exploration),
        theta_max=float(theta_max),
        width_scale=float(settings.width_scale),
        frozen=settings.imputation == "frozen",
        check_every=int(settings.check_every),
    )
    state = PFIwRState(
        **empty_sums(K, d, L),
        drawn=np.zeros(K, np.int64),
        counts=np.zeros(K, np.int64),
        radii=np.full((K, L), np.inf),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        standing=np.arange(K, dtype=np.int64),
        counters=np.array([0, 0, 0, 0, K, 0, 0], np.int64),
        scratch=np.zeros(K, np.int64),
        shrink=np.zeros(d),
    )
    return state, constants


@kernel
def choose(
    state: PFIwRState, constants: PFIwRConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Draw an arm from the context basis; explore it, or exploit an arm of A with undominated estimates."""
    ticket = state.ticket
    arm = draw_from_basis(constants.cumulative, rng, ticket)
    ticket[EXPLORES] = 1.0
    ticket[WEIGHT] = 0.0
    ticket[WEIGHT_CHECK] = 0.0
    if not exploration_set(state, constants, arm):
        ticket[EXPLORES] = 0.0
        refresh_estimates(state, constants)
        active = state.standing[: state.counters[N_ACTIVE]]
        n = undominated_estimates(active, state.estimates, state.scratch)
        arm = state.scratch[draw_index(n, rng)]
        draw_weights(rng, ticket)
    ticket[MATCHES] = 1.0 if tilde_distribution(state.counters[ROUND] + 1, constants, rng) else 0.0
    return arm, ticket


@kernel
def update(
    state: PFIwRState,
    constants: PFIwRConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Take in the outcome of round t; where the resampling succeeded, estimate and test."""
    counters = state.counters
    matched = ticket[MATCHES] == 1.0
    if not matched:
        refresh_estimates(state, constants)  # theta_hat stays what it was before this round
    state.drawn[int(ticket[DRAWN_ARM])] += 1
    state.counts[arm] += 1
    add_round(state, constants, arm, outcome, ticket)
    if matched and counters[ROUND] - counters[CHECKED] >= constants.check_every:
        counters[CHECKED] = counters[ROUND]
        refresh_estimates(state, constants)
        confidence_bound(state, constants, state.radii)
        eliminate(state, constants)


@kernel
def refresh_estimates(state: PFIwRState, constants: PFIwRConstants) -> None:
    """Bring theta_hat and the estimates of A and P up to date, if a matched round has come since."""
    if state.counters[STALE] == 0:
        return
    estimator(state, constants)
    estimate_arms(state, constants, state.standing[: state.counters[N_ACTIVE] + state.counters[N_FRONT]])


@kernel
def confidence_bound(state: PFIwRState, constants: PFIwRConstants, radii: FloatArray) -> None:
    """eq. (confidence_bound): 3 ||x_k||_{F_t^-1} (theta_max + ...), F_t = t X X^T + I, of the arms in A and P."""
    t = state.counters[ROUND]
    d = constants.lambdas.shape[0]
    n_metrics = radii.shape[1]
    if state.counters[N_ACTIVE] > d:
        noise = math.sqrt(d * math.log(7.0 * n_metrics * t / constants.delta))
    else:
        noise = 3.0 * math.sqrt(math.log(28.0 * n_metrics * d * t * t / constants.delta))
    shrink = state.shrink
    for i in range(d):
        shrink[i] = 1.0 / (t * constants.lambdas[i] + 1.0)
    for k in state.standing[: state.counters[N_ACTIVE] + state.counters[N_FRONT]]:
        squared = 0.0
        for i in range(constants.support[k, 0], constants.support[k, 1] + 1):
            squared += constants.contexts[k, i] * constants.contexts[k, i] * shrink[i]
        norm = constants.width_scale * 3.0 * math.sqrt(squared)
        for metric in range(n_metrics):
            radii[k, metric] = norm * (constants.theta_max + constants.sigma[metric] * noise)


@kernel
def eliminate(state: PFIwRState, constants: PFIwRConstants) -> None:
    """The sets C_t, P_t and A_t of the algorithm, from the pairs of eq. (gap_estimate)."""
    counters = state.counters
    n_active, n_standing = counters[N_ACTIVE], counters[N_ACTIVE] + counters[N_FRONT]
    values, radii = state.estimates, state.radii

    # C_t = arms of A that no arm of A or P surely dominates
    rivals = state.scratch[: strongest(state.standing[:n_standing], values, radii, state.scratch)]
    changed = False
    for k in state.standing[:n_active]:
        j = dominator(k, rivals, values, radii)
        if j >= 0:
            state.beaten_by[k] = j
            state.status[k] = DOMINATED
            changed = True

    # P_t^(1) = arms of C that escape all other arms of C and P, with slack 2 eps
    accepted = state.scratch
    n_accepted = 0
    for k in state.standing[:n_active]:
        if state.status[k] == DOMINATED:
            continue
        escapes = True
        for j in state.standing[:n_standing]:
            if j != k and state.status[j] != DOMINATED and not surely_escapes(k, j, values, radii, constants.twice_eps):
                escapes = False
                break
        if escapes:
            accepted[n_accepted] = k
            n_accepted += 1
            changed = True
    for k in accepted[:n_accepted]:
        state.status[k] = FRONT

    if changed:
        counters[N_ACTIVE] = 0
        for k in range(state.status.shape[0]):
            if state.status[k] == UNDECIDED:
                state.standing[counters[N_ACTIVE]] = k
                counters[N_ACTIVE] += 1
        counters[N_FRONT] = 0
        for k in range(state.status.shape[0]):
            if state.status[k] == FRONT:
                state.standing[counters[N_ACTIVE] + counters[N_FRONT]] = k
                counters[N_FRONT] += 1


@allocating_kernel
def verdicts(state: PFIwRState, constants: PFIwRConstants) -> Verdicts:
    """Estimates of all arms; widths of the last test (of dominated arms: of their last one)."""
    refresh_estimates(state, constants)
    estimates, radii = state.estimates.copy(), state.radii.copy()
    return verdicts_with_rivals(state.status, state.beaten_by, estimates, radii, state.counts)


@kernel
def done(state: PFIwRState, constants: PFIwRConstants) -> bool:
    """Whether A is empty."""
    return state.counters[N_ACTIVE] == 0


ALGORITHM = Algorithm(
    name="pfiwr",
    summary="explore a basis of the contexts, exploit arms of low regret, reuse samples; as printed",
    paper="Kim, Iyengar, Zeevi: Learning the Pareto front using bootstrapped observation samples",
    guarantee="none: as printed its widths do not hold (see the documentation of the algorithm); for research",
    guarantees=False,
    setting="linear contexts",
    settings=PFIwR,
    init=init,
    kernels=(
        Kernels(
            state=PFIwRState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            ranges={
                "counters": ("count", "count", "samples", "code", "arms", "arms", "count"),
                "ticket": ("code", "code", "feature", "place", "real", "real"),
            },
            ticket_size=6,
            reserve=reserve,
        ),
    ),
)

register(ALGORITHM)
