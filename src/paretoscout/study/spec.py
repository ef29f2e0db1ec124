"""What a study is made of: fixed when it is created, kept as text in the storage."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from .. import checks
from ..algorithms.contract import Settings, Setup
from ..algorithms.registry import get, resolve
from ..errors import InvalidInput, NotSupported, UnknownName, UnreadableFile
from ..problem import Metric, Units, bounds_of, units_of

FORMAT = 1
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
    delta: float = 0.05
    sigma: tuple[float | None, ...] = ()  # for each column: known noise scale, in the column's own unit
    seed: int = 0
    lease: float = 3600.0  # seconds until an ask expires
    goal: str | int = "front"
    budget: int | None = None

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

    def setup(self, contexts: Sequence[Sequence[float]] | None, n_arms: int, n_broken: int = 0) -> Setup:
        """Return what the algorithm is told, with the arms that are there now; others broke a guard."""
        units, settings = self.units, self.algorithm_settings()
        L = len(self.metrics)
        known = settings.knows_noise
        bounds = bounds_of(self.metrics, units)
        sigma = np.array([np.nan if value is None else value for value in self.sigma[:L]])
        return Setup(
            n_arms=n_arms,
            n_metrics=L,
            eps=units.eps,
            # guards are judged besides, each side with half
            delta=self.delta / 2 * share_of_delta(n_arms, n_broken) if self.guards else self.delta,
            sigma=sigma / units.scales if known else None,
            contexts=None if contexts is None else np.array(contexts, float),
            noise="sub-Gaussian noise, sigma given" if known else self._unknown_noise(),
            bounds=bounds,
            scales=units.scales,
            goal=self.goal,
            budget=self.budget,
        )

    def _unknown_noise(self) -> str:
        bounded = [metric.name for metric in self.metrics if metric.bounds is not None]
        if len(bounded) == len(self.metrics):
            return "outcomes within their bounds, noise of any kind"
        within = f"; {', '.join(bounded)}: within bounds, noise of any kind" if bounded else ""
        return f"normal noise, variance unknown{within}"

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


def share_of_delta(n_left: int, n_broken: int) -> float:
    """Return the share of delta for the arms that are left where others broke a guard.

    Which arms are left depends on outcomes. An algorithm that starts anew with them is right only if it would be right
    for every set of arms that might have been left; so each of these sets has its share beforehand. One half is for
    all arms, a quarter for the sets that lack one arm, an eighth for those that lack two, and so on.

    >>> share_of_delta(8, 0), share_of_delta(7, 1) == 1 / (4 * 8)
    (0.5, True)
    """
    return 0.5 ** (n_broken + 1) / math.comb(n_left + n_broken, n_broken)


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
) -> StudySpec:
    """Check everything, and settle what follows from what is known of the noise."""
    stated = _metrics(metrics)
    limits = tuple(guard if isinstance(guard, Guard) else Guard.read(guard) for guard in guards)
    columns = list(dict.fromkeys([metric.name for metric in stated] + [guard.metric for guard in limits]))
    for name in columns:
        checks.name("name of a metric of a study", name)
    for name in set(columns) & set(RESERVED):
        raise InvalidInput(f"name of a metric of a study must not be {name!r}: a column of its table is called so")
    known = _sigma(sigma, columns, len(stated))
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
        lease=checks.number("lease of a study", lease, above=0.0),
        goal=checks.goal(goal),
        budget=None if budget is None else checks.whole("budget of a study", budget, least=1),
    )
    state, _ = record.start(settings, spec.setup(spec.contexts, len(spec.arms)))  # refused now, not at the first ask
    if limits and not record.kernels_of(state).accepts.unasked:
        raise NotSupported(f"algorithm {record.name!r} cannot keep guards: it cannot start anew without an option")
    return spec


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


def _metrics(metrics: Any) -> tuple[Metric, ...]:
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


def _sigma(sigma: Any, columns: Sequence[str], n_metrics: int) -> list[float | None]:
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
