"""Figures: the numbers they show by hand, and that drawing them works and hides nothing."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

from paretoscout import plots
from paretoscout.diagnostics import Concern
from paretoscout.errors import InvalidInput, MissingExtra, UnknownName
from paretoscout.guarantee import Guarantee
from paretoscout.plots.data import spans
from paretoscout.simulation.results import Result
from paretoscout.statement import Metric
from paretoscout.verdicts import VerdictTable

INF = float("inf")


def table(
    estimates: Any,
    verdicts: str,
    metrics: list[Metric],
    radii: Any = 0.1,
    arms: list[str] | None = None,
    **more: Any,
) -> VerdictTable:
    """A table whose verdicts are given by letters: f, s, d, u."""
    words = {"f": "front", "s": "same", "d": "dominated", "u": "undecided"}
    values = np.array(estimates, dtype=float)
    given: dict[str, Any] = {
        "rivals": (None,) * len(values),
        "guarantee": Guarantee("front", 0.95, (), ("sigma given",)),
        **more,
    }
    return VerdictTable(
        arms=tuple(arms or [f"arm {k + 1}" for k in range(len(values))]),
        metrics=tuple(metrics),
        verdicts=tuple(words[letter] for letter in verdicts),
        centres=values,
        widths=np.broadcast_to(np.array(radii, dtype=float), values.shape),
        counts=np.full(len(values), 10),
        **given,
    )


def two(x: str = "max", y: str = "max") -> list[Metric]:
    return [Metric("x", x), Metric("y", y)]


COMPRESSORS = {
    "zlib -1": (7.6, 29.85),
    "zlib -4": (12.0, 26.04),
    "zlib -6": (26.9, 24.86),
    "zlib -8": (62.5, 24.57),
    "zlib -9": (110.2, 24.65),
    "xz -0": (31.9, 24.2),
    "xz -1": (36.9, 22.3),
    "xz -3": (70.3, 21.44),
    "xz -4": (148.6, 20.57),
    "xz -6": (233.9, 19.39),
    "bzip2 -1": (48.4, 22.55),
    "bzip2 -9": (51.9, 19.6),
}


def compressors(relative: float = 0.04, size: float = 0.5) -> VerdictTable:
    metrics = [Metric("time", "min", unit="ms"), Metric("size", "min", unit="%")]
    means = np.array(list(COMPRESSORS.values()))
    radii = np.column_stack([relative * means[:, 0], np.full(len(means), size)])
    return table(means, "ffudduffduff"[: len(means)], metrics, radii, list(COMPRESSORS))


def result(algorithm: str = "uniform", settings: dict[str, Any] | None = None, **changes: Any) -> Result:
    """Two replicates that stopped after 3 and 5 rounds; regret 1 per round."""
    rounds = np.array([1, 2, 4, 8, 16])
    values: dict[str, Any] = {
        "algorithm": algorithm,
        "label": " ".join([algorithm, *(f"{name}={value}" for name, value in (settings or {}).items())]),
        "settings": settings or {},
        "problem": "toy",
        "arms": ("a", "b"),
        "metrics": ("x", "y"),
        "assumed": "sigma given",
        "guarantee": "none",
        "sigma": np.ones(2),
        "divisors": np.ones(2),
        "eps": np.zeros(2),
        "delta": 0.1,
        "seed": 0,
        "max_samples": 16,
        "budget": None,
        "goal": "front",
        "asked": 2,
        "replicates": np.arange(2),
        "samples": np.array([3, 5]),
        "regret": np.array([3.0, 5.0]),
        "success": np.array([True, False]),
        "stopped": np.array([True, True]),
        "fronts": np.ones((2, 2), dtype=bool),
        "pulls": np.ones((2, 2), dtype=np.int64),
        "cost": np.array([3.0, 5.0]),
        "regret_rounds": rounds,
        "regret_curves": np.array([np.minimum(rounds, 3), np.minimum(rounds, 5)], dtype=float),
    }
    return Result(**{**values, **changes})


# The front


@pytest.mark.parametrize("x", ["min", "max"])
@pytest.mark.parametrize("y", ["min", "max"])
def test_staircase_in_every_orientation(x: str, y: str) -> None:
    # Oriented, the arms are at (1, 3), (2, 2), (4, 1), and (0, 0) is dominated.
    signs = np.array([1 if direction == "max" else -1 for direction in (x, y)])
    data = plots.front_data(table(signs * [[2, 2], [1, 3], [0, 0], [4, 1]], "ffdf", two(x, y)))
    oriented = data.stairs * signs
    assert oriented[1:-1].tolist() == [[1, 3], [1, 2], [2, 2], [2, 1], [4, 1]]
    # The ends: level with the best y out to the worst x, and from the best x out to the worst y.
    low = [min(sign * axis.low, sign * axis.high) for sign, axis in zip(signs, data.axes, strict=True)]
    assert oriented[0].tolist() == [low[0], 3]
    assert oriented[-1].tolist() == [4, low[1]]
    # Everything from -0.1 to 4.1 (3.1) and 8% more.
    assert low == pytest.approx([-0.1 - 0.08 * 4.2, -0.1 - 0.08 * 3.2])


def test_staircase_with_ties() -> None:
    # Equal arms are one step; an arm that is as good in x and worse in y lies on the riser.
    data = plots.front_data(table([[1, 2], [1, 2], [2, 1], [2, 0.5]], "ffff", two()))
    assert data.stairs[1:-1].tolist() == [[1, 2], [1, 1], [2, 1]]
    data = plots.front_data(table([[1, 2], [2, 2]], "ff", two()))
    assert data.stairs[1:-1].tolist() == [[2, 2]]


def test_one_arm_of_the_front_is_one_corner_and_none_no_stairs() -> None:
    data = plots.front_data(table([[1, 1], [0, 0]], "fd", two("max", "min")))
    x, y = data.axes
    assert data.stairs.tolist() == [[x.low, 1], [1, 1], [1, y.high]]
    assert plots.front_data(table([[1, 1], [0, 0]], "uu", two())).stairs.shape == (0, 2)


def test_boxes() -> None:
    data = plots.front_data(table([[1, 2], [3, 1]], "fu", two(), radii=[[0.5, 0.25], [1, 0.5]]))
    first, second = data.boxes
    assert (first.arm, first.verdict, first.centre, first.low, first.high) == (
        "arm 1",
        "front",
        (1, 2),
        (0.5, 1.75),
        (1.5, 2.25),
    )
    assert (second.arm, second.verdict, second.low, second.high) == ("arm 2", "undecided", (2, 0.5), (4, 1.5))
    assert (data.unmeasured, data.hidden) == ((), ())
    assert (data.title, data.counted) == ("1 of 2 options is on the front, 1 is undecided", "20 samples")


def test_unknown_estimates_are_listed_and_not_drawn() -> None:
    radii = [[0.1, 0.1], [INF, INF], [0.1, INF]]
    data = plots.front_data(table([[1, 2], [0, 0], [3, 3]], "fuu", two(), radii))
    assert [box.arm for box in data.boxes] == ["arm 1"]
    assert data.unmeasured == ("arm 2", "arm 3")
    assert data.axes[0].high < 2
    nothing = plots.front_data(table([[1, 2]], "u", two(), INF))
    assert (nothing.boxes, nothing.unmeasured) == ((), ("arm 1",))
    assert (nothing.axes[0].low, nothing.axes[0].high) == (0, 1)


def test_one_wide_box_does_not_squeeze_the_others() -> None:
    radii = [[0.1, 0.1], [0.1, 0.1], [500, 500]]
    data = plots.front_data(table([[0, 2], [2, 0], [1, 1]], "ffu", two(), radii))
    assert data.boxes[2].high == (501, 501)
    assert (data.axes[0].low, data.axes[0].high) == pytest.approx((-0.1 - 0.08 * 2.2, 2.1 + 0.08 * 2.2))


def test_wide_boxes_are_shown_whole_where_all_are_wide() -> None:
    axis = plots.front_data(table([[1.0, 0], [1.01, 0]], "uu", two(), 0.5)).axes[0]
    assert axis.low < 0.5
    assert axis.high > 1.51


def test_log_axes() -> None:
    time, size = plots.front_data(compressors()).axes
    assert time.log
    assert not size.log
    assert 0 < time.low < 7.3
    assert time.label == "time (ms), lower is better"
    assert not plots.front_data(table([[7, 1], [234, 1]], "fd", two(), 8)).axes[0].log  # a box reaches below 0


def test_one_metric_is_a_sorted_list() -> None:
    for direction, names in (("max", ["arm 2", "arm 3", "arm 1"]), ("min", ["arm 1", "arm 3", "arm 2"])):
        data = plots.front_data(table([[1], [3], [2]], "uuu", [Metric("x", direction)]))
        assert [box.arm for box in data.boxes] == names
        assert len(data.axes) == 1
        assert data.stairs.shape == (0, 2)


def test_three_metrics() -> None:
    metrics = [*two(), Metric("z", "min")]
    three = table([[1, 2, 3], [4, 5, 6]], "ff", metrics)
    assert plots.front_data(three).hidden == ("z",)
    data = plots.front_data(three, x="z", y="x")
    assert data.boxes[0].centre == (3, 1)
    assert data.hidden == ("y",)
    assert data.title == "2 of 2 options are worth having"
    assert plots.front_data(three, y="x").boxes[0].centre == (2, 1)
    assert plots.front_data(three, x="y").boxes[0].centre == (2, 1)
    # arm 1 is beaten in x and y and owes its verdict to z: no step of these stairs
    assert plots.front_data(three).stairs[1:-1].tolist() == [[4, 5]]


def test_unknown_metrics() -> None:
    with pytest.raises(UnknownName, match="unknown metric 'tme'; did you mean 'time'"):
        plots.front_data(compressors(), x="tme")
    with pytest.raises(UnknownName, match="metric 'speed'"):
        plots.front(compressors(), y="speed")
    with pytest.raises(InvalidInput, match="two metrics, got 'time' twice"):
        plots.front_data(compressors(), x="time", y="time")


# Simulations


def test_box_data() -> None:
    (data,) = plots.box_data(result(stopped=np.array([True, False])))
    assert data.label == "uniform"
    assert data.samples.tolist() == [3, 5]
    assert data.regret.tolist() == [3.0, 5.0]
    assert (data.success_rate, data.stopped_rate, data.replicates) == (0.5, 0.5, 2)


@pytest.mark.parametrize(
    ("results", "labels"),
    [
        ([result("a"), result("b")], ["a", "b"]),
        (
            [result("p", {"c": 0.01}), result("p", {"c": 0.5}), result("q", {"c": 9})],
            ["p c=0.01", "p c=0.5", "q c=9"],
        ),
        ([result("p", {"noise": "known"}), result("p", {"noise": "unknown"})], ["p noise=known", "p noise=unknown"]),
        (
            [result("p", eps=np.array([0.1, 0.1])), result("p", eps=np.array([0.1, 0.2]))],
            ["p eps=0.1", "p eps=0.1,0.2"],
        ),
        ([result("p", seed=1), result("p", seed=2)], ["p seed=1", "p seed=2"]),
        ([result("p"), result("p")], ["p #1", "p #2"]),
        ([result("p"), result("q", problem="hard")], ["p on toy", "q on hard"]),
    ],
)
def test_labels_tell_results_apart(results: list[Result], labels: list[str]) -> None:
    assert [data.label for data in plots.box_data(results)] == labels
    assert [data.label for data in plots.regret_data(results)] == labels


def test_regret_data_ends_where_the_last_replicate_stopped() -> None:
    (data,) = plots.regret_data([result()])
    assert data.rounds.tolist() == [1, 2, 4, 5]  # 16 was never played
    assert data.mean.tolist() == [1, 2, 3.5, 4]
    assert data.low == pytest.approx([1, 2, 3.1, 3.2])  # 10% of the way from the one to the other
    assert data.high == pytest.approx([1, 2, 3.9, 4.8])


def test_regret_data_at_a_stored_round_and_at_the_cap() -> None:
    for samples, rounds in (([3, 4], [1, 2, 4]), ([16, 16], [1, 2, 4, 8, 16]), ([1, 1], [1])):
        (data,) = plots.regret_data([result(samples=np.array(samples))])
        assert data.rounds.tolist() == rounds
        assert len(data.mean) == len(rounds)


def test_nothing_to_compare() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        plots.compare([])
    empty = {name: getattr(result(), name)[:0] for name in ("samples", "regret", "success", "stopped")}
    with pytest.raises(InvalidInput, match="must have replicates"):
        plots.samples([result(**empty)])


def test_spans() -> None:
    assert spans([1, 11])
    assert not spans([1, 10])
    assert not spans([0, 100])
    assert not spans([])


# Drawing. Warnings are errors here.


def rectangles(figure: Any) -> dict[str, Any]:
    """Where the arms' names are."""
    # Not the extent of the annotation, which has the line to the arm in it.
    return {text.get_text(): Text.get_window_extent(text) for text in figure.axes[0].texts if text.get_zorder() == 9}


