"""Runs of figure 2: algorithms on SW-LLVM, for several eps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..algorithms import PFIwR, Settings, available, get
from ..algorithms.registry import resolve
from ..engines import Engine
from ..problem import Problem
from ..problems import load
from ..simulation.results import Result
from ..sweeps.cells import Plan
from ..sweeps.runs import KEPT, RunCell
from ..sweeps.schedule import finish
from ..sweeps.store import Store
from .sizes import Sizes

PROBLEM = "sw-llvm"
DELTA = 0.1
MAX_SAMPLES = 1_000_000  # some eight times what the slowest algorithm takes
LOW_EXPLORATION = 0.01
#: 8 / d for the 16 arms of SW-LLVM: what the argument behind the printed C asks for, arm by arm; see the report.
ARM_BY_ARM_EXPLORATION = 0.5
#: Width scales that are tried: 48 to a decade, from 0.05 to 0.5. Wider ones cost more than they could tell.
SCALES: tuple[float, ...] = tuple(float(f"{10 ** (-k / 48):.3g}") for k in range(62, 13, -1))
#: After so many runs a scale is given up if one of them failed.
LOOKS = (4, 8, 16, 32, 64, 128, 256, 512)
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


def cell_of(contender: Contender, stated: Problem, eps: float, seed: int) -> RunCell:
    """Return what is played: as `simulate` would."""
    return RunCell(
        stated,
        resolve(contender.settings)[0].name,
        contender.settings,
        eps=eps,
        delta=DELTA,
        max_samples=MAX_SAMPLES,
        seed=seed,
        keep=KEPT,
        label=contender.label,
    )


def scaled(cell: RunCell, scale: float) -> RunCell:
    """Return the same with another width scale."""
    return replace(cell, settings=replace(cell.settings, width_scale=scale))  # type: ignore[call-arg]


def as_they_are(sizes: Sizes) -> dict[tuple[str, float], RunCell]:
    """Return what is played of contenders that are not tuned."""
    stated, everybody = problem(), [who for who in contenders() if not who.tuned]
    return {(who.key, eps): cell_of(who, stated, eps, sizes.seed) for who in everybody for eps in sizes.eps}


@dataclass
class Search:
    """Finds by bisection a scale at which every run succeeds, while at the next one below it some run fails.

    Success is not strictly monotone in the scale: a still smaller one that happens to succeed is not excluded.
    Where none succeeds the largest scale is taken, failures and all.
    """

    cell: RunCell
    runs: int
    fails: int = -1
    succeeds: int = len(SCALES)
    suspects: tuple[int, ...] = ()  # runs that failed before: these come first, which changes nothing but the time

    @property
    def over(self) -> bool:
        """Whether it is found."""
        return self.succeeds - self.fails <= 1

    @property
    def place(self) -> int:
        """Which scale is tried."""
        return (self.fails + self.succeeds) // 2

    @property
    def tried(self) -> RunCell:
        """What is played to try it."""
        return scaled(self.cell, SCALES[self.place])

    @property
    def plan(self) -> Plan:
        """How often: until it is seen that some run fails."""
        looks = tuple(look for look in LOOKS if look < self.runs)
        return Plan(self.runs, looks, lambda rows: bool(_failed(rows)), first=self.suspects)

    def hear(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take in what came of it."""
        failed = [number for number in _failed(rows) if number < self.runs]
        if failed:
            self.fails = self.place
            self.suspects += tuple(number for number in failed if number not in self.suspects)
        else:
            self.succeeds = self.place

    @property
    def found(self) -> RunCell:
        """What is played in the end."""
        return scaled(self.cell, SCALES[min(self.succeeds, len(SCALES) - 1)])


def _failed(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    return [row["replicate"] for row in rows if not row["success"]]


def measure(sizes: Sizes, store: Store, engine: Engine, progress: bool | None = False) -> Comparison:
    """Run everybody, but for what is there; tuned forms are searched for first."""
    stated, plain = problem(), as_they_are(sizes)
    tuned = [(who, eps) for who in contenders() if who.tuned for eps in sizes.eps]
    searches = {(who.key, eps): Search(cell_of(who, stated, eps, sizes.seed), sizes.runs) for who, eps in tuned}
    with store.writing(list(plain.values())):
        step = 0
        while open_ones := [search for search in searches.values() if not search.over]:
            step += 1
            asked = [(search.tried, search.plan) for search in open_ones]
            list(finish(asked, store, engine, f"figure 2: least width, step {step}", progress))
            for search, (cell, _) in zip(open_ones, asked, strict=True):
                search.hear(store.rows(cell))
        main = {**plain, **{key: search.found for key, search in searches.items()}}
        fresh = {key: replace(search.found, seed=sizes.seed + FRESH) for key, search in searches.items()}
        last = [(cell, Plan(sizes.runs)) for cell in (*main.values(), *fresh.values())]
        list(finish(last, store, engine, "figure 2", progress))

    def results(cells: Mapping[tuple[str, float], RunCell]) -> dict[tuple[str, float], Result]:
        return {key: cell.result(store.rows(cell)[: sizes.runs], sizes.runs) for key, cell in cells.items()}

    return Comparison(stated, sizes.eps, tuple(contenders()), results(main), results(fresh))


def all_explore_until(settings: PFIwR, problem: Problem) -> float:
    """Return the round up to which PFIwR explores in every round: where t = C d^3 log(2 d t^2 / delta)."""
    d = len(problem.arms)
    t = 1.0
    for _ in range(200):  # t grows to the fixed point
        t = max(settings.exploration * d**3 * float(np.log(2.0 * d * max(t, 2.0) ** 2 / DELTA)), 1.0)
    return t
