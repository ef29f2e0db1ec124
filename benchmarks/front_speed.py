"""Speed of finding the front, against moocore and paretoset: `python benchmarks/front_speed.py [--quick]`.

All are timed in turns within each round, so that a busy machine slows all of them alike. The time of a
case is the median over rounds. The exit status is 1 if we take more than twice as long as the better rival.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import paretoscout as ps

Table2D = NDArray[np.float64]
Finder = Callable[[Table2D], NDArray[np.bool_]]

LIMIT = 2.0
PATIENCE = 2e7  # rows times front: paretoset needs some 5 ns for each, moocore far less where they are many


def cases(n_rows: int, n_columns: int, rng: np.random.Generator) -> Iterator[tuple[str, Table2D]]:
    """Yield the name and the rows of each case; on the sphere, all points are undominated."""
    shape = (n_rows, n_columns)
    yield "uniform", rng.random(shape)
    yield "ascending", np.sort(rng.random(shape), axis=0)
    yield "correlated", rng.normal(size=(n_rows, 1)) + 0.3 * rng.normal(size=shape)
    sphere = np.abs(rng.normal(size=shape))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    yield "sphere", sphere
    yield "small integers", rng.integers(0, 5, shape).astype(float)
    counts = rng.multinomial(2 * n_columns, np.full(n_columns, 1 / n_columns), n_rows)
    yield "integers, equal sum", counts.astype(float)
    yield "copies of 20", np.ascontiguousarray(sphere[rng.integers(0, min(20, n_rows), n_rows)])
    yield "all identical", np.ones(shape)


def rivals() -> tuple[dict[str, Finder], list[str]]:
    """Return the installed rivals, and a reason for each one that is not."""
    found: dict[str, Finder] = {}
    missing = []
    for name, call in {
        "moocore": lambda package, y: package.is_nondominated(y, maximise=True, keep_weakly=True),
        "paretoset": lambda package, y: package.paretoset(y, sense=["max"] * y.shape[1], distinct=False),
    }.items():
        try:
            package = import_module(name)
        except ImportError as reason:
            missing.append(f"{name} skipped: {reason}")
        else:
            found[name] = lambda y, call=call, package=package: call(package, y)  # type: ignore[misc]
    return found, missing


def race(finders: dict[str, Finder], values: Table2D, seconds: float) -> dict[str, float]:
    """Return the median seconds of each finder, timed in turns for about `seconds`, at least three times."""
    calls = {}
    for name, find in finders.items():
        start = time.perf_counter()
        find(values)
        calls[name] = max(1, int(1e-3 / (time.perf_counter() - start)))
    times: dict[str, list[float]] = {name: [] for name in finders}
    begin = time.perf_counter()
    while len(times["ours"]) < 3 or time.perf_counter() - begin < seconds:
        for name, find in finders.items():
            start = time.perf_counter()
            for _ in range(calls[name]):
                find(values)
            times[name].append((time.perf_counter() - start) / calls[name])
    return {name: float(np.median(each)) for name, each in times.items()}


def measure(quick: bool) -> list[dict[str, Any]]:
    """Return a row for each case: case, L, K, front, seconds of each finder, our time over the best rival's.

    A rival that is missing, or left out as too slow, has None for its seconds.
    """
    rng = np.random.default_rng(20240607)
    installed, _ = rivals()
    rows = []
    for n_columns in (2, 3, 8) if quick else (1, 2, 3, 4, 5, 8):
        for n_rows in (100, 10_000) if quick else (100, 1_000, 10_000, 100_000):
            for case, values in cases(n_rows, n_columns, rng):
                mask = ps.geometry.pareto_front(values)
                n_front = int(mask.sum())
                finders: dict[str, Finder] = {"ours": ps.geometry.pareto_front, **installed}
                if "moocore" in finders and n_front * n_rows > PATIENCE:
                    finders.pop("paretoset", None)
                for name, find in finders.items():
                    assert np.array_equal(mask, find(values)), f"{name} disagrees: {case}, {values.shape}"
                seconds = race(finders, values, 0.05 if quick else 0.25)
                best = min((seconds[name] for name in finders if name != "ours"), default=np.nan)
                row: dict[str, Any] = {"case": case, "L": n_columns, "K": n_rows, "front": n_front}
                row |= {f"{name}_s": seconds.get(name) for name in ("ours", "moocore", "paretoset")}
                rows.append(row | {"ratio_to_best": seconds["ours"] / best})
    return rows


def main(quick: bool) -> int:
    console = Console()
    for reason in rivals()[1]:
        console.print(reason)
    rows = measure(quick)
    table = Table(title="Milliseconds to find the front")
    for heading in ("case", "L", "K", "front", "ours", "moocore", "paretoset", "ours / best rival"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for row in rows:
        times = [row[f"{name}_s"] for name in ("ours", "moocore", "paretoset")]
        shown = ["-" if seconds is None else f"{1e3 * seconds:.3f}" for seconds in times]
        style = "red" if row["ratio_to_best"] > LIMIT else None
        counts = (str(row[name]) for name in ("L", "K", "front"))
        table.add_row(row["case"], *counts, *shown, f"{row['ratio_to_best']:.2f}", style=style)
    console.print(table)
    worst = max(rows, key=lambda row: row["ratio_to_best"])
    where = f"{worst['case']}, L={worst['L']}, K={worst['K']}"
    console.print(f"worst ratio {worst['ratio_to_best']:.2f} ({where}), limit {LIMIT}")
    return int(worst["ratio_to_best"] > LIMIT)


if __name__ == "__main__":
    sys.exit(main("--quick" in sys.argv[1:]))
