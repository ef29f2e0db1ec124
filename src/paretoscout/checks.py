"""What every value from outside goes through: one sentence says which one, of what, must be what, and what it was."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidInput

Floats = NDArray[np.float64]

LONGEST_NAME = 500
#: A text with names and numbers in it, such as a limit or a trade-off, may have so many letters.
LONGEST_TEXT = 1_200
#: A number that is written in a text: no underscores, no digits of other scripts. Reading it takes linear time.
NUMERAL = re.compile(r"[-+]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?")
#: Numbers in texts are at most so large: sums and squares of them must have room.
LARGEST = 1e100
#: What people write for a direction, and what it is called here.
DIRECTIONS = {
    **dict.fromkeys(("min", "minimize", "minimise"), "min"),
    **dict.fromkeys(("max", "maximize", "maximise"), "max"),
}
#: Words of a name that say that smaller is better, unless a word of OTHERWISE is there, too.
SMALLER = """
time times latency latencies duration durations elapsed runtime walltime delay wait seconds second sec secs minutes
hours ms millis milliseconds us µs microseconds ns nanoseconds cost costs price prices usd eur dollars cents fee
fees spend size sizes bytes kb mb gb kib mib gib memory mem rss ram error errors err loss losses mse rmse mae mape
perplexity ppl wer cer failures failed faults crashes misses defects bugs violations regret energy joules watts co2
emissions overhead waste
"""
OTHERWISE = """
neg negative minus saved saving savings saves free reduction reduced avoided left remaining uptime gain improvement
speedup score efficiency batch sample step
"""
#: A text from outside (JSON, YAML) may be nested so deeply, and hold so many values.
DEEPEST, MOST_VALUES = 20, 1_000_000
#: Limits of files from outside (docs/readers.md): bytes, bytes of YAML, values in JSON, columns, rows or runs, options.
MOST_BYTES, MOST_YAML_BYTES, MOST_JSON_VALUES = 500_000_000, 2_000_000, 20_000_000
MOST_COLUMNS, MOST_RUNS, MOST_OPTIONS = 10_000, 1_000_000, 100_000
#: A zip file may unpack to this many times its size. A folder may hold this many files and folders.
MOST_TIMES, MOST_FILES = 1_000, 100_000

_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = 200


def got(value: Any) -> str:
    """Return a value for a message: short, whatever it is.

    >>> got("x"), got(10**5000)
    ("'x'", 'a number of thousands of digits')
    """
    try:
        shown = _brief.repr(value)
        return shown if len(shown) <= 200 else f"{shown[:98]}...{shown[-98:]}"
    except ValueError:  # Python does not write out whole numbers of more than 4300 digits
        return "a number of thousands of digits"


def numeral(text: str) -> float | None:
    """Return the number that a text is; None if it is none, or too large.

    >>> numeral("1.5e3"), numeral("1_000"), numeral("nan")
    (1500.0, None, None)
    """
    if len(text) > LONGEST_TEXT or NUMERAL.fullmatch(text) is None:
        return None
    number = float(text)
    return number if abs(number) <= LARGEST else None


def name(what: str, value: Any) -> str:
    """Return a name, if people can read it: printable, in one line, not too long.

    >>> name("name of an arm", "gzip -1")
    'gzip -1'
    """
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{what} must be a non-empty text, got {got(value)}", field=what)
    if len(value) > LONGEST_NAME:
        raise InvalidInput(
            f"{what} must have at most {LONGEST_NAME} letters, got {len(value):,}: {got(value)}", field=what
        )
    if not value.isprintable():
        letter = next(letter for letter in value if not letter.isprintable())
        raise InvalidInput(f"{what} must be one line of printable letters, got {letter!r} in {got(value)}", field=what)
    if value != value.strip():
        raise InvalidInput(f"{what} must have no blanks at its ends, got {got(value)}", field=what)
    return value


def direction(metric: str, value: Any) -> str:
    """Return which way is better, "min" or "max"; longer spellings will do.

    >>> direction("latency", "minimize")
    'min'
    """
    if not isinstance(value, str) or value not in DIRECTIONS:
        raise InvalidInput(f"direction of metric {metric!r} must be min or max, got {got(value)}")
    return DIRECTIONS[value]


def usual_direction(metric: str) -> str | None:
    """Return "min" if the name of a metric means time, cost, size, error, loss or the like; None if it does not.

    What comes after "per" does not count: tokens per second are many.

    >>> [usual_direction(name) for name in ("latency_ms", "p95Latency", "tokens_per_second", "neg_mse", "quality")]
    ['min', 'min', None, None, None]
    """
    spaced = re.sub(r"(?<=[a-zµ0-9])(?=[A-Z])", " ", metric)
    words = [word.lower() for word in re.split(r"[\W_]+", spaced.partition("/")[0]) if word]
    words = words[: words.index("per")] if "per" in words else words
    means = not set(words).isdisjoint(SMALLER.split()) and set(words).isdisjoint(OTHERWISE.split())
    return "min" if means else None


def sign(direction: str) -> float:
    """Return 1.0 where larger is better ("max"), -1.0 where smaller is ("min")."""
    return 1.0 if direction == "max" else -1.0


def not_nested(what: str, value: Any) -> Any:
    """Return what a text from outside held, if it is neither too deep nor too large to be looked at.

    Aliases of YAML, which hold one another, make a short text endless.
    """
    level, seen = [value], 0
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for outer in level:
            inner.extend(outer.values() if isinstance(outer, Mapping) else outer if isinstance(outer, list) else ())
            if seen + len(inner) > MOST_VALUES:
                raise InvalidInput(f"{what} must hold at most {MOST_VALUES:,} values, got more", field=what)
        if not inner:
            return value
        level, seen = inner, seen + len(inner)
    raise InvalidInput(f"{what} must be nested at most {DEEPEST} deep, got more", field=what)


def at_most(what: str, most: int, n: int, do: str) -> None:
    """Refuse a count above its limit. do: what the caller can do about it.

    >>> at_most("runs of a.json", 10, 10, "split the file")
    """
    if n > most:
        raise InvalidInput(f"{what} must be at most {most:,}, got {n:,}: {do}")


def number(what: str, value: Any, *, above: float = -np.inf, least: float = -np.inf, below: float = np.inf) -> float:
    """Return `value` as a float, if it is a finite number in the range.

    >>> number("delta", 0.1, above=0, below=1)
    0.1
    """
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    try:
        converted = float(value) if real else np.nan
    except OverflowError:  # a whole number that is larger than any float
        converted = np.inf
    if not (np.isfinite(converted) and above < converted < below and converted >= least):
        limits = {"above": above, "at least": least, "below": below}
        wanted = " and ".join(f"{word} {limit:g}" for word, limit in limits.items() if np.isfinite(limit))
        raise InvalidInput(
            f"{what} must be a finite number{' ' if wanted else ''}{wanted}, got {got(value)}", field=what
        )
    return converted


def whole(what: str, value: Any, *, least: int, most: int = 2**62) -> int:
    """Return `value` as an int, if it is a whole number in the range."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        limit = "" if most == 2**62 else f" and at most {most}"
        raise InvalidInput(f"{what} must be a whole number, at least {least}{limit}, got {got(value)}", field=what)
    return int(value)


