"""What a study is made of: fixed when it is created, kept as text in the storage."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from .. import checks
from ..algorithms.contract import Settings, Setup
from ..algorithms.registry import get, resolve
from ..defaults import DELTA
from ..errors import InvalidInput, NotSupported, UnknownName, UnreadableFile
from ..problem import Metric, Units, bounds_of, units_of

FORMAT = 2
#: Version of the rules by which evidence is counted: its order, the shares of delta, what void trials are. 1: before
#: there were versions. A study of older rules is judged anew, from its log, by the present ones; see replica.py.
RULES = 2
#: In which order outcomes count: in that in which they were asked for, or in that in which they were told.
ORDERS = ("asked", "told")
#: Columns of `Study.to_frame` besides the metrics.
RESERVED = ("trial", "arm", "at")
GUARD = re.compile(r"\s*(.*?)\s*(<=|>=)\s*(\S+)\s*")


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
        found = GUARD.fullmatch(text) if isinstance(text, str) else None
        try:
            if found is None or not found[1]:
                raise ValueError
            return cls(found[1], found[2], checks.number("limit of a guard", float(found[3])))
        except ValueError:
            raise InvalidInput(f"a guard must read like 'latency <= 200', got {text!r}") from None

    def __str__(self) -> str:
        return f"{self.metric} {self.sense} {self.limit:g}"


@dataclass(frozen=True)
class StudySpec:
    """All settings of a study. Arms can be added and withdrawn later; these are the first ones."""

    arms: tuple[str, ...]
    metrics: tuple[Metric, ...]
    guards: tuple[Guard, ...] = ()
    features: tuple[str, ...] = ()  # names of the context columns, after encoding
    contexts: tuple[tuple[float, ...], ...] | None = None  # a row for each arm
    algorithm: str = "scout"
    settings: tuple[tuple[str, Any], ...] = ()  # of the algorithm, those that are not the default
    delta: float = DELTA
    sigma: tuple[float | None, ...] = ()  # for each column: known noise scale, in the column's own unit
    seed: int = 0
    lease: float = 3600.0  # seconds until an ask expires
    goal: str | int = "front"
    budget: int | None = None
    give_up: float | None = 3600.0  # seconds after which an outcome is no evidence any more; None: never
    at_give_up: tuple[tuple[str, float], ...] = ()  # the outcome of a trial that was not told by then; none: it is void
    order: str = "asked"  # one of ORDERS
    rules: int = field(default=RULES, compare=False)  # under which it was begun

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

    @property
    def units(self) -> Units:
        """How the metrics are oriented and scaled."""
        return units_of(self.metrics, None, "a study")

    def algorithm_settings(self) -> Settings:
        """Return the settings of the algorithm."""
        return get(self.algorithm).settings(**dict(self.settings))

    def setup(self, contexts: Sequence[Sequence[float]] | None, entered: Sequence[int]) -> Setup:
        """Return what the algorithm is told of arms; `entered`: with which addition each of them came."""
        units = self.units
        L = len(self.metrics)
        sigma = np.array([np.nan if value is None else value for value in self.sigma[:L]])
        return Setup(
            n_arms=len(entered),
            n_metrics=L,
            eps=units.eps,
            delta=self.delta / 2 if self.guards else self.delta,  # the other half is for the guards
            sigma=sigma / units.scales,
            contexts=None if contexts is None else np.array(contexts, float),
            noise=self._noise(),
            bounds=bounds_of(self.metrics, units),
            scales=units.scales,
            goal=self.goal,
            budget=self.budget,
            exact=np.array([metric.exact for metric in self.metrics]),
            entered=np.array(entered, np.int64),
        )

    def _noise(self) -> str:
        """What is assumed of the noise, for people to read; metrics are named where they differ in that."""
        kinds: dict[str, list[str]] = {}
        for metric, sigma in zip(self.metrics, self.sigma, strict=False):
            kind = "sub-Gaussian noise, sigma given"
            if sigma is None:
                kind = "normal noise, variance unknown"
                if metric.bounds is not None:
                    kind = "outcomes within their bounds, noise of any kind"
            kinds.setdefault(kind, []).append(metric.name)
        if len(kinds) == 1:
            return next(iter(kinds))
        return "; ".join(f"{', '.join(names)}: {kind}" for kind, names in kinds.items())

    def text(self) -> str:
        """Return it as text for the storage."""
        return json.dumps({"format": FORMAT, **asdict(self)}, allow_nan=False)

    @classmethod
    def of_text(cls, text: str, name: str) -> StudySpec:
        """Read what `text` wrote."""
        try:
            values: dict[str, Any] = json.loads(text)
            if values.pop("format") > FORMAT:
                raise UnreadableFile(f"study {name!r} was made by a newer paretoscout: install a newer one")
            values["metrics"] = tuple(
                Metric.stored(**{**metric, "bounds": metric["bounds"] and tuple(metric["bounds"])})
                for metric in values["metrics"]
            )
            values = {"rules": 1, "give_up": values["lease"], **values}  # what was so before there were settings for it
            values["at_give_up"] = tuple(map(tuple, values.get("at_give_up", ())))
            values["guards"] = tuple(Guard(**guard) for guard in values["guards"])
            values["settings"] = tuple(
                (key, tuple(value) if isinstance(value, list) else value) for key, value in values["settings"]
            )
            if values["contexts"] is not None:
                values["contexts"] = tuple(map(tuple, values["contexts"]))
            plain: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
            }
            return cls(**plain)
        except (KeyError, TypeError, json.JSONDecodeError) as problem:
            raise UnreadableFile(f"the settings of study {name!r} cannot be read: {problem}") from problem


def make_spec(
    *,
    arms: Sequence[str],
    metrics: Any,
    guards: Sequence[str | Guard],
    features: Sequence[str],
    contexts: Sequence[Sequence[float]] | None,
    algorithm: str | Settings,
    delta: float,
    sigma: Any,
    seed: int,
    lease: float,
    goal: str | int,
    budget: int | None,
    give_up: float | str | None = "lease",
    at_give_up: Mapping[str, float] | None = None,
    order: str = "asked",
) -> StudySpec:
    """Check everything, and settle what follows from what is known of the noise."""
    stated = metrics_of(metrics)
    limits = guards_of(guards)
    columns = list(dict.fromkeys([metric.name for metric in stated] + [guard.metric for guard in limits]))
    for name in columns:
        checks.name("name of a metric of a study", name)
    for name in set(columns) & set(RESERVED):
        raise InvalidInput(f"name of a metric of a study must not be {name!r}: a column of its table is called so")
    known = sigma_of(sigma, columns, len(stated))
    record, settings = resolve(algorithm)
    noise_given = all(value is not None for value in known[: len(stated)])
    if isinstance(algorithm, str) and not noise_given:
        if "noise" not in settings.__dataclass_fields__:
            raise InvalidInput(f"sigma of a study with algorithm {record.name!r} must be given for every metric")
        settings = record.settings(noise="unknown")  # type: ignore[call-arg]
    if settings.sigma is not None:
        raise InvalidInput("sigma of a study must be given to the study, not to its algorithm")
    if settings.knows_noise and not noise_given:
        raise InvalidInput(
            f"sigma of a study must be given for every metric, or the algorithm told that nobody knows it: "
            f"{type(settings).__name__}(noise='unknown')"
        )
    lease = checks.number("lease of a study", lease, above=0.0)
    if order not in ORDERS:
        raise InvalidInput(f"order of a study must be 'asked' or 'told', got {order!r}")
    usual = asdict(record.settings())
    spec = StudySpec(
        arms=arm_names(arms),
        metrics=stated,
        guards=limits,
        features=tuple(features),
        contexts=None if contexts is None else tuple(tuple(float(x) for x in row) for row in contexts),
        algorithm=record.name,
        settings=tuple((key, value) for key, value in asdict(settings).items() if value != usual[key]),
        delta=checks.number("delta of a study", delta, above=0.0, below=1.0),
        sigma=tuple(known),
        seed=checks.whole("seed of a study", seed, least=0),
        lease=lease,
        goal=checks.goal(goal),
        budget=None if budget is None else checks.whole("budget of a study", budget, least=1),
        give_up=_give_up(give_up, lease),
        at_give_up=_at_give_up(at_give_up, stated, columns),
        order=order,
    )
    state, _ = record.start(settings, spec.setup(spec.contexts, [0] * len(spec.arms)))  # refused now, not at an ask
    kernels = record.kernels_of(state)
    if limits and kernels.judge_anew is None:
        raise NotSupported(f"algorithm {record.name!r} cannot keep guards: it cannot go on without an option that left")
    if spec.silence is not None and None in spec.silence[: len(stated)] and not kernels.accepts.missing:
        raise NotSupported(f"at_give_up of a study with algorithm {record.name!r} must have every metric")
    return spec


def _give_up(give_up: float | str | None, lease: float) -> float | None:
    """Return after how long an outcome is no evidence any more; "lease": as long as the lease."""
    if give_up is None or give_up == "lease":
        return None if give_up is None else lease
    return checks.number("give_up of a study (at least its lease)", give_up, least=lease)


def _at_give_up(
    values: Mapping[str, float] | None, metrics: Sequence[Metric], columns: Sequence[str]
) -> tuple[tuple[str, float], ...]:
    if values is not None and not isinstance(values, Mapping):
        raise InvalidInput(f"at_give_up of a study must be {{metric: number}}, got {values!r}")
    for name in values or {}:
        if name not in columns:
            raise UnknownName("metric in at_give_up of a study:", name, columns)
    said = {name: checks.number(f"{name!r} in at_give_up of a study", value) for name, value in (values or {}).items()}
    for metric in metrics:
        if metric.name in said and metric.bounds and not metric.bounds[0] <= said[metric.name] <= metric.bounds[1]:
            low, high = metric.bounds
            raise InvalidInput(
                f"{metric.name!r} in at_give_up of a study must be from {low:g} to {high:g}, got {said[metric.name]:g}"
            )
    return tuple(said.items())


def arm_names(names: Any) -> tuple[str, ...]:
    """Return names of arms, if they are texts and all different."""
    given = tuple(names)
    if not given:
        raise InvalidInput("a study must have at least one arm, got none")
    for name in given:
        checks.name("name of an arm", name)
    if len(set(given)) < len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise InvalidInput(f"names of arms must differ, got {twice!r} twice")
    return given


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
            f"metrics of a study must be {{name: 'min' or 'max'}} or a list of Metric objects, got {metrics!r}"
        )
    stated = tuple(metric if isinstance(metric, Metric) else Metric(metric) for metric in metrics)
    # plain numbers: numpy's own cannot be written as text
    stated = tuple(replace(metric, eps=None if metric.eps is None else float(metric.eps)) for metric in stated)
    names = [metric.name for metric in stated]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"names of metrics must differ, got {name!r} twice")
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
