"""The door of blocks: options that are measured on the same prompts or files, attacked where the proof has a condition.

An outcome counts when those of its option on all blocks before are in; a cell has the outcome of its first attempt that
is not void; of a list everything is known in the end; a table says what its holes allow. Truth is known as for the
other doors: the means of a list are exact, those of a population are those of the law that blocks are drawn from.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..errors import NotSupported
from ..kernels.arrays import FloatArray
from ..study import Study, Trial, analyze
from .doors import (
    BOUNDS,
    NOTHING,
    Clock,
    Crew,
    DoorCase,
    Options,
    Played,
    called,
    differ,
    identical,
    just_beyond,
    stream,
)

#: What blocks have in common, in units of the noise: much more than what tells options apart.
COMMON = 10.0
#: Such eps that the means of options whose outcomes are 0 and 1 are whole numbers of ones, on 20 blocks and on 100.
WHOLE, CLOSE = 0.15 / 0.51, 0.03 / 0.51
#: Verdicts are read after so many outcomes, and in the end.
READ_EVERY = 8


def names_of(n_blocks: int) -> list[str]:
    """So many blocks."""
    return [f"block {block}" for block in range(n_blocks)]


def common_of(options: Options, n_blocks: int, rng: np.random.Generator) -> FloatArray:
    """What a block does to the outcomes of all options (blocks, L): nothing, if these have bounds."""
    shape = n_blocks, options.means.shape[1]
    return np.zeros(shape) if options.told == BOUNDS else COMMON * rng.standard_normal(shape)


def drawn_on(options: Options, n_blocks: int, exact: bool, rng: np.random.Generator) -> FloatArray:
    """What makes the first outcomes good or bad (K, blocks, L); exact: such that options have their means on these."""
    K, L = options.means.shape
    if options.told != BOUNDS:
        drawn = rng.standard_normal((K, n_blocks, L))
        return np.asarray(drawn - drawn.mean(axis=1, keepdims=True) if exact else drawn)
    if not exact:
        return np.asarray(rng.random((K, n_blocks, L)) < options.means[:, None], float)
    ones = np.rint(options.means * n_blocks)
    return rng.permuted((np.arange(n_blocks)[:, None] < ones[:, None]).astype(float), axis=1)


def table_on(options: Options, n_blocks: int, exact: bool, rng: np.random.Generator) -> FloatArray:
    """Outcomes (K, blocks, L) of all options on all blocks."""
    drawn = drawn_on(options, n_blocks, exact, rng)
    values = np.array([options.values(arm, own) for arm, own in enumerate(drawn)])
    return np.asarray(values + common_of(options, n_blocks, rng))


def _cell(trial: Trial) -> tuple[int, int]:
    return int(trial.arm.removeprefix("option ")), int(str(trial.block).removeprefix("block "))


# Workers


def worked_on_blocks(
    options: Options, crew: Crew, n_blocks: int, target: str, number: int, delta: float, **how: Any
) -> Played:
    """Workers that ask when they are free and tell when they are ready, in a study with blocks.

    Who runs over the lease goes on, while the cell is asked for again; all attempts are alike.
    """
    rng, clock = stream(number), Clock()
    shift = 0.0 if options.told == BOUNDS else heard(crew)
    drawn = drawn_on(options, n_blocks, target == "list", rng)
    common = common_of(options, n_blocks, rng)
    how = {"give_up": crew.give_up, "lease": crew.lease, "clock": clock, **how}
    study = options.study(number, delta, blocks=names_of(n_blocks), target=target, **how)
    attempts: Counter[tuple[int, int]] = Counter()
    busy: list[tuple[float, int, Any]] = []  # when each of them is ready, with which trial and what
    wrong: set[str] = set()
    asked = told = 0
    while not (study.done or study.stuck):
        try:
            trials = study.ask(crew.workers - len(busy)) if len(busy) < crew.workers else []
        except NotSupported:
            trials = []  # all that is left is being measured; or what was given up just now has decided it
            if not busy:
                break
        for trial in trials:
            arm, block = _cell(trial)
            mine = options.draw(arm, rng) if attempts[arm, block] else drawn[arm, block]
            attempts[arm, block] += 1
            values = options.told_as(options.values(arm, mine - shift) + common[block])
            seconds = seconds_of(float(mine[0]), crew.fast, rng)
            failed = crew.fails and float(mine[0]) < -1.0
            heapq.heappush(busy, (clock.now + seconds, trial.number, None if failed else values))
        asked += len(trials)
        clock.now, ready, outcome = heapq.heappop(busy)
        if outcome is None:
            study.fail(ready)
        else:
            study.tell(ready, outcome)
            told += 1
        if told % READ_EVERY == 0:
            wrong.update(options.wrong(study.verdicts()))
    wrong.update(options.wrong(study.verdicts()))
    return Played(tuple(sorted(wrong)), study.done, asked)


def seconds_of(drawn: float, fast: str, rng: np.random.Generator) -> float:
    """How long a measurement takes, if the good ones are fast, or the bad ones."""
    return math.exp(-2.0 * (drawn if fast == "good" else -drawn)) * (1.0 + 0.01 * float(rng.random()))


def heard(crew: Crew) -> float:
    """The mean of a normal variable, given that it does not fail and is told in time."""
    low, high = -1.0 if crew.fails else -math.inf, math.inf
    if crew.give_up is not None and crew.fast == "good":
        low = max(low, -0.5 * math.log(crew.give_up))
    if crew.give_up is not None and crew.fast == "bad":
        high = 0.5 * math.log(crew.give_up)
    density = [0.0 if math.isinf(x) else math.exp(-x * x / 2) / math.sqrt(2 * math.pi) for x in (low, high)]
    mass = [0.5 * (1.0 + math.erf(x / math.sqrt(2.0))) for x in (low, high)]
    return (density[0] - density[1]) / (mass[1] - mass[0])


# Tables


def frame_on(options: Options, values: FloatArray, there: Any, order: str) -> dict[str, Any]:
    """The rows of a table (K, blocks, L) that are there, block by block, by how far the second option is ahead."""
    cells = np.argwhere(there)
    lead = values[1, :, 0] - values[0, :, 0]  # of the second option over the first, by which blocks are sorted
    cells = cells[np.argsort((1 if order == "rising" else -1) * lead[cells[:, 1]], kind="stable")]
    rows, names = values[cells[:, 0], cells[:, 1]], [options.arms[arm] for arm, _ in cells]
    columns = dict(zip(options.columns, rows.T, strict=True))
    return {"arm": names, "block": [f"block {block}" for _, block in cells], **columns}


def analyzed_on_blocks(options: Options, holes: str, order: str, n_blocks: int, number: int, delta: float) -> Played:
    """A finished table. Holes have nothing to do with outcomes: none, nested ones, or anywhere."""
    rng = stream(number)
    values = table_on(options, n_blocks, holes != "ragged", rng)
    K = len(options.arms)
    there = np.ones((K, n_blocks), np.bool_)
    if holes == "nested":  # somebody was measured on all
        walk = rng.permutation(n_blocks)
        for arm in rng.permutation(K)[1:]:
            there[arm, walk[int(rng.integers(8 * n_blocks // 10, n_blocks)) :]] = False
    if holes == "ragged":
        there = rng.random((K, n_blocks)) < 0.8
    settings = {name: value for name, value in options.settings.items() if name != "sigma"}
    frame = frame_on(options, values, there, order)
    target = "list" if holes == "none" else "population"
    table = analyze(frame, "arm", **settings, delta=delta, block="block", target=target)
    return Played(options.wrong(table), "undecided" not in table.verdicts, int(there.sum()))


def imported_on_blocks(options: Options, n_blocks: int, number: int, delta: float) -> Played:
    """Between asks come rows of any cells, asked for or not; open trials are told later, the best outcomes first."""
    rng, samples = stream(number), 0
    values = table_on(options, n_blocks, True, rng)
    study = options.study(number, delta, blocks=names_of(n_blocks), target="list")
    wrong: set[str] = set()
    while not (study.done or study.stuck):
        try:
            running = study.ask(4)
        except NotSupported:
            break
        picked = rng.random(values.shape[:2]) < 4.0 / values[:, :, 0].size
        if picked.any():
            samples += study.tell_frame(frame_on(options, values, picked, "falling"))
            wrong.update(options.wrong(study.verdicts()))
        for trial in sorted(running, key=lambda each: -float(values[_cell(each)][0])):
            study.tell(trial, options.told_as(values[_cell(trial)]))
        samples += len(running)
        wrong.update(options.wrong(study.verdicts()))
    return Played(tuple(sorted(wrong)), study.done, samples)


# Options that come and go


def changed_on_blocks(options: Options, n_blocks: int, number: int, delta: float) -> Played:
    """Two options, others that are added at times drawn before, and one that leaves with open trials and comes back."""
    rng = stream(number)
    values = table_on(options, n_blocks, True, rng)
    study = options.study(number, delta, arms=2, blocks=names_of(n_blocks), target="list")
    events: list[tuple[int, str]] = [(int(rng.integers(0, n_blocks)), name) for name in options.arms[2:]]
    events += [(int(rng.integers(0, n_blocks)), "")] * 2
    wrong: set[str] = set()
    samples, gone = 0, ""
    for time, name in [*sorted(events), (2 * values[:, :, 0].size, "")]:
        samples = _go_on(study, options, values, samples, time)
        wrong.update(options.wrong(study.verdicts()))
        if time >= 2 * values[:, :, 0].size:
            break
        if name or gone:
            study.add_arms([name or gone], looked=False)
            gone = gone if name else ""
        else:
            gone = str(rng.choice(study.arms))
            study.withdraw(gone)
        wrong.update(options.wrong(study.verdicts()))
    return Played(tuple(sorted(wrong)), study.done, samples)


def _go_on(study: Study, options: Options, values: FloatArray, samples: int, most: int) -> int:
    """Ask for two and tell, the later one first, and leave one open now and then; return how many were told."""
    left: list[Trial] = []
    while not (study.done or study.stuck) and samples < most:
        try:
            trials = study.ask(2)
        except NotSupported:
            trials, left = left or list(study.open), []
        if not trials:
            break
        for trial in reversed(trials):
            if samples % 7 == 3 and trial not in left:
                left.append(trial)
                samples += 1
                continue
            study.tell(trial, options.told_as(values[_cell(trial)]))
            samples += 1
    return samples


def cases() -> Iterator[DoorCase]:
    """Options on the same blocks."""
    turn = 0
    for make, what in ((identical, "A/A"), (just_beyond, "gap 1.02 eps")):
        for target in ("list", "population"):
            for workers in (64, 8, 1):
                turn += 1
                crew = Crew(workers, "good" if turn % 2 else "bad")
                play = partial(worked_on_blocks, make(NOTHING, True), crew, 120, target)
                short = (what, workers, target) == ("A/A", 64, "list")
                yield DoorCase(f"{what}, {target}, {NOTHING}, {differ(True)}, {called(crew)}", play, short=short)
        bounded, crew = make(BOUNDS, False, eps=WHOLE), Crew(8, "good")
        play = partial(worked_on_blocks, bounded, crew, 140, "list")
        yield DoorCase(f"{what}, list, {BOUNDS}, {differ(False)}, {called(crew)}", play)
        for fast in ("good", "bad"):
            for crew, how in (
                (Crew(8, fast, lease=0.5), "two attempts at a cell"),
                (Crew(8, fast, lease=0.5, give_up=5.0), "slow ones given up"),
                (Crew(8, fast, fails=True), "bad ones fail"),
            ):
                play = partial(worked_on_blocks, make(NOTHING, True), crew, 150, "population")
                yield DoorCase(f"{what}, population, {NOTHING}, {differ(True)}, {called(crew)}, {how}", play)
        for told in (NOTHING, BOUNDS):
            for holes in ("none", "nested", "ragged"):
                for order, uneven in (("rising", False), ("falling", True)):
                    close = make(told, uneven, eps=CLOSE)  # who is not eliminated wrongly may stay undecided
                    play = partial(analyzed_on_blocks, close, holes, order, 100)
                    short = (told, holes, order) == (BOUNDS, "nested", "rising")
                    head = f"{what}, table, {told}, {differ(uneven)}"
                    yield DoorCase(f"{head}, holes: {holes}, rows {order}", play, short=short)
            eps = WHOLE if told == BOUNDS else None
            play = partial(imported_on_blocks, make(told, True, K=3, eps=eps), 100)
            yield DoorCase(f"{what}, list, {told}, {differ(True)}, rows of any cells between asks", play)
            play = partial(changed_on_blocks, make(told, False, K=4, eps=eps), 60)
            yield DoorCase(f"{what}, list, {told}, {differ(False)}, options come and go", play)
