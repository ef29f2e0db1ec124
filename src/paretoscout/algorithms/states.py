"""States: NamedTuples of arrays, and of other states. And what the whole numbers in them may be.

Kernels use many of these as places in other arrays and do not check them. So a state that comes from outside is checked
before any kernel sees it, and every array of whole numbers has a role: by its name, or by what its algorithm declares
(`Kernels.ranges`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import UnreadableFile
from ..kernels.decisions import UNDECIDED

#: What an array of whole numbers holds, by its name. What each role allows: see `check_state`.
ROLES: dict[str, tuple[str, ...]] = {
    "arm": (
        *(
            "active",
            "beaten_by",
            "best",
            "blocker",
            "champions",
            "first",
            "first_arms",
            "front",
            "leaders",
            "members",
            "nearest",
        ),
        *("pivots", "rival", "scratch", "second", "standing", "worst"),
    ),
    "code": (
        *("excused", "failed", "held", "mixed", "on_front", "presence", "rejected", "route", "sigma_bounded", "status"),
    ),
    "count": (
        *(
            "checked_pulls",
            "counts",
            "drawn",
            "due",
            "explored",
            "first_counts",
            "fit_counters",
            "left",
            "marks",
            "planned",
            "pool_uses",
            "pulls",
            "quota",
        ),
        *("samples", "test_at", "unpiloted"),
    ),
    "feature": ("fit_reach", "mix_reach", "reach", "shifted_reach", "start"),
    "features": ("stop",),
    "few": ("n_seen",),
    "metric": ("metric_of", "tried"),
    "sample": ("pool_before", "pool_cursor", "pool_last", "pool_next", "pool_start"),
    "value": ("chunks",),
    "values": ("used",),
    "pair": ("n_listed",),
    "place": ("heap", "position"),
}
_role_of = {name: role for role, names in ROLES.items() for name in names}
_declared: dict[type, Mapping[str, str | tuple[str, ...]]] = {}


def declare(state: type, ranges: Mapping[str, str | tuple[str, ...]]) -> None:
    """Say what arrays of a class of states hold whose names do not tell: a role, or one for each entry."""
    _declared[state] = ranges


def roles_of(state: Any, prefix: str = "") -> Iterator[tuple[str, np.ndarray, str | tuple[str, ...] | None]]:
    """Yield name, array and role (None: nobody said) of all arrays that kernels may take places from."""
    declared = _declared.get(type(state), {})
    for name, part in state._asdict().items():
        if not isinstance(part, np.ndarray):
            yield from roles_of(part, f"{prefix}{name}.")
        elif part.dtype.kind in "iu" or name in declared:
            yield prefix + name, part, declared.get(name, _role_of.get(name))


def check_state(state: Any, n_arms: int, n_metrics: int, tickets: Sequence[np.ndarray] = ()) -> None:
    """Refuse a state from outside, or a ticket, in which a number is not what it can be."""
    arrays = arrays_of(state)
    features = [len(array) for name, array in arrays.items() if name.endswith("reach")]  # (d,) in all states
    n_features, n_samples = max(features, default=0), len(arrays.get("pool_next", ()))
    n_values = max((len(array) for name, array in arrays.items() if name.endswith("series.values")), default=0)
    undecided = np.flatnonzero(arrays.get("status", np.empty(0)) == UNDECIDED)
    any_arm = np.full(n_arms - len(undecided), n_arms - 1)
    allowed: dict[str, tuple[Any, Any]] = {  # the same for all numbers, or a limit for each
        "arm": (-1, n_arms - 1),  # -1: none
        "place": (0, n_arms - 1),  # in a list of arms, or an arm that is there
        "arms": (0, n_arms),  # how many of them
        "some arms": (1, n_arms),
        "undecided": (len(undecided), len(undecided)),
        "undecided arms": (np.append(undecided, -np.ones_like(any_arm)), np.append(undecided, any_arm)),  # these first
        "code": (0, 3),
        "block": (0, len(arrays.get("outcomes", ()))),
        "count": (-1, 2**53),
        "number": (0, 2**53),  # of samples; kernels take places from it, though it is a float
        "few": (0, max((array.shape[-1] for name, array in arrays.items() if name.endswith("seen")), default=0)),
        "feature": (0, n_features - 1),
        "features": (0, n_features),
        "metric": (-1, n_metrics),
        "sample": (-1, n_samples - 1),
        "value": (-1, n_values - 1),
        "values": (0, n_values),
        "samples": (0, n_samples),
        "pair": (0, len(arrays.get("design.first", ()))),
        "real": (-1e300, 1e300),
    }
    declared = _declared.get(type(state), {})
    checked = [*roles_of(state), *(("ticket", ticket, declared.get("ticket", "real")) for ticket in tickets)]
    for name, array, role in checked:
        parts = zip(array, role, strict=True) if isinstance(role, tuple) else [(array, role or "count")]
        for part, each in parts:
            low, high = allowed[each]
            if not np.all((low <= part) & (part <= high)):
                raise UnreadableFile(f"{name} must be from {low} to {high}, got {part}")


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
