"""The trade-off as drawings: two metrics, all pairs of them, all of them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from ..kernels.arrays import FloatArray
from ..plots.data import Axis, Box, FrontData, front_data
from ..plots.names import Sheet
from ..shown import MARKS, heading, shortened
from . import sentences
from .choice import Choice
from .frame import Links
from .svg import Scale, drawing, element, mark, shown, text_width, tick_text
from .view import MANY, Option, View

#: Names in a chart have at most so many letters, and at most so many options have theirs.
LONGEST, MOST_NAMED = 30, 60
#: Of more options only those of the front have boxes and names.
CROWD = 150
#: Options that are the same, and no further apart, share a name; in pixels.
BESIDE = 40.0
#: In how far a mark can be hit, in pixels.
HIT = 14.0
#: Of how many options lines are drawn side by side, at most.
MOST_LINES = 300
#: At most so many pairs of metrics are drawn.
MOST_PAIRS = 15


@dataclass(frozen=True)
class Area:
    """The rectangle in which values are drawn."""

    left: float
    top: float
    right: float
    bottom: float


def axes_of(view: View, choice: Choice) -> tuple[str, str | None]:
    """Return the metrics across and up: what was chosen, or what is to be small across and what is to be large up."""
    names = [metric.name for metric in view.metrics]
    if len(names) == 1:
        return names[0], None
    x, y = choice.x, choice.y
    if x is None and y is None:
        turned = view.metrics[0].direction == "max" and view.metrics[1].direction == "min"
        return (names[1], names[0]) if turned else (names[0], names[1])
    free = [name for name in names if name not in (x, y)]
    return x or free[0], y or free[0]


def pairs_of(view: View) -> list[tuple[str, str]]:
    """Return all pairs of metrics, each as (across, up)."""
    names = [metric.name for metric in view.metrics]
    found = [(names[j], names[i]) for i in range(len(names)) for j in range(i + 1, len(names))]
    return found[:MOST_PAIRS]


def trade_off(view: View, choice: Choice, links: Links, selected: Option | None, rival: Option | None) -> Markup:
    """Draw two metrics: intervals as boxes, the proven front as a staircase; one metric as a list."""
    x, y = axes_of(view, choice)
    if y is None:
        return _list(view, choice.width, links, selected)
    tall = min(max(0.62 * choice.width, 420.0), 520.0)
    return _plane(view, x, y, choice.width, tall, links, selected, rival)


def small_multiples(view: View, choice: Choice, links: Links, selected: Option | None) -> list[Markup]:
    """Draw all pairs of metrics, small."""
    width = choice.width if choice.width < 560 else (choice.width - 24) / 2
    return [_plane(view, x, y, width, 0.74 * width, links, selected, None, small=True) for x, y in pairs_of(view)]


def _scales(data: FrontData, area: Area) -> tuple[Scale, Scale]:
    x, y = data.axes
    return (
        Scale(x.low, x.high, area.left, area.right, x.log),
        Scale(y.low, y.high, area.bottom, area.top, y.log),
    )


def _plane(
    view: View,
    x: str,
    y: str,
    width: float,
    height: float,
    links: Links,
    selected: Option | None,
    rival: Option | None,
    small: bool = False,
) -> Markup:
    data = front_data(view.table, x, y)
    area = Area(46.0 if small else 54.0, 8.0, width - (4.0 if small else 12.0), height - (42.0 if small else 50.0))
    sx, sy = _scales(data, area)
    loud = _loud(data, selected, rival)
    boxed = [box.verdict in loud or box.arm in loud for box in data.boxes]
    drawn = sorted(range(len(data.boxes)), key=lambda i: -list(MARKS).index(data.boxes[i].verdict))
    parts = [
        _behind(data, sx, sy, area),
        _axes(data, sx, sy, area, small),
        *(_box(view, data.boxes[i], sx, sy) for i in drawn if boxed[i]),
        _stairs(data, sx, sy),
    ]
    if not small:
        parts.append(_better(data.axes, area))
    at = {box.arm: (sx(box.centre[0]), sy(box.centre[1])) for box in data.boxes}
    if rival is not None and selected is not None and rival.name in at and selected.name in at:
        (x1, y1), (x2, y2) = at[selected.name], at[rival.name]
        parts.append(element("line", class_="link", x1=x1, y1=y1, x2=x2, y2=y2))
    if not small:
        letters = 15.0 if links.choice.wall else 12.5
        key = ("names", x, y, width, letters, tuple(boxed))
        parts += view.once(key, lambda: _names(view, data, boxed, sx, sy, area, letters))
    size = 0.78 if small else 1.0
    parts += [_point(view, data.boxes[i], at[data.boxes[i].arm], links, selected, size, not boxed[i]) for i in drawn]
    label = f"{y} over {x}: {sentences.text_of(sentences.answer(view))}"
    return drawing(width, height, *parts, label=label, role="group", class_="plane")


def _loud(data: FrontData, selected: Option | None, rival: Option | None) -> set[str]:
    """Return the verdicts, and the options, that have boxes and names; of others there is a dot."""
    if len(data.boxes) <= MANY:
        return set(MARKS)
    chosen = {option.name for option in (selected, rival) if option is not None}
    left = sum(box.verdict in ("front", "undecided") for box in data.boxes)
    return {"front", *(["undecided"] if left <= CROWD else []), *chosen}


def _behind(data: FrontData, sx: Scale, sy: Scale, area: Area) -> Markup:
    """Shade what lies behind the proven front."""
    if not len(data.stairs):
        return Markup("")
    points = [(sx(a), sy(b)) for a, b in data.behind.tolist()]
    return element("polygon", class_="behind", points=" ".join(f"{shown(a)},{shown(b)}" for a, b in points))


def _stairs(data: FrontData, sx: Scale, sy: Scale) -> Markup:
    if not len(data.stairs):
        return Markup("")
    points = " ".join(f"{shown(sx(a))},{shown(sy(b))}" for a, b in data.stairs.tolist())
    return element("polyline", class_="stairs", points=points)


def _axes(data: FrontData, sx: Scale, sy: Scale, area: Area, small: bool) -> Markup:
    most = 4 if small else 6
    across = sx.ticks(most if area.right - area.left > 240 else 4)
    up = sy.ticks(most)
    parts = [element("line", class_="grid", x1=sx(t), x2=sx(t), y1=area.top, y2=area.bottom) for t in across]
    parts += [element("line", class_="grid", x1=area.left, x2=area.right, y1=sy(t), y2=sy(t)) for t in up]
    corner = f"M{shown(area.left)} {shown(area.top)}V{shown(area.bottom)}H{shown(area.right)}"
    parts.append(element("path", class_="rim", d=corner))
    parts += [element("text", tick_text(t, across), x=sx(t), y=area.bottom + 17, text_anchor="middle") for t in across]
    parts += [element("text", tick_text(t, up), x=area.left - 8, y=sy(t) + 4, text_anchor="end") for t in up]
    middle = (area.left + area.right) / 2, (area.top + area.bottom) / 2
    names = [_axis_name(axis, small, arrow) for axis, arrow in zip(data.axes, ("→", "→"), strict=True)]
    parts.append(
        element("text", names[0], class_="t", x=middle[0], y=area.bottom + (34 if small else 40), text_anchor="middle")
    )
    turned = f"rotate(-90 13 {shown(middle[1])})"
    parts.append(element("text", names[1], class_="t", x=13, y=middle[1], text_anchor="middle", transform=turned))
    return element("g", *parts, class_="axis", aria_hidden="true")


def _axis_name(axis: Axis, small: bool, arrow: str) -> str:
    named = heading(shortened(axis.metric.name, 24), axis.metric.unit)
    if small:
        return named
    if axis.log:
        named = f"{named[:-1]}, log scale)" if axis.metric.unit else f"{named} (log scale)"
    larger = axis.metric.direction == "max"
    return f"{named}, higher is better {arrow}" if larger else f"{named}, ← lower is better"


def _better(axes: Sequence[Axis], area: Area) -> Markup:
    """Say in which corner everybody wants to be."""
    right, up = axes[0].metric.direction == "max", axes[1].metric.direction == "max"
    arrow = {(False, True): "↖ better", (True, True): "better ↗", (False, False): "↙ better", (True, False): "better ↘"}
    return element(
        "text",
        arrow[right, up],
        class_="better",
        x=area.right - 8 if right else area.left + 8,
        y=area.top + 16 if up else area.bottom - 9,
        text_anchor="end" if right else "start",
        aria_hidden="true",
    )


def _ends(box: Box, sx: Scale, sy: Scale) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of what is drawn of an interval."""
    left, right = sorted((sx(box.low[0]), sx(box.high[0])))
    top, bottom = sorted((sy(box.low[1]), sy(box.high[1])))
    return left, top, right, bottom


