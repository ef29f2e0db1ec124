"""The estimators of PFIwR, by the names of their equations in the paper, and those it compares them with.

*Learning the Pareto Front Using Bootstrapped Observation Samples*: `linear_basis`, `exploration_set`,
`mix_number`, `mixup_data`, `mixup`, `tilde_distribution`, `pseudo_y` and `estimator` below carry the labels of its
equations.

Everything is in the coordinates of the left singular vectors u_1, ..., u_d of X = [x_1, ..., x_K]. There the
context basis sqrt(lambda_i) u_i is a multiple of the i-th unit vector and X X^T = diag(lambda); the ridge
terms are the same in all rotated coordinates. With unit vectors as contexts nothing is rotated.

`state` and `constants` are any NamedTuples that have the fields used here: those of PFIwR, and those of the
estimators on their own (`estimator_state.py`), which `estimators.py` makes public.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .algebra import add_outer_product, copy_into, factorise, solve
from .arrays import FloatArray, IntArray
from .compile import kernel
from .draws import draw_category, draw_index

F = TypeVar("F", bound=Callable[..., Any])
State = TypeVar("State", bound=Any)


def inlined(function: F) -> F:
    """Compile a kernel that becomes part of the kernels that call it: handing a state on costs 5 to 10% of a round."""
    compiled = kernel(function)
    if compiled is not function:
        compiled.targetoptions["forceinline"] = True  # type: ignore[attr-defined]
    return compiled


# Entries of state.counters.
ROUND = 0  # t, rounds completed
MATCHED = 1  # rounds in which the resampling succeeded
POOL_SIZE = 2  # exploration rounds, all kept for reuse
STALE = 3  # 1: theta_hat has yet to take in the last matched round

# Entries of a ticket: what was drawn for a round before its outcome came in.
EXPLORES, MATCHES, BASIS, DRAWN_ARM, WEIGHT, WEIGHT_CHECK = range(6)


def linear_basis(contexts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """eq. (linear_basis): singular values s (d,), vectors U (d, d) and V (K, d) with X = contexts^T = U diag(s) V^T.

    Where X X^T is diagonal its eigenvectors are taken to be the unit vectors: with repeated singular values any
    rotation of them would do as well, but not as simply. Signs are fixed by the largest entry of each u_i.
    """
    gram = contexts.T @ contexts
    s = np.sqrt(np.diag(gram))
    if np.count_nonzero(gram) == np.count_nonzero(s) == len(s):
        return s, np.eye(len(s)), contexts / s
    V, s, Ut = np.linalg.svd(contexts, full_matrices=False)
    signs = np.sign(Ut[np.arange(len(s)), np.argmax(np.abs(Ut), axis=1)])
    return s, (Ut * signs[:, None]).T, V * signs


def rank(contexts: FloatArray, s: FloatArray) -> int:
    """Return how many dimensions the contexts span, from their singular values; the rest needs all d."""
    return int(np.count_nonzero(s > s.max(initial=0.0) * max(contexts.shape) * np.finfo(float).eps))


def context_constants(contexts: FloatArray, s: FloatArray, U: FloatArray, V: FloatArray) -> dict[str, Any]:
    """Return the constants that describe the contexts, from their `linear_basis`."""
    d = contexts.shape[1]
    rotated = np.ascontiguousarray(contexts @ U)
    rotated[np.abs(rotated) < 1e-14 * np.abs(rotated).max()] = 0.0  # rounding of the rotation
    nonzero = rotated != 0.0
    support = np.column_stack([nonzero.argmax(axis=1), d - 1 - nonzero[:, ::-1].argmax(axis=1)])
    support[~nonzero.any(axis=1)] = (0, -1)
    shares = nonzero.astype(float).T @ nonzero.astype(float) > 0
    reach = d - 1 - shares[:, ::-1].argmax(axis=1)

    norms = np.abs(V).sum(axis=0)
    cumulative = np.cumsum(np.abs(V) / norms, axis=0).T
    for row, v in zip(cumulative, V.T, strict=True):
        row[np.flatnonzero(v)[-1] :] = 1.0  # see draw_category
    return {
        "contexts": rotated,
        "support": support.astype(np.int64),
        "reach": reach.astype(np.int64),
        "lambdas": s * s,
        "signed_norms": np.ascontiguousarray((np.sign(V) * norms).T),
        "cumulative": np.ascontiguousarray(cumulative),
    }


def empty_sums(K: int, d: int, L: int, ridge: float = 0.5) -> dict[str, Any]:
    """Return the fields of a state before the first round; `ridge` is the multiple of I in eq. (mixup)."""
    return {
        "explored": np.zeros(K, np.int64),
        "pool_outcomes": np.zeros((0, L)),
        "pool_next": np.zeros(0, np.int64),
        "pool_before": np.zeros(0, np.int64),
        "pool_uses": np.zeros(0, np.int64),
        "pool_start": np.full(K, -1, np.int64),
        "pool_cursor": np.full(K, -1, np.int64),
        "pool_last": np.full(K, -1, np.int64),
        "mix_factor": ridge * np.eye(d),
        "mix_reach": np.arange(d, dtype=np.int64),
        "mix_right": np.zeros((d, L)),
        "gram": np.zeros((d, d)),
        "right": np.zeros((d, L)),
        "frozen_right": np.zeros((d, L)),
        "factor": np.zeros((d, d)),
        "reach": np.zeros(d, np.int64),
        "theta_check": np.zeros((d, L)),
        "theta_hat": np.zeros((d, L)),
        "estimates": np.zeros((K, L)),
        "ticket": np.zeros(6),
        "x_mixed": np.zeros(d),
        "y_mixed": np.zeros(L),
    }


def reserve(state: State, rounds: int) -> State:
    """Return the state with room for the outcomes of `rounds` more exploration rounds."""
    capacity = len(state.pool_uses)
    needed = int(state.counters[POOL_SIZE]) + rounds
    if needed <= capacity:
        return state
    room = max(needed, 2 * capacity)

    def longer(array: NDArray[Any]) -> NDArray[Any]:
        grown = np.zeros((room, *array.shape[1:]), array.dtype)  # pages that are never used cost nothing
        grown[:capacity] = array
        return grown

    fields = ("pool_outcomes", "pool_next", "pool_before", "pool_uses")
    return state._replace(**{name: longer(getattr(state, name)) for name in fields})


@kernel
def gamma(t: int, constants: Any) -> float:
    """gamma_t = C d^3 log(2 d t^2 / delta)."""
    d = constants.lambdas.shape[0]
    return constants.exploration * d * d * d * math.log(2.0 * d * t * t / constants.delta)


@kernel
def exploration_set(state: Any, constants: Any, drawn_arm: int) -> bool:
    """eq. (exploration_set): whether round t joins E_t, given that it drew `drawn_arm`.

    The left-hand count is over E_{t-1}, the right-hand one includes t: an arm's first draw always explores.
    """
    t = state.counters[ROUND] + 1
    return state.explored[drawn_arm] <= gamma(t, constants) / t * (state.drawn[drawn_arm] + 1)


@inlined
def draw_from_basis(cumulative: FloatArray, rng: np.random.Generator, ticket: FloatArray) -> int:
    """Draw a vector of the context basis, i uniform, and for it an arm from pi^(i); return the arm."""
    basis = draw_index(cumulative.shape[0], rng)
    arm = draw_category(cumulative[basis], rng)
    ticket[BASIS] = basis
    ticket[DRAWN_ARM] = arm
    return arm


@inlined
def draw_weights(rng: np.random.Generator, ticket: FloatArray) -> None:
    """Draw w and w' of eq. (mixup_data): uniform, of mean 0 and variance 1."""
    ticket[WEIGHT] = math.sqrt(3.0) * (2.0 * rng.random() - 1.0)
    ticket[WEIGHT_CHECK] = math.sqrt(3.0) * (2.0 * rng.random() - 1.0)


