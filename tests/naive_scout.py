"""Slow, obvious twins of scout, written from docs/scout.md: what the kernels of scout are checked against.

They share nothing with the library. The history of (arm, outcome) is kept, and every mean, matrix and tally of evidence
is worked out again from all of it; every minimum is left to a general minimiser. Constants that were chosen by trial
(scales, weights, shares) are handed in. Arms are 0, ..., K-1; larger is better on each of the L metrics.

Where a twin is asked which arm is next it returns a set: more than one where rounding alone tells them apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import numpy as np
from naive_blocks import log_t as log_paired_t
from naive_guide import expectations, models
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaincc, log_ndtr

Array = NDArray[np.float64]


def close(a: float, b: float) -> bool:
    """Whether two numbers are equal but for rounding."""
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def log_total(terms: Iterable[float] | Array) -> float:
    """log of the sum of exp(term)."""
    return float(np.logaddexp.reduce(np.array([-np.inf, *terms])))


def cost_of_sample(cost: float, gap: float, mean_gap: float, regret_weight: float) -> float:
    """max(0.005, (1 - r) / r) times the cost, plus gap / mean gap; at r = 0 the cost alone counts."""
    if regret_weight == 0 or mean_gap == 0:
        return cost
    return max(0.005, (1 - regret_weight) / regret_weight) * cost + gap / mean_gap


# ---------------------------------------------------------------------- evidence that the mean of an arm is off by u


def half_normal(z: float) -> float:
    """g(z) = z^2 / 2 + log(2 Phi(z))."""
    return 0.5 * z * z + math.log(2) + float(log_ndtr(z))


def log_t(u: float | Array, n: int, variance: float, scales: Array, weights: Array) -> Array:
    """Normal noise of unknown scale: the likelihood ratio of a t-test, its effect size mixed over all scales."""
    square = np.atleast_1d(np.asarray(u, float))[:, None] ** 2
    kappa = scales / (n + scales)
    apart = variance + square > 0  # equal samples that meet the mean say nothing against it
    ratio = np.where(apart, variance + square, 1.0) / np.where(apart, variance + kappa * square, 1.0)
    return np.logaddexp.reduce(np.log(weights) + 0.5 * np.log(kappa) + n / 2 * np.log(ratio), axis=1)


def log_bernstein(u: float, n: int, spread: float, rates: Array) -> float:
    """Outcomes between 0 and 1: the mean over rates c of exp(c n u - psi(c) spread), psi(c) = -log(1 - c) - c."""
    return log_total(-math.log(len(rates)) + rates * n * u + (np.log1p(-rates) + rates) * spread)


def log_surprise(log_product: float) -> float:
    """-log p, p the probability that two standard exponential variables add up to more than this.

    So much the logs of the largest values of two e-processes are at most. Below 0 nothing is said, only ranked.
    """
    return -math.log(gammaincc(2, log_product)) if log_product > 0 else log_product


def least(f: Callable[[float], float], low: float, high: float) -> float:
    """The minimum of a convex function from low to high."""
    found = minimize_scalar(f, bounds=(low, high), method="bounded", options={"xatol": 1e-12 * (high - low)})
    return min(float(found.fun), f(low), f(high))


@dataclass
class Known:
    """What the samples of one arm, the pilot left out, say of one metric."""

    n: int
    mean: float
    variance: float  # about the mean, divided by n
    spread: (
        float  # sum of squared distances, each to the average before it (with one more, half way), bounds at 0 and 1
    )


class NaiveScout:
    """Scout for arms without contexts.

    sigma: (K, L); nan: nobody knows it. Then metrics with finite bounds may have noise of any law, and the others must
    have normal noise; evidence on these comes as p-values, which may not be added.
    v: (K,) what of delta is for each arm, before pilots. entered: (K,) 0: there at the beginning; r: came with the r-th
    addition.
    """

    def __init__(
        self,
        K: int,
        L: int,
        eps: Array,
        delta: float,
        sigma: Array,
        bounds: Array | None = None,
        cost: Array | None = None,
        regret_weight: float = 0.5,
        *,
        v: Array,
        entered: NDArray[np.int64],
        exact: NDArray[np.bool_],  # (L,) whether a number that never varied is certain
        scales: Array,  # (L, R)
        weights: Array,  # (R,)
        rates: Array,
        by_pilot: float,  # how much of the evidence against an arm is shared by pilots; 0: there are none
        few: int,  # fewer samples than that do not tell the variance of an arm
        contexts: Array | None = None,  # that guide it
        assumed: float,  # the share of noise in the spread of the pilots, where sigma is unknown
        alone: float = 1.0,  # normal noise: the share of evidence that looks at each arm by itself
        paired_scales: Array | None = None,  # the rest is for outcomes paired by their numbers: scales, evenly weighted
    ) -> None:
        self.assumed, self.alone = assumed, alone
        self.paired_scales = np.empty(0) if paired_scales is None else paired_scales
        self.paired_weights = np.full(len(self.paired_scales), (1 - alone) / max(1, len(self.paired_scales)))
        self.K, self.L, self.eps, self.sigma = K, L, eps, sigma
        self.designs = [] if contexts is None else models(contexts, entered == 0)
        self.bounds = np.tile([-np.inf, np.inf], (L, 1)) if bounds is None else bounds
        cost = np.ones(K) if cost is None else cost
        self.cost, self.regret_weight = cost / cost.mean(), regret_weight
        self.scales, self.weights, self.rates, self.by_pilot, self.few = scales, weights, rates, by_pilot, few
        self.delta, self.even, self.entered, self.exact = delta, v, entered, exact
        self.presence = np.zeros(K, int)  # 0: present, 1: doubtful, 2: gone, 3: missed
        self.history: list[tuple[int, Array]] = []
        self.summarise()

    # ------------------------------------------------------------------ the history

    def tell(self, arm: int, outcome: Array) -> None:
        """Keep an outcome; metrics that were not observed are nan."""
        self.history.append((arm, np.array(outcome, float)))

    def noise(self, metric: int) -> str:
        if not np.isnan(self.sigma[:, metric]).any():
            return "sigma"
        return "bounds" if np.isfinite(self.bounds[metric]).all() else "normal"

    @property
    def off(self) -> float:
        """By how much the evidence may be above what pairs are ranked by, as it is used here."""
        return 0.0 if self.alone == 1 else np.inf

    @property
    def e_values(self) -> bool:
        return all(self.noise(metric) != "normal" for metric in range(self.L))

    def summarise(self) -> None:
        """Work out, from the whole history, what is known of every arm and metric."""
        arms = np.array([arm for arm, _ in self.history], int)
        outcomes = np.array([outcome for _, outcome in self.history]).reshape(-1, self.L)
        self.pulls = np.array([np.count_nonzero(arms == k) for k in range(self.K)])
        self.observed = [[column[~np.isnan(column)] for column in outcomes[arms == k].T] for k in range(self.K)]
        self.values_seen = [len(set(column[~np.isnan(column)])) for column in outcomes.T]
        self.known = [[self.know(arm, metric) for metric in range(self.L)] for arm in range(self.K)]
        self.v = self.shares_of_delta()
        self.thresholds = np.log(1 / (self.v * self.delta))

    def know(self, arm: int, metric: int) -> Known:
        values = self.observed[arm][metric][1 if self.by_pilot else 0 :]
        if len(values) == 0:
            return Known(0, 0.0, 0.0, 0.0)
        spread = 0.0
        if self.noise(metric) == "bounds":
            low, high = self.bounds[metric]
            placed = (values - low) / (high - low)
            before = [(0.5 + placed[:s].sum()) / (s + 1) for s in range(len(placed))]
            spread = float(np.sum((placed - before) ** 2))
        return Known(len(values), float(values.mean()), float(values.var()), spread)

    def says_nothing(self, arm: int, metric: int) -> bool:
        """Normal noise is not believed in where an arm's values never vary, or a metric has at most five."""
        if self.noise(metric) != "normal" or self.exact[metric]:
            return False
        return len(set(self.observed[arm][metric][1 if self.by_pilot else 0 :])) < 2 or self.values_seen[metric] <= 5

    # ------------------------------------------------------------------ evidence on a pair

    def of_split(self, i: Known, j: Known, metric: int, u: float, rest: float) -> float:
        """Log evidence, sigma unknown, if arm i is off by u and arm j by the rest."""
        if self.noise(metric) == "normal":
            if i.n < 2 or j.n < 2:
                return -np.inf
            scales = self.scales[metric]
            at_i, at_j = (log_t(off, a.n, a.variance, scales, self.weights)[0] for off, a in ((u, i), (rest, j)))
            return log_surprise(float(at_i + at_j))
        unit = float(np.diff(self.bounds[metric])[0])
        return sum(log_bernstein(off / unit, a.n, a.spread, self.rates) for off, a in ((u, i), (rest, j)))

    def evidence(self, i: int, j: int, metric: int, shift: float = 0.0) -> float:
        """Log evidence that the mean of i, plus the shift, is above that of j: the least over all ways to share."""
        a, b = self.known[i][metric], self.known[j][metric]
        D = a.mean + shift - b.mean
        if D <= 0 or a.n == 0 or b.n == 0 or self.says_nothing(i, metric) or self.says_nothing(j, metric):
            return -np.inf
        if self.noise(metric) == "sigma":
            return self.known_evidence(i, j, metric, D)
        if self.noise(metric) == "normal":
            if a.n < 2 or b.n < 2:
                return -np.inf
            paired = self.paired(i, j, metric, shift)
            if math.log(self.alone) + self.of_split(a, b, metric, D / 2, D / 2) <= paired:
                return paired  # what each arm says by itself is no more than for one way to share
            splits = np.linspace(0, D, 4001)  # there may be several minima
            scales = self.scales[metric]
            values = log_t(splits, a.n, a.variance, scales, self.weights)
            values = values + log_t(D - splits, b.n, b.variance, scales, self.weights)
            return max(math.log(self.alone) + log_surprise(float(values.min())), paired)
        low, high = self.bounds[metric]
        # no mean is beyond the bounds, so that of i can be off by no more than lies between
        return least(lambda u: self.of_split(a, b, metric, u, D - u), a.mean - high, a.mean - low)

    def paired(self, i: int, j: int, metric: int, shift: float) -> float:
        """Log evidence that the mean of i, plus the shift, is above that of j, of their t-th outcomes, t = 1, 2, ..."""
        if self.alone == 1:
            return -np.inf
        of_i, of_j = (self.observed[arm][metric][1:] for arm in (i, j))
        m = min(len(of_i), len(of_j))
        differences = of_i[:m] + shift - of_j[:m]
        lead = float(differences.mean())
        if lead <= 0:
            return -np.inf
        return log_paired_t(lead, m, float(m * differences.var()), m, self.paired_scales, self.paired_weights)

    def about_paired(self, i: int, j: int, metric: int, D: float) -> float:
        """About what that is, if the outcomes of each arm that count were as all of its outcomes are."""
        m = min(self.known[i][metric].n, self.known[j][metric].n)
        if self.alone == 1 or D == 0:
            return -np.inf
        squares = m * (self.variance(i, metric) + self.variance(j, metric))
        value = log_paired_t(abs(D), m, squares, m, self.paired_scales, self.paired_weights)
        return value if D > 0 else -value - math.log1p(m / self.paired_scales[0])

    def known_evidence(self, i: int, j: int, metric: int, D: float) -> float:
        """Log evidence of a difference where sigma is known."""
        a, b = self.known[i][metric], self.known[j][metric]
        sigma_a, sigma_b = self.sigma[[i, j], metric]
        if sigma_a == sigma_b == 0:
            return np.inf
        terms = []
        for rho, weight in zip(self.scales[metric], self.weights, strict=True):
            s_a, s_b = sigma_a * math.sqrt(a.n + rho) / a.n, sigma_b * math.sqrt(b.n + rho) / b.n
            price_a, price_b = 0.5 * math.log(1 + a.n / rho), 0.5 * math.log(1 + b.n / rho)
            if sigma_a == 0:  # its mean is known: all of the difference is the other's
                terms.append(math.log(weight) - price_b + half_normal(D / s_b))
                continue
            if sigma_b == 0:
                terms.append(math.log(weight) - price_a + half_normal(D / s_a))
                continue

            def shared(u: float, s_a: float = s_a, s_b: float = s_b) -> float:
                return half_normal(u / s_a) + half_normal((D - u) / s_b)

            price = math.log(weight) - price_a - price_b
            # the function is convex and grows on both sides: Brent's method finds its own bracket
            terms.append(price + float(minimize_scalar(shared, bracket=(0.0, D + s_a)).fun))
        return log_total(terms)

    def bound(self, i: int, j: int, metric: int, shift: float = 0.0) -> float:
        """What pairs are ranked by, low where i looks worse; at least the evidence, or, of paired outcomes, about that.

        Sigma known: the evidence itself. Else: the value where each arm takes its share of the variance, or, of an arm
        with few samples, takes all it can.
        """
        a, b = self.known[i][metric], self.known[j][metric]
        D = a.mean + shift - b.mean
        if a.n == 0 or b.n == 0 or self.says_nothing(i, metric) or self.says_nothing(j, metric):
            return -np.inf
        if self.noise(metric) == "sigma":
            if D > 0:
                return self.evidence(i, j, metric, shift)
            square = float(self.squared_error(i, metric)[0] + self.squared_error(j, metric)[0])
            # as far below what no difference says as a difference is above it
            return self.known_evidence(i, j, metric, 0.0) - D**2 / (2 * square) if square > 0 else -np.inf
        v_a, v_b = self.squared_error(i, metric)[0], self.squared_error(j, metric)[0]
        size = abs(D)
        # the mean of i is not below its bound
        most = size if self.noise(metric) == "normal" else min(size, a.mean - self.bounds[metric][0])
        splits = [min(most, size * v_a / (v_a + v_b) if v_a + v_b > 0 else size / 2)]
        splits += [most] if a.n < self.few else []
        splits += [0.0] if b.n < self.few else []
        value = min(self.of_split(a, b, metric, u, size - u) for u in splits)
        if value == -np.inf:
            return value
        if D <= 0:  # as far below what no difference says as the reverse is above it
            value = 2 * self.of_split(a, b, metric, 0.0, 0.0) - value
        if self.noise(metric) != "normal":
            return value
        return max(math.log(self.alone) + value, self.about_paired(i, j, metric, D))

    def variance(self, arm: int, metric: int) -> float:
        """Of one sample: known, or estimated."""
        known = self.known[arm][metric]
        if self.noise(metric) == "sigma":
            return float(self.sigma[arm, metric] ** 2)
        if known.n == 0:
            return np.inf
        unit = float(np.diff(self.bounds[metric])[0])
        return known.variance if self.noise(metric) == "normal" else known.spread * unit**2 / known.n

    def squared_error(self, arm: int, metric: int) -> Array:
        """What a squared deviation of the arm's mean is measured by, for each scale."""
        n = self.known[arm][metric].n
        return self.variance(arm, metric) * (n + self.scales[metric]) / n**2

    # ------------------------------------------------------------------ verdicts

    def shares_of_delta(self) -> Array:
        """What of delta is for each arm: half of it is certain, half goes by the pilots, once all are in."""
        if not self.by_pilot:
            return self.even
        v = 0.5 * self.even
        for addition in sorted(set(self.entered.tolist())):
            leads = self.pilot_leads(self.entered <= addition)
            if leads is None:
                break
            came = self.entered == addition
            gaps = np.maximum(0, leads[:, came].max(axis=0))
            h = np.exp((gaps.min() ** 2 - gaps**2) / 4)
            v[came] += 0.5 * self.even[came].sum() * h / h.sum()
        return v

    def pilot_leads(self, among: NDArray[np.bool_]) -> Array | None:
        """Row j, column k: by how much j led k in every metric in the pilots, in units of the noise; None: not all are in.

        Of arms that are not among those asked for: minus infinity.
        """
        if not all(len(values) > 0 for j in np.flatnonzero(among) for values in self.observed[j]):
            return None
        leads = np.full((self.K, self.K), np.inf)
        for metric in range(self.L):
            expected, square = self.expected(metric)
            scale = np.sqrt((square[:, None] + square) / 2)
            lead = (expected[:, None] - expected) / np.where(scale > 0, scale, np.inf)
            leads = np.minimum(leads, lead)
        leads[~among] = leads[:, ~among] = -np.inf
        np.fill_diagonal(leads, -np.inf)
        return leads

    def expected(self, metric: int) -> tuple[Array, Array]:
        """Where arms seem to be, and the variance of that: settled by the pilots of those that came no later."""
        pilots = np.array([row[metric][0] if len(row[metric]) else np.nan for row in self.observed])
        expected, square = pilots.copy(), np.full(self.K, np.nan)
        for addition in set(self.entered.tolist()):
            there, came = self.entered <= addition, self.entered == addition
            if not np.isnan(pilots[there]).any():
                sigma = self.sigma[there, metric] if self.noise(metric) == "sigma" else None
                guessed = expectations([design[there] for design in self.designs], pilots[there], sigma, self.assumed)
                expected[came], square[came] = (values[came[there]] for values in guessed)
        return expected, square

    def joined(self, terms: list[float]) -> float:
        """Evidence of several hypotheses together: e-values add up, of p-values the best counts."""
        return log_total(terms) if self.e_values else max(terms, default=-np.inf)

    def there(self, arm: int) -> bool:
        return bool(self.presence[arm] <= 1)

    def settled(self, k: int) -> bool:
        """Whether the pilots of all that are there, and came no later than k, are in."""
        return not self.by_pilot or all(
            len(values) > 0
            for j in range(self.K)
            if self.there(j) and self.entered[j] <= self.entered[k]
            for values in self.observed[j]
        )

    def shares(self, k: int) -> Array:
        """How evidence that k is dominated is shared among the others, whether they are still there or not.

        0.9 among those there when k came, most of it by how far they lead in the pilots; 0.05 / 2^r among those of the
        r-th addition after it. Without all of the pilots only the even part is known.
        """
        shares = np.zeros(self.K)
        for j in range(self.K):
            later = int(self.entered[j] - self.entered[k])
            if later > 0:
                shares[j] = 0.05 / 2**later / np.count_nonzero(self.entered == self.entered[j])
        before = self.entered <= self.entered[k]
        others = before & (np.arange(self.K) != k)
        shares += 0.9 * (1 - self.by_pilot) * others / max(1, others.sum())
        leads = self.pilot_leads(before) if self.by_pilot else None
        if leads is None or not others.any():
            return shares
        by_pilot = np.exp(leads[:, k] - leads[others, k].max())
        return np.asarray(shares + 0.9 * self.by_pilot * by_pilot / by_pilot.sum())

    def against(self, k: int, eliminated: Collection[int], bound: bool = False) -> float:
        """Log evidence that k is not Pareto-optimal: the weighted sum over j of min_l e(y_j - y_k)."""
        measure = self.bound if bound else self.evidence
        rivals = [j for j in range(self.K) if j != k and j not in eliminated and self.there(j)]
        shares = self.shares(k) if rivals else np.ones(self.K)
        return self.joined(
            [math.log(shares[j]) + min(measure(j, k, metric) for metric in range(self.L)) for j in rivals]
        )

    def log_share(self, j: int) -> float:
        """Of what k may spend, 0.95 is for escaping the one that is better, 0.025 for all that are doubtful."""
        return math.log(0.025 * self.v[j] if self.presence[j] == 1 else 0.95)

    def in_favour(self, k: int, eliminated: Collection[int], bound: bool = False) -> float:
        """Log evidence that k is within eps of optimal: the least over j of the mean over l of e(y_k + eps - y_j)."""
        measure = self.bound if bound else self.evidence
        return min(
            (
                self.joined([measure(k, j, metric, self.eps[metric]) for metric in range(self.L)])
                - math.log(self.L)
                + self.log_share(j)
                for j in range(self.K)
                if j != k and j not in eliminated and self.presence[j] != 2
            ),
            default=np.inf,
        )

    def escapes_by_measurement(self, k: int, j: int) -> bool:
        """Whether the samples of k and j alone show that j is not better than k by more than eps in every metric."""
        if self.escapes(k, j) < self.thresholds[k]:
            return False
        evidence = self.joined([self.evidence(k, j, metric, self.eps[metric]) for metric in range(self.L)])
        return evidence - math.log(self.L) + self.log_share(j) >= self.thresholds[k] - 1e-6

    def may_eliminate(self, k: int, eliminated: Collection[int], more: float = -1e-6) -> bool:
        """Whether the evidence reaches what is needed, and so much more."""
        needed = self.thresholds[k] + more
        if not self.settled(k) or self.against(k, eliminated, bound=True) < needed - self.off:
            return False  # where the bound falls short so does the evidence
        return self.against(k, eliminated) >= needed

    def may_accept(self, k: int, eliminated: Collection[int], more: float = -1e-6) -> bool:
        needed = self.thresholds[k] + more
        if not self.settled(k) or self.in_favour(k, eliminated, bound=True) < needed - self.off:
            return False
        return self.in_favour(k, eliminated) >= needed

    def verdicts(self, more: float = -1e-6) -> list[str]:
        """All verdicts again: first who is eliminated, by whoever is there; then who escapes the rest."""
        gone = {k for k in range(self.K) if self.presence[k] != 2 and self.may_eliminate(k, (), more)}
        return [
            "dominated" if k in gone else "front" if self.there(k) and self.may_accept(k, gone, more) else "undecided"
            for k in range(self.K)
        ]

    # ------------------------------------------------------------------ the next arm

    def beats(self, k: int, j: int) -> float:
        """To rank by: how evident it is that j is better than k in every metric."""
        return min(self.bound(j, k, metric) for metric in range(self.L))

    def escapes(self, k: int, j: int) -> float:
        """To rank by: how evident it is that j is not better than k by more than eps in every metric."""
        most = max(self.bound(k, j, metric, self.eps[metric]) for metric in range(self.L))
        return most + self.log_share(j)

    def term(self, k: int, j: int, metric: int, lead: float) -> float:
        """The largest term of the evidence of a lead, as if it were two-sided: by which rivals are picked."""
        n_k, n_j = self.known[k][metric].n, self.known[j][metric].n
        if n_j == 0:
            return -np.inf
        prices = 0.5 * np.log1p(n_k / self.scales[metric]) + 0.5 * np.log1p(n_j / self.scales[metric])
        with np.errstate(divide="ignore", invalid="ignore"):
            square = np.full(len(prices), np.inf)
            if n_k > 0:
                square = self.squared_error(k, metric) + self.squared_error(j, metric)
            exponent = np.where(lead > 0, lead**2 / (2 * square), 0.0)
            if self.noise(metric) == "normal" and n_k > 0 and np.isfinite(exponent).all():
                half = min(n_k, n_j) / 2
                exponent = half * np.log1p(exponent / half)
            below = lead**2 / (2 * square[0]) if lead < 0 else 0.0
        return float(np.max(np.log(self.weights) - prices + exponent) - below)

    def rivals(self, k: int, eliminated: Collection[int]) -> tuple[list[int], list[int]]:
        """Who beats k most clearly, if anybody leads it in every metric, and whom it escapes least; several, where equal."""
        others = [j for j in range(self.K) if j != k and j not in eliminated and self.presence[j] != 2]
        lead = {j: [b.mean - a.mean for a, b in zip(self.known[k], self.known[j], strict=True)] for j in others}
        beats = {
            j: min(self.term(k, j, metric, lead[j][metric]) for metric in range(self.L))
            for j in others
            if self.there(j) and min(lead[j]) > 0
        }
        escapes = {
            j: max(self.term(k, j, metric, self.eps[metric] - lead[j][metric]) for metric in range(self.L))
            for j in others
        }
        most, fewest = max(beats.values(), default=-np.inf), min(escapes.values(), default=np.inf)
        return (
            [j for j in beats if most > -np.inf and (beats[j] == most or close(beats[j], most))],
            [j for j in escapes if escapes[j] == fewest or close(escapes[j], fewest)],
        )

    def lacks(self, k: int, j: int, beaten: bool) -> float:
        """How many samples the pair lacks for a verdict on k, if each lead is larger by one deviation than it looks."""
        times = []
        for metric in range(self.L):
            lead = self.known[j][metric].mean - self.known[k][metric].mean
            lead = lead if beaten else self.eps[metric] - lead
            square = sum(self.variance(arm, metric) / max(1, self.known[arm][metric].n) for arm in (k, j))
            hoped = max(0.0, lead) + math.sqrt(square)
            times.append(2 * (self.thresholds[k] + 3) * square / hoped**2 if hoped > 0 else np.inf)
        n_k, n_j = (max(1, min(known.n for known in self.known[arm])) for arm in (k, j))
        return ((max(times) if beaten else min(times)) - 1) * n_k * n_j / (n_k + n_j)

    def gain(self, arm: int, gaps: Array, mean_gap: float, pending: Array) -> float:
        """By how much one more sample shrinks the variance of the arm's mean, 1/n - 1/(n + 1), per cost."""
        n = min(known.n for known in self.known[arm]) + pending[arm]
        if self.alone < 1:
            return 1 / (1 + n)  # where outcomes are paired, who has fewer goes first
        if n == 0:
            return np.inf
        largest = np.where((self.sigma > 0).any(axis=0), self.sigma.max(axis=0), np.inf)
        ratios = np.where(np.isfinite(largest), self.sigma[arm] / largest, 1.0)  # of noise that nobody knows: 1
        cost = cost_of_sample(self.cost[arm], gaps[arm], mean_gap, self.regret_weight)
        return float((1 / n - 1 / (n + 1)) * (ratios**2).mean() / cost)


