"""Bytes that are not trusted: whatever `Session.load` is given, it works or says what is wrong; nothing crashes."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from test_every_algorithm import CONTENDERS, plan, suited
from test_study_trust import LIVE, PLAIN, WITH_CONTEXTS

from paretoscout import files
from paretoscout.algorithms import Scout, Settings, Setup
from paretoscout.algorithms.registry import resolve
from paretoscout.algorithms.states import ROLES, arrays_of, roles_of
from paretoscout.errors import ParetoscoutError, UnreadableFile
from paretoscout.kernels.compile import config
from paretoscout.session import Session

ON_BLOCKS = "scout, on blocks"
#: All classes of states: with and without contexts some algorithms have another one.
EACH: dict[str, tuple[Settings, bool]] = {
    **{name: (algorithm, True) for name, algorithm in LIVE.items()},
    "scout, tabular": (CONTENDERS["scout"], False),
    "gege, plain": (CONTENDERS["gege"], False),
    "psips, plain": (CONTENDERS["psips"], False),
    "scout, by number": (Scout(noise="unknown"), False),
    ON_BLOCKS: (Scout(noise="unknown"), False),
}


def session_of(name: str) -> Session:
    algorithm, contexts = EACH[name]
    told = {field.name: 2.0 for field in fields(algorithm) if field.name in ("theta_max", "norm")}
    algorithm = replace(algorithm, **told)
    problem = suited(WITH_CONTEXTS if contexts else PLAIN, algorithm)
    L = len(problem.metrics)
    setup = Setup(
        n_arms=4,
        n_metrics=L,
        eps=np.full(L, 0.25),
        delta=0.1,
        sigma=np.full(L, 0.5) if algorithm.knows_noise else None,
        contexts=problem.contexts,
        explained=contexts,
        theta_max=2.0,
        budget=plan(algorithm).get("budget"),
        **({"n_blocks": 200, "listed": True, "spans": np.array([8.0, np.inf])} if name == ON_BLOCKS else {}),  # type: ignore[arg-type]
    )
    return Session(algorithm, setup)


def step(session: Session, chance: random.Random) -> None:
    question = session.ask()
    means = WITH_CONTEXTS.means[question.arm][: session.setup.n_metrics]
    session.tell(question, [mean + chance.gauss(0.0, 0.1) for mean in means])


@pytest.mark.parametrize("name", EACH)
def test_every_number_of_a_state_has_a_role_and_states_are_within_their_limits(name: str) -> None:
    session, chance = session_of(name), random.Random(1)
    unknown = [array for array, _, role in roles_of(session.state) if role is None]
    assert unknown == [], "say in algorithms/states.py, or by Kernels(ranges=...), what these arrays hold"
    for _, array, role in roles_of(session.state):
        assert not isinstance(role, tuple) or array.shape == (len(role),)
        known = {
            *ROLES,
            "arms",
            "some arms",
            "undecided",
            "undecided arms",
            "place",
            "samples",
            "real",
            "block",
            "number",
        }
        assert set(role if isinstance(role, tuple) else [role]) <= known
    for _ in range(60):
        loaded = Session.load(session.dump())
        assert loaded.dump() == session.dump()
        if session.done:
            break
        step(session, chance)


# Crafted archives

ODD_WHOLE = (-(2**63), -(2**31), -5, -2, -1, 0, 1, 3, 4, 5, 1000, 2**31, 2**40, 2**53, 2**62, 2**63 - 1)
ODD_REAL = (float("nan"), float("inf"), -float("inf"), 1e308, -1e308, -1.0, 0.0, 5e-324, 1e-300, 1e18)

#: Numbers that are each allowed and do not fit together: many of these once led a kernel beyond the end of an array.
FOUND: list[tuple[str, dict[str, Any]]] = [
    *[(name, {"counters": [places, 4, 0], "counts": 2**40}) for name in ("ege-sr", "ege-sh") for places in (2, 3)],
    ("ege-sh", {"status": [0, 1, 1, 1], "active": 0, "counters": [0, 1, 3], "counts": 2**40}),
    *[(name, {"counters": [1, 4, 9, 0, 3], "due": [1, 0, 0, 0]}) for name in ("gege", "gege, plain", "gege-budget")],
    (
        "multi-pfi",
        {"active": [2, 3, 2, 3], "counters": [0, 2, 1, 0], "counts": [0, 0, 2**53, 2**53], "sums": float("nan")},
    ),
    (
        "pfiwr",
        {"pool_before": 0, "pool_next": -1, "pool_start": 0, "pool_cursor": 0, "pool_uses": 0, "explored": 2**40},
    ),
    ("pfiwr", {"explored": 2**53}),
    ("pfiwr", {"explored": -1}),
    ("scout, robust, noise unknown", {"tabular.samples.counts": -1e299}),
    ("scout, noise unknown", {"linear.n_seen": 6, "linear.presence": [0, 1, 2, 3], "linear.counters": 0}),
    (
        "scout, tabular",
        {
            "samples.n_seen": 6,
            "best": -1,
            "worst": -1,
            "presence": 3,
            "counters": [2**53, 4, 4, 0, 0, 0, 0, 0, 3, 3, 0],
        },
    ),
    ("scout, robust", {"linear.presence": [3, 2, 1, 0], "tabular.samples.n_seen": 6, "linear.counters": 0}),
]


def filled(array: np.ndarray, draw: Callable[[], float]) -> np.ndarray:
    return np.array([draw() for _ in range(array.size)], array.dtype).reshape(array.shape)


def crafted(data: bytes, chance: random.Random) -> bytes:
    """Return an archive of which something was changed."""
    header, arrays = files.unpack("session", data)
    names = [name for name in arrays if name.startswith("state.") and arrays[name].size]
    whole = [name for name in names if arrays[name].dtype.kind in "iu"]
    counters = [name for name in whole if name.endswith("counters")] or whole
    for _ in range(chance.choice((1, 1, 2, 4, 10))):
        kind = chance.choice(
            ("place", "places", "small", "small", "counter", "real", "reals", "flags", "shape", "dtype", "header")
        )
        name = chance.choice({"place": whole, "places": whole, "small": whole, "counter": counters}.get(kind, names))
        array = arrays[name] = arrays[name].copy()
        if array.size == 0 or array.dtype not in (np.int64, np.float64, np.bool_):
            continue  # it was changed already
        if kind in ("place", "counter"):
            array.flat[chance.randrange(array.size)] = chance.choice(ODD_WHOLE)
        elif kind == "places":
            array[...] = chance.choice(ODD_WHOLE)
        elif kind == "small":  # most of these are allowed: they say what does not fit together
            low, high = chance.choice((-1, 0, 0)), chance.choice((0, 1, 3, 3, 4))
            array[...] = filled(array, partial(chance.randint, low, high))
        elif kind == "real" and array.dtype.kind == "f":
            array.flat[chance.randrange(array.size)] = chance.choice((*ODD_REAL, chance.gauss(0.0, 3.0)))
        elif kind == "reals" and array.dtype.kind == "f":
            array[...] = filled(array, lambda: chance.choice((chance.choice(ODD_REAL), 10.0 ** chance.gauss(0.0, 9.0))))
        elif kind == "flags" and array.dtype.kind == "b":
            array[...] = filled(array, lambda: chance.random() < 0.5)
        elif kind == "shape":
            wrong = (array[:0], array[:-1], np.concatenate([array, array]), array.T.copy(), array.ravel(), array[None])
            arrays[name] = chance.choice(wrong)
        elif kind == "dtype":
            with np.errstate(invalid="ignore"):
                arrays[name] = array.astype(chance.choice((np.int8, np.float32, np.uint64, np.complex128, ">i8")))
        elif kind == "header" and chance.random() < 0.5:
            header[chance.choice(("asked", "open", "rng", "settings", "setup"))] = chance.choice(
                (None, -1, [], {}, "x")
            )
        elif kind == "header":
            size = len(header["open"][0][2]) if isinstance(header["open"], list) and header["open"] else 0
            ticket = [chance.choice((*ODD_REAL[3:], 0.0, 1.0, 3.0)) for _ in range(chance.choice((size, size, 7)))]
            header["open"] = [[chance.choice((0, 1, -1, 10**9)), chance.choice(ODD_WHOLE), ticket]]
    return packed(header, arrays)


def packed(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    return files.pack("session", {key: header[key] for key in header if key not in ("format", "version")}, arrays)


def dumps_of(name: str, steps: int) -> list[bytes]:
    """Archives of a session at work; in the last there is an open question."""
    session, chance = session_of(name), random.Random(name)
    dumps = [session.dump()]
    for _ in range(steps):
        if session.done:
            break
        step(session, chance)
        dumps.append(session.dump())
    if not session.done:
        session.ask()
        dumps.append(session.dump())
    return dumps


def with_numbers(data: bytes, numbers: dict[str, Any]) -> bytes:
    header, arrays = files.unpack("session", data)
    for name, values in numbers.items():
        arrays[f"state.{name}"][...] = values
    return packed(header, arrays)


def use(data: bytes, chance: random.Random) -> str:
    """Load an archive, ask, tell and look; return what became of it."""
    try:
        session = Session.load(data)
    except ParetoscoutError:
        return "refused"
    size, kernels = session.setup.n_metrics, session.kernels
    try:
        for _ in range(12):
            for number in list(session.open):
                session.tell(number, [chance.gauss(0.0, 0.3) for _ in range(size)])
            if kernels.judge_again is not None and chance.random() < 0.3:
                session.set_presence(chance.randrange(4), chance.randrange(4))
                session.judge_again()
            if kernels.accepts.unasked and chance.random() < 0.3:
                session.add(chance.randrange(4), np.zeros(size))
            if session.done:
                break
            session.ask()
        session.verdicts()
    except ParetoscoutError:
        return "refused later"
    return "works"


def fuzz(names: list[str], each: int, steps: int) -> None:
    """Print what becomes of crafted archives of some algorithms, and of those that once did harm."""
    np.seterr(all="ignore")
    for name in names:
        chance, dumps = random.Random(name), dumps_of(name, steps)
        archives = [with_numbers(data, numbers) for known, numbers in FOUND if known == name for data in dumps[-2:]]
        archives += [crafted(chance.choice(dumps), chance) for _ in range(each)]
        became: dict[str, int] = {}
        for k, data in enumerate(archives):
            limit_cpu()
            try:
                what = use(data, chance)
            except (ValueError, ArithmeticError) as problem:
                # of a number that is none, plain Python says what compiled code does not
                plain = config.DISABLE_JIT and str(problem).startswith(("math ", "float ", "(34", "cannot convert"))
                what = "works" if plain else f"{problem!r} in archive {k}"
            except Exception as problem:
                what = f"{problem!r} in archive {k}"
            became[what] = became.get(what, 0) + 1
        print(json.dumps({name: became}), flush=True)


def limit_cpu(seconds: int = 60) -> None:
    """End this process if it needs that much more: a loop without an end is a failure too."""
    with suppress(ImportError):  # not on every system
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(used.ru_utime + used.ru_stime) + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


@pytest.mark.parametrize(
    ("compiled", "each", "steps"),
    [
        (False, 5, 3),  # where an index is out of bounds, plain Python says so
        pytest.param(False, 200, 25, marks=pytest.mark.long),
        pytest.param(True, 200, 25, marks=pytest.mark.long),
    ],
)
def test_crafted_archives_work_or_are_refused(compiled: bool, each: int, steps: int) -> None:
    """In a process of its own, which must come to its end."""
    code = f"import test_session_bytes as t; t.fuzz(list(t.EACH), {each}, {steps})"
    here, env = os.path.dirname(__file__), {**os.environ, "NUMBA_DISABLE_JIT": "0" if compiled else "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=False, env=env)
    became: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        became |= json.loads(line)
    assert done.returncode == 0, f"{done.returncode} after {list(became)[-1:]}: {done.stderr[-2000:]}"
    assert list(became) == list(EACH)
    for name, what in became.items():
        assert set(what) <= {"refused", "refused later", "works"}, (name, what)
    assert sum(what.get("refused", 0) for what in became.values()) > each * len(EACH) / 4
    assert sum(what.get("works", 0) for what in became.values()) > each * len(EACH) / 4


# Archives


def test_an_archive_is_measured_before_it_is_unpacked() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", bytes(50_000_000))
    assert len(buffer.getvalue()) < 60_000
    with pytest.raises(UnreadableFile, match=r"must be at most [\d,]+ bytes when it is unpacked, got 50,000,000"):
        Session.load(buffer.getvalue())


def test_bytes_of_any_kind_are_refused() -> None:
    data, chance = session_of("scout").dump(), random.Random(5)
    for _ in range(300):
        changed = bytearray(data)
        for _flip in range(chance.choice((1, 3, 50))):
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        use(bytes(changed[: chance.choice((len(changed), chance.randrange(len(changed))))]), chance)
    for junk in (b"", b"PK", b"x" * 1000, chance.randbytes(5000)):
        with pytest.raises(UnreadableFile):
            Session.load(junk)


def test_a_setup_that_would_fill_the_memory_is_refused() -> None:
    header, arrays = files.unpack("session", session_of("multi-pfi").dump())
    header["setup"]["n_arms"] = 10**12
    with pytest.raises(UnreadableFile, match="do not fit its setup"):
        Session.load(packed(header, arrays))


def test_all_algorithms_and_classes_of_states_are_here() -> None:
    sessions = [session_of(name) for name in EACH]
    known = {kernels.state for session in sessions for kernels in session.algorithm.kernels}
    assert {type(session.state) for session in sessions} == known
    assert {resolve(algorithm)[0].name for algorithm, _ in EACH.values()} == {
        session.algorithm.name for session in sessions
    }
    assert all(arrays_of(session.state) for session in sessions)
