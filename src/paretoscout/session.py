"""Session: one algorithm, driven from outside, one question and one answer at a time.

The live twin of `simulation/play.py`: the same kernels, called one by one. Everything that comes from outside
is checked here; a kernel never sees an arm that does not exist, or a number that is not one.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from .algorithms.contract import Algorithm, Settings, Setup
from .algorithms.registry import resolve
from .errors import InvalidInput, NotSupported
from .files import pack, unpack
from .kernels.arrays import BoolArray, FloatArray
from .kernels.dispatch import Verdicts
from .streams import algorithm_stream, checked_seed


class Question(NamedTuple):
    """An arm to measure, and the ticket to hand back with what was measured."""

    arm: int
    ticket: FloatArray


class Session:
    """An algorithm at work, in memory, in its own units (metrics oriented and scaled, arms numbered).

    >>> import numpy as np
    >>> from paretoscout.algorithms import Setup
    >>> setup = Setup(n_arms=2, n_metrics=1, eps=np.array([0.1]), delta=0.1, sigma=np.array([0.0]))
    >>> session = Session("multi-pfi", setup)
    >>> while not session.done:
    ...     question = session.ask()
    ...     session.tell(question, [float(question.arm)])
    >>> session.verdicts().status.tolist()
    [2, 1]
    """

    def __init__(self, algorithm: str | Settings, setup: Setup, seed: int = 0) -> None:
        self.algorithm, self.settings = resolve(algorithm)
        self.setup = setup
        self.state, self.options = self.algorithm.init(self.settings, setup)
        self.rng = algorithm_stream(checked_seed(seed))
        self.pending = np.zeros(setup.n_arms, np.int64)

    @property
    def done(self) -> bool:
        """Whether every arm has its verdict."""
        return bool(self.algorithm.done(self.state, self.options))

    def ask(self) -> Question:
        """Return the arm to measure next."""
        if self.done:
            raise NotSupported("every arm has its verdict: there is nothing left to ask")
        if self.pending.any():
            self.algorithm.require("pending", "another question before the last one is answered")
        arm, ticket = self.algorithm.choose(self.state, self.options, self.pending, self.rng)
        self.pending[arm] += 1
        return Question(int(arm), ticket.copy())  # the kernel overwrites its own at the next choice

    def tell(self, question: Question, outcome: Any, observed: Any = None) -> None:
        """Take in what was measured: one number per metric, those not marked in `observed` are ignored."""
        arm = self._checked_arm(question.arm)
        ticket = np.asarray(question.ticket, float)
        if ticket.shape != (self.algorithm.ticket_size,) or not np.isfinite(ticket).all():
            raise InvalidInput(
                f"ticket of algorithm {self.algorithm.name!r} must be the one that ask() returned: "
                f"{self.algorithm.ticket_size} finite numbers, got {question.ticket!r}"
            )
        if self.pending[arm] == 0:
            raise InvalidInput(f"arm {arm} must have been asked for and not yet told; add() takes data not asked for")
        values, mask = self._checked_outcome(outcome, observed)
        self._update(arm, ticket, values, mask)
        self.pending[arm] -= 1

    def add(self, arm: int, outcome: Any, observed: Any = None) -> None:
        """Take in a measurement that was not asked for."""
        self.algorithm.require("unasked", "data it did not ask for")
        values, mask = self._checked_outcome(outcome, observed)
        self._update(self._checked_arm(arm), np.zeros(self.algorithm.ticket_size), values, mask)

    def verdicts(self) -> Verdicts:
        """Return what is proven of each arm."""
        return self.algorithm.verdicts(self.state, self.options)

    def dump(self) -> bytes:
        """Return all there is to know of this session; `Session.load` goes on from it bit for bit."""
        setup = {name: value for name, value in asdict(self.setup).items() if not isinstance(value, np.ndarray)}
        header = {
            "algorithm": self.algorithm.name,
            "settings": asdict(self.settings),  # type: ignore[call-overload]
            "setup": setup,
            "rng": self.rng.bit_generator.state,
        }
        arrays = {f"setup.{name}": value for name, value in vars(self.setup).items() if name not in setup}
        arrays |= {f"state.{name}": value for name, value in self.state._asdict().items()}
        return pack("session", header, {**arrays, "pending": self.pending})

    @classmethod
    def load(cls, data: bytes) -> Session:
        """Return the session that `dump` was called on."""
        header, arrays = unpack("session", data)
        record, _ = resolve(header["algorithm"])
        settings = {
            name: tuple(value) if isinstance(value, list) else value for name, value in header["settings"].items()
        }
        given: dict[str, Any] = {
            name.removeprefix("setup."): value for name, value in arrays.items() if name.startswith("setup.")
        }
        session = cls(record.settings(**settings), Setup(**header["setup"], **given))
        session.state = record.state(*(arrays[f"state.{name}"] for name in record.state._fields))
        session.rng.bit_generator.state = header["rng"]
        session.pending = arrays["pending"]
        return session

    def _update(self, arm: int, ticket: FloatArray, values: FloatArray, mask: BoolArray) -> None:
        self.state = self.algorithm.reserve(self.state, 1)
        self.algorithm.update(self.state, self.options, arm, ticket, values, mask)

    def _checked_arm(self, arm: Any) -> int:
        if isinstance(arm, bool) or not isinstance(arm, (int, np.integer)) or not 0 <= arm < self.setup.n_arms:
            raise InvalidInput(f"arm must be a whole number from 0 to {self.setup.n_arms - 1}, got {arm!r}")
        return int(arm)

    def _checked_outcome(self, outcome: Any, observed: Any) -> tuple[FloatArray, BoolArray]:
        L = self.setup.n_metrics
        mask = np.ones(L, np.bool_) if observed is None else np.asarray(observed)
        if mask.shape != (L,) or mask.dtype != np.bool_ or not mask.any():
            raise InvalidInput(f"observed must be {L} booleans, at least one of them true, got {observed!r}")
        try:
            values = np.array(outcome, dtype=float)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != (L,):
            raise InvalidInput(f"outcome must be {L} numbers, one per metric, got {outcome!r}")
        if not mask.all():
            self.algorithm.require("missing", f"an outcome that lacks metrics {np.flatnonzero(~mask).tolist()}")
            values[~mask] = 0.0
        if not np.isfinite(values).all():
            metric = int(np.flatnonzero(~np.isfinite(values))[0])
            raise InvalidInput(f"outcome of metric {metric} must be finite, got {values[metric]}")
        return values, mask


__all__ = ["Algorithm", "Question", "Session"]