def listed(choices: Collection[str], *, or_none: bool = False) -> str:
    """Return what can be chosen, for a message.

    >>> listed(("a", "b")), listed(("a", "b"), or_none=True)
    ("'a' or 'b'", "'a', 'b' or None")
    """
    if len(choices) > 3:
        return f"one of {', '.join(choices)}{' or None' if or_none else ''}"
    *first, last = [*(f"'{choice}'" for choice in choices), *(["None"] if or_none else [])]
    return f"{', '.join(first)} or {last}" if first else last


def one_of(what: str, value: Any, choices: Collection[str], *, or_none: bool = False) -> Any:
    """Return `value`, if it is one of the texts that can be chosen, or None where that is allowed.

    >>> one_of("radius of APE", "mixture", ("mixture", "kaufmann-koolen"))
    'mixture'
    """
    if (isinstance(value, str) and value in choices) or (or_none and value is None):
        return value
    raise InvalidInput(f"{what} must be {listed(choices, or_none=or_none)}, got {got(value)}", field=what)


def goal(value: Any) -> str | int:
    """Return what is asked for: "front", "cover", "practical" or a number of arms.

    "front": every Pareto-optimal arm, and no arm that is worse than eps. "cover": arms no worse than eps, such that
    every Pareto-optimal arm is at most eps better than one of them. A number k: any k arms no worse than eps, or the
    whole front where it is smaller. "practical": every arm but those that are pointless beside another one.
    """
    if isinstance(value, str) and value in ("front", "cover", "practical"):
        return value
    if isinstance(value, str):
        raise InvalidInput(f"goal must be 'front', 'cover', 'practical' or a number of arms, got {got(value)}")
    return whole("goal, where it is a number of arms,", value, least=1)


