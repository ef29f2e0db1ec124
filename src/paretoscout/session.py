"""Session: one algorithm, driven from outside, one question and one answer at a time.

The live twin of `simulation/play.py`: the same kernels, called one by one. Everything that comes from outside
is checked here; a kernel never sees an arm that does not exist, or a number that is not one.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from . import checks
from .algorithms.contract import Settings, Setup
from .algorithms.registry import get, resolve
from .algorithms.states import arrays_of, check_state, copy_state, with_arrays
from .errors import InvalidInput, NothingToAsk, NotSupported, ParetoscoutError, UnreadableFile
from .files import pack, unpack
from .kernels.arrays import BoolArray, FloatArray, IntArray
from .kernels.compile import per_state
from .kernels.decisions import DOMINATED, DOUBTFUL, FRONT, MISSED, PRESENT
from .kernels.dispatch import Basis, Held, Verdicts, update
from .kernels.uncompiled import PACKAGE
from .streams import algorithm_stream


def _feed(
    state: Any, constants: Any, arms: IntArray, ticket: FloatArray, outcomes: FloatArray, observed: BoolArray
) -> None:
    """Take in outcomes one after the other."""
    for row in range(arms.shape[0]):
        update(state, constants, arms[row], ticket, outcomes[row], observed[row])


feeder = per_state(_feed)
#: So many outcomes are taken in by one call: between calls it may turn out that compiling is worthwhile.
FED_AT_ONCE = 256


class Question(NamedTuple):
    """An arm to measure. The ticket is the algorithm's own note on why it asked."""

    number: int
    arm: int
    ticket: FloatArray


class Compared(NamedTuple):
    """By how much an arm j seems better than an arm k in each metric, oriented and scaled, and what is known of it."""

    lead: FloatArray  # (L,) NaN: not measured
    low: FloatArray  # (L,) the interval of it, at the threshold at which a verdict on k would rest on j
    high: FloatArray  # (L,)
    own: bool  # whether it is the evidence of the algorithm itself; False: the sum of two radii


