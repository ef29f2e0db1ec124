"""`sweep`: algorithms on problems, over a grid of settings, many times each; rows in a folder."""

from __future__ import annotations

import itertools
import json
import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks, problems
from ..algorithms.contract import Settings
from ..algorithms.registry import get, resolve
from ..defaults import DELTA
from ..engines import opened
from ..errors import InvalidInput, UnknownName
from ..notebook import page
from ..problem import Problem
from ..shown import counted
from ..simulation.replicates import DEFAULT_MAX_SAMPLES
from ..simulation.results import Result, rate_interval
from ..written import algorithm as written
from .cells import Plan
from .runs import KEPT, TIME, RunCell
from .schedule import finish
from .store import Folder, Row

#: What of a run can be in the grid, besides settings of algorithms.
OF_RUNS = ("eps", "delta", "goal", "budget", "max_samples", "target")


def sweep(
    problems: Any,
    algorithms: Any,
    *,
    grid: Mapping[str, Any] | None = None,
    replicates: int = 100,
    seed: int = 0,
    out: str | Path,
    engine: str = "threads",
    workers: int | None = None,
    keep: Sequence[str] = ("front",),
    progress: bool | None = None,
) -> Sweep:
    """Run algorithms on problems, for every point of a grid, and keep one row a replicate in a folder of Parquet files.

    problems: a problem or a list of them: names (`problems.available()`), or what functions of `problems` return.
    algorithms: the same with names, such as "pfiwr:exploration=0.01", or settings objects.
    grid: lists of values: of what `simulate` takes (eps, delta, goal, budget, max_samples, target), or of a setting of
    one algorithm, such as {"eps": [0.05, 0.1], "pfiwr.width_scale": [0.1, 0.3]}. All of them are combined.
    replicates: of each combination. Replicate number n is that of `simulate` with the same seed, whatever the engine.
    out: a folder. If it has rows of this sweep already, only what is missing is run: after a crash, after Ctrl-C, and
    if you ask for more replicates, values, algorithms or problems.
    engine: "threads", "processes", "dask", "ray", or a cluster such as "dask://host:8786"; see `engines.py`.
    workers: how many, on this machine; None: one for each core.
    keep: what else is kept of a replicate: "front" (returned arms), "pulls" (samples of each arm), "curve" (regret).
    progress: as in `simulate`.

    `pandas.read_parquet(out)` reads the rows. Ctrl-C keeps what is finished, and returns it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = sweep("s5", ["scout", "uniform"], grid={"eps": [0.2]}, replicates=3, out=folder)
    ...     [(line.label, line.replicates, line.failures) for line in done.lines]
    [('scout', 3, 0), ('uniform', 3, 0)]
    """
    cells = cells_of(problems, algorithms, grid or {}, seed, keep)
    plan = Plan(checks.whole("replicates of a sweep", replicates, least=1))
    made = swept([(cell, plan) for cell in cells], Folder(out), engine, workers, progress)
    if len(made.refused) == len(cells):
        raise InvalidInput(f"a sweep must have an algorithm that can be run, but: {next(iter(made.refused.values()))}")
    return made


def swept(
    asked: Sequence[tuple[RunCell, Plan]],
    folder: Folder,
    engine: str = "threads",
    workers: int | None = None,
    progress: bool | None = None,
    title: str = "sweep",
) -> Sweep:
    """Play cells, each by its plan, and keep their rows in a folder. Ctrl-C keeps what is finished, and returns it."""
    made = Sweep(folder, tuple(cell for cell, _ in asked), max(plan.replicates for _, plan in asked))
    with opened(engine, workers) as where, folder.writing(made.cells):
        try:
            made.refused |= {cell.key: why for cell, why in finish(asked, folder, where, title, progress) if why}
        except KeyboardInterrupt:
            made.interrupted = True
    return made


