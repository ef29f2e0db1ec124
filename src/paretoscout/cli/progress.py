"""Lines on how far it is, where nobody sees a table: of `paretoscout bench` and `paretoscout run`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..shown import counted, rough_span, shortened, with_unit
from ..simulation.progress import Due, say

if TYPE_CHECKING:
    from ..verdicts import VerdictTable

#: Between two lines, in seconds.
LONGEST_PAUSE = 10.0
#: So many options have their numbers in a line, and so many letters of their names.
MOST_SHOWN, LONGEST_NAME = 4, 24


class ProgressLines:
    """Says on stderr now and then how far it is; call it after every measurement.

    table: gives what is known. ahead: gives what else there is to say of what is to come.
    """

    def __init__(
        self,
        table: Callable[[], VerdictTable],
        ahead: Callable[[], str] = lambda: "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.table, self.ahead = table, ahead
        self.due = Due(clock, LONGEST_PAUSE)

    def __call__(self, *_: Any) -> None:
        """Say it, if it is time to."""
        if self.due():
            say(progress(self.table(), self.due.clock() - self.due.began, self.ahead()))


def progress(table: VerdictTable, seconds: float, ahead: str = "") -> str:
    """Return one line: how long, how many measurements, how many options are undecided, and what is known of some.

    The undecided ones come first, for they are what it is all about.
    """
    samples = counted(int(table.counts.sum()), table.counted.removesuffix("s"))
    first = table.metrics[0]
    order = sorted(range(len(table.arms)), key=lambda k: table.verdicts[k] != "undecided")
    measured = [k for k in order if table.counts[k]]
    known = [
        f"{shortened(table.arms[k], LONGEST_NAME)} {with_unit(table.value(k, 0), first.unit)}"
        for k in measured[:MOST_SHOWN]
    ]
    more = ["..."] if len(measured) > MOST_SHOWN else []
    parts = [samples, *([ahead] if ahead else []), undecided(table), *known, *more]
    return f"{rough_span(seconds)}: {', '.join(parts)}"


def undecided(table: VerdictTable) -> str:
    """Return how many options have no verdict yet: "3 of 5 undecided"."""
    return f"{table.verdicts.count('undecided'):,} of {len(table.arms):,} undecided"
