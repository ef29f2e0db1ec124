"""Prints the figures of the data card, docs/llvm-passes.md, from the shipped table: noise, effects, the front."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

DATA = Path(__file__).resolve().parents[2] / "src" / "paretoscout" / "problems" / "data"

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """The data set as arrays, a row for each configuration."""

    passes: list[str]
    on: Floats  # (K, 10) 0 or 1
    optimise: Floats  # (K, 20) ms
    run: Floats  # (K, 20) ms
    quiet: npt.NDArray[np.bool_]  # (K, 20)
    text: Floats  # (K,) KB of code
    peak: Floats  # (K,) MB
    facts: dict[str, object]


def read(folder: Path = DATA) -> Table:
    """Reads what `measure.py export` wrote."""
    rows = list(csv.reader(io.StringIO(gzip.decompress((folder / "llvm_passes.csv.gz").read_bytes()).decode())))
    facts = json.loads((folder / "llvm_passes.json").read_text())
    head, cells = rows[0], np.array(rows[1:], dtype=float)
    times = {kind: [i for i, name in enumerate(head) if name.startswith(f"{kind}_us_")] for kind in ("optimise", "run")}
    return Table(
        head[: head.index("text_bytes")],
        cells[:, : head.index("text_bytes")],
        cells[:, times["optimise"]] / 1000,
        cells[:, times["run"]] / 1000,
        (cells[:, head.index("not_quiet")].astype(int)[:, None] >> np.arange(len(times["run"])) & 1) == 0,
        cells[:, head.index("text_bytes")] / 1000,
        cells[:, head.index("peak_kb")] / 1000,
        facts,
    )


def front(first: Floats, second: Floats) -> npt.NDArray[np.int64]:
    """Rows that no other row beats in both, the fastest optimiser first."""
    kept: list[int] = []
    for row in np.lexsort((second, first)):
        if not kept or second[row] < second[kept[-1]]:
            kept.append(int(row))
    return np.array(kept)


def design(on: Floats, degree: int) -> Floats:
    """Columns of a model: a constant, every pass, and for degree 2 every pair; passes as -1 and 1."""
    signs = 2 * on - 1
    columns = [np.ones(len(on))]
    for size in range(1, degree + 1):
        columns += [signs[:, list(chosen)].prod(axis=1) for chosen in itertools.combinations(range(on.shape[1]), size)]
    return np.stack(columns, axis=1)


def fit(on: Floats, values: Floats, degree: int) -> tuple[Floats, Floats, float]:
    """Coefficients, residuals and R²; the columns of a full factorial are orthogonal."""
    columns = design(on, degree)
    coefficients = columns.T @ values / len(values)
    rest = values - columns @ coefficients
    return coefficients, rest, float(1 - rest.var() / values.var())


def _noise(name: str, times: Floats, quiet: npt.NDArray[np.bool_]) -> None:
    means = times.mean(axis=1, keepdims=True)
    spread = times.std(axis=1, ddof=1) / means[:, 0]
    away = times / np.median(times, axis=1, keepdims=True) - 1
    rounds = (times / means).mean(axis=0)
    within = (times / means - 1).var()
    standard = (times - means) / times.std(axis=1, ddof=1, keepdims=True)
    low, middle, high = np.quantile(spread, [0.05, 0.5, 0.95])
    print(
        f"{name}: CV median {middle:.2%}, 5% to 95% of configurations {low:.2%} to {high:.2%}, most {spread.max():.2%}"
    )
    print(
        f"  CV between configurations {means.std() / means.mean():.1%}; mean sd {(spread * means[:, 0]).mean():.3f} ms"
    )
    above = ", ".join(f"{(away > limit).mean():.3%} by {limit:.0%}" for limit in (0.05, 0.1, 0.2, 0.5))
    print(f"  above the median of the configuration: {above}; most {away.max():.0%}; least {away.min():.1%}")
    print(f"  skewness {np.mean(standard**3):.2f}, excess kurtosis {np.mean(standard**4) - 3:.2f}")
    print(f"  rounds {rounds.min():.4f} to {rounds.max():.4f} of the mean, {rounds.var() / within:.1%} of the variance")
    relative = times / means
    for label, mask in (("quiet", quiet), ("not quiet", ~quiet)):
        if mask.any():
            mine = relative[mask]
            print(f"  {label}: {mask.mean():.1%} of samples, {mine.mean():.3f} of the mean, sd {mine.std():.2%}")
    print(f"  sd by round: {' '.join(f'{100 * value:.1f}' for value in relative.std(axis=0))}")
    print(f"  by round: {' '.join(f'{100 * value:.1f}' for value in rounds)}")


def _effects(table: Table) -> None:
    columns = {
        "optimise ms": table.optimise.mean(axis=1),
        "run ms": table.run.mean(axis=1),
        "code KB": table.text,
        "peak MB": table.peak,
    }
    fitted = {name: fit(table.on, values, 1)[0] for name, values in columns.items()}
    print(f"{'main effects (on - off)':24s}" + "".join(f"{name:>14s}" for name in columns))
    print(f"{'mean of all':24s}" + "".join(f"{fitted[name][0]:14.2f}" for name in columns))
    for i, name in enumerate(table.passes, 1):
        print(f"{name:24s}" + "".join(f"{2 * fitted[column][i]:+14.2f}" for column in columns))


def _models(table: Table) -> None:
    pairs = list(itertools.combinations(table.passes, 2))
    for name, times in (("optimise", table.optimise), ("run", table.run)):
        means = times.mean(axis=1)
        error = times.std(axis=1, ddof=1) / np.sqrt(times.shape[1])
        print(f"{name}: standard error of a mean, root mean square: {np.sqrt((error**2).mean()):.3f} ms")
        for degree in (1, 2, 3):
            coefficients, rest, share = fit(table.on, means, degree)
            _, _, share_of_log = fit(table.on, np.log(means), degree)
            worst = int(np.abs(rest).argmax())
            freedom = len(means) - len(coefficients)
            print(
                f"  degree {degree}: R² {share:.4f} (of logarithms {share_of_log:.4f}), residuals rms "
                f"{np.sqrt((rest**2).sum() / freedom):.3f} ms, largest {rest[worst]:+.2f} ms = "
                f"{rest[worst] / np.sqrt((error**2).mean()):+.0f} standard errors (configuration {worst})"
            )
            if degree == 2:
                order = np.abs(coefficients[11:]).argsort()[::-1][:5]
                print(
                    "    strongest pairs: "
                    + "; ".join(f"{' x '.join(pairs[i])} {4 * coefficients[11 + i]:+.2f}" for i in order)
                )


def main() -> None:
    """Prints all."""
    table = read()
    optimise, run = table.optimise.mean(axis=1), table.run.mean(axis=1)
    for name, values in (("optimise ms", optimise), ("run ms", run), ("code KB", table.text), ("peak MB", table.peak)):
        print(f"{name}: {values.min():.2f} to {values.max():.2f}, mean {values.mean():.2f}")
    print(f"correlation of the two times {np.corrcoef(optimise, run)[0, 1]:.2f}")
    _noise("optimise", table.optimise, table.quiet)
    _noise("run", table.run, table.quiet)
    _effects(table)
    _models(table)
    kept = front(optimise, run)
    print(f"front of optimiser time and run time: {len(kept)} configurations")
    for row in kept:
        names = [name for name, on in zip(table.passes, table.on[row], strict=True) if on]
        print(f"  {row:4d} {optimise[row]:7.2f} {run[row]:6.2f}  {', '.join(names) or 'none'}")
    print(
        json.dumps({key: table.facts[key] for key in ("minutes", "share_of_passes", "quietness", "different_programs")})
    )


if __name__ == "__main__":
    main()
