"""hyperfine: `--export-json FILE`. Versions 1.12 to 1.20; the file has no version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import checks
from ..errors import InvalidInput
from ..frames import check_rows
from ..shown import counted
from .contract import Format, Found, Measure, Record, Roles, Source, labels_of, member, numbers, text

NAMES = ("command",)


def is_it(source: Source) -> bool:
    """Whether the only key is `results`, whose items have a command and a mean."""
    if not source.has("results") or len(source.value) != 1 or not isinstance(source.value["results"], list):
        return False
    return all(isinstance(item, dict) and {"command", "mean"} <= item.keys() for item in source.value["results"])


def read(source: Source) -> Found:
    """Take every run of every command, in milliseconds; a run that failed is no measurement."""
    records = []
    commands = member(source.value, "results", list, str(source))
    checks.at_most(f"commands of {source}", checks.MOST_OPTIONS, len(commands), "compare fewer at a time")
    series = [item.get("times") for item in commands]
    check_rows(sum(len(times) for times in series if isinstance(times, list)), str(source), "runs")
    for place, item in enumerate(commands):
        where = f"results[{place}] of {source}"
        if not item.get("times"):
            raise InvalidInput(
                f"{where} must have 'times', the runs one by one: hyperfine --export-json keeps them, unless they were "
                "taken out of the file"
            )
        times, codes = numbers(item["times"], f"'times' of {where}"), item.get("exit_codes") or []
        parameters = item.get("parameters") or {}
        labels = {name: text(value) for name, value in parameters.items()} if isinstance(parameters, dict) else {}
        labels["command"] = member(item, "command", str, where)
        for run, seconds in enumerate(times):
            failed = run < len(codes) and codes[run] not in (0, None)
            records.append(Record(labels, {} if failed else {"time": 1000.0 * seconds}, failed=failed))
    left_out = ["user, system: hyperfine keeps only their means"]
    if any("memory_usage_byte" in item for item in source.value["results"]):
        left_out.append("memory: it is the largest of all commands so far, not of each (paretoscout bench measures it)")
    return Found(records, {"time": Measure("min", "ms", "2%")}, left_out, interleaved=False)


def roles(records: Sequence[Record]) -> Roles:
    """An option is its parameters; or its command, which `hyperfine -n` names."""
    parameters = tuple(name for name in labels_of(records) if name != "command")
    named = {tuple(record.labels.get(name, "") for name in parameters) for record in records}
    commands = {record.labels["command"] for record in records}
    return Roles(parameters if parameters and len(named) == len(commands) else NAMES)


def as_json(options: Mapping[str, Sequence[float]]) -> dict[str, list[dict[str, object]]]:
    """Return runs in seconds, by option, as hyperfine writes them, for whatever shows its files."""
    import statistics

    results: list[dict[str, object]] = []
    for name, times in options.items():
        if not times:
            raise InvalidInput(f"{name!r} must have at least one run to be exported, got {counted(0, 'run')}")
        results.append(
            {
                "command": name,
                "mean": statistics.fmean(times),
                "stddev": statistics.stdev(times) if len(times) > 1 else None,
                "median": statistics.median(times),
                "user": 0.0,
                "system": 0.0,
                "min": min(times),
                "max": max(times),
                "times": list(times),
                "exit_codes": [0] * len(times),
            }
        )
    return {"results": results}


FORMAT = Format("hyperfine", is_it, "timed", read, roles, more="hyperfine --runs 40")