# ---------------------------------------------------------------------- linear means

BEATEN, ESCAPES = "beaten", "escapes"


def once(method: Callable[[NaiveLinearScout, int], Array]) -> Callable[[NaiveLinearScout, int], Array]:
    """The first t rounds never change: what was worked out of them is kept."""

    def remembered(twin: NaiveLinearScout, t: int) -> Array:
        key = (method.__name__, t)
        if key not in twin.memory:
            twin.memory[key] = method(twin, t)
        return twin.memory[key]

    return remembered


@dataclass
class Position:
    """Where an arm stands, by the pair that decides it."""

    against: float = -np.inf  # evidence of its clearest dominator
    dominators: set[int] = field(default_factory=set)  # those that reach this, but for rounding
    in_favour: float = np.inf  # evidence that it escapes the arm it escapes least
    obstacles: set[int] = field(default_factory=set)


class NaiveLinearScout:
    """Scout for means that are linear in the contexts, up to a misfit.

    `look` marks the rounds at which all arms are looked at: the gaps, the prices of the mixture and the bound on sigma
    are those of the last look. contexts: in coordinates in which their mean outer product is the unit matrix.
    """

    def __init__(
        self,
        contexts: Array,
        L: int,
        eps: Array,
        delta: float,
        sigma: Array | None,
        misfit: Array | None = None,
        cost: Array | None = None,
        regret_weight: float = 0.5,
        *,
        same: Collection[tuple[int, int]] = (),  # pairs of arms with equal contexts
        negligible: float,  # contexts that differ by less, relatively and squared, count as equal too
        scales: Array,  # (L, R)
        weights: Array,  # (R,)
        for_sigma: float,  # share of delta that goes into a bound on sigma where it is unknown
        rates: Array,  # at which that bound is tried
    ) -> None:
        self.x, self.L, self.eps, self.sigma_given = contexts, L, eps, sigma
        self.K, self.d = contexts.shape
        self.misfit = np.zeros(L) if misfit is None else misfit
        cost = np.ones(self.K) if cost is None else cost
        self.cost, self.regret_weight = cost / cost.mean(), regret_weight
        self.same, self.negligible = set(same), negligible
        self.scales, self.weights, self.rates = scales, weights, rates
        self.threshold = math.log(L / delta)
        self.sigma_price = math.log(len(rates) * L / (for_sigma * delta))
        if sigma is None:
            self.threshold = math.log(L / ((1 - for_sigma) * delta))
        self.history: list[tuple[int, Array]] = []
        self.looks: list[int] = []  # lengths of the history
        self.memory: dict[tuple[str, int], Array] = {}

    def tell(self, arm: int, outcome: Array) -> None:
        self.history.append((arm, np.array(outcome, float)))

    def look(self) -> None:
        self.looks.append(len(self.history))

    @property
    def t(self) -> int:
        return len(self.history)

    # ------------------------------------------------------------------ least squares after t rounds

    def design(self, t: int) -> Array:
        """X (t, d): the contexts of the arms that were sampled."""
        return np.array([self.x[arm] for arm, _ in self.history[:t]]).reshape(t, self.d)

    def outcomes(self, t: int) -> Array:
        """Y (t, L)."""
        return np.array([y for _, y in self.history[:t]]).reshape(t, self.L)

    @once
    def gram(self, t: int) -> Array:
        """A = sum x x^T."""
        return np.asarray(self.design(t).T @ self.design(t))

    @once
    def theta(self, t: int) -> Array:
        return np.asarray(np.linalg.lstsq(self.design(t), self.outcomes(t), rcond=None)[0])

    @once
    def unexplained(self, t: int) -> Array:
        """(L,) the sum of squares that the model leaves, and what rounding may hide."""
        left = self.outcomes(t) - self.design(t) @ self.theta(t)
        return np.asarray((left**2).sum(axis=0) + 1e-24 * (self.outcomes(t) ** 2).sum(axis=0))

    def means(self, t: int) -> Array:
        return np.asarray(self.x @ self.theta(t))

    @once
    def log_prices(self, t: int) -> Array:
        """(L, R) log w - 1/2 log det(I + A / rho)."""
        dets = [[np.linalg.slogdet(np.eye(self.d) + self.gram(t) / rho)[1] for rho in row] for row in self.scales]
        return np.asarray(np.log(self.weights) - 0.5 * np.array(dets))

    def bias(self, k: int, j: int, t: int) -> float:
        """b_z = sum_i |1{i=k} - 1{i=j} - n_i z^T A^-1 x_i|: what of a misfit of 1 can hide in a difference."""
        n = np.array([sum(1 for arm, _ in self.history[:t] if arm == i) for i in range(self.K)])
        own = 1.0 * (np.arange(self.K) == k) - 1.0 * (np.arange(self.K) == j)
        return float(np.abs(own - n * (self.x @ np.linalg.solve(self.gram(t), self.x[k] - self.x[j]))).sum())

    # ------------------------------------------------------------------ the scale of the noise

    @once
    def sigma_bounds(self, t: int) -> Array:
        """(L,) upper bounds on sigma from what the model leaves unexplained after t rounds; infinite: there is none.

        For normal noise exp((t/2) log(1 + 2 c) - c sum eta^2 / sigma^2) is a martingale for each rate c, so that sum eta^2
        is at least sigma^2 q. Of this the fit takes S^T A^-1 S <= (1 + rho trace(A^-1)) S^T (A + rho I)^-1 S, and that
        the evidence holds down. A misfit can hide as much as its norm.
        """
        q = ((0.5 * t * np.log1p(2 * self.rates) - self.sigma_price) / self.rates).max()
        trace = np.trace(np.linalg.inv(self.gram(t)))
        taken = ((1 + self.scales * trace) * 2 * (self.threshold - self.log_prices(t))).min(axis=1)
        left = np.sqrt(self.unexplained(t)) + self.misfit * math.sqrt(t)
        many = [len(set(values)) > 5 for values in self.outcomes(t).T]  # few values do not look like normal noise
        return np.array(
            [b / math.sqrt(q - c) if q > c and m else np.inf for b, c, m in zip(left, taken, many, strict=True)]
        )

    def sigma(self, metric: int, looks: list[int]) -> tuple[float, bool]:
        """Sigma, or the least upper bound of all looks, or, where there is none, an estimate; and if it is one."""
        if self.sigma_given is not None:
            return float(self.sigma_given[metric]), False
        bound = min(self.sigma_bounds(t)[metric] for t in looks)
        if bound < np.inf:
            return float(bound), False
        return math.sqrt(self.unexplained(looks[-1])[metric] / max(1, looks[-1] - self.d)), True

    # ------------------------------------------------------------------ evidence and verdicts

    def evidence(self, D: float, a: float, b: float, sigma: float, scales: Array, prices: Array) -> float:
        """Log e-value along z from a difference D; below 0, only to rank, where it points the other way."""
        if D <= 0 or sigma == 0:
            return np.inf if D > 1e-9 else float(-(D**2) / (2 * max(sigma**2 * a, 1e-300)))
        return log_total(prices + D**2 / (2 * sigma**2 * (a + scales * b)))

    def pair(self, k: int, j: int, t: int, looks: list[int]) -> tuple[list[float], list[float]]:
        """Metric by metric, after t rounds: evidence that j is better than k, and that k escapes j by eps."""
        z = self.x[k] - self.x[j]
        w = np.linalg.solve(self.gram(t), z)
        a, b, look = float(z @ w), float(w @ w), looks[-1]
        beaten, escapes = [], []
        bias = self.bias(k, j, look) if self.misfit.any() else 0.0
        theta = self.theta(t)
        for metric in range(self.L):
            sigma, _ = self.sigma(metric, looks)
            scales, prices = self.scales[metric], self.log_prices(look)[metric]
            lead, hidden = float(z @ theta[:, metric]), self.misfit[metric] * bias
            beaten.append(self.evidence(-lead - hidden, a, b, sigma, scales, prices))
            escapes.append(self.evidence(lead + self.eps[metric] - hidden, a, b, sigma, scales, prices))
        return beaten, escapes

    def equal(self, k: int, j: int, t: int) -> bool:
        """Whether the model cannot tell two arms apart."""
        z = self.x[k] - self.x[j]
        solved = np.linalg.solve(self.gram(t), np.array([z, self.x[k], self.x[j]]).T)
        size = self.x[k] @ solved[:, 1] + self.x[j] @ solved[:, 2]
        return (k, j) in self.same or bool(z @ solved[:, 0] <= self.negligible * size)

    def escapes_equal(self) -> float:
        """Arms that the model takes for equal differ by two misfits at most."""
        return np.inf if (self.eps >= 2 * self.misfit).any() else -np.inf

    def certain(self, looks: list[int]) -> bool:
        """An estimate of sigma ranks pairs, but proves nothing."""
        return not any(self.sigma(metric, looks)[1] for metric in range(self.L))

    def may_eliminate(self, k: int, eliminated: Collection[int], looks: list[int]) -> bool:
        """Whether some arm that stands is better in every metric, as of the last look."""
        return self.certain(looks) and any(
            min(self.pair(k, j, looks[-1], looks)[0]) >= self.threshold - 1e-7
            for j in range(self.K)
            if j != k and j not in eliminated and not self.equal(k, j, looks[-1])
        )

    def may_accept(self, k: int, eliminated: Collection[int], looks: list[int]) -> bool:
        """Whether k escapes, in some metric, every arm that stands."""
        return self.certain(looks) and all(
            (self.escapes_equal() if self.equal(k, j, looks[-1]) else max(self.pair(k, j, looks[-1], looks)[1]))
            >= self.threshold - 1e-7
            for j in range(self.K)
            if j != k and j not in eliminated
        )

    # ------------------------------------------------------------------ the next arm

    def leaders(self, standing: Collection[int]) -> list[int]:
        """Those that stand which no other one beats by the estimates of the last look."""
        means = self.means(self.looks[-1])
        return [
            k
            for k in standing
            if not any((means[j] >= means[k]).all() and (means[j] > means[k] + 1e-9).any() for j in standing)
        ]

    def gaps(self, leaders: list[int]) -> Array:
        means = self.means(self.looks[-1])
        return np.array([max([0.0, *((means[j] - means[k]).min() for j in leaders)]) for k in range(self.K)])

    def position(self, k: int, leaders: list[int], eliminated: Collection[int]) -> Position:
        """As of the last look: who most clearly dominates k, and whom k least clearly escapes."""
        t, found = self.looks[-1], Position()
        means = self.means(t)
        ahead = False
        for j in leaders:
            if j == k or self.equal(k, j, t) or (means[j] - means[k]).min() <= 0:
                continue
            evidence = min(self.pair(k, j, t, self.looks)[0])
            if evidence > found.against and not close(evidence, found.against):
                found.dominators = set()
            found.dominators |= {j} if evidence > found.against or close(evidence, found.against) else set()
            found.against = max(found.against, evidence)
            ahead = ahead or bool((means[j] - means[k] >= self.eps).all())
        if ahead:  # somebody leads by eps everywhere: nothing says that k escapes
            found.in_favour = -np.inf
            return found
        for j in range(self.K):
            if j == k or j in eliminated:
                continue
            evidence = self.escapes_equal() if self.equal(k, j, t) else max(self.pair(k, j, t, self.looks)[1])
            if evidence < found.in_favour and not close(evidence, found.in_favour):
                found.obstacles = set()
            found.obstacles |= {j} if evidence < found.in_favour or close(evidence, found.in_favour) else set()
            found.in_favour = min(found.in_favour, evidence)
        return found

    def look_again(self, k: int, j: int, route: str) -> float:
        """The evidence of a pair now, at the prices, the bias and the sigma of the last look."""
        beaten, escapes = self.pair(k, j, self.t, self.looks)
        return min(beaten) if route == BEATEN else max(escapes)

    def most_telling(self, k: int, j: int, gaps: Array, pending: Array | None = None) -> set[int]:
        """The arms whose sample most reduces the variance along z = x_k - x_j, per cost.

        One more sample of x takes (x^T A^-1 z)^2 / (1 + x^T A^-1 x) off z^T A^-1 z; x^T A^-1 x is that of the last look.
        """
        along = self.x @ np.linalg.solve(self.gram(self.t), self.x[k] - self.x[j])
        leverage = np.sum(self.x * np.linalg.solve(self.gram(self.looks[-1]), self.x.T).T, axis=1)
        crowd = 1 + (np.zeros(self.K) if pending is None else pending) * leverage  # what is on its way tells the same
        costs = [
            cost_of_sample(cost, gap, gaps.mean(), self.regret_weight)
            for cost, gap in zip(self.cost, gaps, strict=True)
        ]
        gains = along**2 / ((1 + leverage) * crowd**2) / costs
        return set(np.flatnonzero(gains >= gains.max() * (1 - 1e-7)).tolist())


