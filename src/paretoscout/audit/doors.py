"""The doors of the audit: every way in which numbers come into a study, attacked where its proof has a condition.

Each door is one function that plays one replicate through the public interface: it makes up outcomes of options whose
truth is known, hands them over in the most harmful order that is allowed, and says which verdicts are wrong. What each
door is about, and why it is attacked just so, is in docs/doors.md.

In half of the cases of each door noise differs between options (deviations 3 and 0.3): the fast, the first or the
largest outcomes of a noisy option are far from its mean. "A/A" is in the title of a case in which all options are the
same: there every "dominated" is wrong, and nothing else can be.
"""

from __future__ import annotations

import heapq
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ..algorithms import available, get
from ..bench.made_up import Truth, made_up_bench, wrong_verdicts
from ..errors import NotSupported
from ..kernels.arrays import BoolArray, FloatArray
from ..practical import wrong_ones
from ..statement import Metric
from ..study import Study, Trial, analyze
from ..study.workers import DEAD_AFTER
from ..verdicts import VerdictTable

#: What is told of the noise: its scale, nothing (it is normal), or the bounds of outcomes, 0 and 1.
SIGMA, NOTHING, BOUNDS = "sigma told", "noise unknown", "bounds told"
#: Deviations of options in turn, where they differ.
UNEVEN = (3.0, 0.3)
#: The algorithm of a study, unless it is told another.
USUAL: str = inspect.signature(Study).parameters["algorithm"].default
#: The difference in the share of successes that does not matter, in benches with commands that fail.
SUCCESS_EPS = 0.1
#: Runs that take more samples than this end undecided.
MOST_SAMPLES = 4_000
#: How long slow ones take, at least; fast ones take 1 or less. A worker that has a slow one tells nothing meanwhile.
SLOW = 10.0
#: Beside the number of the replicate: the stream of outcomes is not one that a study draws from.
OUTCOMES = 20_261


@dataclass(frozen=True)
class Played:
    """One replicate: the options whose verdicts were wrong at some time, whether all was decided, and samples."""

    wrong: tuple[str, ...]
    decided: bool
    samples: int


#: Plays the replicate of a number, at a delta.
Play = Callable[[int, float], Played]


@dataclass(frozen=True)
class DoorCase:
    """One way to use a door."""

    title: str
    play: Play
    algorithm: str = USUAL
    costly: bool = False  # runs are long: fewer of them
    short: bool = False
    door: str = ""


def door_cases(doors: Sequence[str] = (), short: bool = False) -> list[DoorCase]:
    """Return the cases of some doors (none named: of all), all of them or those of the short audit."""
    return [
        replace(case, door=name)
        for name, make in DOORS.items()
        if not doors or name in doors
        for case in _with_twins(make())
        if case.short or not short
    ]


def _with_twins(made: Iterator[DoorCase]) -> Iterator[DoorCase]:
    """Let every fourth case, and those of the short audit, be tried with practical verdicts as well."""
    for turn, case in enumerate(made):
        yield case
        judged = any(kernels.intervals for kernels in get(case.algorithm).kernels)  # others have no practical verdicts
        of_options = isinstance(case.play, partial) and isinstance(case.play.args[0], Options)
        if judged and of_options and (case.short or turn % 4 == 0):
            assert isinstance(case.play, partial)
            options, *rest = case.play.args
            play = partial(case.play.func, replace(options, goal="practical"), *rest, **case.play.keywords)
            yield replace(case, title=f"{case.title}, practical verdicts", play=play)


# What is measured


