"""The door of files of other tools: runs of one process that come in fast and slow spells, and sessions that differ.

Runs that follow each other are alike, so they are no independent rows; means of batches nearly are. A session makes all
options fast or slow, so options are compared within it. Truth is known: the geometric mean of each option.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ..kernels.arrays import FloatArray
from ..readers import read
from ..statement import Metric
from ..study import analyze
from .doors import UNEVEN, DoorCase, Played, differ, stream

OPTIONS = ("option 0", "option 1", "option 2")
#: Deviations, as logarithms: of spells, of single runs within one, of what a session does to all options.
SPELL, RUN, SESSION = 0.1, 0.02, 0.5
#: Runs of an option in a process, and how many of them a spell takes. Batches of `read` have 20 runs, too.
RUNS, SPELL_RUNS = 400, 20
#: Of an option in a session, and how many sessions.
SESSION_RUNS, SESSIONS = 10, 24


def in_a_row(option: int, uneven: bool, rng: np.random.Generator) -> FloatArray:
    """Logarithms of the times of an option in one process, around 0."""
    spells = np.repeat(rng.standard_normal(RUNS // SPELL_RUNS), SPELL_RUNS)
    return np.asarray(_scale(option, uneven) * SPELL * spells + RUN * rng.standard_normal(RUNS))


def in_a_session(option: int, uneven: bool, rng: np.random.Generator) -> FloatArray:
    """The same, of one session, without what that does to all options."""
    own = _scale(option, uneven) * RUN * rng.standard_normal()
    return np.asarray(own + RUN * rng.standard_normal(SESSION_RUNS))


def read_from(
    slower: float, eps: float, sessions: int, uneven: bool, rows: str | None, goal: str, number: int, delta: float
) -> Played:
    """Files of hyperfine, judged by one command. slower: by which the first option is behind, in units of eps."""
    rng, behind = stream(number), slower * math.log1p(eps)
    with TemporaryDirectory() as folder:
        paths = []
        for session in range(sessions):
            day = SESSION * rng.standard_normal()
            made = in_a_row if sessions == 1 else in_a_session
            logs = {name: made(k, uneven, rng) + day + behind * (k == 0) for k, name in enumerate(OPTIONS)}
            results = [
                {"command": name, "mean": float(np.exp(log).mean()), "times": np.exp(log).tolist()}
                for name, log in logs.items()
            ]
            paths.append(Path(folder) / f"{session}.json")
            paths[-1].write_text(json.dumps({"results": results}))
        reading = read(*paths, rows=rows, metrics=[Metric("time", "min", eps=f"{100 * eps:g}%")])
    table = analyze(reading, delta=delta, goal=goal)
    verdicts = dict(zip(table.arms, table.verdicts, strict=True))
    wrong = [name for name in OPTIONS[1:] if verdicts[name] == "dominated"]
    if verdicts[OPTIONS[0]] == ("front" if slower else "dominated"):
        wrong.append(OPTIONS[0])
    return Played(tuple(wrong), "undecided" not in table.verdicts, len(reading))


def cases() -> Iterator[DoorCase]:
    """Files of one process, and of many sessions."""
    for sessions, what in ((1, "one process in spells"), (SESSIONS, f"{SESSIONS} sessions")):
        for uneven in (True, False):
            for slower, eps, truth in ((0.0, 0.001, "A/A"), (1.02, 0.05, "gap 1.02 eps")):
                for goal, how in (("front", ""), ("practical", ", practical verdicts")):
                    play = partial(read_from, slower, eps, sessions, uneven, None, goal)
                    short = (sessions, uneven, truth, goal) == (1, True, "A/A", "front")
                    yield DoorCase(f"{truth}, {what}, {differ(uneven)}{how}", play, short=short)


def _scale(option: int, uneven: bool) -> float:
    return UNEVEN[option % 2] if uneven else 1.0
