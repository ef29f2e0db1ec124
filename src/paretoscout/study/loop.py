"""Measuring until all is decided, so that nobody has to write the loop."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from .. import checks
from ..engines import Engine, opened
from ..errors import EngineUnavailable, InvalidInput, NothingToAsk, NotSupported, ParetoscoutError
from .standing import Standing, Trial, Voided, Waits
from .workers import DEAD, DEAD_AFTER, STOPPED, Pulse, new_run

if TYPE_CHECKING:
    from .study import Study

#: Gives the outcome of one measurement of an arm, on a block if there are blocks: a number for each metric.
Measure = Callable[..., Mapping[str, Any]]
#: Is told of each outcome that is in.
Callback = Callable[["Study", Trial, Mapping[str, Any]], None]
#: Is told which trials were void and are measured again, and what holds the run up.
Notice = Callable[[tuple[Voided, ...] | tuple[Waits, ...]], object]
#: What `Study.run` takes.
LOOPING = ("workers", "trials", "timeout", "callback", "catch", "engine", "leave_asked", "notice")
#: A run ends when workers died so many times in a row, and nothing was measured meanwhile.
MOST_LOST = 10
#: While there is nothing to ask before pending trials are told, a run looks after pauses of up to this many seconds.
LOOK_SECONDS = 2.0
#: After this many seconds it says what holds it up, and then this often.
PATIENCE, SAY_SECONDS = 2.0, 10.0


class Terminated(BaseException):
    """SIGTERM came. `end` ends the process, after trials were voided."""

    def __init__(self, end: Callable[[], object]) -> None:
        """Take what ends the process."""
        super().__init__("terminated")
        self.end = end


def run(
    study: Study,
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
    """Ask, measure and tell until every arm has its verdict; see `Study.run`."""
    if not callable(measure):
        raise InvalidInput(f"measure of run must be a function of an arm, got {measure!r}")
    if workers is not None:
        checks.whole("workers of run", workers, least=1)
    most = None if trials is None else checks.whole("trials of run", trials, least=1)
    end = None if timeout is None else time.monotonic() + checks.number("timeout of run", timeout, above=0.0)
    alone = engine == "threads" and workers is None
    with opened(engine, 1 if alone else workers, again=False) as pool:
        pool.must_take(f"measure of run with engine {engine!r}", measure)
        try:
            with _until_sigterm(), _Shift(study, leave_asked, notice) as shift:
                return _measured(study, measure, pool, shift, most, end, callback, catch)
        except Terminated as stop:
            stop.end()
            raise


def _measured(
    study: Study,
    measure: Measure,
    pool: Engine,
    shift: _Shift,
    most: int | None,
    end: float | None,
    callback: Callback | None,
    catch: type[Exception] | tuple[type[Exception], ...],
) -> Standing:
    """Ask, measure and tell."""
    busy: dict[Future[Mapping[str, Any]], Trial] = {}
    begun, lost, slots = 0, 0, pool.slots
    try:
        while True:
            may_begin = (most is None or begun < most) and (end is None or time.monotonic() < end)
            while may_begin and len(busy) < slots and (trial := shift.next(bool(busy))) is not None:
                on = () if trial.block is None or study.in_rounds else (trial.block,)
                busy[pool.submit(measure, trial.arm, *on)] = trial
                begun += 1
                may_begin = most is None or begun < most
            if not busy and may_begin and shift.held_up:
                shift.wait(end)
                continue
            if not busy:
                return study.standing()
            # while there is nothing to ask, what others tell may change that
            ended = wait(busy, shift.pause(end) if may_begin and shift.held_up else None, FIRST_COMPLETED).done
            if not ended:
                continue
            told = [_take(study, busy.pop(done), done, pool, callback, catch) for done in ended]
            lost = 0 if any(told) else lost + 1  # one process that dies takes all that are under way along
            if lost >= MOST_LOST:
                raise EngineUnavailable(f"nothing but lost measurements, {lost} times in a row: their workers died")
    finally:
        for future in busy:  # something went wrong: what is under way is void when the shift ends
            future.cancel()


@contextmanager
def _until_sigterm() -> Iterator[None]:
    """Raise `Terminated` when SIGTERM comes, unless the program handles it itself."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end() -> None:
        os.kill(os.getpid(), signal.SIGTERM)  # as it would have ended at once

    def raised(*_: object) -> None:
        signal.signal(signal.SIGTERM, lambda *_: None)  # trials are voided first
        raise Terminated(end)

    signal.signal(signal.SIGTERM, raised)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class _Shift:
    """A run as a worker of a study: it sends heartbeats, takes over what nobody measures, and asks for the rest.

    queue: trials of a round that it asked for, and does not measure yet. held_up: whether there was nothing to ask
    before others tell.
    """

    def __init__(self, study: Study, leave_asked: bool, notice: Notice | None) -> None:
        self.study, self.leave_asked, self.notice = study, leave_asked, notice
        self.run, self.queue, self.held_up = new_run(), list[Trial](), False
        self._pulse = Pulse(self._beat)
        self._heard = time.monotonic()  # when the last heartbeat came through
        self._say_at = 0.0  # when to say what holds it up
        self._pause = 0.0

    def __enter__(self) -> _Shift:
        self._resume(older=0.0)
        self._pulse.__enter__()
        return self

    def __exit__(self, *problem: object) -> None:
        self._pulse.__exit__(*problem)
        with suppress(ParetoscoutError):  # it ends all the same, and others see that it has ended
            self.study.sign_off(self.run)  # what it asked for and did not tell is void

    def _beat(self) -> None:
        self.study.heartbeat(self.run)
        if time.monotonic() - self._heard > DEAD_AFTER:  # the others may have been cut off as well: let them speak
            self.study.listen_again()
        self._heard = time.monotonic()

    def _resume(self, older: float) -> bool:
        voided = self.study.resume(self.run, self.leave_asked, older)
        if voided and self.notice is not None:
            self.notice(voided)
        return bool(voided)

    def next(self, waiting: bool) -> Trial | None:
        """Return the next trial; None: there is nothing to ask, or not before others are told.

        waiting: whether measurements of this run are under way.
        """
        self.held_up = False
        if not self.queue and self.study.finished:
            return None
        try:
            if not self.queue and self.study.in_rounds:
                self.queue = self.study.ask_round(run=self.run)
                random.Random(self.queue[0].number).shuffle(self.queue)  # each round has an order of its own
            trial = self.queue.pop() if self.queue else self.study.ask(run=self.run)
            self._pause = 0.0
            self._say_at = time.monotonic() + PATIENCE
            return trial
        except NothingToAsk:
            self.held_up = not self.study.finished  # another process may have finished it since
            return None
        except NotSupported:
            # this algorithm asks one question at a time, or all that is left is being measured; or another process
            # finished the study since
            if waiting or self.study.finished:
                return None
            raise

    def wait(self, end: float | None) -> None:
        """Wait a little for other workers; take over what was asked by hand and left, if there are none."""
        if not self._resume(older=DEAD_AFTER):
            time.sleep(self.pause(end))

    def pause(self, end: float | None) -> float:
        """Return how long to wait before looking again, ever longer; and say now and then what holds it up."""
        if self.notice is not None and time.monotonic() >= self._say_at:
            self._say_at = time.monotonic() + SAY_SECONDS
            if waits := self.study.standing().waits:
                self.notice(waits)
        self._pause = min(LOOK_SECONDS, 2.0 * self._pause + 0.01)
        return self._pause if end is None else max(0.0, min(self._pause, end - time.monotonic()))


