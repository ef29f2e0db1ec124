"""`make bench`: ask and tell on SQLite, against Optuna's with its default sampler; 8 options, 2 objectives.

Prints a table and writes JSON; exits with 1 if a target is missed. Without Optuna its row is skipped.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import paretoscout as ps

OPTIONS = [f"option {k}" for k in range(8)]
TRIALS = 2_000


def outcomes() -> dict[str, tuple[float, float]]:
    rng = np.random.default_rng(0)
    return {option: (float(a), float(b)) for option, (a, b) in zip(OPTIONS, rng.normal(size=(8, 2)), strict=True)}


def our_rate(folder: Path, trials: int) -> float:
    """Pairs of ask and tell a second, in one process."""
    truth, rng = outcomes(), np.random.default_rng(1)
    metrics = [ps.Metric("quality", "max", eps=1e-4), ps.Metric("cost", "min", eps=1e-4)]  # it never finishes
    study = ps.Study(OPTIONS, metrics, sigma=1.0, delta=0.05, storage=folder / "ours.db", name=f"study {time.time()}")
    began = time.perf_counter()
    for noise in rng.normal(size=(trials, 2)).tolist():
        trial = study.ask()
        quality, cost = truth[trial.arm]
        study.tell(trial, {"quality": quality + noise[0], "cost": cost + noise[1]})
    return trials / (time.perf_counter() - began)


def optuna_rate(folder: Path, trials: int) -> float:
    """The same with Optuna."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    truth, rng = outcomes(), np.random.default_rng(1)
    study = optuna.create_study(storage=f"sqlite:///{folder}/optuna.db", directions=["maximize", "minimize"])
    began = time.perf_counter()
    for noise in rng.normal(size=(trials, 2)).tolist():
        trial = study.ask()
        quality, cost = truth[trial.suggest_categorical("option", OPTIONS)]
        study.tell(trial, [quality + noise[0], cost + noise[1]])
    return trials / (time.perf_counter() - began)


def measure(trials: int) -> list[dict[str, Any]]:
    """All rows: what, value, target, met, note."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        our_rate(folder, 50)
        ours = [our_rate(folder, trials)]
        try:
            theirs = optuna_rate(folder, trials)
        except ImportError:
            theirs = None
        ours.append(our_rate(folder, trials))
    rate = statistics.mean(ours)
    rows = [{"what": "ask + tell on SQLite (pairs/s)", "value": rate, "least": 500.0, "met": rate >= 500.0}]
    against: dict[str, Any] = {"what": "ask + tell over Optuna's", "least": 30.0}
    if theirs is None:
        rows.append({**against, "skipped": "Optuna is not installed"})
    else:
        note = f"{rate:,.0f} and {theirs:,.1f} pairs/s, {trials:,} trials"
        rows.append({**against, "value": rate / theirs, "met": rate >= 30.0 * theirs, "note": note})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("out/study.json"))
    parser.add_argument("--trials", type=int, default=TRIALS)
    arguments = parser.parse_args()
    rows = measure(arguments.trials)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({"rows": rows}, indent=2))
    table = Table("what", "measured", "target", "", "note", box=None)
    for row in rows:
        if "skipped" in row:
            table.add_row(row["what"], "skipped", "", "", row["skipped"])
        else:
            met = "ok" if row["met"] else "MISSED"
            table.add_row(row["what"], f"{row['value']:,.0f}", f"≥ {row['least']:g}", met, row.get("note", ""))
    Console(width=140).print(table)
    return 0 if all(row.get("met", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
