"""The byte parser of the Standard Workload Format: one pass over the text, in compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.jit import inline, jit
from gridsched.workloads.table import SWF_FIELDS

FIELDS = len(SWF_FIELDS)
LONGEST_NUMBER = 64
"""Characters that a number may have."""

REPORTED = 3
"""Malformed lines that are shown; all are counted."""

_SHORTEST_LINE = 2 * FIELDS
"""Bytes of the shortest job line: one digit and one separator a field."""

_NEWLINE, _SEMICOLON, _BLANK = ord("\n"), ord(";"), ord(" ")
_PLUS, _MINUS, _POINT, _ZERO = ord("+"), ord("-"), ord("."), ord("0")
_LOWER_E, _UPPER_E = ord("e"), ord("E")

_WHOLE, _REAL, _LONG_REAL, _BAD = 0, 1, 2, 3
"""Kinds of fields: whole number, fraction parsed exactly here, fraction left to NumPy, malformed."""

_TENTH_OF_MAX = (2**63 - 1) // 10
_EXACT_MANTISSA = 2**53
_EXACT_POWER = 22
_POWERS = 10.0 ** np.arange(_EXACT_POWER + 1)
"""The powers of ten that float64 holds exactly."""


class ParsedText(NamedTuple):
    """What the parser found: columns in SWF order, positions in the text of comments and malformed lines.

    `comments` has a row (start, end) a comment line, `bad` a row (line number, start, end) for the
    first malformed lines, `bad_count` is the number of all malformed lines. `binary_line` is the line
    of the first zero byte, 0 if there is none; nothing is parsed if there is one. `longer` is the number of
    jobs whose line has more fields than are read.
    """

    columns: list[NDArray[Any]]
    comments: NDArray[np.int64]
    bad: NDArray[np.int64]
    bad_count: int
    binary_line: int = 0
    longer: int = 0


def parse(text: NDArray[np.uint8], *, ignore_extra: bool = False) -> ParsedText:
    """Parse the bytes of an SWF log, which must end with a newline.

    A column is int64 unless one of its values has a decimal point or an exponent: then it is float64,
    and its values are those that Python's `float` gives. A line with more than the 18 fields is malformed,
    unless these are to be ignored.
    """
    lines, zeros = _survey(text)
    if zeros:
        return _binary(text)
    rows = min(lines, text.size // _SHORTEST_LINE + 1)
    whole = np.empty((FIELDS, rows), np.int64)
    is_real = np.zeros(FIELDS, np.bool_)
    bad = np.zeros((REPORTED, 3), np.int64)
    comments = np.empty((min(lines, 4096), 2), np.int64)
    long_reals = np.empty((1024, 6), np.int64)
    while True:
        jobs, comment_count, long_count, bad_count, longer = _parse_lines(
            text, whole, whole.view(np.float64), is_real, comments, long_reals, bad, ignore_extra
        )
        if comment_count <= len(comments) and long_count <= len(long_reals):
            break
        comments = np.empty((comment_count, 2), np.int64)
        long_reals = np.empty((long_count, 6), np.int64)
        is_real[:] = False
    overflows = _parse_long_reals(text, whole.view(np.float64), long_reals[:long_count])
    bad = np.concatenate([bad[:bad_count], overflows])
    bad = bad[np.argsort(bad[:, 0])][:REPORTED]
    bad_count += len(overflows)
    columns = [(whole.view(np.float64) if is_real[c] else whole)[c, :jobs] for c in range(FIELDS)]
    return ParsedText(columns, comments[:comment_count], bad, int(bad_count), longer=int(longer))


def _binary(text: NDArray[np.uint8]) -> ParsedText:
    """Nothing parsed, and the line of the first zero byte."""
    before, _ = _survey(text[: int(np.argmin(text))])
    nothing = np.empty((0, 3), np.int64)
    return ParsedText([], nothing[:, :2], nothing, 0, int(before) + 1)


def _parse_long_reals(
    text: NDArray[np.uint8], real: NDArray[np.float64], found: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Fill in the numbers with too many digits for exact arithmetic; return the lines that overflow."""
    if not len(found):
        return np.empty((0, 3), np.int64)
    job, column, _, end, line, line_start = found.T
    characters = np.zeros((len(found), LONGEST_NUMBER), np.uint8)
    _copy_numbers(text, found, characters)
    with np.errstate(over="ignore"):
        values = characters.view(f"S{LONGEST_NUMBER}").ravel().astype(np.float64)
    real[column, job] = values
    overflow = np.isinf(values)
    _, first = np.unique(line[overflow], return_index=True)
    return np.stack([line, line_start, end], axis=1)[overflow][first]


@jit
def _survey(text: Any) -> tuple[int, int]:
    """Count the newlines and the zero bytes."""
    lines, zeros = 0, 0
    for character in text:
        lines += character == _NEWLINE
        zeros += character == 0
    return lines, zeros


@jit
def _copy_numbers(text: Any, found: Any, characters: Any) -> None:
    for i in range(found.shape[0]):
        start = found[i, 2]
        for k in range(found[i, 3] - start):
            characters[i, k] = text[start + k]


@inline
def _character(text: Any, at: Any) -> Any:
    """Code of one character; an unsigned index spares the test for a negative one (a sixth of the time)."""
    return np.int64(text[np.uintp(at)])


@inline
def _is_space(character: Any) -> Any:
    """Whether a character separates fields: blank, tab, carriage return, vertical tab, form feed."""
    return character == _BLANK or (9 <= character <= 13 and character != _NEWLINE)


