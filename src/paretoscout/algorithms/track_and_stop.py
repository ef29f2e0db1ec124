"""Track-and-Stop for fronts: learn the best allocation by gradient ascent while sampling, stop by a likelihood ratio.

E. Crepon, A. Garivier, W. Koolen: Sequential learning of the Pareto front for multi-objective bandits, AISTATS 2024;
the authors' code is public. Normal noise, independent between metrics; arms without contexts.

After each sample (or every few) the cost of the nearest means with another front, `kernels/alternatives.py`, and its
gradient are computed at the present weights, and a step of Hedge moves these up. The arm that lags most behind its
weight is sampled next, or one that has been neglected. So the weights come to those with which the front is proven by
the fewest samples, in the limit of small delta.

Stopping by default is our own, and holds at every delta and for any sampling. Let n be the samples of an arm, and
m = n^2 / (n + RHO) what they count for. With c the cost of an alternative at weights m, in units of the noise:

* an arm is dominated if for one other arm c("it is not behind in metric l") exceeds log(K (K - 1) / delta_1) + the
  half sum of log(1 + n / RHO) of both, for every l; or if c("it has caught up with the whole empirical front") exceeds
  `glr_threshold` at delta_2;
* an arm is within eps of optimal if for every other arm that is not dominated c("that one beats it by eps everywhere")
  exceeds log(K / delta_1) + L times that half sum.

When every arm is one or the other, those not dominated are returned. Each arm can be wrong in one way only: on the
front and called dominated, in K - 1 comparisons, of which one metric each is to blame; or beaten by more than eps, then
by one fixed arm of the front. So delta = delta_1 + delta_2 bounds the probability of any error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..kernels.alternatives import (
    Search,
    cost_to_fall,
    joined,
    nearest_alternative,
    out_of_reach,
    search_space,
    sort_front,
)
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import DOMINATED, FRONT, UNDECIDED, margin, scaled_verdicts, undominated_estimates
from ..kernels.dispatch import NO_TICKET, Verdicts
from ..kernels.widths import crepon_threshold, effective_count, glr_threshold, normal_mixture
from .contract import Accepts, Algorithm, Kernels, Settings, Setup
from .ranges import setting
from .registry import register

#: Scale of the mixtures: thresholds are lowest at some dozens of samples of an arm.
RHO = 8.0
#: The part of delta that is spent on catching up with the whole front at once; comparisons of two arms get the rest.
FOR_WHOLE_FRONT = 0.1
#: Noise below this (in scaled units) counts as this.
LEAST_SIGMA = 1e-9
#: Whether to stop is looked at again after this share more samples.
CHECK_GROWTH = 0.005
#: No weight goes below this.
LEAST_WEIGHT = 1e-12


@dataclass(frozen=True)
class TrackAndStop(Settings):
    """Settings of Track-and-Stop.

    stopping: "valid": as in the module's documentation; "published": once the likelihood ratio exceeds log(1 / delta) +
        log log(1 + t), as in the authors' experiments. It takes far fewer samples, promises nothing, and knows no eps.
    every: samples between two steps of the weights; None: one step per 16 arms.
    """

    stopping: str = setting("valid", choices=("valid", "published"))
    every: int | None = setting(None, least=1, whole=True)

    @property
    def sound(self) -> bool:
        """Whether the guarantee holds with these settings."""
        return self.stopping == "valid"


class TrackAndStopConstants(NamedTuple):
    units: FloatArray  # (L,) sigma: values are measured in these
    eps: FloatArray  # (L,) in these units
    no_eps: FloatArray  # (L,) zeros
    everyone: IntArray  # (K,) 0, ..., K - 1
    delta: float
    valid: bool
    every: int
    no_ticket: FloatArray = NO_TICKET


class TrackAndStopState(NamedTuple):
    counts: IntArray  # (K,) samples of each arm
    sums: FloatArray  # (K, L) in units of the noise
    means: FloatArray  # (K, L)
    log_weights: FloatArray  # (K,) of Hedge
    weights: FloatArray  # (K,) their exponentials, normalised
    gradient: FloatArray  # (K,) of the last step
    largest: FloatArray  # (1,) the largest entry of a gradient so far
    status: IntArray  # (K,)
    beaten_by: IntArray  # (K,)
    counters: IntArray  # (5,) see below
    front: IntArray  # (K,) working space, from here on: the empirical front, sorted
    on_front: IntArray  # (K,)
    effective: FloatArray  # (K,) effective counts
    rival: IntArray  # (K,) who dominates an arm, or -1
    search: Search


TOTAL = 0  # samples
UNSEEN = 1  # arms without a sample
NEXT_STEP = 2  # samples at which the weights move next
NEXT_CHECK = 3  # samples at which stopping is looked at next
N_FRONT = 4  # size of the empirical front


def init(settings: TrackAndStop, setup: Setup) -> tuple[TrackAndStopState, TrackAndStopConstants]:
    """Start with equal weights."""
    K, L = setup.n_arms, setup.n_metrics
    units = np.maximum(setup.known_sigma("track-and-stop"), LEAST_SIGMA)
    constants = TrackAndStopConstants(
        units=units,
        eps=setup.eps / units,
        no_eps=np.zeros(L),
        everyone=np.arange(K, dtype=np.int64),
        delta=float(setup.delta),
        valid=settings.sound,
        every=settings.every or math.ceil(K / 16),
    )
    state = TrackAndStopState(
        counts=np.zeros(K, np.int64),
        sums=np.zeros((K, L)),
        means=np.zeros((K, L)),
        log_weights=np.zeros(K),
        weights=np.full(K, 1.0 / K),
        gradient=np.zeros(K),
        largest=np.zeros(1),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        counters=np.array([0, K, 0, 0, 0], np.int64),
        front=np.zeros(K, np.int64),
        on_front=np.zeros(K, np.int64),
        effective=np.zeros(K),
        rival=np.full(K, -1, np.int64),
        search=search_space(K, L),
    )
    return state, constants


@kernel
def choose(
    state: TrackAndStopState, constants: TrackAndStopConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Return an arm with fewer than sqrt(t) - K / 2 samples if there is one, else the one most behind its weight."""
    K = state.counts.shape[0]
    t, least = state.counters[TOTAL], state.counts[0] + pending[0]
    for k in range(K):
        t += pending[k]
        least = min(least, state.counts[k] + pending[k])
    if least == 0 or least <= math.sqrt(t) - 0.5 * K:
        fewest = 0
        while state.counts[fewest] + pending[fewest] > least:
            fewest += 1
        return fewest, constants.no_ticket
    found, most = 0, -np.inf
    for k in range(K):
        behind = t * state.weights[k] - (state.counts[k] + pending[k])
        if behind > most:
            found, most = k, behind
    return found, constants.no_ticket


