"""Run algorithms and doors on their cases and judge them: measured failure, with an exact interval, against delta.

A row is looked at a few times, after 20 replicates, 40, 80 and so on, and ends as soon as more failures than delta are
proven, or fewer, unless it is to be played to its end. All looks together call a right algorithm broken with
probability at most `FALSE_ALARM`. With no more they end the row of an algorithm that fails too often as if it were
right. A test computes how surely one that fails with probability 0.2 is found out at delta 0.1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from ..algorithms.contract import Algorithm, Settings
from ..engines import cores, opened
from ..errors import InvalidInput, NotSupported
from ..geometry import gaps
from ..shown import counted
from ..simulation.results import rate_interval
from ..sweeps.cells import Cell, Plan, Play, Report
from ..sweeps.runs import TIME, RunCell
from ..sweeps.schedule import finish
from ..sweeps.sources import code_digest
from ..sweeps.store import Memory, folder_of
from ..sweeps.store import Row as Played
from .doors import DoorCase
from .families import Case

FALSE_ALARM = 1e-4  # per row
FULL, COSTLY_SHARE, SHORT = 1000, 0.6, 600  # replicates
DOOR_FULL, DOOR_SHORT = 300, 40  # replicates of a door
FIRST_LOOK = 20
LAST_LOOK_SHARE = 0.8  # of the probability of a false alarm; the looks before it share the rest

# Algorithms that claim nothing are run to see what happens, not for as long as it takes.
UNCLAIMED_SECONDS = 10.0  # of work on a row; if no run gets an answer in that time, those that were begun are failures
#: A row of one that claims a guarantee ends after so many seconds of work, and says so. Runs that are cut off are no
#: failures.
CLAIMED_SECONDS = 600.0
#: So does a row of a door, of which there are many, but not before the first look.
DOOR_SECONDS = 40.0

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


@dataclass(frozen=True)
class Judge:
    """Says when a row is clear: its failures are surely more than delta, or fewer."""

    replicates: int
    delta: float
    ends_broken: bool = True  # a row that is clear ends: where it fails too often, and where it does not
    ends_kept: bool = True

    def interval(self, failures: int, played: int) -> tuple[float, float]:
        """Return the interval of the failure rate at the look that is next, or now."""
        tail = next(tail for size, tail in looks(self.replicates) if size >= played)
        return rate_interval(failures, played, 1.0 - 2.0 * tail)

    def clear(self, interval: tuple[float, float]) -> bool:
        """Whether a row ends here."""
        low, high = interval
        return (self.ends_broken and low > self.delta) or (self.ends_kept and high < self.delta)

    def plan(self, seconds: float, **more: Any) -> Plan:
        """Return how often its cell is played: until it is clear, at most for so many seconds of work."""
        sizes = tuple(size for size, _ in looks(self.replicates))
        return Plan(self.replicates, sizes, self._enough, seconds, **more)

    def _enough(self, rows: Sequence[Mapping[str, Any]]) -> bool:
        return self.clear(self.interval(sum(not row["success"] for row in rows), len(rows)))


def _swept(
    asked: Sequence[tuple[Cell, Plan]],
    title: str,
    folder: Path | None,
    engine: str,
    workers: int | None,
    progress: bool | None,
) -> Iterator[tuple[list[Played], str]]:
    """Play cells; yield the rows of each, in order, and why it was refused, if so."""
    cells = [cell for cell, _ in asked]
    if not cells:
        return
    store = Memory() if folder is None else folder_of(folder, title, cells)
    with opened(engine, workers) as where, store.writing(cells):
        for cell, refused in finish(asked, store, where, title, progress):
            yield list(store.rows(cell)), refused
            store.forget(cell)


# Algorithms


@dataclass(frozen=True, eq=False)
class CaseCell(RunCell):
    """An algorithm on a case."""

    @property
    def content(self) -> Any:
        """All that its rows depend on, and which case it is: two that are alike are played by themselves."""
        return {**super().content, "case": self.more}

    @property
    def columns(self) -> dict[str, Any]:
        """The settings; eps is a text, whatever other cases have."""
        columns = super().columns
        return {**columns, "eps": str(columns["eps"])}

    @property
    def code(self) -> str:
        """That of runs: what a case is, is in its content."""
        return code_digest(RunCell.__module__.partition(".")[2])

    def start(self) -> Play:
        """Refuse what would not end."""
        if self.goal in ("front", 1) and not self.record.uses_eps:
            run = self.simulation()
            if gaps(run.means).required.min() < HOPELESS * run.units.eps.min():
                raise NotSupported("looks for the exact front, which arms so close leave undecided")
        return super().start()


@dataclass(frozen=True)
class Asked:
    """A row that is to be measured."""

    contender: Contender
    case: Case
    delta: float

    @property
    def claims(self) -> bool:
        """Whether a guarantee is claimed."""
        return self.contender.record.under(self.contender.record.settings(**self.contender.asked)).guarantees

    @property
    def head(self) -> dict[str, Any]:
        """What is known before it is measured."""
        case = self.case
        head: dict[str, Any] = {"algorithm": self.contender.label, "claims": self.claims, "family": case.family}
        return head | {"case": case.title, "tells": case.tells, "delta": self.delta}

    def cell(self, seed: int) -> CaseCell:
        """Return what is played; InvalidInput or NotSupported where it cannot be."""
        case, record = self.case, self.contender.record
        if isinstance(case.problem, str):
            raise NotSupported(case.problem)
        return CaseCell(
            case.problem,
            record.name,
            self.contender.settings(case),
            eps=case.eps,
            delta=self.delta,
            goal=1 if record.one_metric and case.goal == "front" else case.goal,  # one best arm is all it looks for
            max_samples=case.max_samples,
            seed=seed,
            label=self.contender.label,
            more={"family": case.family, "case": case.title},
        )

    def row(self, rows: Sequence[Played], refused: str, judge: Judge, patience: float) -> Row:
        """Return what came out."""
        finished = [row for row in rows if row["ended"] != TIME]
        if refused or (self.claims and not finished):
            return Row(**self.head, verdict=SKIPPED, reason=refused or f"no run ended within {patience:g} s")
        counts = finished or rows  # if no run got an answer in time, those that were begun are failures
        failures = sum(not row["success"] for row in counts)
        interval = judge.interval(failures, len(counts))
        late = len(rows) > len(finished) or (len(rows) < judge.replicates and not judge.clear(interval))
        fails = interval[0] > self.delta
        verdict = {(True, True): BROKEN, (True, False): KEPT, (False, True): FAILS, (False, False): OPEN}
        samples, seconds = (sum(row[name] for row in rows) for name in ("samples", "seconds"))
        return Row(
            **self.head,
            verdict=BEYOND if self.claims and self.case.beyond else verdict[self.claims, fails],
            reason=f"stopped after {patience:g} s" if late else self.case.beyond,
            replicates=len(counts),
            failures=failures,
            capped=sum(not row["stopped"] for row in counts),
            interval=interval,
            samples=sum(row["samples"] for row in finished) / len(finished) if finished else math.nan,
            microseconds=1e6 * seconds / samples if finished and samples else math.nan,
        )


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
    engine: str = "threads",
    folder: Path | None = None,
) -> Iterator[Row]:
    """Measure every contender on every case, one row at a time. Ctrl-C raises KeyboardInterrupt between two rows.

    folder: where runs are kept, one row each: what is there is not run again.
    """
    asked = [Asked(contender, case, delta) for contender in contenders for case in cases for delta in deltas]
    judged: list[tuple[Asked, Judge, float, str]] = []
    cells: list[tuple[Cell, Plan]] = []
    for each in asked:
        case = each.case
        patience = UNCLAIMED_SECONDS if not each.claims else math.inf if to_the_end else CLAIMED_SECONDS
        ends_kept = not case.beyond and (case.costly or not to_the_end)  # else it is about the number
        judge = Judge(planned(case, replicates), each.delta, not case.beyond, ends_kept)
        try:
            cells.append((each.cell(seed), judge.plan(patience)))
            judged.append((each, judge, patience, ""))
        except (InvalidInput, NotSupported) as refusal:
            judged.append((each, judge, patience, str(refusal)))
    swept = _swept(cells, "audit", folder, engine, workers, progress)
    for each, judge, patience, refused in judged:
        yield each.row(*(([], refused) if refused else next(swept)), judge, patience)
    next(swept, None)  # lets it end


# Doors


@dataclass(frozen=True, eq=False)
class DoorCell(Cell):
    """A way to use a door."""

    case: DoorCase
    delta: float
    seed: int

    OUTCOME: ClassVar[dict[str, str]] = {"samples": "whole", "success": "truth", "decided": "truth", "wrong": "texts"}

    @property
    def columns(self) -> dict[str, Any]:
        """The settings, as they stand in every row."""
        case = self.case
        of_case = {"door": case.door, "case": case.title, "algorithm": case.algorithm}
        return {**of_case, "delta": self.delta, "seed": self.seed}

    def start(self) -> Play:
        """Get ready: a door has its own kernels compiled when it is used."""

        def play(number: int, report: Report) -> Played:
            began = time.thread_time()
            played = self.case.play(self.seed * MOST_REPLICATES + number, self.delta)
            report(played.samples)
            known = {"samples": played.samples, "success": not played.wrong, "decided": played.decided}
            return {**known, "wrong": list(played.wrong), "seconds": time.thread_time() - began}

        return play


def audit_doors(
    cases: Sequence[DoorCase],
    *,
    deltas: Sequence[float] = (0.1,),
    replicates: int = DOOR_FULL,
    to_the_end: bool = False,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | None = None,
    engine: str | None = None,
    folder: Path | None = None,
) -> Iterator[Row]:
    """Measure every case of the doors, one row at a time: until it is clear, or its time is over.

    engine: None: processes, for replicates of doors are plain Python; with one worker, this one.
    folder: as in `audit`.
    """
    if engine is None:
        engine = "threads" if (workers or cores()) == 1 else "processes"
    cells, judges = list[tuple[Cell, Plan]](), list[tuple[DoorCell, Judge]]()
    for case in cases:
        for delta in deltas:
            cell, judge = DoorCell(case, delta, seed), Judge(planned(case, replicates), delta, ends_kept=not to_the_end)
            seconds = math.inf if to_the_end else DOOR_SECONDS
            limits = {} if to_the_end else {"least": FIRST_LOOK, "patience": CLAIMED_SECONDS}
            cells.append((cell, judge.plan(seconds, **limits)))
            judges.append((cell, judge))
    for (cell, judge), (rows, _) in zip(judges, _swept(cells, "doors", folder, engine, workers, progress), strict=True):
        failures = sum(not row["success"] for row in rows)
        interval = judge.interval(failures, len(rows))
        samples, took = (sum(row[name] for row in rows) for name in ("samples", "seconds"))
        late = len(rows) < judge.replicates and not judge.clear(interval)
        yield Row(
            algorithm=cell.case.algorithm,
            claims=True,
            family=cell.case.door,
            case=cell.case.title,
            tells={},
            delta=cell.delta,
            verdict=BROKEN if interval[0] > cell.delta else KEPT,
            reason=f"stopped after {DOOR_SECONDS:g} s" if late else "",
            replicates=len(rows),
            failures=failures,
            interval=interval,
            samples=samples / len(rows),
            microseconds=1e6 * took / samples if samples else math.nan,
            door=True,
            undecided=sum(not row["decided"] for row in rows),
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
