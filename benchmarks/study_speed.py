"""`make bench`: ask and tell on SQLite, against Optuna's with its default sampler; 8 options, 2 objectives.

And what a study of many options takes: seconds of CPU to make it, to ask and tell, to load it, to show its status, to
say what remains; bytes of a snapshot. `--options 10 1000` chooses how many there are, `--algorithm` who is asked.

Prints tables and writes JSON; exits with 1 if a target is missed. Without Optuna its row is skipped.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import paretoscout as ps
from paretoscout.answer import sentence
from paretoscout.cli.show import verdict_table
from paretoscout.frames import read_csv

OPTIONS = [f"option {k}" for k in range(8)]
TRIALS = 2_000
MANY = (10, 1_000, 10_000, 100_000)
#: Seconds of CPU, and bytes, at so many options.
TARGETS = {
    (10_000, "ask + tell (ms)"): 2.0,
    (10_000, "status (s)"): 2.0,
    (100_000, "create (s)"): 5.0,
    (100_000, "snapshot (bytes/option)"): 1_000.0,
}


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


def cpu(action: Callable[[], Any]) -> float:
    """Seconds of CPU that something takes."""
    began = time.process_time()
    action()
    return time.process_time() - began


def many_options(folder: Path, n_options: int, algorithm: str, pairs: int = 200) -> dict[str, float]:
    """What a study of so many options takes, each measured twice before it is looked at."""
    rng = np.random.default_rng(0)
    names = [f"option {k}" for k in range(n_options)]
    truth = dict(zip(names, rng.normal(size=(n_options, 2)).tolist(), strict=True))
    metrics = [ps.Metric("quality", "max", eps=0.02), ps.Metric("cost", "max", eps=0.02)]
    file, arms = folder / f"{n_options}.db", folder / f"{n_options}.csv"
    arms.write_text("arm\n" + "".join(f"{name}\n" for name in names))

    def measured(name: str) -> dict[str, float]:
        quality, cost = np.array(truth[name]) + 0.3 * rng.normal(size=2)
        return {"quality": quality, "cost": cost}

    def create() -> None:
        ps.Study(read_csv(arms), metrics, sigma=0.3, algorithm=algorithm, storage=file)

    took = {"create (s)": cpu(create)}
    study = ps.Study.load(storage=file)
    rows = [measured(name) for name in names * 2]
    columns = {key: [row[key] for row in rows] for key in ("quality", "cost")}
    took["import 2 rows of each (s)"] = cpu(lambda: study.tell_frame({"arm": names * 2, **columns}))

    def pair_often(times: int) -> None:
        for _ in range(times):
            trial = study.ask()
            study.tell(trial, measured(trial.arm))

    pair_often(1)  # what is compiled is compiled now
    took["ask + tell (ms)"] = 1e3 * cpu(lambda: pair_often(pairs)) / pairs
    with study.log.writing() as (writer, replica):
        snapshot = replica.dump()
        writer.snapshot(replica.number, snapshot)
    took["snapshot (bytes/option)"] = len(snapshot) / n_options
    took["load (s)"] = cpu(lambda: ps.Study.load(storage=file).counts())

    def status() -> None:
        loaded = ps.Study.load(storage=file)
        table = loaded.verdicts()
        Console(file=io.StringIO(), width=140).print(verdict_table(table), sentence(table))

    status()
    took["status (s)"] = cpu(status)
    took["status --json (s)"] = cpu(lambda: study.standing().as_json())
    began = time.monotonic()
    study.remaining(seconds=1.0)
    took["remaining(seconds=1) (s, wall)"] = time.monotonic() - began
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("out/study.json"))
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--options", type=int, nargs="*", default=MANY)
    parser.add_argument("--algorithm", default="scout")
    arguments = parser.parse_args()
    rows = measure(arguments.trials) if arguments.trials else []
    many = {}
    with tempfile.TemporaryDirectory() as folder:
        for n in arguments.options:
            many[n] = many_options(Path(folder), n, arguments.algorithm)
    for (n, what), most in TARGETS.items():
        if n in many:
            value = many[n][what]
            rows.append({"what": f"{what}, {n:,} options", "value": value, "most": most, "met": value <= most})
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({"rows": rows, "options": many}, indent=2))
    if many:
        sizes = Table("options", *(f"{n:,}" for n in many), box=None)
        for what in next(iter(many.values())):
            sizes.add_row(what, *(f"{took[what]:,.3g}" for took in many.values()))
        Console(width=140).print(sizes, "")
    table = Table("what", "measured", "target", "", "note", box=None)
    for row in rows:
        if "skipped" in row:
            table.add_row(row["what"], "skipped", "", "", row["skipped"])
        else:
            met = "ok" if row["met"] else "MISSED"
            target = f"≥ {row['least']:g}" if "least" in row else f"≤ {row['most']:g}"
            table.add_row(row["what"], f"{row['value']:,.4g}", target, met, row.get("note", ""))
    Console(width=140).print(table)
    return 0 if all(row.get("met", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
