"""What happens where nodes fail and users give up: jobs are killed, lose their slots, or leave.

See `kernels.managers`, and `kernels.processors` for the account of what is free.
"""

from __future__ import annotations

from enum import IntEnum

from gridsched.engine import heap
from gridsched.engine.checkpoints import saved_work
from gridsched.engine.jit import noinline
from gridsched.engine.job_lifecycle import Fate, let_enter, let_give_up, next_of_lifecycles
from gridsched.engine.nodes.records import Requeue
from gridsched.engine.records import FOREVER
from gridsched.systems.calendars.kernels import calendar
from gridsched.systems.calendars.kernels.bookings import (
    NOWHERE,
    ManagerTree,
    Status,
    end_wait,
    is_leaf,
    let_wait,
    release,
    row_offset,
    tell_released,
)
from gridsched.systems.calendars.kernels.executions import finish, sort, stop
from gridsched.systems.calendars.kernels.placing import leave_without_place, place_anew
from gridsched.systems.calendars.kernels.processors import Outages, mark_out, settle
from gridsched.systems.calendars.kernels.requests import reserve

_WAITING = int(Status.WAITING)
_GONE = int(Status.GONE)
_COMPLETED = int(Fate.COMPLETED)
_LOST = int(Fate.LOST)
_LOSE = int(Requeue.LOST)


class Step(IntEnum):
    """What happens to an outage, in this order at one instant."""

    ANNOUNCED = 0
    BEGINS = 1
    ENDS = 2


_ANNOUNCED = int(Step.ANNOUNCED)
_BEGINS = int(Step.BEGINS)


# --- what happens to nodes ------------------------------------------------------------------------


@noinline
def _forget_end(t: ManagerTree, j: int) -> None:
    """Take a job out of the heap of ends."""
    size = 0
    for position in range(t.counts[0]["ending"]):
        key = t.events[position]["key"]
        other = t.events[position]["job"]
        if other != j:
            size = heap.push(t.events, size, key, other)
    t.counts[0]["ending"] = size


@noinline
def _kill(t: ManagerTree, o: Outages, j: int, k: int, now: int) -> bool:
    """Kill a job on a cluster whose nodes are out; whether it is to be placed anew."""
    plan = t.plans[j]
    holder = t.managers[plan["place"]]
    saved = saved_work(now - plan["start"], holder["interval"], holder["cost"])
    stop(t, o, j, now, saved, True)
    _forget_end(t, j)
    t.jobs[j]["estimate"] = max(1, t.jobs[j]["estimate"] - int(saved * plan["speed"]))
    plan["killed"] += 1
    if o.capacities[k]["requeue"] == _LOSE:
        o.lifecycles.jobs[j]["fate"] = _LOST
        finish(t, o, j, _GONE, now)
        return False
    plan["fixed"] = False
    plan["again"] = 1 + o.capacities[k]["requeue"]
    leave_without_place(t, j)
    return True


@noinline
def _clear(t: ManagerTree, o: Outages, e: int, now: int, killed: int) -> int:
    """Kill all jobs on processors that go down; those to be placed anew are put into `todo`, how many."""
    closing = o.closings[e]
    for p in range(closing["first"], closing["end"]):
        j = o.owner[p]
        if j >= 0 and _kill(t, o, j, closing["cluster"], now):
            t.todo[killed] = j
            killed += 1
    return killed


@noinline
def _let_wait_again(t: ManagerTree, killed: int) -> None:
    """Put the killed jobs, the first of `todo`, among the waiting ones of their owners."""
    sort(t, 0, killed)
    for position in range(killed):
        j = t.todo[position]
        if t.plans[j]["again"] == 2:
            t.plans[j]["turn"] = t.counts[0]["turn"]
            t.counts[0]["turn"] += 1
        let_wait(t, j)


@noinline
def _count_nodes(t: ManagerTree, o: Outages) -> None:
    """Count the nodes that are neither down nor drained, for rows and managers."""
    for k in range(len(t.clusters)):
        if o.capacities[k]["end"] > o.capacities[k]["first"]:
            t.calendars.rows[k]["nodes"] = mark_out(t, o, k, FOREVER, FOREVER)
    for m in range(len(t.managers) - 1, -1, -1):
        manager = t.managers[m]
        offset = row_offset(t, m)
        manager["nodes"] = 0
        manager["widest"] = 0
        for k in range(manager["first"], manager["end"]):
            up = t.calendars.rows[k]["nodes"]
            manager["nodes"] += up
            if offset > 0:
                calendar.add_nodes(t.calendars, offset + k, up - t.calendars.rows[offset + k]["nodes"])
        x = m + 1
        while x < m + manager["size"]:
            manager["widest"] = max(manager["widest"], t.managers[x]["nodes"])
            x += t.managers[x]["size"]


