"""`make growth`: how time and memory grow with the number of options (K), features (d) and metrics (L).

Times are CPU times, medians of several. Each is also divided by a yardstick that is measured beside it: geometry by
numpy's sort of K numbers, algorithms by the time of a sample of multi-pfi on 16 arms. So machines of different speed
can be compared, and the ratios are held against those in `benchmarks/growth.json`: it fails if one of them got worse by
more than 30%, and by what they vary. `--write` renews that file.

Each instance is measured in a process of its own, with one thread. One that is refused, or takes too long, says so.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import paretoscout as ps
from paretoscout.algorithms import resolve
from paretoscout.errors import ParetoscoutError
from paretoscout.simulation.replicates import Replicate, Simulation

COMMITTED = Path(__file__).with_name("growth.json")
#: A ratio may be worse than the committed one by so much, and by what both vary.
ALLOWED = 0.30
#: What a ratio varies by where there was time for one run only.
OF_ONE_RUN = 0.2
#: Longest CPU time of one run, in seconds; --quick: the shorter one.
LIMIT, QUICK_LIMIT = 300.0, 10.0
#: Nobody waits longer than this for one run, as a multiple of what it may take and then some: the process is ended.
PATIENCE, GRACE = 3.0, 60.0
SIGMA, EPS, DELTA = 0.5, 0.1, 0.1
#: Less memory than this cannot be told from what Python itself takes.
LEAST_MEMORY = 1e6

SAMPLE, ANSWER, CALL = "a sample", "the answer", "a call"
NAMES = {"K": "options", "d": "features", "L": "metrics"}


class Instance(NamedTuple):
    """What is measured, and how large it is; `axis` says which of the sizes grows."""

    what: str
    axis: str
    K: int
    d: int
    L: int

    @property
    def size(self) -> int:
        """The size that grows."""
        return int(getattr(self, self.axis))


def series(quick: bool) -> Iterator[list[Instance]]:
    """Yield the instances of each thing that is measured, the smallest first."""
    many = [10**power for power in range(1, 5 if quick else 7)]
    metrics = (1, 2, 4) if quick else (1, 2, 3, 4, 6, 8)
    for what in MEASURED:
        yield [Instance(what, "K", K, 8, 2) for K in many]
        rows = 10_000 if what in GEOMETRY else 1_000 if what == LINEAR else 100
        yield [Instance(what, "L", rows, 8, L) for L in metrics]
    yield [Instance(LINEAR, "d", 1_000, d, 2) for d in ((2, 8, 32) if quick else (2, 4, 8, 16, 32, 64, 128))]


# One instance, in a process of its own


def measure(instance: Instance, limit: float) -> list[dict[str, Any]]:
    """Return the rows of an instance: what each of its costs is, or why there is none."""
    if instance.what in GEOMETRY:
        return geometry(instance, limit)
    return algorithm(instance, limit)


def geometry(instance: Instance, limit: float) -> list[dict[str, Any]]:
    """Time a function of a table, in turns with a sort."""
    find: Callable[[Any], Any] = getattr(ps.geometry, instance.what)
    rng = np.random.default_rng(instance.K)
    find(rng.normal(size=(300, instance.L)))  # compiles
    values, numbers = rng.normal(size=(instance.K, instance.L)), rng.normal(size=instance.K)
    first, memory = peak_of(lambda: cpu(lambda: find(values)))
    seconds, ratios = list[float](), list[float]()
    # calls that take about 10 ms together, so that a clock can tell
    together, sorts = calls_for(first), calls_for(cpu(lambda: np.sort(numbers)))
    spent = 0.0
    while len(seconds) < 3 or (spent < min(1.0, limit) and len(seconds) < 25):
        yardstick = cpu(lambda: np.sort(numbers), sorts)
        seconds.append(cpu(lambda: find(values), together))
        ratios.append(seconds[-1] / yardstick)
        spent += seconds[-1] * together + yardstick * sorts
        if first > limit / 3:
            break
    return [row(instance, CALL, seconds, ratios, memory=memory, total=spent)]


def algorithm(instance: Instance, limit: float) -> list[dict[str, Any]]:
    """Time runs of an algorithm from a problem to its verdicts, in turns with multi-pfi on 16 arms."""
    name, linear = ("scout", True) if instance.what == LINEAR else (instance.what, False)
    per_sample = yardstick_of_algorithms()
    run(Instance(instance.what, "K", 10, 2, instance.L), name, linear, 0, 1.0)  # compiles
    problem = problem_of(instance, linear)
    samples = list[int]()
    each, whole, ratios, whole_ratios = list[float](), list[float](), list[float](), list[float]()
    answered, memory, spent = True, None, 0.0
    for seed in range(20 if instance.K <= 100 else 5):
        unit = per_sample()
        once = partial(run, instance, name, linear, seed, limit - spent, problem)
        (seconds, start, played, taken, done), peak = peak_of(once)
        memory = peak if memory is None else memory
        answered = answered and done
        samples.append(taken)
        each.append(played / max(1, taken))
        whole.append(seconds)
        ratios.append(each[-1] / unit)
        whole_ratios.append(seconds / unit)
        spent += seconds
        if spent + seconds > limit / 2 or not done:
            break
    told = {"samples": float(np.median(samples)), "start": start, "memory": memory, "total": spent}
    rows = [row(instance, SAMPLE, each, ratios, **told)]
    if answered:
        return [*rows, row(instance, ANSWER, whole, whole_ratios, **told)]
    late = f"no answer after {span(whole[-1])} and {samples[-1]:,} samples"
    return [*rows, {**instance._asdict(), "cost": ANSWER, "skipped": late}]


def run(
    instance: Instance, name: str, linear: bool, seed: int, limit: float, problem: ps.Problem | None = None
) -> tuple[float, float, float, int, bool]:
    """Run once; return CPU seconds in all, until the first sample and of all samples, their number, and whether there
    is an answer."""
    problem = problem_of(instance, linear) if problem is None else problem
    record, settings = resolve(name, noise_given=True)
    began = time.process_time()
    simulation = Simulation(record, settings, problem, EPS, DELTA, seed, 2**40)
    replicate = Replicate(simulation, 0, simulation.first_state)
    start = time.process_time() - began
    slice_rounds, played = 1000, 0.0
    while not replicate.finished and time.process_time() - began < limit:
        spent = cpu(partial(replicate.advance, slice_rounds))
        slice_rounds = int(min(2 * slice_rounds, max(1.0, slice_rounds * 0.2 / spent)))
        played += spent
    replicate.outcome()
    return time.process_time() - began, start, played, replicate.samples, replicate.stopped


def problem_of(instance: Instance, linear: bool) -> ps.Problem:
    """Normal means; or unit contexts and parameters."""
    rng = np.random.default_rng(instance.K)
    if not linear:
        return ps.problems.gaussian(rng.normal(size=(instance.K, instance.L)), SIGMA)
    contexts, theta = rng.normal(size=(instance.K, instance.d)), rng.normal(size=(instance.d, instance.L))
    contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
    return ps.problems.linear(contexts, theta / np.linalg.norm(theta, axis=0), SIGMA)


def yardstick_of_algorithms() -> Callable[[], float]:
    """Return what measures the seconds of a sample of multi-pfi on 16 arms."""
    problem = ps.problems.gaussian(np.random.default_rng(1).normal(size=(16, 2)), SIGMA)
    simulation = Simulation(*resolve("multi-pfi"), problem, EPS, DELTA, 0, 2**40)

    def seconds() -> float:
        taken, spent, index = 0, 0.0, 0
        while spent < 0.05:
            replicate = Replicate(simulation, index)
            spent += cpu(partial(replicate.advance, 2**40))
            taken, index = taken + replicate.samples, index + 1
        return spent / taken

    seconds()
    return seconds


def cpu(call: Callable[[], Any], times: int = 1) -> float:
    """CPU seconds of a call, the mean of so many."""
    began = time.process_time()
    for _ in range(times):
        call()
    return max(1e-9, time.process_time() - began) / times


def calls_for(seconds: float) -> int:
    """How many calls take 10 ms."""
    return max(1, math.ceil(0.01 / seconds))


def peak_of(call: Callable[[], Any]) -> tuple[Any, int | None]:
    """Return what a call returns, and by how many bytes memory grew at most; None where the system cannot tell."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        before = memory_line("VmRSS")
    except OSError:
        return call(), None
    result = call()
    return result, max(0, memory_line("VmHWM") - before)


