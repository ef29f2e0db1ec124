"""Which part may import which, how heavy that is, and what is public."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LONG
from hypothesis import settings

import paretoscout as ps

PACKAGE = Path(ps.__file__).parent

#: One-way: a part imports only from parts above it. docs/architecture.md draws this.
ALLOWED: dict[str, set[str]] = {
    "defaults": set(),
    "version": set(),
    "errors": set(),
    "engines": {"checks", "errors"},
    "shown": set(),
    "notebook": {"errors", "shown"},
    "checks": {"errors"},
    "laws": set(),
    "kernels": {"laws"},
    "practical": {"kernels"},
    "tradeoffs": {"checks", "errors", "kernels"},
    "statement": {"checks", "defaults", "errors", "kernels", "tradeoffs"},
    "problem": {"checks", "defaults", "errors", "kernels", "shown", "statement"},
    "geometry": {"checks", "errors", "kernels", "practical", "tradeoffs"},
    "theory": {"checks", "errors", "geometry"},
    "diagnostics": {"kernels", "laws"},
    "files": {"errors"},
    "streams": set(),
    "algorithms": {"checks", "errors", "kernels", "laws"},
    "estimators": {"checks", "defaults", "errors", "kernels", "streams"},
    "extend": {"algorithms", "errors", "kernels"},
    "environments": {"kernels", "problem", "statement"},
    "frames": {"checks", "errors", "kernels", "shown"},
    "problems": {"checks", "errors", "frames", "kernels", "problem", "statement"},
    "start": {"checks", "algorithms", "errors", "kernels", "practical", "problem", "statement"},
    "guarantee": {"algorithms", "kernels", "shown", "start", "statement", "tradeoffs"},
    "verdicts": {
        "diagnostics",
        "errors",
        "frames",
        "guarantee",
        "kernels",
        "notebook",
        "practical",
        "shown",
        "statement",
        "tradeoffs",
    },
    "answer": {"guarantee", "statement", "verdicts"},
    "pytest_plugin": {"__init__", "answer", "errors", "gate", "shown", "statement", "verdicts"},
    "gate": {"answer", "errors", "shown", "verdicts"},
    "readers": {"checks", "errors", "frames", "guarantee", "kernels", "laws", "shown", "statement", "verdicts"},
    "written": {"algorithms", "checks", "errors"},
    "stopping": {"errors"},
    "storage": {"errors", "shown", "stopping"},
    "session": {"checks", "algorithms", "errors", "files", "kernels", "streams"},
    "simulation": {
        "practical",
        "checks",
        "algorithms",
        "defaults",
        "engines",
        "environments",
        "errors",
        "files",
        "geometry",
        "kernels",
        "guarantee",
        "notebook",
        "problem",
        "shown",
        "start",
        "statement",
        "streams",
        "verdicts",
    },
    "plots": {"errors", "guarantee", "kernels", "shown", "simulation", "statement", "tradeoffs", "verdicts"},
    "sweeps": {
        "algorithms",
        "checks",
        "defaults",
        "engines",
        "errors",
        "frames",
        "kernels",
        "notebook",
        "problem",
        "problems",
        "shown",
        "simulation",
        "statement",
        "version",
        "written",
    },
    "study": {
        "laws",
        "practical",
        "__init__",
        "algorithms",
        "checks",
        "defaults",
        "diagnostics",
        "engines",
        "environments",
        "errors",
        "files",
        "frames",
        "kernels",
        "plots",
        "readers",
        "guarantee",
        "start",
        "statement",
        "session",
        "shown",
        "simulation",
        "stopping",
        "storage",
        "streams",
        "verdicts",
        "written",
    },
    "client": {"checks", "errors", "statement", "study"},
    "service": {
        "__init__",
        "answer",
        "checks",
        "errors",
        "kernels",
        "page",
        "shown",
        "stopping",
        "storage",
        "study",
        "written",
    },
    "planning": {
        "__init__",
        "algorithms",
        "checks",
        "defaults",
        "environments",
        "errors",
        "frames",
        "guarantee",
        "kernels",
        "notebook",
        "plots",
        "practical",
        "shown",
        "simulation",
        "start",
        "statement",
        "streams",
        "study",
    },
    "page": {
        "answer",
        "errors",
        "geometry",
        "guarantee",
        "kernels",
        "plots",
        "shown",
        "statement",
        "study",
        "tradeoffs",
        "verdicts",
    },
    "bench": {
        "page",
        "practical",
        "__init__",
        "algorithms",
        "answer",
        "checks",
        "defaults",
        "errors",
        "kernels",
        "notebook",
        "guarantee",
        "statement",
        "shown",
        "storage",
        "study",
        "verdicts",
    },
    "audit": {
        "sweeps",
        "engines",
        "practical",
        "algorithms",
        "bench",
        "errors",
        "geometry",
        "kernels",
        "problem",
        "statement",
        "problems",
        "readers",
        "shown",
        "simulation",
        "study",
        "verdicts",
    },
    "reproduce": {
        "engines",
        "__init__",
        "algorithms",
        "errors",
        "estimators",
        "geometry",
        "kernels",
        "plots",
        "problem",
        "problems",
        "shown",
        "simulation",
        "streams",
        "sweeps",
        "theory",
    },
    "cli": {
        "__init__",
        "algorithms",
        "answer",
        "audit",
        "bench",
        "checks",
        "client",
        "defaults",
        "errors",
        "frames",
        "gate",
        "planning",
        "plots",
        "guarantee",
        "page",
        "problem",
        "statement",
        "problems",
        "readers",
        "reproduce",
        "shown",
        "simulation",
        "start",
        "service",
        "storage",
        "study",
        "verdicts",
        "written",
        "sweeps",
    },
    "__main__": {"cli"},
    "__init__": {
        "algorithms",
        "client",
        "errors",
        "estimators",
        "geometry",
        "planning",
        "plots",
        "problem",
        "problems",
        "readers",
        "session",
        "simulation",
        "statement",
        "study",
        "sweeps",
        "theory",
        "verdicts",
        "version",
    },
}

#: Packages from outside that a part may import.
OUTSIDE = {
    "algorithms": {"numpy", "scipy", "sklearn"},
    "kernels": {"numpy", "numba"},
    "plots": {"numpy", "matplotlib"},
    "bench": {"numpy", "scipy"},
    "tradeoffs": {"numpy", "scipy"},
    "page": {"jinja2", "markupsafe", "numpy"},
    "diagnostics": {"numpy", "scipy"},
    "engines": {"distributed", "ray"},
    "frames": {"numpy", "yaml"},
    "cli": {"click", "pyarrow", "rich", "yaml"},
    "practical": {"numpy", "scipy"},
    "problems": {"numpy", "pooch"},
    "reproduce": {"PIL", "matplotlib", "numba", "numpy", "scipy"},
    "service": {
        "anyio",
        "fastapi",
        "h11",
        "numba",
        "prometheus_client",
        "pydantic",
        "sqlalchemy",
        "starlette",
        "uvicorn",
    },
    "client": {"httpx2"},
    "pytest_plugin": {"pytest"},
    "readers": {"numpy", "zstandard"},
    "simulation": {"checks", "numpy", "rich", "scipy"},
    "storage": {"psycopg", "sqlalchemy"},
    "study": {"numpy"},
    "sweeps": {"numba", "numpy", "pandas", "pyarrow"},
    "theory": {"numpy", "scipy"},
}


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> tuple[set[str], set[str]]:
    """Parts of this package, and packages from outside, that a file imports anywhere in it."""
    inside: set[str] = set()
    outside: set[str] = set()
    folder = path.relative_to(PACKAGE).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            outside |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            outside.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.ImportFrom):
            base = [*folder[: len(folder) - (node.level - 1)], *((node.module or "").split(".") if node.module else [])]
            inside |= {base[0]} if base else {a.name if a.name in ALLOWED else "__init__" for a in node.names}
    return inside, outside - set(sys.stdlib_module_names)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    part = part_of(path)
    inside, outside = imports(path)
    assert inside <= ALLOWED[part] | {part}
    assert outside <= OUTSIDE.get(part, {"numpy"})


def test_the_parts_are_in_one_order() -> None:
    """The allow-list has no cycle: repeatedly taking away parts that need nothing leaves none."""
    left = {part: needs - {"__init__"} for part, needs in ALLOWED.items() if part != "__init__"}
    while left:
        free = {part for part, needs in left.items() if not needs & set(left)}
        assert free, f"a cycle among {sorted(left)}"
        left = {part: needs for part, needs in left.items() if part not in free}


def test_every_part_is_listed() -> None:
    assert {part_of(path) for path in PACKAGE.rglob("*.py")} == set(ALLOWED)


@pytest.mark.parametrize(
    ("text", "home"),
    [
        ('"★"', "shown.py"),
        ('== "max" else -1', "checks.py"),
        ('"paretoscout.db"', "defaults.py"),
        ('"h": 3600.0', "written.py"),
        ('("h", 3600.0)', "shown.py"),
        ("INTERRUPTED = ", "cli/conventions.py"),
    ],
)
def test_what_is_written_once(text: str, home: str) -> None:
    """Marks, signs of directions, time spans, exit codes and defaults: a second copy would sooner or later say something else."""
    found = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if text in path.read_text("utf-8")]
    assert found == [home]


UNSEEDED = re.compile(
    r"default_rng\(\)|SeedSequence\(\)|Random\(\)|urandom|use_true_random=True|derandomize=False|np\.random\.(rand|normal|choice)"
)
DRAWS = re.compile(r"(?<![\w.])random\.(random|gauss|choices?|shuffle|uniform|randint|randrange|sample)\(")


def test_make_test_draws_the_same_numbers_every_time() -> None:
    """Property tests are derandomized unless PARETOSCOUT_LONG is set; the others seed what they draw."""
    assert settings.default is not None
    assert settings.default.derandomize is not LONG
    here = Path(__file__)
    for path in here.parent.glob("*.py"):
        source = path.read_text("utf-8")
        found = None if path == here else UNSEEDED.search(source)
        assert found is None, f"{path.name} draws without a seed: {found[0]}"
        if path != here and "SEEDED" not in source and "st.randoms" not in source:
            drawn = DRAWS.search(source)
            assert drawn is None, f"{path.name} draws from the global generator: {drawn[0]}"


def test_public_names() -> None:
    assert sorted(ps.__all__) == ps.__all__
    assert set(ps.__dir__()) == {*ps.__all__, "__version__"}
    for name in ps.__all__:
        assert getattr(ps, name) is not None
        assert getattr(ps, name).__doc__, f"{name} has no docstring"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ps.nothing  # noqa: B018


OLD_NAMES = {
    "geometry": ("M", "eps_optimal", "gaps", "m", "pareto_front", "pareto_regret", "success"),
    "theory": (
        "characteristic_time",
        "regret_lower_bound",
        "sample_lower_bound",
        "sample_upper_bound",
        "t_gamma",
    ),
}


@pytest.mark.parametrize(("home", "name"), [(home, name) for home, names in OLD_NAMES.items() for name in names])
def test_old_names_work_and_say_the_new_ones(home: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"^paretoscout\.{name} is now paretoscout\.{home}\.{name};") as warned:
        old = getattr(ps, name)
    assert old is getattr(getattr(ps, home), name)
    assert warned[0].filename == __file__, "the warning is about the line that uses the old name"
    assert name not in ps.__dir__()


def loaded_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_is_light() -> None:
    assert not loaded_by("import paretoscout.cli.main") & {
        "numpy",
        "numba",
        "scipy",
        "rich",
        "matplotlib",
        "pooch",
        "jinja2",
    }
    assert not loaded_by("import paretoscout; paretoscout.simulate; paretoscout.plots") & {
        "matplotlib",
        "rich",
        "sklearn",
    }
