"""What a study still needs: estimates, not guarantees."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algorithms.states import copy_state
from ..environments.gaussian import GaussianEnvironment
from ..kernels.arrays import FloatArray, IntArray
from ..kernels.compile import per_state
from ..kernels.dispatch import done, draw, update
from ..simulation.play import PLAYED, Log, player
from ..streams import environment_stream
from . import practical
from .replica import Replica

#: A simulated future ends after so many samples; the clock is looked at after every slice.
MOST_SAMPLES, SLICE = 1_000_000, 2_000


@dataclass(frozen=True)
class Remaining:
    """How many more samples until every arm has its verdict, by simulating the future from what is known now."""

    samples: float  # median
    low: float  # 10% of the simulated futures need fewer
    high: float  # 10% need more; infinite: they were not followed to their end
    uniform: float | None  # median if all arms were measured in turn; None: the algorithm cannot do that
    by_arm: dict[str, float]  # mean share of each arm

    def __str__(self) -> str:
        if self.high == 0:
            return "nothing more to measure"
        if not np.isfinite(self.low):
            return "very many more runs"
        often = f" (uniform sampling: {about(self.uniform)})" if self.uniform is not None else ""
        return f"about {about(self.samples)} more runs, likely {about(self.low)} to {about(self.high)}{often}"


def remaining(replica: Replica, replicates: int, seconds: float = 1.0, seed: int = 0) -> Remaining:
    """Simulate futures: means drawn around the estimates, noise as it was told or as it was seen."""
    names = [replica.arms[arm] for arm in replica.seated]
    standing = [replica.arms[arm] for arm in replica.present]
    if replica.session.done or replica.done:
        needs = {} if replica.done else _to_act(replica) | _for_guards(replica)
        total = sum(needs.values())
        return Remaining(total, total, total, None if total else 0.0, {**dict.fromkeys(standing, 0.0), **needs})
    L = len(replica.spec.metrics)
    estimates, sigma, spread = _known(replica)
    needed: list[float] = []
    uniform: list[float] = []
    pulls = np.zeros(len(names))
    deadline = time.monotonic() + seconds
    in_turn = replica.accepts.unasked
    for number in range(replicates):
        rng = environment_stream(seed, number)
        environment = GaussianEnvironment(estimates + spread * rng.standard_normal((len(names), L)), sigma)
        before = replica.session.verdicts().counts
        played, state = _future(replica, environment, number, deadline)
        needed.append(played)
        pulls += replica.session.kernels.verdicts(state, replica.session.constants).counts - before
        if in_turn:
            uniform.append(_future_in_turn(replica, environment, number, deadline))
        if time.monotonic() > deadline:
            break
    low, middle, high = (float(np.quantile(needed, q, method="nearest")) for q in (0.1, 0.5, 0.9))
    return Remaining(
        middle,
        low,
        high,
        float(np.quantile(uniform, 0.5, method="nearest")) if uniform else None,
        {name: n for name, n in zip(names, (pulls / len(needed)).tolist(), strict=True) if name in standing},
    )


def _to_act(replica: Replica) -> dict[str, float]:
    """Samples until the arms have the verdicts that people act on, if that was asked for."""
    if not replica.spec.practical:
        return {}
    table, doubts = replica.doubts()
    needs = dict(zip(table.arms, practical.runs_of(table, doubts).tolist(), strict=True))
    doubted = {doubt.arm for doubt in doubts}
    for k, (arm, verdict) in enumerate(zip(table.arms, table.verdicts, strict=True)):
        if verdict == "undecided" and k not in doubted:
            needs[arm] = np.inf if table.counts[k] else 1.0
    return {arm: float(np.ceil(more)) for arm, more in needs.items()}


def _for_guards(replica: Replica) -> dict[str, float]:
    """Samples until the arms of the front keep or break their guards, if the means are what they seem to be."""
    needs: dict[str, float] = {}
    for name in replica.verdicts().front:
        arm = replica.index[name]
        for guard in replica.spec.guards:
            n = float(replica.tally.n[arm, replica.columns.index(guard.metric)])
            more = 0.0
            while more < MOST_SAMPLES and not replica.guards.settles(arm, guard, n + more):
                more = max(more + 1.0, 1.05 * more)
            needs[name] = max(needs.get(name, 0.0), np.ceil(more) if more < MOST_SAMPLES else np.inf)
    return needs


def _known(replica: Replica) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimates, the noise scale and how far off the estimates may be; all (K, L), oriented and scaled."""
    L, units = len(replica.spec.metrics), replica.units
    n = replica.tally.n[replica.seated][:, :L]
    mean = np.where(n > 0, replica.tally.mean[replica.seated][:, :L], np.nan)
    overall = np.nan_to_num(
        np.array([column[~np.isnan(column)].mean() if (column == column).any() else 0.0 for column in mean.T])
    )
    estimates = units.directed(np.where(n > 0, mean, overall))
    squares = replica.tally.squares[replica.seated][:, :L]
    seen = _noise_seen(squares, (n - 1).clip(0), replica.session.kernels.pools_noise) / units.divisors
    told = replica.session.setup.sigma
    sigma = seen if told is None else np.where(np.isnan(told), seen, told)
    between = estimates.std(axis=0)
    spread = np.where(n > 0, sigma / np.sqrt(np.maximum(n, 1)), between)
    return estimates, np.ascontiguousarray(sigma), spread


