"""What can go wrong, as a tree. Catch the root to catch everything this library raises on purpose.

ParetoscoutError
├── InvalidInput (a ValueError)        a value is wrong: the message says which, of what, must be what, got what
│   └── SettingsDiffer                 a study of that name is there already, with other settings
├── UnknownName (a LookupError)        no such algorithm, problem, arm or metric; names the near ones
├── NameTaken (a ValueError)           a study of that name is there already
├── Conflict (a ValueError)            a trial was told before, with other values
├── NotAllowed (a PermissionError)     a token that does not allow that, or none
├── NotSupported                       this algorithm cannot do that; the message names the algorithm
│   └── NothingToAsk                   not before outcomes are in: all that is left is being measured
├── MissingData (a LookupError)        a data set that is not on this machine; the message says how to get it
├── StorageUnavailable (an OSError)    a database that cannot be reached, is not ours, or has another version
├── Stopped                            work that was stopped: its caller left, or it used up its CPU time
├── EngineUnavailable (an OSError)     a cluster that cannot be reached, or whose workers die or have other code
├── UnreadableFile (a ValueError)      not one of our files, or written by a newer version
└── MissingExtra (an ImportError)      a feature whose packages are not installed; gives the install line
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ParetoscoutError(Exception):
    """The root of all errors raised on purpose."""


class InvalidInput(ParetoscoutError, ValueError):
    """A value is wrong: which one, of what, what it must be, what it was."""

    def __init__(self, message: str = "", field: str | None = None) -> None:
        """Say what is wrong; field: which value, of what, if it is known apart from the sentence."""
        super().__init__(message)
        self.field = field


class SettingsDiffer(InvalidInput):
    """A study of that name is there already, with other settings."""


class UnknownName(ParetoscoutError, LookupError):
    """No algorithm, problem, arm or metric has that name."""

    def __init__(self, kind: str, name: object, known: Iterable[str], where: str = "", hint: str = "") -> None:
        """Say what is unknown, what is near it and what is known; where: "of runs.csv"; hint: what else to say."""
        known = list(known)
        self.kind, self.name, self.known = kind, name, known
        near = _nearest(str(name), known)
        meant = f"; did you mean {near!r}?" if near is not None else "."
        shown = ", ".join(known[:30]) + (", ..." if len(known) > 30 else "")
        place = f" {where}" if where else ""
        given = repr(name)
        given = given if len(given) <= 200 else f"{given[:98]}...{given[-98:]}"
        super().__init__(f"unknown {kind} {given}{place}{meant} Known: {shown or 'none'}{hint}")


#: Names that are near are looked for among so many, and of so many letters: with a hundred thousand it takes minutes.
MOST_LOOKED_AT, LONGEST_LOOKED_FOR = 1_000, 100


def _nearest(name: str, known: list[str]) -> str | None:
    """Return the name that was perhaps meant, whatever its case."""
    if len(name) > LONGEST_LOOKED_FOR:
        return None
    known = known[:MOST_LOOKED_AT]
    folded = {other.casefold(): other for other in known}
    near = difflib.get_close_matches(name, known, n=1) or difflib.get_close_matches(name.casefold(), folded, n=1)
    return folded.get(near[0], near[0]) if near else None


class NameTaken(ParetoscoutError, ValueError):
    """A study of that name is there already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"a study named {name!r} is there already: load it with Study.load, or choose another name")


class Conflict(ParetoscoutError, ValueError):
    """A trial was told before, with other values; the first ones stay."""


class NotAllowed(ParetoscoutError, PermissionError):
    """Who asks for it may not do it."""


class Stopped(ParetoscoutError):
    """Work that was stopped before its end, by a server: the caller left, or it used up its CPU time."""


class NotSupported(ParetoscoutError):
    """The algorithm cannot do what was asked of it."""


class NothingToAsk(NotSupported):
    """All that is left to measure is being measured."""


class MissingData(ParetoscoutError, LookupError):
    """A data set that is not on this machine; the message says how to get it."""


class StorageUnavailable(ParetoscoutError, OSError):
    """A database that cannot be reached, belongs to something else, or has another version."""


class EngineUnavailable(ParetoscoutError, OSError):
    """A cluster that cannot be reached, or whose workers die or have other code."""


class UnreadableFile(ParetoscoutError, ValueError):
    """A file that this version cannot read."""


class MissingExtra(ParetoscoutError, ImportError):
    """A feature whose packages are not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs packages that are not installed. Install them with: pip install 'paretoscout[{extra}]'"
        )
