"""Studies that earlier versions wrote stay readable: one of every kind of algorithm, and a bench."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paretoscout.storage.sql import SQLStorage
from paretoscout.study import Study
from paretoscout.study.replica import Replica
from paretoscout.study.spec import RULES, RULES_OF_ALL

DATA = Path(__file__).parent / "data"
#: What the version that wrote them showed, by name.
SHOWN: dict[str, Any] = json.loads((DATA / "studies-schema-1.json").read_text())


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A database of schema 1, upgraded."""
    return upgraded("studies-schema-1.db.gz", tmp_path)


def upgraded(file: str, folder: Path) -> Path:
    """A file of an older schema, upgraded."""
    path = folder / "studies.db"
    path.write_bytes(gzip.decompress((DATA / file).read_bytes()))
    SQLStorage(f"sqlite:///{path}", upgrade=True).close()
    return path


@pytest.mark.parametrize("name", SHOWN)
def test_a_study_begun_under_older_rules_is_judged_from_its_log(old: Path, name: str) -> None:
    """Nothing is lost; a verdict stays as it was, or is open again where the present rules ask for more evidence.

    What was open may be decided, where they ask for less.
    """
    study, shown = Study.load(name, old), SHOWN[name]
    table = study.verdicts()
    for arm, verdict in zip(table.arms, table.verdicts, strict=True):
        assert verdict in (shown["verdicts"][arm], "undecided") or shown["verdicts"][arm] == "undecided"
    assert len(list(study.observations())) == shown["observations"]
    assert study.withdrawn == shown["withdrawn"]
    counts = study.counts()
    assert {key: counts[key] for key in ("asked", "imported")} == {
        key: shown["counts"][key] for key in ("asked", "imported")
    }
    assert counts["told"] + counts["late"] - (0 if study.takes_unasked else counts["late"]) == shown["counts"]["told"]
    if study.takes_unasked:
        present = RULES if study.spec.algorithm == "scout" else RULES_OF_ALL
        begun = f"begun under the rules of version 1, judged by those of version {present}, from its log"
        assert begun in str(table.guarantee)
    else:  # an algorithm that wants its own questions answered goes on as it was
        assert dict(zip(table.arms, table.verdicts, strict=True)) == shown["verdicts"]
        assert "begun under the rules of version 1" in str(table.guarantee)


@pytest.mark.parametrize(
    "name", ["kind scout", "kind ape", "kind rage", "scout unknown", "scout guarded", "scout robust"]
)
def test_it_goes_on_and_replays_to_the_last_bit(old: Path, name: str) -> None:
    study = Study.load(name, old)
    for trial in study.open:
        study.fail(trial)
    for _ in range(5):
        if study.done:
            break
        trial = study.ask()
        study.tell(trial, dict.fromkeys(study.spec.columns, 1.0))
    replays_to_the_last_bit(study)


def replays_to_the_last_bit(study: Study) -> None:
    log = list(study.storage.events(study.name))
    replica = Replica(study.spec)
    for event in log:
        replica.apply(event, lambda number: [past for past in log[:number] if past.kind not in ("ask", "arms")])
    with study.log.reading() as live:
        assert replica.dump() == live.dump()


#: Of the version whose settings had no statement (format 2), by name.
FORMAT_2: dict[str, Any] = json.loads((DATA / "studies-format-2.json").read_text())


@pytest.mark.parametrize("name", FORMAT_2)
def test_a_study_of_settings_without_a_statement_is_what_it_was(tmp_path: Path, name: str) -> None:
    path, shown = upgraded("studies-format-2.db.gz", tmp_path), FORMAT_2[name]
    study = Study.load(name, path)
    assert json.loads(study.storage.spec(name))["format"] == 2
    table = study.verdicts()
    guarantee = str(table.guarantee)
    assert (study.withdrawn, study.counts()) == (shown["withdrawn"], shown["counts"])
    np.testing.assert_allclose(table.estimates, shown["estimates"], rtol=1e-12)
    if study.spec.algorithm == "scout":  # its shares of delta are others since
        begun = "; begun under the rules of version 2, judged by those of version 6, from its log"
        assert begun in guarantee
        guarantee = guarantee.replace(begun, "")
        for arm, verdict in zip(table.arms, table.verdicts, strict=True):
            assert verdict in (shown["verdicts"][arm], "undecided") or shown["verdicts"][arm] == "undecided"
    else:
        assert dict(zip(table.arms, table.verdicts, strict=True)) == shown["verdicts"]
        np.testing.assert_allclose(table.radii, shown["radii"], rtol=1e-12)
    assert guarantee == shown["guarantee"]


#: Of the version before practical verdicts had their present rule, by name.
FORMAT_3: dict[str, Any] = json.loads((DATA / "studies-format-3.json").read_text())


@pytest.mark.parametrize("name", FORMAT_3)
def test_a_practical_study_of_before_is_judged_by_the_present_rule(tmp_path: Path, name: str) -> None:
    """Nothing is lost or asked again; what was decided stays so, or is open where the present rule asks for more."""
    path, shown = upgraded("studies-format-3.db.gz", tmp_path), FORMAT_3[name]
    study = Study.load(name, path)
    table = study.verdicts()
    for arm, verdict in zip(table.arms, table.verdicts, strict=True):
        assert verdict in (shown["verdicts"][arm], "undecided")
    assert (study.spec.asked.goal, study.withdrawn, study.counts()) == tuple(
        shown[key] for key in ("goal", "withdrawn", "counts")
    )
    np.testing.assert_allclose(table.estimates, shown["estimates"], rtol=1e-12)
    begun = "begun under the rules of version 2, judged by those of version 6, from its log"
    assert begun in str(table.guarantee)
    for _ in range(3):
        if not study.done:
            study.tell(study.ask(), dict.fromkeys(study.spec.columns, 1.0))
    replays_to_the_last_bit(study)
