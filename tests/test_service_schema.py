"""The server against its own description: what Schemathesis makes up from `/openapi.json` never breaks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import LONG

pytest.importorskip("fastapi", reason="the extra serve is not installed")
schemathesis = pytest.importorskip("schemathesis")
from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from schemathesis.checks import load_all_checks  # noqa: E402

from paretoscout.service.app import make_app  # noqa: E402
from paretoscout.service.settings import ServerSettings  # noqa: E402
from paretoscout.study import Study  # noqa: E402

load_all_checks()
EXAMPLES = 200 if LONG else 6


CHECKS = (
    schemathesis.checks.not_a_server_error,
    schemathesis.specs.openapi.checks.status_code_conformance,
    schemathesis.specs.openapi.checks.content_type_conformance,
    schemathesis.specs.openapi.checks.response_schema_conformance,
)
#: The only one that does not end by itself.
ENDLESS = "/v1/studies/{name}/events"


def test_no_request_breaks_the_server(tmp_path: Path) -> None:
    """No 5xx, and answers as they are described, to whatever fits the description or nearly does."""
    place = tmp_path / "service.db"
    Study(["small", "large"], {"quality": "max", "cost": "min"}, name="models", storage=place)
    described = schemathesis.openapi.from_asgi("/openapi.json", make_app(ServerSettings(str(place), warm=False)))
    operations = [result.ok() for result in described.get_all_operations()]
    assert len(operations) > 15
    for operation in operations:
        if operation.path != ENDLESS:
            _try(operation)


def _try(operation: Any) -> None:
    @given(case=operation.as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=not LONG,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any) -> None:
        case.headers = {**(case.headers or {}), "Host": "localhost"}
        case.call_and_validate(checks=CHECKS)
        if "name" in (case.path_parameters or {}) and case.method != "DELETE":
            case.path_parameters["name"] = "models"  # a study that is there
            case.call_and_validate(checks=CHECKS)

    check()