def _take(
    study: Study,
    trial: Trial,
    done: Future[Mapping[str, Any]],
    pool: Engine,
    callback: Callback | None,
    catch: type[Exception] | tuple[type[Exception], ...],
) -> bool:
    """Tell what came out; of a measurement that failed, that it did. Return False if its worker died."""
    try:
        outcome = done.result()
    except Exception as problem:
        died = pool.lost(problem)
        if died:
            study.void(trial, DEAD)
        else:
            study.fail(trial, f"{type(problem).__name__}: {problem}"[:500])
        if died or isinstance(problem, catch):
            return not died
        raise
    except BaseException:  # it ends the program
        study.void(trial, STOPPED)
        raise
    try:
        wanted = study.spec.columns
        lacking = [name for name in wanted if isinstance(outcome, Mapping) and name not in outcome]
        if lacking and set(outcome) <= set(wanted):  # nobody is there to tell it later
            raise InvalidInput(
                f"the measurement of {trial.arm!r} must give {', '.join(lacking)} too: a number, or none where it was "
                f"not measured; got {', '.join(map(str, outcome)) or 'nothing'}"
            )
        study.tell(trial, outcome)
    except Exception:
        study.fail(trial, "its outcome was refused")
        raise
    if callback is not None:
        callback(study, trial, outcome)
    return True


def find_front(arms: Any, measure: Measure, metrics: Any, **how: Any) -> Standing:
    """Return the standing of options after measuring them until every one has its verdict.

    arms, metrics: as in `Study`. measure: a function of the name of an arm that returns {metric: number}. how: what
    `Study.run` takes (workers, trials, timeout, callback, catch, engine), and what `Study` takes (delta, sigma, ...);
    the study is kept in memory unless told otherwise.

    >>> truth = {"small": {"quality": 0.6, "cost": 1.0}, "large": {"quality": 0.9, "cost": 5.0}}
    >>> find_front(list(truth), truth.get, {"quality": "max", "cost": "min"}, sigma=0.01).front
    ('small', 'large')
    """
    from .study import Study

    looping = {name: how.pop(name) for name in LOOPING if name in how}
    study = Study(arms, metrics, **{"storage": "memory", **how})
    if len(study.spec.arms) == 1 and not study.spec.guards:
        raise InvalidInput(
            f"arms of find_front must be at least two, got only {study.spec.arms[0]!r}: one option has nothing to be "
            "compared with"
        )
    return run(study, measure, **looping)
