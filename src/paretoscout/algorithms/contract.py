"""What an algorithm is: a state, five functions, and what it promises. One record says it all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidInput, NotSupported
from ..kernels.arrays import FloatArray
from ..kernels.dispatch import Verdicts, implement


@dataclass(frozen=True)
class Setup:
    """What an algorithm may know of a problem. Metrics are oriented (larger is better) and scaled."""

    n_arms: int
    n_metrics: int
    eps: FloatArray  # (L,) differences that do not matter
    delta: float  # probability of error that is allowed
    sigma: FloatArray  # (L,) noise scale
    contexts: FloatArray | None = None  # (K, d)
    theta_max: float | None = None  # largest norm of a column of the parameters, where it is known


class Settings:
    """Base of the settings of an algorithm: a frozen dataclass that checks its own ranges."""

    #: Noise scale to assume, in the metrics' own units; None: that of the problem.
    sigma: float | tuple[float, ...] | None = None


@dataclass(frozen=True)
class Accepts:
    """What an algorithm can take besides one answer to each question, in order."""

    pending: bool = False  # be asked again before earlier outcomes are in
    unasked: bool = False  # data on arms it did not ask for
    missing: bool = False  # outcomes that lack some metrics


def _fixed_size(state: Any, rounds: int) -> Any:
    return state


@dataclass(frozen=True)
class Algorithm:
    """One algorithm: its name, its promise and its code.

    init(settings, setup) -> (state, options)     plain Python; both NamedTuples of arrays and numbers
    choose(state, options, pending, rng) -> (arm, ticket)
    update(state, options, arm, ticket, outcome, observed)
    verdicts(state, options) -> Verdicts
    done(state, options) -> bool
    reserve(state, rounds) -> state               room for that many rounds, for states that grow
    """

    name: str
    summary: str
    paper: str
    guarantee: str  # what holds with probability 1 - delta, and on which assumption; or why nothing does
    guarantees: bool  # whether delta means delta
    settings: type[Settings]
    state: Any  # the NamedTuple class of its state
    init: Callable[[Any, Setup], tuple[Any, Any]]
    choose: Callable[..., tuple[int, FloatArray]]
    update: Callable[..., None]
    verdicts: Callable[[Any, Any], Verdicts]
    done: Callable[[Any, Any], bool]
    ticket_size: int = 0
    accepts: Accepts = Accepts()
    reserve: Callable[[Any, int], Any] = _fixed_size

    def __post_init__(self) -> None:
        implement(self.state, choose=self.choose, update=self.update, done=self.done)

    def require(self, ability: str, what: str) -> None:
        """Raise NotSupported, naming the algorithm, unless it declares the ability."""
        if not getattr(self.accepts, ability):
            raise NotSupported(f"algorithm {self.name!r} cannot take {what}")


def checked_number(
    owner: str,
    name: str,
    value: Any,
    *,
    above: float = -np.inf,
    least: float = -np.inf,
    below: float = np.inf,
) -> float:
    """Return `value` as a float if it lies in the range, else say which setting of what must be what."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if isinstance(value, bool) or not (np.isfinite(number) and above < number < below and number >= least):
        limits = {"above": above, "at least": least, "below": below}
        wanted = " and ".join(f"{word} {limit:g}" for word, limit in limits.items() if np.isfinite(limit))
        raise InvalidInput(f"{name} of {owner} must be a finite number {wanted}, got {value!r}")
    return number


def checked_sigma(owner: str, sigma: float | tuple[float, ...] | None) -> None:
    """Refuse a noise scale that is not None, a number or numbers, all finite and not negative."""
    for value in () if sigma is None else np.atleast_1d(np.asarray(sigma, dtype=object)):
        checked_number(owner, "sigma", value, least=0.0)