@dataclass(frozen=True, eq=False)
class Options:
    """Options whose truth is known; larger is better in every metric.

    Told bounds, an outcome is 0 or 1 where `noise` is 1, and nearer to its mean where it is less. Else noise is normal,
    and `noise` is its deviation.
    """

    means: FloatArray  # (K, L)
    noise: FloatArray  # (K,)
    eps: float
    told: str
    goal: str = "front"

    @property
    def arms(self) -> list[str]:
        """Their names."""
        return [f"option {k}" for k in range(len(self.means))]

    @property
    def columns(self) -> list[str]:
        """The names of the metrics."""
        return [f"metric {column}" for column in range(self.means.shape[1])]

    @property
    def settings(self) -> dict[str, Any]:
        """What a study, or `analyze`, is told."""
        bounds = (0.0, 1.0) if self.told == BOUNDS else None
        metrics = [Metric(name, "max", eps=self.eps, bounds=bounds) for name in self.columns]
        sigma = float(self.noise.max()) if self.told == SIGMA else None
        return {"metrics": metrics, "sigma": sigma, "goal": self.goal}

    def study(self, number: int, delta: float, arms: int | None = None, **how: Any) -> Study:
        """A study of the options, or the first few of them."""
        settings = {"delta": delta, "seed": number, "storage": "memory", **self.settings, **how}
        return Study(self.arms[:arms], **settings)

    def outcome(self, arm: int, rng: np.random.Generator) -> FloatArray:
        """One outcome (L,)."""
        return self.values(arm, self.draw(arm, rng))

    def draw(self, arm: int, rng: np.random.Generator) -> FloatArray:
        """What makes an outcome good or bad (L,): normal of deviation 1; told bounds, 0 or 1."""
        if self.told == BOUNDS:
            return np.asarray(rng.random(self.means.shape[1]) < self.means[arm], float)
        return np.asarray(rng.standard_normal(self.means.shape[1]))

    def values(self, arm: int, drawn: FloatArray) -> FloatArray:
        """The outcome that was drawn."""
        mean, noise = self.means[arm], self.noise[arm]
        return np.asarray(mean + noise * (drawn - mean) if self.told == BOUNDS else mean + noise * drawn)

    def table(self, rows: int, rng: np.random.Generator) -> tuple[list[str], FloatArray]:
        """So many rows of each option, one option after the other: names and values."""
        values = [self.outcome(arm, rng) for arm in range(len(self.means)) for _ in range(rows)]
        return [name for name in self.arms for _ in range(rows)], np.array(values)

    def told_as(self, values: FloatArray) -> dict[str, float]:
        """An outcome as `tell` takes it."""
        return dict(zip(self.columns, values.tolist(), strict=True))

    def wrong(self, table: VerdictTable, missed: Sequence[str] = ()) -> tuple[str, ...]:
        """Return who has a wrong verdict.

        On the front, though one that is there (or was missed: withdrawn after looking) is better by more than eps in
        every metric; or dominated, though none that is there is better in every metric. Practical verdicts have
        definitions of their own.
        """
        means = dict(zip(self.arms, self.means, strict=True))
        if self.goal == "practical":
            eps = np.full(self.means.shape[1], self.eps)
            return tuple(wrong_ones(table.arms, table.verdicts, table.rivals, means, eps))
        there = [means[arm] for arm in table.arms]
        rivals = [*there, *(means[arm] for arm in missed)]
        wrong = []
        for arm, verdict in zip(table.arms, table.verdicts, strict=True):
            if verdict == "front" and any((mean - means[arm] > self.eps).all() for mean in rivals):
                wrong.append(arm)
            if verdict == "dominated" and not any((mean > means[arm]).all() for mean in there):
                wrong.append(arm)
        return tuple(wrong)


def identical(told: str, uneven: bool, K: int = 2, L: int = 1, eps: float | None = None) -> Options:
    """Options of the same means: which of them is called dominated is called so wrongly."""
    mean = 0.5 if told == BOUNDS else 0.0
    return Options(np.full((K, L), mean), _noise(told, uneven, K), eps or _eps(told, uneven), told)


def just_beyond(told: str, uneven: bool, K: int = 2, L: int = 1, eps: float | None = None) -> Options:
    """One option, of the larger noise, that all others beat by 1.02 eps in every metric: on the front it is wrong."""
    eps = eps or _eps(told, uneven)
    means = np.full((K, L), 0.5 + 0.51 * eps if told == BOUNDS else 0.0)
    means[0] -= 1.02 * eps
    return Options(means, _noise(told, uneven, K), eps, told)


def _noise(told: str, uneven: bool, K: int) -> FloatArray:
    two = ((1.0, 0.1) if told == BOUNDS else UNEVEN) if uneven else (1.0, 1.0)
    return np.resize(np.array(two), K)


def _eps(told: str, uneven: bool) -> float:
    """Such that a few hundred samples tell."""
    if told == BOUNDS:
        return 0.3
    return (3.0 if told == SIGMA else 2.0) if uneven else 1.0


def stream(number: int) -> np.random.Generator:
    """Random numbers of a replicate."""
    return np.random.default_rng([OUTCOMES, number])


def go_on(study: Study, options: Options, rng: np.random.Generator, samples: int = 0, most: int = MOST_SAMPLES) -> int:
    """Ask and tell, one by one, until the study is done or takes too many samples; return how many there are."""
    while not study.done and samples < most:
        trial = study.ask()
        study.tell(trial, options.told_as(options.outcome(_arm(trial), rng)))
        samples += 1
    return samples


def _arm(trial: Trial) -> int:
    return int(trial.arm.removeprefix("option "))


# Tables


def _shuffled(names: Sequence[str], values: FloatArray, rng: np.random.Generator) -> Any:
    return rng.permutation(len(names))


def _by_arm(names: Sequence[str], values: FloatArray, rng: np.random.Generator) -> Any:
    return np.lexsort([values[:, 0], np.array(names)])


def _turn_by_turn(names: Sequence[str], values: FloatArray, rng: np.random.Generator) -> Any:
    """The lowest of each option, then the second lowest of each, and so on."""
    by_arm = np.lexsort([values[:, 0], np.array(names)])
    rank = np.empty(len(names), int)
    for name in dict.fromkeys(names):
        theirs = [k for k in by_arm if names[k] == name]
        rank[theirs] = np.arange(len(theirs))
    return np.argsort(rank, kind="stable")


def _rising(names: Sequence[str], values: FloatArray, rng: np.random.Generator) -> Any:
    return np.argsort(values[:, 0], kind="stable")


