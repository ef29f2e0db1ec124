"""Tables from outside: pandas, polars and pyarrow frames, dicts of columns, CSV files; and tables for outside."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.resources.abc import Traversable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from . import checks
from .errors import InvalidInput, MissingExtra, UnknownName
from .kernels.arrays import FloatArray
from .shown import counted, of_cell

#: What may stand between the cells of a CSV file; spreadsheets write ';' where the comma is the decimal point.
DELIMITERS = (",", ";", "\t")
#: A line of a CSV file has at most this many letters.
MOST_LETTERS = 10_000_000
_WITH_COMMA = re.compile(r"[-+]?[\d.' ]*,[\d.,' ]*")
_WITH_UNIT = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?\s*(%|[^\W\d]\S*)", re.IGNORECASE)


class CSVTable(dict[str, list[Any]]):
    """The columns of a file of rows, ready for `table`; it knows the file, and in which line of it each row begins."""

    def __init__(self, columns: Mapping[str, list[Any]], source: str, lines: Sequence[int]) -> None:
        super().__init__(columns)
        self.source, self.lines = source, lines


def read_csv(path: str | Path | Traversable) -> CSVTable:
    """Read a CSV file with a header into a dict of columns, ready for `table`. Blank lines are skipped.

    Cells are separated by ',', ';' or tabs: the header tells.
    """
    return parse_csv(text_of(path, "CSV"), str(path))


def read_json_lines(path: str | Path) -> CSVTable:
    """Read a file with a JSON value in each line: an object with the same keys in each, or a name. Blank ones are
    skipped. Names alone are a column "arm".
    """
    rows, lines = list[dict[str, Any]](), list[int]()
    for number, text in enumerate(text_of(path, "JSON lines").split("\n"), 1):
        if not text.strip():
            continue
        where = f"line {number} of {path}"
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as problem:
            raise InvalidInput(f"{where} must be a JSON value, but: {problem}") from None
        row = {"arm": value} if isinstance(value, str) else value
        if not isinstance(row, dict) or not row or any(isinstance(cell, (dict, list)) for cell in row.values()):
            raise InvalidInput(f"{where} must be a name, or an object of texts and numbers, got {checks.got(value)}")
        if rows and row.keys() != rows[0].keys():
            raise InvalidInput(f"{where} must have the keys of the first ({', '.join(rows[0])}), got {', '.join(row)}")
        if not rows:
            check_columns(list(row), str(path))
        rows.append(row)
        lines.append(number)
        check_rows(len(rows), str(path))
    if not rows:
        raise InvalidInput(f"{path} must have at least one line, got none")
    return CSVTable({key: [row[key] for row in rows] for key in rows[0]}, str(path), lines)


#: How to read a table of options, by the ending of its file.
READERS: dict[str, Callable[[Path], CSVTable]] = {
    ".csv": read_csv,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
}


def text_of(path: str | Path | Traversable, kind: str, most: int | None = None) -> str:
    """Return the text of a file, or say why it cannot be read. most: bytes; None: the usual limit."""
    source = Path(path) if isinstance(path, str) else path
    try:
        data = _regular(source, kind, checks.MOST_BYTES if most is None else most)
    except InvalidInput:
        raise
    except FileNotFoundError:
        raise InvalidInput(f"no such file: {path}{_near(source)}") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path} must be a {kind} file, got a folder") from None
    except OSError as problem:
        raise InvalidInput(f"{path} must be a {kind} file that can be read, but: {problem.strerror}") from None
    except ValueError as problem:  # a NUL in the path
        raise InvalidInput(f"{path} must be a {kind} file, but: {problem}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise InvalidInput(
            f"{path} must be a {kind} file in UTF-8, but line {line} has a byte 0x{data[problem.start]:02x} that is no "
            f"letter there: save it again, as {kind} in UTF-8"
        ) from None


def _regular(source: Path | Traversable, kind: str, most: int) -> bytes:
    """Return the bytes of a regular file. A pipe or a device may never end, and is refused before it is opened."""
    if not isinstance(source, Path):  # a resource of a package
        return source.read_bytes()
    check_regular(source, kind, most)
    with source.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(size)
        if not size and file.read(1):
            raise InvalidInput(f"{source} must be a {kind} file of known size, but it says that it is empty: copy it")
    return data


def check_regular(path: Path, kind: str, most: int) -> None:
    """Refuse pipes, devices and sockets, and files that are too large. Raise OSError if there is no such file."""
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(path)
    if not stat.S_ISREG(found.st_mode):
        raise InvalidInput(f"{path} must be a {kind} file, got a pipe or a device: write what it gives into a file")
    if found.st_size > most:
        raise InvalidInput(
            f"{path} must be at most {most:,} bytes, because it is read as a whole, got {found.st_size:,}: "
            + ("put long lists into CSV files" if kind == "YAML" else "write the numbers into a CSV file")
        )


def _near(path: Path | Traversable) -> str:
    """Ask whether another file of the folder is meant."""
    if not isinstance(path, Path) or not path.parent.is_dir():
        return ""
    try:
        others = {other.stem: other for other in path.parent.glob(f"*{path.suffix or '.csv'}") if other.is_file()}
    except OSError:
        return ""
    near = get_close_matches(path.stem, others, n=1)
    return f"; did you mean {str(others[near[0]])!r}?" if near else ""


def parse_csv(text: str, path: str) -> CSVTable:
    """Do the same with a text; `path` is what to call it."""
    found = _rows(text, path, _delimiter(text))
    rows = list(islice(found, 1))
    if rows:
        check_columns(rows[0][2], path)
        rows += islice(found, checks.MOST_RUNS + 1)
    if len(rows) < 2:
        only = "only a header" if rows else "nothing"
        raise InvalidInput(f"{path} must have a header and at least one row, got {only}")
    check_rows(len(rows) - 1, path)
    _, _, header = rows[0]
    for first, last, row in rows[1:]:
        if len(row) != len(header):
            open_ = f" (it goes on to line {last}: is a quotation mark not closed?)" if last > first else ""
            raise InvalidInput(
                f"line {first} of {path} must have as many cells as the header ({len(header)}), got {len(row)}{open_}"
            )
    columns = {column: [row[position] for _, _, row in rows[1:]] for position, column in enumerate(header)}
    return CSVTable(columns, path, [first for first, _, _ in rows[1:]])


def check_columns(header: Sequence[str], path: str) -> None:
    """Refuse a header that is too long, or names a column twice."""
    checks.at_most(f"columns of {path}", checks.MOST_COLUMNS, len(header), "leave out columns that are not needed")
    twice = next((column for column, n in Counter(header).items() if n > 1), None)
    if twice is not None:
        raise InvalidInput(f"columns of {path} must have different names, got {twice!r} twice")


def check_rows(n: int, path: str, called: str = "rows") -> None:
    """Refuse more rows, or runs, than are read."""
    checks.at_most(f"{called} of {path}", checks.MOST_RUNS, n, "leave some of each option out")


def _rows(text: str, path: str, delimiter: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the rows that are not blank, each with its first line and its last one."""
    reader = csv.reader(_lines(text, path), skipinitialspace=True, delimiter=delimiter)
    last = 0
    try:
        for row in reader:
            first, last = last + 1, reader.line_num
            if row:
                yield first, last, [of_cell(cell) for cell in row]
    except csv.Error as problem:
        raise InvalidInput(f"{path} must be a CSV file, but line {reader.line_num} is not: {problem}") from None


