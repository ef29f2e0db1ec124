"""One measurement takes a thousand times as long as the others: how many more are made meanwhile, and how long it takes.

Studies are simulated with a clock of their own: workers ask when they are free and tell when they are ready, nobody
sleeps. Each study is played twice, with the same outcomes and durations: in one of the two plays one measurement, which
was drawn before among all that the other play made, takes 1,000 times the median. `python -m benchmarks.slow_measurement`
prints the table; with `--validity`, how often a verdict is wrong where durations depend on outcomes.
"""

from __future__ import annotations

import heapq
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import beta

from paretoscout.audit.doors import Clock
from paretoscout.errors import NotSupported
from paretoscout.practical import wrong_ones
from paretoscout.statement import Metric
from paretoscout.study import Study, Trial

#: How long the slow one takes; others take 1 in the median.
SLOW = 1000.0
WORKERS = (4, 16, 64)
RUNS = 100
#: Where it is counted how often verdicts are wrong.
DELTA = 0.3
#: Outcomes so far from their mean, in deviations, are the slow ones where durations depend on outcomes.
EXTREME = 1.28
#: A study that has not ended after so many measurements does not end.
MOST = 20_000
#: In how many turns verdicts are read once.
READ_EVERY = 8
#: What blocks and rounds have in common, in units of the noise.
COMMON = 5.0


@dataclass(frozen=True)
class Kind:
    """Options, and how they are measured and judged."""

    means: tuple[float, ...]
    eps: float = 0.5
    noise: float = 1.0
    how: dict[str, Any] | None = None  # settings of the study
    blocks: int = 0  # measured on so many blocks
    rounds: bool = False

    def study(self, seed: int, clock: Clock, **more: Any) -> Study:
        """A study of the options."""
        how = {"delta": 0.05, **(self.how or {}), **more}
        if self.blocks:
            how["blocks"] = [f"block {n}" for n in range(self.blocks)]
        elif self.rounds:
            how["blocks"] = "rounds"
        arms = how.pop("arms", [f"option {k}" for k in range(len(self.means))])
        metrics = [Metric("score", "max", eps=self.eps)]
        sigma = how.get("sigma")
        how["sigma"] = None if sigma is None else self.noise
        return Study(arms, metrics, seed=seed, storage="memory", lease=1e9, clock=clock, **how)

    def truth(self, outcomes: Outcomes) -> Sequence[float]:
        """The means that verdicts are about: of a list those on just its blocks."""
        if (self.how or {}).get("target") != "list":
            return self.means
        noise = [[outcomes.drawn(arm, n) for n in range(self.blocks)] for arm in range(len(self.means))]
        return [mean + self.noise * sum(of_arm) / self.blocks for mean, of_arm in zip(self.means, noise, strict=True)]


def line(K: int) -> tuple[float, ...]:
    """Means that grow from option to option."""
    return tuple(0.75 * k for k in range(K))


KINDS: dict[str, Kind] = {
    "samples, practical": Kind(line(4)),
    "samples, goal front": Kind(line(4), how={"goal": "front"}),
    "samples, sigma told": Kind(line(6), how={"goal": "front", "sigma": 1.0}),
    "blocks of a list": Kind(line(4), blocks=200, how={"target": "list"}),
    "blocks of a population": Kind(line(4), blocks=200, how={"target": "population"}),
    "rounds": Kind(line(4), rounds=True),
}


@dataclass(frozen=True)
class Played:
    """One play."""

    decided: bool
    measured: int
    seconds: float
    wrong: tuple[str, ...] = ()


#: How long a measurement takes, by its number, what it gave and a stream.
Durations = Callable[[int, float, np.random.Generator], float]


def usual(slow: int | None, number: int, drawn: float, rng: np.random.Generator) -> float:
    """About 1; the slow one 1,000."""
    seconds = float(np.exp(0.3 * rng.standard_normal()))
    return SLOW if number == slow else seconds


def biased(slow: str, number: int, drawn: float, rng: np.random.Generator) -> float:
    """The best outcomes take 1,000 times as long as others, or the worst ones; a tenth of all."""
    seconds = float(np.exp(0.3 * rng.standard_normal()))
    return SLOW * seconds if (drawn if slow == "good" else -drawn) > EXTREME else seconds


class Outcomes:
    """What comes out of a measurement: it depends on the option and how often it was measured, on nothing else."""

    def __init__(self, kind: Kind, seed: int) -> None:
        self.kind, self.seed = kind, seed
        self.times: Counter[str] = Counter()
        self.numbers = 0

    def of(self, trial: Trial) -> tuple[int, float, float, np.random.Generator]:
        """The number of the measurement, what was drawn, the outcome, and the stream of its duration."""
        arm = int(trial.arm.removeprefix("option "))
        number, self.numbers = self.numbers, self.numbers + 1
        nth = self.times[trial.arm]
        self.times[trial.arm] += 1
        common = 0.0
        if trial.block is not None:
            nth = int(str(trial.block).removeprefix("block "))
            common = COMMON * float(np.random.default_rng([self.seed, 1, nth]).standard_normal())
        drawn = self.drawn(arm, nth)
        value = self.kind.means[arm] + self.kind.noise * drawn + common
        return number, drawn, value, np.random.default_rng([self.seed, 3, number])

    def drawn(self, arm: int, nth: int) -> float:
        """What makes an outcome good or bad."""
        return float(np.random.default_rng([self.seed, 2, arm, nth]).standard_normal())