def below(figure: Any) -> str:
    """What the picture says below its axes, in one line."""
    frame = figure.axes[0].get_window_extent()
    return " ".join(
        text.get_text().replace("\n", " ") for text in figure.texts if text.get_window_extent().y1 < frame.y0
    )


def written(figure: Any) -> list[Text]:
    """All texts that are drawn."""
    axes = figure.axes[0]
    ticks = [
        tick.label1
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_major_ticks()
        if min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    ]
    labels = [axes.xaxis.label, axes.yaxis.label]
    found = [*figure.texts, *axes.texts, *axes.get_legend().get_texts(), *ticks, *labels]
    return [text for text in found if text.get_text()]


def markers(figure: Any, *labels: str) -> list[list[float]]:
    """Where the markers are, by their entries in the legend; those of options without an interval begin with _."""
    wanted = [drawn for drawn in figure.axes[0].collections if drawn.get_label() in labels]
    return sorted(point for drawn in wanted for point in drawn.get_offsets().tolist())


def apart(figure: Any) -> bool:
    boxes = list(rectangles(figure).values())
    return not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


MILLISECONDS = Metric("time", "min", eps="5%", unit="ms")
RATE = Metric("rate", bounds=(0.0, 1.0))


def uneven() -> VerdictTable:
    """Times on a log scale, whose intervals are uneven, and rates, whose intervals end at their bounds."""
    centres = [[np.log(30), 0.5], [np.log(60), 0.97], [np.log(300), 0.02], [np.log(700), 0.6]]
    return table(centres, "fsud", [MILLISECONDS, RATE], [[0.2, 0.1]])


