"""Waiting jobs in order of entry, in columns that are fast to search for the next one that fits.

A job that leaves from the middle of the line leaves a gap, which no search finds: it needs more processors
than can be idle while somebody waits. The first place of a line is never a gap, unless the line is empty.

The search looks at `CHUNK` places at once and without branches, so that the compiler makes vector
instructions of it; so many places behind the line look like gaps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import bundles
from gridsched.engine.bundles import column
from gridsched.engine.jit import inline, noinline
from gridsched.engine.records import LARGEST

CHUNK = 32
"""Places that are searched at once. 64 measures alike; a loop of 16 is not made vector instructions."""

_SPARSE = 64
"""A line is compacted when it has so many places more than twice its jobs."""

SPAN = np.dtype(
    [
        ("first", np.int64),  # place of the first waiting job
        ("end", np.int64),  # place behind the last one
        ("tested", np.int64),  # jobs at places before this were refused in the last pass
    ]
)
"""The part of a line that is in use."""


class Line(NamedTuple):
    """Waiting jobs; with one more dimension, one line a row. Room is for `CHUNK` more jobs than may wait."""

    processors: Any = column(np.int32, "rows", "room", fill=LARGEST)
    estimate: Any = column(np.int32, "rows", "room")
    job: Any = column(np.int64, "rows", "room")  # -1 in a gap
    span: Any = column(SPAN, "rows", "one")


def allocate(rows: int, waiting: int) -> Line:
    """Empty lines for so many waiting jobs each."""
    return bundles.allocate(Line, {"rows": rows, "room": waiting + CHUNK, "one": 1})


def with_room(lines: Line, waiting: int) -> Line:
    """The same lines for more waiting jobs."""
    return bundles.grow(lines, {"room": waiting + CHUNK})


@inline
def row(lines: Line, index: int) -> Line:
    """One of several lines."""
    return Line(lines.processors[index], lines.estimate[index], lines.job[index], lines.span[index])


@inline
def clear(line: Line) -> None:
    """Let nobody wait."""
    span = line.span[0]
    span["first"] = 0
    span["tested"] = 0
    _end_at(line, 0)


@inline
def _end_at(line: Line, place: int) -> None:
    """Let the line end before a place."""
    line.span[0]["end"] = place
    for k in range(CHUNK):
        line.processors[place + k] = LARGEST


@inline
def is_gap(line: Line, place: int) -> bool:
    """Whether the job of a place has left."""
    return line.job[place] < 0


@inline
def copy(source: Line, target: Line) -> None:
    """Copy a line without its gaps; a line that is copied to itself closes them."""
    span = source.span[0]
    tested = 0
    kept = 0
    for place in range(span["first"], span["end"]):
        here = int(not is_gap(source, place))
        tested += here & int(place < span["tested"])
        target.processors[kept] = source.processors[place]
        target.estimate[kept] = source.estimate[place]
        target.job[kept] = source.job[place]
        kept += here
    own = target.span[0]
    own["first"] = 0
    own["tested"] = tested
    _end_at(target, kept)


@inline
def append(line: Line, j: int, processors: int, estimate: int) -> None:
    """Let a job wait behind all others; there must be room for it once the gaps are closed."""
    span = line.span[0]
    if span["end"] + CHUNK == len(line.job):
        copy(line, line)
    place = span["end"]
    line.processors[place + CHUNK] = LARGEST
    line.processors[place] = processors
    line.estimate[place] = estimate
    line.job[place] = j
    span["end"] = place + 1


@inline
def leave(line: Line, place: int) -> None:
    """Let the job of a place wait no longer."""
    line.processors[place] = LARGEST
    line.job[place] = -1


@inline
def skip_gaps(line: Line) -> None:
    """Let the line begin with a job, or be empty."""
    span = line.span[0]
    first = span["first"]
    while first < span["end"] and is_gap(line, first):
        first += 1
    span["first"] = first


@noinline
def tidy(line: Line, waiting: int) -> None:
    """Close the gaps of a line that has many beside its waiting jobs."""
    skip_gaps(line)
    if waiting == 0:
        clear(line)
    elif line.span[0]["end"] - line.span[0]["first"] > 2 * waiting + _SPARSE:
        copy(line, line)


@inline
def as_column(number: int) -> Any:
    """A number as the columns hold it; what is beyond the largest of them counts as the largest."""
    return np.int32(min(number, LARGEST))


@inline
def next_fit(line: Line, place: int, narrow: int, wide: int, window: int) -> int:
    """First place at or after `place` whose job fits; the end of the line if there is none.

    A job fits if it needs at most `narrow` processors, or at most `wide` and its estimate is at most
    `window`. The limits are to be numbers that `as_column` made.
    """
    while place < line.span[0]["end"]:
        processors = line.processors[place : place + CHUNK]
        estimate = line.estimate[place : place + CHUNK]
        first = np.int32(CHUNK)
        for k in range(CHUNK):
            fits = (processors[k] <= narrow) | ((processors[k] <= wide) & (estimate[k] <= window))
            first = min(first, np.int32(k) if fits else np.int32(CHUNK))
        if first < CHUNK:
            return int(place + first)
        place += CHUNK
    return line.span[0]["end"]
