"""Study: real measurements, asked for and told one by one, in batches, late, twice or never."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any, overload

import numpy as np

from .. import checks
from ..algorithms.contract import Settings
from ..defaults import DELTA, STORAGE
from ..diagnostics import Concern, examine
from ..errors import (
    Conflict,
    InvalidInput,
    NameTaken,
    NotAllowed,
    NothingToAsk,
    NotSupported,
    ParetoscoutError,
    SettingsDiffer,
    UnknownName,
    UnreadableFile,
)
from ..frames import Columns, frame_of
from ..shown import counted
from ..statement import MEASURE, SUCCESS, VOID, Blocks, Eps, Metric, Statement
from ..storage import Event, Storage, Writer, storage_of
from ..storage.forks import inside
from ..verdicts import VerdictTable
from .blocks import few_carry, laws_refuted, laws_seen
from .details import Details
from .encoding import encode
from .explanation import Explanation
from .forecast import Remaining, remaining
from .heard import KINDS as TRIAL_KINDS
from .heard import Heard, asked_and_told, why_void
from .history import History
from .log import Caller, StudyLog, weight
from .loop import Callback, Measure, Notice, run
from .replica import KINDS, Replica
from .rows import Row, Rows, as_array, completed, drawn_order
from .spec import Guard, StudySpec, arm_names, guards_of, make_spec, metrics_of, stated
from .standing import Standing, Trial, Voided, standing_of
from .workers import DEAD, STOPPED

#: Rows of imported data in one event.
ROWS_PER_EVENT = 5000
#: Of what was measured only the last so many events are examined for noise that the guarantee does not allow for.
EXAMINED_EVENTS = 5_000
#: So many trials are asked for at once, at most: others wait meanwhile.
MOST_ASKED = 10_000
#: What people may write about a study or a trial.
LONGEST_NOTE, MOST_TAGS = 2_000, 100
#: Of the identity of a run.
LONGEST_RUN = 100
#: A trial, its outcome, and what is kept with it, see `remark`.
Observation = tuple[Trial | int, Mapping[str, Any], Mapping[str, Any]]


class Study:
    """Real options, measured one by one: the study asks which one to measure, and you tell the outcome.

    It is kept in a storage, survives crashes, and many processes can work on it. `docs/studies.md` is the guide.

    arms: names of the options; or a frame (pandas, polars, pyarrow, dict of columns) with a column of names: "arm", or
        the first one.
    metrics: `Metric` objects, or {name: "min" or "max"}.
    delta: the probability of error that is allowed.
    storage: "memory", a file name, "sqlite:///FILE" or "postgresql://...". None: the variable PARETOSCOUT_STORAGE, or
        else the file paretoscout.db in the working folder.
    name: of the study in its storage. A study that is there is loaded; its settings must be the same, or left out.
    sigma: noise scale: one number, one per metric, or {name: number}. None: it is unknown, and noise is normal.
    guards: limits that options must keep: "latency <= 200". An option that breaks one for sure is withdrawn.
    contexts: columns of the frame of arms that may explain the means. Categories are encoded, see `features`.
    model: what you state of the contexts. "none": nothing. "linear": the means are exactly linear in them (for a metric
        in percent, the logarithms of the geometric means). "logistic": outcomes are 0 or 1, and their log odds are
        linear in them.
    theta_max: the largest norm that the parameters of the model can have, in units of eps. None: it is unknown.
    cost: what one sample of each arm costs: a number for each, or a column of the frame of arms. None: all the same.
    algorithm: a name or a settings object, such as `algorithms.Scout(regret_weight=0.9)`.
    seed: the same seed and the same outcomes give the same questions.
    lease: a trial that is not told within so many seconds is asked again.
    goal: "practical": options that are worth having, see docs/verdicts.md; "front", "cover" or a number of options, as
        in `simulate`. None: that of the study that is there; "practical" for a new one.
    budget: how many samples there are in all. None: no limit.
    give_up: an outcome that comes after so many seconds is kept, but is no evidence. At least `lease`, which is the
        default; None: never. The promise is about measurements that end by then.
    at_give_up: what silence means, {"conversion": 0}: the outcome of a trial that was not told by then.
    order: "asked": outcomes count in the order in which they were asked for; those that come early wait. "told": you
        declare that the duration of a measurement has nothing to do with its outcome, and nothing waits.
    title: the question that the study answers.
    blocks: what every option is measured on, such as prompts or files: their names, or a frame with a column of names
        ("block", or the first one). A trial then names a block, and options are compared on the same blocks. See
        docs/blocks.md. "rounds": options are measured one after the other, in rounds without end, and compared within
        these. See `ask_round`.
    target: with blocks, what the answer is about. "list": these blocks, each measured once. "population": all there
        could be, of which these were drawn at random.
    on_failure: "void": a trial that fails has no outcome. "measure": in rounds, the share of trials that succeed is a
        metric, "success", as soon as one fails; other metrics are about trials that succeed.
    sample: with blocks and target "list", say True if these are a random sample of all there could be. Then there is a
        second reading, for the population, next to that of the list: see `for_population`.
    tradeoffs: what metrics are worth in units of others: ["1 ms <= 3 MB"]. Or weights of the metrics, a row for each
        sum by which options are judged; larger is better in all. See docs/tradeoffs.md. None: nothing is said.
    clock: returns the time in seconds, for tests. None: the clock of the storage.
    worker: who asks and tells here, kept with each event. None: the name of the machine and the number of the process.

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
        model: str = "none",
        theta_max: float | None = None,
        cost: Any = None,
        algorithm: str | Settings = "scout",
        seed: int = 0,
        lease: float = 3600.0,
        goal: str | int | None = None,
        budget: int | None = None,
        give_up: float | str | None = "lease",
        at_give_up: Mapping[str, float] | None = None,
        order: str = "asked",
        title: str = "",
        blocks: Any = None,
        target: str = "list",
        sample: bool = False,
        tradeoffs: Any = None,
        on_failure: str = VOID,
        clock: Callable[[], float] | None = None,
        worker: str | None = None,
    ) -> None:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InvalidInput(f"name of a study must be a text in one line, not empty, got {checks.got(name)}")
        if worker is not None and (not isinstance(worker, str) or not worker.isprintable() or len(worker) > 200):
            raise InvalidInput(
                f"worker of a study must be a text in one line, at most 200 characters, got {checks.got(worker)}"
            )
        self.name = name
        spec = None
        if arms is not None or metrics is not None:
            if arms is None or metrics is None:
                raise InvalidInput(
                    f"a new study must have arms and metrics, got only {'arms' if metrics is None else 'metrics'}"
                )
            checks.name("name of a study", name)
            names, features, rows, costs = _arms(arms, contexts, cost)
            asked, limits, guarded_sigma = stated(
                arms=names,
                metrics=_with_success(metrics) if on_failure == MEASURE else metrics,
                guards=guards,
                contexts=rows,
                sigma=sigma,
                cost=costs,
                model=model,
                theta_max=theta_max,
                goal=self._goal_there(storage) if goal is None else goal,
                delta=delta,
                budget=budget,
                blocks=_blocks(blocks, target, sample),
                tradeoffs=tradeoffs,
                on_failure=on_failure,
            )
            spec = make_spec(
                asked,
                guards=limits,
                guarded_sigma=guarded_sigma,
                features=features,
                algorithm=algorithm,
                seed=seed,
                lease=lease,
                give_up=give_up,
                at_give_up=at_give_up,
                order=order,
                title=title,
            )
        self._begin(spec, storage, clock, worker)

    def _goal_there(self, storage: str | Path | Storage | None) -> str | int:
        """Return the goal of the study of this name, if there is one."""
        try:
            there = storage_of(_where(storage), make=False)
            return StudySpec.of_text(there.spec(self.name), self.name).asked.goal
        except (UnknownName, InvalidInput, UnreadableFile):
            return "practical"

    def _begin(
        self,
        spec: StudySpec | None,
        storage: str | Path | Storage | None,
        clock: Callable[[], float] | None = None,
        worker: str | None = None,
    ) -> None:
        """Make the study, or find it, in its storage."""
        name = self.name
        self._concerns: tuple[Concern, ...] = ()
        self.noticed: tuple[Concern, ...] = ()  # what was seen of a table before its rows were told
        self._looked_after: tuple[int, ...] = (-1,)  # the event after which what was measured was examined, and of whom
        # only now: what is wrong leaves no file behind
        self.storage = storage_of(_where(storage), make=spec is not None)
        if spec is not None:
            self._create(spec, worker or "")
        self.log = StudyLog(self.storage, name, clock, worker)
        self.spec = self.log.spec
        self._rows = Rows(self.spec)
        self._history, self._history_mark = History(self.spec.arms), ""
        self._history_lock = threading.Lock()
        if spec is not None and (differ := spec.differs(self.spec)):
            raise SettingsDiffer(
                f"study {name!r} is there already, with other settings of {', '.join(differ)}: "
                "choose another name, or load it by its name alone"
            )

    @classmethod
    def of(
        cls, asked: Statement, *, storage: str | Path | Storage | None = None, name: str = "study", **settings: Any
    ) -> Study:
        """Return a live study of a statement, such as that of a simulated problem (`problem.asked(eps, delta)`).

        settings: guards (on its metrics), algorithm, seed, lease, give_up, at_give_up, order, title, as in `Study`.

        >>> from paretoscout.problems import load
        >>> Study.of(load("s5").asked(eps=0.1), storage="memory")
        <Study 'study': 5 arms, 2 metrics>
        """
        features = () if asked.contexts is None else tuple(f"x{k + 1}" for k in range(asked.contexts.shape[1]))
        study = cls.__new__(cls)
        study.name = checks.name("name of a study", name)
        stated = replace(asked, of="a study", metrics=metrics_of(asked.metrics))
        guards = guards_of(settings.pop("guards", ()))
        for guard in guards:
            if guard.metric not in (names := [metric.name for metric in stated.metrics]):
                raise UnknownName("metric in guards of a study:", guard.metric, names)
        study._begin(make_spec(stated, features=features, guards=guards, **settings), storage)
        return study

    @classmethod
    def load(cls, name: str = "study", storage: str | Path | Storage | None = None) -> Study:
        """Return a study that is there."""
        return cls(name=name, storage=storage)

    def _create(self, spec: StudySpec, by: str) -> None:
        try:
            self.storage.create(self.name, spec.text(), by)
        except NameTaken:
            return  # compared with what is there

    def __repr__(self) -> str:
        return (
            f"<Study {self.name!r}: {counted(len(self.spec.arms), 'arm')}, {counted(len(self.spec.metrics), 'metric')}>"
        )

    def _repr_html_(self) -> str:
        return self.standing()._repr_html_()

    @property
    def events_seen(self) -> int:
        """How many events this object has followed so far."""
        return self.log.seen

    @property
    def open_seen(self) -> int:
        """How many trials were open after these events."""
        return self.log.open_seen

    @property
    def nbytes(self) -> int:
        """About how much memory this object takes, in bytes."""
        return len(self.log.copy().dump())

    @property
    def has_blocks(self) -> bool:
        """Whether options are compared on the same blocks; rounds are such."""
        return self.spec.asked.blocks is not None

    @property
    def in_rounds(self) -> bool:
        """Whether options are measured and compared in rounds, see `ask_round`."""
        return self.spec.asked.blocks is not None and self.spec.asked.blocks.rounds

    # Asking and telling

    @overload
    def ask(self, n: None = None, arm: str | None = None, run: str = "") -> Trial: ...

    @overload
    def ask(self, n: int, arm: str | None = None, run: str = "") -> list[Trial]: ...

    def ask(self, n: int | None = None, arm: str | None = None, run: str = "") -> Trial | list[Trial]:
        """Return the next trial, or a list of up to n of them to be measured at the same time.

        Trials whose lease is over, and those of dead workers, are asked again first.
        arm: measure this one, whatever the algorithm would ask for. This also works when every arm has its verdict: the
        interval gets narrower, and the guarantee stays.
        run: the identity of a worker that sends heartbeats with it, see `heartbeat`. "": the trial is asked by hand.
        """
        count = 1 if n is None else checks.whole("n of ask", n, least=1, most=MOST_ASKED)
        if self.in_rounds:
            if arm is None or count > 1:
                raise NotSupported("a study in rounds must be asked for a whole round (ask_round), or for one arm")
            return self.ask_round([arm], run)[0] if n is None else self.ask_round([arm], run)
        with self.log.writing() as (writer, replica):
            now = self.log.expire(writer, replica)
            self.log.greet(writer, self._check_run(run))
            self.log.void_dead(writer, replica, run)
            before = weight(replica)
            events: list[Event] = []
            chosen = None if arm is None else self._chosen(replica, arm)
            refused: ParetoscoutError | None = None
            try:
                self.log.check_open(replica, count)
                while len(events) < count and not (events and ((replica.done and chosen is None) or replica.exhausted)):
                    self._check_may_ask(replica, bool(events))
                    events.append(replica.ask(now, chosen, self.log.worker, run))
            except ParetoscoutError as problem:
                if events and not isinstance(problem, NothingToAsk):
                    raise
                # what lapsed has lapsed all the same, and may have decided everything
                refused = None if events else problem
            writer.append(events)
            self.log.settle(writer, replica, before)
        if refused is not None:
            raise refused
        trials = [Trial(event.number, event.body["arm"], block=event.body.get("block")) for event in events]
        return trials[0] if n is None else trials

    def ask_round(self, arms: Sequence[str] | None = None, run: str = "") -> list[Trial]:
        """Begin a round, in a study whose blocks are "rounds": return a trial of each of these arms, in this order.

        arms: None: all on which a verdict hangs. Before that, trials of dead workers are asked again, in their rounds.
        run: as in `ask`.

        Measure them one after the other, shortly; draw their order anew in every round. Outcomes count when the round
        is closed: all of it is told or void. Arms are compared in those rounds in which both were measured.
        """
        if not self.in_rounds:
            raise NotSupported("rounds are for a study whose blocks are 'rounds'")
        with self.log.writing() as (writer, replica):
            now = self.log.expire(writer, replica)
            self.log.greet(writer, self._check_run(run))
            self.log.void_dead(writer, replica, run)
            before = weight(replica)
            self._check_may_ask(replica, False)
            if arms is None and replica.repeat and not replica.done:
                return self._repeat_round(writer, replica, now, run)
            chosen = [
                self._chosen(replica, arm) for arm in arm_names(replica.next_round(now) if arms is None else arms)
            ]
            if self.spec.budget is not None:
                chosen = chosen[: self.spec.budget - replica.spent]
            self.log.check_open(replica, len(chosen))
            events = replica.ask_round(now, chosen, self.log.worker, run)
            writer.append(events)
            self.log.settle(writer, replica, before)
        return [Trial(event.number, event.body["arm"], block=event.body["block"]) for event in events]

    def _repeat_round(self, writer: Writer, replica: Replica, now: float, run: str) -> list[Trial]:
        """Ask again for void trials of rounds."""
        before, most = weight(replica), len(replica.repeat)
        if self.spec.budget is not None:
            most = min(most, self.spec.budget - replica.spent)
        self.log.check_open(replica, most)
        events = replica.repeat_round(now, most, self.log.worker, run)
        writer.append(events)
        self.log.settle(writer, replica, before)
        return [Trial(event.number, event.body["arm"], block=event.body["block"]) for event in events]

    # Workers

    def heartbeat(self, run: str = "") -> None:
        """Say that this worker is alive: its trials are asked again if it says nothing for 60 seconds, or has ended.

        run: an identity that the worker draws at random, and names in `ask`. "": its name stands for it. `Study.run`
        does all of this by itself.
        """
        self._check_run(run)
        with self.log.writing() as (writer, _):
            self.log.beat(writer, run)

    def sign_off(self, run: str = "") -> None:
        """Say that this worker stops: its pending trials are void, and it sends no more heartbeats."""
        with self.log.writing() as (writer, replica):
            self.log.sign_off(writer, replica, self._check_run(run))

    def listen_again(self) -> None:
        """Give other workers time to say that they are alive: no heartbeat could be heard for a while until now."""
        self.log.since = self.log.clock()

    def resume(self, run: str, leave_asked: bool = False, older: float = 0.0) -> tuple[Voided, ...]:
        """Send a heartbeat, void trials that nobody measures any more, and return these. They are asked again first.

        Trials of dead workers are such. So are trials that were asked by hand, and more than `older` seconds ago, if no
        other worker is alive. leave_asked: leave the latter alone.
        """
        with self.log.writing() as (writer, replica):
            self.log.expire(writer, replica)
            self.log.beat(writer, self._check_run(run))
            voided = self.log.void_dead(writer, replica, run, at_once=True)
            if not leave_asked:
                voided += self.log.void_asked(writer, replica, run, older)
        return tuple(voided)

    def void(self, trial: Trial | int, why: str = STOPPED, reason: str = "") -> None:
        """Say that nobody measures a trial any more, for reasons that have nothing to do with its outcome.

        It is asked again, in rounds in the same round. An outcome that is told later is kept, but is no evidence. why:
        "dead" if its worker died, "stopped" if its run was stopped. A trial that is told or void stays as it is.
        """
        if why not in (DEAD, STOPPED):
            raise InvalidInput(f"why of void must be {DEAD!r} or {STOPPED!r}, got {why!r}")
        number = _number(trial)
        with self.log.writing() as (writer, replica):
            self.log.expire(writer, replica)
            self._check_may_tell(replica, number)
            if number in replica.open:
                self.log.void(writer, replica, [number], why, str(reason))

    def why_void(self, trials: Iterable[Trial | int]) -> dict[int, str]:
        """Return why trials are void, of those that are: what is told of them is kept, but is no evidence."""
        with self.log.reading() as replica:
            lapsed, open_, at_once = replica.lapsed, set(replica.open), replica.gives_up_at_once
        numbers = [_number(trial) for trial in trials]
        found = (
            (number, why_void(self.log.of_trial(number), at_once))
            for number in (numbers if lapsed else ())
            if number not in open_
        )
        return {number: why for number, why in found if why is not None}

    def late_trials(self) -> set[int]:
        """Return the trials that were told when they were void. It reads the whole log, if there are any."""
        with self.log.reading() as replica:
            late, at_once = replica.late, replica.gives_up_at_once
        void: set[int | None] = set()
        told: set[int] = set()
        for event in self.storage.events(self.name, kinds=TRIAL_KINDS) if late else ():
            if event.kind == "tell" and event.trial in void:
                told.add(event.trial or 0)
            elif why_void([event], at_once) is not None:
                void.add(event.trial)
        return told

    def _check_run(self, run: str) -> str:
        if not isinstance(run, str) or not run.isprintable() or len(run) > LONGEST_RUN:
            raise InvalidInput(
                f"run of a worker must be a line of at most {LONGEST_RUN} letters, got {checks.got(run)}"
            )
        return run

    def tell(self, trial: Trial | int, values: Mapping[str, Any], *, note: str = "", tags: Sequence[str] = ()) -> None:
        """Take in the outcome of a trial: a number for each metric; None for one that was not measured.

        What is left out is told later, and the trial stays open until then. Where the goal is "practical", `Below(6.9)`
        is a value too small to be measured: at most so large. The same outcome again changes nothing; another one for
        the same trial is an error, and so is a trial that was never asked. The outcome of a trial that failed, or was
        given up, is kept, but is no evidence. note, tags: kept with it, for people to read.
        """
        self.tell_many([(trial, values, remark(f"trial {_number(trial)}", note, tags))])

    def tell_many(self, outcomes: Iterable[tuple[Trial | int, Mapping[str, Any]] | Observation]) -> int:
        """Take in the outcomes of several trials, all of them or, if one is wrong, none; each as in `tell`.

        Return how many were new.
        """
        rows: dict[int, tuple[Row, list[str], list[str], dict[str, Any]]] = {}
        for trial, values, *noted in outcomes:
            number = _number(trial)
            row, below = self._rows.read(values, f"outcome of trial {number}")
            if rows.setdefault(number, (row, list(values), below, dict(*noted)))[0] != row:
                raise Conflict(f"trial {number} must be told once, got it again with other values")
        new = 0
        with self.log.writing() as (writer, replica):
            self.log.expire(writer, replica)
            for number, (row, given, below, noted_) in rows.items():
                event = self._told(replica, number, row, given, below=below)
                if event is not None:
                    event.body.update(noted_)
                    self.log.append(writer, replica, event)
                    new += 1
        return new

    def annotate(self, note: str = "", tags: Sequence[str] = (), trial: Trial | int | None = None) -> None:
        """Write something about the study, or about a trial: a note and tags, in place of those there were."""
        number = None if trial is None else _number(trial)
        body = {"note": "", "tags": [], **remark("a study" if number is None else f"trial {number}", note, tags)}
        with self.log.writing() as (writer, replica):
            if number is not None:
                self._asked_of(number)
            self.log.append(writer, replica, self.log.event(replica, "note", number, body))

    def acting(self, caller: Caller) -> AbstractContextManager[None]:
        """Do what this thread does meanwhile on behalf of somebody: a server does so for its callers."""
        return self.log.acting(caller)

    def run(
        self,
        measure: Measure,
        *,
        workers: int | None = None,
        trials: int | None = None,
        timeout: float | None = None,
        callback: Callback | None = None,
        catch: type[Exception] | tuple[type[Exception], ...] = (),
        engine: str = "threads",
        leave_asked: bool = False,
        notice: Notice | None = None,
    ) -> Standing:
        """Ask, measure and tell until every arm has its verdict or the budget is spent; return the standing.

        First it measures again what dead workers left, and what was asked by hand if no other worker is alive.

        measure: a function of the name of an arm (in a study with blocks: of an arm and a block) that returns {metric:
        number}. workers: so many measurements at the same time; None: one, or as many as the engine has room for.
        trials, timeout: begin no more after so many measurements, or seconds. callback(study, trial, outcome): is
        called after each. catch: exceptions of `measure` that only mean that this measurement failed, so it is made
        again later. Any other one ends the run; what was told is kept. engine: where measurements are made: "threads",
        "processes", "dask", "ray", or a cluster such as "dask://host:8786". One whose worker died is made again.
        leave_asked: wait for what was asked by hand instead. notice: is called with the `Voided` trials that are
        measured again, and with the `Waits` that hold this run up.

        >>> study = Study(["a", "b"], {"quality": "max"}, sigma=0.01, storage="memory")
        >>> study.run(lambda arm: {"quality": 1.0 if arm == "a" else 0.5}).front
        ('a',)
        """
        how: dict[str, Any] = {"workers": workers, "trials": trials, "timeout": timeout, "engine": engine}
        how |= {"leave_asked": leave_asked, "notice": notice}
        return run(self, measure, callback=callback, catch=catch, **how)

    def fail(self, trial: Trial | int, reason: str = "", cut: bool = False) -> None:
        """Say that a measurement failed: it costs no data, and is asked again.

        cut: in a study in rounds, say True if it was the round that was cut short, and not the option that failed: by
        Ctrl-C, or because time was up. That may have to do with outcomes, so no options are compared in this round.
        """
        number = _number(trial)
        with self.log.writing() as (writer, replica):
            self.log.expire(writer, replica)
            self._check_may_tell(replica, number)
            if number in replica.open:
                body = {"reason": str(reason), **({"cut": True} if cut else {})}
                self.log.append(writer, replica, self.log.event(replica, "fail", number, body))
            elif self._tells(number):
                raise Conflict(f"trial {number} was told already: it did not fail")

    def tell_frame(
        self,
        frame: Any,
        arm: str = "arm",
        trial: str | None = None,
        time: str | None = None,
        block: str = "block",
    ) -> int:
        """Take in many outcomes at once, all of them or, if a row is wrong, none; return how many were new.

        frame: a table with a column for each metric; cells may be empty.
        arm: the column that names the arm.
        trial: the column with the numbers of trials, for rows that were asked for. Rows without a number are data that
        the study did not ask for. They keep the guarantee if nobody looked ahead: which arm was measured, and whether a
        row is in the table, must not depend on the outcome of that row. `verdicts()` says so.
        time: a column of numbers that gives the order in which rows count. None: the order is drawn at random, from a
        digest of the sorted rows, because a table may be sorted by outcome. Rows are judged after the last one only.
        block: in a study with blocks, the column that names the block. A row counts when its arm was measured on all
        blocks that are visited before; a cell that is there already keeps its outcome. Two rows of one cell that differ
        are refused.
        """
        columns = Columns(frame, "this table")
        cells = {
            name: columns.numbers_or_none(name, truths=False) for name in self.spec.columns if name in columns.names
        }
        if not cells:
            raise InvalidInput(
                f"{columns.where} must have a column for a metric ({', '.join(self.spec.columns)}), "
                f"got only {', '.join(map(str, columns.names))}"
            )
        numbers = [None] * columns.n_rows if trial is None else columns.numbers_or_none(trial, truths=False)
        names = columns.labels(arm) if trial is None or arm in columns.names else [None] * columns.n_rows
        empty = [None] * columns.n_rows
        rows = list(map(list, zip(*(cells.get(name, empty) for name in self.spec.columns), strict=True)))
        order = list(range(columns.n_rows))
        if time is not None:
            when = columns.numbers(time)
            ties = np.empty(len(rows), np.int64)  # rows of one moment may be sorted by outcome, too
            ties[drawn_order([str(name) for name in names], as_array(rows))] = np.arange(len(rows))
            order = np.lexsort([ties, when]).tolist()
            numbers, names, rows = [numbers[k] for k in order], [names[k] for k in order], [rows[k] for k in order]

        def called(k: int) -> str:
            """What to call a row."""
            return columns.row(order[k])

        with self.log.writing() as (writer, replica):
            self.log.expire(writer, replica)
            tells: dict[int, tuple[int, list[float | None]]] = {}
            history: list[tuple[str, str | None, list[float | None]]] = []
            once: dict[tuple[str, str | None], list[float | None]] = {}
            on = self._blocks_of(columns, block, numbers, order)
            self._rows.check_table(rows, replica.accepts, called)
            for k, (number, name, row) in enumerate(zip(numbers, names, rows, strict=True)):
                if number is not None:
                    whole = checks.whole(f"trial in {called(k)}", _if_whole(number), least=0)
                    if tells.setdefault(whole, (k, row))[1] != row:
                        raise Conflict(f"{called(k)} tells trial {whole} again, with other values")
                    self._check_arm(whole, name, on[k], replica, called(k))
                elif name is None:
                    raise InvalidInput(f"{called(k)} must have a trial or name an arm")
                elif name not in replica.index:
                    raise UnknownName(f"arm in {called(k)}:", name, replica.arms)
                else:
                    history.append((name, on[k], row))
                    if self.spec.walk and once.setdefault((name, on[k]), row) != row:
                        raise Conflict(f"{called(k)} is of {name!r} on {on[k]!r} again, with other values")
            if history and self.in_rounds:
                raise NotSupported("a study in rounds takes outcomes of its own trials only: which rounds were these?")
            self._check_ratios(replica, history)
            if history and not replica.accepts.unasked:
                raise NotSupported(f"algorithm {self.spec.algorithm!r} cannot take data it did not ask for")
            new = 0
            for number, (k, row) in tells.items():
                event = self._told(replica, number, row, cells, f"{called(k)}: ")
                if event is not None:
                    self.log.append(writer, replica, event)
                    new += 1
            for start in range(0, len(history), ROWS_PER_EVENT):
                chunk = history[start : start + ROWS_PER_EVENT]
                body: dict[str, Any] = {"arms": [name for name, *_ in chunk], "values": [row for *_, row in chunk]}
                if self.has_blocks:
                    body["blocks"] = [where for _, where, _ in chunk]
                if time is not None:
                    body["in_order"] = True
                elif not self.has_blocks:
                    body["by_digest"] = True
                if start + ROWS_PER_EVENT < len(history):
                    body["more"] = True
                self.log.append(writer, replica, self.log.event(replica, "data", None, body))
            return new + len(history)

    def _blocks_of(
        self, columns: Columns, block: str, numbers: Sequence[float | None], order: Sequence[int]
    ) -> list[str | None]:
        """Return on which block each row was measured, in a study with blocks; rows of trials need not say it."""
        blocks = self.spec.asked.blocks
        if blocks is None or blocks.rounds or (block not in columns.names and None not in numbers):
            return [None] * columns.n_rows
        named, known = columns.labels(block), set(blocks.names)
        for row, name in enumerate(named):
            if name not in known:
                raise UnknownName(f"block in {columns.row(row)}:", name, blocks.names)
        return [named[row] for row in order]

    # What is known

    @property
    def done(self) -> bool:
        """Whether every arm has its verdict."""
        with self.log.reading() as replica:
            return replica.done

    def standing(self, at: int | None = None) -> Standing:
        """Return all that is known, from one moment: after the last event, or after an earlier one, by its number.

        An earlier standing is made by following the log from its beginning, and names no concerns.
        """
        if at is not None:
            return standing_of(self.log.as_of(checks.whole("at of standing", at, least=-1)), self.name)
        with self.log.reading() as replica:
            return standing_of(replica, self.name, self._look(replica))

    def details(self) -> Details:
        """Return the standing with what a page shows beside it, from one moment, as a copy."""
        with self.log.reading() as replica:
            standing = standing_of(replica, self.name, self._look(replica))
            return Details(standing, self.spec.lease, replica.stuck, replica.frozen())

    def history(self, at: int | None = None) -> History:
        """Return how it came to be so: what the log says, of which only what is new is read.

        at: the number of the last event that it knows of, as a standing has it. None: the last one there is.
        """
        with inside(), self._history_lock:
            history = self._history
            cut = history.last >= 0 and self.storage.head(self.name, history.last).mark != self._history_mark
            if cut or (at is not None and history.last > at):
                history = self._history = History(self.spec.arms)  # the log was cut since, or another thread is ahead
            new = self.storage.events(self.name, history.last)
            try:
                history.follow(new if at is None else takewhile(lambda event: event.number <= at, new))
            finally:  # a caller that was stopped left it after an event, and the next one goes on
                self._history_mark = self.storage.head(self.name, history.last).mark if history.last >= 0 else ""
            return history.copy()

    def verdicts(self) -> VerdictTable:
        """Return what is known of each arm, with the guarantee, what it rests on, and what speaks against that."""
        return self.standing().table

    def proven(self) -> VerdictTable:
        """Return what the algorithm proves of each arm, whatever the goal makes of it."""
        with self.log.reading() as replica:
            return replica.proven()

    @property
    def exhausted(self) -> bool:
        """Whether the budget is spent: all of it was told, or is on its way."""
        with self.log.reading() as replica:
            return replica.exhausted

    def with_larger_eps(self) -> VerdictTable | None:
        """Return the verdicts with a larger eps, if all would be decided by now; it may be chosen after looking."""
        with self.log.reading() as replica:
            return replica.with_larger_eps()

    def for_population(self) -> VerdictTable | None:
        """Return the verdicts for all blocks there could be, if those of the list were stated to be a sample of them.

        They rest on the same outcomes, and have a delta of their own: both readings together may fail with 2 delta.
        None if the study was not told so, has guards, or its options changed.
        """
        with self.log.reading() as replica:
            return replica.for_population()

    def with_eps(self, eps: Eps) -> VerdictTable:
        """Return the practical verdicts with another eps, in units of the metrics; it may be chosen after looking.

        eps: one number or percentage for all metrics, one for each, or {name: eps}.
        """
        metrics = self.spec.asked.with_eps(eps).metrics
        with self.log.reading() as replica:
            return replica.with_eps(metrics)

    @property
    def stuck(self) -> bool:
        """Whether something is undecided, and more measurements are of no use."""
        with self.log.reading() as replica:
            return replica.stuck

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to ask for: all is decided, the budget is spent, or more is of no use."""
        with self.log.reading() as replica:
            return replica.finished

    def bearing(self) -> list[str]:
        """Return the options whose measurements tell most of what is undecided: of practical verdicts, else none."""
        with self.log.reading() as replica:
            return replica.bearing()

    def needed(self) -> float:
        """Return how many more measurements practical verdicts need, about, if the estimates are right."""
        with self.log.reading() as replica:
            return 0.0 if replica.judgement is None else float(replica.judgement.needs.sum())

    def _look(self, replica: Replica) -> tuple[Concern, ...]:
        """Return what speaks against the assumptions: everybody examines the same events, and sees the same."""
        if replica.look >= 0 and (after := (replica.look, *replica.withdrawn, len(replica.arms))) != self._looked_after:
            self._concerns, self._looked_after = self._examined(replica), after
        return (*self.noticed, *self._concerns)

    def _examined(self, replica: Replica) -> tuple[Concern, ...]:
        """Look for what the guarantee does not allow for, in what was measured of late."""
        if replica.blocks is not None:  # what blocks have in common is no noise
            return (*few_carry(replica), *laws_seen(replica))
        rows: list[tuple[int, int, list[float | None]]] = []  # the order of asking, or of telling; arm; values
        ordered = True
        after = max(-1, replica.look - EXAMINED_EVENTS)
        for event in self.storage.events(self.name, after, kinds=("tell", "data")):
            if event.number > replica.look:
                break
            if event.kind == "tell":
                rows.append((event.trial or 0, replica.index[event.body["arm"]], event.body["values"]))
            else:
                ordered = ordered and bool(event.body.get("in_order"))
                told = zip(event.body["arms"], event.body["values"], strict=True)
                rows += [(event.number, replica.index[arm], values) for arm, values in told]
        rows.sort(key=lambda row: row[0])
        stated = replica.measured
        arms, values = np.array([arm for _, arm, _ in rows], np.int64), as_array([values for *_, values in rows])
        for column, metric in enumerate(stated):
            values[:, column] = metric.compared(values[:, column])
        there = ~np.isin(arms, list(replica.withdrawn))
        order = np.argsort(arms[there], kind="stable")
        measured, begins = np.unique(arms[there][order], return_index=True)
        of_arm = np.split(values[there][order], begins[1:])
        seen = examine(
            [replica.arms[arm] for arm in measured],
            self.spec.columns,
            [[column[~np.isnan(column)] for column in series.T] for series in of_arm],
            normal=[
                sigma is None and metric.bounds is None for metric, sigma in zip(stated, self.spec.sigma, strict=True)
            ],
            ordered=ordered,
            exact=[metric.exact for metric in stated],
            eps=[metric.tolerance for metric in stated],
        )
        relative = {metric.name for metric in stated if metric.relative}
        seen = [concern.in_own_unit() if concern.metric in relative else concern for concern in seen]
        return (*seen, *laws_refuted(replica))

    def front(self) -> list[str]:
        """Return the arms that are proven to be on the front."""
        return list(self.verdicts().front)

    @property
    def takes_unasked(self) -> bool:
        """Whether the algorithm can take outcomes that it did not ask for."""
        with self.log.reading() as replica:
            return replica.accepts.unasked

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the contexts, as they were encoded."""
        return self.spec.features

    @property
    def arms(self) -> list[str]:
        """The arms that are there."""
        with self.log.reading() as replica:
            return [replica.arms[arm] for arm in replica.present]

    @property
    def withdrawn(self) -> dict[str, str]:
        """Arms that were withdrawn or broke a guard, and why; `standing().withdrawn` has the kind of each, too."""
        return {each.option: each.reason for each in self.standing().withdrawn}

    @property
    def open(self) -> list[Trial]:
        """Trials that were asked and are neither told nor void, oldest first."""
        with self.log.reading() as replica:
            return [
                Trial(number, replica.arms[lease.arm], block=replica.block_called(lease.position))
                for number, lease in replica.open.items()
            ]

    def counts(self) -> dict[str, int]:
        """Return how many trials were asked, told, are open and are void, how many rows were imported.

        waiting: outcomes that will count when all trials asked before them are told or void; late: outcomes that are no
        evidence, because their trial was void when they came.
        """
        with self.log.reading() as replica:
            return replica.counts()

    def asked_and_told(self) -> dict[str, Heard]:
        """Return what became of the trials of each arm, withdrawn ones too: whether what is lost depends on the arm.

        If outcomes of one arm get lost more often than those of others, and that has to do with their values, its
        mean is not what it seems. It reads the whole log.
        """
        with self.log.reading() as replica:
            arms, at_once = list(replica.arms), replica.gives_up_at_once
        return asked_and_told(arms, self.storage.events(self.name, kinds=TRIAL_KINDS), at_once)

    def explain(self, arm: str) -> Explanation:
        """Say why an arm has its verdict, by how much, and what is still missing."""
        return self.details().explain(arm)

    def remaining(self, replicates: int = 20, seconds: float = 1.0) -> Remaining:
        """Estimate how many more samples it takes, and how many it would take to measure all arms equally often.

        Futures that were not followed to their end within `seconds` count as very long ones.
        """
        return remaining(
            self.log.copy(),
            checks.whole("replicates of remaining", replicates, least=1),
            checks.number("seconds of remaining", seconds, least=0.0),
        )

    def observations(self) -> Iterator[tuple[int | None, str, list[float | None], float]]:
        """Yield all outcomes in the order they came in: trial (None: imported), arm, values, time."""
        for trial, arm, _, values, at in self.measurements():
            yield trial, arm, values, at

    def measurements(self) -> Iterator[tuple[int | None, str, str | None, list[float | None], float]]:
        """Yield what `observations` does, with the block after the arm; None: the study has no blocks."""
        parts: dict[int | None, tuple[str, str | None, list[float | None], float]] = {}
        asked: dict[int | None, tuple[str, str | None]] = {}  # failures are outcomes, but do not name their arm
        failures = ("ask", "fail") if self.spec.asked.on_failure == MEASURE else ()
        for event in self.storage.events(self.name, kinds=("tell", "data", *failures)):
            if event.kind == "ask":
                asked[event.trial] = event.body["arm"], event.body.get("block")
            elif event.kind == "fail":
                if not event.body.get("cut"):
                    failed = [0.0 if name == SUCCESS else None for name in self.spec.columns]
                    yield event.trial, *asked[event.trial], failed, event.at
            elif event.kind == "tell":
                told = parts.pop(event.trial)[2] if event.trial in parts else None
                values = completed(told, event.body["values"])
                outcome = event.body["arm"], event.body.get("block"), values, event.at
                if event.body.get("more"):
                    parts[event.trial] = outcome
                else:
                    yield event.trial, *outcome
            else:
                blocks = event.body.get("blocks", [None] * len(event.body["arms"]))
                for name, block, row in zip(event.body["arms"], blocks, event.body["values"], strict=True):
                    yield None, name, block, list(row), event.at
        for trial, outcome in parts.items():
            yield trial, *outcome

    def to_frame(self, package: str | None = None) -> Any:
        """Return all outcomes as a frame of pandas, polars or pyarrow; the first that is installed, unless named.

        The column "late" is there if some of them are no evidence because their trials were void.
        """
        rows = list(self.measurements())
        columns: dict[str, list[Any]] = {
            "trial": [trial for trial, *_ in rows],
            "arm": [name for _, name, *_ in rows],
        }
        if self.has_blocks:
            columns["block"] = [block for _, _, block, *_ in rows]
        if late := self.late_trials():
            columns["late"] = [trial in late for trial, *_ in rows]
        for position, name in enumerate(self.spec.columns):
            columns[name] = [values[position] for *_, values, _ in rows]
        columns["at"] = [at for *_, at in rows]
        return frame_of(columns, package)

    def plot_front(self, path: str | Path | None = None, **how: Any) -> Any:
        """Draw the verdicts under the study's title, or the answer; see `plots.front`."""
        from .. import plots

        return plots.front(self.verdicts(), path=path, **{"title": self.spec.title, **how})

    # Arms

    def add_arms(self, arms: Any, looked: bool = True, cost: Any = None) -> None:
        """Add arms: new ones, or some that were withdrawn. Those that are there keep their share of delta.

        cost: as in `Study`, if the study has costs.
        looked: say False if the outcomes so far were no reason to add arms, and to add just these. The guarantee then
        says so. If you do not, what was measured so far may be why they were picked: it says nothing of pairs with
        them. Only what is asked from now on counts there, and it takes a little more to escape them. With contexts or
        blocks, and of arms that were withdrawn, that is refused.
        """
        contexts = [name for name in self.spec.features if name != "1"]
        if any(" = " in name for name in contexts):
            raise NotSupported("arms cannot be added to a study whose contexts have categories: make a new one")
        if self.spec.asked.sigma.ndim > 1:
            raise NotSupported("arms cannot be added to a study that knows the noise scale of each of its arms")
        names, _, rows, costs = _arms(arms, contexts, cost)
        if (costs is None) != (self.spec.asked.cost is None):
            raise InvalidInput(f"cost of arms must be {'given' if costs is None else 'left out'} as in the study")
        with self.log.writing() as (writer, replica):
            for name in arm_names(names):
                if name in replica.index and replica.index[name] not in replica.withdrawn:
                    raise InvalidInput(f"names of arms must differ, got {name!r}, which is there already")
            looked = looked and bool(replica.told or replica.imported or replica.parts or replica.late)
            if looked and replica.keeps_shares and not replica.may_look(names):
                raise NotSupported(
                    "arms that were withdrawn cannot be added after looking at outcomes, nor any to a study whose "
                    "contexts count, or whose options are measured on the same blocks: make a new study with all of "
                    "them, or say that the outcomes so far were no reason to add these (looked=False; add-arm "
                    "--without-looking)"
                )
            added = [
                [name, None if rows is None else rows[k], *([] if costs is None else [costs[k]])]
                for k, name in enumerate(names)
            ]
            self._change_arms(writer, replica, {"add": added, **({"looked": True} if looked else {})})

    def withdraw(self, arm: str, reason: str = "withdrawn", looked: bool = False, kind: str = "by hand") -> None:
        """Take an arm out. Its outcomes are kept; verdicts that rested on it are judged again.

        kind: "by hand", or "failed" if its measurements fail.
        looked: say True if the outcomes so far were a reason to withdraw it. If you do not, the guarantee says that
        they were no reason. If you do, and the arm stood when it left, the arms of the front must still escape it: you
        cannot take out the best ones and call the next ones optimal.
        """
        if kind not in KINDS or kind == "guard":
            raise InvalidInput(f"kind of withdraw must be 'by hand' or 'failed', got {checks.got(kind)}")
        with self.log.writing() as (writer, replica):
            if arm not in replica.index or replica.index[arm] in replica.withdrawn:
                raise UnknownName("arm", arm, [replica.arms[k] for k in replica.present])
            if len(replica.present) == 1:
                raise InvalidInput(f"a study must keep at least one arm, and {arm!r} is the last one")
            body = {"withdraw": {arm: str(reason)}, "looked": bool(looked), "kind": kind}
            self._change_arms(writer, replica, body)

    def _change_arms(self, writer: Writer, replica: Replica, body: dict[str, Any]) -> None:
        if not replica.keeps_shares:
            raise NotSupported(
                f"algorithm {self.spec.algorithm!r} cannot add or withdraw options: its delta is for those it has"
            )
        self.log.append(writer, replica, self.log.event(replica, "arms", None, body))

    # Checks

    def _chosen(self, replica: Replica, arm: str) -> int:
        if arm not in replica.index:
            raise UnknownName("arm", arm, replica.arms)
        if replica.index[arm] in replica.withdrawn:
            raise InvalidInput(f"arm of ask must not be withdrawn, got {arm!r}")
        if not replica.accepts.unasked:
            raise NotSupported(f"algorithm {self.spec.algorithm!r} cannot take data it did not ask for")
        return replica.index[arm]

    def _check_may_ask(self, replica: Replica, more: bool) -> None:
        if replica.exhausted:
            raise NotSupported(f"the budget of {counted(self.spec.budget or 0, 'sample')} is spent")
        if not replica.accepts.pending and replica.session.open and not replica.again:
            raise NotSupported(
                f"algorithm {self.spec.algorithm!r} asks one question at a time: "
                + ("ask for one" if more else f"tell trial {next(iter(replica.open))} first, or say that it failed")
            )

    def _told(
        self,
        replica: Replica,
        number: int,
        row: Row,
        given: Iterable[str],
        where: str = "",
        below: Sequence[str] = (),
    ) -> Event | None:
        """Return the event of a tell; None: it was told before, with the same values. What is not given is to come."""
        self._check_may_tell(replica, number)
        lease = replica.open.get(number)
        arm = replica.arms[lease.arm] if lease else str(self._asked_of(number, where)["arm"])
        told, ended = replica.parts.get(number), False
        for event in [] if lease else self._tells(number):
            told = completed(told, event.body["values"])
            ended = not event.body.get("more") or self.spec.rules == 1  # by these, what is late may count
        if told is not None:
            for old, new in zip(told, row, strict=True):
                if new is not None and old != new and (old is not None or ended):
                    shown = dict(zip(self.spec.columns, told, strict=True))
                    raise Conflict(f"{where}trial {number} was told before, with other values: {shown}")
        whole, names = completed(told, row), set(given)
        more = any(value is None and name not in names for name, value in zip(self.spec.columns, whole, strict=True))
        if whole == told and (more or lease is None):
            return None
        self._rows.check(row, f"{where}outcome of trial {number}", replica.accepts, whole, more)
        body: dict[str, Any] = {"arm": arm, "values": row}
        if self.has_blocks:
            body["block"] = replica.block_called(lease.position) if lease else self._asked_of(number)["block"]
            self._check_ratios(replica, [(arm, body["block"], row)] if lease else [], where)
        if more:
            body["more"] = True
        if below:
            body["below"] = list(below)
        return self.log.event(replica, "tell", number, body)

    def _check_may_tell(self, replica: Replica, number: int) -> None:
        """Refuse the outcome of a trial that somebody else asked for, unless whoever tells it may tell all."""
        caller = self.log.caller
        if caller is None or caller.may_tell is None:
            return
        lease = replica.open.get(number)
        if not caller.may_tell(lease.by if lease else self.log.of_trial(number)[0].by):
            raise NotAllowed(f"trial {number} was asked for by somebody else: only they may tell it, or a wider scope")

    def _tells(self, number: int) -> list[Event]:
        """Return the events that told a trial."""
        return [event for event in self.log.of_trial(number) if event.kind == "tell"]

    def _asked_of(self, number: int, where: str = "") -> dict[str, Any]:
        """Return what was asked with a trial: its arm, and its block."""
        for event in self.log.of_trial(number, where):
            if event.kind == "ask":
                return event.body
        raise InvalidInput(f"{where}trial must be one that was asked, got {number}")

    def _check_arm(self, number: int, arm: str | None, block: str | None, replica: Replica, where: str) -> None:
        """Refuse a row of a trial that names another arm, or another block."""
        if arm is None and block is None:
            return
        lease = replica.open.get(number)
        if lease:
            asked = {"arm": replica.arms[lease.arm], "block": replica.block_called(lease.position)}
        else:
            asked = self._asked_of(number, f"{where}: ")
        for what, said in (("arm", arm), ("block", block)):
            if said is not None and asked[what] != said:
                raise InvalidInput(f"{where} says {what} {said!r}, but trial {number} is of {asked[what]!r}")

    def _check_ratios(
        self, replica: Replica, rows: Sequence[tuple[str, str | None, Sequence[float | None]]], where: str = ""
    ) -> None:
        """Refuse outcomes on a block of which one is more times another than the metric was said to allow.

        rows: arm, block and values of each; with what is known of their blocks.
        """
        for column, metric in enumerate(self.spec.metrics):
            if metric.ratio is None or self.in_rounds:  # a round cannot take back what was run
                continue
            on: dict[str | None, list[tuple[float, str]]] = {}
            for arm, block, row in rows:
                if (value := row[column]) is not None:
                    if block not in on:
                        on[block] = replica.known_on(block, column)
                    on[block].append((value, arm))
            for block, known in on.items():
                (low, less), (high, more) = min(known), max(known)
                if high > low * metric.ratio * (1.0 + 1e-9):
                    raise InvalidInput(
                        f"{where}{metric.name!r} of an option must be at most {metric.ratio:g} times that of another "
                        f"on the same block, as its ratio says, got {high:g} of {more!r} and {low:g} of {less!r} on "
                        f"{block!r}"
                    )


