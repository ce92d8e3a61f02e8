"""Imprecise calendars: near slots are fine, far slots coarse; who needs part of a slot takes it whole.

Hollingsworth and Maneewongvatana, "Imprecise calendars: an approach to scheduling computational grids" (ICDCS
1999), section 2. A calendar is a row of consecutive slots; of each slot it knows how many nodes are free. The
slots of one level have one duration, a multiple of that of the level below, and stand side by side; those of
level 0, the fundamental ones, come first. The calendars of all clusters have the same slots, since these
depend on nothing but time: only the free nodes differ, one row of numbers a cluster.

A slot has a number within its level, which never changes, so that a level is a ring: it loses slots in front
(they are over, or are split) and gets new ones behind (the parts of a slot of the level above). The
last level is open: it has as many slots as were ever needed, and every slot behind them is empty.

What a job holds follows from its planned time [start, end) alone: the slots of the moment that this time
touches. So nothing but the free nodes is kept, and nothing has to be moved when slots are split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridsched.engine.jit import inline, noinline
from gridsched.engine.records import FOREVER

LEVEL = np.dtype(
    [
        ("duration", np.int64),  # of each slot
        ("origin", np.int64),  # when slot 0 of this level would begin
        ("low", np.int64),  # a slot of the level above is split when so few are left
        ("first", np.int64),  # number of the first slot
        ("end", np.int64),  # number behind the last slot; FOREVER in the open level
        ("base", np.int64),  # where the ring of this level begins in a row
        ("mask", np.int64),  # room of the ring, a power of two, less one
    ]
)
"""The slots of one duration."""

ROW = np.dtype(
    [
        ("nodes", np.int64),  # without those that are out for a time that nobody knows
        ("slack", np.int64),  # nodes that must stay free in a shared slot that is not fundamental
        ("unit", np.int64),  # nodes that jobs take at a time
    ]
)
"""The cluster whose free nodes a row tells."""

TALLY = np.dtype(
    [
        ("origin", np.int64),  # begin of the first fundamental slot
        ("grown", np.int64),  # number behind the last slot of the open level that was ever needed
        ("short", np.int64),  # whether the open level needed more slots than there is room for
        ("most", np.int64),  # largest number of slots at once
        ("splits", np.int64),  # slots that were split, in one calendar
        ("operations", np.int64),  # searches, changes and splits
        ("touched", np.int64),  # slots that these looked at or changed
    ]
)
"""Scalars of the calendars, and what they cost."""


class CalendarArrays(NamedTuple):
    """Calendars with the same slots."""

    levels: Any  # LEVEL[levels]
    rows: Any  # ROW[rows]
    free: Any  # int32[rows, room]: free nodes of each slot
    tally: Any  # TALLY[1]


def allocate(
    levels: Sequence[tuple[int, int, int]], origin: int, rows: Sequence[tuple[int, int, int]], room: int
) -> CalendarArrays:
    """Empty calendars that begin at `origin`.

    Parameters
    ----------
    levels : sequence of (count, duration, low)
        Slots of each level at the origin and low-water mark; both are not looked at in the last, open one.
    origin : int
        When the first slot begins.
    rows : sequence of (nodes, slack, unit)
        Of each calendar.
    room : int
        Slots of the open level that there is room for, a power of two.
    """
    table = np.zeros(len(levels), LEVEL)
    begin, base = origin, 0
    for i, (count, duration, low) in enumerate(levels[:-1]):
        ring = 1 << (max(count, low + levels[i + 1][1] // duration) - 1).bit_length()
        table[i] = (duration, begin, low, 0, count, base, ring - 1)
        begin += count * duration
        base += ring
    table[-1] = (levels[-1][1], begin, 0, 0, FOREVER, base, room - 1)
    limits = np.array(list(rows), ROW)
    tally = np.zeros(1, TALLY)
    tally["origin"], tally["most"] = origin, table["end"][:-1].sum()
    free = np.repeat(limits["nodes"].astype(np.int32)[:, np.newaxis], base + room, axis=1)
    return CalendarArrays(table, limits, free, tally)


# --- slots ----------------------------------------------------------------------------------------


@inline
def top(c: CalendarArrays) -> int:
    """The open level."""
    return len(c.levels) - 1


@inline
def begins(c: CalendarArrays, level: int, number: int) -> int:
    """When a slot begins; the one before it ends then."""
    return c.levels[level]["origin"] + number * c.levels[level]["duration"]


@inline
def slot_at(c: CalendarArrays, time: int) -> tuple[int, int]:
    """Level and number of the slot that holds `time`, which must not be before the first slot."""
    level = 0
    while level < top(c) and time >= begins(c, level, c.levels[level]["end"]):
        level += 1
    return level, (time - c.levels[level]["origin"]) // c.levels[level]["duration"]


@inline
def slot_after(c: CalendarArrays, level: int, number: int) -> tuple[int, int]:
    """The slot that follows a slot."""
    number += 1
    while level < top(c) and number == c.levels[level]["end"]:
        level += 1
        number = c.levels[level]["first"]
    return level, number


@inline
def slots_in(c: CalendarArrays, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Level and number of each slot that [begin, end) touches."""
    level, number = slot_at(c, begin)
    time = begin
    while time < end:
        yield level, number
        level, number = slot_after(c, level, number)
        time = begins(c, level, number)