@noinline
def _is_overdrawn(t: ManagerTree, j: int, k: int) -> bool:
    """Whether a waiting job holds a slot of a cluster that has fewer nodes than jobs hold."""
    c = t.calendars
    time = t.plans[j]["start"]
    while time < t.plans[j]["end"]:
        level, number = calendar.slot_at(c, time)
        if c.free[k, calendar.place_of(c, level, number)] < 0:
            return True
        time = calendar.begins(c, level, number + 1)
    return False


@noinline
def _displace(t: ManagerTree, k: int) -> None:
    """Take the waiting jobs of a cluster out of their slots of which one is overdrawn."""
    number = 0
    link = t.holds[k]["after"]
    while link != k:
        j = t.holds[link]["job"]
        if t.plans[j]["status"] == _WAITING and _is_overdrawn(t, j, k):
            t.todo[number] = j
            number += 1
        link = t.holds[link]["after"]
    for position in range(number):
        release(t, t.todo[position])
        leave_without_place(t, t.todo[position])
    t.counts[0]["outage_displaced"] += number


@noinline
def _become_known(t: ManagerTree, o: Outages, e: int, now: int) -> None:
    """Let an outage be known; the calendar reaches as far as it does if its end is known."""
    closing = o.closings[e]
    o.known[t.counts[0]["known"]] = e
    t.counts[0]["known"] += 1
    if closing["window"]:
        begin = max(closing["start"], calendar.boundary(t.calendars, now))
        calendar.change(t.calendars, closing["cluster"], begin, closing["until"], 0)


@noinline
def _be_over(t: ManagerTree, o: Outages, e: int) -> None:
    """Let an outage be over."""
    i = 0
    while o.known[i] != e:
        i += 1
    t.counts[0]["known"] -= 1
    o.known[i] = o.known[t.counts[0]["known"]]


@noinline
def process_events(t: ManagerTree, o: Outages, now: int) -> None:
    """All that happens to outages at this instant."""
    counts = t.counts[0]
    counts["happened"] = False
    killed = 0
    while counts["event"] < len(o.events) and o.events[counts["event"]]["time"] == now:
        event = o.events[counts["event"]]
        e = event["closing"]
        closing = o.closings[e]
        capacity = o.capacities[closing["cluster"]]
        if event["step"] == _BEGINS:
            if not closing["drained"]:
                killed = _clear(t, o, e, now, killed)
        elif event["step"] == _ANNOUNCED:
            _become_known(t, o, e, now)
            capacity["planned"] += closing["window"] or closing["drained"]
        else:
            _be_over(t, o, e)
            capacity["planned"] -= closing["window"] or closing["drained"]
        capacity["dirty"] = True
        tell_released(t, closing["cluster"], True)
        counts["event"] += 1
        counts["happened"] = True
    if counts["happened"]:
        _let_wait_again(t, killed)
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
    number = 0
    for m in range(len(t.managers)):
        link = t.queues[m]["after"]
        while link != m:
            if t.plans[t.queues[link]["job"]]["place"] < 0:
                t.todo[number] = t.queues[link]["job"]
                number += 1
            link = t.queues[link]["after"]
    sort(t, 0, number)
    for position in range(number):
        j = t.todo[position]
        plan = t.plans[j]
        end_wait(t, j)
        if plan["fixed"] and not reserve(t, j):
            plan["fixed"] = False
            plan["earliest"] = NOWHERE
            plan["broken"] = True
        if not plan["fixed"]:
            place_anew(t, j, begin)
        let_wait(t, j)
        plan["again"] = 0


# --- what happens to jobs -------------------------------------------------------------------------


@noinline
def _leave(t: ManagerTree, j: int) -> None:
    """Let a waiting job go: its slots are released."""
    plan = t.plans[j]
    if plan["place"] >= 0:
        release(t, j)
        t.counts[0]["messages"] += not is_leaf(t, plan["owner"])
    end_wait(t, j)
    plan["status"] = _GONE


@noinline
def live(t: ManagerTree, o: Outages, now: int) -> int:
    """Let jobs enter, and users give up; how many are in `entering`, of which some may have left again."""
    count = 0
    while next_of_lifecycles(o.lifecycles) == now:
        count += let_enter(o.lifecycles, now, t.entering[count:])
        for position in range(let_give_up(o.lifecycles, now, t.todo)):
            if t.plans[t.todo[position]]["status"] == _WAITING:
                _leave(t, t.todo[position])
    return count


@noinline
def drop_timers(o: Outages) -> None:
    """Drop the next timers if they are of jobs to which nothing can happen any more."""
    a = o.lifecycles
    n = len(a.jobs)
    is_void = True
    while is_void and a.state[0]["timers"] > 0:
        item = a.timers[0]["job"]
        job = a.jobs[item % n]
        is_void = job["fate"] != _COMPLETED or (item >= n and job["started"] != 0)
        if is_void:
            a.state[0]["timers"] = heap.pop(a.timers, a.state[0]["timers"])
