"""Places for names in a picture. All in pixels; a rectangle is (left, bottom, right, top)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.arrays import BoolArray, FloatArray
from ..shown import line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Names are broken after one of these where that is possible, into so many lines.
BREAKS, MOST_LINES = " ,;:/|_", 4


def broken(name: str, length: int = 28) -> str:
    """Return a name as a few lines of about that length: all of it, unless it is very long.

    >>> broken("gzip -1")
    'gzip -1'
    >>> print(broken("program=zstd,level=19,threads=8,window=27"))
    program=zstd,level=19,
    threads=8,window=27
    """
    rest, lines = line(name), []
    most, slack = length * MOST_LINES, length + length // 4
    if len(rest) > most:
        rest = f"{rest[: most // 2]}…{rest[-(most // 3) :]}"  # names often differ at their ends
    while len(rest) > slack:
        even = len(rest) / math.ceil(len(rest) / slack)  # lines of about the same length
        places = [i + 1 for i in range(length // 3, slack) if rest[i] in BREAKS]
        at = min(places, key=lambda place, even=even: abs(place - even), default=length)  # type: ignore[misc]
        lines.append(rest[:at].rstrip())
        rest = rest[at:]
    return "\n".join([*lines, rest])


class Sheet:
    """What is where. A name never touches another or a marker; it avoids boxes and staircase as well as it can."""

    def __init__(
        self, frame: Any, centres: Any, boxes: Any, markers: Any, steps: Any, taken: Any, point: float
    ) -> None:
        """Take where things are, in pixels.

        frame: the rectangle in which names may be. centres: of the arms; boxes, markers: rectangles around each. steps:
        rectangles of the staircase. taken: rectangles where no name may be. point: pixels of a point.
        """
        self.point, self.frame = point, np.asarray(frame, float)
        self.centres, self.boxes = np.reshape(centres, (-1, 2)), np.reshape(boxes, (-1, 4))
        self.markers, self.steps = np.reshape(markers, (-1, 4)), np.reshape(steps, (-1, 4))
        self.taken = np.vstack([self.markers, np.reshape(taken, (-1, 4))])

    @classmethod
    def of_axes(cls, axes: Axes, centres: Any, boxes: Any, reach: Any, steps: Any, taken: FloatArray) -> Sheet:
        """Return the sheet of a figure: where the centres of the arms are, what is drawn around each, in data.

        reach: how far the marker of each arm reaches, in points. boxes, steps: corners. taken: rectangles in pixels.
        """

        def pixels(points: Any) -> FloatArray:
            return np.asarray(axes.transData.transform(np.reshape(points, (-1, 2))), dtype=float)

        point = axes.figure.dpi / 72.0
        at = pixels(centres)
        around = point * np.asarray(reach, float)[:, None]
        ends = pixels(steps).reshape(-1, 2, 2)
        return cls(
            frame=axes.get_window_extent().extents,
            centres=at,
            boxes=pixels(boxes).reshape(-1, 4),
            markers=np.hstack([at - around, at + around]),
            steps=np.hstack([ends.min(axis=1) - 1, ends.max(axis=1) + 1]),
            taken=taken,
            point=point,
        )

    def place(self, k: int, size: FloatArray) -> tuple[tuple[float, float], bool] | None:
        """Return a place for the name of arm k, in points from its centre, and whether it needs a line to there."""
        centre, box, area = self.centres[k], self.boxes[k : k + 1], float(size.prod())
        rings = [_around(self.markers[k], gap * self.point, size) for gap in (1, 9, 18, 30, 45, 62, 85, 110, 140, 180)]
        places = np.vstack([*rings, _around(box[0], 3 * self.point, size)])
        nearest = np.clip(centre, places[:, :2], places[:, 2:])
        distance = np.linalg.norm(nearest - centre, axis=1) / self.point
        # A name beside the box of its arm needs no line, unless other boxes are there too.
        beside = _shared(_grown(places, 5 * self.point), self.boxes) > 0  # (places, boxes)
        alone = (_shared(box, self.boxes) > 0).sum() == 1
        lined = (distance > 9) & ~(beside[:, k] & alone)
        dots = np.where(lined[:, None, None], np.linspace(nearest, centre, 10, axis=1)[:, :-1], nearest[:, None])
        dots = dots[:, :, [0, 1, 0, 1]]  # the lines, as rectangles without size
        met = (_shared(dots.reshape(-1, 4), np.delete(self.taken, k, axis=0)) > 0).reshape(len(dots), -1)
        cost = (
            0.03 * distance
            + 0.002 * np.linalg.norm(places[:, :2] + size / 2 - centre, axis=1) / self.point
            + 2.0 * met.any(axis=1)
            + 0.2 * np.delete(beside, k, axis=1).sum(axis=1)  # whose name would it be?
            + 0.8 * (_shared(places, self.steps) > 0).sum(axis=1)
            + (_shared(places, self.boxes) / area + 0.5 * _crosses(places, self.boxes)).sum(axis=1)
        )
        outside = (places[:, :2] < self.frame[:2]) | (places[:, 2:] > self.frame[2:])
        cost[outside.any(axis=1) | (_shared(places, self.taken) > 0).any(axis=1)] = np.inf
        best = int(cost.argmin())
        if not np.isfinite(cost[best]):
            return None
        self.taken = np.vstack([self.taken, _grown(places[best : best + 1], 2 * self.point), _grown(dots[best], 1)])
        x, y = (places[best, :2] - centre) / self.point
        return (float(x), float(y)), bool(lined[best])


def _around(target: FloatArray, gap: float, size: FloatArray) -> FloatArray:
    """Return 16 rectangles of that size all around another one."""
    ring = [(i, j) for i in range(5) for j in range(5) if i in (0, 4) or j in (0, 4)]
    start, end = target[:2] - gap - size, target[2:] + gap
    corner = start + np.array(ring) / 4.0 * (end - start)
    return np.hstack([corner, corner + size])


def _grown(rectangles: FloatArray, by: float) -> FloatArray:
    return np.hstack([rectangles[:, :2] - by, rectangles[:, 2:] + by])


def _shared(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the areas that rectangles of the one kind share with those of the other, at least 1 where they touch."""
    width, height = (
        np.minimum(first[:, None, i + 2], second[None, :, i + 2]) - np.maximum(first[:, None, i], second[None, :, i])
        for i in (0, 1)
    )
    return np.where((width >= 0) & (height >= 0), np.maximum(width * height, 1.0), 0.0)


def _crosses(first: FloatArray, second: FloatArray) -> BoolArray:
    """Tell which rectangles of the one kind lie across the border of those of the other, or nearly so."""
    inside = (first[:, None, :2] > second[None, :, :2]) & (first[:, None, 2:] < second[None, :, 2:])
    return (_shared(_grown(first, 3), second) > 0) & ~inside.all(axis=2)
