"""What a study still needs: estimates, not guarantees."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import stopping
from ..algorithms.states import copy_state
from ..environments.blocks import BlockEnvironment
from ..environments.gaussian import GaussianEnvironment
from ..kernels.arrays import FloatArray
from ..kernels.decisions import DOMINATED
from ..simulation.play import PLAYED
from ..simulation.run import Run
from ..streams import environment_stream
from .replica import Replica

#: A simulated future ends after so many samples. The clock is looked at after every slice: of few samples at first,
#: because one may take long, then of more, unless that took so many seconds.
MOST_SAMPLES, FIRST_SLICE, SLICE, SLICE_SECONDS = 1_000_000, 4, 2_000, 0.1


@dataclass(frozen=True)
class Remaining:
    """How many more samples until every arm has its verdict, by simulating the future from what is known now."""

    samples: float  # median
    low: float  # 10% of the simulated futures need fewer
    high: float  # 10% need more; infinite: they were not followed to their end
    uniform: float | None  # median if all arms were measured in turn; None: the algorithm cannot do that
    by_arm: dict[str, float]  # share of each arm in the samples

    def __str__(self) -> str:
        if self.high == 0:
            return "nothing more to measure"
        if not np.isfinite(self.low):
            return "very many more runs"
        often = f" (uniform sampling: {about(self.uniform)})" if self.uniform is not None else ""
        low, high = about(self.low), about(self.high)
        likely = f", likely {low} to {high}" if low != high else ""
        return f"{self.more}{likely}{often}"

    @property
    def more(self) -> str:
        """The median, in words."""
        middle = about(self.samples)
        return f"{'about ' if np.isfinite(self.samples) else ''}{middle} more run{'' if middle == '1' else 's'}"


def remaining(replica: Replica, replicates: int, seconds: float = 1.0, seed: int = 0) -> Remaining:
    """Simulate futures: means drawn around the estimates, noise as it was told or as it was seen."""
    deadline = time.monotonic() + seconds
    there = replica.places
    names = [replica.arms[arm] for arm in replica.present]
    if replica.decided and replica.stuck:  # blocks are too few for guards
        return Remaining(np.inf, np.inf, np.inf, None, dict.fromkeys(names, np.inf))
    if replica.decided:
        needs = {**dict.fromkeys(names, 0.0), **({} if replica.done else _for_guards(replica))}
        total = sum(needs.values())
        return Remaining(total, total, total, None if total else 0.0, needs)
    if replica.in_rounds:  # who is in the next ones is not for the algorithm to say
        judged = replica.judgement
        needs = dict.fromkeys(names, np.inf) if judged is None else dict(zip(names, judged.needs.tolist(), strict=True))
        total = sum(needs.values())
        return Remaining(total, total, total, None, needs)
    if replica.used_up:
        return Remaining(np.inf, np.inf, np.inf, None, dict.fromkeys(names, np.inf))
    drawn = _of_blocks(replica) if replica.blocks is not None else _of_noise(replica)
    needed: list[float] = []
    uniform: list[float] = []
    stopping.check()
    pulls = np.zeros(len(names))
    before = replica.session.verdicts().counts[there]
    for number in range(replicates):
        rng = environment_stream(seed, number)
        environment = drawn(rng)
        future = _future(replica, environment, np.random.default_rng([1, number]), environment_stream(1, number))
        needed.append(_play(future, future.advance, deadline))
        pulls += replica.session.kernels.verdicts(future.state, future.constants).counts[there] - before
        if replica.accepts.unasked and replica.blocks is None and (time.monotonic() < deadline or not uniform):
            future = _future(replica, environment, rng, environment_stream(2, number))
            uniform.append(_play(future, future.advance_in_turn, deadline))
        if time.monotonic() > deadline:
            break
    if replica.blocks is not None and replica.session.setup.listed:  # a list has its end
        left = len(replica.blocks) - before
        uniform = [float(left.sum())]
        needed = [min(n, float(left[replica.session.status[there] != DOMINATED].sum())) for n in needed]
    low, middle, high = (float(np.quantile(needed, q, method="nearest")) for q in (0.1, 0.5, 0.9))
    pulls *= middle / pulls.sum() if np.isfinite(middle) else 1.0 / len(needed)
    return Remaining(
        middle,
        low,
        high,
        float(np.quantile(uniform, 0.5, method="nearest")) if uniform else None,
        dict(zip(names, pulls.tolist(), strict=True)),
    )


def _of_noise(replica: Replica) -> Callable[[np.random.Generator], Any]:
    """Return what draws an environment: means around the estimates."""
    estimates, sigma, spread = known(replica)
    return lambda rng: GaussianEnvironment(estimates + spread * rng.standard_normal(estimates.shape), sigma)


def _of_blocks(replica: Replica) -> Callable[[np.random.Generator], Any]:
    """Return what draws an environment: blocks to come are like some that all who stand were measured on."""
    state = replica.session.state
    stands = replica.places[state.status[replica.places] != DOMINATED]
    alike = max(1, int(state.visited[stands].min(initial=len(state.outcomes))))
    rows = np.nan_to_num(state.outcomes[:alike].transpose(1, 0, 2), nan=0.0)
    n = len(replica.blocks or ())
    return lambda rng: BlockEnvironment(rows, rng.integers(0, alike, n), np.zeros(1, np.uint64), state.visited.copy())


def _future(replica: Replica, environment: Any, *streams: np.random.Generator) -> Run:
    """What may come, from the state as it is."""
    session = replica.session
    run = Run(
        session.kernels,
        session.setup,
        copy_state(session.state),
        session.constants,
        environment,
        streams,  # type: ignore[arg-type]
        judge=copy(replica.judge),
        there=replica.places,
    )
    run.log.counters[PLAYED] = replica.rows
    return run


def _play(future: Run, advance: Callable[[int], None], deadline: float) -> float:
    """Play a future to its end; return how many samples it took, infinite if it was not followed that far."""
    before, slice_ = future.samples, FIRST_SLICE
    while future.samples - before < MOST_SAMPLES and (began := time.monotonic()) < deadline and not future.stuck:
        stopping.check()
        advance(slice_)
        if future.stopped:
            return float(future.samples - before)
        if time.monotonic() - began < SLICE_SECONDS:
            slice_ = min(2 * slice_, SLICE)
    return np.inf


def _for_guards(replica: Replica) -> dict[str, float]:
    """Samples until the arms of the front keep or break their guards, if the means are what they seem to be."""
    needs: dict[str, float] = {}
    for name in replica.verdicts().front:
        arm = replica.index[name]
        for guard in replica.spec.guards:
            n = float(replica.tally.n[arm, replica.columns.index(guard.metric)])
            more = 0.0
            stopping.check()
            while more < MOST_SAMPLES and not replica.guards.settles(arm, guard, n + more):
                more = max(more + 1.0, 1.05 * more)
            needs[name] = max(needs.get(name, 0.0), np.ceil(more) if more < MOST_SAMPLES else np.inf)
    return needs


def known(replica: Replica) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimates, the noise scale and how far off the estimates may be; all (K, R), as algorithms compute."""
    L, units = len(replica.spec.metrics), replica.units
    n = replica.tally.n[replica.seated][:, :L]
    mean = np.where(n > 0, replica.tally.mean[replica.seated][:, :L], np.nan)
    overall = np.nan_to_num(
        np.array([column[~np.isnan(column)].mean() if (column == column).any() else 0.0 for column in mean.T])
    )
    estimates = units.directed(np.where(n > 0, mean, overall))
    squares = replica.tally.squares[replica.seated][:, :L]
    seen = units.spread(_noise_seen(squares, (n - 1).clip(0), replica.session.kernels.pools_noise))
    told = replica.session.setup.sigma
    sigma = seen if told is None else np.where(np.isnan(told), seen, told)
    between = estimates.std(axis=0)
    n = units.fewest(n)
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
