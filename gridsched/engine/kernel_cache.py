"""Cache files of compiled kernels that end with their checksum: damaged code is compiled anew, never run.

Numba reads its cache files as they are: a file that a power failure has cut off ends the program with an
error of `pickle`, and a wrong bit in machine code goes unnoticed. Its class for these files is private; where
a release of Numba has another, kernels are cached in its own way.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile

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


def seal(kernel: Any) -> None:
    """Let a kernel that is cached on disk use sealed files."""
    with contextlib.suppress(AttributeError, TypeError):
        plain = kernel._cache._cache_file
        base = plain._index_name.removesuffix(".nbi")
        kernel._cache._cache_file = SealedFile(plain._cache_path, base, plain._source_stamp)
