"""What came out of a bench, for people and for programs."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..guarantee import difference
from ..notebook import picture
from ..shown import MARKS, cell, heading, markdown, markdown_table, markup
from ..statement import Metric
from ..verdicts import VerdictTable
from .campaign import Campaign
from .metrics import Source

#: How people say that one option is worse than another; others are "worse in NAME".
WORSE = {"time": "slower", "size": "larger", "rss": "hungrier for memory", "user": "slower in user time"}
EQUAL = {"time": "no faster", "size": "no smaller", "rss": "no leaner", "user": "no faster in user time"}
#: Up to so many dominated options the summary says why each of them is.
MOST_REASONS = 3


def sentence(table: VerdictTable, sources: Sequence[Source]) -> str:
    """Say in one sentence what came out; where many are dominated, why the first of them is."""
    front = list(table.front)
    undecided = [arm for arm, verdict in zip(table.arms, table.verdicts, strict=True) if verdict == "undecided"]
    parts = []
    if front:
        parts.append(
            f"{_listed(front)} {'is' if len(front) == 1 else 'are'} the front" + (" so far" if undecided else "")
        )
    lost = [
        (arm, f"by {rival}: {why}")
        for k, (arm, rival) in enumerate(zip(table.arms, table.rivals, strict=True))
        if (why := reason(table, k, sources))
    ]
    if len(lost) <= MOST_REASONS:
        parts.extend(f"{arm} is dominated {why}" for arm, why in lost)
    else:
        parts.append(f"{len(lost)} are dominated, such as {lost[0][0]} {lost[0][1]}")
    if undecided:
        parts.append(f"{_listed(undecided)} {'is' if len(undecided) == 1 else 'are'} undecided")
    return ("; ".join(parts) or "no option keeps its limits") + "."


def reason(table: VerdictTable, k: int, sources: Sequence[Source]) -> str:
    """Say by how much a dominated option is worse than the one that dominates it; nothing of others."""
    rival = table.rivals[k]
    if table.verdicts[k] != "dominated" or rival is None:
        return ""
    j = table.arms.index(rival)
    said = []
    for column, source in enumerate(sources):
        lag = -source.metric.sign * float(table.centres[k, column] - table.centres[j, column])
        if lag <= source.metric.tolerance or lag == 0:
            said.append(EQUAL.get(source.kind, f"no better in {source.name}"))
        else:
            said.append(f"{WORSE.get(source.kind, f'worse in {source.name}')} by {_amount(lag, source.metric)}")
    return " and ".join(said) if len(said) < 3 else ", ".join(said[:-1]) + " and " + said[-1]


def _amount(lag: float, metric: Metric) -> str:
    ratio = math.exp(lag) if metric.relative else 0.0
    return difference(lag, metric) if ratio < 2 else f"a factor of {ratio:.{1 if ratio < 10 else 0}f}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def verdicts(campaign: Campaign) -> VerdictTable:
    """Return what is proven by now, as people act on it."""
    return replace(campaign.study.verdicts(), counted="runs")


def as_dict(campaign: Campaign) -> dict[str, Any]:
    """Return the standing of the study, and what only a bench knows, ready for JSON."""
    standing, sources = campaign.study.standing(), campaign.plan.sources
    table = standing.table
    return {
        **standing.as_dict(),
        "bench": {
            "summary": sentence(table, sources),
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
        },
    }


def as_rows(campaign: Campaign) -> list[list[str]]:
    """Return the verdicts as a table of texts, with a header: option, verdict, why, metrics, runs."""
    sources = campaign.plan.sources
    table = verdicts(campaign)
    units = [heading(metric.name, metric.unit) for metric in table.metrics]
    rows = [["option", "verdict", "", *units, "runs"]]
    sign = table.metrics[0].sign
    order = sorted(
        range(len(table.arms)), key=lambda k: (list(MARKS).index(table.verdicts[k]), -sign * table.estimates[k, 0])
    )
    for k in order:
        why = reason(table, k, sources)
        verdict = f"{MARKS[table.verdicts[k]]} {table.verdicts[k]}" + (f" by {table.rivals[k]}" if why else "")
        cells = [table.value(k, column) for column in range(len(sources))]
        rows.append([" ".join(table.arms[k].split()), verdict, why, *cells, str(int(table.counts[k]))])
    return rows


def as_text(campaign: Campaign, form: str) -> str:
    """Return the result as json, csv or markdown."""
    if form == "json":
        return json.dumps(as_dict(campaign), indent=2, allow_nan=False) + "\n"
    if form == "csv":
        out = io.StringIO()
        rows_of_cells = ([cell(x) if isinstance(x, str) else x for x in row] for row in _flat(campaign))
        csv.writer(out, lineterminator="\n").writerows(rows_of_cells)
        return out.getvalue()
    header, *rows = ([markdown(text) for text in row] for row in as_rows(campaign))
    return f"{markdown_table(header, rows)}\n\n{markdown(sentence(verdicts(campaign), campaign.plan.sources))}\n"


def _flat(campaign: Campaign) -> list[list[Any]]:
    """Return a row of plain values for each option, with a header; of a metric, its value and interval."""
    columns = [f"{s.name}{what}" for s in campaign.plan.sources for what in ("", "_low", "_high")]
    rows = [["option", "verdict", "rival", "reason", *columns, "runs"]]
    said = as_dict(campaign)
    for option in said["options"]:
        numbers = [metric[end] for metric in option["estimates"].values() for end in ("value", "low", "high")]
        why = said["bench"]["options"][option["option"]]["reason"]
        rows.append([*(option[key] for key in ("option", "verdict", "rival")), why or "", *numbers, option["n"]])
    return rows


def as_html(campaign: Campaign) -> str:
    """Return one page that needs nothing else: summary, picture, verdicts, commands, and what it rests on."""
    rows = as_rows(campaign)
    head = "".join(f"<th>{markup(cell)}</th>" for column, cell in enumerate(rows[0]) if column != 2)
    kinds = {mark: verdict for verdict, mark in MARKS.items()}
    body = "".join(
        f'<tr class="{kinds[verdict[0]]}"><td>{markup(name)}</td>'
        f"<td>{markup(verdict)}<small>{markup(why)}</small></td>"
        + "".join(f"<td>{markup(cell)}</td>" for cell in numbers)
        + "</tr>"
        for name, verdict, why, *numbers in rows[1:]
    )
    table = verdicts(campaign)
    commands = "".join(
        f"<dt>{markup(option.name)}</dt><dd><code>{markup(option.command)}</code></dd>"
        for option in campaign.plan.options
    )
    notes = [
        *table.remarks,
        *campaign.unknowable(),
        *campaign.drift(),
        *(f"{each.option} {each.reason}" for each in campaign.study.standing().withdrawn),
    ]
    remarks = "".join(f"<p class='note'>{markup(note)}</p>" for note in notes if note)
    so_far = " so far" if "undecided" in table.verdicts else ""
    return PAGE.format(
        title=f"Worth having{so_far}: {len(table.front)} of {len(table.arms)} options",
        summary=markup(sentence(table, campaign.plan.sources)),
        picture=picture("front", table),
        head=head,
        body=body,
        guarantee=markup(str(table.guarantee)),
        commands=commands,
        remarks=remarks,
    )


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>paretoscout bench: {title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.6rem; line-height: 1.3; margin-bottom: .3rem; }}
p {{ max-width: 48rem; overflow-wrap: anywhere; }}
svg {{ width: 100%; height: auto; background: white; }}
.wide {{ overflow-x: auto; margin: 1.5rem 0; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: left; padding: .4rem 0 .4rem 1.2rem; border-bottom: 1px solid #8884; vertical-align: top; }}
th:first-child, td:first-child {{ padding-left: 0; }}
th:nth-child(n+3), td:nth-child(n+3) {{ text-align: right; white-space: nowrap; }}
td small {{ display: block; }}
tr.front {{ font-weight: 600; }} tr.dominated {{ opacity: .7; }}
code {{ font-size: .9rem; overflow-wrap: anywhere; }} dt {{ font-weight: 600; margin-top: .5rem; }} dd {{ margin: 0; }}
p.small, p.note {{ font-size: .9rem; opacity: .8; }}
</style></head><body>
<h1>{title}</h1>
<p>{summary}</p>
{picture}
<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>
{remarks}
<p class="small">Guarantee: {guarantee}</p>
<details><summary>Commands</summary><dl>{commands}</dl></details>
</body></html>
"""
