"""Result files of other tools as one value: a table of measurements, and what is to be known of it."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import checks
from ..errors import InvalidInput, ParetoscoutError, UnknownName
from ..frames import CSVTable, check_rows, read_csv
from ..guarantee import difference
from ..laws import FEW_VALUES
from ..shown import counted, heading, line
from ..statement import Metric
from ..verdicts import VerdictTable
from . import rows as timed
from .contract import (
    SECONDS,
    Format,
    Found,
    Measure,
    Record,
    Roles,
    Source,
    check_found,
    counted_failures,
    labels_of,
    varying,
)
from .files import opened
from .formats import format_of

#: Names of options and inputs are no longer than this.
LONGEST = 80
#: Labels that say all by themselves; others are shown with their names: level=6.
NAMES = ("command", "test", "provider", "prompt", "model", "benchmark", "function", "file", "vars", "sample", "plan")
#: Where options were compared within sessions, so many sessions are needed before anything can be proven, about.
FEWEST_SESSIONS = 20
#: In a table of fewer rows than this it cannot be told that a metric has few values.
ENOUGH_ROWS = 20
#: Of fewer rows of an option next to nothing can be proven.
FEWEST_ROWS = 16


@dataclass(frozen=True, eq=False)
class Reading:
    """Measurements from result files of other tools, ready for `analyze`, and what was taken of the files.

    table: columns "option", "block" (if options were measured on the same things), "order" (if rows follow each
    other), and the metrics.
    rows: what a row is: "answers", "runs", or, where runs follow each other, "sessions", "processes" or "batches".
    """

    tool: str
    sources: tuple[str, ...]
    table: Mapping[str, list[Any]]
    metrics: tuple[Metric, ...]
    option: tuple[str, ...]  # the labels that name an option
    inputs: tuple[str, ...]  # the labels that say on what it was measured
    rows: str
    counted: str  # what is counted, for people to read
    target: str | None  # what the answer is about, where there are blocks, as in `analyze`
    passing: bool  # whether blocks are sessions, which pass
    process: tuple[str, ...]  # of each row
    interleaved: bool | None  # whether options were measured in turns; None: the files do not say
    made_of: str  # what a row is made of, for people to read
    assumed: tuple[str, ...]  # what a guarantee rests on because of where the rows come from
    left_out: tuple[str, ...]  # what is in the files and was not taken, and why
    notes: tuple[str, ...]  # what to know before acting on verdicts
    more: str  # how to get more rows, for people to read
    withheld: str = ""  # why no verdict can be given; empty: one can

    def __len__(self) -> int:
        return len(self.table["option"])

    @property
    def options(self) -> tuple[str, ...]:
        """The options, in the order of the files."""
        return tuple(dict.fromkeys(self.table["option"]))

    @property
    def block(self) -> str | None:
        """The column of blocks, if there is one."""
        return "block" if "block" in self.table else None

    @property
    def time(self) -> str | None:
        """The column that gives the order of the rows, if they have one."""
        return "order" if "order" in self.table else None

    def stated(self, table: VerdictTable) -> VerdictTable:
        """Return verdicts with what they rest on because of where the rows come from; none, if these allow for none."""
        guarantee = replace(table.guarantee, assumptions=(*table.guarantee.assumptions, *self.assumed))
        table = replace(table, guarantee=guarantee, counted=self.counted)
        if self.rows == "batches":  # what neighbours have in common is counted in the variance
            table = replace(table, concerns=tuple(each for each in table.concerns if each.kind != "spells"))
        return table.without_verdicts(self.withheld) if self.withheld else table

    @property
    def taken(self) -> list[tuple[str, str]]:
        """What was taken as option, metric, repeat and block, for people to read."""
        files = self.sources[0] if len(self.sources) == 1 else f"{len(self.sources)} files, each a session of its own"
        if len(self.sources) > 1 and not self.passing and self.rows != "batches":
            files = f"{len(self.sources)} files"
        said = [("file", f"{files} ({self.tool})"), ("option", " and ".join(self.option))]
        for metric in self.metrics:
            better = "larger" if metric.direction == "max" else "smaller"
            eps = (
                f"{difference(metric.tolerance, metric)} does not matter" if metric.eps else "every difference matters"
            )
            exact = ", certain" if metric.exact else ""
            said.append(("metric", f"{heading(metric.name, metric.unit)}: {better} is better, {eps}{exact}"))
        if self.inputs:
            said.append(("on", " and ".join(self.inputs)))
        said.append(("row", self.made_of))
        return said

    def lines(self) -> list[str]:
        """What was taken, what was left out and what to know, a line for each."""
        wide = max(len(name) for name, _ in self.taken)
        said = [f"{name.ljust(wide)}  {text}" for name, text in self.taken]
        said += [f"left out: {text}" for text in self.left_out]
        return [line(text) for text in [*said, *(f"note: {text}" for text in self.notes)]]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "tool": self.tool,
            "files": list(self.sources),
            "option": list(self.option),
            "inputs": list(self.inputs),
            "rows": self.rows,
            "row": self.made_of,
            "n_rows": len(self),
            "interleaved": self.interleaved,
            "assumed": list(self.assumed),
            "left_out": list(self.left_out),
            "notes": list(self.notes),
            "withheld": self.withheld or None,
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True, eq=False)
class Measurements:
    """All that is in some files of one tool, before anybody chose what to take."""

    form: Format
    sources: tuple[str, ...]
    found: tuple[Found, ...]

    @cached_property
    def records(self) -> list[Record]:
        """All measurements of all files."""
        return [record for found in self.found for record in found.records]

    @cached_property
    def values(self) -> dict[str, list[float]]:
        """The numbers of each metric."""
        values: dict[str, list[float]] = {}
        for record in self.records:
            for name, number in record.values.items():
                values.setdefault(name, []).append(number)
        return values

    @cached_property
    def measures(self) -> dict[str, Measure]:
        """What is known of all metrics that have numbers."""
        known: dict[str, Measure] = {}
        for found in self.found:
            known = {**found.measures, **known}
        return {name: measure for name, measure in known.items() if name in self.values}

    @property
    def where(self) -> str:
        """What the files are called in messages."""
        return self.sources[0] if len(self.sources) == 1 else f"{self.sources[0]} and {len(self.sources) - 1} more"

    def usual_metrics(self, roles: Roles | None = None) -> tuple[list[Metric], list[str]]:
        """Return the metrics that are taken unless told otherwise, and why others are not."""
        chosen, why, more = [], list[str](), list[str]()
        measured, having = set[str](), dict[str, set[str]]()
        for option, record in self._named(roles) if roles else []:
            for name in record.values:
                measured.add(option)
                having.setdefault(name, set()).add(option)
        for name, measure in self.measures.items():
            values = self.values[name]
            if not measure.usual or measure.direction is None:
                more.append(f"{name}{':min' if measure.direction is None else ''}")
            elif min(values) == max(values) and len(self.measures) > 1:
                why.append(f"{name}: it is {values[0]:g} in all rows")
            elif having.get(name, measured) < measured:
                why.append(f"{name}: some options have none")
            elif self.form.nature == "answers" and self._few(measure, values):
                taken = f"-m {shlex.quote(name)} --exact {shlex.quote(name)}"
                why.append(f"{name}: so few different values are no normal noise; {taken} takes it as certain")
            else:
                chosen.append(self.metric(name))
        stated = {each.partition(":")[0] for found in self.found for each in found.left_out}
        more = [name for name in more if name.partition(":")[0] not in stated]
        return chosen, [*why, *([f"{', '.join(more)}: not usual; -m {shlex.quote(more[0])} takes it"] if more else [])]

    @staticmethod
    def _few(measure: Measure, values: Sequence[float]) -> bool:
        """Return True if `analyze` would refuse a metric for its few values, unless more is said of it."""
        return measure.bounds is None and len(values) >= ENOUGH_ROWS and len(set(values)) <= FEW_VALUES

    def metric(self, name: str, direction: str | None = None) -> Metric:
        """Return a metric as the format knows it."""
        known = self.measures
        if name not in known:
            raise UnknownName("metric", name, known, f"in {self.where}")
        measure = known[name]
        if direction is None and measure.direction is None:
            raise InvalidInput(
                f"{self.where} does not say whether {name} should be small or large: say -m {name}:min or -m {name}:max"
            )
        values = self.values[name]
        above = min(values) > 0.0
        eps = measure.eps if above or not isinstance(measure.eps, str) else None
        bounds = measure.bounds if len(set(values)) <= FEW_VALUES else None
        if bounds is not None and not bounds[0] <= min(values) <= max(values) <= bounds[1]:
            bounds = None
        return Metric(name, direction or measure.direction or "max", eps=eps, unit=measure.unit, bounds=bounds)

    def roles(self, option: str | None, block: str | None) -> Roles:
        """Return what names an option and what it was measured on: as told, else as the format has it."""
        records, labels = self.records, labels_of(self.records)

        def told(what: str, text: str) -> tuple[str, ...]:
            names = (text,) if text in labels else tuple(part.strip() for part in text.split(","))
            for name in names:
                if name not in labels:
                    raise UnknownName(f"column in {what}:", name, labels, f"in {self.where}")
            return names

        usual = Roles(()) if self.form.roles is None else self.form.roles(records)
        names = usual.option if option is None else told("--arm", option)
        if not names:
            vary = varying(records, labels)
            if not vary:
                raise InvalidInput(
                    f"{self.where} must have at least two options, but nothing in it differs: one option has nothing "
                    "to be compared with. Name the files of all options"
                )
            raise InvalidInput(
                f"{self.where} has several things that differ ({', '.join(vary)}): say which name the option (--arm "
                f"{vary[0]}), the others say on what it was measured; several names have commas between them"
            )
        if block is not None:
            return Roles(names, told("--block", block))
        if self.form.nature != "timed":
            return Roles(names, tuple(name for name in usual.inputs if name not in names))
        within: dict[tuple[str | None, ...], list[Record]] = {}
        for record in records:
            within.setdefault(tuple(record.labels.get(name) for name in names), []).append(record)
        others = [name for name in labels if name not in names]
        return Roles(names, tuple(name for name in others if any(varying(own, [name]) for own in within.values())))

    def _named(self, roles: Roles) -> list[tuple[str, Record]]:
        shown = Names()
        return [(shown(record.labels, roles.option), record) for record in self.records]

    def reading(
        self,
        option: str | None = None,
        block: str | None = None,
        metrics: Sequence[Metric] | None = None,
        rows: str | None = None,
        beside: Mapping[str, Mapping[str, float]] | None = None,
        why: Sequence[str] = (),
    ) -> Reading:
        """Return what was measured as a table; see `read`. why: metrics that were not taken, and why."""
        roles = self.roles(option, block)
        left_out = list(dict.fromkeys([*(text for found in self.found for text in found.left_out), *why]))
        if metrics is None:
            usual, why = self.usual_metrics(roles)
            metrics, left_out = usual, [*left_out, *why]
        if not metrics:
            known = ", ".join(self.measures) or "none"
            raise InvalidInput(
                f"{self.where} ({self.form.name}) does not say which metrics count, and which way: say it with "
                f"-m NAME:min or -m NAME:max; there are: {known}"
            )
        return _Taking(self, roles, list(metrics), left_out, dict(beside or {})).reading(rows)


class Names:
    """Names of options and inputs as people can read them: one line, not too long, and different where labels are."""

    def __init__(self) -> None:
        self.taken: dict[str, tuple[str, ...]] = {}
        self.known: dict[tuple[str, ...], str] = {}

    def __call__(self, labels: Mapping[str, str], of: Sequence[str]) -> str:
        raw = tuple(labels.get(name, "–") for name in of)
        if raw not in self.known:
            alone = len(of) == 1
            parts = [each if name in NAMES else f"{name}={each}" for name, each in zip(of, raw, strict=True)]
            shown = _short(line(parts[0] if alone else " / ".join(parts)))
            number = 1
            while shown in self.taken:  # blanks at the ends, or what was cut off, told them apart
                number += 1
                shown = f"{_short(line(' / '.join(parts)))} #{number}"
            self.taken[shown], self.known[raw] = raw, shown
        return self.known[raw]


def _short(text: str) -> str:
    """Return a name of at most so many letters; what was cut off is told apart by a few digits."""
    text = " ".join(text.split()) or "(no name)"
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - 8].rstrip()}… {hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:6]}"


class _Taking:
    """Makes a reading of what is in files, step by step."""

    def __init__(
        self,
        given: Measurements,
        roles: Roles,
        metrics: list[Metric],
        left_out: list[str],
        beside: dict[str, Mapping[str, float]],
    ) -> None:
        self.given, self.roles, self.metrics, self.left_out = given, roles, metrics, left_out
        self.beside = beside
        self.columns = list(dict.fromkeys([*(metric.name for metric in metrics), *given.measures, *beside]))
        self.notes = list(dict.fromkeys(text for found in given.found for text in found.notes))
        self.assumed = list(dict.fromkeys(text for found in given.found for text in found.assumed))
        options, inputs = Names(), Names()
        self.runs: list[timed.Run] = []
        self.cached: list[bool] = []
        failed, total = Counter[str](), Counter[str]()
        asked = {metric.name for metric in metrics} - beside.keys()
        for session, found in enumerate(given.found):
            for record in found.records:
                name, on = options(record.labels, roles.option), inputs(record.labels, roles.inputs)
                total[name] += 1
                failed[name] += record.failed
                if record.failed and not asked <= record.values.keys():
                    continue
                self.cached.append(record.labels.get("cached") == "yes")
                self.runs.append(timed.Run(name, on, session, record.process, self._values(name, record)))
        if any(failed.values()):
            said = counted_failures({name: n for name, n in failed.items() if n}, total)
            self.left_out.append(f"{said}: failed, so no measurement")
            self.assumed.append(f"about {given.form.called} that do not fail; left out: {said}")
            gone = [name for name in total if failed[name] == total[name] and not asked <= {"success"}]
            for name in gone:
                self.notes.append(f"{name} failed always, so it is no option")
        checks.at_most(f"options of {given.where}", checks.MOST_OPTIONS, len(total), "compare fewer at a time")
        if not self.runs:
            raise InvalidInput(f"{given.where} must have measurements that did not fail, got none")
        if len(there := dict.fromkeys(run.option for run in self.runs)) < 2:
            labels = [name for name in labels_of(given.records) if name not in ("cached",)]
            raise InvalidInput(
                f"{given.where} must have at least two options, got {', '.join(there)}: one option has nothing to be "
                f"compared with. Name the files of all options, or say what names an option (--arm): "
                + ", ".join(labels)
            )

    def _values(self, name: str, record: Record) -> dict[str, float]:
        values = dict(record.values)
        for metric, numbers in self.beside.items():
            if name not in numbers:
                raise UnknownName("option", name, numbers, f"in the table beside {self.given.where}, for {metric}")
            values[metric] = numbers[name]
        for taken in self.metrics:
            had = self.given.measures[taken.name].unit if taken.name in self.given.measures else ""
            if had in SECONDS and taken.unit != had and taken.name in values:
                if taken.unit not in SECONDS:
                    units = ", ".join(SECONDS)
                    raise InvalidInput(f"unit of {taken.name} must be one of {units}, got {taken.unit!r}")
                values[taken.name] *= SECONDS[had] / SECONDS[taken.unit]
        return values

    def reading(self, rows: str | None) -> Reading:
        """Return what is asked for, by the nature of the format."""
        nature = self.given.form.nature
        if nature != "timed" and rows is not None:
            raise InvalidInput(
                f"--rows must be left out with results of {self.given.form.name}: its rows do not follow each "
                f"other, got {rows!r}"
            )
        made = {"timed": lambda: self._timed(rows), "answers": self._answers, "runs": self._runs}[nature]()
        form = self.given.form
        where = {"tool": form.name, "sources": self.given.sources, "metrics": tuple(self.metrics), "more": form.more}
        roles = {"option": self.roles.option, "inputs": self.roles.inputs}
        interleaved = {found.interleaved for found in self.given.found}
        said = {"assumed": tuple(self.assumed), "left_out": tuple(self.left_out), "notes": tuple(self.notes)}
        turns = interleaved.pop() if len(interleaved) == 1 else None
        return Reading(**{**where, **roles, **made, **said, "interleaved": turns})

    def _table(self, runs: Iterable[timed.Run], **more: list[Any]) -> dict[str, list[Any]]:
        kept = list(runs)
        cells = {name: [run.values.get(name) for run in kept] for name in self.columns}
        return {"option": [run.option for run in kept], **more, **cells}

    def _answers(self) -> dict[str, Any]:
        """Each option did the same tasks: they are its blocks, and the mean of repeats counts."""
        seen: set[tuple[str, str]] = set()
        before, kept, stale = -1, list[timed.Run](), 0
        fresh: set[tuple[str, str]] = set()
        for run, cached in zip(self.runs, self.cached, strict=True):
            if run.session != before:
                before, seen = run.session, seen | fresh
            if cached and (run.option, run.on) in seen:
                stale += 1
                continue
            fresh.add((run.option, run.on))
            kept.append(run)
        if stale:
            self.left_out.append(f"{counted(stale, 'answer')} that the cache repeated from a file before")
        missing = [
            f"{metric.name} in {n:,} of {len(kept):,}"
            for metric in self.metrics
            if (n := sum(metric.name not in run.values for run in kept))
        ]
        if missing:
            self.notes.append(f"some {self.given.form.called} lack a number, and do not count: {', '.join(missing)}")
        if self.roles.inputs and not missing:
            on = " and ".join(self.roles.inputs)
            self.notes.append(f"the answer is about all {on} there could be; --target list asks about exactly these")
        blocks = [run.on for run in kept] if self.roles.inputs else None
        per_cell = len(kept) / max(len({(run.option, run.on) for run in kept}), 1)
        repeats = f", {per_cell:.3g} of each, of which the mean counts" if per_cell > 1.01 else ""
        on = f" on {' and '.join(self.roles.inputs)}" if self.roles.inputs else ""
        return {
            "table": self._table(kept, **({} if blocks is None else {"block": blocks})),
            "rows": "answers",
            "counted": self.given.form.called,
            "target": None,
            "passing": False,
            "process": tuple(str(run.session) for run in kept),
            "made_of": f"what an option gave{on}{repeats}; options are compared on the same",
        }

    def _runs(self) -> dict[str, Any]:
        """Each row is an experiment of its own; options that were run with the same seeds are compared on these."""
        on: dict[str, Counter[str]] = {}
        for run in self.runs:
            on.setdefault(run.option, Counter())[run.on] += 1
        shared = bool(self.roles.inputs) and len({frozenset(own.items()) for own in on.values()}) == 1
        if self.roles.inputs and not shared:
            names = " and ".join(self.roles.inputs)
            self.notes.append(f"{names}: options do not have the same ones, so runs are taken as independent")
        if len(once := [name for name, own in on.items() if sum(own.values()) == 1]):
            few = "every option" if len(once) == len(on) else f"{len(once):,} of {len(on):,} options"
            self.notes.append(f"{few} ran only once: nothing can be proven of what was never repeated")
        more = {"block": [run.on for run in self.runs]} if shared else {"order": list(range(len(self.runs)))}
        return {
            "table": self._table(self.runs, **more),
            "rows": "runs",
            "counted": "runs",
            "target": "population" if shared else None,
            "passing": shared,
            "process": tuple(str(number) for number in range(len(self.runs))),
            "made_of": "a run" + (f"; options are compared by {' and '.join(self.roles.inputs)}" if shared else ""),
        }

    def _timed(self, rows: str | None) -> dict[str, Any]:
        """Runs followed each other in a process, so they are not independent."""
        runs = self._on_all_inputs(self._whole_sessions())
        sessions = list(dict.fromkeys(run.session for run in runs))
        several = len(sessions) > 1
        rows = rows or timed.usual_rows(runs)
        if rows not in timed.ROWS:
            raise InvalidInput(f"--rows must be one of {', '.join(timed.ROWS)}, got {rows!r}")
        if rows == "sessions" and not several:
            raise InvalidInput("--rows sessions must go with several files: each is a session, got one")
        if rows == "processes" and timed.usual_rows(runs) == "batches":
            raise InvalidInput(
                f"--rows processes must go with files that say which process made a run, got {self.given.form.name}: "
                "name several files, each is a session"
            )
        relative = {metric.name: metric.relative for metric in self.metrics}
        made = timed.rows_of(runs, rows, {name: relative.get(name, False) for name in self.columns})
        more: dict[str, list[Any]] = {"order": list(range(len(made.option)))}
        if rows == "sessions":
            more = {"block": [f"session {session + 1}" for session in made.session]}
        nan = {name: [None if value != value else value for value in values] for name, values in made.values.items()}
        return {
            "table": {"option": made.option, **more, **nan},
            "rows": rows,
            "counted": rows,
            "target": "population" if rows == "sessions" else None,
            "passing": rows == "sessions",
            "process": tuple(str(session) for session in made.session),
            "made_of": self._made_of(rows, made, len(sessions)),
            "withheld": self._withheld(made),
        }

    def _whole_sessions(self) -> list[timed.Run]:
        """Leave out sessions that do not have all options: what differs between sessions would count for options."""
        options = {run.option for run in self.runs}
        there: dict[int, set[str]] = {}
        for run in self.runs:
            there.setdefault(run.session, set()).add(run.option)
        whole = {session for session, own in there.items() if own == options}
        if not whole:
            got = " and ".join(f"{_few(there[k])} in {self.given.sources[k]}" for k in list(there)[:2])
            raise InvalidInput(
                "each file must have all options, because nobody can tell what differs between sessions from what "
                f"differs between options; got {got}: measure all of them in each session, in turns (paretoscout bench "
                "does)"
            )
        for session in there.keys() - whole:
            lacks = _few(options - there[session])
            self.left_out.append(f"{self.given.sources[session]}: it lacks {lacks}")
        return [run for run in self.runs if run.session in whole]

    def _on_all_inputs(self, runs: list[timed.Run]) -> list[timed.Run]:
        """Leave out inputs that some option was not measured on."""
        on: dict[str, set[tuple[str, int]]] = {}
        for run in runs:
            on.setdefault(run.on, set()).add((run.option, run.session))
        all_of_them = {(run.option, run.session) for run in runs}
        lacking = {name for name, own in on.items() if own != all_of_them}
        self.left_out += [f"{name}: not all options were measured on it" for name in on if name in lacking]
        kept = [run for run in runs if run.on not in lacking]
        if not kept:
            raise InvalidInput(
                f"{self.given.where} must have something on which all options were measured, got none: say what names "
                f"an option (--arm) and on what it was measured (--block)"
            )
        if len(on) > 1:
            self.assumed.append(
                f"the mean over {len({run.on for run in kept})} inputs counts, each as much as the others"
            )
        return kept

    def _made_of(self, rows: str, made: timed.Timed, n_sessions: int) -> str:
        """Say what a row is, and what that means for the verdict."""
        form, n = self.given.form, len(made.option) // len(set(made.option))
        called = form.called
        within = "this session" if n_sessions == 1 else f"these {n_sessions} sessions"
        if rows == "sessions":
            self.assumed.append("each file is a session of its own, independent of the others")
            if n_sessions < FEWEST_SESSIONS:
                self.notes.append(
                    f"{n_sessions} sessions prove little, about {FEWEST_SESSIONS} are needed; --rows batches says what "
                    "holds within these sessions"
                )
            return "the mean of a session; options are compared within sessions"
        again = "another session, process or machine may differ"
        if rows == "processes":
            self.assumed.append(f"within {within}: processes as independent; {again}")
            if n < FEWEST_ROWS:
                self.notes.append(
                    f"{n} processes of an option prove little, about 20 are needed ({form.more}); --rows "
                    f"batches says what holds within this session"
                )
            return f"the mean of a process, {n} of each option"
        if rows == "runs":
            self.assumed.append(f"within {within}: {called} in a row as independent, as --rows runs says; {again}")
            return f"one of the {called}, taken as independent though they follow each other"
        row = (
            f"one of the {called}"
            if made.size == 1
            else f"the mean of a batch of up to {made.size:,} {called} in a row"
        )
        row = f"{row}, {n} of each option{' or more' if len(set(Counter(made.option).values())) > 1 else ''}"
        tested = {metric.name: made.alike[metric.name] for metric in self.metrics if metric.name in made.alike}
        seen = "" if tested else ", which so few cannot show"
        self.assumed.append(f"within {within}: {called} in a row as independent{seen}; {again}")
        if n < FEWEST_ROWS:
            self.notes.append(f"{n} {called} of an option prove little, about 20 are needed ({form.more})")
        elif found := {name: r for name, r in tested.items() if 0.0 < r < timed.MOST}:
            self.assumed.pop()
            said = ", ".join(f"{r:.2f} in {name}" for name, r in found.items())
            self.assumed.append(
                f"within {within}: {called} in a row depend on each other no more than seen (correlation of neighbours "
                f"up to {said}), which the variance counts; {again}"
            )
            self.notes.append(f"{called} that follow each other are alike (correlation up to {said}): this is counted")
        return row

    def _withheld(self, made: timed.Timed) -> str:
        """Say why no verdict can be given, if rows depend on each other too much."""
        worst = {metric.name: made.alike.get(metric.name, 0.0) for metric in self.metrics}
        name = max(worst, key=lambda each: worst[each])
        if worst[name] < timed.MOST:
            return ""
        of = self.given.form.called if made.size == 1 else f"means of {made.size:,} {self.given.form.called} in a row"
        return (
            f"No verdict is given: {of} that follow each other may be too much alike in {name} (correlation up to "
            f"{min(worst[name], 1.0):.2f}), so noise cannot be told from slow changes of the machine. Measure the "
            "options in turns (paretoscout bench does), or in several sessions."
        )


def _few(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:3]) + (f" and {len(ordered) - 3} more" if len(ordered) > 3 else "")


def find(paths: Sequence[str | Path], option: str | None = None) -> Measurements | None:
    """Return what is in result files of a tool; None: it is one plain CSV file, or has a column of options."""
    if not paths:
        raise InvalidInput("read must be given at least one file, got none")
    sources = [opened(path) for path in paths]
    if len(sources) == 1 and sources[0].kind == "csv" and option in sources[0].value:
        return None
    forms = [format_of(source) for source in sources]
    if len(sources) == 1 and forms[0] is None:
        return None
    for source, form in zip(sources, forms, strict=True):
        if form is None:
            raise InvalidInput(f"several files must be results of one tool, but {source} is a plain CSV file")
        if form is not forms[0]:
            first = forms[0].name if forms[0] else ""
            raise InvalidInput(f"several files must be results of one tool, got {first} and {form.name} ({source})")
    form = forms[0]
    if form is None or form.read is None:
        raise InvalidInput(f"{sources[0]} is of {form.name if form else 'nobody'}: {form.refused if form else ''}")
    found = list[Found]()
    for source in sources:
        found.append(_read_by(form, source))
        check_rows(
            sum(len(each.records) for each in found),
            str(paths[0]) if len(paths) == 1 else f"these {len(paths)} files",
            form.called,
        )
    for source, each in zip(sources, found, strict=True):
        if not each.records:
            raise InvalidInput(f"{source} must hold measurements, got none ({form.name})")
        if form.nature != "timed" and len(sources) > 1:
            for record in each.records:
                record.labels["file"] = source.path.name
    return Measurements(form, tuple(line(str(source)) for source in sources), tuple(found))


def _read_by(form: Format, source: Source) -> Found:
    """Read a file by its format; what is not as the tool writes it is refused."""
    try:
        found: Found = form.read(source)  # type: ignore[misc]
        check_found(found, str(source))
        return found
    except ParetoscoutError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as problem:
        what = f"{type(problem).__name__}: {checks.got(str(problem))}"
        raise InvalidInput(f"{source} must be as {form.name} writes it, but something in it is not: {what}") from None


def read(
    *paths: str | Path,
    option: str | None = None,
    block: str | None = None,
    metrics: Mapping[str, str] | Sequence[str | Metric] | None = None,
    rows: str | None = None,
    beside: str | Path | None = None,
) -> Reading:
    """Read result files of another tool; which one is told by what is in them.

    paths: files of one tool; each is a run of its own. Tools: promptfoo, Inspect, pytest-benchmark, hyperfine, Google
    Benchmark, MLflow, Optuna, JMH, lm-evaluation-harness, criterion.rs.
    option, block: which of the labels in the files name an option, and say on what it was measured, if not the usual
    ones; several have commas between them.
    metrics: which to take: names, or `Metric` objects, or {name: "min" or "max"}. None: the usual ones of the tool.
    rows: where runs follow each other, what a row is: "sessions", "processes", "batches" or "runs". None: a session if
    there are several files, else a process if there are several, else a batch of runs.
    beside: a CSV file with a column "option" and numbers that are certain of each, such as sizes; name them in metrics.

    What comes back goes into `analyze`.
    """
    found = find(paths)
    if found is None:
        raise InvalidInput(
            f"{paths[0]} is a plain CSV file: give it to paretoscout analyze with --arm and -m, or read it as a frame"
        )
    numbers = None if beside is None else numbers_beside(beside)
    return found.reading(option, block, stated(found, metrics, numbers), rows, numbers)


def stated(
    found: Measurements,
    metrics: Mapping[str, str] | Sequence[str | Metric] | None,
    beside: Mapping[str, Any] | None = None,
) -> list[Metric] | None:
    """Return metrics as somebody named them."""
    if metrics is None:
        return None
    given = dict(metrics) if isinstance(metrics, Mapping) else dict.fromkeys(metrics)
    named = []
    for each, direction in given.items():
        if isinstance(each, Metric):
            if each.name not in found.measures and each.name not in (beside or {}):
                raise UnknownName("metric", each.name, [*found.measures, *(beside or {})], f"in {found.where}")
            named.append(each if each.unit or each.name not in found.measures else _with_unit(each, found))
        elif beside and each in beside:
            if direction is None:
                raise InvalidInput(f"metric {each} must come with a direction: min or max")
            named.append(Metric(each, direction, exact=True))
        else:
            named.append(found.metric(each, direction))
    return named


def _with_unit(metric: Metric, found: Measurements) -> Metric:
    return replace(metric, unit=found.measures[metric.name].unit)


def numbers_beside(path: str | Path) -> dict[str, dict[str, float]]:
    """Return the numbers of a table that are certain of each option, by metric and option."""
    table: CSVTable = read_csv(path)
    if "option" not in table or len(table) < 2:
        raise InvalidInput(f"{path} must have a column 'option' and a column for each metric, got {', '.join(table)}")
    names = table["option"]
    if len(set(names)) < len(names):
        twice = next(name for name, n in Counter(names).items() if n > 1)
        raise InvalidInput(f"{path} must have a row for each option, got {twice!r} twice")
    from ..frames import Columns

    columns = Columns(table, str(path))
    return {name: dict(zip(names, columns.numbers(name).tolist(), strict=True)) for name in table if name != "option"}
