"""What the page says in words: the answer, the facts beside it, why an option has its verdict.

A sentence is a list of `Span`: a text and how it looks. Nothing of it is markup; the templates escape all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..answer import FOUND, are, reason
from ..shown import counted
from ..study.explanation import on_the_front
from ..study.forecast import about
from ..study.standing import Difference, Pair
from ..tradeoffs import judged_by
from . import words
from .view import Estimate, Option, View, half

#: Up to so many options of the front have their names in the answer, and so many of those that are dominated.
MOST_FRONT, MOST_DOMINATED, MOST_OUT = 6, 3, 3


@dataclass(frozen=True)
class Span:
    """A piece of a sentence. look: "", "strong", or a verdict."""

    text: str
    look: str = ""
    option: str = ""  # the option that it names, if it names one


Said = list[Span]


def text_of(said: Iterable[Span]) -> str:
    """Return a sentence as plain text."""
    return "".join(span.text for span in said)


def names(options: Sequence[str], look: str, most: int = 12) -> Said:
    """Name options: "a, b and c"."""
    said: Said = []
    shown = list(options[:most])
    rest = len(options) - len(shown)
    for place, name in enumerate(shown):
        if place:
            said.append(Span(" and " if place == len(shown) - 1 and not rest else ", "))
        said.append(Span(name, look, name))
    return [*said, Span(f" and {rest:,} more")] if rest else said


def answer(view: View) -> Said:
    """Say what came out so far: the front first, what is dominated, who left, what is undecided and what would tell."""
    tally, total = view.tally, len(view.options) + len(view.standing.withdrawn)
    most = 12 if total <= 12 else 0
    said = _found(view, total, most)
    dominated = view.named("dominated")
    if dominated:
        said.append(Span(f" {words.capital(words.number(len(dominated), most))} {are(dominated)} dominated"))
        said += [Span(": "), *names(dominated, "dominated")] if len(dominated) <= MOST_DOMINATED else []
        said.append(Span("."))
    for name in view.named("same")[:MOST_OUT]:
        rival = view.place[name].rival or ""
        said += [Span(" "), Span(name, "dominated", name), Span(" is the same as "), Span(rival, "front", rival)]
        said.append(Span(", up to what does not matter."))
    if tally["same"] > MOST_OUT:
        said.append(Span(f" {tally['same'] - MOST_OUT:,} more are the same as others."))
    said += _left(view)
    if tally["undecided"]:
        how_many = words.number(tally["undecided"], most)
        said.append(Span(" "))
        said.append(
            Span(f"{words.capital(how_many)} {'is' if tally['undecided'] == 1 else 'are'} undecided", "undecided")
        )
        said.append(Span(f"{outlook(view)}."))
    return said


def _found(view: View, total: int, most: int) -> Said:
    front, open_ = view.named("front"), view.undecided > 0
    if not front:
        if open_ or view.tally["dominated"]:
            return [
                Span("None", "strong"),
                Span(f" of {words.number(total, most)} options is on the front{' yet' if open_ else ''}."),
            ]
        return [Span("No option keeps its limits", "strong"), Span(".")]
    what = "worth having"
    if open_ or not view.standing.practical:
        what = FOUND.get(str(view.standing.guarantee.goal), "on the front")
        what = f"on {what}" if what == "the front" else what
    how_many = f"{words.capital(words.number(len(front), most))} of {words.number(total, most)}"
    verb = are(front)
    said = [Span(how_many, "strong"), Span(f" options {verb} {what}{' so far' if open_ else ''}")]
    if len(front) <= MOST_FRONT:
        return [*said, Span(": "), *names(front, "front"), Span(".")]
    best = [_best(view, front, column) for column in range(min(len(view.metrics), 2))]
    if len(best) < 2 or best[0] is None or best[1] is None or best[0] == best[1]:
        return [*said, Span(": "), *names(front, "front", MOST_FRONT), Span(".")]
    for place, (name, metric) in enumerate(zip(best, view.metrics, strict=False)):
        extreme = "highest" if metric.direction == "max" else "lowest"
        said += [Span(" to " if place else ", from "), Span(str(name), "front", str(name))]
        said.append(Span(f" ({extreme} {metric.name})"))
    return [*said, Span(".")]


def _best(view: View, front: Sequence[str], column: int) -> str | None:
    sign = view.metrics[column].sign
    known = [(sign * value, name) for name in front if (value := view.place[name].estimates[column].value) is not None]
    return max(known)[1] if known else None


def _left(view: View) -> Said:
    said: Said = []
    for each in view.standing.withdrawn[:MOST_OUT]:
        said += [Span(" "), Span(each.option, "dominated", each.option)]
        out = f" is out: it {limit(each.reason)}." if each.kind == "guard" else f" was withdrawn ({each.reason})."
        said.append(Span(out))
    more = len(view.standing.withdrawn) - MOST_OUT
    return [*said, Span(f" {more:,} more were withdrawn.")] if more > 0 else said


def outlook(view: View) -> str:
    """Say what would decide what is undecided; it goes on after "are undecided"."""
    ahead = view.remaining
    if view.state == "stuck":
        return "; more runs are of no use"
    if view.state == "spent":
        budget = f"; the budget of {counted(view.standing.budget or 0, 'run')} is spent"
        known = ahead is not None and math.isfinite(ahead.samples)
        return f"{budget}, {ahead.more} would do" if known and ahead is not None else budget
    if ahead is None:
        return ""
    return f"; {ahead.more} will tell" if math.isfinite(ahead.samples) else "; it will take very many more runs"


def state(view: View) -> str:
    """Say in a few words how far it is: "7 of 12 decided"."""
    n = len(view.options)
    if view.state == "empty":
        return "no runs yet"
    return f"{n - view.undecided:,} of {n:,} decided" if view.undecided else f"all {n:,} decided"


@dataclass(frozen=True)
class Fact:
    """A fact beside the answer."""

    what: str
    value: str
    more: str = ""
    link: str = ""  # of what more there is


def facts(view: View) -> list[Fact]:
    """Return the facts beside the answer."""
    n, left, counts, ahead = len(view.options), view.undecided, view.standing.counts, view.remaining
    imported = f"{counts['imported']:,} of them imported" if counts["imported"] else ""
    said = [
        Fact("Decided", f"{n - left:,} of {counted(n, 'option')}"),
        Fact("Runs" if view.state == "done" else "Runs so far", f"{view.samples:,}", imported),
    ]
    if ahead is not None and left and math.isfinite(ahead.samples):
        low, high = about(ahead.low), about(ahead.high)
        said.append(
            Fact("Still to run", f"about {about(ahead.samples)}", f"likely {low} to {high}" if low != high else "")
        )
    elif ahead is not None and left:
        said.append(Fact("Still to run", "very many"))
    if ahead is not None and left and ahead.uniform is not None and math.isfinite(ahead.uniform):
        said.append(Fact("If all were run equally often", f"about {about(ahead.uniform)} more"))
    if view.standing.budget is not None:
        said.append(Fact("Budget", f"{view.standing.spent:,} of {counted(view.standing.budget, 'run')}"))
    if gone := view.standing.withdrawn:
        broken = sum(each.kind == "guard" for each in gone)
        parts = [f"{broken:,} {'breaks' if broken == 1 else 'break'} a limit"] if broken else []
        parts += [f"{len(gone) - broken:,} withdrawn"] if len(gone) > broken else []
        said.append(Fact("Left out", counted(len(gone), "option"), ", ".join(parts)))
    promised = view.standing.guarantee.probability
    value = (
        "not promised"
        if promised is None
        else "for certain"
        if promised == 1.0
        else f"with {100 * promised:.10g}% probability"
    )
    said.append(Fact("All verdicts right", value, "what that rests on", "#guarantee"))
    return said


def lede(view: View) -> str:
    """Say what is compared, by what, since when."""
    n = len(view.options) + len(view.standing.withdrawn)
    arrows = ", ".join(f"{metric.name}\u00a0{'↑' if metric.direction == 'max' else '↓'}" for metric in view.metrics)
    limits = (
        f"; {'limits' if len(view.guards) > 1 else 'limit'} {', '.join(map(limit, view.guards))}" if view.guards else ""
    )
    sums = [metric.name for metric in view.judged_by] if view.judged_by != view.metrics else []
    judged = f"; {judged_by(sums)}" if sums else ""
    began = f" Started {words.day(view.history.began)}." if view.history.began is not None else ""
    return f"{counted(n, 'option')}, {counted(len(view.metrics), 'metric')}: {arrows}{judged}{limits}.{began}"


def limit(text: str) -> str:
    """Return a limit as people write it."""
    return text.replace(" <= ", " ≤ ").replace(" >= ", " ≥ ")


def verdict(option: Option) -> str:
    """Return the verdict in words, with whom it is about."""
    if option.verdict == "withdrawn":
        return "out: breaks a limit" if option.kind == "guard" else "failed" if option.kind == "failed" else "withdrawn"
    return option.verdict


def link_word(option: Option) -> str:
    """Return whom a verdict is about: "by b"."""
    before = {"dominated": "by", "undecided": "against", "same": "as"}.get(option.verdict)
    return f"{before} {option.rival}" if before and option.rival else ""


def estimate(known: Estimate) -> str:
    """Return an estimate with the digits that its interval supports."""
    if known.censored:
        return f"< {words.general(known.high or 0.0)}"
    if known.value is None:
        return "–"
    if known.low is None or known.high is None:
        return words.general(known.value)
    if known.high - known.low <= 2e-9 * abs(known.value):
        return words.general(known.value)
    return words.fixed(known.value, words.digits(half(known)))


def interval(known: Estimate) -> str:
    """Return between what a value is for sure, by its ends."""
    if known.censored:
        return "too small to be measured"
    if known.value is None:
        return "not measured"
    if known.low is None or known.high is None:
        return "no bounds yet"
    if known.high - known.low <= 2e-9 * abs(known.value):
        return "exact"
    places = words.digits(half(known))
    return f"{words.fixed(known.low, places)} – {words.fixed(known.high, places)}"


def described(view: View, option: Option) -> str:
    """Say all that a mark in a chart stands for, in a sentence."""
    about_it = f"{option.name}: {verdict(option)}{f' {link_word(option)}' if link_word(option) else ''}"
    values = (
        f"{metric.name} {estimate(known)}{words.unit(metric)}"
        + (f" ({interval(known)})" if known.low is not None else "")
        for metric, known in zip(view.metrics, option.estimates, strict=True)
    )
    return f"{about_it}; {', '.join(values)}; {counted(option.n, 'run')}"


# Pairs


@dataclass(frozen=True)
class Beside:
    """A metric of an option beside that of a rival."""

    settled: bool
    look: str  # "ok": settled, it matters; "no": settled, it does not; "wait": open
    state: str  # in words


def beside(difference: Difference, rival: str, option: str, eps: float) -> Beside:
    """Say whether it is settled who is better in a metric; eps: as the difference is counted."""
    low = -math.inf if difference.low is None else difference.low
    high = math.inf if difference.high is None else difference.high
    worst = -eps / (1.0 + eps) if difference.relative else -eps
    if difference.value is None:
        return Beside(False, "wait", "not measured")
    if low > 0:
        return Beside(True, "ok", f"{rival} better")
    if high < 0:
        return Beside(True, "ok", f"{option} better")
    if low == high == 0.0:
        return Beside(True, "no", "equal")
    if low >= worst and high <= eps:
        return Beside(True, "no", "no difference that matters")
    if high <= eps:
        return Beside(True, "ok", f"{option} as good")
    return Beside(False, "wait", "open")


def compared(difference: Difference, view: View, column: int) -> str:
    """Say how an option stands beside its rival in a metric: "2.1 pt lower"."""
    metric = view.judged_by[column]
    if difference.value is None:
        return "not measured on both"
    if difference.value == 0.0:
        return "equal"
    if metric.relative:
        ratio = 1.0 + difference.value if metric.direction == "min" else 1.0 / (1.0 + difference.value)
        if ratio >= 2.0 or ratio <= 0.5:
            more = max(ratio, 1.0 / ratio)
            return f"{'higher' if ratio > 1 else 'lower'} by a factor of {more:.{1 if more < 10 else 0}f}"
        percent = 100 * abs(ratio - 1.0)
        return f"{percent:.{1 if percent < 10 else 0}f}% {'higher' if ratio > 1 else 'lower'}"
    known = difference.low is not None and difference.high is not None
    places = words.digits((difference.high - difference.low) / 2) if known else None  # type: ignore[operator]
    below = (difference.value > 0) == (metric.direction == "max")
    return f"{words.lead(difference.value, metric, places)} {'lower' if below else 'higher'}"


def eps_of(view: View, column: int) -> float:
    """Return the difference that does not matter, as differences of pairs are counted."""
    metric = view.judged_by[column]
    return math.expm1(metric.tolerance) if metric.relative else metric.tolerance


def open_metrics(view: View, pair: Pair) -> list[str]:
    """Return the metrics in which a pair is not settled."""
    return [
        each.metric
        for column, each in enumerate(pair.differences)
        if not beside(each, "", "", eps_of(view, column)).settled
    ]


def why(view: View, option: Option) -> Said:
    """Say in a sentence why an option has its verdict."""
    rival = view.rival_of(option)
    if option.verdict == "withdrawn":
        return [Span("It was withdrawn: "), Span(option.reason), Span(". What was measured of it stays in the log.")]
    if rival is None:
        if option.verdict == "front":
            return [Span(words.capital(on_the_front(view.table)) + ".")]
        return [Span(view.table.remark or "Nothing speaks for or against it yet.")]
    look = view.place[rival].verdict
    pair = view.pair(option.name, rival)
    who = Span(rival, look, rival)
    if option.verdict == "dominated":
        return _dominated(view, option, pair, who)
    if option.verdict == "same":
        return [
            Span("It differs from "),
            who,
            Span(f" by no more than does not matter, in any {view.table.judged_in}. One of them is enough."),
        ]
    if option.verdict == "front":
        return [Span(f"{words.capital(on_the_front(view.table))}. Nearest to that comes "), who, Span(".")]
    return _open(view, pair, who)


def _dominated(view: View, option: Option, pair: Pair, who: Span) -> Said:
    everywhere = all(each.low is not None and each.low > 0 for each in pair.differences)
    said = reason(view.table, option.k, view.kinds)
    if everywhere:
        return [who, Span(f" is better in every {view.table.judged_in}. That is proven.")]
    return [who, Span(" dominates it"), Span(f": it is {said}." if said else ".")]


def _open(view: View, pair: Pair, who: Span) -> Said:
    left = open_metrics(view, pair)
    ahead = [each.metric for each in pair.differences if each.value is not None and each.value > 0]
    if not left:
        said = f" is its nearest rival. Between them it hangs on {_hinge(pair)}, and others may matter too."
        return [who, Span(said)]
    if len(ahead) == len(pair.differences):
        return [
            who,
            Span(
                f" looks better in every {view.table.judged_in}, but in {words.listed(left)} that may still be chance."
            ),
        ]
    if not ahead:
        return [Span("It looks as good as "), who, Span(f", but in {words.listed(left)} that may still be chance.")]
    return [who, Span(f" looks better in {words.listed(ahead)}; {words.listed(left)} {are(left)} open between them.")]


def why_line(view: View, option: Option, close: bool = True) -> str:
    """Say in a few words why an option has its verdict; close: look at pairs of options, which takes a while."""
    if option.verdict == "withdrawn":
        return option.reason
    if option.verdict == "dominated":
        return reason(view.table, option.k, view.kinds)
    if option.verdict == "same":
        return "no difference that matters"
    rival = None
    if close:
        rival = option.rival if view.many and option.rival else view.rival_of(option)
    if rival is None or rival not in view.table.place:
        return ""
    pair = view.pair(option.name, rival)
    if option.verdict == "front":
        return _nearest(view, pair)
    return f"hangs on {words.listed(open_metrics(view, pair) or [_hinge(pair)])}"


def _certainty(each: Difference) -> float:
    """Return how clear the lead of a rival is, beside its uncertainty."""
    if each.value is None or each.low is None or each.high is None or each.high <= each.low:
        return math.inf if each.value is None else math.copysign(math.inf, each.value)
    return each.value / (each.high - each.low)


def _hinge(pair: Pair) -> str:
    """Return the metric in which the rival leads least clearly."""
    return min(pair.differences, key=_certainty).metric


def _nearest(view: View, pair: Pair) -> str:
    """Say who comes nearest to dominating an option, and where it falls short."""
    place = min(range(len(pair.differences)), key=lambda column: _certainty(pair.differences[column]))
    each, metric = pair.differences[place], view.judged_by[place]
    if each.value is None:
        return f"nearest is {pair.rival}"
    if each.value >= 0:
        return f"nearest is {pair.rival}: better, but by less than matters"
    known = each.low is not None and each.high is not None
    places = words.digits((each.high - each.low) / 2) if known else None  # type: ignore[operator]
    return f"nearest is {pair.rival}: {metric.name} {words.worse(metric)} by {words.lead(each.value, metric, places)}"