@pytest.mark.parametrize(("x", "y"), [("time", "rate"), ("rate", "plain"), ("plain", "time")])
def test_markers_and_boxes_stand_where_the_table_says(x: str, y: str) -> None:
    two_metrics = uneven()
    centres = np.column_stack([two_metrics.centres, [3.0, -4.0, 5.0, 0.0]])
    shown = table(centres, "fsud", [MILLISECONDS, RATE, Metric("plain")], [[0.2, 0.1, 0.5]])
    figure: Any = plots.front(shown, x=x, y=y)
    columns = [[metric.name for metric in shown.metrics].index(name) for name in (x, y)]
    legend = ["front", "same as another, within eps", "undecided", "dominated"]
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == legend
    for k, entry in enumerate(legend):
        assert markers(figure, entry) == [pytest.approx(shown.estimates[k, columns].tolist())]
    drawn = [patch.get_xy() for patch in figure.axes[0].patches if patch.get_zorder() > 0]
    assert len(drawn) == 4
    for k, corners in enumerate(drawn):
        assert corners.min(axis=0) == pytest.approx(shown.low[k, columns])
        assert corners.max(axis=0) == pytest.approx(shown.high[k, columns])
    if x == "time":
        lows, highs = (end[:, 0] - shown.estimates[:, 0] for end in (shown.low, shown.high))
        assert (highs > -lows).all()  # uneven indeed
        assert figure.axes[0].get_xscale() == "log"


