"""Arrays with names and a header, to bytes and back: one format for everything the library saves.

A numpy .npz archive (no pickles) of the arrays, and one entry `header`: JSON text in UTF-8 with `format`
("paretoscout/result", "paretoscout/session") and `version`, and whatever else the kind of file needs.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import UnreadableFile

VERSION = 1
#: More than this is not unpacked: no file of ours is as large, or as much smaller when it is packed.
MOST_BYTES, MOST_TIMES = 4 * 2**30, 1000


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
        _check_size(data, source)
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header: dict[str, Any] = json.loads(bytes(arrays.pop("header")).decode())
        version = int(header["version"])
    except UnreadableFile:
        raise
    except Exception:  # whatever is wrong with bytes that anybody may have written
        raise UnreadableFile(f"{source}: not a file of paretoscout") from None
    if header.get("format") != f"paretoscout/{kind}":
        raise UnreadableFile(f"{source}: must be a paretoscout/{kind} file, got {header.get('format')!r}")
    if version > VERSION:
        raise UnreadableFile(
            f"{source}: written in format version {version}, this paretoscout reads up to {VERSION}: "
            "install a newer one"
        )
    return header, arrays


def _check_size(data: bytes, source: str) -> None:
    """Refuse what would fill the memory, before anything of it is unpacked."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    most = min(MOST_BYTES, MOST_TIMES * max(len(data), 1))
    if size > most:
        raise UnreadableFile(f"{source}: must be at most {most:,} bytes when it is unpacked, got {size:,}")
