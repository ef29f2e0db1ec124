"""`paretoscout.extend`: an algorithm in a file outside the package runs as those in it do, simulated and live."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

from conftest import PATIENCE

from paretoscout import algorithms, extend

PAGE = Path(__file__).parent.parent / "docs" / "algorithms.md"

#: Who uses the file.
USE = """
    from dataclasses import replace

    import mine
    import paretoscout as ps
    from paretoscout import extend
    from paretoscout.geometry import pareto_front

    assert extend.get("fixed-rounds").settings is mine.FixedRounds
    problem = ps.problems.load("s5")
    result = ps.simulate(problem, mine.FixedRounds(rounds=7), replicates=3)
    assert (result.samples == 7 * len(problem.arms)).all()

    live = {"arms": problem.arms, "metrics": problem.metrics, "sigma": 0.1, "goal": "front", "storage": "mine.db"}
    study = ps.Study(**live, algorithm=mine.FixedRounds(rounds=7))
    while not study.done:
        trial = study.ask()
        means = problem.means[problem.arms.index(trial.arm)]
        study.tell(trial, {metric.name: mean for metric, mean in zip(problem.metrics, means, strict=True)})
    assert set(study.verdicts().counts) == {7}
    assert study.front() == [arm for arm, best in zip(problem.arms, pareto_front(problem.means), strict=True) if best]
    again = ps.Study.load(storage="mine.db")
    assert again.done
    assert again.front() == study.front()

    for wrong, message in [
        (lambda: mine.FixedRounds(rounds=0), "rounds of FixedRounds must be a whole number, at least 1, got 0"),
        (lambda: extend.register(replace(extend.get("scout"))), "must be new, got 'scout', which is taken"),
    ]:
        try:
            wrong()
        except extend.InvalidInput as refused:
            assert message in str(refused), refused
        else:
            raise AssertionError(message)
"""


def test_an_algorithm_outside_the_package(tmp_path: Path) -> None:
    """In a process of its own: what is registered there stays there."""
    example = next(block for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S))
    (tmp_path / "mine.py").write_text(example)
    (tmp_path / "use.py").write_text(textwrap.dedent(USE))
    done = subprocess.run(
        [sys.executable, "-W", "error", "use.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_door_is_the_house() -> None:
    """What is at the door is what the algorithms of the package are made of."""
    assert sorted(extend.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name)) == extend.__all__
    assert extend.Settings is algorithms.Settings
    for name in extend.__all__:
        assert getattr(extend, name) is not None
    shown = {name for row in PAGE.read_text("utf-8").splitlines() for name in re.findall(r"`(\w+)`", row)}
    assert set(extend.__all__) <= shown, "docs/algorithms.md says what each is for"
