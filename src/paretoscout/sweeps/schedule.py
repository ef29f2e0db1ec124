"""Playing cells: chunks of replicates are handed to an engine, and rows are kept as they come in."""

from __future__ import annotations

import math
import tempfile
import threading
import time
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..engines import Engine
from ..errors import EngineUnavailable, InvalidInput, MissingExtra, NotSupported
from ..shown import counted
from ..simulation.progress import Progress, progress_bar
from .cells import Cell, Plan, Play
from .sources import FOLDER
from .store import Row, Store

#: A chunk ends after so many seconds, at the end of a replicate; what is left of it is handed out again.
SLICE_SECONDS = 10.0
#: A chunk has at most so many replicates.
MOST_IN_CHUNK = 1000
#: So many chunks for each slot are handed out at the same time: nobody waits for the next one.
AHEAD = 2
#: A chunk whose worker died, again and again, is handed out so many times.
TRIES = 3
#: So many cells are kept ready by a worker; with many arms each takes memory.
READY = 4
#: So long one waits for another one of the same machine that compiles.
COMPILING_SECONDS = 120.0


@dataclass(frozen=True)
class Chunk:
    """What came of some replicates of a cell."""

    rows: list[Row]
    left: list[int]  # those for which there was no time
    late: bool = False  # no more time for this cell
    refused: str = ""  # why the cell cannot be played


@dataclass(eq=False)
class Playing:
    """A cell that is being played."""

    cell: Cell
    plan: Plan
    place: int  # in the list of all cells
    shared: Any = None  # what stands for the cell where it is played
    left: list[int] = field(default_factory=list)  # numbers that are to be handed out before the next look
    later: list[int] = field(default_factory=list)  # numbers after it
    segment: int = 0  # how many were to be handed out before the next look, at first
    rows: list[Row] = field(default_factory=list)  # all there are, where looks need them
    finished: int = 0
    spent: float = 0.0  # seconds of work
    timed: int = 0  # replicates that these are of
    flying: int = 0  # chunks that are handed out
    tries: Counter[int] = field(default_factory=Counter)  # of chunks whose workers died, by their first numbers
    refused: str = ""
    over: bool = False

    @property
    def hears(self) -> bool:
        """Whether its rows are needed while it is played."""
        return self.plan.enough is not None

    @property
    def ahead(self) -> float:
        """About how many seconds of work there are up to the next look, or to the end."""
        replicates = self.plan.replicates - len(self.later) - self.finished
        return max(0.0, min(replicates * self.spent / self.timed, self.plan.seconds - self.spent))


class Pace:
    """How much longer it takes, by how long cells took so far: they differ much more than the replicates of one."""

    def __init__(self, cells: int) -> None:
        self.began = self.heard = time.monotonic()
        self.open: list[Playing] = []
        self.unopened = cells
        self.ended, self.of_ended = 0, 0.0  # cells that took some work, and how much
        self.work = 0.0  # in all, until it was last heard of

    def add(self, playing: Playing, rows: list[Row]) -> None:
        """Count work that was done on a cell."""
        seconds = sum(row["seconds"] for row in rows)
        playing.spent += seconds
        playing.timed += len(rows)
        self.work += seconds
        self.heard = time.monotonic()

    def end(self, playing: Playing) -> None:
        """Take away a cell that is over."""
        self.open.remove(playing)
        self.ended += bool(playing.timed)
        self.of_ended += playing.spent

    def seconds_left(self) -> float | None:
        """By the clock; None: nothing is known yet, or it takes longer than was thought."""
        known = [playing for playing in self.open if playing.timed]
        if not self.work:
            return None
        ahead = sum(playing.ahead for playing in known)
        each = (self.of_ended + sum(playing.spent for playing in known) + ahead) / (self.ended + len(known))
        ahead += each * (self.unopened + len(self.open) - len(known))
        left = ahead * (self.heard - self.began) / self.work - (time.monotonic() - self.heard)
        return left if left > 0.0 else None


def finish(
    asked: Sequence[tuple[Cell, Plan]], store: Store, engine: Engine, title: str, progress: bool | None = None
) -> Iterator[tuple[Cell, str]]:
    """Play cells as `play` does, and show how far it is."""
    total = sum(plan.replicates - sum(n < plan.replicates for n in store.numbers(cell)) for cell, plan in asked)
    with progress_bar(progress, total, title) as bar:
        yield from play(asked, store, engine, bar)


