"""Verdicts for people: names and the metrics' own units instead of numbers and scaled ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from .algorithms.contract import KINDS, Algorithm, Kernels, Settings, Setup
from .diagnostics import Concern, contradicted
from .kernels.arrays import FloatArray, IntArray
from .kernels.decisions import DOMINATED, FRONT, UNDECIDED
from .kernels.dispatch import Basis, Verdicts
from .problem import Metric, Units
from .shown import with_unit

WORDS = {UNDECIDED: "undecided", FRONT: "front", DOMINATED: "dominated"}


MODEL_REJECTED = (
    "The contexts do not explain the means within the stated misfit: verdicts that rested on them were reopened, and "
    "what is shown was measured."
)


def amount(value: float, metric: Metric) -> str:
    """Return a number with its unit."""
    return with_unit(f"{value:.3g}", metric.unit)


def with_radius(value: float, radius: float) -> str:
    """Show an estimate to the digits its radius supports.

    >>> with_radius(0.86123, 0.0114)
    '0.861 ±0.011'
    >>> with_radius(1234.5, 60.0)
    '1234 ±60'
    >>> with_radius(111.3, 3e-14)
    '111.3'
    >>> with_radius(0.0, float("inf"))
    '–'
    """
    if not math.isfinite(radius):
        return "–"
    if radius <= 1e-9 * abs(value):  # there was no noise; what is left is rounding
        return f"{value + 0.0:.6g}"  # not -0
    digits = max(0, 1 - math.floor(math.log10(radius)))
    return f"{value:.{digits}f} ±{radius:.{digits}f}"


#: What is promised, by what was asked for.
PROMISES = {"front": "all verdicts right", "cover": "every optimal option returned, or one as good,"}


def assumptions(kernels: Kernels, settings: Settings, setup: Setup) -> str:
    """Return what is assumed of the noise and the means, for people to read."""
    model = kernels.assumes.format(**{name: shown(value) for name, value in asdict(settings).items()})
    taken = "noise the same for all options" if kernels.pools_noise and setup.sigma is None else ""
    if setup.sigma is not None and not kernels.each_sigma and (np.ptp(setup.sigma, axis=0) > 0).any():
        taken = "the largest sigma taken for all options"
    return "; ".join(filter(None, [setup.noise, taken, model]))


def shown(value: Any) -> str:
    """Return a setting as people write it."""
    if isinstance(value, tuple):
        return ",".join(map(shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def guarantee_of(algorithm: Algorithm, setup: Setup, metrics: Sequence[Metric], units: Units, assumed: str) -> str:
    """Return in plain words what holds with which probability, up to which differences, and what that rests on."""
    if not algorithm.guarantees:
        return f"none: {KINDS[algorithm.kind].format(name=algorithm.name)} ({assumed})"
    eps = [amount(e, metric) for e, metric in zip(units.eps * units.scales, metrics, strict=True)]
    if len(set(eps)) == 1 and len(eps) > 1:
        tolerated = f"{eps[0]} of every metric"
    else:
        tolerated = " and ".join(f"{e} of {metric.name}" for e, metric in zip(eps, metrics, strict=True))
    upto = f", up to {tolerated}" if units.eps.any() else ""
    promise = PROMISES.get(str(setup.goal), f"{setup.goal} options of the front found")
    return f"{promise} with probability {100 * (1 - setup.delta):.10g}%{upto} ({assumed})"


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
    survives: FloatArray | None = (
        None  # (K, L) misfit of the model a verdict survives; infinite: measured; NaN: none yet
    )
    remark: str = ""  # what else there is to know
    counted: str = "samples"  # what is counted, for people to read
    concerns: tuple[Concern, ...] = ()  # what was seen that the guarantee does not allow for
    censored: Any = None  # (K, L) whether a value is too small to be measured: below what is shown

    @classmethod
    def of(
        cls,
        verdicts: Verdicts,
        *,
        arms: Sequence[str],
        metrics: Sequence[Metric],
        units: Units,
        algorithm: Algorithm,
        setup: Setup,
        assumed: str,
        basis: Basis | None = None,
    ) -> VerdictTable:
        """Translate what an algorithm said."""
        return cls(
            arms=tuple(arms),
            metrics=tuple(metrics),
            verdicts=tuple(WORDS[int(code)] for code in verdicts.status),
            rivals=tuple(None if j < 0 else arms[int(j)] for j in verdicts.rival),
            estimates=units.original(verdicts.estimates),
            radii=verdicts.radii * units.scales,
            counts=verdicts.counts,
            guarantee=guarantee_of(algorithm, setup, metrics, units, assumed),
            survives=None if basis is None else basis.survives[:, None] * units.scales,
            remark=MODEL_REJECTED if basis is not None and basis.model_rejected else "",
        )

    def only(self, rows: Sequence[int]) -> VerdictTable:
        """Return the table of some of its arms."""
        chosen = list(rows)
        return replace(
            self,
            arms=tuple(self.arms[k] for k in chosen),
            verdicts=tuple(self.verdicts[k] for k in chosen),
            rivals=tuple(self.rivals[k] for k in chosen),
            estimates=self.estimates[chosen],
            radii=self.radii[chosen],
            counts=self.counts[chosen],
            survives=None if self.survives is None else self.survives[chosen],
        )

    @property
    def front(self) -> tuple[str, ...]:
        """The arms that are proven to be on the front."""
        return tuple(arm for arm, verdict in zip(self.arms, self.verdicts, strict=True) if verdict == "front")

    @property
    def contradicted(self) -> tuple[str, ...]:
        """The arms whose verdicts were right to give, but are contradicted by the estimates as they are now."""
        rivals = [None if rival not in self.arms else self.arms.index(rival) for rival in self.rivals]
        known = np.where(np.isfinite(self.radii), self.estimates, np.nan)
        signs = [metric.sign for metric in self.metrics]
        eps = [metric.eps or 0.0 for metric in self.metrics]
        return tuple(self.arms[k] for k in contradicted(self.verdicts, rivals, known, eps, signs))

    @property
    def warnings(self) -> list[str]:
        """What to know before acting on the verdicts, for people to read."""
        said = [concern.text for concern in self.concerns]
        said += [
            f"{arm}: the estimates as they are now contradict its verdict, which rests on earlier ones."
            for arm in self.contradicted
        ]
        return said

    def value(self, k: int, metric: int) -> str:
        """Return what is known of a metric of an arm, for people to read."""
        estimate, radius = float(self.estimates[k, metric]), float(self.radii[k, metric])
        if self.censored is None or not self.censored[k, metric]:
            return with_radius(estimate, radius)
        return f"< {estimate + (radius if math.isfinite(radius) else 0.0):.3g}"

    def rests_on(self, k: int) -> str:
        """Return what the verdict on an arm rests on: "measured", or the model and the misfit it survives."""
        if self.survives is None or math.isnan(self.survives[k, 0]):
            return ""
        if math.isinf(self.survives[k, 0]):
            return "measured"
        parts = (amount(misfit, metric) for misfit, metric in zip(self.survives[k].tolist(), self.metrics, strict=True))
        return f"model, misfit up to {' / '.join(dict.fromkeys(parts))}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; a half-width that is infinite becomes None."""
        return {
            "guarantee": self.guarantee,
            **({"remark": self.remark} if self.remark else {}),
            "concerns": [concern.as_dict() for concern in self.concerns],
            "contradicted": list(self.contradicted),
            "samples": int(self.counts.sum()),
            "options": [
                {
                    "option": arm,
                    "verdict": self.verdicts[k],
                    "rival": None if self.verdicts[k] == "front" else self.rivals[k],
                    "n": int(self.counts[k]),
                    **({} if self.survives is None else {"rests_on": self.rests_on(k)}),
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
        return ", ".join(parts) + f"; {int(self.counts.sum()):,} {self.counted}"
