"""Many scenarios of one queue: first come, first served, with drawn run times and submissions.

All scenarios of a query are simulated by one kernel, which allocates, lays out and goes on from the queue
(`snapshot.run_on`) without coming back to Python; threads can have a part of the scenarios each. A scenario
is the same whoever simulates it, and whatever was simulated before it.

Each day to come repeats a day of the past, so that its jobs are a part of the past, later. Jobs are laid out
only as far as they are likely to matter: a quarter more than the longest scenario so far needed. Where that
was too little, the scenario is simulated again with twice as many days; what came first in it comes first
again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import cluster_state, running, snapshot, waiting_tree
from gridsched.engine.jit import inline, jit, unchecked
from gridsched.engine.records import BLOCK, ENTRY, FOREVER, JOB, LARGEST, RUN
from gridsched.engine.snapshot import Beginning
from gridsched.engine.static_order import StaticOrderArrays, StaticOrderOptions

DAY = 86400
"""Seconds that are taken from the past together."""

MARGIN = 3600
"""Seconds that are laid out beyond what is likely to matter."""

_CLASSES = 33


class Present(NamedTuple):
    """The queue that scenarios go on from.

    The run time of a job of the past that runs or waits, the k-th of `places`, is -1 - k: it has one in each
    scenario.
    """

    past: Any  # JOB[n], all jobs that have been submitted, in order of submission
    places: Any  # int64[p], in `past`: running jobs in order of start, waiting ones in order of submission
    begun: Any  # int64[r], when the running jobs started
    asked: Any  # int64[a], increasing places in `places`: a scenario ends when these have started
    now: int  # seconds
    processors: int
    span: int  # seconds that a scenario is thought to take at first


@inline
def _first_after(past: Any, time: int) -> int:
    """First job that was submitted after a time."""
    low = 0
    high = len(past)
    while low < high:
        middle = (low + high) >> 1
        if past[unchecked(middle)]["submit"] <= time:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def _days(span: int) -> int:
    """Days that begin within a time."""
    return -(-span // DAY)


@inline
def _coming(p: Present, back: Any, span: int) -> int:
    """How many jobs come within a time."""
    count = 0
    for day in range(min(_days(span), len(back))):
        if back[day] > 0:
            begin = p.now + day * DAY - back[day]
            end = begin + min(DAY, span - day * DAY)
            count += _first_after(p.past, end) - _first_after(p.past, begin)
    return count


@inline
def _lay_out(p: Present, run_time: Any, back: Any, span: int, jobs: Any) -> None:
    """Write the present jobs with their run times, and those that come."""
    number = len(p.places)
    for k in range(number):
        source = p.past[unchecked(p.places[unchecked(k)])]
        jobs[unchecked(k)]["submit"] = source["submit"]
        jobs[unchecked(k)]["run"] = run_time[unchecked(k)]
        jobs[unchecked(k)]["estimate"] = source["estimate"]
        jobs[unchecked(k)]["processors"] = source["processors"]
    for day in range(min(_days(span), len(back))):
        if back[day] > 0:
            begin = p.now + day * DAY - back[day]
            end = begin + min(DAY, span - day * DAY)
            for k in range(_first_after(p.past, begin), _first_after(p.past, end)):
                source = p.past[unchecked(k)]
                jobs[unchecked(number)]["submit"] = source["submit"] + back[day]
                run = source["run"]
                jobs[unchecked(number)]["run"] = run if run >= 0 else run_time[-1 - run]
                jobs[unchecked(number)]["estimate"] = source["estimate"]
                jobs[unchecked(number)]["processors"] = source["processors"]
                number += 1


@inline
def _size_class(processors: int) -> int:
    """Binary digits of a number of processors, as `waiting_tree.allocate_classes` has it."""
    digits = 0
    while processors >> digits > 0:
        digits += 1
    return digits


@inline
def _divide(jobs: Any, numbers: Any, classes: Any) -> tuple[int, int]:
    """Size classes of the jobs, in `classes`; `numbers` becomes their places. Returns classes and nodes."""
    for j in range(len(jobs)):
        numbers[_size_class(jobs[unchecked(j)]["processors"])] += 1
    used = 0
    first = 0
    base = 0
    for k in range(1, _CLASSES):
        if numbers[k] > 0:
            leaves = 1
            while leaves < numbers[k]:
                leaves *= 2
            classes[used]["smallest"] = 1 << (k - 1)
            classes[used]["base"] = base
            classes[used]["length"] = 2 * leaves
            classes[used]["first"] = first
            first += numbers[k]
            base += 2 * leaves
            numbers[k] = used
            used += 1
    return used, base


@inline
def _take_places(w: waiting_tree.Waiting, jobs: Any, place_of_class: Any, taken: Any) -> None:
    """Give each job the next position of its class; trees are empty."""
    for node in range(len(w.nodes)):
        w.nodes[unchecked(node)]["processors"] = LARGEST
        w.nodes[unchecked(node)]["estimate"] = LARGEST
    for j in range(len(jobs)):
        k = place_of_class[_size_class(jobs[unchecked(j)]["processors"])]
        w.places[unchecked(j)]["size_class"] = k
        w.places[unchecked(j)]["position"] = taken[k]
        w.ranks[w.classes[k]["first"] + taken[k]] = j
        taken[k] += 1


@jit
def simulate(
    p: Present, options: StaticOrderOptions, run_time: Any, back: Any, first: int, last: int, made: Any
) -> None:
    """Simulate some of the scenarios.

    Parameters
    ----------
    p : Present
        The queue.
    options : StaticOrderOptions
        First come, first served, in one order; one pass an instant.
    run_time : int64[f, p]
        Run times of the present jobs in each scenario, seconds.
    back : int64[f, d]
        How far back [s] each day to come repeats the past, 0 where nobody comes. Without any day nobody ever
        comes; else a scenario ends at the last day.
    first, last : int
        Scenarios to simulate, from the first to before the last.
    made : int64[f, a]
        Is given the starts of the jobs that are asked for, -1 of those that have not started at the end.
    """
    most_span = back.shape[1] * DAY
    span = p.span
    longest = 0
    waiting = len(p.places) - len(p.begun)
    for scenario in range(first, last):
        complete = False
        while not complete:
            span = min(span, most_span)
            jobs = np.empty(len(p.places) + _coming(p, back[scenario], span), JOB)
            _lay_out(p, run_time[scenario], back[scenario], span, jobs)
            number = len(jobs)
            place_of_class = np.zeros(_CLASSES, np.int64)
            classes = np.zeros(_CLASSES, waiting_tree.CLASS)
            used, nodes = _divide(jobs, place_of_class, classes)
            trees = waiting_tree.Waiting(
                classes[:used],
                np.empty(nodes, waiting_tree.NODE),
                np.empty(number, waiting_tree.PLACE),
                np.empty(number, np.int32),
            )
            _take_places(trees, jobs, place_of_class, np.zeros(_CLASSES, np.int64))
            ranks = np.empty((2, number), np.int32)
            for j in range(number):
                ranks[1, j] = j
            most = min(number, p.processors)
            blocks = np.zeros(4 * most // running.SIZE + 4, BLOCK)
            for k in range(len(blocks)):
                blocks[k]["slot"] = k
            state = np.zeros(1, cluster_state.STATE)
            state[0]["free"] = p.processors
            state[0]["planned"] = FOREVER
            state[0]["shadow"] = -1
            state[0]["extra"] = -1
            c = StaticOrderArrays(
                jobs=jobs,
                waiting=trees,
                queue=np.empty(0, ENTRY),
                queue_rank=ranks,
                order_rank=ranks,
                events=np.empty(2 * most + 1, ENTRY),
                blocks=blocks,
                runs=np.empty(len(blocks) * running.SIZE, RUN),
                starts=np.full(number, -1, np.int64),
                state=state,
            )
            for k in range(len(p.begun)):
                c.starts[k] = p.begun[k]
            horizon = p.now + span if most_span > 0 else FOREVER - 1
            begin = Beginning(p.now, len(p.begun), waiting, horizon, True)
            complete = snapshot.run_on(c, options, begin, p.asked)
            latest = p.now
            for k in range(len(p.asked)):
                made[scenario, k] = c.starts[p.asked[k]]
                latest = max(latest, made[scenario, k])
            if complete:
                longest = max(longest, latest - p.now)
                span = longest + longest // 4 + MARGIN
            elif span >= most_span:
                break
            else:
                span *= 2
