"""Every Python example in the documents is run, and every command in the README, the short pages and the guides too."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner
from conftest import PATIENCE

import paretoscout as ps
from paretoscout import Study, algorithms
from paretoscout.cli.main import main

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.md"))
#: Run to the end by test_examples.py and test_web_shop.py.
QUESTIONS = ("README", "is-a-faster", "which-compressor", "which-model", "web-shop")
#: Blocks of commands for a server: run by test_service_docs.py.
SERVER = "http://127.0.0.1:8765"
#: Folders of pages all of whose commands run.
SHORT = ("tutorial", "how-to", "concepts", "coming-from", "research")
PAGES = sorted((ROOT / "docs").rglob("*.md"))
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix().removeprefix("docs/")


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_python_examples_run(document: Path, tmp_path: Path) -> None:
    code = "\n".join(blocks(document, "python"))
    if not code:
        pytest.skip("no Python in this document")
    script = tmp_path / "example.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_and_show_what_came_out(path: Path, tmp_path: Path) -> None:
    """If what they show is old: `make notebooks`."""
    assert path.stat().st_size < 300_000
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert {output["output_type"] for cell in cells for output in cell["outputs"]} <= {"stream", "execute_result"}
    script = tmp_path / "notebook.py"
    script.write_text("\n".join("".join(cell["source"]) for cell in cells))
    run = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    printed = "".join("".join(output.get("text", "")) for cell in cells for output in cell["outputs"])
    assert set(re.findall("[A-Za-z]+", done.stdout)) == set(re.findall("[A-Za-z]+", printed))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with `paretoscout` on the path."""
    monkeypatch.chdir(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "paretoscout").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m paretoscout "$@"\n')
    (programs / "paretoscout").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]))
    return tmp_path


def plain(block: str) -> bool:
    """Whether a block is nothing but our commands, which run here and now; others need a shell."""
    lines = [line for line in block.splitlines() if not line.startswith(("#", "make "))]
    return all(line.startswith("paretoscout ") and " | " not in line for line in lines)