def _noise_seen(squares: FloatArray, freedom: FloatArray, pooled: bool) -> FloatArray:
    """The noise scale (K, L) as it was seen: one for all arms (`pooled`), or each arm's own.

    squares: sums of squared deviations from each arm's mean; freedom: their degrees of freedom. Few rows say little, so
    each arm that varied counts the median arm as one more degree; this is all there is for an arm with one row.

    >>> _noise_seen(np.array([[8.0], [72.0], [0.0]]), np.array([[8.0], [8.0], [0.0]]), pooled=False).round(2).ravel()
    array([1.2 , 2.92, 2.24])
    """
    if pooled:
        return np.tile(np.sqrt(squares.sum(axis=0) / np.maximum(freedom.sum(axis=0), 1)), (len(squares), 1))
    variance = np.where(freedom > 0, squares / np.maximum(freedom, 1), np.nan)
    typical = np.array([np.median(own[~np.isnan(own)]) if (own == own).any() else 0.0 for own in variance.T])
    return np.where(variance == 0.0, 0.0, np.sqrt((squares + typical) / (freedom + 1)))


def _future(replica: Replica, environment: Any, number: int, deadline: float) -> tuple[float, Any]:
    session = replica.session
    state = copy_state(session.state)
    log = Log(np.zeros(0, np.int64), np.zeros(0), np.zeros(1), np.zeros(2, np.int64))
    L = session.setup.n_metrics
    gaps, observed, outcome = np.zeros(session.setup.n_arms), np.ones(L, np.bool_), np.empty(L)
    pending = np.zeros(session.setup.n_arms, np.int64)
    rng, noise = np.random.default_rng([1, number]), environment_stream(1, number)
    while log.counters[PLAYED] < MOST_SAMPLES and time.monotonic() < deadline:
        state = session.kernels.reserve(state, SLICE)
        if player(state)(
            state, session.constants, environment, gaps, log, pending, observed, outcome, rng, noise, SLICE
        ):
            return float(log.counters[PLAYED]), state
    return np.inf, state


def _in_turn(
    state: Any,
    constants: Any,
    environment: Any,
    ticket: FloatArray,
    observed: Any,
    outcome: FloatArray,
    counters: IntArray,
    rng: np.random.Generator,
    n_rounds: int,
    n_arms: int,
) -> bool:
    for _ in range(n_rounds):
        if done(state, constants):
            break
        arm = counters[0] % n_arms
        draw(environment, arm, rng, outcome)
        update(state, constants, arm, ticket, outcome, observed)
        counters[0] += 1
    return done(state, constants)


_player_in_turn = per_state(_in_turn)


def _future_in_turn(replica: Replica, environment: Any, number: int, deadline: float) -> float:
    session = replica.session
    state = copy_state(session.state)
    L = session.setup.n_metrics
    counters, rng = np.zeros(1, np.int64), environment_stream(2, number)
    ticket, observed, outcome = np.zeros(session.kernels.ticket_size), np.ones(L, np.bool_), np.empty(L)
    while counters[0] < MOST_SAMPLES and time.monotonic() < deadline:
        state = session.kernels.reserve(state, SLICE)
        if _player_in_turn(state)(
            state, session.constants, environment, ticket, observed, outcome, counters, rng, SLICE, session.setup.n_arms
        ):
            return float(counters[0])
    return np.inf


def about(number: float | None) -> str:
    """Write an estimate to two digits.

    >>> about(1234.0), about(float("inf"))
    ('1,200', 'very many')
    """
    if number is None or not np.isfinite(number):
        return "very many"
    if number < 10:
        return f"{number:.0f}"
    digits = int(np.floor(np.log10(number))) - 1
    return f"{round(number / 10**digits) * 10**digits:,.0f}"
