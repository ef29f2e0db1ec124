"""Every Python example in the documents is run, and every command in the README too."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from paretoscout.cli.main import main

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_examples_run(document: Path, tmp_path: Path) -> None:
    code = "\n".join(blocks(document, "python"))
    if not code:
        pytest.skip("no Python in this document")
    script = tmp_path / "example.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, "-W", "error", script], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def test_readme_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.csv").write_text("variant,ms,mb\n" + "a,10,5\na,11,5\na,12,5\nb,40,9\nb,41,9\nb,42,9\n")
    commands = [line for block in blocks(ROOT / "README.md", "sh") for line in block.splitlines()]
    ours = [line for line in commands if line.startswith("paretoscout ")]
    assert ours
    for line in ours:
        done = CliRunner().invoke(main, shlex.split(line, comments=True)[1:], catch_exceptions=False)
        assert done.exit_code == 0, f"{line}\n{done.output}"


def test_readme_shows_what_the_demo_prints(tmp_path: Path) -> None:
    """The output in the README is the real one: verdicts and numbers are the same for the same seed."""
    shown = blocks(ROOT / "README.md", "text")[0]
    done = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "demo.png")], catch_exceptions=False)
    printed = {line.rstrip() for line in done.output.splitlines()}
    for line in shown.splitlines():
        if not line.startswith("picture:"):
            assert line.rstrip() in printed, line


def test_links_in_the_documents_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), f"{document.name}: {target}"
