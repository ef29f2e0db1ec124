"""Three example studies that move: `paretoscout serve --demo`. Everything in them is made up.

A demo has a storage of its own, which is deleted when it ends. It uses what everybody may use of a study: ask and tell.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from ..errors import ParetoscoutError
from ..study import Study
from ..study.described import settings_of
from .folders import disposable
from .telemetry import logger

#: Makes up the outcome of an option on a block, which is None where there are none.
Outcome = Callable[[str, str | None], dict[str, float]]
#: A study that has settled can be looked at for so many seconds before the next one of its kind begins.
REST_SECONDS = 120.0
#: So many studies of each kind there are at most, however long a demo is left alone.
MOST_RUNS = 20
NOTE = "A demo: all numbers are made up, and nothing is kept when the server ends."


@dataclass(frozen=True)
class Example:
    """A question that people have, and a world that answers it.

    settings: of the study, as the API takes them. world: makes up outcomes, from random numbers. pause: seconds from
    one move to the next. at_once: trials that are measured at the same time; 0: the study is in rounds.
    """

    name: str
    settings: dict[str, Any]
    world: Callable[[random.Random], Outcome]
    pause: float
    at_once: int


# Which model: every model answers the same mails, and hard mails are hard for all of them

#: Share of answers that are right on a mail as hard as most, cents, seconds.
MODELS = {
    "nano": (0.55, 0.02, 0.5),
    "small": (0.66, 0.06, 0.8),
    "medium": (0.76, 0.25, 1.4),
    "large": (0.83, 0.90, 2.6),
    "last year's large": (0.67, 0.70, 2.2),
    "reasoning": (0.88, 2.40, 9.0),
}
MAILS = tuple(f"mail {number:03d}" for number in range(1, 201))


def mails_answered(rng: random.Random) -> Outcome:
    """Models that answer mails. What a mail is like explains most of how the numbers vary."""
    hard = {mail: rng.gauss(0.0, 0.8) for mail in MAILS}
    long = {mail: rng.gauss(0.0, 0.5) for mail in MAILS}

    def outcome(model: str, mail: str | None) -> dict[str, float]:
        right, cents, seconds = MODELS[model]
        odds = math.log(right / (1 - right)) - hard[mail or ""] + rng.gauss(0.0, 0.15)
        return {
            "quality": round(1 / (1 + math.exp(-odds)), 3),
            "cost": _shown(cents * math.exp(long[mail or ""] + rng.gauss(0.0, 0.05))),
            "latency": _shown(seconds * math.exp(0.7 * long[mail or ""] + rng.gauss(0.0, 0.15))),
        }

    return outcome


# Which page: 400 visitors see a page, and what they did is one outcome

#: Share of visitors who buy, EUR that a purchase brings, ms until the page is there.
PAGES = {
    "as it is": (0.031, 50.0, 310.0),
    "short form": (0.040, 48.0, 305.0),
    "reviews first": (0.034, 50.5, 330.0),
    "large video": (0.042, 48.0, 470.0),
    "free delivery": (0.036, 41.5, 312.0),
}
VISITORS = 400


def visitors_counted(rng: random.Random) -> Outcome:
    """Visitors of a shop, 400 at a time. The page that sells most is too slow."""

    def outcome(page: str, _: str | None) -> dict[str, float]:
        buys, spends, wait = PAGES[page]
        bought = sum(rng.random() < buys for _ in range(VISITORS))
        brought = sum(spends * rng.lognormvariate(-0.08, 0.4) for _ in range(bought))
        return {
            "conversion": bought / VISITORS,
            "revenue": round(brought / VISITORS, 3),
            "latency": round(rng.gauss(wait, 25.0), 1),
        }

    return outcome


# Which compressor: all of them one after the other, in rounds, on a machine that is busier at times

#: Seconds, MB.
COMPRESSORS = {
    "gzip -6": (2.40, 31.2),
    "bzip2 -9": (6.10, 27.0),
    "xz -6": (14.0, 23.9),
    "zstd -3": (0.55, 29.8),
    "zstd -19": (17.5, 24.3),
    "lz4": (0.30, 41.0),
}


def files_packed(rng: random.Random) -> Outcome:
    """Compressors on a machine. What it does meanwhile makes all of a round slower."""
    busy: dict[str, float] = {}

    def outcome(tool: str, round_: str | None) -> dict[str, float]:
        seconds, megabytes = COMPRESSORS[tool]
        load = busy.setdefault(round_ or "", rng.gauss(0.0, 0.05))
        return {"time": _shown(seconds * math.exp(load + abs(rng.gauss(0.0, 0.04)))), "size": megabytes}

    return outcome


def _shown(value: float) -> float:
    """Return a number as an instrument shows it."""
    return float(f"{value:.4g}")


EXAMPLES = (
    Example(
        name="support-mails",
        settings={
            "title": "Which model answers our support mails well enough for its price?",
            "arms": list(MODELS),
            "metrics": {
                "quality": {"direction": "max", "eps": 0.03, "bounds": [0, 1]},
                "cost": {"direction": "min", "eps": "10%", "unit": "ct"},
                "latency": {"direction": "min", "eps": "10%", "unit": "s"},
            },
            "blocks": list(MAILS),
        },
        world=mails_answered,
        pause=0.8,
        at_once=4,
    ),
    Example(
        name="product-page",
        settings={
            "title": "Which product page sells most, and still loads within 400 ms?",
            "arms": list(PAGES),
            "metrics": {
                "conversion": {"direction": "max", "eps": 0.003},
                "revenue": {"direction": "max", "eps": 0.15, "unit": "EUR"},
            },
            "guards": ["latency <= 400"],
            "algorithm": "scout:regret_weight=0.9",
        },
        world=visitors_counted,
        pause=1.0,
        at_once=3,
    ),
    Example(
        name="nightly-backup",
        settings={
            "title": "Which compressor packs our nightly backup?",
            "arms": list(COMPRESSORS),
            "metrics": {
                "time": {"direction": "min", "eps": "5%", "unit": "s"},
                "size": {"direction": "min", "eps": "1%", "unit": "MB", "exact": True},
            },
            "blocks": "rounds",
        },
        world=files_packed,
        pause=1.0,
        at_once=0,
    ),
)


def begin(example: Example, storage: Any, run: int = 1) -> Study:
    """Make a study of an example: the first one of its kind, or a later one under a name of its own."""
    name = example.name if run == 1 else f"{example.name}-{run}"
    settings = settings_of({**example.settings, "seed": run, "lease": "60s"}, f"example {name!r}")
    study = Study(name=name, storage=storage, worker="demo", **settings)
    study.annotate(NOTE, ["demo"])
    return study


def moves(example: Example, study: Study, seed: int = 1) -> Iterator[None]:
    """Measure for a study, a move at a time, until it has settled: whoever looks sees trials that are open."""
    rng = random.Random(seed)
    outcome = example.world(rng)
    while not study.finished:
        trials = study.ask(example.at_once) if example.at_once else study.ask_round()
        yield
        if example.at_once:
            study.tell_many((trial, outcome(trial.arm, trial.block)) for trial in trials)
            continue
        first, *others = rng.sample(trials, len(trials))  # one after the other
        study.tell(first, outcome(first.arm, first.block))
        for trial in others:
            yield
            study.tell(trial, outcome(trial.arm, trial.block))


def runs(example: Example, study: Study, stop: threading.Event) -> None:
    """Let this study settle, then others like it, at a pace that can be watched, until told to stop."""
    for run in count(1):
        try:
            study = study if run == 1 else begin(example, study.storage, run)
            for _ in moves(example, study, run):
                if stop.wait(example.pause):
                    return
        except ParetoscoutError as problem:  # somebody deleted it, say
            logger().warning("a study of the demo ended early", extra={"facts": {"why": str(problem)}})
        if run == MOST_RUNS or stop.wait(REST_SECONDS):
            return


@contextmanager
def demo(pace: float = 1.0) -> Iterator[str]:
    """Begin the examples in a storage of their own and return where it is; it is deleted at the end.

    pace: how many times as fast as people can watch.
    """
    with disposable("paretoscout-demo-") as folder:
        place = str(Path(folder, "demo.db"))
        stop, threads = threading.Event(), []
        for example in EXAMPLES:
            what = replace(example, pause=example.pause / pace), begin(example, place), stop
            threads.append(threading.Thread(target=runs, args=what, name=f"demo {example.name}", daemon=True))
        for thread in threads:
            thread.start()
        try:
            yield place
        finally:
            stop.set()
            for thread in threads:
                thread.join(5.0)
