"""What happens where nodes fail and users give up: jobs are killed, lose their slots, or leave.

See `kernels.managers`, and `kernels.processors` for the account of what is free.
"""

from __future__ import annotations

from enum import IntEnum

from gridsched.engine import heap, rings
from gridsched.engine.checkpoints import saved_work
from gridsched.engine.jit import noinline
from gridsched.engine.job_lifecycle import (
    REQUEUE_AT_PLACE,
    Fate,
    let_enter,
    let_give_up,
    next_of_lifecycles,
    note_kill,
)
from gridsched.engine.records import FOREVER
from gridsched.systems.calendars.kernels import calendar
from gridsched.systems.calendars.kernels.bookings import (
    NOWHERE,
    Group,
    ManagerTree,
    Status,
    end_wait,
    is_leaf,
    let_wait,
    push_again,
    release,
    row_offset,
    take_turn,
    tell_released,
)
from gridsched.systems.calendars.kernels.executions import stop
from gridsched.systems.calendars.kernels.placing import leave_without_place, place_anew
from gridsched.systems.calendars.kernels.processors import Outages, mark_out, settle
from gridsched.systems.calendars.kernels.requests import reserve


class Step(IntEnum):
    """What happens to an outage, in this order at one instant."""

    ANNOUNCED = 0
    BEGINS = 1
    ENDS = 2


# --- what happens to nodes ------------------------------------------------------------------------


@noinline
def _take_off(t: ManagerTree, o: Outages, j: int, k: int, now: int) -> None:
    """Take a job off a cluster whose nodes are out; it waits for a new place unless it is lost."""
    plan = t.plans[j]
    holder = t.managers[plan["place"]]
    saved = saved_work(now - plan["start"], holder["interval"], holder["cost"])
    stop(t, o, j, now, saved, True)
    t.counts[0]["ending"] = heap.without(t.events, t.counts[0]["ending"], j)
    job = t.jobs[j]
    done = saved if plan["speed"] == job["speed"] else int(saved * plan["speed"] / job["speed"])
    job["estimate"] = max(1, job["estimate"] - done)
    requeue = o.capacities[k]["requeue"]
    if not note_kill(o.lifecycles, j, requeue, now):
        plan["status"] = Status.GONE
        return
    plan["group"] = Group.KILLED if requeue == REQUEUE_AT_PLACE else Group.KILLED_LAST
    leave_without_place(t, j)
    let_wait(t, j)


@noinline
def _count_nodes(t: ManagerTree, o: Outages) -> None:
    """Count the nodes that are neither down nor drained, for rows and managers."""
    for k in range(len(t.clusters)):
        if o.capacities[k]["end"] > o.capacities[k]["first"]:
            t.calendars.rows[k]["nodes"] = mark_out(t, o, k, FOREVER, FOREVER)
    for m in range(len(t.managers)):
        manager = t.managers[m]
        offset = row_offset(t, m)
        manager["nodes"] = manager["widest"] = 0
        for k in range(manager["first"], manager["end"]):
            up = t.calendars.rows[k]["nodes"]
            manager["nodes"] += up
            if offset > 0:
                calendar.add_nodes(t.calendars, offset + k, up - t.calendars.rows[offset + k]["nodes"])
        if m > 0:
            parent = t.managers[manager["parent"]]
            parent["widest"] = max(parent["widest"], manager["nodes"])


@noinline
def _is_overdrawn(t: ManagerTree, j: int, k: int) -> bool:
    """Whether a waiting job holds a slot of a cluster that has fewer nodes than jobs hold."""
    c = t.calendars
    for level, number in calendar.slots_in(c, t.plans[j]["start"], t.plans[j]["end"]):
        if c.free[k, calendar.place_of(c, level, number)] < 0:
            return True
    return False


@noinline
def _displace(t: ManagerTree, k: int) -> None:
    """Take the waiting jobs of a cluster out of their slots of which one is overdrawn."""
    number = 0
    for j in rings.items(t.holds, k):
        if t.plans[j]["status"] == Status.WAITING and _is_overdrawn(t, j, k):
            t.todo[number] = j
            number += 1
    for position in range(number):
        release(t, t.todo[position])
        leave_without_place(t, t.todo[position])
    t.counts[0]["outage_displaced"] += number


