"""The names inside numba on which faster compiling rests. Kernels are compiled plainly if one is missing.

`compile.py`, `drafts.py` and `uncompiled.py` use them. A new version of numba may rename any of them; then kernels run
by plain `njit(cache=True)`: decisions are the same, and only the first use takes longer.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any

#: Module: its names; of a class also the names of its methods and attributes.
USED: dict[str, dict[str, tuple[str, ...]]] = {
    "numba.core.caching": {
        "FunctionCache": ("_cache_file", "_impl", "_index_key", "cache_path", "_impl_class", "enable", "load_overload"),
        "IndexDataCacheFile": ("_index_path", "_source_stamp", "_load_index", "save", "load"),
        "CompileResultCacheImpl": ("reduce", "rebuild", "filename_base"),
    },
    "numba.core.codegen": {
        "JITCodeLibrary": (
            "_dynamic_globals",
            "_final_module",
            "_finalized",
            "_linking_libraries",
            "_shared_module",
            "_ensure_finalized",
            "_finalize_dynamic_globals",
            "_get_module_for_linking",
            "_optimize_final_module",
            "enable_object_caching",
        ),
        "ll": (),
    },
    "numba.core.compiler": {"Compiler": ("compile_extra", "state"), "compile_result": ()},
    "numba.core.environment": {"lookup_environment": ()},
    "numba.core.registry": {
        "CPUDispatcher": (
            "_cache",
            "_compile_for_args",
            "_types_active_call",
            "get_call_template",
            "get_overload",
            "targetctx",
            "typeof_pyval",
        ),
    },
}


@cache
def missing() -> str:
    """Return the first name that this version of numba does not have, "" if it has all."""
    for module, names in USED.items():
        try:
            found = import_module(module)
        except ImportError:
            return module
        for name, parts in names.items():
            if not hasattr(found, name):
                return f"{module}.{name}"
            for part in parts:
                if not _has(getattr(found, name), part):
                    return f"{module}.{name}.{part}"
    return ""


def _has(kind: Any, name: str) -> bool:
    """Return True if a class has a name, or if its methods set or read one of its instances."""
    return any(
        name in vars(each)
        or any(
            name in part.__code__.co_names
            for part in (getattr(value, "fget", None) or value for value in vars(each).values())
            if isinstance(part, FunctionType)
        )
        for each in kind.__mro__
    )
