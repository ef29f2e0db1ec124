"""`@kernel` and `@allocating_kernel`: the one place for compiler flags, the cache key and the fallback without a cache.

Five facts about numba shaped this file; each has a test in `tests/test_compile.py`.

* A cached kernel is keyed on the file it stands in, not on the helpers it calls. Editing a helper in
  another file would leave the caller's machine code stale, silently. So the key is a digest of all
  sources that hold kernels: any edit recompiles everything, once.
* Code compiled without bounds checks is reused from the cache even when `NUMBA_BOUNDSCHECK=1` asks for
  checks. So that setting is part of the key.
* The cache names the classes of states. Where an older version had one that is gone, or was in another file, its index
  fails to load; it counts as stale instead.
* The index is saved before the code it speaks of, under a name that older code may have: who reads in between runs the
  old code. So one process at a time is at an index.
* A cache folder that cannot be written fails at import. Then kernels are compiled in each process.

How kernels that call others are compiled is in `drafts.py`; until when they are not compiled is in `uncompiled.py`.
Where numba lacks a name that these rest on (`internals.py`), kernels are compiled by plain `njit`, in a cache folder of
their own for each state of the sources.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba

from . import internals
from .uncompiled import PACKAGE, Kernel

#: Whether this version of numba has all that faster compiling rests on.
PLAIN = bool(internals.missing())
if TYPE_CHECKING or not PLAIN:
    from numba.core.caching import FunctionCache, IndexDataCacheFile

    from .drafts import DraftCache, Drafting, Whole
else:
    IndexDataCacheFile = object

config: Any = numba.config  # its attributes are made at run time

F = TypeVar("F", bound=Callable[..., Any])

#: Folders of the package whose code ends up inside compiled kernels.
KERNEL_FOLDERS = ("kernels", "algorithms", "environments", "simulation")
#: Its only file outside of these with such code.
LAWS = "laws.py"

#: `error_model="numpy"`: dividing by zero gives inf, compiled or not. Never `fastmath`: it makes isnan
#: false and reorders sums, so that compiled and uncompiled runs would part ways. Nobody calls kernels from C.
FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": False, "no_cfunc_wrapper": True}
#: Said of every kernel: what is left out is taken from whoever calls it first.
NOT_INLINED: dict[str, Any] = {"forceinline": False}
INLINED: dict[str, Any] = {"forceinline": True}
NO_COUNTING: dict[str, Any] = {"_nrt": False}
#: How to compile what only kernels call.
DRAFT: Any = FLAGS if PLAIN else {**FLAGS, "no_cpython_wrapper": True, "pipeline_class": Drafting}
#: What every version of numba knows of these.
PLAIN_FLAGS: dict[str, Any] = {name: FLAGS[name] for name in ("nogil", "error_model", "fastmath")}


def kernel(function: F) -> F:
    """Compile a function that makes and returns no arrays: lock released, cached, bit for bit like plain Python.

    Such a function needs no reference counts; for the many arrays of a state they would cost more than the work.
    With `NUMBA_DISABLE_JIT=1` the function is returned as it is, for debuggers and coverage.

    >>> @kernel
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    """
    return _compile(function, {**NO_COUNTING, **NOT_INLINED})


def short_kernel(function: F) -> F:
    """Compile a function into each kernel that calls it: to hand over all arrays of a state would cost more."""
    return _compile(function, {**NO_COUNTING, **INLINED})


def allocating_kernel(function: F) -> F:
    """Compile a function that may make arrays and return them; otherwise like `kernel`."""
    return _compile(function, NOT_INLINED)


def uncached(function: F) -> F:
    """Compile a function again in each process: for loops over other people's kernels, which may change or go away."""
    return function if config.DISABLE_JIT else _in_two(function, {**NO_COUNTING, **NOT_INLINED}, cached=False)


def per_state(function: F) -> Callable[[Any], F]:
    """Compile a loop over an algorithm's kernels; return what gives the version to use for a state.

    The cache would remember the class of a foreign state, and fail to load where its module is missing.
    """
    ours, foreign = kernel(function), uncached(function)
    return lambda state: ours if type(state).__module__.partition(".")[0] == PACKAGE else foreign


