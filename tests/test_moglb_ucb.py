"""MOGLB-UCB: its twin, the values of the literature, logistic rewards, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import paretoscout as ps
from paretoscout.algorithms import MoglbUCB, Setup, moglb_ucb
from paretoscout.errors import InvalidInput
from paretoscout.session import Session
from paretoscout.start import setup_of
from paretoscout.streams import algorithm_stream

kernels = pytest.mark.kernels

S5 = ps.problems.load("s5")


class NaiveMoglb:
    """The algorithm as it is described: matrices are inverted, the projection is found by bisection."""

    def __init__(
        self,
        contexts: Any,  # none longer than 1
        n_metrics: int,
        D: float,
        reach: Any,  # R + U, one per metric
        level: float,  # L / delta
        logistic: bool = False,
        factor: float = 4.0,
        regularisation: float = 1.0,
        width_scale: float = 1.0,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.X, self.L, self.D, self.reach, self.level = np.asarray(contexts), n_metrics, D, np.asarray(reach), level
        self.logistic, self.factor, self.rng = logistic, factor, rng
        self.kappa = self.mean(D) * (1 - self.mean(D)) if logistic else 1.0
        self.lam, self.width_scale = regularisation, width_scale
        self.Z = regularisation * np.eye(self.X.shape[1])
        self.theta = np.zeros((self.X.shape[1], n_metrics))
        self.t = 0
        self.projections = 0

    def mean(self, z: float) -> float:
        return float(1 / (1 + np.exp(-z))) if self.logistic else z

    def gamma(self) -> Any:
        log_det = np.linalg.slogdet(self.Z / self.lam)[1]
        log = np.log(self.level * np.sqrt(1 + 4 * self.D**2 * self.t))
        square = self.reach**2 / self.kappa
        return self.lam * self.D**2 + self.kappa / 2 + self.factor * square * log + 2 * square * log_det

    def bounds(self) -> Any:
        lengths = np.sqrt(np.einsum("kd,de,ke->k", self.X, np.linalg.inv(self.Z), self.X))
        return self.X @ self.theta + self.width_scale * lengths[:, None] * np.sqrt(self.gamma())

    def ask(self) -> int:
        u = self.bounds().round(10)
        front = [x for x in range(len(u)) if not any((r >= u[x]).all() and (r > u[x]).any() for r in u)]
        assert self.rng is not None
        return front[min(int(self.rng.random() * len(front)), len(front) - 1)]

    def tell(self, arm: int, outcome: Any) -> None:
        x = self.X[arm]
        self.t += 1
        self.Z += self.kappa / 2 * np.outer(x, x)
        for metric in range(self.L):
            g = (self.mean(x @ self.theta[:, metric]) - outcome[metric]) * x
            self.theta[:, metric] = self.projected(self.theta[:, metric] - np.linalg.solve(self.Z, g))

    def projected(self, theta: Any) -> Any:
        if np.linalg.norm(theta) <= self.D:
            return theta
        self.projections += 1
        eye = np.eye(len(theta))

        def at(xi: float) -> Any:
            return np.linalg.solve(self.Z + xi * eye, self.Z @ theta)

        top = 1.0
        while np.linalg.norm(at(top)) > self.D:
            top *= 2
        return at(brentq(lambda xi: np.linalg.norm(at(xi)) - self.D, 0.0, top, xtol=1e-14, rtol=1e-14))


PULLS = (0, 3, 4, 1)
THETAS = (
    [[0.533333, 0, 0], [0.641667, 0.1625, 0.1625], [0.690947, 0.160339, 0.188005], [0.689309, 0.185072, 0.185481]],
    [[0.066667, 0, 0], [0.214583, 0.221875, 0.221875], [0.215273, 0.221845, 0.222232], [0.193452, 0.551205, 0.188620]],
)


@kernels
@pytest.mark.parametrize(("radius", "value"), [("published", 293.398726), ("sound", 81.606456)])
def test_values_of_the_literature(radius: str, value: float) -> None:
    setup = Setup(5, 2, np.zeros(2), 0.1, np.full(2, 0.1), contexts=S5.contexts, theta_max=1.0, budget=100)
    session = Session(MoglbUCB(radius=radius, reward_bound=1.0), setup)
    twin = NaiveMoglb(S5.contexts, 2, 1.0, [2.0, 2.0], 20.0, factor=moglb_ucb.FACTORS[radius])
    for step, arm in enumerate(PULLS):
        session.kernels.update(session.state, session.constants, arm, np.empty(0), S5.means[arm], np.ones(2, np.bool_))
        twin.tell(arm, S5.means[arm])
        printed = np.array([THETAS[0][step], THETAS[1][step]]).T
        np.testing.assert_allclose(session.state.theta, printed, atol=1e-6)
        np.testing.assert_allclose(twin.theta, printed, atol=1e-6)
    assert twin.projections == 0
    assert session.state.log_det[0] == pytest.approx(1.188629, abs=1e-6)
    assert twin.gamma()[0] == pytest.approx(value, abs=1e-6)
    assert moglb_ucb.gamma(session.state, session.constants, 0) == pytest.approx(value, abs=1e-6)


LONG = np.random.default_rng(3).normal(size=(8, 3))
#: title: settings, problem, eps
INSTANCES: dict[str, tuple[MoglbUCB, ps.Problem, Any]] = {
    "s5": (MoglbUCB(), S5, 0.1),
    "s5, norm too small": (MoglbUCB(width_scale=0.01, theta_max=0.6), S5, 0.1),
    "arms on their own": (MoglbUCB(width_scale=0.01), ps.problems.gaussian(S5.means, sigma=0.1), 0.1),
    "long contexts, uneven metrics": (
        MoglbUCB(regularisation=2.0, radius="published", width_scale=0.01),
        ps.problems.linear(LONG, [[0.5, 9.0], [-1.0, 2.0], [0.2, 0.1]], sigma=[0.5, 3.0]),
        [0.1, 0.5],
    ),
    "bound told, one metric": (
        MoglbUCB(reward_bound=3.0, theta_max=2.0, width_scale=0.05),
        ps.problems.linear(LONG, [[0.5], [-1.0], [0.2]], sigma=0.5),
        0.1,
    ),
    "logistic": (MoglbUCB(width_scale=0.02), ps.problems.load("logistic-12"), 0.1),
    "logistic, min and scaled": (
        MoglbUCB(width_scale=0.02),
        ps.problems.logistic(LONG, [[0.5, 1.0], [-1.0, 0.3], [0.2, 0.1]], directions=["max", "min"]),
        [0.1, 0.5],
    ),
}


@kernels
@pytest.mark.parametrize("title", INSTANCES)
def test_equals_the_twin_decision_by_decision(title: str) -> None:
    settings, problem, eps = INSTANCES[title]
    T, L = 120, len(problem.metrics)
    asked = problem.asked(eps, 0.1, budget=T)
    setup, units = setup_of(asked, settings), asked.units
    session = Session(settings, setup, seed=3)
    contexts = np.eye(len(problem.arms)) if problem.contexts is None else problem.contexts
    longest = np.linalg.norm(contexts, axis=1).max()
    logistic = problem.statement.model == "logistic"
    theta_max = setup.theta_max if settings.theta_max is None else settings.theta_max
    assert theta_max is not None
    assert setup.sigma is not None
    D, level = theta_max * longest, L / 0.1
    if logistic:
        reach = np.full(L, 2.0)
    elif settings.reward_bound is not None:
        reach = D + np.full(L, settings.reward_bound) / units.divisors
    else:
        reach, level = 2 * D + setup.sigma[0] * np.sqrt(2 * np.log(4 * L * T / 0.1)), 2 * level
    twin = NaiveMoglb(
        contexts / longest,
        L,
        D,
        reach,
        level,
        logistic,
        moglb_ucb.FACTORS[settings.radius],
        settings.regularisation,
        settings.width_scale,
        algorithm_stream(3),
    )
    rng = np.random.default_rng(0)
    for t in range(T):
        question = session.ask()
        assert question.arm == twin.ask(), f"sample {t + 1}"
        mean = problem.means[question.arm]
        if logistic:
            raw = 1.0 * (rng.random(L) < mean)
            seen = np.where(units.signs > 0, raw, 1 - raw)  # of a metric to be minimised: that it did not happen
        else:
            raw = mean + problem.sigma[0] * rng.standard_normal(L)
            seen = units.oriented(raw)
        session.tell(question, units.oriented(raw))
        twin.tell(question.arm, seen)
        np.testing.assert_allclose(session.state.theta, twin.theta, atol=1e-8)
    assert session.done
    if title in ("s5, norm too small", "logistic"):
        assert twin.projections > 10, "the projection was not tried"


@kernels
def test_parameters_that_are_all_zero() -> None:
    flat = ps.problems.gaussian(np.zeros((3, 2)), sigma=0.1)
    result = ps.simulate(flat, "moglb-ucb", eps=0.1, delta=0.1, budget=50, replicates=2)
    assert result.success.all()


def test_learns_logistic_rewards() -> None:
    """The parameters come out, and the regret is far below that of sampling all alike."""
    problem = ps.problems.load("logistic-12")
    settings = MoglbUCB(width_scale=0.03)
    result = ps.simulate(problem, settings, eps=0.05, delta=0.1, budget=20_000, replicates=5)
    assert result.regret.mean() < 0.3 * 20_000 * ps.geometry.gaps(problem.means).star.mean()
    asked = problem.asked(0.05, 0.1, budget=20_000)
    setup, units = setup_of(asked, settings), asked.units
    session = Session(settings, setup)
    rng = np.random.default_rng(0)
    while not session.done:
        question = session.ask()
        session.tell(question, 1.0 * (rng.random(2) < problem.means[question.arm]))
    assert problem.theta is not None
    np.testing.assert_allclose(session.state.theta, problem.theta, atol=0.25)
    pulled = session.verdicts().counts > 500
    np.testing.assert_allclose(units.undirected(session.verdicts().estimates)[pulled], problem.means[pulled], atol=0.05)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"radius": "wide"}, "radius of MoglbUCB must be 'sound' or 'published'"),
        ({"theta_max": -1.0}, "theta_max of MoglbUCB must be"),
        ({"reward_bound": -1.0}, "reward_bound of MoglbUCB must be"),
        ({"regularisation": 0.5}, "regularisation of MoglbUCB must be a finite number at least 1"),
        ({"width_scale": 0.0}, "width_scale of MoglbUCB must be"),
    ],
)
def test_settings_are_checked(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        MoglbUCB(**wrong)


def test_what_is_refused() -> None:
    setup = Setup(3, 1, np.zeros(1), 0.1, np.full(1, 0.1), budget=10)
    with pytest.raises(InvalidInput, match="theta_max of MoglbUCB must be given where the true parameters are not"):
        Session("moglb-ucb", setup)
    Session(MoglbUCB(theta_max=1.0), setup)
    unbounded = Setup(3, 1, np.zeros(1), 0.1, np.full(1, 0.1), contexts=np.eye(3), budget=10, link="logistic")
    with pytest.raises(InvalidInput, match="bounds of a setup with the logistic link must be given"):
        Session(MoglbUCB(theta_max=1.0), unbounded)
