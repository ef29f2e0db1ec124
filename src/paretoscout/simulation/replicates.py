"""`simulate`: replicates in threads, the same for the same seed whatever the number of workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .. import checks
from ..algorithms.contract import Algorithm, Settings
from ..algorithms.registry import resolve
from ..algorithms.states import copy_state
from ..defaults import DELTA
from ..engines import cores
from ..environments import begun, environment_of
from ..errors import InvalidInput
from ..geometry import are_right, gaps
from ..guarantee import Guarantee, assumptions, guarantee_of, shown
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.dispatch import Basis
from ..practical import Judge
from ..problem import Problem
from ..start import setup_of
from ..statement import Eps
from ..streams import Reused, algorithm_stream, environment_stream
from .play import LOGGED, Log
from .progress import Progress, compiling, progress_bar
from .results import Result
from .run import Run

#: Where a run is cut off unless the caller says otherwise: some problems (ties at eps = 0) are never decided.
DEFAULT_MAX_SAMPLES = 10_000_000
#: The longest stretch of rounds, if it is not fewer than so many; progress and Ctrl-C wait no longer than this.
SLICE_SECONDS = 0.05
LEAST_ROUNDS = 16
N_LOGGED = 200
#: From so many arms on people's verdicts take more time in kernels than in Python.
MANY_TO_JUDGE = 200


def simulate(
    problem: Problem,
    algorithm: str | Settings = "scout",
    *,
    eps: Eps | None = None,
    delta: float = DELTA,
    replicates: int = 100,
    seed: int = 0,
    max_samples: int | None = None,
    budget: int | None = None,
    goal: str | int = "front",
    target: str | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> Result:
    """Run an algorithm many times on a problem and keep samples, regret, and whether it was right.

    algorithm: a name (`algorithms.available()`) or a settings object (`algorithms.PFIwR(exploration=0.1)`).
    eps: the difference that does not matter: one number, one per metric, or {name: number}. None: the metrics' own eps,
    or 0 where a metric has none.
    delta: the probability of error that is allowed.
    replicates: how many times the algorithm runs.
    seed: the result depends on it alone, not on the number of workers.
    max_samples: a replicate that gets there counts as not stopped and not successful. None: 10 million.
    budget: how many samples there are in all. Algorithms that plan for a budget need it; the others are cut off there.
    goal: what is asked for, and what counts as success. "front": the whole front. "cover": arms that come within eps of
    every arm of the front. A number: so many arms of the front. Every returned arm must be optimal up to eps.
    "practical": arms that are worth having, see docs/verdicts.md.
    target: of a table with blocks, what the answer is about: "list" or "population", see `problems.table`. None: that
    of the problem.
    workers: threads. None: one per core.
    progress: show a bar on standard error. None: show it on a terminal, if the run takes over two seconds.

    Ctrl-C ends the run within a fraction of a second and returns the replicates finished so far; `result.asked` says
    how many there should have been.

    >>> import paretoscout as ps
    >>> result = ps.simulate(ps.problems.load("s5"), eps=0.05, replicates=20, seed=1)
    >>> bool(result.success.all())
    True
    """
    if not isinstance(problem, Problem):
        raise InvalidInput(f"problem of simulate must be made by paretoscout.problems, got {type(problem).__name__}")
    problem = problem if target is None else problem.about_blocks(target)
    record, settings = resolve(algorithm, noise_given=problem.statement.knows_sigma)
    n_replicates = checks.whole("replicates of simulate", replicates, least=1)
    n_workers = cores() if workers is None else checks.whole("workers of simulate", workers, least=1)
    run = Simulation(record, settings, problem, eps, delta, seed, max_samples, budget, goal)
    run.once = n_replicates == 1
    with compiling(progress):
        run.compile()
    with progress_bar(progress, n_replicates, f"{record.name} on {problem.name}") as bar:
        finished, interrupted = in_threads(run.replicate, n_replicates, run.threads(min(n_workers, n_replicates)), bar)
    if interrupted and not finished:
        raise KeyboardInterrupt
    return run.result(finished, n_replicates)


def changed(algorithm: Algorithm, settings: Settings) -> dict[str, Any]:
    """Return the settings that are not the usual ones."""
    usual = asdict(algorithm.settings())
    return {name: value for name, value in asdict(settings).items() if value != usual[name]}


def label_of(algorithm: Algorithm, settings: Settings) -> str:
    """Return the name of an algorithm, and those of its settings that are not the usual ones."""
    return " ".join(
        [algorithm.name, *(f"{name}={shown(value)}" for name, value in changed(algorithm, settings).items())]
    )


@dataclass(frozen=True)
class Outcome:
    """One finished replicate."""

    index: int
    samples: int
    regret: float
    stopped: bool
    returned: BoolArray  # (K,)
    pulls: IntArray  # (K,)
    curve: FloatArray  # (G,)


class Simulation:
    """All that the replicates of one simulation share."""

    def __init__(
        self,
        algorithm: Algorithm,
        settings: Settings,
        problem: Problem,
        eps: Eps | None,
        delta: float,
        seed: int,
        max_samples: int | None,
        budget: int | None = None,
        goal: str | int = "front",
    ) -> None:
        self.algorithm, self.settings, self.problem = algorithm, settings, problem
        self.seed = checks.whole("seed of a run", seed, least=0)
        most = DEFAULT_MAX_SAMPLES if max_samples is None else max_samples
        self.cap = checks.whole("max_samples of a run", most, least=1)
        if budget is not None:
            self.cap = min(self.cap, checks.whole("budget of a run", budget, least=1))
        self.asked = problem.asked(eps, delta, goal, budget)
        self.setup, self.units = setup_of(self.asked, settings), self.asked.units
        self.environment = environment_of(problem, self.units)
        self.means = self.units.oriented(problem.means)
        self.gaps = gaps(self.means).star
        self.first_state, self.constants = algorithm.start(settings, self.setup)
        self.kernels = algorithm.kernels_of(self.first_state)
        self.once = False  # there is but one replicate: with a million arms a copy of the state matters
        self.guarantee = self.guarantee_by(None)
        self.streams = Reused()
        self.slice_rounds = LEAST_ROUNDS  # how many fit into a slice, as learned so far by all workers
        self.log_rounds = np.unique(np.round(np.geomspace(1, self.cap, N_LOGGED)).astype(np.int64))

    def guarantee_by(self, basis: Basis | None) -> Guarantee:
        """Return what is promised of verdicts that rest on this."""
        assumed = assumptions(self.asked, self.kernels, self.settings, self.setup, basis)
        return guarantee_of(self.asked, self.algorithm, self.settings, assumed)

    def threads(self, wanted: int) -> int:
        """How many to use. People's verdicts on few arms are worked out in Python: threads wait for each other."""
        return 1 if self.setup.goal == "practical" and len(self.means) < MANY_TO_JUDGE else wanted

    def compile(self) -> None:
        """Compile all there is, once, in the thread that hears Ctrl-C."""
        Replicate(self, 0, self.first_state).compile()

    def replicate(self, index: int, report: Callable[[int], bool]) -> Outcome | None:
        """Play one replicate in slices; `report(rounds)` returns False to give up."""
        streams = self.streams(self.seed, index)
        replicate = Replicate(self, index, self.first_state if self.once else None, streams)
        while not replicate.finished:
            if not report(self.advance(replicate)):
                return None
        return replicate.outcome()

    def advance(self, replicate: Replicate, most: int | None = None) -> int:
        """Play one slice, of no more than so many rounds; return how many were played."""
        before, began = replicate.samples, time.perf_counter()
        rounds = self.slice_rounds if most is None else min(most, self.slice_rounds)
        replicate.advance(rounds)
        played = replicate.samples - before
        if rounds == self.slice_rounds:
            # the next one is at most twice as long as this one, which may have been quick by chance
            fitting = played * SLICE_SECONDS / (time.perf_counter() - began)
            self.slice_rounds = max(LEAST_ROUNDS, int(min(fitting, 2 * self.slice_rounds)))
        return played

    def right(self, fronts: BoolArray) -> BoolArray:
        """Judge returned sets (R, K) by the success condition."""
        return are_right(self.means, fronts, self.units.eps, self.setup.goal)

    def result(self, finished: list[Outcome], n_replicates: int) -> Result:
        """Put the finished replicates in order and judge them by the success condition."""
        finished.sort(key=lambda outcome: outcome.index)
        fronts = np.array([outcome.returned for outcome in finished])
        stopped = np.array([outcome.stopped for outcome in finished])
        told = self.setup.sigma
        return Result(
            algorithm=self.algorithm.name,
            label=label_of(self.algorithm, self.settings),
            settings=asdict(self.settings),
            problem=self.problem.name,
            arms=self.problem.arms,
            metrics=tuple(metric.name for metric in self.asked.judged_by),
            assumed="; ".join(self.guarantee.assumptions),
            guarantee=str(self.guarantee),
            sigma=self.units.ones * np.full(self.means.shape, np.nan if told is None else told),
            divisors=self.units.ones,
            eps=self.units.eps,
            delta=self.setup.delta,
            seed=self.seed,
            max_samples=self.cap,
            budget=self.setup.budget,
            goal=self.setup.goal,
            asked=n_replicates,
            replicates=np.array([outcome.index for outcome in finished]),
            samples=np.array([outcome.samples for outcome in finished]),
            regret=np.array([outcome.regret for outcome in finished]),
            success=self.right(fronts) & stopped,
            stopped=stopped,
            fronts=fronts,
            pulls=(pulls := np.array([outcome.pulls for outcome in finished])),
            cost=pulls @ self.setup.cost,
            regret_rounds=self.log_rounds,
            regret_curves=np.array([outcome.curve for outcome in finished]),
        )


