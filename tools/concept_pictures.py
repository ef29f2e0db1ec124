"""Draw the pictures of the concepts, in light and dark: `make pictures`.

What looks like a result is one: verdicts, intervals, runs and rates of error come from paretoscout, with fixed seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy import stats

import paretoscout as ps

PICTURES = Path(__file__).parent.parent / "docs" / "images" / "concepts"


@dataclass(frozen=True)
class Colours:
    """Those of the pages of studies, see `page/static/page.css`."""

    back: str
    ink: str
    soft: str
    line: str
    shade: str
    front: str
    front_ink: str
    open: str
    out: str


LIGHT = Colours("#ffffff", "#1d1f21", "#5c6166", "#b0b5b9", "#f1f3f5", "#0072b2", "#00466e", "#d55e00", "#7a7a7a")
DARK = Colours("#131619", "#e9eaea", "#a9afb4", "#555d64", "#1f252a", "#56b4e9", "#a5d8f6", "#f0894a", "#959ca2")


def figure(
    title: str, colours: Colours, panels: int = 1, *, height: float = 3.7, widths: tuple[float, ...] | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a question as its title, and so many panels."""
    drawn = Figure(figsize=(7.6, height), layout="constrained", facecolor=colours.back)
    drawn.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold", color=colours.ink)
    axes = drawn.subplots(1, panels, squeeze=False, gridspec_kw={"width_ratios": widths or (1,) * panels})[0]
    for each in axes:
        each.set_facecolor(colours.back)
        each.spines[["top", "right"]].set_visible(False)
        each.spines[["left", "bottom"]].set_color(colours.line)
        each.tick_params(color=colours.line, labelcolor=colours.soft, labelsize=8.5)
        each.xaxis.label.set_color(colours.ink)
        each.yaxis.label.set_color(colours.ink)
    return drawn, list(axes)


def heading(axes: Axes, text: str, colours: Colours) -> None:
    axes.set_title(text, loc="left", fontsize=9.5, color=colours.soft, pad=8)


def note(axes: Axes, text: str, at: tuple[float, float], colours: Colours, **how: object) -> None:
    axes.text(*at, text, **({"fontsize": 9, "color": colours.ink, "va": "center"} | how))  # type: ignore[arg-type]


OPTIONS = {  # cost in cents, quality
    "small": (1.2, 0.62),
    "medium": (2.4, 0.78),
    "large": (4.6, 0.87),
    "huge": (7.4, 0.91),
    "old": (3.4, 0.70),
    "wordy": (6.2, 0.80),
    "slim": (2.05, 0.55),
}


def staircase(
    points: list[tuple[float, float]], right: float, top: float, bottom: float
) -> tuple[list[float], list[float]]:
    """The edge of what is worse than a front, where less of x and more of y is better."""
    across, up = [points[0][0]], [bottom]
    for k, (x, y) in enumerate(points):
        across += [x, points[k + 1][0] if k + 1 < len(points) else right]
        up += [y, y]
    return across, up


def scatter(axes: Axes, front: list[str], colours: Colours, *, named: bool = True) -> None:
    """Draw options, the front as stars, and what lies behind it."""
    places = sorted(OPTIONS[name] for name in front)
    across, up = staircase(places, 8.6, 1.0, 0.5)
    axes.fill_between(across, up, 0.5, color=colours.shade, lw=0, zorder=0)
    axes.plot(across, up, color=colours.front, lw=1.6, zorder=2)
    for name, (x, y) in OPTIONS.items():
        good = name in front
        axes.plot(
            x,
            y,
            "*" if good else "x",
            ms=13 if good else 7,
            color=colours.front if good else colours.out,
            mec=colours.back if good else colours.out,
            mew=0.8 if good else 1.6,
            zorder=4,
        )
        if named:
            note(
                axes,
                name,
                (x - 0.1, y + 0.022) if good else (x + 0.16, y - 0.022),
                colours,
                ha="right" if good else "left",
                color=colours.front_ink if good else colours.soft,
                fontweight="bold" if good else "normal",
                zorder=5,
            )
    axes.set(xlim=(0, 8.6), ylim=(0.5, 0.97))
    axes.set_xlabel("← cost (ct), lower is better", fontsize=9)


