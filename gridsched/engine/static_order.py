"""Local scheduler for queue orders that are known at submission: no backfilling, first fit, EASY.

The fast path of the engine. Three facts keep the cost of a job nearly independent of the queue:

* While the first waiting job stays blocked and no processor was freed, every job that was refused is
  refused again, so an arrival needs to be tested alone. The shadow time and the extra processors
  are kept between events.
* When processors are freed, `waiting_tree` steps over the size classes and subtrees of waiting jobs in
  which none fits.
* `running` finds the shadow time from sums of blocks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import cluster_state, heap, running, waiting_tree
from gridsched.engine.jit import inline, jit, unchecked
from gridsched.engine.records import EASY, ENTRY, FOREVER, LARGEST, NO_BACKFILLING


class StaticOrderOptions(NamedTuple):
    """What does not change during a simulation."""

    backfilling: int
    overrun: int
    pass_per_event: bool
    arrivals_first: bool  # submissions of an instant come before its ends
    first_come: bool  # the queue order is the order of submission
    two_orders: bool  # the backfill order differs from it


class StaticOrderArrays(NamedTuple):
    """Arrays of one simulated cluster."""

    jobs: Any  # JOB[n], in order of submission
    waiting: waiting_tree.Waiting  # in backfill order; not used without backfilling
    queue: Any  # ENTRY[n], heap of waiting jobs in queue order; not used if that is first come, first served
    queue_rank: Any  # int32[2, n], position of each job in the queue order, and the job at each position
    order_rank: Any  # int32[2, n], likewise in the backfill order
    events: Any  # ENTRY[...], heap of the ends of running jobs
    blocks: Any  # BLOCK[...], see `running`
    runs: Any  # RUN[...], see `running`
    starts: Any  # int64[n], the result
    state: Any  # STATE[1]


def allocate(
    jobs: Any, processors: int, queue_rank: Any, order_rank: Any, backfilling: int
) -> StaticOrderArrays:
    """Arrays of an empty cluster of so many processors, for these jobs."""
    if backfilling == NO_BACKFILLING:
        waiting = waiting_tree.allocate_nothing()
    else:
        waiting = waiting_tree.allocate_classes(jobs["processors"], order_rank[1])
    cluster = StaticOrderArrays(
        waiting=waiting,
        queue=np.empty(len(jobs), ENTRY),
        queue_rank=queue_rank,
        order_rank=order_rank,
        **cluster_state.allocate(jobs, processors),
    )
    cluster.state["shadow"] = cluster.state["extra"] = -1
    return cluster


@inline
def enqueue(c: StaticOrderArrays, j: int, options: StaticOrderOptions) -> None:
    """Let a job wait."""
    state = c.state[0]
    if options.backfilling != NO_BACKFILLING:
        waiting_tree.enter(c.waiting, j, c.jobs[unchecked(j)]["processors"], c.jobs[unchecked(j)]["estimate"])
    if not options.first_come:
        state["queued"] = heap.push(c.queue, state["queued"], int(c.queue_rank[0, j]), j)
    state["waiting"] += 1


@inline
def _dequeue(c: StaticOrderArrays, j: int, backfilling: int) -> None:
    """Let a job wait no longer."""
    if backfilling != NO_BACKFILLING:
        waiting_tree.leave(c.waiting, j)
    c.state[0]["waiting"] -= 1


@inline
def _first_in_queue(c: StaticOrderArrays, options: StaticOrderOptions) -> int:
    """The first waiting job in queue order; there must be one.

    Jobs that were started from further behind are passed over once they are first.
    """
    state = c.state[0]
    if options.first_come:
        if options.backfilling == NO_BACKFILLING:  # those that wait are the last ones submitted
            return state["arrival"] - state["waiting"]
        j = state["head"]
        while c.starts[unchecked(j)] >= 0:
            j += 1
        return j
    while c.starts[c.queue[0]["job"]] >= 0:
        state["queued"] = heap.pop(c.queue, state["queued"])
    return c.queue[0]["job"]


@inline
def _start_beside_head(c: StaticOrderArrays, j: int, now: int, backfilling: int) -> None:
    """Start a job ahead of the first waiting one, on extra processors if it ends after the shadow time."""
    state = c.state[0]
    if now + c.jobs[unchecked(j)]["estimate"] > state["shadow"]:
        state["extra"] -= c.jobs[unchecked(j)]["processors"]
    cluster_state.start(c, j, now, backfilling == EASY)


@inline
def _fits_beside_head(c: StaticOrderArrays, j: int, now: int) -> bool:
    """Whether a job may start now without delaying the first waiting one."""
    state = c.state[0]
    processors = c.jobs[unchecked(j)]["processors"]
    return processors <= state["free"] and (
        processors <= state["extra"] or now + c.jobs[unchecked(j)]["estimate"] <= state["shadow"]
    )


@inline
def _arrive_alone(c: StaticOrderArrays, j: int, now: int, options: StaticOrderOptions) -> bool:
    """Submit a job while nothing else has changed; return whether a pass has to follow."""
    state = c.state[0]
    if state["waiting"] == 0:
        if c.jobs[unchecked(j)]["processors"] <= state["free"]:
            cluster_state.start(c, j, now, options.backfilling == EASY)
            return False
    elif options.first_come or c.queue_rank[0, j] > c.queue_rank[0, state["head"]]:
        if options.backfilling != NO_BACKFILLING and _fits_beside_head(c, j, now):
            _start_beside_head(c, j, now, options.backfilling)
        else:
            enqueue(c, j, options)
        return False
    enqueue(c, j, options)
    return True


@inline
def _start_in_order(c: StaticOrderArrays, now: int, options: StaticOrderOptions) -> None:
    """Start waiting jobs in queue order up to the first that does not fit."""
    state = c.state[0]
    while state["waiting"] > 0:
        j = _first_in_queue(c, options)
        state["head"] = j
        if c.jobs[unchecked(j)]["processors"] > state["free"]:
            return
        _dequeue(c, j, options.backfilling)
        cluster_state.start(c, j, now, options.backfilling == EASY)


@inline
def _reserve_for_head(c: StaticOrderArrays, now: int, backfilling: int) -> None:
    """Find the shadow time and the extra processors of the first waiting job."""
    state = c.state[0]
    if backfilling == EASY:
        needed = c.jobs[state["head"]]["processors"]
        state["shadow"], available = running.shadow(c.blocks, c.runs, state["blocks"], state["free"], needed)
        state["extra"] = available - needed
    else:
        state["shadow"] = FOREVER


@inline
def _backfill(c: StaticOrderArrays, now: int, backfilling: int) -> None:
    """Start every waiting job, in backfill order, that fits beside the first one."""
    state = c.state[0]
    window = min(state["shadow"] - now, LARGEST)
    narrow = min(state["extra"], state["free"])
    classes = waiting_tree.search_classes(c.waiting, narrow, state["free"], window)
    rank = waiting_tree.first_found(c.waiting, classes)
    while rank < waiting_tree.NOWHERE:
        j = int(c.order_rank[1, rank])
        if _fits_beside_head(c, j, now):
            _dequeue(c, j, backfilling)
            _start_beside_head(c, j, now, backfilling)
            narrow = min(state["extra"], state["free"])
        classes = waiting_tree.search_on(c.waiting, j, classes, narrow, state["free"], window)
        rank = waiting_tree.first_found(c.waiting, classes)


@inline
def _comes_alone(c: StaticOrderArrays, now: int, options: StaticOrderOptions) -> bool:
    """Whether the job just submitted can be treated before the others of this instant.

    Jobs submitted at one instant may overtake each other, unless all order is first come, first served.
    """
    first_come_only = options.first_come and not options.two_orders
    return first_come_only or options.pass_per_event or not cluster_state.arrives(c, now)


@inline
def next_event(c: StaticOrderArrays, easy: bool) -> int:
    """Time of the next submission or end, and of the next outrun estimate where that matters."""
    state = c.state[0]
    now = FOREVER
    if state["arrival"] < len(c.jobs):
        now = c.jobs[unchecked(state["arrival"])]["submit"]
    if state["ending"] > 0:
        now = min(now, c.events[0]["key"])
    return min(now, cluster_state.first_expected_end(c)) if easy else now


@inline
def scheduling_pass(c: StaticOrderArrays, now: int, options: StaticOrderOptions) -> None:
    """Start what the policy starts now."""
    state = c.state[0]
    _start_in_order(c, now, options)
    if state["waiting"] > 0 and state["free"] > 0 and options.backfilling != NO_BACKFILLING:
        _reserve_for_head(c, now, options.backfilling)
        _backfill(c, now, options.backfilling)


@inline
def advance(c: StaticOrderArrays, options: StaticOrderOptions) -> None:
    """Go on to the next event; there must be one."""
    state = c.state[0]
    easy = options.backfilling == EASY
    now = next_event(c, easy)
    more = True
    ends_wait = options.arrivals_first and cluster_state.ends_wait(c, now, options.overrun, easy)
    changed = ends_wait  # processors may have been given back without a pass
    while more and not ends_wait and cluster_state.ends(c, now):
        cluster_state.complete(c, now, options.overrun, easy)
        changed = True
        more = not options.pass_per_event
    while easy and more and cluster_state.first_expected_end(c) == now:
        cluster_state.correct(c, now, options.overrun)
        changed = True
        more = not options.pass_per_event
    while more and cluster_state.arrives(c, now):
        j = state["arrival"]
        state["arrival"] += 1
        if not changed and _comes_alone(c, now, options):
            changed = _arrive_alone(c, j, now, options)
        else:
            enqueue(c, j, options)
            changed = True
        more = not options.pass_per_event
    if changed:
        scheduling_pass(c, now, options)


@jit
def schedule(c: StaticOrderArrays, options: StaticOrderOptions) -> None:
    """Simulate the cluster to the end of its last job; `c.starts` is the result."""
    state = c.state[0]
    if options.arrivals_first:
        cluster_state.order_ends_by_start(c)
    while state["arrival"] < len(c.jobs) or state["ending"] > 0:
        advance(c, options)
