"""The table of options: all that the charts show, as text, with small bars."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from ..plots.data import LOG_LINEAR, LOG_RELATIVE, spans
from ..shown import MARKS
from ..study.details import Limit
from . import sentences, words
from .choice import Choice
from .frame import Links
from .progress import bar, bar_scale
from .svg import Scale
from .view import MANY, VERDICTS, WITHDRAWN, Estimate, Option, View


@dataclass(frozen=True)
class Heading:
    """What stands above a column."""

    text: str
    below: str
    by: str  # what the column is sorted by; empty: it cannot be
    link: str
    sorted: str  # "ascending", "descending", or empty
    look: str = ""


@dataclass(frozen=True)
class Cell:
    """A value with its interval."""

    metric: str  # with its unit
    text: str
    interval: str
    picture: Markup
    number: float | None  # for sorting


@dataclass(frozen=True)
class Row:
    """An option."""

    option: Option
    mark: str
    verdict: str
    about: str  # whom the verdict is about
    link: str
    cells: tuple[Cell, ...]
    limits: tuple[Cell, ...]
    why: str
    more: tuple[str, ...]  # what somebody shows beside
    chosen: bool
    rank: int  # by verdict


@dataclass(frozen=True)
class Table:
    """The options, as they are shown."""

    headings: tuple[Heading, ...]
    rows: tuple[Row, ...]
    rest: str  # what is said of those that are not shown
    all_link: str


def table(view: View, choice: Choice, links: Links, selected: Option | None) -> Table:
    """Return the options in the order that was chosen; of many the first ones."""
    order = _sorted(view, choice)
    shown = order if choice.all or len(order) <= MANY else order[:MANY]
    if selected is not None and selected not in shown:
        shown = (*shown, selected)
    scales = [_scale(view, column) for column in range(len(view.metrics))]
    close = len(shown) <= 2 * MANY
    limits = {option.k: view.measured(option.name).limits for option in shown} if view.guards else {}
    guard_scales = _guard_scales(limits)
    rows = tuple(_row(view, option, links, scales, guard_scales, limits, selected, close) for option in shown)
    rest = len(order) - len(rows)
    said = f"{rest:,} more options are not shown." if rest > 0 else ""
    return Table(tuple(_headings(view, choice, links)), rows, said, links.everything() if rest > 0 else "")


def _sorted(view: View, choice: Choice) -> tuple[Option, ...]:
    options = (*view.order, *view.withdrawn)
    by = choice.sort or "verdict"
    names = [metric.name for metric in view.metrics]
    backward = by not in names and by.startswith("-")
    key = by[1:] if backward else by
    if key == "verdict":
        return options[::-1] if backward else options
    if key == "option":
        return tuple(sorted(options, key=lambda option: option.name.casefold(), reverse=backward))
    if key == "runs":
        return tuple(sorted(options, key=lambda option: option.n, reverse=not backward))
    column = names.index(key)
    sign = view.metrics[column].sign * (-1.0 if backward else 1.0)

    def rank(option: Option) -> float:
        known = option.estimates[column]
        value = known.high if known.censored else known.value
        return math.inf if value is None else -sign * value

    return tuple(sorted(options, key=rank))


def _scale(view: View, column: int) -> Scale | None:
    """Return the one scale of the bars of a metric."""
    metric = view.metrics[column]
    known = [option.estimates[column].value for option in view.options]
    values = [value for value in known if value is not None]
    return bar_scale(values, spans(values, LOG_RELATIVE if metric.relative else LOG_LINEAR))


def _guard_scales(limits: dict[int, tuple[Limit, ...]]) -> list[Scale | None]:
    columns = list(zip(*limits.values(), strict=True)) if limits else []
    return [
        bar_scale(
            [end for each in column for end in (each.value, each.low, each.high) if end is not None],
            False,
            [column[0].guard.limit],
        )
        for column in columns
    ]


def _row(
    view: View,
    option: Option,
    links: Links,
    scales: list[Scale | None],
    guard_scales: list[Scale | None],
    limits: dict[int, tuple[Limit, ...]],
    selected: Option | None,
    close: bool,
) -> Row:
    about = sentences.limit(option.reason) if option.kind == "guard" else option.reason or sentences.link_word(option)
    return Row(
        option=option,
        mark=MARKS.get(option.verdict, WITHDRAWN),
        verdict=sentences.verdict(option),
        about=about,
        link=links.option(option),
        cells=tuple(
            _cell(_heading(metric.name, metric.unit), known, scale, option.name == view.table.reference)
            for metric, known, scale in zip(view.metrics, option.estimates, scales, strict=True)
        ),
        limits=tuple(_limit(each, scale) for each, scale in zip(limits.get(option.k, ()), guard_scales, strict=False)),
        why="" if option.verdict == "withdrawn" else sentences.why_line(view, option, close),
        more=tuple(column.texts.get(option.name, "–") for column in view.report.columns),
        chosen=selected is not None and selected.k == option.k,
        rank=VERDICTS.index(option.verdict),
    )


def _heading(name: str, unit: str) -> str:
    return f"{name}, {unit}" if unit else name


def _cell(metric: str, known: Estimate, scale: Scale | None, reference: bool) -> Cell:
    value = known.high if known.censored else known.value
    picture = Markup("") if scale is None else bar(known.low, value, known.high, scale)
    said = "compared with it" if reference and known.low is not None else sentences.interval(known)
    return Cell(metric, sentences.estimate(known), said, picture, value)


def _limit(known: Limit, scale: Scale | None) -> Cell:
    state = {True: "✓ keeps the limit", False: "✗ breaks it for sure", None: "◌ open"}[known.kept]
    shown = sentences.estimate(Estimate(known.value, known.low, known.high))
    picture = Markup("") if scale is None else bar(known.low, known.value, known.high, scale, known.guard.limit)
    return Cell(known.guard.metric, shown, state if known.value is not None else "not measured", picture, known.value)


def _headings(view: View, choice: Choice, links: Links) -> list[Heading]:
    now = choice.sort or "verdict"

    def heading(text: str, by: str, below: str = "", look: str = "", rising: bool = True) -> Heading:
        way = ""
        if now == by:
            way = "ascending" if rising else "descending"
        elif now == f"-{by}":
            way = "descending" if rising else "ascending"
        return Heading(text, below, by, links.sort(by), way, look)

    found = [heading("option", "option"), heading("verdict", "verdict")]
    for metric in view.metrics:
        larger = metric.direction == "max"
        below = f"{'higher' if larger else 'lower'} is better"
        found.append(heading(_heading(metric.name, metric.unit), metric.name, below, "e", not larger))
    units = {metric.name: words.unit(metric) for metric in view.metrics}
    for guard in view.details.guards:
        word = "at most" if guard.sense == "<=" else "at least"
        below = f"limit: {word} {guard.limit:g}{units.get(guard.metric, '')}"
        found.append(Heading(guard.metric, below, "", "", "", "e"))
    found.append(heading("runs", "runs", "", "num", False))
    found.append(Heading("why", "", "", "", "", "wl"))
    found += [Heading(column.heading, "", "", "", "", "num") for column in view.report.columns]
    return found