class Session:
    """An algorithm at work, in memory, in its own units (metrics oriented and scaled, arms numbered).

    >>> import numpy as np
    >>> from paretoscout.algorithms import Setup
    >>> setup = Setup(n_arms=2, n_metrics=1, eps=np.array([0.1]), delta=0.1, sigma=np.array([0.0]))
    >>> session = Session("multi-pfi", setup)
    >>> while not session.done:
    ...     question = session.ask()
    ...     session.tell(question, [float(question.arm)])
    >>> session.verdicts().status.tolist()
    [2, 1]
    """

    def __init__(self, algorithm: str | Settings, setup: Setup, seed: int = 0) -> None:
        self.algorithm, self.settings = resolve(algorithm)
        self.setup = setup
        self.state, self.constants = self.algorithm.start(self.settings, setup)
        self.kernels = self.algorithm.kernels_of(self.state)
        self.rng = algorithm_stream(checks.whole("seed", seed, least=0))
        self.asked = 0
        self.open: dict[int, Question] = {}  # asked and not yet told, by number
        self.pending = np.zeros(setup.n_arms, np.int64)  # how many of these there are for each arm
        self.held: Held | None = None  # told, but not counted yet; whoever holds it back says so again after `load`

    @property
    def done(self) -> bool:
        """Whether every arm has its verdict."""
        return bool(self.kernels.done(self.state, self.constants))

    def ask(self, ahead: Session | None = None) -> Question:
        """Return the arm to measure next.

        ahead: a session of the same questions in which more outcomes count. It chooses, and keeps the question too.
        """
        knows = self if ahead is None else ahead
        if knows.done:
            raise NotSupported("every arm has its verdict: there is nothing left to ask")
        if self.open:
            self._require("pending", "another question before the last one is answered")
        if self.kernels.blocks and not self._block_left():
            raise NothingToAsk("every block that is left is being measured: tell the outcomes of open trials first")
        arm, ticket = self.kernels.choose(knows.state, knows.constants, knows.pending, self.rng)
        if not 0 <= arm < self.setup.n_arms:  # only a state that somebody made up leads here
            raise UnreadableFile(f"this session is not sound: it asks for arm {arm} of {self.setup.n_arms}")
        question = self._opened(int(arm), ticket)
        if knows.pending is not self.pending:
            knows._opened(int(arm), ticket)
        return question

    def ask_for(self, arm: int) -> Question:
        """Return a question on an arm that the algorithm did not choose: its next block."""
        arm = self._arm(arm)
        block = self.block_next(arm)
        if block == self.setup.n_blocks:
            raise NotSupported(f"arm {arm} was measured on every block, or is being measured on the last")
        return self._opened(arm, np.array([block + 1.0]))

    def block_next(self, arm: int) -> int:
        """Return the place of the first block on which an arm is not measured yet, nor being measured."""
        return int(self.state.visited[arm] + self.pending[arm])

    def _block_left(self) -> bool:
        """Whether an arm that stands can be measured on one more block."""
        stands = (self.state.presence <= DOUBTFUL) & (self.state.status != DOMINATED)
        return bool((self.state.visited + self.pending)[stands].min(initial=self.state.limit[0]) < self.state.limit[0])

    def _opened(self, arm: int, ticket: FloatArray) -> Question:
        # the kernel overwrites its own ticket at the next choice
        question = Question(self.asked, arm, ticket.copy())
        self.open[self.asked] = question
        self.asked += 1
        self.pending[arm] += 1
        return question

    def tell(self, question: Question | int, outcome: Any, observed: Any = None) -> None:
        """Take in what was measured: one number per metric; those not marked in `observed` are ignored."""
        number = question.number if isinstance(question, Question) else question
        if number not in self.open:
            raise InvalidInput(f"question must be one that was asked and not yet told, got number {number!r}")
        values, mask = self._checked_outcome(outcome, observed)
        kept = self.open.pop(number)  # what was asked counts, not what was handed back
        self._update(kept.arm, kept.ticket, values, mask)
        self.pending[kept.arm] -= 1

    def forget(self, number: int) -> None:
        """Take a question back: it will not be answered."""
        self.pending[self.open.pop(number).arm] -= 1

    def set_era(self, era: int) -> None:
        """Say after how many additions after looking the outcomes that come next were asked for, see `Setup.looked`."""
        if self.kernels.after_looking:
            self.state.era[0] = era

    def set_silent(self, silent: BoolArray) -> None:
        """Say of which arms which metrics (K, L) are sums with a part that is no evidence; see `laws.py`."""
        if self.kernels.silence is not None:
            self.constants = self.kernels.silence(self.constants, silent)

    def add(self, arm: int, outcome: Any, observed: Any = None, block: int | None = None) -> None:
        """Take in a measurement that was not asked for. block: where blocks pass, on which one it was made."""
        self._require("unasked", "data it did not ask for")
        arm = self._arm(arm)
        values, mask = self._checked_outcome(outcome, observed)
        ticket = np.zeros(self.kernels.ticket_size)
        if block is not None:
            there = max(len(self.state.outcomes), int(self.state.visited.max()) + 1)  # where they have no end: one more
            ticket[:] = checks.whole("block", block, least=0, most=there - 1) + 1.0
        self._update(arm, ticket, values, mask)

    def add_many(self, arms: IntArray, outcomes: FloatArray, observed: BoolArray) -> None:
        """Take in many measurements that were not asked for, one after the other: (n,), (n, L) and (n, L).

        They are not checked: that they are finite, within bounds, and of arms that exist, is for the caller to see to.
        """
        self._require("unasked", "data it did not ask for")
        if not observed.all():
            self._require("missing", "outcomes that lack metrics")
        self._feed(arms, np.zeros(self.kernels.ticket_size), outcomes, observed)

    def presence(self, arm: int) -> int:
        """Return whether an arm is there."""
        return int(self.state.presence[arm]) if self.kernels.judge_again is not None else PRESENT

    def set_presence(self, arm: int, presence: int) -> None:
        """Say whether an arm is there: PRESENT, DOUBTFUL, GONE or MISSED of `kernels/decisions.py`. Judge again."""
        self._require_judging()
        arm = self._arm(arm)
        self.state.presence[arm] = checks.whole("presence of an arm", presence, least=PRESENT, most=MISSED)

    def judge_again(self) -> None:
        """Forget all verdicts and judge every arm by the data at hand: after others came, or left, or a whole table."""
        self._require_judging()(self.state, self.constants)

    def hold(self, held: Held | None, arm: int | None = None) -> None:
        """Say which outcomes are held back, and judge what an outcome of an arm concerns (None: every arm) by them.

        They are not counted: tell them in their turn, and say before that nothing is held back (None).
        """
        self.held = held
        if held is not None:
            if self.kernels.while_held is None:
                raise NotSupported(f"algorithm {self.algorithm.name!r} cannot judge by outcomes that are held back")
            self.state = self.kernels.reserve(self.state, len(held.arms))
            self.kernels.while_held.judge(self.state, self.constants, held, -1 if arm is None else self._arm(arm))

    @property
    def status(self) -> IntArray:
        """(K,) the verdict on each arm; a look at the state tells, where the algorithm is one of ours."""
        if type(self.state).__module__.partition(".")[0] == PACKAGE:
            state = getattr(self.state, "linear", self.state)  # of scout with both states: what holds in all
            if hasattr(state, "status"):
                return state.status
        return self.verdicts().status

    def verdicts(self) -> Verdicts:
        """Return what is proven of each arm."""
        if self.held is not None and self.kernels.while_held is not None:
            return self.kernels.while_held.verdicts(self.state, self.constants, self.held)
        return self.kernels.verdicts(self.state, self.constants)

    def basis(self) -> Basis | None:
        """Return what the verdicts rest on, where that may differ."""
        return None if self.kernels.basis is None else self.kernels.basis(self.state)

    def _state_for(self, k: int, j: int) -> Any:
        """Return the state as statements on two arms see it."""
        if self.held is not None and self.kernels.while_held is not None:
            return self.kernels.while_held.pair(self.state, self.constants, self.held, k, j)
        return self.state

    def frozen(self) -> Session:
        """Return it as it is now, to be looked at: what happens here later does not change it."""
        twin = copy(self)
        twin.state, twin.open, twin.pending = copy_state(self.state), dict(self.open), self.pending.copy()
        twin.rng = deepcopy(self.rng)
        return twin

    def compared(self, k: int, j: int) -> Compared:
        """Return by how much arm j seems better than arm k.

        With the algorithm's own evidence: where j eliminates k on its own, `low` is above 0 in every metric; where k is
        of the front, `high` is at most eps in some metric, for each rival. Practical verdicts rest on the intervals of
        arms too: there these cut it.
        """
        k, j = self._arm(k), self._arm(j)
        if k == j:
            raise InvalidInput(f"arms of a pair must be two, got {k} and {j}")
        if self.kernels.compared is not None:
            own = Compared(*self.kernels.compared(self._state_for(k, j), self.constants, k, j), own=True)
            if self.setup.goal != "practical" or self.kernels.apart is not None:
                return own
            by_radii = _by_radii(self.verdicts(), k, j)
            same = own.lead == by_radii.lead  # the same samples count: of pairs with arms added after looking fewer do
            low = np.where(same, np.maximum(own.low, by_radii.low), own.low)
            return own._replace(low=low, high=np.where(same, np.minimum(own.high, by_radii.high), own.high))
        return _by_radii(self.verdicts(), k, j)

    def nearest(self, k: int) -> list[tuple[int, float]]:
        """Return the rivals that the verdict on arm k rests on or hangs on, with their shares of the evidence.

        The shares add up to 1, the largest comes first. Of a dominated arm: those who together prove it, one if one
        suffices. Else the one that comes nearest to being better by eps everywhere; nobody, where nobody is measured.
        """
        k = self._arm(k)
        if self.kernels.nearest is not None:
            return self.kernels.nearest(self.state, self.constants, k)
        verdicts = self.verdicts()
        if verdicts.status[k] != FRONT and verdicts.rival[k] >= 0:
            return [(int(verdicts.rival[k]), 1.0)]
        return _nearest_by_radii(verdicts, self.setup.eps, k)

    def dump(self) -> bytes:
        """Return all there is to know of this session; `Session.load` goes on from it bit for bit."""
        setup = {name: value for name, value in vars(self.setup).items() if not isinstance(value, np.ndarray)}
        header = {
            "algorithm": self.algorithm.name,
            "settings": asdict(self.settings),
            "setup": setup,
            "rng": self.rng.bit_generator.state,
            "asked": self.asked,
            "open": [(question.number, question.arm, question.ticket.tolist()) for question in self.open.values()],
        }
        arrays = {f"setup.{name}": value for name, value in vars(self.setup).items() if name not in setup}
        return pack("session", header, arrays | arrays_of(self.state, "state."))

    @classmethod
    def load(cls, data: bytes) -> Session:
        """Return the session that `dump` was called on."""
        header, arrays = unpack("session", data)
        try:
            settings = {
                name: tuple(value) if isinstance(value, list) else value for name, value in header["settings"].items()
            }
            setup: dict[str, Any] = {
                name.removeprefix("setup."): value for name, value in arrays.items() if name.startswith("setup.")
            }
            most = max((max(array.shape, default=0) for array in arrays.values()), default=0)
            if max(header["setup"]["n_arms"], header["setup"]["n_metrics"]) > most:  # before it takes all memory
                raise UnreadableFile("the arrays of this session do not fit its setup")
            session = cls(get(header["algorithm"]).settings(**settings), Setup(**header["setup"], **setup))
            session.state = session._state_of({name: np.ascontiguousarray(array) for name, array in arrays.items()})
            session.rng.bit_generator.state = header["rng"]
            session.asked = checks.whole("asked of this session", header["asked"], least=0)
            for number, arm, ticket in header["open"]:
                checks.whole("number of an open question", number, least=0, most=session.asked - 1)
                checks.whole("arm of an open question", arm, least=0, most=session.setup.n_arms - 1)
                values = checks.floats("ticket of an open question", ticket)
                if values.shape != (session.kernels.ticket_size,):
                    raise UnreadableFile(f"ticket of an open question must be {session.kernels.ticket_size} numbers")
                session.open[number] = Question(number, arm, values)
                session.pending[arm] += 1
            tickets = [question.ticket for question in session.open.values()]
            check_state(session.state, session.setup.n_arms, session.setup.n_metrics, tickets)
        except ParetoscoutError as problem:
            raise UnreadableFile(f"this session cannot be read: {problem}") from problem
        except Exception as problem:  # whatever is wrong with bytes that anybody may have written
            raise UnreadableFile(f"this session is not complete: {problem!r}") from problem
        return session

    def _state_of(self, arrays: dict[str, Any]) -> Any:
        """Return a state made of arrays from outside, if they have the shapes that kernels expect."""
        grown, roomier = set(), arrays_of(self.kernels.reserve(self.state, 1), "state.")
        for name, fresh in arrays_of(self.state, "state.").items():
            array, shape = arrays[name], fresh.shape
            if roomier[name].shape != shape:  # it gets longer with its samples
                grown.add(len(array))
                shape = (len(array), *shape[1:])
            if (fresh.dtype, shape) != (array.dtype, array.shape) or len(grown) > 1:
                raise UnreadableFile("the arrays of this session do not fit its setup")
        return with_arrays(self.state, arrays, "state.")

    def _arm(self, arm: int) -> int:
        return checks.whole("arm", arm, least=0, most=self.setup.n_arms - 1)

    def _require(self, ability: str, what: str) -> None:
        if not getattr(self.kernels.accepts, ability):
            raise NotSupported(f"algorithm {self.algorithm.name!r} cannot take {what}")

    def _require_judging(self) -> Callable[[Any, Any], None]:
        if self.kernels.judge_again is None:
            raise NotSupported(
                f"algorithm {self.algorithm.name!r} cannot judge again, nor do without an arm it began with"
            )
        return self.kernels.judge_again

    def _update(self, arm: int, ticket: FloatArray, values: FloatArray, mask: BoolArray) -> None:
        self._feed(np.array([arm]), ticket, values[None, :], mask[None, :])

    def _feed(self, arms: IntArray, ticket: FloatArray, outcomes: FloatArray, observed: BoolArray) -> None:
        self.state = self.kernels.reserve(self.state, len(arms))
        for begin in range(0, len(arms), FED_AT_ONCE):
            rows = slice(begin, begin + FED_AT_ONCE)
            feeder(self.state)(self.state, self.constants, arms[rows], ticket, outcomes[rows], observed[rows])

    def _checked_outcome(self, outcome: Any, observed: Any) -> tuple[FloatArray, BoolArray]:
        L = self.setup.n_metrics
        mask = np.ones(L, np.bool_) if observed is None else np.asarray(observed)
        if mask.shape != (L,) or mask.dtype != np.bool_ or not mask.any():
            raise InvalidInput(f"observed must be {L} booleans, at least one of them true, got {observed!r}")
        values = checks.floats("outcome", outcome)
        if values.shape != (L,):
            raise InvalidInput(f"outcome must be one number per metric ({L}), got {outcome!r}")
        if not mask.all():
            self._require("missing", f"an outcome that lacks metrics {np.flatnonzero(~mask).tolist()}")
            if self.setup.n_blocks is not None and not self.setup.passing:
                raise InvalidInput("outcome must have every metric on a block that does not pass: its mean needs it")
            values[~mask] = 0.0
        checks.finite("outcome", values)
        if self.setup.bounds is not None:
            beyond = mask & ((values < self.setup.bounds[:, 0]) | (values > self.setup.bounds[:, 1]))
            if beyond.any():
                metric = int(beyond.argmax())
                low, high = self.setup.bounds[metric]
                raise InvalidInput(
                    f"outcome of metric {metric} must be from {low:g} to {high:g}, got {values[metric]:g}"
                )
        return values, mask


