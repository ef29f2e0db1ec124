"""Measuring until all is decided, so that nobody has to write the loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, Any

from .. import checks
from ..engines import Engine, opened
from ..errors import EngineUnavailable, InvalidInput, NothingToAsk, NotSupported
from .standing import Standing, Trial

if TYPE_CHECKING:
    from .study import Study

#: Gives the outcome of one measurement of an arm, on a block if there are blocks: a number for each metric.
Measure = Callable[..., Mapping[str, Any]]
#: Is told of each outcome that is in.
Callback = Callable[["Study", Trial, Mapping[str, Any]], None]
#: What `Study.run` takes.
LOOPING = ("workers", "trials", "timeout", "callback", "catch", "engine")
#: A run ends when workers died so many times in a row, and nothing was measured meanwhile.
MOST_LOST = 10
#: While all that would tell more is measured by others, the study is asked again after so many seconds, at most.
LONGEST_PAUSE = 2.0


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
) -> Standing:
    """Ask, measure and tell until every arm has its verdict; see `Study.run`."""
    if not callable(measure):
        raise InvalidInput(f"measure of run must be a function of an arm, got {measure!r}")
    if workers is not None:
        checks.whole("workers of run", workers, least=1)
    most = None if trials is None else checks.whole("trials of run", trials, least=1)
    end = None if timeout is None else time.monotonic() + checks.number("timeout of run", timeout, above=0.0)
    begun, lost, pause = 0, 0, 0.0
    busy: dict[Future[Mapping[str, Any]], Trial] = {}
    alone = engine == "threads" and workers is None
    with opened(engine, 1 if alone else workers, again=False) as pool:
        pool.must_take(f"measure of run with engine {engine!r}", measure)
        slots = pool.slots
        try:
            while True:
                may_begin = (most is None or begun < most) and (end is None or time.monotonic() < end)
                waits = False
                while may_begin and len(busy) < slots and not waits:
                    try:
                        trial = _next(study, bool(busy))
                    except NothingToAsk:
                        waits = True
                        break
                    if trial is None:
                        break
                    on = () if trial.block is None else (trial.block,)
                    busy[pool.submit(measure, trial.arm, *on)] = trial
                    begun, pause = begun + 1, 0.0
                    may_begin = most is None or begun < most
                if not busy and not waits:
                    return study.standing()
                pause = min(LONGEST_PAUSE, 2.0 * pause + 0.01)
                left = pause if end is None else min(pause, max(0.0, end - time.monotonic()))
                if not busy:  # another process measures what is waited for; it may tell it, or never
                    time.sleep(left)
                    continue
                ended = wait(busy, timeout=left if waits else None, return_when=FIRST_COMPLETED).done
                if not ended:
                    continue
                told = [_take(study, busy.pop(done), done, pool, callback, catch) for done in ended]
                lost = 0 if any(told) else lost + 1  # one process that dies takes all that are under way along
                if lost >= MOST_LOST:
                    raise EngineUnavailable(f"nothing but lost measurements, {lost} times in a row: their workers died")
        finally:
            for future, trial in busy.items():  # something went wrong: what is under way is asked again later
                future.cancel()
                study.fail(trial, "interrupted")


def _next(study: Study, waiting: bool) -> Trial | None:
    """Return the next trial; None: there is nothing to ask, or this algorithm asks one question at a time.

    Raise NothingToAsk if there is nothing to ask before outcomes of open trials are in.
    """
    if study.finished:
        return None
    try:
        return study.ask()
    except NothingToAsk:
        if study.finished:  # by another process, since
            return None
        raise
    except NotSupported:
        if waiting or study.finished:  # another process finished it since
            return None
        raise


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
        study.fail(trial, "its worker died" if died else f"{type(problem).__name__}: {problem}"[:500])
        if died or isinstance(problem, catch):
            return not died
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