@noinline
def _apply(t: ManagerTree, o: Outages, e: int, step: int, now: int) -> None:
    """Let an outage be announced, begin or end."""
    closing = o.closings[e]
    k = closing["cluster"]
    goes_on = closing["window"] or closing["drained"]
    if step == Step.ANNOUNCED:
        rings.insert(o.known, 1 + e, 0)
        o.capacities[k]["planned"] += goes_on
        if closing["window"]:
            # Let the calendar reach as far as the window
            begin = max(closing["start"], calendar.boundary(t.calendars, now))
            calendar.change(t.calendars, k, begin, closing["until"], 0)
    elif step == Step.ENDS:
        rings.remove(o.known, 1 + e)
        o.capacities[k]["planned"] -= goes_on
    elif not closing["drained"]:
        for p in range(closing["first"], closing["end"]):
            if o.owner[p] >= 0:
                _take_off(t, o, o.owner[p], k, now)
    o.capacities[k]["dirty"] = True
    tell_released(t, k, True)


@noinline
def next_event(t: ManagerTree, o: Outages | None) -> int:
    """Time of the next event of outages; FOREVER if there is none."""
    if o is None or t.counts[0]["event"] == len(o.events):
        return FOREVER
    return o.events[t.counts[0]["event"]]["time"]


@noinline
def process_events(t: ManagerTree, o: Outages, now: int) -> None:
    """All that happens to outages at this instant."""
    counts = t.counts[0]
    first = counts["event"]
    while next_event(t, o) == now:
        event = o.events[counts["event"]]
        _apply(t, o, event["outage"], event["kind"], now)
        counts["event"] += 1
    counts["happened"] = counts["event"] > first
    if counts["happened"]:
        _count_nodes(t, o)
        settle(t, o, now, False)
        for k in range(len(t.clusters)):
            _displace(t, k)


@noinline
def place_again(t: ManagerTree, now: int) -> None:
    """Place the jobs anew that have no place, if something happened to outages at this instant."""
    if not t.counts[0]["happened"]:
        return
    begin = calendar.boundary(t.calendars, now)
    size = 0
    for m in range(len(t.managers)):
        for j in rings.items(t.queues, m):
            if t.plans[j]["place"] < 0:
                size = push_again(t, size, j)
    while size > 0:
        j = t.again[0]["job"]
        size = heap.pop(t.again, size)
        plan = t.plans[j]
        end_wait(t, j)
        if plan["group"] == Group.KILLED_LAST:
            take_turn(t, j)
        if plan["group"] != Group.RESERVED or not reserve(t, j):
            if plan["group"] == Group.RESERVED:
                plan["earliest"] = NOWHERE
                plan["broken"] = True
            plan["group"] = Group.ORDINARY
            place_anew(t, j, begin)
        let_wait(t, j)


# --- what happens to jobs -------------------------------------------------------------------------


@noinline
def _leave(t: ManagerTree, j: int) -> None:
    """Let a job go that has not run: its slots are released."""
    plan = t.plans[j]
    if plan["status"] == Status.WAITING:
        end_wait(t, j)
        if plan["place"] >= 0:
            release(t, j)
            t.counts[0]["messages"] += not is_leaf(t, plan["owner"])
    plan["status"] = Status.GONE


@noinline
def live(t: ManagerTree, o: Outages, now: int) -> int:
    """Let jobs enter, and users give up; how many are in `entering`, of which some may have left again."""
    count = 0
    while next_of_lifecycles(o.lifecycles) == now:
        count += let_enter(o.lifecycles, now, t.entering[count:])
        for position in range(let_give_up(o.lifecycles, now, t.todo)):
            _leave(t, t.todo[position])
    return count


@noinline
def drop_timers(o: Outages) -> None:
    """Drop the next timers if they are of jobs to which nothing can happen any more."""
    a = o.lifecycles
    while a.state[0]["timers"] > 0:
        item = a.timers[0]["job"]
        job = a.jobs[item % len(a.jobs)]
        if job["fate"] == Fate.COMPLETED and (item < len(a.jobs) or not job["started"]):
            break
        a.state[0]["timers"] = heap.pop(a.timers, a.state[0]["timers"])
