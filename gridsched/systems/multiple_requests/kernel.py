"""Jobs that wait on several clusters of a grid at once; what is not said here is said in `clusters`.

Every job has K requests, numbered one after the other, which are what the grid knows as jobs. At one
instant jobs end, then jobs arrive and queue their requests, then clusters have scheduling passes, one after
the other: as soon as a job starts its other requests leave their queues, and clusters that lose one have a
pass again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gridsched.engine import due_times, grid
from gridsched.engine.clusters import NOWHERE, GridArrays
from gridsched.engine.grid import Local
from gridsched.engine.jit import inline, jit, noinline
from gridsched.engine.records import FOREVER
from gridsched.engine.reference import by_reference

_BEHIND = 2.0**40
"""Added to the key of a request that home jobs precede; more than any key of the orders that allow it."""


class MultipleRequestsOptions(NamedTuple):
    """What does not change during a simulation."""

    overrun: int
    predictions: int
    requests: int  # of each job
    home_first: bool  # whether the jobs of a cluster's own users precede others there


class RequestArrays(NamedTuple):
    """What is known of n jobs on m clusters."""

    load: Any  # float64[m], of the clusters that the job that is submitted could use
    started: Any  # int64[n], the request that started; -1
    request: Any  # int64[...], the request of each entry in a local queue


@inline
def _measure_loads(g: GridArrays, jobs: RequestArrays, local: Local, r: int, now: int, overrun: int) -> None:
    """Seconds that the work on each cluster keeps its processors busy; FOREVER where a job cannot run."""
    for m in range(len(g.clusters)):
        jobs.load[m] = float(FOREVER)
        if grid.fits(g, local, r, m):
            jobs.load[m] = grid.load(g, local, m, now, overrun)


@inline
def _least_loaded(g: GridArrays, jobs: RequestArrays, r: int) -> int:
    """Cluster with the least load that is left; its home among those that have as little, then the first."""
    chosen = NOWHERE
    least = float(FOREVER)
    for m in range(len(g.clusters)):
        load = jobs.load[m]
        if load < least or (load == least and load < FOREVER and m == g.home[r]):
            least = load
            chosen = m
    return chosen


@noinline
def _submit(
    g: GridArrays,
    jobs: RequestArrays,
    local: Local,
    now: int,
    options: MultipleRequestsOptions,
    score: Any,
) -> None:
    """Queue the requests of the jobs that are submitted now at the clusters with the least load."""
    first = grid.next_entering(g, local, now, options.requests)
    while first >= 0:
        g.clock[0]["queries"] += len(g.clusters)
        _measure_loads(g, jobs, local, first, now, options.overrun)
        for r in range(first, first + options.requests):
            m = _least_loaded(g, jobs, r)
            g.cluster[r] = m
            if m >= 0:
                jobs.load[m] = float(FOREVER)
                grid.enter(g, local, r, m, now, options, score)
                jobs.request[g.entry[r]] = r
                if options.home_first and m != g.home[r]:
                    local.queue_key[g.entry[r]] += _BEHIND
                    local.order_key[g.entry[r]] += _BEHIND
        first = grid.next_entering(g, local, now, options.requests)


@noinline
def _withdraw_others(
    g: GridArrays, jobs: RequestArrays, local: Local, m: int, now: int, options: MultipleRequestsOptions
) -> None:
    """Withdraw the other requests of the jobs that have just started on a cluster."""
    for k in range(grid.starts_to_see(g, local, m)):
        e = grid.start_seen(g, local, m, k, now)
        if e >= 0:
            r = jobs.request[e]
            j = r // options.requests
            if jobs.started[j] < 0:
                jobs.started[j] = r
                for other in range(j * options.requests, (j + 1) * options.requests):
                    if other != r and g.cluster[other] >= 0:
                        grid.withdraw(g, local, other, g.cluster[other], now)


@noinline
def _pass_everywhere(
    g: GridArrays,
    jobs: RequestArrays,
    local: Local,
    now: int,
    options: MultipleRequestsOptions,
    score: Any,
) -> None:
    """Scheduling passes of the clusters where something changed, until nothing changes."""
    again = True
    while again:
        again = False
        for m in range(len(g.clusters)):
            if g.dirty[m]:
                grid.pass_on(g, local, m, now, options, score)
                _withdraw_others(g, jobs, local, m, now, options)
        for m in range(len(g.clusters)):
            again |= g.dirty[m]
            if due_times.of(g.due, m) == now and not g.dirty[m]:
                grid.pass_on(g, local, m, now, options, score)


@jit
def schedule(
    g: GridArrays, jobs: RequestArrays, local: Local, options: MultipleRequestsOptions, score: Any
) -> bool:
    """Simulate the grid; False if a queue needs more room (`grid.with_room`), to go on after that."""
    g, jobs, local = by_reference(g), by_reference(jobs), by_reference(local)
    options = by_reference(options)
    while True:
        now = min(grid.next_arrival(g, local), grid.first_due(g, local))
        if now == FOREVER:
            return True
        if not grid.has_room(g, local, 0, now):
            return False
        grid.finish_due(g, local, now, options)
        grid.live(g, local, now)
        grid.let_leave(g, local, now)
        _submit(g, jobs, local, now, options, score)
        _pass_everywhere(g, jobs, local, now, options, score)