def front(colours: Colours) -> Figure:
    drawn, (axes,) = figure("What is a front?", colours)
    names = list(OPTIONS)
    means = np.array([OPTIONS[name] for name in names]) * [-1, 1]
    best = [name for name, optimal in zip(names, ps.geometry.pareto_front(means), strict=True) if optimal]
    scatter(axes, best, colours)
    axes.set_ylabel("quality, higher is better →", fontsize=9)
    x, y = OPTIONS["wordy"]
    axes.annotate(
        "",
        OPTIONS["large"],
        (x, y),
        arrowprops={"arrowstyle": "->", "color": colours.open, "lw": 1.6, "shrinkA": 8, "shrinkB": 9},
    )
    note(
        axes, "large costs less and is better:\nwordy is pointless beside it", (5.0, 0.71), colours, color=colours.open
    )
    note(
        axes,
        "a step up costs more:\nnone of these four makes\nanother one pointless",
        (0.2, 0.9),
        colours,
        color=colours.front_ink,
    )
    return drawn


def eps(colours: Colours) -> Figure:
    drawn, panels = figure("What does eps change?", colours, 3, height=3.3)
    names = list(OPTIONS)
    for axes, (cost, quality), text in zip(
        panels,
        [(0.05, 0.005), (0.5, 0.05), (3, 0.1)],
        ["0.05 ct, 0.005", "0.5 ct, 0.05", "3 ct, 0.1"],
        strict=True,
    ):
        metrics = [ps.Metric("cost", "min", eps=cost), ps.Metric("quality", "max", eps=quality)]
        truth = {name: dict(zip(("cost", "quality"), place, strict=True)) for name, place in OPTIONS.items()}
        said = ps.find_front(names, truth.__getitem__, metrics, sigma=0.001)
        assert said.done
        scatter(axes, list(said.front), colours)
        heading(axes, f"eps {text}:\n{len(said.front)} on the front", colours)
        for label in axes.texts:
            label.set_fontsize(7.5)
    panels[0].set_ylabel("quality, higher is better →", fontsize=9)
    return drawn


def cost_of_eps(colours: Colours) -> Figure:
    drawn, (axes,) = figure("What does a small eps cost?", colours, height=3.3)
    metrics = [ps.Metric("quality", "max", eps=0.02), ps.Metric("latency", "min", eps="4%", unit="ms")]
    shares = [0.25, 0.5, 1, 2, 4]
    asked = [{"quality": 0.02 * share, "latency": f"{4 * share:g}%"} for share in shares]
    guess = {"noise": {"quality": 0.02, "latency": "8%"}, "spread": {"quality": 0.05, "latency": "30%"}}
    plan = ps.plan(5, metrics, **guess, eps=asked, replicates=100, limit=600, progress=False)  # type: ignore[arg-type]
    for row, share in zip(plan.rows, shares, strict=True):
        axes.plot(
            [share, share], [row.runs.low, row.runs.high], color=colours.front, lw=7, alpha=0.35, solid_capstyle="butt"
        )
        axes.plot(share, row.median, "o", ms=8, color=colours.front)
        note(
            axes, f"{row.median:,.0f}", (share * 1.12, row.median), colours, fontweight="bold", color=colours.front_ink
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(0.21, 5.2)
    axes.set_xticks(shares, [f"{0.02 * share:g}\n{4 * share:g}%" for share in shares])
    axes.set_yticks([100, 300, 1000, 3000], ["100", "300", "1,000", "3,000"])
    axes.minorticks_off()
    axes.set_xlabel("eps of quality, and of latency", fontsize=9)
    axes.set_ylabel("runs of five options", fontsize=9)
    heading(axes, "median and middle 80% of 100 simulated studies; one run is off by 0.02 and 8%", colours)
    return drawn


def overlapping() -> ps.Standing:
    """Return the standing of a study with two options whose boxes overlap, and one is out."""
    truth = {"old": (0.78, 100.0), "new": (0.80, 96.0)}
    metrics = [ps.Metric("quality", "max", eps=0.01), ps.Metric("latency", "min", eps=2.0, unit="ms")]
    for seed in range(50):
        rng = np.random.default_rng(seed)

        def measure(arm: str, rng: np.random.Generator = rng) -> dict[str, float]:
            quality, latency = rng.normal(truth[arm], (0.02, 4.0))
            return {"quality": quality, "latency": latency}

        said = ps.find_front(list(truth), measure, metrics, seed=seed)
        low, high = said.table.low, said.table.high
        if said.table.verdicts == ("dominated", "front") and (low.max(axis=0) < high.min(axis=0)).all():
            return said
    raise AssertionError("no seed shows it")


def boxes(colours: Colours) -> Figure:
    said = overlapping()
    table = said.table
    drawn, (left, right) = figure("Their boxes overlap. Why is one out?", colours, 2, widths=(1.1, 1))
    for k, name in enumerate(table.arms):
        good = table.verdicts[k] == "front"
        colour = colours.front if good else colours.out
        (x, y), (x0, y0), (x1, y1) = table.estimates[k][::-1], table.low[k][::-1], table.high[k][::-1]
        left.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=True, fc=colour + "22", ec=colour, lw=1.4))
        left.plot(x, y, "*" if good else "x", ms=13 if good else 8, color=colour, mew=1.6 if not good else 0.5)
        note(
            left,
            name,
            (x, y + 0.0016),
            colours,
            ha="center",
            va="bottom",
            fontweight="bold" if good else "normal",
            color=colours.front_ink if good else colours.soft,
        )
    left.autoscale_view()
    left.margins(0.15)
    left.set_xlabel("← latency (ms), lower is better", fontsize=9)
    left.set_ylabel("quality, higher is better →", fontsize=9)
    heading(left, "each option on its own", colours)
    pair = said.pair("old", "new")
    for k, difference in enumerate(pair.differences):
        eps = {"quality": 0.01, "latency": 2.0}[difference.metric]
        low, value, high = (each / eps for each in (difference.low, difference.value, difference.high))
        right.plot([low, high], [k, k], color=colours.front, lw=8, alpha=0.35, solid_capstyle="butt")
        right.plot(value, k, "o", ms=8, color=colours.front)
    right.axvspan(-1.9, 0, color=colours.shade, lw=0)
    right.axvline(0, color=colours.ink, lw=1)
    right.set(ylim=(-0.6, 1.75), yticks=[0, 1])
    right.set_yticklabels(["quality", "latency"], fontsize=9, color=colours.ink)
    right.set_xlim(-1.9, 4.3)
    right.set_xlabel("new is better by so many eps →", fontsize=9)
    note(right, "old is\nbetter", (-1.8, 1.45), colours, color=colours.soft, fontsize=8)
    heading(right, f"the difference of the two, after {int(table.counts.sum())} runs", colours)
    return drawn


