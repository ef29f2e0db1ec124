"""Scout for arms that have nothing to do with one another: each arm is judged by its own samples.

All that is kept grows with the number of arms, never with that of pairs; where sigma is unknown, with that of outcomes
too, which are paired by their numbers (`kernels/series.py`). A heap has the most ambiguous arm on top, a
tree (`tree.py`) finds the two rivals that matter to an arm, and first samples (`pilots.py`) settle who may spend how
much.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...kernels.arrays import BoolArray, FloatArray, IntArray, SmallInts, arm_at
from ...kernels.compile import allocating_kernel, kernel, short_kernel
from ...kernels.decisions import (
    DOMINATED,
    DOUBTFUL,
    FRONT,
    GONE,
    PRESENT,
    UNDECIDED,
    cost_of,
    is_there,
    margin,
)
from ...kernels.dispatch import NO_TICKET, Verdicts
from ...kernels.evidence import log_sum, note_value
from ...kernels.heap import push, remove, set_key
from ...kernels.noise import (
    ROUNDING,
    NoiseModel,
    Samples,
    bound_by_splits,
    count_in,
    is_paired,
    log_by_number,
    pair_evidence,
    radius,
    ranked_evidence,
    says_nothing,
    variance_of,
)
from ...kernels.paired import scales_of
from ...kernels.series import Series, keep, no_series, with_room
from ...kernels.split import prices_by_count, split_table
from ...laws import BOUNDS, FEW_VALUES, NORMAL, SIGMA
from ..contract import RESERVE, Accepts, Kernels, Setup, shares_of
from .guide import Fit, Guide, guide_by, no_guide, room_for
from .pilots import (
    BUDGET_BY_PILOT,
    BY_PILOT,
    Pilots,
    Sharing,
    count_unpiloted,
    directions,
    list_if_few,
    no_pilots,
    note_pilot,
    pilots_are_in,
    share_against,
)
from .tree import (
    BEATEN,
    ESCAPES,
    SMALL,
    Tree,
    build,
    can_beat,
    empty_tree,
    find_rival,
    height_of,
    largest_term,
    must_be_escaped,
    note_change,
    note_leaving,
    prepare,
    surely_escaped,
)

#: Scales of the mixture: the largest is 16 sigma^2 / eps^2 samples, with the median of the arms' sigmas that are not 0
#: (4096 where eps is 0, 1024 where sigma is unknown), each next an eighth.
N_SCALES = 4
SCALE_WEIGHTS = (0.3, 0.3, 0.25, 0.15)
#: Rates of the mixture for outcomes with bounds, evenly weighted.
RATES = tuple(0.8 / 2.0**r for r in range(10))
#: An arm has to be escaped with this share of what its rival may spend. Of the rest half is for doubtful ones, half for
#: those who came after looking: of the latter 1 / 2^r for the r-th addition after the rival.
TO_ESCAPE = 0.95
IF_DOUBTFUL = IF_LATER = RESERVE / 2.0
#: Beyond this regret_weight there is no pilot: one more sample of every arm costs more regret than it saves.
MOST_WEIGHT_WITH_PILOT = 0.95
#: Where noise is normal of unknown scale outcomes are paired by their numbers, if there are pilots and so many arms at
#: most at the beginning: what is kept grows with the outcomes then.
MOST_PAIRED = 5000
#: So much of what a pair may spend is then for evidence that looks at each arm by itself.
ALONE = 0.1
#: The least scale of evidence on pairs, unless told otherwise: more is safer where noise is skewed.
CAUTION = 16.0
#: What arms are ranked by there may be off by so much.
OFF = 3.0
#: An arm whose evidence falls short is tested again after this share of the samples it seems to lack.
PATIENCE = 0.1
#: The arm that is measured is measured so many times in a row, as a share of its samples, ...
BATCH = 0.03
#: ... but for no more than this share of what seems to be lacking.
BATCH_OF_LACKING = 0.25
#: From this share of the threshold on the verdict with more evidence is the nearer one; before, that which seems to
#: lack fewer samples: evidence below 0 is mostly price, and says nothing of what is to come.
TELLING = 0.5
#: What lacks is worked out as if differences were larger than they look by so many deviations, and thresholds higher.
HOPE = 1.0
PRICE = 3.0
#: All arms are looked at again after so many more samples, as a share of them; with MANY arms, more.
REFRESH_AFTER = 0.1
REFRESH_MANY_AFTER = 0.25
MANY = 5000
#: The tree is built again after so many more samples, as a share, or when so many of its arms stand no more.
BUILD_AFTER = 0.1
BUILD_AT_LOSS = 0.25
#: How often the most ambiguous arm is looked for after a sample, while what is known of it is out of date.
LOOKS = 8
#: A champion whose evidence is so far below what is needed that it cannot make a difference is left out of the sum.
NO_DIFFERENCE = 6.0
LOG_16 = math.log(16.0)
#: Keys of arms of which nothing can be said: they come first, or last if they have had their part. Others lie between.
FIRST, LAST = -1e12, 1e12


class ScoutConstants(NamedTuple):
    eps: FloatArray  # (L,)
    model: NoiseModel
    sharing: Sharing
    guide: Guide
    looked: IntArray  # (K,) e: the arm came with the e-th addition after looking; 0: it did not
    noisiest: FloatArray  # (L,) the largest squared sigma
    e_values: bool  # whether the evidence of all metrics may be added up; p-values may not
    first_pulls: int  # samples of each arm before there is anything to compare
    cost: FloatArray  # (K,) of a sample, on average 1
    regret_weight: float
    no_ticket: FloatArray = NO_TICKET


class ScoutState(NamedTuple):
    presence: SmallInts  # (K,) whether the arm is there
    pulls: IntArray  # (K,) samples taken of each arm
    pilots: Pilots
    fit: Fit
    thresholds: FloatArray  # (K,) log(1 / (share of the arm times delta)): what an arm's evidence must reach
    samples: Samples  # all but the pilots
    series: Series  # these one by one, where they are paired by their numbers
    later: Samples  # ((1 + E) K, or 0) row e K + k: those of arm k asked for after the e-th addition after looking
    era: IntArray  # (1,) after how many of these the sample was asked for that comes in next
    best: SmallInts  # (K,) who beats the arm most clearly, as of the last look; -1: nobody
    worst: SmallInts  # (K,) whom it escapes least clearly, as of the last look
    route: SmallInts  # (K,) ESCAPES or BEATEN: the verdict that seems nearer
    keys: FloatArray  # (K,) evidence for it less the threshold, as of the last look; least first
    marks: IntArray  # (K,) what tells that the last look is out of date
    heap: SmallInts  # (K,) the undecided arms that are there, by their keys
    position: SmallInts  # (K,) of each of them in the heap
    gaps: FloatArray  # (K,) estimated gaps as of the last look
    mean_gap: FloatArray  # (1,)
    test_at: IntArray  # (K,) total number of samples before which the arm is not tested again
    status: SmallInts  # (K,)
    beaten_by: SmallInts  # (K,)
    tree: Tree
    counters: IntArray  # (11,) see below


(
    TOTAL,  # samples in all
    N_UNDECIDED,  # arms in the heap
    N_THERE,  # arms that are there
    N_DOUBTFUL,
    REFRESH_AT,  # total number of samples at the next look at all arms
    BUILD_AT,  # ... at which the tree is built again
    N_LEFT,  # arms of the tree that stand no more
    CURSOR,  # up to here all arms have their first samples
    CURRENT,  # the arm that is measured several times in a row
    IN_QUESTION,  # the arm for which that is done
    LEFT,  # how many times it is still to be asked for
) = range(11)
ROLES = ("count", "arms", "arms", "arms", "count", "count", "arms", "count", "arm", "arm", "count")


def init(
    regret_weight: float, setup: Setup, pilots: bool = True, guided: bool = False, caution: float | None = None
) -> tuple[ScoutState, ScoutConstants]:
    """Fix the scales before the data, and start with every arm undecided.

    Without pilots nobody has to be measured first: that is for whoever chooses arms. guided: by the contexts. caution:
    the least scale where outcomes are paired.
    """
    K, L, R = setup.n_arms, setup.n_metrics, N_SCALES
    bounds = np.tile([-np.inf, np.inf], (L, 1)) if setup.bounds is None else setup.bounds
    sigma = np.full((K, L), np.nan) if setup.sigma is None else setup.sigma
    told = ~np.isnan(sigma[0])
    noise = np.where(told, SIGMA, np.where(np.isfinite(bounds).all(axis=1), BOUNDS, NORMAL))
    sigma = np.where(told, sigma, 0.0)
    # of the arms there at the beginning: evidence on a pair must not change its scales when others come
    usual = np.array(
        [np.median(of_metric[of_metric > 0]) if of_metric.any() else 0.0 for of_metric in sigma[setup.entered == 0].T]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        top = np.where((setup.eps > 0) & (usual > 0), 16.0 * (usual / setup.eps) ** 2, np.where(told, 4096.0, 1024.0))
    rhos = top[:, None] / 8.0 ** np.arange(R)
    unknown = bool((noise == NORMAL).any())
    first = pilots
    pilots = pilots and regret_weight <= MOST_WEIGHT_WITH_PILOT
    # whoever comes later must not change the test of a pair
    paired = unknown and pilots and bool((setup.entered == 0).sum() <= MOST_PAIRED)
    scales = scales_of(CAUTION if caution is None else caution)
    guide = no_guide(K)
    if guided and pilots and setup.contexts is not None:
        guide = guide_by(setup.contexts, setup.entered)
    n_rows = int(K * (1 + setup.looked.max())) if setup.looked.any() else 0
    companions = np.bincount(setup.entered)
    n_additions = len(companions)
    shares = np.ones(n_additions)
    shares[setup.entered] = shares_of(setup.entered)
    constants = ScoutConstants(
        eps=setup.eps.copy(),
        model=NoiseModel(
            noise=noise.astype(np.int64),
            sigma=np.tile(sigma, (1 + int(setup.looked.max()), 1)),
            exact=setup.exact.copy(),
            silent=np.zeros((K * (1 + int(setup.looked.max())), L), np.int8),
            lows=np.where(noise == BOUNDS, bounds[:, 0], 0.0),
            ranges=np.where(noise == BOUNDS, bounds[:, 1] - bounds[:, 0], 1.0),
            rates=np.array(RATES),
            log_rate_weights=np.full(len(RATES), -math.log(len(RATES))),
            rhos=rhos,
            log_weights=np.log(SCALE_WEIGHTS),
            by_count=prices_by_count(rhos),
            split_table=split_table(),
            log_alone=math.log(ALONE) if paired else 0.0,
            paired_rhos=scales,
            log_paired_weights=np.full(len(scales), math.log((1.0 - ALONE) / len(scales))),
        ),
        sharing=Sharing(
            delta=setup.delta,
            by_pilot=BY_PILOT if pilots else 0.0,
            usual=usual,
            directions=directions(L),
            entered=setup.entered.copy(),
            companions=companions.astype(float),
            even=shares,
        ),
        guide=guide,
        looked=setup.looked.copy(),
        noisiest=sigma.max(axis=0) ** 2,
        e_values=not unknown,
        first_pulls=1 + pilots + unknown if first else 0,
        cost=setup.cost / setup.cost.mean(),
        regret_weight=regret_weight,
    )
    thresholds = -np.log(shares[setup.entered] * setup.delta)
    state = ScoutState(
        presence=np.full(K, PRESENT, np.int8),
        pulls=np.zeros(K, np.int64),
        pilots=no_pilots(K, L, n_additions),
        fit=room_for(guide),
        thresholds=thresholds - (math.log(1.0 - BUDGET_BY_PILOT) if pilots else 0.0),
        samples=no_samples(K, noise),
        series=no_series(K if paired else 0, L),
        later=no_samples(n_rows, noise),
        era=np.zeros(1, np.int64),
        best=np.full(K, -1, np.int32),
        worst=np.full(K, -1, np.int32),
        route=np.zeros(K, np.int8),
        keys=np.full(K, FIRST),
        marks=np.zeros(K, np.int64),
        heap=np.arange(K, dtype=np.int32),
        position=np.arange(K, dtype=np.int32),
        gaps=np.zeros(K),
        mean_gap=np.zeros(1),
        test_at=np.zeros(K, np.int64),
        status=np.full(K, UNDECIDED, np.int8),
        beaten_by=np.full(K, -1, np.int32),
        tree=empty_tree(K, L, R),
        counters=np.array([0, K, K, 0, 0, 0, 0, 0, -1, -1, 0], np.int64),
    )
    count_unpiloted(state.pilots, constants.sharing, state.presence)
    if not pilots:
        for addition in range(n_additions):
            list_if_few(state.pilots, constants.sharing, addition)
    return state, constants


def no_samples(n_rows: int, noise: IntArray) -> Samples:
    """Return what is kept of so many arms that were not measured."""
    L = len(noise)
    counts, centres, sums, means = np.zeros((4, n_rows, L))
    return Samples(
        counts=counts,
        centres=centres,
        sums=sums,
        means=means,
        squares=np.zeros((n_rows if (noise == NORMAL).any() else 0, L)),
        spreads=np.zeros((n_rows if (noise == BOUNDS).any() else 0, L)),
        seen=np.zeros((L, FEW_VALUES + 1)),
        n_seen=np.zeros(L, np.int64),
    )


# Arms that came after looking


@kernel
def era_of(entered: IntArray, looked: IntArray, i: int, j: int) -> int:
    """Which samples count for a pair: those asked for after this addition after looking; 0: all.

    What was seen before may be why the one that came later was picked.
    """
    return looked[i] if entered[i] > entered[j] else looked[j]


@kernel
def count_later(state: ScoutState, constants: ScoutConstants, arm: int, metric: int, value: float) -> None:
    """Count a sample for the pairs with arms that came after looking, before it was asked for."""
    K = state.pulls.shape[0]
    for era in range(1, min(state.era[0] + 1, state.later.counts.shape[0] // K)):
        note_value(state.later.seen, state.later.n_seen, metric, value)
        count_in(state.later, constants.model, era * K + arm, metric, value)


@kernel
def count_sample(state: ScoutState, constants: ScoutConstants, arm: int, metric: int, value: float) -> None:
    """Add an observation to the evidence."""
    if is_paired(constants.model, metric):
        keep(state.series, arm, metric, int(state.samples.counts[arm, metric]), value)
        K = state.pulls.shape[0]
        for era in range(state.era[0] + 1, state.later.counts.shape[0] // K):
            if state.later.counts[era * K + arm, metric] > 0.0:
                state.series.mixed[arm] = 1
    count_in(state.samples, constants.model, arm, metric, value)
    if state.era[0] > 0:
        count_later(state, constants, arm, metric, value)


def silence(constants: ScoutConstants, silent: BoolArray) -> ScoutConstants:
    """Say of which arms which metrics are sums with a part that is no evidence (K, L)."""
    known = np.tile(silent.astype(np.int8), (len(constants.model.silent) // len(silent), 1))
    return constants._replace(model=constants.model._replace(silent=known))


def reserve(state: ScoutState, rounds: int) -> ScoutState:
    """Return the state with room for `rounds` more outcomes, where they are kept one by one."""
    if not len(state.series.chunks):
        return state
    return state._replace(series=with_room(state.series, rounds))


# Choosing


@short_kernel
def choose(
    state: ScoutState, constants: ScoutConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Every arm a few times (pilots, and what it takes to compare); then the most ambiguous pair's more telling arm."""
    counters = state.counters
    if counters[LEFT] > 0:
        counters[LEFT] -= 1
        return counters[CURRENT], constants.no_ticket
    return choose_another(state, constants, pending), constants.no_ticket