def _box(view: View, box: Box, sx: Scale, sy: Scale) -> Markup:
    if not box.known:
        return Markup("")
    left, top, right, bottom = _ends(box, sx, sy)
    return element(
        "rect",
        class_=f"box o {box.verdict}",
        data_k=view.table.place[box.arm],
        x=left,
        y=top,
        width=max(right - left, 1.0),
        height=max(bottom - top, 1.0),
        fill="url(#hatch)" if box.verdict == "undecided" else None,
    )


def _point(
    view: View,
    box: Box,
    at: tuple[float, float],
    links: Links,
    selected: Option | None,
    size: float,
    quiet: bool,
) -> Markup:
    option = view.options[view.table.place[box.arm]]
    chosen = selected is not None and selected.k == option.k
    if quiet:
        return element(
            "a",
            element("circle", class_="dot", cx=at[0], cy=at[1], r=2.2),
            class_=f"pt o {box.verdict}",
            href=links.option(option),
            data_k=option.k,
            data_swap="1",
            tabindex="-1",
            aria_label=f"{option.name}: {option.verdict}",
        )
    parts = [
        element("circle", class_="ring", cx=at[0], cy=at[1], r=12.0 * size),
        element("circle", class_="hit", cx=at[0], cy=at[1], r=HIT),
        mark(box.verdict, at[0], at[1], size),
    ]
    return element(
        "a",
        *parts,
        class_=f"pt o {box.verdict}{' sel' if chosen else ''}",
        href=links.option(option),
        data_k=option.k,
        data_swap="1",
        aria_label=sentences.described(view, option),
    )


