"""What does a machine that drifts do to the verdicts of a bench? The figures of docs/bench.md.

Made-up times whose truth is known, of four options (100, 100.1, 104 and 106 ms) with noise of 6%, at eps 5% and delta 5%, on
machines that drift. Three ways: in rounds and compared within these, as `paretoscout bench` does; in rounds, but judged as
samples that are independent of each other, as it did before; and the same one by one in the order that the algorithm asks for.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np

from paretoscout.algorithms import Scout
from paretoscout.bench import Campaign, Plan, Progress, options_of, source_of
from paretoscout.bench.made_up import MadeUp
from paretoscout.study import Trial

MEANS = {"a": math.log(100.0), "b": math.log(100.1), "c": math.log(104.0), "d": math.log(106.0)}
NOISE, MOST_RUNS = 0.06, 4_000


class Independent(Plan):
    """A bench whose runs are judged as samples that are independent of each other."""

    in_rounds = False


OPTIONS, SOURCES = tuple(options_of(["true {x}"], {"x": list(MEANS)})), (source_of("time", {"time": "5%"}),)
PAIRED = Plan(OPTIONS, SOURCES, delta=0.05, algorithm=Scout(noise="unknown"))
APART = Independent(OPTIONS, SOURCES, delta=0.05, algorithm=Scout(noise="unknown"))


def steady(level: float, rng: np.random.Generator) -> float:
    """No drift."""
    return 0.0


def faster(level: float, rng: np.random.Generator) -> float:
    """Everything takes 15% less time after 600 runs."""
    return level - 0.15 / 600


def wandering(level: float, rng: np.random.Generator) -> float:
    """A random walk."""
    return level + 0.006 * float(rng.standard_normal())


def coming_and_going(level: float, rng: np.random.Generator) -> float:
    """Slow and fast spells of about a hundred runs."""
    return 0.99 * level + 0.012 * float(rng.standard_normal())


class Drifting(MadeUp):
    """A bench on a made-up machine."""

    how, plan_made = "in rounds", PAIRED

    def __init__(self, drift: Callable[[float, np.random.Generator], float], seed: int) -> None:
        level, noise = [0.0], np.random.default_rng(seed)

        def draw(name: str) -> list[float]:
            level[0] = drift(level[0], noise)
            return [math.exp(MEANS[name[-1]] + level[0] + NOISE * float(noise.standard_normal()))]

        super().__init__(self.plan_made, draw)


class NotPaired(Drifting):
    """In rounds, judged as independent samples."""

    how, plan_made = "not paired", APART


class OneByOne(Drifting):
    """In the order that the algorithm asks for."""

    how, plan_made = "as asked", APART

    def _ask(self, budget: Callable[[Progress], bool]) -> list[Trial]:
        return [] if self.study.done else [self._asked(None)]


def is_wrong(campaign: Campaign) -> bool:
    """Whether a verdict is wrong."""
    eps, table = SOURCES[0].metric.tolerance, campaign.study.verdicts()
    for arm, verdict, rival in zip(table.arms, table.verdicts, table.rivals, strict=True):
        mean = MEANS[arm[-1]]
        if verdict == "front" and mean - min(MEANS.values()) > eps:
            return True
        if verdict == "dominated" and rival is not None and mean <= MEANS[rival[-1]]:
            return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--ways", type=int, default=3, help="the first so many of the three")
    given = parser.parse_args()
    for drift in (steady, faster, wandering, coming_and_going):
        for kind in (Drifting, NotPaired, OneByOne)[: given.ways]:
            wrong, runs = 0, []
            for seed in range(given.replicates):
                campaign = kind(drift, seed)
                for _ in campaign.steps(lambda progress: progress.runs >= MOST_RUNS):
                    pass
                wrong += is_wrong(campaign)
                runs.append(campaign.progress.runs)
            print(
                f"{drift.__name__:<18} {kind.how:<10} {wrong:3d} of {given.replicates} wrong, median {np.median(runs):.0f} runs",
                flush=True,
            )


if __name__ == "__main__":
    main()