@kernel
def choose_another(state: ScoutState, constants: ScoutConstants, pending: IntArray) -> int:
    """The next arm, and how many times in a row."""
    counters, K = state.counters, state.pulls.shape[0]
    for place in range(counters[CURSOR], K * constants.first_pulls):
        k = place % K
        if is_there(state.presence[k]) and state.pulls[k] + pending[k] <= place // K:
            return k
    k = arm_at(state.heap, 0)
    arm, rival = k, rival_of(state, k)
    measurable = rival >= 0 and is_there(state.presence[rival])
    era = era_of(constants.sharing.entered, constants.looked, k, rival) if measurable else 0
    if measurable and is_rather(state, constants, rival, k, pending, era):
        arm = rival
    counters[CURRENT], counters[IN_QUESTION] = arm, k
    counters[LEFT] = batch_of(state, arm, k) - 1
    note_pending(state, k, rival, pending)
    return arm


@short_kernel
def rival_of(state: ScoutState, k: int) -> int:
    """The other arm of the pair that decides k; -1: nobody."""
    return arm_at(state.best if state.route[k] == BEATEN else state.worst, k)


@short_kernel
def is_rather(state: ScoutState, constants: ScoutConstants, j: int, k: int, pending: IntArray, era: int) -> bool:
    """Whether to measure j rather than k: it tells more for its cost, or has fewer samples, where these are paired."""
    if constants.model.log_alone < 0.0:
        n_j, n_k = counted(state, j, era) + pending[j], counted(state, k, era) + pending[k]
        return n_j < n_k or (n_j == n_k and constants.cost[j] < constants.cost[k])
    return gain(state, constants, j, pending, era) > gain(state, constants, k, pending, era)