def _names(
    view: View, data: FrontData, boxed: Sequence[bool], sx: Scale, sy: Scale, area: Area, letters: float
) -> list[Markup]:
    """Write names where there is room, those of the front first; a dot without a box has none."""
    boxes = [box for box, whole in zip(data.boxes, boxed, strict=True) if whole]
    if not boxes:
        return []
    centres = np.array([[sx(box.centre[0]), sy(box.centre[1])] for box in boxes])
    reach = np.array([[7.0 if box.verdict == "front" else 5.0] for box in boxes])
    markers = np.hstack([centres - reach, centres + reach])
    around = [
        _ends(box, sx, sy) if box.known else tuple(marker) for box, marker in zip(boxes, markers.tolist(), strict=True)
    ]
    stairs = np.array([[sx(a), sy(b)] for a, b in data.stairs.tolist()]).reshape(-1, 2)
    steps = np.hstack([np.minimum(stairs[:-1], stairs[1:]) - 1, np.maximum(stairs[:-1], stairs[1:]) + 1])
    frame = (area.left + 2, area.top, area.right, area.bottom - 2)
    corner = (area.left, area.top, area.left + 66, area.top + 22)
    sheet = Sheet(frame, centres, np.array(around), markers, steps, np.array([corner]), 1.0)
    order = [list(MARKS).index(box.verdict) for box in boxes]
    places = sorted(range(len(boxes)), key=lambda i: order[i])
    parts = []
    twins = _twins(view, boxes, centres)
    shared = {i for others in twins.values() for i in others}
    for i in [place for place in places if place not in shared][:MOST_NAMED]:
        box = boxes[i]
        most = LONGEST // 2 if twins.get(i) else LONGEST
        text = f" {MARKS['same']} ".join(shortened(boxes[j].arm, most) for j in (i, *twins.get(i, ())[:2]))
        text += " …" if len(twins.get(i, ())) > 2 else ""
        size = np.array([text_width(text, letters, box.verdict != "dominated") + 2, 1.15 * letters])
        found = sheet.place(i, size)
        if found is None:
            continue
        (dx, dy), lined = found
        left, top = centres[i] + [dx, dy]
        k = view.table.place[box.arm]
        if lined:
            nearest = np.clip(centres[i], [left, top], [left + size[0], top + size[1]])
            start = {
                "x1": float(nearest[0]),
                "y1": float(nearest[1]),
                "x2": float(centres[i][0]),
                "y2": float(centres[i][1]),
            }
            parts.append(element("line", class_="lead o", data_k=k, **start))
        # type may be wider than it was taken for: it grows away from its mark
        middle = left + size[0] / 2 - centres[i][0]
        anchor, x = ("start", left) if middle > size[0] / 4 else ("middle", left + size[0] / 2)
        if middle < -size[0] / 4:
            anchor, x = "end", left + size[0]
        look = {"class_": f"nm o {box.verdict}", "text_anchor": None if anchor == "start" else anchor}
        parts.append(element("text", text, data_k=k, x=float(x), y=float(top) + 0.85 * letters, **look))
    return [element("g", *parts, aria_hidden="true")]


