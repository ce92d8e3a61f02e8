"""Conservative backfilling: every waiting job has a reservation, which no later job can delay.

Feitelson and Weil, "Utilization and predictability in scheduling the IBM SP2 with backfilling", IPPS
1998. The plan is kept between passes. When a job ends early, each waiting job in queue order gives up its
reservation for the earliest place, never a later one. When a job outruns its estimate, the plan is
made anew, since some reservations can no longer be kept.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine import cluster_state, heap, profile
from gridsched.engine.jit import as_int64, inline, jit, noinline, shift
from gridsched.engine.records import FOREVER, LARGEST
from gridsched.engine.reserving import (
    ReservingArrays,
    ReservingOptions,
    drop_started,
    queue_candidates,
    reserve,
    submit,
    withdraw,
)


@inline
def _release(c: ReservingArrays, start: int, end: int, processors: int) -> None:
    """Give processors back to the availability profile."""
    state = c.state[0]
    state["high"] = profile.change(c.steps, state["low"], state["high"], start, end, processors)


@inline
def _promise(c: ReservingArrays, j: int, time: int) -> None:
    """Plan a start; where the order of starts matters, jobs planned for one time start in this order."""
    state = c.state[0]
    if state["turns"] != 0 and c.plan[j] != time:
        state["plans"] += 1
        c.order_key[j] = state["plans"]  # there is no backfill order that would need it
    c.plan[j] = time


@inline
def _place(c: ReservingArrays, j: int, now: int) -> None:
    """Reserve the earliest place for a waiting job."""
    state = c.state[0]
    processors = as_int64(c.jobs[j]["processors"])
    estimate = as_int64(c.jobs[j]["estimate"])
    time = profile.earliest_fit(c.steps, state["low"], state["high"], now, processors, estimate, FOREVER)
    reserve(c, time, estimate, processors)
    _promise(c, j, time)
    state["planned"] = min(state["planned"], time)


@inline
def _move_forward(c: ReservingArrays, j: int, now: int) -> None:
    """Give a waiting job an earlier place if there is one."""
    state = c.state[0]
    processors = as_int64(c.jobs[j]["processors"])
    estimate = as_int64(c.jobs[j]["estimate"])
    old = c.plan[j]
    time = profile.earliest_fit(c.steps, state["low"], state["high"], now, processors, estimate, old)
    if time < old:
        _release(c, old, old + estimate, processors)
        reserve(c, time, estimate, processors)
        _promise(c, j, time)


@inline
def _plan_again(
    c: ReservingArrays, count: int, now: int, from_scratch: bool, options: ReservingOptions, score: Any
) -> None:
    """Place the first `count` waiting jobs again, in queue order."""
    state = c.state[0]
    size = queue_candidates(c, count, now, options, score)
    if from_scratch:
        state["low"] = 0
        state["high"] = profile.from_running(c.steps, c.blocks, c.runs, state["blocks"], state["free"], now)
    while size > 0:
        j = c.candidates[0]["job"]
        size = heap.pop(c.candidates, size)
        if from_scratch:
            _place(c, j, now)
        else:
            _move_forward(c, j, now)


@inline
def _start_planned(c: ReservingArrays, now: int) -> None:
    """Start the jobs whose time has come and that fit; find the next planned start."""
    state = c.state[0]
    state["planned"] = FOREVER
    size = 0
    for k in range(state["waiting"]):
        j = c.waiting[k]
        if c.plan[j] <= now:
            key = 0.0 if state["turns"] == 0 else c.order_key[j]
            size = heap.push(c.candidates, size, key, j)
        else:
            state["planned"] = min(state["planned"], c.plan[j])
    while size > 0:
        j = c.candidates[0]["job"]
        size = heap.pop(c.candidates, size)
        if c.jobs[j]["processors"] <= state["free"]:
            cluster_state.start(c, j, now, True)
        else:
            state["planned"] = min(state["planned"], c.plan[j])
    drop_started(c)


@inline
def _forget_past(c: ReservingArrays, now: int) -> None:
    """Drop the steps before now; move the profile to the front of its array before it runs over the end."""
    state = c.state[0]
    state["low"] = profile.forget_past(c.steps, state["low"], state["high"], now)
    if state["low"] > len(c.steps) // 2:
        length = state["high"] - state["low"]
        shift(c.steps, 0, state["low"], length)
        state["low"] = 0
        state["high"] = length


@inline
def complete(c: ReservingArrays, now: int, overrun: int) -> None:
    """Take the first running job that ends now off its processors, and give back what it no longer needs."""
    processors = as_int64(c.jobs[c.events[0]["job"] & LARGEST]["processors"])
    end = cluster_state.complete(c, now, overrun, True)
    if end > now:
        _release(c, now, end, processors)
        c.state[0]["early"] = True


@noinline
def withdraw_planned(c: ReservingArrays, j: int) -> None:
    """Let a waiting job wait no longer, and give back its reservation."""
    state = c.state[0]
    if withdraw(c, j) < state["placed"]:
        state["placed"] -= 1
        if not state["outrun"]:
            processors = as_int64(c.jobs[j]["processors"])
            _release(c, c.plan[j], c.plan[j] + int(c.jobs[j]["estimate"]), processors)
        state["early"] = True


@inline
def correct(c: ReservingArrays, now: int, overrun: int) -> None:
    """Expect the first running job that should have ended now to end later."""
    cluster_state.correct(c, now, overrun)
    c.state[0]["outrun"] = True


@inline
def scheduling_pass(c: ReservingArrays, now: int, options: ReservingOptions, score: Any) -> None:
    """Repair the plan after what happened since the last pass, place new jobs, start those that are due."""
    state = c.state[0]
    _forget_past(c, now)
    if state["outrun"] or state["early"]:
        _plan_again(c, state["placed"], now, state["outrun"] != 0, options, score)
    for k in range(state["placed"], state["waiting"]):
        _place(c, c.waiting[k], now)
    _start_planned(c, now)
    state["placed"] = state["waiting"]
    state["early"] = False
    state["outrun"] = False


@inline
def advance(c: ReservingArrays, options: ReservingOptions, score: Any) -> None:
    """Go on to the next event; there must be one."""
    state = c.state[0]
    now = cluster_state.next_event(c)
    more = True
    ends_wait = options.arrivals_first and cluster_state.ends_wait(c, now, options.overrun, True)
    while more and not ends_wait and cluster_state.ends(c, now):
        complete(c, now, options.overrun)
        if options.arrivals_first:
            state["early"] = True  # every end, also one on time, lets jobs move
        more = not options.pass_per_event
    while more and cluster_state.first_expected_end(c) == now:
        correct(c, now, options.overrun)
        more = not options.pass_per_event
    while more and cluster_state.arrives(c, now):
        submit(c)
        more = not options.pass_per_event
    scheduling_pass(c, now, options, score)


@jit
def schedule(c: ReservingArrays, options: ReservingOptions, score: Any) -> None:
    """Simulate the cluster to the end of its last job; `c.starts` is the result. See `reserving.schedule`."""
    state = c.state[0]
    if options.arrivals_first:
        cluster_state.order_ends_by_start(c)
    while state["arrival"] < len(c.jobs) or state["ending"] > 0 or state["waiting"] > 0:
        advance(c, options, score)
