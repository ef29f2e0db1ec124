"""`make leaderboard`: every algorithm on the problems of the field, side by side; writes docs/leaderboard.md.

Each cell gets the same time. Scout runs with its default dial and with the one for the fewest samples. Algorithms that
plan for a number of samples are given as many as scout needed (median).
Those that find one best arm run on problems with one metric. All of it is one sweep (docs/sweeps.md): every run is kept, and a
second call goes on where the first ended.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paretoscout as ps
from benchmarks.reach import linear
from paretoscout.algorithms import Scout, Settings, available, get, resolve
from paretoscout.errors import MissingData
from paretoscout.sweeps.cells import Plan
from paretoscout.sweeps.grid import Line, Sweep, or_dash, swept
from paretoscout.sweeps.runs import RunCell
from paretoscout.sweeps.store import folder_of

DELTA = 0.1
REPLICATES, SECONDS = 100, 6.0
#: Scout runs so many times at least, and may take so many times as long for it.
LEAST, PATIENCE = 20, 40.0
MOST_SAMPLES = 3_000_000
#: Scout, asked for the fewest samples.
FEWEST = "scout, dial at 0"

HEAD = """# Leaderboard

Written by `make leaderboard` on {date}. Every algorithm that fits a problem ran on it with its default settings and delta 0.1,
up to {replicates} times or {seconds:g} seconds of work on one core (scout at least 20 times, however long that takes). `scout` weighs samples
and regret; with its dial (`regret_weight`) at 0 it asks for the fewest samples, as most others do. Samples are medians, regret is a
mean. Failures come with an exact 95% interval of their rate. µs is the cost of choosing and deciding, per sample. **Bold** failures are
beyond delta for sure. Fixed-budget and regret-only algorithms had as many samples as scout needed (median), and promise nothing.
Algorithms that find one best option run on problems with one metric, where scout finds the best one too. An algorithm without an entry
for samples had no answer in its time: its failures then count the runs that were begun. A run ends without an answer after
3,000,000 samples. Regret is in units of eps where a problem has its own eps. All of it is one [sweep](sweeps.md); seconds are those of
the processor.

