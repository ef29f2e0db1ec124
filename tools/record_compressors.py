"""Record how fast and how well the compressors of Python's standard library pack source text.

Writes the data set `compressors`: one row per run, columns `option`, `time` (milliseconds to compress one
megabyte) and `size` (percent of the original).

The corpus is every .py file of the standard library of the Python that runs this script, tests left out,
joined in an order shuffled once. A run compresses a random slice of 1,000,000 bytes of it: both metrics vary
from run to run because the slices do, and the time also because machines are never quiet. Every run draws its
own slice, and each round runs every option once, in random order. Fast options compress their slice several
times and report the mean, since the clock is coarse.

The times are CPU times of one thread on one machine. They are an example of noisy measurements, not a
statement about compressors in general. The file in the package was recorded with the default arguments by
Python 3.11.7 (zlib 1.2.13, 12.6 MB of text) on a shared x86-64 Linux machine. The same seed, standard library
and libraries give the same slices and sizes again, never the same times.

    python tools/record_compressors.py --output compressors.csv
"""

import argparse
import bz2
import csv
import functools
import lzma
import random
import sysconfig
import time
import zlib
from collections.abc import Callable
from pathlib import Path

SLICE = 1_000_000  # bytes: milliseconds a slice are milliseconds a megabyte
SHORTEST = 20_000_000  # nanoseconds of CPU time that a run lasts at least
LEFT_OUT = {"__pycache__", "dist-packages", "idle_test", "site-packages", "test", "tests"}

OPTIONS: dict[str, Callable[[bytes], bytes]] = {
    **{f"zlib -{level}": functools.partial(zlib.compress, level=level) for level in (1, 4, 6, 8, 9)},
    **{f"bzip2 -{level}": functools.partial(bz2.compress, compresslevel=level) for level in (1, 9)},
    **{f"xz -{level}": functools.partial(lzma.compress, preset=level) for level in (0, 1, 3, 4, 6)},
}


def read_corpus(rng: random.Random) -> bytes:
    """The .py files of the standard library without its tests, in random order."""
    root = Path(sysconfig.get_path("stdlib"))
    paths = sorted(path for path in root.rglob("*.py") if LEFT_OUT.isdisjoint(path.relative_to(root).parts))
    rng.shuffle(paths)
    return b"".join(path.read_bytes() for path in paths)


def measure(compress: Callable[[bytes], bytes], data: bytes) -> tuple[float, float]:
    """Milliseconds of CPU time that `compress(data)` takes, and the percentage that is left of `data`."""
    runs = 0
    start = time.thread_time_ns()
    elapsed = 0
    while elapsed < SHORTEST:
        packed = compress(data)
        elapsed = time.thread_time_ns() - start
        runs += 1
    return elapsed / runs / 1e6, 100 * len(packed) / len(data)


def record(rounds: int, seed: int, output: Path) -> None:
    """Measure every option once a round and write the rows in the order of measurement."""
    rng = random.Random(seed)
    corpus = read_corpus(rng)
    with output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["option", "time", "size"])
        for _ in range(rounds):
            for option in rng.sample(list(OPTIONS), len(OPTIONS)):
                start = rng.randrange(len(corpus) - SLICE + 1)
                milliseconds, percent = measure(OPTIONS[option], corpus[start : start + SLICE])
                writer.writerow([option, f"{milliseconds:.4g}", f"{percent:.4g}"])


def main() -> None:
    """Read the arguments and record."""
    parser = argparse.ArgumentParser(description="Record time and size of Python's compressors.")
    parser.add_argument("--rounds", type=int, default=200, help="rows per option (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the slices (default: %(default)s)")
    parser.add_argument("--output", type=Path, required=True, help="CSV file to write")
    arguments = parser.parse_args()
    record(arguments.rounds, arguments.seed, arguments.output)


if __name__ == "__main__":
    main()
