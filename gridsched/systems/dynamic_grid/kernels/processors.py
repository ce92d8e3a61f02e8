"""Which processors everybody has, on clusters of a dynamic grid whose nodes fail.

The schedulers count processors. Who ends or leaves gives them back at once; at the end of an instant those
that are new get the lowest ones that are free and not *closed*, in order of job numbers. A closed processor
is out of order, drained or in maintenance: nothing starts on it, and it is not free. Who had it keeps it.

What is closed and idle is among the runs of its cluster, so that local schedulers plan with it: until it is
known to be back, or forever.

`OutageArrays` are None where no nodes fail; then nothing of this is compiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import heap, rings
from gridsched.engine.bundles import column
from gridsched.engine.jit import inline, noinline
from gridsched.engine.records import ENTRY
from gridsched.systems.dynamic_grid.kernels.state import (
    NOBODY,
    DynamicGridArrays,
    expect,
    forget,
    part_on,
)

OPEN, CLOSE, KILL = range(3)
"""What happens to the processors of an outage, in this order at one instant."""

OUTAGE = np.dtype(
    [
        ("cluster", np.int64),
        ("first", np.int64),  # the lowest of its processors
        ("end", np.int64),  # the processor after the highest one
        ("known", np.int64),  # when it is known to be over, FOREVER if it is not
        ("fleeing", np.int64),  # whether grid tasks leave before
        ("going_on", np.int64),  # whether the processors are closed for it
    ]
)
"""A time in which neighbouring processors are closed."""


class OutageArrays(NamedTuple):
    """What a grid needs besides: m clusters, of which those that fail have up to p processors.

    Holders are numbered: a job, or the number of jobs + a part whose tasks are on their way.
    """

    outages: Any  # OUTAGE[...]
    events: Any  # job_outcomes.OUTAGE_EVENT[...], of kinds OPEN, CLOSE and KILL
    owner: Any = column(np.int64, "clusters", "processors", fill=NOBODY)  # who has a processor
    back: Any = column(np.int64, "clusters", "processors", fill=NOBODY)  # end that is expected; NOBODY: open
    planned: Any = column(np.int64, "clusters", "processors", fill=NOBODY)  # its end among the runs
    fresh: Any = column(ENTRY, "processors")  # scratch: heap of who is new, and with how many processors


# --- who has which --------------------------------------------------------------------------------


@noinline
def hand_over(g: DynamicGridArrays, f: OutageArrays, i: int, holder: int, other: int) -> int:
    """Let another one, or nobody, have the processors of somebody; return how many of them are closed."""
    closed = 0
    if f is None:
        return closed
    for p in range(g.clusters[i]["processors"] * g.clusters[i]["fails"]):
        if f.owner[i, p] == holder:
            f.owner[i, p] = other
            closed += int(f.back[i, p] != NOBODY)
    return closed


@inline
def _give(g: DynamicGridArrays, f: OutageArrays, i: int, now: int) -> None:
    """Give processors to who is new on a cluster."""
    size = 0
    for k in range(g.state[i, 0]["ending"]):
        j = g.local_ends[i, k]["job"]
        if g.starts[j] == now:
            size = heap.push(f.fresh, size, j, g.jobs[j]["processors"])
    for own in rings.items(g.sites, i):
        part = g.parts[own]
        if part["placed"] < part["processors"]:
            size = heap.push(f.fresh, size, part["job"], part["processors"] - part["placed"])
            part["placed"] = part["processors"]
    p = 0
    while size > 0:
        for _ in range(f.fresh[0]["job"]):
            while f.owner[i, p] != NOBODY or f.back[i, p] != NOBODY:
                p += 1
            f.owner[i, p] = f.fresh[0]["key"]
        size = heap.pop(f.fresh, size)


@inline
def _plan_closed(g: DynamicGridArrays, f: OutageArrays, i: int) -> None:
    """Let closed processors that nobody has be among the runs, and no others."""
    first = len(g.requests) + len(g.parts)
    for p in range(g.clusters[i]["processors"]):
        before = f.planned[i, p]
        f.planned[i, p] = f.back[i, p] if f.owner[i, p] == NOBODY else NOBODY
        if f.planned[i, p] != before:
            if before != NOBODY:
                forget(g, i, first + p, before, 1)
            if f.planned[i, p] != NOBODY:
                expect(g, i, first + p, f.planned[i, p], 1)
    g.clusters[i]["loose"] = 0


@noinline
def place(g: DynamicGridArrays, f: OutageArrays, now: int) -> None:
    """Find out who has which processors, where that may have changed."""
    if f is None:
        return
    for i in range(len(g.clusters)):
        if g.clusters[i]["fails"] != 0 and g.clusters[i]["changed"] != 0:
            g.clusters[i]["changed"] = 0
            _give(g, f, i, now)
            _plan_closed(g, f, i)


@inline
def victim(g: DynamicGridArrays, f: OutageArrays, row: int) -> int:
    """First job, by number, that has processors of an outage; NOBODY if there is none."""
    outage = f.outages[row]
    first = len(g.requests)
    for p in range(outage["first"], outage["end"]):
        j = f.owner[outage["cluster"], p]
        if j >= len(g.requests):
            j = g.parts[j - len(g.requests)]["job"]
        if j != NOBODY:
            first = min(first, j)
    return first if first < len(g.requests) else NOBODY


# --- what is closed -------------------------------------------------------------------------------


@inline
def _part_of(g: DynamicGridArrays, i: int, holder: int) -> int:
    """Part of a grid job that a holder of processors of a cluster is; NOBODY if it is none."""
    if holder >= len(g.requests):
        return holder - len(g.requests)
    return NOBODY if holder == NOBODY else part_on(g, holder, i)


@inline
def _count(g: DynamicGridArrays, f: OutageArrays, i: int, p: int, closed: int) -> None:
    """Count a processor, if it is closed, as so many more of these."""
    cluster, holder = g.clusters[i], f.owner[i, p]
    if f.back[i, p] == NOBODY:
        return
    cluster["closed"] += closed
    if holder == NOBODY:
        g.state[i, 0]["free"] -= closed
    own = _part_of(g, i, holder)
    if own != NOBODY:
        g.parts[own]["closed"] += closed
        if holder < len(g.requests):
            cluster["grid"] -= closed
        else:
            cluster["leaving"] -= closed


@noinline
def close_or_open(g: DynamicGridArrays, f: OutageArrays, row: int, closes: bool) -> None:
    """Let an outage begin or be over; grid tasks there leave before one that is known begins."""
    outage = f.outages[row]
    outage["going_on"] = closes
    i, first, end = outage["cluster"], outage["first"], outage["end"]
    for p in range(first, end):
        _count(g, f, i, p, -1)
        f.back[i, p] = NOBODY
    for k in range(len(f.outages)):
        other = f.outages[k]
        if other["cluster"] == i and other["going_on"] != 0:
            for p in range(max(first, other["first"]), min(end, other["end"])):
                f.back[i, p] = max(f.back[i, p], other["known"])
    for p in range(first, end):
        _count(g, f, i, p, 1)
        own = _part_of(g, i, f.owner[i, p])
        if own != NOBODY and closes:
            g.parts[own]["fleeing"] |= outage["fleeing"]