"""


def one_metric(problem: ps.Problem) -> ps.Problem:
    """The first metric alone."""
    return problem.replace(
        name=f"{problem.name}, first metric",
        metrics=problem.metrics[:1],
        means=problem.means[:, :1],
        sigma=problem.sigma[:, :1],
        theta=None if problem.theta is None else problem.theta[:, :1],
    )


def problems() -> Iterator[tuple[str, ps.Problem | str, float | None]]:
    """Title, problem (or why it is not there), eps."""
    yield "S5", ps.problems.load("s5"), 0.05
    for title, name in (
        ("SW-LLVM, 16 arms", "sw-llvm"),
        ("COV-BOOST, 20 arms, 3 metrics", "cov-boost"),
        ("NoC, 259 arms", "noc"),
        ("SNW, 206 arms", "snw"),
        ("llvm-passes, 16 named configurations", "llvm-passes-16"),
        ("llvm-passes, all 1,024", "llvm-passes"),
    ):
        try:
            # one sigma for all options of our own tables, for most algorithms know no other
            yield title, ps.problems.load(name, sigma="largest" if name.startswith("llvm-passes") else None), None
        except (MissingData, LookupError) as missing:
            yield title, str(missing), None
    yield "random linear, K=16 d=4", linear(16, 4, 1.0, 0), 0.1
    yield "random linear, K=200 d=8", linear(200, 8, 0.5, 1), 0.1
    yield "S5, first metric", one_metric(ps.problems.load("s5")), 0.05
    yield "random linear, K=16 d=4, first metric", one_metric(linear(16, 4, 1.0, 0)), 0.1


def cell_of(settings: Settings, problem: ps.Problem, eps: float | None, budget: int | None, **named: Any) -> RunCell:
    """What is played; those that find one best arm are asked for one."""
    record, settings = resolve(settings)
    return RunCell(
        problem,
        record.name,
        settings,
        eps=eps,
        delta=DELTA,
        goal=1 if record.one_metric else "front",
        budget=budget if record.needs_budget else None,
        max_samples=MOST_SAMPLES,
        **named,
    )


def plan_of(cell: RunCell, seconds: float, replicates: int) -> Plan:
    """So many replicates, as long as there is time; of scout the first few however long they take."""
    if cell.algorithm == "scout":
        return Plan(replicates, seconds=seconds, least=LEAST, patience=PATIENCE * seconds)
    return Plan(replicates, seconds=seconds)


def on_board(title: str, problem: ps.Problem, eps: float | None, budget: int | None) -> list[RunCell]:
    """Everybody on a problem, scout first."""
    names = ["scout", *(name for name in available() if name != "scout")]
    contenders = {name: get(name).settings() for name in names} | {FEWEST: Scout(regret_weight=0.0)}
    more = {"board": title}
    return [cell_of(settings, problem, eps, budget, label=name, more=more) for name, settings in contenders.items()]


def page(boards: dict[str, tuple[ps.Problem | str, float | None]], done: Sweep, seconds: float, replicates: int) -> str:
    text = HEAD.format(date=datetime.date.today().isoformat(), seconds=seconds, replicates=replicates)
    missing = ""
    for title, (problem, eps) in boards.items():
        if isinstance(problem, str):
            missing += f"## {title}\n\nNot run: {problem}\n\n"
            continue
        text += f"## {title}\n\n{len(problem.arms)} options, {'its own eps' if eps is None else f'eps {eps:g}'}.\n\n"
        text += "| algorithm | kind | samples | regret | failures | µs |\n|---|---|---:|---:|---:|---:|\n"
        on_it = [(cell, done.line(cell)) for cell in done.cells if cell.more["board"] == title]
        for cell, line in sorted(on_it, key=lambda one: (math.isnan(one[1].samples), one[1].samples)):
            if not line.refused:
                numbers = or_dash(line.samples, ",.0f"), or_dash(line.regret, ",.1f"), failures_of(line)
                row = f"`{line.label}`", cell.record.kind, *numbers, or_dash(line.microseconds, ",.2f")
                text += f"| {' | '.join(row)} |\n"
        reasons: dict[str, list[str]] = {}
        for cell, line in on_it:
            if line.refused:
                reasons.setdefault(line.refused.replace(f"algorithm {cell.algorithm!r} ", ""), []).append(
                    f"`{line.label}`"
                )
        for reason, names in reasons.items():
            text += f"\nNot run: {', '.join(names)}: {reason}.\n"
        text += "\n"
    return f"{text}{missing}".rstrip() + "\n"


def failures_of(line: Line) -> str:
    """With their interval; bold where they are beyond delta for sure."""
    low, high = line.interval
    text = f"{line.failures} of {line.replicates} ({low:.2f}–{high:.2f})"
    return f"**{text}**" if low > DELTA else text


def arguments(doc: str | None, name: str, seconds: float, replicates: int) -> argparse.ArgumentParser:
    """What a benchmark that is a sweep is told."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument(
        "--rows", type=Path, default=Path("out") / name, help="folder for every run: nothing is run twice"
    )
    parser.add_argument("--json", type=Path, default=Path("out") / f"{name}.json")
    parser.add_argument("--page", type=Path, help="the page that is written again")
    parser.add_argument("--seconds", type=float, default=seconds, help="time for each algorithm on each problem")
    parser.add_argument("--replicates", type=int, default=replicates)
    parser.add_argument("--engine", default="processes", help="as in `paretoscout sweep`")
    return parser


def played(cells: list[RunCell], options: argparse.Namespace) -> Sweep:
    """Play cells, but what is there already; rows of other limits of time are other rows."""
    folder = folder_of(options.rows, f"{options.seconds:g}s", cells)
    plans = [(cell, plan_of(cell, options.seconds, options.replicates)) for cell in cells]
    done = swept(plans, folder, options.engine, progress=True)
    if done.interrupted:
        raise SystemExit("interrupted: the same command goes on from there")
    return done


def write_json(rows: list[dict[str, Any]], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1) + "\n")


def main() -> None:
    options = arguments(__doc__, "leaderboard", SECONDS, REPLICATES).parse_args()
    boards = {title: (problem, eps) for title, problem, eps in problems()}
    there = {title: (problem, eps) for title, (problem, eps) in boards.items() if not isinstance(problem, str)}
    scouts = played([on_board(title, *board, None)[0] for title, board in there.items()], options)
    budgets = {line.point["board"]: line.samples for line in scouts.lines}
    needed = {title: None if math.isnan(samples) else int(samples) for title, samples in budgets.items()}
    done = played([cell for title, board in there.items() for cell in on_board(title, *board, needed[title])], options)
    write_json([line.as_dict() for line in done.lines], options.json)
    if options.page is not None:
        options.page.write_text(page(boards, done, options.seconds, options.replicates), encoding="utf-8")


if __name__ == "__main__":
    main()
