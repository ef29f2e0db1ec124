"""States: NamedTuples of arrays, and of other states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def copy_state(state: Any) -> Any:
    """Return a state of its own: kernels change arrays in place."""
    return type(state)(*(part.copy() if isinstance(part, np.ndarray) else copy_state(part) for part in state))


def arrays_of(state: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """Return all arrays of a state by name; those of a state within it as "outer.inner"."""
    arrays: dict[str, np.ndarray] = {}
    for name, part in state._asdict().items():
        arrays |= {prefix + name: part} if isinstance(part, np.ndarray) else arrays_of(part, f"{prefix}{name}.")
    return arrays


def with_arrays(state: Any, arrays: Mapping[str, np.ndarray], prefix: str = "") -> Any:
    """Return a state of the same kind that holds the given arrays."""
    return type(state)(
        *(
            arrays[prefix + name] if isinstance(part, np.ndarray) else with_arrays(part, arrays, f"{prefix}{name}.")
            for name, part in state._asdict().items()
        )
    )
