"""The demo of a server: three studies are there, and move; nothing is left of it."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
from click.testing import CliRunner
from conftest import PATIENCE, wait_for

from paretoscout.cli.main import main
from paretoscout.service import demo as demos
from paretoscout.service.demo import EXAMPLES, Example, begin, demo, moves
from paretoscout.storage.sql import SQLStorage
from paretoscout.study import Study

#: What must come out, whatever the random numbers: all verdicts are right with probability 0.95 at least.
FRONTS = {
    "support-mails": {"nano", "small", "medium", "large", "reasoning"},
    "product-page": {"short form"},
    "nightly-backup": {"bzip2 -9", "xz -6", "zstd -3", "lz4"},
}
#: A minute, in moves.
MINUTE = 60.0


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_decides_something_within_a_minute_and_settles_within_minutes(example: Example) -> None:
    study = begin(example, "memory")
    asked = 0.0
    for number, _ in enumerate(moves(example, study)):
        assert study.open, "whoever looks sees something under way"
        asked = number * example.pause
        if asked >= MINUTE and asked - example.pause < MINUTE:
            standing = study.standing()
            assert not standing.done
            assert standing.withdrawn or set(standing.table.verdicts) != {"undecided"}
    standing = study.standing()
    assert standing.done
    assert set(standing.front) == FRONTS[example.name]
    assert 1.5 * MINUTE < asked < 6 * MINUTE
    assert standing.title.endswith("?")
    assert standing.tags == ("demo",)
    assert not standing.table.warnings


def test_the_page_that_sells_most_is_too_slow() -> None:
    example = next(each for each in EXAMPLES if each.name == "product-page")
    study = begin(example, "memory")
    for _ in moves(example, study):
        pass
    assert study.withdrawn == {"large video": "breaks latency <= 400"}


def test_what_a_mail_is_like_explains_most_of_how_answers_vary() -> None:
    outcome = demos.mails_answered(random.Random(1))
    rows = [[outcome(model, mail)["quality"] for mail in demos.MAILS] for model in ("small", "medium")]
    alike = [one - other for one, other in zip(*rows, strict=True)]

    def variance(values: list[float]) -> float:
        mean = sum(values) / len(values)
        return sum((value - mean) ** 2 for value in values) / len(values)

    assert variance(alike) < 0.3 * min(map(variance, rows))


def test_a_demo_moves_by_itself_and_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demos, "REST_SECONDS", 0.01)
    with demo(pace=1000.0) as place:
        assert sorted(SQLStorage(f"sqlite:///{place}").names()) == sorted(FRONTS)
        wait_for("the first study to settle", lambda: Study.load("nightly-backup", place).done)
        wait_for("the next one of its kind", lambda: "nightly-backup-2" in SQLStorage(f"sqlite:///{place}").names())
    assert not Path(place).parent.exists()


def test_a_demo_never_writes_into_studies_of_others(empty_folder: Path) -> None:
    said = CliRunner().invoke(main, ["serve", "--demo", "--storage", "mine.db"])
    assert said.exit_code == 2
    assert "--demo must stand without --storage" in said.output
    said = CliRunner().invoke(main, ["serve", "--demo", "--host", "0.0.0.0"])
    assert said.exit_code == 2
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_demo_is_served_and_deleted_at_the_end(empty_folder: Path, number: signal.Signals) -> None:
    """Also where a variable names a storage: that one stays as it was."""
    place = empty_folder / "temporary"
    place.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "paretoscout", "serve", "--demo", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(place), "PARETOSCOUT_STORAGE": str(empty_folder / "mine.db")},
    )
    assert process.stderr is not None
    with process.stderr:
        said = process.stderr.readline()
        assert re.search(r"three example studies at http://127\.0\.0\.1:\d+ ", said), said
        assert [path.name.startswith("paretoscout-demo-") for path in place.iterdir()] == [True]
        process.send_signal(number)
        process.stderr.read()
    process.wait(PATIENCE)
    assert [path.name for path in empty_folder.rglob("*")] == ["temporary"]
