"""Delimited text in blocks of whole lines.

Only one block is in memory at a time, and a line has a longest length, so that memory stays bounded whatever
the file holds. Nothing is quoted: a delimiter always ends a field.
"""

from __future__ import annotations

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
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Digest(Protocol):
    """What takes the bytes of a file to make a checksum of them."""

    def update(self, data: bytes, /) -> None:
        """Take more bytes."""


@dataclass(frozen=True)
class LineBlock:
    """Lines of one block: their numbers in the file, and their fields, a row of byte strings a line."""

    file: Path
    line: NDArray[np.int64]
    fields: NDArray[Any]

    def __len__(self) -> int:
        return len(self.line)

    def select(self, lines: NDArray[Any]) -> LineBlock:
        """Block of the lines that a mask picks."""
        return replace(self, line=self.line[lines], fields=self.fields[lines])

    def column(self, column: int) -> list[bytes]:
        """Fields of a column."""
        fields: list[bytes] = self.fields[:, column].tolist()
        return fields

    def contains(self, column: int, text: bytes) -> NDArray[np.bool_]:
        """Whether each field of a column has a text in it."""
        return np.array([text in field for field in self.column(column)], np.bool_)

    def texts(self, column: int, longest: int = LONGEST_FIELD) -> NDArray[np.bytes_]:
        """Fields of a column as one array of byte strings.

        Raises
        ------
        TraceError
            If a field has more than `longest` bytes.
        """
        fields = self.column(column)
        width = max(map(len, fields), default=0)
        if width > longest:
            line = next(line for line, field in zip(self.line, fields, strict=True) if len(field) > longest)
            raise TraceError(
                f"{self.file}:{line}: field {column + 1} has {width} bytes, at most {longest} are read; "
                "fix this line"
            )
        return np.array(fields, np.bytes_)


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
    if b"\0" in text:
        line = first_line + text[: text.index(b"\0")].count(b"\n")
        raise TraceError(f"{file}:{line}: a zero byte: this is a binary file; give a text file")
    lines, rows = [], []
    for line, row in enumerate(text.removesuffix(b"\n").split(b"\n"), start=first_line):
        if len(row) > LONGEST_LINE:
            raise _too_long(file, line)
        if row := row.removesuffix(b"\r"):
            lines.append(line)
            rows.append(row.split(delimiter.encode("latin-1")))
    wrong = [place for place, row in enumerate(rows) if len(row) != columns]
    if wrong:
        found = len(rows[wrong[0]])
        more = f" ({len(wrong):,} such lines here)" if len(wrong) > 1 else ""
        remedy = (
            f"if a name or comment holds {delimiter!r}, leave its column out of the export"
            if found > columns
            else "the file may have been cut off here: export it again, or delete this line"
        )
        raise TraceError(
            f"{file}:{lines[wrong[0]]}: {found} fields, the header has {columns}{more}; {remedy}"
        )
    return LineBlock(file, np.array(lines, np.int64), np.array(rows, object).reshape(len(rows), columns))
