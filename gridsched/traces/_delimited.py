"""Delimited text in blocks of whole lines, with each field as a place in its block.

Only one block is in memory at a time, and a line has a longest length, so that memory stays bounded whatever
the file holds. Nothing is quoted: a delimiter always ends a field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import TraceError
from gridsched.traces._bytes import stream

LONGEST_LINE = 1 << 20
"""Bytes that a line may have."""

LONGEST_FIELD = 256
"""Bytes that a field may have which is looked at."""

_BLOCK = 1 << 22
_LINES_AT_ONCE = 1 << 13
_NEWLINE, _RETURN = ord("\n"), ord("\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Digest(Protocol):
    """What takes the bytes of a file to make a checksum of them."""

    def update(self, data: bytes, /) -> None:
        """Take more bytes."""


@dataclass(frozen=True)
class LineBlock:
    """Lines of one block: their numbers in the file, and the places of their fields.

    Field k of line i is `text[bounds[i, k] + 1 : bounds[i, k + 1]]`.
    """

    file: Path
    text: NDArray[np.uint8]
    line: NDArray[np.int64]
    bounds: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.line)

    def select(self, lines: NDArray[Any]) -> LineBlock:
        """Block of the lines that a mask picks."""
        return replace(self, line=self.line[lines], bounds=self.bounds[lines])

    def contains(self, column: int, text: bytes) -> NDArray[np.bool_]:
        """Whether each field of a column has a text in it, which is not empty."""
        if len(text) == 1:
            places = np.flatnonzero(self.text == text[0])
        else:
            found = re.finditer(re.escape(text), self.text.tobytes())
            places = np.fromiter((match.start() for match in found), np.int64)
        begin, end = self.bounds[:, column] + 1, self.bounds[:, column + 1]
        return np.asarray(np.searchsorted(places, begin) < np.searchsorted(places, end))

    def filled(self, column: int) -> NDArray[np.bool_]:
        """Whether each field of a column has any character."""
        return np.asarray(self.bounds[:, column + 1] > self.bounds[:, column] + 1)

    def characters(self, column: int, longest: int = LONGEST_FIELD) -> NDArray[np.uint8]:
        """Fields of a column as rows of bytes, with zeros behind.

        Raises
        ------
        TraceError
            If a field has more than `longest` bytes.
        """
        begin = self.bounds[:, column] + 1
        length = self.bounds[:, column + 1] - begin
        width = max(1, int(length.max(initial=0)))
        if width > longest:
            line = int(self.line[np.argmax(length > longest)])
            raise TraceError(
                f"{self.file}:{line}: field {column + 1} has {width} bytes, at most {longest} are read; "
                "fix this line"
            )
        rows = np.zeros((len(self), width), np.uint8)
        places = np.arange(width)
        # A few lines at a time, since the places take eight times the memory of the characters; the text
        # has zeros behind its end, at least as many as a field is long.
        for first in range(0, len(self), _LINES_AT_ONCE):
            some = slice(first, first + _LINES_AT_ONCE)
            rows[some] = self.text[begin[some, np.newaxis] + places]
            rows[some] *= places < length[some, np.newaxis]
        return rows

    def field(self, row: int, column: int) -> bytes:
        """One field."""
        begin, end = self.bounds[row, column] + 1, self.bounds[row, column + 1]
        return self.text[begin:end].tobytes()

    def texts(self, column: int, longest: int = LONGEST_FIELD) -> NDArray[np.bytes_]:
        """Fields of a column as byte strings."""
        rows = self.characters(column, longest)
        return rows.view(f"S{rows.shape[1]}")[:, 0]


def read_lines(file: Path, max_bytes: int | None, digest: Digest) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a file, many at a time, with the number of the first; compression as `stream`.

    Raises
    ------
    TraceError
        If the file cannot be read, or a line has more than `LONGEST_LINE` bytes.
    """
    pieces: list[bytes] = []
    held, line = 0, 1
    for chunk in stream(file, max_bytes):
        digest.update(chunk)
        pieces.append(chunk)
        held += len(chunk)
        if held < _BLOCK:
            continue
        text = b"".join(pieces)
        cut = text.rfind(b"\n") + 1
        if cut < len(text) - LONGEST_LINE:
            raise _too_long(file, line + text.count(b"\n"))
        yield line, text[:cut]
        line += text.count(b"\n")
        pieces, held = [text[cut:]], len(text) - cut
    rest = b"".join(pieces)
    if rest:
        yield line, rest if rest.endswith(b"\n") else rest + b"\n"


def _too_long(file: Path, line: int) -> TraceError:
    return TraceError(
        f"{file}:{line}: a line of more than {LONGEST_LINE:,} bytes; "
        "this is no list of jobs, or a line end is lost"
    )


def without_mark(text: bytes) -> bytes:
    """Text without the mark that some editors put before it."""
    return text.removeprefix(_BYTE_ORDER_MARK)


def split(file: Path, first_line: int, text: bytes, delimiter: str, columns: int) -> LineBlock:
    """Fields of lines; lines without any character are skipped.

    Raises
    ------
    TraceError
        If a line has another number of fields, is too long, or holds a zero byte.
    """
    padded = np.frombuffer(text + bytes(LONGEST_FIELD), np.uint8)
    content = padded[: len(text)]
    ends = np.flatnonzero(content == _NEWLINE)
    starts = np.append(0, ends[:-1] + 1)
    lines = first_line + np.arange(len(ends))
    ends = ends - ((ends > starts) & (content[ends - 1] == _RETURN))
    if not content.all():
        line = first_line + text[: int(np.argmin(content))].count(b"\n")
        raise TraceError(f"{file}:{line}: a zero byte: this is a binary file; give a text file")
    if (ends - starts > LONGEST_LINE).any():
        raise _too_long(file, int(lines[np.argmax(ends - starts > LONGEST_LINE)]))
    filled = ends > starts
    lines, starts, ends = lines[filled], starts[filled], ends[filled]
    delimiters = np.flatnonzero(content == ord(delimiter))
    first = np.searchsorted(delimiters, starts)
    found = np.searchsorted(delimiters, ends) - first + 1
    wrong = np.flatnonzero(found != columns)
    if wrong.size:
        more = f" ({wrong.size:,} such lines here)" if wrong.size > 1 else ""
        remedy = (
            f"if a name or comment holds {delimiter!r}, leave its column out of the export"
            if found[wrong[0]] > columns
            else "the file may have been cut off here: export it again, or delete this line"
        )
        raise TraceError(
            f"{file}:{lines[wrong[0]]}: {found[wrong[0]]} fields, the header has {columns}{more}; {remedy}"
        )
    bounds = np.empty((len(lines), columns + 1), np.int64)
    bounds[:, 0] = starts - 1
    bounds[:, 1:-1] = delimiters[first[:, np.newaxis] + np.arange(columns - 1)]
    bounds[:, -1] = ends
    return LineBlock(file, padded, lines, bounds)
