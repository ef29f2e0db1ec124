"""Pages as text. All that comes from outside is escaped by the templates; nothing here is markup of others."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ..errors import UnknownName
from ..shown import MARKS, counted
from ..study.explanation import on_the_front
from . import charts, evidence, listing, progress, sentences, words
from .choice import Choice
from .frame import Frame, Links
from .table import table
from .view import MANY, VERDICTS, WITHDRAWN, Option, View

if TYPE_CHECKING:
    from jinja2 import Environment

#: Files of our own that pages need, and what they are.
STATIC = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "logo.svg": "image/svg+xml",
}
#: What a browser may load for a page that is served.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: In one file the evidence of so many options is there, at most.
MOST_ALONE = 60
#: What each verdict means, for the legend.
MEANS = {
    "front": "worth having",
    "undecided": "more runs will tell",
    "same": "the same as another, up to what does not matter",
    "dominated": "another option is better",
    "withdrawn": "withdrawn, or breaks a limit",
}


def static(name: str) -> bytes:
    """Return a file of our own that pages need; `STATIC` has their names and types."""
    if name not in STATIC:
        raise UnknownName("file", name, list(STATIC))
    return resources.files(__package__).joinpath("static", name).read_bytes()


@cache
def version(name: str) -> str:
    """Return a short text that changes whenever the file does, for links that may be kept for ever."""
    return hashlib.sha256(static(name)).hexdigest()[:12]


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = resources.files(__package__).joinpath("templates")
    made = Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_harmless,
    )
    made.globals |= {"marks": {**MARKS, "withdrawn": WITHDRAWN}, "words": words, "counted": counted, "means": MEANS}
    return made


def _harmless(value: Any) -> Any:
    """Return what is shown in place of a value: of a text of others, no letter that moves a cursor."""
    return words.harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _page(template: str, frame: Frame, title: str, **what: Any) -> str:
    shared: dict[str, Any] = {"frame": frame, "title": title, "version": version, "policy": "", "css": "", "js": ""}
    if frame.alone:
        css, js = (Markup(static(name).decode("utf-8")) for name in ("page.css", "page.js"))
        policy = f"default-src 'none'; style-src {_hash(css)}; script-src {_hash(js)}; img-src data:"
        shared |= {"css": css, "js": js, "policy": policy}
    return _templates().get_template(template).render(**shared, **what)


def _hash(text: str) -> str:
    """Return how a policy names a style or a script that is in the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def study_page(view: View, choice: Choice | None = None, frame: Frame | None = None) -> str:
    """Return the page of a study.

    choice: what somebody chose to see. frame: what the one who serves it adds; None: one file that needs nothing else.
    """
    frame = frame or Frame(now=view.at or 0.0, alone=True)
    choice = (choice or Choice()).known([metric.name for metric in view.metrics], view.place)
    links = Links(choice, frame.here, frame.alone)
    selected, rival = evidence.chosen(view, choice)
    shared = {
        "view": view,
        "choice": choice,
        "links": links,
        "state": sentences.state(view),
        "lede": sentences.lede(view),
        "live": _live(view, frame),
        "empty": view.state == "empty",
        "wall": choice.wall,
        "selected": selected,
    }
    title = f"{words.capital(sentences.state(view))} – {view.title}"
    if view.state == "empty":
        return _page("study.html", frame, title, **shared)
    narrow = choice.width < 560  # a phone: one column
    few = len(view.details.columns) < 3
    half = choice.width if narrow else progress.WIDTH
    strip = half if few else choice.width if narrow else progress.STRIP
    many = view.many
    shared |= {
        "answer": sentences.answer(view),
        "facts": sentences.facts(view),
        "tally": [] if many else _tally(view, links),
        "bar": progress.part_bar(view.tally) if many else "",
        "counts": [(verdict, n) for verdict, n in view.tally.items() if n],
        "charts": _charts(view, choice, links, selected, rival),
        "evidence": _evidence(view, choice, links, selected, rival),
        "table": table(view, choice, links, selected),
        **view.once(("progress", half, strip), lambda: _progress(view, half, strip)),
        "few": few,
        "how_sure": _how_sure(view),
        "promise": _promise(view),
        "rests": [words.capital(each) for each in view.standing.guarantee.assumptions],
        "guarantee": str(view.standing.guarantee),
        "notes": _notes(view),
        "open": _open(view, frame),
        "recent": list(reversed(view.history.recent)),
        "noted": any(seen.note for seen in view.history.recent),
        "on_blocks": any(seen.block for seen in view.history.recent),
        "workers": sorted(view.history.workers.values(), key=lambda worker: -worker.at)[:12],
        "columns": [_heading(metric.name, metric.unit) for metric in view.details.columns],
    }
    return _page("study.html", frame, title, **shared)


