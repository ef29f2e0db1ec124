"""simulate: seeds, workers, caps, Ctrl-C, files, summaries."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paretoscout as ps
from paretoscout.errors import InvalidInput, UnknownName, UnreadableFile
from paretoscout.files import pack
from paretoscout.simulation.progress import Progress
from paretoscout.simulation.replicates import in_threads
from paretoscout.simulation.results import rate_interval

S5 = ps.problems.load("s5")


def same(one: ps.Result, other: ps.Result) -> None:
    for name, value in vars(one).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(other, name), err_msg=name)
        else:
            assert value == getattr(other, name), name


@pytest.mark.parametrize("algorithm", ["multi-pfi", ps.algorithms.PFIwR(exploration=0.01, width_scale=0.2)])
def test_same_seed_same_result_whatever_the_workers(algorithm: Any) -> None:
    results = [
        ps.simulate(S5, algorithm, eps=0.05, delta=0.1, replicates=13, seed=4, workers=workers, max_samples=5_000)
        for workers in (1, 2, 5, None)
    ]
    for result in results[1:]:
        same(results[0], result)
    other = ps.simulate(S5, algorithm, eps=0.05, delta=0.1, replicates=13, seed=5, max_samples=5_000)
    assert (other.samples != results[0].samples).any()


def test_a_replicate_depends_on_its_number_alone() -> None:
    few = ps.simulate(S5, "multi-pfi", eps=0.05, delta=0.1, replicates=3, seed=4)
    many = ps.simulate(S5, "multi-pfi", eps=0.05, delta=0.1, replicates=9, seed=4)
    np.testing.assert_array_equal(few.samples, many.samples[:3])
    assert len(set(many.samples.tolist())) > 3


def test_slices_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from paretoscout.simulation import replicates

    settings = ps.algorithms.PFIwR(exploration=0.01, width_scale=0.2)
    whole = ps.simulate(S5, settings, eps=0.05, delta=0.1, replicates=3, max_samples=5_000)
    monkeypatch.setattr(replicates, "SLICE_SECONDS", 1e-9)  # slices of 100 rounds
    same(whole, ps.simulate(S5, settings, eps=0.05, delta=0.1, replicates=3, max_samples=5_000))


def test_at_max_samples_a_run_is_neither_stopped_nor_successful() -> None:
    result = ps.simulate(S5, "multi-pfi", eps=0.0, delta=0.1, replicates=4, max_samples=60)
    assert not result.stopped.any()
    assert not result.success.any()
    assert (result.samples == 60).all()
    assert result.fronts[:, [0, 1, 3]].all(), "the arms not eliminated are returned"
    assert "ran into max_samples" in str(result.summary())


def test_regret_and_its_curve() -> None:
    result = ps.simulate(S5, "uniform", eps=0.05, delta=0.1, replicates=5)
    gaps = ps.geometry.gaps(S5.means).star
    np.testing.assert_allclose(result.regret, result.pulls @ gaps, rtol=1e-12)
    np.testing.assert_allclose(result.regret_curves[:, -1], result.regret, rtol=1e-12)
    assert 150 <= len(result.regret_rounds) <= 200
    assert (np.diff(result.regret_curves, axis=1) >= 0).all()
    five = int(np.flatnonzero(result.regret_rounds == 5)[0])
    np.testing.assert_allclose(result.regret_curves[:, five], gaps.sum())  # one round-robin


def test_eps_per_metric_is_the_unit() -> None:
    """Metrics in units of their own eps: the run is that of the scaled problem with eps 1."""
    eps = np.array([0.05, 0.1])
    by_metric = ps.simulate(S5, "multi-pfi", eps=eps.tolist(), delta=0.1, replicates=5, seed=2)
    scaled = ps.problems.gaussian(S5.means / eps, sigma=S5.sigma / eps)
    by_hand = ps.simulate(scaled, "multi-pfi", eps=1.0, delta=0.1, replicates=5, seed=2)
    np.testing.assert_array_equal(by_metric.samples, by_hand.samples)
    np.testing.assert_allclose(by_metric.regret, by_hand.regret)
    np.testing.assert_array_equal(by_metric.divisors, eps)
    np.testing.assert_array_equal(by_metric.eps, [1.0, 1.0])


def test_each_arm_has_its_own_noise() -> None:
    """The spread of 20,000 draws is that of the arm and metric, within 5 standard errors: false alarm below 1e-5."""
    from paretoscout.environments import environment_of
    from paretoscout.kernels.dispatch import _implementations

    sigma = np.array([[0.0, 1.0], [2.0, 0.5]])
    problem = ps.problems.gaussian([[1.0, 2.0], [3.0, 4.0]], sigma)
    environment = environment_of(problem, problem.units())
    draw = _implementations["draw"][type(environment)]
    rng, outcomes = np.random.default_rng(0), np.empty((20_000, 2))
    for arm in range(2):
        for outcome in outcomes:
            draw(environment, arm, rng, outcome)
        np.testing.assert_allclose(outcomes.std(axis=0), sigma[arm], rtol=5 / np.sqrt(2 * 20_000))
    np.testing.assert_array_equal(ps.simulate(problem, eps=0.5, delta=0.1, replicates=1, max_samples=50).sigma, sigma)


def test_results_that_kept_one_sigma_for_all_arms_can_be_read(tmp_path: Path) -> None:
    result = ps.simulate(S5, eps=0.1, delta=0.1, replicates=1)
    replace(result, sigma=result.sigma[0]).save(tmp_path / "old.npz")
    np.testing.assert_array_equal(ps.load_result(tmp_path / "old.npz").sigma, np.full((5, 2), 0.1))


def test_who_knows_one_sigma_says_so() -> None:
    uneven = ps.problems.gaussian([[1.0], [0.0]], [[0.1], [0.2]])
    result = ps.simulate(uneven, "multi-pfi", eps=0.5, delta=0.1, replicates=1, max_samples=100)
    assert result.assumed == "normal noise, sigma given; the largest sigma taken for all options"
    assert "the largest" in result.guarantee
    even = ps.problems.gaussian([[1.0], [0.0]], [[0.2], [0.2]])
    assert (
        ps.simulate(even, "multi-pfi", eps=0.5, delta=0.1, replicates=1, max_samples=100).assumed
        == "normal noise, sigma given"
    )


def test_directions_are_a_matter_of_sign() -> None:
    flipped = ps.problems.gaussian(S5.means * [1, -1], sigma=0.1, directions=["max", "min"])
    noise_free = [
        ps.problems.gaussian(p.means, 0.0, directions=[m.direction for m in p.metrics]) for p in (S5, flipped)
    ]
    settings = ps.algorithms.MultiPFI(sigma=0.1)
    one, other = (ps.simulate(p, settings, eps=0.05, delta=0.1, replicates=1) for p in noise_free)
    np.testing.assert_array_equal(one.pulls, other.pulls)
    np.testing.assert_array_equal(one.fronts, other.fronts)


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """Processes started in the background ignore Ctrl-C, and their children do: a test of it would wait forever."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_acts_within_a_replicate() -> None:
    """Endless replicates (two equal arms at eps 0): the interrupt acts within them."""
    endless = ps.problems.gaussian([[0.0, 0.0], [0.0, 0.0]], sigma=1.0)
    # compiled beforehand, so that it comes in a run
    ps.simulate(endless, "multi-pfi", delta=0.1, replicates=1, max_samples=100)
    timer = threading.Timer(1.0, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ps.simulate(endless, "multi-pfi", delta=0.1, replicates=4, max_samples=10**12, workers=2)  # would take days


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_returns_the_finished_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    from paretoscout.simulation import replicates

    original = replicates.Simulation.replicate

    def interrupt_at_six(run: Any, index: int, report: Any) -> Any:
        if index == 6:
            _thread.interrupt_main()
            while report(0):
                time.sleep(0.01)
            return None
        return original(run, index, report)

    monkeypatch.setattr(replicates.Simulation, "replicate", interrupt_at_six)
    result = ps.simulate(S5, "multi-pfi", eps=0.05, delta=0.1, replicates=50, workers=1)
    assert "6 replicates (of 50: interrupted)" in str(result.summary())
    assert result.replicates.tolist() == [0, 1, 2, 3, 4, 5]
    assert result.asked == 50
    monkeypatch.undo()
    whole = ps.simulate(S5, "multi-pfi", eps=0.05, delta=0.1, replicates=6)
    np.testing.assert_array_equal(result.samples, whole.samples)


def test_a_failure_in_a_worker_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    from paretoscout.simulation import replicates

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(replicates.Simulation, "replicate", broken)
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        ps.simulate(S5, "multi-pfi", delta=0.1, replicates=3)


def test_saved_and_loaded(tmp_path: Path) -> None:
    result = ps.simulate(S5, ps.algorithms.PFIwR(exploration=0.1), eps=0.05, delta=0.1, replicates=4, max_samples=500)
    result.save(tmp_path / "result.npz")
    same(result, ps.load_result(tmp_path / "result.npz"))
    assert result.label == "pfiwr exploration=0.1"
    told = ps.algorithms.MultiPFI(sigma=np.array([0.1, 0.2]))  # type: ignore[arg-type]
    result = ps.simulate(S5, told, eps=0.05, delta=np.float64(0.25), replicates=2)
    result.save(tmp_path / "result.npz")
    same(result, ps.load_result(tmp_path / "result.npz"))
    assert result.assumed == "sigma set to 0.1, 0.2"
    linear = ps.simulate(S5, "scout", eps=0.05, delta=0.1, replicates=1)
    assert linear.assumed == "normal noise, sigma given; means linear in the contexts, tested all the time"


def test_files_that_are_none_of_ours_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("hello")
    with pytest.raises(UnreadableFile, match="not a file of paretoscout"):
        ps.load_result(path)
    path.write_bytes(pack("session", {}, {}))
    with pytest.raises(UnreadableFile, match="must be a paretoscout/result file, got 'paretoscout/session'"):
        ps.load_result(path)
    path.write_bytes(pack("result", {"algorithm": "x"}, {}))
    with pytest.raises(UnreadableFile, match="lacks label, settings"):
        ps.load_result(path)
    path.write_bytes(pack("result", {"version": 99}, {}))
    with pytest.raises(UnreadableFile, match="install a newer one"):
        ps.load_result(path)


def test_summary() -> None:
    result = ps.simulate(S5, "multi-pfi", eps=0.05, delta=0.1, replicates=40, seed=1)
    summary = result.summary()
    assert summary.samples_interval[0] < summary.samples_mean < summary.samples_interval[1]
    assert summary.success_rate == 1.0
    assert summary.success_interval == pytest.approx((0.025 ** (1 / 40), 1.0))
    assert summary.as_dict()["promised"] == 0.9
    alone = ps.simulate(S5, "multi-pfi", eps=0.05, delta=0.1, replicates=1).summary()
    assert alone.samples_interval == (-np.inf, np.inf)
    assert alone.as_dict()["samples_interval"] is None


def test_clopper_pearson() -> None:
    assert rate_interval(0, 10) == pytest.approx((0.0, 0.308497), abs=1e-6)
    assert rate_interval(5, 10) == pytest.approx((0.187086, 0.812914), abs=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 0.0}, "delta of problem 's5' must be a finite number above 0 and below 1, got 0.0"),
        ({"delta": 1.0}, "delta of"),
        ({"delta": "0.1"}, "delta of"),
        ({"max_samples": 10**30}, "max_samples"),
        ({"eps": -0.1}, "eps on problem 's5' must be a finite number at least 0, got -0.1"),
        ({"eps": [0.1]}, "one number or 2 of them"),
        ({"eps": {"speed": 0.1}}, "unknown metric 'speed'"),
        ({"eps": float("nan")}, "eps on"),
        ({"replicates": 0}, "replicates of simulate must be a whole number, at least 1, got 0"),
        ({"replicates": 2.5}, "replicates"),
        ({"max_samples": 0}, "max_samples"),
        ({"workers": -1}, "workers"),
        ({"seed": -1}, "seed of a run must be a whole number, at least 0, got -1"),
        ({"seed": 1.5}, "seed of a run must be"),
        ({"algorithm": "multipfi"}, "did you mean 'multi-pfi'"),
        ({"algorithm": 3}, "algorithm must be a name"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidInput, UnknownName)) as caught:
        ps.simulate(S5, **{"algorithm": "multi-pfi", "delta": 0.1, "replicates": 1, "max_samples": 10, **change})
    assert message in str(caught.value)


