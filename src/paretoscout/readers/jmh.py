"""JMH: `-rf json -rff FILE`. Written for 1.37."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InvalidInput
from ..frames import check_rows
from .contract import Format, Found, Measure, Record, Roles, Source, labels_of, member, numbers, text, varying

#: Modes in which more is better; in all others it is a time.
THROUGHPUT = "thrpt"


def is_it(source: Source) -> bool:
    """Whether it is a list of benchmarks with the version of JMH."""
    items = source.value if source.kind == "json" and isinstance(source.value, list) else []
    return bool(items) and all(isinstance(item, dict) and "primaryMetric" in item for item in items)


def read(source: Source) -> Found:
    """Take every iteration of every fork: the mean of very many calls. Forks are processes."""
    records, measures, modes = [], dict[str, Measure](), set()
    for place, item in enumerate(source.value):
        where = f"[{place}] of {source}"
        mode, units = member(item, "mode", str, where), dict[str, str]()
        modes.add(mode)
        labels = {"benchmark": member(item, "benchmark", str, where)}
        labels |= {name: text(value) for name, value in (item.get("params") or {}).items()}
        primary = member(item, "primaryMetric", dict, where)
        units["score"] = text(primary.get("scoreUnit", ""))
        series = {"score": _forks(primary, mode, f"primaryMetric of {where}")}
        for name, metric in (item.get("secondaryMetrics") or {}).items():
            if isinstance(metric, dict) and metric.get("rawData"):
                short = name.lstrip("·")
                series[short] = _forks(metric, mode, f"{name} of {where}")
                units[short] = text(metric.get("scoreUnit", ""))
        for name, unit in units.items():
            direction = None if name != "score" else "max" if mode == THROUGHPUT else "min"
            if name in measures and measures[name].unit != unit:
                raise InvalidInput(f"{where} must have the unit of the others, {measures[name].unit}, got {unit}")
            measures.setdefault(name, Measure(direction, unit, "2%", usual=name == "score"))
        for fork, iterations in enumerate(series["score"]):
            for run in range(len(iterations)):
                values = {
                    name: forks[fork][run]
                    for name, forks in series.items()
                    if fork < len(forks) and run < len(forks[fork])
                }
                records.append(Record(labels, values, process=str(fork)))
        check_rows(len(records), str(source), "iterations")
    if len(modes) > 1:
        raise InvalidInput(f"{source} must have one mode, got {', '.join(sorted(modes))}: they cannot be compared")
    return Found(records, measures, assumed=["warm-up as long enough"], interleaved=False)


def _forks(metric: Any, mode: str, where: str) -> list[list[float]]:
    """Return what each iteration of each fork gave; of histograms their means."""
    if metric.get("rawData"):
        return [numbers(fork, f"'rawData' of {where}") for fork in member(metric, "rawData", list, where)]
    if not metric.get("rawDataHistogram"):
        raise InvalidInput(f"{where} has no raw data: leave out -Djmh.json.rawData=false")
    forks = []
    for fork in member(metric, "rawDataHistogram", list, where):
        means = []
        for iteration in fork if isinstance(fork, list) else []:
            pairs = [numbers(pair, f"'rawDataHistogram' of {where}") for pair in iteration]
            means.append(sum(value * n for value, n in pairs) / sum(n for _, n in pairs))
        forks.append(means)
    return forks


def roles(records: Sequence[Record]) -> Roles:
    """Options are benchmarks, and their parameters are inputs; of one benchmark, its only parameter is the option."""
    if varying(records, ("benchmark",)):
        return Roles(("benchmark",))
    parameters = varying(records, [name for name in labels_of(records) if name != "benchmark"])
    return Roles(parameters if len(parameters) == 1 else ())


FORMAT = Format("JMH", is_it, "timed", read, roles, called="iterations", more="-f 20 (forks)")