def play(
    cells: Sequence[tuple[Cell, Plan]], store: Store, engine: Engine, bar: Progress, local: Local | None = None
) -> Iterator[tuple[Cell, str]]:
    """Play cells; yield each that is finished, in their order, and why it was refused, if so.

    What is in the store already is not played again. Ctrl-C keeps what is finished, and raises KeyboardInterrupt; where
    calls run elsewhere it waits for chunks that are under way, some seconds, and a second Ctrl-C does not.
    """
    local = local or Local(bar)
    waiting = iter(enumerate(cells))
    pace = Pace(len(cells))
    bar.seconds_left = pace.seconds_left
    done: dict[int, Playing] = {}
    busy: dict[Future[Chunk], tuple[Playing, list[int]]] = {}
    yielded = 0
    try:
        while True:
            _hand_out(engine, waiting, pace, busy, done, store, local)
            while yielded in done:
                ended = done.pop(yielded)
                bar.refresh()
                yield ended.cell, ended.refused
                yielded += 1
            if not busy and yielded == len(cells):
                return
            if busy:
                _take_in(engine, pace, busy, done, store, bar)
    except KeyboardInterrupt:
        local.over.set()
        with suppress(KeyboardInterrupt):
            while busy:
                _take_in(engine, pace, busy, done, store, bar)
        raise
    finally:
        local.over.set()


def _hand_out(
    engine: Engine,
    waiting: Iterator[tuple[int, tuple[Cell, Plan]]],
    pace: Pace,
    busy: dict[Future[Chunk], tuple[Playing, list[int]]],
    done: dict[int, Playing],
    store: Store,
    local: Local,
) -> None:
    """Keep the engine busy: earlier cells come first."""
    slots = engine.slots
    while len(busy) < AHEAD * slots:
        ready = next((each for each in pace.open if each.left and not (each.plan.limited and each.flying)), None)
        if ready is None:
            following = next(waiting, None)
            if following is None:
                return
            place, (cell, plan) = following
            ready = _opened(place, cell, plan, store)
            pace.unopened -= 1
            if ready.over:
                done[place] = ready
            else:
                pace.open.append(ready)
            continue
        size = MOST_IN_CHUNK if ready.plan.limited else min(MOST_IN_CHUNK, math.ceil(ready.segment / (AHEAD * slots)))
        numbers, ready.left = ready.left[:size], ready.left[size:]
        busy[_submitted(engine, ready, numbers, local)] = ready, numbers


def _opened(place: int, cell: Cell, plan: Plan, store: Store) -> Playing:
    """Return a cell with what is there of it already."""
    opened, there = Playing(cell, plan, place), store.numbers(cell)
    if there:
        rows = store.rows(cell) if plan.enough is not None or plan.limited else []
        opened.rows, opened.finished = rows if opened.hears else [], len(there)
        opened.spent, opened.timed = sum(row["seconds"] for row in rows), len(rows)
    opened.later = plan.numbers()
    _look(opened, there)
    return opened


def _look(playing: Playing, there: set[int]) -> None:
    """At a look, or at the end, decide whether a cell goes on; `there`: numbers of replicates that are kept."""
    plan = playing.plan
    while not playing.left and not playing.flying and not playing.over:
        begun = plan.replicates - len(playing.later)
        late = playing.spent >= plan.limit(begun)
        known = {row["replicate"]: row for row in playing.rows} if playing.hears else {}
        heard = [known[number] for number in plan.numbers()[:begun] if number in known]
        enough = plan.enough is not None and begun > 0 and plan.enough(heard)
        if not playing.later or late or enough:
            playing.over = True
            return
        to = next((look for look in plan.looks if look > begun), plan.replicates)
        if plan.limited and begun < plan.least:
            to = min(to, plan.least)
        playing.left = [number for number in playing.later[: to - begun] if number not in there]
        playing.later, playing.segment = playing.later[to - begun :], len(playing.left)


def _submitted(engine: Engine, playing: Playing, numbers: list[int], local: Local) -> Future[Chunk]:
    plan = playing.plan
    limits = (plan.limit(numbers[-1]) - playing.spent, plan.hard - playing.spent)
    playing.flying += 1
    if engine.here:
        return engine.submit(work, playing.cell, numbers, *limits, None, local.report)
    if playing.shared is None:
        playing.shared = engine.share(playing.cell)
    return engine.submit(work, playing.shared, numbers, *limits, playing.cell.code)


