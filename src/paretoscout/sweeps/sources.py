"""Which code made a number: the source files that some modules can run, found by reading their import statements."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import sysconfig
import textwrap
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np

from ..kernels.compile import sources_digest
from ..version import __version__

FOLDER = Path(__file__).parent.parent
#: Python 3.11 cannot parse in several threads at the same time: it mixes up how deep each of them is.
_parsing = threading.Lock()


@cache
def code_digest(*modules: str, folder: Path = FOLDER) -> str:
    """Eight letters for the code of these modules of the package and of all they can run, and for numpy and numba."""
    digest = hashlib.sha256(f"{sources_digest()} {np.__version__} {numba.__version__}".encode())
    for name, source in sorted(reachable(*modules, folder=folder).items()):
        digest.update(name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:8]


def own_sources(thing: Any) -> dict[str, str]:
    """The sources of a user's function or class and of all of his that it names, by their names; and constants.

    What is installed, and the package, are left out. The rest of a script may change: how many replicates it asks for.
    """
    found: dict[str, str] = {}
    seen = set[Any]()
    left = [thing := getattr(thing, "py_func", thing)]
    while left:
        each = left.pop()
        each = getattr(each, "py_func", each)  # it is compiled
        if isinstance(each, ModuleType):
            name, scope = each.__name__, vars(each)
        elif isinstance(each, (type, FunctionType)):
            name, scope = f"{each.__module__}.{each.__qualname__}", vars(sys.modules[each.__module__])
        else:
            continue
        if each in seen or (each is not thing and not _is_own(scope)):
            continue
        seen.add(each)
        source, used = _source_and_names(each)
        found[name] = found.get(name, "") + source  # functions without names of their own may be several
        if isinstance(each, FunctionType):
            scope = {**scope, **inspect.getclosurevars(each).nonlocals}
        for label in sorted(used & scope.keys()):
            value = scope[label]
            left.append(value)
            if isinstance(value, np.ndarray):
                found[f"{name}: {label}"] = f"{value.dtype} {value.shape} {value.tobytes()!r}"
            elif isinstance(value, (bool, int, float, str, bytes, tuple, list, dict)) and " at 0x" not in repr(value):
                found[f"{name}: {label}"] = repr(value)
    return found


@cache
def _source_and_names(thing: Any) -> tuple[str, frozenset[str]]:
    """Return the source of a module, a class or a function, and the names that are used in it."""
    try:
        source = textwrap.dedent(inspect.getsource(thing))
        with _parsing:
            tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError):  # typed at a prompt, or a part of a statement
        code = getattr(thing, "__code__", None)
        if code is None:
            return "", frozenset()
        constants = [each for each in code.co_consts if not isinstance(each, CodeType)]
        return f"{code.co_code!r} {code.co_names} {constants}", frozenset(code.co_names)
    return source, frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _is_own(scope: Mapping[str, Any]) -> bool:
    """Whether a module is a user's, by its names: not of the package, and not installed."""
    file = scope.get("__file__")
    return scope["__name__"] == "__main__" if file is None else not _is_installed(file)


@cache
def _is_installed(file: str) -> bool:
    places = [FOLDER, *(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib"))]
    return any(Path(file).resolve().is_relative_to(place.resolve()) for place in places)


def versions() -> dict[str, str]:
    """Return what numbers are made with, besides our code."""
    return {"paretoscout": __version__, "numpy": np.__version__, "numba": numba.__version__}


def reachable(*modules: str, folder: Path = FOLDER) -> dict[str, Path]:
    """Return the files of these modules of the package in `folder`, and of all that they can import, by their names.

    Imports inside functions count, and those for type checkers: a package may import such names when they are used.
    Importing a module runs the `__init__` of each package that it lies in, so that counts too. Not so of packages that
    the importing module lies in itself: they only hand its names to others (who takes a name from them says so).
    """
    found: dict[str, Path] = {}
    left = [f"{folder.name}.{module}" for module in modules]
    while left:
        name = left.pop()
        if name not in found:
            found[name] = _file(name, folder)
            left += _imported(name, found[name], folder)
    return found


def _imported(name: str, file: Path, folder: Path) -> Iterator[str]:
    """Yield the modules of the package that one of them imports."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    around = f"{name}."
    with _parsing:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    for target in _targets(tree, package):
        parts = target.split(".")
        if parts[0] != folder.name:
            continue
        longest = max(n for n in range(1, len(parts) + 1) if _is_module(".".join(parts[:n]), folder))
        for n in range(1, longest + 1):
            module = ".".join(parts[:n])
            if n == longest or not around.startswith(f"{module}."):
                yield module


def _targets(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield what the import statements name, with dots: modules, and names that may be modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: 1 - node.level or None] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{source}.{alias.name}" for alias in node.names)


def _is_module(name: str, folder: Path) -> bool:
    return _file(name, folder).exists()


def _file(name: str, folder: Path) -> Path:
    """Return where the source of a module is, if there is such a module."""
    path = folder.parent.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
