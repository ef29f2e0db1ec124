"""APE, adaptive Pareto exploration: measure the arm that may be optimal by most, or the one most in its way.

C. Kone, E. Kaufmann, L. Richert: Adaptive algorithms for relaxed Pareto set identification, NeurIPS 2023.
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
from ..kernels.decisions import DOMINATED, FRONT, UNDECIDED, verdicts_with_rivals
from ..kernels.dispatch import NO_TICKET, Verdicts
from ..kernels.widths import kaufmann_koolen_price, kaufmann_koolen_terms, mixture_terms, pair_width, tuned_rho
from .contract import Accepts, Algorithm, Kernels, Settings, Setup
from .ranges import setting
from .registry import register


@dataclass(frozen=True)
class APE(Settings):
    """Settings of APE.

    radius: "mixture": widths that hold for sub-Gaussian noise, narrower up to about a million samples of an arm;
        "kaufmann-koolen": those of the paper, with their exact constants, for normal noise.
    sharpest_at: the number of samples of an arm at which the mixture is narrowest.
    eps1: how near to optimal what is returned must be; None: eps, and never more.
    eps2: for goal="cover", by how much an optimal arm may be better than one that is returned; None: eps, and never
        more. Both in the metrics' own units, one number or one per metric.
    """

    radius: str = setting("mixture", choices=("mixture", "kaufmann-koolen"))
    sharpest_at: float = setting(100.0, above=0.0)
    eps1: float | tuple[float, ...] | None = setting(None, one_per="metric")
    eps2: float | tuple[float, ...] | None = setting(None, one_per="metric")


class APEConstants(NamedTuple):
    eps1: FloatArray  # (L,)
    eps2: FloatArray  # (L,)
    sigma: FloatArray  # (L,)
    price: float  # of the widths, see `pair_width`
    rho: float  # of the mixture; 0: Kaufmann and Koolen
    wanted: int  # number of arms that are asked for, or one of those below
    no_ticket: FloatArray = NO_TICKET


class APEState(NamedTuple):
    counts: IntArray  # (K,) samples of each arm
    sums: FloatArray  # (K, L) their sums
    means: FloatArray  # (K, L)
    spent: FloatArray  # (K,) what the widths of an arm's pairs take of its count, see `pair_width`
    spread: FloatArray  # (K,)
    blocker: IntArray  # (K,) an arm that may be better by more than eps1; -1: there is none, the arm is in OPT
    room: FloatArray  # (K,) M+ between the arm and `nearest`: at least the least M+ to any other
    nearest: IntArray  # (K,) that arm, or -1
    exact: BoolArray  # (K,) whether `room` is the least M+
    status: IntArray  # (K,) verdict on each arm
    beaten_by: IntArray  # (K,) who proved it dominated first, or -1
    counters: IntArray  # (4,) see below


ALL, COVER = 0, -1  # what is asked for, where it is not a number of arms

UNSEEN = 0  # arms without a sample
CANDIDATE = 1  # b, the arm outside OPT that has most room
UNSETTLED = 2  # for a cover: an arm that was not settled at the last test
FINISHED = 3  # 1: the verdicts stand


def init(settings: APE, setup: Setup) -> tuple[APEState, APEConstants]:
    """Start with no samples; judging starts when every arm has one."""
    K, L = setup.n_arms, setup.n_metrics
    slack = {}
    for name in ("eps1", "eps2"):
        value = getattr(settings, name)
        slack[name] = setup.eps.copy()
        if value is not None:
            slack[name] = checks.per_metric(f"{name} of APE", value, L) / setup.divisors
            if (slack[name] > setup.eps).any():
                raise InvalidInput(
                    f"{name} of APE must be at most eps: what is promised holds up to eps, got {value!r}"
                )
    alpha = setup.delta / (max(1, K * (K - 1) // 2) * L)  # each pair of arms, each metric
    mixture = settings.radius == "mixture"
    state = APEState(
        counts=np.zeros(K, np.int64),
        sums=np.zeros((K, L)),
        means=np.zeros((K, L)),
        spent=np.full(K, 0.0 if mixture else kaufmann_koolen_terms(1)[0]),
        spread=np.full(K, np.inf),
        blocker=np.full(K, -1, np.int64),
        room=np.full(K, np.inf),
        nearest=np.full(K, -1, np.int64),
        exact=np.ones(K, np.bool_),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        counters=np.array([K, -1, 0, 0], np.int64),
    )
    constants = APEConstants(
        eps1=slack["eps1"],
        eps2=slack["eps2"],
        sigma=setup.known_sigma("ape"),
        price=-2.0 * math.log(alpha) if mixture else 2.0 * kaufmann_koolen_price(alpha, 2),
        rho=tuned_rho(settings.sharpest_at, math.sqrt(alpha)) if mixture else 0.0,
        wanted=setup.goal if isinstance(setup.goal, int) else {"front": ALL, "cover": COVER}[setup.goal],
    )
    return state, constants


# Bounds on differences: by how much arm i is better than arm j in the metric where it is best against it


@kernel
def unit_width(state: APEState, constants: APEConstants, i: int, j: int) -> float:
    """The width of a pair's difference at noise scale 1."""
    return pair_width(constants.price, state.spent[i], state.spread[i], state.spent[j], state.spread[j])


