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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numba.core import event
from numba.core.caching import IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

if sys.platform != "win32":
    import fcntl

Listener = Callable[[str], Any]
"""What is told of a compilation."""

_CHECKSUM_BYTES = hashlib.sha256().digest_size


class SealedFile(IndexDataCacheFile):
    """Index and data files of one kernel, each with a checksum at the end, which `pickle` does not read."""

    def __init__(self, *where: Any, may_save: Callable[[], bool]) -> None:
        super().__init__(*where)
        self._may_save = may_save

    def save(self, key: Any, data: Any) -> None:
        """Save a compiled kernel; without room for it, it is compiled anew the next time."""
        if self._may_save():
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
        index = Path(self._cache._cache_file._index_path)
        # Numba's own lock first, as where a kernel calls another one: else threads could wait for each other
        with (
            global_compiler_lock,
            _alone(index, self._name()),
            event.install_listener("numba:compile", _Compilation(self)),
        ):
            return super().compile(signature)

    def _name(self) -> str:
        """What the kernel belongs to, such as systems.calendars."""
        return ".".join(self.py_func.__module__.split(".")[1:3])


class _Compilation(event.Listener):
    """Tells that a kernel is compiled; of one that is loaded from the cache, Numba says nothing."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def on_start(self, event: event.Event) -> None:
        """Tell it, unless it is a part of the kernel that is compiled."""
        if event.data["dispatcher"] is self._kernel:
            _listeners[-1](self._kernel._name())

    def on_end(self, event: event.Event) -> None:
        """Do nothing."""


@contextlib.contextmanager
def telling(listener: Listener) -> Iterator[None]:
    """Let a function be told of what is compiled in this block: once a kernel, what the kernel belongs to."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def compilation(name: str) -> str:
    """What is said of a compilation: what is compiled, and how long it usually takes."""
    usually = "8 to 30 s" if name.startswith(("engine.", "systems.")) else "a few seconds"
    return f"compiling kernels ({name}), usually in {usually}, once for this version of gridsched"


@contextlib.contextmanager
def _alone(index: Path, name: str) -> Iterator[None]:
    """Wait while another process compiles the kernel of an index file; where one exists, go on at once.

    The system frees the lock of a process that is killed.
    """
    if index.exists():
        yield
        return
    with contextlib.ExitStack() as stack:
        # without a lock, the kernel may be compiled twice
        with contextlib.suppress(OSError, NameError):
            file = stack.enter_context(index.with_suffix(".lock").open("w"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _listeners[-1](name)
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _say(name: str) -> None:
    """Say on a terminal that something is compiled, once a process."""
    global _said
    if not _said and sys.stderr is not None and sys.stderr.isatty():
        _said = True
        print(f"gridsched: {compilation(name)}", file=sys.stderr, flush=True)


_said = False
_listeners: list[Listener] = [_say]
"""The last one is told."""


def seal(kernel: Any, may_save: Callable[[], bool]) -> None:
    """Let a kernel that is cached on disk use sealed files, and be compiled by one process at a time.

    It is saved only where `may_save` says so after it was compiled.
    """
    with contextlib.suppress(AttributeError, TypeError):
        plain = kernel._cache._cache_file
        base = plain._index_name.removesuffix(".nbi")
        kernel._cache._cache_file = SealedFile(
            plain._cache_path, base, plain._source_stamp, may_save=may_save
        )
        kernel.__class__ = Kernel
