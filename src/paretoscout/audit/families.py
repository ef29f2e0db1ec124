"""The instances of the audit: families of problems on which a width that is too narrow shows.

Each family is one idea and one function. All are drawn from fixed seeds. What an algorithm is told is true: where noise
is not normal, sigma is a valid sub-Gaussian scale of the rows that are drawn from, not just their deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import MissingData, UnknownName
from ..kernels.arrays import FloatArray
from ..problem import Problem
from ..problems import gaussian, linear, load, table
from ..problems.built_in import partly_linear
from ..statement import Eps, Metric


@dataclass(frozen=True)
class Case:
    """One instance."""

    title: str
    problem: Problem | str  # or why it cannot be had here
    eps: Eps | None = None
    tells: dict[str, Any] = field(default_factory=dict)  # settings: what the algorithm is told besides the problem
    max_samples: int = 1_000_000  # many times what it takes; a run that gets there is a failure
    costly: bool = False  # runs are long: fewer of them, and no more once it is clear
    short: bool = False  # in the short audit too: cheap, and a place where failures are likely
    family: str = ""
    goal: str = "front"
    beyond: str = ""  # what is promised does not hold here, and says so: why; failures are shown, and are no alarm


def cases(families: Sequence[str] = (), short: bool = False) -> list[Case]:
    """Return the cases of some families (none named: of all), all of them or those of the short audit.

    >>> [case.title for case in cases(["one-arm"], short=True)]
    ['K=1 L=1']
    """
    for name in families:
        if name not in FAMILIES:
            raise UnknownName("family", name, FAMILIES)
    return [
        replace(case, family=name)
        for name, make in FAMILIES.items()
        if not families or name in families
        for case in make()
        if case.short or not short
    ]


def unit_contexts() -> Iterator[Case]:
    """Arms on their own."""
    yield Case("K=4 L=2", load("four-arms"), eps=0.2)
    yield Case("K=4 L=2, contexts are unit vectors", linear(np.eye(4), load("four-arms").means, sigma=1.0), eps=0.2)
    yield Case("K=16 L=2", load("random-16"), eps=0.2)
    yield Case("K=30 L=1", gaussian(_normal(30, 1, seed=1), sigma=0.5), eps=0.3)
    yield Case("K=20 L=4", gaussian(_normal(20, 4, seed=2), sigma=0.5), eps=0.4)
    yield Case("K=200 L=3", gaussian(_normal(200, 3, seed=3), sigma=0.2), eps=0.4, costly=True)
    yield Case("K=2000 L=2", gaussian(_normal(2000, 2, seed=4), sigma=0.1), eps=0.5, costly=True)


def random_contexts() -> Iterator[Case]:
    """Random contexts on the sphere, means linear in them; also far more arms than dimensions."""
    yield Case("K=4 d=1 L=1", linear(_normal(4, 1, seed=5), [[1.0]], sigma=1.0), eps=0.3)
    yield Case("K=12 d=1 L=2", linear(_normal(12, 1, seed=6), [[1.0, -0.5]], sigma=1.0), eps=0.3)
    yield Case("K=5 d=3 L=2 (s5)", load("s5"), eps=0.05)
    yield Case("K=16 d=4 L=2, eps 0", load("linear-16"), eps=0.0)
    yield Case("K=50 d=5 L=2", _sphere(50, 5, 2, sigma=0.5, seed=0), eps=0.2)
    yield Case("K=40 d=20 L=3", _sphere(40, 20, 3, sigma=0.2, seed=8), eps=0.3)
    yield Case("K=300 d=8 L=4", _sphere(300, 8, 4, sigma=0.1, seed=9), eps=0.4, costly=True)
    yield Case("K=1000 d=8 L=2", _sphere(1000, 8, 2, sigma=0.05, seed=10), eps=0.3, costly=True)
    yield Case("K=2000 d=3 L=2", _sphere(2000, 3, 2, sigma=0.02, seed=11), eps=0.2, costly=True)
    rng = np.random.default_rng(12)
    contexts = rng.normal(size=(20, 4))
    # features that say nothing of the means: who uses them unasked is wrong
    yield Case("K=20 L=2, contexts that explain nothing", gaussian(rng.normal(size=(20, 2)), 0.5, contexts), eps=0.3)


def near_ties() -> Iterator[Case]:
    """Gaps just above eps, arms just on the front."""
    yield Case("K=2 L=2, gap 1.02 eps", gaussian([[0.0, 0.0], [0.51, 0.51]], sigma=1.0), eps=0.5, short=True)
    yield Case("K=2 L=2, gap 1.02 eps, eps small", gaussian([[0.0, 0.0], [0.102, 0.102]], sigma=1.0), eps=0.1)
    yield Case("K=2 L=2, barely on the front", gaussian([[0.0, 0.0], [0.8, -0.001]], sigma=1.0), eps=0.5, short=True)
    ladder = np.column_stack([np.arange(8), -np.arange(8)]) * 0.001
    yield Case("K=8 L=2, all barely on the front", gaussian(ladder, sigma=1.0), eps=0.5)
    # one arm below eleven equal ones, each of which beats it by a hair more than eps
    below = np.zeros((12, 1))
    below[0] = -0.51
    yield Case("K=12 L=1, one just beyond eps of all", gaussian(below, sigma=1.0), eps=0.5)
    yield Case("K=20 L=2, all near each other", gaussian(_normal(20, 2, seed=13) * 0.2, sigma=1.0), eps=0.6)
    corner = np.vstack([np.zeros(4), np.full(4, 0.51), 0.9 * np.eye(4)])
    yield Case("K=6 L=4, gap 1.02 eps", gaussian(corner, sigma=1.0), eps=0.5)
    line = linear([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], [[0.51, 0.51], [0.0, 0.0]], sigma=1.0)
    yield Case("K=3 d=2 L=2, gap 1.02 eps", line, eps=0.5, short=True)
    # for those that look for one best arm: one is right, and the others are wrong by a hair
    one = np.zeros((6, 1))
    one[4] = 0.51
    yield Case("K=6 L=1, one best by 1.02 eps", gaussian(one, sigma=1.0), eps=0.5, short=True)
    line = linear([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]], [[1.02], [0.0]], sigma=1.0)
    yield Case("K=3 d=2 L=1, one best by 1.02 eps", line, eps=0.5, short=True)


def exact_ties() -> Iterator[Case]:
    """Equal arms, and arms equal in one metric, with eps above 0."""
    yield Case("K=12 L=1, identical", gaussian(np.zeros((12, 1)), sigma=1.0), eps=0.8, short=True)
    yield Case("K=6 L=3, identical", gaussian(np.zeros((6, 3)), sigma=1.0), eps=0.8)
    tied = [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, -1.0]]
    yield Case("K=5 L=2, tied in one metric", gaussian(tied, sigma=1.0), eps=0.5)
    yield Case("K=4 L=2, gap exactly eps", gaussian([[0.0, 0.0], [0.5, 0.5], [0.5, 0.5], [1.0, 0.0]], 1.0), eps=0.5)
    contexts = np.vstack([np.eye(5), np.full(5, 0.2)])
    yield Case("K=6 d=5 L=1, equal means", linear(contexts, np.zeros((5, 1)), sigma=1.0), eps=0.8, short=True)
    twice = np.vstack([np.eye(3), np.eye(3)])
    yield Case("K=6 d=3 L=2, equal contexts", linear(twice, [[1, 0], [0, 1], [0.2, 0.2]], sigma=1.0), eps=0.5)


def hidden() -> Iterator[Case]:
    """A dominated arm hidden behind a strong front: only one arm beats it, and that one is settled early."""
    for n, L in ((5, 2), (20, 2), (12, 3)):
        rng = np.random.default_rng(n)
        front = np.abs(rng.normal(size=(n, L))) + 0.2
        front *= 4.0 / np.linalg.norm(front, axis=1, keepdims=True)
        yield Case(f"K={n + 1} L={L}", gaussian(np.vstack([front, front[0] - 0.42]), sigma=0.5), eps=0.4)


def crowds() -> Iterator[Case]:
    """Chains in which each arm is just beyond eps of the next, and fronts that all arms are on."""
    steps = np.arange(100.0)
    chain, front = np.column_stack([steps, steps]), np.column_stack([steps, -steps])
    yield Case("K=100 L=2, a chain of gaps 1.02 eps", gaussian(0.51 * chain, sigma=1.0), eps=0.5)
    yield Case("K=100 L=2, all on the front", gaussian(0.1 * front, sigma=1.0), eps=0.5)
    both = np.vstack([0.6 * front, 0.6 * front - 0.51])
    yield Case("K=200 L=2, all on the front or 1.02 eps behind", gaussian(both, sigma=1.0), eps=0.5, costly=True)
    steps = np.arange(400.0)
    front = np.column_stack([steps, -steps])
    yield Case("K=400 L=2, all on the front", gaussian(0.1 * front, sigma=0.5), eps=0.5, costly=True)


def one_arm() -> Iterator[Case]:
    """Nothing to compare with."""
    yield Case("K=1 L=1", gaussian([[0.0]], sigma=1.0), eps=0.1, short=True)
    yield Case("K=1 L=4", gaussian(np.zeros((1, 4)), sigma=1.0), eps=0.1)
    yield Case("K=1 d=1 L=2", linear([[2.0]], [[1.0, -1.0]], sigma=1.0), eps=0.1)


def correlated() -> Iterator[Case]:
    """Metrics that err together, or in opposite directions."""
    for rho in (0.95, -0.95):
        rng = np.random.default_rng(14)
        means = [[0.0, 0.0], [0.51, 0.51], [0.3, -0.3], [0.9, -0.001]]
        both = [rng.normal(size=(1000, 2)) @ np.linalg.cholesky([[1.0, rho], [rho, 1.0]]).T for _ in means]
        yield _rows(f"K=4 L=2, correlation {rho:g}", means, both, eps=0.5)


def scales() -> Iterator[Case]:
    """Metrics in units that differ a millionfold, some to be minimised."""
    units = np.array([1.0, 1e3, 1e-3])
    metrics = [
        Metric(name, direction, eps=0.5 * unit)
        for name, direction, unit in zip("abc", ("max", "min", "min"), units, strict=True)
    ]
    means = np.array([[0.0, 0.0, 0.0], [0.51, -0.51, -0.51], [0.8, 0.001, 0.0], [-1.0, -1.0, 0.5]])
    yield Case("K=4 L=3", gaussian(means * units, units, metrics=metrics))
    rng = np.random.default_rng(15)
    theta = rng.normal(size=(3, 3)) * units
    yield Case("K=10 d=3 L=3", linear(rng.normal(size=(10, 3)), theta, 0.5 * units, metrics=metrics))


def skewed() -> Iterator[Case]:
    """Bounded and skewed noise."""
    rng = np.random.default_rng(16)
    means = [[0.0, 0.0], [0.51, 0.51], [0.9, -0.001], [-0.5, 0.3]]
    exponential = [rng.exponential(size=(1000, 2)).clip(max=4.0) for _ in means]
    yield _rows("K=4 L=2, exponential, cut off", means, exponential, eps=0.5)
    yield _rows("K=4 L=2, the same upside down", means, [-noise for noise in exponential], eps=0.5)
    # rates of rare events: a sample is 0 or 1
    rates = np.array([[0.02], [0.08], [0.05], [0.02], [0.3]])
    yield _rows("K=5 L=1, rates of rare events", rates, _events(rates), eps=0.2)
    shared = [rng.exponential(size=(400, 2)).clip(max=4.0) @ [[1.0, 0.003], [0.0, 0.003]] for _ in range(4)]
    apart = [[0.0, 0.0], [0.52, 0.0021], [0.3, -0.001], [-1.0, 0.004]]
    yield _rows("K=4 L=2, exponential, shared, uneven units", apart, shared, eps=(0.5, 0.002))
    # a sample is one of two values, one of them far off
    jackpot = [np.where(np.arange(50) < 1, 7.0, 0.0)[:, None].repeat(2, axis=1) for _ in means]
    yield _rows("K=4 L=2, rare and large", means, jackpot, eps=0.5, short=True)


def unknown_noise() -> Iterator[Case]:
    """The scale of the noise is not told."""
    tells = {"noise": "unknown"}
    two = np.array([[0.0, 0.0], [0.51, 0.51]])
    yield Case("K=2 L=2, gap 1.02 eps", gaussian(2 * two, sigma=1.0), 1.0, tells, short=True)
    yield Case("K=2 L=2, gap 1.02 eps, eps small", gaussian(two, sigma=1.0), 0.5, tells)
    yield Case("K=2 L=2, sigma tiny", gaussian(two, sigma=0.01), 0.5, tells)
    yield Case("K=8 L=1, identical", gaussian(np.zeros((8, 1)), sigma=1.0), 0.8, tells)
    yield Case("K=8 L=2, sigma uneven", gaussian(_normal(8, 2, seed=17), sigma=[1.0, 0.05]), 0.4, tells)
    yield Case("K=16 L=2", load("random-16"), 0.4, tells)
    yield Case("K=16 d=4 L=2", _sphere(16, 4, 2, sigma=0.5, seed=18), 0.3, tells)
    # outcomes with bounds: their noise may be of any kind
    rates = np.array([[0.02, 0.98], [0.24, 0.76], [0.23, 0.99], [0.02, 0.02]])
    yield Case("K=4 L=2, rates of events, bounds told", _around(rates, _events(rates), (0.0, 1.0)), 0.2, tells, 100_000)
    rng = np.random.default_rng(20)
    means = [[0.1, 0.1], [0.31, 0.31], [0.6, 0.099]]
    rare = [rng.beta(0.1, 0.9, size=(1000, 2)) * 0.6 for _ in means]
    yield Case("K=3 L=2, skewed, bounds told", _around(means, rare, (-0.1, 1.2)), 0.2, tells, 100_000, short=True)


def practical() -> Iterator[Case]:
    """Practical verdicts, where an option must go or may not go by a hair, or two are the same."""
    must = [[0.0, 0.0], [1.02, -0.49]]
    may_not = [[0.0, 0.0], [3.0, -1.02]]
    ladder = np.column_stack([np.arange(8), -np.arange(8)]) * 0.3
    ring = [[0.0, 0.0, 0.0], [1.1, -0.55, -0.55], [0.55, 0.55, -1.1]]
    found: list[tuple[str, Problem, Eps, dict[str, Any]]] = [
        ("K=2 L=2, must go", gaussian(must, sigma=1.0), 1.0, {}),
        ("K=2 L=2, may not go", gaussian(may_not, sigma=1.0), 1.0, {}),
        ("K=2 L=2, may go", gaussian([[0.0, 0.0], [0.5, -0.75]], sigma=1.0), 1.0, {}),
        ("K=12 L=1, identical", gaussian(np.zeros((12, 1)), sigma=1.0), 1.0, {}),
        ("K=6 L=3, identical", gaussian(np.zeros((6, 3)), sigma=1.0), 1.0, {}),
        ("K=8 L=2, each near the next", gaussian(ladder, sigma=1.0), 1.0, {}),
        ("K=3 L=3, a ring", gaussian(ring, sigma=1.0), 1.0, {}),
        ("K=16 L=2", load("random-16"), 0.4, {}),
        ("K=2 L=2, must go, noise unknown", gaussian(must, sigma=1.0), 1.0, {"noise": "unknown"}),
        ("K=2 L=2, may not go, noise unknown", gaussian(may_not, sigma=1.0), 1.0, {"noise": "unknown"}),
        ("K=8 L=1, identical, noise unknown", gaussian(np.zeros((8, 1)), sigma=1.0), 1.0, {"noise": "unknown"}),
        ("K=3 d=2 L=2, must go", linear(np.eye(2), must, sigma=1.0), 1.0, {}),
        ("K=16 d=4 L=2", _sphere(16, 4, 2, sigma=0.5, seed=18), 0.3, {}),
    ]
    rates = np.array([[0.3, 0.6], [0.61, 0.46], [0.6, 0.2]])
    found.append(("K=3 L=2, rates, bounds told", _around(rates, _events(rates), (0.0, 1.0)), 0.3, {"noise": "unknown"}))
    for title, problem, eps, tells in found:
        short = title in ("K=2 L=2, must go", "K=2 L=2, may not go, noise unknown")
        yield Case(title, problem, eps, tells, 200_000, short=short, goal="practical")


def misfit() -> Iterator[Case]:
    """Contexts that explain the means but for a part, which a test of the model has to find."""
    tells = {"model": "linear"}  # which is not true
    for size, eps, goal in ((1.0, 0.2, "front"), (0.5, 0.2, "front"), (0.5, 0.4, "practical"), (0.25, 0.2, "front")):
        problem = partly_linear(60, 4, size, 0.5, "misfit")
        title = f"K=60 d=4 L=2, misfits of {size:g} of the signal, {goal}"
        beyond = "" if size >= 0.5 else "misfits may be too small to be found in time"
        yield Case(title, problem, eps, tells, goal=goal, short=size == 1.0, costly=True, beyond=beyond)
    problem = partly_linear(60, 4, 0.5, 0.5, "misfit")
    yield Case("K=60 d=4 L=2, sigma unknown", problem, 0.2, {**tells, "noise": "unknown"}, costly=True)
    contexts = np.random.default_rng(23).normal(size=(60, 4))
    means = contexts @ np.random.default_rng(24).normal(size=(4, 2))
    means[np.argsort(means.sum(axis=1))[40]] += 3.0  # one that the plane would eliminate
    yield Case("K=60 d=4 L=2, one arm far off", gaussian(means, 0.5, contexts), 0.5, tells, costly=True)


def partly_explained() -> Iterator[Case]:
    """Contexts that explain the means but for a part whose size is told."""
    for size, eps in ((0.03, 0.2), (0.1, 0.3)):
        rng = np.random.default_rng(19)
        contexts = rng.normal(size=(20, 4))
        contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
        means = contexts @ rng.normal(size=(4, 2)) + size * rng.choice([-1.0, 1.0], size=(20, 2))
        tells = {"model": "robust", "misfit": size}
        yield Case(f"K=20 d=4 L=2, misfit {size:g}", gaussian(means, 0.3, contexts), eps, tells)
    # the model says that the middle arm is as good as the others; it is worse by just more than eps
    contexts, means = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]), np.array([[0.3, 0.3], [0.3, 0.3], [-0.21, -0.21]])
    yield Case("K=3 d=2 L=2, misfit hides the gap", gaussian(means, 1.0, contexts), 0.5, {**tells, "misfit": 0.26})


def replayed() -> Iterator[Case]:
    """Recorded measurements, drawn from at random."""
    yield _told("compressors", load("compressors"), None)
    for title, name, eps in (
        ("SW-LLVM", "sw-llvm", 0.06),
        ("xz over many inputs", "xz-replayed", 0.3),
        ("poppler over many inputs", "poppler-replayed", 0.3),
    ):
        try:
            problem = load(name)
        except MissingData as missing:
            yield Case(title, str(missing))
        else:
            yield _told(title, problem, eps)


#: Laws of differences between two options: of mean 0 and deviation 1, most of them below 0 where they are skewed.
LAWS: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "few carry all": lambda rng, n: rng.permutation(np.arange(n) < 0.05 * n) + 1e-3 * rng.normal(size=n),
}
#: Differences of a law that is not normal, where no bounds are told.
NOT_NORMAL = "differences are not normal, and have no bounds"


def blocks() -> Iterator[Case]:
    """Options on the same blocks: one is worse by 1.02 eps, in each metric or in one, and few blocks may carry that."""
    for law in LAWS:
        beyond = "" if law == "normal" else NOT_NORMAL
        for title, n, target, goal, told in (
            ("list of 200", 200, "list", "front", ""),
            ("list of 200, practical", 200, "list", "practical", ""),
            ("population", 2000, "population", "front", ""),
            ("population, practical", 2000, "population", "practical", ""),
            ("list of 200, bounds told", 200, "list", "front", "bounds"),
            ("population, bounds told", 2000, "population", "front", "bounds"),
            ("list of 200, ratio told, practical", 200, "list", "practical", "ratio"),
        ):
            leads = (3.0, -1.02) if goal == "practical" else (1.02, 1.02)
            problem = _on_blocks(law, leads, n, target, told)
            yield Case(
                f"K=2 L=2, {law}, {title}",
                problem,
                tells={"noise": "unknown"},
                max_samples=200_000,
                short=(law, title) == ("normal", "list of 200"),
                goal=goal,
                beyond="" if told else beyond,
            )
    for n in (40, 400):
        for goal in ("front", "practical"):
            tied = _tied_on_blocks(n)
            title = f"K=3 L=1, exact ties of 0 and 1, list of {n}, {goal}"
            yield Case(title, tied, tells={"noise": "unknown"}, goal=goal, short=n == 40 and goal == "front")


def _on_blocks(law: str, leads: Sequence[float], n_blocks: int, target: str, told: str) -> Problem:
    """Two options that differ by these leads on average, exactly, with deviation 3; eps is 1.

    Where differences are skewed they are less on most blocks.
    """
    rng = np.random.default_rng(22)
    metrics, columns = [], {}
    for name, mean in zip("ab", leads, strict=True):
        drawn = np.asarray(LAWS[law](rng, n_blocks), float)
        lead = mean + np.sign(mean) * 3.0 * (drawn - drawn.mean()) / drawn.std()
        common = 0.0 if told == "bounds" else 10.0 * rng.normal(size=n_blocks)
        values = np.concatenate([common - 0.5 * lead, common + 0.5 * lead])
        most = float(np.abs(lead).max())
        bounds = (-0.5 * most, 0.5 * most) if told == "bounds" else None
        if told == "ratio":  # in percent
            metrics.append(Metric(name, eps=f"{100.0 * np.expm1(0.01)}%", ratio=float(np.exp(0.01 * most * 1.0001))))
            columns[name] = np.exp(0.01 * values)
        else:
            metrics.append(Metric(name, eps=1.0, bounds=bounds))
            columns[name] = values
    named = {"arm": ["worse"] * n_blocks + ["better"] * n_blocks, "block": [f"b{b}" for b in range(n_blocks)] * 2}
    return table({**named, **columns}, "arm", metrics, block="block", target=target)


def _tied_on_blocks(n_blocks: int) -> Problem:
    """Three options with as many ones, on other blocks."""
    rng = np.random.default_rng(23)
    ones = np.concatenate([rng.permutation(np.arange(n_blocks) < 0.3 * n_blocks) for _ in range(3)]) * 1.0
    named = {"arm": np.repeat(["x", "y", "z"], n_blocks).tolist(), "block": [f"b{b}" for b in range(n_blocks)] * 3}
    return table({**named, "won": ones}, "arm", [Metric("won", eps=0.0, bounds=(0.0, 1.0))], block="block")


def tradeoffs() -> Iterator[Case]:
    """Options judged by sums of metrics, whose noise adds up there as much as it can, or is not known."""
    narrow = np.array([[3.0, 1.0], [0.0, 1.0]])  # "1 a <= 3 b"
    below = np.array([[2.0, -1.0], [-1.0, 2.0]])
    # the first is behind the second by 1.02 eps in every sum, and ahead of the third by a hair in one
    leads = np.array([[0.0, 0.0], [1.02, 1.02], [1.8, -0.002]])

    def placed(weights: FloatArray, leads: FloatArray = leads) -> FloatArray:
        """Where options are that lead the first one so much in sums, in units of the eps of each; eps is 0.5."""
        return np.asarray(np.linalg.solve(weights, (leads * (0.5 * weights.sum(axis=1))).T).T)

    drawn = np.random.default_rng(24).normal(size=1000)
    tells = {"noise": "unknown"}
    found = [
        _rows("K=3 L=2, noise adds up", placed(narrow), [np.column_stack([drawn, drawn])] * 3, 0.5, short=True),
        Case("K=3 L=2, normal noise", gaussian(placed(narrow), sigma=1.0), 0.5),
        Case("K=3 L=2, noise unknown", gaussian(placed(narrow), sigma=1.0), 0.5, tells),
        Case("K=3 d=2 L=2", linear([[1, 0], [0, 1], [0.5, 0.5]], placed(narrow)[:2], sigma=1.0), 0.5),
    ]
    must_go = gaussian(placed(narrow, np.array([[0.0, 0.0], [1.02, -0.49]])), sigma=1.0)
    found.append(Case("K=2 L=2, practical, must go", must_go, 0.5, goal="practical"))
    rates = np.array([[0.3, 0.3], [0.56, 0.56], [0.62, 0.29]])
    bounded = _around(rates, _events(rates), (0.0, 1.0))
    found.append(Case("K=3 L=2, rates, bounds told", bounded, 0.25, tells, 200_000))
    for case in found:
        yield _judged_by(case, narrow)
    opposite = [np.column_stack([drawn, -drawn])] * 3
    yield _judged_by(_rows("K=3 L=2, weights below 0, noise adds up", placed(below), opposite, 0.5), below)
    # three metrics, each worth at most twice any other: six sums
    rng = np.random.default_rng(25)
    means = np.vstack([np.zeros(3), np.full(3, 0.51), rng.normal(size=(6, 3)) - 1.0])
    crowd = gaussian(means, sigma=1.0, metrics="abc")
    worths = [f"1 {one} <= 2 {other}" for one in "abc" for other in "abc" if one != other]
    yield _judged_by(Case("K=8 L=3, six sums", crowd, 0.5), worths)


def _judged_by(case: Case, tradeoffs: Any) -> Case:
    """The case with trade-offs."""
    assert isinstance(case.problem, Problem)
    return replace(case, problem=case.problem.replace(tradeoffs=tradeoffs))


#: By the name that `--family` takes.
FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    "unit-contexts": unit_contexts,
    "random-contexts": random_contexts,
    "near-ties": near_ties,
    "exact-ties": exact_ties,
    "hidden": hidden,
    "crowds": crowds,
    "one-arm": one_arm,
    "correlated": correlated,
    "scales": scales,
    "skewed": skewed,
    "unknown-noise": unknown_noise,
    "practical": practical,
    "misfit": misfit,
    "partly-explained": partly_explained,
    "replayed": replayed,
    "blocks": blocks,
    "tradeoffs": tradeoffs,
}


def subgaussian_scale(pool: FloatArray) -> float:
    """The least sigma, up to 2% more, with E exp(s (X - mean)) <= exp(s^2 sigma^2 / 2) for a random X of a finite pool.

    It is never too small: log E exp(s X) grows with s > 0, so between two points of a grid a ratio r apart the
    condition's 2 log E exp(s X) / s^2 is at most r^2 times its value at the upper one.

    >>> fair = subgaussian_scale(np.array([-1.0, 1.0]))
    >>> 1.0 <= fair < 1.02
    True
    """
    centred = np.asarray(pool, float) - np.mean(pool)
    reach = np.abs(centred).max()
    if reach == 0.0:
        return 0.0
    # below the grid the condition asks for the variance, above it for less than what the grid has seen
    s = np.geomspace(0.01, 300.0, 700)
    most = 0.0
    for sign in (1.0, -1.0):
        exponents = sign * s[:, None] * (centred / reach)
        top = exponents.max(axis=1)
        logs = top + np.log(np.exp(exponents - top[:, None]).mean(axis=1))
        most = max(most, float((2.0 * logs / s**2).max()))
    return float(reach * s[1] / s[0] * np.sqrt(most))


def _told(title: str, problem: Problem, eps: Eps | None, **more: Any) -> Case:
    """A case of drawn rows: sigma is told, and is true."""
    sigma = [
        max(subgaussian_scale(rows[:, metric]) for rows in problem.rows or ()) for metric in range(len(problem.metrics))
    ]
    return Case(title, problem, eps, {"sigma": tuple(sigma)}, **more)


def _rows(title: str, means: Any, noise: Sequence[FloatArray], eps: Any, **more: Any) -> Case:
    """A case of drawn rows, for which sigma is told."""
    return _told(title, _around(means, noise), eps, **more)


def _around(means: Any, noise: Sequence[FloatArray], bounds: tuple[float, float] | None = None) -> Problem:
    """A problem whose arms have these means exactly, and rows of such noise around them."""
    values = [mean + rows - rows.mean(axis=0) for mean, rows in zip(np.asarray(means), noise, strict=True)]
    metrics = [Metric(f"metric {metric + 1}", bounds=bounds) for metric in range(values[0].shape[1])]
    frame: dict[str, Any] = {"arm": np.repeat([f"arm {k + 1}" for k in range(len(values))], [len(v) for v in values])}
    frame |= dict(zip([metric.name for metric in metrics], np.concatenate(values).T, strict=True))
    return table(frame, arm="arm", metrics=metrics)


def _events(rates: FloatArray) -> list[FloatArray]:
    """Rows of zeros and ones, in shares of hundredths, metrics independent of each other."""
    rng = np.random.default_rng(21)
    return [np.column_stack([rng.permutation(np.arange(100) < round(100 * p)) for p in arm]) * 1.0 for arm in rates]


def _normal(n_arms: int, n_metrics: int, seed: int) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(n_arms, n_metrics))


def _sphere(n_arms: int, d: int, n_metrics: int, sigma: float, seed: int) -> Problem:
    """Random unit contexts and unit parameters."""
    rng = np.random.default_rng(seed)
    contexts, theta = rng.normal(size=(n_arms, d)), rng.normal(size=(d, n_metrics))
    contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
    return linear(contexts, theta / np.linalg.norm(theta, axis=0), sigma)
