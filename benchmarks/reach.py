"""`make reach`: scout against multi-pfi on the instances we are measured by, and on fresh ones of the same kinds.

Medians of samples and means of regret; failures with an exact interval. Prints a table and writes JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import paretoscout as ps
from paretoscout.algorithms import MultiPFI, Scout
from paretoscout.errors import MissingData
from paretoscout.simulation.results import rate_interval

DIALS = (0.0, 0.3, 0.5, 0.9, 0.97, 1.0)


def linear(n_arms: int, d: int, sigma: float, seed: int) -> ps.Problem:
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(n_arms, d))
    theta = rng.normal(size=(d, 2))
    contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
    return ps.problems.linear(contexts, theta / np.linalg.norm(theta, axis=0), sigma)


def sw_llvm() -> ps.Problem | str:
    try:
        return ps.problems.load("sw-llvm")
    except MissingData as missing:
        return str(missing)


def instances(fresh: bool) -> list[tuple[str, ps.Problem | str, float, float | None, int]]:
    """Name, problem, eps, sigma to assume, replicates for a full run."""
    if fresh:
        seeds = range(100, 110)
        return [
            *(
                (
                    f"16 random arms, seed {s}",
                    ps.problems.gaussian(np.random.default_rng(s).standard_normal((16, 2)), 0.5),
                    0.1,
                    None,
                    50,
                )
                for s in seeds
            ),
            *(
                (
                    f"4 random arms, seed {s}",
                    ps.problems.gaussian(np.random.default_rng(s).standard_normal((4, 2)), 1.0),
                    0.1,
                    None,
                    50,
                )
                for s in seeds
            ),
            *((f"linear K=16 d=4, seed {s}", linear(16, 4, 1.0, s), 0.05, None, 50) for s in seeds),
            *((f"linear K=1000 d=8, seed {s}", linear(1000, 8, 0.5, s), 0.1, None, 20) for s in seeds),
        ]
    return [
        ("SW-LLVM, 16 arms", sw_llvm(), 0.06, 0.226, 200),
        ("16 random arms", ps.problems.load("random-16"), 0.1, None, 200),
        ("4 arms", ps.problems.load("four-arms"), 0.1, None, 200),
        ("linear K=16 d=4", ps.problems.load("linear-16"), 0.0, None, 200),
        ("linear K=1000 d=8", linear(1000, 8, 0.5, 1), 0.1, None, 200),
    ]


def measure(replicates: float, fresh: bool, dials: tuple[float, ...]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, problem, eps, sigma, full in instances(fresh):
        if isinstance(problem, str):
            rows.append({"instance": name, "skipped": problem})
            continue
        n = max(4, int(full * replicates))
        for settings in [MultiPFI(sigma=sigma), *(Scout(regret_weight=dial, sigma=sigma) for dial in dials)]:
            # compiled before the clock starts
            ps.simulate(problem, settings, eps=eps, delta=0.1, replicates=1, max_samples=1)
            began = time.perf_counter()
            result = ps.simulate(problem, settings, eps=eps, delta=0.1, replicates=n, seed=7)
            spent = (time.perf_counter() - began) * min(n, os.cpu_count() or 1)
            failures = int((~result.success).sum())
            rows.append(
                {
                    "instance": name,
                    "algorithm": result.label,
                    "replicates": n,
                    "samples": float(np.median(result.samples)),
                    "regret": float(result.regret.mean()),
                    "failures": failures,
                    "interval": rate_interval(failures, n),
                    "microseconds": 1e6 * spent / int(result.samples.sum()),
                }
            )
    return rows


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """The dial as a curve, samples against regret, with multi-pfi beside it."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    shown = [row for row in rows if "skipped" not in row]
    titles = [row["instance"] for row in shown if row["algorithm"].startswith("multi-pfi")]
    columns = min(3, len(titles))
    lines = -(-len(titles) // columns)
    figure = Figure(figsize=(3.1 * columns, 2.9 * lines), dpi=150, layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes in panels[len(titles) :]:
        axes.set_visible(False)
    for axes, title in zip(panels, titles, strict=False):
        points = [
            (row["samples"], row["regret"], "multi-pfi" if row["algorithm"].startswith("multi-pfi") else "")
            for row in shown
            if row["instance"] == title
        ]
        curve = [(x, y) for x, y, label in points if not label]
        axes.plot(*zip(*curve, strict=True), "-o", color="#0072B2", markersize=4)
        for text, (x, y), align, shift in (("dial at 0", curve[0], "left", 6), ("dial at 1", curve[-1], "center", -12)):
            axes.annotate(
                text, (x, y), textcoords="offset points", xytext=(4, shift), fontsize=8, color="#0072B2", ha=align
            )
        for x, y, label in points:
            if label:
                axes.plot(x, y, "s", color="#777777")
                axes.annotate(label, (x, y), textcoords="offset points", xytext=(-7, -3), ha="right", fontsize=8)
        for axis, set_scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
            set_scale("log")
            values = [point[0 if axis is axes.xaxis else 1] for point in points]
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(values) < 20 * min(values) else (1,)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            axis.set_minor_formatter(NullFormatter())
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_xlabel("median samples", fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=7)
        axes.margins(0.18)
    for axes in panels[::columns]:
        axes.set_ylabel("mean regret", fontsize=8)
    figure.savefig(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("out/reach.json"))
    parser.add_argument("--replicates", type=float, default=1.0, help="multiple of the full number of replicates")
    parser.add_argument("--fresh", action="store_true", help="ten fresh instances of each kind, dial at 0 and default")
    parser.add_argument("--picture", type=Path, help="where to draw samples against regret")
    arguments = parser.parse_args()
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    rows = measure(arguments.replicates, arguments.fresh, (0.0, 0.5) if arguments.fresh else DIALS)
    arguments.json.write_text(json.dumps(rows, indent=2))
    if arguments.picture is not None and not arguments.fresh:
        draw(rows, arguments.picture)
    table = Table("instance", "algorithm", "median samples", "mean regret", "failures", "µs a sample", box=None)
    for row in rows:
        if "skipped" in row:
            table.add_row(row["instance"], f"skipped: {row['skipped']}")
            continue
        low, high = row["interval"]
        table.add_row(
            row["instance"],
            row["algorithm"],
            f"{row['samples']:,.0f}",
            f"{row['regret']:,.0f}",
            f"{row['failures']} of {row['replicates']} ({low:.3f}–{high:.3f})",
            f"{row['microseconds']:.1f}",
        )
    Console(width=130).print(table)
    return int(any(row.get("interval", (0.0,))[0] > 0.1 for row in rows))


if __name__ == "__main__":
    sys.exit(main())
