"""The whole of a bench: set up, ask the study, run, tell, until every option has its verdict.

In rounds: which options are run, and in which order, is settled before a round begins, and options are compared by what
they gave in the same round. A round is run in parts, and what a part gave is told, in that order, after its end. While
commands run nothing else does.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from .. import checks
from ..algorithms.contract import Settings
from ..algorithms.registry import resolve
from ..defaults import DELTA
from ..errors import Conflict, InvalidInput, UnknownName
from ..shown import counted
from ..statement import FEWEST_BLOCKS, SUCCESS, Metric
from ..storage import Storage
from ..study import Below, Study, Trial
from ..verdicts import VerdictTable
from .metrics import NoValue, Source
from .options import Option, contexts_of
from .run import Command, Done, Interrupted, Job, Run, Runner

#: A short fixed piece of work, timed before every part of a round: how fast is the machine at the moment?
REFERENCE_LOOPS = 3_000
BUSY = 1.25  # slower than usual (the median of the last REFERENCES) by this factor: something else is going on
REFERENCES = 50
WAIT_SECONDS, WAIT_PER_RUN = 0.005, 0.001  # one wait; and what waiting may cost a run, over all runs
SHELL_RUNS = 10
DRIFT_P = 0.001  # a trend this unlikely by chance is reported
MOST_DRIFT_ROWS = 1_000  # of more runs, as many evenly spaced ones: all pairs of them are compared
PART_SECONDS = 1.0  # longer rounds are run in parts of about that
#: An option whose intervals are wider than this share of its values is run so many times at least.
SHARP_ENOUGH, RUNS_TO_SHOW = 0.1, 20
#: What happens when a run fails: the share of successes becomes a metric, the run is dropped, the option is, all ends.
ON_FAILURE = MEASURE, IGNORE, DROP, STOP = ("measure", "ignore", "drop", "stop")
#: A command that has failed so often and never succeeded is left out.
MOST_FAILURES = 3
#: Runs that were measured in another way are not mixed with these: each has its own studies. 3: as samples that are
#: independent of each other, as everything was before there were rounds in which options are compared.
MEASURED_AS, INDEPENDENT = 4, 3


@dataclass(frozen=True)
class Plan:
    """What a bench does. The same plan finds its study again and goes on with it."""

    options: tuple[Option, ...]
    sources: tuple[Source, ...]
    delta: float = DELTA
    algorithm: str | Settings = "scout"
    seed: int = 0
    warmup: int = 0
    folder: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    stdin: str | None = None
    timeout: float | None = None
    use_features: bool = False  # tell the algorithm the variables as contexts
    inputs: tuple[tuple[str, tuple[Option, ...]], ...] = ()  # what all options are run on, and the options there
    tradeoffs: tuple[str, ...] = ()  # what metrics are worth in units of others
    on_failure: str = MEASURE  # one of ON_FAILURE
    success_eps: float = 0.05  # the difference in the share of successes that does not matter
    title: str = ""  # the question, in the user's words; no part of the name: runs are found under any title

    def __post_init__(self) -> None:
        checks.number("delta of a bench", self.delta, above=0.0, below=1.0)
        checks.one_of("on_failure of a bench", self.on_failure, ON_FAILURE)
        checks.number(f"eps of metric {SUCCESS!r}", self.success_eps, least=0.0)
        if self.title:
            checks.name("title of a bench", self.title)
        if self.tradeoffs and any(source.kind == "rss" for source in self.sources):
            raise InvalidInput("tradeoffs of a bench must be without rss, which may be too small to be measured")

    @property
    def in_rounds(self) -> bool:
        """Whether options are compared within rounds; not where outcomes of one option tell of others."""
        return not self.use_features and not self.inputs and resolve(self.algorithm)[0].name == "scout"

    @property
    def measures_success(self) -> bool:
        """True if the share of successes is a metric once a run fails: in rounds, unless it is measured anyway."""
        told = any(source.kind == "exit" or source.name == SUCCESS for source in self.sources)
        return self.on_failure == MEASURE and self.in_rounds and not self.tradeoffs and not told

    @property
    def drops_runs(self) -> bool:
        """True if an option stays when one of its runs fails."""
        return self.measures_success or self.on_failure == IGNORE

    @property
    def cells(self) -> dict[str, dict[str, Option]]:
        """The options on each input, by its name and theirs. A list that is very short is gone through again."""
        turns = math.ceil(FEWEST_BLOCKS / max(1, len(self.inputs)))
        return {
            name if turn == 0 else f"{name} ({turn + 1})": {option.name: option for option in options}
            for turn in range(turns)
            for name, options in self.inputs
        }

    def name(self) -> str:
        """Return the name of the study."""
        return self.names()[0]

    def names(self) -> list[str]:
        """Return the name that a new study gets, and that of one which an earlier version may have begun."""
        before = [] if self.inputs else [self._named(INDEPENDENT)]
        return [self._named(MEASURED_AS), *before] if self.in_rounds or self.inputs else before

    def _named(self, measured_as: int) -> str:
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
                measured_as,
            ],
        }
        if self.inputs:
            told["inputs"] = [[name, *map(asdict, options)] for name, options in self.inputs]
        if self.measures_success:
            told["success"] = self.success_eps
        if self.tradeoffs:
            told["tradeoffs"] = list(self.tradeoffs)
        return "bench-" + hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]

    def study(self, storage: str | Storage | None) -> Study:
        """Make the study, or find it; one that an earlier version began goes on as it was."""
        there = self._there(storage)
        rounds = "rounds" if self.in_rounds and (there is None or there.name == self.name()) else None
        name = self.name() if there is None else there.name
        arms: Any = [option.name for option in self.options]
        contexts: list[str] = []
        columns = contexts_of(self.options) if self.use_features else {}
        metrics = [source.metric for source in self.sources]
        counts = self.measures_success and rounds is not None
        if counts:
            metrics.append(Metric(SUCCESS, "max", self.success_eps, kind="pass/fail"))
        if columns:
            arms, contexts = {"arm": arms, **columns}, list(columns)
        return Study(
            arms,
            metrics,
            delta=self.delta,
            goal="practical",
            storage=storage,
            name=name,
            blocks=list(self.cells) if self.inputs else rounds,
            guards=[source.guard for source in self.sources if source.guard is not None],
            contexts=contexts,
            algorithm=self.algorithm,
            seed=self.seed,
            lease=7 * 24 * 3600.0,  # this process runs what it asks for
            tradeoffs=self.tradeoffs,
            on_failure="measure" if counts else "void",
            title=self.title if there is None else there.spec.title,  # a study that is there keeps its own
        )

    def _there(self, storage: str | Storage | None) -> Study | None:
        """Return the study, if it is there."""
        for name in self.names():
            with contextlib.suppress(InvalidInput, UnknownName):
                return Study.load(name, storage)
        return None


@dataclass
class Progress:
    """What has happened so far."""

    runs: int = 0  # in this process
    ahead: float = 0.0  # seconds that the runs which are about to be asked for will take, about
    busy: int = 0  # runs of parts of rounds before which the machine was busy
    waited: int = 0  # times that it was waited for
    short: int = 0  # runs that took less than twice as long as starting their shell
    seconds: float = 0.0  # spent in runs and what goes before and after them
    failed: dict[str, str] = field(default_factory=dict)  # options of which a run failed, and the last they said
    dropped: dict[str, str] = field(default_factory=dict)  # those that were left out because of that
    shell_seconds: float = 0.0  # what starting a shell takes, subtracted


class Failed(InvalidInput):
    """An option failed and the bench was to end then."""


class Campaign:
    """A plan at work.

    runs: run each option until it has so many runs, whatever is known by then. None: until all is decided.
    """

    def __init__(self, plan: Plan, storage: str | Storage | None, *, runs: int | None = None) -> None:
        self.plan = plan
        self.runs = None if runs is None else checks.whole("runs of a bench", runs, least=1)
        self.study = plan.study(storage)
        self.by_name = {option.name: option for option in plan.options}
        self.cells = plan.cells
        self.capture = any(source.kind in ("stdout", "json") for source in plan.sources)
        self.tolerates_failure = any(source.kind == "exit" for source in plan.sources)
        self.progress = Progress()
        self.runs_before = self.study.counts()["told"]
        self._ready: set[tuple[str, str]] = set()  # options that have run in this process, and their commands
        self._seconds: dict[str, float] = {}  # that options took the last time
        self._failures: Counter[tuple[str, str]] = Counter()  # of options and their commands, in this process
        self._succeeded: set[tuple[str, str]] = set()
        self._runner = Runner()
        self._turn = 0
        self._waiting: list[str] = []  # what is left of the round
        self._asked_for: dict[str, Trial] = {}  # the trials of that, where options are compared within rounds
        self._rng = np.random.default_rng(plan.seed)
        self._references: deque[float] = deque(maxlen=REFERENCES)

    def steps(self, budget: Callable[[Progress], bool] = lambda _: False) -> Iterator[Progress]:
        """Run one round after the other until all is decided, or `budget` says that it is spent."""
        with self._runner:
            try:
                yield from self._steps(budget)
            finally:
                self._cut_short()

    def _steps(self, budget: Callable[[Progress], bool]) -> Iterator[Progress]:
        study = self.study
        for left in study.open:
            study.fail(left, "interrupted", cut=True)
        self._take_back([each.option for each in study.standing().withdrawn if each.kind == "failed"])
        if any(option.shell for option in self.plan.options):
            self.progress.shell_seconds = self._shell()
        while not budget(self.progress):
            trials = self._ask(budget)
            if not trials:
                return
            self._run_part(trials)
            yield self.progress

    def _cut_short(self) -> None:
        """Say what of the last round is not run: no options are compared in it, for time is an outcome."""
        for trial in self._asked_for.values():
            self.study.fail(trial, "not run: the round was cut short", cut=True)
        self._waiting, self._asked_for = [], {}

    def _run_part(self, trials: Sequence[Trial]) -> None:
        """Run what was asked for, and tell what came out in the order of asking."""
        study, waiting, failures = self.study, deque(trials), dict[str, tuple[str, bool]]()
        try:
            for outcome in self._measured([self._option(trial) for trial in trials]):
                trial = waiting[0]
                try:
                    if isinstance(outcome, OptionFailed):
                        raise outcome
                    study.tell(trial, outcome)
                    self._succeeded.add((trial.arm, self._option(trial).command))
                    self.progress.runs += 1
                except (OptionFailed, InvalidInput) as failure:
                    failures[trial.arm] = str(failure), (out := self._is_out(trial, failure))
                    study.fail(trial, str(failure))
                    self.progress.runs += not out
                waiting.popleft()
        finally:
            for trial in waiting:
                with contextlib.suppress(Conflict):  # told, just before
                    study.fail(trial, "interrupted", cut=True)
        for name, (why, out) in failures.items():
            self.progress.failed[name] = why
            if not out:
                continue
            self.progress.dropped[name] = why
            if self.plan.on_failure == STOP or len(study.verdicts().arms) == 1:
                lines = (f"option {name!r} failed: {why}" for name, why in self.progress.dropped.items())
                raise Failed("\n".join(lines)) from None
            self._leave_out(name, f"failed: {why}")

    def _is_out(self, trial: Trial, failure: OptionFailed | InvalidInput) -> bool:
        """Return True if a failure ends an option: it cannot be run, or never succeeded, or one failure is enough."""
        what = trial.arm, self._option(trial).command
        self._failures[what] += 1
        if not self.plan.drops_runs or not isinstance(failure, OptionFailed) or not failure.of_run:
            return True
        if what in self._succeeded or self._failures[what] < MOST_FAILURES:
            return False
        table = self.study.proven()
        return bool(self.plan.inputs or table.seen is None or np.isnan(table.seen[table.place[trial.arm], 0]))

    def _option(self, trial: Trial) -> Option:
        """What is run for a trial: an option, on an input if there are any."""
        return self.by_name[trial.arm] if not self.plan.inputs else self.cells[str(trial.block)][trial.arm]

    def _leave_out(self, name: str, why: str) -> None:
        """An option that fails has no values: its leaving rests on no outcome."""
        self.study.withdraw(name, why, kind="failed")

    def _take_back(self, names: Sequence[str]) -> None:
        """Somebody may have mended what failed."""
        if names and not self.plan.use_features:
            self.study.add_arms(names, looked=False)

    def unknowable(self) -> list[str]:
        """Say what more runs do not tell: values below what can be measured, and numbers that never varied.

        On inputs: that the answer is about single runs. And which options failed in some of their runs.
        """
        table = self.study.verdicts()
        noisy = [source.name for source in self.plan.sources if not source.metric.exact]
        said = self._failed_runs(table)
        if self.plan.inputs and noisy:
            said.append(f"each option runs once on each input: the noise of these runs is in its {', '.join(noisy)}")
        if "undecided" not in table.verdicts:
            return said
        still, bounds = table.never_varied, table.below
        for column, source in enumerate(self.plan.sources):
            low = [arm for k, arm in enumerate(table.arms) if bounds[k, column]]
            if len(low) > 1:
                said.append(f"{source.name} of {', '.join(low)} is below what can be measured here: not compared")
            if self.plan.inputs:
                continue
            same = [arm for k, arm in enumerate(table.arms) if still[k, column]]
            if same:
                said.append(
                    f"{source.name} was the same in all runs of {', '.join(same)}: that proves nothing, unless it "
                    f"always is; if so, say --exact {source.name}; if each run gives 0 or 1, say -m "
                    f"{source.name}:{source.metric.direction}:pass-fail"
                )
        return said

    def _failed_runs(self, table: VerdictTable) -> list[str]:
        """Say how often options failed, if the share of successes is judged."""
        if len(table.metrics) == len(self.plan.sources):
            return []
        runs, failures = Counter[str](), Counter[str]()
        for _, arm, values, _ in self.study.observations():
            runs[arm] += 1
            failures[arm] += values[len(self.plan.sources)] == 0.0
        said = []
        for arm in table.arms:
            why = f": {self.progress.failed[arm]}" if arm in self.progress.failed else ""
            said += [f"{arm} failed in {failures[arm]:,} of {counted(runs[arm], 'run')}{why}"] if failures[arm] else []
        others = ", ".join(source.name for source in self.plan.sources)
        return [*said, f"the share of successes is judged, too; {others}: of runs that succeed"]

    @property
    def decided(self) -> bool:
        """Whether every option has its verdict, and those of the front keep their limits for sure."""
        return self.study.done

    def runs_ahead(self) -> float:
        """Estimate how many more runs it takes."""
        left = len(self.study.arms) * len(self.cells) - int(self.study.proven().counts.sum())
        return min(self.study.needed(), left) if self.plan.inputs else self.study.needed()

    def _in_question(self) -> list[str]:
        """What to run next, each once: what bears on a verdict, else what people want to see more of."""
        standing = self.study.standing()
        table = standing.table
        if not table.counts.any():
            return list(table.arms)
        unlimited = set(standing.unguarded) & set(table.front) - self._below_limits(table)
        return sorted({*self.study.bearing(), *unlimited} or _hardly_known(table))

    def _below_limits(self, table: VerdictTable) -> set[str]:
        """Options that ran often, and have a value too small to be measured where there is a limit: nobody can tell."""
        limited = [source.guard is not None for source in self.plan.sources]
        hidden = table.below[:, : len(limited)][:, limited].any(axis=1) & (table.counts >= RUNS_TO_SHOW)
        return {arm for arm, so in zip(table.arms, hidden, strict=True) if so}

    def _ask(self, budget: Callable[[Progress], bool]) -> list[Trial]:
        """Return what to run next; nothing: every option has its verdict, or more runs are of no use.

        In rounds, each in an order of its own; where outcomes of one option tell of others, or nobody but the algorithm
        may choose, what it asks for.
        """
        if self.plan.inputs:
            return self._ask_on_inputs(budget)
        if self.runs is not None:
            return self._ask_for_all(budget)
        if not self._waiting and self.plan.use_features and not self.decided and not self.study.stuck:
            self._turn = (self._turn + 1) % (len(self.by_name) + 1)
            if self._turn:  # and now and then a round, for the algorithm may think that it knows all
                return [self._asked(None)]
        self._waiting = [name for name in self._waiting if name in self._asked_for or name not in self.study.withdrawn]
        if not self._waiting:
            self._begin_round(self._in_question(), budget)
        return [self._asked(name) for name in self._part(budget)]

    def _begin_round(self, names: Sequence[str], budget: Callable[[Progress], bool]) -> None:
        """Settle what the next round has, and in which order: as many as the budget seems to allow."""
        self._waiting = self._rng.permutation(list(names)).tolist()
        if self._waiting and self.study.in_rounds:
            self._waiting = self._allowed(budget)
            self._asked_for = {trial.arm: trial for trial in self.study.ask_round(self._waiting)}

    def _ask_on_inputs(self, budget: Callable[[Progress], bool]) -> list[Trial]:
        """Return what to run next, as the algorithm asks: options in question on one input, then on the next one."""
        if self.study.done or self.study.stuck:
            return []
        self._waiting = self.study.arms
        n, self._waiting = len(self._allowed(budget, PART_SECONDS)), []
        return self.study.ask(n)

    def _ask_for_all(self, budget: Callable[[Progress], bool]) -> list[Trial]:
        """Return what to run next so that each option gets its number of runs, in rounds, whatever is known."""
        lacking = self.lacking()
        self._waiting = [name for name in self._waiting if name in self._asked_for or name in lacking]
        if not self._waiting:
            self._begin_round(list(lacking), budget)
        return [self._asked(name) for name in self._part(budget)]

    def lacking(self) -> dict[str, int]:
        """Return the options that have not run as often as was asked for, and how many runs each of them lacks."""
        table = self.study.proven()
        left = {arm: (self.runs or 0) - int(count) for arm, count in zip(table.arms, table.counts, strict=True)}
        return {arm: runs for arm, runs in left.items() if runs > 0}

    def _part(self, budget: Callable[[Progress], bool]) -> list[str]:
        """Take the next part of the round: what takes PART_SECONDS, and the budget allows; one at least.

        Long runs so are kept and shown one by one; what has not run yet may be long.
        """
        part = self._allowed(budget, PART_SECONDS)
        del self._waiting[: len(part)]
        return part

    def _allowed(self, budget: Callable[[Progress], bool], seconds: float = math.inf) -> list[str]:
        """Return the first of what is left: as many as take so many seconds, and the budget allows; one at least."""
        ahead = 0.0
        for n, name in enumerate(self._waiting):
            then = replace(self.progress, runs=self.progress.runs + n, ahead=ahead)
            if n and (ahead >= seconds or budget(then)):
                return self._waiting[:n]
            ahead += self._seconds.get(name, PART_SECONDS)
        return list(self._waiting)

    def _asked(self, name: str | None) -> Trial:
        """Return the trial of an option; None: of one that the algorithm chooses."""
        if name is not None and name in self._asked_for:
            return self._asked_for.pop(name)
        return self.study.ask(arm=name)

    def _measured(self, options: Sequence[Option]) -> Iterator[dict[str, float | Below] | OptionFailed]:
        """Run each option once and yield what it gave; a part that is cut short yields what had ended, and raises."""
        wrong: dict[int, OptionFailed] = {}
        jobs: dict[int, Job] = {}
        for place, option in enumerate(options):
            try:
                jobs[place] = self._job(option)
            except InvalidInput as problem:
                wrong[place] = OptionFailed(str(problem))
        self._wait_until_quiet(len(jobs))
        cut = None
        try:
            done = self._runner.block(
                list(jobs.values()),
                folder=self.plan.folder,
                environment=dict(self.plan.environment),
                stop_on_failure=self.plan.on_failure == STOP,
            )
        except Interrupted as problem:
            done, cut = problem.done, problem
        ended = dict(zip(jobs, done, strict=False))
        for place, option in enumerate(options):
            if place in wrong:
                yield wrong[place]
            elif place in ended:
                yield self._outcome(option, ended[place])
            else:
                break
        if cut is not None:
            raise cut

    def _job(self, option: Option) -> Job:
        """All that is run for one measurement of an option."""

        def beside(text: str | None) -> Command | None:
            how = {"timeout": self.plan.timeout, "capture": False, "measured": False}
            return None if text is None else Command(text, option.shell, **how)  # type: ignore[arg-type]

        first = (option.name, option.command) not in self._ready
        command = Command(
            option.command,
            shell=option.shell,
            stdin=self.plan.stdin,
            timeout=self.plan.timeout,
            capture=self.capture,
            may_fail=self.tolerates_failure,
            sizes=tuple(source.path(option.variables) for source in self.plan.sources if source.kind == "size"),
        )
        return Job(
            command,
            setup=beside(option.setup) if first else None,
            prepare=beside(option.prepare),
            cleanup=beside(option.cleanup),
            rounds=1 + (self.plan.warmup if first else 0),
        )

    def _outcome(self, option: Option, done: Done) -> dict[str, float | Below] | OptionFailed:
        """What a measurement gave: a number for each metric, or why there is none."""
        self.progress.seconds += done.seconds
        self._seconds[option.name] = done.seconds
        for what, run in done.steps:
            if problem := self._problem(what, run):
                return OptionFailed(problem + _said(run), of_run=what == "command" and not run.problem)
        self._ready.add((option.name, option.command))
        run = [run for what, run in done.steps if what == "command"][-1]
        if option.shell:
            shell = self.progress.shell_seconds
            self.progress.short += run.seconds - shell < shell
            # of a command that takes no longer than its shell, noise would be left
            run = replace(run, seconds=max(run.seconds - shell, 0.5 * run.seconds))
        try:
            return {source.name: source.value(run, option.variables) for source in self.plan.sources}
        except NoValue as problem:
            return OptionFailed(f"{problem}{_said(run)}", of_run=True)

    def _problem(self, what: str, run: Run) -> str:
        """Say what went wrong with a command, if anything."""
        measured = what == "command"
        if run.problem:
            return run.problem if measured else f"{what}: {run.problem}"
        if run.timed_out:
            return f"{'' if measured else f'{what} '}took longer than {self.plan.timeout:g} s"
        if run.code == 0 or (measured and self.tolerates_failure):
            return ""
        return f"exit code {run.code}" if measured else f"{what} ended with exit code {run.code}"

    def _shell(self) -> float:
        """What it takes to start a shell that does nothing."""
        done = self._runner.block([Job(Command(":", shell=True, capture=False))] * 2 * SHELL_RUNS)
        return statistics.median(job.steps[0][1].seconds for job in done[SHELL_RUNS:])  # the first ones warm up

    def _wait_until_quiet(self, runs: int) -> None:
        """Rather measure while the machine runs at its usual speed; the choice knows nothing of the outcome."""
        progress, busy = self.progress, self._is_busy()
        progress.busy += runs if busy else 0
        while busy and (progress.waited + 1) * WAIT_SECONDS <= WAIT_PER_RUN * progress.runs:
            progress.waited += 1
            time.sleep(WAIT_SECONDS)
            busy = self._is_busy()

    def _is_busy(self) -> bool:
        self._references.append(min(_reference(), _reference()))
        return self._references[-1] > BUSY * statistics.median(self._references)

    def drift(self) -> list[str]:
        """Say of which metrics the values rose or fell with time, for all options alike; inputs differ anyway."""
        return [] if self.plan.inputs else drift(self.study, self.plan.sources)


def drift(study: Study, sources: Sequence[Source]) -> list[str]:
    """Return a sentence for each metric whose deviations from the options' means follow time.

    Tested by Kendall's tau of deviation and order at level DRIFT_P, and said only if the change is above eps.
    """
    from scipy.stats import kendalltau, theilslopes

    told = len(sources)
    rows = [(name, values[:told]) for _, name, values, _ in study.observations() if None not in values[:told]]
    if len(rows) > MOST_DRIFT_ROWS:
        rows = [rows[k] for k in np.linspace(0, len(rows) - 1, MOST_DRIFT_ROWS).astype(int)]
    found = []
    for column, source in enumerate(sources):
        metric = source.metric
        values = metric.compared(np.array([row[column] for _, row in rows], float))
        names = np.array([name for name, _ in rows])
        deviation = values.copy()
        for name in set(names.tolist()):
            deviation[names == name] -= values[names == name].mean()
        if len(values) < 20 or not deviation.any():
            continue
        order = np.arange(len(values))
        if kendalltau(order, deviation).pvalue < DRIFT_P:
            change = float(theilslopes(deviation, order)[0] * len(values))
            if abs(change) > metric.tolerance:
                by = f"{100 * np.expm1(change):+.1f}%" if metric.relative else f"{change:+.3g} {metric.unit}".rstrip()
                found.append(f"{source.name} drifted by {by} from the first to the last run, for all options together")
    return found


def _hardly_known(table: VerdictTable) -> list[str]:
    """Return options of the front whose values people want to see more of, up to RUNS_TO_SHOW runs."""
    eps = np.array([metric.tolerance for metric in table.metrics])
    sizes = np.where([metric.relative for metric in table.metrics], 1.0, np.abs(table.centres))
    hazy = (table.widths > np.maximum(SHARP_ENOUGH * sizes, eps)).any(axis=1) & (table.counts < RUNS_TO_SHOW)
    return [arm for arm, verdict, so in zip(table.arms, table.verdicts, hazy, strict=True) if so and verdict == "front"]


class OptionFailed(Exception):
    """An option did not give its numbers. of_run: this run failed; else the option cannot be run."""

    def __init__(self, why: str, of_run: bool = False) -> None:
        super().__init__(why)
        self.of_run = of_run


def _said(done: Run) -> str:
    tail = done.stderr.strip()
    return f"; stderr: {tail[-500:]}" if tail else ""


def _reference() -> float:
    began = time.perf_counter()
    total = 0
    for number in range(REFERENCE_LOOPS):
        total += number
    return time.perf_counter() - began
