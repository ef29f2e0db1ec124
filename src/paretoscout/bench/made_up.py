"""Benches without commands, of numbers whose truth is known: how often are their verdicts wrong?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from ..algorithms import Scout
from ..defaults import DELTA
from ..practical import wrong_ones
from ..study import Below
from ..verdicts import VerdictTable
from .campaign import Campaign, OptionFailed, Plan
from .metrics import source_of
from .options import Option

#: Of each option and metric: mean and standard deviation.
Truth = Mapping[str, Sequence[tuple[float, float]]]


class MadeUp(Campaign):
    """A bench whose numbers are drawn: `draw` gives those of one run of an option by metric, or None if it failed."""

    def __init__(self, plan: Plan, draw: Callable[[str], Sequence[float] | None], *, runs: int | None = None) -> None:
        super().__init__(plan, "memory", runs=runs)
        self.draw = draw
        self._seconds = dict.fromkeys(self.by_name, 0.0)  # rounds are not run in parts

    def _measured(self, options: Sequence[Option]) -> Iterator[dict[str, float | Below] | OptionFailed]:
        for option in options:
            numbers = self.draw(option.name)
            if numbers is None:
                yield OptionFailed("it failed", of_run=True)
            else:
                yield {source.name: number for source, number in zip(self.plan.sources, numbers, strict=True)}


def made_up_bench(
    truth: Truth,
    *,
    eps: Sequence[float],
    delta: float = DELTA,
    seed: int = 0,
    most_runs: int = 5_000,
    drift: float = 0.0,
    runs: int | None = None,
    fails: Mapping[str, float] | None = None,
    success_eps: float = 0.05,
) -> VerdictTable:
    """Run a whole bench of options with normal noise, less is better, and return its last verdicts.

    The same options with the same seed give the same verdicts. For an A/A test, give several options the same numbers.
    drift: by how much, in eps, every run makes the numbers of all that follow it larger.
    runs: run each option so often, whatever is known by then.
    fails: how often the runs of an option fail, by its name. success_eps: of the share of successes.

    >>> made_up_bench({"a": [(1, 0.1)], "b": [(3, 0.1)]}, eps=[0.5]).front
    ('a',)
    """
    metrics = [f"m{column}" for column in range(len(eps))]
    sources = [
        source_of(f"{name}:min=json@{name}", {name: repr(float(size))}) for name, size in zip(metrics, eps, strict=True)
    ]
    options = tuple(Option(name, "true") for name in truth)
    how = {"delta": delta, "algorithm": Scout(noise="unknown"), "seed": seed, "success_eps": success_eps}
    plan = Plan(options, tuple(sources), **how)  # type: ignore[arg-type]
    noise, chance = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    run = itertools.count()

    def draw(name: str) -> list[float] | None:
        if chance.random() < (fails or {}).get(name, 0.0):
            return None
        late = drift * next(run)
        drawn = zip(truth[name], eps, strict=True)
        return [mean + late * size + sd * float(noise.standard_normal()) for (mean, sd), size in drawn]

    bench = MadeUp(plan, draw, runs=runs)
    for _ in bench.steps(lambda progress: progress.runs >= most_runs):
        pass
    return bench.study.verdicts()


def wrong_verdicts(
    table: VerdictTable, truth: Truth, eps: Sequence[float], fails: Mapping[str, float] | None = None
) -> list[str]:
    """Return the options whose verdicts are wrong, see `practical.wrong_ones`."""
    means = {name: [-mean for mean, _ in numbers] for name, numbers in truth.items()}
    tolerated = list(eps)
    if len(table.metrics) > len(eps):  # the share of successes is judged, too
        means = {name: [*known, 1.0 - (fails or {}).get(name, 0.0)] for name, known in means.items()}
        tolerated.append(table.metrics[-1].tolerance)
    truths = {name: np.array(known) for name, known in means.items()}
    return wrong_ones(table.arms, table.verdicts, table.rivals, truths, np.array(tolerated))