@pytest.mark.parametrize("column", [0, 1])
def test_markers_and_lines_of_one_metric_stand_where_the_table_says(column: int) -> None:
    both = uneven()
    one = table(both.centres[:, [column]], "fsud", [both.metrics[column]], both.widths[:, [column]])
    figure: Any = plots.front(one)
    rows = {text.get_text(): at for at, text in enumerate(figure.axes[0].get_yticklabels())}
    expected = sorted([float(one.estimates[k, 0]), rows[arm]] for k, arm in enumerate(one.arms))
    legend = ["front", "same as another, within eps", "undecided", "dominated"]
    assert markers(figure, *legend) == [pytest.approx(point) for point in expected]
    drawn = [line for line in figure.axes[0].lines if line.get_zorder() > 0]
    lines = {int(line.get_ydata()[0]): line.get_xdata() for line in drawn}
    for k, arm in enumerate(one.arms):
        assert lines[rows[arm]] == pytest.approx([one.low[k, 0], one.high[k, 0]])


def test_without_an_interval_the_mean_so_far_is_shown_in_grey() -> None:
    # of the third metric of the second option nothing is known
    seen = np.array([[np.log(40), 0.5], [np.log(50), 0.9], [np.nan, 0.7]])
    radii = [[0.1, 0.1], [INF, 0.1], [INF, INF]]
    begun = table([[np.log(40), 0.5], [0, 0.9], [0, 0]], "fuu", [MILLISECONDS, RATE], radii, seen=seen)
    assert begun.value(1, 0) == "≈ 50"
    figure: Any = plots.front(begun)
    assert markers(figure, "front") == [pytest.approx([40, 0.5])]
    assert markers(figure, "_undecided") == [pytest.approx([50, 0.9])]
    assert markers(figure, "undecided") == []
    (grey,) = [drawn for drawn in figure.axes[0].collections if drawn.get_label() == "_undecided"]
    red, green, blue, _ = grey.get_facecolor()[0]
    assert red == green == blue
    legend = figure.axes[0].get_legend()
    assert legend is not None
    entries = [text.get_text() for text in legend.get_texts()]
    assert entries == ["front", "undecided", "grey: mean so far, no interval yet"]
    assert "Not measured enough to be shown: arm 3." in below(figure)