@kernel
def tilde_distribution(t: int, constants: Any, rng: np.random.Generator) -> bool:
    """eq. (tilde_distribution): whether a pseudo-action equal to d + 1 turns up within rho_t draws.

    Each draw gives it with probability 1/2, whatever the arm; rho_t = log2((t + 1)^2 / delta). So all draws
    miss with probability 2^-rho_t, and one uniform number decides.
    """
    return rng.random() >= constants.delta / ((t + 1.0) * (t + 1.0))


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
        while 0 <= before < following and state.pool_uses[before] == state.pool_uses[following]:
            following = before
            before = state.pool_before[following]
        state.pool_start[drawn_arm] = following
    state.pool_cursor[drawn_arm] = following
    return sample


@kernel
def mixup_data(
    state: Any,
    constants: Any,
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
        x_mixed[i] = w * constants.contexts[arm, i]
    x_mixed[basis] += w_check * math.sqrt(constants.lambdas[basis])
    reused = w_check * constants.signed_norms[basis, drawn_arm]
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


@inlined
def add_plain(state: Any, constants: Any, arm: int, outcome: FloatArray) -> None:
    """Add a round as it is to the sums of eq. (mixup). With no other rounds these are the sums of a ridge estimate."""
    for i in range(state.x_mixed.shape[0]):
        state.x_mixed[i] = constants.contexts[arm, i]
    add_to_mixup(state, state.x_mixed, outcome)


@kernel
def mixup(state: Any) -> None:
    """eq. (mixup): the exploration-mixed estimator theta_check of all rounds so far."""
    copy_into(state.theta_check, state.mix_right)
    solve(state.mix_factor, state.mix_reach, state.theta_check)


@kernel
def add_to_estimator(state: Any, constants: Any, arm: int, outcome: FloatArray) -> None:
    """Count a matched round: G = sum x_a x_a^T (upper triangle) and r = sum x_a Y of eq. (estimator)."""
    state.counters[MATCHED] += 1
    state.counters[STALE] = 1
    x = constants.contexts[arm]
    for i in range(constants.support[arm, 0], constants.support[arm, 1] + 1):
        for j in range(i, constants.support[arm, 1] + 1):
            state.gram[i, j] += x[i] * x[j]
        for metric in range(outcome.shape[0]):
            state.right[i, metric] += x[i] * outcome[metric]


@kernel
def pseudo_y(state: Any, constants: Any, arm: int, outcome: FloatArray) -> None:
    """eq. (pseudoY) for one round, with the imputation of that round; summed for `imputation="frozen"`.

    A match means pseudo-action d + 1: the d rows of the context basis are imputed, b_i b_i^T theta_check, and the
    row of the chosen arm is x (2 Y - x^T theta_check), for 1 / pi~ = 2. In sum: (S - x x^T) theta_check + 2 x Y.
    """
    x = constants.contexts[arm]
    for metric in range(outcome.shape[0]):
        imputed = 0.0
        for i in range(x.shape[0]):
            imputed += x[i] * state.theta_check[i, metric]
        for i in range(x.shape[0]):
            basis_row = constants.lambdas[i] * state.theta_check[i, metric]
            state.frozen_right[i, metric] += basis_row + x[i] * (2.0 * outcome[metric] - imputed)


@inlined
def add_matched(state: Any, constants: Any, arm: int, outcome: FloatArray) -> None:
    """Add a matched round to the sums of eq. (estimator); those of eq. (mixup) have it already."""
    add_to_estimator(state, constants, arm, outcome)
    if constants.frozen:
        mixup(state)
        pseudo_y(state, constants, arm, outcome)


@inlined
def add_round(state: Any, constants: Any, arm: int, outcome: FloatArray, ticket: FloatArray) -> None:
    """Take round t into the sums of eqs. (mixup) and (estimator); the ticket says what was drawn for it."""
    state.counters[ROUND] += 1
    if ticket[EXPLORES] == 1.0:
        add_to_pool(state, arm, outcome)
        add_plain(state, constants, arm, outcome)
    else:
        mixup_data(
            state,
            constants,
            arm,
            outcome,
            int(ticket[BASIS]),
            int(ticket[DRAWN_ARM]),
            ticket[WEIGHT],
            ticket[WEIGHT_CHECK],
            state.x_mixed,
            state.y_mixed,
        )
        add_to_mixup(state, state.x_mixed, state.y_mixed)
    if ticket[MATCHES] == 1.0:
        add_matched(state, constants, arm, outcome)


@kernel
def estimator(state: Any, constants: Any) -> None:
    """eq. (estimator): the DR-mix estimator theta_hat of the matched rounds.

    With n matched rounds and S = X X^T = diag(lambda), theta_hat = (n S + G + I)^-1 b, where b sums the
    pseudo-rewards: (n S - G) theta_check + 2 r with the latest imputation for all rounds.
    """
    d, n_metrics = state.theta_hat.shape
    n = state.counters[MATCHED]
    state.counters[STALE] = 0
    if constants.frozen:
        copy_into(state.theta_hat, state.frozen_right)
    else:
        mixup(state)
        if state.counters[POOL_SIZE] == n == state.counters[ROUND]:
            # all rounds explored and matched: then r = (G + I / 2) theta_check, hence theta_hat = theta_check
            copy_into(state.theta_hat, state.theta_check)
            return
        for i in range(d):
            for metric in range(n_metrics):
                own = n * constants.lambdas[i] - state.gram[i, i]
                state.theta_hat[i, metric] = own * state.theta_check[i, metric] + 2.0 * state.right[i, metric]
        for i in range(d):
            for j in range(i + 1, constants.reach[i] + 1):
                for metric in range(n_metrics):
                    state.theta_hat[i, metric] -= state.gram[i, j] * state.theta_check[j, metric]
                    state.theta_hat[j, metric] -= state.gram[i, j] * state.theta_check[i, metric]
    for i in range(d):
        state.reach[i] = constants.reach[i]
        state.factor[i, i] = n * constants.lambdas[i] + state.gram[i, i] + 1.0
        for j in range(i + 1, constants.reach[i] + 1):
            state.factor[i, j] = state.gram[i, j]
    factorise(state.factor, state.reach)
    solve(state.factor, state.reach, state.theta_hat)


@kernel
def least_squares(state: Any, constants: Any) -> None:
    """theta_hat = G^-1 r, from the sums of `add_to_estimator`; NaN until the arms in them span all d dimensions."""
    d, n_metrics = state.theta_hat.shape
    state.counters[STALE] = 0
    copy_into(state.theta_hat, state.right)
    for i in range(d):
        state.reach[i] = constants.reach[i]
        for j in range(i, constants.reach[i] + 1):
            state.factor[i, j] = state.gram[i, j]
    factorise(state.factor, state.reach)
    for i in range(d):
        # what is left of the i-th diagonal element after the rows before it is more than the rounding of G
        if not state.factor[i, i] > 1e-10 * state.gram[i, i]:
            for j in range(d):
                for metric in range(n_metrics):
                    state.theta_hat[j, metric] = math.nan
            return
    solve(state.factor, state.reach, state.theta_hat)


@inlined
def estimate_arms(state: Any, constants: Any, arms: IntArray) -> None:
    """x_k^T theta_hat of the arms listed."""
    for k in arms:
        for metric in range(state.theta_hat.shape[1]):
            value = 0.0
            for i in range(constants.support[k, 0], constants.support[k, 1] + 1):
                value += constants.contexts[k, i] * state.theta_hat[i, metric]
            state.estimates[k, metric] = value
