"""Uniform: pull all arms in turn until MultiPFI's tests have decided every one of them. The baseline."""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import multi_pfi
from .contract import Settings, Setup
from .registry import register


@dataclass(frozen=True)
class Uniform(Settings):
    """Settings of the round-robin: it has none of its own, only `sigma`."""


def init(settings: Uniform, setup: Setup) -> tuple[multi_pfi.MultiPFIState, multi_pfi.MultiPFIConstants]:
    """Start with every arm undecided; all of them are pulled to the end."""
    return multi_pfi.start(setup, everyone=True, name="uniform")


ALGORITHM = replace(
    multi_pfi.ALGORITHM,
    name="uniform",
    summary="pull all arms in turn, stop by the tests of multi-pfi; the baseline",
    settings=Uniform,
    init=init,
)

register(ALGORITHM)