@short_kernel
def counted(state: ScoutState, arm: int, era: int) -> float:
    """How many samples of an arm count: of the metric that has the fewest."""
    if era == 0:
        return least_count(state.samples.counts, arm)
    return least_count(state.later.counts, era * state.pulls.shape[0] + arm)


@kernel
def gain(state: ScoutState, constants: ScoutConstants, arm: int, pending: IntArray, era: int) -> float:
    """By how much one more sample shrinks the variance of an arm's mean, per cost."""
    n = counted(state, arm, era) + pending[arm]
    if n == 0.0:
        return np.inf
    cost = cost_of(constants.cost[arm], state.gaps[arm], state.mean_gap[0], constants.regret_weight)
    return noisiness(constants.model.sigma, constants.noisiest, arm) / (n * (n + 1.0) * cost)


@short_kernel
def least_count(counts: FloatArray, arm: int) -> float:
    """Observations of the metric that has the fewest."""
    n = np.inf
    for metric in range(counts.shape[1]):
        n = min(n, counts[arm, metric])
    return n


@short_kernel
def noisiness(sigma: FloatArray, noisiest: FloatArray, arm: int) -> float:
    """Squared sigma over that of the noisiest arm, on average over the metrics."""
    L, total = sigma.shape[1], 0.0
    for metric in range(L):
        largest = noisiest[metric]
        total += sigma[arm, metric] ** 2 / largest if largest > 0.0 else 1.0
    return total / L


