"""Arrays with names and a header, to bytes and back: one format for everything the library saves.

A numpy .npz archive (no pickles) of the arrays, and one entry `header`: JSON text in UTF-8 with `format`
("paretoscout/result", "paretoscout/session") and `version`, and whatever else the kind of file needs.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import UnreadableFile

VERSION = 1


def pack(kind: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return the bytes of an archive."""
    text = json.dumps({"format": f"paretoscout/{kind}", "version": VERSION, **header})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in {"header": np.frombuffer(text.encode(), np.uint8), **arrays}.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # without the time: the same content gives the same bytes
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return buffer.getvalue()


def unpack(kind: str, data: bytes, source: str = "these bytes") -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return header and arrays, or say why the bytes cannot be read."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header: dict[str, Any] = json.loads(bytes(arrays.pop("header")).decode())
        version = int(header["version"])
    except (ValueError, KeyError, TypeError, OSError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error):
        raise UnreadableFile(f"{source}: not a file of paretoscout") from None
    if header.get("format") != f"paretoscout/{kind}":
        raise UnreadableFile(f"{source}: must be a paretoscout/{kind} file, got {header.get('format')!r}")
    if version > VERSION:
        raise UnreadableFile(
            f"{source}: written in format version {version}, this paretoscout reads up to {VERSION}: "
            "install a newer one"
        )
    return header, arrays
