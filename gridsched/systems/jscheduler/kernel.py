"""Self-scheduling: every job asks some clusters that can hold it, and goes where its metric is best.

At one instant happens, in this order:

1. completions, then corrections of outrun estimates, then events of nodes, on all clusters; users give up;
2. submissions, of jobs that become eligible too, each decided in turn, so that it is seen by those after it;
3. one scheduling pass on every cluster where something changed.

The semantics are those of Guim, Garcia, Rodero and Corbalan, "The XtreemOS JScheduler: using self-scheduling
techniques in large computing architectures" (2008), sections 4 and 6; `scheduler` says
what was decided where the paper is silent. Clusters are those of `grid`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

from gridsched.engine import grid
from gridsched.engine.clusters import NOWHERE, GridArrays
from gridsched.engine.grid import Local
from gridsched.engine.jit import as_int64, inline, jit, noinline
from gridsched.engine.records import FOREVER
from gridsched.engine.reference import by_reference


class SelfSchedulingMetric(IntEnum):
    """What a job wants to be small."""

    WAIT = 0
    SLOWDOWN = 1
    RESPONSE = 2
    QUEUED_JOBS = 3
    WORK_LEFT = 4
    OWN = 5


class Stop(IntEnum):
    """Why a simulation stopped."""

    END = 0
    NEEDS_ROOM = 1
    PAUSE = 2
    FAILED = 3


_WAIT, _SLOWDOWN, _RESPONSE, _QUEUED_JOBS, _WORK_LEFT, _OWN = map(int, SelfSchedulingMetric)
_END, _NEEDS_ROOM, _PAUSE, _FAILED = map(int, Stop)


NOT_A_NUMBER = -3
"""Choice of a job whose cost is no number."""


class JSchedulerOptions(NamedTuple):
    """What does not change during a simulation."""

    overrun: int
    predictions: int
    metric: int  # value of `SelfSchedulingMetric`
    resources: int  # how many a job asks, at most
    first: int  # of equally good clusters the first that was named, whenever it ends the job


class Directory(NamedTuple):
    """What the jobs know: n jobs."""

    sample: Any  # int16[n, ...], clusters that a job may ask, in the order of asking; then -1
    starts: Any  # int64[...], predicted start on each cluster of the job that is being decided
    cost: Any  # what a job wants to be small by a user's own function, see `costs`


# --- where a job goes -----------------------------------------------------------------------------

_FIRST_HORIZON = 900
"""Seconds of wait up to which starts are looked for when there is none now."""

_RECESSION = 4
"""Factor by which the horizon recedes while no start is found."""


@inline
def _asked(d: Directory, j: int, options: JSchedulerOptions) -> int:
    """How many clusters a job asks."""
    count = 0
    while count < options.resources and d.sample[j, count] >= 0:
        count += 1
    return count


@inline
def _cost(metric: int, wait: int, estimate: int) -> float:
    """What a job wants to be small, on a cluster where it would wait and run so long."""
    if metric == _WAIT:
        return float(wait)
    if metric == _SLOWDOWN:
        return wait / estimate
    return float(wait + estimate)


@inline
def _longest_wait(metric: int, cost: float, estimate: int) -> int:
    """No longer wait costs as little as this."""
    if cost >= FOREVER:
        return FOREVER
    if metric == _WAIT:
        return int(cost)
    if metric == _SLOWDOWN:
        # one second more than the quotient may have been rounded
        return int(cost * estimate) + 1
    return int(cost) - estimate


@inline
def _predict(
    g: GridArrays,
    d: Directory,
    local: Local,
    j: int,
    count: int,
    now: int,
    options: JSchedulerOptions,
    score: Any,
) -> None:
    """Predict when a job starts on each cluster that it asks; FOREVER where others are better for it.

    Starts are looked for up to a horizon, at first now, which recedes while some cluster could still be the
    best; so none is simulated much further than to the best start.
    """
    metric = options.metric
    for k in range(count):
        d.starts[k] = FOREVER
    best = float(FOREVER)
    seen = -1
    horizon = 0
    while seen < horizon:
        undecided = False
        for k in range(count):
            m = as_int64(d.sample[j, k])
            if d.starts[k] == FOREVER:
                estimate = grid.estimate_on(g, local, j, m)
                useful = _longest_wait(metric, best, estimate)
                if useful > seen:
                    latest = now + min(useful, horizon)
                    start = grid.predicted_start(g, local, j, m, now, latest, options, score)
                    d.starts[k] = start
                    if start < FOREVER:
                        best = min(best, _cost(metric, start - now, estimate))
                    undecided |= start == FOREVER and useful > horizon
        seen = horizon
        if undecided:
            horizon = max(_FIRST_HORIZON, _RECESSION * horizon)


@inline
def _best_predicted(
    g: GridArrays, d: Directory, local: Local, j: int, count: int, now: int, options: JSchedulerOptions
) -> int:
    """Cluster with the best predicted metric; then the earliest completion if that counts, then the first.

    The first asked is it, too, where none can start the job as things are.
    """
    chosen = as_int64(d.sample[j, 0])
    least = float(FOREVER)
    earliest = FOREVER
    for k in range(count):
        if d.starts[k] < FOREVER:
            estimate = grid.estimate_on(g, local, j, as_int64(d.sample[j, k]))
            cost = _cost(options.metric, d.starts[k] - now, estimate)
            completion = 0 if options.first else d.starts[k] + estimate
            if cost < least or (cost == least and completion < earliest):
                least = cost
                earliest = completion
                chosen = as_int64(d.sample[j, k])
    return chosen


@inline
def _least_loaded(
    g: GridArrays, d: Directory, local: Local, j: int, count: int, now: int, options: JSchedulerOptions
) -> int:
    """Cluster with the fewest waiting jobs, or the least work left a processor; then the first asked."""
    chosen = NOWHERE
    least = float(FOREVER)
    for k in range(count):
        m = as_int64(d.sample[j, k])
        if options.metric == _QUEUED_JOBS:
            load = float(grid.waiting(g, local, m))
        else:
            load = grid.load(g, local, m, now, options.overrun)
        if load < least:
            least = load
            chosen = m
    return chosen


@inline
def _own_cost(
    g: GridArrays, d: Directory, local: Local, j: int, m: int, now: int, start: int, overrun: int
) -> float:
    """What a user's own function says of a cluster where a job would start then."""
    return float(
        d.cost(
            now,
            start - now,
            grid.estimate_on(g, local, j, m),
            int(g.requests[j]["processors"]),
            grid.waiting(g, local, m),
            grid.work_left(g, local, m, now, overrun),
            grid.idle(g, local, m),
            int(g.clusters[m]["processors"]),
            1 if g.home[j] == m else 0,
            int(local.labels_of_requests[j]["user"]),
            int(local.labels_of_requests[j]["group"]),
            int(local.labels_of_requests[j]["queue"]),
        )
    )


