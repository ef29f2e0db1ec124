"""Why an arm has its verdict, in words."""

from __future__ import annotations

from dataclasses import dataclass

from ..guarantee import amount
from ..shown import counted
from ..statement import Metric
from ..verdicts import VerdictTable
from .blocks import on_blocks
from .forecast import about, remaining
from .replica import Replica
from .standing import Difference, Pair, Standing


def on_the_front(table: VerdictTable) -> str:
    """Say why an option is on the front."""
    if table.guarantee.goal == "practical":
        one = f"one {table.judged_in} and as good, up to eps / 2, in the others"
        return f"no other option there is better by more than eps in {one}"
    return f"no other option is better in every {table.judged_in} by more than eps"


@dataclass(frozen=True)
class Explanation:
    """Why an arm has its verdict."""

    arm: str
    verdict: str  # "front", "same", "dominated", "undecided", "withdrawn"
    rival: str | None  # who dominates it, or who comes nearest to that
    margins: dict[str, float]  # by how much the rival is better, by metric; negative: worse; shares on a log scale
    rests_on: str | None  # the metric on which the verdict hangs
    samples: int
    expected: float | None  # more samples of this arm that are expected
    text: str

    def __str__(self) -> str:
        return self.text


def explanation(replica: Replica, standing: Standing, arm: str) -> Explanation:
    """Put the verdict on an arm into words."""
    index, table = replica.index[arm], standing.table
    samples = int(replica.tally.n[index].max())
    if index in replica.withdrawn:
        text = f"{arm} is withdrawn: {replica.withdrawn[index].reason}."
        return Explanation(arm, "withdrawn", None, {}, None, samples, None, text)
    broken = replica.guards.broken(index)
    if broken is not None:
        text = f"{arm} breaks {replica.spec.limit(broken)}."
        return Explanation(arm, "dominated", None, {}, broken.metric, samples, None, text)
    k = table.place[arm]
    verdict = table.verdicts[k]
    nearest = [name for name, _ in standing.rivals_of(arm) if name in table.place]  # others left since
    rival = nearest[0] if nearest else None
    pair = None if rival is None else standing.pair(arm, rival)
    hinge = None if pair is None else _hinge(pair)
    expected = remaining(replica, 8).by_arm.get(arm) if verdict == "undecided" and not replica.stuck else None
    margins = {} if pair is None else {each.metric: each.value for each in pair.differences if each.value is not None}
    leads, paired = "", rival is not None and replica.blocks is not None
    if pair is not None:
        named = zip(pair.differences, table.judged_by, strict=True)
        leads = "; ".join(_lead(*each, interval=paired) for each in named)
    if rival is not None and paired:
        both = on_blocks(replica, arm, rival)
        metric = next(place for place, each in enumerate(table.judged_by) if each.name == hinge)
        lasting = both.blocks and not replica.in_rounds
        most = f" ({', '.join(both.most(metric))} matter most to {hinge})" if lasting else ""
        leads += f"; on the {counted(len(both.blocks), 'round' if replica.in_rounds else 'block')} of both{most}"
    measured = f"{arm} was measured {counted(samples, 'time')}."
    if verdict == "dominated":
        text = f"{arm} is dominated by {rival}: {leads}. The evidence is weakest on {hinge}. {measured}"
    elif verdict == "front":
        near = f" Nearest to dominating it comes {rival}: {leads}." if rival else ""
        text = f"{arm} is on the front: {on_the_front(table)}.{near} {measured}"
    elif verdict == "same":
        text = f"{arm} is the same as {rival}, up to eps: {leads}. {measured}"
    else:
        against = f" The nearest rival is {rival}: {leads}; it hangs on {hinge}." if rival else ""
        more = f" About {about(expected)} more runs of it are expected." if expected is not None else ""
        text = f"{arm} is undecided.{against} {measured}{more}"
    text = " ".join(filter(None, [text, table.on_fit]))
    return Explanation(arm, verdict, rival, margins, hinge, samples, expected, text)


def _lead(difference: Difference, metric: Metric, interval: bool = False) -> str:
    if difference.value is None:
        return f"{metric.name} not measured"
    sign = 1.0 if difference.value >= 0 else -1.0
    shown = _size(difference.value, sign, metric, difference.relative)
    if interval and difference.low is not None and difference.high is not None and difference.low < difference.high:
        low, high = sorted((difference.low, difference.high), key=lambda end: sign * end)
        ends = [_size(end, sign, metric, difference.relative) for end in (low, high)]
        shown += f" ({ends[0]} to {ends[1]})"
    return f"{metric.name} {'better' if sign > 0 else 'worse'} by {shown}"


def _size(value: float, sign: float, metric: Metric, relative: bool) -> str:
    """Return how much better (sign 1) or worse (sign -1) something is."""
    if not relative:
        return amount(sign * value, metric)
    # twice as long is worse by 100%, not by 50%
    return f"{100 * (value if sign > 0 else 1.0 / (1.0 + value) - 1.0):.3g}%"


def _hinge(pair: Pair) -> str | None:
    """The metric where the lead is smallest beside its uncertainty: there the rival must lead, or the arm hold out."""

    def certainty(each: Difference) -> float:
        if each.value is None or each.low is None or each.high is None or each.high == each.low:
            return float("inf")
        return each.value / (each.high - each.low)

    return min(pair.differences, key=certainty, default=None).metric  # type: ignore[union-attr]
