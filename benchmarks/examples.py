"""Run the examples of docs/examples as they are printed, and put what came out into their pages.

Each page has blocks of commands. The block of output after some of them, empty or old, gets what these commands print. Some
pages have a picture. `make examples` takes about ten minutes; machines differ, so the numbers do too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

PAGES = Path(__file__).parent.parent / "docs" / "examples"
#: Needs a server: tests/test_web_shop.py runs it.
SERVED = "web-shop"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```", re.M | re.S)


def run(block: str, folder: Path) -> str:
    """Run a block of commands in a folder; return what they printed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    around = {**os.environ, "PATH": path, "COLUMNS": "120", "PARETOSCOUT_BUDGET": "none"}
    done = subprocess.run(
        ["bash", "-euc", block], cwd=folder, env=around, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"


def renewed(page: str, folder: Path) -> str:
    """Run all commands of a page in a folder; return the page with what they print."""
    printed = ""

    def renew(block: re.Match[str]) -> str:
        nonlocal printed
        if block[1] == "text":
            return f"```text\n{printed}```"
        printed = run(block[2], folder)
        print(printed, flush=True)
        return block[0]

    return BLOCK.sub(renew, page)


def main() -> None:
    shown = {page.stem for page in PAGES.glob("*.md") if "```text" in page.read_text()}
    for name in sys.argv[1:] or sorted(shown - {SERVED}):
        page = PAGES / f"{name}.md"
        with TemporaryDirectory() as folder:
            print(f"{name} ...", flush=True)
            page.write_text(renewed(page.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, PAGES / "images" / picture.name)


if __name__ == "__main__":
    main()
