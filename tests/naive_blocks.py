"""A slow, obvious twin of scout for blocks, written from docs/blocks.md: what its kernels are checked against.

It shares nothing with the library. Every sum is worked out again from all outcomes. Constants that were chosen by trial
are handed in. Arms are 0, ..., K-1; larger is better on each of the L metrics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

#: Of the front, dominated, or neither yet.
UNDECIDED, FRONT, DOMINATED = 0, 1, 2
#: Up to this many different values are no normal noise.
FEW = 5


def log_t(lead: float, m: int, squares: float, worth: float, scales: Array, weights: Array) -> float:
    """The t mixture of section 3a of the paper on blocks, with the same bound from below on Student's distribution."""
    terms = []
    for rho, weight in zip(scales, weights, strict=True):
        kappa = rho / (worth + rho)
        spread = squares + kappa * worth * lead**2
        x = lead * math.sqrt((1 - kappa) * worth * m / spread)
        exact = {1: 1, 2: 2, 3: 2}.get(m, 4)
        twice = math.log(2 * stats.t.cdf(x, exact))
        terms.append(
            math.log(weight) + 0.5 * math.log(kappa) + m / 2 * math.log((squares + worth * lead**2) / spread) + twice
        )
    return float(np.logaddexp.reduce(terms))


def log_bets(differences: Array, mean: float, n_list: float, span: float, rates: Array) -> float:
    """The mean wealth of whoever bets a share of it, at each rate, that the next difference is above its expectation."""
    wealth = np.zeros(len(rates))
    total = 0.0
    for t, difference in enumerate(differences):
        expected = mean if math.isinf(n_list) else (n_list * mean - total) / (n_list - t)
        room = span + expected
        if room < -1e-9 * span:
            wealth[:] = np.inf
        elif room > 1e-9 * span:
            wealth += np.log1p(rates * (difference - expected) / room)
        total += difference
    return float(np.logaddexp.reduce(wealth) - math.log(len(rates)))


