"""Schedules of rigid jobs on particular resources of one cluster: placement, and how good it is.

A schedule is an order of the jobs and, for each job, the set of resources that it runs on (figure 2 of He et
al., "Hybrid performance-based workload management for multiclusters and grids", IEE Proceedings - Software
151, 2004). Jobs are placed one after the other: each starts as soon as the last of its resources has been
left by the jobs before it in the order. So a resource may stand idle before a job, and no later job slips
into such a hole. Times are whole seconds (int64), which makes every sum exact.

Sets of resources are bits, `WORD` of them in a word: `masks[i, j, w]` has those of job j in schedule i.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.extending import intrinsic, overload

from gridsched.engine.jit import inline, jit, noinline, unchecked
from gridsched.engine.overrun import expected_end

PACKED = np.dtype([("duration", np.int64), ("deadline", np.int64), ("processors", np.int64)])
"""A job of a schedule: how long it is expected to run, and when it should have ended, seconds."""

WORD = 64
"""Resources in one word of a set."""

ONE, NOTHING = np.uint64(1), np.uint64(0)


class Goal(NamedTuple):
    """Weights of equation (1), and what idle time is."""

    makespan: float
    idle: float
    over_deadline: float
    to_makespan: bool  # idle time is counted up to the makespan on every resource, else up to its last job
    unit: int  # processors of a resource


def words(resources: int) -> int:
    """Words of a set of so many resources."""
    return -(-resources // WORD)


# --- bits -----------------------------------------------------------------------------------------


def lowest(word: Any) -> int:
    """Position of the lowest bit of a word that is not 0."""
    return (int(word) & -int(word)).bit_length() - 1


def count(word: Any) -> int:
    """How many bits of a word are 1."""
    return int(word).bit_count()


@intrinsic
def _trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Compiled body of `lowest`."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), generate


@intrinsic
def _ones(typing_context: Any, word: Any) -> Any:
    """Compiled body of `count`."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@overload(lowest, jit_options={"forceinline": True})
def _compiled_lowest(word: Any) -> Any:
    def body(word: Any) -> int:
        return _trailing_zeros(word)

    return body


@overload(count, jit_options={"forceinline": True})
def _compiled_count(word: Any) -> Any:
    def body(word: Any) -> int:
        return _ones(word)

    return body


@inline
def bit(resource: int) -> Any:
    """The word in which only one resource is set."""
    return ONE << np.uint64(resource % WORD)


@inline
def every(resources: int, word: int) -> Any:
    """A word of the set of all resources."""
    inside = min(resources - word * WORD, WORD)
    return ~NOTHING if inside == WORD else (ONE << np.uint64(inside)) - ONE


# --- placement ------------------------------------------------------------------------------------


@inline
def ready(masks: Any, i: int, job: Any, free: Any, now: int) -> int:
    """When all resources of a job are free, not before now."""
    start = now
    for w in range(masks.shape[2]):
        word = masks[i, job, w]
        while word != NOTHING:
            start = max(start, free[unchecked(lowest(word) + w * WORD)])
            word &= word - ONE
    return start


@inline
def occupy(masks: Any, i: int, job: Any, free: Any, end: int) -> None:
    """Let the resources of a job be free from `end` on."""
    for w in range(masks.shape[2]):
        word = masks[i, job, w]
        while word != NOTHING:
            free[unchecked(lowest(word) + w * WORD)] = end
            word &= word - ONE


@inline
def _ready_wide(masks: Any, i: int, job: Any, free: Any, now: int) -> int:
    """As `ready`, looking at every resource without branches: quicker for jobs of more than half of them."""
    start = now
    for w in range(masks.shape[2]):
        word, first = masks[i, job, w], w * WORD
        for k in range(min(WORD, len(free) - first)):
            held = (word >> np.uint64(k)) & ONE != NOTHING
            start = max(start, free[unchecked(first + k)] if held else now)
    return start


@inline
def _occupy_wide(masks: Any, i: int, job: Any, free: Any, end: int) -> None:
    """As `occupy`, writing every resource."""
    for w in range(masks.shape[2]):
        word, first = masks[i, job, w], w * WORD
        for k in range(min(WORD, len(free) - first)):
            held = (word >> np.uint64(k)) & ONE != NOTHING
            free[unchecked(first + k)] = end if held else free[unchecked(first + k)]


@inline
def _idle(base: Any, free: Any, last: int, to_makespan: bool) -> int:
    """Time of resources from when they become available to the makespan, or to their last job."""
    total = 0
    for r in range(len(base)):
        end = last if to_makespan else free[unchecked(r)]
        total += max(end - base[unchecked(r)], 0)
    return total


@inline
def measure(
    order: Any, masks: Any, i: int, jobs: Any, base: Any, now: int, to_makespan: bool, free: Any
) -> tuple[int, int, int]:
    """Makespan, idle time and over-deadline of schedule i of several.

    Parameters
    ----------
    order, masks : int32[p, n], uint64[p, n, w]
        Schedules.
    i : int
        Which of them.
    jobs : PACKED[n]
        The jobs.
    base : int64[m]
        When each resource becomes available, not before now.
    now : int
        From when on the makespan counts.
    to_makespan : bool
        See `Goal`.
    free : int64[m]
        Room to work in.
    """
    for r in range(len(base)):
        free[unchecked(r)] = base[unchecked(r)]
    last = now
    over_deadline = 0
    work = 0
    for k in range(order.shape[1]):
        job = unchecked(order[i, k])
        duration = jobs[job]["duration"]
        processors = jobs[job]["processors"]
        if 2 * processors > len(base):
            end = _ready_wide(masks, i, job, free, now) + duration
            _occupy_wide(masks, i, job, free, end)
        else:
            end = ready(masks, i, job, free, now) + duration
            occupy(masks, i, job, free, end)
        over_deadline += max(end - jobs[job]["deadline"], 0)
        last = max(last, end)
        work += duration * processors
    return last - now, _idle(base, free, last, to_makespan) - work, over_deadline


