"""What is compiled before a server says that it is ready: nobody's first request waits for it."""

from __future__ import annotations

import threading

from ..kernels.uncompiled import compiled
from ..study import Study
from ..study.described import settings_of
from .telemetry import logger

#: Kinds of studies that people have most: noise known, unknown, bounded, and the same blocks.
USUAL = (
    {"sigma": 0.1, "metrics": {"quality": "max", "cost": "min"}},
    {"metrics": {"quality": "max", "cost": "min"}},
    {"metrics": {"quality": "max", "cost": "min"}, "blocks": [f"block {k}" for k in range(8)]},
    {"metrics": {"quality": "max", "cost": "min"}, "guards": ["cost <= 5"], "goal": "front"},
    {"metrics": {"quality": {"bounds": [0, 5]}, "cost": {"direction": "min", "eps": "5%"}}},
)


def warm_up(ready: threading.Event) -> None:
    """Go once through what studies do, with made-up outcomes, then say that the server is ready."""
    try:
        with compiled():
            for settings in USUAL:
                study = Study(storage="memory", **settings_of({"arms": ["a", "b", "c"], **settings}, "a study"))
                for number in range(12):
                    if study.done:
                        break
                    trial = study.ask()
                    study.tell(trial, {"quality": ord(trial.arm[0]) % 3 + 0.1 * (number % 3), "cost": 1.0 + number % 2})
                study.standing().as_json()
                study.explain("a")
                study.remaining(2, seconds=0.2)
    except Exception:
        logger().exception("warming up failed: first requests will take longer")
    finally:
        ready.set()
