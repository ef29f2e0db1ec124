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
    """A bench whose numbers are drawn: `draw` gives those of one run of an option, in the order of the metrics."""

    def __init__(self, plan: Plan, draw: Callable[[str], Sequence[float]], *, runs: int | None = None) -> None:
        super().__init__(plan, "memory", runs=runs)
        self.draw = draw
        self._seconds = dict.fromkeys(self.by_name, 0.0)  # rounds are not run in parts

    def _measured(self, options: Sequence[Option]) -> Iterator[dict[str, float | Below] | OptionFailed]:
        for option in options:
            numbers = self.draw(option.name)
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
) -> VerdictTable:
    """Run a whole bench of options with normal noise, less is better, and return its last verdicts.

    The same options with the same seed give the same verdicts. For an A/A test, give several options the same numbers.
    drift: by how much, in eps, every run makes the numbers of all that follow it larger.
    runs: run each option so often, whatever is known by then.

    >>> made_up_bench({"a": [(1, 0.1)], "b": [(3, 0.1)]}, eps=[0.5]).front
    ('a',)
    """
    metrics = [f"m{column}" for column in range(len(eps))]
    sources = [
        source_of(f"{name}:min=json@{name}", {name: repr(float(size))}) for name, size in zip(metrics, eps, strict=True)
    ]
    options = tuple(Option(name, "true") for name in truth)
    plan = Plan(options, tuple(sources), delta=delta, algorithm=Scout(noise="unknown"), seed=seed)
    noise = np.random.default_rng([seed, 1])
    run = itertools.count()

    def draw(name: str) -> list[float]:
        late = drift * next(run)
        drawn = zip(truth[name], eps, strict=True)
        return [mean + late * size + sd * float(noise.standard_normal()) for (mean, sd), size in drawn]

    bench = MadeUp(plan, draw, runs=runs)
    for _ in bench.steps(lambda progress: progress.runs >= most_runs):
        pass
    return bench.study.verdicts()


def wrong_verdicts(table: VerdictTable, truth: Truth, eps: Sequence[float]) -> list[str]:
    """Return the options whose verdicts are wrong, see `practical.wrong_ones`."""
    means = {name: -np.array([mean for mean, _ in numbers]) for name, numbers in truth.items()}
    return wrong_ones(table.arms, table.verdicts, table.rivals, means, np.array(eps))