def _lines(text: str, path: str) -> Iterator[str]:
    """Yield lines with their ends. A line of very many cells is refused before it is split."""
    for number, line in enumerate(io.StringIO(text, newline=""), 1):
        checks.at_most(f"letters in line {number} of {path}", MOST_LETTERS, len(line), "shorten it")
        yield line


def _delimiter(text: str) -> str:
    r"""Return what separates cells: what splits the header and the first row alike, else what splits the header most.

    >>> _delimiter("model;ms\na;1,5"), _delimiter("model,ms\na,1.5"), _delimiter("model\na")
    (';', ',', ',')
    """
    sizes = {}
    for delimiter in DELIMITERS:
        try:
            header, first = ([len(row) for _, _, row in islice(_rows(text, "", delimiter), 2)] + [0, 0])[:2]
        except InvalidInput:
            continue
        if header == first > 1:
            return delimiter
        sizes[delimiter] = header
    return max(sizes, key=lambda delimiter: sizes[delimiter], default=",")


class Columns:
    """The columns of a pandas, polars or pyarrow table, or of a dict.

    where: what the table is called; a CSV file is called by its name, and its rows by its lines.
    """

    def __init__(self, frame: Any, where: str) -> None:
        # pyarrow tables spell it column_names; iterating a dict gives its keys
        names = getattr(frame, "column_names", None) or getattr(frame, "columns", frame)
        if isinstance(frame, str) or not hasattr(names, "__iter__") or not hasattr(frame, "__getitem__"):
            raise InvalidInput(f"frame of {where} must be a table or a dict of columns, got {checks.got(frame)}")
        self.frame = frame
        self.lines = frame.lines if isinstance(frame, CSVTable) else None
        self.where = frame.source if isinstance(frame, CSVTable) else where
        self.names = list(names)
        self.n_rows = 0

    def at(self, row: int) -> str:
        """Which row, for a message."""
        return f"row {row}" if self.lines is None else f"line {self.lines[row]}"

    def row(self, row: int) -> str:
        """Which row of what, for a message."""
        return f"{self.at(row)} of {self.where}"

    def cells(
        self,
        labels: Sequence[str],
        blocks: Sequence[str],
        arms: Sequence[str],
        named: Sequence[str],
        relative: Mapping[str, bool],
    ) -> FloatArray:
        """Return what was measured of each arm on each block: (arms, blocks, columns), the mean of repeats, or NaN.

        labels, blocks: of each row. arms, named: all there are, in their order. relative: of each column, whether it is
        compared by ratios; then means are geometric, and numbers must be above 0.
        """
        arm_at, block_at = {name: k for k, name in enumerate(arms)}, {name: b for b, name in enumerate(named)}
        of_arm, of_block = np.array([arm_at[name] for name in labels]), np.array([block_at[name] for name in blocks])
        values = np.full((len(arms), len(named), len(relative)), np.nan)
        for position, (name, by_ratios) in enumerate(relative.items()):
            given = np.array(self.numbers_or_none(name), float)
            there = ~np.isnan(given)
            if by_ratios and (given[there] <= 0).any():
                row = int(np.flatnonzero(there & (given <= 0))[0])
                raise InvalidInput(
                    f"{name!r} in {self.row(row)} ({labels[row]} on {blocks[row]}) must be above 0 to be compared in "
                    f"percent, got {given[row]:g}"
                )
            total, n = np.zeros(values.shape[:2]), np.zeros(values.shape[:2])
            rows = np.flatnonzero(there)
            rows = rows[np.argsort(given[rows], kind="stable")]  # rounding must not depend on the order of the file
            where = of_arm[rows], of_block[rows]
            np.add.at(total, where, np.log(given[rows]) if by_ratios else given[rows])
            np.add.at(n, where, 1)
            mean = total / np.maximum(n, 1)
            # one number stays what it is, to the last digit
            once = np.full(values.shape[:2], np.nan)
            once[where] = given[rows]
            values[:, :, position] = np.where(n > 1, np.exp(mean) if by_ratios else mean, once)
        return values

    def with_columns(self, columns: Mapping[str, list[Any]]) -> Mapping[str, Any]:
        """Return other columns of the same rows, which are called the same."""
        return columns if self.lines is None else CSVTable(columns, self.where, self.lines)

    def check_there(self, name: str) -> None:
        """Refuse a column that is not there, or twice."""
        if name in self.names:
            if self.names.count(name) > 1:
                raise InvalidInput(f"column {name!r} of {self.where} must be there once, got it twice")
            return
        hint = ""
        if self.lines is not None and len(self.names) == 1:
            hint = ". It has but one column: cells must be separated by ',', ';' or tabs"
        raise UnknownName("column", name, map(str, self.names), f"of {self.where}", hint)

    def _column(self, name: str) -> Any:
        self.check_there(name)
        values = np.asarray(self.frame[name])
        if values.ndim != 1:
            raise InvalidInput(
                f"column {name!r} of {self.where} must be a list of values, got {checks.got(self.frame[name])}"
            )
        self.n_rows = self.n_rows or len(values)
        if len(values) != self.n_rows or not self.n_rows:
            raise InvalidInput(
                f"columns of {self.where} must be equally long and not empty, "
                f"but {name!r} has {counted(len(values), 'row')} and another {self.n_rows}"
            )
        return values

    def labels(self, name: str, of: str = "an arm") -> list[str]:
        """The names of the arms, or of something else, row by row."""
        values = self._column(name)
        for row, value in enumerate(values):
            if _is_missing(value):
                raise InvalidInput(
                    f"column {name!r} of {self.where} must name {of} in every row, got {_got(value)} in {self.at(row)}"
                )
        try:
            return [str(value) for value in values]
        except ValueError as problem:  # Python does not write out whole numbers of more than 4300 digits
            raise InvalidInput(f"column {name!r} of {self.where} must hold names, but: {problem}") from None

    def numbers(self, name: str) -> FloatArray:
        """A column of finite numbers; texts that spell numbers will do."""
        values, numbers = self._column(name), self._floats(name)
        wrong = ~np.isfinite(numbers)
        if wrong.any():
            row = int(wrong.argmax())
            raise InvalidInput(
                f"column {name!r} of {self.where} must hold a finite number in every row, "
                f"got {_got(values[row])} in {self.at(row)}"
            )
        return numbers

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers, or texts that all spell one."""
        values = self._column(name)
        if values.dtype.kind in "biuf":
            return True
        try:
            [_float(value) for value in values]
        except (TypeError, ValueError, OverflowError):
            return False
        return True

    def numbers_or_none(self, name: str, truths: bool = True) -> list[float | None]:
        """A column of finite numbers in which some may be missing: empty, None or NaN.

        truths: whether True and False are taken for 1 and 0.
        """
        values, numbers = self._column(name), self._floats(name)
        if not truths:
            given = self.frame[name]  # numpy makes numbers of the truths in a list
            for row, value in enumerate(given if isinstance(given, (list, tuple)) else values):
                if isinstance(value, (bool, np.bool_)):
                    raise InvalidInput(
                        f"column {name!r} of {self.where} must hold numbers, got {_got(value)} in {self.at(row)}: "
                        "write 1 or 0"
                    )
        infinite = np.isinf(numbers)
        if infinite.any():
            row = int(infinite.argmax())
            raise InvalidInput(
                f"column {name!r} of {self.where} must be finite, got {_got(values[row])} in {self.at(row)}"
            )
        return [None if number != number else number for number in numbers.tolist()]

    def _floats(self, name: str) -> FloatArray:
        """A column of numbers, NaN where one is missing; the first cell that holds anything else is refused."""
        values = self._column(name)
        if values.dtype.kind in "biuf" or (values.dtype.kind == "U" and _is_plain("".join(values.tolist()))):
            try:
                return values.astype(float)
            except ValueError:
                pass  # a cell is empty, or wrong
        numbers = np.full(len(values), np.nan)
        for row, value in enumerate(values):
            try:
                numbers[row] = np.nan if _is_missing(value) else _float(value)
            except OverflowError:  # a whole number that is larger than any float
                numbers[row] = np.inf
            except (TypeError, ValueError):
                raise InvalidInput(
                    f"column {name!r} of {self.where} must hold numbers, "
                    f"got {_got(value)} in {self.at(row)}{_how_to_write(value)}"
                ) from None
        return numbers


def _is_plain(text: str) -> bool:
    """True if no number in a text is written in a way that only Python knows: 1_000, or digits of other scripts."""
    return "_" not in text and text.isascii()


def _float(value: Any) -> float:
    """Return the number that a cell is, or spells."""
    if isinstance(value, (str, bytes)) and not _is_plain(str(value).strip()):
        raise ValueError
    return float(value)


def _got(value: Any) -> str:
    """Return a cell for a message."""
    if isinstance(value, str):  # numpy's texts among them, which show that they are numpy's
        return checks.got(str(value)) if value.strip() else "an empty cell"
    return checks.got(value.item() if isinstance(value, np.generic) else value)


def _how_to_write(cell: Any) -> str:
    """Say what is wrong with a text that nearly is a number."""
    text = str(cell).strip()
    if _WITH_COMMA.fullmatch(text):
        return ": write decimals with a point, and nothing between thousands"
    if _WITH_UNIT.fullmatch(text):
        return ": write the number without its unit"
    if "\n" in text:
        return ": is a quotation mark not closed?"
    if text.lower() in ("na", "n/a", "-", "?", "none", "null", "missing"):
        return ": leave a cell empty if there is no number"
    return ""


def _is_missing(value: Any) -> bool:
    """Whether a cell is empty: None, NaN, a blank text, or pandas' NA, which cannot be compared with anything."""
    if isinstance(value, (float, np.floating)):
        return bool(value != value)
    return value is None or (not isinstance(value, int) and str(value).strip() in ("", "<NA>", "NaT"))