def peeking(replicates: int) -> np.ndarray:
    """Whether a t-test at 5%, looked at after each pair of runs, ever calls two identical options different."""
    draws = np.random.default_rng(1).normal(size=(replicates, 2, 300))
    n = np.arange(1, 301)
    means = draws.cumsum(axis=2) / n
    squares = (draws**2).cumsum(axis=2) / n - means**2
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.abs(means[:, 0] - means[:, 1]) / np.sqrt(squares.sum(axis=1) / (n - 1))
    return (statistic > stats.t.ppf(0.975, 2 * n - 2))[:, 9:].any(axis=1)


def delta(colours: Colours) -> Figure:
    drawn, panels = figure("How often are two identical options called different?", colours, 2, height=3.9)
    replicates = 400
    same = ps.problems.gaussian([[0.0], [0.0]], sigma=1.0, metrics=[ps.Metric("score", "max", eps=0.3)])
    ours = ps.simulate(
        same,
        ps.algorithms.Scout(noise="unknown"),
        goal="practical",
        delta=0.05,
        replicates=replicates,
        seed=1,
        progress=False,
    )
    assert ours.stopped.all()
    wrong = [peeking(replicates), ~ours.success]
    titles = ["a t-test at 5%, after each of 10 to 300 runs", "scout with delta 5%, after every run"]
    for axes, failed, title in zip(panels, wrong, titles, strict=True):
        order = np.random.default_rng(0).permutation(replicates)
        across, up = order % 25, order // 25
        axes.scatter(across[~failed], up[~failed], s=26, color=colours.line, lw=0)
        axes.scatter(across[failed], up[failed], s=34, marker="X", color=colours.open, lw=0)
        axes.set(xticks=[], yticks=[], xlim=(-1, 25), ylim=(-1, 16))
        axes.spines[:].set_visible(False)
        heading(axes, title, colours)
        axes.set_xlabel(
            f"in {int(failed.sum())} of {replicates} studies; 5% are {replicates // 20}",
            fontsize=11,
            fontweight="bold",
            color=colours.open if failed.sum() > 20 else colours.front_ink,
        )
    return drawn


