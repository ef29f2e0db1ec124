"""The report of a bench as one page that needs nothing else."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from .. import __version__
from ..notebook import picture
from ..shown import MARKS, counted, markup
from . import report
from .campaign import Campaign
from .columns import Extra


def as_html(campaign: Campaign, extra: Extra = report.NO_EXTRA, command: str = "") -> str:
    """Return the question, the answer, a picture, verdicts, commands, and what it rests on.

    command: the command line that makes it again.
    """
    table, standing = report.verdicts(campaign), campaign.study.standing()
    so_far = " so far" if "undecided" in table.verdicts else ""
    notes = [
        *table.remarks,
        *(f"Warning: {warning}" for warning in table.warnings),
        report.larger_eps(campaign),
        *campaign.unknowable(),
        *campaign.drift(),
        *(f"{each.option} {each.reason}" for each in standing.withdrawn),
    ]
    answer = [
        f"Worth having{so_far}: {len(table.front)} of {len(campaign.plan.options)} options.",
        report.summary(campaign, table, report.outlook(campaign)),
        report.against(campaign, standing, extra),
    ]
    head, body = _table(report.as_rows(campaign, extra))
    commands = {option.name: option.command for option in campaign.plan.options}
    return PAGE.format(
        title=markup(report.title(campaign) or report.question(campaign.plan)),
        answer="".join(f"<p>{markup(text)}</p>" for text in answer if text),
        made=_listed(made(command)),
        picture=picture("front", table),
        head=head,
        body=body,
        guarantee=markup(str(table.guarantee)),
        commands="".join(
            f"<dt>{markup(name)}</dt><dd><code>{markup(text)}</code></dd>" for name, text in commands.items()
        ),
        remarks="".join(f"<p class='note'>{markup(note)}</p>" for note in notes if note),
    )


def _table(rows: list[list[str]]) -> tuple[str, str]:
    """Return the header and the body of the table of verdicts; why an option is dominated stands below its verdict."""
    kinds = {mark: verdict for verdict, mark in MARKS.items()}
    head = "".join(f"<th>{markup(cell)}</th>" for column, cell in enumerate(rows[0]) if column != 2)
    body = "".join(
        f'<tr class="{kinds[verdict[0]]}"><td>{markup(name)}</td>'
        f"<td>{markup(verdict)}<small>{markup(why)}</small></td>"
        + "".join(f"<td>{markup(cell)}</td>" for cell in numbers)
        + "</tr>"
        for name, verdict, why, *numbers in rows[1:]
    )
    return head, body


def _listed(facts: dict[str, str]) -> str:
    return "".join(
        f"<dt>{what}</dt><dd>{f'<code>{markup(text)}</code>' if what == 'Made by' else markup(text)}</dd>"
        for what, text in facts.items()
        if text
    )


def made(command: str) -> dict[str, str]:
    """Return when, where and by what a report was made."""
    return {
        "Date": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "Machine": f"{processor()}, {counted(os.cpu_count() or 1, 'core')}, {system()}",
        "Versions": f"paretoscout {__version__}, Python {platform.python_version()}",
        "Made by": command,
    }


def processor() -> str:
    """Return what the processor calls itself."""
    if sys.platform == "darwin":
        asked = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (value.strip() for key, _, value in (line.partition(":") for line in lines) if key.strip() == "model name")
    return next(named, "") or platform.processor() or platform.machine()


def system() -> str:
    """Return the name of the system, and of its kernel."""
    kernel = f"{platform.system()} {platform.release()}"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {kernel}"
    except (OSError, KeyError):
        return kernel


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.6rem; line-height: 1.3; margin-bottom: .3rem; overflow-wrap: anywhere; }}
p {{ max-width: 48rem; overflow-wrap: anywhere; margin: .5rem 0; }}
svg {{ width: 100%; height: auto; background: white; }}
.wide {{ overflow-x: auto; margin: 1.5rem 0; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: left; padding: .4rem 0 .4rem 1.2rem; border-bottom: 1px solid #8884; vertical-align: top; }}
th:first-child, td:first-child {{ padding-left: 0; }}
th:nth-child(n+3), td:nth-child(n+3) {{ text-align: right; white-space: nowrap; }}
td small {{ display: block; }}
tr.front {{ font-weight: 600; }} tr.dominated, tr.same {{ opacity: .7; }}
code {{ font-size: .9rem; overflow-wrap: anywhere; }} dt {{ font-weight: 600; margin-top: .5rem; }} dd {{ margin: 0; }}
dl.made {{ display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .9rem; opacity: .8; }}
dl.made dt {{ margin: 0; }}
p.small, p.note {{ font-size: .9rem; opacity: .8; }}
</style></head><body>
<h1>{title}</h1>
{answer}
<dl class="made">{made}</dl>
{picture}
<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>
{remarks}
<p class="small">Guarantee: {guarantee}</p>
<details><summary>Commands</summary><dl>{commands}</dl></details>
</body></html>
"""
