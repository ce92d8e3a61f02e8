"""A pool that a single job may use as a whole, so that only the order of the jobs matters.

The clock counts the work that the pool could have done since time 0, in the unit of the jobs' work. With
whole numbers of seconds, processors and speeds all values are whole numbers, which float64 adds up without
error; only their conversion to seconds rounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gridsched.engine.heap import pop, push
from gridsched.engine.jit import jit, unchecked
from gridsched.engine.records import SCORED


@jit
def first_come(arrival: Any, work: Any, start: Any, end: Any) -> None:
    """One job after the other, in order of submission.

    Parameters
    ----------
    arrival : float64[n]
        Submissions in order, on the clock of the pool.
    work : float64[n]
        Work of each job, not negative.
    start, end : float64[n]
        Filled with what happens to each job, on the same clock.
    """
    clock = -np.inf
    for job in range(len(arrival)):
        clock = max(clock, arrival[unchecked(job)])
        start[unchecked(job)] = clock
        clock += work[unchecked(job)]
        end[unchecked(job)] = clock


@jit
def shortest_remaining(arrival: Any, work: Any, start: Any, end: Any) -> None:
    """Always the job with the least remaining work, the earlier one of equals; parameters as `first_come`."""
    jobs = len(arrival)
    present = np.empty(jobs, SCORED)
    size, coming = 0, 0
    clock = -np.inf
    start[:] = np.nan
    while size > 0 or coming < jobs:
        if size == 0:
            clock = max(clock, arrival[unchecked(coming)])
        while coming < jobs and arrival[unchecked(coming)] <= clock:
            size = push(present, size, work[unchecked(coming)], coming)
            coming += 1
        job = present[0]["job"]
        remaining = present[0]["key"]
        if math.isnan(start[unchecked(job)]):
            start[unchecked(job)] = clock
        next_arrival = arrival[unchecked(coming)] if coming < jobs else np.inf
        if next_arrival < clock + remaining:
            # The first entry stays the smallest when it shrinks. Rounding must not make it negative.
            present[0]["key"] = max(0.0, remaining - (next_arrival - clock))
            clock = next_arrival
        else:
            clock += remaining
            end[unchecked(job)] = clock
            size = pop(present, size)
