"""The byte parser of the Standard Workload Format: plain lines in compiled code, all others by the rules.

Nearly all lines of a log have 18 whole numbers or short decimal fractions and nothing else; compiled code
reads them in one pass. It leaves comments, exponents, numbers of many digits and whatever is malformed to
Python, which reads these lines with its own numbers and says what is wrong with them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.jit import inline, jit
from gridsched.workloads.table import SWF_FIELDS

FIELDS = len(SWF_FIELDS)
REPORTED = 3
"""Malformed lines that are described; all are counted."""

_LONGEST_NUMBER = 64
"""Characters that a number may have."""

_SHORTEST_LINE = 2 * FIELDS
"""Bytes of the shortest job line: one digit and one separator a field."""

_NUMBER = re.compile(rb"[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_NEWLINE, _SEMICOLON, _BLANK = ord("\n"), ord(";"), ord(" ")
_MINUS, _POINT, _ZERO = ord("-"), ord("."), ord("0")
_MOST_DIGITS = 18
"""Digits of the numbers that are read here: any of so many fits int64."""

_EXACT = 2**53
"""Largest mantissa, divided by a power of ten that float64 holds too, of which the result is exact."""

_POWERS = 10.0 ** np.arange(_MOST_DIGITS + 1)


@dataclass
class ParsedText:
    """What the parser found: columns in SWF order, comments with a line of their own, and what is malformed.

    `problems` says what is wrong with the first malformed lines, by their numbers; `malformed` is the number
    of all. `longer` is the number of jobs whose line has more fields than are read.
    """

    columns: list[NDArray[Any]]
    header: list[str] = field(default_factory=list)
    problems: dict[int, str] = field(default_factory=dict)
    malformed: int = 0
    longer: int = 0


def parse(text: NDArray[np.uint8], *, ignore_extra: bool = False) -> ParsedText:
    """Parse the bytes of an SWF log, which must end with a newline and have no zero byte.

    A column is int64 unless one of its values has a decimal point or an exponent: then it is float64,
    and its values are those that Python's `float` gives. A line with more than the 18 fields is malformed,
    unless these are to be ignored.
    """
    lines = int(np.count_nonzero(text == _NEWLINE))
    whole = np.empty((FIELDS, min(lines, text.size // _SHORTEST_LINE + 1)), np.int64)
    is_real = np.zeros(FIELDS, np.bool_)
    others = np.empty((min(lines, 4096), 4), np.int64)
    jobs, number, longer = _read_lines(text, whole, whole.view(np.float64), is_real, others, ignore_extra)
    if number > len(others):
        others, is_real[:] = np.empty((number, 4), np.int64), False
        _read_lines(text, whole, whole.view(np.float64), is_real, others, ignore_extra)
    columns = [(whole.view(np.float64) if is_real[c] else whole)[c, :jobs] for c in range(FIELDS)]
    parsed = ParsedText(columns, longer=int(longer))
    places, rows = [], []
    for line, start, end, job in others[:number].tolist():
        content = text[start:end].tobytes()
        if content.lstrip().startswith(b";"):
            parsed.header.append(decoded(content).rstrip("\r"))
            continue
        try:
            values, more = _numbers(content, ignore_extra=ignore_extra)
        except ValueError as problem:
            parsed.malformed += 1
            if parsed.malformed <= REPORTED:
                parsed.problems[line] = str(problem)
            continue
        parsed.longer += more
        places.append(job)
        rows.append(values)
    if rows:
        by_column = zip(columns, zip(*rows, strict=True), strict=True)
        parsed.columns = [_inserted(*each, places) for each in by_column]
    return parsed


def decoded(line: bytes) -> str:
    """A line as UTF-8 where it is, else as Latin-1."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _inserted(column: NDArray[Any], values: tuple[int | float, ...], places: list[int]) -> NDArray[Any]:
    """A column with the values of lines that Python read at their places."""
    if any(isinstance(value, float) for value in values):
        column = column.astype(np.float64)
    return np.insert(column, places, np.array(values, column.dtype))


