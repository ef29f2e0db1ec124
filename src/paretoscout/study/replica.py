"""The state of a study: a pure function of its settings and its events.

Each process has a replica of its own and keeps it up to date by applying the events that others appended. Nothing here
looks at a clock or a file: whoever applies the same events has the same state, to the last bit.

| event | what happens |
|---|---|
| ask | the algorithm is asked, or a question that lapsed is asked again, or the arm was chosen; the new trial is open.
In rounds: somebody chose the arms of a round, each has its event |
| tell | the outcome of a trial is known; it counts when all trials asked before it are told or void; a part of it: the
trial stays open |
| fail | the trial is void: its question waits to be asked again, and an outcome that comes later is kept, no evidence |
| void | nobody measures the trial any more: its worker died, or its run was stopped, or it was asked by hand. Its
question waits to be asked again, in rounds in the same round, and an outcome that comes later is kept, no evidence |
| expire | the lease is over: the question waits to be asked again; if it is also time to give up, as give-up |
| give-up | the trial is void; or, where the study says what silence means, that is its outcome |
| data | outcomes that nobody asked for, all or part of a table; they count in their turn, once the table is whole |
| arms | arms are added or withdrawn: every arm is judged again |
| note | somebody wrote something about the study, or about a trial: no verdict hangs on it |

Outcomes count in the order in which they were asked for, whatever the order in which they are told: fast ones may be
those of one kind, and no proof allows that these come first. `order="told"` is for those who know better. An algorithm
that can (`WhileHeld`) is shown what waits, and which trials are open: it may have verdicts that do not hang on these.

In a study with blocks an outcome is that of a cell: an arm on a block. All arms visit the blocks in one order, and an
outcome counts when those of its arm on all blocks before are in, whatever other arms do. A cell has one outcome: that
of its attempt with the lowest number that is not void.

In rounds (blocks that pass, without end) all trials of a round are asked for before it begins. Its outcomes count when
it is closed: all of them are told or void, and so are those of the rounds before. An arm that failed is missing in the
round, and other pairs are compared in it. If the round itself was cut short, for whatever reason, no pair is.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import laws
from ..algorithms.contract import Accepts, shares_of
from ..algorithms.registry import get
from ..algorithms.scout.blocks import radii_of_bets, reference_of
from ..diagnostics import FEWEST
from ..errors import NothingToAsk, NotSupported, UnreadableFile
from ..files import pack, unpack
from ..guarantee import NORMAL, assumptions, for_certain, guarantee_of
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.decisions import DOMINATED, DOUBTFUL, FRONT, GONE, MISSED, PRESENT, UNDECIDED
from ..kernels.dispatch import Held, Verdicts
from ..laws import PASS_FAIL, SILENT, law_of
from ..practical import Judge, Judgement, among, judge
from ..session import Session
from ..shown import counted, exact_span, rough_span
from ..start import setup_of
from ..statement import MEASURE, SUCCESS, VOID, Metric, Statement, margins
from ..storage.contract import Event
from ..streams import algorithm_stream
from ..verdicts import VerdictTable
from .ahead import ARMS_PER_OUTCOME, with_cells
from .guards import Guards, ends_of
from .line import TABLE, Line
from .rows import as_array, completed, drawn_order
from .spec import RULES, RULES_OF_ALL, RULES_OF_PRACTICAL, StudySpec
from .tally import Tally
from .workers import ASKED, DEAD, STOPPED

#: Gives the events before one, by its number, that say what was measured: those of the kinds in OUTCOMES.
History = Callable[[int], Iterable[Event]]
OUTCOMES = ("tell", "fail", "void", "expire", "give-up", "data")

#: What was measured is examined for noise that the guarantee does not allow for when there is so much more of it.
EXAMINED_AFTER = 1.05
#: By which factors eps may be larger so that all is decided, tried in turn.
LARGER_EPS = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0)
#: So many trials from the first open one on an algorithm may look at, at most; outcomes behind them wait.
MOST_HELD = 1024
#: Why an arm was withdrawn: its measurements failed, it broke a guard, somebody took it out.
KINDS = ("failed", "guard", "by hand")


@dataclass(frozen=True)
class Lease:
    """A trial that was asked, and is neither told nor void."""

    arm: int  # among all arms there ever were
    question: int | None  # of the running session; None: it was asked before the arms changed, or for a guard alone
    at: float  # when it was asked
    over: bool = False  # its question may be asked again, but an outcome still counts
    position: int | None = None  # of its block in the walk, or the number of its round; None: there are no blocks
    by: str = ""  # who asked
    run: str = ""  # the identity of the run that asked, see workers.py; "": it has none


@dataclass(frozen=True)
class Withdrawal:
    """Why an arm is not there any more."""

    kind: str  # one of KINDS
    reason: str
    missed: bool = False  # it stood, and was withdrawn by somebody who had looked


@dataclass(frozen=True)
class Outcomes:
    """What was measured and waits for its turn: of a trial (one row), or of a table."""

    arms: list[int]
    values: list[list[float | None]]
    question: int | None = None
    table: bool = False
    drawn: int | None = None  # rows come in an order drawn from the seed and this number, as earlier versions drew it
    asked: int = 0  # the number of the trial, or of the table
    position: int | None = None  # of its block in the walk; None: there are no blocks

    def arrays(self, seed: int) -> tuple[IntArray, FloatArray]:
        """Return arms (n,) and values (n, C) in the order in which they count."""
        arms, values = np.array(self.arms), as_array(self.values)
        if self.drawn is None:
            return arms, values
        order = np.random.default_rng([seed, self.drawn]).permutation(len(arms))
        return arms[order], values[order]


def _first(said: Verdicts, n: int) -> Verdicts:
    """Return what an algorithm says in its first n metrics."""
    return said._replace(estimates=said.estimates[:, :n], radii=said.radii[:, :n])


class Replica:
    """The state of a study after the event `number`."""

    generation: int  # how often the session was made again
    asked: int
    told: int
    imported: int
    lapsed: int  # trials that are void
    died: int  # of these: trials of dead workers
    taken: int  # trials that were asked by hand, and that a run voided
    stopped: int  # trials of runs that were stopped
    late: int  # outcomes that came when their trial was void
    late_arms: int  # arms that were added
    rows: int  # outcomes that count
    note: str
    tags: list[str]
    partial: int  # outcomes in which a metric is missing
    round: int  # the last one that was begun
    look: int  # the event after which what was measured was last to be examined, see `diagnostics`
    next_look: int  # after so many outcomes it is to be examined again

    def __init__(self, spec: StudySpec) -> None:
        self.spec = spec
        self.number = -1
        self._fix()
        self.arms = list(spec.arms)  # all there ever were: their order never changes
        self.added: list[list[Any]] = []  # of each arm that came later: with which addition, contexts, cost
        self.looks: list[list[int]] = []  # additions after looking: which they were, and their events
        self.withdrawn: dict[int, Withdrawal] = {}
        self.open: OrderedDict[int, Lease] = OrderedDict()  # trials that are neither told nor void, by number
        self.note, self.tags = "", []  # what somebody wrote about the study
        self.parts: dict[int, list[float | None]] = {}  # what was told of open trials of which more is to come
        self.waiting: dict[int, Outcomes] = {}  # what was measured and waits for trials asked before it, by number
        self.certain = False  # all is measured, and was judged by that
        self.cells: dict[tuple[int, int], tuple[int, list[float | None]]] = {}  # imported: arm, block; event, values
        self.cut: set[int] = set()  # rounds that were cut short, and are not closed yet
        self.rounds: list[int] = []  # of which round each block is that the session knows; a cut one is several
        self.table: list[Event] = []  # the parts of a table that is not whole yet
        self.again: dict[int, None] = {}  # questions of the session that wait to be asked again, oldest first
        self.repeat: list[tuple[int, int]] = []  # arms and rounds of void trials that are to be asked again
        self.counted: set[int] = set()  # arms of which something counted since somebody cleared it
        self.of_both: tuple[int, ...] = ()  # columns that are pass/fail because nothing but 0 and 1 was seen
        self.refuted: list[tuple[int, int, str]] = []  # the event that showed that a column has not this law
        self.censored: set[tuple[int, int]] = set()  # arms and columns with a value that was too small to be measured
        self.reached = np.full(len(self.arms), UNDECIDED)  # (A,) the verdict on each arm
        self.since = np.full(len(self.arms), -1)  # (A,) the event with which it came; -1: there was none
        for name in COUNTERS:
            setattr(self, name, 0)
        self.look, self.next_look = -1, FEWEST
        self.tally = Tally.empty(len(self.arms), len(spec.columns))
        self._index()
        self._start()

    # What there is to know

    def _fix(self) -> None:
        """Settle what follows from the settings."""
        self.units, self.columns = self.spec.asked.units, self.spec.columns
        blocks = self.spec.asked.blocks
        # as they are visited
        self.blocks = None if blocks is None else [blocks.names[block] for block in self.spec.walk]
        self.in_rounds = blocks is not None and blocks.rounds
        self.position = {name: place for place, name in enumerate(self.blocks or ())}
        self.logs = np.array([metric.relative for metric in self.spec.measured()])
        self.any_logs = bool(self.logs.any())
        self._known: VerdictTable | None = None  # the verdicts, until something happens
        self._ahead: Replica | None = None  # itself if all that was told counted, see `ahead`
        self.judge = Judge() if self.spec.practical else None
        self._status: IntArray | None = None  # of the session, when it was last looked at

    def _index(self) -> None:
        """Settle what follows from the arms, and the questions that are being answered."""
        self.index = {name: arm for arm, name in enumerate(self.arms)}
        self.present = [arm for arm in range(len(self.arms)) if arm not in self.withdrawn]
        self.there = np.array(self.present, np.int64)
        self.entered = np.array([0] * len(self.spec.arms) + [addition for addition, *_ in self.added])
        eras = {addition: era for era, (addition, _) in enumerate(self.looks, 1)}
        self.looked = np.array([eras.get(addition, 0) for addition in self.entered.tolist()])
        self._asked_of_all: Statement | None = None
        self.turns = sorted(self.waiting)  # a heap
        self.line: Line | None = None  # of what is open and what waits; None: nobody asked for it since
        self.attempts = Counter(lease.question for lease in self.open.values() if not lease.over)
        self.deadlines: list[tuple[float, int]] = []  # a heap: when something happens to a trial, unless it is told
        for number, lease in self.open.items():
            self._set_deadline(number, lease)
        self.shares = shares_of(self.entered)

    @property
    def keeps_shares(self) -> bool:
        """Whether arms can come and go: all there ever were have their place in the session, and their share."""
        return self.session.kernels.judge_again is not None

    def may_look(self, names: Sequence[str]) -> bool:
        """Whether arms may be added that were picked after looking: they are new, and judged on their own."""
        return self.session.kernels.after_looking and not any(name in self.index for name in names)

    @property
    def places(self) -> IntArray:
        """Where the arms that are there have their places in the session."""
        return self.there if self.keeps_shares else np.arange(len(self.there))

    @property
    def accepts(self) -> Accepts:
        """What the algorithm can take; on blocks an outcome has every metric."""
        accepts = self.session.kernels.accepts
        return accepts if self.blocks is None else replace(accepts, missing=False)

    @property
    def done(self) -> bool:
        """Whether every arm has its verdict, and every arm of the front keeps its guards for sure."""
        return self.decided and self.unguarded() is None

    @property
    def decided(self) -> bool:
        """Whether every arm has its verdict."""
        if self.judge is not None:
            return self.judge.decided
        return self.session.done and (self.blocks is None or not (self._statuses() == UNDECIDED).any())

    @property
    def used_up(self) -> bool:
        """Whether blocks are too few to decide all: more of them would tell, but there are none."""
        if self.blocks is None or self.in_rounds or self.decided or self._hopeless:
            return False
        if self.session.setup.passing:
            return True
        if not self.session.done:
            return False
        return not (self.open or self.again) and (self.judge is None or self._in_doubt() is None)

    def block_called(self, position: int | None) -> str | None:
        """Return the name of a block, by its place in the walk; of a round, its number."""
        if self.in_rounds and position is not None:
            return str(position)
        return None if position is None or self.blocks is None else self.blocks[position]

    def known_on(self, block: str | None, column: int) -> list[tuple[float, str]]:
        """Return what is known of a metric on a block, counted or waiting: the values, in its own unit, and whose."""
        position = self.position[str(block)]
        state = self.session.state
        counts = [
            (self.units.natural(self.units.undirected(state.outcomes[position, place]))[column], self.arms[arm])
            for arm, place in enumerate(self.place.tolist())
            if position < state.visited[place]
        ]
        told = [(waits.values[0], waits.arms[0]) for waits in self.waiting.values() if waits.position == position]
        told += [(row, arm) for (arm, where), (_, row) in self.cells.items() if where == position]
        waiting = [(value, self.arms[arm]) for row, arm in told if (value := row[column]) is not None]
        return [(float(value), name) for value, name in [*counts, *waiting]]

    @property
    def visited(self) -> list[str]:
        """The names of the blocks that the session knows, in their order."""
        return [str(number) for number in self.rounds] if self.in_rounds else list(self.blocks or ())

    @property
    def spent(self) -> int:
        """How many samples of the budget are taken, or on their way."""
        return self.told + len(self.open) if self.accepts.unasked else self.session.asked - len(self.again)

    @property
    def exhausted(self) -> bool:
        """Whether the budget is spent."""
        return self.spec.budget is not None and self.spent >= self.spec.budget

    def counts(self) -> dict[str, int]:
        """Return how many trials were asked, told and so on, see `Study.counts`."""
        return {
            "asked": self.asked,
            "told": self.told,
            "open": len(self.open),
            "lapsed": self.lapsed,
            "imported": self.imported,
            "waiting": sum(len(outcomes.arms) for outcomes in self.waiting.values()) + len(self.cells),
            "late": self.late,
        }

    def held_back(self) -> dict[int, int]:
        """Return how many outcomes wait for each of the pending trials, where any do: for the first that they need."""
        if not self.open or not (self.waiting or self.cells) or self.spec.order == "told":
            return {}
        first = next(iter(self.open))
        if self.in_rounds:
            first = min(self.open, key=lambda number: (self.open[number].position or 0, number))
        if self.blocks is None or self.in_rounds:
            return {first: sum(len(outcomes.arms) for outcomes in self.waiting.values())}
        waits = Counter(waiting.arms[0] for waiting in self.waiting.values()) + Counter(arm for arm, _ in self.cells)
        held: dict[int, int] = {}
        for number, lease in self.open.items():
            if waits[lease.arm] and lease.position == int(self.session.state.visited[self.place[lease.arm]]):
                held[number] = waits.pop(lease.arm)
        return held

    @property
    def measured(self) -> tuple[Metric, ...]:
        """The columns as metrics, some of them pass/fail by what was seen."""
        stated = self.spec.measured()
        return tuple(
            metric.seen_as_pass_fail() if column in self.of_both else metric for column, metric in enumerate(stated)
        )

    def law(self, column: int, arm: int | None = None) -> int:
        """Return the law of a column, for an arm or for all arms together."""
        metric, squares = self.spec.measured()[column], self.tally.squares[:, column]
        listed = self.blocks is not None and not self.in_rounds  # sigma is that of noise, not of blocks
        declared = laws.SIGMA if self.spec.sigma[column] is not None and not listed else laws.NORMAL
        if declared == laws.NORMAL and metric.bounds is not None:
            declared = PASS_FAIL if metric.pass_fail else laws.BOUNDS
        return law_of(
            declared,
            metric.exact,
            float(self.tally.told[column]),
            self.tally.different(column),
            not metric.relative and self.tally.of_both(column),
            bool((squares == 0.0).all() if arm is None else squares[arm] == 0.0),
        )

    @property
    def guards(self) -> Guards:
        """What is known of the limits that options must keep."""
        return Guards(self.spec, self.tally, self.shares, self.law, self.censored)

    @property
    def missed(self) -> list[int]:
        """Arms that stood, and were withdrawn by somebody who had looked."""
        return [arm for arm, withdrawal in self.withdrawn.items() if withdrawal.missed]

    def _asked_of(self, seated: IntArray) -> Statement:
        """Return what is asked, of some of all arms."""
        asked = self.spec.asked
        if not self.added and len(seated) == len(asked.arms) and not self.of_both:
            return asked
        known: dict[str, Any] = {"arms": tuple(self.arms[arm] for arm in seated)}
        known["metrics"] = self.measured[: len(asked.metrics)]
        for name, column in (("contexts", 1), ("cost", 2)):
            first, later = getattr(asked, name), [about[column] for about in self.added]
            if first is not None:
                known[name] = np.concatenate([first, np.array(later, float).reshape(-1, *first.shape[1:])])[seated]
        return replace(asked, **known)

    @property
    def asked_of_all(self) -> Statement:
        """What is asked of the arms that have a place in the session, by the metrics that are judged."""
        if self._asked_of_all is None or len(self._asked_of_all.metrics) != self.n_judged:
            asked = self._asked_of(self.seated)
            judged = len(asked.metrics) == self.n_judged
            self._asked_of_all = asked if judged else asked.without_success()
        return self._asked_of_all

    @property
    def n_judged(self) -> int:
        """How many metrics are judged: all, but the share of successes only if a trial of a present arm has failed."""
        L = len(self.spec.metrics)
        if self.spec.asked.on_failure == VOID:
            return L
        n, share = self.tally.n[self.there, L - 1], self.tally.mean[self.there, L - 1]
        return L if (share[n > 0] < 1.0).any() else L - 1

    @property
    def _n_sums(self) -> int:
        """How many sums of metrics are judged, or metrics where there are no trade-offs."""
        return self.session.setup.n_metrics - len(self.spec.metrics) + self.n_judged

    @property
    def judged_metrics(self) -> tuple[Metric, ...]:
        """The metrics that are judged."""
        return self.measured[: self.n_judged]

    def verdicts(self) -> VerdictTable:
        """Return what is known of the arms that are there, as people act on it if that was asked for."""
        if self._known is None:
            table = self.proven()
            if self.judge is not None:
                table = self._with_pairs(table.judged(self.judge.judgement), self.session.setup.eps[: self._n_sums])
            if len(self.present) == 1 and self.guards.broken(self.present[0]) is not None:
                table = replace(table, verdicts=("dominated",), rivals=(None,), remark="Every option breaks a guard.")
            if self._hopeless:
                table = replace(table, remark=f"What is undecided hangs on {self._unknown()}.")
            if self.used_up:
                short = f"The list is too short: its {len(self.position)} blocks do not tell more."
                table = replace(table, remark=f"{table.remark} {short}".strip())
            elif self.blocks is not None and self.spec.guards and self.stuck:
                table = replace(table, remark=f"{table.remark} {self._short_of_guards()}.".strip())
            self._known = table
        return self._known

    def _short_of_guards(self) -> str:
        """Say which guards stay open because blocks are too few."""
        names, limits = [self.arms[arm] for arm in self._unguarded()], map(self.spec.limit, self.spec.guards)
        return (
            f"The list is too short: its {len(self.position)} blocks do not tell whether {', '.join(names)} "
            f"{'keeps' if len(names) == 1 else 'keep'} {' and '.join(limits)}"
        )

    def _unknown(self) -> str:
        """Say which numbers never varied, or are too small to be measured."""
        table, L = self.proven(), self.n_judged
        varied, n = self.tally.squares[self.there][:, :L] > 0.0, self.tally.n[self.there][:, :L]
        silent = table.never_varied & (n > 0) & self._silent_parts()[self.there]
        several = "give its bounds" if self.units.weights is None else "give the bounds of all metrics of its sums"
        kinds = (
            (table.below, "values of {} that are too small to be measured"),
            (
                silent & ~varied,
                "{}, which was the same in all measurements of an option: that proves nothing, unless it always is; if "
                "so, declare it exact. If each outcome is 0 or 1, declare it pass/fail",
            ),
            (silent & varied, f"{{}}, which has too few different values for normal noise: {several}"),
        )
        said = []
        for where, text in kinds:
            names = [metric.name for metric, so in zip(table.metrics, where.any(axis=0), strict=True) if so]
            said += [text.format(", ".join(names))] if names else []
        return "; and on ".join(said)

    def for_population(self) -> VerdictTable | None:
        """Return the verdicts for the population of which the list is a sample, from the same outcomes."""
        blocks = self.spec.asked.blocks
        if blocks is None or not blocks.sample or self.added or self.withdrawn or self.spec.guards:
            return None
        asked = replace(self.spec.asked, blocks=replace(blocks, target="population", sample=False))
        twin = self.frozen()
        twin.spec = replace(self.spec, asked=asked)
        twin._fix()
        twin._index()
        twin.certain = False
        twin._start()
        twin._feed_blocks(self.session.state, self.place)
        if twin.judge is not None:
            twin._look(twin.judge)
        table = twin.verdicts()
        both = f"with a delta of its own: both readings together may fail with probability {2.0 * asked.delta:.10g}"
        guarantee = replace(table.guarantee, assumptions=(*table.guarantee.assumptions, both))
        return replace(table, guarantee=guarantee)

    @property
    def judgement(self) -> Judgement | None:
        """The verdicts that people act on, if they were asked for; arms are numbered among those that are there."""
        return None if self.judge is None else self.judge.judgement

    def with_larger_eps(self) -> VerdictTable | None:
        """Return the verdicts with the least of some larger eps that decides all there is now; None: none does."""
        judged = self.judgement
        if judged is None or ((judged.status == UNDECIDED) & ~self.tally.n[self.there].any(axis=1)).any():
            return None  # whatever the eps, nobody decides on what was not measured
        for factor in LARGER_EPS:
            metrics = [metric.times_eps(factor) for metric in self.judged_metrics]
            judged = judge(**self._evidence(self._eps(metrics)))
            if judged.decided:
                table = self._judged(metrics, judged)
                if all(self.guards.kept(self.index[arm]) for arm in table.front):
                    return table
        return None

    def with_eps(self, metrics: Sequence[Metric]) -> VerdictTable:
        """Return the practical verdicts with the eps of these metrics.

        Whoever looked may choose it: what an algorithm eliminates and what its intervals say does not depend on eps.
        """
        if self.judge is None:
            raise NotSupported("another eps may be chosen after looking only where the goal is 'practical'")
        return self._judged(metrics, judge(**self._evidence(self._eps(metrics))))

    def _eps(self, metrics: Sequence[Metric]) -> FloatArray:
        """The eps of metrics that are judged, as algorithms compute."""
        eps: FloatArray = np.array([metric.tolerance for metric in metrics])
        summed = margins(self.spec.asked.weights, eps)
        return summed / self.units.ones[: len(summed)]

    def _judged(self, metrics: Sequence[Metric], judged: Judgement) -> VerdictTable:
        """Return the practical verdicts that were made with the eps of these metrics."""
        metrics = [
            metric.seen_as_pass_fail() if column in self.of_both else metric for column, metric in enumerate(metrics)
        ]
        asked, proven = replace(self.asked_of_all, metrics=tuple(metrics)), self.proven()
        tolerated = guarantee_of(asked, get(self.spec.algorithm), self.session.settings, ()).tolerated
        guarantee = replace(proven.guarantee, tolerated=tolerated)
        table = replace(proven, metrics=tuple(metrics), guarantee=guarantee).judged(judged)
        return self._with_pairs(table, self._eps(metrics))

    def _with_pairs(self, table: VerdictTable, eps: FloatArray) -> VerdictTable:
        """In rounds, say of options that are the same by how much they differ at most: eps, or as their pair shows."""
        if not self.in_rounds or "same" not in table.verdicts:
            return table
        ones = self.units.ones[: len(eps)]
        apart = np.tile(eps * ones, (len(table.arms), 1))
        for k, (verdict, rival) in enumerate(zip(table.verdicts, table.rivals, strict=True)):
            if verdict == "same" and rival is not None:
                found = self.session.compared(int(self.places[k]), int(self.places[table.place[rival]]))
                most = np.maximum(np.abs(found.low), np.abs(found.high))[: len(ones)] * ones
                apart[k] = np.minimum(apart[k], most)
        return replace(table, apart=apart)

    @property
    def stuck(self) -> bool:
        """Whether nothing is left to measure that is of use, though something is undecided, or a guard is open."""
        if self.unguarded() is not None:
            of_guards = self._to_guard() is None and not (self.open or self.again)
            return of_guards and (self.decided or self._hopeless or self.used_up)
        return self._hopeless or self.used_up

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to ask for: all is decided, the budget is spent, or more is of no use."""
        return self.done or self.exhausted or self.stuck

    @property
    def _hopeless(self) -> bool:
        """Whether verdicts hang on numbers that never vary, or cannot be measured: more of them are of no use."""
        judged = self.judgement
        return judged is not None and not judged.decided and not len(judged.bearing)

    def bearing(self) -> list[str]:
        """Return the arms that tell most of what is undecided, by their names."""
        judged = self.judgement
        return [] if judged is None else [self.arms[self.present[place]] for place in judged.bearing]

    def _look(self, judge: Judge) -> None:
        """Judge what people act on, of the arms that are there."""
        judge.look(self._rows_known, self.session.done, **self._evidence(self.session.setup.eps[: self._n_sums]))

    def _evidence(self, eps: FloatArray) -> dict[str, Any]:
        """What practical verdicts rest on, as `judge` takes it."""
        places, L, R = self.places, len(self.spec.metrics), len(eps)
        said, censored = _first(among(self.session.verdicts(), places), R), self._censored()
        n = self.units.fewest(self.tally.n[self.there][:, :L])[:, :R]
        if censored is not None:  # where only one bound was told, values are at least so good, whatever the noise
            one = censored & (n > 0) & (self.tally.squares[self.there][:, :R] == 0.0)
            means = self.units.directed(self.tally.mean[self.there][:, :L])[:, :R]
            said = said._replace(estimates=np.where(one, means, said.estimates), radii=np.where(one, 0.0, said.radii))
        apart, certain = self.session.kernels.apart, self.session.setup.certain[places][:, :R]
        if apart is not None:
            of_all = np.concatenate([eps, self.session.setup.eps[R:]])
            known = apart(self.session.state, self.session.constants, of_all)[np.ix_(places, places)][:, :, :R]
            if censored is not None:  # such a value may be better than what was told: nobody is sure to be ahead of it
                known = np.where(censored[:, None, :], -np.inf, known)
            still = None
            if self.in_rounds:  # there is no end of them: of those that are no evidence more tell nothing
                still = (n > 1) & self._silent_sums()[self.there] & ~certain
            return {"said": said, "eps": eps, "certain": certain, "censored": censored, "apart": known, "still": still}
        basis = self.session.basis()
        still = None if basis is None or not basis.held else np.zeros(n.shape, np.bool_)  # intervals are yet to come
        return {"said": said, "eps": eps, "certain": certain, "censored": censored, "n": n, "still": still}

    def _censored(self) -> BoolArray | None:
        """(K, L) of the arms that are there: whether something told was too small to be measured; None: nothing was."""
        if not self.censored:
            return None
        censored = np.zeros((len(self.arms), len(self.columns)), np.bool_)
        arms, columns = zip(*self.censored, strict=True)
        censored[list(arms), list(columns)] = True
        return censored[self.there][:, : self.n_judged]

    def proven(self) -> VerdictTable:
        """Return what the algorithm proves of the arms that are there."""
        there, settings = self.there, self.session.settings
        asked = self.asked_of_all
        record = get(self.spec.algorithm)
        if self.spec.guards and not self.keeps_shares:  # of a study that was begun under older rules
            record = record.without_guarantee("none: it cannot keep guards by the present rules")
        basis = self.session.basis()
        assumed = (*assumptions(asked, self.session.kernels, settings, self.session.setup, basis), *self._notes())
        said = self.session.verdicts()
        if self.blocks is not None:
            radii_of_bets(self.session.state, self.session.constants, said.radii, said.estimates)
        said = _first(said, len(asked.judged_by))
        guarantee = guarantee_of(asked, record, settings, assumed)
        if self.certain:
            guarantee = for_certain(guarantee, asked, self._notes())
        table = VerdictTable.of(
            said,
            asked,
            guarantee,
            basis,
        )
        if len(self.places) < len(table.arms):
            table = table.only(self.places.tolist())
        L = self.n_judged
        n, mean = self.tally.n[there][:, :L], self.tally.mean[there][:, :L]
        table = replace(table, seen=np.where(n > 0, mean, np.nan))
        if self.units.weights is not None and self.blocks is None:  # of sums alone it is known with their noise
            certain = (
                (n > 0) & (self.tally.squares[there][:, :L] == 0.0) & [metric.exact for metric in self.spec.metrics]
            )
            centres, widths = np.where(certain, mean, table.centres), np.where(certain, 0.0, table.widths)
            table = replace(table, centres=centres, widths=widths)
        if self.in_rounds:
            table = self._with_open_round(replace(table, widths=self._widths()))
        elif self.blocks is not None:  # means over other blocks cannot be compared
            table = replace(table, seen=np.where(n > 0, table.centres, np.nan), reference=self._reference())
        censored = self._censored()
        if censored is not None:
            unknown = censored & np.isinf(table.widths)  # what was told is an upper bound even so
            centres = np.where(unknown, self.tally.mean[there][:, :L], table.centres)
            table = replace(table, censored=censored, centres=centres)
        if self.missed and "undecided" in table.verdicts and not self.spec.practical:
            names = ", ".join(self.arms[arm] for arm in self.missed)
            remark = f"Options that are beaten by what was withdrawn after looking ({names}) stay undecided for ever."
            return replace(table, remark=f"{table.remark} {remark}".strip())
        return table

    def _reference(self) -> str | None:
        """The arm that was measured on most blocks: others are shown by their differences to it."""
        first = int(reference_of(self.session.state))
        shown = not self.certain and self.session.state.pulls[first] > 1
        return self.arms[self.seated[first]] if shown else None

    def _with_open_round(self, table: VerdictTable) -> VerdictTable:
        """Count and show what the open round gave so far; it is no evidence yet."""
        counts, seen = table.counts.copy(), np.array(table.seen)
        for waits in self.waiting.values():
            if waits.arms[0] not in self.withdrawn:
                k = table.place[self.arms[waits.arms[0]]]
                counts[k] += 1
                row = self._compared(as_array(waits.values))[0, : len(table.metrics)]
                seen[k] = np.where(np.isnan(seen[k]), row, seen[k])
        return replace(table, counts=counts, seen=seen)

    def _widths(self) -> FloatArray:
        """(K, L) how far the means of the arms that are there may be off, by the samples of each alone.

        Verdicts in rounds rest on differences, and not on these.
        """
        L, shares = len(self.spec.metrics), dict(self.spec.shares)
        widths = np.zeros((len(self.present), self.n_judged))
        for k, arm in enumerate(self.present):
            alpha = self.spec.delta * shares.get("intervals", shares["verdicts"]) * float(self.shares[arm]) / (2 * L)
            for column, metric in enumerate(self.judged_metrics):
                if not metric.exact or self.tally.n[arm, column] == 0 or self.tally.squares[arm, column] > 0.0:
                    low, high = ends_of(self.spec, self.tally, self.law(column, arm), arm, column, alpha)
                    mean = float(self.tally.mean[arm, column])
                    widths[k, column] = max(high - mean, mean - low)
        return widths

    def _notes(self) -> list[str]:
        """What the guarantee rests on besides the noise and the model."""
        spec, notes = self.spec, []
        if spec.guards:
            notes.append("among options that keep " + " and ".join(map(spec.limit, spec.guards)))
            if spec.asked.blocks is not None and spec.asked.blocks.listed and not self.certain:
                guarded = dict.fromkeys(guard.metric for guard in spec.guards)
                notes.append(f"{', '.join(guarded)} of an option over the blocks as from a normal law")
        L = len(spec.metrics)
        unknown = [name for name, sigma in zip(self.columns[L:], spec.sigma[L:], strict=True) if sigma is None]
        if unknown:
            notes.append(f"{', '.join(unknown)}: {NORMAL}")
        blocks = spec.asked.blocks
        if self.in_rounds and spec.guards:
            notes.append(f"limits: {NORMAL}")
        if blocks is not None and blocks.passing and not self.in_rounds:
            notes.append("which option was measured on which block has nothing to do with the outcomes")
        elif self.imported and not self.certain:
            notes.append(f"{counted(self.imported, 'imported row')}, chosen without looking ahead at their outcomes")
        if self.late_arms > np.count_nonzero(self.looked):
            notes.append("options added without looking at outcomes")
        if self.looks:
            names = ", ".join(self.arms[arm] for arm in np.flatnonzero(self.looked))
            notes.append(f"by what was asked or imported since, where it is about options added after looking: {names}")
        if any(withdrawal.kind != "guard" and not withdrawal.missed for withdrawal in self.withdrawn.values()):
            notes.append("options withdrawn without looking at outcomes")
        if self.missed and not spec.practical:
            names = ", ".join(self.arms[arm] for arm in self.missed)
            notes.append(f"those of the front are not beaten by what was withdrawn after looking either: {names}")
        if spec.asked.on_failure == MEASURE and self.n_judged == L:
            notes.append(f"{', '.join(self.columns[: L - 1])}: of trials that succeed")
        if self.partial:
            notes.append("what is missing is missing whatever its value")
        notes += [
            f"{what} for reasons that have nothing to do with the outcome"
            for n, what in (
                (self.died, "a worker dies"),
                (self.taken, "what was asked by hand is left untold"),
                (self.stopped, "a run is stopped"),
            )
            if n
        ]
        if self.lapsed > self.died + self.taken + self.stopped or spec.at_give_up:
            end = "" if spec.give_up is None else f" within {exact_span(spec.give_up)}"
            silent = ", ".join(f"{name} {value:g}" for name, value in spec.at_give_up)
            others = f"that end{end}, others count as {silent}" if silent else f"that succeed{end}"
            notes.append(f"about measurements {others}")
        if spec.order == "told":
            notes.append("how long a measurement takes has nothing to do with its outcome")
        of_others = RULES_OF_PRACTICAL if spec.practical else RULES_OF_ALL
        if spec.rules < (present := RULES if spec.algorithm == "scout" else of_others):
            how = "late outcomes count, as" if self._late_counts else "judged by those of"
            whose = "then" if self._late_counts else f"version {present}, from its log"
            notes.append(f"begun under the rules of version {spec.rules}, {how} {whose}")
        return notes

    # Guards

    def unguarded(self) -> int | None:
        """Return the least measured arm of the front whose guards are open, once all else is decided."""
        return self._least_measured(self._unguarded())

    def _to_guard(self) -> int | None:
        """Return the least measured of these that can be measured more: blocks may be too few for a guard."""
        return self._least_measured(
            arm
            for arm in self._unguarded()
            if (self.blocks is None or self.in_rounds or self.session.block_next(self.place[arm]) < len(self.blocks))
            and not (self.keeps_shares and self.guards.broken(arm))  # it leaves as soon as that counts
        )

    def _unguarded(self) -> list[int]:
        """Return the arms of the front whose guards are open, once all else is decided."""
        if not self.spec.guards or (self.judge is None and not self.session.done):
            return []
        return [arm for arm in self._front() if not self.guards.kept(arm)]

    def _least_measured(self, arms: Iterable[int]) -> int | None:
        waiting = Counter(lease.arm for lease in self.open.values())
        return min(arms, key=lambda arm: (self.tally.n[arm].min() + waiting[arm], arm), default=None)

    def _front(self) -> list[int]:
        if len(self.present) == 1 and self.guards.broken(self.present[0]) is not None:
            return []
        found: list[int] = self.there[self._statuses() == FRONT].tolist()
        return found

    def _statuses(self) -> IntArray:
        """The verdicts on the arms that are there."""
        return self.session.status[self.places] if self.judgement is None else self.judgement.status

    def _in_doubt(self) -> int | None:
        """Return the least measured arm of those on which a practical verdict hangs, once the algorithm has its own."""
        if self.judge is None:
            return None
        if self.blocks is not None:
            if self.judge.judgement is None:
                return self.present[0]  # there is one alone, and nothing is known of it
            begun = [self.session.block_next(place) for place in self.places]
            most = None if self.in_rounds else len(self.blocks)
            return next((self.present[place] for place in self.judge.turns(begun, 1, most)), None)
        counts = self.tally.n[:, : len(self.spec.metrics)].max(axis=1)
        for lease in self.open.values():
            counts[lease.arm] += 1
        return next((self.present[place] for place in self.judge.turns(counts[self.there], 1)), None)

    def _doubt(self) -> None:
        """Once all is decided: who keeps a guard only up to eps may be one that breaks it, and was not to be escaped.

        More evidence is needed to escape such an arm: the verdicts are judged again.
        """
        doubtful = [
            arm
            for arm in self._front()
            if self.session.presence(arm) == PRESENT
            and self.guards.kept(arm)
            and not self.guards.kept(arm, strictly=True)
        ]
        for arm in doubtful:
            self.session.set_presence(arm, DOUBTFUL)
        if doubtful:
            self.session.judge_again()
            self._hold()

    # Events

    def ask(self, at: float, chosen: int | None = None, by: str = "", run: str = "") -> Event:
        """Choose what to measure next, unless it was chosen, and return the event of it; it is applied already.

        by, run: who asks, see `Lease`.
        """
        if chosen is not None:
            return self._asked(at, chosen, self._question_on(chosen), by=by, run=run, chosen=True)
        again = next(iter(self.again), None)
        waited_for = self.blocks is not None and again is not None and not self.decided  # by blocks that come later
        ahead = self if self.done else self.ahead
        # people may act before the algorithm has its own
        if (ahead.session.done or ahead.decided or ahead._hopeless) and not waited_for:
            arm = None if ahead.decided else ahead._in_doubt()
            arm = ahead._to_guard() if arm is None else arm
            if arm is None and ahead is not self:
                raise NothingToAsk(self._why_wait(at))
            if arm is None and self._hopeless:
                raise NotSupported("more measurements are of no use: what is undecided hangs on " + self._unknown())
            if arm is None and self.used_up:
                raise NotSupported(
                    f"the list is too short: its {len(self.position)} blocks are measured, and do not tell more"
                )
            if arm is None and self.blocks is not None and self.stuck:
                raise NotSupported(self._short_of_guards())
            if arm is None and self.blocks is not None and not self.done:
                raise NothingToAsk("all that is left is being measured: tell the outcomes of open trials first")
            if arm is None:
                raise NotSupported("the study is done: there is nothing left to ask")
            return self._asked(at, arm, self._question_on(arm), by=by, run=run)
        if again is not None:
            del self.again[again]
        question = self.session.ask(ahead.session) if again is None else self.session.open[again]
        seat = int(self.seated[question.arm])
        return self._asked(at, seat, question.number, by=by, run=run, again=again is not None)

    def next_round(self, at: float) -> list[str]:
        """Return the arms of the next round: all on which a verdict hangs."""
        ahead = self if self.done else self.ahead
        arms = ahead.bearing() or ([] if ahead.decided or ahead._hopeless else [self.arms[arm] for arm in self.present])
        arms = arms or [self.arms[arm] for arm in ahead._unguarded()]
        if not arms and ahead is not self:
            raise NothingToAsk(self._why_wait(at))
        if not arms:
            raise NotSupported("the study is done: there is nothing left to ask")
        return arms

    def _why_wait(self, at: float) -> str:
        """Say for which trial outcomes wait."""
        number, lease = next(iter(self.open.items()))
        by = f" by {lease.by}" if lease.by else ""
        return (
            f"{counted(self.counts()['waiting'], 'outcome waits', 'outcomes wait')} for trial {number} (option "
            f"{self.arms[lease.arm]}, asked {rough_span(max(0.0, at - lease.at))} ago{by}), and would decide what is "
            "left if it says nothing new: more measurements would be wasted. Tell it first, or say that it failed"
        )

    @property
    def ahead(self) -> Replica:
        """Itself if all that was told counted: asks go by that, verdicts never do. Nothing waits: just itself."""
        if not self.waiting and not self.cells:
            return self
        if self.blocks is not None:
            self._ahead = self._ahead_on_blocks() if self._ahead is None else self._ahead
        return self if self._ahead is None else self._ahead

    def _look_ahead(self, event: Event) -> None:
        """Keep up what asks go by after an event."""
        if self.blocks is not None or event.kind == "arms" or not self.waiting or self.spec.order == "told":
            self._ahead = None
        if self.blocks is not None or not self.waiting:
            return
        if self._ahead is None and len(self.waiting) * ARMS_PER_OUTCOME >= len(self.arms) and self.accepts.unasked:
            self._ahead = twin = self._twin()
            twin.session.rng = self.session.rng
            twin.tally = self.tally.copy()
            for _, outcomes in sorted(self.waiting.items()):
                twin._count(outcomes)
        ahead = self._ahead
        if ahead is not None and ahead.judge is not None and ahead.judge.due(ahead.rows, ahead.session.done):
            ahead._look(ahead.judge)

    def _twin(self) -> Replica:
        """Return a copy in which outcomes may be counted; what is open is that of this one."""
        twin = copy(self)
        twin.session, twin.judge = self.session.frozen(), copy(self.judge)
        twin.session.held = None
        twin._set_apart()
        return twin

    def _set_apart(self) -> None:
        """Let a copy have nothing that waits."""
        self.again, self.counted, self.waiting, self.cells = {}, set(), {}, {}
        self._ahead = self._known = None

    def _ahead_on_blocks(self) -> Replica:
        """Make it, where a pair is compared on the blocks of both: those on which they are known by now."""
        twin = self._twin()
        twin.session.open, twin.session.pending = self.session.open, self.session.pending  # what is open is the same
        rows: dict[tuple[int, int], list[float | None]] = {cell: row for cell, (_, row) in self.cells.items()}
        n_blocks = len(self.rounds) if self.in_rounds else len(self.blocks or ())
        running = {lease.position for lease in self.open.values()} | self.cut | {of for _, of in self.repeat}
        place_of: dict[int | None, int] = {}
        for number in sorted(self.waiting, key=lambda number: (self.waiting[number].position or 0, number)):
            waits = self.waiting[number]
            if not self.in_rounds:
                rows.setdefault((waits.arms[0], waits.position or 0), waits.values[0])
            elif waits.position not in running:
                place = place_of.setdefault(waits.position, n_blocks + len(place_of))
                if (values := self._after_first_success(waits.arms[0], waits.values[0])) is not None:
                    rows[waits.arms[0], place] = values
        if not rows:
            return self
        kept = {cell: row for cell, row in rows.items() if self.place[cell[0]] >= 0}
        for (arm, _), row in kept.items():
            twin.tally = self.tally.copy() if twin.tally is self.tally else twin.tally
            twin.tally.add(arm, self._compared(as_array([row]))[0].tolist())
        outcomes, observed = self._for_session(as_array(list(kept.values())))
        outcomes = np.where(observed, outcomes, np.nan)
        cells = {(int(self.place[arm]), block): row for (arm, block), row in zip(kept, outcomes, strict=True)}
        with_cells(twin.session, cells, n_blocks + len(place_of))
        if twin.judge is not None:
            twin._look(twin.judge)
        return twin

    def ask_round(self, at: float, arms: Sequence[int], by: str = "", run: str = "") -> list[Event]:
        """Begin the next round with these arms and return the events of it; they are applied already."""
        number = str(self.round + 1)
        return [self._asked(at, arm, None, number, by=by, run=run) for arm in arms]

    def repeat_round(self, at: float, most: int, by: str = "", run: str = "") -> list[Event]:
        """Ask again for void trials of rounds, each in its round, and return the events; they are applied already."""
        return [self._asked(at, arm, None, str(of), by=by, run=run) for arm, of in self.repeat[:most]]

    def _question_on(self, arm: int) -> int | None:
        """Return a question of the session on a chosen arm, which only studies with blocks need: it names the block."""
        if self.blocks is None:
            return None
        return self.session.ask_for(int(self.place[arm])).number

    def _pass_over(self, arm: int) -> None:
        """Let nobody be asked for blocks on which outcomes of an arm were imported, and wait for their turn."""
        place = int(self.place[arm])
        while self.cells and (arm, self.session.block_next(place)) in self.cells:
            self.session.ask_for(place)

    def _asked(
        self,
        at: float,
        arm: int,
        question: int | None,
        block: str | None = None,
        by: str = "",
        run: str = "",
        **how: bool,
    ) -> Event:
        self.number += 1
        self.asked += 1
        self._known = None
        position = None if block is None else int(block) if self.in_rounds else self.position[block]
        if self.in_rounds:
            self.round = max(self.round, position or 0)
            self.repeat = [cell for cell in self.repeat if cell != (arm, position)]
        if self.blocks is not None and question is not None:
            position = int(self.session.open[question].ticket[0]) - 1
        self.open[self.number] = lease = Lease(arm, question, at, position=position, by=by, run=run)
        if self.line is not None:
            self.line.put(self.number, arm)
        self._set_deadline(self.number, lease)
        self.attempts[question] += 1
        body: dict[str, Any] = {"arm": self.arms[arm], **{name: True for name, value in how.items() if value}}
        if run:
            body["run"] = run
        if position is not None:
            body["block"] = self.block_called(position)
            self._pass_over(arm)
        return Event(self.number, "ask", self.number, body, at, by)

    def _follow(self, event: Event) -> None:
        """Ask what the log says was asked. That is what asking again gives, unless another version wrote it."""
        run = event.body.get("run", "")
        if self.in_rounds:
            self._asked(event.at, self.index[event.body["arm"]], None, event.body["block"], event.by, run)
            return
        if event.body.get("chosen"):
            self.ask(event.at, self.index[event.body["arm"]], event.by, run)
            return
        try:
            mine = None if self.done else self.ask(event.at, by=event.by, run=run)
        except NotSupported:  # more measurements are of no use, by the rules of this version
            mine = None
        if mine is not None and (mine.number, mine.body) == (event.number, event.body):
            return
        if not self.accepts.unasked:
            raise UnreadableFile(
                f"event {event.number} asks for {event.body['arm']}, but algorithm {self.spec.algorithm!r} would ask "
                f"for {mine and mine.body['arm']}: the log was changed, or written by another version of it"
            )
        if mine is not None:
            question = self._close(mine.number).question
            self._leave_line(mine.number)
            self.number, self.asked = self.number - 1, self.asked - 1
            if question is not None:
                self._forget(question)
        self._asked(event.at, self.index[event.body["arm"]], None, event.body.get("block"), event.by, run)

    def apply(self, event: Event, history: History) -> None:
        """Take in an event that was appended; changes of the arms look at the history."""
        if event.number != self.number + 1:
            raise UnreadableFile(f"event {self.number + 1} is missing: the next one is {event.number}")
        if event.kind == "ask":
            self._follow(event)
            return
        if event.kind == "note":
            self.number = event.number
            if event.trial is None:
                self.note, self.tags = event.body["note"], list(event.body["tags"])
            return
        self.number, self._known = event.number, None
        self.session.hold(None)
        if event.kind == "tell":
            self._tell(event)
        elif event.kind == "fail" or event.kind == "give-up":
            self._void(event.trial or 0, silence=event.kind == "give-up", cut=bool(event.body.get("cut")))
        elif event.kind == "void":
            self._count_void(event.body["why"])
            self._void(event.trial or 0, silence=False, repeat=True)
        elif event.kind == "expire":
            self._expire(event.trial or 0)
        elif event.kind == "data":
            self._add(event)
        elif event.kind == "arms":
            self._change_arms(event, history)
        else:
            raise UnreadableFile(f"event {event.number} is of an unknown kind: {event.kind!r}")
        judged_again = self._take_turns(event) or event.kind == "arms"
        other_laws = self._note_laws(event, history)
        judged_again = judged_again or other_laws
        self._look_ahead(event)
        self._hold(None if judged_again or "arm" not in event.body else self.index[event.body["arm"]])
        if self.spec.guards and self.keeps_shares and self.session.done:
            if event.kind == "arms" and self.judge is not None:
                self._look(self.judge)  # verdicts are numbered by those who are there
            self._doubt()
            self._known = None
        whole = event.kind == "data" and not event.body.get("more")
        self._note_verdicts(at_once=other_laws or event.kind == "arms" or whole)
        if self.told + self.imported >= self.next_look:
            self.look, self.next_look = self.number, int(EXAMINED_AFTER * (self.told + self.imported)) + 1

    def _note_laws(self, event: Event, history: History) -> bool:
        """Settle which columns are pass/fail by what was seen. Return whether other laws changed all verdicts.

        What rested on a law that another value refutes is judged again. Bets on 0 and 1 hold from the first outcome on,
        so the session is started with them as if the kind had been declared.
        """
        stated, refuted = self.spec.measured(), {(column, kind) for _, column, kind in self.refuted}
        of_both = tuple(
            column
            for column, metric in enumerate(stated)
            if metric.bounds is None and self.tally.of_both(column) and self.law(column) == PASS_FAIL
        )
        found = [(event.number, column, "pass/fail") for column in self.of_both if column not in of_both]
        lasting = self.blocks is not None and not self.in_rounds  # exact numbers differ from block to block
        found += [
            (event.number, column, "exact")
            for column, metric in enumerate(() if lasting else stated)
            if metric.exact and (column, "exact") not in refuted and (self.tally.squares[:, column] > 0.0).any()
        ]
        if found:
            self.refuted += found
            self.look = event.number  # a warning says so
        before, self.of_both = self.of_both, of_both
        if before != of_both:
            self._asked_of_all = None
            if any(column < len(self.spec.metrics) for column in set(before) ^ set(of_both)):
                self._start_again(event, history)
                self.certain, self._ahead = self._all_measured, None
                return True
        if found and self.keeps_shares:
            self.session.judge_again()
        return bool(found)

    def _quieten(self) -> None:
        """Tell the algorithm which sums have a part that is no evidence, by its law. On blocks it sees that itself."""
        if self.units.weights is not None and self.blocks is None:
            self.session.set_silent(self._silent_sums()[self.seated])

    def _silent_parts(self) -> BoolArray:
        """(A, L) whether the outcomes of an arm in a metric are no evidence, if normal noise is assumed."""
        L = self.n_judged
        still, silent = self.tally.squares[:, :L] == 0.0, np.zeros((len(self.arms), L), np.bool_)
        for column, metric in enumerate(self.spec.metrics[:L]):
            n, different = float(self.tally.told[column]), self.tally.different(column)
            of_all, of_still = (
                law_of(laws.NORMAL, metric.exact, n, different, False, each) in SILENT for each in (False, True)
            )
            silent[:, column] = np.where(still[:, column], of_still, of_all)
        return silent

    def _silent_sums(self) -> BoolArray:
        """(A, R) the same of what options are judged by: of a sum that has no bounds each part must be evidence."""
        parts = self._silent_parts()
        bounds = self.asked_of_all.bounds
        unbounded = np.ones(parts.shape[1] if self.units.weights is None else len(self.units.weights), np.bool_)
        if bounds is not None:
            unbounded = np.asarray(~np.isfinite(bounds).all(axis=1))
        if self.units.weights is None:
            return parts & unbounded
        sums: BoolArray = (parts[:, None, :] & (self.units.weights != 0.0)).any(axis=2) & unbounded
        return sums

    def _note_verdicts(self, at_once: bool) -> None:
        """Keep with which event each verdict came; it may be taken back, and come again."""
        judge = self.judge
        due = self._status_changed() if judge is None else judge.due(self._rows_known, self.session.done)
        # where blocks come to an end, so does the waiting for more of them
        due = due or (self.blocks is not None and self.session.done and not self.open and self._in_doubt() is None)
        if not (at_once or due):
            return
        if judge is not None:
            self._look(judge)
        status = self._statuses()
        new = status != self.reached[self.there]
        self.reached[self.there[new]], self.since[self.there[new]] = status[new], self.number

    def _status_changed(self) -> bool:
        """Whether a verdict of the algorithm changed since it was last looked at."""
        status = self.session.status
        changed = self._status is None or not np.array_equal(status, self._status)
        if changed:
            self._status = status.copy()
        return changed

    @property
    def _late_counts(self) -> bool:
        """Whether an outcome answers the question of a void trial: by the rules of version 1, one question at a time.

        An algorithm that takes no data but answers asked on from there; its log can be followed in no other way.
        """
        return self.spec.rules == 1 and not self.accepts.unasked

    def _era(self, number: int) -> int:
        """After how many additions after looking a trial was asked for, or a table came."""
        return bisect_left([event for _, event in self.looks], number)

    def _tell(self, event: Event) -> None:
        number, arm = event.trial or 0, self.index[event.body["arm"]]
        if number in self.open:
            self.censored.update((arm, self.columns.index(name)) for name in event.body.get("below", ()))
        values = completed(self.parts.get(number), event.body["values"])
        if number in self.open and event.body.get("more"):
            self.parts[number] = values
        elif number in self.open:
            self.told += 1
            lease = self._close(number)
            self._wait(number, Outcomes([arm], [values], lease.question, position=lease.position))
        else:
            self.late += 1
            if self._late_counts:
                self.told += 1
                self._wait(number, Outcomes([arm], [values], next(iter(self.session.open), None)))

    def _close(self, number: int) -> Lease:
        """The trial is told or void."""
        lease = self.open.pop(number)
        self.parts.pop(number, None)
        if not lease.over:
            self._leave(lease.question)
        return lease

    def _leave(self, question: int | None) -> None:
        """One who was at a question is not any more."""
        self.attempts[question] -= 1
        if not self.attempts[question]:
            del self.attempts[question]

    def _count_void(self, why: str) -> None:
        """Count why a trial was voided: the guarantee says it."""
        self.died += why == DEAD
        self.taken += why == ASKED
        self.stopped += why == STOPPED

    def _void(self, number: int, silence: bool, cut: bool = False, repeat: bool = False) -> None:
        told = self.parts.get(number)
        lease = self._close(number)
        values = self._silence(told) if silence else None
        if self.spec.asked.on_failure == MEASURE and not (silence or cut or repeat):
            values = [0.0 if name == SUCCESS else None for name in self.columns]
            self.told += 1
        else:
            self.lapsed += 1
        if values is not None:
            self._wait(number, Outcomes([lease.arm], [values], lease.question, position=lease.position))
        else:
            self._leave_line(number)
            self._again(lease.question)
            if self.in_rounds and lease.position is not None and (silence or cut):
                self.cut.add(lease.position)
            if self.in_rounds and lease.position is not None and repeat and lease.arm not in self.withdrawn:
                self.repeat.append((lease.arm, lease.position))

    def _silence(self, told: list[float | None] | None) -> list[float | None] | None:
        """What a trial counts for that is given up: what was told of it, and what silence means; None: nothing."""
        values = completed(told, self.spec.silence or [None] * len(self.columns))
        lacks = None in values[: len(self.spec.metrics)] and not self.accepts.missing
        return None if lacks or all(value is None for value in values) else values

    def _expire(self, number: int) -> None:
        if self.gives_up_at_once:
            self._void(number, silence=True)
            return
        self.open[number] = lease = replace(self.open[number], over=True)
        self._leave(lease.question)
        self._again(lease.question)
        self._set_deadline(number, lease)

    def _set_deadline(self, number: int, lease: Lease) -> None:
        after = self.spec.give_up if lease.over else self.spec.lease
        if after is not None:
            heapq.heappush(self.deadlines, (lease.at + after, number))

    def overdue(self, now: float) -> tuple[int, str] | None:
        """Return a trial whose time is up, and the kind of event that says so, if there is one.

        Each is returned once: whoever does not append the event must forget the replica.
        """
        while self.deadlines and self.deadlines[0][0] < now:
            _, number = heapq.heappop(self.deadlines)
            if number in self.open:
                return number, "give-up" if self.open[number].over else "expire"
        return None

    @property
    def gives_up_at_once(self) -> bool:
        """Whether it is time to give up when the lease is over."""
        return self.spec.give_up is not None and self.spec.give_up <= self.spec.lease

    def _again(self, question: int | None) -> None:
        """Let a question be asked again, unless it is answered, somebody is at it, or its arm has left."""
        if question is None or question not in self.session.open or self.attempts[question]:
            return
        if self.blocks is not None and self._waits(question):
            self.again.pop(question, None)
        elif self.seated[self.session.open[question].arm] in self.withdrawn:
            self.again.pop(question, None)
            if self.blocks is None:  # its block waits for it, if it comes back
                self._forget(question)
        else:
            self.again[question] = None

    def _forget(self, question: int) -> None:
        """Take a question back."""
        self.session.forget(question)
        if self._ahead is not None and question in self._ahead.session.open:
            self._ahead.session.forget(question)

    def _waits(self, question: int) -> bool:
        """Whether the cell of a question has an outcome, which waits for its turn."""
        asked = self.session.open[question]
        here = int(self.seated[asked.arm]), int(asked.ticket[0]) - 1
        return here in self.cells or any((waits.arms[0], waits.position) == here for waits in self.waiting.values())

    def _add(self, event: Event) -> None:
        self.imported += len(event.body["arms"])
        self.table.append(event)
        if not event.body.get("more"):
            if self.blocks is None:
                self._wait(event.number, self._whole(self.table))
            else:
                self._keep_cells(event.number)
            self.table = []

    def _keep_cells(self, number: int) -> None:
        """Keep the rows of a table until their arms come to their blocks; a cell that has its outcome has it."""
        for part in self.table:
            self.tally.see(self._compared(as_array(part.body["values"])))
            for name, block, row in zip(part.body["arms"], part.body["blocks"], part.body["values"], strict=True):
                arm, position = self.index[name], self.position[block]
                if position < self.session.state.visited[self.place[arm]] or (arm, position) in self.cells:
                    self.late += 1
                else:
                    self.cells[arm, position] = number, row
        for question in list(self.again):
            self._again(question)

    def _whole(self, parts: Sequence[Event]) -> Outcomes:
        """Return a table that was told in parts."""
        names = [name for part in parts for name in part.body["arms"]]
        rows = [row for part in parts for row in part.body["values"]]
        last = parts[-1].body
        if last.get("by_digest"):
            order = drawn_order(names, as_array(rows)).tolist()
            names, rows = [names[k] for k in order], [rows[k] for k in order]
        drawn = None if last.get("in_order") or last.get("by_digest") else parts[-1].number
        return Outcomes([self.index[name] for name in names], rows, table=True, drawn=drawn)

    # The order of evidence

    def _wait(self, number: int, outcomes: Outcomes) -> None:
        """Let outcomes wait for their turn."""
        self.tally.see(self._compared(as_array(outcomes.values)))
        self.waiting[number] = outcomes = replace(outcomes, asked=number)
        if self.line is not None:
            self._join_line(self.line, number, outcomes)
        if self.blocks is None:
            heapq.heappush(self.turns, number)
            if self._ahead is not None:
                self._ahead._count(outcomes)
        elif outcomes.question is not None:
            self.again.pop(outcomes.question, None)

    def _take_turns(self, event: Event) -> bool:
        """Count what has its turn: nothing that was asked before it is open. Return whether all was judged again."""
        if self.blocks is not None:
            return self._take_cells(event)
        judged_again = False
        while self.turns and (self.spec.order == "told" or not self.open or self.turns[0] < next(iter(self.open))):
            outcomes = self.waiting.pop(heapq.heappop(self.turns))
            self._leave_line(outcomes.asked)
            self._count(outcomes)
            judged_again = judged_again or outcomes.table
        return judged_again

    def _take_cells(self, event: Event) -> bool:
        """Count what has its turn, of each arm: it was measured on all blocks before. In rounds: what is closed."""
        if self.in_rounds:
            self._take_rounds()
            return False
        table = event.kind == "data" and not event.body.get("more")
        if table or event.kind in ("arms", "fail", "void"):
            arms = sorted({arm for arm, _ in self.cells} | {waits.arms[0] for waits in self.waiting.values()})
        else:
            arms = [self.index[event.body["arm"]]] if "arm" in event.body else []
        if self.spec.asked.blocks is not None and self.spec.asked.blocks.passing:
            for arm, position in sorted(self.cells, key=lambda cell: cell[::-1]):
                self._count_cell(arm, self.cells.pop((arm, position))[1], position)
            arms = []
        for arm in arms:
            while (outcome := self._of_next_block(arm)) is not None:
                self._count_cell(arm, outcome)
            self._pass_over(arm)
        whole = self._all_measured and not self.certain
        if table or whole:
            self.session.judge_again()  # a table is judged after its last row only; and in the end all is known
        self.certain = self.certain or whole
        return table or whole

    def _take_rounds(self) -> None:
        """Count the rounds that are closed, in their order: nothing of them, nor of those before, is open.

        Of a round that was cut short each outcome counts on a block of its own: for its arm, and for no pair.
        """
        judged = self.n_judged
        unknown = [lease.position or 0 for lease in self.open.values()] + [of for _, of in self.repeat]
        first_open = min(unknown, default=self.round + 1)
        closed = [number for number, waits in self.waiting.items() if (waits.position or 0) < first_open]
        self._mark_censored()
        for number in sorted(closed, key=lambda number: (self.waiting[number].position, number)):
            waits = self.waiting.pop(number)
            values = self._after_first_success(waits.arms[0], waits.values[0])
            if values is None:
                continue
            of = waits.position or 0
            if of in self.cut or not self.rounds or self.rounds[-1] != of:
                self.rounds.append(of)
            self._count_cell(waits.arms[0], values, len(self.rounds) - 1)
        self.cut = {number for number in self.cut if number >= first_open}
        if self.judge is not None and self.n_judged > judged:
            self.judge.next_look = 0  # the first failure: verdicts are about one metric more

    def _after_first_success(self, arm: int, values: list[float | None]) -> list[float | None] | None:
        """Return an outcome with its success only after the first success of its arm; None if nothing is left.

        An arm that never succeeds is left out, mended and brought back. What follows a first success is independent of
        how long that took.
        """
        if self.spec.asked.on_failure == VOID or self.tally.n[arm, 0]:
            return values
        place = len(self.spec.metrics) - 1
        return None if values[place] == 0.0 else [*values[:place], None, *values[place + 1 :]]

    def _mark_censored(self) -> None:
        """Of values too small to be measured the same bound is told each time: that is no number that never varied."""
        for arm, column in self.censored:
            if self.place[arm] >= 0 and column < len(self.spec.metrics):
                self.session.state.moved[self.place[arm], column] = 1

    @property
    def _all_measured(self) -> bool:
        """Whether every arm that is there was measured on the whole list that the answer is about."""
        n = self.session.setup.n_blocks
        return self.session.setup.listed and bool((self.session.state.pulls[self.places] == n).all())

    def _of_next_block(self, arm: int) -> list[float | None] | None:
        """Return the outcome of an arm on its next block, if it is known by now: that of the first attempt."""
        position = int(self.session.state.visited[self.place[arm]])
        here = (arm, position)
        told = {
            number: waits.values[0] for number, waits in self.waiting.items() if (waits.arms[0], waits.position) == here
        }
        if here in self.cells:
            number, values = self.cells[here]
            told[number] = values
        if not told or any(
            number < min(told) and (lease.arm, lease.position) == here for number, lease in self.open.items()
        ):
            return None
        self.cells.pop(here, None)
        for number in told:
            self.waiting.pop(number, None)
        self.late += len(told) - 1
        return told[min(told)]

    def _count_cell(self, arm: int, values: list[float | None], passed: int | None = None) -> None:
        """Count the outcome of an arm on its next block as evidence; or on one that passed."""
        place = int(self.place[arm])
        row = as_array([values])
        self.counted.add(arm)
        self.rows += 1
        self.tally.add(arm, self._compared(row)[0].tolist(), self.spec.asked.n_list)
        (outcome,), (observed,) = self._for_session(row)
        if passed is not None:
            self.session.add(place, outcome, observed, passed)
            return
        block = float(self.session.state.visited[place] + 1)
        for question in self.session.open.values() if self.session.pending[place] else ():
            if question.arm == place and question.ticket[0] == block:
                self.again.pop(question.number, None)
                self.session.tell(question.number, outcome, observed)
                return
        self.session.add(place, outcome, observed)

    def _hold(self, arm: int | None = None) -> None:
        """Let the algorithm judge by what waits for its turn: what an outcome of an arm concerns, or everything."""
        held = self._held()
        if held is not None:
            self.session.hold(held, None if arm is None else int(self.place[arm]))

    def _held(self) -> Held | None:
        """Return what waits for its turn, and what is open, in the order of asking; None: nobody may look at that.

        As far as a table that waits: it is judged after its last row.
        """
        if not self.waiting or self.session.kernels.while_held is None:
            return None
        if self.line is None:
            self.line = Line(len(self.columns))
            for number in sorted([*self.open, *self.waiting]):
                if number in self.waiting:
                    self._join_line(self.line, number, self.waiting[number])
                else:
                    self.line.put(number, self.open[number].arm)
        numbers, arms, told, values = self.line.first(MOST_HELD)
        if not told.any():
            return None
        outcomes, observed = self._for_session(values)
        eras = np.searchsorted(np.array([event for _, event in self.looks], np.int64), numbers)
        return Held(self.place[arms], told, outcomes, observed, eras)

    def _join_line(self, line: Line, number: int, outcomes: Outcomes) -> None:
        """What was measured waits for its turn."""
        line.put(number, TABLE if outcomes.table else outcomes.arms[0], None if outcomes.table else outcomes.values[0])

    def _leave_line(self, number: int) -> None:
        """A trial is void, or was counted."""
        if self.line is not None:
            self.line.drop(number)

    @property
    def _rows_known(self) -> int:
        """How many outcomes count, or may be looked at by the algorithm while they wait."""
        held = self.session.held
        return self.rows + (0 if held is None else int(held.told.sum()))

    def _count(self, outcomes: Outcomes) -> None:
        """Count outcomes as evidence."""
        self.session.set_era(self._era(outcomes.asked))
        arms, values = outcomes.arrays(self.spec.seed)
        self.counted.update(outcomes.arms)
        self.rows += len(outcomes.arms)
        self.partial += int(np.isnan(values[:, : len(self.spec.metrics)]).any(axis=1).sum())
        if outcomes.table:
            self.tally.add_many(arms, self._compared(values))
            self._quieten()
            self._feed(arms, values)
            if self.keeps_shares:
                self.session.judge_again()  # a table is judged after its last row only
        else:
            self.tally.add(outcomes.arms[0], self._compared(values)[0].tolist())
            self._quieten()
            self._answer(outcomes.arms[0], outcomes.question, values)

    def _answer(self, arm: int, question: int | None, values: FloatArray) -> None:
        """Hand the outcome of a trial to the algorithm: as the answer to its question, if that is still open."""
        if question is not None and question in self.session.open:
            (outcome,), (observed,) = self._for_session(values)
            self.again.pop(question, None)
            if observed.any():
                self.session.tell(question, outcome, observed)
            else:  # only what guards look at; what is told of it later is taken as unasked
                self.session.forget(question)
        elif self.accepts.unasked:
            self._feed(np.array([arm]), values)

    def _feed(self, arms: IntArray, values: FloatArray) -> None:
        """Hand outcomes to the algorithm that it did not ask for; of arms that have no place in it it never hears."""
        outcomes, observed = self._for_session(values)
        places = self.place[arms]
        kept = (places >= 0) & observed.any(axis=1)
        if kept.any():
            self.session.add_many(places[kept], outcomes[kept], observed[kept])

    def _compared(self, values: FloatArray) -> FloatArray:
        """Outcomes (n, C) on the scales on which they are compared."""
        return np.where(self.logs, np.log(np.where(self.logs, values, 1.0)), values) if self.any_logs else values

    def _for_session(self, values: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Outcomes (n, L) as the algorithm takes them, and which of them are there."""
        metrics = values[:, : len(self.spec.metrics)]
        there = ~np.isnan(metrics)
        observed = self.units.whole(there)
        compared = np.where(there, self.units.compared(metrics), 0.0)
        return np.where(observed, self.units.directed(compared), 0.0), observed

    # Arms

    def _change_arms(self, event: Event, history: History) -> None:
        stood = set(self.there[self.session.status[self.places] != DOMINATED].tolist())
        left = [self.index[name] for name in event.body.get("withdraw", {})]
        kind = "guard" if event.body.get("guard") else event.body.get("kind", "by hand")
        for arm, why in zip(left, event.body.get("withdraw", {}).values(), strict=True):
            missed = kind != "guard" and bool(event.body.get("looked")) and arm in stood
            self.withdrawn[arm] = Withdrawal(kind, why, missed)
        self.repeat = [cell for cell in self.repeat if cell[0] not in self.withdrawn]
        added = event.body.get("add", [])
        back = [self.index[name] for name, *_ in added if name in self.index]
        for arm in back:
            del self.withdrawn[arm]
        addition = int(self.entered.max()) + 1
        if added and event.body.get("looked"):
            self.looks.append([addition, event.number])
        for name, row, *cost in added:
            if name not in self.index:
                self.arms.append(name)
                self.added.append([addition, row, cost[0] if cost else None])
        self.late_arms += len(added)
        self.tally.grow(len(self.arms))
        more = len(self.arms) - len(self.reached)
        self.reached = np.concatenate([self.reached, np.full(more, UNDECIDED)])
        self.since = np.concatenate([self.since, np.full(more, -1)])
        self.counted.update(arm for arm in range(len(self.arms)) if arm not in self.withdrawn)  # judged again
        if self.keeps_shares and len(back) == len(added):  # all have their place
            self._index()
            self.certain = False
            for arm in [*left, *back]:
                self.session.set_presence(arm, self._presence(arm))
            self.session.judge_again()
        else:
            self._start_again(event, history)
        for question in list(self.again if self.blocks is None else self.session.open):
            self._again(question)

    def _presence(self, arm: int) -> int:
        if arm not in self.withdrawn:
            return PRESENT
        return MISSED if self.withdrawn[arm].missed else GONE

    def _start(self) -> None:
        """Start the algorithm with the arms there are."""
        self.session = self._session(np.arange(len(self.arms)))
        if not self.keeps_shares and self.withdrawn:
            self.session = self._session(self.there)
        self._seat()
        for arm in self.withdrawn if self.keeps_shares else ():
            self.session.set_presence(arm, self._presence(arm))

    def _seat(self) -> None:
        """Settle which arm of the session is which."""
        self.seated = np.arange(len(self.arms)) if self.keeps_shares else self.there
        self.place = np.full(len(self.arms), -1)  # -1: it has none
        self.place[self.seated] = np.arange(len(self.seated))

    def _session(self, seated: IntArray) -> Session:
        settings = self.spec.algorithm_settings()
        share = dict(self.spec.shares)["verdicts"]
        entered, looked = self.entered[seated].tolist(), self.looked[seated].tolist()
        setup = setup_of(self._asked_of(seated), settings, share=share, entered=entered, looked=looked)
        session = Session(settings, setup, self.spec.seed)
        session.rng = algorithm_stream(self.spec.seed, self.generation)
        return session

    def _start_again(self, event: Event, history: History) -> None:
        """Start the algorithm with other arms, and all that counted so far, in the order in which it did."""
        self.generation += 1
        before, places = self.session, self.place
        if self.blocks is not None:
            self._index()
            self._start()
            self._feed_blocks(before.state, places)
            self._reopen(before, places)
            self.certain = False
            return
        self.again = {}
        self.open = OrderedDict((number, replace(lease, question=None)) for number, lease in self.open.items())
        self.waiting = {number: replace(outcomes, question=None) for number, outcomes in self.waiting.items()}
        self._index()
        self._start()
        self._quieten()
        for number, outcomes in sorted(self._measured([*history(event.number), event]).items()):
            if number not in self.waiting:
                self.session.set_era(self._era(outcomes.asked))
                self._feed(*outcomes.arrays(self.spec.seed))
        if self.keeps_shares:
            self.session.judge_again()

    def _feed_blocks(self, before: Any, places: IntArray) -> None:
        """Hand to the algorithm what it was told before it was started again."""
        R = self.session.setup.n_metrics
        self._mark_censored()
        passing = self.session.setup.passing
        for block in range(len(self.rounds) if self.in_rounds else len(before.outcomes) if passing else 0):
            for arm, place in enumerate(places.tolist()):
                outcome = before.outcomes[block, place]
                if (observed := ~np.isnan(outcome)).any():
                    self.session.add(int(self.place[arm]), np.where(observed, outcome, 0.0), observed, block)
        for arm, place in enumerate(() if passing else places.tolist()):
            n = int(before.visited[place])
            if n:
                rows = np.ascontiguousarray(before.outcomes[:n, place])
                self.session.add_many(np.full(n, self.place[arm]), rows, np.ones((n, R), np.bool_))
        self.session.judge_again()

    def _reopen(self, before: Session, places: IntArray) -> None:
        """Ask the algorithm anew for the blocks that it had asked for before it was started again."""
        arm_at = {place: arm for arm, place in enumerate(places.tolist())}
        anew: dict[int | None, int] = {}
        for question in sorted(before.open.values(), key=lambda each: each.ticket[0]):
            anew[question.number] = self.session.ask_for(int(self.place[arm_at[question.arm]])).number
        for number, lease in self.open.items():
            self.open[number] = replace(lease, question=anew.get(lease.question))
        for number, outcomes in self.waiting.items():
            self.waiting[number] = replace(outcomes, question=anew.get(outcomes.question))
        self.again = {anew[question]: None for question in self.again if question in anew}
        self._index()

    def _measured(self, events: Iterable[Event]) -> dict[int, Outcomes]:
        """Return what counts of a log, by the numbers that give its turns."""
        measured: dict[int, Outcomes] = {}
        void: set[int] = set()
        table: list[Event] = []
        parts: dict[int, list[float | None]] = {}
        as_told = self.spec.order == "told"
        for event in events:
            trial = event.trial or 0
            turn = event.number if as_told else trial
            if event.kind == "data":
                table.append(event)
                if not event.body.get("more"):
                    measured[event.number] = replace(self._whole(table), asked=event.number)
                    table = []
            elif event.kind == "tell" and (trial not in void or self._late_counts):
                parts[trial] = completed(parts.get(trial), event.body["values"])
                if not event.body.get("more"):
                    measured[turn] = Outcomes([self.index[event.body["arm"]]], [parts[trial]], asked=trial)
            elif event.kind in ("fail", "void", "give-up") or (event.kind == "expire" and self.gives_up_at_once):
                void.add(trial)
                values = None if event.kind in ("fail", "void") else self._silence(parts.get(trial))
                if values is not None:
                    measured[turn] = Outcomes([self.index[event.body["arm"]]], [values], asked=trial)
        return measured

    # Snapshots

    def frozen(self) -> Replica:
        """Return it as it is now, to be looked at: what happens here later does not change it."""
        twin = copy(self)
        for name, value in vars(self).items():  # what is changed in place
            if isinstance(value, (list, dict, set, np.ndarray)):
                setattr(twin, name, copy(value))
        twin.session, twin.tally, twin.judge = self.session.frozen(), self.tally.copy(), copy(self.judge)
        twin.line = twin._ahead = None
        if self._ahead is not None and self.blocks is None:
            twin._ahead = self._ahead.frozen()
            twin._ahead.session.rng = twin.session.rng
        return twin

    def dump(self) -> bytes:
        """Return the whole state; `load` goes on from it bit for bit."""
        ahead = self._ahead if self.blocks is None else None  # with blocks it is made again
        header = {
            "rules": RULES,
            "number": self.number,
            "withdrawn": [(arm, *vars(withdrawal).values()) for arm, withdrawal in self.withdrawn.items()],
            "censored": sorted(self.censored),
            "of_both": self.of_both,
            "refuted": self.refuted,
            "later": list(zip(self.arms[len(self.spec.arms) :], self.added, strict=True)),
            "looks": self.looks,
            "again": list(self.again),
            "open": [(number, *vars(lease).values()) for number, lease in self.open.items()],
            "waiting": [(number, *vars(outcomes).values()) for number, outcomes in self.waiting.items()],
            "parts": list(self.parts.items()),
            "note": self.note,
            "tags": self.tags,
            "certain": self.certain,
            "cells": [(*cell, *known) for cell, known in self.cells.items()],
            "cut": sorted(self.cut),
            "rounds": self.rounds,
            "repeat": self.repeat,
            "judge": None if self.judge is None else self.judge.header(),
            "ahead": None if ahead is None else (ahead.rows, None if ahead.judge is None else ahead.judge.header()),
            **{name: getattr(self, name) for name in COUNTERS},
        }
        judged = {} if self.judge is None else self.judge.arrays()
        session = {"session": np.frombuffer(self.session.dump(), np.uint8)}
        reached = {"reached": self.reached.astype(np.int8), "since": self.since}
        arrays = {**vars(self.tally), **reached, **judged, **session}
        if ahead is not None:
            known = {**vars(ahead.tally), **({} if ahead.judge is None else ahead.judge.arrays())}
            known["session"] = np.frombuffer(ahead.session.dump(), np.uint8)
            arrays |= {f"{AHEAD}{name}": array for name, array in known.items()}
        return pack("study", header, arrays)

    @classmethod
    def load(cls, spec: StudySpec, data: bytes) -> Replica:
        """Return the replica that `dump` was called on."""
        header, arrays = unpack("study", data, "a snapshot")
        if header.get("rules") != RULES:
            raise UnreadableFile("a snapshot of a study must be of the present rules")
        replica = cls.__new__(cls)
        replica.spec, replica.number = spec, header["number"]
        replica._fix()
        replica.withdrawn = {arm: Withdrawal(*rest) for arm, *rest in header["withdrawn"]}
        replica.censored = set(map(tuple, header["censored"]))
        replica.of_both = tuple(header["of_both"])
        replica.refuted = [(number, column, kind) for number, column, kind in header["refuted"]]
        replica.arms = [*spec.arms, *(name for name, _ in header["later"])]
        replica.added = [about for _, about in header["later"]]
        replica.looks = header.get("looks", [])
        replica.reached, replica.since = arrays.pop("reached").astype(np.int64), arrays.pop("since")
        replica.again = dict.fromkeys(header["again"])
        replica.open = OrderedDict((number, Lease(*rest)) for number, *rest in header["open"])
        replica.waiting = {number: Outcomes(*rest) for number, *rest in header["waiting"]}
        replica.parts = dict(map(tuple, header["parts"]))
        replica.certain = header.get("certain", False)
        replica.note, replica.tags = header.get("note", ""), list(header.get("tags", ()))
        replica.cells = {(arm, block): (number, row) for arm, block, number, row in header.get("cells", ())}
        replica.cut, replica.rounds = set(header.get("cut", ())), list(header.get("rounds", ()))
        replica.repeat = [(arm, of) for arm, of in header.get("repeat", ())]
        replica.table, replica.counted = [], set()  # a snapshot is taken where a table is whole
        for name in COUNTERS:
            setattr(replica, name, header.get(name, 0))
        session = arrays.pop("session").tobytes()
        known = {name.removeprefix(AHEAD): arrays.pop(name) for name in list(arrays) if name.startswith(AHEAD)}
        if header["judge"] is not None:
            replica.judge = Judge.of(header["judge"], arrays)
        replica.tally = Tally(**arrays)
        replica._index()
        replica.session = Session.load(session)
        replica._seat()
        replica._quieten()
        replica.session.held = replica._held()  # it was judged by that before
        if header.get("ahead") is not None:
            twin = replica._ahead = copy(replica)
            twin.rows, judge = header["ahead"]
            twin.session = Session.load(known.pop("session").tobytes())
            twin.session.rng = replica.session.rng
            twin.judge = None if judge is None else Judge.of(judge, known)
            twin.tally = Tally(**known)
            twin._set_apart()
            twin._quieten()
        return replica


#: What the arrays of a snapshot begin with that are of what asks go by.
AHEAD = "ahead."

COUNTERS = (
    "generation",
    "asked",
    "told",
    "imported",
    "lapsed",
    "died",
    "taken",
    "stopped",
    "late",
    "late_arms",
    "rows",
    "partial",
    "round",
    "look",
    "next_look",
)