def floats(what: str, value: Any, *, own: bool = True) -> Floats:
    """Return real numbers as a float64 array: one of their own, or (`own=False`) perhaps the very array given."""
    problem = f"{what} must be real numbers, got "
    if np.ma.is_masked(value):
        raise InvalidInput(problem + "a masked array")
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biufO":
            # a read-only array is copied in any case: kernels would be compiled again for it
            return array.astype(np.float64, order="C", copy=own or not array.flags.writeable)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{problem}{error}") from error
    raise InvalidInput(problem + (got(value) if array.ndim == 0 else str(array.dtype)))


def table(what: str, value: Any, layout: str = "(K, L)", *, own: bool = True) -> Floats:
    """Return a finite float64 array with two axes, both at least 1 long."""
    array = floats(what, value, own=own)
    if array.ndim == 1:
        raise InvalidInput(
            f"{what} must have shape {layout}, one row for each arm, got shape ({array.size},); "
            f"for one metric pass shape ({array.size}, 1)"
        )
    if array.ndim != 2 or 0 in array.shape:
        raise InvalidInput(f"{what} must have shape {layout}, both at least 1, got shape {array.shape}", field=what)
    return finite(what, array)


def per_metric(what: str, value: Any, n_metrics: int, *, least: float = -np.inf) -> Floats:
    """Return one finite number for each metric, from one number or one for each."""
    numbers = floats(what, value)
    if numbers.shape not in ((), (n_metrics,)):
        raise InvalidInput(
            f"{what} must be one number or {n_metrics} of them (one per metric), got {got(value)}", field=what
        )
    if (finite(what, numbers) < least).any():
        raise InvalidInput(f"{what} must be at least {least:g}, got {got(value)}", field=what)
    return np.full(n_metrics, numbers)


def per_arm_and_metric(what: str, value: Any, n_arms: int, n_metrics: int, *, least: float = -np.inf) -> Floats:
    """Return one finite number for each arm and metric (K, L), from one number, one for each metric, or all."""
    numbers = floats(what, value)
    if numbers.shape not in ((), (n_metrics,), (n_arms, n_metrics)):
        raise InvalidInput(
            f"{what} must be one number, {n_metrics} of them (one per metric) or {n_arms} x {n_metrics} "
            f"(one per arm and metric), got {got(value)}"
        )
    if (finite(what, numbers) < least).any():
        raise InvalidInput(f"{what} must be at least {least:g}, got {got(value)}", field=what)
    return np.full((n_arms, n_metrics), numbers)


def finite(what: str, array: Floats) -> Floats:
    """Return the array, if all of it is finite."""
    good = np.isfinite(array)  # not by a product: its threads wait for one another, 10 ms on a busy machine
    if not good.all():
        where = [int(index) for index in np.argwhere(~good)[0]]
        place = {0: "", 1: " at {}", 2: " in row {}, column {}"}[array.ndim].format(*where)
        raise InvalidInput(f"{what} must be finite, got {array[tuple(where)]}{place}", field=what)
    return array
