"""Local scheduler for queue orders that are known at submission: no backfilling, first fit, EASY.

The fast path of the engine. Three facts keep the cost of a job nearly independent of the queue:

* While the first waiting job stays blocked and no processor was freed, every job that was refused is
  refused again, so an arrival needs to be tested alone. The shadow time and the extra processors
  are kept between events.
* When processors are freed, `waiting_tree` steps over every subtree of waiting jobs in which none fits.
* `running` finds the shadow time from sums of blocks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gridsched.engine import machine, running, waiting_tree
from gridsched.engine.jit import jit, leaf
from gridsched.engine.records import FOREVER, LARGEST, Backfilling

_NONE = int(Backfilling.NONE)
_EASY = int(Backfilling.EASY)


class Options(NamedTuple):
    """What does not change during a simulation."""

    backfilling: int
    overrun: int
    pass_per_event: bool
    first_come: bool  # queue order and backfill order are both the order of submission
    two_orders: bool  # they differ, so that each needs its tree


class Cluster(NamedTuple):
    """Arrays of one simulated cluster."""

    jobs: Any  # JOB[n], in order of submission
    queue: Any  # NODE[...], waiting jobs in queue order
    order: Any  # NODE[...], waiting jobs in backfill order; the same tree unless `two_orders`
    queue_rank: Any  # int32[2, n], position of each job in the queue order, and the job at each position
    order_rank: Any  # int32[2, n], likewise in the backfill order
    events: Any  # ENTRY[...], heap of the ends of running jobs
    blocks: Any  # BLOCK[...], see `running`
    runs: Any  # RUN[...], see `running`
    starts: Any  # int64[n], the result
    state: Any  # STATE[1]


def allocate(jobs: Any, processors: int, queue_rank: Any, order_rank: Any) -> Cluster:
    """Arrays of an empty cluster of so many processors, for these jobs."""
    queue = waiting_tree.allocate(len(jobs))
    cluster = Cluster(
        queue=queue,
        order=queue if order_rank is queue_rank else waiting_tree.allocate(len(jobs)),
        queue_rank=queue_rank,
        order_rank=order_rank,
        **machine.allocate(jobs, processors),
    )
    cluster.state["head"] = len(jobs)
    cluster.state["shadow"] = cluster.state["extra"] = -1
    return cluster


@leaf
def _enqueue(c: Cluster, j: int, two_orders: bool) -> None:
    """Let a job wait."""
    state = c.state[0]
    processors = c.jobs[j]["processors"]
    estimate = c.jobs[j]["estimate"]
    position = int(c.queue_rank[0, j])
    waiting_tree.insert(c.queue, position, processors, estimate)
    if two_orders:
        waiting_tree.insert(c.order, int(c.order_rank[0, j]), processors, estimate)
    state["head"] = min(state["head"], position)
    state["waiting"] += 1


@leaf
def _dequeue(c: Cluster, j: int, two_orders: bool) -> None:
    """Let a job wait no longer."""
    waiting_tree.remove(c.queue, int(c.queue_rank[0, j]))
    if two_orders:
        waiting_tree.remove(c.order, int(c.order_rank[0, j]))
    c.state[0]["waiting"] -= 1


@leaf
def _start_beside_head(c: Cluster, j: int, now: int, backfilling: int) -> None:
    """Start a job ahead of the first waiting one, on extra processors if it ends after the shadow time."""
    state = c.state[0]
    if now + c.jobs[j]["estimate"] > state["shadow"]:
        state["extra"] -= c.jobs[j]["processors"]
    machine.start(c, j, now, backfilling == _EASY)


@leaf
def _fits_beside_head(c: Cluster, j: int, now: int) -> bool:
    """Whether a job may start now without delaying the first waiting one."""
    state = c.state[0]
    processors = c.jobs[j]["processors"]
    return processors <= state["free"] and (
        processors <= state["extra"] or now + c.jobs[j]["estimate"] <= state["shadow"]
    )


@leaf
def _arrive_alone(c: Cluster, j: int, now: int, options: Options) -> bool:
    """Submit a job while nothing else has changed; return whether a pass has to follow."""
    state = c.state[0]
    if state["waiting"] == 0:
        if c.jobs[j]["processors"] <= state["free"]:
            machine.start(c, j, now, options.backfilling == _EASY)
            return False
    elif c.queue_rank[0, j] > state["head"]:
        if _fits_beside_head(c, j, now):
            _start_beside_head(c, j, now, options.backfilling)
        else:
            _enqueue(c, j, options.two_orders)
        return False
    _enqueue(c, j, options.two_orders)
    return True


@leaf
def _start_in_order(c: Cluster, now: int, options: Options) -> None:
    """Start waiting jobs in queue order up to the first that does not fit."""
    state = c.state[0]
    while state["waiting"] > 0:
        state["head"] = waiting_tree.first_waiting(c.queue, state["head"])
        j = int(c.queue_rank[1, state["head"]])
        if c.jobs[j]["processors"] > state["free"]:
            return
        _dequeue(c, j, options.two_orders)
        machine.start(c, j, now, options.backfilling == _EASY)
    state["head"] = len(c.jobs)


@leaf
def _reserve_for_head(c: Cluster, now: int, backfilling: int) -> None:
    """Find the shadow time and the extra processors of the first waiting job."""
    state = c.state[0]
    if backfilling == _EASY:
        needed = c.jobs[c.queue_rank[1, state["head"]]]["processors"]
        state["shadow"], available = running.shadow(c.blocks, c.runs, state["blocks"], state["free"], needed)
        state["extra"] = available - needed
    elif backfilling != _NONE:
        state["shadow"] = FOREVER


@leaf
def _backfill(c: Cluster, now: int, options: Options) -> None:
    """Start every waiting job, in backfill order, that fits beside the first one."""
    state = c.state[0]
    position = 0
    while state["free"] > 0:
        narrow = min(state["extra"], state["free"])
        window = min(state["shadow"] - now, LARGEST - 1)
        position = waiting_tree.next_fit(c.order, position, narrow, state["free"], window)
        if position < 0:
            return
        j = int(c.order_rank[1, position])
        _dequeue(c, j, options.two_orders)
        _start_beside_head(c, j, now, options.backfilling)
        position += 1


@leaf
def _comes_alone(c: Cluster, now: int, options: Options) -> bool:
    """Whether the job just submitted can be treated before the others of this instant.

    Jobs submitted at one instant may overtake each other, unless all order is first come, first served.
    """
    return options.first_come or options.pass_per_event or not machine.arrives(c, now)


@jit
def schedule(c: Cluster, options: Options) -> None:
    """Simulate the cluster to the end of its last job; `c.starts` is the result."""
    state = c.state[0]
    easy = options.backfilling == _EASY
    while state["arrival"] < len(c.jobs) or state["ending"] > 0:
        now = machine.next_event(c)
        more = True
        changed = False
        while more and machine.ends(c, now):
            machine.complete(c, now, options.overrun, easy)
            changed = True
            more = not options.pass_per_event
        while more and machine.first_expected_end(c) == now:
            machine.correct(c, now, options.overrun)
            changed = True
            more = not options.pass_per_event
        while more and machine.arrives(c, now):
            j = state["arrival"]
            state["arrival"] += 1
            if not changed and _comes_alone(c, now, options):
                changed = _arrive_alone(c, j, now, options)
            else:
                _enqueue(c, j, options.two_orders)
                changed = True
            more = not options.pass_per_event
        if changed:
            _start_in_order(c, now, options)
            if state["waiting"] > 0 and options.backfilling != _NONE:
                _reserve_for_head(c, now, options.backfilling)
                _backfill(c, now, options)
