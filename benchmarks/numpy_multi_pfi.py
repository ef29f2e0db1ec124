"""MultiPFI (Auer et al. 2016, Algorithm 1) as a numpy user would write it: the rival without a library.

Run as a script, it prints the samples per second on the problem that every rival gets.
"""

from math import inf, log, sqrt
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

MEANS: NDArray[np.float64] = np.random.default_rng(5).normal(size=(16, 2))
SIGMA, EPS, DELTA = 1.0, 0.3, 0.1


def run(
    means: NDArray[np.float64],
    sigma: float,
    eps: float,
    delta: float,
    seed: int,
    max_samples: int,
    noise: float | None = None,
) -> tuple[int, set[int]]:
    """Samples drawn and arms accepted; a round that would exceed `max_samples` is not begun.

    `sigma` sets the width of the intervals and, unless `noise` is given, the spread of the samples too.
    """
    rng = np.random.default_rng(seed)
    spread = sigma if noise is None else noise
    arms, metrics = means.shape
    accepted: set[int] = set()
    samples = 0
    n = 0

    # The active arms only, metrics first: reducing over a leading axis is several times faster than over a
    # last axis of length two.
    active = np.arange(arms)
    truth = np.ascontiguousarray(means.T)
    sums = np.zeros_like(truth)

    while active.size and samples + active.size <= max_samples:
        n += 1
        samples += active.size
        sums += truth + rng.normal(0.0, spread, size=truth.shape)
        width = 2 * sigma * sqrt(2 * log(4 * arms * metrics * n * n / delta) / n)

        # by[i, j]: by how much j is better than i in every metric, so that m(i, j) = max(0, by[i, j]) and
        # M^eps(i, j) = max(0, eps - by[i, j]). The width is positive: no test needs the max with zero.
        mean = sums / n
        by = np.minimum.reduce(mean[:, None, :] - mean[:, :, None])
        by.flat[:: active.size + 1] = -inf  # an arm is not its own rival
        worst = np.maximum.reduce(by, axis=1)

        alive = worst <= width
        if not alive.all():
            active, truth, sums = active[alive], truth[:, alive], sums[:, alive]
            by = by[np.ix_(alive, alive)]
            worst = np.maximum.reduce(by, axis=1)

        optimal = eps - worst >= width
        if not optimal.any():
            continue
        # An optimal arm stays for as long as it may still eps-dominate an undecided one.
        wanted = (eps - by[~optimal] <= width).any(axis=0)
        done = optimal & ~wanted
        if done.any():
            accepted.update(active[done].tolist())
            active, truth, sums = active[~done], truth[:, ~done], sums[:, ~done]

    return samples, accepted


def samples_per_second(seconds: float) -> float:
    """The rate over whole runs: early rounds have more arms than late ones. None begins after `seconds`."""
    samples = 0
    seed = 0
    start = perf_counter()
    while (elapsed := perf_counter() - start) < seconds or not seed:
        samples += run(MEANS, SIGMA, EPS, DELTA, seed, max_samples=10**9)[0]
        seed += 1
    return samples / elapsed


if __name__ == "__main__":
    print(f"{samples_per_second(5.0):.0f} samples per second")
