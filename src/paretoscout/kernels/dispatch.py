"""`choose`, `update`, `done` and `draw`, resolved by the class of their first argument.

The compiled loop of the simulation calls these names; which code runs is settled when the loop is compiled
for a class of state. (A kernel passed as an argument or closed over would never be found in the cache.)
Loops that are not compiled yet call the functions that stand here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import TypingError
from numba.extending import overload

from .arrays import BoolArray, FloatArray, IntArray
from .compile import DRAFT
from .uncompiled import plain

#: The ticket of an algorithm that needs none; kernels find it among their constants.
NO_TICKET: FloatArray = np.empty(0)


class Verdicts(NamedTuple):
    """What an algorithm says of each arm at one moment, in the units it computes in."""

    status: IntArray  # (K,) UNDECIDED, FRONT or DOMINATED
    rival: IntArray  # (K,) who dominates the arm, or who comes nearest to it; -1: nobody
    estimates: FloatArray  # (K, L)
    radii: FloatArray  # (K, L) half-widths of the confidence intervals
    counts: IntArray  # (K,) samples taken


class Held(NamedTuple):
    """Trials from the first open one on, in the order in which they were asked for; void ones are left out."""

    arms: IntArray  # (n,)
    told: BoolArray  # (n,) False: it is open
    outcomes: FloatArray  # (n, L) of those that are told
    observed: BoolArray  # (n, L)
    eras: IntArray  # (n,) after how many additions after looking each was asked for


class Basis(NamedTuple):
    """What each verdict rests on, where some are measured and others follow from a model."""

    survives: FloatArray | None  # (K,) the largest misfit that the verdict survives; infinite: it was measured
    model_rejected: bool  # the model was found not to fit, and is no longer used
    held: bool = False  # verdicts by the model wait until it is known to fit
    failed: BoolArray | None = None  # (L,) of which metrics it was found not to fit


_implementations: dict[str, dict[type, Callable[..., Any]]] = {
    "choose": {},
    "update": {},
    "done": {},
    "draw": {},
}


def implement(state_class: type, **functions: Callable[..., Any]) -> None:
    """Say which kernels serve a class of state. Class names are unique: numba tells classes apart by name."""
    for name, function in functions.items():
        table = _implementations[name]
        for other, known in table.items():
            if other.__name__ == state_class.__name__ and known is not function:
                raise TypeError(
                    f"two algorithms use a state class named {state_class.__name__!r}; "
                    "compiled code cannot tell them apart: give one another name, or start Python again"
                )
        table[state_class] = function


def _compiled(name: str, state: Any) -> Callable[..., Any]:
    state_class = getattr(state, "instance_class", None)  # of numba's type of a NamedTuple
    if state_class not in _implementations[name]:
        raise TypingError(f"{name}: no kernel is registered for {state}")
    return _implementations[name][state_class]


def choose(state: Any, constants: Any, pending: IntArray, rng: np.random.Generator) -> tuple[int, FloatArray]:
    """Return the arm to measure next and the ticket to hand back with its outcome.

    The ticket is an array of the state or the constants, overwritten by the next choice: copy it to keep it.
    """
    result: tuple[int, FloatArray] = plain(_implementations["choose"][type(state)])(state, constants, pending, rng)
    return result


def update(state: Any, constants: Any, arm: int, ticket: FloatArray, outcome: FloatArray, observed: BoolArray) -> None:
    """Take in one outcome (L,); only metrics marked in `observed` count."""
    plain(_implementations["update"][type(state)])(state, constants, arm, ticket, outcome, observed)


def done(state: Any, constants: Any) -> bool:
    """Whether every arm has its verdict."""
    result: bool = plain(_implementations["done"][type(state)])(state, constants)
    return result


def draw(environment: Any, arm: int, rng: np.random.Generator, outcome: FloatArray) -> None:
    """Write one noisy sample of `arm` into `outcome` (L,)."""
    plain(_implementations["draw"][type(environment)])(environment, arm, rng, outcome)


@overload(choose, strict=False, inline="always", jit_options=DRAFT)
def _choose(state: Any, constants: Any, pending: Any, rng: Any) -> Callable[..., Any]:
    function = _compiled("choose", state)
    return lambda state, constants, pending, rng: function(state, constants, pending, rng)


@overload(update, strict=False, inline="always", jit_options=DRAFT)
def _update(state: Any, constants: Any, arm: Any, ticket: Any, outcome: Any, observed: Any) -> Callable[..., Any]:
    function = _compiled("update", state)
    return lambda state, constants, arm, ticket, outcome, observed: function(
        state, constants, arm, ticket, outcome, observed
    )


@overload(done, strict=False, inline="always", jit_options=DRAFT)
def _done(state: Any, constants: Any) -> Callable[..., Any]:
    function = _compiled("done", state)
    return lambda state, constants: function(state, constants)


@overload(draw, strict=False, inline="always", jit_options=DRAFT)
def _draw(environment: Any, arm: Any, rng: Any, outcome: Any) -> Callable[..., Any]:
    function = _compiled("draw", environment)
    return lambda environment, arm, rng, outcome: function(environment, arm, rng, outcome)
