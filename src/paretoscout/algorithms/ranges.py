"""What a setting may be, declared beside its default: checked from there, and shown from there.

>>> from dataclasses import dataclass
>>> from paretoscout.algorithms import Settings
>>> @dataclass(frozen=True)
... class Mine(Settings):
...     rounds: int = setting(100, least=1, whole=True)
...     rule: str = setting("greedy", choices=("greedy", "ratio"))
>>> Mine(rule="best")
Traceback (most recent call last):
paretoscout.errors.InvalidInput: rule of Mine must be 'greedy' or 'ratio', got 'best'
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np

from .. import checks
from ..errors import InvalidInput

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Range:
    """What a setting may be: one of some choices, or a number between limits."""

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    whole: bool = False  # a whole number
    one_per: str = ""  # "metric", "feature": one number, or one for each of these
    choices: tuple[str, ...] = ()
    none: bool = False  # None will do, too

    def check(self, what: str, value: Any) -> Any:
        """Return the value as settings keep it, which is a plain one; or say what it must be."""
        if value is None and self.none:
            return None
        if self.choices:
            return checks.one_of(what, value, self.choices, or_none=self.none)
        if self.whole:
            most = {} if self.most is None else {"most": int(self.most)}
            return checks.whole(what, value, least=int(self.least or 0), **most)
        if self.one_per and np.ndim(value) == 1 and len(value):
            checked: Any = tuple(self._number(what, each) for each in value)
        else:
            checked = self._number(what, value)
        if self.one_per == "metric" and self.above is not None and not np.all(np.asarray(checked) > self.above):
            raise InvalidInput(f"{what} must be above {self.above:g}, got {value!r}")
        if self.most is not None and np.any(np.asarray(checked) > self.most):
            limits = f"at most {self.most:g}" if self.least is None else f"from {self.least:g} to {self.most:g}"
            raise InvalidInput(f"{what} must be {limits}, got {value!r}")
        return checked

    def _number(self, what: str, value: Any) -> float:
        limits = {"least": self.least, "above": self.above, "below": self.below}
        if self.one_per == "metric":  # in the metric's own unit: a distance
            limits |= {"least": self.least or 0.0, "above": None}
        return checks.number(what, value, **{name: limit for name, limit in limits.items() if limit is not None})

    def as_dict(self) -> dict[str, Any]:
        """Return what it allows, for programs."""
        kind = "text" if self.choices else "whole number" if self.whole else "number"
        names = ("least", "above", "most", "below", "one_per", "choices")
        said = {name: getattr(self, name) for name in names if getattr(self, name) not in (None, "", ())}
        return {"kind": kind, **said, "none": self.none}

    def __str__(self) -> str:
        if self.choices:
            return checks.listed(self.choices, or_none=self.none)
        words = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        limits = " and ".join(f"{word} {limit:g}" for word, limit in words.items() if limit is not None)
        each = "whole number" if self.whole else "number"
        number = f"one {each} or one per {self.one_per}," if self.one_per else f"a {each}"
        return f"{number} {limits}{', or None' if self.none else ''}"


def setting(
    default: T,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    whole: bool = False,
    one_per: str = "",
    choices: tuple[str, ...] = (),
) -> T:
    """Return a field of a settings class: its default, and what it may be. None will do where it is the default."""
    if whole and (above is not None or below is not None or one_per):
        raise TypeError("a whole number takes least= and most= only")
    if least is None and above is None and (whole or one_per == "metric"):
        least = 0.0
    allowed = Range(
        least=least,
        above=above,
        most=most,
        below=below,
        whole=whole,
        one_per=one_per,
        choices=choices,
        none=default is None,
    )
    return field(default=default, metadata={"range": allowed})


def settings_of(settings: Any) -> list[tuple[str, Any, Range | None]]:
    """Return name, default and range of all fields of a settings class, those that all algorithms have last."""
    ordered = sorted(fields(settings), key=lambda each: each.kw_only is True)
    return [(each.name, each.default, each.metadata.get("range")) for each in ordered]


def check_settings(settings: Any) -> None:
    """Check all settings by what is declared of them, and store them as plain values."""
    for name, _, allowed in settings_of(settings):
        if allowed is not None:
            checked = allowed.check(f"{name} of {type(settings).__name__}", getattr(settings, name))
            object.__setattr__(settings, name, checked)  # settings are frozen for others


def described(settings: Any) -> list[dict[str, Any]]:
    """Return what there is to know of the fields of a settings class, for programs.

    >>> from paretoscout.algorithms import RAGE
    >>> described(RAGE)[0]
    {'name': 'unit', 'default': 1.0, 'kind': 'number', 'above': 0.0, 'none': False}
    """
    return [
        {"name": name, "default": default} | ({} if allowed is None else allowed.as_dict())
        for name, default, allowed in settings_of(settings)
    ]
