"""What holds with which probability, up to which differences, on which assumptions: a value that prints as words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from .algorithms.contract import KINDS, Algorithm, Kernels, Settings, Setup
from .kernels.dispatch import Basis
from .shown import with_unit
from .start import told_sigma
from .statement import DRAWN, Blocks, Metric, Statement
from .tradeoffs import judged_by

#: What is promised, by what was asked for.
PROMISES = {
    "front": "all verdicts right",
    "practical": "all verdicts right",
    "cover": "every optimal option returned, or one as good,",
}

NORMAL, NORMAL_ROWS = "normal noise, variance unknown", "noise assumed to be normal, variance unknown"
LINEAR = "means linear in the contexts"
BOUNDED = "outcomes within their bounds, noise of any kind"
OF_BOTH = "outcomes of {} are 0 or 1"


@dataclass(frozen=True)
class Guarantee:
    """What is promised of a set of verdicts.

    >>> print(Guarantee("front", 0.95, (("cost", "2%"),), ("sigma given",)))
    all verdicts right with probability 95%, up to 2% of cost (sigma given)
    """

    goal: str | int  # what was asked for
    probability: float | None  # that all of it holds; None: nothing is promised
    tolerated: tuple[tuple[str, str], ...]  # differences that do not matter: of which metric, how much
    assumptions: tuple[str, ...]  # what it rests on, one by one
    why_not: str = ""  # why nothing is promised

    @property
    def holds(self) -> bool:
        """Whether anything is promised."""
        return self.probability is not None

    def __str__(self) -> str:
        assumed = "; ".join(self.assumptions)
        if self.probability is None:
            return f"none: {self.why_not} ({assumed})"
        amounts = {amount for _, amount in self.tolerated}
        if len(amounts) == 1 and len(self.tolerated) > 1:
            upto = f", up to {amounts.pop()} of every metric"
        else:
            parts = " and ".join(f"{amount} of {metric}" for metric, amount in self.tolerated)
            upto = f", up to {parts}" if parts else ""
        if self.probability == 1.0:
            return f"{self.promise} for certain{upto} ({assumed})"
        return f"{self.promise} with probability {100 * self.probability:.10g}%{upto} ({assumed})"

    @property
    def promise(self) -> str:
        """What is promised, in words."""
        return PROMISES.get(str(self.goal), f"{self.goal} options of the front found")

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "text": str(self),
            "holds": self.holds,
            "goal": self.goal,
            "probability": self.probability,
            "tolerated": dict(self.tolerated),
            "assumptions": list(self.assumptions),
            "why_not": self.why_not or None,
        }


def guarantee_of(asked: Statement, algorithm: Algorithm, settings: Settings, assumed: tuple[str, ...]) -> Guarantee:
    """Return what is promised to whoever asked: nothing, if the settings of the algorithm void it."""
    record = algorithm.under(settings)
    tolerated = tuple(
        (metric.name, difference(metric.tolerance, metric)) for metric in asked.metrics if any_tolerance(asked)
    )
    if record.guarantees:
        return Guarantee(asked.goal, 1.0 - asked.delta, tolerated, assumed)
    return Guarantee(asked.goal, None, tolerated, assumed, KINDS[record.kind].format(name=record.name))


def for_certain(guarantee: Guarantee, asked: Statement, notes: Sequence[str] = ()) -> Guarantee:
    """Return what is promised where every option was measured on the whole list that the answer is about."""
    n = 0 if asked.blocks is None else len(asked.blocks.names)
    measured = f"on exactly these {n} blocks, as they were measured once, so no probability is involved"
    relative = [metric.name for metric in asked.metrics if metric.relative]
    means = [f"geometric means of {', '.join(relative)} over the blocks"] if relative else []
    return replace(guarantee, probability=1.0, assumptions=(*judged(asked), measured, *means, *notes))


def judged(asked: Statement) -> list[str]:
    """What options are judged by, where that is not the metrics."""
    if asked.tradeoffs is None:
        return []
    stated = f"{', '.join(asked.tradeoffs)}: " if isinstance(asked.tradeoffs, tuple) else ""
    return [stated + judged_by([metric.name for metric in asked.judged_by])]


def any_tolerance(asked: Statement) -> bool:
    """Whether any difference does not matter."""
    return any(metric.tolerance > 0 for metric in asked.metrics)


def unexplained_by_contexts(asked: Statement, basis: Basis | None) -> tuple[str, ...]:
    """Return what options are judged by whose means are not linear in the contexts, as a test of that found."""
    if basis is None or basis.failed is None:
        return ()
    return tuple(metric.name for metric, failed in zip(asked.judged_by, basis.failed.tolist(), strict=True) if failed)


def assumptions(
    asked: Statement, kernels: Kernels, settings: Settings, setup: Setup, basis: Basis | None = None
) -> tuple[str, ...]:
    """Return what is assumed of the noise and the means, one by one, for people to read."""
    unexplained = unexplained_by_contexts(asked, basis)
    if unexplained:
        alone = f"each option by its own measurements: {', '.join(unexplained)} not linear in the contexts"
        return (*judged(asked), *_noise(asked, settings), alone)
    model = kernels.assumes.format(**{name: shown(value) for name, value in asdict(settings).items()})
    taken = "noise the same for all options" if kernels.pools_noise and setup.sigma is None else ""
    if setup.sigma is not None and not kernels.each_sigma and (np.ptp(setup.sigma, axis=0) > 0).any():
        taken = "the largest sigma taken for all options"
    linear = LINEAR if kernels.takes_linear and _uses_contexts(settings, setup) else ""
    return tuple(filter(None, [*judged(asked), *_noise(asked, settings), taken, linear, model]))


def _uses_contexts(settings: Settings, setup: Setup) -> bool:
    """Whether an algorithm that can take means as linear in the contexts does so."""
    chosen = getattr(settings, "model", None) or ("linear" if setup.explained else "tabular")
    return setup.contexts is not None and setup.link == "identity" and chosen == "linear"


def _differences(asked: Statement, blocks: Blocks) -> list[str]:
    """What is assumed where options are compared on the same blocks; metrics are named where they differ in that."""
    kinds: dict[str, list[str]] = {}
    block = "round" if blocks.rounds else "block"
    for metric in asked.judged_by:
        kind = f"differences between options over the {block}s as from a normal law"
        if metric.ratio is not None:
            kind = f"no option more than {metric.ratio:g} times another on a {block}"
        elif metric.bounds is not None:
            kind = OF_BOTH if metric.pass_fail else "outcomes within their bounds"
        kinds.setdefault(kind, []).append(metric.name)
    said = [_said(kind, names) for kind, names in kinds.items()]
    relative = [metric.name for metric in asked.metrics if metric.relative]
    if relative:
        said.append(f"geometric means of {', '.join(relative)} over the {block}s")
    if blocks.rounds:
        return ["options compared within rounds, which are independent of each other", *said]
    if blocks.listed:
        listed = f"on exactly these {len(blocks.names)} blocks of the list, as they are measured once"
        return [f"{listed}, in an order drawn at random", *said]
    if blocks.repeats > 1:
        n = f"{len(blocks.names)} answers of each option"
        return [f"about these blocks, each of which was measured at least {blocks.repeats} times: {n}", *said]
    return ["about the population of the blocks, drawn from it at random", *said]


def _noise(asked: Statement, settings: Settings) -> list[str]:
    """What is assumed of the noise; metrics are named where they differ in that."""
    if asked.blocks is not None:
        return _differences(asked, asked.blocks)
    sigma = told_sigma(asked, settings)
    unknown = None if sigma is None else np.isnan(asked.units.spread(sigma))
    kinds: dict[str, list[str]] = {}
    for position, metric in enumerate(asked.judged_by):
        kind = asked.noise
        if sigma is None or unknown is None or unknown[..., position].any():
            bounded = OF_BOTH if metric.pass_fail else BOUNDED
            kind = bounded if metric.bounds is not None else NORMAL_ROWS if asked.drawn else NORMAL
        elif settings.sigma is not None:
            kind = f"sigma set to {', '.join(f'{value:g}' for value in dict.fromkeys(sigma.tolist()))}"
        kinds.setdefault(kind, []).append(metric.name)
    named = len(kinds) > 1 or OF_BOTH in kinds
    said = [_said(kind, names) for kind, names in kinds.items()] if named else list(kinds)
    relative = [metric.name for metric in asked.metrics if metric.relative]
    if relative:
        said.append(f"geometric means of {', '.join(relative)}, noise that of logarithms")
    return [*said, DRAWN] if asked.drawn else said


def _said(kind: str, names: Sequence[str]) -> str:
    """Return an assumption with the names of the metrics that it is about."""
    return kind.format(" and ".join(names)) if kind == OF_BOTH else f"{', '.join(names)}: {kind}"


def shown(value: Any) -> str:
    """Return a setting as people write it."""
    if isinstance(value, tuple):
        return ",".join(map(shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def amount(value: float, metric: Metric) -> str:
    """Return a number with its unit."""
    return with_unit(f"{value:.3g}", metric.unit)


def difference(value: float, metric: Metric) -> str:
    """Return a difference, on the scale on which the metric is compared, with its unit or as a share.

    >>> difference(0.5, Metric("cost", unit="$")), difference(math.log(1.02), Metric("time", scale="log"))
    ('0.5 $', '2%')
    """
    return f"{100 * math.expm1(value):.3g}%" if metric.relative else amount(value, metric)
