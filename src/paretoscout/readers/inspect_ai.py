"""Inspect: logs of `inspect eval`, as `.eval` or `.json`. Written for version 2 of the log."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ..errors import InvalidInput, MissingExtra
from ..frames import check_rows
from .contract import Format, Found, Measure, Record, Roles, Source, finite, labels_of, member, text, varying
from .files import json_of, unpacked

#: What letters and words count as a score.
LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
VERSION = 2
#: Compression of a member of a zip file that Python reads from 3.14 on.
ZSTANDARD = 93
#: Bytes that its window may take: what the tool writes has at most 8 MB.
MOST_WINDOW = 2**27


def is_it(source: Source) -> bool:
    """Whether it is a log: JSON, or a zip file with a header."""
    if source.kind == "zip":
        return bool({"header.json", "_journal/start.json"} & set(source.value))
    return source.has("version", "status", "eval", "plan")


def read(source: Source) -> Found:
    """Take every sample of every epoch: its scores, tokens, cost and time."""
    log, samples = _of_zip(source) if source.kind == "zip" else (source.value, source.value.get("samples"))
    if not samples:
        raise InvalidInput(
            f"{source} has no samples: keep them (inspect eval without --no-log-samples, and read_eval_log without "
            "header_only)"
        )
    check_rows(len(samples), str(source), "samples")
    about = member(log, "eval", dict, str(source))
    labels = {"model": member(about, "model", str, f"eval of {source}"), "task": text(about.get("task", "task"))}
    for group in ("task_args", "model_generate_config", "model_args"):
        given = about[group] if isinstance(about.get(group), dict) else {}
        labels |= {name: _short(value) for name, value in given.items() if value is not None}
    plan = log.get("plan")
    if isinstance(plan, dict):
        labels["plan"] = _short(plan.get("steps", plan))
    left_out, assumed, notes = list[str](), list[str](), list[str]()
    if log.get("version") != VERSION:
        notes.append(f"the version of {source} is {log.get('version')!r}: read as version {VERSION}")
    if log.get("status") != "success":
        assumed.append(f"{source.path.name} is of an evaluation that ended with status {log.get('status')!r}")
    records, scorers, cut = [], dict[str, None](), 0
    for place, sample in enumerate(samples):
        where = f"sample {place} of {source}"
        own = labels | {"sample": text(member(sample, "id", (str, int), where))}
        cut += bool(sample.get("limit"))
        if sample.get("error") or sample.get("invalidation"):
            records.append(Record(own, {}, failed=True))
            continue
        values = _scores(sample)
        scorers |= dict.fromkeys(values)
        usage = sample["model_usage"] if isinstance(sample.get("model_usage"), dict) else {}
        for name, key in (("tokens", "total_tokens"), ("cost", "total_cost")):
            spent = [finite(each.get(key)) for each in usage.values() if isinstance(each, dict)]
            values[name] = sum(n for n in spent if n is not None) if any(n is not None for n in spent) else None
        values["time"] = sample.get("working_time")
        known = {name: number for name, value in values.items() if (number := finite(value)) is not None}
        records.append(Record(own, known))
    if cut:
        assumed.append(f"{cut:,} samples of {source.path.name} that were cut off by a limit count as they are")
    measures = {
        **{name: Measure("max", "", 0.02, bounds=(0.0, 1.0)) for name in scorers},
        "cost": Measure("min", "$", "2%"),
        "tokens": Measure("min", "", "2%", usual=not any(record.values.get("cost") for record in records)),
        "time": Measure("min", "s", "5%"),
    }
    left_out.append("total_time: it has the waiting for others in it (time is working_time)")
    return Found(records, measures, left_out, assumed, notes)


def _scores(sample: Any) -> dict[str, Any]:
    """Scores by name; a mapping is several of them, a list or a text that is no letter is none."""
    found: dict[str, Any] = {}
    scores = sample["scores"] if isinstance(sample.get("scores"), dict) else {}
    for name, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else None
        parts = {f"{name} {key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
        for part, number in parts.items():
            number = LETTERS.get(number, number) if isinstance(number, str) else number
            if finite(number) is not None:
                found[part] = number
    return found


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _of_zip(source: Source) -> tuple[Any, Any]:
    """Return the header and the summaries of samples, which are small and hold all that is taken."""
    names = source.value
    if "header.json" not in names or "summaries.json" not in names:
        raise InvalidInput(f"{source} must have header.json and summaries.json: the evaluation did not end")
    return _member(source, "header.json"), _member(source, "summaries.json")


def _member(source: Source, name: str) -> Any:
    return json_of(unpacked(source.path, name, _of_zstandard), f"{name} of {source}")


def _of_zstandard(packed: bytes, member: zipfile.ZipInfo) -> bytes:
    """Unpack Zstandard, as far as the size of the member goes: a frame may say a false size, or none."""
    if member.compress_type != ZSTANDARD:
        raise ValueError(f"it must be packed by deflate or Zstandard, got method {member.compress_type}")
    most = member.file_size + 1
    try:
        if sys.version_info >= (3, 14):
            decompressor = import_module("compression.zstd").ZstdDecompressor()
            return bytes(decompressor.decompress(packed, max_length=most))
        zstandard = import_module("zstandard")
        with zstandard.ZstdDecompressor(max_window_size=MOST_WINDOW).stream_reader(packed) as stream:
            return bytes(stream.read(most))
    except ImportError:
        raise MissingExtra(
            "a .eval file (or write it as JSON: inspect log convert --to json --output-dir DIR FILE): its packing",
            "inspect",
        ) from None
    except Exception as problem:  # ZstdError of either package
        raise ValueError(problem) from None


def roles(records: Sequence[Record]) -> Roles:
    """Options are models; if there is one only, what else differs. They are compared on the same samples."""
    fixed = ("model", "task", "sample")
    several = varying(records, ("model",))
    others = varying(records, [name for name in labels_of(records) if name not in fixed])
    inputs = (*varying(records, ("task",)), "sample")
    return Roles(several or others or ("model",), inputs)


FORMAT = Format("Inspect", is_it, "answers", read, roles, called="samples", more="more samples")
