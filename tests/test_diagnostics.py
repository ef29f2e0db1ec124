"""What is seen of noise that a guarantee does not allow for. Seeds are fixed, so nothing here fails by chance; the
probability that another seed would make a test fail is stated where it is not negligible."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from paretoscout import diagnostics
from paretoscout.diagnostics import FALSE_ALARM, Concern, contradicted, examine
from paretoscout.kernels.arrays import FloatArray

Draw = Callable[[np.random.Generator], FloatArray]


def look(*series: ArrayLike, ordered: bool = True, normal: bool = True, eps: float = 0.0) -> list[Concern]:
    """Examine one metric, "time", of options a, b, ..."""
    names = [chr(ord("a") + k) for k in range(len(series))]
    values = [[np.array(given, float)] for given in series]
    return examine(names, ["time"], values, normal=[normal], ordered=ordered, eps=[eps])


def with_memory(rng: np.random.Generator, n: int, share: float = 0.9) -> FloatArray:
    """Each value is a share of the last one and something new."""
    values, fresh = np.empty(n), rng.normal(size=n)
    values[0] = fresh[0] / math.sqrt(1.0 - share**2)
    for i in range(1, n):
        values[i] = share * values[i - 1] + fresh[i]
    return values


def with_spikes(rng: np.random.Generator, n: int) -> FloatArray:
    """Mostly small noise; 1% of the values are 100 times as large, and there is one at least."""
    values = rng.normal(size=n)
    values[rng.random(n) < 0.01] += 100.0
    values[rng.integers(n)] += 100.0
    return values


@pytest.mark.parametrize(
    ("kinds", "faulty", "ordered", "least"),
    [
        ({"spells"}, lambda rng: with_memory(rng, 50), True, 0.9),
        ({"spells"}, lambda rng: with_memory(rng, 100, 0.6), True, 0.9),
        ({"spells"}, lambda rng: np.exp(3.0 * with_memory(rng, 50)), True, 0.9),  # as clear with heavy tails
        ({"drift", "spells"}, lambda rng: rng.normal(size=100) + np.linspace(0.0, 2.0, 100), True, 0.9),
        ({"spikes"}, lambda rng: with_spikes(rng, 50), True, 0.8),
        ({"spikes"}, lambda rng: with_spikes(rng, 200), False, 0.9),
        ({"skew", "spikes"}, lambda rng: rng.lognormal(size=50), False, 0.7),
        ({"skew"}, lambda rng: -rng.exponential(size=80), True, 0.5),
        ({"sorted"}, lambda rng: np.sort(rng.normal(size=20)), False, 0.99),
        ({"sorted"}, lambda rng: -np.sort(rng.normal(size=20)), False, 0.99),
        ({"sorted"}, lambda rng: np.sort(rng.normal(size=(4, 25))).ravel(), False, 0.99),  # within four parts
    ],
    ids=[
        "memory 50", "weaker memory", "memory, heavy tails", "drift", "spikes 50", "spikes 200", "lognormal",
        "exponential", "sorted", "falling", "sorted parts",
    ],
)  # fmt: skip
def test_faults_are_found_and_the_option_is_named(kinds: set[str], faulty: Draw, ordered: bool, least: float) -> None:
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(60):
        concerns = look(rng.normal(size=60), faulty(rng), ordered=ordered)
        found += any(concern.kind in kinds and concern.options == ("b",) for concern in concerns)
    assert found >= least * 60


@pytest.mark.parametrize(
    ("kind", "faulty"),
    [
        ("spells", lambda rng: with_memory(rng, 12, 0.7)),
        ("drift", lambda rng: rng.normal(size=10) + np.linspace(0.0, 2.5, 10)),
        ("skew", lambda rng: rng.exponential(size=12)),
    ],
)
def test_what_no_option_shows_alone_all_show_together(kind: str, faulty: Draw) -> None:
    rng = np.random.default_rng(2)
    together = 0
    for _ in range(20):
        concerns = look(*(faulty(rng) for _ in range(25)))
        assert {concern.kind for concern in concerns} & {kind, "spikes"}
        together += any(concern.kind == kind and concern.options == () for concern in concerns)
    assert together > 0


@pytest.mark.parametrize(("K", "n"), [(2, 12), (10, 20), (3, 100)])
def test_clean_noise_raises_no_alarm(K: int, n: int) -> None:
    """1 look in 1,000 may; more than 3 of 300 with probability 0.0003."""
    rng = np.random.default_rng(3)
    alarms = sum(bool(look(*rng.normal(10.0, 2.0, size=(K, n)))) for _ in range(300))
    assert alarms <= 3


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.standard_cauchy(60),
        lambda rng: rng.lognormal(sigma=3.0, size=60),
        lambda rng: (rng.random(200) < 0.02).astype(float),  # two ones in a row are no spell
        lambda rng: np.round(rng.normal(size=60)),
    ],
    ids=["Cauchy", "lognormal", "rare ones", "rounded"],
)
@pytest.mark.parametrize("ordered", [True, False])
def test_order_is_judged_by_ranks(draw: Draw, ordered: bool) -> None:
    """Noise of any kind has no memory if it has none; more than 2 of 150 alarms: probability 0.0005."""
    rng = np.random.default_rng(4)
    assert sum(bool(look(draw(rng), draw(rng), ordered=ordered, normal=False)) for _ in range(150)) <= 2


def test_spells_of_successes_are_found_whatever_the_noise_may_be() -> None:
    rng = np.random.default_rng(5)
    spells = (with_memory(rng, 300) > 0.0).astype(float)
    [concern] = look(spells, rng.random(300) < 0.5, normal=False)
    assert (concern.kind, concern.options) == ("spells", ("a",))


def test_shape_matters_only_where_noise_is_to_be_normal() -> None:
    rng = np.random.default_rng(6)
    assert look(with_spikes(rng, 200), rng.lognormal(size=200), normal=False) == []


@pytest.mark.parametrize("values", [[10] * 49 + [11], [5, 5, 5, 5, 5, 6, 5, 5], [3, 4] * 5 + [3]], ids=str)
def test_rounding_is_no_spike(values: list[float]) -> None:
    """With many different values elsewhere, so that few values are not the matter."""
    steps = np.arange(20.0).tolist()
    assert [c for c in look(values, np.random.default_rng(0).permutation(steps).tolist()) if c.kind == "spikes"] == []


def test_few_values_ask_for_bounds() -> None:
    """The case of success rates .05 against 0: one option never varied, and only one thing is said."""
    successes = np.zeros(100)
    successes[[3, 40, 41, 77, 90]] = 1.0
    [concern] = look(successes, np.zeros(100))
    assert concern.kind == "few values"
    assert concern.figures == {"distinct": 2.0, "values": 200.0, "lowest": 0.0, "highest": 1.0}
    assert concern.text == (
        "time: only 2 different ones among 200 values, so the noise is not normal. Give bounds (--bounds time=0,1)."
    )
    stars = np.random.default_rng(0).integers(1, 6, size=30)
    assert "--bounds time=LOW,HIGH" in look(stars)[0].text  # nobody knows whether 1 and 5 are the ends
    assert look(stars[:19]) == []  # too early to tell
    assert look(np.random.default_rng(0).integers(1, 7, size=60)) == []
    assert look(successes, np.zeros(100), normal=False) == []  # bounds were given


def test_a_number_that_never_varied() -> None:
    rng = np.random.default_rng(7)
    [concern] = look([3.25, 3.25], rng.normal(size=5), [0.1 + 0.2, 0.3], [7.0])
    assert (concern.kind, concern.options) == ("never varied", ("a", "c"))  # but for rounding; one value is not enough
    assert concern.text == (
        "time of a: always 3.25, in 2 values. That is not taken as certain; if it is, say that time is exact. "
        "Likewise c."
    )
    assert look([3.0] * 30, [4.0] * 30)[0].kind == "never varied"  # rather than few values: there is no noise at all
    sizes = [[np.full(30, 3.0)], [np.full(30, 4.0)]]
    assert examine(["a", "b"], ["size"], sizes, normal=[True], ordered=True, exact=[True]) == []


def test_what_is_within_eps_does_not_matter() -> None:
    values = with_spikes(np.random.default_rng(8), 100)
    assert [concern.kind for concern in look(values, eps=1.0)] == ["spikes"]
    assert look(values, eps=1000.0) == []


def test_one_cause_is_told_once() -> None:
    """Spikes and spells make skew as well."""
    rng = np.random.default_rng(9)
    assert [c.kind for c in look(with_spikes(rng, 200), rng.normal(size=200))] == ["spikes"]
    assert [c.kind for c in look(np.exp(with_memory(rng, 60, 0.95)))][:1] == ["spells"]
    assert "skew" not in [c.kind for c in look(np.exp(with_memory(rng, 60, 0.95)))]


def test_a_concern_for_each_metric_names_the_clearest_option_first() -> None:
    rng = np.random.default_rng(10)
    names = [f"o{k}" for k in range(6)]
    values = [[with_memory(rng, 40 if k < 5 else 400), rng.normal(size=40)] for k in range(6)]
    [concern] = examine(names, ["time", "size"], values, normal=[True, True], ordered=True)
    assert (concern.kind, concern.metric, concern.options[0]) == ("spells", "time", "o5")
    assert set(concern.options) == set(names)
    assert concern.figures["values"] == 400.0
    assert concern.text.startswith("time of o5: values that follow each other are alike (rank correlation 0.")
    assert concern.text.endswith("and 3 more.")
    assert json.loads(json.dumps(concern.as_dict()))["options"] == list(concern.options)


def test_sorted_rows_are_told_in_words() -> None:
    values = np.sort(np.random.default_rng(11).normal(size=50))
    [concern] = look(values, ordered=False)
    assert concern.text == (
        "time of a: rows look sorted by value (100% of the steps between 50 values go up). They are taken in a "
        "random order. If they were measured in this order, they depend on each other and tell less than the "
        "guarantee counts on: name the column that says when."
    )
    assert "(100% of the steps between 50 values go down)" in look(values[::-1], ordered=False)[0].text
    successes = np.repeat([0.0, 1.0], 50)
    assert "rows that stand together are alike" in look(successes, ordered=False, normal=False)[0].text


def test_spikes_are_told_in_words() -> None:
    values = np.random.default_rng(12).normal(10.0, 1.0, size=200)
    values[[20, 70, 150]] = [1000.0, 900.0, 1100.0]
    assert look(values)[0].text == (
        "time of a: 3 of 200 values lie far from the rest and make up 100% of the spread. A mean that rests on rare "
        "values needs bounds (--bounds time=LOW,HIGH), or very many more values; or measure the median of several runs."
    )
    values[[20, 150]] = 10.0
    assert "1 of 200 values lies far from the rest and makes up" in look(values)[0].text


def test_only_the_last_values_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostics, "RECENT", 100)
    values = np.random.default_rng(13).normal(size=200)
    values[50] = 100.0
    assert look(values) == []
    values[150] = 100.0
    assert [concern.kind for concern in look(values)] == ["spikes"]


def test_nothing_to_see() -> None:
    assert examine([], [], [], normal=[], ordered=True) == []
    assert look([], [1.0]) == []
    assert look([1.0, 2.0, 9.0], []) == []
    assert look([-1e308, 1e308] * 10 + [1e307] * 3, [0.0] * 3) != []  # and no warning of an overflow
    with pytest.raises(ValueError, match="argument 2"):
        contradicted(["front"], [], [[0.0]], [0.0], [1.0])


@pytest.mark.parametrize("n", [8, 9, 30, 200])
def test_the_tests_are_the_printed_ones(n: int) -> None:
    """Against scipy's skewness test and Spearman's correlation, and Grubbs and von Neumann as they are written down."""
    values = np.random.default_rng(n).normal(5.0, 3.0, size=(3, n))
    rows = diagnostics._Rows.of(values[:, None], 3, 1)
    alike, trend = diagnostics._tests_of_order(rows, True)
    spikes, skew = diagnostics._tests_of_shape(rows)
    for k, x in enumerate(values):
        assert skew.p[k] == pytest.approx(stats.skewtest(x).pvalue)
        assert trend.size[k] == pytest.approx(stats.spearmanr(x, np.arange(n)).statistic)
        ranks = stats.rankdata(x)
        ratio = (np.diff(ranks) ** 2).sum() / ((ranks - ranks.mean()) ** 2).sum()
        assert alike.size[k] == pytest.approx(1.0 - ratio / 2.0)
        farthest = np.abs(x - x.mean()).argmax()
        rest = np.delete(x, farthest)
        t = (x[farthest] - rest.mean()) / (rest.std(ddof=1) * math.sqrt(1.0 + 1.0 / (n - 1)))
        assert spikes.p[k] == pytest.approx(min(1.0, 2 * n * stats.t.sf(abs(t), n - 2)))


def test_moments_of_neighbours_are_those_of_all_orders() -> None:
    """The variance by which options are weighed, over all 8! orders of 8 ranks; and the beta tail is never too small."""
    from itertools import permutations

    orders = np.array(list(permutations(range(8))), float)
    test = diagnostics._tests_of_order(diagnostics._Rows.of(orders[:, None], len(orders), 1), True)[0]
    assert test.size.mean() == pytest.approx(0.0, abs=1e-12)
    assert test.size.var() == pytest.approx(1.0 / np.asarray(test.weight)[0])
    for level in (1e-2, 1e-3, 1e-4):
        assert (test.p <= level).mean() <= level


@pytest.mark.long
@pytest.mark.parametrize(("K", "n", "repeated"), [(1, 8, 40), (1, 20, 40), (1, 60, 20), (3, 8, 40), (3, 30, 20)])
def test_tails_hold_far_out(K: int, n: int, repeated: int) -> None:
    """At 1e-4, at most twice what is claimed, of series alone and of three together. 40 to 80 are expected: a test that
    holds exactly exceeds twice as many with probability below 1e-6."""
    rng = np.random.default_rng([K, n])
    alone, together, looks = np.zeros(4), np.zeros(4), 0
    for _ in range(repeated):
        rows = diagnostics._Rows.of(rng.normal(size=(20_000 * K, 1, n)), 20_000 * K, 1)
        rows = rows._replace(metric=np.arange(20_000 * K) // K)
        looks += 20_000
        tests = diagnostics._tests_of_order(rows, True) + diagnostics._tests_of_shape(rows)
        for which, test in enumerate(tests):
            alone[which] += (test.p <= 1e-4).sum() / K
            if test.weight is not None:
                weight = test.weight.reshape(-1, K)
                z = (weight * test.size.reshape(-1, K)).sum(axis=1) / np.sqrt(weight.sum(axis=1))
                p = stats.norm.sf(z) if test.one_sided else 2 * stats.norm.sf(np.abs(z))
                together[which] += (p <= 1e-4).sum()
    assert (alone <= 2e-4 * looks).all(), alone / looks
    if K > 1:
        assert (together <= 2e-4 * looks).all(), together / looks


@pytest.mark.long
def test_one_look_in_a_thousand_is_a_false_alarm() -> None:
    """Of 20,000 looks more than 34 alarm with probability below 0.002, if FALSE_ALARM holds."""
    rng = np.random.default_rng(14)
    alarms = sum(
        bool(look(*rng.normal(size=(K, n)))) for K, n in [(2, 12), (3, 40), (10, 20), (2, 150)] for _ in range(5_000)
    )
    assert alarms <= 34
    assert FALSE_ALARM == 0.001


class TestContradicted:
    def test_dominated_by_an_option_that_is_not_better(self) -> None:
        estimates = [[1.0, 10.0], [2.0, 9.0], [2.0, 10.0], [0.0, 20.0]]  # larger, smaller is better
        verdicts = ["dominated"] * 4
        assert contradicted(verdicts, [1, 0, 1, 1], estimates, [0.0, 0.0], [1.0, -1.0]) == [1, 2]
        assert contradicted(verdicts, [None, -1, None, None], estimates, [0.0, 0.0], [1.0, -1.0]) == []

    def test_front_beside_a_better_one(self) -> None:
        estimates = [[1.0, 1.0], [1.5, 1.5], [1.5, 0.0], [9.0, math.nan]]
        verdicts = ["front", "undecided", "front", "undecided"]
        assert contradicted(verdicts, [None] * 4, estimates, [0.0, 0.0], [1, 1]) == [0]
        assert contradicted(verdicts, [None] * 4, estimates, [0.5, 0.4], [1, 1]) == []  # not by more than eps
        assert contradicted(verdicts, [None] * 4, estimates, [0.0, 0.0], [-1, -1]) == []

    def test_pointless_up_to_eps(self) -> None:
        estimates = [[1.0, 1.0], [2.0, 0.95], [2.0, 0.8], [1.0, 1.0]]
        verdicts, eps = ["dominated", "front", "front", "front"], [0.1, 0.1]
        assert contradicted(verdicts, [1, None, None, None], estimates, eps, [1, 1], up_to_eps=True) == []
        assert contradicted(verdicts, [1, None, None, None], estimates, eps, [1, 1]) == [0]
        assert contradicted(verdicts, [2, None, None, None], estimates, eps, [1, 1], up_to_eps=True) == [0]
        assert contradicted(verdicts, [3, None, None, None], estimates, eps, [1, 1], up_to_eps=True) == [0]
