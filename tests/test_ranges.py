"""Settings: what each may be is declared once, checked from there and shown from there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from paretoscout import algorithms
from paretoscout.algorithms.ranges import Range, setting, settings_of
from paretoscout.cli.main import main
from paretoscout.errors import InvalidInput

DECLARED = [
    (name, field, default, allowed)
    for name in algorithms.available()
    for field, default, allowed in settings_of(algorithms.get(name).settings)
]
each_setting = pytest.mark.parametrize(
    ("name", "field", "default", "allowed"), DECLARED, ids=[f"{name}.{field}" for name, field, *_ in DECLARED]
)


@each_setting
def test_every_setting_declares_what_it_may_be(name: str, field: str, default: Any, allowed: Range | None) -> None:
    assert allowed is not None
    what = f"{field} of {algorithms.get(name).settings.__name__}"
    assert allowed.check(what, default) == default
    wrong: Any
    for wrong in ({}, [[1.0]], "no such thing", np.nan, True):
        with pytest.raises(InvalidInput, match=f"^{what} must be "):
            algorithms.get(name).settings(**{field: wrong})


@each_setting
def test_limits_hold(name: str, field: str, default: Any, allowed: Range) -> None:
    beyond = [limit for limit in (allowed.above, allowed.below) if limit is not None]
    beyond += [limit - 1 for limit in (allowed.least,) if limit is not None]
    beyond += [limit + 1 for limit in (allowed.most,) if limit is not None]
    assert beyond or allowed.choices
    for value in beyond:
        with pytest.raises(InvalidInput, match=f"^{field} of .* must be .*, got "):
            algorithms.get(name).settings(**{field: value})


def test_a_setting_of_each_kind() -> None:
    @dataclass(frozen=True)
    class Mine(algorithms.Settings):
        share: float = setting(0.5, least=0.0, most=1.0)
        part: float = setting(0.5, above=0.0, most=1.0)
        rounds: int = setting(5, whole=True, most=10)
        unit: float | tuple[float, ...] | None = setting(None, above=0.0, below=9.0, one_per="metric")
        rule: str | None = setting(None, choices=("a", "b"))

    kept = Mine(share=np.float32(0.25), rounds=np.int64(3), unit=[1, 2], rule="a")  # type: ignore[arg-type]
    assert (kept.share, kept.rounds, kept.unit, kept.rule) == (0.25, 3, (1.0, 2.0), "a")
    assert (type(kept.share), type(kept.rounds)) == (float, int)
    for given, message in [
        ({"share": 2}, "share of Mine must be from 0 to 1, got 2"),
        ({"share": -1}, "share of Mine must be a finite number at least 0, got -1"),
        ({"part": 2}, "part of Mine must be at most 1, got 2"),
        ({"rounds": 11}, "rounds of Mine must be a whole number, at least 0 and at most 10, got 11"),
        ({"unit": (1, 0)}, "unit of Mine must be above 0, got (1, 0)"),
        ({"unit": (1, 9)}, "unit of Mine must be a finite number at least 0 and below 9, got 9"),
        ({"rule": "c"}, "rule of Mine must be 'a', 'b' or None, got 'c'"),
    ]:
        with pytest.raises(InvalidInput) as refused:
            Mine(**given)  # type: ignore[arg-type]
        assert str(refused.value) == message
    with pytest.raises(TypeError, match="least= and most= only"):
        setting(1, whole=True, above=0.0)


def test_they_are_shown() -> None:
    done = CliRunner().invoke(main, ["algorithms", "psips", "--json"])
    shown = {row.pop("name"): row for row in json.loads(done.output)["settings"]}
    assert shown["exploration"] == {"default": 0.5, "kind": "number", "above": 0.0, "most": 1.0, "none": False}
    assert shown["model"] == {"default": None, "kind": "text", "choices": ["linear", "tabular"], "none": True}
    assert shown["draws"] == {"default": 50, "kind": "whole number", "least": 1, "none": False}
    assert shown["sigma"]["one_per"] == "metric"
    plain = CliRunner().invoke(main, ["algorithms", "psips"]).output
    assert "exploration=0.5: a number above 0 and at most 1\n" in plain
    assert "every=None: a whole number at least 1, or None\n" in plain
    assert "psips" not in CliRunner().invoke(main, ["algorithms", "scout"]).output


@pytest.mark.parametrize("name", algorithms.available())
def test_every_algorithm_can_be_shown(name: str) -> None:
    shown = json.loads(CliRunner().invoke(main, ["algorithms", name, "--json"]).output)
    assert shown["name"] == name
    assert {row["name"] for row in shown["settings"]} == set(algorithms.get(name).settings.__dataclass_fields__)
