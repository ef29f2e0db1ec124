"""What can be seen, in the values at hand, of noise that a guarantee does not allow for, and of verdicts gone stale.

A guarantee rests on noise of a certain kind, and nobody can prove that noise is so. But some of what breaks it can be
seen, once it has happened. `examine` looks for

* spikes: a few values, far from the rest, make up much of the spread (Grubbs' test);
* skew: values reach much further to one side (D'Agostino's test of skewness);
* spells: values that follow each other are alike (Bartels' test: von Neumann's ratio, of ranks);
* drift: values rise or fall as time goes on (Spearman's correlation with the order);
* sorted: the same as spells and drift, in rows whose order is not that of time;
* few values: at most 5 different ones, which are not normal, whatever else they are;
* never varied: the same number each time, which does not prove that it is certain;
* another value: what all values before had in common, such as to be 0 or 1, was not the law of the metric.

Spells and drift matter for every kind of noise; spikes, skew, few values and numbers that never varied where the
guarantee rests on normal noise of unknown scale. All tests but that for spikes are also made of all options of a metric
together. What is certain but too small to matter is not told: see the constants.

False alarms: over all tests of one look, independent normal noise raises one with probability FALSE_ALARM at most
(Bonferroni; measured: 20 of 20,000 looks, from 2 options with 12 values each to 20 with 60). That is for one look: many
looks at a growing study add up. The tails of the tests, but for Grubbs' bound, are approximations; measured to 1e-5,
for 8 to 50 values, spells and skew come 0.0 to 1.2 times as often as they claim, and drift less often. Few values and
numbers that never varied are facts, without alarms that are false.

Power, of 500 looks at two options of which one has the fault (in brackets: both): AR(.9) is seen in 84% (100%) at 30
values per option, 99% (100%) at 50; lognormal noise with sigma 1, as skew or as spikes, in 51% (94%) at 30, 87% (100%)
at 50, all at 100. Spikes of 100 times the noise in 1% of the values are seen in 96% of the looks at 50 values that hold
one, in all at 200. Spikes that did not happen yet cannot be seen, and most studies that they lead astray end before.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, ndtr, stdtr

from .kernels.arrays import BoolArray, FloatArray, IntArray
from .kernels.dominance import undominated
from .laws import FEW_VALUES

#: Probability of any alarm in one look, if the noise is independent and, where that is asked for, normal.
FALSE_ALARM = 0.001
#: Of longer series only the last values are looked at.
RECENT = 10_000
#: Tests need so many values of an option.
FEWEST = 8
#: A metric with so many values at least, and so few distinct ones at most, has no normal noise.
ROWS_OF_FEW = 20
#: Spikes matter that make up this share of the squared deviations; a spike is so many robust standard deviations off.
SPIKY, FAR = 0.1, 6.0
#: Skew matters from this value of skewness / sqrt(n): it doubles the error of a mean 3.5 standard errors away, about.
LOPSIDED = 0.1
#: Memory matters from this rank correlation, of neighbours or with the order: the mean's true error is a tenth larger.
ALIKE = 0.1
#: Values closer together than this share of the largest are the same but for rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Concern:
    """Something that the guarantee does not allow for, seen in the values of one metric."""

    # "spells", "drift", "sorted", "spikes", "skew", "few values", "never varied", "another value", "few blocks",
    # "few rounds", "copies"
    kind: str
    metric: str
    options: tuple[str, ...]  # of which it was seen, the clearest first; none: of all options together
    figures: dict[str, float]  # what was measured, of the first option or of all together
    blocks: tuple[str, ...] = ()  # that carry the difference of the first option to its rival; of rounds, their numbers

    @property
    def text(self) -> str:
        """What was seen, of whom, and what to do about it, for people to read."""
        if self.kind == "copies":
            return self._said()
        subject = f"{self.metric} of {self.options[0]}" if self.options else self.metric
        others = f" Likewise {_listed(self.options[1:])}." if self.options[1:] else ""
        return f"{subject}: {self._said()}{others}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "kind": self.kind,
            "metric": self.metric,
            "options": list(self.options),
            "figures": dict(self.figures),
            **({"blocks": list(self.blocks)} if self.blocks else {}),
            "text": self.text,
        }

    def in_own_unit(self) -> Concern:
        """Return it with values in the metric's own unit, where its logarithms were examined."""
        shown = {name: figure for name, figure in self.figures.items() if name not in ("lowest", "highest")}
        if "value" in shown:
            shown["value"] = math.exp(shown["value"])
        return replace(self, figures=shown)

    def _said(self) -> str:
        saw = self.figures
        if self.kind == "copies":
            return (
                f"{saw['copies']:,.0f} of {saw['rows']:,.0f} rows are exact copies of others. If a file was pasted "
                "twice, take the copies out: they are no new measurements, and noise looks smaller than it is."
            )
        if self.kind == "few blocks":
            left = saw["of"] - saw["blocks"]
            all_of_them = f"measure the other {left:,.0f} blocks, too" if left > 0 else "take more blocks"
            return (
                f"{len(self.blocks)} of {saw['blocks']:,.0f} blocks ({', '.join(self.blocks)}) make up "
                f"{saw['spread']:.0%} of how much differences vary. If such blocks are rare, those that were not seen "
                f"yet may change the verdict: {all_of_them}; or say how far options can be apart (--ratio "
                f"{self.metric}=NUMBER, --bounds); or ask for more caution (--algorithm scout:caution=256)."
            )
        if self.kind == "few rounds":
            return (
                f"{len(self.blocks)} of {saw['blocks']:,.0f} rounds ({', '.join(self.blocks)}) make up "
                f"{saw['spread']:.0%} of how much differences vary. If such rounds are rare, those to come may change "
                "the verdict: look for what disturbs them, or ask for more caution (--algorithm scout:caution=64)."
            )
        if self.kind == "another value":
            was, do = ("0 or 1", f"say between which values it lies (--bounds {self.metric}=LOW,HIGH)")
            if saw["exact"]:
                was, do = "the same for each option", f"{self.metric} is not exact"
            return (
                f"event {saw['event']:.0f} brought another value, while all values before were {was}. The verdicts "
                f"that rested on this are withdrawn: {do}."
            )
        n = f"{saw['values']:,.0f} values"
        natural = saw.get("lowest", -1.0) >= 0.0 and saw.get("highest", 2.0) <= 1.0
        bounds = f"--bounds {self.metric}={'0,1' if natural else 'LOW,HIGH'}"
        if self.kind == "spells":
            return (
                f"values that follow each other are alike (rank correlation {saw['neighbours']:.2f} in {n}), so they "
                "tell less than the guarantee counts on. Wait longer between them, or let each value be the mean of a "
                "longer stretch."
            )
        if self.kind == "drift":
            way = "rise" if saw["with order"] > 0.0 else "fall"
            return (
                f"values {way} as time goes on (rank correlation {saw['with order']:.2f} in {n}), so there is no one "
                "mean to know. Warm up before measuring, and measure the options in an order that mixes them."
            )
        if self.kind == "sorted":
            rises = saw["rises"]
            look = (
                f"rows look sorted by value ({max(rises, 1.0 - rises):.0%} of the steps between {n} go "
                f"{'up' if rises > 0.5 else 'down'})"
                if max(rises, 1.0 - rises) >= 0.9
                else f"rows that stand together are alike (rank correlation {saw['neighbours']:.2f} in {n})"
            )
            return (
                f"{look}. They are taken in a random order. If they were measured in this order, they "
                "depend on each other and tell less than the guarantee counts on: name the column that says when."
            )
        if self.kind == "spikes":
            lie = "lies far from the rest and makes" if saw["spikes"] == 1.0 else "lie far from the rest and make"
            return (
                f"{saw['spikes']:.0f} of {n} {lie} up {saw['spread']:.0%} of the spread. A "
                f"mean that rests on rare values needs bounds ({bounds}), or very many more values; or measure the "
                "median of several runs."
            )
        if self.kind == "skew":
            way = "up than down" if saw["skewness"] > 0.0 else "down than up"
            return (
                f"values reach much further {way} (skewness {saw['skewness']:.1f} in {n}), so the noise is not normal. "
                f"Give bounds ({bounds}), or let each value be the mean of several runs."
            )
        if self.kind == "few values":
            return (
                f"only {saw['distinct']:.0f} different ones among {n}, so the noise is not normal. Give bounds "
                f"({bounds})."
            )
        kind = f"; if each outcome is 0 or 1, that it is pass/fail (-m {self.metric}:...:pass-fail)"
        return (
            f"always {saw['value']:.6g}, in {n}. That is not taken as certain; if it is, say that {self.metric} is "
            f"exact{kind if saw['value'] in (0.0, 1.0) else ''}."
        )


