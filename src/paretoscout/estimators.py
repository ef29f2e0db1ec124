"""Estimators of a linear model from bandit samples: those that `pfiwr` runs on, and the ones they are compared with.

Arm k has a context x_k of d numbers, and its mean in metric l is x_k^T theta_l. (Without contexts, pass the unit
vectors `np.eye(K)`: then theta holds the means.) A round samples one arm. Rounds go into `update`, one or many at a
time; `theta` (d, L) and `means` (K, L) come out.

>>> import numpy as np
>>> import paretoscout as ps
>>> ridge = ps.estimators.Ridge(np.eye(2), n_metrics=1)
>>> ridge.update(0, 3.0)
>>> ridge.update([0, 1], [3.0, 1.0])
>>> ridge.means
array([[2. ],
       [0.5]])

How they differ shows once some arms are no longer sampled:

| estimator | arms no longer sampled | arms still sampled |
|---|---|---|
| `LeastSquares` | no bias | no bias, least noise |
| `Ridge`, `DRRidge` | a bias that stays | a bias that fades |
| `ExplorationMixed` | a bias that fades | no bias to speak of, noise from mixing |
| `DRMix` | a bias that fades | close to `LeastSquares` |

No bias: as long as the arms are chosen without looking at the outcomes. None of them knows more of an arm than its
samples tell, and those of arms with related contexts. Mixing takes away the bias of a ridge, not the noise of the
samples: on arms no longer sampled the error ends where that of least squares is.

For loops that are compiled themselves there are `update`, `estimate` and `draw_arm`, the functions behind the
classes. They check nothing; `Estimator.reserve` makes room for the rounds to come. With `numba.njit`:

    from paretoscout.estimators import estimate, update

    @njit
    def errors(state, constants, rng, arms, outcomes, truth, error):
        for t in range(len(arms)):
            update(state, constants, arms[t], outcomes[t], t < 50, rng)  # the first 50 rounds explore
            estimate(state, constants)
            error[t] = np.abs(state.estimates - truth).max()

    mix.reserve(50)
    errors(mix.state, mix.options, mix.rng, arms, outcomes, truth, error)

The doubly robust and the mixed estimators are from W. Kim, G. Iyengar, A. Zeevi: Learning the Pareto front using
bootstrapped observation samples.
"""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import checks
from .defaults import DELTA
from .errors import InvalidInput
from .kernels.arrays import BoolArray, FloatArray, IntArray
from .kernels.dr_mix import ROUND, STALE, context_constants, empty_sums, linear_basis, rank, reserve
from .kernels.estimator_state import (
    DRAWN,
    EstimatorConstants,
    EstimatorState,
    draw_arm,
    estimate,
    update,
    update_all,
)
from .streams import algorithm_stream

__all__ = [
    "DRMix",
    "DRRidge",
    "Estimator",
    "ExplorationMixed",
    "LeastSquares",
    "Ridge",
    "draw_arm",
    "estimate",
    "update",
]


