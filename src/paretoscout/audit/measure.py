"""Run algorithms and doors on their cases and judge them: measured failure, with an exact interval, against delta.

A row is looked at a few times, after 20 replicates, 40, 80 and so on, and ends as soon as more failures than delta are
proven, or fewer, unless it is to be played to its end. All looks together call a right algorithm broken with
probability at most `FALSE_ALARM`. With no more they end the row of an algorithm that fails too often as if it were
right. A test computes how surely one that fails with probability 0.2 is found out at delta 0.1.
"""

from __future__ import annotations

import math
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Any

from ..algorithms.contract import Algorithm, Settings
from ..errors import InvalidInput, NotSupported
from ..geometry import gaps
from ..shown import counted
from ..simulation.progress import Progress, compiling, progress_bar
from ..simulation.replicates import Outcome, Simulation, cores, in_threads
from ..simulation.results import rate_interval
from .doors import DoorCase, Played
from .families import Case

FALSE_ALARM = 1e-4  # per row
FULL, COSTLY_SHARE, SHORT = 1000, 0.6, 600  # replicates
DOOR_FULL, DOOR_SHORT = 300, 40  # replicates of a door
FIRST_LOOK = 20
LAST_LOOK_SHARE = 0.8  # of the probability of a false alarm; the looks before it share the rest

# Algorithms that claim nothing are run to see what happens, not for as long as it takes.
UNCLAIMED_SECONDS = 10.0  # a row; if no run gets an answer in that time, those that were begun are failures
#: A row of one that claims a guarantee ends after so many seconds, and says so. Runs that are cut off are no failures.
CLAIMED_SECONDS = 600.0
#: So does a row of a door, of which there are many, at the next look.
DOOR_SECONDS = 20.0

#: Replicates of doors that have numbers of their own, for each seed.
MOST_REPLICATES = 1_000_000

#: Gaps below this part of eps are not asked of algorithms that do not know eps.
HOPELESS = 0.5

KEPT, BROKEN, SKIPPED = "kept", "BROKEN", "skipped"
FAILS, OPEN = "fails (claims none)", "open (claims none)"  # open: more failures than delta are not proven
BEYOND = "beyond the promise"  # the case breaks what the promise rests on, and the failures are shown


@dataclass(frozen=True)
class Contender:
    """An algorithm to be audited, with the settings that were asked for; these go before what a case tells."""

    record: Algorithm
    asked: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Its name and the settings."""
        return " ".join([self.record.name, *(f"{name}={value}" for name, value in self.asked.items())])

    def settings(self, case: Case) -> Settings:
        """Return the settings for a case, or say what the algorithm cannot be told."""
        known = {field.name for field in fields(self.record.settings)}
        unknown = [name for name in case.tells if name not in known]
        if unknown:
            raise InvalidInput(f"cannot be told: {', '.join(unknown)}")
        return self.record.settings(**{**case.tells, **self.asked})


@dataclass(frozen=True)
class Row:
    """What came out for one algorithm, case and delta; of a door, whose name is that of the family, or on its own."""

    algorithm: str
    claims: bool
    family: str
    case: str
    tells: dict[str, Any]
    delta: float
    verdict: str
    reason: str = ""  # why it was skipped or cut short
    replicates: int = 0
    failures: int = 0  # with the capped ones
    capped: int = 0  # runs without an answer at the limit of samples or time
    interval: tuple[float, float] = (0.0, 1.0)  # of the failure rate, the one that is judged by
    samples: float = math.nan  # mean
    microseconds: float = math.nan  # of one core, per sample
    door: bool = False
    undecided: int = 0  # of a door: runs without an answer at the limit of samples, which are no failures there

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers and texts, ready for JSON."""
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in asdict(self).items()
        }


def looks(replicates: int) -> list[tuple[int, float]]:
    """After how many replicates a row is looked at, and the probability of a false alarm allowed at each look.

    >>> [n for n, _ in looks(100)]
    [20, 40, 80, 100]
    """
    sizes = []
    size = FIRST_LOOK
    while size < replicates:
        sizes.append(size)
        size *= 2
    if not sizes:
        return [(replicates, FALSE_ALARM)]
    early = (1.0 - LAST_LOOK_SHARE) * FALSE_ALARM / len(sizes)
    return [*((size, early) for size in sizes), (replicates, LAST_LOOK_SHARE * FALSE_ALARM)]


def planned(case: Case | DoorCase, replicates: int) -> int:
    """How many replicates a case gets at most."""
    return math.ceil(COSTLY_SHARE * replicates) if case.costly else replicates


