"""Where calls are worked on: threads, processes, Dask or Ray. All of them are executors, as in `concurrent.futures`.

An engine is named by a string: "threads" and "processes" are on this machine ("processes:4": so many), "dask" and "ray"
start a cluster on it, and "dask://host:8786" and "ray://host:10001" are clusters that are there already. What a call is
given and returns travels, so it must be picklable, except to threads.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import pickle
import re
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from . import checks
from .errors import EngineUnavailable, InvalidInput, MissingExtra

#: How an engine is written: what it is, and how many workers or where it is.
WRITTEN = re.compile(r"(threads|processes|dask|ray)(?::([0-9]+)|://(.+))?")
#: A cluster may make a call whose worker died again so many times by itself, where that is wanted.
RETRIES = 3


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Engine(ABC):
    """An executor that knows how much it can do at once."""

    #: Whether calls run in this process, and so can see what happens in it.
    here = False

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many calls are worked on at the same time."""

    @abstractmethod
    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Let a function be called somewhere."""

    def share(self, value: Any) -> Any:
        """Return what stands for a value that many calls are given: it travels once, not with every call."""
        return value

    def must_take(self, what: str, value: Any) -> None:  # noqa: B027
        """Refuse a value that cannot travel to where calls are worked on."""

    def lost(self, problem: BaseException) -> bool:
        """Whether a call failed because its worker died, not because of what it did."""
        return isinstance(problem, BrokenExecutor)

    @abstractmethod
    def close(self) -> None:
        """Begin no more calls, and let go of what was started for this engine."""


class Threads(Engine):
    """Threads of this process: compiled code runs side by side, Python code takes turns."""

    here = True

    def __init__(self, workers: int) -> None:
        self.workers, self.pool = workers, ThreadPoolExecutor(workers, thread_name_prefix="worker")

    @property
    def slots(self) -> int:
        """How many threads."""
        return self.workers

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Let a thread call a function."""
        return self.pool.submit(function, *arguments)

    def close(self) -> None:
        """Wait for calls that have begun."""
        self.pool.shutdown(wait=True, cancel_futures=True)


class Processes(Engine):
    """Processes on this machine. A process that dies takes its pool along: the next call gets a new one."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.pool: ProcessPoolExecutor | None = None

    @property
    def slots(self) -> int:
        """How many processes."""
        return self.workers

    def must_take(self, what: str, value: Any) -> None:
        """Refuse what cannot be pickled."""
        try:
            pickle.dumps(value)
        except (pickle.PicklingError, AttributeError, TypeError) as problem:
            raise InvalidInput(
                f"{what} must be something that other processes can load, such as a function at the top of a module, "
                f"got {value!r}: {problem}"
            ) from None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Let a process call a function."""
        if self.pool is not None:
            with contextlib.suppress(BrokenExecutor):
                return self.pool.submit(function, *arguments)
            self.pool.shutdown(wait=False)
        context = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold
        self.pool = ProcessPoolExecutor(self.workers, context, initializer=_belong_to_parent)
        return self.pool.submit(function, *arguments)

    def close(self) -> None:
        """End the processes, also those that are in the middle of a call."""
        if self.pool is not None:
            processes = list((self.pool._processes or {}).values())
            self.pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()
            for process in processes:
                process.join()


def _belong_to_parent() -> None:
    """Let a worker process end with the one that started it, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other one, which ends this one
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


class Dask(Engine):
    """A Dask cluster, by its own client."""

    def __init__(self, address: str | None, workers: int | None, again: bool) -> None:
        try:
            import distributed
        except ImportError:
            raise MissingExtra("the engine 'dask'", "dask") from None
        self.distributed = distributed
        self.cluster = None
        if address is None:
            self.cluster = distributed.LocalCluster(
                n_workers=workers or cores(), threads_per_worker=1, dashboard_address=None, silence_logs=50
            )
        where = self.cluster if address is None else address if "://" in address else f"tcp://{address}"
        try:
            self.client = distributed.Client(where, set_as_default=False, timeout=30)
        except (OSError, ValueError) as problem:
            raise EngineUnavailable(f"no Dask scheduler answers at {address}: {problem}") from None
        del again  # the scheduler decides (distributed.scheduler.allowed-failures)
        self.pool = self.client.get_executor(pure=False)

    @property
    def slots(self) -> int:
        """How many threads all workers have; they come and go."""
        return max(1, sum(self.client.nthreads().values()))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Let a worker call a function."""
        future: Future[Any] = self.pool.submit(function, *arguments)
        return future

    def share(self, value: Any) -> Any:
        """Let a worker keep the value; the scheduler can make it again where that worker dies."""
        return self.client.submit(_same, value, pure=False)

    def lost(self, problem: BaseException) -> bool:
        """Whether workers died, as often as the scheduler puts up with."""
        return isinstance(problem, self.distributed.KilledWorker) or super().lost(problem)

    def close(self) -> None:
        """Cancel what has not begun, and leave the cluster as it was."""
        self.pool.shutdown(wait=False)
        self.client.close()
        if self.cluster is not None:
            self.cluster.close()


