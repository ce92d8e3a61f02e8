"""Clusters that are a number of processors: what is free, plans in an availability profile, the event loop.

The resources of `gridsched.engine.passes`, for any queue order, several reservations, and conservative
backfilling. Queue orders that are known at submission have a faster kernel, `static_order`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import bundles, cluster_state, profile
from gridsched.engine.bundles import column
from gridsched.engine.jit import as_int64, inline, noinline
from gridsched.engine.records import CONSERVATIVE, EASY, FOREVER, LARGEST, SCORED, STEP


class CountedOptions(NamedTuple):
    """What does not change during a simulation."""

    backfilling: int
    reservations: int
    overrun: int
    pass_per_event: bool
    arrivals_first: bool  # submissions of an instant come before its ends
    changing: bool  # the queue order is given by the score at each pass, else by `queue_key`
    queue_as_order: bool  # backfill order is the queue order, else given by `order_key`


class CountedArrays(NamedTuple):
    """Arrays of one simulated cluster."""

    jobs: Any  # JOB[n], in order of submission
    labels: Any  # LABELS[n], for the score
    queue_key: Any  # float64[n], smallest first
    order_key: Any  # float64[n], smallest first
    events: Any  # ENTRY[...], heap of the ends of running jobs
    blocks: Any  # BLOCK[...], see `running`
    runs: Any  # RUN[...], see `running`
    starts: Any  # int64[n], the result
    state: Any  # cluster_state.STATE[1]
    # waiting jobs in order of submission, a heap of those that a pass still has to try, those it tries later
    waiting: Any = column(np.int64, "jobs")
    candidates: Any = column(SCORED, "jobs")
    later: Any = column(np.int64, "jobs")
    # see `profile`
    steps: Any = column(STEP, "steps")
    # planned starts under conservative backfilling
    plan: Any = column(np.int64, "jobs", fill=FOREVER)


def allocate(jobs: Any, labels: Any, processors: int, queue_key: Any, order_key: Any) -> CountedArrays:
    """Arrays of an empty cluster of so many processors, for these jobs."""
    c = bundles.allocate(
        CountedArrays,
        {"jobs": len(jobs) + 1, "steps": profile.steps_for(len(jobs))},
        labels=labels,
        queue_key=queue_key,
        order_key=order_key,
        **cluster_state.allocate(jobs, processors),
    )
    c.steps[0] = (0, processors)
    c.state["high"] = 1
    return c


# --- who waits ------------------------------------------------------------------------------------


@inline
def submit(c: CountedArrays) -> None:
    """Let the next job wait."""
    state = c.state[0]
    c.waiting[state["waiting"]] = state["arrival"]
    state["waiting"] += 1
    state["arrival"] += 1


@inline
def withdraw(c: CountedArrays, j: int) -> None:
    """Let a waiting job wait no longer, and give back its reservation."""
    state = c.state[0]
    place = 0
    while c.waiting[place] != j:
        place += 1
    for k in range(place + 1, state["waiting"]):
        c.waiting[k - 1] = c.waiting[k]
    state["waiting"] -= 1
    if place < state["placed"]:
        state["placed"] -= 1
        state["early"] = True
        if not state["broken"]:
            _change(c, c.plan[j], c.plan[j] + int(c.jobs[j]["estimate"]), int(c.jobs[j]["processors"]))


@inline
def item(c: CountedArrays, k: int) -> int:
    """What stands for the waiting job at a place among those to be tried: ties go by it."""
    return c.waiting[k]


@inline
def job_of(c: CountedArrays, item: int) -> int:
    """The job of an `item`."""
    return item


@inline
def has_started(c: CountedArrays, j: int) -> bool:
    """Whether a job runs or has run."""
    return c.starts[j] >= 0


# --- what fits ------------------------------------------------------------------------------------


@inline
def is_over(c: CountedArrays) -> bool:
    """Whether nothing can start any more in this pass."""
    return c.state[0]["free"] == 0


@inline
def could_fit(c: CountedArrays, j: int) -> bool:
    """Whether enough is free for a job now, whatever is planned."""
    return c.jobs[j]["processors"] <= c.state[0]["free"]


@inline
def is_refused(c: CountedArrays, j: int) -> bool:
    """Whether it is known that not enough is free for a job now."""
    return not could_fit(c, j)


@inline
def within_limits(c: CountedArrays, j: int) -> bool:
    """Whether a job may run beside those that run: there are no limits."""
    return True


@inline
def is_held(c: CountedArrays, j: int, reservations: int) -> bool:
    """Whether so many jobs hold up a job that it is tried later."""
    return c.state[0]["held"] >= reservations


@inline
def hold(c: CountedArrays, j: int, reservations: int) -> bool:
    """Let a job that does not fit hold up others; return whether all others are held up enough."""
    c.state[0]["held"] += 1
    return c.state[0]["held"] >= reservations


# --- plans ----------------------------------------------------------------------------------------


@noinline
def _change(c: CountedArrays, start: int, end: int, processors: int) -> None:
    """Give processors back to the availability profile, or take them if they are negative."""
    state = c.state[0]
    state["high"] = profile.change(c.steps, state["low"], state["high"], start, end, processors)


@noinline
def _earliest(c: CountedArrays, j: int, now: int, limit: int) -> int:
    """Earliest start of a job beside all that is known, before a time; that time if there is none."""
    state, job = c.state[0], c.jobs[j]
    processors, estimate = as_int64(job["processors"]), as_int64(job["estimate"])
    return profile.earliest_fit(c.steps, state["low"], state["high"], now, processors, estimate, limit)


@inline
def _promise(c: CountedArrays, j: int, time: int) -> None:
    """Plan a start; where the order of starts matters, jobs planned for one time start in this order."""
    state = c.state[0]
    if state["turns"] != 0 and c.plan[j] != time:
        state["plans"] += 1
        c.order_key[j] = state["plans"]  # there is no backfill order that would need it
    c.plan[j] = time


@inline
def forget_plans(c: CountedArrays, now: int) -> None:
    """Let nothing be known but when the running jobs are expected to end."""
    state = c.state[0]
    state["low"] = 0
    state["high"] = profile.from_running(c.steps, c.blocks, c.runs, state["blocks"], state["free"], now)


@inline
def begin_pass(c: CountedArrays, now: int, options: CountedOptions) -> None:
    """Let nobody be held; only EASY looks at more than what is free."""
    c.state[0]["held"] = 0
    if options.backfilling == EASY:
        forget_plans(c, now)


@inline
def end_pass(c: CountedArrays, options: CountedOptions) -> None:
    """Reservations are forgotten when the next pass begins."""


@inline
def start_if_it_fits(c: CountedArrays, j: int, now: int, options: CountedOptions) -> bool:
    """Start a job if it fits now for its whole estimate beside all that is planned.

    With a pass after each event, a job that is expected to end now may still hold its processors: it
    counts as ended in the profile, but nothing can start on them yet.
    """
    easy = options.backfilling == EASY
    if not could_fit(c, j) or (easy and _earliest(c, j, now, FOREVER) > now):
        return False
    if easy:
        _change(c, now, now + int(c.jobs[j]["estimate"]), -int(c.jobs[j]["processors"]))
    cluster_state.start(c, j, now, easy)
    return True


@inline
def reserve(c: CountedArrays, j: int, now: int, limit: int, options: CountedOptions) -> None:
    """Reserve the earliest place for a waiting job."""
    time = _earliest(c, j, now, limit)
    _change(c, time, time + int(c.jobs[j]["estimate"]), -int(c.jobs[j]["processors"]))
    if options.backfilling == CONSERVATIVE:
        _promise(c, j, time)


@inline
def begin_plans(c: CountedArrays, now: int) -> bool:
    """Drop what is past."""
    profile.forget_past(c.steps, c.state[0], now)
    return True


@inline
def is_planned(c: CountedArrays, j: int) -> bool:
    """Whether a job that was planned has a place."""
    return True


@inline
def move_forward(c: CountedArrays, j: int, now: int, options: CountedOptions) -> None:
    """Give a planned job an earlier place if there is one."""
    old = c.plan[j]
    time = _earliest(c, j, now, old)
    if time < old:
        processors, estimate = int(c.jobs[j]["processors"]), int(c.jobs[j]["estimate"])
        _change(c, old, old + estimate, processors)
        _change(c, time, time + estimate, -processors)
        _promise(c, j, time)


@inline
def planned_start(c: CountedArrays, j: int) -> int:
    """When a waiting job is planned to start."""
    return c.plan[j]


@inline
def turn_of(c: CountedArrays, j: int) -> float:
    """Place of a job among those that start at an instant."""
    return 0.0 if c.state[0]["turns"] == 0 else c.order_key[j]


@inline
def start_as_planned(c: CountedArrays, j: int, now: int, options: CountedOptions) -> None:
    """Start a job whose time has come, unless the processors for it are not free yet."""
    if could_fit(c, j):
        cluster_state.start(c, j, now, True)
    else:
        c.state[0]["planned"] = min(c.state[0]["planned"], c.plan[j])


# --- events ---------------------------------------------------------------------------------------


@inline
def complete(c: CountedArrays, now: int, options: CountedOptions) -> None:
    """Take the first running job that ends now off its processors, and give back what it no longer needs."""
    processors = as_int64(c.jobs[c.events[0]["job"] & LARGEST]["processors"])
    end = cluster_state.complete(c, now, options.overrun, options.backfilling >= EASY)
    if end > now and options.backfilling == CONSERVATIVE:
        _change(c, now, end, processors)
        c.state[0]["early"] = True
    # every end, also one on time, lets jobs move
    c.state[0]["early"] |= options.arrivals_first


@inline
def correct(c: CountedArrays, now: int, options: CountedOptions) -> None:
    """Expect the first running job that should have ended now to end later."""
    cluster_state.correct(c, now, options.overrun)
    c.state[0]["broken"] = True


@inline
def begin(c: CountedArrays, options: CountedOptions) -> None:
    """Before anything happens."""
    if options.arrivals_first:
        cluster_state.order_ends_by_start(c)


@inline
def goes_on(c: CountedArrays) -> bool:
    """Whether anything is to happen still."""
    state = c.state[0]
    return state["arrival"] < len(c.jobs) or state["ending"] > 0 or state["waiting"] > 0


@inline
def process_events(c: CountedArrays, options: CountedOptions) -> int:
    """Let happen what comes next, before the scheduling pass; return when it is. There must be something."""
    now = cluster_state.next_event(c)
    more = True
    tracked = options.backfilling >= EASY
    ends_wait = options.arrivals_first and cluster_state.ends_wait(c, now, options.overrun, tracked)
    while more and not ends_wait and cluster_state.ends(c, now):
        complete(c, now, options)
        more = not options.pass_per_event
    while more and cluster_state.first_expected_end(c) == now:
        correct(c, now, options)
        more = not options.pass_per_event
    while more and cluster_state.arrives(c, now):
        submit(c)
        more = not options.pass_per_event
    return now
