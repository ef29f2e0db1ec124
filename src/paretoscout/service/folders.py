"""Temporary folders that go when their process does, however it ends."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Waits until the process that started it is gone, in the background, and then removes the folder. It ignores what ends
#: that process: it must outlive it.
REMOVE = "trap '' HUP INT TERM; exec 3<&0; { cat <&3 >/dev/null; rm -rf -- \"$1\"; } >/dev/null 2>&1 &"


@contextmanager
def disposable(prefix: str) -> Iterator[str]:
    """Make a folder that is removed at the end, also if this process is killed."""
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        watcher = None
        with suppress(OSError):  # there may be no shell: then only a kill leaves the folder
            watcher = subprocess.Popen(
                ["sh", "-c", REMOVE, "sh", folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )
            watcher.wait()  # what it leaves behind belongs to nobody
        try:
            yield folder
        finally:
            if watcher is not None and watcher.stdin is not None:
                watcher.stdin.close()
