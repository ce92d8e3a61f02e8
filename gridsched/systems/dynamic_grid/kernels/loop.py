"""A dynamic grid: clusters with jobs of their own, which run grid jobs on idle processors, join and leave.

Goldman and Queiroz, "A model for parallel job scheduling on dynamic computer grids"; the schedulers are in
`local` and `queue`, what they do to jobs in `jobs`, what nodes that fail do to them in `outages`.
`scheduler` says what was decided where the paper is silent.

At one instant happens, in this order:

1. jobs end, and tasks on their way arrive, so that the processors that they left are free;
2. nodes are back, take no more jobs, or go down and kill who is there;
3. jobs that outran their estimates are expected to end later;
4. clusters join, renew their leases or leave, in order of time and cluster;
5. jobs enter a local queue or NJ, those that waited for others first, then in workload order; and users give
   up (`gridsched.engine.job_lifecycle`);
6. on every cluster where something changed, in order: first the local jobs that fit start; then the first
   that does not fit waits, tells grid jobs to make place, or is sent to NJ; then grid jobs that have to leave
   and are at the end of a superstep are stopped. This is repeated until nothing changes;
7. reports: of clusters that have just joined, at multiples of the status period of all, and if that is 0 of
   all in every round;
8. the grid scheduler sends jobs of CJ and NJ until there is no candidate;
9. jobs without run time end; rounds of 6 to 9 are repeated until nothing changes, and from 5 on if jobs
   became eligible by it.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine import heap, job_lifecycle, line
from gridsched.engine.jit import inline, jit, noinline
from gridsched.engine.job_lifecycle import let_enter, let_give_up, next_of_lifecycles, notify_end
from gridsched.engine.records import FOREVER
from gridsched.engine.reference import by_reference
from gridsched.systems.dynamic_grid.kernels.jobs import complete, correct
from gridsched.systems.dynamic_grid.kernels.local import (
    enter,
    enter_new,
    first_waiting,
    leave_queue,
    settle,
    unmark,
)
from gridsched.systems.dynamic_grid.kernels.outages import change_nodes, next_node_event
from gridsched.systems.dynamic_grid.kernels.processors import place
from gridsched.systems.dynamic_grid.kernels.queue import renew, report, reports_next, scheduling_pass, take
from gridsched.systems.dynamic_grid.kernels.state import (
    AHEAD,
    GONE,
    GRID_QUEUE,
    JOIN,
    LEAVE,
    LOCAL_QUEUE,
    NEW,
    NOBODY,
    REJECTED,
    DynamicGridArrays,
    DynamicGridOptions,
    has_place,
    has_room,
    mark_dirty,
    time_of,
)

_END, _NODES, _JOBS, _ROUND, _PASS = range(5)
"""Stages of an instant: where the simulation goes on; `_END` is between two."""


@noinline
def _next_instant(g: DynamicGridArrays, o: DynamicGridOptions) -> int:
    """Time of the next event anywhere; FOREVER if nothing will happen."""
    clock = g.clock[0]
    now = min(next_of_lifecycles(g.lifecycles), reports_next(g, o), next_node_event(g, g.outages))
    now = min(now, heap.first_time(g.ends, clock["ending"]), heap.first_time(g.moves, clock["moving"]))
    now = min(now, time_of(g.events, clock["event"]))
    for i in range(len(g.clusters)):
        now = min(now, g.clusters[i]["due"])
    return now


@inline
def _look_at_clocks(g: DynamicGridArrays, now: int, o: DynamicGridOptions) -> None:
    """Correct estimates that are outrun now, and look after clusters where supersteps end."""
    for i in range(len(g.clusters)):
        if g.clusters[i]["due"] == now:
            correct(g, i, now, o)
            if g.clusters[i]["timer"] == now:
                mark_dirty(g, i)


@noinline
def _change_members(g: DynamicGridArrays, now: int, o: DynamicGridOptions) -> None:
    """Let clusters join, renew their leases and leave."""
    clock = g.clock[0]
    changed = False
    while time_of(g.events, clock["event"]) == now:
        event = g.events[clock["event"]]
        cluster = g.clusters[event["cluster"]]
        if event["kind"] == LEAVE:
            cluster["member"] = 0
            cluster["departure"] = clock["event"]
        else:
            cluster["lease"] = event["lease"]
        if event["kind"] == JOIN:
            cluster["departure"] = NOBODY
            cluster["member"] = 1
            cluster["view"] = NOBODY
        clock["event"] += 1
        mark_dirty(g, event["cluster"])
        changed = True
    if changed:
        renew(g, o)


# --- jobs that enter and leave --------------------------------------------------------------------


@noinline
def _receive(g: DynamicGridArrays, j: int, now: int, o: DynamicGridOptions) -> None:
    """Let a job wait in a local queue or in NJ, unless no cluster or clique that it may use can hold it."""
    home, processors = g.requests[j]["home"], g.requests[j]["processors"]
    g.jobs[j]["submit"] = now
    if home != NOBODY and processors <= g.clusters[home]["processors"]:
        enter(g, home, j, True)
        mark_dirty(g, home)
    elif processors <= o.reach and (home == NOBODY or g.clusters[home]["member"] != 0):
        enter_new(g, j, now, o)
    else:
        g.progress[j]["state"] = REJECTED
        g.lifecycles.jobs[j]["fate"] = job_lifecycle.REJECTED
        notify_end(g.lifecycles, j, now, False)
        return
    g.clock[0]["present"] += 1


@noinline
def _give_up(g: DynamicGridArrays, j: int, now: int, o: DynamicGridOptions, score: Any) -> None:
    """Let a job leave wherever it waits."""
    waits = g.progress[j]["state"]
    if waits == LOCAL_QUEUE:
        home = g.requests[j]["home"]
        if g.clusters[home]["yielding"] != 0 and first_waiting(g, home, now, o, score) == j:
            unmark(g, home)
        leave_queue(g, home, j)
        mark_dirty(g, home)
    elif waits == GRID_QUEUE:
        queue = by_reference(line.row(g.grid_queues, NEW))
        spot = queue.span[0]["first"]
        while queue.job[spot] != j:
            spot += 1
        take(g, NEW, spot)
    g.clock[0]["present"] -= int(waits != AHEAD)
    g.progress[j]["state"] = GONE


@noinline
def _let_in_and_out(g: DynamicGridArrays, now: int, o: DynamicGridOptions, score: Any) -> bool:
    """Let jobs enter and users give up; return False if there is no room."""
    clock = g.clock[0]
    while True:
        while clock["entered"] < clock["entering"]:
            j = g.entering[clock["entered"]]
            if not (has_room(g) and has_place(g, j)):
                return False
            clock["entered"] += 1
            _receive(g, j, now, o)
        if clock["asked"] == 0:
            for k in range(let_give_up(g.lifecycles, now, g.entering)):
                _give_up(g, g.entering[k], now, o, score)
            clock["asked"] = 1
        if next_of_lifecycles(g.lifecycles) != now:
            return True
        clock["entering"] = let_enter(g.lifecycles, now, g.entering)
        clock["entered"] = 0
        clock["asked"] = 0


# --- rounds ---------------------------------------------------------------------------------------


@inline
def _let_report(g: DynamicGridArrays, now: int, o: DynamicGridOptions) -> None:
    """Let clusters report that are to report in this round."""
    clock = g.clock[0]
    if o.status_period == 0:
        report(g, False, o)
    elif clock["reported"] == 0:
        report(g, now % o.status_period != 0, o)
    clock["reported"] = 1


@inline
def _note_departures(g: DynamicGridArrays, now: int) -> None:
    """Write down which clusters that have left have no grid jobs any more."""
    for i in range(len(g.clusters)):
        cluster = g.clusters[i]
        is_left = g.sites[i]["after"] == i and cluster["awaited"] == 0
        if cluster["departure"] != NOBODY and is_left:
            g.events[cluster["departure"]]["done"] = now
            cluster["departure"] = NOBODY


@inline
def _begin(g: DynamicGridArrays, now: int, o: DynamicGridOptions) -> None:
    """Begin an instant with what ends."""
    g.clock[0]["now"] = now
    g.clock[0]["reported"] = 0
    complete(g, now, o)
    place(g, g.outages, now)


@inline
def _finish_round(g: DynamicGridArrays, now: int, o: DynamicGridOptions) -> int:
    """What comes after the schedulers have acted; return the next stage."""
    complete(g, now, o)
    _note_departures(g, now)
    if g.clock[0]["dirty"] != 0:
        return _ROUND
    if next_of_lifecycles(g.lifecycles) == now:
        return _JOBS
    return _END


@jit
def simulate(bundle: DynamicGridArrays, options: DynamicGridOptions, score: Any) -> bool:
    """Simulate the grid; return False if it stopped because arrays need more room, else True at the end.

    It can be called again after `state.with_room`, and goes on where it stopped. `score` is as in
    `local_scheduler.schedule`.
    """
    g, o = by_reference(bundle), by_reference(options)
    clock = g.clock[0]
    while True:
        if clock["stage"] == _END:
            now = _next_instant(g, o)
            if now == FOREVER:
                return True
            if not has_room(g):
                return False
            _begin(g, now, o)
            clock["stage"] = _NODES
        now = clock["now"]
        if clock["stage"] == _NODES:
            if not change_nodes(g, g.outages, now, o):
                return False
            _look_at_clocks(g, now, o)
            _change_members(g, now, o)
            clock["stage"] = _JOBS
        if clock["stage"] == _JOBS:
            if not _let_in_and_out(g, now, o, score):
                return False
            clock["stage"] = _ROUND
        if clock["stage"] == _ROUND:
            settle(g, now, o, score)
            _let_report(g, now, o)
            clock["stage"] = _PASS
        if not scheduling_pass(g, now, o):
            return False
        clock["stage"] = _finish_round(g, now, o)
        if clock["stage"] == _END:
            place(g, g.outages, now)
