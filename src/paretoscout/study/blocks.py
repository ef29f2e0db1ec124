"""What the blocks of a study say to people: on which of them options were compared, and which carry it all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..diagnostics import Concern
from ..kernels.arrays import FloatArray
from ..laws import NEVER_VARIED, SILENT
from ..statement import Metric
from .replica import Replica

#: So many blocks are named.
NAMED = 3
#: Few blocks carry a difference if so many of them make up this share of how far all are from the mean, of at least
#: FEWEST blocks.
CARRY, FEWEST = 0.5, 20
#: Of a list that is no longer than this, measuring all costs little and leaves nothing to chance.
SHORT_LIST = 50


@dataclass(frozen=True)
class OnBlocks:
    """Two options on the blocks that both were measured on."""

    blocks: tuple[str, ...]
    leads: FloatArray  # (blocks, L) of the rival over the option, oriented and scaled
    passed: int  # how many blocks there are in all

    def most(self, metric: int) -> list[str]:
        """Return the blocks that add most to the lead of the one who leads, or take most from it."""
        order = np.argsort(-np.abs(self.leads[:, metric]), kind="stable")
        return [self.blocks[place] for place in order[:NAMED]]

    def carried(self, metric: int) -> tuple[float, list[str]]:
        """Return which share of the spread of a metric's leads the furthest blocks make up, and which these are."""
        off = np.abs(self.leads[:, metric] - self.leads[:, metric].mean())
        order = np.argsort(-off, kind="stable")[:NAMED]
        total = float(off.sum())
        return float(off[order].sum()) / total if total > 0.0 else 0.0, [self.blocks[place] for place in order]


def on_blocks(replica: Replica, option: str, rival: str) -> OnBlocks:
    """Return two options on the blocks of both."""
    k, j = (int(replica.place[replica.index[name]]) for name in (option, rival))
    leads: FloatArray = replica.session.state.outcomes[:, j] - replica.session.state.outcomes[:, k]
    there = np.flatnonzero(~np.isnan(leads).any(axis=1))
    names = replica.visited
    return OnBlocks(tuple(names[place] for place in there), leads[there], len(names))


def few_carry(replica: Replica) -> tuple[Concern, ...]:
    """Return of which verdicts few blocks carry the difference, metric by metric, where nothing bounds it."""
    table, asked = replica.verdicts(), replica.spec.asked
    if replica.certain:
        return ()
    seen: dict[str, list[tuple[float, str, Concern]]] = {}
    for option, verdict, rival in zip(table.arms, table.verdicts, table.rivals, strict=True):
        rival = _nearest(replica, option) if verdict == "front" else rival
        if verdict == "undecided" or rival is None:
            continue
        both = on_blocks(replica, option, rival)
        for position, metric in enumerate(asked.judged_by):
            if _bounded(metric) or len(both.blocks) < FEWEST:
                continue
            share, names = both.carried(position)
            if share > CARRY:
                figures = {"blocks": float(len(both.blocks)), "of": float(both.passed), "spread": share}
                kind = "few rounds" if replica.in_rounds else "few blocks"
                concern = Concern(kind, metric.name, (option,), figures, tuple(names))
                seen.setdefault(metric.name, []).append((share, option, concern))
    return tuple(_worst(found) for found in seen.values())


def _nearest(replica: Replica, option: str) -> str | None:
    """Return whom an option of the front escaped least clearly."""
    rival = int(replica.session.state.worst[replica.place[replica.index[option]]])
    return None if rival < 0 else replica.arms[replica.seated[rival]]


def _bounded(metric: Metric) -> bool:
    return metric.bounds is not None or metric.ratio is not None


def _worst(found: Sequence[tuple[float, str, Concern]]) -> Concern:
    """Return the clearest of some concerns, which names the options of all."""
    ranked = sorted(found, key=lambda each: -each[0])
    first = ranked[0][2]
    return Concern(first.kind, first.metric, tuple(option for _, option, _ in ranked), first.figures, first.blocks)


# Laws of columns


def laws_seen(replica: Replica) -> tuple[Concern, ...]:
    """Return of which columns few values were seen, or one: that is no evidence until bounds or a kind are declared."""
    found = []
    names = tuple(replica.arms[arm] for arm in replica.present)
    for column, metric in enumerate(replica.measured):
        n, law = int(replica.tally.n[:, column].sum()), replica.law(column)
        values = replica.tally.seen[column]
        values = metric.natural(values[~np.isnan(values)])
        if replica.certain or n < FEWEST or law not in SILENT:
            continue
        if law == NEVER_VARIED:
            found.append(Concern("never varied", metric.name, names, {"values": float(n), "value": float(values[0])}))
        else:
            figures = {"distinct": float(len(values)), "values": float(n)}
            figures |= {"lowest": float(values.min()), "highest": float(values.max())}
            found.append(Concern("few values", metric.name, (), figures))
    return (*found, *laws_refuted(replica))


def laws_refuted(replica: Replica) -> tuple[Concern, ...]:
    """Return which columns had a value that their law does not allow: verdicts that rested on it were withdrawn."""
    names = [metric.name for metric in replica.measured]
    return tuple(
        Concern("another value", names[column], (), {"event": float(event), "exact": float(kind == "exact")})
        for event, column, kind in replica.refuted
    )