def drifting(colours: Colours) -> Figure:
    drawn, panels = figure("What if the machine gets slower while you measure?", colours, 2, height=3.5)
    rng = np.random.default_rng(3)
    speed = 100 + np.linspace(0, 9, 40) + rng.normal(0, 1.2, 40)  # both options are the same
    firsts = rng.permuted(np.tile([True, False], (20, 1)), axis=1).ravel()  # each round in random order
    for axes, mine, title in zip(
        panels,
        [np.arange(40) < 20, firsts],
        ["all of a, then all of b", "in rounds, compared within each"],
        strict=True,
    ):
        for chosen, mark, colour, name in ((mine, "o", colours.front, "a"), (~mine, "s", colours.open, "b")):
            axes.plot(np.flatnonzero(chosen) + 1, speed[chosen], mark, ms=5, color=colour, label=name)
        if title.startswith("all"):
            for chosen, colour in ((mine, colours.front), (~mine, colours.open)):
                where = np.flatnonzero(chosen) + 1
                axes.plot(where[[0, -1]], [speed[chosen].mean()] * 2, color=colour, lw=1.6)
            gap, error = (
                speed[~mine].mean() - speed[mine].mean(),
                np.sqrt(speed[mine].var(ddof=1) / 20 + speed[~mine].var(ddof=1) / 20),
            )
        else:
            for k in range(0, 40, 2):
                axes.plot([k + 1, k + 2], speed[k : k + 2], color=colours.line, lw=1, zorder=0)
            differences = np.where(firsts[::2], 1, -1) * (speed[1::2] - speed[::2])
            gap, error = differences.mean(), differences.std(ddof=1) / np.sqrt(20)
        axes.set_xlabel("run", fontsize=9)
        heading(axes, f"{title}:\nb seems slower by {gap:.1f} ± {2 * error:.1f} ms", colours)
        axes.set_ylim(96, 114)
    panels[0].set_ylabel("time (ms)", fontsize=9)
    legend = panels[0].legend(frameon=False, fontsize=9, loc="upper left")
    for text in legend.get_texts():
        text.set_color(colours.ink)
    return drawn


def fit(colours: Colours) -> Figure:
    drawn, (axes,) = figure("Does this fit your question?", colours, height=3.6)
    regions = [
        (0, 0, 1.5, 2, colours.shade, "measure each one once\nand sort", colours.soft, "no noise, nothing to prove"),
        (
            1.5,
            0,
            2.5,
            2,
            colours.front + "2e",
            "paretoscout",
            colours.front_ink,
            "noisy numbers of two to a hundred thousand options,\nwith features or without",
        ),
        (
            0,
            2,
            4,
            1,
            colours.open + "22",
            "an optimiser first: Optuna, Ax, pymoo",
            colours.open,
            "endlessly many options; then prove the best few here",
        ),
    ]
    for x, y, wide, high, fill, text, colour, small in regions:
        axes.add_patch(Rectangle((x + 0.02, y + 0.02), wide - 0.04, high - 0.04, fc=fill, ec="none"))
        note(
            axes,
            text,
            (x + wide / 2, y + high / 2 + 0.16),
            colours,
            ha="center",
            fontweight="bold",
            color=colour,
            fontsize=10.5,
        )
        note(axes, small, (x + wide / 2, y + high / 2 - 0.26), colours, ha="center", color=colours.soft, fontsize=8.5)
    axes.set(xlim=(0, 4), ylim=(0, 3), xticks=[0.75, 2.75], yticks=[1, 2.5])
    axes.set_xticklabels(["the same number\nevery time", "another number\nevery time"], fontsize=9)
    axes.set_yticklabels(["a list", "a space\nof settings"], fontsize=9)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return drawn


DRAWINGS: dict[str, Callable[[Colours], Figure]] = {
    "front": front,
    "eps": eps,
    "cost-of-eps": cost_of_eps,
    "boxes": boxes,
    "delta": delta,
    "drift": drifting,
    "fit": fit,
}


def main(names: list[str]) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in names or DRAWINGS:
        for colours, ending in ((LIGHT, ""), (DARK, "-dark")):
            with rc_context({"svg.hashsalt": "paretoscout", "svg.fonttype": "path"}):
                DRAWINGS[name](colours).savefig(PICTURES / f"{name}{ending}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1:])