def _if_whole(number: float) -> Any:
    return int(number) if number == int(number) else number


def remark(of: str, note: Any, tags: Any) -> dict[str, Any]:
    """Return what somebody wrote about something, checked, as it is kept: nothing, where nothing was written.

    >>> remark("a study", "warm-up", ["pilot"]), remark("a study", "", [])
    ({'note': 'warm-up', 'tags': ['pilot']}, {})
    """
    if not isinstance(note, str) or len(note) > LONGEST_NOTE:
        raise InvalidInput(f"note of {of} must be a text of at most {LONGEST_NOTE:,} letters, got {checks.got(note)}")
    if isinstance(tags, str) or not isinstance(tags, Sequence) or len(tags) > MOST_TAGS:
        raise InvalidInput(f"tags of {of} must be a list of at most {MOST_TAGS} texts, got {checks.got(tags)}")
    named = list(dict.fromkeys(checks.name(f"tag of {of}", tag) for tag in tags))
    return {**({"note": note} if note else {}), **({"tags": named} if named else {})}


def _number(trial: Trial | int) -> int:
    return trial.number if isinstance(trial, Trial) else checks.whole("trial", trial, least=0)


def _arms(
    arms: Any, contexts: Sequence[str], cost: Any = None
) -> tuple[list[str], tuple[str, ...], list[list[float]] | None, list[float] | None]:
    """Return the names of arms, and what is known of them: names of contexts, contexts, costs."""
    if isinstance(arms, str):
        raise InvalidInput(f"arms of a study must be a list of names or a frame, got {checks.got(arms)}")
    if not isinstance(arms, Mapping) and not hasattr(arms, "columns"):
        if contexts:
            raise InvalidInput("contexts of a study must be columns of a frame of arms, got a list of names")
        if not isinstance(arms, Iterable) or isinstance(arms, (set, frozenset)):
            raise InvalidInput(f"arms of a study must be a list of names or a frame, got {checks.got(arms)}")
        names = [str(arm) if isinstance(arm, (int, str, np.integer)) else arm for arm in arms]
        return names, (), None, _costs(cost, names)
    columns = Columns(arms, "the frame of arms")
    if not columns.names:
        raise InvalidInput("the frame of arms must have a column with their names, got none")
    label = "arm" if "arm" in columns.names else columns.names[0]
    names = columns.labels(label)
    costs = columns.numbers(cost).tolist() if isinstance(cost, str) else _costs(cost, names)
    if not contexts:
        return names, (), None, costs
    features, rows = encode(columns, contexts)
    return names, features, rows, costs


