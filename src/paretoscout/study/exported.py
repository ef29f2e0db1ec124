"""All measurements of a study as text, line by line: CSV, or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..shown import cell

if TYPE_CHECKING:
    from .study import Study


def csv_lines(study: Study) -> Iterator[str]:
    """Yield the lines of a CSV file: trial (empty: imported), arm, block if there are blocks, metrics, time.

    If there are outcomes that are no evidence because their trials were void, another column marks them.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    blocks = ["block"] if study.has_blocks else []
    late = study.late_trials()
    writer.writerow(["trial", "arm", *blocks, *map(cell, study.spec.columns), "at", *(["late"] if late else [])])
    for trial, arm, block, row, at in study.measurements():
        marked = ["late" if trial in late else ""] if late else []
        writer.writerow([trial, cell(arm), *([cell(block or "")] if blocks else []), *row, shown_time(at), *marked])
        yield text.getvalue()
        text.seek(0)
        text.truncate()
    yield text.getvalue()


def json_lines(study: Study) -> Iterator[str]:
    """Yield the lines of a JSON file: a list of objects with the same."""
    between, late = "[\n", study.late_trials()
    for trial, arm, block, row, at in study.measurements():
        told = {
            "trial": trial,
            "arm": arm,
            **({} if block is None else {"block": block}),
            "values": dict(zip(study.spec.columns, row, strict=True)),
            "at": shown_time(at),
            **({"late": True} if trial in late else {}),
        }
        yield between + json.dumps(told, allow_nan=False)
        between = ",\n"
    yield "[]\n" if between == "[\n" else "\n]\n"


def shown_time(at: float) -> str:
    """Return a time as people and programs read it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
