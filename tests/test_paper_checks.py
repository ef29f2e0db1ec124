"""Numbers of the section "Beyond the report" of docs/reproduction.md, where they take no time."""

from __future__ import annotations

import numpy as np
import pytest

import paretoscout as ps
from benchmarks.paper_checks import misses_of_whole_draws, returned_with_a_gap, width_at_one_dimension


def test_the_width_at_one_dimension_is_that_of_the_theory() -> None:
    """As t grows, c goes to 24 / 25, and nothing else differs from `estimation_bound`."""
    lemmas, printed = width_at_one_dimension()
    assert (round(lemmas, 2), round(printed, 2)) == (13.24, 13.12)
    t, level = 10**15, 0.1 / 7
    bound = ps.theory.estimation_bound(np.ones((1, 1)), rounds=t, n_metrics=2, sigma=1.0, delta=0.1, theta_max=0.0)
    lemmas, printed = width_at_one_dimension(float(t), 2, level)
    noise = 2 * printed / 3
    assert float(bound[0]) * np.sqrt(t + 1.0) == pytest.approx(noise + 24 / 25 * (lemmas - noise), rel=1e-4)


def test_whole_draws_miss_more_often() -> None:
    assert misses_of_whole_draws(0.1, 1) == pytest.approx(1.25)
    assert [round(misses_of_whole_draws(delta), 2) for delta in (0.1, 0.05, 0.01)] == [1.39, 1.39, 1.56]


def test_an_option_with_a_gap_above_eps_is_returned_though_all_widths_held() -> None:
    held, returned = returned_with_a_gap(1.1, 0.5, 12)
    assert 0 < returned <= held == 12