def cells_of(
    problems: Any, algorithms: Any, grid: Mapping[str, Any], seed: int = 0, keep: Sequence[str] = ()
) -> list[RunCell]:
    """Return the cells of a declared sweep; what is wrong with it is said at once."""
    if isinstance(keep, str) or not isinstance(keep, Sequence):
        raise InvalidInput(f"keep of a sweep must be a list of names, got {keep!r}")
    if not isinstance(grid, Mapping) or not all(isinstance(name, str) for name in grid):
        raise InvalidInput(f"grid of a sweep must have lists of values by name, such as {{'eps': [0.1]}}, got {grid!r}")
    algorithms = _several(algorithms, "algorithms of a sweep", Settings)
    for name in keep:
        if name not in KEPT:
            raise UnknownName("part of a replicate to keep", name, KEPT)
    checks.whole("seed of a sweep", seed, least=0)
    found = [_problem(each) for each in _several(problems, "problems of a sweep", Problem)]
    twice = [one.name for one, other in itertools.combinations(found, 2) if one.name == other.name]
    if twice:
        raise InvalidInput(
            f"names of the problems of a sweep must differ, got {twice[0]!r} twice: problem.replace(name=...)"
        )
    values = {name: _values(name, given) for name, given in grid.items()}
    of_runs = {name: given for name, given in values.items() if name in OF_RUNS}
    cells, used = [], set(of_runs)
    for problem in found:
        for given in algorithms:
            settings = _settings(given, problem)
            name = resolve(settings)[0].name
            own = {each: values[each] for each in values if each.partition(".")[0] == name and "." in each}
            used |= set(own)
            for point in _points({**of_runs, **own}):
                run = {each: point[each] for each in OF_RUNS if each in point}
                stated = problem if run.get("target") is None else problem.about_blocks(run["target"])
                target = {"target": run.pop("target")} if "target" in run else {}
                run = {each: value for each, value in run.items() if value is not None or each == "eps"}
                asked = {each: run[each] for each in run if each != "max_samples"}
                stated.asked(**{"delta": DELTA, **asked})  # refused now, not in the middle of the work
                checks.whole("max_samples of a sweep", run.get("max_samples", DEFAULT_MAX_SAMPLES), least=1)
                changed = {each.partition(".")[2]: point[each] for each in own}
                cells.append(
                    RunCell(
                        stated,
                        name,
                        _changed(settings, changed, name),
                        seed=seed,
                        keep=tuple(keep),
                        more={
                            **dict.fromkeys(each for each in values if "." in each),
                            **{each: _plain(point[each]) for each in own},
                            **target,
                        },
                        **{"delta": DELTA, **run},
                    )
                )
    for name in values:
        if name not in used:
            raise UnknownName("setting in the grid of a sweep", name, [*OF_RUNS, *_known(algorithms)])
    keys = [cell.key for cell in cells]
    same = [cell for cell in cells if keys.count(cell.key) > 1]
    if same:
        raise InvalidInput(
            f"algorithms of a sweep must differ, got {same[0].columns['label']!r} twice on {same[0].problem.name!r}"
        )
    return cells


def _plain(value: Any) -> Any:
    """Return a value as a column holds it."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else json.dumps(value, default=repr)


def _points(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(grid, point, strict=True)) for point in itertools.product(*grid.values())]


def _several(given: Any, what: str, kind: type) -> list[Any]:
    """Return a list, whether there are several or one."""
    several: list[Any]
    if isinstance(given, (str, kind)):
        several = [given]
    elif isinstance(given, Iterable) and not isinstance(given, Mapping):
        several = list(given)
    else:
        how = " (settings are written like 'scout:regret_weight=0.5', or are in the grid)" if kind is Settings else ""
        raise InvalidInput(f"{what} must be one or a list{how}, got {given!r}")
    if not several:
        raise InvalidInput(f"{what} must be at least one, got none")
    return several


def _problem(given: Any) -> Problem:
    if isinstance(given, str):
        return problems.load(given)
    if not isinstance(given, Problem):
        raise InvalidInput(f"problems of a sweep must be names or made by paretoscout.problems, got {given!r}")
    return given


def _settings(given: Any, problem: Problem) -> Settings:
    if isinstance(given, str):
        return written(given, noise_given=problem.statement.knows_sigma)
    return resolve(given)[1]


def _values(name: str, given: Any) -> list[Any]:
    listed = (isinstance(given, Sequence) and not isinstance(given, str)) or np.ndim(given) == 1
    if not listed or not len(given):
        raise InvalidInput(f"{name} in the grid of a sweep must be a list of values, got {given!r}")
    return [each.item() if isinstance(each, np.generic) else each for each in given]


def _changed(settings: Settings, changed: Mapping[str, Any], name: str) -> Settings:
    known = [each.name for each in fields(settings)]
    for each in changed:
        if each not in known:
            raise UnknownName(f"setting of {name} in the grid of a sweep", each, known)
    return replace(settings, **changed)


def _known(algorithms: Sequence[Any]) -> list[str]:
    names = [given.partition(":")[0] for given in algorithms if isinstance(given, str)]
    return [f"{name}.{each.name}" for name in names for each in fields(get(name).settings)]


@dataclass(frozen=True)
class Line:
    """What came of one combination, in a few numbers."""

    problem: str
    label: str
    point: dict[str, Any]  # the columns that differ between combinations, besides problem and algorithm
    replicates: int
    samples: float  # median
    regret: float  # mean
    failures: int
    interval: tuple[float, float]  # of the failure rate, 95%, exact
    seconds: float  # of work
    microseconds: float  # of work, per sample
    refused: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers and texts, ready for JSON."""
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in vars(self).items()
        }


