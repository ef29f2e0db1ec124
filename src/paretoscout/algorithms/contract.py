"""What an algorithm is: a state, five functions, and what it promises. One record says it all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .. import checks
from ..errors import InvalidInput, NotSupported
from ..kernels.arrays import BoolArray, FloatArray, IntArray
from ..kernels.dispatch import Basis, Held, Verdicts, implement
from ..kernels.uncompiled import expect
from .ranges import check_settings, setting
from .states import declare

#: What of delta goes to the arms there are at the beginning; of the rest, the r-th addition of arms gets RESERVE / 2^r.
AT_THE_BEGINNING, RESERVE = 0.95, 0.05


def shares_of(entered: IntArray) -> FloatArray:
    """Return what of delta is for each arm, by the addition with which it came.

    >>> shares_of(np.array([0, 0, 1])).tolist()
    [0.475, 0.475, 0.025]
    """
    additions, members = np.unique(entered, return_inverse=True)
    of_all = np.where(additions == 0, AT_THE_BEGINNING, RESERVE / 2.0**additions)
    shares: FloatArray = (of_all / np.bincount(members))[members]
    return shares


@dataclass(frozen=True)
class Setup:
    """What an algorithm may know of a problem. Metrics are oriented (larger is better) and scaled."""

    n_arms: int
    n_metrics: int
    eps: FloatArray  # (L,) differences that do not matter
    delta: float  # probability of error that is allowed
    sigma: FloatArray | None  # (K, L) noise scale; NaN in all of a column, or None: nobody knows it
    contexts: FloatArray | None = None  # (K, d)
    theta_max: float | None = None  # largest norm of a column of the parameters, where it is known
    link: str = "identity"  # or "logistic": a mean is 1 / (1 + exp(-z)) of what is linear in the contexts
    goal: str | int = "front"  # what is asked for, see `checks.goal`
    budget: int | None = None  # how many samples there are in all, for those that plan ahead
    explained: bool = False  # whether the means are known to be linear in the contexts
    bounds: FloatArray | None = None  # (L, 2) the lowest and the highest outcome there can be; infinite where unknown
    # one number stands for all
    cost: FloatArray = 1.0  # type: ignore[assignment]  # (K,) what one sample of each arm costs
    divisors: FloatArray = 1.0  # type: ignore[assignment]  # (L,) what one scaled unit is, as the metric is compared
    exact: BoolArray = False  # type: ignore[assignment]  # (L,) whether a number that never varied is certain
    entered: IntArray = 0  # type: ignore[assignment]  # (K,) 0: there at the beginning; r: came with the r-th addition
    n_blocks: int | None = None  # all arms are measured on so many blocks; 0: without end; None: on none
    listed: bool = False  # whether the answer is about these blocks, not about the population they come from
    passing: bool = False  # whether a block that an arm has missed is gone, as a stretch of time is
    spans: FloatArray | None = None  # (L,) the largest difference of two arms on a block; infinite where unknown
    # None: even
    metric_shares: FloatArray = None  # type: ignore[assignment]  # (L,) of delta, where arms share blocks
    looked: IntArray = 0  # type: ignore[assignment]  # (K,) e: that was the e-th addition after looking; 0: it was none
    weights: FloatArray | None = None  # (L, P) of the parts that metrics are sums of; None: each is its own part
    parting: FloatArray | None = None  # (P, L) what makes parts of sums
    exact_parts: BoolArray | None = None  # (P,) like `exact`, of parts

    def __post_init__(self) -> None:
        L = checks.whole("n_metrics of a setup", self.n_metrics, least=1)
        checks.whole("n_arms of a setup", self.n_arms, least=1)
        checked: dict[str, Any] = {
            "eps": checks.per_metric("eps of a setup", self.eps, L, least=0.0),
            "divisors": checks.per_metric("divisors of a setup", self.divisors, L),
            "delta": checks.number("delta of a setup", self.delta, above=0.0, below=1.0),
        }
        if not (checked["divisors"] > 0).all():
            raise InvalidInput(f"divisors of a setup must be above 0, got {self.divisors!r}")
        if self.sigma is not None:
            checked["sigma"] = self._checked_sigma()
        exact, entered = np.asarray(self.exact), np.asarray(self.entered)
        if exact.shape not in ((), (L,)) or exact.dtype != np.bool_:
            raise InvalidInput(f"exact of a setup must be {L} booleans, one per metric, got {self.exact!r}")
        if entered.shape not in ((), (self.n_arms,)) or entered.dtype.kind not in "iu" or entered.min() < 0:
            raise InvalidInput(f"entered of a setup must be one whole number per arm, got {self.entered!r}")
        looked = np.asarray(self.looked)
        if looked.shape not in ((), (self.n_arms,)) or looked.dtype.kind not in "iu" or (looked > entered).any():
            raise InvalidInput(f"looked of a setup must be one whole number per arm, got {self.looked!r}")
        checked["looked"] = np.full(self.n_arms, looked, np.int64)
        checked["exact"], checked["entered"] = np.full(L, exact), np.full(self.n_arms, entered, np.int64)
        if self.bounds is not None:
            bounds = checked["bounds"] = checks.floats("bounds of a setup", self.bounds)
            if bounds.shape != (L, 2) or not (bounds[:, 0] < bounds[:, 1]).all():
                raise InvalidInput(f"bounds of a setup must be {L} pairs, low before high, got {self.bounds!r}")
        cost = checks.finite("cost of a setup", checks.floats("cost of a setup", self.cost))
        if cost.shape not in ((), (self.n_arms,)) or not (cost > 0).all():
            raise InvalidInput(f"cost of a setup must be one number above 0 per arm ({self.n_arms}), got {self.cost!r}")
        checked["cost"] = np.full(self.n_arms, cost)
        if self.contexts is not None:
            checked["contexts"] = checks.table("contexts of a setup", self.contexts, "(arms, features)", own=False)
            if len(checked["contexts"]) != self.n_arms:
                raise InvalidInput(
                    f"contexts of a setup must have one row per arm ({self.n_arms}), got {len(checked['contexts'])}"
                )
        if self.n_blocks is not None:
            checks.whole("n_blocks of a setup", self.n_blocks, least=0)
        if self.spans is not None:
            checked["spans"] = checks.floats("spans of a setup", self.spans)
            if checked["spans"].shape != (L,) or not (checked["spans"] > 0).all():
                raise InvalidInput(f"spans of a setup must be {L} numbers above 0, got {self.spans!r}")
        if self.weights is not None:
            weights = checked["weights"] = checks.floats("weights of a setup", self.weights)
            parting = checked["parting"] = checks.floats("parting of a setup", self.parting)
            if weights.ndim != 2 or len(weights) != L or parting.shape != weights.T.shape:
                raise InvalidInput(f"weights of a setup must have shape {(L, -1)} (-1: any), got {weights.shape}")
            if self.exact_parts is None or np.shape(self.exact_parts) != (len(parting),):
                raise InvalidInput(f"exact_parts of a setup must be {len(parting)} booleans, got {self.exact_parts!r}")
        shares = np.full(L, 1.0 / L) if self.metric_shares is None else self.metric_shares
        checked["metric_shares"] = checks.per_metric("metric_shares of a setup", shares, L)
        if not (checked["metric_shares"] > 0).all() or checked["metric_shares"].sum() > 1.0 + 1e-9:
            raise InvalidInput(f"metric_shares of a setup must be above 0 and at most 1 in all, got {shares!r}")
        checked["goal"] = checks.goal(self.goal)
        if self.budget is not None:
            checked["budget"] = checks.whole("budget of a setup", self.budget, least=1)
        checks.one_of("link of a setup", self.link, ("identity", "logistic"))
        if self.theta_max is not None:
            checked["theta_max"] = checks.number("theta_max of a setup", self.theta_max, least=0.0)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _checked_sigma(self) -> FloatArray | None:
        """Return sigma for each arm and metric, from one number, one per metric, or all; None where none is known."""
        K, L, what = self.n_arms, self.n_metrics, "sigma of a setup"
        sigma = checks.floats(what, self.sigma)
        if sigma.shape not in ((), (L,), (K, L)):
            raise InvalidInput(f"{what} must be one number, {L} of them (one per metric) or {K} x {L}, got {sigma!r}")
        sigma = np.array(np.broadcast_to(sigma, (K, L)), order="C")
        unknown = np.isnan(sigma)
        if (unknown.any(axis=0) != unknown.all(axis=0)).any():
            raise InvalidInput(f"{what} must be known for all arms of a metric or for none, got {self.sigma!r}")
        if (checks.finite(what, np.where(unknown, 0.0, sigma)) < 0.0).any():
            raise InvalidInput(f"{what} must be at least 0, got {self.sigma!r}")
        return None if unknown.all() else sigma

    @property
    def shares(self) -> FloatArray:
        """What of delta is for each arm (K,): fixed when it enters, whoever comes or goes later; at most 1 in all."""
        return shares_of(self.entered)

    @property
    def certain(self) -> BoolArray:
        """Whether a number that never varied is certain (K, L): the metric is exact, or there is no noise."""
        exact = np.tile(self.exact, (self.n_arms, 1))
        return exact if self.sigma is None else exact | (self.sigma == 0.0)

    def known_sigma(self, algorithm: str) -> FloatArray:
        """Return sigma for each metric (L,), the largest of all arms, for an algorithm that knows only one."""
        if self.sigma is None or np.isnan(self.sigma).any():
            raise InvalidInput(f"sigma of algorithm {algorithm!r} must be given: it cannot work with unknown noise")
        largest: FloatArray = self.sigma.max(axis=0)
        return largest

    def enough_budget(self, algorithm: str, least: int) -> int:
        """Return the budget, for an algorithm that cannot work with fewer samples than `least`."""
        if self.budget is None or self.budget < least:
            raise InvalidInput(
                f"budget of algorithm {algorithm!r} must be at least {least} with {self.n_arms} arms, got {self.budget}"
            )
        return self.budget


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of the settings of an algorithm, each a frozen dataclass that declares its ranges, see `ranges.py`.

    sigma: noise scale to assume, in the metrics' own units, one number or one per metric; None: that of the problem.
    """

    sigma: float | tuple[float, ...] | None = setting(None, one_per="metric")

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def knows_noise(self) -> bool:
        """Whether the algorithm is told sigma; one that can do without has a setting for it."""
        return True

    @property
    def sound(self) -> bool:
        """Whether the algorithm's guarantee holds with these settings; False for published constants that void it."""
        return True


