"""How many runs a study will take, before anything is measured: estimates, not guarantees.

Nobody knows the means yet. So they are drawn many times, from what is guessed or from what a pilot has shown, and each
time a study of such options is simulated to its end: by scout, with practical verdicts. For each eps the same options
meet the same noise, so that the numbers differ by eps alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import checks
from .algorithms.registry import resolve
from .algorithms.states import copy_state
from .defaults import DELTA
from .environments.gaussian import GaussianEnvironment
from .errors import InvalidInput, UnknownName
from .frames import Columns
from .guarantee import amount, difference
from .kernels.arrays import BoolArray, FloatArray
from .notebook import page, picture
from .plots.plan import Expected, PlanData
from .practical import Judge
from .shown import counted, line, rough_span
from .simulation.progress import Progress, compiling, progress_bar
from .simulation.run import Run
from .start import setup_of
from .statement import Metric, Statement, share, with_eps
from .streams import algorithm_stream, environment_stream
from .study.analysis import study_of_table
from .study.forecast import about, known
from .study.spec import arm_names, metrics_of, sigma_of

#: Which multiples of the stated eps are planned for unless told.
FACTORS = (0.5, 1.0, 2.0)
REPLICATES, LIMIT, MOST_RUNS, MOST_OPTIONS = 30, 20.0, 100_000, 1_000
#: So many studies of each eps are simulated side by side: up to so many runs, then to twice as many, and so on.
GROUP, FIRST_LEVEL = 10, 1_000
#: The clock is looked at after so many runs.
SLICE = 250
#: What is called likely, and what lies in the middle.
QUANTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Range:
    """Where the simulated studies lie; infinite: they were not followed so far."""

    low: float  # 10% of them need less
    median: float
    high: float  # 10% of them need more
    beyond: float | None  # those that did not end need more than this; None: all ended

    @classmethod
    def of(cls, values: FloatArray, ended: BoolArray) -> Range:
        """Return the range of what studies needed, or had needed by the end of the simulation."""
        needed = np.where(ended, values, np.inf)
        low, median, high = (float(np.quantile(needed, q, method="nearest")) for q in QUANTILES)
        return cls(low, median, high, None if ended.all() else float(values[~ended].min()))

    def divided(self, by: float) -> Range:
        """Return it with all numbers divided."""
        beyond = None if self.beyond is None else self.beyond / by
        return Range(self.low / by, self.median / by, self.high / by, beyond)

    def text(self, value: float, written: Callable[[float], str]) -> str:
        """Return one of its numbers in words."""
        return f"more than {written(self.beyond or 0.0)}" if np.isinf(value) else written(value)

    def likely(self, written: Callable[[float], str]) -> str:
        """Return from where to where it goes, in words."""
        low, high = (self.text(value, written) for value in (self.low, self.high))
        return low if low == high else f"{low} to {high}"

    def as_dict(self) -> dict[str, float | None]:
        """Return plain values, ready for JSON; None: not followed so far."""
        plain = {name: getattr(self, name) for name in ("low", "median", "high", "beyond")}
        return {name: None if value is None or np.isinf(value) else value for name, value in plain.items()}


@dataclass(frozen=True)
class PlanRow:
    """What a study will take with one eps."""

    metrics: tuple[Metric, ...]  # with their eps
    runs: Range
    time: Range | None  # seconds, with so many workers as the plan says; None: nobody knows how long a run takes
    studies: int  # so many were simulated

    @property
    def eps(self) -> dict[str, float | str | None]:
        """The difference that does not matter, of each metric."""
        return {metric.name: metric.eps for metric in self.metrics}

    @property
    def low(self) -> float:
        """10% of the simulated studies need fewer runs."""
        return self.runs.low

    @property
    def median(self) -> float:
        """Half of the simulated studies need fewer runs; infinite: more than they were followed for."""
        return self.runs.median

    @property
    def high(self) -> float:
        """10% of the simulated studies need more runs."""
        return self.runs.high

    @property
    def seconds(self) -> float | None:
        """How long it takes, half of the simulated studies less; None: nobody knows how long a run takes."""
        return None if self.time is None else self.time.median

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        seconds = None if self.time is None else self.time.as_dict()
        return {"eps": self.eps, "runs": self.runs.as_dict(), "seconds": seconds, "studies": self.studies}


@dataclass(frozen=True)
class StudyPlan:
    """How many runs a study will take, for each eps, and how long that is: an estimate, not a guarantee."""

    rows: tuple[PlanRow, ...]
    arms: tuple[str, ...]
    delta: float
    workers: int
    supposed: str  # what the estimate rests on
    stated: int  # which row has the metrics' own eps; the first one, if none has

    @property
    def question(self) -> str:
        """What it answers, and for how many options and metrics."""
        sizes = f"{counted(len(self.arms), 'option')}, {counted(len(self.rows[0].metrics), 'metric')}"
        return f"How many runs will it take? {sizes}, delta {self.delta:g}"

    def table(self) -> list[list[str]]:
        """Return the rows as texts, the first one is the header."""
        times = [row.time for row in self.rows]
        header = [f"eps of {metric.name}" for metric in self.rows[0].metrics] + ["runs", "likely (10% to 90%)"]
        lines = [header + (["how long", "likely"] if times[0] is not None else [])]
        for row in self.rows:
            shown = [difference(metric.tolerance, metric) for metric in row.metrics]
            shown += [row.runs.text(row.median, about), row.runs.likely(about)]
            if row.time is not None:
                shown += [row.time.text(row.time.median, _span), row.time.likely(_span)]
            lines.append(shown)
        return lines

    @property
    def sentence(self) -> str:
        """What comes out, in one sentence: the stated eps, then the others."""
        first = self.rows[self.stated]
        many = f"{_about(first.runs)} run{'' if first.median == 1 else 's'}"
        if np.isfinite(first.median):
            likely = first.runs.likely(about)
            many += f" (likely {likely})" if " to " in likely else ""
        elif np.isfinite(first.low):
            many += f" (one in ten takes fewer than {about(first.low)})"
        workers = "on one worker" if self.workers == 1 else f"with {self.workers} workers"
        long = "" if first.time is None else f", {first.time.text(first.time.median, _span)} {workers}"
        others = [f"with {self._differing(row)} {self._brief(row)}" for row in self.rows if row is not first]
        return "; ".join([f"With eps {_of_all(first.metrics)} it takes {many}{long}", *others]) + "."

    def _differing(self, row: PlanRow) -> str:
        """The eps of a row, as far as it is not the same in all rows."""
        differs = [len({other.metrics[k].eps for other in self.rows}) > 1 for k in range(len(row.metrics))]
        sizes = [
            difference(metric.tolerance, metric) for metric, so in zip(row.metrics, differs, strict=True) if so
        ] or [_of_all(row.metrics)]
        return sizes[0] if len(set(sizes)) == 1 else " and ".join(sizes)

    @staticmethod
    def _brief(row: PlanRow) -> str:
        long = "" if row.time is None else f" ({row.time.text(row.time.median, _span)})"
        return f"{_about(row.runs)}{long}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the estimate rests on, and what was not followed to its end."""
        studies = min(row.studies for row in self.rows)
        notes = [
            f"An estimate, not a guarantee: {studies} simulated stud{'y' if studies == 1 else 'ies'} for each eps. "
            f"{self.supposed}"
        ]
        beyond = [row.runs.beyond for row in self.rows if row.runs.beyond is not None and np.isinf(row.high)]
        if beyond:
            notes.append(
                f'"More than": some simulated studies had not ended after {min(beyond):,.0f} runs. A longer limit or a '
                "larger max_samples follows them further; a larger eps ends them sooner."
            )
        return tuple(notes)

    def __str__(self) -> str:
        rows = self.table()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        return "\n".join(map(line, [self.question, *lines, self.sentence, *self.notes]))

    def _repr_html_(self) -> str:
        return page(
            self.question, self.table(), [self.sentence, *self.notes], texts=0, drawing=picture("plan", self.data)
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "text": self.sentence,
            "options": len(self.arms),
            "delta": self.delta,
            "workers": self.workers,
            "rows": [row.as_dict() for row in self.rows],
            "notes": list(self.notes),
        }

    @property
    def data(self) -> PlanData:
        """The numbers behind the picture."""
        metrics, expected = self.rows[0].metrics, []
        for row in self.rows:
            long = "" if row.time is None else row.time.text(row.time.median, _span)
            span, many = row.runs, f"{_about(row.runs)} run{'' if row.median == 1 else 's'}"
            eps = tuple(_of_each(row.metrics))
            expected.append(Expected(eps, span.low, span.median, span.high, span.beyond, many, long))
        sizes = f"{counted(len(self.arms), 'option')}, {counted(len(metrics), 'metric')}"
        workers = "" if self.rows[0].time is None else f"; {counted(self.workers, 'worker')}"
        about_it = f"{sizes}; all verdicts right with probability {100 * (1.0 - self.delta):.10g}%{workers}"
        return PlanData(tuple(expected), about_it, self.supposed)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw runs by eps, as a matplotlib figure; it is written where a path (.png or .svg) is given."""
        from . import plots

        return plots.plan(self.data, path=path)


def plan(
    arms: int | Sequence[str],
    metrics: Mapping[str, str] | Sequence[Metric],
    *,
    noise: Any = None,
    spread: Any = None,
    eps: Sequence[Mapping[str, Any]] | None = None,
    sigma: Any = None,
    delta: float = DELTA,
    seconds: float | None = None,
    workers: int = 1,
    replicates: int = REPLICATES,
    limit: float = LIMIT,
    max_samples: int = MOST_RUNS,
    seed: int = 0,
    progress: bool | None = None,
) -> StudyPlan:
    """Estimate how many runs a study will take, before anything is measured, from guesses.

    arms: how many options, or their names.
    metrics: `Metric` objects with their eps.
    noise: a guess of the standard deviation of one run: one for all metrics, or {metric: guess}. In the metric's own
        unit; for a metric that is compared in percent, a percentage of the value, such as "10%". An exact metric has
        none.
    spread: how far the options lie apart: the standard deviation of their means, written in the same way.
    eps: for which eps to plan, each as {metric: eps}. None: the metrics' own, half of it, and twice of it.
    sigma: as in `Study`, if the study will know it. None: it is unknown.
    delta: the probability of error that is allowed.
    seconds: how long one run takes. workers: how many run at once.
    replicates: how many studies are simulated for each eps.
    limit: seconds after which the simulation ends. max_samples: runs after which a simulated study is not followed
        further. What did not end by then counts as longer than that.
    progress: show a bar on standard error. None: show it on a terminal, if it takes over two seconds.

    The noise is normal, and metrics have nothing to do with one another. Where they do, as when better options are
    slower, studies take longer or shorter than that.

    >>> expected = plan(3, [Metric("quality", eps=0.1)], noise=0.05, spread=0.5, replicates=10)
    >>> [row.eps["quality"] for row in expected.rows]
    [0.05, 0.1, 0.2]
    """
    stated = metrics_of(metrics)
    names, rows = _names(arms), _eps_rows(stated, eps)
    told = _told(sigma, stated)
    off = [_noise(noise, metric, stated, told[k]) for k, metric in enumerate(stated)]
    around = [_deviation("spread", spread, metric, stated) for metric in stated]
    centre, spreads, noises = (
        np.tile(np.array(each, float), (len(names), 1))
        for each in ([_middle(metric) for metric in stated], around, off)
    )
    guess = _Guess(names, stated, told, centre, spreads, noises, _each(seconds, len(names)))
    apart = " and ".join(_sized(size, metric) for size, metric in zip(around, stated, strict=True))
    loud = " and ".join(_sized(size, metric) for size, metric in zip(off, stated, strict=True) if size)
    supposed = (
        f"Supposed: means of the options vary by {apart} (standard deviation), each metric for itself; "
        f"{f'a run is off by {loud}' if loud else 'there is no noise'}."
    )
    return _planned(guess, rows, supposed, delta, workers, replicates, limit, max_samples, seed, progress)


def plan_from_pilot(
    frame: Any,
    arm: str,
    metrics: Mapping[str, str] | Sequence[Metric],
    *,
    eps: Sequence[Mapping[str, Any]] | None = None,
    sigma: Any = None,
    delta: float = DELTA,
    duration: str | None = None,
    seconds: float | None = None,
    workers: int = 1,
    replicates: int = REPLICATES,
    limit: float = LIMIT,
    max_samples: int = MOST_RUNS,
    seed: int = 0,
    progress: bool | None = None,
) -> StudyPlan:
    """Estimate how many runs a study will take from a pilot: a few measurements of each option.

    Means are drawn around those of the pilot, by their standard errors. The noise is that of the pilot.

    frame: pandas, polars, pyarrow or a dict of columns, with a row for each measurement.
    arm: the column that names the option.
    metrics: `Metric` objects with their eps; their names are columns.
    duration: the column that says how long a run took, in seconds. It may differ between options.

    The rest is as in `plan`. Runs are those of a new study: the rows of the pilot are not counted.

    >>> pilot = {"model": ["a", "a", "a", "b", "b", "b"], "quality": [0.91, 0.88, 0.92, 0.5, 0.53, 0.51]}
    >>> plan_from_pilot(pilot, "model", [Metric("quality", eps=0.1)], replicates=10).rows[1].median < 100
    True
    """
    given = metrics_of(metrics)
    _eps_rows(given, eps)  # refused before the rows are read
    study = study_of_table(frame, arm, given, sigma=sigma, seed=seed)
    with study.log.reading() as replica:
        estimates, noise, spread = known(replica)
        units, names, stated = replica.units, tuple(replica.arms), replica.spec.metrics
        n = replica.tally.n
    if len(names) < 2:
        raise InvalidInput(f"options of a pilot must be two or more, got {counted(len(names), 'option')}")
    for k, metric in enumerate(stated):
        told = not np.isnan(study.spec.asked.sigma[k])
        if not told and n[:, k].max() < 2:
            raise InvalidInput(
                f"rows of a pilot must be two or more of some option, got one of each with {metric.name!r}: one "
                "measurement says nothing about noise"
            )
        if not told and not metric.exact and not noise[:, k].all():
            still = names[int((noise[:, k] == 0).argmax())]
            raise InvalidInput(
                f"metric {metric.name!r} of a pilot must vary, got the same number in all rows of {still!r}: that says "
                f"nothing about noise. If it is always so, say that it is exact (exact=True; --exact {metric.name})"
            )
    if duration is not None and seconds is not None:
        raise InvalidInput("duration and seconds of a plan must not both be given: how long a run takes is said once")
    durations = _each(seconds, len(names)) if duration is None else _durations(frame, arm, duration, names)
    guess = _Guess(
        names,
        stated,
        study.spec.asked.sigma,
        units.undirected(estimates),
        spread * units.divisors,
        noise * units.divisors,
        durations,
    )
    rows, measured = _eps_rows(stated, eps), counted(int(n.max(axis=1).sum()), "row")
    supposed = (
        f"Supposed: means and noise are those of the pilot, {measured} of {len(names)} options, up to standard errors. "
        "These rows are not counted: a study that begins with them (import) needs fewer."
    )
    return _planned(guess, rows, supposed, delta, workers, replicates, limit, max_samples, seed, progress)


# What is supposed


@dataclass(frozen=True, eq=False)
class _Guess:
    """What is supposed of K options, on the scales on which the L metrics are compared."""

    arms: tuple[str, ...]
    metrics: tuple[Metric, ...]
    sigma: FloatArray  # (L,) what the study will know of the noise; NaN: nothing
    centre: FloatArray  # (K, L) around what means are drawn
    spread: FloatArray  # (K, L) how far off they may be
    noise: FloatArray  # (K, L)
    seconds: FloatArray | None  # (K,) how long one run takes

    def means(self, rng: np.random.Generator) -> FloatArray:
        """Draw means (K, L)."""
        drawn = self.centre + self.spread * rng.standard_normal(self.centre.shape)
        for k, metric in enumerate(self.metrics):
            if metric.bounds is not None:
                drawn[:, k] = drawn[:, k].clip(*metric.compared(np.array(metric.bounds)))
        return drawn


def _names(arms: Any) -> tuple[str, ...]:
    if isinstance(arms, str) or not isinstance(arms, (int, np.integer, Sequence)):
        raise InvalidInput(f"arms of a plan must be a number of options or a list of names, got {checks.got(arms)}")
    n = len(arms) if isinstance(arms, Sequence) else arms
    K = checks.whole("number of options of a plan", n, least=2, most=MOST_OPTIONS)
    return arm_names(arms) if isinstance(arms, Sequence) else tuple(f"option {k + 1}" for k in range(K))


def _told(sigma: Any, metrics: Sequence[Metric]) -> FloatArray:
    each = sigma_of(sigma, [metric.name for metric in metrics], len(metrics))
    return np.array([np.nan if value is None else value for value in each])


def _each(seconds: float | None, n: int) -> FloatArray | None:
    return None if seconds is None else np.full(n, checks.number("seconds of a run of a plan", seconds, above=0.0))


def _durations(frame: Any, arm: str, column: str, names: Sequence[str]) -> FloatArray:
    """(K,) how long a run of each option took, in the mean of its rows."""
    columns = Columns(frame, "this table")
    labels, given = np.array(columns.labels(arm)), columns.numbers(column)
    if (given < 0).any():
        raise InvalidInput(f"column {column!r} of a pilot must hold seconds of 0 or more, got {given.min():g}")
    return np.array([given[labels == name].mean() for name in names])


def _middle(metric: Metric) -> float:
    """Around what means are drawn where nobody knows it; only bounds make a difference."""
    return 0.0 if metric.bounds is None else float(np.mean(metric.compared(np.array(metric.bounds))))


def _noise(given: Any, metric: Metric, metrics: Sequence[Metric], told: float) -> float:
    """The noise scale that is supposed: what will be known, what is guessed, or none of an exact metric."""
    guessed = given.get(metric.name) if isinstance(given, Mapping) else given
    if not np.isnan(told):
        if isinstance(given, Mapping) and guessed is not None:
            raise InvalidInput(
                f"noise of metric {metric.name!r} of a plan must be left out where its sigma is given, got {guessed!r}"
            )
        return told
    if metric.exact:
        return 0.0
    size = _deviation("noise", given, metric, metrics)
    if size == 0.0:
        raise InvalidInput(
            f"noise of metric {metric.name!r} of a plan must be above 0, got {guessed!r}. If it never varies, say that "
            f"it is exact (exact=True; --exact {metric.name})"
        )
    if metric.bounds is not None:
        most = np.ptp(metric.compared(np.array(metric.bounds))) / 2.0
        if size > most:
            raise InvalidInput(
                f"noise of metric {metric.name!r} of a plan must be at most half the distance of its bounds, "
                f"{amount(most, metric)}, got {guessed!r}"
            )
    return size


def _deviation(what: str, given: Any, metric: Metric, metrics: Sequence[Metric]) -> float:
    """Read a standard deviation, on the scale on which the metric is compared.

    >>> round(_deviation("noise", {"time": "10%"}, Metric("time", "min", scale="log"), [Metric("time")]), 4)
    0.0998
    """
    if isinstance(given, Mapping):
        names = [each.name for each in metrics]
        for name in given:
            if name not in names:
                raise UnknownName(f"metric in {what} of a plan:", str(name), names)
        given = given.get(metric.name)
    said, example = (
        f"{what} of metric {metric.name!r} of a plan",
        f"{metric.name}={'10%' if metric.relative else '0.1'}",
    )
    if given is None:
        meaning = "how much one run is off" if what == "noise" else "how far options lie apart"
        raise InvalidInput(f"{said} must be given: {meaning}, as a standard deviation, e.g. --{what} {example}")
    if metric.relative:
        if not isinstance(given, str):
            raise InvalidInput(
                f"{said} must be a percentage such as '10%', for it is compared by ratios, got {checks.got(given)}"
            )
        return float(np.sqrt(np.log1p(share(said, given) ** 2)))  # of a log-normal value
    if isinstance(given, str):
        raise InvalidInput(
            f"{said} must be a number in its own unit, for it is compared by differences, got {checks.got(given)}; an "
            "eps in percent compares by ratios"
        )
    return checks.number(said, given, least=0.0)


def _sized(size: float, metric: Metric) -> str:
    """A standard deviation in words: "10% of time"."""
    written = f"{100.0 * np.sqrt(np.expm1(size**2)):.3g}%" if metric.relative else amount(size, metric)
    return f"{written} of {metric.name}"


def _eps_rows(metrics: tuple[Metric, ...], eps: Any) -> list[tuple[Metric, ...]]:
    """Return the metrics with each eps that is planned for."""
    if eps is None:
        rows = [tuple(metric.times_eps(factor) for metric in metrics) for factor in FACTORS]
    else:
        if not isinstance(eps, Sequence) or not eps or not all(isinstance(each, Mapping) for each in eps):
            raise InvalidInput(f"eps of a plan must be a list of {{metric: eps}}, at least one, got {checks.got(eps)}")
        rows = [_with(metrics, each) for each in eps]
    for row in rows:
        if not any(metric.tolerance > 0 for metric in row):
            raise InvalidInput(
                "eps of a plan must be above 0 for at least one metric, got none: it is the difference that does not "
                f"matter, on which the number of runs depends (Metric(eps=...); --eps {metrics[0].name}=VALUE)"
            )
    return rows


def _with(metrics: tuple[Metric, ...], eps: Mapping[str, Any]) -> tuple[Metric, ...]:
    names = [metric.name for metric in metrics]
    for name in eps:
        if name not in names:
            raise UnknownName("metric in eps of a plan:", str(name), names)
    return tuple(with_eps(metric, eps[metric.name]) if metric.name in eps else metric for metric in metrics)


# Simulated studies


class _Study:
    """A study of options that are drawn: what an algorithm is told of it, and how it is begun."""

    def __init__(self, guess: _Guess, metrics: tuple[Metric, ...], delta: float) -> None:
        self.guess = guess
        asked = Statement(guess.arms, metrics, guess.sigma, goal="practical", delta=delta, of="a plan")
        record, settings = resolve("scout", noise_given=asked.knows_sigma)
        self.units, self.setup = asked.units, setup_of(asked, settings)
        self.state, self.constants = record.start(settings, self.setup)
        self.kernels = record.kernels_of(self.state)

    def begun(self, seed: int, number: int) -> Run:
        """Return one of many simulated studies, of which nothing is played yet."""
        rng = environment_stream(seed, number)
        means = self.units.directed(self.guess.means(rng))
        environment = GaussianEnvironment(means, np.ascontiguousarray(self.guess.noise / self.units.divisors))
        streams = algorithm_stream(seed, number), rng
        return Run(
            self.kernels, self.setup, copy_state(self.state), self.constants, environment, streams, judge=Judge()
        )


class _Future:
    """One simulated study: begun when it is first looked at, forgotten when it has ended."""

    def __init__(self, study: _Study, seed: int, number: int) -> None:
        self.study, self.seed, self.number = study, seed, number
        self.runs, self.seconds = 0, 0.0
        self.ended = False
        self._run: Run | None = None

    def advance(self, rounds: int) -> None:
        """Play up to so many more runs."""
        run = self._run = self._run or self.study.begun(self.seed, self.number)
        run.advance(rounds)
        self.runs, self.ended = run.samples, run.stopped
        durations = self.study.guess.seconds
        if durations is not None:
            self.seconds = float(run.verdicts().counts @ durations)
        if self.ended:
            self._run = None

    @property
    def over(self) -> bool:
        """Whether there is nothing more to play."""
        return self.ended or (self._run is not None and self._run.stuck)


def _planned(
    guess: _Guess,
    rows: Sequence[tuple[Metric, ...]],
    supposed: str,
    delta: float,
    workers: int,
    replicates: int,
    limit: float,
    max_samples: int,
    seed: int,
    progress: bool | None,
) -> StudyPlan:
    """Simulate studies of what is supposed, for the eps of each row."""
    n_workers = checks.whole("workers of a plan", workers, least=1)
    n = checks.whole("replicates of a plan", replicates, least=1)
    patience = checks.number("limit of a plan", limit, above=0.0)
    most = checks.whole("max_samples of a plan", max_samples, least=1)
    seed = checks.whole("seed of a plan", seed, least=0)
    studies = [_Study(guess, metrics, delta) for metrics in rows]
    with compiling(progress):
        studies[0].begun(seed, 0).compile()
    futures = [[_Future(study, seed, number) for study in studies] for number in range(n)]
    with progress_bar(progress, n * len(studies), "simulated studies") as bar:
        _follow_all(futures, most, patience, bar)
    planned = tuple(
        _row(metrics, [each[k] for each in futures], min(FIRST_LEVEL, most), n_workers, guess.seconds is not None)
        for k, metrics in enumerate(rows)
    )
    stated = next((k for k, metrics in enumerate(rows) if metrics == guess.metrics), 0)
    return StudyPlan(planned, guess.arms, delta, n_workers, supposed, stated)


def _follow_all(futures: Sequence[Sequence[_Future]], most: int, patience: float, bar: Progress) -> None:
    """Simulate group after group, as long as another one will be ended in time: rather few long studies than many cut.

    futures: a sequence for each replicate, with a study for each eps.
    """
    began = time.monotonic()
    longest = 0.0
    for start in range(0, len(futures), GROUP):
        now = time.monotonic()
        if start and now + longest > began + patience:
            return
        group = [future for each in futures[start : start + GROUP] for future in each]
        _follow(group, most, began + patience, bar)
        longest = max(longest, time.monotonic() - now)


def _follow(futures: Sequence[_Future], most: int, deadline: float, bar: Progress) -> None:
    """Play all of them as far as a level, then as far as twice that, and so on, until the deadline.

    So at the end all that go on were followed about equally far, and short ones are not taken for the usual ones.
    """
    level = min(FIRST_LEVEL, most)
    while True:
        for future in futures:
            while not future.over and future.runs < level:
                before = future.runs
                if time.monotonic() > deadline and (before or future.number):  # something is said of every eps
                    break
                future.advance(min(SLICE, level - before))
                bar.samples(future.runs - before)
                if future.ended:
                    bar.replicate()
                bar.refresh()
        if level >= most or time.monotonic() > deadline or all(future.over for future in futures):
            return
        level = min(2 * level, most)


def _row(metrics: tuple[Metric, ...], futures: list[_Future], level: int, workers: int, timed: bool) -> PlanRow:
    """Return what came out for one eps, by the studies that were followed to a level; by the first one, if none was."""
    there = [future for future in futures if future.over or future.runs >= level] or futures[:1]
    runs = np.array([future.runs for future in there], float)
    ended = np.array([future.ended for future in there])
    if not ended.all():  # those that ended later than others were followed would look like the usual ones
        ended &= runs <= runs[~ended].min()
    seconds = np.array([future.seconds for future in there])
    spent = Range.of(seconds, ended).divided(workers) if timed else None
    return PlanRow(metrics, Range.of(runs, ended), spent, len(there))


# Words


def _about(span: Range) -> str:
    return f"{'about ' if np.isfinite(span.median) else ''}{span.text(span.median, about)}"


def _span(seconds: float) -> str:
    return rough_span(seconds) if seconds >= 1.0 else "less than 1 s"


def _of_each(metrics: Sequence[Metric]) -> list[str]:
    """Eps of each metric, in words, where there is any."""
    return [f"{difference(metric.tolerance, metric)} of {metric.name}" for metric in metrics if metric.tolerance]


def _of_all(metrics: Sequence[Metric]) -> str:
    """Eps of all metrics, in words."""
    sizes = {difference(metric.tolerance, metric) for metric in metrics}
    every = len(sizes) == 1 and len(metrics) > 1
    return f"{sizes.pop()} of every metric" if every else " and ".join(_of_each(metrics))
