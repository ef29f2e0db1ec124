"""Beside other ways to evaluate options on a list of inputs: what does each cost, and how often is it wrong?

All are asked about the same tables, options measured once on each block (prompts, files), with the same delta, and meet
random orders of the blocks. What measuring everything would show is the truth, up to eps.

The front by all metrics: scout; the front of the means on a random part of the blocks; and a bootstrap of these blocks,
which calls options front that are on it in at least 90% of resamples. The rest is either taken for dominated, or
stays undecided down to 10%. An answer is wrong if it has an option that is worse than another one by more than eps in
each metric, or lacks one of the front. It is wrong by more than eps if it has such an option, or none that comes within
eps of one of the front.

The best option by the first metric, up to eps: scout; UCB-E, one measurement at a time (Zhou et al., On speeding up
language model evaluation, ICLR 2025), which has no rule to stop, and so gets as many measurements as scout took, with
the setting of its authors' package, with smaller ones, and with one order of the blocks for all options, which is ours;
successive elimination (Even-Dar, Mannor and Mansour, JMLR 2006), by the smaller of a Hoeffding and an empirical Bernstein
radius, with delta / 2 for each. Both draw blocks with replacement or without. Without, the radii are those of Bardenet
and Maillard (Bernoulli 2015), and all is known when all is measured. Both are told the range of values: the bounds of
the metric, or else the smallest and largest of the whole table, which nobody knows beforehand.

Left out: the doubly robust estimators with low-rank predictions of arXiv 2605.10405. We had its abstract and
introduction only, which do not give their formulas.

Prints tables, writes JSON. `make beside-evaluations`; docs/blocks.md says what came out.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import paretoscout as ps
from paretoscout.algorithms import Scout
from paretoscout.errors import MissingData
from paretoscout.geometry import eps_optimal, pareto_front
from paretoscout.kernels.arrays import BoolArray, FloatArray
from paretoscout.kernels.compile import allocating_kernel, kernel
from paretoscout.shown import markdown_table
from paretoscout.simulation.results import rate_interval

POOLS = ("alpaca-eval", "x264", "poppler", "imagemagick", "sqlite", "gcc", "xz", "aider")
DELTA = 0.1
ORDERS = 100
SCOUT = Scout(noise="unknown", regret_weight=0.0)
#: Parts of the blocks on which all options are measured.
PARTS = (0.1, 0.2, 0.5)
#: Resamples of a bootstrap, and in which share of them an option must be on the front to be called so.
RESAMPLES, SURE = 1000, 0.9
#: UCB-E adds sqrt(a / n) to a mean of values within 0 and 1; 1 is what its authors' package has unless told otherwise.
EXPLORATION = 1.0
#: What else is tried, for which a is best differs between pools. Nobody knows it beforehand.
SMALLER = (0.1, 0.01, 0.001)
#: With replacement, successive elimination is cut off at so many times the whole table.
MOST_TABLES = 10
#: Differences of means are equal up to this share of eps.
ROUNDING = 1e-9
#: Of the radius of Bardenet and Maillard.
BERNSTEIN_SERFLING = 7.0 / 3.0 + 3.0 / math.sqrt(2.0)


def failures(wrong: BoolArray) -> dict[str, Any]:
    """How often something was wrong, of how many orders, with a 95% interval."""
    hits, n = int(np.sum(wrong)), len(wrong)
    return {"wrong": hits, "orders": n, "interval": rate_interval(hits, n)}


class Pool:
    """A table of options, blocks and metrics, as algorithms see it: larger is better, eps is 1."""

    def __init__(self, problem: ps.Problem) -> None:
        units = problem.units()
        self.problem = problem
        self.values: FloatArray = units.oriented(np.stack(problem.rows or ()))  # (K, N, L)
        self.eps = units.eps
        self.means: FloatArray = self.values.mean(axis=1)
        self.optimal = pareto_front(self.means)
        self.acceptable = eps_optimal(self.means, self.eps)

    def judged(self, returned: BoolArray, kept: BoolArray) -> dict[str, Any]:
        """How often answers are wrong, and wrong by more than eps.

        returned: (orders, K) what is said to be on the front. kept: (orders, K) that, and what is undecided.
        """
        bad = np.any(returned & ~self.acceptable, axis=1)
        front = np.flatnonzero(self.optimal)
        short = np.max(self.means[front][:, None] - self.means[None] - self.eps, axis=2)  # of each one beside each
        covered = np.any(kept[:, None] & (short <= ROUNDING), axis=2)
        return {
            **failures(bad | np.any(self.optimal & ~kept, axis=1)),
            "by_more_than_eps": failures(bad | ~np.all(covered, axis=1)),
        }

    @property
    def size(self) -> int:
        """The number of measurements in the whole table."""
        return self.values.shape[0] * self.values.shape[1]

    def by_first(self) -> Pool:
        """Return it with the first metric only."""
        mine = self.problem
        return Pool(
            mine.replace(
                metrics=mine.metrics[:1],
                means=mine.means[:, :1],
                rows=tuple(own[:, :1] for own in mine.rows or ()),
                sigma=np.full(1, np.nan),
                name=f"{mine.name}, {mine.metrics[0].name} only",
            )
        )

    def scored(self) -> tuple[FloatArray, float]:
        """Return the first metric within 0 and 1 (K, N), and eps on that scale."""
        metric, own = self.problem.metrics[0], self.values[:, :, 0]
        low, high = own.min(), own.max()
        if metric.bounds is not None:
            low, high = np.sort(self.problem.units().oriented(np.tile(metric.bounds, (len(self.eps), 1)).T)[:, 0])
        span = float(high - low)
        return np.ascontiguousarray((own - low) / span), float(self.eps[0]) / span


# The front


@kernel
def count_fronts(means: FloatArray, counts: FloatArray) -> None:
    """Add to `counts` (K,) in how many of the tables of means (B, K, L) each option is on the front."""
    for table in range(means.shape[0]):
        for k in range(means.shape[1]):
            beaten = False
            for j in range(means.shape[1]):
                worse, better = False, False
                for metric in range(means.shape[2]):
                    difference = means[table, j, metric] - means[table, k, metric]
                    worse = worse or difference < 0.0
                    better = better or difference > 0.0
                if better and not worse:
                    beaten = True
                    break
            if not beaten:
                counts[k] += 1.0


def bootstrapped(values: FloatArray, rng: np.random.Generator, resamples: int = RESAMPLES) -> FloatArray:
    """Return in which share of resamples of the blocks each option (K,) is on the front; values: (K, m, L)."""
    K, m, L = values.shape
    weights = rng.multinomial(m, np.full(m, 1.0 / m), size=resamples) / m
    means = (weights @ values.transpose(1, 0, 2).reshape(m, K * L)).reshape(resamples, K, L)
    counts = np.zeros(K)
    count_fronts(means, counts)
    return counts / resamples


def on_a_part(pool: Pool, n_blocks: int, orders: int, seed: int) -> dict[str, Any]:
    """How often people are wrong who measure all options on so many blocks, drawn at random."""
    rng = np.random.default_rng([seed, n_blocks])
    K, N, _ = pool.values.shape
    of_means = np.zeros((orders, K), np.bool_)
    share = np.zeros((orders, K))
    for order in range(orders):
        part = np.ascontiguousarray(pool.values[:, rng.permutation(N)[:n_blocks]])
        of_means[order] = pareto_front(part.mean(axis=1))
        share[order] = bootstrapped(part, rng)
    sure, maybe = share >= SURE, share > 1.0 - SURE
    return {
        "blocks": n_blocks,
        "measurements": n_blocks * K,
        "share": n_blocks / N,
        "means": pool.judged(of_means, of_means),
        "bootstrap": pool.judged(sure, sure),
        "bootstrap_with_undecided": {
            **pool.judged(sure, maybe),
            "undecided": float(np.median((maybe & ~sure).sum(axis=1))),
        },
    }


# The best option by one metric


@allocating_kernel
def ucb_e(scores: FloatArray, budget: int, again: bool, shared: bool, a: float, rng: np.random.Generator) -> int:
    """Return the option that UCB-E takes for the best after so many measurements.

    scores: (K, N) within 0 and 1, larger is better. again: blocks are drawn with replacement. shared: else, all options
    come to the blocks in the same order.
    """
    K, N = scores.shape
    orders = np.empty((K, N), np.int64)
    orders[0] = rng.permutation(N)
    for k in range(1, K):
        orders[k] = orders[0] if shared else rng.permutation(N)
    sums, counts = np.zeros(K), np.zeros(K, np.int64)
    for _ in range(budget):
        chosen, highest = -1, -np.inf
        for k in range(K):
            if again or counts[k] < N:
                bound = np.inf if counts[k] == 0 else sums[k] / counts[k] + math.sqrt(a / counts[k])
                if bound > highest:
                    chosen, highest = k, bound
        if chosen < 0:
            break  # all is measured
        block = rng.integers(0, N) if again else orders[chosen, counts[chosen]]
        sums[chosen] += scores[chosen, block]
        counts[chosen] += 1
    best = -1
    for k in range(K):
        if counts[k] > 0 and (best < 0 or sums[k] / counts[k] > sums[best] / counts[best]):
            best = k
    return best


@kernel
def radius(n: int, squares: float, n_options: int, n_blocks: int, again: bool, delta: float) -> float:
    """How far the mean of n values within 0 and 1 may be off, for all options and all n at once.

    squares: their distances to the mean, squared and summed. again: they were drawn with replacement.
    """
    share = delta * 6.0 / (math.pi * math.pi * n_options * float(n) * n)  # of this option and this n
    deviation = math.sqrt(max(squares, 0.0) / n)
    if again:
        hoeffding = math.sqrt(math.log(4.0 / share) / (2.0 * n))
        log = math.log(6.0 / share)
        return min(hoeffding, deviation * math.sqrt(2.0 * log / n) + 3.0 * log / n)
    if n >= n_blocks:
        return 0.0
    left = 1.0 - (n - 1.0) / n_blocks if 2 * n <= n_blocks else (1.0 - n / n_blocks) * (1.0 + 1.0 / n)
    hoeffding = math.sqrt(left * math.log(4.0 / share) / (2.0 * n))
    log = math.log(20.0 / share)
    return min(hoeffding, deviation * math.sqrt(2.0 * left * log / n) + BERNSTEIN_SERFLING * log / n)


@allocating_kernel
def successive_elimination(
    scores: FloatArray, eps: float, again: bool, delta: float, most: int, rng: np.random.Generator
) -> tuple[int, int, bool]:
    """Return the option that is taken for the best, the measurements, and whether it was done before `most` of them.

    All options that are left are measured on the same block, then all that are surely worse than another one are left
    out, until one is left or the best is so up to eps.
    """
    K, N = scores.shape
    order = rng.permutation(N)
    left = np.ones(K, np.bool_)
    means, squares, radii = np.zeros(K), np.zeros(K), np.zeros(K)
    n, measured = 0, 0
    while True:
        block = rng.integers(0, N) if again else order[n]
        n += 1
        best = -1
        for k in range(K):
            if left[k]:
                off = scores[k, block] - means[k]
                means[k] += off / n
                squares[k] += off * (scores[k, block] - means[k])
                radii[k] = radius(n, squares[k], K, N, again, delta)
                measured += 1
                if best < 0 or means[k] > means[best]:
                    best = k
        lower, rival = -np.inf, -np.inf
        for k in range(K):
            if left[k]:
                lower = max(lower, means[k] - radii[k])
        for k in range(K):
            if left[k]:
                left[k] = means[k] + radii[k] >= lower
                if left[k] and k != best:
                    rival = max(rival, means[k] + radii[k])
        if rival - (means[best] - radii[best]) <= eps or (not again and n == N):
            return best, measured, True
        if measured >= most:
            return best, measured, False


def wrong_best(pool: Pool, answers: Sequence[int]) -> dict[str, Any]:
    """How often an answer is worse than the best option by more than eps."""
    return failures(~pool.acceptable[np.array(answers)])


def by_ucb_e(pool: Pool, budgets: Sequence[int], seed: int) -> dict[str, Any]:
    """UCB-E with as many measurements as scout took in each of the orders."""
    scores, _ = pool.scored()

    def wrong(again: bool = False, shared: bool = False, a: float = EXPLORATION) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        return wrong_best(pool, [ucb_e(scores, int(budget), again, shared, a, rng) for budget in budgets])

    without = wrong()
    smaller = {f"{a:g}": wrong(a=a) for a in SMALLER}
    return {
        "without_replacement": without,
        "with_replacement": wrong(again=True),
        "smaller_a": smaller,
        "least_wrong": min(without, *smaller.values(), key=lambda told: int(told["wrong"])),
        "same_order": wrong(shared=True),
    }


def by_elimination(pool: Pool, orders: int, again: bool, seed: int) -> dict[str, Any]:
    """Successive elimination, in so many orders."""
    scores, eps = pool.scored()
    rng = np.random.default_rng([seed, int(again)])
    most = MOST_TABLES * pool.size if again else pool.size
    runs = [successive_elimination(scores, eps, again, DELTA, most, rng) for _ in range(orders)]
    measured = float(np.median([run[1] for run in runs]))
    finished = int(sum(run[2] for run in runs))
    told = wrong_best(pool, [run[0] for run in runs])
    return {"measurements": measured, "share": measured / pool.size, "finished": finished, **told}


# All of it


def by_scout(pool: Pool, orders: int, seed: int) -> tuple[dict[str, Any], list[int]]:
    """What scout took and how often it was wrong; and the measurements in each of the orders."""
    result = ps.simulate(pool.problem, SCOUT, replicates=orders, seed=seed, delta=DELTA, workers=1, progress=False)
    measured = float(np.median(result.samples))
    told = {"measurements": measured, "share": measured / pool.size, **pool.judged(result.fronts, result.fronts)}
    return told, result.samples.tolist()


def compared(name: str, orders: int, seed: int) -> dict[str, Any]:
    """Run everything on one pool."""
    pool = Pool(ps.problems.load(name))
    K, N, _ = pool.values.shape
    began = time.perf_counter()

    def say(what: str) -> None:
        print(f"{name}: {time.perf_counter() - began:.0f} s, {what}", file=sys.stderr, flush=True)

    say(f"scout, {orders} orders")
    scout, _ = by_scout(pool, orders, seed)
    say("parts of the blocks")
    as_scout = min(N, max(2, round(scout["share"] * N)))
    sizes = {f"{part:.0%}": max(2, round(part * N)) for part in PARTS} | {"as scout": as_scout}
    parts = {part: on_a_part(pool, n_blocks, orders, seed) for part, n_blocks in sizes.items()}
    first = pool.by_first()
    say(f"scout, {pool.problem.metrics[0].name} only")
    scout_first, budgets = by_scout(first, orders, seed)
    say("UCB-E, successive elimination")
    row = {
        "pool": name,
        "options": K,
        "blocks": N,
        "front": int(pool.optimal.sum()),
        "table": pool.size,
        "delta": DELTA,
        "scout": scout,
        "parts": parts,
        "one_metric": {
            "metric": pool.problem.metrics[0].name,
            "within_eps": int(first.acceptable.sum()),
            "scout": scout_first,
            "ucb_e": by_ucb_e(first, budgets, seed),
            "successive_elimination": {
                "without_replacement": by_elimination(first, orders, False, seed),
                "with_replacement": by_elimination(first, orders, True, seed),
            },
        },
    }
    say("done")
    return row


def wrong_of(told: dict[str, Any]) -> str:
    """Say how often something was wrong, and wrong by more than eps; bold where that is beyond doubt above delta."""

    def count(told: dict[str, Any]) -> str:
        return f"**{told['wrong']}**" if told["interval"][0] > DELTA else str(told["wrong"])

    return f"{count(told)} ({count(told['by_more_than_eps'])})" if "by_more_than_eps" in told else count(told)


def short_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table of docs/blocks.md: of all that is in the others, what differs most."""
    header = ["pool", "whole table", "scout measures", "wrong", "means on 10%", "means on 50%", "bootstrap on 50%"]
    header += ["one metric: scout", "UCB-E, as many", "with the best a", "successive elimination"]
    body = []
    for row in rows:
        scout, parts, one = row["scout"], row["parts"], row["one_metric"]
        bootstrap = parts["50%"]["bootstrap_with_undecided"]
        elimination = one["successive_elimination"]["without_replacement"]
        body.append(
            [
                f"{row['pool']} {row['options']} x {row['blocks']}",
                f"{row['table']:,}",
                f"{scout['measurements']:,.0f} ({scout['share']:.0%})",
                wrong_of(scout),
                wrong_of(parts["10%"]["means"]),
                wrong_of(parts["50%"]["means"]),
                f"{wrong_of(bootstrap)}, {bootstrap['undecided']:g} undecided",
                f"{one['scout']['share']:.0%}, {one['scout']['wrong']} wrong",
                f"{wrong_of(one['ucb_e']['without_replacement'])} wrong",
                f"{wrong_of(one['ucb_e']['least_wrong'])} wrong",
                f"{elimination['share']:.0%}, {wrong_of(elimination)} wrong",
            ]
        )
    return markdown_table(header, body)


