"""promptfoo: `promptfoo eval -o FILE.json` or `.jsonl`. Versions of the results 2 and 3."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..errors import InvalidInput
from ..frames import check_rows
from .contract import Format, Found, Measure, Record, Roles, Source, finite, labels_of, member, text, varying

#: `failureReason` of an answer that never came; 1: an assertion failed.
ERROR = 2
VERSIONS = (2, 3)
#: What a named score cannot be called.
OWN = ("score", "cost", "latency", "tokens", "success")


def is_it(source: Source) -> bool:
    """Whether it is an evaluation, or lines of its results."""
    if source.has("evalId", "results"):
        return True
    return source.items_have("promptIdx", "testIdx", "latencyMs")


def read(source: Source) -> Found:
    """Take every answer: its score, what it cost, how long it took; errors are failures, not zeros."""
    left_out, notes = list[str](), list[str]()
    if source.has("evalId", "results"):
        results = member(source.value, "results", dict, str(source))
        if results.get("version") not in VERSIONS:
            notes.append(f"results.version of {source} is {results.get('version')!r}: read as version 3")
        rows = member(results, "results", list, f"results of {source}")
    else:
        rows = source.value if source.kind == "lines" else [source.value]
    check_rows(len(rows), str(source), "results")
    records, cached, named = [], 0, dict[str, None]()
    for place, row in enumerate(rows):
        where = f"result {place} of {source}"
        labels = {
            "provider": _provider(member(row, "provider", (dict, str), where)),
            "prompt": _prompt(row, where),
            "vars": _canonical(row, where),
        }
        failed = row.get("failureReason") == ERROR
        response = row["response"] if isinstance(row.get("response"), dict) else {}
        tokens = row.get("tokenUsage") if isinstance(row.get("tokenUsage"), dict) else {}
        values: dict[str, Any] = {"success": bool(row.get("success"))}
        if not failed:
            scores = row["namedScores"] if isinstance(row.get("namedScores"), dict) else {}
            scores = {name if name not in OWN else f"score {name}": value for name, value in scores.items()}
            named |= dict.fromkeys(scores)
            values |= {"score": row.get("score"), "cost": row.get("cost"), "tokens": (tokens or {}).get("total")}
            values |= scores
            if response.get("cached"):
                cached += 1
            else:
                values["latency"] = row.get("latencyMs")
        known = {name: number for name, value in values.items() if (number := finite(value)) is not None}
        if response.get("cached"):
            labels["cached"] = "yes"
        records.append(Record(labels, known, failed=failed))
    if cached:
        left_out.append(f"latency of {cached:,} answers that came from the cache")
    measures = {
        "score": Measure("max", "", 0.02, bounds=(0.0, 1.0)),
        "cost": Measure("min", "$", "2%"),
        "latency": Measure("min", "ms", "5%"),
        "tokens": Measure("min", "", "2%", usual=not any(record.values.get("cost") for record in records)),
        "success": Measure("max", "", 0.02, usual=False, bounds=(0.0, 1.0)),
        **{name: Measure("max", "", 0.02, usual=False, bounds=(0.0, 1.0)) for name in named},
    }
    assumed = ["latency as it was with several requests at a time"] if cached < len(records) else []
    return Found(records, measures, left_out, assumed, notes)


def _provider(value: Any) -> str:
    if isinstance(value, str):
        return value
    return text(value.get("label") or value.get("id") or "provider")


def _prompt(row: Any, where: str) -> str:
    prompt = row.get("prompt")
    label = prompt.get("label") if isinstance(prompt, dict) else None
    return text(label) if label else f"prompt {member(row, 'promptIdx', int, where)}"


def _canonical(row: Any, where: str) -> str:
    """What a prompt was filled with; repeats of a test have a number of their own, so that says nothing."""
    given = member(row, "vars", dict, where)
    case = row.get("testCase")
    about = text(case["description"]) if isinstance(case, dict) and case.get("description") else ""
    if len(given) == 1 and not about:
        [(name, value)] = given.items()
        return f"{name}={value if isinstance(value, str) else json.dumps(value, sort_keys=True)}"
    said = json.dumps(given, sort_keys=True, ensure_ascii=False) if given else ""
    return " ".join(filter(None, [about, said])) or "the only test"


def roles(records: Sequence[Record]) -> Roles:
    """Options are providers, prompts, or both: what differs. They are compared on the same variables."""
    if "vars" not in labels_of(records):
        raise InvalidInput("results of promptfoo must have vars")
    return Roles(varying(records, ("provider", "prompt")) or ("provider",), ("vars",))


def csv_is_it(source: Source) -> bool:
    """Whether it is the CSV export: a column for each prompt, its cells begin with [PASS] or [FAIL]."""
    return source.kind == "csv" and any(column.startswith("[") and "] " in column for column in source.value)


FORMAT = Format("promptfoo", is_it, "answers", read, roles, called="answers", more="more tests, or --repeat 3")
