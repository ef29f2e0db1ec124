"""Real features of real options: what a linear model is worth where it is not true.

Each data set is solved with its features ignored, taken for a guide, trusted, and trusted up to a misfit, by scout and by
rivals: one sweep (docs/sweeps.md), which a second call goes on with. Prints a table, writes JSON, draws docs/images/real-contexts.png, and
renews the tables of docs/real-contexts.md, whose text says what came out.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

import paretoscout as ps
from benchmarks.leaderboard import DELTA, arguments, cell_of, failures_of, played, write_json
from paretoscout.algorithms import Scout, Settings, get
from paretoscout.errors import MissingData
from paretoscout.sweeps.grid import Line, or_dash
from paretoscout.sweeps.runs import RunCell

Array = npt.NDArray[np.float64]
REPLICATES, SECONDS = 40, 30.0
Facts = dict[str, Any]
CASES = (
    ("snw", "main effects"),
    ("snw", "with pairs and squares"),
    ("noc", "main effects"),
    ("noc", "with pairs and squares"),
    ("llvm-passes", "main effects"),
    ("llvm-passes", "with pairs"),
)


def features(contexts: Array, kind: str) -> Array:
    """A constant, the features at mean 0 and deviation 1, and for the larger models their products."""
    centred = (contexts - contexts.mean(axis=0)) / contexts.std(axis=0)
    columns = [np.ones(len(centred)), *centred.T]
    if kind != "main effects":
        columns += [a * b for a, b in itertools.combinations(centred.T, 2)]
    if kind == "with pairs and squares":
        columns += [a * a for a in centred.T]
    wide = np.column_stack(columns)
    # what others explain already says nothing: features of few values have squares that are their own combination
    kept: list[int] = []
    for column in range(wide.shape[1]):
        if np.linalg.matrix_rank(wide[:, [*kept, column]]) == len(kept) + 1:
            kept.append(column)
    return wide[:, kept]


def fit(problem: ps.Problem) -> tuple[Array, Array]:
    """How much of the variance of the means the features explain, and the largest residual, by metric."""
    X, y = problem.contexts, problem.means
    assert X is not None
    residual = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    return 1.0 - residual.var(axis=0) / y.var(axis=0), np.abs(residual).max(axis=0)


def contenders(misfit: Array) -> dict[str, Settings]:
    """Features ignored, taken for a guide, trusted, trusted until a test objects, and trusted up to their true misfit; and rivals."""
    chosen: dict[str, Settings] = {
        "scout, features ignored": Scout(model="tabular"),
        "scout, guided by features": Scout(model="guide"),
        "scout, linear model trusted": Scout(model="linear"),
        "scout, robust, misfit 0": Scout(model="robust"),
        "scout, robust, true misfit": Scout(model="robust", misfit=tuple(misfit.tolist())),
        "multi-pfi, features ignored": get("multi-pfi").settings(),
    }
    if "ape" in ps.algorithms.available():
        chosen["ape, features ignored"] = get("ape").settings()
    if "gege" in ps.algorithms.available():
        chosen["gege, linear model trusted"] = get("gege").settings(model="linear")  # type: ignore[call-arg]
    return chosen


def cells_of(name: str, kind: str, only: str) -> tuple[Facts, list[RunCell]]:
    """What there is to know of a data set with a model, and who runs on it."""
    known = ps.problems.load(name, sigma="largest" if name == "llvm-passes" else None)
    assert known.contexts is not None
    contexts = features(known.contexts, kind)
    problem = known.replace(contexts=contexts)
    explained, misfit = fit(problem)
    facts = {"data": name, "features": kind, "arms": len(problem.arms), "d": contexts.shape[1]}
    facts |= {"explained": explained.tolist(), "misfit_in_eps": (misfit / problem.units().divisors).tolist()}
    more = {"data": name, "features": kind}
    everybody = contenders(misfit).items()
    return facts, [
        cell_of(who, problem, None, None, label=label, more=more) for label, who in everybody if only in label
    ]


def table(rows: list[dict[str, Any]]) -> Table:
    grid = Table(box=None, header_style="bold")
    for title in ("data", "features", "algorithm", "samples", "regret", "failures"):
        grid.add_column(title, justify="right" if title in ("samples", "regret", "failures") else "left")
    for row in rows:
        explained = " / ".join(f"{100 * share:.0f}%" for share in row["explained"])
        grid.add_row(
            f"{row['data']}, K={row['arms']}",
            f"{row['features']}, d={row['d']}, explain {explained}",
            row["line"].label,
            *numbers_of(row),
        )
    return grid


def numbers_of(row: dict[str, Any]) -> list[str]:
    line: Line = row["line"]
    return [or_dash(line.samples, ",.0f"), or_dash(line.regret, ",.0f"), failures_of(line)]


def page(text: str, rows: list[dict[str, Any]]) -> str:
    """Return the page with its tables renewed: each begins with its head, and ends before an empty line."""
    cases = {(row["data"], row["features"]): row for row in rows}
    models = ["| data, model | d | explained variance | largest error of the model, in eps |", "|---|---:|---|---|"]
    for (data, kind), row in cases.items():
        explained = " and ".join(f"{100 * share:.0f}%" for share in row["explained"])
        models.append(
            f"| {data}, {kind} | {row['d']} | {explained} | {' and '.join(f'{e:.0f}' for e in row['misfit_in_eps'])} |"
        )
    runs = ["| data, model | algorithm | samples | regret | failures (95% interval) |", "|---|---|---:|---:|---:|"]
    for row in rows:
        runs.append(f"| {row['data']}, {row['features']} | {row['line'].label} | {' | '.join(numbers_of(row))} |")
    for table in (models, runs):
        before, _, rest = text.partition(table[0])
        text = before + "\n".join(table) + rest[rest.index("\n\n") :]
    return text


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Samples of each algorithm by data set, on a log scale; those that are wrong too often are hollow."""
    from matplotlib.figure import Figure

    cases = list(dict.fromkeys((row["data"], row["features"], row["d"], row["arms"]) for row in rows))
    labels = list(dict.fromkeys(row["line"].label for row in rows))
    colours = ("#0072b2", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#6b6b6b", "#e69f00", "#000000")
    markers = ("o", "*", "s", "^", "D", "X", "P", "v")
    figure = Figure(figsize=(8.0, 1.2 + 0.95 * len(cases)), dpi=200, layout="constrained", facecolor="white")
    axes = figure.subplots()
    for number, label in enumerate(labels):
        shift = 0.74 * (number / max(len(labels) - 1, 1) - 0.5)
        for wrong in (False, True):
            points = [
                (row["line"].samples, cases.index((row["data"], row["features"], row["d"], row["arms"])) + shift)
                for row in rows
                if row["line"].label == label and (row["line"].interval[0] > DELTA) == wrong
            ]
            face = "white" if wrong else colours[number]
            axes.scatter(
                [samples for samples, _ in points],
                [height for _, height in points],
                marker=markers[number],
                s=44,
                facecolor=face,
                edgecolor=colours[number],
                linewidth=1.4,
                label=None if wrong else label,
                zorder=3,
            )
    for edge in range(1, len(cases)):
        axes.axhline(edge - 0.5, color="#dddddd", linewidth=0.8)
    axes.set_yticks(
        range(len(cases)), [f"{data}, {arms} options\n{kind}, d = {d}" for data, kind, d, arms in cases], fontsize=9
    )
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)
    axes.set_xlabel("samples until every option has its verdict (median)\nhollow: wrong more often than delta = 0.1")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("How many samples, if real features are used?", loc="left", fontweight="bold")
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    figure.savefig(path)


def main() -> None:
    parser = arguments(__doc__, "real-contexts", SECONDS, REPLICATES)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--data", action="append", help="only these data sets")
    parser.add_argument("--algorithm", default="", help="only algorithms whose label has this in it")
    options = parser.parse_args()
    asked: list[tuple[Facts, list[RunCell]]] = []
    for name, kind in CASES:
        try:
            asked += [cells_of(name, kind, options.algorithm)] if name in (options.data or [name]) else []
        except MissingData as missing:
            print(missing)
    done = played([cell for _, cells in asked for cell in cells], options)
    lines = [(facts, done.line(cell)) for facts, cells in asked for cell in cells]
    for line in (line for _, line in lines if line.refused):
        print(f"{line.point}: {line.label}: {line.refused}")
    rows = [{**facts, "line": line} for facts, line in lines if not line.refused]
    Console(width=160).print(table(rows))
    write_json([{**row, "line": row["line"].as_dict()} for row in rows], options.json)
    if options.picture is not None:
        draw(rows, options.picture)
    if options.page is not None:
        options.page.write_text(page(options.page.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main()