@np.errstate(over="ignore", invalid="ignore")  # of numbers so large that nothing is seen in them
def examine(
    options: Sequence[str],
    metrics: Sequence[str],
    values: Sequence[Sequence[FloatArray]] | FloatArray,
    *,
    normal: Sequence[bool],
    ordered: bool,
    exact: Sequence[bool] | None = None,
    eps: Sequence[float] | None = None,
) -> list[Concern]:
    """Return what is to be seen in the values that the guarantee does not allow for: one of a kind for each metric.

    values: `values[k][i]` are those of option k and metric i, in the order in which they were measured, or in that of
    the rows of a table where this says nothing (`ordered` is False). Missing ones are left out.
    normal: of each metric, whether the guarantee rests on normal noise of unknown scale.
    exact: of each metric, whether it is known to have no noise; unless told, none is.
    eps: of each metric, the difference that does not matter; an option whose values all lie that close is left alone.

    >>> noise = np.random.default_rng(0).normal(size=(2, 100))
    >>> noise[1, 60] = 50.0
    >>> [concern] = examine(["a", "b"], ["ms"], noise[:, None], normal=[True], ordered=True)
    >>> concern.kind, concern.options, concern.figures["spikes"]
    ('spikes', ('b',), 1.0)
    """
    rows = _Rows.of(values, len(options), len(metrics))
    least = np.zeros(len(metrics)) if eps is None else np.asarray(eps, float)
    certain = np.zeros(len(metrics), bool) if exact is None else np.asarray(exact, bool)
    bell = np.asarray(normal, bool) & ~certain
    low, high = rows.over(np.minimum), rows.over(np.maximum)
    varied = high - low > ROUNDING * np.maximum(np.abs(low), np.abs(high))
    matters = varied & (high - low > least[rows.metric])
    grid, concerns = np.zeros(len(metrics)), []
    for i in np.unique(rows.metric).tolist():
        mine = rows.metric == i
        n_distinct, grid[i] = _steps(rows.of_metric(i))
        if bell[i] and (matters & mine).any() and rows.n[mine].sum() >= ROWS_OF_FEW and n_distinct <= FEW_VALUES:
            bell[i] = False  # that says it all
            figures = {"distinct": n_distinct, "values": rows.n[mine].sum(), "lowest": low[mine].min()}
            concerns.append(_concern("few values", metrics[i], (), {**figures, "highest": high[mine].max()}))
        elif bell[i] and (same := np.flatnonzero(mine & (rows.n >= 2) & ~varied)).size:
            names = tuple(options[k] for k in rows.option[same])
            figures = {"values": rows.n[same[0]], "value": low[same[0]]}
            concerns.append(_concern("never varied", metrics[i], names, figures))
    able = rows.some(matters & (rows.n >= FEWEST))
    if not len(able.n):
        return concerns
    able = able.placed_within(grid)
    tests = _tests_of_order(able, ordered)
    if bell[able.metric].any():
        tests += _tests_of_shape(able.some(bell[able.metric]))
    return _judged(tests, options, metrics) + concerns


