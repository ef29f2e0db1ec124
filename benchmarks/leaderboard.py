"""`make leaderboard`: every algorithm on the problems of the field, side by side; writes docs/leaderboard.md.

Each cell gets the same time. Scout runs with its default dial and with the one for the fewest samples. Algorithms that
plan for a number of samples are given as many as scout needed (median).
Those that find one best arm run on problems with one metric.
"""

from __future__ import annotations

import argparse
import datetime
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import paretoscout as ps
from benchmarks.reach import linear
from paretoscout.algorithms import Scout, Settings, available, get, resolve
from paretoscout.errors import InvalidInput, MissingData, MissingExtra, NotSupported
from paretoscout.simulation.replicates import Simulation
from paretoscout.simulation.results import rate_interval

DELTA = 0.1
REPLICATES, SECONDS = 100, 6.0
#: Scout runs so many times at least, and may take so many times as long for it.
LEAST, PATIENCE = 20, 40.0
MOST_SAMPLES = 3_000_000
#: Scout, asked for the fewest samples.
FEWEST = "scout, dial at 0"

HEAD = """# Leaderboard

Written by `make leaderboard` on {date}. Every algorithm that fits a problem ran on it with its default settings and delta 0.1,
up to {replicates} times or {seconds:g} seconds on one core (scout at least 20 times, however long that takes). `scout` weighs samples
and regret; with its dial (`regret_weight`) at 0 it asks for the fewest samples, as most others do. Samples are medians, regret is a
mean. Failures come with an exact 95% interval of their rate. µs is the cost of choosing and deciding, per sample. **Bold** failures are
beyond delta for sure. Fixed-budget and regret-only algorithms had as many samples as scout needed (median), and promise nothing.
Algorithms that find one best option run on problems with one metric, where scout finds the best one too. An algorithm without an entry
for samples had no answer in its time: its failures then count the runs that were begun. A run ends without an answer after
3,000,000 samples. Regret is in units of eps where a problem has its own eps.

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


def measure(
    settings: Settings, problem: ps.Problem, eps: float | None, budget: int | None, seconds: float, replicates: int
) -> Any:
    """Run one algorithm on one problem for as long as there is time; a text says why it cannot be run."""
    record, _ = resolve(settings)
    least = LEAST if record.name == "scout" else 0
    goal = 1 if record.one_metric else "front"
    try:
        told = budget if record.needs_budget else None
        run = Simulation(record, settings, problem, eps, DELTA, 0, MOST_SAMPLES, told, goal)
        run.compile()
    except (InvalidInput, NotSupported, MissingExtra) as refusal:
        return str(refusal)
    began = time.monotonic()
    finished, cut_off = list[Any](), 0

    def has_time(_: int) -> bool:
        spent = time.monotonic() - began
        return spent < seconds or (len(finished) < least and spent < PATIENCE * seconds)

    for index in range(replicates):
        outcome = run.replicate(index, has_time)
        if outcome is None:
            cut_off = 1
            break
        finished.append(outcome)
        if not has_time(0):
            break
    elapsed = time.monotonic() - began
    result = run.result(finished, replicates) if finished else None
    failures = 0 if result is None else int((~result.success).sum())
    n = len(finished)
    if result is None:
        failures, n = cut_off, cut_off
    return {
        "algorithm": record.name,
        "kind": record.kind,
        "claims": record.guarantees,
        "samples": None if result is None else float(np.median(result.samples)),
        "regret": None if result is None else float(result.regret.mean()),
        "failures": failures,
        "runs": n,
        "interval": rate_interval(failures, n),
        "microseconds": None if result is None else 1e6 * elapsed / float(result.samples.sum()),
    }


def board(title: str, problem: ps.Problem, eps: float | None, seconds: float, replicates: int) -> dict[str, Any]:
    scout = measure(get("scout").settings(), problem, eps, None, seconds, replicates)
    budget = int(scout["samples"]) if isinstance(scout, dict) and scout["samples"] else None
    rows, refused = [], {}
    contenders = {name: get(name).settings() for name in available()} | {FEWEST: Scout(regret_weight=0.0)}
    for name, settings in contenders.items():
        row = scout if name == "scout" else measure(settings, problem, eps, budget, seconds, replicates)
        if isinstance(row, str):
            refused[name] = row
        else:
            rows.append({**row, "algorithm": name})
        print(f"{title}: {name}", flush=True)
    rows.sort(key=lambda row: (row["samples"] is None, row["samples"] or 0.0))
    return {"title": title, "arms": len(problem.arms), "eps": eps, "rows": rows, "refused": refused}


def page(boards: list[dict[str, Any]], missing: dict[str, str], seconds: float, replicates: int) -> str:
    text = HEAD.format(date=datetime.date.today().isoformat(), seconds=seconds, replicates=replicates)
    for one in boards:
        eps = "its own eps" if one["eps"] is None else f"eps {one['eps']:g}"
        text += f"## {one['title']}\n\n{one['arms']} options, {eps}.\n\n"
        text += "| algorithm | kind | samples | regret | failures | µs |\n|---|---|---:|---:|---:|---:|\n"
        for row in one["rows"]:
            low, high = row["interval"]
            failures = f"{row['failures']} of {row['runs']} ({low:.2f}–{high:.2f})"
            shown = f"**{failures}**" if low > DELTA else failures
            cells = [f"`{row['algorithm']}`", row["kind"]]
            for field, form in (("samples", ",.0f"), ("regret", ",.1f")):
                cells.append("–" if row[field] is None else format(row[field], form))
            cells += [shown, "–" if row["microseconds"] is None else f"{row['microseconds']:,.2f}"]
            text += "| " + " | ".join(cells) + " |\n"
        reasons: dict[str, list[str]] = {}
        for name, reason in one["refused"].items():
            reasons.setdefault(reason.replace(f"algorithm {name!r} ", ""), []).append(f"`{name}`")
        for reason, names in reasons.items():
            text += f"\nNot run: {', '.join(names)}: {reason}.\n"
        text += "\n"
    for title, why in missing.items():
        text += f"## {title}\n\nNot run: {why}\n\n"
    return text.rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("out/leaderboard.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/leaderboard.md"))
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    options = parser.parse_args()
    boards, missing = [], {}
    for title, problem, eps in problems():
        if isinstance(problem, str):
            missing[title] = problem
        else:
            boards.append(board(title, problem, eps, options.seconds, options.replicates))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(boards, indent=1) + "\n")
    options.page.write_text(page(boards, missing, options.seconds, options.replicates), encoding="utf-8")


if __name__ == "__main__":
    main()
