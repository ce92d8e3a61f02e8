"""What every local scheduler does alike: submissions, starts, ends and outrun estimates of one cluster.

The helpers take any named tuple of arrays that has the fields `jobs`, `events`, `blocks`, `runs`, `starts`
and `state`; `static_order.StaticOrderArrays` and `counted.CountedArrays` do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsched.engine import heap, running
from gridsched.engine.jit import as_int64, inline, unchecked
from gridsched.engine.overrun import expected_end
from gridsched.engine.records import ENTRY, FOREVER, LARGEST

_GONE = LARGEST + 1
"""Marks the end of a job whose processors were given back before the end was handled."""

_TURN = 2 * _GONE
"""What the ends of jobs are numbered with in order of start, above the number of the job and the mark."""

STATE = np.dtype(
    [
        ("free", np.int64),  # idle processors
        ("ending", np.int64),  # entries of the heap of ends
        ("blocks", np.int64),  # blocks of running jobs, see `running`
        ("waiting", np.int64),  # waiting jobs
        ("arrival", np.int64),  # next job to be submitted
        ("corrections", np.int64),  # estimates that were outrun so far
        ("planned", np.int64),  # earliest planned start, see `passes`
        ("placed", np.int64),  # waiting jobs that hold a reservation, see `passes`
        ("early", np.int64),  # whether a job ended before its expected end since the last pass
        ("broken", np.int64),  # whether plans no longer hold since then: an estimate was outrun
        ("held", np.int64),  # jobs that hold up others in a pass
        ("queued", np.int64),  # entries of the heap of waiting jobs, see `static_order`
        ("head", np.int64),  # first waiting job after a pass, see `static_order`
        ("shadow", np.int64),  # a later job may start if it ends by this time ...
        ("extra", np.int64),  # ... or needs no more than these processors
        ("low", np.int64),  # first step of the availability profile, see `profile`
        ("high", np.int64),  # end of the availability profile
        ("unordered", np.int64),  # number of the first job whose score was not a finite number ...
        ("unordered_at", np.int64),  # ... plus 1, and when
        ("turn", np.int64),  # put on the next job to be started, see `order_ends_by_start`
        ("turns", np.int64),  # by how much `turn` grows with each start
        ("freed", np.int64),  # when `ends_wait` was last asked
        ("plans", np.int64),  # planned starts so far, see `counted`
    ]
)
"""Scalars of a cluster, as the one element of an array so that helpers can change them."""


def allocate(jobs: Any, processors: int) -> dict[str, Any]:
    """The fields that the helpers here need, for an empty cluster."""
    most = min(len(jobs), processors)
    blocks, runs = running.allocate(most)
    state = np.zeros(1, STATE)
    state["free"] = processors
    state["planned"] = FOREVER
    return {
        "jobs": jobs,
        # with arrivals first, jobs end after others have started on the processors that they gave back
        "events": np.empty(2 * most + 1, ENTRY),
        "blocks": blocks,
        "runs": runs,
        "starts": np.full(len(jobs), -1, np.int64),
        "state": state,
    }


@inline
def first_expected_end(c: Any) -> int:
    """Earliest expected end of the running jobs whose ends are tracked."""
    if c.state[0]["blocks"] == 0:
        return FOREVER
    return c.runs[c.blocks[0]["slot"] * running.SIZE]["end"]


@inline
def next_local_event(c: Any) -> int:
    """Time of the next end, outrun estimate or planned start."""
    state = c.state[0]
    return min(state["planned"], first_expected_end(c), heap.first_time(c.events, state["ending"]))


@inline
def next_event(c: Any) -> int:
    """Time of the next submission, end, outrun estimate or planned start."""
    now = next_local_event(c)
    arrival = c.state[0]["arrival"]
    if arrival < len(c.jobs):
        now = min(now, c.jobs[unchecked(arrival)]["submit"])
    return now


@inline
def arrives(c: Any, now: int) -> bool:
    """Whether the next job is submitted now."""
    arrival = c.state[0]["arrival"]
    return arrival < len(c.jobs) and c.jobs[unchecked(arrival)]["submit"] == now


@inline
def ends(c: Any, now: int) -> bool:
    """Whether a running job ends now."""
    return c.state[0]["ending"] > 0 and c.events[0]["key"] == now


@inline
def start(c: Any, j: int, now: int, track: bool) -> None:
    """Let a job run from now on; `track` its expected end if the policy looks at it."""
    state = c.state[0]
    job = c.jobs[unchecked(j)]
    processors = job["processors"]
    state["free"] -= processors
    c.starts[unchecked(j)] = now
    state["ending"] = heap.push(c.events, state["ending"], now + job["run"], j + state["turn"])
    state["turn"] += state["turns"]
    if track:
        end = now + job["estimate"]
        state["blocks"] = running.insert(c.blocks, c.runs, state["blocks"], end, j, processors)


@inline
def complete(c: Any, now: int, overrun: int, track: bool) -> int:
    """Take the first running job that ends now off its processors; return its expected end."""
    state = c.state[0]
    entry = c.events[0]["job"]
    j = entry & LARGEST
    job = c.jobs[unchecked(j)]
    processors = job["processors"]
    state["ending"] = heap.pop(c.events, state["ending"])
    if entry & _GONE:
        return now
    state["free"] += processors
    if not track:
        return now
    end = expected_end(c.starts[unchecked(j)], int(job["estimate"]), overrun, now)
    state["blocks"] = running.remove(c.blocks, c.runs, state["blocks"], end, j, processors)
    return end


@inline
def correct(c: Any, now: int, overrun: int) -> None:
    """Expect the first running job that should have ended now to end later."""
    state = c.state[0]
    j = as_int64(c.runs[c.blocks[0]["slot"] * running.SIZE]["job"])
    processors = c.jobs[j]["processors"]
    end = expected_end(c.starts[j], int(c.jobs[j]["estimate"]), overrun, now + 1)
    state["blocks"] = running.remove(c.blocks, c.runs, state["blocks"], now, j, processors)
    state["blocks"] = running.insert(c.blocks, c.runs, state["blocks"], end, j, processors)
    state["corrections"] += 1


@inline
def order_ends_by_start(c: Any) -> None:
    """Let jobs that end at one instant do so in the order in which they were started, not by number."""
    c.state[0]["turns"] = _TURN
    c.state[0]["freed"] = -1


@inline
def _free_on_time(c: Any, now: int, overrun: int, track: bool) -> None:
    """Give back the processors of all jobs that end now as expected, ahead of their ends.

    A policy that does not `track` expected ends expects a job to end at its estimate.
    """
    state = c.state[0]
    for k in range(state["ending"]):
        entry = c.events[k]["job"]
        if c.events[k]["key"] != now:
            continue
        j = entry & LARGEST
        estimate = int(c.jobs[j]["estimate"])
        end = c.starts[j] + estimate
        if track:
            end = expected_end(c.starts[j], estimate, overrun, now)
        if end == now:
            processors = c.jobs[j]["processors"]
            state["free"] += processors
            if track:
                state["blocks"] = running.remove(c.blocks, c.runs, state["blocks"], now, j, processors)
            c.events[k]["job"] = entry + _GONE


@inline
def ends_wait(c: Any, now: int, overrun: int, track: bool) -> bool:
    """Whether ends of this instant have to wait for its submissions and corrections; see `Conventions`.

    The processors of jobs that end as expected are given back before anything else happens.
    """
    state = c.state[0]
    if not ends(c, now):
        return False
    if state["freed"] != now:
        state["freed"] = now
        _free_on_time(c, now, overrun, track)
    return arrives(c, now) or (track and first_expected_end(c) == now)
