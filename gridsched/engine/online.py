"""A local scheduler that is notified while it decides: of jobs that are submitted, and of jobs that end.

The arrays, passes and plans are those of `counted`. Nobody knows when a running job will end, so its entry in
the heap of ends stands behind every time, until it is reported.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsched.engine import bundles, cluster_state, counted, heap, profile
from gridsched.engine.counted import CountedArrays, CountedOptions
from gridsched.engine.jit import inline, jit
from gridsched.engine.passes import scheduling_pass
from gridsched.engine.records import JOB, LABELS
from gridsched.engine.reference import by_reference

NEVER = 2**61
"""Run time of a job that has not ended; with it the job ends after every event."""


def allocate(processors: int, jobs: int) -> CountedArrays:
    """Arrays of an empty cluster, with room for so many jobs."""
    labels = np.full(jobs, -1, LABELS)
    c = counted.allocate(np.zeros(jobs, JOB), labels, processors, np.zeros(jobs), np.zeros(jobs))
    # `counted` has room for the running jobs of a workload that it knows
    return c._replace(**_room_to_run(processors))


def _room_to_run(processors: int) -> dict[str, Any]:
    """What holds running jobs: at most one a processor."""
    made = cluster_state.allocate(np.zeros(processors, JOB), processors)
    return {name: made[name] for name in ("events", "blocks", "runs")}


def grow(c: CountedArrays, jobs: int) -> CountedArrays:
    """The same cluster with room for more jobs."""
    wider = bundles.grow(c, {"jobs": jobs + 1, "steps": profile.steps_for(jobs)})
    empty = allocate(1, jobs)
    for name in ("jobs", "labels", "queue_key", "order_key", "starts"):
        getattr(empty, name)[: len(c.jobs)] = getattr(c, name)
    names = ("jobs", "labels", "queue_key", "order_key", "starts")
    return wider._replace(**{name: getattr(empty, name) for name in names})


@inline
def _end(c: CountedArrays, j: int, now: int, options: CountedOptions) -> None:
    """Take a running job off its processors."""
    state = c.state[0]
    others = heap.without(c.events, state["ending"], j)
    state["ending"] = heap.push(c.events, others, now, j)
    counted.complete(c, now, options)


@jit
def decide(
    bundle: CountedArrays,
    submitted: int,
    ended: Any,
    now: int,
    options: CountedOptions,
    score: Any,
    started: Any,
) -> int:
    """Make a pass, if anything has happened; list the jobs that start now, and return how many these are.

    `submitted` jobs more are submitted, those of `ended` have ended, estimates that are over are corrected.
    """
    c = by_reference(bundle)
    happened = submitted > 0 or len(ended) > 0 or c.state[0]["planned"] <= now
    for j in ended:
        _end(c, j, now, options)
    while cluster_state.first_expected_end(c) <= now:
        counted.correct(c, cluster_state.first_expected_end(c), options)
        happened = True
    for _ in range(submitted):
        counted.submit(c)
    if not happened:
        return 0
    waited = c.state[0]["waiting"]
    for k in range(waited):
        started[k] = c.waiting[k]
    scheduling_pass(c, now, options, score)
    count = 0
    for k in range(waited):
        if c.starts[started[k]] >= 0:
            started[count] = started[k]
            count += 1
    return count


@jit
def next_time(bundle: CountedArrays) -> int:
    """When the scheduler has to be asked again although nothing happens: FOREVER if it need not."""
    c = by_reference(bundle)
    return min(c.state[0]["planned"], cluster_state.first_expected_end(c))
