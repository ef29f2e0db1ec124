"""One statement, two drivers: a live study is told what a simulation is told, and promises the same."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from test_every_algorithm import CONTENDERS, MEANS, plan, suited

import paretoscout as ps
from paretoscout.algorithms import GEGE, PSIPS, Settings, TrackAndStop
from paretoscout.algorithms.registry import resolve
from paretoscout.errors import InvalidInput, NotSupported, UnknownName
from paretoscout.simulation.replicates import Simulation

STATED = {
    "tabular": ps.problems.gaussian(MEANS, sigma=0.05, cost=[1.0, 2.0, 1.0, 3.0], name="stated"),
    "linear": ps.problems.linear([[1, 0], [0, 1], [0.3, -0.5], [-0.5, -0.5]], np.eye(2), sigma=0.05, name="stated"),
    "with contexts": ps.problems.gaussian(MEANS, sigma=0.05, contexts=MEANS, name="stated"),
    "logistic": ps.problems.logistic([[1, 0], [0, 1], [0.3, -0.5], [-0.5, -0.5]], 2 * np.eye(2), name="stated"),
    "in sums": ps.problems.gaussian(MEANS, sigma=[0.05, 0.1], tradeoffs=["1 metric 1 <= 3 metric 2"], name="stated"),
    "in percent": ps.problems.gaussian(
        np.exp(MEANS), 0.05, metrics=[ps.Metric("a", eps="30%"), ps.Metric("b", "min", eps="20%")], name="stated"
    ),
}
#: Settings that void the guarantee.
VOIDED: dict[str, Settings] = {
    "gege, published": GEGE(constants="published"),
    "psips, published": PSIPS(stopping="published"),
    "track-and-stop, published": TrackAndStop(stopping="published"),
}


@pytest.mark.parametrize("which", STATED)
@pytest.mark.parametrize("name", [*CONTENDERS, *VOIDED])
def test_a_study_is_told_and_promises_what_a_simulation_does(name: str, which: str) -> None:
    """The same statement gives the same setup, guarantee and assumptions, or is refused in the same words."""
    settings = (CONTENDERS | VOIDED)[name]
    problem = suited(STATED[which], settings)
    eps = None if which == "in percent" else [0.3] * len(problem.metrics)
    asked = problem.asked(eps, 0.1, **plan(settings))
    try:
        run = Simulation(resolve(settings)[0], settings, problem, eps, 0.1, 0, None, asked.budget, asked.goal)
    except (InvalidInput, NotSupported) as refused:
        with pytest.raises(type(refused), match=re.escape(str(refused))):
            ps.Study.of(asked, algorithm=settings, storage="memory")
        return
    study = ps.Study.of(asked, algorithm=settings, storage="memory")
    with study.log.reading() as replica:
        setup = replica.session.setup
    for field, value in vars(run.setup).items():
        np.testing.assert_array_equal(getattr(setup, field), value, field)
    assert study.verdicts().guarantee == run.guarantee
    assert study.verdicts().guarantee.holds == resolve(settings)[0].under(settings).guarantees


def test_what_voids_a_guarantee_voids_it_everywhere() -> None:
    for settings in VOIDED.values():
        study = ps.Study.of(STATED["tabular"].asked(0.3), algorithm=settings, storage="memory")
        assert not study.verdicts().guarantee.holds
        assert not next(ps.watch(STATED["tabular"], settings, eps=0.3)).guarantee.holds


def test_contexts_reach_the_algorithm_in_a_study() -> None:
    """12 arms with 2 features: an algorithm that takes means as linear has 2 parameters in both drivers, not 12."""
    rng = np.random.default_rng(0)
    problem = ps.problems.linear(rng.normal(size=(12, 2)), rng.normal(size=(2, 1)), sigma=0.1)
    study = ps.Study.of(problem.asked(0.1, goal=1), algorithm="rage", storage="memory")
    with study.log.reading() as replica:
        assert replica.session.constants.contexts.shape == (12, 2)
    assert "means linear in the contexts" in study.verdicts().guarantee.assumptions
    unstated = problem.replace(theta=None, model="none").asked(0.1, goal=1)
    study = ps.Study.of(unstated, algorithm="rage", storage="memory")
    with study.log.reading() as replica:
        assert replica.session.constants.contexts.shape == (12, 12)
    assert "means linear in the contexts" not in study.verdicts().guarantee.assumptions


def test_a_statement_is_kept_whole(tmp_path: Path) -> None:
    """What is stored of a study is what was stated."""
    for which, problem in STATED.items():
        asked = problem.asked(None if which == "in percent" else 0.3, 0.1, budget=500)
        ps.Study.of(asked, algorithm="scout", storage=tmp_path / "x.db", name=which)
        kept = ps.Study.load(which, tmp_path / "x.db").spec.asked
        assert kept.differs(asked) == []


def test_a_study_of_a_statement_may_have_guards() -> None:
    asked = STATED["tabular"].asked(0.3)
    study = ps.Study.of(asked, guards=["metric 1 >= 0.5"], storage="memory")
    assert [study.spec.limit(guard) for guard in study.spec.guards] == ["metric 1 >= 0.5"]
    with pytest.raises(UnknownName, match="metric in guards of a study"):
        ps.Study.of(asked, guards=["speed <= 3"], storage="memory")
