"""A web shop that lets paretoscout decide which checkout each visitor sees.

    paretoscout serve                          # in another terminal
    python web_shop.py http://127.0.0.1:8765

The visitors are made up, so that the right answer is known. In a real shop `Shop.arrive` is called when somebody opens
the checkout, and `Shop.bought` when they buy; a real shop waits for days, not for a second and a half.
"""

from __future__ import annotations

import heapq
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import paretoscout as ps

PRESENT = "as it is"
#: Made up: share of visitors who buy, ms until the page is there, share of visitors who leave before that.
TRUTH = {
    PRESENT: (0.30, 310, 0.02),
    "one page": (0.62, 305, 0.02),
    "with badges": (0.36, 330, 0.02),
    "with a video": (0.66, 520, 0.15),
}
BEST = "one page"  # of those that load within 400 ms
SPENT = 40.0  # EUR, on average
MOST_SPENT = 60.0
AT_ONCE = 40  # visitors who arrive in one go
PAUSE = 0.05  # seconds from one go to the next
LATEST = 1  # so many goes later, at most, somebody returns to buy
GIVE_UP = 1.5  # seconds: longer than anybody takes to come back


@dataclass
class Shop:
    """What a shop does: it asks what a visitor shall see, and tells what came of it."""

    study: ps.client.RemoteStudy
    seen: dict[str, ps.Trial] = field(default_factory=dict)  # what each visitor sees, also when they return

    def arrive(self, visitors: list[str]) -> bool:
        """Decide what new visitors see; who was here before sees the same again. Return whether there is an answer."""
        new = [visitor for visitor in visitors if visitor not in self.seen]
        try:
            self.seen.update(zip(new, self.study.ask(len(new)), strict=False) if new else ())
        except ps.errors.NothingToAsk:  # those who may come back decide it: the others see what they always saw
            return False
        except ps.errors.NotSupported:  # nothing is left to ask: everybody can see the winner from now on
            return True
        return False

    def loaded(self, waits: dict[str, float]) -> None:
        """Tell how long visitors waited for the page. Whether they buy is told later, or never."""
        self.study.tell_many((self.seen[visitor], {"latency": wait}) for visitor, wait in waits.items())

    def bought(self, spent: dict[str, float]) -> None:
        """Tell who bought, and for how much. Who stays silent counts as 0 after `give_up`, see `create`."""
        outcomes = {visitor: {"conversion": 1.0, "revenue": euros} for visitor, euros in spent.items()}
        self.study.tell_many((self.seen[visitor], outcome) for visitor, outcome in outcomes.items())


def create(server: ps.client.Server, name: str) -> ps.client.RemoteStudy:
    """Make the study: what is measured, what must be kept, and what silence means."""
    return server.create(
        name,
        list(TRUTH),
        [
            ps.Metric("conversion", "max", eps=0.08, bounds=(0, 1)),
            ps.Metric("revenue", "max", eps=5.0, unit="EUR", bounds=(0, MOST_SPENT)),
        ],
        title="Which checkout sells most, and still loads within 400 ms?",
        guards=["latency <= 400"],
        algorithm="scout:regret_weight=0.9",  # few visitors shall see what sells less
        lease=GIVE_UP,
        give_up=GIVE_UP,
        at_give_up={"conversion": 0, "revenue": 0},
    )


def run(
    study: ps.client.RemoteStudy, seed: int = 0, most: int = 20_000, rest: Callable[[float], object] = time.sleep
) -> dict[str, int]:
    """Let visitors come until the study has its answer; return how many saw what. rest: lets time pass."""
    rng = random.Random(seed)
    shop = Shop(study)
    later: list[tuple[int, str]] = []  # who buys in which go
    for go in range(most // AT_ONCE):
        visitors = [f"visitor {go * AT_ONCE + k}" for k in range(AT_ONCE)]
        if shop.arrive(visitors):
            break
        waits = {}
        for visitor in filter(shop.seen.__contains__, visitors):
            buys, wait, leaves = TRUTH[shop.seen[visitor].arm]
            if rng.random() >= leaves:  # nothing is heard of the others
                waits[visitor] = rng.gauss(wait, 40.0)
                if rng.random() < buys / (1 - leaves):
                    heapq.heappush(later, (go + rng.randint(0, LATEST), visitor))
        shop.loaded(waits)
        buyers = []
        while later and later[0][0] <= go:
            buyers.append(heapq.heappop(later)[1])
        shop.arrive(buyers)  # some went away and return: they see what they saw
        shop.bought({visitor: rng.uniform(0.5, 1.5) * SPENT for visitor in buyers})
        rest(PAUSE)
    return {option: sum(trial.arm == option for trial in shop.seen.values()) for option in TRUTH}


def lost(saw: dict[str, int]) -> float:
    """Return how many sales were lost, because visitors saw what sells less than the best checkout: the regret."""
    return sum(n * max(0.0, TRUTH[BEST][0] - TRUTH[option][0]) for option, n in saw.items())


def shown(difference: float | None, lift: float | None) -> str:
    """Return a difference and the lift, as far as they are known."""
    return "?" if difference is None or lift is None else f"{difference:+.3f} ({lift:+.0%})"


def report(study: ps.client.RemoteStudy, saw: dict[str, int]) -> str:
    """Return the answer, what each option brings against the present one, and what was heard of it."""
    lines = [study.says(), "", f"{'against ' + PRESENT:<16}{'conversion':>26}{'revenue (EUR)':>26}"]
    for option, metrics in study.against(PRESENT).items():
        cells = [shown(each["difference"], each["lift"]) for each in metrics.values()]
        lines.append(f"{option:<16}" + "".join(f"{cell:>26}" for cell in cells))
    lines += ["", f"{'option':<16}{'asked':>8}{'told':>8}{'partly':>8}{'unheard':>9}{'late':>6}{'heard of':>10}"]
    for option, heard in study.asked_and_told().items():
        share = "" if heard.share is None else f"{heard.share:.1%}"
        lines.append(
            f"{option:<16}{heard.asked:>8}{heard.told:>8}{heard.partly:>8}{heard.unheard:>9}{heard.late:>6}{share:>10}"
        )
    lines += [f"{each['option']}: {each['reason']}" for each in study.standing().as_dict()["withdrawn"]]
    even = lost(dict.fromkeys(saw, sum(saw.values()) / len(saw)))
    lines += [
        "",
        f"{sum(saw.values()):,} visitors; {lost(saw):.0f} sales lost, an even split would have lost {even:.0f}",
    ]
    return "\n".join(lines)


def main(url: str, token: str | None = None, name: str = "checkout", seed: int = 0) -> None:
    """Run the shop against a server."""
    with ps.connect(url, token) as server:
        study = create(server, name)
        saw = run(study, seed)
        print(report(study, saw))


if __name__ == "__main__":
    main(*sys.argv[1:3])