def memory_line(name: str) -> int:
    """A number of bytes that Linux knows of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def row(instance: Instance, cost: str, seconds: list[float], ratios: list[float], **more: Any) -> dict[str, Any]:
    """Return a row of the table: medians, and the middle half of the ratios as a share of their median."""
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    spread = OF_ONE_RUN if len(ratios) == 1 else float((high - low) / middle)
    told = {"seconds": float(np.median(seconds)), "ratio": float(middle), "spread": spread, "runs": len(ratios)}
    return {**instance._asdict(), "cost": cost, **told, **more}


GEOMETRY = ("pareto_front", "gaps")
LINEAR = "scout, linear contexts"
MEASURED = (*GEOMETRY, "multi-pfi", "scout", LINEAR)


# All of them


def measure_all(quick: bool, limit: float, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Return the rows of all instances."""
    rows: list[dict[str, Any]] = []
    for instances in series(quick):
        before: list[tuple[int, float]] = []  # sizes, and seconds that cannot be cut short
        for instance in instances:
            costs = [CALL] if instance.what in GEOMETRY else [SAMPLE, ANSWER]
            expected = extrapolated(before, instance.size)
            if expected > limit:
                reason = f"left out: it would take about {span(expected)}"
            else:
                found = in_a_process(instance, limit)
                if isinstance(found, list):
                    rows += found
                    before.append((instance.size, found[0]["seconds" if costs == [CALL] else "start"]))
                    say(f"{title(instance)}: {', '.join(shown(each) for each in found)}")
                    continue
                reason = found
            rows += [{**instance._asdict(), "cost": cost, "skipped": reason} for cost in costs]
            say(f"{title(instance)}: {reason}")
    return rows


