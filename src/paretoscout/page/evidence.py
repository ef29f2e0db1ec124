"""Why an option has its verdict: beside a rival, metric by metric, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from ..shown import counted
from ..study.forecast import about
from ..study.standing import Difference
from . import sentences, words
from .choice import Choice
from .frame import Links
from .progress import selected_option
from .sentences import Said, Span
from .svg import Scale, drawing, element
from .view import Option, View

#: The drawing of an interval, in pixels.
WIDTH, HEIGHT, MARGIN = 326.0, 40.0, 12.0
#: Of a label: how wide letters and signs are in a wide font, and what is free between two labels.
LETTER, SIGN, GAP = 7.7, 11.4, 6.0
#: Of more options than this only those that are not dominated can be chosen as rivals, and at most so many.
MOST_RIVALS = 200


@dataclass(frozen=True)
class Line:
    """One metric of a pair."""

    metric: str
    says: Said
    state: str
    look: str
    picture: Markup


@dataclass(frozen=True)
class Rival:
    """Somebody whom the option can be compared with."""

    name: str
    label: str
    link: str
    chosen: bool


@dataclass(frozen=True)
class Evidence:
    """Why an option has its verdict."""

    option: Option
    rival: Option | None
    title: Said
    verdict: str
    text: Said
    lines: tuple[Line, ...]
    rivals: tuple[Rival, ...]
    needs: Said
    notes: tuple[str, ...]


def chosen(view: View, choice: Choice) -> tuple[Option | None, Option | None]:
    """Return whose evidence is shown, beside whom."""
    option = view.place.get(choice.option or "") or selected_option(view)
    if option is None or option.verdict == "withdrawn":
        return option, None
    rival = view.place.get(choice.rival or "")
    if rival is None or rival.verdict == "withdrawn" or rival.k == option.k:
        rival = view.place.get(view.rival_of(option) or "")
    return option, rival


def evidence(view: View, choice: Choice, links: Links, option: Option, rival: Option | None) -> Evidence:
    """Return why an option has its verdict, beside a rival."""
    usual = view.rival_of(option)
    lines = _lines(view, option, rival) if rival is not None else ()
    return Evidence(
        option=option,
        rival=rival,
        title=_title(option),
        verdict=" ".join(filter(None, [sentences.verdict(option), sentences.link_word(option)])),
        text=sentences.why(view, option),
        lines=lines,
        rivals=() if links.alone else tuple(_rivals(view, links, option, rival, usual)),
        needs=_needs(view, option, rival),
        notes=tuple(_notes(view, option, rival)),
    )


def _title(option: Option) -> Said:
    end = {
        "front": " on the front?",
        "same": " the same as another?",
        "withdrawn": " out?",
        "dominated": " dominated?",
    }.get(option.verdict, " undecided?")
    return [Span("Why is "), Span(option.name, option.verdict, option.name), Span(end)]


def _lines(view: View, option: Option, rival: Option) -> tuple[Line, ...]:
    pair = view.pair(option.name, rival.name)
    lines = []
    for column, each in enumerate(pair.differences):
        eps = sentences.eps_of(view, column)
        found = sentences.beside(each, rival.name, option.name, eps)
        says = sentences.compared(each, view, column)
        said = [Span(option.name, option.verdict), Span(f" is {says}")]
        picture = _interval(
            view, column, each, eps, found.look, f"{each.metric}: {option.name} is {says} than {rival.name}"
        )
        lines.append(Line(each.metric, said, found.state, found.look, picture))
    return tuple(lines)


def _interval(view: View, column: int, each: Difference, eps: float, look: str, label: str) -> Markup:
    """Draw the lead of the rival: estimate, interval, the band of what does not matter, zero."""

    def at(value: float) -> float:
        return math.log1p(max(value, -0.999999)) if each.relative else value

    ends = [at(end) for end in (each.low, each.high, each.value) if end is not None]
    reach = max([abs(end) for end in ends] + [1.35 * at(eps), 1e-12])
    scale = Scale(-1.06 * reach, 1.06 * reach, MARGIN, WIDTH - MARGIN)
    middle = 10.0
    parts = [element("line", class_="ib", x1=0, x2=WIDTH, y1=middle, y2=middle)]
    if eps > 0:
        left, right = scale(-at(eps)), scale(at(eps))
        parts.append(element("rect", class_="band", x=left, y=1, width=right - left, height=18))
    parts.append(element("line", class_="zero", x1=scale(0.0), x2=scale(0.0), y1=0, y2=20))
    if each.value is not None:
        left = scale(at(each.low)) if each.low is not None else 0.0
        right = scale(at(each.high)) if each.high is not None else WIDTH
        parts.append(
            element("rect", class_=f"iv {look}", x=left, y=middle - 3.5, width=max(right - left, 1.5), height=7)
        )
        parts.append(element("rect", class_="est-t", x=scale(at(each.value)) - 1.2, y=2.5, width=2.4, height=15))
        parts += _end_labels(view, column, each, left, right)
    return drawing(WIDTH, HEIGHT, *parts, label=f"{label}, {_range(each, view, column)}")


def _places(each: Difference) -> int:
    if each.low is None or each.high is None:
        return 2
    return words.digits((each.high - each.low) / 2)


def _end_labels(view: View, column: int, each: Difference, left: float, right: float) -> list[Markup]:
    metric, places = view.judged_by[column], _places(each)
    if each.low is not None and each.low == each.high:
        return [
            element("text", words.signed(each.low, metric, places), class_="lab", x=left, y=33, text_anchor="middle")
        ]
    said = [
        words.signed(each.low, metric, places) if each.low is not None else "no bound",
        words.signed(each.high, metric, places) if each.high is not None else "no bound",
    ]
    half = [sum(SIGN if letter in "+−%" else LETTER for letter in text) / 2 for text in said]
    places_of = [left, right]
    over = half[0] + half[1] + GAP - (right - left)
    if over > 0:  # the two would touch
        places_of = [left - over / 2, right + over / 2]
    places_of[1] = min(places_of[1], WIDTH - half[1])
    places_of[0] = max(min(places_of[0], places_of[1] - half[1] - half[0] - GAP), half[0])
    places_of[1] = max(places_of[1], places_of[0] + half[0] + half[1] + GAP)
    return [
        element("text", text, class_="lab", x=x, y=33, text_anchor="middle")
        for text, x in zip(said, places_of, strict=True)
    ]


def _range(each: Difference, view: View, column: int) -> str:
    metric, places = view.judged_by[column], _places(each)
    low = words.signed(each.low, metric, places) if each.low is not None else "no lower bound"
    high = words.signed(each.high, metric, places) if each.high is not None else "no upper bound"
    return f"lead of the rival between {low} and {high}"


def _rivals(view: View, links: Links, option: Option, rival: Option | None, usual: str | None) -> list[Rival]:
    others = [each for each in view.order if each.k != option.k]
    if len(others) > MOST_RIVALS:
        others = [each for each in others if each.verdict in ("front", "undecided") or each.name == usual][:MOST_RIVALS]
    word = {"dominated": "dominates it", "same": "the same"}.get(option.verdict, "nearest")
    return [
        Rival(
            each.name,
            f"{each.name} ({word})" if each.name == usual else each.name,
            links.to(links.choice.but(option=option.name, rival=each.name)),
            rival is not None and each.k == rival.k,
        )
        for each in others
    ]


def _needs(view: View, option: Option, rival: Option | None) -> Said:
    said = [Span(f"{counted(option.n, 'run')} of "), Span(option.name, option.verdict)]
    if rival is not None:
        said += [Span(f", {rival.n:,} of "), Span(rival.name, rival.verdict)]
    said.append(Span("."))
    more = view.remaining.by_arm.get(option.name) if view.remaining is not None else None
    if option.verdict == "undecided" and more is not None and math.isfinite(more) and round(more):
        said += [Span(f" About {about(more)} more of "), Span(option.name, option.verdict), Span(" are expected.")]
    bands = [words.tolerance(metric) for metric in view.judged_by if metric.tolerance > 0]
    if rival is not None and bands:
        said.append(Span(f" Grey band: a difference that does not matter ({', '.join(bands)})."))
    return said


def _notes(view: View, option: Option, rival: Option | None) -> list[str]:
    """Return what else there is to know of a pair: what the comparison rests on, and the blocks that matter most."""
    if rival is None:
        return []
    notes = []
    if not view.pair(option.name, rival.name).own:
        notes.append("The intervals are sums of those of the two options, which are wider than what verdicts rest on.")
    rests = view.table.rests_on(option.k) if option.k < len(view.options) else ""
    if rests and rests != "measured":
        notes.append(f"The verdict rests on the contexts: {rests}.")
    both = view.details.on_blocks(option.name, rival.name)
    if both is not None and both.blocks:
        kind = "round" if view.in_rounds else "block"
        notes.append(f"Both were measured on {counted(len(both.blocks), kind)} of {both.passed:,}.")
        if not view.in_rounds:
            for column, metric in enumerate(view.judged_by):
                notes.append(f"{metric.name} differs most on {words.listed(both.most(column))}.")
    return notes
