"""Where the rows of a sweep are kept: a folder of Parquet files (CSV where pyarrow is not installed), or memory.

`pandas.read_parquet(folder)` reads all of them. Each file has rows of one cell. It is there whole or not at all, and no
row is ever written twice: so a sweep goes on after any crash, and runs nothing again that is there. Files whose names
begin with `_` are not rows: `_sweep.json` says what the columns hold and which code made them.
"""

from __future__ import annotations

import csv
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from ..errors import InvalidInput, MissingExtra, UnreadableFile
from .cells import Cell
from .sources import versions

#: What a column may hold, and how CSV files say it.
TYPES: dict[str, Callable[[str], Any]] = {
    "text": str,
    "whole": int,
    "number": float,
    "truth": lambda text: text == "True",
    "texts": json.loads,
    "wholes": json.loads,
    "numbers": json.loads,
}
HEAD = "_sweep.json"
LOCK = "_lock"
UNFINISHED = ".unfinished"
SET_ASIDE = "_set-aside-"
Row = dict[str, Any]


class Store(ABC):
    """Keeps the rows of cells."""

    @abstractmethod
    def numbers(self, cell: Cell) -> set[int]:
        """Return which replicates of a cell are there."""

    @abstractmethod
    def append(self, cell: Cell, rows: Sequence[Row]) -> None:
        """Keep rows of a cell."""

    @abstractmethod
    def each_row(self, cell: Cell, columns: Sequence[str] = ()) -> Iterator[Row]:
        """Yield the rows of a cell one by one, in any order; with some columns only, where these are named."""

    def rows(self, cell: Cell) -> list[Row]:
        """Return the rows of a cell, by their numbers."""
        return sorted(self.each_row(cell), key=lambda row: row["replicate"])

    @abstractmethod
    def writing(self, cells: Sequence[Cell]) -> AbstractContextManager[Any]:
        """Let rows of these cells be appended."""

    def forget(self, cell: Cell) -> None:  # noqa: B027
        """Let go of the rows of a cell that nobody needs any more, where they take memory."""


