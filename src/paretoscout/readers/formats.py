"""All formats that are known, in the order in which they are tried: by content, never by the name of a file."""

from __future__ import annotations

from ..errors import InvalidInput
from . import (
    criterion,
    google_benchmark,
    hyperfine,
    inspect_ai,
    jmh,
    lm_eval,
    mlflow,
    optuna,
    promptfoo,
    pytest_benchmark,
)
from .contract import Format, Source

#: Those that can be read.
READ = (
    *(promptfoo.FORMAT, inspect_ai.FORMAT, pytest_benchmark.FORMAT, hyperfine.FORMAT, google_benchmark.FORMAT),
    *(mlflow.FORMAT, optuna.FORMAT, jmh.FORMAT, lm_eval.FORMAT, criterion.FORMAT),
)


def _refused(name: str, is_it: object, why: str) -> Format:
    return Format(name, is_it, refused=why)  # type: ignore[arg-type]


#: Those that cannot: they have only summaries, or nobody wrote a reader.
REFUSED = (
    _refused(
        "hyperfine",
        lambda source: source.starts("command", "mean", "stddev"),
        "its CSV file has only summaries; hyperfine --export-json FILE keeps every run",
    ),
    _refused(
        "promptfoo",
        promptfoo.csv_is_it,
        "its CSV file has neither latency nor cost; promptfoo eval -o FILE.json has all of it",
    ),
    _refused(
        "lm-evaluation-harness",
        lambda source: source.has("results", "configs", "n-shot"),
        "it has only means; lm_eval --log_samples keeps samples_TASK_DATE.jsonl",
    ),
    _refused(
        "Locust",
        lambda source: source.starts("Type", "Name", "Request Count"),
        "it has only summaries, and Locust keeps no single requests",
    ),
    _refused(
        "CodSpeed",
        lambda source: source.has("benchmarks", "creator", "instrument"),
        "it has only statistics, no single runs",
    ),
    _refused(
        "asv",
        lambda source: source.has("commit_hash", "result_columns"),
        "there is no reader for it yet; write the samples into a CSV file, a row for each",
    ),
    _refused(
        "k6",
        lambda source: source.items_have("type", "metric") or source.starts("metric_name", "timestamp", "metric_value"),
        "there is no reader for it yet; write the points into a CSV file, a row for each",
    ),
)


def format_of(source: Source) -> Format | None:
    """Return whose file it is; None: a plain CSV file. What nobody knows is refused."""
    for form in (*READ, *REFUSED):
        if form.is_it(source):
            return form
    if source.kind == "csv":
        return None
    known = ", ".join(form.name for form in READ)
    what = {
        "json": "JSON",
        "lines": "JSON lines",
        "sqlite": "an SQLite file",
        "zip": "a zip file",
        "folder": "a folder",
    }[source.kind]
    keys = f" (its keys: {', '.join(map(str, list(source.value)[:8]))})" if isinstance(source.value, dict) else ""
    raise InvalidInput(f"{source} must be a CSV file, or a result of {known}; it is {what} of something else{keys}")
