"""Asked against told, by option: whether what is lost depends on the option."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ..storage import Event
from .workers import ASKED, DEAD, STOPPED

#: Events of trials.
KINDS = ("ask", "tell", "fail", "void", "expire", "give-up")

#: Why a trial is void, in words.
VOID = {
    DEAD: "its worker was dead",
    ASKED: "it was asked by hand, and a run measured it again",
    STOPPED: "its run was stopped",
}


@dataclass(frozen=True)
class Heard:
    """What became of the trials of an option: asked = told + partly + unheard + failed + void + open.

    Where silence is an outcome (`at_give_up`), trials that are unheard or told in part count with that.
    """

    asked: int
    told: int  # whole, and in time
    partly: int  # given up, and only a part of the outcome was told
    unheard: int  # given up, and nothing was told
    failed: int  # somebody said so
    open: int  # neither told nor void yet
    late: int  # of those that failed, are void or were given up: told afterwards, which is no evidence
    void: int = 0  # its worker died, or its run was stopped, or a run measured what was asked by hand

    @property
    def share(self) -> float | None:
        """The share of trials of which something was heard, of those that are not open; None: there are none."""
        ended = self.asked - self.open
        return None if ended == 0 else (self.told + self.partly) / ended


def asked_and_told(arms: Iterable[str], events: Iterable[Event], gives_up_at_once: bool) -> dict[str, Heard]:
    """Return what became of the trials of each arm, by the events of a log.

    gives_up_at_once: a trial is given up when its lease is over.
    """
    asked: dict[int, str] = {}
    became: dict[int, str] = {}  # by trial
    late: set[int] = set()
    for event in events:
        trial = event.number if event.trial is None else event.trial
        if event.kind == "ask":
            asked[trial], became[trial] = event.body["arm"], "open"
        elif event.kind == "fail":
            became[trial] = "failed"
        elif event.kind == "void":
            became[trial] = "void"
        elif event.kind == "give-up" or (event.kind == "expire" and gives_up_at_once):
            became[trial] = "partly" if became[trial] == "told in part" else "unheard"
        elif event.kind == "tell":
            if became[trial] not in ("open", "told in part"):
                late.add(trial)
            else:
                became[trial] = "told in part" if event.body.get("more") else "told"
    tally = Counter((arm, became[trial]) for trial, arm in asked.items())
    tally.update((asked[trial], "late") for trial in late)
    return {
        arm: Heard(
            asked=sum(
                tally[arm, what] for what in ("told", "partly", "unheard", "failed", "void", "open", "told in part")
            ),
            told=tally[arm, "told"],
            partly=tally[arm, "partly"],
            unheard=tally[arm, "unheard"],
            failed=tally[arm, "failed"],
            void=tally[arm, "void"],
            open=tally[arm, "open"] + tally[arm, "told in part"],
            late=tally[arm, "late"],
        )
        for arm in arms
    }


def why_void(events: Iterable[Event], gives_up_at_once: bool) -> str | None:
    """Return why a trial is void, by the events of it; None if it is not."""
    for event in events:
        if event.kind == "fail":
            return f"it failed: {event.body['reason']}" if event.body.get("reason") else "it failed"
        if event.kind == "void":
            return VOID[event.body["why"]]
        if event.kind == "give-up" or (event.kind == "expire" and gives_up_at_once):
            return "it was given up"
    return None