def audit(
    contenders: Sequence[Contender],
    cases: Sequence[Case],
    *,
    deltas: Sequence[float] = (0.1,),
    replicates: int = FULL,
    to_the_end: bool = False,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | None = None,
) -> Iterator[Row]:
    """Measure every contender on every case, one row at a time. Ctrl-C raises KeyboardInterrupt between two rows."""
    rows = [(contender, case, delta) for contender in contenders for case in cases for delta in deltas]
    total = sum(planned(case, replicates) for _, case, _ in rows)
    with progress_bar(progress, total, "audit") as bar:
        behind = 0
        for contender, case, delta in rows:
            n = planned(case, replicates)
            n_workers = cores() if workers is None else workers
            yield measure(contender, case, delta, n, to_the_end, seed, n_workers, bar)
            behind += n
            bar.finished = behind  # a row that ended early counts as a whole one
            bar.refresh()


def measure(
    contender: Contender,
    case: Case,
    delta: float,
    replicates: int,
    to_the_end: bool,
    seed: int,
    workers: int,
    bar: Progress,
) -> Row:
    """Run one row to its end: until the verdict is clear, or all replicates are in."""
    record = contender.record.under(contender.record.settings(**contender.asked))
    claims = record.guarantees
    head: dict[str, Any] = {"algorithm": contender.label, "claims": claims, "family": case.family, "case": case.title}
    head |= {"tells": case.tells, "delta": delta}
    if isinstance(case.problem, str):
        return Row(**head, verdict=SKIPPED, reason=case.problem)
    try:
        settings = contender.settings(case)
        goal = 1 if record.one_metric and case.goal == "front" else case.goal  # one best arm is all it looks for
        run = Simulation(record, settings, case.problem, case.eps, delta, seed, case.max_samples, goal=goal)
        if (
            case.goal == "front"
            and not record.uses_eps
            and gaps(run.means).required.min() < HOPELESS * run.units.eps.min()
        ):
            raise NotSupported("looks for the exact front, which arms so close leave undecided")
    except (InvalidInput, NotSupported) as refusal:
        return Row(**head, verdict=SKIPPED, reason=str(refusal))
    with compiling(bar.wanted):
        run.compile()

    began, threads = time.monotonic(), run.threads(min(workers, replicates))
    patience = UNCLAIMED_SECONDS if not claims else math.inf if to_the_end else CLAIMED_SECONDS
    deadline = began + patience
    finished: list[Outcome] = []
    cut_off = 0  # runs begun, if none of them got an answer in time
    for size, tail in looks(replicates):
        batch = _Batch(run, len(finished), deadline)
        n = size - len(finished)
        outcomes, interrupted = in_threads(batch.replicate, n, min(threads, n), bar)
        if interrupted:
            raise KeyboardInterrupt
        finished += outcomes
        if claims and not finished:
            return Row(**head, verdict=SKIPPED, reason=f"no run ended within {patience:g} s")
        cut_off = 0 if finished else len(batch.begun)
        played = len(finished) + cut_off
        result = run.result(finished, replicates) if finished else None
        failures = cut_off + (0 if result is None else int((~result.success).sum()))
        interval = rate_interval(failures, played, 1.0 - 2.0 * tail)
        fails = interval[0] > delta and not case.beyond  # else it is about the number
        keeps = interval[1] < delta and not case.beyond and (case.costly or not to_the_end)
        if fails or keeps or time.monotonic() > deadline:
            break
    fails = interval[0] > delta
    verdict = {(True, True): BROKEN, (True, False): KEPT, (False, True): FAILS, (False, False): OPEN}
    samples = 0 if result is None else int(result.samples.sum())
    return Row(
        **head,
        verdict=BEYOND if claims and case.beyond else verdict[claims, fails],
        reason=f"stopped after {patience:g} s" if time.monotonic() > deadline else case.beyond,
        replicates=played,
        failures=failures,
        capped=cut_off + (0 if result is None else int((~result.stopped).sum())),
        interval=interval,
        samples=samples / len(finished) if finished else math.nan,
        microseconds=1e6 * (time.monotonic() - began) * threads / samples if samples else math.nan,
    )


# Doors


@contextmanager
def _processes(workers: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """Give a `map` that works in so many processes; replicates of doors are plain Python."""
    if workers == 1:
        yield map
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold
    ignore = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for this process, which ends the others
    pool = ProcessPoolExecutor(workers, context, initializer=signal.signal, initargs=ignore)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)


def audit_doors(
    cases: Sequence[DoorCase],
    *,
    deltas: Sequence[float] = (0.1,),
    replicates: int = DOOR_FULL,
    to_the_end: bool = False,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | None = None,
) -> Iterator[Row]:
    """Measure every case of the doors, one row at a time."""
    rows = [(case, delta) for case in cases for delta in deltas]
    workers = cores() if workers is None else workers
    total = sum(planned(case, replicates) for case, _ in rows)
    with _processes(workers) as in_order, progress_bar(progress, total, "doors") as bar:
        behind = 0
        for case, delta in rows:
            n = planned(case, replicates)
            yield measure_door(case, delta, n, to_the_end, seed, in_order, workers, bar)
            behind += n
            bar.finished = behind  # a row that ended early counts as a whole one
            bar.refresh()