@dataclass
class NaiveRobustScout:
    """Scout for contexts that explain only part: both kinds side by side, each with half of delta, without pilots."""

    measured: NaiveScout
    modelled: NaiveLinearScout
    escaped: set[tuple[int, int]] = field(default_factory=set)  # (k, j): at some look k was measured to escape j

    def tell(self, arm: int, outcome: Array) -> None:
        self.measured.tell(arm, outcome)
        self.modelled.tell(arm, outcome)
        self.measured.summarise()

    def look(self) -> None:
        """Look at all pairs. What was evident once stays so: Ville's inequality is about all times."""
        self.modelled.look()
        K = self.measured.K
        for k in range(K):
            for j in range(K):
                if j != k and (k, j) not in self.escaped and self.measured.escapes_by_measurement(k, j):
                    self.escaped.add((k, j))

    def may_accept_by_model(self, k: int, eliminated: Collection[int]) -> bool:
        """Whether k escapes every arm that stands, some by measurements, the others by the model."""
        excused = {j for i, j in self.escaped if i == k}
        return self.modelled.may_accept(k, set(eliminated) | excused, self.modelled.looks)

    def is_measured(self, k: int, eliminated: Collection[int]) -> bool:
        """Whether it takes no model to accept k: it was measured to escape all that no measurement eliminates."""
        return all(j == k or j in eliminated or (k, j) in self.escaped for j in range(self.measured.K))