def _compile(function: F, extra: dict[str, Any]) -> F:
    if config.DISABLE_JIT:
        return function
    # of somebody's own algorithm the key knows no sources
    return _in_two(function, extra, cached=function.__module__.partition(".")[0] == PACKAGE)


def _in_two(function: F, extra: dict[str, Any], cached: bool) -> F:
    """Compile a function whole for Python, when it is called; kernels that call it take its draft."""
    if PLAIN:
        return _plainly(function, cached)
    whole = numba.njit(pipeline_class=Whole, **FLAGS, **extra)(function)
    whole.__class__ = Kernel
    draft = numba.njit(**DRAFT, **extra)(function)
    whole.get_call_template, whole.get_overload = draft.get_call_template, draft.get_overload
    if cached:
        whole.begin()
        try:
            whole._cache, draft._cache = _cache(FunctionCache(function), ""), _cache(DraftCache(function), "-draft")  # type: ignore[no-untyped-call]
        except RuntimeError as problem:
            # numba finds no folder it may write to ("no locator available")
            if "locator" not in str(problem):
                raise
    return cast(F, whole)


def _plainly(function: F, cached: bool) -> F:
    """Compile a function as numba does by itself. Its own cache misses changes of helpers in other files."""
    if not cached:
        return cast(F, numba.njit(**PLAIN_FLAGS)(function))
    before = config.CACHE_DIR
    config.CACHE_DIR = os.path.join(before or str(Path(__file__).parent / "__pycache__"), sources_digest()[:16])
    try:
        return cast(F, numba.njit(cache=True, **PLAIN_FLAGS)(function))
    except (RuntimeError, OSError):  # no folder that can be written
        return cast(F, numba.njit(**PLAIN_FLAGS)(function))
    finally:
        config.CACHE_DIR = before


def _cache(cache: Any, kind: str) -> Any:
    stamp = (sources_digest(), cache._cache_file._source_stamp)
    cache._cache_file = _Index(cache.cache_path, cache._impl.filename_base + kind, stamp)  # type: ignore[no-untyped-call]
    return cache


class _Index(IndexDataCacheFile):
    """A cache index that other sources may have written, and other processes may be writing."""

    def has(self, key: Any) -> bool:
        """Whether there is code for a key."""
        return key in self._load_index()

    def spent(self) -> float:
        """For how many seconds the kernel ran uncompiled, in all processes that said so."""
        try:
            stamp, seconds = Path(f"{self._index_path}.spent").read_text().split()
            return float(seconds) if stamp == sources_digest() else 0.0
        except (OSError, ValueError):
            return 0.0

    def note_spent(self, seconds: float) -> None:
        """Tell other processes; of two at a time one is forgotten."""
        with suppress(OSError):
            Path(f"{self._index_path}.spent").write_text(f"{sources_digest()} {seconds:.3f}")

    def save(self, key: Any, data: Any) -> None:
        with self._alone():
            super().save(key, data)  # type: ignore[no-untyped-call]

    def load(self, key: Any) -> Any:
        with self._alone():
            return super().load(key)  # type: ignore[no-untyped-call]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with ExitStack() as held:
            with suppress(ImportError, OSError):  # not on every system, nor in a folder that can only be read
                from fcntl import LOCK_EX, flock

                flock(held.enter_context(open(self._index_path + ".lock", "wb")), LOCK_EX)
            yield

    def _load_index(self) -> Any:
        try:
            return super()._load_index()  # type: ignore[no-untyped-call]
        except Exception:  # what is raised depends on what is gone, a class or its module, and on the version of numba
            return {}  # as stale as another digest


@cache
def sources_digest() -> str:
    """Digest of every source file that holds kernels and of the settings they are compiled with."""
    digest = hashlib.sha256(repr((sorted(FLAGS.items()), config.BOUNDSCHECK)).encode())
    package = Path(__file__).parent.parent
    digest.update((package / LAWS).read_bytes())
    for folder in KERNEL_FOLDERS:
        for source in sorted((package / folder).rglob("*.py")):
            digest.update(source.relative_to(package).as_posix().encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()
