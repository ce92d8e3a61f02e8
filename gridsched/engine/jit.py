"""How gridsched compiles its kernels: Numba decorators, their cache, and a fast array shift.

Private facts of Numba are kept here, in `lean_compiler` and in `kernel_cache` alone. `_nrt=False` leaves
reference counting out of helpers (they may not allocate nor return arrays), which makes them 3 to 17
times faster; if a Numba release drops the option, the helpers compile without it. The cache folder is named
by a hash of all kernel sources, because Numba does not notice when a function that a cached kernel calls has
changed in another file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import cgutils, types
from numba.core.errors import NumbaError
from numba.extending import intrinsic, overload
from platformdirs import user_cache_path

from gridsched.engine import lean_compiler
from gridsched.engine.kernel_cache import seal

Function = TypeVar("Function", bound=Callable[..., Any])

_KERNEL_FOLDERS = ("calibration", "engine", "prediction", "systems", "traces", "workloads")

_MARK = b"gridsched.engine.jit import"
"""What every module with kernels has, so that a change elsewhere compiles nothing anew."""


def _sources() -> dict[Path, bytes]:
    """Every module with kernels."""
    engine = Path(__file__).parent
    found = [path for folder in _KERNEL_FOLDERS for path in sorted((engine.parent / folder).rglob("*.py"))]
    contents = {path: path.read_bytes() for path in found}
    return {path: text for path, text in contents.items() if engine in path.parents or _MARK in text}


@cache
def _source_hash() -> tuple[str, dict[Path, int]]:
    """Hash of every module with kernels, with the Numba version, and when each was changed."""
    sources = _sources()
    digest = hashlib.sha256(numba.__version__.encode())
    for content in sources.values():
        digest.update(content)
    return digest.hexdigest()[:16], {path: path.stat().st_mtime_ns for path in sources}


def sources_are_the_same() -> bool:
    """Whether no module with kernels has changed since the cache folder was chosen.

    What is compiled of a changed module does not belong there: another process would run it on other arrays.
    """
    try:
        return all(path.stat().st_mtime_ns == time for path, time in _source_hash()[1].items())
    except FileNotFoundError:
        return False


def cache_root() -> Path:
    """Folder of all kernel caches: `GRIDSCHED_CACHE`, else the user's cache folder."""
    chosen = os.environ.get("GRIDSCHED_CACHE")
    return (Path(chosen) if chosen else user_cache_path("gridsched")) / "kernels"


@cache
def _cache_folder() -> str:
    """Writable cache folder for exactly these sources; a temporary one where no other can be written."""
    folder = cache_root() / _source_hash()[0]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError:
        return tempfile.mkdtemp(prefix="gridsched-kernels-")


def clear_cache() -> Path:
    """Delete the compiled kernels of every version of gridsched; return the folder."""
    shutil.rmtree(cache_root(), ignore_errors=True)
    return cache_root()


def _compile(function: Function, **options: Any) -> Function:
    """Decorate with njit while Numba's cache folder is ours; other users of Numba keep theirs."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = _cache_folder()
    try:
        compiled: Function = numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = before
    return compiled


def jit(function: Function) -> Function:
    """Compile a kernel: cached on disk, run without the interpreter's lock so that threads are parallel."""
    kernel = _compile(function, cache=True, nogil=True, **lean_compiler.KERNEL_OPTIONS)
    seal(kernel, sources_are_the_same)
    return kernel


def inline(function: Function) -> Function:
    """Compile a small helper that is inlined in its caller and neither allocates nor returns arrays."""
    return _helper(function, forceinline=True)


def noinline(function: Function) -> Function:
    """Compile a large helper that is called rather than inlined, and neither allocates nor returns arrays.

    Inlining a long function wherever it is called makes compilation take minutes. Numba hands the option on
    from callers to what they call, unless it is given.
    """
    return _helper(function, forceinline=False)


def _helper(function: Function, **options: Any) -> Function:
    """Compile a function for kernels to call."""
    try:
        helper = _compile(function, nogil=True, _nrt=False, **options, **lean_compiler.HELPER_OPTIONS)
    except (KeyError, NumbaError):
        return _compile(function, nogil=True)
    return lean_compiler.as_helper(helper)


@inline
def unchecked(i: int) -> np.uint64:
    """Subscript without sign: no treatment of negative ones in compiled code.

    In the heap and for the jobs that come, start and end this is worth 5 to 15 % of a simulation, among
    running and waiting jobs 2 to 5 % of EASY; it was not measurable elsewhere.
    """
    return np.uint64(i)


@inline
def as_int64(number: Any) -> Any:
    """Whole number of a field as int64, so that a helper is not compiled for fields of each width."""
    return np.int64(number)


def shift(array: Any, target: int, source: int, count: int) -> None:
    """Move `count` elements of `array` from index `source` to index `target`; the ranges may overlap."""
    array[target : target + count] = array[source : source + count].copy()


@intrinsic
def _memmove(typing_context: Any, array: Any, target: Any, source: Any, count: Any) -> Any:
    """Compiled body of `shift`: LLVM does not turn a backward copy loop into memmove by itself."""
    signature = types.void(array, types.intp, types.intp, types.intp)

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        values, target_index, source_index, length = arguments
        data = cgutils.create_struct_proxy(array)(context, builder, value=values).data
        cgutils.raw_memmove(
            builder,
            builder.gep(data, [target_index]),
            builder.gep(data, [source_index]),
            length,
            context.get_abi_sizeof(context.get_data_type(array.dtype)),
        )
        return context.get_dummy_value()

    return signature, generate


@overload(shift, jit_options={"forceinline": True})
def _compiled_shift(array: Any, target: Any, source: Any, count: Any) -> Any:
    def body(array: Any, target: Any, source: Any, count: Any) -> None:
        _memmove(array, target, source, count)

    return body


def to_int64(values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Contiguous int64 copy or view, so that each kernel is compiled for one set of types only."""
    return np.ascontiguousarray(values, dtype=np.int64)


def compile_callback(function: Function, signature: Any) -> Any:
    """Function of a fixed signature that kernels take as an argument, without being compiled anew for it."""
    if numba.config.DISABLE_JIT:
        return function
    compiled = numba.cfunc(signature, error_model="numpy")(function)
    # else Numba works out the type at each call of a kernel, which takes longer than the call
    compiled._numba_type_ = numba.typeof(compiled)
    return compiled
