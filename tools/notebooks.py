"""Run the notebooks of the docs and keep what they show: `make notebooks`. Then look at it."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parent.parent / "docs" / "notebooks"
MOST_BYTES = 300_000


def main() -> None:
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
        for cell in notebook.cells:  # nothing that differs from run to run without a reason
            cell.metadata.clear()
        notebook.metadata = {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
        nbformat.write(notebook, path)
        size = path.stat().st_size
        print(f"{path.name}: {size / 1000:.0f} kB")
        if size > MOST_BYTES:
            sys.exit(f"{path.name} has {size} bytes, more than {MOST_BYTES}")


if __name__ == "__main__":
    main()
