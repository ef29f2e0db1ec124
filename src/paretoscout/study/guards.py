"""Limits that options must keep: what is known of them, by intervals that all hold together, at all times."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

import numpy as np

from ..kernels.arrays import FloatArray
from ..kernels.paired import paired_radius, worth_of
from ..kernels.widths import end_of_share, one_sided_mixture, t_mixture, tuned_rho
from ..laws import EXACT, NORMAL, PASS_FAIL, SIGMA, SILENT
from .spec import Guard, StudySpec
from .tally import Tally

#: The number of samples at which the tests of guards are narrowest.
TYPICAL_SAMPLES = 50.0
#: Scales of the mixture for the mean over a list of blocks, as careful as that for differences.
SCALES = (64.0, 512.0)


def ends_of(
    spec: StudySpec, tally: Tally, law: int, arm: int, column: int, alpha: float, n: float | None = None
) -> tuple[float, float]:
    """Return what the mean of a column of an arm lies between, by its samples alone, at alpha for each side.

    On the scale on which the column is compared. law: of the column, for this arm. n: the ends there would be after so
    many samples, if they go on as they were.
    """
    metric = spec.measured()[column]
    measured, mean = float(tally.n[arm, column]), float(tally.mean[arm, column])
    n = measured if n is None else n
    n_list = spec.asked.n_list
    if measured == 0 or law in SILENT:
        return -np.inf, np.inf
    if n >= n_list or law == EXACT:
        return mean, mean
    if law == PASS_FAIL:
        ends = [end_of_share(mean * n, n, n_list, 2.0 * alpha, upper) for upper in (False, True)]
        return ends[0], ends[1]
    centre, width = mean, 0.0
    rho = tuned_rho(TYPICAL_SAMPLES, alpha)
    if law == NORMAL:
        deviation = float(np.sqrt(tally.squares[arm, column] / measured))
        in_list = n_list < np.inf
        width = _width_in_list(deviation**2, n, n_list, alpha) if in_list else t_mixture(n, 2 * alpha, deviation, rho)
    elif law == SIGMA:
        sigma = spec.sigma[column]
        if column < len(spec.metrics) and spec.asked.sigma.ndim > 1:
            sigma = float(spec.asked.sigma[arm, column])
        width = one_sided_mixture(n, alpha, sigma, rho) if sigma else 0.0
    else:
        low, high = metric.compared(np.array(metric.bounds)).tolist()
        width = one_sided_mixture(n, alpha, (high - low) / 2, rho)
        if n_list < np.inf:
            # the t-th block is expected to be what those before leave: the mean of the list is paced / pace
            pace = float((n_list / (n_list - np.arange(measured))).sum())
            centre = float(tally.paced[arm, column]) / pace
            width *= n / float((n_list / (n_list - np.arange(n))).sum())
    return centre - width, centre + width


def _width_in_list(variance: float, n: float, n_list: float, alpha: float) -> float:
    """How far the mean over a list may be from that of n of its blocks, whose values are as from a normal law."""
    scales = np.array(SCALES)
    weights = np.full(len(scales), -np.log(len(scales)))
    return float(paired_radius(-np.log(2 * alpha), n, variance * n, worth_of(n, n_list), scales, weights))


@dataclass(frozen=True)
class Guards:
    """The guards of a study, and what was measured so far."""

    spec: StudySpec
    tally: Tally
    shares: FloatArray  # of delta, for each arm
    law: Callable[[int, int], int]  # of a column, for an arm
    censored: Set[tuple[int, int]] = frozenset()  # arms and columns with a value that was too small to be measured

    def bounds(self, arm: int, guard: Guard, n: float | None = None) -> tuple[float, float]:
        """Return limits that the mean of a guarded column lies between, on the scale on which it is compared.

        n: the limits there would be after so many samples, if they go on as they were.
        """
        column = self.spec.columns.index(guard.metric)
        # of the share of guards each arm has its own, for each guard and side alike
        alpha = self.spec.delta * dict(self.spec.shares)["guards"] * self.shares[arm] / (2 * len(self.spec.guards))
        low, high = ends_of(self.spec, self.tally, self.law(column, arm), arm, column, alpha, n)
        return -np.inf if (arm, column) in self.censored else low, high

    def _limit(self, guard: Guard) -> tuple[float, float]:
        """The limit and the eps of its metric, on the scale on which it is compared."""
        metric = self.spec.measured()[self.spec.columns.index(guard.metric)]
        return float(metric.compared(guard.limit)), metric.tolerance

    def broken_by(self, arm: int, guard: Guard, n: float | None = None) -> bool:
        """Whether an arm breaks a guard for sure."""
        (low, high), (limit, _) = self.bounds(arm, guard, n), self._limit(guard)
        return low > limit if guard.sense == "<=" else high < limit

    def kept_by(self, arm: int, guard: Guard, n: float | None = None, strictly: bool = False) -> bool:
        """Whether an arm keeps a guard for sure; unless strictly, up to the eps of the metric."""
        (low, high), (limit, eps) = self.bounds(arm, guard, n), self._limit(guard)
        slack = 0.0 if strictly else eps
        return high <= limit + slack if guard.sense == "<=" else low >= limit - slack

    def settles(self, arm: int, guard: Guard, n: float) -> bool:
        """Whether n samples would settle a guard, if they go on as they were."""
        return self.broken_by(arm, guard, n) or self.kept_by(arm, guard, n)

    def broken(self, arm: int) -> Guard | None:
        """Return the guard that an arm breaks for sure, if there is one."""
        return next((guard for guard in self.spec.guards if self.broken_by(arm, guard)), None)

    def kept(self, arm: int, strictly: bool = False) -> bool:
        """Whether an arm keeps all guards for sure."""
        return all(self.kept_by(arm, guard, strictly=strictly) for guard in self.spec.guards)