def play(kind: Kind, workers: int, seed: int, durations: Durations, **more: Any) -> Played:
    """Workers that ask when they are free and tell when they are ready, until all is decided."""
    clock, outcomes = Clock(), Outcomes(kind, seed)
    study = kind.study(seed, clock, **more)
    busy: list[tuple[float, int, list[tuple[Trial, float, float]]]] = []  # when ready, turn, trial, value, what is next
    truth, wrong, turn = kind.truth(outcomes), set[str](), 0
    while not study.finished and outcomes.numbers < MOST:
        while len(busy) < workers:
            try:
                trials = study.ask_round() if kind.rounds else [study.ask()]
            except NotSupported:
                break
            measured = []
            for trial in trials:
                number, drawn, value, rng = outcomes.of(trial)
                measured.append((trial, value, durations(number, drawn, rng)))
            heapq.heappush(busy, (clock.now + measured[0][2], turn, measured))
            turn += 1
        if not busy:
            break
        clock.now, _, measured = heapq.heappop(busy)
        (trial, value, _), *rest = measured
        study.tell(trial, {"score": value})
        if rest:  # of a round: one after the other
            heapq.heappush(busy, (clock.now + rest[0][2], turn, rest))
        turn += 1
        if turn % READ_EVERY == 0:
            wrong |= wrong_by(truth, kind.eps, study)
    return Played(study.done, outcomes.numbers, clock.now, tuple(sorted(wrong | wrong_by(truth, kind.eps, study))))


def wrong_by(truth: Sequence[float], eps: float, study: Study) -> set[str]:
    """Options whose verdicts are wrong now."""
    table = study.verdicts()
    means = {f"option {k}": np.array([mean]) for k, mean in enumerate(truth)}
    return set(wrong_ones(table.arms, table.verdicts, table.rivals, means, np.array([eps])))


@dataclass(frozen=True)
class Compared:
    """A kind and a number of workers."""

    kind: str
    workers: int
    measured: tuple[float, float]  # in the mean, where nothing is slow, and where one is
    seconds: tuple[float, float]  # the same of the time; of the slow one, what it took is left out
    worst: float  # the largest ratio of measurements of any run
    undecided: int

    @property
    def ratios(self) -> tuple[float, float]:
        """How many times as many measurements, and how many times as long."""
        return self.measured[1] / self.measured[0], self.seconds[1] / self.seconds[0]


def compare(name: str, workers: int, runs: int = RUNS) -> Compared:
    """Play each study with nothing slow, and with one slow measurement."""
    kind, rows, undecided = KINDS[name], [], 0
    for seed in range(runs):
        fast = play(kind, workers, seed, partial(usual, None))
        slow = int(np.random.default_rng([seed, 4]).integers(fast.measured))
        late = play(kind, workers, seed, partial(usual, slow))
        undecided += (not fast.decided) + (not late.decided)
        rows.append((fast.measured, late.measured, fast.seconds, max(0.0, late.seconds - SLOW)))
    means = np.array(rows, float).mean(axis=0).tolist()
    worst = max(late / fast for fast, late, *_ in rows)
    return Compared(name, workers, (means[0], means[1]), (means[2], means[3]), worst, undecided)


def table(kinds: Sequence[str] = tuple(KINDS), workers: Sequence[int] = WORKERS, runs: int = RUNS) -> None:
    """Print a line for each kind and number of workers."""
    print(f"{'':24} workers  measured: usual  one slow  ratio  worst   time: usual  one slow  ratio  undecided")
    for name in kinds:
        for n in workers:
            row = compare(name, n, runs)
            print(
                f"{name:24} {n:7} {row.measured[0]:16.1f} {row.measured[1]:9.1f} {row.ratios[0]:6.2f} {row.worst:6.2f}"
                f" {row.seconds[0]:13.1f} {row.seconds[1]:9.1f} {row.ratios[1]:6.2f} {row.undecided:10}",
                flush=True,
            )


def failures(name: str, workers: int, gap: bool, slow: str, runs: int = RUNS, delta: float = DELTA) -> tuple[int, int]:
    """Return in how many runs a verdict was wrong at any time that it was read, and how many ended undecided.

    gap: one option is worse than the others by 1.02 eps; otherwise all are the same.
    """
    kind = replace(KINDS[name], means=(0.0, 0.51, 0.51) if gap else (0.0,) * 3)
    played = [play(kind, workers, 10_000 + seed, partial(biased, slow), delta=delta) for seed in range(runs)]
    return sum(bool(each.wrong) for each in played), sum(not each.decided for each in played)


def table_of_failures(kinds: Sequence[str] = tuple(KINDS), workers: Sequence[int] = (16,), runs: int = RUNS) -> None:
    """Print how often a verdict is wrong where durations depend on outcomes."""
    print(f"{'':24} workers  options        slow ones  wrong of {runs}  95% interval  undecided   (allowed: {DELTA:g})")
    for name in kinds:
        for n in workers:
            for gap in (False, True):
                for slow in ("good", "bad"):
                    wrong, undecided = failures(name, n, gap, slow, runs)
                    low, high = interval(wrong, runs)
                    print(
                        f"{name:24} {n:7}  {'gap 1.02 eps' if gap else 'all the same':13}  {slow:9} {wrong:12}"
                        f"  {low:5.3f} to {high:5.3f} {undecided:8}",
                        flush=True,
                    )


def interval(failed: int, runs: int) -> tuple[float, float]:
    """The exact 95% interval of a share."""
    low = 0.0 if failed == 0 else float(beta.ppf(0.025, failed, runs - failed + 1))
    return low, 1.0 if failed == runs else float(beta.ppf(0.975, failed + 1, runs - failed))


if __name__ == "__main__":
    words = sys.argv[1:]
    runs = int(words[words.index("--runs") + 1]) if "--runs" in words else RUNS
    chosen = [name for name in KINDS if name in words] or list(KINDS)
    if "--validity" in words:
        table_of_failures(chosen, runs=runs)
    else:
        table(chosen, runs=runs)
