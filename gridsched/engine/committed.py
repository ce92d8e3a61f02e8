"""A scheduler that commits itself: it chooses a job by score, and chooses no other until that one starts.

So do the simulators in which learned policies are trained (Zhang et al., "RLScheduler: an automated HPC
batch job scheduler using reinforcement learning", SC 2020): choosing a job is one action, which is not taken
back when a better one arrives meanwhile. While the chosen job waits, others may be started in its shadow: in
order of submission, if they fit and are expected to end before the time when the chosen one was expected to
start at the moment of the choice. Events are looked at one by one, arrivals before ends, and ends of one
instant in the order of the starts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import heap
from gridsched.engine.jit import inline, jit, noinline
from gridsched.engine.records import ENTRY, FOREVER

STATE = np.dtype(
    [
        ("now", np.int64),
        ("arrival", np.int64),  # next job to be submitted
        ("waiting", np.int64),
        ("running", np.int64),
        ("free", np.int64),
        ("started", np.int64),  # jobs that have started
    ]
)
"""Scalars of a cluster."""


class CommittedArrays(NamedTuple):
    """A cluster and its n jobs."""

    jobs: Any  # JOB[n], in order of submission
    labels: Any  # LABELS[n]
    starts: Any  # int64[n], the result
    waiting: Any  # int64[n], waiting jobs in order of submission
    started: Any  # int64[n], jobs in order of their starts; heaps have places in it
    ending: Any  # ENTRY[n + 1], heap of the ends of running jobs
    expecting: Any  # ENTRY[n + 1], scratch: heap of their expected ends
    state: Any  # STATE[1]


def allocate(jobs: Any, labels: Any, processors: int) -> CommittedArrays:
    """An idle cluster of so many processors."""
    number = len(jobs)
    state = np.zeros(1, STATE)
    state["free"] = processors
    return CommittedArrays(
        jobs=jobs,
        labels=labels,
        starts=np.full(number, -1, np.int64),
        waiting=np.empty(number, np.int64),
        started=np.empty(number, np.int64),
        ending=np.empty(number + 1, ENTRY),
        expecting=np.empty(number + 1, ENTRY),
        state=state,
    )


@inline
def _next_event(a: CommittedArrays) -> None:
    """Let the next job arrive, or the next one end; arrivals come first at one instant."""
    state = a.state[0]
    ends = a.ending[0]["key"] if state["running"] > 0 else FOREVER
    j = state["arrival"]
    if j < len(a.jobs) and a.jobs[j]["submit"] <= ends:
        state["now"] = max(state["now"], a.jobs[j]["submit"])
        a.waiting[state["waiting"]] = j
        state["waiting"] += 1
        state["arrival"] += 1
    else:
        state["now"] = max(state["now"], ends)
        state["free"] += a.jobs[a.started[a.ending[0]["job"]]]["processors"]
        state["running"] = heap.pop(a.ending, state["running"])


@inline
def _start(a: CommittedArrays, place: int) -> None:
    """Start the job at a place of the queue."""
    state = a.state[0]
    j = a.waiting[place]
    state["waiting"] -= 1
    for k in range(place, state["waiting"]):
        a.waiting[k] = a.waiting[k + 1]
    a.starts[j] = state["now"]
    state["free"] -= a.jobs[j]["processors"]
    turn = state["started"]
    a.started[turn] = j
    state["started"] += 1
    state["running"] = heap.push(a.ending, state["running"], state["now"] + int(a.jobs[j]["run"]), turn)


@inline
def _best(a: CommittedArrays, now: int, score: Any) -> int:
    """Place of the waiting job with the largest score, the first submitted of equals."""
    best, largest = 0, -np.inf
    for place in range(a.state[0]["waiting"]):
        job, label = a.jobs[a.waiting[place]], a.labels[a.waiting[place]]
        value = score(
            now,
            int(job["submit"]),
            int(job["estimate"]),
            int(job["processors"]),
            label["user"],
            label["group"],
            label["queue"],
        )
        if value > largest:
            largest = value
            best = place
    return best


@noinline
def _shadow(a: CommittedArrays, j: int) -> int:
    """When enough processors are expected to be free for a job."""
    state = a.state[0]
    size = 0
    for k in range(state["running"]):
        turn = a.ending[k]["job"]
        other = a.started[turn]
        size = heap.push(a.expecting, size, a.starts[other] + int(a.jobs[other]["estimate"]), turn)
    free, shadow = int(state["free"]), int(state["now"])
    while size > 0 and free < a.jobs[j]["processors"]:
        shadow = a.expecting[0]["key"]
        free += int(a.jobs[a.started[a.expecting[0]["job"]]]["processors"])
        size = heap.pop(a.expecting, size)
    return shadow


@noinline
def _start_in_shadow(a: CommittedArrays, chosen: int, shadow: int) -> None:
    """Start the jobs that fit now and are expected to end before the chosen one could start."""
    place = 0
    while place < a.state[0]["waiting"]:
        j = a.waiting[place]
        ends = a.state[0]["now"] + int(a.jobs[j]["estimate"])
        if j != chosen and ends < shadow and a.jobs[j]["processors"] <= a.state[0]["free"]:
            _start(a, place)
        else:
            place += 1


@inline
def _place_of(a: CommittedArrays, j: int) -> int:
    """Place of a job in the queue."""
    place = 0
    while a.waiting[place] != j:
        place += 1
    return place


@jit
def schedule(a: CommittedArrays, backfills: bool, knows_time: bool, score: Any) -> None:
    """Simulate the cluster; no job may be larger than it.

    Unless the scheduler `knows_time`, scores are asked with the time -1.
    """
    state = a.state[0]
    while state["waiting"] > 0 or state["arrival"] < len(a.jobs):
        if state["waiting"] == 0:
            _next_event(a)
            continue
        j = a.waiting[_best(a, state["now"] if knows_time else -1, score)]
        if a.jobs[j]["processors"] > state["free"]:
            shadow = _shadow(a, j) if backfills else -1
            while a.jobs[j]["processors"] > state["free"]:
                _start_in_shadow(a, j, shadow)
                _next_event(a)
        _start(a, _place_of(a, j))