@inline
def combine(goal: Goal, makespan: int, idle: int, over_deadline: int) -> float:
    """Comprehensive performance, equation (1), with idle time of processors."""
    total = goal.makespan * makespan + goal.idle * (idle * goal.unit) + goal.over_deadline * over_deadline
    return total / (goal.makespan + goal.idle + goal.over_deadline)


@noinline
def performance(
    order: Any, masks: Any, i: int, jobs: Any, base: Any, now: int, goal: Goal, free: Any
) -> float:
    """Comprehensive performance of schedule i; parameters as of `measure`."""
    makespan, idle, over_deadline = measure(order, masks, i, jobs, base, now, goal.to_makespan, free)
    return combine(goal, makespan, idle, over_deadline)


@jit
def place(order: Any, masks: Any, durations: Any, base: Any, now: int, starts: Any, free: Any) -> None:
    """Place the jobs of the first schedule.

    Parameters
    ----------
    order, masks : int32[1, n], uint64[1, n, w]
        The schedule.
    durations : int64[n]
        How long each job runs, expected or in fact.
    base : int64[m]
        When each resource becomes available.
    now : int
        No job starts before.
    starts : int64[n]
        Filled with the start of each job.
    free : int64[m]
        Filled with when each resource is left by its last job.
    """
    free[:] = base
    for k in range(order.shape[1]):
        job = unchecked(order[0, k])
        starts[job] = ready(masks, 0, job, free, now)
        occupy(masks, 0, job, free, starts[job] + durations[job])


@jit
def append_earliest(
    order: Any, masks: Any, kept: int, durations: Any, processors: Any, base: Any, now: int
) -> None:
    """Choose resources for the jobs of the first schedule from place `kept` of its order on.

    Each job in turn takes the resources that are free first, the lowest of equals. The jobs before keep what
    they have.
    """
    free = base.copy()
    for k in range(order.shape[1]):
        job = order[0, k]
        if k >= kept:
            masks[0, job] = NOTHING
            for resource in np.argsort(free, kind="mergesort")[: processors[job]]:
                masks[0, job, resource // WORD] |= bit(resource)
        occupy(masks, 0, job, free, ready(masks, 0, job, free, now) + durations[job])


@jit
def metrics(
    starts: Any, masks: Any, jobs: Any, base: Any, now: int, to_makespan: bool
) -> tuple[int, int, int]:
    """Makespan, idle time and over-deadline of a schedule, as `measure`, from when its jobs start."""
    free = base.copy()
    last = now
    over_deadline = 0
    work = 0
    for job in range(len(starts)):
        end = starts[job] + jobs[job]["duration"]
        for w in range(masks.shape[2]):
            word = masks[0, job, w]
            while word != NOTHING:
                resource = lowest(word) + w * WORD
                free[resource] = max(free[resource], end)
                word &= word - ONE
        over_deadline += max(end - jobs[job]["deadline"], 0)
        last = max(last, end)
        work += jobs[job]["duration"] * jobs[job]["processors"]
    return last - now, _idle(base, free, last, to_makespan) - work, over_deadline


# --- execution ------------------------------------------------------------------------------------

OCCUPANT = np.dtype([("end", np.int64), ("start", np.int64), ("estimate", np.int64)])
"""The job that a resource has started last: when it ends in fact, when it began, for how long as expected."""


@jit
def begin(
    order: Any, masks: Any, starts: Any, durations: Any, estimates: Any, now: int, occupants: Any
) -> None:
    """Let the jobs of the first schedule that start up to now be what their resources have started last."""
    for k in range(order.shape[1]):
        job = order[0, k]
        if starts[job] > now:
            continue
        for w in range(masks.shape[2]):
            word = masks[0, job, w]
            while word != NOTHING:
                resource = lowest(word) + w * WORD
                if starts[job] + durations[job] >= occupants[resource]["end"]:
                    occupants[resource]["start"] = starts[job]
                    occupants[resource]["end"] = starts[job] + durations[job]
                    occupants[resource]["estimate"] = estimates[job]
                word &= word - ONE


@jit
def releases(occupants: Any, now: int, overrun: int, actual: Any, expected: Any) -> None:
    """Fill in when each resource will be free, in fact and as far as one can know; not before now."""
    for resource in range(len(actual)):
        occupant = occupants[resource]
        actual[resource] = max(occupant["end"], now)
        expected[resource] = now
        if occupant["end"] > now:
            expected[resource] = expected_end(occupant["start"], occupant["estimate"], overrun, now + 1)


@jit
def take_lowest(starts: Any, durations: Any, estimates: Any, sizes: Any, occupants: Any, masks: Any) -> None:
    """Start jobs on the lowest resources that are free then.

    Parameters
    ----------
    starts : int64[n]
        Start of each job, never decreasing.
    durations, estimates, sizes : int64[n]
        How long each job runs, how long as expected, and its resources, which are free at its start.
    occupants : OCCUPANT[m]
        What the resources have started last; changes.
    masks : uint64[n, w]
        Filled with the resources of each job.
    """
    masks[:] = NOTHING
    for job in range(len(starts)):
        missing = sizes[job]
        resource = 0
        while missing > 0:
            if occupants[resource]["end"] <= starts[job]:
                masks[job, resource // WORD] |= bit(resource)
                occupants[resource]["start"] = starts[job]
                occupants[resource]["end"] = starts[job] + durations[job]
                occupants[resource]["estimate"] = estimates[job]
                missing -= 1
            resource += 1