class Estimator:
    """What all estimators have in common; use one of its children.

    contexts: (K, d), one row for each arm; they must span all d dimensions.
    n_metrics: L, how many numbers a sample has.
    state, options, rng: what the compiled functions work on.
    """

    def __init__(
        self,
        contexts: ArrayLike,
        n_metrics: int,
        *,
        ridge: float = 0.5,
        regularised: bool = True,
        mixes: bool = False,
        doubly_robust: bool = False,
        imputation: str = "latest",
        delta: float = 0.0,
        seed: int = 0,
    ) -> None:
        name = type(self).__name__
        checks.one_of(f"imputation of {name}", imputation, ("latest", "frozen"))
        self.contexts = checks.table(f"contexts of {name}", contexts, "(K, d)")
        K, d = self.contexts.shape
        L = checks.whole(f"n_metrics of {name}", n_metrics, least=1)
        s, U, V = linear_basis(self.contexts)
        if rank(self.contexts, s) < d:
            raise InvalidInput(
                f"contexts of {name} must span all {d} dimensions, got rank {rank(self.contexts, s)}: "
                "drop or merge feature columns that depend on others"
            )
        self.constants = EstimatorConstants(
            **context_constants(self.contexts, s, U, V),
            arms=np.arange(K),
            regularised=regularised,
            mixes=mixes,
            doubly_robust=doubly_robust,
            frozen=imputation == "frozen",
            delta=checks.number(f"delta of {name}", delta, least=0.0, below=1.0),
        )
        self.state = EstimatorState(**empty_sums(K, d, L, ridge), counters=np.zeros(5, np.int64))
        self.state.counters[STALE] = 1  # least squares knows nothing yet: not a number
        self.rng = algorithm_stream(checks.whole(f"seed of {name}", seed, least=0))
        self._to_contexts = U  # from the coordinates of the singular vectors to those of the contexts

    @property
    def theta(self) -> FloatArray:
        """The estimated parameters (d, L)."""
        self._estimate()
        return self._to_contexts @ self.state.theta_hat

    @property
    def means(self) -> FloatArray:
        """The estimated means of all arms (K, L): contexts @ theta."""
        self._estimate()
        return self.state.estimates.copy()

    @property
    def rounds(self) -> int:
        """How many rounds were taken in."""
        return int(self.state.counters[ROUND])

    def reserve(self, rounds: int) -> None:
        """Make room for as many more exploration rounds; `update` and `path` do so by themselves."""
        rounds = checks.whole("rounds to reserve", rounds, least=0)
        if self.constants.mixes:  # the others keep no samples
            self.state = reserve(self.state, rounds)

    def __repr__(self) -> str:
        K, L = self.state.estimates.shape
        return f"<{type(self).__name__}: arms {K}, metrics {L}, rounds {self.rounds}>"

    def _estimate(self) -> None:
        with np.errstate(all="ignore"):  # of least squares that is not defined yet, where nothing is compiled
            estimate(self.state, self.constants)

    def _update(self, arm: Any, outcome: Any, explored: Any, keep_path: bool) -> FloatArray:
        """Check the rounds, all of them before the first is taken in; return the means after each, if they are kept."""
        arms, outcomes, exploring = self._checked(arm, outcome, explored)
        if not exploring.all():
            self._check_samples(arms, exploring)
        self.reserve(int(exploring.sum()))
        K, L = self.state.estimates.shape
        path = np.empty((arms.size if keep_path else 0, K, L))
        with np.errstate(all="ignore"):
            update_all(self.state, self.constants, arms, outcomes, exploring, self.rng, path)
        return path if np.ndim(arm) else path.reshape(-1, L)

    def _checked(self, arm: Any, outcome: Any, explored: Any) -> tuple[IntArray, FloatArray, BoolArray]:
        name = type(self).__name__
        K, L = self.state.estimates.shape
        arms = _array(arm)
        if arms.ndim > 1 or arms.dtype.kind not in "iu" or ((arms < 0) | (arms >= K)).any():
            raise InvalidInput(
                f"arm of {name} must be a whole number from 0 to {K - 1}, or a sequence of them, "
                f"got {reprlib.repr(arm)}"
            )
        outcomes = checks.floats(f"outcome of {name}", outcome, own=False)
        if outcomes.shape != (*arms.shape, L) and (L > 1 or outcomes.shape != arms.shape):
            raise InvalidInput(
                f"outcome of {name} must have shape {(*arms.shape, L)}, a number for each metric"
                f"{' of each round' * arms.ndim}, got shape {outcomes.shape}"
            )
        checks.finite(f"outcome of {name}", outcomes)
        exploring = _array(explored)
        if exploring.dtype != np.bool_ or exploring.shape not in ((), arms.shape):
            raise InvalidInput(
                f"explored of {name} must be True or False, or one of them for each round, got {reprlib.repr(explored)}"
            )
        n = arms.size
        return arms.reshape(n).astype(np.int64), outcomes.reshape(n, L), np.full(n, exploring)

    def _check_samples(self, arms: IntArray, exploring: BoolArray) -> None:
        """Refuse exploitation rounds that may find no sample to reuse, whatever will be drawn."""
        have = self.state.explored > 0
        if len(arms) == 1 and self.state.counters[DRAWN] == 1:
            wanted = np.array([draw_arm(self.state, self.constants, self.rng)])
        else:
            have[arms[: int(np.argmin(exploring))]] = True  # all that explore before the first that does not
            wanted = np.flatnonzero(self.constants.support[:, 1] >= 0)  # of a context of zeros none is ever needed
        missing = wanted[~have[wanted]]
        if missing.size:
            raise InvalidInput(
                f"explored of {type(self).__name__} must be True once for each arm before samples are reused, "
                f"got False while arm {missing[0]} has none: explore it first, or let draw() say which arm is needed"
            )


def _array(value: Any) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError:  # rows of different lengths
        return np.empty(0, object)


class _Plain(Estimator):
    """All rounds are alike."""

    def update(self, arm: ArrayLike, outcome: ArrayLike) -> None:
        """Take in a round: the arm's number and its L metrics. Or many: n arms, (n, L) metrics."""
        self._update(arm, outcome, True, keep_path=False)

    def path(self, arm: ArrayLike, outcome: ArrayLike) -> FloatArray:
        """Like `update` with n rounds; return the means after each of them (n, K, L)."""
        return self._update(arm, outcome, True, keep_path=True)