def extrapolated(before: list[tuple[int, float]], size: int) -> float:
    """What the next size will take, by the last two; 0 where nobody can tell."""
    if not before:
        return 0.0
    (last, seconds), slope = before[-1], 1.0
    if len(before) > 1:
        slope = max(1.0, math.log(seconds / before[-2][1]) / math.log(last / before[-2][0]))
    return seconds * (size / last) ** slope


def in_a_process(instance: Instance, limit: float) -> list[dict[str, Any]] | str:
    """Return the rows of an instance, or why there are none."""
    one_thread = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
    command = [sys.executable, "-m", "benchmarks.growth", "--instance", json.dumps(instance), "--limit", str(limit)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE * limit + GRACE,
            env={**os.environ, **one_thread},
        )
    except subprocess.TimeoutExpired:
        return f"ended after {span(PATIENCE * limit + GRACE)}"
    if done.returncode != 0:
        return f"failed: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}"
    found: list[dict[str, Any]] | str = json.loads(done.stdout.splitlines()[-1])
    return found


def exponent(sizes: list[int], costs: list[float]) -> float:
    """The slope of the upper half in log-log; NaN where there are fewer than two.

    >>> round(exponent([1, 10, 100, 1000], [5.0, 5.0, 20.0, 200.0]), 3)
    1.0
    """
    half = slice(min(len(sizes) // 2, max(0, len(sizes) - 2)), None)
    x, y = np.log(sizes[half]), np.log(costs[half])
    return float(np.polyfit(x, y, 1)[0]) if len(x) > 1 else math.nan


def worse(rows: list[dict[str, Any]], committed: list[dict[str, Any]], limit: float) -> list[str]:
    """Return what got worse, as sentences. Who had no time to end within the limit is not held against it."""
    known = {key(each): each for each in committed}
    found = []
    for each in rows:
        old = known.get(key(each))
        if old is None or "skipped" in old:
            continue
        name = f"{each['what']}, {each['cost']}, {each['axis']} = {each[each['axis']]:,}"
        if "skipped" in each:
            if old["total"] < 0.5 * limit:
                found.append(f"{name}: {each['skipped']}; it was measured before")
            continue
        times = each["ratio"] / old["ratio"]
        allowed = 1.0 + ALLOWED + each["spread"] + old["spread"]
        if times > allowed:
            found.append(f"{name}: {times:.2f} times the committed ratio, {allowed:.2f} are allowed")
    return found


def key(each: dict[str, Any]) -> tuple[Any, ...]:
    """What identifies a row."""
    return tuple(each[name] for name in ("what", "cost", "axis", "K", "d", "L"))


# What is shown


def span(seconds: float) -> str:
    """Write a time.

    >>> span(3.2e-6), span(0.012), span(75)
    ('3.2 µs', '12 ms', '1.2 min')
    """
    size, unit = next(
        (size, unit)
        for size, unit in ((60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (0.0, "ns"))
        if seconds >= size
    )
    number = seconds / (size or 1e-9)
    return f"{number:.{1 if number < 9.95 else 0}f} {unit}"


def power_of_ten(seconds: float) -> str:
    """Write a time that is a power of ten.

    >>> power_of_ten(1e-5), power_of_ten(100.0)
    ('10 µs', '100 s')
    """
    size, unit = next(
        (size, unit) for size, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")) if seconds > 0.9 * size
    )
    return f"{seconds / size:g} {unit}"


def size_of(memory: float) -> str:
    """Write an amount of memory."""
    return f"{memory / 1e6:,.0f} MB" if memory >= LEAST_MEMORY else "< 1 MB"


def title(instance: Instance) -> str:
    """Name an instance."""
    return f"{instance.what}, {instance.size:,} {NAMES[instance.axis]}"


def shown(each: dict[str, Any]) -> str:
    """A cost in words."""
    return each["skipped"] if "skipped" in each else f"{span(each['seconds'])} for {each['cost']}"


class Line(NamedTuple):
    """One cost against one size: a line of a table, a curve of a picture."""

    what: str
    cost: str
    axis: str
    rows: list[dict[str, Any]]  # all of them, the smallest first

    @property
    def sizes(self) -> list[int]:
        return [each[self.axis] for each in self.rows if "skipped" not in each]

    def values(self, name: str) -> list[float]:
        return [each[name] for each in self.rows if "skipped" not in each]

    def points(self, name: str, least: float = 0.0) -> list[tuple[int, float]]:
        """Sizes and what has this name, where it is known and above the least that can be told."""
        known = [(each[self.axis], each[name]) for each in self.rows if "skipped" not in each]
        return [(size, value) for size, value in known if (value or 0.0) > least]

    def power(self, name: str = "seconds") -> float:
        """The exponent of what has this name; NaN where it is not known."""
        points = self.points(name, LEAST_MEMORY if name == "memory" else 0.0)
        return exponent([size for size, _ in points], [value for _, value in points])


def lines_of(rows: list[dict[str, Any]]) -> list[Line]:
    """Sort rows into lines."""
    names = dict.fromkeys((each["what"], each["cost"], each["axis"]) for each in rows)
    return [
        Line(*name, [each for each in rows if (each["what"], each["cost"], each["axis"]) == name]) for name in names
    ]


def tables(rows: list[dict[str, Any]]) -> Iterator[tuple[str, list[list[str]], list[str]]]:
    """Yield a heading, the cells (the first line has the headings) and the notes of each table."""
    lines = lines_of(rows)
    for axis, name in NAMES.items():
        mine = [line for line in lines if line.axis == axis]
        if not mine:
            continue
        sizes = sorted({each[axis] for line in mine for each in line.rows})
        cells = [[f"CPU time by {name}", *(f"{size:,}" for size in sizes), "grows as"]]
        notes: dict[str, list[str]] = {}
        for line in mine:
            found = {each[axis]: each for each in line.rows}
            told = []
            for size in sizes:
                each = found.get(size)
                told.append("" if each is None else "–" if "skipped" in each else span(each["seconds"]))
                if each is not None and "skipped" in each:
                    notes.setdefault(f"{line.what}, {line.cost}: {each['skipped']}", []).append(f"{size:,}")
            cells.append([f"{line.what}: {line.cost}", *told, power_of(axis, line.power())])
        for line in mine:
            if axis == "K" and line.cost != ANSWER and any(line.values("memory")):
                found = {each[axis]: each for each in line.rows if "skipped" not in each}
                told = [size_of(found[size]["memory"] or 0) if size in found else "–" for size in sizes]
                cells.append([f"{line.what}: memory", *told, power_of(axis, line.power("memory"))])
        said = [f"{name} {', '.join(at)}: {note}" for note, at in notes.items()]
        yield f"How cost grows with the number of {name}", cells, said


def power_of(axis: str, power: float) -> str:
    """Write how something grows."""
    return "" if math.isnan(power) else f"{axis}^{power:.2f}"


def page(text: str, rows: list[dict[str, Any]], picture: str | None) -> str:
    """Return the page with the part between its two marks written again."""
    begin, end = "<!-- measured: written by make growth -->", "<!-- end -->"
    head, rest = text.split(begin)
    parts = [] if picture is None else [f"![How do time and memory grow?]({picture})"]
    for heading, cells, notes in tables(rows):
        lines = ["| " + " | ".join(line) + " |" for line in cells]
        lines.insert(1, "|---|" + "---:|" * (len(cells[0]) - 1))
        parts += [f"## {heading}", "\n".join(lines), *(f"- {note}" for note in notes)]
    return head + begin + "\n\n" + "\n\n".join(parts) + "\n\n" + end + rest.split(end)[1]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the curves, in panels that each answer a question."""
    from paretoscout.plots import style

    lines = lines_of(rows)
    panels = (
        ("How long until the answer?", "K", (ANSWER,), "seconds"),
        ("How long does a sample take?", "K", (SAMPLE,), "seconds"),
        ("How long does the geometry take?", "K", (CALL,), "seconds"),
        ("How much memory does it take?", "K", (SAMPLE, CALL), "memory"),
        ("A sample, with more features?", "d", (SAMPLE,), "seconds"),
        ("A sample or a call, with more metrics?", "L", (SAMPLE, CALL), "seconds"),
    )
    figure = style.new_figure(12.0, 7.4)
    figure.set_layout_engine("constrained", hspace=0.08, wspace=0.02)
    for axes, (question, axis, costs, value) in zip(figure.subplots(2, 3).ravel(), panels, strict=True):
        style.bare(axes)
        axes.set_title(question, fontsize=11, loc="left", color=style.INK)
        axes.set_xlabel(f"number of {NAMES[axis]}", loc="left", fontsize=9.5, color=style.INK)
        draw_panel(axes, [line for line in lines if line.axis == axis and line.cost in costs], value)
    head = "How do time and memory grow?"
    figure.suptitle(head, fontsize=14, x=0.008, ha="left", color=style.INK, fontweight="bold")
    figure.supxlabel(
        "CPU time of one thread. Normal means, or means linear in 8 features; noise 0.5, eps 0.1, delta 0.1.\n"
        "The power is fitted to the upper half of the sizes; a dotted end: larger ones were refused, or had no answer.",
        fontsize=8.5,
        x=0.008,
        ha="left",
        color=style.GREY,
    )
    style.saved(figure, path)


def draw_panel(axes: Any, lines: list[Line], value: str) -> None:
    """Draw curves with their names and powers at their ends."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    from paretoscout.plots import style

    colours = dict(zip(MEASURED, ("#56b4e9", "#e69f00", style.GREY, style.BLUE, style.VERMILION), strict=True))
    least = LEAST_MEMORY if value == "memory" else 0.0
    curves = [(line, points) for line in lines if (points := line.points(value, least))]
    if not curves:
        axes.text(0.5, 0.5, "nothing measured", transform=axes.transAxes, ha="center", color=style.GREY)
        axes.set(xticks=[], yticks=[])
        return
    sizes = sorted({size for line in lines for size in line.sizes})
    lowest = min(cost for _, points in curves for _, cost in points)
    highest = max(cost for _, points in curves for _, cost in points)
    # whole powers of ten around the curves, and the names to the right of them
    powers = np.arange(math.floor(math.log10(lowest)), math.ceil(math.log10(highest * 1.0001)) + 1)
    wide, high = math.log(sizes[-1] / sizes[0]) or 1.0, math.log(10.0) * (powers[-1] - powers[0])
    axes.set(xscale="log", yscale="log")
    axes.set_xlim(sizes[0] * math.exp(-0.04 * wide), sizes[-1] * math.exp(0.66 * wide))
    axes.set_ylim(10.0 ** powers[0], 10.0 ** powers[-1])
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: style.short_number(size)))
    axes.yaxis.set_major_locator(FixedLocator(list(10.0 ** powers[:: math.ceil(len(powers) / 8)])))
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda cost, _: size_of(cost) if value == "memory" else power_of_ten(cost))
    )
    for each in (axes.xaxis, axes.yaxis):
        each.set_minor_locator(NullLocator())
    axes.spines["bottom"].set_bounds(sizes[0] * math.exp(-0.04 * wide), sizes[-1])
    axes.grid(axis="y", color=style.SHADE)
    heights = spaced([math.log(points[-1][1] / 10.0 ** powers[0]) / high for _, points in curves], 0.075)
    for (line, points), height in zip(curves, heights, strict=True):
        colour, end = colours[line.what], points[-1]
        axes.plot(*zip(*points, strict=True), "-o", color=colour, markersize=3.5, linewidth=1.6)
        name = (sizes[-1] * math.exp(0.05 * wide), 10.0 ** powers[0] * math.exp(height * high))
        if end[0] < sizes[-1]:
            axes.plot([end[0], name[0]], [end[1], name[1]], ":", color=colour, linewidth=1.0)
        power = line.power(value)
        grows = "" if math.isnan(power) else f"  ${line.axis}^{{{power + 0.0:.1f}}}$".replace("-0.0", "0.0")
        axes.text(*name, line.what.replace(" contexts", "") + grows, fontsize=9, color=colour, va="center")