@inline
def span_of(c: CalendarArrays, time: int) -> tuple[int, int]:
    """Begin and end of the slot that holds `time`."""
    level, number = slot_at(c, time)
    return begins(c, level, number), begins(c, level, number + 1)


@inline
def boundary(c: CalendarArrays, time: int) -> int:
    """First multiple of the fundamental slot at or after `time`."""
    duration = c.levels[0]["duration"]
    return time + (c.tally[0]["origin"] - time) % duration


@inline
def is_empty_from(c: CalendarArrays, level: int, number: int) -> bool:
    """Whether no slot from this one on was ever needed."""
    return level == top(c) and number >= c.tally[0]["grown"]


@inline
def place_of(c: CalendarArrays, level: int, number: int) -> int:
    """Where a slot stands in a row."""
    return c.levels[level]["base"] + (number & c.levels[level]["mask"])


@inline
def slots(c: CalendarArrays) -> int:
    """How many slots a calendar has."""
    count = max(0, c.tally[0]["grown"] - c.levels[top(c)]["first"])
    for level in range(top(c)):
        count += c.levels[level]["end"] - c.levels[level]["first"]
    return count


@inline
def available(c: CalendarArrays, row: int, level: int, number: int) -> int:
    """Nodes that one more job may take in a slot; none or less if there are none.

    In a slot that is not fundamental some nodes are kept back, unless nobody is in it.
    """
    nodes = c.rows[row]["nodes"]
    if is_empty_from(c, level, number):
        return nodes
    free = int(c.free[row, place_of(c, level, number)])
    if level == 0 or free >= nodes:
        return free
    return free - c.rows[row]["slack"]


@inline
def available_at(c: CalendarArrays, row: int, time: int) -> int:
    """Nodes that one more job may take in the slot that holds `time`."""
    level, number = slot_at(c, time)
    return available(c, row, level, number)


@inline
def _count(c: CalendarArrays, touched: int) -> None:
    """Note what an operation cost."""
    c.tally[0]["operations"] += 1
    c.tally[0]["touched"] += touched


# --- requests -------------------------------------------------------------------------------------


@noinline
def earliest_fit(
    c: CalendarArrays, row: int, begin: int, nodes: int, duration: int, limit: int, own: int
) -> int:
    """First fit: when `nodes` are available for `duration` seconds in whole slots.

    The answer is `begin` or the begin of a slot after it, and `limit` if it is not before `limit`. From `own`
    on all slots count as available: with the start of what the job holds there, and that as limit, this
    is the earliest place to which it can move. The cluster must have the nodes.
    """
    level, number = slot_at(c, begin)
    all_nodes = c.rows[row]["nodes"]
    start = begin
    looked = 0
    searching = start < limit
    while searching:
        here = c.levels[level]
        length = here["duration"]
        base = here["base"]
        mask = here["mask"]
        behind = min(here["end"], c.tally[0]["grown"]) if level == top(c) else here["end"]
        # A slot with so many free nodes, or with all of them, has room.
        enough = min(all_nodes, nodes + (c.rows[row]["slack"] if level > 0 else 0))
        time = here["origin"] + number * length
        while searching and number < behind:
            time += length
            looked += 1
            if c.free[row, base + (number & mask)] < enough:
                start = time
                searching = start < limit
            elif time >= start + duration or time >= own:
                searching = False
            number += 1
        if searching:
            searching = level < top(c)
            level = min(level + 1, top(c))
            number = c.levels[level]["first"]
    _count(c, looked)
    return min(start, limit)


@noinline
def spans(
    c: CalendarArrays, offset: int, first: int, end: int, start: int, nodes: int, duration: int, least: Any
) -> bool:
    """Whether clusters have `nodes` together, each part on one cluster for the whole duration.

    `least[k]` becomes what cluster `k`, from `first` to before `end`, has in all slots that [start, start +
    duration) touches, if that is enough: as many as jobs can take. The calendar of cluster `k` is row
    `offset + k`.
    """
    level, number = slot_at(c, start)
    time = start
    looked = 0
    for k in range(first, end):
        least[k] = c.rows[offset + k]["nodes"]
    total = nodes
    while time < start + duration and total >= nodes and not is_empty_from(c, level, number):
        total = 0
        for k in range(first, end):
            room = max(0, min(least[k], available(c, offset + k, level, number)))
            least[k] = room - room % c.rows[offset + k]["unit"]
            total += least[k]
        looked += end - first
        level, number = slot_after(c, level, number)
        time = begins(c, level, number)
    _count(c, looked)
    return total >= nodes


