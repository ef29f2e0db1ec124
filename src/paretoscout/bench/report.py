"""What came out of a bench, for people and for programs."""

from __future__ import annotations

import csv
import io
import json
import math
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import answer
from ..shown import MARKS, cell, counted, heading, markdown, markdown_table, rough_span, with_unit
from ..study import Standing
from ..verdicts import VerdictTable, front_first
from .campaign import Campaign, Plan
from .columns import DIGITS, EXACT_DIGITS, Beside, Extra, beside, columns_of, raw_runs, rounded, stats_of
from .metrics import Source
from .options import contexts_of

#: How people say that something is a multiple of something else; of others they say "has so many times the NAME".
MULTIPLE = {
    "time": ("takes", "as long"),
    "user": ("takes", "as much user time"),
    "rss": ("takes", "as much memory"),
    "size": ("is", "as large"),
}
#: How the question calls what is measured; others are called by their names.
CALLED = {"rss": "memory"}
NO_EXTRA = Extra()


def sentence(table: VerdictTable, sources: Sequence[Source], ahead: str = "") -> str:
    """Say in one sentence what came out, and what it takes to decide what is undecided."""
    return answer.sentence(table, _kinds(sources), ahead)


def reason(table: VerdictTable, k: int, sources: Sequence[Source]) -> str:
    """Say by how much a dominated option is worse than the one that dominates it; nothing of others."""
    return answer.reason(table, k, _kinds(sources))


def _kinds(sources: Sequence[Source]) -> dict[str, str]:
    return {source.name: source.kind for source in sources}


def summary(campaign: Campaign, table: VerdictTable, ahead: str = "") -> str:
    """Say in one sentence what came out; of one option alone, that it is no question.

    ahead: what it takes to decide what is undecided.
    """
    plan = campaign.plan
    if len(plan.options) > 1 or not table.front or any(source.guard is not None for source in plan.sources):
        failed = [each.option for each in campaign.study.standing().withdrawn if each.kind == "failed"]
        left_out = f"; {answer.listed(failed)} failed and {answer.are(failed)} left out." if failed else "."
        return sentence(table, plan.sources, ahead).removesuffix(".") + left_out
    option = plan.options[0]
    values = (
        f"{metric.name} {with_unit(table.value(0, column), metric.unit)}" for column, metric in enumerate(table.metrics)
    )
    return (
        f"{option.name}: {', '.join(values)}. One option is no question: this tells which of several are worth having. "
        f"To compare it: paretoscout bench {shlex.quote(option.command)} 'ANOTHER COMMAND'"
    )


def outlook(campaign: Campaign) -> str:
    """Say how many more runs would decide what is undecided, and how long they take."""
    runs = 0.0 if campaign.decided else campaign.runs_ahead()
    if not (math.isfinite(runs) and runs > 0 and campaign.progress.runs):
        return ""
    seconds = runs * campaign.progress.seconds / campaign.progress.runs
    return f"about {counted(round(runs), 'more run')} would decide it, {rough_span(seconds)}"


def larger_eps(campaign: Campaign) -> str:
    """Say with which larger eps all is decided now, if there is one."""
    larger = None if campaign.decided else campaign.study.with_larger_eps()
    return "" if larger is None else answer.larger_eps(larger, _kinds(campaign.plan.sources))


def question(plan: Plan) -> str:
    """Return what a bench asks, in words: by its variables, or by the number of its commands."""
    measured = answer.joined([CALLED.get(source.name, source.name) for source in plan.sources])
    if len(plan.options) == 1:
        return f"What does {plan.options[0].name} take: {measured}?"
    variables = contexts_of(plan.options)
    if variables and math.prod(len(set(values)) for values in variables.values()) == len(plan.options):
        chosen = list(variables)
        what = chosen[0] if len(chosen) == 1 else f"combination of {answer.joined(chosen)}"
    else:
        what = f"of {len(plan.options)} commands"
    return f"Which {what} is worth having, by {measured}?"


def title(campaign: Campaign) -> str:
    """Return the title that somebody gave the bench, now or when it was begun; else nothing."""
    return campaign.plan.title or campaign.study.spec.title


def verdicts(campaign: Campaign) -> VerdictTable:
    """Return what is proven by now, as people act on it."""
    return replace(campaign.study.verdicts(), counted="runs")


def against(campaign: Campaign, standing: Standing, extra: Extra) -> str:
    """Say in words how the options compare with the reference; of many options the table says it alone."""
    if extra.reference is None:
        return ""
    by_option = beside(standing, extra.reference)
    if not by_option:
        return f"{extra.reference} was left out: nothing can be compared with it."
    others = {option: metrics for option, metrics in by_option.items() if option != extra.reference}
    if not others or len(others) > answer.MOST_REASONS:
        return ""
    said = (
        f"{option} {answer.joined([_multiple(source, metrics[source.name]) for source in campaign.plan.sources])}"
        for option, metrics in others.items()
    )
    return f"Beside {extra.reference}, {'; '.join(said)}."


