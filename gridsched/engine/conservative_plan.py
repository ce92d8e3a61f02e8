"""A conservative plan of a cluster: where each waiting job would run under conservative backfilling.

It is kept beside the local scheduler, whatever its policy, to tell quickly when a job that enters now might
start: at the earliest place that the plan leaves. The plan is an availability profile with the running
jobs until their expected ends and a reservation for each waiting job. It is kept up to date as follows.

* A job that enters gets the earliest place, if the plan is up to date.
* A job that ends early gives the rest of its reservation back, if nobody waits; else the plan is out of date.
* It is out of date, too, once a job has outrun its estimate, has started at another time than planned, or
  has not started at the time that was planned for it.

A plan that is out of date is made anew when it is asked next: from the running jobs and their expected ends,
then the waiting jobs in queue order, each at its earliest place.

While nobody waits, the plan follows from the running jobs. The profile is then not kept, but written when it
is needed, because a job that finds its processors idle does not need it.

Where the queue is in order of entry, the places of the first waiting jobs do not depend on the others, nor on
when the plan is made while all goes as planned. So only as many jobs get a place as it takes to know that
there is none for the job that is asked about before the time that matters; the others get theirs when they
matter.

A reservation only pushes later places back. So a search begins where the last one for a job of the same size
and estimate ended, until the profile is written anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import bundles, profile
from gridsched.engine.bundles import column
from gridsched.engine.jit import as_int64, inline, unchecked
from gridsched.engine.overrun import expected_end
from gridsched.engine.records import FOREVER, STEP

STATE = np.dtype(
    [
        ("valid", np.int64),  # whether the plan is up to date, as far as is known
        ("written", np.int64),  # whether the profile shows it
        ("made", np.int64),  # when the profile was written from the running jobs
        ("processors", np.int64),  # of the cluster
        ("soonest", np.int64),  # no waiting job is planned to start before this
        ("unwatched", np.int64),  # whether the local scheduler does not notice outrun estimates
        ("due", np.int64),  # no running job outruns its estimate before this; FOREVER if that is noticed
        ("unplaced", np.int64),  # jobs with this number of entry or a later one have no place yet
        ("low", np.int64),  # first step of the profile
        ("high", np.int64),  # end of the profile
    ]
)
"""Scalars of a plan."""

BOUND = np.dtype([("processors", np.int64), ("estimate", np.int64), ("start", np.int64)])
"""Jobs of so many processors and such an estimate have no place before a time."""

_BOUNDS = 61
"""Bounds of a plan; prime, since estimates are multiples of minutes and hours."""


class Plan(NamedTuple):
    """Availability profile; with one more dimension, one a row."""

    steps: Any = column(STEP, "rows", "steps")  # see `profile`
    bounds: Any = column(BOUND, "rows", "bounds")  # each of the last job with its hash
    state: Any = column(STATE, "rows", "one")


def allocate(processors: Any, unwatched: Any, jobs: int) -> Plan:
    """Plans of idle clusters of so many processors, for so many running and waiting jobs."""
    sizes = {"rows": len(processors), "steps": profile.steps_for(jobs), "bounds": _BOUNDS, "one": 1}
    plans = bundles.allocate(Plan, sizes)
    plans.state["valid"] = True
    plans.state["processors"][:, 0], plans.state["unwatched"][:, 0] = processors, unwatched
    plans.state[["soonest", "due", "unplaced"]] = FOREVER
    return plans


def with_room(plans: Plan, jobs: int) -> Plan:
    """The same plans for more jobs."""
    return bundles.grow(plans, {"steps": profile.steps_for(jobs)})


@inline
def row(plans: Plan, index: int) -> Plan:
    """One of several plans."""
    return Plan(plans.steps[index], plans.bounds[index], plans.state[index])


@inline
def look_for_outrun(p: Plan, c: Any, now: int, overrun: int) -> None:
    """See whether a job has outrun its estimate unnoticed."""
    state = p.state[0]
    if state["valid"] and state["due"] <= now:
        state["due"] = _first_end(p, c, overrun)
        state["valid"] = state["due"] > now


@inline
def _end_as_planned(p: Plan, c: Any, entry: int, overrun: int) -> int:
    """Expected end of a running job, by its place in the heap of ends, as the plan has it."""
    j = c.events[entry]["job"]
    return expected_end(c.starts[j], int(c.jobs[j]["estimate"]), overrun, p.state[0]["made"] + 1)


@inline
def _first_end(p: Plan, c: Any, overrun: int) -> int:
    """Earliest expected end of the running jobs, as the plan has it."""
    first = FOREVER
    for entry in range(c.state[0]["ending"]):
        first = min(first, _end_as_planned(p, c, entry, overrun))
    return first


@inline
def earliest(p: Plan, now: int, processors: int, estimate: int, latest: int) -> int:
    """Earliest place of a job beside all that is planned; FOREVER if it is after `latest`."""
    profile.forget_past(p.steps, p.state[0], now)
    high = p.state[0]["high"]
    step = p.state[0]["low"]
    start = now
    bound = p.bounds[(31 * processors + estimate) % _BOUNDS]
    if bound["processors"] == processors and bound["estimate"] == estimate and bound["start"] > now:
        start = bound["start"]
        if start <= latest:
            step = profile.find(p.steps, step, high, start)
    while start <= latest:
        while p.steps[unchecked(step)]["free"] < processors:
            step += 1
            start = p.steps[unchecked(step)]["time"]
        end = start + estimate
        step += 1
        while (
            step < high
            and p.steps[unchecked(step)]["time"] < end
            and p.steps[unchecked(step)]["free"] >= processors
        ):
            step += 1
        if step == high or p.steps[unchecked(step)]["time"] >= end:
            break
    bound["processors"] = processors
    bound["estimate"] = estimate
    bound["start"] = start
    return start if start <= latest else FOREVER


@inline
def reserve(p: Plan, now: int, begin: int, processors: int, estimate: int) -> None:
    """Plan a job to run from a time on."""
    profile.forget_past(p.steps, p.state[0], now)
    state = p.state[0]
    state["high"] = profile.change(p.steps, state["low"], state["high"], begin, begin + estimate, -processors)


@inline
def note_start(p: Plan, begin: int) -> None:
    """Note that a waiting job is planned to start at a time."""
    p.state[0]["soonest"] = min(p.state[0]["soonest"], begin)


@inline
def write_running(p: Plan, c: Any, now: int, overrun: int) -> None:
    """Write the profile of the running jobs alone."""
    state = p.state[0]
    state["written"] = True
    state["made"] = now
    state["soonest"] = FOREVER
    state["low"] = 0
    for k in range(_BOUNDS):
        p.bounds[k]["processors"] = 0
    if not state["unwatched"]:
        state["high"] = profile.from_running(
            p.steps, c.blocks, c.runs, c.state[0]["blocks"], c.state[0]["free"], now
        )
        return
    state["due"] = now
    state["high"] = 1
    p.steps[0]["time"] = now
    p.steps[0]["free"] = state["processors"]
    for entry in range(c.state[0]["ending"]):
        end = _end_as_planned(p, c, entry, overrun)
        reserve(p, now, now, as_int64(c.jobs[c.events[entry]["job"]]["processors"]), end - now)


@inline
def start(p: Plan, now: int) -> None:
    """Note that jobs were started."""
    state = p.state[0]
    if state["unwatched"]:
        state["due"] = now


@inline
def complete(p: Plan, c: Any, now: int, overrun: int) -> None:
    """Follow the first running job that ends now, just before it leaves its processors."""
    state = p.state[0]
    if state["valid"]:
        end = _end_as_planned(p, c, 0, overrun)
        if end != now:
            state["written"] = False
            state["valid"] = end > now and c.state[0]["waiting"] == 0
