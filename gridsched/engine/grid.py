"""Clusters of a grid, be they numbers of processors (`clusters`) or nodes (`node_clusters`).

Kernels of grid schedulers use these names for both. Where they are given `clusters.LocalArrays`, jobs enter
when they are submitted and leave when they have run, and nothing of `node_clusters` is compiled.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine import clusters, node_clusters
from gridsched.engine.clusters import GridArrays, LocalArrays
from gridsched.engine.jit import inline
from gridsched.engine.node_clusters import NodeClusters
from gridsched.engine.records import FOREVER
from gridsched.engine.type_dispatch import TypeDispatch

Local = LocalArrays | NodeClusters
"""Local schedulers of either kind."""


@inline
def _fits(g: GridArrays, local: LocalArrays, j: int, m: int) -> bool:
    return clusters.fits(g, j, m)


@inline
def _estimate_on(g: GridArrays, local: LocalArrays, j: int, m: int) -> int:
    return clusters.estimate_on(g, j, m)


@inline
def _waiting(g: GridArrays, local: LocalArrays, m: int) -> int:
    return int(g.state[m, 0]["waiting"])


@inline
def _idle(g: GridArrays, local: LocalArrays, m: int) -> int:
    return int(g.state[m, 0]["free"])


@inline
def _held(g: GridArrays, local: LocalArrays, m: int) -> int:
    return int(g.clusters[m]["processors"] - g.state[m, 0]["free"])


@inline
def _capacity(g: GridArrays, local: LocalArrays, m: int) -> int:
    return int(g.clusters[m]["processors"])


@inline
def _load(g: GridArrays, local: LocalArrays, m: int, now: int, overrun: int) -> float:
    return clusters.work_left(g, local, m, now, overrun) / g.clusters[m]["processors"]


@inline
def _starts_to_see(g: GridArrays, local: LocalArrays, m: int) -> int:
    return int(g.state[m, 0]["ending"])


@inline
def _start_seen(g: GridArrays, local: LocalArrays, m: int, k: int, now: int) -> int:
    e = int(local.events[m, k]["job"])
    return e if local.starts[0, e] == now else -1


@inline
def _first_due(g: GridArrays, local: LocalArrays) -> int:
    return clusters.first_due(g)


@inline
def _more_arrive(g: GridArrays, local: LocalArrays) -> bool:
    return g.clock[0]["arrival"] < len(g.requests)


@inline
def _next_arrival(g: GridArrays, local: LocalArrays) -> int:
    arrival = g.clock[0]["arrival"]
    return int(g.requests[arrival]["submit"]) if arrival < len(g.requests) else FOREVER


@inline
def _live(g: GridArrays, local: LocalArrays, now: int) -> None:
    """Nothing happens to jobs that wait."""


@inline
def _next_entering(g: GridArrays, local: LocalArrays, now: int, requests: int) -> int:
    clock = g.clock[0]
    j = clock["arrival"]
    if j == len(g.requests) or g.requests[j]["submit"] != now:
        return -1
    clock["arrival"] += requests
    return int(j)


@inline
def _has_room(g: GridArrays, local: LocalArrays, jobs: int, now: int) -> bool:
    return clusters.has_room(g, local, jobs + clusters.coming(g, now))


def _dispatch(plain: Any, other: Any) -> Any:
    return TypeDispatch(plain, other, NodeClusters)


fits = _dispatch(_fits, node_clusters.fits)
estimate_on = _dispatch(_estimate_on, node_clusters.estimate_on)
enter = _dispatch(clusters.enter, node_clusters.enter)
withdraw = _dispatch(clusters.withdraw, node_clusters.withdraw)
waiting = _dispatch(_waiting, node_clusters.waiting)
idle = _dispatch(_idle, node_clusters.idle)
held = _dispatch(_held, node_clusters.held)
capacity = _dispatch(_capacity, node_clusters.capacity)
work_left = _dispatch(clusters.work_left, node_clusters.work_left)
load = _dispatch(_load, node_clusters.load)
predicted_start = _dispatch(clusters.predicted_start, node_clusters.predicted_start)
finish_due = _dispatch(clusters.finish_due, node_clusters.finish_due)
pass_on = _dispatch(clusters.pass_on, node_clusters.pass_on)
pass_where_due = _dispatch(clusters.pass_where_due, node_clusters.pass_where_due)
starts_to_see = _dispatch(_starts_to_see, node_clusters.starts_to_see)
start_seen = _dispatch(_start_seen, node_clusters.start_seen)
first_due = _dispatch(_first_due, node_clusters.first_due)
more_arrive = _dispatch(_more_arrive, node_clusters.more_arrive)
next_arrival = _dispatch(_next_arrival, node_clusters.next_arrival)
live = _dispatch(_live, node_clusters.live)
next_entering = _dispatch(_next_entering, node_clusters.next_entering)
has_room = _dispatch(_has_room, node_clusters.has_room)
