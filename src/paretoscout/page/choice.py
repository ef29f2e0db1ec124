"""What somebody chose to see on the page of a study: query parameters, read and written.

All of it comes from outside: what makes no sense falls back to what is usual, and is never an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

#: Ways to see the trade-off: two metrics, all pairs of metrics, all metrics side by side.
VIEWS = ("plane", "pairs", "parallel")
#: The width of the chart unless told, in pixels, and what it can be.
WIDTH, NARROWEST, WIDEST = 780, 280, 2400
#: Columns of the table that are no metrics.
SORTS = ("verdict", "option", "runs")


@dataclass(frozen=True)
class Choice:
    """What is shown. None: what is usual."""

    x: str | None = None  # the metric across
    y: str | None = None  # the metric that goes up
    option: str | None = None  # whose evidence is shown
    rival: str | None = None  # whom it is compared with
    sort: str | None = None  # a metric, or one of SORTS; with a minus before it, the other way round
    view: str = "plane"
    wall: bool = False  # for a screen on a wall: nothing to operate
    all: bool = False  # every option in the table, however many
    width: int = WIDTH

    @classmethod
    def of(cls, query: Mapping[str, Any]) -> Choice:
        """Read query parameters; whether names are known is looked at when something is shown.

        >>> Choice.of({"x": "cost", "view": "nonsense", "w": "12"})
        Choice(x='cost', y=None, option=None, rival=None, sort=None, view='plane', wall=False, all=False, width=280)
        """

        def text(key: str) -> str | None:
            value = query.get(key)
            return value if isinstance(value, str) and value else None

        view = text("view") or "plane"
        wide = text("w") or ""
        width = int(wide) if wide.isascii() and wide.isdigit() and len(wide) < 6 else WIDTH
        return cls(
            x=text("x"),
            y=text("y"),
            option=text("option"),
            rival=text("rival"),
            sort=text("sort"),
            view=view if view in VIEWS else "plane",
            wall=_is_set(text("wall")),
            all=_is_set(text("all")),
            width=min(max(width, NARROWEST), WIDEST),
        )

    def query(self) -> str:
        """Return it as the query of a link, without what is usual.

        >>> Choice(x="cost", option="a & b").query()
        '?x=cost&option=a+%26+b'
        """
        usual = Choice()
        said: dict[str, Any] = {
            key: getattr(self, key)
            for key in ("x", "y", "option", "rival", "sort", "view")
            if getattr(self, key) != getattr(usual, key)
        }
        said |= {key: "1" for key in ("wall", "all") if getattr(self, key)}
        if self.width != WIDTH:
            said["w"] = self.width
        return "?" + urlencode(said)

    def known(self, metrics: Sequence[str], options: Iterable[str]) -> Choice:
        """Return it without what is not there."""
        there = options if isinstance(options, (set, frozenset, dict)) else set(options)
        x, y = (name if name in metrics else None for name in (self.x, self.y))
        option = self.option if self.option in there else None
        rival = self.rival if self.rival in there and option is not None and self.rival != option else None
        sort = self.sort if self.sort is not None and self.sort.removeprefix("-") in {*SORTS, *metrics} else None
        if sort is None and self.sort in metrics:  # a metric whose name begins with a minus
            sort = self.sort
        view = self.view if len(metrics) > 2 else "plane"
        return replace(self, x=x, y=None if y == x else y, option=option, rival=rival, sort=sort, view=view)

    def but(self, **changes: Any) -> Choice:
        """Return it with something else."""
        return replace(self, **changes)


def _is_set(text: str | None) -> bool:
    return text is not None and text not in ("0", "false", "no")