@noinline
def _least_own(
    g: GridArrays,
    d: Directory,
    local: Local,
    j: int,
    count: int,
    now: int,
    options: JSchedulerOptions,
    score: Any,
) -> int:
    """Cluster with the least cost by a user's function; then as with predicted metrics.

    NOT_A_NUMBER if some cost is none.
    """
    chosen = NOWHERE
    least = 0.0
    earliest = FOREVER
    for k in range(count):
        m = as_int64(d.sample[j, k])
        start = grid.predicted_start(g, local, j, m, now, FOREVER, options, score)
        cost = _own_cost(g, d, local, j, m, now, start, options.overrun)
        if cost != cost:
            return NOT_A_NUMBER
        completion = 0 if options.first else start + grid.estimate_on(g, local, j, m)
        if chosen == NOWHERE or cost < least or (cost == least and completion < earliest):
            least = cost
            earliest = completion
            chosen = m
    return chosen


@noinline
def _choice(
    g: GridArrays, d: Directory, local: Local, j: int, now: int, options: JSchedulerOptions, score: Any
) -> int:
    """Cluster that a job goes to."""
    count = _asked(d, j, options)
    if count == 0:
        return NOWHERE
    if count == 1:
        return as_int64(d.sample[j, 0])
    g.clock[0]["queries"] += count
    if options.metric == _OWN:
        return _least_own(g, d, local, j, count, now, options, score)
    if options.metric > _RESPONSE:
        return _least_loaded(g, d, local, j, count, now, options)
    _predict(g, d, local, j, count, now, options, score)
    return _best_predicted(g, d, local, j, count, now, options)


@noinline
def _submit(
    g: GridArrays, d: Directory, local: Local, now: int, options: JSchedulerOptions, score: Any
) -> bool:
    """Let the jobs that are submitted now enter local queues; False if a user's function gives no number."""
    j = grid.next_entering(g, local, now, 1)
    while j >= 0:
        m = _choice(g, d, local, j, now, options, score)
        g.cluster[j] = m
        if m == NOT_A_NUMBER:
            return False
        if m >= 0:
            grid.enter(g, local, j, m, now, options, score)
        j = grid.next_entering(g, local, now, 1)
    return True


# --- users who give up ----------------------------------------------------------------------------


# --- the clock ------------------------------------------------------------------------------------


@jit
def schedule(
    g: GridArrays, d: Directory, local: Local, until: int, options: JSchedulerOptions, score: Any
) -> int:
    """Simulate the grid; return why it stopped, a value of `Stop`.

    It pauses before the first instant at or after `until`. It can be called again, after `grid.with_room`
    where a queue needs more room, and goes on where it stopped.
    """
    g, d, local = by_reference(g), by_reference(d), by_reference(local)
    options = by_reference(options)
    while True:
        now = min(grid.next_arrival(g, local), grid.first_due(g, local))
        if now == FOREVER:
            return _END
        if now >= until:
            return _PAUSE
        if not grid.has_room(g, local, 0, now):
            return _NEEDS_ROOM
        grid.finish_due(g, local, now, options)
        grid.live(g, local, now)
        grid.let_leave(g, local, now)
        if not _submit(g, d, local, now, options, score):
            return _FAILED
        grid.pass_where_due(g, local, now, options, score)
