"""How far it is, on standard error, of what takes longer than two seconds: a bar on a terminal, else lines."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..shown import line, rough_span

PATIENCE = 2.0
#: Lines come ever more seldom, but no more seldom than this many seconds.
LONGEST_PAUSE = 30.0


class Due:
    """Says when a line on the progress is due: after two seconds, then after pauses that double up to half a minute.

    >>> clock = iter([0.0, 1.0, 2.0, 3.0, 5.9, 6.0]).__next__
    >>> due = Due(clock)
    >>> [due() for _ in range(5)]
    [False, True, False, False, True]
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, longest: float = LONGEST_PAUSE) -> None:
        self.clock, self.longest = clock, longest
        self.began = clock()
        self.pause = PATIENCE
        self.at = self.began + PATIENCE

    def __call__(self) -> bool:
        """Whether a line is due; if so, the next one is a pause later."""
        now = self.clock()
        if now < self.at:
            return False
        self.pause = min(2.0 * self.pause, self.longest)
        self.at = now + self.pause
        return True


def say(text: str) -> None:
    """Print a line on standard error, whatever names are in it."""
    print(line(text), file=sys.stderr, flush=True)


class Progress:
    """Counts finished replicates and samples; shows them once it has taken a while.

    show: None: on a terminal. True: also where there is none, by a line now and then. False: nothing.
    """

    #: What is counted.
    unit = "replicates"

    def __init__(self, show: bool | None, total: int, title: str) -> None:
        terminal = sys.stderr.isatty()
        self.wanted = terminal if show is None else show
        self.by_lines = self.wanted and not terminal
        self.total, self.title = total, title
        self.finished, self.played = 0, 0
        self.began = time.monotonic()
        self.due = Due()
        self.bar: Any = None
        #: Replaced where more is known than how long replicates took so far.
        self.seconds_left: Callable[[], float | None] = self._at_the_pace_so_far

    def _at_the_pace_so_far(self) -> float | None:
        if not self.finished:
            return None
        return (time.monotonic() - self.began) / self.finished * (self.total - self.finished)

    def samples(self, rounds: int) -> None:
        """Count samples taken."""
        self.played += rounds

    def replicate(self) -> None:
        """Count a replicate that is finished."""
        self.finished += 1

    def told(self) -> str:
        """Return how far it is, in words."""
        far = f"{self.title}: {self.finished:,} of {self.total:,} {self.unit}"
        if not self.finished:
            return f"{far}, {self.played:,} samples so far" if self.played else far
        seconds = self.seconds_left()
        return far if seconds is None else f"{far}, about {rough_span(seconds)} left"

    def refresh(self) -> None:
        """Bring the bar up to date, or print a line if one is due; called from the thread that owns the terminal."""
        if self.by_lines:
            if self.due():
                say(self.told())
            return
        if not self.wanted:
            return
        if self.bar is None and time.monotonic() - self.began > PATIENCE:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as Bar

            self.bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[played]}"),
                TextColumn("{task.fields[left]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self.bar.add_task(self.title, total=self.total, played="", left="")
            self.bar.start()
        if self.bar is not None:
            seconds = self.seconds_left()
            left = "" if seconds is None else f"about {rough_span(seconds)} left"
            self.bar.update(0, completed=self.finished, played=f"{self.played / 1e6:,.1f} M samples", left=left)


@contextmanager
def compiling(show: bool | None) -> Iterator[None]:
    """Say what the wait is for, if compiling (on the first run only) takes a while."""
    wanted = sys.stderr.isatty() if show is None else show
    notice = threading.Timer(PATIENCE, say, ["compiling, on the first run only ..."])
    notice.daemon = True
    if wanted:
        notice.start()
    try:
        yield
    finally:
        notice.cancel()


@contextmanager
def at_work(told: Callable[[], str]) -> Iterator[None]:
    """Say now and then what is at work, and for how long, while something runs that does not report by itself.

    told: returns what is at work, and how far it is; called in a thread of its own.
    """
    due, end = Due(), threading.Event()

    def lines() -> None:
        while not end.wait(max(0.0, due.at - due.clock())):
            if due():
                say(f"{told()}, {rough_span(due.clock() - due.began)} so far")

    thread = threading.Thread(target=lines, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


@contextmanager
def progress_bar(show: bool | None, total: int, title: str) -> Iterator[Progress]:
    """Give a Progress whose bar is taken down at the end, whatever happens."""
    progress = Progress(show, total, title)
    try:
        yield progress
    finally:
        if progress.bar is not None:
            progress.bar.stop()
