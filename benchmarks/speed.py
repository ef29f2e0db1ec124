"""`make bench`: how fast we are, as ratios of things measured in one run, and as rates per core.

Prints a table and writes JSON; exits with 1 if a target is missed. Rivals that are not installed are skipped, with
the reason.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import paretoscout as ps
from benchmarks import front_speed, numpy_multi_pfi
from paretoscout.algorithms import EpsilonPAL, PFIwR, Settings, resolve
from paretoscout.simulation.replicates import Replicate, Simulation

HERE = Path(__file__).parent
PROBLEM = ps.problems.gaussian(numpy_multi_pfi.MEANS, sigma=numpy_multi_pfi.SIGMA, name="16 arms, 2 metrics")
PAIRS = 9


def rounds_per_second(
    algorithm: str | Settings,
    eps: float,
    seconds: float,
    max_rounds: int,
    seed: int = 0,
    problem: ps.Problem = PROBLEM,
) -> float:
    """Rounds a second on one thread, over whole runs (cut at `max_rounds`), without the set-up of a run."""
    run = Simulation(*resolve(algorithm), problem, eps, numpy_multi_pfi.DELTA, seed, max_rounds)
    played, spent, index = 0, 0.0, 0
    while spent < seconds:
        replicate = Replicate(run, index)
        began = time.perf_counter()
        while not replicate.finished:
            replicate.advance(50_000)
        spent += time.perf_counter() - began
        played += replicate.samples
        index += 1
    return played / spent


def multi_pfi_rate(seconds: float) -> float:
    return rounds_per_second("multi-pfi", numpy_multi_pfi.EPS, seconds, 10**9)


def vopy_rate(python: Path) -> float | str:
    """Samples a second of VOPy's Auer, or why it could not be measured."""
    if not python.exists():
        return "no environment for VOPy"
    done = subprocess.run(
        [python, HERE / "vopy_auer.py", "--seconds", "60"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        return f"VOPy is not installed or failed: {done.stderr.strip().splitlines()[-1]}"
    return float(json.loads(done.stdout.splitlines()[-1])["samples_per_second"])


def vopy_epal(python: Path, problem: ps.Problem, eps: float, seconds: float) -> dict[str, Any] | str:
    """What VOPy's epsilon-PAL does on a problem, its boxes as wide as ours, or why it could not be measured."""
    if not python.exists():
        return "no environment for VOPy"
    assert problem.contexts is not None
    asked = {"contexts": problem.contexts.tolist(), "means": problem.means.tolist(), "sigma": problem.sigma.max()}
    command = [str(python), str(HERE / "vopy_epal.py"), "--seconds", str(seconds), "--eps", str(eps)]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"VOPy is not installed or failed: {done.stderr.strip().splitlines()[-1]}"
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def unit_linear(sigma: float) -> ps.Problem:
    """The built-in linear problem with contexts moved into the unit cube, where VOPy wants them."""
    linear = ps.problems.load("linear-16")
    assert linear.contexts is not None
    return ps.problems.gaussian(linear.means, sigma, 0.5 * (linear.contexts + 1.0), name="linear-16")


def interleaved(ours: Callable[[], float], theirs: Callable[[], float], n: int) -> tuple[float, float, float]:
    """Median of n ratios of rates measured in turn, and both medians."""
    pairs = [(ours(), theirs()) for _ in range(n)]
    return (
        statistics.median(a / b for a, b in pairs),
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
    )


def _worker(connection: Any, replicates: int) -> None:
    simulated_seconds(1, 8)  # compiled code is loaded before the clock starts
    connection.send("ready")
    while connection.recv():
        began = time.perf_counter()
        simulated_seconds(1, replicates)
        connection.send(time.perf_counter() - began)


def simulated_seconds(workers: int, replicates: int) -> float:
    began = time.perf_counter()
    ps.simulate(PROBLEM, "multi-pfi", eps=0.3, delta=0.1, replicates=replicates, workers=workers, progress=False)
    return time.perf_counter() - began


def threads_against_processes(replicates: int) -> float:
    """Throughput of two threads over that of two processes with half the replicates each; median of 9 pairs."""
    context = multiprocessing.get_context("spawn")
    pipes = []
    processes = []
    for _ in range(2):
        mine, other = context.Pipe()
        process = context.Process(target=_worker, args=(other, replicates // 2))
        process.start()
        pipes.append(mine)
        processes.append(process)
    for pipe in pipes:
        pipe.recv()
    simulated_seconds(2, 8)
    ratios = []
    for _ in range(PAIRS):
        threads = simulated_seconds(2, replicates)
        began = time.perf_counter()
        for pipe in pipes:
            pipe.send(True)
        for pipe in pipes:
            pipe.recv()
        ratios.append((time.perf_counter() - began) / threads)
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.send(False)
        process.join()
    return statistics.median(ratios)


def seconds_of(command: list[str]) -> float:
    times = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return min(times)


def measure(vopy_python: Path, quick: bool) -> list[dict[str, Any]]:
    """All rows: what, value, target ("least" or "most"), met, note."""
    rows: list[dict[str, Any]] = []

    def add(what: str, value: float, *, least: float | None = None, most: float | None = None, note: str = "") -> None:
        met = (least is None or value >= least) and (most is None or value <= most)
        rows.append({"what": what, "value": value, "least": least, "most": most, "met": met, "note": note})

    seconds, n = (0.3, 3) if quick else (1.0, PAIRS)
    multi_pfi_rate(0.05)
    ratio, ours, theirs = interleaved(
        lambda: multi_pfi_rate(seconds), lambda: numpy_multi_pfi.samples_per_second(seconds), n
    )
    add("multi-pfi over a vectorised numpy loop", ratio, least=40, note=f"{ours:,.0f} and {theirs:,.0f} samples/s")
    vopy = vopy_rate(vopy_python)
    if isinstance(vopy, str):
        rows.append({"what": "multi-pfi over VOPy's Auer", "skipped": vopy})
    else:

        def vopy_again() -> float:
            rate = vopy_rate(vopy_python)
            assert isinstance(rate, float)
            return rate

        ratio, ours, theirs = interleaved(lambda: multi_pfi_rate(seconds), vopy_again, 1 if quick else 5)
        add("multi-pfi over VOPy's Auer", ratio, least=300, note=f"{ours:,.0f} and {theirs:,.0f} samples/s")

    quiet, noisy, eps = unit_linear(0.1), unit_linear(1.0), 0.1
    epal = vopy_epal(vopy_python, quiet, eps, 5.0 if quick else 60.0)
    wrong = vopy_epal(vopy_python, noisy, 0.3, 60.0)
    if isinstance(epal, str) or isinstance(wrong, str):
        rows.append({"what": "epsilon-pal over VOPy's", "skipped": epal if isinstance(epal, str) else wrong})
    else:
        # one length scale for both metrics: theirs differ, ours are shared
        same = EpsilonPAL(
            kernel="rbf",
            length_scale=tuple(np.array(epal["length_scale"]).mean(axis=0)),
            prior_deviation=tuple(epal["prior_deviation"]),
        )
        rounds_per_second(same, eps, 0.05, 10**6, problem=quiet)
        ours = rounds_per_second(same, eps, seconds, 10**6, problem=quiet)
        theirs = epal["samples_per_second"]
        add("epsilon-pal over VOPy's", ours / theirs, least=20, note=f"{ours:,.0f} and {theirs:,.1f} samples/s")
        returned = np.isin(np.arange(16), wrong["returned"])
        verdict = "right" if ps.geometry.success(noisy.means, returned, 0.3) else "wrong"
        right = ps.simulate(
            ps.problems.load("linear-16"), "epsilon-pal", eps=0.3, delta=0.1, replicates=100
        ).success.mean()
        note = f"VOPy's is {verdict}: returns {returned.sum()} of 16 arms after {wrong['samples']} samples"
        add("epsilon-pal right, linear problem, noise 1", float(right), least=0.9, note=note)

    for title, settings, least in (
        ("pfiwr, every round explores (rounds/s)", PFIwR(), 1e6),
        ("pfiwr, C = 0.01 (rounds/s)", PFIwR(exploration=0.01), 150e3),
    ):
        rounds_per_second(settings, 0.06, 0.05, 20_000)
        rates = [rounds_per_second(settings, 0.06, seconds, 300_000) for _ in range(n)]
        add(title, statistics.median(rates), least=least, note="16 unit contexts, one core")

    add(
        "two threads over two processes",
        threads_against_processes(200 if quick else 2000),
        least=0.85,
        note=f"median of {PAIRS} interleaved pairs",
    )
    command = [sys.executable, "-m", "paretoscout"]
    add("paretoscout --help (s)", seconds_of([*command, "--help"]), most=0.5)
    add("paretoscout demo, again (s)", seconds_of([*command, "demo", "--out", "out/bench-demo.png"]), most=5.0)
    for reason in front_speed.rivals()[1]:
        rows.append({"what": "pareto_front", "skipped": reason})
    for row in front_speed.measure(quick):
        if not math.isnan(row["ratio_to_best"]):
            add(
                f"pareto_front, {row['case']}, L={row['L']}, K={row['K']:,}",
                row["ratio_to_best"],
                most=2.0,
                note=f"time over the better of moocore and paretoset; ours {row['ours_s'] * 1e3:.2f} ms",
            )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vopy-python", type=Path, default=Path(".venv-vopy/bin/python"))
    parser.add_argument("--json", type=Path, default=Path("out/bench.json"))
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    rows = measure(arguments.vopy_python, arguments.quick)
    machine = {"processor": platform.machine(), "python": platform.python_version(), "numpy": np.__version__}
    arguments.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2))

    table = Table("what", "measured", "target", "", "note", box=None)
    for row in rows:
        if "skipped" in row:
            table.add_row(row["what"], "skipped", "", "", row["skipped"])
            continue
        target = f"≥ {row['least']:,g}" if row["least"] is not None else f"≤ {row['most']:,g}"
        value = f"{row['value']:,.0f}" if row["value"] >= 1000 else f"{row['value']:.3g}"
        table.add_row(row["what"], value, target, "ok" if row["met"] else "MISSED", row["note"])
    Console(width=140).print(table)
    return 0 if all(row.get("met", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
