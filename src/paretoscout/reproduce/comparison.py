"""Runs of figure 2: algorithms on SW-LLVM, for several eps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..algorithms import PFIwR, Settings, available, get
from ..algorithms.registry import resolve
from ..engines import cores
from ..problem import Problem
from ..problems import load
from ..simulation.progress import compiling
from ..simulation.replicates import Outcome, Simulation, in_threads
from ..simulation.results import Result, load_result
from .parts import Parts, Steps
from .sizes import Sizes

PROBLEM = "sw-llvm"
DELTA = 0.1
MAX_SAMPLES = 1_000_000  # some eight times what the slowest algorithm takes
LOW_EXPLORATION = 0.01
#: 8 / d for the 16 arms of SW-LLVM: what the argument behind the printed C asks for, arm by arm; see the report.
ARM_BY_ARM_EXPLORATION = 0.5
#: Width scales that are tried: 48 to a decade, from 0.05 to 0.5. Wider ones cost more than they could tell.
SCALES: tuple[float, ...] = tuple(float(f"{10 ** (-k / 48):.3g}") for k in range(62, 13, -1))
FRESH = 1_000_000  # added to the seed where a tuned scale is tried on runs it was not tuned on


@dataclass(frozen=True)
class Contender:
    """An algorithm as it is run here."""

    key: str
    label: str
    settings: Settings
    tuned: bool = False  # the width scale is searched
    drawn: bool = True  # in the figure, or in the tables only

    @property
    def printed(self) -> bool:
        """Whether it is the paper's own algorithm, in whatever form."""
        return self.key.startswith("pfiwr")


def contenders() -> list[Contender]:
    """Return who takes part, in the order of the figure; `ape` where this version has it."""
    both = f"PFIwR, C = {LOW_EXPLORATION:g}, least width (tuned)"
    rows = [
        Contender("pfiwr", "PFIwR as printed", PFIwR()),
        Contender("pfiwr-arms", f"PFIwR, C = {ARM_BY_ARM_EXPLORATION:g}", PFIwR(exploration=ARM_BY_ARM_EXPLORATION)),
        Contender("pfiwr-width", "PFIwR, least width (tuned)", PFIwR(), tuned=True),
        Contender("pfiwr-both", both, PFIwR(exploration=LOW_EXPLORATION), tuned=True),
        Contender("multi-pfi", "MultiPFI as published", get("multi-pfi").settings()),
        Contender("uniform", "all arms alike, tests of MultiPFI", get("uniform").settings(), drawn=False),
    ]
    if "ape" in available():
        rows.append(Contender("ape", "APE", get("ape").settings()))
    return [*rows, Contender("scout", "scout", get("scout").settings())]


@dataclass(frozen=True)
class Comparison:
    """Results by contender and eps; of tuned ones also those on fresh seeds."""

    problem: Problem
    eps: tuple[float, ...]
    contenders: tuple[Contender, ...]
    results: dict[tuple[str, float], Result]
    fresh: dict[tuple[str, float], Result]

    def of(self, key: str) -> list[Result]:
        """Return the results of one contender, by rising eps."""
        return [self.results[key, eps] for eps in self.eps]

    def found(self, key: str, eps: float) -> bool:
        """Whether the contender is what it is called: a tuned form only where a scale was found."""
        tuned = next(contender.tuned for contender in self.contenders if contender.key == key)
        return not tuned or bool(self.results[key, eps].success.all())

    @property
    def paper(self) -> list[Contender]:
        """The paper's algorithm, in its forms."""
        return [contender for contender in self.contenders if contender.printed]


def problem() -> Problem:
    """Return what is to be solved; MissingData where the data set is not on this machine."""
    return load(PROBLEM)


def pieces(sizes: Sizes) -> dict[tuple[str, float, bool], str]:
    """Return the file name of each (contender, eps, on fresh seeds)."""
    names = {}
    for contender in contenders():
        for eps in sizes.eps:
            for fresh in (False, True) if contender.tuned else (False,):
                who = f"{PROBLEM}-{contender.key}{'-fresh' * fresh}"
                names[contender.key, eps, fresh] = f"{who}-eps{eps:g}-n{sizes.runs}-seed{sizes.seed}"
    return names


