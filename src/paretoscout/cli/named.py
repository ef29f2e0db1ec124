"""Algorithms as they are written on the command line: NAME[:SETTING=VALUE...],..."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput

if TYPE_CHECKING:
    from ..algorithms import Algorithm


def named(text: str) -> tuple[Algorithm, dict[str, Any]]:
    """Read NAME[:SETTING=VALUE...]: the algorithm, and the settings that were named."""
    from .. import algorithms as known

    name, *pairs = text.strip().split(":")
    record = known.get(name)
    values: dict[str, Any] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key not in record.settings.__dataclass_fields__ or not value:
            fields = ", ".join(record.settings.__dataclass_fields__)
            raise InvalidInput(f"settings of {name} must be written SETTING=VALUE with one of {fields}, got {pair!r}")
        try:
            values[key] = json.loads(value)
        except (ValueError, RecursionError):
            values[key] = value
    record.settings(**values)  # refused now, not in the middle of the work
    return record, values


def several(text: str) -> list[str]:
    """Split a list of algorithms; commas within brackets belong to a setting: sigma=[0.1,0.2]."""
    parts = [part for part in re.split(r",(?![^\[]*\])", text) if part.strip()]
    if not parts:
        raise InvalidInput("--algorithms must name at least one algorithm, got none")
    return parts