@dataclass(frozen=True)
class Accepts:
    """What an algorithm can take besides one answer to each question, in order."""

    pending: bool = False  # be asked again before earlier outcomes are in
    unasked: bool = False  # data on arms it did not ask for
    missing: bool = False  # outcomes that lack some metrics


def _fixed_size(state: Any, rounds: int) -> Any:
    return state


@dataclass(frozen=True)
class WhileHeld:
    """What an algorithm can say by outcomes that are held back, because trials asked for before them are still open.

    Without it they count once these are told or void. The samples of the state are never changed.
    """

    judge: Callable[[Any, Any, Held, int], None]  # the arms that an arm concerns, -1: all; decides what is proven
    verdicts: Callable[[Any, Any, Held], Verdicts]  # with intervals by what may be said of each arm
    pair: Callable[[Any, Any, Held, int, int], Any]  # the state as statements on two arms see it


@dataclass(frozen=True)
class Kernels:
    """The functions that work on one class of state, and what they can take.

    choose(state, constants, pending, rng) -> (arm, ticket)
    update(state, constants, arm, ticket, outcome, observed)
    verdicts(state, constants) -> Verdicts
    done(state, constants) -> bool
    reserve(state, rounds) -> state               room for that many rounds, for states that grow
    """

    state: Any  # the NamedTuple class
    choose: Callable[..., tuple[int, FloatArray]]
    update: Callable[..., None]
    verdicts: Callable[[Any, Any], Verdicts]
    done: Callable[[Any, Any], bool]
    ticket_size: int = 0
    accepts: Accepts = Accepts()
    assumes: str = ""  # what their guarantee rests on besides the noise, for people to read; {names} of settings
    takes_linear: bool = False  # whether they take means as linear in contexts that were stated to explain them
    each_sigma: bool = False  # whether they use the noise scale of each arm; others take the largest for all arms
    pools_noise: bool = False  # whether noise of unknown scale is taken to be the same for all arms
    blocks: bool = False  # whether they judge arms by their differences on the same blocks
    # whether the intervals all hold at all times with probability 1 - delta, whatever is measured, and so do verdicts
    # that an arm is dominated: practical verdicts rest on both
    intervals: bool = False
    basis: Callable[[Any], Basis] | None = None  # what each verdict rests on, where they differ in that
    # judge_again(state, constants): forget all verdicts and judge every arm from the statistics as they are. Who has it
    # keeps to the shares of the setup, and its state has an array `presence` (K,), see kernels/decisions.py.
    judge_again: Callable[[Any, Any], None] | None = None
    # whether arms may be picked after looking at outcomes: an array `era` (1,) of the state says after how many such
    # additions the next sample was asked for
    after_looking: bool = False
    # compared(state, constants, k, j): the lead of j over k, (L,), with the lower and the upper end of its interval, at
    # the threshold of the verdict on k. nearest(state, constants, k): the rivals that this verdict rests or hangs on,
    # and their shares. Plain Python, for a few pairs; `Session.compared` and `Session.nearest` say more.
    compared: Callable[[Any, Any, int, int], tuple[FloatArray, FloatArray, FloatArray]] | None = None
    nearest: Callable[[Any, Any, int], list[tuple[int, float]]] | None = None
    # apart(state, constants, eps): how much better j is than k at least, (K, K, L) at [k, j], all at once with
    # probability 1 - delta; for algorithms that know more of pairs than of arms. It need not tell more than practical
    # verdicts with this eps ask for.
    apart: Callable[[Any, Any, FloatArray], FloatArray] | None = None
    # silence(constants, silent): constants by which of some arms some metrics (K, L) are sums with a part that is no
    # evidence
    silence: Callable[[Any, BoolArray], Any] | None = None
    while_held: WhileHeld | None = None
    reserve: Callable[[Any, int], Any] = _fixed_size
    # what arrays of whole numbers hold whose names do not tell, see states.py: a role, or one for each entry
    ranges: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        implement(self.state, choose=self.choose, update=self.update, done=self.done)
        declare(self.state, self.ranges)


