"""What the first minute costs: install into an empty environment, then the first demo, bench and ask, with empty caches.

The environment is made of a wheel that is built of this copy. Nothing is carried over from one command to the next: each has a cache
folder of its own, which is empty. Commands run on a terminal, as people would see them, and their clock stops at the first verdict.
Prints tables in Markdown, writes JSON. Takes about two minutes, of which installing is most.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import resource
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from paretoscout.shown import markdown_table

#: What a table shows once an option has its verdict.
VERDICTS = ("★", "×", "≡")
#: The command of `paretoscout`, which writes down for how long it compiled.
COUNTED = """
import atexit, sys, time
from numba.core import event
spent, depth = [0.0], [0]
class Outermost(event.Listener):
    def on_start(self, _):
        depth[0] += 1
        if depth[0] == 1:
            self.began = time.perf_counter()
    def on_end(self, _):
        depth[0] -= 1
        if not depth[0]:
            spent[0] += time.perf_counter() - self.began
event.register("numba:compile", Outermost())
def told(path=sys.argv.pop(1)):
    with open(path, "a") as file:
        print(spent[0], file=file)
atexit.register(told)
from paretoscout.cli.main import main
sys.argv[0] = "paretoscout"
main()
"""
SOURCE = Path(__file__).parent.parent
#: Between these are the tables of the page.
BEGIN, END = "<!-- measured: written by make first-minute -->", "<!-- end -->"
TARGET_SECONDS, TARGET_COMPILING = 10.0, 5.0
LIGHT_REPEATS = 5


@dataclass(frozen=True)
class First:
    """What a first call cost."""

    what: str
    seconds: float  # until the first verdict
    to_the_end: float
    processor: float  # of it, and of what it ran: on a busy machine it waits for the rest
    compiling: float


def _processor() -> float:
    """Return for how long the processor worked for processes that this one started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Fresh:
    """An environment into which only paretoscout was installed, and an empty folder to work in."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        venv.create(folder / "venv", with_pip=True)
        self.python = str(folder / "venv" / "bin" / "python")
        self.bare = self.sizes()
        self.processor: dict[str, float] = {}  # seconds of it, by cache
        began = time.perf_counter()
        subprocess.run([self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel], check=True)
        self.install_seconds = time.perf_counter() - began

    def sizes(self) -> dict[str, float]:
        """Return megabytes by what lies in site-packages; the libraries that came with a package count as its own."""
        packages = next((self.folder / "venv").glob("lib/python*/site-packages"))
        sizes: dict[str, float] = {}
        for place in packages.iterdir():
            files = [place, *(place.rglob("*") if place.is_dir() else ())]
            owner = place.name.split("-")[0].split(".")[0].lower()
            size = sum(file.lstat().st_size for file in files if file.is_file()) / 1e6
            sizes[owner] = sizes.get(owner, 0.0) + size
        return sizes

    def environment(self, cache: str) -> dict[str, str]:
        """Return variables with an empty cache, and without what makes this benchmark's own kernels."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "PARETOSCOUT"))}
        return {**inherited, "NUMBA_CACHE_DIR": str(self.folder / cache), "TERM": "xterm", "COLUMNS": "120"}

    def call(self, cache: str, *arguments: str, tell: str | None = None) -> tuple[str, float, float]:
        """Run paretoscout on a terminal; return what it printed, and the seconds to its first verdict and to its end."""
        ours, theirs = pty.openpty()
        command = [self.python, "-c", COUNTED, str(self.folder / f"{cache}.compiling"), *arguments]
        before, began, first, printed = _processor(), time.perf_counter(), 0.0, b""
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment(cache),
            stdin=subprocess.DEVNULL if tell is None else subprocess.PIPE,
            stdout=theirs,
            stderr=theirs,
        ) as process:
            os.close(theirs)
            if process.stdin is not None:
                process.stdin.write((tell or "").encode())
                process.stdin.close()
            while True:
                try:
                    some = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                printed += some
                if not first and any(mark in printed.decode(errors="replace") for mark in VERDICTS):
                    first = time.perf_counter() - began
        os.close(ours)
        seconds = time.perf_counter() - began
        self.processor[cache] = self.processor.get(cache, 0.0) + _processor() - before
        text = printed.decode(errors="replace")
        if process.returncode:
            raise RuntimeError(f"paretoscout {' '.join(arguments)} ended with {process.returncode}:\n{text}")
        return text, first, seconds

    def first(self, what: str, cache: str, seconds: float, to_the_end: float) -> First:
        """Return what all calls with a cache cost so far."""
        compiling = sum(map(float, (self.folder / f"{cache}.compiling").read_text().split()))
        return First(what, seconds, to_the_end, self.processor[cache], compiling)

    def light(self, *arguments: str) -> float:
        """Return the median seconds of Python with these arguments."""
        seconds = []
        for _ in range(LIGHT_REPEATS):
            began = time.perf_counter()
            subprocess.run([self.python, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=self.folder)
            seconds.append(time.perf_counter() - began)
        return sorted(seconds)[LIGHT_REPEATS // 2]


def first_demo(fresh: Fresh) -> First:
    """The front of 16 settings of an optimiser."""
    _, first, seconds = fresh.call("demo", "demo")
    return fresh.first("paretoscout demo", "demo", first, seconds)


def first_bench(fresh: Fresh) -> First:
    """Three levels of gzip."""
    (fresh.folder / "numbers.txt").write_text("\n".join(map(str, range(300_000))))
    command = ["gzip -{level} -kf numbers.txt", "-L", "level=1,6,9", "-m", "time", "-m", "size@numbers.txt.gz"]
    _, first, seconds = fresh.call("bench", "bench", *command)
    return fresh.first("paretoscout bench, 3 levels of gzip", "bench", first, seconds)


def first_ask(fresh: Fresh) -> tuple[First, First]:
    """A new study, until it says what to measure, and until its first verdict."""
    study = ["create", "--arm", "a", "--arm", "b", "--arm", "c", "-m", "time:min", "--eps", "time=1"]
    created = fresh.call("ask", *study)[2]
    asked, _, asking = fresh.call("ask", "ask", "-n", "60")
    began = created + asking
    first_trial = fresh.first("paretoscout create, ask: first trial", "ask", began, began)
    trials = [line.split() for line in asked.splitlines() if line.strip()]
    outcomes = (f"{number} time={10 * ord(arm) + int(number) % 7 / 7:.3f}\n" for number, arm in trials)
    telling = fresh.call("ask", "tell", "-", tell="".join(outcomes))[2]
    _, shown, seconds = fresh.call("ask", "status")
    if not shown:
        raise RuntimeError("60 outcomes gave no verdict")
    what = "paretoscout create, ask, tell, status: 60 trials"
    return first_trial, fresh.first(what, "ask", began + telling + shown, began + telling + seconds)


def measure(folder: Path) -> dict[str, Any]:
    """Build, install, and call everything for the first time."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "-w", folder, SOURCE],
        check=True,
    )
    fresh = Fresh(folder, next(folder.glob("*.whl")))
    added = {name: size - fresh.bare.get(name, 0.0) for name, size in fresh.sizes().items()}
    return {
        "python": sys.version.split()[0],
        "install": {"seconds": fresh.install_seconds, "megabytes": added},
        "light": {
            "import paretoscout": fresh.light("-c", "import paretoscout"),
            "paretoscout --help": fresh.light("-m", "paretoscout", "--help"),
        },
        "first": [asdict(first) for first in (first_demo(fresh), first_bench(fresh), *first_ask(fresh))],
    }


def tables(measured: dict[str, Any]) -> str:
    """Return what was measured as tables."""
    sizes = sorted(measured["install"]["megabytes"].items(), key=lambda pair: -pair[1])
    small = sum(size for _, size in sizes if size < 2.0)
    large = [(name, f"{size:.0f} MB") for name, size in sizes if size >= 2.0]
    rows = [("all", f"{sum(size for _, size in sizes):.0f} MB"), *large, ("all others", f"{small:.0f} MB")]
    began = [
        ("pip install paretoscout", f"{measured['install']['seconds']:.1f} s", "", "", ""),
        *((what, f"{seconds:.2f} s", "", "", "") for what, seconds in measured["light"].items()),
        *(
            (row["what"], *(f"{row[each]:.1f} s" for each in ("seconds", "to_the_end", "compiling", "processor")))
            for row in measured["first"]
        ),
    ]
    header = ("for the first time", "to the first verdict", "to the end", "of which compiling", "of the processor")
    return f"{markdown_table(header, began)}\n\n{markdown_table(('installed', 'size'), rows)}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and say which target was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path, help="the page whose tables are written again")
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        measured = measure(Path(folder))
    print(tables(measured))
    for row in measured["first"]:
        if row["seconds"] > TARGET_SECONDS or row["compiling"] > TARGET_COMPILING:
            print(f"missed: {row['what']}: {TARGET_SECONDS:g} s, of which compiling {TARGET_COMPILING:g} s")
    if options.page is not None:
        head, rest = options.page.read_text(encoding="utf-8").split(BEGIN)
        written = f"{head}{BEGIN}\n\n{tables(measured)}\n\n{END}{rest.split(END)[1]}"
        options.page.write_text(written, encoding="utf-8")
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