def test_a_value_too_small_to_be_measured_stands_at_its_upper_end() -> None:
    censored = np.array([[False, False], [True, False]])
    small = table([[30, 1], [5, 2]], "ff", two("min", "min"), [[1, 0.1], [INF, 0.1]], censored=censored)
    assert small.value(1, 0) == "< 5"
    figure = plots.front(small)
    assert markers(figure, "front") == [[5, 2], [30, 1]]
    assert "Too small to be measured, so smaller than shown: x of arm 2." in below(figure)
    assert "Arrows" in below(figure)


def test_an_option_that_is_hardly_known_leaves_room_for_the_others() -> None:
    centres = [[30, 20], [50, 15], [70, 12], [60, 18], [55, 16]]
    for wide in ([9, 60], [60, 0.5], [18, 3.2]):
        figure = plots.front(table(centres, "fffdu", two("min", "min"), [[2, 0.5]] * 4 + [wide]))
        axes = figure.axes[0]
        whole = axes.get_window_extent()
        for patch in axes.patches:
            if patch.get_zorder() > 0:
                extent = patch.get_window_extent()
                assert extent.width * extent.height < 0.25 * whole.width * whole.height
        assert axes.get_xlim()[1] - axes.get_xlim()[0] < 2 * 40
        assert axes.get_ylim()[1] - axes.get_ylim()[0] < 2 * 8
        assert ("Arrows" in below(figure)) == (wide != [18, 3.2])  # which is within the axes, but large


def test_bounded_axes_show_nothing_beyond_the_bounds() -> None:
    axis = plots.front_data(table([[0.01, 1], [1.0, 2]], "fd", [RATE, Metric("y")], 0.3)).axes[0]
    assert -0.05 < axis.low < 0
    assert 1 < axis.high < 1.05
    assert not axis.log


