"""Jobs that run in imprecise calendars: how they start and end, and what happens when their slots are over.

See `kernels.managers`. Where nodes fail, users give up or jobs wait for others there are `Outages`; else None
stands for them, and nothing that they need is compiled.
"""

from __future__ import annotations

import math

from gridsched.engine import heap, rings
from gridsched.engine.checkpoints import work_done
from gridsched.engine.jit import inline, noinline
from gridsched.engine.job_lifecycle import notify_end, notify_start
from gridsched.engine.records import FOREVER
from gridsched.systems.calendars.kernels import calendar
from gridsched.systems.calendars.kernels.bookings import (
    NOWHERE,
    Group,
    ManagerTree,
    Status,
    end_wait,
    hold_of,
    length,
    let_wait,
    nodes_on,
    parts_of,
    push_again,
    release,
    tell_released,
)
from gridsched.systems.calendars.kernels.placing import place_anew, place_earliest
from gridsched.systems.calendars.kernels.processors import (
    Outages,
    give_processors_back,
    own_out,
    settle,
    take_processors,
)

# --- starts and ends ------------------------------------------------------------------------------


@inline
def _expect_end(t: ManagerTree, j: int) -> None:
    """Let an event follow when a running job ends, or when its slots do."""
    plan = t.plans[j]
    time = min(plan["start"] + length(t, j), calendar.boundary(t.calendars, plan["end"]))
    t.counts[0]["ending"] = heap.push(t.events, t.counts[0]["ending"], time, j)


@noinline
def _start(t: ManagerTree, o: Outages | None, j: int) -> None:
    """Start a waiting job."""
    end_wait(t, j)
    plan = t.plans[j]
    plan["status"] = Status.RUNNING
    if o is not None:
        take_processors(t, o, j)
    if plan["first"] < 0:
        plan["first"] = plan["start"]
        if o is not None:
            o.lifecycles.jobs[j]["started"] = 1
            notify_start(o.lifecycles, j, plan["start"])
    speed = t.managers[plan["place"]]["speed"]
    if speed != plan["speed"]:
        plan["left"] = math.ceil(plan["left"] * plan["speed"] / speed)
        plan["speed"] = speed
    _expect_end(t, j)


@noinline
def start_planned(t: ManagerTree, o: Outages | None, now: int) -> None:
    """Start the jobs whose time has come, and find the next planned start."""
    if t.counts[0]["planned"] > now:
        return
    planned = FOREVER
    for m in range(len(t.managers)):
        for j in rings.items(t.queues, m):
            if t.plans[j]["start"] == now:
                _start(t, o, j)
            else:
                planned = min(planned, t.plans[j]["start"])
    t.counts[0]["planned"] = planned
    if o is not None:
        settle(t, o, now, False)


@noinline
def _record(t: ManagerTree, j: int, k: int, now: int) -> None:
    """Note an execution that ends now, if there is room; what was simulated is of no use else."""
    number = t.counts[0]["segments"]
    t.counts[0]["segments"] += 1
    if number < len(t.segments):
        hold = t.holds[hold_of(t, j, k)]
        segment = t.segments[number]
        segment["job"] = j
        segment["cluster"] = k
        segment["processors"] = hold["nodes"]
        segment["tasks"] = hold["tasks"]
        segment["start"] = t.plans[j]["start"]
        segment["end"] = now


@noinline
def stop(t: ManagerTree, o: Outages | None, j: int, now: int, work: int, holds_slots: bool) -> None:
    """Let a job run no longer, of whose execution so many seconds of work count: its slots are free."""
    plan = t.plans[j]
    elapsed = now - plan["start"]
    if o is not None:
        give_processors_back(t, o, j, now, holds_slots)
    plan["done"] += elapsed
    plan["useful"] += work
    plan["left"] -= work
    plan["ended"] = now
    home = t.managers[t.jobs[j]["home"]]["first"]
    begin = calendar.boundary(t.calendars, now)
    is_early = begin < plan["end"]
    t.counts[0]["early_exits"] += is_early
    for k in parts_of(t, j):
        nodes = nodes_on(t, j, k)
        if is_early:
            calendar.change(t.calendars, k, begin, plan["end"], nodes)
            tell_released(t, k, True)
        rings.remove(t.holds, hold_of(t, j, k))
        if k == home:
            t.clusters[k]["local_work"] += nodes * elapsed
        else:
            t.clusters[k]["supplied"] += nodes * elapsed
            t.clusters[home]["consumed"] += nodes * elapsed
        _record(t, j, k, now)