def _twins(view: View, boxes: Sequence[Box], centres: FloatArray) -> dict[int, list[int]]:
    """Return which options are the same as another one and lie beside it: they share its name."""
    place = {box.arm: i for i, box in enumerate(boxes)}
    found: dict[int, list[int]] = {}
    for i, box in enumerate(boxes):
        rival = place.get(view.options[view.table.place[box.arm]].rival or "") if box.verdict == "same" else None
        if rival is None or boxes[rival].verdict == "same":
            continue
        if float(np.abs(centres[i] - centres[rival]).max()) < BESIDE:
            found.setdefault(rival, []).append(i)
    return found


def _list(view: View, width: float, links: Links, selected: Option | None) -> Markup:
    """Draw one metric: a row for each option, the best first."""
    data = front_data(view.table)
    boxes = data.boxes[:MANY]
    left = min(max((text_width(shortened(box.arm, LONGEST)) for box in boxes), default=60.0) + 16, 0.42 * width)
    row, top = 24.0, 6.0
    bottom = top + row * max(len(boxes), 1)
    axis = data.axes[0]
    scale = Scale(axis.low, axis.high, left, width - 14, axis.log)
    ticks = scale.ticks()
    parts = [element("line", class_="grid", x1=scale(t), x2=scale(t), y1=top, y2=bottom) for t in ticks]
    parts += [element("text", tick_text(t, ticks), x=scale(t), y=bottom + 16, text_anchor="middle") for t in ticks]
    name = _axis_name(axis, False, "→")
    parts.append(element("text", name, class_="t", x=(left + width - 14) / 2, y=bottom + 38, text_anchor="middle"))
    marks = []
    for place, box in enumerate(boxes):
        y = top + row * (place + 0.5)
        k = view.table.place[box.arm]
        text = shortened(box.arm, LONGEST)
        marks.append(
            element("text", text, class_=f"nm o {box.verdict}", data_k=k, x=left - 12, y=y + 4, text_anchor="end")
        )
        if box.known:
            ends = sorted((scale(box.low[0]), scale(box.high[0])))
            marks.append(
                element(
                    "rect",
                    class_=f"box o {box.verdict}",
                    data_k=k,
                    x=ends[0],
                    y=y - 6,
                    height=12,
                    width=max(ends[1] - ends[0], 1.0),
                    fill="url(#hatch)" if box.verdict == "undecided" else None,
                )
            )
        marks.append(_point(view, box, (scale(box.centre[0]), y), links, selected, 0.9, False))
    label = f"{axis.metric.name} of each option: {sentences.text_of(sentences.answer(view))}"
    frame = element("g", *parts, class_="axis", aria_hidden="true")
    return drawing(width, bottom + 48, frame, *marks, label=label, role="group", class_="plane")


# All metrics side by side


def side_by_side(view: View, choice: Choice, links: Links, selected: Option | None) -> Markup:
    """Draw every metric as an axis on which up is better, and every option as a line across them."""
    width = choice.width
    names = [metric.name for metric in view.metrics]
    axes = [front_data(view.table, *pair).axes[0] for pair in zip(names, [*names[1:], names[0]], strict=True)]
    shown_options = [option for option in view.order if all(_at(each) is not None for each in option.estimates)]
    shown_options = shown_options[:MOST_LINES]
    named = [option for option in shown_options if not view.many or option.verdict in ("front", "undecided")][:MANY]
    right = min(
        max((text_width(shortened(option.name, 22), 12.5, True) for option in named), default=40.0) + 26, 0.34 * width
    )
    left, top, bottom = 46.0, 48.0, 48.0 + min(max(0.52 * width, 300.0), 420.0)
    step = (width - left - right) / max(len(axes) - 1, 1)
    xs = [left + step * place for place in range(len(axes))]
    scales = [_upward(axis, top, bottom) for axis in axes]
    parts = [_parallel_axis(axis, scale, x, top, bottom, step) for axis, scale, x in zip(axes, scales, xs, strict=True)]
    lines = []
    for option in reversed(shown_options):
        chosen = selected is not None and selected.k == option.k
        lines.append(_across(view, option, scales, xs, links, chosen))
    labels = _column_of_names(view, named, scales[-1], xs[-1], top, bottom)
    text = sentences.text_of(sentences.answer(view))
    return drawing(
        width,
        bottom + 16,
        *parts,
        *lines,
        *labels,
        label=f"All metrics side by side: {text}",
        role="group",
        class_="plane",
    )


