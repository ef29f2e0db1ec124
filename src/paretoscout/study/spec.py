"""What a study is made of: fixed when it is created, kept as text in the storage."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from .. import checks
from ..algorithms.contract import Settings
from ..algorithms.registry import get, resolve
from ..errors import InvalidInput, NotSupported, UnknownName, UnreadableFile
from ..practical import SHARE_OF_VERDICTS
from ..start import setup_of
from ..statement import NUMBER, VOID, Blocks, Metric, Statement

FORMAT = 4
#: Version of the rules by which evidence is counted: its order, the shares of delta, what void trials are. 1: before
#: there were versions. A study of older rules is judged again, from its log, by the present ones; see replica.py.
#: 2: all studies. 3: practical verdicts, see ../practical.py. 4: scout, which shares delta out by the pilots, and by
#: contexts where there are any. 5: scout, which pairs outcomes by their numbers where sigma is unknown. 6: scout, which
#: asks for the law of each column (laws.py).
RULES, RULES_OF_PRACTICAL, RULES_OF_ALL = 6, 3, 2
#: In which order outcomes count: in that in which they were asked for, or in that in which they were told.
ORDERS = ("asked", "told")
#: Columns of `Study.to_frame` besides the metrics.
RESERVED = ("trial", "arm", "block", "at")
SENSE = re.compile("<=|>=")


@dataclass(frozen=True)
class Guard:
    """A limit that the mean of a metric must keep: "latency <= 200".

    >>> Guard.read("latency <= 200")
    Guard(metric='latency', sense='<=', limit=200.0)
    """

    metric: str
    sense: str
    limit: float

    @classmethod
    def read(cls, text: Any) -> Guard:
        """Read a guard from its text."""
        if isinstance(text, str) and len(text) <= checks.LONGEST_TEXT:
            for found in SENSE.finditer(text):  # the name of a metric may hold one, too
                metric, limit = text[: found.start()].strip(), checks.numeral(text[found.end() :].strip())
                if metric and limit is not None:
                    return cls(metric, found[0], limit)
        raise InvalidInput(f"a guard must read like 'latency <= 200', got {checks.got(text)}", "guards")

    def __str__(self) -> str:
        return f"{self.metric} {self.sense} {self.limit:g}"


#: What is judged besides the verdicts takes its share of delta: limits of guards, and intervals that verdicts rest on.
SHARES = {
    ("front", False): (("verdicts", 1.0),),
    ("front", True): (("verdicts", 0.5), ("guards", 0.5)),
    ("practical", False): (("verdicts", SHARE_OF_VERDICTS), ("intervals", 1.0 - SHARE_OF_VERDICTS)),
    ("practical", True): (("verdicts", 0.25), ("guards", 0.25), ("intervals", 0.5)),
}


@dataclass(frozen=True)
class StudySpec:
    """All settings of a study. Arms can be added and withdrawn later; these are the first ones."""

    asked: Statement
    guards: tuple[Guard, ...] = ()
    features: tuple[str, ...] = ()  # names of the context columns, after encoding
    algorithm: str = "scout"
    settings: tuple[tuple[str, Any], ...] = ()  # of the algorithm, those that are not the default
    guarded_sigma: tuple[float | None, ...] = ()  # known noise scale of what only guards look at, in its own unit
    seed: int = 0
    lease: float = 3600.0  # seconds until an ask expires
    give_up: float | None = 3600.0  # seconds after which an outcome is no evidence any more; None: never
    at_give_up: tuple[tuple[str, float], ...] = ()  # the outcome of a trial that was not told by then; none: it is void
    order: str = "asked"  # one of ORDERS
    shares: tuple[tuple[str, float], ...] = SHARES["front", False]  # what delta is for
    title: str = ""  # the question that the study answers
    walk: tuple[int, ...] = field(default=(), compare=False)  # the blocks in the order in which all arms visit them
    rules: int = field(default=RULES, compare=False)  # under which it was begun

    def __post_init__(self) -> None:
        said = dict(self.at_give_up)  # in one order, however it was stated
        object.__setattr__(self, "at_give_up", tuple((name, said[name]) for name in self.columns if name in said))

    @property
    def arms(self) -> tuple[str, ...]:
        """The first arms."""
        return self.asked.arms

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics, without what only guards look at."""
        return self.asked.metrics

    @property
    def delta(self) -> float:
        """Probability of error that is allowed."""
        return self.asked.delta

    @property
    def budget(self) -> int | None:
        """How many samples there are in all."""
        return self.asked.budget

    @property
    def sigma(self) -> tuple[float | None, ...]:
        """The noise scale of each column, the largest of all arms, as it is compared; None: nobody knows it."""
        known = np.atleast_2d(self.asked.sigma).max(axis=0).tolist()
        return (*(None if np.isnan(value) else value for value in known), *self.guarded_sigma)

    @property
    def silence(self) -> list[float | None] | None:
        """The outcome of a trial that was not told in time, a number for each column; None: it has none."""
        said = dict(self.at_give_up)
        return [said.get(name) for name in self.columns] if said else None

    @property
    def columns(self) -> tuple[str, ...]:
        """What is measured: the metrics, then what only guards look at."""
        names = [metric.name for metric in self.metrics]
        return tuple(dict.fromkeys([*names, *(guard.metric for guard in self.guards)]))

    def measured(self) -> tuple[Metric, ...]:
        """Return the columns as metrics; what only guards look at has neither unit nor eps."""
        known = {metric.name: metric for metric in self.metrics}
        return tuple(known[name] if name in known else Metric.stored(name) for name in self.columns)

    def limit(self, guard: Guard) -> str:
        """Return a guard with its unit, for people to read."""
        unit = next((metric.unit for metric in self.metrics if metric.name == guard.metric), "")
        return f"{guard} {unit}".rstrip()

    @property
    def practical(self) -> bool:
        """Whether verdicts are those that people act on, see practical.py."""
        return self.asked.goal == "practical"

    def algorithm_settings(self) -> Settings:
        """Return the settings of the algorithm."""
        return get(self.algorithm).settings(**dict(self.settings))

    def differs(self, other: StudySpec) -> list[str]:
        """Return the names of the settings in which another one differs."""
        mine = [name for name in vars(self) if name not in ("asked", "walk", "rules")]
        return [name for name in mine if getattr(self, name) != getattr(other, name)] + self.asked.differs(other.asked)

    def text(self) -> str:
        """Return it as text for the storage."""
        asked = {name: _plain(value) for name, value in vars(self.asked).items() if name != "of"}
        if asked["tradeoffs"] is None:
            del asked["tradeoffs"]  # earlier versions read it
        if asked["on_failure"] == VOID:
            del asked["on_failure"]  # likewise
        asked["metrics"] = [asdict(metric) for metric in self.metrics]
        for metric in asked["metrics"]:
            if metric["kind"] == NUMBER:
                del metric["kind"]  # likewise
        if self.asked.blocks is not None:
            new = {"sample": False, "repeats": 1}
            blocks = asdict(self.asked.blocks).items()
            asked["blocks"] = {name: value for name, value in blocks if new.get(name) != value}
        asked["sigma"] = _plain(np.where(np.isnan(self.asked.sigma), None, self.asked.sigma))  # type: ignore[call-overload]
        rest = {name: value for name, value in vars(self).items() if name != "asked"}
        return json.dumps({"format": FORMAT, "asked": asked, **rest}, allow_nan=False, default=asdict)

    @classmethod
    def of_text(cls, text: str, name: str) -> StudySpec:
        """Read what `text` wrote, or an earlier version of it."""
        try:
            values: dict[str, Any] = json.loads(text)
            version = values.pop("format")
            if version > FORMAT:
                raise UnreadableFile(f"study {name!r} was made by a newer paretoscout: install a newer one")
            if version < 3:
                values = _of_before(values)
            return _read(cls, values)
        except (KeyError, TypeError, ValueError) as problem:
            raise UnreadableFile(f"the settings of study {name!r} cannot be read: {problem}") from problem


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _of_before(values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a study of format 1 or 2, which knew no statement, as those of the present one."""
    asked = {key: values.pop(key) for key in ("arms", "metrics", "contexts", "delta", "goal", "budget")}
    sigma, L = values.pop("sigma"), len(asked["metrics"])
    asked["sigma"], values["guarded_sigma"] = sigma[:L], sigma[L:]
    values["shares"] = SHARES["front", bool(values["guards"])]
    # what was so before there were settings for it
    return {"rules": 1, "give_up": values["lease"], **values, "asked": asked}


def _read(cls: type[StudySpec], values: dict[str, Any]) -> StudySpec:
    asked = values["asked"]
    asked["metrics"] = tuple(
        Metric.stored(**{**metric, "bounds": metric["bounds"] and tuple(metric["bounds"])})
        for metric in asked["metrics"]
    )
    asked["arms"] = tuple(asked["arms"])
    asked["sigma"] = np.array(asked["sigma"], float)  # None becomes NaN
    for name in ("contexts", "cost"):
        if asked.get(name) is not None:
            asked[name] = np.array(asked[name], float)
    if asked.get("tradeoffs") and not isinstance(asked["tradeoffs"][0], str):
        asked["tradeoffs"] = np.array(asked["tradeoffs"], float)
    if asked.get("blocks") is not None:
        asked["blocks"] = Blocks(**{**asked["blocks"], "names": tuple(asked["blocks"]["names"])})
    values["asked"] = Statement(**asked)
    values["guards"] = tuple(Guard(**guard) for guard in values["guards"])
    values["settings"] = tuple(
        (key, tuple(value) if isinstance(value, list) else value) for key, value in values["settings"]
    )
    for name in ("at_give_up", "shares"):
        values[name] = tuple(map(tuple, values.get(name, ())))
    plain: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    return cls(**plain)


def stated(
    *,
    arms: Sequence[str],
    metrics: Any,
    guards: Any = (),
    contexts: Sequence[Sequence[float]] | None = None,
    sigma: Any = None,
    cost: Sequence[float] | None = None,
    **more: Any,
) -> tuple[Statement, tuple[Guard, ...], tuple[float | None, ...]]:
    """Return the statement of a study, its guards, and the noise scale of what only these look at.

    more: model, theta_max, goal, delta, budget, blocks and tradeoffs of the statement.
    """
    objectives, limits = metrics_of(metrics), guards_of(guards)
    L = len(objectives)
    columns = list(dict.fromkeys([metric.name for metric in objectives] + [guard.metric for guard in limits]))
    known = sigma_of(sigma, columns, L)
    asked = Statement(
        arms=arm_names(arms),
        metrics=objectives,
        sigma=np.array([np.nan if value is None else value for value in known[:L]], float),
        contexts=None if contexts is None else np.array(contexts, float),
        cost=None if cost is None else np.array(cost, float),
        **more,
    )
    return asked, limits, tuple(known[L:])


def make_spec(
    asked: Statement,
    *,
    guards: tuple[Guard, ...] = (),
    guarded_sigma: tuple[float | None, ...] = (),
    features: Sequence[str] = (),
    algorithm: str | Settings = "scout",
    seed: int = 0,
    lease: float = 3600.0,
    give_up: float | str | None = "lease",
    at_give_up: Mapping[str, float] | None = None,
    order: str = "asked",
    title: str = "",
    walk: Sequence[int] | None = None,
) -> StudySpec:
    """Check everything, and settle what follows from what is known of the noise.

    walk: the blocks in the order in which arms visit them. None: it is drawn from the seed.
    """
    if asked.blocks is not None and not asked.blocks.names and not asked.blocks.rounds:
        raise InvalidInput("blocks of a study must have names, or be 'rounds'; a simulated population has neither")
    columns = list(dict.fromkeys([metric.name for metric in asked.metrics] + [guard.metric for guard in guards]))
    for name in columns:
        checks.name("name of a metric of a study", name)
    for name in set(columns) & set(RESERVED):
        raise InvalidInput(f"name of a metric of a study must not be {name!r}: a column of its table is called so")
    for guard in guards:
        if guard.limit <= 0 and any(metric.relative for metric in asked.metrics if metric.name == guard.metric):
            raise InvalidInput(f"limit of metric {guard.metric!r} must be above 0 on a log scale, got {guard.limit:g}")
    record, settings = resolve(algorithm)
    if not asked.knows_sigma and settings.knows_noise and "noise" not in settings.__dataclass_fields__:
        raise InvalidInput(f"sigma of a study with algorithm {record.name!r} must be given for every metric")
    if isinstance(algorithm, str) and not asked.knows_sigma:
        settings = record.settings(noise="unknown")  # type: ignore[call-arg]
    if settings.sigma is not None:
        raise InvalidInput("sigma of a study must be given to the study, not to its algorithm")
    if settings.knows_noise and not asked.knows_sigma:
        raise InvalidInput(
            f"sigma of a study must be given for every metric, or the algorithm told that nobody knows it: "
            f"{type(settings).__name__}(noise='unknown')"
        )
    lease = checks.number("lease of a study", lease, above=0.0)
    checks.one_of("order of a study", order, ORDERS)
    if title != "":
        checks.name("title of a study", title)
    usual = asdict(record.settings())
    spec = StudySpec(
        asked=asked,
        guards=guards,
        features=tuple(features),
        algorithm=record.name,
        settings=tuple((key, value) for key, value in asdict(settings).items() if value != usual[key]),
        guarded_sigma=guarded_sigma,
        seed=checks.whole("seed of a study", seed, least=0),
        lease=lease,
        give_up=_give_up(give_up, lease),
        at_give_up=_at_give_up(at_give_up, asked.metrics, columns),
        order=order,
        shares=SHARES["practical" if asked.goal == "practical" else "front", bool(guards)],
        title=title,
        walk=_walk(asked.blocks, seed) if walk is None else tuple(walk),
    )
    share = dict(spec.shares)["verdicts"]
    state, _ = record.start(settings, setup_of(asked, settings, share=share))  # refused now, not at an ask
    kernels = record.kernels_of(state)
    if guards and kernels.judge_again is None:
        raise NotSupported(f"algorithm {record.name!r} cannot keep guards: it cannot go on without an option that left")
    if spec.silence is not None and None in spec.silence[: len(asked.metrics)] and not kernels.accepts.missing:
        raise NotSupported(f"at_give_up of a study with algorithm {record.name!r} must have every metric")
    return spec


def _walk(blocks: Blocks | None, seed: int) -> tuple[int, ...]:
    """Draw the order in which all arms visit the blocks: that of a list of files or prompts is not random."""
    if blocks is None:
        return ()
    return tuple(np.random.default_rng([seed, len(blocks.names)]).permutation(len(blocks.names)).tolist())


def _give_up(give_up: float | str | None, lease: float) -> float | None:
    """Return after how long an outcome is no evidence any more; "lease": as long as the lease."""
    if give_up is None or give_up == "lease":
        return None if give_up is None else lease
    return checks.number("give_up of a study (at least its lease)", give_up, least=lease)


def _at_give_up(
    values: Mapping[str, float] | None, metrics: Sequence[Metric], columns: Sequence[str]
) -> tuple[tuple[str, float], ...]:
    if values is not None and not isinstance(values, Mapping):
        raise InvalidInput(f"at_give_up of a study must be {{metric: number}}, got {checks.got(values)}")
    for name in values or {}:
        if name not in columns:
            raise UnknownName("metric in at_give_up of a study:", name, columns)
    said = {name: checks.number(f"{name!r} in at_give_up of a study", value) for name, value in (values or {}).items()}
    for metric in metrics:
        if metric.name in said and metric.relative and said[metric.name] <= 0:
            raise InvalidInput(f"{metric.name!r} in at_give_up of a study must be above 0, got {said[metric.name]:g}")
        if metric.name in said and metric.bounds and not metric.bounds[0] <= said[metric.name] <= metric.bounds[1]:
            low, high = metric.bounds
            raise InvalidInput(
                f"{metric.name!r} in at_give_up of a study must be from {low:g} to {high:g}, got {said[metric.name]:g}"
            )
        if metric.name in said and metric.pass_fail and said[metric.name] not in (0.0, 1.0):
            raise InvalidInput(
                f"{metric.name!r} in at_give_up of a study must be 0 or 1, because its kind is 'pass/fail', got "
                f"{said[metric.name]:g}"
            )
    return tuple(said.items())


def arm_names(names: Any) -> tuple[str, ...]:
    """Return names of arms, if they are texts and all different."""
    given = tuple(names)
    if not given:
        raise InvalidInput("a study must have at least one arm, got none")
    for name in given:
        checks.name("name of an arm", name)
    _check_differ("arms", given)
    return given


def _check_differ(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InvalidInput(f"names of {what} must differ, got {twice!r} twice")


def guards_of(guards: Any) -> tuple[Guard, ...]:
    """Return guards, however they are stated."""
    stated = [guards] if isinstance(guards, (str, Guard)) else guards
    return tuple(guard if isinstance(guard, Guard) else Guard.read(guard) for guard in stated)


def metrics_of(metrics: Any) -> tuple[Metric, ...]:
    """Return metrics, however they are stated."""
    if isinstance(metrics, Mapping):
        metrics = [Metric(name, direction) for name, direction in metrics.items()]
    if isinstance(metrics, (str, Metric)) or not isinstance(metrics, Sequence) or not metrics:
        raise InvalidInput(
            "metrics of a study must be {name: 'min' or 'max'} or a list of Metric objects, got "
            f"{checks.got(metrics)}"
        )
    stated = tuple(metric if isinstance(metric, Metric) else Metric(metric) for metric in metrics)
    # plain numbers: numpy's own cannot be written as text
    stated = tuple(
        metric if metric.eps is None or isinstance(metric.eps, str) else replace(metric, eps=float(metric.eps))
        for metric in stated
    )
    names = [metric.name for metric in stated]
    _check_differ("metrics", names)
    return stated


def sigma_of(sigma: Any, columns: Sequence[str], n_metrics: int) -> list[float | None]:
    """Return the noise scale of each column, None where nobody knows it."""
    if sigma is None:
        return [None] * len(columns)
    if isinstance(sigma, Mapping):
        for name in sigma:
            if name not in columns:
                raise UnknownName("metric", name, columns)
        return [
            None if sigma.get(name) is None else checks.number(f"sigma of {name!r}", sigma[name], least=0.0)
            for name in columns
        ]
    each = checks.per_metric("sigma of a study", sigma, n_metrics, least=0.0)
    return [*each.tolist(), *[None] * (len(columns) - n_metrics)]