@dataclass
class NaiveBlocks:
    """Scout on blocks, from the whole history."""

    eps: Array
    delta: float
    n_blocks: int
    listed: bool
    spans: Array  # (L,) infinite: normal
    scales: Array
    weights: Array
    rates: Array
    n_arms: int
    pilots: int = 2
    even: float = 0.2
    reserve: float = 0.05
    outcomes: list[list[Array]] = field(default_factory=list)
    beats: dict[tuple[int, int], float] = field(default_factory=dict)
    escapes: dict[tuple[int, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        K = self.n_arms
        self.outcomes = [[] for _ in range(K)]
        self.status = [UNDECIDED] * K
        self.beaten_by = [-1] * K
        self.threshold = -math.log((1 - self.reserve) / K * self.delta)
        self.against = np.zeros((K, K))
        self.ready = False
        self.values: list[set[float]] = [set() for _ in self.eps]
        self.beats = {(k, j): -math.inf for k in range(K) for j in range(K) if j != k}
        self.escapes = dict(self.beats)

    # What is known of a pair

    def evidence(self, a: int, b: int, metric: int, shift: float) -> float:
        """Evidence that a is better than b by more than a shift."""
        m = min(len(self.outcomes[a]), len(self.outcomes[b]))
        all_of_them = np.array([self.outcomes[a][t][metric] - self.outcomes[b][t][metric] for t in range(m)])
        known, differences = all_of_them[: self.pilots].sum(), all_of_them[self.pilots :]
        n, left, asked = len(differences), math.inf, shift
        if n <= 0:
            return -math.inf
        if self.listed:
            left = self.n_blocks - self.pilots
            asked = (self.n_blocks * shift - known) / left
        if math.isfinite(self.spans[metric]):
            return log_bets(differences, asked, left, self.spans[metric], self.rates)
        own = [{row[metric] for row in self.outcomes[arm][self.pilots :]} for arm in (a, b)]
        if len(self.values[metric]) <= FEW or 1 in (len(set(differences.tolist())), *map(len, own)):
            return -math.inf  # few values, or no variation, are no normal noise
        lead = differences.mean() - asked
        squares = float(((differences - differences.mean()) ** 2).sum())
        worth = n if math.isinf(left) else n * left / (left - n)
        if lead > 0:
            return log_t(lead, n, squares, worth, self.scales, self.weights)
        return -min(1e6, 0.5 * worth * lead**2 * n / max(squares, 1e-300))

    def compare(self, k: int, j: int) -> None:
        """Work out whether j beats k, and whether k escapes j."""
        L = len(self.eps)
        if self.listed and len(self.outcomes[k]) == len(self.outcomes[j]) == self.n_blocks:
            sums = {
                arm: [math.fsum(row[metric] for row in self.outcomes[arm]) for metric in range(L)] for arm in (k, j)
            }
            tiny = [1e-12 * (abs(sums[k][metric]) + abs(sums[j][metric])) for metric in range(L)]
            better = all(sums[j][metric] - sums[k][metric] > tiny[metric] for metric in range(L))
            near = any(
                sums[k][metric] - sums[j][metric] >= -self.n_blocks * self.eps[metric] - tiny[metric]
                for metric in range(L)
            )
            self.beats[k, j] = math.inf if better else -math.inf
            self.escapes[k, j] = math.inf if near else -math.inf
            return
        self.beats[k, j] = min(self.evidence(j, k, metric, 0.0) for metric in range(L)) + self.against[k, j]
        self.escapes[k, j] = max(self.evidence(k, j, metric, -self.eps[metric]) for metric in range(L)) - math.log(L)

    def settle_shares(self) -> None:
        """Each arm has a fifth for all of its rivals alike, the rest by their ranks: 1 / (r (r + 1)) of it."""
        K = self.n_arms
        pilots = np.array([np.mean(rows[: self.pilots], axis=0) for rows in self.outcomes])
        spread = pilots.std(axis=0)
        for k in range(K):
            leads = {}
            for j in range(K):
                if j != k:
                    scaled = np.where(spread > 0, (pilots[j] - pilots[k]) / np.where(spread > 0, spread, 1.0), 0.0)
                    leads[j] = scaled.min()
            ranked = sorted(leads, key=lambda j: (-leads[j], j))
            for rank, j in enumerate(ranked, 1):
                share = self.even / (K - 1) + (1 - self.even) * K / (K - 1) / (rank * (rank + 1))
                self.against[k, j] = math.log((1 - self.reserve) * share)

    # Verdicts

    def best(self, k: int) -> int:
        """Who beats k most clearly."""
        return max((j for j in range(self.n_arms) if j != k), key=lambda j: (self.beats[k, j], -j))

    def worst(self, k: int) -> int:
        """Whom k escapes least clearly, of those that stand; -1: nobody is left."""
        standing = [j for j in range(self.n_arms) if j != k and self.status[j] != DOMINATED]
        return min(standing, key=lambda j: (self.escapes[k, j], j), default=-1)

    def lacks_to_escape(self, k: int) -> float:
        """How much evidence k has beyond what it needs to be of the front."""
        worst = self.worst(k)
        return math.inf if worst < 0 else self.escapes[k, worst] - (self.threshold - math.log(1 - self.reserve))

    def tell(self, arm: int, outcome: Array) -> None:
        """Take in the outcome of an arm on its next block."""
        K = self.n_arms
        self.outcomes[arm].append(outcome)
        few = [len(seen) <= FEW for seen in self.values]
        for seen, value in zip(self.values, outcome, strict=True):
            seen.add(float(value))
        enough = few != [len(seen) <= FEW for seen in self.values]
        if not self.ready:
            if min(map(len, self.outcomes)) < self.pilots:
                return
            self.ready = True
            self.settle_shares()
            pairs = [(k, j) for k in range(K) for j in range(K) if j != k]
        elif enough:  # everything is judged again
            self.status, self.beaten_by = [UNDECIDED] * K, [-1] * K
            pairs = [(k, j) for k in range(K) for j in range(K) if j != k]
        elif self.status[arm] == DOMINATED:
            return
        else:
            others = [j for j in range(K) if j != arm and self.status[j] != DOMINATED]
            # a pair that has seen nothing new stays as it was
            others = [j for j in others if len(self.outcomes[j]) >= len(self.outcomes[arm])]
            pairs = [(arm, j) for j in others] + [(j, arm) for j in others]
        for k, j in pairs:
            self.compare(k, j)
        changed = True
        while changed:
            changed = False
            for k in range(K):
                if self.status[k] == UNDECIDED and self.beats[k, self.best(k)] >= self.threshold:
                    self.status[k], self.beaten_by[k], changed = DOMINATED, self.best(k), True
                elif self.status[k] == UNDECIDED and self.lacks_to_escape(k) >= 0:
                    self.status[k], changed = FRONT, True

    # What is measured

    def next_arm(self, first: int) -> int:
        """The arm that lags, of those that are undecided and the one rival of each on whom the nearer verdict hangs."""
        K = self.n_arms
        wanted = [0] * K
        for k in range(K):
            if self.status[k] == UNDECIDED:
                wanted[k] = 2
                rival = -1
                if self.ready:
                    nearer = self.beats[k, self.best(k)] - self.threshold >= self.lacks_to_escape(k)
                    rival = self.best(k) if nearer else self.worst(k)
                if rival >= 0:
                    wanted[rival] = max(wanted[rival], 1)
        turns = [(first + turn) % K for turn in range(K)]
        left = [k for k in turns if len(self.outcomes[k]) < self.n_blocks and self.status[k] != DOMINATED]
        return min(left, key=lambda k: (wanted[k] == 0, len(self.outcomes[k]), -wanted[k], turns.index(k)))
