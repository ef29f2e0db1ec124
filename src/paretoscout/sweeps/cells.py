"""A cell of a sweep: what is played again and again under the same settings, and for how long."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from ..kernels.uncompiled import PACKAGE
from .sources import code_digest, own_sources

#: Is told of samples that were taken; says whether to go on.
Report = Callable[[int], bool]
#: Plays the replicate of a number and returns its row; None if it was told not to go on.
Play = Callable[[int, Report], dict[str, Any] | None]
#: Says, of all rows of a cell so far, whether there are enough of them.
Enough = Callable[[Sequence[Mapping[str, Any]]], bool]


@dataclass(frozen=True)
class Cell:
    """What is played. It travels to whoever plays it, so it must be picklable, except to threads."""

    #: Columns of a row, besides those of the settings, and what they hold; see `store.TYPES`.
    OUTCOME: ClassVar[dict[str, str]] = {}

    @property
    def kept(self) -> tuple[str, ...]:
        """Which of the columns that are lists its rows have."""
        return tuple(name for name, kind in self.OUTCOME.items() if kind.endswith("s"))

    @property
    def columns(self) -> dict[str, Any]:
        """The settings, as they stand in every row."""
        raise NotImplementedError

    def start(self) -> Play:
        """Get ready: what takes long is done once by each worker. Refusals are InvalidInput or NotSupported."""
        raise NotImplementedError

    @property
    def content(self) -> Any:
        """All that its rows depend on, but the code."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def key(self) -> str:
        """Sixteen letters for its content: rows of another one are not taken for its own."""
        digest = hashlib.sha256(type(self).__qualname__.encode())
        _feed(digest, self.content)
        return digest.hexdigest()[:16]

    @property
    def code(self) -> str:
        """Eight letters for the code that makes its rows."""
        package, _, module = type(self).__module__.partition(".")
        return code_digest(module) if package == PACKAGE else code_digest("sweeps.cells")


@dataclass(frozen=True)
class Plan:
    """How often a cell is played.

    Looks are at the first so many replicates by their numbers, whichever ended first: else those that take long would
    be missing whenever a cell ends early.
    """

    replicates: int
    looks: tuple[int, ...] = ()  # after so many `enough` is asked
    enough: Enough | None = None
    seconds: float = math.inf  # of work of the processor; after that no replicate is begun
    least: int = 0  # ... but for the first so many
    patience: float | None = None  # seconds of work after which one that is under way is given up; None: `seconds`
    first: tuple[int, ...] = ()  # numbers to begin with: it changes no row, only when it comes

    @property
    def limited(self) -> bool:
        """Whether its time is counted."""
        return self.hard < math.inf

    @property
    def hard(self) -> float:
        """Seconds of work after which a replicate that is under way is given up."""
        return self.seconds if self.patience is None else self.patience

    def limit(self, number: int) -> float:
        """Return after how many seconds of work a replicate is not begun any more."""
        return self.seconds if number >= self.least else self.hard

    def numbers(self) -> list[int]:
        """Return the numbers of all replicates, in the order in which they are begun."""
        first = set(self.first)
        return [*self.first, *(number for number in range(self.replicates) if number not in first)]


def _feed(digest: Any, value: Any) -> None:
    """Put a value into a digest, whatever it is made of, with its type; 1 and 1.0 are the same."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    digest.update(f"<{type(value).__name__}>".encode())
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, partial):
        _feed(digest, (value.func, value.args, value.keywords))
    elif is_dataclass(value) and not isinstance(value, type):
        _feed_source(digest, type(value))
        _feed(digest, {each.name: getattr(value, each.name) for each in fields(value)})
    elif isinstance(value, Mapping):
        for name in value:
            _feed(digest, name)
            _feed(digest, value[name])
    elif isinstance(value, (tuple, list)):
        for each in value:
            _feed(digest, each)
    elif callable(value):
        _feed_source(digest, value)
    else:
        digest.update(repr(value).encode())
    digest.update(b"</>")


def _feed_source(digest: Any, thing: Any) -> None:
    """Put the name of a class or a function into a digest; of somebody else's, all that it can run as well."""
    digest.update(f"{thing.__module__}.{thing.__qualname__}".encode())
    if thing.__module__.partition(".")[0] != PACKAGE:
        for name, source in sorted(own_sources(thing).items()):
            digest.update(f"{name}\n{source}".encode())
