"""Cache of compiled kernels: files with a checksum, and one process that compiles while others wait.

Damaged code is compiled anew, never run.

Numba reads its cache files as they are: a file that a power failure has cut off ends the program with an
error of `pickle`, and a wrong bit in machine code goes unnoticed. Its class for these files is private; where
a release of Numba has another, kernels are cached in its own way.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

if sys.platform != "win32":
    import fcntl

_SECONDS_UNTIL_TOLD = 4.0
"""A user is told what takes so long."""

_CHECKSUM_BYTES = hashlib.sha256().digest_size


class SealedFile(IndexDataCacheFile):
    """Index and data files of one kernel, each with a checksum at the end, which `pickle` does not read."""

    def save(self, key: Any, data: Any) -> None:
        """Save a compiled kernel; without room for it, it is compiled anew the next time."""
        with contextlib.suppress(OSError):
            super().save(key, data)

    def _load_index(self) -> Any:
        return super()._load_index() if _is_whole(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        if not _is_whole(self._data_path(name)):
            # What Numba expects of a file that is not there
            raise FileNotFoundError(name)
        return super()._load_data(name)

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        content = io.BytesIO()
        yield content
        with super()._open_for_write(filepath) as file:
            file.write(content.getvalue())
            file.write(hashlib.sha256(content.getvalue()).digest())


def _is_whole(path: str) -> bool:
    """Whether a file is as it was written."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return False
    return hashlib.sha256(content[:-_CHECKSUM_BYTES]).digest() == content[-_CHECKSUM_BYTES:]


class Kernel(CPUDispatcher):
    """A kernel that is cached on disk and that one process compiles at a time."""

    def compile(self, signature: Any) -> Any:
        """Load or compile the kernel for these types."""
        # Numba's own lock first, as where a kernel calls another one: else threads could wait for each other
        with global_compiler_lock, _alone(Path(self._cache._cache_file._index_path)):
            return super().compile(signature)


@contextlib.contextmanager
def _alone(index: Path) -> Iterator[None]:
    """Wait while another process compiles the kernel of an index file; where one exists, go on at once.

    The system frees the lock of a process that is killed.
    """
    if index.exists():
        yield
        return
    notice = threading.Timer(_SECONDS_UNTIL_TOLD, _tell)
    notice.daemon = True
    notice.start()
    try:
        with contextlib.ExitStack() as stack:
            # without a lock, the kernel may be compiled twice
            with contextlib.suppress(OSError, NameError):
                file = stack.enter_context(index.with_suffix(".lock").open("w"))
                fcntl.flock(file, fcntl.LOCK_EX)
            yield
    finally:
        notice.cancel()


@cache
def _tell() -> None:
    """Say what takes so long, once a process."""
    print("gridsched: compiling kernels, once for this version of gridsched ...", file=sys.stderr, flush=True)


def seal(kernel: Any) -> None:
    """Let a kernel that is cached on disk use sealed files, and be compiled by one process at a time."""
    with contextlib.suppress(AttributeError, TypeError):
        plain = kernel._cache._cache_file
        base = plain._index_name.removesuffix(".nbi")
        kernel._cache._cache_file = SealedFile(plain._cache_path, base, plain._source_stamp)
        kernel.__class__ = Kernel