def _falling(names: Sequence[str], values: FloatArray, rng: np.random.Generator) -> Any:
    return np.argsort(-values[:, 0], kind="stable")


#: In which order the rows of a table come.
ROWS: dict[str, Callable[[Sequence[str], FloatArray, np.random.Generator], Any]] = {
    "shuffled": _shuffled,
    "sorted by option, then value": _by_arm,
    "sorted by value within options": _turn_by_turn,
    "rising": _rising,
    "falling": _falling,
}


def table_of(options: Options, rows: int, order: str, rng: np.random.Generator) -> dict[str, Any]:
    """A table of so many rows of each option, in some order; "time" says in which they were measured."""
    names, values = options.table(rows, rng)
    time = rng.permutation(len(names))
    chosen = ROWS[order](names, values, rng)
    columns = dict(zip(options.columns, values[chosen].T, strict=True))
    return {"arm": [names[k] for k in chosen], **columns, "time": time[chosen]}


def analyzed(options: Options, order: str, rows: int, number: int, delta: float, **how: Any) -> Played:
    """A finished table."""
    frame = table_of(options, rows, order, stream(number))
    table = analyze(frame, "arm", **options.settings, delta=delta, **how)
    return Played(options.wrong(table), "undecided" not in table.verdicts, rows * len(options.arms))


def imported(
    options: Options, order: str, number: int, delta: float, tables: int = 4, rows: int = 8, time: str | None = None
) -> Played:
    """Several tables, each while trials are open, which are told thereafter, the best outcomes first."""
    rng, samples = stream(number), 0
    study = options.study(number, delta)
    wrong: set[str] = set()
    for _ in range(tables):
        if study.done:
            break
        running = [(trial, options.outcome(_arm(trial), rng)) for trial in study.ask(4)]
        running.sort(key=lambda each: -each[1][0])
        samples += study.tell_frame(table_of(options, rows, order, rng), time=time) + len(running)
        wrong.update(options.wrong(study.verdicts()))
        for trial, values in running[:-1]:
            study.tell(trial, options.told_as(values))
            wrong.update(options.wrong(study.verdicts()))
        trial, values = running[-1]
        study.tell_frame(
            {"trial": [trial.number], **{k: [v] for k, v in options.told_as(values).items()}}, trial="trial"
        )
    samples = go_on(study, options, rng, samples)
    wrong.update(options.wrong(study.verdicts()))
    return Played(tuple(sorted(wrong)), study.done, samples)


# Workers


@dataclass
class Clock:
    """A clock that goes when it is told to."""

    now: float = 0.0

    def __call__(self) -> float:
        """What time it is."""
        return self.now


@dataclass(frozen=True)
class Crew:
    """Workers whose outcomes decide how long they take, and whether they are heard of.

    The truth of the options is about what is heard: outcomes are shifted by what is left out.
    """

    workers: int
    fast: str = "good"  # which outcomes come fast: good or bad ones
    lease: float = 1e6
    give_up: float | None = None
    fails: bool = False  # bad outcomes fail: normal ones those below -1 deviation, bounded ones half of the zeros
    together: bool = False  # one that fails takes all along that are under way, and time says nothing of the outcome
    silent: bool = False  # zeros are never told, and a fifth of the ones comes too late: it counts as 0 at give_up
    how: Mapping[str, Any] = field(default_factory=dict)  # further settings of the study

    def course(
        self, options: Options, arm: int, rng: np.random.Generator
    ) -> tuple[dict[str, float] | None, float, bool]:
        """One measurement: its outcome (None: it fails), how long it takes, and whether it is told."""
        if options.told == BOUNDS:
            return self._bounded(options, arm, rng)
        drawn = options.draw(arm, rng)
        speed = float(drawn[0] if self.fast == "good" else -drawn[0])
        seconds = math.exp(-speed) if speed > 0.0 else SLOW - speed
        if self.together:
            seconds = float(rng.exponential())
        failed = self.fails and drawn[0] < -1.0
        drawn[0] -= self._mean_of_heard()
        return None if failed else options.told_as(options.values(arm, drawn)), seconds, True

    def _mean_of_heard(self) -> float:
        """The mean of a normal variable, given that it does not fail and is told in time."""
        low, high = -1.0 if self.fails else -math.inf, math.inf
        if self.give_up is not None and self.fast == "good":
            low = max(low, SLOW - self.give_up)
        if self.give_up is not None and self.fast == "bad":
            high = self.give_up - SLOW
        density = [0.0 if math.isinf(x) else math.exp(-x * x / 2) / math.sqrt(2 * math.pi) for x in (low, high)]
        mass = [0.5 * (1.0 + math.erf(x / math.sqrt(2.0))) for x in (low, high)]
        return (density[0] - density[1]) / (mass[1] - mass[0])

    def _bounded(
        self, options: Options, arm: int, rng: np.random.Generator
    ) -> tuple[dict[str, float] | None, float, bool]:
        heard = options.means[arm]
        rate = heard / 0.8 if self.silent else 0.5 * heard / (1.0 - 0.5 * heard) if self.fails else heard
        drawn = np.asarray(rng.random(len(rate)) < rate, float)
        good = bool(drawn[0])
        failed = self.fails and not good and rng.random() < 0.5
        seconds = rng.random() + (0.0 if good == (self.fast == "good") else SLOW)
        told = not self.silent
        if self.silent and self.give_up is not None:
            told = good and rng.random() < 0.8
            seconds = self.give_up * (rng.random() if told else 1.01)
        return None if failed else options.told_as(options.values(arm, drawn)), seconds, told


