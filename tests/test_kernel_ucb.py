"""KernelUCB: its twin with the growing inverse, the values of the literature, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paretoscout as ps
from paretoscout.algorithms import KernelUCB, Setup
from paretoscout.errors import InvalidInput, NotSupported
from paretoscout.kernels.decisions import UNDECIDED
from paretoscout.session import Session
from paretoscout.streams import algorithm_stream

kernels = pytest.mark.kernels

S5 = ps.problems.load("s5")


class NaiveKernelUCB:
    """The paper's rule, with the inverse of K_t + gamma I grown by a row and a column for each sample."""

    def __init__(self, prior: Any, n_metrics: int, gamma: float, rng: np.random.Generator) -> None:
        self.k, self.L, self.gamma, self.rng = np.asarray(prior), n_metrics, gamma, rng
        self.inverse = np.zeros((0, 0))
        self.arms: list[int] = []
        self.outcomes = np.zeros((0, n_metrics))

    def mean_and_deviation(self) -> tuple[Any, Any]:
        near = self.k[:, self.arms]
        mean = near @ self.inverse @ self.outcomes
        variance = np.diag(self.k) - np.einsum("it,ts,is->i", near, self.inverse, near)
        return mean, np.sqrt(variance)

    def anytime(self, sigma: Any, delta: float, norm: Any) -> Any:
        gram = self.k[np.ix_(self.arms, self.arms)]
        log_det = np.linalg.slogdet(np.eye(len(self.arms)) + gram / self.gamma)[1]
        root = np.sqrt(2 * np.log(self.L / delta) + log_det)
        return np.asarray(sigma) * root + np.sqrt(self.gamma) * np.asarray(norm)

    def ask(self, eta: Any) -> int:
        mean, deviation = self.mean_and_deviation()
        index = mean + eta / np.sqrt(self.gamma) * deviation[:, None]
        if self.L == 1:
            return int(np.argmax(index[:, 0].round(12)))
        front = [x for x in range(len(index)) if not any((r >= index[x]).all() and (r > index[x]).any() for r in index)]
        return front[min(int(self.rng.random() * len(front)), len(front) - 1)]

    def tell(self, arm: int, outcome: Any) -> None:
        b = self.k[self.arms, arm]
        solved = self.inverse @ b
        kappa = 1 / (self.k[arm, arm] + self.gamma - b @ solved)
        self.inverse = np.block(
            [
                [self.inverse + kappa * np.outer(solved, solved), -kappa * solved[:, None]],
                [-kappa * solved[None], np.array([[kappa]])],
            ]
        )
        self.arms.append(arm)
        self.outcomes = np.vstack([self.outcomes, outcome])


def setup_for(problem: ps.Problem, budget: int = 60, eps: Any = 0.1, **changes: Any) -> Setup:
    from paretoscout.start import setup_of

    return setup_of(problem.asked(eps, 0.1, budget=budget), KernelUCB())


@kernels
def test_linear_kernel_is_linucb() -> None:
    """The index after pulls of arms 1, 4, 5, as printed, and by ridge regression with lambda = gamma."""
    contexts, rewards = S5.contexts, {0: 0.8, 3: 0.7, 4: 0.59}
    assert contexts is not None
    printed = [1.373290, 1.417121, 1.453315, 1.235552, 0.904992]
    twin = NaiveKernelUCB(contexts @ contexts.T, 1, 0.5, np.random.default_rng(0))
    problem = ps.problems.linear(contexts, S5.theta[:, :1] if S5.theta is not None else None, sigma=0.1)
    session = Session(KernelUCB(regularisation=0.5, exploration=1.0), setup_for(problem))
    for arm, reward in rewards.items():
        twin.tell(arm, [reward])
        session.kernels.update(session.state, session.constants, arm, np.empty(0), np.array([reward]), np.array([True]))
    mean, deviation = twin.mean_and_deviation()
    np.testing.assert_allclose(mean[:, 0] + deviation / np.sqrt(0.5), printed, atol=1e-6)
    session.ask()
    np.testing.assert_allclose(session.state.bounds[:, 0], printed, atol=1e-6)
    pulled = contexts[list(rewards)]
    V = 0.5 * np.eye(3) + pulled.T @ pulled
    theta = np.linalg.solve(V, pulled.T @ list(rewards.values()))
    ridge = contexts @ theta + np.sqrt(np.einsum("kd,de,ke->k", contexts, np.linalg.inv(V), contexts))
    np.testing.assert_allclose(session.state.bounds[:, 0], ridge)