def _at(known: object) -> float | None:
    value = getattr(known, "value", None)
    high = getattr(known, "high", None)
    return value if value is not None else high


def _upward(axis: Axis, top: float, bottom: float) -> Scale:
    better_up = axis.metric.direction == "max"
    return Scale(axis.low, axis.high, bottom if better_up else top, top if better_up else bottom, axis.log)


def _parallel_axis(axis: Axis, scale: Scale, x: float, top: float, bottom: float, step: float) -> Markup:
    ticks = scale.ticks(5)
    most = max(int(step / 8), 8)
    parts = [element("line", class_="rim", x1=x, x2=x, y1=top - 6, y2=bottom)]
    parts += [
        element("text", tick_text(t, ticks), x=x - 10, y=scale(t) + 4, text_anchor="end", class_="halo") for t in ticks
    ]
    name = heading(shortened(axis.metric.name, most), axis.metric.unit)
    way = "higher" if axis.metric.direction == "max" else "lower"
    parts.append(
        element(
            "text",
            name,
            class_="t",
            x=x,
            y=16,
            text_anchor="middle" if x > 60 else "start",
            **({} if x > 60 else {"dx": "-40"}),
        )
    )
    parts.append(
        element(
            "text",
            f"{way} is better ↑",
            x=x,
            y=31,
            text_anchor="middle" if x > 60 else "start",
            **({} if x > 60 else {"dx": "-40"}),
        )
    )
    return element("g", *parts, class_="axis", aria_hidden="true")


def _across(
    view: View, option: Option, scales: Sequence[Scale], xs: Sequence[float], links: Links, chosen: bool
) -> Markup:
    values = [_at(known) for known in option.estimates]
    at = [(x, scale(0.0 if value is None else value)) for x, scale, value in zip(xs, scales, values, strict=True)]
    quiet = view.many and option.verdict not in ("front", "undecided") and not chosen
    parts = []
    for (x, _), scale, known in zip(at, scales, option.estimates, strict=True):
        if known.low is not None and known.high is not None and not quiet:
            ends = sorted((scale(known.low), scale(known.high)))
            parts.append(element("line", class_="ib-r", x1=x, x2=x, y1=ends[0], y2=max(ends[1], ends[0] + 1)))
    path = "M" + "L".join(f"{shown(x)} {shown(y)}" for x, y in at)
    parts.append(element("path", class_="across", d=path))
    parts.append(element("path", class_="across-hit", d=path))
    if not quiet:
        parts += [mark(option.verdict, x, y, 0.62) for x, y in at]
    return element(
        "a",
        *parts,
        class_=f"pt o {option.verdict}{' sel' if chosen else ''}",
        href=links.option(option),
        data_k=option.k,
        data_swap="1",
        tabindex="-1" if quiet else None,
        aria_label=sentences.described(view, option),
    )


def _column_of_names(
    view: View, named: Sequence[Option], scale: Scale, x: float, top: float, bottom: float
) -> list[Markup]:
    """Write names beside the last axis, none over another."""
    wanted = sorted(((scale(_at(option.estimates[-1]) or 0.0), option) for option in named), key=lambda each: each[0])
    room = min(15.0, (bottom - top + 12) / max(len(wanted), 1))
    ys: list[float] = []
    for y, _ in wanted:
        ys.append(max(y, ys[-1] + room) if ys else max(y, top - 4))
    over = ys[-1] - bottom if ys else 0.0
    if over > 0:  # move up those that would hang over the end
        for place in range(len(ys) - 1, -1, -1):
            most = bottom if place == len(ys) - 1 else ys[place + 1] - room
            ys[place] = min(ys[place], most)
    parts = []
    for (y, option), at in zip(wanted, ys, strict=True):
        parts.append(element("line", class_="lead o", data_k=option.k, x1=x + 7, y1=y, x2=x + 16, y2=at))
        text = shortened(option.name, 22)
        parts.append(element("text", text, class_=f"nm o {option.verdict}", data_k=option.k, x=x + 20, y=at + 4))
    return [element("g", *parts, aria_hidden="true")]
