"""The answer in one sentence: what is worth having, what is dominated, what is the same, what is undecided.

All commands that show verdicts end with this sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .guarantee import difference
from .statement import Metric
from .verdicts import VerdictTable

#: How people say that an option is worse than another, and that it is no better, in what should be small. All other
#: metrics are called by their names.
WORSE = {"time": "slower", "size": "larger", "rss": "hungrier for memory", "user": "slower in user time"}
EQUAL = {"time": "no faster", "size": "no smaller", "rss": "no leaner", "user": "no faster in user time"}
#: What the options of the front are, by the goal; of a number of options they are so many of the front.
FOUND = {"front": "the front", "practical": "the front", "cover": "a cover of the front"}
#: Up to so many dominated options the sentence says why each of them is.
MOST_REASONS = 3
#: Up to so many options of one kind have their names in it.
MOST_NAMES = 12


def sentence(table: VerdictTable, kinds: Mapping[str, str] | None = None, ahead: str = "") -> str:
    """Say in one sentence what came out; where many are dominated, why the first of them is.

    kinds: by the name of a metric, what it is ("time", "size", "rss", "user"); of others that is their name.
    ahead: what it takes to decide what is undecided.
    """
    undecided = [arm for arm, verdict in zip(table.arms, table.verdicts, strict=True) if verdict == "undecided"]
    parts = [_found(table, so_far=bool(undecided)), *_lost(table, kinds or {}), *_twins(table)]
    if undecided:
        parts.append(f"{listed(undecided)} {are(undecided)} undecided{f': {ahead}' if ahead else ''}")
    return ("; ".join(filter(None, parts)) or "no option keeps its limits") + "."


def reason(table: VerdictTable, k: int, kinds: Mapping[str, str] | None = None) -> str:
    """Say by how much a dominated option is worse than the one that dominates it; nothing of others."""
    rival = table.rivals[k]
    if table.verdicts[k] != "dominated" or rival is None:
        return ""
    j = table.place[rival]
    said = []
    lags = -table.as_judged(table.centres[k] - table.centres[j])
    radii = table.judged_radii(table.widths[k] + table.widths[j])
    for metric, lag, radius in zip(table.judged_by, lags.tolist(), radii.tolist(), strict=True):
        kind = (kinds or {}).get(metric.name, metric.name)
        proven = lag > radius
        if lag < 0:
            said.append(f"better in {metric.name} by {_amount(-lag, metric)} (which does not matter)")
        elif lag == 0 or (lag <= metric.tolerance and not proven):
            said.append(_no_better(metric, kind))
        else:
            said.append(f"{_worse(metric, kind)} by {_amount(lag, metric)}")
    return joined(said)


def larger_eps(table: VerdictTable, kinds: Mapping[str, str] | None = None) -> str:
    """Say with which eps all is decided, and what is decided then; the metrics of the table have that eps."""
    eps = " ".join(f"--eps {metric.name}={metric.eps}" for metric in table.metrics if metric.eps is not None)
    said = sentence(table, kinds)
    return f"with {eps} all is decided now, and that may be chosen after looking (paretoscout status --eps): {said}"


def listed(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """Return names as people list them; of very many the first ones.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], most=2)
    ('a, b and c', 'a, b and 2 more')
    """
    rest = [f"{len(names) - most:,} more"] if len(names) > most else []
    return joined([*map(_name, names[:most]), *rest])


def joined(words: Sequence[str]) -> str:
    """Return words with commas, and "and" before the last one."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _name(text: str) -> str:
    """Return a name that may stand in a list: within quotes if it reads like a list itself.

    >>> _name("light, licm"), _name("level=1,mode=a")
    ("'light, licm'", 'level=1,mode=a')
    """
    return f"'{text}'" if ", " in text or " and " in text else text


def are(names: Sequence[str]) -> str:
    """Return the verb that goes with names."""
    return "is" if len(names) == 1 else "are"


def _found(table: VerdictTable, so_far: bool) -> str:
    if not table.front:
        return ""
    what = FOUND.get(str(table.guarantee.goal), "on the front")
    return f"{listed(table.front)} {are(table.front)} {what}{' so far' if so_far else ''}"


def _lost(table: VerdictTable, kinds: Mapping[str, str]) -> list[str]:
    lost = [k for k, verdict in enumerate(table.verdicts) if verdict == "dominated" and table.rivals[k] is not None]
    said = [
        (_name(table.arms[k]), f"by {_name(table.rivals[k] or '')}: {reason(table, k, kinds)}")
        for k in lost[: MOST_REASONS + 1]
    ]
    if len(lost) <= MOST_REASONS:
        return [f"{arm} is dominated {why}" for arm, why in said]
    return [f"{len(lost):,} are dominated, such as {said[0][0]} {said[0][1]}"]


def _twins(table: VerdictTable) -> list[str]:
    """Say which options are the same as which."""
    twins: dict[str, list[str]] = {}
    for arm, verdict, rival in zip(table.arms, table.verdicts, table.rivals, strict=True):
        if verdict == "same" and rival is not None:
            twins.setdefault(rival, []).append(arm)
    first = [_the_same(table, arms, rival) for rival, arms in list(twins.items())[:MOST_NAMES]]
    rest = [arm for arms in list(twins.values())[MOST_NAMES:] for arm in arms]
    return first + ([f"{len(rest):,} more {are(rest)} the same as others"] if rest else [])


def _the_same(table: VerdictTable, arms: Sequence[str], rival: str) -> str:
    """Say that options are the same as another one, and how closely that is known."""
    of_each = [table.within(table.place[arm]) or [] for arm in arms]
    most = [max(differences) for differences in zip(*of_each, strict=True)]
    noisy = [(metric, value) for metric, value in zip(table.judged_by, most, strict=True) if value > 0]
    known = " and ".join(f"{difference(value, metric)} of {metric.name}" for metric, value in noisy)
    asked = " and ".join(difference(metric.tolerance, metric) for metric, _ in noisy)
    closely = f", within {known}, asked for {asked}" if noisy else ""
    return f"{listed(arms)} {are(arms)} the same as {_name(rival)}{closely}"


def _worse(metric: Metric, kind: str) -> str:
    """Say that something is worse in a metric.

    >>> _worse(Metric("wall", "min"), "time"), _worse(Metric("quality", "max"), "quality")
    ('slower', 'lower in quality')
    """
    if metric.direction == "min":
        return WORSE.get(kind, f"higher in {metric.name}")
    return f"lower in {metric.name}"


def _no_better(metric: Metric, kind: str) -> str:
    if metric.direction == "min":
        return EQUAL.get(kind, f"no lower in {metric.name}")
    return f"no higher in {metric.name}"


def _amount(lag: float, metric: Metric) -> str:
    ratio = math.exp(lag) if metric.relative else 0.0
    return difference(lag, metric) if ratio < 2 else f"a factor of {ratio:.{1 if ratio < 10 else 0}f}"
