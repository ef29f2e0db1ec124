"""Drawings as text: elements with escaped texts and attributes, scales, ticks, and how wide a text is about."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from .words import harmless

#: Widths of letters, in parts of the size of the type; others have the last one.
NARROW, WIDE, USUAL = "iljtf.,:;'|!()[]{} -rI", "mwMWQ@%OGD", 0.56
#: A drawing has at most about so many ticks on an axis.
TICKS = 6


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """Return an element. Texts are escaped; `class_` is class, `text_anchor` is text-anchor; None is left out.

    >>> print(element("text", "a < b", x=1.5, class_="lab", role=None))
    <text x="1.5" class="lab">a &lt; b</text>
    """
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(harmless(shown(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(str(escape(_text(child))) for child in children)
    return Markup(f"<{tag}{said}>{inner}</{tag}>" if inner or tag not in EMPTY else f"<{tag}{said}/>")


def _text(child: Any) -> Any:
    return child if isinstance(child, Markup) else harmless(str(child))


#: Elements that need no end where nothing is in them.
EMPTY = frozenset(("circle", "line", "path", "rect", "polyline", "polygon"))


def joined(parts: Iterable[Any]) -> Markup:
    """Return several elements, one after the other."""
    return Markup("").join(parts)


def shown(value: Any) -> str:
    """Return an attribute as text; a number to a tenth of a pixel.

    >>> shown(12.04), shown(3), shown("x")
    ('12', '3', 'x')
    """
    if not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return "0"
    return f"{round(value, 1):g}" if abs(value) < 1e5 else f"{value:.0f}"


def drawing(width: float, height: float, *children: Any, label: str, **more: Any) -> Markup:
    """Return a drawing that scales with the page, with a sentence that says what it shows."""
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {shown(float(width))} {shown(float(height))}",
        width=float(width),
        height=float(height),
        aria_label=label,
        **{"role": "img", **more},
    )


def ornament(width: float, height: float, *children: Any, **more: Any) -> Markup:
    """Return a drawing that says nothing that is not beside it as text."""
    box = f"0 0 {shown(float(width))} {shown(float(height))}"
    return element("svg", *children, viewBox=box, width=width, height=height, aria_hidden="true", **more)


def text_width(text: str, size: float = 12.5, bold: bool = False) -> float:
    """Return about how wide a text is, in pixels.

    >>> 60 < text_width("model-b flash") < 95
    True
    """
    units = sum(
        0.31 if c in NARROW else 0.86 if c in WIDE else 0.66 if c.isupper() or ord(c) > 0x2E80 else USUAL for c in text
    )
    return 1.06 * units * size * (1.08 if bold else 1.0)


@dataclass(frozen=True)
class Scale:
    """From values to pixels; beyond its ends values stay at the ends."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return where a value is."""
        return min(max(self.free(value), min(self.start, self.end)), max(self.start, self.end))

    def free(self, value: float) -> float:
        """Return where a value is, also beyond the ends."""
        if self.log:
            if value <= 0:
                return self.start
            share = math.log(value / self.low) / math.log(self.high / self.low) if self.high > self.low else 0.5
        else:
            if not math.isfinite(value):
                return self.end if value > 0 else self.start
            share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self.start + min(max(share, -1e3), 1e3) * (self.end - self.start)

    def ticks(self, most: int = TICKS) -> list[float]:
        """Return round values between its ends."""
        if self.log:
            found = log_ticks(self.low, self.high, most)
            if len(found) > 1:
                return found
        return linear_ticks(self.low, self.high, most)


def linear_ticks(low: float, high: float, most: int = TICKS) -> list[float]:
    """Return round values, at equal distances.

    >>> linear_ticks(57.0, 96.0)
    [60.0, 70.0, 80.0, 90.0]
    """
    if not high > low:
        return [low]
    raw = (high - low) / max(most - 1, 1)
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * size for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * size >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) + 0.0 for k in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float, most: int = TICKS) -> list[float]:
    """Return round values on a log scale.

    >>> log_ticks(0.3, 7.0)
    [0.5, 1.0, 2.0, 5.0]
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        found = [step * 10.0**decade for decade in decades for step in steps]
        found = [float(f"{tick:.6g}") for tick in found if low <= tick <= high]
        if len(found) <= most:
            return found
    return found[:: -(-len(found) // most)]


def tick_text(value: float, ticks: Sequence[float]) -> str:
    """Return a tick, with as many digits as its neighbours need."""
    if value and (abs(value) >= 1e6 or abs(value) < 1e-4):
        return f"{value:.3g}".replace("-", "−")
    places = max((_places(tick) for tick in ticks if abs(tick) >= abs(value) or tick == value), default=0)
    return f"{value:,.{min(places, _places(value)) if value else 0}f}".replace("-", "−")


def _places(value: float) -> int:
    text = f"{value:.6g}"
    return len(text.split(".")[1]) if "." in text and "e" not in text else 0


def star(x: float, y: float, size: float = 1.0) -> str:
    """Return the path of the mark of the front."""
    points = []
    for k in range(10):
        radius = (8.2 if k % 2 == 0 else 3.5) * size
        angle = math.pi * (k / 5.0 - 0.5)
        points.append(f"{shown(x + radius * math.cos(angle))} {shown(y + radius * math.sin(angle))}")
    return f"M{'L'.join(points)}Z"


def mark(verdict: str, x: float, y: float, size: float = 1.0) -> Markup:
    """Return the mark of a verdict."""
    if verdict == "front":
        return element("path", class_="m front", d=star(x, y, size))
    if verdict == "undecided":
        return element("circle", class_="m undecided", cx=x, cy=y, r=4.6 * size)
    arm = 4.2 * size
    left, right, up, down = shown(x - arm), shown(x + arm), shown(y - arm), shown(y + arm)
    if verdict == "same":
        lines = "".join(f"M{left} {shown(y + step * arm)}H{right}" for step in (-0.8, 0.0, 0.8))
        return element("path", class_="m same", d=lines)
    if verdict == "withdrawn":
        return element("path", class_="m withdrawn", d=f"M{left} {shown(y)}H{right}")
    return element("path", class_="m dominated", d=f"M{left} {up}L{right} {down}M{right} {up}L{left} {down}")