def measure_door(
    case: DoorCase,
    delta: float,
    replicates: int,
    to_the_end: bool,
    seed: int,
    in_order: Callable[..., Iterable[Played]],
    workers: int,
    bar: Progress,
) -> Row:
    """Run one row of a door to its end: until it is clear, all replicates are in, or its time is over."""
    began, patience = time.monotonic(), math.inf if to_the_end else DOOR_SECONDS
    finished: list[Played] = []
    for size, tail in looks(replicates):
        numbers = range(seed * MOST_REPLICATES + len(finished), seed * MOST_REPLICATES + size)
        for played in in_order(partial(_played, case, delta), numbers):
            finished.append(played)
            bar.samples(played.samples)
            bar.replicate()
            bar.refresh()
        failures = sum(bool(played.wrong) for played in finished)
        interval = rate_interval(failures, len(finished), 1.0 - 2.0 * tail)
        clear = interval[0] > delta or (interval[1] < delta and not to_the_end)
        if clear or time.monotonic() - began > patience:
            break
    samples = sum(played.samples for played in finished)
    return Row(
        algorithm=case.algorithm,
        claims=True,
        family=case.door,
        case=case.title,
        tells={},
        delta=delta,
        verdict=BROKEN if interval[0] > delta else KEPT,
        reason="" if clear or len(finished) == replicates else f"stopped after {patience:g} s",
        replicates=len(finished),
        failures=failures,
        interval=interval,
        samples=samples / len(finished),
        microseconds=1e6 * (time.monotonic() - began) * workers / samples if samples else math.nan,
        door=True,
        undecided=sum(not played.decided for played in finished),
    )


def _played(case: DoorCase, delta: float, number: int) -> Played:
    return case.play(number, delta)


class _Batch:
    """The replicates between two looks, each given up at the deadline."""

    def __init__(self, run: Simulation, first: int, deadline: float) -> None:
        self.run, self.first, self.deadline = run, first, deadline
        self.begun: list[int] = []

    def replicate(self, index: int, report: Callable[[int], bool]) -> Outcome | None:
        """Play one replicate; None if there was no time for it."""
        if time.monotonic() > self.deadline:
            return None
        self.begun.append(index)
        return self.run.replicate(
            self.first + index, lambda rounds: report(rounds) and time.monotonic() < self.deadline
        )


def broken(rows: Sequence[Row]) -> bool:
    """Whether an algorithm that claims a guarantee was caught failing more often than it may."""
    return any(row.verdict == BROKEN for row in rows)


def summary(rows: Sequence[Row]) -> str:
    """Say in plain words what came out."""
    parts = []
    claimed = [row for row in rows if row.claims and row.verdict not in (SKIPPED, BEYOND)]
    if claimed:
        bad = sorted({_who(row) for row in claimed if row.verdict == BROKEN})
        n = sum(row.verdict == BROKEN for row in claimed)
        parts.append(
            f"BROKEN in {n} of {counted(len(claimed), 'row')}: {', '.join(bad)}. What is claimed does not hold."
            if bad
            else f"Every claimed guarantee was kept, in {counted(len(claimed), 'row')}."
        )
    for name in dict.fromkeys(row.algorithm for row in rows if not row.claims):
        theirs = [row for row in rows if row.algorithm == name and row.verdict != SKIPPED]
        n = sum(row.verdict == FAILS for row in theirs)
        if theirs:
            parts.append(f"{name} claims none, and fails in {n} of {counted(len(theirs), 'row')}.")
    beyond = [row for row in rows if row.verdict == BEYOND]
    if beyond:
        worst = max(row.failures / row.replicates for row in beyond)
        parts.append(
            f"{counted(len(beyond), 'row')} {'breaks' if len(beyond) == 1 else 'break'} what the promise rests on; "
            f"failures there: up to {worst:.0%}."
        )
    undecided, played = sum(row.undecided for row in rows), sum(row.replicates for row in rows if row.door)
    if undecided:
        parts.append(f"{undecided:,} of {counted(played, 'run')} of doors ended undecided, which is no failure.")
    skipped = sum(row.verdict == SKIPPED for row in rows)
    if skipped:
        parts.append(f"{counted(skipped, 'row')} {'was' if skipped == 1 else 'were'} skipped.")
    return " ".join(parts) or "Nothing was run."


def _who(row: Row) -> str:
    return f"door {row.family!r} with {row.algorithm}" if row.door else row.algorithm