def copies(rows: Sequence[tuple[object, ...]], n_options: int) -> Concern | None:
    """Return the concern that rows of a table are copies of others, as if a file was pasted twice; None if not.

    Rounded numbers are equal now and then, too. So either all rows are there equally often, or several times as often
    as one of them; or many are there twice, and none three times, though by chance about 7 would be.
    """
    often = Counter(Counter(rows).values())  # how many different rows are there once, twice, ...
    different, extra = sum(often.values()), sum((times - 1) * n for times, n in often.items())
    if different < max(10, 2 * n_options) or extra < FEWEST:
        return None
    whole = math.gcd(*often) > 1
    pairs, single = often[2], often[1]
    if whole or (max(often) == 2 and 2.0 * pairs * pairs >= 3.0 * 7.0 * single):
        return Concern("copies", "", (), {"copies": float(extra), "rows": float(len(rows))})
    return None


def contradicted(
    verdicts: Sequence[str],
    rivals: Sequence[int | None],
    estimates: ArrayLike,
    eps: ArrayLike,
    signs: ArrayLike,
    *,
    up_to_eps: bool = False,
) -> list[int]:
    """Return the options whose verdicts the present estimates contradict: values since then speak against them.

    Such is "dominated" by an option that is not better in every metric, and "front" beside an option that is better by
    more than eps in every metric.

    verdicts, rivals: the verdict on each option, and the index of the option that dominates it.
    estimates: (K, L), of the options that are still there; NaN contradicts nothing.
    eps, signs: (L,) the difference that does not matter; 1 where larger is better, -1 where smaller is.
    up_to_eps: who dominates need be better in some metric only, and may be worse by eps in others, as in a bench.

    >>> means = np.array([[1.0, 5.0], [2.0, 6.0], [0.0, 7.0]])
    >>> contradicted(["front", "front", "dominated"], [None, None, 1], means, eps=[0, 0], signs=[1, 1])
    [0, 2]
    """
    goodness, tolerated = np.asarray(signs, float) * np.asarray(estimates, float), np.asarray(eps, float)
    pairs = [(verdict, -1 if rival is None else rival) for verdict, rival in zip(verdicts, rivals, strict=True)]
    said, beside = np.array([verdict for verdict, _ in pairs], str), np.array([rival for _, rival in pairs], np.int64)
    known = ~np.isnan(goodness).any(axis=1)
    best = np.flatnonzero(known)
    best = best[undominated(goodness[best])] if len(best) else best  # if anybody is better everywhere, one of these is
    wrong = np.zeros(len(goodness), np.bool_)
    for k in np.flatnonzero((said == "front") & known):
        wrong[k] = (goodness[best] - goodness[k] > tolerated).all(axis=1).any()
    lost = np.flatnonzero((said == "dominated") & (beside >= 0))
    lead = goodness[beside[lost]] - goodness[lost]
    behind = lead < -tolerated if up_to_eps else lead <= 0.0
    wrong[lost] = behind.any(axis=1) | (lead <= 0.0).all(axis=1)
    found: list[int] = np.flatnonzero(wrong).tolist()
    return found