class Replicate(Run):
    """One run of a simulation."""

    def __init__(
        self,
        simulation: Simulation,
        index: int,
        state: Any = None,
        streams: tuple[np.random.Generator, np.random.Generator] | None = None,
    ) -> None:
        """state: where it begins, which it changes; None: a copy of the first state. streams: None: new ones."""
        self.index, self.cap = index, simulation.cap
        rounds = simulation.log_rounds
        if streams is None:
            streams = algorithm_stream(simulation.seed, index), environment_stream(simulation.seed, index)
        super().__init__(
            simulation.kernels,
            simulation.setup,
            copy_state(simulation.first_state) if state is None else state,
            simulation.constants,
            begun(simulation.environment, simulation.setup.listed, streams[1]),
            streams,
            log=Log(rounds, np.zeros(len(rounds)), np.zeros(1), np.zeros(2, np.int64)),
            gaps=simulation.gaps,
            judge=Judge() if simulation.setup.goal == "practical" else None,
        )

    @property
    def finished(self) -> bool:
        """Whether every arm has its verdict, the cap is reached, or more samples are of no use."""
        return self.stopped or self.stuck or self.samples >= self.cap

    def advance(self, n_rounds: int) -> None:
        """Play up to `n_rounds` more rounds, within the cap."""
        super().advance(min(n_rounds, self.cap - self.samples))

    def outcome(self) -> Outcome:
        """Return what there is to keep of a finished replicate."""
        verdicts = self.verdicts()
        regret = float(self.log.total[0])
        self.log.regret[self.log.counters[LOGGED] :] = regret
        returned = self.returned(verdicts.status)
        return Outcome(self.index, self.samples, regret, self.stopped, returned, verdicts.counts, self.log.regret)


def in_threads(
    replicate: Callable[[int, Callable[[int], bool]], Outcome | None], n: int, n_workers: int, bar: Progress
) -> tuple[list[Outcome], bool]:
    """Run replicates 0, ..., n - 1; return those finished, and whether Ctrl-C cut it short."""
    waiting = iter(range(n))
    lock = threading.Lock()
    give_up = threading.Event()
    finished: list[Outcome] = []
    failures: list[BaseException] = []

    def report(rounds: int) -> bool:
        bar.samples(rounds)
        return not give_up.is_set()

    def work() -> None:
        try:
            while not give_up.is_set():
                with lock:
                    index = next(waiting, None)
                if index is None:
                    return
                outcome = replicate(index, report)
                if outcome is not None:
                    finished.append(outcome)
                    bar.replicate()
        except BaseException as failure:
            failures.append(failure)
            give_up.set()

    threads = [threading.Thread(target=work, name=f"replicates-{number}", daemon=True) for number in range(n_workers)]
    interrupted = False
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(timeout=0.05)
            bar.refresh()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        give_up.set()
        for thread in threads:
            if thread.is_alive():  # Ctrl-C may come before all of them are started
                thread.join()
    if failures:
        raise failures[0]
    return finished, interrupted
