"""`make peers`: paretoscout beside the programs of others, each in an environment of its own; writes docs/peers.md.

Installs each peer under .venvs-peers, runs its driver there on problems that all can run, judges all answers alike, and
writes a table. A peer that cannot be had is skipped, and the page says why. The code of papers is not installed: say where
a checkout is. Takes about an hour, and 4 GB of disk.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paretoscout as ps
from benchmarks.peers import page
from benchmarks.peers.driver import PATIENCE
from paretoscout.engines import cores
from paretoscout.errors import MissingData
from paretoscout.geometry import gaps

ROOT = Path(__file__).parent.parent.parent
ENVIRONMENTS = ROOT / ".venvs-peers"
DELTA, REPLICATES, SECONDS = 0.1, 200, 60
#: No cell takes longer, with compiling; a driver ends itself long before.
MOST_SECONDS = 3600
#: What every environment has before anything is installed.
BARE = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")


@dataclass(frozen=True)
class Algorithm:
    """What a driver can be asked to run. metrics: how many a problem must have, where that matters."""

    key: str
    label: str
    promises: bool = False
    budget: bool = True
    metrics: int | None = None


@dataclass(frozen=True)
class Peer:
    """A program, how to install it, and how it runs. code: it is a paper's, and this option says where it is."""

    module: str
    name: str
    packages: tuple[str, ...]
    imports: str
    settings: str
    algorithms: tuple[Algorithm, ...]
    distribution: str = ""
    code: str = ""


def _ours(key: str, label: str, promises: bool = True, budget: bool = False) -> Algorithm:
    return Algorithm(key, f"**{label}**, ours", promises, budget)


