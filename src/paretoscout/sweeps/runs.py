"""Cells that run an algorithm on a problem, and their rows."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from ..algorithms.contract import Algorithm, Settings
from ..algorithms.registry import get
from ..kernels.uncompiled import PACKAGE
from ..problem import Problem
from ..simulation.replicates import DEFAULT_MAX_SAMPLES, Outcome, Simulation, changed, label_of
from ..simulation.results import Result
from ..statement import Eps
from .cells import Cell, Play, Report

#: What may be kept of a replicate besides its numbers: the returned set, samples of each arm, regret over time.
KEPT = ("front", "pulls", "curve")
#: How a replicate ended: with an answer, at its limit of samples, out of time, or where more samples are of no use.
ANSWER, LIMIT, TIME, STUCK = "answer", "limit", "time", "stuck"


@dataclass(frozen=True, eq=False)
class RunCell(Cell):
    """An algorithm on a problem: replicate number n is number n of `simulate` with the same settings and seed."""

    problem: Problem
    algorithm: str
    settings: Settings
    eps: Eps | None = None
    delta: float = 0.05
    goal: str | int = "front"
    budget: int | None = None
    max_samples: int = DEFAULT_MAX_SAMPLES
    seed: int = 0
    keep: tuple[str, ...] = ()
    label: str = ""  # what to call the algorithm; empty: by its name and settings
    more: dict[str, Any] = field(default_factory=dict)  # further columns that say what it is

    OUTCOME: ClassVar[dict[str, str]] = {
        "samples": "whole",
        "regret": "number",
        "cost": "number",
        "success": "truth",
        "stopped": "truth",
        "ended": "text",
        "front": "texts",
        "pulls": "wholes",
        "curve": "numbers",
    }

    @property
    def record(self) -> Algorithm:
        """The algorithm."""
        return get(self.algorithm).under(self.settings)

    @property
    def columns(self) -> dict[str, Any]:
        """The settings, as they stand in every row."""
        return {
            "problem": self.problem.name,
            "algorithm": self.algorithm,
            "label": self.label or label_of(self.record, self.settings),
            "settings": json.dumps(changed(self.record, self.settings), default=repr),
            "eps": self.eps if self.eps is None or isinstance(self.eps, (int, float)) else json.dumps(self.eps),
            "delta": self.delta,
            "goal": str(self.goal),
            "budget": self.budget,
            "max_samples": self.max_samples,
            "seed": self.seed,
            **self.more,
        }

    @property
    def kept(self) -> tuple[str, ...]:
        """Which of the columns that are lists its rows have."""
        return self.keep

    @property
    def content(self) -> Any:
        """All that its rows depend on: not what it is called."""
        unread = ("label", "more", "keep")
        content = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in unread}
        record = get(self.algorithm)
        if record.init.__module__.partition(".")[0] != PACKAGE:
            content["record"] = record.init, record.kernels
        return content

    def simulation(self) -> Simulation:
        """Return what its replicates share."""
        return Simulation(
            self.record,
            self.settings,
            self.problem,
            self.eps,
            self.delta,
            self.seed,
            self.max_samples,
            self.budget,
            self.goal,
        )

    def start(self) -> Play:
        """Make the simulation and compile what it needs."""
        run = self.simulation()
        run.compile()
        arms = np.array(self.problem.arms, dtype=object)

        def play(number: int, report: Report) -> dict[str, Any] | None:
            began, taken = time.thread_time(), [0]

            def counted(rounds: int) -> bool:
                taken[0] += rounds
                return report(rounds)

            outcome = run.replicate(number, counted)
            seconds = time.thread_time() - began
            if outcome is None:
                return {"samples": taken[0], "success": False, "stopped": False, "ended": TIME, "seconds": seconds}
            ended = ANSWER if outcome.stopped else LIMIT if outcome.samples >= run.cap else STUCK
            row: dict[str, Any] = {
                "samples": outcome.samples,
                "regret": outcome.regret,
                "cost": float(outcome.pulls @ run.setup.cost),
                "success": outcome.stopped and bool(run.right(outcome.returned[None])[0]),
                "stopped": outcome.stopped,
                "ended": ended,
                "seconds": seconds,
            }
            kept = {
                "front": lambda: arms[outcome.returned].tolist(),
                "pulls": outcome.pulls.tolist,
                "curve": outcome.curve.tolist,
            }
            return row | {name: kept[name]() for name in self.keep}

        return play

    def result(self, rows: Sequence[Mapping[str, Any]], asked: int) -> Result:
        """Return rows of this cell, which kept everything, as a `Result`; those that ran out of time are left out."""
        run = self.simulation()
        places = {arm: place for place, arm in enumerate(self.problem.arms)}
        finished = []
        for row in rows:
            if row["ended"] != TIME:
                returned = np.zeros(len(places), bool)
                returned[[places[arm] for arm in row["front"]]] = True
                pulls, curve = np.array(row["pulls"], np.int64), np.array(row["curve"])
                finished.append(
                    Outcome(row["replicate"], row["samples"], row["regret"], row["stopped"], returned, pulls, curve)
                )
        return run.result(finished, asked)
