"""What the report of `paretoscout reproduce` leaves out of the paper's algorithm, worked out or measured.

    python -m benchmarks.paper_checks

Needs the data set sw-llvm (`paretoscout datasets fetch sw-llvm`). Prints the numbers of the section "Beyond the report"
of docs/reproduction.md; takes some minutes.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

import paretoscout as ps
from paretoscout.algorithms import PFIwR, Settings, get
from paretoscout.kernels.decisions import DOMINATED, FRONT
from paretoscout.problem import Problem
from paretoscout.problems import catalogue
from paretoscout.reproduce.comparison import SCALES
from paretoscout.session import Session
from paretoscout.simulation.results import Result, rate_interval
from paretoscout.start import setup_of

DELTA, EPS, SEED = 0.1, 0.06, 0


def width_at_one_dimension(t: float = 1e7, n_metrics: int = 2, level: float = 0.1) -> tuple[float, float]:
    """Return the width of thm:self at d = 1 by its two lemmas, and as printed; in sigma, without theta_max, at c = 1."""
    log = math.log(n_metrics * t / level)
    return 2 * math.sqrt(log) + math.sqrt(math.log(3) + log), 3 * math.sqrt(log)


def misses_of_whole_draws(delta: float, rounds: int = 1_000_000) -> float:
    """Return how much more often floor(rho_t) draws miss in all rounds together than delta / (t + 1)^2 says."""
    t = np.arange(1.0, rounds + 1)
    rho = np.log2((t + 1) ** 2 / delta)
    return float((2.0 ** -np.floor(rho)).sum() / (delta / (t + 1) ** 2).sum())


def returned_with_a_gap(gap: float, scale: float, runs: int, n_arms: int = 8, eps: float = 4.0) -> tuple[int, int]:
    """Return in how many runs all widths held at all tests, and in how many of these an option of that gap was returned.

    One option has the means (0, 0), the others are lower by gap eps in both metrics; noise 1. scale: of the widths.
    """
    means = np.zeros((n_arms, 2))
    means[1:] = -gap * eps
    problem = ps.problems.gaussian(means.tolist(), 1.0)
    settings = PFIwR(width_scale=scale)
    setup = setup_of(problem.asked(eps, DELTA), settings)
    held = returned = 0
    for run in range(runs):
        session = Session(settings, setup, seed=run)
        noise, sound = np.random.default_rng([run, 1]), True
        while not session.done and sound:
            question = session.ask()
            session.tell(question, means[question.arm] + noise.standard_normal(2))
            known = np.isfinite(session.state.radii).all(axis=1) & (session.state.status != DOMINATED)
            sound = bool((np.abs(session.state.estimates - means)[known] <= session.state.radii[known]).all())
        held += sound
        returned += sound and bool((session.verdicts().status[1:] == FRONT).any())
    return held, returned


def in_blocks() -> Problem:
    """SW-LLVM with another grouping: 16 blocks of 64 rows, in the order of the file; standardised as in the report."""
    values = -np.asarray(ps.problems.load("sw-llvm-1024").means)
    values = np.round((values - values.mean(axis=0)) / values.std(axis=0), 9)
    arms = [f"rows {64 * (row // 64)} to {64 * (row // 64) + 63}" for row in range(len(values))]
    return catalogue._replay(catalogue.DATASETS["sw-llvm"], arms, values, sigma=(0.226, 0.226))


def played(problem: Problem, settings: Settings, runs: int) -> Result:
    """Return runs at eps 0.06 and delta 0.1."""
    return ps.simulate(problem, settings, eps=EPS, delta=DELTA, replicates=runs, max_samples=1_000_000, seed=SEED)


def tuned(problem: Problem, runs: int) -> tuple[float, Result]:
    """Return the least of the scales of the report at which no run fails, by bisection, and its runs."""
    low, high = 0, len(SCALES) - 1
    while low < high:
        middle = (low + high) // 2
        if played(problem, PFIwR(width_scale=SCALES[middle]), runs).success.all():
            high = middle
        else:
            low = middle + 1
    return SCALES[high], played(problem, PFIwR(width_scale=SCALES[high]), runs)


def main() -> None:
    """Run it; see above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=600, help="of the options with a gap above eps")
    parser.add_argument("--blocks", type=int, default=100, help="runs on SW-LLVM in blocks of 64")
    given = parser.parse_args()
    lemmas, printed = width_at_one_dimension()
    print(f"thm:self at d = 1, t = 10^7, 2 metrics, level 0.1: the lemmas give {lemmas:.2f}, printed is {printed:.2f}")
    for delta in (0.1, 0.05, 0.01):
        first, ever = misses_of_whole_draws(delta, 1), misses_of_whole_draws(delta)
        print(f"floor(rho_t) draws, delta {delta:g}: {first:.2f} times the misses stated in round 1, {ever:.2f} in all")
    for gap, scale in ((1.1, 0.5), (1.25, 0.4), (1.5, 0.3)):
        held, returned = returned_with_a_gap(gap, scale, given.runs)
        low, high = rate_interval(returned, held)
        print(
            f"7 options with a gap of {gap:g} eps, widths times {scale:g}: all widths held in {held:,} of {given.runs:,} "
            f"runs, and one of the options was returned in {returned} of these ({returned / held:.1%}, {low:.1%} to "
            f"{high:.1%})",
            flush=True,
        )
    problem = in_blocks()
    found = {"MultiPFI as published": played(problem, get("multi-pfi").settings(), given.blocks)}
    found["PFIwR as printed"] = played(problem, PFIwR(), given.blocks)
    scale, found["PFIwR, least width (tuned)"] = tuned(problem, given.blocks)
    for name, result in found.items():
        print(
            f"SW-LLVM in blocks of 64 rows, eps {EPS}: {name}: {np.median(result.samples):,.0f} samples (median), regret "
            f"{result.regret.mean():,.1f}, {int((~result.success).sum())} of {given.blocks} runs fail"
        )
    print(f"(the least width is {scale:g} times that of the paper)")


if __name__ == "__main__":
    main()