def front_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return who finds the front, in Markdown."""
    parts = list(rows[0]["parts"])
    header = ["pool", "whole table", "scout measures", "wrong"]
    header += [f"means on {part}" if part != "as scout" else "means on as much as scout" for part in parts]
    body = []
    for row in rows:
        scout = row["scout"]
        body.append(
            [
                f"{row['pool']} {row['options']} x {row['blocks']}",
                f"{row['table']:,}",
                f"{scout['measurements']:,.0f} ({scout['share']:.0%})",
                wrong_of(scout),
                *(wrong_of(row["parts"][part]["means"]) for part in parts),
            ]
        )
    return markdown_table(header, body)


def bootstrap_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return what a bootstrap says of the front, in Markdown."""
    parts = list(rows[0]["parts"])
    header = ["pool", *(f"{part}: {what}" for part in parts for what in ("rest dominated", "rest undecided"))]
    body = []
    for row in rows:
        cells = []
        for part in parts:
            told = row["parts"][part]
            undecided = told["bootstrap_with_undecided"]
            cells += [wrong_of(told["bootstrap"]), f"{wrong_of(undecided)}, {undecided['undecided']:g} undecided"]
        body.append([row["pool"], *cells])
    return markdown_table(header, body)


def best_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return who finds the best option by the first metric, in Markdown."""

    def eliminated(told: dict[str, Any]) -> str:
        finished = told["finished"] > told["orders"] // 2
        return f"{told['share']:.0%}, {wrong_of(told)}" if finished else f"more than {MOST_TABLES} tables"

    header = ["pool, metric", "scout measures", "wrong", "UCB-E, as many: without", "with replacement"]
    header += [f"without, a = {a:g}" for a in SMALLER] + ["without, one order for all"]
    header += ["successive elimination: without", "with replacement"]
    body = []
    for row in rows:
        told = row["one_metric"]
        scout, ucb, elimination = told["scout"], told["ucb_e"], told["successive_elimination"]
        body.append(
            [
                f"{row['pool']}, {told['metric']}",
                f"{scout['measurements']:,.0f} ({scout['share']:.0%})",
                wrong_of(scout),
                wrong_of(ucb["without_replacement"]),
                wrong_of(ucb["with_replacement"]),
                *(wrong_of(told) for told in ucb["smaller_a"].values()),
                wrong_of(ucb["same_order"]),
                eliminated(elimination["without_replacement"]),
                eliminated(elimination["with_replacement"]),
            ]
        )
    return markdown_table(header, body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pools", nargs="*", default=POOLS, metavar="POOL", help="names of data sets with blocks")
    parser.add_argument("--orders", type=int, default=ORDERS, help="random orders of the blocks (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    for name in given.pools:
        try:
            rows.append(compared(name, given.orders, given.seed))
        except MissingData as missing:
            print(f"{name}: skipped, {missing}", file=sys.stderr)
    if not rows:
        sys.exit("no data set is on this machine")
    print(f"Wrong answers in {given.orders} random orders, in brackets those wrong by more than eps; delta {DELTA:g}.")
    print("Bold: beyond doubt wrong more often than delta. Measuring everything costs 100% and is never wrong.")
    print("\nIn short: the front by all metrics, then the best option by the first, without replacement\n")
    print(short_table(rows))
    print("\nThe front, by all metrics\n")
    print(front_table(rows))
    print("\nThe front, by a bootstrap\n")
    print(bootstrap_table(rows))
    print("\nThe best option, by the first metric\n")
    print(best_table(rows))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
