"""A scheduler that commits itself: it chooses a job by score, and chooses no other until that one starts.

So do the simulators in which learned policies are trained (Zhang et al., "RLScheduler: an automated HPC
batch job scheduler using reinforcement learning", SC 2020): choosing a job is one action, which is not taken
back when a better one arrives meanwhile. While the chosen job waits, others may be started in its shadow: in
order of submission, if they fit and are expected to end before the time when the chosen one was expected to
start at the moment of the choice. Events are looked at one by one, arrivals before ends, and ends of one
instant in the order of the starts.

`schedule` chooses by score itself; `step` is told what to choose, in several clusters at once, and says what
a scheduler sees at its next choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import bundles, heap
from gridsched.engine.bundles import column
from gridsched.engine.jit import inline, jit, noinline
from gridsched.engine.records import ENTRY, FOREVER
from gridsched.engine.reference import by_reference

STATE = np.dtype(
    [
        ("first", np.int64),  # the cluster's first job among all jobs
        ("processors", np.int64),
        ("now", np.int64),
        ("arrival", np.int64),  # next job to be submitted
        ("waiting", np.int64),
        ("running", np.int64),
        ("free", np.int64),
        ("started", np.int64),  # jobs that have started
    ]
)
"""Scalars of a cluster."""

FEATURES: tuple[str, ...] = ("wait_time", "requested_time", "processors", "fits", "free")
"""What a scheduler sees of each waiting job, in this order, each from 0 to 1: its wait as a share of
`LONGEST_WAIT` (at most 1), its requested time as a share of the longest of all jobs, its processors as a
share of the cluster's, whether it fits now, and the share of the cluster's processors that is free."""

LONGEST_WAIT = 43_200
"""Longest wait that a scheduler tells from longer ones [s], 12 hours as in the paper."""

KEPT = -1
"""In place of an action or of a first job: the cluster stays as it is, or goes on with its jobs."""


class CommittedArrays(NamedTuple):
    """Clusters, each with a sequence of n of the jobs; or one of them, without the dimension `clusters`.

    Of one cluster alone `jobs` and `labels` are those of its sequence, by whose places all else is counted.
    """

    jobs: Any  # JOB[all], in order of submission
    labels: Any  # LABELS[all]
    starts: Any = column(np.int64, "clusters", "n", fill=-1)  # the result
    waiting: Any = column(np.int64, "clusters", "n")  # waiting jobs in order of submission
    started: Any = column(np.int64, "clusters", "n")  # jobs in order of their starts; heaps have places in it
    ending: Any = column(ENTRY, "clusters", "entries")  # heap of the ends of running jobs
    expecting: Any = column(ENTRY, "entries")  # scratch: heap of their expected ends
    state: Any = column(STATE, "clusters")


def allocate(
    jobs: Any, labels: Any, processors: int, firsts: Sequence[int] = (0,), length: int | None = None
) -> CommittedArrays:
    """Idle clusters of so many processors, each with so many consecutive jobs from one of `firsts` on."""
    n = len(jobs) if length is None else length
    sizes = {"clusters": len(firsts), "n": n, "entries": n + 1}
    a = bundles.allocate(CommittedArrays, sizes, jobs=jobs, labels=labels)
    a.state["first"] = firsts
    a.state["processors"] = a.state["free"] = processors
    return a


@inline
def _cluster(b: CommittedArrays, c: int) -> CommittedArrays:
    """One of the clusters with the jobs of its sequence."""
    first = b.state[c]["first"]
    last = first + b.starts.shape[1]
    return CommittedArrays(
        b.jobs[first:last],
        b.labels[first:last],
        b.starts[c],
        b.waiting[c],
        b.started[c],
        b.ending[c],
        b.expecting,
        b.state[c : c + 1],
    )


# --- a cluster ------------------------------------------------------------------------------------


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


@inline
def _proceed(a: CommittedArrays, place: int, backfills: bool) -> bool:
    """Start the job at a place of the queue, then go on until one waits; whether one does.

    The job starts as soon as it fits, others meanwhile in its shadow. `KEPT` is no job.
    """
    state = a.state[0]
    if place != KEPT:
        j = a.waiting[place]
        shadow = 0
        if backfills and a.jobs[j]["processors"] > state["free"]:
            shadow = _shadow(a, j)
        while a.jobs[j]["processors"] > state["free"]:
            if backfills:
                _start_in_shadow(a, j, shadow)
            _next_event(a)
        _start(a, _place_of(a, j))
    while state["waiting"] == 0 and state["arrival"] < len(a.jobs):
        _next_event(a)
    return bool(state["waiting"] > 0)


@inline
def _best(a: CommittedArrays, shown: int, knows_time: bool, score: Any) -> int:
    """Place of the job with the largest score of the first `shown` in the queue, the first of equals.

    Unless the scheduler `knows_time`, scores are asked with the time -1.
    """
    state = a.state[0]
    now = state["now"] if knows_time else -1
    best, largest = 0, -np.inf
    for place in range(shown):
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
def _run(b: CommittedArrays, c: int, backfills: bool, knows_time: bool, score: Any) -> None:
    """Simulate a cluster that chooses by score."""
    a = by_reference(_cluster(b, c))
    place = KEPT
    while _proceed(a, place, backfills):
        place = _best(a, a.state[0]["waiting"], knows_time, score)


@jit
def schedule(b: CommittedArrays, backfills: bool, knows_time: bool, score: Any) -> None:
    """Simulate the clusters, which choose by score; no job may be larger than its cluster."""
    for c in range(len(b.state)):
        _run(b, c, backfills, knows_time, score)


# --- clusters whose choices are made elsewhere ----------------------------------------------------


@noinline
def _empty(b: CommittedArrays, c: int, first: int) -> None:
    """Make a cluster idle, with the sequence that begins at the job `first`."""
    state = b.state[c]
    state["first"] = first
    state["free"] = state["processors"]
    state["now"] = state["arrival"] = state["waiting"] = state["running"] = state["started"] = 0
    b.starts[c, :] = -1


@noinline
def _observe(a: CommittedArrays, longest: int, seen: Any, mask: Any) -> None:
    """What the scheduler sees of the first jobs in the queue, and where there are jobs; see `FEATURES`.

    Where no job waits all is 0; once all have started, the mask has the first place nevertheless, since
    distributions over no places at all are not defined.
    """
    state = a.state[0]
    shown = min(state["waiting"], len(mask))
    processors = float(state["processors"])
    free = state["free"] / processors
    for place in range(shown):
        job = a.jobs[a.waiting[place]]
        seen[place, 0] = min(float(state["now"] - job["submit"]) / LONGEST_WAIT, 1.0)
        seen[place, 1] = max(float(job["estimate"]), 0.0) / longest
        seen[place, 2] = job["processors"] / processors
        seen[place, 3] = 1.0 if job["processors"] <= state["free"] else 0.0
        seen[place, 4] = free
    seen[shown:] = 0.0
    mask[:shown] = 1
    mask[shown:] = 0
    mask[0] = 1


@noinline
def _step(
    b: CommittedArrays, c: int, first: int, action: int, backfills: bool, longest: int, seen: Any, masks: Any
) -> None:
    """`step` in a cluster."""
    if first != KEPT:
        _empty(b, c, first)
    a = by_reference(_cluster(b, c))
    _proceed(a, action if first == KEPT else KEPT, backfills)
    _observe(a, longest, seen[c], masks[c])


@jit
def step(
    b: CommittedArrays, firsts: Any, actions: Any, backfills: bool, longest: int, seen: Any, masks: Any
) -> None:
    """Go on to the next choice in each cluster, and say what its scheduler sees.

    A cluster with one of `firsts` begins anew with the sequence from that job on; else it commits itself to
    the job at the place in the queue that its action says. `KEPT` stands for neither.
    """
    for c in range(len(b.state)):
        _step(b, c, firsts[c], actions[c], backfills, longest, seen, masks)


@inline
def _choice(b: CommittedArrays, c: int, seen: int, knows_time: bool, score: Any) -> int:
    """`choose` in a cluster."""
    return _best(by_reference(_cluster(b, c)), min(b.state[c]["waiting"], seen), knows_time, score)


@jit
def choose(b: CommittedArrays, seen: int, knows_time: bool, score: Any, actions: Any) -> None:
    """The action in each cluster that a score stands for, among the first `seen` jobs of its queue."""
    for c in range(len(b.state)):
        actions[c] = _choice(b, c, seen, knows_time, score)
