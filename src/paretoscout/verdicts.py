"""Verdicts for people: names and the metrics' own units instead of numbers and scaled ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .algorithms.contract import Algorithm
from .kernels.arrays import FloatArray, IntArray
from .kernels.decisions import DOMINATED, FRONT, UNDECIDED
from .kernels.dispatch import Verdicts
from .problem import Metric, Units

WORDS = {UNDECIDED: "undecided", FRONT: "front", DOMINATED: "dominated"}


@dataclass(frozen=True, eq=False)
class VerdictTable:
    """What is proven of each arm: verdict, by or against whom, estimates and interval half-widths."""

    arms: tuple[str, ...]
    metrics: tuple[Metric, ...]
    verdicts: tuple[str, ...]  # "front", "dominated", "undecided"
    rivals: tuple[str | None, ...]  # who dominates the arm, or who comes nearest to that
    estimates: FloatArray  # (K, L) in the metrics' own units
    radii: FloatArray  # (K, L) infinite where nothing is known
    counts: IntArray  # (K,)
    guarantee: str  # what holds with which probability, and what it rests on

    @classmethod
    def of(
        cls,
        verdicts: Verdicts,
        *,
        arms: Sequence[str],
        metrics: Sequence[Metric],
        units: Units,
        algorithm: Algorithm,
        delta: float,
        assumed: str,
    ) -> VerdictTable:
        """Translate what an algorithm said."""
        if algorithm.guarantees:
            guarantee = f"all verdicts right with probability {100 * (1 - delta):.10g}% ({assumed})"
        else:
            guarantee = f"none: {algorithm.name} is a heuristic ({assumed})"
        return cls(
            arms=tuple(arms),
            metrics=tuple(metrics),
            verdicts=tuple(WORDS[int(code)] for code in verdicts.status),
            rivals=tuple(None if j < 0 else arms[int(j)] for j in verdicts.rival),
            estimates=units.original(verdicts.estimates),
            radii=verdicts.radii * units.scales,
            counts=verdicts.counts,
            guarantee=guarantee,
        )

    @property
    def front(self) -> tuple[str, ...]:
        """The arms that are proven to be on the front."""
        return tuple(arm for arm, verdict in zip(self.arms, self.verdicts, strict=True) if verdict == "front")

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; a half-width that is infinite becomes None."""
        return {
            "guarantee": self.guarantee,
            "samples": int(self.counts.sum()),
            "options": [
                {
                    "option": arm,
                    "verdict": self.verdicts[k],
                    "rival": None if self.verdicts[k] == "front" else self.rivals[k],
                    "n": int(self.counts[k]),
                    "estimates": {
                        metric.name: {
                            "value": float(self.estimates[k, i]) if math.isfinite(self.radii[k, i]) else None,
                            "radius": float(self.radii[k, i]) if math.isfinite(self.radii[k, i]) else None,
                        }
                        for i, metric in enumerate(self.metrics)
                    },
                }
                for k, arm in enumerate(self.arms)
            ],
        }

    def tally(self) -> str:
        """Return the counts in words: "3 front, 1 dominated; 812 samples"."""
        counted = Counter(self.verdicts)
        parts = [f"{counted[word]} {word}" for word in ("front", "dominated", "undecided") if counted[word]]
        return ", ".join(parts) + f"; {int(self.counts.sum()):,} samples"
