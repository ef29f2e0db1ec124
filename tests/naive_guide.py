"""What contexts make of pilots, one metric at a time, written as it is described in docs/scout.md."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def models(contexts: Array, first: NDArray[np.bool_]) -> list[Array]:
    """Return the designs that are tried, (K, p) each, the one within the next."""
    n = np.count_nonzero(first)
    most = min(200, n / 4, np.sqrt(2e8 / n))
    differs = np.ptp(contexts[first], axis=0) > 0
    X = (contexts - contexts[first].mean(axis=0))[:, differs] / contexts[first].std(axis=0)[differs]
    X[~first] = np.clip(X[~first], -100, 100)
    values = [np.unique(x[first]) for x in X.T]
    pairs = [
        X[:, i] * X[:, j]
        for i, j in itertools.combinations_with_replacement(range(X.shape[1]), 2)
        if i != j or len(values[i]) > 2
    ]
    levels = [x == value for x, of_x in zip(X.T, values, strict=True) if len(of_x) <= 20 for value in of_x]
    design = np.ones((len(X), 1))
    found: list[Array] = []
    for more in (list(X.T), pairs, levels):
        larger = np.column_stack([design, *more])
        if rank(larger[first]) > most:
            if not found:
                return []
        elif rank(larger[first]) > rank(design[first]):
            design = larger
            found.append(design)
    return found


def rank(design: Array) -> int:
    return int(np.linalg.matrix_rank(design, tol=1e-6 * np.sqrt(len(design))))


def fitted(design: Array, y: Array, variance: Array) -> tuple[Array, Array, int]:
    """Return residuals and leverages of a weighted fit, and its rank."""
    weight = 1 / np.sqrt(variance)
    U, s, _ = np.linalg.svd(design * weight[:, None], full_matrices=False)
    U = U[:, s > 1e-7 * s[0]]
    residuals = y - U @ (U.T @ (y * weight)) / weight
    return residuals, (U**2).sum(axis=1), U.shape[1]


def left_out(design: Array, y: Array, variance: Array) -> float:
    """Return the error on pilots that are left out of the fit, each in its turn, squared, in units of the variance."""
    residuals, leverages, _ = fitted(design, y, variance)
    return float(np.sum((residuals / (1 - np.minimum(leverages, 0.99))) ** 2 / variance))


def expectations(designs: list[Array], y: Array, sigma: Array | None, assumed: float) -> tuple[Array, Array]:
    """Return where arms seem to be, by their pilots y and by the model that predicts these best, and the variances.

    sigma: None where nobody knows it. Then the spread of the pilots is a scale to go by; where no model helps, this share
    of it is assumed to be noise.
    """
    q = np.full(len(y), y.var()) if sigma is None else sigma**2
    on_their_own = y, q * assumed**2 if sigma is None else q
    if not designs or (q == 0).any():
        return on_their_own
    design = designs[0]
    for larger in designs[1:]:
        if left_out(larger, y, q) + 1e-9 < left_out(design, y, q):
            design = larger
    residuals, _, p = fitted(design, y, q)
    K = len(y)
    chi = np.sum(residuals**2 / q) / (K - p)
    tau2 = 0.0
    for _ in range(3):
        residuals, _, _ = fitted(design, y, q + tau2)
        tau2 = misfit(residuals, q, K - p)
    residuals, leverages, _ = fitted(design, y, q + tau2)
    own = tau2 / (tau2 + q)
    if sigma is None or abs(chi - 1) > 3 * np.sqrt(2 / (K - p)):
        own = np.maximum(0.5, own)
    noise = min(1, max(0.01, chi)) * q
    variance = own**2 * noise + (1 - own) ** 2 * (tau2 + leverages * (noise + tau2))
    better = left_out(design, y, q + tau2) <= 0.9 * left_out(np.ones((K, 1)), y, q + tau2)
    if not better or np.mean(variance / q) > 0.5:
        return on_their_own
    return y - (1 - own) * residuals, variance


def misfit(residuals: Array, q: Array, freedom: int) -> float:
    """Return the variance about the model that makes squared residuals as large as they should be."""
    low, high = 0.0, float(np.sum(residuals**2)) / freedom
    if np.sum(residuals**2 / q) <= freedom:
        return 0.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if np.sum(residuals**2 / (q + middle)) > freedom else (low, middle)
    return (low + high) / 2