class _Mixing(Estimator):
    """Rounds that explore are kept for reuse, the others are mixed with one of these."""

    def draw(self) -> int:
        """Return the arm of the context basis that the next round is mixed with, unless it explores.

        Before all arms are explored: explore this one, if it has no samples yet. (That skews a little which arms
        are reused, until exploring gets rare.) Asked again before the next update, the arm is the same.
        """
        return draw_arm(self.state, self.constants, self.rng)

    @property
    def explored(self) -> IntArray:
        """How many exploration rounds of each arm (K,) there are to reuse."""
        return self.state.explored.copy()

    def update(self, arm: ArrayLike, outcome: ArrayLike, *, explored: ArrayLike) -> None:
        """Take in a round: the arm's number, its L metrics, whether it was one of exploration. Or many: n of each.

        A round that does not explore reuses a sample of the arm that `draw` tells. It must have one: explore all
        arms first, or those that `draw` asks for.
        """
        self._update(arm, outcome, explored, keep_path=False)

    def path(self, arm: ArrayLike, outcome: ArrayLike, *, explored: ArrayLike) -> FloatArray:
        """Like `update` with n rounds; return the means after each of them (n, K, L)."""
        return self._update(arm, outcome, explored, keep_path=True)


class LeastSquares(_Plain):
    """Ordinary least squares: theta = (sum x_a x_a^T)^-1 sum x_a Y, over all rounds.

    Unbiased where the arms are chosen without looking at outcomes, and then of all linear unbiased estimators the
    one with the least variance. Where arms are chosen for their outcomes it errs low on those given up early. It is
    not a number until the sampled contexts span all dimensions (up to rounding); with unit vectors: until every arm
    was sampled.

    >>> import numpy as np
    >>> from paretoscout.estimators import LeastSquares
    >>> estimator = LeastSquares([[1, 0], [0, 1], [1, 1]], n_metrics=1)
    >>> estimator.update([0, 2], [2.0, 5.0])
    >>> estimator.means
    array([[2.],
           [3.],
           [5.]])
    """

    def __init__(self, contexts: ArrayLike, n_metrics: int = 1) -> None:
        super().__init__(contexts, n_metrics, regularised=False)


class Ridge(_Plain):
    """Ridge regression: theta = (sum x_a x_a^T + ridge I)^-1 sum x_a Y, over all rounds.

    Defined from the first round on and steady with few samples. It is biased towards zero, by
    ridge (sum x_a x_a^T + ridge I)^-1 theta: the bias fades in directions that are sampled on and on, and stays as it
    is in those that are not. An arm of its own that was sampled n times is off by its mean times ridge / (n + ridge).

    >>> import numpy as np
    >>> from paretoscout.estimators import Ridge
    >>> estimator = Ridge(np.eye(2), n_metrics=1, ridge=1.0)
    >>> estimator.update([0, 0, 0, 1], [4.0, 4.0, 4.0, 4.0])
    >>> estimator.means
    array([[3.],
           [2.]])
    """

    def __init__(self, contexts: ArrayLike, n_metrics: int = 1, *, ridge: float = 1.0) -> None:
        super().__init__(contexts, n_metrics, ridge=checks.number("ridge of Ridge", ridge, above=0.0))


class DRRidge(_Plain):
    """Doubly robust estimate that imputes with a ridge estimate: what `DRMix` would be without mixing.

    Each round has d + 1 rewards: those of the context basis b_1, ..., b_d (b_i b_i^T sum to S = sum_k x_k x_k^T over
    all arms) and the one observed. The first are imputed as b_i^T theta_ridge, the last becomes
    x^T theta_ridge + 2 (Y - x^T theta_ridge), and a least-squares fit with ridge 1 goes through all of them:
    theta = (n S + G + I)^-1 ((n S - G) theta_ridge + 2 r), where G = sum x_a x_a^T and r = sum x_a Y over n rounds.

    Where arms are no longer sampled it converges to its imputation, and has the bias of `Ridge`; for comparison.
    (With ridge 1/2 in the imputation it is equal to it.)

    ridge: the ridge of the imputation. imputation: "latest", all rounds are imputed with the newest ridge estimate,
    or "frozen", each with the one it saw. delta: round t is left out of G, r and n with probability
    delta / (t + 1)^2, as its resampling may fail; 0: never. seed: of these draws.

    >>> import numpy as np
    >>> from paretoscout.estimators import DRRidge
    >>> estimator = DRRidge(np.eye(2), n_metrics=1, ridge=1.0, delta=0)
    >>> estimator.update([0, 0, 0, 1], [4.0, 4.0, 4.0, 4.0])
    >>> estimator.means
    array([[3.375     ],
           [2.33333333]])
    """

    def __init__(
        self,
        contexts: ArrayLike,
        n_metrics: int = 1,
        *,
        ridge: float = 1.0,
        imputation: str = "latest",
        delta: float = DELTA,
        seed: int = 0,
    ) -> None:
        super().__init__(
            contexts,
            n_metrics,
            ridge=checks.number("ridge of DRRidge", ridge, above=0.0),
            doubly_robust=True,
            imputation=imputation,
            delta=delta,
            seed=seed,
        )


