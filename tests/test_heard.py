"""Asked against told, and differences from one option: in Python, over HTTP, and by the client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paretoscout import Metric, Study
from paretoscout.errors import UnknownName
from paretoscout.study import Heard


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def heard_of(lease: float, give_up: float | str | None) -> tuple[Heard, int]:
    """One trial of each kind, in the order of the fields."""
    clock = Clock()
    study = Study(
        ["a", "b"],
        {"bought": "max", "spent": "max"},
        storage="memory",
        sigma=0.5,
        lease=lease,
        give_up=give_up,
        at_give_up={"bought": 0.0, "spent": 0.0},
        clock=clock,
    )
    whole, in_part, _silent, failed, late = (study.ask(arm="a") for _ in range(5))
    study.tell(whole, {"bought": 1.0})
    study.tell(whole, {"spent": 5.0})
    study.tell(in_part, {"bought": 1.0})
    study.fail(failed, "lost")
    clock.time += 60.0
    study.ask(arm="a")  # what is due lapses
    study.tell(late, {"bought": 1.0, "spent": 2.0})
    found = study.asked_and_told()
    assert found["b"] == Heard(0, 0, 0, 0, 0, 0, 0)
    assert found["b"].share is None
    assert sum(each.asked for each in found.values()) == study.counts()["asked"]
    return found["a"], study.counts()["open"]


@pytest.mark.parametrize(("lease", "give_up"), [(30.0, "lease"), (10.0, 30.0)])
def test_what_became_of_trials(lease: float, give_up: Any) -> None:
    found, open_ = heard_of(lease, give_up)
    assert found == Heard(asked=6, told=1, partly=1, unheard=2, failed=1, open=1, late=1)
    assert found.share == 2 / 5
    assert open_ == 1


def test_nothing_is_given_up_where_it_never_is() -> None:
    found, open_ = heard_of(30.0, None)
    assert (found.partly, found.unheard, found.late) == (0, 0, 0)
    assert found.open == open_


def test_rows_that_nobody_asked_for_are_not_asked() -> None:
    study = Study(["a", "b"], {"ms": "min"}, sigma=1.0, storage="memory")
    study.tell_frame({"arm": ["a", "b"], "ms": [1.0, 2.0]})
    assert study.asked_and_told()["a"].asked == 0


def measured() -> Study:
    """A study whose means are 0.4 and 0.5 of conversion, 200 and 100 of time, compared by ratios."""
    study = Study(
        ["present", "new"],
        [Metric("conversion", "max", eps=0.01), Metric("ms", "min", eps="1%"), Metric("loss", "min", eps=0.1)],
        sigma={"conversion": 0.001, "ms": 0.001, "loss": 0.001},
        storage="memory",
    )
    truth = {
        "present": {"conversion": 0.4, "ms": 200.0, "loss": -1.0},
        "new": {"conversion": 0.5, "ms": 100.0, "loss": -3.0},
    }
    study.run(truth.get)
    return study


def test_differences_have_the_sign_and_the_unit_of_the_metric() -> None:
    found = measured().standing().against("present")
    assert list(found) == ["new"]
    conversion, ms, loss = found["new"]
    assert conversion.difference == pytest.approx(0.1)
    assert conversion.lift == pytest.approx(0.25)
    assert not conversion.relative
    assert ms.difference == pytest.approx(-100.0)
    assert ms.lift == pytest.approx(-0.5)
    assert ms.relative
    assert loss.difference == pytest.approx(-2.0)
    assert loss.lift is None  # of a value below 0 nobody takes a share
    for each, value in ((conversion, 0.1), (ms, -0.5), (loss, -2.0)):
        assert each.low is not None
        assert each.high is not None
        assert each.low <= value <= each.high


def test_of_what_was_not_measured_nothing_is_said() -> None:
    study = Study(["present", "new"], {"ms": "min"}, sigma=1.0, storage="memory")
    ((change,),) = study.standing().against("present").values()
    assert (change.difference, change.lift) == (None, None)
    with pytest.raises(UnknownName):
        study.standing().against("nope")


def test_both_are_answered_over_http(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    from fastapi.testclient import TestClient

    from paretoscout.client import RemoteStudy
    from paretoscout.service.app import make_app
    from paretoscout.service.settings import ServerSettings

    settings = ServerSettings(f"sqlite:///{tmp_path / 'service.db'}")
    with TestClient(make_app(settings), base_url="http://localhost") as http:
        http.post("/v1/studies", json={"name": "s", "arms": ["a", "b"], "metrics": {"ms": "min"}, "sigma": 1})
        http.post("/v1/studies/s/ask", json={"count": 2})
        http.post("/v1/studies/s/observations", json={"trial": 0, "values": {"ms": 10}})
        told = http.get("/v1/studies/s/asked-and-told").json()["options"]
        assert [each["asked"] for each in told] == [1, 1]
        assert sum(each["told"] for each in told) == 1
        assert http.get("/v1/studies/s/against", params={"option": "nope"}).status_code == 404
        found = http.get("/v1/studies/s/against", params={"option": "a"}).json()
        assert found["reference"] == "a"
        assert set(found["options"][0]["metrics"]["ms"]) == {"difference", "lift", "low", "high", "relative"}

        class Direct:
            """What a client calls, without a network."""

            url = "http://localhost"

            def call(self, method: str, path: str, body: Any = None, params: Any = None) -> Any:
                return http.request(method, path, json=body, params=params).json()

        study = RemoteStudy(Direct(), "s")  # type: ignore[arg-type]
        assert study.asked_and_told() == Study.load("s", settings.storage).asked_and_told()
        assert set(study.against("a")) == {"b"}
