"""The command line, as people and scripts use it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from conftest import PATIENCE, wait_for

import paretoscout as ps
from paretoscout.cli.main import main


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def test_demo_decides_every_option_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "front.png"
    done = run("demo", "--out", str(picture))
    assert done.exit_code == 0
    assert "Guarantee: all verdicts right with probability 95%" in done.output
    assert "★ front" in done.output
    assert "× dominated by all but slp" in done.output
    assert "8 front, 8 dominated" in done.output
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_undecided_at_the_budget() -> None:
    done = run("demo", "s5", "--algorithm", "multi-pfi", "--eps", "0.05", "--max-samples", "100", "--json")
    assert done.exit_code == 3
    verdicts = json.loads(done.output)
    assert verdicts["samples"] == 100
    assert {option["verdict"] for option in verdicts["options"]} >= {"undecided"}


def test_demo_on_a_file_of_measurements(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    lines = [
        f"{name},{base + i % 3},{cost}" for name, base, cost in (("fast", 10, 3), ("slow", 50, 9)) for i in range(9)
    ]
    path.write_text("\n".join(["variant,ms,price", *lines]))
    done = run("demo", str(path), "--arm", "variant", "-m", "ms:min", "-m", "price:min", "--eps", "ms=5", "--json")
    assert done.exit_code == 0
    options = {option["option"]: option for option in json.loads(done.output)["options"]}
    assert options["fast"]["verdict"] == "front"
    assert options["slow"]["verdict"] == "dominated"
    assert options["slow"]["rival"] == "fast"
    assert options["slow"]["estimates"]["ms"]["value"] == pytest.approx(51, abs=2)


def unequal(path: Path) -> list[str]:
    """A file of measurements whose noise differs between options: a leads b clearly, and c perhaps."""
    noise = np.random.default_rng(0).normal(size=(40, 2))
    options = (("a", 1.0, 0.01), ("b", 0.5, 0.01), ("c", 0.9, 3.0))
    lines = [f"{name},{mean + sd * x},{mean + sd * y}" for x, y in noise for name, mean, sd in options]
    path.write_text("\n".join(["option,x,y", *lines]))
    return [str(path), "--arm", "option", "-m", "x", "-m", "y", "--eps", "0.2", "--max-samples", "30000"]


def test_demo_with_an_eps_in_percent(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{arm},{time * np.exp(rng.normal(0, 0.01))}" for arm, time in (("a", 100), ("b", 200)) for _ in range(20)]
    (tmp_path / "runs.csv").write_text("\n".join(["arm,time", *rows]))
    arguments = ("demo", str(tmp_path / "runs.csv"), "--arm", "arm", "-m", "time:min", "--eps", "time=2%", "--json")
    shown = json.loads(run(*arguments).output)
    assert [option["verdict"] for option in shown["options"]] == ["front", "dominated"]
    assert shown["guarantee"]["tolerated"] == shown["rows"]["guarantee"]["tolerated"] == {"time": "2%"}
    time = shown["options"][0]["estimates"]["time"]
    assert time["low"] < 100 < time["high"], "in milliseconds; false alarm: below 0.05, the delta"
    assert time["high"] < 1.5 * time["low"]


def test_demo_says_what_it_assumes_and_what_the_rows_prove(tmp_path: Path) -> None:
    """A demo draws from the rows and takes their means for true; analyze does not, and knows less of c."""
    file = unequal(tmp_path / "runs.csv")
    shown = run("demo", *file, "--out", str(tmp_path / "front.png")).output
    assert "sigma assumed: each option's own, from its rows; recorded rows, drawn with replacement" in " ".join(
        shown.split()
    )
    assert "By themselves (paretoscout analyze) the rows prove: 1 dominated, 2 undecided; 120 samples." in shown
    assert "Measuring all options equally often, with one sigma for all, would have taken" in shown
    read = json.loads(run("demo", *file, "--json").output)
    assert read["rows"]["verdicts"] == {"a": "undecided", "b": "dominated", "c": "undecided"}
    assert "variance unknown" in read["rows"]["guarantee"]["text"]
    largest = json.loads(run("demo", *file, "--sigma", "largest", "--json").output)
    assert "sigma assumed: the largest within an option" in largest["guarantee"]["text"]
    unknown = run("demo", *file, "--sigma", "unknown", "--out", str(tmp_path / "front.png"))
    assert "noise assumed to be normal, variance unknown" in unknown.output
    assert "equally often" not in unknown.output


def test_an_eps_given_to_the_demo_is_that_of_its_warnings_too() -> None:
    """Two options that differ by less than eps are both on the front, and nothing contradicts that."""
    from paretoscout.simulation.watch import watch

    problem = ps.problems.gaussian([[0.0], [0.2]], sigma=0.3)
    *_, last = watch(problem, eps={problem.metrics[0].name: 0.5}, delta=0.1)
    assert last.verdicts == ("front", "front")
    assert last.metrics[0].eps == 0.5
    assert not last.contradicted


def test_a_demo_that_the_rows_contradict_says_so(tmp_path: Path) -> None:
    from paretoscout.cli.main import _of_the_rows

    file = unequal(tmp_path / "runs.csv")
    what = {"arm": "option", "metrics": ["x", "y"], "eps": ["0.2"], "delta": 0.05}
    rows = ps.analyze(ps.problems.read_csv(file[0]), "option", [ps.Metric("x", eps=0.2), ps.Metric("y", eps=0.2)])
    says = _of_the_rows(file[0], what, replace(rows, verdicts=("undecided", "front", "front")))["says"]
    assert says.endswith("2 undecided; 120 samples; they contradict the above on b: dominated")
    refused = _of_the_rows(file[0], {**what, "metrics": ["z"], "eps": []}, rows)["says"]
    assert "the rows prove nothing: unknown column 'z' of" in refused


def test_compare_with_noise_that_nobody_knows(tmp_path: Path) -> None:
    """Of the usual algorithms only scout can do without sigma; the others are named, with the reason."""
    shown = run("compare", *unequal(tmp_path / "runs.csv"), "--sigma", "unknown", "--replicates", "2").output
    assert "scout noise=unknown" in shown
    assert "not run: multi-pfi: sigma of algorithm 'multi-pfi' must be given" in shown


def test_compare_prints_writes_and_draws(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["compare", "s5", "--eps", "0.1", "--replicates", "5", "--out", str(out)]
    done = run(*arguments, "--algorithms", "multi-pfi,pfiwr:exploration=0.01:width_scale=0.1")
    assert done.exit_code == 0
    assert "pfiwr exploration=0.01 width_scale=0.1" in done.output
    assert sorted(path.name for path in out.iterdir()) == ["1-multi-pfi.npz", "2-pfiwr.npz", "compare.png"]
    rows = json.loads(run(*arguments, "--json").output)
    assert [row["algorithm"] for row in rows] == ["scout", "multi-pfi", "uniform"]
    assert rows[0]["replicates"] == 5


def test_compare_all_runs_what_fits_and_says_why_the_rest_does_not() -> None:
    done = run("compare", "s5", "--eps", "0.3", "--replicates", "1", "--algorithms", "all", "--max-samples", "3000")
    assert done.exit_code == 0, done.output
    for name in ps.algorithms.available():
        ran = f"\n{name} " in done.output
        assert ran != (f"not run: {name}: " in done.output), name
    assert "\nscout " in done.output


def test_compare_with_another_goal() -> None:
    done = run("compare", "s5", "--eps", "0.3", "--replicates", "2", "--goal", "2", "--algorithms", "scout")
    assert done.exit_code == 0, done.output
    refused = run("compare", "s5", "--goal", "everything")
    assert refused.exit_code == 2
    assert "goal must be 'front', 'cover', 'practical' or a number" in refused.output


def test_compare_says_when_runs_were_cut_off() -> None:
    done = run("compare", "s5", "--max-samples", "20", "--replicates", "3", "--algorithms", "multi-pfi")
    assert "reached --max-samples" in done.output


def test_lists() -> None:
    assert "multi-pfi" in run("algorithms").output
    algorithms = json.loads(run("algorithms", "--json").output)
    claims = {row["name"]: row["guarantees"] for row in algorithms}
    assert claims == {name: ps.algorithms.get(name).guarantees for name in ps.algorithms.available()}
    assert claims["scout"]
    assert not claims["pfiwr"]
    assert "compressors" in run("problems").output
    assert "s5" in json.loads(run("problems", "--json").output)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "nothing"], "unknown problem 'nothing'"),
        (["demo", "runs.csv"], "no such file: runs.csv"),
        (["demo", "s5", "--sigma", "unknown"], "sigma of problem 's5' must be numbers: it has no rows"),
        (["demo", "none.csv", "--arm", "a", "-m", "x"], "no such file: none.csv"),
        (["demo", "s5", "--arm", "a"], "--arm and --metric go with a CSV file"),
        (["demo", "s5", "--delta", "2"], "delta of problem 's5' must be"),
        (["demo", "s5", "--out", "no/such/x.png"], "--out must be in a folder that exists"),
        (["demo", "s5", "--out", "x.gif"], "--out must end in .png or .svg"),
        (["demo", "s5", "--eps", "much"], "--eps must be a number or METRIC=NUMBER, got 'much'"),
        (["demo", "s5", "--eps", "0.1", "--eps", "metric 1=0.1"], "not both"),
        (["demo", "s5", "--eps", "speed=1"], "unknown metric 'speed'"),
        (["demo", "s5", "--eps", "2%"], "eps of metric 'metric 1' must be a number, for it is compared by differences"),
        (["demo", "s5", "--algorithm", "pfiwr"], "goal 'practical' is not for algorithm 'pfiwr'"),
        (["demo", "s5", "--algorithm", "pfi"], "unknown algorithm 'pfi'"),
        (["compare", "s5", "--algorithms", "pfiwr:explore=1"], "SETTING=VALUE with one of sigma, exploration"),
        (["compare", "s5", "--algorithms", "pfiwr:exploration=-1"], "exploration of PFIwR must be"),
        (["compare", "s5", "--algorithms", ","], "at least one algorithm"),
        (["compare", "s5", "--replicates", "0"], "0 is not in the range"),
    ],
)
def test_usage_errors_are_one_clear_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output


def test_help_is_quick() -> None:
    """Against the time Python itself needs to start, of the processor: a ratio, for machines differ and are busy."""

    def spent() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    def best_of(command: list[str]) -> float:
        times = []
        for _ in range(5):
            before = spent()
            subprocess.run(command, check=True, capture_output=True)
            times.append(spent() - before)
        return min(times)

    bare = best_of([sys.executable, "-c", "pass"])
    shown = best_of([sys.executable, "-m", "paretoscout", "--help"])
    assert shown < bare * 12, f"python starts in {bare:.3f} s, --help takes {shown:.3f} s"


def test_a_missing_picture_fails_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = run("demo", "s5", "--eps", "0.1", "--out", "unused.png")
    assert done.exit_code == 0
    assert "pip install 'paretoscout[plots]'" in done.output


def test_the_guarantee_says_what_it_rests_on() -> None:
    done = run("demo", "s5", "--algorithm", "multi-pfi:sigma=0.2", "--eps", "0.1", "--delta", "0.001", "--json")
    assert json.loads(done.output)["guarantee"]["text"] == (
        "all verdicts right with probability 99.9%, up to 0.1 of every metric (sigma set to 0.2)"
    )
    done = run("demo", "s5", "--algorithm", "pfiwr:sigma=[0.1,0.2]", "--max-samples", "9", "--goal", "front", "--json")
    assert json.loads(done.output)["guarantee"]["text"] == "none: pfiwr is a heuristic (sigma set to 0.1, 0.2)"


def test_what_is_not_known_is_not_claimed(tmp_path: Path) -> None:
    few = ("demo", "s5", "--algorithm", "multi-pfi", "--eps", "0.05", "--max-samples", "3")
    done = run(*few, "--out", str(tmp_path / "x.png"))
    assert "would have taken more than 3 samples" in done.output
    verdicts = json.loads(run(*few, "--json").output)
    unmeasured = verdicts["options"][4]
    assert unmeasured["n"] == 0
    unknown = {"value": None, "low": None, "high": None, "radius": None, "censored": False}
    assert unmeasured["estimates"]["metric 1"] == unknown
    assert "arm 5" not in [option["rival"] for option in verdicts["options"]]


def test_one_replicate_is_valid_json() -> None:
    done = run("compare", "s5", "--eps", "0.1", "--replicates", "1", "--algorithms", "multi-pfi", "--json")
    assert json.loads(done.output, parse_constant=lambda name: pytest.fail(name))[0]["samples_interval"] is None


def test_a_comparison_says_what_each_algorithm_assumed() -> None:
    done = run("compare", "s5", "--eps", "0.1", "--replicates", "2", "--algorithms", "scout,multi-pfi:sigma=0.2")
    assert "scout: normal noise, sigma given; means linear in the contexts" in done.output
    assert "multi-pfi sigma=0.2: sigma set to 0.2" in done.output


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("variant,ms\n[red]x,1\n[red]x,2\ny,9\ny,10\n")
    done = run("demo", str(path), "--arm", "variant", "-m", "ms:min", "--out", str(tmp_path / "x.png"))
    assert "[red]x" in done.output


def test_ctrl_c_shows_and_saves_what_is_finished(tmp_path: Path) -> None:
    """The first algorithm finishes, the second never would: SIGINT comes in the middle of it."""
    command = (
        "compare s5 --eps 0.05 --replicates 4 --algorithms multi-pfi,pfiwr:width_scale=300 --max-samples 1000000000000"
    )
    announced = f"""
        import sys
        from pathlib import Path
        from paretoscout.cli.main import main
        from paretoscout.simulation.replicates import Simulation
        replicate = Simulation.replicate
        def announce(run, *how):
            Path({str(tmp_path)!r}, run.algorithm.name).touch()
            return replicate(run, *how)
        Simulation.replicate = announce
        main(sys.argv[1:])
        """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(announced), *command.split(), "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # where the tests themselves run in the background Ctrl-C is ignored, and would be here
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_for("the second algorithm", lambda: process.poll() is not None or (tmp_path / "pfiwr").exists())
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, errors
    assert "multi-pfi" in output
    assert "interrupted: what is finished follows" in errors
    assert "Traceback" not in errors
    assert (tmp_path / "1-multi-pfi.npz").exists()


def test_terminals_that_know_only_ascii(tmp_path: Path) -> None:
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    plain.pop("PYTHONIOENCODING", None)
    asked = [sys.executable, "-m", "paretoscout", "demo", "four-arms", "--out", str(tmp_path / "demo.png")]
    done = subprocess.run(asked, env=plain, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"? front" in done.stdout