@kernel
def upper_lead(state: APEState, constants: APEConstants, i: int, j: int, unit: float) -> float:
    """M+(i, j): at most so much. If it is negative, j dominates i for sure."""
    most = -np.inf
    for metric in range(constants.sigma.shape[0]):
        most = max(most, state.means[i, metric] - state.means[j, metric] + constants.sigma[metric] * unit)
    return most


@kernel
def lower_lead(state: APEState, constants: APEConstants, i: int, j: int, unit: float, slack: FloatArray) -> float:
    """M-(i, j) with `slack` added to i: at least so much. If it is positive, j is not better by slack everywhere."""
    most = -np.inf
    for metric in range(constants.sigma.shape[0]):
        difference = state.means[i, metric] - state.means[j, metric] + slack[metric]
        most = max(most, difference - constants.sigma[metric] * unit)
    return most


@kernel
def leads(state: APEState, constants: APEConstants, i: int, j: int) -> tuple[float, float, float, float]:
    """M+ and, with eps1, M- of (i, j); then those of (j, i). All four at once: half of what they take is the same."""
    unit = unit_width(state, constants, i, j)
    upper, lower, other_upper, other_lower = -np.inf, -np.inf, -np.inf, -np.inf
    for metric in range(constants.sigma.shape[0]):
        difference = state.means[i, metric] - state.means[j, metric]
        half, slack = constants.sigma[metric] * unit, constants.eps1[metric]
        upper = max(upper, difference + half)
        lower = max(lower, difference + slack - half)
        other_upper = max(other_upper, half - difference)
        other_lower = max(other_lower, slack - difference - half)
    return upper, lower, other_upper, other_lower


@kernel
def surely_covered(state: APEState, constants: APEConstants, i: int) -> bool:
    """Whether an arm dominates i for sure, or one of OPT does so when it is given eps2."""
    if state.room[i] < 0.0:
        return True
    for j in range(state.counts.shape[0]):
        if j == i:
            continue
        unit = unit_width(state, constants, i, j)
        if upper_lead(state, constants, i, j, unit) < 0.0:
            return True
        if state.blocker[j] < 0:
            least = np.inf
            for metric in range(constants.sigma.shape[0]):
                difference = state.means[j, metric] + constants.eps2[metric] - state.means[i, metric]
                least = min(least, difference - constants.sigma[metric] * unit)
            if least > 0.0:
                return True
    return False