class Ray(Engine):
    """A Ray cluster, by its own client."""

    def __init__(self, address: str | None, workers: int | None, again: bool) -> None:
        try:
            import ray
        except ImportError:
            raise MissingExtra("the engine 'ray'", "ray") from None
        self.ray, self.retries = ray, RETRIES if again else 0
        self.refs: dict[Future[Any], Any] = {}
        self.remote: dict[Callable[..., Any], Any] = {}  # a function travels once
        self.joined = ray.is_initialized()
        if not self.joined:
            where: dict[str, Any] = {"num_cpus": workers or cores(), "include_dashboard": False}
            try:
                ray.init(
                    **({"address": f"ray://{address}"} if address else where),
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
            except (ConnectionError, RuntimeError) as problem:
                raise EngineUnavailable(
                    f"no Ray cluster answers at {address}: {problem}. A cluster that asks for a token gets it with "
                    "the environment variable RAY_AUTH_MODE=token"
                    if address
                    else f"no Ray cluster starts here: {problem}"
                ) from None

    @property
    def slots(self) -> int:
        """How many cores the cluster has; they come and go."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Let a worker call a function."""
        if function not in self.remote:
            self.remote[function] = self.ray.remote(max_retries=self.retries)(function)
        reference = self.remote[function].remote(*arguments)
        future: Future[Any] = reference.future()
        self.refs[future] = reference  # a result that nobody refers to is thrown away
        future.add_done_callback(lambda done: self.refs.pop(done, None))
        return future

    def share(self, value: Any) -> Any:
        """Put the value where all workers find it."""
        return self.ray.put(value)

    def lost(self, problem: BaseException) -> bool:
        """Whether workers died, as often as was tried."""
        died = (self.ray.exceptions.WorkerCrashedError, self.ray.exceptions.NodeDiedError)
        return isinstance(problem, died) or super().lost(problem)

    def close(self) -> None:
        """Cancel what is under way, and leave the cluster as it was."""
        for reference in list(self.refs.values()):
            self.ray.cancel(reference, force=True)
        if not self.joined:
            self.ray.shutdown()


def _same(value: Any) -> Any:
    return value


@contextmanager
def opened(engine: str, workers: int | None = None, *, again: bool = True) -> Iterator[Engine]:
    """Give the engine of a name, and close it at the end.

    workers: how many, on this machine; None: one for each core. A cluster that is there already has its own.
    again: whether a cluster may make a call whose worker died again by itself (Dask always does).

    >>> with opened("threads:2") as engine:
    ...     engine.submit(sum, [1, 2]).result(), engine.slots
    (3, 2)
    """
    written = WRITTEN.fullmatch(engine) if isinstance(engine, str) else None
    if written is None or (written[3] is not None and written[1] in ("threads", "processes")):
        raise InvalidInput(
            "engine must be 'threads', 'processes', 'dask', 'ray', one of these with a number of workers such as "
            f"'processes:4', or an address such as 'dask://host:8786' or 'ray://host:10001', got {engine!r}"
        )
    kind, number, address = written.groups()
    if workers is not None:
        checks.whole(f"workers of engine {engine!r}", workers, least=1)
    if number is not None:
        workers = int(number)
    if workers is not None and (address is not None or workers < 1):
        raise InvalidInput(
            f"workers of engine {engine!r} must be at least 1, got {workers}"
            if address is None
            else f"workers of engine {engine!r} must be left out: the cluster has its own, got {workers}"
        )
    started: Engine
    if kind == "threads":
        started = Threads(workers or cores())
    elif kind == "processes":
        started = Processes(workers or cores())
    else:
        started = (Dask if kind == "dask" else Ray)(address, workers, again)
    try:
        yield started
    finally:
        started.close()