def test_pfiwr_settings_are_checked() -> None:
    for bad, message in [
        ({"exploration": 0}, "exploration of PFIwR must be a finite number above 0, got 0"),
        ({"width_scale": -1}, "width_scale"),
        ({"theta_max": float("inf")}, "theta_max"),
        ({"imputation": "newest"}, "imputation of PFIwR must be 'latest' or 'frozen', got 'newest'"),
        ({"check_every": 0}, "check_every"),
        ({"check_every": 1.5}, "check_every of PFIwR must be a whole number, at least 1, got 1.5"),
    ]:
        with pytest.raises(InvalidInput) as caught:
            ps.algorithms.PFIwR(**bad)  # type: ignore[arg-type]
        assert message in str(caught.value)


def test_contexts_that_do_not_span_are_refused() -> None:
    flat = ps.problems.gaussian(S5.means, sigma=0.1, contexts=[[1, 2, 3], [2, 4, 6], [0, 1, 1], [1, 1, 2], [1, 0, 1]])
    with pytest.raises(InvalidInput, match="must span all 3 dimensions, got rank 2"):
        ps.simulate(flat, "pfiwr", delta=0.1)
    assert ps.simulate(flat, "multi-pfi", eps=0.05, delta=0.1, replicates=1).success.all()


def test_a_lazier_check_notices_the_same_verdicts_later() -> None:
    """While every round explores, what is sampled does not depend on when the tests are made."""
    every = ps.simulate(S5, "pfiwr", eps=0.3, delta=0.1, replicates=3, max_samples=10**6)
    lazy = ps.simulate(S5, ps.algorithms.PFIwR(check_every=50), eps=0.3, delta=0.1, replicates=3, max_samples=10**6)
    assert (lazy.samples >= every.samples).all()
    assert (lazy.samples % 50 <= 1).all()  # a round whose match failed puts the test off by one
    assert lazy.success.all()


