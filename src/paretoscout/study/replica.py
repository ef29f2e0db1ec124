"""The state of a study: a pure function of its settings and its events.

Each process has a replica of its own and keeps it up to date by applying the events that others appended. Nothing here
looks at a clock or a file: whoever applies the same events has the same state, to the last bit.

| event | what happens |
|---|---|
| ask | the algorithm is asked, or a question that lapsed is asked again, or the arm was chosen; the new trial is open |
| tell | the outcome of a trial is taken in: the answer to its question if that is still open, else further data (where
the algorithm can take such; else it is only kept) |
| fail, expire | the trial lapses and its question waits to be asked again; it can still be told |
| data | outcomes that nobody asked for |
| arms | arms are added or withdrawn: the algorithm starts anew with all outcomes of the arms that are there |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..algorithms.contract import Accepts
from ..algorithms.registry import get
from ..errors import NotSupported, UnreadableFile
from ..files import pack, unpack
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.widths import one_sided_mixture, t_mixture, tuned_rho
from ..session import Session
from ..storage.contract import Event
from ..streams import algorithm_stream
from ..verdicts import VerdictTable, assumptions
from .spec import Guard, StudySpec

#: Gives the tells and data before an event, by its number.
History = Callable[[int], Iterable[Event]]

#: The number of samples at which the tests of guards are narrowest.
TYPICAL_SAMPLES = 50.0


@dataclass(frozen=True)
class Lease:
    """A trial that was asked and is not yet told."""

    arm: int  # among all arms there ever were
    question: int | None  # of the running session; None: it was asked before the arms changed, or for a guard alone
    at: float  # when it was asked


@dataclass
class Tally:
    """How often each arm was measured in each column, with mean and squared deviations."""

    n: np.ndarray  # (A, C)
    mean: FloatArray  # (A, C)
    squares: FloatArray  # (A, C)

    @classmethod
    def empty(cls, n_arms: int, n_columns: int) -> Tally:
        """Nothing measured."""
        return cls(np.zeros((n_arms, n_columns), np.int64), *np.zeros((2, n_arms, n_columns)))

    def add(self, arm: int, values: Sequence[float | None]) -> None:
        """Take in an outcome; None is not measured."""
        for column, value in enumerate(values):
            if value is not None:
                self.n[arm, column] += 1
                off = value - self.mean[arm, column]
                self.mean[arm, column] += off / self.n[arm, column]
                self.squares[arm, column] += off * (value - self.mean[arm, column])

    def add_many(self, arms: IntArray, values: FloatArray) -> None:
        """Take in many outcomes (n, C) at once; NaN is not measured."""
        A = len(self.n)
        for column, given in enumerate(values.T):
            measured = ~np.isnan(given)
            arm, value = arms[measured], given[measured]
            more = np.bincount(arm, minlength=A)
            least = np.maximum(more, 1)
            mean = np.bincount(arm, value, A) / least
            squares = np.bincount(arm, (value - mean[arm]) ** 2, A)
            n = self.n[:, column]
            share = more / np.maximum(n + more, 1)
            off = np.where(more > 0, mean - self.mean[:, column], 0.0)
            self.squares[:, column] += squares + off * off * n * share
            self.mean[:, column] += off * share
            self.n[:, column] += more

    def grow(self, n_arms: int) -> None:
        """Make room for more arms."""
        more = n_arms - len(self.n)
        self.n, self.mean, self.squares = (
            np.concatenate([array, np.zeros((more, array.shape[1]), array.dtype)])
            for array in (self.n, self.mean, self.squares)
        )


class Replica:
    """The state of a study after the event `number`."""

    generation: int  # how often the arms changed
    asked: int
    told: int
    imported: int
    late_arms: int  # arms that were added
    partial: int  # outcomes in which a metric is missing

    def __init__(self, spec: StudySpec) -> None:
        self.spec = spec
        self.number = -1
        self.units, self.columns = spec.units, spec.columns
        self.arms = list(spec.arms)  # all there ever were: their order never changes
        self.contexts = None if spec.contexts is None else [list(row) for row in spec.contexts]
        self.withdrawn: dict[int, str] = {}  # arm -> why
        self.broken: list[int] = []  # those of them that broke a guard
        self.open: dict[int, Lease] = {}  # trials that were asked and neither told nor lapsed, by number
        self.lapsed: dict[int, Lease] = {}  # trials that failed or expired, and were not told after all
        self.again: list[int] = []  # questions of the session that wait to be asked again
        for name in COUNTERS:
            setattr(self, name, 0)
        self.tally = Tally.empty(len(self.arms), len(spec.columns))
        self._place_arms()
        self.session = self._start()

    # What there is to know

    def _place_arms(self) -> None:
        self.index = {name: arm for arm, name in enumerate(self.arms)}
        # the arms that are not withdrawn, in order: arm k of the session is the k-th of these
        self.present = [arm for arm in range(len(self.arms)) if arm not in self.withdrawn]
        self.place = {arm: k for k, arm in enumerate(self.present)}

    @property
    def accepts(self) -> Accepts:
        """What the algorithm can take."""
        return self.session.kernels.accepts

    @property
    def done(self) -> bool:
        """Whether every arm has its verdict, and every arm of the front keeps its guards for sure."""
        return self.session.done and self.unguarded() is None

    @property
    def spent(self) -> int:
        """How many samples of the budget are taken, or on their way."""
        return self.told + len(self.open) if self.accepts.unasked else self.session.asked - len(self.again)

    def verdicts(self) -> VerdictTable:
        """Return what is proven of the arms that are there."""
        spec, present = self.spec, self.present
        record, setup = get(spec.algorithm), self.session.setup
        notes = [assumptions(self.session.kernels, self.session.settings, setup), *self._notes()]
        basis = self.session.kernels.basis
        table = VerdictTable.of(
            self.session.verdicts(),
            arms=[self.arms[arm] for arm in present],
            metrics=spec.metrics,
            units=self.units,
            algorithm=record,
            setup=replace(setup, delta=spec.delta),
            assumed="; ".join(notes),
            basis=None if basis is None else basis(self.session.state),
        )
        if len(present) == 1 and self.breaks(present[0]) is not None:
            return replace(table, verdicts=("dominated",), rivals=(None,), remark="Every option breaks a guard.")
        return table

    def _notes(self) -> list[str]:
        """What the guarantee rests on besides the noise and the model."""
        spec, notes = self.spec, []
        if spec.guards:
            notes.append("among options that keep " + " and ".join(map(str, spec.guards)))
        L = len(spec.metrics)
        unknown = [name for name, sigma in zip(self.columns[L:], spec.sigma[L:], strict=True) if sigma is None]
        if unknown:
            notes.append(f"{', '.join(unknown)}: normal noise, variance unknown")
        if self.imported:
            notes.append(f"{self.imported:,} imported rows, chosen without looking ahead at their outcomes")
        if self.late_arms:
            notes.append("options added without looking at outcomes")
        if len(self.withdrawn) > len(self.broken):
            notes.append("options withdrawn without looking at outcomes")
        if self.partial or self.lapsed:
            notes.append("what is missing is missing whatever its value")
        return notes

    # Guards

    def guard_bounds(self, arm: int, guard: Guard, n: float | None = None) -> tuple[float, float]:
        """Return limits that the mean of a guarded column lies between; all of them hold together, at all times.

        n: the limits there would be after so many samples, if they go on as they were.
        """
        column = self.columns.index(guard.metric)
        n = float(self.tally.n[arm, column]) if n is None else n
        if self.tally.n[arm, column] == 0:
            return -np.inf, np.inf
        # half of delta, for each arm, guard and side alike
        alpha = self.spec.delta / 2 / (2 * len(self.arms) * len(self.spec.guards))
        sigma = self.spec.sigma[column]
        if sigma is None and column < len(self.spec.metrics):
            bounds = self.spec.metrics[column].bounds
            sigma = None if bounds is None else (bounds[1] - bounds[0]) / 2
        rho = tuned_rho(TYPICAL_SAMPLES, alpha)
        if sigma is None:
            deviation = float(np.sqrt(self.tally.squares[arm, column] / self.tally.n[arm, column]))
            width = t_mixture(n, 2 * alpha, deviation, rho)
        else:
            width = one_sided_mixture(n, alpha, sigma, rho) if sigma > 0 else 0.0
        mean = float(self.tally.mean[arm, column])
        return mean - width, mean + width

    def broken_by(self, arm: int, guard: Guard, n: float | None = None) -> bool:
        """Whether an arm breaks a guard for sure."""
        low, high = self.guard_bounds(arm, guard, n)
        return low > guard.limit if guard.sense == "<=" else high < guard.limit

    def kept_by(self, arm: int, guard: Guard, n: float | None = None) -> bool:
        """Whether an arm keeps a guard for sure, up to the eps of the metric."""
        low, high = self.guard_bounds(arm, guard, n)
        slack = next((metric.eps or 0.0 for metric in self.spec.metrics if metric.name == guard.metric), 0.0)
        return high <= guard.limit + slack if guard.sense == "<=" else low >= guard.limit - slack

    def settles(self, arm: int, guard: Guard, n: float) -> bool:
        """Whether n samples would settle a guard, if they go on as they were."""
        return self.broken_by(arm, guard, n) or self.kept_by(arm, guard, n)

    def breaks(self, arm: int) -> Guard | None:
        """Return the guard that an arm breaks for sure, if there is one."""
        return next((guard for guard in self.spec.guards if self.broken_by(arm, guard)), None)

    def keeps(self, arm: int) -> bool:
        """Whether an arm keeps all guards for sure."""
        return all(self.kept_by(arm, guard) for guard in self.spec.guards)

    def unguarded(self) -> int | None:
        """Return the least measured arm of the front whose guards are open, once all else is decided."""
        if not self.spec.guards or not self.session.done:
            return None
        table = self.verdicts()
        waiting = [lease.arm for lease in self.open.values()]
        front = [arm for arm, verdict in zip(self.present, table.verdicts, strict=True) if verdict == "front"]
        open_ = [arm for arm in front if not self.keeps(arm)]
        return min(open_, key=lambda arm: (self.tally.n[arm].min() + waiting.count(arm), arm), default=None)

    # Events

    def ask(self, at: float, chosen: int | None = None) -> Event:
        """Choose what to measure next, unless it was chosen, and return the event of it; it is applied already."""
        if chosen is not None:
            return self._asked(at, chosen, None, chosen=True)
        if self.session.done:
            arm = self.unguarded()
            if arm is None:
                raise NotSupported("the study is done: there is nothing left to ask")
            return self._asked(at, arm, None)
        again = bool(self.again)
        question = self.session.open[self.again.pop(0)] if again else self.session.ask()
        return self._asked(at, self.present[question.arm], question.number, again=again)

    def _asked(self, at: float, arm: int, question: int | None, **how: bool) -> Event:
        self.number += 1
        self.asked += 1
        self.open[self.number] = Lease(arm, question, at)
        body = {"arm": self.arms[arm], **{name: True for name, value in how.items() if value}}
        return Event(self.number, "ask", self.number, body, at)

    def _follow(self, event: Event) -> None:
        """Ask what the log says was asked. That is what asking anew gives, unless another version wrote it."""
        if event.body.get("chosen"):
            self.ask(event.at, self.index[event.body["arm"]])
            return
        mine = None if self.done else self.ask(event.at)
        if mine == event:
            return
        if not self.accepts.unasked:
            raise UnreadableFile(
                f"event {event.number} asks for {event.body['arm']}, but algorithm {self.spec.algorithm!r} would ask "
                f"for {mine and mine.body['arm']}: the log was changed, or written by another version of it"
            )
        question = None
        if mine is not None:
            question = self.open.pop(mine.number).question
            self.number, self.asked = self.number - 1, self.asked - 1
        if question is not None:
            self.session.forget(question)
        self._asked(event.at, self.index[event.body["arm"]], None)

    def apply(self, event: Event, history: History) -> None:
        """Take in an event that was appended; changes of the arms look at the history."""
        if event.number != self.number + 1:
            raise UnreadableFile(f"event {self.number + 1} is missing: the next one is {event.number}")
        if event.kind == "ask":
            self._follow(event)
            return
        self.number = event.number
        if event.kind == "tell":
            self._tell(event)
        elif event.kind in ("fail", "expire"):
            self._lapse(event.trial or 0)
        elif event.kind == "data":
            self._add(event)
        elif event.kind == "arms":
            self._change_arms(event, history)
        else:
            raise UnreadableFile(f"event {event.number} is of an unknown kind: {event.kind!r}")

    def _tell(self, event: Event) -> None:
        number, values = event.trial or 0, event.body["values"]
        lease = self.open.pop(number, None) or self.lapsed.pop(number)
        self.told += 1
        self.tally.add(lease.arm, values)
        outcome, observed = (part[0] for part in self._for_session(as_array([values])))
        self.partial += not observed.all()
        if lease.question in self.session.open:
            if not observed.any():
                self._again(lease.question)
                return
            if lease.question in self.again:
                self.again.remove(lease.question)
            self.session.tell(lease.question, outcome, observed)
        elif lease.arm in self.place and self.accepts.unasked and observed.any():
            self.session.add(self.place[lease.arm], outcome, observed)

    def _lapse(self, trial: int) -> None:
        self.lapsed[trial] = self.open.pop(trial)
        self._again(self.lapsed[trial].question)

    def _again(self, question: int | None) -> None:
        """Let a question be asked again, unless it is answered or somebody is at it."""
        if question is None or question not in self.session.open or question in self.again:
            return
        if all(lease.question != question for lease in self.open.values()):
            self.again.append(question)

    def _add(self, event: Event) -> None:
        arms = np.array([self.index[name] for name in event.body["arms"]])
        values = as_array(event.body["values"])
        self.imported += len(values)
        self.partial += int(np.isnan(values[:, : len(self.spec.metrics)]).any(axis=1).sum())
        self.tally.add_many(arms, values)
        self._feed(arms, values)

    def _feed(self, arms: IntArray, values: FloatArray) -> None:
        """Hand outcomes to the algorithm that it did not ask for; those of withdrawn arms it never sees."""
        outcomes, observed = self._for_session(values)
        places = np.array([self.place.get(arm, -1) for arm in range(len(self.arms))])[arms]
        kept = (places >= 0) & observed.any(axis=1)
        if kept.any():
            self.session.add_many(places[kept], outcomes[kept], observed[kept])

    def _for_session(self, values: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Outcomes (n, L) as the algorithm takes them, and which of them are there."""
        metrics = values[:, : len(self.spec.metrics)]
        observed = ~np.isnan(metrics)
        return np.where(observed, self.units.oriented(metrics), 0.0), observed

    def _change_arms(self, event: Event, history: History) -> None:
        for name, why in event.body.get("withdraw", {}).items():
            self.withdrawn[self.index[name]] = why
            if event.body.get("guard"):
                self.broken.append(self.index[name])
        added = event.body.get("add", [])
        for name, row in added:
            if name in self.index:
                del self.withdrawn[self.index[name]]
                self.broken = [arm for arm in self.broken if arm in self.withdrawn]
            else:
                self.arms.append(name)
                if self.contexts is not None:
                    self.contexts.append(row)
        self.late_arms += len(added)
        self.tally.grow(len(self.arms))
        self._place_arms()
        self.generation += 1
        self.again = []
        self.session = self._start()
        for trials in (self.open, self.lapsed):
            trials.update({number: replace(lease, question=None) for number, lease in trials.items()})
        arms: list[int] = []
        rows: list[list[float | None]] = []
        for past in history(event.number):
            told = past.kind == "tell"
            arms += [self.index[name] for name in ([past.body["arm"]] if told else past.body["arms"])]
            rows += [past.body["values"]] if told else past.body["values"]
        if arms:
            self._feed(np.array(arms), as_array(rows))

    def _start(self) -> Session:
        present = self.present
        contexts = None if self.contexts is None else [self.contexts[arm] for arm in present]
        setup = self.spec.setup(contexts, len(present), len(self.broken))
        session = Session(self.spec.algorithm_settings(), setup, self.spec.seed)
        session.rng = algorithm_stream(self.spec.seed, self.generation)
        return session

    # Snapshots

    def dump(self) -> bytes:
        """Return the whole state; `load` goes on from it bit for bit."""
        header = {
            "number": self.number,
            "arms": self.arms,
            "contexts": self.contexts,
            "withdrawn": list(self.withdrawn.items()),
            "broken": self.broken,
            "again": self.again,
            **{
                name: [(number, lease.arm, lease.question, lease.at) for number, lease in getattr(self, name).items()]
                for name in TRIALS
            },
            **{name: getattr(self, name) for name in COUNTERS},
        }
        arrays = {name: getattr(self.tally, name) for name in ("n", "mean", "squares")}
        return pack("study", header, {**arrays, "session": np.frombuffer(self.session.dump(), np.uint8)})

    @classmethod
    def load(cls, spec: StudySpec, data: bytes) -> Replica:
        """Return the replica that `dump` was called on."""
        header, arrays = unpack("study", data, "a snapshot")
        replica = cls.__new__(cls)
        replica.spec, replica.number = spec, header["number"]
        replica.units, replica.columns = spec.units, spec.columns
        replica.arms, replica.contexts = header["arms"], header["contexts"]
        replica.withdrawn = dict(map(tuple, header["withdrawn"]))
        replica.broken, replica.again = header["broken"], header["again"]
        for name in TRIALS:
            setattr(replica, name, {number: Lease(*rest) for number, *rest in header[name]})
        for name in COUNTERS:
            setattr(replica, name, header[name])
        replica.tally = Tally(arrays["n"], arrays["mean"], arrays["squares"])
        replica._place_arms()
        replica.session = Session.load(arrays["session"].tobytes())
        return replica


TRIALS = ("open", "lapsed")
COUNTERS = ("generation", "asked", "told", "imported", "late_arms", "partial")


def as_array(rows: Sequence[Sequence[float | None]]) -> FloatArray:
    """Return rows of outcomes as an array; None becomes NaN."""
    return np.array(rows, float)
