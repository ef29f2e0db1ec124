"""How far it is, and where the runs went, as drawings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from ..shown import counted, shortened
from ..study.forecast import about
from . import sentences
from .svg import Scale, drawing, element, linear_ticks, mark, ornament, shown, text_width, tick_text
from .view import MANY, Option, View

#: The size of a drawing that takes half of the page; the width of one that takes a third.
WIDTH, HEIGHT, STRIP = 560.0, 230.0, 380.0
#: The forecast takes at most so many times the room of what was.
MOST_AHEAD = 2.0
#: How far beyond what was run the line of equal shares may be, to be drawn.
FURTHEST = 2.5
#: About so many dots are drawn for each metric.
MOST_DOTS = 2000


def _frame(scale: Scale, up: Scale, ticks: Sequence[float], last: str) -> Markup:
    """Draw the lines and numbers around a drawing: what goes up is few, what goes across are runs."""
    across = linear_ticks(scale.low, scale.high, 6)
    parts = []
    for tick in ticks:
        parts.append(element("line", class_="grid", x1=scale.start, x2=scale.end, y1=up(tick), y2=up(tick)))
        parts.append(element("text", tick_text(tick, ticks), x=scale.start - 8, y=up(tick) + 4, text_anchor="end"))
    parts.append(element("path", class_="rim", d=f"M{shown(scale.start)} {shown(up.start)}H{shown(scale.end)}"))
    for place, tick in enumerate(across):
        text = f"{tick:,.0f}{last if place == len(across) - 1 else ''}"
        end = scale(tick) > scale.end - 24
        parts.append(element("text", text, x=scale(tick), y=up.start + 17, text_anchor="end" if end else "middle"))
    return element("g", *parts, class_="axis", aria_hidden="true")


def undecided(view: View, width: float = WIDTH) -> Markup:
    """Draw how many options were undecided after so many runs, and what may come."""
    n, most = view.history.samples, max(max(count for _, count in view.steps), 1)
    ahead = view.remaining
    reach = _reach(view)
    area = Scale(0.0, max(n + reach, 1.0), 34.0, width - 14)
    up = Scale(0.0, float(most), HEIGHT - 34, 22.0)
    line = f"M{shown(area(0.0))} {shown(up(view.steps[0][1]))}"
    line += "".join(f"H{shown(area(at))}V{shown(up(left))}" for at, left in view.steps[1:]) + f"H{shown(area(n))}"
    ticks = linear_ticks(0.0, float(most), 4) if most > 4 else [float(k) for k in range(most + 1)]
    parts = [
        _frame(area, up, [tick for tick in ticks if tick == int(tick)], f" {view.counted}"),
        element("path", class_="area", d=f"{line}V{shown(up(0.0))}H{shown(area(0.0))}Z"),
        element("path", class_="step", d=line),
        *_turns(view, area, up),
    ]
    label = f"{sentences.state(view)} after {counted(n, 'run')}"
    if reach and ahead is not None:
        parts += _fan(view, area, up, n)
        label += f", {ahead.more} expected"
    return drawing(width, HEIGHT, *parts, label=f"Undecided options over runs: {label}")


def _reach(view: View) -> float:
    """Return how far ahead the drawing goes."""
    ahead, n = view.remaining, view.history.samples
    if ahead is None or not view.undecided or not math.isfinite(ahead.samples) or ahead.samples <= 0:
        return 0.0
    high = ahead.high if math.isfinite(ahead.high) else 2.0 * ahead.samples
    return float(min(high, MOST_AHEAD * n))


def _turns(view: View, area: Scale, up: Scale) -> list[Markup]:
    """Mark when verdicts were reached; of many, those that have room."""
    parts, last = [], -math.inf
    for samples, name, verdict in view.turns:
        x = area(samples)
        if x - last < 9:
            continue
        last = x
        left = [count for at, count in view.steps if at <= samples][-1]
        title = element("title", f"{name}: {verdict}, after {counted(samples, 'run')}")
        parts.append(element("g", title, mark(verdict, x, up(left), 0.7)))
    return parts


def _fan(view: View, area: Scale, up: Scale, n: int) -> list[Markup]:
    ahead = view.remaining
    assert ahead is not None
    x, y, room = area(n), up(view.undecided), area.high - n

    def end(samples: float) -> tuple[float, float]:
        """Return where a line to no undecided options ends: on the ground, or at the rim of the drawing."""
        if samples <= room:
            return area(n + samples), up(0.0)
        left = view.undecided * (1.0 - room / samples) if math.isfinite(samples) else float(view.undecided)
        return area.end, up(left)

    low, middle, high = end(ahead.low), end(ahead.samples), end(ahead.high)
    corner = [(area.end, up(0.0))] if high[1] < up(0.0) and low[1] == up(0.0) else []
    fan = "L".join(f"{shown(a)} {shown(b)}" for a, b in ((x, y), high, *corner, low))
    near = x > area.end - 120
    return [
        element("path", class_="fan", d=f"M{fan}Z"),
        element("path", class_="fan-l", d=f"M{shown(x)} {shown(y)}L{shown(middle[0])} {shown(middle[1])}"),
        element("line", class_="now", x1=x, x2=x, y1=14, y2=up(0.0)),
        element("text", f"now: {view.undecided:,} undecided", class_="lab i", x=x - 6, y=12, text_anchor="end")
        if x > 130
        else element("text", f"now: {view.undecided:,} undecided", class_="lab i", x=x + 6, y=12),
        element(
            "text",
            f"about {about(ahead.samples)} more",
            class_="lab",
            x=x - 8 if near else min((x + middle[0]) / 2 + 14, area.end - 96),
            y=max((y + middle[1]) / 2 - 9, 30.0),
            text_anchor="end" if near else None,
        ),
    ]


def regret(view: View, width: float = WIDTH) -> Markup:
    """Draw by how much the runs fell short of the front, summed, beside what running all equally often would give."""
    points = view.regret
    short = view.shortfalls
    n = view.history.samples
    mean = 0.0 if short is None else float(short.mean())
    most = max([total for _, total in points] + [mean * n, 1e-9])
    area = Scale(0.0, max(float(n), 1.0), 54.0, width - 14)
    up = Scale(0.0, most * 1.05, HEIGHT - 34, 22.0)
    line = "M" + "L".join(f"{shown(area(at))} {shown(up(total))}" for at, total in points) if points else "M0 0"
    total = points[-1][1] if points else 0.0
    even = mean * n
    beside = {"x": area(0.62 * n) - 8, "y": up(0.62 * even) - 7}
    parts = [
        _frame(area, up, linear_ticks(0.0, up.high, 4), f" {view.counted}"),
        element("path", class_="area", d=f"{line}V{shown(up(0.0))}H{shown(area(0.0))}Z"),
        element("line", class_="uni", x1=area(0.0), y1=up(0.0), x2=area(n), y2=up(even)),
        element("path", class_="step", d=line),
        element("text", "all equally often", class_="lab halo", text_anchor="end", **beside),
    ]
    label = f"Regret over runs: {total:,.3g} by now; {even:,.3g} if all were run equally often"
    return drawing(width, HEIGHT, *parts, label=label)


def shares(view: View, width: float = WIDTH) -> Markup:
    """Draw how often each option was run, beside what running all equally often would take."""
    rows = sorted(view.options, key=lambda option: (-option.n, option.k))
    rest = rows[MANY:]
    rows = rows[:MANY]
    ahead, K = view.remaining, len(view.options)
    even = None
    if ahead is not None and ahead.uniform is not None and math.isfinite(ahead.uniform):
        even = (sum(option.n for option in view.options) + ahead.uniform) / K
    left = min(max((text_width(shortened(option.name, 26), 12) for option in rows), default=40.0) + 14, 0.4 * width)
    most = float(max([option.n for option in rows] + [1]))
    beyond = even is not None and even > FURTHEST * most  # it would leave no room for what was
    most = most if even is None or beyond else max(most, even)
    top, row = 24.0, 19.0
    bottom = top + row * len(rows)
    scale = Scale(0.0, float(most), left, width - 52)
    parts = []
    for place, option in enumerate(rows):
        y = top + row * place
        parts.append(
            element("text", shortened(option.name, 26), class_="lab i", x=left - 8, y=y + 12, text_anchor="end")
        )
        fill = "url(#hatch)" if option.verdict == "undecided" else None
        bar = max(scale(option.n) - left, 1.5)
        parts.append(element("rect", class_=f"rb {option.verdict}", x=left, y=y + 2, width=bar, height=11, fill=fill))
        parts.append(element("text", f"{option.n:,}", class_="lab halo", x=left + bar + 6, y=y + 12))
    if rest:
        others = f"… and {len(rest):,} more, {sum(option.n for option in rest) / len(rest):,.1f} runs each on average"
        parts.append(element("text", others, class_="lab", x=left, y=bottom + 13))
        bottom += row
    if even is not None:
        x = width - 8 if beyond else scale(even)
        text = f"all equally often: about {about(even)} each{' →' if beyond else ''}"
        if not beyond:
            parts.append(element("line", class_="uni", x1=x, x2=x, y1=top - 5, y2=bottom))
        side = {"x": x, "text_anchor": "end"} if x > width / 2 else {"x": x, "text_anchor": "start"}
        parts.append(element("text", text, class_="lab i", y=top - 10, **side))
    said = ", ".join(f"{option.name} {option.n:,}" for option in rows[:12])
    return drawing(width, bottom + 8, *parts, label=f"Runs of each option: {said}")


def strip(view: View, column: int, width: float = STRIP) -> Markup:
    """Draw every run of each option as a dot, for one column; of many, some of them."""
    metric = view.details.columns[column]
    rows = list(view.order[:MANY]) + list(view.withdrawn[: max(0, MANY - len(view.order))])
    each = max(MOST_DOTS // max(len(rows), 1), 4)
    dots = {option.k: [row[column] for row in view.history.dots_of(option.name, each)] for option in rows}
    values = [value for of_one in dots.values() for value in of_one if value is not None]
    left = min(max((text_width(shortened(option.name, 22), 12) for option in rows), default=40.0) + 14, 0.4 * width)
    top, row = 4.0, 17.0
    bottom = top + row * len(rows)
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    log = low > 0 and (metric.relative or high > 20 * low) and high > 4 * low
    if high <= low:
        low, high, log = low - 1.0, high + 1.0, False
    scale = Scale(low, high, left + 5, width - 10, log)
    parts = []
    ticks = scale.ticks(5)
    for tick in ticks:
        parts.append(element("line", class_="grid", x1=scale(tick), x2=scale(tick), y1=top, y2=bottom))
        parts.append(element("text", tick_text(tick, ticks), x=scale(tick), y=bottom + 15, text_anchor="middle"))
    frame = element("g", *parts, class_="axis", aria_hidden="true")
    marks = []
    for place, option in enumerate(rows):
        y = top + row * (place + 0.5)
        marks.append(
            element("text", shortened(option.name, 22), class_="lab i", x=left - 6, y=y + 4, text_anchor="end")
        )
        path = "".join(f"M{shown(scale(value))} {shown(y)}h0" for value in dots[option.k] if value is not None)
        if path:
            marks.append(element("path", class_=f"dots {option.verdict}", d=path))
        mean = view.measured(option.name).means[column] if option.verdict != "withdrawn" else None
        if mean is not None:
            x = scale(mean)
            marks.append(element("line", class_=f"mean {option.verdict}", x1=x, x2=x, y1=y - 6, y2=y + 6))
    label = f"Runs of each option: {metric.name}, {len(values):,} dots between {low:.4g} and {high:.4g}"
    return drawing(width, bottom + 22, frame, *marks, label=label)


def spark(steps: Sequence[tuple[int, int]], samples: int, done: bool) -> Markup:
    """Draw how many options were undecided, small, for the list."""
    if not steps or samples <= 0:
        return Markup("")
    most = max(max(left for _, left in steps), 1)
    area, up = Scale(0.0, float(samples), 0.0, 140.0), Scale(0.0, float(most), 29.0, 2.0)
    line = f"M0 {shown(up(steps[0][1]))}" + "".join(f"H{shown(area(at))}V{shown(up(left))}" for at, left in steps[1:])
    line += "H140"
    return ornament(
        142,
        32,
        element("path", class_="area", d=f"{line}V29H0Z"),
        element("path", class_="step", d=line),
        class_=f"spark{' done' if done else ''}",
    )


def lease_bar(left: float, lease: float) -> Markup:
    """Draw how much of a lease is left."""
    share = min(max(left / lease, 0.0), 1.0) if lease > 0 else 0.0
    return ornament(
        72,
        8,
        element("rect", class_="lease", width=72, height=8, rx=2),
        element("rect", class_=f"lease-left{' short' if share < 0.2 else ''}", width=72 * share, height=8, rx=2),
    )


def bar(low: float | None, value: float | None, high: float | None, scale: Scale, limit: float | None = None) -> Markup:
    """Draw an interval on the scale of its column."""
    parts = [element("line", class_="ib", x1=0, x2=108, y1=8, y2=8)]
    if low is not None and high is not None:
        start, end = sorted((scale(low), scale(high)))
        parts.append(element("rect", class_="ib-r", x=start, y=5, width=max(end - start, 1.5), height=6))
    if value is not None:
        parts.append(element("rect", class_="ib-t", x=scale(value) - 1, y=2, width=2, height=12))
    if limit is not None:
        parts.append(element("line", class_="lim", x1=scale(limit), x2=scale(limit), y1=0, y2=16))
    return ornament(108, 16, *parts, preserveAspectRatio="none")


def bar_scale(values: Sequence[float], log: bool, ends: Sequence[float] = ()) -> Scale | None:
    """Return one scale for the bars of a column, from its estimates; ends: what must be there too."""
    known = [value for value in (*values, *ends) if math.isfinite(value) and (value > 0 or not log)]
    if not known:
        return None
    low, high = min(known), max(known)
    if log:
        room = (high / low) ** 0.12 if high > low else 1.2
        return Scale(low / room, high * room, 2.0, 106.0, True)
    room = 0.12 * (high - low) or 0.1 * abs(high) or 1.0
    return Scale(low - room, high + room, 2.0, 106.0)


def part_bar(tally: dict[str, int], width: float = 420.0) -> Markup:
    """Draw verdicts of many options as one bar."""
    total = max(sum(tally.values()), 1)
    parts, x = [], 0.0
    for verdict, n in tally.items():
        if n:
            wide = max(width * n / total - 2, 2.0)
            fill = "url(#hatch)" if verdict == "undecided" else None
            parts.append(element("rect", class_=f"rb {verdict}", x=x, y=1, width=wide, height=18, rx=3, fill=fill))
            x += wide + 2
    said = ", ".join(f"{n:,} {verdict}" for verdict, n in tally.items() if n)
    return drawing(max(width, x), 20, *parts, label=said, class_="parts", preserveAspectRatio="none")


def selected_option(view: View) -> Option | None:
    """Return the option whose evidence is shown unless told: the undecided one that was run most."""
    for verdict in ("undecided", "dominated", "same", "front"):
        found = [option for option in view.options if option.verdict == verdict]
        if found:
            return max(found, key=lambda option: (option.n, -option.k))
    return None
