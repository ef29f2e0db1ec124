"""What is finished is kept: each piece of work is a file, and a second call goes on where the first ended."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

import numba
import numpy as np

from ..errors import UnreadableFile
from ..kernels.compile import sources_digest
from ..simulation.progress import Progress, say
from ..sweeps.sources import FOLDER, reachable

T = TypeVar("T")

#: Where numbers are made. The others of this folder only draw and judge them.
MADE_BY = ("reproduce.comparison", "reproduce.estimates")


@cache
def code_digest(folder: Path = FOLDER) -> str:
    """Eight letters for the code that the numbers come from: pieces of other code are not taken for ours."""
    digest = hashlib.sha256(f"{sources_digest()} {np.__version__} {numba.__version__}".encode())
    for name, source in sorted(reachable(*MADE_BY, folder=folder).items()):
        digest.update(name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:8]


class Steps(Progress):
    """Counts pieces: a bar on a terminal, else a line for each piece, and now and then one within a piece."""

    unit = "pieces"

    def __init__(self, total: int, show: bool | None = None) -> None:
        super().__init__(show, total, "")
        self.piece, self.size, self.within = "", 1, 0

    def begin(self, piece: str, size: int) -> None:
        """Begin a piece, of so many replicates."""
        self.piece, self.size, self.within = piece, size, 0
        self.refresh()

    def replicate(self) -> None:
        """Count a replicate of this piece."""
        self.within += 1

    def end(self, piece: str, found: bool) -> None:
        """Count a piece, worked out or found."""
        self.finished += 1
        if self.by_lines:
            say(f"{piece}: {'found' if found else 'done'} ({self.finished} of {self.total})")

    def told(self) -> str:
        """Return how far it is, in words."""
        return f"{self.piece}{self.share()} ({self.finished} of {self.total} done)"

    def share(self) -> str:
        """Return how much of this piece is done."""
        return f" {min(self.within / self.size, 1.0):.0%}" if self.within else ""

    def refresh(self) -> None:
        """Bring the bar up to date."""
        super().refresh()
        if self.bar is not None:
            self.bar.update(0, description=self.piece + self.share())


class Parts:
    """The folder of finished pieces."""

    def __init__(self, folder: Path, steps: Steps) -> None:
        self.folder, self.steps = folder, steps

    def path(self, name: str) -> Path:
        """Where a piece is kept: under its settings and the code that made it."""
        return self.folder / f"{name}-{code_digest()}.npz"

    def get(
        self,
        title: str,
        name: str,
        size: int,
        read: Callable[[Path], T],
        make: Callable[[], T],
        write: Callable[[T, Path], None],
    ) -> T:
        """Return a piece: read if it is there, else made and kept, whole or not at all."""
        path = self.path(name)
        if path.exists():
            try:
                value = read(path)
            except UnreadableFile:
                pass  # somebody else's file under our name: made again
            else:
                self.steps.end(title, found=True)
                return value
        self.steps.begin(title, size)
        value = make()
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        write(value, unfinished)
        unfinished.replace(path)
        self.steps.end(title, found=False)
        return value