class ExplorationMixed(_Mixing):
    """Ridge regression in which each exploitation round is mixed with a reused exploration sample.

    X = [x_1, ..., x_K] has singular values s_i and vectors u_i, v_i; the context basis is b_i = s_i u_i = X v_i. A
    round that exploits arm a draws i uniformly, an arm c with probability `|v_ic| / ||v_i||_1`, and weights w, w'
    uniform on [-sqrt(3), sqrt(3)]. Y_c is the exploration sample of c that was reused least. The round counts as:

        x = w x_a + w' b_i,    y = w Y_a + w' ||v_i||_1 sign(v_ic) Y_c,

    a round that explores as it is, and theta = (sum x x^T + I / 2)^-1 sum x y.

    E[y - x^T theta] = 0 and E[x x^T] = x_a x_a^T + S / d, S = sum_k x_k x_k^T: each round adds to all directions, and
    the bias of the ridge fades everywhere. The noise of the exploration samples stays, for reuse makes no new ones;
    and mixing adds noise, also to arms that are sampled on and on: with more arms than dimensions, the differences
    between arms are noise as well.

    seed: of i, c, w and w'.

    >>> import numpy as np
    >>> from paretoscout.estimators import ExplorationMixed
    >>> estimator = ExplorationMixed(np.eye(2), n_metrics=1, seed=1)
    >>> estimator.update([0, 1], [4.0, 2.0], explored=True)
    >>> estimator.means.round(1).tolist()  # two samples and the ridge
    [[2.7], [1.3]]
    >>> estimator.update([0] * 500, [4.0] * 500, explored=False)
    >>> estimator.means.round(1).tolist()  # arm 1 was never sampled again
    [[4.0], [2.0]]
    """

    def __init__(self, contexts: ArrayLike, n_metrics: int = 1, *, seed: int = 0) -> None:
        super().__init__(contexts, n_metrics, mixes=True, seed=seed)


class DRMix(_Mixing):
    """Doubly robust estimate that imputes with the exploration-mixed estimate; the one `pfiwr` decides by.

    `DRRidge` with theta_mixed of `ExplorationMixed` as the imputation:
    theta = (n S + G + I)^-1 ((n S - G) theta_mixed + 2 r), where S = sum_k x_k x_k^T over all arms, and
    G = sum x_a x_a^T, r = sum x_a Y over the n rounds as they were sampled, unmixed.

    Arms that are sampled on and on are close to their least-squares estimate, without the noise of mixing; on the
    others it follows the imputation: no bias of a ridge in the long run, and the noise of the exploration samples.
    (As the paper prints it a round counts only if its pseudo-action is the observed reward. Given that, the
    correction has not mean zero, as double robustness would want: errors of the imputation stay where no arm is
    sampled.)

    imputation: "latest", all rounds are imputed with the newest mixed estimate (as in the proof), or "frozen", each
    with the one it saw, early errors and all. delta: round t is left out of G, r and n with probability
    delta / (t + 1)^2, as its resampling may fail; 0: never. seed: of all that is drawn.

    >>> import numpy as np
    >>> from paretoscout.estimators import DRMix
    >>> estimator = DRMix(np.eye(2), n_metrics=1, seed=1)
    >>> estimator.update([0, 1], [4.0, 2.0], explored=True)
    >>> estimator.update([0] * 500, [4.0] * 500, explored=False)
    >>> estimator.means.round(1).tolist()
    [[4.0], [2.0]]
    """

    def __init__(
        self,
        contexts: ArrayLike,
        n_metrics: int = 1,
        *,
        imputation: str = "latest",
        delta: float = DELTA,
        seed: int = 0,
    ) -> None:
        super().__init__(
            contexts, n_metrics, mixes=True, doubly_robust=True, imputation=imputation, delta=delta, seed=seed
        )
