"""The plotted numbers as CSV files, units in the headers."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..kernels.arrays import FloatArray
from ..plots.data import regret_data
from .claims import scaled_error, standard_error
from .comparison import Comparison
from .estimates import GRID, LABELS, SHOWN, Estimates

DENSITY_POINTS = 200
MOMENTS = ("mean", "standard error of the mean", "standard deviation")


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write one table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in row])


def errors(data: Estimates, keys: Sequence[str], arms: Sequence[str], path: Path) -> None:
    """Mean, spread and Monte-Carlo error of the error, by estimator and round."""
    names = {"1": "on arm 1", "2-3": "on arms 2-3 (Euclidean norm)"}
    header = ["estimator", "round n", "experiments"]
    header += [
        f"{what} of error {names[which]} (reward units)"
        for which in arms
        for what in ("mean", "standard deviation", "standard error")
    ]

    def rows() -> Iterable[list[Any]]:
        for key in keys:
            curves = [data.error(key, which) for which in arms]
            for i, n in enumerate(GRID):
                values = [curve[:, i] for curve in curves]
                if np.isfinite(values).all():  # least squares is not defined before all arms are seen
                    numbers = [f(v) for v in values for f in (np.mean, lambda v: np.std(v, ddof=1), standard_error)]
                    yield [LABELS[key], int(n), data.n, *map(float, numbers)]

    write(path, header, rows())


def density(values: FloatArray, points: FloatArray) -> FloatArray:
    """Kernel density estimate with Scott's bandwidth."""
    from scipy.stats import gaussian_kde

    return np.asarray(gaussian_kde(values)(points))


def density_range(data: Estimates, keys: Sequence[str], arm: int) -> FloatArray:
    """Return the points at which densities of an arm are worked out: all but the outermost thousandths."""
    everything = np.array([scaled_error(data, key, arm, n) for key in keys for n in SHOWN])
    low, high = np.quantile(everything, [0.0005, 0.9995])
    margin = 0.05 * (high - low)
    return np.linspace(low - margin, high + margin, DENSITY_POINTS)


def densities(data: Estimates, keys: Sequence[str], folder: Path) -> None:
    """The curves of figure 4, and the moments of what they show."""
    write(
        folder / "fig4.csv",
        ["arm", "round n", "estimator", "sqrt(n) (estimate - truth) (reward units)", "density (1 / reward units)"],
        (
            [arm, n, LABELS[key], float(x), float(y)]
            for arm in (1, 2)
            for points in [density_range(data, keys, arm)]
            for n in SHOWN
            for key in keys
            for x, y in zip(points, density(scaled_error(data, key, arm, n), points), strict=True)
        ),
    )
    write(
        folder / "fig4-moments.csv",
        ["arm", "round n", "estimator", "experiments", *(f"{what} (reward units)" for what in MOMENTS)],
        (
            [arm, n, LABELS[key], data.n, float(v.mean()), standard_error(v), float(v.std(ddof=1))]
            for arm in (1, 2)
            for n in SHOWN
            for key in keys
            for v in [scaled_error(data, key, arm, n)]
        ),
    )


def comparison(data: Comparison, folder: Path) -> None:
    """Every run of figure 2, the fresh runs of tuned forms too, and the regret curves."""
    regret, eps_header = "cumulative regret (standardised units)", "eps (standardised units)"

    def runs() -> Iterable[list[Any]]:
        for contender in data.contenders:
            for eps in data.eps:
                key = contender.key, eps
                for seeds, results in (("main", data.results), ("fresh", data.fresh)):
                    if key in results:
                        r = results[key]
                        head = [contender.label, eps, seeds, r.settings.get("width_scale", "")]
                        for i, number in enumerate(r.replicates):
                            yield [
                                *head,
                                number,
                                r.samples[i],
                                float(r.regret[i]),
                                int(r.success[i]),
                                int(r.stopped[i]),
                            ]

    def curves() -> Iterable[list[Any]]:
        for contender in data.contenders:
            result = data.results[contender.key, data.eps[0]]
            curve = regret_data(result)[0]
            spread = result.regret_curves.std(axis=0)
            for i, n in enumerate(curve.rounds):
                numbers = (curve.mean[i], spread[i], curve.low[i], curve.high[i])
                yield [contender.label, data.eps[0], n, *map(float, numbers)]

    header = ["algorithm", eps_header, "seeds", "width scale", "run", "samples", regret, "success", "stopped"]
    write(folder / "fig2-runs.csv", header, runs())
    header = ["algorithm", eps_header, "round", f"mean {regret}", "standard deviation", "10% quantile", "90% quantile"]
    write(folder / "fig2-curves.csv", header, curves())