class _Rows(NamedTuple):
    """Series of values, one after the other in one array: a series is what one option showed in one metric."""

    metric: IntArray  # (S,) of each series, in increasing order
    option: IntArray  # (S,)
    n: IntArray  # (S,) how long each is; none is empty
    values: FloatArray  # (sum of n,)

    @classmethod
    def of(cls, values: Sequence[Sequence[FloatArray]] | FloatArray, K: int, L: int) -> _Rows:
        """Take the last values of each series."""
        named = [(i, k, values[k][i]) for i in range(L) for k in range(K) if len(values[k][i])]
        series = [np.asarray(given, float)[-RECENT:] for _, _, given in named]
        return cls(
            np.array([i for i, _, _ in named], np.int64),
            np.array([k for _, k, _ in named], np.int64),
            np.array([len(given) for given in series], np.int64),
            np.concatenate([np.empty(0), *series]),
        )

    @property
    def start(self) -> IntArray:
        """Where each series begins."""
        return np.cumsum(self.n) - self.n

    def series(self, s: int) -> FloatArray:
        """The values of one series."""
        first = int(self.n[:s].sum())
        return self.values[first : first + int(self.n[s])]

    def of_metric(self, i: int) -> FloatArray:
        """All values of a metric."""
        return self.values[np.repeat(self.metric == i, self.n)]

    def some(self, chosen: BoolArray) -> _Rows:
        """Only these series."""
        values = self.values[np.repeat(chosen, self.n)]
        return _Rows(self.metric[chosen], self.option[chosen], self.n[chosen], values)

    def over(self, reduce: np.ufunc, values: FloatArray | None = None) -> FloatArray:
        """Reduce the values of each series to one, or other values that stand in their places."""
        values = self.values if values is None else values
        return np.asarray(reduce.reduceat(values, self.start), float) if len(self.n) else np.empty(0)

    def placed_within(self, grid: FloatArray) -> _Rows:
        """Put each number somewhere within what was rounded to it, at random: so there are no ties, nor false steps."""
        within = np.random.default_rng(0).random(len(self.values)) - 0.5  # the same rows give the same concerns
        return self._replace(values=self.values + np.repeat(grid[self.metric], self.n) * within)