def test_log_axes_have_plain_numbers() -> None:
    times = table(np.log([[3, 1], [30, 2], [300, 3]]), "ffd", [MILLISECONDS, Metric("y", eps="1%")])
    figure = plots.front(times)
    assert figure.axes[0].get_xscale() == "log"
    ticks = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert {"3", "10", "30", "100", "300"} <= set(ticks)
    assert figure.axes[0].get_yscale() == "linear"  # 1 to 3


def test_numbers_of_an_axis_are_all_short_or_all_in_full() -> None:
    figure = plots.front(table([[1000001, 2e6], [1000003, 5e6]], "ff", two(), 0.1))
    assert "1,000,002" in {text.get_text() for text in figure.axes[0].get_xticklabels()}
    assert "3M" in {text.get_text() for text in figure.axes[0].get_yticklabels()}


def test_values_of_different_times_are_said_to_be() -> None:
    drift = Concern("drift", "x", (), {"values": 40.0, "with order": 0.7})
    drifting = table([[3, 3], [2, 2], [4, 1]], "fdu", two(), concerns=(drift,), rivals=(None, "arm 1", None))
    assert "Values change as time goes on (x). Options that left early show values of an earlier" in below(
        plots.front(drifting)
    )
    nobody_left = table([[3, 3], [2, 2]], "uu", two(), concerns=(drift,))
    assert "earlier" not in below(plots.front(nobody_left))
    stale = table([[3, 3], [4, 4]], "fd", two(), rivals=(None, "arm 1"))
    assert stale.contradicted == ("arm 1", "arm 2")
    assert "contradict the verdicts of arm 1, arm 2, which rest on earlier values." in below(plots.front(stale))


@pytest.mark.parametrize(
    ("metrics", "name"), [(1, "program=zstd,level={},threads=8,window=27"), (2, "x" * 38 + "{:02}"), (3, "option {}")]
)
def test_no_text_is_cut_off(metrics: int, name: str) -> None:
    shown = [
        Metric("time until the first byte of an answer arrives", "min", unit="milliseconds"),
        Metric("size of the compressed file in the bucket of the store", "min", unit="kibibytes"),
        Metric("rss", "min"),
    ][:metrics]
    upto = tuple((metric.name, "0.5 " + metric.unit) for metric in shown)
    assumed = ("normal noise, variance unknown", "noise the same for all options", "u" * 200)
    share = np.linspace(0, 1, 12)
    estimates = np.column_stack([30 + 300 * share, 20 + 100 * (1 - share) ** 2, share])[:, :metrics]
    radii = np.tile([10.0, 3.0, 0.1], (12, 1))[:, :metrics]
    radii[4] *= 50
    hard = table(
        estimates,
        "fdsufsfufdud",
        shown,
        radii,
        [name.format(k) for k in range(12)],
        guarantee=Guarantee("front", 0.95, upto, assumed),
    )
    title = "Which settings of the compressor are worth having for the nightly runs on all of our machines? " * 2
    figure = plots.front(hard, title=title)
    figure.draw_without_rendering()  # only now the legend is in its place
    sheet = figure.bbox
    texts = written(figure)
    assert len(texts) > 20
    for text in texts:
        box = Text.get_window_extent(text)  # without the line to an option
        assert min(box.x0, box.y0) >= 0, text
        assert box.x1 <= sheet.x1, text
        assert box.y1 <= sheet.y1, text
    names = list(rectangles(figure)) if metrics > 1 else [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert {name.replace("\n", "") for name in names} == set(hard.arms)
    # texts above, axes and texts below do not lie on each other
    boxes: list[Any] = [text.get_window_extent().extents for text in figure.texts]
    blocks = sorted(box[[1, 3]].tolist() for box in boxes)
    assert all(lower[1] <= upper[0] for lower, upper in itertools.pairwise(blocks))


@pytest.mark.parametrize("size", [0.05, 0.5, 3.0])
def test_names_of_compressors_are_all_there_and_apart(size: float) -> None:
    figure = plots.front(compressors(size=size))
    assert sorted(rectangles(figure)) == sorted(COMPRESSORS)
    assert apart(figure)


def test_names_in_a_dense_cluster_are_apart_and_inside() -> None:
    rng = np.random.default_rng(0)
    estimates = np.vstack([[[0.5, 2.0], [1.5, 0.3]], rng.normal(1.0, 0.03, (18, 2))])
    figure = plots.front(table(estimates, "ff" + "u" * 9 + "d" * 9, two(), 0.03))
    assert len(rectangles(figure)) == 20
    assert apart(figure)
    frame = figure.axes[0].get_window_extent()
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in rectangles(figure).values())