def test_ctrl_c_before_all_threads_are_started(monkeypatch: pytest.MonkeyPatch) -> None:
    class Second(threading.Thread):
        def start(self) -> None:
            if self.name == "replicates-1":
                raise KeyboardInterrupt
            super().start()

    monkeypatch.setattr("paretoscout.simulation.replicates.threading.Thread", Second)
    assert in_threads(lambda index, report: None, 4, 2, Progress(False, 4, "")) == ([], True)


def test_one_replicate_is_the_first_of_many() -> None:
    """It takes the first state as it is, the others take copies."""
    one = ps.simulate(S5, "multi-pfi", eps=0.05, delta=0.1, replicates=1, seed=4)
    many = ps.simulate(S5, "multi-pfi", eps=0.05, delta=0.1, replicates=2, seed=4)
    np.testing.assert_array_equal(one.pulls, many.pulls[:1])
    same(one, ps.simulate(S5, "multi-pfi", eps=0.05, delta=0.1, replicates=1, seed=4))


def test_a_hundred_thousand_arms_take_no_pairs() -> None:
    """The problem is made, run and judged in a second; all pairs of arms would take a minute."""
    rng = np.random.default_rng(1)
    few = ps.problems.gaussian(rng.normal(size=(200, 2)), 0.5)
    ps.simulate(few, "multi-pfi", eps=0.1, replicates=1, max_samples=10)  # compiles
    began = time.process_time()
    many = ps.problems.gaussian(rng.normal(size=(100_000, 2)), 0.5)
    result = ps.simulate(many, "multi-pfi", eps=0.1, replicates=1, max_samples=200_000, goal="cover")
    assert time.process_time() - began < 15.0
    assert result.samples[0] == 200_000
