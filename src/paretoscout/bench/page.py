"""The report of a bench as one page that needs nothing else."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from .. import __version__
from ..page import Column, Frame, Report, study_page, view_of
from ..shown import counted
from . import report
from .campaign import Campaign
from .columns import Extra, columns_of


def as_html(campaign: Campaign, extra: Extra = report.NO_EXTRA, command: str = "") -> str:
    """Return the page of the study, with the question of the bench, what only a bench knows, and how it was made.

    command: the command line that makes it again.
    """
    table, standing = report.verdicts(campaign), campaign.study.standing()
    so_far = " so far" if "undecided" in table.verdicts else ""
    said = [
        f"Worth having{so_far}: {len(table.front)} of {len(campaign.plan.options)} options.",
        report.summary(campaign, table, report.outlook(campaign)),
        report.against(campaign, standing, extra),
    ]
    notes = [report.larger_eps(campaign), *campaign.unknowable(), *campaign.drift()]
    columns = columns_of(campaign, standing, extra)
    view = view_of(
        campaign.study,
        kinds={source.name: source.kind for source in campaign.plan.sources},
        title=report.title(campaign) or report.question(campaign.plan),
        report=Report(
            said=tuple(filter(None, said)),
            notes=tuple(filter(None, notes)),
            made=tuple(made(command).items()),
            commands=tuple((option.name, option.command) for option in campaign.plan.options),
            columns=tuple(Column(column.heading, column.texts) for column in columns),
        ),
    )
    return study_page(view, frame=Frame(now=campaign.study.log.clock(), alone=True))


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