#: Its median is the budget of those who do not stop by themselves.
FEWEST = _ours("scout:regret_weight=0", "scout, dial at 0")
PEERS = (
    Peer(
        "ours",
        "paretoscout",
        (str(ROOT),),
        "paretoscout.sweeps.grid",
        "defaults, delta and eps as above, sigma known",
        (
            FEWEST,
            _ours("scout", "scout"),
            _ours("multi-pfi", "multi-pfi (Auer)"),
            _ours("paveba", "PaVeBa"),
            _ours("epsilon-pal", "epsilon-PAL"),
            _ours("psips", "PSIPS"),
            _ours("track-and-stop", "Track-and-Stop"),
            _ours("gege", "GEGE"),
            _ours("gege-budget", "GEGE, fixed budget", promises=False, budget=True),
            _ours("ege-sr", "EGE-SR", promises=False, budget=True),
            _ours("ege-sh", "EGE-SH", promises=False, budget=True),
        ),
        "paretoscout",
    ),
    Peer(
        "vopy",
        "VOPy",
        ("{torch}", "vopy==0.2.0"),
        "vopy.algorithms",
        "delta and eps as above, noise variance known. By default it shrinks its confidence regions 32-fold (epsilon-PAL: 9-fold), and the proof"
        " is gone; /1 is without that. epsilon-PAL gets one-hot inputs; VOPy fits its kernel to the true means, and what it promises holds only if they"
        " are drawn from that. Brings PyTorch (for CPUs)",
        (
            Algorithm("auer/32", "VOPy Auer, default", budget=False),
            Algorithm("auer/1", "VOPy Auer /1", True, False),
            Algorithm("paveba/32", "VOPy PaVeBa, default", budget=False),
            Algorithm("paveba/1", "VOPy PaVeBa /1", True, False),
            Algorithm("epal/9", "VOPy epsilon-PAL, default", budget=False),
            Algorithm("epal/1", "VOPy epsilon-PAL /1", budget=False),
        ),
        "vopy",
    ),
    Peer(
        "track_and_stop",
        "Track-and-Stop (Crepon, Garivier, Koolen)",
        ("numpy", "scikit-learn", "tqdm", "matplotlib"),
        "track_and_stop",
        "delta as above, eps 0, sigma 1; its threshold log(1/delta) + log log t is that of its experiments, not of a proof. With `speedup` where"
        " there are two metrics",
        (
            Algorithm("plain", "Track-and-Stop, its authors'", budget=False),
            Algorithm("fast", "Track-and-Stop, its authors', `speedup`", budget=False, metrics=2),
        ),
        code="track_and_stop_code",
    ),
    Peer(
        "gege",
        "GEGE (Kone, Kaufmann, Richert)",
        ("numpy", "scipy", "joblib"),
        "lib.policies",
        "delta as above, eps 0, no features; means and sigma are halved, because its code is for sigma 0.5. It leaves out factors of the proof, as"
        " it says",
        (
            Algorithm("confidence", "GEGE, its authors'", budget=False),
            Algorithm("budget", "GEGE, its authors', fixed budget"),
        ),
        code="gege_code",
    ),
    Peer(
        "ege",
        "EGE (Kone, Kaufmann, Richert)",
        ("numpy",),
        "lib.policies",
        "fixed budget; Python binding of its C++ program",
        (Algorithm("sr", "EGE-SR, its authors'"), Algorithm("sh", "EGE-SH, its authors'")),
        code="ege_code",
    ),
    Peer(
        "optuna",
        "Optuna",
        ("optuna==5.0.0",),
        "optuna.samplers",
        "one categorical parameter, its default sampler (TPE). Its answer is `best_trials`: single trials, so lucky"
        " measurements. The other row takes the means of the same trials",
        (
            Algorithm("best_trials", "Optuna, `best_trials`"),
            Algorithm("means", "Optuna's trials, front of their means"),
        ),
        "optuna",
    ),
    Peer(
        "ax",
        "Ax",
        ("{torch}", "ax-platform==1.3.1"),
        "ax.api.client",
        "one unordered choice parameter, default strategy, `get_pareto_frontier()` by its model. It suggests each option once, and then calls the"
        " search space exhausted. Evenly: each trial is a share of the budget, told as mean and standard"
        " error. Brings PyTorch (for CPUs)",
        (
            Algorithm("once", "Ax, one measurement a trial", budget=False),
            Algorithm("evenly", "Ax, the budget evenly"),
        ),
        "ax-platform",
    ),
    Peer(
        "evalstats",
        "evalstats",
        ("evalstats==0.3.3",),
        "evalstats",
        "`tradeoff` with its defaults (alpha 0.05, 10,000 resamples) on a finished table: the budget evenly, at least 15 measurements of each."
        ' "ambiguous" counts as undecided. It knows no third metric',
        (Algorithm("tradeoff", "evalstats, `tradeoff`", metrics=2),),
        "evalstats",
    ),
)
#: What has no driver, and why.
WITHOUT = (
    {
        "name": "PSIPS (Kone, Jourdan, Kaufmann)",
        "why": "the program of its authors knows only the instances in its source, and takes no problem; ours is above",
    },
    {
        "name": "paretoinfer",
        "why": "there is no driver for it yet" if shutil.which("Rscript") else "R is not on this machine",
    },
)


def problems() -> Iterator[dict[str, Any]]:
    """Problems that everybody can run: in units of sigma, larger is better; or why one is not there."""
    for name, title in (("s5", "S5"), ("four-arms", "Four arms"), ("cov-boost", "COV-BOOST")):
        try:
            problem = ps.problems.load(name)
        except MissingData as missing:
            yield {"name": name, "title": title, "why": str(missing)}
            continue
        means = problem.units().oriented(problem.means) / problem.sigma
        eps = round(float(gaps(means).required.min()) / 2.0, 3)
        options, metrics = means.shape
        says = f"{options} options, {metrics} metrics, {int(gaps(means).front.sum())} on the front, eps {eps:g}."
        yield {"name": name, "title": title, "says": says, "means": means.tolist(), "eps": eps}


def python_of(peer: Peer) -> Path:
    return ENVIRONMENTS / peer.module / "bin" / "python"


