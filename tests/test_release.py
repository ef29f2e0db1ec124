"""What a release says of itself agrees: version, changelog, citation, licences, and what the packages hold."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

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
        name, least = re.findall(r"^([\w-]+)>=([\d.]+)", dependency)[0]
        if name in ("numpy", "scipy"):
            assert f"| {name} | {least} or newer |" in said


def test_numba_has_an_upper_bound_that_is_tested() -> None:
    """Kernels rest on names inside numba: the newest version that is taken is the one that tests run with."""
    import numba

    (needed,) = (each for each in PROJECT["dependencies"] if each.startswith("numba"))
    least, below = re.fullmatch(r"numba>=([\d.]+),<([\d.]+)", needed).groups()  # type: ignore[union-attr]
    major, minor = (int(part) for part in below.split("."))
    assert numba.__version__.startswith(f"{major}.{minor - 1}.")
    said = (ROOT / "docs/support.md").read_text(encoding="utf-8")
    assert f"| numba | {least} to {major}.{minor - 1} | {least} and the newest |" in said


@pytest.mark.parametrize(
    ("name", "least"),
    [("python-multipart", (0, 0, 18)), ("starlette", (0, 47, 2)), ("h11", (0, 16)), ("jinja2", (3, 1, 6))],
)
def test_versions_with_known_faults_are_not_taken(name: str, least: tuple[int, ...]) -> None:
    needed = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["serve"]]
    (bound,) = (found[1] for found in (re.fullmatch(rf"{name}>=([\d.]+)", each) for each in needed) if found)
    assert tuple(int(part) for part in bound.split(".")) >= least


def test_lower_bounds_are_read_of_the_core_and_of_extras(tmp_path: Path) -> None:
    """What `make dist` pins when it tries the oldest versions."""
    import sys
    from zipfile import ZipFile

    sys.path.insert(0, str(ROOT / "tools"))
    try:
        try_wheel = importlib.import_module("try_wheel")
    finally:
        sys.path.pop(0)
    lines = [f"Requires-Dist: {need}" for need in ("numba<0.69,>=0.61", "click>=8.1")]
    for extra, needs in PROJECT["optional-dependencies"].items():
        lines += [f"Requires-Dist: {need}; extra == '{extra}'" for need in needs]
    with ZipFile(tmp_path / "one.whl", "w") as wheel:
        wheel.writestr("one.dist-info/METADATA", "\n".join(lines) + "\n")
    assert try_wheel.lowest(tmp_path / "one.whl") == ["numba==0.61", "click==8.1"]
    pinned = try_wheel.lowest(tmp_path / "one.whl", try_wheel.EXTRAS)
    assert {"starlette==0.47.2", "h11==0.16", "httpx2==2.0", "psycopg[binary]==3.1.8", "pyyaml==6.0"} <= set(pinned)
    tried = set(PROJECT["optional-dependencies"]["all"][0].partition("[")[2].rstrip("]").split(","))
    assert tried == set(try_wheel.EXTRAS)


def test_the_bill_of_materials_is_that_of_a_server() -> None:
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    installed = rules.index(
        '--python dist/empty/bin/python install -q --disable-pip-version-check "$$(echo dist/*.whl)[serve,postgres]"'
    )
    assert installed < rules.index("cyclonedx-py environment dist/empty/bin/python")


def test_workflows_check_pull_requests_and_run_everything_each_night() -> None:
    def read(name: str) -> dict[str, Any]:
        found: dict[str, Any] = yaml.load((ROOT / ".github/workflows" / name).read_text("utf-8"), yaml.BaseLoader)
        return found

    checks, nightly = read("checks.yml"), read("nightly.yml")
    assert "pull_request" in checks["on"]
    (runs,) = (step["run"] for step in checks["jobs"]["check"]["steps"] if step.get("run", "").startswith("make"))
    assert runs == "make check"
    newest = re.findall(r"3\.\d+", (ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    most = max(newest, key=lambda text: int(text[2:]))
    assert checks["jobs"]["check"]["strategy"]["matrix"]["python"] == ["3.11", most]
    systems = checks["jobs"]["library"]["strategy"]["matrix"]["system"]
    assert {system.partition("-")[0] for system in systems} == {"macos", "windows"}
    named = re.findall(r"tests/test_\w+\.py", str(checks["jobs"]["library"]))
    assert named
    assert all((ROOT / name).exists() for name in named)
    assert "schedule" in nightly["on"]
    assert any(step.get("run") == "make test" for step in nightly["jobs"]["test"]["steps"])
    assert "actionlint" in (ROOT / "Makefile").read_text("utf-8").partition("\nstyle:")[2].partition("\n\n")[0]


def test_where_to_report_a_fault_is_said() -> None:
    said = (ROOT / "SECURITY.md").read_text("utf-8").partition("## How to report one")[2].partition("\n## ")[0]
    assert "Report a vulnerability" in said
    assert "git log" in said, "and where to write without a public repository"


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / ".github/workflows").iterdir()))
def test_actions_are_pinned_by_hash(name: str) -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows" / name).read_text(encoding="utf-8"))
    jobs = workflow["jobs"]
    assert workflow["permissions"] == {"contents": "read"}
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
    if name != "release.yml":
        return
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
