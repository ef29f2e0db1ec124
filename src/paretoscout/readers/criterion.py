"""criterion.rs: the folder `target/criterion`, or `raw.csv` (feature csv_output). Written for 0.3.6 to 0.8."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from ..frames import check_rows, text_of
from .contract import SECONDS, Format, Found, Measure, Record, Roles, Source, member, numbers, text
from .files import below, csv_rows, json_of

HEADER = ("group", "function", "value")


def samples_in(folder: Path) -> list[Path]:
    """Return the files of the latest samples below a folder; those in `base` are of the run before."""
    return [path for path in below(folder, "sample.json") if path.parent.name == "new"]


def is_it(source: Source) -> bool:
    """Whether it is a folder with samples, one of these, or the table of one."""
    if source.kind == "folder":
        return bool(samples_in(source.path))
    if source.starts(*HEADER):
        return "sample_measured_value" in source.value
    return source.has("sampling_mode", "iters", "times")


def read(source: Source) -> Found:
    """Take every sample, in nanoseconds for one iteration."""
    if source.kind == "csv":
        return _of_csv(source)
    paths = samples_in(source.path) if source.kind == "folder" else [source.path]
    records, linear = [], False
    for path in paths:
        sample = json_of(text_of(path, "JSON"), str(path))
        labels = _labels(path)
        times = numbers(member(sample, "times", list, str(path)), f"'times' of {path}")
        iterations = numbers(member(sample, "iters", list, str(path)), f"'iters' of {path}")
        if len(times) != len(iterations) or min(iterations, default=0.0) <= 0.0:
            raise InvalidInput(f"{path} must have as many iters, above 0, as times ({len(times)})")
        linear |= sample.get("sampling_mode") == "Linear"
        records += [Record(labels, {"time": t / n}) for t, n in zip(times, iterations, strict=True)]
        check_rows(len(records), str(source), "samples")
    return Found(records, {"time": Measure("min", "ns", "2%")}, [], _assumed(linear), interleaved=False)


def _assumed(linear: bool) -> list[str]:
    return ["samples of criterion as equally noisy, though later ones are means of more iterations"] if linear else []


def _labels(path: Path) -> dict[str, str]:
    """What `benchmark.json` beside a sample says of it; without it, its folders."""
    beside = path.parent / "benchmark.json"
    try:
        about: Any = json_of(text_of(beside, "JSON"), str(beside)) if beside.exists() else {}
    except OSError:
        about = {}
    if not isinstance(about, dict) or not about.get("group_id"):
        return {"function": path.parent.parent.name}
    labels = {"function": text(about.get("function_id") or about["group_id"])}
    return labels | ({"value": text(about["value_str"])} if about.get("value_str") else {})


def _of_csv(source: Source) -> Found:
    records, unit = [], ""
    for line, row in csv_rows(source):
        try:
            value, n = float(row["sample_measured_value"]), float(row["iteration_count"])
            per_iteration = value / n
        except (KeyError, ValueError, ZeroDivisionError):
            per_iteration = math.nan
        if not math.isfinite(per_iteration):
            raise InvalidInput(f"line {line} of {source} must have a value and a count of iterations, finite numbers")
        unit = row.get("unit") or unit
        labels = {"function": row["function"] or row["group"]} | ({"value": row["value"]} if row.get("value") else {})
        records.append(Record(labels, {"time": per_iteration}))
    return Found(records, {"time": Measure("min", unit if unit in SECONDS else "", "2%")}, [], _assumed(True))


def roles(records: Sequence[Record]) -> Roles:
    """Options are functions, and values are inputs; of one function its values are options."""
    several = len({record.labels["function"] for record in records}) > 1
    return Roles(("function",), ("value",)) if several else Roles(("value",))


FORMAT = Format("criterion.rs", is_it, "timed", read, roles, called="samples", more="--sample-size 100")
