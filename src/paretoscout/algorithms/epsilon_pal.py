"""epsilon-PAL: a Gaussian process over the arms; measure where its box is widest, until boxes decide.

M. Zuluaga, A. Krause, M. Püschel: epsilon-PAL: an active learning approach to the multi-objective optimization problem,
JMLR 2016. The boxes come from the posterior of a Gaussian process, which on finitely many arms is a multivariate normal
(`kernels/posterior.py`); nothing is refitted on the way.

What delta means here: the guarantee is Bayesian. If the means are drawn from the prior and the noise is normal, a box
of sqrt(beta_t) posterior deviations, beta_t = 2 log(L K pi^2 t^2 / (6 delta)), holds for all arms, metrics and rounds
with probability 1 - delta, whatever the rule of sampling. For means that somebody has fixed there are two statements:

* kernel "independent": the boxes hold as well if no mean exceeds one prior deviation, which is 100 sigma by default.
  With n samples of an arm the noise takes sqrt(n / (n + r)) and the pull towards 0 at most sqrt(r / (n + r)) posterior
  deviations, r the ratio of the variances of noise and prior; by Cauchy-Schwarz a box fails only where a standard
  normal number exceeds a = sqrt(beta_n - 1), and as a >= 1.32 (K >= 2), that has probability sqrt(2 / pi) / a
  exp(1/2 - beta_n / 2) <= exp(-beta_n / 2), which sums to delta over all n, arms and metrics.
* any kernel: `width="rkhs"`, whose boxes hold for fixed means of a norm that must be told, at the price of wider boxes.

The goal "front" discards an arm only if it is surely dominated, so that no Pareto-optimal arm is lost; the goal "cover"
discards as the paper does, also what is covered up to eps. There we compare an arm to be returned with the arms that
were discarded, too: the paper does not, and what covers such an arm may itself be eps worse, 2 eps in all.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from .. import checks
from ..errors import InvalidInput
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.compile import allocating_kernel, kernel
from ..kernels.decisions import (
    DOMINATED,
    FRONT,
    UNDECIDED,
    dominator,
    strongest,
    surely_covers,
    surely_escapes,
    verdicts_with_rivals,
)
from ..kernels.dispatch import NO_TICKET, Verdicts
from ..kernels.posterior import condition, shift_means
from . import priors
from .contract import Accepts, Algorithm, Kernels, Settings, Setup
from .ranges import setting
from .registry import register

#: The default prior deviation, in deviations of the noise: one sample outweighs it ten thousand times.
WEAK = 100.0
#: The same where there is no noise, in scaled units; any number would do.
WEAK_WITHOUT_NOISE = 1000.0


@dataclass(frozen=True)
class EpsilonPAL(Settings):
    """Settings of epsilon-PAL. The prior is part of what the guarantee rests on: give it, or fit it (`fitted`).

    kernel: how the means of arms go together: "independent", "linear" in the contexts, or one of scikit-learn's, "rbf",
        "matern52", "matern32", "matern12"; None: linear if the problem was stated as linear, else independent.
    length_scale: at what distance of contexts the means differ, for scikit-learn's kernels; one number or one per
        feature.
    prior_deviation: of the mean of an arm around 0 (linear: of each parameter), in the metrics' own units, one number
        or one per metric; None: 100 sigma, which is almost no prior at all.
    level: deviation of a level that all arms share, in the metrics' own units: for means that lie far from 0 together.
    width: "bayes": the paper's, for means drawn from the prior; "rkhs": for fixed means, of a norm of at most `norm`.
    norm: for width="rkhs", a bound on the norm of the means in the space of the kernel, in prior deviations (linear:
        the norm of the parameters over the prior deviation).
    contraction: beta_t is divided by it. Published experiments take 9; above 1 nothing is guaranteed.
    """

    kernel: str | None = setting(None, choices=priors.KERNELS)
    length_scale: float | tuple[float, ...] = setting(1.0, above=0.0, one_per="feature")
    prior_deviation: float | tuple[float, ...] | None = setting(None, above=0.0, one_per="metric")
    level: float | tuple[float, ...] = setting(0.0, one_per="metric")
    width: str = setting("bayes", choices=("bayes", "rkhs"))
    norm: float = setting(1.0, least=0.0)
    contraction: float = setting(1.0, above=0.0)

    @property
    def sound(self) -> bool:
        """Whether the boxes are as wide as the proof needs."""
        return self.contraction <= 1.0

    @classmethod
    def fitted(cls, contexts: Any, outcomes: Any, kernel: str = "matern52", sigma: Any = None, **others: Any) -> Self:
        """Return settings whose prior is the one under which past observations are likeliest.

        contexts (n, d) and outcomes (n, L), in the metrics' own units, are those of n samples, of any arms. sigma is
        fitted, too, unless it is given. Needs `paretoscout[gp]`. What is fitted is an estimate: delta holds for means
        drawn from the fitted prior. Take these observations apart from those that the run will make.
        """
        X = checks.table("contexts of EpsilonPAL.fitted", contexts, "(samples, features)")
        Y = checks.table("outcomes of EpsilonPAL.fitted", outcomes, "(samples, metrics)")
        if len(X) != len(Y) or len(X) < 2:
            raise InvalidInput(
                f"contexts and outcomes of EpsilonPAL.fitted must be two samples at least, one row for each, "
                f"got {len(X)} and {len(Y)} rows"
            )
        checks.one_of("kernel of EpsilonPAL.fitted", kernel, priors.SMOOTHNESS)
        noise = None if sigma is None else checks.per_metric("sigma of EpsilonPAL.fitted", sigma, Y.shape[1], least=0.0)
        length_scale, columns = _fit(X, Y, kernel, noise)
        deviation, level, fitted_sigma = (tuple(map(float, column)) for column in zip(*columns, strict=True))
        return cls(
            kernel=kernel,
            length_scale=length_scale,
            prior_deviation=deviation,
            level=level,
            sigma=fitted_sigma if noise is None else tuple(noise.tolist()),
            **others,
        )


def _fit(X: FloatArray, Y: FloatArray, kernel: str, noise: FloatArray | None) -> tuple[float, list[Any]]:
    """Maximise the marginal likelihood: first for a length scale that all metrics share, then metric by metric."""
    shape = priors.scikit_kernel(kernel, 1.0)  # raises where scikit-learn is missing
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel

    def likeliest(base: Any, values: FloatArray, white: Any) -> dict[str, Any]:
        prior = ConstantKernel(1.0) * base + ConstantKernel(1.0) + white
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a parameter at the end of its range
            found: dict[str, Any] = GaussianProcessRegressor(prior).fit(X, values).kernel_.get_params()
        return found

    units = np.where(np.std(Y, axis=0) > 0, np.std(Y, axis=0), 1.0)
    unknown = WhiteKernel(0.1, (1e-8, 1e3))
    length_scale = float(likeliest(shape, Y / units, unknown)["k1__k1__k2__length_scale"])
    shape = priors.scikit_kernel(kernel, length_scale).set_params(length_scale_bounds="fixed")
    columns = []
    for metric, unit in enumerate(units):
        white = unknown if noise is None else WhiteKernel(max((noise[metric] / unit) ** 2, 1e-10), "fixed")
        found = likeliest(shape, Y[:, metric] / unit, white)
        parts = ("k1__k1__k1__constant_value", "k1__k2__constant_value", "k2__noise_level")
        columns.append(unit * np.sqrt([found[part] for part in parts]))
    return length_scale, columns


class EpsilonPALConstants(NamedTuple):
    noise: FloatArray  # (G,) variance of the noise, in prior variances, of each group of metrics
    group: IntArray  # (L,) which group a metric belongs to
    deviation: FloatArray  # (L,) prior deviation
    eps: FloatArray  # (L,)
    delta: float
    cover: bool  # whether arms that are covered up to eps are discarded
    wanted: int  # how many returned arms are enough
    bayes: bool  # whether means are drawn from the prior
    norm: float  # else: a bound on their norm
    contraction: float
    no_ticket: FloatArray = NO_TICKET


class EpsilonPALState(NamedTuple):
    covariances: FloatArray  # (G, K, K) posterior, in prior variances, of each group of metrics
    log_dets: FloatArray  # (G,) log det(I + K_t / noise)
    means: FloatArray  # (K, L) posterior
    values: FloatArray  # (K, L) centre of the box R; of discarded arms as it was then
    radii: FloatArray  # (K, L) half its sides
    counts: IntArray  # (K,) samples of each arm
    status: IntArray  # (K,) UNDECIDED: U, FRONT: P
    beaten_by: IntArray  # (K,) who dominates or covers it, or -1
    standing: IntArray  # (K,) U and P together, ascending; the first counters[N_STANDING] entries
    counters: IntArray  # (4,) see below
    gains: FloatArray  # (K,) working space of an update
    scratch: IntArray  # (K,) working space of a test


ROUND = 0  # t: samples taken, and one
N_STANDING = 1  # arms not discarded
N_UNDECIDED = 2  # size of U
N_FRONT = 3  # size of P


def init(settings: EpsilonPAL, setup: Setup) -> tuple[EpsilonPALState, EpsilonPALConstants]:
    """Start with the prior; what it decides by itself is decided here."""
    K, L = setup.n_arms, setup.n_metrics
    sigma = setup.known_sigma("epsilon-pal")
    if settings.prior_deviation is None:
        deviation = np.where(sigma > 0, WEAK * sigma, WEAK_WITHOUT_NOISE)
    else:
        what = "prior_deviation of EpsilonPAL"
        deviation = checks.per_metric(what, settings.prior_deviation, L) / setup.divisors
    level = checks.per_metric("level of EpsilonPAL", settings.level, L) / setup.divisors
    shape = priors.prior_covariance("epsilon-pal", setup, priors.named(setup, settings.kernel), settings.length_scale)
    # metrics with the same ratios have the same posterior, but for a factor; the last digits of a ratio are rounding
    ratios = [
        (float(f"{a:.12g}"), float(f"{b:.12g}")) for a, b in zip(sigma / deviation, level / deviation, strict=True)
    ]
    groups = list(dict.fromkeys(ratios))
    constants = EpsilonPALConstants(
        noise=np.array([noise**2 for noise, _ in groups]),
        group=np.array([groups.index(ratio) for ratio in ratios], np.int64),
        deviation=deviation,
        eps=setup.eps.copy(),
        delta=float(setup.delta),
        cover=setup.goal == "cover",
        wanted=setup.goal if isinstance(setup.goal, int) else K,
        bayes=settings.width == "bayes",
        norm=float(settings.norm),
        contraction=float(settings.contraction),
    )
    state = EpsilonPALState(
        covariances=np.array([shape + common**2 for _, common in groups]),
        log_dets=np.zeros(len(groups)),
        means=np.zeros((K, L)),
        values=np.zeros((K, L)),
        radii=np.full((K, L), np.inf),
        counts=np.zeros(K, np.int64),
        status=np.full(K, UNDECIDED, np.int64),
        beaten_by=np.full(K, -1, np.int64),
        standing=np.arange(K, dtype=np.int64),
        counters=np.array([1, K, K, 0], np.int64),
        gains=np.zeros(K),
        scratch=np.zeros(K, np.int64),
    )
    judge(state, constants)
    return state, constants


@kernel
def beta(t: int, n_arms: int, n_metrics: int, delta: float) -> float:
    """Squared half-width of a box of round t, in posterior deviations: 2 log(L K pi^2 t^2 / (6 delta))."""
    return 2.0 * math.log(n_metrics * n_arms * math.pi * math.pi * t * t / (6.0 * delta))


@kernel
def choose(
    state: EpsilonPALState, constants: EpsilonPALConstants, pending: IntArray, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """Return the arm with the largest box among those not discarded."""
    return widest(state, False), constants.no_ticket


@kernel
def widest(state: EpsilonPALState, undecided_only: bool) -> int:
    """The first arm with the longest diagonal of its box."""
    found, most = -1, -1.0
    for k in state.standing[: state.counters[N_STANDING]]:
        if undecided_only and state.status[k] != UNDECIDED:
            continue
        diagonal = 0.0
        for radius in state.radii[k]:
            diagonal += radius * radius
        if diagonal > most:
            found, most = k, diagonal
    return found


@kernel
def update(
    state: EpsilonPALState,
    constants: EpsilonPALConstants,
    arm: int,
    ticket: FloatArray,
    outcome: FloatArray,
    observed: BoolArray,
) -> None:
    """Condition the process on the outcome, then test."""
    state.counts[arm] += 1
    for group in range(constants.noise.shape[0]):
        state.log_dets[group] += condition(state.covariances[group], arm, constants.noise[group], state.gains)
        for metric in range(outcome.shape[0]):
            if constants.group[metric] == group:
                shift_means(state.means, metric, state.gains, outcome[metric] - state.means[arm, metric])
    state.counters[ROUND] += 1
    judge(state, constants)


@kernel
def judge(state: EpsilonPALState, constants: EpsilonPALConstants) -> None:
    """Steps 1 to 3 of an iteration: shrink the boxes, discard, then accept one by one until one fails.

    The paper discards again after each arm accepted; as U and P together stay the same, that would change nothing.
    """
    shrink_boxes(state, constants)
    discard(state, constants)
    while state.counters[N_UNDECIDED] > 0:
        k = widest(state, True)
        for j in range(state.status.shape[0]):
            # whoever was surely dominated is no rival: who dominates it stands in for it
            rival = j != k and (constants.cover or state.status[j] != DOMINATED)
            if rival and not surely_escapes(k, j, state.values, state.radii, constants.eps):
                return
        state.status[k] = FRONT
        state.counters[N_UNDECIDED] -= 1
        state.counters[N_FRONT] += 1


@kernel
def shrink_boxes(state: EpsilonPALState, constants: EpsilonPALConstants) -> None:
    """Cut each box R with Q, the posterior mean and so many deviations around it; Q itself if nothing is left."""
    K, L = state.means.shape
    root = math.sqrt(beta(state.counters[ROUND], K, L, constants.delta) / constants.contraction)
    for k in state.standing[: state.counters[N_STANDING]]:
        for metric in range(L):
            half = width(state, constants, k, metric, root)
            old_low = state.values[k, metric] - state.radii[k, metric]
            old_high = state.values[k, metric] + state.radii[k, metric]
            low = max(state.means[k, metric] - half, old_low)
            high = min(state.means[k, metric] + half, old_high)
            if low > high:
                for each in range(L):
                    state.values[k, each] = state.means[k, each]
                    state.radii[k, each] = width(state, constants, k, each, root)
                break
            if low > old_low or high < old_high:
                state.values[k, metric] = 0.5 * (low + high)
                state.radii[k, metric] = 0.5 * (high - low)


@kernel
def width(state: EpsilonPALState, constants: EpsilonPALConstants, k: int, metric: int, root: float) -> float:
    """Half a side of Q; root: how many posterior deviations that is, for means drawn from the prior."""
    group = constants.group[metric]
    if not constants.bayes:
        root = constants.norm + math.sqrt(
            2.0 * math.log(constants.group.shape[0] / constants.delta) + state.log_dets[group]
        )
    return root * constants.deviation[metric] * math.sqrt(state.covariances[group, k, k])


@kernel
def discard(state: EpsilonPALState, constants: EpsilonPALConstants) -> None:
    """Drop undecided arms that one of the pessimistic front surely dominates or, if that is the goal, covers."""
    standing = state.standing[: state.counters[N_STANDING]]
    rivals = state.scratch[: strongest(standing, state.values, state.radii, state.scratch)]
    n_kept = 0
    for position in range(standing.shape[0]):
        k = standing[position]
        j = -1
        if state.status[k] == UNDECIDED:
            if constants.cover:
                for rival in rivals:
                    if rival == k:
                        j = -1  # no lower corner is above its own: it stays
                        break
                    if j < 0 and surely_covers(rival, k, state.values, state.radii, constants.eps):
                        j = rival
            else:
                j = dominator(k, rivals, state.values, state.radii)
        if j >= 0:
            state.status[k] = DOMINATED
            state.beaten_by[k] = j
            state.counters[N_UNDECIDED] -= 1
        else:
            standing[n_kept] = k
            n_kept += 1
    state.counters[N_STANDING] = n_kept


@allocating_kernel
def verdicts(state: EpsilonPALState, constants: EpsilonPALConstants) -> Verdicts:
    """Estimates are the centres of the boxes."""
    return verdicts_with_rivals(state.status, state.beaten_by, state.values.copy(), state.radii.copy(), state.counts)


@kernel
def done(state: EpsilonPALState, constants: EpsilonPALConstants) -> bool:
    """Whether U is empty, or as many arms are accepted as were asked for."""
    return state.counters[N_UNDECIDED] == 0 or state.counters[N_FRONT] >= constants.wanted


ALGORITHM = Algorithm(
    name="epsilon-pal",
    summary="a Gaussian process over the arms; measure where its box is widest, until boxes decide",
    paper="Zuluaga, Krause, Püschel: epsilon-PAL: an active learning approach to the multi-objective optimization "
    "problem, 2016",
    guarantee="cover, or fixed confidence where the goal is 'front': with probability at least 1 - delta every "
    "Pareto-optimal arm is returned (cover: or one at most eps worse) and every returned arm is within eps of optimal, "
    "if the noise is normal and the means are drawn from the prior; width='rkhs': if their norm is at most what is "
    "told; kernel 'independent': if none exceeds one prior deviation",
    guarantees=True,
    settings=EpsilonPAL,
    init=init,
    kernels=(
        Kernels(
            state=EpsilonPALState,
            choose=choose,
            update=update,
            verdicts=verdicts,
            done=done,
            ranges={"counters": ("count", "arms", "arms", "arms")},
            accepts=Accepts(unasked=True),
            assumes="means drawn from the prior or, with width=rkhs, of a norm of at most {norm}",
        ),
    ),
    kind="cover",
    setting="arms with features, a Gaussian process",
)

register(ALGORITHM)
