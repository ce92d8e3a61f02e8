"""Tables with a header and one row a job or a node, from CSV or Parquet, as columns of texts and numbers.

Only the columns that are wanted are kept. Every error names file, line (row of a Parquet file) and column.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridsched.errors import TraceError
from gridsched.traces._bytes import stream
from gridsched.traces._slurm_values import SlurmTimes, parse_times

_SUFFIXES = re.compile(r"(\.(csv|parquet|gz|zst|bz2))+$", re.IGNORECASE)
_LARGEST = 2**50
"""A larger number is an error: no unit that is a part of this one would fit into 64 bits."""


@dataclass(frozen=True)
class Table:
    """Columns of texts by lower-case name, with where each row stands.

    Parameters
    ----------
    file : Path
        Where the table comes from.
    columns : dict of str to list of str
        Texts without blanks around them; "" is a missing value.
    lines : sequence of int
        Line of each row in the file, or number of the row in a Parquet file.
    checksum : str
        SHA-256 of the uncompressed content.
    """

    file: Path
    columns: dict[str, list[str]]
    lines: Sequence[int]
    checksum: str

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def name(self) -> str:
        """Name of the file without suffixes."""
        return _SUFFIXES.sub("", self.file.name)

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    def texts(self, column: str) -> list[str]:
        """Texts of a column, empty ones where there is no such column."""
        return self.columns.get(column, [""] * len(self))

    def wholes(self, column: str, *, missing: int | None = None) -> NDArray[np.int64]:
        """Whole numbers from 0 on, such as 4 or 4.0; `missing` where there is none, if one is given."""
        return np.array(self._parsed(column, _whole, missing, "no whole number from 0 on"), np.int64)

    def numbers(self, column: str, *, missing: float | None = None) -> NDArray[np.float64]:
        """Numbers; `missing` where there is none, if one is given."""
        return np.array(self._parsed(column, _number, missing, "no number"), np.float64)

    def times(self, column: str) -> SlurmTimes:
        """Times like 2024-01-31 23:59:59 on the clock of the site, Unix times in seconds, or unknown ones."""
        # A numeric column that has missing values comes with decimal points.
        texts = [text.replace(" ", "T", 1).removesuffix(".0") for text in self.texts(column)]
        times = parse_times(np.array([text.encode() for text in texts], np.bytes_))
        if times.bad.any():
            problem = "no time like 2024-01-31 23:59:59, nor a Unix time; fix this line"
            raise self.mistake(int(np.argmax(times.bad)), column, problem)
        return times

    def _parsed(
        self, column: str, parse: Callable[[str], Any], missing: float | None, problem: str
    ) -> list[Any]:
        """Values of a column, each distinct text parsed once."""
        texts = self.texts(column)
        known = {text: missing if missing is not None and not text else parse(text) for text in set(texts)}
        if None in known.values():
            row = next(row for row, text in enumerate(texts) if known[text] is None)
            raise self.mistake(row, column, f"{problem}; fix this line, or leave it out")
        return [known[text] for text in texts]

    def mistake(self, row: int, column: str, problem: str) -> TraceError:
        """What is said of a value."""
        text = self.texts(column)[row]
        return TraceError(f"{self.file}:{self.lines[row]}: {column} is {text!r:.60}: {problem}")


def read_table(
    path: Path,
    *,
    needed: Sequence[str],
    also: Sequence[str] = (),
    max_bytes: int | None = None,
) -> Table:
    """Columns of a table: CSV, plain or compressed, or Parquet where the name ends in .parquet.

    Parameters
    ----------
    path : Path
        The table; the first line of a CSV file names its columns, in any order and any letter case.
    needed, also : sequence of str
        Lower-case names of the columns that must be there, and of those that may.
    max_bytes : int, optional
        Largest uncompressed size, see `read_swf`.

    Raises
    ------
    TraceError
        If the file cannot be read, a column is missing, a line has another number of fields than the first,
        or there are no rows.
    """
    is_parquet = path.suffix.lower() == ".parquet"
    table = (
        _read_parquet(path, needed, also, max_bytes)
        if is_parquet
        else _read_csv(path, needed, also, max_bytes)
    )
    if not len(table):
        raise TraceError(f"{path}: no rows, only names of columns; give a table that has some")
    return table


def _read_csv(path: Path, needed: Sequence[str], also: Sequence[str], max_bytes: int | None) -> Table:
    content = b"".join(stream(path, max_bytes))
    text = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", errors="replace", newline="")
    rows = csv.reader(text, strict=True)
    try:
        header = next(rows, [])
        places = _places(path, header, needed, also)
        columns: dict[str, list[str]] = {name: [] for name in places}
        lines = []
        for row in _rows(path, rows, len(header)):
            lines.append(rows.line_num)
            for name, place in places.items():
                columns[name].append(row[place].strip())
    except csv.Error as error:
        raise TraceError(f"{path}:{rows.line_num}: no CSV ({error}); fix this line") from None
    return Table(path, columns, lines, hashlib.sha256(content).hexdigest())


def _rows(path: Path, rows: Any, fields: int) -> Iterator[list[str]]:
    """Rows that have as many fields as the header; blank lines are skipped."""
    for row in rows:
        if not row:
            continue
        if len(row) != fields:
            raise TraceError(
                f"{path}:{rows.line_num}: {len(row)} fields, the header has {fields}; the file may have been "
                "cut off here, or a comma be without quotes: fix this line"
            )
        yield row


def _places(path: Path, header: Sequence[str], needed: Sequence[str], also: Sequence[str]) -> dict[str, int]:
    """Places of the columns that are there."""
    known = [str(name).strip().lower() for name in header]
    missing = [name for name in needed if name not in known]
    if missing:
        given = ", ".join(known) or "an empty file"
        raise TraceError(f"{path}:1: no column {', '.join(missing)} ({given!r:.300}); add it, or rename one")
    return {name: known.index(name) for name in (*needed, *also) if name in known}


def parquet_columns(path: Path) -> set[str]:
    """Lower-case names of the columns of a Parquet file, with the errors of `read_table`."""
    frame = _parquet_frame(path, b"".join(stream(path)))
    return {str(name).strip().lower() for name in frame.columns}


def _parquet_frame(path: Path, content: bytes) -> pd.DataFrame:
    try:
        return pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    except ImportError:
        raise TraceError(
            f"{path}: Parquet is read with pyarrow, which is not installed; "
            "install it (pip install pyarrow), or give the table as CSV"
        ) from None
    except (OSError, ValueError) as error:
        raise TraceError(f"{path}: cannot be read as Parquet ({error}); write it again") from None


def _read_parquet(path: Path, needed: Sequence[str], also: Sequence[str], max_bytes: int | None) -> Table:
    content = b"".join(stream(path, max_bytes))
    frame = _parquet_frame(path, content)
    places = _places(path, list(frame.columns), needed, also)
    columns = {name: [_text(value) for value in frame.iloc[:, place]] for name, place in places.items()}
    return Table(path, columns, range(1, len(frame) + 1), hashlib.sha256(content).hexdigest())


def _text(value: Any) -> str:
    """A value of a Parquet file as a CSV file would have it; points in time with a zone are Unix times."""
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, datetime):
        whole = value.replace(microsecond=0)
        return whole.strftime("%Y-%m-%dT%H:%M:%S") if value.tzinfo is None else str(int(whole.timestamp()))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _whole(text: str) -> int | None:
    number = _number(text)
    return int(number) if number is not None and number.is_integer() and number >= 0 else None


def _number(text: str) -> float | None:
    try:
        number = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return number if abs(number) <= _LARGEST else None