def spaced(heights: list[float], least: float) -> list[float]:
    """Move heights apart, as little as need be, from the lowest up, then down again where they left the frame.

    >>> [round(height, 2) for height in spaced([0.5, 0.5, 0.0], 0.1)]
    [0.5, 0.6, 0.0]
    """
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    moved = list(heights)
    for below, above in itertools.pairwise(order):
        moved[above] = max(moved[above], moved[below] + least)
    top = 1.0
    for i in reversed(order):
        moved[i] = min(moved[i], top)
        top = moved[i] - least
    return moved


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("out/growth.json"))
    parser.add_argument("--picture", type=Path, help="where to draw the curves")
    parser.add_argument("--page", type=Path, help="the page whose tables are written again")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--write", action="store_true", help=f"renew {COMMITTED.name}, which ratios are held against")
    parser.add_argument("--from", dest="source", type=Path, help="measure nothing: take the rows of this JSON")
    parser.add_argument("--limit", type=float, help="longest CPU time of one run, in seconds")
    parser.add_argument("--instance", help=argparse.SUPPRESS)  # what a process of its own is to measure
    arguments = parser.parse_args()
    if arguments.write and (arguments.quick or arguments.source is not None):
        parser.error("--write takes a whole run: what is left out could not be compared any more")
    limit = arguments.limit or (QUICK_LIMIT if arguments.quick else LIMIT)
    if arguments.instance:
        try:
            print(json.dumps(measure(Instance(*json.loads(arguments.instance)), limit)))
        except ParetoscoutError as refusal:
            print(json.dumps(f"refused: {refusal}"))
        except MemoryError:
            print(json.dumps("refused: there is not enough memory"))
        return 0

    console = Console(width=150)
    if arguments.source is not None:
        rows = json.loads(arguments.source.read_text())["rows"]
    else:
        rows = measure_all(arguments.quick, limit, lambda text: print(text, flush=True))
        machine = {"processor": platform.machine(), "python": platform.python_version(), "numpy": np.__version__}
        told = json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n"
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(told)
        if arguments.write:
            COMMITTED.write_text(told)
    for heading, cells, notes in tables(rows):
        table = Table(title=heading, title_justify="left", box=None)
        for i, name in enumerate(cells[0]):
            table.add_column(name, justify="left" if i == 0 else "right")
        for line in cells[1:]:
            table.add_row(*line)
        console.print(table)
        for note in notes:
            console.print(note, style="dim", highlight=False)
        console.print()
    if arguments.picture is not None:
        arguments.picture.parent.mkdir(parents=True, exist_ok=True)
        draw(rows, arguments.picture)
    if arguments.page is not None:
        picture = arguments.picture and os.path.relpath(arguments.picture, arguments.page.parent)
        arguments.page.write_text(page(arguments.page.read_text(), rows, picture))
    if not COMMITTED.exists():
        console.print(f"{COMMITTED} is not there: nothing to compare with; --write makes it")
        return 0
    found = worse(rows, json.loads(COMMITTED.read_text())["rows"], limit)
    for sentence in found:
        console.print(f"WORSE {sentence}", highlight=False)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
