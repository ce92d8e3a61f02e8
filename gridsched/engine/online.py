"""A local scheduler that is notified while it decides: of jobs that are submitted, and of jobs that end.

The arrays, passes and plans are those of `counted`, or of `runtime_prediction`. Nobody knows when a running
job will end, so its entry in the heap of ends stands behind every time, until it is reported.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsched.engine import cluster_state, counted, heap, runtime_prediction
from gridsched.engine.counted import CountedArrays, CountedOptions
from gridsched.engine.jit import inline, jit
from gridsched.engine.passes import scheduling_pass
from gridsched.engine.records import JOB, LABELS
from gridsched.engine.reference import by_reference
from gridsched.engine.runtime_prediction import PredictionArrays, PredictionOptions

NEVER = 2**61
"""Run time of a job that has not ended; with it the job ends after every event."""


def allocate(processors: int, jobs: int) -> CountedArrays:
    """Arrays of an empty cluster, with room for so many jobs."""
    labels = np.full(jobs, -1, LABELS)
    c = counted.allocate(np.zeros(jobs, JOB), labels, processors, np.zeros(jobs), np.zeros(jobs))
    # `counted` has room for the running jobs of a workload that it knows
    return c._replace(**_room_to_run(processors))


def allocate_predicting(processors: int, jobs: int) -> PredictionArrays:
    """The same of a cluster whose run times are predicted, with room for as many users."""
    c = runtime_prediction.allocate(np.zeros(jobs, JOB), processors, np.arange(jobs))
    return c._replace(**_room_to_run(processors))


def _room_to_run(processors: int) -> dict[str, Any]:
    """What holds running jobs: at most one a processor."""
    made = cluster_state.allocate(np.zeros(processors, JOB), processors)
    return {name: made[name] for name in ("events", "blocks", "runs")}


@inline
def _first_of_ends(c: Any, j: int, now: int) -> None:
    """Let a running job be the first that ends."""
    state = c.state[0]
    others = heap.without(c.events, state["ending"], j)
    state["ending"] = heap.push(c.events, others, now, j)


@inline
def _list_waiting(c: Any, started: Any) -> int:
    """List the waiting jobs; return how many these are."""
    waited = c.state[0]["waiting"]
    for k in range(waited):
        started[k] = c.waiting[k]
    return waited


@inline
def _keep_started(c: Any, started: Any, waited: int) -> int:
    """Keep those of the listed jobs that have started; return how many these are."""
    count = 0
    for k in range(waited):
        if c.starts[started[k]] >= 0:
            started[count] = started[k]
            count += 1
    return count


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
        _first_of_ends(c, j, now)
        counted.complete(c, now, options)
    while cluster_state.first_expected_end(c) <= now:
        counted.correct(c, cluster_state.first_expected_end(c), options)
        happened = True
    for _ in range(submitted):
        counted.submit(c)
    if not happened:
        return 0
    waited = _list_waiting(c, started)
    scheduling_pass(c, now, options, score)
    return _keep_started(c, started, waited)


@jit
def decide_predicting(
    bundle: PredictionArrays, submitted: int, ended: Any, now: int, options: PredictionOptions, started: Any
) -> int:
    """`decide` with run times that are predicted."""
    c = by_reference(bundle)
    happened = submitted > 0 or len(ended) > 0
    for j in ended:
        c.jobs[j]["run"] = now - c.starts[j]
        _first_of_ends(c, j, now)
        runtime_prediction.complete(c)
    while cluster_state.first_expected_end(c) <= now:
        runtime_prediction.correct(c, cluster_state.first_expected_end(c), options)
        happened = True
    for _ in range(submitted):
        runtime_prediction.submit(c, options)
    if not happened:
        return 0
    waited = _list_waiting(c, started)
    runtime_prediction.scheduling_pass(c, now)
    return _keep_started(c, started, waited)


@jit
def next_time(bundle: Any) -> int:
    """When the scheduler has to be asked again although nothing happens: FOREVER if it need not."""
    c = by_reference(bundle)
    return min(c.state[0]["planned"], cluster_state.first_expected_end(c))
