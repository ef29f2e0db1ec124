"""What a study still needs, where the noise differs between options."""

from __future__ import annotations

import numpy as np

import paretoscout as ps
from paretoscout.study.forecast import remaining

#: Mean and noise: a and b are near each other and quiet, c is far off and loud.
TRUTH = {"a": (1.0, 0.02), "b": (0.95, 0.02), "c": (-40.0, 5.0)}


def test_the_noise_of_one_option_is_not_expected_of_the_others() -> None:
    """With the noise of all options pooled the outlook was 310 runs, likely 94 to 2,400."""
    study = ps.Study(list(TRUTH), [ps.Metric("quality", eps=0.01)], storage="memory")
    rng = np.random.default_rng(3)
    arms = list(TRUTH) * 4
    study.tell_frame({"arm": arms, "quality": [TRUTH[arm][0] + TRUTH[arm][1] * rng.normal() for arm in arms]})
    with study.log.reading() as replica:
        expected = remaining(replica, 16, seconds=600.0)
    told = 0
    while not study.done:
        trial = study.ask()
        mean, sd = TRUTH[trial.arm]
        study.tell(trial, {"quality": mean + sd * rng.normal()})
        told += 1
    assert expected.low / 4 <= told <= 4 * expected.high
    assert expected.high < 4 * told