WIDE = np.random.default_rng(3).normal(size=(9, 2))
#: title: settings, problem, norm of the means
INSTANCES: dict[str, tuple[KernelUCB, ps.Problem]] = {
    "s5": (KernelUCB(), S5),
    "s5, arms on their own": (KernelUCB(regularisation=0.2), ps.problems.gaussian(S5.means, sigma=0.1)),
    "one metric": (KernelUCB(exploration=0.3), ps.problems.linear(WIDE, [[0.5], [-1.0]], sigma=0.5)),
    "one metric, ties": (KernelUCB(exploration=0.3), ps.problems.gaussian([[0.5], [0.5], [0.0], [0.5]], sigma=0.0)),
    "uneven metrics": (
        KernelUCB(norm=(2.0, 9.0)),
        ps.problems.linear(WIDE, [[0.5, 9.0], [-1.0, 2.0]], sigma=[0.5, 3.0]),
    ),
    "three metrics, eta given": (
        KernelUCB(kernel="linear", exploration=(0.1, 0.2, 0.3), regularisation=2.0),
        ps.problems.gaussian(np.random.default_rng(4).normal(size=(9, 3)), 0.5, WIDE),
    ),
}


@kernels
@pytest.mark.parametrize("title", INSTANCES)
@pytest.mark.parametrize("eps", [0.1, None], ids=["own units", "scaled"])
def test_equals_the_twin_decision_by_decision(title: str, eps: float | None) -> None:
    settings, problem = INSTANCES[title]
    L = len(problem.metrics)
    scaled = [0.1, 0.5, 2.0][:L] if eps is None else eps
    setup = setup_for(problem, eps=scaled)
    session = Session(settings, setup, seed=7)
    linear = settings.kernel == "linear" or problem.theta is not None
    features = problem.contexts if linear else np.eye(len(problem.arms))
    assert features is not None
    twin = NaiveKernelUCB(features @ features.T, L, settings.regularisation, algorithm_stream(7))
    rng = np.random.default_rng(0)
    norm = np.full(L, setup.theta_max) if settings.norm is None else np.array(settings.norm) / setup.divisors
    for t in range(60):
        assert setup.sigma is not None
        eta = twin.anytime(setup.sigma[0], 0.1, norm)
        if settings.exploration is not None:
            eta = np.full(L, settings.exploration) / setup.divisors
        question = session.ask()
        assert question.arm == twin.ask(eta), f"sample {t + 1}"
        outcome = problem.means[question.arm] + problem.sigma[0] * rng.standard_normal(L)
        session.tell(question, outcome / setup.divisors)
        twin.tell(question.arm, outcome / setup.divisors)
    np.testing.assert_allclose(session.state.means, twin.mean_and_deviation()[0], atol=1e-9)
    assert session.done


@kernels
def test_reports_a_front_at_the_horizon_without_a_guarantee() -> None:
    result = ps.simulate(S5, "kernel-ucb", eps=0.05, delta=0.1, budget=300, replicates=3)
    assert (result.samples == 300).all()
    assert result.stopped.all()
    assert result.guarantee.startswith("none: kernel-ucb plays for low regret")
    session = Session("kernel-ucb", setup_for(S5))
    assert (session.verdicts().status == UNDECIDED).all()
    assert np.isinf(session.verdicts().radii).all()


def test_regret_is_far_below_that_of_sampling_all_alike() -> None:
    result = ps.simulate(S5, "kernel-ucb", eps=0.05, delta=0.1, budget=2000, replicates=5)
    assert result.regret.mean() < 0.1 * 2000 * ps.geometry.gaps(S5.means).star.mean()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kernel": "cubic"}, "kernel of KernelUCB must be one of independent, linear, rbf"),
        ({"length_scale": -1.0}, "length_scale of KernelUCB must be"),
        ({"regularisation": 0.0}, "regularisation of KernelUCB must be a finite number above 0"),
        ({"exploration": -1.0}, "exploration of KernelUCB must be"),
        ({"norm": "large"}, "norm of KernelUCB must be"),
    ],
)
def test_settings_are_checked(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        KernelUCB(**wrong)


def test_what_is_refused() -> None:
    unexplained = ps.problems.gaussian(S5.means, sigma=0.1, contexts=S5.contexts)
    with pytest.raises(InvalidInput, match="norm of KernelUCB must be given with kernel 'independent'"):
        ps.simulate(unexplained, "kernel-ucb", delta=0.1, budget=10, replicates=1)
    assert ps.simulate(unexplained, KernelUCB(norm=2.0), delta=0.1, budget=10, replicates=1).samples[0] == 10
    assert (
        ps.simulate(ps.problems.load("logistic-12"), "kernel-ucb", delta=0.1, budget=10, replicates=1).samples[0] == 10
    )
    with pytest.raises(InvalidInput, match="norm of KernelUCB must be one number or 2 of them"):
        ps.simulate(S5, KernelUCB(norm=(1.0, 1.0, 1.0)), delta=0.1, budget=10, replicates=1)
    many = ps.problems.gaussian(np.zeros((5001, 1)), sigma=0.1)
    with pytest.raises(NotSupported, match="it takes 5,000 arms at most, got 5,001"):
        ps.simulate(many, "kernel-ucb", delta=0.1, budget=10, replicates=1)