@noinline
def finish(t: ManagerTree, o: Outages | None, j: int, status: int, now: int) -> None:
    """Let a job that has run be done with."""
    t.plans[j]["status"] = status
    if o is not None:
        notify_end(o.lifecycles, j, now, True)


@noinline
def complete(t: ManagerTree, o: Outages | None, now: int) -> int:
    """Completions of this instant; how many jobs run on beyond their slots, which are put into `todo`."""
    overruns = 0
    while heap.first_time(t.events, t.counts[0]["ending"]) == now:
        j = t.events[0]["job"]
        t.counts[0]["ending"] = heap.pop(t.events, t.counts[0]["ending"])
        if t.plans[j]["start"] + length(t, j) > now:
            t.todo[overruns] = j
            overruns += 1
        else:
            stop(t, o, j, now, t.plans[j]["left"], True)
            finish(t, o, j, Status.DONE, now)
    if o is not None:
        settle(t, o, now, False)
    return overruns


# --- overruns -------------------------------------------------------------------------------------


@inline
def _can_be_displaced(t: ManagerTree, j: int, now: int) -> bool:
    """Whether a job waits for a slot that begins now, without a reservation."""
    plan = t.plans[j]
    is_reserved = plan["group"] == Group.RESERVED
    return plan["status"] == Status.WAITING and plan["start"] == now and not is_reserved


@inline
def _lacking(t: ManagerTree, o: Outages | None, j: int, k: int, now: int) -> int:
    """Nodes that a running job needs on a cluster to go on in the slot that begins now.

    What it has of the nodes that are out for others in that slot it does not need.
    """
    nodes = nodes_on(t, j, k)
    if o is not None:
        nodes -= own_out(t, o, j, k, now, now + t.calendars.levels[0]["duration"])
    return nodes


@noinline
def _lacks(t: ManagerTree, o: Outages | None, j: int, now: int) -> bool:
    """Whether a cluster has too few nodes in the slot that begins now for a job, even if others give way."""
    for k in parts_of(t, j):
        nodes = calendar.available_at(t.calendars, k, now)
        for other in rings.items(t.holds, k):
            if _can_be_displaced(t, other, now):
                nodes += nodes_on(t, other, k)
        if nodes < _lacking(t, o, j, k, now):
            return True
    return False


@noinline
def _displace(t: ManagerTree, o: Outages | None, j: int, now: int) -> int:
    """Take out all jobs that can be displaced where a job lacks nodes; how many are to be placed again.

    They stay among the waiting ones of their owners.
    """
    displaced = 0
    for k in parts_of(t, j):
        if calendar.available_at(t.calendars, k, now) < _lacking(t, o, j, k, now):
            for other in rings.items(t.holds, k):
                if _can_be_displaced(t, other, now):
                    displaced = push_again(t, displaced, other)
                    release(t, other)
    return displaced


@noinline
def _run_on(t: ManagerTree, o: Outages | None, j: int, now: int) -> None:
    """Let a job hold the slot that begins now, too."""
    end = now + t.calendars.levels[0]["duration"]
    for k in parts_of(t, j):
        calendar.change(t.calendars, k, now, end, -_lacking(t, o, j, k, now))
    t.plans[j]["end"] = end
    _expect_end(t, j)


@noinline
def _break_off(t: ManagerTree, o: Outages | None, j: int, now: int) -> None:
    """Kill a job, or suspend it: what is left of it is a new request, with the same estimate."""
    plan = t.plans[j]
    holder = t.managers[plan["place"]]
    work = work_done(now - plan["start"], holder["interval"], holder["cost"])
    stop(t, o, j, now, work, False)
    if t.suspend:
        plan["group"] = Group.ORDINARY
        t.counts[0]["suspended"] += 1
        place_anew(t, j, now)
        let_wait(t, j)
    else:
        t.counts[0]["killed"] += 1
        if o is not None:
            o.lifecycles.jobs[j]["failed"] = True
        finish(t, o, j, Status.KILLED, now)


@noinline
def overrun(t: ManagerTree, o: Outages | None, now: int, overruns: int) -> None:
    """Let the first jobs of `todo` go on after their slots are over, in order, if others can make room."""
    for position in range(overruns):
        j = t.todo[position]
        if _lacks(t, o, j, now):
            _break_off(t, o, j, now)
        else:
            displaced = _displace(t, o, j, now)
            _run_on(t, o, j, now)
            while displaced > 0:
                other = t.again[0]["job"]
                displaced = heap.pop(t.again, displaced)
                place_earliest(t, other, t.plans[other]["owner"], now, NOWHERE, now)
                t.counts[0]["displaced"] += 1
                t.counts[0]["delayed"] += t.plans[other]["start"] > now
