"""What clients of a server were told, to be compared with what is kept: nothing may be lost, and nothing doubled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from paretoscout.study import Study
from paretoscout.study.replica import Replica

#: Options that are alike: a study of them does not finish.
OPTIONS = [f"option {k}" for k in range(8)]
METRICS = {"quality": "max", "cost": "min"}


def outcome_of(trial: int, option: str) -> dict[str, float]:
    """A made-up outcome that depends on the trial and its option alone."""
    first = (trial * 2_654_435_761 + len(option)) % 10_007 / 10_007 - 0.5
    second = (trial * 40_503 + 7) % 9_973 / 9_973 - 0.5
    return {"quality": first, "cost": second}


@dataclass
class Ledger:
    """What one client was told: trials that it was given, and trials whose outcomes were taken. Of one study."""

    asked: list[tuple[int, str]] = field(default_factory=list)
    told: list[int] = field(default_factory=list)


@dataclass
class Faults:
    """What is wrong, and how often; all of them must be 0."""

    asks_lost: int = 0  # a client was given a trial that is not in the log, or is of another option there
    asks_doubled: int = 0  # two clients were given the same trial
    asks_of_nobody: int = 0  # a trial in the log that no client was given, though every request was answered
    outcomes_lost: int = 0  # taken, and not there
    outcomes_doubled: int = 0  # there more than once
    outcomes_changed: int = 0  # there with other values
    outcomes_of_nobody: int = 0  # there, and no client was told that it was taken
    holes: int = 0  # numbers of events that do not follow on one another
    replays_that_differ: int = 0  # the log gives another state than its snapshot and what came after it

    @property
    def total(self) -> int:
        return sum(vars(self).values())

    def __add__(self, other: Faults) -> Faults:
        return Faults(**{name: count + vars(other)[name] for name, count in vars(self).items()})


def faults(study: Study, exported: list[dict[str, Any]], ledgers: Iterable[Ledger], answered: bool = True) -> Faults:
    """Compare what is kept of a study with what its clients were told.

    exported: what the server exports, as JSON. answered: whether every request was, sooner or later.
    """
    kept, found = list(ledgers), Faults()
    log = list(study.storage.events(study.name))
    found.holes = sum(event.number != k for k, event in enumerate(log))
    asks = {event.number: event.body["arm"] for event in log if event.kind == "ask"}
    given = Counter(trial for ledger in kept for trial, _ in ledger.asked)
    found.asks_doubled = sum(times > 1 for times in given.values())
    found.asks_lost = sum(asks.get(trial) != option for ledger in kept for trial, option in ledger.asked)
    told = Counter(event.trial for event in log if event.kind == "tell")
    out = Counter(row["trial"] for row in exported)
    taken = Counter(trial for ledger in kept for trial in ledger.told)
    found.outcomes_lost = sum(told[trial] == 0 or out[trial] == 0 for trial in taken)
    found.outcomes_doubled = sum(max(told[trial], out[trial]) > 1 for trial in told | out)
    found.outcomes_changed = sum(row["values"] != outcome_of(row["trial"], row["arm"]) for row in exported)
    if answered:
        found.asks_of_nobody = sum(trial not in given for trial in asks)
        found.outcomes_of_nobody = sum(trial not in taken for trial in told)
    found.replays_that_differ = int(_replayed(study).dump() != _state_of(study))
    return found


def _replayed(study: Study) -> Replica:
    """The state from nothing but the log."""
    return study.log.as_of(study.storage.last(study.name))


def _state_of(study: Study) -> bytes:
    """The state from the last snapshot, and what came after it."""
    with study.log.reading() as replica:
        return replica.dump()