HEADINGS = ("samples (median)", "regret (mean)", "failures (95% interval)", "replicates")


@dataclass(eq=False)
class Sweep:
    """What a sweep has in its folder."""

    folder: Folder
    cells: tuple[RunCell, ...]
    replicates: int  # asked for, of each cell
    refused: dict[str, str] = field(default_factory=dict)  # by the key of a cell: why it was not run
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Whether all that was asked for is there."""
        asked = set(range(self.replicates))
        return all(asked <= self.folder.numbers(cell) for cell in self.cells if cell.key not in self.refused)

    def rows(self, cell: RunCell) -> list[Row]:
        """Return the rows of one combination, by their numbers; those that were asked for."""
        return [row for row in self.folder.rows(cell) if row["replicate"] < self.replicates]

    def frame(self) -> Any:
        """Return all rows as a pandas frame, in the order of the combinations."""
        import pandas as pd

        rows = [row for cell in self.cells for row in self.rows(cell)]
        return pd.DataFrame(rows, columns=list(self.folder.columns))

    def result(self, cell: RunCell) -> Result:
        """Return one combination as `simulate` would, to plot it; the sweep must keep front, pulls and curve."""
        lacking = [name for name in KEPT if name not in cell.keep]
        if lacking:
            raise InvalidInput(f"keep of the sweep must have {', '.join(lacking)} for a result, got {cell.keep}")
        return cell.result(self.rows(cell), self.replicates)

    @property
    def point_names(self) -> list[str]:
        """The columns that differ between combinations, besides problem and algorithm."""
        names = [name for name in self.cells[0].columns if name not in ("problem", "algorithm", "label", "settings")]
        return [name for name in names if len({repr(cell.columns.get(name)) for cell in self.cells}) > 1]

    @property
    def lines(self) -> list[Line]:
        """A line for each combination."""
        return [self.line(cell) for cell in self.cells]

    def line(self, cell: RunCell) -> Line:
        """Return what came of one combination.

        Runs that were cut off for lack of time count only where there are no others: then as failures.
        """
        samples, regret, seconds = array("d"), array("d"), 0.0  # of a million rows only these are kept
        failures = cut_off = taken = 0
        for row in self.folder.each_row(cell, ("samples", "regret", "success", "ended", "seconds")):
            if row["replicate"] >= self.replicates:  # of an earlier call that asked for more
                continue
            seconds, taken = seconds + row["seconds"], taken + row["samples"]
            if row["ended"] == TIME:
                cut_off += 1
            else:
                samples.append(row["samples"])
                regret.append(row["regret"])
                failures += not row["success"]
        n = len(samples) or cut_off
        failures = failures if samples else cut_off
        columns = cell.columns
        return Line(
            problem=columns["problem"],
            label=columns["label"],
            point={name: columns[name] for name in self.point_names},
            replicates=n,
            samples=float(np.median(samples)) if samples else math.nan,
            regret=math.fsum(regret) / len(regret) if regret else math.nan,
            failures=failures,
            interval=rate_interval(failures, n) if n else (0.0, 1.0),
            seconds=seconds,
            microseconds=1e6 * seconds / taken if samples else math.nan,
            refused=self.refused.get(cell.key, ""),
        )

    @property
    def table(self) -> list[list[str]]:
        """A heading and a line for each combination that was run, for people to read."""
        names = self.point_names
        lines = [["problem", "algorithm", *names, *HEADINGS]]
        for line in self.lines:
            low, high = line.interval
            if not line.refused:
                point = (_shown(line.point[name]) for name in names)
                numbers = or_dash(line.samples, ",.0f"), or_dash(line.regret, ",.1f")
                failures = f"{line.failures} ({low:.3f}–{high:.3f})"
                lines.append([line.problem, line.label, *point, *numbers, failures, f"{line.replicates:,}"])
        return lines

    @property
    def notes(self) -> list[str]:
        """What else there is to know."""
        notes = [f"not run: {line.label} on {line.problem}: {line.refused}" for line in self.lines if line.refused]
        if aside := self.folder.set_aside:
            files = counted(len(aside), "file")
            notes.append(f"{files} in {self.folder.path} could not be used (_set-aside-...): what lacked was run again")
        if not self.complete:
            notes.append("not complete: the same call goes on from here")
        return list(dict.fromkeys(notes))

    def __repr__(self) -> str:
        return f"<Sweep in {self.folder.path}: {len(self.cells)} combinations, {self.replicates} replicates each>"

    def _repr_html_(self) -> str:
        head, *rows = self.table
        return page(str(self.folder.path), [head, *rows], self.notes, texts=2 + len(self.point_names))


def or_dash(value: float, form: str) -> str:
    """Return a number as text; a dash where there is none."""
    return "–" if math.isnan(value) else format(value, form)


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
