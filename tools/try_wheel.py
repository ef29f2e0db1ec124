"""Try a wheel where nothing else is installed: `python tools/try_wheel.py dist/*.whl`.

On every Python that is given, or found, it makes an empty environment, installs the wheel, and calls what a newcomer
calls. Prints a line for each Python and fails if one of them fails. A Python that numba has no wheel for is named, and
counts as not tried.

--lowest: with the oldest versions of the dependencies that the wheel says it takes, and then those of its extras too.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

MINORS = (11, 12, 13, 14)
PIP = ("-m", "pip", "--disable-pip-version-check", "-q", "install", "--only-binary", ":all:")
#: Written by a newcomer: a study, told until it knows.
STUDY = """
import paretoscout as ps
study = ps.Study(["a", "b"], metrics=[ps.Metric("time", "min", eps=1.0)], storage="memory")
while not study.done:
    trial = study.ask()
    study.tell(trial, {"time": {"a": 10.0, "b": 20.0}[trial.arm] + trial.number % 3 / 10})
assert study.standing().front == ("a",), study.standing().front
"""
#: What each extra is for, called where it is installed.
EXTRAS = ("serve", "postgres", "plots", "data", "frames", "yaml", "inspect", "gp")
USE_EXTRAS = """
import json, re, subprocess, sys, urllib.request
import matplotlib, pandas, pooch, psycopg, pyarrow, sklearn.gaussian_process, yaml
import paretoscout as ps
if sys.version_info < (3, 14):
    import zstandard
study = ps.Study(["a", "b"], metrics=[ps.Metric("time", "min", eps=1.0)], storage="memory")
study.tell(study.ask(), {"time": 1.0})
assert len(study.to_frame()) == 1
words = [sys.executable, "-m", "paretoscout", "serve", "--port", "0"]
with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
    address = next(found[1] for found in (re.search(r" at (http://[^ ]+)", text) for text in server.stderr) if found)
    body = json.dumps({"name": "study", "arms": ["a", "b"], "metrics": {"time": "min"}}).encode()
    request = urllib.request.Request(address + "/v1/studies", body, {"Content-Type": "application/json"})
    assert urllib.request.urlopen(request).status == 201
    assert b"study" in urllib.request.urlopen(address + "/").read()
    assert b"paretoscout_studies" in urllib.request.urlopen(address + "/metrics").read()
    server.terminate()
"""
BENCH = ("bench", "-S", "-m", "size@out", "printf a > out", "printf bbb > out")


def pythons() -> list[str]:
    """Return the Pythons of this machine, one of each version that is supported."""
    found = {}
    homes = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep)]
    homes += sorted((Path.home() / ".pyenv" / "versions").glob("*/bin"))
    for minor in MINORS:
        name = f"python3.{minor}"
        places = [path for home in homes if (path := shutil.which(name, path=str(home))) is not None]
        works = (
            path
            for path in places
            if subprocess.run([path, "-c", "import venv, ssl"], capture_output=True).returncode == 0
        )
        first = next(works, None)
        if first is not None:
            found[minor] = first
    return list(found.values())


def lowest(wheel: Path, extras: tuple[str, ...] = ()) -> list[str]:
    """Return the lowest version of each dependency, as its wheel states them; also of those that extras bring."""
    with ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    needed = re.findall(r"^Requires-Dist: ([\w-]+(?:\[\w+\])?)\s*([^;\n]*)(?:;\s*extra == .(\w+).)?$", text, re.M)
    wanted = {"", *extras, *(("client",) if "serve" in extras else ())}
    bounds = ((name, re.search(r">=([\d.]+)", said)) for name, said, extra in needed if extra in wanted)
    return [f"{name}=={bound[1]}" for name, bound in bounds if bound is not None]


def try_on(python: str, wheel: Path, pinned: list[str], extras: tuple[str, ...] = ()) -> str:
    """Install and call; return what to say of it."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        subprocess.run([python, "-m", "venv", home / "venv"], check=True)
        inside = str(home / "venv" / "bin" / "python")
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "PARETOSCOUT", "PYTHON"))
        }
        environment = {**kept, "NUMBA_CACHE_DIR": str(home / "cache")}

        def call(*arguments: str) -> str:
            done = subprocess.run([inside, *arguments], cwd=home, env=environment, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{' '.join(arguments)}\n{done.stdout}{done.stderr}")
            return done.stdout

        call(*PIP, str(wheel.resolve()) + (f"[{','.join(extras)}]" if extras else ""), *pinned)
        if extras:
            call("-c", USE_EXTRAS)
        began = time.perf_counter()
        assert "8 front, 8 dominated" in call("-m", "paretoscout", "demo")
        seconds = time.perf_counter() - began
        call("-c", STUDY)
        call("-m", "paretoscout", *BENCH)
        versions = (
            "from importlib.metadata import version; print(*(f'{n} {version(n)}' for n in ('numpy', 'scipy', 'numba')))"
        )
        return f"first demo {seconds:.1f} s; {call('-c', versions).strip()}"


def main() -> None:
    """Try it on each Python."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", action="append", help="Default: the one of each version that is found.")
    parser.add_argument("--lowest", action="store_true")
    options = parser.parse_args()
    failed = False
    for python in options.python or pythons():
        version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.strip()
        try:
            said = try_on(python, options.wheel, lowest(options.wheel) if options.lowest else [])
            if options.lowest:
                said += "; with extras " + try_on(python, options.wheel, lowest(options.wheel, EXTRAS), EXTRAS)
        except RuntimeError as problem:
            no_wheels = "No matching distribution found for" in str(problem)
            said = f"not tried: {str(problem).strip().splitlines()[-1]}" if no_wheels else f"FAILED: {problem}"
            failed = failed or not no_wheels
        print(f"{version}: {said}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
