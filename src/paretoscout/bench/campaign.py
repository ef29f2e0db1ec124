"""The whole of a bench: set up, ask the study, run, tell, until every option has its verdict."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .. import checks
from ..algorithms.contract import Settings
from ..errors import Conflict, InvalidInput
from ..problem import Metric
from ..storage import Storage
from ..study import Guard, Study, Trial
from ..verdicts import VerdictTable
from .metrics import NoValue, Source
from .options import Option, contexts_of
from .practical import Doubt, block, hardly_known, judged
from .run import LauncherGone, Run, Runner

#: A short fixed piece of work, timed before every run: how fast is the machine at the moment?
REFERENCE_LOOPS = 3_000
BUSY = 1.25  # slower than usual (the median of the last REFERENCES) by this factor: something else is going on
REFERENCES = 50
WAIT_SECONDS, WAIT_PER_RUN = 0.005, 0.001  # one wait; and what waiting may cost a run, over all runs
SHELL_RUNS = 10
DRIFT_P = 0.001  # a trend this unlikely by chance is reported
MOST_DRIFT_ROWS = 1_000  # of more runs, as many evenly spaced ones: all pairs of them are compared
FAILED = "failed: "  # begins the reason for which an option that failed is left out


@dataclass(frozen=True)
class Plan:
    """What a bench does. The same plan finds its study again and goes on with it."""

    options: tuple[Option, ...]
    sources: tuple[Source, ...]
    delta: float = 0.05
    algorithm: str | Settings = "scout"
    seed: int = 0
    warmup: int = 0
    folder: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    stdin: str | None = None
    timeout: float | None = None
    use_features: bool = False  # tell the algorithm the variables as contexts

    def __post_init__(self) -> None:
        checks.number("delta of a bench", self.delta, above=0.0, below=1.0)

    def name(self) -> str:
        """Return a name for the study that changes with everything that changes the answer."""
        told = {
            "options": [asdict(option) for option in self.options],
            "sources": [asdict(source) for source in self.sources],
            "rest": [
                self.delta,
                str(self.algorithm),
                self.seed,
                os.path.abspath(self.folder or "."),
                self.environment,
                self.stdin,
                self.timeout,
                self.use_features,
            ],
        }
        return "bench-" + hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]

    def limits(self) -> list[tuple[str, Guard]]:
        """The limits of metrics: as they were given, and as the study knows them."""
        return [
            (
                f"{source.name} {sense} {limit:g} {source.unit}".rstrip(),
                Guard(source.name, sense, math.log(limit) if source.relative else limit),
            )
            for source in self.sources
            for sense, limit in [source.guard or ("", 0.0)]
            if sense
        ]

    def study(self, storage: str | Storage | None) -> Study:
        """Make the study, or find it."""
        metrics = [
            Metric(
                source.name, source.direction, source.eps or None, bounds=(0.0, 1.0) if source.kind == "exit" else None
            )
            for source in self.sources
        ]
        guards = [guard for _, guard in self.limits()]
        arms: Any = [option.name for option in self.options]
        contexts: list[str] = []
        columns = contexts_of(self.options) if self.use_features else {}
        if columns:
            arms, contexts = {"arm": arms, **columns}, list(columns)
        return Study(
            arms,
            metrics,
            delta=0.5 * self.delta,  # the other half is for the intervals, on which practical.py rests
            storage=storage,
            name=self.name(),
            guards=guards,
            contexts=contexts,
            algorithm=self.algorithm,
            seed=self.seed,
            lease=7 * 24 * 3600.0,  # this process runs what it asks for
        )


@dataclass
class Progress:
    """What has happened so far."""

    runs: int = 0  # in this process
    busy: int = 0  # runs before which the machine was busy
    waited: int = 0  # times that it was waited for
    short: int = 0  # runs that took less than twice as long as starting their shell
    seconds: float = 0.0  # spent in runs and what goes before and after them
    dropped: dict[str, str] = field(default_factory=dict)  # options that failed, and the last they said
    shell_seconds: float = 0.0  # what starting a shell takes, subtracted


class Failed(InvalidInput):
    """An option failed and the bench was to end then."""


class Campaign:
    """A plan at work."""

    def __init__(self, plan: Plan, storage: str | Storage | None, *, stop_on_failure: bool = False) -> None:
        self.plan, self.stop_on_failure = plan, stop_on_failure
        self.study = plan.study(storage)
        self.by_name = {option.name: option for option in plan.options}
        self.capture = any(source.kind in ("stdout", "json") for source in plan.sources)
        self.tolerates_failure = any(source.kind == "exit" for source in plan.sources)
        self.progress = Progress()
        self.runs_before = self.study.counts()["told"]
        self._ready: set[str] = set()
        self._runner: Runner
        self._may_choose = self.study.takes_unasked  # or else only the algorithm may
        self._turn = 0
        self._waiting: list[str] = []  # what is left of the block
        self._rng = np.random.default_rng(plan.seed)
        self._references: deque[float] = deque(maxlen=REFERENCES)

    def steps(self, budget: Callable[[Progress], bool] = lambda _: False) -> Iterator[Progress]:
        """Run one measurement after the other until all is decided, or `budget` says that it is spent."""
        with Runner() as self._runner:
            yield from self._steps(budget)

    def _steps(self, budget: Callable[[Progress], bool]) -> Iterator[Progress]:
        study = self.study
        for left in study.open:
            study.fail(left, "interrupted")
        failed = [name for name, why in study.withdrawn.items() if why.startswith(FAILED)]
        if failed and not self.plan.use_features:
            study.add_arms(failed)  # somebody may have mended them
        if any(option.shell for option in self.plan.options):
            self.progress.shell_seconds = self._shell()
        while not budget(self.progress):
            trial = self._ask()
            if trial is None:
                return
            option = self.by_name[trial.arm]
            try:
                values = self._measure(option)
                try:
                    study.tell(trial, values)
                except InvalidInput as problem:
                    raise _OptionFailed(str(problem)) from None
            except _OptionFailed as failure:
                study.fail(trial, str(failure))
                self.progress.dropped[option.name] = str(failure)
                if self.stop_on_failure or len(study.verdicts().arms) == 1:
                    lines = (f"option {name!r} failed: {why}" for name, why in self.progress.dropped.items())
                    raise Failed("\n".join(lines)) from None
                study.withdraw(option.name, f"{FAILED}{failure}")
                yield self.progress
                continue
            except BaseException:
                with contextlib.suppress(Conflict):  # told, just before
                    study.fail(trial, "interrupted")
                raise
            self.progress.runs += 1
            yield self.progress

    def judged(self) -> tuple[VerdictTable, list[Doubt]]:
        """What is proven by now, as people act on it, and what is in doubt."""
        return judged(self.study.verdicts(), self.plan.sources, doubting=self._may_choose)

    @property
    def decided(self) -> bool:
        """Whether every option has its verdict, and those of the front keep their limits for sure."""
        if not self._may_choose:
            return self.study.done
        table, _ = self.judged()
        return "undecided" not in table.verdicts and not self._unlimited(table)

    def _unlimited(self, table: VerdictTable) -> list[str]:
        """Options of the front of which it is not known whether they keep their limits."""
        if not self.study.spec.guards:
            return []
        return [name for name in self.study.open_guards if name in table.front]

    def _block(self) -> list[str]:
        """What to run next, each once: what bears on a verdict, else what people want to see more of."""
        table, doubts = self.judged()
        verdicts = {*block(table, doubts, self.plan.sources), *self._unlimited(table)}
        return sorted(verdicts or hardly_known(table, self.plan.sources))

    def _ask(self) -> Trial | None:
        """Return what to run next; None: nothing, every option has its verdict.

        In blocks, each in an order of its own; where outcomes of one option tell of others, or nobody but the algorithm
        may choose, what it asks for.
        """
        while self._waiting:
            name = self._waiting.pop()
            if name not in self.progress.dropped:
                return self._asked(name)
        if not self._may_choose:
            return None if self.study.done else self._asked(None)
        if self.plan.use_features and not self.study.done and not self.decided:
            self._turn = (self._turn + 1) % (len(self.by_name) + 1)
            if self._turn:  # and now and then a block, for the algorithm may think that it knows all
                return self._asked(None)
        self._waiting = self._rng.permutation(self._block()).tolist()
        return self._asked(self._waiting.pop()) if self._waiting else None

    def _asked(self, name: str | None) -> Trial:
        trial: Trial = self.study.ask(arm=name)
        return trial

    def _measure(self, option: Option) -> dict[str, float]:
        if option.name not in self._ready:
            self._run(option.setup, option, "setup")
            for _ in range(self.plan.warmup):
                self._once(option)
            self._ready.add(option.name)
        self._wait_until_quiet()
        done = self._once(option)
        self.progress.short += option.shell and done.seconds < self.progress.shell_seconds
        try:
            return {source.name: source.value(done, option.variables) for source in self.plan.sources}
        except NoValue as problem:
            raise _OptionFailed(f"{problem}{_said(done)}") from None

    def _once(self, option: Option) -> Run:
        began = time.perf_counter()
        self._run(option.prepare, option, "prepare")
        done = self._command(option.command, option)
        failure = ""
        if done.timed_out:
            failure = f"took longer than {self.plan.timeout:g} s{_said(done)}"
        elif done.code != 0 and not self.tolerates_failure:
            failure = f"exit code {done.code}{_said(done)}"
        try:
            self._run(option.cleanup, option, "cleanup")
        except _OptionFailed as problem:
            failure = failure or str(problem)
        self.progress.seconds += time.perf_counter() - began
        if failure:
            raise _OptionFailed(failure)
        return done

    def _run(self, command: str | None, option: Option, what: str) -> None:
        if command is None:
            return
        done = self._command(command, option, timed=False)
        if done.code != 0:
            raise _OptionFailed(f"{what} ended with exit code {done.code}{_said(done)}")

    def _command(self, command: str, option: Option, timed: bool = True) -> Run:
        try:
            done = self._runner.run(
                command,
                shell=option.shell,
                folder=self.plan.folder,
                environment=dict(self.plan.environment) or None,
                stdin=self.plan.stdin if timed else None,
                timeout=self.plan.timeout if timed else None,
                capture=self.capture and timed,
            )
        except LauncherGone:
            raise
        except InvalidInput as problem:
            raise _OptionFailed(str(problem)) from None
        if not option.shell or not timed:
            return done
        # of a command that takes no longer than its shell, noise would be left
        return Run(**{**vars(done), "seconds": max(done.seconds - self.progress.shell_seconds, 0.5 * done.seconds)})

    def _shell(self) -> float:
        """What it takes to start a shell that does nothing."""
        times = [self._runner.run(":", shell=True, capture=False).seconds for _ in range(2 * SHELL_RUNS)]
        return statistics.median(times[SHELL_RUNS:])  # the first ones warm up

    def _wait_until_quiet(self) -> None:
        """Rather measure while the machine runs at its usual speed; the choice knows nothing of the outcome."""
        progress, busy = self.progress, self._is_busy()
        progress.busy += busy
        while busy and (progress.waited + 1) * WAIT_SECONDS <= WAIT_PER_RUN * progress.runs:
            progress.waited += 1
            time.sleep(WAIT_SECONDS)
            busy = self._is_busy()

    def _is_busy(self) -> bool:
        self._references.append(min(_reference(), _reference()))
        return self._references[-1] > BUSY * statistics.median(self._references)

    def drift(self) -> list[str]:
        """Say of which metrics the values rose or fell with time, for all options alike."""
        return drift(self.study, self.plan.sources)


def drift(study: Study, sources: Sequence[Source]) -> list[str]:
    """Return a sentence for each metric whose deviations from the options' means follow time.

    Tested by Kendall's tau of deviation and order at level DRIFT_P, and said only if the change is above eps.
    """
    from scipy.stats import kendalltau, theilslopes

    rows = [(name, values) for _, name, values, _ in study.observations()]
    if len(rows) > MOST_DRIFT_ROWS:
        rows = [rows[k] for k in np.linspace(0, len(rows) - 1, MOST_DRIFT_ROWS).astype(int)]
    found = []
    for column, source in enumerate(sources):
        values = np.array([row[column] for _, row in rows], float)
        names = np.array([name for name, _ in rows])
        deviation = values.copy()
        for name in set(names.tolist()):
            deviation[names == name] -= values[names == name].mean()
        if len(values) < 20 or not deviation.any():
            continue
        order = np.arange(len(values))
        if kendalltau(order, deviation).pvalue < DRIFT_P:
            change = float(theilslopes(deviation, order)[0] * len(values))
            if abs(change) > source.eps:
                by = f"{100 * np.expm1(change):+.1f}%" if source.relative else f"{change:+.3g} {source.unit}".rstrip()
                found.append(f"{source.name} drifted by {by} from the first to the last run, for all options together")
    return found


class _OptionFailed(Exception):
    pass


def _said(done: Run) -> str:
    tail = done.stderr.strip()
    return f"; stderr: {tail[-500:]}" if tail else ""


def _reference() -> float:
    began = time.perf_counter()
    total = 0
    for number in range(REFERENCE_LOOPS):
        total += number
    return time.perf_counter() - began
