"""Columns of a frame as contexts: numbers stay, categories become 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..frames import Columns


def encode(columns: Columns, names: Sequence[str]) -> tuple[tuple[str, ...], list[list[float]]]:
    """Return the names of the features and a row of them for each arm.

    A column of numbers is one feature. A column of anything else has a feature "column = value" for each of its values
    but the first in the alphabet, which is what the others are compared with; a constant feature comes first.

    >>> from paretoscout.frames import Columns
    >>> encode(Columns({"threads": [1, 2], "codec": ["zstd", "gzip"]}, "arms"), ["threads", "codec"])
    (('1', 'threads', 'codec = zstd'), [[1.0, 1.0, 1.0], [1.0, 2.0, 0.0]])
    """
    features: list[str] = []
    values: list[Any] = []
    for name in names:
        if columns.is_numeric(name):
            features.append(name)
            values.append(columns.numbers(name))
            continue
        labels = columns.labels(name)
        kinds = sorted(set(labels))
        if len(kinds) == 1:
            raise InvalidInput(f"context {name!r} must differ between arms, got {kinds[0]!r} everywhere")
        for kind in kinds[1:]:
            features.append(f"{name} = {kind}")
            values.append(np.array([float(label == kind) for label in labels]))
    constant = np.ones(columns.n_rows)
    return ("1", *features), np.column_stack([constant, *values]).tolist()
