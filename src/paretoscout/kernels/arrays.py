"""Names for the three kinds of array that pass through the library."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
#: Arms (int32) and codes (int8), where there may be a million of them.
SmallInts = npt.NDArray[Any]