@kernel
def update(
    state: TrackAndStopState,
    constants: TrackAndStopConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Add the sample; move the weights and look whether to stop, where it is time."""
    counters = state.counters
    counters[TOTAL] += 1
    if state.counts[arm] == 0:
        counters[UNSEEN] -= 1
    state.counts[arm] += 1
    for metric in range(outcome.shape[0]):
        state.sums[arm, metric] += outcome[metric] / constants.units[metric]
        state.means[arm, metric] = state.sums[arm, metric] / state.counts[arm]
    if counters[UNSEEN] > 0:
        return
    t = counters[TOTAL]
    steps, checks_stop = t >= counters[NEXT_STEP], t >= counters[NEXT_CHECK]
    if steps or checks_stop:
        find_front(state, constants)
    if steps:
        front = state.front[: counters[N_FRONT]]
        nearest_alternative(
            state.means, state.weights, front, state.on_front, constants.no_eps, state.search, state.gradient
        )
        hedge(state, t / constants.every)
        counters[NEXT_STEP] = t + constants.every
    if checks_stop:
        if constants.valid:
            stop_if_proven(state, constants)
        else:
            stop_as_published(state, constants)
        counters[NEXT_CHECK] = t + max(constants.every, int(CHECK_GROWTH * t))


@kernel
def find_front(state: TrackAndStopState, constants: TrackAndStopConstants) -> None:
    """Find the empirical front and sort it."""
    n = undominated_estimates(constants.everyone, state.means, state.front)
    state.counters[N_FRONT] = n
    for k in range(state.on_front.shape[0]):
        state.on_front[k] = 0
    for k in state.front[:n]:
        state.on_front[k] = 1
    sort_front(state.front[:n], state.means)


@kernel
def hedge(state: TrackAndStopState, steps: float) -> None:
    """Multiply each weight by exp(gradient sqrt(log K) / (largest gradient so far * sqrt(1 + steps)))."""
    K = state.weights.shape[0]
    for k in range(K):
        state.largest[0] = max(state.largest[0], state.gradient[k])
    if state.largest[0] == 0.0:
        return
    rate = math.sqrt(math.log(K)) / (state.largest[0] * math.sqrt(1.0 + steps))
    most = -np.inf
    for k in range(K):
        state.log_weights[k] += rate * state.gradient[k]
        most = max(most, state.log_weights[k])
    total = 0.0
    for k in range(K):
        state.log_weights[k] -= most
        state.weights[k] = max(LEAST_WEIGHT, math.exp(state.log_weights[k]))
        total += state.weights[k]
    for k in range(K):
        state.weights[k] /= total


@kernel
def stop_if_proven(state: TrackAndStopState, constants: TrackAndStopConstants) -> None:
    """Settle all arms if each is dominated, or within eps of optimal."""
    K, L = state.means.shape
    counts, effective = state.counts, state.effective
    for k in range(K):
        effective[k] = effective_count(counts[k], RHO)
    for_pairs = (1.0 - FOR_WHOLE_FRONT) * constants.delta
    to_beat = math.log(K * max(1, K - 1) / for_pairs)
    front = state.front[: state.counters[N_FRONT]]
    whole_front = glr_threshold(counts, FOR_WHOLE_FRONT * constants.delta, RHO, L)
    for k in range(K):
        state.rival[k] = -1
        if state.on_front[k] == 1:
            continue
        best, lead = -1, -np.inf
        for j in front:
            ahead = margin(j, k, state.means)
            weighed = 0.5 * joined(effective[k], effective[j]) * ahead * ahead
            if ahead > 0.0 and weighed > to_beat + log_price(counts[k], counts[j]):
                state.rival[k] = j
                break
            if ahead > lead:
                best, lead = j, ahead
        if state.rival[k] < 0 and out_of_reach(k, state.means, effective, front, state.search, whole_front):
            state.rival[k] = best
    to_escape = math.log(K / for_pairs)
    for k in range(K):
        if state.rival[k] >= 0:
            continue
        for j in range(K):
            if j == k or state.rival[j] >= 0:
                continue
            cost = joined(effective[k], effective[j]) * cost_to_fall(k, j, state.means, constants.eps)
            if cost <= to_escape + L * log_price(counts[k], counts[j]):
                return
    for k in range(K):
        state.status[k] = FRONT if state.rival[k] < 0 else DOMINATED
        state.beaten_by[k] = state.rival[k]


@kernel
def log_price(n_i: int, n_j: int) -> float:
    """What a comparison of two arms in one metric, at all times at once, adds to a threshold."""
    return 0.5 * (math.log1p(n_i / RHO) + math.log1p(n_j / RHO))


@kernel
def stop_as_published(state: TrackAndStopState, constants: TrackAndStopConstants) -> None:
    """Return the empirical front if the likelihood ratio of all others exceeds the authors' threshold."""
    K = state.means.shape[0]
    for k in range(K):
        state.effective[k] = float(state.counts[k])
    front = state.front[: state.counters[N_FRONT]]
    ratio = nearest_alternative(
        state.means, state.effective, front, state.on_front, constants.no_eps, state.search, state.gradient
    )
    if ratio <= crepon_threshold(state.counters[TOTAL], constants.delta):
        return
    for k in range(K):
        state.status[k] = FRONT if state.on_front[k] == 1 else DOMINATED
        if state.on_front[k] == 0:
            lead = -np.inf
            for j in front:
                ahead = margin(j, k, state.means)
                if ahead > lead:
                    state.beaten_by[k], lead = j, ahead


@allocating_kernel
def verdicts(state: TrackAndStopState, constants: TrackAndStopConstants) -> Verdicts:
    """Means, and intervals for each that hold at all times at level delta / (K L)."""
    K, L = state.sums.shape
    means = np.zeros((K, L))
    radii = np.full((K, L), np.inf)
    for k in range(K):
        n = state.counts[k]
        for metric in range(L):
            means[k, metric] = state.means[k, metric] * constants.units[metric]
            if n > 0 and constants.valid:
                radii[k, metric] = normal_mixture(n, constants.delta / (K * L), constants.units[metric], RHO)
    return scaled_verdicts(state.status, state.beaten_by, state.means, radii, means, radii, state.counts)


@kernel
def done(state: TrackAndStopState, constants: TrackAndStopConstants) -> bool:
    """Whether it has stopped: then all arms have their verdicts."""
    return state.status[0] != UNDECIDED


ALGORITHM = Algorithm(
    name="track-and-stop",
    summary="follow the best allocation as it is learned; stop by a likelihood ratio",
    paper="Crepon, Garivier, Koolen: Sequential learning of the Pareto front for multi-objective bandits, 2024",
    guarantee="fixed confidence: every Pareto-optimal arm is returned and every returned arm is within eps of "
    "optimal, with probability at least 1 - delta, if the noise is sigma-sub-Gaussian and independent between metrics; "
    "not with stopping='published'",
    guarantees=True,
    settings=TrackAndStop,
    init=init,
    kernels=(
        Kernels(
            state=TrackAndStopState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            ranges={"counters": ("count", "arms", "count", "count", "arms")},
            intervals=True,
            accepts=Accepts(pending=True, unasked=True),
            assumes="noise independent between metrics",
        ),
    ),
)

register(ALGORITHM)