@kernel
def choose(
    state: APEState, constants: APEConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Return b or c, whichever has fewer samples: the arm outside OPT with most room, and who stands in its way.

    First each arm once. Samples on their way count as if they were in.
    """
    K = state.counts.shape[0]
    if state.counters[UNSEEN] > 0:
        fewest = 0
        for k in range(1, K):
            if state.counts[k] + pending[k] < state.counts[fewest] + pending[fewest]:
                fewest = k
        return fewest, constants.no_ticket
    b = state.counters[CANDIDATE]
    c, least = b, np.inf
    for j in range(K):
        if j != b:
            lead = lower_lead(state, constants, b, j, unit_width(state, constants, b, j), constants.eps1)
            if lead < least:
                c, least = j, lead
    if state.counts[c] + pending[c] < state.counts[b] + pending[b]:
        return c, constants.no_ticket
    return b, constants.no_ticket


@kernel
def update(
    state: APEState,
    constants: APEConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Add the sample, compare the arm with all others, and test whether that is enough."""
    counters = state.counters
    state.counts[arm] += 1
    n = state.counts[arm]
    for metric in range(outcome.shape[0]):
        state.sums[arm, metric] += outcome[metric]
        state.means[arm, metric] = state.sums[arm, metric] / n
    if constants.rho > 0.0:
        state.spent[arm], state.spread[arm] = mixture_terms(n, constants.rho)
    else:
        state.spent[arm], state.spread[arm] = kaufmann_koolen_terms(n)
    if counters[FINISHED] == 1:
        return
    if counters[UNSEEN] == 0:
        compare(state, constants, arm)
        judge(state, constants)
    elif n == 1:
        counters[UNSEEN] -= 1
        if counters[UNSEEN] == 0:
            for k in range(state.counts.shape[0]):
                compare(state, constants, k)
            judge(state, constants)


@kernel
def compare(state: APEState, constants: APEConstants, arm: int) -> None:
    """Bring up to date all that a sample of one arm changes: what it is to the others, and they to it."""
    state.blocker[arm], state.nearest[arm] = -1, -1
    state.room[arm], state.exact[arm] = np.inf, True
    for j in range(state.counts.shape[0]):
        if j == arm:
            continue
        upper, lower, other_upper, other_lower = leads(state, constants, arm, j)
        if upper < state.room[arm]:
            state.room[arm], state.nearest[arm] = upper, j
        if state.blocker[arm] < 0 and lower <= 0.0:
            state.blocker[arm] = j

        if other_upper < 0.0:
            beat(state, constants, arm, j)
        if other_upper <= state.room[j]:
            state.room[j], state.nearest[j] = other_upper, arm
        elif state.nearest[j] == arm:  # another one may be nearer now: `judge` looks if it matters
            state.room[j], state.exact[j] = other_upper, False
        if other_lower <= 0.0:
            if state.blocker[j] < 0:
                state.blocker[j] = arm
        elif state.blocker[j] == arm:
            state.blocker[j] = find_blocker(state, constants, j)
    if state.room[arm] < 0.0:
        beat(state, constants, state.nearest[arm], arm)


@kernel
def beat(state: APEState, constants: APEConstants, winner: int, loser: int) -> None:
    """Note who was the first to dominate an arm for sure."""
    if state.beaten_by[loser] < 0:
        state.beaten_by[loser] = winner
        if constants.wanted == ALL:  # else it may be returned all the same, being within eps1
            state.status[loser] = DOMINATED


@kernel
def find_blocker(state: APEState, constants: APEConstants, i: int) -> int:
    """An arm that may be better than i by more than eps1, or -1."""
    for j in range(state.counts.shape[0]):
        if j != i and lower_lead(state, constants, i, j, unit_width(state, constants, i, j), constants.eps1) <= 0.0:
            return j
    return -1


@kernel
def judge(state: APEState, constants: APEConstants) -> None:
    """Find b, the first of the arms outside OPT with most room, and see whether what is asked for is proven."""
    K = state.counts.shape[0]
    counters = state.counters
    while True:
        b, n_optimal = -1, 0
        for i in range(K):
            if state.blocker[i] < 0:
                n_optimal += 1
            elif b < 0 or state.room[i] > state.room[b]:
                b = i
        if b < 0 or state.exact[b]:
            break
        # room is never too small: whoever has most of it is looked at more closely, until nothing changes
        state.room[b], state.exact[b] = np.inf, True
        for j in range(K):
            if j != b:
                lead = upper_lead(state, constants, b, j, unit_width(state, constants, b, j))
                if lead < state.room[b]:
                    state.room[b], state.nearest[b] = lead, j
    counters[CANDIDATE] = b
    if (
        b < 0
        or state.room[b] < 0.0  # all outside OPT are dominated
        or (constants.wanted > 0 and n_optimal >= constants.wanted)
        or (constants.wanted == COVER and all_settled(state, constants))
    ):
        counters[FINISHED] = 1
        for i in range(K):
            if constants.wanted == ALL:
                state.status[i] = FRONT if state.beaten_by[i] < 0 else DOMINATED
            elif state.blocker[i] < 0:
                state.status[i] = FRONT
            elif state.beaten_by[i] >= 0:
                state.status[i] = DOMINATED


@kernel
def all_settled(state: APEState, constants: APEConstants) -> bool:
    """Whether every arm is in OPT or covered for sure; starts from the one that was not, so as to find out soon."""
    K = state.counts.shape[0]
    for step in range(K):
        i = (state.counters[UNSETTLED] + step) % K
        if state.blocker[i] >= 0 and not surely_covered(state, constants, i):
            state.counters[UNSETTLED] = i
            return False
    return True


@allocating_kernel
def verdicts(state: APEState, constants: APEConstants) -> Verdicts:
    """Means with intervals that hold whenever the widths of all pairs do; before the end only dominated arms are told.

    Those widths come from a bound on the sum of two arms' errors: one of them alone has no more, whoever the other is.
    """
    K, L = state.sums.shape
    radii = np.full((K, L), np.inf)
    cheapest = 0
    second = np.inf if K > 1 else state.spent[0]
    for k in range(1, K):
        if state.spent[k] < state.spent[cheapest]:
            cheapest, second = k, state.spent[cheapest]
        else:
            second = min(second, state.spent[k])
    for k in range(K):
        partner = second if k == cheapest else state.spent[cheapest]
        if state.counts[k] > 0:
            unit = math.sqrt((constants.price + state.spent[k] + partner) * state.spread[k])
            for metric in range(L):
                radii[k, metric] = constants.sigma[metric] * unit
    beaten_by = state.beaten_by.copy()
    for k in range(K):
        if state.status[k] == FRONT:
            beaten_by[k] = -1
    return verdicts_with_rivals(state.status, beaten_by, state.means.copy(), radii, state.counts)


@kernel
def done(state: APEState, constants: APEConstants) -> bool:
    """Whether what is asked for is proven."""
    return state.counters[FINISHED] == 1


ALGORITHM = Algorithm(
    name="ape",
    summary="measure the arm that may be optimal by most, or who stands in its way; decide by widths of pairs",
    paper="Kone, Kaufmann, Richert: Adaptive algorithms for relaxed Pareto set identification, 2023",
    guarantee="fixed confidence: every Pareto-optimal arm is returned and every returned arm is within eps of optimal "
    "(goal 'cover': every Pareto-optimal arm is at most eps better than a returned one; goal k: at least k arms within "
    "eps of optimal, or all of the front), with probability at least 1 - delta, if the noise is sigma-sub-Gaussian "
    "(radius='kaufmann-koolen': normal) and independent between samples",
    guarantees=True,
    settings=APE,
    init=init,
    kernels=(
        Kernels(
            state=APEState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            ranges={"counters": ("arms", "arm", "arm", "code")},
            intervals=True,
            accepts=Accepts(pending=True, unasked=True),
        ),
    ),
)

register(ALGORITHM)
