"""Kernels compiled in a third of the time: a kernel goes through LLVM once, with all that it calls.

Numba makes a library of every compiled function, each optimised and turned into machine code, with two
wrappers for callers outside; what a function calls is then linked into it and optimised again. A kernel here
is made of up to 200 helpers which nobody else calls, so that all but the last of this is lost.

Here a helper is only translated into LLVM's language (`HelperCompiler`). The kernel takes over its helpers,
the helpers of these and so on, each once, and is optimised as a whole (`KernelCompiler`); it runs as fast as
before. A helper that Python calls, as tests do, is compiled once more, as a kernel.

Compilers are an extension point of Numba, its code libraries are private; where a release of Numba has
others, `AVAILABLE` is false and functions are compiled in Numba's own way.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numba
from numba import types

try:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.registry import CPUDispatcher
except ImportError:  # another release of Numba
    JITCodeLibrary = Compiler = CPUDispatcher = object

AVAILABLE: bool = all(
    hasattr(JITCodeLibrary, name)
    for name in (
        "_ensure_finalized",
        "_finalize_final_module",
        "_get_module_for_linking",
        "_optimize_final_module",
        "_raise_if_finalized",
        "add_linking_library",
        "get_pointer_to_function",
    )
) and hasattr(Compiler, "_compile_core")
"""Whether this release of Numba has what this module builds on."""


class _NoEnvironments:
    """In place of the code generator where Numba writes addresses into machine code: a helper has none."""

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing; a kernel that is loaded from the cache knows no environments of helpers either."""


class HelperLibrary(JITCodeLibrary):
    """A compiled function that is there to be linked into kernels only."""

    codegen = _NoEnvironments()
    _shared_module: Any

    def finalize(self) -> None:
        """Neither optimise nor generate machine code."""
        self._raise_if_finalized()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """No address, since there is no machine code."""
        self._ensure_finalized()
        return 0

    def own_module(self) -> Any:
        """Functions of this library alone; only what a kernel uses of them becomes part of it."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "external":
                function.linkage = "linkonce_odr"
        return self._final_module

    def _get_module_for_linking(self) -> Any:
        """What a library of Numba's own that calls this function has to link."""
        self._ensure_finalized()
        if self._shared_module is None:
            module = self.own_module().clone()
            for library in _with_callees(self._linking_libraries):
                module.link_in(_module(library), preserve=True)
            self._shared_module = module
        return self._shared_module


class KernelLibrary(JITCodeLibrary):
    """A compiled function with machine code of all that it calls."""

    def finalize(self) -> None:
        """Link what is called, each once; then optimise and generate machine code."""
        self._raise_if_finalized()
        for library in _with_callees(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(_module(library), preserve=True)
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()


def _module(library: Any) -> Any:
    """What to link of a library, beside what it calls."""
    return library.own_module() if isinstance(library, HelperLibrary) else library._get_module_for_linking()


def _with_callees(libraries: Iterable[Any]) -> list[Any]:
    """Libraries with all that they call, each once, callers before what they call.

    A function of a helper that nothing linked before has called would be left out for good.
    """
    seen: set[Any] = set()
    finished: list[Any] = []

    def finish(library: Any) -> None:
        if library not in seen:
            seen.add(library)
            # others contain what they call
            for callee in library._linking_libraries if isinstance(library, HelperLibrary) else ():
                finish(callee)
            finished.append(library)

    for library in libraries:
        finish(library)
    return finished[::-1]


class HelperCompiler(Compiler):
    """Compiler of a function that only kernels call."""

    library: type = HelperLibrary

    def define_pipelines(self) -> Any:
        """Numba's own passes, with a library of our own."""
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()

    def _compile_core(self) -> Any:
        """Let what Numba itself compiles for this function be helpers, too. It holds its lock meanwhile."""
        codegen = self.state.targetctx.codegen()
        before = codegen._library_class
        codegen._library_class = HelperLibrary
        try:
            return super()._compile_core()
        finally:
            codegen._library_class = before


class KernelCompiler(HelperCompiler):
    """Compiler of a function that Python calls."""

    library = KernelLibrary


class Helper(CPUDispatcher):
    """A function that kernels call; when Python does, it is compiled as a kernel."""

    @cached_property
    def kernel(self) -> Any:
        """The function as a kernel, like within one without counting references: helpers hand out views."""
        return numba.njit(nogil=True, _nrt=False, **KERNEL_OPTIONS)(self.py_func)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function from Python."""
        return self.kernel(*arguments)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile once for all constants that callers give; LLVM takes them into account by itself."""
        return super().get_call_template([types.unliteral(argument) for argument in args], kws)


HELPER_OPTIONS: dict[str, Any] = {}
"""What `numba.njit` is told of a helper: no wrappers, since only kernels call it."""

KERNEL_OPTIONS: dict[str, Any] = {}
"""What `numba.njit` is told of a kernel: only Python calls it."""

if AVAILABLE:
    KERNEL_OPTIONS = {"pipeline_class": KernelCompiler, "no_cfunc_wrapper": True}
    HELPER_OPTIONS = {"pipeline_class": HelperCompiler, "no_cfunc_wrapper": True, "no_cpython_wrapper": True}


def as_helper(dispatcher: Any) -> Any:
    """What Numba makes of a function with `HELPER_OPTIONS`, such that Python can call it."""
    if AVAILABLE and isinstance(dispatcher, CPUDispatcher):  # a plain function with the JIT off
        dispatcher.__class__ = Helper
    return dispatcher
