"""Data sets that do not come with the library: where one is, how it is fetched, whether it is what it should be.

Each is kept as one CSV file. It is looked for in the folder PARETOSCOUT_DATA, then among what was fetched. Nothing is
downloaded unless `fetch` is called, and nothing is read whose checksum is not the pinned one.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import MissingData, MissingExtra, UnreadableFile
from ..frames import read_csv
from ..problem import Problem
from ..statement import Metric

#: Where files of public repositories are, by owner/name/commit/path.
RAW = "https://raw.githubusercontent.com"
DEFAULT_FOLDER = "../shared/data"
DOWNLOADS_AT_ONCE = 8

Columns = dict[str, list[str]]


@dataclass(frozen=True)
class Upstream:
    """The public files that a data set is made from, at one commit of one repository."""

    repository: str  # owner/name
    commit: str
    paths: tuple[str, ...]
    bytes: int  # of all files together
    sha256: str  # of all files, one after the other in this order

    def url(self, mirror: str = RAW) -> str:
        """Return the address of the file; of several files, of the folder that they have in common."""
        common = self.paths[0] if len(self.paths) == 1 else os.path.commonpath(self.paths)
        return f"{mirror}/{self.repository}/{self.commit}/{common}"


@dataclass(frozen=True)
class Dataset:
    """The card of a data set, and how to turn its files into a problem."""

    name: str
    about: str  # one line
    upstream: Upstream
    licence: str
    table: str  # the CSV file, within a data folder
    checksums: tuple[str, ...]  # sha256 of that file as it is fetched; others hold more columns
    arms: int
    rows: int  # measurements; where there is one value per arm, as many as arms
    front: int  # how many arms are Pareto-optimal on the means
    metrics: tuple[Metric, ...]
    noise: str  # where it comes from, and what sigma is
    notes: str
    convert: Callable[[Sequence[Path]], Columns]  # the upstream files into the columns of the table
    make: Callable[[Dataset, Columns], Problem]
    blocks: int | None = None  # how many inputs all arms are measured on; None: samples are on their own

    @property
    def source(self) -> str:
        """Where people can look at it."""
        return f"https://github.com/{self.upstream.repository}/tree/{self.upstream.commit}"

    def places(self) -> list[Path]:
        """Where the table may be, in the order of looking."""
        folders = [Path(os.environ.get("PARETOSCOUT_DATA") or DEFAULT_FOLDER).expanduser(), cache_folder()]
        return [folder / self.table for folder in folders if folder is not None]

    def here(self) -> Path | None:
        """Where the table is, if it is on this machine."""
        return next((path for path in self.places() if path.exists()), None)

    def problem(self) -> Problem:
        """Read the table; refuse one that is not the pinned one."""
        path = self.here()
        if path is None:
            raise MissingData(
                f"data set {self.name!r} is not on this machine. Fetch it: paretoscout datasets fetch {self.name} "
                f"({in_bytes(self.upstream.bytes)} from {self.upstream.url()}). Or set PARETOSCOUT_DATA to a folder "
                f"that holds {self.table}. Looked for: {', '.join(map(str, self.places()))}"
            )
        self._check(path)
        return self.make(self, read_csv(path))

    def fetch(self, mirror: str = RAW) -> Path:
        """Download the upstream files, check them, and keep what is needed of them; return where that is."""
        keep = cache_folder()
        if keep is None:
            raise MissingExtra("fetching data sets", "data")
        path = keep / self.table
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent) as folder:
            columns = self.convert(self._download(Path(folder), mirror))
            made = Path(folder) / path.name
            made.write_bytes(as_csv(columns))
            self._check(made)
            made.replace(path)  # whole or not at all
        return path

    def _download(self, folder: Path, mirror: str) -> list[Path]:
        import pooch

        pooch.get_logger().setLevel("ERROR")  # no word for each of many files
        one = len(self.upstream.paths) == 1
        files = pooch.create(
            path=folder,
            base_url=f"{mirror}/{self.upstream.repository}/{self.upstream.commit}/",
            registry=dict.fromkeys(self.upstream.paths, f"sha256:{self.upstream.sha256}" if one else None),
            retry_if_failed=1,
        )
        for name in self.upstream.paths:  # two downloads of pooch that make one folder get in each other's way
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        where = f"{self.upstream.url(mirror)} (data set {self.name!r})"
        try:
            with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
                paths = [Path(path) for path in pool.map(files.fetch, self.upstream.paths)]
        except OSError as problem:  # those of requests are among them
            raise MissingData(f"could not fetch {where}: {problem}") from problem
        except ValueError as problem:  # pooch: the checksum is another one
            raise UnreadableFile(f"what came from {where} is not what was pinned: {problem}") from problem
        digest, size = hashlib.sha256(), 0
        for path in paths:
            content = path.read_bytes()
            digest.update(content)
            size += len(content)
        if digest.hexdigest() != self.upstream.sha256:
            raise UnreadableFile(
                f"what came from {where} is not what was pinned: sha256 of all {len(paths)} files, one after the "
                f"other, must be {self.upstream.sha256} ({self.upstream.bytes:,} bytes), "
                f"got {digest.hexdigest()} ({size:,} bytes)"
            )
        return paths

    def _check(self, path: Path) -> None:
        try:
            content = path.read_bytes()
        except OSError as problem:
            raise UnreadableFile(f"{path} (data set {self.name!r}) must be a file, but: {problem}") from None
        got = hashlib.sha256(content).hexdigest()
        if got not in self.checksums:
            raise UnreadableFile(
                f"{path} is not the pinned table of data set {self.name!r}: sha256 must be "
                f"{' or '.join(self.checksums)}, got {got} ({len(content):,} bytes). It was changed or cut short: "
                f"delete it, then run: paretoscout datasets fetch {self.name}"
            )

    def as_dict(self) -> dict[str, Any]:
        """The card as plain values, for JSON."""
        here = self.here()
        return {
            "name": self.name,
            "about": self.about,
            "source": self.source,
            "url": self.upstream.url(),
            "commit": self.upstream.commit,
            "licence": self.licence,
            "files": len(self.upstream.paths),
            "bytes": self.upstream.bytes,
            "sha256": self.upstream.sha256,
            "table": self.table,
            "table_sha256": list(self.checksums),
            "arms": self.arms,
            "rows": self.rows,
            "front": self.front,
            "blocks": self.blocks,
            "metrics": [
                {"name": metric.name, "direction": metric.direction, "eps": metric.eps, "unit": metric.unit}
                for metric in self.metrics
            ],
            "noise": self.noise,
            "notes": self.notes,
            "here": None if here is None else str(here),
        }


def cache_folder() -> Path | None:
    """Where fetched data sets are kept; None if pooch is not installed, for then none can be fetched."""
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("paretoscout"))


def as_csv(columns: Columns) -> bytes:
    """Columns as a CSV file, the same bytes on every machine."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return file.getvalue().encode()


def in_bytes(n: int) -> str:
    """A size for people.

    >>> in_bytes(10549), in_bytes(229304721)
    ('11 kB', '229 MB')
    """
    return f"{n / 1e6:.{0 if n >= 1e7 else 1}f} MB" if n >= 1e6 else f"{n / 1e3:.0f} kB"
