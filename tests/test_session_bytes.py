"""Bytes that are not trusted: whatever `Session.load` is given, it works or says what is wrong; nothing crashes."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import zipfile
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from conftest import LONG
from test_every_algorithm import CONTENDERS, plan, suited
from test_study_trust import LIVE, PLAIN, WITH_CONTEXTS

from paretoscout import files
from paretoscout.algorithms import Settings, Setup
from paretoscout.algorithms.registry import resolve
from paretoscout.algorithms.states import ROLES, arrays_of, roles_of
from paretoscout.errors import ParetoscoutError, UnreadableFile
from paretoscout.session import Session

#: All classes of states: with and without contexts some algorithms have another one.
EACH: dict[str, tuple[Settings, bool]] = {
    **{name: (algorithm, True) for name, algorithm in LIVE.items()},
    "scout, tabular": (CONTENDERS["scout"], False),
    "gege, plain": (CONTENDERS["gege"], False),
    "psips, plain": (CONTENDERS["psips"], False),
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
        known = {*ROLES, "arms", "some arms", "place", "samples", "real"}
        assert set(role if isinstance(role, tuple) else [role]) <= known
    for _ in range(60):
        loaded = Session.load(session.dump())
        assert loaded.dump() == session.dump()
        if session.done:
            break
        step(session, chance)


# Crafted archives

ODD_WHOLE = (-(2**63), -(2**31), -5, -2, -1, 0, 1, 3, 4, 5, 1000, 2**31, 2**40, 2**62, 2**63 - 1)
ODD_REAL = (float("nan"), float("inf"), -float("inf"), 1e308, -1e308, -1.0, 0.0, 5e-324, 1e18)


def crafted(data: bytes, chance: random.Random) -> bytes:
    """Return an archive of which something was changed."""
    header, arrays = files.unpack("session", data)
    names = [name for name in arrays if name.startswith("state.") and arrays[name].size]
    whole = [name for name in names if arrays[name].dtype.kind in "iu"]
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        kind = chance.choice(("place", "place", "places", "real", "shape", "dtype", "header"))
        name = chance.choice(whole if kind in ("place", "places") else names)
        array = arrays[name] = arrays[name].copy()
        if array.size == 0 or array.dtype not in (np.int64, np.float64, np.bool_):
            continue  # it was changed already
        if kind == "place":
            array.flat[chance.randrange(array.size)] = chance.choice(ODD_WHOLE)
        elif kind == "places":
            array[...] = chance.choice(ODD_WHOLE)
        elif kind == "real":
            if array.dtype.kind == "f":
                array.flat[chance.randrange(array.size)] = chance.choice(ODD_REAL)
        elif kind == "shape":
            wrong = (array[:0], array[:-1], np.concatenate([array, array]), array.T.copy(), array.ravel(), array[None])
            arrays[name] = chance.choice(wrong)
        elif kind == "dtype":
            with np.errstate(invalid="ignore"):
                arrays[name] = array.astype(chance.choice((np.int8, np.float32, np.uint64, np.complex128, ">i8")))
        elif chance.random() < 0.5:
            header[chance.choice(("asked", "open", "rng", "settings", "setup"))] = chance.choice(
                (None, -1, [], {}, "x")
            )
        else:
            size = len(header["open"][0][2]) if isinstance(header["open"], list) and header["open"] else 0
            ticket = [chance.choice((*ODD_REAL[3:], 0.0, 1.0, 3.0)) for _ in range(chance.choice((size, size, 7)))]
            header["open"] = [[chance.choice((0, 1, -1, 10**9)), chance.choice(ODD_WHOLE), ticket]]
    header = {key: value for key, value in header.items() if key not in ("format", "version")}
    return files.pack("session", header, arrays)


def use(data: bytes) -> str:
    """Load an archive, ask, tell and look; return what became of it."""
    try:
        session = Session.load(data)
    except ParetoscoutError:
        return "refused"
    try:
        for _ in range(5):
            for number in list(session.open):
                session.tell(number, np.zeros(session.setup.n_metrics))
            if session.done:
                break
            session.ask()
        session.verdicts()
    except ParetoscoutError:
        return "refused later"
    return "works"


def fuzz(names: list[str], each: int) -> None:
    """Print what becomes of crafted archives of some algorithms."""
    for name in names:
        chance = random.Random(name)
        session = session_of(name)
        dumps = [session.dump()]
        for _ in range(25):
            if session.done:
                break
            step(session, chance)
            dumps.append(session.dump())
        if not session.done:
            session.ask()
            dumps.append(session.dump())
        became: dict[str, int] = {}
        for k in range(each):
            if hasattr(signal, "alarm"):
                signal.alarm(600)  # a loop without an end is a failure too
            try:
                what = use(crafted(chance.choice(dumps), chance))
            except Exception as problem:
                what = f"{type(problem).__name__} in archive {k}: {problem}"
            became[what] = became.get(what, 0) + 1
        print(json.dumps({name: became}), flush=True)


def test_crafted_archives_work_or_are_refused() -> None:
    """In a process of its own, which must come to its end."""
    each = 200 if LONG else 40
    code = f"import test_session_bytes as t; t.fuzz(list(t.EACH), {each})"
    here = os.path.dirname(__file__)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=False, env={**os.environ}
    )
    became: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        became |= json.loads(line)
    assert done.returncode == 0, f"{done.returncode} after {list(became)[-1:]}: {done.stderr[-2000:]}"
    assert list(became) == list(EACH)
    for name, what in became.items():
        assert set(what) <= {"refused", "refused later", "works"}, (name, what)
        assert what["refused"] > each / 4


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
        use(bytes(changed[: chance.choice((len(changed), chance.randrange(len(changed))))]))
    for junk in (b"", b"PK", b"x" * 1000, os.urandom(5000)):
        with pytest.raises(UnreadableFile):
            Session.load(junk)


def test_a_setup_that_would_fill_the_memory_is_refused() -> None:
    header, arrays = files.unpack("session", session_of("multi-pfi").dump())
    header["setup"]["n_arms"] = 10**12
    header = {key: value for key, value in header.items() if key not in ("format", "version")}
    with pytest.raises(UnreadableFile, match="do not fit its setup"):
        Session.load(files.pack("session", header, arrays))


def test_all_algorithms_and_classes_of_states_are_here() -> None:
    sessions = [session_of(name) for name in EACH]
    known = {kernels.state for session in sessions for kernels in session.algorithm.kernels}
    assert {type(session.state) for session in sessions} == known
    assert {resolve(algorithm)[0].name for algorithm, _ in EACH.values()} == {
        session.algorithm.name for session in sessions
    }
    assert all(arrays_of(session.state) for session in sessions)
