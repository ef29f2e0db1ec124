"""Run the examples of docs/examples as they are printed, and put what came out into their pages.

Each page has commands, an empty or old block of output after the last of them, and a picture. `make examples` takes about
ten minutes; machines differ, so the numbers do too.
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


def run(page: Path, folder: Path) -> str:
    """Run all commands of a page in a folder; return what the last of them printed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    around = {**os.environ, "PATH": path, "COLUMNS": "120", "PARETOSCOUT_BUDGET": "none"}
    printed = ""
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
        done = subprocess.run(
            ["bash", "-euc", block], cwd=folder, env=around, stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        printed = done.stdout
    return "\n".join(line.rstrip() for line in printed.splitlines()) + "\n"


def main() -> None:
    for name in sys.argv[1:] or sorted(page.stem for page in PAGES.glob("*.md") if "```text" in page.read_text()):
        page = PAGES / f"{name}.md"
        with TemporaryDirectory() as folder:
            print(f"{name} ...", flush=True)
            printed = run(page, Path(folder))
            print(printed)
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, PAGES / "images" / picture.name)
        before, _, rest = page.read_text(encoding="utf-8").partition("```text\n")
        page.write_text(f"{before}```text\n{printed}```{rest.partition('```')[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