def measure(sizes: Sizes, parts: Parts, workers: int | None = None) -> Comparison:
    """Run everybody, or read what is there."""
    stated, names, everybody = problem(), pieces(sizes), contenders()
    results: dict[tuple[str, float], Result] = {}
    fresh: dict[tuple[str, float], Result] = {}
    for contender in everybody:
        for eps in sizes.eps:
            title, key = f"fig2: {contender.label}, eps {eps:g}", (contender.key, eps)
            table = Table(stated, eps, sizes.runs, sizes.seed, cores() if workers is None else workers, parts.steps)
            make = partial(table.least_width if contender.tuned else table.all_runs, contender.settings)
            results[key] = parts.get(title, names[*key, False], sizes.runs, load_result, make, Result.save)
            if contender.tuned:
                again = replace(table, seed=sizes.seed + FRESH)
                make = partial(again.all_runs, scaled(contender.settings, results[key].settings["width_scale"]))
                title += ", fresh seeds"
                fresh[key] = parts.get(title, names[*key, True], sizes.runs, load_result, make, Result.save)
    return Comparison(stated, sizes.eps, tuple(everybody), results, fresh)


def scaled(settings: Settings, scale: float) -> Settings:
    """Return the settings with another width scale."""
    return replace(settings, width_scale=scale)  # type: ignore[call-arg]


@dataclass(frozen=True)
class Table:
    """Where algorithms are run: like `simulate`, but counted on our own bar, and able to end at the first failure."""

    problem: Problem
    eps: float
    n: int
    seed: int
    workers: int
    steps: Steps

    def all_runs(self, settings: Settings) -> Result:
        """Do all runs."""
        run = self._run(settings)
        return run.result(self._play(run.replicate), self.n)

    def perfect_runs(self, settings: Settings, suspects: list[int]) -> Result | None:
        """Do all runs if all succeed; else None as soon as one fails.

        suspects: runs to begin with, for others of their kind have failed; the one that fails is added. It speeds
        things up and changes nothing.
        """
        run = self._run(settings)
        order = [*suspects, *(index for index in range(self.n) if index not in suspects)]
        failed: list[int] = []

        def replicate(place: int, report: Callable[[int], bool]) -> Outcome | None:
            if failed:
                return None
            outcome = run.replicate(order[place], lambda rounds: report(rounds) and not failed)
            if outcome is not None and not run.result([outcome], 1).success[0]:
                failed.append(order[place])
            return outcome

        finished = self._play(replicate)
        suspects += [index for index in failed if index not in suspects]
        return None if failed else run.result(finished, self.n)

    def least_width(self, settings: Settings) -> Result:
        """Find by bisection a scale at which every run succeeds, while at the next one below it some run fails.

        Success is not strictly monotone in the scale: a still smaller one that happens to succeed is not excluded.
        Where none succeeds the result is that of the largest scale, failures and all.
        """
        fails, succeeds = -1, len(SCALES)
        best: Result | None = None
        suspects: list[int] = []
        while succeeds - fails > 1:
            middle = (fails + succeeds) // 2
            result = self.perfect_runs(scaled(settings, SCALES[middle]), suspects)
            if result is None:
                fails = middle
            else:
                succeeds, best = middle, result
        return best if best is not None else self.all_runs(scaled(settings, SCALES[-1]))

    def _run(self, settings: Settings) -> Simulation:
        record, settings = resolve(settings)
        run = Simulation(record, settings, self.problem, self.eps, DELTA, self.seed, MAX_SAMPLES)
        with compiling(self.steps.wanted):
            run.compile()
        return run

    def _play(self, replicate: Callable[[int, Callable[[int], bool]], Outcome | None]) -> list[Outcome]:
        self.steps.within = 0
        finished, interrupted = in_threads(replicate, self.n, min(self.workers, self.n), self.steps)
        if interrupted:
            raise KeyboardInterrupt
        return finished


def all_explore_until(settings: PFIwR, problem: Problem) -> float:
    """Return the round up to which PFIwR explores in every round: where t = C d^3 log(2 d t^2 / delta)."""
    d = len(problem.arms)
    t = 1.0
    for _ in range(200):  # t grows to the fixed point
        t = max(settings.exploration * d**3 * float(np.log(2.0 * d * max(t, 2.0) ** 2 / DELTA)), 1.0)
    return t
