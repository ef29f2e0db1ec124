"""A progress bar on standard error for what takes longer than two seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0


class Progress:
    """Counts finished replicates and samples; shows them once it has taken a while."""

    def __init__(self, show: bool | None, total: int, title: str) -> None:
        self.wanted = sys.stderr.isatty() if show is None else show
        self.total, self.title = total, title
        self.finished, self.played = 0, 0
        self.began = time.monotonic()
        self.bar: Any = None

    def samples(self, rounds: int) -> None:
        """Count samples taken."""
        self.played += rounds

    def replicate(self) -> None:
        """Count a replicate that is finished."""
        self.finished += 1

    def refresh(self) -> None:
        """Bring the bar up to date; called from the thread that owns the terminal."""
        if not self.wanted:
            return
        if self.bar is None and time.monotonic() - self.began > PATIENCE:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self.bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[played]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self.bar.add_task(self.title, total=self.total, played="")
            self.bar.start()
        if self.bar is not None:
            self.bar.update(0, completed=self.finished, played=f"{self.played / 1e6:,.1f} M samples")


@contextmanager
def compiling(show: bool | None) -> Iterator[None]:
    """Say what the wait is for, if compiling (on the first run only) takes a while."""
    wanted = sys.stderr.isatty() if show is None else show
    notice = threading.Timer(
        PATIENCE, print, ["compiling, on the first run only ..."], {"file": sys.stderr, "flush": True}
    )
    notice.daemon = True
    if wanted:
        notice.start()
    try:
        yield
    finally:
        notice.cancel()


@contextmanager
def progress_bar(show: bool | None, total: int, title: str) -> Iterator[Progress]:
    """Give a Progress whose bar is taken down at the end, whatever happens."""
    progress = Progress(show, total, title)
    try:
        yield progress
    finally:
        if progress.bar is not None:
            progress.bar.stop()
