"""The estimators of PFIwR, by the names of their equations in the paper.

*Learning the Pareto Front Using Bootstrapped Observation Samples*: `exploration_set`, `mix_number`,
`mixup_data`, `mixup`, `tilde_distribution`, `pseudo_y` and `estimator` below carry the labels of its
equations; `linear_basis` stands in `algorithms/pfiwr.py`, for it is computed once, with numpy.

Everything is in the coordinates of the left singular vectors u_1, ..., u_d of X = [x_1, ..., x_K]. There the
context basis sqrt(lambda_i) u_i is a multiple of the i-th unit vector and X X^T = diag(lambda); the ridge
terms are the same in all rotated coordinates. With unit vectors as contexts nothing is rotated.

`state` and `options` are any NamedTuples that have the fields used here: those of PFIwR.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .algebra import add_outer_product, copy_into, factorise, solve
from .arrays import FloatArray
from .compile import kernel

# Entries of state.counters.
ROUND = 0  # t, rounds completed
MATCHED = 1  # rounds in which the resampling succeeded
POOL_SIZE = 2  # exploration rounds, all kept for reuse
STALE = 3  # 1: theta_hat has yet to take in the last matched round


@kernel
def gamma(t: int, options: Any) -> float:
    """gamma_t = C d^3 log(2 d t^2 / delta)."""
    d = options.lambdas.shape[0]
    return options.exploration * d * d * d * math.log(2.0 * d * t * t / options.delta)


@kernel
def exploration_set(state: Any, options: Any, drawn_arm: int) -> bool:
    """eq. (exploration_set): whether round t joins E_t, given that it drew `drawn_arm`.

    The left-hand count is over E_{t-1}, the right-hand one includes t: an arm's first draw always explores.
    """
    t = state.counters[ROUND] + 1
    return state.explored[drawn_arm] <= gamma(t, options) / t * (state.drawn[drawn_arm] + 1)


@kernel
def tilde_distribution(t: int, options: Any, rng: np.random.Generator) -> bool:
    """eq. (tilde_distribution): whether a pseudo-action equal to d + 1 turns up within rho_t draws.

    Each draw gives it with probability 1/2, whatever the arm; rho_t = log2((t + 1)^2 / delta). So all draws
    miss with probability 2^-rho_t, and one uniform number decides.
    """
    return rng.random() >= options.delta / ((t + 1.0) * (t + 1.0))


@kernel
def add_to_pool(state: Any, arm: int, outcome: FloatArray) -> None:
    """Keep the outcome of an exploration round, not reused yet; `mix_number` says how the pool is ordered."""
    new = state.counters[POOL_SIZE]
    if new >= state.pool_uses.shape[0]:
        raise IndexError("the pool of exploration samples is full; reserve() makes room")
    state.counters[POOL_SIZE] += 1
    state.explored[arm] += 1
    for metric in range(outcome.shape[0]):
        state.pool_outcomes[new, metric] = outcome[metric]
    state.pool_uses[new] = 0
    state.pool_next[new] = -1
    state.pool_before[new] = -1
    last, cursor = state.pool_last[arm], state.pool_cursor[arm]
    state.pool_last[arm] = new
    if last >= 0:
        state.pool_next[last] = new
        if state.pool_uses[cursor] == 0:
            return  # the last block has no uses either: the new sample is its end
        if cursor != state.pool_start[arm]:  # a pass is under way: samples before the cursor have one use more
            state.pool_before[cursor] = state.pool_start[arm]
        state.pool_before[new] = cursor
    state.pool_start[arm] = new
    state.pool_cursor[arm] = new


@kernel
def mix_number(state: Any, drawn_arm: int) -> int:
    """eq. (mix_number): the exploration sample of `drawn_arm` that was reused least, the earliest of these.

    In order of arrival the numbers of uses never rise. Samples with equal numbers form blocks; `pool_start`
    is the first sample of the last block (fewest uses), `pool_before` leads from a block to the one before it,
    `pool_cursor` is the next sample of the last block. When a pass over the block ends it may have caught up
    with the blocks before it, and merges with them: O(1) on average, whatever the size of the pool.
    """
    sample = state.pool_cursor[drawn_arm]
    state.pool_uses[sample] += 1
    following = state.pool_next[sample]
    if following < 0:
        following = state.pool_start[drawn_arm]
        before = state.pool_before[following]
        while before >= 0 and state.pool_uses[before] == state.pool_uses[following]:
            following = before
            before = state.pool_before[following]
        state.pool_start[drawn_arm] = following
    state.pool_cursor[drawn_arm] = following
    return sample


@kernel
def mixup_data(
    state: Any,
    options: Any,
    arm: int,
    outcome: FloatArray,
    basis: int,
    drawn_arm: int,
    w: float,
    w_check: float,
    x_mixed: FloatArray,
    y_mixed: FloatArray,
) -> None:
    """eq. (mixup_data): w x_a + w' sqrt(lambda_i) u_i, and its reward with a reused exploration sample."""
    sample = mix_number(state, drawn_arm)
    for i in range(x_mixed.shape[0]):
        x_mixed[i] = w * options.contexts[arm, i]
    x_mixed[basis] += w_check * math.sqrt(options.lambdas[basis])
    reused = w_check * options.signed_norms[basis, drawn_arm]
    for metric in range(outcome.shape[0]):
        y_mixed[metric] = w * outcome[metric] + reused * state.pool_outcomes[sample, metric]