def _progress(view: View, half: float, strip: float) -> dict[str, Any]:
    """Return the drawings that hang on no choice but the width."""
    return {
        "undecided": progress.undecided(view, half),
        "shares": progress.shares(view, half),
        "regret": progress.regret(view, half) if view.falls_short else "",
        "strips": [
            (_heading(metric.name, metric.unit), progress.strip(view, column, strip))
            for column, metric in enumerate(view.details.columns)
        ],
    }


def _heading(name: str, unit: str) -> str:
    return f"{name}, {unit}" if unit else name


def _live(view: View, frame: Frame) -> dict[str, str]:
    """Return what stands at the top: whether the page is live, and when something was heard last."""
    if frame.alone:  # it will be looked at long after
        when = f"as of {words.day(frame.now)}, {words.clock(frame.now)[:5]} UTC"
        return {"look": "still", "text": when, "more": ""}
    heard = words.ago(view.history.measured or view.at, frame.now)
    if view.state == "empty":
        return {"look": "still", "text": "waiting", "more": ""}
    if view.state == "done":
        return {"look": "still", "text": "decided", "more": f" {heard}" if heard else ""}
    if view.state in ("spent", "stuck"):
        text = "budget spent" if view.state == "spent" else "stuck"
        return {"look": "still", "text": text, "more": f", last run {heard}" if heard else ""}
    look, text = ("", "live") if frame.events else ("still", "running")
    return {"look": look, "text": text, "more": f", last run {heard}" if heard else ""}


def _tally(view: View, links: Links) -> list[dict[str, Any]]:
    """Return a cell for each option, by verdict."""
    cells: list[dict[str, Any]] = []
    options = sorted((*view.order, *view.withdrawn), key=lambda option: VERDICTS.index(option.verdict))
    for option in options:
        gap = bool(cells) and cells[-1]["verdict"] != option.verdict
        says = f"{option.name}: {sentences.verdict(option)}"
        cells.append({"verdict": option.verdict, "link": links.option(option), "says": says, "gap": gap, "k": option.k})
    return cells


def _charts(view: View, choice: Choice, links: Links, selected: Option | None, rival: Option | None) -> dict[str, Any]:
    """Return the drawings of the trade-off that are shown; in one file, all of them."""
    x, y = charts.axes_of(view, choice)
    several = len(view.metrics) > 2
    plane = choice.view == "plane" or links.alone
    unmeasured = [
        option.name
        for option in view.options
        if any(each.value is None and not each.censored for each in option.estimates)
    ]
    return {
        "x": x,
        "y": y,
        "several": several,
        "plane": charts.trade_off(view, choice, links, selected, rival) if plane else "",
        "pairs": charts.small_multiples(view, choice, links, selected)
        if several and (links.alone or choice.view == "pairs")
        else [],
        "parallel": charts.side_by_side(view, choice, links, selected)
        if several and (links.alone or choice.view == "parallel")
        else "",
        "unmeasured": words.listed(unmeasured, 6) if unmeasured else "",
        "kinds": [verdict for verdict in MARKS if view.tally[verdict]],
    }


def _evidence(
    view: View, choice: Choice, links: Links, selected: Option | None, rival: Option | None
) -> list[evidence.Evidence]:
    """Return the evidence that is shown; in one file, that of every option, the usual one first."""
    if selected is None:
        return []
    first = evidence.evidence(view, choice, links, selected, rival)
    if not links.alone:
        return [first]
    others = [option for option in (*view.order, *view.withdrawn) if option.k != selected.k][: MOST_ALONE - 1]
    return [first, *(evidence.evidence(view, choice, links, each, _rival(view, each)) for each in others)]


def _rival(view: View, option: Option) -> Option | None:
    return view.place.get(view.rival_of(option) or "")


def _how_sure(view: View) -> str:
    """Say how sure it is that all intervals hold; nothing where that is not promised: verdicts may need less."""
    promised = view.standing.guarantee.probability
    if promised is None or not view.standing.practical or view.table.reference is not None:
        return ""
    return "for certain" if promised == 1.0 else f"with {100 * promised:.10g}% probability"


