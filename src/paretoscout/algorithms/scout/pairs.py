"""What scout knows of one pair of arms: the difference in each metric, and on which rivals a verdict rests.

The tests that decide, of "j is not better than k" and of "j is better than k by eps", are asked with any difference in
place of 0 and of eps. What they do not reject, at the threshold of the verdict on k, is the interval. `docs/scout.md`
says what it promises. For a few pairs at a time: plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from ...kernels.arrays import BoolArray, FloatArray, IntArray
from ...kernels.decisions import DOMINATED, DOUBTFUL, GONE, UNDECIDED
from ...kernels.evidence import log_evidence_along
from ...kernels.noise import Samples
from ...laws import BOUNDS
from . import linear as scout_linear
from . import tabular as scout_tabular
from .linear import LinearScoutConstants, LinearScoutState
from .pilots import pilots_are_in, share_against
from .robust import RobustScoutConstants, RobustScoutState
from .tabular import ScoutConstants, ScoutState
from .tested import TestedScoutConstants, TestedScoutState

#: The lead of j over k, and its lower and upper end, each (L,).
Interval = tuple[FloatArray, FloatArray, FloatArray]
#: Arms and their shares, largest first.
Rivals = list[tuple[int, float]]

#: No difference is larger; where even this one would not suffice, nothing is known.
FAR = 1e60
#: Where the evidence has fallen since the verdict, rivals are named until they make up so much of what is left.
NEARLY_ALL = 0.99


def least(suffices: Callable[[float], bool], most: float) -> float:
    """Return the least difference that suffices, up to rounding, if `most` does."""
    low, high = 0.0, most
    for _ in range(300):
        if high - low <= 1e-13 * high:
            break
        middle = 0.5 * (low + high)
        if suffices(middle):
            high = middle
        else:
            low = middle
    return high


# ---------------------------------------------------------------------- arms without contexts


def compared_tabular(state: ScoutState, constants: ScoutConstants, k: int, j: int) -> Interval:
    """Return the lead of j over k, with the interval at the thresholds of the verdict on k."""
    L = len(constants.eps)
    samples, of_k, of_j = rows_of(state, constants, k, j)
    measured = (samples.counts[of_k] > 0.0) & (samples.counts[of_j] > 0.0)
    lead = np.where(measured, samples.means[of_j] - samples.means[of_k], np.nan)
    low, high = np.full(L, -np.inf), np.full(L, np.inf)
    if not pilots_are_in(state.pilots, constants.sharing, k):  # no verdict on k before
        return lead, low, high
    to_beat = state.thresholds[k] - math.log(shares_against(state, constants, k)[j])
    to_escape = needed_to_escape(state, constants, k, j)
    for metric in np.flatnonzero(measured).tolist():
        low[metric] = lead[metric] - least_lead(state, constants, j, k, metric, to_beat)
        high[metric] = lead[metric] + least_lead(state, constants, k, j, metric, float(to_escape[metric]))
    furthest = np.where(constants.model.noise == BOUNDS, constants.model.ranges, np.inf)
    return lead, np.maximum(low, -furthest), np.minimum(high, furthest)


def rows_of(state: ScoutState, constants: ScoutConstants, i: int, j: int) -> tuple[Samples, int, int]:
    """Return where the samples are that count for a pair, and the rows of the two."""
    era = int(scout_tabular.era_of(constants.sharing.entered, constants.looked, i, j))
    first = era * len(state.pulls)
    return (state.later if era else state.samples), first + i, first + j


def least_lead(state: ScoutState, constants: ScoutConstants, i: int, j: int, metric: int, needed: float) -> float:
    """By how much i would have to lead j in the means for the evidence that it is above j to be what is needed."""
    samples, of_i, of_j = rows_of(state, constants, i, j)
    lead = float(samples.means[of_i, metric] - samples.means[of_j, metric])

    def suffices(other: float) -> bool:
        return bool(scout_tabular.proven_pair(state, constants, i, j, metric, other - lead, needed) >= needed)

    most = 1.0
    while not suffices(most):
        most *= 16.0
        if most > FAR:
            return math.inf
    return least(suffices, most)


def needed_to_escape(state: ScoutState, constants: ScoutConstants, k: int, j: int) -> FloatArray:
    """Return what the evidence of each metric must reach for k to escape j.

    One metric alone has to make up for the mean over all of them. That with the most evidence is helped by the others,
    as it is in the verdict, but never below what it would need if there were no others: so far it holds on its own.
    """
    L = len(constants.eps)
    sharing = constants.sharing
    share = scout_tabular.log_share_to_escape(
        state.presence, state.thresholds, sharing.delta, sharing.entered, constants.looked, k, j
    )
    alone = float(state.thresholds[k] - share)
    needed = np.full(L, alone + math.log(L))
    if constants.e_values and L > 1:
        proven = [scout_tabular.proven_pair(state, constants, k, j, i, constants.eps[i], math.inf) for i in range(L)]
        evidence = np.array(proven)
        evidence[evidence <= 0.0] = -np.inf
        most = int(evidence.argmax())
        others = float(np.logaddexp.reduce(np.delete(evidence, most)))
        left = needed[most] + math.log1p(-math.exp(others - needed[most])) if others < needed[most] else -math.inf
        needed[most] = max(alone, left)
    return needed


def shares_against(state: ScoutState, constants: ScoutConstants, k: int) -> FloatArray:
    """Return the weight of each arm in the sum that eliminates k (`scout_tabular.against`)."""
    pilots = state.pilots._replace(norms=state.pilots.norms.copy())  # a cache of the state, which is left as it is
    champions = set(pilots.champions[constants.sharing.entered[k]].tolist())
    shares = [
        share_against(pilots, constants.sharing, j, k, j in champions) if j != k else 0.0
        for j in range(len(state.pulls))
    ]
    return np.array(shares)


def nearest_tabular(state: ScoutState, constants: ScoutConstants, k: int) -> Rivals:
    """Return the rivals that the verdict on k rests on, or hangs on."""
    if state.status[k] == DOMINATED:
        return beaten_by(state, constants, k)
    measured: BoolArray = np.any(state.samples.counts > 0.0, axis=1)
    return nearest_of(
        rivals_of(k, state.status, state.presence, measured),
        lambda j: (
            scout_tabular.escape(state, constants, k, j, math.inf),
            scout_tabular.escapes(state.samples, constants.model, constants.eps, k, j),
        ),
        lambda j: float((state.samples.means[j] - state.samples.means[k] - constants.eps).min()),
    )


def beaten_by(state: ScoutState, constants: ScoutConstants, k: int) -> Rivals:
    """Return who eliminates k: one that suffices, or those that do so together."""
    shares = shares_against(state, constants, k)
    evidence = {}
    for j in np.flatnonzero(state.presence <= DOUBTFUL).tolist():
        if j == k:
            continue
        of_metrics = [
            scout_tabular.proven_pair(state, constants, j, k, i, 0.0, math.inf) for i in range(len(constants.eps))
        ]
        if min(of_metrics) > 0.0:
            evidence[j] = math.log(shares[j]) + min(of_metrics)
    named = int(state.beaten_by[k])
    if not evidence or evidence.get(named, -np.inf) >= state.thresholds[k]:
        return [(named, 1.0)] if named >= 0 else []
    ranked = sorted(evidence, key=lambda j: -evidence[j])
    if not constants.e_values:  # of p-values the best one counts
        return [(ranked[0], 1.0)]
    together = np.logaddexp.accumulate([evidence[j] for j in ranked])
    enough = min(float(state.thresholds[k]), float(together[-1]) + math.log(NEARLY_ALL))
    n = int((together < enough).sum()) + 1
    return [(j, math.exp(evidence[j] - together[n - 1])) for j in ranked[:n]]


def rivals_of(k: int, status: IntArray, presence: IntArray, measured: BoolArray) -> list[int]:
    """Return whom k has to escape; where all of them are eliminated, those that are there all the same."""
    known = measured & (presence != GONE)
    if not known[k]:
        return []
    known[k] = False
    standing = known & (status != DOMINATED)
    return np.flatnonzero(standing if standing.any() else known).tolist()


def nearest_of(
    rivals: Iterable[int], evidence: Callable[[int], tuple[float, ...]], margin: Callable[[int], float]
) -> Rivals:
    """Return the rival with the least evidence that k escapes it; among equals the one that is furthest ahead."""
    ranked = sorted((*evidence(j), -margin(j), j) for j in rivals)
    return [(int(ranked[0][-1]), 1.0)] if ranked else []


# ---------------------------------------------------------------------- linear means


def compared_linear(state: LinearScoutState, constants: LinearScoutConstants, k: int, j: int) -> Interval:
    """Return the lead of j over k by the model, as of the last check."""
    L = len(constants.eps)
    if not scout_linear.spans(state):
        return np.full(L, np.nan), np.full(L, -np.inf), np.full(L, np.inf)
    a, b = variances_of(state, constants, k, j)
    if a < 0.0:  # equal by the model, but for two misfits
        return np.zeros(L), -2.0 * constants.misfit, 2.0 * constants.misfit
    lead, width = lead_of(state, constants, j, k), np.full(L, np.inf)
    if state.sigma_bounded.all():  # no verdict before
        bias = scout_linear.bias_along(state, constants, k, j) if scout_linear.allows_misfit(constants) else 0.0
        for metric in range(L):
            width[metric] = half_width(state, constants, metric, a, b) + constants.misfit[metric] * bias
    return lead, lead - width, lead + width


def variances_of(state: LinearScoutState, constants: LinearScoutConstants, k: int, j: int) -> tuple[float, float]:
    """Return a and b of the direction; a is -1 where the two are equal by the model. Whether or not they stand."""
    if constants.twins[k] == constants.twins[j]:
        return -1.0, 0.0
    a, b = scout_linear.variances_along(state.inverse, constants.contexts, k, j)
    a_k, b_k = scout_linear.variances_along(state.inverse, constants.contexts, k, -1)
    a_j, b_j = scout_linear.variances_along(state.inverse, constants.contexts, j, -1)
    if not a > scout_linear.SAME * (a_k + a_j):
        return -1.0, b
    rounding = scout_linear.ROUNDING_OF_VARIANCES
    return a + rounding * (a_k + a_j), b + rounding * (b_k + b_j)


def lead_of(state: LinearScoutState, constants: LinearScoutConstants, j: int, k: int) -> FloatArray:
    """Return by how much j leads k by the model, as of the last check."""
    return np.asarray((constants.contexts[j] - constants.contexts[k]) @ state.reference)


def half_width(state: LinearScoutState, constants: LinearScoutConstants, metric: int, a: float, b: float) -> float:
    """Return the least difference along a direction with which the evidence reaches the threshold."""
    sigma, rhos, prices = state.sigma[metric], constants.rhos[metric], state.log_prices[metric]
    if sigma == 0.0:
        return scout_linear.ROUNDING
    most = float(np.sqrt(2.0 * (constants.threshold - prices) * (a + rhos * b)).min() * sigma)  # one scale alone
    return least(lambda d: bool(log_evidence_along(d, a, b, sigma, rhos, prices) >= constants.threshold), most)


def nearest_linear(state: LinearScoutState, constants: LinearScoutConstants, k: int) -> Rivals:
    """Return the rival that the verdict on k rests on, or hangs on."""
    if state.status[k] == DOMINATED:
        return [(int(state.beaten_by[k]), 1.0)]
    measured = np.full(len(state.pulls), bool(scout_linear.spans(state)))
    return nearest_of(
        rivals_of(k, state.status, state.presence, measured),
        lambda j: (escape_by_model(state, constants, k, j),),
        lambda j: float((lead_of(state, constants, j, k) - constants.eps).min()),
    )


def escape_by_model(state: LinearScoutState, constants: LinearScoutConstants, k: int, j: int) -> float:
    """Return the log evidence that j is not better than k by eps everywhere."""
    a, b = variances_of(state, constants, k, j)
    if a < 0.0:
        return np.inf if (constants.eps >= 2.0 * constants.misfit).any() else -np.inf
    bias = scout_linear.bias_along(state, constants, k, j) if scout_linear.allows_misfit(constants) else 0.0
    least = lead_of(state, constants, k, j) + constants.eps - constants.misfit * bias
    return max(
        scout_linear.pair_evidence(state, constants, metric, least[metric], a, b) for metric in range(len(least))
    )


# ---------------------------------------------------------------------- linear means, tested


def compared_tested(state: TestedScoutState, constants: TestedScoutConstants, k: int, j: int) -> Interval:
    """Return the lead of j over k by the model, or once it is rejected by the samples of the two."""
    if state.fit.rejected[0] == 1:
        return compared_tabular(state.own, constants.own, k, j)
    lead, low, high = compared_linear(state.linear, constants.linear, k, j)
    if state.linear.held[0] == 1:
        return lead, np.full_like(low, -np.inf), np.full_like(high, np.inf)
    return lead, low, high


def nearest_tested(state: TestedScoutState, constants: TestedScoutConstants, k: int) -> Rivals:
    """Return the rivals that the verdict on k rests on, or hangs on."""
    if state.fit.rejected[0] == 1:
        return nearest_tabular(state.own, constants.own, k)
    return nearest_linear(state.linear, constants.linear, k)


# ---------------------------------------------------------------------- both


def is_measured(state: RobustScoutState, k: int, j: int) -> bool | None:
    """Whether what the verdict on k takes from the pair is measured, or by the model; None: that is open, or either."""
    if state.rejected[0] == 1 or state.survives[k] == np.inf:
        return True
    if state.linear.status[k] != DOMINATED and state.escaped[k, j]:
        return None  # it was measured once, and may have been forgotten by now, where the model shows it
    return None if state.linear.status[k] == UNDECIDED else False


def compared_robust(state: RobustScoutState, constants: RobustScoutConstants, k: int, j: int) -> Interval:
    """Return the lead of j over k, measured or by the model, whichever the verdict on k rests on.

    Where there is no verdict: what shows something of the pair, or else is narrower.
    """
    measured = is_measured(state, k, j)
    if measured is False:
        return compared_linear(state.linear, constants.linear, k, j)
    by_samples = compared_tabular(state.tabular, constants.tabular, k, j)
    if measured:
        return by_samples
    by_model = compared_linear(state.linear, constants.linear, k, j)

    def open_and_wide(interval: Interval) -> tuple[bool, float]:
        _, low, high = interval
        shown = (low > 0.0).all() or (high <= constants.linear.eps).any()
        return not shown, float((high - low).max())

    return min(by_samples, by_model, key=open_and_wide)


def nearest_robust(state: RobustScoutState, constants: RobustScoutConstants, k: int) -> Rivals:
    """Return the rivals that the verdict on k rests on, or hangs on."""
    tabular, linear = state.tabular, state.linear
    if state.rejected[0] == 1 or (linear.status[k] == DOMINATED and state.survives[k] == np.inf):
        return nearest_tabular(tabular, constants.tabular, k)
    if linear.status[k] == DOMINATED or not scout_linear.spans(linear):
        return nearest_linear(linear, constants.linear, k)

    def evidence(j: int) -> tuple[float]:
        by_samples = scout_tabular.escape(tabular, constants.tabular, k, j, math.inf) - tabular.thresholds[k]
        by_model = escape_by_model(linear, constants.linear, k, j) - constants.linear.threshold
        measured = is_measured(state, k, j)
        return (float(max(by_samples, by_model) if measured is None else by_samples if measured else by_model),)

    return nearest_of(
        rivals_of(k, linear.status, state.presence, np.full(len(linear.pulls), True)),
        evidence,
        lambda j: float((linear.means[j] - linear.means[k] - constants.linear.eps).min()),
    )