def _by_radii(verdicts: Verdicts, k: int, j: int) -> Compared:
    """Compare two arms by their own intervals."""
    radii = verdicts.radii[k] + verdicts.radii[j]
    unknown = np.isinf(radii) & (min(verdicts.counts[k], verdicts.counts[j]) == 0)
    lead = np.where(unknown, np.nan, verdicts.estimates[j] - verdicts.estimates[k])
    return Compared(lead, np.where(unknown, -np.inf, lead - radii), np.where(unknown, np.inf, lead + radii), own=False)


def _nearest_by_radii(verdicts: Verdicts, eps: FloatArray, k: int) -> list[tuple[int, float]]:
    """Find who lacks least, in units of the radii, to be better than k by eps in every metric."""
    others = [j for j in range(len(verdicts.status)) if j != k]
    standing = [j for j in others if verdicts.status[j] != DOMINATED]
    shortfalls = {}
    for j in standing or others:
        lead = _by_radii(verdicts, k, j).lead
        radii = verdicts.radii[k] + verdicts.radii[j]
        unit = np.where(np.isfinite(radii) & (radii > 0.0), radii, 1.0)
        if not np.isnan(lead).any():
            shortfalls[j] = float(((eps - lead) / unit).max())
    return [(min(shortfalls, key=lambda j: shortfalls[j]), 1.0)] if shortfalls else []