@dataclass(frozen=True)
class _Test:
    """One test, made of each series and, where the series have weights, of all series of a metric together."""

    kind: str
    rows: _Rows
    p: FloatArray  # (S,)
    size: FloatArray  # (S,) of what was seen; size * sqrt(weight) is about standard normal if there is nothing to see
    least: FloatArray  # (S,) the size that matters
    figures: Callable[[IntArray], dict[str, float]]  # what was measured, over some series
    weight: FloatArray | None = None  # (S,)
    one_sided: bool = False

    def together(self) -> list[IntArray]:
        """The series of each metric that are tested together."""
        if self.weight is None:
            return []
        metrics = [np.flatnonzero(self.rows.metric == i) for i in np.unique(self.rows.metric)]
        return [series for series in metrics if len(series) > 1]

    @property
    def number(self) -> int:
        """How many tests these are."""
        return len(self.p) + len(self.together())

    def alarms(self, level: float) -> list[tuple[float, IntArray]]:
        """What is seen at this level and matters, with its p: single series first, then some together."""
        big = self.size >= self.least if self.one_sided else np.abs(self.size) >= self.least
        alarms = [(float(self.p[s]), np.array([s])) for s in np.flatnonzero((self.p <= level) & big)]
        for series in self.together():
            weight = np.asarray(self.weight)[series]
            size = float((weight * self.size[series]).sum() / weight.sum())
            z = size * math.sqrt(weight.sum())
            p = float(ndtr(-z) if self.one_sided else _two_sided(z))
            if p <= level and abs(size) >= self.least[series].mean():
                alarms.append((p, series))
        return alarms


def _tests_of_order(rows: _Rows, ordered: bool) -> list[_Test]:
    """Whether neighbours are alike, and whether values rise or fall; by ranks, so whatever the noise's distribution."""
    n, start = rows.n.astype(float), rows.start
    place = np.arange(len(rows.values)) - np.repeat(start, rows.n)
    rank = np.empty(len(rows.values))
    for first, length in zip(start.tolist(), rows.n.tolist(), strict=True):
        rank[first + np.argsort(rows.values[first : first + length])] = np.arange(length)
    steps = np.append(np.diff(rank), 0.0)
    steps[start[1:] - 1] = 0.0  # from one series to the next
    ratio = rows.over(np.add, steps * steps) / (n * (n * n - 1.0) / 12.0)  # von Neumann's, of ranks: 2 if independent
    variance = 4.0 * (n - 2.0) * (5.0 * n * n - 2.0 * n - 9.0) / (5.0 * n * (n + 1.0) * (n - 1.0) ** 2)
    a = 2.0 / variance - 0.5  # of the beta distribution on [0, 4] with this variance
    alike = 1.0 - ratio / 2.0
    trend = 1.0 - 6.0 * rows.over(np.add, (rank - place) ** 2) / (n * (n * n - 1.0))

    def figures(series: IntArray) -> dict[str, float]:
        rises = np.concatenate([np.diff(rows.series(s)) > 0.0 for s in series.tolist()])
        share = n[series] / n[series].sum()
        return {
            "values": n[series].sum(),
            "neighbours": (share * alike[series]).sum(),
            "with order": (share * trend[series]).sum(),
            "rises": rises.mean(),
        }

    least = np.full(len(n), ALIKE)
    kinds = ("spells", "drift") if ordered else ("sorted", "sorted")
    return [
        _Test(kinds[0], rows, betainc(a, a, ratio / 4.0), alike, least, figures, 4.0 / variance, one_sided=True),
        _Test(kinds[1], rows, _two_sided(trend * np.sqrt(n - 1.0)), trend, least, figures, n - 1.0),
    ]