@kernel
def add_to_mixup(state: Any, x: FloatArray, y: FloatArray) -> None:
    """Add one (mixed or plain) context and reward to the sums of eq. (mixup). `x` is overwritten."""
    for i in range(x.shape[0]):
        if x[i] != 0.0:
            for metric in range(y.shape[0]):
                state.mix_right[i, metric] += x[i] * y[metric]
    add_outer_product(state.mix_factor, state.mix_reach, x)


@kernel
def mixup(state: Any) -> None:
    """eq. (mixup): the exploration-mixed estimator theta_check of all rounds so far."""
    copy_into(state.theta_check, state.mix_right)
    solve(state.mix_factor, state.mix_reach, state.theta_check)


@kernel
def add_to_estimator(state: Any, options: Any, arm: int, outcome: FloatArray) -> None:
    """Count a matched round: G = sum x_a x_a^T (upper triangle) and r = sum x_a Y of eq. (estimator)."""
    state.counters[MATCHED] += 1
    state.counters[STALE] = 1
    x = options.contexts[arm]
    for i in range(options.support[arm, 0], options.support[arm, 1] + 1):
        for j in range(i, options.support[arm, 1] + 1):
            state.gram[i, j] += x[i] * x[j]
        for metric in range(outcome.shape[0]):
            state.right[i, metric] += x[i] * outcome[metric]


@kernel
def pseudo_y(state: Any, options: Any, arm: int, outcome: FloatArray) -> None:
    """eq. (pseudoY) for one round, with the imputation of that round; summed for `imputation="frozen"`.

    A match means pseudo-action d + 1: the d rows of the context basis are imputed, b_i b_i^T theta_check, and the
    row of the chosen arm is x (2 Y - x^T theta_check), for 1 / pi~ = 2. In sum: (S - x x^T) theta_check + 2 x Y.
    """
    x = options.contexts[arm]
    for metric in range(outcome.shape[0]):
        imputed = 0.0
        for i in range(x.shape[0]):
            imputed += x[i] * state.theta_check[i, metric]
        for i in range(x.shape[0]):
            basis_row = options.lambdas[i] * state.theta_check[i, metric]
            state.frozen_right[i, metric] += basis_row + x[i] * (2.0 * outcome[metric] - imputed)


@kernel
def estimator(state: Any, options: Any) -> None:
    """eq. (estimator): the DR-mix estimator theta_hat of the matched rounds.

    With n matched rounds and S = X X^T = diag(lambda), theta_hat = (n S + G + I)^-1 b, where b sums the
    pseudo-rewards: (n S - G) theta_check + 2 r with the latest imputation for all rounds.
    """
    d, n_metrics = state.theta_hat.shape
    n = state.counters[MATCHED]
    state.counters[STALE] = 0
    if options.frozen:
        copy_into(state.theta_hat, state.frozen_right)
    else:
        mixup(state)
        if state.counters[POOL_SIZE] == n == state.counters[ROUND]:
            # all rounds explored and matched: then r = (G + I / 2) theta_check, hence theta_hat = theta_check
            copy_into(state.theta_hat, state.theta_check)
            return
        for i in range(d):
            for metric in range(n_metrics):
                own = n * options.lambdas[i] - state.gram[i, i]
                state.theta_hat[i, metric] = own * state.theta_check[i, metric] + 2.0 * state.right[i, metric]
        for i in range(d):
            for j in range(i + 1, options.reach[i] + 1):
                for metric in range(n_metrics):
                    state.theta_hat[i, metric] -= state.gram[i, j] * state.theta_check[j, metric]
                    state.theta_hat[j, metric] -= state.gram[i, j] * state.theta_check[i, metric]
    for i in range(d):
        state.reach[i] = options.reach[i]
        state.factor[i, i] = n * options.lambdas[i] + state.gram[i, i] + 1.0
        for j in range(i + 1, options.reach[i] + 1):
            state.factor[i, j] = state.gram[i, j]
    factorise(state.factor, state.reach)
    solve(state.factor, state.reach, state.theta_hat)