def worked(options: Options, crew: Crew, number: int, delta: float) -> Played:
    """Workers that ask when they are free and tell when they are ready."""
    rng, clock, asked = stream(number), Clock(), 0
    how: dict[str, Any] = {"give_up": crew.give_up, "lease": crew.lease, "clock": clock, **crew.how}
    if crew.silent:
        how["at_give_up"] = dict.fromkeys(options.columns, 0.0)
    study = options.study(number, delta, **how)
    busy: list[tuple[float, int, Any]] = []  # when each of them is ready, with which trial and what
    while not study.done and asked < MOST_SAMPLES:
        try:
            trials = study.ask(crew.workers - len(busy)) if len(busy) < crew.workers else []
        except NotSupported:
            trials = []  # it is done: what was given up just now has decided it; or slow ones are waited for
            if not busy:
                continue
        asked += len(trials)
        for trial in trials:
            values, seconds, told = crew.course(options, _arm(trial), rng)
            heapq.heappush(busy, (clock.now + seconds, trial.number, (values, told)))
        clock.now, ready, (values, told) = heapq.heappop(busy)
        if values is None:
            for lost in (ready, *(number for _, number, _ in busy if crew.together)):
                study.fail(lost)
            busy = [] if crew.together else busy
        elif told:
            study.tell(ready, values)
    return Played(options.wrong(study.verdicts()), study.done, asked)


# Workers that die


@dataclass(frozen=True)
class Mortal:
    """Workers of which some die, or are suspended and come back. The outcome of a measurement is how long it takes.

    dies: "at random": at times that have nothing to do with outcomes; "of bad outcomes": whenever an outcome is bad,
    which the promise leaves out. suspended: it does not die, but says nothing for so long that it is taken for dead,
    and then tells.
    """

    workers: int
    fast: str = "good"  # which outcomes come fast: good or bad ones
    dies: str = "at random"
    suspended: bool = False
    every: float = 60.0  # seconds between two deaths of a worker, on average
    blocks: Any = None

    def course(self, options: Options, arm: int, rng: np.random.Generator) -> tuple[dict[str, float], float, float]:
        """One measurement: its outcome, how long it takes, and when its worker dies."""
        drawn = options.draw(arm, rng)
        seconds = max(0.1, SLOW + (-3.0 if self.fast == "good" else 3.0) * float(drawn[0]))
        death = float(rng.exponential(self.every))
        if self.dies == "of bad outcomes":
            death = 0.5 * seconds if drawn[0] < -0.5 else math.inf
        return options.told_as(options.values(arm, drawn)), seconds, death


@dataclass(order=True)
class _Work:
    """What a worker is at. ready: when it tells the first of its trials; or dies, if it is `dead`."""

    ready: float
    first: int
    run: str = field(compare=False)
    trials: list[Trial] = field(compare=False)
    told: dict[str, float] = field(compare=False, default_factory=dict)
    dead: bool = field(compare=False, default=False)
    silent: bool = field(compare=False, default=False)


def died(options: Options, crew: Mortal, number: int, delta: float) -> Played:
    """Workers that ask as runs do, and die. A new one comes for each of them, and others notice after a minute."""
    rng, clock, asked, born = stream(number), Clock(), 0, 0
    how = {} if crew.blocks is None else {"blocks": crew.blocks}
    how |= {"target": "population"} if isinstance(crew.blocks, list) else {}
    study = options.study(number, delta, clock=clock, **how)
    wrong: set[str] = set()
    busy: list[_Work] = []

    def begin(work: _Work) -> None:
        """Let a worker begin with the first of its trials."""
        trial = work.trials[0]
        work.told, seconds, death = crew.course(options, _arm(trial), rng)
        work.first, work.dead = trial.number, death <= seconds and not crew.suspended
        work.silent = death <= seconds and crew.suspended
        work.ready = clock.now + min(death, seconds) + (3.0 * DEAD_AFTER if work.silent else 0.0)
        heapq.heappush(busy, work)

    while not (study.done or study.stuck) and asked < MOST_SAMPLES:
        while len(busy) < crew.workers:
            born += 1
            study.resume(run := f"run {born}")
            try:
                trials = study.ask_round(run=run) if study.in_rounds else [study.ask(run=run)]
            except NotSupported:
                study.sign_off(run)
                break
            asked += len(trials)
            begin(_Work(0.0, 0, run, trials))
        then = busy[0].ready if busy else math.inf
        step = min(then - clock.now, DEAD_AFTER / 4)
        clock.now += step
        for work in busy:
            if not (work.dead or work.silent):
                study.heartbeat(work.run)
        if clock.now < then:
            continue
        work = heapq.heappop(busy)
        if work.dead:
            continue
        study.tell(work.first, work.told)
        wrong.update(options.wrong(study.verdicts()))
        del work.trials[0]
        if work.trials:
            begin(work)
        else:
            study.sign_off(work.run)
    return Played(tuple(sorted(wrong)), study.done, asked)


