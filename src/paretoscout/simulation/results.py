"""Result: the arrays of a finished simulation, their summary, and their file."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UnreadableFile
from ..files import pack, unpack
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..notebook import page, picture

#: Above the columns of a table of summaries.
HEADINGS = ("algorithm", "samples", "regret", "success")


@dataclass(frozen=True, eq=False)
class Result:
    """What R replicates of an algorithm on a problem gave. Gaps and regret are in scaled units."""

    algorithm: str
    label: str  # the algorithm and those of its settings that are not the default
    settings: dict[str, Any]
    problem: str
    arms: tuple[str, ...]
    metrics: tuple[str, ...]
    assumed: str  # what was assumed of the noise and the means
    guarantee: str  # what holds with which probability, and what it rests on
    sigma: FloatArray  # (K, L) noise scale the algorithm was told, as the metrics are compared; NaN: it was not told
    divisors: FloatArray  # (L,) what one scaled unit is, on the scales on which the metrics are compared
    eps: FloatArray  # (L,) in scaled units
    delta: float
    seed: int
    max_samples: int
    budget: int | None  # samples there were in all, where the algorithm was told
    goal: str | int  # "front", "cover", or how many arms of the front
    asked: int  # replicates that were asked for; fewer are here after Ctrl-C
    replicates: IntArray  # (R,) their numbers
    samples: IntArray  # (R,)
    regret: FloatArray  # (R,) cumulative Pareto regret
    success: BoolArray  # (R,) what was asked for (the whole front, unless told otherwise), and nothing worse than eps
    stopped: BoolArray  # (R,) by its own rule, not at max_samples
    fronts: BoolArray  # (R, K) the returned sets; at max_samples the arms not eliminated
    pulls: IntArray  # (R, K) samples of each arm
    cost: FloatArray  # (R,) what all samples cost; their number, where all arms cost the same
    regret_rounds: IntArray  # (G,) about 200 rounds, evenly spaced in log
    regret_curves: FloatArray  # (R, G) cumulative regret there; constant after stopping

    def __repr__(self) -> str:
        return f"<Result {self.label} on {self.problem}: {len(self.samples)} replicates>"

    def _repr_html_(self) -> str:
        return self.summary().html(picture("compare", self))

    def summary(self) -> Summary:
        """Return means, medians and rates with their 95% intervals."""
        return Summary.of(self)

    def save(self, path: str | Path) -> None:
        """Write everything to one file; `load_result` reads it. The format is described in `files.py`."""
        arrays = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        header = {name: value for name, value in vars(self).items() if name not in arrays}
        Path(path).write_bytes(pack("result", header, arrays))


def load_result(path: str | Path) -> Result:
    """Read a result that was saved with `Result.save`."""
    header, arrays = unpack("result", Path(path).read_bytes(), str(path))
    values = {**header, **arrays}
    if "scales" in values:  # as older files call it
        values.setdefault("divisors", values["scales"])
    lacking = [field.name for field in fields(Result) if field.name not in values]
    if lacking:
        raise UnreadableFile(f"{path}: this result is not complete, it lacks {', '.join(lacking)}")
    for name in ("arms", "metrics"):
        values[name] = tuple(values[name])
    # older files have one number for each metric
    values["sigma"] = np.full((len(values["arms"]), len(values["metrics"])), values["sigma"])
    # JSON knows no tuples: per-metric settings come back as lists
    values["settings"] = {k: tuple(v) if isinstance(v, list) else v for k, v in values["settings"].items()}
    return Result(**{field.name: values[field.name] for field in fields(Result)})


@dataclass(frozen=True)
class Summary:
    """A result in a few numbers. Intervals are 95%: t for means, Clopper-Pearson for rates."""

    algorithm: str
    label: str
    settings: dict[str, Any]
    problem: str
    replicates: int
    asked: int  # replicates that were asked for; more than there are after Ctrl-C
    samples_mean: float
    samples_interval: tuple[float, float]
    samples_median: float
    regret_mean: float
    regret_interval: tuple[float, float]
    regret_median: float
    cost_mean: float
    cost_interval: tuple[float, float]
    success_rate: float
    success_interval: tuple[float, float]
    stopped_rate: float
    promised: float  # 1 - delta

    @classmethod
    def of(cls, result: Result) -> Summary:
        """Summarise a result."""
        return cls(
            algorithm=result.algorithm,
            label=result.label,
            settings=result.settings,
            problem=result.problem,
            replicates=len(result.samples),
            asked=result.asked,
            samples_mean=float(result.samples.mean()),
            samples_interval=_mean_interval(result.samples),
            samples_median=float(np.median(result.samples)),
            regret_mean=float(result.regret.mean()),
            regret_interval=_mean_interval(result.regret),
            regret_median=float(np.median(result.regret)),
            cost_mean=float(result.cost.mean()),
            cost_interval=_mean_interval(result.cost),
            success_rate=float(result.success.mean()),
            success_interval=rate_interval(int(result.success.sum()), len(result.success)),
            stopped_rate=float(result.stopped.mean()),
            promised=1.0 - result.delta,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers and texts, ready for JSON; an interval of one replicate is None."""
        return {
            name: None if isinstance(value, tuple) and not np.isfinite(value).all() else value
            for name, value in asdict(self).items()
        }

    def cells(self) -> list[str]:
        """Return one line of a table of summaries, for people to read, see `HEADINGS`."""
        low, high = self.success_interval
        return [
            self.label,
            f"{self.samples_mean:,.0f} {_interval(self.samples_interval)}",
            f"{self.regret_mean:,.1f} {_interval(self.regret_interval)}",
            f"{self.success_rate:.3f} ({low:.3f}–{high:.3f})" + ("" if self.stopped_rate == 1 else " *"),
        ]

    def _repr_html_(self) -> str:
        return self.html()

    def html(self, drawing: str = "") -> str:
        """Return what a notebook shows: a table, below a drawing if there is one."""
        notes = ["means over the replicates, with 95% intervals"]
        if self.stopped_rate < 1:
            notes.append("* some replicates ran into max_samples; these count as failures")
        return page(self.head, [HEADINGS, self.cells()], notes, texts=1, drawing=drawing)

    @property
    def head(self) -> str:
        """What was run, and how often."""
        interrupted = f" (of {self.asked}: interrupted)" if self.asked > self.replicates else ""
        return f"{self.label} on {self.problem}, {self.replicates} replicates{interrupted}"

    def __str__(self) -> str:
        low, high = self.success_interval
        lines = [
            self.head,
            f"  samples  {_with_interval(self.samples_mean, self.samples_interval)}, median {self.samples_median:,.0f}",
            f"  regret   {_with_interval(self.regret_mean, self.regret_interval)}, median {self.regret_median:,.1f}",
            f"  success  {self.success_rate:.3f} (95% interval {low:.3f} to {high:.3f}; asked for {self.promised:g})",
        ]
        if self.cost_mean != self.samples_mean:
            lines.insert(2, f"  cost     {_with_interval(self.cost_mean, self.cost_interval)}")
        if self.stopped_rate < 1.0:
            lines.append(f"  stopped  {self.stopped_rate:.3f}; the others ran into max_samples and count as failures")
        return "\n".join(lines)