def _with_success(metrics: Any) -> tuple[Metric, ...]:
    """Return metrics that end with the share of trials that succeed."""
    known = metrics_of(metrics)
    return known if known[-1].name == SUCCESS else (*known, Metric(SUCCESS, "max", 0.05, kind="pass/fail"))


def _blocks(blocks: Any, target: str, sample: bool = False) -> Blocks | None:
    """Return blocks, however they are stated."""
    if blocks is None:
        for what, given, usual in (("target", target, "list"), ("sample", sample, False)):
            if given != usual:
                raise InvalidInput(
                    f"{what} of a study must be left out where it has no blocks, got {checks.got(given)}"
                )
        return None
    if isinstance(blocks, str) and blocks == "rounds":
        if sample:
            raise InvalidInput("sample of a study must be left out where its blocks are rounds, got True")
        return Blocks((), "population", passing=True)
    if isinstance(blocks, Mapping) or hasattr(blocks, "columns"):
        columns = Columns(blocks, "the frame of blocks")
        names = columns.labels("block" if "block" in columns.names else columns.names[0])
    elif isinstance(blocks, (str, set, frozenset)) or not isinstance(blocks, Iterable):
        raise InvalidInput(f"blocks of a study must be a list of names or a frame, got {checks.got(blocks)}")
    else:
        names = [str(block) if isinstance(block, (int, str, np.integer)) else block for block in blocks]
    if not names:
        raise InvalidInput("blocks of a study must be at least 3, got none")
    return Blocks(tuple(names), target, sample=sample)


def _costs(cost: Any, names: Sequence[str]) -> list[float] | None:
    """Return what a sample of each arm costs, from one number for each, in their order or by name."""
    if cost is None:
        return None
    if isinstance(cost, str):
        raise InvalidInput(f"cost of a study must be a column of a frame of arms, or numbers, got {checks.got(cost)}")
    if isinstance(cost, Mapping):
        known = set(names)
        for name in cost:
            if name not in known:
                raise UnknownName("arm in cost of a study:", name, names)
        if lacking := [name for name in names if name not in cost]:
            raise InvalidInput(f"cost of a study must be given for every arm, got none of {lacking[0]!r}")
        cost = [cost[name] for name in names]
    numbers = checks.floats("cost of a study", cost)
    if numbers.shape != (len(names),):
        raise InvalidInput(f"cost of a study must be one number per arm ({len(names)}), got {checks.got(cost)}")
    return [float(number) for number in numbers]


def _where(storage: str | Path | Storage | None) -> str | Path | Storage:
    return storage or os.environ.get("PARETOSCOUT_STORAGE") or STORAGE