#: How to make a frame of a dict of columns, by the package it comes from.
MAKERS = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


def frame_of(columns: Mapping[str, Sequence[Any]], package: str | None = None) -> Any:
    """Return columns as a frame of a package; None: of the first that is installed of pandas, polars, pyarrow."""
    if package is not None and package not in MAKERS:
        raise InvalidInput(f"package of a frame must be one of {', '.join(MAKERS)}, got {package!r}")
    for name in [package] if package else MAKERS:
        try:
            return getattr(import_module(name), MAKERS[name])(dict(columns))
        except ImportError:
            continue
    raise MissingExtra("a frame", "frames")


def names_in(path: Path) -> Any:
    """Read the names of blocks: a text file has one in each line, a CSV or .jsonl file a column of them."""
    if path.suffix.lower() in READERS:
        return READERS[path.suffix.lower()](path)
    return [text.strip() for text in text_of(path, "text").splitlines() if text.strip()]


def read_yaml(path: Path, what: str) -> Any:
    """Return what a YAML file holds. what: what it describes, such as "a study".

    Values are counted before any is made: aliases and merge keys (`<<`) can make a short text endless.
    """
    try:
        import yaml
    except ImportError:
        raise MissingExtra(f"{what} in a YAML file", "yaml") from None
    text = text_of(path, "YAML", checks.MOST_YAML_BYTES)
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _count_yaml(node, str(path))
            value = loader.construct_document(node)
        finally:
            loader.dispose()
    except RecursionError:
        raise InvalidInput(f"{path} must be nested at most {checks.DEEPEST} deep, got more") from None
    except InvalidInput:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, yaml.YAMLError) as problem:
        raise InvalidInput(f"{path} must be a YAML file, but: {' '.join(str(problem).split())}") from None
    return checks.not_nested(str(path), value)


def _count_yaml(node: Any, path: str) -> None:
    """Refuse a YAML document of too many values, with each alias counted in full, or of too long numbers."""
    sizes: dict[int, int] = {}

    def size(node: Any, above: frozenset[int]) -> int:
        if id(node) in above or len(above) > checks.DEEPEST:
            raise InvalidInput(f"{path} must be nested at most {checks.DEEPEST} deep, got more")
        if id(node) not in sizes:
            n = 1
            if isinstance(node.value, list):
                inner = above | {id(node)}
                for child in node.value:
                    n += sum(size(each, inner) for each in (child if isinstance(child, tuple) else (child,)))
            elif len(node.value) > checks.LONGEST_NAME and node.tag != "tag:yaml.org,2002:str":
                raise InvalidInput(f"numbers of {path} must be at most {checks.LONGEST_NAME} letters long")
            sizes[id(node)] = n
        return sizes[id(node)]

    n = size(node, frozenset())
    if n > checks.MOST_VALUES:
        raise InvalidInput(
            f"{path} must hold at most {checks.MOST_VALUES:,} values, got {n:,}: put long lists into CSV files"
        )
