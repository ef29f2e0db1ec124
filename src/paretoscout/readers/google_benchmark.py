"""Google Benchmark: `--benchmark_repetitions=N --benchmark_out=FILE`. Written for schema 1 (1.7 to 1.9)."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InvalidInput
from .contract import SECONDS, Format, Found, Measure, Record, Roles, Source, finite, member, text

#: Keys of a row that are no counters of the user.
KNOWN = (
    *("name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions", "repetition_index"),
    *("threads", "iterations", "real_time", "cpu_time", "time_unit", "label", "error_occurred", "error_message"),
    *("skipped", "skip_message", "aggregate_name", "aggregate_unit"),
)


def is_it(source: Source) -> bool:
    """Whether it has benchmarks and a context."""
    return source.has("benchmarks", "context")


def read(source: Source) -> Found:
    """Take every repetition, in nanoseconds for one iteration; aggregates are left out."""
    records, counters = [], dict[str, None]()
    for place, row in enumerate(member(source.value, "benchmarks", list, str(source))):
        where = f"benchmarks[{place}] of {source}"
        if member(row, "run_type", str, where) != "iteration":
            continue
        name, _, arguments = member(row, "run_name", str, where).partition("/")
        labels = {"benchmark": text(row.get("label") or name), **({"arguments": arguments} if arguments else {})}
        if row.get("error_occurred") or row.get("skipped"):
            records.append(Record(labels, {}, failed=True))
            continue
        unit = SECONDS.get(member(row, "time_unit", str, where), 0.0)
        if not unit:
            raise InvalidInput(f"'time_unit' of {where} must be one of ns, us, ms, s, got {row['time_unit']!r}")
        values = {
            "time": 1e9 * unit * member(row, "real_time", (int, float), where),
            "cpu": 1e9 * unit * member(row, "cpu_time", (int, float), where),
        }
        for key, value in row.items():
            if key not in KNOWN and (number := finite(value)) is not None:
                values[key], counters[key] = number, None
        records.append(Record(labels, values))
    if not records:
        raise InvalidInput(
            f"{source} has only aggregates: leave out --benchmark_report_aggregates_only, and say "
            "--benchmark_repetitions=20"
        )
    measures = {
        "time": Measure("min", "ns", "2%"),
        "cpu": Measure("min", "ns", "2%", usual=False),
        **{name: Measure("max" if name.endswith("_per_second") else None, usual=False) for name in counters},
    }
    debug = source.value["context"].get("library_build_type") if isinstance(source.value["context"], dict) else None
    notes = ["the library of Google Benchmark is a debug build"] if debug == "debug" else []
    return Found(records, measures, notes=notes)


def roles(records: Sequence[Record]) -> Roles:
    """Options are benchmarks, and their arguments are inputs; of one benchmark its arguments are options."""
    several = len({record.labels["benchmark"] for record in records}) > 1
    return Roles(("benchmark",), ("arguments",)) if several else Roles(("arguments",))


FORMAT = Format(
    "Google Benchmark", is_it, "timed", read, roles, called="repetitions", more="--benchmark_repetitions=40"
)