@noinline
def earliest_span(
    c: CalendarArrays,
    offset: int,
    first: int,
    end: int,
    begin: int,
    nodes: int,
    duration: int,
    limit: int,
    least: Any,
) -> int:
    """First fit of a job that spans clusters: `begin` or the begin of a slot after it, or else `limit`.

    The clusters must have the nodes together; see `spans`.
    """
    start = begin
    while start < limit and not spans(c, offset, first, end, start, nodes, duration, least):
        level, number = slot_at(c, start)
        start = begins(c, level, number + 1)
    return min(start, limit)


@inline
def _grow(c: CalendarArrays, number: int) -> bool:
    """Let the open level have slots up to and with a number; whether there was room."""
    last = c.levels[top(c)]
    if number - last["first"] > last["mask"]:
        c.tally[0]["short"] = True
        return False
    while c.tally[0]["grown"] <= number:
        place = place_of(c, top(c), c.tally[0]["grown"])
        for row in range(len(c.rows)):
            c.free[row, place] = c.rows[row]["nodes"]
        c.tally[0]["grown"] += 1
    c.tally[0]["most"] = max(c.tally[0]["most"], slots(c))
    return True


@noinline
def change(c: CalendarArrays, row: int, begin: int, end: int, nodes: int) -> None:
    """Add `nodes` (negative to take them) to what is free in every slot that [begin, end) touches."""
    level, number = slot_at(c, begin)
    time = begin
    touched = 0
    while time < end and (not is_empty_from(c, level, number) or _grow(c, number)):
        c.free[row, place_of(c, level, number)] += nodes
        touched += 1
        level, number = slot_after(c, level, number)
        time = begins(c, level, number)
    _count(c, touched)


# --- time -----------------------------------------------------------------------------------------


@inline
def consume(c: CalendarArrays, now: int) -> None:
    """Drop the fundamental slots that are over; `now` must not be after the next split."""
    lowest = c.levels[0]
    lowest["first"] = (now - lowest["origin"]) // lowest["duration"]
    if top(c) == 0:
        c.tally[0]["grown"] = max(c.tally[0]["grown"], lowest["first"])


@inline
def next_split(c: CalendarArrays) -> int:
    """When the fundamental slots will be down to their low-water mark."""
    if top(c) == 0:
        return FOREVER
    return begins(c, 0, c.levels[0]["end"] - c.levels[0]["low"])


@inline
def is_low(c: CalendarArrays, level: int) -> bool:
    """Whether a level is down to its low-water mark, so that a slot of the level above is to be split."""
    return level < top(c) and c.levels[level]["end"] - c.levels[level]["first"] <= c.levels[level]["low"]


@noinline
def split(c: CalendarArrays, level: int) -> tuple[int, int]:
    """Make slots of `level` of the first slot of the level above; its begin and end.

    Each part has as many free nodes as the whole had; it is for the caller to give back what is not needed.
    """
    above = c.levels[level + 1]
    number = int(above["first"])
    if is_empty_from(c, level + 1, number):
        _grow(c, number)
    begin = begins(c, level + 1, number)
    end = begins(c, level + 1, number + 1)
    place = place_of(c, level + 1, number)
    first = int(c.levels[level]["end"])
    behind = first + above["duration"] // c.levels[level]["duration"]
    for row in range(len(c.rows)):
        free = c.free[row, place]
        for k in range(first, behind):
            c.free[row, place_of(c, level, k)] = free
    above["first"] = number + 1
    c.levels[level]["end"] = behind
    tally = c.tally[0]
    tally["splits"] += 1
    tally["most"] = max(tally["most"], slots(c))
    _count(c, behind - first)
    return begin, end


@noinline
def copy_row(c: CalendarArrays, source: int, target: int) -> None:
    """Let one calendar have the free nodes of another."""
    old, new = c.free[source], c.free[target]
    for place in range(len(old)):
        new[place] = old[place]


@noinline
def add_nodes(c: CalendarArrays, row: int, more: int) -> None:
    """Let a calendar have more nodes (or fewer, below 0); what is in use in its slots is as before."""
    c.rows[row]["nodes"] += more
    for place in range(c.free.shape[1]):
        c.free[row, place] += more