def _numbers(line: bytes, *, ignore_extra: bool) -> tuple[list[int | float], bool]:
    """Numbers of a job line, and whether it has further fields; a ValueError says what is wrong with it."""
    fields = line.partition(b";")[0].split()
    values: list[int | float] = []
    for number, (name, text) in enumerate(zip(SWF_FIELDS, fields, strict=False), start=1):
        where = f"field {number} ({name}) is {_shown(text)}"
        if not _NUMBER.fullmatch(text):
            raise ValueError(f"{where}, not a number")
        if len(text) > _LONGEST_NUMBER:
            raise ValueError(f"{where}, a number of more than {_LONGEST_NUMBER} characters")
        is_real = bool(set(text) & set(b".eE"))
        values.append(float(text) if is_real else int(text))
        if not abs(values[-1]) < (math.inf if is_real else 2**63):
            raise ValueError(f"{where}, a number out of range")
    more = len(fields) > FIELDS
    if len(values) < FIELDS or (more and not ignore_extra):
        raise ValueError(f"{len(fields)} fields instead of {FIELDS}: {_shown(line.strip())}")
    return values, more


def _shown(text: bytes) -> str:
    shown = decoded(text)
    return repr(shown if len(shown) <= 40 else f"{shown[:40]}...")


@inline
def _character(text: Any, at: Any) -> Any:
    """Code of one character; an unsigned index spares the test for a negative one (a sixth of the time)."""
    return np.int64(text[np.uintp(at)])


@inline
def _is_space(character: Any) -> Any:
    """Whether a character separates fields: blank, tab, carriage return, vertical tab, form feed."""
    return character == _BLANK or (9 <= character <= 13 and character != _NEWLINE)


@inline
def _digits(text: Any, start: Any, value: Any) -> tuple[int, int]:
    """The number with further digits behind it, and where these end."""
    at = start
    digit = _character(text, at) - _ZERO
    while 0 <= digit <= 9 and at - start <= _MOST_DIGITS:
        value = value * 10 + digit
        at += 1
        digit = _character(text, at) - _ZERO
    return value, at


@jit
def _read_lines(
    text: Any, whole: Any, real: Any, is_real: Any, others: Any, ignore_extra: bool
) -> tuple[int, int, int]:
    """Read the plain job lines; list the others with line, start, end and the number of jobs before them.

    Returns
    -------
    int, int, int
        Jobs, other lines (all of them, even where there is no room to list them), jobs with more fields.
    """
    at, line, job, other, longer = 0, 0, 0, 0, 0
    while at < text.size:
        line += 1
        start, column, is_plain = at, 0, True
        while True:
            while _is_space(_character(text, at)):
                at += 1
            if _character(text, at) == _NEWLINE:
                break
            if column == FIELDS:
                is_plain = ignore_extra
                break
            negative = _character(text, at) == _MINUS
            first = at + 1 if negative else at
            value, at = _digits(text, first, 0)
            digits, behind = at - first, -1
            if _character(text, at) == _POINT:
                point = at + 1
                value, at = _digits(text, point, value)
                behind = at - point
                digits += behind
            end = _character(text, at)
            is_plain = 0 < digits <= _MOST_DIGITS and (_is_space(end) or end == _NEWLINE)
            if not is_plain or (behind >= 0 and value > _EXACT):
                is_plain = False
                break
            value = -value if negative else value
            if behind >= 0 and not is_real[column]:
                is_real[column] = True
                for earlier in range(job):
                    real[column, earlier] = whole[column, earlier]
            if is_real[column]:
                fraction = value / _POWERS[max(behind, 0)]
                real[column, job] = -0.0 if negative and value == 0 and behind >= 0 else fraction
            else:
                whole[column, job] = value
            column += 1
        is_job = is_plain and column == FIELDS
        longer += is_job and _character(text, at) != _NEWLINE
        while _character(text, at) != _NEWLINE:
            at += 1
        if is_job:
            job += 1
        elif column > 0 or not is_plain:
            if other < others.shape[0]:
                others[other, 0] = line
                others[other, 1] = start
                others[other, 2] = at
                others[other, 3] = job
            other += 1
        at += 1
    return job, other, longer
