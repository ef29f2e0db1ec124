"""The estimators of `dr_mix.py` on their own: rounds come from outside, what is random about them is drawn here."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .algebra import copy_into
from .arrays import BoolArray, FloatArray, IntArray
from .compile import kernel
from .dr_mix import (
    DRAWN_ARM,
    EXPLORES,
    MATCHES,
    ROUND,
    STALE,
    add_matched,
    add_plain,
    add_round,
    draw_from_basis,
    draw_weights,
    estimate_arms,
    estimator,
    least_squares,
    mixup,
    tilde_distribution,
)


class EstimatorConstants(NamedTuple):
    contexts: FloatArray  # (K, d) contexts in the coordinates of u_1, ..., u_d
    support: IntArray  # (K, 2) first and last non-zero coordinate of each context
    reach: IntArray  # (d,) last coordinate that shares a context with each coordinate
    lambdas: FloatArray  # (d,) squared singular values of X
    signed_norms: FloatArray  # (d, K) ||v_i||_1 sign(v_ik)
    cumulative: FloatArray  # (d, K) cumulative probabilities of pi^(i)
    arms: IntArray  # (K,) 0, ..., K - 1
    regularised: bool  # no: least squares
    mixes: bool  # exploitation rounds are mixed with reused samples
    doubly_robust: bool  # eq. (estimator), imputed with the ridge or exploration-mixed estimate
    frozen: bool  # each round keeps the imputation it had
    delta: float  # resampling fails with probability delta / (t + 1)^2


class EstimatorState(NamedTuple):
    explored: IntArray  # (K,) exploration rounds of the arm
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
    theta_check: FloatArray  # (d, L) imputation: the ridge or exploration-mixed estimate
    theta_hat: FloatArray  # (d, L) the estimate, in the coordinates of u_1, ..., u_d
    estimates: FloatArray  # (K, L) X^T theta_hat
    counters: IntArray  # (5,) see here and in dr_mix
    ticket: FloatArray  # (6,) what was drawn for the round
    x_mixed: FloatArray  # (d,) working space of eq. (mixup_data)
    y_mixed: FloatArray  # (L,)


DRAWN = 4  # entry of counters; 1: the arm of the context basis is drawn for the next round


@kernel
def draw_arm(state: EstimatorState, constants: EstimatorConstants, rng: np.random.Generator) -> int:
    """Draw the arm of the context basis that belongs to the next round, and return it; asked again, the same arm.

    An exploitation round is mixed with a sample of this arm, so that one of it must have been explored.
    """
    if state.counters[DRAWN] == 0:
        draw_from_basis(constants.cumulative, rng, state.ticket)
        state.counters[DRAWN] = 1
    return int(state.ticket[DRAWN_ARM])


@kernel
def take_in(
    state: EstimatorState, constants: EstimatorConstants, arm: int, outcome: FloatArray, ticket: FloatArray
) -> None:
    """Take in the outcome (L,) of a round for which the ticket says what was drawn."""
    if constants.doubly_robust and ticket[MATCHES] == 0.0:
        estimate(state, constants)  # theta_hat stays what it was before this round
    if constants.mixes:
        add_round(state, constants, arm, outcome, ticket)
    else:
        state.counters[ROUND] += 1
        if constants.regularised:
            add_plain(state, constants, arm, outcome)
        if ticket[MATCHES] == 1.0:
            add_matched(state, constants, arm, outcome)
    if not constants.doubly_robust:
        state.counters[STALE] = 1
    state.counters[DRAWN] = 0


@kernel
def update(
    state: EstimatorState,
    constants: EstimatorConstants,
    arm: int,
    outcome: FloatArray,
    explored: bool,
    rng: np.random.Generator,
) -> None:
    """Draw what the next round needs and take in its outcome (L,); only estimators that mix look at `explored`."""
    ticket = state.ticket
    ticket[EXPLORES] = 1.0
    if constants.mixes and not explored:
        if state.explored[draw_arm(state, constants, rng)] == 0:
            raise IndexError("the context basis drew an arm that was never explored; draw_arm() says which to explore")
        ticket[EXPLORES] = 0.0
        draw_weights(rng, ticket)
    ticket[MATCHES] = 0.0 if constants.regularised else 1.0  # least squares has the sums of matched rounds alone
    if constants.doubly_robust and tilde_distribution(state.counters[ROUND] + 1, constants, rng):
        ticket[MATCHES] = 1.0
    take_in(state, constants, arm, outcome, ticket)


@kernel
def estimate(state: EstimatorState, constants: EstimatorConstants) -> None:
    """Bring theta_hat and the estimates of all arms up to date."""
    if state.counters[STALE] == 0:
        return
    if constants.doubly_robust:
        estimator(state, constants)
    elif constants.regularised:
        mixup(state)
        copy_into(state.theta_hat, state.theta_check)
        state.counters[STALE] = 0
    else:
        least_squares(state, constants)
    estimate_arms(state, constants, constants.arms)


@kernel
def update_all(
    state: EstimatorState,
    constants: EstimatorConstants,
    arms: IntArray,
    outcomes: FloatArray,
    explored: BoolArray,
    rng: np.random.Generator,
    path: FloatArray,
) -> None:
    """Take in rounds in order: arms (n,), outcomes (n, L). A `path` (n, K, L) is given the estimates after each."""
    for n in range(arms.shape[0]):
        update(state, constants, arms[n], outcomes[n], explored[n], rng)
        if path.shape[0] > 0:
            estimate(state, constants)
            copy_into(path[n], state.estimates)
