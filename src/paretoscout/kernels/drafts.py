"""Code that only kernels call: a draft, linked into what Python calls and optimised there.

Numba optimises a function together with all that it calls, and makes machine code of it: for the function itself, and
again for each function above it. Of a deep stack of functions with the many arrays of a state most is done ten times,
and takes longer than all the rest. A draft is neither optimised nor made machine code of.
"""

from __future__ import annotations

from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary, ll  # type: ignore[attr-defined]
from numba.core.compiler import Compiler, compile_result
from numba.core.environment import lookup_environment


class Whole(Compiler):
    """Compiles what Python calls."""

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        super().__init__(typing, target, library, *others)  # type: ignore[no-untyped-call]
        self.state.library = Program(self.state.targetctx.codegen(), "program")  # type: ignore[no-untyped-call]
        self.state.library.enable_object_caching()

    def compile_extra(self, function: Any) -> Any:
        result = super().compile_extra(function)  # type: ignore[no-untyped-call]
        for environment in environments_of(result.library._final_module):  # drafts had no place for theirs
            result.codegen.set_env(environment.env_name, environment)
        return result


class Drafting(Compiler):
    """Compiles what kernels call."""

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        super().__init__(typing, target, library, *others)  # type: ignore[no-untyped-call]
        self.state.library = Draft(self.state.targetctx.codegen(), "draft")  # type: ignore[no-untyped-call]


class Program(JITCodeLibrary):
    """The code of what Python calls, with the drafts of all that it calls.

    Nobody else calls these: so what is called once goes where it is called, and of the arrays of a state only those are
    handed over that are used.
    """

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == ll.Linkage.linkonce_odr:
                function.linkage = "internal"
        super()._optimize_final_module()  # type: ignore[no-untyped-call]


class Draft(JITCodeLibrary):
    """The code of one function, and what it calls."""

    def finalize(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        for library in self._linking_libraries:
            self._dynamic_globals += library._dynamic_globals
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = linkable(self._final_module)
            for library in self._below():
                shared = library._final_module if isinstance(library, Draft) else library._get_module_for_linking()
                self._shared_module.link_in(linkable(shared))
        return self._shared_module

    def _below(self) -> list[Any]:
        """All that it calls, and what these call: each behind all that call it, for what nobody calls is not linked."""
        below: dict[Any, None] = {}

        def visit(library: Any) -> None:
            for called in library._linking_libraries if isinstance(library, Draft) else ():
                if called not in below:
                    visit(called)
                    below[called] = None

        visit(self)
        return list(reversed(below))

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0  # there is no machine code

    @property
    def codegen(self) -> Any:
        return self  # where an environment would be set

    def set_env(self, name: str, environment: Any) -> None:
        """Whoever links the draft does that."""


def linkable(module: Any) -> Any:
    """A copy of a module that may be linked several times into another."""
    copy = module.clone()
    for function in copy.functions:
        if not function.is_declaration and function.linkage == ll.Linkage.external:
            function.linkage = "linkonce_odr"
    return copy


def environments_of(module: Any) -> list[Any]:
    """Where the functions of a module have their Python objects."""
    names = (variable.name for variable in module.global_variables)
    found = (lookup_environment(name) for name in names if name.startswith("_ZN08NumbaEnv"))  # type: ignore[no-untyped-call]
    return [environment for environment in found if environment is not None and environment.can_cache()]


class DraftCacheImpl(CompileResultCacheImpl):
    """Keeps a draft as bitcode, with all that it calls."""

    def reduce(self, result: Any) -> Any:
        module, description = result.library._get_module_for_linking(), result.fndesc
        description.typemap = description.calltypes = None  # no longer needed, and cannot be pickled
        environments = [result.environment, *environments_of(module)]
        return module.as_bitcode(), description, result.signature, result.reload_init, environments

    def rebuild(self, target: Any, kept: Any) -> Any:
        bitcode, description, signature, reload_init, environments = kept
        for function in reload_init:
            function()
        library: Any = Draft(target.codegen(), "draft")  # type: ignore[no-untyped-call]
        library._final_module = ll.parse_bitcode(bitcode)
        library.environments = environments  # they live as long
        return compile_result(  # type: ignore[no-untyped-call]
            target_context=target,
            typing_context=target.typing_context,
            library=library,
            environment=environments[0],
            entry_point=target.get_executable(library, description, environments[0]),
            fndesc=description,
            signature=signature,
            objectmode=False,
            reload_init=reload_init,
        )


class DraftCache(FunctionCache):
    _impl_class = DraftCacheImpl