def _tests_of_shape(rows: _Rows) -> list[_Test]:
    """Whether some values are far from the rest, and whether values reach further to one side than to the other."""
    n = rows.n.astype(float)
    off = rows.values - np.repeat(rows.over(np.add) / n, rows.n)
    off /= np.repeat(rows.over(np.maximum, np.abs(off)), rows.n)  # so that no power overflows
    squares = rows.over(np.add, off * off)
    # Grubbs: the farthest value's t, from mean and deviation of the rest; each of n values may be the farthest
    share = 1.0 / squares  # of the farthest in the squared deviations
    t = np.sqrt((n - 2.0) * share * n / np.maximum(n - 1.0 - n * share, 1e-300))
    p = np.minimum(2.0 * n * stdtr(n - 2.0, -t), 1.0)
    suspects = np.flatnonzero(p <= FALSE_ALARM).tolist()
    spikes = {s: _spikes(rows.series(s)) for s in suspects}
    spread = np.array([spikes[s][1] if s in spikes else 0.0 for s in range(len(n))])

    def of_spikes(series: IntArray) -> dict[str, float]:
        [s] = series.tolist()
        return {"values": n[s], "spikes": spikes[s][0], "spread": spread[s]}

    # D'Agostino: a function of the skewness of normal values that is standard normal for 8 values already
    skewness = rows.over(np.add, off * off * off) / n / (squares / n) ** 1.5
    variance = 6.0 * (n - 2.0) / ((n + 1.0) * (n + 3.0))
    kurtosis = 3.0 * (n * n + 27.0 * n - 70.0) * (n + 1.0) * (n + 3.0)
    kurtosis /= (n - 2.0) * (n + 5.0) * (n + 7.0) * (n + 9.0)
    w = np.sqrt(2.0 * (kurtosis - 1.0)) - 1.0
    z = np.arcsinh(skewness / np.sqrt(variance) / np.sqrt(2.0 / (w - 1.0))) / np.sqrt(0.5 * np.log(w))

    def of_skew(series: IntArray) -> dict[str, float]:
        return {"values": n[series].sum(), "skewness": skewness[series].mean()}

    return [
        _Test("spikes", rows, p, spread, np.full(len(n), SPIKY), of_spikes),
        _Test("skew", rows, _two_sided(z), z * np.sqrt(variance), LOPSIDED * np.sqrt(n), of_skew, 1.0 / variance),
    ]


def _two_sided(z: Any) -> Any:
    """The probability that a standard normal variable is as far from 0."""
    return 2.0 * ndtr(-np.abs(z))


def _spikes(values: FloatArray) -> tuple[int, float]:
    """How many values are far from the rest, and their share in the squared deviations from the median."""
    off = np.abs(values - np.median(values))
    far = off > min(FAR * 1.4826 * float(np.median(off)), 0.99 * float(off.max()))  # the farthest in any case
    squares = (off / off.max()) ** 2
    return int(far.sum()), float(squares[far].sum() / squares.sum())


def _steps(values: FloatArray) -> tuple[int, float]:
    """How many distinct values there are, and the smallest step between them: what they were rounded to, or less."""
    distinct = np.sort(values)
    steps = np.diff(distinct)
    steps = steps[steps > ROUNDING * max(abs(distinct[0]), abs(distinct[-1]))]
    return len(steps) + 1, float(steps.min()) if len(steps) else 0.0


#: What explains a kind: seen more clearly of the same option, there is no news in it.
EXPLAINED = {"spells": ("drift",), "drift": ("spells",), "skew": ("spells", "drift", "spikes")}


def _judged(tests: list[_Test], options: Sequence[str], metrics: Sequence[str]) -> list[Concern]:
    """Return what the tests find, at one level for all of them, without what something else explains."""
    level = FALSE_ALARM / sum(test.number for test in tests)
    alarms = [(p, series, test) for test in tests for p, series in test.alarms(level)]
    alarms.sort(key=lambda alarm: (alarm[2].kind == "skew", len(alarm[1]) > 1, alarm[0]))  # single options first
    named: dict[tuple[int, str], list[str]] = {}
    figures: dict[tuple[int, str], dict[str, float]] = {}  # of the clearest
    seen: dict[tuple[int, str], set[int]] = {}  # options, named or among all
    for _, series, test in alarms:
        i, who = int(test.rows.metric[series[0]]), test.rows.option[series].tolist()
        kinds = (test.kind, *EXPLAINED.get(test.kind, ()))
        if all(seen.get((i, kind), set()).isdisjoint(who) for kind in kinds):
            this = (i, test.kind)
            seen.setdefault(this, set()).update(who)
            named.setdefault(this, []).extend(options[k] for k in who if len(who) == 1)
            figures.setdefault(this, test.figures(series))
    return [_concern(kind, metrics[i], tuple(named[i, kind]), figures[i, kind]) for i, kind in sorted(figures)]


def _concern(kind: str, metric: str, options: tuple[str, ...], figures: dict[str, Any]) -> Concern:
    return Concern(kind, metric, options, {name: float(figure) for name, figure in figures.items()})


def _listed(names: Sequence[str]) -> str:
    """Return "a", "a and b", "a, b and c", or "a, b and 7 more"."""
    shown = [*names] if len(names) <= 3 else [*names[:2], f"{len(names) - 2} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