def _take_in(
    engine: Engine,
    pace: Pace,
    busy: dict[Future[Chunk], tuple[Playing, list[int]]],
    done: dict[int, Playing],
    store: Store,
    bar: Progress,
) -> None:
    """Wait for chunks, and keep what came of them."""
    ended = wait(busy, timeout=0.2, return_when=FIRST_COMPLETED).done
    bar.refresh()
    failure: BaseException | None = None
    for future in ended:
        playing, numbers = busy[future]
        problem = future.exception()
        if problem is None and (rows := future.result().rows):
            store.append(playing.cell, rows)
        del busy[future]  # not before: Ctrl-C meanwhile loses nothing, and what is appended twice is there once
        playing.flying -= 1
        if problem is None:
            chunk = future.result()
            playing.finished += len(chunk.rows)
            pace.add(playing, chunk.rows)
            playing.rows += chunk.rows if playing.hears else []
            playing.left = [*chunk.left, *playing.left]
            playing.refused = playing.refused or chunk.refused
            bar.finished += len(chunk.rows)
            if playing.refused or chunk.late:
                playing.left, playing.later = [], []
        elif engine.lost(problem):
            playing.tries[numbers[0]] += 1
            playing.left = [*numbers, *playing.left]
            if playing.tries[numbers[0]] >= TRIES:
                failure = EngineUnavailable(
                    f"workers died {counted(TRIES, 'time')} while they played replicates {numbers[0]} to "
                    f"{numbers[-1]} of {playing.cell.columns}: what is finished is kept"
                )
        else:
            failure = problem
        if not playing.flying and not playing.left:
            _look(playing, store.numbers(playing.cell))
            if playing.over:
                pace.end(playing)
                done[playing.place] = playing
                bar.finished += max(0, playing.plan.replicates - playing.finished)  # one that ended early counts whole
                playing.rows, playing.shared = [], None
    if failure is not None:
        raise failure


class Local:
    """What replicates that are played in this process report to."""

    def __init__(self, bar: Progress) -> None:
        self.bar, self.over = bar, threading.Event()

    def report(self, rounds: int) -> bool:
        """Count samples; say whether to go on."""
        self.bar.samples(rounds)
        return not self.over.is_set()


# On a worker


def work(
    cell: Cell,
    numbers: Sequence[int],
    soft: float,
    hard: float,
    code: str | None = None,
    report: Callable[[int], bool] = lambda _: True,
) -> Chunk:
    """Play replicates until there is no more time: none is begun after `soft` seconds, none goes on after `hard`.

    These are seconds of the processor: what else the machine does ends no cell earlier.

    code: what the code must be here, so that rows do not depend on where they were made.
    """
    if code not in (None, cell.code):
        raise EngineUnavailable(
            f"workers must have the same code and versions as whoever starts a sweep ({code}), got {cell.code}: "
            "install the same paretoscout, numpy and numba there"
        )
    try:
        played = ready(cell)
    except (InvalidInput, NotSupported, MissingExtra) as refusal:
        return Chunk([], [], refused=str(refusal))
    began, slice_began, rows = time.thread_time(), time.monotonic(), list[Row]()

    def spent() -> float:
        return time.thread_time() - began

    for place, number in enumerate(numbers):
        if rows and (spent() >= soft or time.monotonic() - slice_began >= SLICE_SECONDS):
            return Chunk(rows, list(numbers[place:]), late=spent() >= soft)
        stopped = [False]

        def go_on(rounds: int, stopped: list[bool] = stopped) -> bool:
            stopped[0] = not report(rounds)
            return not stopped[0] and spent() < hard

        try:
            row = played(number, go_on)
        except Exception as problem:
            problem.add_note(f"in replicate {number} of {cell.columns}")
            raise
        if row is None or stopped[0]:
            return Chunk(rows, list(numbers[place:]))
        rows.append({"replicate": number, **row})
    return Chunk(rows, [], late=spent() >= hard)


_ready: OrderedDict[tuple[str, tuple[str, ...]], Play] = OrderedDict()
_getting_ready = threading.RLock()


def ready(cell: Cell) -> Play:
    """Return a cell that is ready to be played: it is compiled once, by one process of a machine at a time."""
    known = cell.key, cell.kept
    with _getting_ready:
        if known not in _ready:
            with _first_to_compile(cell.code):
                _ready[known] = cell.start()
            while len(_ready) > READY:
                _ready.popitem(last=False)
        _ready.move_to_end(known)
        return _ready[known]


@contextmanager
def _first_to_compile(what: str) -> Iterator[None]:
    """Let others wait: what the first one compiles, they find. It only saves work, so nobody waits for ever."""
    place = zlib.crc32(str(FOLDER).encode())  # another copy of the package keeps what it compiles elsewhere
    with ExitStack() as held:
        with suppress(ImportError, OSError):  # not on every system; and the file may be somebody else's
            from fcntl import LOCK_EX, LOCK_NB, flock

            file = Path(tempfile.gettempdir()) / f"paretoscout-{what}-{place:08x}.lock"
            lock, until = held.enter_context(file.open("ab")), time.monotonic() + COMPILING_SECONDS
            while time.monotonic() < until:
                with suppress(BlockingIOError):
                    flock(lock, LOCK_EX | LOCK_NB)
                    break
                time.sleep(0.05)
        yield
