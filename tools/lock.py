"""Write `deploy/requirements.txt`: the packages of the image of a server, with hashes. PIP_INDEX_URL names the index.

The newest versions that fit are taken, for the Python of the image. A package has the hashes of all its wheels, so that
the image can be built for any processor.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
PYTHON = "3.12"  # that of deploy/Dockerfile
EXTRAS = "serve,postgres"
BUILD = ("hatchling",)  # with which the image builds this package
INDEX = os.environ.get("PIP_INDEX_URL", "")
LINK = re.compile(r'<a [^>]*href="([^"#]+)#sha256=([0-9a-f]{64})"[^>]*>\s*([^<\s]+)\s*</a>')


def resolved() -> dict[str, str]:
    """Return the versions that pip would install, by name."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        where = ["--target", folder, "--python-version", PYTHON, "--only-binary", ":all:"]
        words = ["--dry-run", "--quiet", "--ignore-installed", "--report", str(report), *where]
        wheel = _wheel(folder)
        subprocess.run([sys.executable, "-m", "pip", "install", *words, f"{wheel}[{EXTRAS}]", *BUILD], check=True)
        found = json.loads(report.read_text("utf-8"))["install"]
    versions = {_plain(each["metadata"]["name"]): each["metadata"]["version"] for each in found}
    del versions["paretoscout"]
    return versions


def _wheel(folder: str) -> Path:
    words = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, str(ROOT)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    (wheel,) = Path(folder).glob("paretoscout-*.whl")
    return wheel


def hashes(name: str, version: str) -> list[str]:
    """Return the hashes of all wheels of a version."""
    with urllib.request.urlopen(f"{INDEX}/{name}/", timeout=60) as page:
        links = LINK.findall(page.read().decode("utf-8"))
    parts = [(hash_, *html.unescape(file).split("-")[:2]) for _, hash_, file in links if file.endswith(".whl")]
    return sorted({hash_ for hash_, *found in parts if (_plain(found[0]), found[1]) == (name, version)})


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "deploy" / "requirements.txt")
    options = parser.parse_args()
    if not INDEX:
        raise SystemExit("the variable PIP_INDEX_URL must be the address of a package index, as pip takes it")
    lines = [f"# What deploy/Dockerfile installs, for Python {PYTHON}: written by tools/lock.py."]
    for name, version in sorted(resolved().items()):
        found = hashes(name, version)
        if not found:
            raise SystemExit(f"no wheel of {name} {version} in {INDEX}")
        lines.append(f"{name}=={version} \\")
        lines += [f"    --hash=sha256:{each} \\" for each in found[:-1]]
        lines.append(f"    --hash=sha256:{found[-1]}")
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{options.out}: {len([text for text in lines if '==' in text])} packages")


if __name__ == "__main__":
    main()
