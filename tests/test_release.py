"""What a release says of itself agrees: version, changelog, citation, licences, and what the packages hold."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from paretoscout.version import __version__

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DATA = ROOT / "src/paretoscout/problems/data"


def test_the_version_is_said_everywhere() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == __version__
    versions = re.findall(r"^## (\S+)(?: - (\S+))?$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert versions[0] == ("Unreleased", "")
    assert versions[1] == (__version__, str(cited["date-released"]))


def test_the_paper_is_cited() -> None:
    from paretoscout import algorithms

    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    (paper,) = cited["references"]
    said = algorithms.get("pfiwr").paper
    assert paper["title"].lower() in said.lower()
    assert all(author["family-names"] in said for author in paper["authors"])


def test_every_bundled_table_has_its_licence() -> None:
    told = re.findall(r"`([\w.]+)`", (DATA / "LICENSES.md").read_text(encoding="utf-8"))
    assert {path.name for path in DATA.iterdir() if path.is_file()} - {"LICENSES.md"} <= set(told)
    for pattern in PROJECT["license-files"]:
        assert (ROOT / pattern).is_file(), pattern


def test_pythons_are_those_that_are_said_to_be_supported() -> None:
    listed = [entry.rsplit(" ", 1)[1] for entry in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", entry)]
    assert PROJECT["requires-python"] == f">={listed[0]}"
    said = (ROOT / "docs/support.md").read_text(encoding="utf-8")
    assert f"| Python | {listed[0]} or newer | {', '.join(listed)} |" in said
    for dependency in PROJECT["dependencies"]:
        name, least = dependency.split(">=")
        if name in ("numpy", "scipy", "numba"):
            assert f"| {name} | {least} or newer |" in said


def test_actions_are_pinned_by_hash() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    jobs = workflow["jobs"]
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
    assert jobs["publish"]["environment"] == "pypi"
    assert set(jobs["publish"]["needs"]) == {"build", "test"}
    trusted = {name for name, job in jobs.items() if "id-token" in job.get("permissions", {})}
    assert trusted == {"publish"}, "nobody else may publish"


def test_the_packages_hold_what_they_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tarfile
    from zipfile import ZipFile

    build = pytest.importorskip("hatchling.build", reason="hatchling builds the packages; make dist installs it")
    monkeypatch.chdir(ROOT)
    with ZipFile(tmp_path / build.build_wheel(str(tmp_path))) as wheel:
        held = set(wheel.namelist())
    assert {"paretoscout/py.typed", "paretoscout/study/standing.schema.json"} <= held
    assert {f"paretoscout/problems/data/{path.name}" for path in DATA.iterdir() if path.is_file()} <= held
    assert f"paretoscout-{__version__}.dist-info/licenses/LICENSE" in held
    assert not any(name.startswith(("tests/", "benchmarks/")) or name.endswith(".nbi") for name in held)
    with tarfile.open(tmp_path / build.build_sdist(str(tmp_path))) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames() if "/" in name}
    assert {"tests/conftest.py", "docs/index.md", "Makefile", "CITATION.cff", "LICENSE", "CHANGELOG.md"} <= names