# Guards


@dataclass(frozen=True)
class Guarded:
    """A column of costs that must stay at 0 or below; its noise is that of the first metric, upside down."""

    costs: tuple[float, ...]  # (K,) means
    told: bool = True  # its sigma
    slack: float = 0.0  # it is a metric as well, of this eps
    most: int = MOST_SAMPLES


def guarded(options: Options, guard: Guarded, number: int, delta: float) -> Played:
    """A study with a guard. Right or wrong is said of the options that keep it."""
    rng, samples = stream(number), 0
    settings = options.settings
    if guard.slack:
        settings["metrics"] = [*settings["metrics"], Metric("cost", "min", eps=guard.slack)]
    names = [*options.columns, *(["cost"] if guard.told else [])]
    sigma = None if options.told != SIGMA else dict.fromkeys(names, float(options.noise.max()))
    study = options.study(number, delta, guards=["cost <= 0"], metrics=settings["metrics"], sigma=sigma)
    while not study.done and samples < guard.most:
        trial = study.ask()
        arm = _arm(trial)
        drawn = options.draw(arm, rng)
        cost = guard.costs[arm] - options.noise[arm] * float(drawn[0])
        study.tell(trial, {**options.told_as(options.values(arm, drawn)), "cost": cost})
        samples += 1
    wrong = _wrong_with_guard(options, guard, study.verdicts(), study.withdrawn, study.done)
    return Played(wrong, study.done, samples)


def _wrong_with_guard(
    options: Options, guard: Guarded, table: VerdictTable, withdrawn: Mapping[str, str], done: bool
) -> tuple[str, ...]:
    """Return who has a wrong verdict, or left for a guard that it keeps.

    On the front: one that breaks the guard by more than its slack (when all is done; before that, verdicts hold if
    guards that are open are kept), or one that another which keeps it beats by more than eps in every metric.
    Dominated: one that keeps it, and that nobody beats who is there and may stay.
    """
    costs = np.array(guard.costs)
    means, eps = options.means, np.full(options.means.shape[1], options.eps)
    if guard.slack:
        means, eps = np.column_stack([means, -costs]), np.append(eps, guard.slack)
    keeps: BoolArray = costs <= 0.0
    number = {name: k for k, name in enumerate(options.arms)}
    there = [number[name] for name in table.arms]
    may_stay = [k for k in there if not done or costs[k] <= guard.slack]
    wrong = [name for name in withdrawn if keeps[number[name]]]
    if options.goal == "practical":
        wrong += [name for name in table.front if done and costs[number[name]] > guard.slack]
        truth = dict(zip(options.arms, means, strict=True))
        return (*wrong, *wrong_ones(table.arms, table.verdicts, table.rivals, truth, eps))
    for name, verdict in zip(table.arms, table.verdicts, strict=True):
        k = number[name]
        beaten = any((means[j] - means[k] > eps).all() for j in np.flatnonzero(keeps))
        if verdict == "front" and (beaten or (done and costs[k] > guard.slack)):
            wrong.append(name)
        if verdict == "dominated" and keeps[k] and not any((means[j] > means[k]).all() for j in may_stay):
            wrong.append(name)
    return tuple(wrong)


# Arms that come and go


def added(options: Options, first: int, latest: int, number: int, delta: float) -> Played:
    """Options added at times that were drawn before: by number of samples, the latest; 0: before any outcome."""
    rng = stream(number)
    when = sorted(rng.integers(0, latest + 1, len(options.arms) - first).tolist())
    study = options.study(number, delta, arms=first)
    wrong: set[str] = set()
    samples = 0
    for name, time in zip(options.arms[first:], when, strict=True):
        samples = go_on(study, options, rng, samples, most=time)
        wrong.update(options.wrong(study.verdicts()))
        study.add_arms([name], looked=samples == 0)
        wrong.update(options.wrong(study.verdicts()))
    samples = go_on(study, options, rng, samples)
    wrong.update(options.wrong(study.verdicts()))
    return Played(tuple(sorted(wrong)), study.done, samples)


def added_after_looking(
    options: Options, first: int, number: int, delta: float, least: int = 10, most: int = MOST_SAMPLES
) -> Played:
    """Options added by somebody who looks: each when one that is there seems to be far below its mean."""
    rng = stream(number)
    study = options.study(number, delta, arms=first)
    wrong: set[str] = set()
    samples = 0
    for name in options.arms[first:]:
        for _ in range(20 * least):
            samples = go_on(study, options, rng, samples, most=samples + least)
            table = study.verdicts()
            off = (table.estimates - options.means[: len(table.arms)]) * np.sqrt(np.maximum(1, table.counts))[:, None]
            if study.done or (off < -1.5 * options.noise.max()).any():
                break
        study.add_arms([name])
        wrong.update(options.wrong(study.verdicts()))
    samples = go_on(study, options, rng, samples, most=max(samples, most))
    wrong.update(options.wrong(study.verdicts()))
    return Played(tuple(sorted(wrong)), study.done, samples)