class Memory(Store):
    """Keeps rows as long as it is there itself."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[int, Row]] = {}

    def numbers(self, cell: Cell) -> set[int]:
        """Return which replicates of a cell are there."""
        return set(self.kept.get(cell.key, ()))

    def append(self, cell: Cell, rows: Sequence[Row]) -> None:
        """Keep rows of a cell."""
        self.kept.setdefault(cell.key, {}).update((row["replicate"], row) for row in rows)

    def each_row(self, cell: Cell, columns: Sequence[str] = ()) -> Iterator[Row]:
        """Yield the rows of a cell."""
        yield from self.kept.get(cell.key, {}).values()

    def writing(self, cells: Sequence[Cell]) -> AbstractContextManager[Any]:
        """Let rows be appended: nobody else can."""
        return nullcontext()

    def forget(self, cell: Cell) -> None:
        """Let go of the rows of a cell."""
        self.kept.pop(cell.key, None)


class Folder(Store):
    """Keeps rows in files. Use it as a context: one sweep at a time writes to a folder."""

    def __init__(self, path: str | Path) -> None:
        if not isinstance(path, (str, Path)):
            raise InvalidInput(f"out of a sweep must be a folder, got {path!r}")
        self.path = Path(path)
        self._open()

    def _open(self) -> None:
        """Take in what is there."""
        self._there: dict[str, set[int]] | None = None
        head = self._head()
        self.columns: dict[str, str] = head.get("columns", {})
        self.code: str | None = head.get("code")
        self.form: str = head.get("form") or ("csv" if _pyarrow() is None else "parquet")
        if self.form == "parquet" and _pyarrow() is None:
            raise MissingExtra(f"a sweep in Parquet files, as in {self.path},", "frames")

    def _head(self) -> dict[str, Any]:
        try:
            head: dict[str, Any] = json.loads((self.path / HEAD).read_text(encoding="utf-8"))
        except FileNotFoundError:
            if self.path.exists() and not (self.path.is_dir() and all(map(_is_ours, self.path.iterdir()))):
                raise InvalidInput(
                    f"out of a sweep must be a new folder, an empty one, or that of a sweep, got {self.path}"
                ) from None
            return {}
        except NotADirectoryError:
            raise InvalidInput(f"out of a sweep must be a folder, got the file {self.path}") from None
        except (OSError, ValueError) as problem:
            raise UnreadableFile(f"{self.path / HEAD}: not a file of paretoscout: {problem}") from None
        if not isinstance(head, dict):
            raise UnreadableFile(f"{self.path / HEAD}: not a file of paretoscout")
        return head

    @contextmanager
    def writing(self, cells: Sequence[Cell]) -> Iterator[Folder]:
        """Let rows of these cells be appended: nobody else does at the same time, and they fit what is there."""
        self._must_fit(columns := columns_of(cells), code := code_of(cells))
        self.path.mkdir(parents=True, exist_ok=True)
        with _alone(self.path):
            self._open()  # it may have been another one's meanwhile
            self._must_fit(columns, code)
            self._clean()
            if not self.columns:
                self.columns, self.code = columns, code
                head = {"form": self.form, "code": code, **versions(), "columns": columns}
                whole(self.path / HEAD, json.dumps(head, indent=1).encode())
            self._must_be_the_same(cells)
            yield self

    def _must_fit(self, columns: dict[str, str], code: str) -> None:
        """Refuse rows that do not fit what is there."""
        if self.code not in (None, code):
            raise InvalidInput(
                f"out of a sweep must be a folder whose rows were made by the same code and versions, got {self.path}, "
                f"which has rows of code {self.code}, and this is {code}: choose another folder, or delete that one"
            )
        for name in {**columns, **self.columns} if self.columns else ():
            if columns.get(name) != self.columns.get(name):
                raise InvalidInput(
                    f"column {name!r} of the sweep in {self.path} must be {self.columns.get(name) or 'left out'}, as "
                    f"before, got {columns.get(name) or 'none'}: choose another folder"
                )

    def _must_be_the_same(self, cells: Sequence[Cell]) -> None:
        """Refuse cells of which there are rows that have the same settings, but were made by something else."""
        keys = {cell.key for cell in cells}
        asked = [_settings_of(cell, self.columns) for cell in cells]
        names = list(dict.fromkeys(name for settings in asked for name in settings))
        by_values = {tuple(settings.get(name) for name in names): settings for settings in asked}
        others = {part.name.split("-")[0]: part for part in self.parts()}
        for part in (part for key, part in others.items() if key not in keys):
            there = self._read(part, names)[0]
            if settings := by_values.get(tuple(there[name] for name in names)):
                what = f"{settings.get('label', '')} on {settings.get('problem', '')}".strip()
                raise InvalidInput(
                    f"out of a sweep must be a folder in which {what} is the same as now, got {self.path}: the "
                    "problem, or the code of the algorithm, was another one of that name; choose another folder, or "
                    "another name: problem.replace(name=...)"
                )

    def numbers(self, cell: Cell) -> set[int]:
        """Return which replicates of a cell are there."""
        if self._there is None:
            self._there = {}
            for part in self.parts():
                rows = self._read(part, ["replicate"])
                self._there.setdefault(part.name.split("-")[0], set()).update(row["replicate"] for row in rows)
        return self._there.setdefault(cell.key, set())

    def append(self, cell: Cell, rows: Sequence[Row]) -> None:
        """Write rows of a cell as one file, whole or not at all."""
        same = {**cell.columns, "cell": cell.key, "code": cell.code, **versions()}
        full = [{name: {**row, **same}.get(name) for name in self.columns} for row in rows]
        first = min(row["replicate"] for row in rows)
        path = self.path / f"{cell.key}-{first:07}-{len(rows)}.{self.form}"
        whole(path, _parquet(full, self.columns) if self.form == "parquet" else _csv(full, self.columns))
        self.numbers(cell).update(row["replicate"] for row in rows)

    def each_row(self, cell: Cell, columns: Sequence[str] = ()) -> Iterator[Row]:
        """Yield the rows of a cell, file by file, each replicate once."""
        seen = set[int]()
        for part in self.parts(f"{cell.key}-"):
            for row in self._read(part, [*(columns or self.columns), "replicate"]):
                if row["replicate"] not in seen:
                    seen.add(row["replicate"])
                    yield row

    @property
    def set_aside(self) -> list[Path]:
        """The files that could not be used."""
        return sorted(self.path.glob(f"{SET_ASIDE}*"))

    def parts(self, begin: str = "") -> list[Path]:
        """Return the files that have rows."""
        return sorted(part for part in self.path.glob(f"{begin}*.{self.form}") if not part.name.startswith(("_", ".")))

    def _read(self, part: Path, columns: list[str], *, check: bool = False) -> list[Row]:
        """Return some columns of a file; check: whether all others can be read, too."""
        columns = list(dict.fromkeys(columns))
        try:
            if self.form == "csv":
                with part.open(newline="", encoding="utf-8") as file:
                    return [
                        {name: TYPES[self.columns[name]](row[name]) if row[name] else None for name in columns}
                        for row in csv.DictReader(file)
                    ]
            file = _pyarrow().parquet.ParquetFile(part, page_checksum_verification=True)
            if lacking := set(columns) - set(file.schema_arrow.names):
                raise ValueError(f"it has no column {min(lacking)!r}")
            rows: list[Row] = file.read(None if check else columns).select(columns).to_pylist()
            return rows
        except Exception as problem:  # whatever is wrong with a file that anybody may have changed
            raise UnreadableFile(f"{part}: not rows of this sweep ({type(problem).__name__}): {problem}") from None

    def _clean(self) -> None:
        """Remove what was not finished, and set aside what cannot be read or is there twice; what lacks runs again."""
        for unfinished in self.path.glob(f".*{UNFINISHED}"):
            unfinished.unlink()
        seen = set[tuple[str, int]]()
        for part in self.parts():
            try:
                rows = self._read(part, ["cell", "replicate"], check=True)
            except UnreadableFile:
                part.rename(part.with_name(SET_ASIDE + part.name))
                continue
            numbers = {(row["cell"], row["replicate"]) for row in rows}
            if seen & numbers or {key for key, _ in numbers} != {part.name.split("-")[0]}:
                part.rename(part.with_name(SET_ASIDE + part.name))
            else:
                seen |= numbers


def code_of(cells: Sequence[Cell]) -> str:
    """Return some letters for the code that makes the rows of these cells."""
    return "-".join(sorted({cell.code for cell in cells}))


def folder_of(folder: Path, name: str, cells: Sequence[Cell]) -> Folder:
    """Return where in a folder rows of these cells are kept: those that other code made are beside them."""
    return Folder(folder / f"{name}-{code_of(cells)}")


def columns_of(cells: Sequence[Cell]) -> dict[str, str]:
    """Return the columns of the rows of some cells, and what each holds."""
    settings: dict[str, str] = {}
    for cell in cells:
        for name, value in cell.columns.items():
            settings[name] = _wider(settings.get(name), value)
    outcome = {name: kind for cell in cells for name, kind in cell.OUTCOME.items()}
    kept = {name for cell in cells for name in cell.kept}
    outcome = {name: kind for name, kind in outcome.items() if not kind.endswith("s") or name in kept}
    made = {"seconds": "number", "cell": "text", "code": "text", **dict.fromkeys(versions(), "text")}
    return {**settings, "replicate": "whole", **outcome, **made}


def _settings_of(cell: Cell, columns: Mapping[str, str]) -> Row:
    """Return the settings of a cell as their columns hold them."""
    held = {"number": float, "truth": bool, "text": str}
    return {
        name: value if value is None else held[columns[name]](value)
        for name, value in cell.columns.items()
        if name in columns
    }


def _wider(kind: str | None, value: Any) -> str:
    """Return what a column holds that has values of a kind and one more; one that has none yet holds numbers."""
    if value is None:
        return kind or "number"
    own = "truth" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"
    return own if kind in (None, own) else "text"


def whole(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all, whatever happens meanwhile."""
    unfinished = path.with_name(f".{path.name}{UNFINISHED}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as problem:  # the disk is full, say: errors of writing do not name the file
        with suppress(OSError):
            unfinished.unlink()
        raise OSError(problem.errno, problem.strerror, str(path)) from problem


def _is_ours(path: Path) -> bool:
    """Whether it is what a sweep leaves that was killed before it wrote anything else."""
    return path.name == LOCK or (path.name.startswith(".") and path.name.endswith(UNFINISHED))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / LOCK).open("wb") as file:
        with suppress(ImportError):  # not on every system
            from fcntl import LOCK_EX, LOCK_NB, flock

            try:
                flock(file, LOCK_EX | LOCK_NB)
            except OSError:
                raise InvalidInput(
                    f"out of a sweep must be a folder that no other sweep writes to, got {folder}"
                ) from None
        yield


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return None
    return pyarrow


def _parquet(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> bytes:
    arrow = _pyarrow()
    text = arrow.dictionary(arrow.int32(), arrow.string())
    kinds = {"text": text, "whole": arrow.int64(), "number": arrow.float64(), "truth": arrow.bool_()}
    kinds |= {"texts": arrow.list_(arrow.string()), "wholes": arrow.list_(arrow.int64())}
    kinds |= {"numbers": arrow.list_(arrow.float64())}
    schema = arrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
    told = [{name: _told(value, columns[name]) for name, value in row.items()} for row in rows]
    sink = arrow.BufferOutputStream()
    arrow.parquet.write_table(arrow.Table.from_pylist(told, schema), sink, write_page_checksum=True)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _csv(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> bytes:
    import io

    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(columns))
    writer.writeheader()
    for row in rows:
        writer.writerow({name: json.dumps(value) if isinstance(value, list) else value for name, value in row.items()})
    return text.getvalue().encode()


def _told(value: Any, kind: str) -> Any:
    """Return a value as its column holds it."""
    return str(value) if kind == "text" and value is not None and not isinstance(value, str) else value
