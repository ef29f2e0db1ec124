"""Numbers and names as the page shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from ..shown import line
from ..statement import Metric

#: Letters of ours that are not printable, strictly speaking: spaces that keep a number and its unit together.
OURS = "\u202f\u00a0\n"
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
#: Between a number and its unit.
THIN = "\u202f"
#: An estimate has at most so many digits behind the point.
MOST_DIGITS = 6


def harmless(text: str) -> str:
    r"""Return a text that a page shows as it is: what cannot be printed is spelled out, as in `shown.line`.

    >>> print(harmless("a\x00b\u202ec"), harmless("3\u202fms") == "3\u202fms")
    a\x00b\u202ec True
    """
    if text.isprintable():
        return text
    return "".join(letter if letter in OURS else line(letter) for letter in text)


def number(n: int, most: int = 12) -> str:
    """Return a number as a word, if it is small.

    >>> number(5), number(1200)
    ('five', '1,200')
    """
    return NUMBERS[n] if n <= min(most, 12) else f"{n:,}"


def capital(text: str) -> str:
    """Return a text that begins a sentence."""
    return text[:1].upper() + text[1:]


def digits(half: float) -> int:
    """Return how many digits behind the point an interval supports: two of its half-width.

    >>> digits(3.1), digits(0.042), digits(120.0)
    (1, 3, 0)
    """
    if not half > 0 or not math.isfinite(half):
        return 3
    return min(MOST_DIGITS, max(0, 1 - math.floor(math.log10(half))))


def fixed(value: float, places: int) -> str:
    """Return a number with a true minus.

    >>> fixed(-1234.5, 1)
    '−1,234.5'
    """
    text = f"{value:,.{places}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) != 0.0 else text.replace("-", "")


def general(value: float) -> str:
    """Return a number of which nobody knows how exact it is, to four digits.

    >>> general(1234567.0), general(0.00012344), general(12.0)
    ('1,234,567', '0.0001234', '12')
    """
    if value == 0.0 or not math.isfinite(value):
        return "0" if value == 0.0 else "–"
    size = math.floor(math.log10(abs(value)))
    if size > 14 or size < -6:
        return f"{value:.3g}".replace("-", "−")
    text = f"{value:,.{max(0, 3 - size)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−")


def unit(metric: Metric) -> str:
    """Return what stands behind a number of a metric."""
    return metric.unit if metric.unit == "%" or not metric.unit else f"{THIN}{metric.unit}"


def of_difference(metric: Metric) -> str:
    """Return what stands behind a difference of two numbers of a metric: of percentages, percentage points."""
    return f"{THIN}pp" if metric.unit == "%" else unit(metric)


def tolerance(metric: Metric) -> str:
    r"""Return the difference that does not matter.

    >>> tolerance(Metric("cost", "min", eps=0.5, unit="ct")), tolerance(Metric("time", "min", eps="2%"))
    ('0.5\u202fct', '2%')
    """
    if metric.relative:
        return f"{100 * math.expm1(metric.tolerance):.3g}%"
    return f"{metric.tolerance:.4g}{of_difference(metric)}"


def lead(value: float, metric: Metric, places: int | None = None) -> str:
    """Return how large a difference is, in words; a share where ratios are compared, where twice as much is a factor.

    >>> lead(0.25, Metric("time", "min", eps="2%")), lead(2.4, Metric("time", "min", eps="2%"))
    ('25%', 'a factor of 3.4')
    """
    size = abs(value)
    if not metric.relative:
        return f"{general(size) if places is None else fixed(size, places)}{of_difference(metric)}"
    if value < 0:  # half as much is the same as twice as much, seen from the other side
        size = 1.0 / (1.0 - size) - 1.0 if size < 1.0 else math.inf
    if size >= 1.0:
        return f"a factor of {1.0 + size:.1f}" if math.isfinite(size) else "a lot"
    return f"{100 * size:.{1 if size < 0.1 else 0}f}%"


def signed(value: float, metric: Metric, places: int) -> str:
    """Return a difference with its sign, for the end of an interval."""
    if metric.relative:
        percent = 100 * value
        return ("+" if percent > 0 else "") + fixed(percent, 1 if abs(percent) < 10 else 0) + "%"
    return ("+" if value > 0 else "") + fixed(value, places) + of_difference(metric)


def worse(metric: Metric) -> str:
    """Return what a worse option is in a metric."""
    return "lower" if metric.direction == "max" else "higher"


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names as people list them.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], most=2)
    ('a, b and c', 'a, b and 1 more')
    """
    words = [*names[:most], *([f"{len(names) - most:,} more"] if len(names) > most else [])]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def span(seconds: float) -> str:
    """Return about how long something is.

    >>> span(38), span(1500), span(9000), span(400000)
    ('38 s', '25 min', '2.5 h', '5 days')
    """
    if seconds < 90:
        return f"{max(seconds, 0):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 172800:
        hours = seconds / 3600
        return f"{hours:.1f} h" if hours < 10 and round(hours, 1) % 1 else f"{hours:.0f} h"
    return f"{seconds / 86400:.0f} days"


def ago(then: float | None, now: float) -> str:
    """Return how long ago something was; of what is to come, that it is now."""
    return "" if then is None else f"{span(now - then)} ago"


def day(at: float) -> str:
    """Return a day: "14 Nov 2026"."""
    when = _time(at)
    return f"{when.day} {when:%b} {when.year}" if when else ""


def clock(at: float) -> str:
    """Return a time of day, in UTC."""
    when = _time(at)
    return f"{when:%H:%M:%S}" if when else ""


def iso(at: float) -> str:
    """Return a moment for programs to read."""
    when = _time(at)
    return when.isoformat(timespec="seconds").replace("+00:00", "Z") if when else ""


def _time(at: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(at, UTC)
    except (OverflowError, OSError, ValueError):
        return None
