"""A dynamic grid: clusters with jobs of their own, which run grid jobs on idle processors, join and leave.

Goldman and Queiroz, "A model for parallel job scheduling on dynamic computer grids"; the schedulers are in
`local` and `queue`, what they do to jobs in `jobs`.
`scheduler` says what was decided where the paper is silent.

At one instant happens, in this order:

1. jobs end, and tasks on their way arrive, so that the processors that they left are free; then jobs that
   outran their estimates are expected to end later;
2. clusters join, renew their leases or leave, in order of time and cluster;
3. jobs are submitted, in workload order, to a local queue or to NJ;
4. on every cluster where something changed, in order: first the local jobs that fit start; then the first
   that does not fit waits, tells grid jobs to make place, or is sent to NJ; then grid jobs that have to leave
   and are at the end of a superstep are stopped. This is repeated until nothing changes;
5. reports: of clusters that have just joined, at multiples of the status period of all, and if that is 0 of
   all in every round;
6. the grid scheduler sends jobs of CJ and NJ until there is no candidate;
7. jobs without run time end; rounds of 4 to 7 are repeated until nothing changes.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine.jit import inline, jit, noinline
from gridsched.engine.records import FOREVER
from gridsched.engine.reference import by_reference
from gridsched.systems.dynamic_grid.kernels.jobs import complete, correct, next_end
from gridsched.systems.dynamic_grid.kernels.local import enter, enter_new, settle
from gridsched.systems.dynamic_grid.kernels.queue import (
    forget_refusals,
    report,
    reports_next,
    scheduling_pass,
    set_most,
)
from gridsched.systems.dynamic_grid.kernels.state import (
    JOIN,
    LEAVE,
    NOBODY,
    REJECTED,
    DynamicGridArrays,
    DynamicGridOptions,
    has_room,
    mark_dirty,
    room,
)


@noinline
def next_instant(g: DynamicGridArrays, o: DynamicGridOptions) -> int:
    """Time of the next event anywhere; FOREVER if nothing will happen."""
    clock = g.clock[0]
    now = min(next_end(g), reports_next(g, o))
    if clock["arrival"] < len(g.requests):
        now = min(now, g.requests[clock["arrival"]]["submit"])
    if clock["event"] < len(g.events):
        now = min(now, g.events[clock["event"]]["time"])
    if clock["moving"] > 0:
        now = min(now, g.moves[0]["key"])
    for i in range(len(g.clusters)):
        now = min(now, g.clusters[i]["due"])
    return now


@noinline
def _queues_have_room(g: DynamicGridArrays, now: int) -> bool:
    """Whether the queues have room for all jobs that could enter them at this instant."""
    clock = g.clock[0]
    coming = 0
    j = clock["arrival"]
    while j < len(g.requests) and g.requests[j]["submit"] == now:
        coming += 1
        j += 1
    longest = 0
    for i in range(len(g.clusters)):
        longest = max(longest, g.state[i, 0]["waiting"])
    return longest + coming < room(g.queues) and clock["present"] + coming < room(g.grid_queues)


@noinline
def change_members(g: DynamicGridArrays, now: int, o: DynamicGridOptions) -> None:
    """Let clusters join, renew their leases and leave."""
    clock = g.clock[0]
    changed = False
    while clock["event"] < len(g.events) and g.events[clock["event"]]["time"] == now:
        event = g.events[clock["event"]]
        i = event["cluster"]
        cluster = g.clusters[i]
        if event["kind"] == LEAVE:
            cluster["member"] = 0
            cluster["departure"] = clock["event"]
            clock["departing"] += 1
        else:
            cluster["lease"] = event["lease"]
        if event["kind"] == JOIN:
            clock["departing"] -= int(cluster["departure"] != NOBODY)
            cluster["departure"] = NOBODY
            cluster["member"] = 1
            cluster["view"] = NOBODY
        forget_refusals(g)
        clock["capacity"] = NOBODY
        clock["event"] += 1
        mark_dirty(g, i)
        changed = True
    if changed:
        set_most(g, o)


@inline
def _is_too_large(g: DynamicGridArrays, j: int) -> bool:
    """Whether no cluster or clique that a job may use can ever hold it."""
    request = g.requests[j]
    home = request["home"]
    alone = home != NOBODY and g.clusters[home]["member"] == 0
    return request["processors"] > (g.clusters[home]["processors"] if alone else request["reach"])


@noinline
def receive(g: DynamicGridArrays, j: int, now: int) -> None:
    """Let a job wait in a local queue or in NJ, unless it is rejected."""
    home = g.requests[j]["home"]
    if home != NOBODY and g.requests[j]["processors"] <= g.clusters[home]["processors"]:
        enter(g, home, j)
        g.clock[0]["present"] += 1
        mark_dirty(g, home)
    elif _is_too_large(g, j):
        g.progress[j]["state"] = REJECTED
    else:
        g.clock[0]["present"] += 1
        enter_new(g, j, now)


@inline
def _receive_all(g: DynamicGridArrays, now: int) -> None:
    """Receive the jobs that are submitted now."""
    clock = g.clock[0]
    while clock["arrival"] < len(g.requests) and g.requests[clock["arrival"]]["submit"] == now:
        clock["arrival"] += 1
        receive(g, clock["arrival"] - 1, now)


@inline
def look_at_clocks(g: DynamicGridArrays, now: int, o: DynamicGridOptions) -> None:
    """Correct estimates that are outrun now, and look after clusters where supersteps end."""
    for i in range(len(g.clusters)):
        if g.clusters[i]["due"] == now:
            correct(g, i, now, o)
            if g.clusters[i]["timer"] == now:
                mark_dirty(g, i)


@noinline
def _begin_instant(g: DynamicGridArrays, now: int, o: DynamicGridOptions) -> None:
    """What happens once in an instant, before the schedulers act."""
    complete(g, now, o)
    look_at_clocks(g, now, o)
    change_members(g, now, o)
    _receive_all(g, now)


@inline
def _holds_tasks(g: DynamicGridArrays, i: int) -> bool:
    """Whether a cluster has tasks of grid jobs, or some on their way from it."""
    for entry in range(g.clock[0]["moving"]):
        if g.holds[g.moves[entry]["job"]]["cluster"] == i:
            return True
    return bool(g.clusters[i]["part"] != NOBODY)


@inline
def note_departures(g: DynamicGridArrays, now: int) -> None:
    """Write down which clusters that have left have no grid jobs any more."""
    for i in range(len(g.clusters)):
        cluster = g.clusters[i]
        if cluster["departure"] != NOBODY and not _holds_tasks(g, i):
            g.events[cluster["departure"]]["done"] = now
            cluster["departure"] = NOBODY
            g.clock[0]["departing"] -= 1


@inline
def let_report(g: DynamicGridArrays, now: int, o: DynamicGridOptions) -> None:
    """Let clusters report that are to report in this round."""
    clock = g.clock[0]
    if o.status_period == 0:
        report(g, False, o)
    elif clock["reported"] == 0:
        report(g, now % o.status_period != 0, o)
    clock["reported"] = 1


@jit
def simulate(g: DynamicGridArrays, o: DynamicGridOptions, score: Any) -> bool:
    """Simulate the grid; return False if it stopped because arrays need more room, else True at the end.

    It can be called again after `dynamic_state.with_room`, and goes on where it stopped. `score` is as in
    `local_scheduler.schedule`.
    """
    g, o = by_reference(g), by_reference(o)
    clock = g.clock[0]
    while True:
        if clock["within"] == 0:
            now = next_instant(g, o)
            if now == FOREVER:
                return True
            if not (has_room(g) and _queues_have_room(g, now)):
                return False
            clock["now"] = now
            clock["within"] = 1
            clock["reported"] = 0
            _begin_instant(g, now, o)
        again = True
        while again:
            settle(g, clock["now"], o, score)
            let_report(g, clock["now"], o)
            scheduling_pass(g, clock["now"], o)
            if clock["full"] != 0:
                clock["full"] = 0
                return False
            complete(g, clock["now"], o)
            if clock["departing"] > 0:
                note_departures(g, clock["now"])
            again = clock["dirty"] != 0
        clock["within"] = 0