@inline
def _scaled(mantissa: Any, power: Any) -> Any:
    """Mantissa times a power of ten, exact because both are exact in float64 (Clinger, PLDI 1990)."""
    return mantissa * _POWERS[power] if power >= 0 else mantissa / _POWERS[-power]


@inline
def _short_number(text: Any, start: Any) -> tuple[int, float, int, int]:
    """As `_number`, for fields like 123 or -1 before a blank or line end; all others count as malformed."""
    negative = _character(text, start) == _MINUS
    first = start + 1 if negative else start
    value, at = 0, first
    digit = _character(text, at) - _ZERO
    while 0 <= digit <= 9 and at - first < 18:
        value = value * 10 + digit
        at += 1
        digit = _character(text, at) - _ZERO
    plain = at > first and (_character(text, at) == _BLANK or _character(text, at) == _NEWLINE)
    return (-value if negative else value), 0.0, (_WHOLE if plain else _BAD), at


@jit
def _number(text: Any, start: Any) -> tuple[int, float, int, int]:
    """Read the field at `start`: its value as whole number, as fraction, its kind, and where it ends."""
    at = start
    negative = _character(text, at) == _MINUS
    if negative or _character(text, at) == _PLUS:
        at += 1
    mantissa, power, digits, fits, kind = 0, 0, 0, True, _WHOLE
    while True:
        digit = _character(text, at) - _ZERO
        if digit == _POINT - _ZERO and kind == _WHOLE:
            kind = _REAL
            at += 1
            continue
        if digit < 0 or digit > 9:
            break
        if mantissa >= _TENTH_OF_MAX and (mantissa > _TENTH_OF_MAX or digit > 7):
            fits = False
        else:
            mantissa = mantissa * 10 + digit
        digits += 1
        # After the decimal point the kind is 1, before it 0.
        power -= kind
        at += 1
    well_formed = digits > 0
    if _character(text, at) == _LOWER_E or _character(text, at) == _UPPER_E:
        kind = _REAL
        at += 1
        exponent_negative = _character(text, at) == _MINUS
        if exponent_negative or _character(text, at) == _PLUS:
            at += 1
        exponent, first = 0, at
        while True:
            digit = _character(text, at) - _ZERO
            if digit < 0 or digit > 9:
                break
            exponent = min(exponent * 10 + digit, 100_000)
            at += 1
        well_formed = well_formed and at > first
        power += -exponent if exponent_negative else exponent
    end = _character(text, at)
    if not (well_formed and (_is_space(end) or end in (_NEWLINE, _SEMICOLON))):
        return 0, 0.0, _BAD, at
    if at - start > LONGEST_NUMBER or (kind == _WHOLE and not fits):
        return 0, 0.0, _BAD, at
    if kind == _WHOLE:
        return (-mantissa if negative else mantissa), 0.0, _WHOLE, at
    if not fits or mantissa > _EXACT_MANTISSA or power > _EXACT_POWER or power < -_EXACT_POWER:
        return 0, 0.0, _LONG_REAL, at
    value = _scaled(mantissa, power)
    return 0, (-value if negative else value), _REAL, at


@jit
def _parse_lines(
    text: Any,
    whole: Any,
    real: Any,
    is_real: Any,
    comments: Any,
    long_reals: Any,
    bad: Any,
    ignore_extra: bool,
) -> tuple[int, int, int, int, int]:
    """Fill the columns and positions; return numbers of jobs, comments, long fractions, bad and longer lines.

    `real` is the same memory as `whole`: a column turns into float64 in place at its first fraction.
    Positions that do not fit in the arrays are counted only.
    """
    at, line, job, comment_count, long_count, bad_count, longer = 0, 0, 0, 0, 0, 0, 0
    while at < text.size:
        line += 1
        start = at
        column, good, long_before = 0, True, long_count
        while True:
            while _is_space(_character(text, at)):
                at += 1
            if _character(text, at) == _NEWLINE or _character(text, at) == _SEMICOLON:
                break
            if column == FIELDS:
                good = ignore_extra
                longer += ignore_extra
                break
            first = at
            value, fraction, kind, at = _short_number(text, at)
            if kind == _BAD:
                value, fraction, kind, at = _number(text, first)
            if kind == _WHOLE:
                if is_real[column]:
                    real[column, job] = value
                else:
                    whole[column, job] = value
            elif kind == _BAD:
                good = False
                break
            else:
                if not is_real[column]:
                    is_real[column] = True
                    for earlier in range(job):
                        real[column, earlier] = whole[column, earlier]
                real[column, job] = fraction
                if kind == _LONG_REAL:
                    if long_count < long_reals.shape[0]:
                        long_reals[long_count, 0] = job
                        long_reals[long_count, 1] = column
                        long_reals[long_count, 2] = first
                        long_reals[long_count, 3] = at
                        long_reals[long_count, 4] = line
                        long_reals[long_count, 5] = start
                    long_count += 1
            column += 1
        is_comment = column == 0 and good and _character(text, at) == _SEMICOLON
        while _character(text, at) != _NEWLINE:
            at += 1
        if is_comment:
            if comment_count < comments.shape[0]:
                comments[comment_count, 0] = start
                comments[comment_count, 1] = at
            comment_count += 1
        elif good and column == FIELDS:
            job += 1
        elif column > 0 or not good:
            if bad_count < bad.shape[0]:
                bad[bad_count, 0] = line
                bad[bad_count, 1] = start
                bad[bad_count, 2] = at
            bad_count += 1
            long_count = long_before
        at += 1
    return job, comment_count, long_count, bad_count, longer