def test_names_without_room_are_counted() -> None:
    points = np.random.default_rng(1).normal(size=(300, 2))
    figure = plots.front(table(points, "d" * 300, two()))
    named = len(rectangles(figure))
    assert 0 < named <= 40
    assert f"No room for {300 - named} more names." in below(figure)
    assert apart(figure)


def test_a_crowd_is_dots_by_samples_and_only_others_are_named() -> None:
    """More than 400 options: no intervals and no names of dominated ones, but how often they were measured."""
    points = np.vstack([[[3.0, 9.0], [9.0, 3.0]], np.random.default_rng(1).normal(size=(600, 2))])
    shown = table(points, "fu" + "d" * 600, two(), 0.5)
    figure = plots.front(replace(shown, counts=np.array([50, 60] + [2] * 500 + [200] * 100)))
    assert len(rectangles(figure)) == 2
    assert "No room" not in below(figure)
    legend = figure.axes[0].get_legend()
    assert legend is not None
    entries = [text.get_text() for text in legend.get_texts()]
    assert entries == ["dominated: below 10 samples", "100 to 999", "front", "undecided"]
    drawn = sorted(len(np.asarray(dots.get_offsets())) for dots in figure.axes[0].collections)
    assert drawn[-2:] == [100, 500]


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_figures_are_saved(suffix: str, tmp_path: Path) -> None:
    heads = {"png": b"\x89PNG", "svg": b"<?xml"}
    results = [result("p", {"c": 1}), result("p", {"c": 2}), result("q", samples=np.array([1, 16]))]
    one = table([[1], [3], [2]], "dfu", [Metric("x")])
    makers: list[Any] = [
        lambda path: plots.front(compressors(), path=path),
        lambda path: plots.front(one, path=str(path), title="mine"),
        lambda path: plots.front(table([[1, 1]], "u", two(), INF), path=path),
        lambda path: plots.compare(results, path=path),
        lambda path: plots.samples(results, path=path),
        lambda path: plots.regret(results[0], path=path),
        lambda path: plots.regret_curves(results, path=path),
    ]
    for make in makers:
        contents = []
        for path in (tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix.upper()}"):
            make(path)
            contents.append(path.read_bytes())
        assert contents[0].startswith(heads[suffix])
        assert len(contents[0]) > 5_000
        assert contents[0] == contents[1]  # the same figure, the same file