def _promise(view: View) -> list[tuple[str, str]]:
    """Return what is promised, one by one: what it is about, and what it says."""
    promised = view.standing.guarantee
    if promised.probability is None:
        return [("Nothing is promised", f"{words.capital(promised.why_not)}.")]
    sure = (
        "for certain"
        if promised.probability == 1.0
        else f"with probability at least {100 * promised.probability:.10g}%"
    )
    said = [("All at once", f"{words.capital(promised.promise)} {sure}: not each for itself, all of them together.")]
    tolerated = words.listed([f"{amount} of {metric}" for metric, amount in promised.tolerated])
    if tolerated:
        said.append(("What does not matter", f"Differences up to {tolerated}."))
    said.append((f"{MARKS['front']} front", f"{words.capital(on_the_front(view.table))}."))
    if view.standing.practical:
        meaning = (
            "The named option is better by more than eps in some metric, and as good, up to eps / 2, in the others."
        )
        said.append((f"{MARKS['dominated']} dominated", meaning))
        said.append((f"{MARKS['same']} same", "It differs from the named option by at most eps in every metric."))
    else:
        said.append((f"{MARKS['dominated']} dominated", "The named option is better in every metric."))
    said.append(("Whenever you look", "It holds at all times: look as often as you like, and stop when you like."))
    return said


def _notes(view: View) -> dict[str, list[str]]:
    """Return what to know before acting on the verdicts: warnings, and remarks."""
    counts = view.standing.counts
    remarks = [*view.table.remarks, *view.report.notes]
    if counts["waiting"]:
        remarks.append(
            f"{counted(counts['waiting'], 'outcome waits', 'outcomes wait')} for trials that were asked before."
        )
    if counts["late"]:
        remarks.append(f"{counted(counts['late'], 'outcome')} came when the trial was void: kept, but no evidence.")
    if counts["lapsed"]:
        remarks.append(f"{counted(counts['lapsed'], 'trial')} failed, or took too long, and did not count.")
    if view.standing.unguarded:
        remarks.append(f"It is not known yet whether {words.listed(view.standing.unguarded, 6)} keep all limits.")
    said = [*view.table.warnings]
    return {"warnings": said, "remarks": remarks}


def _open(view: View, frame: Frame) -> list[dict[str, Any]]:
    """Return the open trials, the oldest first."""
    trials = []
    for trial in view.standing.open[:MANY]:
        left = trial.asked_at + view.details.lease - frame.now
        trials.append(
            {
                "trial": trial,
                "by": trial.by,
                "ago": words.ago(trial.asked_at, frame.now),
                "iso": words.iso(trial.asked_at),
                "overdue": trial.overdue or left <= 0,
                "short": left < 0.2 * view.details.lease,
                "left": words.span(abs(left)),
                "bar": progress.lease_bar(left, view.details.lease),
            }
        )
    return trials


def list_page(rows: Sequence[listing.Row], frame: Frame | None = None, query: str = "") -> str:
    """Return the list of studies: running, waiting for somebody, decided. query: only those that have it in them."""
    frame = frame or Frame()
    shown = listing.found(rows, query)
    running = sum(row.state == "running" for row in rows)
    title = f"{counted(running, 'study', 'studies')} running – paretoscout" if running else "Studies – paretoscout"
    return _page(
        "list.html",
        frame,
        title,
        groups=listing.grouped(shown),
        summary=listing.summary(rows),
        total=len(rows),
        query=query,
        bars={row.name: progress.part_bar(dict(row.tally), 240.0) for row in shown if not row.marks and row.tally},
        most=listing.MOST_NAMED,
    )


def message_page(title: str, text: str, frame: Frame | None = None, link: tuple[str, str] | None = None) -> str:
    """Return a page that says one thing, such as that a study is not there. link: text and address of what may help."""
    return _page("message.html", frame or Frame(), title, heading=title, text=text, link=link)


def sign_in_page(frame: Frame, error: str = "", csrf: str = "", then: str = "") -> str:
    """Return the page to sign in. error: what was wrong before. then: where to go after that."""
    return _page(
        "sign_in.html", replace(frame, csrf=csrf or frame.csrf), "Sign in – paretoscout", error=error, then=then
    )
