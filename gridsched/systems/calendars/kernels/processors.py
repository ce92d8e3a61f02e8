"""Which processors run what, and which are out: what calendars do not say, and have to be told.

A slot says how many nodes are free, not which. Where nodes fail, it is known besides which processors each
running job has. The calendar then keeps an exact account: in each slot are free all processors but those
that are out in it, those of the running jobs that hold it, and those that waiting jobs hold; a processor that
a running job has and that will be out counts once. So the waiting jobs whose slots are overdrawn are those
that have to give way, and then nothing is.

Nodes that are down or drained are out in all slots, since nobody knows for how long. An announced window
takes its processors out of the slots that it touches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import rings
from gridsched.engine.bundles import column
from gridsched.engine.jit import inline, noinline
from gridsched.engine.job_lifecycle import Lifecycles
from gridsched.engine.records import FOREVER
from gridsched.systems.calendars.kernels import calendar
from gridsched.systems.calendars.kernels.bookings import (
    NOWHERE,
    ManagerTree,
    Status,
    nodes_on,
    parts_of,
    tell_released,
)

CLOSING = np.dtype(
    [
        ("first", np.int64),  # the lowest of its processors that is out, counted over all clusters
        ("end", np.int64),  # the processor after the highest one
        ("cluster", np.int64),
        ("announced", np.int64),  # its start, if it is not known before
        ("start", np.int64),
        ("until", np.int64),  # FOREVER if it never ends
        ("window", np.int64),  # whether its end is known before
        ("drained", np.int64),  # whether jobs go on there to their end
    ]
)
"""An outage."""

CAPACITY = np.dtype(
    [
        ("first", np.int64),  # where its processors begin, counted over all clusters
        ("end", np.int64),  # where they end; they are left out if they never are out
        ("requeue", np.int64),  # value of `Requeue`
        ("planned", np.int64),  # windows that are known, and drained ranges
        ("dirty", np.int64),  # whether its calendar has to be made up anew
    ]
)
"""The processors of a cluster."""


class Outages(NamedTuple):
    """Outages, processors, and the lifecycles of the jobs."""

    lifecycles: Lifecycles
    closings: Any  # CLOSING[...]
    events: Any  # job_outcomes.OUTAGE_EVENT[...], of kinds `outages.Step`
    capacities: Any  # CAPACITY[clusters]
    known: Any  # rings.LINK[1 + closings]: a list of those that are known and not over
    owner: Any = column(np.int64, "processors", fill=NOWHERE)  # the job that runs there; NOWHERE
    mark: Any = column(np.int64, "processors")  # whether it is out, scratch


# --- which processors are out in a slot -----------------------------------------------------------


@inline
def _is_out(closing: Any, k: int, begin: int, end: int) -> bool:
    """Whether an outage of a cluster touches [begin, end), or is one whose end nobody knows."""
    touches = not closing["window"] or (closing["start"] < end and closing["until"] > begin)
    return closing["cluster"] == k and touches


@noinline
def mark_out(t: ManagerTree, o: Outages, k: int, begin: int, end: int) -> int:
    """Mark the processors of a cluster that are out in [begin, end), as far as is known; how many are not."""
    capacity = o.capacities[k]
    for p in range(capacity["first"], capacity["end"]):
        o.mark[p] = False
    up = capacity["end"] - capacity["first"]
    for e in rings.items(o.known, 0):
        closing = o.closings[e]
        if _is_out(closing, k, begin, end):
            for p in range(closing["first"], closing["end"]):
                up -= not o.mark[p]
                o.mark[p] = True
    return up


@noinline
def own_out(t: ManagerTree, o: Outages, j: int, k: int, begin: int, end: int) -> int:
    """How many processors of a running job are out in [begin, end), as far as is known."""
    capacity = o.capacities[k]
    if capacity["planned"] == 0:
        return 0
    mark_out(t, o, k, begin, end)
    count = 0
    for p in range(capacity["first"], capacity["end"]):
        count += o.owner[p] == j and o.mark[p] != 0
    return count


@noinline
def _crosses(t: ManagerTree, o: Outages, j: int, k: int, now: int) -> bool:
    """Whether processors of a running job are out in some slot that it holds."""
    _, end = calendar.span_of(t.calendars, max(now, t.plans[j]["end"] - 1))
    return own_out(t, o, j, k, now, end) > 0


@noinline
def _touches_window(t: ManagerTree, o: Outages, k: int, begin: int, end: int) -> bool:
    """Whether a known window of a cluster touches [begin, end)."""
    for e in rings.items(o.known, 0):
        closing = o.closings[e]
        if closing["window"] and _is_out(closing, k, begin, end):
            return True
    return False


# --- the account ----------------------------------------------------------------------------------


@noinline
def _hold_again(t: ManagerTree, o: Outages, j: int, k: int, now: int) -> None:
    """Take the slots of a job that begin now or later out of what is free."""
    c = t.calendars
    plan = t.plans[j]
    time = max(plan["start"], calendar.boundary(c, now))
    nodes = nodes_on(t, j, k)
    if time >= plan["end"]:
        return
    if plan["status"] != Status.RUNNING or not _crosses(t, o, j, k, now):
        calendar.change(c, k, time, plan["end"], -nodes)
        return
    for level, number in calendar.slots_in(c, time, plan["end"]):
        begin, end = calendar.begins(c, level, number), calendar.begins(c, level, number + 1)
        c.free[k, calendar.place_of(c, level, number)] -= nodes - own_out(t, o, j, k, begin, end)


@noinline
def _make_up(t: ManagerTree, o: Outages, k: int, now: int) -> None:
    """Make up the calendar of a cluster anew, from the first slot on that begins now or later."""
    c = t.calendars
    for level, number in calendar.slots_in(c, calendar.boundary(c, now), FOREVER):
        if calendar.is_empty_from(c, level, number):
            break
        begin, end = calendar.begins(c, level, number), calendar.begins(c, level, number + 1)
        up = c.rows[k]["nodes"]
        if _touches_window(t, o, k, begin, end):
            up = mark_out(t, o, k, begin, end)
        c.free[k, calendar.place_of(c, level, number)] = up
    for j in rings.items(t.holds, k):
        _hold_again(t, o, j, k, now)


@noinline
def settle(t: ManagerTree, o: Outages, now: int, has_split: bool) -> None:
    """Make up the calendars that have to be made up anew; jobs may move forward there.

    When slots were split, windows, and jobs on nodes that will be out, give back the parts.
    """
    for k in range(len(t.clusters)):
        capacity = o.capacities[k]
        if capacity["dirty"] or (has_split and capacity["planned"] > 0):
            capacity["dirty"] = False
            _make_up(t, o, k, now)
            tell_released(t, k, False)


# --- processors of running jobs -------------------------------------------------------------------


@noinline
def take_processors(t: ManagerTree, o: Outages, j: int) -> None:
    """Give a job its processors: the lowest, first those that no window takes before its planned end."""
    plan = t.plans[j]
    now = plan["start"]
    for k in parts_of(t, j):
        capacity = o.capacities[k]
        missing = nodes_on(t, j, k)
        for until in (plan["end"], now + 1):
            mark_out(t, o, k, now, until)
            for p in range(capacity["first"], capacity["end"]):
                if missing > 0 and o.owner[p] < 0 and not o.mark[p]:
                    o.owner[p] = j
                    missing -= 1
        capacity["dirty"] |= _crosses(t, o, j, k, now)


@noinline
def give_processors_back(t: ManagerTree, o: Outages, j: int, now: int, holds_slots: bool) -> None:
    """Let a job have no processors any more; if it held slots, they may have to be counted anew."""
    for k in parts_of(t, j):
        capacity = o.capacities[k]
        capacity["dirty"] |= holds_slots and _crosses(t, o, j, k, now)
        for p in range(capacity["first"], capacity["end"]):
            if o.owner[p] == j:
                o.owner[p] = NOWHERE
