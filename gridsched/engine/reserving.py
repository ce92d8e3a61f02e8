"""Local scheduler for any queue order and any number of reservations, worked out anew at each pass.

The general path of the engine: queue orders that change with time (largest expansion factor first, a
user's score) and EASY with several reservations. A pass costs O(q log q + r) for q waiting and
r running jobs; nothing is kept between passes but who waits and who runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import cluster_state, heap, profile
from gridsched.engine.jit import as_int64, inline, jit
from gridsched.engine.records import FOREVER, SCORED, STEP, Backfilling

_NONE = int(Backfilling.NONE)
_FIRST_FIT = int(Backfilling.FIRST_FIT)
_EASY = int(Backfilling.EASY)


class ReservingOptions(NamedTuple):
    """What does not change during a simulation."""

    backfilling: int
    reservations: int
    overrun: int
    pass_per_event: bool
    arrivals_first: bool  # submissions of an instant come before its ends
    changing: bool  # the queue order is given by the score at each pass, else by `queue_key`
    queue_as_order: bool  # backfill order is the queue order, else given by `order_key`


class ReservingArrays(NamedTuple):
    """Arrays of one simulated cluster."""

    jobs: Any  # JOB[n], in order of submission
    labels: Any  # LABELS[n], for the score
    queue_key: Any  # float64[n], smallest first
    order_key: Any  # float64[n], smallest first
    waiting: Any  # int64[n], waiting jobs in order of submission
    candidates: Any  # SCORED[n], heap of the jobs that a pass still has to try
    events: Any  # ENTRY[...], heap of the ends of running jobs
    blocks: Any  # BLOCK[...], see `running`
    runs: Any  # RUN[...], see `running`
    steps: Any  # STEP[...], see `profile`
    starts: Any  # int64[n], the result
    plan: Any  # int64[n], planned starts (conservative backfilling)
    state: Any  # STATE[1]


def allocate(jobs: Any, labels: Any, processors: int, queue_key: Any, order_key: Any) -> ReservingArrays:
    """Arrays of an empty cluster of so many processors, for these jobs."""
    number = len(jobs)
    cluster = ReservingArrays(
        labels=labels,
        queue_key=queue_key,
        order_key=order_key,
        waiting=np.empty(number, np.int64),
        candidates=np.empty(number + 1, SCORED),
        # at most two steps a job, twice so that the profile can wander through the array
        steps=np.empty(4 * number + 16, STEP),
        plan=np.full(number, FOREVER, np.int64),
        **cluster_state.allocate(jobs, processors),
    )
    cluster.steps[0] = (0, processors)
    cluster.state["high"] = 1
    return cluster


@inline
def submit(c: ReservingArrays) -> int:
    """Let the next job wait; return it."""
    state = c.state[0]
    j = state["arrival"]
    c.waiting[state["waiting"]] = j
    state["waiting"] += 1
    state["arrival"] = j + 1
    return j


@inline
def drop_started(c: ReservingArrays) -> None:
    """Keep only the jobs that still wait, in order of submission."""
    state = c.state[0]
    kept = 0
    for k in range(state["waiting"]):
        j = c.waiting[k]
        c.waiting[kept] = j
        if c.starts[j] < 0:
            kept += 1
    state["waiting"] = kept


@inline
def withdraw(c: ReservingArrays, j: int) -> int:
    """Let a waiting job wait no longer; return how many waited before it."""
    state = c.state[0]
    place = 0
    while c.waiting[place] != j:
        place += 1
    for k in range(place + 1, state["waiting"]):
        c.waiting[k - 1] = c.waiting[k]
    state["waiting"] -= 1
    return place


@inline
def _queue_key(c: ReservingArrays, j: int, now: int, options: ReservingOptions, score: Any) -> float:
    """Place of a waiting job in the queue: smallest first."""
    if not options.changing:
        return c.queue_key[j]
    value = score(
        now,
        c.jobs[j]["submit"],
        int(c.jobs[j]["estimate"]),
        c.labels[j]["processors"],
        c.labels[j]["user"],
        c.labels[j]["group"],
        c.labels[j]["queue"],
    )
    if not np.isfinite(value) and c.state[0]["unordered"] == 0:
        c.state[0]["unordered"] = c.labels[j]["number"] + 1
        c.state[0]["unordered_at"] = now
    return -value


@inline
def queue_candidates(c: ReservingArrays, count: int, now: int, options: ReservingOptions, score: Any) -> int:
    """Heap of the first `count` waiting jobs in queue order; return its size."""
    size = 0
    for k in range(count):
        j = c.waiting[k]
        size = heap.push(c.candidates, size, _queue_key(c, j, now, options, score), j)
    return size


@inline
def _narrow_candidates(c: ReservingArrays, size: int, options: ReservingOptions) -> int:
    """Keep the candidates that could fit at all, in backfill order; return how many."""
    free = c.state[0]["free"]
    kept = 0
    for k in range(size):
        j = c.candidates[k]["job"]
        if c.jobs[j]["processors"] <= free:
            key = c.candidates[k]["key"] if options.queue_as_order else c.order_key[j]
            kept = heap.push(c.candidates, kept, key, j)
    return kept


@inline
def reserve(c: ReservingArrays, time: int, estimate: int, processors: int) -> None:
    """Take processors out of the availability profile."""
    state = c.state[0]
    state["high"] = profile.change(c.steps, state["low"], state["high"], time, time + estimate, -processors)


@inline
def _start_or_reserve(c: ReservingArrays, j: int, now: int, easy: bool, may_reserve: bool) -> bool:
    """Start a job if it fits now for its whole estimate, else reserve; return whether it was started.

    With a pass after each event, a job that is expected to end now may still hold its processors: it
    counts as ended in the profile, but nothing can start on them yet.
    """
    state = c.state[0]
    processors = as_int64(c.jobs[j]["processors"])
    estimate = as_int64(c.jobs[j]["estimate"])
    time = profile.earliest_fit(c.steps, state["low"], state["high"], now, processors, estimate, FOREVER)
    startable = time == now and processors <= state["free"]
    if startable or may_reserve:
        reserve(c, time, estimate, processors)
    if startable:
        cluster_state.start(c, j, now, easy)
    return startable


@inline
def _rebuild_profile(c: ReservingArrays, now: int, easy: bool) -> None:
    """Availability by the running jobs alone; without reservations only the present matters."""
    state = c.state[0]
    state["low"] = 0
    if easy:
        state["high"] = profile.from_running(c.steps, c.blocks, c.runs, state["blocks"], state["free"], now)
    else:
        c.steps[0]["time"] = now
        c.steps[0]["free"] = state["free"]
        c.steps[1]["time"] = FOREVER
        c.steps[1]["free"] = FOREVER
        state["high"] = 2


@inline
def scheduling_pass(c: ReservingArrays, now: int, options: ReservingOptions, score: Any) -> None:
    """Start what the policy starts now."""
    state = c.state[0]
    if state["free"] == 0 or state["waiting"] == 0:
        return
    easy = options.backfilling == _EASY
    _rebuild_profile(c, now, easy)
    size = queue_candidates(c, state["waiting"], now, options, score)
    held = 0
    while size > 0 and held < options.reservations:
        j = c.candidates[0]["job"]
        size = heap.pop(c.candidates, size)
        if not _start_or_reserve(c, j, now, easy, easy):
            held += 1
    if options.backfilling != _NONE:
        size = _narrow_candidates(c, size, options)
        while size > 0 and state["free"] > 0:
            j = c.candidates[0]["job"]
            size = heap.pop(c.candidates, size)
            _start_or_reserve(c, j, now, easy, False)
    drop_started(c)


@inline
def advance(c: ReservingArrays, options: ReservingOptions, score: Any) -> None:
    """Go on to the next event; there must be one."""
    easy = options.backfilling == _EASY
    now = cluster_state.next_event(c)
    more = True
    ends_wait = options.arrivals_first and cluster_state.ends_wait(c, now, options.overrun, easy)
    while more and not ends_wait and cluster_state.ends(c, now):
        cluster_state.complete(c, now, options.overrun, easy)
        more = not options.pass_per_event
    while more and cluster_state.first_expected_end(c) == now:
        cluster_state.correct(c, now, options.overrun)
        more = not options.pass_per_event
    while more and cluster_state.arrives(c, now):
        submit(c)
        more = not options.pass_per_event
    scheduling_pass(c, now, options, score)


@jit
def schedule(c: ReservingArrays, options: ReservingOptions, score: Any) -> None:
    """Simulate the cluster to the end of its last job; `c.starts` is the result.

    `score` is a compiled function of (now, submit_time, estimate, processors, user, group, queue); the
    waiting job of the largest score is first in the queue.
    """
    state = c.state[0]
    if options.arrivals_first:
        cluster_state.order_ends_by_start(c)
    while state["arrival"] < len(c.jobs) or state["ending"] > 0:
        advance(c, options, score)
