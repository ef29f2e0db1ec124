"""The door of finished tables: answers on the same prompts with noise of their own, and runs of commands in sequence.

Every option answered every prompt once: what is measured is certain, and says little of the next answers. Truth is the
probability with which an option passes, which all prompts there could be share out at random. Runs of a command follow
each other, and neighbours are alike: noise is a first-order autoregression. Truth is that all commands are the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..kernels.arrays import FloatArray
from ..practical import wrong_ones
from ..readers import read
from ..statement import Metric
from ..study import Study, analyze
from ..verdicts import VerdictTable
from .doors import DoorCase, Played, differ, stream

#: Doors through which answers come: a frame, a file of promptfoo, a live list that is a sample, a list with repeats.
FRAME, FILE, SAMPLE, REPEATS = "a frame", "a promptfoo file", "a list that is a sample", "a list, three answers each"
#: How often an option passes at a prompt differs between prompts by this much, at most.
SPREAD = 0.4
#: Deviation of single runs, as a share; a difference of this share matters.
NOISE, MATTERS = 0.05, 0.001


# Answers


def answered(
    door: str, lead: float, eps: float, prompts: int, models: int, uneven: bool, number: int, delta: float
) -> Played:
    """Judge a complete table of pass/fail answers. lead: by which the last model passes more often than the others.

    uneven: every other model always gives the same answer to a prompt, as often right as the others are.
    """
    rng, repeats = stream(number), 3 if door == REPEATS else 1
    mean = (1.0 - lead) / 2.0
    chance = np.tile(mean + SPREAD * (rng.random(prompts) - 0.5), (models, 1))
    if uneven:
        chance[::2] = rng.random((len(chance[::2]), prompts)) < mean
    chance[-1] += lead
    truth = chance.mean(axis=1) if door == REPEATS else mean + lead * (np.arange(models) == models - 1)
    passed = rng.random((models, prompts, repeats)) < chance[:, :, None]
    return _played(door, passed, truth, eps, delta, number)


def broken(door: str, share: float, eps: float, prompts: int, number: int, delta: float) -> Played:
    """Judge a model that passes every prompt beside one that fails a share of them: "the same" is wrong."""
    passed = np.ones((2, prompts, 1), bool)
    passed[1, :, 0] = stream(number).random(prompts) >= share
    return _played(door, passed, np.array([1.0, 1.0 - share]), eps, delta, number)


def _played(door: str, passed: Any, truth: FloatArray, eps: float, delta: float, number: int) -> Played:
    """Return what came out of answers (models, prompts, repeats) of models that pass with these probabilities."""
    table = _judged(door, passed, eps, delta, number)
    means = {f"model {k}": np.array([mean]) for k, mean in enumerate(truth.tolist())}
    wrong = wrong_ones(table.arms, table.verdicts, table.rivals, means, np.array([eps]))
    return Played(tuple(wrong), "undecided" not in table.verdicts, passed.size)


def _judged(door: str, passed: Any, eps: float, delta: float, number: int) -> VerdictTable:
    """Return the verdicts on answers (models, prompts, repeats), which come through a door."""
    at = np.argwhere(np.ones_like(passed))
    models, prompts = [f"model {k}" for k, *_ in at], [f"prompt {b}" for _, b, _ in at]
    values = passed.ravel().astype(float)
    metrics = [Metric("score", eps=eps, kind="pass/fail")]
    if door == FILE:
        rows = [
            {"provider": model, "promptIdx": 0, "testIdx": k, "vars": {"text": prompt}, "latencyMs": 1, "score": value}
            for k, (model, prompt, value) in enumerate(zip(models, prompts, values.tolist(), strict=True))
        ]
        with TemporaryDirectory() as folder:
            path = Path(folder) / "out.json"
            path.write_text(json.dumps({"evalId": "eval", "results": {"version": 3, "results": rows}}))
            return analyze(read(path, metrics=metrics), delta=delta)
    frame = {"arm": models, "block": prompts, "score": values}
    if door != SAMPLE:
        return analyze(frame, "arm", metrics, block="block", delta=delta, target="list" if door == REPEATS else None)
    study = Study(
        list(dict.fromkeys(models)),
        metrics,
        blocks=list(dict.fromkeys(prompts)),
        sample=True,
        delta=delta,
        seed=number,
        storage="memory",
    )
    study.tell_frame(frame)
    table = study.for_population()
    assert table is not None
    return table


# Runs in sequence


def in_sequence(correlation: float, runs: int, rng: np.random.Generator) -> FloatArray:
    """Return normal values of variance 1 of which neighbours have this correlation."""
    values = rng.standard_normal(runs)
    for k in range(1, runs):
        values[k] = correlation * values[k - 1] + math.sqrt(1.0 - correlation**2) * values[k]
    return values


def ran(correlation: float, runs: int, commands: int, uneven: bool, number: int, delta: float) -> Played:
    """Judge a file of hyperfine whose commands all take as long, every other one with less noise if uneven."""
    rng = stream(number)
    logs = [NOISE / (3.0 if uneven and k % 2 else 1.0) * in_sequence(correlation, runs, rng) for k in range(commands)]
    results = [{"command": f"command {k}", "mean": 1.0, "times": np.exp(log).tolist()} for k, log in enumerate(logs)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "out.json"
        path.write_text(json.dumps({"results": results}))
        reading = read(path, metrics=[Metric("time", "min", eps=f"{100 * MATTERS:g}%")])
    table = analyze(reading, delta=delta)
    wrong = [arm for arm, verdict in zip(table.arms, table.verdicts, strict=True) if verdict == "dominated"]
    return Played(tuple(wrong), "undecided" not in table.verdicts, len(reading))


def answer_cases() -> Iterator[DoorCase]:
    """Complete tables of answers to the same prompts."""
    turn = 0
    for door in (FRAME, FILE, SAMPLE, REPEATS):
        for prompts, models in ((40, 2), (200, 2), (200, 6)):
            for what, lead, eps in (("A/A", 0.0, 0.001), ("gap 1.02 eps", 0.102, 0.1)):
                turn += 1
                uneven = turn % 4 in (1, 2)
                play = partial(answered, door, lead, eps, prompts, models, uneven)
                short = (door, prompts, what) == (FILE, 40, "A/A")
                yield DoorCase(
                    f"{what}, {models} models, {prompts} prompts, {door}, {differ(uneven)}", play, short=short
                )
    for door in (FRAME, FILE, SAMPLE):
        for prompts in (40, 200):
            play = partial(broken, door, 0.03, 0.02, prompts)
            yield DoorCase(f"one fails 3%, eps 2%, {prompts} prompts, {door}, {differ(True)}", play)


def sequence_cases() -> Iterator[DoorCase]:
    """Files of commands that take as long and ran one after the other."""
    turn = 0
    for correlation in (0.0, 0.3, 0.5, 0.9, 0.99):
        for runs in (16, 25, 39, 100, 400):
            for commands in (2, 4):
                turn += 1
                uneven = turn % 4 in (1, 2)
                head = f"A/A, {commands} commands, {runs} runs in sequence, correlation {correlation:g}"
                play = partial(ran, correlation, runs, commands, uneven)
                short = (correlation, runs, commands) == (0.9, 25, 2)
                yield DoorCase(f"{head}, {differ(uneven)}", play, short=short)