def rate_interval(hits: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson interval of a rate: covers it with at least the stated probability, for any n.

    >>> rate_interval(20, 20)
    (0.8315665..., 1.0)
    """
    from scipy.stats import beta

    tail = (1.0 - level) / 2.0
    low = float(beta.ppf(tail, hits, n - hits + 1)) if hits > 0 else 0.0
    high = float(beta.ppf(1.0 - tail, hits + 1, n - hits)) if hits < n else 1.0
    return low, high


def _mean_interval(values: IntArray | FloatArray, level: float = 0.95) -> tuple[float, float]:
    from scipy.stats import t

    n, mean = len(values), float(values.mean())
    if n < 2:
        return float("-inf"), float("inf")
    half = float(t.ppf(0.5 + level / 2.0, n - 1)) * float(values.std(ddof=1)) / n**0.5
    return mean - half, mean + half


def _interval(interval: tuple[float, float]) -> str:
    low, high = interval
    digits = 0 if high >= 100 else 1
    return f"({low:,.{digits}f}–{high:,.{digits}f})" if math.isfinite(low) else "(–)"


def _with_interval(mean: float, interval: tuple[float, float]) -> str:
    return f"mean {mean:,.1f} (95% interval {interval[0]:,.1f} to {interval[1]:,.1f})"