#: What an algorithm sets out to do, and what people are told of its answer where delta means nothing.
KINDS = {
    "fixed confidence": "{name} is a heuristic",
    "cover": "{name} is a heuristic",
    "fixed budget": "{name} spends its budget and says what looks best then",
    "regret only": "{name} plays for low regret; the front shown is that of its estimates",
}


@dataclass(frozen=True)
class Algorithm:
    """One algorithm: its name, its promise and its code.

    `init(settings, setup)` is plain Python and returns the first state and the constants, both NamedTuples of arrays
    and numbers. Most algorithms have one class of state; one that works differently with contexts may have more.
    """

    name: str
    summary: str
    paper: str
    guarantee: str  # what holds with probability 1 - delta, and on which assumption; or why nothing does
    guarantees: bool  # whether delta means delta
    settings: type[Settings]
    init: Callable[[Any, Setup], tuple[Any, Any]]
    kernels: tuple[Kernels, ...]
    kind: str = "fixed confidence"  # one of KINDS
    setting: str = "arms without contexts"  # what kind of problem it is made for, for people to read
    one_metric: bool = False  # whether it finds the best arm by a single metric, not a front
    uses_eps: bool = True  # False: it looks for the exact front whatever eps is, and never stops where arms tie
    links: tuple[str, ...] = ("identity",)  # how means may depend on contexts

    def __post_init__(self) -> None:
        checks.one_of(f"kind of algorithm {self.name!r}", self.kind, KINDS)

    @property
    def needs_budget(self) -> bool:
        """Whether it must be told how many samples there are."""
        return self.kind in ("fixed budget", "regret only")

    def under(self, settings: Settings) -> Algorithm:
        """Return the record as it is with these settings: without a guarantee, if they void it."""
        return self if settings.sound else self.without_guarantee("none: these settings void it")

    def without_guarantee(self, why: str) -> Algorithm:
        """Return the record without its guarantee, if it has one."""
        return replace(self, guarantees=False, guarantee=why) if self.guarantees else self

    def start(self, settings: Settings, setup: Setup) -> tuple[Any, Any]:
        """Return the first state and the constants, or say why the algorithm does not fit the problem."""
        if self.one_metric and setup.n_metrics > 1:
            raise NotSupported(f"algorithm {self.name!r} takes problems with one metric only, got {setup.n_metrics}")
        if self.needs_budget and setup.budget is None:
            raise NotSupported(f"algorithm {self.name!r} must be told a budget: how many samples there are in all")
        if setup.link != "identity" and setup.link not in self.links:
            # the contexts do not explain the means as it would take them to
            setup = replace(setup, explained=False, theta_max=None)
        expect(setup.n_arms)
        practical = setup.goal == "practical"  # that is judged by intervals
        state, constants = self.init(settings, replace(setup, goal="front") if practical else setup)
        kernels = self.kernels_of(state)
        if setup.n_blocks is not None and not kernels.blocks:
            raise NotSupported(f"algorithm {self.name!r} cannot compare options on the same blocks: take 'scout'")
        if not practical:
            return state, constants
        if not (kernels.intervals and kernels.accepts.unasked and self.under(settings).guarantees):
            raise NotSupported(
                f"goal 'practical' is not for algorithm {self.name!r}: as it is set, it has no intervals that hold at "
                "all times; say goal='front', or take algorithm 'scout'"
            )
        return state, constants

    def kernels_of(self, state: Any) -> Kernels:
        """Return the functions for a state."""
        return next(kernels for kernels in self.kernels if kernels.state is type(state))
