"""The test of linear means, written down trial by trial: dense matrices, no sufficient statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Array = NDArray[np.float64]


def log_total(terms: list[float]) -> float:
    """Return log(sum(exp(terms)))."""
    return float(np.logaddexp.reduce(terms))


@dataclass
class NaiveFit:
    """One metric: which arm was measured in each trial, and what came out."""

    x: Array  # (K, d) contexts
    trials: list[tuple[int, float]] = field(default_factory=list)

    @property
    def n(self) -> NDArray[np.int64]:
        """(K,) how often each arm was measured."""
        return np.bincount([arm for arm, _ in self.trials], minlength=len(self.x))

    @property
    def means(self) -> Array:
        """(K,) the mean of each arm; 0 if it was not measured."""
        sums = np.bincount([arm for arm, _ in self.trials], [y for _, y in self.trials], minlength=len(self.x))
        return np.asarray(sums / np.maximum(self.n, 1))

    def design(self) -> tuple[Array, Array, Array]:
        """X (t, d), y (t,) and the arms as indicators Z (t, K)."""
        arms = np.array([arm for arm, _ in self.trials])
        return self.x[arms], np.array([y for _, y in self.trials]), np.eye(len(self.x))[arms]

    def against(self, sigma: float, rhos: Array) -> float:
        """Log e-value, sigma known: for each scale the least over theta of the product over arms."""
        n, means, d = self.n, self.means, self.x.shape[1]
        there = n > 0

        def product(theta: Array, rho: float) -> float:
            S = n * (means - self.x @ theta)
            terms = S**2 / (2 * sigma**2 * (n + rho)) - 0.5 * np.log1p(n / rho)
            return float(terms[there].sum())

        start = np.linalg.lstsq(*self.design()[:2], rcond=None)[0] if len(self.trials) >= d else np.zeros(d)
        least = [minimize(product, start, args=(rho,), method="BFGS", options={"gtol": 1e-10}).fun for rho in rhos]
        return log_total([value - math.log(len(rhos)) for value in least])

    def log_marginal(self, square: float, sigma: float | None) -> float:
        """Log marginal likelihood: misfits of variance `square` sigma^2, theta flat, sigma known or with density 1 / sigma.

        Up to a constant that is the same for any trials and any misfit.
        """
        X, y, Z = self.design()
        N, d = X.shape
        V = np.eye(N) + square * Z @ Z.T
        W = np.linalg.inv(V)
        A = X.T @ W @ X
        r = y - X @ np.linalg.solve(A, X.T @ W @ y)
        Q = float(r @ W @ r)
        value = -0.5 * (np.linalg.slogdet(V)[1] + np.linalg.slogdet(A)[1])
        if sigma is not None:
            return float(value - 0.5 * Q / sigma**2)
        free = 0.5 * (N - d)
        return float(value + math.lgamma(free) - free * (math.log(Q) + math.log(math.pi)))

    def against_unknown(self, first: int, rhos: Array) -> float:
        """Log e-value, sigma unknown: the later trials predicted by the first ones, over the largest likelihood."""
        later = NaiveFit(self.x, self.trials[first:])
        if len(later.trials) <= self.x.shape[1]:  # some plane fits them exactly
            return -np.inf
        X, y, _ = later.design()
        theta, _, rank, _ = np.linalg.lstsq(X, y, rcond=None)
        if rank < X.shape[1]:
            return -np.inf
        r, N = y - X @ theta, len(y)
        best = -0.5 * N * (math.log(2 * math.pi * float(r @ r) / N) + 1)
        before = NaiveFit(self.x, self.trials[:first])
        ratios = [self.log_marginal(1 / rho, None) - before.log_marginal(1 / rho, None) for rho in rhos]
        return log_total([ratio - math.log(len(rhos)) for ratio in ratios]) - best

    def scatter(self) -> float:
        """The sum of squares within arms."""
        return float(sum((y - self.means[arm]) ** 2 for arm, y in self.trials))

    def in_favour(self, misfit: float, sigma: float, known: bool) -> float:
        """Log likelihood ratio of no misfit to misfits of that standard deviation."""
        given = sigma if known else None
        return self.log_marginal(0.0, given) - self.log_marginal((misfit / sigma) ** 2, given)
