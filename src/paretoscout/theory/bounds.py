"""Bounds on samples, regret and errors that a paper prints.

All are from W. Kim, G. Iyengar, A. Zeevi: Learning the Pareto front using bootstrapped observation samples. Those on
samples, the lower one on regret and `t_gamma` are computed as the theorems print them, whether or not the proofs bear
them out. Where a theorem leaves constants open, or its proof gives others, `regret_upper_bound` and `estimation_bound`
have what the steps of the proof give. Each docstring says where text and proof differ.

Means are (K, L), larger is better. The four bounds on samples and regret are called alike:

* sigma: the noise of each metric is sigma-sub-Gaussian;
* delta: the probability of failure that is allowed;
* eps: arms within eps of the front may be returned; the paper asks for eps > 0, here 0 stands for exactly the front;
* d: the dimension of the arms' contexts, which span R^d; None: the number of arms, which tell nothing of each other;
* theta_max: bound on the norm of the parameters of each metric. Only the upper bounds depend on it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import checks
from ..errors import InvalidInput
from ..geometry import Gaps, gaps

Floats = NDArray[np.float64]

#: C = 6 * 75^2 of the paper's appendix, the rate of exploration rounds of PFIwR.
PRINTED_EXPLORATION = 33750.0


def sample_lower_bound(
    means: ArrayLike,
    *,
    sigma: float,
    delta: float,
    eps: float,
    d: int | None = None,
    theta_max: float | None = None,
) -> float:
    """Return the samples that any algorithm needs, after thm:lower_bound, "A lower bound of the sample complexity".

    (sigma^2 / 3) sum_{k <= d} max{Delta_(k), eps}^-2 log(3 L / (4 delta)), with the gaps `gaps(means).required` in
    increasing order, for delta < 1/4. It is infinite where eps is 0 and one of these gaps too: copies on the front, or
    an arm that is dominated only with a tie, cannot be told apart. One arm needs no samples: 0.

    It assumes contexts that span R^d and parameters without a zero. It says that there is a noise for which it holds,
    not that it holds for normal noise, and it takes the estimates of the d hardest arms for separate problems. For
    d < K the number can therefore exceed what a good algorithm needs; `characteristic_time` is the rigorous one.

    The proof differs: it puts p = 4 delta / (3 L) into log(1 / (4 p)), which makes log(3 L / (16 delta)), smaller by
    log 4. Its lemma lem:lower_noise states d sigma^2 / (3 eps^2) and proves d sigma^2 / (12 eps^2), for eps below
    sigma / 4; with eps = Delta / 2 the proven 12 gives the theorem's 3, where gaps are below sigma / 2.

    >>> round(sample_lower_bound([[1.0, 0.6], [0.6, 1.0], [0.3, 0.3]], sigma=1.0, delta=0.1, eps=0.1), 6)
    30.089447
    """
    asked = _Asked.of("sample_lower_bound", means, sigma, delta, eps, d, theta_max, delta_below=0.25)
    return sum(asked.ratios(asked.sigma)[: asked.d]) / 3 * math.log(3 * asked.n_metrics / (4 * asked.delta))


def regret_lower_bound(
    means: ArrayLike,
    *,
    sigma: float,
    delta: float,
    eps: float,
    d: int | None = None,
    theta_max: float | None = None,
) -> float:
    """Return the Pareto regret of any algorithm, after thm:regret_lower_bound, "A regret lower bound".

    (sqrt(3) d sigma / (8 Delta*_eps)) log(1 / (4 delta)) for delta < 1/4, where Delta*_eps is the larger of eps and
    the least `gaps(means).star` of the arms off the front. Without such arms there is no regret: 0. Where eps is 0 and
    an arm is dominated only with a tie, so that its gap is 0, the formula gives infinity. The assumptions are those
    of `sample_lower_bound`, and that the algorithm keeps its promise of finding the front.

    Take it as a quotation. Regret has the unit of a metric and this number has none: it does not change when means
    and sigma are multiplied by the same number (sigma^2 in place of sigma would mend it, and the appendix has it in the
    upper bound on regret). The proof puts T = d sigma^2 / (12 Delta*^2) log(1 / (4 delta)) into a regret of order
    sqrt(d T), which makes sqrt(log), with a constant it does not give; its T is the proven 12 of lem:lower_noise,
    not the 3 stated there, and is first printed with log(3 (d + 1) L / (4 delta)).

    >>> round(regret_lower_bound([[1.0, 0.6], [0.6, 1.0], [0.3, 0.3]], sigma=1.0, delta=0.1, eps=0.1), 6)
    1.983828
    """
    asked = _Asked.of("regret_lower_bound", means, sigma, delta, eps, d, theta_max, delta_below=0.25)
    with np.errstate(divide="ignore", over="ignore"):
        ratio = float(np.float64(asked.sigma) / asked.least_regret)
    return math.sqrt(3) * asked.d / 8 * ratio * math.log(1 / (4 * asked.delta))


def sample_upper_bound(
    means: ArrayLike,
    *,
    sigma: float,
    delta: float,
    eps: float,
    d: int | None = None,
    theta_max: float | None = None,
) -> float:
    """Return the samples after which PFIwR stops, after the proof of thm:sample, "An upper bound on sample complexity".

    The theorem hides the constants in O(); its proof ends with the larger of `t_gamma` and

        4 d a_{d+1} {1 + log((2 d a_{d+1} / e) sqrt(7 L / delta))}
        + sum_{k <= d} 4 a_k {1 + log((2 b_k / e) sqrt(56 L d / delta))},

    a_k = 144 (theta_max + sigma)^2 / Delta_(k),eps^2, b_k the same with 3 sigma for sigma, and Delta_(k),eps the k-th
    smallest of `gaps(means).required`, at least eps. With d = K there is no (d+1)-th gap and no first term. A term
    that a wide gap makes negative counts as 0. Infinite where eps is 0 and one of the gaps too.

    theta_max may be left out only where d is: then it is the largest norm of a column of the means.

    Where the text differs: the width behind the sum has theta_max + 3 sigma, so that a_k should be b_k there. That
    width is taken with 56 L d t^2 / delta; the algorithm prints 28. The theorem as restated in the appendix has d in
    place of (theta_max + sigma)^2. And the estimates need t >= 144 gamma_t, where `t_gamma` gives t >= gamma_t.
    As printed, PFIwR does not keep its promise; this is about when it stops, not about when it is right.

    >>> means = [[1.0, 0.6], [0.6, 1.0], [0.3, 0.3]]
    >>> sample_upper_bound(means, sigma=1.0, delta=0.1, eps=0.1) == t_gamma(3, delta=0.1)
    True
    """
    asked = _Asked.of("sample_upper_bound", means, sigma, delta, eps, d, theta_max, delta_below=1.0)
    norm = asked.norm("sample_upper_bound", needed=d is not None)
    a = asked.ratios(12 * (norm + asked.sigma))
    b = asked.ratios(12 * (norm + 3 * asked.sigma))
    total = 0.0
    if len(a) > asked.d:
        total += _log_threshold(asked.d * a[asked.d], asked.d * a[asked.d], 7 * asked.n_metrics / asked.delta)
    for k in range(asked.d):
        total += _log_threshold(a[k], b[k], 56 * asked.n_metrics * asked.d / asked.delta)
    return max(t_gamma(asked.d, delta=asked.delta), total)


def regret_upper_bound(
    means: ArrayLike,
    *,
    sigma: float,
    delta: float,
    eps: float,
    d: int | None = None,
    theta_max: float | None = None,
) -> float:
    """Return the Pareto regret of PFIwR when it stops, after the proof of thm:regret, "Upper bounds on Pareto regret".

    The theorem hides the constants in O() and leaves out iterated logarithms. The steps of its proof give

        2 theta_max (T_gamma + gamma_tau) + 24 sqrt(n) w,

    with `t_gamma`, tau = `sample_upper_bound` and gamma_tau = C d^3 log(2 d tau^2 / delta). The first term is for
    rounds that explore: each has a regret of at most 2 theta_max, for contexts no longer than 1. The second one is
    for rounds that exploit, up to n = 1 + the larger of 4 d a {1 + log((2 d a / e) sqrt(7 L / delta))} and
    4 b {1 + log((2 b / e) sqrt(56 L d / delta))}, a = 144 (theta_max + sigma)^2 / Delta*_eps^2, b the same with 3 sigma
    for sigma, Delta*_eps as in `regret_lower_bound`. The larger of (theta_max + sigma) sqrt(d log(7 L n / delta)) and
    (theta_max + 3 sigma) sqrt(log(56 L d n^2 / delta)) is w. Without arms off the front there is no regret: 0.
    Infinite where eps is 0 and a gap that it is divided by is 0 too. theta_max is as in `sample_upper_bound`.

    The paper writes 2 theta_max gamma_tau + 12 (theta_max + sigma) sqrt(n log(7 L n^2 / delta)). Four steps to it fail:

    * the last one loses a factor sqrt(d) under the sum, which the theorem has again;
    * what arms of A cost is compared with arms of A alone, whose estimates do not dominate them: 2 max beta. Arms that
      were accepted have left A, and may dominate by as much as tests can miss: 4 max beta, and so 24 in place of 12;
    * the widths with 3 sigma, of at most d arms, are left out; for d below about 18 they are the larger ones;
    * errors are bounded from T_gamma on, and costs are summed from the first round on. Exploiting begins before
      T_gamma, and until then a round may cost 2 theta_max.

    It takes thm:self for granted, with the printed widths, and counts gamma_tau exploration rounds after T_gamma,
    which leaves room for those that the rule of eq. (exploration_set) lets in by chance. The theorem prints
    theta_max d sigma / Delta*_eps, the appendix the same with sigma^2, which has not the unit of regret;
    the proof gives d (theta_max + sigma)^2 / Delta*_eps, which does not vanish with the noise.

    >>> means = [[1.0, 0.6], [0.6, 1.0], [0.3, 0.3]]
    >>> f"{regret_upper_bound(means, sigma=1.0, delta=0.1, eps=0.1):.4g}"
    '3.928e+08'
    """
    asked = _Asked.of("regret_upper_bound", means, sigma, delta, eps, d, theta_max, delta_below=1.0)
    norm = asked.norm("regret_upper_bound", needed=d is not None)
    if asked.gaps.front.all():
        return 0.0
    samples = sample_upper_bound(means, sigma=sigma, delta=delta, eps=eps, d=d, theta_max=theta_max)
    many, few = norm + asked.sigma, norm + 3 * asked.sigma  # of widths for all arms, and for at most d of them
    with np.errstate(divide="ignore", over="ignore"):
        a, b = ((12 * np.array([many, few]) / asked.least_regret) ** 2).tolist()
    in_many, in_few = 7 * asked.n_metrics / asked.delta, 56 * asked.n_metrics * asked.d / asked.delta
    n = 1 + max(_log_threshold(asked.d * a, asked.d * a, in_many), _log_threshold(b, b, in_few))
    if math.inf in (samples, n):
        return math.inf
    width = max(many * math.sqrt(asked.d * math.log(in_many * n)), few * math.sqrt(math.log(in_few * n * n)))
    exploring = t_gamma(asked.d, delta=asked.delta) + _gamma(samples, asked.d, asked.delta)
    return 2 * norm * exploring + 24 * math.sqrt(n) * width


def estimation_bound(
    contexts: ArrayLike,
    *,
    rounds: int,
    n_metrics: int,
    sigma: float,
    delta: float,
    theta_max: float,
    arms: int | None = None,
    exploration: float = PRINTED_EXPLORATION,
) -> Floats:
    """Return how far the DR-mix estimate of each arm (K,) may be off, after the proof of thm:self.

    Contexts are (K, d), no longer than 1. After t = `rounds` of PFIwR, with probability 1 - delta, no metric of an arm
    is off by more than

        ||x_k|| {3 theta_max + noise + sigma c sqrt(log(3 L t / p))},

    the norm that of F_t^-1, F_t = t sum_k x_k x_k^T + I, and p = delta / 7. For all arms at once the noise is
    2 sigma sqrt(d log(L t / p)). `arms`: for so many that are named beforehand it is
    8 sigma sqrt(2 log(4 L t^2 / p)) with p = delta / (7 arms), which may be less. `exploration`: C of PFIwR, with
    c = sqrt(33750 / C) (24 + 12 sqrt(gamma_t / t)) / 25; it is about 1 with the printed C.

    It says something from `t_gamma` on, and from 4608 d^2 (1 + log(2304 d^2 sqrt(2 d / p) / e)) on, by lem:self_mix;
    t before that is refused.

    **As a confidence bound it is wrong.** It falls as 1 / sqrt(t) on all arms, with C d^3 log(2 d t^2 / p) samples of
    those that are not exploited. No estimator can do that for ever: with d = 2, the printed C and a small theta_max,
    not beyond about 1.3e10 rounds. The proof averages over pseudo-actions, as if they could still be any; but a round
    counts only if its pseudo-action is the arm that was pulled. Given that, the error of the imputation passes in full.

    Where the text differs: the theorem leaves t out of F_t. For all arms it prints
    3 {theta_max + sigma sqrt(d log(L t / p))}, which is more than the above for d >= 2 and the printed C. For one arm
    it prints 3 {theta_max + 3 sigma sqrt(log(4 L t^2 / p))}, which is less: lem:DR_robust has 8 sqrt(2) sigma there,
    and the proof goes on with 8 sigma. Its c is 1, which needs t >= 144 gamma_t. For d = 1 the determinant behind the
    noise of all arms is t + 1, not t.

    >>> import numpy as np
    >>> estimation_bound(np.eye(2), rounds=10**8, n_metrics=2, sigma=1.0, delta=0.1, theta_max=1.0).round(4)
    array([0.0022, 0.0022])
    """
    who = "of estimation_bound"
    x = checks.table(f"contexts {who}", contexts, "(K, d)")
    K, d = x.shape
    norms = np.linalg.norm(x, axis=1)
    if norms.max() > 1 + 1e-9:
        raise InvalidInput(f"contexts {who} must be no longer than 1, got {norms.max():g} in row {norms.argmax()}")
    named = 1 if arms is None else checks.whole(f"arms {who}", arms, least=1, most=K)
    level = checks.number(f"delta {who}", delta, above=0, below=1) / (7 * named)
    rate = checks.number(f"exploration {who}", exploration, above=0)
    first = max(t_gamma(d, delta=level, exploration=rate), _log_threshold(1152 * d * d, 1152 * d * d, 2 * d / level))
    t = checks.whole(f"rounds {who}", rounds, least=math.ceil(first))
    L = checks.whole(f"n_metrics {who}", n_metrics, least=1)
    scale = checks.number(f"sigma {who}", sigma, above=0)
    norm = checks.number(f"theta_max {who}", theta_max, least=0)
    noise = (
        2 * math.sqrt(d * math.log(L * t / level))
        if arms is None
        else 8 * math.sqrt(2 * math.log(4 * L * t * t / level))
    )
    imputed = math.sqrt(PRINTED_EXPLORATION / rate) * (24 + 12 * math.sqrt(_gamma(t, d, level, rate) / t)) / 25
    lengths = np.sqrt((x * np.linalg.solve(t * x.T @ x + np.eye(d), x.T).T).sum(axis=1))
    return lengths * (3 * norm + scale * (noise + imputed * math.sqrt(math.log(3 * L * t / level))))


def t_gamma(d: int, *, delta: float, exploration: float = PRINTED_EXPLORATION) -> float:
    """Return T_gamma, the paper's bound on the rounds in which PFIwR does nothing but explore.

    8 C d^3 (1 + log(4 C d^3 sqrt(2 d) / (e sqrt(delta)))), C the `exploration` of PFIwR. From there on t >= gamma_t =
    C d^3 log(2 d t^2 / delta). It is not sharp: lem:logt, from which it comes, gives the same with C / 2 for C. Nor is
    it enough: the proof of thm:self also uses t >= 144 gamma_t, which sets in about 50 times later.

    >>> round(t_gamma(3, delta=0.1))
    125067526
    """
    dimension = checks.whole("d of t_gamma", d, least=1)
    level = checks.number("delta of t_gamma", delta, above=0, below=1)
    rate = 2 * checks.number("exploration of t_gamma", exploration, above=0) * dimension**3
    return _log_threshold(rate, rate, 2 * dimension / level)


def _gamma(t: float, d: int, delta: float, exploration: float = PRINTED_EXPLORATION) -> float:
    """gamma_t, about the exploration rounds of PFIwR up to round t, from where it is below t."""
    return exploration * d**3 * math.log(2 * d / delta * t * t)


def _log_threshold(a: float, inside: float, b: float) -> float:
    """lem:logt: from t = 4 a (1 + log(2 a sqrt(b) / e)) on, t >= a log(b t^2). The paper may print another a inside."""
    return max(0.0, 4 * a * math.log(2 * inside * math.sqrt(b))) if a > 0 else 0.0


class _Asked(NamedTuple):
    """The checked arguments of a bound."""

    means: Floats
    gaps: Gaps
    sigma: float
    delta: float
    eps: float
    d: int
    theta_max: float | None

    @classmethod
    def of(
        cls,
        bound: str,
        means: ArrayLike,
        sigma: float,
        delta: float,
        eps: float,
        d: int | None,
        theta_max: float | None,
        *,
        delta_below: float,
    ) -> _Asked:
        y = checks.table(f"means of {bound}", means)
        return cls(
            means=y,
            gaps=gaps(y),
            sigma=checks.number(f"sigma of {bound}", sigma, above=0),
            delta=checks.number(f"delta of {bound}", delta, above=0, below=delta_below),
            eps=checks.number(f"eps of {bound}", eps, least=0),
            d=len(y) if d is None else checks.whole(f"d of {bound}", d, least=1, most=len(y)),
            theta_max=None if theta_max is None else checks.number(f"theta_max of {bound}", theta_max, least=0),
        )

    @property
    def n_metrics(self) -> int:
        return self.means.shape[1]

    @property
    def least_regret(self) -> float:
        """Return Delta*_eps: the least regret of an arm off the front, at least eps; inf without such arms."""
        return max(self.eps, float(self.gaps.star[~self.gaps.front].min(initial=np.inf)))

    def norm(self, bound: str, needed: bool) -> float:
        """Return theta_max; where it may be left out, the largest norm of a column of the means."""
        if self.theta_max is not None:
            return self.theta_max
        if needed:
            raise InvalidInput(
                f"theta_max of {bound} must be given where d is: a bound on the norm of the parameters, got None"
            )
        return float(np.linalg.norm(self.means, axis=0).max())

    def ratios(self, scale: float) -> list[float]:
        """Return (scale / gap)^2 for the required accuracies, smallest first and at least eps; inf for gap 0."""
        with np.errstate(divide="ignore", over="ignore"):
            return ((scale / np.maximum(np.sort(self.gaps.required), self.eps)) ** 2).tolist()
