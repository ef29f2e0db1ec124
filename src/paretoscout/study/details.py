"""What a page shows of a study besides its standing, all from one moment."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..errors import UnknownName
from ..statement import Metric
from ..verdicts import VerdictTable
from .blocks import OnBlocks, on_blocks
from .explanation import Explanation, explanation
from .forecast import Remaining, remaining
from .replica import Replica
from .spec import Guard
from .standing import Standing


@dataclass(frozen=True)
class Limit:
    """What is known of a limit that an option must keep, in the unit of its column."""

    guard: Guard
    value: float | None  # the mean; None: not measured
    low: float | None  # None: no limit is known
    high: float | None
    kept: bool | None  # None: it is not known yet


@dataclass(frozen=True)
class Measured:
    """What was measured of an option, whether it is there or was withdrawn."""

    option: str
    n: int
    means: tuple[float | None, ...]  # one for each column, geometric where ratios are compared
    limits: tuple[Limit, ...]  # one for each guard


@dataclass(frozen=True, eq=False)
class Details:
    """A standing with all that a page shows beside it. It is a copy: to look at it makes nobody wait."""

    standing: Standing
    lease: float  # seconds until a trial is asked again
    stuck: bool  # something is undecided, and more measurements are of no use
    _replica: Replica = field(repr=False)

    @property
    def columns(self) -> tuple[Metric, ...]:
        """What is measured: the metrics, then what only guards look at."""
        return self._replica.spec.measured()

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The limits that options must keep."""
        return self._replica.spec.guards

    def explain(self, option: str) -> Explanation:
        """Say why an option has its verdict, as `Study.explain`."""
        if option not in self._replica.index:
            raise UnknownName("arm", option, self._replica.arms)
        return explanation(self._replica, self.standing, option)

    def with_larger_eps(self) -> VerdictTable | None:
        """Return the verdicts with a larger eps, as `Study.with_larger_eps`."""
        return self._replica.with_larger_eps()

    def for_population(self) -> VerdictTable | None:
        """Return the verdicts for the population, as `Study.for_population`."""
        return self._replica.for_population()

    def remaining(self, replicates: int = 20, seconds: float = 1.0) -> Remaining:
        """Estimate how many more samples it takes, as `Study.remaining`."""
        return remaining(self._replica, replicates, seconds)

    def on_blocks(self, option: str, rival: str) -> OnBlocks | None:
        """Return two options on the blocks of both; None: the study has no blocks."""
        return None if self._replica.blocks is None else on_blocks(self._replica, option, rival)

    def measured(self, option: str) -> Measured:
        """Return what was measured of an option that is there, or was."""
        replica = self._replica
        arm, stated = replica.index[option], replica.spec.measured()
        means = tuple(
            float(metric.natural(mean)) if n else None
            for metric, n, mean in zip(
                stated, replica.tally.n[arm].tolist(), replica.tally.mean[arm].tolist(), strict=True
            )
        )
        limits = tuple(self._limit(arm, guard) for guard in replica.spec.guards)
        return Measured(option, int(replica.tally.n[arm].max(initial=0)), means, limits)

    def _limit(self, arm: int, guard: Guard) -> Limit:
        replica = self._replica
        column = replica.columns.index(guard.metric)
        metric = replica.spec.measured()[column]
        if not replica.tally.n[arm, column]:
            return Limit(guard, None, None, None, None)
        low, high = (
            float(metric.natural(end)) if math.isfinite(end) else None for end in replica.guards.bounds(arm, guard)
        )
        mean = float(metric.natural(replica.tally.mean[arm, column]))
        broken, kept = replica.guards.broken_by(arm, guard), replica.guards.kept_by(arm, guard)
        return Limit(guard, mean, low, high, False if broken else True if kept else None)