def withdrawn(
    options: Options, every: int, looked: bool, number: int, delta: float, left: int = 2, most: int = MOST_SAMPLES
) -> Played:
    """Every so many samples, or when all is done, an option leaves, the one that looks best or any, to the last few."""
    rng = stream(number)
    study = options.study(number, delta)
    wrong: set[str] = set()
    missed: list[str] = []
    samples = 0
    while len(study.verdicts().arms) > left:
        samples = go_on(study, options, rng, samples, most=samples + every)
        table = study.verdicts()
        wrong.update(options.wrong(table, missed))
        gone = int(table.estimates[:, 0].argmax() if looked else rng.integers(len(table.arms)))
        if looked and table.verdicts[gone] != "dominated":
            missed.append(table.arms[gone])
        study.withdraw(table.arms[gone], looked=looked)
        wrong.update(options.wrong(study.verdicts(), missed))
    samples = go_on(study, options, rng, samples, most=max(samples, most))
    wrong.update(options.wrong(study.verdicts(), missed))
    return Played(tuple(sorted(wrong)), study.done, samples)


# Bench


def benched(
    truth: Truth,
    eps: Sequence[float],
    number: int,
    delta: float,
    most: int = 600,
    drift: float = 0.0,
    fails: Mapping[str, float] | None = None,
) -> Played:
    """A whole bench without commands. fails: how often the runs of each option fail."""
    how = {"most_runs": most, "drift": drift, "fails": fails, "success_eps": SUCCESS_EPS}
    table = made_up_bench(truth, eps=eps, delta=delta, seed=number, **how)  # type: ignore[arg-type]
    wrong = wrong_verdicts(table, truth, eps, fails)
    return Played(tuple(wrong), "undecided" not in table.verdicts, int(table.counts.sum()))


# The cases


def analyze_cases() -> Iterator[DoorCase]:
    """Finished tables."""
    for make, what in ((identical, "A/A"), (just_beyond, "gap 1.02 eps")):
        for order in ROWS:
            for told in (NOTHING, SIGMA, BOUNDS):
                for uneven in (True, False):
                    short = (order, told, uneven) == ("rising", NOTHING, True)
                    play = partial(analyzed, make(told, uneven), order, 100)
                    yield DoorCase(f"{what}, {told}, {differ(uneven)}, rows {order}", play, short=short)
    rows = partial(analyzed, identical(NOTHING, True), "rising", 100, time="time")
    yield DoorCase(f"A/A, {NOTHING}, {differ(True)}, rows rising, in order of time", rows)


def import_cases() -> Iterator[DoorCase]:
    """Tables told to a study in which trials are open."""
    for make, what in ((identical, "A/A"), (just_beyond, "gap 1.02 eps")):
        for told in (NOTHING, SIGMA, BOUNDS):
            for uneven, order in ((True, "rising"), (True, "sorted by option, then value"), (False, "falling")):
                short = (what, told, order) == ("A/A", NOTHING, "rising")
                play = partial(imported, make(told, uneven), order)
                yield DoorCase(f"{what}, {told}, {differ(uneven)}, rows {order}", play, short=short)
    play = partial(imported, identical(NOTHING, False), "rising", time="time")
    yield DoorCase(f"A/A, {NOTHING}, {differ(False)}, rows rising, in order of time", play)


