"""Verdicts for people: names and the metrics' own units instead of numbers and scaled ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .diagnostics import Concern, contradicted
from .errors import UnknownName
from .frames import frame_of
from .guarantee import Guarantee, difference, unexplained_by_contexts
from .kernels.arrays import FloatArray, IntArray
from .kernels.decisions import DOMINATED, FRONT, SAME, UNDECIDED
from .kernels.dispatch import Basis, Verdicts
from .kernels.dominance import nearest, undominated
from .notebook import page, picture
from .practical import Judgement, never_varied
from .shown import MARKS, heading
from .statement import Metric, Statement, judged_by
from .tradeoffs import sums

#: Of more arms than this a table shows the first ones, unless told otherwise.
MOST_ROWS = 40
#: Of more arms than this the first ones are named in a warning.
MOST_WARNINGS = 10
WORDS = {UNDECIDED: "undecided", FRONT: "front", DOMINATED: "dominated", SAME: "same"}

#: Stands before a number of which no interval is known yet.
ABOUT = "≈"
#: Of a logarithm: an interval from a value over e^20 to e^20 times that says nothing.
MOST_LOG_WIDTH = 20.0
MODEL_REJECTED = (
    "The contexts do not explain the means within the stated misfit: verdicts that rested on them were reopened, and "
    "what is shown was measured."
)
#: How well contexts explain the means, where verdicts rest on that: too little is known yet, they do, or they do not.
FIT_OPEN, FIT_HOLDS, FIT_REJECTED = "open", "holds", "rejected"


def with_interval(value: float, low: float, high: float) -> str:
    """Show an estimate to the digits its interval supports; an uneven interval is shown by its ends.

    >>> with_interval(0.86123, 0.8498, 0.8726)
    '0.861 ±0.011'
    >>> with_interval(1234.5, 1174.5, 1294.5)
    '1234 ±60'
    >>> with_interval(111.3, 111.3, 111.3)
    '111.3'
    >>> with_interval(32.4, 21.9, 48.0)
    '32 (22 … 48)'
    >>> with_interval(0.0, -math.inf, math.inf)
    '–'
    """
    if not math.isfinite(high - low):
        return "–"
    half = (high - low) / 2
    if half <= 1e-9 * abs(value):  # there was no noise; what is left is rounding
        return f"{value + 0.0:.6g}"  # not -0
    digits = max(0, 1 - math.floor(math.log10(half)))
    shown = f"{value:.{digits}f}"
    below, above = f"{value - low:.{digits}f}", f"{high - value:.{digits}f}"
    return f"{shown} ±{above}" if below == above else f"{shown} ({low:.{digits}f} … {high:.{digits}f})"


def fit_of(basis: Basis | None) -> str | None:
    """Return how well contexts explain the means; None where verdicts do not rest on that."""
    if basis is None or basis.failed is None:
        return None
    return FIT_REJECTED if basis.model_rejected else FIT_OPEN if basis.held else FIT_HOLDS


#: What stands between a verdict and its rival.
LINKED = {"undecided": "vs", "dominated": "by", "same": "as"}


def _shown(estimate: dict[str, Any]) -> str:
    """An estimate as in the JSON, for people to read."""
    value, low, high = (estimate[key] for key in ("value", "low", "high"))
    if estimate["censored"]:
        return f"< {high:.3g}"
    if value is None:
        return "–"
    return f"{ABOUT} {value:.3g}" if low is None else with_interval(value, low, high)


@dataclass(frozen=True)
class OptionVerdict:
    """What is known of one option, as in the JSON of a standing."""

    option: str
    verdict: str
    rival: str | None
    n: int
    rests_on: str | None
    within: dict[str, float] | None  # of one that is the same as its rival: by how much they differ at most, by metric
    estimates: dict[str, dict[str, Any]]  # by metric: value, low, high in its own unit; None: not known

    def __str__(self) -> str:
        rival = f" {LINKED[self.verdict]} {self.rival}" if self.rival and self.verdict in LINKED else ""
        known = ", ".join(f"{name} {_shown(estimate)}" for name, estimate in self.estimates.items())
        return f"{self.option} {MARKS[self.verdict]} {self.verdict}{rival}: {known}"

    def __getitem__(self, metric: str) -> float | None:
        """Return the estimate of a metric."""
        if metric not in self.estimates:
            raise UnknownName("metric", metric, self.estimates)
        value: float | None = self.estimates[metric]["value"]
        return value


@dataclass(frozen=True, eq=False)
class VerdictTable:
    """What is proven of each arm: verdict, by or against whom, estimates and interval half-widths."""

    arms: tuple[str, ...]
    metrics: tuple[Metric, ...]
    verdicts: tuple[str, ...]  # "front", "same", "dominated", "undecided"
    rivals: tuple[str | None, ...]  # who dominates the arm, or comes nearest to that; as whom it is the same
    centres: FloatArray  # (K, L) estimates, on the scales on which the metrics are compared
    widths: FloatArray  # (K, L) half-widths of their intervals there; infinite where nothing is known
    counts: IntArray  # (K,)
    guarantee: Guarantee
    survives: FloatArray | None = (
        None  # (K, R) misfit of the model a verdict survives; infinite: measured; NaN: none yet
    )
    remark: str = ""  # what else there is to know
    counted: str = "samples"  # what is counted, for people to read
    concerns: tuple[Concern, ...] = ()  # what was seen that the guarantee does not allow for
    censored: Any = None  # (K, L) whether a value is too small to be measured: below what is shown
    seen: FloatArray | None = None  # (K, L) means of all that was measured, as it is compared; NaN: nothing was
    reference: str | None = None  # the arm to which intervals are differences, on the same blocks; None: they are not
    rings: tuple[tuple[str, ...], ...] = ()  # arms that are pointless each beside another of them: all are kept
    apart: FloatArray | None = None  # (K, R) by how much each differs from its rival at most; None: as widths say
    weights: FloatArray | None = None  # (R, L) of the metrics in what options are judged by; None: by the metrics
    fit: str | None = None  # of contexts that are to explain the means, and are tested: one of the above
    unexplained: tuple[str, ...] = ()  # what options are judged by whose means the contexts do not explain

    def without_verdicts(self, why: str) -> VerdictTable:
        """Return it without verdicts and intervals; why: the remark that says so."""
        K = len(self.arms)
        return replace(
            self,
            verdicts=("undecided",) * K,
            rivals=(None,) * K,
            widths=np.full_like(self.widths, np.inf),
            survives=None,
            rings=(),
            apart=None,
            remark=f"{self.remark} {why}".strip(),
        )

    @classmethod
    def of(
        cls,
        verdicts: Verdicts,
        asked: Statement,
        guarantee: Guarantee,
        basis: Basis | None = None,
    ) -> VerdictTable:
        """Translate what an algorithm said."""
        units = asked.units
        return cls(
            arms=asked.arms,
            metrics=asked.metrics,
            verdicts=tuple(WORDS[int(code)] for code in verdicts.status),
            rivals=tuple(None if j < 0 else asked.arms[int(j)] for j in verdicts.rival),
            centres=units.undirected(verdicts.estimates),
            widths=units.reach(verdicts.radii),
            counts=verdicts.counts,
            guarantee=guarantee,
            survives=None if basis is None or basis.survives is None else basis.survives[:, None] * units.ones,
            weights=asked.weights,
            remark=MODEL_REJECTED if basis is not None and basis.model_rejected and basis.failed is None else "",
            fit=fit_of(basis),
            unexplained=unexplained_by_contexts(asked, basis),
        )

    def judged(self, judgement: Judgement | None) -> VerdictTable:
        """Return it with the verdicts that people act on; None: nobody has looked yet."""
        if judgement is None:
            return replace(self, verdicts=("undecided",) * len(self.arms), rivals=(None,) * len(self.arms))
        return replace(
            self,
            verdicts=tuple(WORDS[int(code)] for code in judgement.status),
            rivals=tuple(None if j < 0 else self.arms[int(j)] for j in judgement.rival),
            rings=tuple(tuple(self.arms[k] for k in ring) for ring in judgement.rings),
        )

    @cached_property
    def judged_by(self) -> tuple[Metric, ...]:
        """What options are judged by: the metrics, or where there are trade-offs sums of them."""
        return judged_by(self.metrics, self.weights)

    @property
    def judged_in(self) -> str:
        """What options are judged by, as a word."""
        return "metric" if self.weights is None else "sum"

    def as_judged(self, compared: FloatArray) -> FloatArray:
        """Turn values (..., L) of metrics, as these are compared, into those of what options are judged by.

        As these are compared, and oriented: larger is better.
        """
        oriented = compared * [metric.sign for metric in self.metrics]
        return oriented if self.weights is None else sums(self.weights, oriented)

    def judged_radii(self, widths: FloatArray) -> FloatArray:
        """Turn half-widths of intervals of metrics (..., L) into those of what options are judged by, or wider ones."""
        return widths if self.weights is None else sums(np.abs(self.weights), widths)

    @cached_property
    def place(self) -> dict[str, int]:
        """The place of each arm in the table, by its name."""
        return {arm: k for k, arm in enumerate(self.arms)}

    @cached_property
    def _natural(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Estimates, lower and upper ends of the intervals, each (K, L) in the metrics' own units."""
        relative = np.array([metric.relative for metric in self.metrics])
        widths = np.where(relative & (self.widths > MOST_LOG_WIDTH), np.inf, self.widths)
        ends = [self.centres, self.centres - widths, self.centres + widths]
        if relative.any():
            with np.errstate(over="ignore"):
                ends = [np.where(relative, np.exp(np.where(relative, end, 0.0)), end) for end in ends]
            ends[1] = np.where(np.isinf(widths), -np.inf, ends[1])
        for column, metric in enumerate(self.metrics):
            if metric.bounds is not None:  # what is known of the outcomes is known of their mean
                known = np.isfinite(widths[:, column])
                for end in ends[1:]:
                    end[known, column] = end[known, column].clip(*metric.bounds)
        return ends[0], ends[1], ends[2]

    @property
    def estimates(self) -> FloatArray:
        """(K, L) in the metrics' own units: means, or geometric means."""
        return self._natural[0]

    @property
    def low(self) -> FloatArray:
        """(K, L) lower ends of the intervals, in the metrics' own units."""
        return self._natural[1]

    @property
    def high(self) -> FloatArray:
        """(K, L) upper ends of the intervals, in the metrics' own units."""
        return self._natural[2]

    @property
    def radii(self) -> FloatArray:
        """(K, L) the wider side of the intervals, in the metrics' own units; infinite where nothing is known."""
        return np.where(np.isfinite(self.widths), self.high - self.estimates, np.inf)

    @property
    def below(self) -> Any:
        """(K, L) whether a value is only known to be at most what it is said to be."""
        return np.zeros(self.centres.shape, np.bool_) if self.censored is None else np.asarray(self.censored)

    @property
    def never_varied(self) -> Any:
        """(K, L) whether a number that need not be exact was the same in all samples: that proves nothing."""
        exact = np.array([metric.exact for metric in self.metrics])
        seen = np.ones(self.widths.shape, np.bool_) if self.seen is None else ~np.isnan(self.seen)
        return never_varied(self.centres, self.widths, self.counts[:, None] * seen, exact) & ~self.below

    def only(self, rows: Sequence[int]) -> VerdictTable:
        """Return the table of some of its arms."""
        chosen = list(rows)
        return replace(
            self,
            arms=tuple(self.arms[k] for k in chosen),
            verdicts=tuple(self.verdicts[k] for k in chosen),
            rivals=tuple(self.rivals[k] for k in chosen),
            centres=self.centres[chosen],
            widths=self.widths[chosen],
            counts=self.counts[chosen],
            survives=None if self.survives is None else self.survives[chosen],
            censored=None if self.censored is None else self.censored[chosen],
            seen=None if self.seen is None else self.seen[chosen],
            apart=None if self.apart is None else self.apart[chosen],
        )

    @property
    def front(self) -> tuple[str, ...]:
        """The arms that are proven to be on the front."""
        return tuple(arm for arm, verdict in zip(self.arms, self.verdicts, strict=True) if verdict == "front")

    @cached_property
    def contradicted(self) -> tuple[str, ...]:
        """The arms whose verdicts were right to give, but are contradicted by the estimates as they are now."""
        rivals = [None if rival is None else self.place.get(rival) for rival in self.rivals]
        known = np.where(np.isfinite(self.widths), self.centres, np.nan)
        eps = [metric.tolerance for metric in self.judged_by]
        practical = self.guarantee.goal == "practical"
        stale = contradicted(self.verdicts, rivals, self.as_judged(known), eps, [1.0] * len(eps), up_to_eps=practical)
        return tuple(self.arms[k] for k in stale)

    @property
    def remarks(self) -> list[str]:
        """What else there is to know, for people to read."""
        rings = [
            f"{', '.join(ring[:-1])} and {ring[-1]} are a ring: each is pointless beside another of them, so all stay."
            for ring in self.rings
        ]
        return [*filter(None, [self.beside, self.remark, self.on_fit]), *rings]

    @property
    def on_fit(self) -> str:
        """How well contexts explain the means, for people to read; nothing where they do, as far as is known."""
        if self.fit == FIT_OPEN:
            return (
                "Verdicts wait until the measurements show that the contexts explain the means. Options are measured "
                "for that too."
            )
        if self.fit == FIT_REJECTED:
            return (
                f"The contexts do not explain the means of {' and '.join(self.unexplained)}: verdicts that rested on "
                "them were withdrawn. Each option is judged by its own measurements now, which takes more of them."
            )
        return ""

    @property
    def beside(self) -> str:
        """What intervals are about, where they are those of differences, for people to read."""
        if self.reference is None:
            return ""
        return f"Intervals are those of the difference to {self.reference}, on the blocks of both."

    @property
    def warnings(self) -> list[str]:
        """What to know before acting on the verdicts, for people to read."""
        said = [concern.text for concern in self.concerns]
        said += [
            f"{arm}: the estimates as they are now contradict its verdict, which rests on earlier ones."
            for arm in self.contradicted[:MOST_WARNINGS]
        ]
        more = len(self.contradicted) - MOST_WARNINGS
        return said + ([f"The same of {more:,} more options."] if more > 0 else [])

    def value(self, k: int, metric: int) -> str:
        """Return what is known of a metric of an arm, for people to read."""
        told = self._estimate(k, metric)
        if told["censored"]:
            return f"< {told['high']:.3g}"
        if told["value"] is not None and told["low"] is None:
            return f"{ABOUT} {told['value']:.3g}"
        value, low, high = (float(end[k, metric]) for end in self._natural)
        return with_interval(value, low, high)

    def within(self, k: int) -> list[float] | None:
        """Return by how much an arm differs from the one as which it is the same, at most, in what it is judged by."""
        rival = self.rivals[k]
        if self.verdicts[k] != "same" or rival is None:
            return None
        if self.apart is not None:
            return list(map(float, self.apart[k]))
        j = self.place[rival]
        lead = np.abs(self.as_judged(self.centres[k] - self.centres[j]))
        most = lead + self.judged_radii(self.widths[k] + self.widths[j])
        if self.weights is not None:  # what intervals of metrics say of sums is less than what was proven
            most = np.minimum(most, [metric.tolerance for metric in self.judged_by])
        return list(map(float, most))

    def rests_on(self, k: int) -> str:
        """Return what the verdict on an arm rests on: "measured", or the model and the misfit it survives."""
        if self.survives is None or math.isnan(self.survives[k, 0]):
            return ""
        if math.isinf(self.survives[k, 0]):
            return "measured"
        parts = (
            difference(misfit, metric) for misfit, metric in zip(self.survives[k].tolist(), self.judged_by, strict=True)
        )
        return f"model, misfit up to {' / '.join(dict.fromkeys(parts))}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON: what is not known is None."""
        return {
            "guarantee": self.guarantee.as_dict(),
            "remark": " ".join(self.remarks) or None,
            "fit": None if self.fit is None else {"state": self.fit, "unexplained": list(self.unexplained)},
            **({} if self.reference is None else {"reference": self.reference}),
            "rings": [list(ring) for ring in self.rings],
            "warnings": self.warnings,
            "concerns": [concern.as_dict() for concern in self.concerns],
            "contradicted": list(self.contradicted),
            "samples": int(self.counts.sum()),
            "metrics": [_metric(metric) for metric in self.metrics],
            **({} if self.weights is None else {"judged_by": self._judged_by()}),
            "front": list(self.front),
            "options": [self._option(k) for k in range(len(self.arms))],
        }

    def _judged_by(self) -> list[dict[str, Any]]:
        """The sums by which options are judged, with the weights of the metrics in each; larger is better."""
        return [
            {**_metric(each), "weights": dict(zip((metric.name for metric in self.metrics), row, strict=True))}
            for each, row in zip(
                self.judged_by, (self.weights if self.weights is not None else np.empty(0)).tolist(), strict=True
            )
        ]

    def _option(self, k: int) -> dict[str, Any]:
        return {
            "option": self.arms[k],
            "verdict": self.verdicts[k],
            "rival": None if self.verdicts[k] == "front" else self.rivals[k],
            "n": int(self.counts[k]),
            "rests_on": self.rests_on(k) or None,
            "within": self._within(k),
            "estimates": {metric.name: self._estimate(k, column) for column, metric in enumerate(self.metrics)},
        }

    def _within(self, k: int) -> dict[str, float] | None:
        """The same for JSON: in the metrics' own units, or as shares."""
        most = self.within(k)
        if most is None:
            return None
        return {
            metric.name: math.expm1(value) if metric.relative else value
            for metric, value in zip(self.judged_by, most, strict=True)
        }

    def _estimate(self, k: int, column: int) -> dict[str, Any]:
        """A value in its own unit, and between what it is for sure; of one too small to be measured, the upper end.

        As long as nothing is sure, the mean of what was measured.
        """
        below = self.censored is not None and bool(self.censored[k, column])
        value, low, high = (float(end[k, column]) for end in self._natural)
        known = math.isfinite(high)
        if not known and not below and self.seen is not None and math.isfinite(self.seen[k, column]):
            mean = float(self.metrics[column].natural(self.seen[k, column]))
            return {"value": mean, "low": None, "high": None, "radius": None, "censored": False}
        return {
            "value": value if known and not below else None,
            "low": low if known and not below else None,
            "high": high if known else value if below else None,
            "radius": high - value if known and not below else None,
            "censored": below,
        }

    def __str__(self) -> str:
        return self.text()

    def text(self, most: int | None = MOST_ROWS) -> str:
        """Return it as a text: a row for each arm, the front first, then what is undecided; of more arms, the first.

        most: so many rows, and how many more there are. None: all rows.
        """
        order, rest = rows_shown(self, most)
        rows = [headings(self), *(cells(self, k) for k in order)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        said = [*filter(None, [rest]), *self.remarks, *(f"warning: {warning}" for warning in self.warnings)]
        return "\n".join([*(line.rstrip() for line in lines), *said, self.tally(), f"Guarantee: {self.guarantee}"])

    def __getitem__(self, arm: str) -> OptionVerdict:
        """Return what is known of one arm, by its name."""
        if arm not in self.place:
            raise UnknownName("option", arm, self.arms)
        return OptionVerdict(**self._option(self.place[arm]))

    def __iter__(self) -> Iterator[OptionVerdict]:
        return (OptionVerdict(**self._option(k)) for k in range(len(self.arms)))

    def __len__(self) -> int:
        return len(self.arms)

    def to_frame(self, package: str | None = None) -> Any:
        """Return a row for each arm, as a frame of pandas, polars or pyarrow: the first there is, unless named."""
        options = [self._option(k) for k in range(len(self.arms))]
        columns = {key: [option[key] for option in options] for key in ("option", "verdict", "rival", "n")}
        for metric in self.metrics:
            for key, ending in (("value", ""), ("low", "_low"), ("high", "_high")):
                columns[f"{metric.name}{ending}"] = [option["estimates"][metric.name][key] for option in options]
        return frame_of(columns, package)

    def tally(self) -> str:
        """Return the counts in words: "3 front, 1 dominated; 812 samples"."""
        counted = Counter(self.verdicts)
        parts = [f"{counted[word]:,} {word}" for word in ("front", "same", "dominated", "undecided") if counted[word]]
        samples = int(self.counts.sum())
        return ", ".join(parts) + f"; {samples:,} {self.counted if samples != 1 else self.counted.removesuffix('s')}"

    def _repr_html_(self) -> str:
        return self.html()

    def html(self, head: str = "", notes: Sequence[str] = ()) -> str:
        """Return what a notebook shows: the verdicts as a picture, and as a table below it."""
        drawing = picture("front", self) if np.isfinite(self.widths).all(axis=1).any() else ""
        said = [] if drawing else [self.tally(), f"Guarantee: {self.guarantee}"]  # the picture says it
        warned = [f"Warning: {warning}" for warning in self.warnings]
        order, rest = rows_shown(self)
        rows = [headings(self), *(cells(self, k) for k in order)]
        notes = [*filter(None, [rest]), *said, *self.remarks, *warned, *notes]
        looks = [self.verdicts[k] for k in order]
        return page(head, rows, notes, texts=2, looks=looks, drawing=drawing)


def _metric(metric: Metric) -> dict[str, Any]:
    return {
        "name": metric.name,
        "direction": metric.direction,
        "eps": metric.eps,
        "unit": metric.unit,
        "bounds": None if metric.bounds is None else list(metric.bounds),
        "exact": metric.exact,
        "scale": metric.scale,
        "kind": metric.kind,
    }


def headings(table: VerdictTable) -> list[str]:
    """What stands above the columns of a table of verdicts."""
    metrics = [f"{heading(metric.name, metric.unit)} {'↑' if metric.sign > 0 else '↓'}" for metric in table.metrics]
    return ["option", "verdict", *metrics, "n", *([] if table.survives is None else ["rests on"])]


def front_first(table: VerdictTable) -> list[int]:
    """The arms by their verdicts, then by the first metric, best first; of many, undecided ones the likeliest first."""
    kinds = {verdict: place for place, verdict in enumerate(MARKS)}
    kind = np.array([kinds[verdict] for verdict in table.verdicts])
    behind = _behind(table) if len(table.arms) > MOST_ROWS else np.zeros(len(table.arms))
    order = np.lexsort((-table.metrics[0].sign * table.estimates[:, 0], behind, kind))
    found: list[int] = order.tolist()
    return found


def _behind(table: VerdictTable) -> FloatArray:
    """(K,) of undecided arms, by how much another one seems to be better in every metric; infinite: not measured."""
    means = np.where(np.isfinite(table.widths), table.centres, np.nan) if table.seen is None else table.seen
    known = np.flatnonzero(~np.isnan(means).any(axis=1))
    behind = np.where(np.array(table.verdicts) == "undecided", np.inf, 0.0)
    if len(known):
        y = table.as_judged(means[known]) / [metric.tolerance or 1.0 for metric in table.judged_by]
        asked = np.flatnonzero(behind[known])
        front, none = np.flatnonzero(undominated(y)), np.zeros(y.shape[1])
        behind[known[asked]] = 0.0 - nearest(-y, asked, front, none, -np.inf, np.zeros(len(y)))[0]
    return behind


def rows_shown(table: VerdictTable, most: int | None = MOST_ROWS, hint: str = "") -> tuple[list[int], str]:
    """Return the arms to show, front first, and what to say of those that are left; hint: what shows them."""
    order = front_first(table)
    if most is None or len(order) <= most:
        return order, ""
    rest = Counter(table.verdicts[k] for k in order[most:])
    said = ", ".join(f"{rest[word]:,} {word}" for word in MARKS if rest[word])
    more = len(order) - most
    return order[:most], f"… and {more:,} more option{'s' if more > 1 else ''}: {said}{f' ({hint})' if hint else ''}"


def cells(table: VerdictTable, k: int) -> list[str]:
    """One line of a table of verdicts."""
    verdict = table.verdicts[k]
    mark = MARKS[verdict]
    rival = table.rivals[k] if verdict in LINKED else None
    said = f"{mark} {verdict} {LINKED[verdict]} {rival}" if rival else f"{mark} {verdict}"
    within = " / ".join(
        difference(most, metric)
        for most, metric in zip(table.within(k) or (), table.judged_by, strict=False)
        if most > 0
    )
    said += f", within {within}" if within else ""
    return [
        table.arms[k],
        said,
        *(table.value(k, metric) for metric in range(len(table.metrics))),
        f"{int(table.counts[k]):,}",
        *([] if table.survives is None else [table.rests_on(k)]),
    ]