def test_other_kinds_of_file_are_refused(tmp_path: Path) -> None:
    for name in ("front.pdf", "front"):
        with pytest.raises(InvalidInput, match=r"must end in \.png or \.svg"):
            plots.front(compressors(), path=tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_texts_say_what_is_promised_and_what_is_missing() -> None:
    metrics = [*two(), Metric("z", "min")]
    three = table([[1, 2, 3], [4, 5, 6], [0, 0, 0]], "ffu", metrics, [[1], [1], [INF]])
    title, promised, *rest = [text.get_text() for text in plots.front(three, title="Mine", notes=["It rained."]).texts]
    assert title == "Mine"
    assert promised == (
        "2 of 3 options are on the front, 1 is undecided; 30 samples. "
        "Guarantee: all verdicts right with probability 95% (sigma given)"
    )
    assert "Shown: 2 of 3 metrics. In z, options of the front may be better than they look here." in rest
    assert "Not measured enough to be shown: arm 3." in rest
    assert "It rained." in rest
    title, promised, *_ = [text.get_text() for text in plots.front(three).texts]
    assert title == "2 of 3 options are on the front, 1 is undecided"
    assert promised.startswith("30 samples. Guarantee: ")


def test_what_is_drawn_is_explained_below() -> None:
    said = below(plots.front(table([[1, 2], [2, 1]], "fd", two())))
    assert "Boxes around markers: where the true values are likely to be." in said
    assert "Grey area: worse in both metrics than an option of the front." in said
    assert "Arrows" not in said
    said = below(plots.front(table([[1], [2]], "fd", [Metric("x")])))
    assert "Lines around markers" in said
    assert "Grey area: worse than the best option." in said
    said = below(plots.front(table([[1, 2], [2, 1]], "uu", two(), INF, seen=np.array([[1.0, 2], [2, 1]]))))
    assert "markers" not in said
    assert "Grey" not in said


def test_awkward_names_are_written_as_they_are(tmp_path: Path) -> None:
    names = ["$5 or $6", r"\frac{", "_hidden", "a very long name that nobody would want to see in full"]
    figure = plots.front(
        table([[1, 4], [2, 3], [3, 2], [4, 1]], "ffud", [Metric("$x$ and $"), Metric("y%")], arms=names),
        path=tmp_path / "odd.svg",
    )
    assert set(rectangles(figure)) == {*names[:3], "a very long name that nobody\nwould want to see in full"}
    plots.front(table([[1], [2], [3], [4]], "ddfd", [Metric("$x")], arms=names), path=tmp_path / "list.png")
    plots.compare([result("$p$ $"), result("_q")], path=tmp_path / "compare.png")


def test_arms_without_noise_and_equal_arms(tmp_path: Path) -> None:
    plots.front(table([[1, 1], [1, 1]], "ff", two(), 0.0), path=tmp_path / "same.png")
    plots.front(table([[0, 0]], "f", two(), 0.0), path=tmp_path / "origin.png")


def test_regret_of_zero_keeps_plain_axes() -> None:
    free: dict[str, Any] = {"regret": np.zeros(2), "regret_curves": np.zeros((2, 5))}
    figure = plots.compare([result("a", **free), result("b", samples=np.array([16, 16]))])
    assert {axes.get_xscale() for axes in figure.axes[1:]} == {"linear"}


def test_log_axes_of_results_far_apart() -> None:
    far = result("b", samples=np.array([1000, 1000]), regret=np.array([900.0, 900.0]))
    left, middle, right = plots.compare([result("a"), far]).axes
    assert (left.get_xscale(), middle.get_xscale(), right.get_xscale()) == ("log", "log", "log")


def test_missing_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    message = r"plots needs .* pip install 'paretoscout\[plots\]'"
    with pytest.raises(MissingExtra, match=message):
        plots.front(compressors())
    with pytest.raises(MissingExtra, match=message):
        plots.compare([result()])


def test_importing_and_computing_need_no_matplotlib() -> None:
    code = "import sys, paretoscout.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_pyplot_is_never_used() -> None:
    code = (
        "import sys, numpy as np, paretoscout as ps\n"
        "import paretoscout.guarantee\n"
        "from paretoscout.verdicts import VerdictTable\n"
        "t = VerdictTable(('a',), (ps.Metric('x'), ps.Metric('y')), ('front',), (None,), np.ones((1, 2)),"
        " np.ones((1, 2)), np.ones(1, dtype=int), ps.guarantee.Guarantee('front', 0.9, (), ()))\n"
        "ps.plots.front(t)\n"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_marker_in_the_best_corner_hides_the_arrow_there() -> None:
    for estimates, shown in (([[0, 0], [1, 1]], False), ([[0, 1], [1, 0]], True)):
        figure = plots.front(table(estimates, "uu", two(), 0.0))
        (arrow,) = [text for text in figure.axes[0].texts if "better" in text.get_text()]
        assert arrow.get_visible() == shown


def test_nothing_to_show_is_said() -> None:
    for metrics in (two(), two()[:1]):
        figure = plots.front(table(np.zeros((2, len(metrics))), "uu", metrics, INF))
        assert "nothing to show yet" in [text.get_text() for text in figure.axes[0].texts]
        assert "Not measured enough to be shown: arm 1, arm 2." in below(figure)