@pytest.mark.parametrize(
    "document",
    [
        ROOT / "README.md",
        *(
            ROOT / "docs" / name
            for name in (
                "studies.md",
                "bench.md",
                "growth.md",
                "blocks.md",
                "sweeps.md",
                "tradeoffs.md",
                "readers.md",
                "gate.md",
            )
        ),
        *(
            page
            for page in PAGES
            if page.parent.name in SHORT and any(SERVER not in each for each in blocks(page, "sh"))
        ),
    ],
    ids=named,
)
def test_commands_run(document: Path, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As printed. A bench has a budget: on a busy machine it may end undecided, which is no error."""
    monkeypatch.setenv("PARETOSCOUT_BUDGET", "20")
    script = installed / "bin" / "paretoscout"
    ours = script.read_text().replace("exec ", "")
    script.write_text(f'{ours}code=$?\n[ "$1" = bench ] && [ $code = 3 ] && exit 0\nexit $code\n')
    commands = [block for block in blocks(document, "sh") if SERVER not in block]
    assert commands
    if document.name == "blocks.md":  # its first example makes the table that the commands read
        subprocess.run([sys.executable, "-c", blocks(document, "python")[0]], check=True, timeout=PATIENCE)
    for block in commands:
        if not plain(block):
            done = subprocess.run(
                ["bash", "-euc", block], capture_output=True, text=True, timeout=PATIENCE, check=False
            )
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
            continue
        for line in block.splitlines():
            if line.startswith("paretoscout "):
                shown = CliRunner().invoke(main, shlex.split(line, comments=True)[1:], catch_exceptions=False)
                allowed = (0, 3) if line.startswith("paretoscout bench ") else (0,)
                assert shown.exit_code in allowed, f"{line}\n{shown.output}"


@pytest.mark.parametrize(
    "document", [page for page in EXAMPLES if page.stem not in QUESTIONS], ids=lambda page: page.stem
)
def test_examples_of_bench_run(document: Path, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As printed, with a budget; `make examples` runs them to the end."""
    needs = {"compression": ["gzip", "bzip2", "xz", "zstd", "tar"], "compiler-flags": ["cc"]}.get(document.stem, [])
    if missing := [program for program in needs if shutil.which(program) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    monkeypatch.setenv("PARETOSCOUT_BUDGET", "4")
    *before, last = blocks(document, "sh")
    for block in before:
        subprocess.run(["bash", "-euc", block], check=True, timeout=PATIENCE)
    done = subprocess.run(["bash", "-euc", last], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "left out" not in done.stdout
    shown = blocks(document, "text")[0]
    assert "are the front" in shown
    assert "undecided" not in shown


def test_the_page_of_the_demo_shows_what_it_prints(tmp_path: Path) -> None:
    """The output is the real one: verdicts and numbers are the same for the same seed."""
    shown = blocks(ROOT / "docs" / "tutorial" / "demo.md", "text")[0]
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


def test_every_page_is_in_a_table_of_contents() -> None:
    """Else `make site` fails. Pages of research belong to docs/research/index.md, guides to docs/how-to/index.md."""
    listed = {
        (page.parent / f"{entry.split('<')[-1].rstrip('>')}.md").resolve()
        for page in PAGES
        for block in re.findall(r"^```{toctree}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        for entry in block.splitlines()
        if entry and not entry.startswith(":")
    }
    assert set(map(Path.resolve, PAGES)) - listed == {ROOT.resolve() / "docs" / "index.md"}


def test_every_picture_of_a_concept_has_a_dark_twin_and_is_shown() -> None:
    """If not: `make pictures`."""
    folder = ROOT / "docs" / "images" / "concepts"
    light = {path.name for path in folder.glob("*.svg") if not path.stem.endswith("-dark")}
    assert {path.name.replace("-dark", "") for path in folder.glob("*-dark.svg")} == light
    written = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "concepts").glob("*.md"))
    assert set(re.findall(r"images/concepts/([\w-]+\.svg)", written)) == light


#: What makes the pictures that have no line of their own below them, and whose names stand in no block of code.
MAKERS = {
    "demo": "paretoscout demo",
    "fig": "paretoscout reproduce",
    "growth": "make growth",
    "real-contexts": "make contexts",
    "tutorial": "paretoscout plot",
}


def test_every_page_with_a_picture_names_what_makes_it() -> None:
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        code = "".join(re.findall(r"^```.*?^```", text, re.M | re.S))
        for target, below in re.findall(r"^!\[.*\]\((\S+)\)\n\n(.*)$", text, re.M):
            name = Path(target).name
            if (
                name == "architecture.svg"
                or name in code
                or re.match(r"\*(Made by|One of the studies of) `.+`\.\*$", below)
            ):
                continue
            makers = [MAKERS[begin] for begin in MAKERS if name.startswith(begin)]
            assert any(maker in text for maker in makers), f"{document}: {name}"


def test_every_public_name_is_in_the_reference() -> None:
    """Each name of `ps.__all__`, and of the modules there, is on a page of docs/reference/python."""
    written = "".join(
        page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference" / "python").glob("*.md")
    )
    words = set(re.findall(r"\w+", written))
    modules = [ps, ps.algorithms, ps.estimators, ps.geometry, ps.problems]
    names = {name for module in modules for name in getattr(module, "__all__", ()) or public(module)}
    assert names - words - {"Settings"} == set()
    for module in (ps.errors, ps.plots, ps.theory):  # all of their names, by automodule
        assert f".. automodule:: {module.__name__}\n   :members:\n" in written


def public(module: ModuleType) -> list[str]:
    """Names that a module without `__all__` defines itself."""
    return [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__ and name[0] != "_"
    ]


def test_the_tables_of_the_page_of_algorithms_are_as_generated() -> None:
    """If not: `make algorithms`."""
    page = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
    assert runpy.run_path(str(ROOT / "tools" / "algorithms_page.py"))["renewed"](page) == page
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    listed = {row[0].strip("| `"): row for row in rows if len(row) == 5}
    assert set(listed) == set(algorithms.available())
    for name, row in listed.items():
        record = algorithms.get(name)
        assert row[1] == record.kind
        assert row[3] == ("yes" if record.guarantees else "no")
        assert row[4].rstrip(" |") == record.paper


def test_the_guide_names_every_key_of_the_json_of_a_standing() -> None:
    page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")

    def first_cells(heading: str) -> set[str]:
        rows = page.split(f"| {heading} | what it is |\n|---|---|\n")[1].split("\n\n")[0].splitlines()
        return {name for row in rows for name in re.findall(r"`(\w+)", row.split(" | ")[0])}

    said = Study(["a", "b"], {"quality": "max"}, sigma=0.1, storage="memory").standing().as_dict()
    assert first_cells("key") == {*said, "remaining"}
    assert first_cells("key of `options[]`") == set(said["options"][0])
