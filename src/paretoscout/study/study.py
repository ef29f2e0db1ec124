"""Study: real measurements, asked for and told one by one, in batches, late, twice or never."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks
from ..algorithms.contract import Settings
from ..defaults import DELTA, STORAGE
from ..diagnostics import FEWEST, Concern, examine
from ..errors import Conflict, InvalidInput, NameTaken, NotSupported, ParetoscoutError, UnknownName
from ..frames import Columns, frame_of
from ..problem import Metric
from ..storage import Event, Head, Storage, Writer, storage_of
from ..storage.forks import inside
from ..verdicts import VerdictTable
from .encoding import encode
from .outlook import Explanation, Remaining, explanation, remaining
from .replica import OUTCOMES, History, Replica, as_array, completed
from .spec import Guard, StudySpec, arm_names, make_spec

#: A snapshot is taken after so many events, or more where it is large: at most so many bytes an event on average.
SNAPSHOT_EVENTS = 1000
SNAPSHOT_BYTES_PER_EVENT = 200
#: Rows of imported data in one event.
ROWS_PER_EVENT = 5000
#: Outcomes beyond this are refused: their squares must be numbers too.
LARGEST = 1e100
#: Outcomes beyond this, in units of eps, are refused: their rounding alone would exceed it.
LARGEST_IN_EPS = 2.0**52
#: What was measured is examined for noise that the guarantee does not allow for when there is so much more of it, and
#: only the last so many events.
EXAMINED_AFTER, EXAMINED_EVENTS = 1.05, 5_000
#: So many trials are asked for at once, at most: others wait meanwhile.
MOST_ASKED = 10_000


@dataclass(frozen=True)
class Trial:
    """One measurement to make: its number, to tell the outcome by, and the arm to measure."""

    number: int
    arm: str


class Study:
    """A live problem whose outcomes come from outside, kept in durable storage.

    arms: names; or a frame (pandas, polars, pyarrow, dict of columns) with a column of names, "arm" or the first one.
    metrics: `Metric` objects, or {name: "min" or "max"}.
    delta: probability of error that is allowed.
    storage: "memory", a file name, "sqlite:///FILE" or "postgresql://..."; None: the variable PARETOSCOUT_STORAGE, else
        the file paretoscout.db in the working folder.
    name: of the study in its storage. If it is there already it is loaded; its settings must be the same, or left out.
    sigma: noise scale, one number, one per metric, or {name: number}; None: nobody knows it, and noise is normal.
    guards: limits that options must keep, "latency <= 200": those that break one for sure leave the front.
    contexts: columns of the frame of arms that may explain the means; categories are encoded, see `features`.
    algorithm: a name or a settings object, such as `algorithms.Scout(regret_weight=0.9)`.
    lease: seconds after which an ask that was not told is asked again.
    give_up: seconds (at least `lease`, and as many unless told) after which an outcome is kept, but is no evidence any
        more; None: never. What is promised is about measurements that end by then.
    at_give_up: what silence means, {"conversion": 0}: the outcome of a trial that was not told by then.
    order: "asked": outcomes count in the order in which they were asked for, those that come early wait; "told": you
        declare that how long a measurement takes has nothing to do with its outcome, and nothing waits.
    goal, budget: as in `simulate`.
    worker: who asks and tells here, kept with each event; None: the name of this machine and the number of the process.

    >>> study = Study(arms=["a", "b"], metrics={"quality": "max"}, sigma=0.01, storage="memory")
    >>> while not study.done:
    ...     trial = study.ask()
    ...     study.tell(trial, {"quality": 1.0 if trial.arm == "a" else 0.5})
    >>> study.front()
    ['a']
    """

    def __init__(
        self,
        arms: Any = None,
        metrics: Sequence[Metric] | Mapping[str, str] | None = None,
        *,
        delta: float = DELTA,
        storage: str | Path | Storage | None = None,
        name: str = "study",
        sigma: Any = None,
        guards: Sequence[str | Guard] = (),
        contexts: Sequence[str] = (),
        algorithm: str | Settings = "scout",
        seed: int = 0,
        lease: float = 3600.0,
        goal: str | int = "front",
        budget: int | None = None,
        give_up: float | str | None = "lease",
        at_give_up: Mapping[str, float] | None = None,
        order: str = "asked",
        clock: Callable[[], float] | None = None,
        worker: str | None = None,
    ) -> None:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InvalidInput(f"name of a study must be a text in one line, not empty, got {name!r}")
        if worker is not None and (not isinstance(worker, str) or not worker.isprintable() or len(worker) > 200):
            raise InvalidInput(f"worker of a study must be a text in one line, at most 200 characters, got {worker!r}")
        self.name, self._worker = name, worker
        self._lock = threading.RLock()
        self._replica: Replica | None = None
        self._mark = ""  # of the last event that the replica has seen
        self._snapshot_size = 0  # of the last one that was seen
        self._concerns: tuple[Concern, ...] = ()
        self._examined_again_at = FEWEST
        spec = None
        if arms is not None or metrics is not None:
            if arms is None or metrics is None:
                raise InvalidInput(
                    f"a new study must have arms and metrics, got only {'arms' if metrics is None else 'metrics'}"
                )
            checks.name("name of a study", name)
            names, features, rows = _arms(arms, contexts)
            spec = make_spec(
                arms=names,
                metrics=metrics,
                guards=guards,
                features=features,
                contexts=rows,
                algorithm=algorithm,
                delta=delta,
                sigma=sigma,
                seed=seed,
                lease=lease,
                goal=goal,
                budget=budget,
                give_up=give_up,
                at_give_up=at_give_up,
                order=order,
            )
        # only now: what is wrong leaves no file behind
        where = storage or os.environ.get("PARETOSCOUT_STORAGE") or STORAGE
        self.storage = storage_of(where, make=spec is not None)
        self._clock = clock or self.storage.now
        if spec is not None:
            self._create(spec)
        self._log = self.storage.head(name).log
        self.spec = StudySpec.of_text(self.storage.spec(name), name)
        self._columns = self.spec.columns
        eps = [metric.eps or np.inf for metric in self.spec.metrics]
        most = np.minimum(LARGEST * self.spec.units.scales, LARGEST_IN_EPS * np.array(eps))
        self._most = np.concatenate([most, np.full(len(self._columns) - len(most), LARGEST)])  # of each column
        if spec is not None and self.spec != spec:
            differ = [field for field, value in vars(spec).items() if getattr(self.spec, field) != value]
            raise InvalidInput(
                f"study {name!r} is there already, with other settings of {', '.join(differ)}: "
                "choose another name, or load it by its name alone"
            )

    @classmethod
    def load(cls, name: str = "study", storage: str | Path | Storage | None = None) -> Study:
        """Return a study that is there."""
        return cls(name=name, storage=storage)

    @property
    def worker(self) -> str:
        """Who asks and tells here, as it is kept with each event."""
        return f"{socket.gethostname()}:{os.getpid()}"[-200:] if self._worker is None else self._worker

    def _create(self, spec: StudySpec) -> None:
        try:
            self.storage.create(self.name, spec.text())
        except NameTaken:
            return  # compared with what is there

    def __repr__(self) -> str:
        return f"<Study {self.name!r}: {len(self.spec.arms)} arms, {len(self.spec.metrics)} metrics>"

    # Asking and telling

    def ask(self, n: int | None = None, arm: str | None = None) -> Any:
        """Return the next trial, or a list of up to n of them to be measured at the same time.

        Trials whose lease is over are asked again first. arm: measure this one, whatever the algorithm would ask for,
        also when every arm has its verdict: its interval gets narrower, and the guarantee stays.
        """
        count = 1 if n is None else checks.whole("n of ask", n, least=1, most=MOST_ASKED)
        with self._writing() as (writer, replica):
            now, before = self._expire(writer, replica), _weight(replica)
            events: list[Event] = []
            chosen = None if arm is None else self._chosen(replica, arm)
            refused = None
            try:
                while len(events) < count and not (
                    events and ((replica.done and chosen is None) or self._budget_spent(replica))
                ):
                    self._check_may_ask(replica, bool(events))
                    events.append(replica.ask(now, chosen))
            except NotSupported as problem:
                if events:
                    raise
                refused = problem  # what lapsed has lapsed all the same, and may have decided everything
            writer.append(events)
            self._settle(writer, replica, before)
        if refused is not None:
            raise refused
        trials = [Trial(event.number, event.body["arm"]) for event in events]
        return trials[0] if n is None else trials

    def tell(self, trial: Trial | int, values: Mapping[str, Any]) -> None:
        """Take in the outcome of a trial: a number for each metric; None for one that was not measured.

        What is left out is told later, and the trial stays open until then. The same outcome again changes nothing;
        another one for the same trial is an error, and so is a trial that was never asked. The outcome of a trial that
        failed, or was given up, is kept, but is no evidence.
        """
        self.tell_many([(trial, values)])

    def tell_many(self, outcomes: Iterable[tuple[Trial | int, Mapping[str, Any]]]) -> None:
        """Take in the outcomes of several trials, all of them or, if one is wrong, none; each as in `tell`."""
        rows: dict[int, tuple[list[float | None], list[str]]] = {}
        for trial, values in outcomes:
            number = _number(trial)
            told = self._row(values, f"outcome of trial {number}"), list(values)
            if rows.setdefault(number, told)[0] != told[0]:
                raise Conflict(f"trial {number} must be told once, got it again with other values")
        with self._writing() as (writer, replica):
            self._expire(writer, replica)
            for number, (row, given) in rows.items():
                event = self._told(replica, number, row, given)
                if event is not None:
                    self._append(writer, replica, event)

    def fail(self, trial: Trial | int, reason: str = "") -> None:
        """Say that a measurement failed: it costs no data, and is asked again."""
        number = _number(trial)
        with self._writing() as (writer, replica):
            self._expire(writer, replica)
            if number in replica.open:
                self._append(writer, replica, self._event(replica, "fail", number, {"reason": str(reason)}))
            elif self._tells(number):
                raise Conflict(f"trial {number} was told already: it did not fail")

    def tell_frame(self, frame: Any, arm: str = "arm", trial: str | None = None, time: str | None = None) -> int:
        """Take in many outcomes at once, all of them or, if a row is wrong, none; return how many were new.

        frame: a table with a column for each metric; cells may be empty. arm: the column that names the arm. trial: the
        column with the numbers of trials, for rows that were asked for; rows without a number are history, or data that
        the study did not ask for. These keep the guarantee, as long as nobody looked ahead: which arm was measured, and
        whether a row is in the table, must not depend on the outcome of that row. `verdicts()` says so. They count in
        an order drawn from the seed, for that of a table may be sorted by outcome; or in that of `time`, a column of
        numbers. They are judged after the last row only.
        """
        columns = Columns(frame, "this table")
        cells = {name: columns.numbers_or_none(name) for name in self.spec.columns if name in columns.names}
        if not cells:
            raise InvalidInput(f"this table must have a column for a metric ({', '.join(self.spec.columns)}), got none")
        numbers = [None] * columns.n_rows if trial is None else columns.numbers_or_none(trial)
        names = columns.labels(arm) if trial is None or arm in columns.names else [None] * columns.n_rows
        empty = [None] * columns.n_rows
        rows = list(map(list, zip(*(cells.get(name, empty) for name in self.spec.columns), strict=True)))
        if time is not None:
            order = np.argsort(columns.numbers(time), kind="stable").tolist()
            numbers, names, rows = [numbers[k] for k in order], [names[k] for k in order], [rows[k] for k in order]
        with self._writing() as (writer, replica):
            self._expire(writer, replica)
            tells: dict[int, tuple[int, list[float | None]]] = {}
            history: list[tuple[str, list[float | None]]] = []
            self._check_rows(rows, replica)
            for k, (number, name, row) in enumerate(zip(numbers, names, rows, strict=True)):
                if number is not None:
                    whole = checks.whole(f"trial in row {k} of this table", _if_whole(number), least=0)
                    if tells.setdefault(whole, (k, row))[1] != row:
                        raise Conflict(f"row {k} of this table tells trial {whole} again, with other values")
                    if name is not None:
                        self._check_arm(whole, name, replica, f"row {k} of this table")
                elif name is None:
                    raise InvalidInput(f"row {k} of this table must have a trial or name an arm")
                elif name not in replica.index:
                    raise UnknownName(f"arm in row {k} of this table:", name, replica.arms)
                else:
                    history.append((name, row))
            if history and not replica.accepts.unasked:
                raise NotSupported(f"algorithm {self.spec.algorithm!r} cannot take data it did not ask for")
            new = 0
            for number, (k, row) in tells.items():
                event = self._told(replica, number, row, cells, f"row {k} of this table: ")
                if event is not None:
                    self._append(writer, replica, event)
                    new += 1
            for start in range(0, len(history), ROWS_PER_EVENT):
                chunk = history[start : start + ROWS_PER_EVENT]
                body: dict[str, Any] = {"arms": [name for name, _ in chunk], "values": [row for _, row in chunk]}
                if time is not None:
                    body["in_order"] = True
                if start + ROWS_PER_EVENT < len(history):
                    body["more"] = True
                self._append(writer, replica, self._event(replica, "data", None, body))
            return new + len(history)

    # What is known

    @property
    def done(self) -> bool:
        """Whether every arm has its verdict."""
        with self._reading() as replica:
            return replica.done

    def verdicts(self) -> VerdictTable:
        """Return what is proven of each arm, with the guarantee, what it rests on, and what speaks against that."""
        with self._reading() as replica:
            table = replica.verdicts()
            if replica.told + replica.imported >= self._examined_again_at:
                self._concerns = self._examined(replica)
                self._examined_again_at = int(EXAMINED_AFTER * (replica.told + replica.imported)) + 1
            return replace(table, concerns=self._concerns)

    def _examined(self, replica: Replica) -> tuple[Concern, ...]:
        """Look for what the guarantee does not allow for, in what was measured of late."""
        rows: list[tuple[int, int, list[float | None]]] = []  # the order of asking, or of telling; arm; values
        ordered = True
        after = max(-1, replica.number - EXAMINED_EVENTS)
        for event in self.storage.events(self.name, after, kinds=("tell", "data")):
            if event.kind == "tell":
                rows.append((event.trial or 0, replica.index[event.body["arm"]], event.body["values"]))
            else:
                ordered = ordered and bool(event.body.get("in_order"))
                told = zip(event.body["arms"], event.body["values"], strict=True)
                rows += [(event.number, replica.index[arm], values) for arm, values in told]
        rows.sort(key=lambda row: row[0])
        arms, values = np.array([arm for _, arm, _ in rows], np.int64), as_array([values for *_, values in rows])
        of_arm = [values[arms == arm] for arm in replica.present]
        metrics = {metric.name: metric for metric in self.spec.metrics}
        stated = [metrics[name] if name in metrics else Metric.stored(name) for name in self._columns]
        return tuple(
            examine(
                [replica.arms[arm] for arm in replica.present],
                self._columns,
                [[column[~np.isnan(column)] for column in series.T] for series in of_arm],
                normal=[
                    sigma is None and metric.bounds is None
                    for metric, sigma in zip(stated, self.spec.sigma, strict=True)
                ],
                ordered=ordered,
                exact=[metric.exact for metric in stated],
                eps=[metric.eps or 0.0 for metric in stated],
            )
        )

    def front(self) -> list[str]:
        """Return the arms that are proven to be on the front."""
        return list(self.verdicts().front)

    @property
    def open_guards(self) -> list[str]:
        """Arms of which it is not known yet whether they keep all guards."""
        with self._reading() as replica:
            return [
                replica.arms[arm] for arm in replica.present if not replica.keeps(arm) and replica.breaks(arm) is None
            ]

    @property
    def takes_unasked(self) -> bool:
        """Whether the algorithm can take outcomes that it did not ask for."""
        with self._reading() as replica:
            return replica.accepts.unasked

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the contexts, as they were encoded."""
        return self.spec.features

    @property
    def withdrawn(self) -> dict[str, str]:
        """Arms that were withdrawn or broke a guard, and why."""
        with self._reading() as replica:
            return {replica.arms[arm]: why for arm, why in replica.withdrawn.items()}

    @property
    def open(self) -> list[Trial]:
        """Trials that were asked and are neither told nor void, oldest first."""
        with self._reading() as replica:
            return [Trial(number, replica.arms[lease.arm]) for number, lease in replica.open.items()]

    def counts(self) -> dict[str, int]:
        """Return how many trials were asked, told, are open and are void, how many rows were imported.

        waiting: outcomes that will count when all trials asked before them are told or void; late: outcomes that are no
        evidence, for their trial was void when they came.
        """
        with self._reading() as replica:
            return {
                "asked": replica.asked,
                "told": replica.told,
                "open": len(replica.open),
                "lapsed": replica.lapsed,
                "imported": replica.imported,
                "waiting": sum(len(outcomes.arms) for outcomes in replica.waiting.values()),
                "late": replica.late,
            }

    def explain(self, arm: str) -> Explanation:
        """Say why an arm has its verdict, by how much, and what is still missing."""
        replica = self._copy()
        if arm not in replica.index:
            raise UnknownName("arm", arm, replica.arms)
        return explanation(replica, arm)

    def remaining(self, replicates: int = 20, seconds: float = 1.0) -> Remaining:
        """Estimate how many more samples it takes, and how many it would take to measure all arms equally often.

        Futures that were not followed to their end within `seconds` count as very long ones.
        """
        return remaining(
            self._copy(),
            checks.whole("replicates of remaining", replicates, least=1),
            checks.number("seconds of remaining", seconds, least=0.0),
        )

    def observations(self) -> Iterator[tuple[int | None, str, list[float | None], float]]:
        """Yield all outcomes in the order they came in: trial (None: imported), arm, values, time."""
        parts: dict[int | None, tuple[str, list[float | None], float]] = {}
        for event in self.storage.events(self.name, kinds=("tell", "data")):
            if event.kind == "tell":
                told = parts.pop(event.trial)[1] if event.trial in parts else None
                outcome = event.body["arm"], completed(told, event.body["values"]), event.at
                if event.body.get("more"):
                    parts[event.trial] = outcome
                else:
                    yield event.trial, *outcome
            else:
                for name, row in zip(event.body["arms"], event.body["values"], strict=True):
                    yield None, name, list(row), event.at
        for trial, outcome in parts.items():
            yield trial, *outcome

    def to_frame(self, package: str | None = None) -> Any:
        """Return all outcomes as a frame of pandas, polars or pyarrow; the first that is installed, unless named."""
        rows = list(self.observations())
        columns: dict[str, list[Any]] = {
            "trial": [trial for trial, *_ in rows],
            "arm": [name for _, name, *_ in rows],
        }
        for position, name in enumerate(self.spec.columns):
            columns[name] = [values[position] for _, _, values, _ in rows]
        columns["at"] = [at for *_, at in rows]
        return frame_of(columns, package)

    def plot_front(self, path: str | Path | None = None, **how: Any) -> Any:
        """Draw the verdicts, see `plots.front`."""
        from .. import plots

        return plots.front(self.verdicts(), path=path, **how)

    # Arms

    def add_arms(self, arms: Any, looked: bool = True) -> None:
        """Add arms, new ones or such as were withdrawn. Those that are there keep their verdicts' share of delta.

        looked: say False if the outcomes so far were no reason to add them, and to add just these; the guarantee says
        so then. Arms that were designed or picked after looking at outcomes are refused: all that was measured so far
        would speak for them.
        """
        contexts = [name for name in self.spec.features if name != "1"]
        if any(" = " in name for name in contexts):
            raise NotSupported("arms cannot be added to a study whose contexts have categories: make a new one")
        names, _, rows = _arms(arms, contexts)
        with self._writing() as (writer, replica):
            for name in arm_names(names):
                if name in replica.index and replica.index[name] not in replica.withdrawn:
                    raise InvalidInput(f"names of arms must differ, got {name!r}, which is there already")
            if looked and (replica.told or replica.imported):
                raise NotSupported(
                    "arms cannot be added after looking at outcomes: make a new study with all of them, or say that "
                    "the outcomes so far were no reason to add these (looked=False; add-arm --without-looking)"
                )
            added = [[name, None if rows is None else rows[k]] for k, name in enumerate(names)]
            self._change_arms(writer, replica, {"add": added})

    def withdraw(self, arm: str, reason: str = "withdrawn", looked: bool = False) -> None:
        """Take an arm out. Its outcomes are kept; verdicts that rested on it are judged anew.

        looked: say True if the outcomes so far were a reason to withdraw it; unless you do, the guarantee says that
        they were not. Then an arm that stood when it left must still be escaped by those of the front: to take out the
        best ones and to call the next ones optimal would be looking ahead.
        """
        with self._writing() as (writer, replica):
            if arm not in replica.index or replica.index[arm] in replica.withdrawn:
                raise UnknownName("arm", arm, [replica.arms[k] for k in replica.present])
            if len(replica.present) == 1:
                raise InvalidInput(f"a study must keep at least one arm, and {arm!r} is the last one")
            self._change_arms(writer, replica, {"withdraw": {arm: str(reason)}, "looked": bool(looked)})

    def _change_arms(self, writer: Writer, replica: Replica, body: dict[str, Any]) -> None:
        if not replica.keeps_shares:
            raise NotSupported(
                f"algorithm {self.spec.algorithm!r} cannot add or withdraw options: its delta is for those it has"
            )
        self._append(writer, replica, self._event(replica, "arms", None, body))

    # The log

    @contextmanager
    def _reading(self) -> Iterator[Replica]:
        """Hold the state after the last event there is; other threads wait, lest it change while it is read."""
        with inside(), self._lock:
            head = partial(self.storage.head, self.name)
            events = partial(self.storage.events, self.name)
            yield self._up_to_date(head, events)

    def _copy(self) -> Replica:
        """Return the state after the last event there is, for what takes a while."""
        with self._reading() as replica:
            return Replica.load(self.spec, replica.dump())

    def _up_to_date(self, head: Callable[[int], Head], events: Callable[..., Iterable[Event]]) -> Replica:
        """Return the replica after the last event. One that knows what is not in the log is thrown away."""
        if self._replica is not None:
            self._check_same(head(self._replica.number))
        if self._replica is None:
            self._load(head)
        replica = self._replica
        assert replica is not None
        end = head(replica.number)
        if end.last > replica.number:
            self._catch_up(replica, events(replica.number), partial(_before, events))
            end = head(replica.number)
        self._mark = end.mark
        return replica

    def _check_same(self, head: Head) -> None:
        """Forget the replica if the log was cut since (by a backup that was put back, or a server that lost it)."""
        if head.log != self._log:
            raise Conflict(
                f"study {self.name!r} was deleted and made anew since it was loaded here: nothing was changed. "
                "Load it again; what was asked before belongs to the one that is gone"
            )
        if self._replica is not None and head.mark != self._mark:
            self._replica = None

    def _load(self, head: Callable[[int], Head]) -> None:
        snapshot = self.storage.latest_snapshot(self.name)
        log = head(-1)  # after the snapshot, which is not ahead of it then
        self._check_same(log)
        replica = None
        if snapshot is not None and snapshot[0] <= log.last:
            with suppress(Exception):  # of another version, or damaged in whatever way: the log says the same
                replica = Replica.load(self.spec, snapshot[1])
        if replica is None or snapshot is None or replica.number != snapshot[0]:
            replica = Replica(self.spec)
        self._replica = replica
        self._snapshot_size = len(snapshot[1]) if snapshot else 0

    def _catch_up(self, replica: Replica, events: Iterable[Event], history: History) -> None:
        try:
            for event in events:
                replica.apply(event, history)
        except BaseException:
            self._replica = None  # half applied: to be loaded again
            raise

    @contextmanager
    def _writing(self) -> Iterator[tuple[Writer, Replica]]:
        """Hold the right to append, with a replica that has seen everything."""
        with inside(), self._lock:
            replica: Replica | None = None
            before = -1
            if self._replica is None:
                with self._reading():
                    pass  # loaded before anybody has to wait for it
            try:
                with self.storage.writing(self.name, self.worker) as writer:
                    replica = self._up_to_date(writer.head, writer.events)
                    before = replica.number
                    yield writer, replica
                    self._mark = writer.head().mark
            except BaseException as problem:
                # what is refused is refused before anything changes; after anything else (Ctrl-C, a full disk) the
                # replica may be ahead of what was kept, or torn
                if not isinstance(problem, ParetoscoutError) or (replica is not None and replica.number != before):
                    self._replica = None
                raise

    def _append(self, writer: Writer, replica: Replica, *events: Event) -> None:
        """Append events and apply them."""
        before = _weight(replica)
        writer.append(events)
        for event in events:
            replica.apply(event, _history_of(writer))
        self._settle(writer, replica, before)

    def _settle(self, writer: Writer, replica: Replica, before: int) -> None:
        """Do what follows from what was appended: options that break a guard for sure by now are withdrawn.

        And a snapshot is taken at every so many events; of all who append, the one who gets there does it.
        """
        interval = max(SNAPSHOT_EVENTS, self._snapshot_size // SNAPSHOT_BYTES_PER_EVENT)
        if _weight(replica) // interval > before // interval and not replica.table:
            data = replica.dump()
            writer.snapshot(replica.number, data)
            self._snapshot_size = len(data)
        concerned, replica.counted = sorted(replica.counted), set()
        if not self.spec.guards or not replica.keeps_shares:
            return
        broken = {arm: replica.breaks(arm) for arm in concerned if arm not in replica.withdrawn}
        why = {replica.arms[arm]: f"breaks {guard}" for arm, guard in broken.items() if guard is not None}
        if len(why) == len(replica.present):
            why.popitem()  # one is kept, whatever it breaks: see Replica.verdicts
        if why:
            self._append(writer, replica, self._event(replica, "arms", None, {"withdraw": why, "guard": True}))

    def _event(self, replica: Replica, kind: str, trial: int | None, body: dict[str, Any]) -> Event:
        return Event(replica.number + 1, kind, trial, body, self._clock())

    def _expire(self, writer: Writer, replica: Replica) -> float:
        """Let trials lapse whose time is up, and return what time it is."""
        now, before = self._clock(), _weight(replica)
        events: list[Event] = []
        while (due := replica.overdue(now)) is not None:
            number, kind = due
            body = {"arm": replica.arms[replica.open[number].arm]}
            events.append(Event(replica.number + 1, kind, number, body, now))
            replica.apply(events[-1], _history_of(writer))
        if events:
            writer.append(events)
            self._settle(writer, replica, before)
        return now

    # Checks

    def _budget_spent(self, replica: Replica) -> bool:
        return self.spec.budget is not None and replica.spent >= self.spec.budget

    def _chosen(self, replica: Replica, arm: str) -> int:
        if arm not in replica.index:
            raise UnknownName("arm", arm, replica.arms)
        if replica.index[arm] in replica.withdrawn:
            raise InvalidInput(f"arm of ask must not be withdrawn, got {arm!r}")
        if not replica.accepts.unasked:
            raise NotSupported(f"algorithm {self.spec.algorithm!r} cannot take data it did not ask for")
        return replica.index[arm]

    def _check_may_ask(self, replica: Replica, more: bool) -> None:
        if self._budget_spent(replica):
            raise NotSupported(f"the budget of {self.spec.budget} samples is spent")
        if not replica.accepts.pending and replica.session.open and not replica.again:
            raise NotSupported(
                f"algorithm {self.spec.algorithm!r} asks one question at a time: "
                + ("ask for one" if more else f"tell trial {next(iter(replica.open))} first, or say that it failed")
            )

    def _row(self, values: Any, where: str) -> list[float | None]:
        if not isinstance(values, Mapping):
            raise InvalidInput(f"{where} must be {{metric: number}}, got {values!r}")
        for name in values:
            if name not in self._columns:
                raise UnknownName(f"metric in {where}:", name, self._columns)
        return [
            None if values.get(name) is None else checks.number(f"{name!r} in {where}", values[name])
            for name in self._columns
        ]

    def _check_row(
        self,
        row: Sequence[float | None],
        where: str,
        replica: Replica,
        whole: Sequence[float | None] | None = None,
        more: bool = False,
    ) -> None:
        """Refuse what the algorithm cannot take, before anything is changed.

        whole: the row with what was told before. more: is to come.
        """
        L = len(self.spec.metrics)
        missing = [name for name, value in zip(self._columns, whole or row, strict=True) if value is None]
        if len(missing) == len(row):
            raise InvalidInput(f"{where} must have at least one of {', '.join(missing)}, got none")
        lacks = [name for name in missing if name in self._columns[:L]]
        if lacks and not more and not replica.accepts.missing:
            raise NotSupported(
                f"{where} lacks {', '.join(lacks)}: algorithm {self.spec.algorithm!r} needs every metric of a sample"
            )
        for name, most, value in zip(self._columns, self._most.tolist(), row, strict=True):
            if value is not None and not abs(value) <= most:
                why = " (its rounding alone exceeds eps: subtract what all have in common)" if most < LARGEST else ""
                raise InvalidInput(f"{name!r} in {where} must be at most {most:g} in size, got {value:g}{why}")
        for metric, value in zip(self.spec.metrics, row, strict=False):
            if value is not None and metric.bounds is not None and not metric.bounds[0] <= value <= metric.bounds[1]:
                low, high = metric.bounds
                raise InvalidInput(f"{metric.name!r} in {where} must be from {low:g} to {high:g}, got {value:g}")

    def _check_rows(self, rows: Sequence[Sequence[float | None]], replica: Replica) -> None:
        """Refuse a table in which a row is wrong; only rows that are out of the ordinary are looked at one by one."""
        values = as_array(rows)
        low, high = -self._most, self._most.copy()
        for position, metric in enumerate(self.spec.metrics):
            if metric.bounds is not None:
                low[position], high[position] = metric.bounds
        ordinary = ((values >= low) & (values <= high)).all(axis=1)
        for k in np.flatnonzero(~ordinary).tolist():
            self._check_row(rows[k], f"row {k} of this table", replica)

    def _told(
        self, replica: Replica, number: int, row: list[float | None], given: Iterable[str], where: str = ""
    ) -> Event | None:
        """Return the event of a tell; None: it was told before, with the same values. What is not given is to come."""
        lease = replica.open.get(number)
        arm = replica.arms[lease.arm] if lease else self._asked_arm(number, where)
        told = replica.parts.get(number)
        for event in [] if lease else self._tells(number):
            told = completed(told, event.body["values"])
        if told is not None:
            for old, new in zip(told, row, strict=True):
                if new is not None and old != new and (old is not None or lease is None):
                    shown = dict(zip(self.spec.columns, told, strict=True))
                    raise Conflict(f"{where}trial {number} was told before, with other values: {shown}")
        whole, names = completed(told, row), set(given)
        more = any(value is None and name not in names for name, value in zip(self._columns, whole, strict=True))
        if whole == told and (more or lease is None):
            return None
        self._check_row(row, f"{where}outcome of trial {number}", replica, whole, more)
        return self._event(replica, "tell", number, {"arm": arm, "values": row, **({"more": True} if more else {})})

    def _tells(self, number: int) -> list[Event]:
        """Return the events that told a trial."""
        return [event for event in self._events_of(number) if event.kind == "tell"]

    def _asked_arm(self, number: int, where: str = "") -> str:
        """Return the arm of a trial that was asked."""
        for event in self._events_of(number, where):
            if event.kind == "ask":
                return str(event.body["arm"])
        raise InvalidInput(f"{where}trial must be one that was asked, got {number}")

    def _events_of(self, number: int, where: str = "") -> list[Event]:
        events = self.storage.of_trial(self.name, number)
        if not events:
            raise InvalidInput(f"{where}trial must be one that was asked, got {number}")
        return events

    def _check_arm(self, number: int, arm: str, replica: Replica, where: str) -> None:
        lease = replica.open.get(number)
        asked = replica.arms[lease.arm] if lease else self._asked_arm(number, f"{where}: ")
        if asked != arm:
            raise InvalidInput(f"{where} says arm {arm!r}, but trial {number} is of {asked!r}")


def _weight(replica: Replica) -> int:
    """How much there is to replay: events, and rows of imported data."""
    return replica.number + 1 + replica.imported


def _if_whole(number: float) -> Any:
    return int(number) if number == int(number) else number


def _before(events: Callable[..., Iterable[Event]], number: int) -> Iterator[Event]:
    """Yield what was measured before an event."""
    return (event for event in events(kinds=OUTCOMES) if event.number < number)


def _history_of(writer: Writer) -> History:
    return partial(_before, writer.events)


def _number(trial: Trial | int) -> int:
    return trial.number if isinstance(trial, Trial) else checks.whole("trial", trial, least=0)


def _arms(arms: Any, contexts: Sequence[str]) -> tuple[list[str], tuple[str, ...], list[list[float]] | None]:
    """Return the names of arms, and what is known of them."""
    if isinstance(arms, str):
        raise InvalidInput(f"arms of a study must be a list of names or a frame, got {arms!r}")
    if not isinstance(arms, Mapping) and not hasattr(arms, "columns"):
        if contexts:
            raise InvalidInput("contexts of a study must be columns of a frame of arms, got a list of names")
        if not isinstance(arms, Iterable) or isinstance(arms, (set, frozenset)):
            raise InvalidInput(f"arms of a study must be a list of names or a frame, got {arms!r}")
        return [str(arm) if isinstance(arm, (int, str, np.integer)) else arm for arm in arms], (), None
    columns = Columns(arms, "the frame of arms")
    if not columns.names:
        raise InvalidInput("the frame of arms must have a column with their names, got none")
    label = "arm" if "arm" in columns.names else columns.names[0]
    names = columns.labels(label)
    if not contexts:
        return names, (), None
    features, rows = encode(columns, contexts)
    return names, features, rows
