"""lm-evaluation-harness: `--output_path DIR --log_samples`, the files `samples_TASK_DATE.jsonl`. Written for 0.4.13."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ..errors import InvalidInput
from .contract import Format, Found, Measure, Record, Roles, Source, finite, member, text, varying

#: The name of a file of samples: its task, and the date that its results have, too.
NAMED = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-.*)")


def is_it(source: Source) -> bool:
    """Whether it has a document in each line."""
    return source.items_have("doc_id", "metrics", "doc_hash")


def read(source: Source) -> Found:
    """Take the score of every document, of one filter; the model is named by the results beside it."""
    rows = source.value if source.kind == "lines" else [source.value]
    filters = list(dict.fromkeys(row.get("filter", "none") for row in rows if isinstance(row, dict)))
    named = NAMED.fullmatch(source.path.stem)
    task = named["task"] if named else "task"
    about = _results(source, named["date"] if named else "")
    model = text(about.get("model_name") or source.path.absolute().parent.name)
    better = about["higher_is_better"].get(task) if isinstance(about.get("higher_is_better"), dict) else None
    records, skipped = [], dict[str, None]()
    measures: dict[str, Measure] = {}
    for place, row in enumerate(rows):
        where = f"line {place + 1} of {source}"
        values: dict[str, float] = {}
        for name in member(row, "metrics", list, where):
            number = finite(row.get(name))
            if number is None:
                skipped[name] = None
                continue
            values[name] = number
            up = better.get(name) if isinstance(better, dict) else None
            measures.setdefault(
                name, Measure(None if up is None else "max" if up else "min", "", 0.02, bounds=(0.0, 1.0))
            )
        if row.get("filter", "none") == filters[0]:
            labels = {"model": model, "task": task, "document": member(row, "doc_hash", str, where)}
            records.append(Record(labels, values))
    left_out = [f"{name}: it is made of all documents together" for name in skipped if name not in measures]
    if len(filters) > 1:
        left_out.append(f"filter {', '.join(map(str, filters[1:]))}: only {filters[0]} counts")
    if not any(record.values for record in records):
        raise InvalidInput(f"{source} has no score of single documents, only {', '.join(skipped) or 'none'}")
    return Found(records, measures, left_out)


def _results(source: Source, date: str) -> dict[str, Any]:
    """Return the results that were written with the samples, if they are there."""
    try:
        found = json.loads((source.path.parent / f"results_{date}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def roles(records: Sequence[Record]) -> Roles:
    """Options are models; they are compared on the same documents."""
    return Roles(("model",), (*varying(records, ("task",)), "document"))


FORMAT = Format("lm-evaluation-harness", is_it, "answers", read, roles, called="documents")
