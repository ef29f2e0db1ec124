"""Figures: the numbers they show by hand, and that drawing them works and hides nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paretoscout import plots
from paretoscout.errors import InvalidInput, MissingExtra, UnknownName
from paretoscout.guarantee import Guarantee
from paretoscout.plots.data import spans
from paretoscout.simulation.results import Result
from paretoscout.statement import Metric
from paretoscout.verdicts import VerdictTable

INF = float("inf")


def table(
    estimates: Any, verdicts: str, metrics: list[Metric], radii: Any = 0.1, arms: list[str] | None = None
) -> VerdictTable:
    """A table whose verdicts are given by letters: f, d, u."""
    words = {"f": "front", "d": "dominated", "u": "undecided"}
    values = np.array(estimates, dtype=float)
    return VerdictTable(
        arms=tuple(arms or [f"arm {k + 1}" for k in range(len(values))]),
        metrics=tuple(metrics),
        verdicts=tuple(words[letter] for letter in verdicts),
        rivals=(None,) * len(values),
        centres=values,
        widths=np.broadcast_to(np.array(radii, dtype=float), values.shape),
        counts=np.full(len(values), 10),
        guarantee=Guarantee("front", 0.95, (), ("sigma given",)),
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
    assert data.title == "1 front, 1 undecided; 20 samples"


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
    assert data.title == "z and x (2 of 3 metrics): 2 front; 20 samples"
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
    from matplotlib.text import Text

    # Not the extent of the annotation, which has the line to the arm in it.
    return {text.get_text(): Text.get_window_extent(text) for text in figure.axes[0].texts if text.get_zorder() == 9}


def apart(figure: Any) -> bool:
    boxes = list(rectangles(figure).values())
    return not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


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
    assert f"no room for {300 - named} more names" in {text.get_text() for text in figure.axes[0].texts}
    assert apart(figure)


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


def test_header_says_what_is_promised_and_what_is_missing() -> None:
    metrics = [*two(), Metric("z", "min")]
    figure = plots.front(table([[1, 2, 3], [4, 5, 6], [0, 0, 0]], "ffu", metrics, [[1], [1], [INF]]), title="Mine")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "Mine" in texts
    (notes,) = [text for text in texts if "Guarantee" in text]
    assert "all verdicts right with probability 95% (sigma given)" in notes
    assert "Not shown: z" in notes
    assert "arm 3" in notes


def test_awkward_names_are_written_as_they_are(tmp_path: Path) -> None:
    names = ["$5 or $6", r"\frac{", "_hidden", "a very long name that nobody would want to see in full"]
    figure = plots.front(
        table([[1, 4], [2, 3], [3, 2], [4, 1]], "ffud", [Metric("$x$ and $"), Metric("y%")], arms=names),
        path=tmp_path / "odd.svg",
    )
    assert set(rectangles(figure)) == {*names[:3], names[3][:31] + "…"}
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
        "from paretoscout.verdicts import VerdictTable\n"
        "t = VerdictTable(('a',), (ps.Metric('x'), ps.Metric('y')), ('front',), (None,), np.ones((1, 2)),"
        " np.ones((1, 2)), np.ones(1, dtype=int), 'g')\n"
        "ps.plots.front(t)\n"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