def worker_cases() -> Iterator[DoorCase]:
    """Workers in order of finish."""
    turn = 0
    for make, what in ((identical, "A/A"), (just_beyond, "gap 1.02 eps")):
        for told in (NOTHING, SIGMA, BOUNDS):
            for workers in (64, 256, 16, 4, 1):
                turn += 1
                uneven, fast = turn % 2 == 1, "good" if turn % 4 < 2 else "bad"
                short = (what, told, workers) == ("A/A", NOTHING, 64)
                title = f"{what}, {told}, {differ(uneven)}, {_crew(workers, fast)}"
                yield DoorCase(
                    title, partial(worked, make(told, uneven), Crew(workers, fast)), costly=workers > 64, short=short
                )
    for make, what in ((identical, "A/A"), (just_beyond, "gap 1.02 eps")):
        for told, uneven, fast in ((NOTHING, False, "good"), (SIGMA, True, "bad"), (BOUNDS, True, "good")):
            # what waits counts for some pairs and not for others
            play = partial(worked, make(told, uneven, K=6, L=2), Crew(16, fast))
            yield DoorCase(f"{what}, six options, {told}, {differ(uneven)}, {_crew(16, fast)}", play)
        for uneven, fast in ((True, "good"), (False, "bad")):
            head = f"{what}, {differ(uneven)}"
            patient = Crew(16, fast, lease=SLOW / 3)
            play = partial(worked, make(NOTHING, uneven), patient)
            yield DoorCase(f"{head}, {NOTHING}, {_crew(16, fast)}, leases run over", play)
            strict = Crew(16, fast, lease=SLOW / 3, give_up=SLOW + 0.5)
            play = partial(worked, make(SIGMA, uneven), strict)
            yield DoorCase(f"{head}, {SIGMA}, {_crew(16, fast)}, slow ones given up", play)
            play = partial(worked, make(SIGMA, uneven), Crew(16, fast, fails=True))
            yield DoorCase(f"{head}, {SIGMA}, {_crew(16, fast)}, bad ones fail", play)
            play = partial(worked, make(BOUNDS, uneven), Crew(64, fast, fails=True))
            yield DoorCase(f"{head}, {BOUNDS}, {_crew(64, fast)}, half of the bad ones fail", play)
        for told, uneven in ((SIGMA, True), (NOTHING, False)):
            play = partial(worked, make(told, uneven), Crew(8, fails=True, together=True))
            yield DoorCase(f"{what}, {told}, {differ(uneven)}, 8 workers on an engine, bad ones end all of them", play)
        silent = Crew(64, lease=1.0, give_up=1.0, silent=True)
        play = partial(worked, make(BOUNDS, False), silent)
        yield DoorCase(f"{what}, {BOUNDS}, {differ(False)}, 64 workers, silence is an outcome", play)
    for name in _in_parallel():
        crew = Crew(64, how={"algorithm": name})
        if name != USUAL:
            play = partial(worked, identical(SIGMA, True), crew)
            yield DoorCase(f"A/A, {SIGMA}, {differ(True)}, {_crew(64, 'good')}", play, algorithm=name)
            play = partial(worked, just_beyond(SIGMA, False), replace(crew, fast="bad"))
            yield DoorCase(f"gap 1.02 eps, {SIGMA}, {differ(False)}, {_crew(64, 'bad')}", play, algorithm=name)


def death_cases() -> Iterator[DoorCase]:
    """Workers that die, and outcomes that are durations."""
    blocks = {"samples": None, "blocks": [f"block {k}" for k in range(400)], "rounds": "rounds"}
    for what, on in blocks.items():
        for make, gap in ((identical, "A/A"), (just_beyond, "gap 1.02 eps")):
            for uneven, fast in ((True, "good"), (False, "bad")):
                head = f"{gap}, {what}, {NOTHING}, {differ(uneven)}, 4 workers, {fast} ones fast"
                options = make(NOTHING, uneven)
                short = what == "samples" and uneven and gap == "A/A"
                play = partial(died, options, Mortal(4, fast, blocks=on))
                yield DoorCase(f"{head}, they die at random", play, short=short)
                play = partial(died, options, Mortal(4, fast, suspended=True, blocks=on))
                yield DoorCase(f"{head}, they are suspended and come back", play)


def guard_cases() -> Iterator[DoorCase]:
    """Limits that options must keep."""
    for told, uneven in ((SIGMA, False), (NOTHING, True)):
        head = f"{told}, {differ(uneven)}"
        scale = _eps(told, uneven)
        same = identical(told, uneven, K=4, eps=1.5 * scale)
        play = partial(guarded, same, Guarded((-2.0 * scale,) * 4))
        yield DoorCase(f"A/A, {head}, all keep it", play, short=told == SIGMA)
        play = partial(guarded, same, Guarded((0.0, 0.0, -2.0 * scale, -2.0 * scale), most=300))
        yield DoorCase(f"A/A, {head}, two exactly at the limit", play)
        play = partial(guarded, same, Guarded((0.0, 0.0, 1.02 * scale, -2.0 * scale), slack=scale))
        yield DoorCase(f"A/A but for the cost, {head}, two exactly at the limit, which has slack", play)
        for K, broken in ((20, 1), (20, 5), (4, 3)):
            eps = 2.0 * scale
            best = identical(told, uneven, K=K, eps=eps)
            best.means[:broken] = 1.02 * eps
            best.means[-1] = -1.02 * eps
            costs = (1.5 * scale,) * broken + (-1.5 * scale,) * (K - broken)
            play = partial(guarded, best, Guarded(costs, told=told == SIGMA))
            yield DoorCase(f"{head}, {broken} of {K} break it and beat all others", play, costly=K > 4)


def arm_cases() -> Iterator[DoorCase]:
    """Options that come and go."""
    for told in (SIGMA, NOTHING):
        for uneven in (True, False):
            head = f"{told}, {differ(uneven)}"
            eps = 1.5 * _eps(told, uneven)
            for make, what in ((identical, "A/A"), (just_beyond, "gap 1.02 eps")):
                short = (told, uneven) == (SIGMA, False)
                options = make(told, uneven, K=6, eps=eps)
                play = partial(withdrawn, options, 12, True, most=300)
                yield DoorCase(f"{what}, {head}, the best withdrawn after looking, early", play, short=short)
                play = partial(withdrawn, options, 300, True, most=600)
                yield DoorCase(f"{what}, {head}, the best withdrawn after looking, at the end", play)
                play = partial(withdrawn, options, 12, False)
                yield DoorCase(f"{what}, {head}, any withdrawn without looking", play)
                play = partial(added, make(told, uneven, K=4, eps=eps), 2, 60)
                yield DoorCase(f"{what}, {head}, added at random times", play, short=short and what == "A/A")
            for make, what in ((identical, "A/A"), (just_beyond, "gap 1.02 eps")):
                play = partial(added_after_looking, make(told, uneven, K=4, L=2, eps=eps), 2)
                yield DoorCase(f"{what}, {head}, added when another one looks bad", play, short=short and what == "A/A")
            play = partial(added, identical(told, uneven, K=4, eps=eps), 2, 0)
            yield DoorCase(f"A/A, {head}, added before any outcome", play)


