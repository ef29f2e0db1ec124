"""The part of the package that works on every system: no module of it needs what only POSIX systems have."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import paretoscout as ps

PACKAGE = Path(ps.__file__).parent
#: Modules that Windows does not have.
POSIX = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
#: Modules that need POSIX processes, and are imported by their commands alone.
NEEDS_POSIX = {"bench/launcher.py"}


def test_what_only_posix_has_is_imported_late() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) and not node.level else []
            if POSIX & set(names):
                found.add(path.relative_to(PACKAGE).as_posix())
    assert found == NEEDS_POSIX


#: A study in a file, where nothing is that Windows does not have.
WITHOUT_POSIX = """
import os, signal, sys
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
for name in ("fork", "register_at_fork", "getuid", "geteuid", "sysconf", "chown", "killpg", "wait4", "setsid"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGQUIT", "SIGALRM"):
    if hasattr(signal, name):
        delattr(signal, name)
import paretoscout as ps
import paretoscout.algorithms, paretoscout.readers, paretoscout.sweeps
from paretoscout.cli.main import main
from paretoscout.storage import storage_of

for storage in ("memory", sys.argv[1]):
    study = ps.Study(["a", "b"], metrics=[ps.Metric("time", "min", eps=1.0)], storage=storage)
    while not study.done:
        trial = study.ask()
        study.tell(trial, {"time": {"a": 10.0, "b": 20.0}[trial.arm] + trial.number % 3 / 10})
    assert study.standing().front == ("a",)
storage_of(sys.argv[1]).close()
main(["status", "--storage", sys.argv[1]], standalone_mode=False)
"""


@pytest.mark.parametrize("where", ["study.db", "with space.db"])
def test_the_library_works_without_what_only_posix_has(tmp_path: Path, where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX, str(tmp_path / where)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "a" in done.stdout
