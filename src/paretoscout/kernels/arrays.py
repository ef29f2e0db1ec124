"""Names for the three kinds of array that pass through the library."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .compile import short_kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
#: Arms (int32) and codes (int8), where there may be a million of them.
SmallInts = npt.NDArray[Any]


@short_kernel
def arm_at(arms: SmallInts, place: int) -> int:
    """An arm of a list, as all kernels take arms: for another kind of integer each would be compiled once more."""
    return np.int64(arms[place])  # type: ignore[return-value]