def install(peer: Peer, torch: str) -> None:
    """Make the environment of a peer, unless it is there."""
    home, wanted = ENVIRONMENTS / peer.module, [package.format(torch=torch) for package in peer.packages]
    if peer.module == "ours":  # what it was installed from may have changed since
        wanted.append(str(max(path.stat().st_mtime for path in (ROOT / "src").rglob("*.py"))))
    done = home / "installed.json"
    if done.exists() and json.loads(done.read_text()) == wanted:
        return
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    for package in wanted[: len(peer.packages)]:  # one after the other: torch first, or pip takes the one with CUDA
        quiet = ["-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([python_of(peer), *quiet, package], check=True, capture_output=True, text=True)
    done.write_text(json.dumps(wanted))


def described(peer: Peer, code: str) -> dict[str, Any]:
    """Version, size and time to import."""
    (site,) = (ENVIRONMENTS / peer.module / "lib").glob("python*/site-packages")
    size = sum(_size(path) for path in site.iterdir() if not path.name.startswith(BARE))
    command = f"import time; began = time.process_time(); import {peer.imports}; print(time.process_time() - began)"
    for _ in range(2):  # the first one writes caches
        seconds = float(_said(peer, command, code).splitlines()[-1])
    if code:
        version = _first_line(["git", "-C", code, "log", "-1", "--format=%h of %as"])
        size += sum(_size(path) for path in Path(code).iterdir() if path.name != ".git")
    else:
        version = _said(peer, f"import importlib.metadata as m; print(m.version({peer.distribution!r}))", "")
    return {"version": version, "size_mb": size / 1e6, "import_seconds": seconds}


def _size(path: Path) -> int:
    inside = path.rglob("*") if path.is_dir() else [path]
    return sum(each.lstat().st_size for each in inside if not each.is_dir() and each.parent.name != "__pycache__")


def _first_line(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()


def _said(peer: Peer, command: str, code: str) -> str:
    """What Python says in the environment of a peer."""
    asked = [str(python_of(peer)), "-c", command]
    return subprocess.run(
        asked, env=environment(code), cwd=ENVIRONMENTS, capture_output=True, text=True, check=True
    ).stdout.strip()


def environment(code: str) -> dict[str, str]:
    """One thread for everybody."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": code, "PYTHONWARNINGS": "ignore"}


def runs_of(peer: Peer, asked: dict[str, Any], code: str) -> tuple[list[dict[str, Any]], str]:
    """Return the runs of one cell that finished, and what went wrong if none did."""
    # Ours is compiled where the command runs; its own environment is there for size and import.
    python = sys.executable if peer.module == "ours" else str(python_of(peer))
    command = [python, "-m", f"benchmarks.peers.{peer.module}"]
    done = subprocess.run(
        command,
        input=json.dumps({**asked, "code": code}),
        env=environment(code),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=MOST_SECONDS,
    )
    runs = [json.loads(line) for line in done.stdout.splitlines() if line]
    if done.returncode not in (0, -signal.SIGALRM):
        return runs, "it failed: " + (done.stderr.strip().splitlines() or ["without a word"])[-1]
    return runs, "" if runs else f"no answer in {PATIENCE * asked['seconds']} s"


def cells_of(
    peer: Peer, algorithms: Sequence[Algorithm], problem: dict[str, Any], given: argparse.Namespace, code: str
) -> Iterator[dict[str, Any]]:
    """Run algorithms on a problem in one process: all of ours that have a budget or none, or one of another program."""
    first, metrics = algorithms[0], len(problem["means"][0])
    asked = {
        "algorithm": " ".join(algorithm.key for algorithm in algorithms),
        "means": problem["means"],
        "eps": problem["eps"],
        "delta": DELTA,
        "budget": problem["budget"] if first.budget else 0,
        "replicates": given.replicates,
        "seconds": given.seconds,
    }
    fits = first.metrics in (None, metrics)
    runs, why = runs_of(peer, asked, code) if fits else ([], f"it is for {first.metrics} metrics")
    for algorithm in algorithms:
        told = {"peer": peer.module, "problem": problem["name"], "key": algorithm.key, "label": algorithm.label}
        told |= {"promises": algorithm.promises}
        mine = [run for run in runs if run["algorithm"] in ("", algorithm.key)]
        print(f"{problem['title']}: {algorithm.label}: {why or f'{len(mine)} runs'}", flush=True)
        row = None if why else page.row_of(problem, mine)
        if row and algorithm is FEWEST:
            problem["budget"] = round(row["samples"])
        yield {**told, "row": row, "runs": mine} if row else {**told, "why": why}


def together(peer: Peer) -> list[list[Algorithm]]:
    """Which algorithms run in one process."""
    if peer.module != "ours":
        return [[algorithm] for algorithm in peer.algorithms]
    return [[each for each in peer.algorithms if each.budget == budget] for budget in (False, True)]


def hyperfine() -> dict[str, Any]:
    """What hyperfine is; which answers it leads to is in docs/bench.md."""
    program = shutil.which("hyperfine")
    if program is None:
        return {"name": "hyperfine", "why": "it is not installed"}
    return {
        "name": "hyperfine",
        "version": _first_line([program, "--version"]).split()[-1],
        "size_mb": _size(Path(program).resolve()) / 1e6,
        "import_seconds": statistics.median(_seconds([program, "--version"]) for _ in range(5)),
        "settings": "its start in place of an import. It times commands and knows one metric:"
        " [ten pairs of commands whose truth is known](bench.md#beside-hyperfine), by both",
    }


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - began


def head(given: argparse.Namespace) -> dict[str, Any]:
    """What the page says of when, where and how."""
    model = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    processor = model[0].partition(":")[2].strip() if model else platform.machine()
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{processor}, {cores()} cores, Python {platform.python_version()}{given.note and f'; {given.note}'}",
        "delta": DELTA,
        "replicates": given.replicates,
        "seconds": given.seconds,
        "at_once": given.at_once,
        "patience": PATIENCE * given.seconds,
        "disk": f"{sum(_size(home) for home in ENVIRONMENTS.iterdir()) / 1e9:.0f} GB",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("out/peers.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/peers.md"))
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of each cell; a run may take twice as long")
    parser.add_argument("--torch", default="torch==2.13.0", help="name a CPU wheel where this brings CUDA along")
    parser.add_argument(
        "--note", default="", help="what else the page says of the machine, such as what ran beside this"
    )
    parser.add_argument(
        "--at-once", type=int, default=cores(), help="how many programs run at the same time  [default: one a core]"
    )
    names = [peer.module for peer in PEERS]
    parser.add_argument("--only", choices=names, action="append", help="keep what --json has of all others")
    for peer in PEERS:
        if peer.code:
            option = "--" + peer.code.replace("_", "-")
            parser.add_argument(option, default="", metavar="PATH", help=f"a checkout of {peer.name}, built")
    given = parser.parse_args()
    told: dict[str, Any] = json.loads(given.json.read_text()) if given.only and given.json.exists() else {}
    told = {"problems": list(problems()), "cells": [], "peers": [], **told}
    asked = [peer for peer in PEERS if not given.only or peer.module in given.only]
    there = [problem for problem in told["problems"] if "why" not in problem]
    if asked[0].module != "ours" and not all("budget" in problem for problem in there):
        parser.error(f"--only ours must come first: its samples are the budget of others, and {given.json} has none")
    installed: list[tuple[Peer, str]] = []
    for peer in asked:
        told["cells"] = [each for each in told["cells"] if each["peer"] != peer.module]
        told["peers"] = [each for each in told["peers"] if each["name"] != peer.name]
        code = str(Path(getattr(given, peer.code)).resolve()) if peer.code and getattr(given, peer.code) else ""
        about: dict[str, Any] = {"name": peer.name, "settings": peer.settings}
        if peer.code and not code:
            about["why"] = f"no checkout of its code was named (`--{peer.code.replace('_', '-')}`)"
        else:
            print(f"{peer.name}: installing", flush=True)
            try:
                install(peer, given.torch)
                about |= described(peer, code)
                installed.append((peer, code))
            except subprocess.CalledProcessError as failed:
                said = (failed.stderr or "").strip().splitlines() or [str(failed)]
                about["why"] = f"it could not be installed: {said[-1]}"
        told["peers"].append(about)
    # Ours first and alone: it says what budget the others get.
    for at_once, ours in ((1, True), (given.at_once, False)):
        calls = [
            (peer, algorithms, problem, given, code)
            for problem in there
            for peer, code in installed
            if (peer.module == "ours") == ours
            for algorithms in together(peer)
        ]
        with ThreadPoolExecutor(at_once) as threads:
            for cells in threads.map(lambda call: list(cells_of(*call)), calls):
                told["cells"] += cells
                save(told, given)
    others = [hyperfine(), *WITHOUT]
    told["peers"] = [each for each in told["peers"] if each["name"] not in [other["name"] for other in others]] + others
    save(told, given)
    given.page.write_text(page.page(told), encoding="utf-8")


def save(told: dict[str, Any], given: argparse.Namespace) -> None:
    """Keep what is known so far."""
    told["head"] = head(given)
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(told, default=float) + "\n")


if __name__ == "__main__":
    main()
