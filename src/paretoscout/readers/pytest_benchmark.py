"""pytest-benchmark: `--benchmark-json=FILE`. Written for 5.3; there is no number of the schema."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InvalidInput
from ..frames import check_rows
from .contract import Format, Found, Measure, Record, Roles, Source, finite, labels_of, member, numbers, text, varying


def is_it(source: Source) -> bool:
    """Whether it has benchmarks and the machine they ran on."""
    return source.has("benchmarks", "machine_info")


def read(source: Source) -> Found:
    """Take every round of every test, in microseconds for one iteration."""
    records, measures = [], {"time": Measure("min", "µs", "2%")}
    once: dict[str, None] = {}
    for place, item in enumerate(member(source.value, "benchmarks", list, str(source))):
        where = f"benchmarks[{place}] of {source}"
        stats = member(item, "stats", dict, where)
        if "data" not in stats:
            raise InvalidInput(
                f"{source} has only summaries, no rounds: write it with pytest --benchmark-json=FILE, or add "
                "--benchmark-save-data to --benchmark-save and --benchmark-autosave"
            )
        parameters = item.get("params") or {}
        test = member(item, "fullname", str, where)
        bare = test.split("[")[0] if parameters else test
        labels = {"test": bare, **{f"{name}": text(value) for name, value in parameters.items()}}
        extra = item.get("extra_info")
        beside = {
            name: number
            for name, value in (extra.items() if isinstance(extra, dict) else ())
            if name != "time" and not isinstance(value, bool) and (number := finite(value)) is not None
        }
        once |= dict.fromkeys(beside)
        for seconds in numbers(stats["data"], f"'data' of {where}"):
            records.append(Record(labels, {"time": 1e6 * seconds, **beside}))
        check_rows(len(records), str(source), "rounds")
    measures |= {name: Measure(None, usual=False) for name in once}
    left_out = [
        f"{name}: one number for a test, not one for a round; where it is certain, say -m {name}:min --exact {name}"
        for name in once
    ]
    assumed = ["rounds are as many as pytest-benchmark chose beforehand, by its calibration"]
    return Found(records, measures, left_out, assumed, interleaved=False)


def roles(records: Sequence[Record]) -> Roles:
    """One test: its parameters are the options. Several with the same parameters: tests are, parameters are inputs."""
    tests = varying(records, ["test"])
    parameters = varying(records, [name for name in labels_of(records) if name != "test"])
    if not tests and len(parameters) == 1:
        return Roles(parameters)
    if not parameters:
        return Roles(("test",))
    named = {tuple(record.labels.get(name) for name in parameters) for record in records}
    cells = {(record.labels["test"], *(record.labels.get(name) for name in parameters)) for record in records}
    if tests and len(cells) == len({record.labels["test"] for record in records}) * len(named):
        return Roles(("test",), parameters)
    return Roles(())  # ask


FORMAT = Format(
    "pytest-benchmark", is_it, "timed", read, roles, called="rounds", more="pytest --benchmark-min-rounds=40"
)