@short_kernel
def batch_of(state: ScoutState, arm: int, k: int) -> int:
    """How many times in a row an arm is measured for k."""
    n, progress = least_count(state.samples.counts, arm), state.keys[k] + state.thresholds[k]
    batch = BATCH * n
    if progress > 0.0:
        batch = min(batch, BATCH_OF_LACKING * n * (state.thresholds[k] / progress - 1.0))
    if not FIRST / 2 < state.keys[k] < LAST / 2:
        batch = 1.0
    return max(1, int(batch))


@short_kernel
def note_pending(state: ScoutState, k: int, rival: int, pending: IntArray) -> None:
    """Let what is on its way count as if it said what the rest said: who asks again is sent elsewhere."""
    on_the_way = pending[k] + (pending[rival] if rival >= 0 else 0)
    if on_the_way == 0:
        return
    key, progress = state.keys[k], state.keys[k] + state.thresholds[k]
    if not FIRST / 2 < key < LAST / 2:
        key += 1.0
    elif progress > 0.0 and rival >= 0:
        key = progress * (1.0 + on_the_way / (state.pulls[k] + state.pulls[rival])) - state.thresholds[k]
    set_key(state.heap, state.position, state.keys, k, key, state.counters[N_UNDECIDED])


# Taking in


@short_kernel
def update(
    state: ScoutState,
    constants: ScoutConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Take in the outcome, look at the arms it concerns, and decide what is proven."""
    counters = state.counters
    counters[TOTAL] += 1
    state.pulls[arm] += 1
    n_enough = 0  # metrics with enough different values, from now on
    for metric in range(outcome.shape[0]):
        if observed[metric]:
            n_enough += note_value(state.samples.seen, state.samples.n_seen, metric, outcome[metric])
            if constants.sharing.by_pilot > 0.0 and math.isnan(state.pilots.first[arm, metric]):
                state.pilots.first[arm, metric] = outcome[metric]
                note_pilot(
                    state.pilots,
                    constants.sharing,
                    constants.guide,
                    state.fit,
                    constants.model.noise,
                    constants.model.sigma,
                    state.presence,
                    state.thresholds,
                    arm,
                )
            else:
                count_sample(state, constants, arm, metric, outcome[metric])
    if counters[N_UNDECIDED] > 0 and state.tree.size[0] > SMALL:
        note_change(state.tree, state.samples, constants.model, arm)
    goes_on = arm == counters[CURRENT] and counters[LEFT] > 0 and counters[TOTAL] < counters[REFRESH_AT]
    if n_enough > 0 or not goes_on:
        reconsider(state, constants, arm, n_enough > 0)


@kernel
def reconsider(state: ScoutState, constants: ScoutConstants, arm: int, enough: bool) -> None:
    """Look at the arms that the samples of an arm concern, and now and then at all; then at the most ambiguous one.

    enough: what was not relied on so far says something now.
    """
    counters = state.counters
    advance_cursor(state, constants)
    if counters[N_UNDECIDED] == 0 or counters[TOTAL] < constants.first_pulls * counters[N_THERE]:
        return  # there is nothing to decide, or nothing to compare yet
    at_all = enough or counters[TOTAL] >= counters[REFRESH_AT]
    if at_all or counters[TOTAL] >= counters[BUILD_AT] or counters[N_LEFT] > BUILD_AT_LOSS * state.tree.size[0]:
        renew_tree(state, constants)
    n = state.tree.size[0] if at_all else 2
    for step in range(n + LOOKS):
        if step >= n:
            if counters[N_UNDECIDED] == 0:
                break
            k = arm_at(state.heap, 0)
            if state.marks[k] == mark_of(state, k):
                break  # what is known of it is up to date
        elif at_all:
            k = arm_at(state.tree.arms, step)
        else:
            k = arm
            if step == 0:
                k = counters[IN_QUESTION]
                if arm != counters[CURRENT] or arm == k:
                    continue
        if waits(state, k):
            look(state, constants, k)
        elif at_all and state.status[k] == UNDECIDED and is_beaten(state, constants, k):
            eliminate(state, k)  # it left, and had to be escaped
    if at_all:
        note_gaps(state)


@short_kernel
def note_gaps(state: ScoutState) -> None:
    """Note the mean gap, and when to look at all arms again."""
    counters, K, total = state.counters, state.pulls.shape[0], 0.0
    for k in range(K):
        total += state.gaps[k]
    state.mean_gap[0] = total / K
    after = REFRESH_AFTER if K <= MANY else REFRESH_MANY_AFTER
    counters[REFRESH_AT] = counters[TOTAL] + max(1, counters[N_UNDECIDED], int(after * counters[TOTAL]))


@short_kernel
def advance_cursor(state: ScoutState, constants: ScoutConstants) -> None:
    """Pass the arms that have their first samples."""
    K, cursor = state.pulls.shape[0], state.counters[CURSOR]
    while cursor < K * constants.first_pulls:
        k = cursor % K
        if is_there(state.presence[k]) and state.pulls[k] <= cursor // K:
            break
        cursor += 1
    state.counters[CURSOR] = cursor


@short_kernel
def waits(state: ScoutState, k: int) -> bool:
    """Whether an arm is in the heap."""
    return state.status[k] == UNDECIDED and is_there(state.presence[k])


@kernel
def renew_tree(state: ScoutState, constants: ScoutConstants) -> None:
    """Build the tree of the arms that stand."""
    build(state.tree, state.samples, constants.model, state.status, state.presence)
    state.counters[N_LEFT] = 0
    state.counters[BUILD_AT] = state.counters[TOTAL] + max(8, int(BUILD_AFTER * state.counters[TOTAL]))


@kernel
def mark_of(state: ScoutState, k: int) -> int:
    """Changes when k or one of its two rivals is measured, or a rival stands no more."""
    mark = state.pulls[k]
    for rivals in (state.best, state.worst):
        j = arm_at(rivals, k)
        if j >= 0:
            mark += state.pulls[j] + (state.status[j] == DOMINATED) * (1 << 40)
    return mark


@kernel
def look(state: ScoutState, constants: ScoutConstants, k: int) -> None:
    """Find the rivals that matter to k, decide if that is proven, else say how near it is."""
    prepare(state.tree, state.samples, constants.model, k)
    threshold = state.thresholds[k]
    best = find(state, constants, k, BEATEN)
    beaten, escaped, worst = -np.inf, np.inf, best
    state.gaps[k] = 0.0
    if best >= 0:
        state.gaps[k] = margin(best, k, state.samples.means)
        beaten = beaten_by(state, constants, k, best)
        if beaten >= TELLING * threshold:
            escaped = held_by(state, constants, k, best)
    if escaped >= min(beaten, threshold):  # else it is beaten, if anything: whom it escapes least does not matter
        worst = find(state, constants, k, ESCAPES)
        escaped = held_by(state, constants, k, worst) if worst >= 0 else np.inf
    state.best[k], state.worst[k] = best, worst
    if state.counters[TOTAL] >= state.test_at[k] and max(beaten, escaped) >= threshold - off(constants):
        if decide(state, constants, k, beaten, escaped):
            return
        worst = arm_at(state.worst, k)  # one that is harder to escape may have been found
        escaped = held_by(state, constants, k, worst) if worst >= 0 else np.inf
    route = BEATEN if best >= 0 and beaten > escaped else ESCAPES
    if best >= 0 and worst >= 0 and max(beaten, escaped) < TELLING * threshold:
        lacks_to_be_beaten = lacking(state.samples, constants.model, constants.eps, threshold, k, best, BEATEN)
        route = (
            BEATEN
            if lacks_to_be_beaten < lacking(state.samples, constants.model, constants.eps, threshold, k, worst, ESCAPES)
            else ESCAPES
        )
    state.route[k] = route
    state.marks[k] = mark_of(state, k)
    key = key_of(state, constants, k, beaten if route == BEATEN else escaped)
    set_key(state.heap, state.position, state.keys, k, key, state.counters[N_UNDECIDED])


@short_kernel
def find(state: ScoutState, constants: ScoutConstants, k: int, route: int) -> int:
    """Who matters most to k for one of the two verdicts; who did at the last look is looked at first."""
    guess = arm_at(state.best if route == BEATEN else state.worst, k)
    tree, model, eps = state.tree, constants.model, constants.eps
    return find_rival(tree, state.samples, model, eps, state.status, state.presence, k, route, guess)


@kernel
def is_beaten(state: ScoutState, constants: ScoutConstants, k: int) -> bool:
    """Whether it is proven that k is dominated, whether or not it is there."""
    prepare(state.tree, state.samples, constants.model, k)
    state.best[k] = find(state, constants, k, BEATEN)
    return lacks_against(state, constants, k) <= 0.0


@short_kernel
def key_of(state: ScoutState, constants: ScoutConstants, k: int, progress: float) -> float:
    """By what an arm is ranked: the least comes first.

    Of an arm of which nothing can be said yet, or whose rival cannot be measured, more samples may be of no avail: it
    comes first, but has no claim to more than an equal part of all samples.
    """
    rival = rival_of(state, k)
    silent = progress == -np.inf or (rival >= 0 and not is_there(state.presence[rival]))
    for metric in range(state.samples.counts.shape[1]):
        silent = (
            silent or state.samples.counts[k, metric] == 0.0 or says_nothing(state.samples, constants.model, k, metric)
        )
    if silent:
        had_its_part = state.pulls[k] * state.counters[N_THERE] > state.counters[TOTAL]
        return (LAST if had_its_part else FIRST) + state.pulls[k]
    return min(max(progress - state.thresholds[k], FIRST / 4), LAST / 4)


@kernel
def beats(samples: Samples, model: NoiseModel, k: int, j: int) -> float:
    """Log evidence that j is better than k in every metric, to rank by."""
    least = np.inf
    for metric in range(samples.means.shape[1]):
        lead = samples.means[j, metric] - samples.means[k, metric]
        least = min(least, ranked_evidence(samples, model, j, k, metric, lead))
    return least


@kernel
def escapes(samples: Samples, model: NoiseModel, eps: FloatArray, k: int, j: int) -> float:
    """Log evidence that j is not better than k by eps everywhere, of the metric that shows most; to rank by."""
    most = -np.inf
    for metric in range(samples.means.shape[1]):
        lead = samples.means[k, metric] + eps[metric] - samples.means[j, metric]
        most = max(most, ranked_evidence(samples, model, k, j, metric, lead))
    return most


@short_kernel
def beaten_by(state: ScoutState, constants: ScoutConstants, k: int, j: int) -> float:
    """`beats`, by the samples that count for the two."""
    era = era_of(constants.sharing.entered, constants.looked, k, j)
    if era == 0:
        return beats(state.samples, constants.model, k, j)
    first = era * state.pulls.shape[0]
    return beats(state.later, constants.model, first + k, first + j)


@short_kernel
def held_by(state: ScoutState, constants: ScoutConstants, k: int, j: int) -> float:
    """`escapes`, by the samples that count for the two, with the share with which j has to be escaped."""
    entered, looked = constants.sharing.entered, constants.looked
    share = log_share_to_escape(state.presence, state.thresholds, constants.sharing.delta, entered, looked, k, j)
    era = era_of(entered, looked, k, j)
    if era == 0:
        return escapes(state.samples, constants.model, constants.eps, k, j) + share
    first = era * state.pulls.shape[0]
    return escapes(state.later, constants.model, constants.eps, first + k, first + j) + share


@kernel
def proven_pair(
    state: ScoutState, constants: ScoutConstants, i: int, j: int, metric: int, shift: float, enough: float
) -> float:
    """Log evidence that the mean of i plus `shift` is above that of j, by what counts for the two.

    Once it is enough, no more is worked out.
    """
    era = era_of(constants.sharing.entered, constants.looked, i, j)
    if era == 0:
        return joint_evidence(state, constants, state.samples, i, j, 0, metric, shift, enough)
    return joint_evidence(state, constants, state.later, i, j, era * state.pulls.shape[0], metric, shift, enough)


@short_kernel
def joint_evidence(
    state: ScoutState,
    constants: ScoutConstants,
    counting: Samples,
    i: int,
    j: int,
    first: int,
    metric: int,
    shift: float,
    enough: float,
) -> float:
    """`proven_pair` by the samples that count, whose rows begin at `first`: paired, or of each arm by itself."""
    model, n_i, n_j = constants.model, counting.counts[first + i, metric], counting.counts[first + j, metric]
    if not is_paired(model, metric) or (first > 0 and max(state.series.mixed[i], state.series.mixed[j]) > 0):
        return pair_evidence(counting, model, first + i, first + j, metric, shift)
    lead = counting.means[first + i, metric] + shift - counting.means[first + j, metric]
    alone = bound_by_splits(counting, model, first + i, first + j, metric, lead)
    tiny = ROUNDING * (abs(counting.means[first + i, metric]) + abs(counting.means[first + j, metric]))
    if n_i == 0.0 or n_j == 0.0 or alone == -np.inf or lead <= tiny:
        return -np.inf
    first_i, first_j = state.samples.counts[i, metric] - n_i, state.samples.counts[j, metric] - n_j  # not counting
    paired = log_by_number(state.series, model, metric, i, int(first_i), j, int(first_j), int(min(n_i, n_j)), shift)
    if paired >= min(enough, alone):
        return paired
    return max(paired, pair_evidence(counting, model, first + i, first + j, metric, shift))


@kernel
def log_share_to_escape(
    presence: SmallInts, thresholds: FloatArray, delta: float, entered: IntArray, looked: IntArray, k: int, j: int
) -> float:
    """What it takes off the evidence that j is the one k has to escape."""
    if presence[j] == DOUBTFUL:
        return math.log(IF_DOUBTFUL) - thresholds[j] - math.log(delta)
    if looked[j] > 0 and entered[j] > entered[k]:
        return math.log(IF_LATER * 0.5 ** (entered[j] - entered[k]))
    return math.log(TO_ESCAPE)


@kernel
def lacking(
    samples: Samples, model: NoiseModel, eps: FloatArray, threshold: float, k: int, j: int, route: int
) -> float:
    """How many samples the pair seems to lack for a verdict on k, if it differs a little more than it looks."""
    needed = 2.0 * (threshold + PRICE)
    times = 0.0 if route == BEATEN else np.inf  # by which factor samples of both must grow
    for metric in range(samples.means.shape[1]):
        lead = samples.means[j, metric] - samples.means[k, metric]
        if route == ESCAPES:
            lead = eps[metric] - lead
        square = variance_of(samples, model, k, metric) / max(1.0, samples.counts[k, metric])
        square += variance_of(samples, model, j, metric) / max(1.0, samples.counts[j, metric])
        hoped = max(0.0, lead) + HOPE * math.sqrt(square)
        grows = needed if square == np.inf else np.inf
        if 0.0 < hoped < np.inf:
            grows = needed * square / (hoped * hoped)
        times = max(times, grows) if route == BEATEN else min(times, grows)
    n_k, n_j = max(1.0, least_count(samples.counts, k)), max(1.0, least_count(samples.counts, j))
    return (times - 1.0) * n_k * n_j / (n_k + n_j)


# Deciding


@short_kernel
def off(constants: ScoutConstants) -> float:
    """How far below the evidence what arms are ranked by may be."""
    return OFF if constants.model.log_alone < 0.0 else 0.0


@kernel
def decide(state: ScoutState, constants: ScoutConstants, k: int, beaten: float, escaped: float) -> bool:
    """Eliminate or accept arm k if the evidence suffices; else say when to look again."""
    threshold, lacks = state.thresholds[k], np.inf
    if beaten >= threshold - off(constants):
        lacks = lacks_against(state, constants, k)
        if lacks <= 0.0:
            eliminate(state, k)
            return True
    if escaped >= threshold - off(constants):
        in_its_favour = lacks_in_favour(state, constants, k)
        if in_its_favour <= 0.0:
            accept(state, k)
            return True
        lacks = min(lacks, in_its_favour)
    if lacks < np.inf:
        state.test_at[k] = state.counters[TOTAL] + int(PATIENCE * state.pulls[k] * lacks / threshold)
    return False


@short_kernel
def lacks_against(state: ScoutState, constants: ScoutConstants, k: int) -> float:
    """What evidence lacks for eliminating k; infinite where nothing may be said."""
    if state.best[k] < 0 or not pilots_are_in(state.pilots, constants.sharing, k):
        return np.inf
    return state.thresholds[k] - against(state, constants, k)


@short_kernel
def lacks_in_favour(state: ScoutState, constants: ScoutConstants, k: int) -> float:
    """What evidence lacks for accepting k; infinite where nothing may be said."""
    if not is_there(state.presence[k]) or not pilots_are_in(state.pilots, constants.sharing, k):
        return np.inf
    return state.thresholds[k] - in_favour(state, constants, k)


@kernel
def eliminate(state: ScoutState, k: int) -> None:
    """Say that k is dominated by who beats it most clearly."""
    if is_there(state.presence[k]):
        take_out(state, k)
    state.status[k] = DOMINATED
    state.beaten_by[k] = state.best[k]
    note_leaving(state.tree, k)
    state.counters[N_LEFT] += 1


@short_kernel
def accept(state: ScoutState, k: int) -> None:
    """Say that k belongs to the front."""
    take_out(state, k)
    state.status[k] = FRONT


@short_kernel
def take_out(state: ScoutState, k: int) -> None:
    """Take an arm out of the heap."""
    size = remove(state.heap, state.position, state.keys, k, state.counters[N_UNDECIDED])
    state.counters[N_UNDECIDED] = size


@short_kernel
def joined(e_values: bool, a: float, b: float) -> float:
    """Log evidence of two hypotheses together: e-values may be added, of p-values the better one counts."""
    return log_sum(a, b) if e_values else max(a, b)


@kernel
def against(state: ScoutState, constants: ScoutConstants, k: int) -> float:
    """Log evidence that k is not Pareto-optimal: the sum over j of w_jk times min_l e(y_j - y_k).

    If k is optimal every j has a metric in which it is not better, so each term, and the sum, is an e-process. Summed
    over the champions and the one that beats k most clearly: leaving terms out makes the sum smaller.
    """
    came, best, last = constants.sharing.entered[k], arm_at(state.best, k), state.pilots.champions.shape[0] - 1
    total, summed = -np.inf, False
    for i in range(state.pilots.champions.shape[1]):
        j = arm_at(state.pilots.champions[came], i)
        if j < 0:
            break
        summed = summed or j == best
        total = joined(constants.e_values, total, term_against(state, constants, k, j, True, total))
    for i in range(state.pilots.champions.shape[1] if last > came else 0):  # those who came later
        j = arm_at(state.pilots.champions[last], i)
        if j >= 0 and constants.sharing.entered[j] > came:
            summed = summed or j == best
            total = joined(constants.e_values, total, term_against(state, constants, k, j, False, total))
    if best >= 0 and not summed:
        total = joined(constants.e_values, total, term_against(state, constants, k, best, False, -np.inf))
    return total


@kernel
def term_against(state: ScoutState, constants: ScoutConstants, k: int, j: int, leads: bool, total: float) -> float:
    """What j adds to the evidence against k; nothing, where that would make no difference."""
    if not can_beat(state.status, state.presence, k, j):
        return -np.inf
    L, all_count = state.samples.means.shape[1], era_of(constants.sharing.entered, constants.looked, j, k) == 0
    for metric in range(L):
        if all_count and state.samples.means[j, metric] <= state.samples.means[k, metric]:
            return -np.inf
    log_share = math.log(share_against(state.pilots, constants.sharing, j, k, leads))
    needed = max(total, state.thresholds[k]) - NO_DIFFERENCE
    evidence = np.inf
    for metric in range(L):
        # four terms, each at most log 4 above what it is without its split
        if all_count and constants.model.noise[metric] == SIGMA:
            lead, n = state.samples.means[j, metric] - state.samples.means[k, metric], state.samples.counts[j, metric]
            variance = variance_of(state.samples, constants.model, j, metric)
            if (
                log_share
                + largest_term(state.tree, state.samples, constants.model, k, metric, lead, n, n, variance)
                + LOG_16
                < needed
            ):
                return -np.inf
    for metric in range(L):
        if all_count and is_paired(constants.model, metric):
            lead = state.samples.means[j, metric] - state.samples.means[k, metric]
            if log_share + ranked_evidence(state.samples, constants.model, j, k, metric, lead) + OFF < needed:
                return -np.inf
    for metric in range(L):
        evidence = min(evidence, proven_pair(state, constants, j, k, metric, 0.0, np.inf))
        if evidence <= 0.0:
            return -np.inf
    return log_share + evidence


@kernel
def escape(state: ScoutState, constants: ScoutConstants, k: int, j: int, enough: float) -> float:
    """Log evidence that j is not better than k by eps everywhere: the mean over l of e(y_k + eps - y_j).

    Times the share with which j has to be escaped. Of p-values no more is worked out once it is enough.
    """
    entered, looked = constants.sharing.entered, constants.looked
    share = log_share_to_escape(state.presence, state.thresholds, constants.sharing.delta, entered, looked, k, j)
    share -= math.log(state.samples.means.shape[1])
    total, suffices = -np.inf, np.inf if constants.e_values else enough - share
    for metric in range(state.samples.means.shape[1]):
        evidence = proven_pair(state, constants, k, j, metric, constants.eps[metric], suffices)
        if evidence > 0.0:  # below, it may be a mere bound
            total = joined(constants.e_values, total, evidence)
        if total >= suffices:
            break
    return total + share


@kernel
def in_favour(state: ScoutState, constants: ScoutConstants, k: int) -> float:
    """Log evidence that k is within eps of optimal: the least over j of the mean over l of e(y_k + eps - y_j).

    If some j is better by more than eps in every metric, its mean over l is an e-process. Every j that stands is looked
    at, or is in a node of the tree of which it is proven that k escapes all. Stops at the first for which the evidence
    does not suffice: that is the one to be escaped.
    """
    tree, threshold = state.tree, state.thresholds[k]
    least, n = np.inf, tree.size[0]
    worst = arm_at(state.worst, k)
    if worst >= 0 and must_be_escaped(state.status, state.presence, k, worst):  # the hardest first
        least = escape(state, constants, k, worst, threshold)
        if least < threshold:
            return least
    L = state.samples.means.shape[1]
    first, height = (1 << height_of(n), height_of(n)) if n > SMALL else (1, 0)
    needed = threshold + math.log(float(L)) - math.log(TO_ESCAPE)
    tree.stack[0], depth = 1, 1
    while depth > 0:
        depth -= 1
        node = arm_at(tree.stack, depth)
        skips = n > SMALL and state.counters[N_DOUBTFUL] == 0 and state.later.counts.shape[0] == 0
        if skips and (
            tree.standing[node] == 0
            or surely_escaped(tree, state.samples, constants.model, constants.eps, k, node, needed)
        ):
            continue
        if node < first:
            tree.stack[depth], tree.stack[depth + 1] = 2 * node, 2 * node + 1
            depth += 2
            continue
        leaf = node - first
        for i in range((leaf * n) >> height, ((leaf + 1) * n) >> height):
            j = arm_at(tree.arms, i)
            if must_be_escaped(state.status, state.presence, k, j):
                least = min(least, escape(state, constants, k, j, threshold))
                if least < threshold:
                    state.worst[k] = j
                    return least
    return least


@kernel
def judge_again(state: ScoutState, constants: ScoutConstants) -> None:
    """Forget all verdicts and judge every arm by the statistics as they are, in whichever order the arms stand."""
    counters, K = state.counters, state.pulls.shape[0]
    counters[N_UNDECIDED], counters[N_THERE], counters[N_DOUBTFUL] = 0, 0, 0
    counters[CURRENT], counters[IN_QUESTION], counters[LEFT], counters[CURSOR] = -1, -1, 0, 0
    for k in range(K):
        state.status[k], state.beaten_by[k], state.test_at[k] = UNDECIDED, -1, 0
        state.best[k], state.worst[k], state.keys[k] = -1, -1, FIRST
        counters[N_DOUBTFUL] += state.presence[k] == DOUBTFUL
        if is_there(state.presence[k]):
            counters[N_THERE] += 1
            counters[N_UNDECIDED] = push(state.heap, state.position, state.keys, k, counters[N_UNDECIDED])
    count_unpiloted(state.pilots, constants.sharing, state.presence)
    advance_cursor(state, constants)
    renew_tree(state, constants)
    for k in range(K):
        if state.presence[k] != GONE and is_beaten(state, constants, k):
            state.beaten_by[k] = state.best[k]
    for k in range(K):  # who is eliminated may have eliminated others all the same
        if state.beaten_by[k] >= 0:
            eliminate(state, k)
    reconsider(state, constants, counters[CURRENT], counters[TOTAL] >= 0)


@allocating_kernel
def verdicts(state: ScoutState, constants: ScoutConstants) -> Verdicts:
    """Means of what counts as evidence, with intervals that all hold at once with probability 1 - delta."""
    K, L = state.samples.means.shape
    radii, status, rival = np.full((K, L), np.inf), np.empty(K, np.int64), np.full(K, -1, np.int64)
    for k in range(K):
        status[k] = state.status[k]
        for metric in range(L):
            radii[k, metric] = radius(state.samples, constants.model, k, metric, state.thresholds[k])
        if state.presence[k] != GONE:
            j = state.beaten_by[k]
            if state.status[k] == UNDECIDED:
                j = state.best[k] if state.best[k] >= 0 else state.worst[k]
            if j >= 0 and is_there(state.presence[j]):
                rival[k] = j
    return Verdicts(status, rival, state.samples.means.copy(), radii, state.pulls.copy())


@short_kernel
def done(state: ScoutState, constants: ScoutConstants) -> bool:
    """Whether every arm that is there has its verdict."""
    return state.counters[N_UNDECIDED] == 0


KERNELS = Kernels(
    state=ScoutState,
    choose=choose,
    update=update,
    verdicts=verdicts,
    done=done,
    judge_again=judge_again,
    after_looking=True,
    reserve=reserve,
    silence=silence,
    ranges={"counters": ROLES, "era": "count"},
    intervals=True,
    accepts=Accepts(pending=True, unasked=True, missing=True),
    each_sigma=True,
)