def _multiple(source: Source, found: Beside) -> str:
    text = found.text()
    if found.value is None:
        return f"is not known in {source.name}"
    if not found.relative:
        return f"differs by {with_unit(text, source.metric.unit)} in {source.name}"
    verb, how = MULTIPLE.get(source.kind, ("has", f"the {source.name}"))
    same = how if source.kind in MULTIPLE else f"the same {source.name}"
    return f"{verb} {same if text == '1' else f'{text} times {how}'}"


def as_dict(campaign: Campaign, extra: Extra = NO_EXTRA) -> dict[str, Any]:
    """Return the standing of the study, and what only a bench knows, ready for JSON."""
    standing, sources = campaign.study.standing(), campaign.plan.sources
    table, runs = standing.table, raw_runs(campaign)
    return {
        **standing.as_dict(),
        "bench": {
            "question": title(campaign) or question(campaign.plan),
            "summary": summary(campaign, table),
            "runs_before": campaign.runs_before,
            "notes": campaign.unknowable(),
            "drift": campaign.drift(),
            "options": {
                option.name: {
                    "command": option.command,
                    "variables": dict(option.variables),
                    "reason": reason(table, table.arms.index(option.name), sources) or None
                    if option.name in table.arms
                    else None,
                }
                for option in campaign.plan.options
            },
            "reference": None if extra.reference is None else _reference(standing, extra.reference),
            "stats": {
                option: {source.name: stats_of(of_option, source.name) for source in sources}
                for option, of_option in runs.items()
            }
            if extra.stats
            else None,
            "runs": runs,
        },
    }


def _reference(standing: Standing, reference: str) -> dict[str, Any]:
    return {
        "option": reference,
        "options": {
            option: {metric: found.as_dict() for metric, found in metrics.items()}
            for option, metrics in beside(standing, reference).items()
        },
    }


def as_rows(campaign: Campaign, extra: Extra = NO_EXTRA) -> list[list[str]]:
    """Return the verdicts as a table of texts, with a header: option, verdict, why, metrics, runs, and more."""
    table, more = verdicts(campaign), columns_of(campaign, campaign.study.standing(), extra)
    units = [heading(metric.name, metric.unit) for metric in table.metrics]
    rows = [["option", "verdict", "why", *units, "runs", *(column.heading for column in more)]]
    for k in front_first(table):
        arm, why = table.arms[k], reason(table, k, campaign.plan.sources)
        cells = [table.value(k, column) for column in range(len(table.metrics))]
        added = [column.texts[arm] for column in more]
        rows.append([" ".join(arm.split()), _verdict(table, k), why, *cells, str(int(table.counts[k])), *added])
    return rows


def _verdict(table: VerdictTable, k: int) -> str:
    verdict = table.verdicts[k]
    linked = {"dominated": " by ", "same": " as "}.get(verdict)
    return f"{MARKS[verdict]} {verdict}" + (f"{linked}{table.rivals[k]}" if linked and table.rivals[k] else "")


def as_text(campaign: Campaign, form: str, extra: Extra = NO_EXTRA) -> str:
    """Return the result as json, csv or markdown."""
    if form == "json":
        return json.dumps(as_dict(campaign, extra), indent=2, allow_nan=False) + "\n"
    if form == "csv":
        out = io.StringIO()
        rows_of_cells = ([cell(x) if isinstance(x, str) else x for x in row] for row in _flat(campaign, extra))
        csv.writer(out, lineterminator="\n").writerows(rows_of_cells)
        return out.getvalue()
    header, *rows = ([markdown(text) for text in row] for row in as_rows(campaign, extra))
    table = verdicts(campaign)
    warned = [f"Warning: {warning}" for warning in table.warnings]
    said = [summary(campaign, table), against(campaign, campaign.study.standing(), extra), *warned]
    said.append(f"Guarantee: {table.guarantee}")
    above = f"**{markdown(title(campaign))}**\n\n" if title(campaign) else ""
    below = "".join(f"\n{markdown(text)}\n" for text in said if text)
    return f"{above}{markdown_table(header, rows)}\n{below}"


def _flat(campaign: Campaign, extra: Extra) -> list[list[Any]]:
    """Return a row of plain values for each option, with a header; of a metric, its value and interval."""
    standing = campaign.study.standing()
    table, more = standing.table, columns_of(campaign, standing, extra)
    names = [f"{metric.name}{what}" for metric in table.metrics for what in ("", "_low", "_high")]
    rows: list[list[Any]] = [
        ["option", "verdict", "rival", "reason", *names, "runs", *(name for column in more for name in column.names)]
    ]
    for k, option in enumerate(table.as_dict()["options"]):
        numbers = [
            number
            for metric in table.metrics
            for number in rounded(
                [option["estimates"][metric.name][end] for end in ("value", "low", "high")],
                EXACT_DIGITS if metric.exact else DIGITS,
            )
        ]
        why = reason(table, k, campaign.plan.sources)
        added = [number for column in more for number in column.numbers[option["option"]]]
        rows.append([*(option[key] for key in ("option", "verdict", "rival")), why, *numbers, option["n"], *added])
    return rows