def bench_cases() -> Iterator[DoorCase]:
    """Benches, less is better."""
    hidden = {"j": [(0.0, 0.3), (0.0, 0.02)], "j2": [(-1.5, 0.3), (0.9, 0.02)], "k": [(1.5, 20.0), (1.5, 0.02)]}
    yield DoorCase("beaten by one that is pointless beside another", partial(benched, hidden, (1.0, 1.0), most=150))
    for uneven in (True, False):
        noise = np.resize(UNEVEN, 4) if uneven else np.ones(4)
        eps, head = (3.0 if uneven else 1.5), differ(uneven)
        same: Truth = {name: [(10.0, sd), (5.0, sd)] for name, sd in zip("abcd", noise, strict=True)}
        gap: Truth = {**same, "a": [(10.0 + 1.02 * eps, noise[0]), (5.0 + 1.02 * eps, noise[0])]}
        one: Truth = {name: [(10.0, sd)] for name, sd in zip("abcd", noise, strict=True)}
        yield DoorCase(f"A/A, {head}", partial(benched, same, (eps, eps)), short=uneven)
        yield DoorCase(f"A/A, one metric, {head}", partial(benched, one, (eps,)))
        yield DoorCase(f"gap 1.02 eps, {head}", partial(benched, gap, (eps, eps)))
        yield DoorCase(f"A/A, {head}, all get slower", partial(benched, same, (eps, eps), drift=0.01))
        yield DoorCase(f"gap 1.02 eps, {head}, all get slower", partial(benched, gap, (eps, eps), drift=0.01))
        pair: Truth = {name: one[name] for name in "ab"}
        often = {"both fail in 10%": {"a": 0.1, "b": 0.1}, "b fails in 3%": {"b": 0.03}}
        often["b fails more by 1.02 eps"] = {"a": 0.05, "b": 0.05 + 1.02 * SUCCESS_EPS}
        for what, fails in often.items():
            yield DoorCase(
                f"A/A but for failures, {head}, {what}", partial(benched, pair, (eps,), fails=fails, most=800)
            )


def block_cases() -> Iterator[DoorCase]:
    """Options that are measured on the same blocks."""
    from .on_blocks import cases  # which is made of what is here

    yield from cases()


def file_cases() -> Iterator[DoorCase]:
    """Result files of other tools."""
    from .on_files import cases  # which is made of what is here

    yield from cases()


def law_cases() -> Iterator[DoorCase]:
    """Outcomes that are not normal."""
    from .on_laws import cases  # which is made of what is here

    yield from cases()


def context_cases() -> Iterator[DoorCase]:
    """Contexts that are said to explain the means."""
    from .on_contexts import cases  # which is made of what is here

    yield from cases()


def answer_cases() -> Iterator[DoorCase]:
    """Complete tables of answers."""
    from .on_tables import answer_cases as cases  # which is made of what is here

    yield from cases()


def sequence_cases() -> Iterator[DoorCase]:
    """Files of runs in sequence."""
    from .on_tables import sequence_cases as cases  # which is made of what is here

    yield from cases()


#: By the name that `--family` takes; the most dangerous first.
DOORS: dict[str, Callable[[], Iterator[DoorCase]]] = {
    "workers": worker_cases,
    "deaths": death_cases,
    "analyze": analyze_cases,
    "arms": arm_cases,
    "bench": bench_cases,
    "import": import_cases,
    "guards": guard_cases,
    "blocks": block_cases,
    "files": file_cases,
    "laws": law_cases,
    "contexts": context_cases,
    "answers": answer_cases,
    "sequence": sequence_cases,
}


def differ(uneven: bool) -> str:
    """What to call the noise of options."""
    return "noise differs" if uneven else "noise alike"


def _crew(workers: int, fast: str) -> str:
    return called(Crew(workers, fast))


def called(crew: Crew) -> str:
    """What to call workers."""
    return f"{crew.workers} worker{'s' * (crew.workers > 1)}, {crew.fast} ones fast"


def _in_parallel() -> list[str]:
    """Algorithms that find the front for arms on their own and can be asked before earlier outcomes are in."""
    return [
        name
        for name in available()
        if (record := get(name)).guarantees
        and record.kind == "fixed confidence"
        and record.uses_eps
        and not record.one_metric
        and all(kernels.accepts.pending for kernels in record.kernels)
    ]
