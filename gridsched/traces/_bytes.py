"""The uncompressed bytes of a log, whatever compression it has, with a bound on their number."""

from __future__ import annotations

import bz2
import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
import zstandard
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, TraceError

DEFAULT_MAX_BYTES = 4 * 1024**3
"""Uncompressed bytes that a log may have unless the user allows more."""

_CHUNK = 1 << 18
_ZSTD_CHUNK = 1 << 12
"""Compressed bytes given to Zstandard at a time: few, since each may stand for thousands."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def byte_limit(max_bytes: int | None) -> int:
    """Bound on the uncompressed size: the argument, else `GRIDSCHED_MAX_BYTES`, else 4 GiB."""
    if max_bytes is not None:
        return max_bytes
    text = os.environ.get("GRIDSCHED_MAX_BYTES", "").strip()
    if not text:
        return DEFAULT_MAX_BYTES
    if not text.isdecimal():
        raise ConfigurationError(f"GRIDSCHED_MAX_BYTES is {text!r}: give a whole number of bytes")
    return int(text)


def stream(path: Path, max_bytes: int | None = None) -> Iterator[bytes]:
    """Uncompressed content of a file in pieces; compression is recognised by the first bytes.

    Raises
    ------
    TraceError
        If the file cannot be read, its compression is damaged, or it holds more than `max_bytes`.
    """
    limit = byte_limit(max_bytes)
    total = 0
    try:
        if not path.is_file():
            raise TraceError(f"{path}: {_why_no_file(path)}; give the path of a log")
        with path.open("rb") as file:
            for chunk in _decompressor(file)(file):
                total += len(chunk)
                if total > limit:
                    raise TraceError(
                        f"{path}: more than {limit:,} bytes when uncompressed, perhaps a decompression bomb; "
                        "set GRIDSCHED_MAX_BYTES (or max_bytes) higher if the file is right"
                    )
                yield chunk
    except EOFError as error:
        raise TraceError(f"{path}: the compressed file is truncated; copy or fetch it again") from error
    except (zlib.error, gzip.BadGzipFile, zstandard.ZstdError, ValueError) as error:
        raise TraceError(f"{path}: the compressed file is damaged ({error}); fetch it again") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise TraceError(
            f"{path}: cannot be read ({reason}); check the path, permissions and file"
        ) from error


def read_bytes(path: Path, max_bytes: int | None = None) -> NDArray[np.uint8]:
    """Whole uncompressed content of a file and one newline more, with the errors of `stream`.

    An array rather than bytes, since it need not be cleared first and uses large memory pages.
    """
    content = np.empty(_file_size(path) + 1, np.uint8)
    used = 0
    for chunk in stream(path, max_bytes):
        end = used + len(chunk)
        if end >= content.size:
            content, full = np.empty(2 * end, np.uint8), content
            content[:used] = full[:used]
        content[used:end] = np.frombuffer(chunk, np.uint8)
        used = end
    content[used] = ord("\n")
    return content[: used + 1]


def _file_size(path: Path) -> int:
    """Size of a file, 0 where there is none or it may not be asked: reading then says why."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _why_no_file(path: Path) -> str:
    if path.is_dir():
        return "is a directory"
    return "is not a regular file" if path.exists() else "no such file"


def _decompressor(file: IO[bytes]) -> Callable[[IO[bytes]], Iterator[bytes]]:
    """Reader for the compression that the first bytes tell."""
    magic = file.read(4)
    file.seek(0)
    if magic[:2] == b"\x1f\x8b":
        return _gzip
    if magic[:3] == b"BZh":
        return _bzip2
    return _zstd if magic == _ZSTD_MAGIC else _chunks


def _chunks(file: IO[bytes] | gzip.GzipFile | bz2.BZ2File, size: int = _CHUNK) -> Iterator[bytes]:
    while chunk := file.read(size):
        yield chunk


def _gzip(file: IO[bytes]) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file) as content:
        yield from _chunks(content)


def _bzip2(file: IO[bytes]) -> Iterator[bytes]:
    with bz2.BZ2File(file) as content:
        yield from _chunks(content)


def _zstd(file: IO[bytes]) -> Iterator[bytes]:
    """Frames one after another; the library's own file object would not notice a truncated last frame."""
    frame = zstandard.ZstdDecompressor().decompressobj()
    fresh = True
    for chunk in _chunks(file, _ZSTD_CHUNK):
        rest = chunk
        while rest:
            yield frame.decompress(rest)
            rest, fresh = frame.unused_data, frame.eof
            if frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
    if not fresh:
        raise EOFError
