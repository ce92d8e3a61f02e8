"""Nodes of a dynamic grid that are back, take no more jobs, or go down and kill who is there."""

from __future__ import annotations

from gridsched.engine import job_lifecycle
from gridsched.engine.jit import noinline
from gridsched.engine.records import FOREVER
from gridsched.systems.dynamic_grid.kernels.jobs import (
    break_off_local,
    break_off_spell,
    drop_all,
    finish,
    suspend,
)
from gridsched.systems.dynamic_grid.kernels.local import enter
from gridsched.systems.dynamic_grid.kernels.processors import (
    CLOSE,
    KILL,
    OutageArrays,
    close_or_open,
    place,
    victim,
)
from gridsched.systems.dynamic_grid.kernels.queue import renew
from gridsched.systems.dynamic_grid.kernels.state import (
    GONE,
    LOCAL_RUN,
    NOBODY,
    DynamicGridArrays,
    DynamicGridOptions,
    has_room,
    mark_dirty,
    set_due,
    time_of,
)


@noinline
def next_node_event(g: DynamicGridArrays, f: OutageArrays | None) -> int:
    """Time of the next event of nodes; FOREVER if there is none."""
    return FOREVER if f is None else time_of(f.events, g.clock[0]["node_event"])


@noinline
def _take_off(g: DynamicGridArrays, j: int, i: int, now: int, o: DynamicGridOptions) -> None:
    """Take a job off the nodes of a cluster that fail; it waits again, or is lost."""
    is_local = g.progress[j]["state"] == LOCAL_RUN
    if is_local:
        break_off_local(g, j, now, o)
    else:
        break_off_spell(g, j, now, o)
    requeue = g.clusters[i]["requeue"]
    if not job_lifecycle.note_kill(g.lifecycles, j, requeue, now):
        drop_all(g, j, now)
        finish(g, j, now, GONE)
    elif is_local:
        g.progress[j]["headed"] = NOBODY
        enter(g, i, j, requeue == job_lifecycle.REQUEUE_AT_END)
    else:
        suspend(g, j, now, o)


@noinline
def change_nodes(g: DynamicGridArrays, f: OutageArrays, now: int, o: DynamicGridOptions) -> bool:
    """Let happen to nodes what does now; return False if there is no room for it."""
    if f is None:
        return True
    clock = g.clock[0]
    happened = False
    while next_node_event(g, f) == now:
        event = f.events[clock["node_event"]]
        i = f.outages[event["outage"]]["cluster"]
        j = victim(g, f, event["outage"]) if event["kind"] == KILL else NOBODY
        while j != NOBODY:
            if not has_room(g):
                return False
            _take_off(g, j, i, now, o)
            j = victim(g, f, event["outage"])
        if event["kind"] != KILL:
            close_or_open(g, f, event["outage"], event["kind"] == CLOSE)
        clock["node_event"] += 1
        mark_dirty(g, i)
        happened = True
    if happened:
        place(g, f, now)
        renew(g, o)
        for i in range(len(g.clusters)):
            set_due(g, i)
    return has_room(g)
