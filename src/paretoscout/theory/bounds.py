"""Bounds on samples and regret as a paper prints them.

Three bounds and `t_gamma` are printed in W. Kim, G. Iyengar, A. Zeevi: Learning the Pareto front using bootstrapped
observation samples. They are computed as the theorems print them, whether or not the proofs bear them out; each
docstring says what its proof says differently.

Means are (K, L), larger is better. The three bounds are called alike:

* sigma: the noise of each metric is sigma-sub-Gaussian;
* delta: the probability of failure that is allowed;
* eps: arms within eps of the front may be returned; the paper asks for eps > 0, here 0 stands for exactly the front;
* d: the dimension of the arms' contexts, which span R^d; None: the number of arms, which tell nothing of each other;
* theta_max: bound on the norm of the parameters of each metric. Only the upper bound depends on it.
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
    least = max(asked.eps, asked.gaps.star[~asked.gaps.front].min(initial=np.inf))
    with np.errstate(divide="ignore", over="ignore"):
        return float(math.sqrt(3) * asked.d / 8 * np.float64(asked.sigma) / least) * math.log(1 / (4 * asked.delta))


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
    if theta_max is None and d is not None:
        raise InvalidInput(
            "theta_max of sample_upper_bound must be given where d is: a bound on the norm of the parameters, got None"
        )
    norm = float(np.linalg.norm(asked.means, axis=0).max()) if asked.theta_max is None else asked.theta_max
    a = asked.ratios(12 * (norm + asked.sigma))
    b = asked.ratios(12 * (norm + 3 * asked.sigma))
    total = 0.0
    if len(a) > asked.d:
        total += _log_threshold(asked.d * a[asked.d], asked.d * a[asked.d], 7 * asked.n_metrics / asked.delta)
    for k in range(asked.d):
        total += _log_threshold(a[k], b[k], 56 * asked.n_metrics * asked.d / asked.delta)
    return max(t_gamma(asked.d, delta=asked.delta), total)


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

    def ratios(self, scale: float) -> list[float]:
        """Return (scale / gap)^2 for the required accuracies, smallest first and at least eps; inf for gap 0."""
        with np.errstate(divide="ignore", over="ignore"):
            return ((scale / np.maximum(np.sort(self.gaps.required), self.eps)) ** 2).tolist()
