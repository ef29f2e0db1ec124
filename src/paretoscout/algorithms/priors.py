"""Prior covariances of Gaussian processes on the arms, for epsilon-pal and kernel-ucb.

"independent" and "linear" need nothing else; the others come from scikit-learn (`paretoscout[gp]`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidInput, MissingExtra, NotSupported
from ..kernels.arrays import FloatArray
from .contract import Setup

INDEPENDENT, LINEAR = "independent", "linear"
#: Smoothness of the kernels that scikit-learn has; infinite: the Gaussian one.
SMOOTHNESS = {"rbf": np.inf, "matern52": 2.5, "matern32": 1.5, "matern12": 0.5}
KERNELS = (INDEPENDENT, LINEAR, *SMOOTHNESS)
#: A matrix of so many arms squared takes 200 MB, and each sample a pass over it.
MOST_ARMS = 5000

LengthScale = float | tuple[float, ...]


def named(setup: Setup, kernel: str | None) -> str:
    """Return the kernel that is asked for; None: "linear" where contexts are known to explain the means."""
    if kernel is None:
        return LINEAR if setup.explained and setup.contexts is not None else INDEPENDENT
    return kernel


def prior_covariance(algorithm: str, setup: Setup, kernel: str, length_scale: LengthScale) -> FloatArray:
    """Return the covariance (K, K) of the arms' means before any sample, up to the squared prior deviation.

    Where there are no contexts every arm is a unit vector of its own.
    """
    if setup.n_arms > MOST_ARMS:
        raise NotSupported(
            f"algorithm {algorithm!r} keeps a covariance of all pairs: it takes {MOST_ARMS:,} arms at most, "
            f"got {setup.n_arms:,}"
        )
    if kernel == INDEPENDENT:
        return np.eye(setup.n_arms)
    contexts = np.eye(setup.n_arms) if setup.contexts is None else setup.contexts
    if kernel == LINEAR:
        product: FloatArray = contexts @ contexts.T
    else:
        if np.ndim(length_scale) == 1 and len(length_scale) != contexts.shape[1]:  # type: ignore[arg-type]
            raise InvalidInput(
                f"length_scale of algorithm {algorithm!r} must be one number or {contexts.shape[1]} of them "
                f"(one per feature), got {length_scale!r}"
            )
        product = np.asarray(scikit_kernel(kernel, length_scale)(contexts), float)
    return np.ascontiguousarray(0.5 * (product + product.T))


def scikit_kernel(kernel: str, length_scale: Any) -> Any:
    """Return a kernel of scikit-learn."""
    try:
        from sklearn.gaussian_process import kernels
    except ImportError:
        raise MissingExtra(f"kernel {kernel!r} of a Gaussian process", "gp") from None
    if np.isinf(SMOOTHNESS[kernel]):
        return kernels.RBF(length_scale)
    return kernels.Matern(length_scale, nu=SMOOTHNESS[kernel])
