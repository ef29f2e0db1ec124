"""PSIPS: sample by what draws from the posterior dispute.

C. Kone, M. Jourdan, E. Kaufmann: Pareto set identification with posterior sampling, AISTATS 2025; the authors' code is
public. Means linear in contexts, or arms on their own; normal noise.

Again and again, means are drawn from the posterior (flat prior, sigma known) until a draw has another front than the
estimates. AdaHedge is told how far each arm's draw is from its estimate, as gains, and so learns the allocation that
makes such draws rare fastest. Arms are drawn from its weights, mixed with some exploration.

The authors stop when M = log(t / delta) / log(1 / (1 - delta)) draws in a row, widened by
sqrt(c), c = 1 + log(log t) / log(1 / delta), have the front of the estimates. That is not sure to be wrong with
probability at most delta: where the estimates have a wrong front, a draw disputes it with a probability p that only the
confidence region bounds. What would be sure is M = log(t^2 pi^2 / (3 delta)) / p with
p = 2^-N exp(-b / c - 2 sqrt(N b / (pi c))), N = L + size of the front, b = log(2 / delta) + half the log determinant
of the information for each metric: millions of draws, or a c that multiplies the samples. By default it stops instead
by intervals for the differences of two arms that hold at all times and for any sampling, at level delta in all, which
costs no draws; they allow for eps, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg

from ..errors import InvalidInput
from ..kernels.algebra import add_outer_product, copy_into, factorise, solve
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import DOMINATED, FRONT, UNDECIDED, margin, scaled_verdicts, undominated_estimates
from ..kernels.design_for_means import optimal_design, span
from ..kernels.dispatch import NO_TICKET, Verdicts
from ..kernels.widths import least_squares, normal_mixture, pair_mixture
from .contract import Accepts, Algorithm, Kernels, Settings, Setup
from .ranges import setting
from .registry import register

#: Scale of the mixtures behind the intervals, in samples of an arm.
RHO = 8.0
#: Noise below this (in scaled units) counts as this.
LEAST_SIGMA = 1e-9
#: Whether to stop is looked at again after this share more samples.
CHECK_GROWTH = 0.005


@dataclass(frozen=True)
class PSIPS(Settings):
    """Settings of PSIPS.

    stopping: "valid": by intervals, see the module's documentation; "published": by draws from the posterior, as the
        authors do. It takes fewer samples, promises nothing, and knows no eps.
    model: "linear": means are linear in the contexts, and what is promised rests on that; "tabular": arms on their own;
        None: linear if the problem was stated as linear, else tabular.
    widening: eta of the paper; draws that are to dispute the front are widened by 1 / sqrt(widening).
    exploration: after t samples this power of 1 / t is the part of the samples that explores.
    draws: the most draws for one sample; if none disputes the front, the weights stay.
    every: samples between two draws; None: one per 16 arms.
    """

    stopping: str = setting("valid", choices=("valid", "published"))
    model: str | None = setting(None, choices=("linear", "tabular"))
    widening: float = setting(0.5, above=0.0)
    exploration: float = setting(0.5, above=0.0, most=1.0)
    draws: int = setting(50, least=1, whole=True)
    every: int | None = setting(None, least=1, whole=True)

    @property
    def sound(self) -> bool:
        """Whether the guarantee holds with these settings."""
        return self.stopping == "valid"


class PSIPSConstants(NamedTuple):
    contexts: FloatArray  # (K, d) whitened; (K, 0): arms on their own
    first_arms: IntArray  # arms that span all dimensions, pulled first
    explore: FloatArray  # (K,) weights of exploration
    units: FloatArray  # (L,) sigma: values are measured in these
    eps: FloatArray  # (L,) in these units
    everyone: IntArray  # (K,) 0, ..., K - 1
    delta: float
    valid: bool
    spread: float  # of draws that are to dispute the front
    exploration: float
    draws: int
    every: int
    no_ticket: FloatArray = NO_TICKET


class PSIPSState(NamedTuple):
    counts: IntArray  # (K,) samples of each arm
    sums: FloatArray  # (K, L) arms on their own: sums of their outcomes, in units of the noise
    gram: FloatArray  # (d, d) contexts: A = sum x x^T
    right: FloatArray  # (d, L) sum x Y
    factor: FloatArray  # (d, d) factor of A, once it is invertible
    reach: IntArray  # (d,) all d - 1
    means: FloatArray  # (K, L) estimates; by contexts, those of the last look at the front
    gains: FloatArray  # (K,) of AdaHedge, summed up
    mixability: FloatArray  # (1,) what AdaHedge has lost by mixing; its rate is log K / that
    weights: FloatArray  # (K,) its weights
    front: IntArray  # (K,) the front of the estimates as of the last draws; the first counters[N_FRONT] entries
    on_front: IntArray  # (K,)
    status: IntArray  # (K,)
    beaten_by: IntArray  # (K,)
    counters: IntArray  # (6,) see below
    drawn: FloatArray  # (K, L) working space, from here on: what a draw adds to the estimates
    values: FloatArray  # (K, L) the means drawn
    normal: FloatArray  # (d, L)
    shifted: FloatArray  # (d, d)
    column: FloatArray  # (d, 1)
    x: FloatArray  # (d,)
    rival: IntArray  # (K,)
    gain: FloatArray  # (K,)


TOTAL = 0  # samples
READY = 1  # 1: the samples span all dimensions
NEXT_DRAW = 2  # samples at which draws are made next
NEXT_CHECK = 3  # samples at which stopping is looked at next
N_FRONT = 4  # size of the front of the estimates
STOPPING = 5  # 1: the last draws agreed; the sample under way is the last


def init(settings: PSIPS, setup: Setup) -> tuple[PSIPSState, PSIPSConstants]:
    """Whiten the contexts, find arms that span them and the design to explore with."""
    K, L = setup.n_arms, setup.n_metrics
    units = np.maximum(setup.known_sigma("psips"), LEAST_SIGMA)
    contexts, first_arms, explore = np.zeros((K, 0)), np.arange(K, dtype=np.int64), np.full(K, 1.0 / K)
    if (settings.model or ("linear" if setup.explained else "tabular")) == "linear":
        if setup.contexts is None:
            raise InvalidInput("contexts must be given for model='linear' of PSIPS, got none")
        U, s, _ = np.linalg.svd(setup.contexts, full_matrices=False)
        rank = int(np.count_nonzero(s > s.max(initial=0.0) * max(setup.contexts.shape) * np.finfo(float).eps))
        if rank == 0:
            raise InvalidInput("contexts must not all be zero for model='linear' of PSIPS")
        contexts = np.ascontiguousarray(U[:, :rank] * np.sqrt(K))
        first_arms = np.sort(scipy.linalg.qr(contexts.T, mode="r", pivoting=True)[1][:rank]).astype(np.int64)
        explore = design_of(contexts)
    d = contexts.shape[1]
    constants = PSIPSConstants(
        contexts=contexts,
        first_arms=first_arms,
        explore=explore,
        units=units,
        eps=setup.eps / units,
        everyone=np.arange(K, dtype=np.int64),
        delta=float(setup.delta),
        valid=settings.sound,
        spread=settings.widening**-0.5,
        exploration=settings.exploration,
        draws=settings.draws,
        every=settings.every or math.ceil(K / 16),
    )
    state = PSIPSState(
        counts=np.zeros(K, np.int64),
        sums=np.zeros((K, L)),
        gram=np.zeros((d, d)),
        right=np.zeros((d, L)),
        factor=np.zeros((d, d)),
        reach=np.full(d, d - 1, np.int64),
        means=np.zeros((K, L)),
        gains=np.zeros(K),
        mixability=np.zeros(1),
        weights=np.full(K, 1.0 / K),
        front=np.zeros(K, np.int64),
        on_front=np.zeros(K, np.int64),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        counters=np.zeros(6, np.int64),
        drawn=np.zeros((K, L)),
        values=np.zeros((K, L)),
        normal=np.zeros((d, L)),
        shifted=np.zeros((d, d)),
        column=np.zeros((d, 1)),
        x=np.zeros(d),
        rival=np.full(K, -1, np.int64),
        gain=np.zeros(K),
    )
    return state, constants


def design_of(contexts: FloatArray) -> FloatArray:
    """Return the optimal design on all arms."""
    K, d = contexts.shape
    arms, points, pivots, weights = np.arange(K), np.zeros((K, d)), np.zeros(d, np.int64), np.zeros(K)
    h = span(arms, contexts, np.zeros((K, d)), np.zeros(d), points, pivots)
    work = (np.zeros((d, d)), np.full(d, d - 1), np.zeros((d, d)), np.zeros(d))
    optimal_design(arms, points, pivots, h, weights, np.zeros(K), *work)
    return weights


@kernel
def choose(
    state: PSIPSState, constants: PSIPSConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """The spanning arms first; then an arm by the weights, which learn from draws that dispute the front."""
    counters = state.counters
    if counters[READY] == 0:
        for arm in constants.first_arms:
            if state.counts[arm] + pending[arm] == 0:
                return arm, constants.no_ticket
        # all of them are on their way
        return draw_arm(state, constants, 1.0, rng), constants.no_ticket
    t = counters[TOTAL]
    arm = draw_arm(state, constants, t**-constants.exploration, rng)
    if t >= counters[NEXT_DRAW]:
        find_front(state, constants)
        if not constants.valid and t >= counters[NEXT_CHECK]:
            counters[STOPPING] = 1 if draws_agree(state, constants, rng) else 0
            counters[NEXT_CHECK] = t + max(constants.every, int(CHECK_GROWTH * t))
        for _ in range(constants.draws):
            draw_means(state, constants, constants.spread, rng)
            if disputed(state):
                learn(state)
                break
        counters[NEXT_DRAW] = t + constants.every
    return arm, constants.no_ticket


@kernel
def draw_arm(state: PSIPSState, constants: PSIPSConstants, explored: float, rng: np.random.Generator) -> int:
    """Draw an arm, with probability `explored` by the exploring weights."""
    u = rng.random()
    arm = 0
    total = 0.0
    for k in range(state.weights.shape[0]):
        weight = (1.0 - explored) * state.weights[k] + explored * constants.explore[k]
        if weight > 0.0:
            arm = k
            total += weight
            if total > u:
                break
    return arm


@kernel
def estimate(state: PSIPSState, constants: PSIPSConstants, theta: FloatArray, means: FloatArray) -> None:
    """Write the estimates (K, L) by the contexts; theta (d, L) is working space."""
    copy_into(theta, state.right)
    solve(state.factor, state.reach, theta)
    times_contexts(constants, theta, means)


@kernel
def find_front(state: PSIPSState, constants: PSIPSConstants) -> None:
    """Find the front of the estimates."""
    if state.factor.shape[0] > 0:
        estimate(state, constants, state.normal, state.means)
    n = undominated_estimates(constants.everyone, state.means, state.front)
    state.counters[N_FRONT] = n
    for k in range(state.on_front.shape[0]):
        state.on_front[k] = 0
    for k in state.front[:n]:
        state.on_front[k] = 1


@kernel
def draw_means(state: PSIPSState, constants: PSIPSConstants, spread: float, rng: np.random.Generator) -> None:
    """Draw means from the posterior, `spread` times as wide: contexts times U^-1 D^-1/2 z, as A = U^T D U."""
    K, L = state.means.shape
    d = state.factor.shape[0]
    if d == 0:
        for k in range(K):
            deviation = spread / math.sqrt(state.counts[k])
            for metric in range(L):
                state.drawn[k, metric] = deviation * rng.standard_normal()
    else:
        normal = state.normal
        for i in range(d):
            for metric in range(L):
                normal[i, metric] = spread * rng.standard_normal() / math.sqrt(state.factor[i, i])
        for i in range(d - 1, -1, -1):
            for j in range(i + 1, d):
                for metric in range(L):
                    normal[i, metric] -= state.factor[i, j] * normal[j, metric]
        times_contexts(constants, normal, state.drawn)
    for k in range(K):
        for metric in range(L):
            state.values[k, metric] = state.means[k, metric] + state.drawn[k, metric]


@kernel
def times_contexts(constants: PSIPSConstants, theta: FloatArray, values: FloatArray) -> None:
    """Write contexts times theta (d, L) to `values`."""
    for k in range(values.shape[0]):
        for metric in range(values.shape[1]):
            total = 0.0
            for i in range(theta.shape[0]):
                total += constants.contexts[k, i] * theta[i, metric]
            values[k, metric] = total


@kernel
def disputed(state: PSIPSState) -> bool:
    """Whether the means drawn have another front than the estimates."""
    front = state.front[: state.counters[N_FRONT]]
    for k in range(state.values.shape[0]):
        beaten = False
        for j in front:
            if j != k and beats(state.values, j, k):
                beaten = True
                break
        if beaten == (state.on_front[k] == 1):
            return True
    return False


@kernel
def beats(values: FloatArray, j: int, k: int) -> bool:
    """Whether j is at least as good as k in every metric; equal means are not drawn."""
    for metric in range(values.shape[1]):  # noqa: SIM110 numba has no all()
        if values[j, metric] < values[k, metric]:
            return False
    return True


@kernel
def n_agreeing(t: int, delta: float) -> float:
    """M: how many draws in a row are to agree with the front."""
    return math.log(t / delta) / -math.log1p(-delta)


@kernel
def inflation(t: int, delta: float) -> float:
    """c: what the variance of these draws is multiplied by."""
    return 1.0 + math.log(max(math.log(t), 1.0)) / -math.log(delta)


@kernel
def draws_agree(state: PSIPSState, constants: PSIPSConstants, rng: np.random.Generator) -> bool:
    """Whether M draws all have the front of the estimates."""
    t = state.counters[TOTAL]
    spread = math.sqrt(inflation(t, constants.delta))
    for _ in range(math.ceil(n_agreeing(t, constants.delta))):
        draw_means(state, constants, spread, rng)
        if disputed(state):
            return False
    return True


@kernel
def learn(state: PSIPSState) -> None:
    """AdaHedge takes the squared distances of the draw as gains. de Rooij, van Erven, Grünwald, Koolen 2014."""
    K, L = state.means.shape
    rate = math.log(K) / state.mixability[0] if state.mixability[0] > 0.0 else np.inf
    mixed, before = 0.0, mix(state, rate)
    for k in range(K):
        square = 0.0
        for metric in range(L):
            square += state.drawn[k, metric] * state.drawn[k, metric]
        mixed += state.weights[k] * square
        state.gains[k] += square
    state.mixability[0] += max(0.0, mix(state, rate) - before - mixed)
    rate = math.log(K) / state.mixability[0] if state.mixability[0] > 0.0 else np.inf
    weigh(state, rate)


@kernel
def most_gained(state: PSIPSState) -> float:
    """The gains of the arm that has most."""
    most = -np.inf
    for gained in state.gains:
        most = max(most, gained)
    return most


@kernel
def mix(state: PSIPSState, rate: float) -> float:
    """log(mean exp(rate gains)) / rate: what mixing all arms gains; with an infinite rate, what the best has gained."""
    most = most_gained(state)
    if rate == np.inf:
        return most
    total = 0.0
    for gained in state.gains:
        total += math.exp(rate * (gained - most))
    return most + math.log(total / state.gains.shape[0]) / rate


@kernel
def weigh(state: PSIPSState, rate: float) -> None:
    """Weights in proportion to exp(rate gains); with an infinite rate, equal for the best and 0 for the others."""
    most = most_gained(state)
    total = 0.0
    for k in range(state.gains.shape[0]):
        if rate == np.inf:
            state.weights[k] = 1.0 if state.gains[k] == most else 0.0
        else:
            state.weights[k] = math.exp(rate * (state.gains[k] - most))
        total += state.weights[k]
    for k in range(state.gains.shape[0]):
        state.weights[k] /= total


@kernel
def update(
    state: PSIPSState, constants: PSIPSConstants, arm: int, ticket: FloatArray, outcome: FloatArray, observed: BoolArray
) -> None:
    """Add the sample and look whether to stop, where it is time."""
    counters = state.counters
    counters[TOTAL] += 1
    state.counts[arm] += 1
    d = state.factor.shape[0]
    if d == 0:
        for metric in range(outcome.shape[0]):
            state.sums[arm, metric] += outcome[metric] / constants.units[metric]
            state.means[arm, metric] = state.sums[arm, metric] / state.counts[arm]
        is_ready(state, constants)
    else:
        for i in range(d):
            state.x[i] = constants.contexts[arm, i]
            for j in range(d):
                state.gram[i, j] += constants.contexts[arm, i] * constants.contexts[arm, j]
            for metric in range(outcome.shape[0]):
                state.right[i, metric] += constants.contexts[arm, i] * (outcome[metric] / constants.units[metric])
        if counters[READY] == 1:
            add_outer_product(state.factor, state.reach, state.x)
        elif is_ready(state, constants):
            copy_into(state.factor, state.gram)
            factorise(state.factor, state.reach)
    if counters[READY] == 0:
        return
    if counters[STOPPING] == 1:
        settle_front(state, constants)
    elif constants.valid and counters[TOTAL] >= counters[NEXT_CHECK]:
        stop_if_proven(state, constants)
        counters[NEXT_CHECK] = counters[TOTAL] + max(constants.every, int(CHECK_GROWTH * counters[TOTAL]))


@kernel
def is_ready(state: PSIPSState, constants: PSIPSConstants) -> bool:
    """Find out whether the arms that span all dimensions have been sampled."""
    if state.counters[READY] == 0:
        for k in constants.first_arms:
            if state.counts[k] == 0:
                return False
        state.counters[READY] = 1
    return True


@kernel
def settle_front(state: PSIPSState, constants: PSIPSConstants) -> None:
    """Return the front that the draws agreed on."""
    if state.factor.shape[0] > 0:
        estimate(state, constants, state.normal, state.means)
    front = state.front[: state.counters[N_FRONT]]
    for k in range(state.status.shape[0]):
        state.status[k] = FRONT if state.on_front[k] == 1 else DOMINATED
        if state.on_front[k] == 0:
            lead = -np.inf
            for j in front:
                ahead = margin(j, k, state.means)
                if ahead > lead:
                    state.beaten_by[k], lead = j, ahead


@kernel
def log_det(state: PSIPSState) -> float:
    """log det(I + A / RHO)."""
    d = state.gram.shape[0]
    for i in range(d):
        for j in range(d):
            state.shifted[i, j] = state.gram[i, j] / RHO + (1.0 if i == j else 0.0)
    factorise(state.shifted, state.reach)
    total = 0.0
    for i in range(d):
        total += math.log(state.shifted[i, i])
    return total


@kernel
def width(state: PSIPSState, constants: PSIPSConstants, k: int, j: int, level: float) -> float:
    """Half the interval of the difference of two arms, in every metric; `level`: `log_det`, for contexts."""
    K, L = state.means.shape
    d = state.factor.shape[0]
    if d == 0:
        return pair_mixture(state.counts[k], state.counts[j], constants.delta / (K * max(K - 1, L)), 1.0, RHO)
    for i in range(d):
        state.column[i, 0] = constants.contexts[k, i] - constants.contexts[j, i]
    solve(state.factor, state.reach, state.column)
    a, b = 0.0, 0.0
    for i in range(d):
        a += (constants.contexts[k, i] - constants.contexts[j, i]) * state.column[i, 0]
        b += state.column[i, 0] * state.column[i, 0]
    return least_squares(a, b, level, constants.delta, 1.0, RHO, L)


@kernel
def stop_if_proven(state: PSIPSState, constants: PSIPSConstants) -> None:
    """Settle all arms if the intervals show each to be dominated, or within eps of optimal."""
    K, L = state.means.shape
    level = log_det(state) if state.factor.shape[0] > 0 else 0.0
    find_front(state, constants)
    for k in range(K):
        state.rival[k] = -1
        if state.on_front[k] == 0:
            for j in state.front[: state.counters[N_FRONT]]:
                ahead = margin(j, k, state.means)
                if ahead > 0.0 and ahead > width(state, constants, k, j, level):
                    state.rival[k] = j
                    break
    for k in range(K):
        if state.rival[k] >= 0:
            continue
        for j in range(K):
            if j == k or state.rival[j] >= 0:
                continue
            most = -np.inf
            for metric in range(L):
                most = max(most, state.means[k, metric] + constants.eps[metric] - state.means[j, metric])
            if most <= 0.0 or most < width(state, constants, k, j, level):
                return
    for k in range(K):
        state.status[k] = FRONT if state.rival[k] < 0 else DOMINATED
        state.beaten_by[k] = state.rival[k]


@allocating_kernel
def verdicts(state: PSIPSState, constants: PSIPSConstants) -> Verdicts:
    """Estimates, and intervals for each that hold at all times at level delta in all."""
    K, L = state.means.shape
    d = state.factor.shape[0]
    means = np.zeros((K, L))
    radii = np.full((K, L), np.inf)
    level = log_det(state) if d > 0 else 0.0
    values = state.means.copy()
    if d > 0 and state.counters[READY] == 1:
        estimate(state, constants, np.zeros((d, L)), values)
    for k in range(K):
        unit = np.inf
        if d == 0:
            if state.counts[k] > 0:
                unit = normal_mixture(state.counts[k], constants.delta / (K * L), 1.0, RHO)
        elif state.counters[READY] == 1:
            column = np.zeros((d, 1))
            for i in range(d):
                column[i, 0] = constants.contexts[k, i]
            solve(state.factor, state.reach, column)
            a, b = 0.0, 0.0
            for i in range(d):
                a += constants.contexts[k, i] * column[i, 0]
                b += column[i, 0] * column[i, 0]
            unit = least_squares(a, b, level, constants.delta, 1.0, RHO, L)
        for metric in range(L):
            means[k, metric] = values[k, metric] * constants.units[metric]
            if constants.valid and unit < np.inf:
                radii[k, metric] = unit * constants.units[metric]
    return scaled_verdicts(state.status, state.beaten_by, values, radii, means, radii, state.counts)


@kernel
def done(state: PSIPSState, constants: PSIPSConstants) -> bool:
    """Whether it has stopped: then all arms have their verdicts."""
    return state.status[0] != UNDECIDED


ALGORITHM = Algorithm(
    name="psips",
    summary="draw from the posterior; sample what disputes the front",
    paper="Kone, Jourdan, Kaufmann: Pareto set identification with posterior sampling, 2025",
    guarantee="fixed confidence: every Pareto-optimal arm is returned and every returned arm is within eps of "
    "optimal, with probability at least 1 - delta, if the noise is sigma-sub-Gaussian and, with model='linear', the "
    "means are linear in the contexts; not with stopping='published'",
    guarantees=True,
    setting="linear contexts, or arms without",
    settings=PSIPS,
    init=init,
    kernels=(
        Kernels(
            state=PSIPSState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            ranges={"counters": ("count", "code", "count", "count", "arms", "code")},
            intervals=True,
            accepts=Accepts(pending=True, unasked=True),
            takes_linear=True,
        ),
    ),
)

register(ALGORITHM)
